"""Any models on any tables, ranked by the same rules as the paper's: shipped cells from their
records, one's own from runs that are done first.

A ranking is a table of the same kind as Table 2, so that ranks, ADTM, the block that is ranked, the
pairwise tests and the page are the ones that exist already.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmark import paper
from benchmark.judge.pairwise import Pair, pairs
from benchmark.judge.ranks import LEVEL, Ranking, rank, shown_p
from benchmark.protocol.plan import Cell, Protocol, told_apart
from benchmark.protocol.spec import METRICS, DataRef, RunSpec, UserError
from benchmark.runner.campaign import Means, Report, all_runs, carry_out, finished
from benchmark.runner.costs import Costs
from benchmark.runner.records import Store
from benchmark.tables import statistics as stats
from benchmark.tables.build import build_recipe
from benchmark.tables.measured import sources
from benchmark.tables.recipes import Metric, Recipe, Rule, Source
from benchmark.tables.table import Result, Table
from benchmark.text import csv_text, grid, mean_std

PAPER = "paper"
"""Among the models, a word for the 17 methods of the paper."""


@dataclass(frozen=True)
class Standing:
    """One method of a ranking."""

    method: str
    label: str
    rank: float | None
    rank_std: float | None
    datasets: int
    """Over how many datasets; 0 if it is not ranked."""
    adtm: float | None
    """Average distance to the minimum, in percent: 0 is the worst method, 100 the best."""
    wins: int
    """Pairs, over all datasets, in which it is clearly better after Holm's adjustment."""
    losses: int


@dataclass(frozen=True)
class Ranked:
    """Everything that any form of a ranking shows."""

    table: Table
    metric: str
    standings: tuple[Standing, ...]
    """The best first; those without a rank last."""
    test: Ranking | None
    """Friedman's test and the critical difference; None with fewer than 3 methods or 2 datasets."""
    pairs: tuple[Pair, ...]
    against: str | None

    @property
    def missing(self) -> list[Result]:
        return [result for result in self.table.shown if not result.complete]


def recipe(
    models: Sequence[str],
    data: Sequence[DataRef],
    metric: str = "balanced_accuracy",
    against: str | None = None,
) -> Recipe:
    """The table of these models on these data. `against` has to be one of them, which is better told
    before the runs than after them."""
    methods = dict.fromkeys(
        name for model in models for name in (paper.METHODS if model == PAPER else [model])
    )
    data = told_apart(data)
    labels = [ref.label for ref in data]
    if len(methods) < 2:
        raise UserError(
            f"A ranking needs two models or more, got {', '.join(methods) or 'none'}. Name others, or "
            f"the paper's 17 by the word {PAPER!r}: --models {','.join([PAPER, *methods])}."
        )
    if against is not None and against not in methods:
        raise UserError(
            f"{against!r} (--against) is none of the ranked models: {', '.join(methods)}. Name one of "
            f"these, or put {against!r} among the models, too."
        )
    return Recipe(
        name="rank",
        title=f"{METRICS[metric].capitalize() if metric != 'auroc' else 'AUROC'} (%) of "
        f"{len(methods)} models on {len(labels)} datasets",
        methods=tuple(methods),
        datasets=tuple(labels),
        metrics=(Metric(metric, f"scores.test.{metric}", METRICS[metric], scale=100),),
        rank=Rule(metric),
        rows={name: Source(name, settings="auto") for name in methods},
        own={ref.label: ref for ref in data if ref.path is not None},
    )


# Runs ---------------------------------------------------------------------------------------------


def run_missing(wanted: Recipe, means: Means, named: Collection[str]) -> Report:
    """Do what a ranking is missing, as far as the deadline allows: cells that cost little first.

    Shipped models on shipped data are run only where they are `named`: `paper` asks for the records of its
    methods, and some of these are missing because they take days.
    """
    cells = [
        cell
        for dataset in wanted.datasets
        for method in wanted.methods
        if (cell := wanted.cell(method, dataset)) is not None and (cell.own or method in named)
    ]
    planned = [
        (cell, cell.specs(setting.params, Protocol()))
        for cell in cells
        if (setting := means.store.setting(cell, *sources("auto", cell))) is not None
    ]
    missing = [(cell, specs) for cell, specs in planned if _unfinished(cell, specs, means)]
    costs = Costs(means.store)
    missing.sort(key=lambda one: (not one[0].entry.own, costs.per_run(one[0]) or 0.0))
    if not missing:
        return Report()
    _, report = carry_out([all_runs(specs, means) for _, specs in missing], means, "runs")
    return report


def _unfinished(cell: Cell, specs: Sequence[RunSpec], means: Means) -> bool:
    """Whether a cell has runs to do. What ships is not done again, not even by force."""
    records, _ = means.store.find([spec.key for spec in specs])
    done = [record for record in records.values() if finished(record, means.retry)]
    return len(done) < len(specs) or (means.force and cell.own)


# The ranking --------------------------------------------------------------------------------------


def build(wanted: Recipe, store: Store, against: str | None = None) -> Ranked:
    """Rank what the records hold; trains nothing."""
    assert wanted.rank is not None
    assert against is None or against in wanted.methods  # `recipe` has seen to it
    metric = wanted.rank.metric
    table = build_recipe(wanted, store.root, ["rule"], store)
    methods, datasets = table.ranked
    if not methods:
        raise UserError(
            "Nothing can be ranked: no two of the models have all their 25 runs on one dataset.\n"
            + "\n".join(f"  {line}" for line in reasons(table)[:10])
        )
    every = pairs(table)
    chosen = pairs(table, against) if against else every
    test = None
    if len(methods) > 2 and len(datasets) > 1:
        means = [
            [table.results[method, dataset, metric, "rule"].mean for dataset in datasets]
            for method in methods
        ]
        test = rank(means, methods)
    standings = [_standing(table, row.method, row.label, every) for row in table.rows]
    standings.sort(key=lambda one: (one.rank is None, one.rank or 0.0))
    return Ranked(table, metric, tuple(standings), test, tuple(chosen), against)


def _standing(table: Table, method: str, label: str, every: Sequence[Pair]) -> Standing:
    ranks = table.summaries[method, "rule", "mean_rank"]
    adtm = table.summaries[method, "rule", "adtm_percent"]
    clear = [pair for pair in every if pair.clear and label in (pair.first, pair.second)]
    better = [pair for pair in clear if (pair.difference > 0) == (pair.second == label)]
    return Standing(
        method=method,
        label=label,
        rank=ranks.ours[0] if ranks.ours else None,
        rank_std=ranks.ours[1] if ranks.ours else None,
        datasets=ranks.n if ranks.ours else 0,
        adtm=adtm.ours[0] if adtm.ours else None,
        wins=len(better),
        losses=len(clear) - len(better),
    )


def reasons(table: Table) -> list[str]:
    """Every cell that is not complete, with why."""
    return [
        f"{result.model or result.method} on {result.dataset}: {result.gap.reason}"
        for result in table.shown
        if result.gap is not None
    ]


# Forms --------------------------------------------------------------------------------------------

WIDTH = 100


def to_text(ranked: Ranked) -> str:
    """The ranking, the test over datasets, the pairs, and what is missing."""
    table, (methods, datasets) = ranked.table, ranked.table.ranked
    word = METRICS[ranked.metric]
    scores = table.recipe.datasets if len(table.recipe.datasets) <= 5 else ()
    head = ["method", "rank", "n", "ADTM", "wins", "losses", *scores]
    lines = [
        [
            one.label,
            "-" if one.rank is None else f"{one.rank:.2f}",
            str(one.datasets),
            "-" if one.adtm is None else f"{one.adtm:.1f}",
            str(one.wins),
            str(one.losses),
            *(_score(table, one.method, dataset, ranked.metric) for dataset in scores),
        ]
        for one in ranked.standings
    ]
    parts = [
        f"{len(methods)} methods ranked by {word} on {', '.join(datasets)}.",
        grid([head, *lines]),
        textwrap.fill(about(ranked), WIDTH),
        _tests(ranked),
    ]
    notes = untuned(table)
    parts += [textwrap.fill(notes, WIDTH)] if notes else []
    if gaps := reasons(table):
        more = f"\n  and {len(gaps) - 10} more" if len(gaps) > 10 else ""
        parts.append("Not complete, so not ranked there:\n  " + "\n  ".join(gaps[:10]) + more)
    return "\n\n".join(part for part in parts if part)


def _score(table: Table, method: str, dataset: str, metric: str) -> str:
    result = table.results.get((method, dataset, metric, "rule"))
    return mean_std(result.mean, result.std) if result and result.complete else "-"


def about(ranked: Ranked) -> str:
    """What the columns mean, and what the tests over datasets say."""
    text = (
        f"rank: mean over n datasets, 1 is best, ties share the best. ADTM: average distance to the "
        f"minimum, 100 is best. wins, losses: pairs on a dataset that differ clearly (corrected "
        f"resampled t-test on {stats.RUNS} paired runs, p < {stats.ALPHA} after Holm's adjustment "
        f"over all pairs of the dataset)."
    )
    if fixed := [d for d in ranked.table.recipe.datasets if ranked.table.recipe.fixed_test(d)]:
        text += (
            f" {', '.join(fixed)}: tested on the same rows in every run, so there it is ranked but not "
            f"tested who is clearly better."
        )
    if ranked.test is None:
        return f"{text} Friedman's test needs three methods on two datasets."
    return (
        f"{text} Friedman's test of equal methods: p = {shown_p(ranked.test.p)}; after Nemenyi two "
        f"mean ranks differ at level {LEVEL} if they are {ranked.test.difference:.2f} apart."
    )


def _tests(ranked: Ranked) -> str:
    if ranked.against is None:
        return ""
    label = next(one.label for one in ranked.standings if one.method == ranked.against)
    head = ["dataset", f"{label} minus", "points", "p", "p (Holm, over this list)"]
    lines = [
        [pair.dataset, pair.first, f"{pair.difference:+.2f}", shown_p(pair.p), shown_p(pair.p_holm)]
        for pair in ranked.pairs
    ]
    if not lines:
        return f"{label} has no dataset with all its runs on different test rows: nothing to test."
    return grid([head, *lines])


def untuned(table: Table) -> str:
    """Which cells have default settings, how to choose others, and which were searched less."""
    names = [
        f"{r.method} on {r.dataset}" for r in table.shown if r.complete and "default" in r.note
    ]
    cheaper = [
        f"{r.method} on {r.dataset} ({r.note.removeprefix('settings ')})"
        for r in table.shown
        if r.complete and r.choice and not r.choice.by_rule
    ]
    told = f"By a cheaper search: {', '.join(cheaper)}. " if cheaper else ""
    if not names:
        return told.strip()
    return (
        f"{told}With default settings, because nothing was tuned: {', '.join(names)}. `python -m benchmark "
        f"tune --models ...` with the same options of the data chooses settings by validation score."
    )


def to_data(ranked: Ranked) -> dict[str, Any]:
    """The same as plain values."""
    table, (methods, datasets) = ranked.table, ranked.table.ranked
    test = ranked.test
    return {
        "metric": ranked.metric,
        "ranked": {"methods": list(methods), "datasets": list(datasets)},
        "standings": [asdict(one) for one in ranked.standings],
        "friedman": None if test is None else {"p": test.p, "critical_difference": test.difference},
        "against": ranked.against,
        "pairs": [asdict(pair) | {"clear": pair.clear} for pair in ranked.pairs],
        "cells": [
            {
                "method": r.method, "dataset": r.dataset, "mean": r.mean, "std": r.std, "runs": r.n,
                "note": r.note, "values": list(r.values), "params": r.params,
                "missing": r.gap.reason if r.gap else None,
            }
            for r in table.shown
        ],
    }  # fmt: skip


def to_json(ranked: Ranked) -> str:
    return json.dumps(to_data(ranked), indent=1)


def to_csv(ranked: Ranked) -> str:
    rows = [asdict(one) for one in ranked.standings]
    return csv_text(list(rows[0]), [list(row.values()) for row in rows])


FORMATS = {"text": to_text, "json": to_json, "csv": to_csv}
