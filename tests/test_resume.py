"""Resuming: planned minus finished, whatever happened before. Kills are in tests/attack."""

import signal
import subprocess
import sys
import time

from conftest import ROOT

from benchmark.files import WRITER
from benchmark.runner.records import Problem, Store
from benchmark.runner.verify import differences


def records(results):
    found = list(Store(results).scan())
    assert not [item for item in found if isinstance(item, Problem)]
    return {record["key"]: record for record in found}


def test_finished_runs_are_not_repeated_and_force_repeats_them(tmp_path, inside):
    words = ("run", "--models", "knn", "--datasets", "syn1", "--repeats", "1", "--jobs", "0",
             "--results", tmp_path)  # fmt: skip
    inside(*words, check=0)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")}
    assert len(before) == 5
    inside(*words, check=0)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.json")} == before
    inside(*words, "--force", check=0)
    assert all(path.stat().st_mtime_ns > old for path, old in before.items())


def test_a_corrupt_record_is_named_set_aside_and_done_again(tmp_path, inside):
    words = ("run", "--models", "knn", "--datasets", "syn1", "--repeats", "1", "--jobs", "0",
             "--results", tmp_path)  # fmt: skip
    inside(*words, check=0)
    victim = sorted((tmp_path / "runs").rglob("*.json"))[2]
    good = Store(tmp_path).load(victim)
    victim.write_text(victim.read_text()[:100])
    done = inside(*words, check=0)
    assert f"set aside {victim}" in done.stderr
    assert len(list((tmp_path / "set-aside").rglob("*.json"))) == 1
    assert differences(good, Store(tmp_path).load(victim)) == []


def test_failed_runs_are_tried_again_unless_asked_not_to(tmp_path, cli, inside, misbehaving):
    words = ("run", "--models", "prior:trouble=die", "--datasets", "syn1", "--repeats", "1",
             "--folds", "2", "--results", tmp_path, "--jobs", "1")  # fmt: skip
    done = cli(*words, check=1, **misbehaving)
    assert "2 x killed" in done.stderr
    skipped = inside(*words, "--skip-failed", check=1)
    assert "2 x killed" in skipped.stderr
    stamps = [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*.json"))]
    cli(*words, check=1, **misbehaving)
    assert stamps != [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*.json"))]


def test_failures_that_would_happen_again_are_not_retried(tmp_path, inside, misbehaving):
    words = ("run", "--models", "prior:trouble=refuse", "--datasets", "syn1", "--repeats", "1",
             "--results", tmp_path, "--jobs", "0")  # fmt: skip
    inside(*words, check=1)
    stamps = [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*.json"))]
    assert "5 x unsupported" in inside(*words, check=1).stderr
    assert stamps == [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*.json"))]


def test_the_writes_of_a_living_process_are_left_alone(tmp_path):
    store = Store(tmp_path)
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    store.runs.mkdir()
    mine = store.runs / f".r0f0.json.{WRITER}.abc.tmp"
    orphan = store.runs / f".r0f0.json.{WRITER.rpartition('.')[0]}.{dead.pid}.abc.tmp"
    foreign = store.runs / ".r0f0.json.otherhost.1.abc.tmp"
    for path in (mine, orphan, foreign):
        path.write_text("")
    store.tidy()
    assert mine.exists() and foreign.exists() and not orphan.exists()


def test_ctrl_c_ends_cleanly(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmark", "run", "--models", "rf", "--datasets", "colon",
         "--results", str(tmp_path), "--jobs", "2"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not list(tmp_path.rglob("*.json")) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Finished runs are kept" in errors and "Traceback" not in errors
    assert time.monotonic() - begin < 30  # many times shorter than the runs that were left
    kept = records(tmp_path)
    assert kept and all(record["status"] == "ok" for record in kept.values())
