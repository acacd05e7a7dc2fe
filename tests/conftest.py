"""What several test modules need: a command line in a process of its own, and users' own models."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from benchmark import registry
from benchmark.runtime import ONE_THREAD

# As in a run: one thread. Set before anything imports numpy or torch, whose pools would otherwise
# fight each other for the cores when tests run side by side.
os.environ.update(ONE_THREAD)

import own_models

# The same examples every time: a test that fails today failed yesterday too.
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")

ROOT = Path(__file__).resolve().parent.parent


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
            cwd=cwd, env=environment, capture_output=True, text=True, timeout=timeout,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        if check is not None:
            assert done.returncode == check, done.stdout + done.stderr
        return done

    return run


@pytest.fixture
def misbehaving(tmp_path, monkeypatch):
    """Register tests/own_models.py the way a user registers a model; returns the environment."""
    path = tmp_path / "own.toml"
    path.write_text(own_models.REGISTRY)
    environment = {
        "BENCHMARK_MODELS": str(path),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    registry.models.cache_clear()
    yield environment
    registry.models.cache_clear()
