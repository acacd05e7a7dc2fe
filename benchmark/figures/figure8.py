"""Figure 8: the share of all features that each method selects for a sample, dataset by dataset.

The whiskers are the standard deviation between samples, mean over runs, as the paper's. They go up alone:
downwards many reach zero, which a logarithmic axis has not. A global method selects the same features for
all samples and has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark import paper
from benchmark.figures import numbers, style
from benchmark.protocol import registry
from benchmark.runner.records import Store
from benchmark.tables.recipes import FEATURES
from benchmark.tables.table import Table

TABLE = 10
LEAST = 0.01
"""Per cent: where the axis begins."""
ASIDE = 0.21
"""How far the paper's point is above the middle of a row, and ours below."""
LARGEST = 5.0
"""Points: of a marker, else the two of a row would meet."""

NO_DATA, NOT_RUN = "no data", "not run"

Cell = tuple[float, float]
"""A share and its standard deviation, in per cent of all features."""


@dataclass(frozen=True)
class Shown:
    """Cells by method and dataset."""

    methods: list[str]
    features: dict[str, int]
    """Of each dataset."""
    printed: dict[tuple[str, str], Cell | None]
    ours: dict[tuple[str, str], Cell | None]
    why: dict[tuple[str, str], str]
    """In a word or two, why there is none of ours."""

    def any(self, method: str) -> bool:
        """Whether we have some cell of a method."""
        return any(self.ours[method, dataset] for dataset in paper.DATASETS)

    def run(self, dataset: str) -> str:
        """How many methods we have a cell of on a dataset."""
        number = sum(self.ours[method, dataset] is not None for method in self.methods)
        return f"{number} of {len(self.methods)} methods" if number else self.blank(dataset)

    def blank(self, dataset: str) -> str:
        """Why a dataset has no cell of ours; empty if it has one."""
        if any(self.ours[method, dataset] for method in self.methods):
            return ""
        words = {self.why[method, dataset] for method in self.methods}
        return NO_DATA if words == {NO_DATA} else NOT_RUN


def read(store: Store) -> Shown:
    table = numbers.real(store)
    selecting = [m for m in paper.METHODS if paper.family(m) != "baseline"]
    places = [(method, dataset) for method in selecting for dataset in paper.DATASETS]
    found = Shown(
        selecting,
        {dataset: numbers.dimension(dataset) for dataset in paper.DATASETS},
        {place: _printed(*place) for place in places},
        {place: _ours(table, *place) for place in places},
        {place: _why(table, *place) for place in places},
    )
    named = numbers.methods_of(TABLE)
    return replace(found, methods=[m for m in selecting if m in named or found.any(m)])


def draw(data: Shown) -> Figure:
    shown = data.methods
    figure = style.figure(style.TWO_COLUMNS, 0.9 + 0.36 * len(shown))
    grid = figure.subplots(2, 4, sharex=True, sharey=True).flatten()
    for axes, dataset in zip(grid, paper.DATASETS, strict=False):
        some = not data.blank(dataset)
        title = f"{dataset}, {data.features[dataset]:,} features\nours: {data.run(dataset)}"
        axes.set_title(title, loc="left", fontsize=style.SMALL)
        _axes(axes, shown)
        for row, method in enumerate(shown):
            theirs, ours = data.printed[method, dataset], data.ours[method, dataset]
            _point(axes, row - ASIDE, method, theirs, hollow=True)
            _point(axes, row + ASIDE, method, ours, hollow=False)
            _blank(axes, row, theirs, ours, data.why[method, dataset] if some else "")
    for axes in (grid[0], grid[4]):
        style.stand_out(axes.get_yticklabels(), shown)
    _explain(grid[-1])
    for axes in grid[4:7]:
        axes.set_xlabel("selected features (%)")
    grid[3].tick_params(labelbottom=True)  # nothing is below it
    absent = [m for m in shown if not data.any(m)]
    style.note(
        figure,
        numbers.missing(absent, f"table{TABLE}"),
        _empty(data, NOT_RUN, numbers.command(f"table{TABLE}")),
        _empty(data, NO_DATA, "`python -m benchmark data get {}`"),
    )
    return figure


def _empty(data: Shown, word: str, command: str) -> str:
    """A sentence on the datasets that have no cell of ours for this reason."""
    datasets = [dataset for dataset in paper.DATASETS if data.blank(dataset) == word]
    shown = command.format(" ".join(datasets))
    return f"{word.capitalize()}: {', '.join(datasets)} ({shown})." if datasets else ""


def _printed(method: str, dataset: str) -> Cell | None:
    cell = paper.cell(TABLE, method, dataset, FEATURES.name)
    return _share(cell.mean, cell.std, dataset) if cell else None


def _ours(table: Table, method: str, dataset: str) -> Cell | None:
    value = numbers.mean(table, method, dataset, FEATURES)
    return _share(value, numbers.mean(table, method, dataset, numbers.SPREAD), dataset)


def _why(table: Table, method: str, dataset: str) -> str:
    result = table.results.get((method, dataset, FEATURES.name, numbers.EDITION))
    if result is None or result.gap is None:
        return NOT_RUN
    some = {"incomplete": f"{result.n} of {result.planned} runs", "failed": "failed"}
    return {"data unavailable": NO_DATA, **some}.get(result.gap.word, NOT_RUN)


def _share(value: float | None, spread: float | None, dataset: str) -> Cell | None:
    of = 100 / numbers.dimension(dataset)
    return None if value is None else (value * of, (spread or 0.0) * of)


# Drawing -----------------------------------------------------------------------------------------


def _axes(axes: Axes, methods: Sequence[str]) -> None:
    axes.set_xscale("log")
    axes.set_xlim(LEAST, 150)
    axes.set_xticks([0.01, 0.1, 1, 10, 100], ["", "0.1", "1", "10", "100"])
    axes.minorticks_off()
    axes.set_ylim(len(methods) - 0.4, -0.6)
    axes.set_yticks(range(len(methods)), [registry.label(method) for method in methods])
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    for row in range(1, len(methods)):
        axes.axhline(row - 0.5, color=style.PALE, linewidth=0.3, zorder=0.5)


def _point(axes: Axes, row: float, method: str, cell: Cell | None, hollow: bool) -> None:
    if cell is None:
        return
    look, (share, spread) = style.look(method), cell
    if spread:
        axes.plot((share, share + spread), (row, row), color=look.colour, linewidth=0.7)
    face = {"mfc": "white", "mew": 0.8} if hollow else {"mew": 0.0}
    size = min(0.75 * look.size, LARGEST)
    axes.plot(max(share, LEAST), row, look.marker, ms=size, color=look.colour, **face)


def _blank(axes: Axes, row: int, theirs: Cell | None, ours: Cell | None, why: str) -> None:
    """Why a row has no point of one side, or of both, where the title does not say so."""
    reasons = [why] * bool(why and ours is None) + ["not printed"] * (theirs is None)
    shares = [cell[0] for cell in (theirs, ours) if cell]
    if reasons:  # at the end that is further from the point
        style.say(axes, row, ", ".join(reasons), right=not shares or max(shares) < 3)


def _explain(axes: Axes) -> None:
    axes.set_axis_off()
    handles, words = style.sides()
    handles.append(Line2D([], [], color=style.BLACK, linewidth=0.7))
    words.append("up to + standard\ndeviation between\nsamples")
    axes.legend(handles, words, loc="center left")
