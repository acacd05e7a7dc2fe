"""Choosing settings: carry out the searches, apply the rule, write the choices down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from benchmark.progress import say
from benchmark.protocol.choices import (
    Candidate,
    Choice,
    current,
    search_digest,
    write_choice,
)
from benchmark.protocol.plan import Cell, Protocol
from benchmark.protocol.search import Entrant, Plan, Result, Unsettled, search
from benchmark.protocol.spec import UserError
from benchmark.protocol.stored import or_set_aside
from benchmark.runner.campaign import Means, Report, carry_out


def tune(
    cells: Sequence[Cell], protocol: Protocol, means: Means, quick: int | None = None
) -> tuple[list[Choice | None], Report]:
    """Choose the settings of every cell; each choice is written down as soon as it is found.

    `quick` asks for the cheaper search: on how many splits all settings are tried.
    """
    plans = [choosing(cell, protocol, means, quick) for cell in cells]
    title = f"{cells[0].model} on {cells[0].data.label}"
    title += f" and {len(cells) - 1} more" if len(cells) > 1 else ""
    return carry_out(plans, means, title)


def choosing(
    cell: Cell, protocol: Protocol, means: Means, quick: int | None
) -> Plan[Choice | None]:
    """The plan of a search that ends with a choice on disk, or says why there is none."""
    try:
        result = yield from search(cell, protocol, quick)
    except Unsettled as trouble:
        say(
            f"{cell.model} on {cell.data.label}: not tuned, because a run did not finish "
            f"({trouble}). The same command tries it again."
        )
        return None
    return _settle(cell, protocol, result, means)


def _settle(cell: Cell, protocol: Protocol, result: Result, means: Means) -> Choice | None:
    """Write the choice, unless one exists that rests on a fuller search."""
    where = f"{cell.model} on {cell.data.label}"
    if result.best is None:
        say(f"{where}: not tuned, every setting had a failed run.")
        return None
    choice = choice_of(cell, protocol, result, result.best)
    root = means.store.root
    existing = or_set_aside(root, lambda: means.store.choice(cell))
    stands = existing is not None and current(existing, cell) and not means.force
    if existing is not None and stands and _standing(existing) > _standing(choice):
        say(
            f"{where}: the choice that exists rests on a fuller search ({existing.search_text}) "
            f"and is kept; --force replaces it."
        )
        return existing
    if not (existing is not None and stands and _same(existing, choice)):
        write_choice(root, cell, choice)
    if choice.edge:
        values = ", ".join(f"{name} = {choice.params[name]:g}" for name in choice.edge)
        say(f"{where}: {values} was chosen at the edge of what was searched.")
    return choice


def _standing(choice: Choice) -> tuple[bool, tuple[int, int]]:
    """More splits are not better where they are not the paper's."""
    return choice.on_paper_splits, choice.strength


def _same(a: Choice, b: Choice) -> bool:
    """Whether two searches have the same outcome: then the file that exists stays as it is."""
    return (a.strength, a.params, a.data_sha256) == (b.strength, b.params, b.data_sha256)


def choice_of(cell: Cell, protocol: Protocol, result: Result, best: Entrant) -> Choice:
    return Choice(
        model=cell.model,
        dataset=cell.data.label,
        method=result.method,
        repeats=protocol.repeats,
        folds=protocol.folds,
        splits=best.seen,
        revision=cell.entry.revision,
        search=search_digest(cell),
        params=best.params,
        valid=best.mean,
        edge=at_edge(cell, best.params),
        candidates=[
            Candidate(e.params, None if e.out else e.mean, e.seen) for e in result.entrants
        ],
        data_sha256=best.data_sha256,
        tied=result.tied,
    )


def at_edge(cell: Cell, params: dict[str, Any]) -> list[str]:
    """The numeric parameters that were chosen at the first or last value of their range."""
    edge = [
        name
        for name, values in cell.search.grid.items()
        if len(values) > 2
        and all(isinstance(v, int | float) for v in values)
        and params[name] in (min(values), max(values))
    ]
    for name, r in cell.search.ranges.items():
        scale = math.log if r.log else float
        low, high, chosen = scale(r.low), scale(r.high), scale(params[name])
        margin = 0.01 * (high - low)
        if not low + margin < chosen < high - margin:
            edge.append(name)
    return edge


def require_search(cells: Sequence[Cell]) -> None:
    """Tuning something that has nothing to tune is a misunderstanding worth a message."""
    if not any(cell.search for cell in cells):
        names = sorted({cell.model for cell in cells})
        raise UserError(f"Nothing to tune: {', '.join(names)} has fixed settings. Use `run`.")
