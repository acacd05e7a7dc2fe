"""Which values a mean over runs can take, given whole numbers behind it. Pure arithmetic.

A balanced accuracy is an average of recalls, and a recall is a whole number of hits over the size
of a class in the test fold. Stratified folds fix these sizes, so that a mean over all folds and
repeats lies on a grid. Where the grid is coarser than the printed digits, a printed mean off it
cannot be a mean over these runs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from benchmark.protocol.spec import FOLDS, REPEATS


def fold_sizes(size: int, folds: int = FOLDS) -> list[int]:
    """How many samples of a class of this size lie in each stratified fold."""
    return [size // folds + (fold < size % folds) for fold in range(folds)]


def unit(classes: Iterable[int]) -> int:
    """The least common multiple of the classes' test sizes: every recall is a whole part of it."""
    return math.lcm(*(n for size in classes for n in fold_sizes(size)))


def step(classes: Iterable[int], repeats: int = REPEATS) -> float:
    """Distance in percent between neighbouring values that a mean over all runs can take."""
    sizes = tuple(classes)
    return 100 / (repeats * FOLDS * len(sizes) * unit(sizes))


@lru_cache(maxsize=64)
def means(classes: tuple[int, ...], repeats: int = REPEATS) -> frozenset[int]:
    """Every mean that is possible, counted in steps; small sets of classes only."""
    whole = unit(classes)
    groups = Counter(n for size in classes for n in fold_sizes(size))
    # One bit per value: choosing h hits moves every reachable sum up by h recalls of 1/n.
    reachable = 1
    for n, times in groups.items():
        for _ in range(repeats * times * n):
            reachable |= reachable << (whole // n)
    return frozenset(i for i in range(reachable.bit_length()) if reachable >> i & 1)


def is_mean(value: float, classes: tuple[int, ...], decimals: int = 2) -> bool:
    """Whether a mean over all runs can round to this printed value."""
    width = step(classes)
    half = 0.5 * 10.0**-decimals + 1e-9
    low, high = math.ceil((value - half) / width), math.floor((value + half) / width)
    return any(k in means(classes) for k in range(low, high + 1))


def neighbours(value: float, classes: tuple[int, ...]) -> tuple[float, float]:
    """The possible means just below and just above a value."""
    width = step(classes)
    below = max((k for k in means(classes) if k * width <= value), default=0)
    above = min((k for k in means(classes) if k * width >= value), default=below)
    return below * width, above * width


def is_average(value: float, n: int, decimals: int = 2) -> bool:
    """Whether an average of n whole numbers can round to this printed value."""
    return abs(round(value * n) / n - value) <= 0.5 * 10.0**-decimals + 1e-9


def divisors(value: float, most: int, decimals: int = 2) -> list[int]:
    """The numbers of runs, up to `most`, over which whole numbers can have this average."""
    return [n for n in range(1, most + 1) if is_average(value, n, decimals)]


def largest_std(mean: float, top: float, n: int) -> float:
    """The largest sample standard deviation that n values in [0, top] with this mean can have."""
    return math.sqrt(max(mean * (top - mean), 0.0) * n / (n - 1))


def most_at_top(mean: float, std: float, top: float, n: int) -> int:
    """How many of n values in [0, top] with this mean and population standard deviation can be at the top.

    With k values at the top the standard deviation is smallest when the others are equal.
    """
    gap = top - mean
    fits = [k for k in range(n) if k * gap * gap <= (n - k) * std * std]
    return max(fits) if gap > 0 else n


def signed_rank_p(n: int) -> list[float]:
    """Every two-sided p of an exact Wilcoxon test on n differences, from the smallest statistic."""
    subsets = Counter({0: 1})
    for rank in range(1, n + 1):
        subsets.update({total + rank: times for total, times in list(subsets.items())})
    below, p = 0, []
    for statistic in range(n * (n + 1) // 2 + 1):
        below += subsets[statistic]
        p.append(min(1.0, 2 * below / 2**n))
    return p
