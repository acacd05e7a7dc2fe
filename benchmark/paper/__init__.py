"""The paper as data: every printed cell, and the order in which the paper prints them."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files

FAMILIES: dict[str, dict[str, str]] = {
    "baseline": {"ridge": "Ridge", "svm": "SVM", "knn": "KNN", "mlp": "MLP"},
    "global": {
        "lasso": "Lasso",
        "rf": "RF",
        "xgboost": "XGBoost",
        "catboost": "CatBoost",
        "lightgbm": "LightGBM",
        "stg": "STG",
    },
    "local": {
        "tabnet": "TabNet",
        "l2x": "L2X",
        "invase": "INVASE",
        "realx": "REAL-X",
        "lspin": "LSPIN",
        "llspin": "LLSPIN",
        "protogate": "ProtoGate",
    },
}
"""Table 2's blocks of rows from top to bottom: method -> the name the paper prints."""

LABELS = {method: label for block in FAMILIES.values() for method, label in block.items()}
METHODS = tuple(LABELS)
DATASETS = ("colon", "lung", "meta-dr", "meta-pam", "prostate", "tcga-2y", "toxicity")
"""Rows and columns of Table 2, in its order."""

SMALLER_IS_BETTER = (
    "selected_features",
    "train_seconds_per_epoch",
    "train_ms_per_epoch",
    "inference_ms_per_sample",
    "trainable_parameters_millions",
    "hyperparameters",
    "rank_difference",
    "mean_rank",
)
"""Metrics; of all others more is better."""


@dataclass(frozen=True)
class Printed:
    """One printed cell."""

    table: int
    label: str
    """The table's LaTeX label."""
    method: str
    dataset: str
    """Empty for a value over all datasets, such as the mean rank."""
    metric: str
    mean: float | None
    """None where the paper prints a dash."""
    std: float | None
    """None where the paper prints no standard deviation."""


def family(method: str) -> str | None:
    """The block of Table 2 that a method belongs to; None if it is not in the paper's list."""
    return next((name for name, block in FAMILIES.items() if method in block), None)


def tables() -> list[int]:
    """The numbers of the tables whose cells are known."""
    return sorted({row.table for row in _rows()})


def cells(table: int) -> list[Printed]:
    """A table's printed cells, in the paper's order."""
    return [row for row in _rows() if row.table == table]


def cell(table: int, method: str, dataset: str, metric: str) -> Printed | None:
    """One printed cell; None if the table has no such cell."""
    return _index().get((table, method, dataset, metric))


def decimals(table: int, metric: str) -> int:
    """How many decimals the paper prints for a metric of a table.

    The file drops trailing zeros (77.5 is printed 77.50), so the longest cell tells. A metric that
    the table does not have has two, like most of the paper.
    """
    return _decimals().get((table, metric), 2)


def equal_as_printed(value: float, printed: float, decimals: int) -> bool:
    """Whether a value rounds to the printed one.

    A value half-way between two printable ones counts as equal to both, because nobody knows
    whether the paper's tool rounded halves up, to even, or by the last bit of a binary fraction.
    """
    half_a_unit: float = 0.5 / 10**decimals
    return abs(value - printed) <= half_a_unit + 1e-9


@cache
def lines(name: str) -> list[dict[str, str]]:
    """The lines of a data file about the paper."""
    content = files("benchmark.paper").joinpath(name).read_text("utf-8")
    return list(csv.DictReader(content.splitlines()))


@cache
def _rows() -> tuple[Printed, ...]:
    return tuple(
        Printed(
            table=int(row["table"]),
            label=row["label"],
            method=row["method"],
            dataset=row["dataset"],
            metric=row["metric"],
            mean=float(row["mean"]) if row["mean"] else None,
            std=float(row["std"]) if row["std"] else None,
        )
        for row in lines("reference.csv")
    )


@cache
def _index() -> dict[tuple[int, str, str, str], Printed]:
    return {(row.table, row.method, row.dataset, row.metric): row for row in _rows()}


@cache
def _decimals() -> dict[tuple[int, str], int]:
    longest: dict[tuple[int, str], int] = defaultdict(int)
    for row in lines("reference.csv"):
        key = int(row["table"]), row["metric"]
        for text in filter(None, (row["mean"], row["std"])):
            exponent = Decimal(text).normalize().as_tuple().exponent
            longest[key] = max(longest[key], -int(exponent))
    return dict(longest)
