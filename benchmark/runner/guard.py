"""No orphans: a worker and everything it started end with the process that wanted the run.

The worker forks before it imports anything. The elder process is the guard, the younger one does the
runs. On Linux the kernel tells the guard when the parent dies, whatever killed it and whether or not a
model holds Python's lock, and it kills the worker when the guard dies. The guard adopts the
grandchildren whose parents end, also those that left the group by setsid, so it can end them all.
Elsewhere a worker still notices that its input ends, and its group is killed; a grandchild in a session
of its own may survive there.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

SET_DEATH_SIGNAL, SET_SUBREAPER = 1, 36
"""Numbers of prctl(2)."""


def stand() -> None:
    """Fork; return in the process that does the runs. The guard stays here until that one ends."""
    if sys.platform != "linux":
        return
    parent = os.getppid()
    _prctl(SET_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, _end_all)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _prctl(SET_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(0)  # it died before the kernel was told to tell us
    guard = os.getpid()
    worker = os.fork()
    if worker == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(0)
        return
    # The pipes are the worker's: if it dies, the parent must see their end.
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    status = _wait_for(worker)
    _end_descendants()
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        # Die as the worker did, so that the parent can name the signal.
        signal.signal(-code, signal.SIG_DFL) if -code not in UNCATCHABLE else None
        os.kill(os.getpid(), -code)
        time.sleep(1)  # a signal that does not end us: the code below does
    os._exit(abs(code))


UNCATCHABLE = (signal.SIGKILL, signal.SIGSTOP)


def _wait_for(worker: int) -> int:
    """Wait for the worker; reap adopted processes on the way."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == worker:
            return status


def _end_all(_number: int, _frame: object) -> None:
    _end_descendants()
    os._exit(0)


def _end_descendants() -> None:
    """Kill until none is left: a killed process hands its own children to us."""
    while children := _children():
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended meanwhile
        for _ in children:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return


def _children() -> list[int]:
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)
