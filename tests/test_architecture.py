"""Who may import whom, checked by reading the imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import benchmark

# Each module may import from the rows below its own; modules of one row do not import one another.
ROWS = [
    {"spec"},
    {"registry", "paper", "statistics", "progress", "convergence"},
    {"plan", "store", "runtime", "metrics", "splits", "data"},
    {"settings", "transfer", "timing", "search"},
    {"run", "stopwatch", "costs"},
    {"worker", "summary", "recipes", "specimen"},
    {"executor", "cells"},
    {"campaign", "verify", "ranking", "measured"},
    {"transferability"},
    {"tune", "computed", "render", "audit"},
    {"tables", "needs"},
    {"reproduce", "inventory", "ledger", "speed", "evidence", "deviations", "pairwise", "fidelity"},
    {"ledger_render", "figures", "claims"},
    {"claims_render"},
    {"report"},
    {"cli"},
]
LEVEL = {name: level for level, row in enumerate(ROWS) for name in row}


def imported(path):
    """Names of benchmark.* modules that a file imports, at any depth of its code."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "benchmark":
                yield from (alias.name for alias in node.names)
            elif node.module.startswith("benchmark."):
                yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("benchmark."))


modules = sorted(p for p in (ROOT / "benchmark").glob("*.py") if not p.stem.startswith("__"))
# A folder is one module to the others; inside it, its parts may import one another.
FOLDERS = {"audit", "figures", "report"}
parts = sorted(p for name in FOLDERS for p in (ROOT / "benchmark" / name).glob("*.py"))


def test_every_module_has_a_row():
    assert {path.stem for path in modules} | FOLDERS == set(LEVEL)


@pytest.mark.parametrize("path", modules, ids=lambda p: p.stem)
def test_modules_import_downwards_only(path):
    for name in set(imported(path)) - {"datasets", "models"}:
        assert LEVEL[name] < LEVEL[path.stem], f"{path.stem} imports {name}"


@pytest.mark.parametrize("path", parts, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_parts_of_a_folder_stay_in_its_row(path):
    folder = path.parent.name
    for name in set(imported(path)) - {folder}:
        assert LEVEL[name] < LEVEL[folder], f"{folder}/{path.stem} imports {name}"


@pytest.mark.parametrize("path", sorted((ROOT / "models").glob("*.py")), ids=lambda p: p.stem)
def test_models_know_nothing_of_the_harness(path):
    assert list(imported(path)) == []


def test_folders_do_not_shadow_other_packages():
    for folder in ("models", "datasets", "results", "reports"):
        assert not (ROOT / folder / "__init__.py").exists()
    assert Path(benchmark.__file__).parent == ROOT / "benchmark"


HEAVY = (
    "numpy",
    "scipy",
    "pandas",
    "sklearn",
    "torch",
    "matplotlib",
    "optuna",
    "rich",
    "distributed",
)


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["list"],
        ["list", "models", "--format", "json"],
        ["run", "--help"],
        ["run", "--models", "x"],
    ],
)
def test_light_commands_import_no_numerical_library(words):
    code = (
        "import sys\nfrom benchmark.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "sys.exit(f'loaded {loaded}' if loaded else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
