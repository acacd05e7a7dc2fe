"""Stochastic gates per sample, from a gating network: shared by LSPIN and ProtoGate's heads."""

import torch
from torch import nn


class LocalGates(nn.Module):
    """mu(x) = tanh(W2 tanh(W1 x + b1) + b2); gate = clip(mu + shift + sigma * eps, 0, 1).

    In training eps ~ N(0, 1) per sample and feature; afterwards it is 0.
    """

    def __init__(self, n_features, hidden, sigma, shift):
        super().__init__()
        self.first = nn.Linear(n_features, hidden)
        self.second = nn.Linear(hidden, n_features)
        self.sigma = sigma
        self.shift = shift

    def forward(self, x):
        """The gates of each sample and the noise-free mu."""
        mu = torch.tanh(self.second(torch.tanh(self.first(x))))
        center = mu + self.shift
        if self.training:
            center = torch.add(center, torch.randn_like(mu), alpha=self.sigma)
        # hardtanh is clip(., 0, 1), but its gradient costs a tenth of clamp's.
        return nn.functional.hardtanh(center, 0.0, 1.0), mu

    def expected_open(self, mu):
        """Sum over features of P(gate > 0) = Phi((mu + shift) / sigma), mean over the batch."""
        return torch.special.ndtr((mu + self.shift) / self.sigma).sum() / len(mu)
