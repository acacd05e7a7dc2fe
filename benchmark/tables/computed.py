"""Cells that are computed from other cells: averages of rows, rank differences, tests, ADTM.

A column that its recipe marks with `computed` is a Computation: it tells which cells it reads and
fills its places from them. A place whose ingredients are incomplete gets a gap that says which ones
are missing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from benchmark import paper
from benchmark.protocol import registry
from benchmark.protocol.choices import EDITIONS
from benchmark.protocol.plan import Cell, keys_of
from benchmark.protocol.stored import or_told
from benchmark.runner.packing import unpacked
from benchmark.runner.records import Store
from benchmark.tables import descriptive, transferability
from benchmark.tables import statistics as stats
from benchmark.tables.measured import out_of_reach, plans_of
from benchmark.tables.recipes import Metric, Need, Recipe
from benchmark.tables.table import Gap, Result, Table, beside_printed
from benchmark.tables.verdict import FEWEST_METHODS, Sample, Verdict, compare, same_or_not

DRAWS = 200
LAMBDAS = (0.0, 1e-4, 3e-4, 5e-4, 7e-4, 1e-3)
"""The global strengths that Table 17 chooses the best of; it tests that one against the last."""
WITH_VALIDATION = stats.overlap(valid_size=0.0)
"""The overlap of the corrected test if the rows that validate are counted as training rows."""

Place = tuple[str, str, str, str]
"""Method, dataset, metric and edition."""
Fill = Callable[[Table, Metric, Store], dict[Place, Result]]


@dataclass(frozen=True)
class Computation:
    """How a computed column is made."""

    needs: Callable[[Recipe, str], list[Need]]
    """The cells that it reads on a dataset; what is missing of them is run for the table."""
    fill: Fill


def with_computed(table: Table, store: Store) -> Table:
    """The table with its computed cells filled in."""
    found: dict[Place, Result] = {}
    for metric in table.recipe.metrics:
        if metric.computed:
            found |= COMPUTED[metric.computed].fill(table, metric, store)
        else:
            found |= _averages(table, metric) | _given(table, metric)
    return replace(table, results={**table.results, **found})


def _made(
    table: Table,
    method: str,
    dataset: str,
    metric: Metric,
    edition: str = "rule",
    **fields: Any,
) -> dict[Place, Result]:
    result = beside_printed(table.recipe, method, dataset, metric, edition, **fields)
    return {(method, dataset, metric.name, edition): result}


# Averages of rows --------------------------------------------------------------------------------


def _averages(table: Table, metric: Metric) -> dict[Place, Result]:
    """Rows that are the mean of other rows, dataset by dataset."""
    found: dict[Place, Result] = {}
    for method in table.recipe.methods:
        parts = table.recipe.source(method).average
        for dataset in table.recipe.datasets if parts else ():
            results = [table.results.get((p, dataset, metric.name, "rule")) for p in parts]
            missing = [p for p, r in zip(parts, results, strict=True) if not r or not r.complete]
            if missing:
                away = all(r and r.gap and r.gap.word == "data unavailable" for r in results)
                word = "data unavailable" if away else "not run"
                names = ", ".join(registry.label(m) for m in missing)
                gap = Gap(word, f"no average, since these have no value: {names}")
                found |= _made(table, method, dataset, metric, gap=gap)
                continue
            runs = zip(*(r.values for r in results if r), strict=True)
            values = tuple(fmean(split) for split in runs)
            verdict = _average_verdict(table, method, dataset, metric, values)
            found |= _made(table, method, dataset, metric, values=values, verdict=verdict)
    return found


def _given(table: Table, metric: Metric) -> dict[Place, Result]:
    """Rows whose runs are told by a file: the released code, run on our splits."""
    found: dict[Place, Result] = {}
    for method in table.recipe.methods:
        name = table.recipe.source(method).given
        for dataset in table.recipe.datasets if name else ():
            rows = [r for r in paper.lines(name) if r["method"] == method]
            told = [r[metric.name] for r in rows if r[metric.name]]
            if told:
                values = tuple(metric.scale * float(x) for x in told)
                found |= _made(table, method, dataset, metric, values=values)
    return found


def _average_verdict(
    table: Table, method: str, dataset: str, metric: Metric, values: Sequence[float]
) -> Verdict:
    printed = table.recipe.printed(method, dataset, metric.name)
    if printed is None or printed.mean is None:
        return Verdict("not in paper", "no such cell")
    ours = Sample(*stats.mean_std(values), len(values))
    if metric.timed:
        ratio = f"{ours.mean / printed.mean:.2g} times the printed value" if printed.mean else ""
        return Verdict("other hardware", ratio, ours.mean - printed.mean)
    return compare(ours, Sample(printed.mean, printed.std), metric.decimals)


def _same_as_printed(value: float, printed: float | None, decimals: int) -> Verdict:
    if printed is None:
        return Verdict("not in paper", "no such cell")
    return same_or_not(value, printed, decimals)


# Rank differences --------------------------------------------------------------------------------

Pair = tuple[tuple[float, ...], tuple[float, ...]]
"""F1 and accuracy of a method's runs."""
INGREDIENTS = ("f1_select", "balanced_accuracy")
"""The metrics whose ranks are compared."""


def _rank_difference(table: Table, metric: Metric, _: Store) -> dict[Place, Result]:
    """Rank of F1 minus rank of accuracy among the table's methods that have both.

    While some are missing, the print is ranked over the same methods, from its own cells.
    """
    found: dict[Place, Result] = {}
    for dataset in table.recipe.datasets:
        methods = [
            method
            for method in table.recipe.methods
            if (method, dataset, "f1_select", "rule") in table.results
            # A model of the paper that does not exist here is missing, not exempt.
            or table.recipe.printed(method, dataset, metric.name)
        ]
        for edition in EDITIONS:
            if edition != "rule" and not any(
                (method, dataset, name, edition) in table.results
                for method in methods
                for name in INGREDIENTS
            ):
                continue  # no ingredient of its own: it would repeat the other edition's values
            pairs = {
                method: pair
                for method in methods
                if (pair := _pair(table, method, dataset, edition)) is not None
            }
            ranked = pairs if len(pairs) >= FEWEST_METHODS else {}
            missing = [method for method in methods if method not in ranked]
            theirs = _printed_differences(table, metric, dataset, list(ranked), bool(missing))
            values = list(ranked.values())
            differences, draws = _differences(values), _redrawn(values)
            for i, method in enumerate(ranked):
                drawn = [draw[i] for draw in draws]
                verdict = _in_draws(theirs.get(method), differences[i], drawn)
                if missing and method in theirs:
                    over = f"over {len(ranked)} of {len(methods)} methods"
                    told = (
                        f"{verdict.why}; {over}, where the paper's cells give {theirs[method]:+.0f}"
                    )
                    verdict = replace(verdict, why=told)
                made = (differences[i],)
                found |= _made(
                    table, method, dataset, metric, edition, values=made, verdict=verdict
                )
            reason = f"needs {FEWEST_METHODS} methods with both scores, {len(pairs)} have them"
            for method in missing if edition == "rule" else ():
                gap = Gap("not run", "its scores are missing" if ranked else reason)
                found |= _made(table, method, dataset, metric, gap=gap)
    return found


def _printed_differences(
    table: Table, metric: Metric, dataset: str, methods: Sequence[str], some: bool
) -> dict[str, float]:
    """The paper's differences: as printed, or from its own cells where only `some` methods are ranked."""
    if not some:
        cells = {m: table.recipe.printed(m, dataset, metric.name) for m in methods}
        return {m: c.mean for m, c in cells.items() if c and c.mean is not None}
    pairs = {}
    for method in methods:
        both = [table.recipe.printed(method, dataset, name) for name in INGREDIENTS]
        means = [(c.mean,) for c in both if c and c.mean is not None]
        if len(means) < len(INGREDIENTS):
            return {}  # without this one the others would be ranked among fewer than ours
        pairs[method] = (means[0], means[1])
    return dict(zip(pairs, _differences(list(pairs.values())), strict=True))


def _pair(table: Table, method: str, dataset: str, edition: str) -> Pair | None:
    results = [table.in_edition(method, dataset, name, edition) for name in INGREDIENTS]
    f1, accuracy = (r.values if r and r.complete else None for r in results)
    return (f1, accuracy) if f1 and accuracy else None


def _differences(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> list[float]:
    f1, accuracy = ([[fmean(pair[i])] for pair in pairs] for i in (0, 1))
    return [difference for (difference,) in stats.rank_differences(f1, accuracy)]


def _redrawn(pairs: Sequence[Pair]) -> list[list[float]]:
    """The differences again, over runs drawn with replacement, the same runs for every method."""
    rng = random.Random(0)
    n = min((len(f1) for f1, _ in pairs), default=0)
    draws = []
    for _ in range(DRAWS):
        runs = rng.choices(range(n), k=n)
        draws.append(
            _differences([([f1[r] for r in runs], [acc[r] for r in runs]) for f1, acc in pairs])
        )
    return draws


def _in_draws(printed: float | None, difference: float, draws: list[float]) -> Verdict:
    """A whole number hides its noise: it differs from print only if other draws of our runs do not reach
    that."""
    ordered = sorted(draws)
    low, high = ordered[int(0.025 * DRAWS)], ordered[int(0.975 * DRAWS) - 1]
    told = f"other draws of our runs give {low:+.0f} to {high:+.0f}"
    if printed is None:
        return Verdict("not in paper", told)
    verdict = same_or_not(difference, printed, 0)
    if verdict.word == "different" and low <= printed <= high:
        verdict = replace(verdict, word="inconclusive", unpaired="inconclusive")
    interval = low - printed, high - printed
    return replace(verdict, why=f"{verdict.why}; {told}", interval=interval)


# The best global strength against the largest ------------------------------------------------------


def _strengths(_recipe: Recipe, dataset: str) -> list[Need]:
    return [Need(_protogate(dataset), params={"lam_global": strength}) for strength in LAMBDAS]


def _protogate(dataset: str) -> Cell:
    return Cell(registry.models()["protogate"], registry.data_ref(dataset))


def _best_and_largest(cell: Cell, store: Store) -> tuple[list[float], list[float], float] | Gap:
    """Test scores of ProtoGate with the best strength (on validation) and with the largest."""
    chosen = or_told(lambda: store.setting(cell, "own"))
    if chosen is None:
        return Gap("not run", "protogate is not tuned yet", "reproduce table17")
    scores: dict[float, tuple[float, list[float]]] = {}
    for strength in LAMBDAS:
        _, keys = keys_of(cell, {**chosen.params, "lam_global": strength})
        records, _ = store.find(keys)
        good = [r["scores"] for r in records.values() if r["status"] == "ok"]
        if len(good) < len(keys):
            runs = f"{len(good)} of {len(keys)} runs with lam_global = {strength:g}"
            return Gap("not run", runs, "reproduce table17")
        valid = fmean(s["valid"]["balanced_accuracy"] for s in good)
        scores[strength] = valid, [s["test"]["balanced_accuracy"] for s in good]
    best = max(LAMBDAS, key=lambda strength: round(scores[strength][0], 12))
    return scores[best][1], scores[LAMBDAS[-1]][1], best


def _per_dataset(
    table: Table, store: Store
) -> dict[str, tuple[list[float], list[float], float] | Gap]:
    found: dict[str, tuple[list[float], list[float], float] | Gap] = {}
    for dataset in table.recipe.datasets:
        cell = _protogate(dataset)
        made = _best_and_largest(cell, store)
        if isinstance(made, Gap):
            in_use = bool(store.settings(f"{cell.entry.name}/{cell.data.folder}"))
            made = out_of_reach(cell.data, in_use) or made
        found[dataset] = made
    return found


def _lambda_t(table: Table, metric: Metric, store: Store) -> dict[Place, Result]:
    """Nadeau and Bengio's corrected resampled t-test on the 25 paired runs of a dataset."""
    found: dict[Place, Result] = {}
    for method in table.recipe.methods:
        for dataset, made in _per_dataset(table, store).items():
            if isinstance(made, Gap):
                found |= _made(table, method, dataset, metric, gap=made, model="protogate")
                continue
            best, largest, strength = made
            best_is = f"the best strength on validation is {strength:g}"
            if strength == LAMBDAS[-1]:
                gap = Gap("not run", f"{best_is}, so there is nothing to test")
                found |= _made(table, method, dataset, metric, gap=gap)
                continue
            differences = [a - b for a, b in zip(best, largest, strict=True)]
            p = stats.corrected_resampled_t(differences)[1]
            other = stats.corrected_resampled_t(differences, WITH_VALIDATION)[1]
            note = (
                f"{best_is}; p = {other:.{metric.decimals}f} where validation rows count as training "
                f"rows, too ({WITH_VALIDATION:.3f} instead of {stats.OVERLAP:.3f} for what runs share)"
            )
            printed = table.recipe.printed(method, dataset, metric.name)
            verdict = _p_verdict(p, printed.mean if printed else None, metric.decimals)
            worse = fmean(differences) < 0
            if worse:
                note += f"; {LAMBDAS[-1]:g} is the better one on test data"
            found |= _made(
                table,
                method,
                dataset,
                metric,
                values=(p,),
                verdict=verdict,
                note=note,
                reversed=worse,
            )
    return found


def _p_verdict(p: float, printed: float | None, decimals: int) -> Verdict:
    """A p-value is equal as printed or not; on which side of 5 % both are is told."""
    verdict = _same_as_printed(p, printed, decimals)
    if verdict.word != "different" or printed is None:
        return verdict
    side = "the same side" if (p < stats.ALPHA) == (printed < stats.ALPHA) else "the other side"
    return replace(verdict, why=f"{verdict.why}; on {side} of {stats.ALPHA}")


def _lambda_wilcoxon(table: Table, metric: Metric, store: Store) -> dict[Place, Result]:
    """Exact Wilcoxon signed-rank test over the datasets' mean accuracies."""
    found: dict[Place, Result] = {}
    made = _per_dataset(table, store)
    for method in table.recipe.methods:
        missing = [dataset for dataset, value in made.items() if isinstance(value, Gap)]
        if missing:
            gap = Gap("not run", f"needs all {len(made)} datasets; {len(missing)} are missing")
            found |= _made(table, method, "", metric, gap=gap)
            continue
        complete = [value for value in made.values() if not isinstance(value, Gap)]
        differences = [fmean(best) - fmean(largest) for best, largest, _ in complete]
        p, worse = stats.wilcoxon_p(differences), fmean(differences) < 0
        printed = table.recipe.printed(method, "", metric.name)
        verdict = _p_verdict(p, printed.mean if printed else None, metric.decimals)
        found |= _made(table, method, "", metric, values=(p,), verdict=verdict, reversed=worse)
    return found


# Transferability ---------------------------------------------------------------------------------


def _masked(_recipe: Recipe, dataset: str) -> list[Need]:
    return [Need(cell) for cell in transferability.cells_read(dataset)]


def _transfer(reading: str) -> Fill:
    """ADTM of KNN and SVM with each selector, over the datasets where all selectors have runs."""

    def fill(table: Table, metric: Metric, store: Store) -> dict[Place, Result]:
        datasets = table.recipe.datasets
        made = store.once(
            ("transferability", datasets), lambda: transferability.build(store, datasets)
        ).adtm(reading)
        found: dict[Place, Result] = {}
        for method in table.recipe.methods:
            simple, _, selector = method.partition("|selector=")
            adtm = made[simple, selector]
            gap = None
            if adtm.verdict.word in ("not run", "incomplete"):
                gap = Gap(adtm.verdict.word, adtm.verdict.why, "reproduce table23")
            found |= _made(
                table, method, "", metric, values=adtm.values, gap=gap, verdict=adtm.verdict
            )
        return found

    return fill


# Stability ---------------------------------------------------------------------------------------


def _stability(table: Table, metric: Metric, store: Store) -> dict[Place, Result]:
    """How much the runs of a method agree on the features that most samples select."""
    found: dict[Place, Result] = {}
    for plan in plans_of(table.recipe, store):
        if plan.edition != "rule" or (plan.cell and plan.cell.entry.selects == "none"):
            continue
        place = plan.method, plan.dataset
        records = plan.found(store.find(plan.keys)[0]) if plan.known else []
        good = [record for record in records if record["status"] == "ok"]
        cores = [
            (core, record["data"]["shape"][1])
            for record in good
            if (core := (record["selection"] or {}).get("core"))
        ]
        name = plan.cell.model if plan.cell else plan.method
        if len(cores) < stats.RUNS:
            told = f"{len(cores)} of {stats.RUNS} records list the selected features"
            # Runs that were done before features were told have to be done again, all 25 of them; what
            # is merely missing has not.
            again = "run --force" if len(good) == stats.RUNS else table.recipe.command
            gap = plan.gap or Gap("not run", told, again)
            found |= _made(table, *place, metric, gap=gap, model=name)
            continue
        value = stats.stability([unpacked(core, n) for core, n in cores], cores[0][1])
        if value is None:
            gap = Gap("incomplete", "every run selects all features, or none: undefined")
            found |= _made(table, *place, metric, gap=gap, model=name)
            continue
        found |= _made(table, *place, metric, values=(value,))
    return found


# Hyperparameters ---------------------------------------------------------------------------------


def _searched(table: Table, metric: Metric, _: Store) -> dict[Place, Result]:
    """How many hyperparameters of a model are searched, counted from the registry."""
    found: dict[Place, Result] = {}
    for method in table.recipe.methods:
        for label in table.recipe.datasets:
            cell = table.recipe.cell(method, label)
            if cell is None:
                gap = Gap("not run", "not implemented yet")
                found |= _made(table, method, label, metric, gap=gap)
                continue
            number = float(descriptive.searched(cell.entry, cell.data))
            printed = table.recipe.printed(method, label, metric.name)
            verdict = _same_as_printed(number, printed.mean if printed else None, metric.decimals)
            found |= _made(table, method, label, metric, values=(number,), verdict=verdict)
    return found


def _nothing(_recipe: Recipe, _dataset: str) -> list[Need]:
    return []


COMPUTED = {
    "searched": Computation(_nothing, _searched),
    "stability": Computation(Recipe.rows_on, _stability),
    "rank_difference": Computation(Recipe.rows_on, _rank_difference),
    "lambda_t": Computation(_strengths, _lambda_t),
    "lambda_wilcoxon": Computation(_strengths, _lambda_wilcoxon),
    "transfer_pooled": Computation(_masked, _transfer("pooled")),
    "transfer_means": Computation(_masked, _transfer("means")),
}
"""Every name that `computed` in tables.toml can take."""
