"""Models as people have them in a file of their own: nothing here knows of the harness."""

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
