"""Element-wise loops that numba compiles: what a training step does between its matrix products.

The compiler may neither reorder nor fuse operations (no `fastmath`), and sums run over the outer
index: their order is fixed while the inner loop still uses vector instructions. So a loop has the
bits of the same operations in NumPy, and the tests have each of them a second time in NumPy.

Loops take arrays of either float type, and scalars in the arrays' own type; others would turn single
precision into double inside the loops. float64 is there for exact comparisons, not for speed.

Numba's cache notices only changes of the file that a loop stands in: when a function that is inlined
elsewhere changes here, those files must change, too.
"""

import math
from itertools import zip_longest

import numba
import numpy as np
from numba.extending import overload

F, I = np.float32, np.int32
ZERO, ONE, TWO = F(0), F(1), F(2)


def loop(function):
    options = {"error_model": "numpy"}  # no checks for zero divisors inside the loops
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that the cache could be written to
        return numba.njit(**options)(function)


def inline(function):
    return numba.njit(inline="always", error_model="numpy")(function)


# --- Elementary functions --------------------------------------------------------------------------
# In float32 from a few multiplications: calls to the C library would cost more than everything else.


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


ROOT_HALF = I(0x3F3504F3)
"""The bits of sqrt(1/2)."""
ODD = tuple(F(2 / n) for n in (1, 3, 5, 7, 9))


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


def _of_type(single, double):
    """For use inside loops: the first for float32, the second for float64."""

    def function(x):
        return single(x) if x.dtype == F else double(x)

    @overload(function, inline="always")
    def chosen(x):
        return single if x == numba.float32 else double

    return function


tanh = _of_type(tanh32, lambda x: np.tanh(x))
exp = _of_type(exp32, lambda x: np.exp(x))
log = _of_type(log32, lambda x: np.log(x))


@inline
def sign(x):
    return (ONE if x > ZERO else ZERO) - (ONE if x < ZERO else ZERO)


# --- Updates ---------------------------------------------------------------------------------------


@loop
def descend(weights, gradient, decay, rate, shrink):
    """w <- decay w - rate g - shrink sign(w)."""
    for i in range(len(weights)):
        w = weights[i]
        weights[i] = decay * w - rate * gradient[i] - shrink * sign(w)


@loop
def adam(weights, gradient, mean, square, rate, scale, eps, decay, new_mean, new_square):
    """One update: the running averages of the gradient and of its square, then the weights."""
    for i in range(len(weights)):
        d = gradient[i] + decay * weights[i]
        m = mean[i] + new_mean * (d - mean[i])
        v = square[i] + new_square * (d * d - square[i])
        mean[i], square[i] = m, v
        weights[i] -= rate * m / (np.sqrt(v) * scale + eps)


@loop
def signed_sums(W, G, out):
    """out_d = sum_h sign(W_hd) G_hd. Returns how many weights are not zero."""
    out[:] = 0
    nonzero = 0
    for h in range(W.shape[0]):
        count = np.int32(0)  # as wide as a weight, so that both sums fit the same vectors
        for d in range(W.shape[1]):
            w = W[h, d]
            out[d] += sign(w) * G[h, d]
            count += np.int32(w != ZERO)
        nonzero += count
    return nonzero


# --- Batch norm ------------------------------------------------------------------------------------


@loop
def normalise(x, w, b, eps, momentum, n, running_mean, running_var, z, r, y):
    """z = (x - mean) r with r = (var + eps)^(-1/2), y = w z + b, for the n samples x.

    Moves the running statistics.
    """
    one = n / n
    mean, var = np.zeros_like(w), np.zeros_like(w)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            mean[j] += x[i, j]
    for j in range(x.shape[1]):
        mean[j] /= n
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            z[i, j] = x[i, j] - mean[j]
            var[j] += z[i, j] * z[i, j]
    for j in range(x.shape[1]):
        running_mean[j] += momentum * (mean[j] - running_mean[j])
        running_var[j] += momentum * (var[j] / (n - one) - running_var[j])
        r[j] = one / np.sqrt(var[j] / n + eps)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            z[i, j] *= r[j]
            y[i, j] = z[i, j] * w[j] + b[j]


@loop
def normalise_backward(d, z, slope, n, gw, gb):
    """Turn dy into dx; fill the gradients of the scales and the shifts."""
    gw[:] = 0
    gb[:] = 0
    for i in range(d.shape[0]):
        for j in range(d.shape[1]):
            gb[j] += d[i, j]
            gw[j] += d[i, j] * z[i, j]
    mean, mean_z = gb / n, gw / n
    for i in range(d.shape[0]):
        for j in range(d.shape[1]):
            d[i, j] = (d[i, j] - mean[j] - z[i, j] * mean_z[j]) * slope[j]
