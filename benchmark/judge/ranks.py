"""Mean ranks over datasets and what they can tell apart: Friedman's test, Nemenyi's difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmark.tables import statistics as stats

LEVEL = 0.05


@dataclass(frozen=True)
class Ranking:
    """Mean ranks of methods over datasets, best first, and what they can tell apart."""

    ranks: dict[str, float]
    datasets: int
    p: float
    """Of Friedman's test: all methods are equally good."""
    difference: float
    """The critical one."""

    @property
    def groups(self) -> list[tuple[float, float]]:
        """First and last mean rank of every largest group that cannot be told apart."""
        ranks = list(self.ranks.values())
        spans: list[tuple[float, float]] = []
        for first in ranks:
            last = max(rank for rank in ranks if rank - first <= self.difference)
            if last > first and (not spans or last > spans[-1][1]):
                spans.append((first, last))
        return spans


def rank(scores: stats.Scores, methods: Sequence[str]) -> Ranking:
    """Ranks by Table 2's rule, so that a method has the same rank here and there: ties share the
    best rank, a missing score counts as the mean of the others. Friedman's test averages the ranks
    of ties itself."""
    rows = stats.ranks(scores)
    means = [pair[0] for pair in stats.over_datasets(rows) if pair]
    k, n = len(methods), len(scores[0])
    q = stats.studentized_range(1 - LEVEL, k) / math.sqrt(2)
    order = sorted(zip(means, methods, strict=True))
    return Ranking(
        ranks={method: mean for mean, method in order},
        datasets=n,
        p=stats.friedman_p([[place or 0.0 for place in row] for row in rows]),  # none is missing
        difference=q * math.sqrt(k * (k + 1) / (6 * n)),
    )


def shown_p(p: float) -> str:
    return f"{p:.2f}" if p >= 0.01 else f"{p:.0e}".replace("e-0", "e-")
