"""A Dask cluster of Slurm jobs for the benchmark: keep it open, give its address to `--dask`.

    python examples/slurm.py --queue short --jobs 50 --data /path/to/data

For PBS, SGE or LSF replace SLURMCluster by PBSCluster, SGECluster or LSFCluster. docs/cluster.md has
the rest.
"""

import argparse
import os
import shlex
import sys

import dask
from dask_jobqueue import SLURMCluster

# The messages to each worker that the scheduler remembers, here for nobody: 1000 need gigabytes.
dask.config.set({"distributed.admin.low-level-log-length": 20})

NAMES = ("BENCHMARK_DATA", "BENCHMARK_CACHE", "BENCHMARK_MODELS", "PYTHONPATH")
"""What the workers are to have as this process has it."""


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--queue", help="the partition that jobs are sent to")
    parser.add_argument("--account")
    parser.add_argument("--jobs", type=int, default=10, help="jobs at most (default 10)")
    parser.add_argument("--cores", type=int, default=8, help="cores per job (default 8)")
    parser.add_argument("--memory", default="32GB", help="of a job (default 32GB)")
    parser.add_argument("--hours", type=int, default=4, help="wall time of a job (default 4)")
    parser.add_argument("--data", help="folder with the datasets, as the nodes see it")
    parser.add_argument("--interface", help="network between the nodes, e.g. ib0")
    parser.add_argument("--show", action="store_true", help="print the job script and end")
    return parser.parse_args(words)


def cluster(given):
    environment = {name: os.environ[name] for name in NAMES if os.environ.get(name)}
    if given.data:
        environment["BENCHMARK_DATA"] = given.data
    return SLURMCluster(
        queue=given.queue,
        account=given.account,
        cores=given.cores,
        processes=given.cores,  # one thread per worker: one run = one thread
        memory=given.memory,
        walltime=f"{given.hours:02}:00:00",
        interface=given.interface,
        python=sys.executable,  # the job does not ask a virtual environment
        job_script_prologue=[
            f"export {name}={shlex.quote(value)}" for name, value in environment.items()
        ],
        # End before the job does, not all at once, and hand the results over.
        worker_extra_args=[
            "--lifetime", f"{60 * given.hours - 10}m", "--lifetime-stagger", "5m"
        ],
    )  # fmt: skip


def main():
    given = arguments()
    with cluster(given) as running:
        if given.show:
            print(running.job_script())
            return
        running.adapt(minimum_jobs=0, maximum_jobs=given.jobs)
        print(f"python -m benchmark tune --dask {running.scheduler_address}")
        input("Jobs start when there are runs. Press Enter to end the cluster. ")


if __name__ == "__main__":
    main()
