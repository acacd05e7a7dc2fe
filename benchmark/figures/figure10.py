"""Figure 10: what ProtoGate's global strength does to local sparsity and to accuracy.

Q is the share of all features that other samples of the test part select and the sample itself does
not, mean over samples. The lines have the paper's local strength; with other local strengths, where
such runs exist, accuracy is drawn thin.
"""

from __future__ import annotations

from collections.abc import Mapping
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
from benchmark.run.records import Store
from benchmark.tables.statistics import RUNS

GLOBAL = (0.0, 1e-4, 3e-4, 5e-4, 7e-4, 1e-3)
LOCAL = (0.0, 5e-4, 1e-3, 2e-3)
THEIRS = 1e-3
"""The local strength of the paper's figure."""
SIZE = 0.8
"""Of markers, since lines cross."""
COMMAND = "python -m benchmark reproduce table17"


@dataclass(frozen=True)
class Point:
    """The runs of one pair of strengths on one dataset."""

    q: float
    accuracy: float
    runs: int


Points = Mapping[tuple[str, float], Mapping[float, Point]]
"""Dataset and local strength -> global strength -> point."""


def draw(points: Points) -> Figure:
    figure = style.figure(style.TWO_COLUMNS, 2.6)
    left, right = figure.subplots(1, 2)
    style.panel(left, "a", "degree of local sparsity")
    style.panel(right, "b", "accuracy")
    left.set_ylabel("$Q$ (% of all features)")
    right.set_ylabel("balanced accuracy (%)")
    for (dataset, local), curve in points.items():
        if local == THEIRS:
            _curve(left, dataset, {x: 100 * p.q for x, p in curve.items()}, curve)
            _curve(right, dataset, {x: p.accuracy for x, p in curve.items()}, curve)
        else:
            _curve(right, dataset, {x: p.accuracy for x, p in curve.items()}, None)
    for axes in (left, right):
        axes.set_xlabel(r"global strength $\lambda_{\mathrm{global}}$ ($\times 10^{-4}$)")
        axes.set_xticks([1e4 * x for x in GLOBAL], [f"{1e4 * x:g}" for x in GLOBAL])
        axes.set_xlim(-0.5, 1e4 * GLOBAL[-1] + 0.5)
    left.set_ylim(0, 1.06 * left.get_ylim()[1])  # the topmost marker is drawn whole
    _legend(figure, points)
    style.note(figure, *_notes(points))
    return figure


def read(store: Store) -> Points:
    """What exists of the planned runs: other settings as tuning chose them, or the defaults."""
    entry = registry.models()["protogate"]
    found: dict[tuple[str, float], dict[float, Point]] = {}
    for dataset in paper.DATASETS:
        cell = Cell(entry, registry.data_ref(dataset))
        chosen = store.setting(cell, "own", "default")
        assert chosen is not None
        for local in LOCAL:
            for strength in GLOBAL:
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


def _curve(
    axes: Axes, dataset: str, values: Mapping[float, float], runs: Mapping[float, Point] | None
) -> None:
    """A line; with markers if `runs` are given, hollow ones where runs are missing."""
    look = style.DATASETS[dataset]
    x, y = [1e4 * strength for strength in values], list(values.values())
    if runs is None:
        axes.plot(x, y, color=look.colour, linewidth=0.5, alpha=0.6, zorder=1.5)
        return
    axes.plot(x, y, color=look.colour, linewidth=1.0)
    for strength, value in values.items():
        whole = runs[strength].runs == RUNS
        face = look.colour if whole else "white"
        axes.plot(
            1e4 * strength, value, look.marker, ms=SIZE * look.size, mec=look.colour, mfc=face
        )


def _legend(figure: Figure, points: Points) -> None:
    shown = [d for d in paper.DATASETS if (d, THEIRS) in points]
    looks = [style.DATASETS[dataset] for dataset in shown]
    handles = [
        Line2D([], [], color=k.colour, marker=k.marker, ms=SIZE * k.size, lw=1) for k in looks
    ]
    if any(local != THEIRS for _, local in points):
        handles.append(Line2D([], [], color=style.GREY, lw=0.5))
        shown.append("other local strengths")
    figure.legend(handles, shown, loc="outside right upper")


def _notes(points: Points) -> list[str]:
    lines = {dataset: points.get((dataset, THEIRS), {}) for dataset in paper.DATASETS}
    some = [d for d, line in lines.items() if line and len(line) < len(GLOBAL)]
    none = [d for d, line in lines.items() if not line]
    few = any(p.runs < RUNS for line in lines.values() for p in line.values())
    return [
        f"Hollow: fewer than {RUNS} runs." if few else "",
        f"Not all strengths run: {', '.join(some)} (`{COMMAND}`)." if some else "",
        f"Not run: {', '.join(none)}" + ("." if some else f" (`{COMMAND}`).") if none else "",
    ]
