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
from benchmark.protocol.choices import EDITION_NAMES, EDITIONS
from benchmark.tables.convergence import MARK
from benchmark.tables.statistics import RUNS
from benchmark.text import grid, mean_std

LEGEND = (
    (
        f"Ours are means of {RUNS} runs. Paper's rule: settings chosen by the paper's rule on its grid. "
        "Recovered settings: those that give the printed cell, found by searching for it; a cell is "
        "judged by them where they were run."
    ),
    (
        "`equal`: every printed digit. `equivalent`: the 90 % interval of the difference lies within "
        "± half the printed standard deviation. `different`: the 95 % interval excludes zero, and "
        "equivalence is not shown. `inconclusive`: neither is shown. Where no test is possible (sizes, "
        "differences of ranks, p-values) a number is equal or different. `within` is the smallest margin "
        "for which agreement would be shown."
    ),
    (
        "The paper's runs and ours share their splits. With s_p and s_o the standard deviations and rho the "
        f"correlation between two trainings on the same splits, the difference has variance (s_p² + s_o² "
        f"- 2 rho s_p s_o) / {RUNS}. rho is measured from repeated seeds, per dataset, for networks and for "
        "the other methods; where it was not, it is 0. `unpaired` is the verdict at rho = 0, the conservative reading. Where no standard "
        "deviation between runs is printed (the ± of numbers of features is between samples), ours "
        "stands for it."
    ),
    (
        "Mean ranks are compared with the ranks of the paper's own cells over the same methods and "
        "datasets, by the intervals of the differences per dataset."
    ),
    (
        "`paper inconsistent`: the printed cell contradicts itself, another cell or the text; the "
        "finding is named, and `python -m benchmark audit` explains it. `not run` includes cells "
        "with fewer runs than planned. `other hardware`: a time; see who is faster than whom."
    ),
    (
        f"`{MARK}`: failed convergence in more than half of our runs, by guessing or by one mask for "
        "all samples; the scores are kept. Where the paper prints a dash for failed convergence, "
        "a cell of ours that failed as well counts as `equal`."
    ),
)
COMPARED = WORDS[:6]


def render(lines: Sequence[Line], form: str, everything: bool = False) -> str:
    """The ledger as md, csv or json; only Markdown leaves anything out."""
    if form == "md":
        return to_markdown(lines, everything)
    return {"csv": to_csv, "json": to_json}[form](lines)


FORMATS = ("md", "csv", "json")


def to_markdown(lines: Sequence[Line], everything: bool = False) -> str:
    """Totals, then table by table what was compared; gaps are counted by their reason."""
    parts = ["# Every printed cell beside ours", _sentence(lines), grid(_totals(lines))]
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
            sentences.append(
                f"{EDITION_NAMES[edition].capitalize()}: {words.total()} cells, {counts}."
            )
    return sentences


def _several(lines: Sequence[Line]) -> bool:
    return len({line.printed.metric for line in lines}) > 1


def _head(lines: Sequence[Line]) -> list[str]:
    metric = ["metric"] * _several(lines)
    return ["method", "dataset", *metric, "paper", *EDITION_NAMES.values(), "verdict", "why"]


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
    *("paper_mean", "paper_std", "difference", "low", "high", "within", "margin", "rho"),
    *("verdict", "unpaired", "why", "finding"),
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
            low, high = verdict.interval or (None, None)
            tests = (verdict.difference, low, high, verdict.within, verdict.margin, verdict.rho)
            writer.writerow(
                [cell.table, cell.method, cell.dataset, cell.metric, edition]
                + [_number(x) for x in (*numbers, *tests)]
                + [
                    verdict.word,
                    verdict.unpaired,
                    verdict.why,
                    line.finding.id if line.finding else "",
                ]
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
