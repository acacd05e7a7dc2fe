"""Figure 6: how a ProtoGate on colon comes to its diagnosis of a new patient.

A map of the prototypes, which are the masked training samples, and the first test sample among
them. UMAP keeps neighbours together and not distances, so those that count are listed.
"""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.experiments.specimen import Explained, Specimen
from benchmark.figures import labels, specimens, style
from benchmark.run.records import Store

DATASET = "colon"
NAMES = {"-1": "cancer", "1": "normal"}
"""Alon et al. took 40 tumours and 22 normal tissues, which are the sizes of these classes."""
LOOKS = {"cancer": style.Look(style.ORANGE, "s", 4.2), "normal": style.Look(style.BLUE, "o", 4.6)}
QUERY = 0
CORNERS = ((0, 1), (1, 0), (0, 0), (1, 1))


Shown = tuple[Specimen, Explained, list[str]]


def read(store: Store) -> Shown:
    return specimens.read_explained(store, DATASET)


def draw(data: Shown) -> Figure:
    shown, explained, sentences = data
    names = [NAMES[name] for name in shown.classes]
    figure = style.figure(style.ONE_COLUMN, 3.0)
    axes = figure.subplots()
    axes.set_xlabel("UMAP 1")
    axes.set_ylabel("UMAP 2", labelpad=2)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.margins(0.08)
    _prototypes(axes, shown, explained, names)
    _nearest(axes, explained)
    _query(axes, explained, LOOKS[names[explained.predictions[QUERY]]])
    _words(figure, shown, explained, names)
    style.note(figure, *sentences)
    style.settle(figure)
    _numbers(axes, explained)
    return figure


def _prototypes(axes: Axes, shown: Specimen, explained: Explained, names: list[str]) -> None:
    for (x, y), code in zip(explained.map["train"], shown.labels["train"], strict=True):
        look = LOOKS[names[code]]
        axes.plot(x, y, look.marker, ms=look.size, color=look.colour, mec="white", mew=0.4)


def _nearest(axes: Axes, explained: Explained) -> None:
    """Rings around the K nearest, joined to the query."""
    start = explained.map["test"][QUERY]
    for prototype in explained.nearest[QUERY]:
        place = explained.map["train"][prototype]
        axes.plot(*zip(start, place, strict=True), color=style.BLACK, linewidth=0.7, zorder=1.5)
        axes.plot(*place, "o", ms=8, mfc="none", mec=style.BLACK, mew=0.8, zorder=3)


def _numbers(axes: Axes, explained: Explained) -> None:
    """Which of the rings is the nearest, the second and so on."""
    names = [
        labels.Name(x, y, str(number), size=8, weight="bold")
        for number, (x, y) in enumerate(explained.map["train"][explained.nearest[QUERY]], start=1)
    ]
    points = [*explained.map["train"], explained.map["test"][QUERY]]
    labels.place(axes, names, avoid=[(x, y) for x, y in points])


def _query(axes: Axes, explained: Explained, look: style.Look) -> None:
    place = explained.map["test"][QUERY]
    axes.plot(*place, "*", ms=13, mfc=look.colour, mec=style.BLACK, mew=0.9, zorder=4)


def _words(figure: Figure, shown: Specimen, explained: Explained, names: list[str]) -> None:
    """Who is who, and the votes with their distances."""
    handles = [
        Line2D([], [], marker=LOOKS[name].marker, ls="", ms=LOOKS[name].size, color=LOOKS[name].colour)
        for name in names
    ]  # fmt: skip
    handles.append(Line2D([], [], marker="*", ls="", ms=9, mfc="white", mec=style.BLACK, mew=0.9))
    words = [*(f"{name} prototype" for name in names), "new patient"]
    figure.legend(handles, words, loc="outside upper left", ncols=3, columnspacing=0.8)
    nearest = explained.nearest[QUERY]
    lines = [
        f"{number}  {names[shown.labels['train'][prototype]]}, distance {distance:.2f}"
        for number, (prototype, distance) in enumerate(
            zip(nearest, explained.distances[QUERY], strict=True), start=1
        )
    ]
    predicted = names[explained.predictions[QUERY]]
    true = names[shown.labels["test"][QUERY]]
    lines.append(f"predicted {predicted}; in truth {true}")
    (axes,) = figure.axes
    (x, y), crowd = _free_corner(explained)
    if crowd:  # no corner is free: make room below the map
        low, high = axes.get_ylim()
        axes.set_ylim(low - 0.36 * (high - low), high)
        x, y = 0, 0
    axes.text(
        0.02 + 0.96 * x, 0.02 + 0.96 * y, "\n".join(lines), transform=axes.transAxes,
        ha="right" if x else "left", va="top" if y else "bottom", ma="left",
        fontsize=style.SMALL, linespacing=1.35,
    )  # fmt: skip


def _free_corner(explained: Explained) -> tuple[tuple[int, int], int]:
    """The corner with the fewest points, and how many; (0, 1) is the upper left."""
    drawn = np.vstack([explained.map["train"], explained.map["test"][QUERY]])
    low, high = drawn.min(axis=0), drawn.max(axis=0)
    places = (drawn - low) / np.maximum(high - low, 1e-9)

    def crowd(corner: tuple[int, int]) -> int:
        return int((np.abs(places - corner) < (0.62, 0.3)).all(axis=1).sum())

    best = min(CORNERS, key=crowd)
    return best, crowd(best)
