"""Getting a file from one of its addresses: mirrors in turn, hash before use, nothing half-done.

A download ends: it has a largest size and a longest time, per file where the registry says so.
"""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import tempfile
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
    url = _openml_url(address) if address.startswith("openml:") else address
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        archived = Path(scratch) / "download"
        _receive(url, archived, file, progress)
        plain = _extract(archived, file["member"]) if "member" in file else archived
        for field, (name, hash_of) in HASHES.items():
            expected = file.get(field)
            if expected and (found := hash_of(plain)) != expected:
                raise ValueError(
                    f"{name} is {found}, expected {expected}; the download was deleted "
                    f"(cut off on the way, or the file there has changed)"
                )
        return plain.replace(folder / file["name"])


def _receive(url: str, target: Path, file: Mapping[str, Any], progress: bool) -> None:
    """Write what an address sends to a file, up to the file's limits of size and time."""
    import requests
    from rich.console import Console
    from rich.progress import Progress

    largest = float(file.get("max_mb", MAX_MB)) * 1e6
    longest = float(file.get("max_seconds", MAX_SECONDS))
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
            if received > largest:
                raise ValueError(
                    f"more than {largest / 1e6:g} MB, the most that this file may have"
                )
            if time.monotonic() > end:
                raise ValueError(f"not finished after {longest:g} s, the longest that it may take")
            sink.write(piece)
            bar.update(task, advance=len(piece))


def _openml_url(address: str) -> str:
    """`openml:54` -> where the file lies now."""
    import requests

    answer = requests.get(OPENML + address.removeprefix("openml:"), timeout=TIMEOUT)
    answer.raise_for_status()
    return str(answer.json()["data_set_description"]["url"])


def _extract(archive: Path, member: str) -> Path:
    """Take one member out of a .zip or .tar.* file; it never leaves the archive's folder."""
    target = archive.with_name("member")
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as bundle, bundle.open(member) as source:
            _copy(source, target)
    else:
        with tarfile.open(archive) as tar:
            found = tar.extractfile(member)
            if found is None:
                raise ValueError(f"member {member!r} is not a file")
            _copy(found, target)
    return target


def _copy(source: Any, target: Path) -> None:
    with target.open("wb") as sink:
        shutil.copyfileobj(source, sink)


def _reason(error: Exception) -> str:
    """Why an address failed, in a few words: requests wraps a dead network three times."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"{error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.ConnectionError | requests.Timeout):
        return NO_CONNECTION
    return " ".join(str(error).split())[:300] or type(error).__name__
