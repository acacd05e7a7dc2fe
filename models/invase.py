"""INVASE: instance-wise variable selection.

Reference: Yoon, Jordon and van der Schaar, 2019. Selects features per sample.

selector  p(x) = sigmoid of one logit per feature; mask s ~ Bernoulli(p), feature by feature
predictor f(x * s), trained with cross-entropy on sampled masks; the paper's critic
baseline  b(x), the same network on all features, trained with cross-entropy
reward    R = log f_y(x * s) - log b_y(x), a constant for the selector's step
selector's loss  mean over samples of  -R * log P(s) + lam * mean_d p_d

All layers of all networks have the penalty 1e-3 * squared weights. A feature is selected for a
sample if p > 1/2; the prediction is f(x * 1[p > 1/2]).
"""

import numpy as np
import torch
from torch import nn

from ._chain import Chain, cross_entropy
from ._networks import Loss, validation
from ._selectors import (
    Means,
    SelectorClassifier,
    adam,
    kernel_penalty,
    kernels,
    mask_facts,
    products,
    uniform,
)

EPS = 1e-8
"""Inside the logarithms of the rewards."""


class INVASE(SelectorClassifier):
    """Selector, predictor and baseline, trained together by policy gradients.

    lam : weight of the mean probability over features.
    batch_size : drawn with replacement, min(1000, n) in the original. One batch is an epoch there.
    class_weight : "balanced" weighs each sample's log-likelihood, in all three losses.
    checkpoint : "last" as in the original, or a check's number as in L2X.

    The cited code hard-codes two classes in the selector's loss; the true class's probability, as
    above, is the same for two and works for more. Some versions of the code sample the mask in
    prediction too; here it is p > 1/2.
    """

    def __init__(
        self,
        *,
        lam=1.5,
        activation="relu",
        selector_hidden=(100, 100),
        predictor_hidden=(200, 200),
        lr=1e-4,
        steps=5000,
        batch_size=1000,
        class_weight=None,
        check_every=50,
        checkpoint="last",
        random_state=None,
    ):
        self.lam = lam
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

    def loss(self, net, x, y, u, weights=None):
        """The three losses and the kernels' penalty in one sum; u is uniform and draws the mask.

        The selector's loss has no gradient for the other networks, so no weight is in two of the losses.
        """
        p = torch.sigmoid(net["selector"](x))
        s = (u < p).float()
        f = inferred_log_likelihood(net["predictor"], x * s, y)
        b = inferred_log_likelihood(net["baseline"], x, y)
        R = (f - b) * (1.0 if weights is None else weights[y])
        log_P = (s * torch.log(p + EPS) + (1 - s) * torch.log(1 - p + EPS)).sum(dim=1)
        of_selector = (-R * log_P + self.lam * p.mean(dim=1)).mean()
        of_predictor = nn.functional.cross_entropy(net["predictor"](x * s), y, weights)
        of_baseline = nn.functional.cross_entropy(net["baseline"](x), y, weights)
        return of_selector + of_predictor + of_baseline + kernel_penalty(kernels(net))

    def _fit(self, X, y, weights, valid, rng):
        n, n_features = X.shape
        self.net_ = net = nn.ModuleDict(
            {
                "selector": self._selector(n_features),
                "predictor": self._predictor(n_features),
                "baseline": self._predictor(n_features),
            }
        )
        # Three optimisers in the original. Every number of the selector's step is recorded before
        # the others move, so one Adam on the sum of the losses is the same.
        optimizer = adam(net, self.lr, kernels(net))
        selector = Chain(net["selector"])
        predictor, baseline = TwoModes(net["predictor"]), TwoModes(net["baseline"])
        samples, codes = X.numpy(), y.numpy()
        means = Means()

        def step(rows):
            rows = rng.integers(n, size=len(rows))  # with replacement
            x, labels = samples[rows], codes[rows]
            p = torch.sigmoid(torch.from_numpy(selector.forward(x)))
            s = uniform(rng, p.shape).lt_(p)

            f, f_train = predictor.forward(x * s.numpy())
            b, b_train = baseline.forward(x)
            reward = log_likelihood(f, labels) - log_likelihood(b, labels)
            if weights is not None:
                reward = reward * weights[labels]

            loss_f, d_f = cross_entropy(f_train, labels, weights)
            loss_b, d_b = cross_entropy(b_train, labels, weights)
            predictor.backward(d_f)
            baseline.backward(d_b)
            d = policy_gradient(p, s, torch.from_numpy(reward), self.lam) / len(rows)
            selector.backward(d.numpy(), inputs=False)
            optimizer.step()
            means.add(
                train_loss=loss_f,
                baseline_loss=loss_b,
                reward=reward.mean(),
                probability=p.mean(),
            )

        def check():
            numbers = means.take() | mask_facts(self._mask(X))
            if valid is not None:
                x, labels, class_weight = valid
                logits = self._logits(x)
                prediction = nn.functional.cross_entropy(logits, labels, class_weight)
                probability = torch.sigmoid(net["selector"](x)).mean().double()
                penalty = self.lam * probability + kernel_penalty(kernels(net))
                numbers |= validation(Loss(prediction, penalty, logits), labels)
            return numbers

        training = self._train(net, step, check, n, valid, rng)
        self.seconds_per_epoch_ = training.seconds_per_epoch
        self.fit_report_ = training.report()

    def matrix_products(self, batch):
        """Shapes (m, k, n) of the products of one training step: what its speed is measured by."""
        shapes = []
        for net in self.net_.values():
            shapes += products(net, batch, inputs=False)
        for name in ("predictor", "baseline"):
            _first, *rest = kernels(self.net_[name])
            shapes += [(batch, W.shape[1], W.shape[0]) for W in rest]  # once more, for the reward
        return shapes


class TwoModes:
    """A predictor's output in inference mode, without gradient, and in training mode.

    The modes part at the first batch norm, so the first layer, which is most of the work, is shared.
    """

    def __init__(self, net):
        self.first, self.rest = Chain(net[:2]), Chain(net[2:])

    def forward(self, x):
        hidden = self.first.forward(x)
        return self.rest.forward(hidden, training=False), self.rest.forward(hidden)

    def backward(self, d):
        self.first.backward(self.rest.backward(d), inputs=False)


def log_likelihood(logits, y):
    """log(probability of the true class + 1e-8), per sample."""
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.log(p[np.arange(len(y)), y] / p.sum(axis=1) + EPS)


def inferred_log_likelihood(net, x, y):
    """The same in torch, of a network in inference mode and without gradient."""
    net.eval()
    with torch.no_grad():
        q = torch.softmax(net(x), dim=1).gather(1, y[:, None])[:, 0]
    net.train()
    return torch.log(q + EPS)


def policy_gradient(p, s, reward, lam):
    """Gradient of the selector's loss with respect to its logits, per sample, for a drawn mask s.

    p = sigmoid(logits), s is 0 or 1; then d log P(s) = s - p and d p = p (1 - p). The mean over masks
    is the gradient of -E[R] + lam * mean_d p_d.

    NOTE[DIFF] The original adds 1e-8 inside the logarithms of P(s) too. That changes the gradient's
    mean by 1e-8 of the reward, which is less than single precision resolves.
    """
    return lam / p.shape[1] * (p * (1 - p)) - reward[:, None] * (s - p)
