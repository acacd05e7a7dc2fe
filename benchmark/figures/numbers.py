"""What several figures read: our cells on the paper's seven datasets, and the printed ones."""

from __future__ import annotations

from collections.abc import Iterable

from benchmark import paper
from benchmark.figures import style
from benchmark.protocol import registry
from benchmark.runner.records import Store
from benchmark.tables.build import build_recipe
from benchmark.tables.recipes import ACCURACY, FEATURES, Metric, Recipe, Rule
from benchmark.tables.table import Result, Table

EDITION = "rule"
"""Settings chosen by the paper's rule; the figures show what the rule leads to."""
FIDELITY = Metric("f1_select", "selection.f1.rows", "F1 of the selected features")
SPREAD = Metric("selected_features_std", "selection.std", "standard deviation between samples")


def real(store: Store) -> Table:
    """Our runs behind Table 2: accuracy and selected features."""
    recipe = Recipe(
        name="table2",
        title="",
        methods=paper.METHODS,
        datasets=paper.DATASETS,
        metrics=(ACCURACY, FEATURES, SPREAD),
        paper=2,
        rank=Rule(ACCURACY.name),
    )
    return store.once("figures, real", lambda: build_recipe(recipe, store.root, (EDITION,), store))


def synthetic(store: Store) -> Table:
    """Our runs behind Table 22: accuracy, and F1 against the truth that the paper used."""
    recipe = Recipe(
        name="table22",
        title="",
        methods=tuple(methods_of(22)),
        datasets=("syn1", "syn2", "syn3"),
        metrics=(ACCURACY, FIDELITY),
        paper=22,
    )
    return build_recipe(recipe, store.root, (EDITION,), store)


def mean(table: Table, method: str, dataset: str, metric: Metric = ACCURACY) -> float | None:
    """Our value of a cell with all its runs; None if any is missing."""
    result: Result | None = table.results.get((method, dataset, metric.name, EDITION))
    return result.mean if result and result.complete else None


def printed(number: int, method: str, dataset: str, metric: str) -> float | None:
    cell = paper.cell(number, method, dataset, metric)
    return cell.mean if cell else None


def methods_of(number: int) -> list[str]:
    """The methods among a table's rows, in its order; averages of rows are none."""
    rows = dict.fromkeys(cell.method for cell in paper.cells(number))
    return [row for row in rows if row in style.LOOKS]


def dimension(dataset: str) -> int:
    return registry.datasets()[dataset].shape[1]


def missing(methods: Iterable[str], table: str) -> str:
    """The note on methods without numbers of ours; empty if there are none."""
    labels = [registry.label(method) for method in methods]
    return f"Not run yet: {', '.join(labels)} ({command(table)})." if labels else ""


def command(table: str) -> str:
    """What does the runs that are missing, as a note has it."""
    return f"`python -m benchmark reproduce {table}`"
