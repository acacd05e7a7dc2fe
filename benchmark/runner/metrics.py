"""Scores of predictions and of selected features. Pure functions on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.runner.packing import packed


def scores(
    y: NDArray[np.int64],
    predicted: NDArray[np.int64],
    proba: NDArray[Any] | None,
    n_classes: int,
) -> dict[str, float | None]:
    """Balanced accuracy, accuracy, weighted F1 and AUROC (macro one-vs-rest for several classes).

    `proba` may be anything that orders the samples, a column per class; without it there is no AUROC.
    """
    confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(confusion, (y, predicted), 1)
    hits, size, called = np.diag(confusion), confusion.sum(axis=1), confusion.sum(axis=0)
    present = size > 0
    f1 = 2 * hits / np.maximum(size + called, 1)
    return {
        "balanced_accuracy": float(np.mean(hits[present] / size[present])),
        "accuracy": float(hits.sum() / len(y)),
        "weighted_f1": float(np.sum(f1 * size) / len(y)),
        "auroc": None if proba is None else _auroc(y, proba, bool(present.all())),
    }


def balanced_accuracy(y: NDArray[np.int64], predicted: NDArray[np.int64]) -> float:
    """Mean recall over the classes that are present."""
    return float(np.mean([np.mean(predicted[y == c] == c) for c in np.unique(y)]))


def _auroc(y: NDArray[np.int64], proba: NDArray[Any], every_class_present: bool) -> float | None:
    # Without all classes in the part the one-vs-rest mean is undefined: null, not a guess.
    if not every_class_present:
        return None
    # The area is the share of (positive, negative) pairs in the right order, ties counting half.
    # Counted by hand: importing scipy.stats would cost every worker a second.
    columns = [1] if proba.shape[1] == 2 else range(proba.shape[1])
    areas = []
    for column in columns:
        positive, negative = proba[y == column, column], np.sort(proba[y != column, column])
        below = np.searchsorted(negative, positive, "left").sum()
        not_above = np.searchsorted(negative, positive, "right").sum()
        areas.append((below + not_above) / 2 / (len(positive) * len(negative)))
    return float(np.mean(areas))


def selection(
    selected: NDArray[np.bool_], relevant: dict[str, NDArray[np.bool_]]
) -> dict[str, Any]:
    """Summary of the features selected for each test sample, shape (n_samples, n_features).

    `core` is the features that at least half of the samples select: what two runs can agree on.
    """
    counts = selected.sum(axis=1)
    union = int(selected.any(axis=0).sum())
    return {
        "mean": float(counts.mean()),
        # Over the samples of this run, as the paper's +- in Table 10; 0 for a global method.
        "std": float(counts.std(ddof=1)) if len(counts) > 1 else 0.0,
        # A few samples with nearly all gates open make a mean that describes none of them.
        "median": float(np.median(counts)),
        "union": union,
        # Degree of local sparsity Q: every S_j lies in the union U, so sum |U \ S_j| is a difference.
        "local_sparsity": float((union - counts.mean()) / selected.shape[1]),
        "core": packed(2 * selected.sum(axis=0) >= len(selected)),
        "f1": {name: selection_f1(selected, truth) for name, truth in relevant.items()} or None,
    }


def selection_f1(selected: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    """Micro-F1 of the selected features against the known relevant ones."""
    both = int((selected & truth).sum())
    total = int(selected.sum()) + int(truth.sum())
    return 2 * both / total if total else 0.0
