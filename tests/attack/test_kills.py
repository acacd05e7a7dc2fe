"""Kills at random moments: of the parent, a worker or the whole group, in `run` and in `tune`. What is
left is whole, the same command resumes, and the end is that of a campaign that nobody disturbed."""

import os
import random
import signal
import subprocess
import sys
import time

import psutil
import pytest
from attack.scale import FULL, SEED, attempt
from conftest import ROOT

from benchmark.runner.records import Problem, Store
from benchmark.runner.verify import differences

COMMANDS = {
    "run": ["run", "--models", "knn", "--datasets", "syn1", "--repeats", "2"],
    "tune": ["tune", "--models", "prior-range", "--datasets", "syn2", "--repeats", "1"],
}
KILLS = 100 if FULL else 2
"""Per command."""
DEADLINE = 240


def start(words, results, environment):
    return subprocess.Popen(
        [sys.executable, "-m", "benchmark", *words, "--jobs", "2", "--results", str(results)],
        cwd=ROOT, env={**os.environ, **environment, "BENCHMARK_OFFLINE": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def outcome(results):
    """Records without `meta`, and the bytes of the choices."""
    found = list(Store(results).scan())
    assert not [item for item in found if isinstance(item, Problem)], found
    chosen = {
        str(path.relative_to(results)): path.read_bytes()
        for path in (results / "choices").rglob("*.json")
    }
    return {record["key"]: record for record in found}, chosen


def family(process):
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        return []


def kill(process, target, moments):
    """Returns whether there was somebody to kill."""
    descendants = family(process)
    if process.poll() is not None:
        return False
    if target == "parent":
        process.kill()
    elif target == "group":
        os.killpg(process.pid, signal.SIGKILL)
    elif descendants:
        try:
            moments.choice(descendants).kill()
        except psutil.Error:
            return False
    else:
        return False
    if target != "worker":
        _, alive = psutil.wait_procs(descendants, timeout=20)
        assert alive == [], "orphans"
    return True


whole = pytest.mark.skipif(not FULL, reason="`make attack` does it")


@pytest.mark.parametrize("verb", COMMANDS if FULL else ["tune"])
def test_kill_schedules(tmp_path, misbehaving, verb):
    moments = random.Random(f"{SEED}/{verb}")
    words = COMMANDS[verb]
    end = start(words, tmp_path / "calm", misbehaving)
    begun = time.monotonic()
    told = end.communicate(timeout=DEADLINE)
    assert end.returncode == 0, told
    length = time.monotonic() - begun
    records, chosen = outcome(tmp_path / "calm")
    assert records and bool(chosen) == (verb == "tune")

    kills, folder = 0, 0
    while kills < KILLS:
        folder += 1
        results = tmp_path / f"broken{folder}"
        for _ in range(moments.randint(*((2, 12) if FULL else (1, 2)))):
            process = start(words, results, misbehaving)
            target = moments.choice(["parent", "worker", "worker", "group"])
            for _ in range(3 if target == "worker" else 1):
                time.sleep(moments.random() * length * (0.3 if target == "worker" else 0.7))
                if kill(process, target, moments):
                    attempt(f"kills of {verb}: {target}")
                    kills += 1
            _, errors = process.communicate(timeout=DEADLINE)
            assert "Traceback" not in errors, errors
            if results.exists():
                outcome(results)  # after every kill: whole records only
        # A worker that was killed leaves failed runs, which the same command tries again.
        last = start(words, results, misbehaving)
        told = last.communicate(timeout=DEADLINE)
        assert last.returncode == 0, told
        again, choices = outcome(results)
        assert choices == chosen
        assert again.keys() >= records.keys()
        for key, record in records.items():
            assert differences(record, again[key]) == []
        assert not list(results.rglob("*.tmp"))


@whole
def test_two_searches_at_once(tmp_path, misbehaving):
    """Class 3: both come to the same choice, and neither disturbs the other."""
    attempt("two searches at once")
    words = ["tune", "--models", "prior-range", "--datasets", "syn2", "--repeats", "1"]
    both = [start(words, tmp_path / "shared", misbehaving) for _ in range(2)]
    told = [process.communicate(timeout=DEADLINE) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    alone = start(words, tmp_path / "alone", misbehaving)
    alone.communicate(timeout=DEADLINE)
    assert outcome(tmp_path / "shared")[1] == outcome(tmp_path / "alone")[1] != {}


@whole
def test_a_search_with_a_dead_worker_writes_no_choice(tmp_path, misbehaving):
    """Class 1: the candidate whose run was killed must not lose by it."""
    attempt("a search with a dead worker")
    words = ["tune", "--models", "prior:trouble=die", "--datasets", "syn1", "--repeats", "1"]
    process = start(words, tmp_path, misbehaving)
    _, errors = process.communicate(timeout=DEADLINE)
    assert process.returncode == 1 and "a run did not finish" in errors
    assert not (tmp_path / "choices").exists()


READY = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)  # until here a signal meets Python's own start
print("ready", file=sys.stderr, flush=True)
runpy.run_module("benchmark", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("verb", ["run", "table"])
def test_interrupts_at_any_moment(tmp_path, misbehaving, verb):
    """Class 19: SIGINT once or several times, from the start to the end, and never a traceback."""
    moments = random.Random(f"{SEED}/{verb}/interrupts")
    words = {"run": [*COMMANDS["run"], "--jobs", "1"], "table": ["table", "2"]}[verb]
    for i in range(15 if FULL else 2):
        attempt(f"interrupts of {verb}")
        results = ["--results", str(tmp_path / str(i))] if verb == "run" else []
        process = subprocess.Popen(
            [sys.executable, "-c", READY, *words, *results], cwd=ROOT, text=True,
            env={**os.environ, **misbehaving},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stderr.readline() == "ready\n"
        time.sleep(moments.choice([0.05, 0.3, 3.0]) * moments.random())
        for _ in range(moments.randint(1, 4)):
            process.send_signal(signal.SIGINT)
            time.sleep(moments.random() * 0.1)
        _, errors = process.communicate(timeout=DEADLINE)
        assert "Traceback" not in errors, errors
        assert process.returncode in (0, 3, 130, -signal.SIGINT), (process.returncode, errors)
