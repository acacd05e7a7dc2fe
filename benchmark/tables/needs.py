"""What a table is made from: the cells whose runs it needs, and how their settings are chosen."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from benchmark.protocol.choices import base_of
from benchmark.protocol.plan import Cell, Protocol, canonical_model
from benchmark.protocol.registry import check_name, data_ref
from benchmark.protocol.spec import RunSpec, UserError
from benchmark.protocol.stored import or_told
from benchmark.runner.records import Store
from benchmark.tables.computed import COMPUTED
from benchmark.tables.recipes import Need, Recipe, catalogue, read_recipe


def searched_cell(need: Need) -> Cell:
    """The cell whose search gives the settings: a variant may take those of its model."""
    return base_of(need.cell) if need.settings == "base" else need.cell


def needs(
    table: str, only_models: Sequence[str] | None = None, only_datasets: Sequence[str] | None = None
) -> list[Need]:
    """The runs behind a table, also behind its computed cells; times are not among them. Names are
    those that `named` gives."""
    recipe = read_recipe(table)
    found = [
        need
        for dataset in only_datasets or recipe.datasets
        for need in _on(recipe, dataset)
        if not only_models or need.cell.model in only_models
    ]
    return list(
        {(n.cell.model, n.cell.data.label, n.settings, str(n.params)): n for n in found}.values()
    )


def named(
    table: str, models: Sequence[str] | None, datasets: Sequence[str] | None
) -> tuple[list[str] | None, list[str] | None]:
    """Models and datasets of a table by the names that its cells have, however they were written. One
    that the table does not have raises: nothing would be done for it, and nobody would be told."""
    recipe = read_recipe(table)
    cells = [*(need.cell for need in needs(table)), *timed(table)]
    known = list(dict.fromkeys(cell.model for cell in cells))
    models = _among(models, f"model of {recipe.name}", known, canonical_model)
    place = f"dataset of {recipe.name}"
    datasets = _among(datasets, place, recipe.datasets, lambda name: data_ref(name).label)
    if models and datasets:
        wanted = set(itertools.product(models, datasets))
        if not any((cell.model, cell.data.label) in wanted for cell in cells):
            raise UserError(
                f"{recipe.name} has no {', '.join(models)} on {', '.join(datasets)}. "
                f"`python -m benchmark status {recipe.name}` lists what it has."
            )
    return models, datasets


def _among(
    names: Sequence[str] | None, kind: str, known: Sequence[str], canonical: Callable[[str], str]
) -> list[str] | None:
    if names is None:
        return None
    found = dict.fromkeys(name if name in known else canonical(name) for name in names)
    for name in found:
        check_name(kind, name, known)
    return list(found)


def _on(recipe: Recipe, dataset: str) -> list[Need]:
    """The cells behind a table's columns on one dataset; a computed column names its own."""
    found = []
    for metric in recipe.metrics:
        if metric.computed:
            found += COMPUTED[metric.computed].needs(recipe, dataset)
        elif not metric.timed:
            found += recipe.rows_on(dataset)
    return found


def timed(table: str) -> list[Cell]:
    """The cells that a table shows times of."""
    recipe = read_recipe(table)
    if not any(metric.timed for metric in recipe.metrics):
        return []
    cells = (recipe.cell(m, d) for d in recipe.datasets for m in recipe.methods)
    return [cell for cell in cells if cell is not None]


def timed_everywhere() -> list[Cell]:
    """The cells that any table shows times of, each once."""
    found = {(c.model, c.data.label): c for table in catalogue() for c in timed(table)}
    return list(found.values())


def specs_by_edition(
    need: Need, store: Store, protocol: Protocol
) -> dict[str, list[RunSpec] | None]:
    """The runs behind a cell; None where the edition's settings are not known."""
    cell, extra = need.cell, need.params or {}
    settings = {"rule": or_told(lambda: store.setting(cell, need.settings))}
    if need.params is None:
        settings["recovered"] = store.setting(cell, "recovered")
    return {
        edition: None if known is None else cell.specs({**known.params, **extra}, protocol)
        for edition, known in settings.items()
    }


def specs_of(need: Need, store: Store, protocol: Protocol) -> list[RunSpec]:
    """The runs behind a cell in both editions, as far as their settings are known."""
    editions = specs_by_edition(need, store, protocol).values()
    return [spec for specs in editions for spec in specs or ()]
