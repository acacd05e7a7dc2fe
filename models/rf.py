"""Random forest.

Reference: Breiman, 2001. Selects features globally.
"""

from sklearn.ensemble import RandomForestClassifier

from ._classifier import Classifier, GlobalSelector


class RandomForest(GlobalSelector, Classifier):
    """Forest of shallow Gini trees on random sqrt(D) features per split.

    Selected are the features of at least mean importance. That mask is a by-product: predictions
    come from the whole forest, not from one grown on the selected features.
    """

    def __init__(
        self,
        *,
        n_estimators=500,
        max_depth=5,
        min_samples_leaf=2,
        class_weight="balanced",
        random_state=None,
    ):
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X, y, eval_set=None):
        X, codes, _ = self._check_fit(X, y, eval_set)
        self.forest_ = RandomForestClassifier(
            n_estimators=self.n_estimators,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            max_features="sqrt",
            class_weight=self.class_weight,
            random_state=self.random_state,
            n_jobs=1,
        ).fit(X, codes)
        importance = self.forest_.feature_importances_
        self.selected_ = importance >= importance.mean()
        return self

    def predict_proba(self, X):
        X = self._check(X)
        return self.forest_.predict_proba(X)
