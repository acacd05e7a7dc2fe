"""A trial of one's own model before many runs of it are queued: its error is told once, at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmark.progress import say
from benchmark.protocol.plan import Cell
from benchmark.protocol.spec import Outcome, RunSpec
from benchmark.runner.campaign import Means
from benchmark.runner.worker import Worker
from benchmark.text import first_line

WORTH = 6
"""Runs from which a trial is worth its time; fewer are their own."""
SECONDS = 60.0
"""A trial that takes longer has passed: what the model does, it does for long."""


def failing(planned: Sequence[tuple[Cell, Sequence[RunSpec]]], means: Means) -> list[Outcome]:
    """The trials of own models that raised an exception, each told once.

    One per cell of which nothing was run before; a cluster's machines may have what this one does
    not have, so that nothing is tried for them here.
    """
    if means.dask:
        return []
    untried = [specs for cell, specs in planned if cell.entry.own and _new(specs, means)]
    if not untried:
        return []
    failures = []
    worker = Worker(replace(means.limits, seconds=min(SECONDS, means.limits.seconds or SECONDS)))
    try:
        for specs in untried:
            outcome = _tried(specs[0], worker if means.jobs else None)
            if outcome.record["status"] == "error":
                failures.append(outcome)
                say(
                    f"{specs[0].model} on {specs[0].data.label}: a trial on a part of the data failed, "
                    f"so its {len(specs)} runs are left out:\n"
                    f"  {first_line(outcome.record['error']['message'])}\n"
                    f"`python -m benchmark check-model {specs[0].model}` tries it on made-up data."
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
