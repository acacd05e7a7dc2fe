"""Where runs are done: in this process, in local workers, or on a Dask cluster.

All three take a spec and give a standard `Future`, so nothing above knows which it is.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import Empty, SimpleQueue

from benchmark.protocol.spec import Outcome, RunSpec, UserError, failed
from benchmark.runner.worker import Limits, Worker

BATCH = 100
"""Outcomes that are handed on together, at most: new runs are submitted in between."""


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


@contextmanager
def open_executor(
    jobs: int, dask: str | None, limits: Limits, keep: Collection[str]
) -> Iterator[tuple[Callable[[RunSpec], Future[Outcome]], int]]:
    """A function that submits one spec and returns its future, and how many to have in flight."""
    if dask:
        from benchmark.runner.cluster import IN_FLIGHT, connect

        with connect(dask, limits, keep) as cluster:
            yield cluster.submit, IN_FLIGHT
    elif jobs == 0:
        from benchmark.runner.execute import execute

        def at_once(spec: RunSpec) -> Future[Outcome]:
            """For debuggers: in this process, where no limit can stop the run."""
            done: Future[Outcome] = Future()
            done.set_result(execute(spec, keep))
            return done

        yield at_once, 1
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


def run_batches(
    specs: Iterable[RunSpec] | Queue,
    *,
    jobs: int,
    dask: str | None = None,
    limits: Limits = Limits(),
    keep: Collection[str] = (),
    deadline: float | None = None,
) -> Iterator[list[Outcome]]:
    """Yield the outcome of every run, in the order in which they finish: what is there together.

    At the deadline (on time.monotonic()'s clock) no run begins any more, and what is still running
    is dropped; a run in this process cannot be, and comes to its end.
    """
    todo = specs if isinstance(specs, Queue) else Queue(specs)
    if not todo:
        return
    running: dict[Future[Outcome], RunSpec] = {}
    done: SimpleQueue[Future[Outcome]] = SimpleQueue()
    with open_executor(jobs, dask, limits, keep) as (submit, window):
        while todo or running:
            # Asked before submitting: a run in this process is finished when its future comes.
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            # A bounded window: what a search asks for next can still go first.
            room = 0 if left == 0 else window - len(running)
            for spec in by_data(todo.pop() for _ in range(min(len(todo), room))):
                future = submit(spec)
                running[future] = spec
                future.add_done_callback(done.put)
            try:
                finished = [done.get(timeout=left)]
            except Empty:
                return
            while len(finished) < BATCH and not done.empty():
                finished.append(done.get())
            yield [_outcome(future, running.pop(future)) for future in finished]


def _outcome(future: Future[Outcome], spec: RunSpec) -> Outcome:
    error = future.exception()
    if isinstance(error, UserError):
        raise error  # it concerns all runs
    return failed(spec, "killed", f"{type(error).__name__}: {error}") if error else future.result()


def by_data(specs: Iterable[RunSpec]) -> list[RunSpec]:
    """Grouped so that a worker's copy of the dataset is nearly always the right one already."""
    return sorted(specs, key=lambda spec: (spec.data.label, spec.model, spec.setting))
