"""Files of the results folder beside the records: choices, times, findings, specimens.

One way to read them, and two to go on when one is damaged: a reader reports it; a command that can
remake it sets it aside. None is ever taken for something that it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from benchmark.files import Unreadable, read_whole, set_aside
from benchmark.progress import say
from benchmark.protocol.spec import UserError
from benchmark.shapes import Misshapen, fit, parse

T = TypeVar("T")


class Damaged(UserError):
    """A file that is there and cannot be used."""

    def __init__(self, path: Path, reason: object, remedy: str) -> None:
        super().__init__(f"{path} cannot be used: {reason}. {remedy}")
        self.path, self.reason = path, str(reason)


def read(shape: type[T], path: Path, remedy: str) -> T | None:
    """What the file holds; None if there is none. Damaged says why it cannot be used."""
    try:
        return fit(shape, parse(read_whole(path)))
    except FileNotFoundError:
        return None
    except (Misshapen, Unreadable, OSError) as error:
        raise Damaged(path, error, remedy) from error


def or_told(read: Callable[[], T | None]) -> T | None:
    """For readers: what is damaged is named and counts as absent."""
    try:
        return read()
    except Damaged as damage:
        say(f"not used: {damage}")
        return None


def or_set_aside(root: Path, read: Callable[[], T | None]) -> T | None:
    """For those who can make it anew: what is damaged is moved out of the way and counts as absent."""
    try:
        return read()
    except Damaged as damage:
        moved = set_aside(root, damage.path)
        say(f"set aside {damage.path}: {damage.reason}\n  It is now {moved}, and is made again.")
        return None
