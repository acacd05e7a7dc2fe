"""L2X's relaxed choice of k features: the draws, their softmax and the way back.

V_d = max over j = 1..k of c_jd,  c_j = softmax((l + g_j) / tau),  g_jd ~ Gumbel(0, 1)

A Gumbel number is -log E, E exponential, so that c_jd is proportional to (exp(l_d) / E_jd)^(1 / tau).
With the usual tau = 0.1 some multiplications make this tenth power; any other takes a logarithm and
an exponential.

With f = dV * V, and n_d draws sharing the maximum of feature d:

    through_j = sum over d with c_jd = V_d of f_d / n_d      dl = (f - sum_j through_j c_j) / tau

The B * k * D numbers of a batch are most of what a step of L2X costs beside its matrix products, so
they pass through memory once each way: a draw is made and softened while it is in the cache.

Sums over the features run in `LANES` strides: their order is fixed while the loops still use vector
instructions. float64 is there for exact comparisons.
"""

import math

import numpy as np

from ._kernels import ONE, ZERO, F, exp, inline, log, loop
from ._noise import exponential

LANES = 128
"""How many generators take turns; so few that their state stays in the nearest cache."""
NO_STATE = np.empty((4, 0), np.uint32)
"""Instead of generators: the noise is given."""
LEAST = F(math.exp(-6))
"""Of the tenth power's base; like that of exp32, its result is never so small that products get slow."""


class RelaxedSubset:
    """V from logits (B, D), and the gradient for the logits from that for V."""

    def __init__(self, n_samples, k, n_features, tau, rng=None, dtype=np.float32):
        self.draws = np.empty((n_samples, k, n_features), dtype)
        self.V = np.empty((n_samples, n_features), dtype)
        self.back = np.empty_like(self.V)
        self.rate = self.V.dtype.type(1 / tau)
        self.tenth = math.isclose(tau, 0.1)
        if rng is not None:
            self.state = rng.integers(2**32, size=(4, LANES), dtype=np.uint32)

    def forward(self, logits, noise=None):
        """With new noise, or with the given exponential numbers (B, k, D)."""
        state = NO_STATE
        if noise is None:
            state = self.state
        else:
            self.draws[:] = noise
        choose(state, logits, self.rate, self.tenth, self.draws, self.V)
        return self.V

    def backward(self, dV):
        harden(dV, self.V, self.draws, self.rate, self.back)
        return self.back


@inline
def _total(lanes):
    total = ZERO
    for lane in lanes:
        total += lane
    return total


@loop
def choose(state, logits, rate, tenth, draws, V):
    """Fill draws and V; without generators, from the noise in `draws`."""
    # np.maximum, because a loop with Python's max would not use vector instructions.
    B, k, D = draws.shape
    lanes, odds = np.empty(LANES, V.dtype), np.empty(D, V.dtype)
    for i in range(B):
        v = V[i]
        top = logits[i].max()
        if tenth:
            for d in range(D):
                odds[d] = exp(logits[i, d] - top)
        else:
            for d in range(D):
                odds[d] = (logits[i, d] - top) * rate
        v[:] = ZERO
        for j in range(k):
            row = draws[i, j]
            if state.size:
                exponential(state, row)
            lanes[:] = -np.inf
            for start in range(0, D, LANES):
                part, mine = row[start : start + LANES], odds[start : start + LANES]
                if tenth:
                    for d in range(len(part)):
                        part[d] = mine[d] / part[d]
                else:
                    for d in range(len(part)):
                        part[d] = mine[d] - rate * log(part[d])
                for d in range(len(part)):
                    lanes[d] = np.maximum(lanes[d], part[d])
            top = lanes.max()
            inverse = ONE / top
            lanes[:] = ZERO
            for start in range(0, D, LANES):
                part = row[start : start + LANES]
                if tenth:
                    for d in range(len(part)):
                        base = np.maximum(part[d] * inverse, LEAST)
                        square = base * base
                        fourth = square * square
                        part[d] = fourth * fourth * square
                else:
                    for d in range(len(part)):
                        part[d] = exp(part[d] - top)
                for d in range(len(part)):
                    lanes[d] += part[d]
            scale = ONE / _total(lanes)
            for d in range(D):
                row[d] *= scale
                v[d] = np.maximum(v[d], row[d])


@loop
def harden(dV, V, draws, rate, back):
    """Fill `back` with the gradient for the logits.

    A feature's gradient goes to the draw that has its maximum, in equal parts if several do.
    """
    k, D = draws.shape[1], draws.shape[2]
    lanes = np.empty(LANES, V.dtype)
    share, owners = np.empty(D, V.dtype), np.empty(D, V.dtype)
    for i in range(len(V)):
        v, b = V[i], back[i]
        owners[:] = ZERO
        for j in range(k):
            row = draws[i, j]
            for d in range(D):
                owners[d] += ONE if row[d] == v[d] else ZERO
        for d in range(D):
            b[d] = dV[i, d] * v[d]
            share[d] = b[d] / owners[d]
        for j in range(k):
            row = draws[i, j]
            lanes[:] = ZERO
            for start in range(0, D, LANES):
                part, most = row[start : start + LANES], v[start : start + LANES]
                mine = share[start : start + LANES]
                for d in range(len(part)):
                    lanes[d] += mine[d] if part[d] == most[d] else ZERO
            through = _total(lanes)
            for d in range(D):
                b[d] -= through * row[d]
        for d in range(D):
            b[d] *= rate
