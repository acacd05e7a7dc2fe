"""Which cells failed to converge, from the records of their runs alone.

A run failed if it predicts no better than guessing, or if a selector that should look at each
sample selects the same features for all of them. A cell failed if more than half of its planned
runs did. Its scores are kept: the flag is a warning beside the number, not a gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Record = dict[str, Any]

MARGIN = 0.02
"""Balanced accuracy up to chance plus this counts as guessing."""
ROUNDING = 1e-9
"""A mean of recalls that is exactly at the limit may lie a bit above it."""
MARK = "†"


@dataclass(frozen=True)
class Failure:
    """Why a cell is flagged."""

    failed: int
    planned: int
    constant: int
    """Runs that select the same features for every sample."""
    guessing: int
    """Runs at chance; may be the same ones."""

    def __str__(self) -> str:
        causes = [
            f"the same features for every sample in {self.constant}" if self.constant else "",
            f"balanced accuracy at most chance + 2 points in {self.guessing}"
            if self.guessing
            else "",
        ]
        return (
            f"failed convergence in {self.failed} of {self.planned} runs "
            f"({'; '.join(filter(None, causes))})"
        )


def failure(records: Sequence[Record], selects: str, planned: int) -> Failure | None:
    """The flag of a cell with these successful runs, or None.

    `selects` is the model's: a global selector has one mask for all samples by design.
    """
    constant = [selects == "local" and _constant(record) for record in records]
    guessing = [_guessing(record) for record in records]
    failed = sum(a or b for a, b in zip(constant, guessing, strict=True))
    if 2 * failed <= planned:
        return None
    return Failure(failed, planned, sum(constant), sum(guessing))


def _constant(record: Record) -> bool:
    """What the model says of its training samples; else what was seen on the test samples."""
    told = record["model"].get("constant_mask")
    if told is not None:
        return bool(told)
    # Every sample's features lie in the union, so without local sparsity they are the union.
    selection = record["selection"]
    return selection is not None and selection["local_sparsity"] == 0


def _guessing(record: Record) -> bool:
    chance = 1 / record["data"]["classes"]
    score = record["scores"]["test"]["balanced_accuracy"]
    return bool(score <= chance + MARGIN + ROUNDING)
