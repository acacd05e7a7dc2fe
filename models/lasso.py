"""Lasso: logistic regression with an L1 penalty.

Reference: Tibshirani, 1996. Selects features globally.

Objective: C * weighted sum of the samples' logistic losses + absolute sum of the weights, intercept
not penalised. C is the inverse of the penalty's strength, and so is the paper's grid.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

from ._classifier import Classifier, GlobalSelector


class Lasso(GlobalSelector, Classifier):
    """L1-penalised logistic regression, solved with SAGA.

    The solver stops when the weights hardly move, long before small ones reach zero if C is large:
    the number of selected features then tells where it stopped, not what the optimum is.
    """

    def __init__(
        self, *, C=1000.0, class_weight="balanced", tol=1e-4, max_iter=10_000, random_state=None
    ):
        self.C = C
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X, y, eval_set=None):
        X, codes, _ = self._check_fit(X, y, eval_set)
        self.linear_ = LogisticRegression(
            l1_ratio=1,
            solver="saga",
            C=self.C,
            class_weight=self.class_weight,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
        ).fit(X, codes)
        # A feature is selected if its weight is not exactly zero for at least one class.
        self.selected_ = np.any(self.linear_.coef_ != 0, axis=0)
        self.n_iter_ = int(self.linear_.n_iter_.max())
        self.fit_report_ = {"iterations": self.n_iter_, "converged": self.n_iter_ < self.max_iter}
        self.n_parameters_ = self.linear_.coef_.size + self.linear_.intercept_.size
        return self

    def predict_proba(self, X):
        X = self._check(X)
        return self.linear_.predict_proba(X)
