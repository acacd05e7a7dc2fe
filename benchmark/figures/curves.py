"""Learning curves of the networks: loss, accuracy and selected features on the validation part.

A line is the mean over a network's runs with the settings that were chosen for it: with a handful of
validation samples, the median run jumps. ProtoGate's has a band of one standard error to both sides;
nine bands would hide the lines. The marker is at the step whose weights were kept, in the median. A
line ends where more than half of the runs had stopped, and all lines are drawn equally long: some
networks train for a hundred steps, others for ten thousand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark import paper
from benchmark.figures import numbers, style
from benchmark.protocol import registry
from benchmark.protocol.plan import Cell, keys_of
from benchmark.protocol.spec import UserError
from benchmark.runner.records import Store
from benchmark.shapes import Misshapen, fit
from benchmark.tables.statistics import RUNS

COMMAND = "python -m benchmark reproduce table2"
NETWORKS = ("mlp", "stg", *paper.FAMILIES["local"])
"""The paper's methods that are trained step by step."""
GRID = 100
"""Steps at which the runs' curves, each recorded at steps of its own, are read."""

CROWD = 5
"""Lines in a panel of common height."""

Runs = list[dict[str, Any]]
"""What the records of one network on one dataset say of its training."""
Curve = Mapping[str, Sequence[float | None]]


@dataclass(frozen=True)
class Quantity:
    """A column of the figure."""

    title: str
    axis: str
    names: tuple[str, ...]
    """What the networks call it in their records; the first that is there counts."""
    scale: float = 1.0
    share: bool = False
    """Whether it is a share of the features; some networks record their number."""


QUANTITIES = (
    Quantity("prediction loss", "loss", ("valid_prediction_loss", "prediction")),
    Quantity(
        "balanced accuracy",
        "bal. accuracy (%)",
        ("valid_balanced_accuracy", "balanced_accuracy"),
        scale=100,
    ),
    Quantity(
        "selected features",
        "features (%)",
        ("selected_fraction", "selected"),
        scale=100,
        share=True,
    ),
)


@dataclass(frozen=True)
class Shown:
    """The training reports by dataset and method."""

    found: dict[tuple[str, str], Runs]
    features: dict[str, int]
    """Of each dataset."""


def draw(shown: Shown) -> Figure:
    found = shown.found
    datasets = [d for d in paper.DATASETS if any(d == dataset for dataset, _ in found)]
    methods = [m for m in paper.METHODS if any(m == method for _, method in found)]
    notes = [sentence for sentence in _notes(found) if sentence]
    # A crowd of lines gets a taller row.
    heights = [
        1.45 if sum(d == dataset for d, _ in found) <= CROWD else 2.3 for dataset in datasets
    ]
    figure = style.figure(style.TWO_COLUMNS, 0.75 + sum(heights) + 0.2 * len(notes))
    grid = figure.subplots(
        len(datasets), len(QUANTITIES), squeeze=False, sharex=True, height_ratios=heights
    )
    for row, dataset in enumerate(datasets):
        for axes, quantity in zip(grid[row], QUANTITIES, strict=True):
            _frame(axes, quantity, first=row == 0, last=row == len(datasets) - 1)
            for method in methods:
                if runs := found.get((dataset, method)):
                    _curve(axes, method, quantity, runs, shown.features[dataset])
            if quantity.share:
                style.log_ticks(axes.yaxis, *axes.get_ylim())
        grid[row][0].set_ylabel(f"{dataset}\n{QUANTITIES[0].axis}")
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, ms=look.size, lw=1, ls=look.dash)
        for method, look in zip(methods, map(style.look, methods), strict=True)
    ]
    words = [registry.label(method) for method in methods]
    figure.legend(handles, words, loc="outside upper center", ncols=5, handlelength=3.2)
    style.note(figure, *notes)
    return figure


def read(store: Store) -> Shown:
    """The training reports of the runs with the chosen settings."""
    found = {}
    for method in paper.METHODS:
        entry = registry.models().get(method)
        for dataset in paper.DATASETS if entry else ():
            assert entry is not None
            cell = Cell(entry, registry.data_ref(dataset))
            setting = store.setting(cell, "own")
            runs = []
            for key in () if setting is None else keys_of(cell, setting.params)[1]:
                record = store.find([key])[0].get(key, {})
                if record.get("status") != "ok":
                    continue
                report = training(record["model"])
                if report is None:
                    break  # not a network, so its other records need not be read
                runs.append(report)
            if runs:
                found[dataset, method] = runs
    if not found:
        raise UserError(
            f"No record in {store.root} holds a learning curve. Networks leave them, for example\n"
            f"`python -m benchmark tune --models mlp --datasets colon`."
        )
    return Shown(found, {dataset: numbers.dimension(dataset) for dataset, _ in found})


class _Training(TypedDict):
    curves: dict[str, list[float | bool | None]]


def training(model: Mapping[str, Any]) -> dict[str, Any] | None:
    """The report of a network's training; of several networks, that of the one that selects."""
    for report in (model, model.get("selector")):
        try:
            curves = fit(_Training, report)["curves"]
        except Misshapen:
            continue  # a model may report what it likes
        if curves.get("step") and len(set(map(len, curves.values()))) == 1:
            return dict(report or {})
    return None


def summary(runs: Runs, names: Sequence[str]) -> tuple[Any, Any] | None:
    """Common steps, and the mean there less, without and plus its error; None without curves."""
    curves = [c for run in runs if (c := _named(run["curves"], names)) is not None]
    if not curves:
        return None
    lasts = sorted((steps[-1] for steps, _ in curves), reverse=True)
    steps = np.linspace(min(s[0] for s, _ in curves), lasts[(len(lasts) - 1) // 2], GRID)
    values = np.full((len(curves), GRID), np.nan)
    for row, (own, numbers_) in enumerate(curves):
        reached = steps <= own[-1]
        values[row, reached] = np.interp(steps[reached], own, numbers_)
    count = np.isfinite(values).sum(axis=0)
    mean = np.nanmean(values, axis=0)
    squares = np.nansum((values - mean) ** 2, axis=0)
    error = np.sqrt(squares / np.maximum(count - 1, 1) / count)
    return steps, np.stack([mean - error, mean, mean + error])


def _named(curves: Curve, names: Sequence[str]) -> tuple[list[float], list[float]] | None:
    """A curve's steps and values, without those that were not finite."""
    for name in names:
        if name in curves:
            pairs = zip(curves["step"], curves[name], strict=True)
            known = [(s, v) for s, v in pairs if s is not None and v is not None]
            return ([s for s, _ in known], [v for _, v in known]) if known else None
    return None


# Drawing -----------------------------------------------------------------------------------------


def _frame(axes: Axes, quantity: Quantity, first: bool, last: bool) -> None:
    if first:
        style.panel(axes, "abc"[QUANTITIES.index(quantity)], quantity.title)
    axes.set_ylabel(quantity.axis)
    if quantity.share:
        axes.set_yscale("log")
    if last:
        axes.set_xlabel("training (% of its steps)")


def _curve(axes: Axes, method: str, quantity: Quantity, runs: Runs, dimension: int) -> None:
    made = summary(runs, quantity.names)
    if made is None:
        return
    counted = quantity.share and not any("selected_fraction" in run["curves"] for run in runs)
    look, scale = style.look(method), quantity.scale / (dimension if counted else 1)
    last = made[0][-1] or 1
    shares, (low, middle, high) = 100 * made[0] / last, scale * made[1]
    if method == "protogate":
        axes.fill_between(shares, low, high, color=look.colour, alpha=0.15, linewidth=0)
    axes.plot(shares, middle, ls=look.dash, color=look.colour, linewidth=1.1)
    kept = 100 * float(np.median([run["best_step"] for run in runs])) / last
    if shares[0] <= kept <= 100:
        y = np.interp(kept, shares, middle)
        axes.plot(kept, y, look.marker, ms=look.size, color=look.colour, mec="white", mew=0.4)


def _notes(found: Mapping[tuple[str, str], Runs]) -> list[str]:
    whole = RUNS
    few = [
        f"{registry.label(method)} on {dataset} ({len(runs)})"
        for (dataset, method), runs in found.items()
        if len(runs) < whole
    ]
    return [
        "Validation part. Line: mean over runs; band: ProtoGate's standard error; marker: weights kept.",
        f"Steps of training: {_lengths(found)}.",
        "REAL-X predicts here from the features that it selects (EVAL-X); in Table 2 from all."
        if any(method == "realx" for _, method in found)
        else "",
        *_unrecorded(found),
        f"Fewer than {whole} runs: {style.several(few)}." if few else "",
        f"No runs with chosen settings: {'; '.join(_absent(found))} (`{COMMAND}`)."
        if _absent(found)
        else "",
    ]


def _lengths(found: Mapping[tuple[str, str], Runs]) -> str:
    """How many steps 100 % are, of each network."""
    ends: dict[str, list[float]] = {}
    for (_, method), runs in found.items():
        lasts = sorted(run["curves"]["step"][-1] for run in runs)
        ends.setdefault(method, []).append(lasts[len(lasts) // 2])
    spans = {m: dict.fromkeys(f"{end(x):,.0f}" for end in (min, max)) for m, x in ends.items()}
    return ", ".join(f"{registry.label(m)} {' to '.join(span)}" for m, span in spans.items())


def _unrecorded(found: Mapping[tuple[str, str], Runs]) -> list[str]:
    """Per panel the lines that are not there, or of fewer runs, although the network was run."""
    sentences = []
    for letter, quantity in zip("abc", QUANTITIES, strict=True):
        lacks: dict[str, list[str]] = {}
        for (dataset, method), runs in found.items():
            known = sum(_named(run["curves"], quantity.names) is not None for run in runs)
            selects = not quantity.share or paper.family(method) != "baseline"
            if selects and known < len(runs):
                some = f" ({known} of {len(runs)} runs)" if known else ""
                lacks.setdefault(method, []).append(dataset + some)
        names = [
            f"{registry.label(method)} on {', '.join(places)}" for method, places in lacks.items()
        ]
        if names:
            sentences.append(f"In {letter} not recorded: {'; '.join(names)}.")
    return sentences


def _absent(found: Mapping[tuple[str, str], Runs]) -> list[str]:
    """Networks without any curve, and datasets without those of a network that has some."""
    drawn = {method for _, method in found}
    never = [registry.label(method) for method in NETWORKS if method not in drawn]
    alike: dict[str, list[str]] = {}
    for method in NETWORKS:
        missing = [d for d in paper.DATASETS if (d, method) not in found]
        if method in drawn and missing:
            alike.setdefault(", ".join(missing), []).append(registry.label(method))
    return ([", ".join(never)] if never else []) + [
        f"{', '.join(names)} on {datasets}" for datasets, names in alike.items()
    ]
