"""Failed convergence: which runs count as failed, which cells are flagged, and where it shows."""

import csv
import json

import pytest
from conftest import add_runs, cell_of, made_up, part_of

from benchmark.judge.cells import ledger
from benchmark.judge.cells import render as ledger_render
from benchmark.protocol.plan import Protocol
from benchmark.tables import render
from benchmark.tables.build import build_recipe
from benchmark.tables.convergence import Failure, failure
from benchmark.tables.render import values

MODELS = """
[invase]
class = "x:Y"
label = "INVASE"
family = "local"
selects = "local"

[lasso]
class = "x:Y"
label = "Lasso"
family = "global"
selects = "global"

[knn]
class = "x:Y"
label = "KNN"
family = "baseline"
"""


@pytest.fixture(autouse=True)
def own_models(register):
    register(MODELS)


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results"


def runs(scores, dataset="colon", sparsity=0.1, told=None):
    """Records with these scores (%); `told` is what the model says of its masks."""
    specs = cell_of("invase", dataset).specs({}, Protocol())
    model = {} if told is None else {"constant_mask": told}
    return [
        made_up(spec, score, model=model, selection={"local_sparsity": sparsity})
        for spec, score in zip(specs, scores, strict=False)
    ]


def test_more_than_half_means_more_than_half():
    assert failure(runs([50] * 2 + [80] * 2), "none", 4) is None
    assert failure(runs([50] * 3 + [80] * 1), "none", 4) == Failure(3, 4, 0, 3)
    assert failure(runs([50] * 12 + [80] * 13), "none", 25) is None
    assert failure(runs([50] * 13 + [80] * 12), "none", 25) == Failure(13, 25, 0, 13)


def test_half_of_the_planned_runs_counts_not_of_those_at_hand():
    assert failure(runs([50] * 12), "none", 25) is None
    assert failure(runs([50] * 13), "none", 25) is not None
    assert failure([], "local", 25) is None


@pytest.mark.parametrize(("dataset", "classes"), [("colon", 2), ("lung", 4), ("mfeat-fourier", 10)])
def test_chance_is_one_over_the_classes_and_the_margin_belongs_to_it(dataset, classes):
    limit = 100 / classes + 2
    assert failure(runs([limit] * 25, dataset), "none", 25) is not None
    assert failure(runs([limit + 0.01] * 25, dataset), "none", 25) is None
    # The same limit as a mean of recalls, which may be a bit above it in the last digit.
    recalls = [limit - 7, limit + 7, limit - 0.1, limit + 0.1]
    assert failure(runs([sum(recalls) / 4] * 25, dataset), "none", 25) is not None


def test_one_mask_for_all_samples_is_a_failure_of_local_selectors_only():
    same = runs([80] * 25, sparsity=0.0)
    assert failure(same, "local", 25) == Failure(25, 25, 25, 0)
    assert failure(same, "global", 25) is None
    assert failure(runs([80] * 25), "local", 25) is None


def test_the_model_knows_its_masks_better_than_a_few_test_samples():
    assert failure(runs([80] * 25, sparsity=0.0, told=False), "local", 25) is None
    assert failure(runs([80] * 25, sparsity=0.1, told=True), "local", 25) is not None


def test_a_model_without_a_selection_has_no_masks_to_fail_with():
    records = [{**record, "selection": None} for record in runs([80] * 25)]
    assert failure(records, "local", 25) is None


def test_either_reason_fails_a_run_and_a_run_fails_once():
    guessing, constant = runs([50] * 25), runs([80] * 25, sparsity=0.0)
    both, fine = runs([50] * 25, sparsity=0.0), runs([80] * 25)
    # Neither reason alone has a majority, together they have one.
    mixed = guessing[:7] + constant[7:13] + fine[13:]
    assert failure(mixed, "local", 25) == Failure(13, 25, 6, 7)
    # The same number of reasons in fewer runs has none.
    assert failure(both[:7] + fine[7:], "local", 25) is None


# In tables ---------------------------------------------------------------------------------------


@pytest.fixture
def table(results):
    """INVASE guesses on colon, where the paper has a dash, and on lung it learns."""
    add_runs(results, "invase", "colon", [50.0] * 20 + [70.0] * 5)
    add_runs(results, "invase", "lung", [91.22 - 6.16] * 12 + [91.22] + [91.22 + 6.16] * 12)
    add_runs(results, "knn", "colon", [60.0, 80.0] * 12 + [70.0])
    return build_recipe(part_of("table2", ["knn", "invase"], ["colon", "lung"]), results)


def test_a_table_marks_the_cell_and_keeps_its_score(table):
    text = render.to_markdown(table)
    [row] = [line for line in text.splitlines() if "54.00 ± 8.16" in line]
    assert "54.00 ± 8.16 † " in row and row.count("†") == 1
    assert "`†` failed convergence: in more than half of the runs" in text
    latex = render.to_latex(table)
    assert latex.count(r"54.00}}$_{\pm\text{8.16}}$$^{\dagger}$") == 1
    assert latex.count(r"$^{*\dagger}$") == 1  # by the paper's rule, where nothing is recovered
    assert latex.count(r"$^{\dagger}$ failed convergence") == len(table.editions)
    cells = {
        (m["method"], c["dataset"]): c["failed_convergence"]
        for m in json.loads(render.to_json(table))["methods"]
        for c in m["cells"]
    }
    assert cells["invase", "colon"] == {"failed": 20, "planned": 25, "constant": 0, "guessing": 20}
    assert cells["invase", "lung"] is None and cells["knn", "colon"] is None


def test_a_csv_tells_how_many_runs_failed(table):
    rows = list(csv.DictReader(render.to_csv(table).splitlines()))
    [row] = [row for row in rows if row["metric"] == "failed_runs"]
    assert (row["method"], row["dataset"], row["edition"]) == ("invase", "colon", "rule")
    assert (row["mean"], row["n"], row["verdict"]) == ("20", "25", "failed convergence")
    assert list(rows[0]) == values.HEADER.split(",")


def test_a_table_without_failures_has_no_mark(results):
    add_runs(results, "lasso", "colon", [80.0] * 25, selection={"local_sparsity": 0.0})
    table = build_recipe(part_of("table2", ["lasso"], ["colon"]), results)
    for form in render.FILES.values():
        assert "†" not in form(table) and "dagger" not in form(table)
    assert "failed_runs" not in render.to_csv(table)


def test_the_ledger_shows_a_dash_of_the_paper_beside_our_flag(results, table):
    lines = ledger.build(results, [2])
    [colon] = [x for x in lines if (x.printed.method, x.printed.dataset) == ("invase", "colon")]
    assert colon.printed.mean is None
    assert colon.verdict.word == "equal"
    [row] = [
        line for line in ledger_render.to_markdown(lines).splitlines() if "54.00 ± 8.16" in line
    ]
    assert "54.00 ± 8.16 †" in row
    assert "† failed convergence in 20 of 25 runs (balanced accuracy at most chance" in row
    cells = list(csv.DictReader(ledger_render.to_csv(lines).splitlines()))
    flagged = [c for c in cells if c["failed_convergence"]]
    assert [(c["method"], c["dataset"]) for c in flagged] == [("invase", "colon")]
    found = [x for x in json.loads(ledger_render.to_json(lines))["lines"]
             if x["ours"]["rule"]["unconverged"]]  # fmt: skip
    assert [(x["method"], x["dataset"]) for x in found] == [("invase", "colon")]


def test_a_dash_of_the_paper_is_different_from_runs_that_converge(results):
    add_runs(results, "invase", "colon", [80.0] * 25)
    lines = ledger.build(results, [2])
    [colon] = [x for x in lines if (x.printed.method, x.printed.dataset) == ("invase", "colon")]
    assert (colon.verdict.word, colon.ours["rule"].unconverged) == ("different", None)
