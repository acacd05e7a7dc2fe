"""What every model here shares: scikit-learn's classifier contract, with labels as codes 0..C-1.

A model stores its settings in `__init__`, learns in `fit(X, y, eval_set=None)`, answers with
`predict_proba`, and, if it selects features, tells with `select(X)` which ones it used per sample.
"""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

FLOATS = [np.float32, np.float64]
LARGEST = float(np.finfo(np.float32).max)
"""Most models compute in single precision, where larger numbers are infinite."""


class Classifier(ClassifierMixin, BaseEstimator):
    """Base of the models: checks input, keeps `classes_`, predicts the most probable class."""

    def _check_fit(self, X, y, eval_set):
        """Return X, the labels' codes and the evaluation set in the same form (or None)."""
        X, y = validate_data(self, X, y, dtype=FLOATS)
        self._check_range(X)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes, "
                f"but the data contains one class: {self.classes_[0]!r}."
            )
        if eval_set is not None:
            X_valid, y_valid = eval_set[0], column_or_1d(eval_set[1])
            check_consistent_length(X_valid, y_valid)
            unknown = np.setdiff1d(y_valid, self.classes_)
            if len(unknown):
                raise ValueError(
                    f"eval_set has labels that are missing from the training data: {unknown}"
                )
            X_valid = self._check_range(validate_data(self, X_valid, reset=False, dtype=FLOATS))
            eval_set = X_valid, np.searchsorted(self.classes_, y_valid)
        return X, codes, eval_set

    def _check(self, X):
        """Return X, checked against what the model was fitted on."""
        check_is_fitted(self)
        return self._check_range(validate_data(self, X, reset=False, dtype=FLOATS))

    def _check_range(self, X):
        if X.dtype == np.float64 and max(X.max(), -X.min()) > LARGEST:
            raise ValueError(
                f"{type(self).__name__} got a value of {max(X.max(), -X.min()):.3g}; at most "
                f"{LARGEST:.3g} fits into single precision. Rescale the data."
            )
        return X

    def predict(self, X):
        """The most probable class of each sample; ties go to the first class."""
        proba = self.predict_proba(X)  # first: it also checks that the model is fitted
        if not np.isfinite(proba).all():
            raise FloatingPointError(
                f"{type(self).__name__} predicts probabilities that are not finite: its training "
                f"diverged, or the data are too large. Rescale them, or lower the learning rate."
            )
        return self.classes_[np.argmax(proba, axis=1)]


class GlobalSelector:
    """For models with one set of features for all samples, `selected_` of shape (n_features,)."""

    def select(self, X):
        """The same mask for every sample, shape (n_samples, n_features)."""
        X = self._check(X)
        return np.broadcast_to(self.selected_, X.shape)
