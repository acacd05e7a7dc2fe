"""Doing a recorded run again and comparing: everything outside `meta` must be equal.

A run is done with the kernels that its record names, so that processors of other makers and
generations are no reason for other bits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from benchmark.progress import Progress
from benchmark.protocol.registry import find_model
from benchmark.protocol.spec import RunSpec
from benchmark.runner.executor import run_batches
from benchmark.runner.worker import Limits

UNNAMED = (Limits(blas="Haswell", torch="AVX2"), Limits(blas="SkylakeX", torch="AVX512"))
"""Kernels to try in turn for records from before they were named."""


@dataclass(frozen=True)
class Comparison:
    """A recorded run beside its repetition."""

    key: str
    failed: bool
    """The run could not be done again: nothing can be said of its bits."""
    differences: list[str]
    surroundings: list[str]
    """How the two machines differ, which may explain other last digits."""

    @property
    def same(self) -> bool:
        return not self.differences


def verify(records: Sequence[dict[str, Any]], jobs: int, dask: str | None) -> Iterator[Comparison]:
    """Re-execute the records' runs; yield a comparison for each as it finishes."""
    waiting = [(record, _kernels(record["meta"])) for record in records]
    with Progress(len(records), "verifying") as progress:
        while waiting:
            groups: defaultdict[Limits, dict[str, Any]] = defaultdict(dict)
            for record, (kernels, *others) in waiting:
                groups[kernels][record["key"]] = record, others
            waiting = []
            for kernels, group in groups.items():
                specs = [RunSpec.from_dict(record["spec"]) for record, _ in group.values()]
                batches = run_batches(specs, jobs=jobs, dask=dask, limits=kernels)
                for outcome in chain.from_iterable(batches):
                    record, others = group[outcome.record["key"]]
                    comparison = _compare(record, outcome.record)
                    if others and not comparison.same:
                        waiting.append((record, others))
                        continue
                    progress.advance(outcome.record)
                    yield comparison


def _kernels(meta: dict[str, Any]) -> Sequence[Limits]:
    there = meta.get("environment", {})
    if "blas" not in there:
        return UNNAMED
    # Whatever else a file may hold in their place is no kernel, and is left to the libraries.
    return [Limits(blas=str(there["blas"]), torch=str(there.get("torch")))]


def _compare(old: dict[str, Any], repetition: dict[str, Any]) -> Comparison:
    new = _held(repetition, old)
    if failed := old["status"] == "ok" != new["status"]:
        found = [f"could not be done again: {repetition['error']['message']}"]
    else:
        found = _revision(old) + differences(old, new)
    here = repetition["meta"].get("environment", {})
    return Comparison(old["key"], failed, found, surroundings(old["meta"], here))


def surroundings(meta: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """What was different when a record was made: processor, matrix products, library versions."""
    there = meta.get("environment", {})
    return [
        line
        for line in differences(_held(there, here), _held(here, there))
        if not line.startswith("cores")
    ]


def _revision(old: dict[str, Any]) -> list[str]:
    entry = find_model(old["spec"]["model"])
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
    """Where two records differ outside `meta`, as `path: old -> new`; of a list the first place."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(old.keys() | new.keys())
        return [
            line
            for key in keys
            if path or key != "meta"
            for line in differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
        ]
    if old == new:
        return []
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        first, *more = [
            i for i, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]
        ]
        rest = f" (and {len(more)} more of {len(old)})" if more else ""
        return [f"{path}[{first}]: {old[first]!r} -> {new[first]!r}{rest}"]
    return [f"{path}: {old!r} -> {new!r}"]
