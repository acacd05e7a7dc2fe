"""How settings are searched: plans that ask for runs, are sent their records, and end in a choice.

A plan is a generator, so a search is a pure function of records. It is resumed by asking again,
several searches share one pool of workers, and recorded grids can be replayed to test it.

The paper's rule: one setting per model and dataset, the one with the best mean validation balanced
accuracy over the 25 splits. Ties go to the first in grid order.

race    that rule at less cost: a setting is dropped once a perfect score on all the splits that it
        has not seen could not save it. The choice is provably the rule's.
quick   all settings on a few splits, then the best two, more where they tie, finish: cheaper, and marked so.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from benchmark.protocol.plan import Cell, Protocol
from benchmark.protocol.spec import FINAL_FAILURES, RunSpec

Record = dict[str, Any]
T = TypeVar("T")
Plan = Generator[Sequence[RunSpec], Mapping[str, Record], T]
"""Yields runs that it needs, is sent their records by key, and returns what it was for."""

RACE_START = 5
"""Splits that every setting of a race sees before the leader finishes. On the 78 recorded grids 5 is
the cheapest of 1, 2, 3 and 5, and it is one repeat of the cross-validation."""
FINALISTS, FINALISTS_WITH_TIES = 2, 3
MORE_SPLITS = 5
"""What settings that tie at the cut see before it is made again."""
TRIALS_AT_ONCE = 5
"""Trials that Optuna proposes together, whatever the number of workers: so every machine asks the
same, and so does a search that was resumed."""
TRIAL_SEED = 42


class Unsettled(Exception):
    """A run failed in a way that another attempt may mend, so nothing can be chosen yet."""

    def __init__(self, record: Record) -> None:
        super().__init__(f"{record['key']}: {record['status']}")
        self.record = record


@dataclass
class Entrant:
    """A setting in a search: its runs in the order of the splits, and the scores seen so far."""

    params: dict[str, Any]
    specs: list[RunSpec]
    scores: list[float] = field(default_factory=list)
    """Validation balanced accuracies of the first splits."""
    out: bool = False
    """Whether one of its runs failed for good: it cannot be chosen."""
    data_sha256: str = ""

    @property
    def seen(self) -> int:
        return len(self.scores)

    @property
    def finished(self) -> bool:
        return self.seen == len(self.specs)

    @property
    def mean(self) -> float:
        """Rounded, because means of equal scores can differ in the last bit and must tie."""
        return -1.0 if self.out or not self.scores else round(sum(self.scores) / self.seen, 12)

    @property
    def ceiling(self) -> float:
        """The mean over all splits if every split to come were perfect."""
        total = len(self.specs)
        return round((sum(self.scores) + total - self.seen) / total, 12)


@dataclass(frozen=True)
class Result:
    """What a search found."""

    method: str
    best: Entrant | None
    """None if every setting failed."""
    entrants: list[Entrant]
    tied: int = 0
    """Of a quick search, how many settings shared the score at the cut; 1 if it was clear."""


def search(cell: Cell, protocol: Protocol, quick: int | None) -> Plan[Result]:
    """The plan of a cell: its grid or its ranges, by the paper's rule or on `quick` splits first."""
    total = len(protocol.splits())
    if quick is not None and quick >= total:
        quick = None  # every setting on every split is the rule itself
    first = total if quick is None else quick
    if cell.search.ranges:
        entrants = yield from _trials(cell, protocol, first)
    else:
        entrants = [entrant(cell, params, protocol) for params in cell.candidates()]
    tied = 0
    if quick is not None:
        tied = yield from _quick(entrants, first)
    elif not cell.search.ranges:
        yield from _race(entrants)
    method = "quick" if quick is not None else "optuna" if cell.search.ranges else "race"
    return Result(method, best_of([e for e in entrants if e.finished]), entrants, tied)


def entrant(cell: Cell, params: dict[str, Any], protocol: Protocol) -> Entrant:
    return Entrant(params, cell.specs(params, protocol))


def best_of(entrants: Sequence[Entrant]) -> Entrant | None:
    """The best mean; max keeps the first, so ties go to the first in grid order."""
    able = [e for e in entrants if not e.out]
    return max(able, key=lambda e: e.mean) if able else None


def _see(entrants: Sequence[Entrant], splits: int) -> Plan[None]:
    """Bring every setting to so many splits."""
    wanted = [e.specs[e.seen : splits] for e in entrants if not e.out]
    records = yield [spec for specs in wanted for spec in specs]
    for e in entrants:
        for spec in () if e.out else e.specs[e.seen : splits]:
            record = records[spec.key]
            if record["status"] == "ok":
                e.scores.append(record["scores"]["valid"]["balanced_accuracy"])
                e.data_sha256 = record["data"]["sha256"]
            elif record["status"] in FINAL_FAILURES:
                e.out = True
                break
            else:
                raise Unsettled(record)


def _race(entrants: list[Entrant]) -> Plan[None]:
    """Splits in order, all settings together; what cannot win any more is dropped."""
    total = len(entrants[0].specs)
    yield from _see(entrants, min(RACE_START, total))
    leader = best_of(entrants)
    if leader is None:
        return
    # A finished setting is a bar for the others; an unfinished one could still score nothing.
    yield from _see([leader], total)
    while running := [e for e in entrants if not e.finished and _can_win(e, entrants)]:
        yield from _see(running, min(e.seen for e in running) + 1)


def _can_win(entrant: Entrant, entrants: list[Entrant]) -> bool:
    """Whether perfect scores from here on would make it the rule's choice."""
    if entrant.out:
        return False
    place = entrants.index(entrant)
    for other_place, other in enumerate(entrants):
        if other.finished and not other.out:
            if other.mean > entrant.ceiling:
                return False
            if other.mean == entrant.ceiling and other_place < place:
                return False
    return True


def _quick(entrants: list[Entrant], first: int) -> Plan[int]:
    """All settings on the first splits, then the best two finish; returns how many tied at the cut.

    Where all finalists fail for good on the splits to come, the cut is made again among the others.
    """
    yield from _see(entrants, first)
    tied = 0
    while (able := [e for e in entrants if not e.out]) and not any(e.finished for e in able):
        finalists, level = yield from _cut(able)
        tied = tied or level
        yield from _see(finalists, len(entrants[0].specs))
    return tied


def _cut(undecided: list[Entrant]) -> Plan[tuple[list[Entrant], int]]:
    """The best two, and how many tied with the second.

    What ties with the second goes along, up to three. If more are tied, the tied ones see five more
    splits first, and the cut is made again among them.
    """
    sure: list[Entrant] = []
    tied = 0
    while undecided:
        ranked = sorted(undecided, key=lambda e: -e.mean)
        cut = ranked[min(FINALISTS - len(sure), len(ranked)) - 1].mean
        sure += [e for e in undecided if e.mean > cut]
        level = [e for e in undecided if e.mean == cut]
        tied = tied or len(level)
        if len(sure) + len(level) <= FINALISTS_WITH_TIES or all(e.finished for e in level):
            sure += level
            break
        yield from _see(level, min(level[0].seen + MORE_SPLITS, len(level[0].specs)))
        undecided = [e for e in level if not e.out]
    return sure, tied


def _trials(cell: Cell, protocol: Protocol, splits: int) -> Plan[list[Entrant]]:
    """Continuous ranges: Optuna's TPE proposes, batch by batch, and learns when a batch is done.

    The study lives in memory. Its proposals follow from the seeds and the scores, and the scores
    are in the records: a resumed search asks exactly what an unbroken one would. On another type of
    machine a proposal of the model can differ in its last bit, and its runs are then done again.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    distributions: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.FloatDistribution(r.low, r.high, log=r.log)
        for name, r in cell.search.ranges.items()
    }
    entrants: list[Entrant] = []
    for point in cell.candidates():
        study = optuna.create_study(direction="maximize")
        for start in range(0, cell.search.trials, TRIALS_AT_ONCE):
            trials = []
            for number in range(start, min(start + TRIALS_AT_ONCE, cell.search.trials)):
                study.sampler = optuna.samplers.TPESampler(seed=TRIAL_SEED + number)
                trials.append(study.ask(distributions))
            batch = [entrant(cell, {**point, **trial.params}, protocol) for trial in trials]
            yield from _see(batch, splits)
            for trial, tried in zip(trials, batch, strict=True):
                # A setting that failed for good is worth nothing, but the search has to know that.
                study.tell(trial, 0.0 if tried.out else tried.mean)
            entrants += batch
    return entrants
