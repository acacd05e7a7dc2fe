"""The compiled loops of the models a second time, in NumPy, to compare bits with.

Each performs the same operations in the same order as the loop of that name: sums go row after row,
because NumPy's own sum would add a single column in pairs.
"""

import numpy as np
from benchmark.models import _gated_step, _kernels, _neighbours, _noise, _relaxed_subset
from benchmark.models._kernels import exp32, log32, tanh32
from benchmark.models._relaxed_subset import LANES, LEAST

F = np.float32


def instead(monkeypatch):
    """Let the models use these instead of the loops, as long as a test runs."""
    for module, names in {
        _kernels: (descend, adam, signed_sums, normalise, normalise_backward),
        _noise: (quantiles,),
        _gated_step: (gate,),
        _neighbours: (sort_gradient,),
        _relaxed_subset: (choose, harden),
    }.items():
        for function in names:
            monkeypatch.setattr(module, function.__name__, function)


def column_sums(a):
    sums = np.zeros(a.shape[1], a.dtype)
    for row in a:
        sums += row
    return sums


# --- _kernels --------------------------------------------------------------------------------------


def descend(weights, gradient, decay, rate, shrink):
    weights[:] = decay * weights - rate * gradient - shrink * np.sign(weights)


def adam(weights, gradient, mean, square, rate, scale, eps, decay, new_mean, new_square):
    d = gradient + decay * weights
    mean += new_mean * (d - mean)
    square += new_square * (d * d - square)
    weights -= rate * mean / (np.sqrt(square) * scale + eps)


def signed_sums(W, G, out):
    out[:] = column_sums(np.sign(W) * G)
    return np.count_nonzero(W)


def normalise(x, w, b, eps, momentum, n, running_mean, running_var, z, r, y):
    mean = column_sums(x) / n
    np.subtract(x, mean, out=z)
    var = column_sums(z * z)
    running_mean += momentum * (mean - running_mean)
    running_var += momentum * (var / (n - 1) - running_var)
    r[:] = 1 / np.sqrt(var / n + eps)
    z *= r
    np.multiply(z, w, out=y)
    y += b


def normalise_backward(d, z, slope, n, gw, gb):
    gb[:] = column_sums(d)
    gw[:] = column_sums(d * z)
    d -= gb / n
    d -= z * (gw / n)
    d *= slope


# --- _noise ----------------------------------------------------------------------------------------


def advance(state):
    """The next word of every generator."""
    s0, s1, s2, s3 = state
    t = s0 + s3
    words = ((t << 7) | (t >> 25)) + s0
    t = s1 << 9
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    s3[:] = (s3 << 11) | (s3 >> 21)
    return words


def quantiles(state, table, eps):
    half = (len(eps) + 1) // 2
    for i in range(half):
        words = advance(state)
        eps[i] = table[words >> 16]
        if half + i < len(eps):
            eps[half + i] = table[words & 65535]


def exponential(state, row):
    words = np.concatenate([advance(state) for _ in range(0, len(row), state.shape[1])])
    p = (F(np.int32(words[: len(row)] >> 1)) + F(0.5)) * F(2.0**-31)
    p = np.minimum(p, F(1 - 2.0**-24))
    q = 1 - p
    row[:] = (p - (1 - q)) - log32(q)


# --- _gated_step and _neighbours -------------------------------------------------------------------


def gate(Z, b2, eps, X, shift, sigma, bend, weight, M, A, R):
    mu = Z
    mu[:] = tanh32(Z + b2)
    center = mu + shift
    s = center + sigma * eps
    slope = 1 - mu * mu
    np.multiply(X, np.clip(s, 0, 1), out=M)
    np.multiply(X * slope, (s > 0) & (s < 1), out=A)
    np.multiply(weight * exp32(center * center * bend), slope, out=R)


def sort_gradient(v, same, slopes, sharpness, scale, dv):
    a, tilt, da = np.zeros((3, *v.shape), v.dtype)
    for m in range(1, len(v)):
        gap = np.abs(v[:m] - v[m])
        a[:m] += gap
        a[m] = gap.sum(axis=0)
    dv[:] = 0
    for slope in slopes:
        u = (slope * v - a) * sharpness
        P = exp32(u - u.max(axis=0))
        total, share = P.sum(axis=0), (P * same).sum(axis=0)
        du = P * (scale / total) * (share / total - same)
        da -= du
        dv += slope * du
    for m in range(1, len(v)):
        gap = (da[:m] + da[m]) * np.sign(v[:m] - v[m])
        tilt[:m] += gap
        tilt[m] -= gap.sum(axis=0)
    dv += tilt


# --- _relaxed_subset -------------------------------------------------------------------------------


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
    for i in range(len(V)):
        V[i] = 0
        gap = logits[i] - logits[i].max()  # so that no logit is too large
        odds = exp32(gap) if tenth else gap * rate
        for row in draws[i]:
            if state.size:
                exponential(state, row)
            if tenth:
                row[:] = odds / row
                base = np.maximum(row * (1 / row.max()), LEAST)
                square = base * base
                fourth = square * square
                row[:] = fourth * fourth * square
            else:
                row[:] = odds - rate * log32(row)
                row[:] = exp32(row - row.max())
            row *= 1 / lane_sums(row)
            np.maximum(V[i], row, out=V[i])


def harden(dV, V, draws, rate, back):
    for i in range(len(V)):
        flow = dV[i] * V[i]
        mine = draws[i] == V[i]
        share = flow / mine.sum(axis=0).astype(V.dtype)
        back[i] = flow
        for j in range(len(mine)):
            back[i] -= lane_sums(np.where(mine[j], share, 0)) * draws[i, j]
        back[i] *= rate
