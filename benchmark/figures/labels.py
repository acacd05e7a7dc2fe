"""Names beside points, placed so that they hide neither points nor one another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from benchmark.figures import style
from benchmark.figures.style import BLACK, SMALL

Point = tuple[float, float]

# Right, left, above, below and the corners between, from near to far: the first that fits wins.
# The far ones get a line to their point.
DIRECTIONS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))
NEAR, FAR = (1.8, 4.0), (8.0, 13.0, 19.0)
"""Distances from the marker in points of the page."""


class Box(NamedTuple):
    """A rectangle of the page, in dots; matplotlib's own costs most of the time."""

    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True)
class Name:
    """A word for the point at (x, y) of the axes."""

    x: float
    y: float
    text: str
    size: float = 5.5
    """Of the point's marker."""
    colour: str = BLACK
    weight: str = "normal"


def of_method(method: str, x: float, y: float) -> Name:
    """A method's name at its point; ProtoGate's stands out."""
    look, own = style.look(method), method == "protogate"
    colour, weight = (look.colour, "bold") if own else (BLACK, "normal")
    return Name(x, y, style.label(method), look.size, colour, weight)


def place(
    axes: Axes,
    names: Sequence[Name],
    avoid: Iterable[Point] = (),
    lines: Iterable[tuple[Point, Point]] = (),
) -> list[Annotation]:
    """Write the names; `avoid` are further points that no name may cover, `lines` their joints.

    Needs final limits and a settled figure.
    """
    assert isinstance(axes.figure, Figure)
    scale = axes.figure.dpi / 72
    points = [(n.x, n.y) for n in names] + list(avoid)
    taken = [_square(_on_page(axes, point), 3.2 * scale) for point in points]
    for start, end in lines:
        taken += _along(_on_page(axes, start), _on_page(axes, end), scale)
    made = []
    for name in names:
        text = axes.annotate(
            name.text,
            (name.x, name.y),
            xytext=(0, 0),
            va="bottom",
            textcoords="offset points",
            fontsize=SMALL,
            color=name.colour,
            fontweight=name.weight,
            annotation_clip=False,
        )
        text.set_in_layout(False)
        extent = text.get_window_extent()
        inside = Box(*axes.bbox.extents)
        centre = _on_page(axes, (name.x, name.y))
        offset, box, distance = min(
            _places(centre, (extent.width, extent.height), name.size / 2 * scale, scale),
            key=lambda place: _cost(
                place[1], _leader(centre, place[1], place[2], scale), place[2], taken, inside
            ),
        )
        text.set_position((offset[0] / scale, offset[1] / scale))
        taken += [box, *_leader(centre, box, distance, scale)]
        made.append(text)
        if distance in FAR:
            _line(axes, name, centre, box)
    return made


def _places(
    centre: Point, size: tuple[float, float], reach: float, scale: float
) -> Iterable[tuple[Point, Box, float]]:
    """Offsets of a text's lower left corner, the box it would fill, and its distance."""
    width, height = size
    for distance, (dx, dy) in itertools.product(NEAR + FAR, DIRECTIONS):
        step = (reach + distance * scale) * (0.75 if dx and dy else 1)
        left = {1: step, 0: -width / 2, -1: -step - width}[dx]
        low = {1: step - 0.15 * height, 0: -0.5 * height, -1: -step - 0.85 * height}[dy]
        x, y = centre[0] + left, centre[1] + low
        yield (left, low), Box(x, y, x + width, y + height), distance


def _cost(
    box: Box, leader: Sequence[Box], distance: float, taken: Sequence[Box], inside: Box
) -> float:
    """Area covered by the name and its line, mostly; where nothing is covered the nearest."""
    covered = sum(_overlap(part, other) for part in (box, *leader) for other in taken)
    outside = _overlap(box, box) - _overlap(box, inside)
    return 100 * round(covered + 3 * outside) + distance


def _overlap(a: Box, b: Box) -> float:
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return width * height if width > 0 and height > 0 else 0.0


def _on_page(axes: Axes, point: Point) -> Point:
    """Where a point of the axes is, in dots."""
    x, y = axes.transData.transform(point)
    return float(x), float(y)


def _square(centre: Point, half: float) -> Box:
    x, y = centre
    return Box(x - half, y - half, x + half, y + half)


def _along(start: Point, end: Point, scale: float) -> list[Box]:
    """Small squares on a line, near enough to one another that no letter fits between."""
    pieces = 1 + int(math.dist(start, end) / (3 * scale))
    steps = (end[0] - start[0]) / pieces, (end[1] - start[1]) / pieces
    places = [(start[0] + i * steps[0], start[1] + i * steps[1]) for i in range(pieces + 1)]
    return [_square(place, 0.8 * scale) for place in places]


def _leader(centre: Point, box: Box, distance: float, scale: float) -> list[Box]:
    """The line from a far name to its point, as far as it is outside of the marker."""
    if distance not in FAR:
        return []
    marker = _square(centre, 4.5 * scale)
    return [b for b in _along(centre, _nearest(centre, box), scale) if not _overlap(b, marker)]


def _nearest(point: Point, box: Box) -> Point:
    """The place of a box that is nearest to a point."""
    return min(max(point[0], box.x0), box.x1), min(max(point[1], box.y0), box.y1)


def _line(axes: Axes, name: Name, centre: Point, box: Box) -> None:
    """From a far name to its point."""
    x, y = _nearest(centre, box)
    if math.hypot(x - centre[0], y - centre[1]) < 1:
        return
    near = axes.transData.inverted().transform((x, y))
    axes.plot([name.x, near[0]], [name.y, near[1]], color=name.colour, linewidth=0.4, zorder=1.5)
