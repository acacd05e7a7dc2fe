"""`list`: what exists, in aligned columns."""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

from benchmark.cli.codes import OK
from benchmark.protocol import registry
from benchmark.protocol.registry import ModelEntry
from benchmark.tables import descriptive
from benchmark.tables.recipes import catalogue
from benchmark.text import columns

KINDS = ("models", "datasets", "tables", "figures")


def list_(arguments: argparse.Namespace) -> int:
    """List the models, datasets, tables and figures that exist, with what is searched for a model
    and the switches of a dataset."""
    wanted = [arguments.what] if arguments.what else list(KINDS)
    if arguments.format == "json":
        found = {kind: _values(kind) for kind in wanted}
        print(json.dumps(found[arguments.what] if arguments.what else found, indent=1))
        return OK
    print("\n\n".join(f"{kind}\n{columns(_rows(kind))}" for kind in wanted))
    return OK


def _rows(kind: str) -> list[list[str]]:
    if kind == "models":
        return [
            [m.name, m.label, m.family, f"selects: {m.selects}", _searched(m)]
            for m in registry.models().values()
        ]
    if kind == "datasets":
        return [
            [
                d.name,
                f"{d.shape[0]} x {d.shape[1]}",
                f"{len(d.classes)} classes",
                d.group,
                "  ".join(f"{k}={'|'.join(map(str, v))}" for k, v in d.switches.items()),
            ]
            for d in registry.datasets().values()
        ]
    return [[item["name"], item["title"]] for item in _values(kind)]


def _searched(model: ModelEntry) -> str:
    """`C = 1, 10; lr from 0.05 to 0.1`, or that nothing is searched."""
    grids = [
        f"{k} = {', '.join(_shown(v) for v in values)}" for k, values in model.search.grid.items()
    ]
    ranges = [f"{k} from {r.low:g} to {r.high:g}" for k, r in model.search.ranges.items()]
    return "; ".join(grids + ranges) or "nothing is searched"


def _values(kind: str) -> list[dict[str, Any]]:
    from benchmark.figures import FIGURES

    if kind == "models":
        return [
            {
                "name": m.name,
                "label": m.label,
                "family": m.family,
                "selects": m.selects,
                "params": m.params,
                "grid": m.search.grid,
                "ranges": {k: [r.low, r.high] for k, r in m.search.ranges.items()},
                "reference": m.reference,
            }
            for m in registry.models().values()
        ]
    if kind == "datasets":
        return [
            {
                "name": d.name,
                "group": d.group,
                "samples": d.shape[0],
                "features": d.shape[1],
                "classes": len(d.classes),
                "switches": d.switches,
                "citation": d.citation,
            }
            for d in registry.datasets().values()
        ]
    if kind == "tables":
        return table_list()
    return [{"name": name, "title": title} for name, title in FIGURES.items()]


def table_list() -> list[dict[str, str]]:
    """The paper's tables by their number, then our own experiments."""
    titles = {f"table{number}": title for number, title in descriptive.TITLES.items()}
    titles |= {name: recipe["title"] for name, recipe in catalogue().items()}

    def number(name: str) -> float:
        digits = name.removeprefix("table")
        return int(digits) if digits.isdigit() else math.inf

    return [{"name": name, "title": titles[name]} for name in sorted(titles, key=number)]


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
