"""STG: feature selection using stochastic gates.

Reference: Yamada et al., 2020. Selects features globally.

gates     z_d = clip(mu_d + 0.5 + sigma * eps_d, 0, 1), eps ~ N(0, 1), one draw for a whole batch
predictor f(x * z), f: D -> 100 -> tanh -> 100 -> tanh -> 10 -> tanh -> C, or the MLP's network
loss      cross-entropy + lam * mean_d P(z_d > 0),  P(z_d > 0) = Phi((mu_d + 0.5) / sigma)

A feature is selected if its gate is open without noise: mu_d + 0.5 > 0.
"""

import math

import numpy as np
import torch
from torch import nn

from ._chain import SGD, Chain, cross_entropy
from ._classifier import GlobalSelector
from ._networks import Loss, NetworkClassifier, chain, truncated_normal
from .mlp import Perceptron


class STG(GlobalSelector, NetworkClassifier):
    """One gate per feature, learned together with a tanh network.

    NOTE[DIFF] The paper says that STG shares ProtoGate's gating network. STG has no gating network:
    its gates do not depend on the sample. Optimiser: plain SGD, because with Adam at the stated
    learning rate every uninformative gate would close, while the paper reports that none does.
    lam multiplies a mean over features, so 50 here is of the order of 0.01 per feature.

    predictor : "official" is the network of STG's own code; "mlp" that of the MLP here, with batch
        norm before every layer and tanh on the output. The paper says that the two share one. Its
        first batch norm undoes what a gate scales, one factor per feature and batch, unless that is
        nearly 0: the prediction moves a gate by the rare draws next to closed, and then by a lot.
    init : "official" draws the predictor's weights as STG's own code does, "torch" leaves them as
        torch draws them, which is how the MLP starts.
    weight_decay, clip, class_weight, checkpoint : as in STG's own code and the paper; the MLP has
        1e-4, 2.5, "balanced" and, without a penalty, the lowest cross-entropy. All of its ways
        together are no nearer to print (table stg-causes), so the official ones are the default.
    """

    def __init__(
        self,
        *,
        lam=45.0,
        sigma=0.5,
        hidden=(100, 100, 10),
        predictor="official",
        init="official",
        lr=3e-3,
        steps=7000,
        batch_size=64,
        weight_decay=1e-3,
        clip=None,
        class_weight=None,
        check_every=50,
        checkpoint="valid_loss",
        patience=None,
        random_state=None,
    ):
        self.lam = lam
        self.sigma = sigma
        self.hidden = hidden
        self.predictor = predictor
        self.init = init
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
        if not self.sigma > 0:
            raise ValueError(f"sigma must be positive, got {self.sigma!r}")
        for name, known in (("predictor", PREDICTORS), ("init", INITS)):
            value = getattr(self, name)
            if value not in known:
                raise ValueError(f"{name} must be one of {tuple(known)}, got {value!r}")
        return GatedPerceptron([n_features, *self.hidden, n_classes], self.predictor, self.init)

    def loss(self, net, x, y, weights=None, eps=0.0):
        """Cross-entropy behind the gates, and how likely a gate is open; eps is one draw per gate."""
        gates = torch.clamp(net.mu + 0.5 + self.sigma * eps, 0, 1)
        logits = net.predictor(x * gates)
        prediction = nn.functional.cross_entropy(logits, y, weights)
        penalty = self.lam * torch.special.ndtr((net.mu + 0.5) / self.sigma).mean()
        return Loss(prediction, penalty, logits, gates)

    def _step(self, X, y, weights):
        net, sigma = self.net_, self.sigma
        optimizer = SGD(net, self.lr, decay=self.weight_decay, clip=self.clip)
        predictor = Chain(net.predictor)
        mu, d_mu = net.mu.detach().numpy(), net.mu.grad.numpy()

        def step(rows):
            x, center = X[rows], mu + 0.5
            z = center + sigma * torch.randn(len(mu)).numpy()
            _, d = cross_entropy(predictor.forward(x * np.clip(z, 0, 1)), y[rows], weights)
            dz = np.einsum("id,id->d", predictor.backward(d), x)
            density = np.exp(-0.5 * (center / sigma) ** 2) / math.sqrt(2 * math.pi)
            d_mu[:] = dz * ((z > 0) & (z < 1)) + self.lam / (sigma * len(mu)) * density
            optimizer.step()

        return step

    @property
    def selected_(self):
        return self.net_.mu.detach().numpy() + 0.5 > 0

    @property
    def gates_(self):
        """The gates without noise, in [0, 1]."""
        return np.clip(self.net_.mu.detach().numpy() + 0.5, 0, 1)


class GatedPerceptron(nn.Module):
    """The gates, without noise, and the predictor; gives logits and mu, which the penalty needs."""

    def __init__(self, widths, predictor, init):
        super().__init__()
        self.mu = nn.Parameter(0.01 * torch.randn(widths[0]))
        self.predictor = PREDICTORS[predictor](widths)
        if init == "official":  # a standard normal cut at 0.2 is nearly uniform
            truncated_normal(self.predictor, std=1.0, cut=0.2)

    def forward(self, x):
        return self.predictor(x * torch.clamp(self.mu + 0.5, 0, 1)), self.mu


PREDICTORS = {
    "official": lambda widths: chain(widths, activation=nn.Tanh),
    "mlp": lambda widths: Perceptron(widths).layers,
}
INITS = ("official", "torch")
