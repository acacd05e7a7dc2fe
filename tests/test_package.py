"""The wheel: installs elsewhere, runs from another folder, shadows nobody, asks for what it needs."""

import ast
import os
import re
import subprocess
import sys
import tomllib

import pytest
from conftest import ROOT

from benchmark import __version__

FOLDERS = ("benchmark", "models", "datasets")
# Packages that are imported by another name than they are installed by.
INSTALLED_AS = {
    "pytorch_tabnet": "pytorch-tabnet",
    "sklearn": "scikit-learn",
    "umap": "umap-learn",
    "xgboost": "xgboost-cpu",
}
# pandas reads parquet files with the first; the second is for people with a batch system.
NEVER_IMPORTED = {"pyarrow", "dask-jobqueue"}


def imported(path):
    """The top-level packages that a file imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


def test_what_is_imported_is_declared():
    """Another package may bring it along today and stop doing so tomorrow."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["dask"]]
    names = {re.match(r"[\w.-]+", line)[0].lower() for line in declared}
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    found = {name for path in files for name in imported(path)}
    needed = {INSTALLED_AS.get(n, n) for n in found - sys.stdlib_module_names - {"benchmark"}}
    assert needed - names == set(), "imported and not declared"
    # On macOS XGBoost's plain name stands for the same library.
    assert names - needed - NEVER_IMPORTED == {"xgboost"}, "declared and not imported"


def run(installed, cwd, *words):
    return subprocess.run(
        [sys.executable, "-m", "benchmark", *words],
        cwd=cwd, env={**os.environ, "PYTHONPATH": str(installed), "BENCHMARK_OFFLINE": "1"},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip


@pytest.mark.slow
def test_the_wheel_runs_from_another_folder(installed, tmp_path):
    words = ["--models", "knn:n_neighbors=7,rf:n_estimators=20", "--datasets", "colon"]
    done = run(installed, tmp_path, "run", *words, "--repeats", "1")
    assert done.returncode == 0, done.stderr
    assert "knn" in done.stdout
    assert len(list((tmp_path / "results").rglob("r*f*.json"))) == 10
    shown = run(installed, tmp_path, "table", "2", "--format", "md").stdout
    assert "71.65 ± 12.03" in shown, "from the records that travel with the package"
    assert not list(installed.rglob("r*f*.json")), "results belong into the working folder"


@pytest.mark.slow
def test_the_wheel_has_the_hash_of_the_checkout(installed, tmp_path):
    """A cluster compares sources by it, and one side may have a wheel."""
    code = "from benchmark.runner.machine import code_version\nprint(code_version()['sources'])"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(place)},
            capture_output=True, text=True, check=True,
        ).stdout.strip()
        for place in (installed, ROOT)
    }  # fmt: skip
    assert len(seen) == 1


@pytest.mark.slow
def test_the_wheel_shadows_nobody(installed):
    top = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert top == {"benchmark"}
    assert {"models", "datasets", "paper"} <= {
        path.name for path in (installed / "benchmark").iterdir()
    }


@pytest.mark.slow
def test_the_wheel_carries_the_licence(installed):
    [info] = installed.glob("*.dist-info")
    shipped = (info / "licenses" / "LICENSE").read_text()
    assert shipped == (ROOT / "LICENSE").read_text()
    assert "License-Expression: MIT" in (info / "METADATA").read_text().splitlines()


def test_the_citation_names_this_version():
    lines = (ROOT / "CITATION.cff").read_text().splitlines()
    assert f"version: {__version__}" in lines
