"""Writing files so that nothing is ever half there, and reading back only what can be one of them."""

from __future__ import annotations

import os
import platform
import stat
import tempfile
from pathlib import Path

WRITER = f"{platform.node().replace('.', '-')}.{os.getpid()}"
"""Marks a temporary file with the process that writes it: only those of dead ones are cleared away."""


def write_atomic(path: Path, content: bytes) -> None:
    """Write so that a reader sees the old file or the new one, never a part."""
    try:
        _write(path, content)
    except OSError as error:
        if error.errno is None:
            raise
        # A full disk names no file at all, other errors a temporary one that nobody has heard of.
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    prefix = f".{path.name}.{WRITER}."
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp is private by default; records are meant to be shared.
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


LARGEST = 64 << 20
"""Bytes that are read back: thousands of times the largest record there is."""


CHUNK = 1 << 20


class Unreadable(Exception):
    """It is not a file that could be read back; the message says why."""


def read_whole(path: Path | str, largest: int = LARGEST) -> bytes:
    """A regular file's content. A pipe would never end, and nor would a link to /dev/zero."""
    # Opening a pipe waits for its writer unless told not to.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise Unreadable("is not a regular file")
        # Without a file object, which costs as much as reading a record.
        parts = [os.read(handle, min(about.st_size, largest) + 1)]
        size = len(parts[0])
        while parts[-1] and size != about.st_size and size <= largest:
            parts.append(os.read(handle, min(CHUNK, largest + 1 - size)))
            size += len(parts[-1])
    finally:
        os.close(handle)
    if size > largest:
        raise Unreadable(f"has more than {largest >> 20} MB")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def set_aside(root: Path, path: Path) -> Path:
    """Move something below `root` out of the way, keeping it as it is; return where it is now."""
    target = root / "set-aside" / path.relative_to(root)
    while os.path.lexists(target):
        target = target.with_name(target.name + "~")
    target.parent.mkdir(parents=True, exist_ok=True)
    os.replace(path, target)
    return target


def remove_unfinished(folder: Path) -> None:
    """Remove the unfinished writes that killed processes of this machine left behind."""
    for path in folder.rglob(".*.tmp"):
        host, _, pid = ".".join(path.name.split(".")[-4:-2]).rpartition(".")
        if host == WRITER.rpartition(".")[0] and pid.isdigit() and not _alive(int(pid)):
            path.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
