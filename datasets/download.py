"""Getting a file from one of its addresses: mirrors in turn, hash before use, nothing half-done."""

from __future__ import annotations

import hashlib
import logging
import shutil
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

OPENML = "https://www.openml.org/api/v1/json/data/"
"""Describes a dataset, including the address of its file. Ids are stable, file addresses moved."""

TIMEOUT = (10.0, 60.0)
"""Seconds to connect, and between two packets: a machine without a network must fail soon."""

NO_CONNECTION = "no connection"


class DownloadError(Exception):
    """No address gave the file; the message has one line per address."""


def fetch(file: Mapping[str, Any], folder: Path, *, progress: bool) -> Path:
    """Download one file of the registry into `folder`, checked against its hash if it has one."""
    import pooch  # imported late, since most runs download nothing

    pooch.get_logger().setLevel(logging.WARNING)
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


def _fetch_from(address: str, file: Mapping[str, Any], folder: Path, progress: bool) -> Path:
    import pooch

    url = _openml_url(address) if address.startswith("openml:") else address
    bar = _Bar(file["name"]) if progress else False
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        got = pooch.retrieve(
            url,
            known_hash=None,
            fname="download",
            path=scratch,
            downloader=pooch.HTTPDownloader(progressbar=bar, timeout=TIMEOUT),
        )
        archived = Path(got)
        plain = _extract(archived, file["member"]) if "member" in file else archived
        expected, found = file.get("sha256"), sha256_of(plain)
        if expected and found != expected:
            raise ValueError(
                f"SHA-256 is {found}, expected {expected}; the download was deleted "
                f"(cut off on the way, or the file there has changed)"
            )
        return plain.replace(folder / file["name"])


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


class _Bar:
    """A one-line progress bar on standard error, in the form that pooch asks for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.total = 0
        self.done = 0

    def update(self, n: int) -> None:
        self.done += n
        share = f"{self.done / self.total:4.0%} of" if self.total else f"{self.done / 1e6:.1f} of"
        print(f"\r{self.name}: {share} {self.total / 1e6:.1f} MB ", end="", file=sys.stderr)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        print(file=sys.stderr)
