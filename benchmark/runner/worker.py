"""The worker process: reads runs from its input, writes their outcomes to its output. It also tries
models for `check-model`.

Every run is done in such a child, whatever the executor, so that a limit really stops it and a
crash costs one run. Both directions are lines of JSON; nothing is unpickled.
"""

from __future__ import annotations

import base64
import gc
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, TypedDict, TypeVar

import benchmark
from benchmark.protocol.record import answer_to
from benchmark.protocol.spec import Outcome, RunSpec, failed
from benchmark.runner import guard
from benchmark.runner.machine import ONE_THREAD, take_kernels
from benchmark.shapes import fit, parse

POLL_SECONDS = 0.1
GRACE_SECONDS = 5.0
"""How long a guard may take to end what a worker started."""
LAST_WORDS = 4000
"""Bytes of a worker's error output that are kept."""
MAX_REPLY = 1 << 30
"""Bytes of a reply: far more than any record with its arrays has."""
OUT_OF_STEP = "the worker's answer was not that of this run; the model may have written into it"


@dataclass(frozen=True)
class Limits:
    """What one run may use; None is no limit."""

    seconds: float | None = None
    memory_mb: float | None = None
    blas: str | None = None
    torch: str | None = None
    """Kernels to compute with, as records name them; None is what the library takes by itself."""


class Reply(TypedDict):
    """What a worker answers: a line of JSON."""

    record: dict[str, Any]
    arrays: str | None


@dataclass(frozen=True)
class Broken:
    """Why a child gave no answer."""

    kind: str
    message: str
    last_words: str
    """The end of what it wrote to its error output."""
    seconds: float


T = TypeVar("T")


class Worker:
    """A child process that does runs one after the other, and is replaced when it dies."""

    def __init__(self, limits: Limits = Limits()) -> None:
        self.limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._said = b""
        """The end of what the child wrote to its error output."""
        self._ready = self._closed = False

    def run(self, spec: RunSpec, keep: Collection[str] = ()) -> Outcome:
        """Do one run in the child. Never raises: a dead child is an outcome too."""
        request = {"spec": spec.to_dict(), "keep": sorted(keep)}
        answer = self.ask(request, partial(reply_to, spec))
        if isinstance(answer, Broken):
            seconds = {"seconds": {"total": answer.seconds}}
            return failed(spec, answer.kind, answer.message, answer.last_words, seconds)
        return answer

    def ask(self, request: dict[str, Any], read: Callable[[bytes], T | None]) -> T | Broken:
        """The child's answer as `read` reads it, which gives None of a line that is no answer."""
        process = self._start()
        # What was printed before would be taken for the last words on this request.
        self._said = b""
        start = time.monotonic()
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            if not self._ready:
                # Starting and importing are not the run's: its time limit begins when it does.
                self._ready = self._wait(process, None)[0] is not None
                start = time.monotonic()
            line, broken = self._wait(process, start) if self._ready else (None, "killed")
        except BrokenPipeError:
            line, broken = None, "killed"
        answer = None if line is None else read(line)
        if answer is not None:
            return answer
        seconds = round(time.monotonic() - start, 3)
        message = OUT_OF_STEP if line is not None else self._explain(broken)
        return Broken(broken or "killed", message, self._stop(), seconds)

    def close(self) -> None:
        """End the child, also in the middle of a run that another thread waits for."""
        self._closed = True
        if self._process is not None:
            _kill(self._process)

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._ready = False
            self._process = subprocess.Popen(
                # -P: a user's own benchmark.py in the working folder must not be taken for ours.
                [sys.executable, "-P", "-m", "benchmark.runner.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={
                    **os.environ,
                    **ONE_THREAD,
                    **take_kernels(self.limits.blas, self.limits.torch),
                    "PYTHONPATH": _python_path(),
                },
                # Its own group: Ctrl-C reaches the parent only, and a kill reaches grandchildren.
                start_new_session=True,
            )
        return self._process

    def _wait(
        self, process: subprocess.Popen[bytes], start: float | None
    ) -> tuple[bytes | None, str]:
        """The child's next line, or None and the kind of failure; no limits without a start."""
        assert process.stdout is not None and process.stderr is not None
        received = bytearray()
        streams = [process.stdout, process.stderr]
        while not received.endswith(b"\n"):
            if self._closed:
                return None, "killed"
            ready, _, _ = select.select(streams, [], [], POLL_SECONDS)
            if process.stderr in ready and not self._listen(process):
                streams = [process.stdout]
            if process.stdout in ready:
                # What follows the line that says ready is the answer already, if we were asleep.
                chunk = os.read(process.stdout.fileno(), 1 if start is None else 1 << 20)
                if not chunk or len(received) + len(chunk) > MAX_REPLY:
                    return None, "killed"
                received += chunk
                continue
            if start is None:
                continue
            if self.limits.seconds and time.monotonic() - start > self.limits.seconds:
                return None, "timeout"
            if self.limits.memory_mb and memory_mb(process.pid) > self.limits.memory_mb:
                return None, "out_of_memory"
        return bytes(received), ""

    def _listen(self, process: subprocess.Popen[bytes]) -> bool:
        """Take what the child wrote to its error output, of which only the end is kept."""
        assert process.stderr is not None
        chunk = os.read(process.stderr.fileno(), 1 << 16)
        self._said = (self._said + chunk)[-LAST_WORDS:]
        return bool(chunk)

    def _explain(self, kind: str) -> str:
        if kind == "timeout":
            return f"stopped at its time limit of {self.limits.seconds:g} s"
        if kind == "out_of_memory":
            return f"stopped at its memory limit of {self.limits.memory_mb:g} MB"
        try:
            code = self._process.wait(GRACE_SECONDS) if self._process and not self._closed else None
        except subprocess.TimeoutExpired:
            # A model may have closed the child's output, or the child waits to write the rest of a
            # reply that is too large: it would go on without anybody who looks at its limits.
            return "the worker process gave no usable answer and did not end, so it was stopped"
        name = _signal_name(-code) if code is not None and code < 0 else f"exit code {code}"
        hint = "; the system may have run out of memory" if name == "SIGKILL" else ""
        return f"the worker process died ({name}{hint})"

    def _stop(self) -> str:
        """Kill the child; return the end of what it wrote to its error output."""
        process, self._process = self._process, None
        if process is None:
            return ""
        _kill(process)
        assert process.stderr is not None
        while select.select([process.stderr], [], [], 0)[0] and self._listen(process):
            pass  # until nothing is left
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass  # the rest of a request that nobody will read
        return self._said.decode(errors="replace")


def reply_to(spec: RunSpec, line: bytes) -> Outcome | None:
    """The outcome of the run that was asked for; None if the line is anything else."""
    try:
        reply = fit(Reply, parse(line))
        arrays = reply["arrays"]
        record = answer_to(spec, reply["record"])
        return Outcome(record, base64.b64decode(arrays, validate=True) if arrays else None)
    except ValueError:  # Misshapen is one
        return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # real-time signals have no names


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the child and all that it started: its guard kills what has left the group."""
    try:
        process.terminate()
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        pass  # the guard is stuck or gone: the group is what can still be reached
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it is gone already, which is what is wanted
    process.wait()


def memory_mb(pid: int) -> float:
    """Resident memory of a process and its children, in MB; 0 when it is gone."""
    import psutil

    total = 0
    try:
        process = psutil.Process(pid)
        for member in (process, *process.children(recursive=True)):
            total += member.memory_info().rss
    except psutil.Error:
        pass  # one of them ended meanwhile: what was counted so far is what there is
    return total / 2**20


def _python_path() -> str:
    """This project first, then what the user has, then the folder of the user's own models."""
    ours = str(Path(benchmark.__file__).resolve().parent.parent)
    return os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH"), os.getcwd()]))  # noqa: PTH109


def serve() -> None:
    """The child's side: do runs until the input ends."""
    guard.stand()
    # Libraries print to standard output; the replies go through a descriptor they do not know.
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # And a model that asks for input gets none, rather than the requests meant for us.
    pipe = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _volunteer_for_oom()
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(pipe, requests), daemon=True).start()

    from benchmark.runner.contract import answer
    from benchmark.runner.execute import execute

    replies.write(b"{}\n")  # ready
    replies.flush()
    imported: set[str] = set()
    while True:
        request = json.loads(requests.get())
        if "check" in request:
            _send(replies, answer(request["check"], request["classes"]))
            continue
        spec = RunSpec.from_dict(request["spec"])
        outcome = execute(spec, request["keep"])
        arrays = base64.b64encode(outcome.arrays).decode() if outcome.arrays else None
        _send(replies, {"record": outcome.record, "arrays": arrays})
        if request["spec"]["model"] not in imported:
            # Every run begins with a collection, which would walk all that the libraries made: with
            # torch loaded a tenth of a second. What is there after a model's first run stays.
            imported.add(request["spec"]["model"])
            gc.collect()
            gc.freeze()


def _send(replies: IO[bytes], reply: dict[str, Any]) -> None:
    replies.write(json.dumps(reply).encode() + b"\n")
    replies.flush()


def _read(pipe: IO[bytes], requests: queue.SimpleQueue[bytes]) -> None:
    for line in pipe:
        requests.put(line)
    # The parent is gone, perhaps killed: a run that nobody waits for must not go on.
    os._exit(0)


def _volunteer_for_oom() -> None:
    """If the machine runs out of memory, lose this run rather than the whole campaign."""
    try:
        Path("/proc/self/oom_score_adj").write_text("500")
    except OSError:
        pass  # not Linux, or not allowed: the default order applies


if __name__ == "__main__":
    serve()
