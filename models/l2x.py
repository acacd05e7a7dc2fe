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

from ._chain import Chain, cross_entropy
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
        if self.k < 1 or self.k != int(self.k):
            raise ValueError(f"k must be a whole number of at least 1, however: {self.k!r}")
        if not self.tau > 0:
            raise ValueError(f"tau must be above 0, however: {self.tau!r}")
        n, n_features = X.shape
        self.net_ = net = nn.ModuleDict(
            {"selector": self._selector(n_features), "predictor": self._predictor(n_features)}
        )
        *hidden, _output = kernels(net["selector"])
        penalised = [*hidden, *kernels(net["predictor"])]
        optimizer = adam(net, self.lr, penalised)
        selector, predictor = Chain(net["selector"]), Chain(net["predictor"])
        samples, codes = X.numpy(), y.numpy()
        subset = RelaxedSubset(min(self.batch_size, n), min(self.k, n_features), n_features)
        means = Means()

        def step(rows):
            x = samples[rows]
            V = subset.forward(selector.forward(x), log_exponential(rng, subset.noise), self.tau)
            loss, d = cross_entropy(predictor.forward(x * V), codes[rows], weights)
            dV = predictor.backward(d)
            dV *= x
            selector.backward(subset.backward(dV), inputs=False)
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


class RelaxedSubset:
    """V_d = max_j softmax((l + g_j) / tau)_d from logits (B, D) and noise -g (B, k, D).

    The tensors of B * k * D numbers are all that costs, and here are two of them: `noise`, to be
    filled with a draw before every pass forward, and `space`. Both are overwritten.
    """

    def __init__(self, n_samples, k, n_features, dtype=torch.float32):
        self.noise = torch.empty(n_samples, k, n_features, dtype=dtype)
        self.space = torch.empty_like(self.noise)

    def forward(self, logits, noise, tau):
        self.tau = tau
        logits = torch.from_numpy(logits)
        torch.add((logits / tau)[:, None], noise, alpha=-1 / tau, out=self.space)
        self.draws = torch.softmax(self.space, dim=2, out=noise)
        self.V = self.draws.amax(dim=1)
        return self.V.numpy()

    def backward(self, dV):
        """The gradient for the logits, from that for V."""
        # A feature's gradient goes to the draw that has its maximum, in equal parts if several do.
        owner = torch.eq(self.draws, self.V[:, None], out=self.space)
        flow = torch.from_numpy(dV) * self.V
        through = torch.matmul((flow / owner.sum(dim=1))[:, None], owner.mT)
        back = flow - torch.matmul(through, self.draws)[:, 0]
        return (back / self.tau).numpy()
