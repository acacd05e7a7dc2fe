"""Figure 11: what a feature selector adds to the accuracy of KNN and SVM, dataset by dataset.

The difference is taken split by split. Lines are its 95 % interval with Nadeau and Bengio's correction,
since the 25 splits share rows, as in the figure of ProtoGate's lead. The paper prints no values of this
figure.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark import paper
from benchmark.figures import selectors, style
from benchmark.runner.masked import SIMPLE
from benchmark.runner.records import Store
from benchmark.tables import statistics as stats
from benchmark.tables.transferability import SELECTORS

SHOWN = SELECTORS[1:]
STEP = 0.25
"""Between the selectors of a row."""


@dataclass(frozen=True)
class Shown:
    """Mean gains with half their intervals, by simple model, selector and dataset."""

    gains: dict[tuple[str, str, str], tuple[float, float]]
    without: dict[str, str]
    """Dataset -> why it has no gain at all."""
    sentences: list[str]

    @property
    def selectors(self) -> list[str]:
        """Those with a gain to draw."""
        return [s for s in SHOWN if any(s == selector for _, selector, _ in self.gains)]


def read(store: Store) -> Shown:
    found, gains = selectors.read(store), {}
    for place in itertools.product(SIMPLE, SHOWN, paper.DATASETS):
        gain = found.gain(*place)
        if gain is not None:
            mean, std = stats.mean_std(gain)
            gains[place] = mean, stats.half_interval(std or 0.0, len(gain))
    away = {c.dataset for c in found.gaps if c.gap and c.gap.word == "data unavailable"}
    known = {dataset for _, _, dataset in gains}
    without = {d: "no data" if d in away else "not run" for d in paper.DATASETS if d not in known}
    return Shown(gains, without, selectors.missing(found))


def draw(shown: Shown) -> Figure:
    figure = style.figure(style.TWO_COLUMNS, 3.0)
    panels = figure.subplots(1, len(SIMPLE), sharey=True, sharex=True)
    for axes, letter, simple in zip(panels, "abc", SIMPLE, strict=True):
        style.panel(axes, letter, selectors.TITLES[simple])
        _axes(axes)
        for row, dataset in enumerate(paper.DATASETS):
            if not _row(axes, row, shown, simple, dataset):
                style.say(axes, row, shown.without.get(dataset, "not run"))
    panels[1].set_xlabel("gain over the same model without selector (points of balanced accuracy)")
    handles = [
        Line2D([], [], marker=look.marker, ms=look.size, color=look.colour, linewidth=1.2)
        for look in map(selectors.look, shown.selectors)
    ]
    words = [selectors.label(selector) for selector in shown.selectors]
    figure.legend(handles, words, loc="outside upper center", ncols=len(words))
    style.note(
        figure,
        "Lines: 95 % intervals of the paired runs, corrected for the rows that they share.",
        *shown.sentences,
    )
    return figure


def _axes(axes: Axes) -> None:
    axes.set_ylim(len(paper.DATASETS) - 0.45, -0.55)
    axes.set_yticks(range(len(paper.DATASETS)), paper.DATASETS)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.axvline(0, color=style.BLACK, linewidth=0.6)
    for row in range(1, len(paper.DATASETS)):
        axes.axhline(row - 0.5, color=style.PALE, linewidth=0.3, zorder=0.5)


def _row(axes: Axes, row: int, shown: Shown, simple: str, dataset: str) -> bool:
    """Draw a dataset's gains; False if there are none."""
    drawn = False
    for i, selector in enumerate(shown.selectors):
        if (simple, selector, dataset) not in shown.gains:
            continue
        mean, half = shown.gains[simple, selector, dataset]
        look = selectors.look(selector)
        y = row + STEP * (i - (len(shown.selectors) - 1) / 2)
        axes.plot((mean - half, mean + half), (y, y), color=look.colour, linewidth=1.2)
        axes.plot(
            mean, y, look.marker, ms=0.85 * look.size, color=look.colour, mec="white", mew=0.3
        )
        drawn = True
    return drawn
