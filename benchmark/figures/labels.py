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
from benchmark.figures.style import BLACK, GREY, SMALL
from benchmark.protocol import registry

Point = tuple[float, float]

# Right, left, above, below and the corners between, from near to far: the first that fits wins.
# The far ones get a line to their point. A half: the word begins or ends above or below the point.
DIRECTIONS = (
    *((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)),
    *((0.5, 1), (0.5, -1), (-0.5, 1), (-0.5, -1)),
)
NEAR, FAR = (1.8, 4.0), (8.0, 13.0, 19.0, 27.0, 36.0)
"""Distances from the marker in points of the page."""
LINE = 6
"""How much worse lines are than words: one through a word covers little, and spoils it all."""
ROUNDS = 4
"""The first name is placed before there are others to mind, so it is placed again."""


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
    return Name(x, y, registry.label(method), look.size, colour, weight)


class _Place(NamedTuple):
    """Where a name could be written."""

    offset: Point
    """Of the text's lower left corner from the point."""
    box: Box
    leader: list[Box]
    """The line to the point, where the name is far from it."""
    hull: Box
    """Around both: what is outside of it is in nobody's way, as most things are."""
    distance: float


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
    # A star's points are thin: names may come nearer than its size says.
    taken = [_square(_on_page(axes, (n.x, n.y)), min(0.6 * n.size, 4.5) * scale) for n in names]
    taken += [_square(_on_page(axes, point), 3.2 * scale) for point in avoid]
    for start, end in lines:
        taken += _along(_on_page(axes, start), _on_page(axes, end), scale)
    made = [_written(axes, name) for name in names]
    centres = [_on_page(axes, (name.x, name.y)) for name in names]
    candidates = [
        list(_places(centre, text, name.size / 2 * scale, scale))
        for name, text, centre in zip(names, made, centres, strict=True)
    ]
    chosen = _arranged(candidates, taken, Box(*axes.bbox.extents))
    for name, text, centre, found in zip(names, made, centres, chosen, strict=True):
        text.set_position((found.offset[0] / scale, found.offset[1] / scale))
        if found.distance in FAR:
            _line(axes, name, centre, found.box, scale)
    return made


def _written(axes: Axes, name: Name) -> Annotation:
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
    return text


def _arranged(
    candidates: Sequence[Sequence[_Place]], taken: Sequence[Box], inside: Box
) -> list[_Place]:
    """A place per name, the better of two tries: who comes first decides what is left for others."""
    alone = [[_cost(place, taken, inside) for place in places] for places in candidates]
    order = list(range(len(candidates)))
    tries = [_settled(candidates, alone, way) for way in (order, order[::-1])]
    _, best = min(tries, key=lambda found: found[0])
    return [candidates[i][best[i]] for i in order]


def _settled(
    candidates: Sequence[Sequence[_Place]], alone: Sequence[Sequence[float]], order: Sequence[int]
) -> tuple[float, dict[int, int]]:
    """Each name at its best beside the names placed before, then again beside all others, until
    none moves. Returns the sum of what the names cost, and which place each has."""
    chosen: dict[int, int] = {}
    total = 0.0
    for _ in range(ROUNDS):
        before, total = dict(chosen), 0.0
        for i in order:
            others = [candidates[j][k] for j, k in chosen.items() if j != i]
            costs = [
                cost + 100 * round(sum(_clash(place, other) for other in others))
                for place, cost in zip(candidates[i], alone[i], strict=True)
            ]
            chosen[i] = costs.index(min(costs))
            total += min(costs)
        if chosen == before:
            break
    return total, chosen


def _places(centre: Point, text: Annotation, reach: float, scale: float) -> Iterable[_Place]:
    """Where a name can be, from near to far."""
    extent = text.get_window_extent()
    width, height = extent.width, extent.height
    for distance, (dx, dy) in itertools.product(NEAR + FAR, DIRECTIONS):
        step = (reach + distance * scale) * (0.75 if abs(dx * dy) == 1 else 1)
        left = {1: step, 0.5: 0, 0: -width / 2, -0.5: -width, -1: -step - width}[dx]
        low = {1: step - 0.15 * height, 0: -0.5 * height, -1: -step - 0.85 * height}[dy]
        x, y = centre[0] + left, centre[1] + low
        box = Box(x, y, x + width, y + height)
        leader = _leader(centre, box, distance, scale)
        hull = Box(*map(min, zip(*((b.x0, b.y0) for b in (box, *leader)), strict=True)),
                   *map(max, zip(*((b.x1, b.y1) for b in (box, *leader)), strict=True)))  # fmt: skip
        yield _Place((left, low), box, leader, hull, distance)


def _cost(place: _Place, taken: Sequence[Box], inside: Box) -> float:
    """Area covered by the name and its line, mostly; where nothing is covered the nearest."""
    outside = _overlap(place.box, place.box) - _overlap(place.box, inside)
    return 100 * round(_covered(place, taken) + 3 * outside) + place.distance


def _covered(place: _Place, taken: Sequence[Box]) -> float:
    """How much of what is there the name and its line would cover."""
    near = [other for other in taken if _touches(place.hull, other)]
    text = sum(_overlap(place.box, other) for other in near)
    return text + LINE * sum(_overlap(part, other) for part in place.leader for other in near)


def _clash(one: _Place, other: _Place) -> float:
    """How much two names are in each other's way."""
    if not _touches(one.hull, other.hull):
        return 0.0
    lines = sum(_overlap(one.box, part) for part in other.leader)
    lines += sum(_overlap(a, b) for a in one.leader for b in (other.box, *other.leader))
    return _overlap(one.box, other.box) + LINE * lines


def _touches(a: Box, b: Box) -> bool:
    return a.x0 < b.x1 and b.x0 < a.x1 and a.y0 < b.y1 and b.y0 < a.y1


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


def _line(axes: Axes, name: Name, centre: Point, box: Box, scale: float) -> None:
    """From a point to its far name, ending before the letters."""
    x, y = _nearest(centre, box)
    length = math.dist(centre, (x, y))
    if length < 1:
        return
    share = max(0.0, 1 - 1.5 * scale / length)
    end = centre[0] + share * (x - centre[0]), centre[1] + share * (y - centre[1])
    near = axes.transData.inverted().transform(end)
    # Grey, else it could be taken for a line between two points.
    axes.plot([name.x, near[0]], [name.y, near[1]], color=GREY, linewidth=0.4, zorder=1.5)
