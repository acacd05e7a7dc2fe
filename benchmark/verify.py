"""Doing a recorded run again and comparing: everything outside `meta` must be equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmark.executor import run_all
from benchmark.progress import Progress
from benchmark.registry import models
from benchmark.spec import RunSpec


@dataclass(frozen=True)
class Comparison:
    """A recorded run beside its repetition."""

    key: str
    differences: list[str]

    @property
    def same(self) -> bool:
        return not self.differences


def verify(records: Sequence[dict[str, Any]], jobs: int, dask: str | None) -> Iterator[Comparison]:
    """Re-execute the records' runs; yield a comparison for each as it finishes."""
    recorded = {record["key"]: record for record in records}
    specs = [RunSpec.from_dict(record["spec"]) for record in records]
    with Progress(len(specs), "verifying") as progress:
        for outcome in run_all(specs, jobs=jobs, dask=dask):
            progress.advance(outcome.record)
            old = recorded[outcome.record["key"]]
            new = _held(outcome.record, old)
            yield Comparison(old["key"], _remarks(old) + differences(old, new))


def _remarks(old: dict[str, Any]) -> list[str]:
    entry = models().get(old["spec"]["model"])
    if entry and entry.revision != old["spec"]["revision"]:
        made, now = old["spec"]["revision"], entry.revision
        return [f"the record was made with revision {made} of {entry.name}, the code has {now}"]
    return []


def _held(new: Any, old: Any) -> Any:
    """The part of a new record that the old one has as well: what is measured since cannot differ."""
    if not (isinstance(new, dict) and isinstance(old, dict)):
        return new
    return {key: _held(value, old[key]) for key, value in new.items() if key in old}


def differences(old: Any, new: Any, path: str = "") -> list[str]:
    """Where two records differ outside `meta`, as `path: old -> new`."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(old.keys() | new.keys())
        return [
            line
            for key in keys
            if path or key != "meta"
            for line in differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
        ]
    return [] if old == new else [f"{path}: {old!r} -> {new!r}"]
