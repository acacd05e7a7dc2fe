"""How many numbers agree: distinct experiments, kind by kind.

A number that the paper prints in five tables is one experiment and counts once, by the paper's rule.
Settings that were found by searching for the print are counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

from benchmark.judge.cells.ledger import Line
from benchmark.tables.verdict import JUDGED
from benchmark.text import counted

ACCURACIES = "accuracies"
KINDS = {
    ACCURACIES: ("balanced_accuracy",),
    "numbers of selected features": ("selected_features",),
    "selection scores on synthetic data": ("f1_select",),
    "ranks and differences of ranks": ("mean_rank", "rank_difference", "adtm_percent"),
}
"""What is counted apart, the most important first: what the reader calls it, and its metrics."""


@dataclass(frozen=True)
class Count:
    """The verdicts on one kind of number."""

    words: dict[str, int]
    """Verdict -> distinct experiments."""
    unpaired: dict[str, int] = field(default_factory=dict)
    """The same at rho = 0, the conservative reading."""
    cheaper: int = 0
    """How many of them rest on a cheaper search than the paper's rule."""

    @property
    def total(self) -> int:
        return sum(self.words.values())


def of_table(lines: Sequence[Line], table: int) -> Count | None:
    """The accuracies of one table alone."""
    return by_kind([line for line in lines if line.printed.table == table]).get(ACCURACIES)


def by_kind(lines: Sequence[Line]) -> dict[str, Count]:
    """What was found by the paper's rule; kinds without any comparison are left out."""
    found = {}
    for kind, metrics in KINDS.items():
        chosen = distinct(line for line in lines if line.printed.metric in metrics)
        mine = [line.ours["rule"] for line in chosen]
        if mine:
            found[kind] = Count(
                _ordered(ours.verdict.word for ours in mine),
                _ordered(ours.verdict.unpaired or ours.verdict.word for ours in mine),
                sum(not ours.by_rule for ours in mine),
            )
    return found


def distinct(lines: Iterable[Line], words: Container[str] = JUDGED) -> list[Line]:
    """The lines with such a verdict on a printed number; one that the paper prints in several tables
    is there once, where it is printed first."""
    found: dict[str, Line] = {}
    for line in lines:
        ours = line.ours["rule"]
        if ours.verdict.word in words and line.printed.mean is not None:
            found.setdefault(ours.experiment, line)
    return list(found.values())


@dataclass(frozen=True)
class Recovered:
    """The accuracies for which a setting was found that gives the printed cell."""

    tried: int = 0
    equal: int = 0
    """How many of these settings give every printed digit on the records at hand."""
    by_rule: int = 0
    """How many of those the rule chooses, too: only these were not found by searching for the print."""

    def __str__(self) -> str:
        if not self.tried:
            return ""
        found = "" if self.equal == self.tried else f"{self.equal} of "
        cells = f"{found}{counted(self.tried, 'cell')}"
        text = f"For {cells}, searching for the printed number turned up settings that give every digit of it"
        return f"{text}; validation chooses {self.by_rule} of these."


def recovered(lines: Sequence[Line]) -> Recovered:
    found = {
        ours.experiment: (ours.verdict.word, line.ours["rule"].verdict.word)
        for line in lines
        if (ours := line.ours.get("recovered")) and line.printed.metric in KINDS[ACCURACIES]
    }
    judged = [(word, rule) for word, rule in found.values() if word in JUDGED]
    equal = [rule for word, rule in judged if word == "equal"]
    return Recovered(len(judged), len(equal), equal.count("equal"))


def listed(words: dict[str, int]) -> str:
    """`4 equal, 0 equivalent, 26 different, 32 inconclusive`: always in the same order."""
    return ", ".join(f"{words.get(word, 0)} {word}" for word in JUDGED)


def _ordered(words: Iterable[str]) -> dict[str, int]:
    counts = Counter(words)
    return {word: counts[word] for word in JUDGED if counts[word]}
