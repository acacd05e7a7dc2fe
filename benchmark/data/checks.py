"""From files to a checked dataset.

A dataset's name stands for one X and one y: their hash is in the registry and is compared after
loading. A file whose content is the reference is accepted, whatever its own hash. So are the same rows
in another order, which are put in order, and the same rows to rounding (re-saved, other precision),
which count as the reference; a note says so. Anything else is an error that names what was expected
and found.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmark.data import reference
from benchmark.data.dataset import Codes, Dataset, Floats, content_hash, make, with_notes
from benchmark.data.places import Location
from benchmark.datasets import download
from benchmark.datasets.raw import Raw
from benchmark.protocol.registry import DatasetEntry
from benchmark.protocol.spec import UserError


def read(entry: DatasetEntry, location: Location, options: Mapping[str, Any]) -> Dataset:
    """Read the files, code the labels, check the result."""
    module, _, function = entry.reader.partition(":")
    reader = getattr(importlib.import_module(f"benchmark.datasets.{module}"), function)
    switches = {key: values[0] for key, values in entry.switches.items()}
    try:
        raw: Raw = reader(location.paths, **{**entry.options, **switches, **options})
    except UserError:
        raise
    except Exception as error:  # a damaged file makes the parsers raise almost anything
        raise UserError(
            f"Dataset {entry.name!r}: cannot read {location.source}: {error}\n"
            f"The file is damaged or of another form. {entry.how_to_get}"
        ) from error
    dataset = make(entry.name, raw, location.source)
    variant = next((entry.variants[v] for v in options.values() if v in entry.variants), {})
    return check(entry, variant, dataset, raw.derived, location)


def probe(X: Floats, y: Codes) -> tuple[float, float, float]:
    """Three numbers that any change of values, of row order or of column order moves."""
    n, d = X.shape
    rows, columns = np.cos(np.arange(n)), np.sin(np.arange(d))
    return float(X.mean()), float(rows @ X @ columns / np.sqrt(n * d)), float(rows @ y)


def check(
    entry: DatasetEntry,
    variant: Mapping[str, Any],
    dataset: Dataset,
    derived: bool,
    location: Location,
) -> Dataset:
    """Compare with the registry: an error if this is other data, notes if it deserves a remark."""
    found = dict(zip(dataset.classes, np.bincount(dataset.y).tolist(), strict=True))
    expected = variant.get("classes", entry.classes)
    shape = dataset.X.shape
    if derived:
        if shape[0] != entry.shape[0]:
            raise UserError(_other_data(entry, location, f"{shape[0]} samples", entry.shape[0]))
        notes = [
            f"{what} differ from the paper's: {got} instead of {want}"
            for what, got, want in [
                ("features", shape[1], entry.shape[1]),
                ("class sizes", list(found.values()), list(expected.values())),
            ]
            if got != want
        ]
        return with_notes(dataset, notes)
    if shape != entry.shape:
        raise UserError(_other_data(entry, location, f"shape {shape}", entry.shape))
    if sorted(found.values()) != sorted(expected.values()):
        raise UserError(_other_data(entry, location, f"class sizes {found}", expected))
    return _compare_content(entry, variant.get("content", entry.content), dataset, location)


def _compare_content(
    entry: DatasetEntry, content: str, dataset: Dataset, location: Location
) -> Dataset:
    """Is it the reference data, nearly the reference data, or something else?"""
    if dataset.sha256 == content:
        return dataset
    if not content:
        return with_notes(dataset, _other_blobs(location))
    rows = reference.known(entry.name)
    if rows and (same := reference.in_order(dataset, rows, tuple(entry.classes))):
        return _as_reference(same, content)
    if rows is None and entry.probe and _near(dataset, entry.probe):
        return with_notes(dataset, ["agrees with the reference data to rounding, not bit for bit"])
    if _registered(location):
        remark = "not the reference data, so that its runs cannot stand beside shipped ones: "
        return with_notes(dataset, [remark + f"content {dataset.sha256[:12]}, not {content[:12]}"])
    raise UserError(_other_content(entry, content, dataset, location))


def _near(dataset: Dataset, expected: Sequence[float]) -> bool:
    return np.allclose(probe(dataset.X, dataset.y), expected, rtol=1e-6, atol=1e-5)


def _as_reference(dataset: Dataset, content: str) -> Dataset:
    """The same rows, in order: a record names them by the reference's hash, and says what was done.

    Rounding changes a run by no more than another machine does, and its records are comparable.
    """
    own = content_hash(dataset.X, dataset.y)
    if own == content:
        note = "rows or class names brought into the order of the reference"
    else:
        note = f"agrees with the reference data to rounding, not bit for bit (content {own[:12]})"
    return with_notes(replace(dataset, sha256=content), [note])


def _registered(location: Location) -> bool:
    """Whether every file is a registered one, byte for byte."""
    named = {"sha256": download.sha256_of, "git_blob": download.git_blob_of}
    return bool(location.paths) and all(
        any(location.files.get(role, {}).get(k) == of(path) for k, of in named.items())
        for role, path in location.paths.items()
    )


def _other_content(entry: DatasetEntry, content: str, dataset: Dataset, location: Location) -> str:
    hashes = {role: download.sha256_of(path) for role, path in location.paths.items()}
    registered = {role: location.files.get(role, {}).get("sha256") for role in hashes}
    if any(want and want != hashes[role] for role, want in registered.items()):
        got = ", ".join(hashes.values())
        want = ", ".join(str(value) for value in registered.values())
        return _other_data(entry, location, f"other values (file SHA-256 {got})", f"SHA-256 {want}")
    found = f"other values, also with its rows in another order (content {dataset.sha256[:12]})"
    return _other_data(entry, location, found, f"content {content[:12]}")


def _other_blobs(location: Location) -> list[str]:
    """Where the reference is known by its file alone: a note on every file that is another one."""
    registered = {role: location.files.get(role, {}).get("git_blob") for role in location.paths}
    return [
        f"{path.name} is not the registered file (git blob id {found}, expected {registered[role]})"
        for role, path in location.paths.items()
        if registered[role] and (found := download.git_blob_of(path)) != registered[role]
    ]


def _other_data(entry: DatasetEntry, location: Location, found: str, expected: object) -> str:
    places = ", ".join(str(path) for path in location.paths.values()) or location.place
    return (
        f"Dataset {entry.name!r}: {places} has {found}, expected {expected}.\n"
        f"It is another version of the data, or damaged. Remove it, or use it as your own table. "
        f"{entry.how_to_get}"
    )
