"""What single classical models promise beyond the contract: their settings, masks and threads."""

import catboost
import numpy as np
import pytest

from benchmark.protocol.registry import load_class, models


def build(name, **settings):
    entry = models()[name]
    return load_class(entry)(**{**entry.params, **settings}, random_state=0)


def one_strong_feature(n=80, d=20):
    """Labels that follow feature 4, with a tenth of them wrong, so that the rest is tried too."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, ((X[:, 4] > 0) ^ (rng.random(n) < 0.1)).astype(int)


def test_lightgbm_tries_a_fraction_of_the_features():
    X, y = one_strong_feature()
    # Trees of one split: with all features at hand the first of them take the strong one.
    settings = {"n_estimators_without_eval": 3, "max_depth": 1}
    part = build("lightgbm", feature_fraction=0.3, **settings).fit(X, y)
    whole = build("lightgbm", feature_fraction=1.0, **settings).fit(X, y)
    assert np.flatnonzero(whole.selected_).tolist() == [4]
    assert part.selected_.sum() > 1
    assert not np.allclose(part.predict_proba(X), whole.predict_proba(X))


def test_the_forest_selects_from_the_mean_importance_on():
    X, y = one_strong_feature()
    model = build("rf", n_estimators=50).fit(X, y)
    importance = model.forest_.feature_importances_
    assert np.array_equal(model.selected_, importance >= importance.mean())
    # Every feature has some importance in a forest, so "more than none" would select them all.
    assert (importance > 0).all()
    assert model.selected_[4]
    assert model.selected_.sum() < X.shape[1] / 2


def test_catboost_uses_one_thread_throughout(monkeypatch):
    asked = []

    def spied(method):
        def call(*args, **settings):
            asked.append((method.__name__, settings.get("thread_count")))
            return method(*args, **settings)

        return call

    for name in ("get_feature_importance", "predict_proba"):
        method = getattr(catboost.CatBoostClassifier, name)
        monkeypatch.setattr(catboost.CatBoostClassifier, name, spied(method))
    X, y = one_strong_feature()
    model = build("catboost", iterations=3).fit(X, y)
    model.predict_proba(X)
    assert model.booster_.get_params()["thread_count"] == 1
    # The library asks for importances once more, on its own, inside its fit.
    assert asked[-2:] == [("get_feature_importance", 1), ("predict_proba", 1)]


@pytest.mark.parametrize(
    ("name", "inner", "settings"),
    [
        ("rf", "forest_", {"n_estimators": 3}),
        ("lightgbm", "booster_", {"n_estimators_without_eval": 3}),
        ("xgboost", "booster_", {}),
    ],
)
def test_libraries_are_told_to_use_one_thread(name, inner, settings):
    model = build(name, **settings).fit(*one_strong_feature())
    assert getattr(model, inner).get_params()["n_jobs"] == 1
