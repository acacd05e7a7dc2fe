"""The rows of the reference data, each known by a number and its class.

The content hash says whether data are the reference bit for bit, and nothing else. For data that are
not, the rows tell the rest: the same rows in another order are put in order, the same rows to rounding
count as the reference, and anything else is other data. A changed value moves the number of its row by
at least as much; what passes for rounding is at most 1e-6 of the row's length.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from benchmark.data.dataset import Codes, Dataset, Floats

ROUNDING = 1e-6
"""Of a row's length: how far its number may be off. Single precision stays a hundred times below."""


@dataclass(frozen=True)
class Rows:
    """The rows of one reference, in its order."""

    numbers: Floats
    y: Codes

    def order(self, dataset: Dataset) -> Codes | None:
        """Where each row of the reference is in other data; None if they are other rows."""
        numbers, slack = row_numbers(dataset.X), _slack(dataset.X)
        in_place: Codes = np.arange(len(numbers))
        if self._near(numbers, slack, in_place):
            return in_place
        order = np.empty_like(in_place)
        order[np.lexsort((self.y, self.numbers))] = np.lexsort((dataset.y, numbers))
        return order if self._near(numbers, slack, order) else None

    def _near(self, numbers: Floats, slack: Floats, order: Codes) -> bool:
        return bool((np.abs(numbers[order] - self.numbers) <= slack[order]).all())


def row_numbers(X: Floats) -> Floats:
    """One number per row: the sum of its values with weights of one to two, signs alternating so that
    a common offset cancels. Row by row, because a product of matrices may give equal rows different
    last digits."""
    columns = np.arange(X.shape[1])
    weights = (1 + columns * (5**0.5 - 1) / 2 % 1) * np.where(columns % 2, -1, 1)
    numbers: Floats = (X * weights).sum(axis=1)
    return numbers


def _slack(X: Floats) -> Floats:
    slack: Floats = ROUNDING * np.sqrt((X * X).sum(axis=1)) + 1e-12
    return slack


def in_order(dataset: Dataset, rows: Rows, classes: tuple[str, ...]) -> Dataset | None:
    """The data with the rows and classes of the reference; None if they are other data.

    A source may name the classes in its own way, as long as they are the same groups of rows.
    """
    order = rows.order(dataset)
    if order is None:
        return None
    y = dataset.y[order]
    if len({*zip(y.tolist(), rows.y.tolist(), strict=True)}) != len(dataset.classes):
        return None
    X = np.ascontiguousarray(dataset.X[order])
    ids = tuple(dataset.ids[i] for i in order.tolist())
    for array in (X, rows.y):
        array.setflags(write=False)
    return replace(dataset, X=X, y=rows.y, classes=classes, ids=ids)


# The file ----------------------------------------------------------------------------------------


@cache
def known(name: str) -> Rows | None:
    """The rows of a registered dataset, if its reference is known."""
    path = Path(str(files("benchmark.datasets").joinpath("rows.npz")))
    with np.load(path, allow_pickle=False) as archive:
        if name not in archive:
            return None
        return Rows(archive[name], archive[f"{name}.y"].astype(np.int64))


def write(path: Path, references: Mapping[str, Dataset]) -> None:
    """Make the file anew, from data whose content hash is the registered one."""
    arrays = {name: row_numbers(data.X) for name, data in references.items()}
    arrays |= {f"{name}.y": data.y.astype(np.uint8) for name, data in references.items()}
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
