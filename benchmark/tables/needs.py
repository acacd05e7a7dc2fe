"""What a table is made from: the cells whose runs it needs, and how their settings are chosen."""

from __future__ import annotations

from collections.abc import Sequence

from benchmark.protocol.choices import base_of
from benchmark.protocol.plan import Cell, Protocol
from benchmark.protocol.registry import check_name, model_ref
from benchmark.protocol.spec import RunSpec
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
    """The runs behind a table, also behind its computed cells; times are not among them."""
    recipe = read_recipe(table)
    for name in only_models or []:
        model_ref(name)
    for name in only_datasets or []:
        check_name("dataset of this table", name, recipe.datasets)
    found = [
        need
        for dataset in only_datasets or recipe.datasets
        for need in _on(recipe, dataset)
        if not only_models or need.cell.model in only_models
    ]
    return list(
        {(n.cell.model, n.cell.data.label, n.settings, str(n.params)): n for n in found}.values()
    )


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
