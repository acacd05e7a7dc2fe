"""Transferability: KNN and SVM on the features that a selector leaves them, beside Table 23.

Read from records. Those of a selector hold the simple models' scores on masked data for every value
of their grids; the paper's rule takes the value with the best mean validation score over the 25
runs; ties go to the first. Without selector the simple models are those of Table 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmark import paper
from benchmark.protocol import registry
from benchmark.protocol.plan import Cell, cells
from benchmark.runner.masked import SIMPLE
from benchmark.runner.records import Store
from benchmark.tables import statistics as stats
from benchmark.tables.measured import measure
from benchmark.tables.recipes import ACCURACY, Metric, Recipe, Record, follow
from benchmark.tables.table import Averaged, Gap, Pair, Result, Table
from benchmark.tables.verdict import Sample, Verdict, compare

NONE = "none"
SELECTORS = (NONE, "protogate-global", "protogate-local", "protogate")
"""In the order of Table 23."""

READINGS = ("pooled", "means")
"""What the worst and the best of a dataset are, to which ADTM maps 0 and 100.

`pooled`: single runs of any selector, the reading that the printed numbers allow.
`means`: the selectors' means, which is what the text says.
"""


UNMASKED = {
    "knn": (("knn", "recovered"), ("knn", "rule")),
    # The printed SVM has the polynomial kernel; where its settings are not known, they are tuned.
    "svm": (("svm", "recovered"), ("svm:kernel=poly", "rule")),
    "svm:kernel=rbf": (("svm", "rule"),),
}
"""Which runs are the simple model without selector, as method and edition; the first that exists."""


@dataclass(frozen=True)
class Transferred(Averaged):
    """A simple model on what a selector leaves of a dataset."""

    simple: str
    selector: str
    dataset: str
    values: tuple[float, ...] = ()
    """Test balanced accuracies (%) of the 25 runs, in the order of the splits."""
    point: Any = None
    """The chosen number of neighbours, or C."""
    note: str = ""
    gap: Gap | None = None
    model: str = ""
    """The model whose runs are behind it, which a remedy has to name."""

    @property
    def remedy(self) -> list[str]:
        """What mends the gap; empty if nothing does."""
        return self.gap.remedy([(self.model, self.dataset)]) if self.gap else []


@dataclass(frozen=True)
class Adtm:
    """A simple model with a selector over all datasets, each mapped to 0..100 first."""

    simple: str
    selector: str
    reading: str
    datasets: tuple[str, ...]
    """Those where all selectors are complete, and differ."""
    values: tuple[float, ...]
    """One per dataset."""
    printed: Pair | None
    verdict: Verdict

    @property
    def ours(self) -> Pair | None:
        """Mean and sample standard deviation over the datasets."""
        return stats.mean_std(self.values) if self.values else None


@dataclass(frozen=True)
class Transferability:
    """All simple models with all selectors on all datasets."""

    datasets: tuple[str, ...]
    cells: dict[tuple[str, str, str], Transferred]
    """By simple model, selector and dataset."""

    @property
    def gaps(self) -> list[Transferred]:
        return [cell for cell in self.cells.values() if not cell.complete]

    def comparable(self, simple: str) -> tuple[str, ...]:
        """The datasets where this simple model is complete with every selector."""
        return tuple(
            dataset
            for dataset in self.datasets
            if all(self.cells[simple, selector, dataset].complete for selector in SELECTORS)
        )

    def gain(self, simple: str, selector: str, dataset: str) -> tuple[float, ...] | None:
        """What the selector adds to the accuracy, run by run; None where runs are missing."""
        without, with_ = (self.cells[simple, name, dataset] for name in (NONE, selector))
        if not (without.complete and with_.complete):
            return None
        return tuple(b - a for a, b in zip(without.values, with_.values, strict=True))

    def adtm(self, reading: str) -> dict[tuple[str, str], Adtm]:
        """Average distance to the minimum (%), by simple model and selector."""
        registry.check_name("reading of ADTM", reading, READINGS)
        found = {}
        for simple in SIMPLE:
            datasets = self.comparable(simple)
            runs = [[self.cells[simple, s, d].values for d in datasets] for s in SELECTORS]
            if reading == "pooled":
                rows = stats.pooled_distances(runs)
            else:
                rows = stats.distances([[stats.mean_std(r)[0] for r in row] for row in runs])
            # Where all selectors are equal there is no best and no worst, for any of them.
            told = [i for i, value in enumerate(rows[0] if rows else ()) if value is not None]
            for number, selector in enumerate(SELECTORS):
                values = [rows[number][i] for i in told]
                found[simple, selector] = self._adtm(
                    simple,
                    selector,
                    reading,
                    tuple(datasets[i] for i in told),
                    tuple(100 * value for value in values if value is not None),
                )
        return found

    def _adtm(
        self,
        simple: str,
        selector: str,
        reading: str,
        datasets: tuple[str, ...],
        values: tuple[float, ...],
    ) -> Adtm:
        # Only one SVM is printed, and Table 2 shows which kernel it has.
        cell = paper.cell(23, f"{simple}|selector={selector}", "", "adtm_percent")
        printed = (cell.mean, cell.std) if cell and cell.mean is not None else None
        verdict = _verdict(datasets, values, printed)
        return Adtm(simple, selector, reading, datasets, values, printed, verdict)


def _verdict(
    datasets: Sequence[str], values: Sequence[float], printed: tuple[float, float | None] | None
) -> Verdict:
    if printed is None:
        return Verdict("not in paper", "no such cell")
    missing = [dataset for dataset in paper.DATASETS if dataset not in datasets]
    if not values:
        return Verdict("not run", "no dataset has all selectors")
    if missing:
        return Verdict(
            "incomplete",
            f"over {len(datasets)} of {len(paper.DATASETS)} datasets ({', '.join(datasets)})",
            stats.mean_std(values)[0] - printed[0],
        )
    ours = Sample(*stats.mean_std(values), len(values))
    return compare(ours, Sample(*printed, len(paper.DATASETS)), 2)


# From records ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Masked(Metric):
    """A simple model's score on masked data at one value of its grid."""

    part: str = ""
    parameter: str = ""
    point: Any = None

    def of(self, record: Record) -> float | None:
        found = follow(record, self.value) or {}
        # By value and not by place: a record may be older than the grid.
        points = found.get(self.parameter, [])
        if self.point not in points:
            return None
        return self.scale * float(found[self.part][points.index(self.point)])

    def applies_to(self, entry: registry.ModelEntry) -> bool:
        return entry.selects != "none"


def cells_read(dataset: str) -> list[Cell]:
    """The models whose runs are read on a dataset: the simple ones, then the selectors."""
    data = registry.data_ref(dataset)
    names = [
        method
        for places in UNMASKED.values()
        for i, (method, _) in enumerate(places)
        # A later place is looked at only where an earlier one has no known settings.
        if i == 0 or dataset not in registry.models()[places[0][0]].recovered
    ]
    return cells(list(dict.fromkeys([*names, *SELECTORS[1:]])), [data])


def build(store: Store, datasets: Sequence[str] = paper.DATASETS) -> Transferability:
    """The simple models with every selector, from the records that exist."""
    unmasked = {method for places in UNMASKED.values() for method, _ in places}
    masked = [m for simple in SIMPLE for part in ("valid", "test") for m in _metrics(simple, part)]
    recipe = Recipe(
        name="table23",
        title="",
        methods=(*sorted(unmasked), *SELECTORS[1:]),
        datasets=tuple(datasets),
        metrics=(ACCURACY, *masked),
    )
    table = measure(recipe, store)
    cells = {}
    for simple in SIMPLE:
        for dataset in datasets:
            cells[simple, NONE, dataset] = _unmasked(table, simple, dataset)
            for selector in SELECTORS[1:]:
                cells[simple, selector, dataset] = _masked(table, simple, selector, dataset)
    return Transferability(tuple(datasets), cells)


def _metrics(simple: str, part: str) -> list[_Masked]:
    """One metric per value of the simple model's grid, in grid order."""
    base, _, parameter = SIMPLE[simple]
    return [
        _Masked(
            name=f"{simple} {part} {point}",
            value=f"transfer.{simple}",
            heading="",
            scale=100,
            part=part,
            parameter=parameter,
            point=point,
        )
        for point in registry.models()[base].search.grid.get(parameter, [])
    ]


def _unmasked(table: Table, simple: str, dataset: str) -> Transferred:
    places = [(method, dataset, ACCURACY.name, edition) for method, edition in UNMASKED[simple]]
    found = [table.results[place] for place in places if place in table.results]
    result = next((result for result in found if result.complete), found[-1])
    made = Transferred(simple, NONE, dataset, model=result.model, note=result.note)
    if result.gap:
        return replace(made, gap=result.gap)
    return replace(made, values=result.values, point=(result.params or {}).get(SIMPLE[simple][2]))


def _masked(table: Table, simple: str, selector: str, dataset: str) -> Transferred:
    def result(metric: Metric) -> Result:
        return table.results[selector, dataset, metric.name, "rule"]

    itself = result(ACCURACY)
    made = Transferred(simple, selector, dataset, model=itself.model, note=itself.note)
    if itself.gap:
        return replace(made, gap=itself.gap)
    valid, test = ([(m, result(m)) for m in _metrics(simple, part)] for part in ("valid", "test"))
    if not valid:  # somebody's own model of that name, without the paper's grid
        return replace(made, gap=Gap("not run", f"{simple} has no grid to choose from"))
    missing = itself.n - min(r.n for _, r in valid + test)
    if missing:
        reason = f"{missing} of {itself.n} records hold no scores on masked data"
        return replace(made, gap=Gap("incomplete", reason, "run --force"))
    # Means of equal scores can differ in the last bit, and would then not tie; max keeps the first.
    best = max(range(len(valid)), key=lambda i: round(valid[i][1].mean or 0.0, 9))
    metric, chosen = test[best]
    return replace(made, values=chosen.values, point=metric.point)
