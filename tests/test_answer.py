"""The answer in a few sentences, from made-up records in which the claim holds, fails, and is open."""

import json

import pytest
from conftest import ROOT, add_runs, cell_of, spread
from test_ledger import MODELS, results  # noqa: F401 - a fixture

from benchmark.cli.main import main
from benchmark.judge import answer
from benchmark.judge.cells import ledger
from benchmark.judge.cells.counts import Count, Recovered
from benchmark.protocol import choices

OTHERS = {"svm": 71.0, "rf": 75.0, "mlp": 79.0}


@pytest.fixture(autouse=True)
def own_models(register):
    register(MODELS + "\n[knn.recovered]\ncolon = { k = 5 }\n")


def runs(results, protogate, datasets=("colon", "lung"), others=OTHERS):  # noqa: F811
    """Every method 25 runs of little noise, the same on every dataset."""
    for dataset in datasets:
        for method, mean in {**others, "protogate": protogate}.items():
            noise = [0.1 * ((7 * run + len(method)) % 5) for run in range(25)]
            add_runs(results, method, dataset, [mean + x for x in noise])
    return answer.build(results)[0]


def test_where_it_holds(results):  # noqa: F811
    found = runs(results, 90.0)
    assert (found.holds, found.final) == (True, False)
    first, searched, pairs, cells, gaps = found.sentences
    assert first.startswith(
        "Does ProtoGate rank first? Yes, as far as it has been run: over 2 of 7 datasets and 4 of 17 methods "
        "its mean rank is 1.00, 1st of 4 (next is MLP with 2.00). The paper's numbers for the same cells "
        "give 1."
    )
    assert (
        "In 1000 resamplings of our runs ProtoGate is first alone in 100 %; the runs share" in first
    )
    assert (
        "2 datasets are too few to tell ProtoGate and MLP apart: Nemenyi's test asks for 3.32"
        in first
    )
    assert "None of the 3 others selects features for each sample: of those that do" in searched
    assert searched.endswith("K, is the paper's, which may have been chosen on test data.")
    assert pairs.startswith("ProtoGate clearly beats SVM (colon, lung), MLP (colon, lung) and RF")
    assert "loses" not in pairs and "other" not in pairs
    assert pairs.endswith("(corrected paired tests, Holm over all 6).")
    assert cells.startswith("8 distinct accuracies can be compared: 0 equal, ")
    assert gaps.startswith(
        "Missing: meta-dr and tcga-2y (the paper's patients are not published); meta-pam, prostate "
        "and toxicity (not run); "
    )
    assert [lead.other for lead in found.leads] == ["MLP", "MLP"]
    assert all(lead.low < lead.ours < lead.high and lead.low > 0 for lead in found.leads)


def test_where_it_fails(results):  # noqa: F811
    found = runs(results, 60.0)
    assert found.holds is False
    first, _, pairs, *_ = found.sentences
    assert (
        "? No, as far as it has been run: " in first
        and "4th of 4 (the best is MLP with 1.00)" in first
    )
    assert "ProtoGate is first alone in 0 %;" in first
    # Four methods on two datasets: nothing below 4.7 * sqrt(4 * 5 / 12) / sqrt(2) = 3.3 ranks is clear.
    assert (
        "2 datasets are too few to tell ProtoGate and MLP apart: Nemenyi's test asks for 3.32"
        in first
    )
    assert pairs.startswith("ProtoGate clearly loses to SVM (colon, lung), MLP")
    assert found.beats == {} and set(found.loses_to) == {"SVM", "MLP", "RF"}


def test_where_it_is_open(results):  # noqa: F811
    found, _ = answer.build(results)
    assert found.holds is None
    assert found.sentences[0].startswith("Whether ProtoGate ranks first is open")
    assert found.sentences[1] == "No printed accuracy can be compared yet."
    assert found.leads == ()
    for method in ("protogate", "rf", "svm"):
        add_runs(results, method, "colon", spread(80.0, 12.0)[:: 1 if method == "rf" else -1])
        add_runs(results, method, "lung", spread(90.0, 12.0)[:: 1 if method == "rf" else -1])
    found, _ = answer.build(results)
    assert "It shares the first place, as far as it has been run" in found.sentences[0]
    assert "a shared 1st of 3 (so has " in found.sentences[0]
    assert "Nemenyi" not in found.sentences[0] and "the best is" not in found.sentences[0]
    assert found.holds is False
    assert found.sentences[2] == (
        "No difference between ProtoGate and another method is clear in 4 corrected paired tests."
    )


def test_a_number_that_is_printed_in_several_tables_counts_once(results):  # noqa: F811
    """ProtoGate on colon stands in Tables 2, 3, 18, 19 and 21."""
    add_runs(results, "protogate", "colon", spread(83.95, 9.82))
    found, _ = answer.build(results)
    lines = [x for x in ledger.build(results) if x.ours["rule"].verdict.word == "equal"]
    assert len([x for x in lines if x.printed.metric == "balanced_accuracy"]) > 2
    assert found.counts["accuracies"].words == {"equal": 1}


def test_recovered_settings_are_counted_apart(results):  # noqa: F811
    add_runs(results, "knn", "colon", spread(60.0, 5.0))
    add_runs(results, "knn", "colon", spread(71.65, 12.03), {"k": 5})
    found, _ = answer.build(results)
    assert found.counts["accuracies"].words == {"different": 1}
    assert found.recovered == Recovered(tried=1, equal=1, by_rule=0)
    assert found.sentences[1].endswith(
        "For 1 cell, searching for the printed number turned up settings that give every digit of it; "
        "validation chooses 0 of these."
    )


def test_who_was_searched_less_is_told(results, register):  # noqa: F811
    register(MODELS + "\n[protogate.grid]\nk = [3, 5]\n")
    for dataset in ("colon", "lung"):
        cell = cell_of("protogate", dataset)
        seen = [choices.Candidate({"k": k}, 0.8, splits) for k, splits in ((3, 25), (5, 5))]
        made = choices.Choice(
            "protogate", dataset, "quick", 5, 5, 25, cell.entry.revision,
            choices.search_digest(cell), {"k": 3}, 0.8, [], seen, "",
        )  # fmt: skip
        choices.write_choice(results, cell, made)
        for method, mean in {**OTHERS, "protogate": 60.0}.items():
            params = {"k": 3} if method == "protogate" else {}
            add_runs(results, method, dataset, spread(mean, 2.0), params)
    found, _ = answer.build(results)
    assert found.searched == answer.Searched(cheaper=2, rivals=3, in_full=0, fixed=3, local=0)
    assert (
        "ProtoGate's settings come from a cheaper search on 2 of the datasets; of the 3 others 0 were "
        "searched in full, and 3 have nothing to search." in found.sentences[1]
    )


def test_what_failed_is_not_missing(results):  # noqa: F811
    add_runs(results, "invase", "colon", ["diverged"] * 25)
    found = runs(results, 90.0)
    assert found.failed == {"colon": ["INVASE"]} and "INVASE" not in found.missing["colon"]
    assert found.sentences[-1].endswith("Every run failed: INVASE on colon.")


def test_cheaper_searches_and_the_conservative_reading_are_told():
    words, unpaired = {"equivalent": 2, "different": 1}, {"inconclusive": 3}
    found = answer.Answer(None, False, counts={"accuracies": Count(words, unpaired, 2)})
    assert answer._about_cells(found) == (
        "3 distinct accuracies can be compared: 0 equal, 2 equivalent, 1 different, 0 inconclusive. "
        "If the correlation between runs on the same splits is ignored, the counts are 0 equal, 0 "
        "equivalent, 0 different, 3 inconclusive. 2 rest on a cheaper search than the paper's rule, which is "
        "the best mean validation score over all 25 splits."
    )


def test_the_claims_end_with_it(results, capsys):  # noqa: F811
    found = runs(results, 90.0)
    assert main(["claims", "--results", str(results)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert text.endswith("THE ANSWER " + " ".join(found.sentences))
    assert main(["claims", "--results", str(results), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["answer"]["sentences"] == list(found.sentences)


def test_readme_says_what_the_shipped_records_give(register):
    register("")
    found, _ = answer.build(ROOT / "results")
    assert (
        answer.in_readme((ROOT / "README.md").read_text(), found)
        == (ROOT / "README.md").read_text()
    )


def test_shipped_records_hold_no_regression(register, capsys):
    register("")
    assert main(["compare", "--results", str(ROOT / "results"), "--format", "csv"]) == 0
    assert "not equal" not in capsys.readouterr().err
