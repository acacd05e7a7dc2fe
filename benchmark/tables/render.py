"""A built table as text: Markdown to read, CSV to compute with, LaTeX to print, JSON for the rest.

Functions return text without a final line break; whoever prints or writes it adds one.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from benchmark.experiments.timing import REPEATS
from benchmark.tables import statistics as stats
from benchmark.tables.convergence import MARK
from benchmark.tables.recipes import DIGITS, Metric
from benchmark.tables.statistics import RUNS, SHARE, WORDS, ranks
from benchmark.tables.table import Gap, Pair, Result, Row, Summary, Table
from benchmark.text import grid, mean_std

MARKS = {"exact": "=", "within noise": "≈", "differs": "≠"}
HEADER = "table,method,dataset,metric,mean,std,n,edition,paper_mean,paper_std,verdict"
DASH = "–"
MEANING = {
    "prescribed": "settings chosen by the paper's rule on its grid",
    "published": "settings that reproduce the printed cell, where they are known (rank and ADTM "
    "use the prescribed cell elsewhere)",
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

FLAGGED = (
    f"`{MARK}` failed convergence: in more than half of the runs balanced accuracy is at most chance "
    "+ 2 points, or a local selector selects the same features for every sample. The scores are kept."
)


def _pair(pair: Pair | None, decimals: int = 2) -> str:
    """`71.65 ± 12.03`, without the standard deviation where there is none."""
    mean, std = pair or (None, None)
    return mean_std(mean, std, decimals, nothing="")


def _value(result: Result, metric: Metric) -> str:
    if result.mean is None:
        return ""
    return _pair((result.mean, result.shown_std), metric.our_decimals(result.mean))


def _heading(table: Table, dataset: str, metric: Metric) -> str:
    if metric.overall:
        return metric.heading
    several = sum(not m.overall for m in table.recipe.metrics) > 1
    return f"{dataset} {metric.heading}" if several else dataset


# Markdown ----------------------------------------------------------------------------------------


class _Notes:
    """Numbered remarks below a table; cells with the same reason share one."""

    def __init__(self) -> None:
        self._cells: dict[tuple[str, Gap | None], list[Result]] = {}

    def mark(self, result: Result) -> str:
        """`[2]`, the number of the cell's remark; empty if there is nothing to remark."""
        remark = (result.gap.reason if result.gap else result.note, result.gap)
        if not remark[0]:
            return ""
        self._cells.setdefault(remark, []).append(result)
        return f"[{list(self._cells).index(remark) + 1}]"

    def lines(self) -> list[str]:
        return [
            f"[{number}] {text}{_remedy(gap, results)}"
            for number, ((text, gap), results) in enumerate(self._cells.items(), 1)
        ]


def _remedy(gap: Gap | None, results: list[Result]) -> str:
    """One command for all cells of a remark."""
    methods = dict.fromkeys(result.model or result.method for result in results)
    datasets = dict.fromkeys(result.dataset for result in results)
    command = gap.remedy(methods, datasets) if gap else ""
    return f". Run `{command}`." if command else "."


def to_markdown(table: Table) -> str:
    """One line per method and source, so that a column reads paper, ours, ours from top to bottom.

    A method that has nothing yet for one single reason shows the paper's line only.
    """
    columns, notes = table.recipe.columns, _Notes()
    ranked = bool(table.ranked[0])
    head = ["Method", "Source", *(_heading(table, d, m) for d, m in columns)]
    lines = [head + ["Rank", "ADTM"] * ranked]
    for family, rows in itertools.groupby(table.rows, key=lambda row: row.family):
        lines.append([f"*{family.capitalize()}*"] + [""] * (len(lines[0]) - 1))
        for row in rows:
            lines += _method_lines(table, row, columns, notes, ranked)
    parts = [f"## {table.recipe.title}", grid(lines), _legend(table)]
    if notes.lines():
        parts.append("  \n".join(notes.lines()))
    return "\n\n".join(parts)


def _method_lines(
    table: Table, row: Row, columns: list[tuple[str, Metric]], notes: _Notes, ranked: bool
) -> list[list[str]]:
    lines = []
    printed = [table.recipe.printed(row.method, d, m.name) for d, m in columns]
    if any(printed):
        cells = [
            "" if p is None else DASH if p.mean is None else _pair((p.mean, p.std), m.decimals)
            for p, (_, m) in zip(printed, columns, strict=True)
        ]
        lines.append(["paper", *cells, *(_paper_summary(table, row) if ranked else [])])
    mine = [result for result in table.shown if result.method == row.method]
    label = row.label
    if any(printed) and len({(r.gap, r.n) for r in mine}) == 1 and mine[0].gap and not mine[0].n:
        label += f" {''.join({notes.mark(result) for result in mine})}"
    else:
        for edition in table.editions:
            results = [table.results.get((row.method, d, m.name, edition)) for d, m in columns]
            if any(results):
                cells = [
                    _cell(result, metric, notes) if result else ""
                    for result, (_, metric) in zip(results, columns, strict=True)
                ]
                summary = _our_summary(table, row, edition) if ranked else []
                lines.append([edition, *cells, *summary])
    # The method is named once, on its first line.
    return [[label if i == 0 else "", *line] for i, line in enumerate(lines)]


def _cell(result: Result, metric: Metric, notes: _Notes) -> str:
    flag = MARK if result.unconverged else ""
    mark = MARKS.get(result.verdict.word, "")
    parts = [_value(result, metric) or DASH, flag, mark, notes.mark(result)]
    return " ".join(filter(None, parts))


def _our_summary(table: Table, row: Row, edition: str) -> list[str]:
    rank = table.summaries[row.method, edition, "mean_rank"]
    adtm = table.summaries[row.method, edition, "adtm_percent"]
    return [_pair(rank.ours), f"{adtm.ours[0]:.1f}" if adtm.ours else ""]


def _paper_summary(table: Table, row: Row) -> list[str]:
    """The printed rank where it is comparable, else the one over the same cells as ours."""
    rank = table.summaries[row.method, table.editions[0], "mean_rank"]
    adtm = table.summaries[row.method, table.editions[0], "adtm_percent"]
    shown = rank.printed if table.fully_ranked else rank.same_cells
    return [_pair(shown), f"{adtm.same_cells[0]:.1f}" if adtm.same_cells else ""]


def _legend(table: Table) -> str:
    lines = [what_is_shown(table)]
    if any(metric.timed for metric in table.recipe.metrics):
        lines.append(
            "Settings: what tuning chose, else the registry's defaults. The paper's numbers are from "
            "other hardware and other code: `=` equal as printed, `≠` not. Ours have at least "
            f"{DIGITS} digits."
        )
        return "  \n".join(lines)
    if table.recipe.paper is not None:
        p_values = all(metric.name.endswith("_p") for metric in table.recipe.metrics)
        near = (
            "on the same side of 0.05"
            if p_values
            else "within noise (shown to be closer than the printed standard deviation between runs; where "
            f"none is printed, {SHARE:.0%} of the number)"
        )
        lines[0] += f" Against the paper: `=` equal as printed, `≈` {near}, `≠` differs."
    for edition in table.editions:
        words = Counter(r.verdict.word for r in table.shown if r.edition == edition)
        counts = ", ".join(f"{words[word]} {word}" for word in WORDS if words[word])
        if counts:
            lines.append(f"{edition} = {MEANING[edition]}: {counts}.")
    if any(result.unconverged for result in table.shown):
        lines.append(FLAGGED)
    if table.recipe.rank and table.ranked[0]:
        methods, datasets = table.ranked
        lines.append(
            f"Rank: mean ± standard deviation over datasets ({', '.join(datasets)}) among "
            f"{len(methods)} methods, 1 = best; {TIES[table.recipe.rank.ties]}, missing cells "
            f"{MISSING[table.recipe.rank.missing]}. ADTM: 0 = the worst of these methods on every "
            f"dataset, 100 = the best on every dataset."
        )
        lines += _about_paper_ranks(table)
    return "  \n".join(lines)


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


def _about_paper_ranks(table: Table) -> list[str]:
    ranks_here = [s for s in table.summaries.values() if s.name == "mean_rank"]
    ranks_here = [s for s in ranks_here if s.edition == table.editions[0] and s.same_cells]
    if not ranks_here:
        return []
    if not table.fully_ranked:
        return ["The paper's Rank and ADTM are computed from its printed values of the same cells."]
    odd = [s for s in ranks_here if s.printed and _pair(s.printed) != _pair(s.same_cells)]
    labels = {row.method: row.label for row in table.rows}
    text = "; ".join(f"{labels[s.method]}, {_pair(s.same_cells)}" for s in odd)
    return (
        [f"The paper's Rank is as printed; its cells give another one for {text}."] if odd else []
    )


# CSV ---------------------------------------------------------------------------------------------


def to_csv(table: Table) -> str:
    """One line per number, rounded as the paper prints it; a gap is a line without one.

    A cell that failed to converge has a line more, with the number of its runs that failed. Values
    over datasets follow the cells, with an empty dataset: `mean_rank` beside the printed rank, and
    `mean_rank_same_cells` beside the paper's rank over exactly our methods and datasets.
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
            _numbers(ours, decimals),
            _numbers(printed, known.decimals if known else 2),
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
        line(s.method, "", s.name, s.ours, s.n, s.edition, s.printed, s.verdict.word)
        if s.same_verdict:
            same = f"{s.name}_same_cells"
            line(s.method, "", same, s.ours, s.n, s.edition, s.same_cells, s.same_verdict.word)
    return text.getvalue().rstrip("\n")


def _numbers(pair: Pair | None, decimals: int) -> list[str]:
    return ["" if x is None else f"{x:.{decimals}f}" for x in pair or (None, None)]


# LaTeX -------------------------------------------------------------------------------------------

COLOURS = ("008080", "7030A0", "C65911")
"""First, second and third on a dataset, as in the paper."""

PREAMBLE = "% needs amsmath, booktabs, graphicx, multirow and \\usepackage[table]{xcolor}"


def to_latex(table: Table) -> str:
    """One table per edition, laid out like the paper's Table 2; gaps are dashes."""
    return "\n\n".join([PREAMBLE, *(_latex(table, edition) for edition in table.editions)])


def _latex(table: Table, edition: str) -> str:
    columns = table.recipe.columns
    ranked = bool(table.ranked[0])
    places = {column: _places(table, edition, *column) for column in columns}
    # Smaller ranks are better.
    overall = {m: table.summaries[m, edition, "mean_rank"].ours for m in table.ranked[0]}
    rank_places = _top({m: -pair[0] for m, pair in overall.items() if pair})
    lines = []
    for family, group in itertools.groupby(table.rows, key=lambda row: row.family):
        rows = list(group)
        lines.append("\\midrule")
        title = f"\\rotatebox{{90}}{{\\textit{{{_tex(family.capitalize())}}}}}"
        lines.append(f"\\multirow{{{len(rows)}}}{{*}}{{{title}}}")
        for row in rows:
            cells = [
                _latex_cell(table, row, edition, *column, places[column].get(row.method))
                for column in columns
            ]
            if ranked:
                cells.append(_latex_pair(overall.get(row.method), 2, rank_places.get(row.method)))
            lines.append(f"& {_tex(row.label)} & {' & '.join(cells)} \\\\")
    heads = [_tex(_heading(table, *column)) for column in columns] + ["\\textbf{Rank}"] * ranked
    star = "; $^{*}$ prescribed settings" if edition == "published" else ""
    if any(result.unconverged for result in table.shown):
        star += "; $^{\\dagger}$ failed convergence"
    if ranked and not table.fully_ranked:
        methods, datasets = table.ranked
        star += f"; ranks among {len(methods)} methods on {_tex(', '.join(datasets))}"
    return "\n".join(
        [
            "\\begin{table*}[t]",
            "\\centering",
            f"\\caption{{{_tex(table.recipe.title)} ({edition} settings{star}).}}",
            f"\\label{{tab:{table.recipe.name}-{edition}}}",
            "\\resizebox{\\textwidth}{!}{",
            f"\\begin{{tabular}}{{ll{'r' * len(columns)}{'|r' * ranked}}}",
            "\\toprule",
            f"\\multicolumn{{2}}{{l}}{{Methods}} & {' & '.join(heads)} \\\\",
            *lines,
            "\\bottomrule",
            "\\end{tabular}",
            "}",
            "\\end{table*}",
        ]
    )


def _latex_cell(
    table: Table, row: Row, edition: str, dataset: str, metric: Metric, place: int | None
) -> str:
    result = table.in_edition(row.method, dataset, metric.name, edition)
    if result is None or not result.complete or result.mean is None:
        return "$-$"
    marks = ("*" if result.edition != edition else "") + "\\dagger" * bool(result.unconverged)
    pair, decimals = (result.mean, result.shown_std), metric.our_decimals(result.mean)
    return _latex_pair(pair, decimals, place) + (f"$^{{{marks}}}$" if marks else "")


def _latex_pair(pair: Pair | None, decimals: int, place: int | None) -> str:
    if pair is None:
        return "$-$"
    mean, std = _numbers(pair, decimals)
    if place is not None:
        mean = f"{{\\color[HTML]{{{COLOURS[place]}}} \\textbf{{{mean}}}}}"
    return mean + (f"$_{{\\pm\\text{{{std}}}}}$" if std else "")


def _places(table: Table, edition: str, dataset: str, metric: Metric) -> dict[str, int]:
    """The three best methods of a column; those that print alike share a place."""
    means = {}
    for row in table.rows:
        result = table.in_edition(row.method, dataset, metric.name, edition)
        if result and result.complete and result.mean is not None:
            mean = round(result.mean, metric.our_decimals(result.mean))
            means[row.method] = -mean if metric.lower else mean
    return _top(means)


def _top(values: dict[str, float]) -> dict[str, int]:
    order = [row[0] for row in ranks([[value] for value in values.values()])] if values else []
    places = {m: int(rank) - 1 for m, rank in zip(values, order, strict=True) if rank is not None}
    return {method: place for method, place in places.items() if place < len(COLOURS)}


def _tex(text: str) -> str:
    return "".join(f"\\{c}" if c in "%&_#$" else c for c in text)


# JSON --------------------------------------------------------------------------------------------


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
        "remedy": (gap.remedy([result.model or result.method], [result.dataset]) or None) if gap else None,
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
        "verdict": asdict(summary.verdict),
        "paper_same_cells": pair(summary.same_cells),
        "same_cells_verdict": asdict(summary.same_verdict) if summary.same_verdict else None,
    }


FORMATS: dict[str, Callable[[Table], str]] = {
    "md": to_markdown,
    "csv": to_csv,
    "tex": to_latex,
    "json": to_json,
}
