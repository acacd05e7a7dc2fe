"""MLP, STG, LSPIN and LLSPIN: facts of the papers, and the official toy examples."""

import math

import numpy as np
import plain_kernels
import pytest
import torch
from benchmark.models import _chain, _gated_step
from benchmark.models._gates import gated_step
from benchmark.models._networks import class_weights, seeded
from benchmark.models._noise import QUANTILES
from benchmark.models._train import train
from benchmark.models.lspin import LSPIN, PREDICTORS, LocallySparse
from benchmark.models.mlp import MLP
from benchmark.models.protogate import ProtoGate
from benchmark.models.protogate_head import HEADS, ProtoGateHead
from benchmark.models.stg import INITS, STG
from benchmark.models.stg import PREDICTORS as PREDICTORS_OF_STG
from sklearn.datasets import make_moons
from sklearn.metrics import balanced_accuracy_score, r2_score

from benchmark.protocol.registry import load_class, models


def wide(n=60, d=50, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, (X[:, :n_classes].argmax(axis=1)).astype(int)


@pytest.mark.parametrize(
    ("name", "settings", "count"),
    [
        ("mlp", {}, 620_184),
        ("stg", {}, 613_798),
        # The MLP's network and the gates.
        ("stg", {"predictor": "mlp"}, 620_184 + 5966),
        # Gates and predictor as the paper counts them, and the 12,352 of batch norm.
        ("lspin", {}, 3_000_398 + 12_352),
        ("lspin", {"gate_hidden": 100}, 1_807_098 + 12_352),
        ("llspin", {}, 3_000_398 + 12_352),
        ("llspin", {"gate_hidden": 100}, 1_807_098 + 12_352),
        ("llspin-single", {}, 2_392_566 + 2 * 5966 + 2),
    ],
)
def test_numbers_of_parameters(name, settings, count):
    entry = models()[name]
    X, y = wide(d=5966)
    model = load_class(entry)(**{**entry.params, **settings, "steps": 1}, random_state=0)
    assert model.fit(X, y).n_parameters_ == count


def test_the_loss_of_an_untrained_last_layer_is_ln_c():
    X, y = wide(n_classes=4)
    net = MLP()._network(X.shape[1], 4)
    torch.nn.init.zeros_(net.layers[-2].weight)
    torch.nn.init.zeros_(net.layers[-2].bias)
    logits = net(torch.from_numpy(X))[0].detach()
    assert float(torch.nn.functional.cross_entropy(logits, torch.from_numpy(y))) == pytest.approx(
        math.log(4)
    )


def test_tanh_logits_keep_the_loss_above_its_floor():
    X, y = wide()
    model = MLP(lr=0.1, steps=600, random_state=0).fit(X, y, eval_set=(X, y))
    losses = model.fit_report_["curves"]["valid_prediction_loss"]
    floor = math.log(1 + math.exp(-2))
    assert floor < min(losses) < 1.6 * floor
    assert (model.predict(X) == y).all()


def test_class_weights_are_balanced():
    weights = class_weights(np.array([0, 0, 0, 1]), 2, "balanced")
    assert weights.tolist() == pytest.approx([4 / 6, 4 / 2])
    assert class_weights(np.array([0, 1]), 2, None) is None
    with pytest.raises(ValueError, match="class_weight must be"):
        class_weights(np.array([0, 1]), 2, "heavy")


def test_stg_two_moons():
    """The official example: of 20 features exactly the two true ones stay open."""
    rng = np.random.default_rng(0)
    moons, y = make_moons(1000, noise=0.1, random_state=0)
    X = np.column_stack([moons, rng.normal(size=(1000, 18))]).astype(np.float32)
    model = STG(
        lam=0.5,
        hidden=(60, 20),
        lr=0.1,
        steps=6000,
        batch_size=240,
        weight_decay=0.0,
        random_state=1,
    ).fit(X[:240], y[:240], eval_set=(X[240:], y[240:]))
    assert model.gates_[:2] == pytest.approx([1, 1])
    assert (model.gates_[2:] == 0).all()
    assert model.select(X[:3]).sum(axis=1).tolist() == [2, 2, 2]
    assert model.fit_report_["curves"]["valid_prediction_loss"][-1] < 0.05
    assert (model.predict(X[240:]) == y[240:]).mean() > 0.98


def penalty(model, mu):
    """What each paper adds to the cross-entropy, as it is written there."""
    Phi, sigma = torch.special.ndtr, 0.5
    if isinstance(model, STG):
        return model.lam * Phi((mu + 0.5) / sigma).mean()
    if isinstance(model, LSPIN):
        return model.lam * Phi((mu + 0.5) / sigma).sum(dim=1).mean()
    if isinstance(model, ProtoGateHead):
        weights = model.net_.gates.first.weight.abs().sum()
        return model.lam_global * weights + model.lam_local * Phi(mu / sigma).sum(dim=1).mean()
    return 0.0


STRONG = {
    MLP: {},
    STG: {"lam": 20.0},
    LSPIN: {"lam": 0.2, "gate_hidden": 10},
    ProtoGateHead: {"lam_global": 0.03, "lam_local": 0.2, "gate_hidden": 10},
}
"""Penalties that are not lost beside the cross-entropy."""


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize(
    ("Model", "more"),
    [
        *((Model, {}) for Model in STRONG),
        (STG, {"predictor": "mlp"}),
        (STG, {"predictor": "mlp", "init": "torch"}),
    ],
)
def test_one_step_descends_like_autograd(Model, more, class_weight):
    X, y = wide(n=40)
    y[:10] = 0  # so that the classes' weights differ
    settings = {"lr": 0.3, "weight_decay": 0.1, "clip": 0.5, "class_weight": class_weight}
    settings |= STRONG[Model] | more
    plain = Model(**settings, steps=0, random_state=0).fit(X, y)
    found = Model(**settings, steps=1, random_state=0).fit(X, y)

    net = plain.net_.train()
    x, labels = torch.from_numpy(X), torch.from_numpy(y)
    with seeded(0):  # the noise comes after the initial weights
        plain._network(X.shape[1], 2)
        if Model is MLP:
            noise, mu, z = [], None, torch.ones_like(x)
        elif Model is STG:
            noise, mu = [torch.randn(X.shape[1])], net.mu
            z = torch.clamp(mu + 0.5 + 0.5 * noise[0], 0, 1)
        else:
            state, eps = torch.randint(2**32, (4, X.shape[1])), np.empty_like(X)
            plain_kernels.quantiles(state.numpy().astype(np.uint32), QUANTILES, eps)
            noise, mu = [torch.from_numpy(eps)], net.gates(x)[1]
            z = torch.clamp(mu + (0.5 if Model is LSPIN else 0.0) + 0.5 * noise[0], 0, 1)
    weights = class_weights(y, 2, class_weight)
    loss = plain.loss(net, x, labels, weights, *noise)
    # The loss of the model's file is that of the paper.
    logits = list(net.children())[-1](x * z)
    prediction = torch.nn.functional.cross_entropy(logits, labels, weights)
    torch.testing.assert_close(loss.total, prediction + penalty(plain, mu))
    loss.total.backward()
    before = torch.nn.utils.parameters_to_vector(net.parameters()).detach().clone()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    torch.optim.SGD(net.parameters(), 0.3, weight_decay=0.1).step()
    expected = torch.nn.utils.parameters_to_vector(net.parameters())
    ours = torch.nn.utils.parameters_to_vector(found.net_.parameters())
    assert (expected - before).abs().max() > 0.01
    torch.testing.assert_close(ours, expected, atol=2e-6, rtol=0)


def test_stg_can_predict_with_the_network_of_the_mlp():
    """Layer by layer, and from the same initial weights; batch norm learns from the gated samples."""
    X, y = wide(n=40)
    with seeded(0):
        torch.randn(X.shape[1])  # STG's gates come first
        perceptron = MLP()._network(X.shape[1], 2)
    start = STG(predictor="mlp", init="torch", steps=0, random_state=0).fit(X, y).net_
    assert str(start.predictor) == str(perceptron.layers)
    for ours, theirs in zip(start.predictor.parameters(), perceptron.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    settings = {"predictor": "mlp", "lr": 0.1, "steps": 200, "batch_size": 16, "random_state": 0}
    model = STG(**settings, lam=0.1).fit(X, y)
    first = model.net_.predictor[0]
    assert isinstance(first, torch.nn.BatchNorm1d) and first.running_mean.abs().max() > 0.01
    with torch.no_grad():
        logits, _ = model.net_(torch.from_numpy(X))
    assert logits.abs().max() <= 1, "tanh on the output"
    alone = model.predict_proba(X[:1])  # running averages, not those of what is predicted together
    np.testing.assert_allclose(model.predict_proba(X)[:1], alone, atol=1e-6)


def test_behind_batch_norm_stgs_gates_feel_the_prediction_only_next_to_closed():
    """A gate scales its feature for a whole batch, which batch norm undoes unless it is nearly 0."""
    X, y = wide(n=40, d=2000)
    moved = {}
    for predictor in PREDICTORS_OF_STG:
        settings = {"lam": 0.0, "predictor": predictor, "lr": 0.1, "weight_decay": 0.0}
        start, end = (
            STG(**settings, steps=steps, random_state=0).fit(X, y).net_.mu.detach()
            for steps in (0, 1)
        )
        moved[predictor] = (end - start).abs()
    with seeded(0):
        STG(predictor="mlp")._network(2000, 2)
        z = start + 0.5 + 0.5 * torch.randn(2000)
    near, far = (z > 0) & (z < 0.01), (z > 0.1) & (z < 1)
    assert moved["mlp"][far].mean() < 0.01 * moved["official"][far].mean()
    assert moved["mlp"][near].mean() > moved["official"][near].mean()


def linear_demo(n, seed):
    """Two groups of four features; each group's target needs two of them."""
    rng = np.random.default_rng(seed)
    one, two = rng.normal(1, 0.5, (n // 2, 4)), rng.normal(-1, 0.5, (n // 2, 4))
    y = np.concatenate([-2 * one[:, 0] + one[:, 1], two[:, 2] - 2 * two[:, 3]])
    return np.concatenate([one, two]).astype(np.float32), y.astype(np.float32)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_llspin_linear_demo(seed):
    """The official example: features {1, 2} for the first group, {3, 4} for the second.

    Its hidden layers are [100, 100, 10, 1], and the output is one more layer, again behind batch
    norm; all weights start with standard deviation 0.1, that code's default: with our 1 / sqrt(D), meant
    for wide data and here 0.5, wrong gates stay open. It prints R2 = 0.989, squared error 2.7e-4.
    """
    X, y = linear_demo(800, seed)
    X_test, y_test = map(torch.from_numpy, linear_demo(400, 1000 + seed))
    low, high = y.min(), y.max()
    target = ((y - low) / (high - low))[:, None]

    def squared_error(output, rows):
        miss = output - target[rows]
        return (miss**2).mean(), 2 * miss / miss.size

    torch.manual_seed(seed)
    net = LocallySparse([4, 100, 100, 10, 1, 1], 10, 0.5, 0.5, "linear-layers", "torch", std=0.1)
    step = gated_step(
        net.gates,
        net.predictor,
        X,
        squared_error,
        lam_local=5e-3 / 4,  # the official penalty is a mean over features, ours is a sum
        lr=0.1,
    )
    train(800, step, steps=10_000, rng=np.random.default_rng(seed), batch_size=800)
    net.eval()
    with torch.no_grad():
        predicted, _ = net(X_test)
        gates = (net.gates(X_test)[0] > 0).float().numpy()
    assert r2_score((y_test - low) / (high - low), predicted[:, 0].numpy()) > 0.97
    wanted = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1]], 200, axis=0)
    assert (gates == wanted).mean() > 0.97


def gated_net(shift, predictor, dtype=torch.float64, d=30):
    """A network with gates that are neither all open nor all closed, and data for it."""
    torch.manual_seed(3)
    net = LocallySparse([d, 12, 3], 8, 0.5, shift, predictor, "torch", std=0.4).to(dtype)
    with torch.no_grad():
        for p in net.gates.parameters():
            p += 0.2 * torch.randn_like(p)
    return net, torch.randn(20, d, dtype=dtype), torch.arange(20) % 3


@pytest.mark.parametrize("clip", [None, 0.05, 1e6])
@pytest.mark.parametrize(
    ("shift", "predictor", "lam_global"),
    [(0.5, "tanh", 0.0), (0.5, "linear", 0.0), (0.0, "tanh", 0.03), (0.0, "linear", 0.03)],
)
def test_the_gated_step_descends_like_autograd(shift, predictor, lam_global, clip):
    """Its hand-written gradient, clipping and update equal torch's, in float64."""
    net, X, y = gated_net(shift, predictor)
    plain, _, _ = gated_net(shift, predictor)
    eps = torch.randn_like(X)
    cross_entropy = torch.nn.functional.cross_entropy

    step = gated_step(
        net.gates,
        net.predictor,
        X.numpy(),
        lambda output, rows: _chain.cross_entropy(output, y.numpy()[rows]),
        lam_local=0.02,
        lam_global=lam_global,
        lr=0.3,
        weight_decay=0.1,
        clip=clip,
    )
    step.forward(step.X, eps.numpy())
    step.backward(step.X, slice(None))
    step.update()

    optimizer = torch.optim.SGD(plain.parameters(), 0.3, weight_decay=0.1)
    gates, mu = plain.gates(X, eps)
    assert 0.1 < ((gates > 0) & (gates < 1)).double().mean() < 0.9
    loss = cross_entropy(plain.predictor(X * gates), y) + 0.02 * plain.gates.expected_open(mu)
    (loss + lam_global * plain.gates.first.weight.abs().sum()).backward()
    if clip is not None:
        torch.nn.utils.clip_grad_norm_(plain.parameters(), clip)
    before = [p.detach().clone() for p in plain.parameters()]
    optimizer.step()
    for old, ours, theirs in zip(before, net.parameters(), plain.parameters(), strict=True):
        assert not torch.equal(old, theirs)
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 0.5])
def test_compiled_gates_have_the_bits_of_plain_ones(shift):
    rng = np.random.default_rng(0)
    Z, eps, X = rng.normal(size=(3, 7, 41)).astype(np.float32)
    b2 = rng.normal(size=41).astype(np.float32)
    scalars = [np.float32(v) for v in (shift, 0.5, -2.0, 0.01)]
    results = []
    for kernels in (plain_kernels, _gated_step):
        mu, out = Z.copy(), np.empty((3, 7, 41), np.float32)
        kernels.gate(mu, b2, eps, X, *scalars, *out)
        results.append(np.stack([mu, *out]))
    np.testing.assert_array_equal(results[0], results[1])


@pytest.mark.parametrize("model", [LSPIN, ProtoGateHead])
def test_the_gated_models_train_to_the_same_bits(model, monkeypatch):
    """Twice from the same seed; and with plain NumPy instead of the compiled loops."""
    X, y = wide(n=70)

    def weights(seed):
        net = model(steps=30, gate_hidden=10, random_state=seed).fit(X, y).net_
        return torch.cat([p.detach().flatten() for p in net.parameters()])

    first = weights(0)
    assert torch.equal(first, weights(0))
    assert not torch.equal(first, weights(1))
    plain_kernels.instead(monkeypatch)
    assert torch.equal(first, weights(0))


def test_gates_are_noisy_in_training_only():
    net, X, y = gated_net(0.5, "tanh", torch.float32)
    step = gated_step(
        net.gates,
        net.predictor,
        X.numpy(),
        lambda output, rows: _chain.cross_entropy(output, y.numpy()[rows]),
        lam_local=0.0,
        lr=0.0,
    )
    draws = []
    for _ in range(50):
        step(np.arange(len(X)))
        draws.append(step.eps.copy())
        gates, _ = net.gates(X, torch.from_numpy(step.eps))
        np.testing.assert_allclose(step.M, (X * gates).detach(), atol=2e-6)
    draws = np.stack(draws)
    assert abs(draws.mean()) < 0.02 and abs(draws.std() - 1) < 0.02
    assert abs(np.corrcoef(draws[:-1].ravel(), draws[1:].ravel())[0, 1]) < 0.02
    assert torch.equal(net.gates(X)[0], net.gates(X)[0])


def test_gates_do_not_depend_on_the_rest_of_the_batch():
    X, y = wide()
    model = LSPIN(steps=100, gate_hidden=20, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.masks(X)[7], model.masks(X[7:8])[0], atol=1e-6)
    assert (model.select(X) == (model.masks(X) > 0)).all()


def test_a_heavier_penalty_closes_gates():
    X, y = wide(d=30)
    few, many = (
        LSPIN(lam=lam, steps=800, gate_hidden=20, random_state=0)
        .fit(X, y)
        .select(X)
        .sum(axis=1)
        .mean()
        for lam in (0.1, 0.0)
    )
    assert few < 0.7 * many


def test_llspin_is_linear_in_the_gated_features():
    """Without activations the predictor is an affine map of x * g."""
    X, y = wide()
    for predictor in ("linear-layers", "linear"):
        net = LSPIN(predictor=predictor, steps=50, gate_hidden=10, random_state=0).fit(X, y).net_
        a, b = torch.from_numpy(X[:5]), torch.from_numpy(X[5:10])
        with torch.no_grad():
            middle = net.predictor((a + b) / 2)
            np.testing.assert_allclose(middle, (net.predictor(a) + net.predictor(b)) / 2, atol=1e-4)


def test_lspin_has_the_batch_norm_of_either_library():
    """One step moves the averages of the gated samples by the momentum's share."""
    X, y = wide(n=40)
    norms = {}
    for name in ("torch", "tensorflow"):
        model = LSPIN(batch_norm=name, steps=1, gate_hidden=10, random_state=0).fit(X, y)
        norms[name] = [m for m in model.net_.predictor if isinstance(m, torch.nn.BatchNorm1d)]
        assert len(norms[name]) == 4
    assert {norm.eps for norm in norms["torch"]} == {1e-5}
    assert {norm.eps for norm in norms["tensorflow"]} == {1e-3}
    moved = {name: chain[0].running_mean for name, chain in norms.items()}
    assert moved["tensorflow"].abs().max() > 0
    torch.testing.assert_close(moved["torch"], 10 * moved["tensorflow"])


@pytest.mark.parametrize("Model", STRONG)
def test_matrix_products_are_all_there(Model):
    """Forward, to the weights and to the inputs; the data themselves need no gradient."""
    X, y = wide(n=30)
    D, predictor = 50, 50 * 100 + 100 * 100 + 100 * 10 + 10 * 2
    gates = 5 * D * 10 if "gate_hidden" in STRONG[Model] else 0
    shapes = Model(**STRONG[Model], steps=1, random_state=0).fit(X, y).matrix_products(30)
    assert sum(m * k * n for m, k, n in shapes) == 30 * (gates + 3 * predictor)


@pytest.mark.parametrize("Model", STRONG)
def test_settings_that_make_no_sense_are_refused(Model):
    X, y = wide()
    with pytest.raises(ValueError, match="checkpoint must be one of .* got 'best'"):
        Model(checkpoint="best").fit(X, y)
    if Model is not MLP:
        with pytest.raises(ValueError, match="sigma must be positive, got 0.0"):
            Model(sigma=0.0).fit(X, y)


@pytest.mark.parametrize("Model", [*STRONG, ProtoGate])
def test_a_training_that_diverged_is_no_prediction_of_the_first_class(Model):
    X, y = wide()
    model = Model(steps=20, random_state=0).fit(X, y)
    with torch.no_grad():
        for part in model.net_ if Model is ProtoGate else model.net_.parameters():
            part[...] = np.nan
    with pytest.raises(FloatingPointError, match="not finite.*[Rr]escale"):
        model.predict(X)


@pytest.mark.parametrize(
    "model",
    [
        MLP(lr=0.1),
        STG(lr=0.1, lam=0.1),
        STG(lr=0.1, lam=0.1, predictor="mlp"),
        *(LSPIN(predictor=p, lam=1e-4, gate_hidden=20) for p in PREDICTORS),
        *(ProtoGateHead(head=h, lam_local=1e-4, gate_hidden=20) for h in HEADS),
    ],
    ids=repr,
)
def test_a_hundred_classes(model):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(100), 4)
    X = 3 * rng.normal(size=(100, 40))[y] + rng.normal(size=(400, 40))
    model.set_params(steps=300, random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (400, 100)
    assert (model.predict(X) == y).mean() > 0.4


def test_unknown_names_are_refused():
    X, y = wide()
    with pytest.raises(ValueError, match="predictor must be one of"):
        LSPIN(predictor="deep").fit(X, y)
    with pytest.raises(ValueError, match="batch_norm must be one of"):
        LSPIN(batch_norm="jax").fit(X, y)
    with pytest.raises(ValueError, match="predictor must be one of .*, got 'deep'"):
        STG(predictor="deep").fit(X, y)
    with pytest.raises(ValueError, match="init must be one of .*, got 'zeros'"):
        STG(init="zeros").fit(X, y)


@pytest.mark.parametrize("Model", STRONG)
def test_the_weights_that_are_kept_have_the_loss_that_was_measured(Model):
    X, y = wide(n=90)
    y[:20] = 0  # weights of the classes that differ
    settings = {**STRONG[Model], "lr": 0.1, "class_weight": "balanced"}
    rule = "valid_prediction_loss"  # the total still falls at the end where gates close slowly
    model = Model(**settings, steps=400, check_every=10, checkpoint=rule, random_state=0)
    model.fit(X[:60], y[:60], eval_set=(X[60:], y[60:]))
    report, curves = model.fit_report_, model.fit_report_["curves"]
    assert report["best_step"] < 400  # so that later weights would have another loss
    with torch.no_grad():
        logits, mu = model.net_(torch.from_numpy(X[60:]))
        weights = class_weights(y[:60], 2, "balanced")
        prediction = torch.nn.functional.cross_entropy(logits, torch.from_numpy(y[60:]), weights)
        total = float(prediction + penalty(model, mu))
    at = curves["step"].index(report["best_step"])
    assert min(curves[rule]) == curves[rule][at] == pytest.approx(float(prediction), rel=1e-4)
    assert curves["valid_loss"][at] == pytest.approx(total, rel=1e-4)
    if hasattr(model, "select"):
        counts = model.select(X[60:]).sum(axis=1)
        assert curves["selected"][at] == pytest.approx(counts.mean(), rel=1e-4)


def test_initial_weights():
    """Standard deviations and cuts; a normal distribution cut at two standard deviations keeps 0.88 of its own."""
    D = 900

    def weights(net):
        return torch.cat([p.flatten() for p in net.parameters() if p.ndim == 2]).detach()

    with seeded(0):
        lspin, head, stg = (m._network(D, 2) for m in (LSPIN(), ProtoGateHead(), STG()))
    for found, std in ((weights(lspin), 1 / 30), (weights(head.gates), 0.015)):
        assert 1.99 * std < found.abs().max() <= 2 * std
        assert found.std() == pytest.approx(0.88 * std, rel=0.01)
    assert 0.199 < weights(stg).abs().max() <= 0.2
    assert weights(stg).std() == pytest.approx(0.2 / math.sqrt(3), rel=0.02)  # nearly uniform
    assert float(stg.mu.std()) == pytest.approx(0.01, rel=0.1)
    with seeded(0):
        drawn = {init: STG(predictor="mlp", init=init)._network(D, 2) for init in INITS}
    assert 0.199 < weights(drawn["official"].predictor).abs().max() <= 0.2
    # torch: uniform within 1 / sqrt(inputs), so that the first layer is the narrowest.
    assert 0.99 / 30 < drawn["torch"].predictor[1].weight.abs().max() <= 1 / 30


@pytest.mark.parametrize("Model", STRONG)
def test_seeds_as_scikit_learn_means_them(Model):
    X, y = wide()

    def first(random_state):
        net = Model(steps=2, random_state=random_state).fit(X, y).net_
        return torch.nn.utils.parameters_to_vector(net.parameters())

    same, again = (first(np.random.RandomState(3)) for _ in range(2))
    assert torch.equal(same, again)
    assert not torch.equal(first(None), first(None))
    assert torch.equal(first(np.int64(5)), first(5))


def test_one_feature_has_the_same_bits_in_plain_numpy(monkeypatch):
    X, y = wide(n=70, d=3)

    def weights(Model):
        net = Model(**STRONG[Model], steps=30, random_state=0).fit(X[:, :1], y).net_
        return torch.nn.utils.parameters_to_vector(net.parameters())

    compiled = [weights(Model) for Model in STRONG]
    plain_kernels.instead(monkeypatch)
    for Model, expected in zip(STRONG, compiled, strict=True):
        assert torch.equal(weights(Model), expected)


@pytest.mark.filterwarnings("error:The given NumPy array is not writable")
def test_data_that_cannot_be_written_to_can_be_learned_from():
    X, y = wide()
    X.flags.writeable = False
    MLP(steps=2, random_state=0).fit(X, y).predict(X)


@pytest.mark.parametrize("model", [MLP, STG, LSPIN])
def test_the_best_check_is_restored_and_patience_stops(model):
    X, y = wide(n=80)
    y[60:76] = 1 - y[60:76]  # wrong labels, so that the loss rises in the end
    # By the prediction loss: with the penalty it may fall to the end.
    rule = "valid_prediction_loss"
    fitted = model(
        steps=2000, check_every=50, patience=100, lr=0.1, checkpoint=rule, random_state=0
    ).fit(X[:60], y[:60], eval_set=(X[60:], y[60:]))
    report = fitted.fit_report_
    best = report["curves"]["step"][int(np.argmin(report["curves"][rule]))]
    assert report["best_step"] == best
    assert report["stopped_early"] and best + 100 == report["steps"] < 2000
    last = model(steps=200, checkpoint="last", random_state=0).fit(
        X[:60], y[:60], eval_set=(X[60:], y[60:])
    )
    assert last.fit_report_["best_step"] == 200
    rows = np.r_[np.flatnonzero(y == 0)[:25], np.flatnonzero(y == 1)[:6]]
    labels = y[rows]
    labels[:5] = 1  # wrong, so that few models get everything right
    last.set_params(steps=25, check_every=25).fit(X[:60], y[:60], eval_set=(X[rows], labels))
    accuracy = balanced_accuracy_score(labels, last.predict(X[rows]))
    assert accuracy != (last.predict(X[rows]) == labels).mean()
    found = last.fit_report_["curves"]["valid_balanced_accuracy"]
    assert found == [pytest.approx(accuracy, rel=1e-4)]


def test_training_leaves_torchs_global_generator_alone():
    X, y = wide()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    MLP(steps=10, random_state=0).fit(X, y)
    assert torch.equal(torch.rand(3), expected)
