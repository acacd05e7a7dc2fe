"""Every printed cell beside ours: the difference, a verdict and the reason for it.

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
from benchmark.runner.records import Store
from benchmark.runner.shipped import store_at
from benchmark.tables.build import build_from
from benchmark.tables.convergence import Failure
from benchmark.tables.descriptive import TITLES
from benchmark.tables.table import Result, Table
from benchmark.tables.verdict import FEWEST_DATASETS, JUDGED, Verdict
from benchmark.text import mean_std

INCONSISTENT = "paper inconsistent"
WORDS = (*JUDGED, INCONSISTENT, "other hardware", "not run", "data unavailable")


@dataclass(frozen=True)
class Ours:
    """Our value for a printed cell in one edition."""

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
    experiment: str = ""
    """What was measured: the same for a number that the paper prints in several tables."""
    same_cells: tuple[float, float | None] | None = None
    """Of a rank over fewer methods or datasets than the paper's: what the paper's own cells give there."""
    by_rule: bool = True
    """Whether its settings come from the paper's rule in full, not from a cheaper search."""

    @property
    def has_result(self) -> bool:
        # A failure that the paper reports as well is a result without a number.
        return self.mean is not None or self.verdict.word == "equal"


@dataclass(frozen=True)
class Line:
    """A printed cell and what we have beside it."""

    printed: Printed
    ours: dict[str, Ours]
    """By edition: `rule` always, `recovered` where such settings are known."""
    finding: Finding | None = None
    """Why the audit doubts the printed cell."""

    @property
    def verdict(self) -> Verdict:
        """By the paper's rule. A setting that was found by searching for the printed number is told apart."""
        return self.ours["rule"].verdict


def build(results: Path, tables: Sequence[int] | None = None) -> list[Line]:
    """One line per printed cell of the tables asked for, in the paper's order."""
    for table in tables or ():
        if table not in paper.tables():
            known = ", ".join(map(str, paper.tables()))
            also = (
                "" if table not in TITLES else f" `python -m benchmark table {table}` compares it."
            )
            raise UserError(
                f"Table {table} has no results to compare.{also} Results are in Tables {known}."
            )
    return lines(store_at(results, remember=True), tables)


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
        if ours["rule"].same_cells:
            finding = None  # not the printed rank was compared, but that of the paper's own cells
        lines.append(Line(cell, _doubted(ours, finding), finding))
    return lines


def totals(lines: Sequence[Line], edition: str = "rule") -> dict[int, Counter[str]]:
    """Verdicts per table in one edition."""
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for line in lines:
        if ours := line.ours.get(edition):
            counts[line.printed.table][ours.verdict.word] += 1
    return dict(counts)


def regressions(lines: Sequence[Line]) -> list[Line]:
    """Cells whose known settings should give the printed number, and do not."""
    recovered = [line for line in lines if "recovered" in line.ours]
    wrong = [word for word in JUDGED if word != "equal"]
    return [line for line in recovered if line.ours["recovered"].verdict.word in wrong]


# Our side ----------------------------------------------------------------------------------------


def _ours(cell: Printed, table: Table) -> dict[str, Ours]:
    if cell.metric == "mean_rank":
        return _rank(cell, table)
    found = {
        edition: result
        for edition in EDITIONS
        if (result := table.results.get((cell.method, cell.dataset, cell.metric, edition)))
    }
    if not found:
        return {"rule": Ours(Verdict("not run", "our model does not measure this"))}
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
            experiment=result.experiment or _printed_place(cell),
            by_rule=result.choice is None or result.choice.by_rule,
        )
        for edition, result in found.items()
    }


def _printed_place(cell: Printed) -> str:
    """What a number without runs of its own is known by."""
    return f"table{cell.table}/{cell.method}/{cell.dataset}/{cell.metric}"


def _verdict(cell: Printed, result: Result) -> Verdict:
    gap = result.gap
    if gap is None:
        return result.verdict
    if cell.mean is None and gap.word == "failed":
        return Verdict("equal", f"no result in the paper and none here: {gap.reason}")
    word = "data unavailable" if gap.word == "data unavailable" else "not run"
    return Verdict(word, gap.reason)


def _rank(cell: Printed, table: Table) -> dict[str, Ours]:
    """By the paper's rule only: with recovered settings for some methods a rank mixes two rules."""
    summary = table.summaries.get((cell.method, "rule", "mean_rank"))
    if summary is None:
        return {"rule": Ours(Verdict("not run", "not implemented yet"))}
    verdict = summary.verdict
    if verdict.word not in WORDS:
        verdict = Verdict("not run", verdict.why)
    elif not table.fully_ranked and summary.same_cells:
        methods, datasets = table.ranked
        over = f"over {len(methods)} methods and {len(datasets)} datasets"
        theirs = mean_std(*summary.same_cells)
        verdict = replace(
            verdict, why=f"{verdict.why}; {over}, where the paper's cells give {theirs}"
        )
    mean, std = summary.ours or (None, None)
    if table.fully_ranked and verdict.word == "equal" and not _as_printed(mean, cell.mean):
        why = "equal to the rank that the paper's own cells give, which is not the printed one"
        verdict = replace(verdict, word="different", why=why)
    return {
        "rule": Ours(
            verdict,
            mean,
            std if summary.n >= FEWEST_DATASETS else None,
            summary.n,
            partial=not table.fully_ranked,
            experiment=_printed_place(cell),
            same_cells=None if table.fully_ranked else summary.same_cells,
        )
    }


def _as_printed(mean: float | None, printed: float | None) -> bool:
    return mean is not None and printed is not None and paper.equal_as_printed(mean, printed, 2)


# Doubts ------------------------------------------------------------------------------------------


def _doubted(ours: dict[str, Ours], finding: Finding | None) -> dict[str, Ours]:
    """A printed cell that the audit doubts is only ever `equal` or `paper inconsistent`."""
    if finding is None:
        return ours
    return {
        edition: value
        if value.verdict.word == "equal"
        else replace(value, verdict=_inconsistent(value.verdict, finding))
        for edition, value in ours.items()
    }


def _inconsistent(verdict: Verdict, finding: Finding) -> Verdict:
    compared = f"; ours: {verdict.word}, {verdict.why}"
    return replace(verdict, word=INCONSISTENT, why=f"{finding.id}: {finding.found}{compared}")
