"""A built table as Markdown: one line per method and source, remarks numbered below."""

from __future__ import annotations

import itertools

from benchmark.tables.convergence import MARK
from benchmark.tables.recipes import Metric
from benchmark.tables.render.words import (
    DASH,
    MARKS,
    heading,
    legend,
    our_summary,
    pair_text,
    paper_summary,
    source_name,
    value_text,
)
from benchmark.tables.table import Gap, Result, Row, Table
from benchmark.text import grid


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
    """The commands for all cells of a remark."""
    cells = [(result.model or result.method, result.dataset) for result in results]
    commands = gap.remedy(cells) if gap else []
    return f". Run {' and '.join(f'`{command}`' for command in commands)}." if commands else "."


def to_markdown(table: Table) -> str:
    """One line per method and source, so that a column reads paper, ours, ours from top to bottom.

    A method that has nothing yet for one single reason shows the paper's line only.
    """
    columns, notes = table.recipe.columns, _Notes()
    ranked = bool(table.ranked[0])
    head = ["Method", "Source", *(heading(table, d, m) for d, m in columns)]
    lines = [head + ["Rank", "ADTM"] * ranked]
    for family, rows in itertools.groupby(table.rows, key=lambda row: row.family):
        lines.append([f"*{family.capitalize()}*"] + [""] * (len(lines[0]) - 1))
        for row in rows:
            lines += _method_lines(table, row, columns, notes, ranked)
    parts = [f"## {table.recipe.title}", grid(lines), legend(table)]
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
            "" if p is None else DASH if p.mean is None else pair_text((p.mean, p.std), m.decimals)
            for p, (_, m) in zip(printed, columns, strict=True)
        ]
        lines.append(["paper", *cells, *(paper_summary(table, row) if ranked else [])])
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
                summary = our_summary(table, row, edition) if ranked else []
                lines.append([source_name(table, row, edition), *cells, *summary])
    # The method is named once, on its first line.
    return [[label if i == 0 else "", *line] for i, line in enumerate(lines)]


def _cell(result: Result, metric: Metric, notes: _Notes) -> str:
    flag = MARK if result.unconverged else ""
    mark = MARKS.get(result.verdict.word, "")
    parts = [value_text(result, metric) or DASH, flag, mark, notes.mark(result)]
    return " ".join(filter(None, parts))
