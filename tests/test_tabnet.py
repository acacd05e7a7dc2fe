"""TabNet: its layers against the library's, and what its training does."""

import math

import numpy as np
import pytest
import torch
from benchmark.models.tabnet import GhostBatchNorm, Network, Sparsemax, TabNet, chunks
from pytorch_tabnet.sparsemax import sparsemax
from pytorch_tabnet.tab_network import GBN, TabNetNoEmbeddings

from benchmark.protocol.registry import data_ref, models

EXACT = {"atol": 1e-10, "rtol": 1e-10}


def two_groups(n=60, d=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, (X[:, 0] > 0).astype(int)


def draw(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def randomised(norm):
    """Scale, shift and statistics that are not the initial 1, 0, 0, 1."""
    with torch.no_grad():
        for i, value in enumerate([*norm.parameters(), norm.running_mean, norm.running_var]):
            value.copy_(draw(len(value), seed=i).abs())


def ghosts(width, size):
    """The library's ghost batch norm and ours, in the same state."""
    theirs, ours = GBN(width, size, 0.3).double(), GhostBatchNorm(width, size, 0.3).double()
    randomised(theirs.bn)
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def assert_same(ours, theirs, x, answer):
    """`answer` is what the library makes of x: same output, statistics and gradients."""
    x = x.clone().requires_grad_()
    x_ours = x.detach().clone().requires_grad_()
    expected, found = answer(x), ours(x_ours)
    torch.testing.assert_close(found, expected, **EXACT)
    for name in ("running_mean", "running_var"):
        torch.testing.assert_close(getattr(ours.bn, name), getattr(theirs.bn, name), **EXACT)
    pull = draw(*expected.shape, seed=9)
    expected.backward(pull)
    found.backward(pull)
    torch.testing.assert_close(x_ours.grad, x.grad, **EXACT)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, **EXACT)


@pytest.mark.parametrize(
    ("n", "size"), [(44, 5), (123, 5), (144, 5), (141, 6), (40, 5), (4, 5), (12, 5), (2, 2)]
)
def test_ghost_batch_norm_is_the_librarys(n, size):
    theirs, ours = ghosts(7, size)
    assert_same(ours, theirs, draw(n, 7), theirs)
    theirs.eval()
    ours.eval()
    torch.testing.assert_close(ours(draw(n, 7)), theirs(draw(n, 7)), **EXACT)


@pytest.mark.parametrize(
    ("n", "size", "sizes"), [(141, 5, [5] * 27 + [6]), (3, 2, [3]), (5, 2, [2, 3])]
)
def test_a_last_chunk_of_one_sample_joins_the_one_before(n, size, sizes):
    theirs, ours = ghosts(7, size)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        theirs(draw(n, 7))
    theirs, ours = ghosts(7, size)
    assert_same(
        ours, theirs, draw(n, 7), lambda x: torch.cat([theirs.bn(part) for part in x.split(sizes)])
    )


@pytest.mark.parametrize("size", [2, 3, 5, 6, 64])
def test_chunks_hold_every_row_once_and_never_one_alone(size):
    for n in range(2, 200):
        blocks = chunks(torch.arange(n)[:, None], size)
        assert torch.cat([block.flatten() for block in blocks]).tolist() == list(range(n))
        assert all(2 <= block.shape[1] <= size + 1 for block in blocks)
        assert len(blocks) <= 2


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("shape", [(6, 1), (6, 2), (1, 50), (20, 300)])
def test_sparsemax_is_the_librarys(shape, scale):
    ours = (scale * draw(*shape)).requires_grad_()
    theirs = ours.detach().clone().requires_grad_()
    found, expected = Sparsemax()(ours), sparsemax(theirs * 1, -1)
    torch.testing.assert_close(found, expected, **EXACT)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(len(found)).double(), **EXACT)
    found.backward(draw(*shape, seed=1))
    expected.backward(draw(*shape, seed=1))
    torch.testing.assert_close(ours.grad, theirs.grad, **EXACT)


def test_sparsemax_of_ties_shares_and_of_what_is_not_a_number_ends():
    torch.testing.assert_close(Sparsemax()(torch.zeros(2, 7)), torch.full((2, 7), 1 / 7))
    assert Sparsemax()(torch.full((2, 7), torch.nan)).isnan().all()


NAMES = {
    "encoder.initial_bn": "norm",
    "encoder.initial_splitter": "first",
    "encoder.feat_transformers": "transformers",
    "encoder.att_transformers": "attentions",
    "final_mapping": "output",
}


def renamed(state):
    """The library's names as ours, without the batch norm that it does not use."""
    return {
        our + name.removeprefix(their): value
        for name, value in state.items()
        for their, our in NAMES.items()
        if name.startswith(their)
    }


def test_the_network_is_the_librarys():
    torch.manual_seed(0)
    theirs = TabNetNoEmbeddings(
        30, 3, gamma=1.5, virtual_batch_size=5, momentum=0.3, group_attention_matrix=torch.eye(30)
    ).double()
    theirs.encoder.group_attention_matrix = torch.eye(30).double()
    ours = Network(30, 3, 8, 3, 1.5, 5, 0.3).double()
    ours.load_state_dict(renamed(theirs.state_dict()))
    y = torch.arange(44) % 3
    for epoch in range(3):
        answers = []
        for net, sign in ((ours, 1), (theirs, -1)):  # the library's sum is minus the entropy
            net.zero_grad()
            logits, entropy = net(draw(44, 30, seed=epoch))
            (torch.nn.functional.cross_entropy(logits, y) + 0.1 * sign * entropy).backward()
            answers.append((logits.detach(), sign * entropy.detach()))
        torch.testing.assert_close(*answers, **EXACT)
        expected = renamed({name: p.grad for name, p in theirs.named_parameters()})
        found = {name: p.grad for name, p in ours.named_parameters()}
        torch.testing.assert_close(found, expected, **EXACT)
    state = {k: v for k, v in ours.state_dict().items() if "num_batches" not in k}
    expected = renamed(theirs.state_dict())
    torch.testing.assert_close(state, {k: expected[k] for k in state}, **EXACT)
    ours.eval()
    theirs.eval()
    x = draw(20, 30, seed=5)
    importance, masks = theirs.forward_masks(x)
    torch.testing.assert_close([M for M, _ in ours.steps(x)], list(masks.values()), **EXACT)
    # The library adds up in single precision.
    torch.testing.assert_close(ours.importance(x).float(), importance, atol=1e-6, rtol=1e-6)
    assert 0 < (importance != 0).double().mean() < 1


def test_number_of_parameters():
    net = TabNet()._network(5966, 2)
    assert sum(p.numel() for p in net.parameters()) == 387_472


def test_initial_weights_have_the_stated_deviations():
    torch.manual_seed(0)
    net = TabNet()._network(3000, 10)
    first = net.first.shared.glu_layers[0].fc
    assert first is net.transformers[2].shared.glu_layers[0].fc
    assert float(first.weight.detach().std()) == pytest.approx(
        math.sqrt(2 / math.sqrt(3000)), rel=0.02
    )
    attention = net.attentions[1].fc
    assert float(attention.weight.detach().std()) == pytest.approx(
        math.sqrt(2 / math.sqrt(32)), rel=0.02
    )


def test_selected_is_what_took_part_in_a_decision():
    X, y = two_groups()
    model = TabNet(epochs=60, virtual_batch_size=30, random_state=0).fit(X, y)
    selected = model.select(X)
    with torch.no_grad():
        steps = [(M.numpy(), d.numpy()) for M, d in model.net_.steps(torch.from_numpy(X))]
    for M, _ in steps:
        np.testing.assert_allclose(M.sum(axis=1), 1, atol=1e-5)
    used = [(M > 0) & (d.sum(axis=1) > 0)[:, None] for M, d in steps]
    assert (selected == np.any(used, axis=0)).all()
    assert selected.any() and not selected.all()
    # A step that decides nothing selects nothing, whatever its mask.
    with torch.no_grad():
        for layer in model.net_.modules():
            if isinstance(layer, GhostBatchNorm) and layer.input_dim == 32:
                layer.bn.weight.zero_()
                layer.bn.bias.zero_()
    assert not model.select(X).any()


def weighted_loss(model, X, y, class_weight, *, softmax_again):
    """The validation loss from the model's probabilities."""
    scores = torch.from_numpy(model.predict_proba(X))
    if softmax_again:
        scores = scores.softmax(dim=1)
    losses = -scores.log()[torch.arange(len(y)), torch.from_numpy(y)].numpy()
    return np.average(losses, weights=class_weight[y])


@pytest.mark.parametrize("valid_loss", ["plain", "double-softmax"])
def test_early_stopping_keeps_the_epoch_with_the_lowest_loss(valid_loss):
    X, y = two_groups(n=80)
    train, valid = (X[:60], y[:60]), (X[60:], y[60:])
    settings = {"patience": 15, "virtual_batch_size": 20, "valid_loss": valid_loss}
    model = TabNet(epochs=45, **settings, random_state=0).fit(*train, eval_set=valid)
    report = model.fit_report_
    losses, best = report["curves"]["valid_loss"], report["best_step"]
    assert report["curves"]["step"] == list(range(1, report["epochs"] + 1))
    assert losses.index(min(losses)) + 1 == best < report["epochs"]
    assert report["stopped_early"] == (report["epochs"] - best == 15)
    double = valid_loss == "double-softmax"
    class_weight = 60 / (2 * np.bincount(train[1]))
    kept = weighted_loss(model, *valid, class_weight, softmax_again=double)
    assert kept == pytest.approx(min(losses), rel=1e-4)
    again = TabNet(epochs=best, **settings, random_state=0).fit(*train)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("clip", [None, 0.05])
def test_training_minimises_the_written_loss(clip):
    """Weighted cross-entropy plus lambda times the masks' entropy, its gradient clipped."""
    X, y = two_groups(n=40)
    y[:12] = 1  # so that weights matter
    settings = {"lambda_sparse": 0.7, "clip": clip, "lr": 0.02, "random_state": 0}
    net = TabNet(epochs=0, **settings).fit(X, y).net_.train()
    weights = torch.tensor(40 / (2 * np.bincount(y)), dtype=torch.float32)
    optimizer = torch.optim.Adam(net.parameters(), 0.02)
    rng = np.random.default_rng(0)
    for _ in range(2):  # Adam makes rounding errors grow: a few steps more and nothing compares
        rows = rng.permutation(40)
        logits, entropy = net(torch.from_numpy(X[rows]))
        losses = -logits.log_softmax(dim=1)[torch.arange(40), torch.from_numpy(y[rows])]
        weight = weights[y[rows]]
        loss = (weight * losses).sum() / weight.sum() + 0.7 * entropy
        optimizer.zero_grad()
        loss.backward()
        if clip is not None:
            gradients = [p.grad for p in net.parameters() if p.grad is not None]
            norm = torch.cat([g.flatten() for g in gradients]).norm()
            assert norm > 2 * clip
            for g in gradients:
                g *= clip / norm
        optimizer.step()
    found = TabNet(epochs=2, **settings).fit(X, y).net_
    for a, b in zip(found.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=2e-3, rtol=0)


def test_without_eval_set_the_last_weights_stay():
    X, y = two_groups()
    report = TabNet(epochs=7, random_state=0).fit(X, y).fit_report_
    assert report["epochs"] == report["best_step"] == 7
    assert report["curves"] == {} and not report["stopped_early"]


def test_the_learning_rate_falls_every_so_many_epochs():
    X, y = two_groups()

    def weights(epochs, lr_decay):
        settings = {"lr_decay": lr_decay, "lr_decay_every": 5, "random_state": 0}
        net = TabNet(epochs=epochs, **settings).fit(X, y).net_
        return torch.cat([p.detach().flatten() for p in net.parameters()])

    assert torch.equal(weights(5, 0.0), weights(8, 0.0))
    assert torch.equal(weights(5, 0.0), weights(5, 0.5))
    assert not torch.equal(weights(6, 0.0), weights(6, 0.5))


def test_what_tells_a_failed_training():
    X, y = two_groups()
    one = TabNet(epochs=3, random_state=0).fit(X[:, :1], y).fit_report_
    assert one["constant_mask"]
    many = TabNet(epochs=3, random_state=0).fit(X, y)
    assert not many.fit_report_["constant_mask"]
    assert many.fit_report_["selected_fraction"] == pytest.approx(many.select(X).mean())


def test_a_hundred_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(201, 15)).astype(np.float32)  # 201 = 40 * 5 + 1
    y = np.arange(201) % 100
    proba = TabNet(epochs=3, random_state=0).fit(X, y).predict_proba(X)
    assert proba.shape == (201, 100)
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-5)


def test_training_leaves_torchs_global_generator_alone():
    X, y = two_groups()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    TabNet(epochs=2, random_state=0).fit(X, y)
    assert torch.equal(torch.rand(3), expected)


def test_settings_that_make_no_sense_are_refused():
    X, y = two_groups()
    with pytest.raises(ValueError, match="valid_loss must be one of"):
        TabNet(valid_loss="triple-softmax").fit(X, y)
    with pytest.raises(ValueError, match="virtual_batch_size must be at least 2"):
        TabNet(virtual_batch_size=1).fit(X, y)


def test_the_registry_has_the_papers_settings():
    entry = models()["tabnet"]
    for name, size in (("colon", 5), ("lung", 6), ("syn1", 5)):
        assert entry.params_for(data_ref(name))["virtual_batch_size"] == size
    assert len(list(entry.search_for(data_ref("colon")).points())) == 12
    synthetic = [point["lambda_sparse"] for point in entry.search_for(data_ref("syn1")).points()]
    assert synthetic == [1e-2, 1e-1, 0.5]
    assert entry.params_for(data_ref("syn1"))["lr"] == 1e-2
