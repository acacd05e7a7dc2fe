"""Ranks, ADTM and verdicts: against the paper's own numbers and against SciPy."""

import math
import random

import numpy as np
import pytest
import scipy.stats
from hypothesis import example, given
from hypothesis import strategies as st

from benchmark import paper
from benchmark.tables import statistics

NON_HDLSS = ("100-plants-texture", "cnae-9", "mfeat-fourier", "vehicle")


def printed_scores(table, datasets):
    methods = list(dict.fromkeys(c.method for c in paper.cells(table)))
    metric = "balanced_accuracy"
    return methods, [[paper.cell(table, m, d, metric).mean for d in datasets] for m in methods]


def rows_equal_to_print(table, datasets, ties="min", missing="mean", ddof=1):
    """The methods whose rank comes out as printed, in mean and standard deviation."""
    methods, scores = printed_scores(table, datasets)
    computed = statistics.over_datasets(statistics.ranks(scores, ties, missing), ddof)
    equal = []
    for method, (mean, std) in zip(methods, computed, strict=True):
        cell = paper.cell(table, method, "", "mean_rank")
        if round(mean, 2) == cell.mean and round(std, 2) == cell.std:
            equal.append(method)
    return equal


def test_ranks_of_table_2():
    equal = rows_equal_to_print(2, paper.DATASETS)
    assert set(paper.METHODS) - set(equal) == {"l2x"}
    methods, scores = printed_scores(2, paper.DATASETS)
    l2x = methods.index("l2x")
    mean, std = statistics.over_datasets(statistics.ranks(scores))[l2x]
    assert (round(mean, 2), round(std, 2)) == (16.29, 0.76)
    mean, std = statistics.over_datasets(statistics.ranks(scores), ddof=0)[l2x]
    assert round(std, 2) == 0.70  # the printed standard deviation is the population's


@pytest.mark.parametrize(
    ("ties", "missing", "matching"),
    [("min", "drop", 8), ("min", "last", 8), ("average", "mean", 14), ("dense", "mean", 10)],
)
def test_other_rules_do_not_reproduce_table_2(ties, missing, matching):
    assert len(rows_equal_to_print(2, paper.DATASETS, ties, missing)) == matching


def test_ranks_of_table_15_have_population_deviations():
    assert len(rows_equal_to_print(15, NON_HDLSS, ddof=0)) == 7
    assert not rows_equal_to_print(15, NON_HDLSS, ddof=1)


def test_missing_cells_count_as_the_mean_of_the_others():
    methods, scores = printed_scores(2, paper.DATASETS)
    row = statistics.ranks(scores)[methods.index("invase")]
    assert [row[paper.DATASETS.index(d)] for d in ("colon", "meta-dr", "prostate")] == [11, 11, 13]


def test_ties_of_table_2():
    methods, scores = printed_scores(2, paper.DATASETS)
    ranks = statistics.ranks(scores)
    prostate = paper.DATASETS.index("prostate")
    assert ranks[methods.index("ridge")][prostate] == ranks[methods.index("mlp")][prostate] == 9


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8))
def test_ranks_agree_with_scipy(column):
    for ties in statistics.TIES:
        ours = [row[0] for row in statistics.ranks([[float(x)] for x in column], ties)]
        assert ours == scipy.stats.rankdata([-x for x in column], ties).tolist()


def test_means_that_differ_in_the_last_bit_are_a_tie():
    assert statistics.ranks([[0.1 + 0.2], [0.3]]) == [[1.0], [1.0]]


def test_a_dataset_without_any_value_has_no_ranks():
    assert statistics.ranks([[None, 1.0], [None, 2.0]]) == [[None, 2.0], [None, 1.0]]


def test_a_rule_that_does_not_exist():
    with pytest.raises(ValueError, match="ties is one of"):
        statistics.ranks([[1.0]], ties="max")


def test_adtm_of_table_2():
    methods, scores = printed_scores(2, paper.DATASETS)
    adtm = statistics.over_datasets(statistics.distances(scores))
    assert {m: round(100 * a[0], 1) for m, a in zip(methods, adtm, strict=True)} == {
        "protogate": 97.7,
        "mlp": 90.2,
        "realx": 87.9,
        "lasso": 86.2,
        "ridge": 83.6,
        "lightgbm": 81.8,
        "stg": 76.0,
        "catboost": 74.1,
        "llspin": 74.0,
        "invase": 73.1,  # four datasets
        "rf": 72.3,
        "lspin": 70.6,
        "xgboost": 67.6,
        "knn": 65.5,
        "svm": 34.6,
        "tabnet": 27.0,
        "l2x": 3.9,
    }


def test_holm_by_hand():
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert statistics.holm([0.5, 0.9]) == [1.0, 1.0]
    assert statistics.holm([]) == []


def test_stability_of_selected_features():
    assert statistics.stability([{1, 2}, {1, 2}, {1, 2}], 10) == 1
    # Two runs, one feature of two each: never the same one is as far below chance as can be.
    assert statistics.stability([{0}, {1}], 2) == pytest.approx(-1)
    assert statistics.stability([set(), set()], 5) is None
    assert statistics.stability([{0, 1}, {0, 1}], 2) is None
    rng = random.Random(0)
    chance = [set(rng.sample(range(200), 20)) for _ in range(25)]
    assert abs(statistics.stability(chance, 200)) < 0.05


def test_wilcoxon_is_exact():
    assert statistics.wilcoxon_p([1, 2, 3, 4, 5, 6, 7]) == pytest.approx(2 / 2**7)
    d = [0.3, -0.1, 0.7, 1.2, -0.4, 0.9, 2.1]
    assert statistics.wilcoxon_p(d) == pytest.approx(scipy.stats.wilcoxon(d, method="exact").pvalue)
    assert statistics.wilcoxon_p([0.0, 0.0]) == 1.0


def test_adtm_of_equal_methods_tells_nothing():
    assert statistics.distances([[1.0, 1.0], [1.0, 3.0]]) == [[None, 0.0], [None, 1.0]]


def test_pooled_adtm_scales_by_single_runs():
    runs = [[[0.0, 4.0], None], [[6.0, 10.0], [1.0, 2.0]]]
    assert statistics.pooled_distances(runs) == [[0.2, None], [0.8, 0.5]]


@given(st.floats(-30, 30), st.floats(1, 200))
@example(t=1.192092896e-07, df=79.0)
def test_student_p_agrees_with_scipy(t, df):
    expected = 2 * scipy.stats.t.sf(abs(t), df)
    assert statistics.student_p(t, df) == pytest.approx(expected, rel=1e-8, abs=1e-14)


def test_corrected_resampled_t():
    d = np.random.default_rng(0).normal(0.5, 1, 25)
    t, p = statistics.corrected_resampled_t(list(d), overlap=0)
    plain = scipy.stats.ttest_1samp(d, 0)
    assert (t, p) == pytest.approx((plain.statistic, plain.pvalue))
    corrected, _ = statistics.corrected_resampled_t(list(d))
    assert corrected == pytest.approx(t / np.sqrt(1 + 25 * 20 / 72))
    assert statistics.corrected_resampled_t([0.0, 0.0]) == (0.0, 1.0)
    assert statistics.corrected_resampled_t([1.0, 1.0])[1] == 0.0
    with pytest.raises(ValueError, match="at least two"):
        statistics.corrected_resampled_t([1.0])


def test_sign_flip_agrees_with_scipy():
    d = [1.0, 2.0, -0.5, 0.0, 3.0, 1.0, -1.0]
    exact = scipy.stats.permutation_test(
        (d,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert statistics.sign_flip_p(d) == pytest.approx(exact.pvalue)
    assert statistics.sign_flip_p([1.0] * 7) == 2 / 2**7


def test_half_way_in_binary_is_half_way():
    # 0.285 is stored below, 0.155 above its decimal value; both neighbours count for either.
    for value, neighbours in ((0.285, (0.28, 0.29)), (0.155, (0.15, 0.16))):
        assert all(paper.equal_as_printed(value, n, 2) for n in neighbours)
    assert not paper.equal_as_printed(0.2851, 0.28, 2)


@pytest.mark.parametrize("df", [1, 3, 6, 24])
@pytest.mark.parametrize("share", [0.95, 0.975])
def test_quantiles_are_those_of_scipy(share, df):
    assert statistics.student_quantile(share, df) == pytest.approx(scipy.stats.t.ppf(share, df))


@pytest.mark.parametrize("k", [2, 3, 8, 17, 40])
def test_the_studentized_range_is_that_of_scipy(k):
    for share in (0.9, 0.95, 0.99):
        expected = scipy.stats.studentized_range.ppf(share, k, math.inf)
        assert statistics.studentized_range(share, k) == pytest.approx(expected, abs=1e-6)


@given(st.integers(3, 9), st.integers(2, 12), st.integers(0, 10**6), st.integers(2, 9))
def test_friedmans_test_is_that_of_scipy(k, n, seed, kinds):
    draw = random.Random(seed)
    rows = [[float(draw.randrange(kinds)) for _ in range(n)] for _ in range(k)]
    expected = scipy.stats.friedmanchisquare(*rows).pvalue
    assert statistics.friedman_p(rows) == pytest.approx(1.0 if math.isnan(expected) else expected)


@pytest.mark.parametrize("df", [1, 2, 7, 16])
def test_chi_square_is_that_of_scipy(df):
    for x in (0.0, 0.3, 4.0, 30.0, 200.0):
        expected = scipy.stats.chi2.sf(x, df)
        assert statistics.chi_square_p(x, df) == pytest.approx(expected, rel=1e-9)


def test_the_ratio_of_two_standard_deviations():
    sides = ((7.44, 25, 7.7), (0.02, 25, 0.01), (10.0, 25, 6.0), (5.0, 5, 11.0), (11.0, 5, 5.0))
    for first, n, second in sides:
        ratio = (first / second) ** 2
        tails = scipy.stats.f.cdf(ratio, n - 1, 24), scipy.stats.f.sf(ratio, n - 1, 24)
        found = statistics.variance_ratio_p(first, n, second, 25)
        assert found == pytest.approx(2 * min(tails))
    assert statistics.variance_ratio_p(3.0, 25, 3.0, 25) == pytest.approx(1)
    assert (
        statistics.variance_ratio_p(0.0, 25, 0.0, 25),
        statistics.variance_ratio_p(0.0, 25, 1.0, 25),
    ) == (1, 0)
