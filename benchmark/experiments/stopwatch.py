"""Taking the times that timing.py keeps: some epochs of training, some predictions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from benchmark.data.load import load
from benchmark.experiments.timing import REPEATS, Timing
from benchmark.protocol.plan import Cell
from benchmark.protocol.registry import load_class
from benchmark.protocol.spec import SEED, UserError
from benchmark.protocol.splits import make_split, scaled
from benchmark.runner import machine
from benchmark.runner.shipped import store_at

EPOCHS = 30
PREDICTIONS = 100
LENGTHS = ("steps", "epochs")
"""Names of the setting that tells how long a network trains."""


def measure(cell: Cell, results: Path) -> Timing:
    """Time some epochs of training and some predictions on the first split."""
    Model = load_class(cell.entry)
    setting = store_at(results).setting(cell, "base", "default")
    assert setting is not None
    params = {**cell.entry.params_for(cell.data), **setting.params}
    length = next((name for name in LENGTHS if name in params), None)
    if length is None:
        raise UserError(
            f"{cell.model!r} does not train in epochs, so Table 12's time per epoch is undefined."
        )
    data = load(cell.data)
    split = make_split(data.y, 0, 0)
    train, _, test = scaled(data.X, data.y, split, data.scale)
    batch = min(params.get("batch_size") or 64, len(train.y))
    short = EPOCHS * (len(train.y) // batch if length == "steps" else 1)
    load_before = other_load()

    def fit() -> Any:
        return Model(**{"random_state": SEED, **params, length: short}).fit(train.X, train.y)

    with machine.isolated(SEED):
        model = fit()  # also compiles what is compiled
        answer(model, test.X)
        per_epoch, inference = [], []
        for _ in range(REPEATS):  # in turn, so that a slow moment of the machine spoils one of each
            per_epoch.append(float(fit().seconds_per_epoch_))
            inference.append(_predicting(lambda: answer(model, test.X)))
    return Timing(
        model=cell.model,
        dataset=cell.data.label,
        params=params,
        revision=cell.entry.revision,
        train_seconds_per_epoch=per_epoch,
        inference_ms_per_sample=[1000 * seconds / len(test.y) for seconds in inference],
        parameters=model.n_parameters_,
        load=round(load_before, 3),
        machine=machine.environment(),
        code=machine.code_version(),
    )


def answer(model: Any, X: Any) -> None:
    """Predict with the features that are selected, also where the prediction alone ignores them."""
    model.predict(X)
    if getattr(model, "explains_apart", False):
        model.select(X)


def _predicting(work: Callable[[], Any]) -> float:
    """Median seconds of some calls."""
    taken = []
    for _ in range(PREDICTIONS):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken)


def other_load(seconds: float = 2.0) -> float:
    """How many cores other processes use: what the system did while this process slept."""
    start, clock = _busy_seconds(), time.monotonic()
    time.sleep(seconds)
    return max(0.0, _busy_seconds() - start) / (time.monotonic() - clock)


def _busy_seconds() -> float:
    """CPU seconds that the whole machine has worked since it started; 0 where that is not told."""
    try:
        first = Path("/proc/stat").read_text("ascii").splitlines()[0].split()
    except OSError:
        return 0.0
    user, nice, system, _idle, _wait, irq, softirq, *_ = (int(word) for word in first[1:])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")
