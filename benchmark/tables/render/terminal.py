"""A built table for a terminal: method x dataset, at most 100 columns wide.

A cell is our mean with the mark of its verdict, and behind it the printed mean. What has no number of
ours is told in a line below instead of taking a column.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Sequence

from benchmark.tables.convergence import MARK
from benchmark.tables.recipes import Metric
from benchmark.tables.render.words import DASH, DASHES, MARKS, has_dashes, heading, rank_text
from benchmark.tables.table import Result, Row, Table
from benchmark.text import DIM, PLAIN

WIDTH = 100
BETWEEN = "  "
Cell = tuple[str, str]
"""Our text and the paper's."""


def to_terminal(table: Table, paper: bool = True, grey: bool = False) -> str:
    """Without `paper` only our numbers; `grey` dims the paper's."""
    shown = [
        column
        for column in table.recipe.columns
        if any(_result(table, row, *column) for row in table.rows)
    ]
    heads = [heading(table, *column) for column in shown] + ["rank"] * bool(table.ranked[0])
    lines: list[tuple[str, list[Cell]]] = []
    family = ""
    for row in table.rows:
        cells = [_cell(table, row, *column, paper) for column in shown]
        if table.ranked[0]:
            cells.append(_rank(table, row, paper))
        if not any(ours or theirs for ours, theirs in cells):
            continue
        if row.family != family and lines:
            lines.append(("", []))
        family = row.family
        lines.append((row.label, cells))
    parts = [textwrap.fill(table.recipe.title, WIDTH)]
    if shown:
        parts += _blocks(lines, heads, grey)
    told = [_key(table, paper)] if shown else []
    if paper and has_dashes(table):
        told.append(DASHES)
    parts += [textwrap.fill(text, WIDTH) for text in (*told, *_silent(table, shown, paper))]
    return "\n\n".join(parts)


def _result(table: Table, row: Row, dataset: str, metric: Metric) -> Result | None:
    """Our number by the paper's rule, if there is one."""
    result = table.results.get((row.method, dataset, metric.name, "rule"))
    return result if result and result.mean is not None else None


def _cell(table: Table, row: Row, dataset: str, metric: Metric, paper: bool) -> Cell:
    result = _result(table, row, dataset, metric)
    printed = table.recipe.printed(row.method, dataset, metric.name)
    theirs = ""
    if paper and printed:
        theirs = DASH if printed.mean is None else f"{printed.mean:.{metric.decimals}f}"
    if result is None or result.mean is None:
        return DASH if theirs else "", theirs
    flag = MARK if result.unconverged else ""
    mark = "…" if result.gap else MARKS.get(result.verdict.word, " ")
    return f"{result.mean:.{metric.our_decimals(result.mean)}f}{flag}{mark}", theirs


def _rank(table: Table, row: Row, paper: bool) -> Cell:
    rank = table.summaries[row.method, "rule", "mean_rank"]
    theirs = f"{rank.same_cells[0]:.2f}" if paper and rank.same_cells else ""
    return rank_text((rank.ours[0], None), rank.n) if rank.ours else "", theirs


def _blocks(lines: Sequence[tuple[str, list[Cell]]], heads: Sequence[str], grey: bool) -> list[str]:
    """The columns in as many blocks as the width asks for, each with the methods' names."""
    name = max(len(label) for label, _ in lines)
    widths = [
        [max((len(cells[i][side]) for _, cells in lines if cells), default=0) for side in (0, 1)]
        for i in range(len(heads))
    ]
    for head, pair in zip(heads, widths, strict=True):
        pair[0] += max(0, len(head) - _wide(pair))
    blocks: list[list[int]] = [[]]
    used = name
    for i, pair in enumerate(widths):
        need = len(BETWEEN) + _wide(pair)
        if blocks[-1] and used + need > WIDTH:
            blocks.append([])
            used = name
        blocks[-1].append(i)
        used += need
    texts = []
    for block in blocks:
        rows = [BETWEEN.join([" " * name, *(heads[i].rjust(_wide(widths[i])) for i in block)])]
        for label, cells in lines:
            shown = [_text(cells[i], widths[i], grey) for i in block] if cells else []
            rows.append(BETWEEN.join([label.ljust(name), *shown]).rstrip())
        texts.append("\n".join(rows))
    return texts


def _wide(pair: Sequence[int]) -> int:
    return pair[0] + pair[1] + bool(pair[1])


def _text(cell: Cell, widths: Sequence[int], grey: bool) -> str:
    ours, theirs = cell[0].rjust(widths[0]), cell[1].rjust(widths[1])
    if not widths[1]:
        return ours
    return f"{ours} {DIM}{theirs}{PLAIN}" if grey and theirs.strip() else f"{ours} {theirs}"


def _key(table: Table, paper: bool) -> str:
    beside = "Ours, with the paper's beside it. " if paper else ""
    ranked = ""
    if table.ranked[0]:
        ranked = f" Rank: mean over datasets (in brackets) among {len(table.ranked[0])} methods"
        theirs = (
            "; the paper's, from its printed values of the same cells"
            if not table.fully_ranked
            else ""
        )
        ranked += f"{theirs if paper else ''}."
    return (
        f"{beside}= equal as printed, ≈ equivalent, ≠ different, ? inconclusive, … fewer runs than "
        f"planned, {MARK} failed convergence.{ranked} --format md explains each and gives standard deviations."
    )


def _silent(table: Table, shown: Sequence[tuple[str, Metric]], paper: bool) -> list[str]:
    """What is planned and has no number, by its reason."""
    reasons: dict[str, dict[str, None]] = defaultdict(dict)
    for result in table.shown:
        if result.mean is None and result.edition == "rule" and result.gap:
            reasons[result.gap.reason].setdefault(result.dataset or "all datasets")
    told = [f"{', '.join(datasets)}: {reason}" for reason, datasets in reasons.items()]
    columns = {dataset for dataset, _ in shown}
    empty = [d for d in table.recipe.datasets if d not in columns]
    empty += [
        r.label for r in table.rows if shown and not any(_result(table, r, *c) for c in shown)
    ]
    lines = [f"No numbers yet for {', '.join(empty)}."] if empty else []
    gaps = f"Gaps ({DASH})" if paper and shown else "Gaps"
    return lines + ([f"{gaps}: {'; '.join(told[:6])}."] if told else [])
