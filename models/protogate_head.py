"""ProtoGate's gates with a trainable predictor instead of the prototypes.

Reference: Jiang et al., 2024, Table 18. Selects features per sample.

gates     s(x) = clip(mu(x) + sigma * eps, 0, 1),  mu(x) = tanh(W1 ... ) as in ProtoGate, no shift
predictor f(x * s): the tanh network of MLP, or one linear layer
loss      balanced cross-entropy + lam_global * |W1|_1 + lam_local * mean of sum_d Phi(mu_d / sigma)

Gates and predictor are trained together, which is what ProtoGate avoids.
"""

import torch
from torch import nn

from ._chain import cross_entropy
from ._gates import LocalGates, gated_step
from ._networks import Loss, NetworkClassifier, chain, tensor, truncated_normal

HEADS = ("mlp", "linear")


class ProtoGateHead(NetworkClassifier):
    """Global-to-local gates in front of a network (`head="mlp"`) or a linear layer ("linear").

    Not released. Learning rate, widths and steps are ProtoGate's; the head's loss is that of MLP.
    """

    def __init__(
        self,
        *,
        head="mlp",
        lam_global=2e-4,
        lam_local=1e-3,
        sigma=0.5,
        gate_hidden=200,
        hidden=(100, 100, 10),
        lr=0.1,
        steps=10_000,
        batch_size=64,
        weight_decay=1e-4,
        clip=2.5,
        class_weight="balanced",
        check_every=50,
        checkpoint="valid_loss",
        patience=None,
        random_state=None,
    ):
        self.head = head
        self.lam_global = lam_global
        self.lam_local = lam_local
        self.sigma = sigma
        self.gate_hidden = gate_hidden
        self.hidden = hidden
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
        if self.head not in HEADS:
            raise ValueError(f"head must be one of {HEADS}, got {self.head!r}")
        widths = [n_features, *(self.hidden if self.head == "mlp" else ()), n_classes]
        return GatedHead(widths, self.gate_hidden, self.sigma)

    def loss(self, net, x, y, weights=None, eps=None):
        """Cross-entropy behind the gates, and ProtoGate's two penalties."""
        gates, mu = net.gates(x, eps)
        logits = net.head(x * gates)
        prediction = nn.functional.cross_entropy(logits, y, weights)
        soft_global = self.lam_global * net.gates.first.weight.abs().sum()
        local = self.lam_local * net.gates.expected_open(mu)
        return Loss(prediction, soft_global + local, logits, gates)

    def _step(self, X, y, weights):
        return gated_step(
            self.net_.gates,
            self.net_.head,
            X,
            lambda logits, rows: cross_entropy(logits, y[rows], weights),
            lam_local=self.lam_local,
            lam_global=self.lam_global,
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


class GatedHead(nn.Module):
    """Gates and predictor; gives the output and mu, which the penalty needs."""

    def __init__(self, widths, gate_hidden, sigma):
        super().__init__()
        self.gates = LocalGates(widths[0], gate_hidden, sigma, shift=0.0)
        truncated_normal(self.gates, std=0.015, cut=0.03)
        deep = len(widths) > 2
        self.head = chain(
            widths,
            activation=nn.Tanh,
            norm=nn.BatchNorm1d if deep else None,
            output_activation=deep,
        )

    def forward(self, x):
        gates, mu = self.gates(x)
        return self.head(x * gates), mu
