"""The training step of gates per sample: forward pass, hand-written backward pass and update.

ProtoGate, its trainable heads and LSPIN share the gates and differ in what predicts from the masked
samples M. With f(M) the prediction loss of a batch of B samples with D features, H hidden units, noise
eps, and d standing for the gradient of the loss:

    h = tanh(X W1' + b1)      mu = tanh(h W2' + b2)      s = mu + shift + sigma eps
    M = X * clip(s, 0, 1)     loss = f(M) + lam_local / B sum Phi((mu + shift) / sigma)
                                     + lam_global |W1|_1

    dmu = dM * X * [0 < s < 1] + lam_local / (B sigma) phi((mu + shift) / sigma)
    dZ  = dmu * (1 - mu^2)    dW2 = dZ' h      dh = dZ W2      dW1 = (dh * (1 - h^2))' X

Nothing is larger than a batch or a layer. The matrix products are NumPy's, whose BLAS was the faster
of the two at hand on one thread.
"""

import math
from typing import NamedTuple

import numpy as np

from . import _kernels, _noise
from ._kernels import ONE, ZERO, exp, loop, tanh


class Net(NamedTuple):
    """The gating network's weights, or their gradients."""

    W1: np.ndarray
    """(H, D)"""
    b1: np.ndarray
    W2: np.ndarray
    """(D, H)"""
    b2: np.ndarray


class GatedStep:
    """One SGD step on one mini-batch, again and again, changing the networks in place.

    Call it with the batch's rows; or use `forward`, `backward` and `update` one by one.

    net                  the gating network, a Net
    prediction_gradient  of (M, rows): df/dM for the masked samples of these rows, an array to be
                         written to, or None if it is zero; rows is a slice for the whole data
    generators           state of the noise, (4, D) words
    predictor            parameters of f that descend along, a Flat; their gradient is filled by
                         prediction_gradient
    prox_l1              replace the gradient of lam_global |W1|_1 by its proximal step
    slack                gradients shrink by clip / (norm + 1e-6), but not if norm + slack <= clip
    """

    def __init__(
        self,
        net,
        X,
        prediction_gradient,
        generators,
        *,
        lam_local,
        sigma,
        lr,
        shift=0.0,
        lam_global=0.0,
        weight_decay=0.0,
        clip=None,
        prox_l1=False,
        predictor=None,
        slack=1e-6,
    ):
        self.net, self.X, self.prediction_gradient = net, X, prediction_gradient
        self.generators = generators
        self.lam_local, self.lam_global, self.prox_l1 = lam_local, lam_global, prox_l1
        self.sigma, self.shift = sigma, shift
        self.lr, self.weight_decay, self.clip, self.slack = lr, weight_decay, clip, slack
        self.number = X.dtype.type
        self.gradient = Net(*map(np.empty_like, net))
        # Flat views in the order of the memory, which W2 may have either way round.
        self.weights, self.gradients = (
            [a.ravel(order="K") for a in arrays] for arrays in (net, self.gradient)
        )
        if predictor is not None:
            self.weights.append(predictor.weights)
            self.gradients.append(predictor.gradient)
        self.steps = self.clipped = 0
        self._allocate(0)

    def _allocate(self, B):
        """Buffers for batches of B samples; all steps of a training share them."""
        H, D = self.net.W1.shape
        self.Xb, self.eps, self.Z, self.M, self.A, self.R = np.empty((6, B, D), self.number)
        self.h, self.dh = np.empty((2, B, H), self.number)

    def __call__(self, rows):
        if len(rows) != len(self.Z):
            self._allocate(len(rows))
        if len(rows) < len(self.X):
            X = np.take(self.X, rows, axis=0, out=self.Xb, mode="clip")
        else:  # the loss does not depend on the order of the samples: no copy
            X, rows = self.X, slice(None)
        _noise.quantiles(self.generators, _noise.QUANTILES, self.eps)
        self.forward(X, self.eps)
        self.backward(X, rows)
        self.update()
        self.steps += 1

    def forward(self, X, eps):
        """Fill M with the masked samples, A and R with what `backward` needs of the gates."""
        if len(X) != len(self.Z):
            self._allocate(len(X))
        W1, b1, W2, b2 = self.net
        np.matmul(X, W1.T, out=self.h)
        self.h += b1
        np.tanh(self.h, out=self.h)
        np.matmul(self.h, W2.T, out=self.Z)
        weight = self.lam_local / (len(X) * self.sigma * math.sqrt(2 * math.pi))
        scalars = map(self.number, (self.shift, self.sigma, -0.5 / self.sigma**2, weight))
        gate(self.Z, b2, eps, X, *scalars, self.M, self.A, self.R)

    def backward(self, X, rows):
        """Fill `gradient` with that of f and the local penalty; lam_global |W1|_1 is for `update`."""
        h, dh, gradient = self.h, self.dh, self.gradient
        dZ = self.prediction_gradient(self.M, rows)
        if dZ is None:
            dZ = self.R
        else:
            dZ *= self.A
            dZ += self.R
        np.sum(dZ, axis=0, out=gradient.b2)
        np.matmul(dZ.T, h, out=gradient.W2)
        np.matmul(dZ, self.net.W2, out=dh)
        dh *= 1 - h * h
        np.sum(dh, axis=0, out=gradient.b1)
        np.matmul(dh.T, X, out=gradient.W1)

    def update(self):
        """Clip the joint norm of all gradients, then descend."""
        number, factor = self.number, self.clip_factor()
        decay, rate = number(1 - self.lr * self.weight_decay), number(self.lr * factor)
        shrink = number(0 if self.prox_l1 else self.lr * factor * self.lam_global)
        for w, g in zip(self.weights, self.gradients, strict=True):
            _kernels.descend(w, g, decay, rate, shrink)
            shrink = number(0)  # W1 comes first, and it alone is penalised
        if self.prox_l1:
            W1, reduced = self.net.W1, self.gradient.W1
            np.abs(W1, out=reduced)
            reduced -= number(self.lr * self.lam_global)
            np.maximum(reduced, 0, out=reduced)
            np.copysign(reduced, W1, out=W1)

    def clip_factor(self):
        """How much the gradients must shrink for their joint norm to be at most `clip`."""
        if self.clip is None:
            return 1.0
        lam, W1, gW1 = 0 if self.prox_l1 else self.lam_global, self.net.W1, self.gradient.W1
        square = sum(float(np.vdot(g, g)) for g in self.gradients)
        # The gradient lam * sign(W1) is not in there yet. Mostly it is too short to matter; only if
        # it might does its inner product with the rest need a pass over W1.
        if math.sqrt(square) + lam * math.sqrt(W1.size) + self.slack <= self.clip:
            return 1.0
        if lam:
            inner = np.empty_like(self.net.b2)
            nonzero = _kernels.signed_sums(W1, gW1, inner)
            square += 2 * lam * float(inner.sum()) + lam**2 * nonzero
        norm = math.sqrt(max(square, 0.0))
        self.clipped += norm > self.clip
        return min(1.0, self.clip / (norm + 1e-6))


@loop
def gate(Z, b2, eps, X, shift, sigma, bend, weight, M, A, R):
    """From Z = h W2': the masked samples M, and A and R such that dL/dZ = A * dL/dM + R.

    R = weight * exp(bend * (mu + shift)^2) * (1 - mu^2) is the local penalty's part. Z becomes mu.
    """
    for i in range(Z.shape[0]):
        # Three short loops over a row that stays in the cache: one long one is not vectorised.
        mu, e, x, m, a, r = Z[i], eps[i], X[i], M[i], A[i], R[i]
        for d in range(len(mu)):
            mu[d] = tanh(mu[d] + b2[d])
        for d in range(len(mu)):
            s = (mu[d] + shift) + sigma * e[d]
            m[d] = x[d] * min(max(s, ZERO), ONE)
            a[d] = x[d] * (ONE - mu[d] * mu[d]) * (ONE if ZERO < s < ONE else ZERO)
        for d in range(len(mu)):
            center = mu[d] + shift
            r[d] = weight * exp(center * center * bend) * (ONE - mu[d] * mu[d])
