"""How fast a network trains, beside the matrix products that it cannot do without.

The bare products of the same shapes are timed in the same process, in turn with the training, so
that the ratio means something on any machine and under any load. Times are CPU seconds of the one
thread that works: on a quiet machine they equal the clock's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmark.data.load import load
from benchmark.experiments.stopwatch import LENGTHS, answer
from benchmark.protocol.registry import data_ref, load_class, model_ref
from benchmark.protocol.spec import SEED, UserError
from benchmark.protocol.splits import make_split, scaled
from benchmark.runner import machine
from benchmark.text import grid

STEPS = 20
REPEATS = 5
SECONDS = 20
"""Repeats go on so long. Other work on the machine only adds to a time, so the fastest of many is
the cost; and because a step is the difference of two such times, few would leave it to luck."""


@dataclass(frozen=True)
class Speed:
    """What one model costs on one dataset, with one thread."""

    model: str
    dataset: str
    batch: int
    features: int
    step_ms: float
    products_ms: float
    """The step's matrix products alone, without anything around them."""
    inference_ms_per_sample: float
    fit_memory_mb: float
    """Peak of resident memory during training, above what was in use before."""

    @property
    def ratio(self) -> float:
        return self.step_ms / self.products_ms


def measure(model: str, dataset: str) -> Speed:
    """Time training steps, their matrix products and predictions; the fastest of some repeats."""
    entry, overrides = model_ref(model)
    ref = data_ref(dataset)
    Model = load_class(entry)
    params = {**entry.params_for(ref), **overrides}
    # A model that counts its training in epochs takes all samples at once: a step is an epoch.
    length = next((name for name in LENGTHS if name in params), None)
    if length is None or not hasattr(Model, "matrix_products"):
        raise UserError(f"{model!r} is not a network that trains in steps; speed measures those.")
    data = load(ref)
    split = make_split(data.y, 0, 0)
    train, valid, test = scaled(data.X, data.y, split, data.scale)

    def fit(steps: int, eval_set: Any = None, **more: Any) -> Any:
        model = Model(**{"random_state": SEED, **params, length: steps, **more})
        return model.fit(train.X, train.y, eval_set)

    with machine.isolated(SEED):
        trained = fit(STEPS)  # also compiles what is compiled
        # As the benchmark trains: with checks on a validation part, and the best weights kept.
        checked = {"check_every": 1} if hasattr(trained, "check_every") else {}
        before = machine.reset_peak_memory()
        fit(2, (valid.X, valid.y), **checked)
        memory = machine.peak_memory() - before
        batch = min(getattr(trained, "batch_size", len(train.y)), len(train.y))
        shapes = trained.matrix_products(batch)
        multiply = _products(shapes)
        few: list[float] = []
        many, bare, predict = [], [], []
        end = time.monotonic() + SECONDS
        while len(few) < REPEATS or time.monotonic() < end:
            few.append(_cpu(lambda: fit(STEPS)))
            many.append(_cpu(lambda: fit(3 * STEPS)))
            bare.append(min(_cpu(multiply) for _ in range(STEPS)))
            predict.append(_cpu(lambda: answer(trained, test.X)))
    return Speed(
        model=model,
        dataset=dataset,
        batch=batch,
        features=data.X.shape[1],
        # Starting and ending a training costs the same for both, so the difference is steps only.
        step_ms=1000 * (min(many) - min(few)) / (2 * STEPS),
        products_ms=1000 * min(bare),
        inference_ms_per_sample=1000 * min(predict) / len(test.y),
        fit_memory_mb=memory,
    )


def _cpu(work: Callable[[], Any]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def _products(shapes: Sequence[tuple[int, int, int]]) -> Callable[[], None]:
    """A function that does the products (m, k) x (k, n) into memory that is there already."""
    rng = np.random.default_rng(0)
    made = [
        (
            rng.random((m, k), dtype=np.float32),
            rng.random((k, n), dtype=np.float32),
            np.empty((m, n), np.float32),
        )
        for m, k, n in shapes
    ]

    def multiply() -> None:
        for left, right, out in made:
            np.matmul(left, right, out=out)

    return multiply


def to_text(rows: Sequence[Speed]) -> str:
    head = [
        "model",
        "dataset",
        "batch",
        "ms per step",
        "products ms",
        "ratio",
        "predict ms",
        "fit MB",
    ]
    body = [
        [
            row.model,
            row.dataset,
            f"{row.batch} x {row.features}",
            f"{row.step_ms:.2f}",
            f"{row.products_ms:.2f}",
            f"{row.ratio:.2f}",
            f"{row.inference_ms_per_sample:.3f}",
            f"{row.fit_memory_mb:.0f}",
        ]
        for row in rows
    ]
    return grid([head, *body])


def to_json(rows: Sequence[Speed]) -> str:
    here = machine.environment()
    return json.dumps(
        {"machine": here, "speed": [{**asdict(row), "ratio": row.ratio} for row in rows]},
        indent=1,
    )


FORMATS = {"text": to_text, "json": to_json}
