"""Random numbers of the training steps: normal ones for gates, exponential ones for L2X.

Both come from generators xoshiro128++ (Blackman and Vigna, 2021) that advance side by side, each a
column of a state (4, n) of 32-bit words, because one after the other they could not use vector
instructions.
"""

import numpy as np
from scipy.special import ndtri

from ._kernels import ONE, F, I, inline, log32, loop

U = np.uint32
HALF, STEP, ALMOST_ONE = F(0.5), F(2.0**-31), F(1 - 2.0**-24)
_log = inline(log32)

# The normal distribution's quantiles at the middle of 65,536 equal steps, to be drawn uniformly.
# The last is 4.32. With |mu| < 1 and sigma = 0.5 a gate is fully open from 4 on, so nothing is cut.
QUANTILES = ndtri((np.arange(65536) + 0.5) / 65536).astype(np.float32)


@inline
def _advance(state, words):
    """The next word of every generator."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
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


@loop
def quantiles(state, table, eps):
    """Fill eps (B, D) with entries of `table`, drawn uniformly by 16 bits.

    Every feature has a generator. One of its words serves two rows.
    """
    n, half = len(eps), (len(eps) + 1) // 2
    words = np.empty(state.shape[1], np.uint32)
    for i in range(half):
        _advance(state, words)
        first = eps[i]
        for d in range(len(words)):
            first[d] = table[words[d] >> U(16)]
        if half + i < n:
            second = eps[half + i]
            for d in range(len(words)):
                second[d] = table[words[d] & U(65535)]


@loop
def exponential(state, row):
    """Fill a row of any length; the generators take turns, and what the last turn leaves is lost."""
    lanes = state.shape[1]
    words = np.empty(lanes, np.uint32)
    for start in range(0, len(row), lanes):
        _advance(state, words)
        part = row[start : start + lanes]
        for d in range(len(part)):
            # p uniform on (0, 1) in steps of 2^-31. Small p make small E, the largest Gumbel numbers,
            # so they must not be lost in 1 - p: what rounding takes there is added afterwards.
            p = min((F(I(words[d] >> U(1))) + HALF) * STEP, ALMOST_ONE)
            q = ONE - p
            part[d] = (p - (ONE - q)) - _log(q)
