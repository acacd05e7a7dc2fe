"""The methods on their home tasks: generators, measures, and small versions of the experiments."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from benchmark.datasets.home_tasks import TASKS, draw

from benchmark.experiments import fidelity
from benchmark.protocol.registry import models


@pytest.mark.parametrize("task", list(TASKS))
def test_labels_depend_on_the_relevant_features_only(task):
    n_features, first, second = TASKS[task]
    X, y, relevant = draw(task, 4000, 0)
    assert X.shape == (4000, n_features) and set(y) == {0, 1}
    rng = np.random.default_rng(1)
    noise = np.where(relevant, X, rng.normal(size=X.shape))
    for part in filter(None, (first, second)):
        exponent, chosen = part
        rows = relevant[:, chosen].all(axis=1) if second else slice(None)
        np.testing.assert_allclose(exponent(noise[rows]), exponent(X[rows]))
    again = draw(task, 4000, 0)
    assert all(np.array_equal(a, b) for a, b in zip((X, y, relevant), again, strict=True))


def test_known_numbers_of_the_tasks():
    _, _, relevant = draw("switch", 2000, 0)
    assert set(relevant.sum(axis=1)) == {5} and relevant[:, 9].all()
    X, _, relevant = draw("syn4", 2000, 0)
    assert (relevant[:, 0] == (X[:, 10] < 0)).all() and relevant[:, 10].all()
    # P(y = 1) is 1 / (1 + e^a): on orange-skin samples near the origin are mostly 1.
    X, y, _ = draw("orange-skin", 20000, 0)
    near = (X[:, :4] ** 2).sum(axis=1) < 1
    assert y[near].mean() > 0.9
    assert y[~near].mean() < 0.7


def test_rates_and_ranks_by_hand():
    relevant = np.array([[1, 1, 0, 0], [0, 1, 1, 0]], bool)
    selected = np.array([[1, 0, 1, 0], [0, 0, 0, 0]], bool)
    assert fidelity.rates(selected, relevant) == (25.0, 25.0)
    importance = np.array([[4.0, 1.0, 3.0, 2.0], [1.0, 4.0, 3.0, 2.0]])
    np.testing.assert_array_equal(fidelity.median_ranks(importance, relevant), [2.5, 1.5])
    # A selector that prefers nothing must not look as if it preferred the first features.
    np.testing.assert_array_equal(fidelity.median_ranks(0 * importance, relevant), [2.5, 2.5])


def test_every_experiment_names_a_model_its_settings_and_a_range():
    assert len(fidelity.experiments()) >= 16
    for small in (False, True):
        for experiment in fidelity.experiments(small).values():
            known = fidelity.load_class(models()[experiment.model])().get_params()
            assert experiment.params.keys() <= known.keys(), experiment.name
            assert experiment.task in TASKS and experiment.source
            assert all(low < high for low, high in experiment.accept.values())


def test_findings_are_kept_until_the_experiment_changes(tmp_path):
    experiment = fidelity.experiments()["invase-syn1"]
    made = fidelity.Finding(
        "invase-syn1", json.loads(json.dumps(asdict(experiment))), models()["invase"].revision,
        {"tpr": 99.0, "fdr": 7.0, "auc": 0.7}, 12.0, {}, {},
    )  # fmt: skip
    fidelity.write(tmp_path, made)
    read = fidelity.read(tmp_path, experiment)
    assert (read.measured, read.accepted) == (made.measured, False)  # 7 > 5
    # Another range is another judgement of the same measurement.
    wider = replace(experiment, accept={"fdr": (0, 10)}, source="elsewhere")
    assert fidelity.read(tmp_path, wider).accepted
    text = fidelity.to_markdown({"invase-syn1": made, "invase-syn2": None})
    assert "| NO, above " in text and "not run" in text
    open_question = replace(made, experiment={**made.experiment, "accept": {}})
    assert open_question.accepted is None
    text = fidelity.to_markdown({"invase-syn1": made, "realx-syn1": open_question})
    assert "0 of 0 experiments" in text and "for 1 no range is known" in text
    assert "of 1 with an unverified range 0 are" in text
    other = replace(experiment, n_train=9)
    assert fidelity.read(tmp_path, other) is None
    fidelity.write(tmp_path, replace(made, revision=made.revision - 1))
    assert fidelity.read(tmp_path, experiment) is None


def test_all_samples_train_and_others_validate(monkeypatch):
    seen = {}

    class Watched:
        def __init__(self, **_):
            pass

        def fit(self, X, y, eval_set):
            seen.update(train=X, valid=eval_set[0])

    monkeypatch.setattr(fidelity, "load_class", lambda entry: Watched)
    monkeypatch.setattr(fidelity, "measure", lambda *_: {"tpr": 1.0})
    fidelity.run(replace(fidelity.experiments()["invase-syn1"], n_train=500))
    assert (len(seen["train"]), len(seen["valid"])) == (500, 50)
    rows = np.concatenate(list(seen.values()))
    assert len(np.unique(rows, axis=0)) == 550


@pytest.mark.slow
@pytest.mark.parametrize("name", list(fidelity.experiments(small=True)))
def test_small_versions_reach_their_range(name):
    finding = fidelity.run(fidelity.experiments(small=True)[name])
    assert finding.accepted, finding.measured


def test_shipped_findings_are_of_todays_experiments():
    from conftest import ROOT

    for path in sorted((ROOT / "results" / "fidelity").glob("*.json")):
        assert fidelity.read(ROOT / "results", fidelity.experiments()[path.stem]) is not None
