"""Times of two machines have no verdict; who is faster than whom on each of them does.

For every column of times: the rank correlation (Spearman) between the paper's times and ours over the
methods that both have, and how many pairs of methods come in the same order.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmark.tables.pairing import correlation
from benchmark.tables.statistics import ranks
from benchmark.tables.table import Table
from benchmark.text import grid

TABLES = (12, 13, 20)


@dataclass(frozen=True)
class Order:
    """One column of times: the methods in the paper's order beside ours."""

    table: int
    dataset: str
    metric: str
    methods: tuple[str, ...]
    """With both times, the paper's fastest first."""
    same: int
    """Pairs in the same order on both sides; ties on either side do not count."""
    pairs: int
    spearman: float | None
    ratio: float
    """Ours over the paper's: the median over the methods."""
    swapped: tuple[tuple[str, str], ...]
    """Pairs in the other order: faster in the paper, faster here."""


def orders(built: Mapping[str, Table]) -> list[Order]:
    """Every column of times with at least three methods on both sides."""
    found = []
    for number in TABLES:
        table = built[f"table{number}"]
        for dataset, metric in table.recipe.columns:
            if not metric.timed:
                continue
            both = {
                row.label: (printed.mean, result.mean)
                for row in table.rows
                # An average of methods is not one more method.
                if not table.recipe.source(row.method).average
                and (result := table.results.get((row.method, dataset, metric.name, "rule")))
                and result.mean
                and (printed := result.printed)
                and printed.mean
            }
            if len(both) > 2:
                found.append(_order(number, dataset, metric.name, both))
    return found


def _order(table: int, dataset: str, metric: str, both: Mapping[str, tuple[float, float]]) -> Order:
    methods = sorted(both, key=lambda method: both[method])
    same, swapped = 0, []
    for a, b in itertools.combinations(methods, 2):
        theirs, ours = both[a][0] - both[b][0], both[a][1] - both[b][1]
        if theirs * ours > 0:
            same += 1
        elif theirs * ours < 0:
            swapped.append((a, b))
    columns = [ranks([[-both[m][side]] for m in methods], ties="average") for side in (0, 1)]
    places = [[row[0] or 0.0 for row in column] for column in columns]
    ratio = median(ours / theirs for theirs, ours in both.values())
    pairs = same + len(swapped)
    return Order(
        *(table, dataset, metric, tuple(methods), same, pairs),
        *(correlation(*places), ratio, tuple(swapped)),
    )


def to_markdown(found: Sequence[Order]) -> str:
    """One line per column of times."""
    head = [
        "Table",
        "dataset",
        "time",
        "methods",
        "pairs in the same order",
        "Spearman",
        "ours / paper",
    ]
    rows = [
        [
            *(str(o.table), o.dataset or "all", o.metric.replace("_", " "), str(len(o.methods))),
            f"{o.same} of {o.pairs}",
            "" if o.spearman is None else f"{o.spearman:.2f}",
            f"{o.ratio:.2g}",
        ]
        for o in found
    ]
    swapped = [
        f"Table {o.table}, {o.dataset or 'all'}: "
        + ", ".join(f"{a} before {b}" for a, b in o.swapped)
        for o in found
        if o.swapped
    ]
    about = (
        "The paper's times come from other hardware, so single times cannot be compared; we compare the order "
        "of the methods. Pairs that are equal on either side do not count. The last column is ours divided "
        "by the paper's, the median over the methods. Many of ours are of default settings or of some that "
        "were chosen earlier; the notes below Tables 12, 13 and 20 say which."
    )
    lines = ["## Times: who is faster than whom", about, grid([head, *rows])]
    if swapped:
        lines.append("Faster in the paper, slower here:")
        lines.append("\n".join(f"- {one}" for one in swapped))
    return "\n\n".join(lines) if found else ""
