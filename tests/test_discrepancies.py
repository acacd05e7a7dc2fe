"""The register of discrepancies: every entry is whole, and effects come from records."""

import json

import pytest
from conftest import ROOT, add_runs, cell_of

from benchmark.judge import discrepancies
from benchmark.protocol import choices, registry
from benchmark.protocol.plan import Protocol
from benchmark.tables.statistics import corrected_resampled_t


def add(results, name, dataset, params, scores):
    add_runs(results, name, dataset, scores, params, selection={"mean": 12.0})


def test_every_entry_is_whole():
    for name, entry in discrepancies._entries().items():
        assert entry.keys() <= {"title", "where", "text", "numbers", "code", "ours", "switch",
                                "effect", "trial"}, name  # fmt: skip
        assert entry["title"] and entry["ours"], name
        sources = [entry[key] for key in ("text", "numbers", "code")]
        assert any(sources) or entry.get("effect"), name
        for effect in entry.get("effect", []):
            for side in ("a", "b"):
                if side in effect:
                    registry.model_ref(effect[side])
            for dataset in effect.get("datasets", []):
                registry.data_ref(dataset)
                if "b_data" in effect:
                    registry.data_ref(f"{dataset}:{effect['b_data']}")


def settings_of(method, dataset):
    """Every argument of the class, at the first point of the grid, and the seed."""
    cell = cell_of(method, dataset)
    spec = cell.specs(cell.candidates()[0], Protocol())[0]
    return registry._signature(cell.entry) | spec.params, spec.start


def test_no_effect_is_that_of_a_model_beside_itself():
    """A switch to what is set already would be reported to change nothing."""
    for name, entry in discrepancies._entries().items():
        for effect in entry.get("effect", []):
            for dataset in effect["datasets"] if "b" in effect and "b_data" not in effect else ():
                both = [settings_of(effect[side], dataset) for side in ("a", "b")]
                assert both[0] != both[1], f"{name}: {effect['b']} on {dataset} changes nothing"


def test_the_switch_of_every_entry_is_one_that_exists():
    for name, entry in discrepancies._entries().items():
        switch = entry["switch"].split(" ")[0].split(",")[0]
        model, _, setting = switch.partition(":")
        if model in registry.models() and setting:
            known = discrepancies.registry._signature(registry.models()[model])
            assert all(part.partition("=")[0] in known for part in setting.split(":")), name


def test_an_effect_is_paired_and_tested(tmp_path):
    first = [70.0 + i % 5 for i in range(25)]
    second = [x + 2 + i % 3 for i, x in enumerate(first)]
    add(tmp_path, "xgboost", "colon", {}, first)
    add(tmp_path, "xgboost:base_score=0.5", "colon", {}, second)
    entry = next(d for d in discrepancies.build(tmp_path) if d.id == "xgboost-start")
    colon, features, prostate = entry.effects
    assert colon.difference == pytest.approx(sum(second) / 25 - sum(first) / 25)
    differences = [b - a for a, b in zip(first, second, strict=True)]
    assert colon.p == pytest.approx(corrected_resampled_t(differences)[1])
    assert features.what == "features on colon" and features.difference == 0
    assert [one.reason for one in prostate.missing] == ["not run yet", "not run yet"]
    text = discrepancies.to_markdown([entry])
    assert "accuracy on colon" in text and f"{colon.difference:+.2f}" in text
    assert "--models xgboost:base_score=0.5 --datasets prostate`" in text


def test_rules_that_need_no_records(tmp_path):
    made = {d.id: d for d in discrepancies.build(tmp_path)}
    [ranks] = made["rank-missing"].effects
    assert ranks.sides["ties min, missing mean"].startswith("16 of 17")
    assert ranks.sides["ties min, missing drop"].startswith("8 of 17")
    assert ranks.sides["ties average, missing mean"].startswith("14 of 17")
    two, fifteen = made["rank-deviation"].effects
    assert fifteen.sides == {
        "sample standard deviation": "0 of 7",
        "population standard deviation": "7 of 7",
    }
    assert two.sides["sample standard deviation"] == "16 of 17"
    json.loads(discrepancies.to_json(list(made.values())))


def test_the_released_code_is_beside_print_and_beside_ours(tmp_path):
    """Its runs ship with the project; the numbers are taken from them."""
    [entry] = [d for d in discrepancies.build(tmp_path) if d.id == "protogate-released"]
    accuracy, same, features, _ = entry.effects
    assert accuracy.what.endswith("different") and features.what.endswith("different")
    assert accuracy.sides == {"printed": "83.95 ± 9.82", "released code": "71.95 ± 8.98"}
    assert accuracy.difference == pytest.approx(-12.0, abs=0.005)
    assert same.sides["ours with its settings"] == "73.10 ± 10.74"
    # Half of the interval allows for the rows that runs share, as p does: sqrt(1/25 + 20/72) in place of
    # sqrt(1/25) makes the plain standard error of 2.06 one of 5.81, with 2.064 for 24 degrees of freedom.
    assert (round(same.difference, 2), round(same.half, 2)) == (1.15, 11.99)
    assert same.p > 0.5
    assert "+1.15 (-10.84 to +13.14)" in discrepancies.to_markdown([entry])


def test_every_row_of_the_summary_names_its_dataset():
    made = discrepancies.build(ROOT / "results")
    largest = [entry.largest.what for entry in made if entry.largest]
    assert largest and all(" on " in what for what in largest)


def test_what_is_only_a_trial_says_so():
    """Where text, code and harness say the same, or are silent, the other side is nobody's."""
    trials = {name for name, entry in discrepancies._entries().items() if entry.get("trial")}
    assert {"l2x-batch", "protogate-seed", "rf-trees"} <= trials
    for name, entry in discrepancies._entries().items():
        said = {entry[key] for key in ("text", "numbers", "code")} - {""}
        assert name in trials or said != {entry["ours"]}, f"{name} is no discrepancy"


def test_commands_can_be_typed(tmp_path):
    """A switch is spelled so that the command line reads it back as the same value."""
    entry = next(d for d in discrepancies.build(tmp_path) if d.id == "protogate-self")
    assert entry.switch == "protogate:exclude_self=true"
    name = "protogate:exclude_self=true"
    assert cell_of(name, "colon").model == name
    weights = cell_of("rf:class_weight=null", "colon")
    assert weights.overrides == {"class_weight": None}
    assert weights.model == "rf:class_weight=null"


def test_a_cell_that_failed_to_converge_is_listed_with_its_score(tmp_path):
    # XGBoost has nothing to choose, so its runs need no choice of settings.
    add(tmp_path, "xgboost", "colon", {}, [50.0] * 14 + [75.0] * 11)
    made = next(d for d in discrepancies.build(tmp_path) if d.id == "failed-convergence")
    [flagged] = [effect for effect in made.effects if effect.sides]
    assert flagged.what == "xgboost on colon"
    assert flagged.sides == {"score kept": "61.00 ± 12.67", "failed runs": "14 of 25"}
    # The paper's dashes are there too, as long as we have no runs beside them.
    missing = [one for effect in made.effects for one in effect.missing]
    assert [(one.model, one.dataset) for one in missing] == [
        ("invase", "colon"), ("invase", "meta-dr"), ("invase", "prostate"),
    ]  # fmt: skip


def test_the_same_selection_is_scored_by_either_truth(tmp_path):
    cell, chosen = cell_of("rf", "syn2"), cell_of("rf", "syn2").candidates()[0]
    choice = choices.Choice(
        "rf", "syn2", "full", 5, 5, 25, cell.entry.revision, choices.search_digest(cell),
        chosen, 0.6, [], [], "",
    )  # fmt: skip
    choices.write_choice(tmp_path, cell, choice)
    add_runs(
        tmp_path, "rf", "syn2", [60.0] * 25, chosen,
        selection=lambda run: {"f1": {"rows": 0.2, "branch": 0.3 + run / 100}},
    )  # fmt: skip
    made = next(d for d in discrepancies.build(tmp_path) if d.id == "synthetic-generator")
    [effect] = [e for e in made.effects if e.what == "rf: F1 of the selected features on syn2"]
    assert effect.difference == pytest.approx(0.22)
    assert list(effect.sides) == ["truth by row number", "truth by branch"]
    assert effect.sides["truth by row number"] == "0.20 ± 0.00"


def test_a_command_names_each_dataset_once(tmp_path):
    text = discrepancies.to_markdown(discrepancies.build(tmp_path))
    for line in text.splitlines():
        if "--datasets" in line:
            names = line.partition("--datasets ")[2].partition("`")[0].split(",")
            assert len(names) == len(set(names)), line
