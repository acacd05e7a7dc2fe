"""L2X: learning to explain.

Reference: Chen et al., 2018. Selects features per sample.

selector  logits l(x), one per feature
train     V_d = max over j = 1..k of softmax((l + g_j) / tau)_d,  g_j ~ Gumbel(0, 1) per feature
test      V = the k largest logits
predictor f(x * V)
loss      cross-entropy + 1e-3 * squared weights of all layers but the selector's last

The k draws are with replacement: they may agree, so up to k features are active in training.
"""

import numpy as np
import torch
from torch import nn

from ._selectors import (
    Means,
    SelectorClassifier,
    adam,
    kernel_penalty,
    kernels,
    mask_facts,
    products,
    validation,
)

TINY = np.finfo(np.float32).tiny


class L2X(SelectorClassifier):
    """Selector and predictor trained together through a relaxed choice of k features.

    k : features per sample; all of them if the data has fewer.
    checkpoint : "valid_loss" keeps the check with the lowest validation loss, penalties included;
        "valid_prediction_loss" without them, "valid_balanced_accuracy", or "last".

    The original explains a model and trains on its probabilities; here the labels are the data's.
    The paper states no batch size, class weights or checkpoint: 64, none, the lowest validation loss.
    """

    def __init__(
        self,
        *,
        k=5,
        tau=0.1,
        activation="relu",
        selector_hidden=(100, 100),
        predictor_hidden=(200, 200),
        lr=1e-4,
        steps=7000,
        batch_size=64,
        class_weight=None,
        check_every=50,
        checkpoint="valid_loss",
        random_state=None,
    ):
        self.k = k
        self.tau = tau
        self.activation = activation
        self.selector_hidden = selector_hidden
        self.predictor_hidden = predictor_hidden
        self.lr = lr
        self.steps = steps
        self.batch_size = batch_size
        self.class_weight = class_weight
        self.check_every = check_every
        self.checkpoint = checkpoint
        self.random_state = random_state

    def _fit(self, X, y, weights, valid, rng):
        if self.k < 1:
            raise ValueError(f"k must be at least 1, however: {self.k!r}")
        n, n_features = X.shape
        self.net_ = net = nn.ModuleDict(
            {"selector": self._selector(n_features), "predictor": self._predictor(n_features)}
        )
        *hidden, _output = kernels(net["selector"])
        penalised = [*hidden, *kernels(net["predictor"])]
        optimizer = adam(net, self.lr, penalised)
        k = min(self.k, n_features)
        noise = torch.empty(min(self.batch_size, n), k, n_features)
        space = torch.empty_like(noise)
        means = Means()

        def step(rows):
            rows = torch.from_numpy(rows)
            x = X.index_select(0, rows)
            log_exponential(rng, out=noise)
            V = RelaxedSubset.apply(net["selector"](x), noise, self.tau, space)
            loss = nn.functional.cross_entropy(net["predictor"](x * V), y[rows], weights)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            means.add(train_loss=loss)

        def check():
            numbers = means.take() | mask_facts(self._mask(X))
            if valid is not None:
                penalty = kernel_penalty(penalised)
                numbers |= validation(self._logits(valid[0]), valid[1], weights, penalty)
            return numbers

        training = self._train(net, step, check, n, valid, rng)
        self.seconds_per_epoch_ = training.seconds_per_epoch
        self.fit_report_ = training.report()

    def _chosen(self, logits):
        k = min(self.k, logits.shape[1])
        return logits >= logits.topk(k, dim=1).values[:, -1:]

    def matrix_products(self, batch, _n_features, _n_classes):
        """Shapes (m, k, n) of the products of one training step: what its speed is measured by."""
        net = self.net_
        return products(net["selector"], batch, inputs=False) + products(net["predictor"], batch)


def log_exponential(rng, out):
    """Fill `out` with log(-log u), u uniform on (0, 1): Gumbel noise with the other sign."""
    rng.random(dtype=np.float32, out=out.numpy())
    return out.add_(TINY).log_().neg_().log_()


class RelaxedSubset(torch.autograd.Function):
    """V_d = max_j softmax((l + g_j) / tau)_d from logits (B, D) and noise -g (B, k, D).

    What autograd would make of that formula, in a third of the time: the tensors of B * k * D
    numbers are all that costs, and here are two of them, `noise` and `space`, both overwritten.
    """

    @staticmethod
    def forward(ctx, logits, noise, tau, space):
        torch.add((logits / tau)[:, None], noise, alpha=-1 / tau, out=space)
        draws = torch.softmax(space, dim=2, out=noise)
        V = draws.amax(dim=1)
        ctx.tau = tau
        ctx.draws, ctx.space = draws, space
        ctx.save_for_backward(V)
        return V

    @staticmethod
    def backward(ctx, grad):
        (V,) = ctx.saved_tensors
        # A feature's gradient goes to the draw that has its maximum, in equal parts if several do.
        owner = torch.eq(ctx.draws, V[:, None], out=ctx.space)
        flow = grad * V
        through = torch.matmul((flow / owner.sum(dim=1))[:, None], owner.mT)
        back = flow - torch.matmul(through, ctx.draws)[:, 0]
        return back / ctx.tau, None, None, None
