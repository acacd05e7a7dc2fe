"""The answer in a few sentences, made from the records: does the paper's main claim hold here?

Does ProtoGate rank first, whom does it clearly beat or lose to, how many of the printed accuracies agree,
and what is missing. README, the page, `claims` and `reproduce table2` show these sentences.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmark import paper
from benchmark.data.places import by_hand
from benchmark.judge import pairwise, ranks
from benchmark.judge.cells import ledger
from benchmark.judge.cells.counts import (
    ACCURACIES,
    Count,
    Recovered,
    by_kind,
    listed,
    of_table,
    recovered,
)
from benchmark.judge.cells.ledger import Line
from benchmark.judge.claims.check import UNDECIDED, Claim, judge_all
from benchmark.judge.pairwise import Pair
from benchmark.protocol.registry import find_model, label
from benchmark.runner.shipped import store_at
from benchmark.tables import statistics as stats
from benchmark.tables.build import build_from
from benchmark.tables.render.words import DASH
from benchmark.tables.table import Table
from benchmark.text import grid

METHOD = "protogate"
METRIC = "balanced_accuracy"
TABLE = "table2"
TABULAR = "tabular-best-rank"
"""The claim on mean ranks in Table 15."""
MARKS = ("<!-- answer: written by `make reports` -->", "<!-- end of the answer -->")
"""What README has around the sentences."""
ABOUT_SHORT = (
    "Balanced accuracy (%) over 25 runs with settings by the paper's rule, in brackets the printed one; mean "
    "ranks over these cells, 1 = best. [Table 2](reports/table2.md) has all methods, deviations and verdicts."
)
NAMED = 3
"""How many methods with gaps are named."""


@dataclass(frozen=True)
class Lead:
    """ProtoGate minus the best other method on one dataset, in points of balanced accuracy."""

    dataset: str
    paper: float | None
    paper_other: str
    ours: float
    low: float
    high: float
    """95 % interval, allowing for the rows that runs share."""
    other: str


@dataclass(frozen=True)
class Searched:
    """How fairly the ranked methods were searched."""

    cheaper: int
    """Datasets on which ProtoGate's settings come from a cheaper search than the rule's."""
    rivals: int
    in_full: int
    """Rivals that were searched by the rule in full on all of these datasets."""
    fixed: int
    """Rivals that have nothing to search."""
    local: int
    """Rivals that select features for each sample, as ProtoGate does."""


@dataclass(frozen=True)
class Answer:
    """The sentences, and the numbers in them for whoever computes."""

    holds: bool | None
    """Whether ProtoGate has the best mean rank over the cells at hand; None: it has no rank yet."""
    final: bool
    """Whether that is over all of the paper's methods and datasets."""
    rank: dict[str, float | int | str] = field(default_factory=dict)
    searched: Searched | None = None
    beats: dict[str, list[str]] = field(default_factory=dict)
    """Method -> datasets on which ProtoGate is clearly better."""
    loses_to: dict[str, list[str]] = field(default_factory=dict)
    open_pairs: int = 0
    counts: dict[str, Count] = field(default_factory=dict)
    """Verdicts per kind of number, over distinct experiments, by the paper's rule."""
    table2: Count | None = None
    """The accuracies of Table 2 alone."""
    recovered: Recovered = field(default_factory=Recovered)
    leads: tuple[Lead, ...] = ()
    no_data: tuple[str, ...] = ()
    missing: dict[str, list[str]] = field(default_factory=dict)
    """Dataset -> methods without all 25 runs, where the dataset has any."""
    failed: dict[str, list[str]] = field(default_factory=dict)
    """Dataset -> methods of which every run failed."""
    sentences: tuple[str, ...] = ()
    short: tuple[tuple[str, ...], ...] = ()
    """The ranked methods, the best first: ours and the paper's accuracies and mean ranks, as texts."""


def answer(table: Table, lines: Sequence[Line], claims: Sequence[Claim]) -> Answer:
    """From Table 2, every printed cell beside ours and the claims."""
    rank = _rank(table, claims)
    beats, loses_to, undecided = _clear(pairwise.pairs(table, METHOD))
    no_data, missing, failed = _missing(table)
    found = Answer(
        holds=None if not rank else rank["place"] == 1 and rank["shared"] == 0,
        final=table.fully_ranked,
        rank=rank,
        searched=_searched(table) if rank else None,
        beats=beats,
        loses_to=loses_to,
        open_pairs=undecided,
        counts=by_kind(lines),
        table2=of_table(lines, 2),
        recovered=recovered(lines),
        leads=tuple(leads(table)),
        no_data=no_data,
        missing=missing,
        failed=failed,
        short=_in_short(table),
    )
    sentences = [
        _about_rank(table, found),
        " ".join(filter(None, [_about_search(found.searched), _about_tabular(claims)])),
        _about_pairs(found),
        _about_cells(found),
        _about_gaps(table, found),
    ]
    return replace(found, sentences=tuple(filter(None, sentences)))


def build(results: Path) -> tuple[Answer, list[Claim]]:
    """The answer from the records, and the claims that it rests on; builds every table of the paper."""
    store = store_at(results, remember=True)
    built = {f"table{n}": build_from(store, f"table{n}") for n in paper.tables()}
    claims = judge_all(built)
    table = built[TABLE]
    return answer(table, ledger.compare(built), claims), claims


def in_readme(text: str, found: Answer) -> str:
    """A text with the sentences between its two marks; unchanged if it has none."""
    start, end = MARKS
    before, mark, rest = text.partition(start)
    _, other, after = rest.partition(end)
    if not (mark and other):
        return text
    parts = [textwrap.fill(sentence, 110) for sentence in found.sentences]
    if found.short:
        parts += [grid(found.short), textwrap.fill(ABOUT_SHORT, 110)]
    return "\n\n".join([f"{before}{start}", *parts, f"{end}{after}"])


# What was found ----------------------------------------------------------------------------------


def _rank(table: Table, claims: Sequence[Claim]) -> dict[str, float | int | str]:
    methods, datasets = table.ranked
    if METHOD not in methods:
        return {}
    means = {
        method: summary.ours[0]
        for method in methods
        if (summary := table.summaries[method, "rule", "mean_rank"]).ours
    }
    mine = round(means[METHOD], 9)
    rival = min((m for m in methods if m != METHOD), key=lambda method: means[method], default="")
    theirs = {
        method: pair[0]
        for method in methods
        if (pair := table.summaries[method, "rule", "mean_rank"].same_cells)
    }
    found: dict[str, float | int | str] = {
        "mean": mine,
        "place": 1 + sum(round(mean, 9) < mine for mean in means.values()),
        "shared": sum(round(mean, 9) == mine for mean in means.values()) - 1,
        "methods": len(methods),
        "datasets": len(datasets),
    }
    if rival:
        found |= {"rival": rival, "rival_mean": round(means[rival], 9)}
    if METHOD in theirs:
        best = theirs[METHOD]
        found["paper_mean"] = best
        found["paper_place"] = 1 + sum(mean < best for mean in theirs.values())
    support = [c.outcome.support for c in claims if c.statement.id == "best-rank"]
    if support and support[0] is not None:
        found["support"] = support[0]
    if len(datasets) > 1:
        scores = [[table.results[m, d, METRIC, "rule"].mean for d in datasets] for m in methods]
        found["critical"] = ranks.rank(scores, methods).difference
    return found


def _searched(table: Table) -> Searched:
    methods, datasets = table.ranked

    def cheaper(method: str) -> int:
        choices = [table.results[method, d, METRIC, "rule"].choice for d in datasets]
        return sum(choice is not None and not choice.by_rule for choice in choices)

    def fixed(method: str) -> bool:
        searches = [cell.search for d in datasets if (cell := table.recipe.cell(method, d))]
        return not any(search.ranges or len(search.points()) > 1 for search in searches)

    rivals = [method for method in methods if method != METHOD]
    entries = [find_model(method) for method in rivals]
    return Searched(
        cheaper(METHOD),
        len(rivals),
        sum(not cheaper(method) and not fixed(method) for method in rivals),
        sum(map(fixed, rivals)),
        sum(entry is not None and entry.selects == "local" for entry in entries),
    )


def _in_short(table: Table) -> tuple[tuple[str, ...], ...]:
    """The block that is ranked, which has no holes."""
    methods, datasets = table.ranked
    ranks_of = {m: table.summaries[m, "rule", "mean_rank"] for m in methods}

    def beside(ours: float | None, theirs: float | None) -> str:
        return f"{ours:.2f} ({DASH if theirs is None else f'{theirs:.2f}'})" if ours else DASH

    rows = []
    for method in sorted(methods, key=lambda m: (ranks_of[m].ours or (0.0,))[0]):
        results = [table.results[method, d, METRIC, "rule"] for d in datasets]
        cells = [beside(r.mean, r.printed.mean if r.printed else None) for r in results]
        summary = ranks_of[method]
        ranked = [pair[0] if pair else None for pair in (summary.ours, summary.same_cells)]
        rows.append((label(method), *cells, beside(*ranked)))
    return (("", *datasets, "mean rank"), *rows) if rows else ()


def _clear(pairs: Sequence[Pair]) -> tuple[dict[str, list[str]], dict[str, list[str]], int]:
    """Wins, losses and open pairs of ProtoGate, which is the second of every pair."""
    beats: dict[str, list[str]] = {}
    loses_to: dict[str, list[str]] = {}
    undecided = 0
    for pair in pairs:
        if not pair.clear:
            undecided += 1
            continue
        side = beats if pair.difference > 0 else loses_to
        side.setdefault(pair.first, []).append(pair.dataset)
    return beats, loses_to, undecided


def leads(table: Table) -> list[Lead]:
    """Per dataset the lead over the best other method, on each side among the same methods."""
    found = []
    for dataset in table.recipe.datasets:
        cells = {
            row.method: result
            for row in table.rows
            if (result := table.results.get((row.method, dataset, METRIC, "rule")))
            and result.complete
        }
        mine = cells.pop(METHOD, None)
        if mine is None or not cells or mine.verdict.word == "data unavailable":
            continue
        other = max(cells, key=lambda method: cells[method].mean or 0.0)
        differences = [a - b for a, b in zip(mine.values, cells[other].values, strict=True)]
        mean, std = stats.mean_std(differences)
        half = stats.half_interval(std or 0.0, len(differences))
        printed = {m: p.mean for m, r in cells.items() if (p := r.printed) and p.mean is not None}
        theirs = mine.printed.mean if mine.printed else None
        best = max(printed, key=lambda method: printed[method], default="")
        found.append(
            Lead(
                dataset,
                theirs - printed[best] if theirs is not None and best else None,
                label(best) if best else "",
                mean,
                mean - half,
                mean + half,
                label(other),
            )
        )
    return found


def _missing(table: Table) -> tuple[tuple[str, ...], dict[str, list[str]], dict[str, list[str]]]:
    """Datasets without any run; by dataset, who is missing runs, and of whom every run failed."""
    no_data, missing, failed = [], {}, {}
    for dataset in table.recipe.datasets:
        cells = {
            row.label: result
            for row in table.rows
            if (result := table.results.get((row.method, dataset, METRIC, "rule")))
        }
        if not any(result.n for result in cells.values()):
            no_data.append(dataset)
            continue
        gaps = {name: result.gap for name, result in cells.items() if result.gap}
        if lost := [name for name, gap in gaps.items() if gap.word == "failed"]:
            failed[dataset] = lost
        if open_ := [name for name, gap in gaps.items() if gap.word != "failed"]:
            missing[dataset] = open_
    return tuple(no_data), missing, failed


# In words ----------------------------------------------------------------------------------------


def _about_rank(table: Table, found: Answer) -> str:
    rank = found.rank
    if not rank:
        return "Whether ProtoGate ranks first is open: it has no rank over the runs at hand."
    verdict = "Yes" if found.holds else "No"
    first, shared = rank["place"] == 1, bool(rank["shared"])
    if first and shared:
        verdict = "It shares the first place"
    so_far = "" if found.final else ", as far as it has been run"
    recipe = table.recipe
    over = (
        f"{rank['datasets']} of {len(recipe.datasets)} datasets and {rank['methods']} of "
        f"{len(recipe.methods)} methods"
    )
    text = (
        f"Does ProtoGate rank first? {verdict}{so_far}: over {over} its mean rank is "
        f"{rank['mean']:.2f}, {'a shared ' * shared}{_place(int(rank['place']))} of {rank['methods']}"
    )
    rival = label(str(rank["rival"])) if "rival" in rank else ""
    if rival:
        what = f"so has {rival}" if first and shared else "next is" if first else "the best is"
        named = "" if first and shared else f" {rival} with {rank['rival_mean']:.2f}"
        text += f" ({what}{named})"
    parts = [text]
    if "paper_mean" in rank:
        parts.append(
            f"The paper's numbers for the same cells give {rank['paper_mean']:.2f}, "
            f"{_place(int(rank['paper_place']))}"
        )
    if "critical" in rank and rival and not (first and shared):
        away = abs(float(rank["mean"]) - float(rank["rival_mean"]))
        apart = away > float(rank["critical"])
        parts.append(
            f"{rank['datasets']} datasets {'are enough' if apart else 'are too few'} to tell ProtoGate and "
            f"{rival} apart: Nemenyi's test asks for {rank['critical']:.2f} ranks between them"
        )
    if "support" in rank:
        parts.append(
            f"In 1000 resamplings of our runs ProtoGate is first alone in {_share(float(rank['support']))}; the "
            f"runs share samples, so this overstates the certainty"
        )
    return f"{'. '.join(parts)}."


def _about_search(searched: Searched | None) -> str:
    """What a reader of the rank has to know of the others."""
    if searched is None:
        return ""
    parts = []
    if not searched.local:
        parts.append(
            f"None of the {searched.rivals} others selects features for each sample: of those that do, "
            f"none is complete on these datasets."
        )
    if searched.cheaper:
        fixed = f", and {searched.fixed} have nothing to search" if searched.fixed else ""
        parts.append(
            f"ProtoGate's settings come from a cheaper search on {searched.cheaper} of the datasets; of the "
            f"{searched.rivals} others {searched.in_full} were searched in full{fixed}."
        )
    parts.append(
        "ProtoGate's number of neighbours, K, is the paper's, which may have been chosen on test data."
    )
    return " ".join(parts)


def _about_tabular(claims: Sequence[Claim]) -> str:
    """The same question on data of fewer features, where the claim has been judged."""
    for claim in claims:
        if claim.statement.id == TABULAR and claim.outcome.known:
            word = claim.outcome.word
            return (
                f"On the datasets of Table 15, which are not HDLSS, the claim that it has or shares the best "
                f"mean rank {'is ' * (word == UNDECIDED)}{word}: {claim.outcome.evidence}."
            )
    return ""


def _place(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0)
    return f"{number}{ending or 'th'}"


def _share(support: float) -> str:
    if 0 < support < 0.01:
        return "less than 1 %"
    if 0.99 < support < 1:
        return "more than 99 %"
    return f"{100 * support:.0f} %"


def _about_pairs(found: Answer) -> str:
    decided = sum(map(len, found.beats.values())) + sum(map(len, found.loses_to.values()))
    total = decided + found.open_pairs
    if not total:
        return ""
    sides = [
        f"clearly {word} {_named(methods)}"
        for word, methods in (("beats", found.beats), ("loses to", found.loses_to))
        if methods
    ]
    if not sides:
        return f"No difference between ProtoGate and another method is clear in {total} corrected paired tests."
    others = (
        f"; in its other {found.open_pairs} comparisons no difference is shown, which does not show that "
        f"there is none"
    )
    tests = f"corrected paired tests, Holm over all {total}"
    return f"ProtoGate {' and '.join(sides)}{others * (found.open_pairs > 0)} ({tests})."


def _named(methods: Mapping[str, Sequence[str]]) -> str:
    """`Lasso (toxicity) and RF (lung, prostate)`."""
    return _listed([f"{name} ({', '.join(datasets)})" for name, datasets in methods.items()])


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""


def _about_cells(found: Answer) -> str:
    count = found.counts.get(ACCURACIES)
    if not count:
        return "No printed accuracy can be compared yet."
    text = f"{count.total} distinct accuracies can be compared: {listed(count.words)}."
    if found.table2 and found.table2.total < count.total:
        text += f" {found.table2.total} of them are in Table 2: {listed(found.table2.words)}."
    if count.unpaired != count.words:
        text += (
            f" If the correlation between runs on the same splits is ignored, the counts are "
            f"{listed(count.unpaired)}."
        )
    if count.cheaper:
        text += (
            f" {count.cheaper} rest on a cheaper search than the paper's rule, which is the best mean "
            f"validation score over all {stats.RUNS} splits."
        )
    return f"{text} {found.recovered}".rstrip()


def _about_gaps(table: Table, found: Answer) -> str:
    parts = []
    if found.no_data:
        reasons: dict[str, list[str]] = {}
        for name in found.no_data:
            why = "the paper's patients are not published" if by_hand(name) else "not run"
            reasons.setdefault(why, []).append(name)
        parts += [f"{_listed(names)} ({why})" for why, names in reasons.items()]
    counted: dict[str, list[str]] = {}
    for dataset, names in found.missing.items():
        for name in names:
            counted.setdefault(name, []).append(dataset)
    if counted:
        cells = sum(map(len, counted.values()))
        most = sorted(counted.items(), key=lambda item: -len(item[1]))
        names = [f"{name} ({', '.join(datasets)})" for name, datasets in most[:NAMED]]
        if rest := most[NAMED:]:
            names.append(f"{len(rest)} more methods" if len(rest) > 1 else rest[0][0])
        parts.append(f"{cells} cells on the other datasets: {_listed(names)}")
    failed = [f"{', '.join(names)} on {dataset}" for dataset, names in found.failed.items()]
    ended = f" Every run failed: {'; '.join(failed)}." if failed else ""
    if not parts:
        return f"Nothing is missing: {len(table.recipe.datasets)} of {len(paper.DATASETS)} datasets are complete.{ended}"
    return f"Missing: {'; '.join(parts)}.{ended}"
