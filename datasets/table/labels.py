"""The column to predict: classes with enough rows, and no measurements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.protocol.spec import FOLDS, VALID_SIZE, UserError
from benchmark.text import counted

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


def clean_labels(y: pd.Series[Any], notes: list[str]) -> pd.Series[Any]:
    """Texts without blanks around them; categories as what they stand for."""
    if isinstance(y.dtype, pd.CategoricalDtype):
        y = y.astype(y.cat.categories.dtype)
    if y.dtype == object or isinstance(y.dtype, pd.StringDtype):
        note_blanks(y, notes)
        y = y.map(lambda label: label.strip() if isinstance(label, str) else label)
        y = y.mask(y == "")
    return y


def note_blanks(written: pd.Series[Any], notes: list[str]) -> None:
    """Name the classes whose labels are written with and without blanks around them."""
    texts = {label for label in written.unique() if isinstance(label, str)}
    if padded := sorted({text.strip() for text in texts if text != text.strip()} & texts - {""}):
        notes.append(
            f"blanks around labels are left out, which makes one class of {listed(padded)}"
        )


def note_alike(y: pd.Series[Any], notes: list[str]) -> None:
    """Name labels that may be one class in two spellings; nobody but the user knows."""
    notes += [
        f"labels that differ only by case or blanks are different classes: {listed(texts)}"
        for texts in _alike(y.unique())
    ]


def _alike(labels: Iterable[Any]) -> list[list[str]]:
    spellings: dict[str, list[str]] = {}
    for text in sorted(label for label in labels if isinstance(label, str)):
        spellings.setdefault(" ".join(text.casefold().split()), []).append(text)
    return [texts for texts in spellings.values() if len(texts) > 1]


def check_labels(path: str, target: str, y: pd.Series[Any]) -> None:
    missing = int(y.isna().sum())
    if missing:
        raise UserError(
            f"{path} has {counted(missing, 'row')} of {len(y)} without {target!r}. Remove them."
        )


def check_target(path: str, target: str, y: pd.Series[Any]) -> None:
    """Several classes, and no measurements."""
    sizes = y.value_counts()
    if len(sizes) == 1:
        raise UserError(
            f"{path} has {counted(len(y), 'row')}, all with {target!r} = {sizes.index[0]!r}; two classes "
            f"are needed. Name another column with --target, or add rows of another class."
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
    fewer: bool = True,
) -> None:
    """Classes, given with their sizes, that can be spread over the folds and a validation part.

    Without folds, no row is tested or the test rows are fixed, and the classes are those of the other
    rows. `fewer` is whether whoever reads the message can ask for fewer folds.
    """
    least = 2 if folds is None else folds
    small = {label: size for label, size in sizes.items() if size < least}
    if small:
        shown = ", ".join(f"{label!r}: {size}" for label, size in list(small.items())[:5])
        need = f"{folds} folds need" if folds else "training and validation need"
        remedies = [f"Leave them out with --min-class {least}", "merge them"]
        if folds and fewer:
            remedies.append("ask for fewer folds with --folds")
        one = "".join(
            f" {listed(texts)} differ only by case or blanks: are they one class?"
            for texts in _alike(sizes)
        )
        raise UserError(
            f"{need} {least} rows of every class; {target!r} of {path} has {counted(len(small), 'class')} "
            f"with fewer ({shown}).{one} {', '.join(remedies[:-1])}, or {remedies[-1]}."
        )
    n = sum(sizes.values())
    found = _n_valid(n, folds, valid_size)
    if found < len(sizes):
        rest = n - math.ceil(n / folds) if folds else n
        enough = math.ceil(100 * len(sizes) / rest) / 100
        remedy = f"--valid-size {enough:g} is enough" if enough <= 0.5 else "More rows are needed"
        raise UserError(
            f"{counted(n, 'row')} of {path} give a validation part of {found}, too few for {len(sizes)} classes of "
            f"{target!r}. {remedy}; or leave rare classes out with --min-class, or merge them."
        )


def check_groups(
    path: Path | str, target: str, sizes: Mapping[str, int], folds: int, fewer: bool = True
) -> None:
    """Classes, given with the number of groups that have rows of them, that reach every fold."""
    few = {label: size for label, size in sizes.items() if size < folds}
    if few:
        shown = ", ".join(f"{label!r}: {size}" for label, size in list(few.items())[:5])
        fewest = min(few.values())
        raise UserError(
            f"{folds} folds need {folds} groups of every class, because no group is in two parts "
            f"(--groups); {target!r} of {path} has {counted(len(few), 'class')} with fewer ({shown}). "
            f"Merge them with other classes, or remove their rows from the table"
            + (f"; or ask for --folds {fewest}." if fewer and fewest > 1 else ".")
        )


def _n_valid(n: int, folds: int | None, valid_size: float) -> int:
    """Rows of the validation part: its share of what the largest test fold leaves."""
    return math.ceil(valid_size * (n - (math.ceil(n / folds) if folds else 0)))


def note_words(y: pd.Series[Any], notes: list[str]) -> None:
    sizes = y.value_counts()
    words = {label: sizes[label] for label in sizes.index if label in GAPS_OR_CLASSES}
    for label, size in words.items():
        notes.append(f"label {label!r} taken as a class of {counted(size, 'row')}, not as missing")


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
