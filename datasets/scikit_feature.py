"""The scikit-feature collection: MATLAB files with a matrix X and labels Y."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
from scipy.io import loadmat

from benchmark.protocol.spec import UserError

from .raw import Raw


def read(paths: Mapping[str, Path], *, drop_classes: Collection[int] = ()) -> Raw:
    """Read X and Y from a .mat file, or the embedded .npz that holds the same arrays."""
    path = paths["table"]
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            X, y = archive["X"], archive["y"]
    else:
        content = loadmat(path)
        if not {"X", "Y"} <= content.keys():
            found = sorted(key for key in content if not key.startswith("__"))
            raise UserError(f"{path} holds the variables {found}, expected X and Y.")
        X, y = content["X"], content["Y"]
    y = y.ravel()
    notes = []
    # The paper leaves out lung's fifth class: six samples cannot be spread over the splits.
    kept = ~np.isin(y, list(drop_classes))
    if not kept.all():
        notes.append(f"{(~kept).sum()} rows of class {sorted(drop_classes)} left out")
    return Raw(X[kept].astype(np.float64), y[kept], notes=notes)
