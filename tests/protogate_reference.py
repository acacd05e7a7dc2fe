"""ProtoGate's equations a second time, slowly, to compare the real implementation with.

Everything is float64 and built by torch, so that autograd finds the gradients that the model has
written out by hand. Nothing is saved: all differences between queries and prototypes are formed,
and the relaxed sorting makes whole permutation matrices although the loss reads K rows of them.
Nothing is imported from the model: a mistake there cannot hide here. Settings are read by name
from any object that has them; networks are sequences W1 (H, D), b1 (H,), W2 (D, H), b2 (D,).
"""

from collections import Counter
from typing import NamedTuple

import numpy as np
import torch


class Losses(NamedTuple):
    total: torch.Tensor
    prediction: torch.Tensor
    global_: torch.Tensor
    local: torch.Tensor


def tensors(arrays):
    return [torch.tensor(np.asarray(a), dtype=torch.float64) for a in arrays]


def gate_means(net, X):
    """mu: two layers, each followed by tanh."""
    W1, b1, W2, b2 = net
    hidden = torch.tanh(X @ W1.T + b1)
    return torch.tanh(hidden @ W2.T + b2)


def gates(mu, eps=None, sigma=None):
    """The soft masks. Only training has noise."""
    noisy = mu if eps is None else mu + sigma * eps
    return noisy.clamp(min=0, max=1)


def nearness(queries, prototypes):
    """Negative squared Euclidean distances, from every difference of every feature."""
    differences = queries[:, None, :] - prototypes[None, :, :]
    return -(differences**2).sum(dim=2)


def relaxed_permutations(v, tau):
    """Per query the N x N matrix whose row n says how likely each prototype is the n-th nearest."""
    N = v.shape[1]
    A = (v[:, :, None] - v[:, None, :]).abs()
    rank = torch.arange(1, N + 1, dtype=torch.float64)
    slope = N + 1 - 2 * rank
    logits = slope[None, :, None] * v[:, None, :] - A.sum(dim=2)[:, None, :]
    return torch.softmax(logits / tau, dim=2)


def without_diagonal(matrix):
    """Row i without its entry i: a sample that is not its own neighbour."""
    return torch.stack([torch.cat([row[:i], row[i + 1 :]]) for i, row in enumerate(matrix)])


def neighbours(net, X, y, s, eps=None, base=None):
    """mu of X, the scores of its prototypes, and which of them share the query's class."""
    y = torch.as_tensor(y)
    mu = gate_means(net, X)
    masked = X * gates(mu, eps, s.sigma)
    if base is not None:
        base_X, base_y = base
        prototypes = base_X * gates(gate_means(net, base_X))
        return mu, nearness(masked, prototypes), y[:, None] == torch.as_tensor(base_y)[None, :]
    v, same = nearness(masked, masked), y[:, None] == y[None, :]
    if s.exclude_self:
        v, same = without_diagonal(v), without_diagonal(same)
    return mu, v, same


def loss_terms(net, X, y, s, eps=None, base=None):
    """Of a noisy batch among its own samples, or of queries against the samples of a base."""
    mu, v, same = neighbours(net, X, y, s, eps, base)
    first = relaxed_permutations(v, s.tau)[:, : s.k, :]
    # A batch smaller than K has fewer ranks than K, and as many can be wrong.
    right = (first * same[:, None, :]).sum(dim=(1, 2))
    prediction = (first.shape[1] - right).mean()
    global_ = s.lam_global * net[0].abs().sum()
    open_ = 0.5 * (1 + torch.erf(mu / s.sigma / 2**0.5))
    local = s.lam_local * open_.sum(dim=1).mean()
    return Losses(prediction + global_ + local, prediction, global_, local)


# --- From arrays to arrays ----------------------------------------------------------------------


def losses(net, X, y, s, *, eps=None, base=None):
    """The total and its three terms as numbers."""
    X = tensors([X])[0]
    eps = None if eps is None else tensors([eps])[0]
    base = None if base is None else (tensors([base[0]])[0], base[1])
    return Losses(*(float(term) for term in loss_terms(tensors(net), X, y, s, eps, base)))


def masks(net, X, s, eps=None):
    """mu and the gates, with or without noise."""
    *weights, X = tensors([*net, X])
    mu = gate_means(weights, X)
    noise = None if eps is None else tensors([eps])[0]
    return mu.numpy(), gates(mu, noise, s.sigma).numpy()


def ranks(net, X, y, s, eps):
    """The K rows of the relaxed sorting in training, and the K that are nearest for certain."""
    *weights, X, eps = tensors([*net, X, eps])
    _, v, _ = neighbours(weights, X, y, s, eps)
    nearest = [sorted(range(len(row)), key=lambda j, row=row: -row[j])[: s.k] for row in v.tolist()]
    return relaxed_permutations(v, s.tau)[:, : s.k, :].numpy(), np.array(nearest)


def gradients(net, X, y, s, eps):
    """Of the total training loss, before clipping."""
    parameters = [w.requires_grad_() for w in tensors(net)]
    X, eps = tensors([X, eps])
    loss_terms(parameters, X, y, s, eps).total.backward()
    return [p.grad.numpy() for p in parameters]


def sgd_step(net, X, y, s, eps):
    """The weights after torch's own clipping and torch's own SGD."""
    parameters = [torch.nn.Parameter(w) for w in tensors(net)]
    X, eps = tensors([X, eps])
    optimiser = torch.optim.SGD(parameters, lr=s.lr, weight_decay=s.weight_decay)
    loss_terms(parameters, X, y, s, eps).total.backward()
    if s.clip is not None:
        torch.nn.utils.clip_grad_norm_(parameters, s.clip)
    optimiser.step()
    return [p.detach().numpy() for p in parameters]


def predictions(net, queries, X, y, k):
    """Per query the class that most of its K nearest samples have, and which samples they are."""
    *weights, queries, X = tensors([*net, queries, X])
    masked = [part * gates(gate_means(weights, part)) for part in (queries, X)]
    classes, nearest = [], []
    for row in nearness(*masked).tolist():
        first = sorted(range(len(row)), key=lambda j, row=row: -row[j])[:k]
        votes = Counter(int(y[j]) for j in first)
        # Equal votes go to the smaller class.
        classes.append(min(votes, key=lambda c, votes=votes: (-votes[c], c)))
        nearest.append(first)
    return np.array(classes), np.array(nearest)
