"""Figure 7: what the global and the local selection say of each feature, for one sample.

The first training sample of a ProtoGate on colon, as in the paper. A feature is selected globally
if it has a weight above the threshold in the first layer, locally if its gate is open.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from numpy.typing import NDArray

from benchmark.experiments.specimen import Explained, Specimen
from benchmark.figures import specimens, style
from benchmark.runner.records import Store

DATASET = "colon"
SQUARE = np.array([(0.08, 0.08), (0.92, 0.08), (0.92, 0.92), (0.08, 0.92), (0.08, 0.08)])
OUTLINE = [Path.MOVETO, *[Path.LINETO] * 3, Path.CLOSEPOLY]


@dataclass(frozen=True)
class Behaviour:
    """One of the four answers, and its colour: the rare ones, which are used, are the strong ones."""

    name: str
    globally: bool
    locally: bool
    colour: str


BEHAVIOURS = (
    Behaviour("both selected", True, True, style.WINE),
    Behaviour("locally dropped", True, False, "#f6e3b4"),
    Behaviour("locally recovered", False, True, style.BLUE),
    Behaviour("both dropped", False, False, "#ececec"),
)


Shown = tuple[Specimen, Explained, list[str]]


def read(store: Store) -> Shown:
    return specimens.read_explained(store, DATASET)


def draw(data: Shown) -> Figure:
    shown, explained, (made, outdated) = data
    codes = behaviours(explained.globally, shown.masks["train"][0] > 0)
    figure = style.figure(style.TWO_COLUMNS, 2.75)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    _mosaic(left, codes)
    _key(right, codes)
    style.note(figure, f"The first training sample. {made}", outdated)
    return figure


def behaviours(globally: NDArray[np.bool_], locally: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Per feature, the place of its behaviour in BEHAVIOURS."""
    return np.where(globally, np.where(locally, 0, 1), np.where(locally, 2, 3))


def _mosaic(axes: Axes, codes: NDArray[np.int64]) -> None:
    """Every feature as a square, line by line."""
    across = math.ceil(math.sqrt(1.25 * len(codes)))
    down = math.ceil(len(codes) / across)
    for code, behaviour in enumerate(BEHAVIOURS):
        y, x = np.divmod(np.flatnonzero(codes == code), across)
        # One path for all squares of a colour: half the file of a path each.
        corners = np.stack([x, y], axis=1)[:, None, :] + SQUARE
        path = Path(corners.reshape(-1, 2), OUTLINE * len(x))
        axes.add_patch(PathPatch(path, fc=behaviour.colour, ec="none"))
    axes.set_xlim(0, across)
    axes.set_ylim(down, 0)
    axes.set_aspect("equal")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.set_xticks([])
    lines = range(0, down, 10)
    axes.set_yticks([line + 0.5 for line in lines], [f"{line * across + 1:,}" for line in lines])
    axes.tick_params(axis="y", length=0, pad=1)
    axes.set_ylabel("first feature of the line")
    style.panel(axes, "a", f"the {len(codes):,} features of one sample")


def _key(axes: Axes, codes: NDArray[np.int64]) -> None:
    """The four behaviours, how many features show each, and the first that does."""
    style.panel(axes, "b", "what the two selections say of them")
    axes.set_xlim(0, 10)
    axes.set_ylim(len(BEHAVIOURS), -0.6)
    axes.set_axis_off()
    columns = {"global": 7.9, "local": 9.3}
    for word, x in columns.items():
        axes.text(x, -0.3, word, ha="center", va="center")
    for row, behaviour in enumerate(BEHAVIOURS):
        middle = row + 0.5
        axes.add_patch(Rectangle((0, row + 0.14), 0.85, 0.72, fc=behaviour.colour, ec="none"))
        found = np.flatnonzero(codes == row)
        first = f", the first is no. {found[0] + 1:,}" if len(found) else ""
        count = f"{len(found):,} feature{'' if len(found) == 1 else 's'}"
        axes.text(1.2, middle - 0.2, behaviour.name, va="center", fontweight="bold")
        axes.text(1.2, middle + 0.22, count + first, va="center", fontsize=style.SMALL)
        for x, kept in zip(columns.values(), (behaviour.globally, behaviour.locally), strict=True):
            face = style.BLACK if kept else "white"
            axes.plot(x, middle, "o", ms=6, mfc=face, mec=style.BLACK, mew=0.8)
        axes.axhline(row, color=style.PALE, linewidth=0.4)
