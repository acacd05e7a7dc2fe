"""What else was run on the splits of a cell, each thing beside the printed number.

Other settings of the grid, other seeds, switches, other variants of the data, and other readings of
the same records. What is found here is evidence about the paper; nothing is chosen by it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmark import paper
from benchmark.judge import discrepancies
from benchmark.paper import Printed
from benchmark.protocol.plan import Cell, keys_of, spelled
from benchmark.protocol.spec import FOLDS, VALID_SIZE
from benchmark.runner.records import Store
from benchmark.tables import pairing
from benchmark.tables.build import build_from
from benchmark.tables.measured import beside
from benchmark.tables.recipes import Metric, Record, catalogue, follow
from benchmark.tables.statistics import (
    RUNS,
    corrected_resampled_t,
    mean_std,
    student_quantile,
    variance_ratio_p,
)
from benchmark.tables.table import Result, Table
from benchmark.tables.verdict import APART, Shared
from benchmark.text import counted
from benchmark.text import mean_std as shown

FEWEST = 5
"""Runs that a setting needs to be held against a printed cell."""
TOO_FEW = "too few runs to judge"
LEVEL = 0.05
"""Of the tests here: two settings are a draw, and two spreads the same, with a p of this or more."""
FIELDS = ("scores", "selection", "also")
"""Of a record, where the numbers of printed cells are."""
READINGS = {
    "selection.composition.": ("selection.composition.", "zero_threshold=", ""),
    "selection.f1.": ("selection.f1.", "truth by ", "synthetic-generator"),
    "scores.test.balanced_accuracy": ("also.", "answered by ", ""),
}
"""What a record holds in several ways: where the others are, how they are named, and the entry of the
register that says whose they are."""


@dataclass(frozen=True)
class Tried:
    """Another setting, seed, variant or reading on the same splits, beside the printed cell."""

    changed: str
    """What differs from the setting that the cell stands for: `max_depth=2 learning_rate=0.01`."""
    kind: str
    """grid | seed | switch | data | reading | row"""
    mean: float
    std: float | None
    n: int
    word: str
    """The verdict on it."""
    same_spread: bool = True
    """Whether the printed standard deviation is its own, too."""
    p: float | None = None
    """Of the paired test between its validation scores and the chosen setting's; None where they
    share too few runs."""
    register: str = ""
    """Whose it is: the entry of the register of discrepancies. Empty: neither the text's nor a
    code's, it was only tried."""
    changes: int = 1

    @property
    def agrees(self) -> bool:
        """Means alone agree by chance where the spread is another one."""
        return self.word == "equal" or (self.word == "equivalent" and self.same_spread)

    @property
    def judged(self) -> bool:
        return self.word != TOO_FEW

    def text(self, decimals: int) -> str:
        runs = "" if self.n == RUNS else f" on {counted(self.n, 'split')}"
        spread = "" if self.same_spread else " in the mean, not in the spread"
        word = self.word + spread * (self.word == "equivalent")
        return f"{self.changed}: {shown(self.mean, self.std, decimals)}{runs}, {word}"


def of(table: Table, result: Result, store: Store) -> tuple[Tried, ...]:
    """Everything that was tried for a cell."""
    place = "tried", table.recipe.name, result.method, result.dataset, result.metric
    return store.once(place, lambda: tuple(_all(table, result, store)))


def _all(table: Table, result: Result, store: Store) -> list[Tried]:
    cell = table.recipe.cell(result.method, result.dataset)
    if cell is None or not result.setting or result.printed is None or result.printed.mean is None:
        return []
    [metric] = [m for m in table.recipe.metrics if m.name == result.metric]
    metric = table.recipe.source(result.method).metric(metric)
    assert metric.value.partition(".")[0] in FIELDS, metric
    shared = pairing.used(store, Cell(cell.entry, cell.data), metric)
    found = settings(store, cell)
    chosen = found.get(result.setting)
    if chosen is None:
        return []
    before = _params(chosen[0])
    made = _readings(result.printed, chosen, metric, shared)
    made += _on_variants(result, store, metric)
    for setting, records in found.items():
        if setting == result.setting or not (one := _held(result.printed, records, metric, shared)):
            continue
        after = _params(records[0])
        changed = {name for name in {*before, *after} if _differs(before, after, name)}
        kind = _kind(cell, changed)
        whose = [discrepancies.switch_of(cell.entry, name, after.get(name)) for name in changed]
        register = ", ".join(sorted(set(whose))) if kind == "switch" and all(whose) else ""
        p = _p(chosen, records)
        made.append(
            replace(one, changed=changes(before, after), kind=kind, p=p, register=register,
                    changes=len(changed))
        )  # fmt: skip
    return sorted(made, key=lambda t: (KINDS.index(t.kind), not t.judged, t.changes, t.changed))


KINDS = ("row", "switch", "reading", "data", "seed", "grid")


def _held(
    printed: Printed, records: Sequence[Record], metric: Metric, shared: Shared
) -> Tried | None:
    """Runs beside the printed cell; None if none of them has a value."""
    values = [v for record in records if (v := metric.of(record)) is not None]
    within = [follow(record, metric.spread) for record in records] if metric.spread else []
    return held(printed, values, [x for x in within if x is not None], metric, shared)


def held(
    printed: Printed,
    values: Sequence[float],
    within: Sequence[float],
    metric: Metric,
    shared: Shared,
) -> Tried | None:
    """Values beside the printed cell; `within` are their spreads between samples."""
    if not values:
        return None
    mean, std = mean_std(values)
    if len(values) < FEWEST:
        return Tried("", "", mean, std, len(values), TOO_FEW)
    word = beside(printed, values, within, metric, shared).word
    return Tried(
        "",
        "",
        mean,
        std,
        len(values),
        word,
        _same_spread(printed, std, len(values), within, metric),
    )


def _same_spread(
    printed: Printed, std: float | None, n: int, within: Sequence[float], metric: Metric
) -> bool:
    """Whether the printed standard deviation can be this one: between runs by the F test, between
    samples by the interval of its mean over runs, on both sides."""
    if printed.std is None:
        return True
    if not metric.spread:
        same = paper.equal_as_printed(std or 0.0, printed.std, metric.decimals)
        return same or variance_ratio_p(std or 0.0, n, printed.std, RUNS) >= LEVEL
    if len(within) < FEWEST:
        return False  # nobody knows
    ours, spread = mean_std(within)
    error = math.sqrt(2 / len(within)) * (spread or 0.0)
    half = student_quantile(1 - LEVEL / 2, len(within) - 1) * error
    return (
        paper.equal_as_printed(ours, printed.std, metric.decimals)
        or abs(ours - printed.std) <= half
    )


def _readings(
    printed: Printed, chosen: Sequence[Record], metric: Metric, shared: Shared
) -> list[Tried]:
    """The cell's own records, counted in the other ways that they hold."""
    made = []
    for path, (others, title, register) in READINGS.items():
        if not metric.value.startswith(path):
            continue
        for name in follow(chosen[0], others[:-1]) or ():
            other = replace(metric, value=f"{others}{name}")
            if other.value != metric.value and (one := _held(printed, chosen, other, shared)):
                made.append(
                    replace(one, changed=f"{title}{name}", kind="reading", register=register)
                )
    return made


def _on_variants(result: Result, store: Store, metric: Metric) -> list[Tried]:
    """The same cell in tables on other variants of its data, such as the mended generator."""
    made = []
    assert result.printed is not None
    for name, entry in catalogue().items():
        for place in entry["datasets"]:
            if not place.startswith(f"{result.dataset}:") or result.method not in entry["methods"]:
                continue
            key = result.method, place, result.metric, "rule"
            other = build_from(store, name).results.get(key)
            if other is None or not other.complete:
                continue
            one = held(result.printed, other.values, other.within, metric, APART)
            if one:  # other data have other splits, so runs are not paired
                made.append(replace(one, changed=place.partition(":")[2], kind="data"))
    return made


# Records -----------------------------------------------------------------------------------------


def settings(store: Store, cell: Cell) -> dict[str, list[Record]]:
    """The good runs of this model's present revision on these data, setting by setting."""

    def read() -> dict[str, list[Record]]:
        found: dict[str, list[Record]] = {}
        _, example = keys_of(cell, {})
        splits = [key.rpartition("/")[2] for key in example]
        place = "/".join(example[0].split("/")[:2])
        for setting in store.settings(place):
            keys = [f"{place}/{setting}/{split}" for split in splits]
            records, _ = store.find(keys, only=FIELDS)
            good = [
                _slim(record)
                for record in records.values()
                if record["status"] == "ok" and _comparable(record["spec"], cell)
            ]
            if good:
                found[setting] = good
        return found

    return store.once(("settings", cell.entry.name, cell.data.folder), read)


def _comparable(spec: Record, cell: Cell) -> bool:
    """Whether it is of the present code, on the paper's splits."""
    wanted = (cell.entry.revision, FOLDS, VALID_SIZE)
    return tuple(spec[name] for name in ("revision", "folds", "valid_size")) == wanted


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


def _kind(cell: Cell, changed: set[str]) -> str:
    if changed == {"random_state"}:
        return "seed"
    return "grid" if changed <= {*cell.search.grid, *cell.search.ranges} else "switch"


def _differs(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> bool:
    """A setting that is null is not one that is left out."""
    return (name in before) != (name in after) or before.get(name) != after.get(name)


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """One setting as its differences from another."""
    names = [name for name in after if _differs(before, after, name)]
    names += [name for name in before if name not in after]
    shown = (f"{name}={spelled(after[name])}" if name in after else f"no {name}" for name in names)
    return " ".join(shown) or "the same setting"


def _p(chosen: Sequence[Record], other: Sequence[Record]) -> float | None:
    """p of the plain paired test between the validation scores on the splits that both have.

    The paper chose on these very splits, so which splits were drawn cannot have made its choice differ
    from ours, and a correction for that has no place here.
    """
    scores = [
        {r["key"].rpartition("/")[2]: r["scores"]["valid"]["balanced_accuracy"] for r in records}
        for records in (chosen, other)
    ]
    both = sorted(scores[0].keys() & scores[1].keys())
    if len(both) < FEWEST:
        return None
    return corrected_resampled_t([scores[1][s] - scores[0][s] for s in both], overlap=0.0)[1]
