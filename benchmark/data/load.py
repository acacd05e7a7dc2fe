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
from typing import Any

import numpy as np

from benchmark.data.checks import read
from benchmark.data.dataset import Dataset, make
from benchmark.data.getting import fetch
from benchmark.data.places import as_path, locate
from benchmark.datasets import download
from benchmark.protocol.registry import check_name, datasets
from benchmark.protocol.spec import FOLDS, DataRef, MissingData, UserError, canonical


def load(ref: DataRef) -> Dataset:
    """The dataset behind a reference; a few are kept in memory per process."""
    places = [os.environ.get(name) for name in ("BENCHMARK_DATA", "BENCHMARK_CACHE")]
    return _load(_key(ref), *places)


def check(ref: DataRef) -> None:
    """Raise unless the data can be had here. Keeps nothing in memory, unlike `load`."""
    _load.__wrapped__(_key(ref))


def _key(ref: DataRef) -> str:
    return canonical({"name": ref.name, "options": ref.options, "path": ref.path})


@lru_cache(maxsize=4)
def _load(key: str, *_places: str | None) -> Dataset:
    ref = DataRef(**json.loads(key))
    if ref.path is not None:
        return _load_own(ref)
    check_name("dataset", ref.name, datasets())
    entry = datasets()[ref.name]
    location = locate(ref.name) or fetch(entry, progress=sys.stderr.isatty())
    return read(entry, location, ref.options)


def own_table(
    path: Path | str,
    target: str | None,
    drop: Iterable[str] = (),
    folds: int = FOLDS,
    id: str | None = None,
) -> DataRef:
    """A reference to the user's table, after reading and checking it once.

    The classes are checked against `folds`, which is no part of what the reference stands for.
    """
    from benchmark.datasets import table

    file = as_path(path)
    _check_file(file)
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", file.name.partition(".")[0]).strip("-") or "table"
    if name in datasets():
        name = f"own-{name}"
    options: dict[str, Any] = {"target": target, "sha256": download.sha256_of(file)}
    if drop := sorted(drop):
        options["drop"] = drop
    if id is not None:
        options["id"] = id
    ref = DataRef(name, options, str(file.resolve()))
    loaded = load(ref)
    sizes = dict(zip(loaded.classes, np.bincount(loaded.y).tolist(), strict=True))
    table.check_folds(file, str(target), sizes, folds)
    return ref


def _check_file(file: Path) -> None:
    try:
        mode = file.stat().st_mode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"There is no file {file} ({reason}).") from error
    if stat.S_ISDIR(mode):
        raise UserError(f"{file} is a folder. Name the table in it: --data {file}/table.csv.")
    if not stat.S_ISREG(mode):
        raise UserError(
            f"{file} is a pipe or a device, not a file. It is read several times, so save the table "
            f"to a file first."
        )


def _load_own(ref: DataRef) -> Dataset:
    from benchmark.datasets import table

    file = Path(str(ref.path))
    if not file.is_file():
        raise MissingData(f"The table {file} is no longer there.")
    found = download.sha256_of(file)
    if found != ref.options["sha256"]:
        raise UserError(
            f"The table {file} has changed: SHA-256 {found[:12]}, planned "
            f"{ref.options['sha256'][:12]}. Restore it, or start the runs anew with --data."
        )
    raw = table.read(file, target=ref.options["target"], drop=ref.options.get("drop", ()))
    return make(ref.name, raw, f"own table: {file.name}")
