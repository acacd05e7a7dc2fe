"""Getting a file from one of its addresses: mirrors in turn, hash before use, nothing half-done.

A download ends: it has a largest size and a longest time, per file where the registry says so.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
import tempfile
import threading
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

OPENML = "https://www.openml.org/api/v1/json/data/"
"""Describes a dataset, including the address of its file. Ids are stable, file addresses moved."""

TIMEOUT = (10.0, 60.0)
"""Seconds to connect, and between two packets: a machine without a network must fail soon."""
MAX_MB, MAX_SECONDS = 200.0, 1800.0
"""What one download may take unless the registry's `max_mb` and `max_seconds` say otherwise."""

GRACE = 0.5
"""Seconds that a download may take to notice by itself that its time is over."""

NO_CONNECTION = "no connection"


class DownloadError(Exception):
    """No address gave the file; the message has one line per address."""


def fetch(file: Mapping[str, Any], folder: Path, *, progress: bool) -> Path:
    """Download one file of the registry into `folder`, checked against its hash if it has one."""
    failures, silent = [], set()
    for address in file["urls"]:
        host = urlsplit(OPENML if address.startswith("openml:") else address).hostname
        if host in silent:
            continue  # an offline machine need not wait twice for one host
        try:
            return _fetch_from(address, file, folder, progress)
        except Exception as error:  # noqa: BLE001  a mirror may fail in any way
            reason = _reason(error)
            if reason == NO_CONNECTION:
                silent.add(host)
            failures.append(f"  {address}: {reason}")
    raise DownloadError("\n".join(failures))


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def git_blob_of(path: Path) -> str:
    """The name that git gives to a file's content: SHA-1 of a header with the size, and the bytes."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


HASHES = {"sha256": ("SHA-256", sha256_of), "git_blob": ("git blob id", git_blob_of)}
"""The registry's fields that identify a file's bytes."""


def _fetch_from(address: str, file: Mapping[str, Any], folder: Path, progress: bool) -> Path:
    # A thread that was given up may still write into the folder while it is removed.
    with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as scratch:
        openml = address.startswith("openml:")
        url = _openml_url(address, Path(scratch)) if openml else address
        archived = Path(scratch) / "download"
        _receive(url, archived, file, progress)
        plain = _extract(archived, file) if "member" in file else archived
        for field, (name, hash_of) in HASHES.items():
            expected = file.get(field)
            if expected and (found := hash_of(plain)) != expected:
                raise ValueError(
                    f"{name} is {found}, expected {expected}; the download was deleted "
                    f"(cut off on the way, or the file there has changed)"
                )
        return plain.replace(folder / file["name"])


def _receive(url: str, target: Path, file: Mapping[str, Any], progress: bool) -> None:
    """Write what an address sends to a file, up to the file's limits of size and time.

    In a thread of its own: a server that sends its headers byte by byte is in time for every packet
    and never done, and nothing else can end the wait for it.
    """
    longest = float(file.get("max_seconds", MAX_SECONDS))
    failures: list[BaseException] = []

    def work() -> None:
        try:
            _transfer(url, target, file, longest, progress)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(longest + GRACE)
    if thread.is_alive():
        raise ValueError(_too_slow(longest))
    if failures:
        raise failures[0]


def _too_slow(longest: float) -> str:
    return f"not finished after {longest:g} s, the longest that it may take"


def _largest(file: Mapping[str, Any]) -> float:
    return float(file.get("max_mb", MAX_MB)) * 1e6


def _transfer(
    url: str, target: Path, file: Mapping[str, Any], longest: float, progress: bool
) -> None:
    import requests
    from rich.console import Console
    from rich.progress import Progress

    end = time.monotonic() + longest
    with (
        requests.get(url, stream=True, timeout=TIMEOUT) as answer,
        Progress(console=Console(stderr=True), disable=not progress) as bar,
        target.open("wb") as sink,
    ):
        answer.raise_for_status()
        length = answer.headers.get("Content-Length", "")
        task = bar.add_task(file["name"], total=int(length) if length.isdigit() else None)
        received = 0
        # read1 gives what has come so far: waiting for whole pieces, a trickle would never be timed.
        while piece := answer.raw.read1(1 << 16, decode_content=True):
            received += len(piece)
            _check_size(received, file)
            if time.monotonic() > end:
                raise ValueError(_too_slow(longest))
            sink.write(piece)
            bar.update(task, advance=len(piece))


def _check_size(size: int, file: Mapping[str, Any]) -> None:
    if size > _largest(file):
        raise ValueError(f"more than {_largest(file) / 1e6:g} MB, the most that this file may have")


def _openml_url(address: str, scratch: Path) -> str:
    """`openml:54` -> where the file lies now. Its description is a download like any other."""
    description = scratch / "description"
    limits = {"name": address, "max_mb": 5.0, "max_seconds": 60.0}
    _receive(OPENML + address.removeprefix("openml:"), description, limits, progress=False)
    return str(json.loads(description.read_bytes())["data_set_description"]["url"])


def _extract(archive: Path, file: Mapping[str, Any]) -> Path:
    """Take one member out of a .zip or .tar.* file; it never leaves the archive's folder."""
    target, member = archive.with_name("member"), file["member"]
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as bundle, bundle.open(member) as source:
            _copy(source, target, file)
    else:
        with tarfile.open(archive) as tar:
            found = tar.extractfile(member)
            if found is None:
                raise ValueError(f"member {member!r} is not a file")
            _copy(found, target, file)
    return target


def _copy(source: Any, target: Path, file: Mapping[str, Any]) -> None:
    """A small archive can unpack into a full disk, so the limit holds here too."""
    size = 0
    with target.open("wb") as sink:
        while piece := source.read(1 << 20):
            size += len(piece)
            _check_size(size, file)
            sink.write(piece)


def _reason(error: Exception) -> str:
    """Why an address failed, in a few words: requests wraps a dead network three times."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"{error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.ConnectionError | requests.Timeout):
        return NO_CONNECTION
    return " ".join(str(error).split())[:300] or type(error).__name__
