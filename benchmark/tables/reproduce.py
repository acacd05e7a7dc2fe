"""Doing what tables are missing: tune where no choice exists, then run what the choices name."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmark.data.places import out_of_reach
from benchmark.experiments import timing
from benchmark.progress import Progress, say
from benchmark.protocol.choices import current
from benchmark.protocol.plan import Cell, Protocol
from benchmark.protocol.registry import datasets
from benchmark.protocol.search import Plan
from benchmark.protocol.spec import MissingData
from benchmark.protocol.stored import or_set_aside
from benchmark.runner.campaign import Means, carry_out, finished
from benchmark.runner.costs import Costs, runs_of_search
from benchmark.runner.tune import choosing
from benchmark.tables.needs import needs, searched_cell, specs_of, timed
from benchmark.tables.recipes import Need

PROTOCOL = Protocol()


@dataclass(frozen=True)
class Unfinished:
    """A cell that is missing runs, and what they cost."""

    need: Need
    search: bool
    """Whether its settings have to be searched first."""
    runs: int
    """About how many runs are missing."""
    seconds: float | None
    """Of one thread; None if nothing like it was ever run."""


def gaps(wanted: Sequence[Need], means: Means, quick: int | None) -> list[Unfinished]:
    """The cells that are missing runs, cheapest first; those of unknown cost come last."""
    costs = Costs(means.store)
    found = [gap for need in wanted if (gap := gap_of(need, means, quick, costs)) is not None]
    return sorted(found, key=lambda gap: (gap.seconds is None, gap.seconds or 0.0))


def gap_of(need: Need, means: Means, quick: int | None, costs: Costs) -> Unfinished | None:
    cell = searched_cell(need)
    search = to_be_searched(cell, means, quick)
    if search:
        runs = runs_of_search(cell, PROTOCOL, quick, means.store)
        if cell.model != need.cell.model or need.params:
            runs += len(PROTOCOL.splits())
    else:
        keys = {spec.key for spec in specs_of(need, means.store, PROTOCOL)}
        records, _ = means.store.find(sorted(keys))
        done = [r for r in records.values() if finished(r, means.retry) and not means.force]
        runs = len(keys) - len(done)
        if not runs:
            return None
    return Unfinished(need, search, runs, costs.of_runs(need.cell, runs))


def to_be_searched(cell: Cell, means: Means, quick: int | None) -> bool:
    """Whether there is no choice yet, or one from a search that saw less than asked for."""
    if not cell.search:
        return False
    choice = or_set_aside(means.store.root, lambda: means.store.choice(cell))
    if choice is None or not current(choice, cell) or means.force or not choice.on_paper_splits:
        return True
    total = len(PROTOCOL.splits())
    return quick is not None and choice.strength < (total, min(quick, total))


def fill(
    table: str,
    means: Means,
    only_models: Sequence[str] | None,
    only_datasets: Sequence[str] | None,
    quick: int | None = None,
) -> list[dict[str, Any]]:
    """Do the missing runs of a table, as far as the deadline allows; return those that failed."""
    wanted = needs(table, only_models, only_datasets)
    names = list(dict.fromkeys(need.cell.data.name for need in wanted))
    absent = {need.cell.data.name for need in wanted if out_of_reach(need.cell.data)}
    wanted = [need for need in wanted if need.cell.data.name not in absent]
    missing = gaps(wanted, means, quick)
    begun = affordable(missing, means)
    say(_data(names, {gap.need.cell.data.name for gap in begun} if not means.dask else set()))
    if missing:
        say(_outlook(missing, begun, len(wanted)))
    # Cell by cell: whoever stops early has whole cells rather than a little of each.
    plans = [_completing(gap, means, quick) for gap in begun]
    _, report = carry_out(plans, means, table)
    if report.unfinished:
        say("The time budget is used up in the middle of a cell; the same command resumes.")
    shown = [
        cell
        for cell in timed(table)
        if (not only_models or cell.model in only_models)
        and (not only_datasets or cell.data.label in only_datasets)
    ]
    take_times(shown, means.store.root, means.deadline, means.force)
    return report.failures


def _data(names: Sequence[str], needed: Collection[str]) -> str:
    """One line per dataset: where it is, or the way to it. What runs are waiting for is fetched now."""
    from benchmark.data import getting

    lines = []
    for name in (name for name in names if name in datasets()):
        [row] = getting.status([name])
        found = f"at hand ({row.detail})"
        if row.state == "missing":
            found = (
                f"by hand; `python -m benchmark data get {name}` tells how. Its runs are left out"
            )
        elif row.state == "downloadable" and name not in needed:
            found = f"not here, and no run that is done now needs it; `{row.detail}` fetches it"
        elif row.state == "downloadable":
            [row] = getting.get([name])
            done = row.state == "ready"
            why = f"could not be fetched; `python -m benchmark data get {name}` says why"
            found = f"fetched ({row.detail})" if done else why
        lines.append(f"  {name:<20}{found}")
    return "\n".join(["Data:", *lines])


def affordable(missing: Sequence[Unfinished], means: Means) -> list[Unfinished]:
    """The gaps that fit into the time that is left, cheapest first; all of them without a limit."""
    if means.deadline is None:
        return list(missing)
    left = (means.deadline - time.monotonic()) * max(1, means.jobs)
    taken = []
    for gap in missing:
        # Of unknown cost: begin it, the deadline will stop it.
        if (gap.seconds or 0.0) <= left:
            taken.append(gap)
            left -= gap.seconds or 0.0
    return taken


def _outlook(missing: Sequence[Unfinished], begun: Sequence[Unfinished], total: int) -> str:
    text = f"{len(missing)} of {total} cells are missing runs, {hours(missing)}"
    if len(begun) == len(missing):
        return f"{text}; the cheapest come first."
    fit = f"{len(begun)} fit into the budget" if begun else "none fits into the budget"
    return f"{text}; {fit}. --budget all does everything, and can be interrupted and resumed."


def hours(missing: Sequence[Unfinished]) -> str:
    total = sum(gap.seconds or 0.0 for gap in missing) / 3600
    unknown = sum(gap.seconds is None for gap in missing)
    if unknown == len(missing) > 0:
        return "of unknown cost"
    text = f"about {total:.1f} core-hours" if total < 10 else f"about {total:.0f} core-hours"
    return f"{text} without {unknown} of unknown cost" if unknown else text


def _completing(gap: Unfinished, means: Means, quick: int | None) -> Plan[None]:
    """Search where that is needed, then the runs of the cell in both editions."""
    if gap.search:
        yield from choosing(searched_cell(gap.need), PROTOCOL, means, quick)
    yield specs_of(gap.need, means.store, PROTOCOL)


def take_times(
    cells: Sequence[Cell], results: Path, deadline: float | None, force: bool = False
) -> set[str]:
    """Time the cells that were not timed yet; return the datasets that are not at hand."""
    from benchmark.experiments import stopwatch

    absent: set[str] = set()
    untimed = [
        cell
        for cell in cells
        if or_set_aside(results, partial(timing.read, results, cell)) is None or force
    ]
    with Progress(len(untimed), "timing") as progress:
        for cell in untimed:
            if deadline is not None and time.monotonic() >= deadline:
                break
            try:
                if cell.data.name not in absent:
                    taken = stopwatch.measure(cell, results)
                    timing.write(results, cell, taken)
                    if not taken.quiet:
                        say(
                            f"{cell.model} on {cell.data.label}: other processes kept {taken.load:.1f} "
                            f"cores busy, so its times are too long. Repeat with `time --force`."
                        )
            except MissingData:
                absent.add(cell.data.name)
            progress.step(f"{cell.model} {cell.data.label}")
    return absent
