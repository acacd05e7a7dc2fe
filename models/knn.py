"""k-nearest neighbours.

Reference: Fix and Hodges, 1951. Selects no features.
"""

from sklearn.neighbors import KNeighborsClassifier

from ._classifier import Classifier


class KNN(Classifier):
    """Uniform vote of the k nearest training samples in Euclidean distance.

    Tied votes go to the first of the tied classes.
    """

    def __init__(self, *, n_neighbors=5, random_state=None):
        self.n_neighbors = n_neighbors
        self.random_state = random_state  # nothing is random; accepted like every model does

    def fit(self, X, y, eval_set=None):
        X, codes, _ = self._check_fit(X, y, eval_set)
        self.knn_ = KNeighborsClassifier(self.n_neighbors).fit(X, codes)
        return self

    def predict_proba(self, X):
        X = self._check(X)
        return self.knn_.predict_proba(X)
