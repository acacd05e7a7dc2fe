"""Any scikit-learn classifier by its place: called as it wants to be, tried once, checked on demand."""

import json
from collections import Counter

import numpy as np
import pytest
from outside import logistic
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from benchmark.data.load import load
from benchmark.protocol.registry import data_ref, model_ref
from benchmark.protocol.spec import UserError
from benchmark.protocol.splits import make_split, scaled
from benchmark.runner import estimator
from benchmark.runner.records import Store


def plain(model, repeat=0):
    """Test balanced accuracy and AUROC of a classifier on colon, by scikit-learn alone."""
    colon = load(data_ref("colon"))
    for fold in range(5):
        parts = scaled(colon.X, colon.y, make_split(colon.y, repeat, fold), "standard")
        train, _, test = parts
        model.fit(train.X, train.y)
        order = (
            model.predict_proba(test.X)[:, 1]
            if hasattr(model, "predict_proba")
            else model.decision_function(test.X)
        )
        yield (
            balanced_accuracy_score(test.y, model.predict(test.X)),
            roc_auc_score(test.y, order),
        )


def recorded(results, model):
    records = [r for r in Store(results).scan() if r["spec"]["model"] == model]
    return [
        (r["scores"]["test"]["balanced_accuracy"], r["scores"]["test"]["auroc"]) for r in records
    ]


def test_classifiers_of_scikit_learn_equal_a_plain_script(inside, tmp_path):
    names = "sklearn.naive_bayes:GaussianNB,sklearn.svm:LinearSVC:C=0.1,outside:logistic:C=0.5"
    done = inside("run", "--models", names, "--datasets", "colon", "--repeats", "1",
                  "--results", tmp_path, "--jobs", "0", "--format", "json", check=0)  # fmt: skip
    assert [row["model"] for row in json.loads(done.stdout)] == [
        "sklearn.naive_bayes.GaussianNB",
        "sklearn.svm.LinearSVC:C=0.1",
        "outside.logistic:C=0.5",
    ]
    seeded = estimator.seeded(logistic(0.5), 42)
    assert seeded.get_params()["logisticregression__random_state"] == 42
    for name, model in (
        ("sklearn.naive_bayes.GaussianNB", GaussianNB()),
        ("sklearn.svm.LinearSVC", LinearSVC(C=0.1, random_state=42)),
        ("outside.logistic", seeded),
    ):
        assert np.allclose(recorded(tmp_path, name), list(plain(model)), atol=1e-12), name


def test_a_pipeline_is_copied_for_every_run_and_takes_settings(inside, tmp_path):
    from outside import pipeline

    inside("run", "--models", "outside:pipeline:selectkbest__k=5", "--datasets", "colon",
           "--repeats", "1", "--results", tmp_path, "--jobs", "0", check=0)  # fmt: skip
    assert not hasattr(pipeline[0], "scores_"), "the user's own object was fitted"
    ours = recorded(tmp_path, "outside.pipeline")
    assert np.allclose(ours, list(plain(pipeline.set_params(selectkbest__k=5))), atol=1e-12)
    pipeline.set_params(selectkbest__k=20)


def test_evaluation_sets_go_to_those_who_take_them():
    seen = {}

    class Takes:
        def fit(self, X, y, eval_set=None):
            seen["pair"] = eval_set

    class Kwargs:
        def fit(self, X, y, **params):
            seen["kwargs"] = params

    from benchmark.runner.contract import made_up

    train, valid, _ = made_up(2)
    for model in (Takes(), Kwargs()):
        estimator.fit(model, train, valid)
    assert seen["pair"][0] is valid.X and seen["kwargs"] == {}


@pytest.mark.parametrize("name", ["xgboost.XGBClassifier", "lightgbm.LGBMClassifier"])
def test_libraries_that_want_a_list_of_sets_get_one(name):
    from benchmark.runner.contract import made_up

    entry, _ = model_ref(f"{name}:n_estimators=2")
    from benchmark.protocol.registry import load_factory

    model = estimator.make(load_factory(entry), {"n_estimators": 2}, 0)
    train, valid, test = made_up(2)
    estimator.fit(model, train, valid)
    assert estimator.ranking(model, test.X).shape == (12, 2)


def test_after_an_error_the_other_runs_are_not_begun(inside, tmp_path):
    done = inside("run", "--models", "outside:Broken,knn", "--datasets", "colon",
                  "--results", tmp_path, "--jobs", "0", check=1)  # fmt: skip
    assert done.stderr.count("a slip in fit") == 2, "when it happens, and among the failures"
    assert "the first run failed, so the other 24 are left out" in done.stderr
    assert "knn" in done.stdout
    found = Counter(r["spec"]["model"] for r in Store(tmp_path).scan())
    assert found == {"outside.Broken": 1}, "and knn's are shipped"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sklearn.naive_bayes:GaussNB", "has no class 'GaussNB'"),
        ("nowhere:Model", "needs the package 'nowhere'"),
        ("outside:number", "neither a class, nor a function"),
        ("sklearn.naive_bayes:GaussianNB:alpha=1", "Unknown setting of"),
        ("knnn", "Did you mean 'knn'"),
        ("svm:rbf", "Cannot read 'rbf'"),
        ("a..b", "Unknown model"),
    ],
)
def test_slips_are_named(name, message):
    with pytest.raises(UserError, match=message):
        model_ref(name)


def test_check_model_tells_what_is_wrong(inside):
    good = inside("check-model", "sklearn.naive_bayes:GaussianNB", "outside:pipeline", check=0)
    assert good.stdout.count("fits the contract") == 2
    bad = inside("check-model", "outside:Careless", check=1).stdout
    for point in ("probabilities sum to one", "left as they were", "same predictions"):
        assert any(point in line and "fails" in line for line in bad.splitlines()), point
    assert "a slip in fit" in inside("check-model", "outside:Broken", check=1).stdout


def test_probabilities_that_are_not_there_are_not_looked_for_again(inside, tmp_path):
    words = ("run", "--models", "sklearn.svm:LinearSVC", "--datasets", "colon", "--repeats", "1",
             "--keep", "proba", "--results", tmp_path, "--jobs", "0")  # fmt: skip
    inside(*words, check=0)
    stamps = [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*.json"))]
    inside(*words, check=0)
    assert stamps == [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*.json"))]
