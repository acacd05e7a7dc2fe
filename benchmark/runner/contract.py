"""What the harness asks of a classifier, tried on made-up data: `check-model`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypedDict

import numpy as np

from benchmark.protocol.registry import load_factory, model_ref
from benchmark.protocol.spec import SEED, UserError
from benchmark.protocol.splits import Part
from benchmark.runner import estimator, machine
from benchmark.runner.execute import describe
from benchmark.shapes import Misshapen, fit, parse
from benchmark.text import first_line

CLASSES = (2, 3)
"""Of the made-up data, one after the other: some models take two classes only."""


@dataclass(frozen=True)
class Finding:
    """One point of the contract."""

    what: str
    word: str
    """holds | fails | note"""
    detail: str = ""


class Answer(TypedDict):
    """What a worker answers: a line of JSON."""

    findings: list[Finding]
    error: str | None
    """What the user has to mend before anything can be tried."""


def answer(name: str, n_classes: int) -> dict[str, Any]:
    """The worker's side: the findings, ready to be sent."""
    try:
        return {"findings": [asdict(one) for one in check(name, n_classes)], "error": None}
    except UserError as error:
        return {"findings": [], "error": str(error)}


def read(line: bytes) -> list[Finding] | None:
    """The other side: what was sent; None if the line is anything else."""
    try:
        found = fit(Answer, parse(line))
    except Misshapen:
        return None
    if found["error"] is not None:
        raise UserError(found["error"])
    return found["findings"]


def check(name: str, n_classes: int) -> list[Finding]:
    """Try the model called `name` on small data of so many classes.

    By the same calls as in a run: what fits here fails no run by its form.
    """
    entry, overrides = model_ref(name)
    factory = load_factory(entry)
    params = {**entry.params, **overrides}
    seed = params.pop("random_state", SEED)
    with machine.isolated(seed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _findings(partial(estimator.make, factory, params, seed), n_classes)


def _findings(make: Callable[[], Any], n_classes: int) -> list[Finding]:
    points = _Points(f"{n_classes} classes: ")
    model = points.ask("it can be made", make)
    if model is None:
        return points.found
    train, valid, test = made_up(n_classes)
    if points.ask("fit", lambda: _fitted(model, train, valid)) is not None:
        predicted = _answers(points, model, test, n_classes)
        if predicted is not None:
            what = "the same seed gives the same predictions"
            points.ask(what, lambda: _repeat(make, n_classes, predicted))
    return points.found + (_notes(model) if n_classes == CLASSES[-1] else [])


def _answers(points: _Points, model: Any, test: Part, n_classes: int) -> Any:
    """Ask for all that a run asks for; the predicted classes are handed on."""
    X = test.X
    predicted = points.ask(
        "predict gives a class per sample", lambda: estimator.predict(model, X, n_classes)[0]
    )
    if method := next((method for method in RANKING if hasattr(model, method)), None):
        what = f"{method} gives {RANKING[method]}"
        ranked = points.ask(what, lambda: estimator.ranking(model, X, n_classes))
        if predicted is not None and ranked is not None:
            points.compare(method, predicted, ranked)
    if hasattr(model, "select"):
        what = "select gives true or false per sample and feature"
        points.ask(what, lambda: estimator.select(model, X))
    if hasattr(model, "also_predict"):
        what = "also_predict gives classes by name"
        points.ask(what, lambda: estimator.also_predict(model, X, n_classes))
    return predicted


RANKING = {
    "predict_proba": "probabilities, a column per class",
    "decision_function": "finite numbers, a column per class",
}
"""What samples are ordered by, for AUROC: the first that a model has."""


def _repeat(make: Callable[[], Any], n_classes: int, first: Any) -> None:
    """Raise unless another fit predicts as the first did."""
    train, valid, test = made_up(n_classes)
    again = estimator.predict(_fitted(make(), train, valid), test.X, n_classes)[0]
    if not np.array_equal(first, again):
        raise UserError("two fits differ; take random_state in __init__ and draw from it alone")


def _fitted(model: Any, train: Part, valid: Part) -> Any:
    estimator.fit(model, train, valid)
    return model


class _Points:
    """Points of the contract, as they are found."""

    def __init__(self, words: str) -> None:
        self.words = words
        self.found: list[Finding] = []

    def ask(self, what: str, question: Callable[[], Any]) -> Any:
        """The answer; None if there is none, and the finding says why."""
        try:
            answer = question()
        except NotImplementedError as error:
            self._add(what, "note", f"refused, as it may: {error}")
        except BaseException as error:  # noqa: BLE001 - whatever it raises, even sys.exit(), is the finding
            self._add(what, "fails", first_line(describe(error)))
        else:
            self._add(what, "holds")
            return answer
        return None

    def compare(self, method: str, predicted: Any, ranked: Any) -> None:
        """A model may predict by a rule of its own, but seldom another class than its highest column."""
        same = int((ranked.argmax(axis=1) == predicted).sum())
        if same < len(predicted) / 2:
            self._add(
                f"{method} goes with predict",
                "note",
                f"of {len(predicted)} samples only {same} are predicted as the class with the highest number; "
                f"columns are in the order of classes_, and without it in that of the classes",
            )

    def _add(self, what: str, word: str, detail: str = "") -> None:
        self.found.append(Finding(f"{self.words}{what}", word, detail))


def _notes(model: Any) -> list[Finding]:
    """What it may do without, and what is then missing."""
    notes = {}
    if not estimator.gives_probabilities(model):
        has = hasattr(model, "decision_function")
        then = "AUROC follows its decision_function" if has else "it has no AUROC"
        notes["predict_proba"] = f"not there: {then}, and --keep proba keeps nothing"
    if not estimator.takes(model.fit, "eval_set"):
        notes["eval_set"] = "fit does not take it: the validation part goes unused"
    if not hasattr(model, "select"):
        notes["select"] = "not there: counts as a model that selects no features"
    return [Finding(what, "note", detail) for what, detail in notes.items()]


def made_up(n_classes: int, n_features: int = 20) -> tuple[Part, Part, Part]:
    """Classes that differ in their first features, z-scored, as runs give them; not sorted, as in most tables."""
    rng = np.random.default_rng(0)

    def part(per_class: int) -> Part:
        y = np.tile(np.arange(n_classes)[::-1], per_class)
        X = rng.normal(size=(len(y), n_features))
        X[:, :n_classes] += 2 * np.eye(n_classes)[y]
        return Part(X.astype(np.float32), y.astype(np.int64))

    return part(20), part(4), part(6)
