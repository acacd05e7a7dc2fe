"""What a model answers: odd containers of right answers are taken, wrong answers are named."""

import numpy as np
import pandas as pd
import pytest

from benchmark.protocol.registry import data_ref, make_spec, model
from benchmark.protocol.spec import UserError
from benchmark.runner import answers
from benchmark.runner.execute import execute

CODES = [0, 2, 1, 0]
SHARES = [[0.5, 0.25, 0.25], [0, 0, 1], [0.25, 0.5, 0.25], [1, 0, 0]]


@pytest.mark.parametrize(
    "found",
    [
        CODES,
        np.array(CODES)[:, None],
        np.array(CODES, dtype=float),
        np.array(CODES, dtype=object),
        np.array(CODES, dtype=np.uint8),
        pd.Series(CODES),
        pd.Series(CODES, dtype="category"),
    ],
)
def test_classes_in_any_container(found):
    assert answers.classes(found, 4, 3, "predict").tolist() == CODES
    assert answers.classes(found, 4, 3, "predict").dtype == np.int64


def test_true_and_false_are_two_classes():
    assert answers.classes(np.array([True, False]), 2, 2, "predict").tolist() == [1, 0]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([0, -1, 1, 0], "gave -1, expected one class of 0 to 2"),
        ([0, 3, 1, 0], "gave 3, expected"),
        ([0, 0.5, 1, 0], "gave 0.5, expected"),
        (["0", "1", "2", "0"], "gave '0', expected"),
        (np.array(["low", 1, 2, 0], dtype=object), "gave 'low', expected"),
        (np.array([None, 1, 2, 0], dtype=object), "gave None, expected"),
        (SHARES, r"shape \(4, 3\), expected shape \(4,\)"),
        (CODES[:3], r"shape \(3,\), expected shape \(4,\)"),
        (None, "gave None, expected shape"),
        ([[0], [1, 2], [0], [0]], "no array"),
    ],
)
def test_what_is_no_class(found, message):
    with pytest.raises(UserError, match=f"^predict gave .*{message}|^predict {message}"):
        answers.classes(found, 4, 3, "predict")


def test_what_is_not_finite_is_told_as_such():
    with pytest.raises(FloatingPointError, match="predict gave .*nan"):
        answers.classes([0, np.nan, 1, 0], 4, 3, "predict")
    with pytest.raises(FloatingPointError, match="predict_proba gave .*inf"):
        answers.probabilities([[np.inf, 0, 0]] * 4, 4, 3, "predict_proba")


@pytest.mark.parametrize(
    "found",
    [
        SHARES,
        np.array(SHARES, dtype=np.float32),
        np.array(SHARES, dtype=object),
        pd.DataFrame(SHARES),
        np.array(SHARES) + [1e-9, 0, -1e-9],
    ],
)
def test_probabilities_in_any_container(found):
    assert np.allclose(answers.probabilities(found, 4, 3, "predict_proba"), SHARES)


def test_the_precision_stays():
    exact = np.array(SHARES, dtype=np.float32)
    assert answers.probabilities(exact, 4, 3, "predict_proba") is exact


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (np.ones(4), r"shape \(4,\), expected shape \(4, 3\)"),
        (np.ones((4, 1)), r"shape \(4, 1\), expected shape \(4, 3\)"),
        (np.full((4, 2), 0.5), r"shape \(4, 2\)"),
        (np.full((4, 4), 0.25), r"shape \(4, 4\)"),
        ([[1.2, -0.1, -0.1]] * 4, "gave -0.1, expected probabilities, none of them negative"),
        (np.ones((4, 3)), "rows that sum to 3 to 3"),
        ([["a", "b", "c"]] * 4, "gave 'a', expected numbers"),
    ],
)
def test_what_are_no_probabilities(found, message):
    with pytest.raises(UserError, match=f"predict_proba gave .*{message}|predict_proba {message}"):
        answers.probabilities(found, 4, 3, "predict_proba")


def test_decision_values_need_not_be_probabilities():
    assert answers.columns([[-3, 5]] * 4, 4, 2, "decision_function").tolist() == [[-3, 5]] * 4


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (np.full((4, 5), 0.5), "type float64, expected true or false.*mask > 0.5"),
        (np.ones((3, 5), dtype=bool), r"shape \(3, 5\), expected shape \(4, 5\)"),
        (np.ones(5, dtype=bool), r"shape \(5,\)"),
    ],
)
def test_what_is_no_selection(found, message):
    with pytest.raises(UserError, match=f"select gave .*{message}"):
        answers.mask(found, (4, 5), "select")


def test_a_selection_may_be_a_list():
    assert answers.mask([[True, False]], (1, 2), "select").dtype == bool


def score(**params):
    """The balanced accuracy of one run on four classes, or what is wrong with it."""
    spec = make_spec(model("outside.Answers"), data_ref("vehicle"), params, 0, 0)
    record = execute(spec).record
    if record["status"] == "ok":
        return record["scores"]["test"]["balanced_accuracy"]
    return record["status"], record["error"]["message"]


@pytest.mark.parametrize("predict", ["column", "float", "object", "list"])
def test_a_run_scores_what_is_right(predict):
    assert score(predict=predict) == score() > 0.5


@pytest.mark.parametrize(
    ("params", "kind", "message"),
    [
        ({"predict": "negative"}, "error", "Answers.predict gave -1, expected one class"),
        ({"predict": "nan"}, "diverged", "Answers.predict gave numbers that are not finite (nan)"),
        ({"predict": "large"}, "error", "Answers.predict gave 77, expected one class"),
        ({"proba": "one column"}, "error", "Answers.predict_proba gave an array of shape"),
        ({"proba": "negative"}, "error", "none of them negative"),
        ({"proba": "sums"}, "error", "rows that sum to"),
        ({"select": "float"}, "error", "Answers.select gave values of type float"),
        ({"select": "three rows"}, "error", "Answers.select gave an array of shape (3,"),
        ({"also": "negative"}, "error", "Answers.also_predict['second'] gave -1"),
    ],
)
def test_a_run_names_what_is_wrong(params, kind, message):
    found = score(**params)
    assert found[0] == kind and message in found[1], found
