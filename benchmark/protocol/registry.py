"""Models and datasets that exist: data read from TOML. Listing them imports nothing.

`models/registry.toml` and `datasets/registry.toml` describe what ships with the project.
A user's own models come from a file of the same form named by BENCHMARK_MODELS, or are named by
their place, as in `sklearn.naive_bayes:GaussianNB`.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import itertools
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NotRequired, TypedDict

from benchmark.files import Unreadable, read_whole
from benchmark.protocol.spec import (
    SEED,
    VALID_SIZE,
    DataRef,
    RunSpec,
    UserError,
    canonical,
    folder_name,
    parse_name,
)
from benchmark.shapes import Misshapen, fit


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

    def __bool__(self) -> bool:
        """Whether anything is searched."""
        return bool(self.grid or self.ranges)

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
    """Whether it is the user's: from a file of their own, or a class that is named by its place."""
    name: str
    class_path: str
    """`module:Class`; a shipped one's module lies in models/."""
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

    @property
    def called(self) -> str:
        """Its name as users write it, who name a class by its place: `module:Class`."""
        by_place = self.own and self.name == self.class_path.replace(":", ".")
        return self.class_path if by_place else self.name

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


class _Search(TypedDict, total=False):
    """How settings are searched, as TOML has it."""

    grid: dict[str, list[Any]]
    range: dict[str, Range]
    trials: int


class _Group(TypedDict, total=False):
    """What differs for a group of datasets."""

    params: dict[str, Any]
    grid: dict[str, list[Any]]
    range: dict[str, Range]
    trials: int


_Model = TypedDict(
    "_Model",
    {
        "class": str,
        "label": NotRequired[str],
        "family": NotRequired[str],
        "deterministic": NotRequired[bool],
        "selects": NotRequired[Literal["none", "global", "local"]],
        "revision": NotRequired[int],
        "reference": NotRequired[str],
        "params": NotRequired[dict[str, Any]],
        "grid": NotRequired[dict[str, list[Any]]],
        "range": NotRequired[dict[str, Range]],
        "trials": NotRequired[int],
        "recovered": NotRequired[dict[str, dict[str, Any]]],
        "group": NotRequired[dict[str, _Group]],
        "dataset": NotRequired[dict[str, dict[str, Any]]],
    },
)
"""A model's entry, as TOML has it."""

MOST = 10_000
"""Settings of one grid, or trials: more is a slip, and would fill the memory before it is seen."""


def read_search(entry: Mapping[str, Any]) -> Search:
    found = fit(_Search, {k: entry[k] for k in ("grid", "range", "trials") if k in entry})
    search = Search(found.get("grid", {}), found.get("range", {}), found.get("trials", 20))
    for name, values in search.grid.items():
        if not values:
            raise Misshapen("is empty, expected the values to try", f"grid.{name}")
    for name, r in search.ranges.items():
        if not r.low < r.high:
            raise Misshapen(f"goes from {r.low} to {r.high}, expected low < high", f"range.{name}")
        if r.log and r.low <= 0:
            raise Misshapen(f"is logarithmic from {r.low}, expected low > 0", f"range.{name}")
    if not 1 <= search.trials <= MOST:
        raise Misshapen(f"is {search.trials}, expected 1 to {MOST}", "trials")
    if math.prod(map(len, search.grid.values())) > MOST:
        raise Misshapen(f"has more than {MOST} settings", "grid")
    return search


def _read_model(name: str, entry: Any, own: bool) -> ModelEntry:
    if folder_name(name) != name:
        raise Misshapen(
            "has a name that is no folder: it may only have letters, digits, '_', '-' and '.'"
        )
    canonical(entry)  # records are JSON, so settings have to be: no dates, no infinities
    fit(_Model, entry)
    for field_name in entry:
        check_name("field", field_name, _Model.__annotations__)
    if entry.get("revision", 1) < 1:
        raise Misshapen(f"is {entry['revision']}, expected 1 or more", "revision")
    for group, other in entry.get("group", {}).items():
        _inside(f"group.{group}", read_search, other)
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


def _shipped_models() -> dict[str, Any]:
    return tomllib.loads(files("benchmark.models").joinpath("registry.toml").read_text("utf-8"))


@cache
def models() -> dict[str, ModelEntry]:
    """Every model, by name, in the paper's order; a user's own come last."""
    entries = _shipped_models()
    own = os.environ.get("BENCHMARK_MODELS")
    theirs = _read_toml(Path(own)) if own else {}
    shipped = {name: _read_model(name, entry, own=False) for name, entry in entries.items()}
    for name in theirs.keys() & entries.keys():
        raise UserError(
            f"The model {name!r} in {own} has the name of one that ships with the project, and its "
            f"runs would be taken for that one's. Give it another name, such as my-{name}."
        )
    return shipped | {name: _own_model(name, entry, str(own)) for name, entry in theirs.items()}


def _own_model(name: str, entry: Any, file: str) -> ModelEntry:
    try:
        return _read_model(name, entry, own=True)
    except (TypeError, ValueError, RecursionError, UserError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise UserError(
            f"The model {name[:100]!r} in {file} is incomplete or wrong: {reason}. "
            f"docs/adding-a-model.md shows a whole entry."
        ) from error


def _inside(place: str, read: Callable[[Any], Any], value: Any) -> None:
    try:
        read(value)
    except Misshapen as error:
        raise error.inside(place) from None


@cache
def datasets() -> dict[str, DatasetEntry]:
    """Every dataset, by name, in the paper's order."""
    text = files("benchmark.datasets").joinpath("registry.toml").read_text("utf-8")
    return {name: _read_dataset(name, entry) for name, entry in tomllib.loads(text).items()}


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_whole(path).decode("utf-8"))
    except Unreadable as error:
        raise UserError(f"The models file {path} {error}.") from error
    except OSError as error:
        raise UserError(f"Cannot read the models file {path}: {error.strerror}.") from error
    except RecursionError as error:
        raise UserError(f"The models file {path} is nested too deeply.") from error
    except ValueError as error:  # also text that is not UTF-8, and numbers of thousands of digits
        raise UserError(f"The models file {path} is not valid TOML: {error}.") from error


def check_name(kind: str, name: str, known: Iterable[str]) -> None:
    """Raise a UserError that lists the valid names and suggests the nearest."""
    known = list(known)
    if name in known:
        return
    raise UserError(f"Unknown {kind} {name!r}.{_hint(name, known)}\nValid are: {', '.join(known)}.")


def _hint(name: str, known: Iterable[str]) -> str:
    by_lower = {one.lower(): one for one in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    # Another number is another thing: nobody who asks for Table 0 means Table 20.
    near = [one for one in near if _wordy(one) != _wordy(name.lower())]
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


def _wordy(name: str) -> str:
    return re.sub(r"\d", "", name)


def find_model(name: str) -> ModelEntry | None:
    """The model called `name`: a registered one, or a class by its place, `module.Class`."""
    if name in models():
        return models()[name]
    module, _, attribute = name.rpartition(".")
    if module and all(part.isidentifier() for part in name.split(".")):
        entry = {"class": f"{module}:{attribute}", "label": attribute}
        return _read_model(name, entry, own=True)
    return None


def label(name: str) -> str:
    """A method's name as tables, figures and sentences show it; a variant with settings, or what is
    no model, goes by its own."""
    entry = find_model(name)
    return entry.label if entry else name


def model(name: str) -> ModelEntry:
    """As `find_model`, but an unknown name raises, with the nearest one."""
    if name.endswith(".py"):
        raise UserError(
            _call_a_class(f"{name!r} is a file", ".".join(Path(name).with_suffix("").parts))
        )
    entry = find_model(name)
    if entry is None:
        if name.isidentifier() and _is_module(name):
            raise UserError(_call_a_class(f"{name!r} is a module", name))
        check_name("model", name, models())
    assert entry is not None
    return entry


def _call_a_class(what: str, module: str) -> str:
    return f"{what}, and a model is a class of it, named as in {module}:MyModel."


def _by_its_place(text: str) -> str:
    """`package.module:Class:key=value` -> `package.module.Class:key=value`: a name has one colon per
    setting, and becomes a folder."""
    name, *rest = text.split(":")
    if name in models() or not rest or not rest[0].isidentifier():
        return text
    return ":".join([f"{name}.{rest[0]}", *rest[1:]])


def model_ref(text: str) -> tuple[ModelEntry, dict[str, Any]]:
    """`svm:kernel=rbf` -> the entry of svm and the parameters that were named."""
    name, overrides = parse_name(_by_its_place(text))
    entry = model(name)
    if name not in models():
        load_factory(entry)  # a slip in the path is better told now than by 25 runs
    if overrides:
        # Importing the class takes a second, so only for settings that the registry does not list.
        known = overrides.keys() - {"random_state"} <= entry.params.keys()
        defaults = entry.params if known else _signature(entry) | entry.params
        for key, value in overrides.items():
            if key == "random_state":
                # Every run has a seed, also that of a class which does not ask for it.
                if type(value) is not int or value < 0:
                    raise UserError(
                        f"random_state of {entry.called} is a whole number from 0 on, not {value!r}."
                    )
                continue
            check_name(f"setting of {entry.called}", key, defaults)
            # 10 and 10.0 are one setting, so they must have one spelling.
            if isinstance(defaults[key], float) and isinstance(value, int):
                overrides[key] = float(value)
            elif type(defaults[key]) is int and isinstance(value, float) and value.is_integer():
                overrides[key] = int(value)
    return entry, overrides


def _signature(entry: ModelEntry) -> dict[str, Any]:
    """The settings that the model takes, with their defaults."""
    factory = load_factory(entry)
    if not callable(factory):
        return dict(factory.get_params())
    try:
        parameters = inspect.signature(factory).parameters.values()
        named = {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD}
        # Behind **kwargs a class may take its parent's settings, which only an instance tells.
        if len(named) < len(parameters) and hasattr(factory, "get_params"):
            named |= factory().get_params()
        return named
    except Exception as error:  # factory() is the user's code
        raise UserError(
            f"Model {entry.called!r}: its settings cannot be read: {type(error).__name__}: {error}"
        ) from error


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
        valid_size=data.options.get("valid_size", VALID_SIZE),
        **protocol,
    )


def load_class(entry: ModelEntry) -> type[Any]:
    """A shipped model's class."""
    found = load_factory(entry)
    if not isinstance(found, type):
        raise UserError(f"Model {entry.name!r}: {entry.class_path} is not a class.")
    return found


def load_factory(entry: ModelEntry) -> Any:
    """Import what makes the model; a missing library is named with the remedy.

    A class; of one's own models also a function that returns a classifier, or a classifier that is
    not fitted yet, which each run copies: that is how a pipeline is written.
    """
    module, _, name = entry.class_path.partition(":")
    full = module if entry.own else f"benchmark.models.{module}"
    try:
        found = importlib.import_module(full)
    except ModuleNotFoundError as error:
        raise UserError(f"Model {entry.called!r}: {_not_there(entry, full, error.name)}") from error
    except (Exception, SystemExit) as error:
        raise UserError(
            f"Model {entry.called!r}: importing {full} fails: {type(error).__name__}: {error}"
        ) from error
    return _member(entry, found, name)


def _member(entry: ModelEntry, module: ModuleType, name: str) -> Any:
    found = getattr(module, name, None)
    place = f"{module.__name__}.{name}"
    if inspect.ismodule(found) or (found is None and _is_module(place)):
        raise UserError(_call_a_class(f"{place!r} is a module", place))
    if found is None:
        known = sorted(key for key, value in vars(module).items() if _makes(key, value, module))
        raise UserError(
            f"Model {entry.called!r}: {module.__name__} has no class {name!r}.{_hint(name, known)}\n"
            f"It has: {', '.join(known) or 'none'}."
        )
    if not (callable(found) or hasattr(found, "get_params")):
        raise UserError(
            f"Model {entry.called!r}: {entry.class_path} is neither a class, nor a function that "
            f"returns a classifier, nor a classifier with scikit-learn's get_params; its type is "
            f"{type(found).__name__}."
        )
    return found


def _makes(name: str, value: Any, module: ModuleType) -> bool:
    """Whether it looks like what makes a model; what a module imported from elsewhere does not."""
    if name.startswith("_"):
        return False
    if inspect.isclass(value):
        package = module.__name__.partition(".")[0]
        return hasattr(value, "fit") and value.__module__.partition(".")[0] == package
    if inspect.isfunction(value):
        return value.__module__ == module.__name__
    return hasattr(value, "get_params")


def _not_there(entry: ModelEntry, module: str, missing: str | None) -> str:
    """Why a module cannot be imported, and what to do: it is misnamed, or it misses another one."""
    if module.endswith(".py"):
        *_, name = entry.class_path.partition(":")
        return f"a module is named without .py, as in {module.removesuffix('.py')}:{name}."
    if entry.own and missing and f"{module}.".startswith(f"{missing}."):
        return (
            f"there is no module {missing!r}, neither in the working folder ({Path.cwd()}) nor among "
            f"the installed packages. Correct its name, or pip install it."
        )
    remedy = "pip install it" if entry.own else "run `make install`, or pip install it"
    return f"it needs the package {missing!r}, which is not installed: {remedy}."


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False  # its parent is no package
