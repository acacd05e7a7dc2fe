"""What every rendering of a table says the same way: values, marks, headings, the legend."""

from __future__ import annotations

from collections import Counter

from benchmark import paper
from benchmark.experiments.timing import REPEATS
from benchmark.protocol.choices import EDITION_NAMES
from benchmark.tables.convergence import MARK
from benchmark.tables.recipes import DIGITS, Metric
from benchmark.tables.statistics import RUNS
from benchmark.tables.table import Pair, Result, Row, Table
from benchmark.tables.verdict import FEWEST_DATASETS, JUDGED, WORDS
from benchmark.text import mean_std

MARKS = {"equal": "=", "equivalent": "≈", "different": "≠", "inconclusive": "?"}
DASH = "–"
MEANING = {
    "rule": "settings chosen on validation scores, as the paper says; a note marks a cheaper search",
    "recovered": "settings that give the printed cell, found by searching for it (rank and ADTM use "
    "the paper's rule where none are known)",
}
TIES = {
    "min": "ties share the best rank",
    "average": "ties share the average rank",
    "dense": "ties share a rank and the next follows without a gap",
}
MISSING = {
    "mean": "count as the mean of the others",
    "drop": "are left out",
    "last": "rank last",
}
VERDICTS = (
    "`=` equal in every printed digit, `≈` equivalent (the 90 % interval of the difference lies within "
    "half the printed standard deviation between runs; where the paper prints none, no cell is called "
    "equivalent), `≠` different (the 95 % interval excludes zero and equivalence is not shown), `?` "
    "inconclusive (neither)"
)
PRINTED_K = (
    "ProtoGate's K is the printed one, not searched (Discrepancies, `protogate-k`): it may have been "
    "chosen by test scores."
)
REALX_F1 = (
    "REAL-X's penalty is 1, the first of the paper's values: no validation score depends on it, but the "
    "selected features do, and with them its F1 (Discrepancies, `realx-penalty`)."
)
DASHES = (
    "Where the paper prints a dash for failed convergence, `=` means that ours failed as well, `≠` that it "
    "converged."
)
FLAGGED = (
    f"`{MARK}` failed convergence: in more than half of the runs balanced accuracy is at most chance "
    "+ 2 points, or a local selector selects the same features for every sample. The scores are kept."
)


def pair_text(pair: Pair | None, decimals: int = 2) -> str:
    """`71.65 ± 12.03`, without the standard deviation where there is none."""
    mean, std = pair or (None, None)
    return mean_std(mean, std, decimals, nothing="")


def numbers(pair: Pair | None, decimals: int) -> list[str]:
    """The same as two texts, empty where there is nothing."""
    return ["" if x is None else f"{x:.{decimals}f}" for x in pair or (None, None)]


def value_text(result: Result, metric: Metric) -> str:
    if result.mean is None:
        return ""
    return pair_text((result.mean, result.shown_std), metric.our_decimals(result.mean))


def heading(table: Table, dataset: str, metric: Metric) -> str:
    if metric.overall:
        return metric.heading
    if sum(not m.overall for m in table.recipe.metrics) == 1:
        return dataset
    return f"{dataset} {metric.heading}" if len(table.recipe.datasets) > 1 else metric.heading


def source_name(table: Table, row: Row, edition: str) -> str:
    """The edition, where the row is the paper's; a variant of an experiment has none, and what was
    timed has the settings of its time, see the legend."""
    if any(metric.timed for metric in table.recipe.metrics):
        return "ours"
    printed = any(table.recipe.printed(row.method, d, m.name) for d, m in table.recipe.columns)
    return EDITION_NAMES[edition] if printed else table.recipe.source(row.method).whose


def our_summary(table: Table, row: Row, edition: str) -> list[str]:
    """Rank with the number of datasets behind it, and ADTM."""
    rank = table.summaries[row.method, edition, "mean_rank"]
    adtm = table.summaries[row.method, edition, "adtm_percent"]
    mark = MARKS.get(rank.verdict.word, "")
    shown = f"{rank_text(rank.ours, rank.n)} {mark}".strip()
    return [shown, f"{adtm.ours[0]:.1f}" if adtm.ours else ""]


def paper_summary(table: Table, row: Row) -> list[str]:
    """The paper's values from its printed cells of the methods and datasets that ours are over."""
    rank = table.summaries[row.method, table.editions[0], "mean_rank"]
    adtm = table.summaries[row.method, table.editions[0], "adtm_percent"]
    shown = rank.printed if table.fully_ranked else rank.same_cells
    return [rank_text(shown, rank.n), f"{adtm.same_cells[0]:.1f}" if adtm.same_cells else ""]


def rank_text(pair: Pair | None, n: int) -> str:
    """`4.25 ± 2.10 (4)`: a mean over four datasets; fewer show no standard deviation."""
    if pair is None:
        return ""
    mean, std = pair
    return f"{pair_text((mean, std if n >= FEWEST_DATASETS else None))} ({n})"


def legend(table: Table) -> str:
    lines = [what_is_shown(table)]
    if any(metric.timed for metric in table.recipe.metrics):
        settings = "Settings: those that are chosen now, unless a note says otherwise."
        if any(result.about for result in table.shown):
            settings += (
                " The paper's times are from other hardware and other code, so they get no verdict: "
                "[times.md](times.md) compares which methods are faster than which."
            )
        lines.append(f"{settings} Ours have at least {DIGITS} digits.")
        return "  \n".join(lines)
    if table.recipe.paper is not None:
        lines[0] += f" Against the paper: {VERDICTS}."
        if has_dashes(table):
            lines[0] += f" {DASHES}"
        if any(row.method.startswith("protogate") for row in table.rows) and any(
            dataset in paper.DATASETS for dataset in table.recipe.datasets
        ):
            lines.append(PRINTED_K)
        columns = {metric.name for _, metric in table.recipe.columns}
        if "f1_select" in columns and "realx" in table.recipe.methods:
            lines.append(REALX_F1)
    for edition in table.editions:
        words = Counter(r.verdict.word for r in table.shown if r.edition == edition)
        judged = [word for word in WORDS if words[word] and word != "not in paper"]
        counts = ", ".join(f"{words[word]} {word}" for word in judged)
        if counts and table.recipe.paper is not None:
            lines.append(f"{EDITION_NAMES[edition].capitalize()}: {MEANING[edition]}; {counts}.")
    if any(result.unconverged for result in table.shown):
        lines.append(FLAGGED)
    if table.recipe.rank and table.ranked[0]:
        lines.append(ranking_text(table))
        lines += about_paper_ranks(table)
    return "  \n".join(lines)


def has_dashes(table: Table) -> bool:
    """Whether a result of ours stands beside a dash of the paper."""
    return any(
        r.printed and r.printed.mean is None and r.verdict.word in JUDGED for r in table.shown
    )


def ranking_text(table: Table) -> str:
    """What ranks and ADTM are computed over, and by which rules."""
    methods, datasets = table.ranked
    assert table.recipe.rank is not None
    return (
        f"Rank: mean over datasets ({', '.join(datasets)}; how many stands in brackets, ± from {FEWEST_DATASETS} on) "
        f"among {len(methods)} methods, 1 = best; {TIES[table.recipe.rank.ties]}, missing cells "
        f"{MISSING[table.recipe.rank.missing]}. ADTM: 0 = the worst of these methods on every "
        f"dataset, 100 = the best on every dataset."
    )


def what_is_shown(table: Table) -> str:
    """In one sentence: what a cell of ours is, and on which machine a time was taken."""
    metrics = table.recipe.metrics
    if any(metric.timed for metric in metrics):
        machines = "; ".join(dict.fromkeys(r.about for r in table.shown if r.about))
        if not machines:
            return "From fitted networks; nothing here depends on the machine."
        return f"Mean ± sample standard deviation over {REPEATS} repeats on the first split. Timed on: {machines}."
    if all(metric.computed for metric in metrics):
        return "Computed from the runs of other tables."
    within = [metric.heading for metric in metrics if metric.spread]
    if len(within) == len(metrics):
        return f"Mean over {RUNS} runs ± the standard deviation between samples of a run, mean over runs."
    other = "; of {} ± is the standard deviation between samples of a run, mean over runs"
    exception = other.format(" and ".join(within)) if within else ""
    return f"Mean ± sample standard deviation over {RUNS} runs{exception}."


def about_paper_ranks(table: Table) -> list[str]:
    ranks_here = [s for s in table.summaries.values() if s.name == "mean_rank"]
    ranks_here = [s for s in ranks_here if s.edition == table.editions[0] and s.same_cells]
    if not ranks_here:
        return []
    if not table.fully_ranked:
        return ["The paper's Rank and ADTM are computed from its printed values of the same cells."]
    odd = [s for s in ranks_here if s.printed and pair_text(s.printed) != pair_text(s.same_cells)]
    labels = {row.method: row.label for row in table.rows}
    text = "; ".join(f"{labels[s.method]}, {pair_text(s.same_cells)}" for s in odd)
    return (
        [f"The paper's Rank is as printed; its cells give another one for {text}."] if odd else []
    )
