"""What the audit of the paper reads and returns: the printed cells as one sheet, and findings.

A check is a function from a sheet to findings. It never looks anywhere else for a printed number,
so that it can be tried on a sheet with a known error in it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache

from benchmark import paper
from benchmark.paper import Printed
from benchmark.text import csv_text, grid, mean_std

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot tell"
VERDICTS = (HOLDS, FAILS, OPEN)

ACCURACY, FEATURES = "balanced_accuracy", "selected_features"
"""The two metrics that most tables print."""

PLACES = ("first", "second", "third")
TEXT = 0
"""Stands for the paper's prose where a finding has no table."""

Key = tuple[int, str, str, str]
"""Table, method, dataset and metric of a printed cell."""


@dataclass(frozen=True)
class Finding:
    """One claim of the paper, and what comes of checking it."""

    id: str
    table: int
    where: str
    claim: str
    found: str
    verdict: str
    why: str = ""
    cells: tuple[Key, ...] = ()
    """Printed cells that cannot be right as they stand, because of this finding."""


@dataclass(frozen=True)
class Sheet:
    """All printed cells and the places that colours and bold type give them."""

    cells: dict[Key, Printed]
    marks: dict[Key, str]

    def cell(self, table: int, method: str, dataset: str, metric: str) -> Printed:
        return self.cells[table, method, dataset, metric]

    def mean(self, table: int, method: str, dataset: str, metric: str) -> float:
        """The printed mean, where there is one for certain."""
        mean = self.cell(table, method, dataset, metric).mean
        assert mean is not None
        return mean

    def of(self, table: int, metric: str) -> list[Printed]:
        """A table's cells of one metric, in the paper's order."""
        return [c for c in self.cells.values() if (c.table, c.metric) == (table, metric)]

    def methods(self, table: int, metric: str) -> list[str]:
        return list(dict.fromkeys(c.method for c in self.of(table, metric)))

    def datasets(self, table: int, metric: str) -> list[str]:
        return list(dict.fromkeys(c.dataset for c in self.of(table, metric)))


@dataclass(frozen=True)
class DataRow:
    """One line of the paper's Tables 5 and 6."""

    table: int
    dataset: str
    samples: int
    features: int
    class_sizes: list[int] = field(default_factory=list)


def claim_check(
    id: str, table: int, where: str, claim: str, found: str, right: bool, why: str = ""
) -> Finding:
    """A claim that holds or does not; the reason is kept only where it is needed."""
    return Finding(id, table, where, claim, found, HOLDS if right else FAILS, "" if right else why)


def key(cell: Printed) -> Key:
    return cell.table, cell.method, cell.dataset, cell.metric


def sheet(cells: Iterable[Printed] | None = None) -> Sheet:
    """The paper as printed, or the same with other cells."""
    if cells is None:
        cells = [cell for table in paper.tables() for cell in paper.cells(table)]
    return Sheet({key(cell): cell for cell in cells}, _marks())


@cache
def _marks() -> dict[Key, str]:
    return {
        (int(row["table"]), row["method"], row["dataset"], row["metric"]): row["place"]
        for row in paper.lines("marks.csv")
    }


def data_rows() -> list[DataRow]:
    """Tables 5 and 6; `9x120` there means nine classes of 120 samples."""
    rows = []
    for row in paper.lines("datasets.csv"):
        sizes: list[int] = []
        for part in row["class_sizes"].split():
            times, _, size = part.rpartition("x")
            sizes += [int(size)] * int(times or 1)
        numbers = int(row["samples"]), int(row["features"])
        rows.append(DataRow(int(row["table"]), row["dataset"], *numbers, sizes))
    return rows


def printed(cell: Printed) -> str:
    """`93.44 ± 6.37` as the paper prints it; a dash for nothing."""
    return mean_std(cell.mean, cell.std, paper.decimals(cell.table, cell.metric), nothing="–")


# As text -----------------------------------------------------------------------------------------


def table_name(table: int) -> str:
    return f"Table {table}" if table else "Text"


def totals(findings: Sequence[Finding]) -> dict[int, Counter[str]]:
    """Verdicts per table, the prose last."""
    tables = sorted({f.table for f in findings}, key=lambda table: (table == TEXT, table))
    return {t: Counter(f.verdict for f in findings if f.table == t) for t in tables}


def to_markdown(findings: Sequence[Finding]) -> str:
    """Totals first, then everything that does not hold, then what cannot be decided."""
    overall = Counter(f.verdict for f in findings)
    lines = [["", "checks", *VERDICTS]]
    for table, words in totals(findings).items():
        counts = [words.total(), *(words[v] for v in VERDICTS)]
        lines.append([table_name(table), *map(str, counts)])
    lines.append(["all", str(overall.total()), *(str(overall[v]) for v in VERDICTS)])
    sentence = (
        f"{overall[HOLDS]} of {overall.total()} checks hold, {overall[FAILS]} do not, "
        f"{overall[OPEN]} cannot be decided from what is published."
    )
    parts = ["# The paper's numbers, checked against each other", sentence, grid(lines)]
    for verdict in (FAILS, OPEN):
        chosen = [f for f in findings if f.verdict == verdict]
        if chosen:
            items = "\n".join(map(_item, _merged(chosen)))
            parts += [f"## {verdict.capitalize()}", items]
    return "\n\n".join(parts)


def _merged(findings: Sequence[Finding]) -> list[list[Finding]]:
    """What fails in several places for the same stated reason is one thing to read."""
    groups: dict[tuple[int, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.table, finding.why or finding.id), []).append(finding)
    return list(groups.values())


def _item(group: Sequence[Finding]) -> str:
    first = group[0]
    why = f" {first.why}" if first.why else ""
    if len(group) == 1:
        return f"- **{first.where}** (`{first.id}`): claimed: {first.claim}; found: {first.found}.{why}"
    same = len({(f.claim, f.found) for f in group}) == 1
    wheres = "; ".join(f.where for f in group)
    if same:
        ids = ", ".join(f"`{f.id}`" for f in group)
        return f"- **{wheres}** ({ids}): claimed: {first.claim}; found: {first.found}.{why}"
    places = [f"  - {f.where} (`{f.id}`): claimed: {f.claim}; found: {f.found}." for f in group]
    return "\n".join([f"- **{len(group)} times**:{why}", *places])


def cell_name(place: Key) -> str:
    """`table 2 l2x mean_rank`: a printed cell in one line."""
    table, *rest = place
    return " ".join([f"table {table}", *filter(None, rest)])


def to_csv(findings: Sequence[Finding]) -> str:
    rows = [
        [f.id, f.table or "", f.where, f.claim, f.found, f.verdict, f.why]
        + ["; ".join(map(cell_name, f.cells))]
        for f in findings
    ]
    return csv_text(["id", "table", "where", "claim", "found", "verdict", "why", "cells"], rows)


def to_json(findings: Sequence[Finding]) -> str:
    value = {
        "totals": {table_name(t): dict(words) for t, words in totals(findings).items()},
        "findings": [asdict(f) for f in findings],
    }
    return json.dumps(value, indent=1, ensure_ascii=False)


FORMATS = {"md": to_markdown, "csv": to_csv, "json": to_json}
