"""What the harness itself costs, beside the models: `make bench`.

Prints numbers; asserts nothing, because absolute times depend on the machine.
"""

import contextlib
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmark.paper import DATASETS, METHODS
from benchmark.protocol.registry import data_ref, load_class, make_spec, models
from benchmark.protocol.spec import Outcome, RunSpec
from benchmark.runner.executor import WorkerPool
from benchmark.runner.records import Store, decode, encode
from benchmark.runner.worker import Limits
from benchmark.tables.build import build_recipe
from benchmark.tables.recipes import read_recipe

ROOT = Path(__file__).resolve().parent.parent
WORK = ("load", "fit", "predict")
RESULTS = Path(__file__).parents[1] / "results"
REPEATS = 3
MANY = 100_000


def overhead(model: str, dataset: str, store: Store) -> tuple[float, float]:
    """Milliseconds per run that are not loading, fitting or predicting; and the whole run's."""
    pool, rest, whole = WorkerPool(1, Limits()), [], []
    for number in range(25):
        spec = make_spec(models()[model], data_ref(dataset), {}, number // 5, number % 5)
        start = time.perf_counter()
        outcome = pool.submit(pool.run, spec, ()).result()
        store.write(outcome)
        total = time.perf_counter() - start
        if number >= 5:  # the first runs import libraries
            seconds = outcome.record["meta"]["seconds"]
            rest.append(1000 * (total - sum(seconds[stage] for stage in WORK)))
            whole.append(1000 * total)
    pool.shutdown()
    return statistics.median(rest), statistics.median(whole)


def full_table(store: Store) -> int:
    """A record for each of the 25 runs of 17 methods on 7 datasets, copied from one real run."""
    entry = models()["xgboost"]
    spec = make_spec(entry, data_ref("syn1"), {}, 0, 0)
    real = store.find([spec.key])[0][spec.key]
    methods = {f"xgboost:max_depth={depth}" for depth in range(1, len(METHODS) + 1)}
    for method in sorted(methods):
        depth = int(method.rpartition("=")[2])
        for name in DATASETS:
            for number in range(25):
                made = make_spec(
                    entry, data_ref(name), {"max_depth": depth}, number // 5, number % 5
                )
                record = {**real, "key": made.key, "spec": made.to_dict()}
                record["split"] = {**real["split"], "sha256": f"{name}{number}"}
                store.write(Outcome(record))
    load_class(entry)  # variants are checked against the class; its import is not the table's cost
    start = time.perf_counter()
    recipe = replace(read_recipe("table2"), methods=tuple(sorted(methods)), datasets=DATASETS)
    built = build_recipe(recipe, store.root)
    seconds = time.perf_counter() - start
    n = sum(result.n for result in built.shown)
    print(f"Table 2 from {n} records: {seconds:.2f} s")
    return n


def cpu(call: Callable[[], object]) -> float:
    """CPU seconds of a call, with those of the processes that it starts and waits for."""
    before = os.times()
    call()
    return sum(os.times()[:4]) - sum(before[:4])


def command(*words: object) -> Callable[[], object]:
    line = [sys.executable, "-m", "benchmark", *map(str, words)]
    return lambda: subprocess.run(line, capture_output=True, check=False)


def read_all(results: Path) -> None:
    """All records with the standard library alone: what the commands are compared with."""
    for path in (results / "runs").rglob("*.json"):
        json.loads(path.read_bytes())


def waiting(results: Path, to: Path) -> None:
    """CPU of the commands that people wait for, as multiples of reading all records once."""
    page = command("report", "--all", "--results", results, "--to", to)

    def redrawn() -> None:
        shutil.rmtree(to / "figures", ignore_errors=True)
        page()

    calls = {
        "status": command("status", "--results", results),
        "report --all, everything redrawn": redrawn,
        "report --all, nothing changed": page,
    }
    # In turns, since other work on the machine slows everything down for a while.
    rounds = [
        (cpu(lambda: read_all(results)), {name: cpu(call) for name, call in calls.items()})
        for _ in range(REPEATS)
    ]
    plain = min(base for base, _ in rounds)
    print(f"CPU as a multiple of reading all records as plain JSON ({plain:.2f} s)")
    for name in calls:
        print(f"  {name:<34} {min(seconds[name] for _, seconds in rounds) / plain:5.1f}")


def grown(results: Path, to: Path, number: int) -> None:
    """The records of a folder, and copies of them with other settings up to a number of records.

    The copies are what most records of a long campaign are: candidates that no table shows.
    """
    shutil.copytree(results, to)
    paths = sorted((results / "runs").rglob("*.json"))
    for count in range(len(paths), number):
        record = decode(paths[count % len(paths)].read_bytes())
        record["spec"]["params"]["copy"] = count // len(paths)
        spec = RunSpec.from_dict(record["spec"])
        path = Store(to).path(spec.key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode({**record, "key": spec.key}))


def memory(results: Path, to: Path) -> float:
    """Megabytes that the page needs at most."""
    code = (
        "import resource, sys\nfrom pathlib import Path\nfrom benchmark.report import write_page\n"
        "write_page(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    )
    line = [sys.executable, "-c", code, str(results), str(to)]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    return float(done.stdout)


def shipped() -> None:
    """Commands on the records that come with the project, and on many more."""
    with tempfile.TemporaryDirectory() as folder:
        waiting(RESULTS, Path(folder) / "reports")
        print(f"memory of the page: {memory(RESULTS, Path(folder) / 'page'):.0f} MB")
        grown(RESULTS, Path(folder) / "results", MANY)
        used = memory(Path(folder) / "results", Path(folder) / "page")
        print(f"memory of the page with {MANY:,} records: {used:.0f} MB")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        print("harness overhead per run, warm (everything but load, fit, predict; one worker)")
        for model, dataset in (
            ("knn", "syn1"),
            ("knn", "colon"),
            ("rf", "syn1"),
            ("xgboost", "syn1"),
        ):
            rest, whole = overhead(model, dataset, store)
            print(f"  {model:<8} {dataset:<6} {rest:6.1f} ms of {whole:7.1f} ms")
        with contextlib.redirect_stderr(io.StringIO()):
            full_table(store)
    for words in (["--help"], ["list"]):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "benchmark", *words], capture_output=True, check=True)
        print(f"python -m benchmark {words[0]}: {time.perf_counter() - start:.2f} s")
    shipped()


if __name__ == "__main__":
    main()
