"""All printed cells against ours: on the diagonal we have the paper's number.

One panel per kind of number, since features are counted, times measured and accuracies compared on
scales of their own. The colour is the ledger's verdict (`python -m benchmark compare`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.figures import labels, style
from benchmark.judge.cells import ledger
from benchmark.judge.cells.ledger import Line
from benchmark.runner.records import Store
from benchmark.tables.recipes import read_recipe

NAMED = 4
"""Accuracies that are named because they are furthest from the paper's."""


@dataclass(frozen=True)
class Panel:
    """The cells of some metrics, on one pair of axes."""

    title: str
    metrics: tuple[str, ...]
    log: bool = False


PANELS = (
    Panel("balanced accuracy (%)", ("balanced_accuracy",)),
    Panel("selected features", ("selected_features",), log=True),
    Panel("F1 of selection", ("f1_select",)),
    Panel("rank, rank difference", ("mean_rank", "rank_difference")),
    Panel(
        "time (s or ms)",
        ("train_seconds_per_epoch", "train_ms_per_epoch", "inference_ms_per_sample"),
        log=True,
    ),
    Panel("share, ADTM (%)", ("proportion_percent", "adtm_percent")),
    Panel("million parameters", ("trainable_parameters_millions",), log=True),
)

LOOKS = {
    "equal": style.Look(style.BLUE, "o", 4),
    "equivalent": style.Look(style.SKY, "o", 4),
    "inconclusive": style.Look(style.GREY, "o", 3.5),
    "different": style.Look(style.VERMILION, "X", 4.5),
    ledger.INCONSISTENT: style.Look(style.PURPLE, "D", 3.5),
    "other hardware": style.Look(style.GREY, "D", 3),
}
"""How the verdicts that compare are drawn; the others have nothing to compare."""


@dataclass(frozen=True)
class Point:
    """A printed cell with ours beside it."""

    paper: float
    ours: float
    word: str
    difference: float
    name: str


@dataclass(frozen=True)
class Shown:
    panels: list[list[Point]]
    """In the order of PANELS."""
    printed: list[int]
    """How many cells of each panel the paper prints."""
    whole: int
    """How many it prints at all."""
    elsewhere: dict[str, int]
    """Verdicts on cells without a point, so that the legend and the ledger add up."""


def read(store: Store) -> Shown:
    lines = ledger.lines(store)
    panels = [compared(lines, panel) for panel in PANELS]
    verdicts = Counter(line.verdict.word for line in lines)
    verdicts.subtract(point.word for points in panels for point in points)
    return Shown(
        panels,
        [sum(line.printed.metric in panel.metrics for line in lines) for panel in PANELS],
        len(lines),
        {word: verdicts[word] for word in LOOKS if verdicts[word]},
    )


def draw(data: Shown) -> Figure:
    figure = style.figure(style.TWO_COLUMNS, 3.7)
    places = figure.subplot_mosaic([[0, 0, 1, 2, 3], [0, 0, 4, 5, 6]], width_ratios=(1, 1, 1, 1, 1))
    for i, (panel, cells) in enumerate(zip(PANELS, data.panels, strict=True)):
        axes = places[i]
        size = style.TEXT if i == 0 else style.SMALL
        axes.set_title(panel.title, loc="left", fontsize=size, pad=12)
        _count(axes, f"{len(cells)} of {data.printed[i]}")
        _diagonal(axes, cells, panel)
        _points(axes, cells)
    places[0].set_xlabel("paper")
    places[0].set_ylabel("ours")
    every = [point for cells in data.panels for point in cells]
    _legend(figure, every)
    style.note(
        figure,
        f"{len(every)} of {data.whole} printed cells have a complete number of ours beside them; "
        f"`python -m benchmark compare` says why for the others.",
        _elsewhere(data.elsewhere),
    )
    style.settle(figure)
    _name(places[0], data.panels[0])
    return figure


def compared(lines: Sequence[Line], panel: Panel) -> list[Point]:
    """The panel's cells that both sides have a number for."""
    return [
        Point(line.printed.mean, ours, line.verdict.word, line.verdict.difference, _title(line))
        for line in lines
        if line.printed.metric in panel.metrics
        and line.printed.mean is not None
        and line.verdict.word in LOOKS
        # A cell that the audit doubts keeps its word even where our runs are not complete.
        and line.verdict.difference is not None
        # Our number in the edition that the cell is judged by.
        and (ours := line.ours[line.edition].mean) is not None
    ]


def _count(axes: Axes, text: str) -> None:
    """How many of the panel's cells are drawn, between its title and its points."""
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
    words = ", ".join(f"{number} {word}" for word, number in counts.items())
    return f"Verdicts on cells without a point (a number is missing, or settings were counted): {words}."


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
    return f"{row.label or style.label(line.printed.method)}, {line.printed.dataset}"


def _legend(figure: Figure, points: Sequence[Point]) -> None:
    handles, words = [], []
    for word, look in LOOKS.items():
        number = sum(point.word == word for point in points)
        handles.append(
            Line2D([], [], marker=look.marker, ms=look.size + 0.5, ls="", color=look.colour)
        )
        words.append(f"{word} ({number})")
    figure.legend(handles, words, loc="outside upper left", ncols=len(words))
