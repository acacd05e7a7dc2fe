"""The count at the end of an attack."""

import signal

import pytest
from attack.scale import FULL, SEED, attempts, failures

from benchmark.protocol import registry


@pytest.fixture
def own_registry(tmp_path, monkeypatch):
    """Take a text for the user's file of models, as long as a test runs."""

    def use(text):
        path = tmp_path / "models.toml"
        path.write_text(text)
        monkeypatch.setenv("BENCHMARK_MODELS", str(path))
        registry.models.cache_clear()

    yield use
    registry.models.cache_clear()


@pytest.fixture
def impatient():
    """Who waits for ever has failed; the tests after it are made all the same."""

    def wake(*_):
        raise AssertionError("still waiting after two minutes")

    before = signal.signal(signal.SIGALRM, wake)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pytest_runtest_logreport(report):
    if report.failed:
        failures.append(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    if not attempts:
        return  # other tests alone, or the workers of a parallel run have them
    say = terminalreporter.write_line
    for name, number in attempts.items():
        say(f"  {number:>5}  {name}")
    say(f"attack: {sum(attempts.values())} attempts, {len(failures)} failures, seed {SEED}")
    for nodeid in failures:
        scale = "ATTACK=full " if FULL else ""
        say(f"  again: {scale}ATTACK_SEED={SEED} .venv/bin/python -m pytest -n 0 '{nodeid}'")
