"""What a cluster of many workers costs this side: 200 workers in one process and runs that do nothing.

    python tests/bench_cluster.py [RUNS [WORKERS]]

Everything but the models is real: scheduler, workers' answers, specs, records on disk. All workers
share one process and one interpreter lock, and all processes this machine: real clusters are faster.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import dask
import psutil
from distributed import Worker

from benchmark.data import load
from benchmark.protocol.registry import data_ref, make_spec, models
from benchmark.protocol.spec import Outcome
from benchmark.runner import remote
from benchmark.runner.campaign import Means, run_missing
from benchmark.runner.execute import execute
from benchmark.runner.records import Store

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


@cache
def done_once(name):
    return execute(make_spec(models()["knn"], data_ref(name), {}, 0, 0))


class Idle:
    """A worker whose runs are done before they begin: it hands out copies of one record."""

    def __init__(self, limits):
        self.limits = limits

    def run(self, spec, keep=()):
        record = done_once(spec.data.name).record
        split = {**record["split"], "sha256": f"{spec.data.name}{spec.repeat}{spec.fold}"}
        made = {**record, "key": spec.key, "spec": spec.to_dict(), "split": split}
        return Outcome(made)

    def close(self):
        pass


async def site(address, number):
    """Many workers in this process, until its input ends."""
    remote.Worker = Idle
    for name in DATASETS:
        done_once(name)  # before 200 threads ask for it together
    load.check = lambda ref: None  # 200 machines read their data side by side, this one cannot
    workers = [
        Worker(address, nthreads=1, host="127.0.0.1", dashboard=False, memory_limit=0)
        for _ in range(number)
    ]
    await asyncio.gather(*workers)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await asyncio.gather(*(worker.close() for worker in workers))


def child(*words):
    return subprocess.Popen(
        [sys.executable, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "DASK_LOGGING__DISTRIBUTED": "critical",
            # As docs/cluster.md advises: the messages to each worker that a scheduler remembers.
            "DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": "20",
        },
    )


def used(process):
    """CPU seconds and megabytes of a process."""
    times = process.cpu_times()
    return times.user + times.system, process.memory_info().rss / 2**20


def main(number=50_000, workers=200, parts=5):
    wanted = list({spec.key: spec for spec in specs(number)}.values())
    share = len(wanted) // parts
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"
        words = ["--host", "127.0.0.1", "--port", "0", "--dashboard-address", ":0"]
        words += ["--scheduler-file", file]
        scheduler = child("-m", "distributed.cli.dask_scheduler", *map(str, words))
        while not file.is_file():
            time.sleep(0.1)
        address = json.loads(file.read_text())["address"]
        site = child(__file__, "site", address, str(workers))
        site.stdout.readline()
        print(f"{workers} workers after {time.perf_counter() - start:.1f} s", flush=True)
        means = Means(Store(Path(folder)), dask=address)
        watched = [psutil.Process(), psutil.Process(scheduler.pid), psutil.Process(site.pid)]
        print("command, scheduler, all workers:")
        for part in range(parts):
            start, before = time.perf_counter(), [used(process)[0] for process in watched]
            report = run_missing(wanted[part * share : (part + 1) * share], means)
            seconds = time.perf_counter() - start
            assert report.done == share and not report.failures
            now = [used(process) for process in watched]
            cpu = [1000 * (n[0] - b) / share for n, b in zip(now, before, strict=True)]
            print(
                f"{share} runs in {seconds:.1f} s: {share / seconds:.0f} runs/s; ms of CPU per run "
                f"{', '.join(f'{c:.1f}' for c in cpu)}; MB {', '.join(f'{n[1]:.0f}' for n in now)}",
                flush=True,
            )
        site.stdin.close()
        site.wait(60)
        scheduler.terminate()
        scheduler.wait(60)


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["site"]:
        asyncio.run(site(words[1], int(words[2])))
    else:
        main(*map(int, words))
