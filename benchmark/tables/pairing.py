"""How much two trainings on the same splits have in common, measured from repeated seeds.

The paper's runs and ours share their splits. How much of a run's score belongs to the split shows where
one setting was run again with other seeds: the correlation rho, over the 25 splits, between the scores
of two seeds. It enters the verdicts (tables/verdict.py); rho = 0 is the conservative reading.

Networks have less in common than forests: their seed moves more. So a method that was not repeated itself
takes the mean of its own kind, and a kind that was not repeated on a dataset takes 0 there.

All 25 runs of a training have one seed, in the paper and here. If it only added noise to every run, the
means of several seeds would vary by s^2 (1 - rho) / 25. They vary by more: a seed that is good on one
split is a little better on the others, too. What is above that enters the verdicts as well.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev, variance

from benchmark import paper
from benchmark.paper import Printed
from benchmark.protocol import registry
from benchmark.protocol.plan import Cell, keys_of
from benchmark.protocol.registry import ModelEntry
from benchmark.protocol.spec import SEED, DataRef, UserError
from benchmark.runner.records import Store
from benchmark.tables.recipes import ACCURACY, Metric, Recipe
from benchmark.tables.verdict import Shared

KINDS = {"networks": ("mlp", "protogate"), "others": ("rf", "lightgbm")}
"""Run again with other seeds: their runs are cheap, or they are what the paper is about."""
SEEDS = range(SEED, SEED + 5)
FEWEST = 2
"""Repeated cells that tell what a seed adds."""
OTHERS = "paper's settings and ours"
"""What is compared where both are known and differ; the other rows are of seeds of one setting."""

Trainings = list[list[float]]
"""One list of scores, in the order of the splits, per seed."""


@dataclass(frozen=True)
class Rho:
    """A measured correlation, with its 95 % interval."""

    value: float
    low: float
    high: float
    trainings: dict[str, int]
    """Model -> seeds that have all their runs."""

    @property
    def used(self) -> float:
        """What enters a variance: never negative, which would widen intervals beyond rho = 0."""
        return max(0.0, self.value)


def kind_of(entry: ModelEntry) -> str:
    """Networks are what is trained in steps or epochs."""
    return "networks" if {"steps", "epochs"} & entry.params.keys() else "others"


def used(store: Store, cell: Cell, metric: Metric, printed: Printed | None = None) -> Shared:
    """What the verdict on a cell rests on: nothing is shared where nothing was measured. Beside a printed
    cell whose settings are known, it is what the runs of both settings really share."""
    kind, name = kind_of(cell.entry), cell.entry.name
    added = 0.0 if cell.entry.deterministic else seed(store, kind, metric)
    if printed and (both := _both(store, Cell(cell.entry, cell.data), metric, printed)):
        return Shared(max(0.0, correlation(*both) or 0.0), added)
    alone = (name,) if name in KINDS[kind] else ()
    found = next(
        (r for names in (alone, KINDS[kind]) if (r := _rho(store, names, cell.data, metric))), None
    )
    return Shared(found.used if found else 0.0, added)


def seed(store: Store, kind: str, metric: Metric) -> float:
    """What a common seed adds to the variance of a mean, in units of s^2 / 25: the mean over all models of
    the kind and datasets that were repeated. A few seeds of one cell would tell little, so a number of
    which only one was repeated takes what accuracies have."""

    def find() -> float:
        found = [
            added
            for name in KINDS[kind]
            for dataset in paper.DATASETS
            if (added := _added(_trainings(store, name, registry.data_ref(dataset), metric)))
            is not None
        ]
        if len(found) < FEWEST and metric != ACCURACY:
            return seed(store, kind, ACCURACY)
        return max(0.0, fmean(found)) if len(found) >= FEWEST else 0.0

    return store.once(("seed", kind, metric), find)


def _added(trainings: Trainings) -> float | None:
    """Of one model on one dataset; below 0 where seeds happen to agree better than they should."""
    within = [variance(scores) for scores in trainings]
    if len(trainings) < 2 or not all(within):
        return None
    pairs = itertools.combinations(trainings, 2)
    rho = fmean(correlation(x, y) or 0.0 for x, y in pairs)
    between = variance([fmean(scores) for scores in trainings])
    return len(trainings[0]) * between / fmean(within) - (1 - rho)


def _rho(store: Store, names: Sequence[str], data: DataRef, metric: Metric) -> Rho | None:
    """The correlation of these models on a dataset, for one metric; None without repeated seeds."""

    def find() -> Rho | None:
        groups = {
            name: trainings
            for name in names
            if len(trainings := _trainings(store, name, data, metric)) > 1
        }
        return _measure(groups)

    return store.once(("rho", *names, data.label, metric), find)


def measured(store: Store, recipe: Recipe) -> list[tuple[str, str, Rho]]:
    """The correlations of a table's first metric: dataset, kind of method, correlation. Last on each
    dataset, what the paper's runs share with ours where its settings are known and others."""
    [metric, *_] = recipe.metrics
    return [
        (dataset, kind, found)
        for dataset in recipe.datasets
        for kind, names in (*KINDS.items(), (OTHERS, ()))
        if (
            found := _rho(store, names, registry.data_ref(dataset), metric)
            if names
            else _measure(_known(store, recipe, dataset, metric))
        )
    ]


def _known(store: Store, recipe: Recipe, dataset: str, metric: Metric) -> dict[str, Trainings]:
    """What both sides give, of the methods whose settings in the paper are known and others than ours."""
    found = {}
    for name in recipe.methods:
        printed = recipe.printed(name, dataset, metric.name)
        if name in registry.models() and printed:
            base = Cell(registry.models()[name], registry.data_ref(dataset))
            if both := _both(store, base, metric, printed):
                found[name] = both
    return found


def _both(store: Store, base: Cell, metric: Metric, printed: Printed) -> Trainings:
    """The runs of the setting that the rule chooses, and of another one that gives every printed digit, so
    that it is the paper's; empty where none is known."""
    if printed.mean is None:
        return []
    runs = [_scores(store, base, edition, metric) for edition in ("own", "recovered")]
    if not all(runs) or runs[0] == runs[1]:
        return []
    given = (fmean(runs[1]), stdev(runs[1]))
    pairs = zip(given, (printed.mean, printed.std or 0.0), strict=True)
    same = all(paper.equal_as_printed(ours, theirs, metric.decimals) for ours, theirs in pairs)
    return runs if same else []


def _trainings(store: Store, name: str, data: DataRef, metric: Metric) -> Trainings:
    """The scores of a model's chosen setting, seed by seed, where all 25 runs have one."""
    if name not in registry.models():
        return []  # somebody's own registry
    base = Cell(registry.models()[name], data)
    found = (_scores(store, base, "own", metric, seed) for seed in SEEDS)
    return [scores for scores in found if scores]


def _scores(store: Store, base: Cell, source: str, metric: Metric, seed: int = SEED) -> list[float]:
    """Of one setting and one seed, split by split; empty unless all 25 runs have a score."""
    try:
        setting = store.setting(base, source)
    except (UserError, OSError):
        return []  # a choice that cannot be read is named where its own cell is built
    if setting is None:
        return []
    params = setting.params if seed == SEED else {**setting.params, "random_state": seed}
    keys = keys_of(base, params)[1]
    records, _ = store.find(keys)
    good = [records[key] for key in keys if key in records and records[key]["status"] == "ok"]
    known = [score for record in good if (score := metric.of(record)) is not None]
    return known if len(known) == len(keys) else []


def correlation(x: Sequence[float], y: Sequence[float]) -> float | None:
    """Pearson's correlation; None where one side does not vary."""
    mx, my = fmean(x), fmean(y)
    xx = math.fsum((a - mx) ** 2 for a in x)
    yy = math.fsum((b - my) ** 2 for b in y)
    if not xx or not yy:
        return None
    return math.fsum((a - mx) * (b - my) for a, b in zip(x, y, strict=True)) / math.sqrt(xx * yy)


def _measure(groups: dict[str, Trainings]) -> Rho | None:
    """Every model counts once, however many pairs its seeds make: the mean of its pairs. The interval
    comes from leaving out one split at a time (the jackknife), because the splits are what was drawn.
    """

    def over_models(splits: Sequence[int]) -> float | None:
        means = []
        for trainings in groups.values():
            columns = [[scores[i] for i in splits] for scores in trainings]
            pairs = [correlation(x, y) for x, y in itertools.combinations(columns, 2)]
            if known := [r for r in pairs if r is not None]:
                means.append(fmean(known))
        return fmean(means) if means else None

    every = list(range(min((len(t[0]) for t in groups.values()), default=0)))
    value = over_models(every)
    if value is None:
        return None
    without = [over_models(every[:i] + every[i + 1 :]) for i in every]
    known = [r for r in without if r is not None]
    centre, n = fmean(known), len(known)
    error = math.sqrt((n - 1) / n * math.fsum((r - centre) ** 2 for r in known))
    low, high = max(-1.0, value - 1.96 * error), min(1.0, value + 1.96 * error)
    return Rho(value, low, high, {name: len(t) for name, t in groups.items()})
