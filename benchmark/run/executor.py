"""Where runs are done: in this process, in local workers, or on a Dask cluster.

All three speak the standard `concurrent.futures` interface, so nothing above knows which it is.
"""

from __future__ import annotations

import heapq
import json
import logging
import re
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from typing import Any

from benchmark.protocol.record import answer_to
from benchmark.protocol.spec import Outcome, RunSpec, UserError, failed
from benchmark.run.worker import Limits, Worker
from benchmark.shapes import Misshapen, parse


class SerialExecutor(Executor):
    """Does the work at once, in this process: for debuggers, where no limit can stop it."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - a future carries any exception
            future.set_exception(error)
        return future


class WorkerPool(ThreadPoolExecutor):
    """Threads that each own one worker process; a thread only waits for its child."""

    def __init__(self, jobs: int, limits: Limits) -> None:
        super().__init__(jobs, thread_name_prefix="run")
        self._limits = limits
        self._workers: list[Worker] = []
        self._local = threading.local()

    def run(self, spec: RunSpec, keep: Collection[str]) -> Outcome:
        if not hasattr(self._local, "worker"):
            self._local.worker = Worker(self._limits)
            self._workers.append(self._local.worker)
        outcome: Outcome = self._local.worker.run(spec, keep)
        return outcome

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        # By now every outcome that is wanted has been collected: what still runs is to be dropped.
        for worker in list(self._workers):
            worker.close()
        super().shutdown(wait=wait, cancel_futures=cancel_futures)


_on_cluster = threading.local()


def run_on_cluster(request: str) -> tuple[str, bytes | None]:
    """Do one run on a Dask worker, in a guarded child of it. Text in, text and bytes out."""
    asked = json.loads(request)
    limits = Limits(**asked["limits"])
    if getattr(_on_cluster, "limits", None) != limits:
        _on_cluster.worker, _on_cluster.limits = Worker(limits), limits
    outcome = _on_cluster.worker.run(RunSpec.from_dict(asked["spec"]), asked["keep"])
    return json.dumps(outcome.record), outcome.arrays


@contextmanager
def _dask(address: str) -> Iterator[tuple[Executor, int]]:
    try:
        from distributed import Client, Security
    except ModuleNotFoundError as error:
        raise UserError(
            "--dask needs Dask distributed: pip install 'protogate-benchmark[dask]'."
        ) from error
    if not re.fullmatch(r"(tcp|tls|ws|wss|ucx|inproc)://\S+", address):
        raise UserError(f"--dask takes an address such as tcp://10.0.0.1:8786, got {address!r}.")
    # What Dask says of a scheduler that dies goes above our own message, and with a traceback.
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":  # each of them has a level of its own
            logging.getLogger(name).setLevel(logging.CRITICAL)
    security: Any = Security()  # type: ignore[no-untyped-call]
    if address.startswith("tls:") and not security.get_connection_args("client")["ssl_context"]:
        raise UserError(
            f"{address} needs certificates: name them in Dask's configuration, distributed.comm.tls "
            f"(ca-file, client.cert, client.key), or use tcp:// within a network that you trust."
        )
    try:
        client: Any = Client(address, timeout="15s", set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise UserError(
            f"No Dask scheduler answers at {address!r} ({error}). Start one with `dask scheduler` "
            f"and `dask worker {address}`; docs/cluster.md has the steps."
        ) from error
    with client:
        slots = sum(client.nthreads().values())
        if not slots:
            raise UserError(f"The Dask scheduler at {address} has no workers yet.")
        _check_versions(client)
        # pure=False: a forced re-run must not be answered from the cluster's memory.
        yield client.get_executor(pure=False), slots


def _check_versions(client: Any) -> None:
    from benchmark.run.machine import code_version

    here = code_version()
    for worker, there in client.run(code_version).items():
        if (there["version"], there["commit"]) != (here["version"], here["commit"]):
            raise UserError(
                f"The Dask worker {worker} has version {there['version']} ({there['commit']}) of "
                f"this project, here it is {here['version']} ({here['commit']}). Install the same."
            )


@contextmanager
def open_executor(
    jobs: int, dask: str | None, limits: Limits, keep: Collection[str]
) -> Iterator[tuple[Any, int]]:
    """A function that submits one spec and returns its future, and how many to have in flight."""
    if dask:
        options = {"seconds": limits.seconds, "memory_mb": limits.memory_mb}
        with _dask(dask) as (executor, slots):

            def submit(spec: RunSpec) -> Future[Any]:
                request = {"spec": spec.to_dict(), "keep": sorted(keep), "limits": options}
                return executor.submit(run_on_cluster, json.dumps(request))

            yield submit, 2 * slots
    elif jobs == 0:
        from benchmark.run.execute import execute

        yield partial(SerialExecutor().submit, execute, keep=keep), 1
    else:
        pool = WorkerPool(jobs, limits)
        try:
            yield lambda spec: pool.submit(pool.run, spec, keep), jobs + 1
        finally:
            pool.shutdown(cancel_futures=True)


class Queue:
    """Runs to be done, those of the first plans first; more may be pushed while it is emptied."""

    def __init__(self, specs: Iterable[RunSpec] = ()) -> None:
        self._heap: list[tuple[int, int, RunSpec]] = []
        self._pushed = 0
        for spec in specs:
            self.push(0, spec)

    def push(self, rank: int, spec: RunSpec) -> None:
        heapq.heappush(self._heap, (rank, self._pushed, spec))
        self._pushed += 1

    def pop(self) -> RunSpec:
        return heapq.heappop(self._heap)[2]

    def __len__(self) -> int:
        return len(self._heap)


def run_all(
    specs: Iterable[RunSpec] | Queue,
    *,
    jobs: int,
    dask: str | None = None,
    limits: Limits = Limits(),
    keep: Collection[str] = (),
    deadline: float | None = None,
) -> Iterator[Outcome]:
    """Yield the outcome of every run, in the order in which they finish.

    At the deadline (on time.monotonic()'s clock) what is still running is dropped.
    """
    todo = specs if isinstance(specs, Queue) else Queue(specs)
    running: dict[Future[Any], RunSpec] = {}
    if not todo:
        return
    with open_executor(jobs, dask, limits, keep) as (submit, window):
        while todo or running:
            # A bounded window: thousands of specs are never in flight together.
            while todo and len(running) < window:
                spec = todo.pop()
                running[submit(spec)] = spec
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            done = wait(running, timeout=left, return_when=FIRST_COMPLETED).done
            if not done:
                return
            for future in done:
                spec = running.pop(future)
                if future.cancelled():
                    raise UserError(
                        f"The Dask scheduler at {dask} is gone. Finished runs are kept; the same "
                        f"command resumes once it is back."
                    )
                error = future.exception()
                if error is not None:
                    yield failed(spec, "killed", f"{type(error).__name__}: {error}")
                else:
                    result = future.result()
                    yield result if isinstance(result, Outcome) else _from_cluster(spec, result)


def _from_cluster(spec: RunSpec, result: tuple[str, bytes | None]) -> Outcome:
    record, arrays = result
    try:
        return Outcome(answer_to(spec, parse(record.encode())), arrays)
    except Misshapen as error:
        return failed(spec, "killed", f"the cluster's answer was not that of this run: {error}")
