"""What a model answers, checked: runs and `check-model` both ask here, so that they agree.

A wrong answer is rarely an error by itself. NumPy stretches a column to a square, takes -1 for the last
class and a number for true, and the score that comes of it looks like any other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.protocol.spec import UserError

TOLERANCE = 1e-3
"""How far a row of probabilities may be from one, and one of them below zero: single precision and
rounded tables are nearer."""


def classes(found: Any, n_samples: int, n_classes: int, what: str) -> NDArray[np.int64]:
    """One of the classes 0..C-1 per sample, whatever holds the numbers; a single column will do."""
    array = _array(found, what)
    if array.shape == (n_samples, 1):
        array = array.ravel()
    wanted = f"one class of 0 to {n_classes - 1} per sample"
    _check_shape(array, (n_samples,), what, wanted)
    _check_finite(array, what)
    # Of texts none is a class, though '1' would be found among the numbers.
    known = np.isin(array, np.arange(n_classes)) & _is_numeric(array)
    if not known.all():
        raise UserError(
            f"{what} gave {array[~known].tolist()[0]!r}, expected {wanted}, as in the y that fit was "
            f"given."
        )
    return array.astype(np.int64)


def probabilities(found: Any, n_samples: int, n_classes: int, what: str) -> NDArray[Any]:
    """Shares of all classes, shape (n_samples, n_classes), in the precision they came in."""
    array = columns(found, n_samples, n_classes, what)
    if (least := float(array.min())) < -TOLERANCE:
        raise UserError(f"{what} gave {least:.3g}, expected probabilities, none of them negative.")
    sums = array.sum(axis=1, dtype=np.float64)
    if not np.allclose(sums, 1, atol=TOLERANCE):
        raise UserError(
            f"{what} gave rows that sum to {sums.min():.3g} to {sums.max():.3g}, expected "
            f"probabilities that sum to 1. Scores that are none belong in decision_function."
        )
    return array


def columns(found: Any, n_samples: int, n_classes: int, what: str) -> NDArray[Any]:
    """A finite number per sample and class, in the order of the classes."""
    array = _array(found, what)
    _check_shape(array, (n_samples, n_classes), what, "a row per sample and a column per class")
    if not _is_numeric(array):
        raise UserError(f"{what} gave {array.ravel().tolist()[0]!r}, expected numbers.")
    _check_finite(array, what)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def mask(found: Any, shape: tuple[int, ...], what: str) -> NDArray[np.bool_]:
    """True or false per sample and feature. Of other numbers nobody but the model knows the threshold."""
    array = _array(found, what)
    _check_shape(array, shape, what, "a row per sample and a column per feature")
    if array.dtype != bool:
        raise UserError(
            f"{what} gave values of type {array.dtype}, expected true or false per sample and "
            f"feature. Compare them with a threshold, as in `mask > 0.5`."
        )
    return array


def _array(found: Any, what: str) -> NDArray[Any]:
    try:
        array = np.asarray(found)
        # Numbers in an array of objects are numbers all the same.
        return np.asarray(array.tolist()) if array.dtype == object else array
    except ValueError as error:  # rows of different lengths
        raise UserError(f"{what} gave what is no array: {error}.") from error


def _check_shape(array: NDArray[Any], shape: tuple[int, ...], what: str, wanted: str) -> None:
    if array.shape != shape:
        gave = f"an array of shape {array.shape}" if array.shape else repr(array.item())
        raise UserError(f"{what} gave {gave}, expected shape {shape}: {wanted}.")


def _is_numeric(array: NDArray[Any]) -> bool:
    return array.dtype.kind in "biuf"


def _check_finite(array: NDArray[Any], what: str) -> None:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        bad = array[~np.isfinite(array)][0]
        raise FloatingPointError(
            f"{what} gave numbers that are not finite ({bad}): the training diverged, or the data are "
            f"too large. Rescale them, or lower the learning rate."
        )
