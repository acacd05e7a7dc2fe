"""The records that travel with the package, so that comparing with the 17 methods needs no clone.

Two files beside this one: every shipped record as a row (`frame.py`), and every choice of settings.
`python -m benchmark.runner.shipped` writes them from results/; `make reports` does so, too.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import benchmark
from benchmark.protocol.choices import Choice, choice_path
from benchmark.protocol.plan import Cell
from benchmark.runner import frame
from benchmark.runner.records import Problem, Store
from benchmark.shapes import fit, parse

FOLDER = "shipped"
RECORDS, CHOICES = "records.parquet", "choices.parquet"


def own_folder() -> Path:
    """Where one's own records go unless a folder is named: `results`, but not the project's own."""
    ours = Path(benchmark.__file__).resolve().parent.parent / "results"
    return OWN if Path("results").resolve() == ours else Path("results")


OWN = Path("own-results")


def store_at(results: Path, remember: bool = False) -> Store:
    """The records of a folder. Whoever has the package and no checkout has its records, too, below
    those of their `results`; a folder of another name stands alone."""
    at_home = results == Path("results") and own_folder() == results
    return Store(results, remember, Shipped() if at_home else None)


class Shipped:
    """The shipped records and choices, read once and looked up by key."""

    def record(self, key: str) -> dict[str, Any] | None:
        row = _rows().get(key)
        return None if row is None else frame.record_of(row)

    def choice(self, cell: Cell) -> Choice | None:
        text = _choices().get(choice_path(Path(), cell).as_posix())
        return None if text is None else fit(Choice, parse(text.encode()))

    def datasets(self, model: str) -> set[str]:
        return {data for name, _, data in (f.partition("/") for f in _settings()) if name == model}

    def settings(self, folder: str) -> set[str]:
        return set(_settings().get(folder, {}))

    def last(self, setting: str) -> dict[str, Any] | None:
        folder, _, name = setting.rpartition("/")
        key = _settings().get(folder, {}).get(name)
        return self.record(key) if key else None

    def records(self) -> Iterator[dict[str, Any]]:
        return map(frame.record_of, _rows().values())

    def rows(self) -> list[dict[str, Any]]:
        return list(_rows().values())


def _read(name: str) -> Any:
    import pandas as pd

    content = files("benchmark.runner").joinpath(f"{FOLDER}/{name}").read_bytes()
    return pd.read_parquet(io.BytesIO(content))


@cache
def _rows() -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in frame.rows_of(_read(RECORDS))}


@cache
def _settings() -> dict[str, dict[str, str]]:
    """`MODEL/DATASET` -> setting -> the key of its last split."""
    found: dict[str, dict[str, str]] = {}
    for key in sorted(_rows()):
        model, data, setting, _ = key.split("/")
        found.setdefault(f"{model}/{data}", {})[setting] = key
    return found


@cache
def _choices() -> dict[str, str]:
    found = _read(CHOICES)
    return dict(zip(found["path"], found["choice"], strict=True))


def write(results: Path, folder: Path) -> list[Path]:
    """Make both files from a folder of records; the same records give the same bytes."""
    import pandas as pd

    records = [record for record in Store(results).scan() if not isinstance(record, Problem)]
    paths = sorted((results / "choices").rglob("*.json"))
    choices = [
        {"path": path.relative_to(results).as_posix(), "choice": _choice_text(path)}
        for path in paths
    ]
    made = {RECORDS: frame.frame_of(map(frame.row_of, records)), CHOICES: pd.DataFrame(choices)}
    for name, table in made.items():
        frame.write(table, folder / name)
    return [folder / name for name in made]


def _choice_text(path: Path) -> str:
    from benchmark.files import read_whole

    return json.dumps(asdict(fit(Choice, parse(read_whole(path)))), separators=(",", ":"))


if __name__ == "__main__":
    for path in write(Path("results"), Path(str(files("benchmark.runner"))) / FOLDER):
        print(path, f"{path.stat().st_size / 1000:.0f} kB")
