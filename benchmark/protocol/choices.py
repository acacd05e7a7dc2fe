"""Which settings a cell of a table stands for, and where they come from.

Two editions. `rule`: what the paper's rule chooses on the paper's grid, read from the choices
that tuning wrote. `recovered`: what reproduces the printed cell, from the registry, where known.
Everybody who needs the settings of a cell asks `resolve`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmark.files import write_atomic
from benchmark.protocol import stored
from benchmark.protocol.plan import Cell
from benchmark.protocol.spec import FOLDS, REPEATS, digest
from benchmark.text import counted

EDITIONS = ("rule", "recovered")
EDITION_NAMES = {"rule": "paper's rule", "recovered": "recovered settings"}
EXACT = ("full", "race", "optuna")
"""Searches that choose what all settings on all splits would: the grid, the grid without what cannot win
any more, and trials on every split."""


@dataclass(frozen=True)
class Candidate:
    """A setting that was tried, and its mean validation score."""

    params: dict[str, Any]
    valid: float | None
    """Mean validation balanced accuracy; None if a run of it failed."""
    runs: int


@dataclass(frozen=True)
class Choice:
    """The setting chosen for a model on a dataset, with the scores behind it."""

    model: str
    dataset: str
    method: str
    """How the search went: one of EXACT, or a cheaper one: `quick`, or `halving`, which only older choices
    have."""
    repeats: int
    folds: int
    splits: int
    """Runs behind the chosen setting's validation score."""
    revision: int
    search: str
    """What was searched, as a hash: a choice made on another grid is ignored."""
    params: dict[str, Any]
    valid: float
    edge: list[str]
    """Parameters whose chosen value is the first or last of its range: the optimum may lie beyond."""
    candidates: list[Candidate]
    data_sha256: str
    tied: int = 0
    """Of a quick search, how many settings shared the score at the cut; 1 if it was clear."""

    @property
    def by_rule(self) -> bool:
        """Whether it is what the paper's rule chooses: on its splits, by all that they say."""
        return self.on_paper_splits and self.strength == (self.splits, self.splits)

    @property
    def on_paper_splits(self) -> bool:
        return (self.repeats, self.folds) == (REPEATS, FOLDS)

    @property
    def strength(self) -> tuple[int, int]:
        """What the choice rests on: splits behind the chosen setting, and behind every setting. An exact
        search leaves out only what no split could change."""
        fewest = min((c.runs for c in self.candidates if c.valid is not None), default=0)
        return self.splits, self.splits if self.method in EXACT else fewest

    @property
    def search_text(self) -> str:
        """The search in a few words, for footnotes."""
        chosen, fewest = self.strength
        if self.method == "quick":
            finalists = sum(c.runs == chosen for c in self.candidates)
            return f"chosen on {fewest} splits, {_count(finalists)} on {chosen}"
        if self.method == "halving":
            return f"chosen by successive halving from {counted(fewest, 'split')}"
        if not self.on_paper_splits:
            return f"chosen on {self.repeats} x {self.folds} splits"
        return f"chosen on {counted(chosen, 'split')}"


def _count(finalists: int) -> str:
    words = {1: "one finalist", 2: "two finalists", 3: "three finalists"}
    return words.get(finalists, f"{finalists} finalists")


def search_digest(cell: Cell) -> str:
    """Names the settings that a choice was made among, and those that were fixed."""
    ranges = {name: asdict(r) for name, r in cell.search.ranges.items()}
    fixed = {**cell.entry.params_for(cell.data), **cell.overrides}
    return digest([fixed, cell.search.grid, ranges, cell.search.trials if ranges else 0], 8)


def choice_path(results: Path, cell: Cell) -> Path:
    return cell.place(results, "choices", ".json")


def write_choice(results: Path, cell: Cell, choice: Choice) -> Path:
    path = choice_path(results, cell)
    write_atomic(path, (json.dumps(asdict(choice), indent=1) + "\n").encode())
    return path


def read_choice(results: Path, cell: Cell) -> Choice | None:
    """The choice that tuning wrote for this cell, or None if it was never tuned."""
    path = choice_path(results, cell)
    remedy = (
        f"`python -m benchmark tune --models {cell.model} --datasets {cell.data.label}` sets it "
        f"aside and chooses again; finished runs are not repeated."
    )
    choice = stored.read(Choice, path, remedy)
    if choice is not None and (choice.model, choice.dataset) != (cell.model, cell.data.label):
        raise stored.Damaged(path, f"it is of {choice.model} on {choice.dataset}", remedy)
    searched = {*cell.search.grid, *cell.search.ranges, *cell.overrides}
    if choice is not None and current(choice, cell) and choice.params.keys() != searched:
        raise stored.Damaged(path, f"it chooses {sorted(choice.params)}", remedy)
    if choice is not None and choice.candidates and not _best_of_its_own(choice):
        raise stored.Damaged(path, "it does not choose the best of its own candidates", remedy)
    return choice


def _best_of_its_own(choice: Choice) -> bool:
    able = [c for c in choice.candidates if c.valid is not None and c.runs == choice.splits]
    best = max((c.valid for c in able if c.valid is not None), default=None)
    mine = [c.valid for c in able if c.params == choice.params]
    return bool(mine) and mine[0] == choice.valid == best


def base_of(cell: Cell) -> Cell:
    """The same model and data without the switches."""
    return replace(cell, overrides={})


def current(choice: Choice, cell: Cell) -> bool:
    """Whether the choice answers today's question: this model's revision, this search."""
    return (choice.revision, choice.search) == (cell.entry.revision, search_digest(cell))


@dataclass(frozen=True)
class Setting:
    """What a cell is run with, and where that comes from."""

    params: dict[str, Any]
    """On top of the registry's defaults."""
    origin: str
    """tuned (or nothing to choose) | recovered | default"""
    choice: Choice | None = None


Reader = Callable[[Cell], Choice | None]
"""How a choice is read: from disk, or by whoever remembers what was read before."""


def resolve(read: Reader, cell: Cell, *sources: str) -> Setting | None:
    """The settings of a cell, from the first of these sources that has some; None if none has.

    `own`        chosen for this model with its overrides
    `base`       chosen for the model without its overrides, which are added
    `recovered`  what reproduces the printed cell
    `default`    the registry's settings and the overrides, whether or not there is a search
    """
    for source in sources:
        found = _SOURCES[source](cell, read)
        if found is not None:
            return found
    return None


def _own(cell: Cell, read: Reader) -> Setting | None:
    if not cell.search:
        return Setting(dict(cell.overrides), "tuned")
    choice = read(cell)
    if choice is None or not current(choice, cell):
        return None
    return Setting(choice.params, "tuned", choice)


def _base(cell: Cell, read: Reader) -> Setting | None:
    found = _own(base_of(cell), read)
    return found and replace(found, params={**found.params, **cell.overrides})


def _recovered(cell: Cell, _read: Reader) -> Setting | None:
    known = cell.entry.recovered.get(cell.data.name)
    if known is None or cell.overrides or cell.data.options:
        return None
    return Setting(known, "recovered")


def _default(cell: Cell, _read: Reader) -> Setting:
    return Setting(dict(cell.overrides), "default")


_SOURCES: dict[str, Callable[[Cell, Reader], Setting | None]] = {
    "own": _own,
    "base": _base,
    "recovered": _recovered,
    "default": _default,
}
