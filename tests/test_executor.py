"""Executors: the same records everywhere; limits that stop; a death costs one run."""

import os
import signal
import time

import psutil
import pytest

from benchmark.executor import run_all
from benchmark.registry import data_ref, make_spec, models
from benchmark.verify import differences
from benchmark.worker import Limits, Worker


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


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip(
        "distributed", reason="install the extra: pip install .[dask]"
    )
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
    ) as running:
        yield running


def test_dask_gives_the_same_records(cluster):
    serial = records(run_all(plan(), jobs=0))
    assert_same(serial, records(run_all(plan(), jobs=1, dask=cluster.scheduler_address)))


def test_a_dask_worker_that_is_killed_costs_nothing_but_time(cluster):
    wanted = specs("rf", "colon", n=8, n_estimators=300)
    outcomes = run_all(wanted, jobs=1, dask=cluster.scheduler_address)
    done = [next(outcomes)]
    victim = next(iter(cluster.workers.values()))
    os.kill(victim.pid if hasattr(victim, "pid") else victim.process.pid, signal.SIGKILL)
    done += list(outcomes)
    assert_same(records(run_all(wanted, jobs=2)), records(done))


def test_a_dask_address_without_scheduler_is_explained():
    from benchmark.spec import UserError

    with pytest.raises(UserError, match="No Dask scheduler"):
        list(run_all(specs(n=1), jobs=1, dask="tcp://127.0.0.1:1"))


def test_the_time_limit_stops_the_run(misbehaving):
    start = time.monotonic()
    [outcome] = run_all(specs("prior", n=1, trouble="sleep"), jobs=1, limits=Limits(seconds=2))
    assert outcome.record["status"] == "timeout"
    assert "limit was 2 s" in outcome.record["error"]["message"]
    assert time.monotonic() - start < 60  # the model would have slept for ten minutes


def test_the_memory_limit_stops_the_run(misbehaving):
    [outcome] = run_all(specs("prior", n=1, trouble="hog"), jobs=1, limits=Limits(memory_mb=700))
    assert outcome.record["status"] == "out_of_memory"


def test_a_worker_that_dies_costs_its_own_run_only(misbehaving):
    mixed = [
        *specs("prior", n=2),
        *specs("prior", n=1, trouble="die"),
        *specs("prior", "syn2", n=3),
    ]
    done = records(run_all(mixed, jobs=2))
    states = sorted(record["status"] for record in done.values())
    assert states == ["killed", "ok", "ok", "ok", "ok", "ok"]
    [dead] = [record for record in done.values() if record["status"] == "killed"]
    assert "SIGKILL" in dead["error"]["message"]


@pytest.mark.parametrize(
    ("trouble", "kind", "message"),
    [
        ("raise", "error", "a bug in the model"),
        ("refuse", "unsupported", "more than two classes"),
        ("memory", "out_of_memory", "no room"),
        ("nan", "diverged", "not finite"),
    ],
)
def test_failures_are_records_with_a_kind(misbehaving, trouble, kind, message):
    [outcome] = run_all(specs("prior", n=1, trouble=trouble), jobs=0)
    assert outcome.record["status"] == kind
    assert message in outcome.record["error"]["message"]
    assert "Traceback" in outcome.record["meta"]["traceback"]


def test_a_model_that_prints_does_not_disturb_the_reply(misbehaving):
    [outcome] = run_all(specs("prior", n=1, trouble="print"), jobs=1)
    assert outcome.ok


def test_workers_leave_no_process_behind():
    worker = Worker()
    assert worker.run(specs(n=1)[0]).ok
    [child] = [
        p for p in psutil.Process().children() if "benchmark.worker" in " ".join(p.cmdline())
    ]
    worker.close()
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_global_generators_are_seeded_alike(misbehaving):
    """A model that draws from NumPy's global generator gets the same numbers every time."""
    done = list(run_all(specs("prior", n=3), jobs=0))
    assert len({outcome.record["model"]["drawn"] for outcome in done}) == 1
