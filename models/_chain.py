"""Chains of layers whose training passes are written by hand.

A chain stands for an nn.Sequential of linear layers, batch norm and activations and works on the
memory of its parameters and of their gradients. Prediction, saving and loading stay torch's. On a
few dozen samples the book-keeping of automatic differentiation costs more than the arithmetic; here
a training step is the matrix products and little else.

With x the input of a layer, y its output and d standing for the gradient of the loss:

    linear      y = x W' + b                     dx = dy W      dW = dy' x      db = sum dy
    batch norm  y = w z + b, z = (x - mean) r    dx = w r (dy - mean dy - z mean(dy z))
                r = (var + eps)^(-1/2)           dw = sum dy z      db = sum dy
    activation  y = a(x)                         dx = dy a'(x)

Sums and means run over the samples of the batch.
"""

import math

import numpy as np
import torch
from torch import nn

from . import _kernels

# --- Parameters and their optimisers --------------------------------------------------------------


class Flat:
    """The parameters of some networks in one vector, and their gradients in another.

    The networks' parameters become views of the first, their `grad` views of the second, so that
    one loop updates all of them. `first` are parameters to come first in the vectors.
    """

    def __init__(self, net, first=()):
        leading = {id(p) for p in first}
        parameters = [*first, *(p for p in net.parameters() if id(p) not in leading)]
        self.weights = np.concatenate([p.detach().numpy().ravel() for p in parameters])
        self.gradient = np.zeros_like(self.weights)
        self.n_first = sum(p.numel() for p in first)
        start = 0
        for p in parameters:
            part = slice(start, start + p.numel())
            p.data = torch.from_numpy(self.weights[part]).view(p.shape)
            p.grad = torch.from_numpy(self.gradient[part]).view(p.shape)
            start += p.numel()


def release(net):
    """Give every parameter memory of its own again, and no gradient: the training is over."""
    for p in net.parameters():
        p.data, p.grad = p.data.clone(), None


class Adam(Flat):
    """Adam, with the given weight decay on the parameters that come first."""

    def __init__(self, net, lr, *, eps, decay=0.0, first=()):
        super().__init__(net, first)
        self.lr, self.eps, self.decay = lr, eps, decay
        self.mean, self.square = np.zeros((2, len(self.weights)), self.weights.dtype)
        self.steps = 0

    def step(self):
        self.steps += 1
        number = self.weights.dtype.type
        # Both averages start from zero; the two corrections make up for that.
        rate = self.lr / (1 - 0.9**self.steps)
        scale = 1 / math.sqrt(1 - 0.999**self.steps)
        for part, decay in (
            (slice(0, self.n_first), self.decay),
            (slice(self.n_first, None), 0.0),
        ):
            arrays = (a[part] for a in (self.weights, self.gradient, self.mean, self.square))
            _kernels.adam(*arrays, *map(number, (rate, scale, self.eps, decay, 0.1, 0.001)))


class SGD(Flat):
    """Descent with weight decay, the gradient's norm clipped."""

    def __init__(self, net, lr, *, decay=0.0, clip=None):
        super().__init__(net)
        self.lr, self.decay, self.clip = lr, decay, clip

    def step(self):
        factor = 1.0
        if self.clip is not None:
            norm = math.sqrt(float(np.vdot(self.gradient, self.gradient)))
            factor = min(1.0, self.clip / (norm + 1e-6))
        number = self.weights.dtype.type
        keep, rate = 1 - self.lr * self.decay, self.lr * factor
        _kernels.descend(self.weights, self.gradient, *map(number, (keep, rate, 0.0)))


# --- Layers ----------------------------------------------------------------------------------------


class Chain:
    """The training passes of an nn.Sequential; its parameters need a `grad` to be written to.

    `backward` belongs to the latest `forward` in training mode.
    """

    def __init__(self, net):
        self.layers = [LAYERS[type(layer)](layer) for layer in net]

    def forward(self, x, training=True):
        for layer in self.layers:
            x = layer.forward(x, training)
        return x

    def backward(self, d, *, inputs=True, weights=True):
        """The gradient for the chain's input, of no use unless asked for; fills the parameters'.

        Changes d.
        """
        for layer in reversed(self.layers):
            last = layer is self.layers[0]
            d = layer.backward(d, inputs or not last, weights)
        return d


class Linear:
    def __init__(self, layer):
        self.W, self.b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        self.gW, self.gb = (_gradient(p) for p in (layer.weight, layer.bias))

    def forward(self, x, training):
        if training:
            self.x = x
        y = x @ self.W.T
        y += self.b
        return y

    def backward(self, d, inputs, weights):
        if weights:
            np.matmul(d.T, self.x, out=self.gW)
            np.sum(d, axis=0, out=self.gb)
        return d @ self.W if inputs else None


class BatchNorm:
    def __init__(self, layer):
        self.layer = layer
        self.w, self.b = layer.weight.detach().numpy(), layer.bias.detach().numpy()
        self.gw, self.gb = (_gradient(p) for p in (layer.weight, layer.bias))
        self.mean, self.var = layer.running_mean.numpy(), layer.running_var.numpy()
        number = self.w.dtype.type
        self.eps, self.momentum = number(layer.eps), number(layer.momentum)
        self.nowhere = np.zeros((2, len(self.w)), self.w.dtype)

    def forward(self, x, training):
        if not training:
            scale = self.w / np.sqrt(self.var + self.eps)
            return (x - self.mean) * scale + self.b
        if len(x) < 2:
            raise ValueError("Batch norm cannot learn from a batch of one sample.")
        self.z, y = np.empty((2, *x.shape), x.dtype)
        self.r = np.empty_like(self.w)
        average = (self.mean, self.var) if self.layer.track_running_stats else self.nowhere
        n = x.dtype.type(len(x))
        _kernels.normalise(
            x, self.w, self.b, self.eps, self.momentum, n, *average, self.z, self.r, y
        )
        return y

    def backward(self, d, inputs, weights):
        gw, gb = (self.gw, self.gb) if weights else self.nowhere
        _kernels.normalise_backward(d, self.z, self.w * self.r, d.dtype.type(len(d)), gw, gb)
        return d


class Activation:
    """y = a(x), and a'(x) as it follows from y."""

    def __init__(self, _layer):
        self.y = None

    def forward(self, x, training):
        y = self.value(x)
        if training:
            self.y = y
        return y

    def backward(self, d, inputs, weights):
        d *= self.slope(self.y)
        return d


class ReLU(Activation):
    def value(self, x):
        return np.maximum(x, 0)

    def slope(self, y):
        return y > 0


class SELU(Activation):
    SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772

    def value(self, x):
        y = np.expm1(np.minimum(x, 0))
        y *= self.ALPHA
        y += np.maximum(x, 0)
        y *= self.SCALE
        return y

    def slope(self, y):
        # Below zero it is the value above its asymptote.
        return np.where(y > 0, self.SCALE, y + y.dtype.type(self.SCALE * self.ALPHA))


class Tanh(Activation):
    def value(self, x):
        return np.tanh(x)

    def slope(self, y):
        return 1 - y * y


LAYERS = {
    nn.Linear: Linear,
    nn.BatchNorm1d: BatchNorm,
    nn.ReLU: ReLU,
    nn.SELU: SELU,
    nn.Tanh: Tanh,
}


def _gradient(parameter):
    return None if parameter.grad is None else parameter.grad.numpy()


def cross_entropy(logits, y, weights=None):
    """Mean cross-entropy of the true classes y, and its gradient for the logits.

    With weights of the classes, the weighted mean.
    """
    rows = np.arange(len(y))
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    tiny = np.finfo(p.dtype).tiny
    losses = -np.log(np.maximum(p[rows, y], tiny))
    share = np.full(len(y), 1 / len(y), p.dtype)
    if weights is not None:
        share = weights[y] / weights[y].sum()
    p[rows, y] -= 1
    p *= share[:, None]
    return losses @ share, p
