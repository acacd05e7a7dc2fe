"""A user's own table: csv, tsv, parquet, arff, mat or npz, with one column to predict.

The protocol knows numbers without gaps, and classes with a member in every fold, so a table that
has anything else is refused with the columns and the remedy. Nothing is imputed or encoded quietly.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import math
import re
import sys
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.protocol.spec import FOLDS, VALID_SIZE, UserError

from . import arff
from .raw import Raw

LARGE = 100e6
"""Bytes from which a remark on the waiting time is due."""

MAX_CLASSES = 100
"""More different labels than this are measurements rather than classes."""

MAX_SQUARED = 1e150
"""Values up to which a standard deviation can be computed: squares above it leave double precision."""

MAX_DENSE = 2e9
"""Bytes up to which a sparse matrix is filled with its zeros: models take dense ones."""

GAPS = frozenset({"", "?", "nan", "NaN", "-nan", "-NaN", "#N/A", "<NA>"})
"""What stands for a missing label in a text file, whatever the other labels are."""

GAPS_OR_CLASSES = frozenset({"None", "NA", "N/A", "n/a", "NULL", "null"})
"""Missing labels among numbers, but classes among names: no treatment, North America."""


def read(
    path: Path, *, target: str | None, drop: Collection[str] = (), id: str | None = None
) -> Raw:
    """Read and check a table; every complaint is a UserError that names the remedy."""
    size = path.stat().st_size
    if size == 0:
        raise UserError(f"{path} is empty.")
    if size > LARGE:
        print(f"Reading {path.name} ({size / 1e6:.0f} MB), please wait.", file=sys.stderr)
    frame = _read_frame(path, target)
    notes: list[str] = []
    frame = _without_index(frame, notes)
    _check_columns(path, frame)
    target = _find_target(path, frame, target)
    frame = _without_dropped(path, frame, target, drop, notes)
    ids = None if id is None else _ids(path, frame, id, target)
    y = frame.pop(target)
    _check_plain(path, target, y)
    y = _clean_labels(y)
    _check_target(path, target, y)
    X = _numbers(path, frame, notes)
    _note_words(y, notes)
    _note_rare(y, notes)
    names = [str(name) for name in frame.columns]
    _note_ids(names, X, notes)
    return Raw(X, y.to_numpy(), names, notes=notes, ids=ids)


def read_new(
    path: Path, features: Sequence[str], id: str | None
) -> tuple[np.ndarray[Any, Any], list[str], list[str]]:
    """New samples for a model that knows `features`: X in that order, the samples' ids, notes.

    Columns may come in any order, and others may be among them; none may be missing.
    """
    if path.stat().st_size == 0:
        raise UserError(f"{path} is empty.")
    frame = _read_frame(path, None)
    notes: list[str] = []
    frame = _without_index(frame, notes)
    frame.columns = pd.Index([str(name) for name in frame.columns])
    _check_columns(path, frame)
    ids = [str(i) for i in range(1, len(frame) + 1)]
    if id is not None and id in frame.columns:
        ids = _ids(path, frame, id, None)
    missing = [name for name in features if name not in frame.columns]
    if missing:
        raise UserError(
            f"{path} has no columns {_listed(missing)}: {len(missing)} of the {len(features)} features "
            f"that the model was fitted on. It takes a table with the same columns, in any order."
        )
    extra = [name for name in frame.columns if name not in set(features)]
    if extra:
        notes.append(f"columns that the model does not know are left out: {_listed(extra)}")
    return _numbers(path, frame[list(features)], notes), ids, notes


def _ids(path: Path, frame: pd.DataFrame, id: str, target: str | None) -> list[str]:
    """Take the column with the samples' names out of the table."""
    if id not in frame.columns or id == target:
        raise UserError(
            f"{path} has no column {id!r} with the samples' names besides the target. The columns are "
            f"{_listed(frame.columns)}."
        )
    names = [_label(name) for name in frame.pop(id).to_list()]
    twice = (
        sorted({name for name in names if names.count(name) > 1})
        if len(set(names)) < len(names)
        else []
    )
    if twice:
        raise UserError(
            f"{id!r} of {path} names several rows {_listed(twice)}; every sample needs its own."
        )
    return names


def _label(name: Any) -> str:
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name).strip()


# --- files to a table -------------------------------------------------------------------------


def _read_frame(path: Path, target: str | None) -> pd.DataFrame:
    """One column per feature, and the target among them."""
    text = partial(_read_text, target=target)
    readers: dict[str, Callable[[Path], pd.DataFrame]] = {
        ".csv": text,
        ".tsv": text,
        ".txt": text,
        ".parquet": _read_parquet,
        ".arff": arff.read,
        ".mat": lambda path: _from_arrays(path, _read_mat(path), target),
        ".npz": lambda path: _from_arrays(path, _read_npz(path), target),
    }
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    reader = readers.get(suffix.lower())
    if reader is None or (path.suffix == ".gz" and reader is not text):
        raise UserError(
            f"{path} ends in {path.suffix or 'nothing'}; tables end in .csv, .tsv, .txt "
            f"(also with .gz), .parquet, .arff, .mat or .npz."
        )
    try:
        frame = reader(path)
    except UserError:
        raise
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8, for example with "
            f"`iconv -f latin1 -t utf-8`; if it is not text at all, give it its right ending."
        ) from error
    except Exception as error:  # parsers raise almost anything on a file of another form
        detail = " ".join(str(error).split())[:200]
        raise UserError(f"{path} cannot be read as {suffix}: {detail}") from error
    if frame.empty:
        raise UserError(f"{path} has {len(frame)} rows and {frame.shape[1]} columns.")
    return frame


def _read_parquet(path: Path) -> pd.DataFrame:
    """With an index that has a name as columns: it may be the target, or a feature."""
    frame = pd.read_parquet(path)
    named = [name for name in frame.index.names if name is not None]
    if named and not set(named) & set(frame.columns):
        frame = frame.reset_index(level=named)
    return frame


def _read_text(path: Path, target: str | None) -> pd.DataFrame:
    """Comma, semicolon or tab, whichever the first line has most of."""
    opener = gzip.open if path.suffix == ".gz" else Path.open
    with opener(path, "rb") as lines:
        header = lines.readline(1_000_000)
    halves = header[0:40:2], header[1:40:2]
    # In UTF-16 every other byte of plain English is zero, with or without the mark at the beginning.
    if (
        header[:2] in (b"\xff\xfe", b"\xfe\xff")
        or bytes(len(halves[1])) in halves
        and len(header) > 3
    ):
        raise UserError(
            f"{path} is UTF-16 text. Save it as UTF-8, for example with "
            f'`iconv -f utf-16 -t utf-8`, or as "CSV UTF-8" in a spreadsheet.'
        )
    if b"\0" in header:
        raise UserError(
            f"{path} holds binary data, not text. Give it the ending of its own form, or save it as "
            f"text."
        )
    separator = max(",;\t", key=header.decode("utf-8", errors="replace").count)
    # Read on its own, so that two columns of one name are seen: pandas renames the second.
    with opener(path, "rt", encoding="utf-8-sig", newline="") as lines:
        rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        names = [name.strip() for name in next((row for row in rows if row), [])]
    # The target is read behind a sign, or pandas would take a class called "None" for a gap.
    signed = {names.index(target): lambda text: f"={text.strip()}"} if target in names else {}
    with warnings.catch_warnings():
        # Rows longer than the header: pandas would only warn, and lose the last columns.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame = pd.read_csv(
            path, sep=separator, encoding="utf-8-sig", na_values=["?"], skipinitialspace=True,
            index_col=False, low_memory=False, converters=signed,
        )  # fmt: skip
    frame.columns = pd.Index(names)
    for position in signed:
        frame.isetitem(position, _text_labels(frame.iloc[:, position].str[1:]))
    return frame


def _text_labels(written: pd.Series[Any]) -> pd.Series[Any]:
    """Labels as numbers where all of them are, otherwise as the words that were written."""
    labels = written.mask(written.isin(GAPS))
    try:
        numbers = pd.to_numeric(labels.mask(labels.isin(GAPS_OR_CLASSES)))
    except ValueError:
        return labels
    refuse_merged(labels.to_list(), numbers.to_list())
    return numbers


def refuse_merged(written: Sequence[Any], read: Sequence[Any]) -> None:
    """Raise if two labels that are written differently would become one class.

    `1` and `1.0` are one number, as spreadsheets write them; `01` and `1` may be two codes.
    """
    spellings: dict[Any, str] = {}
    for text, label in zip(written, read, strict=True):
        if not isinstance(text, str) or pd.isna(label):
            continue
        plain = re.sub(r"\.0*$", "", text)
        first = spellings.setdefault(label, plain)
        if first != plain:
            raise UserError(
                f"The labels {first!r} and {plain!r} are the same number, so they would become one "
                f"class. Write them alike if they are, or as words if they are not."
            )


def _read_mat(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    from scipy.io import loadmat

    try:
        content = loadmat(path)
    except NotImplementedError as error:
        raise UserError(
            f"{path} is a MATLAB 7.3 file; save it again with the option -v7."
        ) from error
    return {key: _dense(path, key, value) for key, value in content.items() if key[:2] != "__"}


def _dense(path: Path, name: str, value: Any) -> np.ndarray[Any, Any]:
    """A sparse matrix with its zeros, as long as they fit; anything else as it is."""
    if not hasattr(value, "toarray"):
        return np.asarray(value)
    size = 8 * math.prod(value.shape)
    if size > MAX_DENSE:
        raise UserError(
            f"{path}: the sparse matrix {name!r} of {value.shape[0]} x {value.shape[1]} would take "
            f"{size / 1e9:.0f} GB with its zeros, and {MAX_DENSE / 1e9:g} GB is the limit. "
            f"Keep fewer columns, for example those with the most entries, and save it again."
        )
    return np.asarray(value.toarray())


def _read_npz(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    if not zipfile.is_zipfile(path):
        raise UserError(f"{path} is not an .npz file; numpy.savez(path, X=X, y=y) writes one.")
    with np.load(path, allow_pickle=False) as archive:
        try:
            return {key: archive[key] for key in archive.files}
        except ValueError as error:
            raise UserError(
                f"{path} holds Python objects, which are not loaded for safety. "
                f"Save plain numbers and texts: numpy.savez(path, X=X, y=y)."
            ) from error


def _from_arrays(
    path: Path, arrays: dict[str, np.ndarray[Any, Any]], target: str | None
) -> pd.DataFrame:
    """A matrix called X, or the only one, and the labels: the array that the target names."""
    wanted = target or "y"
    label = next((key for key in arrays if key == wanted), None) or next(
        (key for key in arrays if key.lower() == wanted.lower()), None
    )
    if label is None:
        raise UserError(
            f"{path} holds no array {wanted!r} with the labels; it holds {sorted(arrays)}. "
            f"Name the right one with --target."
        )
    y = _labels(arrays[label])
    matrices = {
        key: value
        for key, value in arrays.items()
        if key != label and value.ndim == 2 and len(value) == len(y) and value.dtype.kind in "biuf"
    }
    key = "X" if "X" in matrices else next(iter(matrices), None) if len(matrices) == 1 else None
    if key is None:
        shapes = {name: value.shape for name, value in arrays.items()}
        raise UserError(
            f"{path} needs a matrix of numbers called X with {len(y)} rows; it holds {shapes}."
        )
    numbers = range(1, matrices[key].shape[1] + 1)
    name = target or label
    # Labels may be called x1 as well, and would take that feature's place.
    prefix = "feature" if name in {f"x{j}" for j in numbers} else "x"
    frame = pd.DataFrame(matrices[key], columns=[f"{prefix}{j}" for j in numbers])
    frame[name] = y
    return frame


def _labels(values: np.ndarray[Any, Any]) -> list[Any]:
    """A column of labels; MATLAB wraps texts in arrays of their own."""
    flat = np.asarray(values).ravel()
    return [
        item.item() if isinstance(item, np.ndarray) and item.size == 1 else item for item in flat
    ]


def _check_plain(path: Path, target: str, y: pd.Series[Any]) -> None:
    """Classes are texts, numbers or truth values; anything else has no name that could be compared."""
    plain = (str, bool, int, float, np.generic)
    for label in y.to_list():
        odd = isinstance(label, np.void | complex | np.complexfloating | bytes)
        if odd or not isinstance(label, (*plain, pd.Timestamp, type(None), type(pd.NA))):
            raise UserError(
                f"{target!r} of {path} holds {type(label).__name__}, for example "
                f"{str(label)[:40]!r}; a class is a text or a number. Save one label per row."
            )


# --- columns ----------------------------------------------------------------------------------


def _without_index(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Leave out the nameless first column that pandas and R write for the row names."""
    first = str(frame.columns[0])
    if first not in ("", "Unnamed: 0", "__index_level_0__") or frame.shape[1] < 2:
        return frame
    notes.append("nameless first column taken as row names and left out")
    return frame.iloc[:, 1:]


def _check_columns(path: Path, frame: pd.DataFrame) -> None:
    twice = sorted({str(name) for name in frame.columns[frame.columns.duplicated()]})
    if twice:
        raise UserError(f"{path} has more than one column named {_listed(twice)}. Rename them.")


def _find_target(path: Path, frame: pd.DataFrame, target: str | None) -> str:
    names = [str(name) for name in frame.columns]
    frame.columns = pd.Index(names)
    if not target:
        raise UserError(
            f"Say which column of {path} is to be predicted: --target NAME. "
            f"The columns are {_listed(names)}."
        )
    if target in names:
        return target
    near = difflib.get_close_matches(target, names, n=3, cutoff=0.5)
    near += [name for name in names if name.lower() == target.lower() and name not in near]
    hint = f"Did you mean {_listed(near)}?" if near else f"The columns are {_listed(names)}."
    raise UserError(f"{path} has no column {target!r} to predict. {hint}")


def _without_dropped(
    path: Path, frame: pd.DataFrame, target: str, drop: Collection[str], notes: list[str]
) -> pd.DataFrame:
    unknown = [name for name in drop if name not in frame.columns or name == target]
    if unknown:
        raise UserError(f"{path} has no features {_listed(unknown)} that could be dropped.")
    if drop:
        notes.append(f"columns left out on request: {_listed(drop)}")
    if len(frame.columns) - len(drop) < 2:
        raise UserError(f"{path} has no feature besides the target {target!r}.")
    return frame.drop(columns=list(drop))


# --- the target -------------------------------------------------------------------------------


def _clean_labels(y: pd.Series[Any]) -> pd.Series[Any]:
    """Texts without blanks around them; categories as what they stand for."""
    if isinstance(y.dtype, pd.CategoricalDtype):
        y = y.astype(y.cat.categories.dtype)
    if y.dtype == object or isinstance(y.dtype, pd.StringDtype):
        y = y.map(lambda label: label.strip() if isinstance(label, str) else label)
        y = y.mask(y == "")
    return y


def _check_target(path: Path, target: str, y: pd.Series[Any]) -> None:
    """A label in every row, and classes rather than measurements."""
    missing = int(y.isna().sum())
    if missing:
        raise UserError(
            f"{missing} of {len(y)} rows of {path} have no {target!r}. Remove these rows."
        )
    sizes = y.value_counts()
    if len(sizes) == 1:
        raise UserError(
            f"All {len(y)} rows of {path} have {target!r} = {sizes.index[0]!r}; "
            f"two classes are needed."
        )
    _check_not_regression(path, target, y, len(sizes))


def check_folds(path: Path, target: str, sizes: Mapping[str, int], folds: int) -> None:
    """Classes, given with their sizes, that can be spread over the folds and a validation part."""
    small = {label: size for label, size in sizes.items() if size < folds}
    if small:
        shown = ", ".join(f"{label!r}: {size}" for label, size in list(small.items())[:5])
        raise UserError(
            f"{folds} folds need {folds} rows of every class; {target!r} of {path} has "
            f"{len(small)} classes with fewer ({shown}). Merge or remove them, or ask for fewer "
            f"folds with --folds."
        )
    n = sum(sizes.values())
    if _n_valid(n, folds) < len(sizes):
        needed = next(enough for enough in count(n) if _n_valid(enough, folds) >= len(sizes))
        raise UserError(
            f"{n} rows of {path} give a validation part of {_n_valid(n, folds)}, too few for "
            f"{len(sizes)} classes of {target!r}. {needed} rows are needed; or merge classes."
        )


def _n_valid(n: int, folds: int) -> int:
    """Rows of the validation part: a tenth of what the largest test fold leaves."""
    return math.ceil(VALID_SIZE * (n - math.ceil(n / folds)))


def _note_words(y: pd.Series[Any], notes: list[str]) -> None:
    sizes = y.value_counts()
    words = {label: sizes[label] for label in sizes.index if label in GAPS_OR_CLASSES}
    for label, size in words.items():
        notes.append(f"label {label!r} taken as a class of {size} rows, not as missing")


def _note_rare(y: pd.Series[Any], notes: list[str]) -> None:
    """Stratified rounding gives a class less than half a validation row: it may have none.

    Told for the protocol's five folds; the number of folds is no property of the table.
    """
    sizes = y.value_counts()
    rare = sizes[sizes * (1 - 1 / FOLDS) * VALID_SIZE < 0.5]
    if len(rare):
        notes.append(f"too rare to be sure of a validation row: {_listed(rare.index)}")


def _check_not_regression(path: Path, target: str, y: pd.Series[Any], n_classes: int) -> None:
    numeric = pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y)
    fractions = numeric and bool((y.astype(float) % 1 != 0).any())
    if n_classes > MAX_CLASSES or (fractions and n_classes > max(10, len(y) / 10)):
        kind = "numbers" if numeric else "texts"
        raise UserError(
            f"{target!r} of {path} has {n_classes} different {kind} in {len(y)} rows: it looks "
            f"like {'a measurement' if numeric else 'an identifier'}, and classes are needed. "
            f"Name another column with --target, or put the values into a few groups."
        )


# --- the features -----------------------------------------------------------------------------


def _numbers(path: Path, frame: pd.DataFrame, notes: list[str]) -> np.ndarray[Any, Any]:
    """All features as float64, or a complaint that names the columns."""
    text: list[object] = []
    parsed: list[object] = []
    flags: list[object] = []
    columns: dict[str, Any] = {}
    for name, dtype in frame.dtypes.items():
        if isinstance(dtype, np.dtype) and dtype.kind in "iuf":
            continue
        column = frame[name]
        if pd.api.types.is_bool_dtype(column) and not column.isna().any():
            flags.append(name)
            columns[name] = column.astype(float)
        elif not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_complex_dtype(column):
            numbers = _parsed(column)
            (text if numbers is None else parsed).append(name)
            if numbers is not None:
                columns[name] = numbers
    if text:
        raise UserError(
            f"{path} has {len(text)} columns that are not numbers: {_listed(text)}. Leave them out "
            f"with --drop, or encode them before (one column per category, points for decimals)."
        )
    if parsed:
        notes.append(f"numbers written as text: {_listed(parsed)}")
    if flags:
        notes.append(f"true and false as 1 and 0: {_listed(flags)}")
    frame = frame.assign(**columns) if columns else frame
    X: np.ndarray[Any, Any] = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    _check_finite(path, frame.columns, X)
    _check_scalable(path, frame.columns, X)
    return X


def _parsed(column: pd.Series[Any]) -> pd.Series[Any] | None:
    """A column of texts as numbers, or None if one of them is something else."""
    if not (
        column.dtype == object or isinstance(column.dtype, pd.StringDtype | pd.CategoricalDtype)
    ):
        return None
    given = column.notna()
    numbers = pd.to_numeric(column.astype(str).str.strip().where(given), errors="coerce")
    return None if bool((numbers.isna() & given).any()) else numbers.astype(float)


def _check_finite(path: Path, names: pd.Index, X: np.ndarray[Any, Any]) -> None:
    no_gaps = "The protocol imputes nothing: fill the gaps, or remove the rows or columns (--drop)"
    for what, bad, remedy in (
        ("missing", np.isnan, no_gaps),
        ("infinite", np.isinf, "Remove or replace them"),
    ):
        counts = bad(X).sum(axis=0)
        worst = np.flatnonzero(counts)
        if len(worst):
            shown = ", ".join(f"{names[j]!r}: {counts[j]}" for j in worst[:5])
            more = f" and {len(worst) - 5} more" if len(worst) > 5 else ""
            raise UserError(
                f"{path} has {counts.sum()} {what} values in {len(worst)} columns ({shown}{more}). "
                f"{remedy}."
            )


def _check_scalable(path: Path, names: pd.Index, X: np.ndarray[Any, Any]) -> None:
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
            f"{path} has {len(found)} columns with a value that is out of range for single "
            f"precision when scaled by the other values ({shown}{more}). Correct it, change the "
            f"unit or take logarithms; or leave the columns out with --drop."
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


def _note_ids(names: Sequence[str], X: np.ndarray[Any, Any], notes: list[str]) -> None:
    """Name columns that number the rows: kept, but they hold nothing to learn."""
    # The first rows rule out nearly all columns, so that no second copy of X is made.
    suspects = np.flatnonzero((np.diff(X[:5], axis=0) == 1).all(axis=0)).tolist()
    ids = [names[j] for j in suspects if (np.diff(X[:, j]) == 1).all()]
    if ids:
        notes.append(f"columns that only number the rows were kept: {_listed(ids)}")


def _listed(names: Iterable[object], at_most: int = 8) -> str:
    shown = [repr(str(name)) for name in names]
    more = f" and {len(shown) - at_most} more" if len(shown) > at_most else ""
    return ", ".join(shown[:at_most]) + more
