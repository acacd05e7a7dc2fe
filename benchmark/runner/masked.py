"""Transferability: do simple models gain from the features that a model selected?

Every sample is multiplied by its own mask, soft values in [0, 1], and KNN and SVM are fitted on
what is left. All settings of their grids are kept, so that the paper's rule, the best mean
validation score over the 25 runs, can be applied later by reading records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmark.protocol.registry import load_class, models

if TYPE_CHECKING:
    from benchmark.protocol.splits import Part

SIMPLE: dict[str, tuple[str, dict[str, Any], str]] = {
    "knn": ("knn", {}, "n_neighbors"),
    # The printed SVM is the polynomial one, the text's has the RBF kernel.
    "svm": ("svm", {"kernel": "poly"}, "C"),
    "svm:kernel=rbf": ("svm", {"kernel": "rbf"}, "C"),
}
"""Name -> model, what is fixed, and the parameter that its grid searches."""


def scores(model: Any, train: Part, valid: Part, test: Part) -> dict[str, Any] | None:
    """Balanced accuracies of the simple models on masked data, for every setting of their grids."""
    import numpy as np

    masked = [part.X * model.masks(part.X) for part in (train, valid, test)]
    if not all(np.isfinite(X).all() for X in masked):
        return None
    return {name: _scores(name, masked, (train.y, valid.y, test.y)) for name in SIMPLE}


def _scores(name: str, masked: list[Any], labels: tuple[Any, Any, Any]) -> dict[str, Any]:
    from benchmark.runner.metrics import balanced_accuracy

    base, fixed, searched = SIMPLE[name]
    entry = models()[base]
    Model = load_class(entry)
    grid = entry.search.grid.get(searched, [])
    found: dict[str, Any] = {searched: list(grid), "valid": [], "test": []}
    for value in grid:
        fitted = Model(**{**fixed, searched: value}).fit(masked[0], labels[0])
        for part, X, y in zip(("valid", "test"), masked[1:], labels[1:], strict=True):
            found[part].append(balanced_accuracy(y, fitted.predict(X)))
    return found
