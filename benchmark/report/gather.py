"""Everything the page shows, as one plain value that becomes its data."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import benchmark
from benchmark.judge import pairwise, times
from benchmark.judge.answer import Answer, answer
from benchmark.judge.audit import audit, doubtful
from benchmark.judge.audit.findings import FAILS, HOLDS, Finding
from benchmark.judge.cells import ledger
from benchmark.judge.cells.counts import distinct
from benchmark.judge.cells.ledger import INCONSISTENT, Line
from benchmark.judge.cells.render import LEGEND, paper_value, shown_value, why
from benchmark.judge.claims.render import percent
from benchmark.judge.pairwise import Pair
from benchmark.judge.times import Order
from benchmark.protocol.registry import label
from benchmark.protocol.stored import or_told
from benchmark.report.archive import SPLITS, Archive, surroundings
from benchmark.report.tables import Gathered, editions, filled
from benchmark.runner.records import Store
from benchmark.tables import descriptive, pairing
from benchmark.tables.convergence import MARK
from benchmark.tables.pairing import Rho
from benchmark.tables.render.words import FLAGGED, MARKS
from benchmark.tables.table import Table

if TYPE_CHECKING:
    from benchmark.experiments import fidelity, fingerprint
    from benchmark.judge.causes.find import Cause
    from benchmark.judge.claims.check import Claim, Outcome
    from benchmark.judge.discrepancies import Discrepancy

MEANINGS = {
    "equal": "mean and standard deviation equal in every printed digit",
    "equivalent": "the 90 % interval of the difference lies within half the printed standard deviation between runs",
    "different": "the 95 % interval of the difference excludes zero, and equivalence is not shown",
    "inconclusive": "neither is shown",
    INCONSISTENT: "the printed number contradicts itself, another number or the text",
    "incomplete": "some of the planned runs are there",
    "failed": "all runs failed",
    "not run": "no runs yet, or not all of them",
    "data unavailable": "the paper's data were not at hand",
    "not in paper": "the paper prints nothing to compare with",
    "other hardware": "a time: only who is faster than whom can be compared",
}
SYMBOLS = {
    **MARKS, INCONSISTENT: "!", "incomplete": "…", "failed": "×", "not run": "–",
    "data unavailable": "∅", "not in paper": "·", "other hardware": "◦",
}  # fmt: skip
"""A verdict is never told by its colour alone."""

LARGEST = 5
"""How many differences the overview names."""


@dataclass(frozen=True)
class Judged:
    """What we make of the paper: its cells, its consistency, its sentences, its code."""

    lines: list[Line]
    findings: list[Finding]
    claims: list[Claim]
    discrepancies: list[Discrepancy]
    causes: list[Cause]
    """Why cells differ."""
    pairs: list[Pair]
    """Our methods against each other."""
    answer: Answer
    """What it all comes to."""
    times: list[Order]
    """Who is faster than whom, in the paper and here."""
    rho: list[tuple[str, str, Rho]]
    """Dataset, kind of method, and how much two trainings on the same splits have in common."""
    fidelity: dict[str, fidelity.Finding | None]
    """Our methods on their own papers' tasks; None where that was not run."""
    prints: fingerprint.Prints
    """Other data held against Table 22."""


def judge(store: Store, built: Mapping[str, Table]) -> Judged:
    """All judgements, from tables that are built already."""
    from benchmark.experiments import fidelity, fingerprint
    from benchmark.judge import discrepancies
    from benchmark.judge.causes import find
    from benchmark.judge.claims import check

    lines, claims = ledger.compare(built), check.judge_all(built)
    pairs = pairwise.pairs(built["table2"])
    return Judged(
        lines,
        audit(),
        claims,
        discrepancies.build(store.root, store),
        find.causes(store, lines),
        pairs,
        answer(built["table2"], lines, claims),
        times.orders(built),
        pairing.measured(store, built["table2"].recipe),
        {e.name: or_told(partial(fidelity.read, store.root, e)) for e in fidelity.chosen(None)},
        or_told(partial(fingerprint.read, store.root)) or fingerprint.nothing(),
    )


def basics() -> dict[str, Any]:
    """What every page needs to show a cell."""
    return {
        "version": benchmark.__version__,
        "splits": SPLITS,
        "words": [
            {"word": word, "symbol": SYMBOLS[word], "meaning": meaning}
            for word, meaning in MEANINGS.items()
        ],
        "flag": {"mark": MARK, "meaning": FLAGGED},
    }


def gather(
    archive: Archive, built: Mapping[str, Table], judged: Judged, figures: Path
) -> dict[str, Any]:
    """The page's data, from records, tables, judgements and the drawings in `figures`."""
    gathered = Gathered(archive, doubtful(judged.findings))
    shown_tables = [gathered.table(table) for table in built.values()]
    labels = {(t.recipe.paper, row.method): row.label for t in built.values() for row in t.rows}
    whys = {id(cause.line): cause for cause in judged.causes}
    return {
        **basics(),
        "editions": editions(),
        "answer": asdict(judged.answer),
        "times": [asdict(order) for order in judged.times],
        "rho": [{"dataset": d, "kind": kind, **asdict(rho)} for d, kind, rho in judged.rho],
        "legend": LEGEND,
        "tables": shown_tables,
        "described": [_described(number) for number in descriptive.TITLES],
        "lines": [_line(line, labels, whys.get(id(line))) for line in judged.lines],
        "highlights": highlights(judged.lines, judged.findings),
        "findings": [_finding(finding) for finding in judged.findings],
        "figures": drawings(figures),
        "claims": [_claim(claim) for claim in judged.claims],
        "discrepancies": [_discrepancy(entry) for entry in judged.discrepancies],
        "pairs": [between(pair) for pair in judged.pairs],
        "fidelity": [_experiment(name, found) for name, found in judged.fidelity.items()],
        "environment": surroundings(archive, gathered.provenance),
        "settings": gathered.settings.values,
        "choices": gathered.choices.values,
        "runs": gathered.runs.values,
    }


def _described(number: int) -> dict[str, Any]:
    """A table that describes instead of measuring."""
    facts = descriptive.facts(number)
    return {
        "name": f"table{number}",
        "title": descriptive.TITLES[number],
        "rows": [[f.place, f.what, f.paper, f.ours, f.sign] for f in facts],
        "about": descriptive.summary(number, facts),
    }


def _claim(claim: Claim) -> dict[str, Any]:
    """A sentence of the paper, judged on its own numbers and on our runs."""

    def outcome(value: Outcome) -> dict[str, Any]:
        return filled(
            word=value.word,
            evidence=value.evidence,
            support="" if value.support is None else percent(value.support),
            missing=value.missing,
        )

    return {
        "id": claim.statement.id,
        "topic": claim.statement.topic,
        "where": claim.statement.where,
        "claim": claim.statement.claim,
        "reading": claim.statement.reading,
        "word": claim.outcome.word,
        "paper": outcome(claim.paper),
        "ours": {edition: outcome(value) for edition, value in claim.ours.items()},
    }


def _discrepancy(entry: Discrepancy) -> dict[str, Any]:
    """Where text, numbers and code disagree, with the effects as text."""
    from benchmark.judge.discrepancies import SOURCES

    return {
        "id": entry.id,
        "title": entry.title,
        "where": entry.where,
        "largest": _largest_effect(entry),
        "said": filled(**{title: getattr(entry, key) for key, title in SOURCES.items()}),
        "effects": [
            filled(
                what=effect.what,
                sides=effect.sides,
                difference="" if effect.difference is None else f"{effect.difference:+.2f}",
                p="" if effect.p is None else f"{effect.p:.2g}",
                missing=[f"{one.side}: {one.reason}" for one in effect.missing],
            )
            for effect in entry.effects
        ],
    }


def _largest_effect(entry: Discrepancy) -> str:
    effect = entry.largest
    if effect is None or effect.difference is None:
        return ""
    return f"{effect.difference:+.2f} points, {effect.what}"


def between(pair: Pair) -> dict[str, Any]:
    """Two of our methods on one dataset."""
    return {
        "dataset": pair.dataset,
        "first": pair.first,
        "second": pair.second,
        "points": f"{pair.difference:+.1f}",
        "p": f"{pair.p:.2g}",
        "p_holm": f"{pair.p_holm:.2g}",
        "clear": pair.clear,
    }


def _experiment(name: str, found: fidelity.Finding | None) -> dict[str, Any]:
    """A method on a task of its own paper: what is accepted, and what was measured."""
    from benchmark.experiments import fidelity

    experiment = fidelity.experiments()[name]
    measured = found.measured if found else {}
    measures: list[dict[str, Any]] = []
    for measure, (low, high) in experiment.accept.items():
        value = measured.get(measure)
        word = fidelity.verdict(value, low, high)
        measures.append({"name": measure, "range": [low, high], "value": value, "word": word})
    if not measures:
        measures = [{"name": "", "word": fidelity.NO_RANGE if found else fidelity.NOT_RUN}]
    others = {k: v for k, v in measured.items() if k not in experiment.accept}
    return filled(
        name=name,
        label=label(experiment.model),
        measures=measures,
        also=", ".join(f"{k.replace('_', ' ')} {v:g}" for k, v in others.items()),
        seconds=found.seconds if found else None,
        source=experiment.source,
        unverified=not experiment.verified,
    )


# Printed cells -----------------------------------------------------------------------------------


def _line(
    line: Line, labels: Mapping[tuple[int | None, str], str], cause: Cause | None
) -> dict[str, Any]:
    """One printed cell: the paper's value, ours per edition, and the verdict that counts."""
    cell = line.printed
    ours = {
        edition: [shown_value(value), value.n, value.verdict.word]
        for edition, value in line.ours.items()
        if value.mean is not None
    }
    return {
        "table": cell.table,
        "method": cell.method,
        "label": labels.get((cell.table, cell.method)) or label(cell.method),
        "dataset": cell.dataset,
        "metric": cell.metric,
        "paper": paper_value(line),
        "ours": ours,
        "word": line.verdict.word,
        "why": why(line) + (f". Cause: {cause.kind}, {cause.text}" if cause else ""),
        "finding": line.finding.id if line.finding else None,
        "flagged": _flagged(line),
    }


def _flagged(line: Line) -> bool:
    return any(ours.unconverged for ours in line.ours.values())


def _finding(finding: Finding) -> dict[str, Any]:
    return filled(**asdict(finding))


def highlights(lines: Sequence[Line], findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """What a reader should know first, each with the place where it is shown in full."""
    verdicts = Counter(finding.verdict for finding in findings)
    doubts = sum(line.finding is not None for line in lines)
    found: list[dict[str, Any]] = [
        {
            "text": f"{verdicts[FAILS]} of {verdicts.total()} checks of the paper against itself "
            f"do not hold ({verdicts[HOLDS]} do); {doubts} printed cells contradict another number, the "
            f"text or themselves.",
            "link": "#audit",
        }
    ]
    if flagged := sum(map(_flagged, lines)):
        found.append(
            {
                "text": f"Beside {flagged} of the printed cells stand runs of ours that failed to "
                f"converge ({MARK}).",
                "link": "#cells?convergence=failed",
            }
        )
    if largest := _largest(lines):
        found.append(
            {
                "text": "Accuracies differ most for",
                "link": "#cells?verdict=different",
                "items": largest,
            }
        )
    return found


def _largest(lines: Sequence[Line]) -> list[str]:
    """The accuracies that are farthest from the printed ones, by the paper's own rule."""
    differing = [
        (line.printed, ours)
        for line in distinct(l for l in lines if l.printed.metric == "balanced_accuracy")
        if (ours := line.ours.get("rule"))
        and ours.verdict.word == "different"
        and ours.verdict.difference is not None
    ]
    differing.sort(key=lambda pair: -abs(pair[1].verdict.difference or 0.0))
    return [
        f"{label(cell.method)} on {cell.dataset} (Table {cell.table}): {ours.mean:.2f}, "
        f"paper {cell.mean:.2f}"
        for cell, ours in differing[:LARGEST]
    ]


# Drawings ----------------------------------------------------------------------------------------


def drawings(folder: Path) -> list[dict[str, Any]]:
    """All figures in the registry's order, those of the folder in the smaller of their two forms."""
    from benchmark.figures import FIGURES

    return [
        {"name": name, "title": title, **_drawing(folder, name)} for name, title in FIGURES.items()
    ]


def _drawing(folder: Path, name: str) -> dict[str, str]:
    vector, pixels = folder / f"{name}.svg", folder / f"{name}.png"
    if vector.is_file() and not (
        pixels.is_file() and 4 * pixels.stat().st_size / 3 < vector.stat().st_size
    ):
        return {"svg": vector.read_text("utf-8")}
    if pixels.is_file():
        return {"png": base64.b64encode(pixels.read_bytes()).decode()}
    gap = folder / f"{name}.md"
    if gap.is_file():
        _, _, reason = gap.read_text("utf-8").partition("\n\n")
        return {"gap": reason.strip()}
    return {"gap": f"Not drawn yet: `python -m benchmark figure {name}`."}
