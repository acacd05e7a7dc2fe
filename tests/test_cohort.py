"""Cohorts as they are: several rows per patient, an external test set, gaps, categories, rare classes."""

import json

import numpy as np
import pandas as pd
import pytest
from benchmark.datasets import table
from conftest import ROOT
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedGroupKFold, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import benchmark
from benchmark.cli.main import parser
from benchmark.data import load as loading
from benchmark.protocol.plan import Cell, Protocol
from benchmark.protocol.prepare import prepare
from benchmark.protocol.registry import data_ref, models
from benchmark.protocol.spec import DataRef, RunSpec, UserError
from benchmark.protocol.splits import make_split
from benchmark.runner.execute import execute
from benchmark.runner.records import Store

GENES = list("stuvwxyz")
MODELS = {
    "knn": lambda: KNeighborsClassifier(5),
    "ridge": lambda: LogisticRegression(C=1.0, tol=1e-4, max_iter=10_000),
}


def cohort(seed=0, n=30, rows=2):
    """Patients with a few rows each, of three classes."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n), rows)
    y = np.array(list("abc"))[patient % 3]
    X = rng.normal(size=(len(y), 8)) + (y == "b")[:, None] - (y == "c")[:, None]
    frame = pd.DataFrame(X, columns=GENES).assign(kind=y, patient=[f"P{i}" for i in patient])
    return frame.assign(sample=[f"S{i}" for i in range(len(frame))])


def saved(tmp_path, frame, name="mine.csv"):
    frame.to_csv(tmp_path / name, index=False)
    return tmp_path / name


def complaint(path, target="kind", **how):
    with pytest.raises(UserError) as error:
        loading.own_table(path, target, **{"drop": ["patient", "sample"], **how})
    return str(error.value)


def scores(parts, y, make):
    (A, train), (B, test) = parts
    model = make().fit(A, y[train])
    return (
        balanced_accuracy_score(y[test], model.predict(B)),
        roc_auc_score(y[test], model.predict_proba(B), multi_class="ovr"),
    )


def as_plain(X, y, splits, make):
    """Every run in scikit-learn's words alone."""
    for train, test in splits:
        scaler = StandardScaler().fit(X[train])
        parts = [(scaler.transform(X[r]).astype(np.float32), r) for r in (train, test)]
        yield scores(parts, y, make)


def ours(runs, model):
    mine = runs[runs["model"] == model].sort_values(["repeat", "fold"])
    return mine[["test_balanced_accuracy", "test_auroc"]].to_numpy(float)


# Keys ---------------------------------------------------------------------------------------------


def test_the_keys_of_shipped_records_stay(tmp_path):
    """A plain spec has the key that the record beside the paper has, and the same fields."""
    cell = Cell(models()["knn"], data_ref("colon"))
    store = Store(ROOT / "results")
    for spec in cell.specs(store.setting(cell, "own").params, Protocol(1, 5))[:1]:
        record = store.load(store.path(spec.key))
        assert record["spec"] == spec.to_dict() and record["key"] == spec.key
        assert RunSpec.from_dict(record["spec"]) == spec and spec.start == spec.seed == 42
    assert DataRef("p", {"sha256": "a"}, "here").to_dict().keys() == {"name", "options", "path"}
    plain = loading.own_table(saved(tmp_path, cohort()), "kind", ["patient", "sample"])
    assert plain.options.keys() == {"target", "sha256", "drop"}


def test_every_option_is_part_of_the_key(tmp_path):
    path = saved(tmp_path, cohort())
    other = saved(tmp_path, cohort(1), "new.csv")
    frame = cohort().assign(part=["train", "test"] * 30)
    marked = saved(tmp_path, frame, "marked.csv")
    hows = [
        {},
        {"groups": "patient", "drop": ["sample"]},
        {"test": other},
        {"valid_size": 0.2},
        {"min_class": 3},
        {"impute": "median"},
        {"encode": "onehot"},
    ]
    keys = set()
    for how in hows:
        ref = loading.own_table(path, "kind", **{"drop": ["patient", "sample"], **how})
        [spec, *_] = Cell(models()["knn"], ref).specs({}, Protocol())
        again = RunSpec.from_dict(json.loads(json.dumps(spec.to_dict())))
        assert again == spec and again.key == spec.key
        keys.add(spec.key)
    assert len(keys) == len(hows)
    assert spec.valid_size == 0.1
    split = loading.own_table(marked, "kind", ["patient", "sample"], split="part")
    assert split.fixed_test and not ref.fixed_test


# Groups -------------------------------------------------------------------------------------------


def test_no_group_is_in_two_parts(tmp_path):
    ref = loading.own_table(saved(tmp_path, cohort()), "kind", groups="patient", id="sample")
    data = loading.load(ref)
    assert data.features == tuple(GENES)
    for repeat in range(5):
        tested = []
        for fold in range(5):
            split = make_split(data.y, repeat, fold, groups=data.groups)
            parts = [set(data.groups[rows]) for rows in (split.train, split.valid, split.test)]
            assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])
            assert sum(map(len, parts)) == 30
            assert all(len(np.unique(data.y[r])) == 3 for r in (split.train, split.test))
            tested += split.test.tolist()
        assert sorted(tested) == list(range(60))


def test_runs_with_groups_equal_a_plain_script(tmp_path):
    path = saved(tmp_path, cohort())
    table = benchmark.table(path, "kind", groups="patient", id="sample")
    runs = benchmark.run(list(MODELS), [table], repeats=2, results=tmp_path / "own", jobs=0)
    frame = pd.read_csv(path)
    X, y = frame[GENES].to_numpy(), frame["kind"].map({"a": 0, "b": 1, "c": 2}).to_numpy()
    groups = frame["patient"].to_numpy()

    def splits():
        for repeat in range(2):
            outer = StratifiedGroupKFold(5, shuffle=True, random_state=repeat)
            for fold, (rest, test) in enumerate(outer.split(X, y, groups)):
                inner = StratifiedGroupKFold(10, shuffle=True, random_state=fold)
                cut = list(inner.split(X[rest], y[rest], groups[rest]))
                # Of the tenths that are near a tenth, those with the most classes, in turn.
                near = [c for c in cut if abs(len(c[1]) - len(rest) / 10) <= len(rest) / 20]
                most = max(len(set(y[rest][valid])) for _, valid in near)
                full = [train for train, valid in near if len(set(y[rest][valid])) == most]
                yield rest[full[fold % len(full)]], test

    for name, make in MODELS.items():
        assert np.allclose(ours(runs, name), list(as_plain(X, y, splits(), make)), atol=1e-12), name


@pytest.mark.parametrize(
    "sizes", [[100, 20, 20, 20, 20, 20], [100, 24, 20, 19, 18, 20], [50, 50, *[10] * 10], [200, *[5] * 20]]
)  # fmt: skip
def test_groups_validate_near_the_share_and_not_always_the_same(sizes):
    groups = np.repeat(np.arange(len(sizes)), sizes)
    y = np.random.default_rng(0).integers(0, 2, len(groups))
    last = groups == len(sizes) - 1
    runs = [(repeat, fold) for repeat in range(5) for fold in range(5)]
    fixed = [make_split(y, *run, groups=groups, test=last).valid for run in runs]
    assert len({valid.tobytes() for valid in fixed}) > 3
    for valid in [*fixed, *(make_split(y, *run, groups=groups).valid for run in runs)]:
        assert len(valid) <= 24, "not the largest group, though it may be the first"


def test_divided_anew_groups_have_other_keys(tmp_path):
    """Records with the validation groups of earlier versions must not be averaged with new ones."""
    ref = loading.own_table(saved(tmp_path, cohort()), "kind", ["sample"], groups="patient")
    assert ref.options["grouping"] == 2 and "grouping" not in ref.words
    old = DataRef(ref.name, {k: v for k, v in ref.options.items() if k != "grouping"}, ref.path)
    assert old.folder != ref.folder


def test_slips_with_groups(tmp_path):
    path = saved(tmp_path, cohort().assign(one="x", gap=[None] + ["y"] * 59))
    no = {"drop": ["sample", "one", "gap"]}
    assert "no column 'patients' for --groups. Did you mean 'patient'" in complaint(
        path, groups="patients", **no
    )
    assert "a single group" in complaint(path, groups="one", drop=["sample", "gap", "patient"])
    assert "1 row of 60" in complaint(path, groups="gap", drop=["sample", "one", "patient"])
    assert "both name the column 'patient'" in complaint(path, groups="patient", id="patient", **no)
    assert "both name the column 'kind'" in complaint(path, groups="kind", **no)
    few = saved(tmp_path, cohort().assign(patient=cohort()["kind"]), "few.csv")
    found = complaint(few, groups="patient", drop=["sample"])
    assert "3 classes with fewer ('a': 1, 'b': 1, 'c': 1). Merge them" in found
    assert "--min-class" not in found, "it counts rows"
    rare = cohort()
    rare.loc[rare["kind"] == "b", "patient"] = ["X", "Y", "Z", "Z"] * 5
    found = complaint(saved(tmp_path, rare, "rare.csv"), groups="patient", drop=["sample"])
    assert "1 class with fewer ('b': 3)" in found and "--folds 3" in found
    assert "--drop and --groups both name the column 'patient'" in complaint(path, groups="patient")
    # Six groups, one of them with nearly all rows: every class has enough groups, no fold has them.
    lump = cohort().assign(patient=["L"] * 45 + list("abcdefghijklmno"))
    lump.loc[45:, "kind"] = list("abcab" * 3)
    found = complaint(saved(tmp_path, lump, "lump.csv"), groups="patient", drop=["sample"], folds=5)
    assert "--folds" in found


# An external test set -----------------------------------------------------------------------------


def test_runs_on_an_external_test_set_equal_a_plain_script(tmp_path):
    train = saved(tmp_path, cohort())
    other = cohort(7, n=12, rows=1)
    test = saved(tmp_path, other[[*reversed(GENES), "kind", "sample"]].assign(site=1), "new.csv")
    table = benchmark.table(train, "kind", test=test, drop=["patient", "sample"])
    data = benchmark.load_dataset(table)
    assert any("only new.csv has are left out: 'site'" in note for note in data.notes)
    runs = benchmark.run(list(MODELS), [table], repeats=2, results=tmp_path / "own", jobs=0)
    X = np.vstack([cohort()[GENES].to_numpy(), pd.read_csv(test)[GENES].to_numpy()])
    y = np.array([ord(k) - 97 for k in [*cohort()["kind"], *other["kind"]]])
    rest, tested = np.arange(60), np.arange(60, 72)
    splits = [
        (train_test_split(rest, test_size=0.1, stratify=y[rest], random_state=draw)[0], tested)
        for draw in range(10)
    ]
    for name, make in MODELS.items():
        assert np.allclose(ours(runs, name), list(as_plain(X, y, splits, make)), atol=1e-12), name
    assert runs["split_sha256"].nunique() == 10, "the validation rows differ"


def test_a_column_names_the_test_rows_and_every_run_has_its_seed(tmp_path):
    frame = cohort().assign(part=["Train"] * 45 + ["test "] * 15)
    ref = loading.own_table(saved(tmp_path, frame), "kind", ["patient", "sample"], split="part")
    data = loading.load(ref)
    assert data.test.sum() == 15 and "part" not in data.features
    specs = Cell(models()["rf"], ref).specs({"n_estimators": 5}, Protocol(2, 5))
    assert [spec.start for spec in specs] == list(range(42, 52))
    assert len({spec.setting for spec in specs}) == 1, "they are averaged into one cell"
    first, again = (execute(specs[3]).record for _ in range(2))
    assert first["status"] == "ok" and first["scores"] == again["scores"]


def test_slips_with_test_sets(tmp_path):
    path = saved(tmp_path, cohort())
    new = cohort(1)

    def of(frame, **how):
        return complaint(path, test=saved(tmp_path, frame, "new.csv"), **how)

    assert "new.csv has no columns 's', 't': 2 of those of" in of(new.drop(columns=["s", "t"]))
    assert "new.csv has no column 'kind', which says the class" in of(new.drop(columns="kind"))
    # Names before numbers, and more rows than columns: not for that a table with a row per feature.
    unlabelled = new[["sample", *GENES]]
    assert "so nothing can be scored" in of(unlabelled, drop=["patient"])
    assert "of classes that no training row has: 'd'" in of(new.assign(kind="d"))
    assert "There is no file" in complaint(path, test=tmp_path / "nowhere.csv")
    assert "2 groups with rows for training and for testing" in of(
        new.assign(patient=["P0", "P1"] + [f"Q{i}" for i in range(58)]),
        groups="patient",
        drop=["sample"],
    )
    assert "names several rows" in of(new, id="sample", drop=["patient"])
    assert "Give one of them" in of(new, split="patient")
    assert "same content" in complaint(path, test=path)
    some = loading.own_table(
        path, "kind", ["patient", "sample"], test=saved(tmp_path, cohort()[:6], "new.csv")
    )
    assert any("12 rows" in n and "too easy" in n for n in loading.load(some).notes)
    assert "has to say train or test" in complaint(path, split="patient", drop=["sample"])
    one = saved(tmp_path, cohort().assign(part="train"), "one.csv")
    assert "says 'train' in all rows" in complaint(one, split="part")
    ref = loading.own_table(path, "kind", ["patient", "sample"], test=tmp_path / "new.csv")
    (tmp_path / "new.csv").write_text("changed")
    with pytest.raises(UserError, match=r"new\.csv has changed"):
        loading._load.cache_clear()
        loading.load(ref)


def test_rows_are_counted_in_their_file(tmp_path):
    path, new = saved(tmp_path, cohort()), cohort(1).astype({"s": object})
    new.loc[2, "s"] = "<0.1"
    test = saved(tmp_path, new, "new.csv")
    assert "In row 3 of new.csv, 's' is '<0.1'" in complaint(path, test=test)
    assert "In row 3 of mine.csv, 's' is '<0.1'" in complaint(
        saved(tmp_path, new), test=saved(tmp_path, cohort(), "new.csv")
    )
    new.loc[0, "kind"] = "rare"
    assert "In row 3, 's' is" in complaint(saved(tmp_path, new), min_class=2)


def coded(n, codes, seed=0):
    """A category with codes for words, which tells the class but for its last code."""
    rng = np.random.default_rng(seed)
    arm = np.resize(codes, n)
    kind = np.where(arm == codes[0], "case", np.where(arm == codes[1], "ctl", "case"))
    return pd.DataFrame(
        {"s": rng.normal(size=n), "t": rng.normal(size=n), "arm": arm, "kind": kind}
    )


@pytest.mark.parametrize("codes", [["01", "02"], ["1.0", "2.0"], ["TRUE", "FALSE"], ["1", "2"]])
def test_categories_are_the_same_in_both_files(codes, tmp_path):
    """The test file's codes are numbers, if one looks at them alone."""
    new = saved(tmp_path, coded(20, codes, 1), "new.csv")
    path = saved(tmp_path, coded(60, [*codes, "X9"]))
    for train, test in ((path, new), (new, path)):
        data = loading.load(loading.own_table(train, "kind", test=test, encode="onehot"))
        assert data.categories == {"arm": tuple(sorted([*codes, "X9"]))}
        written = [*pd.read_csv(train, dtype=str)["arm"], *pd.read_csv(test, dtype=str)["arm"]]
        assert [data.categories["arm"][int(code)] for code in data.X[:, 2]] == written
        unseen = "categories of 'arm' that no training row has count as none: 'X9'"
        assert (unseen in data.notes) == (train == new)
        # The same as words that nobody takes for numbers.
        words = [
            saved(tmp_path, pd.read_csv(file, dtype={"arm": str}).assign(arm=lambda t: "c" + t["arm"]), f"c{i}.csv")
            for i, file in enumerate((train, test))
        ]  # fmt: skip
        same = loading.load(loading.own_table(words[0], "kind", test=words[1], encode="onehot"))
        assert same.sha256 == data.sha256


def test_labels_are_the_same_in_both_files(tmp_path):
    for known, tested in (
        (["1", "2", "3a"], ["1", "2"]),
        (["01", "02", "X"], ["01", "02"]),
        (["NA", "EU", "AS"], ["NA"]),
    ):
        path = saved(tmp_path, cohort().assign(kind=np.resize(known, 60)))
        new = saved(tmp_path, cohort(1).assign(kind=np.resize(tested, 60)), "new.csv")
        data = loading.load(loading.own_table(path, "kind", ["patient", "sample"], test=new))
        assert data.classes == tuple(sorted(known))
        assert {data.classes[code] for code in data.y[60:]} == set(tested)
        turned = [tmp_path / f"turned-{name}" for name in ("mine.csv", "new.csv")]
        for file, to in zip((path, new), turned, strict=True):
            frame = pd.read_csv(file, dtype=str, keep_default_na=False)
            frame.set_index("sample").T.to_csv(to, index_label="gene")
        ref = loading.own_table(turned[0], "kind", ["patient"], test=turned[1], transpose=True)
        assert loading.load(ref).sha256 == data.sha256


@pytest.mark.parametrize("transpose", [False, True])
def test_names_and_groups_are_what_is_written(transpose, tmp_path):
    """Not the numbers that they look like: 1.1 and 1.10 are two patients, 0E1 is no 0."""
    patients = [f"{i}.{end}" for i in range(15) for end in ("1", "10")]
    frame = cohort().assign(patient=np.repeat(patients, 2))
    frame["sample"] = ["00000", "0E1", "0E2", "NA", *(f"0{i}" for i in range(56))]
    path = saved(tmp_path, frame)
    if transpose:
        columns = [f"row {i}" for i in range(60)]
        frame.T.set_axis(columns, axis=1).to_csv(path, index_label="gene")
    ref = loading.own_table(path, "kind", id="sample", groups="patient", transpose=transpose)
    data = loading.load(ref)
    assert data.ids == tuple(frame["sample"])
    assert len(np.unique(data.groups)) == 30
    frame["patient"] = np.resize(["1", "1.0", "01", "2.10", "2.1", "3", "4", "5", "6", "7"], 60)
    spelled = loading.own_table(
        saved(tmp_path, frame), "kind", ["sample"], groups="patient", folds=2
    )
    assert len(np.unique(loading.load(spelled).groups)) == 9, "1 and 1.0 are one"
    gap = saved(tmp_path, cohort().assign(patient=["NA", *cohort()["patient"][1:]]), "gap.csv")
    assert "1 row of 60 without 'patient'" in complaint(gap, groups="patient", drop=["sample"])


def test_classes_without_a_test_row_are_told(tmp_path):
    path, new = saved(tmp_path, cohort()), cohort(1)
    test = saved(tmp_path, new[new["kind"] != "c"], "new.csv")
    data = loading.load(loading.own_table(path, "kind", ["patient", "sample"], test=test))
    assert any("classes without a test row" in note and "'c'" in note for note in data.notes)


# Rare classes, sizes, twins -----------------------------------------------------------------------


def test_rare_classes_are_left_out_and_named(tmp_path):
    frame = pd.concat([cohort(), cohort(1)[:3].assign(kind="rare")])
    path = saved(tmp_path, frame)
    assert "Leave them out with --min-class 5" in complaint(path)
    data = loading.load(loading.own_table(path, "kind", ["patient", "sample"], min_class=4))
    assert data.classes == ("a", "b", "c") and len(data.y) == 60
    assert any("3 rows left out" in note and "'rare' (3)" in note for note in data.notes)
    assert "--min-class 21 leaves 0 of the 4 classes" in complaint(path, min_class=21)
    assert "at least 1, got 0" in complaint(path, min_class=0)


@pytest.mark.parametrize("size", [0, 1, 1.5, -0.1, 0.51, float("nan")])
def test_a_validation_part_is_a_share(size, tmp_path):
    assert "above 0 and at most 0.5" in complaint(saved(tmp_path, cohort()), valid_size=size)


def test_many_small_classes_fit_into_a_larger_validation_part(tmp_path):
    """Sixty-four samples of eight classes, as a classic tumour set has."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(64, 5))).assign(kind=[f"k{i % 8}" for i in range(64)])
    path = saved(tmp_path, frame)
    assert "--valid-size 0.16 is enough" in complaint(path, drop=[])
    ref = loading.own_table(path, "kind", valid_size=0.16)
    [spec] = Cell(models()["knn"], ref).specs({}, Protocol(1, 5))[:1]
    record = execute(spec).record
    assert record["status"] == "ok" and record["split"]["valid"] == 9


def test_rows_with_equal_features_are_counted(tmp_path):
    frame = cohort()
    twice = pd.concat([frame, frame[:10], frame[:1].assign(kind="c")])
    path = saved(tmp_path, twice.assign(sample=range(len(twice))))
    drop = ["patient", "sample"]
    notes = loading.load(loading.own_table(path, "kind", drop)).notes
    [note] = [note for note in notes if "same features" in note]
    assert note.startswith("21 rows") and "3 of them with different labels" in note
    assert "--groups" in note
    grouped = loading.load(loading.own_table(path, "kind", ["sample"], groups="patient"))
    assert not any("same features" in note for note in grouped.notes)


# Turned tables ------------------------------------------------------------------------------------


def test_a_row_per_feature(tmp_path):
    frame = cohort()
    usual = loading.load(
        loading.own_table(saved(tmp_path, frame), "kind", ["patient"], id="sample")
    )
    turned = frame.set_index("sample").T
    turned.to_csv(tmp_path / "turned.csv", index_label="gene")
    turned.to_csv(tmp_path / "nameless.csv")
    for name in ("turned.csv", "nameless.csv"):
        path = tmp_path / name
        assert "--transpose reads it so" in complaint(path, drop=[])
        data = loading.load(loading.own_table(path, "kind", ["patient"], transpose=True))
        assert np.array_equal(data.X, usual.X) and np.array_equal(data.y, usual.y)
        assert (data.features, data.ids, data.classes) == (usual.features, usual.ids, usual.classes)
    path = tmp_path / "turned.csv"
    assert "no row 'kin' to predict" in complaint(path, "kin", drop=[], transpose=True)
    assert "It is a column" in complaint(saved(tmp_path, frame), transpose=True)
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(90, 20))).add_prefix("S")
    wide.insert(0, "gene", [f"g{i}" for i in range(90)])
    assert "a row per feature" in complaint(saved(tmp_path, wide, "wide.csv"), drop=[])
    wide.assign(gene="g").to_csv(tmp_path / "twice.csv", index=False)
    assert "several rows named 'g'" in complaint(tmp_path / "twice.csv", drop=[], transpose=True)
    (tmp_path / "ids.csv").write_text("gene,S1,S1\nkind,a,b\ng1,1,2\n")
    assert "more than one column named 'S1'" in complaint(
        tmp_path / "ids.csv", drop=[], transpose=True
    )


def test_a_turned_matrix(tmp_path):
    frame = cohort()
    X, y = frame[GENES].to_numpy(), frame["kind"].to_numpy(str)
    np.savez(tmp_path / "m.npz", X=X.T, y=y)
    data = loading.load(loading.own_table(tmp_path / "m.npz", "y", transpose=True))
    assert np.array_equal(data.X, X)


# Gaps and categories ------------------------------------------------------------------------------


def gappy(seed=0, n=60):
    rng = np.random.default_rng(seed)
    frame = cohort(seed, n=n, rows=1).drop(columns="patient")
    for name in ("s", "t"):
        frame.loc[rng.choice(n, n // 5, replace=False), name] = np.nan
    stage = rng.choice(["I", "II", "III"], n).astype(object)
    stage[:2], stage[2] = "IV", None
    return frame.assign(stage=stage)


def test_gaps_and_categories_are_refused_unless_asked_for(tmp_path):
    path = saved(tmp_path, gappy())
    assert "--impute median" in complaint(path, drop=["sample", "stage"])
    assert "--encode onehot" in complaint(path, drop=["sample"])
    assert "--impute median" in complaint(path, drop=["sample", "s", "t"], encode="onehot")
    assert "Unknown word for --impute 'mean'" in complaint(path, impute="mean")
    assert "Unknown word for --encode 'ordinal'" in complaint(path, encode="ordinal")
    assert "looks like an identifier" in complaint(path, drop=[], encode="onehot", impute="median")
    # Grades are categories, though most of them are numbers.
    graded = saved(tmp_path, gappy().assign(grade=["1", "2", "3", "3a"] * 15), "graded.csv")
    words = {"drop": ["sample", "s", "t"], "encode": "onehot", "impute": "median"}
    table = benchmark.table(graded, "kind", **words)
    assert loading.load(table).categories["grade"] == ("1", "2", "3", "3a")
    # True and false with gaps are numbers with gaps; as categories they were before, too.
    flags = gappy().assign(smoker=pd.array([True, None, False] * 20, dtype="boolean"))
    path = tmp_path / "flags.parquet"
    flags.drop(columns=["stage"]).to_parquet(path)
    table = benchmark.table(path, "kind", drop=["sample"], impute="median")
    assert "smoker" in loading.load(table).columns
    # A slip, or a decimal comma, does not make categories of numbers.
    for slip in (["unknown", *range(50, 109)], [f"{x},5" for x in range(60)]):
        path = saved(tmp_path, gappy().assign(age=slip), "slip.csv")
        found = complaint(path, drop=["sample", "s", "t"], encode="onehot")
        assert "'age'" in found and "no category" in found and "identifier" not in found
    empty = saved(tmp_path, gappy().assign(s=np.nan), "empty.csv")
    assert "without any value: 's'" in complaint(empty, drop=["sample", "stage"], impute="median")
    rare = gappy().assign(s=[1.0, *[np.nan] * 59])
    found = complaint(saved(tmp_path, rare, "rare.csv"), drop=["sample", "stage"], impute="median")
    assert "no training row has a value of 's'" in found and "--drop" in found


def test_a_column_may_have_any_name(tmp_path):
    """Also one that pandas has for a parameter."""
    words = gappy()
    words["self"] = ["yes", "no"] * 30
    ref = loading.own_table(
        saved(tmp_path, words), "kind", ["sample", "s", "t", "stage"], encode="onehot"
    )
    assert loading.load(ref).categories == {"self": ("no", "yes")}
    found = table.read_new(tmp_path / "mine.csv", ["u", "self"], None, {"self": ("no", "yes")})
    assert found.X[:2, 1].tolist() == [1, 0]


def test_words_for_nothing_are_gaps_among_categories_and_the_message_says_so(tmp_path):
    """R writes NA for what is missing; whoever means no treatment by None has to be told."""
    path = saved(tmp_path, gappy().assign(stage=["None", "A", "B"] * 20))
    found = complaint(path, drop=["sample", "s", "t"], encode="onehot")
    assert "'stage': 20" in found and "None" in found and "another word" in found


@pytest.mark.parametrize("value", [[1, 2], b"x", {"a": 1}])
def test_categories_are_texts_or_numbers(value, tmp_path):
    path = tmp_path / "odd.parquet"
    gappy().assign(stage=[value] * 60).to_parquet(path)
    found = complaint(path, drop=["sample", "s", "t"], encode="onehot")
    assert "'stage'" in found and "a category is a text or a number" in found


def test_what_training_rows_say_is_all_that_is_learnt(tmp_path):
    """Against scikit-learn's imputer and encoder, fitted on the training rows of each run."""
    path = saved(tmp_path, gappy())
    table = benchmark.table(path, "kind", drop=["sample"], impute="median", encode="onehot")
    data = benchmark.load_dataset(table)
    assert data.categories == {"stage": ("I", "II", "III", "IV")}
    assert data.columns[-4:] == ("stage=I", "stage=II", "stage=III", "stage=IV")
    runs = benchmark.run(list(MODELS), [table], repeats=1, results=tmp_path / "own", jobs=0)
    frame = pd.read_csv(path)
    y = frame["kind"].map({"a": 0, "b": 1, "c": 2}).to_numpy()
    for name, make in MODELS.items():
        expected = []
        for fold in range(5):
            split = make_split(y, 0, fold)
            imputer = SimpleImputer(strategy="median").fit(frame.loc[split.train, GENES])
            encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
            known = frame.loc[split.train, ["stage"]].dropna()
            encoder.fit(known)

            def ready(rows, imputer=imputer, encoder=encoder):
                stages = encoder.transform(frame.loc[rows, ["stage"]])
                return np.hstack([imputer.transform(frame.loc[rows, GENES]), stages])

            scaler = StandardScaler().fit(ready(split.train))
            parts = [
                (scaler.transform(ready(r)).astype(np.float32), r)
                for r in (split.train, split.test)
            ]
            expected.append(scores(parts, y, make))
        assert np.allclose(ours(runs, name), expected, atol=1e-12), name


def test_rows_that_are_not_trained_on_change_nothing(tmp_path):
    frame = gappy()
    data = loading.load(
        loading.own_table(
            saved(tmp_path, frame), "kind", ["sample"], impute="median", encode="onehot"
        )
    )
    train = make_split(data.y, 0, 0).train
    X = data.X.copy()
    X[np.setdiff1d(np.arange(60), train)] = 1e6
    one, other = (prepare(x[train], data.features, data.categories) for x in (data.X, X))
    assert np.array_equal(one.apply(data.X), other.apply(data.X))


def test_a_category_that_no_training_row_has_is_none(tmp_path):
    X = np.array([[0.0, 1.0], [1.0, np.nan], [0.0, 2.0]])
    found = prepare(X, ["stage", "g"], {"stage": ["I", "II", "III"]})
    assert found.apply(np.array([[2.0, np.nan], [np.nan, 5.0], [1.0, 0.0]])).tolist() == [
        [0, 0, 1.5], [0, 0, 5], [0, 1, 0]
    ]  # fmt: skip
    assert found.places.tolist() == [0, 1, 3] and found.width == 4
    assert found.widen(np.array([[True, False, True]])).tolist() == [[True, False, False, True]]


def test_features_of_categories_have_names(inside, tmp_path):
    """A run that has not seen a category still reports in terms of the whole table."""
    path = saved(tmp_path, gappy())
    done = inside("features", "--models", "lasso", "--data", path, "--target", "kind", "--drop", "sample",
                  "--impute", "median", "--encode", "onehot", "--repeats", "1", "--jobs", "0",
                  "--results", tmp_path / "own", "--to", tmp_path / "to", check=0)  # fmt: skip
    table = pd.read_csv(tmp_path / "to/features.csv")
    assert {"stage=I", "stage=IV", "s"} <= set(table["feature"])
    assert "of 12 features with C=1000.0: that is no selection" in " ".join(done.stderr.split())


@pytest.mark.slow
def test_a_kept_model_fills_and_encodes_as_it_learnt(inside, tmp_path):
    path = saved(tmp_path, gappy())
    words = ("--data", path, "--target", "kind", "--id", "sample", "--results", tmp_path / "own")
    inside("fit", *words, "--model", "protogate:steps=60", "--impute", "median", "--encode", "onehot",
           "--to", tmp_path / "model", check=0)  # fmt: skip
    about = json.loads((tmp_path / "model/model.json").read_text())
    assert about["impute"] and set(about["categories"]) == {"stage"}
    assert about["columns"] == [*GENES, "stage"]
    new = gappy(5, 12)
    new.loc[0, "stage"], new.loc[1, GENES] = "V", np.nan
    done = inside("predict", tmp_path / "model", saved(tmp_path, new, "new.csv"), check=0)
    assert "not seen count as none: 'V'" in done.stderr and len(done.stdout.splitlines()) == 13
    text = inside("explain", tmp_path / "model", tmp_path / "new.csv", "--sample", "S3", check=0)
    assert "sample S3" in text.stdout
    about["columns"] = about["columns"][1:]
    (tmp_path / "model/model.json").write_text(json.dumps(about))
    said = inside("predict", tmp_path / "model", path, check=2).stderr
    assert "model.json was changed after it was written" in said


def test_runs_on_a_fixed_test_set_are_ranked_but_not_tested(inside, tmp_path):
    path, test = saved(tmp_path, cohort()), saved(tmp_path, cohort(3, 9, 1), "new.csv")
    done = inside("rank", "--models", "knn,ridge,sklearn.dummy:DummyClassifier", "--data", path,
                  "--target", "kind", "--drop", "patient,sample", "--test", test, "--against", "knn",
                  "--results", tmp_path / "own", "--to", tmp_path / "to", "--jobs", "0",
                  "--budget", "all", "--metric", "accuracy", check=0)  # fmt: skip
    text = " ".join(done.stdout.split())
    assert "ranked by accuracy on mine" in text and "nothing to test" in text
    assert "mine: tested on the same rows in every run" in text
    found = json.loads((tmp_path / "to/rank.json").read_text())
    assert found["pairs"] == [] and {one["wins"] for one in found["standings"]} == {0}
    assert min(one["rank"] for one in found["standings"]) == 1.0
    assert "every run is tested on the same rows" in (tmp_path / "to/index.html").read_text()


# The command line ---------------------------------------------------------------------------------


def test_run_says_how_often_and_on_what_it_tests(inside, tmp_path):
    path, test = saved(tmp_path, cohort()), saved(tmp_path, cohort(3, 9, 1), "new.csv")
    words = ("run", "--models", "knn", "--data", path, "--target", "kind", "--drop", "patient,sample",
             "--test", test, "--repeats", "2", "--jobs", "0", "--results", tmp_path / "own")  # fmt: skip
    done = inside(*words, "--metric", "auroc", "--format", "csv", check=0)
    assert "tested on the same 9 rows. The 10 runs differ" in done.stderr
    assert done.stdout.splitlines()[0].split(",")[4] == "auroc"
    again = inside(*words, check=0)
    assert "balanced accuracy %" in again.stdout
    [record, *_] = sorted((tmp_path / "own/runs").rglob("*.json"))
    assert (
        "same"
        in inside("verify", record, "--results", tmp_path / "own", "--jobs", "0", check=0).stdout
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--datasets", "colon", "--groups", "patient"], "--groups needs --data FILE"),
        (["--datasets", "colon", "--valid-size", "0.2"], "--valid-size needs --data FILE"),
        (["--datasets", "colon", "--transpose"], "--transpose needs --data FILE"),
        (
            ["--datasets", "colon", "--test", "x.csv", "--min-class", "3"],
            "--test and --min-class need",
        ),
        (
            ["--data", "a.csv", "--data", "b.csv", "--test", "c.csv"],
            "--test is given 1 time and --data 2 times",
        ),
        (["--data", "a.csv", "--split", "part", "--test", "c.csv"], "Give one of them"),
        (["--data", "a.csv", "--valid-size", "0"], "above 0 and at most 0.5, got 0"),
        (["--data", "a.csv", "--valid-size", "1.5"], "above 0 and at most 0.5, got 1.5"),
    ],
)
def test_slips_of_the_command_line(inside, tmp_path, words, message):
    done = inside("run", "--models", "knn", "--results", tmp_path, *words, check=2)
    assert message in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--valid-size", "much"], "must be a share such as 0.2, got 'much'"),
        (["--min-class", "0"], "must be at least 1, got 0"),
        (["--min-class", "-1"], "must not be negative, got -1"),
        (["--impute", "mean"], "there is no 'mean' here"),
        (["--metric", "f1"], "there is no 'f1' here"),
    ],
)
def test_words_that_no_option_takes(capsys, words, message):
    with pytest.raises(SystemExit) as end:
        parser().parse_args(["run", "--models", "knn", *words])
    assert end.value.code == 2 and message in capsys.readouterr().err
