"""Writing files so that nothing is ever half there."""

from __future__ import annotations

import os
import platform
import tempfile
from pathlib import Path

WRITER = f"{platform.node().replace('.', '-')}.{os.getpid()}"
"""Whose unfinished write a temporary file is: only those of dead processes are cleared away."""


def write_atomic(path: Path, content: bytes) -> None:
    """Write so that a reader sees the old file or the new one, never a part."""
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
