"""Trials of one's own model on made-up data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from benchmark.progress import say
from benchmark.runner.worker import Broken, Limits, Worker

if TYPE_CHECKING:
    from benchmark.runner.contract import Finding


def check(names: Iterable[str], seconds: float) -> Iterator[tuple[str, list[Finding]]]:
    """Try models on small made-up data, in a process of their own: one may do there what it likes."""
    worker = Worker(Limits(seconds))
    try:
        for name in names:
            yield name, _checked(name, worker)
    finally:
        worker.close()


def _checked(name: str, worker: Worker) -> list[Finding]:
    from benchmark.runner import contract

    found: list[Finding] = []
    for n in contract.CLASSES:
        say(f"{name}: trying it on data of {n} classes, for {worker.limits.seconds:g} s at most")
        answer = worker.ask({"check": name, "classes": n}, contract.read)
        if isinstance(answer, Broken):
            # A model that died or took too long would do so again.
            return [*found, contract.Finding(f"{n} classes", "fails", answer.message)]
        found += answer
    return found


def advice(model: str) -> str:
    """What to do about an own model that fails."""
    return f"`python -m benchmark check-model {model}` tries it on made-up data."
