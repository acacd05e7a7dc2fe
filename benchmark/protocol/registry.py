"""Models, datasets and tables that exist: data read from TOML. Listing them imports nothing.

`models/registry.toml` and `datasets/registry.toml` describe what ships with the project.
A user's own models come from a file of the same form named by BENCHMARK_MODELS.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
import itertools
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from benchmark.protocol.spec import SEED, DataRef, RunSpec, UserError, canonical, parse_name


@dataclass(frozen=True)
class Range:
    """A continuous search range, explored by Optuna."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True)
class Search:
    """How a model's settings are chosen: a grid, or ranges with a number of trials."""

    grid: dict[str, list[Any]] = field(default_factory=dict)
    ranges: dict[str, Range] = field(default_factory=dict)
    trials: int = 0

    def points(self) -> list[dict[str, Any]]:
        """The grid's settings, the last parameter varying fastest: the order ties refer to."""
        return [
            dict(zip(self.grid, values, strict=True))
            for values in itertools.product(*self.grid.values())
        ]


@dataclass(frozen=True)
class ModelEntry:
    """One model of the registry."""

    own: bool
    """Whether it comes from a user's own file."""
    name: str
    class_path: str
    """`module:Class`; a module without a dot lies in models/."""
    label: str
    family: str
    selects: str
    """none | global | local: whether and how the model selects features."""
    deterministic: bool
    """Whether it has no randomness: the same settings on the same data give the same number."""
    revision: int
    reference: str
    params: dict[str, Any]
    search: Search
    recovered: dict[str, dict[str, Any]]
    """Per dataset, the settings that reproduce the printed cell, where they are known."""
    by_group: dict[str, dict[str, Any]]
    """Other parameters and ranges for a group of datasets, e.g. the synthetic ones."""
    by_dataset: dict[str, dict[str, Any]]
    """Parameters that the paper fixes for one dataset."""

    def params_for(self, data: DataRef) -> dict[str, Any]:
        """What a run on this data is given unless it says otherwise."""
        group = self.by_group.get(group_of(data), {}).get("params", {})
        return {**self.params, **group, **self.by_dataset.get(data.name, {})}

    def search_for(self, data: DataRef) -> Search:
        """The grid or ranges that are searched on this data."""
        other = self.by_group.get(group_of(data), {})
        return read_search(other) if other.keys() & {"grid", "range"} else self.search


@dataclass(frozen=True)
class DatasetEntry:
    """One dataset of the registry."""

    name: str
    label: str
    group: str
    """hdlss | tabular | synthetic: the paper's real, non-HDLSS and synthetic sets."""
    reader: str
    """`module:function` in datasets/."""
    shape: tuple[int, int]
    classes: dict[str, int]
    """Label -> number of samples, in the order of the codes 0, 1, ..."""
    switches: dict[str, list[Any]]
    """Named alternatives; the first one is the default."""
    files: tuple[dict[str, Any], ...]
    embedded: str | None
    citation: str
    licence: str
    how_to_get: str
    options: dict[str, Any]
    content: str
    """SHA-256 of the reference X and y, whichever file they were read from; empty if unknown."""
    probe: tuple[float, ...]
    """Numbers that tell equal data in another precision from other data."""
    variants: dict[str, dict[str, Any]]
    """Per value of a switch, the classes and content that differ from the default's."""


def read_search(entry: Mapping[str, Any]) -> Search:
    return Search(
        grid={k: list(v) for k, v in entry.get("grid", {}).items()},
        ranges={k: Range(**v) for k, v in entry.get("range", {}).items()},
        trials=entry.get("trials", 20),
    )


def _read_model(name: str, entry: dict[str, Any], own: bool) -> ModelEntry:
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name):
        raise ValueError(f"the name {name!r} may only have letters, digits, '_', '-' and '.'")
    canonical(entry)  # records are JSON, so settings have to be: no dates, no infinities
    return ModelEntry(
        own=own,
        name=name,
        class_path=entry["class"],
        label=entry.get("label", name),
        family=entry.get("family", "own"),
        selects=entry.get("selects", "none"),
        deterministic=entry.get("deterministic", False),
        revision=entry.get("revision", 1),
        reference=entry.get("reference", ""),
        params=entry.get("params", {}),
        search=read_search(entry),
        recovered=entry.get("recovered", {}),
        by_group=entry.get("group", {}),
        by_dataset=entry.get("dataset", {}),
    )


def _read_dataset(name: str, entry: dict[str, Any]) -> DatasetEntry:
    return DatasetEntry(
        name=name,
        label=entry.get("label", name),
        group=entry["group"],
        reader=entry["reader"],
        shape=(entry["shape"][0], entry["shape"][1]),
        classes=entry["classes"],
        switches=entry.get("switches", {}),
        files=tuple(entry.get("files", [])),
        embedded=entry.get("embedded"),
        citation=entry.get("citation", ""),
        licence=entry.get("licence", ""),
        how_to_get=entry.get("how_to_get", ""),
        options=entry.get("options", {}),
        content=entry.get("content", ""),
        probe=tuple(entry.get("probe", [])),
        variants=entry.get("variants", {}),
    )


@cache
def models() -> dict[str, ModelEntry]:
    """Every model, by name, in the paper's order; a user's own come last."""
    entries = tomllib.loads(files("benchmark.models").joinpath("registry.toml").read_text("utf-8"))
    own = os.environ.get("BENCHMARK_MODELS")
    theirs = _read_toml(Path(own)) if own else {}
    try:
        read = {name: _read_model(name, entry, own=False) for name, entry in entries.items()}
        return read | {name: _read_model(name, entry, own=True) for name, entry in theirs.items()}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UserError(
            f"A model entry in {own or 'models/registry.toml'} is incomplete: {error}. "
            f"docs/adding-a-model.md shows a whole entry."
        ) from error


@cache
def datasets() -> dict[str, DatasetEntry]:
    """Every dataset, by name, in the paper's order."""
    text = files("benchmark.datasets").joinpath("registry.toml").read_text("utf-8")
    return {name: _read_dataset(name, entry) for name, entry in tomllib.loads(text).items()}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"Cannot read the models file {path}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"The models file {path} is not valid TOML: {error}.") from error


def check_name(kind: str, name: str, known: Iterable[str]) -> None:
    """Raise a UserError that lists the valid names and suggests the nearest."""
    known = list(known)
    if name in known:
        return
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise UserError(f"Unknown {kind} {name!r}.{hint}\nValid are: {', '.join(known)}.")


def model_ref(text: str) -> tuple[ModelEntry, dict[str, Any]]:
    """`svm:kernel=rbf` -> the entry of svm and the parameters that were named."""
    name, overrides = parse_name(text)
    check_name("model", name, models())
    entry = models()[name]
    if overrides:
        # Importing the class takes a second, so only for settings that the registry does not list.
        known = {"random_state": SEED} | entry.params
        defaults = known if overrides.keys() <= known.keys() else _signature(entry) | known
        for key, value in overrides.items():
            check_name(f"setting of {name}", key, defaults)
            if key == "random_state" and (type(value) is not int or value < 0):
                raise UserError(
                    f"random_state of {name} is a whole number from 0 on, not {value!r}."
                )
            # 10 and 10.0 are one setting, so they must have one spelling.
            if isinstance(defaults[key], float) and isinstance(value, int):
                overrides[key] = float(value)
            elif type(defaults[key]) is int and isinstance(value, float) and value.is_integer():
                overrides[key] = int(value)
    return entry, overrides


def _signature(entry: ModelEntry) -> dict[str, Any]:
    """The settings that the model's class takes, with their defaults."""
    parameters = inspect.signature(load_class(entry)).parameters.values()
    return {p.name: p.default for p in parameters}


def data_ref(text: str) -> DataRef:
    """`syn1:generator=fixed` -> a reference; switches at their default are left out."""
    name, options = parse_name(text)
    check_name("dataset", name, datasets())
    switches = datasets()[name].switches
    for key, value in options.items():
        check_name(f"switch of dataset {name}", key, switches)
        if value not in switches[key]:
            raise UserError(
                f"Option {key!r} of dataset {name!r} is one of {switches[key]}, got {value!r}."
            )
    return DataRef(name, {k: v for k, v in options.items() if v != switches[k][0]})


def group_of(data: DataRef) -> str:
    """The dataset's group; a user's own table is treated like the paper's real data."""
    return "hdlss" if data.path else datasets()[data.name].group


def make_spec(
    entry: ModelEntry,
    data: DataRef,
    params: Mapping[str, Any],
    repeat: int,
    fold: int,
    **protocol: Any,
) -> RunSpec:
    """A run with complete settings: the registry's, overridden by `params`."""
    settings = {**entry.params_for(data), **params}
    # One seed per run: whatever else draws at random starts from the model's.
    seed = settings.pop("random_state", SEED)
    return RunSpec(
        model=entry.name,
        data=data,
        repeat=repeat,
        fold=fold,
        params=settings,
        seed=seed,
        revision=entry.revision,
        **protocol,
    )


def load_class(entry: ModelEntry) -> type[Any]:
    """Import the model's class; a missing library is named with the remedy."""
    module, _, name = entry.class_path.partition(":")
    full = module if entry.own else f"benchmark.models.{module}"
    try:
        return getattr(importlib.import_module(full), name)  # type: ignore[no-any-return]
    except ModuleNotFoundError as error:
        raise UserError(
            f"Model {entry.name!r} needs the package {error.name!r}, which is not installed. "
            f"Run `make install`, or pip install it."
        ) from error
    except AttributeError as error:
        raise UserError(f"Model {entry.name!r}: {full} has no class {name!r}.") from error
    except Exception as error:
        raise UserError(
            f"Model {entry.name!r}: importing {full} fails: {type(error).__name__}: {error}"
        ) from error
