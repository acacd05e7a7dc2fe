"""The register of discrepancies: where text, numbers and code disagree, what we do, and what it changes.

Entries are data (paper/discrepancies.toml). Effects are measured from the records that exist; one whose
runs are missing says so, with the command that does them.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

from benchmark import paper
from benchmark.judge.audit.derived import matching, rank_rows
from benchmark.judge.audit.findings import sheet
from benchmark.protocol import registry
from benchmark.protocol.choices import EDITIONS
from benchmark.protocol.plan import Protocol
from benchmark.protocol.registry import ModelEntry
from benchmark.protocol.spec import parse_name
from benchmark.runner.records import Store
from benchmark.runner.shipped import store_at
from benchmark.tables import statistics as stats
from benchmark.tables.build import build_from, build_recipe
from benchmark.tables.measured import beside
from benchmark.tables.recipes import ACCURACY, FEATURES, Metric, Recipe, Source, follow
from benchmark.tables.table import Gap, Result, Table
from benchmark.text import grid, mean_std


@dataclass(frozen=True)
class Missing:
    """A side that has no value yet."""

    side: str
    reason: str
    command: str = ""
    """What to run for this model and dataset; empty: nothing helps."""
    model: str = ""
    dataset: str = ""


@dataclass(frozen=True)
class Effect:
    """One measured consequence of a discrepancy."""

    what: str
    """What is measured, where: `accuracy on colon`."""
    sides: dict[str, str]
    """Label of a side -> its value as text; empty text where there is none yet."""
    difference: float | None = None
    """Second side minus first, where both are one number."""
    p: float | None = None
    """Corrected resampled t-test on paired runs."""
    half: float | None = None
    """Half of the difference's 95 % interval, which allows for the rows that runs share, as p does."""
    missing: tuple[Missing, ...] = ()
    """Why sides have no value."""


@dataclass(frozen=True)
class Discrepancy:
    """A disagreement, what is done about it, and its effect."""

    id: str
    title: str
    where: str
    text: str
    numbers: str
    code: str
    ours: str
    switch: str
    effects: tuple[Effect, ...]
    trial: bool = False
    """Whether the switch's value is nobody's: it tells how much depends on it, and explains no cell."""

    @property
    def largest(self) -> Effect | None:
        """The effect that moves an accuracy most; None if none was measured."""
        moved = [e for e in self.effects if e.difference is not None and "accuracy" in e.what]
        return max(moved, key=lambda e: abs(e.difference or 0.0), default=None)


@cache
def _entries() -> dict[str, dict[str, Any]]:
    text = files("benchmark.paper").joinpath("discrepancies.toml").read_text("utf-8")
    return tomllib.loads(text)


def switch_of(model: ModelEntry, name: str, value: Any) -> str:
    """The entry that this change of a model is the other side of: what the text, a released or an
    official code say. Models of one class share their entries; a value that is nobody's has none."""
    for known, switched, overrides in _switches():
        entry = registry.models().get(switched)
        same = entry is not None and entry.class_path == model.class_path
        if same and name in overrides and overrides[name] == value:
            return known
    return ""


@cache
def _switches() -> list[tuple[str, str, dict[str, Any]]]:
    """Entry, model and its settings, of every switch that is more than a trial."""
    found = []
    for name, entry in _entries().items():
        for switch in entry["switch"].split(", "):
            model, _, _ = (word := switch.split(" ")[0]).partition(":")
            if model in registry.models() and not entry.get("trial"):
                found.append((name, *parse_name(word)))
    return found


def build(results: Path, store: Store | None = None) -> list[Discrepancy]:
    """Every entry of the register with the effects that the records show, the largest first."""
    store = store or store_at(results, remember=True)
    made = []
    for name, entry in _entries().items():
        fields = {k: v for k, v in entry.items() if k != "effect"}
        effects = [e for spec in entry.get("effect", []) for e in _effects(spec, store)]
        made.append(Discrepancy(name, **fields, effects=tuple(effects)))
    return sorted(made, key=_weight)


def _weight(entry: Discrepancy) -> tuple[int, float]:
    """Measured on an accuracy by its size, then measured otherwise, then not measured."""
    if entry.largest:
        return 0, -abs(entry.largest.difference or 0.0)
    return (1, 0.0) if any(any(e.sides.values()) for e in entry.effects) else (2, 0.0)


def _effects(spec: Mapping[str, Any], store: Store) -> list[Effect]:
    if "rule" in spec:
        return RULES[spec["rule"]](spec, store)
    return _pairs(spec, store)


# Two models, run by run --------------------------------------------------------------------------


def _table(
    methods: Sequence[str], datasets: Sequence[str], store: Store, base: bool = False
) -> Table:
    rows = {m: Source(m, settings="base") for m in methods if base and ":" in m}
    name = ("discrepancies", *methods, "on", *datasets, *rows)
    return store.once(name, lambda: _built(methods, datasets, rows, store))


def _built(
    methods: Sequence[str], datasets: Sequence[str], rows: Mapping[str, Source], store: Store
) -> Table:
    recipe = Recipe(
        name="discrepancies",
        title="",
        methods=tuple(methods),
        datasets=tuple(datasets),
        metrics=(ACCURACY, FEATURES),
        rows=rows,
    )
    return build_recipe(recipe, store.root, store=store)


def _pairs(spec: Mapping[str, Any], store: Store) -> list[Effect]:
    a, b, datasets = spec["a"], spec["b"], spec["datasets"]
    base = spec.get("base", False)
    variant = spec.get("b_data", "")
    others = {d: f"{d}:{variant}" if variant else d for d in datasets}
    first = _table([a], datasets, store)
    second = _table([b], list(others.values()), store, base)
    made = []
    for dataset in datasets:
        sides = {
            (dataset if variant else a): first.results.get((a, dataset, ACCURACY.name, "rule")),
            (others[dataset] if variant else b): second.results.get(
                (b, others[dataset], ACCURACY.name, "rule")
            ),
        }
        where = f"{a}: accuracy on {dataset}" if variant else f"accuracy on {dataset}"
        made.append(_compare(where, sides, paired=not variant))
        counts = [
            table.results.get((model, place, FEATURES.name, "rule"))
            for table, model, place in ((first, a, dataset), (second, b, others[dataset]))
        ]
        if not variant and all(c and c.complete for c in counts):
            made.append(
                _compare(f"features on {dataset}", dict(zip((a, b), counts, strict=True)), True)
            )
    return made


def _compare(what: str, sides: Mapping[str, Result | None], paired: bool) -> Effect:
    shown = {label: _shown(result) for label, result in sides.items()}
    missing = tuple(
        # `run` does missing runs with the chosen settings, whoever asks for them.
        Missing(
            label,
            result.gap.reason,
            result.gap.command.replace("reproduce discrepancies", "run"),
            result.model or result.method,
            result.dataset,
        )
        for label, result in sides.items()
        if result and result.gap
    )
    first, second = (r if r and r.complete else None for r in sides.values())
    if first is None or second is None or first.mean is None or second.mean is None:
        return Effect(what, shown, missing=missing)
    test = _test(first.values, second.values) if paired and first.n == second.n else ()
    return Effect(what, shown, second.mean - first.mean, *test)


def _test(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """p of the corrected test on paired runs, and half of the interval that belongs to it."""
    differences = [y - x for x, y in zip(first, second, strict=True)]
    _, spread = stats.mean_std(differences)
    half = stats.half_interval(spread or 0.0, len(differences))
    return stats.corrected_resampled_t(differences)[1], half


def _shown(result: Result | None) -> str:
    if result is None or result.mean is None or not result.complete:
        return ""
    return mean_std(result.mean, result.std)


# Other computations ------------------------------------------------------------------------------


def _editions(spec: Mapping[str, Any], store: Store) -> list[Effect]:
    """The settings that the rule chooses against those that give the printed cell."""
    model = spec["model"]
    table = _table([model], spec["datasets"], store)
    return [
        _compare(
            f"{metric.heading} on {dataset}",
            {
                edition: table.results.get((model, dataset, metric.name, edition))
                for edition in EDITIONS
            },
            paired=True,
        )
        for dataset in spec["datasets"]
        for metric in (ACCURACY, FEATURES)
        if (model, dataset, metric.name, "rule") in table.results
    ]


def _rows_that_follow(table: int, ties: str, missing: str, ddof: int) -> str:
    printed = sheet()
    same = matching(printed, table, ties, missing, ddof)
    return f"{len(same)} of {len(printed.methods(table, ACCURACY.name))}"


def _rank_rules(_spec: Mapping[str, Any], _store: Store) -> list[Effect]:
    printed, sides = sheet(), {}
    for ties, missing in product(stats.TIES, stats.MISSING):
        own, _ = rank_rows(printed, 2, ties, missing)["protogate"]
        rows = _rows_that_follow(2, ties, missing, 1)
        sides[f"ties {ties}, missing {missing}"] = f"{rows}, ProtoGate {own:.2f}"
    return [Effect("rows of Table 2 whose printed rank follows from its cells", sides)]


def _rank_deviations(_spec: Mapping[str, Any], _store: Store) -> list[Effect]:
    return [
        Effect(
            f"rows of Table {number} whose printed rank follows from its cells",
            {
                name: _rows_that_follow(number, "min", "mean", ddof)
                for name, ddof in (
                    ("sample standard deviation", 1),
                    ("population standard deviation", 0),
                )
            },
        )
        for number in (2, 15)
    ]


def _adtm_readings(_spec: Mapping[str, Any], store: Store) -> list[Effect]:
    """Our Table 2 by both readings."""
    table = build_from(store, "table2")
    methods, datasets = table.ranked
    if not methods:
        one = Missing("our Table 2", "no dataset has enough methods yet", "status table2")
        return [Effect("ADTM of our Table 2", {}, missing=(one,))]
    where = f"ADTM over {', '.join(datasets)}"
    found = []
    for method in methods:
        means, pooled = (
            table.summaries[method, "rule", name].ours
            for name in ("adtm_percent", "adtm_pooled_percent")
        )
        if means and pooled:
            sides = {"from means": f"{means[0]:.1f}", "from single runs": f"{pooled[0]:.1f}"}
            found.append(Effect(f"{method}: {where}", sides, pooled[0] - means[0]))
    return found


def _records(model: str, dataset: str, store: Store) -> list[dict[str, Any]]:
    """The records of a complete cell with its chosen settings."""
    table = _table([model], [dataset], store)
    result = table.results[model, dataset, ACCURACY.name, "rule"]
    if not result.complete:
        return []
    folder = f"{model}/{registry.data_ref(dataset).folder}/{result.setting}"
    keys = [f"{folder}/r{repeat}f{fold}" for repeat, fold in Protocol().splits()]
    return list(store.find(keys)[0].values())


def _thresholds(_spec: Mapping[str, Any], store: Store) -> list[Effect]:
    """What counts as globally selected, and the share of local features among it."""
    found = []
    for dataset in paper.DATASETS:
        records = [
            r for r in _records("protogate", dataset, store) if follow(r, "selection.composition")
        ]
        if not records:
            continue
        shares = [r["selection"]["composition"] for r in records]
        kept = [r["model"]["globally_selected"] for r in records]
        sides = {
            f"above {name}": f"{100 * _mean(shares, name):.1f} % of the local ones, "
            f"{_mean(kept, name):.0f} features kept"
            for name in shares[0]
        }
        found.append(Effect(f"globally selected features on {dataset}", sides))
    one = Missing("protogate", "no complete cell with compositions yet", "reproduce table11")
    return found or [Effect("globally selected features", {}, missing=(one,))]


def _mean(rows: Sequence[Mapping[str, float | None]], name: str) -> float:
    values = [value for row in rows if (value := row[name]) is not None]
    return stats.mean_std(values)[0] if values else float("nan")


def _eval_x(spec: Mapping[str, Any], store: Store) -> list[Effect]:
    """REAL-X from the full input against its masked prediction."""
    found = []
    for dataset in spec["datasets"]:
        what = f"accuracy on {dataset}"
        records = _records("realx", dataset, store) if "realx" in registry.models() else []
        if not records:
            one = Missing("realx", "no complete cell yet", "reproduce table2", "realx", dataset)
            found.append(Effect(what, {}, missing=(one,)))
            continue
        full = [100 * r["scores"]["test"]["balanced_accuracy"] for r in records]
        masked = [100 * r["also"]["eval-x"] for r in records]
        means = [stats.mean_std(values) for values in (full, masked)]
        shown = [mean_std(*pair) for pair in means]
        sides = dict(zip(("full input", "EVAL-X"), shown, strict=True))
        found.append(Effect(what, sides, means[1][0] - means[0][0], *_test(full, masked)))
    return found


def _truths(spec: Mapping[str, Any], store: Store) -> list[Effect]:
    """The same runs on the released data, scored by either truth about the relevant features."""
    truths = {
        "truth by row number": Metric("rows", "selection.f1.rows", "F1"),
        "truth by branch": Metric("branch", "selection.f1.branch", "F1"),
    }
    recipe = Recipe(
        name="discrepancies",
        title="",
        methods=tuple(spec["models"]),
        datasets=tuple(spec["datasets"]),
        metrics=tuple(truths.values()),
    )
    table = build_recipe(recipe, store.root, store=store)
    return [
        _compare(
            f"{model}: F1 of the selected features on {dataset}",
            {
                label: table.results.get((model, dataset, metric.name, "rule"))
                for label, metric in truths.items()
            },
            paired=True,
        )
        for model in spec["models"]
        for dataset in spec["datasets"]
    ]


def _flagged(spec: Mapping[str, Any], store: Store) -> list[Effect]:
    """Our cells that failed to converge, and the paper's dashes beside which we have no runs."""
    found = []
    for name in spec["tables"]:
        table = replace(build_from(store, name), editions=("rule",))
        for result in table.shown:
            if result.metric != ACCURACY.name:
                continue
            what = f"{result.method} on {result.dataset}"
            if result.unconverged:
                runs = f"{result.unconverged.failed} of {result.unconverged.planned}"
                found.append(Effect(what, {"score kept": _shown(result), "failed runs": runs}))
            elif result.printed and result.printed.mean is None and result.gap:
                one = Missing(
                    what, result.gap.reason, result.gap.command, result.model, result.dataset
                )
                found.append(Effect(what, {}, missing=(one,)))
    return found


def _released(_spec: Mapping[str, Any], store: Store) -> list[Effect]:
    """The authors' own code on our splits: beside print, and beside ours with its settings."""
    table, found = build_from(store, "protogate-colon"), []
    for metric in table.recipe.metrics[:2]:
        theirs, ours = (
            table.results[row, "colon", metric.name, "rule"]
            for row in ("released", "same-settings")
        )
        printed = table.recipe.printed("protogate", "colon", metric.name)
        assert (
            printed
            and printed.mean is not None
            and theirs.mean is not None
            and ours.mean is not None
        )
        verdict = beside(printed, theirs.values, theirs.within, metric)
        sides = {"printed": mean_std(printed.mean, printed.std), "released code": _shown(theirs)}
        what = f"{metric.heading} on colon, released code beside print: {verdict.word}"
        found.append(Effect(what, sides, verdict.difference))
        sides = {"released code": _shown(theirs), "ours with its settings": _shown(ours)}
        what = f"{metric.heading} on colon, ours with the released settings"
        difference = ours.mean - theirs.mean
        found.append(Effect(what, sides, difference, *_test(theirs.values, ours.values)))
    return found


Rule = Callable[[Mapping[str, Any], Store], list[Effect]]
RULES: dict[str, Rule] = {
    "editions": _editions,
    "rank_rules": _rank_rules,
    "rank_deviations": _rank_deviations,
    "adtm_readings": _adtm_readings,
    "thresholds": _thresholds,
    "eval_x": _eval_x,
    "truths": _truths,
    "flagged": _flagged,
    "released": _released,
}


# Texts -------------------------------------------------------------------------------------------

POINT = 1.0
"""An effect on balanced accuracy that the summary names, in points."""
SOURCES = {
    "text": "Text",
    "numbers": "Printed numbers",
    "code": "Released code",
    "ours": "Here",
    "switch": "Switch",
}


def to_markdown(entries: Sequence[Discrepancy]) -> str:
    """The register to read: one section per entry, its sources, then what was measured."""
    about = (
        "Where the paper's text, its printed numbers and its released code disagree or are silent: "
        "what each of them says, what this harness does, how to get the other side, and what that "
        "changes. Effects are measured from the records that ship with the project. p and the 95 % "
        "interval come from the corrected resampled t-test on the 25 paired runs; they ask whether the effect "
        "would show on new splits, too, and only the summary adjusts them for their number. A verdict beside "
        "a printed cell asks less, whether two trainings agree on these splits, and has narrower intervals. "
        "± is between runs; that of printed numbers of features is between samples. "
        "*Switch*: what gives the other side, where `model:name=value` is for `run --models` and "
        "`dataset:name=value` for `run --datasets`."
    )
    parts = ["# Discrepancies", about, _summary(entries)]
    for entry in entries:
        place = f" ({entry.where})" if entry.where else ""
        parts.append(f"## {entry.title}{place}: `{entry.id}`")
        said = [(name, getattr(entry, key)) for key, name in SOURCES.items()]
        parts.append("\n".join(f"- {name}: {value}" for name, value in said if value))
        parts += [text for text in (_effects_text(entry.effects),) if text]
    return "\n\n".join(parts)


def _summary(entries: Sequence[Discrepancy]) -> str:
    """What a reader should know on one screen: what moves an accuracy by a point or more. The largest
    of many is picked here, so p is adjusted for all of them."""
    tested = [
        e for entry in entries for e in entry.effects if "accuracy" in e.what and e.p is not None
    ]
    adjusted = dict(zip(map(id, tested), stats.holm([e.p or 0.0 for e in tested]), strict=True))
    moving = [e for e in entries if e.largest and abs(e.largest.difference or 0.0) >= POINT]
    lines = [["", "largest effect on balanced accuracy", "adjusted p", "clear"]]
    for entry in moving:
        effect = entry.largest
        assert effect is not None and effect.difference is not None
        p = f"{adjusted[id(effect)]:.2g}" if id(effect) in adjusted else ""
        all_of_it = [adjusted[id(e)] for e in entry.effects if id(e) in adjusted]
        clear_ones = f"{sum(x < stats.ALPHA for x in all_of_it)} of {len(all_of_it)}"
        lines.append(
            [
                entry.title,
                f"{effect.difference:+.2f} points ({effect.what})",
                p,
                clear_ones * bool(all_of_it),
            ]
        )
    still = sum(bool(e.largest) for e in entries) - len(moving)
    other = sum(_weight(e)[0] == 1 for e in entries)
    open_ = sum(_weight(e)[0] == 2 for e in entries)
    clear = sum(p < stats.ALPHA for p in adjusted.values())
    rest = (
        f"Clear: how many of the entry's tested effects on an accuracy have an adjusted p below {stats.ALPHA}. In {still} more the largest effect is below {POINT:g} point, which does not show that there is none; "
        f"{other} are measured on something else; the effect of {open_} is not measured. Of each entry the "
        f"largest effect is shown, so p is adjusted (Holm) for all {len(tested)} tests of an accuracy; after "
        f"that {clear} of them are below {stats.ALPHA}."
    )
    return "\n\n".join(["## In short", grid(lines), rest])


def _effects_text(effects: Sequence[Effect]) -> str:
    if not effects:
        return "Effect: not measured."
    pairs = [e for e in effects if len(e.sides) == 2]
    lists = [e for e in effects if len(e.sides) > 2]
    parts = []
    if pairs:
        lines = [["Measured", "First", "Second", "Difference (95 % interval)", "p"]]
        for e in pairs:
            sides = [f"{label}: {value or '–'}" for label, value in e.sides.items()]
            difference = "" if e.difference is None else f"{e.difference:+.2f}"
            if e.difference is not None and e.half is not None:
                low, high = e.difference - e.half, e.difference + e.half
                difference += f" ({low:+.2f} to {high:+.2f})"
            lines.append([e.what, *sides, difference, "" if e.p is None else f"{e.p:.2g}"])
        parts.append(grid(lines))
    for e in lists:
        lines = [["Measured: " + e.what, "Value"], *([k, v] for k, v in e.sides.items())]
        parts.append(grid(lines))
    missing = _missing_text([one for e in effects for one in e.missing])
    return "\n\n".join(parts + ([missing] if missing else []))


def _missing_text(several: Sequence[Missing]) -> str:
    """One line per reason, with one command for all datasets."""
    lines = []
    reasons = dict.fromkeys((one.model or one.side, one.reason, one.command) for one in several)
    for why in reasons:
        same = [x for x in several if (x.model or x.side, x.reason, x.command) == why]
        datasets = list(dict.fromkeys(one.dataset for one in same if one.dataset))
        name, reason, command = why
        where = f" on {', '.join(datasets)}" if datasets else ""
        remedy = Gap("", "", command).remedy((name, d) for d in datasets or [""])
        lines.append(f"- Not measured yet: {name}{where}, {reason}." + _run(remedy))
    return "\n".join(lines)


def _run(commands: Sequence[str]) -> str:
    return f" Run {' and '.join(f'`{command}`' for command in commands)}." if commands else ""


def to_json(entries: Sequence[Discrepancy]) -> str:
    return json.dumps([asdict(e) for e in entries], indent=1, ensure_ascii=False, allow_nan=False)
