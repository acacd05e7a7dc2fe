"""What the harness itself costs, beside the models: `make bench`.

Prints numbers; asserts nothing, because absolute times depend on the machine.
"""

import contextlib
import io
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmark.paper import DATASETS, METHODS
from benchmark.protocol.registry import data_ref, load_class, make_spec, models
from benchmark.protocol.spec import Outcome
from benchmark.report import write_page
from benchmark.run.executor import WorkerPool
from benchmark.run.records import Store
from benchmark.run.worker import Limits
from benchmark.tables.build import build_table

ROOT = Path(__file__).resolve().parent.parent
WORK = ("load", "fit", "predict")


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
    built = build_table("table2", store.root, methods=sorted(methods), datasets=list(DATASETS))
    seconds = time.perf_counter() - start
    n = sum(result.n for result in built.shown)
    print(f"Table 2 from {n} records: {seconds:.2f} s")
    return n


def shipped_page() -> None:
    """The report page of all the shipped records."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        [path] = write_page(ROOT / "results", Path(folder))
        seconds = time.process_time() - start
        print(f"page of the shipped records: {seconds:.1f} s, {path.stat().st_size / 1e6:.1f} MB")


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
    shipped_page()
    for words in (["--help"], ["list"]):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "benchmark", *words], capture_output=True, check=True)
        print(f"python -m benchmark {words[0]}: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
