"""The measured cells of a table: what was planned, what exists of it, how it compares.

A table is built from the runs that its recipe plans, not from whatever files lie around, so that
every gap has a reason and every number can be traced to its records. Nothing is trained or loaded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmark import paper, text
from benchmark.data.places import NOT_PUBLISHED, by_hand
from benchmark.experiments import timing
from benchmark.paper import Printed
from benchmark.progress import say
from benchmark.protocol import registry
from benchmark.protocol.choices import EDITIONS, Choice, Setting
from benchmark.protocol.plan import Cell, Protocol, keys_of
from benchmark.protocol.spec import NO_AUROC, DataRef
from benchmark.protocol.stored import Damaged, or_told
from benchmark.runner.records import Store, outdated, refuse_mixed
from benchmark.tables import pairing
from benchmark.tables.convergence import failure
from benchmark.tables.recipes import Metric, Recipe, Record, follow
from benchmark.tables.statistics import mean_std
from benchmark.tables.table import Gap, Result, Row, Table, beside_printed
from benchmark.tables.verdict import APART, Sample, Shared, Verdict, compare, same_or_not

PROTOCOL = Protocol()


def measure(recipe: Recipe, store: Store, editions: Sequence[str] = EDITIONS) -> Table:
    """The cells of a table that its recipe plans runs for; the others are missing."""
    for edition in editions:
        registry.check_name("edition", edition, EDITIONS)
    only_computed = all(metric.computed for metric in recipe.metrics)
    plans = [] if only_computed else plans_of(recipe, store)
    records, problems = store.find(list(dict.fromkeys(k for plan in plans for k in plan.keys)))
    # What an own model did before its file was edited is not what it does.
    records = {key: record for key, record in records.items() if not outdated(record)}
    for problem in problems:
        say(f"not used: {problem}\n  `python -m benchmark reproduce {recipe.name}` renews it.")
    unreadable = {problem.path for problem in problems}
    refuse_mixed([record for plan in plans if plan.known for record in plan.found(records)])

    @cache
    def shared(model: str, label: str, metric: Metric, printed: Printed | None) -> Shared:
        cell = Cell(registry.models()[model], recipe.data(label))
        return pairing.used(store, cell, metric, printed)

    used = {plan.dataset for plan in plans if any(plan.found(records))}
    found = {}
    for plan in plans:
        lost = sum(store.path(key) in unreadable for key in plan.keys) if unreadable else 0
        for metric in recipe.metrics:
            if metric.computed or (plan.cell and not metric.applies_to(plan.cell.entry)):
                continue
            if metric.timed:
                if plan.edition == "rule":
                    result = _timed(recipe, plan, metric, store.root, plan.dataset in used)
                    found[plan.method, plan.dataset, metric.name, plan.edition] = result
                continue
            result = _result(recipe, plan, metric, records, lost, plan.dataset in used, shared)
            found[plan.method, plan.dataset, metric.name, plan.edition] = result
    return Table(
        recipe=recipe,
        editions=tuple(editions),
        rows=_rows(recipe),
        results=found,
        summaries={},
        ranked=((), ()),
        problems=tuple(str(problem) for problem in problems),
    )


def _rows(recipe: Recipe) -> tuple[Row, ...]:
    """Two classes of one name, from two modules, are shown with their modules."""
    rows = [_row(recipe, method) for method in recipe.methods]
    times = Counter(row.label for row in rows)
    return tuple(replace(r, label=r.method) if times[r.label] > 1 else r for r in rows)


def _row(recipe: Recipe, method: str) -> Row:
    source = recipe.source(method)
    name = re.split("[:|]", source.model)[0]
    entry = registry.find_model(name)
    label = source.label or registry.label(method)
    # Rows that are no models, such as averages, belong to the paper's own kind of methods.
    other = "local" if method in recipe.rows else "own"
    return Row(method, label, paper.family(name) or (entry.family if entry else other))


@dataclass(frozen=True)
class _Plan:
    """The runs behind one method on one dataset in one edition."""

    method: str
    dataset: str
    edition: str
    cell: Cell | None = None
    params: dict[str, Any] | None = None
    setting: str = ""
    keys: tuple[str, ...] = ()
    """Of its runs; where no setting is chosen, those of all candidates, so that their failures can be told."""
    gap: Gap | None = None
    choice: Choice | None = None
    base: bool = False
    """Whether the settings are those chosen for the model without its switches."""
    default: bool = False
    """Whether nothing was chosen: the registry's settings, or those of the class itself."""

    @property
    def known(self) -> bool:
        return self.gap is None

    def found(self, records: Mapping[str, Record]) -> list[Record]:
        return [records[key] for key in self.keys if key in records]


def plans_of(recipe: Recipe, store: Store) -> list[_Plan]:
    """The runs behind every cell of a table that is measured and not computed."""
    plans = []
    for method in recipe.methods:
        if recipe.source(method).average or recipe.source(method).given:
            continue
        for label in recipe.datasets:
            cell = recipe.cell(method, label)
            if cell is None:
                gap = Gap("not run", "not implemented yet")
                plans.append(_Plan(method, label, "rule", gap=gap))
                continue
            plans.append(_by_rule(recipe, method, label, cell, store))
            recovered = store.setting(cell, "recovered")
            if recovered is not None:
                plans.append(_known(method, label, "recovered", cell, recovered))
    return plans


def _known(
    method: str,
    label: str,
    edition: str,
    cell: Cell,
    setting: Setting,
    base: bool = False,
) -> _Plan:
    first, keys = keys_of(cell, setting.params)
    return _Plan(
        method, label, edition, cell, first.params, first.setting, keys,
        choice=setting.choice, base=base,
    )  # fmt: skip


def sources(settings: str, cell: Cell) -> tuple[str, ...]:
    """Where a row's settings come from, in this order; shipped cells stand for what was chosen."""
    if settings != "auto":
        return (settings,)
    return ("own", "base", "default") if cell.own else ("own",)


def _by_rule(recipe: Recipe, method: str, label: str, cell: Cell, store: Store) -> _Plan:
    source = recipe.source(method).settings
    base = source == "base"
    plan = partial(_Plan, method, label, "rule", cell, base=base)
    try:
        setting = store.setting(cell, *sources(source, cell))
    except Damaged as error:
        say(f"not used: {error}")
        return plan(gap=Gap("not run", "the choice of settings cannot be read", "tune"))
    if setting is not None:
        return replace(
            _known(method, label, "rule", cell, setting, base), default=setting.origin == "default"
        )
    if base:
        return plan(gap=Gap("not run", f"{cell.entry.name} is not tuned yet", recipe.tuning))
    tried = [keys_of(cell, params)[1] for params in cell.candidates()]
    keys = tuple(key for keys in tried for key in keys)
    return plan(keys=keys, gap=Gap("not run", "not tuned yet", recipe.tuning))


def out_of_reach(data: DataRef, in_use: bool) -> Gap | None:
    """Why nothing can be expected on data that nobody has brought here; None once there are runs."""
    if in_use or not by_hand(data.name):
        return None
    return Gap("data unavailable", NOT_PUBLISHED, "data get")


def _timed(
    recipe: Recipe, plan: _Plan, metric: Metric, results: Path, dataset_in_use: bool
) -> Result:
    """A cell of times or sizes, from the timed runs."""
    place = plan.method, plan.dataset, metric, plan.edition
    model = plan.cell.model if plan.cell else ""
    result = beside_printed(recipe, *place, planned=timing.REPEATS, model=model)
    timed = or_told(partial(timing.read, results, plan.cell)) if plan.cell else None
    if timed is None:
        gap = plan.gap
        if plan.cell is not None:
            untimed = Gap("not run", "not timed yet", "time")
            gap = out_of_reach(plan.cell.data, dataset_in_use) or untimed
        assert gap is not None
        return replace(result, gap=gap, verdict=Verdict(gap.word, gap.reason))
    name = metric.value.removeprefix("timing.")
    found = getattr(timed, name)
    values = tuple(metric.scale * x for x in (found if isinstance(found, list) else [found]))
    result = replace(result, values=values, planned=len(values), params=timed.params)
    if isinstance(found, list):
        busy = "" if timed.quiet else "timed while other processes were busy"
        note = "; ".join(filter(None, [_timed_with(plan, timed), busy]))
        verdict = _on_other_hardware(result, timed)
        return replace(result, note=note, verdict=verdict, about=timed.hardware)
    if result.printed is None or result.printed.mean is None:
        return replace(result, verdict=Verdict("not in paper", "no such cell"))
    [size] = values
    return replace(result, verdict=same_or_not(size, result.printed.mean, metric.decimals))


def _timed_with(plan: _Plan, timed: timing.Timing) -> str:
    if plan.params == timed.params:
        return ""
    return (
        "default settings, not tuned"
        if plan.gap
        else "timed with settings that were chosen earlier"
    )


def _on_other_hardware(result: Result, timed: timing.Timing) -> Verdict:
    """Times of two machines cannot agree or disagree; who is faster than whom can (judge/times.py)."""
    printed = result.printed
    if printed is None or printed.mean is None or result.mean is None:
        return Verdict("not in paper", "no such cell")
    times = f"{result.mean / printed.mean:.2g} times the printed value" if printed.mean else ""
    why = f"{times}, on {timed.hardware}"
    return Verdict("other hardware", why, result.mean - printed.mean)


def _result(
    recipe: Recipe,
    plan: _Plan,
    metric: Metric,
    records: Mapping[str, Record],
    lost: int,
    dataset_in_use: bool,
    shared: Callable[[str, str, Metric, Printed | None], Shared],
) -> Result:
    found = plan.found(records)
    good = [record for record in found if record["status"] == "ok"]
    failed = [record for record in found if record["status"] != "ok"]
    metric = recipe.source(plan.method).metric(metric)
    measured = [metric.of(record) for record in good] if plan.known else []
    within = [follow(record, metric.spread) for record in good] if metric.spread else []
    values = tuple(value for value in measured if value is not None)
    planned = len(PROTOCOL.splits())
    failures = dict(Counter(record["status"] for record in failed))
    result = beside_printed(
        recipe,
        plan.method,
        plan.dataset,
        metric,
        plan.edition,
        values=values,
        planned=planned,
        setting=plan.setting,
        params=plan.params,
        choice=plan.choice,
        failures=failures,
        message=failed[0]["error"]["message"] if failed else "",
        within=tuple(float(x) for x in within if x is not None),
        model=_named(plan),
        experiment=f"{plan.keys[0]}:{metric.value}" if plan.known else "",
        unconverged=failure(good, plan.cell.entry.selects, planned)
        if plan.known and plan.cell
        else None,
    )
    gap = None
    if len(values) < planned:
        undefined = _undefined(metric, len(measured) - len(values))
        gap = _gap(recipe, plan, failures, len(good), len(values), undefined, lost)
        if plan.cell and not found and not lost:
            gap = out_of_reach(plan.cell.data, dataset_in_use) or gap
    verdict = _verdict(result, gap, metric, plan, shared)
    if gap is None and any(record["data"].get("derived") for record in good):
        verdict = Verdict("data unavailable", f"on another draw, since {NOT_PUBLISHED}")
    return replace(result, gap=gap, note=_note(plan), verdict=verdict)


def _gap(
    recipe: Recipe,
    plan: _Plan,
    failures: dict[str, int],
    good: int,
    defined: int,
    undefined: str,
    lost: int,
) -> Gap:
    """Why a cell is not complete, from what became of its runs."""
    kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(failures.items()))
    if failures.keys() == {"missing_data"} and not good:
        return Gap("data unavailable", "the data were not on the machine", "data get")
    if plan.gap is not None:
        reason = f"{plan.gap.reason}; candidates failed: {kinds}" if kinds else plan.gap.reason
        return replace(plan.gap, reason=reason)
    planned, again = len(plan.keys), recipe.command
    if not good and sum(failures.values()) == planned:
        return Gap("failed", f"all {planned} runs failed: {kinds}", again)
    absent = planned - good - sum(failures.values()) - lost
    parts = [
        kinds,
        f"{lost} unreadable" if lost else "",
        undefined,
        f"{absent} not run" if absent else "",
    ]
    if absent == planned:
        return Gap("not run", "not run yet", again)
    detail = ", ".join(filter(None, parts))
    return Gap(
        "incomplete", f"{defined if plan.known else good} of {planned} runs: {detail}", again
    )


def _undefined(metric: Metric, count: int) -> str:
    if not count:
        return ""
    return f"{count} undefined" + (f" ({NO_AUROC})" if metric.value.endswith(".auroc") else "")


def _named(plan: _Plan) -> str:
    """The model that a remedy has to name."""
    return plan.cell.model if plan.cell else plan.method


def _note(plan: _Plan) -> str:
    choice = plan.choice
    if plan.default:
        return "default settings, not tuned"
    if choice and plan.base and plan.cell and plan.cell.overrides:
        return f"other settings as chosen for {plan.cell.entry.name}"
    if choice and not choice.by_rule:
        return f"settings {choice.search_text}"
    return ""


def _verdict(
    result: Result,
    gap: Gap | None,
    metric: Metric,
    plan: _Plan,
    shared: Callable[[str, str, Metric, Printed | None], Shared],
) -> Verdict:
    if gap is not None:
        return Verdict(gap.word, gap.reason)
    printed = result.printed
    if printed is None:
        return Verdict("not in paper", "no such cell")
    if printed.mean is None:
        return _beside_dash(result, metric)
    known = APART
    if plan.cell:
        # The paper's own runs are no measure of what another row or edition shares with them.
        by_rule = plan.edition == "rule" and not plan.cell.overrides
        name, label = plan.cell.entry.name, plan.cell.data.label
        known = shared(name, label, metric, printed if by_rule else None)
    deterministic = plan.cell is not None and plan.cell.entry.deterministic
    return beside(printed, result.values, result.within, metric, known, deterministic)


def beside(
    printed: Printed,
    values: Sequence[float],
    within: Sequence[float],
    metric: Metric,
    shared: Shared = APART,
    deterministic: bool = False,
) -> Verdict:
    """The verdict on runs beside the printed mean; `within` are their spreads between samples."""
    assert printed.mean is not None
    mean, std = mean_std(values)
    # A printed standard deviation between samples says nothing of runs.
    verdict = compare(
        Sample(mean, std, len(values)),
        Sample(printed.mean, None if metric.spread else printed.std),
        metric.decimals,
        shared=shared,
        deterministic=deterministic,
    )
    spread = mean_std(within)[0] if within else None
    same_spread = printed.std is None or (
        spread is not None and paper.equal_as_printed(spread, printed.std, metric.decimals)
    )
    if not metric.spread or verdict.word != "equal" or same_spread:
        return verdict
    shown = "none" if spread is None else f"{spread:.{metric.decimals}f}"
    why = f"mean equal as printed, standard deviation between samples {shown} is not"
    return replace(verdict, word="inconclusive", why=why, unpaired="inconclusive")


def _beside_dash(result: Result, metric: Metric) -> Verdict:
    """The paper prints a dash where a method failed to converge: a failure of ours agrees with it."""
    value = text.mean_std(result.mean, result.std, metric.decimals)
    if result.unconverged:
        why = f"the paper prints a dash for failed convergence, and ours with {value} fails as well"
        return Verdict("equal", why, unpaired="equal")
    why = f"the paper prints a dash for failed convergence, ours converges: {value}"
    return Verdict("different", why, unpaired="different")
