"""A model fitted on all of a table, kept in a folder, and asked about new samples.

The folder holds `arrays.npz`, numbers alone, and `model.json`, which names the format, the settings,
classes, features and the samples behind the prototypes, and has the arrays' checksum. Nothing is
pickled, and everything is checked when it is read.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

import benchmark
from benchmark.data.load import check_file, load
from benchmark.files import Unreadable, read_whole, write_atomic
from benchmark.protocol import registry
from benchmark.protocol.plan import Cell
from benchmark.protocol.prepare import Preparation, prepare
from benchmark.protocol.spec import SEED, VALID_SIZE, UserError, digest
from benchmark.protocol.splits import Part, make_split
from benchmark.runner import estimator, machine, metrics
from benchmark.runner.arrays import LARGEST, unpack
from benchmark.shapes import Misshapen, fit, parse

FORMAT = 2
"""Raised when an older folder can no longer be read as it is."""
ABOUT, ARRAYS = "model.json", "arrays.npz"


@dataclass(frozen=True)
class About:
    """What `model.json` holds."""

    format: int
    model: str
    params: dict[str, Any]
    seed: int
    revision: int
    classes: list[str]
    features: list[str]
    ids: list[str]
    """The training samples, in the order of the prototypes."""
    id_column: str | None
    table: str
    data_sha256: str
    valid_balanced_accuracy: float
    """On the rows that chose the checkpoint: no estimate of how it does on new samples."""
    arrays_sha256: str
    version: str
    sha256: str = ""
    """Of all the rest."""
    columns: list[str] | None = None
    """Of the table, in the order of its numbers; None if they are the features."""
    categories: dict[str, list[str]] = field(default_factory=dict)
    """Columns of texts, with those that training rows have: each is a feature."""
    impute: bool = False
    """Whether a gap is filled, with the training rows' median."""
    transpose: bool = False
    """Whether tables have a row per feature."""


@dataclass(frozen=True)
class Fitted:
    """A fitted model with what its numbers are called."""

    about: About
    model: Any
    mean: NDArray[np.float64]
    scale: NDArray[np.float64]
    prepared: Preparation | None

    def scaled(self, X: NDArray[np.float64]) -> NDArray[np.float32]:
        ready = X if self.prepared is None else self.prepared.apply(X)
        return np.ascontiguousarray((ready - self.mean) / self.scale, dtype=np.float32)


def check_kept(entry: registry.ModelEntry) -> None:
    """Raise unless a model can be kept as numbers."""
    if not hasattr(registry.load_factory(entry), "restore"):
        raise UserError(
            f"{entry.name} cannot be kept without pickle, which is not used here for safety. "
            f"protogate, protogate-global and protogate-local can; from Python, any model can be fitted."
        )


def fit_cell(cell: Cell, params: dict[str, Any]) -> tuple[About, dict[str, NDArray[Any]]]:
    """Fit on all rows but those that the checkpoint is chosen on, and those of a test set."""
    check_kept(cell.entry)
    data = load(cell.data)
    settings = {**cell.entry.params_for(cell.data), **params}
    seed = settings.pop("random_state", SEED)
    valid_size = cell.data.options.get("valid_size", VALID_SIZE)
    split = make_split(data.y, 0, 0, None, valid_size, data.groups, data.test)
    train, valid = split.train, split.valid
    prepared = None
    if data.gaps or data.categories:
        prepared = prepare(data.X[train], data.features, data.categories)
    X = data.X if prepared is None else prepared.apply(data.X)
    scaler = StandardScaler().fit(X[train])
    parts = [
        Part(np.ascontiguousarray(scaler.transform(X[rows]), dtype=np.float32), data.y[rows])
        for rows in (train, valid)
    ]
    factory = registry.load_factory(cell.entry)
    with machine.isolated(seed):
        model = estimator.make(factory, settings, seed)
        estimator.fit(model, *parts)
    predicted, _ = estimator.predict(model, parts[1].X, len(data.classes))
    arrays = {**model.arrays(), "mean": scaler.mean_, "scale": scaler.scale_}
    names, seen = list(data.columns), {}
    if prepared is not None:
        arrays["medians"] = prepared.medians
        names = [names[place] for place in prepared.places]
        seen = {
            data.features[j]: [data.categories[data.features[j]][level] for level in levels]
            for j, levels in prepared.levels.items()
        }
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise UserError(f"The training of {cell.model} diverged: its weights are not finite.")
    about = About(
        format=FORMAT,
        model=cell.entry.name,
        params=settings,
        seed=seed,
        revision=cell.entry.revision,
        classes=list(data.classes),
        features=names,
        ids=[data.ids[row] for row in train],
        id_column=cell.data.options.get("id"),
        table=cell.data.label,
        data_sha256=data.sha256,
        valid_balanced_accuracy=metrics.balanced_accuracy(parts[1].y, predicted),
        arrays_sha256="",
        version=benchmark.__version__,
        columns=None if prepared is None else list(data.features),
        categories=seen,
        impute=data.gaps,
        transpose="transpose" in cell.data.options,
    )
    return about, arrays


def save(about: About, arrays: dict[str, NDArray[Any]], folder: Path) -> Path:
    """Write both files, the one that makes the other valid last."""
    content = io.BytesIO()
    named: dict[str, Any] = dict(arrays)
    np.savez_compressed(content, **named)
    write_atomic(folder / ARRAYS, content.getvalue())
    about = replace(about, arrays_sha256=hashlib.sha256(content.getvalue()).hexdigest())
    about = replace(about, sha256=_seal(about))
    write_atomic(folder / ABOUT, (json.dumps(asdict(about), indent=1) + "\n").encode())
    return folder


def _seal(about: About) -> str:
    return digest({name: value for name, value in asdict(about).items() if name != "sha256"})


def read(folder: Path) -> Fitted:
    """The model kept in a folder; a UserError says why it cannot be used."""
    try:
        about = fit(About, parse(read_whole(folder / ABOUT)))
        content = read_whole(folder / ARRAYS, LARGEST)
    except FileNotFoundError as error:
        raise UserError(
            f"{folder} holds no fitted model: {Path(str(error.filename)).name} is missing. "
            f"`python -m benchmark fit --data FILE --target COLUMN --to {folder}` makes one."
        ) from error
    except (Misshapen, Unreadable, OSError) as error:
        raise _damaged(folder, error) from error
    if about.format != FORMAT:
        raise _damaged(folder, f"it has format {about.format}, expected {FORMAT}")
    if _seal(about) != about.sha256:
        raise _damaged(folder, f"{ABOUT} was changed after it was written")
    if hashlib.sha256(content).hexdigest() != about.arrays_sha256:
        raise _damaged(folder, f"{ARRAYS} is not the file that {ABOUT} describes")
    entry = registry.model(about.model)
    if about.revision != entry.revision:
        raise _damaged(folder, f"made by revision {about.revision}, this is {entry.revision}")
    try:
        arrays = unpack(content)
        made = estimator.make(registry.load_factory(entry), about.params, about.seed)
        model = made.restore(arrays, len(about.classes))
        mean, scale = arrays["mean"], arrays["scale"]
        prepared = _prepared(about, arrays)
        sizes = {len(about.features), len(mean), len(scale), model.n_features_in_}
        if len(sizes) > 1 or len(about.ids) != len(arrays["prototypes"]):
            raise ValueError("features, scaler, samples and weights do not fit each other")
    except (Unreadable, ValueError, KeyError, TypeError) as error:
        raise _damaged(folder, error) from error
    return Fitted(about, model, mean, scale, prepared)


def _prepared(about: About, arrays: dict[str, NDArray[Any]]) -> Preparation | None:
    if about.columns is None:
        return None
    places = {name: j for j, name in enumerate(about.columns)}
    levels = {places[name]: list(range(len(seen))) for name, seen in about.categories.items()}
    width = sum(len(levels.get(j, [0])) for j in range(len(about.columns)))
    medians = np.asarray(arrays["medians"], dtype=np.float64)
    if len(medians) != len(about.columns) or width != len(about.features):
        raise ValueError("columns, medians, categories and features do not fit each other")
    return Preparation(medians, levels, np.arange(width), width)


def _damaged(folder: Path, reason: object) -> UserError:
    return UserError(f"The model in {folder} cannot be used: {reason}. Fit it again.")


@dataclass(frozen=True)
class New:
    """New samples as a model takes them."""

    X: NDArray[np.float32]
    ids: list[str]
    notes: list[str]


def new_samples(fitted: Fitted, file: Path) -> New:
    from benchmark.datasets import table

    check_file(file)
    about = fitted.about
    found = table.read_new(
        file,
        about.features if about.columns is None else about.columns,
        about.id_column,
        about.categories,
        about.impute,
        about.transpose,
    )
    return New(fitted.scaled(found.X), found.ids, found.notes)


@dataclass(frozen=True)
class Prediction:
    """The class of one sample, and how the prototypes voted."""

    id: str
    predicted: str
    proba: dict[str, float]


def predict(fitted: Fitted, new: New) -> list[Prediction]:
    classes = fitted.about.classes
    codes, proba = estimator.predict(fitted.model, new.X, len(classes))
    assert proba is not None, "only models that read classes off their probabilities are kept"
    return [
        Prediction(id, classes[code], dict(zip(classes, map(float, row), strict=True)))
        for id, code, row in zip(new.ids, codes, proba, strict=True)
    ]


@dataclass(frozen=True)
class Prototype:
    """A training sample near the one that is explained."""

    id: str
    label: str
    distance: float


@dataclass(frozen=True)
class Selected:
    """A feature that the sample's gates let through."""

    feature: str
    gate: float
    value: float
    """Of the sample, in standard deviations from the training samples' mean."""
    globally: bool
    """Whether the global selection keeps it too."""


@dataclass(frozen=True)
class Explanation:
    """Why one sample is predicted as it is."""

    prediction: Prediction
    prototypes: list[Prototype]
    features: list[Selected]
    n_features: int


def explain(fitted: Fitted, new: New, samples: Sequence[str] | None) -> list[Explanation]:
    """One explanation per sample that is named, or per sample of the table."""
    places = {id: i for i, id in enumerate(new.ids)}
    for name in samples or ():
        if name not in places:
            shown = ", ".join(new.ids[:8])
            shown += f" and {len(new.ids) - 8} more" if len(new.ids) > 8 else ""
            raise UserError(f"There is no sample {name!r} in the table. It has {shown}.")
    chosen = [places[name] for name in samples] if samples else list(places.values())
    predictions = predict(fitted, New(new.X[chosen], [new.ids[i] for i in chosen], []))
    found = fitted.model.explain(new.X[chosen])
    return [
        _explained(fitted.about, new.X[i], prediction, explanation)
        for i, prediction, explanation in zip(chosen, predictions, found, strict=True)
    ]


def _explained(about: About, x: Any, prediction: Prediction, found: Any) -> Explanation:
    globally = set(found.behaviours["both selected"].tolist())
    nearest = zip(found.prototypes, found.labels, found.distances, strict=True)
    gates = zip(found.features, found.mask_values, strict=True)
    return Explanation(
        prediction,
        [Prototype(about.ids[p], about.classes[c], float(d)) for p, c, d in nearest],
        [Selected(about.features[j], float(g), float(x[j]), j in globally) for j, g in gates],
        len(about.features),
    )
