"""Figure 4: on synthetic data, do methods that predict well also select the right features?

Left: F1 of the selected features against accuracy, normalised per dataset between the paper's worst
and best method. Right: rank of F1 minus rank of accuracy; positive means better predictions than
features, which is what a predictor that reads its selector's mask would show. Above the paper's
numbers; below ours, with the paper's for the same methods.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from benchmark import paper
from benchmark.figures import labels, numbers, style
from benchmark.figures.style import Points
from benchmark.run.records import Store
from benchmark.tables import statistics as stats
from benchmark.tables.recipes import Metric

TABLE = 22
DATASETS = ("syn1", "syn2", "syn3")
SHADES = (1.0, 0.65, 0.35)
"""Of the bars of the three datasets."""
LOW, HIGH = style.BLUE, style.VERMILION
"""Colours of non-positive and positive rank differences."""

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
    rows: list[tuple[str, Points, Points, Bars, Bars]] = [
        ("paper", _points(printed, methods), {}, _as_printed(methods), {})
    ]
    if len(have) > 1:
        bars = _differences(ours, have), _differences(printed, have)
        rows.append(("paper and ours", _points(printed, have), _points(ours, have), *bars))
    return Shown(rows, methods, have)


def draw(shown: Shown) -> Figure:
    rows, methods, have = shown.rows, shown.methods, shown.have
    figure = style.figure(style.TWO_COLUMNS, 0.5 + 2.1 * len(rows))
    grid = figure.subplots(len(rows), 2, squeeze=False, width_ratios=(1, 1.55))
    for i, (title, hollow, filled, bars_, beside) in enumerate(rows):
        _scatter(grid[i][0], title, "ac"[i], hollow, filled)
        _bars(grid[i][1], "bd"[i], methods, bars_, beside)
    grid[-1][0].set_xlabel("normalised F1 of selected features")
    _methods(grid[-1][1], methods)
    _legend(grid[0][1], len(rows) > 1)
    if len(rows) > 1:
        style.legend_above(grid[1][0], *style.sides())
    absent = [method for method in methods if method not in have]
    style.note(
        figure,
        "Normalised per dataset: 0 is the paper's worst method, 1 its best.",
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
    metrics = (numbers.FIDELITY, numbers.ACCURACY)
    return all(value(method, d, m) is not None for d in DATASETS for m in metrics)


def normalised(value: Value, method: str, metric: Metric) -> float:
    """Mean over datasets of the place between the paper's worst (0) and best (1) method."""
    places = []
    for dataset in DATASETS:
        cells = [c for c in paper.cells(TABLE) if (c.dataset, c.metric) == (dataset, metric.name)]
        known = [cell.mean for cell in cells if cell.mean is not None]
        score = value(method, dataset, metric)
        assert score is not None
        places.append((score - min(known)) / (max(known) - min(known)))
    return fmean(places)


def _points(value: Value, methods: Sequence[str]) -> Points:
    metrics = numbers.FIDELITY, numbers.ACCURACY
    found = {m: tuple(normalised(value, m, metric) for metric in metrics) for m in methods}
    return {method: (x, y) for method, (x, y) in found.items()}


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
        for metric in (numbers.FIDELITY, numbers.ACCURACY)
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
    values = [value for point in [*hollow.values(), *filled.values()] for value in point]
    low, high = min(0.0, *values) - 0.09, max(1.0, *values) + 0.09
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)
    axes.plot([low, high], [low, high], color=style.PALE, linewidth=0.8, zorder=0.5)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])


def _bars(axes: Axes, letter: str, methods: Sequence[str], bars: Bars, beside: Bars) -> None:
    style.panel(axes, letter, "rank difference")
    axes.set_ylabel("F1 rank \N{MINUS SIGN} accuracy rank")
    width = 0.26
    for i, method in enumerate(methods):
        values = bars.get(method, ())
        for j, value in enumerate(values):
            x = i + (j - 1) * width
            colour = HIGH if value > 0 else LOW
            # Zero is a value too, so its bar has a height.
            low, height = (value, -value) if value < 0 else (0.0, value)
            if value == 0:
                low, height = -0.15, 0.3
            axes.bar(x, height, width * 0.9, low, color=colour, alpha=SHADES[j], zorder=2)
            if method in beside:
                theirs = beside[method][j]
                axes.plot(x, theirs, "D", ms=3, mfc="white", mec=style.BLACK, mew=0.7, zorder=3)
    axes.axhline(0, color=style.BLACK, linewidth=0.6, zorder=1)
    axes.set_xlim(-0.6, len(methods) - 0.4)
    axes.set_ylim(-9, 9)
    axes.set_yticks(range(-8, 9, 4))
    axes.set_xticks(range(len(methods)), [""] * len(methods))
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")


def _methods(axes: Axes, methods: Sequence[str]) -> None:
    """Name the groups of bars, below the last panel only."""
    names = [style.label(method) for method in methods]
    axes.set_xticks(range(len(methods)), names, rotation=35, ha="right", rotation_mode="anchor")
    style.stand_out(axes.get_xticklabels(), methods)


def _legend(axes: Axes, both: bool) -> None:
    handles: list[Artist] = [Patch(color=style.BLACK, alpha=shade, linewidth=0) for shade in SHADES]
    words = ["Syn1", "Syn2", "Syn3"]
    if both:
        handles.append(Line2D([], [], marker="D", ms=3, ls="", mfc="white", mec=style.BLACK))
        words.append("paper (in d)")
    style.legend_above(axes, handles, words)
