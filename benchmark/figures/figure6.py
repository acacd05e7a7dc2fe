"""Figure 6: how a ProtoGate on colon comes to its diagnosis of a new patient.

A map of the prototypes, which are the masked training samples, and the first test sample among
them; beside it the surroundings of that sample alone, where neighbours lie side by side. UMAP keeps
neighbours together and not distances, so those that count are listed.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from benchmark.experiments.specimen import Explained, Specimen
from benchmark.figures import labels, specimens, style
from benchmark.runner.records import Store

DATASET = "colon"
LOOKS = {"cancer": style.Look(style.ORANGE, "s", 4.2), "normal": style.Look(style.BLUE, "o", 4.6)}
QUERY = 0
ROOM = 0.25
"""Around the nearest prototypes in the second map, as a share of their extent."""

Shown = tuple[Specimen, Explained, list[str]]


def read(store: Store) -> Shown:
    return specimens.read_explained(store, DATASET)


def draw(data: Shown) -> Figure:
    shown, explained, sentences = data
    names = specimens.classes(shown)
    figure = style.figure(style.TWO_COLUMNS, 2.9)
    whole, near = figure.subplots(1, 2)
    for axes, letter, title in (
        (whole, "a", "all prototypes"),
        (near, "b", "the nearest prototypes of the new patient"),
    ):
        style.panel(axes, letter, title)
        axes.set_xlabel("UMAP 1")
        axes.set_ylabel("UMAP 2", labelpad=2)
        axes.set_xticks([])
        axes.set_yticks([])
        _prototypes(axes, shown, explained, names)
        _query(axes, explained, LOOKS[names[explained.predictions[QUERY]]])
    whole.margins(0.08)
    _enlarge(whole, near, explained)
    _nearest(near, explained)
    _legend(figure, names)
    style.note(figure, _votes(shown, explained, names), *sentences)
    style.settle(figure)
    _numbers(near, explained)
    return figure


def _prototypes(axes: Axes, shown: Specimen, explained: Explained, names: list[str]) -> None:
    for (x, y), code in zip(explained.map["train"], shown.labels["train"], strict=True):
        look = LOOKS[names[code]]
        axes.plot(x, y, look.marker, ms=look.size, color=look.colour, mec="white", mew=0.4)


def _query(axes: Axes, explained: Explained, look: style.Look) -> None:
    """Below the prototypes, which it would hide."""
    place = explained.map["test"][QUERY]
    axes.plot(*place, "*", ms=11, mfc=look.colour, mec=style.BLACK, mew=0.9, zorder=1.8)


def _enlarge(whole: Axes, near: Axes, explained: Explained) -> None:
    """Limit one panel to the query and its nearest, and frame that part in the other."""
    places = np.vstack(
        [explained.map["train"][explained.nearest[QUERY]], explained.map["test"][QUERY]]
    )
    low, high = places.min(axis=0), places.max(axis=0)
    room = np.maximum(ROOM * (high - low).max(), 0.05)
    (x0, y0), (x1, y1) = low - room, high + room
    near.set(xlim=(x0, x1), ylim=(y0, y1))
    near.spines[:].set(visible=True, color=style.GREY)
    whole.add_patch(
        Rectangle((x0, y0), x1 - x0, y1 - y0, fc="none", ec=style.GREY, linewidth=0.7, zorder=4)
    )
    whole.annotate("b", (x1, y1), (2, 0), textcoords="offset points", fontweight="bold", va="top")


def _nearest(axes: Axes, explained: Explained) -> None:
    """Rings around the K nearest, joined to the query."""
    start = explained.map["test"][QUERY]
    for prototype in explained.nearest[QUERY]:
        place = explained.map["train"][prototype]
        axes.plot(*zip(start, place, strict=True), color=style.BLACK, linewidth=0.7, zorder=1.5)
        axes.plot(*place, "o", ms=8, mfc="none", mec=style.BLACK, mew=0.8, zorder=3)


def _numbers(axes: Axes, explained: Explained) -> None:
    """Which of the rings is the nearest, the second and so on."""
    near = explained.map["train"][explained.nearest[QUERY]]
    names = [
        labels.Name(x, y, str(number), size=8, weight="bold")
        for number, (x, y) in enumerate(near, start=1)
    ]
    star = tuple(explained.map["test"][QUERY])
    points = [(x, y) for x, y in explained.map["train"]]
    labels.place(axes, names, [*points, star], [(star, (x, y)) for x, y in near])


def _legend(figure: Figure, names: list[str]) -> None:
    handles = [
        Line2D([], [], marker=look.marker, ls="", ms=look.size, color=look.colour)
        for look in map(LOOKS.__getitem__, names)
    ]
    handles.append(Line2D([], [], marker="*", ls="", ms=9, mfc="white", mec=style.BLACK, mew=0.9))
    words = [*(f"{name} prototype" for name in names), "new patient, in the predicted colour"]
    figure.legend(handles, words, loc="outside upper left", ncols=3)


def _votes(shown: Specimen, explained: Explained, names: list[str]) -> str:
    """Who is nearest, how near, and what follows from it."""
    pairs = zip(explained.nearest[QUERY], explained.distances[QUERY], strict=True)
    votes = [
        f"{number} {names[shown.labels['train'][prototype]]} ({distance:.2f})"
        for number, (prototype, distance) in enumerate(pairs, start=1)
    ]
    predicted = names[explained.predictions[QUERY]]
    true = names[shown.labels["test"][QUERY]]
    return f"Nearest, with distance: {', '.join(votes)}; predicted {predicted}, in truth {true}."
