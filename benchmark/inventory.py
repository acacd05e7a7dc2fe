"""What has been run: counts, failures with their reasons, and files that are not records."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from benchmark import timing
from benchmark.needs import Need, needs, specs_by_edition, timed
from benchmark.plan import Protocol
from benchmark.progress import say
from benchmark.store import Problem, Store
from benchmark.summary import grid

Row = dict[str, Any]


def counts(results: Path) -> tuple[list[Row], bool]:
    """Records per model and dataset; complete if none failed and no file had to be named."""
    finished: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    settings: dict[tuple[str, str], set[str]] = defaultdict(set)
    messages: dict[tuple[str, str], str] = {}
    complete = True
    for item in Store(results).scan():
        if isinstance(item, Problem):
            complete = False
            say(f"not a record: {item}")
            continue
        model, folder, setting, _ = item["key"].split("/")
        finished[model, folder][item["status"]] += 1
        settings[model, folder].add(setting)
        if item["status"] != "ok":
            complete = False
            messages.setdefault((model, folder), item["error"]["message"].splitlines()[0])
    rows = [
        {
            "model": model,
            "dataset": folder,
            "settings": len(settings[model, folder]),
            "ok": count["ok"],
            "failed": {kind: n for kind, n in sorted(count.items()) if kind != "ok"},
            "first_failure": messages.get((model, folder)),
        }
        for (model, folder), count in sorted(finished.items())
    ]
    return rows, complete


def needed(table: str, results: Path) -> tuple[list[Row], bool]:
    """What a table needs, per model, dataset and edition, and how much of it is there."""
    store, rows = Store(results), []
    for need in needs(table):
        for edition, specs in specs_by_edition(need, results, Protocol()).items():
            if specs is None:
                if edition == "prescribed":
                    rows.append(_row(need, edition, "not tuned"))
                continue
            records, _ = store.find([spec.key for spec in specs])
            ok = sum(record["status"] == "ok" for record in records.values())
            state = "complete" if ok == len(specs) else f"{ok} of {len(specs)} runs"
            rows.append(_row(need, edition, state))
    for cell in timed(table):
        state = "complete" if timing.read(results, cell) else "not timed"
        rows.append(_row(Need(cell), "", state))
    return rows, all(row["state"] == "complete" for row in rows)


def _row(need: Need, edition: str, state: str) -> Row:
    extra = [f"{name}={value}" for name, value in (need.params or {}).items()]
    model = ":".join([need.cell.model, *extra])
    return {"model": model, "dataset": need.cell.data.label, "edition": edition, "state": state}


def to_text(rows: list[Row]) -> str:
    if not rows:
        return "No records yet. `python -m benchmark run --models knn --datasets colon` makes 25."
    head = list(rows[0])
    return grid([head, *[[_cell(row[name]) for name in head] for row in rows]])


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{n} {kind}" for kind, n in value.items()) or "-"
    return "-" if value is None else str(value)
