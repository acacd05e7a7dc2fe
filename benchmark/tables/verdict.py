"""The verdict on one of our numbers beside the printed one. Pure functions, standard library only.

equal         every printed digit is ours, the standard deviation's included
equivalent    the 90 % interval of the difference lies within half the printed standard deviation
              between runs; where none is printed, nothing says what near is, and nothing is equivalent
different     the 95 % interval of the difference excludes zero, and equivalence is not shown
inconclusive  neither is shown: more runs could decide it, these do not

Whoever claims agreement has to show it, and whoever claims a difference too: noisier runs make both
harder. Where no test is possible (a parameter count), a number is equal or different; a difference of two
ranks is inconclusive where other draws of our runs reach the printed one. Times on other hardware get no verdict at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmark import paper
from benchmark.tables.statistics import RUNS, mean_std, student_quantile

MARGIN = 0.5
"""Of the printed standard deviation: how near two means have to be shown to lie."""
EQUIVALENCE, DIFFERENCE = 0.90, 0.95
"""Levels of the two intervals; a 90 % interval is two one-sided tests at 5 %."""
FEWEST_METHODS, FEWEST_DATASETS = 3, 4
"""Below these, mean ranks and ADTM get no verdict and no standard deviation: both would look surer
than they are."""

JUDGED = ("equal", "equivalent", "different", "inconclusive")
"""Verdicts that compare two numbers, the best news first."""
NOT_JUDGED = (
    "incomplete",
    "failed",
    "not run",
    "data unavailable",
    "not in paper",
    "other hardware",
)
"""Reasons why nothing is compared."""
WORDS = (*JUDGED, *NOT_JUDGED)


@dataclass(frozen=True)
class Sample:
    """What is known of a set of runs once they are averaged."""

    mean: float
    std: float | None
    n: int = RUNS


@dataclass(frozen=True)
class Shared:
    """What two trainings on the same splits have in common; measured in tables/pairing.py."""

    rho: float = 0.0
    """The correlation between their runs, split by split."""
    seed: float = 0.0
    """What the difference of their means varies by beyond that, because all runs of a training have one
    seed: as a share of the sum of the two variances."""


APART = Shared()
"""Two trainings with nothing in common."""


@dataclass(frozen=True)
class Verdict:
    """How one of our values relates to the paper's."""

    word: str
    why: str
    difference: float | None = None
    """Ours minus the paper's."""
    interval: tuple[float, float] | None = None
    """The 95 % interval of the difference."""
    within: float | None = None
    """The smallest margin within which the two would be shown to agree."""
    margin: float | None = None
    """What `equivalent` asks for; None where the paper prints no standard deviation between runs."""
    shared: Shared = APART
    """What the intervals rest on beside the standard deviations."""
    unpaired: str = ""
    """The word at rho = 0, the conservative reading."""


def compare(
    ours: Sample,
    printed: Sample,
    decimals: int,
    *,
    shared: Shared = APART,
    deterministic: bool = False,
) -> Verdict:
    """The verdict on a mean over runs.

    The paper's runs and ours share their splits, and a split that is hard for one is hard for the
    other. All runs of a training share a seed, which may be a lucky one. With s_p and s_o the two
    standard deviations, the difference of the means has variance

        (s_p^2 + s_o^2 - 2 rho s_p s_o + seed (s_p^2 + s_o^2)) / n

    Both rho and seed are measured from repeated seeds. Where the paper prints no standard deviation
    between runs, ours stands for it in the variance. It is no margin: the more a method varies, the
    more would count as the same.
    """
    ours_std = ours.std or 0.0
    printed_std = ours_std if printed.std is None else printed.std
    same = paper.equal_as_printed(ours.mean, printed.mean, decimals)
    same_std = printed.std is None or paper.equal_as_printed(ours_std, printed.std, decimals)
    difference = ours.mean - printed.mean
    n = min(ours.n, printed.n)
    margin = None if printed.std is None else MARGIN * printed.std

    def judged(rho: float) -> Verdict:
        variance = (1 + shared.seed) * (printed_std**2 + ours_std**2)
        variance -= 2 * rho * printed_std * ours_std
        error = math.sqrt(max(0.0, variance) / n)
        return _judge(difference, error, n - 1, margin, decimals)

    verdict, plain = judged(shared.rho), judged(0.0)
    word, why = verdict.word, verdict.why
    if same and same_std:
        what = "mean" if printed.std is None else "mean and standard deviation"
        word, why = "equal", f"{what} equal as printed"
    elif deterministic:
        why += "; the method has no randomness, so this is another setting, version or data"
    return Verdict(
        word,
        why,
        difference,
        verdict.interval,
        verdict.within,
        verdict.margin,
        shared,
        "equal" if word == "equal" else plain.word,
    )


def compare_over_datasets(
    ours: Sequence[float], printed: Sequence[float], decimals: int, ddof: int = 1
) -> Verdict:
    """The verdict on a mean over datasets (a rank, an ADTM) beside the paper's own cells, taken over
    the same methods and datasets: the same intervals, from the differences per dataset."""
    differences = [x - y for x, y in zip(ours, printed, strict=True)]
    difference, spread = mean_std(differences)
    mine, theirs = mean_std(ours, ddof), mean_std(printed, ddof)
    paper_std = theirs[1]
    if all(
        (x is None) == (y is None) and paper.equal_as_printed(x or 0.0, y or 0.0, decimals)
        for x, y in zip(mine, theirs, strict=True)
    ):
        return Verdict("equal", "equal in every digit", difference, unpaired="equal")
    n = len(differences)
    if spread is None or paper_std is None:
        return Verdict("inconclusive", "one dataset is too few to judge", difference)
    if not spread:
        # Without any spread there is no interval: then the sign test decides, all signs being equal.
        word = "different" if 0.5 ** (n - 1) <= 1 - DIFFERENCE else "inconclusive"
        why = f"difference {difference:+.{decimals}f} on each of {n} datasets"
        return Verdict(word, why, difference, unpaired=word)
    verdict = _judge(difference, spread / math.sqrt(n), n - 1, MARGIN * paper_std, decimals)
    return Verdict(
        verdict.word,
        verdict.why,
        difference,
        verdict.interval,
        verdict.within,
        verdict.margin,
        unpaired=verdict.word,
    )


def same_or_not(value: float, printed: float, decimals: int) -> Verdict:
    """The verdict on a number that no test applies to."""
    difference = value - printed
    if paper.equal_as_printed(value, printed, decimals):
        return Verdict("equal", "equal as printed", difference, unpaired="equal")
    why = f"difference {difference:+.{decimals}f}"
    return Verdict("different", why, difference, unpaired="different")


def _judge(
    difference: float, error: float, df: int, margin: float | None, decimals: int
) -> Verdict:
    """Equivalence first, then difference: a gap can be both real and too small to matter."""
    half = student_quantile(0.5 + DIFFERENCE / 2, df) * error
    interval = difference - half, difference + half
    within = abs(difference) + student_quantile(0.5 + EQUIVALENCE / 2, df) * error
    if margin and within <= margin:
        word = "equivalent"
    elif interval[0] > 0 or interval[1] < 0:
        word = "different"
    else:
        word = "inconclusive"
    shown = " to ".join(f"{edge:+.{decimals}f}" for edge in interval)
    asked = "no margin is printed" if margin is None else f"±{margin:.{decimals}f} asked for"
    why = (
        f"difference {difference:+.{decimals}f} (95 % interval {shown}), "
        f"agrees to within ±{within:.{decimals}f}, {asked}"
    )
    return Verdict(word, why, difference, interval, within, margin)
