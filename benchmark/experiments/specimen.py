"""Specimens: single runs fitted again, for figures that show a model at work and not its score.

A record has no masks and no prototypes. A specimen has what figures need of them, small enough to
be shipped: masks of the test samples, and for models that explain their predictions by prototypes
who is nearest to whom, with a map of them all. Drawing needs neither the data nor the model.
"""

from __future__ import annotations

import base64
import lzma
import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from benchmark.files import LARGEST, Unreadable, read_whole, write_atomic
from benchmark.protocol.plan import Cell
from benchmark.protocol.registry import load_class, make_spec, models
from benchmark.protocol.spec import SCHEMA, RunSpec, UserError
from benchmark.protocol.stored import Damaged, or_set_aside
from benchmark.runner.records import NotARecord, decode, encode
from benchmark.runner.shipped import store_at
from benchmark.shapes import fit

Array = NDArray[Any]
Embed = Callable[[Array, int], Array]
"""Points of many dimensions and a seed -> their places on a plane."""


@dataclass(frozen=True)
class Explained:
    """How a model of prototypes, which are its training samples, sees the test samples."""

    globally: Array
    """Which features the global selection keeps. Bool, (n_features,)."""
    predictions: list[int]
    nearest: list[list[int]]
    """Per test sample its K nearest prototypes, as places in the training part, nearest first."""
    distances: list[list[float]]
    """To these, after masking."""
    map: dict[str, Array]
    """UMAP of the masked samples, by part. Shape (n_samples, 2)."""


@dataclass(frozen=True)
class Specimen:
    """One run, fitted again to be looked at."""

    spec: RunSpec
    origin: str
    """tuned | default: where its settings come from."""
    accuracy: float
    """Balanced accuracy on the test part, as in the run's record."""
    classes: tuple[str, ...]
    rows: dict[str, list[int]]
    """The dataset's rows in the parts `train` and `test`, in the order of the split."""
    labels: dict[str, list[int]]
    """Their classes."""
    masks: dict[str, Array]
    """In [0, 1], by hundredths: `train` is the first training sample's, `test` has them all."""
    explained: Explained | None
    data_sha256: str
    code: dict[str, Any]


class _Packed(TypedDict):
    shape: list[int]


class _Data(TypedDict):
    sha256: str
    classes: list[str]


class _StoredExplained(TypedDict):
    globally: _Packed
    predictions: list[int]
    nearest: list[list[int]]
    distances: list[list[float]]
    map: dict[str, list[list[float]]]


class _Stored(TypedDict):
    """A specimen as its file has it."""

    origin: str
    accuracy: float
    data: _Data
    code: dict[str, Any]
    rows: dict[str, list[int]]
    labels: dict[str, list[int]]
    masks: dict[str, _Packed]
    explained: _StoredExplained | None


# Fitting -----------------------------------------------------------------------------------------


def spec_of(results: Path, cell: Cell, repeat: int, fold: int) -> tuple[RunSpec, str]:
    """The run that a specimen is made of: the chosen settings, where there is a choice."""
    setting = store_at(results).setting(cell, "own", "default")
    assert setting is not None
    return make_spec(cell.entry, cell.data, setting.params, repeat, fold), setting.origin


def make(spec: RunSpec, origin: str, embed: Embed | None = None) -> Specimen:
    """Do the run as its record was made, and keep what figures need of the fitted model."""
    # Drawing reads specimens, and need not wait for what fits them.
    from benchmark.data.load import load
    from benchmark.protocol.splits import make_split, scaled
    from benchmark.runner import machine
    from benchmark.runner.metrics import balanced_accuracy

    Model = load_class(models()[spec.model])  # before isolated(), which seeds torch if loaded
    with machine.isolated(spec.seed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = load(spec.data)
        split = make_split(data.y, spec.repeat, spec.fold, spec.folds, spec.valid_size)
        train, valid, test = scaled(data.X, data.y, split, data.scale)
        model = Model(**spec.params, random_state=spec.seed)
        if not hasattr(model, "select"):
            raise UserError(f"{spec.model} selects no features: there is no mask to look at.")
        model.fit(train.X, train.y, eval_set=(valid.X, valid.y))
        masks = getattr(model, "masks", model.select)
        explained = None
        if hasattr(model, "explain"):
            explained = _explained(model, train.X, test.X, spec.seed, embed or umap)
        return Specimen(
            spec=spec,
            origin=origin,
            accuracy=balanced_accuracy(test.y, model.predict(test.X)),
            classes=data.classes,
            rows={"train": split.train.tolist(), "test": split.test.tolist()},
            labels={"train": train.y.tolist(), "test": test.y.tolist()},
            masks={"train": _coarse(masks(train.X[:1])), "test": _coarse(masks(test.X))},
            explained=explained,
            data_sha256=data.sha256,
            code=machine.code_version(),
        )


def _coarse(masks: Array) -> Array:
    """Two decimals, rounded up: an open gate stays open."""
    coarse: Array = np.ceil(100 * np.asarray(masks, dtype=float)) / 100
    return coarse


def _explained(model: Any, train: Array, test: Array, seed: int, embed: Embed) -> Explained:
    found = model.explain(test)
    kept = np.zeros(train.shape[1], dtype=bool)
    for behaviour in ("both selected", "locally dropped"):
        kept[found[0].behaviours[behaviour]] = True
    masked = np.vstack([X * model.masks(X) for X in (train, test)])
    places = np.round(embed(masked, seed).astype(float), 3)
    return Explained(
        globally=kept,
        predictions=[int(e.prediction) for e in found],
        nearest=[e.prototypes.tolist() for e in found],
        distances=[[float(f"{d:.4g}") for d in e.distances] for e in found],
        map={"train": places[: len(train)], "test": places[len(train) :]},
    )


def umap(X: Array, seed: int) -> Array:
    """UMAP with its own defaults; with a seed and one thread it is the same every time."""
    from umap import UMAP

    placed: Array = UMAP(
        n_neighbors=min(15, len(X) - 1), random_state=seed, n_jobs=1
    ).fit_transform(X)
    return placed


# Files -------------------------------------------------------------------------------------------


def path_of(results: Path, cell: Cell, repeat: int, fold: int) -> Path:
    return cell.place(results, "specimens") / f"r{repeat}f{fold}.json"


def stored(results: Path, cell: Cell) -> list[tuple[int, int]]:
    """Repeats and folds that a specimen exists of."""
    folder = path_of(results, cell, 0, 0).parent
    names = [re.fullmatch(r"r(\d+)f(\d+)\.json", path.name) for path in folder.glob("*.json")]
    return sorted((int(name[1]), int(name[2])) for name in names if name)


def command(cell: Cell, repeat: int, fold: int) -> str:
    """What makes a specimen."""
    split = f" --repeat {repeat} --fold {fold}" if (repeat, fold) != (0, 0) else ""
    names = f"--models {cell.model} --datasets {cell.data.label}"
    return f"python -m benchmark specimen {names}{split}"


def write(path: Path, specimen: Specimen) -> None:
    """Sealed with a checksum, like a record."""
    explained = specimen.explained
    record = {
        "schema": SCHEMA,
        "key": specimen.spec.key,
        "spec": specimen.spec.to_dict(),
        "status": "ok",
        "origin": specimen.origin,
        "data": {"sha256": specimen.data_sha256, "classes": list(specimen.classes)},
        "code": specimen.code,
        "accuracy": specimen.accuracy,
        "rows": specimen.rows,
        "labels": specimen.labels,
        "masks": {part: _packed(100 * mask) for part, mask in specimen.masks.items()},
        "explained": explained
        and {
            "globally": _packed(explained.globally),
            "predictions": explained.predictions,
            "nearest": explained.nearest,
            "distances": explained.distances,
            "map": {part: places.tolist() for part, places in explained.map.items()},
        },
    }
    write_atomic(path, encode(record))


def read(results: Path, cell: Cell, repeat: int = 0, fold: int = 0) -> Specimen:
    """A stored specimen; a UserError names the command that makes or renews it."""
    path = path_of(results, cell, repeat, fold)
    remedy = f"`{command(cell, repeat, fold)}`"
    try:
        return _opened(path, cell, remedy)
    except FileNotFoundError:
        what = f"{cell.model} on {cell.data.label}"
        raise UserError(f"There is no specimen of {what}; {remedy} makes one.") from None
    except (NotARecord, Unreadable, OSError, lzma.LZMAError, ValueError) as error:
        raise Damaged(path, error, f"{remedy} sets it aside and makes it again.") from error


def _opened(path: Path, cell: Cell, remedy: str) -> Specimen:
    record = decode(read_whole(path), shape=_Stored)
    spec = fit(RunSpec, record["spec"])
    if spec.revision != cell.entry.revision:
        raise UserError(
            f"{path} shows revision {spec.revision} of {cell.model}, the code has "
            f"{cell.entry.revision}; {remedy} renews it."
        )
    explained = record["explained"]
    return Specimen(
        spec=spec,
        origin=record["origin"],
        accuracy=record["accuracy"],
        classes=tuple(record["data"]["classes"]),
        rows=record["rows"],
        labels=record["labels"],
        masks={part: _unpacked(text) / 100 for part, text in record["masks"].items()},
        explained=explained
        and Explained(
            globally=_unpacked(explained["globally"]).astype(bool),
            predictions=explained["predictions"],
            nearest=explained["nearest"],
            distances=explained["distances"],
            map={part: np.array(places) for part, places in explained["map"].items()},
        ),
        data_sha256=record["data"]["sha256"],
        code=record["code"],
    )


def up_to_date(results: Path, cell: Cell, shown: Specimen) -> bool:
    """Whether it is of the run that would be fitted now."""
    now = spec_of(results, cell, shown.spec.repeat, shown.spec.fold)
    return (shown.spec, shown.origin) == now


def is_made(results: Path, cell: Cell, repeat: int, fold: int) -> bool:
    """Whether an up-to-date one is stored; a damaged one is set aside."""
    try:
        found = or_set_aside(results, lambda: read(results, cell, repeat, fold))
    except UserError:
        return False
    return found is not None and up_to_date(results, cell, found)


def beside_record(results: Path, specimen: Specimen) -> str:
    """Its accuracy, and whether the record of the same run has the same."""
    shown = f"balanced accuracy {100 * specimen.accuracy:.2f} %"
    records, _ = store_at(results).find([specimen.spec.key])
    record = records.get(specimen.spec.key)
    if record is None or record["status"] != "ok":
        return f"{shown}; the run has no record to compare with"
    recorded = record["scores"]["test"]["balanced_accuracy"]
    if recorded == specimen.accuracy:
        return f"{shown}, as in the run's record"
    return f"{shown}, while the run's record has {100 * recorded:.2f} %"


def _packed(values: Array) -> dict[str, Any]:
    """Small whole numbers as text, feature by feature, in which samples resemble one another."""
    content = np.round(values).astype(np.uint8)
    text = base64.b85encode(lzma.compress(content.tobytes(order="F"))).decode()
    return {"shape": list(content.shape), "xz-base85": text}


def _unpacked(packed: dict[str, Any]) -> Array:
    size = math.prod(packed["shape"])
    if not 0 < size <= LARGEST:
        raise ValueError(f"a mask of shape {packed['shape']}")
    # A few bytes can stand for gigabytes: no more is unpacked than the shape asks for.
    content = lzma.LZMADecompressor().decompress(base64.b85decode(packed["xz-base85"]), size)
    return np.frombuffer(content, dtype=np.uint8).reshape(packed["shape"], order="F")
