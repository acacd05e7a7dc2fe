"""The machine around a run: seeds, threads, clock, memory and a description of the environment."""

from __future__ import annotations

import ctypes
import gc
import hashlib
import os
import platform
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

import benchmark
from benchmark.protocol.registry import ModelEntry
from benchmark.protocol.spec import UserError, digest

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
"""Set before numpy is imported. Thread counts change speed and sums, so one run = one thread."""

LIBRARIES = (
    "numpy", "scipy", "scikit-learn", "torch", "numba", "xgboost", "catboost", "lightgbm", "pytorch-tabnet",
)  # fmt: skip


@contextmanager
def isolated(seed: int) -> Iterator[None]:
    """Seed every generator, pin threads, and put back torch's global switches afterwards.

    Workers are reused, so a run must neither see nor leave traces of another.
    """
    import numpy as np
    from threadpoolctl import threadpool_limits

    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - libraries that we call draw from the global generator
    torch = sys.modules.get("torch")
    errors = np.geterr()
    try:
        if torch is None:
            with threadpool_limits(1):
                yield
            return
        threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
        deterministic = torch.are_deterministic_algorithms_enabled()
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        try:
            with threadpool_limits(1):
                yield
        finally:
            torch.set_num_threads(threads)
            torch.set_default_dtype(dtype)
            torch.use_deterministic_algorithms(deterministic)
    finally:
        np.seterr(**errors)


class Clock:
    """Seconds spent in the named stages of a run."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def reset_peak_memory() -> float:
    """Start a new measurement; return the memory in use now, in MB."""
    # What an earlier run left to the allocator would hide what the next one takes from it.
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # the GNU C library's
    if trim is not None:
        trim(0)
    try:
        # Linux keeps a high-water mark per process; writing 5 here sets it back to now.
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return 0.0
    return peak_memory()


def peak_memory() -> float:
    """Highest resident memory since the last reset, in MB."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass  # not Linux: fall through to the process's lifetime maximum
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def environment() -> dict[str, Any]:
    """What the numbers of this process depend on, besides the code."""
    return _surroundings() | {"blas": _blas(), "torch": _torch()}


@cache
def _surroundings() -> dict[str, Any]:
    return {
        "python": python_version(),
        "libraries": libraries(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads": 1,
    }


def python_version() -> str:
    return platform.python_version()


@cache
def libraries() -> dict[str, str]:
    """The installed version of every library that models compute with."""
    return {name: found for name in LIBRARIES if (found := _version(name))}


def _version(name: str) -> str | None:
    # The CPU-only build of XGBoost is published under a name of its own.
    for distribution in (name, f"{name}-cpu"):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return None


def _cpu() -> str:
    # Where that is not known, the general name is the best there is.
    return _cpuinfo("model name") or platform.processor()


def _cpuinfo(name: str) -> str:
    """What Linux says of the first processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(name):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return ""


@cache
def _blas() -> str | None:
    """The processor that NumPy's matrix products are written for: others round differently."""
    import numpy as np  # noqa: F401 - only what is loaded can be asked
    from threadpoolctl import threadpool_info

    kinds = {info.get("architecture") for info in threadpool_info()} - {None}
    return " ".join(sorted(kinds)) or None


def _torch() -> str | None:
    """The vector instructions that torch's own loops are written for, if it is loaded."""
    torch = sys.modules.get("torch")
    return None if torch is None else str(torch.backends.cpu.get_cpu_capability())


BLAS_NEEDS = {"Haswell": "avx2", "Zen": "avx2", "SkylakeX": "avx512vl"}
TORCH_NEEDS = {"AVX2": "avx2", "AVX512": "avx512vl"}
"""Kernels by the names in records, and what a processor must be able to do for them."""


def take_kernels(blas: str | None, torch: str | None) -> dict[str, str]:
    """The variables with which a process computes with these kernels, as far as this processor can.

    Bits follow from the kernels and not from the processor: an AMD and an Intel that take the same
    ones agree.
    """
    able = _cpuinfo("flags").split()
    variables = {}
    if blas and BLAS_NEEDS.get(blas) in able:
        variables["OPENBLAS_CORETYPE"] = blas
    if torch and TORCH_NEEDS.get(torch) in able:
        variables["ATEN_CPU_CAPABILITY"] = torch.lower()
    return variables


@cache
def code_version() -> dict[str, Any]:
    """The project's version and the hash of its sources; in a checkout also the commit, and whether
    files were changed."""
    root = Path(benchmark.__file__).resolve().parent.parent
    code: dict[str, Any] = {
        "version": benchmark.__version__,
        "commit": None,
        "dirty": None,
        "sources": source_hash(_sources()),
    }
    if (root / ".git").exists():
        commit = _git(root, "rev-parse", "HEAD")
        changed = _git(root, "status", "--porcelain", "--", "benchmark", "models", "datasets")
        code |= {
            "commit": commit and commit[:12],
            "dirty": None if changed is None else bool(changed),
        }
    return code


def _sources() -> dict[str, Path]:
    """The project's files by the name that they have in a wheel, where models/ lies in benchmark/."""
    sources = {}
    places = {"": "benchmark", "models/": "benchmark.models", "datasets/": "benchmark.datasets"}
    for prefix, package in places.items():
        # Of a file: a package without __init__.py has a folder only through what is in it.
        folder = Path(str(files(package).joinpath("registry.toml"))).parent
        for path in folder.rglob("*"):
            name = prefix + path.relative_to(folder).as_posix()
            if path.suffix in (".py", ".toml") and not name.startswith("datasets/cache/"):
                sources[name] = path
    return sources


def source_hash(sources: Mapping[str, Path]) -> str:
    """One SHA-256 of several files and of their names."""
    return digest(
        {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in sources.items()}
    )


def model_source(entry: ModelEntry) -> str:
    """Hash of the module that a user's own model is in; of a package, all of its files."""
    module = entry.class_path.partition(":")[0]
    top = module.partition(".")[0]
    found = PathFinder.find_spec(top, _places())
    if found is None:
        raise UserError(
            f"The model {entry.name!r} needs the module {module!r}, which is not there."
        )
    places = [Path(place) for place in found.submodule_search_locations or ()]
    paths = (
        {
            path.relative_to(place).as_posix(): path
            for place in places
            for path in place.rglob("*.py")
        }
        if places
        else {f"{top}.py": Path(str(found.origin))}
    )
    return digest([entry.class_path, source_hash(paths)])


def own_source(entry: ModelEntry) -> str | None:
    """The same of a model whose file its user edits; None of the project's own, and of an installed
    library's, whose version the environment names."""
    top = entry.class_path.partition(":")[0].partition(".")[0]
    if not entry.own or top == "benchmark":
        return None
    found = PathFinder.find_spec(top, _places())
    if found is None or {"site-packages", "dist-packages"} & set(Path(str(found.origin)).parts):
        return None
    # Of a file in an archive, for one, nothing is known.
    editable = found.submodule_search_locations or Path(str(found.origin)).is_file()
    return model_source(entry) if editable else None


def _places() -> list[str]:
    """Workers look into the working folder too, last: see `_python_path` there."""
    return [*sys.path, str(Path.cwd())]


def _git(root: Path, *words: str) -> str | None:
    # A run may be killed while it asks. `git status` would then leave the lock behind that it takes to
    # refresh the index, and the next commit would be refused.
    command = ["git", "--no-optional-locks", "-C", str(root), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
