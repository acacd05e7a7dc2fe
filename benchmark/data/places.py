"""Where a dataset's files are looked for.

In this order: the user's data folder (BENCHMARK_DATA), the cache (BENCHMARK_CACHE), the files that
ship with the project. Standard library only, so that tables can name what is missing without NumPy.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import benchmark
from benchmark.protocol.registry import DatasetEntry, datasets
from benchmark.protocol.spec import DataRef, MissingData, UserError


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


def as_path(text: str | Path) -> Path:
    """A path as a person writes it; `~somebody` has to exist."""
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UserError(f"{text}: {error} There is no such user; write the folder out.") from error


def data_folder() -> Path | None:
    """The user's folder, if one is named."""
    named = os.environ.get("BENCHMARK_DATA")
    if not named:
        return None
    folder = as_path(named)
    if not _is_folder(folder):
        raise UserError(f"The data folder {folder} (BENCHMARK_DATA, --data-dir) does not exist.")
    return folder


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError, RuntimeError):
        return False  # links that lead in circles, names that no file system takes


def cache_folder() -> Path:
    """BENCHMARK_CACHE, else datasets/cache in a checkout, else the user's cache folder."""
    named = os.environ.get("BENCHMARK_CACHE")
    if named:
        return as_path(named)
    root = Path(benchmark.__file__).resolve().parent.parent
    if (root / "pyproject.toml").is_file():
        return root / "datasets" / "cache"
    from platformdirs import user_cache_path

    return user_cache_path("protogate-benchmark")


def locate(name: str) -> Location | None:
    """Where the dataset is on this machine; None if it would have to be downloaded."""
    entry = datasets()[name]
    folder = data_folder()
    places = [("data folder", folder)] if folder else []
    for place, root in [*places, ("cache", cache_folder())]:
        for wanted in sources(entry):
            found = {file.get("role", "table"): find(root, name, file) for file in wanted}
            paths = {role: path for role, path in found.items() if path}
            if len(paths) == len(wanted):
                return Location(place, paths, _with_recorded_hashes(paths, wanted))
    if entry.embedded:
        path = Path(str(files("benchmark.datasets").joinpath("embedded") / entry.embedded))
        return Location("embedded", {"table": path})
    return None if entry.files else Location("generated")


def sources(entry: DatasetEntry) -> list[list[dict[str, Any]]]:
    """Each alternative: the files that are needed together, in the registry's order."""
    sources: dict[str, list[dict[str, Any]]] = {}
    for file in entry.files:
        sources.setdefault(file.get("source", file["name"]), []).append(file)
    return list(sources.values())


def by_role(wanted: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {file.get("role", "table"): file for file in wanted}


NOT_PUBLISHED = "the paper's draw of patients is not published"
"""Why there is nothing to compare with where a dataset is `by_hand`: raw tables give another draw."""


def by_hand(name: str) -> bool:
    """Whether a dataset comes neither with the project nor from an address.

    Judged by the registry and not by this machine: a report must not depend on where it is built.
    """
    entry = datasets().get(name)  # somebody's own table is where its path says
    return bool(entry and entry.files and not entry.embedded and not downloadable(entry))


def out_of_reach(data: DataRef) -> bool:
    """Whether no command can run on it here: to be fetched by hand, and not on this machine."""
    return by_hand(data.name) and locate(data.name) is None


def downloadable(entry: DatasetEntry) -> bool:
    return any(all("urls" in file for file in source) for source in sources(entry))


def _with_recorded_hashes(
    paths: Mapping[str, Path], wanted: Iterable[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Where the registry has no hash, the one noted when the file entered the cache counts."""
    found = by_role(wanted)
    for role, path in paths.items():
        note = hash_note(path)
        if "sha256" not in found[role] and note.is_file():
            found[role] = {**found[role], "sha256": note.read_text("utf-8").split()[0]}
    return found


def hash_note(path: Path) -> Path:
    """The file beside `path` with its hash, in the form of `sha256sum`."""
    return path.with_name(path.name + ".sha256")


def find(root: Path, name: str, file: Mapping[str, Any]) -> Path | None:
    """The file under one of its names, in the folder itself or in a sub-folder of the dataset."""
    for folder in (root / name, root):
        for spelling in (file["name"], *file.get("aliases", [])):
            matches = [path for path in sorted(folder.glob(spelling)) if path.is_file()]
            if matches:
                return matches[0]
    return None


def missing(entry: DatasetEntry, failure: str) -> MissingData:
    """One message: what is missing, where it was looked for, how to get it."""
    folder = data_folder()
    places = [f"{folder} (BENCHMARK_DATA)"] if folder else ["no data folder is set"]
    return MissingData(
        f"Dataset {entry.name!r} is not on this machine.\n"
        f"Missing: {needed(entry)}.\n"
        f"Looked in: {', '.join(places)}; {cache_folder()} (cache).\n"
        f"{failure}"
        f"To get it: {entry.how_to_get}\n"
        f"Then put it into a folder named by --data-dir or BENCHMARK_DATA, or run "
        f"`python -m benchmark data import {entry.name} FILE`."
    )


def needed(entry: DatasetEntry) -> str:
    """The alternatives, each without the files that are there already."""
    missing = [
        [file["name"] for file in source if not _anywhere(entry, file)] for source in sources(entry)
    ]
    return ", or ".join(" and ".join(names) for names in missing)


def _anywhere(entry: DatasetEntry, file: Mapping[str, Any]) -> bool:
    roots = [root for root in (data_folder(), cache_folder()) if root]
    return any(find(root, entry.name, file) for root in roots)
