"""ProtoGate: against a second implementation, the released code, and what must always hold."""

import json
import math
import os
import pickle
import tracemalloc
from functools import cache
from pathlib import Path

import numpy as np
import plain_kernels
import protogate_reference as reference
import pytest
from benchmark.models import _kernels, _noise, protogate
from benchmark.models._train import curves, train
from benchmark.models.protogate import (
    BEHAVIOURS,
    Net,
    ProtoGate,
    gating_network,
    global_penalty,
    gradients,
    hard_sort,
    initial_net,
    local_gates,
    local_penalty,
    losses,
    neural_sort,
    prediction_loss,
    sgd_step,
    squared_distances,
    training_step,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score

from benchmark.paper import DATASETS
from benchmark.protocol import registry

# --- The same numbers from a second implementation, and from the released one ------------------


def replace(setting, **changes):
    return clone(setting).set_params(**changes)


def close(actual, expected, tolerance=1e-9):
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def problem(seed, B, D, H, C, spread=1.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    net = Net(*(spread * rng.normal(size=s) for s in ((H, D), (H,), (D, H), (D,))))
    arrays = *net, rng.normal(size=(B, D)), rng.normal(size=(B, D))
    *net, X, eps = (a.astype(dtype) for a in arrays)
    return Net(*net), X, rng.integers(0, C, B), eps


def scores(M):
    v = -squared_distances(M, M)
    np.fill_diagonal(v, 0)
    return v


def norm(gradient):
    return math.sqrt(sum(float((g**2).sum()) for g in gradient))


def batch(seed, D, H, sizes, spread=0.3):
    """A network, a noisy batch with so many samples per class, and queries of any class."""
    net, x, _, eps = problem(seed, sum(sizes), D, H, len(sizes), spread)
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    queries = {"xq": rng.normal(size=(7, D)), "yq": rng.integers(0, len(sizes), 7)}
    return {**net._asdict(), "x": x, "y": y, "eps": eps, **queries}


MADE_UP = {
    "two classes": (batch(0, 30, 8, (9, 7)), ProtoGate(k=3)),
    "four classes": (batch(1, 50, 10, (3, 3, 3, 3)), ProtoGate(k=5, lam_global=3e-4)),
    "clipped": (batch(2, 40, 6, (10, 8)), ProtoGate(k=4, lam_local=0.1, clip=0.5)),
    "clipped for R_global": (
        batch(3, 21, 7, (5, 6)), ProtoGate(lam_global=0.3, clip=1.0, weight_decay=0.05)
    ),
    "no penalty": (batch(4, 13, 5, (6, 5)), ProtoGate(k=2, lam_global=0.0, lam_local=0.0)),
    "no R_global": (batch(5, 17, 4, (4, 9)), ProtoGate(lam_global=0.0, lam_local=0.02, clip=None)),
    "no R_local": (batch(6, 9, 3, (5, 5)), ProtoGate(lam_global=0.01, lam_local=0.0, lr=0.05)),
    "a class of one, K above each": (batch(7, 25, 6, (1, 2, 3, 4)), ProtoGate(k=5, lr=0.5)),
    "K above the batch": (batch(8, 11, 4, (2, 3)), ProtoGate(k=9, tau=3.0, weight_decay=0.1)),
    "not its own neighbour": (
        batch(9, 28, 9, (6, 7, 3)), ProtoGate(sigma=0.2, tau=4.0, exclude_self=True)
    ),
    "strong weights": (batch(10, 6, 12, (11, 9, 10), spread=1.0), ProtoGate(k=1, tau=0.5)),
}  # fmt: skip
CLIPPED = {"clipped", "clipped for R_global"}
GOLDEN = {
    "case1_B16_D30_H8_K3": ProtoGate(k=3, lam_global=2e-4),
    "case2_B12_D50_H10_K5_C4": ProtoGate(k=5, lam_global=3e-4),
}


def second_opinion(case, s):
    """What the slow implementation says of a case, under the names that the golden files use."""
    net, x, y, eps, xq, yq = net_of(case), *(case[n] for n in ("x", "y", "eps", "xq", "yq"))
    found = {}
    for part, terms, (alpha, gate) in (
        ("train", reference.losses(net, x, y, s, eps=eps), reference.masks(net, x, s, eps)),
        ("eval", reference.losses(net, xq, yq, s, base=(x, y)), reference.masks(net, xq, s)),
    ):
        values = (*terms, alpha, gate)
        names = ("total", "pred_loss", "l1", "l0", "alpha", "gate")
        found |= {f"{part}_{name}": value for name, value in zip(names, values, strict=True)}
    found["P_topk_train"], found["train_knn_idx"] = reference.ranks(net, x, y, s, eps)
    found["eval_knn_pred"], found["eval_knn_idx"] = reference.predictions(net, xq, x, y, s.k)
    gradient = reference.gradients(net, x, y, s, eps)
    after = reference.sgd_step(net, x, y, s, eps)
    found |= {f"grad_{name}": g for name, g in zip(Net._fields, gradient, strict=True)}
    found |= {f"after_sgd_{name}": w for name, w in zip(Net._fields, after, strict=True)}
    return found | {"grad_norm": norm(gradient)}


def released(name):
    """Inputs and results of the released code; without its file the test is skipped."""
    folder = os.environ.get("BENCHMARK_GOLDEN")
    if folder is None and "BENCHMARK_DATA" in os.environ:
        folder = Path(os.environ["BENCHMARK_DATA"]).parent / "golden"
    path = Path(folder or "golden") / f"{name}.npz"
    if not path.is_file():
        pytest.skip(f"{path} is missing; BENCHMARK_GOLDEN names the folder that has it")
    with np.load(path) as arrays:
        return dict(arrays)


def net_of(case, dtype=np.float64):
    return Net(*(case[name].astype(dtype) for name in Net._fields))


@cache
def answered(name):
    case, setting = MADE_UP[name]
    return case | second_opinion(case, setting)


@pytest.fixture(params=[*MADE_UP, *GOLDEN])
def known(request):
    """A case with its results: of the slow implementation, or of the released one."""
    if request.param in GOLDEN:
        return released(request.param), GOLDEN[request.param]
    return answered(request.param), MADE_UP[request.param][1]


@pytest.mark.parametrize("name", GOLDEN)
def test_the_slow_implementation_equals_the_released_one(name):
    case = released(name)
    for key, value in second_opinion(case, GOLDEN[name]).items():
        close(value, case[key])


@pytest.mark.parametrize("name", MADE_UP)
def test_made_up_cases_are_what_they_are_called(name):
    case, setting = answered(name), MADE_UP[name][1]
    assert (case["grad_norm"] > (setting.clip or math.inf)) == (name in CLIPPED)
    # A gradient of almost nothing would agree with anything.
    assert case["grad_norm"] > 0.01 and 0 < (case["train_gate"] > 0).mean() < 1


def test_known_losses(known):
    case, setting = known
    net = net_of(case)
    for part, found in {
        "train": losses(net, case["x"], case["y"], setting, eps=case["eps"]),
        "eval": losses(net, case["xq"], case["yq"], setting, base=(case["x"], case["y"])),
    }.items():
        close(found.total, case[f"{part}_total"])
        close(found.prediction, case[f"{part}_pred_loss"])
        close(found.global_, case[f"{part}_l1"])
        close(found.local, case[f"{part}_l0"])


def test_known_gates_and_ranks(known):
    case, setting = known
    net = net_of(case)
    mu, mu_query = gating_network(net, case["x"]), gating_network(net, case["xq"])
    close(mu, case["train_alpha"])
    close(mu_query, case["eval_alpha"])
    gates = local_gates(mu, case["eps"], setting.sigma)
    close(gates, case["train_gate"])
    close(local_gates(mu_query), case["eval_gate"])
    v = scores(case["x"] * gates)
    if setting.exclude_self:
        v = v[~np.eye(len(v), dtype=bool)].reshape(len(v), -1)
    close(neural_sort(v, setting.k, setting.tau), case["P_topk_train"])
    assert np.array_equal(hard_sort(v, setting.k).argmax(axis=2), case["train_knn_idx"])


def test_known_gradients_and_step(known):
    case, setting = known
    net, x, y, eps = net_of(case), case["x"], case["y"], case["eps"]
    found, after = gradients(net, x, y, setting, eps), sgd_step(net, x, y, setting, eps)
    close(norm(found), case["grad_norm"])
    for name in Net._fields:
        close(getattr(found, name), case[f"grad_{name}"])
        close(getattr(after, name), case[f"after_sgd_{name}"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_known_predictions_and_masks(known, dtype):
    case, setting = known
    x, xq = case["x"].astype(dtype), case["xq"].astype(dtype)
    model = fitted_with(net_of(case, dtype), x, case["y"], k=setting.k)
    assert np.array_equal(model.predict(xq), case["eval_knn_pred"])
    found = [e.prototypes for e in model.explain(xq)]
    assert np.array_equal(found, case["eval_knn_idx"])
    close(model.masks(xq), case["eval_gate"], 1e-9 if dtype is np.float64 else 2e-6)
    assert np.array_equal(model.select(xq), case["eval_alpha"] > 0)


@pytest.mark.parametrize("plain", [False, True])
def test_known_steps_in_single_precision(known, plain, monkeypatch):
    """The step as it trains: float32, with compiled loops or what they are compared with."""
    if plain:
        plain_kernels.instead(monkeypatch)
    case, setting = known
    x, eps = case["x"].astype(np.float32), case["eps"].astype(np.float32)
    rng = np.random.default_rng(0)
    step = training_step(net_of(case, np.float32), x, case["y"], setting, rng)
    step.forward(x, eps)
    step.backward(x, slice(None))
    # The step adds the gradient of R_global while it descends.
    signs = setting.lam_global * np.sign(case["W1"])
    for name, g in step.gradient._asdict().items():
        expected = case[f"grad_{name}"] - (signs if name == "W1" else 0)
        close(g, expected, 3e-5)
    step.update()
    assert step.clipped == (case["grad_norm"] > (setting.clip or math.inf))
    for name, w in step.net._asdict().items():
        close(w, case[f"after_sgd_{name}"], 3e-6)


@pytest.mark.parametrize("name", MADE_UP)
def test_a_few_steps_on_parts_of_the_data_follow_the_slow_ones(name):
    """As in training: the step picks the rows and draws the noise, again and again."""
    case, setting = MADE_UP[name]
    x, y = case["x"].astype(np.float32), case["y"]
    step = training_step(net_of(case, np.float32), x, y, setting, np.random.default_rng(0))
    slow, rng = net_of(case), np.random.default_rng(1)
    for _ in range(3):
        rows = rng.permutation(len(x))[: len(x) - 1]
        step(rows)
        slow = reference.sgd_step(slow, x[rows], y[rows], setting, step.eps)
    for found, expected in zip(step.net, slow, strict=True):
        close(found, expected, 1e-4)


cases = st.builds(
    problem,
    seed=st.integers(0, 2**32 - 1),
    B=st.integers(2, 17),
    D=st.integers(1, 25),
    H=st.integers(1, 9),
    C=st.sampled_from([1, 2, 5, 100]),
    spread=st.sampled_from([0.02, 0.3, 1.0]),
)
choices = st.builds(
    ProtoGate,
    k=st.integers(1, 6),
    lam_global=st.sampled_from([0.0, 2e-4, 0.1]),
    lam_local=st.sampled_from([0.0, 1e-3, 0.1]),
    tau=st.sampled_from([0.5, 16.0]),
    sigma=st.sampled_from([0.2, 0.5]),
    clip=st.sampled_from([0.05, 2.5, None]),
    exclude_self=st.booleans(),
)


@settings(max_examples=120, deadline=None)
@given(cases, choices)
def test_agrees_with_autograd(case, setting):
    net, X, y, eps = case
    close(losses(net, X, y, setting, eps=eps), reference.losses(net, X, y, setting, eps=eps))
    if not setting.exclude_self:
        v = scores(X * local_gates(gating_network(net, X), eps, setting.sigma))
        close(neural_sort(v, setting.k, setting.tau), reference.ranks(net, X, y, setting, eps)[0])
    for one, other in ((gradients, reference.gradients), (sgd_step, reference.sgd_step)):
        pairs = zip(one(net, X, y, setting, eps), other(net, X, y, setting, eps), strict=True)
        for found, expected in pairs:
            close(found, expected)


def test_sgd_step_changes_nothing_it_was_given():
    net, X, y, eps = problem(0, 8, 5, 3, 2)
    before = [a.copy() for a in (*net, X, eps)]
    sgd_step(net, X, y, ProtoGate(), eps)
    assert all(np.array_equal(a, b) for a, b in zip((*net, X, eps), before, strict=True))


# --- What must always hold ----------------------------------------------------------------------

values = st.builds(
    lambda seed, q, n: -np.random.default_rng(seed).gamma(2, 20, (q, n)),
    st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 40),
)  # fmt: skip


@given(values, st.integers(1, 5))
def test_cold_relaxed_sorting_is_sorting(v, k):
    close(neural_sort(v, k, tau=1e-7), hard_sort(v, k), 1e-6)


@given(values, st.integers(1, 5))
def test_relaxed_rows_are_distributions_and_follow_a_permutation(v, k):
    P = neural_sort(v, k, tau=16.0)
    assert (P >= 0).all()
    close(P.sum(axis=2), 1)
    order = np.random.default_rng(0).permutation(v.shape[1])
    close(neural_sort(v[:, order], k, tau=16.0), P[:, :, order])


def test_cold_loss_counts_wrong_neighbours():
    net, X, y, eps = problem(3, 20, 12, 4, 3)
    v = scores(X * local_gates(gating_network(net, X), eps, 0.5))
    nearest = np.argsort(-v, axis=1)[:, :4]
    wrong = (y[nearest] != y[:, None]).sum(axis=1).mean()
    setting = ProtoGate(k=4, tau=1e-7)
    close(losses(net, X, y, setting, eps=eps).prediction, wrong)
    close(losses(net, X, y, replace(setting, sort="quick"), eps=eps).prediction, wrong)


@pytest.mark.parametrize("exclude_self", [False, True])
def test_equal_labels_cost_nothing(exclude_self):
    net, X, y, eps = problem(1, 12, 8, 4, 1)
    setting = ProtoGate(k=3, lam_global=0, lam_local=0, exclude_self=exclude_self)
    close(losses(net, X, y, setting, eps=eps).total, 0)
    close(norm(gradients(net, X, y, setting, eps)), 0)


def test_equal_distances_cost_the_share_of_other_classes():
    y = np.array([0, 0, 0, 1])
    loss = prediction_loss(np.zeros((4, 4)), y[:, None] == y, ProtoGate(k=3))
    close(loss, 3 * (1 - (3 / 4 * 3 / 4 + 1 / 4 * 1 / 4)))
    # All gates closed is the same, and has no gradient to escape by.
    net, X, y, eps = problem(0, 10, 6, 3, 2)
    closed = net._replace(b2=np.full(6, -50.0))
    setting = ProtoGate(k=3, lam_global=0, lam_local=0)
    share = np.mean(y[:, None] == y)
    close(losses(closed, X, y, setting, eps=0 * eps).prediction, 3 * (1 - share))
    assert norm(gradients(closed, X, y, setting, 0 * eps)) == 0


def test_one_neighbour_that_is_the_sample_itself_teaches_nothing():
    net, X, y, eps = problem(2, 16, 40, 5, 2)
    setting = ProtoGate(k=1, tau=0.01, lam_global=0, lam_local=0)
    assert losses(net, X, y, setting, eps=eps).prediction < 1e-9
    assert norm(gradients(net, X, y, setting, eps)) < 1e-9
    without = replace(setting, exclude_self=True)
    assert losses(net, X, y, without, eps=eps).prediction > 0.1


def test_order_of_samples_and_features_does_not_matter():
    net, X, y, eps = problem(4, 14, 9, 5, 3)
    setting, rng = ProtoGate(k=3), np.random.default_rng(0)
    loss, gradient = losses(net, X, y, setting, eps=eps), gradients(net, X, y, setting, eps)
    rows = rng.permutation(14)
    close(losses(net, X[rows], y[rows], setting, eps=eps[rows]), loss)
    for a, b in zip(gradients(net, X[rows], y[rows], setting, eps[rows]), gradient, strict=True):
        close(a, b)
    d = rng.permutation(9)
    moved = Net(net.W1[:, d], net.b1, net.W2[d], net.b2[d])
    close(losses(moved, X[:, d], y, setting, eps=eps[:, d]), loss)
    found = gradients(moved, X[:, d], y, setting, eps[:, d])
    expected = Net(gradient.W1[:, d], gradient.b1, gradient.W2[d], gradient.b2[d])
    for a, b in zip(found, expected, strict=True):
        close(a, b)


def test_penalties_at_known_points():
    net = Net(np.array([[1.0, -2.0]]), np.zeros(1), np.zeros((2, 1)), np.zeros(2))
    assert global_penalty(net, 0.5) == 1.5
    close(local_penalty(np.zeros((3, 8)), 2.0, 0.5), 2.0 * 8 / 2)
    # Phi(mu / sigma) is the probability that mu plus noise is positive.
    draws = 0.3 + 0.5 * np.random.default_rng(0).normal(size=200_000)
    assert abs(local_penalty(np.array([[0.3]]), 1.0, 0.5) - (draws > 0).mean()) < 0.005


def test_hard_sorting_has_no_gradient():
    net, X, y, eps = problem(5, 12, 8, 4, 2)
    setting = ProtoGate(lam_global=0, lam_local=0)
    assert norm(gradients(net, X, y, replace(setting, sort="quick"), eps)) == 0
    assert norm(gradients(net, X, y, setting, eps)) > 0.01


# --- The fast step ------------------------------------------------------------------------------


def step_on(X, y, setting, dtype=np.float32, hidden=20):
    net = initial_net(X.shape[1], hidden, np.random.default_rng(1), dtype)
    return training_step(net, X.astype(dtype), y, setting, np.random.default_rng(2))


def toy(n=40, d=60, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.normal(size=(n, d)).astype(np.float32)
    X[:, : d // 6] += 1.5 * ((y[:, None] + np.arange(d // 6)) % classes == 0)
    return X, y


@pytest.mark.parametrize("exclude_self", [False, True])
@pytest.mark.parametrize("B", [31, 40])
def test_plain_and_compiled_steps_have_the_same_bits(B, exclude_self, monkeypatch):
    X, y = toy(d=301)
    setting = ProtoGate(k=5, clip=0.5, exclude_self=exclude_self)
    one, two = step_on(X, y, setting), step_on(X, y, setting)
    rng = np.random.default_rng(0)
    batches = [rng.permutation(len(X))[:B] for _ in range(25)]
    for rows in batches:
        one(rows)
    plain_kernels.instead(monkeypatch)
    for rows in batches:
        two(rows)
    assert one.clipped == two.clipped > 0
    assert all(np.array_equal(a, b) for a, b in zip(one.net, two.net, strict=True))


@pytest.mark.parametrize("sort", ["hybrid", "quick"])
def test_speed_is_measured_by_the_products_that_a_step_does(sort, monkeypatch):
    X, y = toy(n=40, d=60)
    step, done, matmul = step_on(X, y, ProtoGate(sort=sort)), [], np.matmul
    model = ProtoGate(hidden=20, sort=sort, steps=1, random_state=0).fit(X, y)

    def counting(a, b, **options):
        done.append(a.shape[0] * a.shape[1] * b.shape[1])
        return matmul(a, b, **options)

    monkeypatch.setattr(np, "matmul", counting)
    step(np.arange(30))
    shapes = model.matrix_products(30)
    assert sorted(done) == sorted(m * k * n for m, k, n in shapes)


def test_a_step_on_some_rows_is_a_step_on_a_copy_of_them():
    X, y = toy(classes=3)
    rows = np.random.default_rng(3).permutation(len(X))[:25]
    some, alone = step_on(X, y, ProtoGate()), step_on(X[rows], y[rows], ProtoGate())
    for _ in range(3):
        some(rows)
        alone(np.arange(25))
    assert all(np.array_equal(a, b) for a, b in zip(some.net, alone.net, strict=True))


def test_in_plain_numpy_the_model_is_the_same(monkeypatch):
    expected = ProtoGate(**QUICK).fit(*toy()).net_.W1
    plain_kernels.instead(monkeypatch)
    assert np.array_equal(ProtoGate(**QUICK).fit(*toy()).net_.W1, expected)


def test_single_precision_gradients_agree_with_double():
    errors = []
    for seed in range(9):
        net, X, y, eps = problem(seed, 64, 500, 20, 3, spread=0.05)
        expected = gradients(net, X, y, ProtoGate(k=5), eps)
        single = Net(*(a.astype(np.float32) for a in net))
        found = gradients(single, X.astype(np.float32), y, ProtoGate(k=5), eps.astype(np.float32))
        errors.append(norm(Net(*map(np.subtract, found, expected))) / norm(expected))
    # The loss has a kink where two prototypes are equally near. When rounding decides on which side
    # of one a batch lies, the gradients differ visibly, and neither is wrong.
    assert np.median(errors) < 5e-5 and max(errors) < 0.1


def test_single_precision_training_stays_near_double():
    X, y = toy(n=64, d=300)
    options = {"hidden": 30, "steps": 100, "random_state": 0}
    single, double = (ProtoGate(dtype=t, **options).fit(X, y) for t in ("float32", "float64"))
    assert np.abs(single.masks(X) - double.masks(X)).max() < 0.03
    assert np.array_equal(single.predict(X), double.predict(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clipping_bounds_the_joint_norm(dtype):
    net, X, y, eps = problem(6, 16, 30, 6, 2)
    net.W1[:, ::2] = 0  # |w| has no slope there: these weights do not count for its gradient's norm
    net, (X, eps) = Net(*(a.astype(dtype) for a in net)), (a.astype(dtype) for a in (X, eps))
    for lam_global in (2e-4, 1.0):
        setting = ProtoGate(lr=1.0, weight_decay=0.0, clip=0.1, lam_global=lam_global)
        after = sgd_step(net, X, y, setting, eps)
        close(norm(Net(*(a - b for a, b in zip(after, net, strict=True)))), 0.1, 1e-4)


def test_proximal_step_makes_exact_zeros():
    X, y = toy()
    dense, sparse = (step_on(X, y, ProtoGate(lam_global=2e-3, prox_l1=p)) for p in (False, True))
    for step in (dense, sparse):
        for _ in range(200):
            step(np.arange(len(X)))
    assert (dense.net.W1 == 0).sum() == 0
    assert (sparse.net.W1 == 0).mean() > 0.2


def test_proximal_step_shrinks_every_weight_by_the_same():
    net, X, y, eps = problem(7, 16, 30, 6, 2, spread=0.3)
    setting = ProtoGate(lam_global=0.5, prox_l1=True)
    after = sgd_step(net, X, y, setting, eps)
    free = sgd_step(net, X, y, replace(setting, lam_global=0.0, prox_l1=False), eps)
    shrunk = np.sign(free.W1) * np.maximum(np.abs(free.W1) - setting.lr * 0.5, 0)
    assert 0.05 < (shrunk == 0).mean() < 0.5 and (shrunk < 0).any()
    for found, expected in zip(after, free._replace(W1=shrunk), strict=True):
        close(found, expected)


def test_noise_is_standard_normal_and_independent():
    state = np.random.default_rng(0).integers(0, 2**32, size=(4, 500), dtype=np.uint32)
    eps = np.empty((401, 500), np.float32)
    _noise.quantiles(state, _noise.QUANTILES, eps)
    moments = [(eps.astype(float) ** p).mean() for p in (1, 2, 3, 4)]
    np.testing.assert_allclose(moments, [0, 1, 0, 3], atol=0.05)
    from scipy.stats import kstest

    assert kstest(eps[:200].ravel(), "norm").pvalue > 0.01
    columns, rows = np.corrcoef(eps.T), np.corrcoef(eps)
    for correlation, n in ((columns, 401), (rows, 500)):
        off = correlation[~np.eye(len(correlation), dtype=bool)]
        assert np.abs(off).max() < 6 / math.sqrt(n)
    again = np.empty_like(eps)
    _noise.quantiles(state, _noise.QUANTILES, again)
    assert abs(np.corrcoef(eps.ravel(), again.ravel())[0, 1]) < 0.01


def test_elementary_functions():
    x = np.linspace(-12, 12, 100_001, dtype=np.float32)
    exact = np.tanh(x.astype(float))
    assert np.abs(_kernels.tanh32(x) - exact).max() < 8e-7
    assert np.abs(_kernels.tanh32(x)).max() <= 1
    small = np.abs(x) < 1
    np.testing.assert_allclose(_kernels.tanh32(x)[small], exact[small], rtol=3e-7)
    x = np.linspace(-59, 0, 100_001, dtype=np.float32)
    np.testing.assert_allclose(_kernels.exp32(x), np.exp(x.astype(float)), rtol=4e-7)


# --- The model ----------------------------------------------------------------------------------

QUICK = {"steps": 300, "hidden": 20, "check_every": 20, "random_state": 0}


def fitted_with(net, X, y, **options):
    """A model with given weights, as if it had been fitted to X and y."""
    model = ProtoGate(steps=1, hidden=len(net.b1), dtype=str(X.dtype), **options).fit(X, y)
    model.net_ = net
    model._store_prototypes(X, np.searchsorted(model.classes_, y))
    return model


@pytest.mark.parametrize("hidden, total", [(200, 2_392_566), (100, 1_199_266)])
def test_number_of_parameters(hidden, total):
    X, y = np.zeros((4, 5966), np.float32), [0, 1, 0, 1]
    assert ProtoGate(hidden=hidden, steps=1, random_state=0).fit(X, y).n_parameters_ == total


def test_initial_weights():
    net = initial_net(300, 100, np.random.default_rng(0))
    for W in (net.W1, net.W2):
        assert 0.0299 < np.abs(W).max() <= 0.03
        # A normal distribution cut at two standard deviations keeps 0.88 of its standard deviation.
        assert abs(W.std() - 0.88 * 0.015) < 1e-4 and abs(W.mean()) < 3e-4
    assert not net.b1.any() and not net.b2.any()


def test_neighbours_and_width_per_dataset():
    """K is in Table 19's bold cells; the released code is narrower on synthetic data."""
    entry = registry.models()["protogate"]

    def params(dataset):
        return entry.params_for(registry.data_ref(dataset))

    found = {d: params(d)["k"] for d in DATASETS}
    assert found == {"colon": 3, "lung": 3, "meta-dr": 4, "meta-pam": 3, "prostate": 5,
                     "tcga-2y": 3, "toxicity": 5}  # fmt: skip
    assert [params(d)["hidden"] for d in ("colon", "syn1")] == [200, 100]


def test_seeds_decide_every_bit():
    X, y = toy()
    one, two = (ProtoGate(**QUICK).fit(X, y, eval_set=(X, y)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one.net_, two.net_, strict=True))
    assert one.fit_report_ == two.fit_report_
    other = ProtoGate(**QUICK | {"random_state": 1}).fit(X, y)
    assert not np.array_equal(other.net_.W1, one.net_.W1)


def test_answers_do_not_depend_on_the_company():
    X, y = toy(n=150, d=333)
    model = ProtoGate(**QUICK | {"steps": 60}).fit(X[:100], y[:100])
    masks, proba = model.masks(X), model.predict_proba(X)
    order = np.random.default_rng(0).permutation(150)
    parts = [order, *(np.arange(150 - size, 150) for size in (1, 2, 7, 33))]
    for rows in parts:
        np.testing.assert_allclose(model.masks(X[rows]), masks[rows], atol=1e-6)
        assert np.array_equal(model.predict_proba(X[rows]), proba[rows])
    assert np.array_equal(model.select(X), masks > 0)


def test_it_learns_and_selects():
    X, y = toy(n=120, d=60, classes=3)
    model = ProtoGate(**QUICK | {"steps": 1500, "lam_local": 0.01}).fit(X[:90], y[:90])
    assert (model.predict(X[90:]) == y[90:]).mean() > 0.8
    selected = model.select(X[90:])
    assert selected[:, :10].mean() > 2 * selected[:, 10:].mean()


@pytest.mark.parametrize("k", [2, 4])
def test_ties_go_to_the_smaller_class(k):
    X, y = np.array([[1.0], [-1.0], [1.5], [-1.5]]), np.array(["b", "a", "b", "a"])
    gates_open = Net(np.zeros((1, 1)), np.zeros(1), np.zeros((1, 1)), np.full(1, 9.0))
    model = fitted_with(gates_open, X, y, k=k)
    assert np.array_equal(model.predict_proba([[0.0]]), [[0.5, 0.5]])
    assert model.predict([[0.0]]) == "a"
    # Among equally near prototypes the first in the training data come first.
    assert model.explain([[0.0]])[0].prototypes.tolist() == [0, 1, 2, 3][:k]


def test_explanations_say_what_the_model_did():
    X, y = toy(n=60, d=50, classes=3)
    names = np.array(["x", "y", "z"])[y]
    model = ProtoGate(**QUICK, k=3).fit(X[:40], names[:40])
    model.set_params(zero_threshold=float(np.median(np.abs(model.net_.W1).max(axis=0))))
    masks, proba = model.masks(X[40:]), model.predict_proba(X[40:])
    masked_train = X[:40] * model.masks(X[:40])
    explanations = model.explain(X[40:])
    assert len(explanations) == 20
    kept_globally = np.abs(model.net_.W1).max(axis=0) > model.zero_threshold
    assert kept_globally.sum() == 25
    for i, (e, mask) in enumerate(zip(explanations, masks, strict=True)):
        assert e.prediction == model.predict(X[40 + i : 41 + i])[0]
        assert np.array_equal(e.labels, names[e.prototypes])
        close(proba[i], [(e.labels == c).mean() for c in "xyz"])
        distances = np.linalg.norm(masked_train - X[40 + i] * mask, axis=1)
        close(e.distances, np.sort(distances)[:3], 1e-4)
        close(distances[e.prototypes], e.distances, 1e-4)
        assert np.array_equal(np.sort(e.features), np.flatnonzero(mask))
        assert np.array_equal(e.mask_values, mask[e.features])
        assert (np.diff(e.mask_values) <= 0).all()
        assert tuple(e.behaviours) == BEHAVIOURS
        every = np.concatenate(list(e.behaviours.values()))
        assert np.array_equal(np.sort(every), np.arange(50))
        expected = [kept_globally & (mask > 0), kept_globally & (mask == 0)]
        expected += [~kept_globally & (mask > 0), ~kept_globally & (mask == 0)]
        for name, where in zip(BEHAVIOURS, expected, strict=True):
            assert np.array_equal(e.behaviours[name], np.flatnonzero(where))


def test_neural_and_hybrid_train_alike_and_vote_differently():
    X, y = toy(n=60, d=30)
    hybrid, neural = (ProtoGate(sort=s, **QUICK).fit(X[:40], y[:40]) for s in ("hybrid", "neural"))
    assert np.array_equal(hybrid.net_.W1, neural.net_.W1)
    shares, relaxed = hybrid.predict_proba(X), neural.predict_proba(X)
    assert np.array_equal(shares * 3, np.round(shares * 3))
    assert not np.array_equal(relaxed * 3, np.round(relaxed * 3))
    close(relaxed.sum(axis=1), 1)
    assert (hybrid.predict(X) != neural.predict(X)).any()
    assert np.array_equal(hybrid.also_predict(X)["sort=neural"], neural.predict(X))
    assert np.array_equal(neural.also_predict(X)["sort=hybrid"], hybrid.predict(X))
    cold = ProtoGate(sort="neural", **QUICK).fit(X[:40], y[:40]).set_params(tau=1e-9)
    close(cold.predict_proba(X), shares, 1e-6)


def test_quick_sorting_trains_the_penalties_only():
    X, y = toy()
    shuffled = np.random.default_rng(0).permutation(y)
    one = ProtoGate(sort="quick", **QUICK).fit(X, y)
    two = ProtoGate(sort="quick", **QUICK).fit(X, shuffled)
    assert np.array_equal(one.masks(X), two.masks(X))
    hybrid = ProtoGate(**QUICK).fit(X, y)
    assert not np.array_equal(hybrid.masks(X), one.masks(X))


def test_collapse_is_reported():
    X, y = toy()
    healthy = ProtoGate(**QUICK).fit(X, y)
    assert healthy.fit_report_["collapsed"] is False
    model = ProtoGate(**QUICK | {"lam_local": 10.0}).fit(X, y, eval_set=(X, y))
    assert model.fit_report_["collapsed"] is True
    assert not model.select(X).any()
    assert np.isfinite(model.predict_proba(X)).all()
    json.dumps(model.fit_report_, allow_nan=False)


def test_report():
    X, y = toy(n=60)
    model = ProtoGate(**QUICK).fit(X[:40], y[:40], eval_set=(X[40:], y[40:]))
    report = model.fit_report_
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert report["steps"] == report["epochs"] == 300 and report["checks"] == 15
    at = report["curves"]["step"].index(report["best_step"])
    assert report["curves"]["total"][at] == min(report["curves"]["total"])
    setting = ProtoGate(k=3)
    found = losses(model.net_, X[40:], y[40:], setting, base=(X[:40], y[:40]))
    close(found.total, report["curves"]["total"][at], 1e-4)
    counts = list(report["globally_selected"].values())
    assert list(report["globally_selected"]) == ["0", "0.0005", "0.001", "0.002", "0.005", "0.01"]
    assert counts == sorted(counts, reverse=True)
    assert model.seconds_per_epoch_ > 0


@pytest.mark.parametrize(
    "rule, curve, best",
    [
        ("valid_loss", "total", min),
        ("valid_prediction_loss", "prediction", min),
        ("valid_balanced_accuracy", "balanced_accuracy", max),
    ],
)
def test_checkpoint_rules(rule, curve, best):
    X, y = toy(n=60)
    model = ProtoGate(checkpoint=rule, **QUICK).fit(X[:40], y[:40], eval_set=(X[40:], y[40:]))
    report = model.fit_report_
    values = report["curves"][curve]
    assert report["best_step"] == report["curves"]["step"][values.index(best(values))]


def test_the_prototypes_are_those_of_the_weights_that_were_kept():
    X, y = toy(n=60)
    model = ProtoGate(checkpoint="valid_balanced_accuracy", **QUICK)
    model.fit(X[:40], y[:40], eval_set=(X[40:], y[40:]))
    assert model.fit_report_["best_step"] < 300
    assert np.array_equal(model.prototypes_, X[:40] * model.masks(X[:40]))


def test_patience_ends_the_training():
    X, y = toy(n=60)
    model = ProtoGate(checkpoint="valid_balanced_accuracy", patience=40, **QUICK)
    report = model.fit(X[:40], y[:40], eval_set=(X[40:], y[40:])).fit_report_
    assert report["stopped_early"] and report["steps"] == report["best_step"] + 40 < 300


def test_last_checkpoint_is_the_model_without_eval_set():
    X, y = toy(n=60)
    last = ProtoGate(checkpoint="last", **QUICK).fit(X[:40], y[:40], eval_set=(X[40:], y[40:]))
    without = ProtoGate(**QUICK).fit(X[:40], y[:40])
    assert np.array_equal(last.net_.W1, without.net_.W1)
    assert last.fit_report_["best_step"] == 300
    rare = np.flatnonzero(y[40:] == 0)[:3] + 40
    valid = np.r_[rare, np.flatnonzero(y[40:] == 1) + 40]
    last.fit(X[:40], y[:40], eval_set=(X[valid], y[valid]))
    accuracy = balanced_accuracy_score(y[valid], last.predict(X[valid]))
    assert accuracy != (last.predict(X[valid]) == y[valid]).mean()
    assert last.fit_report_["curves"]["balanced_accuracy"][-1] == pytest.approx(accuracy, rel=1e-4)
    assert without.fit_report_["checks"] == 0 and without.fit_report_["curves"] == {}


def test_wrong_names_are_refused():
    X, y = toy()
    with pytest.raises(ValueError, match="sort must be one of .*quick.*got 'bubble'"):
        ProtoGate(sort="bubble").fit(X, y)
    with pytest.raises(ValueError, match="checkpoint must be one of .* got 'best'"):
        ProtoGate(checkpoint="best").fit(X, y)


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": -1}, {"k": 3.5}, {"hidden": 0}])
def test_counts_below_one_are_refused(wrong):
    with pytest.raises(ValueError, match="must be a whole number of at least 1, got"):
        ProtoGate(**wrong).fit(*toy())


@pytest.mark.parametrize("wrong", [{"sigma": 0.0}, {"tau": -1.0}, {"tau": math.nan}])
def test_widths_that_are_not_positive_are_refused(wrong):
    with pytest.raises(ValueError, match="must be positive, got"):
        ProtoGate(**wrong).fit(*toy())


def test_the_defaults_are_the_released_settings_where_text_and_code_disagree():
    """The decision register's choices; K and the strengths are searched, so any will do."""
    found = ProtoGate().get_params()
    decided = {
        "hidden": 200, "steps": 10_000, "batch_size": 64, "check_every": 50, "sigma": 0.5, "tau": 16.0,
        "weight_decay": 1e-4, "clip": 2.5, "checkpoint": "valid_loss", "patience": None,
        "sort": "hybrid", "exclude_self": False, "prox_l1": False, "zero_threshold": 1e-3,
        "dtype": "float32",
    }  # fmt: skip
    assert {name: found[name] for name in decided} == decided


def test_many_samples_are_worked_through_in_blocks(monkeypatch):
    X, y = toy(n=90)
    whole = ProtoGate(**QUICK).fit(X[:50], y[:50], eval_set=(X[50:], y[50:]))
    in_parts = protogate.blocks
    monkeypatch.setattr(protogate, "blocks", lambda n: in_parts(n, 7))
    parts = ProtoGate(**QUICK).fit(X[:50], y[:50], eval_set=(X[50:], y[50:]))
    close(parts.prototypes_, whole.prototypes_, 1e-5)
    assert np.array_equal(parts.predict_proba(X), whole.predict_proba(X))
    assert parts.fit_report_["train_selected"] == whole.fit_report_["train_selected"]


def test_training_on_many_samples_needs_little_memory_beyond_them():
    """The prototypes are as large as the data; the rest is a few blocks of 256 samples."""
    X, y = toy(n=6000, d=600)
    model = ProtoGate(steps=1, check_every=1, hidden=10, random_state=0)
    model.fit(X[:100], y[:100])  # compiles what is compiled
    tracemalloc.start()
    model.set_params(steps=93).fit(X, y, eval_set=(X[:10], y[:10]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.fit_report_["checks"] == 1
    block = 256 * 600 * 8
    assert peak < 1.2 * X.nbytes + 10 * block


def test_a_hundred_classes_and_more_neighbours_than_samples():
    X, y = toy(n=300, d=40, classes=100)
    model = ProtoGate(**QUICK | {"steps": 20}, k=5).fit(X, y)
    assert model.predict_proba(X).shape == (300, 100)
    tiny = ProtoGate(**QUICK | {"steps": 20}, k=50).fit(X[:6], y[:6])
    close(tiny.predict_proba(X[:9]), np.full((9, 6), 1 / 6))


def test_pickling_keeps_the_answers():
    X, y = toy()
    model = ProtoGate(**QUICK).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.predict_proba(X), model.predict_proba(X))
    assert copy.n_parameters_ == model.n_parameters_


def test_global_generators_are_left_alone():
    X, y = toy()
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the global generator is the point
    ProtoGate(**QUICK).fit(X, y, eval_set=(X, y))
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.slow
def test_published_regime_on_wide_data():
    """Wide data with few samples: far fewer features than at the start, better than chance."""
    X, y = toy(n=80, d=2000)
    model = ProtoGate(steps=3000, random_state=42)
    model.fit(X[:50], y[:50], eval_set=(X[50:60], y[50:60]))
    assert (model.predict(X[60:]) == y[60:]).mean() > 0.8
    assert model.select(X[60:]).sum(axis=1).mean() < 400


# --- The training loop --------------------------------------------------------------------------


def run_loop(n=10, scores=(), **options):
    """Train a counter; its checks return the given scores, its weights are the step."""
    state, batches, remaining = {"weights": 0}, [], iter(scores)

    def step(rows):
        batches.append(rows)
        state["weights"] += 1

    options = {
        "rng": np.random.default_rng(0),
        "batch_size": 64,
        "check": (lambda: {"loss": next(remaining)}) if scores else None,
        "score": lambda numbers: numbers["loss"],
        "save": lambda: state["weights"],
        "load": lambda weights: state.update(weights=weights),
        **options,
    }
    return train(n, step, **options), batches, state["weights"]


def test_every_epoch_is_a_new_order_without_the_rest():
    training, batches, _ = run_loop(n=10, steps=7, batch_size=4)
    assert training.steps == 7 and training.epochs == 4  # the last epoch is cut short
    assert [len(rows) for rows in batches] == [4] * 7
    for first in range(0, 6, 2):
        assert len(set(np.concatenate(batches[first : first + 2]))) == 8
    assert not np.array_equal(batches[0], batches[2])
    _, batches, _ = run_loop(n=3, steps=2, batch_size=64)
    assert [sorted(rows) for rows in batches] == [[0, 1, 2]] * 2


def test_the_first_of_the_best_checks_is_kept():
    training, _, weights = run_loop(
        n=4, batch_size=4, steps=10, check_every=2, scores=[3.0, 1.0, 2.0, 1.0, math.nan]
    )
    assert weights == training.best_step == 4 and training.steps == 10
    assert [c["step"] for c in training.checks] == [2, 4, 6, 8, 10]
    assert training.report()["curves"] == {
        "step": [2, 4, 6, 8, 10],
        "loss": [3.0, 1.0, 2.0, 1.0, None],
    }
    assert training.report()["kept"] == {"step": 4, "loss": 1.0}


def test_patience_is_in_steps():
    training, _, weights = run_loop(
        n=4, batch_size=4, steps=100, check_every=2, patience=5, scores=[3.0, 1.0] + [2.0] * 50
    )
    assert training.stopped_early and training.steps == 10  # 4 + 5 lies before the check at 10
    assert weights == 4


def test_without_score_or_checks_the_last_weights_stay():
    training, _, weights = run_loop(n=4, steps=9, score=None, check_every=3, scores=[1.0, 2.0, 3.0])
    assert weights == training.best_step == 9 and len(training.checks) == 3
    training, _, weights = run_loop(n=4, steps=9, check_every=50, scores=[1.0])
    assert weights == training.best_step == 9 and training.checks == []
    assert training.report()["kept"] is None


def test_the_kept_check_is_reported_where_the_curves_are_too_short_for_it():
    scores = [abs(i - 62) + 2 / 3 for i in range(200)]
    training, _, _ = run_loop(n=4, batch_size=4, steps=200, check_every=1, scores=scores)
    report = training.report()
    assert 63 not in report["curves"]["step"]
    assert report["kept"] == {"step": 63, "loss": 0.66667}


def test_curves_are_short():
    found = curves([{"step": i, "loss": math.pi * i} for i in range(1000)])
    assert len(found["step"]) == 50
    assert found["step"][0] == 0 and found["step"][-1] == 999
    assert found["loss"][-1] == 3138.5
