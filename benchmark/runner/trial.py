"""Trials of one's own model: on made-up data, when asked for, and on a part of the data before many
runs of it are queued, so that its error is told once, at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmark.progress import say
from benchmark.protocol.plan import Cell
from benchmark.protocol.spec import Outcome, RunSpec
from benchmark.runner.campaign import Means
from benchmark.runner.worker import Broken, Limits, Worker
from benchmark.text import first_line

if TYPE_CHECKING:
    from benchmark.runner.contract import Finding

WORTH = 6
"""Runs from which a trial is worth its time; fewer are their own."""
SECONDS = 60.0
"""A trial that takes longer has passed: what the model does, it does for long."""


def check(names: Iterable[str], seconds: float) -> Iterator[tuple[str, list[Finding]]]:
    """Try models on small made-up data, in a process of their own: one may do there what it likes."""
    worker = Worker(Limits(seconds))
    try:
        for name in names:
            yield name, _checked(name, worker)
    finally:
        worker.close()


def _checked(name: str, worker: Worker) -> list[Finding]:
    from benchmark.runner import contract

    found: list[Finding] = []
    for n in contract.CLASSES:
        say(f"{name}: trying it on data of {n} classes, for {worker.limits.seconds:g} s at most")
        answer = worker.ask({"check": name, "classes": n}, contract.read)
        if isinstance(answer, Broken):
            # A model that died or took too long would do so again.
            return [*found, contract.Finding(f"{n} classes", "fails", answer.message)]
        found += answer
    return found


def advice(model: str) -> str:
    """What to do about an own model that fails."""
    return f"`python -m benchmark check-model {model}` tries it on made-up data."


def failing(planned: Sequence[tuple[Cell, Sequence[RunSpec]]], means: Means) -> list[Outcome]:
    """The trials of own models that raised an exception, each told once.

    One per cell of which nothing was run before; a cluster's machines may have what this one does
    not have, so that nothing is tried for them here.
    """
    if means.dask:
        return []
    untried = [
        (cell.entry, specs) for cell, specs in planned if cell.entry.own and _new(specs, means)
    ]
    if not untried:
        return []
    failures = []
    worker = Worker(replace(means.limits, seconds=min(SECONDS, means.limits.seconds or SECONDS)))
    try:
        for entry, specs in untried:
            outcome = _tried(specs[0], worker if means.jobs else None)
            if outcome.record["status"] == "error":
                failures.append(outcome)
                say(
                    f"{entry.called} on {specs[0].data.label}: a trial on a part of the data failed, "
                    f"so its {len(specs)} runs are left out:\n"
                    f"  {first_line(outcome.record['error']['message'])}\n"
                    f"{advice(entry.called)}"
                )
    finally:
        worker.close()
    return failures


def _new(specs: Sequence[RunSpec], means: Means) -> bool:
    return len(specs) >= WORTH and not means.store.find([spec.key for spec in specs])[0]


def _tried(spec: RunSpec, worker: Worker | None) -> Outcome:
    if worker is not None:
        return worker.run(spec, trial=True)
    from benchmark.runner.execute import execute

    return execute(spec, trial=True)
