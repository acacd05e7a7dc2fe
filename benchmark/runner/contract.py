"""What the harness asks of a classifier, tried on made-up data: `check-model`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmark.protocol.registry import load_factory, model_ref
from benchmark.protocol.spec import SEED
from benchmark.protocol.splits import Part
from benchmark.runner import estimator, machine
from benchmark.runner.execute import describe


@dataclass(frozen=True)
class Finding:
    """One point of the contract."""

    what: str
    word: str
    """holds | fails | note"""
    detail: str = ""


def check(name: str) -> list[Finding]:
    """Try the model called `name` on small data of two and of three classes."""
    entry, overrides = model_ref(name)
    factory = load_factory(entry)
    params = {**entry.params, **overrides}
    seed = params.pop("random_state", SEED)

    def make() -> Any:
        return estimator.make(factory, params, seed)

    with machine.isolated(seed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [one for classes in (2, 3) for one in _on(classes, make)]
        return [*found, *_about(make)]


def _on(n_classes: int, make: Callable[[], Any]) -> Iterator[Finding]:
    train, valid, test = made_up(n_classes)
    words = f"{n_classes} classes: "
    before = train.X.copy(), train.y.copy()

    def fitted(part: Part) -> Any:
        model = make()
        estimator.fit(model, part, valid)
        return model

    try:
        model = fitted(train)
        predicted = estimator.predict(model, test.X)[0]
        order = estimator.ranking(model, test.X)
    except NotImplementedError as error:
        yield Finding(f"{words}fit and predict", "note", f"refused, as it may: {error}")
        return
    except Exception as error:  # noqa: BLE001 - whatever the model raises is the finding
        yield Finding(f"{words}fit and predict", "fails", describe(error))
        return
    yield Finding(f"{words}fit and predict", "holds")
    yield _point(
        f"{words}one predicted class of those trained on per sample",
        np.shape(predicted) == test.y.shape and set(np.unique(predicted)) <= set(range(n_classes)),
        f"predict gave {np.shape(predicted)} with values {np.unique(predicted)[:5]}",
    )
    if order is not None:
        yield _point(
            f"{words}one finite column per class to order samples by",
            np.shape(order) == (len(test.y), n_classes) and bool(np.isfinite(order).all()),
            f"it has shape {np.shape(order)}",
        )
        if estimator.gives_probabilities(model):
            sums = np.sum(order, axis=1)
            yield _point(
                f"{words}probabilities sum to one",
                bool(np.allclose(sums, 1, atol=1e-3)),
                f"they sum to {sums.min():.3g} to {sums.max():.3g}",
            )
    yield _point(
        f"{words}the data are left as they were",
        np.array_equal(before[0], train.X) and np.array_equal(before[1], train.y),
        "fit changed X or y in place; copy them first",
    )
    again = estimator.predict(fitted(train), test.X)[0]
    yield _point(
        f"{words}the same seed gives the same predictions",
        np.array_equal(predicted, again),
        "two fits differ; draw from random_state only",
    )
    if hasattr(model, "select"):
        selected = np.asarray(model.select(test.X))
        yield _point(
            f"{words}select gives true or false per sample and feature",
            selected.shape == test.X.shape and selected.dtype == bool,
            f"it gave {selected.shape} of {selected.dtype}",
        )


def _about(make: Callable[[], Any]) -> Iterator[Finding]:
    model = make()
    if not estimator.gives_probabilities(model):
        has = hasattr(model, "decision_function")
        then = "AUROC follows its decision_function" if has else "it has no AUROC"
        yield Finding("predict_proba", "note", f"not there: {then}, and --keep proba keeps nothing")
    if not estimator.takes(model.fit, "eval_set"):
        yield Finding("eval_set", "note", "fit does not take it: the validation part goes unused")
    if not hasattr(model, "select"):
        yield Finding("select", "note", "not there: counts as a model that selects no features")


def _point(what: str, holds: bool, otherwise: str) -> Finding:
    return Finding(what, "holds") if holds else Finding(what, "fails", otherwise)


def made_up(n_classes: int, n_features: int = 20) -> tuple[Part, Part, Part]:
    """Classes that differ in their first features, z-scored, as runs give them."""
    rng = np.random.default_rng(0)

    def part(per_class: int) -> Part:
        y = np.repeat(np.arange(n_classes), per_class)
        X = rng.normal(size=(len(y), n_features))
        X[:, :n_classes] += 2 * np.eye(n_classes)[y]
        return Part(X.astype(np.float32), y.astype(np.int64))

    return part(20), part(4), part(6)
