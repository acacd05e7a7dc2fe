"""What a claim is checked against: the paper's printed cells, or our runs and redraws of them.

Every value is a vector. Its first entry is the value itself, the others are what it would be had
other runs been drawn, so that a check is written once and tells at the same time whether a claim
holds and how firmly. A redraw takes the same splits for all methods, as the runs themselves do.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmark import paper
from benchmark.protocol.spec import FOLDS, REPEATS
from benchmark.tables import statistics as stats
from benchmark.tables.table import Table

DRAWS = 1000
RUNS = REPEATS * FOLDS
DIGITS = 9
"""Means of equal scores can differ in the last bit, and would then not be equal."""

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Value:
    """A cell as a check reads it."""

    numbers: Vector | None = None
    """None where there is no value (yet)."""
    failed: bool = False
    """No value, and none to come: the method does not converge there."""
    drawn: bool = False
    """Whether there is something to draw from: its runs, or the datasets that it is a mean over."""
    partial: bool = False
    """Over some of the datasets or methods only, where it should be over all."""
    edition: str = ""
    why: str = ""
    """Why there is no value, or only a partial one."""

    @property
    def settled(self) -> bool:
        return self.failed or self.numbers is not None


class Evidence(Protocol):
    """Where the cells of the paper's tables are looked up."""

    size: int
    """Entries of every vector."""

    def value(self, table: int, method: str, dataset: str, metric: str) -> Value: ...


class OnPaper:
    """The cells as printed; a dash is a failure."""

    size = 1

    def value(self, table: int, method: str, dataset: str, metric: str) -> Value:
        cell = paper.cell(table, method, dataset, metric)
        assert cell is not None, f"Table {table} has no {method} {dataset} {metric}"
        return Value(failed=True) if cell.mean is None else Value(np.array([cell.mean]))


class InRuns:
    """Our cells in one edition; what it has no settings of its own for is by the paper's rule."""

    size = 1 + DRAWS

    def __init__(self, tables: Mapping[str, Table], edition: str) -> None:
        self.tables, self.edition = tables, edition
        self._known: dict[tuple[int, str, str, str], Value] = {}

    def value(self, table: int, method: str, dataset: str, metric: str) -> Value:
        place = table, method, dataset, metric
        if place not in self._known:
            self._known[place] = self._value(*place)
        return self._known[place]

    def _value(self, table: int, method: str, dataset: str, metric: str) -> Value:
        built = self.tables[f"table{table}"]
        result = built.in_edition(method, dataset, metric, self.edition)
        gap = result.gap if result else None
        partial = not dataset and gap is not None and gap.word == "incomplete"
        if result and not built.of_these_patients(result):
            return Value(why=result.verdict.why)
        if result is None or not result.values or (gap and not partial):
            return Value(failed=bool(gap and gap.word == "failed"), why=gap.reason if gap else "")
        if metric == "rank_difference":
            return self._rank_difference(table, method, dataset)
        why = gap.reason if gap else ""
        if len(result.values) == 1:
            # A claim is that something is better: no p-value of the contrary supports it.
            [value] = result.values if not result.reversed else (1.0,)
            same = np.full(self.size, value).round(DIGITS)
            return Value(same, partial=partial, edition=result.edition, why=why)
        if not dataset:  # one value per dataset: other datasets might have been taken
            drawn = redraws("datasets", len(result.values))
            means = np.array(result.values)[drawn].mean(axis=1).round(DIGITS)
            return Value(means, drawn=True, partial=partial, edition=result.edition, why=why)
        # Times have repeats and not splits, which nothing pairs between methods.
        paired = len(result.values) == RUNS
        drawn = redraws(dataset if paired else f"{method} on {dataset}", len(result.values))
        means = np.array(result.values)[drawn].mean(axis=1)
        return Value(means.round(DIGITS), drawn=True, edition=result.edition)

    def _rank_difference(self, table: int, method: str, dataset: str) -> Value:
        """Rank of F1 minus rank of accuracy, in every redraw, among the methods that have both."""
        printed = methods_of(table, "rank_difference")
        scores = {
            m: [
                self.value(table, m, dataset, metric)
                for metric in ("f1_select", "balanced_accuracy")
            ]
            for m in printed
        }
        both = {m: pair for m, pair in scores.items() if all(v.numbers is not None for v in pair)}
        rows = in_redraws(
            stats.rank_differences, *([pair[i].numbers for pair in both.values()] for i in (0, 1))
        )
        difference = rows[list(both).index(method)]
        recovered = any(v.edition == "recovered" for pair in both.values() for v in pair)
        missing = len(printed) - len(both)
        return Value(
            difference,
            drawn=True,
            partial=bool(missing),
            edition="recovered" if recovered else "rule",
            why=f"without {missing} of {len(printed)} methods" if missing else "",
        )


@cache
def redraws(seed: str, runs: int = RUNS) -> NDArray[np.int64]:
    """Which runs are averaged: all of them, then as many drawn with replacement, per redraw."""
    drawn = random.Random(seed).choices(range(runs), k=DRAWS * runs)
    return np.array([*range(runs), *drawn]).reshape(1 + DRAWS, runs)


Statistic = Callable[..., Sequence[Sequence[float | None]]]


def in_redraws(statistic: Statistic, *values: list[Vector | None]) -> list[Vector | None]:
    """A statistic of the methods on one dataset, in fact and in every redraw; None where a method
    has no value in any. It takes datasets as columns, and a redraw is as good as a dataset."""
    cells = (tuple(None if v is None else v.tobytes() for v in vectors) for vectors in values)
    return _in_redraws(statistic, *cells)


@lru_cache(maxsize=256)  # many claims ask for the ranks of the same cells
def _in_redraws(statistic: Statistic, *values: tuple[bytes | None, ...]) -> list[Vector | None]:
    size = max(len(v) for vectors in values for v in vectors if v is not None) // 8
    tables = [
        [[None] * size if v is None else np.frombuffer(v).tolist() for v in vectors]
        for vectors in values
    ]
    rows = statistic(*tables)
    return [None if all(x is None for x in row) else np.array(row, float) for row in rows]


def ranks(values: list[Vector | None]) -> list[Vector]:
    """Rank of every method, 1 = largest, by Table 2's rule."""
    return [row for row in in_redraws(stats.ranks, values) if row is not None]


def distances(values: list[Vector | None]) -> list[Vector | None]:
    """ADTM: 0 for the worst method and 1 for the best; None stays None."""
    return in_redraws(stats.distances, values)


@cache
def methods_of(table: int, metric: str) -> tuple[str, ...]:
    """The methods that a table of the paper prints a metric for, in its order."""
    return tuple(dict.fromkeys(c.method for c in paper.cells(table) if c.metric == metric))


@cache
def datasets_of(table: int, metric: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(c.dataset for c in paper.cells(table) if c.metric == metric))
