"""The front door from Python: what `from benchmark import ...` gives. docs/python.md shows it.

Models are named as on the command line, or given as classes that can be imported: a run is done in
another process, which knows a model by its place alone. Where several can be given, one may stand
without a list around it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from benchmark.data.dataset import Dataset
from benchmark.data.load import check_splits, load, own_table
from benchmark.judge import rank as ranking
from benchmark.judge.rank import Ranked
from benchmark.protocol import registry
from benchmark.protocol.plan import Protocol, canonical_model, cells
from benchmark.protocol.spec import METRICS, DataRef, RunSpec, UserError
from benchmark.runner.campaign import Means
from benchmark.runner.campaign import run_missing as campaign
from benchmark.runner.frame import frame_of, row_of
from benchmark.runner.load import load_records
from benchmark.runner.records import Store
from benchmark.runner.shipped import Shipped, own_folder

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Dataset", "Ranked", "load_dataset", "load_records", "rank", "run", "table"]

Model = str | type
Data = str | DataRef
"""A dataset of the registry by its name, or a table of one's own."""


def table(
    path: Path | str,
    target: str,
    *,
    drop: str | Sequence[str] = (),
    id: str | None = None,
    groups: str | None = None,
    test: Path | str | None = None,
    split: str | None = None,
    valid_size: float | None = None,
    min_class: int | None = None,
    transpose: bool = False,
    impute: Literal["median"] | None = None,
    encode: Literal["onehot"] | None = None,
    folds: int = Protocol().folds,
) -> DataRef:
    """A table of one's own, read and checked once: what stands for it wherever data are named.

    The options are those of the command line; docs/your-own-data.md says what they do. `folds` is
    how many its classes have to suffice for, and no part of what it stands for.
    """
    for file in (path, test):
        _check_type(file, Path, "a table is given by its file", "save a DataFrame with to_parquet")
    for column in (target, id, groups, split, *_listed(drop)):
        _check_type(column, str, "a column is given by its name", "write it in quotes")
    return own_table(
        path, target, _listed(drop), Protocol(folds=folds).folds, id=id, groups=groups, test=test, split=split, valid_size=valid_size,
        min_class=min_class, transpose=transpose, impute=impute, encode=encode,
    )  # fmt: skip


def load_dataset(data: Data) -> Dataset:
    """X, y, classes, features and ids of a dataset."""
    return load(_data(data))


def run(
    models: Model | Sequence[Model],
    datasets: Data | Sequence[Data],
    *,
    repeats: int = Protocol().repeats,
    folds: int = Protocol().folds,
    results: Path | str | None = None,
    jobs: int = 1,
) -> pd.DataFrame:
    """Do the runs of models on datasets and give them as a table, a row per run, failures too.

    Settings are those that `tune` has chosen, else the defaults. Finished runs are not repeated, and
    those that ship with the package are taken as they are. A model of one's own whose first run fails
    has one row, which says why.
    """
    means = Means(store=_store(results), jobs=jobs)
    protocol = Protocol(repeats, folds)
    specs: list[RunSpec] = []
    for cell in cells([_name(model) for model in _models(models)], _datasets(datasets, protocol)):
        setting = means.store.setting(cell, "own", "base", "default")
        assert setting is not None
        specs += cell.specs(setting.params, protocol)
    report = campaign(specs, means)
    done = [report.records[spec.key] for spec in specs if spec.key in report.records]
    return frame_of(map(row_of, done))


def rank(
    models: Model | Sequence[Model],
    datasets: Data | Sequence[Data],
    *,
    metric: str = "balanced_accuracy",
    against: Model | None = None,
    results: Path | str | None = None,
    jobs: int = 1,
    budget: float | None = None,
) -> Ranked:
    """Rank models over datasets; missing runs of one's own are done first, for `budget` seconds.

    The word "paper" among the models stands for its 17 methods. `benchmark.judge.rank` has
    `to_text`, `to_json` and `to_csv` to show the result.
    """
    registry.check_name("metric", metric, METRICS)
    names = [m if m == ranking.PAPER else canonical_model(_name(m)) for m in _models(models)]
    tested = None if against is None else canonical_model(_name(against))
    wanted = ranking.recipe(names, _datasets(datasets), metric, tested)
    deadline = None if budget is None else time.monotonic() + budget
    if budget != 0:
        means = Means(store=_store(results), jobs=jobs, deadline=deadline)
        ranking.run_missing(wanted, means, names)
    return ranking.build(wanted, _store(results), tested)


def _store(results: Path | str | None) -> Store:
    return Store(own_folder() if results is None else Path(results), below=Shipped())


def _datasets(datasets: Data | Sequence[Data], protocol: Protocol | None = None) -> list[DataRef]:
    """The datasets named. Own tables are checked for these splits; without a protocol for the paper's, where
    the caller has no option to change them."""
    found = [_data(one) for one in _listed(datasets)]
    if not found:
        raise UserError("Name a dataset, such as 'colon', or give a table of your own.")
    fewer, protocol = protocol is not None, protocol or Protocol()
    for data in found:
        if data.path is not None:
            # It may have been checked for other folds.
            check_splits(data, protocol.folds, protocol.repeats, fewer)
    return found


def _models(models: Model | Sequence[Model]) -> list[Model]:
    found = _listed(models)
    if not found:
        raise UserError("Name a model, such as 'knn', or give a class.")
    return found


def _listed(given: Any) -> list[Any]:
    """A list of what was given: a text has letters, an ensemble its members and a DataFrame its columns
    to go through."""
    one = isinstance(given, str) or any(hasattr(given, name) for name in ("fit", "columns"))
    return [given] if one or not isinstance(given, Iterable) else list(given)


def _check_type(given: Any, wanted: type, what: str, remedy: str) -> None:
    if given is not None and not isinstance(given, str | wanted):
        raise UserError(f"In table(), {what}, got {_shown(given)}: {remedy}.")


def _shown(given: Any) -> str:
    """On one line, whatever it is: a DataFrame has many."""
    return f"{type(given).__name__} {' '.join(str(given).split())[:40]!r}"


def _data(data: Data) -> DataRef:
    if not isinstance(data, str | DataRef):
        raise UserError(
            f"{_shown(data)} stands for no dataset. Give the name of a registered one, or your own file "
            f"with benchmark.table(path, target)."
        )
    return data if isinstance(data, DataRef) else registry.data_ref(data)


def _name(model: Model) -> str:
    if not isinstance(model, str | type):
        raise UserError(
            f"{model!r} is an object. Give its class, {type(model).__name__}: every run makes its own, "
            f"and settings stand in the name, as in 'knn:n_neighbors=3'."
        )
    return model if isinstance(model, str) else _place(model)


def _place(model: type) -> str:
    """The registered name of a shipped class; of others, where they can be imported from."""
    for entry in registry.models().values():
        module, _, name = entry.class_path.partition(":")
        if not entry.own and (f"benchmark.models.{module}", name) == _where(model):
            return entry.name
    module, name = _where(model)
    if module == "__main__" or "." in name:
        raise UserError(
            f"{name} is not in a module that can be imported. Runs are done in other processes: put the "
            f"class into a file of its own, such as mymodel.py."
        )
    return f"{module}.{name}"


def _where(model: type) -> tuple[str, str]:
    return model.__module__, model.__qualname__
