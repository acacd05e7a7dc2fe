"""Every published cell beside ours: the difference, a verdict and the reason for it.

The numbers come from the records that the cells plan, read once. What the audit found wrong with a
printed cell is part of its verdict: nobody can reproduce a number that contradicts another one.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean

from benchmark import paper, registry
from benchmark import statistics as stats
from benchmark.audit import audit, doubtful
from benchmark.audit.derived import rank_deviation
from benchmark.audit.findings import ACCURACY, FEATURES, Finding, Key, key, read_rows, shown
from benchmark.audit.findings import sheet as as_printed
from benchmark.cells import Result, Table
from benchmark.paper import Printed
from benchmark.ranking import with_summaries
from benchmark.recipes import Metric, Recipe, Rule
from benchmark.settings import EDITIONS
from benchmark.spec import UserError, parse_name
from benchmark.statistics import Sample, Verdict
from benchmark.tables import build_recipe

INCONSISTENT = "paper inconsistent"
WORDS = ("exact", "within noise", "differs", INCONSISTENT, "not run", "data unavailable")
BETWEEN_SAMPLES = "selected_features_std"
"""The ± of a number of features: over the samples of a run, then averaged over runs."""
DRAWS = 200
RENEWED_BY = {"hdlss": "table2", "tabular": "table15", "synthetic": "synthetic"}
"""Per group of datasets, the table that a message about a damaged record tells to reproduce."""


@dataclass(frozen=True)
class Ours:
    """Our value for a published cell in one edition."""

    verdict: Verdict
    mean: float | None = None
    std: float | None = None
    n: int = 0
    """Runs, or datasets for a mean over datasets."""

    @property
    def has_result(self) -> bool:
        # A failure that the paper reports as well is a result without a number.
        return self.mean is not None or self.verdict.word == "exact"


@dataclass(frozen=True)
class Line:
    """A published cell and what we have beside it."""

    printed: Printed
    ours: dict[str, Ours]
    """By edition: `prescribed` always, `published` where such settings are known."""
    finding: Finding | None = None
    """Why the audit doubts the printed cell."""

    @property
    def edition(self) -> str:
        """The edition that the cell is judged by: the one meant to reproduce it, if it was run."""
        published = self.ours.get("published")
        return "published" if published and published.has_result else "prescribed"

    @property
    def verdict(self) -> Verdict:
        return self.ours[self.edition].verdict


def build(results: Path, tables: Sequence[int] | None = None) -> list[Line]:
    """One line per published cell of the tables asked for, in the paper's order."""
    for table in tables or ():
        if table not in paper.tables():
            known = ", ".join(map(str, paper.tables()))
            raise UserError(f"The paper has no numbers in Table {table}. It has them in {known}.")
    cells = [cell for table in tables or paper.tables() for cell in paper.cells(table)]
    built = {group: build_recipe(recipe, results) for group, recipe in _recipes(cells, results)}
    doubts = doubtful(audit())
    summaries = {t: _ranked(t, built) for t in {c.table for c in cells if c.metric == "mean_rank"}}
    ours: dict[Key, dict[str, Ours]] = {}
    for cell in cells:
        if cell.metric == "mean_rank":
            ours[key(cell)] = _rank(cell, summaries[cell.table])
        elif cell.metric != "rank_difference":
            ours[key(cell)] = _measured(cell, built, results)
    for dataset in dict.fromkeys(c.dataset for c in cells if c.metric == "rank_difference"):
        ours |= _rank_differences(dataset, built)
    return [
        Line(cell, _doubted(ours[key(cell)], doubts.get(key(cell))), doubts.get(key(cell)))
        for cell in cells
    ]


def totals(lines: Sequence[Line], edition: str | None = None) -> dict[int, Counter[str]]:
    """Verdicts per table: of the edition that each cell is judged by, or of one edition."""
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    for line in lines:
        ours = line.ours.get(edition or line.edition)
        if ours:
            counts[line.printed.table][ours.verdict.word] += 1
    return dict(counts)


def regressions(lines: Sequence[Line]) -> list[Line]:
    """Cells whose known settings should give the printed number, and do not."""
    published = [line for line in lines if "published" in line.ours]
    return [line for line in published if line.ours["published"].verdict.word == "differs"]


# What is planned ---------------------------------------------------------------------------------


@cache
def _metrics() -> dict[str, dict[str, str]]:
    return {row["metric"]: row for row in read_rows("metrics.csv")}


@cache
def _methods() -> dict[str, dict[str, str]]:
    return {row["method"]: row for row in read_rows("methods.csv")}


def model_of(method: str, results: Path) -> tuple[str, str]:
    """The name of our model for a method of the paper; or an empty name, and why there is none."""
    row = _methods().get(method)
    name = method if method in registry.models() or row is None else row["model"]
    if not name:
        return "", row["why_not"] if row else ""
    base, overrides = parse_name(name)
    if base not in registry.models():
        return "", "not implemented yet"
    if overrides:
        # Checking a switch imports the model's library, which only a tuned variant makes worth while.
        search = registry.models()[base].search
        left = {*search.grid, *search.ranges} - overrides.keys()
        folder = "choices" if left else "runs"
        if not (results / folder / (name.replace(":", "-") if left else base)).is_dir():
            return "", "not tuned yet" if left else "not run yet"
        try:
            registry.model_ref(name)
        except UserError as error:
            return "", str(error).splitlines()[0]
    return name, ""


def _recipes(cells: Sequence[Printed], results: Path) -> list[tuple[str, Recipe]]:
    """What has to be read, once per group of datasets: every record behind these cells."""
    wanted = [
        c
        for c in cells
        if _metrics()[c.metric]["value"] or c.metric in ("mean_rank", "rank_difference")
    ]
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for cell in wanted:
        model, _ = model_of(cell.method, results)
        if model and cell.dataset:
            groups[registry.datasets()[cell.dataset].group].append((model, cell.dataset))
    metrics = [
        Metric(name, row["value"], name, float(row["scale"]))
        for name, row in _metrics().items()
        if row["value"]
    ]
    metrics.append(Metric(BETWEEN_SAMPLES, "selection.std", BETWEEN_SAMPLES))
    return [
        (
            group,
            Recipe(
                name=RENEWED_BY[group],
                title=group,
                methods=tuple(dict.fromkeys(model for model, _ in pairs)),
                datasets=tuple(dict.fromkeys(dataset for _, dataset in pairs)),
                metrics=tuple(metrics),
            ),
        )
        for group, pairs in groups.items()
    ]


# Values of records -------------------------------------------------------------------------------


def _measured(cell: Printed, built: Mapping[str, Table], results: Path) -> dict[str, Ours]:
    why_not = _metrics()[cell.metric]["why_not"]
    model, absent = model_of(cell.method, results)
    if why_not or not model:
        return {"prescribed": Ours(Verdict("not run", why_not or absent))}
    table = built[registry.datasets()[cell.dataset].group]
    found = {
        edition: (result, table.results.get((model, cell.dataset, BETWEEN_SAMPLES, edition)))
        for edition in EDITIONS
        if (result := table.results.get((model, cell.dataset, cell.metric, edition)))
    }
    if not found:
        return {"prescribed": Ours(Verdict("not run", "our model does not measure this"))}
    return {edition: _ours(cell, *pair) for edition, pair in found.items()}


def _ours(cell: Printed, result: Result, between: Result | None) -> Ours:
    std = result.std
    if cell.metric == FEATURES and between is not None:
        std = between.mean
    return Ours(_verdict(cell, result, std), result.mean, std, result.n)


def _verdict(cell: Printed, result: Result, std: float | None) -> Verdict:
    decimals = paper.decimals(cell.table, cell.metric)
    if cell.mean is None:
        return _without_print(result, decimals)
    if result.gap is not None:
        word = "data unavailable" if result.gap.word == "data unavailable" else "not run"
        return Verdict(word, result.gap.reason)
    assert result.mean is not None
    ours = Sample(result.mean, result.std, result.n)
    if cell.metric != FEATURES:
        return stats.compare(ours, Sample(cell.mean, cell.std), decimals)
    # The printed deviation is not one between runs, so ours stands for both sides in the test.
    verdict = stats.compare(ours, Sample(cell.mean, None), decimals)
    same = cell.std is None or (std is not None and stats.equal_as_printed(std, cell.std, decimals))
    if verdict.word != "exact" or same:
        return verdict
    why = f"mean equal as printed, deviation between samples {shown(std, decimals=decimals)} is not"
    return replace(verdict, word="within noise", why=why)


def _without_print(result: Result, decimals: int) -> Verdict:
    """The paper prints a dash for runs that did not converge."""
    if result.gap is None:
        value = shown(result.mean, result.std, decimals)
        return Verdict("differs", f"no result in the paper, {value} here")
    if result.gap.word == "failed":
        return Verdict("exact", f"no result in the paper and none here: {result.gap.reason}")
    word = "data unavailable" if result.gap.word == "data unavailable" else "not run"
    return Verdict(word, result.gap.reason)


# Values over methods or datasets -----------------------------------------------------------------


def _ranked(number: int, built: Mapping[str, Table]) -> Table | None:
    """A table of the paper with its ranks, from what was read for all tables."""
    cells = [c for c in paper.cells(number) if c.dataset]
    table = built.get(registry.datasets()[cells[0].dataset].group)
    if table is None:
        return None
    methods = tuple(dict.fromkeys(c.method for c in cells))
    recipe = replace(
        table.recipe,
        name=f"table{number}",
        methods=methods,
        datasets=tuple(dict.fromkeys(c.dataset for c in cells)),
        paper=number,
    )
    rows = tuple(row for row in table.rows if row.method in methods)
    rule = Rule(ACCURACY, ddof=rank_deviation(as_printed(), number))
    return with_summaries(replace(table, recipe=recipe, rows=rows), rule)


def _rank(cell: Printed, table: Table | None) -> dict[str, Ours]:
    found = {}
    for edition in EDITIONS:
        summary = table.summaries.get((cell.method, edition, "mean_rank")) if table else None
        if summary is None:
            continue
        verdict = summary.verdict
        if verdict.word not in WORDS:
            why = verdict.why
            if summary.ours and summary.same_cells:
                why += f"; there {shown(*summary.ours)}, the paper's {shown(*summary.same_cells)}"
            verdict = Verdict("not run", why)
        mean, std = summary.ours or (None, None)
        found[edition] = Ours(verdict, mean, std, summary.n)
    return found or {"prescribed": Ours(Verdict("not run", "not implemented yet"))}


def _rank_differences(dataset: str, built: Mapping[str, Table]) -> dict[Key, dict[str, Ours]]:
    """Rank of F1 minus rank of accuracy among the paper's ten methods; needs all of them."""
    cells = [c for c in paper.cells(22) if (c.dataset, c.metric) == (dataset, "rank_difference")]
    table = built.get(registry.datasets()[dataset].group)
    found: dict[Key, dict[str, Ours]] = {key(cell): {} for cell in cells}
    for edition in EDITIONS:
        pairs = [_pair(table, cell.method, dataset, edition) for cell in cells]
        complete = [pair for pair in pairs if pair]
        if len(complete) < len(cells):
            lacking = len(cells) - len(complete)
            verdict = Verdict("not run", f"needs all {len(cells)} methods; {lacking} are lacking")
            for cell in cells:
                found[key(cell)].setdefault("prescribed", Ours(verdict))
            continue
        differences = _differences(complete)
        draws = _redrawn(complete)
        for i, cell in enumerate(cells):
            verdict = _in_draws(cell, differences[i], [draw[i] for draw in draws])
            found[key(cell)][edition] = Ours(verdict, differences[i], None, stats.RUNS)
    return found


Pair = tuple[tuple[float, ...], tuple[float, ...]]
"""F1 and accuracy of a method's runs."""


def _pair(table: Table | None, method: str, dataset: str, edition: str) -> Pair | None:
    if table is None:
        return None
    results = [table.in_edition(method, dataset, m, edition) for m in ("f1_select", ACCURACY)]
    f1, accuracy = (r.values if r and r.complete else None for r in results)
    return (f1, accuracy) if f1 and accuracy else None


def _differences(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> list[float]:
    f1 = stats.ranks([[fmean(values)] for values, _ in pairs])
    accuracy = stats.ranks([[fmean(values)] for _, values in pairs])
    return [(a[0] or 0.0) - (b[0] or 0.0) for a, b in zip(f1, accuracy, strict=True)]


def _redrawn(pairs: Sequence[Pair]) -> list[list[float]]:
    """The differences again, over runs drawn with replacement, the same runs for every method."""
    rng = random.Random(0)
    n = min(len(f1) for f1, _ in pairs)
    draws = []
    for _ in range(DRAWS):
        runs = rng.choices(range(n), k=n)
        draws.append(
            _differences([([f1[r] for r in runs], [acc[r] for r in runs]) for f1, acc in pairs])
        )
    return draws


def _in_draws(cell: Printed, difference: float, draws: list[float]) -> Verdict:
    assert cell.mean is not None
    gap = difference - cell.mean
    if gap == 0:
        return Verdict("exact", "equal as printed", 0.0)
    ordered = sorted(draws)
    low, high = ordered[int(0.025 * DRAWS)], ordered[int(0.975 * DRAWS) - 1]
    inside = low <= cell.mean <= high
    why = f"difference {gap:+.0f}; other draws of our runs give {low:+.0f} to {high:+.0f}"
    return Verdict("within noise" if inside else "differs", why, gap)


# Doubts ------------------------------------------------------------------------------------------


def _doubted(ours: dict[str, Ours], finding: Finding | None) -> dict[str, Ours]:
    """A printed cell that the audit doubts is only ever `exact` or `paper inconsistent`."""
    if finding is None:
        return ours
    return {
        edition: value
        if value.verdict.word == "exact"
        else replace(value, verdict=_inconsistent(value.verdict, finding))
        for edition, value in ours.items()
    }


def _inconsistent(verdict: Verdict, finding: Finding) -> Verdict:
    compared = f"; ours: {verdict.word}, {verdict.why}"
    return replace(verdict, word=INCONSISTENT, why=f"{finding.id}: {finding.found}{compared}")
