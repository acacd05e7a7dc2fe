"""Figure 3: accuracy against the share of selected features, inference time and size.

Above, the paper's figure from the paper's numbers. Below, ours beside the paper's on the datasets
that we have. Accuracy is normalised per dataset between the paper's worst and best method, in both
rows and for both sides: with one ruler, a distance between two points is one of accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark import paper
from benchmark.figures import labels, numbers, style
from benchmark.figures.style import Points
from benchmark.judge.cells import ledger
from benchmark.protocol import registry
from benchmark.runner.records import Store
from benchmark.tables import recipes
from benchmark.tables.table import Table

ACCURACIES, FEATURES, TIMES, SIZES = 2, 10, 13, 14
"""The paper's tables that the figure is made of."""
SIZED = "prostate"
"""The only dataset that Table 14 counts parameters for."""
RULER = "Accuracy is normalised per dataset: 0 is the paper's worst method, 1 its best."

Value = Callable[[str, str], float | None]
"""Of a method on a dataset; None where there is none."""


@dataclass(frozen=True)
class Side:
    """The paper or we: where the numbers come from."""

    accuracy: Value
    features: Value
    milliseconds: Value
    parameters: Value


@dataclass(frozen=True)
class Panel:
    title: str
    axis: str
    most: float = math.inf
    """Where the axis can end."""


PANELS = (
    Panel("sparsity", "selected features (%)", most=200),
    # The caption says "runtime", section 4.1 that it is the time of inference.
    Panel("runtime", "inference time (ms per sample)"),
    Panel("size", "trainable parameters (million)"),
)
ROOM = 0.12
"""Of the width of a panel, left and right of its points."""


@dataclass(frozen=True)
class Shown:
    """Rows of panels with the methods' places in them."""

    rows: list[tuple[str, Sequence[Points], Sequence[Points]]]
    """Title, the paper's points and ours, per panel."""
    have: tuple[str, ...]
    """Methods with all cells of ours."""
    datasets: tuple[str, ...]
    timed: list[str]
    """The methods that the paper gives times of."""
    some: dict[str, int]
    """Methods without all cells, and on how many of the datasets they have one."""


def read(store: Store) -> Shown:
    table = numbers.real(store)
    have, datasets = table.ranked
    printed, ours = _printed(), _ours(table, store)
    rows: list[tuple[str, Sequence[Points], Sequence[Points]]] = [
        ("paper, 7 datasets", _panels(printed, paper.METHODS, paper.DATASETS), [{}, {}, {}])
    ]
    if have:
        title = f"paper and ours, {len(datasets)} dataset{'s' if len(datasets) > 1 else ''}"
        same = _panels(printed, paper.METHODS, datasets)
        rows.append((title, same, _panels(ours, have, datasets)))
    some = {
        m: sum(numbers.mean(table, m, d) is not None for d in datasets)
        for m in paper.METHODS
        if m not in have
    }
    return Shown(rows, have, datasets, numbers.methods_of(TIMES), some)


def draw(shown: Shown) -> Figure:
    rows, have = shown.rows, shown.have
    figure = style.figure(style.TWO_COLUMNS, 0.6 + 2.5 * len(rows))
    grid = figure.subplots(len(rows), 3, sharex="col", sharey=True, squeeze=False)
    for i, (title, hollow, filled) in enumerate(rows):
        grid[i][0].set_ylabel(f"{title}\nnormalised accuracy")
        for j, panel in enumerate(PANELS):
            _axes(grid[i][j], panel, "abcdef"[3 * i + j], last=i == len(rows) - 1)
            style.pairs(grid[i][j], hollow[j], filled[j])
    for j, panel in enumerate(PANELS):
        _limits(
            grid[0][j], panel, [x for row in rows for side in row[1:] for x, _ in side[j].values()]
        )
    if have:
        style.legend_above(grid[1][2], *style.sides())
    style.note(figure, RULER, *_missing(shown))
    style.settle(figure)
    for i, (_, hollow, filled) in enumerate(rows):
        for j in range(3):
            _names(grid[i][j], hollow[j], filled[j])
    return figure


def _printed() -> Side:
    return Side(
        lambda m, d: numbers.printed(ACCURACIES, m, d, "balanced_accuracy"),
        lambda m, d: numbers.printed(FEATURES, m, d, "selected_features"),
        lambda m, d: numbers.printed(TIMES, m, d, "inference_ms_per_sample"),
        lambda m, d: numbers.printed(SIZES, m, d, "trainable_parameters_millions"),
    )


def _ours(table: Table, store: Store) -> Side:
    measured = {
        (line.printed.metric, line.printed.method, line.printed.dataset): ours.mean
        for line in ledger.lines(store, [TIMES, SIZES])
        if (ours := line.ours["rule"]).verdict.word != "not run"
    }
    return Side(
        lambda m, d: numbers.mean(table, m, d),
        lambda m, d: numbers.mean(table, m, d, recipes.FEATURES),
        lambda m, d: measured.get(("inference_ms_per_sample", m, d)),
        lambda m, d: measured.get(("trainable_parameters_millions", m, d)),
    )


# Numbers -----------------------------------------------------------------------------------------


def normalised(accuracy: Value, method: str, datasets: Sequence[str]) -> float | None:
    """Mean over datasets of an accuracy between the paper's worst (0) and best (1) method."""
    places = _all([_place(accuracy(method, dataset), dataset) for dataset in datasets])
    return fmean(places) if places else None


def _place(accuracy: float | None, dataset: str) -> float | None:
    scores = [c.mean for c in paper.cells(ACCURACIES) if c.dataset == dataset]
    known = [score for score in scores if score is not None]
    return None if accuracy is None else (accuracy - min(known)) / (max(known) - min(known))


def _panels(side: Side, methods: Sequence[str], datasets: Sequence[str]) -> list[Points]:
    """The methods' places in the three panels, as far as both coordinates are known."""
    panels: list[dict[str, tuple[float, float]]] = [{}, {}, {}]
    for method in methods:
        y = normalised(side.accuracy, method, datasets)
        shares = _all([_share(side.features(method, d), d) for d in datasets])
        times = _all([side.milliseconds(method, d) for d in datasets])
        size = side.parameters(method, SIZED)
        xs = (fmean(shares) if shares else None, median(times) if times else None, size)
        for panel, x in zip(panels, xs, strict=True):
            if x is not None and y is not None:
                panel[method] = x, y
    return list(panels)


def _share(features: float | None, dataset: str) -> float | None:
    return None if features is None else 100 * features / numbers.dimension(dataset)


def _all(values: Sequence[float | None]) -> list[float] | None:
    """The values if none is missing: averages over other datasets are not compared."""
    known = [value for value in values if value is not None]
    return known if known and len(known) == len(values) else None


# Drawing -----------------------------------------------------------------------------------------


def _axes(axes: Axes, panel: Panel, letter: str, last: bool) -> None:
    style.panel(axes, letter, panel.title)
    axes.set_xscale("log")
    axes.tick_params(labelbottom=True)  # of both rows
    axes.set_ylim(-0.05, 1.15)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    if last:
        axes.set_xlabel(panel.axis)


def _limits(axes: Axes, panel: Panel, places: Sequence[float]) -> None:
    """The same for both rows, as narrow as the points allow."""
    low, high = math.log(min(places)), math.log(max(places))
    room = ROOM * (high - low)
    ends = math.exp(low - room), min(math.exp(high + room), panel.most)
    axes.set_xlim(*ends)
    style.log_ticks(axes.xaxis, *ends)


def _names(axes: Axes, hollow: Points, filled: Points) -> None:
    """Each method is named once: at our point, or at the paper's if we have none."""
    points = {**hollow, **filled}
    names = [labels.of_method(method, x, y) for method, (x, y) in points.items()]
    joints = [(hollow[method], filled[method]) for method in hollow if method in filled]
    labels.place(axes, names, hollow.values(), joints)


def _missing(shown: Shown) -> list[str]:
    have, datasets, (_, theirs, ours) = shown.have, shown.datasets, shown.rows[-1]
    some = [f"{registry.label(m)} ({n} of {len(datasets)})" for m, n in shown.some.items() if n]
    never = [m for m, n in shown.some.items() if not n]
    rest = [m for m in shown.timed if m in have and m not in ours[1]]
    unprinted = [m for m in ours[0] if m not in theirs[0]]
    dashes = _dashes()
    return [
        f"Without the paper's {_named(dashes)}, whose accuracies it does not print on all datasets."
        if dashes
        else "",
        f"Ours: {', '.join(datasets)}." if 0 < len(datasets) < len(paper.DATASETS) else "",
        f"In d ours alone, since the paper prints no features of {_named(unprinted)}."
        if unprinted
        else "",
        f"Not run on all of these datasets: {', '.join(some)} ({numbers.command('table2')})."
        if some
        else "",
        numbers.missing(never, "table2"),
        f"Not timed yet: {_named(rest)}." if rest else "",
    ]


def _dashes() -> list[str]:
    """Methods for which the paper prints a dash somewhere."""
    blank = {cell.method for cell in paper.cells(ACCURACIES) if cell.dataset and cell.mean is None}
    return [method for method in paper.METHODS if method in blank]


def _named(methods: Sequence[str]) -> str:
    return ", ".join(map(registry.label, methods))
