"""REAL-X: explanations that do not leak the label, and EVAL-X to judge them.

Reference: Jethani et al., 2021. Selects features per sample.

stage 1   predictor q(y | x * r) with random masks r ~ Bernoulli(1/2), new ones for every batch;
          cross-entropy + 1e-3 * squared weights
stage 2   selector with logits l(x), the predictor fixed: maximise
          E_s[F(s)] - lam * mean_d sigmoid(l_d),  F(s) = log q_y(x * s),  s ~ Bernoulli(sigmoid(l)),
          by the gradient estimator REBAR with relaxed masks of temperature tau

A feature is selected for a sample if sigmoid(l) > 1/2. The prediction is that of the official code:
the predictor on all features. It depends neither on the selector nor on lam, so the validation
accuracy cannot choose lam. EVAL-X, `also_predict`, is the prediction from the selected features by a
second predictor that was trained like the first.
"""

import numpy as np
import torch
from torch import nn

from ._chain import Chain, cross_entropy
from ._networks import Loss, tensor, validation
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

EPS = 1e-5
"""Inside the logarithms of probabilities."""
CLIP = 1e-8
"""How near to 0 and 1 uniform numbers may be inside logarithms."""


class REALX(SelectorClassifier):
    """A predictor for any subset of features first, then a selector that explains it.

    lam : weight of the mean probability over features.
    steps : per stage.
    drift : whether the predictor's running averages go on moving in stage 2, as they do in the
        official code, which calls the fixed predictor in training mode.
    class_weight : "balanced" weighs each sample's log-likelihood, in both stages.
    checkpoint : "last" as in the original, or in every stage a check's number as in L2X; stage 2
        then judges the predictor on the selected features.

    NOTE[DIFF] In stage 2 the predictor normalises by the batch, as in the official code, but its
    running averages stay what stage 1 made them, so that lam cannot leak into the prediction.
    The mask that EVAL-X sees is drawn, not thresholded; the uniform numbers of the draw belong to
    the features and are fixed by fit, so that the answer for a sample does not depend on others.
    """

    explains_apart = True
    """Predictions need no mask: a time that includes one has to ask for both."""

    def __init__(
        self,
        *,
        lam=5.0,
        tau=0.1,
        activation="relu",
        selector_hidden=(100, 100),
        predictor_hidden=(200, 200),
        lr=1e-4,
        steps=1000,
        batch_size=64,
        class_weight=None,
        drift=False,
        check_every=10,
        checkpoint="last",
        random_state=None,
    ):
        self.lam = lam
        self.tau = tau
        self.activation = activation
        self.selector_hidden = selector_hidden
        self.predictor_hidden = predictor_hidden
        self.lr = lr
        self.steps = steps
        self.batch_size = batch_size
        self.class_weight = class_weight
        self.drift = drift
        self.check_every = check_every
        self.checkpoint = checkpoint
        self.random_state = random_state

    def predictor_loss(self, net, x, y, weights=None, r=1.0):
        """Stage 1: cross-entropy from the features that the coins r leave, and the kernels' penalty."""
        logits = net(x * r)
        prediction = nn.functional.cross_entropy(logits, y, weights)
        return Loss(prediction, kernel_penalty(kernels(net)), logits)

    def selector_loss(self, net, x, y, u, v, weights=None):
        """Stage 2: -E_s[F(s)] + lam * mean_d sigmoid(l_d), summed over the samples.

        A surrogate, whose gradient for the selector is the estimate with the uniform numbers u and v.
        """

        def F(mask):
            q = torch.softmax(net["predictor"](x * mask), dim=1).gather(1, y[:, None])[:, 0]
            return torch.log(q + EPS) * (1.0 if weights is None else weights[y])

        logits = net["selector"](x)
        expected = rebar_surrogate(logits, u, v, F, self.tau)
        return (self.lam * torch.sigmoid(logits).mean(dim=1) - expected).sum()

    def _fit(self, X, y, weights, valid, rng):
        if not self.tau > 0:
            raise ValueError(f"tau must be positive, got {self.tau!r}")
        n_features = X.shape[1]
        predictor, first = self._fit_predictor(X, y, weights, valid, rng)
        self.evaluator_, evaluator = self._fit_predictor(X, y, weights, valid, rng)
        self.threshold_ = uniform(rng, n_features)
        self.net_ = nn.ModuleDict({"selector": self._selector(n_features), "predictor": predictor})
        second = self._fit_selector(X, y, weights, valid, rng)
        # A pass over the data, in whichever stage; the evaluator is no part of the method.
        self.seconds_per_epoch_ = (first.seconds_per_epoch + second.seconds_per_epoch) / 2
        self.fit_report_ = {
            "predictor": first.report(),
            "selector": second.report(),
            "evaluator": evaluator.report(),
        }

    def _fit_predictor(self, X, y, weights, valid, rng):
        """Stage 1: a network that can predict from any subset of the features."""
        net = self._predictor(X.shape[1])
        optimizer = adam(net, self.lr, kernels(net))
        chain = Chain(net)
        samples, codes = X.numpy(), y.numpy()
        means = Means()

        def step(rows):
            x = samples[rows]
            x *= coins(rng, x.shape)
            loss, d = cross_entropy(chain.forward(x), codes[rows], weights)
            chain.backward(d, inputs=False)
            optimizer.step()
            means.add(train_loss=loss)

        def check():
            numbers = means.take()
            if valid is not None:
                numbers |= validation(self.predictor_loss(net, *valid), valid[1])
            return numbers

        return net, self._train(net, step, check, len(X), valid, rng)

    def _fit_selector(self, X, y, weights, valid, rng):
        """Stage 2: the selector, by the predictor's likelihood of the true class."""
        selector, predictor = self.net_["selector"], self.net_["predictor"]
        # No kernel penalty: the official loss of this stage is written by hand and has none.
        optimizer = adam(selector, self.lr, penalised=[])
        moving, fixed = Chain(selector), Chain(predictor)
        samples, codes = X.numpy(), y.numpy()
        means = Means()
        norms = [layer for layer in predictor if isinstance(layer, nn.BatchNorm1d)]
        for norm in norms:
            norm.track_running_stats = self.drift

        def step(rows):
            x, labels = samples[rows], codes[rows]

            def likelihood(mask, gradient):
                """F of a mask and, if asked for, its gradient."""
                logits = fixed.forward(x * mask.numpy())
                F, d = log_likelihood(logits, labels, weights)
                if not gradient:
                    return torch.from_numpy(F), None
                d = fixed.backward(d, weights=False)
                d *= x
                return torch.from_numpy(F), torch.from_numpy(d)

            logits = torch.from_numpy(moving.forward(x))
            u, v = uniform(rng, x.shape), uniform(rng, x.shape)
            gradient, F = rebar_gradient(logits, u, v, likelihood, self.tau)
            p = torch.sigmoid(logits)
            gradient -= self.lam / x.shape[1] * p * (1 - p)
            # Summed over the batch, as in the official code.
            moving.backward((-gradient).numpy(), inputs=False)
            optimizer.step()
            means.add(log_likelihood=F.mean(), probability=p.mean())

        def check():
            numbers = means.take() | mask_facts(self._mask(X))
            if valid is not None:
                x, labels, class_weight = valid
                masked = predictor(x * self._mask(x))
                prediction = nn.functional.cross_entropy(masked, labels, class_weight)
                penalty = self.lam * torch.sigmoid(selector(x)).mean().double()
                numbers |= validation(Loss(prediction, penalty, masked), labels)
            return numbers

        training = self._train(self.net_, step, check, len(X), valid, rng)
        for norm in norms:
            norm.track_running_stats = True
        return training

    def _logits(self, x):
        return self.net_["predictor"](x)

    def also_predict(self, X):
        """EVAL-X: the evaluator's prediction from a mask drawn with the selector's probabilities."""
        x = tensor(self._check(X))
        with torch.no_grad():
            s = self.threshold_ < torch.sigmoid(self.net_["selector"](x))
            codes = self.evaluator_(x * s).argmax(dim=1)
        return {"eval-x": self.classes_[codes.numpy()]}

    def matrix_products(self, batch):
        """Shapes (m, k, n) of the products of one step of each of the three trainings."""
        selector, predictor = self.net_["selector"], self.net_["predictor"]
        shapes = 2 * products(predictor, batch, inputs=False)
        shapes += products(selector, batch, inputs=False)
        # Once for the drawn mask, twice for the relaxed ones and back to them.
        shapes += [(batch, W.shape[1], W.shape[0]) for W in kernels(predictor)]
        return shapes + 2 * products(predictor, batch, weights=False)


def coins(rng, shape):
    """Zeros and ones with equal probability, one random bit each."""
    n_rows, n = shape
    row = -(-n // 8)
    octets = np.frombuffer(rng.bytes(n_rows * row), dtype=np.uint8).reshape(n_rows, row)
    return np.unpackbits(octets, axis=1, count=n)


def log_likelihood(logits, y, weights):
    """F = log(probability of the true class + EPS), times the class's weight; and its gradient."""
    rows = np.arange(len(y))
    q = np.exp(logits - logits.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    q_y = q[rows, y]
    slope = q_y / (q_y + q.dtype.type(EPS))
    F = np.log(q_y + q.dtype.type(EPS))
    if weights is not None:
        F, slope = F * weights[y], slope * weights[y]
    d = -q * slope[:, None]
    d[rows, y] += slope
    return F, d


def rebar_surrogate(logits, u, v, F, tau):
    """Per row, what has the gradient of `rebar_gradient` by automatic differentiation."""
    p = torch.sigmoid(logits)
    z = logits + torch.logit(u, CLIP)
    s = (z > 0).to(z.dtype)
    v = s * (1 - p + v * p) + (1 - s) * v * (1 - p)  # moves along with p
    m, m_same = torch.sigmoid(z / tau), torch.sigmoid((logits + torch.logit(v, CLIP)) / tau)
    log_p = (s * torch.log(p + EPS) + (1 - s) * torch.log(1 - p + EPS)).sum(dim=1)
    return (F(s) - F(m_same)).detach() * log_p + F(m) - F(m_same)


def rebar_gradient(logits, u, v, F, tau):
    """An estimate of the gradient of E_s[F(s)], s ~ Bernoulli(sigmoid(logits)); and F(s).

    F(mask, gradient) gives one number per row of a mask and, if asked for, the gradient of their sum;
    u and v are uniform numbers of the logits' shape. From u
    come the drawn mask s and its relaxation m, from v another relaxation m~ that would have drawn s
    too. The estimate is

        (F(s) - F(m~)) * d log P(s) + d F(m) - d F(m~)

    F(m~) takes most of the variance of the score function away, and the other two terms give back on
    average what that costs. The mean is the gradient, but for EPS inside the logarithm of P(s).
    """
    p = torch.sigmoid(logits)
    t = 1 - p
    z = logits + torch.logit(u, CLIP)
    s = z.clone().gt_(0)
    v = torch.lerp(v * t, t + v * p, s)  # uniform below t where s = 0, above t where s = 1
    z_same = logits + torch.logit(v, CLIP)
    missed = (s - p).abs()  # the probability of what was not drawn
    # d z~ / d logits: v moves along with t, so it is less than 1.
    slope = 1 - missed / (1 - (s - v).abs()).clamp_(min=CLIP)

    m, m_same = torch.sigmoid(z / tau), torch.sigmoid(z_same / tau)
    _, d_m = F(m, True)
    F_same, d_same = F(m_same, True)
    F_s, _ = F(s, False)
    score = (s - p) * (1 - EPS / (1 - missed + EPS))
    relaxed = d_m * m * (1 - m) - d_same * m_same * (1 - m_same) * slope
    return (F_s - F_same)[:, None] * score + relaxed / tau, F_s
