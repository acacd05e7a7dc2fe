"""The training loop of the networks: shuffled mini-batches, checks, the best checkpoint.

The loop owns the order of the batches, when to check, which weights to keep and when to stop. What
a step does and what a check measures is the model's own story.
"""

import math
import time
from dataclasses import dataclass

import numpy as np

CURVE_POINTS = 50


@dataclass(frozen=True)
class Training:
    """How a training went."""

    steps: int
    epochs: int
    best_step: int
    """The step whose weights the model has now."""
    checks: list[dict]
    """What `check` returned, with the step."""
    stopped_early: bool
    seconds_per_epoch: float
    """Time in steps, per pass over the data; checks are not counted."""

    def report(self):
        """The same as a small dictionary for JSON, with the checks as curves."""
        return {
            "steps": self.steps,
            "epochs": self.epochs,
            "best_step": self.best_step,
            "checks": len(self.checks),
            "stopped_early": self.stopped_early,
            "curves": curves(self.checks),
            "kept": self.kept(),
        }

    def kept(self):
        """The check of `best_step`, which may be missing from the thinned curves; None if there is none."""
        for numbers in self.checks:
            if numbers["step"] == self.best_step:
                return {name: rounded(number) for name, number in numbers.items()}
        return None


def train(
    n_samples,
    step,
    *,
    steps,
    rng,
    batch_size,
    check=None,
    check_every=1,
    score=None,
    patience=None,
    save=None,
    load=None,
):
    """Call `step(rows)` on mini-batches until there were `steps` of them; return a Training.

    Every epoch is a new order of the samples; the rest that fills no batch is dropped, and fewer
    samples than `batch_size` make one batch.

    Every `check_every` epochs `check()` returns a dictionary of numbers. `score(numbers)`, lower is
    better, decides: the weights of the best check, `save()`, are what `load` gets in the end. The
    first of equal checks wins. Without a score, or without any check, the last weights stay.

    With `patience`, training stops at the first check that comes at least so many steps after the
    best one.
    """
    for name, value in (("batch_size", batch_size), ("check_every", check_every)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value!r}")
    batch_size = min(batch_size, n_samples)
    step_count = epoch = best_step = 0
    best_score, best_weights = math.inf, None
    checks, stopped_early, seconds = [], False, 0.0

    while step_count < steps and not stopped_early:
        start = time.perf_counter()
        order = rng.permutation(n_samples)
        for first in range(0, n_samples - batch_size + 1, batch_size):
            step(order[first : first + batch_size])
            step_count += 1
            if step_count == steps:
                break
        epoch += 1
        seconds += time.perf_counter() - start

        if check is None or epoch % check_every:
            continue
        numbers = check()
        checks.append({"step": step_count, **numbers})
        if score is None:
            continue
        if score(numbers) < best_score:
            best_score, best_step, best_weights = score(numbers), step_count, save()
        stopped_early = patience is not None and step_count - best_step >= patience

    if best_weights is None:
        best_step = step_count
    else:
        load(best_weights)
    return Training(step_count, epoch, best_step, checks, stopped_early, seconds / max(epoch, 1))


def curves(checks):
    """Lists by name from a list of dictionaries, thinned and rounded: small enough for a record."""
    if not checks:
        return {}
    keep = np.unique(np.linspace(0, len(checks) - 1, min(len(checks), CURVE_POINTS)).round())
    return {name: [rounded(checks[int(i)][name]) for i in keep] for name in checks[0]}


def rounded(number):
    """Five significant digits; None for what JSON cannot say."""
    if isinstance(number, int):
        return number
    return float(f"{number:.5g}") if math.isfinite(number) else None
