"""The claims as text: blocks for a terminal, Markdown to read, CSV and JSON to compute with."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict

from benchmark.judge.answer import Answer
from benchmark.judge.audit.findings import FAILS, HOLDS
from benchmark.judge.claims.check import TOO_FEW, WORDS, Claim, Outcome
from benchmark.judge.claims.evidence import DRAWS, RUNS
from benchmark.protocol.choices import EDITION_NAMES, EDITIONS
from benchmark.text import csv_text, grid

LEGEND = (
    (
        "A claim is a sentence of the paper in our words, written as comparisons between cells of "
        "its tables. `paper`: on the printed cells, does the sentence follow from its own numbers? "
        "`paper's rule`: on our runs, with settings chosen by that rule; a claim is judged by this. "
        "`recovered settings`: the same with those that give printed cells, where there are any."
    ),
    (
        f"Only cells with all {RUNS} runs count. `holds` and `does not hold`: no cell that is missing can "
        "change it, though a fuller search, other seeds or new times can; one counterexample is enough against a claim about every dataset. `holds so "
        "far` and `does not hold so far`: so on the cells at hand, while others are missing. `undecided`: "
        "between 5 and 95 % of the redraws of our runs bear it out. `not enough runs`: nothing can be "
        "compared yet."
    ),
    (
        f"The percentage is the share of {DRAWS} redraws of our runs in which the claim holds on "
        f"the same cells: {RUNS} splits with replacement, the same ones for all methods. It is not "
        "a p-value: the splits share their samples, so it overstates how sure new data would make us. Times "
        "are redrawn from their repeats, for each method apart, and normalised means over all datasets over "
        "the datasets. Many times are of default settings or of some that were chosen earlier; the notes "
        "below Tables 12, 13 and 20 say which."
    ),
)


def render(claims: Sequence[Claim], form: str, answer: Answer | None = None) -> str:
    """The claims as text, Markdown, CSV or JSON, and what they come to (CSV has rows only)."""
    return FORMATS[form](claims, answer)


def totals(claims: Sequence[Claim]) -> dict[str, Counter[str]]:
    """Verdicts on the printed cells and per edition."""
    sides = ("paper", *EDITION_NAMES.values())
    return {s: Counter(o.word for c in claims if (o := _sides(c).get(s))) for s in sides}


def _sides(claim: Claim) -> dict[str, Outcome]:
    ours = {EDITION_NAMES[edition]: outcome for edition, outcome in claim.ours.items()}
    return {"paper": claim.paper, **ours}


def _sentence(claims: Sequence[Claim]) -> str:
    counted = {
        side: ", ".join(f"{w} {words[w]}" for w in WORDS if words[w])
        for side, words in totals(claims).items()
    }
    number = "1 claim" if len(claims) == 1 else f"{len(claims)} claims"
    return f"{number}. " + " ".join(f"{s}: {text}." for s, text in counted.items() if text)


def _topics(claims: Sequence[Claim]) -> dict[str, list[Claim]]:
    topics: dict[str, list[Claim]] = {}
    for claim in claims:
        topics.setdefault(claim.statement.topic, []).append(claim)
    return topics


def _verdict(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    return (
        outcome.word if outcome.support is None else f"{outcome.word} ({percent(outcome.support)})"
    )


def percent(support: float) -> str:
    """Never 0 % or 100 % unless it is so in every redraw."""
    if 0 < support < 0.01:
        return "< 1 %"
    if 0.99 < support < 1:
        return "> 99 %"
    return f"{support:.0%}".replace("%", " %")


def _why(outcome: Outcome) -> str:
    """The evidence, and on which datasets where some are missing; which runs those are is said once."""
    if not outcome.missing or outcome.word == TOO_FEW or not outcome.datasets:
        return outcome.evidence
    return f"{outcome.evidence} (on {', '.join(outcome.datasets)})"


def _coverage(claims: Sequence[Claim]) -> str:
    """How many claims wait for runs, and what tells which."""
    waiting = [c for c in claims if c.outcome.missing and c.outcome.word not in (HOLDS, FAILS)]
    if not waiting:
        return ""
    tables = sorted({c.statement.table for c in waiting})
    named = ", ".join(map(str, tables))
    return (
        f"Runs that are missing may change {len(waiting)} of these, by "
        f"{'Table' if len(tables) == 1 else 'Tables'} {named}; "
        f"`python -m benchmark status table{tables[0]}` lists what one of them is missing, with the cost."
    )


def _notes(claim: Claim) -> list[str]:
    s = claim.statement
    return [
        *([f"read as: {s.reading}"] if s.reading else []),
        *([f"audit of the same sentence: {', '.join(s.audit)}"] if s.audit else []),
        *([f"printed cells in doubt: {', '.join(claim.doubts)}"] if claim.doubts else []),
    ]


def to_text(claims: Sequence[Claim], answer: Answer | None = None) -> str:
    """One block per claim: the sentence, then what became of it on either side."""
    parts = [textwrap.fill(text, 100) for text in (_sentence(claims), _coverage(claims)) if text]
    for topic, mine in _topics(claims).items():
        parts.append(topic.upper())
        parts += map(_block, mine)
    parts += [textwrap.fill(text.replace("`", ""), 100) for text in LEGEND]
    if answer:
        parts += ["THE ANSWER", *(textwrap.fill(text, 100) for text in answer.sentences)]
    return "\n\n".join(parts)


def _block(claim: Claim) -> str:
    s = claim.statement
    lines = [f"{s.id}  [{s.where}]", *_indented(s.claim, "  ")]
    for side, outcome in _sides(claim).items():
        lines += _indented(f"{_verdict(outcome)}: {_why(outcome)}", f"  {side:<20}")
    return "\n".join(lines + [line for note in _notes(claim) for line in _indented(note, "  ")])


def _indented(text: str, start: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=start, subsequent_indent=" " * len(start))


def to_markdown(claims: Sequence[Claim], answer: Answer | None = None) -> str:
    """A table of verdicts per topic, each followed by the evidence."""
    counts = [["", *WORDS]]
    counts += [[side, *(str(words[w]) for w in WORDS)] for side, words in totals(claims).items()]
    parts = ["# What the paper says, checked", _sentence(claims), grid(counts), _coverage(claims)]
    parts = [*filter(None, parts), "  \n".join(LEGEND)]
    for topic, mine in _topics(claims).items():
        head = ["", "claim", "where", "paper", *EDITION_NAMES.values()]
        rows = [
            [
                f"`{c.statement.id}`",
                c.statement.claim,
                c.statement.where,
                c.paper.word,
                *(_verdict(c.ours.get(edition)) for edition in EDITIONS),
            ]
            for c in mine
        ]
        parts += [f"## {topic.capitalize()}", grid([head, *rows]), "\n".join(map(_item, mine))]
    if answer:
        parts += ["## The answer", *answer.sentences]
    return "\n\n".join(parts)


def _item(claim: Claim) -> str:
    found = [f"{side}: {_why(o)}" for side, o in _sides(claim).items() if o.word != TOO_FEW]
    return f"- `{claim.statement.id}` " + ". ".join([*found, *_notes(claim)]) + "."


COLUMNS = (
    *("id", "topic", "where", "claim", "side", "verdict", "support", "true", "known"),
    *("comparisons", "evidence", "datasets", "methods", "missing", "reading", "audit", "doubts"),
)


def to_csv(claims: Sequence[Claim], _answer: Answer | None = None) -> str:
    """One line per claim and side: the paper's cells, and each edition of ours."""
    rows = [
        [s.id, s.topic, s.where, s.claim, side, o.word]
        + ["" if o.support is None else f"{o.support:.4g}", o.true, o.known, o.comparisons]
        + [o.evidence, " ".join(o.datasets), " ".join(o.methods), o.missing]
        + [s.reading, " ".join(s.audit), " ".join(claim.doubts)]
        for claim in claims
        for s in [claim.statement]
        for side, o in _sides(claim).items()
    ]
    return csv_text(COLUMNS, rows)


def to_json(claims: Sequence[Claim], answer: Answer | None = None) -> str:
    """Everything, also how each claim is checked."""
    value = {
        "totals": {side: dict(words) for side, words in totals(claims).items()},
        "legend": LEGEND,
        "claims": [{**asdict(claim), "verdict": claim.outcome.word} for claim in claims],
        "answer": asdict(answer) if answer else None,
    }
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)


FORMATS: dict[str, Callable[[Sequence[Claim], Answer | None], str]] = {
    "text": to_text,
    "md": to_markdown,
    "csv": to_csv,
    "json": to_json,
}
