"""Ranks and ADTM over the cells that exist, ours and the paper's from the same cells."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from benchmark.tables import statistics as stats
from benchmark.tables.recipes import Rule
from benchmark.tables.table import Result, Summary, Table
from benchmark.tables.verdict import (
    FEWEST_DATASETS,
    FEWEST_METHODS,
    Verdict,
    compare_over_datasets,
)

Place = tuple[str, str]
"""Method and dataset."""
Block = tuple[tuple[str, ...], tuple[str, ...]]
"""Methods and datasets."""


def with_summaries(table: Table, rule: Rule) -> Table:
    """Add ranks and ADTM, ours and the paper's, over the same cells."""
    recipe = table.recipe
    methods, datasets = ranked_block(table, rule.metric)
    table = replace(table, ranked=(methods, datasets))

    def matrix(value: Callable[[str, str], Any]) -> list[list[Any]]:
        return [[value(method, dataset) for dataset in datasets] for method in methods]

    def printed(method: str, dataset: str) -> float | None:
        cell = recipe.printed(method, dataset, rule.metric)
        ours = _ranked_result(table, (method, dataset), rule.metric, "rule")
        return cell.mean if cell and ours else None

    theirs = matrix(printed)
    # A method without any printed value would be left out of the paper's ranks, but not of ours.
    comparable = bool(methods) and all(any(x is not None for x in row) for row in theirs)
    rank = partial(stats.ranks, ties=rule.ties, missing=rule.missing)
    summaries: list[Summary] = []
    for edition in table.editions:

        def runs(method: str, dataset: str, edition: str = edition) -> tuple[float, ...] | None:
            result = _ranked_result(table, (method, dataset), rule.metric, edition)
            return result.values if result else None

        cells = matrix(runs)
        ours = [[None if c is None else stats.mean_std(c)[0] for c in row] for row in cells]
        make = partial(_summaries, table, rule, edition)
        paper_ranks = rank(theirs) if comparable else None
        summaries += make("mean_rank", rank(ours), paper_ranks)
        paper_adtm = _percent(stats.distances(theirs)) if comparable else None
        summaries += make("adtm_percent", _percent(stats.distances(ours)), paper_adtm)
        summaries += make("adtm_pooled_percent", _percent(stats.pooled_distances(cells)), None)
    return replace(table, summaries={(s.method, s.edition, s.name): s for s in summaries})


def block(methods: Sequence[str], datasets: Sequence[str], have: Collection[Place]) -> Block:
    """The methods and datasets that are ranked where `have` are the cells that count: the largest
    block without a hole.

    Everything that averages ranks or ADTM over datasets uses this block: the tables, the claims and
    the diagram of critical differences. Means over different datasets cannot be compared, and a
    filled cell would rank what was filled in; so a method counts only if it has every dataset of the
    block. Which cells those are is decided by where there are runs and never by their scores. Blocks
    of at least three methods on two datasets come first, because fewer allow no test of ranks; then those
    on enough datasets for a verdict, unless they leave out more than half of the cells; of equally many
    cells, the block with more datasets.
    """
    # Sets of datasets as numbers, a bit for each, the first dataset's the highest.
    bits = {dataset: 1 << i for i, dataset in enumerate(reversed(datasets))}
    having = {m: sum(bit for d, bit in bits.items() if (m, d) in have) for m in methods}
    # The largest block has all datasets that its methods share. So only what some methods share is
    # tried, which is little where there are few holes; all sets of 30 datasets would take hours.
    shared: set[int] = set()
    for mine in set(having.values()):
        shared |= {mine} | {mine & others for others in shared}

    for least_methods, least_datasets in ((3, 2), (2, 1)):
        able = [
            (rows * columns, columns, those)
            for those in shared
            if (columns := those.bit_count()) >= least_datasets
            and (rows := sum(those & ~mine == 0 for mine in having.values())) >= least_methods
        ]
        if able:
            most, *_ = max(able)
            judged = [x for x in able if x[1] >= FEWEST_DATASETS and 2 * x[0] >= most]
            *_, best = max(judged or able)  # of as many cells and datasets, those that stand first
            return (
                tuple(m for m in methods if best & ~having[m] == 0),
                tuple(d for d in datasets if best & bits[d]),
            )
    return (), ()


def ranked_block(table: Table, metric: str) -> Block:
    """The block of a table, by its cells of the paper's rule: the same whichever editions are shown.

    Beside the paper a cell in which every run failed counts, as its dashes do: the rule for missing
    values fills both. Elsewhere it would be ranked by the mean of the others. A method without any
    value has no rank. Beside the paper, other patients than its own do not count.
    """
    recipe = table.recipe
    cells = {
        (method, dataset): result
        for method in recipe.methods
        for dataset in recipe.datasets
        if (result := table.results.get((method, dataset, metric, "rule")))
    }
    started = {method for (method, _), result in cells.items() if result.complete}
    settled = {
        place
        for place, result in cells.items()
        if (result.gap is None or (result.gap.word == "failed" and recipe.paper is not None))
        and table.of_these_patients(result)
    }
    return block([m for m in recipe.methods if m in started], recipe.datasets, settled)


def _ranked_result(table: Table, place: Place, metric: str, edition: str) -> Result | None:
    """The complete result that a cell is ranked by: the one by the paper's rule where another edition has
    none, so that all editions are ranked over the same cells."""
    found = (table.results.get((*place, metric, name)) for name in (edition, "rule"))
    return next((result for result in found if result and result.complete), None)


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
        theirs_here = paper_values.get(row.method)
        # Beside a dash the paper's ADTM would be a mean over fewer datasets than ours.
        if mine and summary.ours and theirs_here and None not in theirs_here:
            summary = replace(
                summary,
                same_cells=stats.over_datasets([theirs_here], rule.ddof)[0],
                verdict=_beside_the_papers(mine, theirs_here, len(methods), rule.ddof),
            )
        elif mine:
            why = "the paper does not print all of these cells"
            summary = replace(summary, verdict=Verdict("not in paper", why))
        made.append(summary)
    return made


def _beside_the_papers(
    ours: Sequence[float | None], theirs: Sequence[float | None], methods: int, ddof: int
) -> Verdict:
    """The verdict beside the paper's own cells, ranked over exactly our methods and datasets."""
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None]
    if not pairs:
        return Verdict("not in paper", "the paper prints none of these cells")
    if methods < FEWEST_METHODS or len(pairs) < FEWEST_DATASETS:
        few = f"{methods} methods on {len(pairs)} datasets are too few to judge"
        difference = sum(a - b for a, b in pairs) / len(pairs)
        return Verdict("inconclusive", few, difference, unpaired="inconclusive")
    return compare_over_datasets([a for a, _ in pairs], [b for _, b in pairs], 2, ddof)


def _not_ranked(table: Table, method: str, metric: str) -> Verdict:
    places = [(method, dataset) for dataset in table.recipe.datasets]
    have = sum(bool(_ranked_result(table, p, metric, "rule")) for p in places)
    if not have:
        return Verdict("not run", "no complete cell")
    if not table.ranked[0]:
        return Verdict("incomplete", "ranks need two methods with complete cells")
    return Verdict("incomplete", f"complete on too few datasets ({have}) to be ranked")
