"""Calling a classifier as it wants to be called: any of scikit-learn's, a pipeline, or one of ours.
What it answers is checked here and nowhere else.

The models here take `random_state`, and `eval_set` in `fit`; others get what their signatures name.
A classifier without probabilities is ranked by its decision function, and by nothing where it has
neither: its AUROC is then undefined.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.protocol.spec import UserError
from benchmark.protocol.splits import Part
from benchmark.runner import answers

LISTED = ("xgboost", "lightgbm")
"""Libraries whose `fit` wants a list of evaluation sets."""


def make(factory: Any, params: dict[str, Any], seed: int) -> Any:
    """A new classifier with these settings, which draws from `seed` alone."""
    model = _made(factory, params, seed)
    _need(model, "fit")
    return model


def _made(factory: Any, params: dict[str, Any], seed: int) -> Any:
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


def _given(model: Any, X: Any) -> Any:
    """Somebody's own model may write into what it is given, and the next call would get that."""
    return X if type(model).__module__.startswith("benchmark.models.") else X.copy()


def fit(model: Any, train: Part, valid: Part) -> None:
    X, y = _given(model, train.X), _given(model, train.y)
    if not takes(model.fit, "eval_set"):
        model.fit(X, y)
        return
    pair = (_given(model, valid.X), _given(model, valid.y))
    listed = type(model).__module__.partition(".")[0] in LISTED
    model.fit(X, y, eval_set=[pair] if listed else pair)


def predict(model: Any, X: Any, n_classes: int) -> tuple[NDArray[np.int64], NDArray[Any] | None]:
    """The predicted classes, and the probabilities if the classes were read off them.

    That is the case where a model has `predict` from the base class here, which takes the most
    probable class. Any other `predict` may follow its own rule, such as an SVM's votes.
    """
    base = import_module("benchmark.models._classifier").Classifier.predict
    if getattr(type(model), "predict", None) is not base:
        _need(model, "predict")
        return _classes(model, "predict", model.predict(_given(model, X)), X, n_classes), None
    proba = _probabilities(model, X, n_classes)
    found = np.sort(model.classes_)[np.argmax(proba, axis=1)]
    return _classes(model, "predict", found, X, n_classes), proba


def also_predict(model: Any, X: Any, n_classes: int) -> dict[str, NDArray[np.int64]]:
    """Other predictions by name, of models that have some."""
    if not hasattr(model, "also_predict"):
        return {}
    return {
        name: _classes(model, f"also_predict[{name!r}]", found, X, n_classes)
        for name, found in model.also_predict(_given(model, X)).items()
    }


def gives_probabilities(model: Any) -> bool:
    return hasattr(model, "predict_proba")


def ranking(model: Any, X: Any, n_classes: int) -> NDArray[Any] | None:
    """One column per class that orders samples by how much they look like it; None without any."""
    if gives_probabilities(model):
        return _probabilities(model, X, n_classes)
    if not hasattr(model, "decision_function"):
        return None
    _refuse_pairs(model, n_classes)
    found = np.asarray(model.decision_function(_given(model, X)))
    both = np.column_stack([-found, found]) if found.ndim == 1 and n_classes == 2 else found
    checked = answers.columns(both, len(X), n_classes, _called(model, "decision_function"))
    return _in_order(model, checked)


def _refuse_pairs(model: Any, n_classes: int) -> None:
    """Three classes have three pairs, whose columns would pass for those of the classes."""
    settings = model.get_params() if hasattr(model, "get_params") else {}
    for name, value in settings.items():
        if n_classes > 2 and name.endswith("decision_function_shape") and value == "ovo":
            raise UserError(
                f"{_called(model, 'decision_function')} gives a column per pair of classes with "
                f"{name}='ovo', and a column per class is needed: leave it at 'ovr'."
            )


def _in_order(model: Any, columns: NDArray[Any]) -> NDArray[Any]:
    """Columns follow `classes_`, as everywhere in scikit-learn, and these need not be sorted."""
    wanted = list(range(columns.shape[1]))
    classes = np.asarray(getattr(model, "classes_", wanted)).ravel().tolist()
    if classes == wanted or set(classes) != set(wanted):
        return columns
    return np.ascontiguousarray(columns[:, [classes.index(code) for code in wanted]])


def select(model: Any, X: Any) -> NDArray[np.bool_] | None:
    """Which features are selected, per sample; None of a model that selects none."""
    if not hasattr(model, "select"):
        return None
    return answers.mask(model.select(_given(model, X)), X.shape, _called(model, "select"))


def _classes(model: Any, method: str, found: Any, X: Any, n_classes: int) -> NDArray[np.int64]:
    return answers.classes(found, len(X), n_classes, _called(model, method))


def _probabilities(model: Any, X: Any, n_classes: int) -> NDArray[Any]:
    found = model.predict_proba(_given(model, X))
    called = _called(model, "predict_proba")
    return _in_order(model, answers.probabilities(found, len(X), n_classes, called))


def _called(model: Any, method: str) -> str:
    return f"{type(model).__name__}.{method}"


def _need(model: Any, method: str) -> None:
    if not hasattr(model, method):
        raise UserError(
            f"There is no {_called(model, method)}. A classifier has fit(X, y) and predict(X)."
        )
