"""From a file to a table with a row per sample: csv, tsv, parquet, arff, mat and npz, also transposed."""

from __future__ import annotations

import csv
import gzip
import math
import re
import sys
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from benchmark.datasets import arff

from benchmark.protocol.spec import UserError
from benchmark.text import counted

from .labels import note_blanks
from .names import GAPS, GAPS_OR_CLASSES, listed

LARGE = 10_000_000
"""Bytes from which a remark on the waiting time is due."""

MAX_DENSE = 2e9
"""Bytes up to which a sparse matrix is filled with its zeros: models take dense ones."""


@dataclass(frozen=True)
class Known:
    """Columns whose types are not guessed: what a text file has there is taken as it is written.

    `01` and `1` are two patients, and in another file the same categories may all look like numbers.
    """

    target: str | None = None
    """Its labels become numbers where all of them are some."""
    id: str | None = None
    """Its values are names, also `NA`."""
    words: frozenset[str] = frozenset()
    """Texts, also where all of them look like numbers."""


def read_one(
    path: Path, known: Known, transpose: bool, notes: list[str], tested: bool = False
) -> tuple[pd.DataFrame, list[str] | None]:
    """A file as a table with a row per sample, and the samples' names where they stand beside it.

    `tested` is a test set, which is read as the table that it belongs to.
    """
    size = path.stat().st_size
    if size == 0:
        raise UserError(f"{path} is empty.")
    if size > LARGE:
        print(f"Reading {path.name} ({size / 1e6:.0f} MB), please wait.", file=sys.stderr)
    frame = _without_empty(_read_frame(path, known, transpose, notes), notes)
    if transpose and not _holds_arrays(path):
        _check_columns(path, frame)
        return _transposed(path, frame, known)
    first = frame.iloc[:, 0]
    frame, samples = _without_index(frame, notes)
    _check_columns(path, frame)
    frame.columns = pd.Index([str(name) for name in frame.columns])
    if not tested:
        _hint_transpose(path, frame, first, known.target)
    return frame, samples


def _holds_arrays(path: Path) -> bool:
    return path.suffix.lower() in (".mat", ".npz")


def _read_frame(path: Path, known: Known, transpose: bool, notes: list[str]) -> pd.DataFrame:
    """One column per feature, and the target among them; transposed, a text file as it is written."""
    text = _read_words if transpose else partial(_read_text, known=known, notes=notes)
    readers: dict[str, Callable[[Path], pd.DataFrame]] = {
        ".csv": text,
        ".tsv": text,
        ".txt": text,
        ".parquet": _read_parquet,
        ".arff": arff.read,
        ".mat": lambda path: _from_arrays(path, _read_mat(path), known.target, transpose, notes),
        ".npz": lambda path: _from_arrays(path, _read_npz(path), known.target, transpose, notes),
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
        raise UserError(
            f"{path} has {counted(len(frame), 'row')} and {counted(frame.shape[1], 'column')}; a row per "
            f"sample is needed, and a column per feature."
        )
    return frame


def _read_parquet(path: Path) -> pd.DataFrame:
    """With an index that has a name as columns: it may be the target, or a feature. One of texts
    without a name stands before them, as in a text file."""
    frame = pd.read_parquet(path)
    named = [name for name in frame.index.names if name is not None]
    if named and not set(named) & set(frame.columns):
        frame = frame.reset_index(level=named)
    if frame.index.names == [None] and not pd.api.types.is_numeric_dtype(frame.index):
        frame.insert(0, "", frame.index, allow_duplicates=True)
    return frame.reset_index(drop=True)


def _separated(path: Path) -> tuple[str, list[str]]:
    """What separates a text file's columns, whichever the first line has most of, and their names."""
    opener = gzip.open if path.suffix == ".gz" else Path.open
    with opener(path, "rb") as lines:
        header = lines.readline(1_000_000)
        while header.isspace():  # pandas skips blank lines, too
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
    first = header.decode("utf-8-sig", errors="replace").strip()
    comment = first.startswith("# ") and not any(sign in first for sign in ",;\t")
    if comment or first.lower().startswith("sep="):
        raise UserError(
            f"The first line of {path} is {first[:40]!r}, where the names of the columns belong. Remove it."
        )
    separator = max(",;\t", key=header.decode("utf-8", errors="replace").count)
    # Read on its own, so that two columns of one name are seen: pandas renames the second.
    with opener(path, "rt", encoding="utf-8-sig", newline="") as lines:
        rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
        first_row = next((row for row in rows if len(row) > 1 or "".join(row).strip()), [])
        return separator, [name.strip() for name in first_row]


def _read_text(path: Path, known: Known, notes: list[str]) -> pd.DataFrame:
    """Columns with the types that their values have, unless they are known."""
    separator, names = _separated(path)
    # Read behind a sign, or pandas would take a class or a sample called "None" for a gap.
    signed = {i: "={}".format for i, name in enumerate(names) if name in (known.target, known.id)}
    words = {i: str for i, name in enumerate(names) if name in known.words and i not in signed}
    frame = _read_csv(
        path, separator, na_values=["?"], low_memory=False, converters=signed, dtype=words
    )
    frame.columns = pd.Index(names)
    for position in signed:
        written = frame.iloc[:, position].str[1:]
        if names[position] == known.target:
            note_blanks(written, notes)
        frame.isetitem(position, _named(names[position], written.str.strip(), known))
    return frame


def _named(column: str, written: pd.Series[Any], known: Known) -> pd.Series[Any]:
    """Labels, or samples' names, from the texts of a file."""
    if column == known.target and column not in known.words:
        return _text_labels(written)
    return written.mask(written.isin(GAPS))


def _read_words(path: Path) -> pd.DataFrame:
    """Everything as it is written: the types are those of rows."""
    separator, names = _separated(path)
    frame = _read_csv(path, separator, dtype=str, keep_default_na=False)
    frame.columns = pd.Index(names)
    return frame


def _read_csv(path: Path, separator: str, **words: Any) -> pd.DataFrame:
    try:
        with warnings.catch_warnings():
            # Rows longer than the header: pandas would only warn, and lose the last columns.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame: pd.DataFrame = pd.read_csv(
                path,
                sep=separator,
                encoding="utf-8-sig",
                skipinitialspace=True,
                index_col=False,
                **words,
            )
            return frame
    except pd.errors.EmptyDataError as error:
        raise UserError(f"{path} has blank lines only; a row of names comes first.") from error
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        ragged = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if ragged is None and "does not match length of data" not in str(error):
            raise
        where = f"line {ragged[2]} has {ragged[3]} values" if ragged else "rows have more values"
        than = f"and the line of names has {ragged[1]}" if ragged else "than there are names"
        raise UserError(
            f"{path} is ragged: {where} {than}. Name every column, and put texts that hold a "
            f"{separator!r} in quotes."
        ) from error


def _transposed(path: Path, frame: pd.DataFrame, known: Known) -> tuple[pd.DataFrame, list[str]]:
    """A table with a row per feature, whose first column names them, with a row per sample; and the
    samples' names, which stand above the columns."""
    names = [str(name).strip() for name in frame.iloc[:, 0]]
    twice = sorted({name for name, times in Counter(names).items() if times > 1})
    if twice:
        raise UserError(
            f"{path}, read with --transpose, has several rows named {listed(twice)}; its first column "
            f"has to name every feature once. Rename or average them."
        )
    if frame.shape[1] < 2:
        raise UserError(f"{path}, read with --transpose, has no sample: it has a single column.")
    target = known.target
    if target is not None and target not in names:
        there = target in frame.columns
        hint = (
            "It is a column: leave --transpose out." if there else f"The rows are {listed(names)}."
        )
        raise UserError(f"{path}, read with --transpose, has no row {target!r} to predict. {hint}")
    words = frame.iloc[:, 1:].to_numpy(dtype=object).T
    flat = pd.Series(words.ravel(), dtype=object).map(
        lambda word: word.strip() if isinstance(word, str) else word
    )
    gaps = flat.isna() | flat.isin(GAPS | GAPS_OR_CLASSES)
    numbers = pd.to_numeric(flat.mask(gaps), errors="coerce").to_numpy(float).reshape(words.shape)
    written = (np.isnan(numbers) & ~gaps.to_numpy().reshape(words.shape)).any(axis=0)
    columns: dict[str, Any] = {}
    plain = flat.mask(gaps).to_numpy(dtype=object).reshape(words.shape)
    for j, name in enumerate(names):
        if name in (target, known.id):
            labels = pd.Series(flat.to_numpy(dtype=object).reshape(words.shape)[:, j])
            text = all(isinstance(label, str) for label in labels)
            columns[name] = _named(name, labels, known) if text else labels
        else:
            columns[name] = plain[:, j] if written[j] or name in known.words else numbers[:, j]
    return pd.DataFrame(columns), [str(name) for name in frame.columns[1:]]


def _hint_transpose(
    path: Path, frame: pd.DataFrame, first: pd.Series[Any], target: str | None
) -> None:
    """Expression tables often have a row per gene, which shows when the target is looked for."""
    if target is None or target in frame.columns:
        return
    names = {str(name).strip() for name in first}
    if target in names:
        raise UserError(
            f"{path} has no column {target!r}, but a row of that name: it has a row per feature and a "
            f"column per sample. --transpose reads it so."
        )
    rest = frame.drop(columns=first.name, errors="ignore")
    texts = not pd.api.types.is_numeric_dtype(first) and len(names) == len(first)
    if (
        texts
        and len(frame) > frame.shape[1]
        and all(map(pd.api.types.is_numeric_dtype, rest.dtypes))
    ):
        raise UserError(
            f"{path} has no column {target!r} to predict. It looks like a table with a row per feature and "
            f"a column per sample ({len(frame)} x {frame.shape[1]}): then add a row {target!r} with the "
            f"classes, and --transpose reads it so."
        )


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
    path: Path,
    arrays: dict[str, np.ndarray[Any, Any]],
    target: str | None,
    transpose: bool,
    notes: list[str],
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
    turned = {key: value.T if transpose else value for key, value in arrays.items() if key != label}
    matrices = {key: value for key, value in turned.items() if _fits(value, len(y))}
    # Never another one in the place of an X that does not fit.
    own = next((key for key in ("X", "x") if key in turned), None)
    named = [own] if own else list(matrices)
    if len(named) != 1 or named[0] not in matrices:
        shapes = {name: value.shape for name, value in arrays.items()}
        remedy = "Leave --transpose out" if transpose else "--transpose reads it so"
        hint = f" {own} fits when turned: {remedy}." if own and _fits(turned[own].T, len(y)) else ""
        raise UserError(
            f"{path} needs a matrix of numbers called X with {len(y)} {'columns' if transpose else 'rows'}, one per label; it "
            f"holds {shapes}.{hint}"
        )
    [key] = named
    if own is None:
        notes.append(f"the features are the matrix {key!r}")
    numbers = range(1, matrices[key].shape[1] + 1)
    name = target or label
    # Labels may be called x1 as well, and would take that feature's place.
    prefix = "feature" if name in {f"x{j}" for j in numbers} else "x"
    frame = pd.DataFrame(matrices[key], columns=[f"{prefix}{j}" for j in numbers])
    frame[name] = y
    return frame


def _fits(matrix: np.ndarray[Any, Any], rows: int) -> bool:
    return matrix.ndim == 2 and len(matrix) == rows and matrix.dtype.kind in "biuf"


def _labels(values: np.ndarray[Any, Any]) -> list[Any]:
    """A column of labels; MATLAB wraps texts in arrays of their own."""
    flat = np.asarray(values).ravel()
    return [
        item.item() if isinstance(item, np.ndarray) and item.size == 1 else item for item in flat
    ]


def _without_empty(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Leave out columns without a name and without a value, as spreadsheets write beside a table."""
    empty = [
        i
        for i in np.flatnonzero(frame.columns == "").tolist()
        if (frame.iloc[:, i].isna() | (frame.iloc[:, i] == "")).all()
    ]
    if not empty or len(empty) == frame.shape[1]:
        return frame
    notes.append(f"{counted(len(empty), 'column')} without name and values left out")
    return frame.iloc[:, np.setdiff1d(np.arange(frame.shape[1]), empty)]


def _without_index(frame: pd.DataFrame, notes: list[str]) -> tuple[pd.DataFrame, list[str] | None]:
    """Leave out the nameless first column that pandas and R write for the row names: the samples'
    names, if they are texts of which none comes twice."""
    if str(frame.columns[0]) not in ("", "Unnamed: 0", "__index_level_0__") or frame.shape[1] < 2:
        return frame, None
    notes.append("nameless first column taken as row names and left out")
    first = frame.iloc[:, 0]
    unique = first.notna().all() and first.is_unique
    named = unique and not pd.api.types.is_numeric_dtype(first)
    return frame.iloc[:, 1:], [str(name).strip() for name in first] if named else None


def _check_columns(path: Path, frame: pd.DataFrame) -> None:
    twice = sorted({str(name) for name in frame.columns[frame.columns.duplicated()]})
    if twice:
        raise UserError(f"{path} has more than one column named {listed(twice)}. Rename them.")
