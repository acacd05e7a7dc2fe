"""Built tables as values for the page: what is shown, what a click reveals, and the commands.

Numbers that a reader sees are formatted here, as everywhere else in the project, so that the page
never rounds differently. Runs are kept to five digits, enough for a drawing and a list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from benchmark.judge.audit.findings import Finding, Key
from benchmark.protocol.choices import EDITION_NAMES
from benchmark.report.archive import Archive, Index, Provenance
from benchmark.tables import statistics as stats
from benchmark.tables.recipes import Metric, Recipe
from benchmark.tables.render.words import MEANING, about_paper_ranks, ranking_text, what_is_shown
from benchmark.tables.table import Pair, Result, Row, Summary, Table
from benchmark.tables.verdict import FEWEST_DATASETS, JUDGED

SUMMARIES = {"mean_rank": ("Rank", 2), "adtm_percent": ("ADTM", 1)}
"""Columns behind the datasets: heading and decimals."""


SAME_ROWS = "every run is tested on the same rows; they differ in validation rows and seed"


class Gathered:
    """The tables of the page, and what their cells point to."""

    def __init__(self, archive: Archive, doubts: Mapping[Key, Finding]) -> None:
        self.archive, self.doubts = archive, doubts
        self.provenance = Provenance(archive)
        self.runs, self.settings, self.choices = Index(), Index(), Index()

    def table(self, table: Table) -> dict[str, Any]:
        """One table: columns, rows with the printed cells, and our cells of every edition."""
        recipe = table.recipe
        return {
            "name": recipe.name,
            "title": recipe.title,
            "paper": recipe.paper,
            "recovered": any(result.edition == "recovered" for result in table.shown),
            "columns": [self._column(table, *column) for column in recipe.columns],
            "summaries": _summary_columns(table),
            "rows": [self._row(table, row) for row in table.rows],
            "cells": [cell for r in table.shown if (cell := self._cell(table, r))],
            "about": what_is_shown(table),
            "ranking": _ranking(table),
        }

    def _column(self, table: Table, dataset: str, metric: Metric) -> dict[str, Any]:
        several = sum(not m.overall for m in table.recipe.metrics) > 1
        heading = dataset if dataset and not several else metric.heading
        rank = table.recipe.rank
        return filled(
            dataset=dataset,
            metric=metric.name,
            heading=heading,
            group=dataset if several else "",
            decimals=metric.decimals,
            # Only where the table itself says that larger is better.
            ranked=bool(rank and rank.metric == metric.name),
            within=bool(metric.spread),
            timed=metric.timed,
        )

    def _row(self, table: Table, row: Row) -> dict[str, Any]:
        return {
            **asdict(row),
            "printed": [self._printed(table, row, *c) for c in table.recipe.columns],
        }

    def _printed(self, table: Table, row: Row, dataset: str, metric: Metric) -> Any:
        cell = table.recipe.printed(row.method, dataset, metric.name)
        if cell is None:
            return None
        doubt = self.doubts.get((cell.table, cell.method, cell.dataset, cell.metric))
        numbers = _texts((cell.mean, cell.std), metric.decimals) if cell.mean is not None else ["–"]
        return filled(value=numbers, doubt=doubt.id if doubt else "")

    def _cell(self, table: Table, result: Result) -> dict[str, Any] | None:
        place = [i for i, c in enumerate(table.recipe.columns) if _is(result, *c)]
        if not place:
            return None
        metric = table.recipe.columns[place[0]][1]
        decimals = metric.our_decimals(result.mean)
        key = self.archive.find(result.setting, result.dataset) if result.setting else None
        gap, verdict = result.gap, result.verdict
        fixed = table.recipe.fixed_test(result.dataset)
        return filled(
            row=[row.method for row in table.rows].index(result.method),
            column=place[0],
            edition=result.edition,
            value=_texts((result.mean, result.shown_std), decimals) if result.values else [],
            decimals=decimals if decimals != metric.decimals else None,
            n=result.n,
            planned=result.planned,
            # Of runs on the same test rows, an interval would be of their training alone.
            interval=[]
            if table.recipe.fixed_test(result.dataset)
            else _interval(table.recipe, result, decimals),
            word=verdict.word,
            why=verdict.why,
            within="" if verdict.within is None else f"{verdict.within:.{metric.decimals}f}",
            difference=[
                f"{x:+.{metric.decimals}f}"
                for x in (verdict.difference, *(verdict.interval or ()))
                if x is not None
            ],
            rho=f"{verdict.shared.rho:.2f}" if verdict.shared.rho else "",
            unpaired=verdict.unpaired if verdict.unpaired != verdict.word else "",
            runs=self._runs(table, result, metric, key),
            setting=self._setting(key, result),
            choice=self._choice(result),
            reason=gap.reason if gap else "",
            command=self._command(table, result, metric, key),
            note="; ".join(filter(None, [result.note, SAME_ROWS * fixed])),
            unconverged=str(result.unconverged or ""),
            failures=result.failures,
            message=result.message,
        )

    def _command(self, table: Table, result: Result, metric: Metric, key: str | None) -> str:
        """What does the cell's runs again; or, where there are none, what does them at all."""
        model = result.model or result.method
        if result.gap is not None and result.dataset in table.recipe.own:
            words = table.recipe.own[result.dataset].words
            return f"python -m benchmark run --models {model} {words}"
        if result.gap is not None:
            return next(iter(result.gap.remedy([(model, result.dataset)])), "")
        if metric.timed and result.model:
            return f"python -m benchmark time --models {model} --datasets {result.dataset}"
        return self.archive.settings[key].verify if key else ""

    def _runs(self, table: Table, result: Result, metric: Metric, key: str | None) -> int | None:
        """The runs' values, one place per planned split where the splits are known."""
        if len(result.values) < 2:
            return None
        values: list[float | None] = list(result.values)
        if key is not None:
            reads = table.recipe.source(result.method).metric(metric)
            records = self.archive.runs(key)
            found = [reads.of(r) if r and r["status"] == "ok" else None for r in records]
            # A special cell may hold something else than its records' values.
            if [value for value in found if value is not None] == values:
                values = found
        return self.runs.place([None if v is None else _short(v) for v in values])

    def _setting(self, key: str | None, result: Result) -> int | None:
        if result.params is None:
            return None
        about: dict[str, Any] = {"params": result.params}
        if key is not None:
            about |= {"key": key, **self.provenance.of_setting(key)}
        return self.settings.place(about, key)

    def _choice(self, result: Result) -> int | None:
        choice = result.choice
        if choice is None:
            return None
        value = asdict(choice)
        value["valid"] = _short(choice.valid)
        for candidate in value["candidates"]:
            if candidate["valid"] is not None:
                candidate["valid"] = _short(candidate["valid"])
        return self.choices.place(value, (choice.model, choice.dataset))


def _is(result: Result, dataset: str, metric: Metric) -> bool:
    return (result.dataset, result.metric) == (dataset, metric.name)


def _summary_columns(table: Table) -> list[dict[str, Any]]:
    """Rank and ADTM: per edition and row ours, the paper's from its printed cells, a verdict."""
    if not table.ranked[0]:
        return []
    columns = []
    for name, (heading, decimals) in SUMMARIES.items():
        cells = {
            edition: [
                _summary(table, table.summaries.get((row.method, edition, name)), decimals)
                for row in table.rows
            ]
            for edition in table.editions
        }
        same = not (table.fully_ranked and name == "mean_rank")
        columns.append({"name": name, "heading": heading, "same": same, "editions": cells})
    return columns


def _summary(table: Table, summary: Summary | None, decimals: int) -> dict[str, Any] | None:
    if summary is None:
        return None
    as_printed = summary.name == "mean_rank" and table.fully_ranked
    paper = summary.printed if as_printed else summary.same_cells
    verdict = summary.verdict
    # Room is scarce: only our rank shows its standard deviation, and only over enough datasets.
    spread = summary.name == "mean_rank" and summary.n >= FEWEST_DATASETS

    def shown(pair: Pair | None, spread: bool = False) -> list[str]:
        return _pair(pair if spread or not pair else (pair[0], None), decimals)

    return filled(
        value=shown(summary.ours, spread),
        paper=shown(paper),
        printed=_pair(summary.printed, decimals),
        as_printed=as_printed,
        n=summary.n,
        word=verdict.word if verdict.word in JUDGED else "",
        why=verdict.why,
    )


def _ranking(table: Table) -> str:
    """What the ranks are computed over, and what the paper's beside them are."""
    if table.recipe.rank is None or not table.ranked[0]:
        return ""
    return " ".join([ranking_text(table), *about_paper_ranks(table)])


def editions() -> dict[str, dict[str, str]]:
    """What each edition is called, and what it means."""
    return {e: {"name": name, "meaning": MEANING[e]} for e, name in EDITION_NAMES.items()}


# Numbers -----------------------------------------------------------------------------------------


def filled(**values: Any) -> dict[str, Any]:
    """Without what is empty: most fields of most cells are."""
    return {k: v for k, v in values.items() if v not in (None, "", [], (), {}) and v is not False}


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def _texts(pair: tuple[float | None, float | None], decimals: int) -> list[str]:
    return [f"{value:.{decimals}f}" for value in pair if value is not None]


def _pair(pair: Pair | None, decimals: int) -> list[str]:
    return _texts(pair, decimals) if pair else []


def _interval(recipe: Recipe, result: Result, decimals: int) -> list[str]:
    """95 % intervals of the mean: runs taken as independent, and allowing for what they share."""
    if result.mean is None or result.std is None:
        return []
    overlaps = [0.0]
    if result.n == stats.RUNS:
        overlaps.append(stats.overlap(recipe.valid_size(result.dataset)))
    halves = [stats.half_interval(result.std, result.n, one) for one in overlaps]
    return [
        f"{bound:.{decimals}f}"
        for half in halves
        for bound in (result.mean - half, result.mean + half)
    ]
