"""Checks of what the paper derives from its own cells: ranks, places, averages, repeated cells."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean

from benchmark import paper
from benchmark.judge.audit import attainable
from benchmark.judge.audit.findings import (
    ACCURACY,
    FAILS,
    FEATURES,
    HOLDS,
    OPEN,
    PLACES,
    Finding,
    Sheet,
    key,
    printed,
)
from benchmark.paper import Printed
from benchmark.protocol.registry import label
from benchmark.tables import statistics as stats
from benchmark.text import mean_std

RANKED = (2, 15)
RULES = {
    "the rule of the caption": ("min", "mean"),
    "missing cells left out": ("min", "drop"),
    "missing cells ranked last": ("min", "last"),
    "ties averaged": ("average", "mean"),
    "ties dense": ("dense", "mean"),
}
DDOF = {1: "sample", 0: "population"}


# Ranks -------------------------------------------------------------------------------------------


def rank_rows(
    sheet: Sheet, table: int, ties: str = "min", missing: str = "mean", ddof: int = 1
) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation of each method's ranks, from the printed accuracies."""
    methods, datasets = sheet.methods(table, ACCURACY), sheet.datasets(table, ACCURACY)
    scores = [[sheet.cell(table, m, d, ACCURACY).mean for d in datasets] for m in methods]
    rows = stats.over_datasets(stats.ranks(scores, ties, missing), ddof)
    return {m: (row[0], row[1] or 0.0) for m, row in zip(methods, rows, strict=True) if row}


def matching(sheet: Sheet, table: int, ties: str, missing: str, ddof: int) -> list[str]:
    """The methods whose printed rank a rule gives."""
    rows = rank_rows(sheet, table, ties, missing, ddof)
    return [m for m, row in rows.items() if _as_printed(row, sheet.cell(table, m, "", "mean_rank"))]


def _as_printed(row: tuple[float, float], cell: Printed) -> bool:
    return all(
        want is not None and paper.equal_as_printed(got, want, 2)
        for got, want in zip(row, (cell.mean, cell.std), strict=True)
    )


def rank_deviation(sheet: Sheet, table: int) -> int:
    """The standard deviation, sample or population, that reproduces more of a table's rank column."""
    return max(DDOF, key=lambda ddof: len(matching(sheet, table, "min", "mean", ddof)))


def ranks(sheet: Sheet) -> list[Finding]:
    """Every printed rank, recomputed by the rule that reproduces most of them."""
    findings = []
    for table in RANKED:
        ddof = rank_deviation(sheet, table)
        other = rank_rows(sheet, table, ddof=1 - ddof)
        for method, row in rank_rows(sheet, table, ddof=ddof).items():
            cell = sheet.cell(table, method, "", "mean_rank")
            right = _as_printed(row, cell)
            findings.append(
                Finding(
                    f"t{table}-rank-{method}",
                    table,
                    f"Table {table}, rank of {label(method)}",
                    printed(cell),
                    f"{mean_std(*row)} from the printed accuracies",
                    HOLDS if right else FAILS,
                    "" if right else _why_not(cell, row, other[method], DDOF[1 - ddof]),
                    () if right else (key(cell),),
                )
            )
    return findings


def _why_not(
    cell: Printed, row: tuple[float, float], other: tuple[float, float], convention: str
) -> str:
    assert cell.mean is not None and cell.std is not None
    gap, parts = row[0] - cell.mean, []
    if abs(gap) > 0.5 and abs(gap - round(gap)) < 0.006:
        parts.append(f"The mean is off by exactly {abs(round(gap))}, as by a mistyped digit.")
    if paper.equal_as_printed(other[1], cell.std, 2):
        parts.append(
            f"The printed standard deviation is the {convention} one, unlike in the other rows."
        )
    return " ".join(parts)


def rank_rules(sheet: Sheet) -> list[Finding]:
    """Which rule for ties, missing cells and standard deviations the printed ranks follow."""
    counts = {
        name: len(matching(sheet, 2, *rule, ddof=rank_deviation(sheet, 2)))
        for name, rule in RULES.items()
    }
    first, *rest = counts
    rows = len(sheet.methods(2, ACCURACY))
    best = counts[first] > max(counts[name] for name in rest)
    conventions = {table: rank_deviation(sheet, table) for table in RANKED}
    agree = len(set(conventions.values())) == 1
    return [
        Finding(
            "t2-rank-rule",
            2,
            "Table 2, caption",
            "ranks over all methods; where a cell is missing, from the accuracies of the others",
            f"{counts[first]} of {rows} rows if a missing cell counts as the mean of the others, "
            f"ties share the best rank and the standard deviation is the {DDOF[conventions[2]]} one; "
            + ", ".join(f"{name} {counts[name]}" for name in rest),
            HOLDS if best else FAILS,
        ),
        Finding(
            "t15-rank-deviation",
            15,
            "Tables 2 and 15, standard deviation of ranks",
            "one ± in both tables",
            ", ".join(
                f"Table {t}: {DDOF[ddof]} standard deviation" for t, ddof in conventions.items()
            ),
            HOLDS if agree else FAILS,
            "" if agree else "The two rank columns cannot be compared as they stand.",
        ),
    ]


def filled_cells(sheet: Sheet) -> list[Finding]:
    """What the printed rank of a method with missing cells says about them."""
    findings = []
    for method in sheet.methods(2, ACCURACY):
        missing = [
            d
            for d in sheet.datasets(2, ACCURACY)
            if sheet.cell(2, method, d, ACCURACY).mean is None
        ]
        if not missing:
            continue
        ranges = []
        for dataset in missing:
            values = sorted(
                c.mean for c in sheet.of(2, ACCURACY) if c.dataset == dataset and c.mean is not None
            )
            fill = fmean(values)
            below = max(v for v in values if v <= fill)
            above = min(v for v in values if v > fill)
            ranges.append(f"{dataset} {fill:.2f} (any value in {below:.2f}–{above:.2f})")
        findings.append(
            Finding(
                f"t2-fill-{method}",
                2,
                f"Table 2, {label(method)}",
                "failed to converge, yet ranked on all datasets",
                f"the printed rank fits {'; '.join(ranges)}",
                OPEN,
                "These are the means of the other methods; accuracies that were obtained and not "
                "printed would do as well.",
            )
        )
    return findings


# Places ------------------------------------------------------------------------------------------


def places(sheet: Sheet) -> list[Finding]:
    """Bold type and colours, column by column, against the printed means."""
    columns: dict[tuple[int, str, str], list[Printed]] = defaultdict(list)
    marked = {(k[0], k[3]) for k in sheet.marks}
    for cell in sheet.cells.values():
        if (cell.table, cell.metric) in marked:
            # Table 23 has one row per simple model, and its best selector is bold.
            column = cell.method.partition("|")[0] if cell.table == 23 else cell.dataset
            columns[cell.table, cell.metric, column].append(cell)
    return [_place(sheet, *column, cells) for column, cells in columns.items()]


def _place(sheet: Sheet, table: int, metric: str, column: str, cells: Sequence[Printed]) -> Finding:
    depth = 3 if any(m != "first" for k, m in sheet.marks.items() if k[0] == table) else 1
    sign = -1 if metric in paper.SMALLER_IS_BETTER else 1
    present = [c for c in cells if c.mean is not None]
    order = stats.ranks([[sign * c.mean] for c in present if c.mean is not None])
    right = {
        c.method: PLACES[int(rank) - 1]
        for c, (rank,) in zip(present, order, strict=True)
        if rank is not None and rank <= depth
    }
    marks = {c.method: sheet.marks[key(c)] for c in cells if key(c) in sheet.marks}
    wrong = sorted(m for m in right.keys() | marks.keys() if right.get(m) != marks.get(m))
    short = {ACCURACY: "", FEATURES: "", "f1_select": " F1", "adtm_percent": "", "mean_rank": ""}
    name = f"{column or 'rank'}{short[metric]}"
    return Finding(
        f"t{table}-marks-{name.lower().replace(' ', '-')}",
        table,
        f"Table {table}, highlighting of {name}",
        _marked(marks),
        "the same from the printed means" if not wrong else _marked(right),
        FAILS if wrong else HOLDS,
        f"Wrong for {', '.join(map(label, wrong))}." if wrong else "",
    )


def _marked(marks: dict[str, str]) -> str:
    ordered = sorted(marks.items(), key=lambda item: PLACES.index(item[1]))
    return ", ".join(f"{place} {label(method)}" for method, place in ordered)


# Averages, sums and differences ------------------------------------------------------------------

AVERAGE = "average-without-protogate"


def averages(sheet: Sheet) -> list[Finding]:
    """The average rows of Tables 12 and 13, from the rows above them."""
    findings = []
    for table, metric in ((12, "train_seconds_per_epoch"), (13, "inference_ms_per_sample")):
        decimals = paper.decimals(table, metric)
        others = [m for m in sheet.methods(table, metric) if m not in (AVERAGE, "protogate")]
        for dataset in sheet.datasets(table, metric):
            cell = sheet.cell(table, AVERAGE, dataset, metric)
            mean = fmean(sheet.mean(table, m, dataset, metric) for m in others)
            assert cell.mean is not None
            off = abs(mean - cell.mean)
            verdict = HOLDS if paper.equal_as_printed(mean, cell.mean, decimals) else OPEN
            why = "The rows are rounded themselves, which can move their average this far."
            if off > 10.0**-decimals + 1e-9:  # half a unit from the rows, half from the average
                verdict, why = FAILS, "No rounding of the rows explains it."
            findings.append(
                Finding(
                    f"t{table}-average-{dataset}",
                    table,
                    f"Table {table}, average on {dataset}",
                    printed(cell),
                    f"{mean_std(mean, decimals=decimals + 2)} from the {len(others)} rows",
                    verdict,
                    "" if verdict == HOLDS else why,
                    (key(cell),) if verdict == FAILS else (),
                )
            )
    return findings


def proportions(sheet: Sheet) -> list[Finding]:
    """The two shares of Table 11 make a whole."""
    findings = []
    metric = "proportion_percent"
    for dataset in sheet.datasets(11, metric):
        cells = [c for c in sheet.of(11, metric) if c.dataset == dataset]
        total = sum(c.mean or 0.0 for c in cells)
        right = abs(total - 100) < 0.011  # each share is rounded by up to 0.005
        findings.append(
            Finding(
                f"t11-sum-{dataset}",
                11,
                f"Table 11, {dataset}",
                "both shares together are 100 %",
                f"{total:.2f}",
                HOLDS if right else FAILS,
                cells=() if right else tuple(map(key, cells)),
            )
        )
    return findings


def rank_differences(sheet: Sheet) -> list[Finding]:
    """Table 22's Diff = rank of F1 minus rank of accuracy, as far as two decimals tell.

    F1 scores that print alike have an order that is not printed. A printed Diff and the rank of
    the accuracy give the F1 rank that was used; the column is right if these ranks are 1 to 10 and
    never contradict the printed scores.
    """
    findings = []
    for dataset in sheet.datasets(22, ACCURACY):
        methods = sheet.methods(22, ACCURACY)
        f1 = [sheet.mean(22, m, dataset, "f1_select") for m in methods]
        accuracy = [sheet.mean(22, m, dataset, ACCURACY) for m in methods]
        diff = [sheet.mean(22, m, dataset, "rank_difference") for m in methods]
        f1_rank = [row[0] or 0.0 for row in stats.ranks([[x] for x in f1])]
        accuracy_rank = [row[0] or 0.0 for row in stats.ranks([[x] for x in accuracy])]
        used = [d + r for d, r in zip(diff, accuracy_rank, strict=True)]
        order = [score for _, score in sorted(zip(used, f1, strict=True), key=lambda p: p[0])]
        consistent = sorted(used) == [*range(1, len(methods) + 1)] and order == sorted(f1)[::-1]
        for i, method in enumerate(methods):
            cell = sheet.cell(22, method, dataset, "rank_difference")
            plain = f1_rank[i] - accuracy_rank[i] == diff[i]
            right = plain or consistent
            tied = " (ties of F1 in the order that the column implies)" if right > plain else ""
            findings.append(
                Finding(
                    f"t22-diff-{dataset}-{method}",
                    22,
                    f"Table 22, Diff of {label(method)} on {dataset}",
                    f"{diff[i]:+.0f}",
                    f"{used[i] if right else f1_rank[i]:.0f} − {accuracy_rank[i]:.0f}{tied}",
                    HOLDS if right else FAILS,
                    cells=() if right else (key(cell),),
                )
            )
        total = sum(diff)
        findings.append(
            Finding(
                f"t22-diff-{dataset}-sum",
                22,
                f"Table 22, Diff on {dataset}",
                "differences of two rankings of the same methods",
                f"sum {total:+.0f}",
                HOLDS if total == 0 else FAILS,
                "" if total == 0 else "Without ties such differences sum to zero.",
            )
        )
    return findings


# Tests of Table 17 -------------------------------------------------------------------------------


def wilcoxon(sheet: Sheet) -> list[Finding]:
    """The printed p of the signed-rank test is one that seven differences can have."""
    cell = next(iter(sheet.of(17, "wilcoxon_p")))
    n = len(sheet.datasets(17, "corrected_t_test_p"))
    possible = attainable.signed_rank_p(n)
    assert cell.mean is not None
    fits = [w for w, p in enumerate(possible) if paper.equal_as_printed(p, cell.mean, 4)]
    smallest = 0 in fits
    findings = [
        Finding(
            "t17-wilcoxon",
            17,
            "Table 17, Wilcoxon test",
            f"p = {cell.mean:.4f} over {n} datasets",
            f"{Fraction(2, 2**n)} = {possible[0]:.4f}, the smallest p there is"
            if smallest
            else f"possible values: {', '.join(f'{p:.4f}' for p in possible[:5])}, ...",
            HOLDS if fits else FAILS,
            cells=() if fits else (key(cell),),
        )
    ]
    if smallest:
        findings.append(
            Finding(
                "t17-selection",
                17,
                "Table 17, what is compared",
                "the optimal global strength performs better than 1e-3",
                f"all {n} differences have the same sign",
                OPEN,
                "An optimum over a set that contains 1e-3 is never worse if it was chosen by the "
                "same accuracies; then the p says nothing.",
            )
        )
    level = [c for c in sheet.of(17, "corrected_t_test_p") if (c.mean or 0) < stats.ALPHA]
    names = [c.dataset for c in level]
    findings.append(
        Finding(
            "t17-only-meta-dr",
            17,
            "Table 17, corrected t-tests",
            "significant at 0.05 on meta-dr only",
            f"p below 0.05 on {', '.join(names) or 'none'}",
            HOLDS if names == ["meta-dr"] else FAILS,
        )
    )
    return findings


CHECKS = (
    ranks,
    rank_rules,
    filled_cells,
    places,
    averages,
    proportions,
    rank_differences,
    wilcoxon,
)


def all_findings(sheet: Sheet) -> list[Finding]:
    return list(itertools.chain.from_iterable(check(sheet) for check in CHECKS))
