"""A dataset in memory: how rows and labels become X and y."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from benchmark.datasets.raw import Raw
from benchmark.protocol.spec import UserError
from benchmark.text import counted

Floats = npt.NDArray[np.float64]

Codes = npt.NDArray[np.int64]

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Dataset:
    """One dataset, ready to be split. The arrays are read-only."""

    name: str
    X: Floats
    """(n_samples, n_features), in the row order of the source."""
    y: Codes
    """0..C-1, codes of `classes`."""
    classes: tuple[str, ...]
    features: tuple[str, ...]
    relevant: dict[str, Mask]
    """Truth per sample under each definition; synthetic data only."""
    scale: Literal["standard", "none"]
    sha256: str
    """Of X and y as numbers, so that it does not depend on the file they came from."""
    notes: tuple[str, ...]
    source: str
    ids: tuple[str, ...] = ()
    """Names of the samples in the order of the rows; without any, their numbers from 1."""
    groups: Codes | None = None
    """Of each row, the number of its group, which no split divides; own tables only, as what follows."""
    test: Mask | None = None
    """The rows that every run is tested on."""
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Features whose values in X are codes, with what these stand for. Each run encodes them."""
    gaps: bool = False
    """Whether X may hold NaN, which each run fills."""
    derived: bool = False
    """Whether its rows were drawn here: other patients than those behind the paper's numbers."""

    @property
    def columns(self) -> tuple[str, ...]:
        """What models see: the features, with a column per category."""
        return tuple(
            f"{name}={level}" if level else name
            for name in self.features
            for level in self.categories.get(name, ("",))
        )


def make(name: str, raw: Raw, source: str) -> Dataset:
    """Labels become codes; treatments are stated; arrays become read-only."""
    # Adding zero turns -0.0 into 0.0, which are equal numbers with different bytes.
    X = np.ascontiguousarray(raw.X, dtype=np.float64) + 0.0
    if raw.gaps:
        X[np.isnan(X)] = np.nan  # of its many bit patterns one, for the hash
    if (np.isinf(X) if raw.gaps else ~np.isfinite(X)).any():
        raise UserError(f"Dataset {name!r} ({source}) holds values that are not finite.")
    classes, y = code_labels(raw.y)
    notes = list(raw.notes)
    constant = int((np.fmin.reduce(X, axis=0) == np.fmax.reduce(X, axis=0)).sum())
    if constant:
        notes.append(f"{counted(constant, 'constant column')} kept")
    for array in (X, y, *raw.relevant.values()):
        array.setflags(write=False)
    assert raw.scale in ("standard", "none")
    return Dataset(
        name=name,
        X=X,
        y=y,
        classes=classes,
        features=tuple(raw.features or (f"x{j}" for j in range(1, X.shape[1] + 1))),
        relevant=raw.relevant,
        scale="none" if raw.scale == "none" else "standard",
        sha256=content_hash(X, y),
        notes=tuple(notes),
        source=source,
        ids=tuple(raw.ids if raw.ids is not None else map(str, range(1, len(X) + 1))),
        groups=None if raw.groups is None else np.unique(raw.groups, return_inverse=True)[1],
        test=raw.test,
        categories=raw.categories,
        gaps=raw.gaps,
        derived=raw.derived,
    )


def with_notes(dataset: Dataset, notes: Iterable[str]) -> Dataset:
    return Dataset(**{**vars(dataset), "notes": (*dataset.notes, *notes)})


def code_labels(labels: Iterable[Any]) -> tuple[tuple[str, ...], Codes]:
    """Class names in sorted order, as numbers where all of them are, and the code of each row."""
    labels = list(labels)
    names = np.array([_label_text(label) for label in labels])
    kinds = dict(zip(names.tolist(), map(_kind, labels), strict=True))
    for name, label in zip(names.tolist(), labels, strict=True):
        if kinds[name] != _kind(label):
            raise UserError(
                f"The label {name!r} occurs as {kinds[name]} and as {_kind(label)}, which would "
                f"become one class. Save all labels in one way."
            )
    classes = sorted(set(names.tolist()))
    try:
        classes.sort(key=float)
    except ValueError:
        pass  # names that are not all numbers stay in alphabetical order
    code = {name: i for i, name in enumerate(classes)}
    return tuple(classes), np.array([code[name] for name in names.tolist()], dtype=np.int64)


def _label_text(label: Any) -> str:
    """One spelling per label: 1, 1.0 and " 1" are the same class."""
    if isinstance(label, float | np.floating) and float(label).is_integer():
        label = int(label)
    return str(label).strip()


def _kind(label: Any) -> str:
    if isinstance(label, bool | np.bool_):
        return "a truth value"
    return "a text" if isinstance(label, str) else "a number"


def content_hash(X: Floats, y: Codes) -> str:
    """SHA-256 of shape, values and codes, the same on every machine."""
    digest = hashlib.sha256(repr(X.shape).encode())
    digest.update(np.ascontiguousarray(X, dtype="<f8").data)
    digest.update(np.ascontiguousarray(y, dtype="<i8").data)
    return digest.hexdigest()
