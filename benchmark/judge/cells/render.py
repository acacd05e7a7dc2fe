"""The ledger as text: Markdown to read, CSV and JSON to compute with."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from benchmark.judge.audit.findings import label, printed, table_name
from benchmark.judge.cells.ledger import WORDS, Line, Ours, totals
from benchmark.protocol.choices import EDITIONS
from benchmark.tables.computed import DRAWS
from benchmark.tables.convergence import MARK
from benchmark.tables.statistics import ALPHA, RUNS, SHARE
from benchmark.text import grid, mean_std

LEGEND = (
    (
        f"Ours are means of {RUNS} runs. `prescribed`: settings chosen by the paper's rule; "
        "`published`: settings known to reproduce the printed cell. A cell is judged by the second "
        "where it was run."
    ),
    (
        "`exact`: mean and standard deviation round to what is printed. `within noise`: the means are shown "
        "to lie closer than one printed standard deviation, by a test of equivalence (two one-sided Welch "
        f"t-tests, p < {ALPHA}); `differs`: that is not shown. With {RUNS} runs and equal standard deviations "
        "gaps up to half a standard deviation pass. The test takes the two sides for independent although "
        "they share their splits, so it errs towards `differs`; `p_welch` is of a test of difference."
    ),
    (
        "Where no standard deviation between runs is printed (the ± of numbers of features is between "
        f"samples), the margin is {SHARE:.0%} of the printed number, and ours stands in the test for "
        "both sides. Three kinds of cells count as `within noise` unless shown to differ: mean "
        "ranks, by a sign-flip test over datasets; rank differences, by the range of 95 % of "
        f"{DRAWS} redraws of our runs; p-values, by the side of {ALPHA} that they are on."
    ),
    (
        "`paper inconsistent`: the printed cell contradicts itself, another cell or the text; the "
        "finding is named, and `python -m benchmark audit` explains it. `not run` includes cells "
        "with fewer runs than planned."
    ),
    (
        f"`{MARK}`: failed convergence in more than half of our runs, by guessing or by one mask for "
        "all samples; the scores are kept. Where the paper prints a dash for failed convergence, "
        "a cell of ours that failed as well counts as `exact`."
    ),
)
COMPARED = WORDS[:4]


def render(lines: Sequence[Line], form: str, everything: bool = False) -> str:
    """The ledger as md, csv or json; only Markdown leaves anything out."""
    if form == "md":
        return to_markdown(lines, everything)
    return {"csv": to_csv, "json": to_json}[form](lines)


FORMATS = ("md", "csv", "json")


def to_markdown(lines: Sequence[Line], everything: bool = False) -> str:
    """Totals, then table by table what was compared; gaps are counted by their reason."""
    parts = ["# Every published cell beside ours", _sentence(lines), grid(_totals(lines))]
    parts += ["  \n".join(_editions(lines)), "  \n".join(LEGEND)]
    for table in dict.fromkeys(line.printed.table for line in lines):
        mine = [line for line in lines if line.printed.table == table]
        parts.append(f"## {table_name(table)}")
        rows = [line for line in mine if everything or _informative(line)]
        if rows:
            parts.append(grid([_head(mine), *(_row(line, mine) for line in rows)]))
        if not everything and (gaps := _gaps(mine)):
            parts.append("  \n".join(gaps))
    return "\n\n".join(parts)


def _informative(line: Line) -> bool:
    """Whether there is anything to see: a comparison, or at least a value of ours."""
    return line.verdict.word in COMPARED or any(ours.has_result for ours in line.ours.values())


def _sentence(lines: Sequence[Line]) -> str:
    words = Counter(line.verdict.word for line in lines)
    return f"{len(lines)} cells: " + ", ".join(f"{words[w]} {w}" for w in WORDS if words[w]) + "."


def _totals(lines: Sequence[Line]) -> list[list[str]]:
    counts = totals(lines)
    everything = sum(counts.values(), Counter[str]())
    body = [(table_name(table), words) for table, words in counts.items()]
    return [
        ["", "cells", *WORDS],
        *(
            [name, str(words.total()), *(str(words[w]) for w in WORDS)]
            for name, words in [*body, ("all", everything)]
        ),
    ]


def _editions(lines: Sequence[Line]) -> list[str]:
    sentences = []
    for edition in EDITIONS:
        words = sum(totals(lines, edition).values(), Counter[str]())
        counts = ", ".join(f"{words[w]} {w}" for w in WORDS if words[w])
        if counts:
            sentences.append(f"{edition}: {words.total()} cells, {counts}.")
    return sentences


def _several(lines: Sequence[Line]) -> bool:
    return len({line.printed.metric for line in lines}) > 1


def _head(lines: Sequence[Line]) -> list[str]:
    metric = ["metric"] * _several(lines)
    return ["method", "dataset", *metric, "paper", *EDITIONS, "verdict", "why"]


def _row(line: Line, lines: Sequence[Line]) -> list[str]:
    cell = line.printed
    metric = [cell.metric] * _several(lines)
    values = [shown_value(line.ours.get(edition)) for edition in EDITIONS]
    names = [label(cell.method).replace("|", " "), cell.dataset or "all"]
    return [*names, *metric, printed(cell), *values, line.verdict.word, why(line).replace("|", "/")]


def shown_value(ours: Ours | None) -> str:
    """`83.05 ± 9.93`, with a mark where most runs failed, and the runs where some are missing."""
    if ours is None or ours.mean is None:
        return ""
    flag = f" {MARK}" if ours.unconverged else ""
    runs = f" (n = {ours.n})" if ours.partial else ""
    return mean_std(ours.mean, ours.std, ours.decimals) + flag + runs


def why(line: Line) -> str:
    """The verdict's reason, and that of the mark."""
    failure = line.ours[line.edition].unconverged
    return f"{line.verdict.why}; {MARK} {failure}" if failure else line.verdict.why


def _gaps(lines: Sequence[Line]) -> list[str]:
    reasons = Counter(
        (line.verdict.word, line.verdict.why) for line in lines if not _informative(line)
    )
    return [f"{n} x {word}: {why}." for (word, why), n in reasons.most_common()]


COLUMNS = (
    *("table", "method", "dataset", "metric", "edition", "mean", "std", "n"),
    *("paper_mean", "paper_std", "difference", "p", "p_welch", "verdict", "why", "finding"),
    "failed_convergence",
)


def to_csv(lines: Sequence[Line]) -> str:
    """One line per cell and edition."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in lines:
        cell = line.printed
        for edition, ours in line.ours.items():
            verdict = ours.verdict
            numbers = (ours.mean, ours.std, ours.n, cell.mean, cell.std)
            tests = (verdict.difference, verdict.p, verdict.p_welch)
            writer.writerow(
                [cell.table, cell.method, cell.dataset, cell.metric, edition]
                + [_number(x) for x in (*numbers, *tests)]
                + [verdict.word, verdict.why, line.finding.id if line.finding else ""]
                + [str(ours.unconverged or "")]
            )
    return text.getvalue().rstrip("\n")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def to_json(lines: Sequence[Line]) -> str:
    """Unrounded numbers, tests and reasons of every cell."""
    value = {
        "cells": len(lines),
        "totals": {table_name(t): dict(words) for t, words in totals(lines).items()},
        "editions": {
            edition: dict(sum(totals(lines, edition).values(), Counter[str]()))
            for edition in EDITIONS
        },
        "legend": LEGEND,
        "lines": [
            {
                **asdict(line.printed),
                "verdict": line.verdict.word,
                "judged_by": line.edition,
                "ours": {edition: asdict(ours) for edition, ours in line.ours.items()},
                "finding": line.finding.id if line.finding else None,
            }
            for line in lines
        ],
    }
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
