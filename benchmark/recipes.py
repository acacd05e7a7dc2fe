"""What a table asks for: methods, datasets, metrics and the rule for ranks, read from tables.toml."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmark import paper, registry
from benchmark.paper import Printed
from benchmark.spec import UserError

Record = dict[str, Any]


@dataclass(frozen=True)
class Metric:
    """A number that records hold, and how a table shows it."""

    name: str
    value: str
    """Path into the record: `scores.test.balanced_accuracy`."""
    heading: str
    scale: float = 1.0
    decimals: int = 2

    def of(self, record: Record) -> float | None:
        """The record's value; None where it is undefined."""
        found: Any = record
        for step in self.value.split("."):
            found = found.get(step) if isinstance(found, dict) else None
        return None if found is None else self.scale * float(found)

    def applies_to(self, entry: registry.ModelEntry) -> bool:
        return entry.selects != "none" or not self.value.startswith("selection.")


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

    def printed(self, method: str, dataset: str, metric: str) -> Printed | None:
        """The paper's cell; `dataset` is empty for values over all datasets."""
        return None if self.paper is None else paper.cell(self.paper, method, dataset, metric)

    def only(self, methods: Sequence[str] | None, datasets: Sequence[str] | None) -> Recipe:
        """The same table with these rows and columns; models of one's own may be among the rows."""
        for name in methods or ():
            if name not in self.methods:
                registry.model_ref(name)
        for name in datasets or ():
            registry.check_name(f"dataset of {self.name}", name, self.datasets)
        return replace(
            self,
            methods=tuple(dict.fromkeys(methods)) if methods else self.methods,
            datasets=tuple(d for d in self.datasets if not datasets or d in datasets),
        )


def read_recipe(name: str) -> Recipe:
    """The recipe called `table2`, or just `2`."""
    name = f"table{name}" if name.isdigit() else name
    registry.check_name("table", name, registry.tables())
    return parse_recipe(name, registry.tables()[name])


def parse_recipe(name: str, entry: Mapping[str, Any]) -> Recipe:
    """An entry of tables.toml as a recipe."""
    number = entry.get("paper")
    metrics = [
        Metric(
            name=metric,
            value=fields["value"],
            heading=fields.get("heading", metric),
            scale=fields.get("scale", 1.0),
            decimals=paper.decimals(number, metric) if number else 2,
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
    )
