"""The command line as a user meets it."""

import argparse
import csv
import errno
import io
import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from conftest import ROOT

from benchmark.cli import codes
from benchmark.cli.main import main, parser
from benchmark.progress import waiting
from benchmark.protocol.registry import datasets, models
from benchmark.protocol.spec import DataRef, Outcome
from benchmark.runner.records import Store
from benchmark.runner.verify import differences
from benchmark.text import counted


def test_help_teaches(cli):
    done = cli("--help", check=0)
    for word in (
        "list",
        "data",
        "run",
        "tune",
        "status",
        "table",
        "verify",
        "reproduce",
        "examples",
    ):
        assert word in done.stdout
    explained = done.stdout.partition("exit code")[2]
    for code in (codes.OK, codes.FAILED, codes.USAGE, codes.GAPS, codes.INTERRUPTED):
        assert f" {code} " in explained
    assert "protogate" not in cli("list", "datasets", check=0).stdout.lower()


def test_every_command_has_help():
    [commands] = [a.choices for a in parser()._actions if isinstance(a, argparse._SubParsersAction)]
    assert len(commands) > 15
    for name, command in commands.items():
        text = command.format_help()
        # A sentence on what it does, not the usage alone.
        assert command.description and len(command.description) > 60, name
        assert f"python -m benchmark {name}" in text


def test_help_names_every_word_of_the_budget(capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["reproduce", "--help"])
    assert "all, or none" in " ".join(capsys.readouterr().out.split())


def test_a_sign_of_life_on_a_terminal_alone(monkeypatch):
    for terminal in (True, False):
        stream = io.StringIO()
        stream.isatty = lambda terminal=terminal: terminal
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", "xterm")
        with waiting("comparing"):
            pass
        assert ("comparing" in stream.getvalue()) == terminal


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(1, "column", "1 column"), (0, "row", "0 rows"), (2, "class", "2 classes")],
)
def test_one_thing_is_not_several(number, noun, text):
    assert counted(number, noun) == text


def test_list_as_json(cli):
    listed = json.loads(cli("list", "models", "--format", "json", check=0).stdout)
    assert [model["name"] for model in listed] == list(models())
    assert listed[0].keys() >= {"name", "label", "selects", "params", "grid"}
    everything = json.loads(cli("list", "--format", "json", check=0).stdout)
    assert [d["name"] for d in everything["datasets"]] == list(datasets())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--models", "kn"], ["Unknown model 'kn'", "Did you mean 'knn'?", "ridge"]),
        (["run", "--models", "KNN", "--datasets", "colom"], ["Unknown", "Did you mean"]),
        (["run", "--models", "svm:kernl=rbf"], ["setting of svm", "'kernel'"]),
        (["run", "--models", "svm:rbf"], ["name:key=value"]),
        (["run", "--models", "ridge:C=1e400"], ["not a finite number"]),
        (["run", "--datasets", "syn1:generator=new"], ["released", "fixed"]),
        (["run", "--datasets", "syn1:gen=fixed"], ["switch of dataset syn1"]),
        (["table", "99"], ["Unknown table", "table2"]),
        (["table", "0"], ["Unknown table 'table0'.\nValid are: table2"]),
        (["figure", "1"], ["Unknown figure 'figure1'.\nValid are: figure3"]),
        (["reproduce", "figure3"], ["`python -m benchmark figure figure3`"]),
        (["run", "--models", "knn", "--data-dir", "/no/folder"], ["The data folder /no/folder"]),
        (["reproduce", "table2", "--models", "protogate-text"], ["model of table2", "'protogate'"]),
        (["reproduce", "table2", "--datasets", "syn1"], ["dataset of table2"]),
        (["run", "--target", "y"], ["--data"]),
        (["run", "--data", "x.csv", "--target", "y", "--target", "z"], ["one per table"]),
        (["run", "--models", "knn", "--folds", "1"], ["--folds"]),
        (["run", "--models", "knn", "--jobs", "0", "--timeout", "9"], ["--jobs 1"]),
        (["run", "--models", "knn", "--keep", "weights"], ["array to keep", "proba"]),
        (["tune", "--models", "xgboost"], ["Nothing to tune"]),
        (["verify", "nothing"], ["No record 'nothing'"]),
        (["data", "import", "colon"], ["import takes"]),
        (["data", "get", "colum"], ["Did you mean 'colon'?"]),
    ],
)
def test_mistakes_are_answered_with_a_remedy(inside, tmp_path, words, said):
    if words[0] in ("run", "tune", "verify", "reproduce"):
        words = [*words, "--results", tmp_path]
    done = inside(*words, check=2)
    for part in said:
        assert part in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    "words", [["--jobs", "-1"], ["--repeats", "0"], ["--timeout", "0"], ["--memory", "x"]]
)
def test_impossible_numbers_are_refused(inside, words):
    inside("run", *words, check=2)


RUN = ("run", "--models", "knn", "--datasets", "syn1", "--repeats", "1", "--jobs", "1")
HERE = (*RUN, "--jobs", "0")  # of two the last counts


def test_a_single_fold_is_refused_before_the_table_is_read(inside, tmp_path):
    words = "run", "--data", tmp_path / "no.csv", "--target", "y", "--models", "knn", "--folds", "1"
    assert "At least 2 folds" in inside(*words, "--results", tmp_path, check=2).stderr


def test_what_is_named_twice_is_done_and_shown_once(inside, tmp_path):
    done = inside(*HERE, "--models", "knn,knn", "--results", tmp_path, check=0)
    assert done.stdout.count("| knn ") == 1


def test_results_on_stdout_and_remarks_on_stderr(cli, inside, tmp_path):
    done = cli(*RUN, "--results", tmp_path, check=0)
    assert done.stdout.startswith("| model") and "Not tuned" in done.stderr
    rows = json.loads(inside(*RUN, "--results", tmp_path, "--format", "json", check=0).stdout)
    assert rows[0]["runs"] == 5 and 0 < rows[0]["balanced_accuracy"] < 100
    text = inside(*RUN, "--results", tmp_path, "--format", "csv", check=0).stdout
    [row] = csv.DictReader(io.StringIO(text))
    assert float(row["balanced_accuracy"]) == pytest.approx(rows[0]["balanced_accuracy"])


def test_data_that_is_nowhere_is_named_once_and_the_rest_goes_on(inside, tmp_path, monkeypatch):
    for name in ("BENCHMARK_DATA", "BENCHMARK_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    done = inside("run", "--models", "knn", "--datasets", "meta-dr,syn1", "--repeats", "1",
                  "--jobs", "0", "--results", tmp_path, check=3)  # fmt: skip
    assert done.stderr.count("Dataset 'meta-dr' is not on this machine") == 1
    assert "syn1" in done.stdout and len(list(tmp_path.rglob("r*f*.json"))) == 5


def test_remarks_are_on_the_data_that_were_asked_for(inside, tmp_path):
    done = inside("run", "--models", "knn", "--datasets", "syn1,syn1:generator=fixed",
                  "--repeats", "1", "--jobs", "0", "--results", tmp_path, check=0)  # fmt: skip
    assert done.stderr.count("syn1: generator 'released'") == 1
    assert done.stderr.count("syn1:generator=fixed: generator 'fixed'") == 1


KNN_ON_COLON = ("knn", "colon", "rule")


def test_status_counts_and_names_what_is_not_a_record(inside, tmp_path):
    assert "No records of your own yet" in inside("status", "--results", tmp_path, check=0).stdout
    inside(*HERE, "--results", tmp_path, check=0)
    assert "knn" in inside("status", "--results", tmp_path, check=0).stdout
    (tmp_path / "runs" / "stray.txt").write_text("?")
    done = inside("status", "--results", tmp_path, "--format", "json", check=3)
    assert "stray.txt" in done.stderr
    [row] = json.loads(done.stdout)
    assert row["ok"] == 5 and row["failed"] == {}
    needs = json.loads(
        inside("status", "table2", "--results", tmp_path, "--format", "json", check=3).stdout
    )
    [row] = [r for r in needs if (r["model"], r["dataset"], r["edition"]) == KNN_ON_COLON]
    assert row["state"] == "not tuned" and "core_hours" in row


def test_verify_tells_equal_from_different(inside, tmp_path):
    inside(*HERE, "--results", tmp_path, check=0)
    store = Store(tmp_path)
    record = next(store.scan())
    done = inside("verify", record["key"], "--results", tmp_path, "--jobs", "0", check=0)
    assert done.stdout.startswith("same")
    record["scores"]["test"]["accuracy"] = 0.123
    path = store.write(Outcome(record))
    done = inside("verify", path, "--results", tmp_path, "--jobs", "0", check=1)
    assert "DIFFERENT" in done.stdout and "scores.test.accuracy: 0.123 ->" in done.stdout
    assert "made with something else" not in done.stdout
    record["meta"]["environment"] |= {"cpu": "an abacus", "cores": 99, "gone": "since"}
    store.write(Outcome(record))
    done = inside("verify", path, "--results", tmp_path, "--jobs", "0", check=1)
    assert "cpu: 'an abacus' -> " in done.stdout
    assert not {"cores", "gone"} & set(done.stdout.replace(":", " ").split())
    path.write_text("{}")
    assert "not a record" in inside("verify", path, "--results", tmp_path, check=2).stderr
    # A damaged file is named, and the others are done again all the same.
    done = inside("verify", "knn", "--results", tmp_path, "--jobs", "0", check=1)
    assert f"not a record: {path}" in done.stderr and done.stdout.count("same") == 4


def test_of_a_long_list_the_first_difference_is_named():
    def lines(old, new):
        return differences({"curve": old}, {"curve": new})

    assert lines([1, 2, 3], [1, 2, 3]) == []
    assert lines([1, 2, 3], [1, 5, 3]) == ["curve[1]: 2 -> 5"]
    assert lines([1, 2, 3], [1, 5, 6]) == ["curve[1]: 2 -> 5 (and 1 more of 3)"]
    assert lines([1], [1, 2]) == ["curve: [1] -> [1, 2]"]


def test_arrays_are_kept_beside_the_record(cli, inside, tmp_path):
    inside(*HERE, "--results", tmp_path, check=0)
    assert not list(tmp_path.rglob("*.npz"))
    inside(*HERE, "--results", tmp_path, "--keep", "proba", check=0)
    assert len(list(tmp_path.rglob("*.npz"))) == 5
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")}
    # KNN selects nothing, so asking for that too changes nothing; nor does asking again.
    inside(*HERE, "--results", tmp_path, "--keep", "proba,selected", check=0)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.npz")} == before
    # A run that fails while arrays are made does not cost the record that exists.
    next(iter(before)).unlink()
    done = cli(*RUN, "--results", tmp_path, "--keep", "proba", "--timeout", "0.001")
    assert "the record that exists is kept" in done.stderr
    assert all(record["status"] == "ok" for record in Store(tmp_path).scan())
    # Arrays of an older run do not stay beside a newer record.
    inside(*HERE, "--results", tmp_path, "--keep", "proba", check=0)
    inside(*HERE, "--results", tmp_path, "--force", check=0)
    assert not list(tmp_path.rglob("*.npz"))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("knn, rf,,knn", ["knn", "rf"]),
        ("a:MLP:sizes=[10,5],knn", ["a:MLP:sizes=[10,5]", "knn"]),
        ("a:M:s=[[1,2],[3]],b:M:s={1,2}", ["a:M:s=[[1,2],[3]]", "b:M:s={1,2}"]),
        ("a],b", ["a]", "b"]),
    ],
)
def test_commas_in_brackets_belong_to_a_setting(text, names):
    assert parser().parse_args(["run", "--models", text]).models == names


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("age, sex", ["age", "sex"]),
        ('"age, years",sex', ["age, years", "sex"]),
        ('sex, "5"" wide, cut",[mg,5" long', ["sex", '5" wide, cut', "[mg", '5" long']),
    ],
)
def test_columns_with_commas_stand_in_quotes(text, columns):
    drop = parser().parse_args(["run", "--drop", text]).drop
    assert drop == columns
    # And so they do where the command is shown.
    words = DataRef("t", {"target": "y", "sha256": "", "drop": columns}, "t.csv").words
    assert parser().parse_args(["run", *shlex.split(words)]).drop == columns


def test_an_option_that_is_given_twice_loses_nothing():
    read = parser().parse_args
    words = ["run", "--models", "knn", "--drop", "a", "--models", "svm,rf", "--drop", "b"]
    found = read(words)
    assert (found.models, found.drop) == (["knn", "svm", "rf"], ["a", "b"])
    assert read(["run"]).drop == []  # and a default is not added to


@pytest.mark.parametrize("option", ["--id", "--groups", "--split"])
def test_of_two_columns_for_one_thing_neither_is_taken(option, capsys):
    with pytest.raises(SystemExit):
        parser().parse_args(["run", option, "a", option, "b"])
    assert f"{option}: is given twice" in capsys.readouterr().err
    assert parser().parse_args(["run", "--jobs", "1", "--jobs", "2"]).jobs == 2  # as everywhere


def test_keeping_one_array_does_not_cost_another(inside, tmp_path):
    words = ("run", "--models", "rf:n_estimators=5", "--datasets", "syn1", "--repeats", "1", "--jobs",
             "0", "--results", tmp_path)  # fmt: skip
    inside(*words, "--keep", "proba", check=0)
    kept = [set(np.load(path).files) for path in tmp_path.rglob("r*.npz")]
    assert len(kept) == 5 and all({"proba", "selected"} <= names for names in kept)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("r*.npz")}
    inside(*words, "--keep", "selected", check=0)
    inside(*words, "--keep", "proba", check=0)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("r*.npz")} == before


def test_reproduce_fills_a_cell_and_writes_the_table(inside, tmp_path):
    done = inside("reproduce", "table2", "--models", "knn", "--datasets", "colon", "--jobs", "0",
                  "--results", tmp_path / "results", "--reports", tmp_path / "reports", check=0)  # fmt: skip
    assert done.stdout.startswith("Whether ProtoGate ranks first is open")  # above the table
    assert "KNN  71.65=\n" in done.stdout
    for kind in ("md", "csv"):
        assert "71.65" in (tmp_path / "reports" / f"table2.{kind}").read_text()
    text = inside(
        "table", "2", "--format", "csv", "--results", tmp_path / "results", check=3
    ).stdout
    assert (
        text.splitlines()[0]
        == "table,method,dataset,metric,mean,std,n,edition,paper_mean,paper_std,verdict"
    )
    rows = list(csv.DictReader(io.StringIO(text)))
    [row] = [
        r for r in rows if (r["method"], r["dataset"], r["edition"]) == ("knn", "colon", "rule")
    ]
    assert (row["mean"], row["std"], row["n"], row["verdict"]) == ("71.65", "12.03", "25", "equal")


def test_a_users_own_model_runs_without_touching_the_project(cli, tmp_path, misbehaving):
    done = cli("run", "--models", "prior,knn", "--datasets", "syn1", "--repeats", "1", "--folds", "2",
               "--jobs", "1", "--results", tmp_path, check=0, **misbehaving)  # fmt: skip
    assert "prior" in done.stdout and "knn" in done.stdout


def test_a_results_folder_that_cannot_be_written_is_named(cli, tmp_path):
    (tmp_path / "file").write_text("")
    done = cli(*RUN, "--results", tmp_path / "file", check=2)
    assert "Nothing can be written" in done.stderr and "--results" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["compare"],
        ["compare", "--why"],
        ["claims"],
        ["report"],
        ["figure", "3"],
        ["figure", "scatter"],
        ["export", "runs.csv", "--own"],
        ["export", "runs.csv"],
    ],
)
def test_a_results_folder_that_is_not_there_is_named(inside, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    done = inside(*words, "--results", tmp_path / "nowhere", check=2)
    assert f"There is no results folder {tmp_path / 'nowhere'}; --results" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["report", "--to", "file"], "--to"),
        (["figure", "3", "--to", "file"], "--to"),
        (["reproduce", "table2", "--reports", "file"], "--reports"),
        (["features", "--datasets", "syn1", "--to", "file"], "--to"),
        (["rank", "--models", "knn,svm", "--datasets", "colon", "--to", "file"], "--to"),
    ],
)
def test_a_folder_that_cannot_be_written_is_named_with_its_option(
    inside, tmp_path, monkeypatch, words, option
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    done = inside(*words, "--results", tmp_path, check=2)
    assert f"Nothing can be written to file: File exists. Name another folder with {option}." in (
        done.stderr
    )


def test_a_full_disk_names_the_file_and_the_remedy(inside, tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    done = inside("export", tmp_path / "runs.csv", "--own", "--results", tmp_path, check=1)
    assert f"No space left on device: {tmp_path / 'runs.csv'}. Make room" in done.stderr
    assert "Finished runs" not in done.stderr, "it does none"
    done = inside(*HERE, "--results", tmp_path, check=1)
    assert ".json. Make room" in done.stderr and "Finished runs are kept" in done.stderr
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[mine", "not valid TOML"),
        (b"\xff\xfe", "not valid TOML"),
        (b"[mine]\nlabel = 'x'", "incomplete"),
        (b"[mine]\nclass = 'nowhere:X'\n", "there is no module 'nowhere'"),
        (b"[mine]\nclass = 'json:NoSuch'\n", "no class 'NoSuch'"),
        (b"['a/b']\nclass = 'json:X'\n", "may only have letters"),
        (b"[mine]\nclass = 'json:X'\nparams = { d = 2020-01-01 }\n", "JSON"),
    ],
)
def test_a_broken_models_file_is_explained(inside, tmp_path, monkeypatch, text, said):
    (tmp_path / "own.toml").write_bytes(text)
    monkeypatch.setenv("BENCHMARK_MODELS", str(tmp_path / "own.toml"))
    words = "run", "--models", "mine:d=1", "--datasets", "syn1", "--results", tmp_path
    done = inside(*words, check=2)
    assert said in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tabel", "2"], "there is no 'tabel' here. Did you mean 'table'?"),
        (["run", "--jobs", "x"], "argument --jobs: must be a whole number, got 'x'"),
        (["reproduce", "table2", "--budget", "soon"], "must be a number such as 90, 2m or 3h"),
        (["list", "nothing"], "There are: models, datasets, tables, figures."),
        ([], "commands:"),
        (["run", "--memory", "4X"], "must be a number such as 800M or 4G, got '4X'"),
        (["run", "--jbos", "3"], "'--jbos' has no meaning here. Did you mean '--jobs'?"),
        (["table", "2", "3"], "'3' has no meaning here."),
    ],
)
def test_a_wrong_word_gets_the_right_one(words, said, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert said in capsys.readouterr().err


def test_a_table_without_results_says_so(inside, tmp_path):
    done = inside("table", "2", "--results", tmp_path / "nowhere", check=3)
    assert "There is no results folder" in done.stderr and "--results" in done.stderr


def test_what_nobody_can_run_here_costs_nothing(inside, tmp_path, monkeypatch):
    """Data that have to be fetched by hand: named once, and no part of the hours."""
    monkeypatch.delenv("BENCHMARK_DATA", raising=False)
    monkeypatch.setenv("BENCHMARK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "results").mkdir()
    text = inside("status", "table2", "--results", tmp_path / "results", check=3).stdout
    assert text.rstrip().endswith("have to be fetched by hand: meta-dr, tcga-2y.")
    assert "| lung" in text and "| meta-dr" not in text
    rows = json.loads(
        inside(
            "status", "table2", "--results", tmp_path / "results", "--format", "json", check=3
        ).stdout
    )
    assert {row["state"] for row in rows if row["dataset"] == "meta-dr"} == {"no data"}
    done = inside("reproduce", "table2", "--models", "knn", "--datasets", "meta-dr,tcga-2y", "--jobs",
                  "0", "--results", tmp_path / "results", "--reports", tmp_path, check=3)  # fmt: skip
    assert "core-hours" not in done.stderr
    for name in ("meta-dr", "tcga-2y"):
        way = f"python -m benchmark data get {name}"
        [line] = [line for line in done.stderr.splitlines() if f"`{way}` tells how" in line]
        assert line.split()[:3] == [name, "by", "hand;"]
        told = inside("data", "get", name, check=3)
        assert "To get it: The" in told.stdout + told.stderr, "and so it does"


def test_reproducing_says_where_each_dataset_comes_from(inside, tmp_path, monkeypatch):
    """Fetched where an address answers, and named where none does; then the campaign says why."""
    from benchmark.data import getting

    monkeypatch.delenv("BENCHMARK_DATA", raising=False)
    monkeypatch.setenv("BENCHMARK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "results").mkdir()
    asked = []

    def get(names):
        asked.extend(names)
        [row] = getting.status(names)
        return [
            replace(row, state="ready" if names == ["lung"] else "failed", detail="cache: lung.mat")
        ]

    monkeypatch.setattr(getting, "get", get)
    monkeypatch.setenv("BENCHMARK_OFFLINE", "1")
    words = ("reproduce", "table2", "--models", "knn", "--datasets", "colon,lung,meta-dr,prostate")
    done = inside(*words, "--budget", "60", "--jobs", "0", "--results", tmp_path / "results",
                  "--reports", tmp_path, check=3)  # fmt: skip
    lines = {line.split()[0]: line for line in done.stderr.splitlines() if line.startswith("  ")}
    assert "at hand (embedded: colon.npz)" in lines["colon"]
    assert "fetched (cache: lung.mat)" in lines["lung"]
    assert "could not be fetched" in lines["prostate"] and "by hand" in lines["meta-dr"]
    assert asked == ["lung", "prostate"]
    # What is not run needs no data.
    done = inside(*words, "--budget", "none", "--jobs", "0", "--results", tmp_path / "results",
                  "--reports", tmp_path, check=3)  # fmt: skip
    assert asked == ["lung", "prostate"]
    assert "no run that is done now needs it" in done.stderr


def test_verify_does_not_call_a_run_without_data_different(inside, tmp_path, monkeypatch):
    """Nothing is known of the bits of a run that cannot be done again."""
    record = ROOT / "results/runs/knn/lung/589768a0/r0f0.json"
    monkeypatch.setenv("BENCHMARK_DATA", str(tmp_path / "nowhere"))
    done = inside("verify", record, "--jobs", "0", check=1)
    assert done.stdout.startswith("FAILED") and "DIFFERENT" not in done.stdout
    assert "could not be done again: The data folder" in done.stdout


def test_verify_takes_folders_and_notices_other_revisions(inside, tmp_path, misbehaving):
    here = ("--results", tmp_path, "--jobs", "0")
    inside("run", "--models", "prior", "--datasets", "syn1", "--repeats", "1", *here, check=0)
    done = inside("verify", "prior", *here, check=0)
    assert done.stdout.count("same") == 5
    registry = tmp_path / "own.toml"
    registry.write_text(registry.read_text().replace("[prior]", "[prior]\nrevision = 2"))
    done = inside("verify", "prior", *here, check=1)
    assert "made with revision 1 of prior, the code has 2" in done.stdout


def test_output_into_a_closed_pipe_is_no_error():
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmark", "list", "--format", "json"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(timeout=60) == 0
    assert errors == b""
