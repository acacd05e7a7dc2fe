"""TabNet: attentive interpretable tabular learning.

Reference: Arik and Pfister, 2021. Selects features per sample, in a few decision steps.

h = BN(x), prior P_0 = 1, a_0 = the second half of F_0(h); then in each step s
    mask      M_s = sparsemax(P_(s-1) * GBN(A_s a_(s-1)))      sums to 1 over the features
    prior     P_s = P_(s-1) * (gamma - M_s)                    a feature used once counts less
    decision  (d_s, a_s) = the two halves of F_s(M_s * h)      d_s goes through a ReLU
logits = W sum_s d_s
loss   = balanced cross-entropy + lambda_sparse * mean over steps and samples of the mask's entropy

F_s: four gated layers u -> a * sigmoid(b), (a, b) = GBN(V u), added up; the first two V are shared
by all F_s. GBN: batch norm of virtual batches, chunks of a few samples.

A feature is selected for a sample if its importance sum_s (sum_j d_sj) M_s is not zero.
"""

import math
from functools import cache

import torch
from pytorch_tabnet.tab_network import (
    GBN,
    AttentiveTransformer,
    FeatTransformer,
    GLU_Layer,
    initialize_non_glu,
)
from torch import nn

from ._networks import Loss, NetworkClassifier, class_weights, tensor
from ._selectors import mask_facts
from ._train import train

VALID_LOSSES = ("plain", "double-softmax")
SHARED, OWN = 2, 2  # gated layers of a feature transformer
EPSILON = 1e-15  # in the logarithm of the entropy


class TabNet(NetworkClassifier):
    """The layers of pytorch-tabnet, trained on all samples at once: a step is an epoch.

    virtual_batch_size : samples per chunk of ghost batch norm
    momentum : of ghost batch norm; the paper says that it is Adam's, which has its default betas
    valid_loss : what early stopping watches, the validation cross-entropy of the logits ("plain")
        or, as in the released code, of the softmax as if that were logits ("double-softmax")

    With momentum 0.3 the running statistics that answers are computed with come from the last few
    chunks of five samples. That is the published setting, and it costs accuracy.

    NOTE[DIFF] A last chunk of a single sample has no variance and stops the library; here it joins
    the chunk before. The library has another batch norm of the inputs that nothing uses; it is left
    out. Early stopping watches the plain loss unless told otherwise.
    """

    def __init__(
        self,
        *,
        lambda_sparse=1e-3,
        lr=2e-2,
        width=8,
        n_steps=3,
        gamma=1.5,
        virtual_batch_size=5,
        momentum=0.3,
        epochs=5000,
        patience=100,
        lr_decay=0.95,
        lr_decay_every=20,
        clip=2.0,
        class_weight="balanced",
        valid_loss="plain",
        random_state=None,
    ):
        self.lambda_sparse = lambda_sparse
        self.lr = lr
        self.width = width
        self.n_steps = n_steps
        self.gamma = gamma
        self.virtual_batch_size = virtual_batch_size
        self.momentum = momentum
        self.epochs = epochs
        self.patience = patience
        self.lr_decay = lr_decay
        self.lr_decay_every = lr_decay_every
        self.clip = clip
        self.class_weight = class_weight
        self.valid_loss = valid_loss
        self.random_state = random_state

    def _network(self, n_features, n_classes):
        if self.virtual_batch_size < 2:
            raise ValueError(
                "virtual_batch_size must be at least 2, because one sample has no variance, "
                f"got {self.virtual_batch_size!r}"
            )
        return Network(
            n_features,
            n_classes,
            self.width,
            self.n_steps,
            self.gamma,
            self.virtual_batch_size,
            self.momentum,
        )

    def loss(self, net, x, y, weights=None):
        """Cross-entropy, and the entropy of the masks, which are sparse where it is low."""
        logits, entropy = net(x)
        prediction = nn.functional.cross_entropy(logits, y, weights)
        return Loss(prediction, self.lambda_sparse * entropy, logits)

    def _fit(self, X, codes, eval_set, rng):
        if self.valid_loss not in VALID_LOSSES:
            raise ValueError(f"valid_loss must be one of {VALID_LOSSES}, got {self.valid_loss!r}")
        n_classes = len(self.classes_)
        X, y = tensor(X), torch.from_numpy(codes)
        self.net_ = net = self._network(X.shape[1], n_classes)
        weights = class_weights(codes, n_classes, self.class_weight)
        optimizer = torch.optim.Adam(net.parameters(), self.lr, fused=True)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, self.lr_decay_every, self.lr_decay)

        def step(rows):
            rows = torch.from_numpy(rows)
            loss = self.loss(net, X[rows], y[rows], weights)
            optimizer.zero_grad()
            loss.total.backward()
            if self.clip is not None:
                nn.utils.clip_grad_norm_(net.parameters(), self.clip)
            optimizer.step()
            schedule.step()

        def check():
            net.eval()
            with torch.no_grad():
                logits, entropy = net(X_valid)
                right = logits.argmax(1) == y_valid
                scores = logits if self.valid_loss == "plain" else logits.softmax(1)
                valid_loss = nn.functional.cross_entropy(scores, y_valid, weights)
            net.train()
            return {
                "valid_loss": float(valid_loss),
                "valid_balanced_accuracy": float((right * share).sum()),
                "valid_mask_entropy": float(entropy),
            }

        if eval_set is not None:
            X_valid, y_valid = tensor(eval_set[0]), torch.from_numpy(eval_set[1])
            # What a sample adds to the mean of the classes' recalls if it is right.
            present = y_valid.bincount(minlength=n_classes)
            share = 1 / (present[y_valid] * (present > 0).sum())
        net.train()
        training = train(
            len(X),
            step,
            steps=self.epochs,
            rng=rng,
            batch_size=len(X),
            check=None if eval_set is None else check,
            check_every=1,
            score=lambda numbers: numbers["valid_loss"],
            patience=self.patience,
            save=lambda: {name: value.clone() for name, value in net.state_dict().items()},
            load=net.load_state_dict,
        )
        net.eval()
        self.n_parameters_ = sum(p.numel() for p in net.parameters())
        self.seconds_per_epoch_ = training.seconds_per_epoch
        with torch.no_grad():
            selected = net.importance(X) != 0
        self.fit_report_ = training.report() | mask_facts(selected)

    def matrix_products(self, batch):
        """Shapes (m, k, n) of the products of one training step: what its speed is measured by."""
        linear = [layer.fc for layer in self.net_.modules() if hasattr(layer, "fc")]
        shapes = []
        for layer in [*linear, self.net_.output]:
            n_in, n_out = layer.in_features, layer.out_features
            shapes += [(batch, n_in, n_out), (n_out, batch, n_in), (batch, n_out, n_in)]
        return shapes

    def importance(self, X):
        """How much each feature took part in the decision, per sample; not below zero."""
        X = self._check(X)
        with torch.no_grad():
            return self.net_.importance(tensor(X)).numpy()

    def select(self, X):
        """Which features took part in the decision, per sample."""
        return self.importance(X) != 0


class Network(nn.Module):
    """The encoder and its linear output; gives logits and the masks' mean entropy.

    NOTE[DIFF] The layers and their initial weights are the library's. The pass through them is our
    own, because the library's multiplies every mask with an identity matrix of D x D.
    """

    def __init__(self, n_features, n_classes, width, n_steps, gamma, virtual_batch_size, momentum):
        super().__init__()
        self.width = width
        self.gamma = gamma
        ghost = {"virtual_batch_size": virtual_batch_size, "momentum": momentum}
        inputs = [n_features] + [2 * width] * (SHARED - 1)
        shared = nn.ModuleList(nn.Linear(n, 4 * width, bias=False) for n in inputs)

        def transformer():
            return FeatTransformer(n_features, 2 * width, shared, OWN, **ghost)

        def attention():
            return AttentiveTransformer(width, n_features, None, **ghost)

        self.norm = nn.BatchNorm1d(n_features, momentum=0.01)
        self.first = transformer()
        self.transformers = nn.ModuleList(transformer() for _ in range(n_steps))
        self.attentions = nn.ModuleList(attention() for _ in range(n_steps))
        self.output = nn.Linear(width, n_classes, bias=False)
        initialize_non_glu(self.output, width, n_classes)
        for layer in list(self.modules()):
            if isinstance(layer, GLU_Layer | AttentiveTransformer):
                layer.bn = GhostBatchNorm(layer.bn.input_dim, **ghost)
            if isinstance(layer, AttentiveTransformer):
                layer.selector = Sparsemax()

    def forward(self, x):
        masks, decisions = zip(*self.steps(x), strict=True)
        entropy = -sum((M * torch.log(M + EPSILON)).sum() for M in masks) / (len(masks) * len(x))
        return self.output(sum(decisions)), entropy

    def importance(self, x):
        return sum(M * d.sum(dim=1, keepdim=True) for M, d in self.steps(x))

    def steps(self, x):
        """The mask and the decision of each step."""
        h = self.norm(x)
        prior = torch.ones_like(h)
        _, a = self.first(h).split(self.width, dim=1)
        for attention, transformer in zip(self.attentions, self.transformers, strict=True):
            M = attention(prior, a)
            prior = prior * (self.gamma - M)
            d, a = transformer(M * h).split(self.width, dim=1)
            yield M, torch.relu(d)


class GhostBatchNorm(GBN):
    """The library's ghost batch norm, all chunks of the same size at once instead of in a loop."""

    def forward(self, x):
        if not self.training:
            return self.bn(x)
        return torch.cat([self._normalise(block) for block in chunks(x, self.virtual_batch_size)])

    def _normalise(self, x):
        """Normalise chunks of shape (chunks, samples, features); update the running statistics."""
        bn = self.bn
        mean = x.mean(dim=1, keepdim=True)
        centered = x - mean
        variance = (centered * centered).mean(dim=1, keepdim=True)
        with torch.no_grad():
            n_chunks, n_samples, _ = x.shape
            weights, keep = momentum_of_many(n_chunks, bn.momentum, x.dtype)
            bn.running_mean.addmv_(mean[:, 0].T, weights, beta=keep)
            unbiased = n_samples / (n_samples - 1)
            bn.running_var.addmv_(variance[:, 0].T, weights, beta=keep, alpha=unbiased)
        scale = bn.weight * torch.rsqrt(variance + bn.eps)
        return torch.addcmul(bn.bias, centered, scale).flatten(0, 1)


@cache
def momentum_of_many(n, momentum, dtype):
    """n updates r <- (1 - m) r + m x_i in one, r <- keep r + sum_i weight_i x_i."""
    later = torch.arange(n - 1, -1, -1, dtype=dtype)
    return momentum * (1 - momentum) ** later, (1 - momentum) ** n


def chunks(x, size):
    """The rows as views of shape (chunks, rows, features): those of equal size, then the rest.

    Sizes are those of torch.chunk, but a rest of one row joins the chunk before.
    """
    size = math.ceil(len(x) / math.ceil(len(x) / size))
    rest = len(x) % size
    if rest == 1:
        rest += size
    blocks = x.split([len(x) - rest, rest])
    return [
        block.unflatten(0, (-1, rows))
        for block, rows in zip(blocks, (size, rest), strict=True)
        if len(block)
    ]


class Sparsemax(nn.Module):
    """The nearest point of the simplex: max(z - tau, 0), with tau so that each row's sum is 1.

    Newton's method instead of the library's sorting, which is several times slower on thousands of
    features. The sum is convex and piecewise linear in tau, so from below it ends at the root.
    """

    def forward(self, z):
        z = z - z.detach().amax(dim=1, keepdim=True)
        with torch.no_grad():
            tau = -torch.ones_like(z[:, :1])
            size = torch.full_like(tau, torch.inf)
            while True:
                p = torch.relu_(z - tau)
                support = p.sign()
                smaller = support.sum(dim=1, keepdim=True)
                if not (smaller < size).any():
                    break
                size = smaller
                tau = torch.maximum(tau, tau + (p.sum(dim=1, keepdim=True) - 1) / size)
        # Once more for the gradient, which treats the support as fixed.
        tau = ((z * support).sum(dim=1, keepdim=True) - 1) / size
        return torch.relu(z - tau)
