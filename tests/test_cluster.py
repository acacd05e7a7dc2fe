"""Clusters as people have them: real processes on the loopback interface that come, go and differ.

Whatever happens to them, the records are those of a run on this machine.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import psutil
import pytest
from conftest import ROOT, made_up, run_all
from test_executor import assert_same, records, specs

from benchmark import progress
from benchmark.data.load import own_table
from benchmark.data.places import locate
from benchmark.protocol import registry
from benchmark.protocol.spec import Outcome, UserError, failed
from benchmark.runner import cluster as clusters
from benchmark.runner import machine, remote
from benchmark.runner.worker import Limits

distributed = pytest.importorskip("distributed", reason="install the extra: pip install .[dask]")

DEADLINE = 180
"""Seconds that anything may take on a machine that is busy with other things."""


def until(question, what):
    """Wait for something to become true; return what it became."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if answer := question():
            return answer
        time.sleep(0.1)
    raise AssertionError(f"waited {DEADLINE} s in vain for {what}")


class Site:
    """A scheduler and workers, each a process of its own, on ports that the system chose."""

    def __init__(self, folder, *options, **environment):
        self.folder, self.options = folder, options
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "BENCHMARK_OFFLINE": "1",
            "DASK_LOGGING__DISTRIBUTED": "error",
            **environment,
        }
        self.processes = []
        file = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler",
            "--port",
            "0",
            "--scheduler-file",
            file,
            "--dashboard-address",
            ":0",
            *options,
        )
        until(file.is_file, "the scheduler")
        self.address = json.loads(file.read_text())["address"]

    def _start(self, role, *words, **environment):
        name = f"{role}{len(self.processes)}"
        (self.folder / name).mkdir()
        process = subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{role}", "--host", "127.0.0.1"]
            + [str(word) for word in words],
            env=self.environment | environment,
            cwd=self.folder / name,
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / f"{name}.log").open("wb"),
        )
        self.processes.append(process)
        return process

    def worker(self, *words, **environment):
        scratch = ["--local-directory", self.folder, "--no-dashboard", "--nthreads", "1"]
        words = words or ("--no-nanny",)
        return self._start("worker", self.address, *scratch, *self.options, *words, **environment)

    def close(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.kill()  # their children end with them
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture
def site(tmp_path):
    (tmp_path / "site").mkdir()
    # Dask gives up what a worker had when it dies, at once: here that must not cost a run.
    running = Site(tmp_path / "site", DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    yield running
    running.close()


@contextmanager
def in_background(wanted, address):
    """Do runs in a thread; yields their outcomes, a list that grows."""
    done, trouble = [], []

    def work():
        try:
            for outcome in run_all(wanted, jobs=1, dask=address):
                done.append(outcome)  # noqa: PERF402 - one by one, so that they can be watched
        except BaseException as error:  # noqa: BLE001 - raised in the test's own thread
            trouble.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield done
    finally:
        thread.join(DEADLINE)
        assert not thread.is_alive(), "the runs did not come to an end"
        if trouble:
            raise trouble[0]


def test_from_no_worker_to_four_and_some_are_killed(site, capsys):
    """Starts without a worker, grows, loses a worker and a nanny with its worker."""
    wanted = specs("rf", "syn1", n=5, n_estimators=60) + specs("rf", "syn2", n=5, n_estimators=60)
    with in_background(wanted, site.address) as done:
        until(lambda: "Waiting for workers" in capsys.readouterr().err, "the word that it waits")
        first = site.worker()
        nanny = site.worker("--nanny")
        until(lambda: done, "the first outcome")
        site.worker()
        site.worker()
        first.kill()
        os.kill(nanny.pid, signal.SIGKILL)
    assert_same(records(run_all(wanted, jobs=0)), records(done))


class Told:
    """What has been said so far, asked again and again."""

    def __init__(self, capsys):
        self.capsys, self.text = capsys, ""

    def __call__(self, *words):
        self.text += self.capsys.readouterr().err
        return all(word in self.text for word in words)


needs_lung = pytest.mark.skipif(locate("lung") is None, reason="needs the dataset lung")


@needs_lung
def test_unfit_workers_get_no_runs_and_are_named(site, tmp_path, capsys):
    """Without the data, with changed sources, without the package; and one of each comes late."""
    empty = tmp_path / "empty"
    empty.mkdir()
    other = tmp_path / "other"
    for folder in ("benchmark", "models", "datasets"):
        shutil.copytree(ROOT / folder, other / folder, ignore=shutil.ignore_patterns("cache"))
    shutil.copy(ROOT / "pyproject.toml", other)
    with (other / "models" / "knn.py").open("a") as file:
        file.write("\n# changed\n")
    strange = tmp_path / "strange" / "benchmark"
    strange.mkdir(parents=True)
    (strange / "__init__.py").touch()
    bare = {"BENCHMARK_DATA": str(empty), "BENCHMARK_CACHE": str(empty)}

    site.worker("--no-nanny", "--name", "bare", **bare)
    site.worker("--no-nanny", "--name", "changed", PYTHONPATH=str(other))
    site.worker("--no-nanny", "--name", "strange", PYTHONPATH=str(strange.parent))
    wanted = specs("knn", "lung", n=4) + specs("knn", "syn1", n=4)
    said = Told(capsys)

    with in_background(wanted, site.address) as done:
        until(lambda: said("no runs on lung", "it has sources of", "not installed"), "names")
        # Uneven: the worker without lung has done the other dataset.
        until(lambda: len(done) >= 4, "the runs on syn1")
        assert {outcome.record["spec"]["data"]["name"] for outcome in done} == {"syn1"}
        late = site.worker("--no-nanny", "--name", "late", PYTHONPATH=str(other))
        until(lambda: said() and said.text.count("it has sources of") == 2, "the late one's name")
        assert late.poll() is None
        site.worker()
    here = machine.code_version()["sources"]
    assert {outcome.record["meta"]["code"]["sources"] for outcome in done} == {here}
    assert_same(records(run_all(wanted, jobs=0)), records(done))


def test_a_table_that_only_this_machine_has(site, tmp_path, monkeypatch):
    """And a model whose source is another one over there, until it is the same."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir(), there.mkdir()
    rows = [f"{i % 7},{i * i % 11},{'ill' if i % 3 else 'well'}" for i in range(60)]
    (here / "patients.csv").write_text("\n".join(["a,b,state", *rows]))
    (here / "others.csv").write_text("\n".join(["b,a,state", *rows[:9]]))
    monkeypatch.chdir(here)
    # Paths that lead somewhere only from the folder that this process is in.
    data = replace(
        own_table("patients.csv", "state", test="others.csv"),
        path="/proc/self/cwd/patients.csv",
        test_path="/proc/self/cwd/others.csv",
    )
    wanted = [replace(spec, data=data) for spec in specs("knn", n=3)]
    site.worker()
    site.worker()
    done = records(run_all(wanted, jobs=1, dask=site.address))
    assert_same(records(run_all(wanted, jobs=0)), done)
    assert {record["spec"]["data"]["path"] for record in done.values()} == {data.path}
    assert {record["status"] for record in done.values()} == {"ok"}


@pytest.mark.slow
def test_own_models_are_compared_by_source(site, tmp_path, monkeypatch, misbehaving, capsys):
    changed = tmp_path / "changed"
    changed.mkdir()
    source = (ROOT / "tests" / "own_models.py").read_text()
    (changed / "own_models.py").write_text(source + "\n# changed\n")
    nowhere = {"BENCHMARK_MODELS": ""}
    site.worker("--no-nanny", **misbehaving | {"PYTHONPATH": f"{ROOT}:{changed}"})
    site.worker("--no-nanny", **nowhere)
    wanted = specs("prior", n=2)
    said = Told(capsys)

    with in_background(wanted, site.address) as done:
        until(lambda: said("source of the model 'prior'", "not in its registry"), "both names")
        assert not done
        site.worker("--no-nanny", **misbehaving)
    assert_same(records(run_all(wanted, jobs=0)), records(done))


def command(site, tmp_path, *words, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", "benchmark", "run", "--results", str(tmp_path / "results")]
        + ["--dask", site.address, *words],
        cwd=ROOT,
        env=site.environment | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_schedulers_death_is_one_sentence(site, tmp_path):
    site.worker()
    running = command(site, tmp_path, "--models", "knn,rf", "--datasets", "syn1,syn2,syn3")
    until(lambda: list((tmp_path / "results").rglob("r*.json")), "the first record")
    site.scheduler.kill()
    _, told = running.communicate(timeout=DEADLINE)
    assert running.returncode == 2
    assert "The Dask scheduler at tcp://" in told and "the same command resumes" in told
    assert "Traceback" not in told and "distributed" not in told, told


def test_an_interrupt_while_it_waits_is_clean(site, tmp_path):
    running = command(site, tmp_path, "--models", "knn", "--datasets", "syn1")
    line = ""
    while "Waiting for workers" not in line:
        line = running.stderr.readline()
        assert line, "it ended without a word"
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=DEADLINE)
    assert running.returncode == 130
    assert "Stopped. Finished runs are kept" in told
    assert "Traceback" not in told and "distributed" not in told, told


def test_an_adaptive_cluster_starts_its_workers_because_of_the_runs():
    with distributed.LocalCluster(
        n_workers=0, threads_per_worker=1, dashboard_address=None, memory_limit=0
    ) as running:
        running.adapt(minimum=0, maximum=2, interval="500ms")
        wanted = specs("knn", n=4)
        done = records(run_all(wanted, jobs=1, dask=running.scheduler_address))
    assert_same(records(run_all(wanted, jobs=0)), done)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_an_encrypted_cluster_works_or_says_what_is_missing(tmp_path, monkeypatch):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
        + ["-subj", "/CN=127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )
    options = ["--protocol", "tls", "--tls-ca-file", cert, "--tls-cert", cert, "--tls-key", key]
    (tmp_path / "site").mkdir()
    running = Site(tmp_path / "site", *options)
    try:
        assert running.address.startswith("tls://")
        running.worker()
        with pytest.raises(UserError, match="DASK_DISTRIBUTED__COMM__TLS__CA_FILE"):
            list(run_all(specs(n=1), jobs=1, dask=running.address))
        files = {"ca-file": str(cert), "client.cert": str(cert), "client.key": str(key)}
        tls = {f"distributed.comm.tls.{name}": path for name, path in files.items()}
        import dask

        wrong = dask.config.set(tls | {"distributed.comm.tls.client.key": "/nowhere"})
        with wrong, pytest.raises(UserError, match="no file /nowhere"):
            list(run_all(specs(n=1), jobs=1, dask=running.address))
        with dask.config.set(tls):
            done = records(run_all(specs(n=1), jobs=1, dask=running.address))
        assert_same(records(run_all(specs(n=1), jobs=0)), done)
    finally:
        running.close()


@pytest.fixture
def threads():
    """Two workers that are threads of this process, so that a test can reach into them."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, memory_limit=0
    ) as running:
        yield running


def test_a_worker_that_loses_its_data_gets_no_more_runs(threads, monkeypatch, capsys):
    """It was fit when it was asked. What it has taken by then is done by the other one."""
    poor = threads.workers[0].address
    done_by = []

    class Losing:
        def __init__(self, limits):
            self.limits = limits

        def run(self, spec, keep):
            done_by.append(distributed.get_worker().address)
            if done_by[-1] == poor:
                return failed(spec, "missing_data", "Dataset 'syn1' is not on this machine.")
            time.sleep(0.05)
            return Outcome(made_up(spec, 80.0))

    monkeypatch.setattr(remote, "Worker", Losing)
    wanted = specs("knn", n=40)
    done = records(run_all(wanted, jobs=1, dask=threads.scheduler_address))
    assert len(done) == 40 and {record["status"] for record in done.values()} == {"ok"}
    assert poor in done_by
    told = capsys.readouterr().err
    assert told.count("gets no runs on syn1: Dataset 'syn1' is not on this machine") == 1, told


def test_waiting_is_said_after_a_while_and_again(threads, monkeypatch, capsys):
    """Nobody is fit: why is said at once, that runs wait for it later, and then now and then."""
    monkeypatch.setattr(clusters, "PATIENCE_SECONDS", 1.0)
    monkeypatch.setattr(clusters, "REMINDER_SECONDS", 1.5)
    monkeypatch.setattr(remote, "_unfit", lambda need, folder: "there is no data")
    told = ""

    def said(word, times):
        nonlocal told
        told += capsys.readouterr().err
        return told.count(word) >= times

    wanted = specs(n=2)
    with in_background(wanted, threads.scheduler_address) as done:
        until(lambda: said("for fit workers, none of 2", 2), "two reminders")
        assert "can do the runs on syn1: there is no data" in told
        assert not done
        monkeypatch.undo()
        threads.scale(3)
    assert said("the runs go on", 1)
    assert_same(records(run_all(wanted, jobs=0)), records(done))


def test_a_run_that_nobody_waits_for_is_ended(misbehaving, threads, monkeypatch):
    monkeypatch.setattr(remote, "ABANDONED_SECONDS", 0.2)

    def children():
        found = []
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):  # it ended while it was looked at
                if "benchmark.runner.worker" in " ".join(process.cmdline()):
                    found.append(process)
        return found

    [spec] = specs("prior", n=1, trouble="sleep")
    with clusters.connect(threads.scheduler_address, Limits(), ()) as cluster:
        cluster.submit(spec)
        until(children, "the run's process")
    until(lambda: not children(), "its end")


class Recording:
    """Stands for a worker and its child: it does what a test says, unless it was closed."""

    def __init__(self, limits):
        self.limits, self.closed = limits, False

    def run(self, spec, keep):
        keep[0]()
        return Outcome({"status": "killed" if self.closed else "ok"})

    def close(self):
        self.closed = True


class Tasks:
    """Tasks of a Dask worker, none of which exists; something happens just before that is told."""

    def __init__(self, before):
        self.before = before

    def get(self, key):
        self.before()


@pytest.mark.parametrize("ended", ["before it is dropped", "because it is dropped"])
def test_a_thread_has_a_living_worker_after_a_run_that_nobody_waits_for(monkeypatch, ended):
    """Also where the run comes to its end just when it is found to be abandoned."""
    monkeypatch.setattr(remote, "Worker", Recording)
    monkeypatch.setattr(remote, "_watch_runs", lambda: None)
    monkeypatch.setattr(remote, "_mine", threading.local())
    begun, may_end, over, dropped = (threading.Event() for _ in range(4))

    def last():
        may_end.set()
        assert over.wait(DEADLINE)

    tasks = Tasks(last if ended == "before it is dropped" else lambda: None)
    keys = iter(("first", "second"))
    dask_worker = SimpleNamespace(
        state=SimpleNamespace(tasks=tasks), get_current_task=lambda: next(keys)
    )
    states = []

    def run(during):
        asked = {"limits": {}, "keep": [during]}
        states.append(remote._run(dask_worker, specs(n=1)[0], asked).record["status"])

    def two_runs():
        run(lambda: begun.set() or may_end.wait(DEADLINE))
        over.set()
        # In the middle of the next one, which somebody does wait for.
        run(lambda: dropped.wait(DEADLINE))

    thread = threading.Thread(target=two_runs)
    thread.start()
    assert begun.wait(DEADLINE)
    remote._drop_abandoned()
    may_end.set()
    dropped.set()
    thread.join(DEADLINE)
    assert states == ["ok" if ended == "before it is dropped" else "killed", "ok"]


def test_sources_are_hashed_by_content_and_name(tmp_path):
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("x = 1\n")
    two.write_text("x = 1\n")
    assert machine.source_hash({"a": one}) == machine.source_hash({"a": two})
    assert machine.source_hash({"a": one}) != machine.source_hash({"b": one})
    two.write_text("x = 2\n")
    assert machine.source_hash({"a": one}) != machine.source_hash({"a": two})
    names = machine._sources()
    assert {"runner/execute.py", "models/knn.py", "models/registry.toml", "datasets/uci.py"} <= set(
        names
    )


def test_own_models_have_a_source(misbehaving):
    entry = registry.models()["prior"]
    assert len(machine.model_source(entry)) == 64
    with pytest.raises(UserError, match="needs the module 'nowhere_at_all'"):
        machine.model_source(replace(entry, class_path="nowhere_at_all:Model"))


def test_a_class_by_its_place_is_compared_by_source():
    """Another file of that name on a worker would give other records."""
    spec = registry.make_spec(
        registry.model("sklearn.dummy.DummyClassifier"), registry.data_ref("colon"), {}, 0, 0
    )
    _, need = clusters._needs_of(spec)
    assert need["model"] == "sklearn.dummy.DummyClassifier"
    assert remote._unfit(need, "/tmp") is None
    assert "is another one" in remote._unfit({**need, "source": "0" * 64}, "/tmp")


def test_the_slurm_example_writes_a_job_that_would_work(tmp_path):
    pytest.importorskip("dask_jobqueue", reason="install the extra: pip install .[dask]")
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "slurm.py", "--queue", "short", "--show"]
        + ["--cores", "4", "--hours", "2", "--data", "/data/my sets"],
        env={**os.environ, "PYTHONPATH": "/own/code"},
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert {"#SBATCH -p short", "#SBATCH -t 02:00:00", "#SBATCH --cpus-per-task=4"} <= set(lines)
    assert {"export BENCHMARK_DATA='/data/my sets'", "export PYTHONPATH=/own/code"} <= set(lines)
    [start] = [line for line in lines if "dask_worker" in line]
    assert start.startswith(f"{sys.executable} -m distributed.cli.dask_worker tcp://")
    for words in ("--nthreads 1", "--nworkers 4", "--lifetime 110m", "--lifetime-stagger 5m"):
        assert words in start


def test_a_log_has_a_line_per_minute(monkeypatch, capsys):
    """Also while no run finishes: it is then that somebody wonders."""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.05)
    with progress.Progress(0, "runs") as shown:
        shown.grow(4)
        until(lambda: "runs: 0 of 4 done, 0.0 per minute\n" in capsys.readouterr().err, "a line")
        shown.advance(failed(specs(n=1)[0], "killed", "it died").record)
        line = until(lambda: told_of(capsys, "1 of 4 done, 1 failed, "), "the next line")
        assert " per minute, " in line and line.endswith(" min left")
    time.sleep(0.2)
    capsys.readouterr()
    time.sleep(0.2)
    assert capsys.readouterr().err == ""


def told_of(capsys, words):
    return next((line for line in capsys.readouterr().err.splitlines() if words in line), None)
