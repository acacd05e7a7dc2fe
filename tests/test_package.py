"""The wheel: installs elsewhere, runs from another folder, shadows nobody."""

import os
import subprocess
import sys
import zipfile

import pytest
from conftest import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder that holds the installed wheel and nothing of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", str(folder), str(ROOT)], check=True, timeout=300)
    [wheel] = folder.glob("*.whl")
    site = folder / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site


def run(site, cwd, *words):
    return subprocess.run(
        [sys.executable, "-m", "benchmark", *words],
        cwd=cwd, env={**os.environ, "PYTHONPATH": str(site), "BENCHMARK_OFFLINE": "1"},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.mark.slow
def test_the_wheel_runs_from_another_folder(site, tmp_path):
    done = run(
        site,
        tmp_path,
        "run",
        "--models",
        "knn,rf:n_estimators=20",
        "--datasets",
        "colon",
        "--repeats",
        "1",
    )
    assert done.returncode == 0, done.stderr
    assert "knn" in done.stdout
    assert len(list((tmp_path / "results").rglob("r*f*.json"))) == 10
    assert "71.65 ± 12.03" in run(site, tmp_path, "table", "2").stdout
    assert not list(site.rglob("r*f*.json")), "results belong into the working folder"


@pytest.mark.slow
def test_the_wheel_shadows_nobody(site):
    top = {path.name for path in site.iterdir() if not path.name.endswith(".dist-info")}
    assert top == {"benchmark"}
    assert {"models", "datasets", "paper"} <= {path.name for path in (site / "benchmark").iterdir()}
