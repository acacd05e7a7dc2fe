"""Figure 5: KNN and SVM with each feature selector, over all datasets, beside the paper's Table 23.

On each dataset 0 is the worst and 100 the best; shown is the mean over datasets. The worst and the
best of what, the paper does not say: its numbers allow single runs only, so that reading is
compared, and the one from the selectors' means is a tick beside it. Until a dataset has all selectors
complete, the paper's numbers are shown alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    complete: dict[tuple[str, str], int]
    """On how many datasets a simple model is complete with a selector."""
    sentences: list[str]

    @property
    def simple(self) -> list[str]:
        """The simple models that one side at least has a point of."""
        return [s for s in SIMPLE if any(any(self.points[s, row]) for row in SELECTORS)]


def read(store: Store) -> Shown:
    found = selectors.find(store)
    readings = {reading: found.adtm(reading) for reading in ("pooled", "means")}
    points = {
        place: (adtm.printed, adtm.ours, readings["means"][place].ours)
        for place, adtm in readings["pooled"].items()
    }
    complete = {
        (simple, selector): sum(found.cells[simple, selector, d].complete for d in found.datasets)
        for simple, selector in points
    }
    sentences = [_over(found), _absent(points), *selectors.missing(found)]
    return Shown(points, complete, [sentence for sentence in sentences if sentence])


def draw(shown: Shown) -> Figure:
    sentences = shown.sentences
    figure = style.figure(style.TWO_COLUMNS, 1.9 + 0.13 * len(sentences))
    panels = figure.subplots(1, len(shown.simple), sharey=True, squeeze=False)[0]
    for axes, letter, simple in zip(panels, "abc", shown.simple, strict=False):
        # Only one SVM is printed, the polynomial one.
        blank = not any(shown.points[simple, selector][0] for selector in SELECTORS)
        style.panel(axes, letter, selectors.TITLES[simple] + ", not printed" * blank)
        _axes(axes)
        for row, selector in enumerate(SELECTORS):
            place = simple, selector
            _row(axes, row, selector, *shown.points[place], shown.complete[place])
        axes.set_xlabel("normalised balanced accuracy (%)")
    style.stand_out(panels[0].get_yticklabels(), SELECTORS)
    _legend(figure, shown)
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
    complete: int,
) -> None:
    look = selectors.look(selector)
    _point(axes, row - 0.17, look, printed, hollow=True)
    _point(axes, row + 0.17, look, ours, hollow=False)
    if ours is None:
        run = f"run on {complete} of {len(paper.DATASETS)} datasets" if complete else "not run"
        right = printed is None or printed[0] + (printed[1] or 0) < ROOM
        style.say(axes, row + 0.17, run, right)
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


def _legend(figure: Figure, shown: Shown) -> None:
    """Of the marks that are drawn."""
    handles, _ = style.sides()
    handles.append(Line2D([], [], marker="|", ls="", ms=7, mew=1.2, color=style.BLACK))
    words = ["paper", "ours, from single runs", "ours, from the selectors' means"]
    drawn = [any(values) for values in zip(*shown.points.values(), strict=True)]
    handles = [handle for handle, there in zip(handles, drawn, strict=True) if there]
    words = [word for word, there in zip(words, drawn, strict=True) if there]
    handles.append(Line2D([], [], color=style.BLACK, linewidth=0.7))
    words.append("± standard deviation over datasets")
    figure.legend(handles, words, loc="outside upper center", ncols=len(words))


def _absent(points: Mapping[tuple[str, str], Sequence[Pair | None]]) -> str:
    """On simple models without a panel."""
    drawn = {simple for (simple, _), values in points.items() if any(values)}
    absent = [selectors.TITLES[simple] for simple in SIMPLE if simple not in drawn]
    return (
        f"Without a panel, since it is not printed and ours is not compared: {', '.join(absent)}."
        if absent
        else ""
    )


def _over(found: Transferability) -> str:
    """Which datasets our averages are over, where not over all of the paper's."""
    over = {simple: found.comparable(simple) for simple in SIMPLE}
    if not any(over.values()):
        nowhere = [
            selectors.label(selector)
            for selector in SELECTORS
            if not any(found.cells[s, selector, d].complete for s in SIMPLE for d in found.datasets)
        ]
        where = f" ({', '.join(nowhere)}: on none)" if nowhere else ""
        return f"Ours: not compared yet, since no dataset has all four selectors complete{where}."
    if all(datasets == paper.DATASETS for datasets in over.values()):
        return ""
    same = len(set(over.values())) == 1
    parts = [
        f"{'' if same else selectors.TITLES[simple] + ': '}{', '.join(datasets) or 'none'}"
        for simple, datasets in (list(over.items())[:1] if same else over.items())
    ]
    return f"Ours over {'; '.join(parts)}; the paper's over {len(paper.DATASETS)} datasets."
