"""The tables of the paper, and others of the same form: measured cells, computed ones, ranks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmark.protocol.choices import EDITIONS
from benchmark.runner.records import Store
from benchmark.runner.shipped import store_at
from benchmark.tables.computed import with_computed
from benchmark.tables.measured import measure
from benchmark.tables.ranking import with_summaries
from benchmark.tables.recipes import Recipe, catalogue, read_recipe
from benchmark.tables.table import Table


def build_table(name: str, results: Path) -> Table:
    """Build the table called `name` from the records below `results`."""
    return build_recipe(read_recipe(name), results)


def build_all(results: Path, names: Sequence[str] | None = None) -> dict[str, Table]:
    """All tables, or these, by name; a record is read once, however many tables show it."""
    store = store_at(results, remember=True)
    return {name: build_from(store, name) for name in (catalogue() if names is None else names)}


def build_from(store: Store, name: str) -> Table:
    """The table called `name`; a store that remembers builds it once."""
    return store.once(
        ("table", name), lambda: build_recipe(read_recipe(name), store.root, store=store)
    )


def build_recipe(
    recipe: Recipe,
    results: Path,
    editions: Sequence[str] = EDITIONS,
    store: Store | None = None,
) -> Table:
    """Build a table from what its recipe plans."""
    store = store or store_at(results, remember=True)
    table = with_computed(measure(recipe, store, editions), store)
    return with_summaries(table, recipe.rank) if recipe.rank else table
