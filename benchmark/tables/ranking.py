"""Ranks and ADTM over the cells that exist, ours and the paper's from the same cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from benchmark.tables import statistics as stats
from benchmark.tables.recipes import Rule
from benchmark.tables.statistics import Sample, Verdict
from benchmark.tables.table import Pair, Summary, Table


def with_summaries(table: Table, rule: Rule) -> Table:
    """Add ranks and ADTM, ours and the paper's, over the cells that all editions have."""
    recipe = table.recipe
    methods, datasets = ranked_cells(table, rule.metric)
    table = replace(table, ranked=(methods, datasets))
    if len(methods) < 2:
        methods, datasets = (), ()
        table = replace(table, ranked=((), ()))

    def matrix(value: Callable[[str, str], Any]) -> list[list[Any]]:
        return [[value(method, dataset) for dataset in datasets] for method in methods]

    def has(method: str, dataset: str) -> bool:
        return _complete(table, method, dataset, rule.metric)

    def printed(method: str, dataset: str) -> float | None:
        cell = recipe.printed(method, dataset, rule.metric)
        return cell.mean if cell and has(method, dataset) else None

    theirs = matrix(printed)
    # A method without any printed value would be left out of the paper's ranks, but not of ours.
    comparable = bool(methods) and all(any(x is not None for x in row) for row in theirs)
    rank = partial(stats.ranks, ties=rule.ties, missing=rule.missing)
    summaries: list[Summary] = []
    for edition in table.editions:

        def runs(method: str, dataset: str, edition: str = edition) -> tuple[float, ...] | None:
            result = table.in_edition(method, dataset, rule.metric, edition)
            return result.values if result and has(method, dataset) else None

        cells = matrix(runs)
        ours = [[None if c is None else stats.mean_std(c)[0] for c in row] for row in cells]
        make = partial(_summaries, table, rule, edition)
        paper_ranks = rank(theirs) if comparable else None
        summaries += make("mean_rank", rank(ours), paper_ranks)
        paper_adtm = _percent(stats.distances(theirs)) if comparable else None
        summaries += make("adtm_percent", _percent(stats.distances(ours)), paper_adtm)
        summaries += make("adtm_pooled_percent", _percent(stats.pooled_distances(cells)), None)
    return replace(table, summaries={(s.method, s.edition, s.name): s for s in summaries})


def ranked_cells(table: Table, metric: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The methods and datasets to rank over, where some have no value yet.

    A dataset counts if more than half of the methods with any value have one there; a method
    counts if it has a value on more than half of these datasets. What is still missing is filled
    by the rule; were a method filled on most datasets, its rank would be made up.
    """
    recipe = table.recipe
    have = {
        (method, dataset)
        for method in recipe.methods
        for dataset in recipe.datasets
        if _complete(table, method, dataset, metric)
    }
    started = {method for method, _ in have}
    datasets = [
        dataset
        for dataset in recipe.datasets
        if 2 * sum((method, dataset) in have for method in started) > len(started)
    ]
    methods = [
        method
        for method in recipe.methods
        if 2 * sum((method, dataset) in have for dataset in datasets) > len(datasets)
    ]
    return tuple(methods), tuple(datasets)


def _complete(table: Table, method: str, dataset: str, metric: str) -> bool:
    """Whether every edition has all runs, so that editions are ranked over the same cells."""
    found = [table.in_edition(method, dataset, metric, edition) for edition in table.editions]
    return bool(found) and all(result and result.complete for result in found)


def _percent(rows: stats.Filled) -> stats.Filled:
    return [[None if value is None else 100 * value for value in row] for row in rows]


def _summaries(
    table: Table,
    rule: Rule,
    edition: str,
    name: str,
    ours: stats.Filled,
    theirs: stats.Filled | None,
) -> list[Summary]:
    """One summary per method of the table, also for those that are not ranked."""
    methods, _ = table.ranked
    values = dict(zip(methods, ours, strict=True))
    paper_values = dict(zip(methods, theirs, strict=True)) if theirs else {}
    made = []
    for row in table.rows:
        cell = table.recipe.printed(row.method, "", name)
        printed = (cell.mean, cell.std) if cell and cell.mean is not None else None
        mine = values.get(row.method)
        summary = Summary(
            row.method,
            edition,
            name,
            ours=stats.over_datasets([mine], rule.ddof)[0] if mine else None,
            n=sum(value is not None for value in mine or ()),
            printed=printed,
            verdict=_not_ranked(table, row.method, rule.metric),
        )
        if mine and summary.ours:
            theirs_here = paper_values.get(row.method, [None] * len(mine))
            same = stats.over_datasets([theirs_here], rule.ddof)[0]
            test = partial(_test, mine, theirs_here, ddof=rule.ddof)
            summary = replace(
                summary,
                same_cells=same,
                same_verdict=test(same) if same else None,
                verdict=_against_print(table, test, printed),
            )
        made.append(summary)
    return made


def _test(
    ours: Sequence[float | None], theirs: Sequence[float | None], against: Pair, ddof: int
) -> Verdict:
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None]
    mine, paper_values = [a for a, _ in pairs], [b for _, b in pairs]
    return stats.compare_over_datasets(mine, paper_values, Sample(*against), 2, ddof)


def _against_print(table: Table, test: Callable[[Pair], Verdict], printed: Pair | None) -> Verdict:
    if printed is None:
        return Verdict("not in paper", "the paper prints no such value")
    if not table.fully_ranked:
        methods, datasets = table.ranked
        over = f"{len(methods)} methods and {len(datasets)} datasets"
        return Verdict("incomplete", f"over {over}, not over all of the paper's")
    return test(printed)


def _not_ranked(table: Table, method: str, metric: str) -> Verdict:
    have = sum(_complete(table, method, d, metric) for d in table.recipe.datasets)
    if not have:
        return Verdict("not run", "no complete cell")
    if not table.ranked[0]:
        return Verdict("incomplete", "ranks need two methods with complete cells")
    return Verdict("incomplete", f"complete on too few datasets ({have}) to be ranked")
