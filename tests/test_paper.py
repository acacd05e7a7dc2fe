"""The printed numbers that the project carries as data."""

import pytest

from benchmark import paper
from benchmark.protocol import registry
from benchmark.tables.recipes import catalogue


def test_every_printed_cell_is_there():
    assert sum(len(paper.cells(table)) for table in paper.tables()) == 648
    assert paper.tables() == [2, 3, 7, *range(10, 24)]
    assert len(paper.cells(2)) == 17 * 8


def test_no_cell_is_there_twice():
    cells = [c for table in paper.tables() for c in paper.cells(table)]
    assert len({(c.table, c.method, c.dataset, c.metric) for c in cells}) == len(cells)


@pytest.mark.parametrize(
    ("table", "method", "dataset", "metric", "mean", "std"),
    [
        (2, "knn", "colon", "balanced_accuracy", 71.65, 12.03),
        (2, "protogate", "lung", "balanced_accuracy", 93.44, 6.37),
        (3, "protogate", "lung", "balanced_accuracy", 93.56, 6.29),
        (2, "l2x", "", "mean_rank", 14.29, 0.70),
        (2, "invase", "colon", "balanced_accuracy", None, None),
        (7, "llspin", "lung", "balanced_accuracy", 70.10, None),
        (22, "lasso", "syn1", "f1_select", 0.09, 0.02),
        (23, "knn|selector=protogate", "", "adtm_percent", 79.45, 11.22),
    ],
)
def test_spot_checks(table, method, dataset, metric, mean, std):
    cell = paper.cell(table, method, dataset, metric)
    assert (cell.mean, cell.std) == (mean, std)


def test_a_cell_that_the_paper_lacks_is_none():
    assert paper.cell(2, "knn", "syn1", "balanced_accuracy") is None


@pytest.mark.parametrize(
    ("table", "metric", "decimals"),
    [
        (2, "balanced_accuracy", 2),
        (2, "mean_rank", 2),
        (14, "trainable_parameters_millions", 1),
        (14, "hyperparameters", 0),
        (17, "wilcoxon_p", 4),
        (22, "rank_difference", 0),
        (22, "f1_select", 2),
        (2, "no such metric", 2),
    ],
)
def test_printed_decimals(table, metric, decimals):
    assert paper.decimals(table, metric) == decimals


def test_table_2_is_in_the_papers_order():
    cells = paper.cells(2)
    assert tuple(dict.fromkeys(c.method for c in cells)) == paper.METHODS
    assert tuple(dict.fromkeys(c.dataset for c in cells if c.dataset)) == paper.DATASETS
    assert list(paper.FAMILIES) == ["baseline", "global", "local"]
    assert paper.family("lightgbm") == "global"
    assert paper.family("nosuch") is None


def test_the_recipe_of_table_2_is_the_papers_table():
    recipe = catalogue()["table2"]
    assert tuple(recipe["methods"]) == paper.METHODS
    assert tuple(recipe["datasets"]) == paper.DATASETS


def test_models_and_datasets_are_named_as_in_the_paper():
    assert set(paper.DATASETS) <= registry.datasets().keys()
    in_table2 = [m for m in registry.models().values() if m.name in paper.METHODS]
    assert len(in_table2) >= 8
    for model in in_table2:
        assert paper.family(model.name) == model.family
        assert paper.LABELS[model.name] == model.label
