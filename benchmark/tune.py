"""Choosing settings by the paper's rule.

One setting per model and dataset: the one with the best mean validation balanced accuracy over the
25 runs; of equals the first in grid order. A candidate is an ordinary cached run, so choosing is
reading records, and a choice can always be derived again.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmark.campaign import Means, Report, run_missing
from benchmark.plan import Cell, Protocol
from benchmark.progress import say
from benchmark.settings import (
    Candidate,
    Choice,
    choice_path,
    current,
    read_choice,
    search_digest,
    write_choice,
)
from benchmark.spec import RunSpec, UserError


def tune(
    cells: Sequence[Cell], protocol: Protocol, means: Means, first: int | None = None
) -> list[Choice]:
    """Choose the settings of every cell and write them down; warn where the grid's edge won.

    `first` asks for successive halving: on how many splits all candidates are tried.
    """
    gridded = [cell for cell in cells if cell.search.grid]
    if first is None:
        choices = _grids(gridded, protocol, means)
    else:
        choices = [_halving(cell, cell.candidates(), protocol, means, first) for cell in gridded]
    choices += [_optuna(cell, protocol, means, first) for cell in cells if cell.search.ranges]
    return [choice for choice in choices if choice is not None]


def _grids(cells: Sequence[Cell], protocol: Protocol, means: Means) -> list[Choice | None]:
    """Every candidate on every split: all cells' runs in one go, then one choice each."""
    plans = [
        (cell, [(params, cell.specs(params, protocol)) for params in cell.candidates()])
        for cell in cells
    ]
    wanted = [spec for _, plan in plans for _, specs in plan for spec in specs]
    report = run_missing(wanted, means, "tuning")
    return [
        choose(
            cell,
            protocol,
            [measure(*candidate, report) for candidate in plan],
            "full",
            report,
            means,
        )
        for cell, plan in plans
    ]


def _halving(
    cell: Cell,
    candidates: Sequence[dict[str, Any]],
    protocol: Protocol,
    means: Means,
    first: int,
) -> Choice | None:
    """All candidates on the first few splits, the best third on twice as many, and so on."""
    alive = list(candidates)
    tried: dict[int, Candidate] = {}
    splits, total = min(first, len(protocol.splits())), len(protocol.splits())
    while True:
        plan = [(params, cell.specs(params, protocol)[:splits]) for params in alive]
        wanted = [spec for _, specs in plan for spec in specs]
        report = run_missing(wanted, means, f"{cell.model} on {cell.data.label}, {splits} splits")
        if report.unfinished:
            return None
        scored = [measure(params, specs, report) for params, specs in plan]
        for candidate in scored:
            tried[candidates.index(candidate.params)] = candidate
        # Stable, so that of equals the first in grid order survives.
        ranked = sorted(scored, key=lambda c: -_score(c))
        if splits == total or len(ranked) <= 2:
            break
        keep = {id(c) for c in ranked[: max(2, len(ranked) // 3)]}
        alive = [c.params for c in scored if id(c) in keep]
        splits = min(2 * splits, total)
    shown = [tried[i] for i in sorted(tried)]
    return choose(cell, protocol, scored, "halving", report, means, shown)


def _optuna(cell: Cell, protocol: Protocol, means: Means, first: int | None) -> Choice | None:
    """Continuous ranges: Optuna's TPE with a fixed seed and a journal that survives a kill.

    Optuna's storages do not keep the sampler's random state, so each trial's sampler is seeded with
    the number of finished trials: a resumed search asks exactly what an unbroken one would.

    With `first`, a trial sees so many splits only, and halving decides among the trials.
    """
    import optuna
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    search = cell.search
    journal = choice_path(means.store.root, cell).with_suffix(".journal")
    journal.parent.mkdir(parents=True, exist_ok=True)
    begun = journal.exists()
    splits = min(first or len(protocol.splits()), len(protocol.splits()))
    # The journal belongs to one question: other ranges or other splits start a new study in it.
    question = f"{cell.specs({}, protocol)[0].setting}-{splits}-{search.ranges}"
    study = optuna.create_study(
        study_name=question,
        storage=optuna.storages.JournalStorage(JournalFileBackend(str(journal))),
        direction="maximize",
        load_if_exists=True,
    )
    for stale in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        # A kill left it half done. Its runs are cached, and the next trial asks the same again.
        study.tell(stale.number, state=optuna.trial.TrialState.FAIL)
    distributions: dict[str, optuna.distributions.BaseDistribution] = {
        name: optuna.distributions.FloatDistribution(r.low, r.high, log=r.log)
        for name, r in search.ranges.items()
    }
    tried: list[Candidate] = []
    report = Report()
    points = [point for point in cell.candidates() for _ in range(search.trials)]
    for number, point in enumerate(points):
        complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
        if number < len(complete):
            params = {**point, **complete[number].params}
        else:
            study.sampler = optuna.samplers.TPESampler(seed=42 + number)
            trial = study.ask(distributions)
            params = {**point, **trial.params}
        specs = cell.specs(params, protocol)[:splits]
        title = f"{cell.model} on {cell.data.label}, trial {number + 1}/{len(points)}"
        last = run_missing(specs, means, title)
        report.records |= last.records
        report.absent |= last.absent
        if last.absent and not begun:
            journal.unlink()  # it holds a question only, which the next attempt asks again
        if last.absent or last.unfinished:
            return None
        tried.append(measure(params, specs, report))
        if number >= len(complete):
            # A trial with a failed run is worth nothing, but the search has to know that.
            study.tell(trial, tried[-1].valid if tried[-1].valid is not None else 0.0)
    if first is not None:
        return _halving(cell, [c.params for c in tried], protocol, means, splits)
    return choose(cell, protocol, tried, "optuna", report, means)


def measure(params: dict[str, Any], specs: Sequence[RunSpec], report: Report) -> Candidate:
    """A candidate's mean validation score; None as soon as one of its runs failed."""
    records = [report.ok(spec) for spec in specs]
    scores = [r["scores"]["valid"]["balanced_accuracy"] for r in records if r]
    whole = len(scores) == len(specs)
    return Candidate(params, statistics.fmean(scores) if whole else None, len(scores))


def _score(candidate: Candidate) -> float:
    # Means of equal scores can differ in the last bit, and would then not tie.
    return -1.0 if candidate.valid is None else round(candidate.valid, 12)


def choose(
    cell: Cell,
    protocol: Protocol,
    candidates: Sequence[Candidate],
    method: str,
    report: Report,
    means: Means,
    shown: Sequence[Candidate] | None = None,
) -> Choice | None:
    """Apply the rule and write the choice; None, with a reason, if no candidate ran through."""
    best = max(candidates, key=_score)  # max keeps the first of equals
    if best.valid is None:
        if cell.data.name not in report.absent and not report.unfinished:
            say(f"{cell.model} on {cell.data.label}: not tuned, every setting had a failed run.")
        return None
    existing = read_choice(means.store.root, cell)
    kept = existing and current(existing, cell) and weaker(method, best.runs, existing)
    if existing and kept and not means.force:
        say(
            f"{cell.model} on {cell.data.label}: the choice that exists rests on a fuller search "
            f"({existing.method}, {existing.splits} splits) and is kept; --force replaces it."
        )
        return existing
    edge = at_edge(cell, best.params)
    record = report.records[cell.specs(best.params, protocol)[0].key]
    choice = Choice(
        model=cell.model,
        dataset=cell.data.label,
        method=method,
        repeats=protocol.repeats,
        folds=protocol.folds,
        splits=best.runs,
        revision=cell.entry.revision,
        search=search_digest(cell),
        params=best.params,
        valid=best.valid,
        edge=edge,
        candidates=list(shown or candidates),
        data_sha256=record["data"]["sha256"],
    )
    write_choice(means.store.root, cell, choice)
    if edge:
        values = ", ".join(f"{name} = {best.params[name]:g}" for name in edge)
        say(
            f"{cell.model} on {cell.data.label}: {values} was chosen at the edge of what was searched."
        )
    return choice


def weaker(method: str, splits: int, existing: Choice) -> bool:
    """Whether a search saw less than the one behind the existing choice."""
    return (method == "halving", -splits) > (existing.method == "halving", -existing.splits)


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
        margin = 0.01 * (r.high - r.low)
        if not r.low + margin < params[name] < r.high - margin:
            edge.append(name)
    return edge


def require_search(cells: Sequence[Cell]) -> None:
    """Tuning something that has nothing to tune is a misunderstanding worth a message."""
    if not any(cell.search.grid or cell.search.ranges for cell in cells):
        names = sorted({cell.model for cell in cells})
        raise UserError(f"Nothing to tune: {', '.join(names)} has fixed settings. Use `run`.")
