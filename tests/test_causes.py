"""Why a cell differs: from other runs on the same splits, from what is written down, from others."""

import json
from pathlib import Path

import pytest
from conftest import ROOT, cell_of, made_up, spread, write_run

from benchmark import paper
from benchmark.experiments import fingerprint
from benchmark.judge import discrepancies
from benchmark.judge.causes import find as causes
from benchmark.judge.causes import tried
from benchmark.judge.cells import ledger
from benchmark.protocol.choices import Candidate, Choice, search_digest, write_choice
from benchmark.protocol.plan import Cell, Protocol
from benchmark.protocol.registry import data_ref, models
from benchmark.runner.records import Store
from benchmark.tables.build import build_from
from benchmark.tables.statistics import corrected_resampled_t
from benchmark.tables.verdict import Verdict


def printed(method, dataset="colon"):
    return paper.cell(2, method, dataset, "balanced_accuracy")


def choose(results, name, params, dataset="colon"):
    cell = Cell(models()[name], data_ref(dataset))
    points = cell.candidates() if cell.search.grid else [params]
    tried = [Candidate(point, 0.6, 25) for point in points]
    choice = Choice(name, dataset, "full", 5, 5, 25, cell.entry.revision, search_digest(cell), params,
                    0.6, [], tried, "0" * 64)  # fmt: skip
    write_choice(results, cell, choice)


def runs(results, name, params, mean, std=9.0, valid=0.8, dataset="colon"):
    """25 runs with this mean of test scores; what validation says of each is `valid`."""
    specs = cell_of(name, dataset).specs(params, Protocol())
    for i, (spec, score) in enumerate(zip(specs, spread(mean, std), strict=True)):
        record = made_up(spec, score, selection={"mean": 12.0})
        record["scores"]["valid"] = {"balanced_accuracy": valid + 0.01 * (i % 5)}
        write_run(results, record)


def cause_of(results, method, dataset="colon", metric="balanced_accuracy"):
    [found] = [
        cause
        for cause in causes.build(Path(results), [2])
        if (cause.line.printed.method, cause.line.printed.dataset) == (method, dataset)
        and cause.line.printed.metric == metric
    ]
    return found


CHOSEN, OTHER = {"max_depth": 5, "min_samples_leaf": 2}, {"max_depth": 3, "min_samples_leaf": 2}


@pytest.fixture
def forest(tmp_path):
    """A random forest whose cell is 12 points off."""
    choose(tmp_path, "rf", CHOSEN)
    runs(tmp_path, "rf", CHOSEN, printed("rf").mean + 12)
    return tmp_path


def test_without_other_runs_there_is_no_cause(forest):
    found = cause_of(forest, "rf")
    assert (found.kind, found.tried) == (causes.NONE, ())


def test_a_few_runs_are_named_and_not_judged(forest):
    specs = cell_of("rf", "colon").specs(OTHER, Protocol())[:3]
    for spec in specs:
        write_run(forest, made_up(spec, printed("rf").mean, selection={"mean": 12.0}))
    found = cause_of(forest, "rf")
    assert found.kind == causes.UNEXPLAINED
    assert "nothing that can be judged yet: 1 other setting seen on 3 splits" in found.text
    assert [(one.n, one.word, one.agrees) for one in found.tried] == [(3, tried.TOO_FEW, False)]


def test_runs_on_other_splits_are_no_evidence(forest):
    for spec in cell_of("rf", "colon").specs(OTHER, Protocol(folds=10)):
        write_run(forest, made_up(spec, printed("rf").mean, selection={"mean": 12.0}))
    assert cause_of(forest, "rf").kind == causes.NONE


def test_another_answer_of_the_same_runs_is_held_against_print(tmp_path):
    """REAL-X's records hold what EVAL-X says of the selected features beside the prediction."""
    params = cell_of("realx", "colon").candidates()[0]
    choose(tmp_path, "realx", params)
    wanted = printed("realx")
    others = [x / 100 for x in spread(wanted.mean, wanted.std)]
    for spec, other in zip(
        cell_of("realx", "colon").specs(params, Protocol()), others, strict=True
    ):
        record = made_up(spec, wanted.mean + 15, selection={"mean": 12.0})
        write_run(tmp_path, record | {"also": {"eval-x": other}})
    [one] = cause_of(tmp_path, "realx").tried
    assert (one.changed, one.kind, one.word) == ("answered by eval-x", "reading", "equal")
    assert one.mean == pytest.approx(wanted.mean)


# Noise -------------------------------------------------------------------------------------------


def test_a_setting_that_validation_cannot_tell_apart_is_noise(forest):
    runs(forest, "rf", OTHER, printed("rf").mean, printed("rf").std)
    found = cause_of(forest, "rf")
    assert found.kind == causes.NOISE and "max_depth=3" in found.text
    [one] = found.tried
    assert one.kind == "grid" and one.agrees and one.p == 1


def test_a_setting_that_validation_rejects_is_none(forest):
    runs(forest, "rf", OTHER, printed("rf").mean, printed("rf").std, valid=0.4)
    found = cause_of(forest, "rf")
    assert found.kind == causes.UNEXPLAINED and "validation rejects it" in found.text


def test_the_splits_are_no_noise_between_two_choices_on_them(forest):
    """A difference that the plain test sees and the corrected one does not: paper and harness chose on
    the same splits."""
    specs = cell_of("rf", "colon").specs(OTHER, Protocol())
    scores = spread(printed("rf").mean, printed("rf").std)
    for i, (spec, score) in enumerate(zip(specs, scores, strict=True)):
        record = made_up(spec, score, selection={"mean": 12.0})
        below = 0.04 * (i % 5) - 0.03  # a mean of 0.05 with a deviation of 0.058
        record["scores"]["valid"] = {"balanced_accuracy": 0.8 + 0.01 * (i % 5) - below}
        write_run(forest, record)
    found = cause_of(forest, "rf")
    below = [0.04 * (i % 5) - 0.03 for i in range(25)]
    assert corrected_resampled_t(below)[1] > 0.05 > corrected_resampled_t(below, overlap=0)[1]
    assert found.kind == causes.UNEXPLAINED and "validation rejects it" in found.text


def test_print_between_two_settings_is_no_noise(forest):
    runs(forest, "rf", OTHER, printed("rf").mean - 12)
    assert cause_of(forest, "rf").kind == causes.UNEXPLAINED


@pytest.fixture
def two_seeds(tmp_path):
    """12 points above and below print. Seeds of RF would widen the verdict's interval; those of a method
    that pairing does not measure do not."""
    for name, away in (("xgboost", 12), ("xgboost:random_state=43", -12)):
        runs(tmp_path, name, {}, printed("xgboost").mean + away)
    return tmp_path


def test_print_between_two_seeds_is_noise(two_seeds):
    found = cause_of(two_seeds, "xgboost")
    assert found.kind == causes.NOISE and "2 seeds of the same setting" in found.text


def test_a_mean_that_agrees_with_another_spread_does_not(forest):
    runs(forest, "rf", OTHER, printed("rf").mean, printed("rf").std / 3)
    found = cause_of(forest, "rf")
    assert found.kind == causes.UNEXPLAINED
    assert "equivalent in the mean, not in the spread" in found.text


def test_a_method_without_randomness_has_no_draws(tmp_path):
    """The rule's choice on the paper's splits is the paper's."""
    cell = printed("svm", "prostate")
    assert models()["svm"].deterministic
    choose(tmp_path, "svm", {"C": 1.0}, "prostate")
    runs(tmp_path, "svm", {"C": 1.0}, cell.mean - 12, dataset="prostate")
    runs(tmp_path, "svm", {"C": 10.0}, cell.mean, cell.std, dataset="prostate")
    found = cause_of(tmp_path, "svm", "prostate")
    assert found.kind == causes.UNEXPLAINED and "without randomness" in found.text


def test_seeds_are_seeds(forest):
    runs(forest, "rf:random_state=43", CHOSEN, printed("rf").mean + 14)
    found = cause_of(forest, "rf")
    assert [one.kind for one in found.tried] == ["seed"] and found.kind == causes.UNEXPLAINED
    assert "1 other seed tried" in found.text


# Switches ----------------------------------------------------------------------------------------

LAM = {"lam": 1e-3, "lr": 0.1}


@pytest.fixture
def spin(tmp_path):
    """LLSPIN on two datasets, off by 12 points on colon and as printed on toxicity."""
    for dataset, off in (("colon", 12), ("toxicity", 0)):
        cell = printed("llspin", dataset)
        choose(tmp_path, "llspin", LAM, dataset)
        runs(tmp_path, "llspin", LAM, cell.mean + off, cell.std, dataset=dataset)
    return tmp_path


def switched(results, dataset, off=0.0, **params):
    cell = printed("llspin", dataset)
    runs(results, "llspin", {**LAM, **params}, cell.mean + off, cell.std, dataset=dataset)


def test_a_switch_of_the_register_explains_also_for_related_models(spin):
    switched(spin, "colon", shift=0.0)
    found = cause_of(spin, "llspin")
    assert (found.kind, found.register) == (causes.DISCREPANCY, "lspin-shift")
    assert "no other cell of the row was run with it" in found.text


def test_a_switch_that_moves_other_cells_away_explains_nothing(spin):
    switched(spin, "colon", shift=0.0)
    switched(spin, "toxicity", 12, shift=0.0)
    found = cause_of(spin, "llspin")
    assert found.kind == causes.UNEXPLAINED
    assert "shift=0.0 agrees, but moves toxicity balanced_accuracy away" in found.text


def test_a_switch_that_leaves_the_other_cells_explains(spin):
    switched(spin, "colon", shift=0.0)
    switched(spin, "toxicity", shift=0.0)
    found = cause_of(spin, "llspin")
    assert found.kind == causes.DISCREPANCY and "moves none away" in found.text


def test_one_change_comes_before_several(spin):
    switched(spin, "colon", shift=0.0, weight_decay=0.0)
    switched(spin, "colon", weight_decay=0.0)
    found = cause_of(spin, "llspin")
    assert found.register == "lspin-decay" and found.text.startswith("with weight_decay=0.0:")


def test_a_value_that_is_nobodys_is_only_tried(forest):
    switch = {**CHOSEN, "class_weight": None}
    runs(forest, "rf", switch, printed("rf").mean, printed("rf").std)
    found = cause_of(forest, "rf")
    assert (found.kind, found.register) == (causes.UNEXPLAINED, "")
    assert "class_weight=null agrees, but it is nobody's" in found.text


def test_a_switch_is_known_however_its_value_is_spelled():
    entry = models()["stg"]
    assert discrepancies.switch_of(entry, "weight_decay", 0.0001) == "stg-decay"
    assert discrepancies.switch_of(entry, "weight_decay", 0.5) == ""
    assert discrepancies.switch_of(models()["protogate"], "steps", 8000) == "protogate-steps"
    assert discrepancies.switch_of(models()["protogate"], "steps", 2000) == ""
    assert discrepancies.switch_of(models()["l2x"], "batch_size", 32) == ""


# What is written down ----------------------------------------------------------------------------


@pytest.fixture
def gate(tmp_path):
    """ProtoGate on colon with its chosen setting."""
    params = {"lam_global": 1e-4, "lr": 0.1}
    choose(tmp_path, "protogate", params)
    runs(tmp_path, "protogate", params, printed("protogate").mean - 12)
    return tmp_path


def test_what_is_written_down_shows_the_released_code(gate):
    found = cause_of(gate, "protogate")
    assert (found.kind, found.register) == (causes.UNEXPLAINED, "protogate-released")
    assert [one.changed for one in found.tried] == [
        "the released code itself", "our ProtoGate with the released script's settings",
    ]  # fmt: skip
    assert "2 other implementations tried" in found.text


def test_runs_come_before_what_is_written_down(gate):
    """The paper's text taken literally explains the cell as soon as it does."""
    cell, params = printed("protogate"), {"lam_global": 1e-4, "lr": 0.1, "k": 3}
    choose(gate, "protogate-text", params)
    runs(gate, "protogate-text", params, cell.mean, cell.std)
    found = cause_of(gate, "protogate")
    assert found.kind == causes.DISCREPANCY and found.text.startswith("by the text")


def test_a_rank_that_recovered_settings_mend_has_that_cause():
    """And it is held against the paper's cells over the same methods and datasets."""
    store = Store(ROOT / "results", remember=True)
    found = causes.causes(store, ledger.lines(store, [2]))
    ranks = {c.line.printed.method: c for c in found if c.line.printed.metric == "mean_rank"}
    for method, cause in ranks.items():
        table = build_from(store, "table2")
        word = table.summaries[method, "recovered", "mean_rank"].verdict.word
        assert (cause.kind == causes.RECOVERED) == (word != "different"), method
        assert f"{word}" in cause.text and "its cells of" in cause.paper
    assert causes.RECOVERED in {cause.kind for cause in ranks.values()}


def test_a_recovered_setting_is_the_cause_whatever_else_was_tried(tmp_path):
    cell = printed("ridge")
    choose(tmp_path, "ridge", {"C": 1.0})
    runs(tmp_path, "ridge", {"C": 1.0}, cell.mean + 12)
    runs(tmp_path, "ridge", models()["ridge"].recovered["colon"], cell.mean, cell.std)
    assert cause_of(tmp_path, "ridge").kind == causes.RECOVERED


def test_what_is_computed_is_as_explained_as_the_least_of_its_own_cells():
    """Of its own dataset, where it has one."""
    cells = {
        place: ledger.Line(paper.cell(*place), {})
        for place in [
            (22, "rf", "syn1", "f1_select"),
            (22, "rf", "syn1", "balanced_accuracy"),
            (22, "rf", "syn3", "f1_select"),
        ]
    }
    kinds = causes.RECOVERED, causes.NOISE, causes.UNEXPLAINED
    found = {
        place: causes.Cause(line, kind, "")
        for (place, line), kind in zip(cells.items(), kinds, strict=True)
    }
    store = Store(ROOT / "results", remember=True)

    ours = ledger.Ours(Verdict("different", ""))
    line = ledger.Line(paper.cell(22, "rf", "syn1", "rank_difference"), {"rule": ours})
    cause = causes._derived(line, found, store)
    assert cause.kind == causes.NOISE and "of which 2 differ" in cause.text


def test_what_is_written_down_is_about_cells_that_are_printed():
    known = {
        (c.table, c.method, c.dataset, c.metric) for n in paper.tables() for c in paper.cells(n)
    }
    names = ("table", "method", "dataset", "metric")
    for entry in causes._entries():
        assert entry["kind"] in causes.KINDS and entry["kind"] != causes.NONE
        assert entry.get("register", "") in {"", *discrepancies._entries()}
        values = [entry["cells"].get(name) for name in names]
        assert any(
            all(v is None or x in v for v, x in zip(values, cell, strict=True)) for cell in known
        ), entry


def test_every_form_holds_every_cause(two_seeds, inside):
    words = "compare", "--why", "--table", "2", "--results", two_seeds
    rows = json.loads(inside(*words, "--format", "json", check=0).stdout)
    assert [row["kind"] for row in rows if row["metric"] == "balanced_accuracy"] == [causes.NOISE]
    assert causes.NOISE in inside(*words, "--format", "csv", check=0).stdout
    text = inside(*words, "--format", "md", check=0).stdout
    assert "print lies between" in text and "Everything that was tried" in text
    short = inside(*words, check=0).stdout
    assert "XGBoost on colon, balanced accuracy (Table 2" in short
    assert max(map(len, short.splitlines())) <= 100


def test_shipped_cells_have_a_cause():
    """A cell waits for its cause only while nothing but its own setting was run."""
    found = {causes.place_of(cause.line): cause for cause in causes.build(ROOT / "results")}
    for cause in found.values():
        assert cause.kind in causes.KINDS and cause.text
        assert cause.kind != causes.NONE or not cause.tried
    thresholds = found[11, "both-selected", "toxicity", "proportion_percent"]
    assert sum(one.kind == "reading" for one in thresholds.tried) == 5
    assert found[10, "rf", "prostate", "selected_features"].kind == causes.INCONSISTENT
    compared = [place for place, cause in found.items() if "fingerprint.md" in cause.text]
    assert {method for _, method, _, _ in compared} <= {"lasso", "rf"}


# Fingerprints ------------------------------------------------------------------------------------


def made(dataset, mean, std, seed=0, f1=None):
    variant = fingerprint.Variant("lasso", {"C": 1.0}, dataset, "released", "none", seed)
    return fingerprint.Print(variant, fingerprint.Spread(mean, std), f1 or {})


def cell(dataset, metric="balanced_accuracy"):
    found = paper.cell(22, "lasso", dataset, metric)
    return found.mean, found.std


def test_a_fingerprint_that_fits_is_found():
    prints = fingerprint.nothing()
    prints.prints.extend(made(f"syn{n}", *cell(f"syn{n}"), seed=7) for n in (1, 2, 3))
    prints.prints.extend(made(f"syn{n}", 50.0, 5.0) for n in (1, 2, 3))
    best, other = fingerprint.matches(prints)
    assert (best.equal, best.distance) == (3, 0) and best.name.endswith(" 7")
    assert other.equal == 0 and other.distance > 0
    assert "3 of them equal" in fingerprint.sentence(prints)
    assert "on 3 datasets" in fingerprint.sentence(prints)
    assert "none equals a printed accuracy" in fingerprint.sentence(
        fingerprint.Prints(prints.revisions, prints.prints[3:])
    )


def test_a_fingerprint_is_of_f1_too():
    """By the reading of the truth that comes nearest; and only what was measured is compared."""
    sets = [f"syn{n}" for n in (1, 2, 3)]
    prints = fingerprint.nothing()
    for seed, f1 in ((1, 0.5), (2, None)):
        for name in sets:
            right = fingerprint.Spread(*(cell(name, "f1_select") if f1 is None else (f1, 0.02)))
            scores = {"branch": fingerprint.Spread(0.9, 0.1), "rows": right}
            prints.prints.append(made(name, *cell(name), seed=seed, f1=scores))
    best, other = fingerprint.matches(prints)
    assert best.name.endswith(" 2") and (best.equal_f1, best.distance) == (3, 0)
    assert other.equal_f1 == 0 and other.distance > 0
    text = fingerprint.to_markdown(prints)
    assert "6 of" in text and "0 of 45 with RF" in text and "; 0.90 ± 0.10; " in text
    for method, metric, compared in [
        ("lasso", "balanced_accuracy", True),
        ("lasso", "f1_select", True),
        ("lasso", "rank_difference", False),
        ("rf", "f1_select", False),
    ]:
        printed = paper.cell(22, method, "syn1", metric)
        assert fingerprint.compares(prints, printed) == compared


def test_a_fingerprint_is_what_a_run_gives():
    """The same data, splits and scaling as the records of the released generator."""
    variant = fingerprint.Variant("lasso", {"C": 1.0}, "syn1", "released", "none", 42)
    assert variant in fingerprint.variants()
    found = fingerprint.measure(variant)
    spec = Cell(models()["lasso"], data_ref("syn1"))
    keys = [s.key for s in spec.specs({"C": 1.0}, Protocol())]
    records, _ = Store(ROOT / "results").find(keys)
    assert len(records) == 25
    scores = [100 * records[key]["scores"]["test"]["balanced_accuracy"] for key in keys]
    assert found.accuracy.mean == pytest.approx(sum(scores) / 25, abs=1e-5)


def test_fingerprints_are_kept_one_by_one(tmp_path, monkeypatch):
    wanted = fingerprint.variants()[:2]
    monkeypatch.setattr(fingerprint, "variants", lambda: wanted)
    monkeypatch.setattr(
        fingerprint, "measure", lambda v: fingerprint.Print(v, fingerprint.Spread(50.0, 5.0), {})
    )
    runs = fingerprint.run(tmp_path, fingerprint.read(tmp_path), 1)
    next(runs)
    assert [p.variant for p in fingerprint.read(tmp_path).prints] == wanted[:1]
    assert len(list(fingerprint.run(tmp_path, fingerprint.read(tmp_path), 1))) == 1
    assert [p.variant for p in fingerprint.read(tmp_path).prints] == wanted
