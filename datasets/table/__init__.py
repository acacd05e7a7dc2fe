"""A user's own table: csv, tsv, parquet, arff, mat or npz, with one column to predict.

The protocol knows numbers without gaps, and classes with a member in every fold, so a table that
has anything else is refused with the columns and the remedy. Nothing is imputed or encoded quietly:
where that is asked for, gaps and codes are handed on, and each run learns from its training rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmark.datasets.raw import Raw

from benchmark.protocol.spec import VALID_SIZE, UserError

from .features import codes_of, note_ids, note_twins, note_unseen, numbers_of, with_columns
from .files import Known, read_one
from .labels import (
    check_folds,
    check_groups,
    check_labels,
    check_plain,
    check_target,
    clean_labels,
    note_alike,
    note_rare,
    note_words,
)
from .names import listed
from .roles import (
    check_roles,
    check_tested,
    common,
    find_target,
    groups_of,
    ids_of,
    some,
    tested_by,
    with_test,
    without_dropped,
)

__all__ = ["Samples", "check_folds", "check_groups", "read", "read_new"]


def read(
    path: Path,
    *,
    target: str | None,
    drop: Collection[str] = (),
    id: str | None = None,
    groups: str | None = None,
    split: str | None = None,
    test: Path | None = None,
    min_class: int | None = None,
    transpose: bool = False,
    impute: str | None = None,
    encode: str | None = None,
    valid_size: float = VALID_SIZE,
) -> Raw:
    """Read and check a table; every complaint is a UserError that names the remedy."""
    notes: list[str] = []
    known = Known(target, id, frozenset(filter(None, [groups, split])))
    frame, samples = read_one(path, known, transpose, notes)
    target = find_target(path, frame, target)
    frame = without_dropped(path, frame, target, drop, notes)
    check_roles(drop, target=target, id=id, groups=groups, split=split)
    tested, named = None, str(path)
    if test is not None:
        frame, tested, more = with_test(path, frame, test, known, target, drop, transpose, notes)
        named, samples = f"{path} with {test.name}", [*(samples or []), *more]
        samples = samples if len(set(samples)) == len(frame) else None
    ids = samples if id is None else ids_of(named, frame, id, target)
    grouped = None if groups is None else groups_of(named, frame, groups)
    if split is not None:
        tested = tested_by(named, frame, split)
    y = frame.pop(target)
    if frame.shape[1] == 0:
        roles = filter(None, [target, id, groups, split])
        raise UserError(f"{named} has no feature besides {listed(roles)}.")
    check_plain(named, target, y)
    y = clean_labels(y, notes)
    check_labels(named, target, y)
    if min_class is not None:
        kept = common(named, target, y, tested, min_class, notes)
        frame, y = frame[kept], y[kept]
        ids, grouped = some(ids, kept), some(grouped, kept)
        tested = None if tested is None else tested[kept]
    check_target(named, target, y)
    X, categories = numbers_of(named, frame, notes, impute is not None, encode is not None)
    if tested is not None:
        check_tested(named, target, y, tested, grouped, notes)
    note_words(y, notes)
    note_alike(y, notes)
    note_rare(y, tested, valid_size, notes)
    names = [str(name) for name in frame.columns]
    if tested is not None:
        note_unseen(names, X, categories, tested, notes)
    note_ids(names, X, notes)
    note_twins(X, y, grouped, tested, notes)
    return Raw(
        X, y.to_numpy(), names, notes=notes, ids=ids, groups=grouped, test=tested,
        categories=categories, gaps=impute is not None,
    )  # fmt: skip


class Samples(NamedTuple):
    """New samples for a model that knows its columns."""

    X: np.ndarray[Any, Any]
    ids: list[str]
    notes: list[str]


def read_new(
    path: Path,
    features: Sequence[str],
    id: str | None,
    categories: Mapping[str, Sequence[str]] | None = None,
    impute: bool = False,
    transpose: bool = False,
) -> Samples:
    """X in the order of `features`, the samples' ids, notes.

    Columns may come in any order, and others may be among them; none may be missing.
    """
    notes: list[str] = []
    known = categories or {}
    # True and false are read as such, in whatever case they are written.
    words = {name for name, levels in known.items() if not {*levels} <= {"True", "False"}}
    frame, samples = read_one(path, Known(None, id, frozenset(words)), transpose, notes)
    ids = samples or [str(i) for i in range(1, len(frame) + 1)]
    if id is not None and id in frame.columns:
        ids = ids_of(str(path), frame, id, None)
    elif id is not None and not samples:
        notes.append(f"there is no column {id!r}, so samples are numbered by their rows")
    missing = [name for name in features if name not in frame.columns]
    if missing:
        if transpose and set(features) <= set(samples or ()):
            raise UserError(
                f"{path} has a column per feature, and the model was fitted with --transpose: it takes "
                f"tables with a row per feature, as it was fitted on."
            )
        raise UserError(
            f"{path} has no {'column' if len(missing) == 1 else 'columns'} {listed(missing)}: "
            f"{len(missing)} of the {len(features)} features "
            f"that the model was fitted on. It takes a table with the same columns, in any order."
        )
    wanted = set(features)
    extra = [name for name in frame.columns if name not in wanted]
    if extra:
        notes.append(f"columns that the model does not know are left out: {listed(extra)}")
    coded = {name: codes_of(str(path), frame[name], known[name], notes) for name in known}
    plain = with_columns(frame[list(features)], coded)
    # Its categories are codes by now: any other text among new samples is a mistake.
    X, _ = numbers_of(str(path), plain, notes, impute, whole=False)
    return Samples(X, ids, notes)
