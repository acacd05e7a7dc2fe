"""The paper's tables that describe instead of measure: datasets (5, 6) and what is searched (8, 9).

Ours come from the registries: the datasets as every loader checks them, the searches as `tune` does them.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from benchmark import paper
from benchmark.protocol import registry
from benchmark.protocol.registry import ModelEntry
from benchmark.protocol.spec import DataRef, UserError
from benchmark.text import columns, csv_text, grid

TITLES = {
    5: "Table 5. Seven real HDLSS datasets",
    6: "Table 6. Four datasets that are not HDLSS",
    8: "Table 8. What is searched for ProtoGate",
    9: "Table 9. What is searched for the other networks that select features",
}
SYNTHETIC = ("syn1", "syn2", "syn3")
WITHOUT_NUMBERS = {
    1: "compares the designs of methods",
    4: "compares the designs of methods at length",
}
"""Tables that hold words only."""
NOTES = {
    6: "The paper counts the class label as a feature.",
    8: "K is not searched here: it is that of Table 19's bold cells, which are those of Table 2. On "
    "synthetic data the paper's two columns of strengths are swapped; the released script has them as here.",
    9: "REAL-X's prediction does not depend on the strength, so one value is enough.",
}


@dataclass(frozen=True)
class Fact:
    """One printed description beside ours."""

    place: str
    """The dataset, or the model and the kind of data."""
    what: str
    paper: str
    ours: str
    """Empty if it was never seen."""

    @property
    def same(self) -> bool | None:
        return self.paper == self.ours if self.ours else None

    @property
    def sign(self) -> str:
        return {True: "=", False: "≠", None: ""}[self.same]


def facts(number: int) -> list[Fact]:
    """What the table prints, each beside ours."""
    if number in WITHOUT_NUMBERS:
        raise UserError(
            f"Table {number} {WITHOUT_NUMBERS[number]}; it holds no numbers to reproduce."
        )
    return _datasets(number) if number in (5, 6) else _searches(number)


def _rows(name: str, number: int) -> list[dict[str, str]]:
    return [row for row in paper.lines(name) if row["table"] == str(number)]


# Datasets ----------------------------------------------------------------------------------------


def _datasets(number: int) -> list[Fact]:
    found = []
    for row in _rows("datasets.csv", number):
        name, entry = row["dataset"], registry.datasets()[row["dataset"]]
        printed = row["samples"], row["features"], row["class_sizes"].replace(" ", ", ")
        sizes = _sizes(sorted(entry.classes.values(), reverse=True))
        # Of data that were never at hand, the registry has what the paper says.
        ours = (*map(str, entry.shape), sizes) if entry.content else ("", "", "")
        names = ("samples", "features", "samples per class")
        found += [Fact(name, *fact) for fact in zip(names, printed, ours, strict=True)]
    return found


def _sizes(sizes: Sequence[int]) -> str:
    """`40, 22`; equal ones of many classes together: `99x16, 15`."""
    if len(sizes) <= 4:
        return ", ".join(map(str, sizes))
    groups = ((size, len(list(same))) for size, same in groupby(sizes))
    return ", ".join(f"{n}x{size}" if n > 1 else str(size) for size, n in groups)


# Searches ----------------------------------------------------------------------------------------


def _searches(number: int) -> list[Fact]:
    found = []
    for row in _rows("searches.csv", number):
        entry = registry.models()[row["model"]]
        names = SYNTHETIC if row["datasets"] == "synthetic" else paper.DATASETS
        data = [registry.data_ref(name) for name in names]
        place = f"{entry.label}, {row['datasets']} data"
        found.append(
            Fact(place, row["parameter"], row["print"], _values(entry, data, row["parameter"]))
        )
    return found


def _values(entry: ModelEntry, data: Sequence[DataRef], parameter: str) -> str:
    """The values that are tried on any of these datasets, written as the paper writes them."""
    search = entry.search_for(data[0])
    if parameter in search.ranges:
        limits = search.ranges[parameter]
        return f"[{_short(limits.low)}, {_short(limits.high)}]"
    values: set[float] = set()
    for ref in data:
        fixed = entry.params_for(ref).get(parameter)
        values |= set(entry.search_for(ref).grid.get(parameter, [] if fixed is None else [fixed]))
    return "{" + ", ".join(_short(value) for value in sorted(values)) + "}"


def _short(value: float) -> str:
    """1e-4, 7.5e-2, 0, 35: as printed."""
    if value == 0 or abs(value) >= 1:
        return f"{value:g}"
    digits, exponent = f"{value:e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"


def searched(entry: ModelEntry, data: DataRef) -> int:
    """How many hyperparameters have more than one value to choose from."""
    search = entry.search_for(data)
    return len(search.ranges) + sum(len(values) > 1 for values in search.grid.values())


# As text -----------------------------------------------------------------------------------------


def to_text(number: int, found: Sequence[Fact]) -> str:
    """For a terminal: the facts of a place below its name."""
    rows = [["", "paper", "ours", ""]]
    for place, facts in groupby(found, key=lambda fact: fact.place):
        rows.append([place, "", "", ""])
        rows += [[f"  {f.what}", f.paper, f.ours, f.sign] for f in facts]
    return "\n\n".join([TITLES[number], columns(rows), textwrap.fill(summary(number, found), 100)])


def summary(number: int, found: Sequence[Fact]) -> str:
    known = [fact.same for fact in found if fact.same is not None]
    unseen = list(dict.fromkeys(fact.place for fact in found if fact.same is None))
    missing = f" Never at hand: {', '.join(unseen)}." if unseen else ""
    return f"{sum(known)} of {len(known)} are the same.{missing} {NOTES.get(number, '')}".strip()


def to_markdown(number: int, found: Sequence[Fact]) -> str:
    rows = [[f.place, f.what, f.paper, f.ours, f.sign] for f in found]
    table = grid([["", "", "paper", "ours", ""], *rows])
    return "\n\n".join([f"## {TITLES[number]}", table, summary(number, found)])


def to_csv(number: int, found: Sequence[Fact]) -> str:
    rows = [
        [number, f.place, f.what, f.paper, f.ours, "" if f.same is None else str(f.same).lower()]
        for f in found
    ]
    return csv_text(["table", "place", "what", "paper", "ours", "same"], rows)


def to_json(number: int, found: Sequence[Fact]) -> str:
    rows = [{**asdict(f), "same": f.same} for f in found]
    return json.dumps({"table": number, "title": TITLES[number], "facts": rows}, indent=1)


FORMATS: dict[str, Callable[[int, Sequence[Fact]], str]] = {
    "text": to_text,
    "md": to_markdown,
    "csv": to_csv,
    "json": to_json,
}
