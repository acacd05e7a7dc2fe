"""LSPIN and LLSPIN: locally sparse networks.

Reference: Yang, Lindenbaum and Kluger, 2022. Select features per sample.

gates     g(x) = clip(mu(x) + 0.5 + sigma * eps, 0, 1),  mu(x) = tanh(W2 tanh(W1 x + b1) + b2)
predictor f(x * g): the tanh network of MLP for LSPIN, the same layers without activations for LLSPIN
loss      balanced cross-entropy + lam * mean over samples of sum_d Phi((mu_d + 0.5) / sigma)

A feature is selected for a sample if its gate is open without noise.
"""

from functools import partial

import torch
from torch import nn

from ._chain import cross_entropy
from ._gates import LocalGates, gated_step
from ._networks import Loss, NetworkClassifier, chain, tensor, truncated_normal

PREDICTORS = ("tanh", "linear-layers", "linear")
NORMS = {
    "torch": nn.BatchNorm1d,
    "tensorflow": partial(nn.BatchNorm1d, momentum=0.01, eps=1e-3),
}
"""Batch norm with either library's constants: how fast averages move, what is added to variances."""


class LSPIN(NetworkClassifier):
    """A gating network that opens gates per sample, trained together with the predictor.

    predictor : "tanh" is LSPIN, "linear-layers" is LLSPIN (a chain of linear layers with batch norm
        in between), "linear" is LLSPIN with a single linear layer and no batch norm.
    batch_norm : whose constants batch norm has, "torch" or "tensorflow".

    NOTE[DIFF] The official code averages the penalty over features; the paper's range of lam, 5e-4
    to 1.5e-3, only has an effect if it is summed, as in ProtoGate, so it is summed here. The gates'
    shift of 0.5 is the official one; ProtoGate has none. gate_hidden = 200 follows the paper's text,
    its count of parameters fits 100. The benchmark's LSPIN is not released; its other networks are in
    torch, so batch norm has torch's constants. batch_norm = "tensorflow" has the official ones.
    """

    def __init__(
        self,
        *,
        predictor="tanh",
        lam=1e-3,
        sigma=0.5,
        shift=0.5,
        gate_hidden=200,
        hidden=(100, 100, 10),
        batch_norm="torch",
        lr=0.1,
        steps=7000,
        batch_size=64,
        weight_decay=1e-4,
        clip=2.5,
        class_weight="balanced",
        check_every=50,
        checkpoint="valid_loss",
        patience=None,
        random_state=None,
    ):
        self.predictor = predictor
        self.lam = lam
        self.sigma = sigma
        self.shift = shift
        self.gate_hidden = gate_hidden
        self.hidden = hidden
        self.batch_norm = batch_norm
        self.lr = lr
        self.steps = steps
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.clip = clip
        self.class_weight = class_weight
        self.check_every = check_every
        self.checkpoint = checkpoint
        self.patience = patience
        self.random_state = random_state

    def _network(self, n_features, n_classes):
        return LocallySparse(
            [n_features, *self.hidden, n_classes],
            self.gate_hidden,
            self.sigma,
            self.shift,
            self.predictor,
            self.batch_norm,
        )

    def loss(self, net, x, y, weights=None, eps=None):
        """Cross-entropy behind the gates, and the expected number of open gates."""
        gates, mu = net.gates(x, eps)
        logits = net.predictor(x * gates)
        prediction = nn.functional.cross_entropy(logits, y, weights)
        return Loss(prediction, self.lam * net.gates.expected_open(mu), logits, gates)

    def _step(self, X, y, weights):
        return gated_step(
            self.net_.gates,
            self.net_.predictor,
            X,
            lambda logits, rows: cross_entropy(logits, y[rows], weights),
            lam_local=self.lam,
            lr=self.lr,
            weight_decay=self.weight_decay,
            clip=self.clip,
        )

    def masks(self, X):
        """The gates without noise, in [0, 1], per sample and feature."""
        X = self._check(X)
        with torch.no_grad():
            return self.net_.gates(tensor(X))[0].numpy()

    def select(self, X):
        """Which gates are open, per sample and feature."""
        return self.masks(X) > 0


class LocallySparse(nn.Module):
    """Gates and predictor; gives the output and mu, which the penalty needs.

    std : standard deviation of all initial weights; 1 / sqrt(D), if it is not given.
    """

    def __init__(self, widths, gate_hidden, sigma, shift, predictor, batch_norm, *, std=None):
        super().__init__()
        if predictor not in PREDICTORS:
            raise ValueError(f"predictor must be one of {PREDICTORS}, got {predictor!r}")
        if batch_norm not in NORMS:
            raise ValueError(f"batch_norm must be one of {tuple(NORMS)}, got {batch_norm!r}")
        norm = NORMS[batch_norm]
        self.gates = LocalGates(widths[0], gate_hidden, sigma, shift)
        if predictor == "tanh":
            self.predictor = chain(widths, activation=nn.Tanh, norm=norm, output_activation=True)
        elif predictor == "linear-layers":
            self.predictor = chain(widths, norm=norm)
        else:
            self.predictor = chain([widths[0], widths[-1]])
        # As in the official settings, every weight is small: about 1/sqrt(D), cut at twice that.
        std = widths[0] ** -0.5 if std is None else std
        truncated_normal(self, std, 2 * std)

    def forward(self, x):
        gates, mu = self.gates(x)
        return self.predictor(x * gates), mu
