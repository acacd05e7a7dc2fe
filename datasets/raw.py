"""What every reader hands back: the numbers as they lie in the source, before labels are coded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


@dataclass
class Raw:
    """A table as read: X (n, d), labels (n,), and what had to be done to get there."""

    X: npt.NDArray[np.float64]
    y: Sequence[object] | npt.NDArray[np.generic]
    features: Sequence[str] | None = None
    relevant: dict[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    """Truth per sample under each definition; synthetic data only."""
    scale: str = "standard"
    notes: list[str] = field(default_factory=list)
    ids: Sequence[str] | None = None
    """Names of the samples, where the source has some."""
    derived: bool = False
    """Built here from raw tables, so that the number of features may differ from the paper's."""
