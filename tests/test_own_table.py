"""A user's own table: every form that is taken, every complaint, never a traceback."""

import gzip
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse
from benchmark.datasets import table as own
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import benchmark
from benchmark.data import load as loading
from benchmark.protocol.spec import DataRef, MissingData, RunSpec, UserError


def frame(n=30, seed=0):
    """Three numeric features and a text target of two classes."""
    rng = np.random.default_rng(seed)
    columns = {name: rng.normal(size=n).round(4) for name in ("height", "weight", "age")}
    return pd.DataFrame({**columns, "group": np.where(np.arange(n) % 3 == 0, "sick", "well")})


def saved(tmp_path, table, name="mine.csv", **options):
    path = tmp_path / name
    table.to_csv(path, index=False, **options)
    return path


def loaded(path, target="group", **options):
    return loading.load(loading.own_table(path, target, **options))


def complaint(path, target="group", **options):
    with pytest.raises(UserError) as caught:
        loading.own_table(path, target, **options)
    return str(caught.value)


# --- forms ------------------------------------------------------------------------------------


def write_csv(path, table):
    table.to_csv(path, index=False)


def write_tsv(path, table):
    table.to_csv(path, index=False, sep="\t")


def write_semicolons(path, table):
    table.to_csv(path, index=False, sep=";")


def write_parquet(path, table):
    table.to_parquet(path)


def write_parquet_categories(path, table):
    categories = pd.CategoricalDtype(["sick", "well", "never seen"])
    table.assign(group=table["group"].astype(categories)).to_parquet(path)


def write_arff(path, table):
    lines = ["@relation r", *(f"@attribute {name} real" for name in table.columns[:-1])]
    lines += ["@attribute group {sick,well}", "@data"]
    lines += [",".join(map(str, row)) for row in table.itertuples(index=False)]
    path.write_text("\n".join(lines))


def write_npz(path, table):
    y = np.array(table["group"].tolist())
    np.savez(path, X=table.iloc[:, :3].to_numpy(), group=y)


def write_mat(path, table):
    y = np.array(table["group"].tolist(), dtype=object)[:, None]
    scipy.io.savemat(path, {"X": table.iloc[:, :3].to_numpy(), "group": y})


def write_with_byte_order_mark(path, table):
    table.to_csv(path, index=False, encoding="utf-8-sig")


FORMS = {
    "mine.csv": write_csv,
    "mine.csv.gz": write_csv,
    "mine.tsv": write_tsv,
    "mine.tsv.gz": write_tsv,
    "semicolons.csv": write_semicolons,
    "mark.csv": write_with_byte_order_mark,
    "mine.parquet": write_parquet,
    "categories.parquet": write_parquet_categories,
    "mine.arff": write_arff,
    "mine.npz": write_npz,
    "mine.mat": write_mat,
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_data(name, tmp_path):
    table = frame()
    FORMS[name](tmp_path / name, table)
    got = loaded(tmp_path / name)
    assert np.array_equal(got.X, table.iloc[:, :3].to_numpy())
    assert got.classes == ("sick", "well")
    assert got.y.tolist() == (table["group"] == "well").astype(int).tolist()
    assert got.notes == ()
    if name not in ("mine.npz", "mine.mat"):
        assert got.features == ("height", "weight", "age")
    assert got.sha256 == loaded(saved(tmp_path, table, "reference.csv")).sha256


@pytest.mark.parametrize("name", ["mine.npz", "mine.mat"])
def test_matrix_files_need_no_target_if_it_is_called_y(name, tmp_path):
    X, y = frame().iloc[:, :3].to_numpy(), np.arange(30) % 2
    if name.endswith("npz"):
        np.savez(tmp_path / name, X=X, y=y)
    else:
        scipy.io.savemat(tmp_path / name, {"X": X, "Y": y[:, None]})
    assert loaded(tmp_path / name, "y").classes == ("0", "1")


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([True, False], ("False", "True")),
        ([10, 9], ("9", "10")),
        ([1.0, 2.0], ("1", "2")),
        (["b ", "a"], ("a", "b")),
        (["10", "9"], ("9", "10")),
    ],
)
def test_targets_of_every_kind(labels, classes, tmp_path):
    table = frame().assign(group=np.resize(np.array(labels, dtype=object), 30))
    assert loaded(saved(tmp_path, table)).classes == classes


@pytest.mark.parametrize("word", ["None", "NA", "N/A", "null"])
@pytest.mark.parametrize("name", ["mine.csv", "mine.tsv.gz"])
def test_words_for_nothing_are_classes_among_names(word, name, tmp_path):
    table = frame().replace({"group": {"sick": word}})
    FORMS[name](tmp_path / name, table)
    got = loaded(tmp_path / name)
    assert got.classes == tuple(sorted([word, "well"]))
    assert np.bincount(got.y)[got.classes.index(word)] == 10
    assert got.notes == (f"label {word!r} taken as a class of 10 rows, not as missing",)


def test_words_for_nothing_are_gaps_among_numbers_and_features(tmp_path):
    numbers = frame().assign(group=[*["NA"] * 4, *["0", "1"] * 13])
    assert "4 rows of 30 without 'group'" in complaint(saved(tmp_path, numbers))
    features = frame().assign(age=[*["NA"] * 4, *["1.5"] * 26])
    assert "4 missing values in 1 column ('age': 4)" in complaint(saved(tmp_path, features))


# --- the reference ----------------------------------------------------------------------------


def test_reference_names_the_content_not_the_place(tmp_path):
    first = loading.own_table(saved(tmp_path, frame(), "my table (v2).csv"), "group")
    assert first.name == "my-table-v2"
    assert re.fullmatch(r"[0-9a-f]{64}", first.options["sha256"])
    (tmp_path / "elsewhere").mkdir()
    second = loading.own_table(saved(tmp_path / "elsewhere", frame(), "my table (v2).csv"), "group")
    specs = [RunSpec("knn", ref, 0, 0, {}) for ref in (first, second)]
    assert specs[0].key == specs[1].key
    other = loading.own_table(
        saved(tmp_path / "elsewhere", frame(seed=1), "my table (v2).csv"), "group"
    )
    assert RunSpec("knn", other, 0, 0, {}).key != specs[0].key


def test_a_column_left_out_twice_is_left_out(tmp_path):
    path = saved(tmp_path, frame())
    once, twice = (loading.own_table(path, "group", drop) for drop in (["age"], ["age", "age"]))
    assert once == twice


def test_a_table_called_like_a_registered_dataset(tmp_path):
    assert loading.own_table(saved(tmp_path, frame(), "colon.csv"), "group").name == "own-colon"


def test_a_table_that_changed_or_went_away_after_planning(tmp_path):
    path = saved(tmp_path, frame())
    ref = loading.own_table(path, "group")
    loading._load.cache_clear()
    saved(tmp_path, frame(seed=1))
    with pytest.raises(UserError, match="has changed"):
        loading.load(ref)
    path.unlink()
    with pytest.raises(MissingData, match="no longer there"):
        loading.load(ref)


def test_dropped_columns_are_left_out_and_stated(tmp_path):
    path = saved(tmp_path, frame().assign(city="Rome"))
    got = loaded(path, drop=["city", "age"])
    assert got.features == ("height", "weight")
    assert got.notes == ("columns left out on request: 'age', 'city'",)
    assert "'group', which is the one to predict" in complaint(path, drop=["group"])
    assert "no column 'town' for --drop. The columns are 'height'" in complaint(path, drop=["town"])
    assert "'hight' for --drop. Did you mean 'height'" in complaint(path, drop=["hight"])
    assert "no feature besides the target" in complaint(
        path, drop=["city", "age", "height", "weight"]
    )


# --- treatments that are stated -----------------------------------------------------------------


def test_constant_columns_are_kept_and_counted(tmp_path):
    got = loaded(saved(tmp_path, frame().assign(c=1.0, d=0, group=frame()["group"])))
    assert got.X.shape == (30, 5)
    assert "2 constant columns kept" in got.notes


def test_columns_that_number_the_rows_are_named(tmp_path):
    table = frame()
    table.insert(0, "patient", np.arange(100, 130))
    assert (
        "columns that only number the rows were kept: 'patient'"
        in loaded(saved(tmp_path, table)).notes
    )


def test_rare_classes_are_named(tmp_path):
    table = frame(100)
    table.loc[:5, "group"] = "rare"
    assert loaded(saved(tmp_path, table)).notes == (
        "too rare to be sure of a validation row: 'rare'",
    )


def test_the_nameless_column_of_row_names_is_left_out(tmp_path):
    path = tmp_path / "mine.csv"
    frame().to_csv(path)
    got = loaded(path)
    assert got.features == ("height", "weight", "age")
    assert "nameless first column taken as row names and left out" in got.notes


@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet"])
def test_nameless_texts_before_the_table_name_the_samples(name, tmp_path):
    path, table, other = tmp_path / name, frame(), tmp_path / f"other-{name}"
    write = pd.DataFrame.to_csv if name == "mine.csv" else pd.DataFrame.to_parquet
    table.index = pd.Index([f"P{i}" for i in range(30)])
    write(table, path)
    got = loaded(path)
    assert got.ids == tuple(table.index) and got.features == ("height", "weight", "age")
    assert got.notes == ("nameless first column taken as row names and left out",)
    assert loaded(path, id="age").ids != got.ids
    write(frame(seed=1).set_axis([f"Q{i}" for i in range(30)]), other)
    assert loaded(path, test=other).ids == (*table.index, *(f"Q{i}" for i in range(30)))
    write(frame(seed=1).set_axis(table.index), other)
    assert loaded(path, test=other).ids[:2] == ("1", "2"), "the same names in both"
    table.index = pd.Index(["P", *table.index[:-2], "P"])
    write(table, path)
    assert loaded(path).ids[:2] == ("1", "2") and "left out" in loaded(path).notes[0]
    # Numbers only count the rows.
    write(table.set_axis(range(5, 35)), path)
    assert loaded(path).ids[:2] == ("1", "2")
    turned = frame().set_axis([f"P{i}" for i in range(30)]).drop(columns="group").T
    turned.loc["group"] = np.arange(30.0) % 3 == 0
    write(turned, path)
    got = loaded(path, transpose=True)
    assert got.features == ("height", "weight", "age") and got.ids[:2] == ("P0", "P1")
    assert np.array_equal(got.X, frame().iloc[:, :3].to_numpy())


def test_numbers_as_text_and_truth_values(tmp_path):
    table = frame().assign(height=lambda t: t["height"].astype(str), age=np.arange(30) % 2 == 0)
    table.to_parquet(tmp_path / "mine.parquet")
    got = loaded(tmp_path / "mine.parquet")
    assert np.array_equal(got.X[:, 0], frame()["height"])
    assert got.X[:3, 2].tolist() == [1, 0, 1]
    assert got.notes[:2] == (
        "numbers written as text: 'height'",
        "true and false as 1 and 0: 'age'",
    )


# --- complaints -------------------------------------------------------------------------------


def test_target_missing_or_misspelt(tmp_path):
    path = saved(tmp_path, frame())
    assert "Did you mean 'group'?" in complaint(path, "grup")
    assert "Did you mean 'group'?" in complaint(path, "GROUP")
    message = complaint(path, None)
    assert "--target" in message
    assert "'weight'" in message


def test_one_class_only(tmp_path):
    message = complaint(saved(tmp_path, frame().assign(group="well")))
    assert "'well'" in message
    assert "two classes" in message


def test_one_row_and_no_rows(tmp_path):
    assert "1 row, all" in complaint(saved(tmp_path, frame(1)))
    message = complaint(saved(tmp_path, frame().head(0)))
    assert "0 rows and 4 columns; a row per sample is needed" in message


def test_a_class_smaller_than_the_number_of_folds(tmp_path):
    table = frame()
    table.loc[:3, "group"] = "rare"
    message = complaint(saved(tmp_path, table))
    assert "5 folds" in message
    assert "'rare': 4" in message


def test_fewer_and_more_folds(tmp_path):
    """The number of folds decides what is accepted, not what the reference stands for."""
    table = frame(60)
    table.loc[:3, "group"] = "rare"
    path = saved(tmp_path, table)
    four = loading.own_table(path, "group", folds=4)
    assert four == loading.own_table(path, "group", folds=3)
    loading._load.cache_clear()
    assert loading.load(four).classes == ("rare", "sick", "well")
    assert "5 folds need 5 rows" in complaint(path)
    path = saved(tmp_path, frame())
    message = complaint(path, folds=11)
    assert "11 folds need 11 rows" in message
    assert "'sick': 10" in message
    assert "--folds" in message


@pytest.mark.parametrize("extra", [[], ["--groups", "patient"]])
def test_fewer_folds_are_advised_where_they_can_be_asked_for(inside, tmp_path, extra):
    table = frame(60)
    table.loc[:2, "group"] = "rare"
    table = table.assign(patient=np.arange(60)) if extra else table
    words = ["--data", saved(tmp_path, table), "--target", "group", *extra, "--jobs", "0"]
    own = ["--results", tmp_path / "own", "--models", "knn,rf"]
    for command, has in (("run", True), ("tune", True), ("rank", False)):
        said = inside(command, *words, *own, check=2).stderr
        assert "5 folds need 5" in said and ("--folds" in said) == has, command
    inside("run", *words, *own, "--folds", "3", "--repeats", "1", check=0)


def test_fit_needs_no_folds(inside, tmp_path):
    table = frame(60)
    table.loc[:2, "group"] = "rare"
    words = ["--model", "protogate:steps=20", "--results", tmp_path, "--to", tmp_path / "model"]
    inside("fit", "--data", saved(tmp_path, table), "--target", "group", *words, check=0)
    table.loc[1:2, "group"] = "well"
    said = inside("fit", "--data", saved(tmp_path, table), "--target", "group", *words, check=2)
    assert "training and validation need 2 rows of every class" in said.stderr
    assert "Leave them out with --min-class 2, or merge them." in said.stderr


def test_fewer_folds_from_python(tmp_path):
    table = frame(60)
    table.loc[:2, "group"] = "rare"
    path, words = saved(tmp_path, table), {"results": tmp_path / "own", "jobs": 0}
    with pytest.raises(UserError, match="5 folds need 5 rows"):
        benchmark.table(path, "group")
    mine = benchmark.table(path, "group", folds=3)
    assert len(benchmark.run("knn", mine, repeats=1, folds=3, **words)) == 3
    with pytest.raises(UserError, match="5 folds need 5 rows.*ask for fewer folds"):
        benchmark.run("knn", mine, **words)
    with pytest.raises(UserError, match="5 folds need 5 rows") as error:
        benchmark.rank(["knn", "rf"], mine, **words)
    assert "--folds" not in str(error.value)
    with pytest.raises(UserError, match="At least 2 folds"):
        benchmark.table(path, "group", folds=1)


def test_too_few_rows_for_a_validation_part(tmp_path):
    table = frame(60).assign(group=np.arange(60) % 12)
    message = complaint(saved(tmp_path, table))
    assert "validation part of 5, too few for 12 classes" in message
    assert "--valid-size 0.25 is enough" in message
    ref = loading.own_table(tmp_path / "mine.csv", "group", valid_size=0.25)
    assert ref.options["valid_size"] == 0.25


def test_exactly_enough_rows_can_be_split(tmp_path):
    """What passes the check passes the splitters of the protocol."""
    from sklearn.model_selection import StratifiedKFold, train_test_split

    for n, n_classes in ((14, 2), (27, 3), (52, 5)):
        got = loaded(saved(tmp_path, frame(n).assign(group=np.arange(n) % n_classes)))
        for rest, test in StratifiedKFold(5, shuffle=True, random_state=0).split(got.X, got.y):
            train_test_split(rest, test_size=0.1, stratify=got.y[rest], random_state=0)
            assert set(got.y[test]) == set(range(n_classes))


@pytest.mark.parametrize("kind", ["measurement", "identifier", "many whole numbers"])
def test_a_target_that_is_no_class(kind, tmp_path):
    rng = np.random.default_rng(0)
    target = {
        "measurement": rng.normal(size=200),
        "identifier": [f"patient {i}" for i in range(200)],
        "many whole numbers": np.arange(200),
    }[kind]
    message = complaint(saved(tmp_path, frame(200).assign(group=target)))
    assert "200 different" in message
    assert "--target" in message


def test_missing_targets(tmp_path):
    table = frame()
    table.loc[:2, "group"] = np.nan
    table.loc[3, "group"] = "  "
    table.loc[4, "group"] = "?"
    assert "5 rows of 30 without" in complaint(saved(tmp_path, table))


def test_gaps_are_counted_by_column(tmp_path):
    table = frame()
    table.loc[:2, "age"] = np.nan
    table.loc[0, "height"] = np.nan
    message = complaint(saved(tmp_path, table, na_rep="?"))
    assert "4 missing values in 2 columns ('height': 1, 'age': 3)" in message
    assert "--impute median" in message


def test_infinities(tmp_path):
    table = frame()
    table.loc[5, "age"] = np.inf
    message = complaint(saved(tmp_path, table))
    assert "1 infinite value in 1 column ('age': 1)" in message


def unscalable(rest, odd):
    column = np.resize(np.array(rest, dtype=float), 30)
    column[7 : 7 + len(odd)] = odd
    return column


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (unscalable([1, 2, 3], [1e200]), "1e+200"),
        (unscalable([-1e200, 1e200], []), "-1e+200"),
        (unscalable([0], [-1e39]), "-1e+39"),
        (unscalable([1e-60, 2e-60], [0.5, 0.5]), "0.5"),
        (unscalable([0], [1.0, 1e-60]), "1"),
    ],
)
def test_values_that_overflow_when_scaled(column, value, tmp_path):
    message = complaint(saved(tmp_path, frame().assign(age=column)))
    assert "1 column with a value that is out of range for single precision" in message
    assert f"('age': {value})" in message
    assert "--drop" in message


@pytest.mark.parametrize(
    "column",
    [
        np.linspace(1e60, 2e60, 30),
        np.logspace(-300, 0, 30) + np.arange(30) % 2,
        unscalable([1, 2, 3], [1e25]),
        np.full(30, 1e-310),
    ],
)
def test_large_and_small_values_that_can_be_scaled(column, tmp_path):
    from benchmark.protocol.splits import make_split, scaled

    got = loaded(saved(tmp_path, frame().assign(age=column)))
    for fold in range(5):
        for part in scaled(got.X, got.y, make_split(got.y, 0, fold), got.scale):
            assert np.isfinite(part.X).all()


def test_text_columns_are_named_with_the_remedy(tmp_path):
    table = frame().assign(city="Rome", day=pd.Timestamp("2020-01-01"))
    message = complaint(saved(tmp_path, table))
    assert "2 columns that are not numbers: 'city', 'day'" in message
    assert "--drop" in message
    table.to_parquet(tmp_path / "mine.parquet")
    assert "'city', 'day'" in complaint(tmp_path / "mine.parquet")


def test_a_slip_among_numbers_is_named_with_its_row(tmp_path):
    table = frame().assign(city="Rome", age=frame()["age"].astype(object))
    table.loc[6, "age"] = "-"
    message = complaint(saved(tmp_path, table), drop=["city"])
    assert (
        "1 column that is not numbers: 'age'. In row 7, 'age' is '-'; a gap is an empty" in message
    )
    assert "In row 7, 'age' is '-'" in complaint(saved(tmp_path, table)), "not Rome"


@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet"])
def test_labels_that_may_be_one_class_are_named(name, tmp_path):
    table = frame()
    table.loc[table["group"] == "sick", "group"] = ["yes"] * 5 + ["Yes"] * 5
    table.loc[1, "group"] = "well "
    write = write_csv if name.endswith("csv") else write_parquet
    write(tmp_path / name, table)
    got = loaded(tmp_path / name)
    assert got.classes == ("Yes", "well", "yes"), "never merged quietly"
    assert (
        "labels that differ only by case or blanks are different classes: 'Yes', 'yes'" in got.notes
    )
    assert "blanks around labels are left out, which makes one class of 'well'" in got.notes


def test_decimal_commas_are_text(tmp_path):
    path = saved(tmp_path, frame(), sep=";", decimal=",")
    assert "points for decimals" in complaint(path)


def test_two_columns_of_one_name(tmp_path):
    table = frame()
    table.columns = ["age", "weight", "age", "group"]
    assert "more than one column named 'age'" in complaint(saved(tmp_path, table))


@pytest.mark.parametrize("more", [",", ",,"])
def test_what_spreadsheets_write_beside_a_table_is_left_out(more, tmp_path):
    path = saved(tmp_path, frame())
    usual = loaded(path)
    path.write_text(path.read_text().replace("\n", more + "\n"))
    got = loaded(path)
    assert got.sha256 == usual.sha256 and got.features == usual.features
    word = "1 column" if more == "," else "2 columns"
    assert got.notes == (f"{word} without name and values left out",)
    lines = [line + more for line in frame().T.to_csv(header=[f"S{i}" for i in range(30)]).split()]
    path.write_text("\n".join(lines))
    assert loaded(path, transpose=True).sha256 == usual.sha256
    path.write_text(f"{more}\n{more}\n")
    assert "''" in complaint(path), "of nothing but such columns none is left out"


def test_rows_longer_than_the_header(tmp_path):
    path = saved(tmp_path, frame())
    path.write_text(path.read_text() + "1,2,3,well,5,6\n")
    assert "is ragged: line 32 has 6 values and the line of names has 4" in complaint(path)
    for line in ("sep=;\n", "# exported today\n"):
        path.write_text(line + frame().to_csv(index=False, sep=";"))
        assert f"first line of {path} is '{line.strip()}'" in complaint(path)
    path.write_text("a,b,group\n" + "1,2,3,x\n1,2,3,y\n" * 10)
    assert "rows have more values than there are names" in complaint(path)


def test_empty_missing_and_unknown_files(tmp_path):
    (tmp_path / "empty.csv").touch()
    assert "is empty" in complaint(tmp_path / "empty.csv")
    (tmp_path / "blank.csv").write_text("\n\n")
    assert "blank lines only" in complaint(tmp_path / "blank.csv")
    assert "There is no file" in complaint(tmp_path / "nothing.csv")
    assert "is a folder. Name the table in it" in complaint(tmp_path)
    os.mkfifo(tmp_path / "pipe.csv")
    assert "is a pipe" in complaint(tmp_path / "pipe.csv")
    assert "no such user" in complaint("~nosuchuser/mine.csv")
    (tmp_path / "mine.xlsx").write_bytes(b"PK")
    message = complaint(tmp_path / "mine.xlsx")
    assert ".parquet" in message
    (tmp_path / "mine.parquet.gz").write_bytes(b"PK")
    assert ".parquet" in complaint(tmp_path / "mine.parquet.gz")


@pytest.mark.parametrize("blank", ["\n", "   \n", "\r\n \r\n"])
@pytest.mark.parametrize("separator", [",", "\t"])
def test_blank_lines_before_the_names_are_skipped(blank, separator, tmp_path):
    path = saved(tmp_path, frame(), sep=separator)
    usual = loaded(path)
    path.write_text(blank + path.read_text(), newline="")
    got = loaded(path)
    assert (got.sha256, got.features, got.notes) == (usual.sha256, usual.features, ())


def test_arff_with_a_mark_at_its_beginning(tmp_path):
    write_arff(tmp_path / "mine.arff", frame())
    usual = loaded(tmp_path / "mine.arff")
    (tmp_path / "mark.arff").write_text((tmp_path / "mine.arff").read_text(), "utf-8-sig")
    assert loaded(tmp_path / "mark.arff").sha256 == usual.sha256


def test_other_encodings(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_bytes(frame().assign(group="größe").to_csv(index=False).encode("latin1"))
    assert "not UTF-8" in complaint(path)
    path.write_bytes(frame().rename(columns={"age": "âge"}).to_csv(index=False).encode("latin1"))
    assert "not UTF-8" in complaint(path)
    path.write_bytes(frame().to_csv(index=False).encode("utf-16"))
    assert "is UTF-16 text. Save it as UTF-8" in complaint(path)


@pytest.mark.parametrize("name", FORMS)
def test_garbage_under_every_ending(name, tmp_path):
    path = tmp_path / name
    for seed in range(3):
        path.write_bytes(np.random.default_rng(seed).bytes(5000))
        assert str(path) in complaint(path)


def test_truncated_archives(tmp_path):
    path = tmp_path / "mine.csv.gz"
    path.write_bytes(gzip.compress(frame().to_csv(index=False).encode())[:-20])
    assert "cannot be read" in complaint(path)
    np.savez(tmp_path / "mine.npz", X=np.ones((30, 2)), group=np.arange(30) % 2)
    whole = (tmp_path / "mine.npz").read_bytes()
    (tmp_path / "mine.npz").write_bytes(whole[:-40])
    assert "mine.npz" in complaint(tmp_path / "mine.npz")


def test_objects_in_npz_are_never_unpickled(tmp_path):
    np.savez(tmp_path / "mine.npz", X=np.ones((30, 2)), group=np.array(["a", 1] * 15, dtype=object))
    assert "not loaded for safety" in complaint(tmp_path / "mine.npz")


def test_matrices_without_labels_or_of_other_length(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, X=np.ones((30, 2)), labels=np.arange(30) % 2)
    assert "['X', 'labels']" in complaint(path)
    np.savez(path, X=np.ones((29, 2)), group=np.arange(30) % 2)
    assert "30 rows" in complaint(path)
    np.savez(path, X=np.ones((30, 2), dtype="U3"), group=np.arange(30) % 2)
    assert "matrix of numbers" in complaint(path)


@pytest.mark.parametrize("name", ["mine.npz", "mine.mat"])
def test_no_other_matrix_takes_the_place_of_one_that_does_not_fit(name, tmp_path):
    path, y = tmp_path / name, np.arange(30)[:, None] % 2
    save = np.savez if name.endswith("npz") else lambda p, **arrays: scipy.io.savemat(p, arrays)
    X, age = frame().iloc[:, :3].to_numpy(), np.arange(30.0)[:, None]
    for called in ("X", "x"):
        save(path, **{called: X.T, "group": y, "age": age})
        said = complaint(path)
        assert f"{called} fits when turned: --transpose reads it so." in said and "30 rows" in said
        assert np.array_equal(loaded(path, transpose=True).X, X)
        save(path, **{called: X, "group": y, "age": age.T})
        assert "Leave --transpose out" in complaint(path, transpose=True)
        assert loaded(path).notes == ()
    save(path, X=X[:29], group=y, age=age)
    assert "fits" not in complaint(path)
    save(path, expression=X, group=y, code=3)
    assert "the features are the matrix 'expression'" in loaded(path).notes


@pytest.mark.parametrize("name", ["x1", "x3"])
def test_labels_called_like_a_feature_replace_none(name, tmp_path):
    X = frame().iloc[:, :3].to_numpy()
    np.savez(tmp_path / "mine.npz", X=X, **{name: np.arange(30) % 2})
    got = loaded(tmp_path / "mine.npz", name)
    assert np.array_equal(got.X, X)
    assert got.features == ("feature1", "feature2", "feature3")
    assert got.y.tolist() == [0, 1] * 15


def test_sparse_matrices_are_filled_as_long_as_they_fit(tmp_path, monkeypatch):
    X = np.where(np.arange(90).reshape(30, 3) % 4, 0.0, 1.5)
    path = tmp_path / "mine.mat"
    scipy.io.savemat(path, {"X": scipy.sparse.csc_matrix(X), "group": np.arange(30) % 2})
    assert np.array_equal(loaded(path).X, X)
    monkeypatch.setattr(own.files, "MAX_DENSE", 100)
    loading._load.cache_clear()
    message = complaint(path)
    assert "the sparse matrix 'X' of 30 x 3" in message
    assert "fewer columns" in message


def test_matlab_73_is_named(tmp_path):
    path = tmp_path / "mine.mat"
    head = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
    path.write_bytes(head + b"\x89HDF\r\n\x1a\n" + bytes(512))
    assert "-v7" in complaint(path)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_no_content_of_a_csv_gives_anything_but_a_message(content, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    with pytest.raises(UserError):
        loading.own_table(path, "group")


# --- size -------------------------------------------------------------------------------------


def test_a_large_file_is_announced(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(own.files, "LARGE", 100)
    loaded(saved(tmp_path, frame(), "big.csv"))
    assert "Reading big.csv" in capsys.readouterr().err


def test_many_columns(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, size=(60, 20_000))
    table = pd.DataFrame(X, columns=[f"g{j}" for j in range(20_000)])
    table["group"] = np.arange(60) % 2
    assert np.array_equal(loaded(saved(tmp_path, table)).X, X)


@pytest.mark.slow
def test_300_megabytes(tmp_path):
    """In a process of its own, to see how much memory it takes."""
    path = tmp_path / "big.csv"
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        file.write(",".join([*(f"g{j}" for j in range(2000)), "group"]) + "\n")
        while path.stat().st_size < 300e6:
            block = np.char.mod("%.6f", rng.normal(size=(200, 2000)))
            lines = [",".join([*row, "ab"[i % 2]]) for i, row in enumerate(block)]
            file.write("\n".join(lines) + "\n")
            file.flush()
    program = (
        "import sys, resource\n"
        "from benchmark.data import load as loading\n"
        "d = loading.load(loading.own_table(sys.argv[1], 'group'))\n"
        "print(d.X.nbytes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    size, peak = map(int, done.stdout.split())
    assert size > 250e6
    assert peak < 6 * size, f"{peak / 1e6:.0f} MB for {size / 1e6:.0f} MB of numbers"
    assert "please wait" in done.stderr


def test_refs_survive_the_way_through_json(tmp_path):
    ref = loading.own_table(saved(tmp_path, frame()), "group", drop=["age"])
    spec = RunSpec("knn", ref, 1, 2, {})
    again = RunSpec.from_dict(spec.to_dict())
    assert again.data == ref
    assert loading.load(DataRef(**vars(again.data))).X.shape == (30, 2)


def test_classes_that_are_small_for_their_spelling_are_named(tmp_path):
    path = tmp_path / "spelt.csv"
    labels = ["Kein Tumor", "kein  Tumor", *["kein Tumor"] * 29, *["Tumor"] * 29]
    pd.DataFrame({"gene": np.arange(60.0), "kind": labels}).to_csv(path, index=False)
    with pytest.raises(
        UserError, match="'kein  Tumor', 'kein Tumor' differ only by case or blanks"
    ):
        benchmark.table(path, "kind")
