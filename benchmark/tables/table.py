"""What a built table holds: results, gaps with their reasons, and summaries over datasets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmark import paper
from benchmark.paper import Printed
from benchmark.protocol.choices import Choice
from benchmark.tables import statistics as stats
from benchmark.tables.convergence import Failure
from benchmark.tables.recipes import Metric, Recipe
from benchmark.tables.verdict import Verdict

Pair = tuple[float, float | None]
"""A mean and its standard deviation."""


@dataclass(frozen=True)
class Gap:
    """Why a cell is not complete, and the command that mends it."""

    word: str
    """The verdict that it means."""
    reason: str
    command: str = ""
    """`tune`, `reproduce table2`, ...: what to run for this model and dataset; empty: nothing."""

    def remedy(self, cells: Iterable[tuple[str, str]]) -> list[str]:
        """The commands that mend these cells, pairs of a model and a dataset, and redo no other cell."""
        datasets_of: dict[str, list[str]] = {}
        for model, dataset in dict.fromkeys(cells):
            datasets_of.setdefault(model, []).append(dataset)
        every = list(dict.fromkeys(name for names in datasets_of.values() for name in names))
        if not self.command:
            return []
        if self.command == "data get":
            return [f"python -m benchmark data get {' '.join(every)}"]
        if not any(every):
            return [
                f"python -m benchmark {self.command}"
            ]  # a value over all datasets needs them all
        if self.command.startswith("reproduce"):  # which leaves alone what is there
            names = f"--models {','.join(datasets_of)} --datasets {','.join(every)}"
            return [f"python -m benchmark {self.command} {names} --budget all"]
        alike: dict[tuple[str, ...], list[str]] = {}
        for model, names_of in datasets_of.items():
            alike.setdefault(tuple(names_of), []).append(model)
        return [
            f"python -m benchmark {self.command} --models {','.join(models)} --datasets {','.join(names)}"
            for names, models in alike.items()
        ]


class Averaged:
    """What the runs of a cell come to."""

    values: tuple[float, ...]
    gap: Gap | None

    @property
    def complete(self) -> bool:
        return self.gap is None

    @property
    def mean(self) -> float | None:
        return stats.mean_std(self.values)[0] if self.values else None

    @property
    def std(self) -> float | None:
        """Between runs."""
        return stats.mean_std(self.values)[1] if self.values else None


@dataclass(frozen=True)
class Row:
    """One method of a table."""

    method: str
    label: str
    family: str


@dataclass(frozen=True)
class Result(Averaged):
    """One cell of a table in one edition."""

    method: str
    dataset: str
    metric: str
    edition: str
    values: tuple[float, ...]
    """One per run that succeeded, in the order of the splits."""
    planned: int
    verdict: Verdict
    printed: Printed | None = None
    gap: Gap | None = None
    note: str = ""
    """Something a reader must know of a complete cell, e.g. that its search was cut short."""
    setting: str = ""
    params: dict[str, Any] | None = None
    choice: Choice | None = None
    failures: dict[str, int] = field(default_factory=dict)
    message: str = ""
    """The first failed run's message."""
    within: tuple[float, ...] = ()
    """A spread within each run, where that is what the table prints as the standard deviation."""
    model: str = ""
    """The model behind the row, which a remedy has to name."""
    about: str = ""
    """The machine that a time was taken on."""
    experiment: str = ""
    """The runs behind it and what is read from them: the same for a number that the paper prints in
    several tables."""
    unconverged: Failure | None = None
    """Set where most runs learned nothing; the values are kept all the same."""
    reversed: bool = False
    """Of a two-sided p-value: whether the difference points away from what the paper says."""

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def shown_std(self) -> float | None:
        """The standard deviation that the table prints."""
        return stats.mean_std(self.within)[0] if self.within else self.std


def beside_printed(
    recipe: Recipe,
    method: str,
    dataset: str,
    metric: Metric,
    edition: str = "rule",
    *,
    values: tuple[float, ...] = (),
    gap: Gap | None = None,
    verdict: Verdict | None = None,
    **fields: Any,
) -> Result:
    """A result with the paper's cell beside it; a gap is its own verdict."""
    if verdict is None:
        verdict = Verdict(gap.word, gap.reason) if gap else Verdict("not in paper", "no such cell")
    return Result(
        method=method,
        dataset=dataset,
        metric=metric.name,
        edition=edition,
        values=values,
        planned=fields.pop("planned", max(len(values), 1)),
        verdict=verdict,
        printed=recipe.printed(method, dataset, metric.name),
        gap=gap,
        **fields,
    )


@dataclass(frozen=True)
class Summary:
    """One method over all ranked datasets: its mean rank, or its ADTM."""

    method: str
    edition: str
    name: str
    """mean_rank | adtm_percent | adtm_pooled_percent."""
    ours: Pair | None
    n: int
    """Datasets that count."""
    printed: Pair | None
    """What the paper prints, over all its methods and datasets."""
    verdict: Verdict
    """Against the paper's own cells, over the same methods and datasets."""
    same_cells: Pair | None = None
    """The paper's value computed from its cells, for exactly the methods and datasets of ours."""


@dataclass(frozen=True)
class Table:
    """A built table: everything that any of its renderings shows."""

    recipe: Recipe
    editions: tuple[str, ...]
    rows: tuple[Row, ...]
    results: dict[tuple[str, str, str, str], Result]
    """By method, dataset, metric and edition; only what exists in that edition."""
    summaries: dict[tuple[str, str, str], Summary]
    """By method, edition and name."""
    ranked: tuple[tuple[str, ...], tuple[str, ...]]
    """The methods and the datasets that ranks and ADTM are computed over."""
    problems: tuple[str, ...]
    """Files that should be records and are not."""

    @property
    def shown(self) -> list[Result]:
        """The results of the editions asked for, in the table's order."""
        return [
            result
            for row in self.rows
            for edition in self.editions
            for dataset, metric in self.recipe.columns
            if (result := self.results.get((row.method, dataset, metric.name, edition)))
        ]

    @property
    def complete(self) -> bool:
        """Whether everything that was asked for exists."""
        return bool(self.shown) and all(result.complete for result in self.shown)

    def has(self, models: Sequence[str] | None, datasets: Sequence[str] | None) -> bool:
        """Whether every cell of these models and datasets exists; None asks for all of them.

        What is computed from other cells counts only where nothing is left out.
        """
        if models is None and datasets is None:
            return self.complete
        computed = {metric.name for metric in self.recipe.metrics if metric.computed}
        asked = [
            result
            for result in self.shown
            if result.metric not in computed
            and (models is None or {result.method, result.model} & set(models))
            and (datasets is None or result.dataset in datasets)
        ]
        return bool(asked) and all(result.complete for result in asked)

    @property
    def fully_ranked(self) -> bool:
        """Whether ranks are over the paper's methods and datasets, as its printed ranks are."""
        methods, datasets = self.ranked
        cells = paper.cells(self.recipe.paper) if self.recipe.paper is not None else []
        printed = {c.method for c in cells}, {c.dataset for c in cells if c.dataset}
        return bool(cells) and (set(methods), set(datasets)) == printed

    def of_these_patients(self, result: Result) -> bool:
        """Whether a result is of the paper's own data: beside the paper another draw does not count."""
        return self.recipe.paper is None or result.verdict.word != "data unavailable"

    def in_edition(self, method: str, dataset: str, metric: str, edition: str) -> Result | None:
        """The edition's result; where `recovered` settings are not known, that by the paper's rule."""
        return self.results.get((method, dataset, metric, edition)) or self.results.get(
            (method, dataset, metric, "rule")
        )
