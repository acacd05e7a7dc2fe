"""Records as one table: a row per run, for pandas and for whoever has no use for thousands of files."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.files import write_atomic
from benchmark.protocol.spec import METRICS, PARTS, SCHEMA, DataRef, RunSpec, UserError, canonical

if TYPE_CHECKING:
    import pandas as pd

SELECTED = {
    "mean": "selected_features",
    "std": "selected_std",
    "local_sparsity": "local_sparsity",
}
"""What a record's selection holds -> its column; the rest of it is one column of JSON."""

FACTS = ("best_step", "globally_selected")
"""What a row keeps of a model's own report as one column of JSON: what figures and the register of
discrepancies read. `constant_mask`, which tables read, has a column of its own; the rest is left out."""

_SPEC = ("model", "repeat", "fold", "folds", "valid_size", "seed", "revision")


def row_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record's row: what was run, what came of it, and which data and rows it saw.

    The place of an own table on this machine is left out, as are curves and the machine.
    """
    spec, data = record["spec"], record.get("data", {})
    selection, facts = record.get("selection") or {}, record.get("model") or {}
    row: dict[str, Any] = {"key": record["key"], "dataset": DataRef(**spec["data"]).label}
    row |= {name: spec[name] for name in _SPEC}
    row |= {
        "setting": record["key"].split("/")[2],
        "params": canonical(spec["params"]),
        "data": canonical({name: spec["data"][name] for name in ("name", "options")}),
        "status": record["status"],
        "error": record.get("error", {}).get("message"),
    }
    for part in reversed(PARTS):
        scores = record.get("scores", {}).get(part, {})
        row |= {f"{part}_{metric}": scores.get(metric) for metric in METRICS}
    return row | {
        **{column: selection.get(name) for name, column in SELECTED.items()},
        "selection": canonical({n: v for n, v in selection.items() if n not in SELECTED}),
        "also": canonical(record.get("also") or {}),
        "transfer": canonical(record.get("transfer")),
        "constant_mask": facts.get("constant_mask"),
        "facts": canonical({name: facts[name] for name in FACTS if name in facts}),
        "n_samples": data.get("shape", [None, None])[0],
        "n_features": data.get("shape", [None, None])[1],
        "n_classes": data.get("classes"),
        "data_sha256": data.get("sha256"),
        "derived": data.get("derived"),
        "split_sha256": record.get("split", {}).get("sha256"),
        "seconds": record.get("meta", {}).get("seconds", {}).get("total"),
    }


def record_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The record behind a row, with what a row keeps: scores, data, the selection."""
    spec = RunSpec(
        data=DataRef(**json.loads(row["data"])),
        params=json.loads(row["params"]),
        **{name: row[name] for name in _SPEC},
    )
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "key": row["key"],
        "spec": spec.to_dict(),
        "status": row["status"],
        "meta": {"seconds": {"total": row["seconds"]}},
    }
    if row["status"] != "ok":
        return record | {"error": {"message": row["error"] or ""}}
    chosen = {name: row[column] for name, column in SELECTED.items()}
    chosen |= json.loads(row["selection"])
    return record | {
        "data": {
            "sha256": row["data_sha256"],
            "shape": [row["n_samples"], row["n_features"]],
            "classes": row["n_classes"],
        }
        # Other patients than the paper's: tables give such a run no verdict.
        | ({"derived": True} if row["derived"] else {}),
        "split": {"sha256": row["split_sha256"]},
        "scores": {part: {m: row[f"{part}_{m}"] for m in METRICS} for part in PARTS},
        "also": json.loads(row["also"]),
        "selection": None if chosen["mean"] is None else chosen,
        "transfer": json.loads(row["transfer"]),
        "model": json.loads(row["facts"]) | {"constant_mask": row["constant_mask"]},
    }


TEXTS = (
    "key", "dataset", "model", "setting", "params", "data", "status", "error",
    "selection", "also", "transfer", "facts", "data_sha256", "split_sha256",
)  # fmt: skip
WHOLE = ("repeat", "fold", "folds", "seed", "revision", "n_samples", "n_features", "n_classes")
"""Columns of whole numbers, of which some may be missing."""
TRUTHS = ("constant_mask", "derived")


def frame_of(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Rows as a DataFrame, in the order of their keys."""
    import pandas as pd

    frame = pd.DataFrame(sorted(rows, key=lambda row: str(row["key"])), columns=_columns())
    types = dict.fromkeys(WHOLE, "Int64") | dict.fromkeys(TRUTHS, "boolean")
    types |= dict.fromkeys(TEXTS, "string")
    return frame.astype({name: types.get(name, "float64") for name in frame.columns})


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows behind a frame, with None for what is missing, be it a column that came later."""
    whole = frame.reindex(columns=_columns())
    plain = whole.astype(object).where(whole.notna(), None)
    return [{str(k): v for k, v in row.items()} for row in plain.to_dict("records")]


EMPTY: dict[str, Any] = {
    "key": "//", "status": "", "spec": dict.fromkeys(_SPEC) | {"params": {}, "data": {"name": "", "options": {}}},
}  # fmt: skip
"""A record of nothing, for the names of the columns."""


def _columns() -> list[str]:
    return list(row_of(EMPTY))


def check_ending(path: Path) -> None:
    """Before anything is read: is it a form that `write` knows?"""
    if path.suffix not in (".parquet", ".csv", ".json"):
        raise UserError(
            f"{path} ends in {path.suffix or 'nothing'}; records are written as .parquet, .csv or .json."
        )


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write a table as its ending says."""
    check_ending(path)
    if path.suffix == ".parquet":
        content = io.BytesIO()
        frame.to_parquet(content, index=False, compression="zstd")
        write_atomic(path, content.getvalue())
        return
    text = frame.to_csv(index=False) if path.suffix == ".csv" else frame.to_json(orient="records")
    write_atomic(path, text.encode())
