"""Transferability from made-up records: the choice on the grid, both readings of ADTM, the gaps."""

import os
import re

import pytest
from conftest import add_runs, cell_of, spread

from benchmark import figures
from benchmark.protocol import choices, registry
from benchmark.protocol.plan import Protocol
from benchmark.protocol.spec import UserError, failed
from benchmark.runner.masked import SIMPLE
from benchmark.runner.records import Store
from benchmark.tables.statistics import OVERLAP, mean_std
from benchmark.tables.transferability import READINGS, SELECTORS, UNMASKED, build

SPLITS = 25
K, C = [1, 3, 5], [0.001, 0.01, 0.1, 1.0, 10.0]
CHOSEN = {"lam_global": 2e-4, "lr": 0.1}


@pytest.fixture(autouse=True)
def quick_writes(monkeypatch):
    # Thousands of small files need not survive a power cut.
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results"


def choose(results, method, dataset, params):
    made = cell_of(method, dataset)
    choice = choices.Choice(
        method, dataset, "full", 5, 5, SPLITS, made.entry.revision,
        choices.search_digest(made), params, 0.8, [], [], "",
    )  # fmt: skip
    choices.write_choice(results, made, choice)


def add(results, method, dataset, params, test, transfer=None):
    """25 records with these test scores (%); `transfer(run)` is what they hold of masked data."""
    add_runs(results, method, dataset, test, params, **({"transfer": transfer} if transfer else {}))


def masked(knn, svm=None, rbf=None):
    """Scores on masked data, each grid as pairs (validation, test) in per cent, per run."""

    def of(run):
        found = {}
        for name, points, grid, parameter in (
            ("knn", knn, K, "n_neighbors"),
            ("svm", svm or [(50, 50)] * 5, C, "C"),
            ("svm:kernel=rbf", rbf or [(50, 50)] * 5, C, "C"),
        ):
            at = [
                [p[run] / 100 if isinstance(p, list) else p / 100 for p in pair] for pair in points
            ]
            found[name] = {
                parameter: grid,
                "valid": [valid for valid, _ in at],
                "test": [test for _, test in at],
            }
        return found

    return of


def simple_models(results, dataset, knn, svm=None, rbf=None):
    add(results, "knn", dataset, registry.models()["knn"].recovered[dataset], knn)
    add(results, "svm", dataset, {"kernel": "poly", "C": 10.0}, svm or spread(60, 5))
    choose(results, "svm", dataset, {"C": 1.0})
    add(results, "svm", dataset, {"C": 1.0}, rbf or spread(60, 5))


def selector(results, name, dataset, transfer):
    params = {"protogate": CHOSEN, "protogate-global": {"lam_global": 3e-4, "lr": 0.1}}
    params = params.get(name, {"lam_local": 1e-3, "lr": 0.1})
    choose(results, name, dataset, params)
    add(results, name, dataset, params, spread(80, 5), transfer)


def full(results, dataset, none, others):
    """One dataset with KNN's 25 scores without selector and with each of the three."""
    simple_models(results, dataset, none)
    for name, scores in zip(SELECTORS[1:], others, strict=True):
        selector(results, name, dataset, masked([(50, 0), (80, scores), (60, 0)]))


def test_the_best_mean_validation_score_chooses_and_of_equals_the_first(results):
    simple_models(results, "colon", spread(70, 5))
    # By runs 10.0 wins most often, by the mean 0.1 and 1.0 are equal best; the test score decides
    # nothing, although it is best elsewhere.
    often = [91.0] * 20 + [0.0] * 5
    svm = [(50, 99), (60, 99), (80, spread(75, 5)), (spread(80, 10), 99), (often, 99)]
    selector(results, "protogate", "colon", masked([(60, 1), (60, spread(77, 3)), (70, 72)], svm))
    cells = build(Store(results), ["colon"]).cells

    chosen = cells["svm", "protogate", "colon"]
    assert chosen.point == 0.1
    assert chosen.values == pytest.approx(spread(75, 5))
    assert (chosen.mean, chosen.std) == pytest.approx(mean_std(spread(75, 5)))
    assert cells["knn", "protogate", "colon"].point == 5
    assert cells["svm:kernel=rbf", "protogate", "colon"].point == 0.001  # all equal
    assert cells["knn", "none", "colon"].point == 5  # recovered for colon
    assert cells["knn", "none", "colon"].values == pytest.approx(spread(70, 5))


def test_without_selector_svm_is_the_polynomial_one_and_rbf_stands_apart(results):
    simple_models(results, "colon", spread(70, 5), svm=spread(61, 1), rbf=spread(82, 1))
    cells = build(Store(results), ["colon"]).cells
    assert cells["svm", "none", "colon"].mean == pytest.approx(61)
    assert cells["svm", "none", "colon"].point == 10.0
    assert cells["svm:kernel=rbf", "none", "colon"].mean == pytest.approx(82)
    assert cells["svm:kernel=rbf", "none", "colon"].point == 1.0


def test_where_nothing_is_recovered_the_polynomial_kernel_is_tuned(results):
    choose(results, "svm:kernel=poly", "meta-dr", {"kernel": "poly", "C": 1.0})
    add(results, "svm", "meta-dr", {"kernel": "poly", "C": 1.0}, spread(55, 5))
    cell = build(Store(results), ["meta-dr"]).cells["svm", "none", "meta-dr"]
    assert (cell.point, cell.mean) == (1.0, pytest.approx(55))


def two_datasets(results):
    # colon: means 60, 70, 65, 80; single runs from 50 to 85.
    full(results, "colon", spread(60, 10), [spread(70, 5), spread(65, 5), spread(80, 5)])
    # lung: means 90, 80, 85, 95; single runs from 75 to 100.
    full(results, "lung", spread(90, 5), [spread(80, 5), spread(85, 5), spread(95, 5)])
    return build(Store(results), ["colon", "lung", "prostate"])


def test_both_readings_of_adtm(results):
    found = two_datasets(results)
    assert found.comparable("knn") == ("colon", "lung")

    means = found.adtm("means")
    # (60, 70, 65, 80) -> (0, 50, 25, 100), and (90, 80, 85, 95) -> (66.67, 0, 33.33, 100)
    expected = {"none": (0, 200 / 3), "protogate-global": (50, 0)}
    expected |= {"protogate-local": (25, 100 / 3), "protogate": (100, 100)}
    for name, values in expected.items():
        assert means["knn", name].values == pytest.approx(values)
    assert means["knn", "none"].ours == pytest.approx((100 / 3, (200 / 3) / 2**0.5))

    pooled = found.adtm("pooled")
    # colon from 50 to 85: (10, 20, 15, 30) / 35; lung from 75 to 100: (15, 5, 10, 20) / 25
    expected = {"none": (1000 / 35, 60), "protogate-global": (2000 / 35, 20)}
    expected |= {"protogate-local": (1500 / 35, 40), "protogate": (3000 / 35, 80)}
    for name, values in expected.items():
        assert pooled["knn", name].values == pytest.approx(values)
        assert pooled["knn", name].datasets == ("colon", "lung")


def test_adtm_stands_beside_table_23_and_says_over_which_datasets(results):
    found = two_datasets(results)
    for reading in READINGS:
        adtm = found.adtm(reading)
        assert adtm["knn", "protogate"].printed == (79.45, 11.22)
        assert adtm["svm", "none"].printed == (44.22, 15.96)
        verdict = adtm["knn", "protogate"].verdict
        assert verdict.word == "incomplete"
        assert "2 of 7 datasets (colon, lung)" in verdict.why
        assert adtm["svm:kernel=rbf", "none"].verdict.word == "not in paper"
    with pytest.raises(UserError, match="Did you mean 'pooled'"):
        found.adtm("poled")


def test_with_all_seven_datasets_the_printed_value_is_compared(results):
    # The three others at 0, 1 and 100 of 100; ProtoGate's ADTM is then its own score.
    printed = 79.45
    datasets = ("colon", "lung", "meta-dr", "meta-pam", "prostate", "tcga-2y", "toxicity")
    steps = [-17.0, -8.0, -4.0, 0.0, 4.0, 8.0, 17.0]
    for dataset, step in zip(datasets, steps, strict=True):
        add(results, "knn", dataset, {"n_neighbors": 1}, [0.0] * SPLITS)
        choose(results, "knn", dataset, {"n_neighbors": 1})
        others = [[100.0] * SPLITS, [1.0] * SPLITS, [printed + step] * SPLITS]
        for name, scores in zip(SELECTORS[1:], others, strict=True):
            selector(results, name, dataset, masked([(80, scores), (50, 0), (60, 0)]))
    # Recovered for colon, so that it counts there.
    add(results, "knn", "colon", {"n_neighbors": 5}, [0.0] * SPLITS)
    adtm = build(Store(results)).adtm("pooled")
    same = adtm["knn", "protogate"]
    assert same.datasets == datasets
    assert same.ours == pytest.approx(mean_std([printed + step for step in steps]))
    assert same.verdict.word == "inconclusive"
    assert same.verdict.difference == pytest.approx(0)
    assert adtm["knn", "none"].ours == (0, 0)
    assert adtm["knn", "none"].verdict.word == "different"


def test_a_dataset_where_all_are_equal_tells_nothing(results):
    same = [70.0] * SPLITS
    full(results, "colon", same, [same] * 3)
    full(results, "lung", spread(90, 5), [spread(80, 5), spread(85, 5), spread(95, 5)])
    found = build(Store(results), ["colon", "lung"])
    assert found.comparable("knn") == ("colon", "lung")
    for reading in READINGS:
        assert found.adtm(reading)["knn", "protogate"].datasets == ("lung",)


def test_gains_are_paired_by_split(results):
    without = [50.0 + run for run in range(SPLITS)]
    with_ = [52.0 + run for run in range(SPLITS)]
    full(results, "colon", without, [with_] * 3)
    found = build(Store(results), ["colon", "lung"])
    assert found.gain("knn", "protogate", "colon") == pytest.approx([2.0] * SPLITS)
    assert found.gain("knn", "protogate", "lung") is None


def test_gaps_carry_a_reason_and_a_command(results):
    simple_models(results, "colon", spread(70, 5))
    choose(results, "protogate", "colon", CHOSEN)
    specs = cell_of("protogate", "colon").specs(CHOSEN, Protocol())
    Store(results).write(failed(specs[0], "timeout", "too slow"))
    selector(results, "protogate-local", "colon", transfer=None)
    found = build(Store(results), ["colon", "lung"])
    assert found.comparable("knn") == ()
    assert found.adtm("means")["knn", "none"].verdict.word == "not run"

    def gap(name, dataset="colon", simple="knn"):
        cell = found.cells[simple, name, dataset]
        assert cell in found.gaps and not cell.values
        [remedy] = cell.remedy
        return cell.gap.reason, remedy

    reason, remedy = gap("protogate")
    assert "1 timeout" in reason and "24 not run" in reason
    assert (
        remedy
        == "python -m benchmark reproduce table23 --models protogate --datasets colon --budget all"
    )
    # These were made before masked data were looked at: running them is not enough.
    reason, remedy = gap("protogate-local")
    assert reason == "25 of 25 records hold no scores on masked data"
    assert remedy == "python -m benchmark run --force --models protogate-local --datasets colon"
    reason, remedy = gap("protogate-global")
    assert reason == "not tuned yet"
    assert (
        remedy
        == "python -m benchmark reproduce table23 --models protogate-global --datasets colon --budget all"
    )
    reason, remedy = gap("none", "lung", "svm")
    assert (
        remedy
        == "python -m benchmark reproduce table23 --models svm:kernel=poly --datasets lung --budget all"
    )


def test_a_record_of_an_older_grid_is_a_gap_and_not_another_value(results):
    simple_models(results, "colon", spread(70, 5))

    def shorter(run):
        found = masked([(50, 1), (60, 2), (70, 3)])(run)
        if run == 7:
            found["knn"] = {"n_neighbors": [3, 5], "valid": [0.6, 0.7], "test": [0.02, 0.03]}
        return found

    selector(results, "protogate", "colon", shorter)
    cells = build(Store(results), ["colon"]).cells
    assert cells["knn", "protogate", "colon"].gap.reason.startswith("1 of 25 records")
    assert cells["svm", "protogate", "colon"].complete


def test_every_simple_model_has_a_source_without_selector():
    assert UNMASKED.keys() == SIMPLE.keys()


# Figures -----------------------------------------------------------------------------------------


def marks(axes, marker):
    """Places and faces of the points drawn with this marker."""
    return [
        (*line.get_xydata()[0], line.get_markerfacecolor())
        for line in axes.lines
        if line.get_marker() == marker
    ]


def test_figure_5_has_the_printed_value_and_both_readings(results):
    two_datasets(results)
    figure = figures.draw("figure5", results)
    knn, _, rbf = figure.axes
    hollow, filled = marks(knn, "*")
    assert (hollow[0], hollow[2]) == (79.45, "white")
    assert filled[0] == pytest.approx((3000 / 35 + 80) / 2)
    assert [x for x, *_ in marks(knn, "|")] == pytest.approx([100 / 3, 25, 175 / 6, 100])
    assert "white" not in [face for *_, face in marks(rbf, "*")]  # nothing is printed of it
    note = figure._supxlabel.get_text().replace("\n", " ")
    assert "Ours over colon, lung; the paper's over 7 datasets." in note
    assert "No data: meta-dr, tcga-2y" in note
    assert "reproduce table23" in note
    assert "not printed" in rbf.get_title("left")
    assert "not run" not in [text.get_text() for axes in figure.axes for text in axes.texts]
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words[:2] == ["paper", "ours, from single runs"] and len(words) == 4


def test_figure_5_tells_what_was_run_from_what_can_be_compared(results):
    simple_models(results, "colon", spread(70, 5))
    selector(results, "protogate", "colon", masked([(50, 1), (60, 2), (70, 3)]))
    figure = figures.draw("figure5", results)
    rows = [text.get_text() for text in figure.axes[0].texts]
    assert rows == ["run on 1 of 7 datasets", "not run", "not run", "run on 1 of 7 datasets"]
    note = figure._supxlabel.get_text().replace("\n", " ")
    assert "(ProtoGate-global, ProtoGate-local: on none)" in note


def test_figure_11_has_the_mean_gain_of_each_selector(results):
    two_datasets(results)
    knn, *_ = figures.draw("figure11", results).axes
    gains = {round(y): x for x, y, _ in marks(knn, "*")}
    assert gains == {0: pytest.approx(20), 1: pytest.approx(5)}  # colon and lung
    assert [x for x, *_ in marks(knn, "<")] == pytest.approx([10, -10])
    # Of 25 runs: Student's quantile times the error with Nadeau and Bengio's correction.
    gain = build(Store(results)).gain("knn", "protogate", "colon")
    half = 2.0639 * mean_std(gain)[1] * (1 / SPLITS + OVERLAP) ** 0.5
    lines = [tuple(line.get_xdata()) for line in knn.lines]
    assert pytest.approx((20 - half, 20 + half), abs=0.01) in lines
    # meta-dr, meta-pam, prostate, tcga-2y, toxicity: in that order
    blank = ["no data", "not run", "not run", "no data", "not run"]
    assert [text.get_text() for text in knn.texts] == blank


def test_a_note_asks_for_nothing_that_is_there(results):
    simple_models(results, "colon", spread(70, 5))
    selector(results, "protogate", "colon", masked([(50, 1), (60, 2), (70, 3)]))
    note = figures.draw("figure11", results)._supxlabel.get_text().replace("\n", " ")
    halves = "ProtoGate-global, ProtoGate-local on colon, lung, meta-pam, prostate, toxicity;"
    assert halves in note
    assert re.search(r"; [^;]*\bProtoGate\b[^;]* on lung, meta-pam, prostate, toxicity", note)
    assert "svm" not in note, "a reader knows it by its name"


def test_figures_without_any_selector_name_the_command(results):
    simple_models(results, "colon", spread(70, 5))
    with pytest.raises(UserError, match="reproduce table23"):
        figures.draw("figure11", results)
    selector(results, "protogate", "colon", masked([(50, 1), (60, 2), (70, 3)]))
    assert figures.draw("figure11", results).axes
    note = figures.draw("figure5", results)._supxlabel.get_text()
    assert "no dataset has all four selectors complete" in note and "reproduce table23" in note
