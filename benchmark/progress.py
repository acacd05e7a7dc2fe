"""What a person sees while runs are being done. All of it on stderr; a line per minute in a log."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from benchmark.text import first_line, visible

LINE_SECONDS = 60.0
"""How often a line is written where there is no terminal for a bar."""


def say(message: str) -> None:
    """A remark for the person at the terminal, kept apart from results on stdout."""
    print(visible(message), file=sys.stderr, flush=True)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A sign of life at the terminal, gone when the work is done. Results are to be printed afterwards:
    meanwhile rich sends all that is printed to stderr."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


class Progress:
    """A bar with the time left, the running mean of the test score and the failures so far."""

    def __init__(self, total: int, title: str) -> None:
        self.total, self.title = total, title
        self.steps = 0
        self.scores: list[float] = []
        self.failures = 0
        self._bar: Any = None
        self._begun = time.monotonic()
        self._over = threading.Event()

    def __enter__(self) -> Self:
        self._start()
        if not sys.stderr.isatty():
            threading.Thread(target=self._write_lines, name="progress", daemon=True).start()
        return self

    def _write_lines(self) -> None:
        while not self._over.wait(LINE_SECONDS):
            say(self.line())

    def line(self) -> str:
        """`runs: 12 of 60 done, 1 failed, 6.0 per minute, 8 min left`."""
        done = self.done
        minutes = (time.monotonic() - self._begun) / 60
        rate = done / minutes if minutes else 0.0
        left = f", {(self.total - done) / rate:.0f} min left" if rate else ""
        failed = f", {self.failures} failed" if self.failures else ""
        return f"{self.title}: {done} of {self.total} done{failed}, {rate:.1f} per minute{left}"

    @property
    def done(self) -> int:
        return self.steps + len(self.scores) + self.failures

    def _start(self) -> None:
        if self.total and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                MofNCompleteColumn,
                TextColumn,
                TimeElapsedColumn,
                TimeRemainingColumn,
            )
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("left"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[note]}"),
                console=Console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task(self.title, total=self.total, note="")

    def grow(self, total: int) -> None:
        """More work has turned up: a search asks for runs as it learns."""
        self.total = total
        if not self._bar:
            self._start()
        if self._bar:
            self._bar.update(self._task, total=total)

    def advance(self, record: dict[str, Any]) -> None:
        """Count one finished run."""
        if record["status"] == "ok":
            self.scores.append(record["scores"]["test"]["balanced_accuracy"])
        else:
            self.failures += 1
            # Failures are told even without a terminal: nothing fails quietly.
            if self.failures <= 5:
                reason = first_line(record["error"]["message"])
                self._print(f"{record['status']}: {record['key']}: {reason}")
            elif self.failures == 6:
                self._print(
                    "more runs fail; `python -m benchmark status` with their --results lists all"
                )
        if self._bar:
            self._bar.update(self._task, advance=1, note=self._note(record))

    def step(self, note: str) -> None:
        """Count one finished piece of work that is not a run."""
        self.steps += 1
        if self._bar:
            self._bar.update(self._task, completed=self.steps, note=note)

    def _note(self, record: dict[str, Any]) -> str:
        mean = f"mean {100 * sum(self.scores) / len(self.scores):.1f}" if self.scores else ""
        bad = f"  [red]{self.failures} failed[/red]" if self.failures else ""
        return f"{mean}{bad}  {record['spec']['model']} {record['spec']['data']['name']}"

    def _print(self, message: str) -> None:
        if self._bar:
            self._bar.console.print(visible(message), markup=False)
        else:
            say(message)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._bar:
            self._bar.stop()
