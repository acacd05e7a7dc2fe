"""L2X: learning to explain.

Reference: Chen et al., 2018. Selects features per sample.

selector  logits l(x), one per feature
train     V_d = max over j = 1..k of softmax((l + g_j) / tau)_d,  g_j ~ Gumbel(0, 1) per feature
test      V = the k largest logits
predictor f(x * V)
loss      cross-entropy + 1e-3 * squared weights of all layers but the selector's last

The k draws are with replacement: they may agree, so up to k features are active in training.
"""

import torch
from torch import nn

from ._chain import Chain, cross_entropy
from ._networks import Loss, validation
from ._relaxed_subset import RelaxedSubset
from ._selectors import (
    Means,
    SelectorClassifier,
    adam,
    kernel_penalty,
    kernels,
    mask_facts,
    products,
)


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

    def loss(self, net, x, y, weights=None, gumbel=None):
        """Cross-entropy behind the relaxed choice, and the penalty of the kernels.

        gumbel : the noise of the k draws, (samples, k, features); without it the choice is hard.
        """
        logits = net["selector"](x)
        if gumbel is None:
            V = self._chosen(logits)
        else:
            V = torch.softmax((logits[:, None] + gumbel) / self.tau, dim=2).amax(dim=1)
        output = net["predictor"](x * V)
        prediction = nn.functional.cross_entropy(output, y, weights)
        return Loss(prediction, kernel_penalty(self._penalised(net)), output)

    def _penalised(self, net):
        *hidden, _output = kernels(net["selector"])
        return [*hidden, *kernels(net["predictor"])]

    def _fit(self, X, y, weights, valid, rng):
        if self.k < 1 or self.k != int(self.k):
            raise ValueError(f"k must be a whole number of at least 1, got {self.k!r}")
        if not self.tau > 0:
            raise ValueError(f"tau must be positive, got {self.tau!r}")
        n, n_features = X.shape
        self.net_ = net = nn.ModuleDict(
            {"selector": self._selector(n_features), "predictor": self._predictor(n_features)}
        )
        optimizer = adam(net, self.lr, self._penalised(net))
        selector, predictor = Chain(net["selector"]), Chain(net["predictor"])
        samples, codes = X.numpy(), y.numpy()
        k = min(self.k, n_features)
        subset = RelaxedSubset(min(self.batch_size, n), k, n_features, self.tau, rng)
        means = Means()

        def step(rows):
            x = samples[rows]
            V = subset.forward(selector.forward(x))
            loss, d = cross_entropy(predictor.forward(x * V), codes[rows], weights)
            dV = predictor.backward(d)
            dV *= x
            selector.backward(subset.backward(dV), inputs=False)
            optimizer.step()
            means.add(train_loss=loss)

        def check():
            numbers = means.take() | mask_facts(self._mask(X))
            if valid is not None:
                numbers |= validation(self.loss(net, *valid), valid[1])
            return numbers

        training = self._train(net, step, check, n, valid, rng)
        self.seconds_per_epoch_ = training.seconds_per_epoch
        self.fit_report_ = training.report()

    def _chosen(self, logits):
        k = min(self.k, logits.shape[1])
        return logits >= logits.topk(k, dim=1).values[:, -1:]

    def matrix_products(self, batch):
        """Shapes (m, k, n) of the products of one training step: what its speed is measured by."""
        net = self.net_
        return products(net["selector"], batch, inputs=False) + products(net["predictor"], batch)
