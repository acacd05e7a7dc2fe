"""Figure 4: on synthetic data, do methods that predict well also select the right features?

Left: F1 of the selected features against accuracy, normalised per dataset between the worst and the
best number shown. Right: rank of F1 minus rank of accuracy; positive means better predictions than
features, which is what a predictor that reads its selector's mask would show. Above the paper's
numbers; below ours, with the paper's for the same methods.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmark.figures import labels, numbers, style
from benchmark.figures.style import Points
from benchmark.protocol import registry
from benchmark.runner.records import Store
from benchmark.tables import statistics as stats
from benchmark.tables.recipes import ACCURACY, Metric

TABLE = 22
DATASETS = ("syn1", "syn2", "syn3")
SHADES = ("#2b2b2b", "#7a7a7a", "#bdbdbd")
"""Of the bars of the three datasets; colours are the methods'."""

PAPER: Any = {"marker": "D", "ms": 3, "ls": "", "mfc": "white", "mec": style.BLACK, "mew": 0.8}
FLAT = 3
"""Points: the height of a bar that has none."""

SMALL: Any = {"fontsize": style.SMALL, "color": style.GREY}

Value = Callable[[str, str, Metric], float | None]
Bars = Mapping[str, Sequence[float]]
"""Method -> rank differences on the three datasets."""


@dataclass(frozen=True)
class Shown:
    """Rows of panels with the methods' places and bars."""

    rows: list[tuple[str, Points, Points, Bars, Bars]]
    """Title, the paper's points and ours, bars, and the paper's beside ours."""
    methods: list[str]
    have: list[str]
    """Those with all cells of ours."""


def read(store: Store) -> Shown:
    table = numbers.synthetic(store)
    methods = numbers.methods_of(TABLE)

    def ours(method: str, dataset: str, metric: Metric) -> float | None:
        return numbers.mean(table, method, dataset, metric)

    have = [method for method in methods if _complete(ours, method)]
    theirs = _points(printed, methods, rulers((printed, methods)))
    rows: list[tuple[str, Points, Points, Bars, Bars]] = [
        ("paper", theirs, {}, _as_printed(methods), {})
    ]
    if len(have) > 1:
        both = rulers((printed, have), (ours, have))
        points = _points(printed, have, both), _points(ours, have, both)
        # Rounded cells tie where the paper's own did not, so what it prints comes first.
        theirs_too = _as_printed(have) if have == methods else _differences(printed, have)
        bars = _differences(ours, have), theirs_too
        rows.append(("paper and ours", *points, *bars))
    return Shown(rows, methods, have)


def draw(shown: Shown) -> Figure:
    rows, methods, have = shown.rows, shown.methods, shown.have
    figure = style.figure(style.TWO_COLUMNS, 0.6 + 2.6 * len(rows))
    grid = figure.subplots(len(rows), 2, squeeze=False, width_ratios=(1, 1.35))
    for i, (title, hollow, filled, bars_, beside) in enumerate(rows):
        _scatter(grid[i][0], title, "ac"[i], hollow, filled)
        side = "paper" if i == 0 else "ours"
        _bars(grid[i][1], "bd"[i], f"rank difference, {side}", methods, bars_, beside)
    grid[-1][0].set_xlabel("normalised F1 of selected features")
    _legends(grid)
    absent = [method for method in methods if method not in have]
    style.note(
        figure,
        "Normalised per dataset: 0 is the worst and 1 the best number shown"
        + (" (in c of both sides)." if len(rows) > 1 else "."),
        "Bars that point up: better predictions than features. Flat: the two ranks are equal.",
        f"Ranks in d are among the {len(have)} methods shown." if absent and len(rows) > 1 else "",
        numbers.missing(absent, f"table{TABLE}"),
    )
    style.settle(figure)
    for i, (_, hollow, filled, _, _) in enumerate(rows):
        places = {**hollow, **filled}
        names = [labels.of_method(method, x, y) for method, (x, y) in places.items()]
        joints = [(hollow[method], filled[method]) for method in filled]
        labels.place(grid[i][0], names, hollow.values(), joints)
    return figure


# Numbers -----------------------------------------------------------------------------------------


def printed(method: str, dataset: str, metric: Metric) -> float | None:
    return numbers.printed(TABLE, method, dataset, metric.name)


def _complete(value: Value, method: str) -> bool:
    metrics = (numbers.FIDELITY, ACCURACY)
    return all(value(method, d, m) is not None for d in DATASETS for m in metrics)


Rulers = Mapping[tuple[str, Metric], tuple[float, float]]
"""Worst and best number by dataset and metric."""


def rulers(*sides: tuple[Value, Sequence[str]]) -> Rulers:
    """Over all numbers of one or both sides: no place is outside of 0 and 1."""
    found = {}
    for dataset, metric in itertools.product(DATASETS, (numbers.FIDELITY, ACCURACY)):
        values = [value(m, dataset, metric) for value, methods in sides for m in methods]
        known = [value for value in values if value is not None]
        found[dataset, metric] = min(known), max(known)
    return found


def normalised(value: Value, method: str, metric: Metric, ruler: Rulers) -> float:
    """Mean over datasets of the place between the worst (0) and the best (1) number."""
    places = []
    for dataset in DATASETS:
        low, high = ruler[dataset, metric]
        score = value(method, dataset, metric)
        assert score is not None
        places.append((score - low) / (high - low))
    return fmean(places)


def _points(value: Value, methods: Sequence[str], ruler: Rulers) -> Points:
    return {
        m: (
            normalised(value, m, numbers.FIDELITY, ruler),
            normalised(value, m, ACCURACY, ruler),
        )
        for m in methods
    }


def _as_printed(methods: Sequence[str]) -> Bars:
    """The paper's own differences, which it computed from numbers with more decimals."""
    return {
        m: [numbers.printed(TABLE, m, d, "rank_difference") or 0.0 for d in DATASETS]
        for m in methods
    }


def _differences(value: Value, methods: Sequence[str]) -> Bars:
    """Rank of F1 minus rank of accuracy among these methods."""
    ranks = [
        stats.ranks([[value(m, d, metric) for d in DATASETS] for m in methods])
        for metric in (numbers.FIDELITY, ACCURACY)
    ]
    return {
        m: [(f1 or 0.0) - (accuracy or 0.0) for f1, accuracy in zip(*pair, strict=True)]
        for m, *pair in zip(methods, *ranks, strict=True)
    }


# Drawing -----------------------------------------------------------------------------------------


def _scatter(axes: Axes, title: str, letter: str, hollow: Points, filled: Points) -> None:
    style.panel(axes, letter, title)
    axes.set_ylabel("normalised accuracy")
    style.pairs(axes, hollow, filled)
    low, high = -0.09, 1.09
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.plot([low, high], [low, high], color=style.PALE, linewidth=0.8, zorder=0.5)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])


def _bars(
    axes: Axes, letter: str, title: str, methods: Sequence[str], bars: Bars, beside: Bars
) -> None:
    style.panel(axes, letter, title)
    axes.set_ylabel("F1 rank \N{MINUS SIGN} accuracy rank")
    width = 0.26
    for i, method in enumerate(methods):
        if method not in bars:
            axes.text(i, 0.4, "not run", ha="center", va="bottom", rotation=90, **SMALL)
        for j, value in enumerate(bars.get(method, ())):
            x = i + (j - 1) * width
            axes.bar(x, value, width * 0.9, color=SHADES[j], linewidth=0, zorder=2)
            if value == 0:  # is a value too, and would not be seen
                ends = x - 0.45 * width, x + 0.45 * width
                axes.plot(ends, (0, 0), color=SHADES[j], lw=FLAT, solid_capstyle="butt", zorder=2)
            if method in beside:
                axes.plot(x, beside[method][j], **PAPER, zorder=3)
        if i:
            axes.axvline(i - 0.5, color=style.PALE, linewidth=0.4, zorder=0.5)
    axes.axhline(0, color=style.BLACK, linewidth=0.6, zorder=1)
    axes.set_xlim(-0.6, len(methods) - 0.4)
    axes.set_ylim(-9, 9)
    axes.set_yticks(range(-8, 9, 4))
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")
    names = [registry.label(method) for method in methods]
    axes.set_xticks(range(len(methods)), names, rotation=35, ha="right", rotation_mode="anchor")
    style.stand_out(axes.get_xticklabels(), methods)


def _legends(grid: Any) -> None:
    """The datasets above b; what is the paper's and what ours above c, and whose the diamonds are above d."""
    shades: list[Artist] = [Patch(color=shade, linewidth=0) for shade in SHADES]
    style.legend_above(grid[0][1], shades, ["Syn1", "Syn2", "Syn3"])
    if len(grid) > 1:
        style.legend_above(grid[1][0], *style.sides())
        style.legend_above(grid[1][1], [Line2D([], [], **PAPER)], ["paper, same methods"])
