"""The data behind a reference: a registered dataset, or a user's own table."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import numpy as np

from benchmark.data.checks import read
from benchmark.data.dataset import Dataset, make
from benchmark.data.getting import fetch
from benchmark.data.places import as_path, locate
from benchmark.datasets import download
from benchmark.protocol.plan import Protocol
from benchmark.protocol.registry import check_name, datasets
from benchmark.protocol.spec import (
    FOLDS,
    REPEATS,
    VALID_SIZE,
    DataRef,
    MissingData,
    UserError,
    canonical,
)
from benchmark.protocol.splits import GROUPING, make_split


def load(ref: DataRef) -> Dataset:
    """The dataset behind a reference; a few are kept in memory per process."""
    places = [os.environ.get(name) for name in ("BENCHMARK_DATA", "BENCHMARK_CACHE")]
    return _load(_key(ref), *places)


def check(ref: DataRef) -> None:
    """Raise unless the data can be had here. Keeps nothing in memory, unlike `load`."""
    _load.__wrapped__(_key(ref))


def _key(ref: DataRef) -> str:
    return canonical(ref.to_dict())


@lru_cache(maxsize=4)
def _load(key: str, *_places: str | None) -> Dataset:
    ref = DataRef(**json.loads(key))
    if ref.path is not None:
        return _load_own(ref)
    check_name("dataset", ref.name, datasets())
    entry = datasets()[ref.name]
    location = locate(ref.name) or fetch(entry, progress=sys.stderr.isatty())
    return read(entry, location, ref.options)


class How(TypedDict, total=False):
    """What a user may ask for beside the columns to predict and to leave out."""

    id: str | None
    groups: str | None
    split: str | None
    test: Path | str | None
    valid_size: float | None
    min_class: int | None
    transpose: bool
    impute: Literal["median"] | None
    encode: Literal["onehot"] | None


_READ = (
    "drop",
    "id",
    "groups",
    "split",
    "min_class",
    "transpose",
    "impute",
    "encode",
    "valid_size",
)
"""Options that say how the files are read."""


def own_table(
    path: Path | str,
    target: str | None,
    drop: Iterable[str] = (),
    folds: int | None = FOLDS,
    repeats: int = REPEATS,
    fewer: bool = True,
    **how: Unpack[How],
) -> DataRef:
    """A reference to the user's table, after reading and checking it once.

    The classes are checked against `folds`, which is no part of what the reference stands for: see
    `check_splits`.
    """
    _check_how(how)
    file = as_path(path)
    check_file(file)
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", file.name.partition(".")[0]).strip("-") or "table"
    if name in datasets():
        name = f"own-{name}"
    # Only what was asked for is part of the identity, so that later options change no older key.
    asked: dict[str, Any] = {k: v for k, v in how.items() if v is not None and v is not False}
    options: dict[str, Any] = {"target": target, "sha256": download.sha256_of(file)}
    if drop := sorted(set(drop)):
        options["drop"] = drop
    second = None
    if "test" in asked:
        second = as_path(asked.pop("test"))
        check_file(second)
        options["test"] = download.sha256_of(second)
        if options["test"] == options["sha256"]:
            raise UserError(
                f"{second} has the same content as {file}: every row would be trained on and tested. "
                f"--test takes rows that are not in --data."
            )
    if "groups" in asked:
        options["grouping"] = GROUPING
    ref = DataRef(
        name, options | asked, str(file.resolve()), str(second.resolve()) if second else None
    )
    check_splits(ref, folds, repeats, fewer)
    return ref


def _check_how(how: How) -> None:
    if how.get("test") is not None and how.get("split") is not None:
        raise UserError(
            f"--test {how['test']} and --split {how['split']} both say which rows are for testing. Give "
            f"one of them."
        )
    valid_size, min_class = how.get("valid_size"), how.get("min_class")
    if valid_size is not None and not 0 < valid_size <= MOST_VALID:
        raise UserError(
            f"--valid-size is the share of the rows outside the test part that validate, above 0 and at "
            f"most {MOST_VALID}, got {valid_size:g}."
        )
    if min_class is not None and min_class < 1:
        raise UserError(f"--min-class is a number of rows, at least 1, got {min_class}.")
    for option, known in (("impute", ["median"]), ("encode", ["onehot"])):
        if (word := how.get(option)) is not None:
            check_name(f"word for --{option}", str(word), known)


MOST_VALID = 0.5
"""Beyond it more rows would validate than train."""


def check_splits(ref: DataRef, folds: int | None, repeats: int, fewer: bool) -> None:
    """Better told now than by the runs: can the rows of an own table be split at all?

    Without folds they are split once, for a model that is to be kept. `fewer` is whether fewer folds
    can be asked for, which a message must not advise otherwise.
    """
    from benchmark.datasets import table

    file, target, data = Path(str(ref.path)), str(ref.options["target"]), load(ref)
    valid_size = ref.options.get("valid_size", VALID_SIZE)
    folded = None if data.test is not None else folds
    rows = data.y if data.test is None else data.y[~data.test]
    sizes = dict(zip(data.classes, np.bincount(rows).tolist(), strict=True))
    if data.groups is None:
        table.check_folds(file, target, sizes, folded, valid_size, fewer)
    elif folded is not None:
        groups = {
            name: len(np.unique(data.groups[data.y == code]))
            for code, name in enumerate(data.classes)
        }
        table.check_groups(file, target, groups, folded, fewer)
    # Only where rows are not drawn one by one can some splits fail and others not.
    several = data.groups is not None or data.gaps
    for repeat, fold in Protocol(repeats, folds).splits() if folds and several else [(0, 0)]:
        try:
            split = make_split(data.y, repeat, fold, folds, valid_size, data.groups, data.test)
        except UserError as error:
            raise UserError(f"{file}: {error}") from error
        empty = np.isnan(data.X[split.train]).all(axis=0) if data.gaps else np.array([])
        names = [data.features[j] for j in np.flatnonzero(empty)]
        if names := [name for name in names if name not in data.categories]:
            where = f"in repeat {repeat}, fold {fold} " if folds else ""
            raise UserError(
                f"{file}: {where}no training row has a value of {names[0]!r}, so --impute has no "
                f"median for it. Leave the column out with --drop."
            )


def check_file(file: Path) -> None:
    try:
        mode = file.stat().st_mode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"There is no file {file} ({reason}).") from error
    if stat.S_ISDIR(mode):
        raise UserError(f"{file} is a folder. Name the table in it, as in {file / 'table.csv'}.")
    if not stat.S_ISREG(mode):
        raise UserError(
            f"{file} is a pipe or a device, not a file. It is read several times, so save the table "
            f"to a file first."
        )


def _load_own(ref: DataRef) -> Dataset:
    from benchmark.datasets import table

    for path, sha256 in ref.files.values():
        if not Path(path).is_file():
            raise MissingData(f"The table {path} is no longer there.")
        found = download.sha256_of(Path(path))
        if found != sha256:
            raise UserError(
                f"The table {path} has changed: SHA-256 {found[:12]}, planned {sha256[:12]}. Restore it, "
                f"or start the runs anew with --data."
            )
    file, test = Path(str(ref.path)), Path(ref.test_path) if ref.test_path else None
    asked = {name: ref.options[name] for name in _READ if name in ref.options}
    raw = table.read(file, target=ref.options["target"], test=test, **asked)
    return make(ref.name, raw, f"own table: {file.name}{f' with {test.name}' if test else ''}")
