"""What a cluster of many workers costs this side: 200 workers in one process and runs that do nothing.

    python tests/bench_cluster.py [RUNS [WORKERS]]

Everything but the models is real: scheduler, workers' answers, specs, records on disk. Scheduler,
workers and command share the cores and the interpreter lock, so a real cluster is faster.
"""

import sys
import tempfile
import time
from pathlib import Path

import dask
import psutil
from distributed import LocalCluster

from benchmark.data import load
from benchmark.protocol.registry import data_ref, make_spec, models
from benchmark.protocol.spec import Outcome
from benchmark.run import remote
from benchmark.run.campaign import Means, run_missing
from benchmark.run.execute import execute
from benchmark.run.records import Store

# What every worker does for itself all the time: here one process would do it 200 times.
dask.config.set(
    {
        "distributed.admin.system-monitor.interval": "1h",
        "distributed.worker.profile.enabled": False,
    }
)
DATASETS = ("syn1", "syn2", "syn3", "colon")


def specs(number):
    """Runs of nearest neighbours with settings that nobody would take, to have enough of them."""
    return [
        make_spec(
            models()["knn"],
            data_ref(DATASETS[n % len(DATASETS)]),
            {"n_neighbors": 3 + n // (25 * len(DATASETS))},
            n // len(DATASETS) % 25 // 5,
            n // len(DATASETS) % 5,
        )
        for n in range(number)
    ]


class Idle:
    """A worker whose runs are done before they begin: it hands out copies of one record."""

    real = {
        name: execute(make_spec(models()["knn"], data_ref(name), {}, 0, 0)) for name in DATASETS
    }

    def __init__(self, limits):
        self.limits = limits

    def run(self, spec, keep=()):
        record = self.real[spec.data.name].record
        split = {**record["split"], "sha256": f"{spec.data.name}{spec.repeat}{spec.fold}"}
        made = {**record, "key": spec.key, "spec": spec.to_dict(), "split": split}
        return Outcome(made)

    def close(self):
        pass


def memory():
    return psutil.Process().memory_info().rss / 2**20


def main(number=50_000, workers=200):
    remote.Worker = Idle
    load.check = lambda ref: None  # 200 machines read their data side by side, this one cannot
    wanted = list({spec.key: spec for spec in specs(number)}.values())
    start = time.perf_counter()
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            memory_limit=0,
        ) as site,
        tempfile.TemporaryDirectory() as folder,
    ):
        print(f"{workers} workers after {time.perf_counter() - start:.1f} s", flush=True)
        means = Means(Store(Path(folder)), dask=site.scheduler_address)
        share = len(wanted) // 5
        for part in range(5):
            start, cpu = time.perf_counter(), time.process_time()
            report = run_missing(wanted[part * share : (part + 1) * share], means)
            seconds = time.perf_counter() - start
            cpu = time.process_time() - cpu
            assert report.done == share and not report.failures
            tasks = len(site.scheduler.tasks)
            print(
                f"{share} runs in {seconds:.1f} s: {share / seconds:.0f} runs/s, "
                f"CPU {1000 * cpu / share:.1f} ms per run; {memory():.0f} MB, "
                f"{tasks} tasks left with the scheduler",
                flush=True,
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
