"""From names to runs: which models, with which settings, on which data and splits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmark.protocol.registry import (
    ModelEntry,
    Search,
    data_ref,
    datasets,
    make_spec,
    model_ref,
    models,
)
from benchmark.protocol.spec import FOLDS, REPEATS, DataRef, RunSpec, UserError, folder_name

Split = tuple[int, int]

MOST = 10_000
"""More splits, workers or tables than this are a slip of the keyboard, and would fill the memory."""


@dataclass(frozen=True)
class Protocol:
    """The splits that are planned: repeats x folds, 25 in the paper."""

    repeats: int = REPEATS
    folds: int = FOLDS

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise UserError(f"At least 2 folds are needed (--folds), got {self.folds}.")
        if self.repeats < 1:
            raise UserError(f"At least 1 repeat is needed (--repeats), got {self.repeats}.")
        if (splits := self.repeats * self.folds) > MOST:
            raise UserError(f"--repeats times --folds must be at most {MOST} splits, got {splits}.")

    def splits(self) -> list[Split]:
        return [(r, f) for r in range(self.repeats) for f in range(self.folds)]


@dataclass(frozen=True)
class Cell:
    """A model, perhaps with some settings fixed by name, on a dataset."""

    entry: ModelEntry
    data: DataRef
    overrides: dict[str, Any] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """`svm`, or `svm:kernel=poly`: what the command line takes."""
        return _one_name(self.entry, self.overrides)

    @property
    def own(self) -> bool:
        """Whether somebody's own model or table is part of it, so that it belongs to nobody else."""
        return self.entry.own or self.data.path is not None

    def place(self, results: Path, kind: str, suffix: str = "") -> Path:
        """Where things of a kind lie for this cell, such as `choices/svm-kernel=poly/colon.json`."""
        return results / kind / folder_name(self.model) / f"{self.data.folder}{suffix}"

    @property
    def search(self) -> Search:
        """What is left to choose once the named settings are fixed."""
        search = self.entry.search_for(self.data)
        return Search(
            {k: v for k, v in search.grid.items() if k not in self.overrides},
            {k: v for k, v in search.ranges.items() if k not in self.overrides},
            search.trials,
        )

    def candidates(self) -> list[dict[str, Any]]:
        """The grid's settings in grid order; a single one if nothing is searched."""
        return [{**self.overrides, **point} for point in self.search.points()]

    def specs(self, params: Mapping[str, Any], protocol: Protocol) -> list[RunSpec]:
        """The runs of one setting, in the order of the splits."""
        settings = {**self.overrides, **params}
        return [
            make_spec(self.entry, self.data, settings, repeat, fold, folds=protocol.folds)
            for repeat, fold in protocol.splits()
        ]


def keys_of(cell: Cell, params: Mapping[str, Any]) -> tuple[RunSpec, tuple[str, ...]]:
    """The first of the paper's 25 runs of a setting, and the keys of all."""
    paper = Protocol()
    [first] = cell.specs(params, Protocol(1, paper.folds))[:1]
    # They differ in the split only, which comes last; hashing each would cost most of a table.
    shared = first.key.rpartition("/")[0]
    return first, tuple(f"{shared}/r{repeat}f{fold}" for repeat, fold in paper.splits())


def canonical_model(text: str) -> str:
    """A model's one name, however it was written: settings in their order, a class by its place."""
    return _one_name(*model_ref(text))


def _one_name(entry: ModelEntry, overrides: Mapping[str, Any]) -> str:
    fixed = (f"{k}={spelled(v)}" for k, v in sorted(overrides.items()))
    return ":".join([entry.name, *fixed])


def spelled(value: Any) -> str:
    """As parse_name reads it back: null and true, not None and True."""
    return value if isinstance(value, str) else json.dumps(value)


def cells(model_names: Sequence[str], data: Sequence[DataRef]) -> list[Cell]:
    """Every named model on every named dataset; unknown names raise with the nearest one."""
    refs = [model_ref(name) for name in model_names]
    return [Cell(entry, ref, overrides) for ref in told_apart(data) for entry, overrides in refs]


def told_apart(data: Sequence[DataRef]) -> list[DataRef]:
    """Each of them once; different data under one name raise, because results would mix them up."""
    found: dict[str, DataRef] = {}
    for ref in data:
        other = found.setdefault(ref.label, ref)
        if other != ref:
            raise UserError(
                f"Two tables would be called {ref.label!r} in the results, after their files' names up "
                f"to the first dot:\n  {other.path}: {other.words}\n  {ref.path}: {ref.words}\n"
                f"Give one of them as a copy of its file under another name, or run them separately."
            )
    return list(found.values())


def all_models() -> list[str]:
    return list(models())


def all_datasets() -> list[DataRef]:
    return [data_ref(name) for name in datasets()]
