"""Why a cell differs: from other runs on the same splits, from what is written down, from others."""

import json
from pathlib import Path

import pytest
from conftest import ROOT, cell_of, made_up, spread, write_run

from benchmark import paper
from benchmark.experiments import fingerprint
from benchmark.judge import causes, discrepancies
from benchmark.protocol.choices import Candidate, Choice, search_digest, write_choice
from benchmark.protocol.plan import Cell, Protocol
from benchmark.protocol.registry import data_ref, models
from benchmark.runner.records import Store


def printed(method, dataset="colon"):
    return paper.cell(2, method, dataset, "balanced_accuracy")


def choose(results, name, params, dataset="colon"):
    cell = Cell(models()[name], data_ref(dataset))
    tried = [Candidate(point, 0.6, 25) for point in cell.candidates()]
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


def test_a_setting_that_validation_cannot_tell_apart_is_noise(forest):
    runs(forest, "rf", OTHER, printed("rf").mean, printed("rf").std)
    found = cause_of(forest, "rf")
    assert found.kind == causes.NOISE and "max_depth=3" in found.text
    [tried] = found.tried
    assert tried.kind == "grid" and tried.word in causes.AGREES and tried.a_draw


def test_a_setting_that_validation_rejects_is_none(forest):
    runs(forest, "rf", OTHER, printed("rf").mean, printed("rf").std, valid=0.4)
    found = cause_of(forest, "rf")
    assert found.kind == causes.UNEXPLAINED and not found.tried[0].a_draw


def test_print_between_two_draws_is_noise(forest):
    runs(forest, "rf", OTHER, printed("rf").mean - 12)
    found = cause_of(forest, "rf")
    assert found.kind == causes.NOISE and "print lies between" in found.text


def test_a_switch_of_the_register_is_a_documented_deviation(forest):
    switched = {**CHOSEN, "class_weight": None}
    runs(forest, "rf", switched, printed("rf").mean, printed("rf").std)
    found = cause_of(forest, "rf")
    assert (found.kind, found.register) == (causes.DEVIATION, "rf-weights")
    assert found.tried[0].kind == "switch" and "class_weight=null" in found.text


def test_seeds_are_seeds(forest):
    runs(forest, "rf:random_state=43", CHOSEN, printed("rf").mean + 14)
    found = cause_of(forest, "rf")
    assert [one.kind for one in found.tried] == ["seed"] and found.kind == causes.UNEXPLAINED
    assert "1 other seed tried" in found.text


def test_a_recovered_setting_is_the_cause_whatever_else_was_tried(tmp_path):
    cell = printed("ridge")
    choose(tmp_path, "ridge", {"C": 1.0})
    runs(tmp_path, "ridge", {"C": 1.0}, cell.mean + 12)
    runs(tmp_path, "ridge", models()["ridge"].recovered["colon"], cell.mean, cell.std)
    assert cause_of(tmp_path, "ridge").kind == causes.RECOVERED


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


def test_every_form_holds_every_cause(forest, inside):
    runs(forest, "rf", OTHER, printed("rf").mean - 12)
    words = "compare", "--why", "--table", "2", "--results", forest
    rows = json.loads(inside(*words, "--format", "json", check=0).stdout)
    assert [row["kind"] for row in rows if row["metric"] == "balanced_accuracy"] == [causes.NOISE]
    assert causes.NOISE in inside(*words, "--format", "csv", check=0).stdout
    text = inside(*words, check=0).stdout
    assert "print lies between" in text and "Everything that was tried" in text


def test_shipped_cells_that_were_searched_have_a_cause():
    """A cell waits for its cause only while nothing but its own setting was run."""
    for cause in causes.build(ROOT / "results"):
        assert cause.kind in causes.KINDS and cause.text
        assert cause.kind != causes.NONE or not cause.tried


# Fingerprints ------------------------------------------------------------------------------------


def made(dataset, mean, std, seed=0):
    variant = fingerprint.Variant("lasso", {"C": 1.0}, dataset, "released", "none", seed)
    return fingerprint.Print(variant, fingerprint.Spread(mean, std), {})


def cell(dataset):
    found = paper.cell(22, "lasso", dataset, "balanced_accuracy")
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
    assert "none equals print" in fingerprint.sentence(
        fingerprint.Prints(prints.revisions, prints.prints[3:])
    )


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
