"""Who may import whom, checked by reading the imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import benchmark

PACKAGES = [
    "files", "text", "shapes", "progress",
    "protocol", "paper", "data", "runner", "experiments", "tables", "judge", "figures", "report", "api",
    "cli",
]  # fmt: skip
"""The house from the ground up: each may import from those before it. docs/architecture.md shows it."""


def imported(path):
    """Names of benchmark.* modules that a file imports, at any depth of its code."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "benchmark":
            yield from (f"benchmark.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("benchmark."):
            for alias in node.names:
                inner = ROOT / node.module.replace(".", "/") / f"{alias.name}.py"
                yield f"{node.module}.{alias.name}" if inner.is_file() else node.module
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("benchmark."))


modules = sorted(p for p in (ROOT / "benchmark").rglob("*.py") if p.parent.name != "benchmark")
modules += sorted(p for p in (ROOT / "benchmark").glob("*.py") if not p.stem.startswith("__"))


def module_name(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_every_package_has_its_place():
    assert {module_name(path).split(".")[1] for path in modules} == set(PACKAGES)


@pytest.mark.parametrize("path", modules, ids=module_name)
def test_packages_import_from_those_before_them(path):
    here = module_name(path).split(".")[1]
    for name in set(imported(path)):
        there = name.split(".")[1]
        if there not in ("datasets", "models", here):
            assert PACKAGES.index(there) < PACKAGES.index(here), f"{module_name(path)}: {name}"


def test_no_module_imports_itself_by_a_detour():
    graph = {module_name(path): set(imported(path)) for path in modules}
    done, trail = set(), []

    def visit(name):
        assert name not in trail, " -> ".join([*trail, name])
        if name not in done:
            trail.append(name)
            for other in sorted(graph.get(name, ())):
                visit(other)
            done.add(trail.pop())

    for name in graph:
        visit(name)


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
        "import sys\nfrom benchmark.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        f"loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "sys.exit(f'loaded {loaded}' if loaded else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_figures_wait_for_no_library_that_fits_or_tests():
    """What a report reads before it knows whether anything has to be drawn."""
    code = (
        "import sys\nfrom benchmark import figures, report\nfrom benchmark.judge import discrepancies\n"
        "for name in figures.FIGURES:\n    figures._module(name)\n"
        "loaded = [n for n in ('sklearn', 'scipy', 'pandas', 'torch') if n in sys.modules]\n"
        "sys.exit(f'loaded {loaded}' if loaded else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
