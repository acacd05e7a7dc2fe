"""Every published cell beside ours: the difference, a verdict and the reason for it.

The numbers come from the records that the cells plan, read once. What the audit found wrong with a
printed cell is part of its verdict: nobody can reproduce a number that contradicts another one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmark import paper
from benchmark.judge.audit import audit, doubtful
from benchmark.judge.audit.findings import Finding, key
from benchmark.paper import Printed
from benchmark.protocol.choices import EDITIONS
from benchmark.protocol.spec import UserError
from benchmark.run.records import Store
from benchmark.tables.build import build_from
from benchmark.tables.convergence import Failure
from benchmark.tables.statistics import Verdict
from benchmark.tables.table import Result, Table
from benchmark.text import mean_std

INCONSISTENT = "paper inconsistent"
WORDS = ("exact", "within noise", "differs", INCONSISTENT, "not run", "data unavailable")
NOT_RUN = {
    "hyperparameters": "a count of what the authors chose to tune; there is nothing to run",
}
"""Metrics that no run can have, with the reason."""


@dataclass(frozen=True)
class Ours:
    """Our value for a published cell in one edition."""

    verdict: Verdict
    mean: float | None = None
    std: float | None = None
    n: int = 0
    """Runs, or datasets for a mean over datasets."""
    decimals: int = 2
    """How many of them tell the value: the paper's, or more where those would hide it."""
    partial: bool = False
    """Whether it stands on fewer runs or datasets than planned."""
    unconverged: Failure | None = None
    """Set where most runs learned nothing."""

    @property
    def has_result(self) -> bool:
        # A failure that the paper reports as well is a result without a number.
        return self.mean is not None or self.verdict.word == "exact"


@dataclass(frozen=True)
class Line:
    """A published cell and what we have beside it."""

    printed: Printed
    ours: dict[str, Ours]
    """By edition: `prescribed` always, `published` where such settings are known."""
    finding: Finding | None = None
    """Why the audit doubts the printed cell."""

    @property
    def edition(self) -> str:
        """The edition that the cell is judged by: the one meant to reproduce it, if it was run."""
        published = self.ours.get("published")
        return "published" if published and published.has_result else "prescribed"

    @property
    def verdict(self) -> Verdict:
        return self.ours[self.edition].verdict


def build(results: Path, tables: Sequence[int] | None = None) -> list[Line]:
    """One line per published cell of the tables asked for, in the paper's order."""
    for table in tables or ():
        if table not in paper.tables():
            known = ", ".join(map(str, paper.tables()))
            raise UserError(f"The paper has no numbers in Table {table}. It has them in {known}.")
    return lines(Store(results, remember=True), tables)


def lines(store: Store, tables: Sequence[int] | None = None) -> list[Line]:
    """The same from a store, which may have built the tables before."""
    return compare(
        {f"table{n}": build_from(store, f"table{n}") for n in tables or paper.tables()}, tables
    )


def compare(built: Mapping[str, Table], tables: Sequence[int] | None = None) -> list[Line]:
    """The lines of the tables asked for, from tables that are built already."""
    doubts = doubtful(audit())
    lines = []
    for cell in (cell for n in tables or paper.tables() for cell in paper.cells(n)):
        finding = doubts.get(key(cell))
        ours = _ours(cell, built[f"table{cell.table}"])
        lines.append(Line(cell, _doubted(ours, finding), finding))
    return lines


def totals(lines: Sequence[Line], edition: str | None = None) -> dict[int, Counter[str]]:
    """Verdicts per table: of the edition that each cell is judged by, or of one edition."""
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for line in lines:
        ours = line.ours.get(edition or line.edition)
        if ours:
            counts[line.printed.table][ours.verdict.word] += 1
    return dict(counts)


def regressions(lines: Sequence[Line]) -> list[Line]:
    """Cells whose known settings should give the printed number, and do not."""
    published = [line for line in lines if "published" in line.ours]
    wrong = ("within noise", "differs")
    return [line for line in published if line.ours["published"].verdict.word in wrong]


# Our side ----------------------------------------------------------------------------------------


def _ours(cell: Printed, table: Table) -> dict[str, Ours]:
    if cell.metric in NOT_RUN:
        return {"prescribed": Ours(Verdict("not run", NOT_RUN[cell.metric]))}
    if cell.metric == "mean_rank":
        return _rank(cell, table)
    found = {
        edition: result
        for edition in EDITIONS
        if (result := table.results.get((cell.method, cell.dataset, cell.metric, edition)))
    }
    if not found:
        return {"prescribed": Ours(Verdict("not run", "our model does not measure this"))}
    [metric] = [metric for metric in table.recipe.metrics if metric.name == cell.metric]
    return {
        edition: Ours(
            verdict=_verdict(cell, result),
            mean=result.mean,
            std=result.shown_std,
            n=result.n,
            decimals=metric.our_decimals(result.mean),
            partial=result.gap is not None,
            unconverged=result.unconverged,
        )
        for edition, result in found.items()
    }


def _verdict(cell: Printed, result: Result) -> Verdict:
    if cell.mean is None:
        return _without_print(result, paper.decimals(cell.table, cell.metric))
    if result.gap is not None:
        word = "data unavailable" if result.gap.word == "data unavailable" else "not run"
        return Verdict(word, result.gap.reason)
    return result.verdict


def _without_print(result: Result, decimals: int) -> Verdict:
    """The paper prints a dash for runs that did not converge."""
    if result.gap is None:
        value = mean_std(result.mean, result.std, decimals)
        if result.unconverged:
            return Verdict("exact", f"no result in the paper, and ours with {value} is none either")
        return Verdict("differs", f"no result in the paper, {value} here")
    if result.gap.word == "failed":
        return Verdict("exact", f"no result in the paper and none here: {result.gap.reason}")
    word = "data unavailable" if result.gap.word == "data unavailable" else "not run"
    return Verdict(word, result.gap.reason)


def _rank(cell: Printed, table: Table) -> dict[str, Ours]:
    found = {}
    for edition in EDITIONS:
        summary = table.summaries.get((cell.method, edition, "mean_rank"))
        if summary is None:
            continue
        verdict = summary.verdict
        partial = verdict.word not in WORDS
        if partial:
            why = verdict.why
            if summary.ours and summary.same_cells:
                why += f"; there {mean_std(*summary.ours)}, the paper's {mean_std(*summary.same_cells)}"
            verdict = Verdict("not run", why)
        mean, std = summary.ours or (None, None)
        found[edition] = Ours(verdict, mean, std, summary.n, partial=partial)
    return found or {"prescribed": Ours(Verdict("not run", "not implemented yet"))}


# Doubts ------------------------------------------------------------------------------------------


def _doubted(ours: dict[str, Ours], finding: Finding | None) -> dict[str, Ours]:
    """A printed cell that the audit doubts is only ever `exact` or `paper inconsistent`."""
    if finding is None:
        return ours
    return {
        edition: value
        if value.verdict.word == "exact"
        else replace(value, verdict=_inconsistent(value.verdict, finding))
        for edition, value in ours.items()
    }


def _inconsistent(verdict: Verdict, finding: Finding) -> Verdict:
    compared = f"; ours: {verdict.word}, {verdict.why}"
    return replace(verdict, word=INCONSISTENT, why=f"{finding.id}: {finding.found}{compared}")
