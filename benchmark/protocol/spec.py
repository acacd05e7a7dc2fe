"""The nouns of the benchmark: what a run is, what it is called, what it leaves behind.

Standard library only, so that planning, listing and `--help` never wait for a numerical library.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import PurePath
from typing import Any, NewType

SCHEMA = 1
"""Version of the record format; raised when old records can no longer be read as they are."""

REPEATS = 5
FOLDS = 5
"""The paper's protocol: five times a stratified five-fold split, 25 runs."""
VALID_SIZE = 0.1
"""Share of the rows outside the test part that validate."""
SEED = 42
"""What every run draws from, unless a model's name says `:random_state=...`."""

PARTS = ("train", "valid", "test")

METRICS = {
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy",
    "weighted_f1": "weighted F1",
    "auroc": "AUROC",
}
"""Scores of a part: names in a record -> words, in the order of an exported table's columns."""
NO_AUROC = "it needs probabilities or a decision function, and test rows of every class"
"""Why an AUROC is undefined."""
KEEP = ("proba", "selected")
"""Arrays of the test part that can be kept beside a record: probabilities, selected features."""

FAILURES = {
    "error": "the code raised an exception",
    "diverged": "the model produced numbers that are not finite",
    "timeout": "the run was stopped at its time limit",
    "out_of_memory": "the run was stopped at its memory limit",
    "killed": "the worker process died during the run",
    "missing_data": "the dataset's file is not on this machine",
    "unsupported": "the model cannot handle this dataset",
}
"""Every way a run can fail; `status` of a record is "ok" or one of these."""

FINAL_FAILURES = ("diverged", "unsupported")
"""Failures that would happen again on every machine, so resuming does not retry them."""


class UserError(Exception):
    """Something a user can mend. Printed without a traceback; the message names the remedy."""


class MissingData(UserError):
    """The dataset's file is in none of the places that are looked at."""


Params = Mapping[str, Any]


def canonical(value: Any) -> str:
    """JSON with one spelling per value: sorted keys, no spaces, no NaN."""
    return _ENCODER.encode(value)


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
"""Made once: json.dumps would make one per call."""


def digest(value: Any, length: int = 64) -> str:
    """SHA-256 of a value's canonical JSON, as hexadecimal."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:length]


Folder = NewType("Folder", str)
"""A name that is one step of a path, on every file system: no separators, no dots that lead upward."""
_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.=+-]{0,99}")


def folder_name(text: str) -> Folder:
    """The folder of a name: the name itself where that is possible, else what is left of it and a
    hash, so that different names never share a folder.

    >>> folder_name("svm:kernel=poly"), folder_name("mlp:hidden=../../x")
    ('svm-kernel=poly', 'mlp-hidden=..-..-x-5ee5d97d')
    """
    plain = text.replace(":", "-")
    if _FOLDER.fullmatch(plain) and ".." not in plain:
        return Folder(plain)
    left = re.sub(r"[^A-Za-z0-9_.=+-]+", "-", plain).lstrip(".-")[:80]
    return Folder(f"{left or 'name'}-{digest(text, 8)}")


def _quoted(name: str) -> str:
    """A column's name among others on the command line."""
    odd = "," in name or name.startswith('"')
    return '"' + name.replace('"', '""') + '"' if odd else name


@dataclass(frozen=True)
class DataRef:
    """Which data: a registered dataset with its switches, or a user's own table."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    path: str | None = None
    """Where a user's own table lies. Not part of its identity: `options["sha256"]` is."""
    test_path: str | None = None
    """Where its external test set lies; `options["test"]` is its SHA-256."""

    def to_dict(self) -> dict[str, Any]:
        """As records have it: without the second path where there is none, as in all older ones."""
        paths = {"path": self.path, "test_path": self.test_path}
        kept = {k: v for k, v in paths.items() if v is not None or k == "path"}
        return {"name": self.name, "options": deepcopy(self.options), **kept}

    @property
    def files(self) -> dict[str, tuple[str, str]]:
        """The files of a user's own table: the field with the path -> path and SHA-256."""
        found = {"path": (self.path, "sha256"), "test_path": (self.test_path, "test")}
        return {k: (path, self.options[name]) for k, (path, name) in found.items() if path}

    @property
    def words(self) -> str:
        """The words that name it on the command line, typed in the folder where its files lie."""
        if self.path is None:
            return f"--datasets {shlex.quote(self.label)}"
        paths = [path and PurePath(path).name for path in (self.path, self.test_path)]
        given: dict[str, Any] = {"data": paths[0], **self.options, "test": paths[1]}
        words = []
        for name, value in given.items():
            if value is None or name in ("sha256", "grouping"):  # which nobody asks for
                continue
            words.append(f"--{name.replace('_', '-')}")
            if value is not True:
                text = ",".join(map(_quoted, value)) if isinstance(value, list) else str(value)
                words.append(shlex.quote(text))
        return " ".join(words)

    @property
    def fixed_test(self) -> bool:
        """Whether every run is tested on the same rows, which the user has named."""
        return self.path is not None and bool(self.options.keys() & {"test", "split"})

    @property
    def label(self) -> str:
        """`syn1`, or `syn1:generator=fixed` with a switch; what the command line takes."""
        shown = {} if self.path else self.options
        return ":".join([self.name, *(f"{k}={v}" for k, v in sorted(shown.items()))])

    @property
    def folder(self) -> Folder:
        """One per data: `syn1-fixed`, `patients-1a2b3c4d`."""
        if self.path:
            return folder_name(f"{self.name}-{digest(self.options, 8)}")
        return folder_name(
            "-".join([self.name, *(str(v) for _, v in sorted(self.options.items()))])
        )


@dataclass(frozen=True)
class RunSpec:
    """Everything that determines a result. Small, and JSON on both sides of a process border."""

    model: str
    data: DataRef
    repeat: int
    fold: int
    params: dict[str, Any]
    """The complete settings handed to the model, apart from `random_state`."""
    folds: int = FOLDS
    valid_size: float = VALID_SIZE
    seed: int = SEED
    """What training starts from (see `start`). The splits do not depend on it."""
    revision: int = 1
    """The model's revision in the registry: raised when its code changes results."""

    @cached_property
    def setting(self) -> str:
        """Name of everything but the split: runs that share it are averaged into one cell."""
        # Not asdict(), which copies deeply: this is computed once per record that is read.
        names = [f.name for f in fields(self) if f.name not in ("repeat", "fold")]
        identity = {name: getattr(self, name) for name in names}
        return digest(
            identity | {"data": {"name": self.data.name, "options": self.data.options}}, 8
        )

    @cached_property
    def key(self) -> str:
        """`knn/colon/1a2b3c4d/r0f3`: model, dataset, setting, split. Also the record's path."""
        return f"{self.model}/{self.data.folder}/{self.setting}/r{self.repeat}f{self.fold}"

    @property
    def start(self) -> int:
        """What training starts from: the seed, and where the test rows are always the same another
        one in every run, so that the runs' spread is that of training."""
        return self.seed + (self.repeat * self.folds + self.fold) * self.data.fixed_test

    def to_dict(self) -> dict[str, Any]:
        names = [f.name for f in fields(self)]
        plain = {name: getattr(self, name) for name in names}
        return plain | {"data": self.data.to_dict(), "params": deepcopy(self.params)}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> RunSpec:
        return cls(**{**value, "data": DataRef(**value["data"])})


@dataclass(frozen=True)
class Outcome:
    """What a run leaves behind: its record and, where asked for, arrays to keep beside it."""

    record: dict[str, Any]
    arrays: bytes | None = None
    """A NumPy .npz file's content."""

    @property
    def ok(self) -> bool:
        return bool(self.record["status"] == "ok")


def failed(
    spec: RunSpec, kind: str, message: str, traceback: str = "", meta: Params | None = None
) -> Outcome:
    """The record of a run that did not finish."""
    if kind not in FAILURES:
        raise ValueError(f"kind of failure must be one of {list(FAILURES)}, got {kind!r}")
    return Outcome(
        {
            "schema": SCHEMA,
            "key": spec.key,
            "spec": spec.to_dict(),
            "status": kind,
            "error": {"message": message},
            # Paths and line numbers differ between machines, so a traceback is not compared.
            "meta": {"traceback": traceback, **(meta or {})},
        }
    )


PYTHON = {"True": True, "False": False, "None": None}


def parse_name(text: str) -> tuple[str, dict[str, Any]]:
    """Split `name:key=value:key=value`; values are JSON or Python's True, False and None where they
    parse, text otherwise.

    >>> parse_name("svm:kernel=rbf:C=10:probability=False")
    ('svm', {'kernel': 'rbf', 'C': 10, 'probability': False})
    """
    name, *pairs = text.split(":")
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals and value):
            raise UserError(
                f"Cannot read {pair!r} in {text!r}. Switches are written name:key=value, "
                f"for example svm:kernel=rbf or syn1:generator=fixed."
            )
        try:
            options[key] = PYTHON[value] if value in PYTHON else json.loads(value)
        except (ValueError, RecursionError):
            options[key] = value
        if isinstance(options[key], float) and not math.isfinite(options[key]):
            raise UserError(f"{pair!r} in {text!r}: {value} is not a finite number.")
    return name, options
