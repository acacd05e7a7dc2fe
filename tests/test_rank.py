"""One's own models and tables ranked beside the 17, and the records that travel for it."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT, cell_of, made_up, write_run
from scipy.stats import friedmanchisquare, t

from benchmark import api
from benchmark.judge import rank
from benchmark.judge.causes import find
from benchmark.judge.causes.find import place_of
from benchmark.protocol.choices import read_choice
from benchmark.protocol.plan import Cell
from benchmark.protocol.record import Scores
from benchmark.protocol.registry import data_ref, models
from benchmark.protocol.spec import METRICS, UserError
from benchmark.runner.costs import Costs, runs_of_search
from benchmark.runner.frame import EMPTY, frame_of, record_of, row_of, rows_of
from benchmark.runner.load import load_records
from benchmark.runner.records import Store
from benchmark.runner.shipped import Shipped, store_at, write
from benchmark.tables.build import build_table

NAIVE = "sklearn.naive_bayes:GaussianNB"
SPELLED = "sklearn.naive_bayes.GaussianNB"


@pytest.fixture(scope="module")
def shipped():
    return load_records("no such folder")


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat(["well", "ill"], 20)
    X = rng.normal(size=(40, 6)) + (y == "ill")[:, None]
    frame = pd.DataFrame(X, columns=[f"g{j}" for j in range(6)]).assign(status=y)
    frame.to_csv(tmp_path / "mine.csv", index=False)
    return tmp_path / "mine.csv"


@pytest.mark.parametrize("place", ["protogate/colon", "lspin/syn1", "knn/colon", "realx/syn2"])
def test_a_row_keeps_what_tables_read(place):
    path = min((ROOT / "results/runs" / place).glob("*/r0f0.json"))
    # The oldest records have no place for these two.
    record = {"also": {}, "transfer": None, **Store(ROOT / "results").load(path)}
    [row] = rows_of(frame_of([row_of(record)]))
    back = record_of(row)
    for name in ("key", "spec", "status", "data", "scores", "also", "selection", "transfer"):
        assert back[name] == record[name], name
    assert back["split"]["sha256"] == record["split"]["sha256"]
    assert back["model"].items() <= {"constant_mask": None, **record["model"]}.items()


def test_a_row_tells_other_patients_from_the_papers():
    spec = cell_of("knn", "meta-dr").specs({"n_neighbors": 5}, rank.Protocol())[0]
    record = made_up(spec, 70.0)
    record["data"]["derived"] = True
    frame = frame_of([row_of(record)])
    [row] = rows_of(frame)
    assert record_of(row)["data"] == record["data"]
    # A file that was written before the column came: none of its runs was derived.
    [row] = rows_of(frame.drop(columns="derived"))
    assert "derived" not in record_of(row)["data"]


def test_without_a_checkout_tables_rest_on_the_shipped_records(tmp_path, monkeypatch):
    here = {name: build_table(name, ROOT / "results") for name in ("table2", "table22")}
    monkeypatch.chdir(tmp_path)
    for name, table in here.items():
        there = build_table(name, Path("results"))
        assert {p: r.values for p, r in there.results.items()} == {
            p: r.values for p, r in table.results.items()
        }
    assert not any(r.values for r in build_table("table2", Path("named")).results.values())


def test_without_a_checkout_one_s_own_runs_lie_over_the_shipped_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = store_at(Path("results"))
    choice = store.choice(Cell(models()["knn"], data_ref("colon")))
    [first, *rest] = Cell(models()["knn"], data_ref("colon")).specs(choice.params, rank.Protocol())
    write_run(tmp_path / "results", made_up(first, 12.5))
    found, _ = store.find([first.key, rest[0].key])
    assert found[first.key]["scores"]["test"]["balanced_accuracy"] == 0.125
    assert found[rest[0].key]["scores"] == Shipped().record(rest[0].key)["scores"]
    assert store.settings("knn/colon") == Store(ROOT / "results").settings("knn/colon")


def test_without_a_checkout_every_cell_that_differs_has_its_cause(tmp_path, monkeypatch):
    kinds = {(place_of(c.line), c.kind) for c in find.build(ROOT / "results", [2, 10])}
    monkeypatch.chdir(tmp_path)
    assert {(place_of(c.line), c.kind) for c in find.build(Path("results"), [2, 10])} == kinds
    assert kinds


def test_shipped_records_hold_the_settings_that_were_chosen(shipped):
    cell = Cell(models()["ridge"], data_ref("colon"))
    choice = Shipped().choice(cell)
    assert choice == read_choice(ROOT / "results", cell)
    [first, *_] = cell.specs(choice.params, rank.Protocol())
    runs = shipped[shipped["key"].str.startswith(first.key.rpartition("/")[0])]
    assert len(runs) == 25
    assert 100 * runs["test_balanced_accuracy"].mean() == pytest.approx(83.05, abs=0.005)


def test_without_a_checkout_costs_come_from_the_shipped_records(tmp_path):
    cell, store = Cell(models()["ridge"], data_ref("colon")), Store(tmp_path, below=Shipped())
    costs = Costs(store)
    assert costs.per_run(cell) > 0
    # Scaled from what was run, to data that no shipped record is of.
    assert costs.per_run(Cell(models()["ridge"], data_ref("meta-dr"))) > costs.per_run(cell)
    assert runs_of_search(cell, rank.Protocol(), None, store) == 0
    assert runs_of_search(cell, rank.Protocol(), None, Store(tmp_path)) == 80


def test_one_s_own_folder_lies_over_the_shipped_records(tmp_path, shipped):
    key = shipped["key"][0]
    store = Store(tmp_path, below=Shipped())
    found, problems = store.find([key, "knn/colon/00000000/r0f0"])
    assert list(found) == [key] and problems == []
    mine = {**found[key], "split": {"sha256": "mine"}}
    write_run(tmp_path, mine)
    assert store.find([key])[0][key]["split"]["sha256"] == "mine"
    assert len(load_records(tmp_path)) == len(shipped)
    assert len(load_records(tmp_path, shipped=False)) == 1


@pytest.mark.slow
def test_what_ships_is_what_the_records_say(tmp_path):
    write(ROOT / "results", tmp_path)
    for path in tmp_path.iterdir():
        shipped = ROOT / "benchmark/runner/shipped" / path.name
        pd.testing.assert_frame_equal(
            pd.read_parquet(path), pd.read_parquet(shipped), obj="`make reports` renews it"
        )
        assert shipped.stat().st_size < 2_000_000


def test_export_as_parquet_and_csv(inside, tmp_path, shipped):
    for _ in range(2):  # what we wrote ourselves is overwritten
        inside("export", tmp_path / "runs.parquet", "--results", tmp_path, check=0)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "runs.parquet"), shipped)
    inside("export", tmp_path / "runs.csv", "--own", "--results", tmp_path, check=0)
    assert (tmp_path / "runs.csv").read_text().startswith("key,dataset,model")
    assert "are written as" in inside("export", tmp_path / "runs.xyz", check=2).stderr


def test_naive_bayes_beside_the_17_on_colon(inside, tmp_path, shipped):
    """Ranks, ADTM and the corrected test, computed again from the exported table alone."""
    done = inside("rank", "--models", f"paper,{NAIVE}", "--datasets", "colon", "--against", NAIVE,
                  "--results", tmp_path / "own", "--to", tmp_path / "to", "--jobs", "0",
                  "--budget", "all", "--format", "json")  # fmt: skip
    found = json.loads(done.stdout)
    own = load_records(tmp_path / "own", shipped=False)
    assert set(own["model"]) == {SPELLED} and len(own) == 25
    cells = {c["method"]: c["values"] for c in found["cells"] if c["missing"] is None}
    assert len(cells) >= 15
    assert cells[SPELLED] == pytest.approx(100 * own["test_balanced_accuracy"].to_numpy(float))
    means = pd.Series({name: np.mean(values) for name, values in cells.items()}).round(9)
    ranks = means.rank(ascending=False, method="min")
    span = (means - means.min()) / (means.max() - means.min())
    for one in found["standings"]:
        if one["rank"] is not None:
            assert one["rank"] == ranks[one["method"]]
            assert one["adtm"] == pytest.approx(100 * span[one["method"]])
    pair = next(p for p in found["pairs"] if p["first"] == "KNN")
    d = np.array(cells[SPELLED]) - np.array(cells["knn"])
    expected = d.mean() / np.sqrt((1 / 25 + 20 / 72) * d.var(ddof=1))
    assert pair["difference"] == pytest.approx(d.mean())
    assert pair["p"] == pytest.approx(2 * t.sf(abs(expected), 24))
    assert {p["second"] for p in found["pairs"]} == {"GaussianNB"}
    assert json.loads((tmp_path / "to/rank.json").read_text()) == found


def test_own_tables_and_shipped_ones_in_one_ranking(inside, tmp_path, table):
    words = ("rank", "--models", f"knn,ridge,{NAIVE}", "--datasets", "colon", "--data", table,
             "--target", "status", "--results", tmp_path / "own", "--to", tmp_path / "to",
             "--jobs", "0", "--metric", "auroc")  # fmt: skip
    assert "Nothing can be ranked" not in inside(*words, "--budget", "none", check=3).stderr
    found = json.loads(inside(*words, "--budget", "all", "--format", "json", check=0).stdout)
    assert found["ranked"]["datasets"] == ["colon", "mine"]
    scores = [
        [np.mean(c["values"]) for c in found["cells"] if c["method"] == method]
        for method in found["ranked"]["methods"]
    ]
    assert found["friedman"]["p"] == pytest.approx(friedmanchisquare(*scores).pvalue)
    for suffix in (".png", ".svg"):
        assert (tmp_path / f"to/critical-difference{suffix}").stat().st_size > 5000
    own = load_records(tmp_path / "own", shipped=False)
    assert len(own) == 25 * 4, "shipped cells are not run again"
    text = inside(*words, check=0).stdout
    assert "default settings" in text and "knn on mine" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--models", "knn"], "two models or more"),
        (["--models", "knn,knnn"], "Did you mean 'knn'"),
        (["--models", "knn,rf", "--against", "ridge"], "none of the ranked"),
        (["--models", "knn,rf", "--datasets", "colom"], "Did you mean 'colon'"),
        (["--models", "knn,rf", "--target", "y"], "--target needs --data FILE"),
        (["--models", "knn,rf", "--data", "nowhere.csv", "--target", "y"], "There is no file"),
    ],
)
def test_slips_of_rank_are_named(inside, tmp_path, words, message):
    done = inside("rank", "--datasets", "colon", *words, "--results", tmp_path / "own",
                  "--to", tmp_path / "to", "--budget", "none", check=2)  # fmt: skip
    assert message in done.stderr


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["export", "mine.csv"], "mine.csv"),
        (["rank", "--models", "knn,rf", "--datasets", "colon", "--to", "."], "index.html"),
        (["fit", "--data", "mine.csv", "--target", "status", "--to", "."], "model.json"),
        (["features", "--datasets", "colon", "--models", "lasso", "--to", "."], "features.csv"),
    ],
)
def test_what_others_wrote_is_not_overwritten(inside, tmp_path, table, monkeypatch, words, file):
    monkeypatch.chdir(tmp_path)
    if file != table.name:
        (tmp_path / file).write_text("something of mine")
    before = (tmp_path / file).read_text()
    done = inside(*words, "--results", tmp_path / "own", check=2)
    assert f"{file} exists, and this project did not write it" in done.stderr
    assert (tmp_path / file).read_text() == before


@pytest.fixture
def namesakes(table):
    """Two tables, and two columns to predict, under one file name."""
    frame = pd.read_csv(table).assign(status=[0, 1] * 20, stage=[1, 1, 2, 2] * 10)
    frame.to_csv(table, index=False)
    other = table.parent / "later" / "mine.csv"
    other.parent.mkdir()
    frame[::-1].to_csv(other, index=False)
    return {
        "two files": ["--data", table, "--data", other, "--target", "status"],
        "two targets": [
            "--data",
            table,
            "--data",
            table,
            "--target",
            "status",
            "--target",
            "stage",
        ],
    }


@pytest.mark.parametrize("which", ["two files", "two targets"])
@pytest.mark.parametrize("command", ["run", "tune", "rank", "features"])
def test_two_tables_of_one_name_are_refused_before_any_run(
    inside, tmp_path, namesakes, command, which
):
    """All runs would be done first, and then lie there mixed up under one name."""
    words = namesakes[which]
    done = inside(command, "--models", "knn,lasso", *words, "--results", tmp_path / "own",
                  "--jobs", "0", check=2)  # fmt: skip
    assert "Two tables would be called 'mine'" in done.stderr
    assert {f"{words[1]}", f"{words[3]}"} <= set(done.stderr.replace(":", " ").split())
    assert ("--target stage" in done.stderr) == (which == "two targets")
    assert not list((tmp_path / "own").rglob("*.json"))


def test_the_remedy_for_two_tables_of_one_name_works(inside, tmp_path, namesakes):
    words = [
        "run",
        "--models",
        "knn",
        "--repeats",
        "1",
        "--results",
        tmp_path / "own",
        "--jobs",
        "0",
    ]
    first, second = namesakes["two files"][1], namesakes["two files"][3]
    renamed = second.rename(tmp_path / "other.csv")
    both = ["--data", first, "--data", renamed, "--target", "status"]
    assert "| other" in inside(*words, *both, check=0).stdout
    for target in ("status", "stage"):
        inside(*words, "--data", first, "--target", target, check=0)


def test_two_tables_of_one_name_are_refused_from_python_too(tmp_path, namesakes):
    data = [api.table(path, "status") for path in namesakes["two files"][1:4:2]]
    for ask in (api.run, api.rank):
        with pytest.raises(UserError, match="Two tables would be called 'mine'"):
            ask(["knn", "rf"], data, results=tmp_path / "own", jobs=0)
    assert not (tmp_path / "own").exists()


def test_a_table_that_is_named_twice_counts_once(table):
    mine = api.table(table, "status")
    wanted = rank.recipe(["knn", "rf"], [mine, data_ref("colon"), api.table(table, "status")])
    assert wanted.datasets == ("mine", "colon")


def test_whom_to_test_against_is_looked_at_before_any_run(inside, tmp_path, table):
    words = ("--models", "knn,rf", "--data", table, "--target", "status", "--against", "ridge")
    done = inside("rank", *words, "--results", tmp_path / "own", "--jobs", "0", check=2)
    assert "'ridge' (--against) is none of the ranked models: knn, rf." in done.stderr
    with pytest.raises(UserError, match="none of the ranked models"):
        data = api.table(table, "status")
        api.rank(["knn", "rf"], data, against="ridge", results=tmp_path / "own", jobs=0)
    assert not list((tmp_path / "own").rglob("*.json"))


def test_metrics_are_those_of_a_record():
    assert tuple(METRICS) == ("balanced_accuracy", "accuracy", "weighted_f1", "auroc")
    assert Scores.__annotations__.keys() == METRICS.keys()


def test_a_new_metric_gets_its_columns(monkeypatch):
    monkeypatch.setitem(METRICS, "brier", "Brier score")
    assert {"train_brier", "valid_brier", "test_brier"} <= row_of(EMPTY).keys()


def test_what_failed_is_tried_again_and_force_does_one_s_own_again(tmp_path, monkeypatch):
    store = Store(tmp_path, below=Shipped())
    wanted = rank.recipe(["knn", SPELLED], [data_ref("colon")])
    specs = wanted.cell(SPELLED, "colon").specs({}, rank.Protocol())
    for spec in specs:
        record = made_up(spec, 70.0)
        if spec.fold == 0:
            del record["scores"]
            record |= {"status": "timeout", "error": {"message": "it took too long"}}
        write_run(tmp_path, record)
    asked = []

    def planned(plans, means, title):
        asked.extend(spec for plan in plans for spec in next(plan))
        return [], rank.Report()

    monkeypatch.setattr(rank, "carry_out", planned)
    rank.run_missing(wanted, rank.Means(store, retry=False), ())
    assert asked == []
    rank.run_missing(wanted, rank.Means(store), ())
    assert {spec.key for spec in asked} == {spec.key for spec in specs}
    asked.clear()
    rank.run_missing(wanted, rank.Means(store, retry=False, force=True), ())
    assert {spec.key for spec in asked} == {spec.key for spec in specs}, "none of the shipped"


def test_a_method_that_failed_is_not_ranked_there(tmp_path):
    """It would have the mean of the others, above one like it that ran and is below the mean."""
    store, scores = Store(tmp_path), {"0.1": 70.0, "0.2": 80.0, "0.3": 50.0, "0.4": 50.0}
    methods = {f"{SPELLED}:var_smoothing={value}": score for value, score in scores.items()}
    *_, poor, failing = methods
    wanted = rank.recipe(list(methods), [data_ref("colon"), data_ref("toxicity")])
    for method, score in methods.items():
        for dataset in ("colon", "toxicity"):
            cell = wanted.cell(method, dataset)
            setting = store.setting(cell, "own", "base", "default")
            for spec in cell.specs(setting.params, rank.Protocol()):
                record = made_up(spec, score)
                if (method, dataset) == (failing, "toxicity"):
                    del record["scores"]
                    record |= {"status": "unsupported", "error": {"message": "too many classes"}}
                write_run(tmp_path, record)
    ranked = rank.build(wanted, store)
    found = {one.method: (one.rank, one.datasets) for one in ranked.standings}
    assert found[failing] == (None, 0) and found[poor] == (3.0, 2)
    [reason] = rank.reasons(ranked.table)
    assert "on toxicity: all 25 runs failed" in reason


def test_two_classes_of_one_name_are_told_apart(tmp_path):
    """Their scores must not be added up."""
    from benchmark.tables.measured import measure

    methods = ["sklearn.naive_bayes.GaussianNB", "elsewhere.GaussianNB", "knn"]
    table = measure(rank.recipe(methods, [data_ref("colon")]), Store(tmp_path), ["rule"])
    assert [row.label for row in table.rows] == [*methods[:2], "KNN"]


def test_records_are_those_of_one_s_own_folder(tmp_path, monkeypatch, shipped):
    """In a checkout, too, where `results` is the project's."""
    write_run(tmp_path / "own-results", record_of(rows_of(shipped.iloc[:1])[0]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("benchmark.runner.load.own_folder", lambda: Path("own-results"))
    assert len(load_records(shipped=False)) == 1


def test_own_records_never_land_among_the_shipped_ones(monkeypatch, capsys):
    from benchmark.cli import arguments

    monkeypatch.chdir(ROOT)
    assert str(arguments.own_results(arguments.RESULTS)) == "own-results"
    assert "Your own records go to own-results/" in capsys.readouterr().err
    assert str(arguments.own_results(arguments.Path("results"))) == "results", "it was named"
