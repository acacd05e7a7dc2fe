"""Times of training and of prediction, from runs that are made for nothing else.

They are taken one after the other on one thread, with nothing else to do for the machine: the load
before each is stored, and `quiet` tells whether it was low. A time says something about hardware and
implementation, so every file names its own machine, and times are compared within one machine only.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmark.files import write_atomic
from benchmark.protocol import stored
from benchmark.protocol.plan import Cell

REPEATS = 5
QUIET = 0.5
"""Other processes' share of the machine, in cores, up to which a time counts as taken alone."""


@dataclass(frozen=True)
class Timing:
    """One model on one dataset, with its default or chosen settings."""

    model: str
    dataset: str
    params: dict[str, Any]
    revision: int
    """The model's, as in a run: other code takes other times."""
    train_seconds_per_epoch: list[float]
    """One pass over the training part, checks excluded; one number per repeat."""
    inference_ms_per_sample: list[float]
    """All predictions of the test part divided by its size, masks included, prototypes cached."""
    parameters: int | None
    load: float
    """Cores that other processes kept busy just before, measured over two seconds."""
    machine: dict[str, Any]
    code: dict[str, Any]

    @property
    def hardware(self) -> str:
        cpu, platform = (self.machine.get(name, "unknown") for name in ("cpu", "platform"))
        return f"{cpu}, {platform}, one thread"

    @property
    def quiet(self) -> bool:
        return self.load <= QUIET


def path_of(results: Path, cell: Cell) -> Path:
    return cell.place(results, "timings", ".json")


def read(results: Path, cell: Cell) -> Timing | None:
    """The stored times of a cell; None if its present revision was never timed."""
    command = f"python -m benchmark time --models {cell.model} --datasets {cell.data.label}"
    path, remedy = path_of(results, cell), f"`{command}` sets it aside and times again."
    timing = stored.read(Timing, path, remedy)
    if timing is not None and (timing.model, timing.dataset) != (cell.model, cell.data.label):
        raise stored.Damaged(path, f"it is of {timing.model} on {timing.dataset}", remedy)
    if timing and not (timing.train_seconds_per_epoch and timing.inference_ms_per_sample):
        raise stored.Damaged(path, "it holds no times", remedy)
    return timing if timing and timing.revision == cell.entry.revision else None


def write(results: Path, cell: Cell, timing: Timing) -> Path:
    path = path_of(results, cell)
    write_atomic(path, (json.dumps(asdict(timing), indent=1) + "\n").encode())
    return path
