"""The three synthetic sets: the numbers that are known about them, and independent arithmetic."""

from math import exp, sin

import numpy as np
import pytest
from benchmark.datasets import synthetic

from benchmark.data.load import load
from benchmark.protocol.registry import data_ref
from benchmark.protocol.spec import UserError

GENERATORS = ("released", "fixed", "fixed-150-50")

LABEL_COUNTS = {
    ("syn1", "released"): [106, 94],
    ("syn2", "released"): [113, 87],
    ("syn3", "released"): [148, 52],
    ("syn1", "fixed"): [99, 101],
    ("syn2", "fixed"): [113, 87],
    ("syn3", "fixed"): [128, 72],
    ("syn1", "fixed-150-50"): [150, 50],
    ("syn2", "fixed-150-50"): [150, 50],
    ("syn3", "fixed-150-50"): [150, 50],
}

# Micro-F1 against the released truth: the right set by branch, the second set for everybody,
# both sets for everybody, all features.
ORACLES = {
    "syn1": [0.745, 0.869, 0.808, 0.091],
    "syn2": [0.695, 0.826, 0.737, 0.100],
    "syn3": [0.745, 0.869, 0.808, 0.091],
}


def get(name, generator="released"):
    return load(data_ref(f"{name}:generator={generator}"))


def legacy_normal():
    return np.random.RandomState(42).normal(0, 1, (200, 100))


@pytest.mark.parametrize(("name", "generator"), LABEL_COUNTS)
def test_label_counts(name, generator):
    data = get(name, generator)
    assert np.bincount(data.y).tolist() == LABEL_COUNTS[name, generator]
    assert data.X.shape == (200, 100)


@pytest.mark.parametrize("name", ORACLES)
def test_scores_of_oracles_against_the_released_truth(name):
    data = get(name)
    truth, branch = data.relevant["rows"], data.relevant["branch"]
    second = np.broadcast_to(truth[199], truth.shape)
    either = np.broadcast_to(truth[0] | truth[199], truth.shape)
    masks = [branch, second, either, np.ones_like(truth)]
    f1 = [2 * (mask & truth).sum() / (mask.sum() + truth.sum()) for mask in masks]
    assert np.round(f1, 3).tolist() == ORACLES[name]


@pytest.mark.parametrize("name", ORACLES)
def test_released_matrix_is_one_legacy_draw_with_the_sign_in_the_wrong_column(name):
    X, drawn = get(name).X, legacy_normal()
    assert np.array_equal(X[:, :99], drawn[:, :99])
    assert np.array_equal(X[:50, 99], -np.abs(drawn[:50, 10]))
    assert np.array_equal(X[50:, 99], np.abs(drawn[50:, 10]))
    assert (X[:, 10] < 0).sum() == 103


@pytest.mark.parametrize("name", ORACLES)
def test_fixed_matrix_has_the_sign_in_x11_and_nothing_else_changed(name):
    X, drawn = get(name, "fixed").X, legacy_normal()
    others = np.arange(100) != 10
    assert np.array_equal(X[:, others], drawn[:, others])
    assert (X[:50, 10] < 0).all()
    assert (X[50:, 10] > 0).all()


@pytest.mark.parametrize("name", ORACLES)
def test_released_truth_goes_by_row_and_includes_row_50(name):
    data = get(name)
    rows, branch = data.relevant["rows"], data.relevant["branch"]
    assert (rows[:51] == rows[0]).all()
    assert (rows[51:] == rows[51]).all()
    assert (rows[50] != rows[51]).any()
    assert (rows == branch).all(axis=1).mean() == pytest.approx(0.53)


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("name", ORACLES)
def test_labels_and_branch_truth_agree_with_row_by_row_arithmetic(name, generator):
    data = get(name, generator)
    for row, label, mask in zip(data.X, data.y, data.relevant["branch"], strict=True):
        x = [float("nan"), *row.tolist()]
        additive = -10 * sin(0.2 * x[7]) + abs(x[8]) + x[9] ** 2 + exp(-x[10]) - 2.4
        exponent, relevant = {
            ("syn1", True): (x[1] * x[2] - x[3], {1, 2, 3, 11}),
            ("syn1", False): (sum(v * v for v in x[3:7]) - 4, {3, 4, 5, 6, 11}),
            ("syn2", True): (sum(v * v for v in x[3:8]) - 4, {3, 4, 5, 6, 7, 11}),
            ("syn2", False): (additive, {7, 8, 9, 10, 11}),
            ("syn3", True): (x[1] * x[2] + abs(x[9]), {1, 2, 9, 11}),
            ("syn3", False): (additive, {7, 8, 9, 10, 11}),
        }[name, x[11] < 0]
        assert label == (exponent < 0)
        assert set((np.flatnonzero(mask) + 1).tolist()) == relevant


def test_scaling_and_truth_by_generator():
    assert [get(name).scale for name in ORACLES] == ["none", "none", "standard"]
    for name in ORACLES:
        assert sorted(get(name).relevant) == ["branch", "rows"]
        for generator in ("fixed", "fixed-150-50"):
            assert get(name, generator).scale == "standard"
            assert sorted(get(name, generator).relevant) == ["branch"]


def test_exact_label_counts_keep_both_branches():
    negative = get("syn1", "fixed-150-50").X[:, 10] < 0
    assert 50 < negative.sum() < 150


def test_generating_leaves_numpys_global_generator_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    synthetic.read({}, which=1)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_unknown_generator():
    with pytest.raises(UserError, match="released"):
        data_ref("syn1:generator=broken")
    with pytest.raises(ValueError, match="broken"):
        synthetic.read({}, which=1, generator="broken")
