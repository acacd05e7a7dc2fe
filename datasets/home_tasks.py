"""The synthetic tasks on which L2X, INVASE, REAL-X and TabNet were introduced.

Labels are drawn, not thresholded: P(y = 1) = 1 / (1 + exp(a)), where `a` depends on a few of the
Gaussian features; those are the relevant ones. Features are numbered from 1 here, as in the papers.

Of L2X, with 10 features:

orange-skin  a = x1^2 + ... + x4^2 - 4
xor          a = x1 x2
additive     a = -100 sin(0.2 x1) + |x2| + x3 + exp(-x4) - 2.4
switch       x10 comes from N(3, 1) or N(-3, 1); orange-skin of 1-4 in the first case, additive of
             5-8 in the second; x10 is relevant in both

Of INVASE, with 11 features, also used for TabNet: Syn1 to Syn3 are like xor, orange-skin and
additive on other features (the additive one with -10 sin(0.2 x7)); Syn4 to Syn6 are two of them,
chosen by the sign of x11, which is then relevant too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

Part = tuple[Callable[[Array], Array], tuple[int, ...]]
"""The exponent `a` as a function of all features, and the features that it depends on."""


def _xor(first: int) -> Part:
    i, j = first - 1, first
    return lambda X: X[:, i] * X[:, j], (i, j)


def _orange(first: int) -> Part:
    chosen = tuple(range(first - 1, first + 3))
    return lambda X: (X[:, chosen] ** 2).sum(axis=1) - 4, chosen


def _additive(first: int, amplitude: float) -> Part:
    a, b, c, d = range(first - 1, first + 3)

    def exponent(X: Array) -> Array:
        return (
            -amplitude * np.sin(0.2 * X[:, a]) + np.abs(X[:, b]) + X[:, c] + np.exp(-X[:, d]) - 2.4
        )

    return exponent, (a, b, c, d)


SYN1, SYN2, SYN3 = _xor(1), _orange(3), _additive(7, 10.0)

TASKS: dict[str, tuple[int, Part, Part | None]] = {
    "orange-skin": (10, _orange(1), None),
    "xor": (10, _xor(1), None),
    "additive": (10, _additive(1, 100.0), None),
    "switch": (10, _orange(1), _additive(5, 100.0)),
    "syn1": (11, SYN1, None),
    "syn2": (11, SYN2, None),
    "syn3": (11, SYN3, None),
    "syn4": (11, SYN1, SYN2),
    "syn5": (11, SYN1, SYN3),
    "syn6": (11, SYN2, SYN3),
}
"""Number of features, and the part that makes the label; or two, chosen by the last feature."""


def draw(task: str, n_samples: int, seed: int) -> tuple[Array, npt.NDArray[np.int64], Mask]:
    """Samples, labels, and which features are relevant for each sample."""
    n_features, first, second = TASKS[task]
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    if task == "switch":
        X[:, -1] += np.where(rng.random(n_samples) < 0.5, 3.0, -3.0)
    # Of the switch task the first part belongs to the positive side, of Syn4 to Syn6 to the negative.
    on_first = X[:, -1] > 0 if task == "switch" else X[:, -1] < 0
    exponent, chosen = first
    relevant = np.zeros(X.shape, dtype=bool)
    relevant[:, chosen] = True
    a = exponent(X)
    if second is not None:
        other, others = second
        a = np.where(on_first, a, other(X))
        relevant[~on_first] = False
        relevant[np.ix_(~on_first, np.array(others))] = True
        relevant[:, -1] = True
    y = rng.random(n_samples) < 1 / (1 + np.exp(np.clip(a, -700, 700)))
    return X, y.astype(np.int64), relevant
