"""Doing planned runs: planned minus finished, each one kept as soon as it is done."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmark.executor import run_all
from benchmark.progress import Progress, say
from benchmark.spec import FINAL_FAILURES, DataRef, RunSpec
from benchmark.store import Store
from benchmark.worker import Limits


@dataclass(frozen=True)
class Means:
    """How to do runs: the part of a command line that never changes a result."""

    store: Store
    jobs: int = 1
    dask: str | None = None
    limits: Limits = field(default_factory=Limits)
    keep: Collection[str] = ()
    force: bool = False
    retry: bool = True
    """Whether runs that failed before are tried again."""


@dataclass
class Report:
    """What a campaign did."""

    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    done: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)
    absent: set[str] = field(default_factory=set)
    """Datasets that could not be had; their runs were not tried."""

    def ok(self, spec: RunSpec) -> dict[str, Any] | None:
        """The spec's record if its run succeeded."""
        record = self.records.get(spec.key)
        return record if record and record["status"] == "ok" else None


def finished(record: dict[str, Any], retry: bool) -> bool:
    """Whether resuming leaves this record alone."""
    return record["status"] == "ok" or record["status"] in FINAL_FAILURES or not retry


def run_missing(specs: Sequence[RunSpec], means: Means, title: str = "runs") -> Report:
    """Do what is planned and not finished; keep every outcome at once; report all of them."""
    report = Report()
    wanted = {spec.key: spec for spec in specs}
    records, problems = means.store.find(list(wanted))
    for problem in problems:
        moved = means.store.set_aside(problem)
        say(f"set aside {problem}\n  It is now {moved}, and the run is done again.")
    if means.force:
        records = {}
    report.records = {k: r for k, r in records.items() if finished(r, means.retry)}
    todo = [spec for key, spec in wanted.items() if key not in report.records]
    if means.keep:
        have = {k for k in report.records if means.store.arrays_path(k).is_file()}
        todo += [wanted[k] for k in report.records if k not in have]
    if not means.dask:  # the cluster's machines have their own data
        report.absent = _absent(spec.data for spec in todo if spec.data.path is None)
        todo = [spec for spec in todo if spec.data.name not in report.absent]
    means.store.tidy()
    with Progress(len(todo), title) as progress:
        outcomes = run_all(
            _by_data(todo),
            jobs=means.jobs,
            dask=means.dask,
            limits=means.limits,
            keep=means.keep,
        )
        for outcome in outcomes:
            means.store.write(outcome)
            report.records[outcome.record["key"]] = outcome.record
            report.done += 1
            progress.advance(outcome.record)
    report.failures = [r for r in report.records.values() if r["status"] != "ok"]
    return report


def _absent(wanted: Iterable[DataRef]) -> set[str]:
    """The datasets that cannot be had, each named once with the way to get it."""
    names = sorted({data.name for data in wanted})
    if not names:
        return set()
    from benchmark.data import get

    absent = [row for row in get(names) if row.state != "ready"]
    for row in absent:
        say(f"{row.detail}\nIts missing runs are left out; everything else goes on.")
    return {row.name for row in absent}


def _by_data(specs: Iterable[RunSpec]) -> list[RunSpec]:
    """Sorted so that a worker's copy of the dataset is nearly always the right one already."""
    return sorted(specs, key=lambda spec: (spec.data.label, spec.model, spec.key))
