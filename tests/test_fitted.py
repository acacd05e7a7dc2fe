"""A model that is fitted, kept, asked and explained: the same numbers as in memory, no code in files."""

import csv
import io
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from benchmark.datasets import table
from benchmark.models.protogate import ProtoGate

from benchmark.protocol.spec import UserError, digest
from benchmark.runner import fitted

GENES = [f"gene{j}" for j in range(12)]


def cohort(seed, n=60):
    rng = np.random.default_rng(seed)
    y = np.array(["ill", "well"])[np.arange(n) % 2]
    X = rng.normal(size=(n, len(GENES))).round(4)
    X[y == "ill", :2] += 2.5
    frame = pd.DataFrame(X, columns=GENES)
    frame.insert(0, "patient", [f"P{i:03d}" for i in range(n)])
    return frame.assign(diagnosis=y)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, a model of it, and new samples."""
    place = tmp_path_factory.mktemp("fitted")
    cohort(0).to_csv(place / "patients.csv", index=False)
    cohort(1, 10).to_csv(place / "new.csv", index=False)
    from benchmark.data.load import own_table
    from benchmark.protocol.plan import Cell
    from benchmark.protocol.registry import model_ref

    entry, overrides = model_ref("protogate:steps=300:hidden=20")
    data = own_table(place / "patients.csv", "diagnosis", id="patient")
    fitted.save(*fitted.fit_cell(Cell(entry, data, overrides), overrides), place / "model")
    return place


def test_what_is_read_back_predicts_and_explains_as_the_model_in_memory(folder):
    """Fitted again with scikit-learn's means alone, from the table itself."""
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    kept = fitted.read(folder / "model")
    table, new = cohort(0), cohort(1, 10)
    codes = (table["diagnosis"] == "well").to_numpy().astype(int)
    rows = np.arange(len(table))
    train, valid = train_test_split(rows, test_size=0.1, stratify=codes, random_state=0)
    X = table[GENES].to_numpy()
    scaler = StandardScaler().fit(X[train])
    at = [scaler.transform(X[r]).astype(np.float32) for r in (train, valid)]
    model = ProtoGate(**kept.about.params, random_state=42)
    model.fit(at[0], codes[train], eval_set=(at[1], codes[valid]))
    Z = scaler.transform(new[GENES].to_numpy()).astype(np.float32)
    samples = fitted.new_samples(kept, folder / "new.csv")
    assert np.allclose(samples.X, Z, atol=1e-6)
    found = fitted.predict(kept, samples)
    assert [one.id for one in found] == new["patient"].tolist()
    assert np.allclose([[*one.proba.values()] for one in found], model.predict_proba(Z))
    truth = new["diagnosis"].tolist()
    assert np.mean([one.predicted == label for one, label in zip(found, truth, strict=True)]) >= 0.8
    for one, other in zip(fitted.explain(kept, samples, None), model.explain(Z), strict=True):
        assert [p.id for p in one.prototypes] == [f"P{train[i]:03d}" for i in other.prototypes]
        assert [p.distance for p in one.prototypes] == pytest.approx(other.distances, abs=1e-4)
        assert [f.feature for f in one.features] == [GENES[j] for j in other.features]
        assert [f.gate for f in one.features] == pytest.approx(other.mask_values, abs=1e-5)


def test_predict_and_explain_from_the_command_line(folder, inside, tmp_path):
    done = inside("predict", folder / "model", folder / "new.csv", check=0)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert rows[0].keys() == {"id", "predicted", "p_ill", "p_well"} and len(rows) == 10
    assert "'diagnosis'" in done.stderr, "a column that is not used is named"
    words = ("explain", folder / "model", folder / "new.csv", "--sample", "P003")
    text = inside(*words, "--to", tmp_path, check=0).stdout
    assert text.startswith("sample P003: ") and "gene0" in text and "nearest prototype" in text
    assert (tmp_path / "explain-P003.png").stat().st_size > 5000
    assert (tmp_path / "explain-P003.svg").stat().st_size > 5000
    [found] = json.loads(inside(*words, "--format", "json", check=0).stdout)
    assert found["prediction"]["predicted"] == rows[3]["predicted"]
    assert len(found["prototypes"]) == 3


def test_columns_are_found_by_name(folder, tmp_path):
    kept = fitted.read(folder / "model")
    frame = pd.read_csv(folder / "new.csv")
    frame[["gene11", "more", *GENES[:11]]] = frame.assign(more=1.0)[["gene11", "more", *GENES[:11]]]
    frame.drop(columns="patient").to_csv(tmp_path / "other.csv", index=False)
    other = fitted.new_samples(kept, tmp_path / "other.csv")
    assert np.array_equal(other.X, fitted.new_samples(kept, folder / "new.csv").X)
    assert other.ids[:2] == ["1", "2"] and "'more'" in other.notes[1]
    frame.drop(columns=["gene3", "gene7"]).to_csv(tmp_path / "less.csv", index=False)
    with pytest.raises(UserError, match="no columns 'gene3', 'gene7': 2 of the 12 features"):
        fitted.new_samples(kept, tmp_path / "less.csv")
    frame.assign(gene3="high").to_csv(tmp_path / "words.csv", index=False)
    with pytest.raises(UserError, match="not numbers: 'gene3'"):
        fitted.new_samples(kept, tmp_path / "words.csv")
    for value, said in (
        (np.nan, "1 missing value"),
        (np.inf, "1 infinite"),
        (1e300, "out of range"),
    ):
        frame.assign(gene3=[value, *frame["gene3"][1:]]).to_csv(tmp_path / "odd.csv", index=False)
        with pytest.raises(UserError, match=f"{said}.*leave these rows out") as error:
            fitted.new_samples(kept, tmp_path / "odd.csv")
        assert "--drop" not in str(error.value), "predict has no such option"
    with pytest.raises(
        UserError, match=r"no sample 'P999' in the table. It has 1, .*, 8 and \d+ more\.$"
    ):
        fitted.explain(kept, other, ["P999"])


def test_a_slip_among_numbers_is_no_category(tmp_path):
    """The categories of new samples are known; a text elsewhere would have become its place in the alphabet."""
    new = tmp_path / "new.csv"
    new.write_text("age,site\n61,north\n5O,south\n44,north\n")
    with pytest.raises(UserError, match="not numbers: 'age'"):
        table.read_new(new, ["age", "site"], None, {"site": ("north", "south")})
    new.write_text("age,site\n61,north\n50,south\n")
    found = table.read_new(new, ["age", "site"], None, {"site": ("north", "south")})
    assert found.X.tolist() == [[61.0, 0.0], [50.0, 1.0]]


@pytest.mark.parametrize(
    ("levels", "written", "codes"),
    [
        (("01", "02", "X9"), ["01", "02", "01"], [0, 1, 0]),
        (("1.0", "2.0", "X9"), ["2.0", "1.0", "X9"], [1, 0, 2]),
        (("FALSE", "TRUE", "unknown"), ["TRUE", "FALSE", "TRUE"], [1, 0, 1]),
        (("False", "True"), ["TRUE", "false", "true"], [1, 0, 1]),
    ],
)
def test_categories_of_new_samples_are_what_is_written(levels, written, codes, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("age,arm\n" + "".join(f"{50 + i},{arm}\n" for i, arm in enumerate(written)))
    found = table.read_new(new, ["age", "arm"], None, {"arm": levels})
    assert found.X[:, 1].tolist() == codes and not found.notes


def edited(seal=True, **fields):
    """What a careful hand changes: the checksum fits again."""

    def damage(folder):
        about = json.loads((folder / "model.json").read_text()) | fields
        if seal:
            about["sha256"] = digest({k: v for k, v in about.items() if k != "sha256"})
        (folder / "model.json").write_text(json.dumps(about))

    return damage


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "model.json").unlink(), "holds no fitted model"),
        (lambda f: (f / "arrays.npz").unlink(), "arrays.npz is missing"),
        (lambda f: (f / "model.json").write_text("{"), "is not JSON"),
        (lambda f: (f / "arrays.npz").write_bytes(b"x"), "is not the file that"),
        (edited(format=1), "format 1, expected 2"),
        (edited(seal=False, classes=["healthy", "ill"]), "was changed after it was written"),
        (edited(revision=99), "revision 99"),
        (edited(features=GENES[:5]), "do not fit each other"),
        (edited(classes=["one"]), "classes other than"),
        (edited(params={"hidden": 7}), "do not fit each other"),
        (edited(params={"no_such": 1}), "no_such"),
        (edited(model="nowhere"), "Unknown model"),
        (edited(ids="P000"), "expected a list"),
    ],
)
def test_what_is_damaged_is_refused(folder, tmp_path, damage, message):
    shutil.copytree(folder / "model", tmp_path / "model")
    damage(tmp_path / "model")
    with pytest.raises(UserError, match=message):
        fitted.read(tmp_path / "model")


def test_slips_of_fit_are_named(folder, inside, tmp_path):
    words = (
        "fit",
        "--data",
        folder / "patients.csv",
        "--to",
        tmp_path / "m",
        "--results",
        tmp_path,
    )
    say = lambda *more: inside(*words, *more, check=2).stderr
    assert "--target NAME" in say()
    assert "cannot be kept without pickle" in say(
        "--target", "diagnosis", "--id", "patient", "--model", "knn"
    )
    assert "no column 'name'" in say("--target", "diagnosis", "--id", "name")
    assert "Unknown setting" in say("--target", "diagnosis", "--model", "protogate:kk=3")
    assert not (tmp_path / "m").exists()


def test_ids_name_every_sample_once(tmp_path):
    from benchmark.data.load import load, own_table

    table = cohort(0).assign(patient="P1")
    table.to_csv(tmp_path / "twice.csv", index=False)
    with pytest.raises(UserError, match="names several rows 'P1'"):
        own_table(tmp_path / "twice.csv", "diagnosis", id="patient")
    cohort(0).to_csv(tmp_path / "good.csv", index=False)
    data = load(own_table(tmp_path / "good.csv", "diagnosis", id="patient"))
    assert data.ids[:2] == ("P000", "P001") and data.features == tuple(GENES)
