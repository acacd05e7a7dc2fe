"""What the networks share: layers, initialisation, weights of the classes, and a seed of their own."""

import numbers
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import nn

from ._chain import release
from ._classifier import Classifier
from ._train import train


def chain(widths, *, activation=None, norm=None, output_activation=False):
    """Linear layers of the given widths; `norm(width)` stands before each, also before the first."""
    layers = []
    for i, (n_in, n_out) in enumerate(pairwise(widths)):
        if norm is not None:
            layers.append(norm(n_in))
        layers.append(nn.Linear(n_in, n_out))
        if activation is not None and (output_activation or i < len(widths) - 2):
            layers.append(activation())
    return nn.Sequential(*layers)


def truncated_normal(net, std, cut):
    """Weights from a normal distribution cut at +-`cut`, biases zero."""
    for layer in net.modules():
        if isinstance(layer, nn.Linear):
            nn.init.trunc_normal_(layer.weight, 0.0, std, -cut, cut)
            nn.init.zeros_(layer.bias)


def class_weights(codes, n_classes, how):
    """`balanced`: n / (C n_c) of the training labels; None: all classes weigh the same."""
    if how is None:
        return None
    if how != "balanced":
        raise ValueError(f"class_weight must be None or 'balanced', got {how!r}")
    return torch.tensor(len(codes) / (n_classes * np.bincount(codes)), dtype=torch.float32)


@contextmanager
def seeded(random_state):
    """Draw from torch's generators as if the process began with this seed, then put them back.

    Gives a NumPy generator of the same seed. What is not a number, None or a RandomState, means
    what it does for scikit-learn: the seed is drawn.
    """
    seed = random_state
    if not isinstance(seed, numbers.Integral):
        seed = check_random_state(random_state).randint(2**31 - 1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(seed))
        yield np.random.default_rng(seed)


class Loss(NamedTuple):
    """The parts of a training loss in torch, and what it was computed from."""

    prediction: torch.Tensor
    penalty: torch.Tensor | float
    logits: torch.Tensor
    gates: torch.Tensor | None = None

    @property
    def total(self):
        return self.prediction + self.penalty


def validation(loss, y):
    """The numbers by which a checkpoint can be chosen, from the loss of the evaluation set."""
    right = loss.logits.argmax(1) == y
    recall = torch.stack([right[y == c].float().mean() for c in y.unique()])
    numbers = {
        "valid_loss": float(loss.total),
        "valid_prediction_loss": float(loss.prediction),
        "valid_balanced_accuracy": float(recall.mean()),
    }
    if loss.gates is not None:
        numbers["selected"] = float((loss.gates > 0).float().sum(-1).mean())
    return numbers


class NetworkClassifier(Classifier):
    """A classifier around a torch network that is trained by stochastic gradient descent.

    A model says what its network is and what its loss is; the rest is the same for all:

    _network(n_features, n_classes)  the module; calling it gives (logits, anything else)
    loss(net, x, y, weights)         a Loss of the module on some samples, with these weights of the
                                     classes, or None; the noise of training, if any, comes last
    _step(X, y, weights)             a function that does one training step on the given rows of the
                                     arrays X and y: it descends the gradient of that loss, which is
                                     written out by hand
    """

    def fit(self, X, y, eval_set=None):
        X, codes, eval_set = self._check_fit(X, y, eval_set)
        with seeded(self.random_state) as rng:
            self._fit(X, codes, eval_set, rng)
        return self

    def _fit(self, X, codes, eval_set, rng):
        if self.checkpoint not in SCORES:
            raise ValueError(f"checkpoint must be one of {tuple(SCORES)}, got {self.checkpoint!r}")
        n_classes = len(self.classes_)
        X = tensor(X)
        self.net_ = net = self._network(X.shape[1], n_classes)
        weights = class_weights(codes, n_classes, self.class_weight)

        def check():
            net.eval()
            with torch.no_grad():
                numbers = validation(self.loss(net, X_valid, y_valid, weights), y_valid)
            net.train()
            return numbers

        if eval_set is not None:
            X_valid, y_valid = tensor(eval_set[0]), torch.from_numpy(eval_set[1])
        net.train()
        training = train(
            len(X),
            self._step(X.numpy(), codes, None if weights is None else weights.numpy()),
            steps=self.steps,
            rng=rng,
            batch_size=self.batch_size,
            check=None if eval_set is None else check,
            check_every=self.check_every,
            score=SCORES[self.checkpoint],
            patience=self.patience,
            save=lambda: {name: value.clone() for name, value in net.state_dict().items()},
            load=net.load_state_dict,
        )
        release(net)
        net.eval()
        self.n_parameters_ = sum(p.numel() for p in net.parameters())
        self.seconds_per_epoch_ = training.seconds_per_epoch
        self.fit_report_ = training.report()

    def matrix_products(self, batch):
        """Shapes (m, k, n) of the products of one training step: what its speed is measured by."""
        shapes = []
        for name, layer in self.net_.named_modules():
            if isinstance(layer, nn.Linear):
                n_in, n_out = layer.in_features, layer.out_features
                shapes += [(batch, n_in, n_out), (n_out, batch, n_in)]
                # The gates' first layer sees the data themselves, which have no gradient.
                if name != "gates.first":
                    shapes.append((batch, n_out, n_in))
        return shapes

    def predict_proba(self, X):
        X = self._check(X)
        with torch.no_grad():
            logits, _ = self.net_(tensor(X))
            return torch.softmax(logits, dim=1).double().numpy()


SCORES = {
    "valid_loss": lambda numbers: numbers["valid_loss"],
    "valid_prediction_loss": lambda numbers: numbers["valid_prediction_loss"],
    "valid_balanced_accuracy": lambda numbers: -numbers["valid_balanced_accuracy"],
    "last": None,
}
"""Which check's weights are kept: a number to be as low as possible, or the last weights."""


def tensor(X):
    """An array as float32, as the networks compute; torch wants memory that it could write to."""
    return torch.from_numpy(np.require(X, np.float32, ["C_CONTIGUOUS", "WRITEABLE"]))
