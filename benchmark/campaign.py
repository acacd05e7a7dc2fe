"""Doing planned runs: planned minus finished, each one kept as soon as it is done."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmark.executor import run_all
from benchmark.progress import Progress, say
from benchmark.spec import FINAL_FAILURES, DataRef, RunSpec
from benchmark.store import Store, refuse_mixed
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
    deadline: float | None = None
    """When to begin no more runs, on time.monotonic()'s clock."""
    redone: set[str] = field(default_factory=set)
    """What `force` did again already: a second campaign of the same command leaves it alone."""


@dataclass
class Report:
    """What a campaign did."""

    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    done: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)
    absent: set[str] = field(default_factory=set)
    """Datasets that could not be had; their runs were not tried."""
    unfinished: int = 0
    """Runs that the deadline left undone."""

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
        records = {key: record for key, record in records.items() if key in means.redone}
    report.records = {k: r for k, r in records.items() if finished(r, means.retry)}
    todo = [spec for key, spec in wanted.items() if key not in report.records]
    todo += [wanted[key] for key, r in report.records.items() if _lacks_arrays(key, r, means)]
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
            deadline=means.deadline,
        )
        for outcome in outcomes:
            key = outcome.record["key"]
            progress.advance(outcome.record)
            report.done += 1
            if key in report.records and not outcome.ok:
                say(f"{key} failed while its arrays were made; the record that exists is kept.")
                continue
            means.store.write(outcome)
            means.redone.add(key)
            report.records[key] = outcome.record
    report.unfinished = len(todo) - report.done
    report.failures = [r for r in report.records.values() if r["status"] != "ok"]
    refuse_mixed(report.records.values())
    return report


def _lacks_arrays(key: str, record: dict[str, Any], means: Means) -> bool:
    """Whether arrays are asked for that this finished run could have and does not have."""
    if record["status"] != "ok":
        return False
    possible = set(means.keep) - ({"selected"} if record["selection"] is None else set())
    return bool(possible - means.store.kept(key))


_told: set[str] = set()
"""Datasets that the person at the terminal has been told about; once is enough."""


def _absent(wanted: Iterable[DataRef]) -> set[str]:
    """The datasets that cannot be had, each named once with the way to get it."""
    by_label = {data.label: data for data in wanted}
    if not by_label:
        return set()
    from benchmark.data import get, load

    rows = get(sorted({data.name for data in by_label.values()}))
    absent = {row.name: row.detail for row in rows if row.state != "ready"}
    for name in sorted(absent.keys() - _told):
        say(f"{absent[name]}\nIts missing runs are left out; everything else goes on.")
    for label, data in sorted(by_label.items()):
        if label not in _told and data.name not in absent:
            for note in load(data).notes:
                say(f"{label}: {note}.")
    _told.update(absent, by_label)
    return set(absent)


def _by_data(specs: Iterable[RunSpec]) -> list[RunSpec]:
    """Sorted so that a worker's copy of the dataset is nearly always the right one already."""
    return sorted(specs, key=lambda spec: (spec.data.label, spec.model, spec.key))
