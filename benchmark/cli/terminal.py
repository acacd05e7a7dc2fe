"""The terminal's side of a command: what may be printed on it, and what Ctrl-C does."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from benchmark.cli.codes import INTERRUPTED
from benchmark.text import DIM, PLAIN, visible


class Interrupts:
    """The first signal to stop is raised where it can be caught; another one ends at once.

    That is safe at any moment: a file is written by one rename, and workers end with their parent.
    """

    def __init__(self) -> None:
        self._raising = False
        for number in (
            signal.SIGTERM,
            signal.SIGINT,
        ):  # a background job inherits SIGINT as ignored
            signal.signal(number, self._received)

    def raise_the_first(self) -> None:
        self._raising = True

    def raise_no_more(self) -> None:
        self._raising = False

    def _received(self, _number: int, _frame: FrameType | None) -> None:
        if not self._raising:
            os._exit(INTERRUPTED)
        self._raising = False
        raise KeyboardInterrupt


@contextlib.contextmanager
def shown() -> Iterator[None]:
    """Standard output that takes any text: results must not be lost to the terminal's encoding."""
    with contextlib.redirect_stdout(_Shown(sys.stdout)):
        yield


class _Shown:
    """A stream that spells out what its encoding does not have, and control characters."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        safe = visible(text).replace(DIM, "\x1b[2m").replace(PLAIN, "\x1b[0m")
        safe = safe.encode(encoding, "backslashreplace").decode(encoding)
        return int(self._stream.write(safe))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
