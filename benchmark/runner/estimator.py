"""Calling a classifier as it wants to be called: any of scikit-learn's, a pipeline, or one of ours.

The models here take `random_state`, and `eval_set` in `fit`; others get what their signatures name.
A classifier without probabilities is ranked by its decision function, and by nothing where it has
neither: its AUROC is then undefined.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import numpy as np

from benchmark.protocol.splits import Part

LISTED = ("xgboost", "lightgbm")
"""Libraries whose `fit` wants a list of evaluation sets."""


def make(factory: Any, params: dict[str, Any], seed: int) -> Any:
    """A new classifier with these settings, which draws from `seed` alone."""
    if not callable(factory):
        from sklearn.base import clone

        return seeded(clone(factory).set_params(**params), seed)
    if takes(factory, "random_state"):
        return factory(**params, random_state=seed)
    return seeded(factory(**params), seed)


def seeded(model: Any, seed: int) -> Any:
    """Give the seed to the parts of a pipeline that have none."""
    if not hasattr(model, "get_params"):
        return model
    unset = {
        name: seed
        for name, value in model.get_params().items()
        if value is None and name.rpartition("__")[2] == "random_state"
    }
    return model.set_params(**unset) if unset else model


def takes(function: Any, name: str) -> bool:
    """Whether it has a parameter of that name. `**kwargs` does not count: what a pipeline takes by
    it goes to a step, and nobody knows to which."""
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False  # of compiled code nothing is known


def fit(model: Any, train: Part, valid: Part) -> None:
    if not takes(model.fit, "eval_set"):
        model.fit(train.X, train.y)
        return
    pair = (valid.X, valid.y)
    listed = type(model).__module__.partition(".")[0] in LISTED
    model.fit(train.X, train.y, eval_set=[pair] if listed else pair)


def predict(model: Any, X: Any) -> tuple[Any, Any]:
    """The predicted classes, and the probabilities if the classes were read off them.

    That is the case where a model has `predict` from the base class here, which takes the most
    probable class. Any other `predict` may follow its own rule, such as an SVM's votes.
    """
    if type(model).predict is not import_module("benchmark.models._classifier").Classifier.predict:
        return model.predict(X), None
    proba = model.predict_proba(X)
    if not np.isfinite(proba).all():
        model.predict(X)  # raises, and says what to do
    return model.classes_[np.argmax(proba, axis=1)], proba


def gives_probabilities(model: Any) -> bool:
    return hasattr(model, "predict_proba")


def ranking(model: Any, X: Any) -> Any:
    """One column per class that orders samples by how much they look like it; None without any."""
    if gives_probabilities(model):
        return model.predict_proba(X)
    if not hasattr(model, "decision_function"):
        return None
    found = np.asarray(model.decision_function(X))
    return np.column_stack([-found, found]) if found.ndim == 1 else found
