"""The deviation register: every entry is whole, and effects come from records."""

import json

import pytest
from conftest import add_runs, cell_of

from benchmark import deviations, registry
from benchmark.statistics import corrected_resampled_t


def add(results, name, dataset, params, scores):
    add_runs(results, name, dataset, scores, params, selection={"mean": 12.0})


def test_every_entry_is_whole():
    for name, entry in deviations._entries().items():
        assert entry.keys() <= {"title", "where", "text", "numbers", "code", "ours", "switch",
                                "effect"}, name  # fmt: skip
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


def test_the_switch_of_every_entry_is_one_that_exists():
    for name, entry in deviations._entries().items():
        switch = entry["switch"].split(" ")[0].split(",")[0]
        model, _, setting = switch.partition(":")
        if model in registry.models() and setting:
            known = deviations.registry._signature(registry.models()[model])
            assert all(part.partition("=")[0] in known for part in setting.split(":")), name


def test_an_effect_is_paired_and_tested(tmp_path):
    first = [70.0 + i % 5 for i in range(25)]
    second = [x + 2 + i % 3 for i, x in enumerate(first)]
    add(tmp_path, "xgboost", "colon", {}, first)
    add(tmp_path, "xgboost:base_score=0.5", "colon", {}, second)
    entry = next(d for d in deviations.build(tmp_path) if d.id == "xgboost-start")
    colon, features, prostate = entry.effects
    assert colon.difference == pytest.approx(sum(second) / 25 - sum(first) / 25)
    differences = [b - a for a, b in zip(first, second, strict=True)]
    assert colon.p == pytest.approx(corrected_resampled_t(differences)[1])
    assert features.what == "features on colon" and features.difference == 0
    assert [lack.reason for lack in prostate.lacking] == ["not run yet", "not run yet"]
    text = deviations.to_markdown([entry])
    assert "accuracy on colon" in text and f"{colon.difference:+.2f}" in text
    assert "--models xgboost:base_score=0.5 --datasets prostate`" in text


def test_rules_that_need_no_records(tmp_path):
    made = {d.id: d for d in deviations.build(tmp_path)}
    [ranks] = made["rank-missing"].effects
    assert ranks.sides["ties min, missing mean"].startswith("16 of 17")
    assert ranks.sides["ties min, missing drop"].startswith("8 of 17")
    assert ranks.sides["ties average, missing mean"].startswith("14 of 17")
    two, fifteen = made["rank-deviation"].effects
    assert fifteen.sides == {"sample deviation": "0 of 7", "population deviation": "7 of 7"}
    assert two.sides["sample deviation"] == "16 of 17"
    json.loads(deviations.to_json(list(made.values())))


def test_commands_can_be_typed(tmp_path):
    """A switch is spelled so that the command line reads it back as the same value."""
    entry = next(d for d in deviations.build(tmp_path) if d.id == "protogate-self")
    assert entry.switch == "protogate:exclude_self=true"
    name = "protogate:exclude_self=true"
    assert cell_of(name, "colon").model == name
    weights = cell_of("rf:class_weight=null", "colon")
    assert weights.overrides == {"class_weight": None}
    assert weights.model == "rf:class_weight=null"
