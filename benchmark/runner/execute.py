"""One run: a pure function from a small spec to a record."""

from __future__ import annotations

import importlib
import io
import math
import sys
import time
import traceback
import warnings
from collections.abc import Collection
from typing import Any

import numpy as np

from benchmark.data.dataset import Dataset
from benchmark.data.load import load
from benchmark.files import LARGEST
from benchmark.protocol import registry
from benchmark.protocol.prepare import prepare
from benchmark.protocol.record import checked
from benchmark.protocol.spec import (
    PARTS,
    SCHEMA,
    MissingData,
    Outcome,
    RunSpec,
    UserError,
    canonical,
    failed,
)
from benchmark.protocol.splits import Part, Split, make_split, scaled
from benchmark.runner import estimator, machine, masked, metrics

_loaded: dict[str, str | None] = {}
"""Own models that were loaded in this process: the hash of their files then."""


def _as_it_is_now(entry: registry.ModelEntry) -> str | None:
    """The hash of an own model's file. If it was edited since it was loaded here, as in a notebook or by a
    worker of a cluster, it is forgotten, so that it is loaded anew."""
    source = machine.own_source(entry)
    if _loaded.setdefault(entry.class_path, source) != source:
        top = entry.class_path.partition(":")[0].partition(".")[0]
        for name in [name for name in sys.modules if name.partition(".")[0] == top]:
            del sys.modules[name]
        importlib.invalidate_caches()
        _loaded[entry.class_path] = source
    return source


def execute(spec: RunSpec, keep: Collection[str] = ()) -> Outcome:
    """Do one run. Never raises: a failure is an outcome too."""
    start = time.monotonic()
    outcome = _recorded(spec, keep)
    meta = outcome.record["meta"]
    meta["environment"] = machine.environment()  # now that all libraries are loaded
    meta.setdefault("seconds", {})["total"] = round(time.monotonic() - start, 3)
    return outcome


def _recorded(spec: RunSpec, keep: Collection[str]) -> Outcome:
    meta: dict[str, Any] = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "code": machine.code_version(),
    }
    try:
        # Before isolated(), which seeds torch if it is loaded.
        entry = registry.model(spec.model)
        if source := _as_it_is_now(entry):
            meta["model_source"] = source
        factory = registry.load_factory(entry)
        with machine.isolated(spec.start), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome = _execute(spec, factory, keep, meta)
        _check(outcome)
        return outcome
    except MissingData as error:
        return failed(spec, "missing_data", str(error), "", meta)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever happens, even sys.exit(), is recorded
        return failed(spec, kind_of(error), describe(error), traceback.format_exc(), meta)


def _check(outcome: Outcome) -> None:
    """Better a named failure than a file that nobody can read: JSON, finite numbers, the shape."""
    if _holds_infinity(outcome.record):
        raise FloatingPointError("the record holds a number that is not finite")
    size = len(canonical(outcome.record))
    if size > LARGEST // 2:
        raise ValueError(f"the model's report makes a record of {size >> 20} MB; keep less of it")
    checked(outcome.record)


def _holds_infinity(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_infinity, value.values()))
    if isinstance(value, list):
        return any(map(_holds_infinity, value))
    return isinstance(value, float) and not math.isfinite(value)


def kind_of(error: BaseException) -> str:
    """Which of the named failures an exception is."""
    if isinstance(error, MemoryError):
        return "out_of_memory"
    # Models raise NotImplementedError for data that they cannot take at all.
    if isinstance(error, NotImplementedError):
        return "unsupported"
    # Of output that is not finite scores would be meaningless; the models here raise it themselves.
    if isinstance(error, FloatingPointError):
        return "diverged"
    return "error"


def describe(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a model's own exception class may be broken too
        text = "(its message cannot be shown)"
    return text if isinstance(error, UserError) else f"{type(error).__name__}: {text}"


def _execute(spec: RunSpec, factory: Any, keep: Collection[str], meta: dict[str, Any]) -> Outcome:
    clock = machine.Clock()
    with clock.stage("load"):
        data = load(spec.data)
        split = make_split(
            data.y, spec.repeat, spec.fold, spec.folds, spec.valid_size, data.groups, data.test
        )
        prepared = None
        if data.gaps or data.categories:
            prepared = prepare(data.X[split.train], data.features, data.categories)
        X = data.X if prepared is None else prepared.apply(data.X)
        train, valid, test = scaled(X, data.y, split, data.scale)

    memory_before = machine.reset_peak_memory()
    model = estimator.make(factory, spec.params, spec.start)
    with clock.stage("fit"):
        estimator.fit(model, train, valid)
    parts = dict(zip(PARTS, (train, valid, test), strict=True))
    predicted, proba, n_classes = {}, {}, len(data.classes)
    with clock.stage("predict"):
        predicted["test"], proba["test"] = estimator.predict(model, test.X, n_classes)
    predict_ms = 1000 * clock.seconds["predict"] / len(test.y)

    with clock.stage("predict"):
        for name in ("train", "valid"):
            predicted[name], proba[name] = estimator.predict(model, parts[name].X, n_classes)
        for name, part in parts.items():
            if proba[name] is None:
                proba[name] = estimator.ranking(model, part.X, n_classes)
        selected = estimator.select(model, test.X)
        if selected is not None and prepared is not None:
            selected = prepared.widen(selected)
        also = estimator.also_predict(model, test.X, n_classes)
    peak_memory = machine.peak_memory()

    with clock.stage("transfer"):
        transfer = masked.scores(model, train, valid, test) if hasattr(model, "masks") else None
    seen = {"sha256": data.sha256, "shape": [len(data.y), len(data.columns)], "classes": n_classes}
    record = {
        "schema": SCHEMA,
        "key": spec.key,
        "spec": spec.to_dict(),
        "status": "ok",
        "data": seen | ({"derived": True} if data.derived else {}),
        "split": {"sha256": split.sha256, **{p: len(getattr(split, p)) for p in PARTS}},
        "scores": {
            name: metrics.scores(part.y, predicted[name], proba[name], n_classes)
            for name, part in parts.items()
        },
        "also": {name: metrics.balanced_accuracy(test.y, y) for name, y in also.items()},
        "selection": None if selected is None else _selection(model, selected, data, test, split),
        "transfer": transfer,
        "model": model_facts(model),
        "meta": {
            **meta,
            "seconds": {stage: round(value, 6) for stage, value in clock.seconds.items()}
            | {"per_epoch": getattr(model, "seconds_per_epoch_", None)},
            "predict_ms_per_sample": round(predict_ms, 6),
            "data_notes": list(data.notes),
            "memory_mb": {"before": round(memory_before, 1), "peak": round(peak_memory, 1)},
        },
    }
    kept = proba["test"] if estimator.gives_probabilities(model) else None
    return Outcome(record, _arrays(keep, kept, predicted["test"], selected, data, split))


def _selection(
    model: Any, selected: Any, data: Dataset, test: Part, split: Split
) -> dict[str, Any]:
    relevant = {name: truth[split.test] for name, truth in data.relevant.items()}
    found = metrics.selection(selected, relevant)
    if hasattr(model, "composition"):
        found["composition"] = as_json(model.composition(test.X))
    return found


def model_facts(model: Any) -> dict[str, Any]:
    """What the model says of itself: its size and how its training went."""
    facts = {
        "parameters": getattr(model, "n_parameters_", None),
        **getattr(model, "fit_report_", {}),
    }
    return {name: as_json(value) for name, value in facts.items()}


def as_json(value: Any) -> Any:
    """Plain numbers, texts, lists and dictionaries; a number that does not exist is null."""
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [as_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _arrays(
    keep: Collection[str], proba: Any, predicted: Any, selected: Any, data: Dataset, split: Split
) -> bytes | None:
    if not keep:
        return None
    arrays: dict[str, Any] = {"rows": split.test}
    if "proba" in keep:
        # Of a model without probabilities no column, so that a resumed run does not look for them.
        arrays["proba"] = np.empty((len(split.test), 0)) if proba is None else proba
        arrays["proba"] = arrays["proba"].astype(np.float32)
        arrays["predicted"] = np.asarray(predicted, dtype=np.int64)
    if "selected" in keep and selected is not None:
        # One bit per feature: np.unpackbits(..., axis=1, count=n_features) gives the mask back.
        arrays |= {
            "selected": np.packbits(selected, axis=1),
            "n_features": np.array(len(data.columns)),
        }
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()
