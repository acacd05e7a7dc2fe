"""What missing runs cost: seconds of one thread, from the records of the same model.

An estimate. Where a dataset has no record yet, the nearest in size that has one is scaled: by
features where training is so many steps of one batch, elsewhere by samples times features.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from benchmark.protocol.plan import Cell, Protocol
from benchmark.protocol.registry import ModelEntry, datasets, models
from benchmark.protocol.search import FINALISTS
from benchmark.runner.records import Store

SAMPLE = 5
"""The newest records count: older ones may come from another machine, or one that did more besides."""
RACE_SHARE = 0.8
"""What an exact race costs of the full grid, on the recorded grids of the four real datasets."""


class Costs:
    """Seconds per run and per gap, from the records of one results folder."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._seconds: dict[str, list[tuple[str, float, float]]] = {}

    def per_run(self, cell: Cell) -> float | None:
        """Seconds of one run; None if neither the model nor its like has any record."""
        timed = self._timed(cell.entry) or [
            row
            for entry in models().values()
            if entry.class_path == cell.entry.class_path
            for row in self._timed(entry)
        ]
        if not timed:
            return None
        for folder, _, seconds in timed:
            if folder == cell.data.folder:
                return seconds
        entry = datasets().get(cell.data.name)
        if entry is None:
            return statistics.median(seconds for _, _, seconds in timed)
        size = _size(cell.entry, entry.shape)
        _, nearest, seconds = min(timed, key=lambda row: abs(math.log(row[1] / size)))
        return seconds * size / nearest

    def of_runs(self, cell: Cell, number: int) -> float | None:
        seconds = self.per_run(cell)
        return None if seconds is None else number * seconds

    def _timed(self, entry: ModelEntry) -> list[tuple[str, float, float]]:
        """Per dataset with records of the model: its folder, its size, median seconds."""
        if entry.name not in self._seconds:
            found = []
            for folder in self.store.datasets(entry.name):
                done = [r for r in self._newest(f"{entry.name}/{folder}") if _seconds(r)]
                if done:
                    size = _size(entry, done[0]["data"]["shape"])
                    found.append((folder, size, statistics.median(map(_seconds, done))))
            self._seconds[entry.name] = found
        return self._seconds[entry.name]

    def _newest(self, folder: str) -> list[dict[str, Any]]:
        """Some of the newest records of a model on a dataset, one per setting at the most: one setting's
        runs are made one after the other, so any of them tells when."""
        settings = (f"{folder}/{setting}" for setting in self.store.settings(folder))
        found = [record for setting in settings if (record := self.store.last(setting))]
        return sorted(found, key=lambda record: record["meta"].get("started", ""))[-SAMPLE:]


def _size(entry: ModelEntry, shape: Sequence[int]) -> float:
    samples, features = shape
    return float(features if "steps" in entry.params else samples * features)


def _seconds(record: dict[str, Any]) -> float:
    """What a run took; 0 if it failed or was not timed."""
    seconds = record["meta"].get("seconds", {}) if record["status"] == "ok" else {}
    stages = ("load", "fit", "predict", "transfer")
    return seconds.get("total") or sum(seconds.get(stage) or 0.0 for stage in stages)


def runs_of_search(cell: Cell, protocol: Protocol, quick: int | None, store: Store) -> int:
    """About how many runs a search still has to do, beside those that are recorded."""
    total = len(protocol.splits())
    if quick is not None and quick >= total:
        quick = None
    first = total if quick is None else quick
    if cell.search.ranges:
        # What will be proposed is not known before it is, so all of it counts as missing.
        seen = [0] * (cell.search.trials * len(cell.candidates()))
    else:
        seen = [_recorded(cell, params, protocol, store) for params in cell.candidates()]
    if quick is None:
        share = 1.0 if cell.search.ranges else RACE_SHARE
        return math.ceil(sum(max(0.0, share * total - n) for n in seen))
    finalists = sorted(seen, reverse=True)[:FINALISTS]
    finish = sum(total - max(first, n) for n in finalists)
    return sum(max(0, first - n) for n in seen) + finish


def _recorded(cell: Cell, params: dict[str, Any], protocol: Protocol, store: Store) -> int:
    specs = cell.specs(params, protocol)
    return sum(store.has(spec.key) for spec in specs)
