"""Doing what a table is missing: tune where no choice exists, then run what the choices name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark.campaign import Means, finished, run_missing
from benchmark.plan import Cell, Protocol
from benchmark.progress import say
from benchmark.registry import check_name, data_ref, models, tables
from benchmark.settings import prescribed, published
from benchmark.spec import RunSpec
from benchmark.tune import tune


def fill(
    table: str, means: Means, only_models: Sequence[str] | None, only_datasets: Sequence[str] | None
) -> list[dict[str, Any]]:
    """Do the missing runs of a table, as far as the deadline allows; return those that failed."""
    cells = _cells(table, only_models, only_datasets)
    results, protocol = means.store.root, Protocol()
    lacking = [cell for cell in cells if _lacks(cell, results, protocol, means)]
    if lacking:
        say(
            f"{len(lacking)} of {len(cells)} cells lack runs, "
            f"first {lacking[0].model} on {lacking[0].data.label}; "
            f"`python -m benchmark status {table}` lists them."
        )
    # Cell by cell: whoever stops early has whole cells rather than a little of each.
    failures: list[dict[str, Any]] = []
    absent: set[str] = set()
    for number, cell in enumerate(lacking):
        if cell.data.name in absent:
            continue
        if prescribed(results, cell) is None:
            tune([cell], protocol, means)
        title = f"{cell.model} on {cell.data.label}"
        report = run_missing(_specs(cell, results, protocol), means, title)
        failures += report.failures
        absent |= report.absent
        if means.deadline is not None and time.monotonic() >= means.deadline:
            say(
                f"The time budget is used up; {len(lacking) - number} cells still lack runs. "
                f"`make reproduce-{table} BUDGET=all` does them all, and can be interrupted."
            )
            break
    return failures


def _cells(
    table: str, only_models: Sequence[str] | None, only_datasets: Sequence[str] | None
) -> list[Cell]:
    recipe = tables()[table]
    for name in only_models or []:
        check_name("model", name, models())
    for name in only_datasets or []:
        check_name("dataset of this table", name, recipe["datasets"])
    return [
        Cell(models()[method], data_ref(name))
        for name in recipe["datasets"]
        for method in recipe["methods"]
        if method in models()
        and (not only_models or method in only_models)
        and (not only_datasets or name in only_datasets)
    ]


def _specs(cell: Cell, results: Path, protocol: Protocol) -> list[RunSpec]:
    """The runs behind a cell in both editions, as far as their settings are known."""
    known = [
        params for params in (prescribed(results, cell), published(cell)) if params is not None
    ]
    return [spec for params in known for spec in cell.specs(params, protocol)]


def _lacks(cell: Cell, results: Path, protocol: Protocol, means: Means) -> bool:
    if means.force or prescribed(results, cell) is None:
        return True
    keys = [spec.key for spec in _specs(cell, results, protocol)]
    records, problems = means.store.find(keys)
    done = [key for key, record in records.items() if finished(record, means.retry)]
    return bool(problems) or len(done) < len(set(keys))
