"""The records behind the page: settings with their provenance, and where the records were made.

Everything comes from the records themselves, nothing from the machine that builds the page. Of each
record only what the page tells is kept, because most are candidates of searches that no table shows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any

from benchmark.protocol.plan import Protocol
from benchmark.protocol.spec import DataRef
from benchmark.runner.records import Problem, Store

Record = dict[str, Any]

SPLITS = tuple(f"r{repeat}f{fold}" for repeat, fold in Protocol().splits())
"""Names of the planned splits, in the order of every list of runs."""


@dataclass
class Index:
    """Values in the order in which they were first seen, each named by its place."""

    values: list[Any] = field(default_factory=list)
    _places: dict[Hashable, int] = field(default_factory=dict)

    def place(self, value: Any, name: Hashable | None = None) -> int:
        """Where the value stands; it is added if there is none of that name yet."""
        name = str(value) if name is None else name
        if name not in self._places:
            self._places[name] = len(self.values)
            self.values.append(value)
        return self._places[name]


@dataclass
class Tally:
    """What some runs come to."""

    runs: int = 0
    failed: int = 0
    seconds: float = 0.0

    def add(self, record: Record) -> None:
        self.runs += 1
        self.failed += record["status"] != "ok"
        self.seconds += seconds(record)


@dataclass
class Setting(Tally):
    """The runs of one setting."""

    model: str = ""
    revision: int = 0
    dataset: str = ""
    seed: str = ""
    place: str = ""
    """Where its records lie."""
    verify: str = ""
    """The command that does its runs again."""
    data: set[str] = field(default_factory=set)
    """Checksums of the data of the successful runs."""
    shape: list[int] | None = None
    commits: list[int] = field(default_factory=list)
    environments: list[int] = field(default_factory=list)
    """Places in the archive's lists, in the order of the runs."""
    failures: dict[str, str] = field(default_factory=dict)
    """Split -> status."""


@dataclass
class Archive:
    """What the page tells of all records below a results folder."""

    store: Store
    settings: dict[str, Setting] = field(default_factory=dict)
    """By `knn/colon/1a2b3c4d`."""
    problems: list[str] = field(default_factory=list)
    total: Tally = field(default_factory=Tally)
    models: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    statuses: Counter[str] = field(default_factory=Counter)
    datasets: Counter[tuple[str, str, tuple[int, ...], int]] = field(default_factory=Counter)
    """Runs by name, checksum, shape and classes."""
    commits: Index = field(default_factory=Index)
    environments: Index = field(default_factory=Index)
    _runs_of: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    _by_hash: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """`1a2b3c4d` -> the settings of that name, nearly always one."""

    def find(self, setting: str, dataset: str) -> str | None:
        """The key of a setting that a table names by its hash."""
        keys = self._by_hash.get(setting, [])
        return next((key for key in keys if self.settings[key].dataset == dataset), None)

    def runs(self, key: str) -> list[Record | None]:
        """The records of a setting, one per planned split; None where there is none."""
        keys = [f"{key}/{split}" for split in SPLITS]
        found, _ = self.store.find(keys)
        return [found.get(key) for key in keys]

    def add_shipped(self, record: Record) -> None:
        """Count a record that the package brought, which has no file of its own here."""
        self.add(record, "shipped with the package; in a clone, results/runs", "")

    def add(
        self,
        record: Record,
        folder: str = "results/runs",
        verify: str = "python -m benchmark verify",
    ) -> None:
        """Count a record that lies in a folder of this name; `verify` does runs of it again."""
        key, _, split = record["key"].rpartition("/")
        spec, status = record["spec"], record["status"]
        if key not in self.settings:
            data = DataRef(**spec["data"])
            self.settings[key] = Setting(
                model=spec["model"],
                revision=spec["revision"],
                dataset=data.label,
                seed=f"{spec['seed']} and on, one per run"
                if data.fixed_test
                else str(spec["seed"]),
                place=f"{folder}/{key}",
                verify=verify and f"{verify} {key}",
            )
            self._by_hash[key.rpartition("/")[2]].append(key)
        setting = self.settings[key]
        for tally in (self.total, self.models[spec["model"]], setting):
            tally.add(record)
        self.statuses[status] += 1
        if status == "ok":
            seen = record["data"]
            if not setting.data:
                setting.shape = seen.get("shape")
            setting.data.add(seen["sha256"])
            shape, classes = tuple(seen.get("shape") or ()), seen.get("classes") or 0
            self.datasets[setting.dataset, seen["sha256"], shape, classes] += 1
        else:
            setting.failures[split] = status
        meta = record.get("meta", {})
        for name, index, places in (
            ("code", self.commits, setting.commits),
            ("environment", self.environments, setting.environments),
        ):
            if meta.get(name):
                place = index.place(meta[name])
                self._runs_of[name][place] += 1
                if place not in places:
                    places.append(place)

    def used(self, name: str) -> list[tuple[Any, int]]:
        """The commits (`code`) or machines (`environment`) that records name, and how many do."""
        index = self.commits if name == "code" else self.environments
        return [(value, self._runs_of[name][place]) for place, value in enumerate(index.values)]


def read(store: Store) -> Archive:
    """All records of a store, in the order of their names."""
    archive = Archive(store)
    for found in store.scan(only=["data", "meta"]):
        if isinstance(found, Problem):
            # The folder's place on this machine is no part of the report.
            archive.problems.append(f"{found.path.relative_to(store.root)}: {found.reason}")
        else:
            archive.add(found)
    for record in store.below.records() if store.below else ():
        if not store.path(record["key"]).is_file():
            archive.add_shipped(record)
    return archive


def seconds(record: Record) -> float:
    """How long a run took, all in all; 0 where that is not recorded."""
    return float(record.get("meta", {}).get("seconds", {}).get("total") or 0.0)


class Provenance:
    """Commits and environments, each stored once on the page, in the order of the cells."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.commits, self.environments = Index(), Index()

    def of_setting(self, key: str) -> dict[str, Any]:
        """What a reader may want to know of the runs of one setting."""
        setting = self.archive.settings[key]
        return {
            "model": setting.model,
            "revision": setting.revision,
            "seed": setting.seed,
            "place": setting.place,
            "data": sorted(setting.data),
            "shape": setting.shape,
            "commits": self._places(self.commits, self.archive.commits, setting.commits),
            "environments": self._places(
                self.environments, self.archive.environments, setting.environments
            ),
            "seconds": round(setting.seconds, 1),
            "runs": setting.runs,
            "failed": setting.failures,
        }

    @staticmethod
    def _places(index: Index, known: Index, places: Iterable[int]) -> list[int]:
        return sorted({index.place(known.values[place]) for place in places})


def surroundings(archive: Archive, provenance: Provenance) -> dict[str, Any]:
    """Totals over all records: models, data, failures, commits, machines and library versions."""
    return {
        "runs": archive.total.runs,
        "settings": len(archive.settings),
        "hours": round(archive.total.seconds / 3600, 2),
        "failures": dict(sorted(archive.statuses.items())),
        "models": [
            {
                "name": name,
                "runs": tally.runs,
                "failed": tally.failed,
                "hours": round(tally.seconds / 3600, 3),
            }
            for name, tally in sorted(archive.models.items())
        ],
        "datasets": [
            {"name": name, "sha256": sha, "shape": list(shape), "classes": classes, "runs": runs}
            for (name, sha, shape, classes), runs in sorted(archive.datasets.items())
        ],
        "commits": _used(provenance.commits, archive.used("code")),
        "environments": _used(provenance.environments, archive.used("environment")),
        "problems": archive.problems,
    }


def _used(index: Index, used: Iterable[tuple[Any, int]]) -> list[dict[str, Any]]:
    """The index's values in its order, so that places stay valid, with the runs that name each."""
    runs = {index.place(value): number for value, number in used}
    return [{**value, "runs": runs[place]} for place, value in enumerate(index.values)]
