"""The four sets with more samples than features, from UCI, PMLB, Weka or OpenML.

Every source of one set must give the same X and y, in the same row order. Compared so far:
vehicle, Weka's ARFF and UCI's nine .dat files: equal. mfeat-fourier, PMLB and the embedded copy:
equal after rounding, see `mfeat`. OpenML's files were not compared; rows in another order are put
in order when they are loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from . import arff
from .raw import Raw

VEHICLE_FEATURES = (
    "compactness",
    "circularity",
    "distance circularity",
    "radius ratio",
    "axis aspect ratio",
    "max length aspect ratio",
    "scatter ratio",
    "elongatedness",
    "axis rectangularity",
    "max length rectangularity",
    "scaled variance major",
    "scaled variance minor",
    "scaled radius of gyration",
    "skewness major",
    "skewness minor",
    "kurtosis major",
    "kurtosis minor",
    "hollows ratio",
)


def plants(paths: Mapping[str, Path]) -> Raw:
    """UCI: species name, then 64 numbers. OpenML: 64 numbers, then the species as 1..100."""
    path = paths["table"]
    if path.suffix == ".arff":
        return _from_arff(path)
    table = pd.read_csv(path, header=None)
    return Raw(table.iloc[:, 1:].to_numpy(np.float64), table[0].to_numpy(), _names("texture", 64))


def cnae(paths: Mapping[str, Path]) -> Raw:
    """UCI: class, then 856 word counts. OpenML: the class comes last."""
    path = paths["table"]
    if path.suffix == ".arff":
        return _from_arff(path)
    table = pd.read_csv(path, header=None)
    return Raw(table.iloc[:, 1:].to_numpy(np.float64), table[0].to_numpy(), _names("word", 856))


def mfeat(paths: Mapping[str, Path]) -> Raw:
    """76 Fourier coefficients of handwritten digits; labels 1..10 as at OpenML and PMLB.

    The reference has five significant digits, as the embedded copy does, so that a machine
    without any other file computes the same. UCI's numbers have eight decimals; rounding to these
    first undoes PMLB's detour through binary, after which five digits agree in all 152,000 values.
    The largest difference between the two precisions is 5e-6.
    """
    path = paths["table"]
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            X, y = archive["X"] / 1e8, archive["y"] + 1
    elif path.suffix == ".arff":
        raw = _from_arff(path)
        X, y = _five_digits(raw.X), raw.y
    elif path.suffix == ".gz":
        table = pd.read_csv(path, sep="\t")
        y = table.pop("target").to_numpy()
        X = _five_digits(table.to_numpy(np.float64))
    else:
        # UCI's file has no labels: the digits come in blocks of 200.
        X = _five_digits(np.loadtxt(path))
        y = np.arange(len(X)) // 200 + 1
    return Raw(X, y, _names("fourier", 76))


def vehicle(paths: Mapping[str, Path]) -> Raw:
    """18 measures of a silhouette, and the kind of vehicle."""
    path = paths["table"]
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            return Raw(archive["X"].astype(np.float64), archive["y"], VEHICLE_FEATURES)
    raw = _from_arff(path)
    return Raw(raw.X, raw.y, VEHICLE_FEATURES)


def _from_arff(path: Path) -> Raw:
    """Everything but the target, which is called class or else comes last."""
    frame = arff.read(path)
    named = [i for i, name in enumerate(frame.columns) if str(name).lower() == "class"]
    target = named[0] if named else frame.shape[1] - 1
    y = frame.iloc[:, target].to_numpy()
    X = frame.drop(columns=frame.columns[target])
    return Raw(X.to_numpy(np.float64), y, [str(name) for name in X.columns])


def _five_digits(X: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Round to eight decimals, then to five significant digits, as decimal numbers are rounded."""
    texts = [f"{value:.5g}" for value in np.round(X, 8).ravel()]
    return np.array(texts, dtype=np.float64).reshape(X.shape)


def _names(stem: str, n: int) -> list[str]:
    return [f"{stem} {j}" for j in range(1, n + 1)]
