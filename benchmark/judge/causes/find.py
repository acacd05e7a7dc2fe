"""Why a cell differs from print: a cause with its evidence, or everything that was tried in vain.

The evidence is in the records: what else was run on the same splits (`tried.py`) is held against
the printed cell. What no record can tell (a count that the paper takes in another way) is written
down in paper/causes.toml, and counts where the runs explain nothing.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from benchmark.experiments import fingerprint
from benchmark.judge.audit.findings import printed
from benchmark.judge.causes import tried as trying
from benchmark.judge.causes.tried import LEVEL, Tried
from benchmark.judge.cells import ledger
from benchmark.judge.cells.ledger import Line
from benchmark.paper import Printed
from benchmark.protocol.stored import or_told
from benchmark.runner.records import Store
from benchmark.runner.shipped import store_at
from benchmark.tables.build import build_from
from benchmark.tables.table import Result, Table
from benchmark.tables.verdict import APART
from benchmark.text import mean_std as shown

RECOVERED = "recovered setting"
VERSION = "library or data version"
INCONSISTENT = "paper inconsistent"
DISCREPANCY = "documented discrepancy"
NOISE = "noise of search or runs"
UNEXPLAINED = "tried and unexplained"
NONE = "no cause yet"
KINDS = (RECOVERED, VERSION, INCONSISTENT, DISCREPANCY, NOISE, UNEXPLAINED, NONE)
"""From the best explained to the least."""

WORDS = ("equal", "equivalent", "inconclusive", "different")
"""From near to far."""


@dataclass(frozen=True)
class Cause:
    """Why a printed cell and ours differ."""

    line: Line
    kind: str
    text: str
    tried: tuple[Tried, ...] = ()
    register: str = ""
    """The entry of the register of discrepancies that it belongs to."""
    paper: str = ""
    """What ours was compared with, where that is not the printed number itself."""


def build(results: Path, tables: Sequence[int] | None = None) -> list[Cause]:
    """A cause for every cell that differs by the paper's rule, in the paper's order."""
    store = store_at(results, remember=True)
    return causes(store, ledger.lines(store, tables))


def causes(store: Store, lines: Sequence[Line]) -> list[Cause]:
    different = [line for line in lines if line.ours["rule"].verdict.word == "different"]
    found = {place_of(line): cause for line in different if (cause := _direct(line, store))}
    return [found.get(place_of(line)) or _derived(line, found, store) for line in different]


def place_of(line: Line) -> tuple[int, str, str, str]:
    cell = line.printed
    return cell.table, cell.method, cell.dataset, cell.metric


# A cell that was measured ------------------------------------------------------------------------


def _direct(line: Line, store: Store) -> Cause | None:
    """The cause of a cell; None if it is computed from others."""
    cell = line.printed
    table = build_from(store, f"table{cell.table}")
    result = table.results.get((cell.method, cell.dataset, cell.metric, "rule"))
    tried = trying.of(table, result, store) if result else ()
    written = _written(cell)
    if written and result:
        tried = (*_rows(written, table, result, store), *tried)
    recovered = line.ours.get("recovered")
    if recovered and recovered.verdict.word == "equal":
        setting = table.results[cell.method, cell.dataset, cell.metric, "recovered"].params or {}
        chosen = (result.params if result else None) or {}
        text = f"{trying.changes(chosen, setting)} gives every printed digit"
        return Cause(line, RECOVERED, text, tried)
    if result and result.setting and (cause := _explained(line, table, result, tried, store)):
        return cause
    if written:
        return _as_written(line, written, table, result, tried, store)
    if result is None or not result.setting:
        return None
    return _unexplained(line, table, result, tried, store)


def _explained(
    line: Line, table: Table, result: Result, tried: Sequence[Tried], store: Store
) -> Cause | None:
    """What other runs on the same splits explain; None if nothing.

    One change comes before several: the more of them, the more combinations could agree by chance.
    """
    decimals = line.ours["rule"].decimals
    agreeing = sorted((t for t in tried if t.agrees), key=lambda t: t.changes)
    for one in agreeing:
        if one.kind == "row":
            return Cause(line, DISCREPANCY, one.text(decimals), tuple(tried), one.register)
        if one.register and not (rest := _rest(table, result, one, store)).away:
            text = f"with {one.text(decimals)}; {rest.text}"
            return Cause(line, DISCREPANCY, text, tuple(tried), one.register)
    for one in agreeing:
        if one.kind == "seed" or _a_draw(one, table, result):
            text = f"{one.text(decimals)}; {_why_a_draw(one)}"
            return Cause(line, NOISE, text, tuple(tried))
    for one in (t for t in agreeing if t.kind == "data"):
        if not (rest := _rest(table, result, one, store)).away:
            text = f"on the data with {one.text(decimals)}; {rest.text}"
            return Cause(line, VERSION, text, tuple(tried))
    seeds = [t.mean for t in tried if t.kind == "seed" and t.judged] + [result.mean or 0.0]
    target = line.printed.mean
    if target is not None and len(seeds) > 1 and min(seeds) <= target <= max(seeds):
        text = (
            f"{len(seeds)} seeds of the same setting give {min(seeds):.{decimals}f} to "
            f"{max(seeds):.{decimals}f}, and print lies between"
        )
        return Cause(line, NOISE, text, tuple(tried))
    return None


def _a_draw(one: Tried, table: Table, result: Result) -> bool:
    """Whether nothing but chance prefers the chosen setting of the grid.

    Without randomness every setting of a whole search has the paper's own validation scores, and the
    rule's choice is the paper's.
    """
    cell = table.recipe.cell(result.method, result.dataset)
    by_rule = result.choice is not None and result.choice.by_rule
    certain = cell is not None and cell.entry.deterministic and by_rule
    return one.kind == "grid" and not certain and one.p is not None and one.p >= LEVEL


def _why_a_draw(one: Tried) -> str:
    if one.kind == "seed":
        return "another seed"
    return f"validation does not tell it from the chosen setting (p = {one.p:.2g})"


@dataclass(frozen=True)
class _Rest:
    """What a change does to the other cells of the row."""

    seen: int
    away: list[str]
    """Those that it moves away from print."""

    @property
    def text(self) -> str:
        if not self.seen:
            return "no other cell of the row was run with it"
        return f"of {self.seen} other cells of the row it moves none away from print"


def _rest(table: Table, result: Result, one: Tried, store: Store) -> _Rest:
    """A change that is right for one cell of a row is not wrong for the others."""
    seen, away = 0, []
    for other in table.results.values():
        same_cell = (other.dataset, other.metric) == (result.dataset, result.metric)
        if other.method != result.method or other.edition != "rule" or same_cell:
            continue
        if not other.complete or other.printed is None or other.printed.mean is None:
            continue
        if other.verdict.word not in WORDS:
            continue  # other patients than the paper's
        for there in trying.of(table, other, store):
            if (there.kind, there.changed) == (one.kind, one.changed) and there.judged:
                seen += 1
                if _moved_away(other, there):
                    away.append(f"{other.dataset} {other.metric}")
    return _Rest(seen, away)


def _moved_away(before: Result, after: Tried) -> bool:
    """Further by the verdict; or different as before, and by more."""
    assert before.printed is not None and before.printed.mean is not None
    assert before.mean is not None
    was, now = WORDS.index(before.verdict.word), WORDS.index(after.word)
    if (was, now) != (WORDS.index("different"),) * 2:
        return now > was
    return abs(after.mean - before.printed.mean) > abs(before.mean - before.printed.mean)


def _unexplained(
    line: Line, table: Table, result: Result, tried: Sequence[Tried], store: Store
) -> Cause:
    if not tried:
        return Cause(line, NONE, "nothing else was run on these data")
    return Cause(line, UNEXPLAINED, _in_vain(line, table, result, tried, store), tuple(tried))


def _in_vain(line: Line, table: Table, result: Result, tried: Sequence[Tried], store: Store) -> str:
    """What was tried, how near it came, and why what agrees is no cause."""
    decimals, target = line.ours["rule"].decimals, line.printed.mean or 0.0
    judged, few = [t for t in tried if t.judged], [t for t in tried if not t.judged]
    parts = []
    if judged:
        nearest = min(judged, key=lambda t: abs(t.mean - target))
        text = f"{_counted(judged)} tried; nearest {nearest.text(decimals)}"
        if nearest.word == "inconclusive" and _a_draw(nearest, table, result):
            text += f", and {_why_a_draw(nearest)}"
        parts.append(text)
    if few:
        seen = sorted({t.n for t in few})
        splits = f"{seen[0]} to {seen[-1]}" if len(seen) > 1 else f"{seen[0]}"
        only = "" if judged else "nothing that can be judged yet: "
        parts.append(
            f"{only}{_counted(few)} seen on {splits} splits of the search only, {trying.TOO_FEW}"
        )
    for one in (t for t in tried if t.agrees and not t.register and t.kind not in ("seed", "data")):
        parts.append(f"{one.changed} agrees, but {_why_not(one)}")
    for one in (t for t in tried if t.agrees and (t.register or t.kind == "data")):
        away = ", ".join(_rest(table, result, one, store).away)
        parts.append(f"{one.changed} agrees, but moves {away} away from print")
    if fingerprint.compares(_prints(store), line.printed):
        parts.append("reports/fingerprint.md holds other data against it")
    return "; ".join(parts)


def _prints(store: Store) -> fingerprint.Prints:
    read = partial(fingerprint.read, store.root)
    return store.once("fingerprints", lambda: or_told(read) or fingerprint.nothing())


def _why_not(one: Tried) -> str:
    if one.kind != "grid":
        return "it is nobody's: neither the text's nor a code's"
    if one.p is None:
        return "it shares too few splits with the chosen setting"
    if one.p >= LEVEL:
        return "a method without randomness has no second choice"
    return f"validation rejects it (p = {one.p:.2g})"


def _counted(tried: Sequence[Tried]) -> str:
    words = {
        "grid": ("other setting", "other settings"),
        "seed": ("other seed", "other seeds"),
        "switch": ("switch", "switches"),
        "reading": ("other reading of the records", "other readings of the records"),
        "data": ("variant of the data", "variants of the data"),
        "row": ("other implementation", "other implementations"),
    }
    count = Counter(t.kind for t in tried)
    return ", ".join(f"{count[k]} {words[k][count[k] > 1]}" for k in words if count[k])


# A cell that is computed from others --------------------------------------------------------------


def _derived(line: Line, found: Mapping[Any, Cause], store: Store) -> Cause:
    """A rank, or a difference of ranks: what it becomes with recovered settings, else what its cells
    are explained by."""
    cell = line.printed
    rank = _recovered_rank(line, store)
    compared = _same_cells(line, store)
    if rank and rank[0] != "different":
        return Cause(line, RECOVERED, rank[1], paper=compared)
    around = {
        place: c
        for place, c in found.items()
        if place[0] == cell.table and cell.dataset in ("", place[2])
    }
    beneath = [c for place, c in around.items() if place[1] == cell.method]
    whose = "its own cells" if beneath else "the cells of the methods that it is ranked among"
    beneath = beneath or list(around.values())
    if not beneath:
        text = "none of the cells that it is computed from differs"
        return Cause(line, NONE, text, paper=compared)
    kinds = Counter(cause.kind for cause in beneath)
    least = max(kinds, key=KINDS.index)
    counts = ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS if kinds[kind])
    verb = "differs" if len(beneath) == 1 else "differ"
    text = f"computed from {whose}, of which {len(beneath)} {verb}: {counts}"
    if len(kinds) > 1:
        text += "; explained no better than the least of them"
    if rank:
        text += f"; {rank[1]}"
    return Cause(line, least, text, paper=compared)


def _recovered_rank(line: Line, store: Store) -> tuple[str, str] | None:
    """The verdict on a rank once the cells with recovered settings are as printed, and it in words;
    None where there are no such cells."""
    table, method = build_from(store, f"table{line.printed.table}"), line.printed.method
    summary = table.summaries.get((method, "recovered", line.printed.metric))
    known = any(edition == "recovered" for _, _, _, edition in table.results)
    if summary is None or summary.ours is None or not known:
        return None
    word = summary.verdict.word
    if word not in WORDS:
        return None
    after = {"inconclusive": ": no difference is shown any more", "different": " still"}.get(
        word, ""
    )
    return (
        word,
        f"with recovered settings where they are known {shown(*summary.ours)}, {word}{after}",
    )


def _same_cells(line: Line, store: Store) -> str:
    """The rank that the paper's own cells give over our methods and datasets; ours has no other."""
    cell = line.printed
    table = build_from(store, f"table{cell.table}")
    summary = table.summaries.get((cell.method, "rule", cell.metric))
    if summary is None or summary.same_cells is None or table.fully_ranked:
        return ""
    methods, datasets = table.ranked
    over = f"its cells of {len(methods)} methods on {len(datasets)} datasets"
    return f"{shown(*summary.same_cells)} ({over}; printed {printed(cell)})"


# What is written down ----------------------------------------------------------------------------


@cache
def _entries() -> list[dict[str, Any]]:
    text = files("benchmark.paper").joinpath("causes.toml").read_text("utf-8")
    entries: list[dict[str, Any]] = tomllib.loads(text)["cause"]
    return entries


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


def _as_written(
    line: Line,
    entry: Mapping[str, Any],
    table: Table,
    result: Result | None,
    tried: tuple[Tried, ...],
    store: Store,
) -> Cause:
    text = entry["text"] + _shown_cells(entry.get("evidence", ()), line.printed.metric, store)
    if entry["kind"] == UNEXPLAINED and result and tried:
        text = f"{text}; {_in_vain(line, table, result, tried, store)}"
    return Cause(line, entry["kind"], text, tried, entry.get("register", ""))


def _rows(
    entry: Mapping[str, Any], table: Table, result: Result, store: Store
) -> tuple[Tried, ...]:
    """Rows of other tables that stand for the same printed cell: another code, or the text."""
    if result.printed is None or result.printed.mean is None:
        return ()
    [metric] = [m for m in table.recipe.metrics if m.name == result.metric]
    made = []
    for name, row in entry.get("rows", ()):
        other = build_from(store, name)
        there = other.results.get((row, result.dataset, result.metric, "rule"))
        if there is None:
            continue
        [title] = [r.label for r in other.rows if r.method == row]
        # Between two codes the correlation of two seeds says nothing, so none is assumed.
        if one := trying.held(result.printed, there.values, there.within, metric, APART):
            made.append(replace(one, changed=title, kind="row", register=entry.get("register", "")))
    return tuple(made)


def _shown_cells(cells: Sequence[Sequence[str]], metric: str, store: Store) -> str:
    """Our cells of other places as evidence: table, row, dataset."""
    found = []
    for name, row, dataset in cells:
        result = build_from(store, name).results.get((row, dataset, metric, "rule"))
        if result and result.mean is not None:
            found.append(f"{dataset} {result.mean:.2f}")
    return f" (ours: {', '.join(found)})" if found else ""
