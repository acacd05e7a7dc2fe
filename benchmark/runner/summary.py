"""What `run` and `tune` print: one line per model and dataset."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmark.protocol.spec import METRICS, RunSpec
from benchmark.text import csv_text, grid, mean_std

Row = dict[str, Any]


def summarise(
    model: str,
    dataset: str,
    params: Mapping[str, Any],
    specs: Sequence[RunSpec],
    records: Mapping[str, Any],
    metric: str = "balanced_accuracy",
) -> Row:
    """Mean and sample standard deviation of the test score over the runs of one setting, in percent.

    AUROC may be undefined in some runs; then it has no mean.
    """
    good = [r for s in specs if (r := records.get(s.key)) and r["status"] == "ok"]
    found = [r["scores"]["test"].get(metric) for r in good]
    scores = [] if None in found else [100 * score for score in found]
    counts = [r["selection"]["mean"] for r in good if r["selection"]]
    return {
        "model": model,
        "dataset": dataset,
        "settings": " ".join(f"{k}={v}" for k, v in params.items()) or "default",
        "runs": len(good),
        "planned": len(specs),
        metric: statistics.fmean(scores) if scores else None,
        "std": statistics.stdev(scores) if len(scores) > 1 else None,
        "selected_features": statistics.fmean(counts) if counts else None,
        "features": good[0]["data"]["shape"][1] if good else None,
    }


NEARLY_ALL = 0.9
"""Of the features: who selects so many selects none."""


def unselective(selected: float | None, features: int | None, spec: RunSpec) -> str:
    """A sentence where a model keeps nearly every feature, so that their number is no selection."""
    if selected is None or not features or selected <= NEARLY_ALL * features:
        return ""
    settings = ", ".join(f"{k}={v}" for k, v in spec.params.items()) or "its defaults"
    return (
        f"{spec.model} on {spec.data.label} keeps {selected:.1f} of {features} features with {settings}: "
        f"that is no selection. Other settings select, such as a stronger penalty; `python -m benchmark "
        f"tune` chooses by validation score, which may not ask for fewer features."
    )


def _metric(row: Row) -> str:
    return next(name for name in METRICS if name in row)


def to_json(rows: Sequence[Row]) -> str:
    return json.dumps(list(rows), indent=1)


def to_csv(rows: Sequence[Row]) -> str:
    score = _metric(rows[0])
    columns = ["model", "dataset", "settings", "runs", score, "std", "selected_features"]
    return csv_text(columns, [[row[name] for name in columns] for row in rows])


def to_markdown(rows: Sequence[Row]) -> str:
    """A table that reads well in a terminal and renders on the web."""
    score = _metric(rows[0])
    head = ["model", "dataset", "settings", "runs", f"{METRICS[score]} %", "features"]
    body = [
        [
            row["model"],
            row["dataset"],
            row["settings"],
            str(row["runs"])
            if row["runs"] == row["planned"]
            else f"{row['runs']} of {row['planned']}",
            mean_std(row[score], row["std"]),
            "-" if row["selected_features"] is None else f"{row['selected_features']:.1f}",
        ]
        for row in rows
    ]
    return grid([head, *body])


FORMATS = {"md": to_markdown, "csv": to_csv, "json": to_json}
