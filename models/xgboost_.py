"""XGBoost: gradient-boosted trees with second-order leaf weights.

Reference: Chen and Guestrin, 2016. Selects features globally.
"""

import numpy as np
from xgboost import XGBClassifier

from ._classifier import Classifier, GlobalSelector


class XGBoost(GlobalSelector, Classifier):
    """100 trees at learning rate 1 with hardly any leaf penalty, as the paper sets it.

    Selected are the features that some tree splits on.

    base_score : the constant that boosting starts from. None lets the library estimate it from the
        labels, as current versions do; 0.5 is what the versions of the paper's time did.
    """

    def __init__(
        self,
        *,
        n_estimators=100,
        learning_rate=1.0,
        reg_lambda=1e-5,
        max_depth=6,
        min_child_weight=1.0,
        base_score=None,
        random_state=None,
    ):
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.reg_lambda = reg_lambda
        self.max_depth = max_depth
        self.min_child_weight = min_child_weight
        self.base_score = base_score
        self.random_state = random_state

    def fit(self, X, y, eval_set=None):
        X, codes, _ = self._check_fit(X, y, eval_set)
        self.booster_ = XGBClassifier(
            n_estimators=self.n_estimators,
            learning_rate=self.learning_rate,
            reg_lambda=self.reg_lambda,
            max_depth=self.max_depth,
            min_child_weight=self.min_child_weight,
            base_score=self.base_score,
            random_state=self.random_state,
            n_jobs=1,
        ).fit(X, codes)
        self.selected_ = np.asarray(self.booster_.feature_importances_) > 0
        return self

    def predict_proba(self, X):
        X = self._check(X)
        return self.booster_.predict_proba(X)
