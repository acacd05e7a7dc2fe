"""Selected features and predictions by name."""

import csv

import numpy as np
import pandas as pd
import pytest

from benchmark.data.load import load, own_table
from benchmark.judge import features
from benchmark.protocol.splits import make_split

N, D = 60, 30


@pytest.fixture
def patients(tmp_path):
    """Genes 0 and 1 tell the classes apart, the others are noise."""
    rng = np.random.default_rng(0)
    y = np.array(["ill", "well"])[np.arange(N) % 2]
    X = rng.normal(size=(N, D)).round(4)
    X[y == "ill", :2] += 3
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(D)]).assign(diagnosis=y)
    frame.insert(0, "patient", [f"P{i:03d}" for i in range(N)])
    frame.to_csv(tmp_path / "patients.csv", index=False)
    return tmp_path / "patients.csv"


def words(command, patients, *more):
    return (command, "--data", patients, "--target", "diagnosis", "--id", "patient", "--jobs", "0",
            "--repeats", "1", "--results", patients.parent / "own", *more)  # fmt: skip


def test_the_genes_that_matter_are_named(patients, inside):
    to = patients.parent / "features"
    asked = words("features", patients, "--models", "lasso:C=0.1,knn", "--to", to)
    done = inside(*asked, check=3)
    assert "because they select no features: knn." in done.stderr
    assert not (patients.parent / "own/runs/patients/knn").exists(), (
        "nothing is trained for nothing"
    )
    found = list(csv.DictReader((to / "features.csv").read_text().splitlines()))
    assert len(found) == D * 3, "every feature: over all samples, and per class"
    shares = {row["feature"]: float(row["share"]) for row in found if row["class"] == ""}
    assert shares["gene0"] == shares["gene1"] == 1.0
    assert {row["feature"] for row in found if float(row["share"]) > float(row["chance"])} <= {
        "gene0",
        "gene1",
    }
    assert (to / "features-lasso-C=0.1-patients.png").stat().st_size > 5000
    assert (
        "None of these models"
        in inside(*words("features", patients, "--models", "knn", "--to", to), check=2).stderr
    )


def test_runs_that_fail_are_not_called_unselective(patients, inside):
    to = patients.parent / "features"
    asked = words("features", patients, "--models", "protogate:steps=x", "--to", to)
    done = inside(*asked, check=1)
    assert "No run of a model that selects features succeeded" in done.stderr
    assert "None of these models" not in done.stderr


def test_shares_and_stability_are_those_of_the_masks(patients):
    """Made-up masks: one feature always, one for the ill only, in two of three runs."""
    data = load(own_table(patients, "diagnosis", id="patient"))
    masks = {}
    for fold in range(3):
        rows = make_split(data.y, 0, fold).test
        mask = np.zeros((len(rows), D), bool)
        mask[:, 4] = True
        mask[:, 7] = (data.y[rows] == 0) & (fold < 2)
        masks[f"r{fold}"] = (mask, rows)

    class Cell:
        model = "made-up"
        data = own_table(patients, "diagnosis", id="patient")

    class Spec:
        def __init__(self, key):
            self.key = key

    class Kept:
        def kept(self, key):
            mask, rows = masks[key]
            return {"selected": np.packbits(mask, axis=1), "rows": rows}

    found = features.measure(Cell, [Spec(key) for key in masks], Kept())
    first, second = found.features[:2]
    assert (first.feature, first.share, first.runs) == ("gene4", 1.0, 3)
    total = sum(len(rows) for _, rows in masks.values())
    both = sum(mask[:, 7].sum() for mask, _ in masks.values())
    assert second.feature == "gene7" and second.share == pytest.approx(both / total)
    assert second.by_class["well"] == 0 and 0.5 < second.by_class["ill"] < 0.8
    assert first.above_chance and not found.features[2].above_chance


def test_a_class_without_test_rows_has_no_share(patients):
    data = load(own_table(patients, "diagnosis", id="patient"))
    rows = np.flatnonzero(data.y == 0)

    class Cell:
        model = "made-up"
        data = own_table(patients, "diagnosis", id="patient")

    class Spec:
        key = "r0"

    class Kept:
        def kept(self, key):
            return {"selected": np.packbits(np.ones((len(rows), D), bool), axis=1), "rows": rows}

    found = features.measure(Cell, [Spec], Kept())
    assert found.features[0].by_class == {data.classes[0]: 1.0}


def test_chance_keeps_how_many_features_are_selected():
    """One feature of many in every run: chance rarely puts it in the same place more than twice."""
    shares = np.zeros((10, 1000))
    shares[:, 0] = 1
    assert features.chance(shares, np.full(10, 12)) <= 0.2
    assert features.chance(np.ones((10, 5)), np.full(10, 12)) == 1.0


def test_predictions_name_patients_and_classes(patients, inside):
    inside(*words("run", patients, "--models", "knn", "--keep", "proba"), check=0)
    [file] = (patients.parent / "own/predictions").glob("*.csv")
    found = pd.read_csv(file)
    assert sorted(found["id"]) == [f"P{i:03d}" for i in range(N)], "each is tested once per repeat"
    truth = pd.read_csv(patients).set_index("patient")["diagnosis"]
    assert (found["class"].to_numpy() == truth[found["id"]].to_numpy()).all()
    assert np.allclose(found["p_ill"] + found["p_well"], 1)
    assert set(found["predicted"]) == {"ill", "well"}
    inside(*words("run", patients, "--models", "ridge", "--keep", "proba"), check=0)
    names = sorted(path.name for path in (patients.parent / "own/predictions").glob("*.csv"))
    assert len(names) == 2 and file.name in names  # another model's stay
