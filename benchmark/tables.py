"""Tables from records: what was planned, what exists of it, and how it compares with the paper.

A table is built from the runs that its recipe plans, not from whatever files lie around, so that
every gap has a reason and every number can be traced to its records. Nothing is trained or loaded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmark import paper, registry, settings
from benchmark import statistics as stats
from benchmark.cells import Gap, Result, Row, Table
from benchmark.plan import Cell, Protocol
from benchmark.progress import say
from benchmark.ranking import with_summaries
from benchmark.recipes import Metric, Recipe, Record, read_recipe
from benchmark.settings import EDITIONS, Choice
from benchmark.spec import DataRef, RunSpec, UserError
from benchmark.statistics import Sample, Verdict
from benchmark.store import Store, refuse_mixed

PROTOCOL = Protocol()


def build(
    name: str,
    results: Path,
    editions: Sequence[str] = EDITIONS,
    methods: Sequence[str] | None = None,
    datasets: Sequence[str] | None = None,
) -> Table:
    """Build the table called `name` from the records below `results`."""
    return build_recipe(read_recipe(name).only(methods, datasets), results, editions)


def build_recipe(recipe: Recipe, results: Path, editions: Sequence[str] = EDITIONS) -> Table:
    """Build a table from the records that its recipe plans."""
    for edition in editions:
        registry.check_name("edition", edition, EDITIONS)
    plans = _plans(recipe, results)
    store = Store(results)
    records, problems = store.find(list(dict.fromkeys(k for plan in plans for k in plan.keys)))
    for problem in problems:
        say(f"not used: {problem}\n  `python -m benchmark reproduce {recipe.name}` renews it.")
    unreadable = {problem.path for problem in problems}
    refuse_mixed([record for plan in plans if plan.known for record in plan.found(records)])

    used = {plan.dataset for plan in plans if any(plan.found(records))}
    found = {}
    for plan in plans:
        lost = sum(store.path(key) in unreadable for key in plan.keys)
        for metric in recipe.metrics:
            if plan.cell is None or metric.applies_to(plan.cell.entry):
                result = _result(recipe, plan, metric, records, lost, plan.dataset in used)
                found[plan.method, plan.dataset, metric.name, plan.edition] = result
    table = Table(
        recipe=recipe,
        editions=tuple(editions),
        rows=tuple(_row(method) for method in recipe.methods),
        results=found,
        summaries={},
        ranked=((), ()),
        problems=tuple(str(problem) for problem in problems),
    )
    return with_summaries(table, recipe.rank) if recipe.rank else table


def _row(method: str) -> Row:
    entry = registry.models().get(method.partition(":")[0])
    label = paper.LABELS.get(method) or (entry.label if entry and ":" not in method else method)
    family = paper.family(method.partition(":")[0]) or (entry.family if entry else "own")
    return Row(method, label, family)


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
    """Where the settings are not known: those of all candidates, to learn what became of them."""
    gap: Gap | None = None
    choice: Choice | None = None

    @property
    def known(self) -> bool:
        return self.gap is None

    def found(self, records: Mapping[str, Record]) -> list[Record]:
        return [records[key] for key in self.keys if key in records]


def _plans(recipe: Recipe, results: Path) -> list[_Plan]:
    references = {label: registry.data_ref(label) for label in recipe.datasets}
    plans = []
    for method in recipe.methods:
        for label, data in references.items():
            if method.partition(":")[0] not in registry.models():
                gap = Gap("not run", "not implemented yet")
                plans.append(_Plan(method, label, "prescribed", gap=gap))
                continue
            entry, overrides = registry.model_ref(method)
            cell = Cell(entry, data, overrides)
            plans.append(_prescribed(method, label, cell, results))
            params = settings.published(cell)
            if params is not None:
                plans.append(_known(method, label, "published", cell, params))
    return plans


def _known(
    method: str, label: str, edition: str, cell: Cell, params: dict[str, Any], choice: Any = None
) -> _Plan:
    first, keys = _keys(cell, params)
    return _Plan(method, label, edition, cell, first.params, first.setting, keys, choice=choice)


def _keys(cell: Cell, params: Mapping[str, Any]) -> tuple[RunSpec, tuple[str, ...]]:
    """The first run of a setting and the keys of all."""
    first, *_ = cell.specs(params, PROTOCOL)
    # They differ in the split only, which comes last; hashing each would cost most of a table.
    shared = first.key.rpartition("/")[0]
    return first, tuple(f"{shared}/r{repeat}f{fold}" for repeat, fold in PROTOCOL.splits())


def _prescribed(method: str, label: str, cell: Cell, results: Path) -> _Plan:
    plan = partial(_Plan, method, label, "prescribed", cell)
    if not (cell.search.grid or cell.search.ranges):
        return _known(method, label, "prescribed", cell, settings.prescribed(results, cell) or {})
    try:
        choice = settings.read_choice(results, cell)
    except (UserError, OSError) as error:
        say(f"not used: {error}")
        return plan(gap=Gap("not run", "the choice of settings cannot be read", "tune"))
    if choice is not None and settings.current(choice, cell):
        return _known(method, label, "prescribed", cell, choice.params, choice)
    tried = [_keys(cell, params)[1] for params in cell.candidates()]
    keys = tuple(key for keys in tried for key in keys)
    return plan(keys=keys, gap=Gap("not run", "not tuned yet", "tune"))


def _result(
    recipe: Recipe,
    plan: _Plan,
    metric: Metric,
    records: Mapping[str, Record],
    lost: int,
    dataset_in_use: bool,
) -> Result:
    found = plan.found(records)
    good = [record for record in found if record["status"] == "ok"]
    failed = [record for record in found if record["status"] != "ok"]
    measured = [metric.of(record) for record in good] if plan.known else []
    values = tuple(value for value in measured if value is not None)
    planned = len(PROTOCOL.splits())
    failures = dict(Counter(record["status"] for record in failed))
    result = Result(
        method=plan.method,
        dataset=plan.dataset,
        metric=metric.name,
        edition=plan.edition,
        values=values,
        planned=planned,
        verdict=Verdict("not run", ""),
        printed=recipe.printed(plan.method, plan.dataset, metric.name),
        setting=plan.setting,
        params=plan.params,
        choice=plan.choice,
        failures=failures,
        message=failed[0]["error"]["message"] if failed else "",
    )
    gap = None
    if len(values) < planned:
        gap = _gap(recipe, plan, failures, len(good), len(measured) - len(values), lost)
        if not found and not lost and not dataset_in_use and plan.cell and by_hand(plan.cell.data):
            gap = Gap("data unavailable", "the data have to be fetched by hand", "data status")
    return replace(result, gap=gap, note=_note(plan.choice), verdict=_verdict(result, gap, metric))


def _gap(
    recipe: Recipe, plan: _Plan, failures: dict[str, int], good: int, undefined: int, lost: int
) -> Gap:
    """Why a cell is not complete, from what became of its runs."""
    kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(failures.items()))
    if failures.keys() == {"missing_data"} and not good:
        return Gap("data unavailable", "the data were not on the machine", "data status")
    if plan.gap is not None:
        reason = f"{plan.gap.reason}; candidates failed: {kinds}" if kinds else plan.gap.reason
        return replace(plan.gap, reason=reason)
    planned, again = len(plan.keys), f"reproduce {recipe.name}"
    if not good and sum(failures.values()) == planned:
        return Gap("failed", f"all {planned} runs failed: {kinds}", again)
    absent = planned - good - sum(failures.values()) - lost
    parts = [
        kinds,
        f"{lost} unreadable" if lost else "",
        f"{undefined} undefined" if undefined else "",
        f"{absent} not run" if absent else "",
    ]
    if absent == planned:
        return Gap("not run", "not run yet", again)
    detail = ", ".join(filter(None, parts))
    return Gap("incomplete", f"{good - undefined} of {planned} runs: {detail}", again)


def by_hand(data: DataRef) -> bool:
    """Whether a dataset comes neither with the project nor from an address.

    Judged by the registry and not by this machine: a report must not depend on where it is built.
    """
    entry = registry.datasets()[data.name]
    sources: dict[str, list[bool]] = defaultdict(list)
    for file in entry.files:
        sources[file.get("source", file["name"])].append("urls" in file)
    return bool(sources) and not entry.embedded and not any(map(all, sources.values()))


def _note(choice: Choice | None) -> str:
    if choice and choice.method == "halving":
        return "settings chosen by successive halving, which is cheaper than the paper's rule"
    if choice and (choice.repeats, choice.folds) != (PROTOCOL.repeats, PROTOCOL.folds):
        return f"settings chosen on {choice.repeats} x {choice.folds} splits"
    return ""


def _verdict(result: Result, gap: Gap | None, metric: Metric) -> Verdict:
    if gap is not None:
        return Verdict(gap.word, gap.reason)
    printed = result.printed
    if printed is None or printed.mean is None:
        return Verdict("not in paper", "the paper prints a dash" if printed else "no such cell")
    assert result.mean is not None
    ours = Sample(result.mean, result.std, result.n)
    return stats.compare(ours, Sample(printed.mean, printed.std), metric.decimals)
