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
    groups: Sequence[str] | None = None
    """Of each row, what must not be divided between parts, such as a patient."""
    test: npt.NDArray[np.bool_] | None = None
    """The rows that every run is tested on, where a user has named them."""
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Features whose values in X are codes, with what these stand for."""
    gaps: bool = False
    """Whether values of X may be missing, because each run fills them."""
    derived: bool = False
    """Built here from raw tables, so that the number of features may differ from the paper's."""
