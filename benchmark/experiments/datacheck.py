"""Is a dataset the paper's? KNN has no randomness, so its printed cell is a fingerprint of the data.

On the data of the paper, with the paper's splits and rule, KNN gives the printed digits. Other rows,
another order or other values do not.
"""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmark import paper
from benchmark.data.load import load
from benchmark.protocol.plan import Cell, Protocol
from benchmark.protocol.registry import data_ref, models
from benchmark.protocol.spec import UserError
from benchmark.runner.campaign import Means
from benchmark.runner.records import Store
from benchmark.runner.tune import tune
from benchmark.text import mean_std

TABLE, METHOD, METRIC = 2, "knn", "balanced_accuracy"


@dataclass(frozen=True)
class Check:
    """What was found of a dataset."""

    name: str
    shape: tuple[int, int]
    classes: dict[str, int]
    source: str
    notes: tuple[str, ...]
    ours: str
    """KNN's mean ± standard deviation on this data, by the paper's rule."""
    printed: str
    same: bool
    """Whether every printed digit is there."""


def check(name: str, jobs: int) -> Check:
    """Load a dataset, which checks its hash, shape and classes; then let KNN tell."""
    printed = {c.dataset: c for c in paper.cells(TABLE) if (c.method, c.metric) == (METHOD, METRIC)}
    if name not in printed:
        raise UserError(
            f"The paper prints no {METHOD.upper()} cell for {name!r} that could tell. "
            f"It does for: {', '.join(d for d in printed if d)}."
        )
    data = load(data_ref(name))
    cell = Cell(models()[METHOD], data_ref(name))
    with tempfile.TemporaryDirectory() as scratch:
        store = Store(Path(scratch))
        [choice], _ = tune([cell], Protocol(), Means(store, jobs=jobs))
        if choice is None:
            raise UserError(f"{METHOD.upper()} could not be run on {name!r}.")
        records, _ = store.find([spec.key for spec in cell.specs(choice.params, Protocol())])
    scores = [100 * r["scores"]["test"]["balanced_accuracy"] for r in records.values()]
    sizes = [int((data.y == code).sum()) for code in range(len(data.classes))]
    ours = statistics.fmean(scores), statistics.stdev(scores)
    shown = printed[name].mean, printed[name].std
    return Check(
        name,
        (data.X.shape[0], data.X.shape[1]),
        dict(zip(data.classes, sizes, strict=True)),
        data.source,
        data.notes,
        mean_std(*ours),
        mean_std(*shown),
        all(paper.equal_as_printed(x, y or 0.0, 2) for x, y in zip(ours, shown, strict=True)),
    )
