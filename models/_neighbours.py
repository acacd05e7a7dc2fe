"""How ProtoGate's prediction loss moves the masked samples: the way back through relaxed sorting.

Symbols as in protogate.py, for the masked samples M of a batch that are each other's prototypes
(N = B, or B - 1 where a sample is not its own neighbour):

    v_ij = -|m_i - m_j|^2      a_ij = sum_l |v_ij - v_il|
    P_i[n, j] = softmax over j of u_i[n, j] = ((N + 1 - 2n) v_ij - a_ij) / tau      for n = 1..K
    L_pred = K - mean_i sum_n sum_j P_i[n, j] [y_j = y_i]

    du_i[n, j] = -P_i[n, j] ([y_j = y_i] - sum_l P_i[n, l] [y_l = y_i]) / (B tau)
    dv_ij = sum_n (N + 1 - 2n) du_i[n, j] + sum_l (da_ij + da_il) sign(v_ij - v_il)
            with da_ij = -sum_n du_i[n, j]
    dM    = 2 (S - diag(S 1)) M      with S = dv + dv'
"""

import numpy as np

from ._kernels import ZERO, exp, loop, sign


def prediction_gradient(M, y, k, tau, exclude_self):
    """The gradient of L_pred for the masked samples M with classes y."""
    B = len(M)
    v = np.matmul(M, M.T)
    norms = v.diagonal()
    v = 2 * v - (norms + norms[:, None])
    np.minimum(v, 0, out=v)
    np.fill_diagonal(v, 0)
    same = (y == y[:, None]).astype(v.dtype)
    # One column per query; without itself where a sample is not its own neighbour.
    others = ~np.eye(B, dtype=bool) if exclude_self else None
    if others is not None:
        v, same = (np.ascontiguousarray(a[others].reshape(B, B - 1).T) for a in (v, same))
    N = len(v)
    ranks = np.arange(1, min(k, N) + 1)
    slopes = (N + 1 - 2 * ranks).astype(v.dtype)
    sharpness, scale = v.dtype.type(1 / tau), v.dtype.type(1 / (tau * B))
    dv = np.empty_like(v)
    sort_gradient(v, same, slopes, sharpness, scale, dv)
    if others is not None:
        full = np.zeros((B, B), v.dtype)
        full[others] = dv.T.ravel()
        dv = full
    S = dv + dv.T
    S *= 2
    S.flat[:: B + 1] -= S.sum(axis=1)
    return np.matmul(S, M)


@loop
def sort_gradient(v, same, slopes, sharpness, scale, dv):
    """The gradient dv of scale * L_pred for the scores v, both (N, B): one column per query.

    `slopes` are N + 1 - 2n for the ranks n = 1..K, `sharpness` is 1 / tau.
    """
    N, B = v.shape
    a, tilt, da = np.zeros_like(v), np.zeros_like(v), np.zeros_like(v)
    P = np.empty_like(v)
    total, share, top = np.empty(B, v.dtype), np.empty(B, v.dtype), np.empty(B, v.dtype)
    for m in range(N):
        for j in range(m):
            for i in range(B):
                gap = abs(v[j, i] - v[m, i])
                a[j, i] += gap
                a[m, i] += gap
    dv[:] = ZERO
    for slope in slopes:
        top[:], total[:], share[:] = -np.inf, ZERO, ZERO
        for j in range(N):
            for i in range(B):
                P[j, i] = (slope * v[j, i] - a[j, i]) * sharpness
                top[i] = max(top[i], P[j, i])
        for j in range(N):
            for i in range(B):
                P[j, i] = exp(P[j, i] - top[i])
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
                gap = (da[j, i] + da[m, i]) * sign(v[j, i] - v[m, i])
                tilt[j, i] += gap
                tilt[m, i] -= gap
    for j in range(N):
        for i in range(B):
            dv[j, i] += tilt[j, i]
