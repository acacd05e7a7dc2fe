"""CatBoost: gradient boosting with oblivious trees.

Reference: Prokhorenkova et al., 2018. Selects features globally.
"""

import numpy as np
from catboost import CatBoostClassifier

from ._classifier import Classifier, GlobalSelector


class CatBoost(GlobalSelector, Classifier):
    """1000 symmetric trees of depth 6 at learning rate 0.03: the paper's settings, mostly defaults.

    Selected are the features whose change would change predictions. Boosting is plain, the library's
    default on a CPU; the ordered boosting of the reference is another setting.
    """

    def __init__(
        self, *, iterations=1000, depth=6, learning_rate=0.03, l2_leaf_reg=3.0, random_state=None
    ):
        self.iterations = iterations
        self.depth = depth
        self.learning_rate = learning_rate
        self.l2_leaf_reg = l2_leaf_reg
        self.random_state = random_state

    def fit(self, X, y, eval_set=None):
        X, codes, _ = self._check_fit(X, y, eval_set)
        self.booster_ = CatBoostClassifier(
            iterations=self.iterations,
            depth=self.depth,
            learning_rate=self.learning_rate,
            l2_leaf_reg=self.l2_leaf_reg,
            loss_function="Logloss" if len(self.classes_) == 2 else "MultiClass",
            random_seed=self.random_state,
            thread_count=1,
            allow_writing_files=False,  # the library logs into the working folder otherwise
            verbose=False,
        ).fit(X, codes)
        self.selected_ = np.asarray(self.booster_.get_feature_importance(thread_count=1)) > 0
        return self

    def predict_proba(self, X):
        X = self._check(X)
        return self.booster_.predict_proba(X, thread_count=1)
