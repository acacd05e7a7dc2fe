"""The 25 splits: which rows are trained on, validated on and tested on, and how they are scaled.

A split depends on the labels and the protocol only, never on the model or on what ran before.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from benchmark.protocol.spec import FOLDS, VALID_SIZE, UserError


@dataclass(frozen=True)
class Split:
    """Row numbers of the three parts: disjoint, and together all rows."""

    train: NDArray[np.int64]
    valid: NDArray[np.int64]
    test: NDArray[np.int64]

    @property
    def sha256(self) -> str:
        """The rows of every part in their order: equal hash, equal split."""
        content = hashlib.sha256()
        for rows in (self.train, self.valid, self.test):
            content.update(len(rows).to_bytes(8, "little"))
            content.update(rows.astype("<i8").tobytes())
        return content.hexdigest()


@dataclass(frozen=True)
class Part:
    """One part of the data as a model sees it."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]


def make_split(
    y: NDArray[np.int64],
    repeat: int,
    fold: int,
    folds: int = FOLDS,
    valid_size: float = VALID_SIZE,
) -> Split:
    """Fold `fold` of repeat `repeat` is the test part; 10 % of the rest validates."""
    if np.bincount(y).min() < folds:
        raise UserError(_unsplittable(y, folds, "some folds would miss a class"))
    # Seeds as in the released code: the repeat shuffles the folds, the fold (not the repeat)
    # draws the validation rows. With them KNN equals the paper in every printed digit.
    outer = StratifiedKFold(folds, shuffle=True, random_state=repeat)
    rest, test = list(outer.split(np.zeros(len(y)), y))[fold]
    try:
        train, valid = train_test_split(
            rest, test_size=valid_size, stratify=y[rest], random_state=fold
        )
    except ValueError as error:
        raise UserError(_unsplittable(y, folds, str(error))) from error
    return Split(train, valid, test)


def _unsplittable(y: NDArray[np.int64], folds: int, why: str) -> str:
    return (
        f"These labels cannot be split into {folds} stratified folds with a validation part: "
        f"classes of {np.bincount(y).tolist()} samples ({why}). Every class needs at least {folds} "
        f"samples, and the validation part room for one of each: merge or drop rare classes."
    )


def scaled(
    X: NDArray[np.float64], y: NDArray[np.int64], split: Split, how: str
) -> tuple[Part, Part, Part]:
    """Cut the data into its parts; mean and standard deviation come from the training rows alone."""
    parts = [X[rows] for rows in (split.train, split.valid, split.test)]
    if how == "standard":
        scaler = StandardScaler().fit(parts[0])
        parts = [scaler.transform(part) for part in parts]
    train, valid, test = (
        Part(np.ascontiguousarray(part, dtype=np.float32), y[rows])
        for part, rows in zip(parts, (split.train, split.valid, split.test), strict=True)
    )
    return train, valid, test
