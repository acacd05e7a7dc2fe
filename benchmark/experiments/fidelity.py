"""Each selecting network on the tasks of its own paper, beside the range that it should reach.

A re-implementation that only ever saw the benchmark's data proves little: there nobody knows the
relevant features. Here they are known, and so is what the original reached.
"""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.datasets.home_tasks import draw
from benchmark.files import write_atomic
from benchmark.protocol import stored
from benchmark.protocol.registry import load_class, models
from benchmark.protocol.spec import SEED
from benchmark.runner import machine
from benchmark.runner.metrics import scores
from benchmark.text import grid

N_TEST = 10_000
NOT_RUN, NO_RANGE = "not run", "no range"
SEEDS = {"train": 42, "test": 43}
"""Different ones: the same would test on the training samples."""


@dataclass(frozen=True)
class Experiment:
    """A method on a task of its own paper."""

    name: str
    model: str
    task: str
    n_train: int
    params: dict[str, Any]
    accept: dict[str, tuple[float, float]]
    source: str
    verified: bool = True
    """Whether somebody looked up where the range comes from."""

    @property
    def question(self) -> dict[str, Any]:
        """What decides the result; the range that it is judged by does not."""
        asked = {key: getattr(self, key) for key in ("model", "task", "n_train", "params")}
        found: dict[str, Any] = json.loads(json.dumps(asked))
        return found


@dataclass(frozen=True)
class Finding:
    """What an experiment measured."""

    name: str
    experiment: dict[str, Any]
    revision: int
    """Of the model, as in the records of runs."""
    measured: dict[str, float]
    seconds: float
    code: dict[str, Any]
    machine: dict[str, Any]

    @property
    def accepted(self) -> bool | None:
        """Whether every measure lies in its range; None if there is no range to lie in."""
        ranges = self.experiment["accept"]
        if not ranges:
            return None
        return all(low <= self.measured[name] <= high for name, (low, high) in ranges.items())


@cache
def _entries() -> dict[str, dict[str, Any]]:
    return tomllib.loads(
        files("benchmark.experiments").joinpath("fidelity.toml").read_text("utf-8")
    )


def experiments(small: bool = False) -> dict[str, Experiment]:
    """The full experiments, or the quick versions of those that have one."""
    found = {}
    for name, entry in _entries().items():
        entry = dict(entry)
        quick = entry.pop("small", None)
        if small and quick is None:
            continue
        if small and quick is not None:
            quick = dict(quick)
            entry |= {"n_train": quick.pop("n_train"), "accept": quick.pop("accept")}
            entry["params"] = {**entry["params"], **quick}
        accept = {key: (low, high) for key, (low, high) in entry.pop("accept").items()}
        found[name] = Experiment(name, accept=accept, **entry)
    return found


def run(experiment: Experiment) -> Finding:
    """Train on one draw of the task and measure on another."""
    entry = models()[experiment.model]
    n = experiment.n_train
    X, y, _ = draw(experiment.task, n + n // 10, SEEDS["train"])
    X_test, y_test, relevant = draw(experiment.task, N_TEST, SEEDS["test"])
    X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    Model = load_class(entry)
    start = time.perf_counter()
    with machine.isolated(SEED):
        model = Model(**{**entry.params, **experiment.params}, random_state=SEED)
        model.fit(X[:n], y[:n], eval_set=(X[n:], y[n:]))
        measured = measure(model, X_test, y_test, relevant)
    return Finding(
        name=experiment.name,
        experiment=asdict(experiment),
        revision=entry.revision,
        measured={name: round(value, 4) for name, value in measured.items()},
        seconds=round(time.perf_counter() - start, 1),
        code=machine.code_version(),
        machine=machine.environment(),
    )


def measure(
    model: Any, X: NDArray[Any], y: NDArray[np.int64], relevant: NDArray[np.bool_]
) -> dict[str, float]:
    """Everything that can be measured of a fitted model on a task whose truth is known."""
    proba = model.predict_proba(X)
    found = {"auc": scores(y, model.predict(X), proba, proba.shape[1])["auroc"] or 0.0}
    selected = model.select(X)
    found |= dict(zip(("tpr", "fdr"), rates(selected, relevant), strict=True))
    if hasattr(model, "importance"):
        ranks = median_ranks(model.importance(X), relevant)
        optimum = (relevant.sum(axis=1) + 1) / 2
        found |= {
            "mean_median_rank": float(ranks.mean()),
            "at_optimum": float(np.mean(ranks <= optimum)),
        }
    return found


def rates(selected: NDArray[np.bool_], relevant: NDArray[np.bool_]) -> tuple[float, float]:
    """True positive rate and false discovery rate, per sample, mean over samples, in percent.

    A sample without any selected feature has no false discoveries.
    """
    hits = (selected & relevant).sum(axis=1)
    chosen = selected.sum(axis=1)
    tpr = hits / relevant.sum(axis=1)
    fdr = (chosen - hits) / np.maximum(chosen, 1)
    return 100 * float(tpr.mean()), 100 * float(fdr.mean())


def median_ranks(importance: NDArray[Any], relevant: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Median rank of each sample's relevant features, 1 = most important; equals share theirs."""
    from scipy.stats import rankdata  # slow to import, and reports only read findings

    ranks = rankdata(-importance, axis=1)
    return np.array([np.median(r[true]) for r, true in zip(ranks, relevant, strict=True)])


# Files -------------------------------------------------------------------------------------------


def path_of(results: Path, name: str) -> Path:
    return results / "fidelity" / f"{name}.json"


def write(results: Path, finding: Finding) -> None:
    text = json.dumps(asdict(finding), indent=1) + "\n"
    write_atomic(path_of(results, finding.name), text.encode())


def read(results: Path, experiment: Experiment) -> Finding | None:
    """What was measured for just this experiment; None if it or its model changed, or never was."""
    command = f"python -m benchmark fidelity --only {experiment.name}"
    path, remedy = (
        path_of(results, experiment.name),
        f"`{command}` sets it aside and runs it again.",
    )
    finding = stored.read(Finding, path, remedy)
    if finding is None:
        return None
    if missing := experiment.accept.keys() - finding.measured.keys():
        raise stored.Damaged(path, f"{', '.join(sorted(missing))} was not measured", remedy)
    asked = experiment.question
    same = {key: finding.experiment.get(key) for key in asked} == asked
    if not same or finding.revision != models()[experiment.model].revision:
        return None
    return replace(finding, experiment=asdict(experiment))


# Texts -------------------------------------------------------------------------------------------


def to_markdown(findings: Mapping[str, Finding | None]) -> str:
    lines = [["Experiment", "Measure", "Accepted", "Measured", "", "Also", "Seconds", "Source"]]
    for name, finding in findings.items():
        experiment = experiments()[name]
        measured = finding.measured if finding else {}
        others = ", ".join(f"{k} {v:g}" for k, v in measured.items() if k not in experiment.accept)
        seconds = f"{finding.seconds:.0f}" if finding else ""
        rows = [_judged(measured.get(k), k, *ends) for k, ends in experiment.accept.items()]
        rows = rows or [["", "", "", NO_RANGE if finding else NOT_RUN]]
        lines += [
            [name, *rows[0], others, seconds, _source(experiment)],
            *(["", *row, "", "", ""] for row in rows[1:]),
        ]
    done = [(experiments()[name], f) for name, f in findings.items() if f]
    judged = [f.accepted for e, f in done if e.verified and f.accepted is not None]
    total = f"{sum(map(bool, judged))} of {len(judged)} experiments whose range was looked up are within it"
    if unverified := [f.accepted for e, f in done if not e.verified and e.accept]:
        total += f"; of {len(unverified)} with an unverified range {sum(map(bool, unverified))} are"
    if unknown := sum(f.accepted is None for _, f in done):
        total += f"; for {unknown} no range is known"
    missing = len(findings) - len(done)
    tail = f"; {missing} not run (`python -m benchmark fidelity`)." if missing else "."
    return f"# Fidelity: the methods on their own papers' tasks\n\n{grid(lines)}\n\n{total}{tail}"


def verdict(value: float | None, low: float, high: float) -> str:
    """Where a value lies: a rate above its range is a miss of another kind than one below."""
    if value is None:
        return NOT_RUN
    return "below" if value < low else "above" if value > high else "yes"


def _source(experiment: Experiment) -> str:
    return experiment.source if experiment.verified else f"unverified: {experiment.source}"


def _judged(value: float | None, measure_name: str, low: float, high: float) -> list[str]:
    """A measure, its range, its value and whether that lies in the range."""
    word = verdict(value, low, high)
    word = f"NO, {word}" if word in ("below", "above") else word
    return [measure_name, f"{low:g} to {high:g}", "" if value is None else f"{value:g}", word]


def to_json(findings: Mapping[str, Finding | None]) -> str:
    return json.dumps(
        {name: asdict(f) | {"accepted": f.accepted} if f else None for name, f in findings.items()},
        indent=1,
    )


FORMATS = {"md": to_markdown, "json": to_json}


def chosen(names: Sequence[str] | None) -> list[Experiment]:
    from benchmark.protocol.registry import check_name

    known = experiments()
    for name in names or ():
        check_name("experiment", name, known)
    return [known[name] for name in names or known]
