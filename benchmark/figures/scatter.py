"""All printed cells against ours: on the diagonal we have the paper's number.

One panel per kind of number, since features are counted, times measured and accuracies compared on
scales of their own. The colour is the verdict on our runs by the paper's rule: settings recovered from
the print have its digits on purpose. What the paper prints in several tables is one point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from benchmark.figures import labels, style
from benchmark.judge.cells import ledger
from benchmark.judge.cells.counts import distinct
from benchmark.judge.cells.ledger import Line, Ours
from benchmark.paper import Printed
from benchmark.protocol import registry
from benchmark.runner.records import Store
from benchmark.tables.recipes import read_recipe
from benchmark.tables.verdict import JUDGED

NAMED = 4
"""Accuracies that are named because they are furthest from the paper's."""


@dataclass(frozen=True)
class Panel:
    """The cells of some metrics, on one pair of axes."""

    metrics: Mapping[str, str]
    """By name, what a reader calls them."""
    log: bool = False

    def title(self, cells: Sequence[Point]) -> str:
        """Names what is drawn; where nothing is, what would be."""
        drawn = {point.metric for point in cells} or self.metrics.keys()
        return ", ".join(dict.fromkeys(word for m, word in self.metrics.items() if m in drawn))


PANELS = (
    Panel({"balanced_accuracy": "balanced accuracy (%)"}),
    Panel({"selected_features": "selected features"}, log=True),
    Panel({"f1_select": "F1 of selection"}),
    Panel({"mean_rank": "mean rank", "rank_difference": "rank diff."}),
    Panel(
        dict.fromkeys(
            ("train_seconds_per_epoch", "train_ms_per_epoch", "inference_ms_per_sample"),
            "time (s or ms)",
        ),
        log=True,
    ),
    Panel({"proportion_percent": "share (%)", "adtm_percent": "ADTM (%)"}),
    Panel({"trainable_parameters_millions": "million parameters"}, log=True),
)
ACCURACIES = 0
"""The panel that README counts the verdicts of."""

LOOKS = {
    "equal": style.Look(style.BLUE, "o", 4),
    "equivalent": style.Look(style.SKY, "o", 4),
    "inconclusive": style.Look(style.GREY, "o", 3.5),
    "different": style.Look(style.ORANGE, "X", 4.5),
    ledger.INCONSISTENT: style.Look(style.PURPLE, "D", 3.5),
    "other hardware": style.Look(style.OLIVE, "D", 3),
}
"""How the verdicts that compare are drawn; the others have nothing to compare."""


@dataclass(frozen=True)
class Point:
    """What the paper prints of an experiment, with ours beside it."""

    metric: str
    paper: float
    ours: float
    word: str
    difference: float
    name: str


@dataclass(frozen=True)
class Shown:
    panels: list[list[Point]]
    """In the order of PANELS."""
    cells: list[tuple[int, int]]
    """How many printed cells of each panel its points stand for, and how many there are."""
    whole: int
    """How many the paper prints at all."""
    elsewhere: dict[str, int]
    """Verdicts on experiments without a point, so that the legend and the answer add up."""


def read(store: Store) -> Shown:
    lines = ledger.lines(store)
    # A print that the audit doubts comes last: the same number may be printed right elsewhere.
    sure = sorted(lines, key=lambda line: line.ours["rule"].verdict.word not in JUDGED)
    experiments = distinct(sure, LOOKS)
    panels = [compared(experiments, panel) for panel in PANELS]
    verdicts = Counter(line.ours["rule"].verdict.word for line in experiments)
    verdicts.subtract(point.word for points in panels for point in points)
    return Shown(
        panels,
        [
            (
                len(compared(lines, panel)),
                sum(line.printed.metric in panel.metrics for line in lines),
            )
            for panel in PANELS
        ],
        len(lines),
        {word: verdicts[word] for word in LOOKS if verdicts[word]},
    )


def draw(data: Shown) -> Figure:
    figure = style.figure(style.TWO_COLUMNS, 4.2)
    places = figure.subplot_mosaic([[0, 0, 1, 2, 3], [0, 0, 4, 5, 6]], width_ratios=(1, 1, 1, 1, 1))
    for i, (panel, cells) in enumerate(zip(PANELS, data.panels, strict=True)):
        axes = places[i]
        size = style.TEXT if i == 0 else style.SMALL
        axes.set_title(panel.title(cells), loc="left", fontsize=size, pad=12)
        shown, printed = data.cells[i]
        points = f"{len(cells)} for " if len(cells) < shown else ""
        _count(axes, f"{points}{shown} of {printed} cells")
        _diagonal(axes, cells, panel)
        _points(axes, cells)
        axes.set_xlabel("paper", fontsize=size, labelpad=1)
        axes.set_ylabel("ours", fontsize=size, labelpad=1)
    every = [point for cells in data.panels for point in cells]
    _legend(figure, every)
    style.note(
        figure,
        f"{len(every)} points for {sum(shown for shown, _ in data.cells)} of {data.whole} printed cells: "
        "what the paper prints in several tables is one point, run by the paper's rule. "
        "`python -m benchmark compare` says why others have none.",
        f"Balanced accuracy: {_counted(Counter(point.word for point in data.panels[ACCURACIES]))}.",
        "Mean rank: the paper's too is over the methods and datasets that we have.",
        _elsewhere(data.elsewhere),
    )
    style.settle(figure)
    _name(places[0], data.panels[0])
    return figure


def compared(lines: Sequence[Line], panel: Panel) -> list[Point]:
    """The panel's cells that both sides have a number for."""
    return [
        Point(
            line.printed.metric,
            theirs,
            ours.mean,
            ours.verdict.word,
            ours.mean - theirs,
            _title(line),
        )
        for line in lines
        if line.printed.metric in panel.metrics
        and (ours := line.ours["rule"]).verdict.word in LOOKS
        and ours.mean is not None
        and (theirs := _theirs(line.printed, ours)) is not None
    ]


def _theirs(printed: Printed, ours: Ours) -> float | None:
    """What the verdict compares ours with; None if that is nothing: a cell that the audit doubts keeps
    its word even where our runs are not complete."""
    if ours.mean is None or ours.verdict.difference is None:
        return None
    # The printed rank is among other methods, on other datasets.
    return ours.mean - ours.verdict.difference if printed.metric == "mean_rank" else printed.mean


def _count(axes: Axes, text: str) -> None:
    """How many of the panel's cells its points stand for, between its title and its points."""
    axes.annotate(
        text,
        (0, 1),
        (0, 3),
        "axes fraction",
        "offset points",
        fontsize=style.SMALL,
        color=style.GREY,
    )


def _elsewhere(counts: Mapping[str, int]) -> str:
    if not counts:
        return ""
    return (
        "Verdicts without a point (a number is missing, or settings were counted): "
        f"{_counted(counts)}."
    )


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[word]} {word}" for word in LOOKS if counts.get(word)) or "none yet"


def _diagonal(axes: Axes, cells: Sequence[Point], panel: Panel) -> None:
    axes.set_aspect("equal")
    values = [value for point in cells for value in (point.paper, point.ours)]
    if panel.log:
        values = [value for value in values if value > 0]
    if not values:
        axes.set_xticks([])
        axes.set_yticks([])
        return
    low, high = min(values), max(values)
    edge = 0.06 * (high - low or 1)
    low, high = (low / 1.6, high * 1.6) if panel.log else (low - edge, high + edge)
    if panel.log:
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            style.log_ticks(axis, low, high)
    else:
        ticks = [
            t
            for t in MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(low, high)
            if low <= t <= high
        ]
        axes.set(xticks=ticks, yticks=ticks)
    axes.plot([low, high], [low, high], color=style.GREY, linewidth=0.6, zorder=1)
    axes.set_xlim(low, high)
    axes.set_ylim(low, high)


def _points(axes: Axes, cells: Sequence[Point]) -> None:
    for word, look in LOOKS.items():
        own = [point for point in cells if point.word == word]
        axes.plot(
            [point.paper for point in own],
            [point.ours for point in own],
            look.marker,
            ms=look.size,
            color=look.colour,
            mec="white",
            mew=0.3,
            ls="",
            zorder=2.5 if word == "different" else 2,  # on top
        )


def _name(axes: Axes, cells: Sequence[Point]) -> None:
    """The accuracies furthest from the paper's, among those that are different."""

    def gap(point: Point) -> float:
        return abs(point.difference)

    far = sorted((c for c in cells if c.word == "different"), key=gap, reverse=True)[:NAMED]
    names = [labels.Name(point.paper, point.ours, point.name, 4) for point in far]
    labels.place(axes, names, [(point.paper, point.ours) for point in cells])


def _title(line: Line) -> str:
    row = read_recipe(f"table{line.printed.table}").source(line.printed.method)
    return f"{row.label or registry.label(line.printed.method)}, {line.printed.dataset}"


def _legend(figure: Figure, points: Sequence[Point]) -> None:
    handles, words = [], []
    for word, look in LOOKS.items():
        number = sum(point.word == word for point in points)
        if not number:
            continue
        handles.append(
            Line2D([], [], marker=look.marker, ms=look.size + 0.5, ls="", color=look.colour)
        )
        words.append(f"{word} ({number})")
    figure.legend(handles, words, loc="outside upper left", ncols=len(LOOKS))
