"""What columns are for: target, samples' names, groups, an external test set."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark.protocol.spec import UserError
from benchmark.text import counted

from .features import words_of
from .files import Known, read_one
from .names import label, listed


def find_target(path: Path, frame: pd.DataFrame, target: str | None) -> str:
    names = [str(name) for name in frame.columns]
    frame.columns = pd.Index(names)
    if not target:
        raise UserError(
            f"Say which column of {path} is to be predicted: --target NAME. "
            f"The columns are {listed(names)}."
        )
    if target in names:
        return target
    raise UserError(f"{path} has no column {target!r} to predict. {_hint(target, names)}")


def _hint(wrong: str, names: Sequence[str]) -> str:
    """The columns that may have been meant, else all of them."""
    near = difflib.get_close_matches(wrong, names, n=3, cutoff=0.5)
    near += [name for name in names if name.lower() == wrong.lower() and name not in near]
    return f"Did you mean {listed(near)}?" if near else f"The columns are {listed(names)}."


def without_dropped(
    path: Path, frame: pd.DataFrame, target: str, drop: Collection[str], notes: list[str]
) -> pd.DataFrame:
    if target in drop:
        raise UserError(
            f"--drop and --target both name the column {target!r}, which is the one to predict. Leave it "
            f"out of --drop."
        )
    unknown = [name for name in drop if name not in frame.columns]
    if unknown:
        named = "column" if len(unknown) == 1 else "columns"
        raise UserError(
            f"{path} has no {named} {listed(unknown)} for --drop. "
            f"{_hint(unknown[0], list(frame.columns))}"
        )
    if drop:
        notes.append(f"columns left out on request: {listed(drop)}")
    if len(frame.columns) - len(drop) < 2:
        raise UserError(f"{path} has no feature besides the target {target!r}.")
    return frame.drop(columns=list(drop))


def check_roles(drop: Collection[str], **columns: str | None) -> None:
    """A column that is no feature is one thing only."""
    named = dict.fromkeys(drop, "drop")
    for role, column in columns.items():
        if column is not None and column in named:
            raise UserError(
                f"--{named[column]} and --{role} both name the column {column!r}; they need different "
                f"ones."
            )
        if column is not None:
            named[column] = role


def _taken(path: str, frame: pd.DataFrame, column: str, option: str) -> pd.Series[Any]:
    """Take a column out of the table that the option names and that is no feature."""
    if column not in frame.columns:
        hint = _hint(column, list(frame.columns))
        raise UserError(f"{path} has no column {column!r} for {option}. {hint}")
    values = frame.pop(column)
    texts = values.map(lambda value: value if pd.isna(value) else label(value))
    texts = texts.mask(texts == "")
    if missing := int(texts.isna().sum()):
        raise UserError(
            f"{path} has {counted(missing, 'row')} of {len(texts)} without {column!r}, which {option} "
            f"needs in every row. Fill them in, or remove these rows."
        )
    return texts


def ids_of(path: str, frame: pd.DataFrame, id: str, target: str | None) -> list[str]:
    """Take the column with the samples' names out of the table."""
    if id not in frame.columns or id == target:
        raise UserError(
            f"{path} has no column {id!r} with the samples' names besides the target. The columns are "
            f"{listed(frame.columns)}."
        )
    column = frame.pop(id)
    if empty := int(column.isna().sum()):
        raise UserError(
            f"{path} has {counted(empty, 'row')} of {len(column)} without {id!r}, which names the samples. "
            f"Fill them in, or remove these rows."
        )
    names = [label(name) for name in column.to_list()]
    twice = (
        sorted({name for name in names if names.count(name) > 1})
        if len(set(names)) < len(names)
        else []
    )
    if twice:
        raise UserError(
            f"{id!r} of {path} names several rows {listed(twice)}; every sample needs its own."
        )
    return names


def groups_of(path: str, frame: pd.DataFrame, column: str) -> list[str]:
    # A spreadsheet writes 1 as 1.0 where a cell is empty; 1.1 and 1.10 are two patients.
    names = _taken(path, frame, column, "--groups")
    groups = [re.sub(r"^(\d+)\.0+$", r"\1", str(name)) for name in names]
    if len(set(groups)) == 1:
        raise UserError(
            f"All rows of {path} have {column!r} = {groups[0]!r}: a single group cannot be divided into "
            f"training and test. Name the column that tells patients apart."
        )
    return groups


def tested_by(path: str, frame: pd.DataFrame, column: str) -> np.ndarray[Any, Any]:
    """The rows that a column calls test rows."""
    words = _taken(path, frame, column, "--split").str.lower()
    others = sorted(set(words) - {"train", "test"})
    if others:
        raise UserError(
            f"{column!r} of {path} has to say train or test in every row (--split); it has "
            f"{listed(others)}. Rewrite it, or use --groups if it names centres or patients."
        )
    if words.nunique() == 1:
        raise UserError(
            f"{column!r} of {path} says {words.iloc[0]!r} in all rows; --split needs train and test."
        )
    return np.array(words == "test")


def with_test(
    path: Path,
    frame: pd.DataFrame,
    test: Path,
    known: Known,
    target: str,
    drop: Collection[str],
    transpose: bool,
    notes: list[str],
) -> tuple[pd.DataFrame, np.ndarray[Any, Any], list[str]]:
    """The rows of both files, which are those of the second, and the names that these have."""
    other, samples = read_one(test, known, transpose, [], tested=True)
    if target not in other.columns:
        raise UserError(
            f"{test} has no column {target!r}, which says the class in {path}, so nothing can be scored "
            f"on its rows. Add it; or keep a model with `fit`, and `predict` gives the classes of such rows."
        )
    missing = [name for name in frame.columns if name not in other.columns]
    if missing:
        raise UserError(
            f"{test} has no {'column' if len(missing) == 1 else 'columns'} {listed(missing)}: "
            f"{len(missing)} of those of {path}. A test set has "
            f"the same columns, in any order; leave out with --drop what only one of them has."
        )
    taken = {*frame.columns, *drop}
    extra = [name for name in other.columns if name not in taken]
    if extra:
        notes.append(f"columns that only {test.name} has are left out: {listed(extra)}")
    other = other[list(frame.columns)]
    here, there = words_of(frame), words_of(other)
    frame = _as_written(path, frame, there - here, known, transpose)
    other = _as_written(test, other, here - there, known, transpose)
    both = pd.concat([frame, other], keys=[path.name, test.name])  # which messages name
    return both, np.arange(len(both)) >= len(frame), samples or []


def _as_written(
    path: Path, frame: pd.DataFrame, words: set[str], known: Known, transpose: bool
) -> pd.DataFrame:
    """The table with these columns as texts, because they are texts in the file that it is joined with."""
    if not words:
        return frame
    again, _ = read_one(path, replace(known, words=known.words | words), transpose, [], tested=True)
    return pd.concat([frame.drop(columns=list(words)), again[sorted(words)]], axis=1)[frame.columns]


def check_tested(
    path: str,
    target: str,
    y: pd.Series[Any],
    tested: np.ndarray[Any, Any],
    groups: Sequence[str] | None,
    notes: list[str],
) -> None:
    """Test rows of known classes, and of groups that are not trained on."""
    names = y.map(label).to_numpy()
    unknown = sorted(set(names[tested]) - set(names[~tested]))
    if unknown:
        raise UserError(
            f"{target!r} of {path}: {counted(int(np.isin(names[tested], unknown).sum()), 'test row')} of "
            f"classes that no training row has: {listed(unknown)}. Correct the labels, or leave such rows out "
            f"with --min-class 1."
        )
    absent = sorted(set(names[~tested]) - set(names[tested]))
    if absent:
        notes.append(
            f"classes without a test row, which the scores cannot tell of: {listed(absent)}"
        )
    if groups is not None:
        named = np.array(groups)
        both = sorted(set(named[tested]) & set(named[~tested]))
        if both:
            raise UserError(
                f"{path}: {counted(len(both), 'group')} with rows for training and for testing: "
                f"{listed(both)}. "
                f"Such a test would be too easy; remove these rows from one side."
            )


def common(
    path: str,
    target: str,
    y: pd.Series[Any],
    tested: np.ndarray[Any, Any] | None,
    least: int,
    notes: list[str],
) -> np.ndarray[Any, Any]:
    """The rows of classes that have enough rows to train on."""
    names = y.map(label)
    sizes = names[~tested if tested is not None else slice(None)].value_counts()
    rare = {name: int(sizes.get(name, 0)) for name in sorted(set(names))}
    rare = {name: size for name, size in rare.items() if size < least}
    if names.nunique() - len(rare) < 2:
        shown = ", ".join(f"{name!r}: {size}" for name, size in list(sizes.items())[:5])
        raise UserError(
            f"--min-class {least} leaves {names.nunique() - len(rare)} of the {names.nunique()} classes of "
            f"{target!r} in {path}, and two are needed. The largest have {shown} rows; choose a smaller "
            f"number."
        )
    if rare:
        shown = ", ".join(f"{name!r} ({size})" for name, size in list(rare.items())[:8])
        more = f" and {len(rare) - 8} more" if len(rare) > 8 else ""
        notes.append(
            f"{counted(int(names.isin(list(rare)).sum()), 'row')} left out, of classes with fewer than "
            f"{counted(least, 'row')} to train on: {shown}{more}"
        )
    kept: np.ndarray[Any, Any] = ~names.isin(list(rare)).to_numpy()
    return kept


def some(values: list[str] | None, kept: np.ndarray[Any, Any]) -> list[str] | None:
    return None if values is None else [v for v, keep in zip(values, kept, strict=True) if keep]
