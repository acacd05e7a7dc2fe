"""Datasets: where a file is looked for, how it becomes X and y, and what is checked on the way.

Places, in this order: the user's data folder (BENCHMARK_DATA), the cache (BENCHMARK_CACHE),
the files that ship with the project, a download. Whichever it is, a dataset's name stands for
one X and one y: their hash is in the registry and is compared after loading.

What is accepted: a file with the registered hash; a file with another hash whose content is the
reference data, bit for bit or to rounding (re-saved, other precision); and, for sources whose
hash nobody has published, a file of the right shape and class sizes, with a note if its content
is not the reference. Anything else is an error that names what was expected and found.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from benchmark.datasets import download
from benchmark.datasets.raw import Raw
from benchmark.registry import DatasetEntry, check_name, datasets
from benchmark.spec import FOLDS, DataRef, MissingData, UserError, canonical

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Dataset:
    """One dataset, ready to be split. The arrays are read-only."""

    name: str
    X: Floats
    """(n_samples, n_features), in the row order of the source."""
    y: Codes
    """0..C-1, codes of `classes`."""
    classes: tuple[str, ...]
    features: tuple[str, ...]
    relevant: dict[str, Mask]
    """Truth per sample under each definition; synthetic data only."""
    scale: Literal["standard", "none"]
    sha256: str
    """Of X and y as numbers, so that it does not depend on the file they came from."""
    notes: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Location:
    """Where a dataset's files lie."""

    place: str
    """data folder | cache | embedded | generated | given"""
    paths: dict[str, Path] = field(default_factory=dict)
    """Role -> path; a dataset in one file has the role "table"."""
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Role -> the registry's entry for that file."""

    @property
    def source(self) -> str:
        names = " + ".join(path.name for path in self.paths.values())
        return f"{self.place}: {names}" if names else self.place


@dataclass(frozen=True)
class Status:
    """One row of `benchmark data status`."""

    name: str
    label: str
    group: str
    shape: tuple[int, int]
    classes: int
    state: Literal["ready", "downloadable", "missing", "failed"]
    detail: str
    """Where it is, or what to do."""


# --- loading ----------------------------------------------------------------------------------


def load(ref: DataRef) -> Dataset:
    """The dataset behind a reference; a few are kept in memory per process."""
    places = [os.environ.get(name) for name in ("BENCHMARK_DATA", "BENCHMARK_CACHE")]
    return _load(canonical({"name": ref.name, "options": ref.options, "path": ref.path}), *places)


@lru_cache(maxsize=4)
def _load(key: str, *_places: str | None) -> Dataset:
    ref = DataRef(**json.loads(key))
    if ref.path is not None:
        return _load_own(ref)
    check_name("dataset", ref.name, datasets())
    entry = datasets()[ref.name]
    location = locate(ref.name) or _download(entry, progress=sys.stderr.isatty())
    return _read(entry, location, ref.options)


def _read(entry: DatasetEntry, location: Location, options: Mapping[str, Any]) -> Dataset:
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
    dataset = _dataset(entry.name, raw, location.source)
    variant = next((entry.variants[v] for v in options.values() if v in entry.variants), {})
    notes = _check(entry, variant, dataset, raw.derived, location)
    return _with_notes(dataset, notes)


def _dataset(name: str, raw: Raw, source: str) -> Dataset:
    """Labels become codes; treatments are stated; arrays become read-only."""
    # Adding zero turns -0.0 into 0.0, which are equal numbers with different bytes.
    X = np.ascontiguousarray(raw.X, dtype=np.float64) + 0.0
    if not np.isfinite(X).all():
        raise UserError(f"Dataset {name!r} ({source}) holds values that are not finite.")
    classes, y = code_labels(raw.y)
    notes = list(raw.notes)
    constant = int((X.min(axis=0) == X.max(axis=0)).sum())
    if constant:
        notes.append(f"{constant} constant columns kept")
    for array in (X, y, *raw.relevant.values()):
        array.setflags(write=False)
    assert raw.scale in ("standard", "none")
    return Dataset(
        name=name,
        X=X,
        y=y,
        classes=classes,
        features=tuple(raw.features or (f"x{j}" for j in range(1, X.shape[1] + 1))),
        relevant=raw.relevant,
        scale="none" if raw.scale == "none" else "standard",
        sha256=content_hash(X, y),
        notes=tuple(notes),
        source=source,
    )


def _with_notes(dataset: Dataset, notes: Iterable[str]) -> Dataset:
    return Dataset(**{**vars(dataset), "notes": (*dataset.notes, *notes)})


def code_labels(labels: Iterable[Any]) -> tuple[tuple[str, ...], Codes]:
    """Class names in sorted order, as numbers where all of them are, and the code of each row."""
    names = np.array([_label_text(label) for label in labels])
    classes = sorted(set(names.tolist()))
    try:
        classes.sort(key=float)
    except ValueError:
        pass  # names that are not all numbers stay in alphabetical order
    code = {name: i for i, name in enumerate(classes)}
    return tuple(classes), np.array([code[name] for name in names.tolist()], dtype=np.int64)


def _label_text(label: Any) -> str:
    """One spelling per label: 1, 1.0 and " 1" are the same class."""
    if isinstance(label, float | np.floating) and float(label).is_integer():
        label = int(label)
    return str(label).strip()


def content_hash(X: Floats, y: Codes) -> str:
    """SHA-256 of shape, values and codes, the same on every machine."""
    digest = hashlib.sha256(repr(X.shape).encode())
    digest.update(np.ascontiguousarray(X, dtype="<f8").data)
    digest.update(np.ascontiguousarray(y, dtype="<i8").data)
    return digest.hexdigest()


# --- checks -----------------------------------------------------------------------------------


def probe(X: Floats, y: Codes) -> tuple[float, float, float]:
    """Three numbers that any change of values, of row order or of column order moves."""
    n, d = X.shape
    rows, columns = np.cos(np.arange(n)), np.sin(np.arange(d))
    return float(X.mean()), float(rows @ X @ columns / np.sqrt(n * d)), float(rows @ y)


def _check(
    entry: DatasetEntry,
    variant: Mapping[str, Any],
    dataset: Dataset,
    derived: bool,
    location: Location,
) -> list[str]:
    """Compare with the registry: an error if this is other data, notes if it deserves a remark."""
    found = dict(zip(dataset.classes, np.bincount(dataset.y).tolist(), strict=True))
    expected = variant.get("classes", entry.classes)
    shape = dataset.X.shape
    if derived:
        if shape[0] != entry.shape[0]:
            raise UserError(_other_data(entry, location, f"{shape[0]} samples", entry.shape[0]))
        return [
            f"{what} differ from the paper's: {got} instead of {want}"
            for what, got, want in [
                ("features", shape[1], entry.shape[1]),
                ("class sizes", list(found.values()), list(expected.values())),
            ]
            if got != want
        ]
    if shape != entry.shape:
        raise UserError(_other_data(entry, location, f"shape {shape}", entry.shape))
    if sorted(found.values()) != sorted(expected.values()):
        raise UserError(_other_data(entry, location, f"class sizes {found}", expected))
    return _compare_content(entry, variant.get("content", entry.content), dataset, location)


def _compare_content(
    entry: DatasetEntry, content: str, dataset: Dataset, location: Location
) -> list[str]:
    """Is it the reference data, nearly the reference data, or something else?"""
    if dataset.sha256 == content or not content:
        return []
    hashes = {role: download.sha256_of(path) for role, path in location.paths.items()}
    registered = {role: location.files.get(role, {}).get("sha256") for role in hashes}
    near = np.allclose(probe(dataset.X, dataset.y), entry.probe, rtol=1e-6, atol=1e-5)
    if entry.probe and near:
        return ["agrees with the reference data to rounding, not bit for bit"]
    if any(want and want != hashes[role] for role, want in registered.items()):
        got = ", ".join(hashes.values())
        want = ", ".join(str(value) for value in registered.values())
        raise UserError(
            _other_data(entry, location, f"other values (file SHA-256 {got})", f"SHA-256 {want}")
        )
    remark = "values, row order or class names are not those of the reference data, "
    return [remark + f"so single runs cannot be compared: {dataset.sha256[:12]}, {content[:12]}"]


def _other_data(entry: DatasetEntry, location: Location, found: str, expected: object) -> str:
    places = ", ".join(str(path) for path in location.paths.values()) or location.place
    return (
        f"Dataset {entry.name!r}: {places} has {found}, expected {expected}.\n"
        f"It is another version of the data, or damaged. Remove it, or use it as your own table. "
        f"{entry.how_to_get}"
    )


# --- places -----------------------------------------------------------------------------------


def data_folder() -> Path | None:
    """The user's folder, if one is named."""
    named = os.environ.get("BENCHMARK_DATA")
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise UserError(f"The data folder {folder} (BENCHMARK_DATA, --data-dir) does not exist.")
    return folder


def cache_folder() -> Path:
    """BENCHMARK_CACHE, else datasets/cache in a checkout, else the user's cache folder."""
    named = os.environ.get("BENCHMARK_CACHE")
    if named:
        return Path(named).expanduser()
    root = Path(__file__).resolve().parent.parent
    if (root / "pyproject.toml").is_file():
        return root / "datasets" / "cache"
    import pooch

    return Path(pooch.os_cache("protogate-benchmark"))


def locate(name: str) -> Location | None:
    """Where the dataset is on this machine; None if it would have to be downloaded."""
    entry = datasets()[name]
    folder = data_folder()
    places = [("data folder", folder)] if folder else []
    for place, root in [*places, ("cache", cache_folder())]:
        for wanted in _sources(entry):
            found = {file.get("role", "table"): _find(root, name, file) for file in wanted}
            paths = {role: path for role, path in found.items() if path}
            if len(paths) == len(wanted):
                return Location(place, paths, _with_recorded_hashes(paths, wanted))
    if entry.embedded:
        path = Path(str(files("benchmark.datasets").joinpath("embedded") / entry.embedded))
        return Location("embedded", {"table": path})
    return None if entry.files else Location("generated")


def _sources(entry: DatasetEntry) -> list[list[dict[str, Any]]]:
    """Each alternative: the files that are needed together, in the registry's order."""
    sources: dict[str, list[dict[str, Any]]] = {}
    for file in entry.files:
        sources.setdefault(file.get("source", file["name"]), []).append(file)
    return list(sources.values())


def _by_role(wanted: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {file.get("role", "table"): file for file in wanted}


def _with_recorded_hashes(
    paths: Mapping[str, Path], wanted: Iterable[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Where the registry has no hash, the one noted when the file entered the cache counts."""
    by_role = _by_role(wanted)
    for role, path in paths.items():
        note = _hash_note(path)
        if "sha256" not in by_role[role] and note.is_file():
            by_role[role] = {**by_role[role], "sha256": note.read_text("utf-8").split()[0]}
    return by_role


def _hash_note(path: Path) -> Path:
    """The file beside `path` with its hash, in the form of `sha256sum`."""
    return path.with_name(path.name + ".sha256")


def _find(root: Path, name: str, file: Mapping[str, Any]) -> Path | None:
    """The file under one of its names, in the folder itself or in a sub-folder of the dataset."""
    for folder in (root / name, root):
        for spelling in (file["name"], *file.get("aliases", [])):
            matches = [path for path in sorted(folder.glob(spelling)) if path.is_file()]
            if matches:
                return matches[0]
    return None


def _missing(entry: DatasetEntry, failure: str) -> MissingData:
    """One message: what is missing, where it was looked for, how to get it."""
    folder = data_folder()
    places = [f"{folder} (BENCHMARK_DATA)"] if folder else ["no data folder is set"]
    return MissingData(
        f"Dataset {entry.name!r} is not on this machine.\n"
        f"Missing: {_needed(entry)}.\n"
        f"Looked in: {', '.join(places)}; {cache_folder()} (cache).\n"
        f"{failure}"
        f"To get it: {entry.how_to_get}\n"
        f"Then put it into a folder named by --data-dir or BENCHMARK_DATA, or run "
        f"`python -m benchmark data import {entry.name} FILE`."
    )


def _needed(entry: DatasetEntry) -> str:
    """The alternatives, each without the files that are there already."""
    missing = [
        [file["name"] for file in source if not _anywhere(entry, file)]
        for source in _sources(entry)
    ]
    return ", or ".join(" and ".join(names) for names in missing)


def _anywhere(entry: DatasetEntry, file: Mapping[str, Any]) -> bool:
    roots = [root for root in (data_folder(), cache_folder()) if root]
    return any(_find(root, entry.name, file) for root in roots)


# --- getting ----------------------------------------------------------------------------------

_unreachable: dict[str, str] = {}
"""Downloads that failed in this process: 25 runs must not wait for the same dead address."""


def status(names: Iterable[str] | None = None) -> list[Status]:
    """What is on this machine; opens no file and no connection."""
    rows = []
    for name in names if names is not None else datasets():
        check_name("dataset", name, datasets())
        entry = datasets()[name]
        location = locate(name)
        if location:
            rows.append(_status(entry, "ready", location.source))
        elif _downloadable(entry):
            rows.append(_status(entry, "downloadable", f"python -m benchmark data get {name}"))
        else:
            needs = f"needs {_needed(entry)}; `python -m benchmark data get {name}` tells how"
            rows.append(_status(entry, "missing", needs))
    return rows


def _status(
    entry: DatasetEntry,
    state: Literal["ready", "downloadable", "missing", "failed"],
    detail: str,
) -> Status:
    return Status(
        entry.name, entry.label, entry.group, entry.shape, len(entry.classes), state, detail
    )


def get(names: Iterable[str], progress: Callable[[Status], None] = lambda _: None) -> list[Status]:
    """Make datasets ready, downloading what is missing; a failure is a row, not an exception."""
    rows = []
    for name in names:
        check_name("dataset", name, datasets())
        entry = datasets()[name]
        _unreachable.pop(name, None)
        try:
            location = locate(name) or _download(entry, progress=sys.stderr.isatty())
            _read(entry, location, {})
            rows.append(_status(entry, "ready", location.source))
        except UserError as error:
            rows.append(_status(entry, "failed", str(error)))
        progress(rows[-1])
    return rows


def import_(name: str, path: Path | str) -> Dataset:
    """Copy a file, or a folder with the files of a derived set, into the cache once it loads."""
    check_name("dataset", name, datasets())
    entry = datasets()[name]
    if not entry.files:
        raise UserError(f"Dataset {name!r} is generated, there is no file to import.")
    location = _given(entry, Path(path).expanduser())
    dataset = _read(entry, location, {})
    _install(entry, location)
    return dataset


def _given(entry: DatasetEntry, path: Path) -> Location:
    """The registry's file that a user's file stands for."""
    if path.is_dir():
        for wanted in _sources(entry):
            paths = {f.get("role", "table"): _find(path, entry.name, f) for f in wanted}
            found = {role: got for role, got in paths.items() if got}
            if len(found) == len(wanted):
                return Location("given", found, _by_role(wanted))
        names = " | ".join(" + ".join(f["name"] for f in source) for source in _sources(entry))
        raise UserError(f"{path} holds none of the sets of files of {entry.name!r}: {names}.")
    if not path.is_file():
        raise UserError(f"There is no file {path} to import as {entry.name!r}.")
    single = [source[0] for source in _sources(entry) if len(source) == 1]
    for file in single:
        if path.name in (file["name"], *file.get("aliases", [])):
            return Location("given", {"table": path}, {"table": file})
    for file in single:
        if path.suffix.lower() == Path(file["name"]).suffix.lower():
            return Location("given", {"table": path}, {"table": file})
    forms = ", ".join(file["name"] for file in single)
    raise UserError(f"{path.name} is of none of the forms of {entry.name!r}: {forms}.")


def _downloadable(entry: DatasetEntry) -> bool:
    return any(all("urls" in file for file in source) for source in _sources(entry))


def _download(entry: DatasetEntry, *, progress: bool) -> Location:
    """Try each source that has addresses; what arrives must load before it enters the cache."""
    if not _downloadable(entry):
        raise _missing(entry, "")
    if os.environ.get("BENCHMARK_OFFLINE", "") not in ("", "0"):
        raise _missing(entry, "Downloads are switched off (BENCHMARK_OFFLINE).\n")
    if entry.name in _unreachable:
        raise _missing(entry, _unreachable[entry.name])
    folder = cache_folder() / entry.name
    failures = []
    for source in _sources(entry):
        if not all("urls" in file for file in source):
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder, prefix="incoming-") as scratch:
                paths = {
                    file.get("role", "table"): download.fetch(
                        file, Path(scratch), progress=progress
                    )
                    for file in source
                }
                location = Location("cache", paths, _by_role(source))
                _read(entry, location, {})
                return _install(entry, location)
        except (download.DownloadError, UserError) as error:
            failures.append(str(error))
        except OSError as error:
            raise UserError(
                f"Cannot write to the cache {folder}: {error.strerror}. "
                f"Name another folder with BENCHMARK_CACHE."
            ) from error
    _unreachable[entry.name] = "Download failed:\n" + "\n".join(failures) + "\n"
    raise _missing(entry, _unreachable[entry.name])


def _install(entry: DatasetEntry, location: Location) -> Location:
    """Copy checked files into the cache under the registry's names, each in one step."""
    folder = cache_folder() / entry.name
    folder.mkdir(parents=True, exist_ok=True)
    installed = {}
    for role, path in location.paths.items():
        file = location.files[role]
        # An accepted name stays, since it tells the form and the version.
        known = any(fnmatch(path.name, name) for name in (file["name"], *file.get("aliases", [])))
        target = folder / (path.name if known else file["name"])
        _hash_note(target).unlink(missing_ok=True)
        _copy_whole(path, target)
        if "sha256" not in file:
            note = f"{download.sha256_of(target)}  {target.name}\n"
            _hash_note(target).write_text(note, "utf-8")
        installed[role] = target
    return Location("cache", installed, location.files)


def _copy_whole(path: Path, target: Path) -> None:
    """Copy so that readers see the old file or the new one, never a part."""
    handle, scratch = tempfile.mkstemp(dir=target.parent, suffix=".tmp")
    os.close(handle)
    try:
        shutil.copyfile(path, scratch)
        Path(scratch).replace(target)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


# --- a user's own table -----------------------------------------------------------------------


def own_table(
    path: Path | str, target: str | None, drop: Iterable[str] = (), folds: int = FOLDS
) -> DataRef:
    """A reference to the user's table, after reading and checking it once.

    The classes are checked against `folds`, which is no part of what the reference stands for.
    """
    from benchmark.datasets import table

    file = Path(path).expanduser()
    if not file.is_file():
        raise UserError(f"There is no file {file}.")
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", file.name.partition(".")[0]).strip("-") or "table"
    if name in datasets():
        name = f"own-{name}"
    options: dict[str, Any] = {"target": target, "sha256": download.sha256_of(file)}
    if drop := sorted(drop):
        options["drop"] = drop
    ref = DataRef(name, options, str(file.resolve()))
    loaded = load(ref)
    sizes = dict(zip(loaded.classes, np.bincount(loaded.y).tolist(), strict=True))
    table.check_folds(file, str(target), sizes, folds)
    return ref


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
    return _dataset(ref.name, raw, f"own table: {file.name}")
