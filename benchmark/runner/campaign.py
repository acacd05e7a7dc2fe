"""Doing planned runs: planned minus finished, each one kept as soon as it is done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Generic, TypeVar

from benchmark.files import Unreadable
from benchmark.progress import Progress, say
from benchmark.protocol import registry
from benchmark.protocol.search import Plan, Record
from benchmark.protocol.spec import FINAL_FAILURES, KEEP, DataRef, RunSpec, UserError
from benchmark.runner.executor import Queue, by_data, run_batches
from benchmark.runner.records import Problem, Store, outdated, refuse_mixed
from benchmark.runner.worker import Limits

T = TypeVar("T")


@dataclass(frozen=True)
class Means:
    """Execution options; they never change a result."""

    store: Store
    jobs: int = 1
    dask: str | None = None
    limits: Limits = field(default_factory=Limits)
    keep: Collection[str] = ()
    force: bool = False
    retry: bool = True
    """Whether runs that failed before are tried again."""
    deadline: float | None = None
    """When to begin no more runs and to drop those under way, on time.monotonic()'s clock. In this
    process (`jobs` 0) a run that has begun comes to its end."""

    def __post_init__(self) -> None:
        if self.jobs < 0:
            raise UserError(
                f"jobs is how many runs are done side by side, or 0 for inside this process; got {self.jobs}."
            )


@dataclass
class Report:
    """What a campaign did."""

    records: dict[str, Record] = field(default_factory=dict)
    done: int = 0
    failures: list[Record] = field(default_factory=list)
    absent: set[str] = field(default_factory=set)
    """Datasets that could not be had; their runs were not tried."""
    unfinished: int = 0
    """Runs that the deadline left undone."""


def finished(record: Record, retry: bool) -> bool:
    """Whether resuming leaves this record alone."""
    known = record["status"] == "ok" or record["status"] in FINAL_FAILURES or not retry
    return known and not outdated(record)


def run_missing(specs: Sequence[RunSpec], means: Means, title: str = "runs") -> Report:
    """Do what is planned and not finished; report all of it."""
    cells = groupby(by_data(specs), key=lambda spec: (spec.data.label, spec.model, spec.setting))
    _, report = carry_out([all_runs(list(mine), means) for _, mine in cells], means, title)
    return report


def all_runs(specs: Sequence[RunSpec], means: Means) -> Plan[None]:
    """The plan of a cell whose settings are known. Of a user's own model that never succeeded there,
    one run goes first: if it raises an exception, so would the others, and it is told once."""
    first = specs[0]
    entry = registry.find_model(first.model)
    if entry and entry.own and means.retry and not any(_good(means, spec.key) for spec in specs):
        record = (yield [first])[first.key]
        if record["status"] == "error" and len(specs) > 1:
            say(
                f"{entry.called} on {first.data.label}: the first run failed, so the other "
                f"{len(specs) - 1} are left out."
            )
            return
    yield specs


def _good(means: Means, key: str) -> Record | None:
    """The record of a run that succeeded with the present code."""
    record = means.store.ok(key)
    return None if record is None or outdated(record) else record


def carry_out(plans: Sequence[Plan[T]], means: Means, title: str) -> tuple[list[T | None], Report]:
    """Carry out several plans on one pool of workers; keep every outcome at once.

    Runs of earlier plans go first, so whoever stops early has whole cells rather than a little of
    each; where a plan has to wait for its last runs, later ones fill the gap. The result of a plan
    that did not come to its end is None.
    """
    state = _Campaign(plans, means)
    means.store.tidy()
    with Progress(0, title) as progress:
        state.begin()
        progress.grow(state.asked)
        batches = run_batches(
            state.todo,
            jobs=means.jobs,
            dask=means.dask,
            limits=means.limits,
            # All of them: a run that is done again for one must not lose another that was kept.
            keep=KEEP if means.keep else (),
            deadline=means.deadline,
        )
        for outcomes in batches:
            kept = []
            for outcome in outcomes:
                key = outcome.record["key"]
                if not outcome.ok and (good := _good(means, key)) is not None:
                    # Done again by --force or for its arrays: a failure takes nothing away.
                    status = outcome.record["status"]
                    say(f"{key} failed this time ({status}); the record that exists is kept.")
                    state.report.failures.append(outcome.record)
                    state.report.records[key] = good
                else:
                    kept.append(outcome)
            means.store.write_all(kept)
            for outcome in kept:
                state.report.records[outcome.record["key"]] = outcome.record
            for outcome in outcomes:
                progress.advance(outcome.record)
                state.report.done += 1
                state.arrived(outcome.record["key"])
            progress.grow(state.asked)
    report = state.report
    report.unfinished = state.asked - report.done
    report.failures += [r for r in report.records.values() if r["status"] != "ok"]
    refuse_mixed(report.records.values())
    return state.results, report


@dataclass
class _Batch(Generic[T]):
    """The runs that a plan waits for."""

    rank: int
    plan: Plan[T]
    specs: Sequence[RunSpec] = ()
    missing: set[str] = field(default_factory=set)


class _Campaign(Generic[T]):
    """Plans under way: what each waits for, and what is to be run next."""

    def __init__(self, plans: Sequence[Plan[T]], means: Means) -> None:
        self.means = means
        self.report = Report()
        self.results: list[T | None] = [None] * len(plans)
        self.batches = [_Batch(rank, plan) for rank, plan in enumerate(plans)]
        self.waiting: dict[str, list[_Batch[T]]] = defaultdict(list)
        self.todo = Queue()
        self.asked = 0
        self.looked: set[str] = set()
        """Datasets that were looked for already."""
        self.edited: set[str] = set()
        """Own models whose files have changed, each told once."""

    def begin(self) -> None:
        for batch in self.batches:
            self._resume(batch, None)

    def arrived(self, key: str) -> None:
        """Take a finished run to the plans that wait for it."""
        for batch in self.waiting.pop(key, ()):
            batch.missing.discard(key)
            if not batch.missing:
                self._resume(batch, self.report.records)

    def _resume(self, batch: _Batch[T], records: Mapping[str, Record] | None) -> None:
        """Let a plan go on until it needs a run that is not there yet."""
        try:
            while True:
                sent = None if records is None else {s.key: records[s.key] for s in batch.specs}
                batch.specs = batch.plan.send(sent)  # type: ignore[arg-type]
                self._ask(batch)
                if batch.missing:
                    return
                records = self.report.records
        except StopIteration as end:
            self.results[batch.rank] = end.value

    def _ask(self, batch: _Batch[T]) -> None:
        """Queue what a batch needs and nobody has done or asked for yet."""
        wanted = {s.key: s for s in batch.specs if s.key not in self.report.records}
        new = {key: spec for key, spec in wanted.items() if key not in self.waiting}
        self.report.records |= self._known(new)
        todo = [s for key, s in new.items() if self._to_be_done(key)]
        if not self.means.dask:  # the cluster's machines have their own data
            unknown = [
                s.data
                for s in todo
                if s.data.path is None
                and s.data.label not in self.looked
                and s.data.name not in self.report.absent
            ]
            self.report.absent |= _absent(unknown)
            self.looked |= {data.label for data in unknown}
            todo = [s for s in todo if s.data.name not in self.report.absent]
        for spec in todo:
            self.todo.push(batch.rank, spec)
        self.asked += len(todo)
        queued = {spec.key for spec in todo}
        batch.missing = {key for key in wanted if key not in self.report.records or key in queued}
        for key in batch.missing:
            self.waiting[key].append(batch)

    def _known(self, wanted: Mapping[str, RunSpec]) -> dict[str, Record]:
        """The finished records of these runs; damaged files are set aside."""
        means = self.means
        records, problems = means.store.find(list(wanted))
        for problem in problems:
            _set_aside(problem, means.store)
        if means.force:
            return {}
        for model in {r["spec"]["model"] for r in records.values() if outdated(r)} - self.edited:
            self.edited.add(model)
            entry = registry.find_model(model)
            called = entry.called if entry else model
            say(f"{called}: its file has changed, so runs of the older one are done again.")
        return {key: r for key, r in records.items() if finished(r, means.retry)}

    def _to_be_done(self, key: str) -> bool:
        record = self.report.records.get(key)
        return record is None or _arrays_missing(key, record, self.means)


def _arrays_missing(key: str, record: Record, means: Means) -> bool:
    """Whether arrays are asked for that this finished run could have and does not have."""
    if record["status"] != "ok":
        return False
    possible = set(means.keep) - ({"selected"} if record["selection"] is None else set())
    if not possible:
        return False  # what nobody asked for is not looked at
    try:
        return bool(possible - means.store.arrays(record).keys())
    except Unreadable as error:
        _set_aside(Problem(means.store.arrays_path(key), str(error)), means.store)
        return True


def _set_aside(problem: Problem, store: Store) -> None:
    moved = store.set_aside(problem)
    say(f"set aside {problem}\n  It is now {moved}, and the run is done again.")


def _absent(wanted: Iterable[DataRef]) -> set[str]:
    """The datasets that cannot be had, each named with the way to get it."""
    by_label = {data.label: data for data in wanted}
    if not by_label:
        return set()
    from benchmark.data.load import load

    absent: set[str] = set()
    for label, data in sorted(by_label.items()):
        if data.name in absent:
            continue
        try:
            lines = [f"{label}: {note}." for note in load(data).notes]
        except UserError as error:
            absent.add(data.name)
            lines = [f"{error}\nIts missing runs are left out; everything else goes on."]
        for line in lines:
            say(line)
    return absent
