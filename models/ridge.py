"""Ridge: logistic regression with an L2 penalty.

Reference: Hoerl and Kennard, 1970. Selects no features.

Objective: C * sum of the samples' logistic losses + 1/2 * squared norm of the weights, multinomial
for more than two classes, intercept not penalised. C is the inverse of the penalty's strength.
"""

from sklearn.linear_model import LogisticRegression

from ._classifier import Classifier


class Ridge(Classifier):
    """L2-penalised logistic regression, solved with L-BFGS."""

    def __init__(self, *, C=1.0, class_weight=None, tol=1e-4, max_iter=10_000, random_state=None):
        self.C = C
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state  # L-BFGS draws nothing; accepted like every model does

    def fit(self, X, y, eval_set=None):
        X, codes, _ = self._check_fit(X, y, eval_set)
        self.linear_ = LogisticRegression(
            C=self.C, class_weight=self.class_weight, tol=self.tol, max_iter=self.max_iter
        ).fit(X, codes)
        self.n_iter_ = int(self.linear_.n_iter_.max())
        self.fit_report_ = {"iterations": self.n_iter_, "converged": self.n_iter_ < self.max_iter}
        self.n_parameters_ = self.linear_.coef_.size + self.linear_.intercept_.size
        return self

    def predict_proba(self, X):
        X = self._check(X)
        return self.linear_.predict_proba(X)
