"""The column to predict: classes with enough rows, and no measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.protocol.spec import FOLDS, VALID_SIZE, UserError

from .names import GAPS_OR_CLASSES, MAX_CLASSES, listed


def check_plain(path: Path | str, target: str, y: pd.Series[Any]) -> None:
    """Classes are texts, numbers or truth values; anything else has no name that could be compared."""
    plain = (str, bool, int, float, np.generic)
    for label in y.to_list():
        odd = isinstance(label, np.void | complex | np.complexfloating | bytes)
        if odd or not isinstance(label, (*plain, pd.Timestamp, type(None), type(pd.NA))):
            raise UserError(
                f"{target!r} of {path} holds {type(label).__name__}, for example "
                f"{str(label)[:40]!r}; a class is a text or a number. Save one label per row."
            )


def clean_labels(y: pd.Series[Any]) -> pd.Series[Any]:
    """Texts without blanks around them; categories as what they stand for."""
    if isinstance(y.dtype, pd.CategoricalDtype):
        y = y.astype(y.cat.categories.dtype)
    if y.dtype == object or isinstance(y.dtype, pd.StringDtype):
        y = y.map(lambda label: label.strip() if isinstance(label, str) else label)
        y = y.mask(y == "")
    return y


def check_labels(path: str, target: str, y: pd.Series[Any]) -> None:
    missing = int(y.isna().sum())
    if missing:
        raise UserError(
            f"{missing} of {len(y)} rows of {path} have no {target!r}. Remove these rows."
        )


def check_target(path: str, target: str, y: pd.Series[Any]) -> None:
    """Several classes, and no measurements."""
    sizes = y.value_counts()
    if len(sizes) == 1:
        raise UserError(
            f"All {len(y)} rows of {path} have {target!r} = {sizes.index[0]!r}; "
            f"two classes are needed."
        )
    _check_not_regression(path, target, y, len(sizes))


def _check_not_regression(path: Path | str, target: str, y: pd.Series[Any], n_classes: int) -> None:
    numeric = pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y)
    fractions = numeric and bool((y.astype(float) % 1 != 0).any())
    if n_classes > MAX_CLASSES or (fractions and n_classes > max(10, len(y) / 10)):
        kind = "numbers" if numeric else "texts"
        raise UserError(
            f"{target!r} of {path} has {n_classes} different {kind} in {len(y)} rows: it looks "
            f"like {'a measurement' if numeric else 'an identifier'}, and classes are needed. "
            f"Name another column with --target, or put the values into a few groups."
        )


def check_folds(
    path: Path | str,
    target: str,
    sizes: Mapping[str, int],
    folds: int | None,
    valid_size: float = VALID_SIZE,
) -> None:
    """Classes, given with their sizes, that can be spread over the folds and a validation part.

    Without folds, the test rows are fixed, and the classes those of the other rows.
    """
    least = 2 if folds is None else folds
    small = {label: size for label, size in sizes.items() if size < least}
    if small:
        shown = ", ".join(f"{label!r}: {size}" for label, size in list(small.items())[:5])
        need = f"{folds} folds need" if folds else "training and validation need"
        raise UserError(
            f"{need} {least} rows of every class; {target!r} of {path} has {len(small)} classes with "
            f"fewer ({shown}). Leave them out with --min-class {least}, merge them"
            + (", or ask for fewer folds with --folds." if folds else ".")
        )
    n = sum(sizes.values())
    found = _n_valid(n, folds, valid_size)
    if found < len(sizes):
        rest = n - math.ceil(n / folds) if folds else n
        enough = math.ceil(100 * len(sizes) / rest) / 100
        remedy = f"--valid-size {enough:g} is enough" if enough <= 0.5 else "More rows are needed"
        raise UserError(
            f"{n} rows of {path} give a validation part of {found}, too few for {len(sizes)} classes of "
            f"{target!r}. {remedy}; or leave rare classes out with --min-class, or merge them."
        )


def _n_valid(n: int, folds: int | None, valid_size: float) -> int:
    """Rows of the validation part: its share of what the largest test fold leaves."""
    return math.ceil(valid_size * (n - (math.ceil(n / folds) if folds else 0)))


def note_words(y: pd.Series[Any], notes: list[str]) -> None:
    sizes = y.value_counts()
    words = {label: sizes[label] for label in sizes.index if label in GAPS_OR_CLASSES}
    for label, size in words.items():
        notes.append(f"label {label!r} taken as a class of {size} rows, not as missing")


def note_rare(
    y: pd.Series[Any], tested: np.ndarray[Any, Any] | None, valid_size: float, notes: list[str]
) -> None:
    """Stratified rounding gives a class less than half a validation row: it may have none.

    Told for the protocol's five folds; the number of folds is no property of the table.
    """
    sizes = y.value_counts() * (1 - 1 / FOLDS) if tested is None else y[~tested].value_counts()
    rare = sizes[sizes * valid_size < 0.5]
    if len(rare):
        notes.append(f"too rare to be sure of a validation row: {listed(rare.index)}")
