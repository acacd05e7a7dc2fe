"""How many numbers agree: distinct experiments, kind by kind.

A number that the paper prints in five tables is one experiment and counts once, by the paper's rule.
Settings that were found by searching for the print are counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmark.judge.cells.ledger import Line, Ours
from benchmark.tables.verdict import JUDGED

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


def by_kind(lines: Sequence[Line]) -> dict[str, Count]:
    """What was found by the paper's rule; kinds without any comparison are left out."""
    found = {}
    for kind, metrics in KINDS.items():
        mine = list(_distinct([line for line in lines if line.printed.metric in metrics]))
        if mine:
            found[kind] = Count(
                _ordered(ours.verdict.word for ours in mine),
                _ordered(ours.verdict.unpaired or ours.verdict.word for ours in mine),
                sum(not ours.by_rule for ours in mine),
            )
    return found


def recovered(lines: Sequence[Line]) -> tuple[int, int]:
    """Of the settings that are known to be the paper's: how many give every digit of an accuracy."""
    words = {
        ours.experiment: ours.verdict.word
        for line in lines
        if (ours := line.ours.get("recovered")) and line.printed.metric in KINDS[ACCURACIES]
    }
    judged = [word for word in words.values() if word in JUDGED]
    return judged.count("equal"), len(judged)


def listed(words: dict[str, int]) -> str:
    """`4 equal, 0 equivalent, 26 different, 32 inconclusive`: always in the same order."""
    return ", ".join(f"{words.get(word, 0)} {word}" for word in JUDGED)


def _distinct(lines: Sequence[Line]) -> Iterator[Ours]:
    """Our numbers that were compared with a printed one, each where it is printed first."""
    seen: set[str] = set()
    for line in lines:
        ours = line.ours["rule"]
        judged = ours.verdict.word in JUDGED and line.printed.mean is not None
        if judged and ours.experiment not in seen:
            seen.add(ours.experiment)
            yield ours


def _ordered(words: Iterable[str]) -> dict[str, int]:
    counts = Counter(words)
    return {word: counts[word] for word in JUDGED if counts[word]}
