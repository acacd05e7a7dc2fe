"""The command's side of a cluster: runs on whatever workers a Dask scheduler has, now or later.

Workers come and go, and not all of them are fit. Every worker is asked, when it is first seen, for
what the runs need: the same code, the data, the user's own models. It offers to Dask what it has,
runs ask Dask for what they need (see `benchmark.runner.remote`), and Dask does the rest.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from benchmark.files import Unreadable, read_whole
from benchmark.progress import say
from benchmark.protocol.record import answer_to
from benchmark.protocol.registry import find_model, model
from benchmark.protocol.spec import DataRef, Outcome, RunSpec, UserError, digest, failed
from benchmark.runner import machine, remote
from benchmark.runner.worker import Limits
from benchmark.shapes import Misshapen, parse

IN_FLIGHT = 2000
"""Runs that the scheduler knows of at once: enough for a thousand workers, a few megabytes for it."""
GATHER_SECONDS = 0.02
"""How long runs are gathered before they are submitted together."""
LOOK_SECONDS = 1.0
"""How often new workers are looked for."""
PATIENCE_SECONDS = 30.0
REMINDER_SECONDS = 300.0
"""After so long without a fit worker that is said, and then again every so often."""
FORGIVEN = 5
"""How often a run that Dask has given up, after the death of several workers, is submitted again."""
TABLES_AT_ONCE = 8
"""Workers that a table is sent to together: the scheduler holds a copy for each."""
LARGEST_TABLE = 2 << 30
"""Bytes of an own table that travels; more belongs on a disk that all workers see."""


@contextmanager
def connect(address: str, limits: Limits, keep: Collection[str]) -> Iterator[Cluster]:
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise UserError(
            "--dask needs Dask distributed: pip install 'protogate-benchmark[dask]'."
        ) from error
    if not re.fullmatch(r"(tcp|tls|ws|wss|ucx|inproc)://\S+", address):
        raise UserError(f"--dask takes an address such as tcp://10.0.0.1:8786, got {address!r}.")
    _silence()
    _check_tls(address)
    say(f"Connecting to {address}.")  # which takes a while where nobody answers
    try:
        client: Any = Client(address, timeout="15s", set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as error:
        raise UserError(
            f"No Dask scheduler answers at {address!r} ({error}). Start one with `dask scheduler` "
            f"and `dask worker {address}`; docs/cluster.md has the steps."
        ) from error
    cluster = Cluster(client, address, limits, keep)
    try:
        yield cluster
    finally:
        cluster.close()
        client.close(timeout=5)


def _silence() -> None:
    """What Dask says of lost connections with tracebacks is said here in one sentence."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] == "distributed":  # each has a level of its own
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _check_tls(address: str) -> None:
    """Dask's own configuration names the files; without them it fails with a riddle."""
    if not address.startswith(("tls://", "wss://")):
        return
    import dask.config

    settings = {
        name: dask.config.get(f"distributed.comm.tls.{name}", None)
        for name in ("ca-file", "client.cert", "client.key")
    }
    variables = {
        name: "DASK_DISTRIBUTED__COMM__TLS__" + name.replace("-", "_").replace(".", "__").upper()
        for name in settings
    }
    missing = [variables[name] for name, path in settings.items() if not path]
    if missing:
        raise UserError(
            f"{address} is encrypted, and Dask's configuration does not name the files for that. "
            f"Set {', '.join(missing)}; docs/cluster.md has the steps."
        )
    for name, path in settings.items():
        if not Path(str(path)).is_file():
            raise UserError(f"There is no file {path}, which {variables[name]} names.")


class Cluster:
    """Runs submitted to Dask, and a watch over the workers. All state belongs to Dask's event loop."""

    def __init__(self, client: Any, address: str, limits: Limits, keep: Collection[str]) -> None:
        self._client, self._address = client, address
        self._loop: asyncio.AbstractEventLoop = client.loop.asyncio_loop
        self._options = {
            "keep": sorted(keep),
            "limits": asdict(limits),
            "sources": machine.code_version()["sources"],
        }
        self._code = remote.code()
        self._needs: dict[str, remote.Need] = {}
        """What runs so far have needed, by resource."""
        self._pending: Counter[str] = Counter()
        """Runs that are submitted and not done, by resource."""
        self._asked: dict[str, set[str]] = {}
        """Per worker that is there, the resources that it was asked for."""
        self._fit: dict[str, set[str]] = {}
        """Per worker that is there, the resources that it offers."""
        self._reasons: dict[str, str] = {}
        """Per resource, why the last worker that was asked does not have it."""
        self._first_look: dict[str, asyncio.Event] = {}
        """Per resource: when the workers that were there have answered, so that runs are spread."""
        self._next: dict[tuple[str, ...], list[tuple[Any, str, asyncio.Future[Any]]]] = defaultdict(
            list
        )
        """Runs that are about to be submitted, by what they need."""
        self._stuck_since: float | None = None
        self._next_word = 0.0
        self._begun = self._said_waiting = False
        self._runs: set[Future[Outcome]] = set()
        self._vetting: set[asyncio.Task[None]] = set()
        self._watching = asyncio.run_coroutine_threadsafe(self._watch(), self._loop)

    def submit(self, spec: RunSpec) -> Future[Outcome]:
        run = asyncio.run_coroutine_threadsafe(self._do(spec, _needs_of(spec)), self._loop)
        self._runs.add(run)
        run.add_done_callback(self._runs.discard)
        return run

    def close(self) -> None:
        self._watching.cancel()
        for run in list(self._runs):
            run.cancel()

    async def _do(self, spec: RunSpec, needs: Sequence[remote.Need]) -> Outcome:
        """One run, somewhere; where a worker turns out to be unfit, somewhere else."""
        from distributed import KilledWorker

        names = [need["resource"] for need in needs]
        for need in needs:
            self._needs.setdefault(need["resource"], need)
            looked = self._first_look.setdefault(need["resource"], asyncio.Event())
            self._pending[need["resource"]] += 1
            try:
                await asyncio.wait_for(looked.wait(), PATIENCE_SECONDS)
            except TimeoutError:
                looked.set()  # a worker that does not answer must not keep the others from working
        request = json.dumps({"spec": spec.to_dict(), "data": names[0], **self._options})
        deaths = 0
        try:
            while True:
                # Dask keeps durations per name, here per model and dataset. And the key is new each
                # time: a forced re-run must not be answered from the cluster's memory.
                key = (f"{spec.model}_{spec.data.folder}", uuid.uuid4().hex)
                try:
                    text, arrays = await (await self._task(tuple(names), key, request))
                except KilledWorker:
                    # Dask blames a death on all runs that the worker had, also on those that waited.
                    deaths += 1
                    if deaths > FORGIVEN:
                        raise
                    continue
                answer = parse(text.encode())
                if not isinstance(answer, dict) or "refused" not in answer:
                    return Outcome(answer_to(spec, answer), arrays)
                self._withdrawn(answer["worker"], names[0], answer["refused"])
        except Misshapen as error:
            message = f"the cluster's answer was not that of this run: {error}"
            return failed(spec, "killed", message)
        except CancelledError as error:  # Dask's own, unlike asyncio's: not the end of this command
            raise UserError(
                f"The Dask scheduler at {self._address} is gone, or was told to drop the runs. "
                f"Finished runs are kept; the same command resumes once it is back."
            ) from error
        except Exception as error:  # noqa: BLE001 - Dask gave the run up: its workers died each time
            return failed(spec, "killed", f"{type(error).__name__}: {error}")
        finally:
            self._pending.subtract(names)

    def _task(self, names: tuple[str, ...], key: Any, request: str) -> asyncio.Future[Any]:
        """A task of Dask's, soon: it takes many in little more time than one."""
        if not self._next:
            self._loop.call_later(GATHER_SECONDS, self._submit)
        promise = self._loop.create_future()
        self._next[names].append((key, request, promise))
        return promise

    def _submit(self) -> None:
        for names, gathered in self._next.items():
            batch = [run for run in gathered if not run[2].done()]  # some were given up meanwhile
            if not batch:
                continue
            keys, requests, promises = zip(*batch, strict=True)
            tasks = self._client.map(
                remote.run_on_cluster,
                requests,
                key=list(keys),
                pure=False,
                resources=dict.fromkeys(names, 1),
            )
            for promise, task in zip(promises, tasks, strict=True):
                promise.set_result(task)
        self._next.clear()

    def _withdrawn(self, worker: str, resource: str, reason: str) -> None:
        """A worker has lost what it offered; many runs may say so, and it is told once."""
        if resource in self._fit.get(worker, ()):
            self._fit[worker].discard(resource)
            self._refuse({reason: {worker}}, resource)

    async def _watch(self) -> None:
        """Ask the workers that nobody has asked yet; say when runs wait for a worker."""
        while True:
            try:
                present = await self._client.scheduler.ncores()
            except (OSError, asyncio.CancelledError):
                return  # the scheduler is gone, and the runs say so
            for worker in self._asked.keys() - present.keys():
                self._asked.pop(worker)
                self._fit.pop(worker, None)
            groups: dict[frozenset[str], list[str]] = defaultdict(list)
            for worker in present:
                new = self._needs.keys() - self._asked.setdefault(worker, set())
                groups[frozenset(new)].append(worker)
                self._asked[worker] |= new
            for names, workers in groups.items():
                if names:
                    task = self._loop.create_task(self._vet(workers, sorted(names)))
                    self._vetting.add(task)
                    task.add_done_callback(self._vetting.discard)
            if not present:
                for looked in self._first_look.values():
                    looked.set()
            self._tell(len(present))
            await asyncio.sleep(LOOK_SECONDS if self._needs else 0.05)

    async def _vet(self, workers: Sequence[str], names: Sequence[str]) -> None:
        """Ask workers for what they have; send them the tables that only this machine has."""
        needs = [self._needs[name] for name in names]
        for need in needs:
            if need.get("data", {}).get("path"):
                await self._send_table(need["data"], workers)
        answers = await self._run_on(workers, remote.vet, self._code, needs)
        refusals: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for worker, answer in answers.items():
            refused = _understood(answer)
            if refused is None:  # it is gone, or may answer next time
                self._asked.pop(worker, None)
                continue
            for resource, reason in refused.items():
                refusals[resource][reason].add(worker)
            unfit = set(names) if "*" in refused else set(refused)
            self._fit.setdefault(worker, set()).update(set(names) - unfit)
        for resource, reasons in refusals.items():
            self._refuse(reasons, resource)
        for name in names:
            self._first_look[name].set()

    async def _send_table(self, data: dict[str, Any], workers: Sequence[str]) -> None:
        """Own tables travel once per worker, by their hash; where they lie is each machine's own."""
        answers = await self._run_on(workers, remote.files_to_send, data)
        for field, (place, sha256) in DataRef(**data).files.items():
            missing = [
                w for w, asked in answers.items() if isinstance(asked, list) and field in asked
            ]
            path = Path(place)
            try:
                content = read_whole(path, LARGEST_TABLE) if missing else b""
            except (OSError, Unreadable) as error:
                say(f"The table {path} cannot be sent to {_some(missing)}: {error}.")
                return
            for start in range(0, len(missing), TABLES_AT_ONCE):
                some = missing[start : start + TABLES_AT_ONCE]
                await self._run_on(some, remote.keep_table, sha256, path.name, content)

    async def _run_on(self, workers: Sequence[str], function: Any, *words: Any) -> dict[str, Any]:
        try:
            answers: dict[str, Any] = await self._client.run(
                function, *words, workers=list(workers), on_error="return"
            )
            return answers
        except OSError:
            return {}  # the scheduler is gone, and the runs say so

    def _refuse(self, reasons: dict[str, set[str]], resource: str) -> None:
        for reason, workers in reasons.items():
            what = "no runs" if resource == "*" else f"no runs {self._what(resource)}"
            verb = "gets" if len(workers) == 1 else "get"
            say(f"{_some(sorted(workers))} {verb} {what}: {reason.rstrip('.')}.")
            for name in self._needs if resource == "*" else [resource]:
                self._reasons[name] = reason

    def _what(self, resource: str) -> str:
        need = self._needs[resource]
        return f"of {need['model']}" if "model" in need else f"on {DataRef(**need['data']).label}"

    def _tell(self, present: int) -> None:
        """Say what runs wait for: at once if there never was a worker, else after a while."""
        offered = set().union(*self._fit.values())
        stuck = sorted(name for name, runs in self._pending.items() if runs and name not in offered)
        now = time.monotonic()
        if not stuck:
            if self._said_waiting:
                say(f"Workers are there ({present}); the runs go on.")
            self._stuck_since, self._said_waiting = None, False
            return
        if self._stuck_since is None:
            self._stuck_since = now
            # At once if there is nobody to begin with; a worker that returns soon is no news.
            self._next_word = now if not (present or self._begun) else now + PATIENCE_SECONDS
        self._begun = True
        if now < self._next_word:
            return
        self._said_waiting = True
        self._next_word = now + (PATIENCE_SECONDS if now == self._stuck_since else REMINDER_SECONDS)
        waited = f"for {now - self._stuck_since:.0f} s " if now > self._stuck_since else ""
        if not present:
            say(
                f"Waiting {waited}for workers: {self._address} has none. Start some with "
                f"`dask worker {self._address}`; an adaptive cluster starts them by itself. "
                f"Ctrl-C stops; finished runs are kept."
            )
            return
        reasons = [f"{self._what(name)}: {self._reasons.get(name, 'no answer')}" for name in stuck]
        say(
            f"Waiting {waited}for fit workers, none of {present} can do the runs "
            + "; ".join(reasons[:3])
            + ("; ..." if len(reasons) > 3 else "")
        )


def _some(workers: Sequence[str]) -> str:
    """`worker tcp://...`, or how many there are and the first of them."""
    if len(workers) == 1:
        return f"worker {workers[0]}"
    return f"{len(workers)} workers ({', '.join(workers[:3])}{', ...' if len(workers) > 3 else ''})"


def _understood(answer: Any) -> dict[str, str] | None:
    """What a worker said, or why it could not even understand the question; None if nothing."""
    if isinstance(answer, dict):
        return answer
    if isinstance(answer, OSError):
        return None
    # Dask may wrap what it could not unpickle into an exception of another type.
    if re.search("ModuleNotFoundError|ImportError|AttributeError|No module named", repr(answer)):
        return {"*": f"this project is not installed there, or another version ({answer})"}
    return {"*": f"it cannot say what it has ({type(answer).__name__}: {answer})"}


def _needs_of(spec: RunSpec) -> list[remote.Need]:
    """What a worker must have for this run, the data first."""
    ours = _ours()
    needs: list[remote.Need] = [
        {"resource": f"{ours}:{spec.data.folder}", "data": spec.data.to_dict()}
    ]
    if (entry := find_model(spec.model)) and entry.own:
        source = _source_of(spec.model)
        needs.append(
            {
                "resource": f"{ours}:{spec.model}:{source[:12]}",
                "model": spec.model,
                "source": source,
            }
        )
    return needs


@cache
def _source_of(name: str) -> str:
    """Once per command: the class may come from a package with hundreds of files."""
    return machine.model_source(model(name))


@cache
def _ours() -> str:
    """A short name for the code here, so that two commands with other code do not meet."""
    return "protogate-" + digest(remote.code(), 12)
