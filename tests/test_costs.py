"""What missing runs cost, and which of them a budget takes."""

import time
from pathlib import Path

import pytest
from conftest import add_runs, cell_of, spread

from benchmark.protocol.choices import Candidate, Choice, search_digest, write_choice
from benchmark.protocol.plan import Protocol
from benchmark.runner.campaign import Means
from benchmark.runner.costs import Costs, runs_of_search
from benchmark.runner.records import Store
from benchmark.tables.recipes import Need
from benchmark.tables.reproduce import affordable, gaps, to_be_searched


def timed(results, method, dataset, seconds, runs=25, params=None, started=""):
    meta = {"seconds": {"total": seconds}, "started": started}
    add_runs(results, method, dataset, spread(80)[:runs], params, meta=meta)


def test_a_run_costs_what_the_recorded_ones_did(tmp_path):
    timed(tmp_path, "rf", "colon", 2.0)
    assert Costs(Store(tmp_path)).per_run(cell_of("rf", "colon")) == 2.0


def test_the_newest_runs_tell_what_one_costs(tmp_path):
    for number, seconds in enumerate([9.0, 90.0, 900.0, 4.0, 5.0, 6.0, 7.0, 8.0]):
        day = f"2026-11-{number + 10}T00:00:00Z"
        timed(tmp_path, "rf", "colon", seconds, params={"n_estimators": number + 1}, started=day)
    assert Costs(Store(tmp_path)).per_run(cell_of("rf", "colon")) == 6.0


def test_other_data_are_scaled_by_samples_and_features(tmp_path):
    timed(tmp_path, "rf", "colon", 2.0)
    found = Costs(Store(tmp_path)).per_run(cell_of("rf", "prostate"))
    assert found == pytest.approx(2.0 * (102 * 5966) / (62 * 2000))
    # The nearest in size is scaled, not the first.
    timed(tmp_path, "rf", "toxicity", 100.0)
    found = Costs(Store(tmp_path)).per_run(cell_of("rf", "prostate"))
    assert found == pytest.approx(100.0 * (102 * 5966) / (171 * 5748))


def test_a_training_step_takes_one_batch_of_any_number_of_samples(tmp_path):
    timed(tmp_path, "mlp", "colon", 2.0)
    found = Costs(Store(tmp_path)).per_run(cell_of("mlp", "prostate"))
    assert found == pytest.approx(2.0 * 5966 / 2000)


def test_a_model_without_records_costs_what_its_like_does(tmp_path):
    assert Costs(Store(tmp_path)).per_run(cell_of("llspin-single", "colon")) is None
    timed(tmp_path, "lspin", "colon", 40.0)
    assert Costs(Store(tmp_path)).per_run(cell_of("llspin-single", "colon")) == 40.0


def test_what_is_recorded_need_not_be_searched_again(tmp_path):
    made, store = cell_of("knn", "colon"), Store(tmp_path)
    assert runs_of_search(made, Protocol(), 5, store) == 3 * 5 + 2 * 20
    assert runs_of_search(made, Protocol(), None, store) == 3 * 25 * 0.8
    add_runs(tmp_path, "knn", "colon", spread(80), {"n_neighbors": 3})
    assert runs_of_search(made, Protocol(), 5, store) == 2 * 5 + 20


def test_gaps_come_cheapest_first_and_a_budget_takes_whole_cells(tmp_path):
    for dataset, seconds in [("colon", 4.0), ("lung", 1.0), ("prostate", 100.0)]:
        timed(tmp_path, "xgboost", dataset, seconds, runs=24)
    means = Means(Store(tmp_path), jobs=2)
    wanted = [Need(cell_of("xgboost", name)) for name in ("colon", "prostate", "lung")]
    found = gaps(wanted, means, None)
    assert [gap.need.cell.data.name for gap in found] == ["lung", "colon", "prostate"]
    assert [(gap.runs, gap.seconds) for gap in found] == [(1, 1.0), (1, 4.0), (1, 100.0)]
    assert affordable(found, means) == found
    short = Means(Store(tmp_path), jobs=2, deadline=time.monotonic() + 3)
    assert affordable(found, short) == found[:2]


@pytest.mark.parametrize(
    ("method", "runs", "quick", "again"),
    [
        ("halving", (1, 4), None, False),
        ("halving", (1, 4), 5, True),
        ("halving", (5, 20), 5, True),
        ("quick", (5, 25), 5, False),
        ("quick", (5, 25), 10, True),
        ("race", (7, 25), 5, False),
    ],
)
def test_a_search_that_saw_less_than_asked_for_is_done_again(
    tmp_path: Path, method, runs, quick, again
):
    made = cell_of("knn", "colon")
    seen = [Candidate({"n_neighbors": k}, 0.8, n) for k, n in zip((1, 3), runs, strict=True)]
    choice = Choice(
        "knn", "colon", method, 5, 5, runs[-1], 1, search_digest(made), {"n_neighbors": 3}, 0.8, [],
        seen, "",
    )  # fmt: skip
    write_choice(tmp_path, made, choice)
    assert to_be_searched(made, Means(Store(tmp_path)), quick) is again
