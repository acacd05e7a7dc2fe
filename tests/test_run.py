"""One run: deterministic, independent of what ran before, and the protocol's own numbers."""

import io
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_class_weight

from benchmark.data.load import load
from benchmark.protocol.plan import Cell, Protocol
from benchmark.protocol.registry import data_ref, load_class, make_spec, model_ref, models
from benchmark.protocol.spec import PARTS, UserError
from benchmark.protocol.splits import make_split, scaled
from benchmark.runner import machine, metrics
from benchmark.runner.estimator import predict
from benchmark.runner.execute import execute
from benchmark.runner.verify import differences


def spec(model="knn", data="colon", repeat=0, fold=0, **params):
    return make_spec(models()[model], data_ref(data), params, repeat, fold)


@pytest.mark.parametrize("model", list(models()))
def test_a_run_repeats_to_the_bit(model):
    quick = {"catboost": {"iterations": 10}, "rf": {"n_estimators": 10}, "lasso": {"max_iter": 20},
             "tabnet": {"epochs": 3}}  # fmt: skip
    short = {"steps": 60} if "steps" in models()[model].params else quick.get(model, {})
    made = spec(model, "syn1", **short)
    first = execute(made)
    assert first.ok, first.record
    execute(spec("rf", "colon", n_estimators=5))
    assert differences(first.record, execute(made).record) == []


def test_a_seed_is_named_like_a_setting_and_leaves_the_splits_alone():
    def first(name):
        entry, overrides = model_ref(name)
        return Cell(entry, data_ref("syn1"), overrides).specs({}, Protocol())[0]

    usual, other = first("mlp:steps=60"), first("mlp:steps=60:random_state=7")
    assert first("mlp:steps=60:random_state=42") == usual
    assert (other.seed, other.params) == (7, usual.params) and other.key != usual.key
    here, there = execute(usual).record, execute(other).record
    assert here["split"] == there["split"]
    assert here["scores"] != there["scores"]
    for wrong in ("-1", "1.5", "true", "none"):
        with pytest.raises(UserError, match="random_state of mlp is a whole number"):
            model_ref(f"mlp:random_state={wrong}")


def test_record_describes_the_run():
    record = execute(spec("ridge")).record
    assert record["status"] == "ok"
    assert record["data"]["shape"] == [62, 2000]
    assert sum(record["split"][part] for part in PARTS) == 62
    for part in PARTS:
        assert 0 <= record["scores"][part]["balanced_accuracy"] <= 1
    assert record["model"]["parameters"] == 2001
    assert record["model"]["converged"] is True
    meta = record["meta"]
    assert meta["seconds"]["fit"] > 0 and meta["predict_ms_per_sample"] > 0
    assert meta["seconds"]["total"] >= meta["seconds"]["fit"]
    assert meta["memory_mb"]["peak"] > 10
    assert meta["environment"]["libraries"]["scikit-learn"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can measure a peak anew")
def test_memory_that_an_earlier_run_gave_back_counts_again():
    def some():  # 40 MB in pieces that are too small to be returned to the system one by one
        return [bytearray(100_000) for _ in range(400)]

    earlier = some()
    still_used = bytearray(100_000)  # behind them, so that the heap does not simply end earlier
    del earlier
    before = machine.reset_peak_memory()
    again = some()
    assert 35 < machine.peak_memory() - before < 60
    del still_used, again


def test_arrays_are_kept_on_request():
    outcome = execute(spec("rf", "syn1", n_estimators=10), keep=("proba", "selected"))
    arrays = np.load(io.BytesIO(outcome.arrays))
    split = make_split(load(data_ref("syn1")).y, 0, 0)
    assert np.array_equal(arrays["rows"], split.test)
    mask = np.unpackbits(arrays["selected"], axis=1, count=int(arrays["n_features"]))
    assert mask.sum(axis=1).mean() == outcome.record["selection"]["mean"]
    assert arrays["proba"].shape == (40, 2)
    assert execute(spec("knn", "syn1")).arrays is None


def test_splits_are_the_papers_sizes_and_cover_every_row():
    y = load(data_ref("colon")).y
    seen = set()
    for repeat in range(5):
        tested = []
        for fold in range(5):
            split = make_split(y, repeat, fold)
            rows = np.concatenate([split.train, split.valid, split.test])
            assert sorted(rows) == list(range(62))
            assert len(split.valid) == 5 and len(split.test) in (12, 13)
            tested += split.test.tolist()
            seen.add(split.sha256)
        assert sorted(tested) == list(range(62))
    assert len(seen) == 25


def test_scaling_uses_the_training_rows_only():
    data = load(data_ref("vehicle"))
    split = make_split(data.y, 0, 0)
    train, valid, test = scaled(data.X, data.y, split, "standard")
    np.testing.assert_allclose(train.X.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(train.X.std(axis=0), 1, atol=1e-4)  # population standard deviation
    by_hand = (data.X[split.test] - data.X[split.train].mean(0)) / data.X[split.train].std(0)
    np.testing.assert_allclose(test.X, by_hand, rtol=1e-4, atol=1e-4)
    assert test.X.dtype == np.float32
    raw, _, _ = scaled(data.X, data.y, split, "none")
    np.testing.assert_array_equal(raw.X, data.X[split.train].astype(np.float32))
    assert len(valid.y) == len(split.valid)


def test_labels_that_cannot_be_split_are_explained():
    with pytest.raises(UserError, match="classes of"):
        make_split(np.array([0] * 20 + [1] * 3), 0, 0)


@given(
    st.lists(st.integers(3, 40), min_size=2, max_size=6),
    st.floats(0.05, 0.5),
    st.integers(0, 2**32 - 1),
)
def test_without_folds_the_rows_are_cut_as_scikit_learn_cuts_them(sizes, valid_size, seed):
    """To the bit: models that were kept before are fitted on the same rows in the same order."""
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    try:
        plain = train_test_split(
            np.arange(len(y)), test_size=valid_size, stratify=y, random_state=0
        )
    except ValueError:
        with pytest.raises(UserError, match="into a training and a validation part"):
            make_split(y, 0, 0, None, valid_size)
        return
    split = make_split(y, 0, 0, None, valid_size)
    assert len(split.test) == 0
    for ours, theirs in zip((split.train, split.valid), plain, strict=True):
        assert ours.dtype == theirs.dtype and ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("folds", [1, 5, None])
def test_where_test_rows_are_named_no_message_speaks_of_folds(folds):
    y, test = np.array([0] * 20 + [1, 1]), np.array([False] * 20 + [True, False])
    with pytest.raises(UserError, match=r"of \[20, 1\] samples") as error:
        make_split(y, 0, 0, folds, test=test)
    assert "fold" not in str(error.value)
    assert "Every class needs at least 2 samples" in str(error.value)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores_agree_with_scikit_learn(n_classes):
    rng = np.random.default_rng(n_classes)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 60)])
    proba = np.round(rng.dirichlet(np.ones(n_classes), len(y)), 1)  # rounded, so that ties occur
    predicted = proba.argmax(axis=1)
    ours = metrics.scores(y, predicted, proba, proba.shape[1])
    assert ours["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, predicted))
    assert ours["accuracy"] == pytest.approx((y == predicted).mean())
    assert ours["weighted_f1"] == pytest.approx(f1_score(y, predicted, average="weighted"))
    area = np.mean(
        [roc_auc_score(y == c, proba[:, c]) for c in range(n_classes)][
            -n_classes + (n_classes == 2) :
        ]
    )
    assert ours["auroc"] == pytest.approx(area)


def test_auroc_is_null_when_a_class_is_absent():
    proba = np.full((4, 3), 1 / 3)
    assert metrics.scores(np.array([0, 0, 1, 1]), np.zeros(4, int), proba, 3)["auroc"] is None


def test_selection_summary_by_hand():
    selected = np.array([[1, 1, 0, 0], [1, 0, 0, 0]], dtype=bool)
    truth = np.array([[1, 0, 0, 0], [1, 1, 0, 0]], dtype=bool)
    summary = metrics.selection(selected, {"branch": truth})
    assert summary["mean"] == 1.5 and summary["union"] == 2
    assert summary["std"] == pytest.approx(np.sqrt(0.5))  # over samples, ddof 1
    assert summary["local_sparsity"] == pytest.approx((0 + 1) / (4 * 2))
    assert summary["f1"]["branch"] == pytest.approx(2 * 2 / (3 + 3))


def test_balanced_weights_come_from_the_training_part():
    """n / (C n_c) on the remaining training rows, as scikit-learn's "balanced" computes it."""
    data = load(data_ref("colon"))
    y = data.y[make_split(data.y, 0, 0).train]
    by_hand = len(y) / (2 * np.bincount(y))
    np.testing.assert_allclose(
        compute_class_weight("balanced", classes=np.array([0, 1]), y=y), by_hand
    )


def test_asking_for_the_code_takes_no_lock_of_the_repository(tmp_path):
    """A run that is killed while it asks would leave the lock behind and stop the next commit."""
    for words in (["init"], ["add", "."]):
        (tmp_path / "file").write_text("text")
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True, capture_output=True)
    index = tmp_path / ".git" / "index"
    os.utime(
        tmp_path / "file", (1, 1)
    )  # now the index is out of date, and refreshing it needs the lock
    before = index.read_bytes()
    assert machine._git(tmp_path, "status", "--porcelain") == "A  file"
    assert index.read_bytes() == before


# Predictions


@pytest.mark.parametrize("name, passes", [("knn", 3), ("svm", 3)])
def test_every_part_is_predicted_once(name, passes, monkeypatch):
    Model = load_class(models()[name])
    asked = []
    plain = Model.predict_proba
    monkeypatch.setattr(Model, "predict_proba", lambda s, X: asked.append(len(X)) or plain(s, X))
    spec = make_spec(models()[name], data_ref("syn1"), {}, 0, 0)
    assert execute(spec).ok
    assert len(asked) == passes


def test_a_prediction_of_ones_own_is_not_replaced_by_the_most_probable_class():
    class Contrary(load_class(models()["knn"])):
        def predict(self, X):
            return self.classes_[self.predict_proba(X).argmin(axis=1)]

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    for Model in (Contrary, load_class(models()["knn"]), load_class(models()["svm"])):
        model = Model().fit(X, y)
        predicted, proba = predict(model, X, 2)
        np.testing.assert_array_equal(predicted, model.predict(X))
        assert (proba is None) == (Model is not load_class(models()["knn"]))
