"""What a record holds beside scores: simple models on masked data, other predictions, composition."""

import numpy as np
import pytest

from benchmark.protocol.registry import data_ref, make_spec, models
from benchmark.protocol.splits import Part
from benchmark.runner import masked
from benchmark.runner.execute import execute
from models.knn import KNN


class Mask:
    def __init__(self, mask):
        self.mask = mask

    def masks(self, X):
        return np.broadcast_to(self.mask, X.shape)


def parts(rng, n=60):
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 30)).astype(np.float32)
    X[:, 0] += 3 * y
    return [Part(X[i::3], y[i::3]) for i in range(3)]


def test_an_open_mask_changes_nothing_and_the_right_one_helps():
    train, valid, test = parts(np.random.default_rng(0))
    opened = masked.scores(Mask(np.ones(30, np.float32)), train, valid, test)
    assert opened.keys() == masked.SIMPLE.keys()
    for k, score in zip(opened["knn"]["n_neighbors"], opened["knn"]["test"], strict=True):
        plain = KNN(n_neighbors=k).fit(train.X, train.y).predict(test.X)
        recalls = [np.mean(plain[test.y == c] == c) for c in (0, 1)]
        assert score == pytest.approx(np.mean(recalls))
    only_signal = np.zeros(30, np.float32)
    only_signal[0] = 0.5
    right = masked.scores(Mask(only_signal), train, valid, test)
    closed = masked.scores(Mask(1 - np.ceil(only_signal)), train, valid, test)
    for name in masked.SIMPLE:
        assert max(right[name]["test"]) > 0.85
        assert closed[name]["test"][-1] < 0.75


@pytest.fixture(scope="module")
def record():
    quick = {"steps": 150, "hidden": 20}
    return execute(make_spec(models()["protogate"], data_ref("syn1"), quick, 0, 0)).record


def test_protogate_records_what_tables_11_21_and_23_need(record):
    assert record["status"] == "ok"
    assert 0 <= record["also"]["sort=neural"] <= 1
    assert record["transfer"]["svm"]["C"] == [0.001, 0.01, 0.1, 1.0, 10.0]
    shares = list(record["selection"]["composition"].values())
    assert shares[0] == 1 and shares == sorted(shares, reverse=True)
    assert record["selection"]["median"] >= 0


def test_models_without_masks_record_none():
    record = execute(make_spec(models()["knn"], data_ref("syn1"), {}, 0, 0)).record
    assert (record["transfer"], record["also"]) == (None, {})
