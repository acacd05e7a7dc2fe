"""L2X's relaxed choice of k features: the draws, their softmax and the way back.

V_d = max over j = 1..k of c_jd,  c_j = softmax((l + g_j) / tau),  g_jd ~ Gumbel(0, 1)

A Gumbel number is -log E, E exponential, so that c_jd is proportional to (exp(l_d) / E_jd)^(1 / tau).
With the usual tau = 0.1 some multiplications make this tenth power; any other takes a logarithm and
an exponential.

With f = dV * V, and n_d draws sharing the maximum of feature d:

    through_j = sum over d with c_jd = V_d of f_d / n_d      dl = (f - sum_j through_j c_j) / tau

The B * k * D numbers of a batch are most of what a step of L2X costs beside its matrix products, so
they pass through memory once each way: a draw is made and softened while it is in the cache.

Everything is written twice, in NumPy and as loops for numba, with the same bits: see
_protogate_kernels.py. Sums over the features run in `LANES` strides for that reason: their order is
fixed while the loops still use vector instructions. float64 is there for exact comparisons.
"""

import math
from types import SimpleNamespace

import numpy as np

from . import _protogate_kernels as protogate
from ._protogate_kernels import LN2_HIGH, LN2_LOW, F, U, _exp, _inline, _loop, exp32

I = np.int32
LANES = 128
"""How many generators take turns; so few that their state stays in the nearest cache."""
NO_STATE = np.empty((4, 0), np.uint32)
"""Instead of generators: the noise is given."""
ZERO, ONE, TWO, HALF = F(0), F(1), F(2), F(0.5)
STEP, ALMOST_ONE = F(2.0**-31), F(1 - 2.0**-24)
ROOT_HALF = I(0x3F3504F3)
"""The bits of sqrt(1/2)."""
ODD = tuple(F(2 / n) for n in (1, 3, 5, 7, 9))
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
        self.kernels = COMPILED if dtype == np.float32 else PLAIN
        if rng is not None:
            self.state = rng.integers(2**32, size=(4, LANES), dtype=np.uint32)

    def forward(self, logits, noise=None):
        """With new noise, or with the given exponential numbers (B, k, D)."""
        state = NO_STATE
        if noise is None:
            state = self.state
        else:
            self.draws[:] = noise
        self.kernels.choose(state, logits, self.rate, self.tenth, self.draws, self.V)
        return self.V

    def backward(self, dV):
        self.kernels.harden(dV, self.V, self.draws, self.rate, self.back)
        return self.back


# --- float32 functions ----------------------------------------------------------------------------


def log32(x):
    """log in float32 for positive normal x, to 3e-7 relative; from the series of artanh."""
    bits = np.float32(x).view(np.int32)
    k = I(I(bits - ROOT_HALF) >> I(23))  # x = m 2^k, m from sqrt(1/2) to sqrt(2)
    f = np.int32(bits - I(k << I(23))).view(F) - ONE
    s = f / (TWO + f)
    t = s * s
    p = ((((ODD[4] * t + ODD[3]) * t + ODD[2]) * t + ODD[1]) * t + ODD[0]) * s
    k = F(k)
    return k * LN2_HIGH + (k * LN2_LOW + p)


_log = _inline(log32)


# --- In NumPy -------------------------------------------------------------------------------------


def words(state, n):
    """n random words from generators that take turns, each a column of the state (4, LANES).

    xoshiro128++ (Blackman and Vigna, 2021). What a last turn has too much is thrown away.
    """
    s0, s1, s2, s3 = state
    made = []
    for _ in range(0, n, LANES):
        t = s0 + s3
        made.append(((t << 7) | (t >> 25)) + s0)
        t = s1 << 9
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= t
        s3[:] = (s3 << 11) | (s3 >> 21)
    return np.concatenate(made)[:n]


def noise(state, row):
    """Fill a row with exponential numbers."""
    # p uniform on (0, 1) in steps of 2^-31. Small p make small E, the largest Gumbel numbers, so they
    # must not be lost in 1 - p: what rounding takes there is added afterwards.
    p = np.minimum((F(I(words(state, len(row)) >> 1)) + HALF) * STEP, ALMOST_ONE)
    q = ONE - p
    row[:] = (p - (ONE - q)) - log32(q)


def lane_sums(row):
    """The sum over each of `LANES` strides, then over those, one after the other."""
    lanes = np.zeros(LANES, row.dtype)
    for start in range(0, len(row), LANES):
        part = row[start : start + LANES]
        lanes[: len(part)] += part
    total = row.dtype.type(0)
    for lane in lanes:
        total += lane
    return total


def choose(state, logits, rate, tenth, draws, V):
    """Fill draws and V; without generators, from the noise in `draws`."""
    exp, log = (exp32, log32) if V.dtype == F else (np.exp, np.log)
    for i in range(len(V)):
        V[i] = 0
        gap = logits[i] - logits[i].max()  # so that no logit is too large
        odds = exp(gap) if tenth else gap * rate
        for row in draws[i]:
            if state.size:
                noise(state, row)
            if tenth:
                row[:] = odds / row
                base = np.maximum(row * (1 / row.max()), LEAST)
                square = base * base
                fourth = square * square
                row[:] = fourth * fourth * square
            else:
                row[:] = odds - rate * log(row)
                row[:] = exp(row - row.max())
            row *= 1 / lane_sums(row)
            np.maximum(V[i], row, out=V[i])


def harden(dV, V, draws, rate, back):
    """Fill `back` with the gradient for the logits.

    A feature's gradient goes to the draw that has its maximum, in equal parts if several do.
    """
    for i in range(len(V)):
        flow = dV[i] * V[i]
        mine = draws[i] == V[i]
        share = flow / mine.sum(axis=0).astype(V.dtype)
        back[i] = flow
        for j in range(len(mine)):
            back[i] -= lane_sums(np.where(mine[j], share, 0)) * draws[i, j]
        back[i] *= rate


# --- As loops -------------------------------------------------------------------------------------
# Numba's cache does not notice if exp32 changes in its own file; then this file must change, too.


@_loop
def noise_loop(state, row):
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    word = np.empty(LANES, np.uint32)
    for start in range(0, len(row), LANES):
        for d in range(LANES):
            a, b, c, e = s0[d], s1[d], s2[d], s3[d]
            t = U(a + e)
            word[d] = U(U(t << U(7)) | U(t >> U(25))) + a
            t = U(b << U(9))
            c ^= a
            e ^= b
            s1[d] = b ^ c
            s0[d] = a ^ e
            s2[d] = c ^ t
            s3[d] = U(e << U(11)) | U(e >> U(21))
        part = row[start : start + LANES]
        for d in range(len(part)):
            p = min((F(I(word[d] >> U(1))) + HALF) * STEP, ALMOST_ONE)
            q = ONE - p
            part[d] = (p - (ONE - q)) - _log(q)


@_inline
def _total(lanes):
    total = ZERO
    for lane in lanes:
        total += lane
    return total


@_loop
def choose_loop(state, logits, rate, tenth, draws, V):
    # np.maximum, because a loop with Python's max would not use vector instructions.
    B, k, D = draws.shape
    lanes, odds = np.empty(LANES, F), np.empty(D, F)
    for i in range(B):
        v = V[i]
        top = logits[i].max()
        if tenth:
            for d in range(D):
                odds[d] = _exp(logits[i, d] - top)
        else:
            for d in range(D):
                odds[d] = (logits[i, d] - top) * rate
        v[:] = ZERO
        for j in range(k):
            row = draws[i, j]
            if state.size:
                noise_loop(state, row)
            lanes[:] = F(-np.inf)
            for start in range(0, D, LANES):
                part, mine = row[start : start + LANES], odds[start : start + LANES]
                if tenth:
                    for d in range(len(part)):
                        part[d] = mine[d] / part[d]
                else:
                    for d in range(len(part)):
                        part[d] = mine[d] - rate * _log(part[d])
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
                        part[d] = _exp(part[d] - top)
                for d in range(len(part)):
                    lanes[d] += part[d]
            scale = ONE / _total(lanes)
            for d in range(D):
                row[d] *= scale
                v[d] = np.maximum(v[d], row[d])


@_loop
def harden_loop(dV, V, draws, rate, back):
    k, D = draws.shape[1], draws.shape[2]
    lanes, share, owners = np.empty(LANES, F), np.empty(D, F), np.empty(D, F)
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


PLAIN = SimpleNamespace(noise=noise, choose=choose, harden=harden)
COMPILED = SimpleNamespace(noise=noise_loop, choose=choose_loop, harden=harden_loop)
if protogate.COMPILED is protogate.PLAIN:
    COMPILED = PLAIN
