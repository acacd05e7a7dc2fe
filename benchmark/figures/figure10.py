"""Figure 10: what ProtoGate's global strength does to local sparsity and to accuracy.

Q is the share of all features that other samples of the test part select and the sample itself does
not, mean over samples. The lines have the paper's local strength; with other local strengths, where
such runs exist, accuracy is drawn thin. A line joins only points with all their runs: means over
other splits do not compare, and those over a handful of splits tell nothing and are left out. Beside
the paper's strengths those of tuning are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark import paper
from benchmark.figures import style
from benchmark.protocol import registry
from benchmark.protocol.plan import Cell, keys_of
from benchmark.protocol.spec import UserError
from benchmark.runner.records import Store
from benchmark.tables.statistics import RUNS

GLOBAL = (0.0, 1e-4, 3e-4, 5e-4, 7e-4, 1e-3)
"""The paper's global strengths."""
TUNED = (2e-4, 4e-4, 6e-4)
"""Further ones of the search, whose runs exist anyhow."""
LOCAL = (0.0, 5e-4, 1e-3, 2e-3)
THEIRS = 1e-3
"""The local strength of the paper's figure."""
SIZE = 0.8
"""Of markers, since lines cross."""
FEWEST = 5
"""Runs of a point that is drawn."""
FADED = 0.4
"""Opacity of points without all their runs; hollow ones would be the paper's."""
STEP = 0.12
"""Between datasets that share a strength."""
COMMAND = "python -m benchmark reproduce table17"


@dataclass(frozen=True)
class Point:
    """The runs of one pair of strengths on one dataset."""

    q: float
    accuracy: float
    runs: int


Points = Mapping[tuple[str, float], Mapping[float, Point]]
"""Dataset and local strength -> global strength -> point."""


def draw(found: Points) -> Figure:
    points = drawn(found)
    figure = style.figure(style.TWO_COLUMNS, 3.0)
    left, right = figure.subplots(1, 2)
    style.panel(left, "a", "degree of local sparsity")
    style.panel(right, "b", "balanced accuracy")
    left.set_ylabel("$Q$ (% of all features)")
    right.set_ylabel("balanced accuracy (%)")
    shifts = _shifts(points)
    for (dataset, local), curve in points.items():
        shares = {1e4 * x + shifts[dataset]: 100 * p.q for x, p in curve.items()}
        accuracies = {1e4 * x + shifts[dataset]: p.accuracy for x, p in curve.items()}
        if local == THEIRS:
            whole = [p.runs == RUNS for p in curve.values()]
            _curve(left, dataset, shares, whole)
            _curve(right, dataset, accuracies, whole)
        else:
            _thin(right, dataset, accuracies)
    known = sorted({strength for curve in points.values() for strength in curve})
    for axes in (left, right):
        axes.set_xlabel(r"global strength $\lambda_{\mathrm{global}}$ ($\times 10^{-4}$)")
        axes.set_xticks([1e4 * x for x in known], [f"{1e4 * x:g}" for x in known])
        axes.set_xlim(1e4 * known[0] - 0.5, 1e4 * known[-1] + 0.5)
    # Datasets differ tenfold, and zero is a value: logarithmic above 1 % only.
    left.set_yscale("symlog", linthresh=1)
    left.set_ylim(0, 1.3 * left.get_ylim()[1])  # the topmost marker is drawn whole
    ticks = [tick for tick in (0, 0.5, 1, 3, 10, 30, 100) if tick < left.get_ylim()[1]]
    left.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    left.minorticks_off()
    _legend(figure, points)
    style.note(figure, *_notes(found))
    return figure


def drawn(found: Points) -> Points:
    """Without the points of a few runs; all of them if there are no others."""
    enough = {
        place: {x: p for x, p in line.items() if p.runs >= FEWEST} for place, line in found.items()
    }
    return {place: line for place, line in enough.items() if line} or found


def _shifts(points: Points) -> dict[str, float]:
    """How far each dataset's points lie beside their strength, so that none hides another."""
    datasets = list(dict.fromkeys(dataset for dataset, _ in points))
    return {d: STEP * (i - (len(datasets) - 1) / 2) for i, d in enumerate(datasets)}


def read(store: Store) -> Points:
    """What exists of the planned runs: other settings as tuning chose them, or the defaults."""
    entry = registry.models()["protogate"]
    found: dict[tuple[str, float], dict[float, Point]] = {}
    for dataset in paper.DATASETS:
        cell = Cell(entry, registry.data_ref(dataset))
        chosen = store.setting(cell, "own", "default")
        assert chosen is not None
        for local in LOCAL:
            for strength in sorted({*GLOBAL, *TUNED}):
                params = {**chosen.params, "lam_global": strength, "lam_local": local}
                records, _ = store.find(keys_of(cell, params)[1])
                good = [r for r in records.values() if r["status"] == "ok"]
                if good:
                    found.setdefault((dataset, local), {})[strength] = Point(
                        fmean(r["selection"]["local_sparsity"] for r in good),
                        100 * fmean(r["scores"]["test"]["balanced_accuracy"] for r in good),
                        len(good),
                    )
    if not found:
        raise UserError(
            f"There are no runs of ProtoGate over its global strengths in {store.root}.\n"
            f"`{COMMAND}` does those of the paper; for a single one, for example\n"
            f"`python -m benchmark run --models protogate:lam_global=0.0003:lam_local=0.001 "
            f"--datasets colon`."
        )
    return found


def _thin(axes: Axes, dataset: str, values: Mapping[float, float]) -> None:
    colour = style.DATASETS[dataset].colour
    x, y = list(values), list(values.values())
    axes.plot(x, y, color=colour, linewidth=0.5, alpha=0.6, zorder=1.5)


def _curve(axes: Axes, dataset: str, values: Mapping[float, float], whole: Sequence[bool]) -> None:
    """Markers; those without all their runs are faded, and no line joins them."""
    look = style.DATASETS[dataset]
    joined = [place for place, all_ in zip(values.items(), whole, strict=True) if all_]
    if len(joined) > 1:
        axes.plot(*zip(*joined, strict=True), color=look.colour, linewidth=1.0)
    for (x, y), all_ in zip(values.items(), whole, strict=True):
        alpha = 1 if all_ else FADED
        axes.plot(x, y, look.marker, ms=SIZE * look.size, mew=0, color=look.colour, alpha=alpha)


def _legend(figure: Figure, points: Points) -> None:
    shown = [d for d in paper.DATASETS if (d, THEIRS) in points]
    handles = []
    for dataset in shown:
        k, line = style.DATASETS[dataset], points[dataset, THEIRS].values()
        width = 1 if sum(p.runs == RUNS for p in line) > 1 else 0  # only if something is joined
        alpha = 1 if any(p.runs == RUNS for p in line) else FADED
        handles.append(
            Line2D(
                [],
                [],
                color=k.colour,
                marker=k.marker,
                ms=SIZE * k.size,
                lw=width,
                alpha=alpha,
                mew=0,
            )
        )
    if any(local != THEIRS for _, local in points):
        handles.append(Line2D([], [], color=style.GREY, lw=0.5))
        shown.append("other local strengths")
    figure.legend(handles, shown, loc="outside right upper")


def _notes(points: Points) -> list[str]:
    lines = {dataset: points.get((dataset, THEIRS), {}) for dataset in paper.DATASETS}
    some = [f"{d} {_strengths(line)}" for d, line in lines.items() if line and _absent(line)]
    none = [d for d, line in lines.items() if not line]
    shown = drawn(points)
    few = [p.runs for (_, local), line in shown.items() if local == THEIRS for p in line.values()]
    few = [runs for runs in few if runs < RUNS]
    left_out = sum(map(len, points.values())) - sum(map(len, shown.values()))
    return [
        f"Faded and not joined: means of {_span(few)} runs instead of {RUNS}, no trend (tuning stops "
        "early where it drops a setting)."
        if few
        else "",
        f"Left out: {left_out} point{'s' * (left_out > 1)} of fewer than {FEWEST} runs."
        if left_out
        else "",
        "Side by side: datasets at the same strength." if len({d for d, _ in shown}) > 1 else "",
        f"The paper's strengths that are not run: {'; '.join(some)} (`{COMMAND}`)." if some else "",
        f"Not run: {', '.join(none)}" + ("." if some else f" (`{COMMAND}`).") if none else "",
        "Q: features that are open for a sample, mean over samples and runs.",
    ]


def _absent(line: Mapping[float, Point]) -> list[float]:
    """The paper's strengths without a run."""
    return [strength for strength in GLOBAL if strength not in line]


def _strengths(line: Mapping[float, Point]) -> str:
    return ", ".join(f"{1e4 * strength:g}" for strength in _absent(line))


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"
