"""Hand-written training passes of layer chains: equal to automatic differentiation, on its memory."""

import copy

import numpy as np
import plain_kernels
import pytest
import torch
from benchmark.models import _kernels
from benchmark.models._chain import SGD, Adam, Chain, Flat, cross_entropy, release
from benchmark.models._networks import chain
from benchmark.models._selectors import predictor, selector
from torch import nn

NETS = {
    "norm first, tanh": lambda: chain(
        [7, 5, 6, 3], activation=nn.Tanh, norm=nn.BatchNorm1d, output_activation=True
    ),
    "norm first, linear": lambda: chain([7, 5, 3], norm=nn.BatchNorm1d),
    "tanh": lambda: chain([7, 5, 3], activation=nn.Tanh),
    "norm last, relu": lambda: predictor(7, (5, 6), 3, nn.ReLU),
    "norm last, selu": lambda: predictor(7, (5, 6), 3, nn.SELU),
    "relu": lambda: selector(7, (5, 6), nn.ReLU),
}


def twins(name, dtype=torch.float64):
    """The same network twice, with scales and shifts that are not the initial ones."""
    torch.manual_seed(0)
    net = NETS[name]().to(dtype)
    with torch.no_grad():
        for p in net.parameters():
            p += 0.3 * torch.randn_like(p)
    return net.train(), copy.deepcopy(net)


@pytest.mark.parametrize("name", NETS)
def test_both_passes_equal_automatic_differentiation(name):
    ours, torchs = twins(name)
    Flat(ours)
    passes = Chain(ours)
    for _ in range(3):  # more than once: running statistics, and nothing is left over
        x = torch.randn(9, 7, dtype=torch.float64, requires_grad=True)
        y = torchs(x)
        weight = torch.randn_like(y)
        torchs.zero_grad()
        y.backward(weight)
        found = torch.from_numpy(passes.forward(x.detach().numpy()))
        torch.testing.assert_close(found, y.detach(), rtol=1e-12, atol=1e-12)
        dx = torch.from_numpy(passes.backward(weight.numpy().copy()))
        torch.testing.assert_close(dx, x.grad, rtol=1e-11, atol=1e-12)
        for p, q in zip(ours.parameters(), torchs.parameters(), strict=True):
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-11, atol=1e-12)
    for (key, a), (_, b) in zip(
        ours.state_dict().items(), torchs.state_dict().items(), strict=True
    ):
        if not key.endswith("num_batches_tracked"):
            torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)
    # In inference mode the running statistics count, which the passes above moved.
    x = torch.randn(4, 7, dtype=torch.float64)
    with torch.no_grad():
        expected = torchs.eval()(x)
    found = torch.from_numpy(passes.forward(x.numpy(), training=False))
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(ours.eval()(x).detach(), expected, rtol=1e-12, atol=1e-12)


def test_gradients_that_are_not_asked_for_are_left_out():
    net, _ = twins("norm last, relu")
    flat = Flat(net)
    passes = Chain(net)
    x = np.random.default_rng(0).normal(size=(9, 7))
    weight = np.ones_like(passes.forward(x))
    full = passes.backward(weight.copy())
    expected = flat.gradient.copy()
    flat.gradient[:] = 0
    passes.forward(x)
    assert passes.backward(weight.copy(), inputs=False) is None
    np.testing.assert_array_equal(flat.gradient, expected)
    flat.gradient[:] = 0
    passes.forward(x)
    np.testing.assert_array_equal(passes.backward(weight.copy(), weights=False), full)
    assert not flat.gradient.any()


def test_running_statistics_can_stand_still():
    net, _ = twins("norm last, relu")
    norms = [layer for layer in net if isinstance(layer, nn.BatchNorm1d)]
    before = [layer.running_var.clone() for layer in norms]
    passes = Chain(net)
    x = np.random.default_rng(0).normal(size=(9, 7))
    for layer in norms:
        layer.track_running_stats = False
    passes.forward(x)
    assert all(torch.equal(a.running_var, b) for a, b in zip(norms, before, strict=True))
    for layer in norms:
        layer.track_running_stats = True
    passes.forward(x)
    assert not any(torch.equal(a.running_var, b) for a, b in zip(norms, before, strict=True))


def test_one_sample_is_too_few_for_batch_norm():
    net, _ = twins("norm last, relu")
    with pytest.raises(ValueError, match="batch of one sample"):
        Chain(net).forward(np.ones((1, 7)))


@pytest.mark.parametrize("weights", [None, np.array([0.5, 2.0, 1.0])])
def test_cross_entropy(weights):
    logits = 3 * torch.randn(20, 3, generator=torch.Generator().manual_seed(0)).double()
    logits.requires_grad_()
    y = torch.arange(20) % 3
    tensor = None if weights is None else torch.from_numpy(weights)
    expected = nn.functional.cross_entropy(logits, y, tensor)
    expected.backward()
    loss, d = cross_entropy(logits.detach().numpy(), y.numpy(), weights)
    assert loss == pytest.approx(float(expected.detach()), rel=1e-12)
    np.testing.assert_allclose(d, logits.grad, rtol=1e-11, atol=1e-15)


def test_cross_entropy_of_a_hopeless_sample_is_finite():
    loss, d = cross_entropy(np.array([[0.0, 500.0]], np.float32), np.array([0]))
    assert np.isfinite(loss) and loss > 80
    np.testing.assert_array_equal(d, [[-1, 1]])


def descend(net, optimizer, steps, x, target):
    for _ in range(steps):
        net.zero_grad(set_to_none=False)
        (net(x) - target).square().mean().backward()
        optimizer.step()
    return nn.utils.parameters_to_vector(net.parameters()).detach()


def test_adam_is_torchs():
    ours, torchs = twins("relu")
    x = torch.randn(20, 7, dtype=torch.float64)
    target = torch.randn(20, 7, dtype=torch.float64)
    first = [ours[2].weight, ours[0].weight]
    penalised = [torchs[2].weight, torchs[0].weight]
    rest = [p for p in torchs.parameters() if not any(p is q for q in penalised)]
    groups = [{"params": penalised, "weight_decay": 0.1}, {"params": rest}]
    expected = descend(torchs, torch.optim.Adam(groups, 1e-2, eps=1e-7), 60, x, target)
    found = descend(ours, Adam(ours, 1e-2, eps=1e-7, decay=0.1, first=first), 60, x, target)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("clip", [None, 0.05, 1e6])
def test_sgd_is_torchs(clip):
    ours, torchs = twins("tanh")
    x = torch.randn(20, 7, dtype=torch.float64)
    target = torch.randn(20, 3, dtype=torch.float64)
    plain = torch.optim.SGD(torchs.parameters(), 0.3, weight_decay=0.1)

    class Clipped:
        def step(self):
            if clip is not None:
                nn.utils.clip_grad_norm_(torchs.parameters(), clip)
            plain.step()

    expected = descend(torchs, Clipped(), 20, x, target)
    found = descend(ours, SGD(ours, 0.3, decay=0.1, clip=clip), 20, x, target)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_released_parameters_have_memory_of_their_own():
    net, twin = twins("norm last, relu", torch.float32)
    flat = Flat(net)
    flat.weights[:] *= 2
    assert torch.equal(net[0].weight, 2 * twin[0].weight)
    flat.weights[:] /= 2
    release(net)
    assert all(p.grad is None for p in net.parameters())
    flat.weights[:] = 0
    for p, q in zip(net.parameters(), twin.parameters(), strict=True):
        assert torch.equal(p, q)


def test_compiled_loops_have_the_bits_of_plain_ones():
    rng = np.random.default_rng(0)
    results = []
    for kernels in (plain_kernels, _kernels):
        rng = np.random.default_rng(0)
        F = np.float32
        x, d, z, y = rng.normal(size=(4, 9, 41)).astype(F)
        w, b, mean, var, r, gw, gb = rng.normal(size=(7, 41)).astype(F)
        kernels.normalise(x, w, b, F(1e-3), F(0.01), F(9), mean, var, z, r, y)
        kernels.normalise_backward(d, z, w * r, F(9), gw, gb)
        weights, gradient, m, v = np.abs(rng.normal(size=(4, 1001))).astype(F)
        scalars = map(F, (1e-3, 1.3, 1e-7, 2e-3, 0.1, 0.001))
        kernels.adam(weights, gradient, m, v, *scalars)
        descending = weights - F(0.5)
        kernels.descend(descending, gradient, *map(F, (0.99, 0.1, 1e-3)))
        results.append([x, d, z, y, mean, var, r, gw, gb, weights, m, v, descending])
    for plain, compiled in zip(*results, strict=True):
        np.testing.assert_array_equal(plain, compiled)
