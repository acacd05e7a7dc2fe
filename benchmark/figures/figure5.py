"""Figure 5: KNN and SVM with each feature selector, over all datasets, beside the paper's Table 23.

On each dataset 0 is the worst and 100 the best; shown is the mean over datasets. The worst and the
best of what, the paper does not say: its numbers allow single runs only, so that reading is
compared, and the one from the selectors' means is a tick beside it. Until a dataset has all selectors
complete, the paper's numbers are shown alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark import paper
from benchmark.figures import selectors, style
from benchmark.runner.masked import SIMPLE
from benchmark.runner.records import Store
from benchmark.tables.table import Pair
from benchmark.tables.transferability import SELECTORS, Transferability

ROOM = 78
"""Per cent: where words at the right end begin."""


@dataclass(frozen=True)
class Shown:
    """ADTM by simple model and selector: printed, from single runs, from the selectors' means."""

    points: dict[tuple[str, str], tuple[Pair | None, Pair | None, Pair | None]]
    sentences: list[str]


def read(store: Store) -> Shown:
    found = selectors.find(store)
    readings = {reading: found.adtm(reading) for reading in ("pooled", "means")}
    points = {
        place: (adtm.printed, adtm.ours, readings["means"][place].ours)
        for place, adtm in readings["pooled"].items()
    }
    return Shown(points, [_over(found), *selectors.missing(found)])


def draw(shown: Shown) -> Figure:
    sentences = shown.sentences
    figure = style.figure(style.TWO_COLUMNS, 1.9 + 0.13 * len(sentences))
    panels = figure.subplots(1, len(SIMPLE), sharey=True)
    for axes, letter, simple in zip(panels, "abc", SIMPLE, strict=True):
        style.panel(axes, letter, selectors.TITLES[simple])
        _axes(axes)
        for row, selector in enumerate(SELECTORS):
            _row(axes, row, selector, *shown.points[simple, selector])
    style.stand_out(panels[0].get_yticklabels(), SELECTORS)
    panels[1].set_xlabel(
        "normalised balanced accuracy (%), mean ± standard deviation over datasets"
    )
    _legend(figure)
    style.note(figure, *sentences)
    return figure


def _axes(axes: Axes) -> None:
    axes.set_xlim(-4, 104)
    axes.set_ylim(len(SELECTORS) - 0.45, -0.55)
    axes.set_yticks(range(len(SELECTORS)), [selectors.label(s) for s in SELECTORS])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    for row in range(1, len(SELECTORS)):
        axes.axhline(row - 0.5, color=style.PALE, linewidth=0.3, zorder=0.5)


def _row(
    axes: Axes,
    row: int,
    selector: str,
    printed: Pair | None,
    ours: Pair | None,
    means: Pair | None,
) -> None:
    look = selectors.look(selector)
    _point(axes, row - 0.17, look, printed, hollow=True)
    _point(axes, row + 0.17, look, ours, hollow=False)
    # Only one SVM is printed, the polynomial one.
    reasons = ["not printed"] * (printed is None) + ["not run"] * (ours is None)
    if reasons:
        right = printed is None or printed[0] + (printed[1] or 0) < ROOM
        style.say(axes, row if printed is None else row + 0.17, ", ".join(reasons), right)
    if means:
        axes.plot(means[0], row + 0.17, "|", ms=7, mew=1.2, color=look.colour)


def _point(axes: Axes, y: float, look: style.Look, value: Pair | None, hollow: bool) -> None:
    if value is None:
        return
    mean, std = value
    if std:
        axes.plot((mean - std, mean + std), (y, y), color=look.colour, linewidth=0.7)
    face = {"mfc": "white", "mew": 0.8} if hollow else {"mew": 0.0}
    axes.plot(mean, y, look.marker, ms=0.85 * look.size, color=look.colour, **face)


def _legend(figure: Figure) -> None:
    handles, _ = style.sides()
    handles.append(Line2D([], [], marker="|", ls="", ms=7, mew=1.2, color=style.BLACK))
    figure.legend(
        handles,
        ["paper", "ours, from single runs", "ours, from the selectors' means"],
        loc="outside upper center",
        ncols=3,
    )


def _over(found: Transferability) -> str:
    """Which datasets our averages are over, where not over all of the paper's."""
    over = {simple: found.comparable(simple) for simple in SIMPLE}
    if not any(over.values()):
        return (
            "Ours: not run, since no dataset has all four selectors complete, which ADTM compares."
        )
    if all(datasets == paper.DATASETS for datasets in over.values()):
        return ""
    same = len(set(over.values())) == 1
    parts = [
        f"{'' if same else selectors.TITLES[simple] + ': '}{', '.join(datasets) or 'none'}"
        for simple, datasets in (list(over.items())[:1] if same else over.items())
    ]
    return f"Ours over {'; '.join(parts)}; the paper's over {len(paper.DATASETS)} datasets."
