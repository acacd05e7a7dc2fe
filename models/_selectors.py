"""What L2X, INVASE and REAL-X share: their networks, by the conventions of Keras, and their report.

selector  x -> 100 -> 100 -> D logits, one per feature
predictor x -> 200 -> BN -> 200 -> BN -> C logits

Keras: weights Glorot-uniform, biases zero; batch norm with eps 1e-3 and averages that keep 0.99 of
the past; Adam with eps 1e-7; the penalty of a kernel W is 1e-3 * sum W^2, without a half.
"""

from itertools import pairwise

import numpy as np
import torch
from torch import nn

from ._chain import Adam, release
from ._classifier import Classifier
from ._networks import SCORES, class_weights, seeded, tensor
from ._train import train

ACTIVATIONS = {"relu": nn.ReLU, "selu": nn.SELU}
KERNEL_PENALTY = 1e-3


def linear(n_in, n_out):
    layer = nn.Linear(n_in, n_out)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def selector(n_features, hidden, activation):
    """A network with one output per feature."""
    layers = []
    for n_in, n_out in pairwise([n_features, *hidden]):
        layers += [linear(n_in, n_out), activation()]
    return nn.Sequential(*layers, linear(hidden[-1], n_features))


def predictor(n_features, hidden, n_classes, activation):
    """A network with batch norm after each hidden layer's activation, and one output per class."""
    layers = []
    for n_in, n_out in pairwise([n_features, *hidden]):
        norm = nn.BatchNorm1d(n_out, eps=1e-3, momentum=0.01)
        layers += [linear(n_in, n_out), activation(), norm]
    return nn.Sequential(*layers, linear(hidden[-1], n_classes))


def kernels(*nets):
    """The weight matrices of all linear layers, in order."""
    layers = (layer for net in nets for layer in net.modules())
    return [layer.weight for layer in layers if isinstance(layer, nn.Linear)]


def kernel_penalty(penalised):
    return KERNEL_PENALTY * sum(W.square().sum().double() for W in penalised)


def adam(net, lr, penalised):
    """Adam on all parameters of the network, with the penalty of the given kernels.

    The penalty's gradient is 2 * 1e-3 * W: a weight decay of 2e-3 that Adam adds to the gradient
    before anything else, so the penalty need not be computed.
    """
    return Adam(net, lr, eps=1e-7, decay=2 * KERNEL_PENALTY, first=penalised)


def uniform(rng, shape):
    """Numbers in [0, 1) in single precision; numpy draws them faster than torch."""
    return torch.from_numpy(rng.random(shape, dtype=np.float32))


def products(net, batch, *, weights=True, inputs=True):
    """Shapes (m, k, n) of a network's products: forward, and back to its weights and its inputs."""
    shapes = []
    for i, (n_out, n_in) in enumerate(W.shape for W in kernels(net)):
        shapes.append((batch, n_in, n_out))
        if weights:
            shapes.append((n_out, batch, n_in))
        if inputs or i > 0:
            shapes.append((batch, n_out, n_in))
    return shapes


class Means:
    """Means of what the steps report, since they were last taken."""

    def __init__(self):
        self.sums, self.count = {}, 0

    def add(self, **numbers):
        for name, value in numbers.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value)
        self.count += 1

    def take(self):
        means = {name: value / self.count for name, value in self.sums.items()}
        self.sums, self.count = {}, 0
        return means


class SelectorClassifier(Classifier):
    """A selector that tells which features of a sample are used, and a predictor.

    A model is trained by

    _fit(X, y, weights, valid, rng)  which sets net_, with a "selector" and a "predictor" among its
                                     networks, seconds_per_epoch_ and fit_report_; valid is None or
                                     samples, labels and weights of the classes

    and a feature counts as selected if its logit is positive, i.e. its probability is above 1/2.
    """

    def fit(self, X, y, eval_set=None):
        X, codes, valid = self._check_fit(X, y, eval_set)
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"activation must be one of {tuple(ACTIVATIONS)}, got {self.activation!r}"
            )
        if self.checkpoint not in SCORES:
            raise ValueError(f"checkpoint must be one of {tuple(SCORES)}, got {self.checkpoint!r}")
        weights = class_weights(codes, len(self.classes_), self.class_weight)
        X, y = tensor(X), torch.from_numpy(codes)
        if valid is not None:
            valid = tensor(valid[0]), torch.from_numpy(valid[1]), weights
        weights = None if weights is None else weights.numpy()
        with seeded(self.random_state) as rng:
            self._fit(X, y, weights, valid, rng)
        self.net_.eval()
        self.n_parameters_ = sum(p.numel() for p in self.net_.parameters())
        self.fit_report_ |= mask_facts(self._mask(X))
        return self

    def _selector(self, n_features):
        return selector(n_features, self.selector_hidden, ACTIVATIONS[self.activation])

    def _predictor(self, n_features):
        activation = ACTIVATIONS[self.activation]
        return predictor(n_features, self.predictor_hidden, len(self.classes_), activation)

    def _train(self, net, step, check, n_samples, valid, rng):
        """The common loop; `check` returns the numbers of a check and is called in inference mode."""

        def inference():
            net.eval()
            with torch.no_grad():
                numbers = check()
            net.train()
            return numbers

        net.train()
        training = train(
            n_samples,
            step,
            steps=self.steps,
            rng=rng,
            batch_size=self.batch_size,
            check=inference,
            check_every=self.check_every,
            score=None if valid is None else SCORES[self.checkpoint],
            save=lambda: {name: value.clone() for name, value in net.state_dict().items()},
            load=net.load_state_dict,
        )
        release(net)
        net.eval()
        return training

    def _chosen(self, logits):
        """Which features the selector's logits choose, as booleans."""
        return logits > 0

    def _mask(self, x):
        with torch.no_grad():
            return self._chosen(self.net_["selector"](x))

    def select(self, X):
        """Which features are selected, per sample."""
        return self._mask(tensor(self._check(X))).numpy()

    def importance(self, X):
        """The selector's logits: the larger, the sooner a feature is selected for the sample."""
        X = self._check(X)
        with torch.no_grad():
            return self.net_["selector"](tensor(X)).numpy()

    def _logits(self, x):
        """The classes' logits: of the predictor on the selected features."""
        return self.net_["predictor"](x * self._mask(x))

    def predict_proba(self, X):
        X = self._check(X)
        with torch.no_grad():
            return torch.softmax(self._logits(tensor(X)), dim=1).double().numpy()


def mask_facts(mask):
    """How many features the samples have, and whether it is the same ones for all of them."""
    return {
        "selected_fraction": float(mask.float().mean()),
        "union_fraction": float(mask.any(dim=0).float().mean()),
        "constant_mask": bool((mask == mask[0]).all()),
    }
