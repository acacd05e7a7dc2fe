"""Causes as text: blocks for a terminal, Markdown to read, CSV and JSON to compute with."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from benchmark.judge.audit.findings import printed, table_name
from benchmark.judge.causes.find import (
    DISCREPANCY,
    INCONSISTENT,
    KINDS,
    NOISE,
    NONE,
    RECOVERED,
    UNEXPLAINED,
    VERSION,
    Cause,
    place_of,
)
from benchmark.judge.causes.tried import FEWEST, LEVEL
from benchmark.judge.cells.render import shown_value
from benchmark.protocol.registry import label
from benchmark.text import columns, csv_text, grid

ABOUT = {
    RECOVERED: "settings outside the rule or the grid that give every printed digit, or a rank that they change",
    VERSION: "other data or another library give it",
    INCONSISTENT: "the paper says two things",
    DISCREPANCY: "text, code and numbers disagree, and another side of that gives it; or the paper counts another thing",
    NOISE: "another seed gives it, or another setting that validation cannot tell from the chosen one",
    UNEXPLAINED: "nothing that was tried is shown to give it; where the nearest is inconclusive, more runs "
    "could show it",
    NONE: "nothing was tried yet",
}


def to_text(found: Sequence[Cause]) -> str:
    """For a terminal: how many of each kind, then one block per experiment."""
    kinds = Counter(cause.kind for cause in found)
    parts = [f"{len(found)} printed cells differ by the paper's rule."]
    parts.append(columns([[str(kinds[kind]), kind] for kind in KINDS if kinds[kind]], right=[0]))
    same: dict[str, list[Cause]] = {}
    for cause in found:
        same.setdefault(cause.line.ours["rule"].experiment, []).append(cause)
    for cause, *others in same.values():
        method, dataset, metric, paper, ours, kind, text = _row(cause)
        where = ", ".join(map(str, dict.fromkeys(c.line.printed.table for c in (cause, *others))))
        head = f"{method} on {dataset}, {metric.replace('_', ' ')} (Table {where})"
        lines = [head, f"paper {paper}, ours {ours}", f"{kind}: {text}"]
        parts.append("\n".join(_indented(line, i) for i, line in enumerate(lines)))
    parts.append("--format md lists everything that was tried.")
    return "\n\n".join(parts)


def _indented(text: str, line: int) -> str:
    start = "  " * bool(line)
    return textwrap.fill(text, 100, initial_indent=start, subsequent_indent="    ")


def to_markdown(found: Sequence[Cause]) -> str:
    """How many of each kind, then cell by cell with everything that was tried."""
    kinds = Counter(cause.kind for cause in found)
    head = f"{len(found)} cells differ by the paper's rule."
    counts = [["cause", "cells", "that is"]]
    counts += [[kind, str(kinds[kind]), ABOUT[kind]] for kind in KINDS if kinds[kind]]
    parts = ["# Why cells differ", head, grid(counts), *LEGEND]
    for table in dict.fromkeys(cause.line.printed.table for cause in found):
        mine = [cause for cause in found if cause.line.printed.table == table]
        rows = [["method", "dataset", "metric", "paper", "ours", "cause", "evidence"]]
        rows += [_row(cause) for cause in mine]
        parts += [f"## {table_name(table)}", grid(rows)]
    parts += ["## Everything that was tried", *_lists(found)]
    return "\n\n".join(parts)


LEGEND = (
    (
        f"Beside the setting that a cell stands for, every other one with at least {FEWEST} runs on the same "
        "splits is held against the printed cell: the rest of the grid, other seeds, switches of the register of "
        "discrepancies, other variants of the data, other readings of the records. It agrees if its mean is "
        "equal or equivalent and its spread can be the printed one, too. None of this was used to choose "
        "anything: a setting that is found by the printed cell is evidence about the paper, not a result."
    ),
    (
        "A switch explains a cell if the text, the released code or an official code uses its value, and if it "
        "moves no other cell of the row away from the paper; one change comes before several. Other values "
        "are tried, too, and never count as a cause."
    ),
    (
        "Another setting of the grid is a draw if the plain paired test between its validation scores and "
        f"those of the chosen setting has p of {LEVEL:g} or more. The paper chose on the splits that we have, so "
        "which splits were drawn cannot have changed its choice, and the test that corrects for them would "
        "call almost everything a draw; only chance in training can have. The plain test still counts what "
        "the splits add to the difference, and so is generous rather than strict. Methods without "
        "randomness have no draws where the whole grid was searched. That print lies between two values is "
        "noise only if both are seeds of one setting."
    ),
)


def _row(cause: Cause) -> list[str]:
    cell, ours = cause.line.printed, cause.line.ours["rule"]
    kind = f"{cause.kind} ({cause.register})" if cause.register else cause.kind
    names = [label(cell.method).replace("|", " "), cell.dataset or "all", cell.metric]
    values = [cause.paper or printed(cell), shown_value(ours)]
    return [*names, *values, kind, cause.text.replace("|", "/")]


def _lists(found: Sequence[Cause]) -> list[str]:
    """Once per model, dataset and metric, however many tables print the cell."""
    seen, parts = set(), []
    for cause in found:
        cell, experiment = cause.line.printed, cause.line.ours["rule"].experiment
        if not cause.tried or experiment in seen:
            continue
        seen.add(experiment)
        decimals = cause.line.ours["rule"].decimals
        names = f"{label(cell.method)} on {cell.dataset}, {cell.metric}".replace("|", " ")
        head = f"**{names}**: printed {printed(cell)}, ours {shown_value(cause.line.ours['rule'])}"
        parts.append("\n".join([head, "", *(f"- {one.text(decimals)}" for one in cause.tried)]))
    return parts


def to_json(found: Sequence[Cause]) -> str:
    rows = [
        {
            **{name: value for name, value in asdict(cause).items() if name != "line"},
            **asdict(cause.line.printed),
        }
        for cause in found
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False)


def to_csv(found: Sequence[Cause]) -> str:
    rows = [[*place_of(c.line), c.kind, c.register, c.text, len(c.tried)] for c in found]
    head = ["table", "method", "dataset", "metric", "kind", "register", "text", "tried"]
    return csv_text(head, rows)


FORMATS = {"text": to_text, "md": to_markdown, "csv": to_csv, "json": to_json}
