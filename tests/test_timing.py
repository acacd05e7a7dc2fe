"""Times from runs of their own: taken, kept, shown, and never silently taken on a busy machine."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest

from benchmark.experiments import stopwatch, timing
from benchmark.protocol import registry
from benchmark.protocol.plan import Cell, canonical_model
from benchmark.protocol.spec import UserError
from benchmark.tables import needs, reproduce
from benchmark.tables.build import build_table
from benchmark.tables.recipes import catalogue


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(stopwatch, "EPOCHS", 2)
    monkeypatch.setattr(stopwatch, "PREDICTIONS", 2)
    monkeypatch.setattr(stopwatch, "other_load", lambda: 0.0)


def cell(model="protogate", dataset="syn1"):
    entry, overrides = registry.model_ref(model)
    return Cell(entry, registry.data_ref(dataset), overrides)


def test_a_timing_is_taken_kept_and_read(tmp_path):
    taken = stopwatch.measure(cell(), tmp_path)
    assert len(taken.train_seconds_per_epoch) == len(taken.inference_ms_per_sample) == 5
    assert min(taken.train_seconds_per_epoch) > 0 and min(taken.inference_ms_per_sample) > 0
    assert taken.parameters == 2 * 100 * 100 + 100 + 100
    assert taken.quiet and taken.machine["cpu"]
    timing.write(tmp_path, cell(), taken)
    assert timing.read(tmp_path, cell()) == taken
    assert timing.read(tmp_path, cell(dataset="syn2")) is None
    newer = replace(cell(), entry=replace(cell().entry, revision=taken.revision + 1))
    assert timing.read(tmp_path, newer) is None, "other code takes other times"


def test_the_mask_of_a_model_that_predicts_without_it_is_timed_too(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(20, 5)), np.arange(20) % 2
    calls = []
    for name in ("realx", "l2x"):
        Model = registry.load_class(registry.models()[name])
        model = Model(steps=1, random_state=0).fit(X, y)
        for method in ("predict", "select"):
            called = f"{method} of {name}"
            monkeypatch.setattr(model, method, lambda X, called=called: calls.append(called))
        stopwatch.answer(model, X)
    assert calls == ["predict of realx", "select of realx", "predict of l2x"]


def test_a_damaged_timing_is_named(tmp_path):
    path = timing.path_of(tmp_path, cell())
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(
        UserError, match="cannot be used: .* is missing.*benchmark time --models protogate"
    ):
        timing.read(tmp_path, cell())


def test_models_without_epochs_are_refused(tmp_path):
    with pytest.raises(UserError, match="'knn' does not train in epochs"):
        stopwatch.measure(cell("knn"), tmp_path)


def test_only_what_is_missing_is_timed_and_a_busy_machine_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(stopwatch, "other_load", lambda: 1.7)
    made = [cell(), cell("protogate:sort=quick")]
    reproduce.take_times(made, tmp_path, None)
    assert "other processes kept 1.7 cores busy" in capsys.readouterr().err
    first = timing.path_of(tmp_path, made[0]).read_text()
    reproduce.take_times(made, tmp_path, None)
    assert timing.path_of(tmp_path, made[0]).read_text() == first
    assert json.loads(timing.path_of(tmp_path, made[1]).read_text())["params"]["sort"] == "quick"


def test_the_table_shows_times_with_their_machine(tmp_path):
    timing.write(tmp_path, cell(dataset="colon"), timing.Timing(
        "protogate", "colon", {}, 1, [0.004] * 5, [0.2] * 5, 802_200, 2.0,
        {"cpu": "Some CPU", "platform": "Linux"}, {},
    ))  # fmt: skip
    table = build_table("20", tmp_path)
    shown = table.results["protogate:sort=hybrid", "colon", "train_ms_per_epoch", "rule"]
    assert shown.mean == pytest.approx(4.0) and "Some CPU" in shown.verdict.why
    assert shown.note == "default settings, not tuned; timed while other processes were busy"


def test_needs_of_computed_tables():
    models = {need.cell.model for need in needs.needs("table23")}
    assert models == {
        "knn", "svm", "svm:kernel=poly", "protogate", "protogate-global", "protogate-local",
    }  # fmt: skip
    strengths = [need.params["lam_global"] for need in needs.needs("table17", None, ["colon"])]
    assert strengths == [0.0, 1e-4, 3e-4, 5e-4, 7e-4, 1e-3]
    assert needs.needs("table12") == []
    assert {c.model for c in needs.timed("table20")} == {
        "protogate", "protogate:sort=quick", "protogate:sort=neural",
    }  # fmt: skip
    base = {need.settings for need in needs.needs("table19")}
    assert base == {"base"}


@pytest.mark.parametrize(
    ("table", "model", "dataset", "names"),
    [
        ("table2", "knn", "colon", ("knn", "colon")),
        ("stg-causes", "stg:weight_decay=1e-4", "colon", ("stg:weight_decay=0.0001", "colon")),
        ("table23", "svm:kernel=poly", "meta-dr", ("svm:kernel=poly", "meta-dr")),
        ("table20", "protogate:sort=quick", "lung", ("protogate:sort=quick", "lung")),
        ("table22", "rf", "syn1:generator=released", ("rf", "syn1")),
    ],
)
def test_what_is_named_of_a_table_goes_by_the_names_of_its_cells(table, model, dataset, names):
    models, datasets = needs.named(table, [model], [dataset])
    assert (*models, *datasets) == names
    cells = [need.cell for need in needs.needs(table, models, datasets)] + needs.timed(table)
    assert names in [(cell.model, cell.data.label) for cell in cells]


def test_settings_in_another_order_are_the_same_row():
    [row] = {n.cell.model for n in needs.needs("stg-causes") if n.cell.model.count(":") > 3}
    name, *settings = row.split(":")
    assert needs.named("stg-causes", [":".join([name, *settings[::-1]])], None) == ([row], None)


@pytest.mark.parametrize(
    ("models", "datasets", "said"),
    [
        (
            ["protogate-text"],
            None,
            "Unknown model of table2 'protogate-text'. Did you mean 'protogate'",
        ),
        (["svm:C=0.5"], None, "Unknown model of table2 'svm:C=0.5'. Did you mean 'svm'"),
        (["nosuch"], None, "Unknown model 'nosuch'"),
        (None, ["syn1"], "Unknown dataset of table2 'syn1'"),
        (None, ["colom"], "Unknown dataset 'colom'. Did you mean 'colon'"),
    ],
)
def test_what_a_table_does_not_have_is_told(models, datasets, said):
    with pytest.raises(UserError) as error:
        needs.named("table2", models, datasets)
    assert said in str(error.value)


def test_a_model_that_a_table_has_on_other_datasets_is_told():
    with pytest.raises(UserError, match="table23 has no svm:kernel=poly on colon"):
        needs.named("table23", ["svm:kernel=poly"], ["colon"])


@pytest.mark.parametrize("table", list(catalogue()))
def test_a_remedy_names_what_the_table_has(table, tmp_path):
    for result in build_table(table, tmp_path).shown:
        command, _, of = result.gap.command.partition(" ") if result.gap else ("", "", "")
        if command == "reproduce" and result.dataset:
            needs.named(of, [result.model], [result.dataset])
    for need in needs.needs(table):
        assert canonical_model(need.cell.model) == need.cell.model


def test_the_machine_tells_how_busy_it_is():
    before, spun = stopwatch._busy_seconds(), time.process_time() + 0.3
    while time.process_time() < spun:
        pass
    assert stopwatch._busy_seconds() - before > 0.2
