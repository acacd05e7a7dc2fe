"""What several test modules need: the command line, users' own models, made-up records."""

import gc
import os
import shutil
import signal
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import settings

from benchmark.cli import main as command_line
from benchmark.judge import audit as judge_audit
from benchmark.judge import discrepancies
from benchmark.protocol import registry
from benchmark.protocol.plan import Cell, Protocol
from benchmark.protocol.spec import SCHEMA, digest, failed
from benchmark.runner.executor import run_batches
from benchmark.runner.machine import ONE_THREAD
from benchmark.runner.records import Store, encode
from benchmark.tables.recipes import read_recipe

# As in a run: one thread. Set before anything imports numpy or torch, whose pools would otherwise
# fight each other for the cores when tests run side by side.
os.environ.update(ONE_THREAD)

import own_models

# The same examples every time: a test that fails today failed yesterday too.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")

ROOT = Path(__file__).resolve().parent.parent


def spread(mean, std=0.0):
    """25 scores with exactly this mean and sample standard deviation."""
    return [mean - std] * 12 + [mean] + [mean + std] * 12


def cell_of(method, dataset):
    entry, overrides = registry.model_ref(method)
    return Cell(entry, registry.data_ref(dataset), overrides)


def run_all(specs, **options):
    """The outcomes of runs, one by one as they finish."""
    return chain.from_iterable(run_batches(specs, **options))


def made_up(spec, score, **fields):
    """A record as a run with this score (%) leaves it; `fields` add to it or stand instead."""
    scores = {"balanced_accuracy": score / 100}
    data = registry.datasets()[spec.data.name]
    record = {
        "schema": SCHEMA,
        "key": spec.key,
        "spec": spec.to_dict(),
        "status": "ok",
        "data": {
            "sha256": digest(spec.data.label),
            "shape": list(data.shape),
            "classes": len(data.classes),
        },
        "split": {"sha256": digest([spec.data.label, spec.repeat, spec.fold])},
        "scores": {"train": scores, "valid": scores, "test": scores},
        "selection": None,
        "model": {},
        "meta": {},
        **fields,
    }
    if record["selection"] is not None:
        usual = {"mean": 12.0, "std": 1.0, "local_sparsity": 0.01, "f1": None}
        record["selection"] = usual | record["selection"]
    return record


def add_runs(results, method, dataset, scores, params=None, **fields):
    """Write a record per score (%). A word is a failure of that kind, None a run that was not done;
    a field that is a function is called with the number of the run."""
    specs = cell_of(method, dataset).specs(params or {}, Protocol())
    for run, (spec, score) in enumerate(zip(specs, scores, strict=False)):
        if isinstance(score, str):
            write_run(results, failed(spec, score, f"{score} on purpose").record)
        elif score is not None:
            told = {k: value(run) if callable(value) else value for k, value in fields.items()}
            write_run(results, made_up(spec, score, **told))


def part_of(table, methods, datasets):
    """The recipe of a table with these rows and columns alone."""
    return replace(read_recipe(table), methods=tuple(methods), datasets=tuple(datasets))


def write_run(results, record):
    """Thousands of them need not outlive a power cut, unlike real ones."""
    path = Store(results).path(record["key"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(record))


@pytest.fixture
def cli(tmp_path):
    """Run `python -m benchmark ...` as a user would; results go to a temporary folder."""

    def run(*words, cwd=ROOT, check=None, timeout=300, **environment):
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "BENCHMARK_OFFLINE": "1",
            **environment,
        }
        done = subprocess.run(
            [sys.executable, "-m", "benchmark", *map(str, words)],
            cwd=cwd, env=environment, capture_output=True, text=True, errors="replace",
            timeout=timeout,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        if check is not None:
            assert done.returncode == check, done.stdout + done.stderr
        return done

    return run


@pytest.fixture
def inside(capsys, monkeypatch):
    """The same within this process: what a command does with records need not wait for imports.

    With `--jobs 0` the runs are done here too, without a worker that imports everything again.
    """
    monkeypatch.setenv("BENCHMARK_OFFLINE", "1")

    def run(*words, check=None):
        registry.models.cache_clear()  # a new process would read the file anew
        handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        capsys.readouterr()
        try:
            code = command_line.main([str(word) for word in words])
        except SystemExit as stopped:  # wrong words
            code = stopped.code
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        done = subprocess.CompletedProcess(words, code, *capsys.readouterr())
        assert "Traceback" not in done.stderr, done.stderr
        if check is not None:
            assert done.returncode == check, done.stdout + done.stderr
        return done

    return run


@pytest.fixture(autouse=True)
def quick_collections():
    """Set aside what lives already. Every run collects garbage before it measures memory, and in a
    process with pytest and all the libraries that takes longer than a fit of nearest neighbours."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def register(monkeypatch):
    """Let shipped models be what a text says, as long as a test runs; others stay as they are."""
    shipped = registry._shipped_models()

    def forget():
        """What is kept for the whole process and knows the models or their names."""
        for kept in (registry.models, judge_audit._as_printed, discrepancies._switches):
            kept.cache_clear()

    def use(text):
        entries = {**shipped, **tomllib.loads(text)}
        monkeypatch.setattr(registry, "_shipped_models", lambda: entries)
        # Thousands of small files need not survive a power cut.
        monkeypatch.setattr(os, "fsync", lambda _: None)
        forget()

    yield use
    forget()


@pytest.fixture
def misbehaving(tmp_path, monkeypatch):
    """Register tests/own_models.py the way a user registers a model; returns the environment."""
    path = tmp_path / "own.toml"
    path.write_text(own_models.REGISTRY)
    environment = {
        "BENCHMARK_MODELS": str(path),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
        "MARK": str(tmp_path),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    registry.models.cache_clear()
    yield environment
    registry.models.cache_clear()


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    """A folder that holds the installed wheel and nothing of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    # A copy: setuptools leaves a folder `build` behind, and puts its old modules into the next wheel.
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("benchmark", "models", "datasets"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(folder), str(source)], check=True, timeout=300)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"
