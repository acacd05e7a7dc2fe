"""The records behind the page: settings with their provenance, and where the records were made.

Everything comes from the records themselves, nothing from the machine that builds the page.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmark.protocol.plan import Protocol
from benchmark.protocol.spec import DataRef
from benchmark.run.records import Problem, Store

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


@dataclass(frozen=True)
class Archive:
    """Every record below a results folder, by setting."""

    settings: dict[str, dict[str, Record]]
    """`knn/colon/1a2b3c4d` -> split name -> record."""
    by_hash: dict[str, list[str]]
    """`1a2b3c4d` -> the settings of that name, nearly always one."""
    problems: tuple[str, ...]

    def find(self, setting: str, dataset: str) -> str | None:
        """The key of a setting that a table names by its hash."""
        keys = self.by_hash.get(setting, [])
        return next((key for key in keys if self.dataset(key) == dataset), None)

    def dataset(self, key: str) -> str:
        first = next(iter(self.settings[key].values()))
        return DataRef(**first["spec"]["data"]).label

    @property
    def records(self) -> list[Record]:
        return [record for runs in self.settings.values() for record in runs.values()]


def read(store: Store) -> Archive:
    """All records of a store, in the order of their names."""
    settings: dict[str, dict[str, Record]] = defaultdict(dict)
    problems = []
    for found in store.scan():
        if isinstance(found, Problem):
            # The folder's place on this machine is no part of the report.
            problems.append(f"{found.path.relative_to(store.root)}: {found.reason}")
            continue
        setting, _, split = found["key"].rpartition("/")
        settings[setting][split] = found
    by_hash: dict[str, list[str]] = defaultdict(list)
    for key in settings:
        by_hash[key.rpartition("/")[2]].append(key)
    return Archive(dict(settings), dict(by_hash), tuple(problems))


class Provenance:
    """Commits and environments that records name, each stored once on the page."""

    def __init__(self) -> None:
        self.commits, self.environments = Index(), Index()

    def of_setting(self, runs: dict[str, Record]) -> dict[str, Any]:
        """What a reader may want to know of the runs of one setting."""
        records = list(runs.values())
        first = records[0]
        good = [record for record in records if record["status"] == "ok"]
        failed = {s: r["status"] for s, r in runs.items() if r["status"] != "ok"}
        metas = [record.get("meta", {}) for record in records]
        return {
            "model": first["spec"]["model"],
            "revision": first["spec"]["revision"],
            "data": sorted({record["data"]["sha256"] for record in good}),
            "shape": good[0]["data"].get("shape") if good else None,
            "commits": self._places(self.commits, metas, "code"),
            "environments": self._places(self.environments, metas, "environment"),
            "seconds": round(sum(seconds(record) for record in records), 1),
            "runs": len(records),
            "failed": failed,
        }

    @staticmethod
    def _places(index: Index, metas: Iterable[dict[str, Any]], name: str) -> list[int]:
        return sorted({index.place(meta[name]) for meta in metas if meta.get(name)})


def seconds(record: Record) -> float:
    """How long a run took, all in all; 0 where that is not recorded."""
    return float(record.get("meta", {}).get("seconds", {}).get("total") or 0.0)


def surroundings(archive: Archive, provenance: Provenance) -> dict[str, Any]:
    """Totals over all records: models, data, failures, commits, machines and library versions."""
    records = archive.records
    return {
        "runs": len(records),
        "settings": len(archive.settings),
        "hours": round(sum(map(seconds, records)) / 3600, 2),
        "failures": dict(sorted(Counter(r["status"] for r in records).items())),
        "models": _groups(records, lambda r: r["spec"]["model"]),
        "datasets": _datasets(records),
        "commits": _used(records, provenance.commits, "code"),
        "environments": _used(records, provenance.environments, "environment"),
        "problems": list(archive.problems),
    }


def _groups(records: Sequence[Record], name: Callable[[Record], str]) -> list[dict[str, Any]]:
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[name(record)].append(record)
    return [
        {
            "name": key,
            "runs": len(members),
            "failed": sum(member["status"] != "ok" for member in members),
            "hours": round(sum(map(seconds, members)) / 3600, 3),
        }
        for key, members in sorted(groups.items())
    ]


def _datasets(records: Sequence[Record]) -> list[dict[str, Any]]:
    seen: Counter[tuple[str, str, tuple[int, ...], int]] = Counter()
    for record in records:
        if record["status"] == "ok":
            data, label = record["data"], DataRef(**record["spec"]["data"]).label
            seen[
                label, data["sha256"], tuple(data.get("shape") or ()), data.get("classes") or 0
            ] += 1
    return [
        {"name": name, "sha256": sha, "shape": list(shape), "classes": classes, "runs": runs}
        for (name, sha, shape, classes), runs in sorted(seen.items())
    ]


def _used(records: Sequence[Record], index: Index, name: str) -> list[dict[str, Any]]:
    """The index's values in its order, so that places stay valid, with the runs that name each."""
    metas = [record["meta"][name] for record in records if record.get("meta", {}).get(name)]
    runs = Counter(index.place(meta) for meta in metas)
    return [{**value, "runs": runs[place]} for place, value in enumerate(index.values)]
