"""The contract, over every registered model. A new model is covered without editing this file."""

from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.utils.estimator_checks import check_estimator

from benchmark.protocol.registry import load_class, models

# Cheaper settings where the registry's would make the contract slow; they change no interface.
QUICK = {
    "catboost": {"iterations": 20},
    "rf": {"n_estimators": 20},
    "lightgbm": {"n_estimators": 50},
    "lasso": {"max_iter": 200},
    "protogate": {"steps": 600},
    "protogate-global": {"steps": 600},
    "protogate-local": {"steps": 600},
    "protogate-text": {"steps": 600},
    "protogate-mlp-head": {"steps": 400, "gate_hidden": 20},
    "protogate-linear-head": {"steps": 400, "gate_hidden": 20},
    "mlp": {"steps": 400, "lr": 0.05},
    "stg": {"steps": 400, "lr": 0.1, "lam": 0.1},
    "tabnet": {"epochs": 120, "lr": 0.05, "virtual_batch_size": 64},
    # Not faster: batch norm's running averages look back 100 steps and have to keep up.
    "l2x": {"steps": 200, "lr": 1e-3},
    "invase": {"steps": 200, "lr": 1e-3, "lam": 0.1},
    "realx": {"steps": 300, "lr": 2e-3, "lam": 1.0},
    "lspin": {"steps": 400, "gate_hidden": 20},
    "llspin": {"steps": 400, "gate_hidden": 20},
    "llspin-single": {"steps": 400, "gate_hidden": 20},
}

# Further cuts for scikit-learn's checks, which fit some 150 times.
QUICKER = {
    "mlp": {"steps": 100, "lr": 0.2},
    "protogate": {"steps": 300},
    "tabnet": {"epochs": 40},
}

NETWORKS = (
    "mlp", "stg", "tabnet", "l2x", "invase", "realx", "lspin", "llspin", "llspin-single",
    "protogate-mlp-head", "protogate-linear-head",
)  # fmt: skip

# Models whose checks take half a minute or more each; `make test` has MLP and ProtoGate for them.
SLOW = {*NETWORKS, "protogate-global", "protogate-local", "protogate-text"} - {"mlp"}

# scikit-learn's own checks that a model fails, each with the reason why it may.
_last_bit = (
    "products in single precision differ in the last bit with the number and place of the rows; "
    "test_fit_and_predict asks for agreement to 1e-6"
)
EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    name: {
        "check_class_weight_classifiers": "weights are balanced or equal; a dictionary is refused",
        "check_methods_sample_order_invariance": _last_bit,
        "check_methods_subset_invariance": _last_bit,
    }
    for name in NETWORKS
}

# Models that need not learn from a single feature with the quick settings, each with the reason.
# Whether they do depends on the seed: nothing but one gate stands between them and the labels.
MAY_LOSE_THE_ONLY_FEATURE = {
    "lspin": "the gate closes for one class, which then has an input hardly seen in training",
    "llspin-single": "after few steps the only gate is still shut for every sample",
    "protogate-linear-head": "after few steps the only gate is still shut for every sample",
}

# Models that need not select every informative feature for every sample, each with the reason.
MAY_MISS_A_FEATURE = {
    "tabnet": "a mask is a sparse distribution, and from few samples one of two features can do; "
    "of both, seeds select 70 to 95 %",
}


def toy(n_classes=3, n_samples=60, n_features=12):
    X, y = make_classification(
        n_samples, n_features, n_informative=min(6, n_features), n_redundant=0,
        n_classes=n_classes, n_clusters_per_class=1, random_state=0,
    )  # fmt: skip
    return X.astype(np.float32), y


def build(name, **settings):
    entry = models()[name]
    params = {**entry.params, **QUICK.get(name, {}), **settings}
    return load_class(entry)(**params, random_state=42)


def brief(name):
    """With a fifth of the steps: for tests that do not ask what a model has learned."""
    quick = QUICK.get(name, {})
    return build(name, **{k: quick[k] // 5 for k in ("steps", "epochs") if k in quick})


@cache
def fitted(name):
    """Shared by tests that only look at it."""
    return brief(name).fit(*toy())


every_model = pytest.mark.parametrize("name", list(models()))


@every_model
def test_registry_settings_are_accepted_and_stored_unchanged(name):
    entry = models()[name]
    for point in [{}, *entry.search.points(), *entry.recovered.values()]:
        params = {**entry.params, **point}
        model = load_class(entry)(**params, random_state=7)
        stored = model.get_params()
        assert {key: stored[key] for key in params} == params
        assert stored["random_state"] == 7
        learned = [a for a in vars(model) if a.endswith("_") and not a.startswith("_")]
        assert learned == [], "__init__ must not compute"


def test_defaults_that_the_registry_states_too_are_the_same():
    """A class is registered first as itself, then as its variants; runs use the registry's settings."""
    first = {}
    for entry in models().values():
        first.setdefault(load_class(entry), entry)
    for Model, entry in first.items():
        defaults = Model().get_params()
        assert {name: defaults[name] for name in entry.params} == entry.params


@every_model
@pytest.mark.parametrize("n_classes", [2, 10])  # the others have three
def test_fit_and_predict(name, n_classes):
    X, y = toy(n_classes, n_samples=40 * n_classes)
    before = X.copy(), y.copy()
    model = build(name)
    assert model.fit(X, y) is model
    assert np.array_equal(X, before[0]) and np.array_equal(y, before[1])
    proba = model.predict_proba(X)
    assert proba.shape == (len(X), n_classes)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-5)
    # The answer for a row does not depend on the rows it is asked with.
    np.testing.assert_allclose(model.predict_proba(X[::-3]), proba[::-3], atol=1e-6)
    # Far above chance on its own training data: a model that learns nothing fails here.
    assert (model.predict(X) == y).mean() > 0.5 + 0.5 / n_classes - 0.05


@every_model
def test_eval_set_and_other_labels(name):
    X, y = toy()
    names = np.array(["benign", "malignant", "normal"])[y]
    with_codes = brief(name).fit(X[:45], y[:45], eval_set=(X[45:], y[45:]))
    with_names = brief(name).fit(X[:45], names[:45], eval_set=(X[45:], names[45:]))
    np.testing.assert_array_equal(with_codes.predict_proba(X), with_names.predict_proba(X))
    assert set(with_names.predict(X)) <= set(names)
    with pytest.raises(ValueError, match="eval_set has labels"):
        brief(name).fit(X[y != 2], y[y != 2], eval_set=(X, y))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        brief(name).fit(X[:45], y[:45], eval_set=(X[45:], y[50:]))


@every_model
def test_values_beyond_single_precision_are_refused(name):
    X, y = toy()
    X = X.astype(np.float64)
    X[3, 2] = -1e39
    with pytest.raises(ValueError, match=r"got a value of 1e\+39; at most 3.4e\+38 fits"):
        brief(name).fit(X, y)


@every_model
def test_same_seed_same_bits_whatever_ran_before(name):
    X, _ = toy()
    first = fitted(name).predict_proba(X)
    other = next(other for other in models() if other != name)
    brief(other).fit(*toy(2)).predict_proba(toy(2)[0])
    np.random.default_rng(0).random()
    np.random.rand(3)  # noqa: NPY002 - disturbing the global generator is the point
    copy = clone(brief(name))
    assert np.array_equal(copy.fit(*toy()).predict_proba(X), first)


@every_model
def test_selection_matches_the_registry(name):
    X, _ = toy()
    model = fitted(name)
    selects = models()[name].selects
    assert hasattr(model, "select") == (selects != "none")
    if selects == "none":
        return
    mask = model.select(X[:7])
    assert mask.shape == (7, X.shape[1]) and mask.dtype == bool
    assert mask.any()
    if selects == "global":
        assert (mask == mask[0]).all()


@every_model
def test_selectors_find_the_informative_features(name):
    if models()[name].selects == "none":
        pytest.skip("selects no features")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30)).astype(np.float32)
    y = (X[:, 3] + X[:, 17] > 0).astype(int)
    mask = build(name).fit(X[:160], y[:160], eval_set=(X[160:], y[160:])).select(X)
    if name in MAY_MISS_A_FEATURE:
        assert mask[:, [3, 17]].mean() > 2 * mask.mean()
    else:
        assert mask[:, [3, 17]].mean() > 0.9


@every_model
def test_one_feature(name):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 1)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    model = build(name).fit(X, y)
    proba = model.predict_proba(X)
    assert proba.shape == (60, 2)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1, atol=1e-5)
    if name not in MAY_LOSE_THE_ONLY_FEATURE:
        assert (model.predict(X) == y).mean() > 0.9


@every_model
def test_one_class_is_refused(name):
    X, _ = toy()
    with pytest.raises(ValueError, match="class"):
        build(name).fit(X, np.zeros(len(X), dtype=int))


@pytest.mark.parametrize(
    "name",
    [pytest.param(m, marks=pytest.mark.slow) if m in SLOW else m for m in models()],
)
def test_scikit_learn_contract(name):
    model = build(name, **QUICKER.get(name, {}))
    check_estimator(model, expected_failed_checks=EXPECTED_FAILURES.get(name, {}))
