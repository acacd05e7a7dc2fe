"""The paper's sentences as checks: do its own numbers bear them out, and do our runs?

`paper/claims.csv` holds one sentence per line, in our words, as comparisons of cells: whose cells,
on which datasets, against whom, and how many of the comparisons have to be true. The same check
runs on the printed cells and on ours, and on ours once per redraw of the runs as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark import paper
from benchmark.judge.audit import audit, doubtful
from benchmark.judge.audit.findings import FAILS, HOLDS, Finding, Key
from benchmark.judge.claims.evidence import (
    DIGITS,
    Evidence,
    InRuns,
    OnPaper,
    Value,
    Vector,
    datasets_of,
    distances,
    methods_of,
    ranks,
)
from benchmark.protocol import registry
from benchmark.protocol.choices import EDITIONS
from benchmark.tables.build import build_all
from benchmark.tables.ranking import block
from benchmark.tables.recipes import read_recipe
from benchmark.tables.table import Table

SO_FAR, NOT_SO_FAR, TOO_FEW = "holds so far", "does not hold so far", "not enough runs"
UNDECIDED = "undecided"
WORDS = (HOLDS, SO_FAR, UNDECIDED, NOT_SO_FAR, FAILS, TOO_FEW)

DOUBT = 0.05
"""A claim is undecided where more than this share of the redraws says the other thing."""

EQUAL = 0.005
"""What counts as equal: the same in the two decimals that the paper prints."""
SHORT = {"balanced_accuracy": "accuracy", "f1_select": "F1"}
SHOWN = 3
"""Counterexamples that are spelled out."""

Place = tuple[str, str]
"""Method and dataset."""


@dataclass(frozen=True)
class Statement:
    """A line of claims.csv."""

    id: str
    topic: str
    where: str
    claim: str
    table: int
    metrics: tuple[str, ...]
    quantity: str
    """value | share (of all features) | rank | adtm: what is made of the cells."""
    who: tuple[str, ...]
    over: str
    """each | some | mean: dataset by dataset, on at least one, or the mean over them."""
    relation: str
    rivals: tuple[str, ...]
    best_of: bool
    """Whether the best rival is meant, and not each of them."""
    factor: float
    offset: float
    """The right-hand side is factor x rival + offset; without a rival just the offset."""
    datasets: tuple[str, ...]
    """Empty: all that the table has."""
    need: str
    """all | most of the comparisons."""
    reading: str
    """What we take a vague word to mean."""
    audit: tuple[str, ...]
    """Findings of the audit about the same sentence."""

    def columns(self, metric: str) -> tuple[str, ...]:
        return self.datasets or datasets_of(self.table, metric)


@dataclass(frozen=True)
class Outcome:
    """What became of a claim on the paper's cells, or on our runs in one edition."""

    word: str
    evidence: str
    true: int
    known: int
    comparisons: int
    """All that the claim is about; `known` of them can be made, `true` of these come out right."""
    support: float | None = None
    """Share of the redraws of our runs in which the claim holds; None without runs to draw from."""
    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    """What the known comparisons are about."""
    missing: str = ""


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper and what we found about it."""

    statement: Statement
    paper: Outcome
    ours: dict[str, Outcome]
    """By edition: `rule` always, `recovered` where some of its cells have such settings."""
    doubts: tuple[str, ...] = ()
    """Findings of the audit that doubt a printed cell of it."""

    @property
    def outcome(self) -> Outcome:
        """What the claim is judged by: settings that the paper's own rule chooses."""
        return self.ours["rule"]


def build(results: Path, only: Sequence[str] | None = None) -> list[Claim]:
    """The claims, or some of them, judged by the printed cells and by the records."""
    chosen = _chosen(only)
    return judge_all(build_all(results, sorted({f"table{s.table}" for s in chosen})), only)


def judge_all(built: Mapping[str, Table], only: Sequence[str] | None = None) -> list[Claim]:
    """The same from tables that are built already."""
    printed, runs = OnPaper(), {edition: InRuns(built, edition) for edition in EDITIONS}
    doubts = doubtful(audit())
    claims = []
    for statement in _chosen(only):
        on_paper, _ = judge(statement, printed)
        judged = {edition: judge(statement, evidence) for edition, evidence in runs.items()}
        ours = {
            edition: outcome
            for edition, (outcome, used) in judged.items()
            if edition == "rule" or edition in used
        }
        claims.append(Claim(statement, on_paper, ours, _doubts(statement, on_paper, doubts)))
    return claims


def _doubts(
    statement: Statement, outcome: Outcome, doubts: Mapping[Key, Finding]
) -> tuple[str, ...]:
    datasets = outcome.datasets or ("",)
    places = itertools.product([statement.table], outcome.methods, datasets, statement.metrics)
    return tuple(dict.fromkeys(doubts[place].id for place in places if place in doubts))


def _chosen(only: Sequence[str] | None) -> list[Statement]:
    for name in only or ():
        registry.check_name("claim", name, [s.id for s in statements()])
    return [s for s in statements() if not only or s.id in only]


@cache
def statements() -> tuple[Statement, ...]:
    return tuple(map(_parse, paper.lines("claims.csv")))


def _parse(row: Mapping[str, str]) -> Statement:
    table, metrics = int(row["table"]), tuple(row["metrics"].split())
    methods = methods_of(table, metrics[0])
    who = methods if row["who"] == "all" else tuple(row["who"].split())
    against = row["against"].removeprefix("best of ")
    rivals = tuple(against.split())
    if against == "others":
        rivals = tuple(m for m in methods if m not in who)
    bound = row["bound"]
    scaled = bound.startswith("x")
    return Statement(
        id=row["id"],
        topic=row["topic"],
        where=row["where"],
        claim=row["claim"],
        table=table,
        metrics=metrics,
        quantity=row["quantity"],
        who=who,
        over=row["over"],
        relation=row["relation"],
        rivals=rivals,
        best_of=against != row["against"],
        factor=float(bound[1:]) if scaled else 1.0,
        offset=float(bound) if bound and not scaled else 0.0,
        datasets=tuple(row["datasets"].split()),
        need=row["need"],
        reading=row["reading"],
        audit=tuple(row["audit"].split()),
    )


# Comparisons -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """One of the comparisons that a claim consists of."""

    text: str
    true: NDArray[np.bool_] | None = None
    """In fact, then in every redraw; None where it cannot be made."""
    slack: float = 0.0
    """How far it is from being otherwise; negative if it is not true."""
    cells: Mapping[Place, Value] = field(default_factory=dict)
    """What it rests on."""
    missing: tuple[Place, ...] = ()
    sure: bool = field(default=False, kw_only=True)
    """Whether nothing that is missing can change it."""


def comparisons(statement: Statement, evidence: Evidence) -> list[Comparison]:
    """All that a claim is about; without those against a method that does not converge."""
    made: list[Comparison | None] = []
    against: list[tuple[str, ...]] = [(m,) for m in statement.rivals]
    if statement.best_of or not against:
        against = [statement.rivals]
    for metric, who in itertools.product(statement.metrics, statement.who):
        check = _Check(statement, evidence, metric, who)
        for rivals in against:
            if statement.over == "mean":
                made.append(check.on_average(rivals))
                continue
            each = [check.on(dataset, rivals) for dataset in statement.columns(metric)]
            made += each if statement.over == "each" else [_somewhere(check.name(who), each)]
    return [comparison for comparison in made if comparison is not None]


def _somewhere(name: str, each: Sequence[Comparison | None]) -> Comparison | None:
    """Whether one of the comparisons is true, best the one that is so most clearly."""
    present = [c for c in each if c is not None]
    known = [c for c in present if c.true is not None]
    truths = [c.true for c in present if c.true is not None]
    missing = tuple(place for c in present for place in c.missing)
    if not known:
        return Comparison(name, missing=missing) if present else None
    best = max(known, key=lambda c: c.slack)
    true = np.any(truths, axis=0)
    if len(known) == 1 < len(present):  # one dataset does not stand for all, in fact or in a redraw
        if not true[0]:
            return Comparison(name, missing=missing)
        true = np.ones_like(true)
    found = any(c.sure and c.true is not None and c.true[0] for c in known)
    return Comparison(
        f"{name}: {best.text if true[0] else 'nowhere'}",
        true,
        best.slack,
        {place: value for c in known for place, value in c.cells.items()},
        () if found else missing,
        sure=found or (len(known) == len(present) and all(c.sure for c in known)),
    )


@dataclass(frozen=True)
class _Averages:
    """Means over datasets by method, and the cells behind them."""

    means: dict[str, Vector]
    cells: dict[Place, Value]
    missing: tuple[Place, ...]


@dataclass(frozen=True)
class _Check:
    """One method in one metric, to be compared with a rival, the best of several, or a number."""

    statement: Statement
    evidence: Evidence
    metric: str
    who: str

    def _value(self, method: str, dataset: str) -> Value:
        found = self.evidence.value(self.statement.table, method, dataset, self.metric)
        if self.statement.quantity != "share" or found.numbers is None:
            return found
        return replace(found, numbers=found.numbers / registry.datasets()[dataset].shape[1])

    def _related(self, mine: Vector, rival: Vector | None) -> tuple[NDArray[np.bool_], float]:
        """Whether the relation holds, and by how much."""
        s = self.statement
        right = s.offset if rival is None else s.factor * rival + s.offset
        gap = (mine - right).round(DIGITS)
        distance = EQUAL - np.abs(gap) if s.relation == "=" else -gap if "<" in s.relation else gap
        return (distance > 0 if s.relation in ("<", ">") else distance >= 0), float(distance[0])

    # Dataset by dataset

    def on(self, dataset: str, rivals: Sequence[str]) -> Comparison | None:
        """The comparison on one dataset; None if there is nothing to compare with."""
        if self.statement.quantity == "rank":
            return self._rank(dataset)
        mine = self._value(self.who, dataset)
        others = {m: value for m in rivals if not (value := self._value(m, dataset)).failed}
        if rivals and not others:
            return None
        name = f"{self.name(self.who)} on {dataset}" if dataset else self.name(self.who)
        if mine.failed:
            never = np.zeros(self.evidence.size, bool)
            return Comparison(
                f"{name} failed", never, -np.inf, {(self.who, dataset): mine}, sure=True
            )
        cells = {(self.who, dataset): mine} | {(m, dataset): value for m, value in others.items()}
        missing = tuple(p for p, value in cells.items() if value.numbers is None or value.partial)
        known = {m: value.numbers for m, value in others.items() if value.numbers is not None}
        # The best of several, itself among them, is no rival as long as no other is known.
        if mine.numbers is None or (rivals and not known.keys() - {self.who}):
            return Comparison(name, missing=missing)
        rival = self._best(known) if known else None
        true, slack = self._related(mine.numbers, rival)
        text = self._spelled(dataset, mine.numbers, rival, known)
        return Comparison(text, true, slack, _settled(cells), missing, sure=not missing)

    def _best(self, known: Mapping[str, Vector]) -> Vector:
        choose = np.min if self.metric in paper.SMALLER_IS_BETTER else np.max
        return np.asarray(choose(np.stack(list(known.values())), axis=0))

    def _rank(self, dataset: str) -> Comparison:
        methods = methods_of(self.statement.table, self.metric)
        cells = {(m, dataset): self._value(m, dataset) for m in methods}
        settled = _settled(cells)
        missing = tuple(place for place in cells if place not in settled)
        name, me = f"{self.name(self.who)} on {dataset}", (self.who, dataset)
        if me not in settled or sum(v.numbers is not None for v in settled.values()) < 2:
            return Comparison(name, missing=missing)
        rank = ranks([value.numbers for value in settled.values()])[list(settled).index(me)]
        true, slack = self._related(rank, None)
        sure = not missing or self._stays(rank[0], settled, len(missing))
        # Among too few, every place is a good one.
        if not sure and len(self._possible(1, len(settled))) == 1:
            return Comparison(name, missing=missing)
        among = f" of {len(settled)}" if missing else ""
        text = f"{self._prefix()}{dataset} {rank[0]:g}{among}"
        return Comparison(text, true, slack, settled, () if sure else missing, sure=sure)

    def _stays(self, rank: float, settled: Mapping[Place, Value], missing: int) -> bool:
        """Whether so many more methods cannot change the comparison: they only push others down,
        but what stands in for a method that failed is a mean, which moves with them."""
        failed = [m for (m, _), value in settled.items() if value.failed]
        low, high = max(1, rank - len(failed)), rank + len(failed) + missing
        return self.who not in failed and len(self._possible(low, high)) == 1

    def _possible(self, low: float, high: float) -> set[bool]:
        """What can become of the comparison in any of these places."""
        return {bool(x) for x in self._related(np.arange(low, high + 1), None)[0]}

    # Over datasets

    def on_average(self, rivals: Sequence[str]) -> Comparison:
        ranked = self.statement.quantity in ("rank", "adtm")
        found = self._ranking if ranked else self._means(rivals)
        if not all(m in found.means for m in (self.who, *rivals)):
            return Comparison(self.name(self.who), missing=found.missing)
        mine = found.means[self.who]
        known = {m: found.means[m] for m in rivals}
        rival = self._best(known) if known else None
        true, slack = self._related(mine, rival)
        text = self._spelled("", mine, rival, known)
        return Comparison(text, true, slack, found.cells, found.missing, sure=not found.missing)

    def _means(self, rivals: Sequence[str]) -> _Averages:
        """Plain means over the datasets that all these methods have."""
        methods, datasets = (self.who, *rivals), self.statement.columns(self.metric)
        cells = {(m, d): self._value(m, d) for m in methods for d in datasets}
        shared = [d for d in datasets if all(cells[m, d].numbers is not None for m in methods)]
        columns = {
            m: [v for d in shared if (v := cells[m, d].numbers) is not None] for m in methods
        }
        means = {m: np.mean(column, axis=0) for m, column in columns.items() if column}
        used = {place: value for place, value in cells.items() if place[1] in shared}
        return _Averages(means, used, tuple(p for p, value in cells.items() if not value.settled))

    @cached_property
    def _ranking(self) -> _Averages:
        """Mean ranks, or mean ADTM, over the block of methods and datasets that is ranked."""
        methods = methods_of(self.statement.table, self.metric)
        datasets = self.statement.columns(self.metric)
        cells = {(m, d): self._value(m, d) for m in methods for d in datasets}
        settled = _settled(cells)
        missing = tuple(place for place in cells if place not in settled)
        started = [m for m in methods if any(cells[m, d].numbers is not None for d in datasets)]
        rows, columns = block(started, datasets, settled)
        if self.who not in rows:
            return _Averages({}, {}, missing)
        made = distances if self.statement.quantity == "adtm" else ranks
        scores = [made([cells[m, d].numbers for m in rows]) for d in columns]
        # A dataset on which all methods are equal has no best and no worst.
        scores = [s for s in scores if not any(x is not None and np.isnan(x[0]) for x in s)]
        if not scores:
            return _Averages({}, {}, missing)
        means = {
            m: np.nanmean([score for score in mine if score is not None], axis=0).round(DIGITS)
            for m, mine in zip(rows, zip(*scores, strict=True), strict=True)
        }
        return _Averages(means, {(m, d): cells[m, d] for m in rows for d in columns}, missing)

    # As text

    def name(self, method: str) -> str:
        return method_name(self.statement.table, method)

    def _prefix(self) -> str:
        """Whose value and which, where a claim has several."""
        s = self.statement
        who = f"{self.name(self.who)} " if len(s.who) > 1 and s.over != "some" else ""
        what = f"{SHORT.get(self.metric, self.metric)} " if len(s.metrics) > 1 else ""
        return f"{who}{what}"

    def _spelled(
        self, dataset: str, mine: Vector, rival: Vector | None, known: Mapping[str, Vector]
    ) -> str:
        left = self._shown(mine)
        if rival is None:
            return f"{self._prefix()}{dataset or self.metric} {left}"
        best = next(m for m, numbers in known.items() if numbers[0] == rival[0])
        where = f" on {dataset}" if dataset else ""
        right = f"{self.name(best)} {self._shown(rival)}"
        return f"{self.name(self.who)} {left} against {right}{where}"

    def _shown(self, numbers: Vector) -> str:
        s, number = self.statement, float(numbers[0])
        if s.quantity in ("share", "adtm"):
            return f"{100 * number:.1f} %"
        if self.metric == "rank_difference":
            return f"{number:+g}" if number else "0"
        decimals = paper.decimals(s.table, self.metric)
        if not isinstance(self.evidence, OnPaper):
            metrics = {m.name: m for m in _recipe(f"table{s.table}").metrics}
            if self.metric in metrics:
                decimals = metrics[self.metric].our_decimals(number)
        return f"{number:.{decimals}f}"


def _settled(cells: Mapping[Place, Value]) -> dict[Place, Value]:
    return {place: value for place, value in cells.items() if value.settled}


_recipe = cache(read_recipe)


def method_name(table: int, method: str) -> str:
    """The name that a table shows for a row."""
    return _recipe(f"table{table}").source(method).label or registry.label(method)


# Verdicts ----------------------------------------------------------------------------------------


def judge(statement: Statement, evidence: Evidence) -> tuple[Outcome, set[str]]:
    """The outcome, and the editions of the cells that it rests on.

    Comparisons that cannot be made count like those that can: a claim about most comparisons holds
    so far if most of the known ones are true. It holds, or does not, once nothing that is missing
    can change that.
    """
    made = comparisons(statement, evidence)
    truths = [(c, c.true) for c in made if c.true is not None]
    total, known = len(made), len(truths)
    need = {"all": total, "most": total // 2 + 1}[statement.need]
    missing = _grouped(statement, (place for c in made for place in c.missing))
    if not truths:
        return Outcome(
            TOO_FEW, _too_few(statement, evidence, made), 0, 0, total, missing=missing
        ), set()
    true = np.sum([t for _, t in truths], axis=0)
    holding = true * total >= need * known
    surely = sum(bool(t[0]) for c, t in truths if c.sure)
    surely_not = sum(not t[0] for c, t in truths if c.sure)
    decided = surely >= need or total - surely_not < need
    word = (HOLDS if decided else SO_FAR) if holding[0] else (FAILS if decided else NOT_SO_FAR)
    cells = {place: value for c, _ in truths for place, value in c.cells.items()}
    drawn = any(value.drawn for value in cells.values())
    support = float(holding[1:].mean()) if drawn else None
    if support is not None and DOUBT < support < 1 - DOUBT:
        word = UNDECIDED
    found = _evidence(statement, [c for c, _ in truths])
    partial, others = next(
        # A value of one dataset is partial where methods are missing, one over datasets where those are.
        (
            (v.why, "methods" if dataset else "datasets")
            for (_, dataset), v in cells.items()
            if v.partial
        ),
        ("", ""),
    )
    outcome = Outcome(
        word,
        f"{found}, {partial}" if partial else found,
        int(true[0]),
        known,
        total,
        support,
        tuple(filter(None, _ordered((d for _, d in cells), statement))),
        tuple(dict.fromkeys(m for m, _ in cells)),
        f"the other {others}" if partial else missing,
    )
    return outcome, {value.edition for value in cells.values()}


def _evidence(statement: Statement, known: Sequence[Comparison]) -> str:
    """All values where they are few, else the counterexamples, or what came closest to one."""
    wrong = sorted(
        (c for c in known if c.true is not None and not c.true[0]), key=lambda c: c.slack
    )
    every = not statement.rivals and statement.over == "each"
    if len(known) == 1 or every:
        return ", ".join(c.text for c in known)
    count = f"{len(known) - len(wrong)} of {len(known)} comparisons"
    if not wrong:
        return f"{count}; closest: {min(known, key=lambda c: c.slack).text}"
    more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    return f"{count}; not: {'; '.join(c.text for c in wrong[:SHOWN])}{more}"


def _too_few(statement: Statement, evidence: Evidence, made: Sequence[Comparison]) -> str:
    """Who is missing everywhere, and why: that is what has to be run first."""
    missing = {place for c in made for place in c.missing}
    metric = statement.metrics[0]
    for group in (statement.who, statement.rivals):
        absent = [m for m in group if all((m, d) in missing for d in statement.columns(metric))]
        if absent:
            names = ", ".join(method_name(statement.table, m) for m in absent)
            first = absent[0], statement.columns(metric)[0]
            why = evidence.value(statement.table, *first, metric).why
            return f"no complete cell of {names}" + (f": {why}" if why else "")
    return "too few methods are complete on the same datasets"


def _ordered(datasets: Iterable[str], statement: Statement) -> tuple[str, ...]:
    present = set(datasets)
    return tuple(d for d in datasets_of(statement.table, statement.metrics[0]) if d in present)


def _grouped(statement: Statement, places: Iterable[Place]) -> str:
    """`ProtoGate; Lasso, STG on meta-dr, meta-pam`: cells that are missing, in short."""
    missing: dict[str, set[str]] = {}
    for method, dataset in places:
        missing.setdefault(method, set()).add(dataset)
    groups: dict[tuple[str, ...], list[str]] = {}
    for method, datasets in missing.items():
        name = method_name(statement.table, method)
        groups.setdefault(_ordered(datasets, statement), []).append(name)
    everywhere = statement.columns(statement.metrics[0])
    parts = [
        ", ".join(names) + ("" if datasets == everywhere else f" on {', '.join(datasets)}")
        for datasets, names in groups.items()
    ]
    return "; ".join(parts)
