"""Gaps and categories of a user's own table as numbers, in the way that the training rows tell.

A gap becomes the median of the training rows. A category becomes a column of its own if a training row
has it; a row whose category none has, or that has none, gets a zero in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark.protocol.spec import UserError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Preparation:
    """What the training rows say of a table's columns."""

    medians: Floats
    """One per column of the table, whatever it holds."""
    levels: dict[int, list[int]]
    """Columns with categories -> the codes of those that occur."""
    places: NDArray[np.int64]
    """Where the prepared columns stand among those that all rows of the table would give."""
    width: int
    """How many these are."""

    def apply(self, X: Floats) -> Floats:
        """Other rows of the table, prepared in the same way."""
        filled: Floats = np.where(np.isnan(X), self.medians, X)
        if not self.levels:
            return filled
        parts = [
            X[:, [j]] == np.array(self.levels[j], dtype=float)
            if j in self.levels
            else filled[:, [j]]
            for j in range(X.shape[1])
        ]
        return np.hstack(parts).astype(np.float64)

    def widen(self, selected: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which of the table's columns are selected: a run may not have seen some of them."""
        wide = np.zeros((len(selected), self.width), dtype=bool)
        wide[:, self.places] = selected
        return wide


def prepare(
    X: Floats, features: Sequence[str], categories: Mapping[str, Sequence[str]]
) -> Preparation:
    """Learn from the training rows. `categories` has the names of those that the table holds."""
    empty = np.flatnonzero(np.isnan(X).all(axis=0)).tolist()
    if unknown := [features[j] for j in empty if features[j] not in categories]:
        raise UserError(
            f"{unknown[0]!r} has no value in any of the {len(X)} training rows, so there is no median for "
            f"its gaps. Leave the column out with --drop."
        )
    coded = np.isin(features, list(categories))
    medians = np.zeros(X.shape[1])
    medians[~coded] = np.nanmedian(X[:, ~coded], axis=0)
    levels, places, width = {}, [], 0
    for j, name in enumerate(features):
        known = X[~np.isnan(X[:, j]), j] if name in categories else None
        if known is not None:
            levels[j] = np.unique(known).astype(int).tolist()
        places += [width + level for level in levels.get(j, [0])]
        width += len(categories.get(name, [""]))
    return Preparation(medians, levels, np.array(places, dtype=np.int64), width)
