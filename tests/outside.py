"""Models as people have them in a file of their own: nothing here knows of the harness."""

import os
import signal
import time

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

pipeline = make_pipeline(SelectKBest(k=20), KNeighborsClassifier(3))
number = 3


def logistic(C=1.0):
    return make_pipeline(SelectKBest(k=20), LogisticRegression(C=C, solver="saga", max_iter=5))


class Broken(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("a slip in fit")


class Exits(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        raise SystemExit(0)


class Dies(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        os.kill(os.getpid(), signal.SIGSEGV)


class Sleeps(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        time.sleep(600)


class Unmade:
    def __init__(self):
        raise RuntimeError("no licence")


class Unread(BaseEstimator):
    """Its settings are its parent's, which only an instance tells."""

    def __init__(self, **settings):
        raise RuntimeError("no licence")


def nothing():
    """A function that forgot to return its classifier."""


class Careless(ClassifierMixin, BaseEstimator):
    """Predicts at random, changes its input, and has probabilities that are none."""

    def fit(self, X, y):
        X[:] = 0
        self.classes_ = sorted(set(y))
        return self

    def predict(self, X):
        import numpy as np

        return np.random.default_rng().integers(0, 2, len(X))

    def predict_proba(self, X):
        import numpy as np

        return np.ones((len(X), len(self.classes_)))


class Order(ClassifierMixin, BaseEstimator):
    """Nearest neighbours with `classes_` in another order than the sorted one."""

    def __init__(self, classes="backwards"):
        self.classes = classes

    def fit(self, X, y):
        self.knn_ = KNeighborsClassifier(5).fit(X, y)
        known = self.knn_.classes_
        self.order_ = known[::-1] if self.classes != "first seen" else list(dict.fromkeys(y))
        if self.classes != "untold":
            self.classes_ = self.order_
        return self

    def predict(self, X):
        return self.knn_.predict(X)

    def predict_proba(self, X):
        return self.knn_.predict_proba(X)[:, self.order_]


class Answers:
    """Nearest neighbours that answer rightly, but for what its settings say."""

    def __init__(self, predict="right", proba="right", select="right", also="right"):
        self.settings = {"predict": predict, "proba": proba, "select": select, "also": also}

    def fit(self, X, y):
        self.knn_ = KNeighborsClassifier(3).fit(X, y)
        self.classes_ = self.knn_.classes_
        return self

    def predict(self, X):
        return ODD[self.settings["predict"]](self.knn_.predict(X))

    def predict_proba(self, X):
        return ODD[self.settings["proba"]](self.knn_.predict_proba(X))

    def select(self, X):
        return ODD[self.settings["select"]](X > 0)

    def also_predict(self, X):
        return {"second": ODD[self.settings["also"]](self.knn_.predict(X))}


ODD = {
    "right": lambda array: array,
    "column": lambda array: array[:, None],
    "float": lambda array: array.astype(float),
    "object": lambda array: array.astype(object),
    "list": lambda array: array.tolist(),
    "negative": lambda array: array - 1,
    "nan": lambda array: array * float("nan"),
    "large": lambda array: array * 0 + 77,
    "flat": lambda array: array[:, 0],
    "one column": lambda array: array[:, :1],
    "sums": lambda array: array * 3,
    "three rows": lambda array: array[:3],
}
"""Answers as classifiers give them that were never asked by anybody else."""
