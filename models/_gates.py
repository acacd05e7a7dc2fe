"""Stochastic gates per sample, from a gating network: shared by LSPIN and ProtoGate's heads."""

import torch
from torch import nn

from ._chain import Chain, Flat
from ._gated_step import GatedStep, Net


class LocalGates(nn.Module):
    """mu(x) = tanh(W2 tanh(W1 x + b1) + b2); gate = clip(mu + shift + sigma * eps, 0, 1).

    In training eps ~ N(0, 1) per sample and feature; afterwards it is 0.
    """

    def __init__(self, n_features, hidden, sigma, shift):
        super().__init__()
        if not sigma > 0:
            raise ValueError(f"sigma must be positive, got {sigma!r}")
        self.first = nn.Linear(n_features, hidden)
        self.second = nn.Linear(hidden, n_features)
        self.sigma = sigma
        self.shift = shift

    def forward(self, x, eps=None):
        """The gates of each sample, with the noise eps if there is any, and the noise-free mu."""
        mu = torch.tanh(self.second(torch.tanh(self.first(x))))
        center = mu + self.shift
        return torch.clamp(center if eps is None else center + self.sigma * eps, 0, 1), mu

    def expected_open(self, mu):
        """Sum over features of P(gate > 0) = Phi((mu + shift) / sigma), mean over the batch."""
        return torch.special.ndtr((mu + self.shift) / self.sigma).sum() / len(mu)


def gated_step(gates, predictor, X, prediction_loss, **settings):
    """A GatedStep that trains gates together with the predictor, a chain of layers.

    prediction_loss(output, rows) is the loss of what the predictor makes of the masked samples, and
    its gradient for that output.
    """
    net = Net(*(p.detach().numpy() for p in gates.parameters()))  # views of the module's memory
    parameters, layers = Flat(predictor), Chain(predictor)

    def prediction_gradient(M, rows):
        _, d = prediction_loss(layers.forward(M), rows)
        return layers.backward(d)

    generators = torch.randint(2**32, (4, X.shape[1])).numpy().astype("uint32")
    own = {"sigma": gates.sigma, "shift": gates.shift, "predictor": parameters}
    return GatedStep(net, X, prediction_gradient, generators, **own, **settings)
