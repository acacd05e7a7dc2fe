"""What `run` and `tune` print: one line per model and dataset."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmark.protocol.spec import RunSpec
from benchmark.text import grid, mean_std

COLUMNS = ("model", "dataset", "settings", "runs", "balanced_accuracy", "std", "selected_features")

Row = dict[str, Any]


def summarise(
    model: str,
    dataset: str,
    params: Mapping[str, Any],
    specs: Sequence[RunSpec],
    records: Mapping[str, Any],
) -> Row:
    """Mean and sample standard deviation of the test score over the runs of one setting, in percent."""
    good = [r for s in specs if (r := records.get(s.key)) and r["status"] == "ok"]
    scores = [100 * r["scores"]["test"]["balanced_accuracy"] for r in good]
    counts = [r["selection"]["mean"] for r in good if r["selection"]]
    return {
        "model": model,
        "dataset": dataset,
        "settings": " ".join(f"{k}={v}" for k, v in params.items()) or "default",
        "runs": len(good),
        "planned": len(specs),
        "balanced_accuracy": statistics.fmean(scores) if scores else None,
        "std": statistics.stdev(scores) if len(scores) > 1 else None,
        "selected_features": statistics.fmean(counts) if counts else None,
    }


def to_json(rows: Sequence[Row]) -> str:
    return json.dumps(list(rows), indent=1)


def to_csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def to_markdown(rows: Sequence[Row]) -> str:
    """A table that reads well in a terminal and renders on the web."""
    head = ["model", "dataset", "settings", "runs", "balanced accuracy %", "features"]
    body = [
        [
            row["model"],
            row["dataset"],
            row["settings"],
            str(row["runs"])
            if row["runs"] == row["planned"]
            else f"{row['runs']} of {row['planned']}",
            mean_std(row["balanced_accuracy"], row["std"]),
            "-" if row["selected_features"] is None else f"{row['selected_features']:.1f}",
        ]
        for row in rows
    ]
    return grid([head, *body])


FORMATS = {"md": to_markdown, "csv": to_csv, "json": to_json}
