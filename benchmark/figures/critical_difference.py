"""Mean ranks over datasets, and which methods they can tell apart (Demsar, 2006).

Friedman's test asks whether the methods differ at all; after Nemenyi, two mean ranks have to be a
critical difference apart. Methods under one bar cannot be told apart. Above the paper's numbers, then
its numbers for the methods and datasets that we have, then ours for the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark import paper
from benchmark.figures import numbers, style
from benchmark.judge.ranks import LEVEL, Ranking, rank, shown_p
from benchmark.protocol import registry
from benchmark.runner.records import Store


@dataclass(frozen=True)
class Shown:
    """What is ranked."""

    printed: list[list[float | None]]
    same: list[list[float | None]]
    """The printed ones of the methods and datasets that ours are of."""
    ours: list[list[float | None]]
    have: tuple[str, ...]
    datasets: tuple[str, ...]


def read(store: Store) -> Shown:
    table = numbers.real(store)
    have, datasets = table.ranked
    if len(have) < 3 or len(datasets) < 2:
        have, datasets = (), ()  # too few for a test
    return Shown(
        _printed(paper.METHODS, paper.DATASETS),
        _printed(have, datasets),
        [[numbers.mean(table, m, d) for d in datasets] for m in have],
        have,
        datasets,
    )


def _printed(methods: Sequence[str], datasets: Sequence[str]) -> list[list[float | None]]:
    return [[numbers.printed(2, m, d, "balanced_accuracy") for d in datasets] for m in methods]


def draw(shown: Shown) -> Figure:
    have, datasets = shown.have, shown.datasets
    rankings = [("paper", rank(shown.printed, paper.METHODS))]
    if have:
        if shown.same != shown.printed:
            rankings.append(("paper, as far as we have runs", rank(shown.same, have)))
        rankings.append(("ours", rank(shown.ours, have)))
    heights = [_height(ranking) for _, ranking in rankings]
    figure = style.figure(style.TWO_COLUMNS, 0.35 + 0.145 * sum(heights))
    grid = figure.subplots(len(rankings), 1, squeeze=False, height_ratios=heights)
    for (name, ranking), axes, letter in zip(rankings, grid[:, 0], "abc", strict=False):
        style.panel(
            axes,
            letter,
            f"{name}: {_summary(ranking)}",
        )
        _diagram(axes, ranking)
    absent = ", ".join(registry.label(method) for method in paper.METHODS if method not in have)
    style.note(
        figure,
        f"Methods under one bar cannot be told apart (Nemenyi, level {LEVEL}). "
        "Ties share the best rank.",
        _dashes(shown.printed),
        f"b and c: the block of Table 2's ranks ({', '.join(datasets)}). " * (len(rankings) > 2)
        + f"Without all their runs: {absent} (`python -m benchmark reproduce table2`)."
        * bool(absent),
    )
    return figure


def _dashes(printed: Sequence[Sequence[float | None]]) -> str:
    """On methods without some of the paper's scores; without them no rank would be the printed one."""
    pairs = zip(paper.METHODS, printed, strict=True)
    names = [registry.label(method) for method, scores in pairs if None in scores]
    if not names:
        return ""
    return (
        f"Where the paper prints no score of {', '.join(names)}, the mean of the other methods stands "
        "for it, as in its ranks."
    )


def draw_ranking(ranking: Ranking, label: Callable[[str], str], bold: str, note: str) -> Figure:
    """One ranking of any methods, with the one in bold that it is about."""
    figure = style.figure(style.TWO_COLUMNS, 0.35 + 0.145 * _height(ranking))
    axes = figure.subplots()
    axes.set_title(_summary(ranking), loc="left")
    _diagram(axes, ranking, label, bold)
    style.note(
        figure,
        f"Methods under one bar cannot be told apart (Nemenyi, level {LEVEL}). "
        "Ties share the best rank.",
        note,
    )
    return figure


def _summary(ranking: Ranking) -> str:
    return (
        f"{len(ranking.ranks)} methods on {ranking.datasets} datasets, "
        f"Friedman p = {shown_p(ranking.p)}"
    )


# Drawing: a ruler of ranks, the bars below it, and the names left and right of it -----------------


def _half(ranking: Ranking) -> int:
    return math.ceil(len(ranking.ranks) / 2)


def _height(ranking: Ranking) -> float:
    """In lines of text."""
    return 4.5 + 0.55 * len(ranking.groups) + _half(ranking)


def _diagram(
    axes: Axes,
    ranking: Ranking,
    label: Callable[[str], str] = registry.label,
    bold: str = "protogate",
) -> None:
    k, half = len(ranking.ranks), _half(ranking)
    span = k - 1
    axes.set_axis_off()
    axes.set_xlim(1 - 0.22 * span, k + 0.22 * span)
    axes.set_ylim(-_height(ranking) + 2.5, 2.2)
    axes.plot([1, k], [0, 0], color=style.BLACK, linewidth=0.8)
    for place in range(1, k + 1):
        axes.plot([place, place], [0, 0.25], color=style.BLACK, linewidth=0.6)
        axes.text(place, 0.4, str(place), ha="center", va="bottom", fontsize=style.SMALL)
    _ruler(axes, ranking)
    for i, (first, last) in enumerate(ranking.groups):
        y = -0.5 - 0.55 * i
        ends = first - 0.006 * span, last + 0.006 * span
        axes.plot(ends, [y, y], color=style.BLACK, linewidth=2.2, solid_capstyle="butt")
    top = -0.9 - 0.55 * len(ranking.groups)
    for i, (method, mean) in enumerate(ranking.ranks.items()):
        left = i < half
        y = top - (i if left else k - 1 - i)
        end = 1 - 0.01 * span if left else k + 0.01 * span
        look = style.look(method)
        x = mean + 0.004 * span * _aside(ranking, method)
        axes.plot([x, x, end], [0, y, y], color=look.colour, linewidth=0.8, zorder=1)
        # At the name, where no other marker can cover it; equal ranks share a place on the ruler.
        axes.plot(end, y, look.marker, ms=0.8 * look.size, color=look.colour, mec="white", mew=0.3)
        own = method == bold
        axes.text(
            end - 0.016 * span if left else end + 0.016 * span,
            y,
            f"{label(method)}  {mean:.2f}" if left else f"{mean:.2f}  {label(method)}",
            ha="right" if left else "left",
            va="center",
            fontsize=style.SMALL,
            color=look.colour if own else style.BLACK,
            fontweight="bold" if own else "normal",
        )


def _aside(ranking: Ranking, method: str) -> float:
    """Steps that the line of a method with others' rank is moved by, so that all are seen."""
    same = [m for m, mean in ranking.ranks.items() if mean == ranking.ranks[method]]
    return same.index(method) - (len(same) - 1) / 2


def _ruler(axes: Axes, ranking: Ranking) -> None:
    """The critical difference, drawn to scale above the ranks."""
    k = len(ranking.ranks)
    length = min(ranking.difference, k - 1)
    y, more = 1.75, " (longer than the axis)" if ranking.difference > k - 1 else ""
    axes.plot([1, 1 + length], [y, y], color=style.GREY, linewidth=1.2)
    for x in (1, 1 + length):
        axes.plot([x, x], [y - 0.2, y + 0.2], color=style.GREY, linewidth=1.2)
    axes.text(
        1 + length + 0.01 * (k - 1),
        y,
        # Ranks over few datasets are round numbers, and so may be the gap that it is held against.
        f" critical difference {ranking.difference:.4f}{more}",
        va="center",
        fontsize=style.SMALL,
        color=style.GREY,
    )
