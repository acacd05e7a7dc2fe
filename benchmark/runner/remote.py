"""The worker's side of a cluster: what a Dask worker says of itself, and one run on it.

Dask's resources carry the answer: a worker offers what it was found fit for, a run asks for what it
needs, and the scheduler brings the two together. A worker that nobody has vetted offers nothing.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmark.files import write_atomic
from benchmark.protocol.registry import find_model, models
from benchmark.protocol.spec import DataRef, Outcome, RunSpec, UserError
from benchmark.runner import machine
from benchmark.runner.worker import Limits, Worker

ABANDONED_SECONDS = 2.0
"""How often a worker looks whether somebody still waits for its runs."""

Code = dict[str, str | None]
Need = dict[str, Any]
"""`resource`: the name that a fit worker offers; and `data` or `model` with what it stands for."""


def code() -> Code:
    """What two machines must have in common for the same spec to give the same record."""
    return {
        "sources of this project": machine.code_version()["sources"],
        "Python": machine.python_version().rpartition(".")[0],
        **machine.libraries(),
    }


async def vet(expected: Code, needs: Sequence[Need], dask_worker: Any) -> dict[str, str]:
    """Why this worker is unfit, by resource; it offers the others. Unfit for all has the name "*"."""
    # In a thread: reading data must not keep the worker from answering the scheduler.
    refused = await asyncio.to_thread(_refused, expected, needs, dask_worker.local_directory)
    if "*" not in refused:
        threads = dask_worker.state.nthreads
        names = [need["resource"] for need in needs if need["resource"] not in refused]
        await dask_worker.set_resources(**dict.fromkeys(names, threads))
        _announce(dask_worker)
    return refused


def _announce(dask_worker: Any) -> None:
    """Let the scheduler look again at tasks that no worker could do: it does so when one resumes."""
    from distributed.core import Status

    if dask_worker.status == Status.running:
        dask_worker.status = Status.paused
        dask_worker.status = Status.running


def _refused(expected: Code, needs: Sequence[Need], folder: str) -> dict[str, str]:
    here = code()
    other = [
        f"{name} {_short(here.get(name))} instead of {_short(wanted)}"
        for name, wanted in expected.items()
        if here.get(name) != wanted
    ]
    if other:
        return {"*": f"it has {', '.join(other)}; install the same"}
    reasons = {need["resource"]: _unfit(need, folder) for need in needs}
    return {resource: reason for resource, reason in reasons.items() if reason}


def _short(value: str | None) -> str:
    return "none" if value is None else value[:12]


def _unfit(need: Need, folder: str) -> str | None:
    """Why this worker cannot meet a need, or None."""
    from benchmark.data.load import check

    try:
        if "data" in need:
            check(_here(DataRef(**need["data"]), folder))
            return None
        models.cache_clear()  # the file may have been put right since somebody asked
        entry = find_model(need["model"])
        if entry is None:
            return f"the model {need['model']!r} is not in its registry; set BENCHMARK_MODELS there"
        if machine.model_source(entry) != need["source"]:
            return f"its source of the model {need['model']!r} is another one; copy yours there"
        return None
    except UserError as error:
        return str(error).splitlines()[0]


def table_path(sha256: str, name: str, folder: str) -> Path:
    """Where a table that was sent lies: in the worker's scratch folder, which ends with it."""
    return Path(folder) / "tables" / sha256 / name


def files_to_send(data: dict[str, Any], dask_worker: Any) -> list[str]:
    """The files of an own table that somebody has to send, by the names of their fields: they lie
    neither here nor in a folder that both can see."""
    return sorted(_lying(DataRef(**data), dask_worker.local_directory)[1])


def keep_table(sha256: str, name: str, content: bytes, dask_worker: Any) -> None:
    write_atomic(table_path(sha256, name, dask_worker.local_directory), content)


def _lying(data: DataRef, folder: str) -> tuple[dict[str, str], list[str]]:
    """Where the files of an own table lie on this machine, and which of them are not here."""
    from benchmark.datasets.download import sha256_of

    found, missing = {}, []
    for field, (path, sha256) in data.files.items():
        places = (table_path(sha256, Path(path).name, folder), Path(path))
        here = next((p for p in places if p.is_file() and sha256_of(p) == sha256), None)
        if here is None:
            missing.append(field)
        else:
            found[field] = str(here)
    return found, missing


def _here(data: DataRef, folder: str) -> DataRef:
    """The reference with the paths that a user's own table has on this machine."""
    found, missing = _lying(data, folder)
    for field in missing:
        path, sha256 = data.files[field]
        raise UserError(f"the table {path} (SHA-256 {sha256[:12]}) is not there")
    return replace(data, path=found.get("path"), test_path=found.get("test_path"))


_mine = threading.local()
"""Every thread of a Dask worker has a child of its own."""


@dataclass(frozen=True)
class _UnderWay:
    dask_worker: Any
    worker: Worker


_under_way: dict[Any, _UnderWay] = {}
"""The runs of this process, by the key of their Dask task. Who takes one out decides what becomes of
its worker: the thread that did the run keeps it, the one that finds it abandoned closes it for good."""


def run_on_cluster(request: str) -> tuple[str, bytes | None]:
    """Do one run on a Dask worker, in a guarded child of it. Text in, text and bytes out.

    The text is the record, or {"refused": reason, "worker": address}: then this machine no longer
    has what the run needs, and the worker has withdrawn its offer.
    """
    from distributed import get_worker

    asked = json.loads(request)
    dask_worker: Any = get_worker()
    spec = RunSpec.from_dict(asked["spec"])
    try:
        local = replace(spec, data=_here(spec.data, dask_worker.local_directory))
    except UserError as error:
        return _withdraw(dask_worker, asked["data"], str(error)), None
    outcome = _run(dask_worker, local, asked)
    reason = _not_ours(outcome.record, asked["sources"])
    if reason:
        return _withdraw(dask_worker, asked["data"], reason), None
    # The path on this machine is nobody's business: the record is that of the spec that was sent.
    return json.dumps({**outcome.record, "spec": asked["spec"]}), outcome.arrays


def _run(dask_worker: Any, spec: RunSpec, asked: Mapping[str, Any]) -> Outcome:
    _watch_runs()
    limits = Limits(**asked["limits"])
    if getattr(_mine, "worker", None) is None or _mine.worker.limits != limits:
        _mine.worker = Worker(limits)
    key = dask_worker.get_current_task()
    _under_way[key] = _UnderWay(dask_worker, _mine.worker)
    try:
        outcome: Outcome = _mine.worker.run(spec, asked["keep"])
        return outcome
    finally:
        if _under_way.pop(key, None) is None:
            _mine.worker = None


@cache
def _watch_runs() -> None:
    def watch() -> None:
        while True:
            time.sleep(ABANDONED_SECONDS)
            _drop_abandoned()

    threading.Thread(target=watch, name="abandoned runs", daemon=True).start()


def _drop_abandoned() -> None:
    """End runs that nobody waits for: the command was stopped, or the scheduler is gone."""
    for key, run in list(_under_way.items()):
        task = run.dask_worker.state.tasks.get(key)
        abandoned = task is None or task.state == "cancelled"
        # It may have come to its end since: then its thread has the worker, perhaps in another run.
        if abandoned and _under_way.pop(key, None) is not None:
            run.worker.close()


def _not_ours(record: Mapping[str, Any], sources: str) -> str | None:
    """Why this record must not be kept: what was found fit before has changed since."""
    if record["status"] == "missing_data":
        return str(record["error"]["message"]).splitlines()[0]
    made = record["meta"].get("code", {}).get("sources", sources)
    if made != sources:
        return f"its sources of this project have changed to {_short(made)}; install the same"
    return None


def _withdraw(dask_worker: Any, resource: str, reason: str) -> str:
    """Take back an offer. Tasks that are here already come to the same end and go elsewhere."""
    taken = dask_worker.scheduler.set_resources(
        resources={resource: 0}, worker=dask_worker.contact_address
    )
    asyncio.run_coroutine_threadsafe(taken, dask_worker.loop.asyncio_loop).result(60)
    return json.dumps({"refused": reason, "worker": dask_worker.contact_address})
