"""The 25 splits: which rows are trained on, validated on and tested on, and how they are scaled.

A split depends on the labels and the protocol only, and on groups and test rows where a user names
some; never on the model or on what ran before.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

from benchmark.protocol.spec import FOLDS, VALID_SIZE, UserError

GROUPING = 2
"""Raised when groups are divided in another way: part of the key of every table with --groups."""


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
    folds: int | None = FOLDS,
    valid_size: float = VALID_SIZE,
    groups: NDArray[np.int64] | None = None,
    test: NDArray[np.bool_] | None = None,
) -> Split:
    """Fold `fold` of repeat `repeat` is the test part; of the rest, `valid_size` validates.

    No group is in two parts. With `test`, these rows are the test part of every run, and each run
    draws other validation rows. Without folds or test rows nothing is tested: that is how a model that
    is to be kept is fitted.
    """
    if test is None and folds is None:
        test = np.zeros(len(y), dtype=bool)
    if test is not None:
        tested, rest = np.flatnonzero(test), np.flatnonzero(~test)
        draw = repeat * (folds or 1) + fold
    else:
        assert folds is not None
        # Seeds as in the released code: the repeat shuffles the folds, the fold (not the repeat)
        # draws the validation rows. With them KNN equals the paper in every printed digit.
        rest, tested = _outer(y, repeat, fold, folds, groups)
        draw = fold
    if groups is None:
        try:
            train, valid = train_test_split(
                rest, test_size=valid_size, stratify=y[rest], random_state=draw
            )
        except ValueError as error:
            cut = (y, folds) if test is None else (y[rest], None)
            raise UserError(_unsplittable(*cut, str(error))) from error
    else:
        train, valid = _grouped(y, rest, draw, valid_size, groups)
    return Split(train, valid, tested)


Rows = NDArray[np.int64]


def _outer(
    y: NDArray[np.int64], repeat: int, fold: int, folds: int, groups: NDArray[np.int64] | None
) -> tuple[Rows, Rows]:
    if groups is None:
        if np.bincount(y).min() < folds:
            raise UserError(_unsplittable(y, folds, "some folds would miss a class"))
        outer = StratifiedKFold(folds, shuffle=True, random_state=repeat)
        cut: tuple[Rows, Rows] = list(outer.split(np.zeros(len(y)), y))[fold]
        return cut
    per_class = [len(np.unique(groups[y == c])) for c in np.unique(y)]
    if (fewest := min(per_class)) < folds:
        # No option is named here: not every command that splits has one for the folds.
        most = f" They allow {fewest} folds." if fewest > 1 else ""
        raise UserError(
            f"the classes have rows in {per_class} groups, and {folds} folds need {folds} groups of every "
            f"class, because no group is in two parts (--groups).{most} Merge classes of few "
            f"groups, or remove their rows from the table."
        )
    rest, test = _folds(y, groups, folds, repeat)[fold]
    if missing := _missing(y, rest) + _missing(y, test):
        raise UserError(
            f"in repeat {repeat}, fold {fold}, classes of {np.bincount(y).tolist()} rows in {per_class} "
            f"groups cannot be spread over {folds} folds without a group in two of them; a part would "
            f"miss {len(missing)} of the classes. Take fewer folds, merge classes of "
            f"few groups, or remove their rows from the table."
        )
    return rest, test


def _grouped(
    y: NDArray[np.int64], rest: Rows, draw: int, valid_size: float, groups: NDArray[np.int64]
) -> tuple[Rows, Rows]:
    """Whole groups validate: with all classes if possible, and near the share.

    Off by up to half of the share is near enough, and the draw chooses among these: that which comes
    nearest would be the same in every run where groups differ in size.
    """
    parts = min(max(2, round(1 / valid_size)), len(np.unique(groups[rest])))
    found = []
    if parts > 1:
        cut = _folds(y[rest], groups[rest], parts, draw)
        found = [(rest[train], rest[valid]) for train, valid in cut if len(valid)]
        found = [(train, valid) for train, valid in found if not _missing(y, train)]
    if not found:
        raise UserError(
            f"the rows that are not tested are in {len(np.unique(groups[rest]))} groups, and none can "
            f"be kept for validation without the loss of a class from training: classes of "
            f"{np.bincount(y[rest]).tolist()} rows. Groups have to be smaller, or classes of few groups "
            f"merged or removed from the table."
        )
    wanted = valid_size * len(rest)

    def lack(valid: Rows) -> tuple[int, float]:
        return len(_missing(y, valid)), max(abs(len(valid) - wanted), wanted / 2)

    least = min(lack(valid) for _, valid in found)
    best = [(train, valid) for train, valid in found if lack(valid) == least]
    return best[draw % len(best)]


def _folds(
    y: NDArray[np.int64], groups: NDArray[np.int64], n: int, seed: int
) -> list[tuple[Rows, Rows]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rare classes, which the callers look at themselves
        try:
            cut = StratifiedGroupKFold(n, shuffle=True, random_state=seed)
            return list(cut.split(np.zeros(len(y)), y, groups))
        except ValueError:  # no class has as many rows as there are parts
            return []


def _missing(y: NDArray[np.int64], rows: Rows) -> list[int]:
    """The classes without a row among these."""
    return [int(c) for c in np.setdiff1d(y, y[rows])]


def _unsplittable(y: NDArray[np.int64], folds: int | None, why: str) -> str:
    folded = f"{folds} stratified folds with a validation part"
    return (
        f"these labels cannot be split into {folded if folds else 'a training and a validation part'}: "
        f"classes of {np.bincount(y).tolist()} samples ({why}). Every class needs at least {folds or 2} "
        f"samples, and the validation part room for one of each: merge rare classes or leave them out "
        f"with --min-class, or validate on more with --valid-size."
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
