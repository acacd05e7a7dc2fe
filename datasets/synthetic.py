"""Syn1, Syn2 and Syn3: Gaussian features whose label depends on a branch chosen by x_11.

Features are numbered from 1, as in the paper (appendix E.2). Two generators are kept apart and
must never meet in one table:

released        what the authors' code does. It means to fix the sign of x_11 (negative in the
                first 50 rows) but writes it into the last column, and takes the truth from the
                row number. Truth "rows" is theirs; "branch" is the set that made the label.
fixed           the sign is written into x_11, and the truth follows x_11.
fixed-150-50    x_11 keeps its sign; rows are kept until the labels are exactly 150 and 50.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .raw import Raw

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

BRANCH = 11
"""The feature whose sign chooses the branch."""

N_NEGATIVE = 50
"""Rows that the generator means to put on the negative branch; they come first."""

LABELS = (150, 50)
"""Class sizes that the paper states; no generator gives them without choosing rows."""

TRUTH = {
    1: ({1, 2, 3, 11}, {3, 4, 5, 6, 11}),
    2: ({3, 4, 5, 6, 7, 11}, {7, 8, 9, 10, 11}),
    3: ({1, 2, 9, 11}, {7, 8, 9, 10, 11}),
}
"""Per dataset, the relevant features where x_11 < 0 and where it is not."""

SCALE = {1: "none", 2: "none", 3: "standard"}
"""As released: the list of sets that stay as they are names Syn1 and Syn2 only."""


def read(
    paths: Mapping[str, Path],  # noqa: ARG001  nothing to read; every reader has this argument
    *,
    which: int,
    generator: str = "released",
    n_samples: int = 200,
    n_features: int = 100,
    seed: int = 42,
) -> Raw:
    """Generate one of the three sets."""
    # The released data come from NumPy's legacy generator, whose stream default_rng does not have.
    rng = np.random.RandomState(seed)
    X = rng.normal(0, 1, (n_samples, n_features))
    if generator == "released":
        X[:, -1] = _forced_sign(X)
    elif generator == "fixed":
        X[:, BRANCH - 1] = _forced_sign(X)
    elif generator == "fixed-150-50":
        X = _with_label_counts(rng, which, n_features)
    else:
        raise ValueError(f"generator is released, fixed or fixed-150-50, got {generator!r}")

    negative = X[:, BRANCH - 1] < 0
    relevant = {"branch": _truth(which, negative, n_features)}
    if generator == "released":
        # Row 50 belongs to the second group, but the released comparison includes it in the first.
        relevant["rows"] = _truth(which, np.arange(n_samples) <= N_NEGATIVE, n_features)
    return Raw(
        X,
        _labels(which, X),
        features=[f"x{j}" for j in range(1, n_features + 1)],
        relevant=relevant,
        scale=SCALE[which] if generator == "released" else "standard",
        notes=[f"generator {generator!r}, seed {seed}"],
    )


def _forced_sign(X: Array) -> Array:
    """|x_11|, negative in the first rows."""
    sign = np.where(np.arange(len(X)) < N_NEGATIVE, -1.0, 1.0)
    return sign * np.abs(X[:, BRANCH - 1])


def _exponent(which: int, X: Array) -> Array:
    """The exponent a of logit = exp(a), by the branch of each row."""
    x = dict(enumerate(X.T, start=1))
    if which == 1:
        first = x[1] * x[2] - x[3]
        second = x[3] ** 2 + x[4] ** 2 + x[5] ** 2 + x[6] ** 2 - 4
    else:
        if which == 2:
            first = x[3] ** 2 + x[4] ** 2 + x[5] ** 2 + x[6] ** 2 + x[7] ** 2 - 4
        else:
            first = x[1] * x[2] + np.abs(x[9])
        second = -10 * np.sin(0.2 * x[7]) + np.abs(x[8]) + x[9] ** 2 + np.exp(-x[10]) - 2.4
    exponent: Array = np.where(x[BRANCH] < 0, first, second)
    return exponent


def _labels(which: int, X: Array) -> npt.NDArray[np.int64]:
    """1 where 1 / (1 + logit) exceeds one half: a threshold, not a draw."""
    return (1 / (1 + np.exp(_exponent(which, X))) > 0.5).astype(np.int64)


def _truth(which: int, first: Mask, n_features: int) -> Mask:
    """(n, d): the first truth set for the rows in `first`, the second for the others."""
    masks = np.zeros((2, n_features), dtype=bool)
    for mask, relevant in zip(masks, TRUTH[which], strict=True):
        mask[[j - 1 for j in relevant]] = True
    truth: Mask = np.where(first[:, None], masks[0], masks[1])
    return truth


def _with_label_counts(rng: np.random.RandomState, which: int, n_features: int) -> Array:
    """Rows in the order they are drawn, each kept while its class still has room."""
    # Far more rows than needed: a class that fell short would raise in the check of the counts.
    X = rng.normal(0, 1, (2000, n_features))
    y = _labels(which, X)
    kept = np.concatenate([np.flatnonzero(y == label)[:n] for label, n in enumerate(LABELS)])
    rows: Array = X[np.sort(kept)]
    return rows
