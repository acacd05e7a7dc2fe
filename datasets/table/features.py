"""The other columns as numbers; gaps and categories are handed on where that was asked for."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmark.protocol.spec import UserError
from benchmark.text import counted

from .names import MAX_CLASSES, label, listed

MAX_SQUARED = 1e150
"""Values up to which a standard deviation can be computed: squares above it leave double precision."""


class Remedies(NamedTuple):
    """What helps against values that cannot be taken."""

    texts: str
    gaps: str
    infinite: str
    range: str


TABLE = Remedies(
    "Leave {them} out with --drop; if {they} categories, --encode onehot makes a column of each "
    "(numbers need points for decimals)",
    "Remove the rows or columns (--drop), or fill the gaps in each run with the median of its training "
    "rows: --impute median. In a text file NA, None, null and such are gaps, too; a category needs another "
    "word",
    "Remove or replace them",
    "Correct it, change the unit or take logarithms; or leave the columns out with --drop",
)
SAMPLES = Remedies(
    "The model was fitted on numbers there; correct them, or leave these rows out",
    "Fill them in, or leave these rows out; a model takes gaps if it was fitted with --impute median",
    "Replace them, or leave these rows out",
    "Correct it, or leave these rows out; the units are those of the table that the model was fitted on",
)
"""Of new samples, the columns and their treatment are the model's."""


def numbers_of(
    path: str,
    frame: pd.DataFrame,
    notes: list[str],
    impute: bool = False,
    encode: bool = False,
    whole: bool = True,
) -> tuple[np.ndarray[Any, Any], dict[str, tuple[str, ...]]]:
    """All features as float64, or a complaint that names the columns; and the categories behind codes.

    `whole` is false for new samples, of which some column may well be empty.
    """
    remedies = TABLE if whole else SAMPLES
    text: list[str] = []
    parsed: list[str] = []
    flags: list[str] = []
    columns: dict[str, Any] = {}
    for name, dtype in frame.dtypes.items():
        if isinstance(dtype, np.dtype) and dtype.kind in "iuf":
            continue
        column, name = frame[name], str(name)
        if _is_flag(column) and (column.notna().all() or not encode):
            flags.append(name)
            columns[name] = column.astype(object).where(column.notna(), np.nan).astype(float)
        elif not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_complex_dtype(column):
            numbers = _parsed(column)
            (text if numbers is None else parsed).append(name)
            if numbers is not None:
                columns[name] = numbers
    categories = _categories(path, frame[text]) if encode else {}
    if text and not encode:
        one = len(text) == 1
        remedy = remedies.texts.format(
            them="it" if one else "them", they="it holds" if one else "they hold"
        )
        raise UserError(
            f"{path} has {counted(len(text), 'column')} that {'is' if one else 'are'} not numbers: "
            f"{listed(text)}.{_example(frame[text])} {remedy}."
        )
    for name, levels in categories.items():
        places = {level: float(i) for i, level in enumerate(levels)}
        columns[name] = _category_texts(path, frame[name]).map(places).astype(float)
    if parsed:
        notes.append(f"numbers written as text: {listed(parsed)}")
    if flags:
        notes.append(f"true and false as 1 and 0: {listed(flags)}")
    if categories:
        shown = [f"{name} ({len(levels)})" for name, levels in categories.items()]
        notes.append(f"categories, each a column if a training row has it: {listed(shown)}")
    frame = with_columns(frame, columns)
    X: np.ndarray[Any, Any] = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    _check_finite(path, frame.columns, X, impute, whole, remedies)
    gaps = np.isnan(X)
    if gaps.any() and whole:
        notes.append(
            f"{counted(gaps.sum(), 'missing value')} in {counted(gaps.any(axis=0).sum(), 'column')}, "
            f"filled in each run with "
            f"the median of its training rows" + " (a missing category is none)" * bool(categories)
        )
    _check_scalable(path, frame.columns, X if not gaps.any() else _filled(X), remedies)
    return X, categories


def with_columns(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """The table with these columns anew. `assign` takes them by keyword, and one may be called self."""
    frame = frame.copy(deep=False)
    for name, values in columns.items():
        frame[name] = values
    return frame


def words_of(frame: pd.DataFrame) -> set[str]:
    """The columns with texts that are no numbers."""
    texts = [n for n, dtype in frame.dtypes.items() if not pd.api.types.is_numeric_dtype(dtype)]
    return {str(n) for n in texts if not _is_flag(frame[n]) and _parsed(frame[n]) is None}


def _is_flag(column: pd.Series[Any]) -> bool:
    known = column.dropna()
    return len(known) > 0 and bool(known.map(type).isin([bool, np.bool_]).all())


def _filled(X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """With something of the right size in the gaps, for checks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns without any value
        medians = np.nan_to_num(np.nanmedian(X, axis=0))
    filled: np.ndarray[Any, Any] = np.where(np.isnan(X), medians, X)
    return filled


MAX_GRADES = 10
"""Numbers such as those of stages 1, 2, 3a may be categories; more different ones are measurements."""


def _categories(path: str, frame: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """The categories of every column, in order; a column of names has too many."""
    texts = {str(name): _category_texts(path, frame[name]) for name in frame.columns}
    found = {name: tuple(sorted(set(column.dropna()))) for name, column in texts.items()}
    for name, levels in found.items():
        commas = frame[name].astype(str).str.replace(",", ".").where(frame[name].notna())
        numbers = _read_numbers(commas)
        if numbers.notna().sum() > frame[name].notna().sum() / 2 and numbers.nunique() > MAX_GRADES:
            raise UserError(
                f"{name!r} of {path} has {counted(numbers.nunique(), 'different number')} among its texts, so it is no category "
                f"(--encode onehot).{_example(frame[[name]])} Numbers have a decimal point; leave the "
                f"column out with --drop if it is not needed."
            )
        if len(levels) > min(MAX_CLASSES, max(2, len(frame) / 2)):
            raise UserError(
                f"{name!r} of {path} has {len(levels)} different texts in {len(frame)} rows, too many for "
                f"categories (--encode onehot): it looks like an identifier. Leave it out with --drop, "
                f"or name it with --id or --groups."
            )
    return found


def _category_texts(path: str, column: pd.Series[Any]) -> pd.Series[Any]:
    for value in column.to_list():
        if isinstance(value, bytes) or not pd.api.types.is_scalar(value):
            raise UserError(
                f"{column.name!r} of {path} holds {type(value).__name__}, for example "
                f"{str(value)[:40]!r}; a category is a text or a number. Save one per row, or leave the "
                f"column out with --drop."
            )
    texts = column.astype(object).map(lambda value: value if pd.isna(value) else label(value))
    return texts.mask(texts == "")


def note_unseen(
    names: Sequence[str],
    X: np.ndarray[Any, Any],
    categories: Mapping[str, Sequence[str]],
    tested: np.ndarray[Any, Any],
    notes: list[str],
) -> None:
    """Name the categories that are tested and that no run can train on."""
    for name, levels in categories.items():
        codes = X[:, names.index(name)]
        new = sorted(set(codes[tested & ~np.isnan(codes)]) - set(codes[~tested]))
        if new:
            shown = listed(levels[int(code)] for code in new)
            notes.append(f"categories of {name!r} that no training row has count as none: {shown}")


def codes_of(
    path: str, column: pd.Series[Any], known: Sequence[str], notes: list[str]
) -> np.ndarray[Any, Any]:
    """Places among the known categories; -1 for another one, which gets none of their columns."""
    texts = _category_texts(path, column)
    places = {text: float(i) for i, text in enumerate(known)}
    new = sorted(set(texts.dropna()) - places.keys())
    if new:
        notes.append(
            f"categories of {column.name!r} that the model has not seen count as none: {listed(new)}"
        )
    return np.array([np.nan if pd.isna(t) else places.get(t, -1.0) for t in texts])


def _parsed(column: pd.Series[Any]) -> pd.Series[Any] | None:
    """A column of texts as numbers, or None if one of them is something else."""
    if not (
        column.dtype == object or isinstance(column.dtype, pd.StringDtype | pd.CategoricalDtype)
    ):
        return None
    numbers = _read_numbers(column)
    return None if bool((numbers.isna() & column.notna()).any()) else numbers.astype(float)


def _read_numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    texts = column.astype(str).str.strip().where(column.notna())
    numbers: pd.Series[Any] = pd.to_numeric(texts, errors="coerce")
    return numbers


def _example(frame: pd.DataFrame) -> str:
    """Of the columns with texts, the one that is nearest to numbers: a slip is found by its row."""
    odd = {name: frame[name].notna() & _read_numbers(frame[name]).isna() for name in frame.columns}
    name = min(odd, key=lambda name: int(odd[name].sum()))
    row = int(odd[name].to_numpy().argmax())
    rest = "; a gap is an empty cell or NA" if odd[name].sum() < len(frame) / 2 else ""
    place = frame.index[row]
    where = f"{place[1] + 1} of {place[0]}" if isinstance(place, tuple) else place + 1
    return f" In row {where}, {name!r} is {str(frame[name].iloc[row])[:40]!r}{rest}."


def _check_finite(
    path: str,
    names: pd.Index,
    X: np.ndarray[Any, Any],
    impute: bool,
    whole: bool,
    remedies: Remedies,
) -> None:
    kinds: list[tuple[str, Callable[..., Any], str]] = [
        ("infinite value", np.isinf, remedies.infinite)
    ]
    if not impute:
        kinds.insert(0, ("missing value", np.isnan, remedies.gaps))
    elif whole and len(empty := np.flatnonzero(np.isnan(X).all(axis=0))):
        raise UserError(
            f"{path} has {counted(len(empty), 'column')} without any value: {listed(names[empty])}. There "
            f"is no median to fill in (--impute); leave out with --drop what has no values."
        )
    for what, bad, remedy in kinds:
        counts = bad(X).sum(axis=0)
        worst = np.flatnonzero(counts)
        if len(worst):
            shown = ", ".join(f"{names[j]!r}: {counts[j]}" for j in worst[:5])
            more = f" and {len(worst) - 5} more" if len(worst) > 5 else ""
            raise UserError(
                f"{path} has {counted(counts.sum(), what)} in {counted(len(worst), 'column')} ({shown}{more}). "
                f"{remedy}."
            )


def _check_scalable(
    path: Path | str, names: pd.Index, X: np.ndarray[Any, Any], remedies: Remedies
) -> None:
    """No value may leave single precision once it is z-scored on other rows."""
    largest = np.maximum(X.max(axis=0), -X.min(axis=0))
    least = np.min(np.abs(X), axis=0, where=X != 0, initial=np.inf)
    # Nearly every column is beyond doubt: of common size, and within 20 orders of magnitude.
    doubtful = np.flatnonzero((largest > 1e30) | (least < 1e-20 * largest))
    found = {j: value for j in doubtful if (value := _unscalable(X[:, j])) is not None}
    if found:
        shown = ", ".join(f"{names[j]!r}: {value:g}" for j, value in list(found.items())[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        raise UserError(
            f"{path} has {counted(len(found), 'column')} with a value that is out of range for single "
            f"precision when scaled by the other values ({shown}{more}). {remedies.range}."
        )


def _unscalable(column: np.ndarray[Any, Any], n_apart: int = 10) -> float | None:
    """The value that overflows when it, and up to `n_apart` rows in all, are not trained on."""
    if np.abs(column).max() > MAX_SQUARED:
        return float(column[np.argmax(np.abs(column))])
    distance = np.abs(column - np.median(column))
    order = np.argsort(distance, kind="stable")
    for apart in range(min(n_apart, len(column) // 2) + 1):
        trained = column[order[: len(column) - apart]]
        # A constant is divided by one, as the scaler does.
        scaled = np.abs(column - trained.mean()) / (trained.std() or 1.0)
        if scaled.max() > np.finfo(np.float32).max:
            return float(column[np.argmax(scaled)])
    return None


def note_ids(names: Sequence[str], X: np.ndarray[Any, Any], notes: list[str]) -> None:
    """Name columns that number the rows: kept, but they hold nothing to learn."""
    # The first rows rule out nearly all columns, so that no second copy of X is made.
    suspects = np.flatnonzero((np.diff(X[:5], axis=0) == 1).all(axis=0)).tolist()
    ids = [names[j] for j in suspects if (np.diff(X[:, j]) == 1).all()]
    if ids:
        notes.append(f"columns that only number the rows were kept: {listed(ids)}")


def note_twins(
    X: np.ndarray[Any, Any],
    y: pd.Series[Any],
    groups: Sequence[str] | None,
    tested: np.ndarray[Any, Any] | None,
    notes: list[str],
) -> None:
    """Count rows that repeat another's features: trained on and tested, they flatter every model."""
    seen: dict[bytes, list[int]] = {}
    for i, row in enumerate(X):
        mark = hashlib.blake2b((row + 0.0).tobytes(), digest_size=16).digest()
        seen.setdefault(mark, []).append(i)
    labels, alike = y.to_numpy(), [rows for rows in seen.values() if len(rows) > 1]
    remedy = "if they are of one patient, --groups COLUMN keeps them in one part"
    if groups is not None:
        alike = [rows for rows in alike if len({groups[i] for i in rows}) > 1]
        remedy = "although --groups calls them different"
    if tested is not None:
        alike = [rows for rows in alike if len(set(tested[rows])) > 1]
        remedy = "some are trained on and some tested, which makes the test too easy; remove them"
    if alike:
        other = sum(len(rows) for rows in alike if len({labels[i] for i in rows}) > 1)
        notes.append(
            f"{sum(map(len, alike))} rows have the same features as another row"
            f"{f', {other} of them with different labels' if other else ''}; {remedy}"
        )
