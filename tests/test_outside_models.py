"""Any scikit-learn classifier by its place: called as it wants to be, tried once, checked on demand."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import psutil
import pytest
from conftest import ROOT
from outside import logistic
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from benchmark.data.load import load
from benchmark.protocol.registry import data_ref, model_ref
from benchmark.protocol.spec import UserError
from benchmark.protocol.splits import make_split, scaled
from benchmark.runner import estimator
from benchmark.runner.records import Store, outdated


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
    assert np.array_equal(seen["pair"][0], valid.X) and seen["kwargs"] == {}


@pytest.mark.parametrize("name", ["xgboost.XGBClassifier", "lightgbm.LGBMClassifier"])
def test_libraries_that_want_a_list_of_sets_get_one(name):
    from benchmark.runner.contract import made_up

    entry, _ = model_ref(f"{name}:n_estimators=2")
    from benchmark.protocol.registry import load_factory

    model = estimator.make(load_factory(entry), {"n_estimators": 2}, 0)
    train, valid, test = made_up(2)
    estimator.fit(model, train, valid)
    assert estimator.ranking(model, test.X, 2).shape == (12, 2)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("order", ["backwards", "first seen"])
def test_columns_follow_the_models_own_order_of_classes(order, n_classes):
    from outside import Order

    from benchmark.runner.contract import made_up

    train, valid, test = made_up(n_classes)
    assert list(dict.fromkeys(train.y)) != list(range(n_classes)), (
        "the made-up labels are not sorted"
    )
    plain = KNeighborsClassifier(5).fit(train.X, train.y).predict_proba(test.X)
    other = Order(order)
    estimator.fit(other, train, valid)
    assert np.array_equal(estimator.ranking(other, test.X, n_classes), plain)


def test_pairs_of_classes_are_not_taken_for_classes():
    from benchmark.runner.contract import made_up

    train, valid, test = made_up(3)
    for model in (SVC(decision_function_shape="ovo"), make_pipeline(SVC(decision_function_shape="ovo"))):  # fmt: skip
        estimator.fit(model, train, valid)
        with pytest.raises(UserError, match="='ovo', and a column per class is needed"):
            estimator.ranking(model, test.X, 3)
    assert estimator.ranking(SVC().fit(train.X, train.y), test.X, 3).shape == (18, 3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_check_notes_columns_in_an_order_that_nobody_knows(n_classes):
    from benchmark.runner.contract import check

    def notes(name):
        return [one.detail for one in check(name, n_classes) if "goes with predict" in one.what]

    [note] = notes("outside:Order:classes=untold")
    assert "columns are in the order of classes_" in note
    assert not notes("outside:Order") + notes("knn") + notes("sklearn.svm:LinearSVC")


def test_after_an_error_the_other_runs_are_not_begun(inside, tmp_path):
    done = inside("run", "--models", "outside:Broken,knn", "--datasets", "colon",
                  "--results", tmp_path, "--jobs", "0", check=1)  # fmt: skip
    assert done.stderr.count("a slip in fit") == 2, "when it happens, and among the failures"
    assert "the first run failed, so the other 24 are left out" in done.stderr
    assert "knn" in done.stdout
    found = Counter(r["spec"]["model"] for r in Store(tmp_path).scan())
    assert found == {"outside.Broken": 1}, "and knn's are shipped"


def test_a_failing_run_points_to_the_check(inside, tmp_path):
    done = inside("run", "--models", "outside:Broken,knn", "--datasets", "colon", "--repeats", "1",
                  "--results", tmp_path, "--jobs", "0", check=1)  # fmt: skip
    assert done.stderr.count("`python -m benchmark check-model outside:Broken` tries it") == 1


def test_any_class_takes_the_seed_of_its_runs():
    assert model_ref("outside:Answers:random_state=7")[1] == {"random_state": 7}


def test_the_installed_script_finds_models_of_the_working_folder(tmp_path):
    (tmp_path / "mine.py").write_text("from sklearn.naive_bayes import GaussianNB as Mine\n")
    script = "import sys; sys.path[:] = [p for p in sys.path if p]; from benchmark.__main__ import main; "  # fmt: skip
    words = ["check", "run", "--models", "mine:Mine", "--datasets", "syn1", "--repeats", "1",
             "--results", str(tmp_path / "results"), "--jobs", "0"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", f"{script}sys.argv = {words}; sys.exit(main())"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_after_an_edit_of_its_file_runs_are_done_again(cli, tmp_path):
    """Else a cell would show what a method was, or an average of two methods."""
    method = """
import numpy as np
from sklearn.naive_bayes import GaussianNB

class Mine(GaussianNB):
    def predict(self, X):
        return {predict}
"""
    file = tmp_path / "edited.py"
    words = (
        "run",
        "--models",
        "edited:Mine",
        "--datasets",
        "syn1",
        "--results",
        tmp_path / "own",
        "--jobs",
        "1",
    )
    here = {"cwd": tmp_path}

    def scores():
        records = [r for r in Store(tmp_path / "own").scan() if r["status"] == "ok"]
        return {r["key"][-4:]: r["scores"]["test"]["balanced_accuracy"] for r in records}

    file.write_text(method.format(predict="super().predict(X)"))
    done = cli(*words, "--repeats", "1", **here)
    before = scores()
    assert done.returncode == 0 and len(before) == 5 and set(before.values()) != {0.5}
    assert "changed" not in cli(*words, "--repeats", "1", **here).stderr
    file.write_text(method.format(predict="np.zeros(len(X), int)"))
    done = cli(*words, "--repeats", "2", **here)
    assert done.stderr.count("edited:Mine: its file has changed, so runs of the older one") == 1
    assert list(scores().values()) == [0.5] * 10
    # One that fails now is told, and what an older file gave does not stay for it.
    file.write_text(method.format(predict="1 / 0"))
    done = cli(*words, "--repeats", "1", **here)
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr
    assert "r0f0" not in scores()


def test_an_edited_method_is_loaded_anew_in_a_process_that_lives_on(inside, tmp_path, monkeypatch):
    """A notebook, or a worker of a cluster; and `rank` does not count what the older file did."""
    file = tmp_path / "edited_here.py"
    monkeypatch.syspath_prepend(tmp_path)
    words = ("--models", "edited_here:Mine,knn", "--datasets", "syn1", "--jobs", "0", "--results",
             tmp_path / "own")  # fmt: skip
    found = []
    for imported in ("naive_bayes import GaussianNB", "dummy import DummyClassifier"):
        file.write_text(f"from sklearn.{imported} as Mine\n")
        inside("run", *words, check=0)
        mine = [r for r in Store(tmp_path / "own").scan() if "edited" in r["key"]]
        assert len(mine) == 25 and not any(map(outdated, mine))
        found.append({r["scores"]["test"]["balanced_accuracy"] for r in mine})
    assert len(found[0]) > 5 and found[1] == {0.5}
    done = inside("rank", *words, "--budget", "none", "--to", tmp_path / "to", check=0)
    assert "Mine" in done.stdout
    file.write_text(file.read_text() + "# another file\n")
    assert all(map(outdated, mine))
    done = inside("rank", *words, "--budget", "none", "--to", tmp_path / "to", check=2)
    assert "edited_here.Mine on syn1: 25 not run" in done.stderr or "not run yet" in done.stderr


def test_a_method_that_writes_into_its_samples_spoils_no_other_answer():
    class Doubles(GaussianNB):
        def predict(self, X):
            found = super().predict(X)
            X *= 2
            return found

        def fit(self, X, y):
            super().fit(X, y)
            X *= 0
            return self

    colon = load(data_ref("colon"))
    parts = scaled(colon.X, colon.y, make_split(colon.y, 0, 0), "standard")
    train, valid, test = parts
    before = test.X.copy(), train.X.copy()
    model = Doubles()
    estimator.fit(model, train, valid)
    estimator.predict(model, test.X, 2)
    assert np.array_equal(test.X, before[0]) and np.array_equal(train.X, before[1])
    order = estimator.ranking(model, test.X, 2)
    assert np.allclose(order, GaussianNB().fit(train.X, train.y).predict_proba(before[0]))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "sklearn.naive_bayes:GaussNB",
            "'sklearn.naive_bayes:GaussNB': .* has no class 'GaussNB'. Did you mean 'GaussianNB'",
        ),
        ("outside:nothere", "It has: Answers, Broken, .*, logistic, nothing, pipeline"),
        ("nowhere:Model", "'nowhere:Model': there is no module 'nowhere'.* working folder"),
        ("needy:Model", "it needs the package 'notinstalled', which is not installed: pip"),
        ("outside", "'outside' is a module, and a model is a class of it.* outside:MyModel"),
        ("sklearn.svm", "'sklearn.svm' is a module, .* sklearn.svm:MyModel"),
        ("outside.py", "'outside.py' is a file, .* outside:MyModel"),
        ("tests/outside.py", "is a file, .* tests.outside:MyModel"),
        ("outside.py:Broken", "named without .py, as in outside:Broken"),
        ("outside:number", "neither a class, nor a function.*its type is int"),
        ("sklearn.naive_bayes:GaussianNB:alpha=1", "Unknown setting of sklearn.naive_bayes:Gauss"),
        ("outside:Answers:alpha=1", "Valid are: predict, proba, select, also.$"),
        ("outside:Unread:alpha=1", "its settings cannot be read: RuntimeError: no licence"),
        ("outside:Answers:random_state=-1", "a whole number from 0 on"),
        ("knnn", "Did you mean 'knn'"),
        ("svm:rbf", "Cannot read 'rbf'"),
        ("a..b", "Unknown model"),
    ],
)
def test_slips_are_named(name, message, tmp_path, monkeypatch):
    (tmp_path / "needy.py").write_text("import notinstalled")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=message):
        model_ref(name)


@pytest.fixture
def check(inside, monkeypatch):
    """What `check-model` prints of each model: its verdict, and the points that fail by their names."""
    # Own models are found by the worker in the working folder, or by this.
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))

    def run(*names, code=1, words=()):
        found, verdicts, failing = {}, {}, {}
        done = inside("check-model", *names, *words, check=code)
        for line in done.stdout.splitlines():
            if not line.startswith(" "):
                name, _, verdict = line.rpartition(": ")
                verdicts[name], failing = verdict, found.setdefault(name, {})
            elif line.startswith("  fails"):
                what, _, detail = line.removeprefix("  fails  ").partition(": ")
                failing[what + ": " + detail.partition(": ")[0]] = detail.partition(": ")[2]
        return [(verdicts[name], found[name]) for name in names], done.stderr

    return run


def test_check_model_agrees_with_runs(check):
    names = [
        "sklearn.naive_bayes:GaussianNB",
        "sklearn.svm:LinearSVC",
        "outside:pipeline",
        "catboost.CatBoostClassifier:iterations=2",  # its predictions are a column
        "outside:Answers:predict=float:proba=list:select=list:also=object",
        "knn",
    ]
    found, said = check(*names, code=0)
    assert found == [("fits the contract", {})] * len(names)
    assert "knn: trying it on data of 3 classes" in said


CLASS = "3 classes: predict gives a class per sample"
PROBA = "3 classes: predict_proba gives probabilities, a column per class"
SELECT = "3 classes: select gives true or false per sample and feature"
MADE, FIT = "3 classes: it can be made", "3 classes: fit"
SAME = "3 classes: the same seed gives the same predictions"
FAULTS = {
    "outside:Answers:predict=negative": (CLASS, "gave -1, expected one class"),
    "outside:Answers:predict=nan": (CLASS, "(nan)"),
    "outside:Answers:proba=nan": (PROBA, "(nan)"),
    "outside:Answers:proba=negative": (PROBA, "none of them negative"),
    "outside:Answers:proba=flat": (PROBA, "gave an array of shape (18,), expected shape (18, 3)"),
    "outside:Answers:select=float": (SELECT, "true or false"),
    "outside:Broken": (FIT, "RuntimeError: a slip in fit"),
    "outside:Exits": (FIT, "SystemExit: 0"),
    "outside:Careless": (SAME, "take random_state"),
    "outside:nothing": (MADE, "There is no NoneType.fit"),
    "outside:Unmade": (MADE, "RuntimeError: no licence"),
    "sklearn.ensemble:VotingClassifier": (MADE, "missing 1 required positional argument"),
}


def test_check_model_tells_what_is_wrong(check):
    found, _ = check(*FAULTS)
    for name, (point, message), (verdict, failing) in zip(
        FAULTS, FAULTS.values(), found, strict=True
    ):
        assert message in failing.get(point, "it holds"), name
        if name != "outside:Careless":  # which fails by everything
            assert {what.partition(": ")[2] for what in failing} == {point.partition(": ")[2]}, name
            assert verdict == "2 points fail", name


def test_check_model_survives_the_model(check):
    [(verdict, failing)], _ = check("outside:Dies")
    assert verdict == "1 point fails"
    assert failing == {"2 classes: the worker process died (SIGSEGV)": ""}
    [(_, failing)], said = check("outside:Sleeps", words=["--timeout", "1"])
    assert failing == {"2 classes: stopped at its time limit of 1 s": ""}
    assert "trying it on data of 2 classes, for 1 s at most" in said


def test_ctrl_c_ends_a_model_that_ignores_it():
    words = [sys.executable, "-m", "benchmark", "check-model", "outside:Sleeps"]
    check = subprocess.Popen(words, cwd=ROOT / "tests", stderr=subprocess.PIPE, text=True)
    assert "trying it" in check.stderr.readline()
    [worker] = wait_for(lambda: psutil.Process(check.pid).children())
    time.sleep(3)  # in fit by now
    check.send_signal(signal.SIGINT)
    assert check.wait(20) == 130
    assert psutil.wait_procs([worker], timeout=20)[1] == []


def wait_for(children):
    while not (found := children()):
        time.sleep(0.05)
    return found


def test_a_wrong_setting_is_a_failing_point(check, tmp_path, monkeypatch):
    (tmp_path / "own.toml").write_text(
        "[mine]\nclass = 'outside:Answers'\nparams = { depht = 3 }\n"
    )
    monkeypatch.setenv("BENCHMARK_MODELS", str(tmp_path / "own.toml"))
    [(_, failing)], _ = check("mine")
    assert "unexpected keyword argument 'depht'" in failing[MADE]


def test_probabilities_that_are_not_there_are_not_looked_for_again(inside, tmp_path):
    words = ("run", "--models", "sklearn.svm:LinearSVC", "--datasets", "colon", "--repeats", "1",
             "--keep", "proba", "--results", tmp_path, "--jobs", "0")  # fmt: skip
    inside(*words, check=0)
    stamps = [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*.json"))]
    inside(*words, check=0)
    assert stamps == [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*.json"))]
