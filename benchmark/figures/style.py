"""One look for all figures: sizes, colours, markers, and files that are the same every time.

Drawn without pyplot, so that nothing depends on a display or on what was drawn before.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import NullLocator

from benchmark.files import write_atomic

ONE_COLUMN, TWO_COLUMNS = 3.25, 6.75
"""Widths in inches, as the paper's columns."""
TEXT, SMALL = 7.5, 6.5
"""Points at print size; nothing is smaller than SMALL."""
DPI = 300
FIXED = "\N{NO-BREAK SPACE}"
SHORTEST = 0.25
"""Of the width: the last line of a note that has several."""

# Okabe and Ito's colours, which people with any common colour blindness can tell apart. Their
# yellow is left out: it vanishes on white paper.
BLACK, GREY = "#000000", "#7f7f7f"
ORANGE, SKY, GREEN = "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
WINE, OLIVE = "#882255", "#8a8a00"
"""After Paul Tol: nine networks share a panel of curves, more than Okabe and Ito have colours."""
PALE = "#d9d9d9"
"""Grids, reference lines and everything that must not draw attention."""

RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
    "font.size": TEXT,
    "axes.titlesize": TEXT,
    "axes.labelsize": TEXT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "legend.handletextpad": 0.5,
    "legend.columnspacing": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": PALE,
    "grid.linewidth": 0.4,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 5,
    "patch.linewidth": 0.6,
    "figure.dpi": 100,
    "savefig.dpi": DPI,
    "svg.fonttype": "path",  # looks the same on machines without the font
    "svg.hashsalt": "protogate-benchmark",  # else the names inside the file are random
}


@contextmanager
def applied() -> Iterator[None]:
    """Matplotlib's own defaults with ours on top; a user's matplotlibrc has no say."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        yield


# Methods -----------------------------------------------------------------------------------------


Dash = str | tuple[float, tuple[float, ...]]
DASHED, DOTTED, MIXED = (0, (4, 1.4)), (0, (1, 1.1)), (0, (4, 1.2, 1, 1.2))


@dataclass(frozen=True)
class Look:
    """How a method is drawn, in every figure."""

    colour: str
    marker: str
    size: float = 5.0
    dash: Dash = "-"
    """Of its lines, where no marker tells it from others."""


# The marker tells the family (square: selects none, triangle: global, circle: local), the colour
# the method within it. Vermilion and the star are ProtoGate's alone. The networks, which are drawn
# as lines too, have each a colour of their own, and blues and greens differ in their dashes.
LOOKS = {
    "ridge": Look(BLUE, "s"),
    "svm": Look(ORANGE, "s"),
    "knn": Look(GREEN, "s"),
    "mlp": Look(WINE, "s", dash=MIXED),
    "lasso": Look(BLUE, "^", 5.5),
    "rf": Look(GREEN, "^", 5.5),
    "xgboost": Look(ORANGE, "^", 5.5),
    "catboost": Look(PURPLE, "^", 5.5),
    "lightgbm": Look(SKY, "^", 5.5),
    "stg": Look(OLIVE, "^", 5.5, DASHED),
    "tabnet": Look(BLACK, "o", 5.5),
    "l2x": Look(ORANGE, "o", 5.5, MIXED),
    "invase": Look(PURPLE, "o", 5.5, DOTTED),
    "realx": Look(GREEN, "o", 5.5, MIXED),
    "lspin": Look(BLUE, "o", 5.5),
    "llspin": Look(SKY, "o", 5.5, DASHED),
    "protogate": Look(VERMILION, "*", 9),
    "protogate-global": Look(BLUE, "<", 5.5),
    "protogate-local": Look(GREEN, ">", 5.5),
}
OTHER = Look(GREY, "X", 5.5)


def look(method: str) -> Look:
    """A method's colour and marker; grey crosses for models of one's own."""
    return LOOKS.get(method, OTHER)


DATASETS = {
    "colon": Look(WINE, "o"),
    "lung": Look(BLUE, "s"),
    "meta-dr": Look(GREEN, "^", 5.5),
    "meta-pam": Look(PURPLE, "v", 5.5),
    "prostate": Look(ORANGE, "D", 4.5),
    "tcga-2y": Look(SKY, "P", 5.5),
    "toxicity": Look(BLACK, "X", 5.5),
}
"""The looks of the paper's datasets, where they and not the methods are told apart; vermilion stays
ProtoGate's."""


# Figures -----------------------------------------------------------------------------------------


def figure(width: float = TWO_COLUMNS, height: float = 2.4) -> Figure:
    """An empty figure that arranges its parts by itself."""
    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)  # else every measured text would make a canvas of its own
    return made


def panel(axes: Axes, letter: str, title: str = "") -> None:
    """A panel's letter and title, flush left above it."""
    # The words of one line are told apart by weight, which mathtext can do within a text.
    axes.set_title(rf"$\mathbf{{{letter}}}$  {title}", loc="left")


def note(figure: Figure, *sentences: str) -> None:
    """Small grey lines below the figure: what is missing and how to get it."""
    width = int(figure.get_size_inches()[0] * 72 / (0.54 * SMALL))
    lines = [line for sentence in sentences for line in wrapped(sentence, width)]
    if lines:
        text = "\n".join(lines).replace("$", r"\$")
        figure.supxlabel(text, x=0.005, ha="left", fontsize=SMALL, color=GREY)


def wrapped(sentence: str, width: int) -> list[str]:
    """A sentence in lines: commands stay whole where they fit, and no last line has a word alone."""
    whole = re.sub(
        "`[^`]*`",
        lambda found: found[0].replace(" ", FIXED) if len(found[0]) < width else found[0],
        sentence,
    )
    lines = _lines(whole, width)
    for narrower in range(width, width // 2, -1):
        tried = _lines(whole, narrower)
        if len(tried) > len(lines):
            break
        if len(lines) < 2 or len(tried[-1]) > SHORTEST * width:
            return tried
    return lines


def _lines(text: str, width: int) -> list[str]:
    lines = textwrap.wrap(text, width, break_on_hyphens=False)
    return [line.replace(FIXED, " ") for line in lines]


def several(names: list[str], limit: int = 8) -> str:
    """Names in a sentence; beyond the limit only how many more."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


Points = Mapping[str, tuple[float, float]]
"""Method -> its place in a panel."""


def pairs(axes: Axes, theirs: Points, ours: Points) -> None:
    """The paper's points hollow, ours filled, and a line between the two of a method."""
    for method in [method for method in theirs if method in ours]:
        seen = look(method)
        line = {"arrowstyle": "-", "color": seen.colour, "alpha": 0.6, "lw": 0.8}
        # In its colour, so that it can be followed, and not into the hollow marker.
        shrink = {"shrinkA": seen.size / 2, "shrinkB": 0}
        axes.annotate("", ours[method], theirs[method], arrowprops=line | shrink, zorder=1.5)
    # Large ones first: a star would hide a circle, a circle leaves the star's points to be seen.
    for points, hollow in ((theirs, True), (ours, False)):
        for method, (x, y) in points.items():
            seen = look(method)
            axes.plot(
                x, y, seen.marker, ms=seen.size, **face(seen, hollow), zorder=3 - 0.1 * seen.size
            )


def face(seen: Look, hollow: bool) -> dict[str, Any]:
    """The paper's markers are hollow, and hide none below them; ours are filled."""
    if hollow:
        return {"mec": seen.colour, "mfc": "none", "mew": 0.9}
    return {"color": seen.colour, "mec": "white", "mew": 0.4}


def sides() -> tuple[list[Line2D], list[str]]:
    """Handles and words of a legend for `pairs`."""
    hollow = Line2D([], [], marker="o", ls="", color=BLACK, mfc="white", mew=0.9)
    filled = Line2D([], [], marker="o", ls="", color=BLACK)
    return [hollow, filled], ["paper", "ours"]


def legend_above(axes: Axes, handles: Sequence[Artist], words: Sequence[str]) -> None:
    """A legend in the line of the panel's title, where it hides no data."""
    axes.legend(
        handles,
        words,
        ncols=len(words),
        loc="lower right",
        bbox_to_anchor=(1.01, 0.98),
        borderaxespad=0.1,
    )


def log_ticks(axis: Axis, low: float, high: float) -> None:
    """Ticks with plain numbers: powers of ten; where there is at most one, also 2 and 5."""
    powers = [10.0**p for p in range(-6, 9)]
    ticks = [tick for tick in powers if low <= tick <= high]
    if len(ticks) < 2:
        ticks = [x * p for p in powers for x in (1, 2, 5) if low <= x * p <= high]
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_minor_locator(NullLocator())


def say(axes: Axes, row: float, words: str, right: bool = True) -> None:
    """Grey words in a row that would be blank, at one of its ends."""
    axes.text(
        0.98 if right else 0.02,
        row,
        words,
        transform=axes.get_yaxis_transform(),
        ha="right" if right else "left",
        va="center",
        fontsize=SMALL,
        color=GREY,
    )


def stand_out(texts: Iterable[Text], methods: Iterable[str]) -> None:
    """ProtoGate's name among the methods along an axis, as beside its points."""
    for text, method in zip(texts, methods, strict=True):
        if method == "protogate":
            text.set(color=look(method).colour, fontweight="bold")


def settle(figure: Figure) -> None:
    """Arrange the figure for good: what is measured from here on stays true."""
    if isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine):
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        # The solver's last bits depend on where in memory its variables are, and files would differ.
        for axes in figure.axes:
            bounds = axes.get_position(original=True).bounds
            axes.set_position(tuple(round(x, 6) for x in bounds))
            axes.apply_aspect()


# Files -------------------------------------------------------------------------------------------


def save(figure: Figure, name: str, folder: Path) -> list[Path]:
    """Write NAME.png and NAME.svg, byte for byte the same for the same figure."""
    with applied(), matplotlib.rc_context({"figure.constrained_layout.use": False}):
        settle(figure)  # both files show the same arrangement
        # Even an engine that does nothing makes matplotlib draw everything once more per file.
        figure.set_layout_engine(None)
        files = {
            folder / f"{name}.png": _bytes(figure, "png", {"Software": None}),
            folder / f"{name}.svg": _bytes(figure, "svg", {"Date": None, "Creator": None}),
        }
    for path, content in files.items():
        write_atomic(path, content)
    return list(files)


def _bytes(figure: Figure, kind: str, metadata: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata=metadata, facecolor="white")
    return buffer.getvalue()
