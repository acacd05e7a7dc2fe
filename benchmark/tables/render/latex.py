"""A built table as LaTeX, laid out like the paper's Table 2."""

from __future__ import annotations

import itertools

from benchmark import paper
from benchmark.protocol.choices import EDITION_NAMES
from benchmark.tables.recipes import Metric
from benchmark.tables.render.words import heading, numbers
from benchmark.tables.statistics import ranks
from benchmark.tables.table import Pair, Row, Table

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
    heads = [_tex(heading(table, *column)) for column in columns] + ["\\textbf{Rank}"] * ranked
    star = "; $^{*}$ by the paper's rule" if edition == "recovered" else ""
    if any(result.unconverged for result in table.shown):
        star += "; $^{\\dagger}$ failed convergence"
    if ranked and not table.fully_ranked:
        methods, datasets = table.ranked
        star += f"; ranks among {len(methods)} methods on {_tex(', '.join(datasets))}"
    return "\n".join(
        [
            "\\begin{table*}[t]",
            "\\centering",
            f"\\caption{{{_tex(table.recipe.title)} ({EDITION_NAMES[edition]}{star}).}}",
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
    mean, std = numbers(pair, decimals)
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
            means[row.method] = -mean if metric.name in paper.SMALLER_IS_BETTER else mean
    return _top(means)


def _top(values: dict[str, float]) -> dict[str, int]:
    order = [row[0] for row in ranks([[value] for value in values.values()])] if values else []
    places = {m: int(rank) - 1 for m, rank in zip(values, order, strict=True) if rank is not None}
    return {method: place for method, place in places.items() if place < len(COLOURS)}


def _tex(text: str) -> str:
    return "".join(f"\\{c}" if c in "%&_#$" else c for c in text)
