"""The ledger as text: Markdown to read, CSV and JSON to compute with."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from benchmark.judge.audit.findings import printed, table_name
from benchmark.judge.cells.counts import by_kind, listed, recovered
from benchmark.judge.cells.ledger import WORDS, Line, Ours, totals
from benchmark.protocol.choices import EDITION_NAMES, EDITIONS
from benchmark.protocol.registry import label
from benchmark.tables.convergence import MARK
from benchmark.tables.pairing import Rho
from benchmark.tables.statistics import RUNS
from benchmark.text import columns, csv_text, grid, mean_std

LEGEND = (
    (
        f"Ours are means of {RUNS} runs. Paper's rule: settings chosen on validation scores, as the paper says, "
        "in some cells by a cheaper search; a cell is judged by them. Recovered settings: those that give the printed cell, found by "
        "searching for it; they stand beside."
    ),
    (
        "`equal`: every printed digit. `equivalent`: the 90 % interval of the difference lies within "
        "± half the printed standard deviation between runs. `different`: the 95 % interval excludes zero, and "
        "equivalence is not shown. `inconclusive`: neither is shown. Where no test is possible (sizes, "
        "p-values) a number is equal or different; a difference of ranks is inconclusive where other draws "
        'of our runs reach the printed one. "Agrees to within" is the '
        "smallest margin for which agreement would be shown (`within` in CSV and JSON)."
    ),
    (
        "The paper's runs and ours share their splits. With s_p and s_o the standard deviations and rho the "
        f"correlation between two trainings on the same splits, the difference has variance (s_p² + s_o² "
        f"- 2 rho s_p s_o) / {RUNS}. rho is measured from repeated seeds, per dataset, for networks and for "
        "the other methods; a method that was repeated itself takes its own, and where nothing was repeated "
        "rho is 0. Where the paper's settings are others than ours, the runs share less than two seeds of one "
        "setting, and the interval is too narrow; the table has what they share where the paper's settings "
        "are known, which they are of Ridge, SVM and Lasso. All runs of a training have one seed, and seeds differ by "
        f"more than the runs' spread tells: seed (s_p² + s_o²) / {RUNS} is added, with the share that repeated "
        "seeds show for the kind of method (0 where none was repeated). These intervals ask whether the paper's runs and ours agree on these "
        "splits. Whether a difference would hold on new splits is another question, with intervals "
        "several times wider: the pairwise tests and DISCREPANCIES.md ask it. The verdict at rho = 0 is the conservative reading (`unpaired` in CSV and JSON). Where "
        "no standard deviation between runs is printed (the ± of numbers of features is between samples), "
        "ours stands for it in the variance, and nothing counts as equivalent."
    ),
    (
        "Mean ranks are compared with the ranks of the paper's own cells over the same methods and "
        "datasets, by the intervals of the differences per dataset."
    ),
    (
        "`paper inconsistent`: the printed cell contradicts itself, another cell or the text; the "
        "finding is named, and `python -m benchmark audit` explains it. `not run` includes cells "
        "with fewer runs than planned. `other hardware`: a time; reports/times.md compares which methods are faster than which."
    ),
    (
        f"`{MARK}`: failed convergence in more than half of our runs, by guessing or by one mask for "
        "all samples; the scores are kept. Where the paper prints a dash for failed convergence, "
        "a cell of ours that failed as well counts as `equal`."
    ),
)
COMPARED = WORDS[:6]


WIDTH = 100
SHORT = {
    "paper inconsistent": "in doubt",
    "data unavailable": "no data",
    "other hardware": "times",
}
"""Verdicts as heads of narrow columns."""
EXPLAINED = (
    "in doubt: the paper contradicts itself there, see `audit`. times: from other hardware, without a "
    "verdict. no data: the paper's draw of patients is not published."
)


Correlations = Sequence[tuple[str, str, Rho]]
"""Dataset, kind of method, and how much two trainings on the same splits have in common."""


def render(
    lines: Sequence[Line], form: str, everything: bool = False, shared: Correlations = ()
) -> str:
    """The ledger as text, md, csv or json; only text and Markdown leave anything out."""
    if form in ("text", "md"):
        return {"text": to_text, "md": to_markdown}[form](lines, everything, shared)
    return {"csv": to_csv, "json": to_json}[form](lines)


def _shared_rows(shared: Correlations) -> list[list[str]]:
    """The measured correlations, each with its interval and what it was measured from."""
    head = ["dataset", "runs of", "rho", "95 % interval", "from (trainings)"]
    return [
        head,
        *(
            [dataset, kind, f"{rho.value:.2f}", f"{rho.low:.2f} to {rho.high:.2f}"]
            + [", ".join(f"{label(m)} ({n})" for m, n in rho.trainings.items())]
            for dataset, kind, rho in shared
        ),
    ]


def to_text(lines: Sequence[Line], everything: bool = False, shared: Correlations = ()) -> str:
    """For a terminal: what was found; of one table also its cells."""
    parts = [textwrap.fill(text, WIDTH, subsequent_indent="  ") for text in headline(lines)]
    head, *rows = _totals(lines)
    heads = [[SHORT.get(word, word) for word in head], *rows]
    parts.append(columns(heads, right=range(1, len(head))))
    tables = {line.printed.table for line in lines}
    parts.append(textwrap.fill(EXPLAINED, WIDTH))
    if shared:
        parts.append(columns(_shared_rows(shared)))
    if len(tables) > 1:
        parts.append(
            textwrap.fill(
                "Counted above: distinct experiments; in the table: printed cells, repeats included. "
                "--table 2 lists the cells of a table, --why the causes of those that differ, --format "
                "md everything with its reasons.",
                WIDTH,
            )
        )
        return "\n\n".join(parts)
    shown = [line for line in lines if everything or _informative(line)]
    cells = [["", "", *[""] * _several(lines), "paper", "ours", "", "equivalent from"]]
    for line in shown:
        ours, cell = line.ours["rule"], line.printed
        within = ours.verdict.within
        cells.append(
            [label(cell.method).replace("|", " with "), cell.dataset or "all"]
            + [cell.metric.removeprefix("balanced_").replace("_", " ")] * _several(lines)
            + [_short_paper(line), shown_value(ours)]
            + [SHORT.get(line.verdict.word, line.verdict.word)]
            + ["" if within is None else f"±{within:.{ours.decimals}f}"]
        )
    if shown:
        parts.append(columns(cells))
        parts.append(
            textwrap.fill(
                "Equivalent from: the smallest margin for which equivalence would be shown; asked for is half "
                "the printed ±. In the table every printed cell counts, repeats and ranks included; README "
                "counts distinct accuracies.",
                WIDTH,
            )
        )
    if any(line.ours["rule"].same_cells for line in shown):
        parts.append("Ranks: the paper's over the same cells, in brackets as printed.")
    if not everything:
        parts += [textwrap.fill(text.strip(), WIDTH) for text in _gaps(lines)]
    return "\n\n".join(parts)


def to_markdown(lines: Sequence[Line], everything: bool = False, shared: Correlations = ()) -> str:
    """Totals, then table by table what was compared; gaps are counted by their reason."""
    parts = ["# Every printed cell beside ours", "  \n".join(headline(lines))]
    parts += [f"All {len(lines)} printed cells, repeats included, by the paper's rule:"]
    parts += [grid(_totals(lines)), "  \n".join(LEGEND)]
    if shared:
        parts += ["What runs on the same splits share, measured:", grid(_shared_rows(shared))]
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


def headline(lines: Sequence[Line]) -> list[str]:
    """What was found, kind by kind; a number that is printed in several tables counts once."""
    said = [
        f"{kind.capitalize()}, {count.total} distinct ones by the paper's rule: {listed(count.words)}"
        + (f" (at rho = 0: {listed(count.unpaired)})" if count.unpaired != count.words else "")
        + (f"; the settings of {count.cheaper} come from a cheaper search" if count.cheaper else "")
        + "."
        for kind, count in by_kind(lines).items()
    ]
    return [*said, *filter(None, [str(recovered(lines))])]


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
    return [
        *names,
        *metric,
        paper_value(line),
        *values,
        line.verdict.word,
        why(line).replace("|", "/"),
    ]


def paper_value(line: Line) -> str:
    """As printed; a rank beside ours is taken over the same cells, and the printed one stands behind."""
    same = line.ours["rule"].same_cells
    if same is None:
        return printed(line.printed)
    return f"{same[0]:.2f} ({printed(line.printed)} over all)"


def _short_paper(line: Line) -> str:
    """`1.75 [2.00]`: a rank over the same cells, and the printed one over all."""
    same, cell = line.ours["rule"].same_cells, line.printed
    return printed(cell) if same is None else f"{same[0]:.2f} [{cell.mean:.2f}]"


def shown_value(ours: Ours | None) -> str:
    """`83.05 ± 9.93`, with a mark where most runs failed, and the runs where some are missing."""
    if ours is None or ours.mean is None:
        return ""
    flag = f" {MARK}" if ours.unconverged else ""
    runs = f" (n = {ours.n})" if ours.partial else ""
    return mean_std(ours.mean, ours.std, ours.decimals) + flag + runs


def why(line: Line) -> str:
    """The verdict's reason, and that of the mark."""
    failure = line.ours["rule"].unconverged
    return f"{line.verdict.why}; {MARK} {failure}" if failure else line.verdict.why


def _gaps(lines: Sequence[Line]) -> list[str]:
    reasons = Counter(
        (line.verdict.word, line.verdict.why) for line in lines if not _informative(line)
    )
    return [f"{n} x {word}: {why}." for (word, why), n in reasons.most_common()]


COLUMNS = (
    *("table", "method", "dataset", "metric", "edition", "mean", "std", "n"),
    *("paper_mean", "paper_std", "difference", "low", "high", "within", "margin", "rho", "seed"),
    *("verdict", "unpaired", "why", "finding"),
    "failed_convergence",
)


def to_csv(lines: Sequence[Line]) -> str:
    """One line per cell and edition."""
    rows = []
    for line in lines:
        cell = line.printed
        for edition, ours in line.ours.items():
            verdict = ours.verdict
            numbers = (ours.mean, ours.std, ours.n, cell.mean, cell.std)
            interval = verdict.interval or (None, None)
            tests = verdict.difference, *interval, verdict.within, verdict.margin
            rows.append(
                [cell.table, cell.method, cell.dataset, cell.metric, edition]
                + [_number(x) for x in (*numbers, *tests, verdict.shared.rho, verdict.shared.seed)]
                + [verdict.word, verdict.unpaired, verdict.why]
                + [line.finding.id if line.finding else "", str(ours.unconverged or "")]
            )
    return csv_text(COLUMNS, rows)


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
                "ours": {edition: asdict(ours) for edition, ours in line.ours.items()},
                "finding": line.finding.id if line.finding else None,
            }
            for line in lines
        ],
    }
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
