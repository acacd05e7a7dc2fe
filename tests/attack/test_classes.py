"""One plain example of each class of failure that an attack once found and that the small part of the
generators may miss. The others have theirs beside what they test."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
from attack.scale import attempt
from attack.test_own import loaded
from conftest import ROOT, cell_of, made_up

from benchmark.cli.arguments import MOST, positive, protocol_of
from benchmark.data import places
from benchmark.protocol import registry, stored
from benchmark.protocol.plan import Protocol
from benchmark.protocol.record import answer_to
from benchmark.protocol.spec import PARTS, Outcome, UserError
from benchmark.runner.records import Problem, Store, digest
from benchmark.runner.worker import LAST_WORDS, Worker
from benchmark.shapes import Misshapen, parse


@pytest.fixture(autouse=True)
def counted():
    attempt("plain examples of the classes")


def first_spec(model="knn", **params):
    return cell_of(model, "syn1").specs(params, Protocol(1, 2))[0]


# 2, 13, 16: records ------------------------------------------------------------------------------

SPELLINGS = {
    "not a number": "NaN",
    "infinite": "1e999",
    "infinite in digits": "9" * 400 + ".0",
    "too many digits": "9" * 5000,
    "nested deeply": "[" * 100_000 + "]" * 100_000,
}


@pytest.mark.parametrize("word", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("field", ["model", "meta", "scores", "more"])
def test_no_spelling_stops_a_reader(tmp_path, word, field):
    store = Store(tmp_path)
    path = store.write(Outcome(made_up(first_spec(), 50.0)))
    good = json.loads(path.read_text())
    path.write_text(json.dumps({**good, field: {"x": "@"}}).replace('"@"', word))
    [problem] = store.scan()
    assert isinstance(problem, Problem)


@pytest.mark.parametrize("word", SPELLINGS.values(), ids=SPELLINGS)
def test_no_spelling_stops_who_reads_beside_the_records(tmp_path, word):
    """Choices, times and findings have one reader."""
    path = tmp_path / "choice.json"
    path.write_text(f'{{"valid": {word}}}')
    with pytest.raises(stored.Damaged, match="choice.json cannot be used: it is n.*Tune again"):
        stored.read(dict[str, Any], path, "Tune again.")


@pytest.mark.parametrize(
    "wrong",
    [
        {"scores": [1, 2]},
        {"split": True},
        {"scores": {"test": {"balanced_accuracy": "high"}}},
        {"scores": {part: {"balanced_accuracy": 1e152} for part in PARTS}},
        {"status": "fine"},
        {"status": "error"},
        {"selection": {"mean": None}},
        {"data": {"sha256": "a", "shape": [3], "classes": 2}},
        {"meta": []},
        {"model": {"constant_mask": 3}},
    ],
)
def test_a_right_checksum_does_not_make_a_record(tmp_path, wrong):
    store = Store(tmp_path)
    path = store.write(Outcome(made_up(first_spec(), 50.0)))
    changed = {**store.load(path), **wrong}
    path.write_text(json.dumps({**changed, "checksum": digest(changed, 16)}))
    [problem] = store.scan()
    assert isinstance(problem, Problem) and "not a record of this benchmark: " in problem.reason


# 5: replies --------------------------------------------------------------------------------------


def test_an_answer_of_the_cluster_is_checked_like_that_of_a_worker():
    asked, other = (cell_of("knn", "syn1").specs({}, Protocol(1, 2)))[:2]
    good = json.dumps(made_up(asked, 50.0))
    assert answer_to(asked, parse(good.encode()))["key"] == asked.key
    for answer in (json.dumps(made_up(other, 50.0)), "{}", "no", '{"status": NaN}'):
        with pytest.raises(Misshapen):
            answer_to(asked, parse(answer.encode()))


# 7: labels ---------------------------------------------------------------------------------------

ROWS = 40


@pytest.mark.parametrize("pair", [("01", "1"), ("1e2", "100"), ("+1", "1"), ("0.10", "0.1")])
def test_labels_of_one_number_are_refused(tmp_path, pair):
    path = tmp_path / "mine.csv"
    # With a third class beside them: two would be left, and nobody would notice.
    rows = [f"{i % 7},{(*pair, '7')[i % 3]}" for i in range(ROWS)]
    path.write_text("a,group\n" + "\n".join(rows) + "\n")
    with pytest.raises(UserError, match="are the same number"):
        loaded(path)


def test_numbers_of_a_spreadsheet_are_one_class(tmp_path):
    path = tmp_path / "mine.csv"
    rows = [f"{i % 7},{['1', '1.0', '2', '2.'][i % 4]}" for i in range(ROWS)]
    path.write_text("a,group\n" + "\n".join(rows) + "\n")
    assert loaded(path).classes == ("1", "2")


def test_a_percent_sign_is_part_of_a_label(tmp_path):
    path = tmp_path / "mine.arff"
    rows = "\n".join(f"{i % 7},lo%{1 + i % 2}" for i in range(ROWS))
    head = "@relation r\n@attribute a real\n@attribute group {lo%1,lo%2}\n@data\n% a comment\n"
    path.write_text(head + rows + "\n")
    assert loaded(path).classes == ("lo%1", "lo%2")


@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_class_that_is_a_quote_takes_no_row_away(tmp_path, quote):
    path, written = tmp_path / "mine.arff", (f"{quote}a{quote}", f"{quote}\\{quote}{quote}")
    head = f"@relation r\n@attribute a real\n@attribute group {{{','.join(written)}}}\n@data\n"
    path.write_text(head + "".join(f"{i % 7},{written[i % 2]}\n" for i in range(ROWS)))
    data = loaded(path)
    assert data.X[:, 0].tolist() == [i % 7 for i in range(ROWS)]
    assert [data.classes[code] for code in data.y] == ["a", quote] * (ROWS // 2)


def test_an_index_with_a_name_is_a_column(tmp_path):
    frame = pd.DataFrame({"a": np.arange(ROWS) % 7 * 1.0, "group": ["x", "y"] * (ROWS // 2)})
    frame.set_index(pd.Index(np.arange(ROWS) % 5 * 0.5, name="dose")).to_parquet(
        tmp_path / "mine.parquet"
    )
    assert set(loaded(tmp_path / "mine.parquet").features) == {"a", "dose"}


# 8, 14, 15: registries ---------------------------------------------------------------------------


def test_a_shipped_name_is_taken(own_registry):
    own_registry('[knn]\nclass = "own_models:Prior"\n')
    with pytest.raises(UserError, match="'knn'.*ships with the project.*my-knn"):
        registry.models()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("params = 3", "params is 3, expected a table"),
        ("params = [1]", "params is"),
        ("grid = { C = [] }", "grid.C is empty"),
        ("grid = { C = 1 }", "grid.C is 1, expected a list"),
        (f"grid = {{ C = {[*range(101)]}, D = {[*range(101)]} }}", "grid has more than 10000"),
        ("trials = 0", "trials is 0"),
        ("trials = 100000000", "trials is 100000000"),
        ('trials = "many"', "trials is 'many', expected a whole number"),
        ("range.C = { low = 2, high = 1 }", "range.C goes from 2 to 1"),
        ("range.C = { low = 0, high = 1, log = true }", "range.C is logarithmic from 0"),
        ('range.C = { low = "a", high = 1 }', "range.C.low is 'a', expected a number"),
        ("range.C = { low = 1 }", "range.C.high is missing"),
        ("group = [1]", "group is"),
        ("group.hdlss.grid = { C = [] }", "group.hdlss.grid.C is empty"),
        ('dataset = "colon"', "dataset is 'colon'"),
        ('revision = "x"', "revision is 'x', expected a whole number"),
        ("recovered = [1]", "recovered is"),
        ("parms = {}", "Unknown field 'parms'. Did you mean 'params'"),
        (f"params.x = {'[' * 3000}{']' * 3000}", "nested"),
    ],
)
def test_the_field_that_is_wrong_is_named(own_registry, line, said):
    own_registry(f'[mine]\nclass = "own_models:Prior"\n{line}\n')
    with pytest.raises(UserError, match="mine|models.toml") as error:
        registry.models()
    assert said in str(error.value)


@pytest.mark.parametrize("name", ["..", ".", "a/b", "../x", ".hidden", "x" * 300])
def test_a_name_that_is_no_folder_is_refused(own_registry, name):
    own_registry(f'["{name}"]\nclass = "own_models:Prior"\n')
    with pytest.raises(UserError, match="may only have letters"):
        registry.models()


# 12: folders ------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["~nosuchuser/x", "{loop}", "{loop}/x", "x" * 300, "{file}"])
def test_what_is_no_folder_is_named(tmp_path, monkeypatch, folder):
    stand = {"loop": tmp_path / "loop", "file": tmp_path / "file"}
    stand["loop"].symlink_to("loop")
    stand["file"].touch()
    monkeypatch.setenv("BENCHMARK_DATA", folder.format(**stand))
    with pytest.raises(UserError, match="does not exist|no such user"):
        places.data_folder()


# 19: signals -------------------------------------------------------------------------------------

TWICE = """
import os, signal, time
from benchmark.cli.terminal import Interrupts
interrupts = Interrupts()
try:
    interrupts.raise_the_first()
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
except KeyboardInterrupt:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10)
"""


def test_a_second_signal_ends_without_a_traceback():
    done = subprocess.run([sys.executable, "-c", TWICE], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "")


def test_a_signal_before_the_command_line_is_ready_says_nothing():
    code = "import signal, benchmark.__main__; signal.raise_signal(signal.SIGINT)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


# 22: Dask ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_scheduler_that_dies_leaves_our_message_only(tmp_path):
    pytest.importorskip("distributed")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BENCHMARK_OFFLINE": "1"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    address, module = "tcp://127.0.0.1:48786", [sys.executable, "-m"]
    scheduler = subprocess.Popen(
        [*module, "distributed.cli.dask_scheduler", "--port", "48786", "--no-dashboard"], **quiet
    )
    worker = subprocess.Popen(
        [*module, "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"],
        **quiet,
    )
    try:
        time.sleep(8)
        run = subprocess.Popen(
            [sys.executable, "-m", "benchmark", "run", "--models", "rf", "--datasets", "syn1",
             "--dask", address, "--results", str(tmp_path)],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        deadline = time.monotonic() + 90
        while not list(tmp_path.rglob("*.json")) and time.monotonic() < deadline:
            time.sleep(0.1)
        scheduler.kill()
        _, errors = run.communicate(timeout=120)
        assert "Traceback" not in errors and run.returncode == 2, errors
        assert "the same command resumes" in " ".join(errors.split())
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


# 23, 25: sizes -----------------------------------------------------------------------------------


def test_a_number_that_would_fill_the_memory_is_refused():
    with pytest.raises(argparse.ArgumentTypeError, match="at most"):
        positive("100000000")
    with pytest.raises(UserError, match="at most 10000 splits"):
        protocol_of(argparse.Namespace(repeats=MOST, folds=MOST))


def test_of_what_a_model_prints_only_the_end_is_kept(misbehaving):
    worker = Worker()
    try:
        assert worker.run(first_spec("prior", trouble="flood")).ok
        assert len(worker._said) <= LAST_WORDS
    finally:
        worker.close()
