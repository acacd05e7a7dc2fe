"""Tuning: the paper's rule, ties, edges, the race, quick searches, Optuna that resumes exactly."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from conftest import ROOT, cell_of
from hypothesis import given
from hypothesis import strategies as st

from benchmark.protocol import choices
from benchmark.protocol.plan import Cell, Protocol
from benchmark.protocol.registry import Range, Search, data_ref, models
from benchmark.protocol.search import search
from benchmark.protocol.spec import Outcome, UserError, failed
from benchmark.runner.campaign import Means
from benchmark.runner.records import Store
from benchmark.runner.tune import at_edge, tune
from benchmark.tables.reproduce import to_be_searched


def cell(model="knn", data="syn1", **overrides):
    return Cell(models()[model], data_ref(data), overrides)


def choice_of(results, made):
    return choices.read_choice(results, made)


def test_the_best_mean_validation_score_wins(tmp_path):
    means = Means(Store(tmp_path), jobs=0)
    [choice], _ = tune([cell()], Protocol(1, 5), means)
    assert [c.params["n_neighbors"] for c in choice.candidates] == [1, 3, 5]
    assert choice.valid == max(c.valid for c in choice.candidates)
    records = [r for r in Store(tmp_path).scan() if r["spec"]["params"] == choice.params]
    mean = sum(r["scores"]["valid"]["balanced_accuracy"] for r in records) / 5
    assert choice.valid == pytest.approx(mean)
    assert choice_of(tmp_path, cell()) == choice
    assert Store(tmp_path).setting(cell(), "own").params == choice.params


def replay(plan, scores):
    """Carry out a search on made-up validation scores, {setting: score per split}; a word is a
    failure. Returns its result and the runs that it asked for."""
    asked, records = [], None
    try:
        while True:
            specs = plan.send(records)
            asked += specs
            records = {spec.key: scored(spec, scores) for spec in specs}
    except StopIteration as end:
        assert len({spec.key for spec in asked}) == len(asked), "a run was asked for twice"
        return end.value, asked


def scored(spec, scores):
    score = scores[spec.params["n_neighbors"]][5 * spec.repeat + spec.fold]
    if isinstance(score, str):
        return {"key": spec.key, "status": score}
    return {
        "status": "ok",
        "scores": {"valid": {"balanced_accuracy": score}},
        "data": {"sha256": "abc"},
    }


def rule(grid):
    """The paper's rule, spelled out: best mean over all splits, ties to the first."""
    means = [round(sum(scores) / len(scores), 12) for scores in grid]
    return means.index(max(means))


@pytest.mark.parametrize(
    ("scores", "winner"),
    [
        ([0.5, 0.7, 0.6], 3),
        ([0.7, 0.5, 0.7], 1),  # ties go to the first in grid order
        ([0.1 + 0.2, 0.3, 0.2], 1),  # 0.30000000000000004 and 0.3 tie
        ([0.3, 0.1 + 0.2, 0.2], 1),
        (["diverged", 0.4, 0.3], 3),  # a setting that fails for good is not chosen
    ],
)
@pytest.mark.parametrize("quick", [None, 5])
def test_ties_and_failures(scores, winner, quick):
    grid = {k: [score] * 25 for k, score in zip([1, 3, 5], scores, strict=True)}
    result, _ = replay(search(cell(), Protocol(), quick), grid)
    assert result.best.params == {"n_neighbors": winner} and result.best.seen == 25


@pytest.mark.parametrize("quick", [None, 5])
def test_nothing_is_chosen_when_every_setting_failed(tmp_path, quick, capsys, misbehaving):
    means = Means(Store(tmp_path), jobs=0)
    made = cell("prior", trouble="refuse")
    choices, _ = tune([made], Protocol(1, 5), means, quick)
    assert choices == [None] and "every setting had a failed run" in capsys.readouterr().err
    assert choice_of(tmp_path, made) is None


@pytest.mark.parametrize("quick", [None, 5])
def test_a_run_that_may_yet_succeed_makes_no_choice(tmp_path, quick, capsys):
    """A killed run says nothing about its setting: no other setting may win by it."""
    means, made = Means(Store(tmp_path), jobs=0, retry=False), cell()
    broken = made.specs({"n_neighbors": 3}, Protocol(1, 5))[2]
    Store(tmp_path).write(failed(broken, "killed", "the machine went away"))
    choices, _ = tune([made], Protocol(1, 5), means, quick)
    assert choices == [None] and choice_of(tmp_path, made) is None
    assert "a run did not finish (" in capsys.readouterr().err
    choices, _ = tune([made], Protocol(1, 5), replace(means, retry=True), quick)
    assert choices[0] is not None


settings_of_grid = st.lists(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=25, max_size=25),
    min_size=3,
    max_size=3,
)


@given(settings_of_grid)
def test_the_race_chooses_what_the_rule_chooses(grid):
    scores = dict(zip([1, 3, 5], grid, strict=True))
    result, asked = replay(search(cell(), Protocol(), None), scores)
    assert result.best.params["n_neighbors"] == [1, 3, 5][rule(grid)]
    assert len(asked) <= 75


def recorded_grids():
    """The shipped cells whose settings all have all 25 runs, with their validation scores."""
    for path in sorted((ROOT / "results" / "choices").rglob("*.json")):
        written = json.loads(path.read_text())
        if written["method"] != "full":
            continue
        made = cell_of(written["model"], written["dataset"])
        keys = [s.key for p in made.candidates() for s in made.specs(p, Protocol())]
        records, problems = Store(ROOT / "results").find(keys)
        assert not problems and len(records) == len(keys), f"{path}: records are missing"
        assert {r["data"]["sha256"] for r in records.values()} == {written["data_sha256"]}
        yield made, records, written["params"]


def carried_out(plan, records):
    asked, known = [], None
    try:
        while True:
            specs = plan.send(known)
            asked += specs
            known = {spec.key: records[spec.key] for spec in specs}
    except StopIteration as end:
        return end.value, len(asked)


def test_recorded_grids_raced_again_give_the_same_choices():
    """Every shipped choice of the full rule, derived again by the race from the shipped records."""
    shares = []
    for made, records, params in recorded_grids():
        result, asked = carried_out(search(made, Protocol(), None), records)
        assert result.best.params == params, f"{made.model} on {made.data.label}"
        if made.data.label in ("colon", "lung", "prostate", "toxicity"):
            shares.append(asked / len(records))
    assert len(shares) >= 30
    assert sum(shares) / len(shares) < 0.8


def test_recorded_grids_searched_quickly():
    """How often the cheap search finds the rule's winner, which docs and footnotes rest on."""
    hits, total = 0, 0
    for made, records, params in recorded_grids():
        result, _ = carried_out(search(made, Protocol(), 5), records)
        total += 1
        hits += result.best.params == params
    assert hits / total > 0.8


def test_a_quick_search_finishes_the_best_two(tmp_path):
    rows = {1: [0.9] * 25, 3: [0.8] * 25, 5: [0.7] * 25}
    result, asked = replay(search(cell(), Protocol(), 5), rows)
    assert [e.seen for e in result.entrants] == [25, 25, 5] and len(asked) == 55
    assert result.method == "quick" and result.tied == 1
    # The first splits only suggest: the winner is the best over all 25.
    rows = {1: [0.9] * 5 + [0.1] * 20, 3: [0.8] * 25, 5: [0.7] * 25}
    assert replay(search(cell(), Protocol(), 5), rows)[0].best.params == {"n_neighbors": 3}


def test_where_both_finalists_fail_the_next_best_finish():
    wide = replace(models()["knn"], search=Search({"n_neighbors": [1, 2, 3, 4]}))
    rows = {k: [0.9] * 10 + ["diverged"] * 15 for k in (1, 2)}
    rows |= {3: [0.8] * 25, 4: [0.7] * 25}
    result, _ = replay(search(Cell(wide, data_ref("syn1")), Protocol(), 5), rows)
    assert result.best.params == {"n_neighbors": 3}  # as the full rule chooses; once it was nothing
    assert [e.finished for e in result.entrants] == [False, False, True, True]
    rows = {k: [0.9] * 10 + ["diverged"] * 15 for k in (1, 2, 3, 4)}
    assert replay(search(Cell(wide, data_ref("syn1")), Protocol(), 5), rows)[0].best is None


def test_what_ties_at_the_cut_goes_along_or_sees_more(monkeypatch):
    # The third ties with the second: three finalists.
    rows = {1: [0.9] * 25, 3: [0.8] * 25, 5: [0.8] * 25}
    result, _ = replay(search(cell(), Protocol(), 5), rows)
    assert [e.seen for e in result.entrants] == [25, 25, 25] and result.tied == 2

    wide = replace(models()["knn"], search=Search({"n_neighbors": [1, 2, 3, 4, 5]}))
    made = Cell(wide, data_ref("syn1"))
    # Four tie for the second place: they see five more splits, where one turns out better.
    rows = {k: [0.8] * 25 for k in (1, 2, 3, 4)} | {5: [0.9] * 25}
    rows[3] = [0.8] * 5 + [0.85] * 20
    result, _ = replay(search(made, Protocol(), 5), rows)
    assert [e.seen for e in result.entrants] == [10, 10, 25, 10, 25] and result.tied == 4
    # All tie for good: they all see everything, and the first in grid order is chosen.
    result, asked = replay(search(made, Protocol(), 5), {k: [1.0] * 25 for k in range(1, 6)})
    assert result.best.params == {"n_neighbors": 1} and len(asked) == 125 and result.tied == 5


def test_the_edge_of_the_grid_is_noticed():
    svm = cell("svm")
    assert at_edge(svm, {"C": 10.0}) == ["C"]
    assert at_edge(svm, {"C": 0.1}) == []
    # Two values have no inside, so being at an end says nothing.
    assert at_edge(cell("lightgbm"), {"max_depth": 1, "learning_rate": 0.1}) == []


def test_the_edge_of_a_range_is_measured_on_its_scale():
    made = cell("mlp")
    wide = Range(low=1e-4, high=1.0, log=True)
    entry = replace(made.entry, search=replace(made.entry.search, ranges={"lr": wide}))
    made = replace(made, entry=entry)
    assert at_edge(made, {"lr": 1e-3}) == [] and at_edge(made, {"lr": 1.05e-4}) == ["lr"]


def test_a_named_setting_is_not_searched():
    assert cell("svm", C=1.0).candidates() == [{"C": 1.0}]
    fixed = cell("svm", kernel="poly").candidates()
    assert len(fixed) == 5 and all(c["kernel"] == "poly" for c in fixed)


def test_a_quick_search_runs_less_and_says_so(tmp_path):
    made = cell("ridge", "syn2")
    [full], _ = tune([made], Protocol(3, 5), Means(Store(tmp_path / "full"), jobs=0))
    [fast], _ = tune([made], Protocol(3, 5), Means(Store(tmp_path / "fast"), jobs=0), 5)
    n_full, n_fast = (len(list((tmp_path / d).rglob("r*f*.json"))) for d in ("full", "fast"))
    assert n_fast < n_full <= 4 * 15
    assert (full.method, fast.method) == ("race", "quick")
    assert {c.runs for c in fast.candidates} == {5, 15} and fast.strength == (15, 5)
    assert fast.valid == max(c.valid for c in fast.candidates if c.runs == 15)
    assert fast.search_text == "chosen on 5 splits, two finalists on 15"
    # A table's footnote says so, too: tests/test_tables.py.
    assert full.strength == (15, 15)
    assert not full.by_rule and full.search_text == "chosen on 3 x 5 splits"
    # On the paper's splits it is the rule; and so is one that has seen everything in the end.
    full, fast = replace(full, repeats=5), replace(fast, repeats=5)
    assert full.by_rule and not fast.by_rule
    assert replace(fast, candidates=[replace(c, runs=15) for c in fast.candidates]).by_rule


def test_searches_share_one_pool_of_workers(tmp_path):
    """Two cells at once give the choices, and the runs, of one after the other."""
    cells = [cell("knn"), cell("ridge", "syn2")]
    together = Means(Store(tmp_path / "together"), jobs=2)
    both, _ = tune(cells, Protocol(2, 5), together)
    apart = [
        tune([made], Protocol(2, 5), Means(Store(tmp_path / "apart"), jobs=0))[0][0]
        for made in cells
    ]
    assert both == apart
    runs = [{p.name for p in (tmp_path / d).rglob("r*f*.json")} for d in ("together", "apart")]
    assert runs[0] == runs[1]


OPTUNA = ("tune", "--models", "prior-range", "--datasets", "syn1", "--repeats", "1", "--jobs", "1")


def asked(results):
    choice = json.loads(next((results / "choices").rglob("*.json")).read_text())
    return choice, [c["params"]["strength"] for c in choice["candidates"]]


def test_optuna_resumes_exactly(tmp_path, inside, misbehaving):
    here = (*OPTUNA, "--jobs", "0")  # of two the last counts
    inside(*here, "--results", tmp_path / "unbroken", check=0)
    choice, strengths = asked(tmp_path / "unbroken")
    assert choice["method"] == "optuna" and len(set(strengths)) == 6

    words = [sys.executable, "-m", "benchmark", *OPTUNA, "--results", str(tmp_path / "broken")]
    for n_records in (8,):
        process = subprocess.Popen(words, cwd=ROOT, env={**os.environ, **misbehaving},
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        while (
            process.poll() is None and len(list(tmp_path.glob("broken/runs/**/*.json"))) < n_records
        ):
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    inside(*here, "--results", tmp_path / "broken", check=0)
    assert asked(tmp_path / "broken") == (choice, strengths)


def test_optuna_asks_the_same_on_any_number_of_workers(tmp_path, misbehaving):
    made = cell("prior-range")
    found = [
        tune([made], Protocol(1, 5), Means(Store(tmp_path / str(jobs)), jobs=jobs))[0]
        for jobs in (0, 2)
    ]
    assert found[0] == found[1]


def test_two_searches_at_once_do_not_meet(misbehaving):
    """One in the middle of its trials, another from its beginning to its end: neither notices."""

    def step(plan, records):
        """The records of what the plan asks for next, whose scores follow from the settings."""
        return {
            spec.key: {
                "status": "ok",
                "scores": {"valid": {"balanced_accuracy": 1 - abs(spec.params["strength"] - 0.3)}},
                "data": {"sha256": "abc"},
            }
            for spec in plan.send(records)
        }

    def ended(plan, records):
        try:
            while True:
                records = step(plan, records)
        except StopIteration as end:
            return end.value

    def begun():
        return search(cell("prior-range"), Protocol(1, 5), None)

    alone, first = ended(begun(), None), begun()
    records = step(first, None)
    assert ended(begun(), None) == alone == ended(first, records)
    assert len(alone.entrants) == 6 and alone.method == "optuna"


def test_a_search_without_data_leaves_nothing_behind(tmp_path, cli):
    words = "tune", "--models", "mlp", "--datasets", "meta-dr", "--results", tmp_path
    done = cli(*words, BENCHMARK_DATA=str(tmp_path), check=3)
    assert "Dataset 'meta-dr' is not on this machine" in done.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_quick_search_among_optuna_trials(tmp_path, inside, misbehaving):
    inside(*OPTUNA, "--jobs", "0", "--quick", "1", "--results", tmp_path, check=0)
    choice = json.loads(next((tmp_path / "choices").rglob("*.json")).read_text())
    assert choice["method"] == "quick" and choice["splits"] == 5
    # One split cannot tell the trials apart, so all of them see more.
    assert choice["tied"] == 6 and [c["runs"] for c in choice["candidates"]] == [5] * 6


def test_a_choice_of_another_search_or_revision_is_no_choice(tmp_path):
    [choice], _ = tune([cell()], Protocol(1, 5), Means(Store(tmp_path), jobs=0))
    assert Store(tmp_path).setting(cell(), "own").params == choice.params
    narrower = replace(models()["knn"], search=Search({"n_neighbors": [1, 3]}))
    assert Store(tmp_path).setting(Cell(narrower, data_ref("syn1")), "own") is None
    revised = replace(models()["knn"], revision=2)
    assert Store(tmp_path).setting(Cell(revised, data_ref("syn1")), "own") is None


def test_a_fuller_choice_is_kept(tmp_path, capsys):
    means = Means(Store(tmp_path), jobs=0)
    [full], _ = tune([cell()], Protocol(2, 5), means)
    [kept], _ = tune([cell()], Protocol(1, 5), means)
    assert kept == full and "fuller search" in capsys.readouterr().err
    [again], _ = tune([cell()], Protocol(2, 5), means, quick=5)
    assert again == full
    [forced], _ = tune([cell()], Protocol(1, 5), replace(means, force=True))
    assert (forced.repeats, forced.splits) == (1, 5)


def test_a_search_with_the_same_outcome_leaves_the_choice_as_it_is(tmp_path):
    means = Means(Store(tmp_path), jobs=0)
    tune([cell()], Protocol(1, 5), means)
    path = choices.choice_path(tmp_path, cell())
    as_before = path.read_text().replace('"race"', '"full"')
    path.write_text(as_before)
    tune([cell()], Protocol(1, 5), means)
    assert path.read_text() == as_before


def test_as_many_splits_as_there_are_is_no_quick_search(tmp_path):
    [choice], _ = tune([cell()], Protocol(1, 5), Means(Store(tmp_path), jobs=0), quick=99)
    assert choice.method == "race" and choice.strength == (5, 5)


def test_more_splits_that_are_not_the_papers_are_not_fuller(tmp_path):
    means = Means(Store(tmp_path), jobs=0)
    [other], _ = tune([cell()], Protocol(1, 30), means)
    assert other.strength == (30, 30) and not other.by_rule
    assert to_be_searched(cell(), means, quick=None)
    [paper], _ = tune([cell()], Protocol(), means)
    assert paper.by_rule and not to_be_searched(cell(), means, quick=None)
    [kept], _ = tune([cell()], Protocol(1, 30), means)
    assert kept == paper


def test_a_choice_that_its_own_candidates_contradict_is_named(tmp_path):
    [choice], _ = tune([cell()], Protocol(1, 5), Means(Store(tmp_path), jobs=0))
    other = next(k for k in (1, 3, 5) if k != choice.params["n_neighbors"])
    choices.write_choice(tmp_path, cell(), replace(choice, params={"n_neighbors": other}))
    with pytest.raises(UserError, match="not choose the best of its own"):
        choices.read_choice(tmp_path, cell())


def test_force_does_each_run_once(tmp_path):
    plain = Means(Store(tmp_path), jobs=0)
    tune([cell()], Protocol(2, 5), plain, quick=5)
    forced = Means(Store(tmp_path), jobs=0, force=True)
    _, report = tune([cell()], Protocol(2, 5), forced, quick=5)
    assert report.done == len(list((tmp_path / "runs").rglob("*.json")))


def test_mixed_data_are_refused(tmp_path):
    """Runs on other rows under the same name must not be averaged into a choice."""
    means = Means(Store(tmp_path), jobs=0)
    tune([cell()], Protocol(1, 5), means)
    record = next(Store(tmp_path).scan())
    record["data"] = {**record["data"], "sha256": "other"}
    Store(tmp_path).write(Outcome(record))
    with pytest.raises(UserError, match="different data"):
        tune([cell()], Protocol(1, 5), means)


@pytest.mark.parametrize("jobs", [0, 1])
def test_the_deadline_begins_no_more_runs(tmp_path, jobs):
    means = Means(Store(tmp_path), jobs=jobs, deadline=time.monotonic())
    assert tune([cell()], Protocol(1, 5), means)[0] == [None]
    assert not list(tmp_path.rglob("*.json"))


def test_a_damaged_choice_is_named(tmp_path, cli):
    made = cell()
    path = choices.choice_path(tmp_path, made)
    path.parent.mkdir(parents=True)
    path.write_text("{")
    done = cli("run", "--models", "knn", "--datasets", "syn1", "--results", tmp_path, check=2)
    assert str(path) in done.stderr and "sets it aside" in done.stderr


QUICK_SPLITS = 5
"""What every setting of a shipped search has to have seen."""


def test_committed_choices_rest_on_enough():
    """What ships was chosen on at least five splits per setting and all 25 of the chosen one.

    Choices by halving are older, are marked in every table, and leave this list with the campaign
    that replaces them.
    """
    weak = []
    for path in sorted((ROOT / "results" / "choices").rglob("*.json")):
        written = json.loads(path.read_text())
        choice = choices.read_choice(
            ROOT / "results", cell_of(written["model"], written["dataset"])
        )
        if choice.method != "halving" and choice.strength < (25, QUICK_SPLITS):
            weak.append(f"{path.parent.name}/{path.stem}: {choice.search_text}")
    assert not weak
