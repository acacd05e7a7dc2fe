"""Executors: the same records everywhere; limits that stop; a death costs one run."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import own_models
import psutil
import pytest
from conftest import run_all

from benchmark.protocol.registry import data_ref, make_spec, models
from benchmark.runner.execute import execute
from benchmark.runner.machine import BLAS_NEEDS, TORCH_NEEDS, take_kernels
from benchmark.runner.verify import differences, verify
from benchmark.runner.worker import MAX_REPLY, Limits, Worker, reply_to


def specs(model="knn", data="syn1", n=4, **params):
    return [make_spec(models()[model], data_ref(data), params, r, 0) for r in range(n)]


def records(outcomes):
    return {outcome.record["key"]: outcome.record for outcome in outcomes}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for key in one:
        assert one[key]["status"] == "ok", one[key]
        assert differences(one[key], other[key]) == []


PLAN = ("knn", "ridge", "xgboost")


def plan():
    return [spec for model in PLAN for spec in specs(model)]


def test_serial_and_processes_give_identical_records():
    serial = records(run_all(plan(), jobs=0))
    assert len(serial) == 12
    assert_same(serial, records(run_all(plan(), jobs=2)))


def test_a_dask_address_without_scheduler_is_explained():
    from benchmark.protocol.spec import UserError

    with pytest.raises(UserError, match="No Dask scheduler"):
        list(run_all(specs(n=1), jobs=1, dask="tcp://127.0.0.1:1"))
    with pytest.raises(UserError, match="is encrypted"):
        list(run_all(specs(n=1), jobs=1, dask="tls://127.0.0.1:1"))
    with pytest.raises(UserError, match="takes an address"):
        list(run_all(specs(n=1), jobs=1, dask="nonsense"))


def test_the_time_limit_stops_the_run(misbehaving):
    start = time.monotonic()
    [outcome] = run_all(specs("prior", n=1, trouble="sleep"), jobs=1, limits=Limits(seconds=2))
    assert outcome.record["status"] == "timeout"
    assert "time limit of 2 s" in outcome.record["error"]["message"]
    assert time.monotonic() - start < 60  # the model would have slept for ten minutes


def test_verify_takes_the_kernels_that_a_record_names():
    """Whatever kernels the libraries would take here: bits are those of the record's."""
    spec = make_spec(models()["tabnet"], data_ref("syn1"), {"epochs": 3}, 0, 0)
    pairs = [("Haswell", "AVX2"), ("SkylakeX", "AVX512")]
    able = [pair for pair in pairs if len(take_kernels(*pair)) == 2]
    made = []
    for blas, torch in able:
        [outcome] = run_all([spec], jobs=1, limits=Limits(blas=blas, torch=torch))
        made.append(outcome.record)
        here = outcome.record["meta"]["environment"]
        assert (here["blas"], here["torch"]) == (blas, torch)
    if len(made) == 2:
        assert differences(*made), "these kernels round alike, so that the test shows nothing"
        # Older records do not name them: both are tried.
        del made[-1]["meta"]["environment"]["blas"], made[-1]["meta"]["environment"]["torch"]
    for record in made:
        assert [c.differences + c.surroundings for c in verify([record], 1, None)] == [[]]


def test_kernels_that_a_processor_has_not_are_left_alone(monkeypatch):
    def able(flags):
        monkeypatch.setattr("benchmark.runner.machine._cpuinfo", lambda name: flags)
        return [take_kernels(blas, torch) for blas in BLAS_NEEDS for torch in TORCH_NEEDS]

    assert not any(able("")) and not any(able("neon asimd"))
    older = able("fma avx avx2")
    assert {"OPENBLAS_CORETYPE": "Haswell", "ATEN_CPU_CAPABILITY": "avx2"} in older
    assert "SkylakeX" not in str(older) and "avx512" not in str(older)
    assert {"OPENBLAS_CORETYPE": "SkylakeX", "ATEN_CPU_CAPABILITY": "avx512"} in able(
        "avx2 avx512f avx512vl"
    )
    # A record is a file: what stands there in their place is no kernel.
    assert take_kernels("/etc/passwd", "None") == {}


@pytest.mark.parametrize("trouble", ["hog", "child"])
def test_the_memory_limit_stops_the_run(misbehaving, trouble):
    [outcome] = run_all(specs("prior", n=1, trouble=trouble), jobs=1, limits=Limits(memory_mb=700))
    assert outcome.record["status"] == "out_of_memory"


def test_a_worker_that_dies_costs_its_own_run_only(misbehaving):
    mixed = [
        *specs("prior", n=2),
        *specs("prior", n=1, trouble="die"),
        *specs("prior", "syn2", n=3),
    ]
    done = records(run_all(mixed, jobs=1))
    states = sorted(record["status"] for record in done.values())
    assert states == ["killed", "ok", "ok", "ok", "ok", "ok"]
    [dead] = [record for record in done.values() if record["status"] == "killed"]
    assert "SIGKILL" in dead["error"]["message"]


FAILURES = {
    "raise": ("error", "a bug in the model"),
    "refuse": ("unsupported", "more than two classes"),
    "memory": ("out_of_memory", "no room"),
    "nan": ("diverged", "not finite"),
    "exit": ("error", "SystemExit"),
    "unprintable": ("error", "cannot be shown"),
}
# What only a process of its own can answer: a model that asks for input gets none.
FAILURES_OF_A_WORKER = FAILURES | {"ask": ("error", "EOFError")}


@pytest.mark.parametrize(("jobs", "failures"), [(0, FAILURES), (1, FAILURES_OF_A_WORKER)])
def test_failures_are_records_with_a_kind(misbehaving, jobs, failures):
    """One after the other in one process, which has to survive each of them."""
    wanted = [spec for trouble in failures for spec in specs("prior", n=1, trouble=trouble)]
    limits = Limits(seconds=60) if jobs else Limits()
    done = records(run_all(wanted, jobs=jobs, limits=limits))
    assert len(done) == len(failures)
    for spec, (kind, message) in zip(wanted, failures.values(), strict=True):
        record = done[spec.key]
        assert record["status"] == kind
        assert message in record["error"]["message"]
        assert "Traceback" in record["meta"]["traceback"]


def test_what_a_run_is_given(misbehaving):
    """The validation part, one thread, and a report that JSON can hold."""
    # A model that prints does not disturb the reply.
    for jobs, trouble in ((0, "none"), (1, "print")):
        [outcome] = run_all(specs("prior", n=1, trouble=trouble), jobs=jobs)
        assert outcome.ok, outcome.record
        facts = outcome.record["model"]
        assert facts["valid"] == outcome.record["split"]["valid"]
        assert set(facts["threads"]) == {1}
        assert facts["curve"] == [1.5, None]
    assert facts["environment"] == "1"


def test_an_orphaned_worker_ends_itself(misbehaving, tmp_path):
    """Kill the parent in the middle of a long run: its child must not go on alone."""
    code = (
        "from benchmark.protocol.registry import data_ref, make_spec, models\n"
        "from benchmark.runner.worker import Worker\n"
        "Worker().run(make_spec(models()['prior'], data_ref('syn1'), {'trouble': 'sleep'}, 0, 0))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    children = []
    while not children:
        assert parent.poll() is None, "the parent ended before it had a child"
        children = psutil.Process(parent.pid).children()
        time.sleep(0.05)
    time.sleep(3)  # the run is asleep in fit by now
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []


def test_workers_take_our_module_and_leave_no_process_behind(tmp_path, monkeypatch):
    (tmp_path / "benchmark.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    worker = Worker()
    assert worker.run(specs(n=1)[0]).ok
    [child] = [
        p for p in psutil.Process().children() if "benchmark.runner.worker" in " ".join(p.cmdline())
    ]
    worker.close()
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_global_generators_are_seeded_alike(misbehaving):
    """A model that draws from NumPy's global generator gets the same numbers every time."""
    done = list(run_all(specs("prior", n=3), jobs=0))
    assert len({outcome.record["model"]["drawn"] for outcome in done}) == 1


def test_what_left_its_group_ends_with_the_run(misbehaving):
    """A model's child in a session of its own is out of reach of a kill of the group."""
    worker = Worker(Limits(seconds=3))
    [spec] = specs("prior", n=1, trouble="flee")
    assert worker.run(spec).record["status"] == "timeout"
    worker.close()
    alive = [
        p
        for p in psutil.process_iter(["cmdline"])
        if own_models.child() in (p.info["cmdline"] or [])
    ]
    assert alive == []


def test_a_death_by_a_signal_without_a_name_is_told(misbehaving):
    [outcome] = run_all(specs("prior", n=1, trouble="real-time signal"), jobs=1)
    assert outcome.record["status"] == "killed"
    assert f"(signal {signal.SIGRTMIN + 1})" in outcome.record["error"]["message"]


def test_an_answer_that_comes_with_the_ready_line_is_not_lost():
    """Both lie in the pipe if the parent slept while the child started."""

    class Child:
        def __init__(self, said):
            ends, errors = os.pipe(), os.pipe()
            os.write(ends[1], said)
            self.stdout, self.stderr = os.fdopen(ends[0], "rb"), os.fdopen(errors[0], "rb")
            self.pid, self.others = os.getpid(), (ends[1], errors[1])

    worker, child = Worker(Limits(seconds=3)), Child(b"{}\n" + b"x" * 3000 + b"\n")
    assert worker._wait(child, None) == (b"{}\n", "")
    line, broken = worker._wait(child, time.monotonic())
    assert (len(line), broken) == (3001, "")


@pytest.mark.parametrize(("trouble", "largest"), [("close and sleep", MAX_REPLY), ("none", 1000)])
def test_a_child_that_lives_on_without_an_answer_is_stopped(
    misbehaving, monkeypatch, trouble, largest
):
    """Its output is closed, or it cannot write the rest of a reply that is too large."""
    monkeypatch.setattr("benchmark.runner.worker.MAX_REPLY", largest)
    monkeypatch.setattr("benchmark.runner.worker.GRACE_SECONDS", 1.0)
    child, told = Worker(Limits(seconds=30)), []
    [spec] = specs("prior", n=1, trouble=trouble)
    asked = threading.Thread(target=lambda: told.append(child.run(spec)), daemon=True)
    asked.start()
    asked.join(60)
    child.close()  # so that nothing is left behind where it hangs
    assert told, "it is still being waited for"
    assert told[0].record["status"] == "killed"
    assert "did not end, so it was stopped" in told[0].record["error"]["message"]


def test_only_the_answer_to_the_question_counts():
    asked, other = specs(n=2)
    record = execute(asked).record
    line = json.dumps({"record": record, "arrays": None}).encode()
    assert reply_to(asked, line).record == json.loads(json.dumps(record))
    assert reply_to(other, line) is None
    for wrong in (
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b"[" * 100_000,
        line[:-20],
        b'{"record": 1, "arrays": 0}',
    ):
        assert reply_to(asked, wrong) is None
