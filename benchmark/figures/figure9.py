"""Figure 9: the masks of LSPIN, LLSPIN and ProtoGate on the test samples of one split.

Each line is a sample, sorted by class with dashed lines between classes. Features are sorted by
their mean mask value in the panel and lie on a logarithmic axis, so that both can be seen: how many
are open, and how samples differ in those that are. The paper has them in the order of the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from benchmark import paper
from benchmark.experiments.specimen import Specimen
from benchmark.figures import numbers, specimens, style
from benchmark.protocol import registry
from benchmark.protocol.spec import UserError
from benchmark.runner.records import Store

METHODS = ("lspin", "llspin", "protogate")
WIDTH = 360
"""Columns of a panel's picture."""
TICKS = ("1", "10", "100", "1k", "10k", "100k")
SHADES = LinearSegmentedColormap.from_list("masks", ["white", style.SKY, style.BLUE, "#00263d"])


@dataclass(frozen=True)
class Shown:
    """The specimens by method and dataset."""

    found: dict[tuple[str, str], Specimen]
    features: dict[str, int]
    """Of each dataset."""
    outdated: str


def read(store: Store) -> Shown:
    found: dict[tuple[str, str], Specimen] = {}
    missing: dict[tuple[str, str], str] = {}
    for dataset in paper.DATASETS:
        for method in reversed(METHODS):  # ProtoGate's split is then that of the others
            beside = found.get((METHODS[-1], dataset))
            try:
                found[method, dataset] = specimens.read(store, method, dataset, beside)
            except UserError as error:
                missing[method, dataset] = str(error)
    if not found:
        raise UserError(missing[METHODS[-1], paper.DATASETS[0]])
    features = {d: numbers.dimension(d) for _, d in found}
    return Shown(found, features, specimens.outdated(store, found.values()))


def draw(shown: Shown) -> Figure:
    found = shown.found
    datasets = [d for d in paper.DATASETS if any((method, d) in found for method in METHODS)]
    figure = style.figure(style.TWO_COLUMNS, 4.1)
    grid = figure.subplots(len(METHODS), len(datasets), squeeze=False, sharex="col")
    for line, method in zip(grid, METHODS, strict=True):
        for axes, dataset in zip(line, datasets, strict=True):
            if (method, dataset) in found:
                picture = _panel(axes, found[method, dataset])
            else:
                _absent(axes)
        _method(line[0], method)
    narrow = len(datasets) > 4
    for axes, dataset in zip(grid[0], datasets, strict=True):
        # In narrow panels a line above the number of open gates, which is on the right.
        title = f"{dataset}\n " if narrow else f"{dataset}, {shown.features[dataset]:,} features"
        axes.set_title(title, loc="left", fontsize=style.SMALL)
    for axes in grid[-1, len(datasets) // 2 :][:1] if narrow else grid[-1]:
        axes.set_xlabel("features by mean mask value")
    bar = figure.colorbar(picture, ax=grid, aspect=40, pad=0.01, ticks=[0, 0.5, 1])
    bar.set_label("mask value", labelpad=2)
    bar.outline.set_linewidth(0.6)
    style.note(figure, *_note(found, datasets), shown.outdated)
    return figure


def condensed(masks: NDArray[np.float64], width: int = WIDTH) -> NDArray[np.float64]:
    """The columns of sorted masks on a logarithmic axis; where several fall together, their mean."""
    n_features = masks.shape[1]
    edges = (n_features + 1) ** np.linspace(0, 1, width + 1) - 1
    first = np.minimum(edges[:-1].astype(int), n_features - 1)
    last = np.maximum(np.ceil(edges[1:] - 1e-9).astype(int), first + 1)
    sums = np.concatenate([np.zeros((len(masks), 1)), np.cumsum(masks, axis=1)], axis=1)
    means: NDArray[np.float64] = (sums[:, last] - sums[:, first]) / (last - first)
    return means


def _panel(axes: Axes, shown: Specimen) -> AxesImage:
    labels = np.array(shown.labels["test"])
    masks = shown.masks["test"][np.argsort(labels, kind="stable")]
    masks = masks[:, np.argsort(-masks.mean(axis=0), kind="stable")]
    n_samples, n_features = masks.shape
    end = np.log10(n_features + 1)
    picture = axes.imshow(
        condensed(masks), cmap=SHADES, vmin=0, vmax=1, aspect="auto", interpolation="nearest",
        extent=(0, end, n_samples, 0),
    )  # fmt: skip
    axes.grid(visible=False)
    axes.spines[:].set_visible(True)
    axes.set_xticks(range(int(end) + 1), TICKS[: int(end) + 1])
    _classes(axes, labels, specimens.classes(shown))
    open_ = (masks > 0).sum(axis=1).mean()
    axes.set_title(f"{open_:,.0f} open", loc="right", fontsize=style.SMALL)
    return picture


def _classes(axes: Axes, labels: NDArray[np.int64], names: list[str]) -> None:
    sizes = np.bincount(labels, minlength=len(names))
    ends = np.cumsum(sizes)
    for end in ends[:-1]:
        axes.axhline(end, color=style.ORANGE, linewidth=0.8, linestyle=(0, (4, 2)))
    axes.set_yticks(ends - sizes / 2, names)
    axes.tick_params(axis="y", length=0, pad=2)


def _method(axes: Axes, method: str) -> None:
    axes.set_ylabel(registry.label(method))
    style.stand_out([axes.yaxis.label], [method])


def _absent(axes: Axes) -> None:
    axes.set_yticks([])
    axes.grid(visible=False)
    axes.text(
        0.5, 0.5, "not fitted yet", transform=axes.transAxes, ha="center", va="center",
        fontsize=style.SMALL, color=style.GREY,
    )  # fmt: skip


def _note(found: Mapping[tuple[str, str], Specimen], datasets: list[str]) -> list[str]:
    """What is shown, with which settings, and what is missing."""
    splits = {f"repeat {s.spec.repeat}, fold {s.spec.fold}" for s in found.values()}
    untuned = [
        f"{registry.label(m)} on {d}" for (m, d), s in found.items() if s.origin == "default"
    ]
    absent = [m for m in METHODS if any((m, d) not in found for d in datasets)]
    where = [d for d in datasets if any((m, d) not in found for m in METHODS)]
    command = (
        f"python -m benchmark specimen --models {','.join(absent)} --datasets {','.join(where)}"
    )
    others = [dataset for dataset in paper.DATASETS if dataset not in datasets]
    return [
        f"Test samples of {' and '.join(sorted(splits))}; open: mean number of open gates.",
        "Each panel sorts the features for itself: the same place means another feature in each.",
        f"Default settings, not tuned: {style.several(untuned, 4)}." if untuned else "",
        f"Not fitted yet: `{command}`." if absent else "",
        f"Only {', '.join(datasets)}: nothing fitted on {', '.join(others)} (`python -m benchmark specimen --models "
        f"{','.join(METHODS)} --datasets {others[0]}`)."
        if others
        else "",
    ]
