"""Stochastic gates per sample, from a gating network: shared by LSPIN and ProtoGate's heads.

`LocalGates` says what they are; `GatedStep` trains them together with a predictor, which is a chain
of layers (_chain.py). With h and the noise eps, for a batch of B samples, and d standing for the
gradient of the loss:

    h = tanh(X W1' + b1)      mu = tanh(h W2' + b2)      g = clip(mu + shift + sigma eps, 0, 1)
    M = X * g                 loss = f(M) + lam_local / B sum Phi((mu + shift) / sigma)
                                     + lam_global |W1|_1

    dmu = dM * X * [0 < mu + shift + sigma eps < 1] + lam_local / (B sigma) phi((mu + shift) / sigma)
    dZ  = dmu * (1 - mu^2)    dW2 = dZ' h      dh = dZ W2      dW1 = (dh * (1 - h^2))' X
"""

import math
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from . import _protogate_kernels as protogate
from ._chain import Chain, Flat
from ._protogate_kernels import F, _exp, _loop, _tanh, exp32, tanh32
from ._protogate_step import QUANTILES


class LocalGates(nn.Module):
    """mu(x) = tanh(W2 tanh(W1 x + b1) + b2); gate = clip(mu + shift + sigma * eps, 0, 1).

    In training eps ~ N(0, 1) per sample and feature; afterwards it is 0.
    """

    def __init__(self, n_features, hidden, sigma, shift):
        super().__init__()
        if not sigma > 0:
            raise ValueError(f"sigma must be above 0, however: {sigma!r}")
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


class GatedStep:
    """One step of SGD on one mini-batch, again and again, changing gates and predictor in place.

    prediction_loss(output, rows) is the loss f of what the predictor makes of the masked samples, and
    its gradient. `rows` selects the batch from arrays along the samples; a full batch keeps their order.
    """

    def __init__(
        self,
        gates,
        predictor,
        X,
        prediction_loss,
        *,
        lam_local,
        lam_global=0.0,
        lr,
        weight_decay=0.0,
        clip=None,
    ):
        self.prediction_loss, self.X = prediction_loss, X
        self.lam_local, self.lam_global = lam_local, lam_global
        self.lr, self.weight_decay, self.clip = lr, weight_decay, clip
        self.sigma, self.shift = gates.sigma, gates.shift
        # Views: what is written here changes the modules.
        self.net = [p.detach().numpy() for p in gates.parameters()]
        self.gradient = [np.empty_like(a) for a in self.net]
        self.rest = Flat(predictor)
        self.predictor = Chain(predictor)
        self.dtype = self.X.dtype.type
        # float64 is there for exact comparisons, not for speed.
        self.kernels = COMPILED if self.dtype is np.float32 else PLAIN
        state = torch.randint(2**32, (4, self.X.shape[1]))
        self.generators = state.numpy().astype(np.uint32)
        self.allocate(0)

    def allocate(self, B):
        """Buffers for batches of B samples; all steps of a training share them."""
        H, D = self.net[0].shape
        self.Xb, self.eps, self.Z, self.M, self.A, self.R = np.empty((6, B, D), self.dtype)
        self.h = np.empty((B, H), self.dtype)

    def __call__(self, rows):
        if len(rows) != len(self.Z):
            self.allocate(len(rows))
        X, rows = self.batch(rows)
        self.kernels.noise(self.generators, QUANTILES, self.eps)
        self.forward(X, self.eps)
        self.backward(X, rows)
        self.update()

    def batch(self, rows):
        # The loss does not depend on the order of the samples: a full batch needs no copy.
        if len(rows) == len(self.X):
            return self.X, slice(None)
        return np.take(self.X, rows, axis=0, out=self.Xb, mode="clip"), rows

    def forward(self, X, eps):
        """Fill M with the masked samples, A and R with what `backward` needs of the gates."""
        W1, b1, W2, b2 = self.net
        np.matmul(X, W1.T, out=self.h)
        self.h += b1
        np.tanh(self.h, out=self.h)
        np.matmul(self.h, W2.T, out=self.Z)
        weight = self.lam_local / (len(X) * self.sigma * math.sqrt(2 * math.pi))
        scalars = map(self.dtype, (self.shift, self.sigma, -0.5 / self.sigma**2, weight))
        self.kernels.gate(self.Z, b2, eps, X, *scalars, self.M, self.A, self.R)

    def backward(self, X, rows):
        """Fill the gradients; that of lam_global |W1|_1 follows in `update`."""
        _, d = self.prediction_loss(self.predictor.forward(self.M), rows)
        gW1, gb1, gW2, gb2 = self.gradient
        h, dZ = self.h, self.Z
        np.multiply(self.predictor.backward(d), self.A, out=dZ)
        dZ += self.R
        np.sum(dZ, axis=0, out=gb2)
        np.matmul(dZ.T, h, out=gW2)
        dh = np.matmul(dZ, self.net[2])
        dh *= 1 - h * h
        np.sum(dh, axis=0, out=gb1)
        np.matmul(dh.T, X, out=gW1)

    def update(self):
        """Clip the joint norm of all gradients, then descend."""
        factor = self.clip_factor()
        decay, rate = self.dtype(1 - self.lr * self.weight_decay), self.dtype(self.lr * factor)
        shrink = self.dtype(self.lr * factor * self.lam_global)
        weights, gradients = [*self.net, self.rest.weights], [*self.gradient, self.rest.gradient]
        for i, (w, g) in enumerate(zip(weights, gradients, strict=True)):
            w, g = (a.reshape(len(a), -1) if a.ndim > 1 else a[None] for a in (w, g))
            self.kernels.descend(w, g, decay, rate, self.dtype(0) if i else shrink)

    def clip_factor(self):
        """How much the gradients must shrink for their joint norm to be at most `clip`."""
        if self.clip is None:
            return 1.0
        square = sum(float(np.vdot(g, g)) for g in (*self.gradient, self.rest.gradient))
        if self.lam_global:
            inner = np.empty_like(self.net[3])
            nonzero = self.kernels.signed_sums(self.net[0], self.gradient[0], inner)
            square += 2 * self.lam_global * float(inner.sum())
            square += self.lam_global**2 * nonzero
        return min(1.0, self.clip / (math.sqrt(max(square, 0.0)) + 1e-6))


# --- The element-wise part ----------------------------------------------------------------------
# Once in NumPy and once as loops for numba, with the same bits: see _protogate_kernels.py. Numba's
# cache does not notice if tanh32 or exp32 change there; then this file must change, too.


def gate(Z, b2, eps, X, shift, sigma, bend, weight, M, A, R):
    """From Z = h W2': the masked samples M, and A and R such that dL/dZ = A * dL/dM + R.

    R = weight * exp(bend * (mu + shift)^2) * (1 - mu^2) is the local penalty's part. Z becomes mu.
    """
    tanh, exp = (tanh32, exp32) if Z.dtype == F else (np.tanh, np.exp)
    mu = Z
    mu[:] = tanh(Z + b2)
    center = mu + shift
    s = center + sigma * eps
    slope = 1 - mu * mu
    np.multiply(X, np.clip(s, 0, 1), out=M)
    np.multiply(X * slope, (s > 0) & (s < 1), out=A)
    np.multiply(weight * exp(center * center * bend), slope, out=R)


@_loop
def gate_loop(Z, b2, eps, X, shift, sigma, bend, weight, M, A, R):
    zero, one = F(0), F(1)
    for i in range(Z.shape[0]):
        # Three short loops over a row that stays in the cache: one long one is not vectorised.
        mu, e, x, m, a, r = Z[i], eps[i], X[i], M[i], A[i], R[i]
        for d in range(len(mu)):
            mu[d] = _tanh(mu[d] + b2[d])
        for d in range(len(mu)):
            s = (mu[d] + shift) + sigma * e[d]
            m[d] = x[d] * min(max(s, zero), one)
            a[d] = x[d] * (one - mu[d] * mu[d]) * (one if zero < s < one else zero)
        for d in range(len(mu)):
            center = mu[d] + shift
            r[d] = weight * _exp(center * center * bend) * (one - mu[d] * mu[d])


PLAIN = SimpleNamespace(**{**vars(protogate.PLAIN), "gate": gate})
COMPILED = SimpleNamespace(**{**vars(protogate.COMPILED), "gate": gate_loop})
if protogate.COMPILED is protogate.PLAIN:
    COMPILED = PLAIN
