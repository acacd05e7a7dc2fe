"""Tables from records: what was planned, what exists of it, and how it compares with the paper.

A table is built from the runs that its recipe plans, not from whatever files lie around, so that
every gap has a reason and every number can be traced to its records. Nothing is trained or loaded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmark import paper, registry, settings
from benchmark import statistics as stats
from benchmark.paper import Printed
from benchmark.plan import Cell, Protocol
from benchmark.progress import say
from benchmark.settings import EDITIONS, Choice
from benchmark.spec import DataRef, RunSpec, UserError
from benchmark.statistics import Sample, Verdict
from benchmark.store import Store

PROTOCOL = Protocol()
Record = dict[str, Any]
Pair = tuple[float, float | None]
"""A mean and its deviation."""

# Recipes -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Metric:
    """A number that records hold, and how a table shows it."""

    name: str
    value: str
    """Path into the record: `scores.test.balanced_accuracy`."""
    heading: str
    scale: float = 1.0
    decimals: int = 2

    def of(self, record: Record) -> float | None:
        """The record's value; None where it is undefined."""
        found: Any = record
        for step in self.value.split("."):
            found = found.get(step) if isinstance(found, dict) else None
        return None if found is None else self.scale * float(found)

    def applies_to(self, entry: registry.ModelEntry) -> bool:
        return entry.selects != "none" or not self.value.startswith("selection.")


@dataclass(frozen=True)
class Rule:
    """How ranks are computed, and from which metric."""

    metric: str
    ties: str = "min"
    missing: str = "mean"
    ddof: int = 1


@dataclass(frozen=True)
class Recipe:
    """What a table consists of: an entry of tables.toml."""

    name: str
    title: str
    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    metrics: tuple[Metric, ...]
    paper: int | None = None
    rank: Rule | None = None

    def printed(self, method: str, dataset: str, metric: str) -> Printed | None:
        """The paper's cell; `dataset` is empty for values over all datasets."""
        return None if self.paper is None else paper.cell(self.paper, method, dataset, metric)

    def only(self, methods: Sequence[str] | None, datasets: Sequence[str] | None) -> Recipe:
        """The same table with these rows and columns; models of one's own may be among the rows."""
        for name in methods or ():
            if name not in self.methods:
                registry.model_ref(name)
        for name in datasets or ():
            registry.check_name(f"dataset of {self.name}", name, self.datasets)
        return replace(
            self,
            methods=tuple(dict.fromkeys(methods)) if methods else self.methods,
            datasets=tuple(d for d in self.datasets if not datasets or d in datasets),
        )


def read_recipe(name: str) -> Recipe:
    """The recipe called `table2`, or just `2`."""
    name = f"table{name}" if name.isdigit() else name
    registry.check_name("table", name, registry.tables())
    return parse_recipe(name, registry.tables()[name])


def parse_recipe(name: str, entry: Mapping[str, Any]) -> Recipe:
    """An entry of tables.toml as a recipe."""
    number = entry.get("paper")
    metrics = [
        Metric(
            name=metric,
            value=fields["value"],
            heading=fields.get("heading", metric),
            scale=fields.get("scale", 1.0),
            decimals=paper.decimals(number, metric) if number else 2,
        )
        for metric, fields in entry["metrics"].items()
    ]
    plain = Counter(label.partition(":")[0] for label in entry["datasets"])
    mixed = sorted(dataset for dataset, times in plain.items() if times > 1)
    if mixed:
        raise UserError(
            f"Table {name!r} has several variants of {', '.join(mixed)} in one ranking. They are "
            f"different data: give each variant a table of its own in tables.toml."
        )
    return Recipe(
        name=name,
        title=entry["title"],
        methods=tuple(entry["methods"]),
        datasets=tuple(entry["datasets"]),
        metrics=tuple(metrics),
        paper=number,
        rank=Rule(**entry["rank"]) if "rank" in entry else None,
    )


# What a table holds ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gap:
    """Why a cell is not complete, and the command that mends it."""

    word: str
    """The verdict that it means."""
    reason: str
    verb: str = ""
    """`tune`, `reproduce table2`, ...: what to run for this model and dataset; empty: nothing."""

    def remedy(self, methods: Iterable[str], datasets: Iterable[str]) -> str:
        """The command for these models and datasets; empty if no command helps."""
        if self.verb in ("", "data status"):
            return self.verb and "python -m benchmark data status"
        names = f"--models {','.join(methods)} --datasets {','.join(datasets)}"
        return f"python -m benchmark {self.verb} {names}"


@dataclass(frozen=True)
class Row:
    """One method of a table."""

    method: str
    label: str
    family: str


@dataclass(frozen=True)
class Result:
    """One cell of a table in one edition."""

    method: str
    dataset: str
    metric: str
    edition: str
    values: tuple[float, ...]
    """One per run that succeeded, in the order of the splits."""
    planned: int
    verdict: Verdict
    printed: Printed | None = None
    gap: Gap | None = None
    note: str = ""
    """Something a reader must know of a complete cell, e.g. that its search was cut short."""
    setting: str = ""
    params: dict[str, Any] | None = None
    choice: Choice | None = None
    failures: dict[str, int] = field(default_factory=dict)
    message: str = ""
    """The first failed run's message."""

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def complete(self) -> bool:
        return self.gap is None

    @property
    def mean(self) -> float | None:
        return stats.mean_std(self.values)[0] if self.values else None

    @property
    def std(self) -> float | None:
        return stats.mean_std(self.values)[1] if self.values else None


@dataclass(frozen=True)
class Summary:
    """One method over all ranked datasets: its mean rank, or its ADTM."""

    method: str
    edition: str
    name: str
    """mean_rank | adtm_percent | adtm_pooled_percent."""
    ours: Pair | None
    n: int
    """Datasets that count."""
    printed: Pair | None
    """What the paper prints, over all its methods and datasets."""
    verdict: Verdict
    """Against the printed value."""
    same_cells: Pair | None = None
    """The paper's value computed from its cells, for exactly the methods and datasets of ours."""
    same_verdict: Verdict | None = None


@dataclass(frozen=True)
class Table:
    """A built table: everything that any of its renderings shows."""

    recipe: Recipe
    editions: tuple[str, ...]
    rows: tuple[Row, ...]
    results: dict[tuple[str, str, str, str], Result]
    """By method, dataset, metric and edition; only what exists in that edition."""
    summaries: dict[tuple[str, str, str], Summary]
    """By method, edition and name."""
    ranked: tuple[tuple[str, ...], tuple[str, ...]]
    """The methods and the datasets that ranks and ADTM are computed over."""
    problems: tuple[str, ...]
    """Files that should be records and are not."""

    @property
    def shown(self) -> list[Result]:
        """The results of the editions asked for, in the table's order."""
        return [
            result
            for row in self.rows
            for edition in self.editions
            for metric in self.recipe.metrics
            for dataset in self.recipe.datasets
            if (result := self.results.get((row.method, dataset, metric.name, edition)))
        ]

    @property
    def complete(self) -> bool:
        """Whether everything that was asked for exists."""
        return bool(self.shown) and all(result.complete for result in self.shown)

    @property
    def fully_ranked(self) -> bool:
        """Whether ranks are over the paper's methods and datasets, as its printed ranks are."""
        methods, datasets = self.ranked
        cells = paper.cells(self.recipe.paper) if self.recipe.paper is not None else []
        printed = {c.method for c in cells}, {c.dataset for c in cells if c.dataset}
        return bool(cells) and (set(methods), set(datasets)) == printed

    def in_edition(self, method: str, dataset: str, metric: str, edition: str) -> Result | None:
        """The edition's result; where `published` settings are not known, the prescribed one."""
        return self.results.get((method, dataset, metric, edition)) or self.results.get(
            (method, dataset, metric, "prescribed")
        )


# Building ----------------------------------------------------------------------------------------


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
    return _with_summaries(table, recipe.rank) if recipe.rank else table


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
    if choice is not None:
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
    if choice and choice.splits < len(PROTOCOL.splits()):
        return f"settings chosen on {choice.splits} splits only"
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


def refuse_mixed(records: Iterable[Record]) -> None:
    """Raise if runs on one dataset saw different data, or different rows on one split."""
    seen: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record["status"] != "ok":
            continue
        label = DataRef(**record["spec"]["data"]).label
        split = f"{label}, repeat {record['spec']['repeat']}, fold {record['spec']['fold']}"
        seen[label, "data"][record["data"]["sha256"]].append(record["key"])
        seen[split, "splits"][record["split"]["sha256"]].append(record["key"])
    for (where, what), groups in seen.items():
        if len(groups) > 1:
            raise UserError(_mixed(where, what, groups))


def _mixed(where: str, what: str, groups: Mapping[str, list[str]]) -> str:
    ordered = sorted(groups.items(), key=lambda item: -len(set(item[1])))
    lines = [
        f"  {len(set(keys))} with {what} {sha[:12]}: {', '.join(sorted(set(keys))[:3])}"
        + (", ..." if len(set(keys)) > 3 else "")
        for sha, keys in ordered
    ]
    models = sorted({key.split("/")[0] for _, keys in ordered[1:] for key in keys})
    dataset = where.split(",")[0]
    return (
        f"Records on {where} were made with different {what}, so they cannot be compared:\n"
        + "\n".join(lines)
        + f"\nDecide which is right and do the others again, for example\n"
        f"  python -m benchmark run --models {','.join(models)} --datasets {dataset} --force"
    )


# Ranks and ADTM ----------------------------------------------------------------------------------


def _with_summaries(table: Table, rule: Rule) -> Table:
    """Add ranks and ADTM, ours and the paper's, over the cells that all editions have."""
    recipe = table.recipe
    methods, datasets = ranked_cells(table, rule.metric)
    table = replace(table, ranked=(methods, datasets))
    if len(methods) < 2:
        methods, datasets = (), ()
        table = replace(table, ranked=((), ()))

    def matrix(value: Callable[[str, str], Any]) -> list[list[Any]]:
        return [[value(method, dataset) for dataset in datasets] for method in methods]

    def has(method: str, dataset: str) -> bool:
        return _complete(table, method, dataset, rule.metric)

    def printed(method: str, dataset: str) -> float | None:
        cell = recipe.printed(method, dataset, rule.metric)
        return cell.mean if cell and has(method, dataset) else None

    theirs = matrix(printed)
    # A method without any printed value would be left out of the paper's ranks, but not of ours.
    comparable = bool(methods) and all(any(x is not None for x in row) for row in theirs)
    rank = partial(stats.ranks, ties=rule.ties, missing=rule.missing)
    summaries: list[Summary] = []
    for edition in table.editions:

        def runs(method: str, dataset: str, edition: str = edition) -> tuple[float, ...] | None:
            result = table.in_edition(method, dataset, rule.metric, edition)
            return result.values if result and has(method, dataset) else None

        cells = matrix(runs)
        ours = [[None if c is None else stats.mean_std(c)[0] for c in row] for row in cells]
        make = partial(_summaries, table, rule, edition)
        paper_ranks = rank(theirs) if comparable else None
        summaries += make("mean_rank", rank(ours), paper_ranks)
        paper_adtm = _percent(stats.distances(theirs)) if comparable else None
        summaries += make("adtm_percent", _percent(stats.distances(ours)), paper_adtm)
        summaries += make("adtm_pooled_percent", _percent(stats.pooled_distances(cells)), None)
    return replace(table, summaries={(s.method, s.edition, s.name): s for s in summaries})


def ranked_cells(table: Table, metric: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The methods and datasets to rank over, where some have no value yet.

    A dataset counts if more than half of the methods with any value have one there; a method
    counts if it has a value on more than half of these datasets. What is still missing is filled
    by the rule; were a method filled on most datasets, its rank would be made up.
    """
    recipe = table.recipe
    have = {
        (method, dataset)
        for method in recipe.methods
        for dataset in recipe.datasets
        if _complete(table, method, dataset, metric)
    }
    started = {method for method, _ in have}
    datasets = [
        dataset
        for dataset in recipe.datasets
        if 2 * sum((method, dataset) in have for method in started) > len(started)
    ]
    methods = [
        method
        for method in recipe.methods
        if 2 * sum((method, dataset) in have for dataset in datasets) > len(datasets)
    ]
    return tuple(methods), tuple(datasets)


def _complete(table: Table, method: str, dataset: str, metric: str) -> bool:
    """Whether every edition has all runs, so that editions are ranked over the same cells."""
    found = [table.in_edition(method, dataset, metric, edition) for edition in table.editions]
    return bool(found) and all(result and result.complete for result in found)


def _percent(rows: stats.Filled) -> stats.Filled:
    return [[None if value is None else 100 * value for value in row] for row in rows]


def _summaries(
    table: Table,
    rule: Rule,
    edition: str,
    name: str,
    ours: stats.Filled,
    theirs: stats.Filled | None,
) -> list[Summary]:
    """One summary per method of the table, also for those that are not ranked."""
    methods, _ = table.ranked
    values = dict(zip(methods, ours, strict=True))
    paper_values = dict(zip(methods, theirs, strict=True)) if theirs else {}
    made = []
    for row in table.rows:
        cell = table.recipe.printed(row.method, "", name)
        printed = (cell.mean, cell.std) if cell and cell.mean is not None else None
        mine = values.get(row.method)
        summary = Summary(
            row.method,
            edition,
            name,
            ours=stats.over_datasets([mine], rule.ddof)[0] if mine else None,
            n=sum(value is not None for value in mine or ()),
            printed=printed,
            verdict=_not_ranked(table, row.method, rule.metric),
        )
        if mine and summary.ours:
            theirs_here = paper_values.get(row.method, [None] * len(mine))
            same = stats.over_datasets([theirs_here], rule.ddof)[0]
            test = partial(_test, mine, theirs_here, ddof=rule.ddof)
            summary = replace(
                summary,
                same_cells=same,
                same_verdict=test(same) if same else None,
                verdict=_against_print(table, test, printed),
            )
        made.append(summary)
    return made


def _test(
    ours: Sequence[float | None], theirs: Sequence[float | None], against: Pair, ddof: int
) -> Verdict:
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None]
    mine, paper_values = [a for a, _ in pairs], [b for _, b in pairs]
    return stats.compare_over_datasets(mine, paper_values, Sample(*against), 2, ddof)


def _against_print(table: Table, test: Callable[[Pair], Verdict], printed: Pair | None) -> Verdict:
    if printed is None:
        return Verdict("not in paper", "the paper prints no such value")
    if not table.fully_ranked:
        methods, datasets = table.ranked
        over = f"{len(methods)} methods and {len(datasets)} datasets"
        return Verdict("incomplete", f"over {over}, not over all of the paper's")
    return test(printed)


def _not_ranked(table: Table, method: str, metric: str) -> Verdict:
    have = sum(_complete(table, method, d, metric) for d in table.recipe.datasets)
    if not have:
        return Verdict("not run", "no complete cell")
    if not table.ranked[0]:
        return Verdict("incomplete", "ranks need two methods with complete cells")
    return Verdict("incomplete", f"complete on too few datasets ({have}) to be ranked")
