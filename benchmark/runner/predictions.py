"""Predictions by the names of samples and classes, from the arrays that `--keep proba` keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.data.load import load
from benchmark.files import write_atomic
from benchmark.protocol.spec import RunSpec
from benchmark.runner.records import Store
from benchmark.text import csv_text


def write(planned: Iterable[Sequence[RunSpec]], store: Store) -> list[Path]:
    """One table per dataset, model and setting: a row per split and test sample. Returns the files."""
    by_cell: dict[str, list[_Kept]] = {}
    for specs in planned:
        for spec in specs:
            arrays = store.kept(spec.key)
            if "proba" in arrays:
                name = f"{spec.data.folder}-{spec.model}-{spec.setting}"
                by_cell.setdefault(name, []).append((spec, arrays))
    return [_write(name, kept, store) for name, kept in by_cell.items()]


_Kept = tuple[RunSpec, dict[str, Any]]


def _write(name: str, kept: Sequence[_Kept], store: Store) -> Path:
    data = load(kept[0][0].data)
    head = ["model", "setting", "repeat", "fold", "id", "class", "predicted"]
    lines = []
    for spec, arrays in kept:
        rows, proba, predicted = arrays["rows"], arrays["proba"], arrays["predicted"]
        if proba.shape[1] == 0:  # a model without probabilities
            proba = np.full((len(rows), len(data.classes)), np.nan)
        for row, code, shares in zip(rows, predicted, proba, strict=True):
            numbers = ["" if np.isnan(p) else f"{p:.6g}" for p in shares]
            names = data.ids[row], data.classes[data.y[row]], data.classes[code]
            lines.append([spec.model, spec.setting, spec.repeat, spec.fold, *names, *numbers])
    text = csv_text([*head, *(f"p_{name}" for name in data.classes)], lines) + "\n"
    path = store.root / "predictions" / f"{name}.csv"
    write_atomic(path, text.encode())
    return path
