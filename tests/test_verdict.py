"""The four words: what each of them needs, and how often it is wrong."""

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from conftest import add_runs, cell_of, spread

from benchmark.protocol import registry
from benchmark.runner.records import Store
from benchmark.tables import pairing
from benchmark.tables.measured import measure
from benchmark.tables.recipes import read_recipe
from benchmark.tables.verdict import (
    JUDGED,
    Sample,
    Shared,
    compare,
    compare_over_datasets,
    same_or_not,
)

KNN = Sample(71.65, 12.03)
"""As printed for colon."""


def interval(gap, error, level):
    half = scipy.stats.t.ppf(0.5 + level / 2, 24) * error
    return gap - half, gap + half


@pytest.mark.parametrize("rho", [0.0, 0.6])
@pytest.mark.parametrize(
    ("mean", "std"), [(71.0, 11.0), (73.0, 12.0), (78.0, 12.0), (90.0, 4.0), (60.0, 30.0)]
)
def test_the_words_follow_from_two_intervals(mean, std, rho):
    verdict = compare(Sample(mean, std), KNN, 2, shared=Shared(rho))
    error = math.sqrt((std**2 + KNN.std**2 - 2 * rho * std * KNN.std) / 25)
    gap = mean - KNN.mean
    wide, narrow = interval(gap, error, 0.95), interval(gap, error, 0.90)
    if max(map(abs, narrow)) <= KNN.std / 2:
        word = "equivalent"
    else:
        word = "inconclusive" if wide[0] <= 0 <= wide[1] else "different"
    assert verdict.word == word
    assert verdict.interval == pytest.approx(wide)
    assert verdict.within == pytest.approx(max(map(abs, narrow)))
    assert (verdict.margin, verdict.shared) == (pytest.approx(KNN.std / 2), Shared(rho))
    assert verdict.difference == pytest.approx(gap)


def test_all_four_words_occur():
    sides = [(71.65, 12.03, 0.0), (72.0, 12.0, 0.6), (73.0, 20.0, 0.0), (95.0, 5.0, 0.0)]
    words = [
        compare(Sample(mean, std), KNN, 2, shared=Shared(rho)).word for mean, std, rho in sides
    ]
    assert words == ["equal", "equivalent", "inconclusive", "different"]
    assert set(words) == set(JUDGED)


def test_equal_needs_the_standard_deviation_too():
    assert compare(Sample(71.6549, 12.0251), KNN, 2).word == "equal"
    assert compare(Sample(71.6449, 12.03), KNN, 2).word != "equal"
    assert compare(Sample(71.65, 12.04), KNN, 2).word != "equal"
    assert compare(Sample(71.65, 3.0), Sample(71.65, None), 2).word == "equal"


def test_what_runs_share_is_told_beside_the_conservative_reading():
    shared = compare(Sample(73.0, 12.0), KNN, 2, shared=Shared(0.8))
    assert (shared.word, shared.unpaired) == ("equivalent", "inconclusive")
    assert shared.within < compare(Sample(73.0, 12.0), KNN, 2).within


def test_erratic_or_few_runs_buy_neither_agreement_nor_difference():
    assert compare(Sample(76.0, 40.0), KNN, 2).word == "inconclusive"
    assert compare(Sample(71.7, 12.03, 4), KNN, 2).word == "inconclusive"
    assert compare(Sample(71.7, 12.03), KNN, 2, shared=Shared(0.6)).word == "equivalent"


@pytest.mark.parametrize(
    ("shift", "rho", "word", "low", "high"),
    [
        (0.0, 0.0, "different", 0.03, 0.07),  # the level of the interval
        (0.0, 0.6, "different", 0.03, 0.07),
        (0.5, 0.6, "equivalent", 0.03, 0.07),  # at the edge of the margin: the level again
        (0.0, 0.6, "equivalent", 0.6, 1.0),  # and where nothing differs it is usually seen
        (1.5, 0.0, "different", 0.9, 1.0),
    ],
)
def test_how_often_a_word_is_said(shift, rho, word, low, high):
    rng = np.random.default_rng(0)
    split = rng.normal(0, math.sqrt(rho), (4000, 25))
    rest = math.sqrt(1 - rho)
    ours = shift + split + rest * rng.normal(size=(4000, 25))
    theirs = split + rest * rng.normal(size=(4000, 25))
    found = [
        compare(
            Sample(a.mean(), a.std(ddof=1)), Sample(b.mean(), b.std(ddof=1)), 9, shared=Shared(rho)
        ).word
        for a, b in zip(ours, theirs, strict=True)
    ]
    assert low < found.count(word) / len(found) < high


def trainings(rng, n, seed, rho):
    """Means and standard deviations of n trainings over 25 splits that they share; a training's own seed
    moves all its runs alike, with the variance seed / 25."""
    split = rng.normal(0, math.sqrt(rho), (1, 25))
    luck = rng.normal(0, math.sqrt(seed / 25), (n, 1))
    return split + luck + math.sqrt(1 - rho) * rng.normal(size=(n, 25))


def test_a_lucky_seed_is_no_difference():
    """One seed serves all runs of a training. If that is not counted, two trainings of one setting are
    called different too often."""
    rng, said = np.random.default_rng(4), {0.0: 0, 0.8: 0}
    for _ in range(3000):
        a, b = trainings(rng, 2, 0.8, 0.6)
        sides = [Sample(x.mean(), x.std(ddof=1)) for x in (a, b)]
        for seed in said:
            said[seed] += compare(*sides, 9, shared=Shared(0.6, seed)).word == "different"
    assert said[0.8] / 3000 < 0.07 and said[0.0] / 3000 > 0.15


def test_what_a_seed_adds_is_found():
    rng = np.random.default_rng(5)
    for seed in (0.0, 0.8):
        found = [pairing._added(trainings(rng, 5, seed, 0.6).tolist()) for _ in range(1500)]
        assert np.mean(found) == pytest.approx(seed, abs=0.06)
    assert pairing._added([[1.0, 2.0]]) is None
    assert pairing._added([[1.0, 1.0], [1.0, 2.0]]) is None


def test_values_that_never_vary():
    assert compare(Sample(50.0, 0.0), Sample(50.0, 0.0), 2).word == "equal"
    other = compare(Sample(50.0, 0.0), Sample(51.0, 0.0), 2)
    assert (other.word, other.interval, other.within) == ("different", (-1.0, -1.0), 1.0)


def test_without_a_printed_standard_deviation_nothing_is_equivalent():
    near, far = (
        compare(Sample(x, 5.0), Sample(70.1, None), 2, shared=Shared(0.6)) for x in (70.2, 80.0)
    )
    assert (near.word, far.word) == ("inconclusive", "different")
    assert near.margin is None and "no margin is printed" in near.why
    # A method that varies by 150 features was once said to agree with a print 60 away.
    assert compare(Sample(150.0, 200.0), Sample(90.0, None), 2).word == "inconclusive"


def test_a_method_without_randomness_has_another_cause_than_chance():
    why = compare(Sample(75.0, 12.0), KNN, 2, deterministic=True).why
    assert why.endswith("this is another setting, version or data")
    assert "another setting" not in compare(Sample(71.65, 12.03), KNN, 2, deterministic=True).why


def test_where_no_test_is_possible_there_are_two_words():
    assert same_or_not(2.444, 2.4, 1).word == "equal"
    assert same_or_not(3.7, 2.4, 1).word == "different"


def test_means_over_datasets():
    theirs = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    words = [
        compare_over_datasets(ours, theirs, 2).word
        for ours in (theirs, [1.2, 1.9, 3.0, 4.1, 5.0, 5.9, 7.0], [x + 3 for x in theirs])
    ]
    assert words == ["equal", "equivalent", "different"]
    # The same difference everywhere has no spread: four datasets could be chance, seven are not.
    assert compare_over_datasets([2.0] * 4, [1.0] * 4, 2).word == "inconclusive"
    assert compare_over_datasets([1.0, 9.0, 3.0], [5.0, 2.0, 6.0], 2).word == "inconclusive"
    assert compare_over_datasets([1.0], [5.0], 2).word == "inconclusive"


# What runs on the same splits share


def test_the_correlation_is_found_and_its_interval_holds_it():
    rng = np.random.default_rng(1)
    hits, values = 0, []
    for _ in range(60):
        split = rng.normal(size=25)
        groups = {
            name: [(split + 0.8 * rng.normal(size=25)).tolist() for _ in range(5)]
            for name in ("rf", "mlp")
        }
        found = pairing._measure(groups)
        values.append(found.value)
        hits += found.low <= 1 / 1.64 <= found.high
    assert np.mean(values) == pytest.approx(1 / 1.64, abs=0.05)
    assert hits > 48


def test_every_model_counts_once_and_a_constant_tells_nothing():
    up, down = [1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]
    found = pairing._measure({"rf": [up, up, up, up], "mlp": [up, down], "svm": [[1.0] * 4] * 2})
    assert found.value == pytest.approx(0.0)
    assert found.trainings == {"rf": 4, "mlp": 2, "svm": 2}
    assert pairing._measure({"svm": [[1.0] * 4] * 2}) is None
    assert pairing._measure({}) is None


def test_a_negative_correlation_widens_nothing():
    found = pairing._measure({"mlp": [[1.0, 2.0, 3.0, 4.0], [4.0, 3.0, 2.0, 1.0]]})
    assert (found.value, found.used) == (pytest.approx(-1.0), 0.0)


MODELS = """
[rf]
class = "x:Y"
[lightgbm]
class = "x:Y"
[knn]
class = "x:Y"
[mlp]
class = "x:Y"
params = { steps = 9 }
[stg]
class = "x:Y"
params = { steps = 9 }
"""


def test_a_method_takes_its_own_correlation_then_that_of_its_kind(register, tmp_path):
    register(MODELS)
    rng = np.random.default_rng(3)
    split = rng.normal(size=25)
    for model, noise in (("rf", 0.3), ("lightgbm", 1.5)):
        for seed in (42, 43, 44):
            scores = 70 + split + noise * rng.normal(size=25)
            params = {} if seed == 42 else {"random_state": seed}
            add_runs(tmp_path, model, "colon", scores.tolist(), params)
    store = Store(tmp_path)
    [accuracy] = read_recipe("table2").metrics

    def used(model, dataset="colon"):
        return pairing.used(store, cell_of(model, dataset), accuracy).rho

    assert used("rf") > 0.8 > used("lightgbm") > 0
    assert used("knn") == pytest.approx((used("rf") + used("lightgbm")) / 2)
    assert used("mlp") == used("stg") == 0.0  # no network was repeated
    assert used("rf", "lung") == 0.0
    add_runs(tmp_path, "mlp", "colon", (70 + split).tolist())
    add_runs(tmp_path, "mlp", "colon", (70 + split).tolist()[:24], {"random_state": 43})
    assert used("stg") == 0.0  # a training that is not complete does not count
    add_runs(tmp_path, "mlp", "colon", (71 + split).tolist(), {"random_state": 43})
    assert used("stg") == pytest.approx(1.0)


def test_what_a_seed_adds_is_measured_over_the_kind(register, tmp_path):
    register(MODELS.replace("[knn]", "[knn]\ndeterministic = true"))
    rng = np.random.default_rng(6)
    for dataset, luck in (("colon", 6.0), ("lung", 0.0)):
        for seed, scores in zip((42, 43, 44), trainings(rng, 3, 0.0, 0.6), strict=True):
            shift = luck * (seed - 43)
            params = {} if seed == 42 else {"random_state": seed}
            add_runs(tmp_path, "mlp", dataset, (70 + shift + 9 * scores).tolist(), params)
    store = Store(tmp_path)
    [accuracy] = read_recipe("table2").metrics
    shared = {
        m: pairing.used(store, cell_of(m, "toxicity"), accuracy) for m in ("stg", "rf", "knn")
    }
    cells = [
        pairing._added(pairing._trainings(store, "mlp", registry.data_ref(name), accuracy))
        for name in ("colon", "lung")
    ]
    # 25 * 6^2 / 9^2 = 11 of colon, and about nothing of lung
    assert shared["stg"].rho == 0 and shared["stg"].seed == pytest.approx(np.mean(cells))
    assert 1 < shared["stg"].seed < 9
    assert shared["rf"].seed == 0  # no forest was repeated
    for model, dataset in itertools.product(("knn", "rf"), ("colon", "toxicity")):
        for seed, scores in zip((42, 43), trainings(rng, 2, 0.0, 0.6), strict=True):
            params = {} if seed == 42 else {"random_state": seed}
            scores = 70 + 30 * (seed - 42) + 9 * scores
            add_runs(tmp_path, model, dataset, scores.tolist(), params)
    store = Store(tmp_path)
    assert pairing.used(store, cell_of("rf", "toxicity"), accuracy).seed > 9
    assert pairing.used(store, cell_of("knn", "toxicity"), accuracy).seed == 0  # nothing is random


def test_what_the_papers_runs_share_with_ours_is_told_where_they_are_known(register, tmp_path):
    register('[ridge]\nclass = "x:Y"\n[ridge.recovered]\ncolon = { C = 0.5 }\nlung = { C = 0.5 }\n')
    recipe = read_recipe("table2")
    theirs = [77.5 + 9.43 * x for x in np.asarray(spread(0.0, 1.0))]
    add_runs(tmp_path, "ridge", "colon", theirs, {"C": 0.5})
    add_runs(tmp_path, "ridge", "colon", (5 + np.asarray(theirs)).tolist())
    add_runs(tmp_path, "ridge", "lung", theirs, {"C": 0.5})  # not what is printed for lung
    add_runs(tmp_path, "ridge", "lung", theirs[::-1])
    [(dataset, kind, rho)] = pairing.measured(Store(tmp_path), recipe)
    assert (dataset, kind, rho.trainings) == ("colon", pairing.OTHERS, {"ridge": 2})
    assert rho.value == pytest.approx(1)


def test_beside_known_settings_the_runs_share_what_they_really_do(register, tmp_path):
    """Seeds of forests share more than the runs of two strengths of Ridge."""
    register(MODELS + '[ridge]\nclass = "x:Y"\n[ridge.recovered]\ncolon = { C = 0.5 }\n')
    rng = np.random.default_rng(7)
    split = rng.normal(size=25)
    for seed in (42, 43):
        params = {} if seed == 42 else {"random_state": seed}
        add_runs(tmp_path, "rf", "colon", (70 + split).tolist(), params)
    theirs = np.asarray(spread(77.5, 9.43))
    ours = 83 + 0.3 * (theirs - theirs.mean()) + rng.normal(scale=8, size=25)
    add_runs(tmp_path, "ridge", "colon", theirs.tolist(), {"C": 0.5})
    add_runs(tmp_path, "ridge", "colon", ours.tolist())
    recipe = read_recipe("table2")
    [accuracy] = recipe.metrics
    cell, printed = cell_of("ridge", "colon"), recipe.printed("ridge", "colon", accuracy.name)
    store = Store(tmp_path)
    assert pairing.used(store, cell, accuracy).rho == pytest.approx(1)
    real = pairing.used(store, cell, accuracy, printed).rho
    assert real == pytest.approx(np.corrcoef(theirs, ours)[0, 1]) and real < 0.9
    found = measure(recipe, store).results["ridge", "colon", accuracy.name, "rule"]
    assert found.verdict.shared.rho == real
    other = recipe.printed("knn", "colon", accuracy.name)  # not what these settings give
    assert pairing.used(store, cell, accuracy, other).rho == pytest.approx(1)
