"""Tuning: the paper's rule, ties, edges, halving, and Optuna that resumes exactly."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from conftest import ROOT

from benchmark import settings
from benchmark.campaign import Means, Report
from benchmark.plan import Cell, Protocol
from benchmark.registry import Search, data_ref, models
from benchmark.settings import Candidate
from benchmark.spec import Outcome, UserError
from benchmark.store import Store
from benchmark.tune import at_edge, choose, tune


def cell(model="knn", data="syn1", **overrides):
    return Cell(models()[model], data_ref(data), overrides)


def choice_of(results, made):
    return settings.read_choice(results, made)


def test_the_best_mean_validation_score_wins(tmp_path):
    means = Means(Store(tmp_path), jobs=0)
    [choice] = tune([cell()], Protocol(1, 5), means)
    assert [c.params["n_neighbors"] for c in choice.candidates] == [1, 3, 5]
    assert choice.valid == max(c.valid for c in choice.candidates)
    records = [r for r in Store(tmp_path).scan() if r["spec"]["params"] == choice.params]
    mean = sum(r["scores"]["valid"]["balanced_accuracy"] for r in records) / 5
    assert choice.valid == pytest.approx(mean)
    assert choice_of(tmp_path, cell()) == choice
    assert settings.prescribed(tmp_path, cell()) == choice.params


@pytest.mark.parametrize(
    ("scores", "winner"),
    [
        ([0.5, 0.7, 0.6], 3),
        ([0.7, 0.5, 0.7], 1),  # ties go to the first in grid order
        ([0.1 + 0.2, 0.3, 0.2], 1),  # 0.30000000000000004 and 0.3 tie
        ([0.3, 0.1 + 0.2, 0.2], 1),
        ([None, 0.4, 0.3], 3),  # a setting with a failed run is not chosen
    ],
)
def test_ties_and_failures(tmp_path, scores, winner):
    means, made = Means(Store(tmp_path), jobs=0), cell()
    candidates = [
        Candidate(params, score, 25)
        for params, score in zip(made.candidates(), scores, strict=True)
    ]
    record = {"status": "ok", "data": {"sha256": "abc"}}
    report = Report({s.key: record for c in candidates for s in made.specs(c.params, Protocol())})
    assert choose(made, Protocol(), candidates, "full", report, means).params == {
        "n_neighbors": winner
    }


def test_nothing_is_chosen_when_every_setting_failed(tmp_path, capsys):
    candidates = [Candidate(params, None, 24) for params in cell().candidates()]
    means = Means(Store(tmp_path), jobs=0)
    assert choose(cell(), Protocol(), candidates, "full", Report(), means) is None
    assert "every setting had a failed run" in capsys.readouterr().err
    assert choice_of(tmp_path, cell()) is None


def test_the_edge_of_the_grid_is_noticed():
    svm = cell("svm")
    assert at_edge(svm, {"C": 10.0}) == ["C"]
    assert at_edge(svm, {"C": 0.1}) == []
    # Two values have no inside, so being at an end says nothing.
    assert at_edge(cell("lightgbm"), {"max_depth": 1, "learning_rate": 0.1}) == []


def test_a_named_setting_is_not_searched():
    assert cell("svm", C=1.0).candidates() == [{"C": 1.0}]
    fixed = cell("svm", kernel="poly").candidates()
    assert len(fixed) == 5 and all(c["kernel"] == "poly" for c in fixed)


def test_halving_runs_less_and_says_so(tmp_path):
    made = cell("ridge", "syn2")
    [full] = tune([made], Protocol(3, 5), Means(Store(tmp_path / "full"), jobs=0))
    [fast] = tune([made], Protocol(3, 5), Means(Store(tmp_path / "fast"), jobs=0), first=5)
    n_full, n_fast = (len(list((tmp_path / d).rglob("r*f*.json"))) for d in ("full", "fast"))
    assert n_full == 4 * 15 and n_fast == 4 * 5 + 2 * 5
    assert (full.method, fast.method) == ("full", "halving")
    assert {c.runs for c in fast.candidates} == {5, 10}
    best = max(c.valid for c in fast.candidates if c.runs == 10)
    assert fast.valid == best


OPTUNA = ("tune", "--models", "prior-range", "--datasets", "syn1", "--repeats", "1", "--jobs", "1")


def asked(results):
    choice = json.loads(next((results / "choices").rglob("*.json")).read_text())
    return choice, [c["params"]["strength"] for c in choice["candidates"]]


def test_optuna_resumes_exactly(tmp_path, cli, misbehaving):
    cli(*OPTUNA, "--results", tmp_path / "unbroken", check=0, **misbehaving)
    choice, strengths = asked(tmp_path / "unbroken")
    assert choice["method"] == "optuna" and len(set(strengths)) == 6

    words = [sys.executable, "-m", "benchmark", *OPTUNA, "--results", str(tmp_path / "broken")]
    for n_records in (3, 12, 13, 22):
        process = subprocess.Popen(words, cwd=ROOT, env={**os.environ, **misbehaving},
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        while (
            process.poll() is None and len(list(tmp_path.glob("broken/runs/**/*.json"))) < n_records
        ):
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    cli(*OPTUNA, "--results", tmp_path / "broken", check=0, **misbehaving)
    assert asked(tmp_path / "broken") == (choice, strengths)


def test_a_search_without_data_leaves_nothing_behind(tmp_path, cli):
    words = "tune", "--models", "mlp", "--datasets", "meta-dr", "--results", tmp_path
    done = cli(*words, BENCHMARK_DATA=str(tmp_path), check=3)
    assert "Dataset 'meta-dr' is not on this machine" in done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_halving_decides_among_optuna_trials(tmp_path, cli, misbehaving):
    cli(*OPTUNA, "--halving", "1", "--results", tmp_path, check=0, **misbehaving)
    choice = json.loads(next((tmp_path / "choices").rglob("*.json")).read_text())
    assert choice["method"] == "halving" and choice["splits"] == 2
    assert sorted(c["runs"] for c in choice["candidates"]) == [1, 1, 1, 1, 2, 2]
    # The chosen setting then has all of its runs.
    assert len(list((tmp_path / "runs").rglob("r*f*.json"))) == 6 + 2 + 3


def test_a_choice_of_another_search_or_revision_is_no_choice(tmp_path):
    [choice] = tune([cell()], Protocol(1, 5), Means(Store(tmp_path), jobs=0))
    assert settings.prescribed(tmp_path, cell()) == choice.params
    narrower = replace(models()["knn"], search=Search({"n_neighbors": [1, 3]}))
    assert settings.prescribed(tmp_path, Cell(narrower, data_ref("syn1"))) is None
    revised = replace(models()["knn"], revision=2)
    assert settings.prescribed(tmp_path, Cell(revised, data_ref("syn1"))) is None


def test_a_fuller_choice_is_kept(tmp_path, capsys):
    means = Means(Store(tmp_path), jobs=0)
    [full] = tune([cell()], Protocol(2, 5), means)
    [kept] = tune([cell()], Protocol(1, 5), means)
    assert kept == full and "fuller search" in capsys.readouterr().err
    [again] = tune([cell()], Protocol(2, 5), means, first=5)
    assert again == full
    [forced] = tune([cell()], Protocol(1, 5), replace(means, force=True))
    assert (forced.repeats, forced.splits) == (1, 5)


def test_force_does_each_run_once(tmp_path):
    plain = Means(Store(tmp_path), jobs=0)
    tune([cell()], Protocol(2, 5), plain, first=5)
    forced = Means(Store(tmp_path), jobs=0, force=True)
    tune([cell()], Protocol(2, 5), forced, first=5)
    assert len(forced.redone) == len(list((tmp_path / "runs").rglob("*.json")))


def test_mixed_data_are_refused(tmp_path):
    """Runs on other rows under the same name must not be averaged into a choice."""
    means = Means(Store(tmp_path), jobs=0)
    tune([cell()], Protocol(1, 5), means)
    record = next(Store(tmp_path).scan())
    record["data"] = {**record["data"], "sha256": "other"}
    Store(tmp_path).write(Outcome(record))
    with pytest.raises(UserError, match="different data"):
        tune([cell()], Protocol(1, 5), means)


def test_the_deadline_begins_no_more_runs(tmp_path):
    means = Means(Store(tmp_path), jobs=1, deadline=time.monotonic())
    assert tune([cell()], Protocol(1, 5), means) == []
    assert not list((tmp_path / "choices").rglob("*.json"))


def test_a_damaged_choice_is_named(tmp_path, cli):
    made = cell()
    path = settings.choice_path(tmp_path, made)
    path.parent.mkdir(parents=True)
    path.write_text("{")
    done = cli("run", "--models", "knn", "--datasets", "syn1", "--results", tmp_path, check=2)
    assert str(path) in done.stderr and "Delete it" in done.stderr


def test_committed_choices_follow_from_the_committed_records():
    """Every shipped choice, derived again from the shipped records."""
    results, checked = ROOT / "results", 0
    for path in sorted((results / "choices").rglob("*.json")):
        written = json.loads(path.read_text())
        if written["method"] != "full":
            continue
        name, *fixed = written["model"].split(":")
        overrides = dict(pair.split("=") for pair in fixed)
        made = Cell(models()[name], data_ref(written["dataset"]), overrides)
        best = None
        for params in made.candidates():
            keys = [spec.key for spec in made.specs(params, Protocol())]
            records, problems = Store(results).find(keys)
            assert not problems and len(records) == 25, f"{path}: records of {params} are missing"
            assert {r["data"]["sha256"] for r in records.values()} == {written["data_sha256"]}
            scores = [r["scores"]["valid"]["balanced_accuracy"] for r in records.values()]
            mean = round(sum(scores) / 25, 12)
            if best is None or mean > best[0]:
                best = mean, params
        assert best[1] == written["params"], path
        checked += 1
    assert checked > 0
