"""Checks of what printed numbers can be at all: whole numbers behind means, ranges, standard deviations."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

from benchmark import paper
from benchmark.judge.audit import attainable
from benchmark.judge.audit.findings import (
    ACCURACY,
    FAILS,
    FEATURES,
    HOLDS,
    OPEN,
    TEXT,
    Finding,
    Sheet,
    cell_name,
    key,
    printed,
)
from benchmark.paper import Printed
from benchmark.protocol import registry
from benchmark.protocol.registry import label
from benchmark.protocol.spec import FOLDS
from benchmark.tables.statistics import RUNS

GLOBAL = tuple(paper.FAMILIES["global"])
L2X_SIZES = (1, 5, 10)
"""Table 9: the numbers of features that L2X was told to select."""


def _classes(dataset: str) -> tuple[int, ...]:
    return tuple(registry.datasets()[dataset].classes.values())


def attainable_means(sheet: Sheet) -> list[Finding]:
    """Balanced accuracies that no hits and misses on the 25 test folds can average to."""
    cells = [c for c in sheet.cells.values() if c.metric == ACCURACY and c.mean is not None]
    findings = []
    for dataset in dict.fromkeys(c.dataset for c in cells):
        classes, mine = _classes(dataset), [c for c in cells if c.dataset == dataset]
        width = attainable.step(classes)
        if width <= 0.01 + 1e-9:
            findings.append(_no_power(dataset, width, mine))
            continue
        findings += [_attainable(c, classes, width) for c in mine]
    return findings


def _attainable(cell: Printed, classes: tuple[int, ...], width: float) -> Finding:
    assert cell.mean is not None
    finding = Finding(
        f"t{cell.table}-attainable-{cell.dataset}-{cell.method}",
        cell.table,
        f"Table {cell.table}, {label(cell.method)} on {cell.dataset}",
        f"{cell.mean:.2f} is a mean over {RUNS} runs",
        f"a multiple of {width:.4g}",
        HOLDS,
    )
    if attainable.is_mean(cell.mean, classes):
        return finding
    below, above = attainable.neighbours(cell.mean, classes)
    sizes = " and ".join(map(str, dict.fromkeys(classes)))
    why = (
        f"Classes of {sizes} samples in {FOLDS} stratified folds allow multiples of {width:.4g} "
        "only: other runs or other folds were averaged here."
    )
    if math.floor(100 * above) == round(100 * cell.mean):
        why += f" Or {above:.3f} was cut instead of rounded, unlike the other cells."
    found = f"the nearest such means are {below:.3f} and {above:.3f}"
    return replace(finding, found=found, verdict=FAILS, why=why, cells=(key(cell),))


def _no_power(dataset: str, width: float, cells: list[Printed]) -> Finding:
    return Finding(
        f"attainable-{dataset}",
        TEXT,
        f"{len(cells)} accuracies on {dataset}",
        f"means over {RUNS} runs",
        f"such means lie {width:.2g} apart, closer than the printed digits",
        OPEN,
        "Every printed value is possible.",
    )


def whole_counts(sheet: Sheet) -> list[Finding]:
    """A method with one set of features per run selects a whole number of them in every run."""
    findings = []
    for cell in sheet.of(10, FEATURES):
        if cell.method not in (*GLOBAL, "l2x"):
            continue
        assert cell.mean is not None
        right = attainable.is_average(cell.mean, RUNS) and cell.std == 0
        fits = attainable.divisors(cell.mean, RUNS - 1)
        why = (
            ""
            if cell.std == 0
            else "One set for all samples has no standard deviation between them. "
        )
        if not attainable.is_average(cell.mean, RUNS):
            why += f"It can be an average over {', '.join(map(str, fits[-4:])) or 'no fewer'} runs."
        findings.append(
            Finding(
                f"t10-whole-{cell.method}-{cell.dataset}",
                10,
                f"Table 10, {label(cell.method)} on {cell.dataset}",
                f"{printed(cell)} features, averaged over {RUNS} runs",
                f"{RUNS} x {cell.mean:.2f} = {RUNS * cell.mean:.2f}",
                HOLDS if right else FAILS,
                why.strip(),
                () if right else (key(cell),),
            )
        )
    return findings


def l2x_sizes(sheet: Sheet) -> list[Finding]:
    """L2X selects as many features as it was told to, which Table 9 lists."""
    cells = [c for c in sheet.of(10, FEATURES) if c.method == "l2x"]
    odd = [c for c in cells if c.mean not in L2X_SIZES]
    return [
        Finding(
            "t10-l2x-sizes",
            10,
            "Tables 9 and 10, L2X",
            f"selects {', '.join(map(str, L2X_SIZES))} features",
            ", ".join(f"{c.dataset} {c.mean:g}" for c in cells),
            FAILS if odd else HOLDS,
            cells=tuple(map(key, odd)),
        )
    ]


def ranges(sheet: Sheet) -> list[Finding]:
    """Means inside their range, and standard deviations no larger than values in the range can have."""
    groups = {
        "accuracies": [c for c in sheet.cells.values() if c.metric == ACCURACY],
        "F1": sheet.of(22, "f1_select"),
        "feature counts": [c for c in sheet.cells.values() if c.metric == FEATURES],
        "shares": [c for c in sheet.cells.values() if c.metric == "proportion_percent"],
        "p-values": [c for c in sheet.cells.values() if c.metric.endswith("_p")],
    }
    findings = []
    for what, group in groups.items():
        for table in dict.fromkeys(c.table for c in group):
            cells = [c for c in group if c.table == table and c.mean is not None]
            odd = [c for c in cells if not _possible(c)]
            findings.append(
                Finding(
                    f"t{table}-range-{what.split()[-1].lower()}",
                    table,
                    f"Table {table}, {what}",
                    f"{len(cells)} values with possible means and standard deviations",
                    ", ".join(f"{cell_name(key(c))}: {printed(c)}" for c in odd) or "all possible",
                    FAILS if odd else HOLDS,
                    cells=tuple(map(key, odd)),
                )
            )
    return findings


def _possible(cell: Printed) -> bool:
    assert cell.mean is not None
    top, n = {ACCURACY: 100.0, "proportion_percent": 100.0}.get(cell.metric, 1.0), RUNS
    if cell.metric == FEATURES:
        top = registry.datasets()[cell.dataset].shape[1]
        # This standard deviation is over the test samples of a run; the fewest allow the largest.
        n = registry.datasets()[cell.dataset].shape[0] // FOLDS
    inside = 0 <= cell.mean <= top
    return inside and (cell.std or 0.0) <= attainable.largest_std(cell.mean, top, n) + 0.005


def normalised(sheet: Sheet) -> list[Finding]:
    """Table 23 against the text's rule: per dataset, the best selector is 100 and the worst 0.

    Every dataset then needs a selector at 100. A row with k of its seven values at 100 has a
    standard deviation of at least (100 - mean) sqrt(k / (7 - k)), so its printed standard deviation limits k.
    """
    metric, n = "adtm_percent", len(paper.DATASETS)
    groups: dict[str, list[Printed]] = {}
    for cell in sheet.of(23, metric):
        groups.setdefault(cell.method.partition("|")[0], []).append(cell)
    most = {key(c): _at_most(c, n) for cells in groups.values() for c in cells}
    findings = []
    for model, cells in [*groups.items(), ("both", sheet.of(23, metric))]:
        best = sum(most[key(c)] for c in cells)
        bounds = [
            f"{c.method.partition('=')[2]} ≥ {(100 - (c.mean or 0)) / math.sqrt(n - 1):.1f} for one"
            f" (printed {c.std:.2f})"
            for c in cells
            if model != "both"
        ]
        needed = f"Deviation needed: {', '.join(bounds)}. " if bounds else ""
        scale = "one scale for both models" if model == "both" else "a scale per model"
        findings.append(
            Finding(
                f"t23-normalised-{model}",
                23,
                f"Table 23, {'KNN and SVM' if model == 'both' else label(model)}",
                f"mean accuracies scaled per dataset, best = 100, worst = 0 ({scale})",
                f"their standard deviations allow at most {best} of the {n} datasets to have a best selector"
                if best < n
                else f"possible: up to {best} values of 100",
                HOLDS if best >= n else FAILS,
                f"{needed}Scaling by the best and the worst single run would be possible."
                if best < n
                else "",
                tuple(map(key, cells)) if best < n else (),
            )
        )
    return findings


def _at_most(cell: Printed, n: int) -> int:
    assert cell.mean is not None and cell.std is not None
    # Rounding in favour of the paper; taking ± for the population standard deviation is in its favour too.
    return attainable.most_at_top(cell.mean + 0.005, cell.std + 0.005, 100.0, n)


CHECKS = (attainable_means, whole_counts, l2x_sizes, ranges, normalised)


def all_findings(sheet: Sheet) -> list[Finding]:
    return list(itertools.chain.from_iterable(check(sheet) for check in CHECKS))
