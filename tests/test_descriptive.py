"""Tables 5, 6, 8 and 9: the paper's descriptions beside what the registries hold."""

import json

import pytest

from benchmark.cli.main import main
from benchmark.protocol.registry import datasets
from benchmark.tables import descriptive


def differing(number):
    return {
        (f.place, f.what): (f.paper, f.ours) for f in descriptive.facts(number) if f.same is False
    }


def test_the_real_datasets_are_the_papers():
    assert len(descriptive.facts(5)) == 21
    assert differing(5) == {}
    unseen = {f.place for f in descriptive.facts(5) if f.same is None}
    assert unseen == {name for name, entry in datasets().items() if not entry.content}


def test_the_paper_counts_the_label_as_a_feature():
    assert {what for _, what in differing(6)} == {"features"}
    assert all(int(paper) == int(ours) + 1 for paper, ours in differing(6).values())


def test_searches_are_those_of_the_paper_with_stated_exceptions():
    other = differing(8)
    assert other["ProtoGate, real data", "k"] == ("{1, 2, 3, 4, 5}", "{3, 4, 5}")
    # Printed in each other's columns.
    swapped = [other["ProtoGate, synthetic data", name] for name in ("lam_global", "lam_local")]
    assert swapped[0] == swapped[1][::-1]
    assert len(other) == 3
    assert set(differing(9)) == {(f"REAL-X, {kind} data", "lam") for kind in ("real", "synthetic")}


@pytest.mark.parametrize(
    ("value", "shown"), [(1e-4, "1e-4"), (0.075, "7.5e-2"), (0.0, "0"), (35.0, "35"), (1.5, "1.5")]
)
def test_numbers_are_written_as_the_paper_writes_them(value, shown):
    assert descriptive._short(value) == shown


def test_the_command(capsys):
    assert main(["table", "5"]) == 0
    assert (
        "12 of 12 are the same. Never at hand: meta-dr, meta-pam, tcga-2y."
        in capsys.readouterr().out
    )
    assert main(["table", "9", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["table"] == 9
    assert main(["table", "5", "--format", "csv"]) == 0
    assert main(["table", "5", "--format", "tex"]) == 2
    for number in ("1", "table4"):
        assert main(["table", number]) == 2
        assert "holds no numbers to reproduce" in capsys.readouterr().err
