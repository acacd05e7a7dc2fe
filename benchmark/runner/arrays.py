"""Arrays beside a record: an .npz file, which may be anything by the time it is read back."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmark.files import Unreadable, read_whole

LARGEST = 1 << 30
"""Bytes, packed or not: as many as a worker's answer can bring."""


def read(path: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays of a record's run, by name; none if there is no file. Else Unreadable."""
    try:
        arrays = unpack(read_whole(path, LARGEST))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from error
    if not _fit(arrays, record):
        raise Unreadable("holds other arrays than those of its record's run")
    return arrays


def unpack(content: bytes) -> dict[str, Any]:
    """The arrays of an .npz file; Unreadable says why there are none."""
    import numpy as np

    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
        # A small file can unpack into a full memory.
        if size <= LARGEST:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
    except Exception as error:  # parsers raise almost anything on another form
        raise Unreadable(f"holds no arrays ({type(error).__name__}: {error})") from error
    if size > LARGEST:
        raise Unreadable(f"unpacks into more than {LARGEST >> 20} MB")
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise Unreadable("holds something else than arrays")
    return arrays


def _fit(arrays: Mapping[str, Any], record: Mapping[str, Any]) -> bool:
    """Whether they are of its rows, classes and features: who uses them relies on it."""
    (n_rows, n_features), classes = record["data"]["shape"], record["data"]["classes"]
    tested = getattr(arrays.get("rows"), "size", -1)
    shapes: dict[str, tuple[str, list[tuple[int, ...]]]] = {
        "rows": ("i", [(tested,)]),
        "proba": ("f", [(tested, classes), (tested, 0)]),
        "predicted": ("i", [(tested,)]),
        "selected": ("u", [(tested, math.ceil(n_features / 8))]),
        "n_features": ("i", [()]),
    }
    for name, array in arrays.items():
        kind, possible = shapes.get(name, (array.dtype.kind, [array.shape]))
        if array.dtype.kind != kind or array.shape not in possible:
            return False
    limits = {"rows": n_rows, "predicted": classes}
    return ("proba" in arrays) == ("predicted" in arrays) and all(
        arrays[name].min(initial=0) >= 0 and arrays[name].max(initial=0) < limit
        for name, limit in limits.items()
        if name in arrays
    )
