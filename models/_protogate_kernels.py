"""The element-wise parts of ProtoGate's training step, each written twice.

`PLAIN` says in NumPy what is computed; `COMPILED` computes it in loops that numba compiles, for
float32. Both perform the same operations in the same order, so that their results have the same
bits; without numba `COMPILED` is `PLAIN`. For that the compiler may neither reorder nor fuse
operations (no `fastmath`), and sums run over the outer index: their order is fixed while the inner
loop still uses vector instructions.
"""

import math
from itertools import zip_longest
from types import SimpleNamespace

import numpy as np

try:
    import numba
except ImportError:  # the same results, only slower
    numba = None

F, U = np.float32, np.uint32
ZERO, ONE = F(0), F(1)

# --- float32 functions -------------------------------------------------------------------------

# tanh and exp from a few multiplications: on arrays for `PLAIN`, and on numbers inside the compiled
# loops, where calls to the C library would cost more than everything else.


def _lambert(depth):
    """Lambert's continued fraction x / (1 + x^2 / (3 + x^2 / (5 + ... as a quotient in x^2."""
    numerator, denominator = [2 * depth - 1], [1]
    for odd in range(2 * depth - 3, 0, -2):
        pairs = zip_longest(numerator, [0, *denominator], fillvalue=0)
        numerator, denominator = [odd * n + d for n, d in pairs], numerator
    scale = float(numerator[0])
    return tuple(F(c / scale) for c in denominator), tuple(F(c / scale) for c in numerator)


P, Q = _lambert(11)


def tanh32(x):
    """tanh in float32, to 7e-7; to 2e-7 relative for |x| < 1."""
    x = np.minimum(np.maximum(x, F(-9)), F(9))
    t = x * x
    p = (((((P[5] * t + P[4]) * t + P[3]) * t + P[2]) * t + P[1]) * t + P[0]) * x
    q = ((((Q[5] * t + Q[4]) * t + Q[3]) * t + Q[2]) * t + Q[1]) * t + Q[0]
    return np.minimum(np.maximum(p / q, F(-1)), F(1))


LOG2_E = F(1 / math.log(2))
# ln 2 in two parts; the first has so few digits that its multiples below are exact.
LN2_HIGH, LN2_LOW = F(0.693359375), F(math.log(2) - 0.693359375)
T = tuple(F(1 / math.factorial(n)) for n in range(7))


def exp32(x):
    """exp in float32 for x <= 0, to 3e-7 relative; never below 1e-26, where products get slow."""
    x = np.maximum(x, F(-60))
    k = np.floor(x * LOG2_E + F(0.5))
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    p = (((((T[6] * r + T[5]) * r + T[4]) * r + T[3]) * r + T[2]) * r + T[1]) * r + T[0]
    # 2^k, put together from its bits.
    return p * np.int32((np.int32(k) + np.int32(127)) << np.int32(23)).view(F)


# --- In NumPy -----------------------------------------------------------------------------------


def noise(state, table, eps):
    """Fill eps (B, D) with entries of `table`, drawn uniformly by 16 bits.

    Every feature has a xoshiro128++ generator (Blackman and Vigna, 2021), a column of the state
    (4, D). One of its 32-bit words serves two rows.
    """
    half = (len(eps) + 1) // 2
    s0, s1, s2, s3 = state
    for i in range(half):
        t = s0 + s3
        word = ((t << 7) | (t >> 25)) + s0
        t = s1 << 9
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= t
        s3[:] = (s3 << 11) | (s3 >> 21)
        eps[i] = table[word >> 16]
        if half + i < len(eps):
            eps[half + i] = table[word & 65535]


def gate(Z, b2, eps, X, sigma, bend, weight, M, A, R):
    """From Z = h W2': the masked samples M, and A and R such that dL/dZ = A * dL/dM + R.

    R = weight * exp(bend * mu^2) * (1 - mu^2) is the local penalty's part. Z becomes mu.
    """
    tanh, exp = (tanh32, exp32) if Z.dtype == F else (np.tanh, np.exp)
    mu = Z
    mu[:] = tanh(Z + b2)
    s = mu + sigma * eps
    slope = 1 - mu * mu
    np.multiply(X, np.clip(s, 0, 1), out=M)
    np.multiply(X * slope, (s > 0) & (s < 1), out=A)
    np.multiply(weight * exp(mu * mu * bend), slope, out=R)


def sort_gradient(v, same, slopes, sharpness, scale, dv):
    """The gradient dv of scale * L_pred for the scores v, both (N, B): one column per query.

    `slopes` are N + 1 - 2n for the ranks n = 1..K, `sharpness` is 1 / tau.
    """
    exp = exp32 if v.dtype == F else np.exp
    a, tilt, da = np.zeros((3, *v.shape), v.dtype)
    for m in range(1, len(v)):
        gap = np.abs(v[:m] - v[m])
        a[:m] += gap
        a[m] = gap.sum(axis=0)
    dv[:] = 0
    for slope in slopes:
        u = (slope * v - a) * sharpness
        P = exp(u - u.max(axis=0))
        total, share = P.sum(axis=0), (P * same).sum(axis=0)
        du = P * (scale / total) * (share / total - same)
        da -= du
        dv += slope * du
    for m in range(1, len(v)):
        gap = (da[:m] + da[m]) * np.sign(v[:m] - v[m])
        tilt[:m] += gap
        tilt[m] -= gap.sum(axis=0)
    dv += tilt


def column_sums(a):
    """Row after row, as the loops add; NumPy's own sum would add a single column in pairs."""
    sums = np.zeros(a.shape[1], a.dtype)
    for row in a:
        sums += row
    return sums


def signed_sums(W, G, out):
    """out_d = sum_h sign(W_hd) G_hd. Returns how many weights are not zero."""
    out[:] = column_sums(np.sign(W) * G)
    return np.count_nonzero(W)


def descend(W, G, decay, rate, shrink):
    """W <- decay W - rate G - shrink sign(W)."""
    W[:] = decay * W - rate * G - shrink * np.sign(W)


# --- As loops -----------------------------------------------------------------------------------
# All in this file, because numba's cache notices only changes of the file that a loop stands in.


def _loop(function):
    if numba is None:
        return function
    options = {"error_model": "numpy"}  # no checks for zero divisors inside the loops
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that the cache could be written to
        return numba.njit(**options)(function)


def _inline(function):
    return function if numba is None else numba.njit(inline="always", error_model="numpy")(function)


_tanh, _exp = _inline(tanh32), _inline(exp32)


@_inline
def _sign(x):
    return (ONE if x > ZERO else ZERO) - (ONE if x < ZERO else ZERO)


@_loop
def noise_loop(state, table, eps):
    n, half = len(eps), (len(eps) + 1) // 2
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    words = np.empty(state.shape[1], np.uint32)
    for i in range(half):
        for d in range(len(words)):
            a, b, c, e = s0[d], s1[d], s2[d], s3[d]
            t = U(a + e)
            words[d] = U(U(t << U(7)) | U(t >> U(25))) + a
            t = U(b << U(9))
            c ^= a
            e ^= b
            s1[d] = b ^ c
            s0[d] = a ^ e
            s2[d] = c ^ t
            s3[d] = U(e << U(11)) | U(e >> U(21))
        first = eps[i]
        for d in range(len(words)):
            first[d] = table[words[d] >> U(16)]
        if half + i < n:
            second = eps[half + i]
            for d in range(len(words)):
                second[d] = table[words[d] & U(65535)]


@_loop
def gate_loop(Z, b2, eps, X, sigma, bend, weight, M, A, R):
    for i in range(Z.shape[0]):
        # Three short loops over a row that stays in the cache: one long one is not vectorised.
        mu, e, x, m, a, r = Z[i], eps[i], X[i], M[i], A[i], R[i]
        for d in range(len(mu)):
            mu[d] = _tanh(mu[d] + b2[d])
        for d in range(len(mu)):
            s = mu[d] + sigma * e[d]
            m[d] = x[d] * min(max(s, ZERO), ONE)
            a[d] = x[d] * (ONE - mu[d] * mu[d]) * (ONE if ZERO < s < ONE else ZERO)
        for d in range(len(mu)):
            square = mu[d] * mu[d]
            r[d] = weight * _exp(square * bend) * (ONE - square)


@_loop
def sort_gradient_loop(v, same, slopes, sharpness, scale, dv):
    N, B = v.shape
    a, tilt, da = np.zeros(v.shape, F), np.zeros(v.shape, F), np.zeros(v.shape, F)
    P, total, share, top = np.empty(v.shape, F), np.empty(B, F), np.empty(B, F), np.empty(B, F)
    for m in range(N):
        for j in range(m):
            for i in range(B):
                gap = abs(v[j, i] - v[m, i])
                a[j, i] += gap
                a[m, i] += gap
    dv[:] = ZERO
    for slope in slopes:
        top[:], total[:], share[:] = F(-np.inf), ZERO, ZERO
        for j in range(N):
            for i in range(B):
                P[j, i] = (slope * v[j, i] - a[j, i]) * sharpness
                top[i] = max(top[i], P[j, i])
        for j in range(N):
            for i in range(B):
                P[j, i] = _exp(P[j, i] - top[i])
                total[i] += P[j, i]
                share[i] += P[j, i] * same[j, i]
        for i in range(B):
            share[i] /= total[i]
            total[i] = scale / total[i]
        for j in range(N):
            for i in range(B):
                du = P[j, i] * total[i] * (share[i] - same[j, i])
                da[j, i] -= du
                dv[j, i] += slope * du
    for m in range(N):
        for j in range(m):
            for i in range(B):
                gap = (da[j, i] + da[m, i]) * _sign(v[j, i] - v[m, i])
                tilt[j, i] += gap
                tilt[m, i] -= gap
    for j in range(N):
        for i in range(B):
            dv[j, i] += tilt[j, i]


@_loop
def signed_sums_loop(W, G, out):
    out[:] = ZERO
    nonzero = 0
    for h in range(W.shape[0]):
        count = np.int32(0)  # as wide as a weight, so that both sums fit the same vectors
        for d in range(W.shape[1]):
            w = W[h, d]
            out[d] += _sign(w) * G[h, d]
            count += np.int32(w != ZERO)
        nonzero += count
    return nonzero


@_loop
def descend_loop(W, G, decay, rate, shrink):
    for h in range(W.shape[0]):
        for d in range(W.shape[1]):
            w = W[h, d]
            W[h, d] = decay * w - rate * G[h, d] - shrink * _sign(w)


PLAIN = SimpleNamespace(
    noise=noise, gate=gate, sort_gradient=sort_gradient, signed_sums=signed_sums, descend=descend
)
COMPILED = SimpleNamespace(
    noise=noise_loop,
    gate=gate_loop,
    sort_gradient=sort_gradient_loop,
    signed_sums=signed_sums_loop,
    descend=descend_loop,
)
if numba is None or numba.config.DISABLE_JIT:
    COMPILED = PLAIN
