"""ProtoGate: prototype-based neural networks with global-to-local feature selection.

Reference: Jiang, Margeloiu, Simidjievski and Jamnik, ICML 2024. Selects features locally.

A gating network looks at a sample and opens or closes a gate for each of its features. The class is
then voted by the nearest training samples, compared in what their gates let through. Only the
gating network is trained: the vote has nothing to learn, so it cannot adapt to bad features.

    mu = tanh(W2 tanh(W1 x + b1) + b2)               gating network
    s = clip(mu + eps, 0, 1), eps ~ N(0, sigma^2)    local gates; eps = 0 after training
    L_pred = K - sum_n E_P[n, :] [y_j = y]           differentiable nearest neighbours
    R_global = lam_global |W1|_1                     soft global selection
    R_local = lam_local sum_d Phi(mu_d / sigma)      expected number of open gates

The equations are functions below, for arrays of either float type, and can be used on their own:

    gating_network, local_gates, squared_distances, neural_sort    the forward pass
    losses(net, X, y, settings, eps=..., base=...)                 Losses(total, prediction, ...)
    gradients(net, X, y, settings, eps)                            of the total loss, as a Net
    sgd_step(net, X, y, settings, eps)                             the Net after one clipped step

`Net(W1, b1, W2, b2)` has shapes (H, D), (H,), (D, H), (D,); `eps` is standard normal, (n, D), and
is scaled by sigma; `settings` is a `ProtoGate`, fitted or not, of which only the arguments are read.
Training runs the same mathematics in _gated_step.py, where the gates' backward pass is written out,
and _neighbours.py, where that of L_pred is.
"""

import math
import numbers
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri
from sklearn.utils import check_random_state

from ._classifier import Classifier
from ._gated_step import GatedStep, Net
from ._neighbours import prediction_gradient
from ._train import rounded, train

# --- The gating network: global-to-local feature selection (section 3.2 of the paper) ---------


def initial_net(n_features, hidden, rng, dtype=np.float32):
    """Weights from N(0, 0.015^2) cut off at two standard deviations, biases zero."""

    def truncated_normal(*shape):
        # Inverse transform sampling between the quantiles of -2 and 2.
        u = rng.uniform(ndtr(-2), ndtr(2), shape)
        ndtri(u, out=u)
        u *= 0.015
        return u.astype(dtype)

    W1, W2 = truncated_normal(hidden, n_features), truncated_normal(n_features, hidden)
    return Net(W1, np.zeros(hidden, dtype), W2, np.zeros(n_features, dtype))


def gating_network(net, X):
    """mu, the gates' means before clipping, in (-1, 1). Shape (n_samples, n_features)."""
    h = np.tanh(X @ net.W1.T + net.b1)
    return np.tanh(h @ net.W2.T + net.b2)


def local_gates(mu, eps=None, sigma=None):
    """s, the soft mask in [0, 1]: noisy in training, deterministic without eps."""
    # NOTE[DIFF] The paper gives the noise the covariance sigma I; the released code and we treat
    # sigma as its standard deviation. Unlike in STG and LSPIN, mu is not shifted by 0.5.
    return np.clip(mu if eps is None else mu + sigma * eps, 0, 1)


def global_penalty(net, lam_global):
    """R_global: the sum over all weights of the first layer, added once per step."""
    return lam_global * float(np.abs(net.W1).sum(dtype=np.float64))


def local_penalty(mu, lam_local, sigma):
    """R_local: how many gates are open under the noise, in expectation; the samples' mean."""
    # NOTE[DIFF] The paper's integral has no 1 / sqrt(2 pi), which would scale lam_local by 2.5; the
    # released code and we use the distribution function.
    return lam_local * float(ndtr(mu / sigma).sum(axis=1, dtype=np.float64).mean())


def globally_selected(net, zero_threshold):
    """s_global: the features with a weight above the threshold in the first layer."""
    # NOTE[DIFF] The paper says nonzero weights. Gradient steps on |w| make no weight exactly zero,
    # so some threshold must have been used; it is not documented.
    return np.abs(net.W1).max(axis=0) > zero_threshold


# --- Prototype-based prediction (section 3.3) --------------------------------------------------


def squared_distances(A, B):
    """|a_i - b_j|^2 in float64, from inner products instead of all the differences."""
    A, B = A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
    norms = np.einsum("id,id->i", A, A)[:, None] + np.einsum("jd,jd->j", B, B)
    return np.maximum(norms - 2 * (A @ B.T), 0)


def neural_sort(v, k, tau):
    """The first k rows of the relaxed permutation matrix that sorts each row of v downwards.

    P[i, n, j] is the probability that prototype j is the n-th nearest to query i, from
    softmax(((N + 1 - 2n) v_i - A_i 1) / tau) with (A_i)_jl = |v_ij - v_il|. Shape (queries, k, N).
    """
    N = v.shape[1]
    # The row sums of A without A: in ascending order, v_r exceeds r of the others and is below the
    # rest, so that prefix sums are enough.
    order = np.argsort(v, axis=1, kind="stable")
    ascending = np.take_along_axis(v, order, axis=1)
    prefix = np.cumsum(ascending, axis=1)
    sums = np.empty_like(v)
    ahead = ascending * (2 * np.arange(1, N + 1) - N) + prefix[:, -1:] - 2 * prefix
    np.put_along_axis(sums, order, ahead, axis=1)
    slopes = N + 1 - 2 * np.arange(1, min(k, N) + 1)
    u = (slopes[:, None] * v[:, None, :] - sums[:, None, :]) / tau
    P = np.exp(u - u.max(axis=2, keepdims=True))
    return P / P.sum(axis=2, keepdims=True)


def hard_sort(v, k):
    """The same rows without relaxation: one-hot; equal scores in the order of the prototypes."""
    nearest = np.argsort(-v, axis=1, kind="stable")[:, :k]
    return (nearest[:, :, None] == np.arange(v.shape[1])).astype(v.dtype)


def prediction_loss(v, same, settings):
    """L_pred: K minus the expected number of same-class prototypes among the K nearest."""
    if settings.sort == "quick":
        P = hard_sort(v, settings.k)
    else:
        P = neural_sort(v, settings.k, settings.tau)
    return float(P.shape[1] - (P * same[:, None, :]).sum(axis=(1, 2)).mean())


# --- The loss (section 3.4) ---------------------------------------------------------------------


class Losses(NamedTuple):
    """L_total and its parts."""

    total: float
    prediction: float
    global_: float
    local: float


def losses(net, X, y, settings, *, eps=None, base=None):
    """The loss of X, y: among themselves with noise eps as in training, or against a base.

    The base, a pair (X, y), holds the prototypes; it has no noise.
    """
    mu = gating_network(net, X)
    M = X * local_gates(mu, eps, settings.sigma)
    if base is None:
        v, same = -squared_distances(M, M), y[:, None] == y
        np.fill_diagonal(v, 0)
        # NOTE[DIFF] The paper says m != i: a sample is not its own neighbour. In the released code
        # it is, and always the first; `exclude_self` follows the text.
        if settings.exclude_self:
            others = ~np.eye(len(v), dtype=bool)
            v, same = (a[others].reshape(len(v), -1) for a in (v, same))
    else:
        prototypes = base[0] * local_gates(gating_network(net, base[0]))
        v, same = -squared_distances(M, prototypes), y[:, None] == base[1]
    return _sum(net, v, same, mu, settings)


def _sum(net, v, same, mu, settings):
    prediction = prediction_loss(v, same, settings)
    global_ = global_penalty(net, settings.lam_global)
    local = local_penalty(mu, settings.lam_local, settings.sigma)
    return Losses(prediction + global_ + local, prediction, global_, local)


# --- Its minimisation ---------------------------------------------------------------------------


def training_step(net, X, y, settings, rng):
    """A function of rows of X that changes the network by one step of SGD; it draws its own noise."""

    def gradient(M, rows):
        if settings.sort == "quick":
            return None  # hard ranks are piecewise constant
        return prediction_gradient(M, y[rows], settings.k, settings.tau, settings.exclude_self)

    return GatedStep(
        # One orientation for both layers: the transposed second layer multiplies faster.
        net._replace(W2=np.asfortranarray(net.W2)),
        X,
        gradient,
        rng.integers(0, 2**32, size=(4, X.shape[1]), dtype=np.uint32),
        lam_local=settings.lam_local,
        lam_global=settings.lam_global,
        sigma=settings.sigma,
        lr=settings.lr,
        weight_decay=settings.weight_decay,
        clip=settings.clip,
        prox_l1=settings.prox_l1,
        slack=0.0,  # torch shrinks from clip - 1e-6 on; the records were made without that margin
    )


def gradients(net, X, y, settings, eps):
    """Gradients of the total training loss, from the training step's backward pass."""
    gradient = _backward(net, X, y, settings, eps).gradient
    return gradient._replace(W1=gradient.W1 + settings.lam_global * np.sign(net.W1))


def sgd_step(net, X, y, settings, eps):
    """The network after one step of SGD on the clipped gradients, with weight decay."""
    step = _backward(net, X, y, settings, eps)
    step.update()
    return step.net


def _backward(net, X, y, settings, eps):
    """A training step on a copy of the network, before its update."""
    net = Net(*(a.copy() for a in net))
    step = training_step(net, X, y, settings, np.random.default_rng(0))
    step.forward(X, eps)
    step.backward(X, slice(None))
    return step


# --- The model ----------------------------------------------------------------------------------

BEHAVIOURS = ("both selected", "locally dropped", "locally recovered", "both dropped")
"""What the global and the local selection say of a feature, for one sample."""

THRESHOLDS = (0.0, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2)
"""For these the report counts the globally selected features; 0 counts weights that are not 0."""

CHECKPOINTS = {
    "valid_loss": lambda numbers: numbers["total"],
    "valid_prediction_loss": lambda numbers: numbers["prediction"],
    "valid_balanced_accuracy": lambda numbers: -numbers["balanced_accuracy"],
    "last": None,
}
"""Which check's weights are kept, as a score to minimise."""

SORTS = ("hybrid", "neural", "quick")


@dataclass(frozen=True)
class Explanation:
    """Why one sample is predicted as it is: its nearest prototypes and its selected features."""

    prediction: object
    prototypes: np.ndarray
    """Rows of the training data, the nearest first. Shape (K,)."""
    labels: np.ndarray
    """Their classes."""
    distances: np.ndarray
    """Their Euclidean distances to the sample, after masking."""
    features: np.ndarray
    """The selected features, the widest open gate first."""
    mask_values: np.ndarray
    """How far their gates are open, above 0 and at most 1."""
    behaviours: dict[str, np.ndarray]
    """The features of each of BEHAVIOURS."""


def blocks(n, size=256):
    """Slices that cover n rows: what is computed per sample needs no memory for all at once."""
    return [slice(first, first + size) for first in range(0, n, size)]


class ProtoGate(Classifier):
    """Gated nearest neighbours, trained by SGD on a relaxed count of wrong neighbours.

    k                neighbours that vote, and ranks in the loss
    lam_global       weight of R_global; 0 leaves the local selection alone
    lam_local        weight of R_local; 0 leaves the global selection alone
    lr, weight_decay, clip
                     SGD's constant learning rate, decay of all weights, bound of the gradient norm
    hidden           width of the gating network
    sigma, tau       standard deviation of the gates' noise, temperature of the relaxed sorting
    batch_size, steps
                     samples per step (all, if there are fewer), number of steps
    check_every      epochs between checks on the evaluation set
    checkpoint       whose weights are kept: of the check with the lowest "valid_loss",
                     "valid_prediction_loss" or the highest "valid_balanced_accuracy", or the "last"
    patience         stop when so many steps brought no better check; None never does, nor does
                     the checkpoint "last", for which no check is better than another
    sort             "hybrid" trains with the relaxed sorting and predicts with the hard one,
                     "neural" predicts with the relaxed one too, "quick" trains with the hard one,
                     which has no gradient: only the penalties shape the gates
    exclude_self     whether a sample is kept from being its own neighbour in training
    prox_l1          replace the gradient of R_global by its proximal step: exact zeros in W1
    zero_threshold   for a feature to be globally selected, a weight in W1 must exceed it
    dtype            of the training

    Without evaluation set there are no checks, and the last weights are kept.
    """

    def __init__(
        self,
        *,
        k=3,
        lam_global=2e-4,
        lam_local=1e-3,
        lr=0.1,
        hidden=200,
        sigma=0.5,
        tau=16.0,
        batch_size=64,
        steps=10_000,
        check_every=50,
        checkpoint="valid_loss",
        patience=None,
        weight_decay=1e-4,
        clip=2.5,
        sort="hybrid",
        exclude_self=False,
        prox_l1=False,
        zero_threshold=1e-3,
        dtype="float32",
        random_state=None,
    ):
        self.k = k
        self.lam_global = lam_global
        self.lam_local = lam_local
        self.lr = lr
        self.hidden = hidden
        self.sigma = sigma
        self.tau = tau
        self.batch_size = batch_size
        self.steps = steps
        self.check_every = check_every
        self.checkpoint = checkpoint
        self.patience = patience
        self.weight_decay = weight_decay
        self.clip = clip
        self.sort = sort
        self.exclude_self = exclude_self
        self.prox_l1 = prox_l1
        self.zero_threshold = zero_threshold
        self.dtype = dtype
        self.random_state = random_state

    def fit(self, X, y, eval_set=None):
        X, codes, eval_set = self._check_fit(X, y, eval_set)
        for name, choices in (("sort", SORTS), ("checkpoint", CHECKPOINTS)):
            if getattr(self, name) not in choices:
                raise ValueError(
                    f"{name} must be one of {tuple(choices)}, got {getattr(self, name)!r}"
                )
        for name in ("k", "hidden"):
            value = getattr(self, name)
            if not isinstance(value, numbers.Integral) or value < 1:
                raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
        for name in ("sigma", "tau"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)!r}")
        X = np.ascontiguousarray(X, dtype=self.dtype)
        # Three streams, so that e.g. another width changes neither the batches nor the noise.
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=3)
        init_rng, order_rng, noise_rng = map(np.random.default_rng, seeds)

        net = initial_net(X.shape[1], self.hidden, init_rng, X.dtype)
        step = training_step(net, X, codes, self, noise_rng)
        self.net_ = step.net  # changes in place while training, and so do
        self.prototypes_ = np.empty_like(X)

        def check():
            self._store_prototypes(X, codes)
            return self._measure(*eval_set)

        kept = [np.empty_like(w) for w in step.weights] if eval_set is not None else []

        def copied(source, target):
            for a, b in zip(source, target, strict=True):
                b[:] = a
            return target

        training = train(
            len(X),
            step,
            steps=self.steps,
            rng=order_rng,
            batch_size=self.batch_size,
            check=None if eval_set is None else check,
            check_every=self.check_every,
            score=CHECKPOINTS[self.checkpoint],
            patience=self.patience,
            save=lambda: copied(step.weights, kept),
            load=lambda weights: copied(weights, step.weights),
        )
        self._store_prototypes(X, codes)
        self.n_parameters_ = sum(a.size for a in self.net_)
        self.seconds_per_epoch_ = training.seconds_per_epoch
        self.fit_report_ = {
            **training.report(),
            "clipped": rounded(step.clipped / max(step.steps, 1)),
            **self._selection_report(X),
        }
        return self

    def matrix_products(self, batch):
        """Shapes (m, k, n) of the products of one training step: what its speed is measured by."""
        B, (H, D) = batch, self.net_.W1.shape
        forward, backward = [(B, D, H), (B, H, D)], [(D, B, H), (B, D, H), (H, B, D)]
        # Hard sorting has no gradient, so that training needs no distances.
        distances = [] if self.sort == "quick" else [(B, D, B), (B, B, D)]
        return forward + distances + backward

    # -- masks and selection

    def masks(self, X):
        """The soft local masks s in [0, 1]. Shape (n_samples, n_features)."""
        X = self._check(X)
        return local_gates(self._mu(X))

    def select(self, X):
        """The locally selected features: those with an open gate, mu > 0."""
        X = self._check(X)
        return self._mu(X) > 0

    def _mu(self, X):
        return gating_network(self.net_, X.astype(self.dtype, copy=False))

    def _selection_report(self, X):
        """Global selection per threshold, and how many gates the training samples open."""
        largest = np.abs(self.net_.W1).max(axis=0)
        n_local = np.concatenate([(self._mu(X[r]) > 0).sum(axis=1) for r in blocks(len(X))])
        return {
            "collapsed": not n_local.any(),  # all distances are zero: the vote is arbitrary
            "globally_selected": {f"{t:g}": int((largest > t).sum()) for t in THRESHOLDS},
            # The mean alone misleads: a few samples may open nearly all gates, the others hardly any.
            "train_selected": rounded(float(n_local.mean())),
            "train_selected_median": rounded(float(np.median(n_local))),
        }

    def composition(self, X):
        """Of the locally selected features, the share that is globally selected, per threshold.

        Mean over the samples that select anything; the rest of the share is locally recovered.
        """
        local = self.select(X)
        local = local[local.any(axis=1)]
        if not len(local):
            return dict.fromkeys(map("{:g}".format, THRESHOLDS), math.nan)
        weights = local / local.sum(axis=1, keepdims=True)
        shares = {t: weights @ globally_selected(self.net_, t) for t in THRESHOLDS}
        return {f"{t:g}": float(share.mean()) for t, share in shares.items()}

    # -- prediction

    def _store_prototypes(self, X, codes):
        """The prototype base: the masked training samples, which need not be masked again."""
        for rows in blocks(len(X)):
            np.multiply(X[rows], local_gates(self._mu(X[rows])), out=self.prototypes_[rows])
        self.prototype_codes_ = codes

    def _scores(self, mu, X):
        """v, the negative squared distances to all prototypes; larger is nearer."""
        masked = X * local_gates(mu)
        parts = blocks(len(self.prototypes_))
        return -np.hstack([squared_distances(masked, self.prototypes_[rows]) for rows in parts])

    def _nearest(self, v):
        """The K nearest prototypes, the nearest first; of equally near ones the first in order."""
        # Equal rows may come out of the matrix product with different last digits: round them off.
        return np.argsort(-v.astype(np.float32), axis=1, kind="stable")[:, : self.k]

    def _shares(self, v, sort=None):
        """Of the K nearest prototypes, the share of each class. Shape (n_samples, n_classes)."""
        one_hot = np.eye(len(self.classes_))[self.prototype_codes_]
        if (sort or self.sort) == "neural":
            P = neural_sort(v, self.k, self.tau)
            return P.mean(axis=1) @ one_hot
        shares = one_hot[self._nearest(v)].mean(axis=1)
        shares[~np.isfinite(v).all(axis=1)] = np.nan  # the weights diverged: there is no order
        return shares

    def predict_proba(self, X):
        """The vote: equal shares go to the smaller class in `predict`."""
        X = self._check(X)
        return self._shares(self._scores(self._mu(X), X))

    def also_predict(self, X):
        """What the other sorting would predict from the same weights."""
        X = self._check(X)
        other = "hybrid" if self.sort == "neural" else "neural"
        shares = self._shares(self._scores(self._mu(X), X), other)
        return {f"sort={other}": self.classes_[shares.argmax(axis=1)]}

    def _measure(self, X, codes):
        """The losses against the prototype base and the balanced accuracy, without noise."""
        mu = self._mu(X)
        v = self._scores(mu, X)
        parts = _sum(self.net_, v, codes[:, None] == self.prototype_codes_, mu, self)
        hit = self._shares(v).argmax(axis=1) == codes
        recalls = [hit[codes == c].mean() for c in np.unique(codes)]
        return {
            "total": parts.total,
            "prediction": parts.prediction,
            "global": parts.global_,
            "local": parts.local,
            "balanced_accuracy": float(np.mean(recalls)),
            "selected": float((mu > 0).sum(axis=1).mean()),
        }

    # -- keeping a fitted model: numbers alone, so that no code is read back

    def arrays(self):
        """Everything that was learned, by name."""
        return {
            **self.net_._asdict(),
            "prototypes": self.prototypes_,
            "prototype_codes": self.prototype_codes_,
        }

    def restore(self, arrays, n_classes):
        """Become the fitted model that `arrays` came from, for classes 0..n_classes-1."""
        net = Net(*(np.ascontiguousarray(arrays[name], dtype=self.dtype) for name in Net._fields))
        prototypes, codes = arrays["prototypes"], arrays["prototype_codes"]
        (n, d), h = prototypes.shape, self.hidden
        shapes = [a.shape for a in net]
        if shapes != [(h, d), (h,), (d, h), (d,)] or codes.shape != (n,):
            raise ValueError(f"the arrays do not fit each other: {shapes}, {codes.shape}, {(n, d)}")
        if not np.isin(codes, range(n_classes)).all():
            raise ValueError(f"prototypes have classes other than 0 to {n_classes - 1}")
        self.net_, self.n_features_in_ = net, d
        self.prototypes_ = np.ascontiguousarray(prototypes, dtype=self.dtype)
        self.prototype_codes_ = codes.astype(np.int64)
        self.classes_ = np.arange(n_classes)
        return self

    # -- explanations

    def explain(self, X):
        """One Explanation per sample."""
        X = self._check(X)
        mu = self._mu(X)
        v = self._scores(mu, X)
        predictions = self.classes_[self._shares(v).argmax(axis=1)]
        nearest = self._nearest(v)
        kept_globally = globally_selected(self.net_, self.zero_threshold)
        explanations = []
        for i, gates in enumerate(local_gates(mu)):
            kept = gates > 0
            features = np.argsort(-gates, kind="stable")[: kept.sum()]
            behaviour = np.where(kept_globally, np.where(kept, 0, 1), np.where(kept, 2, 3))
            explanations.append(
                Explanation(
                    prediction=predictions[i],
                    prototypes=nearest[i],
                    labels=self.classes_[self.prototype_codes_[nearest[i]]],
                    distances=np.sqrt(-v[i, nearest[i]]),
                    features=features,
                    mask_values=gates[features],
                    behaviours={
                        name: np.flatnonzero(behaviour == b) for b, name in enumerate(BEHAVIOURS)
                    },
                )
            )
        return explanations
