"""ProtoGate's training step: forward pass, hand-written backward pass and update.

Symbols as in protogate.py, for a batch of B samples with D features and H hidden units. With the
prototypes being the batch itself (N = B, or B - 1 where a sample is not its own neighbour):

    h = tanh(X W1' + b1)      mu = tanh(h W2' + b2)      s = clip(mu + sigma eps, 0, 1)
    M = X * s                 v_ij = -|m_i - m_j|^2      a_ij = sum_l |v_ij - v_il|
    P_i[n, j] = softmax over j of ((N + 1 - 2n) v_ij - a_ij) / tau      for n = 1..K
    L_pred = K - mean_i sum_n sum_j P_i[n, j] [y_j = y_i]

The way back, d standing for the gradient of the loss and u for the softmax's argument:

    du_i[n, j] = -P_i[n, j] ([y_j = y_i] - sum_l P_i[n, l] [y_l = y_i]) / (B tau)
    dv_ij = sum_n (N + 1 - 2n) du_i[n, j] + sum_l (da_ij + da_il) sign(v_ij - v_il)
            with da_ij = -sum_n du_i[n, j]
    dM    = 2 (S - diag(S 1)) M      with S = dv + dv'
    dmu   = dM * X * [0 < s < 1] + lam_local / (B sigma) phi(mu / sigma)
    dZ    = dmu * (1 - mu^2)      dW2 = dZ' h      dh = dZ W2      ...

Nothing is larger than a batch or a layer. The matrix products are NumPy's, whose BLAS was the
faster of the two at hand on one thread; between them stand the kernels of `_protogate_kernels.py`.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from ._protogate_kernels import COMPILED, PLAIN


class Net(NamedTuple):
    """The gating network's weights, or their gradients."""

    W1: np.ndarray
    """(H, D)"""
    b1: np.ndarray
    W2: np.ndarray
    """(D, H)"""
    b2: np.ndarray


@dataclass(frozen=True)
class Settings:
    """What the loss and its minimisation depend on; class ProtoGate explains each."""

    k: int = 3
    lam_global: float = 2e-4
    lam_local: float = 1e-3
    lr: float = 0.1
    sigma: float = 0.5
    tau: float = 16.0
    weight_decay: float = 1e-4
    clip: float | None = 2.5
    exclude_self: bool = False
    prox_l1: bool = False
    sort: str = "hybrid"


# The normal distribution's quantiles at the middle of 65,536 equal steps, to be drawn uniformly.
# The last is 4.32. With |mu| < 1 and sigma = 0.5 a gate is fully open from 4 on, so nothing is cut.
QUANTILES = ndtri((np.arange(65536) + 0.5) / 65536).astype(np.float32)


class Step:
    """One SGD step on one mini-batch, again and again, changing the network in place.

    Call it with the batch's rows; or use `forward`, `backward` and `update` one by one.
    """

    def __init__(self, net, X, y, settings, rng, *, kernels=None):
        H, D = net.W1.shape
        self.settings, self.X, self.y = settings, X, y
        self.dtype = X.dtype.type
        # float64 is there for exact comparisons, not for speed.
        self.kernels = kernels or (COMPILED if self.dtype is np.float32 else PLAIN)
        # One orientation for both layers: the transposed second layer multiplies faster.
        self.W2T = np.ascontiguousarray(net.W2.T)
        self.net = Net(net.W1, net.b1, self.W2T.T, net.b2)
        self.gW1, self.gW2T = np.empty((H, D), X.dtype), np.empty((H, D), X.dtype)
        self.gradient = Net(self.gW1, np.empty_like(net.b1), self.gW2T.T, np.empty_like(net.b2))
        self.generators = rng.integers(0, 2**32, size=(4, D), dtype=np.uint32)
        self.steps = self.clipped = 0
        self.saved = None
        self._allocate(0)

    def _allocate(self, B):
        """Buffers for batches of B samples; all steps of a training share them."""
        H, D = self.gW1.shape
        self.Xb, self.eps, self.Z, self.M, self.A, self.R = np.empty((6, B, D), self.dtype)
        self.h, self.dh = np.empty((2, B, H), self.dtype)

    def __call__(self, rows):
        if len(rows) != len(self.Z):
            self._allocate(len(rows))
        X, y = self.X, self.y
        # The loss does not depend on the order of the samples: a full batch needs no copy.
        if len(rows) < len(X):
            X, y = np.take(X, rows, axis=0, out=self.Xb, mode="clip"), y[rows]
        self.kernels.noise(self.generators, QUANTILES, self.eps)
        self.forward(X, self.eps)
        self.backward(X, y)
        self.update()
        self.steps += 1

    def forward(self, X, eps):
        """Fill M with the masked samples, A and R with what `backward` needs of the gates."""
        if len(X) != len(self.Z):
            self._allocate(len(X))
        W1, b1, _, b2 = self.net
        s = self.settings
        np.matmul(X, W1.T, out=self.h)
        self.h += b1
        np.tanh(self.h, out=self.h)
        np.matmul(self.h, self.W2T, out=self.Z)
        weight = s.lam_local / (len(X) * s.sigma * math.sqrt(2 * math.pi))
        sigma, bend, weight = map(self.dtype, (s.sigma, -0.5 / s.sigma**2, weight))
        self.kernels.gate(self.Z, b2, eps, X, sigma, bend, weight, self.M, self.A, self.R)

    def backward(self, X, y):
        """Fill `gradient` with that of L_pred + R_local; R_global follows in `update`."""
        h, dh, dZ = self.h, self.dh, self.Z
        if self.settings.sort == "quick":
            dZ[:] = self.R  # hard ranks are piecewise constant: no gradient from L_pred
        else:
            np.matmul(self.prediction_gradient(y), self.M, out=dZ)
            dZ *= self.A
            dZ += self.R
        np.sum(dZ, axis=0, out=self.gradient.b2)
        np.matmul(h.T, dZ, out=self.gW2T)
        np.matmul(dZ, self.W2T.T, out=dh)
        dh *= 1 - h * h
        np.sum(dh, axis=0, out=self.gradient.b1)
        np.matmul(dh.T, X, out=self.gW1)

    def prediction_gradient(self, y):
        """The matrix C such that the gradient of L_pred for the masked samples is C M."""
        B, tau = len(self.M), self.settings.tau
        v = np.matmul(self.M, self.M.T)
        norms = v.diagonal()
        v = 2 * v - (norms + norms[:, None])
        np.minimum(v, 0, out=v)
        np.fill_diagonal(v, 0)
        same = (y == y[:, None]).astype(v.dtype)
        # One column per query; without itself where a sample is not its own neighbour.
        others = ~np.eye(B, dtype=bool) if self.settings.exclude_self else None
        if others is not None:
            v, same = (np.ascontiguousarray(a[others].reshape(B, B - 1).T) for a in (v, same))
        N = len(v)
        ranks = np.arange(1, min(self.settings.k, N) + 1)
        slopes = (N + 1 - 2 * ranks).astype(v.dtype)
        sharpness, scale = self.dtype(1 / tau), self.dtype(1 / (tau * B))
        dv = np.empty_like(v)
        self.kernels.sort_gradient(v, same, slopes, sharpness, scale, dv)
        if others is not None:
            full = np.zeros((B, B), v.dtype)
            full[others] = dv.T.ravel()
            dv = full
        S = dv + dv.T
        S *= 2
        S.flat[:: B + 1] -= S.sum(axis=1)
        return S

    def update(self):
        """Clip the joint norm of all gradients, then descend."""
        s, (W1, b1, _, b2), (_, gb1, _, gb2) = self.settings, self.net, self.gradient
        factor = self.clip_factor()
        decay, rate = self.dtype(1 - s.lr * s.weight_decay), self.dtype(s.lr * factor)
        shrink = self.dtype(0 if s.prox_l1 else s.lr * factor * s.lam_global)
        self.kernels.descend(W1, self.gW1, decay, rate, shrink)
        self.kernels.descend(self.W2T, self.gW2T, decay, rate, self.dtype(0))
        for b, g in ((b1, gb1), (b2, gb2)):
            b *= decay
            b -= rate * g
        if s.prox_l1:
            reduced = np.abs(W1, out=self.gW1)
            reduced -= self.dtype(s.lr * s.lam_global)
            np.maximum(reduced, 0, out=reduced)
            np.copysign(reduced, W1, out=W1)

    def clip_factor(self):
        """How much the gradients must shrink for their joint norm to be at most `clip`."""
        clip, lam = self.settings.clip, 0 if self.settings.prox_l1 else self.settings.lam_global
        if clip is None:
            return 1.0
        gradients = self.gW1, self.gradient.b1, self.gW2T, self.gradient.b2
        square = sum(float(np.vdot(g, g)) for g in gradients)
        # The gradient of R_global, lam * sign(W1), is not in there yet. Mostly it is too short to
        # matter; only if it might does its inner product with the rest need a pass over W1.
        if math.sqrt(square) + lam * math.sqrt(self.gW1.size) <= clip:
            return 1.0
        inner = np.empty_like(self.net.b2)
        nonzero = self.kernels.signed_sums(self.net.W1, self.gW1, inner)
        square += 2 * lam * float(inner.sum()) + lam**2 * nonzero
        norm = math.sqrt(max(square, 0.0))
        self.clipped += norm > clip
        return min(1.0, clip / (norm + 1e-6))

    def save(self):
        """A copy of the weights, valid until the next one is made."""
        if self.saved is None:
            self.saved = [np.empty_like(a) for a in self._weights()]
        for copy, a in zip(self.saved, self._weights(), strict=True):
            copy[:] = a
        return self.saved

    def load(self, weights):
        """Put back what `save` returned."""
        for a, saved in zip(self._weights(), weights, strict=True):
            a[:] = saved

    def _weights(self):
        return self.net.W1, self.net.b1, self.W2T, self.net.b2
