"""What a table is made from: the cells whose runs it needs, and how their settings are chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.protocol.choices import base_of, resolve
from benchmark.protocol.plan import Cell, Protocol
from benchmark.protocol.registry import check_name, data_ref, models
from benchmark.protocol.spec import RunSpec, parse_name
from benchmark.tables.computed import LAMBDAS
from benchmark.tables.recipes import Recipe, Source, catalogue, read_recipe
from benchmark.tables.transferability import SELECTORS


@dataclass(frozen=True)
class Need:
    """A cell that a table is made from, and how its settings are chosen."""

    cell: Cell
    settings: str = "own"
    params: dict[str, Any] | None = None
    """Where a table asks for particular settings, these on top of the chosen ones."""

    @property
    def name(self) -> str:
        """One per cell and settings, so that a cell which several tables need is done once."""
        return f"{self.cell.model} on {self.cell.data.label}, {self.settings}, {self.params}"


def searched_cell(need: Need) -> Cell:
    """The cell whose search gives the settings: a variant may take those of its model."""
    return base_of(need.cell) if need.settings == "base" else need.cell


def needs(
    table: str, only_models: Sequence[str] | None = None, only_datasets: Sequence[str] | None = None
) -> list[Need]:
    """The runs behind a table, also behind its computed cells; times are not among them."""
    recipe = read_recipe(table)
    for name in only_models or []:
        check_name("model", name.partition(":")[0], models())
    for name in only_datasets or []:
        check_name("dataset of this table", name, recipe.datasets)
    found = []
    for dataset in recipe.datasets:
        for source in _sources(recipe):
            name, overrides = parse_name(source.model)
            if name not in models() or (only_models and source.model not in only_models):
                continue
            if only_datasets and dataset not in only_datasets:
                continue
            cell = Cell(models()[name], data_ref(dataset), overrides)
            if any(metric.computed.startswith("lambda") for metric in recipe.metrics):
                found += [Need(cell, params={"lam_global": x}) for x in LAMBDAS]
            else:
                found.append(Need(cell, source.settings))
    return list({(n.cell.model, n.cell.data.label, str(n.params)): n for n in found}.values())


def _sources(recipe: Recipe) -> list[Source]:
    rules = {metric.computed for metric in recipe.metrics}
    if rules & {"transfer_pooled", "transfer_means"}:
        return [Source(name) for name in ("knn", "svm", *SELECTORS[1:])]
    if "lambda_t" in rules:
        return [Source("protogate")]
    if any(not metric.timed for metric in recipe.metrics):
        return [recipe.source(m) for m in recipe.methods if not recipe.source(m).average]
    return []


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
    need: Need, results: Path, protocol: Protocol
) -> dict[str, list[RunSpec] | None]:
    """The runs behind a cell; None where the edition's settings are not known."""
    cell, extra = need.cell, need.params or {}
    settings = {"prescribed": resolve(results, cell, need.settings)}
    if need.params is None:
        settings["published"] = resolve(results, cell, "published")
    return {
        edition: None if known is None else cell.specs({**known.params, **extra}, protocol)
        for edition, known in settings.items()
    }


def specs_of(need: Need, results: Path, protocol: Protocol) -> list[RunSpec]:
    """The runs behind a cell in both editions, as far as their settings are known."""
    editions = specs_by_edition(need, results, protocol).values()
    return [spec for specs in editions for spec in specs or ()]
