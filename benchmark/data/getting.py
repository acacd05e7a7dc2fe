"""Making datasets ready: what is at hand, downloads, files that a user has."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

from benchmark.data.checks import read
from benchmark.data.dataset import Dataset
from benchmark.data.places import (
    Location,
    as_path,
    by_role,
    cache_folder,
    downloadable,
    find,
    hash_note,
    locate,
    missing,
    needed,
    sources,
)
from benchmark.datasets import download
from benchmark.files import read_whole, write_atomic
from benchmark.protocol.registry import DatasetEntry, check_name, datasets
from benchmark.protocol.spec import UserError


@dataclass(frozen=True)
class Status:
    """One row of `benchmark data status`."""

    name: str
    state: Literal["ready", "downloadable", "missing", "failed"]
    detail: str
    """Where it is, or what to do."""


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
            rows.append(Status(name, "ready", location.source))
        elif downloadable(entry):
            rows.append(Status(name, "downloadable", f"python -m benchmark data get {name}"))
        else:
            needs = f"needs {needed(entry)}; `python -m benchmark data get {name}` tells how"
            rows.append(Status(name, "missing", needs))
    return rows


def get(names: Iterable[str], progress: Callable[[Status], None] = lambda _: None) -> list[Status]:
    """Make datasets ready, downloading what is missing; a failure is a row, not an exception."""
    rows = []
    for name in names:
        check_name("dataset", name, datasets())
        entry = datasets()[name]
        _unreachable.pop(name, None)
        try:
            location = locate(name) or fetch(entry, progress=sys.stderr.isatty())
            read(entry, location, {})
            rows.append(Status(name, "ready", location.source))
        except UserError as error:
            rows.append(Status(name, "failed", str(error)))
        progress(rows[-1])
    return rows


def import_(name: str, path: Path | str) -> Dataset:
    """Copy a file, or a folder with the files of a derived set, into the cache once it loads."""
    check_name("dataset", name, datasets())
    entry = datasets()[name]
    if not entry.files:
        raise UserError(f"Dataset {name!r} is generated, there is no file to import.")
    location = _given(entry, as_path(path))
    dataset = read(entry, location, {})
    _install(entry, location)
    return dataset


def _given(entry: DatasetEntry, path: Path) -> Location:
    """The registry's file that a user's file stands for."""
    if path.is_dir():
        for wanted in sources(entry):
            paths = {f.get("role", "table"): find(path, entry.name, f) for f in wanted}
            found = {role: got for role, got in paths.items() if got}
            if len(found) == len(wanted):
                return Location("given", found, by_role(wanted))
        names = " | ".join(" + ".join(f["name"] for f in source) for source in sources(entry))
        raise UserError(f"{path} holds none of the sets of files of {entry.name!r}: {names}.")
    if not path.is_file():
        raise UserError(f"There is no file {path} to import as {entry.name!r}.")
    single = [source[0] for source in sources(entry) if len(source) == 1]
    for file in single:
        if path.name in (file["name"], *file.get("aliases", [])):
            return Location("given", {"table": path}, {"table": file})
    for file in single:
        if path.suffix.lower() == Path(file["name"]).suffix.lower():
            return Location("given", {"table": path}, {"table": file})
    forms = ", ".join(file["name"] for file in single)
    raise UserError(f"{path.name} is of none of the forms of {entry.name!r}: {forms}.")


def fetch(entry: DatasetEntry, *, progress: bool) -> Location:
    """Try each source that has addresses; what arrives must load before it enters the cache."""
    if not downloadable(entry):
        raise missing(entry, "")
    if os.environ.get("BENCHMARK_OFFLINE", "") not in ("", "0"):
        raise missing(entry, "Downloads are switched off (BENCHMARK_OFFLINE).\n")
    if entry.name in _unreachable:
        raise missing(entry, _unreachable[entry.name])
    folder = cache_folder() / entry.name
    failures = []
    for source in sources(entry):
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
                location = Location("cache", paths, by_role(source))
                read(entry, location, {})
                return _install(entry, location)
        except (download.DownloadError, UserError) as error:
            failures.append(str(error))
        except OSError as error:
            raise UserError(
                f"Cannot write to the cache {folder}: {error.strerror}. "
                f"Name another folder with BENCHMARK_CACHE."
            ) from error
    _unreachable[entry.name] = "Download failed:\n" + "\n".join(failures) + "\n"
    raise missing(entry, _unreachable[entry.name])


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
        hash_note(target).unlink(missing_ok=True)
        write_atomic(target, read_whole(path, 1 << 30))
        if "sha256" not in file:
            note = f"{download.sha256_of(target)}  {target.name}\n"
            hash_note(target).write_text(note, "utf-8")
        installed[role] = target
    return Location("cache", installed, location.files)
