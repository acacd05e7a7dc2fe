"""All records as a DataFrame: a folder of one's own over the shipped ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.progress import say
from benchmark.runner.frame import frame_of, row_of
from benchmark.runner.records import Problem, Store
from benchmark.runner.shipped import Shipped, own_folder

if TYPE_CHECKING:
    import pandas as pd


def load_records(results: Path | str | None = None, shipped: bool = True) -> pd.DataFrame:
    """One row per run, of one's own folder and of what ships with the package.

    The folder is where `run` and `rank` write, unless `results` names another. A run that is in both
    is taken from it. Files that are no records are named and left out.
    """
    rows = {row["key"]: row for row in Shipped().rows()} if shipped else {}
    for found in Store(own_folder() if results is None else Path(results)).scan():
        if isinstance(found, Problem):
            say(f"not used: {found}")
        else:
            rows[found["key"]] = row_of(found)
    return frame_of(rows.values())
