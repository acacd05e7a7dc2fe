"""A built table as values to compute with: CSV as the paper rounds, JSON with everything."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from dataclasses import asdict
from typing import Any

from benchmark.tables import statistics as stats
from benchmark.tables.render.words import numbers
from benchmark.tables.statistics import RUNS
from benchmark.tables.table import Pair, Result, Summary, Table

HEADER = "table,method,dataset,metric,mean,std,n,edition,paper_mean,paper_std,verdict"


def to_csv(table: Table) -> str:
    """One line per number, rounded as the paper prints it; a gap is a line without one.

    A cell that failed to converge has a line more, with the number of its runs that failed. Values
    over datasets follow the cells, with an empty dataset; the paper's beside them is computed from its
    printed cells of exactly our methods and datasets.
    """
    name = str(table.recipe.paper or "") if table.recipe.name.startswith("table") else ""
    name = name or table.recipe.name
    metrics = {metric.name: metric for metric in table.recipe.metrics}
    text = io.StringIO()
    text.write(HEADER + "\n")
    writer = csv.writer(text, lineterminator="\n")

    def line(
        method: str, dataset: str, metric: str, ours: Pair | None, n: int, edition: str,
        printed: Pair | None, verdict: str,
    ) -> None:  # fmt: skip
        known = metrics.get(metric)
        decimals = known.our_decimals(ours[0]) if known and ours else 2
        shown = [
            numbers(ours, decimals),
            numbers(printed, known.decimals if known else 2),
        ]
        writer.writerow([name, method, dataset, metric, *shown[0], n, edition, *shown[1], verdict])

    for r in table.shown:
        printed = (
            (r.printed.mean, r.printed.std) if r.printed and r.printed.mean is not None else None
        )
        ours = None if r.mean is None else (r.mean, r.shown_std)
        line(r.method, r.dataset, r.metric, ours, r.n, r.edition, printed, r.verdict.word)
    flagged = {(r.method, r.dataset, r.edition): r.unconverged for r in table.shown}
    for (method, dataset, edition), failure in flagged.items():
        if failure:
            counts = [str(failure.failed), "", failure.planned]
            place = [name, method, dataset, "failed_runs"]
            writer.writerow([*place, *counts, edition, "", "", "failed convergence"])
    for s in table.summaries.values():
        line(s.method, "", s.name, s.ours, s.n, s.edition, s.same_cells, s.verdict.word)
    return text.getvalue().rstrip("\n")


def to_json(table: Table) -> str:
    """Everything: unrounded numbers, single runs, settings, tests and reasons."""
    recipe = table.recipe
    value = {
        "table": recipe.name,
        "title": recipe.title,
        "paper_table": recipe.paper,
        "editions": list(table.editions),
        "complete": table.complete,
        "runs_per_cell": RUNS,
        "verdicts": {
            edition: dict(Counter(r.verdict.word for r in table.shown if r.edition == edition))
            for edition in table.editions
        },
        "rank_rule": asdict(recipe.rank) if recipe.rank else None,
        "ranked": {"methods": table.ranked[0], "datasets": table.ranked[1]},
        "problems": list(table.problems),
        "methods": [
            {
                **asdict(row),
                "cells": [_json_cell(r) for r in table.shown if r.method == row.method],
                "summaries": [
                    _json_summary(s) for s in table.summaries.values() if s.method == row.method
                ],
            }
            for row in table.rows
        ],
    }
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)


def _json_cell(result: Result) -> dict[str, Any]:
    choice, printed, gap = result.choice, result.printed, result.gap
    return {
        "dataset": result.dataset,
        "metric": result.metric,
        "edition": result.edition,
        "mean": result.mean,
        "std": result.std,
        "std_within_runs": stats.mean_std(result.within)[0] if result.within else None,
        "n": result.n,
        "planned": result.planned,
        "paper": {"mean": printed.mean, "std": printed.std} if printed else None,
        "verdict": asdict(result.verdict),
        "failed_convergence": asdict(result.unconverged) if result.unconverged else None,
        "setting": result.setting or None,
        "params": result.params,
        "choice": {"method": choice.method, "splits": choice.splits, "valid": choice.valid,
                   "edge": choice.edge} if choice else None,
        "values": list(result.values),
        "failures": result.failures,
        "failure_message": result.message or None,
        "reason": gap.reason if gap else None,
        "remedy": next(iter(gap.remedy([(result.model or result.method, result.dataset)])), None) if gap else None,
        "note": result.note or None,
    }  # fmt: skip


def _json_summary(summary: Summary) -> dict[str, Any]:
    def pair(value: Pair | None) -> dict[str, float | None] | None:
        return {"mean": value[0], "std": value[1]} if value else None

    return {
        "metric": summary.name,
        "edition": summary.edition,
        "ours": pair(summary.ours),
        "n": summary.n,
        "paper": pair(summary.printed),
        "paper_same_cells": pair(summary.same_cells),
        "verdict": asdict(summary.verdict),
    }
