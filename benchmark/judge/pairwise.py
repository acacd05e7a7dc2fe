"""Every method of a table against every other, dataset by dataset, on the same 25 splits.

The test is the corrected resampled t-test of Nadeau and Bengio on paired runs; p-values are adjusted by
Holm's method.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations

from benchmark.tables import statistics as stats
from benchmark.tables.table import Table
from benchmark.text import grid


@dataclass(frozen=True)
class Pair:
    """Two methods on one dataset."""

    dataset: str
    first: str
    second: str
    difference: float
    """Second minus first, in points of the score that the table ranks by."""
    p: float
    p_holm: float

    @property
    def clear(self) -> bool:
        return self.p_holm < stats.ALPHA


def pairs(table: Table, against: str | None = None) -> list[Pair]:
    """All pairs of complete cells of a table, adjusted dataset by dataset; with `against`, those with
    this method, as the second, adjusted for all of them together: what is asked as one question.
    """
    assert table.recipe.rank is not None
    metric = table.recipe.rank.metric
    rows = sorted(table.rows, key=lambda row: row.method == against)
    found: list[Pair] = []
    for dataset in table.recipe.datasets:
        if table.recipe.fixed_test(dataset):
            continue  # the test is one for runs that are tested on different rows
        cells = [
            (row.label, result.values)
            for row in rows
            if (result := table.results.get((row.method, dataset, metric, "rule")))
            and result.complete
            and table.of_these_patients(result)
        ]
        whole = against is None or _complete(table, against, dataset, metric)
        tests = [
            (a, b, [y - x for x, y in zip(first, second, strict=True)])
            for (a, first), (b, second) in combinations(cells, 2)
            if whole and (against is None or b == cells[-1][0])
        ]
        shared = stats.overlap(table.recipe.valid_size(dataset))
        raw = [stats.corrected_resampled_t(differences, shared)[1] for _, _, differences in tests]
        for (a, b, d), p, adjusted in zip(tests, raw, stats.holm(raw), strict=True):
            found.append(Pair(dataset, a, b, stats.mean_std(d)[0], p, adjusted))
    if against is not None:
        together = stats.holm([pair.p for pair in found])
        found = [replace(one, p_holm=p) for one, p in zip(found, together, strict=True)]
    return found


def _complete(table: Table, method: str, dataset: str, metric: str) -> bool:
    result = table.results.get((method, dataset, metric, "rule"))
    return bool(result and result.complete)


def to_markdown(found: Sequence[Pair]) -> str:
    """One matrix per dataset: row minus column, in bold where the difference is clear."""
    about = (
        f"Row minus column in points of balanced accuracy over {stats.RUNS} paired runs, settings chosen on "
        f"validation. **Bold**: p < {stats.ALPHA} by the corrected resampled t-test after Holm's "
        f"adjustment over all pairs of the dataset. README's answer tests ProtoGate's pairs alone, so that "
        f"other differences can be clear there."
    )
    parts = ["# Pairwise tests", about]
    for dataset in dict.fromkeys(pair.dataset for pair in found):
        here = [pair for pair in found if pair.dataset == dataset]
        names = list(dict.fromkeys(name for pair in here for name in (pair.first, pair.second)))
        shown = {}
        for pair in here:
            shown[pair.second, pair.first] = _text(pair.difference, pair.clear)
            shown[pair.first, pair.second] = _text(-pair.difference, pair.clear)
        lines = [[dataset, *names]]
        lines += [[row, *(shown.get((row, column), "") for column in names)] for row in names]
        clear = sum(pair.clear for pair in here)
        parts += [
            f"## {dataset}",
            grid(lines),
            f"{clear} of {len(here)} pairs differ clearly.",
        ]
    if not found:
        parts.append("No dataset has two complete methods yet.")
    return "\n\n".join(parts)


def _text(difference: float, clear: bool) -> str:
    return f"**{difference:+.1f}**" if clear else f"{difference:+.1f}"


def to_json(found: Sequence[Pair]) -> str:
    return json.dumps([asdict(pair) for pair in found], indent=1)
