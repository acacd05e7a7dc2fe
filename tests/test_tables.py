"""Tables from made-up records: exact text, and a reason for every gap."""

import csv
import itertools
import json
import time

import numpy as np
import pytest
from conftest import add_runs, cell_of, part_of, spread
from hypothesis import given
from hypothesis import strategies as st

from benchmark import paper
from benchmark.protocol import choices
from benchmark.protocol.plan import Protocol
from benchmark.protocol.spec import UserError
from benchmark.runner import records
from benchmark.runner.packing import packed
from benchmark.runner.records import Store
from benchmark.tables import measured, recipes, render
from benchmark.tables.build import build_recipe, build_table
from benchmark.tables.ranking import block
from benchmark.tables.recipes import catalogue
from benchmark.tables.verdict import WORDS
from benchmark.text import DIM, PLAIN

# Same names as in the paper, so that its numbers stand beside them; settings that never change.
MODELS = """
[knn]
class = "knn:KNN"
label = "KNN"
family = "baseline"
params = { n_neighbors = 5 }
grid = { n_neighbors = [1, 3, 5] }
recovered.colon = { n_neighbors = 5 }
recovered.lung = { n_neighbors = 1 }

[svm]
class = "svm:SVM"
label = "SVM"
family = "baseline"
params = { kernel = "rbf", C = 1.0 }
grid = { C = [0.1, 1.0] }
recovered.colon = { kernel = "poly", C = 10.0 }

[xgboost]
class = "xgboost_:XGBoost"
label = "XGBoost"
family = "global"
selects = "global"
params = { n_estimators = 100 }
"""

TEXTS = (*render.FILES.values(), render.to_terminal)

RECIPE = {
    "title": "A small table (%)",
    "paper": 2,
    "methods": ["svm", "knn", "xgboost", "nosuch"],
    "datasets": ["colon", "lung"],
    "metrics": {
        "balanced_accuracy": {
            "value": "scores.test.balanced_accuracy",
            "scale": 100,
            "heading": "accuracy",
        }
    },
    "rank": {"metric": "balanced_accuracy"},
}


@pytest.fixture(autouse=True)
def own_models(register):
    register(MODELS)


@pytest.fixture
def results(tmp_path):
    return tmp_path / "results"


def add(results, method, dataset, params, scores, **fields):
    add_runs(
        results, method, dataset, scores, params,
        selection=lambda run: {"f1": dict.fromkeys(("rows", "branch"), scores[run] / 1000)},
        **fields,
    )  # fmt: skip


def tune(results, method, dataset, params, how="full", splits=25):
    made = cell_of(method, dataset)
    seen = [choices.Candidate(params, 0.8, runs) for runs in (5, splits, splits)]
    choice = choices.Choice(
        method, dataset, how, splits // 5, 5, splits, made.entry.revision,
        choices.search_digest(made), params, 0.8, [], seen, "",
    )  # fmt: skip
    choices.write_choice(results, made, choice)


def build(results, editions=choices.EDITIONS, **changes):
    recipe = recipes.parse_recipe("small", {**RECIPE, **changes})
    return build_recipe(recipe, results, editions)


@pytest.fixture
def example(results):
    """Every kind of cell: equal, close, far, half done, not tuned, not implemented. What is chosen has its
    good runs on other splits than the recovered settings, so that they share nothing."""
    tune(results, "knn", "colon", {"n_neighbors": 5})
    add(results, "knn", "colon", {"n_neighbors": 5}, spread(71.65, 12.03))
    tune(results, "knn", "lung", {"n_neighbors": 3})
    add(results, "knn", "lung", {"n_neighbors": 3}, spread(90, 5)[::-1])
    add(results, "knn", "lung", {"n_neighbors": 1}, spread(91.06, 5.41))
    tune(results, "svm", "colon", {"C": 1.0})
    add(results, "svm", "colon", {"C": 1.0}, spread(80, 13.93)[::-1])
    add(results, "svm", "colon", {"kernel": "poly", "C": 10.0}, spread(70.75, 13.93))
    add(results, "xgboost", "colon", {}, spread(72.6, 10))
    add(results, "xgboost", "lung", {}, [85.0] * 10 + [87.0] * 10 + ["timeout"] * 3)
    return results


ROWS = """\
| Method     | Source             | colon           | lung             | Rank       | ADTM  |
| ---------- | ------------------ | --------------- | ---------------- | ---------- | ----- |
| *Baseline* |                    |                 |                  |            |       |
| SVM        | paper              | 70.75 ± 13.93   | 72.77 ± 8.33     | 3.00 (1)   | 0.0   |
|            | paper's rule       | 80.00 ± 13.93 ≠ | – [1]            | 1.00 (1) ? | 100.0 |
|            | recovered settings | 70.75 ± 13.93 = |                  | 3.00 (1) ? | 0.0   |
| KNN        | paper              | 71.65 ± 12.03   | 91.06 ± 5.41     | 2.00 (1)   | 48.6  |
|            | paper's rule       | 71.65 ± 12.03 = | 90.00 ± 5.00 ?   | 3.00 (1) ? | 0.0   |
|            | recovered settings | 71.65 ± 12.03 = | 91.06 ± 5.41 =   | 2.00 (1) ? | 48.6  |
| *Global*   |                    |                 |                  |            |       |
| XGBoost    | paper              | 72.60 ± 12.59   | 86.61 ± 8.72     | 1.00 (1)   | 100.0 |
|            | paper's rule       | 72.60 ± 10.00 ≈ | 86.00 ± 1.03 [2] | 2.00 (1) ? | 11.4  |
| *Own*      |                    |                 |                  |            |       |
| nosuch     | ours               | – [3]           | – [3]            |            |       |"""

TERMINAL = """\
A small table (%)

                colon          lung           rank
SVM      80.00≠ 70.75       – 72.77  1.00 (1) 3.00
KNN      71.65= 71.65  90.00? 91.06  3.00 (1) 2.00

XGBoost  72.60≈ 72.60  86.00… 86.61  2.00 (1) 1.00
"""

CSV = """\
table,method,dataset,metric,mean,std,n,edition,paper_mean,paper_std,verdict
small,svm,colon,balanced_accuracy,80.00,13.93,25,rule,70.75,13.93,different
small,svm,lung,balanced_accuracy,,,0,rule,72.77,8.33,not run
small,svm,colon,balanced_accuracy,70.75,13.93,25,recovered,70.75,13.93,equal
small,knn,colon,balanced_accuracy,71.65,12.03,25,rule,71.65,12.03,equal
small,knn,lung,balanced_accuracy,90.00,5.00,25,rule,91.06,5.41,inconclusive
small,knn,colon,balanced_accuracy,71.65,12.03,25,recovered,71.65,12.03,equal
small,knn,lung,balanced_accuracy,91.06,5.41,25,recovered,91.06,5.41,equal
small,xgboost,colon,balanced_accuracy,72.60,10.00,25,rule,72.60,12.59,equivalent
small,xgboost,lung,balanced_accuracy,86.00,1.03,20,rule,86.61,8.72,incomplete
small,nosuch,colon,balanced_accuracy,,,0,rule,,,not run
small,nosuch,lung,balanced_accuracy,,,0,rule,,,not run
small,svm,,mean_rank,1.00,,1,rule,3.00,,inconclusive
small,knn,,mean_rank,3.00,,1,rule,2.00,,inconclusive
small,xgboost,,mean_rank,2.00,,1,rule,1.00,,inconclusive
small,nosuch,,mean_rank,,,0,rule,,,not run
small,svm,,adtm_percent,100.00,,1,rule,0.00,,inconclusive
small,knn,,adtm_percent,0.00,,1,rule,48.65,,inconclusive
small,xgboost,,adtm_percent,11.38,,1,rule,100.00,,inconclusive
small,nosuch,,adtm_percent,,,0,rule,,,not run
small,svm,,adtm_pooled_percent,59.40,,1,rule,,,not in paper
small,knn,,adtm_pooled_percent,35.06,,1,rule,,,not in paper
small,xgboost,,adtm_pooled_percent,37.83,,1,rule,,,not in paper
small,nosuch,,adtm_pooled_percent,,,0,rule,,,not run
small,svm,,mean_rank,3.00,,1,recovered,3.00,,inconclusive
small,knn,,mean_rank,2.00,,1,recovered,2.00,,inconclusive
small,xgboost,,mean_rank,1.00,,1,recovered,1.00,,inconclusive
small,nosuch,,mean_rank,,,0,recovered,,,not run
small,svm,,adtm_percent,0.00,,1,recovered,0.00,,inconclusive
small,knn,,adtm_percent,48.65,,1,recovered,48.65,,inconclusive
small,xgboost,,adtm_percent,100.00,,1,recovered,100.00,,inconclusive
small,nosuch,,adtm_percent,,,0,recovered,,,not run
small,svm,,adtm_pooled_percent,50.00,,1,recovered,,,not in paper
small,knn,,adtm_pooled_percent,53.23,,1,recovered,,,not in paper
small,xgboost,,adtm_pooled_percent,56.64,,1,recovered,,,not in paper
small,nosuch,,adtm_pooled_percent,,,0,recovered,,,not run"""

LATEX = r"""
% needs amsmath, booktabs, graphicx, multirow and \usepackage[table]{xcolor}

\begin{table*}[t]
\centering
\caption{A small table (\%) (paper's rule; ranks among 3 methods on colon).}
\label{tab:small-rule}
\resizebox{\textwidth}{!}{
\begin{tabular}{llrr|r}
\toprule
\multicolumn{2}{l}{Methods} & colon & lung & \textbf{Rank} \\
\midrule
\multirow{2}{*}{\rotatebox{90}{\textit{Baseline}}}
& SVM & {\color[HTML]{008080} \textbf{80.00}}$_{\pm\text{13.93}}$ & $-$ & {\color[HTML]{008080} \textbf{1.00}} \\
& KNN & {\color[HTML]{C65911} \textbf{71.65}}$_{\pm\text{12.03}}$ & {\color[HTML]{008080} \textbf{90.00}}$_{\pm\text{5.00}}$ & {\color[HTML]{C65911} \textbf{3.00}} \\
\midrule
\multirow{1}{*}{\rotatebox{90}{\textit{Global}}}
& XGBoost & {\color[HTML]{7030A0} \textbf{72.60}}$_{\pm\text{10.00}}$ & $-$ & {\color[HTML]{7030A0} \textbf{2.00}} \\
\midrule
\multirow{1}{*}{\rotatebox{90}{\textit{Own}}}
& nosuch & $-$ & $-$ & $-$ \\
\bottomrule
\end{tabular}
}
\end{table*}

\begin{table*}[t]
\centering
\caption{A small table (\%) (recovered settings; $^{*}$ by the paper's rule; ranks among 3 methods on colon).}
\label{tab:small-recovered}
\resizebox{\textwidth}{!}{
\begin{tabular}{llrr|r}
\toprule
\multicolumn{2}{l}{Methods} & colon & lung & \textbf{Rank} \\
\midrule
\multirow{2}{*}{\rotatebox{90}{\textit{Baseline}}}
& SVM & {\color[HTML]{C65911} \textbf{70.75}}$_{\pm\text{13.93}}$ & $-$ & {\color[HTML]{C65911} \textbf{3.00}} \\
& KNN & {\color[HTML]{7030A0} \textbf{71.65}}$_{\pm\text{12.03}}$ & {\color[HTML]{008080} \textbf{91.06}}$_{\pm\text{5.41}}$ & {\color[HTML]{7030A0} \textbf{2.00}} \\
\midrule
\multirow{1}{*}{\rotatebox{90}{\textit{Global}}}
& XGBoost & {\color[HTML]{008080} \textbf{72.60}}$_{\pm\text{10.00}}$$^{*}$ & $-$ & {\color[HTML]{008080} \textbf{1.00}} \\
\midrule
\multirow{1}{*}{\rotatebox{90}{\textit{Own}}}
& nosuch & $-$ & $-$ & $-$ \\
\bottomrule
\end{tabular}
}
\end{table*}"""


def test_markdown(example):
    text = render.to_markdown(build(example))
    assert text.startswith("## A small table (%)\n\n" + ROWS + "\n\n")
    assert "1 equal, 1 equivalent, 1 different, 1 inconclusive, 1 incomplete, 3 not run." in text
    assert text.endswith("""
[1] not tuned yet. Run `python -m benchmark reproduce small --models svm --datasets lung --budget all`.  
[2] 20 of 25 runs: 3 timeout, 2 not run. Run `python -m benchmark reproduce small --models xgboost --datasets lung --budget all`.  
[3] not implemented yet.""")


def test_terminal(example):
    table = build(example)
    text = render.to_terminal(table)
    assert text.startswith(TERMINAL)
    assert "72.77" not in render.to_terminal(table, paper=False)
    assert f"{DIM}72.77{PLAIN}" in render.to_terminal(table, grey=True)


@pytest.mark.parametrize("name", list(catalogue()))
def test_a_table_fits_a_terminal(name, results):
    table = build_table(name, results)
    add(results, "xgboost", "colon", {}, spread(72.6, 12.59))
    for built in (table, build_table(name, results)):
        assert max(map(len, render.to_terminal(built).splitlines())) <= 100


def test_an_experiment_of_ours_has_no_edition(results):
    add(results, "xgboost", "colon", {}, spread(72.6, 12.59))
    recipe = {k: v for k, v in RECIPE.items() if k != "paper"}
    own = recipes.parse_recipe("own", {**recipe, "methods": ["xgboost"]})
    text = render.to_markdown(build_recipe(own, results))
    assert "| ours " in text and "paper's rule" not in text


def test_csv(example):
    text = render.to_csv(build(example))
    assert text == CSV
    verdicts = {row["verdict"] for row in csv.DictReader(text.splitlines())}
    assert verdicts <= set(WORDS)


def test_latex(example):
    assert render.to_latex(build(example)) == LATEX.strip()


def test_json(example):
    value = json.loads(render.to_json(build(example)))
    assert value["complete"] is False
    assert value["ranked"] == {"methods": ["svm", "knn", "xgboost"], "datasets": ["colon"]}
    assert value["verdicts"]["recovered"] == {"equal": 3}
    by_method = {method["method"]: method for method in value["methods"]}
    svm = by_method["svm"]["cells"][0]
    assert svm["verdict"].pop("interval") == pytest.approx((1.118, 17.382), abs=1e-3)
    assert svm["verdict"].pop("within") == pytest.approx(15.99, abs=1e-2)
    assert svm.pop("values") == pytest.approx(spread(80, 13.93)[::-1])
    spec = cell_of("svm", "colon").specs({"C": 1.0}, Protocol())[0]
    assert svm == {
        "dataset": "colon",
        "metric": "balanced_accuracy",
        "edition": "rule",
        "mean": pytest.approx(80),
        "std": pytest.approx(13.93),
        "std_within_runs": None,
        "n": 25,
        "planned": 25,
        "paper": {"mean": 70.75, "std": 13.93},
        "verdict": {
            "word": "different",
            "why": "difference +9.25 (95 % interval +1.12 to +17.38), agrees to within ±15.99, "
            "±6.96 asked for",
            "difference": pytest.approx(9.25),
            "margin": pytest.approx(13.93 / 2),
            "shared": {"rho": 0.0, "seed": 0.0},
            "unpaired": "different",
        },
        "failed_convergence": None,
        "setting": spec.setting,
        "params": {"kernel": "rbf", "C": 1.0},
        "choice": {"method": "full", "splits": 25, "valid": 0.8, "edge": []},
        "failures": {},
        "failure_message": None,
        "reason": None,
        "remedy": None,
        "note": None,
    }
    half_done = by_method["xgboost"]["cells"][1]
    assert half_done["failures"] == {"timeout": 3}
    assert half_done["failure_message"] == "timeout on purpose"
    assert half_done["reason"] == "20 of 25 runs: 3 timeout, 2 not run"
    assert half_done["remedy"] == (
        "python -m benchmark reproduce small --models xgboost --datasets lung --budget all"
    )


@pytest.mark.parametrize(
    ("done", "telling", "command"),
    [(25, 0, "run --force"), (25, 15, "run --force"), (15, 15, "reproduce"), (15, 0, "reproduce")],
)
def test_stability_asks_for_finished_runs_again_only_if_all_are_there(
    results, done, telling, command
):
    def told(run):
        return {"f1": {}} | ({"core": packed(np.arange(2000) < 3)} if run < telling else {})

    add_runs(results, "xgboost", "colon", [70] * done, selection=told)
    entry = catalogue()["stability"] | {"methods": ["xgboost"], "datasets": ["colon"]}
    table = build_recipe(recipes.parse_recipe("stability", entry), results)
    [result] = table.shown
    assert result.gap.reason == f"{telling} of 25 records list the selected features"
    assert result.gap.command == command.replace("reproduce", "reproduce stability")


def test_no_text_ends_in_a_line_break(example):
    table = build(example)
    assert not any(to_text(table).endswith("\n") for to_text in TEXTS)


# Gaps


def only(table, method="knn", dataset="colon", edition="rule"):
    return table.results[method, dataset, "balanced_accuracy", edition]


def test_nothing_at_all_is_a_table_of_reasons(results):
    table = build(results)
    assert not table.complete
    assert {r.verdict.word for r in table.shown} == {"not run"}
    assert only(table).gap.reason == "not tuned yet"
    assert only(table, "xgboost").gap.reason == "not run yet"
    assert only(table, "nosuch").gap.reason == "not implemented yet"
    assert only(table, edition="recovered").gap.reason == "not run yet"
    assert table.summaries["knn", "rule", "mean_rank"].verdict.word == "not run"
    for to_text in TEXTS:
        assert to_text(table)


def test_failures_are_counted_by_kind(results):
    add(results, "xgboost", "colon", {}, ["diverged"] * 5 + ["timeout"] * 20)
    result = only(build(results), "xgboost")
    assert result.verdict.word == "failed"
    assert result.gap.reason == "all 25 runs failed: 5 diverged, 20 timeout"
    assert result.message == "diverged on purpose"


def test_failed_candidates_explain_why_nothing_was_chosen(results):
    for k in (1, 3, 5):
        add(results, "knn", "colon", {"n_neighbors": k}, ["out_of_memory"] * 25)
    assert only(build(results)).gap.reason == "not tuned yet; candidates failed: 75 out_of_memory"


def test_runs_without_their_data(results):
    add(results, "xgboost", "colon", {}, ["missing_data"] * 25)
    add(results, "knn", "colon", {"n_neighbors": 1}, ["missing_data"] * 25)
    table = build(results)
    assert only(table, "xgboost").verdict.word == "data unavailable"
    assert only(table, "knn").verdict.word == "data unavailable"
    assert "data unavailable" in render.to_csv(table)


def test_data_that_nobody_can_download(results):
    table = build(results, datasets=["meta-dr", "lung"])
    assert only(table, "xgboost", "meta-dr").verdict.word == "data unavailable"
    assert only(table, "xgboost", "lung").verdict.word == "not run"
    add(results, "xgboost", "meta-dr", {}, spread(60, 5))
    table = build(results, datasets=["meta-dr", "lung"])
    assert only(table, "knn", "meta-dr").verdict.word == "not run"  # somebody has the data


def test_a_damaged_record_is_named_and_counts_as_missing(results, capsys):
    add(results, "xgboost", "colon", {}, spread(72.6, 12.59))
    path = min((results / "runs").rglob("r*.json"))
    path.write_text(path.read_text()[:-20])
    table = build(results)
    assert only(table, "xgboost").gap.reason == "24 of 25 runs: 1 unreadable"
    assert str(path) in capsys.readouterr().err
    assert str(path) in table.problems[0]


def test_a_damaged_choice_is_named_and_is_a_gap(results, capsys):
    tune(results, "knn", "colon", {"n_neighbors": 5})
    path = choices.choice_path(results, cell_of("knn", "colon"))
    path.write_text("{")
    assert only(build(results)).gap.reason == "the choice of settings cannot be read"
    assert str(path) in capsys.readouterr().err


def test_cheaper_searches_are_marked(results):
    tune(results, "knn", "colon", {"n_neighbors": 5}, how="quick")
    add(results, "knn", "colon", {"n_neighbors": 5}, spread(71.65, 12.03))
    tune(results, "svm", "colon", {"C": 1.0}, splits=10)
    add(results, "svm", "colon", {"C": 1.0}, spread(71, 12))
    table = build(results, datasets=["colon"])
    note = "settings chosen on 5 splits, two finalists on 25"
    assert only(table).note == note and note in render.to_markdown(table)
    assert only(table, "svm").note == "settings chosen on 2 x 5 splits"


def test_complete_means_everything_asked_for(results):
    add(results, "xgboost", "colon", {}, spread(72.6, 12.59))
    assert build(results, methods=["xgboost"], datasets=["colon"]).complete
    assert not build(results, methods=["xgboost"]).complete
    # No recovered settings are known for it, so that edition has nothing to show.
    table = build(results, ["recovered"], methods=["xgboost"], datasets=["colon"])
    assert not table.shown
    assert not table.complete


# Mixed records


def test_other_data_are_refused(results):
    add(results, "xgboost", "colon", {}, spread(72.6, 12.59))
    add(
        results,
        "svm",
        "colon",
        {"kernel": "poly", "C": 10.0},
        spread(70, 9),
        data={"sha256": "0" * 64, "classes": 2, "shape": [62, 2000]},
    )
    with pytest.raises(UserError, match="colon were made with different data") as error:
        build(results)
    for part in ("xgboost/colon/", "svm/colon/", "--models", "--datasets colon --force"):
        assert part in str(error.value)


def test_other_splits_are_refused(results):
    add(results, "xgboost", "colon", {}, spread(72.6, 12.59))
    poly = {"kernel": "poly", "C": 10.0}
    add(results, "svm", "colon", poly, [None] * 7 + [70.0], split={"sha256": "other"})
    with pytest.raises(UserError, match="colon, repeat 1, fold 2 were made with different splits"):
        build(results)


def test_failed_and_unplanned_records_are_not_compared(results):
    add(results, "xgboost", "colon", {}, [*spread(72.6, 12.59)[:24], "killed"])
    add(
        results,
        "xgboost",
        "colon",
        {"n_estimators": 7},
        spread(60, 5),
        data={"sha256": "0" * 64, "classes": 2, "shape": [62, 2000]},
    )
    assert only(build(results), "xgboost").n == 24


def test_other_patients_than_the_papers_have_no_verdict_and_no_rank(results):
    drawn = {"sha256": "0" * 64, "classes": 2, "shape": [200, 4160], "derived": True}
    for dataset, fields in (("lung", {}), ("meta-dr", {"data": drawn})):
        add(results, "xgboost", dataset, {}, spread(72.6, 12.59), **fields)
        for method, params in (("knn", {"n_neighbors": 5}), ("svm", {"C": 1.0})):
            tune(results, method, dataset, params)
            add(results, method, dataset, params, spread(60 + len(method), 9), **fields)
    table = build(results, datasets=["lung", "meta-dr"])
    theirs, others = (only(table, "xgboost", dataset) for dataset in ("lung", "meta-dr"))
    assert theirs.verdict.word == "different" and others.verdict.word == "data unavailable"
    assert "the paper's draw of patients is not published" in others.verdict.why
    assert others.n == 25  # shown all the same
    assert table.ranked[1] == ("lung",)


# Ranks


def test_ranks_are_over_the_cells_that_exist(results):
    for method, params in (("xgboost", {}), ("knn", {"n_neighbors": 5}), ("svm", {"C": 1.0})):
        if params:
            tune(results, method, "colon", params)
        add(results, method, "colon", params, spread(70 + len(method), 9))
    add(results, "svm", "colon", {"kernel": "poly", "C": 10.0}, spread(99, 1))
    add(results, "xgboost", "lung", {}, spread(86, 9))
    table = build(results)
    assert table.ranked == (("svm", "knn", "xgboost"), ("colon",))
    assert not table.fully_ranked

    def rank(method, edition):
        summary = table.summaries[method, edition, "mean_rank"]
        return summary.ours[0], summary.same_cells[0]

    # The paper's order on colon is XGBoost 72.60, KNN 71.65, SVM 70.75.
    assert rank("xgboost", "rule") == (1.0, 1.0)
    assert rank("svm", "rule") == (2.0, 3.0)
    assert rank("svm", "recovered") == (1.0, 3.0)
    assert rank("knn", "recovered") == (3.0, 2.0)
    printed = table.summaries["knn", "recovered", "mean_rank"]
    assert printed.printed == (10.86, 3.98)
    assert printed.verdict.word == "inconclusive"  # one dataset


def test_the_block_is_the_most_cells_without_a_gap():
    def found(cells):
        return block(paper.METHODS, paper.DATASETS, cells)

    few = {(m, d) for m in ("knn", "svm", "rf") for d in ("colon", "lung", "prostate")}
    one = {(m, "colon") for m in paper.METHODS}  # many methods, but on one dataset only
    methods, datasets = found(few | one | {("ridge", "lung")})
    assert set(methods) == {"knn", "svm", "rf"} and datasets == ("colon", "lung", "prostate")
    assert found(one) == (paper.METHODS, ("colon",))
    square = {(m, d) for m in ("knn", "svm", "rf") for d in ("lung", "meta-dr")}
    assert found(square | {("lasso", d) for d in ("lung", "meta-dr", "toxicity")})[1] == (
        "lung",
        "meta-dr",
    )
    assert found({("knn", "colon")}) == ((), ())


def test_the_block_keeps_the_datasets_that_a_verdict_needs():
    """A campaign finishes some methods on three datasets first: more cells, and no rank could be judged."""
    three, four = ("colon", "lung", "toxicity"), ("colon", "lung", "prostate", "toxicity")
    ten = {(m, d) for m in paper.METHODS[:10] for d in four}
    late = {(m, d) for m in paper.METHODS[10:] for d in three}
    assert block(paper.METHODS, paper.DATASETS, ten | late) == (paper.METHODS[:10], four)
    five = {(m, d) for m in paper.METHODS[:5] for d in four}  # too few to leave out all the others
    rest = {(m, d) for m in paper.METHODS[5:] for d in three}
    assert block(paper.METHODS, paper.DATASETS, five | rest) == (paper.METHODS, three)


def block_by_trying_all(methods, datasets, have):
    """Every subset of the datasets, the largest first: right by its looks, and too slow for 30."""

    def cells(found):
        return len(found[0]) * len(found[1])

    for least_methods, least_datasets in ((3, 2), (2, 1)):
        able = []
        for count in range(len(datasets), least_datasets - 1, -1):
            for columns in itertools.combinations(datasets, count):
                rows = tuple(m for m in methods if all((m, d) in have for d in columns))
                if len(rows) >= least_methods:
                    able.append((rows, columns))
        if able:
            half = max(map(cells, able)) / 2
            judged = [found for found in able if len(found[1]) >= 4 and cells(found) >= half]
            return max(judged or able, key=cells)
    return (), ()


PLACES = list(itertools.product("abcdef", "uvwxyz"))


@given(st.integers(0, 6), st.integers(0, 6), st.sets(st.sampled_from(PLACES)), st.booleans())
def test_the_block_is_that_of_trying_all_subsets(n_methods, n_datasets, chosen, holes):
    methods, datasets = "abcdef"[:n_methods], "uvwxyz"[:n_datasets]
    have = set(PLACES) - chosen if holes else chosen
    assert block(methods, datasets, have) == block_by_trying_all(methods, datasets, have)


def test_the_block_of_forty_datasets_is_found_at_once():
    methods, datasets = [f"m{i}" for i in range(17)], [f"d{i}" for i in range(40)]
    have = {(m, d) for i, m in enumerate(methods) for j, d in enumerate(datasets) if (i * j) % 11}
    began = time.process_time()
    rows, columns = block(methods, datasets, have)
    assert time.process_time() - began < 5, "trying all subsets would take years"
    assert len(rows) * len(columns) > 300 and set(itertools.product(rows, columns)) <= have


def test_a_method_that_fails_on_a_dataset_is_ranked_as_the_papers_dashes_are(results):
    for dataset in ("colon", "lung"):
        add(results, "xgboost", dataset, {}, spread(80, 5))
        tune(results, "svm", dataset, {"C": 1.0})
        add(results, "svm", dataset, {"C": 1.0}, spread(90, 5))
    tune(results, "knn", "colon", {"n_neighbors": 5})
    add(results, "knn", "colon", {"n_neighbors": 5}, spread(99, 1))
    tune(results, "knn", "lung", {"n_neighbors": 5})
    add(results, "knn", "lung", {"n_neighbors": 5}, ["diverged"] * 25)
    table = build(results, ["rule"], datasets=["colon", "lung"])
    assert table.ranked == (("svm", "knn", "xgboost"), ("colon", "lung"))
    # On lung the mean of the others, 85, stands in for it.
    assert table.summaries["knn", "rule", "mean_rank"].ours[0] == 1.5


def test_a_method_with_few_values_is_not_ranked(results):
    datasets = ["colon", "lung", "toxicity"]
    for dataset in datasets:
        add(results, "xgboost", dataset, {}, spread(80, 5))
        tune(results, "svm", dataset, {"C": 1.0})
        add(results, "svm", dataset, {"C": 1.0}, spread(81, 5))
    tune(results, "knn", "colon", {"n_neighbors": 5})
    add(results, "knn", "colon", {"n_neighbors": 5}, spread(99, 1))
    table = build(results, ["rule"], datasets=datasets)
    assert table.ranked == (("svm", "xgboost"), tuple(datasets))
    assert table.summaries["svm", "rule", "mean_rank"].ours == (1.0, 0.0)
    knn = table.summaries["knn", "rule", "mean_rank"]
    assert knn.ours is None
    assert knn.verdict.why == "complete on too few datasets (1) to be ranked"


def test_one_method_has_no_rank(results):
    add(results, "xgboost", "colon", {}, spread(72.6, 12.59))
    table = build(results)
    assert table.ranked == ((), ())
    assert "Rank" not in render.to_markdown(table)


def test_methods_outside_the_papers_table_make_its_ranks_incomparable(results):
    add(results, "xgboost", "colon", {}, spread(80, 5))
    add(results, "svm:C=0.5", "colon", {}, spread(81, 5))
    tune(results, "svm:C=0.5", "colon", {})
    table = build(results, methods=["xgboost", "svm:C=0.5"], datasets=["colon"])
    assert table.summaries["xgboost", "rule", "mean_rank"].ours == (2.0, None)
    assert table.summaries["xgboost", "rule", "mean_rank"].same_cells is None
    assert table.complete


# Recipes


def test_variants_of_one_dataset_never_share_a_ranking():
    datasets = ["syn1", "syn1:generator=fixed"]
    with pytest.raises(UserError, match="several variants of syn1 in one ranking"):
        recipes.parse_recipe("mixed", {**RECIPE, "datasets": datasets})


@pytest.mark.parametrize("name", list(catalogue()))
def test_every_recipe_builds_and_renders(name, results):
    table = build_table(name, results)
    for to_text in TEXTS:
        assert to_text(table)


def test_names_of_tables(results):
    assert recipes.read_recipe("2") == recipes.read_recipe("table2")
    with pytest.raises(UserError, match="Unknown table 'table99'"):
        build_table("99", results)
    with pytest.raises(UserError, match="Unknown edition 'printed'"):
        build(results, ["printed"])


def test_own_settings_may_be_a_row(results):
    add(results, "xgboost", "colon", {}, spread(72.6, 12.59))
    add(results, "svm:C=0.5", "colon", {}, spread(70, 9))
    tune(results, "svm:C=0.5", "colon", {})
    table = build_recipe(part_of("table2", ["xgboost", "svm:C=0.5"], ["colon"]), results)
    assert table.complete
    assert [row.label for row in table.rows] == ["XGBoost", "svm:C=0.5"]
    assert only(table, "svm:C=0.5").verdict.word == "not in paper"


def test_selection_is_shown_for_models_that_select(results):
    add(results, "xgboost", "syn1:generator=fixed", {}, spread(60, 5))
    table = build_table("synthetic-fixed", results)
    assert ("knn", "syn1:generator=fixed", "f1_select", "rule") not in table.results
    f1 = table.results["xgboost", "syn1:generator=fixed", "f1_select", "rule"]
    assert (f1.mean, f1.n) == (pytest.approx(0.06), 25)
    text = render.to_markdown(table)
    assert "60.00 ± 5.00" in text and "0.06 ± 0.01" in text


def test_a_metric_may_be_printed_in_another_table(results):
    """Accuracy is in the paper's Table 2, features are in its Table 10, with another standard deviation."""
    features = {"value": "selection.mean", "spread": "selection.std", "paper": 10}
    metrics = RECIPE["metrics"] | {"selected_features": {**features, "heading": "features"}}
    recipe = recipes.parse_recipe("both", RECIPE | {"methods": ["protogate"], "metrics": metrics})
    assert recipe.printed("protogate", "colon", "balanced_accuracy").mean == 83.95
    assert recipe.printed("protogate", "colon", "selected_features").mean == 110.7
    assert recipe.printed("protogate", "", "mean_rank").mean == 2.0
    text = render.to_markdown(build_recipe(recipe, results))
    assert "83.95 ± 9.82" in text and "110.70 ± 58.62" in text
    assert "over 25 runs; of features ± is the standard deviation between samples of a run" in text


# The whole of Table 2


@pytest.fixture
def whole(results, register):
    """All 17 methods on all 7 datasets with the paper's means and standard deviations: 2,975 records."""
    entries = [
        f'[{m}]\nclass = "x:Y"\nlabel = "{m.upper()}"\nfamily = "{paper.family(m)}"\n'
        for m in paper.METHODS
    ]
    register("\n".join(entries))
    for method in paper.METHODS:
        for dataset in paper.DATASETS:
            printed = paper.cell(2, method, dataset, "balanced_accuracy")
            fails = printed.mean is None
            scores = ["diverged"] * 25 if fails else spread(printed.mean, printed.std)
            add(results, method, dataset, {}, scores)
    return results


def test_the_papers_own_numbers_give_the_papers_table(whole, monkeypatch):
    read, decode = [], records.decode

    def counted(content, *args, **kwargs):
        read.append(content)
        return decode(content, *args, **kwargs)

    monkeypatch.setattr(records, "decode", counted)
    table = build_table("2", whole)
    text = render.to_markdown(table)

    words = [r.verdict.word for r in table.shown]
    assert (words.count("equal"), words.count("failed")) == (116, 3)
    assert not table.complete
    assert table.fully_ranked
    ranks = [table.summaries[m, "rule", "mean_rank"] for m in paper.METHODS]
    assert all(s.verdict.word == "equal" for s in ranks)  # to those of the paper's own cells
    assert "its cells give another one for L2X, 16.29 ± 0.76" in text
    assert "all 25 runs failed: 25 diverged" in text

    # Reading the files is the work, so each is read once.
    keys = [key for plan in measured.plans_of(table.recipe, Store(whole)) for key in plan.keys]
    assert len(read) == len(set(read)) == len(set(keys)) == 2975
