"""The shape of a record: what every reader of one may rely on, whoever wrote it.

Checked where a record is made, where a worker's reply arrives and where a file is read. Later
versions may add fields; none of these may be missing or of another kind.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Collection
from typing import Any, Literal, NotRequired, TypedDict

from benchmark.protocol.spec import SCHEMA, RunSpec
from benchmark.shapes import Misshapen, fit

STATUS = Literal[
    "ok", "error", "diverged", "timeout", "out_of_memory", "killed", "missing_data", "unsupported"
]


class Scores(TypedDict):
    balanced_accuracy: float
    accuracy: NotRequired[float]
    weighted_f1: NotRequired[float]
    auroc: NotRequired[float | None]


class Parts(TypedDict):
    train: Scores
    valid: Scores
    test: Scores


class Data(TypedDict):
    sha256: str
    shape: list[int]
    classes: int
    derived: NotRequired[bool]


class Rows(TypedDict):
    sha256: str


class Selection(TypedDict):
    mean: float
    std: float
    local_sparsity: float
    median: NotRequired[float]
    union: NotRequired[int]
    core: NotRequired[str]
    f1: NotRequired[dict[str, float] | None]
    composition: NotRequired[dict[str, float | None]]


class Facts(TypedDict, total=False):
    """What of a model's own report must be of its kind if it is there; anything else may be in it."""

    parameters: float | None
    best_step: float | None
    constant_mask: bool | None
    globally_selected: dict[str, float | None]


class Reason(TypedDict):
    message: str


class Meta(TypedDict, total=False):
    seconds: dict[str, float | None]
    code: dict[str, Any]
    environment: dict[str, Any]
    model_source: str


class Record(TypedDict):
    schema: int
    key: str
    spec: dict[str, Any]
    status: STATUS
    data: NotRequired[Data]
    split: NotRequired[Rows]
    scores: NotRequired[Parts]
    also: NotRequired[dict[str, float]]
    selection: NotRequired[Selection | None]
    transfer: NotRequired[dict[str, dict[str, list[float | None]]] | None]
    model: NotRequired[Facts]
    error: NotRequired[Reason]
    meta: NotRequired[Meta]


_RUN = ("data", "split", "scores", "selection", "model", "meta")
_FAILURE = ("error", "meta")


def checked(value: Any, only: Collection[str] | None = None) -> dict[str, Any]:
    """The record, if it is one; with `only`, just these fields need be there. Else Misshapen."""
    record: dict[str, Any] = {**fit(Record, value)}
    if record["schema"] != SCHEMA:
        raise Misshapen(f"is {record['schema']}, expected {SCHEMA}", "schema")
    for name in _RUN if record["status"] == "ok" else _FAILURE:
        if name not in record and (only is None or name in only):
            raise Misshapen("is missing", name)
    if _key(record["spec"]) != record["key"]:
        raise Misshapen(f"is {record['key']!r}, but the run is another one", "key")
    data, selection = record.get("data"), record.get("selection")
    if data and len(data["shape"]) != 2:
        raise Misshapen(f"is {data['shape']}, expected samples and features", "data.shape")
    if data and not (min(data["shape"]) >= 1 and data["classes"] >= 2):
        raise Misshapen("is too small for two classes", "data")
    if data and selection and "core" in selection:
        _check_core(selection["core"], data["shape"][1])
    return record


def _key(spec: dict[str, Any]) -> str:
    """The key of a spec, if it is one. The 25 runs of a setting differ in the split alone, and are
    read one after the other: the hash of the rest is computed once. repr tells 1 from 1.0 and True."""
    repeat, fold = spec.get("repeat"), spec.get("fold")
    rest = repr({**spec, "repeat": 0, "fold": 0})
    if type(repeat) is int and type(fold) is int and rest in _shared:
        return f"{_shared[rest]}/r{repeat}f{fold}"
    key = fit(RunSpec, spec).key
    _shared.clear()
    _shared[rest] = key.rpartition("/")[0]
    return key


_shared: dict[str, str] = {}
"""The last setting's spec without its split, and what its keys begin with."""


def _check_core(core: str, n_features: int) -> None:
    try:
        size = len(base64.b64decode(core, validate=True))
    except ValueError:
        size = -1
    if size != math.ceil(n_features / 8):
        raise Misshapen(f"is not a set of {n_features} features", "selection.core")


def answer_to(spec: RunSpec, value: Any) -> dict[str, Any]:
    """The record that a worker replied with, if it is that of the run that was asked for.

    A model shares its process with the reply channel and may write into it. Else Misshapen.
    """
    record = checked(value)
    if record["spec"] != spec.to_dict():
        raise Misshapen("is not that of the run that was asked for", "spec")
    return record
