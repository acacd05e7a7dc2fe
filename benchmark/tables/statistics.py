"""Ranks, aggregation over datasets, tests, stability. Pure functions.

Standard library only: a table is built in less time than SciPy takes to import.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from functools import cache
from statistics import fmean

from benchmark.protocol.spec import FOLDS, REPEATS, VALID_SIZE

RUNS = REPEATS * FOLDS
ALPHA = 0.05
"""Level of every test; not corrected for many cells."""


def overlap(valid_size: float = VALID_SIZE) -> float:
    """n_test / n_train: what it adds to the variance of a mean over runs, in units of a run's variance,
    that the runs share training rows (Nadeau and Bengio, 2003). Rows that validate are in neither."""
    test = 1 / FOLDS
    return test / ((1 - test) * (1 - valid_size))


OVERLAP = overlap()

TIES = ("min", "average", "dense")
MISSING = ("mean", "drop", "last")

Scores = Sequence[Sequence[float | None]]
"""One row per method, one column per dataset; None where there is no value. Larger is better."""
Filled = list[list[float | None]]


def mean_std(values: Sequence[float], ddof: int = 1) -> tuple[float, float | None]:
    """Mean and standard deviation; no standard deviation where there are too few values for one."""
    mean = fmean(values)
    if len(values) <= ddof:
        return mean, None
    return mean, math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - ddof))


# Ranks -------------------------------------------------------------------------------------------


def ranks(scores: Scores, ties: str = "min", missing: str = "mean") -> Filled:
    """Rank of every method on every dataset, 1 = best.

    The defaults reproduce the paper's Table 2: a missing value counts as the mean of the other
    methods on that dataset, and equal values share the best rank. `drop` leaves the missing value
    unranked, `last` puts it behind all others.
    """
    if ties not in TIES or missing not in MISSING:
        raise ValueError(
            f"ties is one of {TIES} and missing of {MISSING}, got {ties!r}, {missing!r}"
        )
    columns = [_ranked(column, ties, missing) for column in zip(*scores, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def _ranked(column: Sequence[float | None], ties: str, missing: str) -> list[float | None]:
    # Means of equal scores can differ in the last bit, and would then not tie.
    present = [round(score, 9) for score in column if score is not None]
    if not present:
        return [None] * len(column)
    if len(present) == len(column):
        filled: Sequence[float | None] = present
    else:
        fill = {"mean": fmean(present), "last": -math.inf, "drop": None}[missing]
        filled = [fill if score is None else round(score, 9) for score in column]
    places = _places([score for score in filled if score is not None], ties)
    return [None if score is None else places[score] for score in filled]


def _places(values: Sequence[float], ties: str) -> dict[float, float]:
    """The rank of every value that occurs."""
    ordered = sorted(set(values) if ties == "dense" else values, reverse=True)
    first: dict[float, float] = {}
    for place, value in enumerate(ordered, 1):
        first.setdefault(value, float(place))
    if ties == "average":
        return {value: place + (ordered.count(value) - 1) / 2 for value, place in first.items()}
    return first


def rank_differences(first: Scores, second: Scores) -> list[list[float]]:
    """Rank of every method by the first scores minus its rank by the second, dataset by dataset."""
    rows = zip(ranks(first), ranks(second), strict=True)
    return [[(a or 0.0) - (b or 0.0) for a, b in zip(*pair, strict=True)] for pair in rows]


def over_datasets(rows: Scores, ddof: int = 1) -> list[tuple[float, float | None] | None]:
    """Mean and standard deviation of each row over the datasets where it has a value; None without any."""
    present = [[value for value in row if value is not None] for row in rows]
    return [mean_std(row, ddof) if row else None for row in present]


# Average distance to the minimum -----------------------------------------------------------------


def distances(scores: Scores) -> Filled:
    """ADTM per dataset, from means: 0 is the worst method of the dataset and 1 the best.

    Missing values stay missing; a dataset on which all methods are equal tells nothing.
    """
    columns = []
    for column in zip(*scores, strict=True):
        present = [score for score in column if score is not None]
        low, span = min(present, default=0.0), max(present, default=0.0) - min(present, default=0.0)
        columns.append([None if s is None or not span else (s - low) / span for s in column])
    return [list(row) for row in zip(*columns, strict=True)]


def pooled_distances(runs: Sequence[Sequence[Sequence[float] | None]]) -> Filled:
    """ADTM per dataset, from runs: 0 and 1 are the worst and the best single run of any method.

    The reading that the paper's Table 23 allows; `runs[method][dataset]` holds a cell's runs.
    """
    columns = []
    for column in zip(*runs, strict=True):
        pool = [value for cell in column if cell for value in cell]
        low, span = min(pool, default=0.0), max(pool, default=0.0) - min(pool, default=0.0)
        columns.append([(fmean(cell) - low) / span if cell and span else None for cell in column])
    return [list(row) for row in zip(*columns, strict=True)]


# Tests -------------------------------------------------------------------------------------------


def student_p(t: float, df: float) -> float:
    """Two-sided p-value of a Student t statistic."""
    if math.isinf(t):
        return 0.0
    square = t * t
    return _incomplete_beta(df / (df + square), square / (df + square), df / 2, 0.5)


@cache
def student_quantile(share: float, df: int) -> float:
    """The t below which this share (above one half) of a Student distribution lies."""
    low, high = 0.0, 1.0
    while 1 - student_p(high, df) / 2 < share:
        high *= 2
    for _ in range(80):  # halving: a few dozen intervals per table need no faster method
        middle = (low + high) / 2
        low, high = (middle, high) if 1 - student_p(middle, df) / 2 < share else (low, middle)
    return (low + high) / 2


def _incomplete_beta(x: float, y: float, a: float, b: float) -> float:
    """Regularised incomplete beta function at x, by its continued fraction.

    y = 1 - x comes along, because near 1 the subtraction would lose its digits.
    """
    if x <= 0 or y <= 0:
        return float(y <= 0)
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side only
        return 1 - _incomplete_beta(y, x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log_front += a * math.log(x) + b * math.log(y)
    # Modified Lentz: value = c_1 d_1 * c_2 d_2 * ..., until a factor is 1.
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 500):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d), 1 + term / c
            value *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return math.exp(log_front) * value / a


def _t(difference: float, error: float) -> float:
    """Difference over its standard error, also where nothing varies."""
    if error:
        return difference / error
    return math.copysign(math.inf, difference) if difference else 0.0


def corrected_resampled_t(d: Sequence[float], overlap: float = OVERLAP) -> tuple[float, float]:
    """t and two-sided p of paired differences of resampled runs (Nadeau and Bengio, 2003)."""
    mean, std = mean_std(d)
    if std is None:
        raise ValueError(f"at least two differences are needed, got {len(d)}")
    t = _t(mean, std * math.sqrt(1 / len(d) + overlap))
    return t, student_p(t, len(d) - 1)


def half_interval(std: float, n: int, overlap: float = OVERLAP) -> float:
    """Half of the 95 % interval of a mean of n resampled runs; with no overlap they are independent."""
    return student_quantile(1 - ALPHA / 2, n - 1) * std * math.sqrt(1 / n + overlap)


def variance_ratio_p(first: float, n_first: int, second: float, n_second: int) -> float:
    """Two-sided p of two standard deviations of so many values each being the same (the F test)."""
    if not first or not second:
        return float(first == second)
    df, other = n_first - 1, n_second - 1
    square, against = df * first * first, other * second * second
    whole = square + against
    below = _incomplete_beta(square / whole, against / whole, df / 2, other / 2)
    return min(1.0, 2 * min(below, 1 - below))


def sign_flip_p(d: Sequence[float]) -> float:
    """Exact two-sided p of "these paired differences are centred on zero".

    The share of all assignments of signs whose sum is at least as far from zero. It assumes
    nothing about the differences' distribution, which suits ranks over a handful of datasets.
    """
    if len(d) > 16:
        raise ValueError(f"2^{len(d)} sign assignments are too many; at most 16 differences")
    seen = abs(math.fsum(d)) - 1e-12
    flips = itertools.product((1, -1), repeat=len(d))
    sums = [abs(math.fsum(s * x for s, x in zip(signs, d, strict=True))) for signs in flips]
    return sum(total >= seen for total in sums) / len(sums)


def wilcoxon_p(d: Sequence[float]) -> float:
    """Exact two-sided p of Wilcoxon's signed-rank test; zero differences are left out."""
    d = [x for x in d if x]
    order = _mid_ranks([abs(x) for x in d])
    return sign_flip_p([math.copysign(r, x) for r, x in zip(order, d, strict=True)]) if d else 1.0


def _mid_ranks(values: Sequence[float]) -> list[float]:
    """Ranks from the smallest, 1, to the largest; equal values share the average."""
    return [sum(v < x for v in values) + (sum(v == x for v in values) + 1) / 2 for x in values]


def friedman_p(rows: Sequence[Sequence[float]]) -> float:
    """p of "all methods are equally good", from a row of ranks per method; 1 where all tie.

    Friedman's chi-square with mid-ranks, corrected for ties. scipy has it, and takes a second to import.
    """
    k, n = len(rows), len(rows[0])
    columns = [_mid_ranks(column) for column in zip(*rows, strict=True)]
    sums = [math.fsum(column[i] for column in columns) for i in range(k)]
    counts = [c for column in columns for c in Counter(column).values()]
    ties = 1 - sum(c**3 - c for c in counts) / (n * k * (k * k - 1))
    if not ties:
        return 1.0
    square = math.fsum(total * total for total in sums)
    return chi_square_p((12 / (n * k * (k + 1)) * square - 3 * n * (k + 1)) / ties, k - 1)


def chi_square_p(x: float, df: int) -> float:
    """The share of the chi-square distribution above x: Q(df / 2, x / 2), from Q(1/2) or Q(1) upwards."""
    half = max(0.0, x) / 2
    a, share = (0.5, math.erfc(math.sqrt(half))) if df % 2 else (1.0, math.exp(-half))
    while a < df / 2:
        share += math.exp(a * math.log(half) - half - math.lgamma(a + 1)) if half else 0.0
        a += 1
    return min(1.0, share)


@cache
def studentized_range(share: float, k: int) -> float:
    """The value that the range of k standard normal draws stays below with this probability."""
    step, reach = 0.02, 8.0
    z = [step * i - reach for i in range(round(2 * reach / step) + 1)]
    density = [step * math.exp(-x * x / 2) / math.sqrt(2 * math.pi) for x in z]

    def below(q: float) -> float:
        # One of the k is the smallest, at z, and all others lie in [z, z + q].
        return k * math.fsum(
            d * (normal(x + q) - normal(x)) ** (k - 1) for x, d in zip(z, density, strict=True)
        )

    def normal(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    low, high = 0.0, 20.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < share else (low, middle)
    return (low + high) / 2


def holm(p: Sequence[float]) -> list[float]:
    """p-values adjusted for being so many (Holm, 1979), in the order given."""
    adjusted, largest = [0.0] * len(p), 0.0
    for place, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        largest = max(largest, min(1.0, (len(p) - place) * p[i]))
        adjusted[i] = largest
    return adjusted


# Stability ---------------------------------------------------------------------------------------


def stability(sets: Sequence[set[int]], n_features: int) -> float | None:
    """Agreement of sets of features beyond chance (Nogueira et al., 2018): 1 all equal, 0 chance.

    None where chance leaves no room: all sets have no feature, or all of them.
    """
    size = fmean(map(len, sets)) / n_features
    if not 0 < size < 1:
        return None
    counts = Counter(feature for chosen in sets for feature in chosen)
    shares = [count / len(sets) for count in counts.values()]
    spread = math.fsum(p * (1 - p) for p in shares) / n_features * len(sets) / (len(sets) - 1)
    return 1 - spread / (size * (1 - size))
