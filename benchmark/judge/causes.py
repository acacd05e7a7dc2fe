"""Why a cell differs from print: a cause with its evidence, or everything that was tried in vain.

The evidence is in the records. Beside the setting that a cell stands for, others were run on the same
splits: the rest of the grid, other seeds, the switches of the register of discrepancies. Each of them
is held against the printed cell. What no record can tell (a count that the paper takes in another way)
is written down in paper/causes.toml.
"""

from __future__ import annotations

import csv
import io
import json
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from benchmark.experiments import fingerprint
from benchmark.judge import discrepancies
from benchmark.judge.audit.findings import label, printed, table_name
from benchmark.judge.cells import ledger
from benchmark.judge.cells.ledger import Line
from benchmark.judge.cells.render import shown_value
from benchmark.paper import Printed
from benchmark.protocol.plan import Cell, keys_of
from benchmark.protocol.spec import folder_name
from benchmark.runner.records import Store
from benchmark.tables import pairing
from benchmark.tables.build import build_from
from benchmark.tables.measured import beside
from benchmark.tables.recipes import Metric, Record, catalogue, follow
from benchmark.tables.statistics import RUNS, corrected_resampled_t, mean_std
from benchmark.tables.table import Result, Table
from benchmark.text import grid
from benchmark.text import mean_std as shown

RECOVERED = "recovered setting"
VERSION = "library or data version"
INCONSISTENT = "paper inconsistent"
DEVIATION = "documented deviation"
NOISE = "search noise"
UNEXPLAINED = "tried and unexplained"
NONE = "no cause yet"
KINDS = (RECOVERED, VERSION, INCONSISTENT, DEVIATION, NOISE, UNEXPLAINED, NONE)

FEWEST = 5
"""Runs that a setting needs to be held against a printed cell."""
NOT_WORSE = 0.05
"""Validation cannot tell a setting from the chosen one if the test between them has a p above this."""
AGREES = ("equal", "equivalent")
FIELDS = ("scores", "selection", "also")
"""Of a record, where the numbers of printed cells are."""


@dataclass(frozen=True)
class Tried:
    """Another setting on the same data, beside the printed cell."""

    changed: str
    """What differs from the setting that the cell stands for: `max_depth=2 learning_rate=0.01`."""
    kind: str
    """grid | seed | switch | data"""
    mean: float
    std: float | None
    n: int
    word: str
    """The verdict on it."""
    worse: float | None = None
    """p of "validation tells it from the chosen setting"; None where they share no runs."""

    @property
    def a_draw(self) -> bool:
        """Whether nothing but chance prefers the chosen setting."""
        return self.kind == "seed" or (
            self.kind == "grid" and self.worse is not None and self.worse >= NOT_WORSE
        )

    def text(self, decimals: int) -> str:
        runs = "" if self.n == RUNS else f" on {self.n} splits"
        return f"{self.changed}: {shown(self.mean, self.std, decimals)}{runs}, {self.word}"


@dataclass(frozen=True)
class Cause:
    """Why a printed cell and ours differ."""

    line: Line
    kind: str
    text: str
    tried: tuple[Tried, ...] = ()
    register: str = ""
    """The entry of the register of discrepancies that it belongs to."""


def build(results: Path, tables: Sequence[int] | None = None) -> list[Cause]:
    """A cause for every cell that differs by the paper's rule, in the paper's order."""
    store = Store(results, remember=True)
    return causes(store, ledger.lines(store, tables))


def causes(store: Store, lines: Sequence[Line]) -> list[Cause]:
    different = [line for line in lines if line.ours["rule"].verdict.word == "different"]
    found = {_place(line): cause for line in different if (cause := _direct(line, store))}
    return [found.get(_place(line)) or _derived(line, found) for line in different]


def _place(line: Line) -> tuple[int, str, str, str]:
    cell = line.printed
    return cell.table, cell.method, cell.dataset, cell.metric


# A cell that was measured ------------------------------------------------------------------------


def _direct(line: Line, store: Store) -> Cause | None:
    """The cause of a cell; None if it is computed from others."""
    cell = line.printed
    table = build_from(store, f"table{cell.table}")
    result = table.results.get((cell.method, cell.dataset, cell.metric, "rule"))
    tried = _tried(table, result, store) if result else ()
    written = _written(cell)
    recovered = line.ours.get("recovered")
    if recovered and recovered.verdict.word == "equal":
        setting = table.results[cell.method, cell.dataset, cell.metric, "recovered"].params or {}
        chosen = (result.params if result else None) or {}
        return Cause(
            line, RECOVERED, f"{_changes(chosen, setting)} gives every printed digit", tried
        )
    if written:
        text = written["text"] + _shown_rows(written.get("rows", ()), cell.metric, store)
        return Cause(line, written["kind"], text, tried, written.get("register", ""))
    if result is None or not result.setting:
        return None
    return _from_runs(line, result, tried)


def _from_runs(line: Line, result: Result, tried: tuple[Tried, ...]) -> Cause:
    """What other runs on the same splits say."""
    decimals = line.ours["rule"].decimals
    for one in (t for t in tried if t.word in AGREES and t.kind == "switch"):
        return Cause(line, DEVIATION, f"with {one.text(decimals)}", tried, _registered(one, result))
    for one in (t for t in tried if t.word in AGREES and t.a_draw):
        why = "another seed" if one.kind == "seed" else _draw(one)
        return Cause(line, NOISE, f"{one.text(decimals)}; {why}", tried)
    for one in (t for t in tried if t.word in AGREES and t.kind == "data"):
        return Cause(line, VERSION, f"on the data with {one.text(decimals)}", tried)
    drawn = [t.mean for t in tried if t.a_draw] + [result.mean or 0.0]
    target = line.printed.mean
    if target is not None and len(drawn) > 1 and min(drawn) <= target <= max(drawn):
        text = (
            f"{len(drawn)} settings and seeds that validation cannot tell apart give "
            f"{min(drawn):.{decimals}f} to {max(drawn):.{decimals}f}, and print lies between"
        )
        return Cause(line, NOISE, text, tried)
    if not tried:
        return Cause(line, NONE, "nothing else was run on these data")
    nearest = min(tried, key=lambda t: abs(t.mean - (target if target is not None else t.mean)))
    text = f"{_counted(tried)} tried; nearest {nearest.text(decimals)}"
    if line.printed.table == fingerprint.TABLE:
        text += "; reports/fingerprint.md holds other data against it"
    return Cause(line, UNEXPLAINED, text, tried)


def _counted(tried: Sequence[Tried]) -> str:
    words = {
        "grid": ("other setting", "other settings"),
        "seed": ("other seed", "other seeds"),
        "switch": ("switch", "switches"),
        "data": ("variant of the data", "variants of the data"),
    }
    count = Counter(t.kind for t in tried)
    return ", ".join(f"{count[k]} {words[k][count[k] > 1]}" for k in words if count[k])


def _registered(one: Tried, result: Result) -> str:
    """The entry of the register whose switch this is."""
    wanted = {f"{result.model.partition(':')[0]}:{change}" for change in one.changed.split()}
    return next((name for name, switch in discrepancies.switches().items() if switch in wanted), "")


def _draw(one: Tried) -> str:
    return f"validation does not tell it from the chosen setting (p = {one.worse:.2g})"


def _tried(table: Table, result: Result, store: Store) -> tuple[Tried, ...]:
    """Every other setting of this model that was run on these data, beside the printed cell."""
    cell = table.recipe.cell(result.method, result.dataset)
    if cell is None or not result.setting or result.printed is None or result.printed.mean is None:
        return ()
    [metric] = [m for m in table.recipe.metrics if m.name == result.metric]
    metric = table.recipe.source(result.method).metric(metric)
    assert metric.value.partition(".")[0] in FIELDS, metric
    rho = pairing.used(store, Cell(cell.entry, cell.data), metric)
    chosen = _settings(store, cell).get(result.setting)
    if chosen is None:
        return ()
    made = _on_variants(result, store, metric, rho)
    for setting, records in _settings(store, cell).items():
        values = [v for record in records if (v := metric.of(record)) is not None]
        if setting == result.setting or len(values) < FEWEST:
            continue
        within = [follow(record, metric.spread) for record in records] if metric.spread else []
        verdict = beside(result.printed, values, [x for x in within if x is not None], metric, rho)
        mean, std = mean_std(values)
        before, after = _params(chosen[0]), _params(records[0])
        made.append(
            Tried(
                _changes(before, after),
                _kind(cell, before, after),
                mean,
                std,
                len(values),
                verdict.word,
                _worse(chosen, records),
            )
        )
    return tuple(made)


def _on_variants(result: Result, store: Store, metric: Metric, rho: float) -> list[Tried]:
    """The same cell in tables on other variants of its data, such as the mended generator."""
    made = []
    assert result.printed is not None
    for name, entry in catalogue().items():
        for place in entry["datasets"]:
            if not place.startswith(f"{result.dataset}:") or result.method not in entry["methods"]:
                continue
            key = result.method, place, result.metric, "rule"
            other = build_from(store, name).results.get(key)
            if other is None or not other.complete or other.mean is None:
                continue
            verdict = beside(result.printed, other.values, other.within, metric, rho)
            changed = place.partition(":")[2]
            made.append(Tried(changed, "data", other.mean, other.std, other.n, verdict.word))
    return made


def _settings(store: Store, cell: Cell) -> dict[str, list[Record]]:
    """The good runs of this model's present revision on these data, setting by setting."""

    def read() -> dict[str, list[Record]]:
        folder = store.runs / folder_name(cell.entry.name) / cell.data.folder
        found: dict[str, list[Record]] = {}
        _, example = keys_of(cell, {})
        splits = [key.rpartition("/")[2] for key in example]
        place = "/".join(example[0].split("/")[:2])
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            keys = [f"{place}/{path.name}/{split}" for split in splits]
            records, _ = store.find(keys, only=FIELDS)
            good = [
                _slim(record)
                for record in records.values()
                if record["status"] == "ok" and record["spec"]["revision"] == cell.entry.revision
            ]
            if good:
                found[path.name] = good
        return found

    return store.once(("settings", cell.entry.name, cell.data.folder), read)


def _slim(record: Record) -> Record:
    """What is asked of a record here: there may be tens of thousands."""
    spec, selection = record["spec"], record.get("selection")
    return {
        "key": record["key"],
        "spec": {"params": spec["params"], "seed": spec["seed"]},
        "scores": {part: record["scores"][part] for part in ("valid", "test")},
        "selection": selection and {k: v for k, v in selection.items() if k != "core"},
        "also": record.get("also"),
    }


def _params(record: Record) -> dict[str, Any]:
    return {**record["spec"]["params"], "random_state": record["spec"]["seed"]}


def _kind(cell: Cell, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    changed = {name for name in {*before, *after} if _differs(before, after, name)}
    if changed == {"random_state"}:
        return "seed"
    searched = {*cell.search.grid, *cell.search.ranges}
    return "grid" if changed <= searched else "switch"


def _differs(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> bool:
    """A setting that is null is not one that is left out."""
    return (name in before) != (name in after) or before.get(name) != after.get(name)


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    names = [name for name in after if _differs(before, after, name)]
    names += [name for name in before if name not in after]
    shown = (f"{name}={_spelled(after[name])}" if name in after else f"no {name}" for name in names)
    return " ".join(shown) or "the same setting"


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _worse(chosen: Sequence[Record], other: Sequence[Record]) -> float | None:
    """p of the corrected test between the validation scores on the splits that both have."""
    scores = [
        {r["key"].rpartition("/")[2]: r["scores"]["valid"]["balanced_accuracy"] for r in records}
        for records in (chosen, other)
    ]
    both = sorted(scores[0].keys() & scores[1].keys())
    if len(both) < FEWEST:
        return None
    return corrected_resampled_t([scores[1][split] - scores[0][split] for split in both])[1]


# A cell that is computed from others --------------------------------------------------------------


def _derived(line: Line, found: Mapping[Any, Cause]) -> Cause:
    """A rank or a difference of ranks has the cause of the cells that it is computed from."""
    cell = line.printed
    beneath = [
        c for place, c in found.items() if place[0] == cell.table and place[1] == cell.method
    ]
    whose = "its own cells" if beneath else "the cells of the methods that it is ranked among"
    beneath = beneath or [c for place, c in found.items() if place[0] == cell.table]
    if not beneath:
        return Cause(line, NONE, "none of the cells that it is computed from differs")
    kinds = Counter(cause.kind for cause in beneath)
    [(kind, _), *_] = kinds.most_common()
    counts = ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    return Cause(line, kind, f"computed from {whose}, of which {len(beneath)} differ: {counts}")


# What is written down ----------------------------------------------------------------------------


@cache
def _entries() -> list[dict[str, Any]]:
    text = files("benchmark.paper").joinpath("causes.toml").read_text("utf-8")
    entries: list[dict[str, Any]] = tomllib.loads(text)["cause"]
    return entries


def _shown_rows(rows: Sequence[Sequence[str]], metric: str, store: Store) -> str:
    """Rows of other tables as evidence: table, row, dataset."""
    found = []
    for name, row, dataset in rows:
        table = build_from(store, name)
        result = table.results.get((row, dataset, metric, "rule"))
        if result and result.mean is not None:
            [title] = [r.label for r in table.rows if r.method == row]
            found.append(f"{title}: {shown(result.mean, result.std)}")
    return f" ({'; '.join(found)})" if found else ""


def _written(cell: Printed) -> dict[str, Any] | None:
    for entry in _entries():
        wanted = entry["cells"]
        place = {
            "table": cell.table,
            "method": cell.method,
            "dataset": cell.dataset,
            "metric": cell.metric,
        }
        if all(place[name] in values for name, values in wanted.items()):
            return entry
    return None


# Texts -------------------------------------------------------------------------------------------

ABOUT = {
    RECOVERED: "settings outside the rule or the grid that give every printed digit",
    VERSION: "other data or another library give it",
    INCONSISTENT: "the paper says two things",
    DEVIATION: "a switch of the register of discrepancies gives it, or what is counted is another thing",
    NOISE: "settings or seeds that validation cannot tell apart give it, or values on both sides of it",
    UNEXPLAINED: "what was tried does not give it",
    NONE: "nothing was tried yet",
}


def to_markdown(found: Sequence[Cause]) -> str:
    """How many of each kind, then cell by cell with everything that was tried."""
    kinds = Counter(cause.kind for cause in found)
    head = f"{len(found)} cells differ by the paper's rule."
    counts = [["cause", "cells", "that is"]]
    counts += [[kind, str(kinds[kind]), ABOUT[kind]] for kind in KINDS if kinds[kind]]
    parts = ["# Why cells differ", head, grid(counts), LEGEND]
    for table in dict.fromkeys(cause.line.printed.table for cause in found):
        mine = [cause for cause in found if cause.line.printed.table == table]
        rows = [["method", "dataset", "metric", "paper", "ours", "cause", "evidence"]]
        rows += [_row(cause) for cause in mine]
        parts += [f"## {table_name(table)}", grid(rows)]
    parts += ["## Everything that was tried", *_lists(found)]
    return "\n\n".join(parts)


LEGEND = (
    f"Beside the setting that a cell stands for, every other setting with at least {FEWEST} runs on the same "
    "splits is held against print: the rest of the grid, other seeds, switches of the register of "
    "discrepancies, other variants of the data. Validation cannot tell two settings apart if the corrected "
    f"test between their validation scores has p of {NOT_WORSE:g} or more. A switch that agrees comes first, "
    "then a draw. None of this was used to choose anything: a setting that is found by the printed cell is "
    "evidence about the paper, not a result."
)


def _row(cause: Cause) -> list[str]:
    cell, ours = cause.line.printed, cause.line.ours["rule"]
    kind = f"{cause.kind} ({cause.register})" if cause.register else cause.kind
    names = [label(cell.method).replace("|", " "), cell.dataset or "all", cell.metric]
    return [*names, printed(cell), shown_value(ours), kind, cause.text.replace("|", "/")]


def _lists(found: Sequence[Cause]) -> list[str]:
    """Once per model, dataset and metric, however many tables print the cell."""
    seen, parts = set(), []
    for cause in found:
        cell, experiment = cause.line.printed, cause.line.ours["rule"].experiment
        if not cause.tried or experiment in seen:
            continue
        seen.add(experiment)
        decimals = cause.line.ours["rule"].decimals
        names = f"{label(cell.method)} on {cell.dataset}, {cell.metric}".replace("|", " ")
        head = f"**{names}**: printed {printed(cell)}, ours {shown_value(cause.line.ours['rule'])}"
        parts.append("\n".join([head, "", *(f"- {one.text(decimals)}" for one in cause.tried)]))
    return parts


def to_json(found: Sequence[Cause]) -> str:
    rows = [
        {
            **{name: value for name, value in asdict(cause).items() if name != "line"},
            **asdict(cause.line.printed),
        }
        for cause in found
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False)


def to_csv(found: Sequence[Cause]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["table", "method", "dataset", "metric", "kind", "register", "text", "tried"])
    for cause in found:
        writer.writerow(
            [*_place(cause.line), cause.kind, cause.register, cause.text, len(cause.tried)]
        )
    return text.getvalue().rstrip("\n")


FORMATS = {"md": to_markdown, "csv": to_csv, "json": to_json}
