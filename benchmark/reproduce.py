"""Doing what a table is missing: tune where no choice exists, then run what the choices name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark import timing
from benchmark.campaign import Means, finished, run_missing
from benchmark.needs import Need, needs, specs_of, timed
from benchmark.plan import Cell, Protocol
from benchmark.progress import Progress, say
from benchmark.settings import base_of, prescribed
from benchmark.spec import MissingData
from benchmark.tune import tune


def fill(
    table: str, means: Means, only_models: Sequence[str] | None, only_datasets: Sequence[str] | None
) -> list[dict[str, Any]]:
    """Do the missing runs of a table, as far as the deadline allows; return those that failed."""
    planned = needs(table, only_models, only_datasets)
    results, protocol = means.store.root, Protocol()
    lacking = [need for need in planned if _lacks(need, results, protocol, means)]
    if lacking:
        say(
            f"{len(lacking)} of {len(planned)} cells lack runs, "
            f"first {lacking[0].cell.model} on {lacking[0].cell.data.label}; "
            f"`python -m benchmark status {table}` lists them."
        )
    # Cell by cell: whoever stops early has whole cells rather than a little of each.
    failures: list[dict[str, Any]] = []
    absent: set[str] = set()
    for number, need in enumerate(lacking):
        cell = need.cell
        if cell.data.name in absent:
            continue
        if prescribed(results, cell, need.settings) is None:
            tune([base_of(cell) if need.settings == "base" else cell], protocol, means)
        title = f"{cell.model} on {cell.data.label}"
        report = run_missing(specs_of(need, results, protocol), means, title)
        failures += report.failures
        absent |= report.absent
        if means.deadline is not None and time.monotonic() >= means.deadline:
            say(
                f"The time budget is used up; {len(lacking) - number} cells still lack runs. "
                f"`make reproduce-{table} BUDGET=all` does them all, and can be interrupted."
            )
            break
    shown = [
        cell
        for cell in timed(table)
        if (not only_models or cell.model in only_models)
        and (not only_datasets or cell.data.label in only_datasets)
    ]
    take_times(shown, results, means.deadline, means.force)
    return failures


def take_times(
    cells: Sequence[Cell], results: Path, deadline: float | None, force: bool = False
) -> set[str]:
    """Time the cells that were not timed yet; return the datasets that are not at hand."""
    from benchmark import stopwatch

    absent: set[str] = set()
    lacking = [cell for cell in cells if force or timing.read(results, cell) is None]
    with Progress(len(lacking), "timing") as progress:
        for cell in lacking:
            if deadline is not None and time.monotonic() >= deadline:
                break
            try:
                if cell.data.name not in absent:
                    taken = stopwatch.measure(cell, results)
                    timing.write(results, cell, taken)
                    if not taken.quiet:
                        say(
                            f"{cell.model} on {cell.data.label}: other processes kept {taken.load:.1f} "
                            f"cores busy, so its times are too long. Repeat with `time --force`."
                        )
            except MissingData:
                absent.add(cell.data.name)
            progress.step(f"{cell.model} {cell.data.label}")
    return absent


def _lacks(need: Need, results: Path, protocol: Protocol, means: Means) -> bool:
    if means.force or prescribed(results, need.cell, need.settings) is None:
        return True
    keys = [spec.key for spec in specs_of(need, results, protocol)]
    records, problems = means.store.find(keys)
    done = [key for key, record in records.items() if finished(record, means.retry)]
    return bool(problems) or len(done) < len(set(keys))
