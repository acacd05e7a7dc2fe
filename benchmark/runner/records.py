"""Records on disk: one JSON file per run. A file that exists is complete.

There is one writer, the parent process, and every write is a rename, so killing it at any
moment leaves whole records only. Each record carries a checksum of its own content: a file that
was cut, edited or put there by something else is named and set aside, never used and never lost.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from benchmark.files import Unreadable, read_whole, remove_unfinished, set_aside, write_atomic
from benchmark.progress import say
from benchmark.protocol.choices import Choice, Setting, read_choice, resolve
from benchmark.protocol.plan import Cell
from benchmark.protocol.record import checked
from benchmark.protocol.registry import find_model
from benchmark.protocol.spec import SCHEMA, DataRef, Outcome, UserError, canonical, digest
from benchmark.runner import arrays
from benchmark.runner.machine import own_source
from benchmark.shapes import Misshapen, fit, parse

T = TypeVar("T")

_KEY = re.compile(r"[^/]+/[^/]+/[0-9a-f]{8}/r\d+f\d+")
WRITERS = 8
"""Records that are written side by side; a disk confirms them in little more than the time of one."""
REQUIRED = ("schema", "key", "spec", "status")
"""Fields of every record."""


@dataclass(frozen=True)
class Problem:
    """A file in the results folder that is not a usable record, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class NotARecord(Exception):
    """The file's content is not a record of this project; the message says why."""


def encode(record: dict[str, Any]) -> bytes:
    """A record as text: one line per field, so that two records can be compared by eye."""
    sealed = {**record, "checksum": _checksum(record)}
    lines = [f"{json.dumps(key)}: {canonical(value)}" for key, value in sealed.items()]
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def decode(
    content: bytes, only: Sequence[str] | None = None, shape: type[Any] = dict[str, Any]
) -> dict[str, Any]:
    """Read a record's text; raise NotARecord with the reason when it is not one.

    With `only`, just these fields and the required ones are read where the text is as `encode`
    writes it. The checksum is always that of the whole.
    """
    lines = content[2:-3].split(b",\n")
    sealed = content[:2] == b"{\n" and content[-3:] == b"\n}\n" and _sealed(lines)
    if sealed and only is not None:
        wanted = tuple(f'"{name}":'.encode() for name in (*REQUIRED, *only))
        lines = [line for line in lines if line.startswith(wanted)]
        content = b"{" + b",".join(lines) + b"}"
    try:
        record = parse(content)
    except Misshapen as error:
        raise NotARecord(error.problem) from error
    if not isinstance(record, dict) or not set(REQUIRED) <= record.keys():
        raise NotARecord("is not a record of this benchmark")
    if record["schema"] != SCHEMA:
        newer = isinstance(record["schema"], int) and record["schema"] > SCHEMA
        remedy = "update this project to read it" if newer else "run it again to renew it"
        found = str(record["schema"])[:40]
        raise NotARecord(f"has record format {found}, expected {SCHEMA}; {remedy}")
    checksum = record.pop("checksum", None)
    try:
        if not sealed and checksum != _checksum(record):
            raise NotARecord("does not match its own checksum: its content was changed or damaged")
        fitting: dict[str, Any] = fit(shape, record)
        return fitting
    except (Misshapen, RecursionError) as error:
        raise NotARecord(f"is not a record of this benchmark: {error}") from error


def _checksum(record: dict[str, Any]) -> str:
    return digest(record, 16)


def _sealed(lines: Sequence[bytes]) -> bool:
    """Whether the lines of `encode` end with the checksum of those before it.

    They are canonical already, so this is `_checksum` without reading them. Of a text in another
    form nothing is known, and the record itself has to be asked.
    """
    parts = sorted(line.replace(b": ", b":", 1) for line in lines[:-1])
    checksum = hashlib.sha256(b"{" + b",".join(parts) + b"}").hexdigest()[:16]
    return lines[-1] == f'"checksum": "{checksum}"'.encode()


class Below(Protocol):
    """Records and choices that are looked up where a store has none: those of the package."""

    def record(self, key: str) -> dict[str, Any] | None: ...

    def choice(self, cell: Cell) -> Choice | None: ...

    def datasets(self, model: str) -> set[str]: ...

    def settings(self, folder: str) -> set[str]: ...

    def last(self, setting: str) -> dict[str, Any] | None: ...

    def records(self) -> Iterable[dict[str, Any]]: ...


class Store:
    """The records below one results folder, and the choices beside them.

    With `below`, the folder lies over other records, which are read and never written. One that
    remembers reads every file once and builds every table once. It is for those who read
    the same again and again, change none of it and leave the folder alone meanwhile.
    """

    def __init__(self, root: Path, remember: bool = False, below: Below | None = None) -> None:
        self.root = root
        self.below = below
        self.runs = root / "runs"
        self._records: dict[str, dict[str, Any]] | None = {} if remember else None
        self._made: dict[Any, Any] | None = {} if remember else None

    def once(self, name: Any, make: Callable[[], T]) -> T:
        """What `make` gives; a store that remembers asks it only the first time for a name."""
        if self._made is None:
            return make()
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made

    def choice(self, cell: Cell) -> Choice | None:
        """The choice that tuning wrote for this cell, or None if it was never tuned."""
        place = cell.model, cell.data.folder
        return self.once(("choice", *place), lambda: self._choice(cell))

    def _choice(self, cell: Cell) -> Choice | None:
        found = read_choice(self.root, cell)
        return found if found is not None or self.below is None else self.below.choice(cell)

    def setting(self, cell: Cell, *sources: str) -> Setting | None:
        """The settings that a cell stands for: `benchmark.protocol.choices.resolve`."""
        return resolve(self.choice, cell, *sources)

    def datasets(self, model: str) -> list[str]:
        """The folder of every dataset on which a model has records."""
        return sorted(
            _names(self.runs / model) | (self.below.datasets(model) if self.below else set())
        )

    def settings(self, folder: str) -> list[str]:
        """Every setting that has a folder of records, of one `MODEL/DATASET`."""
        return sorted(
            _names(self.runs / folder) | (self.below.settings(folder) if self.below else set())
        )

    def last(self, setting: str) -> dict[str, Any] | None:
        """The record of the last split that a `MODEL/DATASET/SETTING` has one of."""
        for path in sorted((self.runs / setting).glob("r*f*.json"), reverse=True)[:1]:
            try:
                return self.load(path)
            except (NotARecord, OSError):
                return None  # `status` names it
        return self.below.last(setting) if self.below else None

    def has(self, key: str) -> bool:
        """Whether there is a file or a record of a run, whole or not."""
        beneath = self.below is not None and self.below.record(key) is not None
        return self.path(key).exists() or beneath

    @property
    def empty(self) -> bool:
        """Whether it has no file of a record, whole or damaged."""
        return self.below is None and next(_files(str(self.runs)), None) is None

    def path(self, key: str) -> Path:
        return self.runs / f"{key}.json"

    def arrays_path(self, key: str) -> Path:
        return self.runs / f"{key}.npz"

    def load(self, path: Path) -> dict[str, Any]:
        """Read one record file; NotARecord says what is wrong with it."""
        return self._read(path, "/".join(path.absolute().with_suffix("").parts[-4:]))

    def _read(
        self, path: Path | str, place: str, only: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """The record, if it is what it says it is and lies where it belongs."""
        try:
            record = checked(decode(read_whole(path), only), only)
        except Unreadable as error:
            raise NotARecord(str(error)) from error
        except (Misshapen, RecursionError) as error:
            raise NotARecord(f"is not a record of this benchmark: {error}") from error
        if place != record["key"]:
            raise NotARecord(f"belongs at {self.path(record['key'])}")
        return record

    def read(self, path: Path) -> dict[str, Any] | Problem:
        """One record file, or why it is none."""
        try:
            return self.load(path)
        except (NotARecord, OSError) as error:
            return Problem(path, str(error))

    def find(
        self, keys: Sequence[str], only: Sequence[str] | None = None
    ) -> tuple[dict[str, dict[str, Any]], list[Problem]]:
        """Of the planned keys, the records that exist, in that order; and the files that are not records.

        With `only`, they have at least these fields, which is faster, and are not remembered.
        """
        records, problems = {}, []
        settings: dict[str, bool] = {}
        for key in keys:
            # Most settings of a grid that nobody has searched yet have no folder: one look for all.
            setting = key.rpartition("/")[0]
            if setting not in settings:
                settings[setting] = (self.runs / setting).is_dir()
            if not settings[setting]:
                continue
            try:
                records[key] = self._known(key, only)
            except FileNotFoundError:
                continue
            except (NotARecord, OSError) as error:
                problems.append(Problem(self.path(key), str(error)))
        if self.below is not None:
            beneath = {key: self.below.record(key) for key in keys if key not in records}
            records |= {key: record for key, record in beneath.items() if record is not None}
        return {key: records[key] for key in keys if key in records}, problems

    def ok(self, key: str) -> dict[str, Any] | None:
        """The record of a run that succeeded, if there is one."""
        record = self.find([key])[0].get(key)
        return record if record and record["status"] == "ok" else None

    def _known(self, key: str, only: Sequence[str] | None) -> dict[str, Any]:
        """The record of a key, from memory where it was read before."""
        if self._records is not None and key in self._records:
            return self._records[key]
        if only is not None:
            return self._read(self.path(key), key, only)
        record = self.load(self.path(key))
        if self._records is not None:
            self._records[key] = record
        return record

    def scan(self, only: Sequence[str] | None = None) -> Iterator[dict[str, Any] | Problem]:
        """Every file of the folder, in order: a record, or a problem with its reason.

        With `only`, records have at least these fields, and reading is faster. Nothing of a scan
        is remembered: it would be everything.
        """
        for path in _files(str(self.runs)):
            name = path.rpartition("/")[2]
            if name.endswith(".npz") or (name.startswith(".") and name.endswith(".tmp")):
                continue  # arrays; or the unfinished write of a run that was killed, see `tidy`
            key = path[len(str(self.runs)) + 1 :].removesuffix(".json")
            if not (name.endswith(".json") and _KEY.fullmatch(key)):
                yield Problem(Path(path), "is not where or what a record is")
                continue
            if self._records and key in self._records:
                yield self._records[key]
                continue
            try:
                yield self._read(path, key, only)
            except (NotARecord, OSError) as error:
                yield Problem(Path(path), str(error))

    def write(self, outcome: Outcome) -> Path:
        """Keep an outcome: arrays first, the record last, because the record says it is done."""
        key = outcome.record["key"]
        if self.arrays_path(key).is_dir():  # which no file can replace
            set_aside(self.root, self.arrays_path(key))
        if outcome.arrays is not None:
            write_atomic(self.arrays_path(key), outcome.arrays)
        write_atomic(self.path(key), encode(outcome.record))
        if outcome.arrays is None:
            # Arrays of an earlier run of the same key are not this run's.
            self.arrays_path(key).unlink(missing_ok=True)
        return self.path(key)

    def write_all(self, outcomes: Sequence[Outcome]) -> None:
        """Keep several outcomes. Each is as safe as alone, but they wait for the disk together."""
        with ThreadPoolExecutor(min(WRITERS, len(outcomes)) or 1) as pool:
            for _ in pool.map(self.write, outcomes):
                pass  # an error of any of them is raised here

    def arrays(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The arrays beside a record, by name; Unreadable says why they cannot be used."""
        return arrays.read(self.arrays_path(record["key"]), record)

    def kept(self, key: str) -> dict[str, Any]:
        """For readers: the arrays of a run that succeeded. What is damaged is named and counts as
        absent."""
        record = self.ok(key)
        try:
            return {} if record is None else self.arrays(record)
        except Unreadable as error:
            say(f"not used: {self.arrays_path(key)} {error}.")
            return {}

    def set_aside(self, problem: Problem) -> Path:
        """Move a file that is not a record out of the way, keeping its content."""
        return set_aside(self.root, problem.path)

    def tidy(self) -> None:
        """Remove the unfinished writes that killed processes of this machine left behind."""
        remove_unfinished(self.root)

    def resolve(self, text: str) -> list[Path]:
        """The records named by a file, a key, or a folder of them."""
        for path in (Path(text), self.path(text), self.runs / text):
            if path.is_file():
                return [path]
            if path.is_dir():
                found = sorted(path.rglob("r*f*.json"))
                if not found:
                    raise UserError(f"The folder {path} holds no records.")
                return found
        raise UserError(
            f"No record {text!r}: neither a file nor a key below {self.runs}. "
            f"Keys look like knn/colon/1a2b3c4d/r0f3."
        )


def _names(folder: Path) -> set[str]:
    return {place.name for place in folder.iterdir()} if folder.is_dir() else set()


def _files(folder: str) -> Iterator[str]:
    """All files below a folder in the order of their names, without a question per file."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        if entry.name.endswith(".json") or not _is_folder(entry):  # whatever is in a record's place
            yield f"{folder}/{entry.name}"
        elif not entry.is_symlink():  # which may lead in circles
            yield from _files(f"{folder}/{entry.name}")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link that leads to itself


def outdated(record: Mapping[str, Any]) -> bool:
    """Whether an own model's file was another one when this was run."""
    made = record.get("meta", {}).get("model_source")
    entry = find_model(record["spec"]["model"]) if made else None
    return entry is not None and own_source(entry) not in (None, made)


def refuse_mixed(records: Iterable[dict[str, Any]]) -> None:
    """Raise if runs on one dataset saw different data, or different rows on one split."""
    seen: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record["status"] != "ok":
            continue
        label = DataRef(**record["spec"]["data"]).label
        split = f"{label}, repeat {record['spec']['repeat']}, fold {record['spec']['fold']}"
        seen[label, "data"][record["data"]["sha256"]].append(record["key"])
        seen[split, "splits"][record["split"]["sha256"]].append(record["key"])
    for (where, what), groups in seen.items():
        if len(groups) > 1:
            raise UserError(_mixed(where, what, groups))


def _mixed(where: str, what: str, groups: Mapping[str, list[str]]) -> str:
    ordered = sorted(groups.items(), key=lambda item: -len(set(item[1])))
    lines = [
        f"  {len(set(keys))} with {what} {sha[:12]}: {', '.join(sorted(set(keys))[:3])}"
        + (", ..." if len(set(keys)) > 3 else "")
        for sha, keys in ordered
    ]
    models = sorted({key.split("/")[0] for _, keys in ordered[1:] for key in keys})
    dataset = where.split(",")[0]
    return (
        f"Records on {where} were made with different {what}, so they cannot be compared:\n"
        + "\n".join(lines)
        + f"\nDecide which is right and do the others again, for example\n"
        f"  python -m benchmark run --models {','.join(models)} --datasets {dataset} --force"
    )
