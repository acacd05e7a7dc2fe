"""What a table asks for: methods, datasets, metrics and the rule for ranks, read from tables.toml."""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

from benchmark import paper
from benchmark.paper import Printed
from benchmark.protocol import registry
from benchmark.protocol.plan import Cell
from benchmark.protocol.spec import VALID_SIZE, DataRef, UserError, parse_name

Record = dict[str, Any]

GROUPS = {"real": list(paper.DATASETS)}
"""Datasets that many tables share, by the name that tables.toml gives them."""


@cache
def catalogue() -> dict[str, dict[str, Any]]:
    """The recipes of all tables, by name, as they are written down."""
    text = files("benchmark.tables").joinpath("tables.toml").read_text("utf-8")
    return {
        name: {**entry, "datasets": GROUPS[entry["datasets"]]}
        if isinstance(entry["datasets"], str)
        else entry
        for name, entry in tomllib.loads(text).items()
    }


DIGITS = 3
"""Significant digits that a time or a size of ours has at least: hardware has become faster than
the paper's decimals."""


@dataclass(frozen=True)
class Metric:
    """A number that records hold, and how a table shows it."""

    name: str
    value: str
    """Path into the record: `scores.test.balanced_accuracy`."""
    heading: str
    scale: float = 1.0
    offset: float = 0.0
    decimals: int = 2
    spread: str = ""
    """Path of a spread within each run, whose mean is printed as the standard deviation; else between runs."""
    computed: str = ""
    """The rule that makes it from other cells; then it has no path."""
    overall: bool = False
    """One value over all datasets."""
    paper: int | None = None
    """The paper's table that prints it."""

    def of(self, record: Record) -> float | None:
        """The record's value; None where it is undefined."""
        found = follow(record, self.value)
        return None if found is None else self.offset + self.scale * float(found)

    @property
    def timed(self) -> bool:
        return self.value.startswith("timing.")

    def our_decimals(self, value: float | None) -> int:
        """How many decimals a value of ours is shown with: the paper's, or more if they hide it."""
        if not self.timed or not value:
            return self.decimals
        return max(self.decimals, DIGITS - 1 - math.floor(math.log10(abs(value))))

    def applies_to(self, entry: registry.ModelEntry) -> bool:
        return entry.selects != "none" or not self.value.startswith("selection.")


def follow(record: Any, path: str) -> Any:
    """What a record holds at `a.b.c`; the last name may have dots itself, such as 0.001."""
    while path and isinstance(record, dict):
        if path in record:
            return record[path]
        step, _, path = path.partition(".")
        record = record.get(step)
    return None if path else record


@dataclass(frozen=True)
class Source:
    """Where the numbers of a row come from."""

    model: str
    label: str = ""
    value: str = ""
    """Path to read instead of the metric's."""
    scale: float = 1.0
    offset: float = 0.0
    settings: str = "own"
    """`own`: chosen for this model with its switches; `base`: chosen for the model without them;
    `auto`: chosen where shipped, and of one's own cells the default where nothing was chosen."""
    average: tuple[str, ...] = ()
    """Other rows that this one is the mean of."""
    given: str = ""
    """A file in benchmark/paper that holds its runs: somebody else's code, run on our splits."""
    whose: str = "ours"
    """Who made the runs of a row that the paper does not print."""

    def metric(self, metric: Metric) -> Metric:
        """The metric as this row reads it."""
        if not self.value:
            return metric
        return replace(metric, value=self.value, scale=self.scale, offset=self.offset)


ACCURACY = Metric("balanced_accuracy", "scores.test.balanced_accuracy", "accuracy", scale=100)
FEATURES = Metric("selected_features", "selection.mean", "features", decimals=1)


@dataclass(frozen=True)
class Need:
    """A cell that a table is made from, and how its settings are chosen."""

    cell: Cell
    settings: str = "own"
    params: dict[str, Any] | None = None
    """Where a table asks for particular settings, these on top of the chosen ones."""


@dataclass(frozen=True)
class Rule:
    """How ranks are computed, and from which metric."""

    metric: str
    ties: str = "min"
    missing: str = "mean"
    ddof: int = 1


@dataclass(frozen=True)
class Recipe:
    """What a table consists of: an entry of tables.toml."""

    name: str
    title: str
    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    metrics: tuple[Metric, ...]
    paper: int | None = None
    rank: Rule | None = None
    rows: Mapping[str, Source] = field(default_factory=dict)
    """Rows that are not simply the model of that name."""
    own: Mapping[str, DataRef] = field(default_factory=dict)
    """Columns that are tables of somebody's own."""

    @property
    def columns(self) -> list[tuple[str, Metric]]:
        """Datasets from left to right with their metrics side by side, then values over all."""
        each = [m for m in self.metrics if not m.overall]
        over = [("", metric) for metric in self.metrics if metric.overall]
        return [(dataset, metric) for dataset in self.datasets for metric in each] + over

    @property
    def command(self) -> str:
        """What does its missing runs."""
        return "run" if self.name == "rank" else f"reproduce {self.name}"

    @property
    def tuning(self) -> str:
        """What chooses the settings that it is missing."""
        return "tune" if self.name == "rank" else self.command

    def source(self, method: str) -> Source:
        return self.rows.get(method) or Source(method)

    def cell(self, method: str, dataset: str) -> Cell | None:
        """The model and data behind a row; None for averages and models that do not exist."""
        source = self.source(method)
        # Checked by the tests and not here: a check would import the model's library.
        name, overrides = parse_name(source.model)
        entry = None if source.average or source.given else registry.find_model(name)
        return None if entry is None else Cell(entry, self.data(dataset), overrides)

    def data(self, dataset: str) -> DataRef:
        return self.own[dataset] if dataset in self.own else registry.data_ref(dataset)

    def valid_size(self, dataset: str) -> float:
        """The share of the rows outside the test part that validate."""
        return float(self.data(dataset).options.get("valid_size", VALID_SIZE))

    def fixed_test(self, dataset: str) -> bool:
        """Whether all runs on it are tested on the same rows: their spread is that of training."""
        return dataset in self.own and self.own[dataset].fixed_test

    def rows_on(self, dataset: str) -> list[Need]:
        """The cells of the table's own rows on a dataset; averages have no runs of their own."""
        cells = ((self.cell(method, dataset), self.source(method)) for method in self.methods)
        return [Need(cell, source.settings) for cell, source in cells if cell is not None]

    def printed(self, method: str, dataset: str, metric: str) -> Printed | None:
        """The paper's cell; `dataset` is empty for values over all datasets."""
        number = next((m.paper for m in self.metrics if m.name == metric), self.paper)
        return None if number is None else paper.cell(number, method, dataset, metric)


def read_recipe(name: str) -> Recipe:
    """The recipe called `table2`, or just `2`."""
    name = f"table{name}" if name.isdigit() else name
    registry.check_name("table", name, catalogue())
    return parse_recipe(name, catalogue()[name])


def parse_recipe(name: str, entry: Mapping[str, Any]) -> Recipe:
    """An entry of tables.toml as a recipe."""
    number = entry.get("paper")
    tables = {name: fields.get("paper", number) for name, fields in entry["metrics"].items()}
    metrics = [
        Metric(
            name=metric,
            value=fields.get("value", ""),
            heading=fields.get("heading", metric),
            scale=fields.get("scale", 1.0),
            decimals=2 if tables[metric] is None else paper.decimals(tables[metric], metric),
            spread=fields.get("spread", ""),
            computed=fields.get("computed", ""),
            overall=fields.get("overall", False),
            paper=tables[metric],
        )
        for metric, fields in entry["metrics"].items()
    ]
    plain = Counter(label.partition(":")[0] for label in entry["datasets"])
    mixed = sorted(dataset for dataset, times in plain.items() if times > 1)
    if mixed:
        raise UserError(
            f"Table {name!r} has several variants of {', '.join(mixed)} in one ranking. They are "
            f"different data: give each variant a table of its own in tables.toml."
        )
    return Recipe(
        name=name,
        title=entry["title"],
        methods=tuple(entry["methods"]),
        datasets=tuple(entry["datasets"]),
        metrics=tuple(metrics),
        paper=number,
        rank=Rule(**entry["rank"]) if "rank" in entry else None,
        rows={
            method: Source(
                **{"model": method, **fields, "average": tuple(fields.get("average", ()))}
            )
            for method, fields in entry.get("rows", {}).items()
        },
    )
