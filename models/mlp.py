"""Multi-layer perceptron, the network that LSPIN also predicts with.

Reference: Gorishniy et al., 2021. Selects no features.

x -> BN -> 100 -> tanh -> BN -> 100 -> tanh -> BN -> 10 -> tanh -> BN -> C -> tanh

The logits pass through tanh too, so they lie in (-1, 1) and the cross-entropy of two classes cannot
fall below ln(1 + e^-2) = 0.127: in effect a strong label smoothing.
"""

from torch import nn

from ._chain import SGD, Chain, cross_entropy
from ._networks import Loss, NetworkClassifier, chain


class MLP(NetworkClassifier):
    """Tanh network with batch norm before every linear layer; balanced cross-entropy, plain SGD.

    steps : the released script trains 5,000; the paper gives no number.
    checkpoint : the released code keeps the check, every 50 epochs, with the lowest validation
        cross-entropy.
    patience : stop this many steps after the best check; None trains to the end, as the released
        code does.
    """

    def __init__(
        self,
        *,
        hidden=(100, 100, 10),
        lr=1e-2,
        steps=5000,
        batch_size=64,
        weight_decay=1e-4,
        clip=2.5,
        class_weight="balanced",
        check_every=50,
        checkpoint="valid_loss",
        patience=None,
        random_state=None,
    ):
        self.hidden = hidden
        self.lr = lr
        self.steps = steps
        self.batch_size = batch_size
        self.weight_decay = weight_decay
        self.clip = clip
        self.class_weight = class_weight
        self.check_every = check_every
        self.checkpoint = checkpoint
        self.patience = patience
        self.random_state = random_state

    def _network(self, n_features, n_classes):
        return Perceptron([n_features, *self.hidden, n_classes])

    def loss(self, net, x, y, weights=None):
        """The cross-entropy, with weights of the classes."""
        logits, _ = net(x)
        return Loss(nn.functional.cross_entropy(logits, y, weights), 0.0, logits)

    def _step(self, X, y, weights):
        optimizer = SGD(self.net_, self.lr, decay=self.weight_decay, clip=self.clip)
        layers = Chain(self.net_.layers)

        def step(rows):
            _, d = cross_entropy(layers.forward(X[rows]), y[rows], weights)
            layers.backward(d, inputs=False)
            optimizer.step()

        return step


class Perceptron(nn.Module):
    """The network above; gives logits and nothing else."""

    def __init__(self, widths):
        super().__init__()
        self.layers = chain(widths, activation=nn.Tanh, norm=nn.BatchNorm1d, output_activation=True)

    def forward(self, x):
        return self.layers(x), None
