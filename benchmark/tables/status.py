"""What has been run: counts, failures with their reasons, and files that are not records."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

from benchmark.data.places import out_of_reach
from benchmark.experiments import timing
from benchmark.progress import say
from benchmark.protocol.choices import EDITION_NAMES
from benchmark.protocol.plan import Protocol
from benchmark.protocol.stored import or_told
from benchmark.runner.costs import Costs, runs_of_search
from benchmark.runner.records import Problem, Store
from benchmark.runner.shipped import store_at
from benchmark.tables.needs import needs, searched_cell, specs_by_edition, timed
from benchmark.tables.recipes import Need
from benchmark.text import first_line, grid

Row = dict[str, Any]
COMPLETE, ABSENT = "complete", "no data"


def counts(results: Path) -> tuple[list[Row], bool]:
    """Records per model and dataset; complete if none failed and no file had to be named."""
    finished: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    settings: dict[tuple[str, str], set[str]] = defaultdict(set)
    messages: dict[tuple[str, str], str] = {}
    complete = True
    for item in Store(results).scan(only=["error"]):
        if isinstance(item, Problem):
            complete = False
            say(f"not a record: {item}")
            continue
        model, folder, setting, _ = item["key"].split("/")
        finished[model, folder][item["status"]] += 1
        settings[model, folder].add(setting)
        if item["status"] != "ok":
            complete = False
            messages.setdefault((model, folder), first_line(item["error"]["message"]))
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
    """What a table needs, per model, dataset and edition, how much of it is there, and what the
    rest costs."""
    store, rows, protocol = store_at(results), [], Protocol()
    costs = Costs(store)
    for need in needs(table):
        away = out_of_reach(need.cell.data)
        for edition, specs in specs_by_edition(need, store, protocol).items():
            if specs is None:
                if edition == "rule" and away:
                    rows.append(_row(need, edition, ABSENT))
                elif edition == "rule":
                    missing = runs_of_search(searched_cell(need), protocol, None, store)
                    seconds = costs.of_runs(need.cell, missing)
                    rows.append(_row(need, edition, "not tuned", seconds))
                continue
            records, _ = store.find([spec.key for spec in specs])
            ok = sum(record["status"] == "ok" for record in records.values())
            if ok == len(specs):
                rows.append(_row(need, edition, COMPLETE))
            elif away:
                rows.append(_row(need, edition, ABSENT))
            else:
                seconds = costs.of_runs(need.cell, len(specs) - ok)
                rows.append(_row(need, edition, f"{ok} of {len(specs)} runs", seconds))
    for cell in timed(table):
        state = COMPLETE if or_told(partial(timing.read, results, cell)) else "not timed"
        rows.append(_row(Need(cell), "", state))
    return rows, all(row["state"] == COMPLETE for row in rows)


def _row(need: Need, edition: str, state: str, seconds: float | None = None) -> Row:
    extra = [f"{name}={value}" for name, value in (need.params or {}).items()]
    model = ":".join([need.cell.model, *extra])
    return {
        "model": model,
        "dataset": need.cell.data.label,
        "edition": edition,
        "state": state,
        "core_hours": None if seconds is None else round(seconds / 3600, 3),
    }


def to_text(rows: list[Row]) -> str:
    if not rows:
        return "No records of your own yet. `python -m benchmark run --models knn --datasets colon` makes 25."
    if "state" not in rows[0]:
        return _listed(rows)
    # What is there needs no list; what is missing stands in the order in which `reproduce` does it.
    missing = [row for row in rows if row["state"] not in (COMPLETE, ABSENT)]
    missing.sort(key=lambda row: (row["core_hours"] is None, row["core_hours"] or 0.0))
    complete = sum(row["state"] == COMPLETE for row in rows)
    parts = [_listed(missing)] if missing else []
    parts.append(f"{complete} of {len(rows)} cells are complete.")
    if hours := sum(row["core_hours"] or 0.0 for row in missing):
        parts.append(
            f"Missing: about {hours:.1f} core-hours, with searches by the paper's rule in full; `reproduce "
            f"--quick` costs less."
        )
    if absent := dict.fromkeys(row["dataset"] for row in rows if row["state"] == ABSENT):
        parts.append(
            f"Not counted, because the data have to be fetched by hand: {', '.join(absent)}."
        )
    return "\n".join(parts)


def _listed(rows: list[Row]) -> str:
    head = list(rows[0])
    return grid([head, *[[_cell(name, row[name]) for name in head] for row in rows]])


def _cell(name: str, value: Any) -> str:
    if name == "edition":
        return EDITION_NAMES.get(value, str(value))
    if isinstance(value, dict):
        return ", ".join(f"{n} {kind}" for kind, n in value.items()) or "-"
    if isinstance(value, float):
        return f"{value:.2f}" if not 0 < value < 0.005 else "< 0.01"
    return "-" if value is None else str(value)
