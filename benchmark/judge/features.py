"""Which features a selector selects, by name: how often, for which classes, and how reliably.

From the masks of the test samples that `--keep selected` keeps. A share says little without what
chance would give: in the baseline the columns of every run's masks are shuffled, which keeps how many
features each sample selects and forgets which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmark.data.load import load
from benchmark.protocol.plan import Cell
from benchmark.protocol.spec import RunSpec, UserError
from benchmark.runner.records import Store
from benchmark.tables import statistics as stats

SHUFFLES = 200
LEVEL = 0.95


@dataclass(frozen=True)
class Frequency:
    """One feature, as one model selects it."""

    feature: str
    share: float
    """Of the test samples of all runs, those for which it is selected."""
    by_class: dict[str, float]
    runs: int
    """In how many runs at least half of the test samples select it."""
    above_chance: bool
    """Whether its share is above the largest of any feature in 95 % of the shuffles."""


@dataclass(frozen=True)
class Selection:
    """What one model selects on one table; the most frequent feature first."""

    model: str
    dataset: str
    runs: int
    selected: float
    """Features per sample, on average."""
    stability: float | None
    """Of the runs' sets (Nogueira et al., 2018): 1 all equal, 0 chance."""
    chance: float
    """The share that no feature exceeds by chance, at a level of 95 %."""
    features: list[Frequency]


def measure(cell: Cell, specs: Sequence[RunSpec], store: Store) -> Selection:
    """From the masks beside the records of these runs."""
    data = load(cell.data)
    n_features = len(data.columns)
    shares, counts, cores = [], [], []
    selected = np.zeros((len(data.classes), n_features))
    seen = np.zeros(len(data.classes))
    for spec in specs:
        kept = store.kept(spec.key)
        if "selected" not in kept:
            continue
        mask, rows = _mask(kept["selected"], n_features), kept["rows"]
        codes = data.y[rows]
        np.add.at(selected, codes, mask)
        np.add.at(seen, codes, 1)
        shares.append(mask.mean(axis=0))
        counts.append(len(rows))
        cores.append(set(np.flatnonzero(2 * mask.sum(axis=0) >= len(mask)).tolist()))
    if not shares:
        raise UserError(
            f"{cell.model} on {cell.data.label} has no run that tells which features it selected."
        )
    limit = chance(np.array(shares), np.array(counts))
    share = selected.sum(axis=0) / seen.sum()
    by_class = {
        name: selected[c] / seen[c] for c, name in enumerate(data.classes) if seen[c]
    }  # an external test set may be without one
    frequent = np.array([sum(j in core for core in cores) for j in range(n_features)])
    return Selection(
        model=cell.model,
        dataset=cell.data.label,
        runs=len(shares),
        selected=float(share.sum()),
        stability=stats.stability(cores, n_features) if len(cores) > 1 else None,
        chance=limit,
        features=[
            Frequency(
                data.columns[j],
                float(share[j]),
                {name: float(shares_of[j]) for name, shares_of in by_class.items()},
                int(frequent[j]),
                bool(share[j] > limit),
            )
            for j in np.argsort(-share, kind="stable")
        ],
    )


def _mask(packed: NDArray[np.uint8], n_features: int) -> NDArray[np.bool_]:
    return np.unpackbits(packed, axis=1, count=n_features).astype(bool)


def chance(shares: NDArray[np.float64], counts: NDArray[np.int64]) -> float:
    """The largest share of any feature when every run's features are shuffled, at 95 %."""
    rng = np.random.default_rng(0)
    weights = counts / counts.sum()
    largest = [float((weights @ rng.permuted(shares, axis=1)).max()) for _ in range(SHUFFLES)]
    return float(np.quantile(largest, LEVEL))
