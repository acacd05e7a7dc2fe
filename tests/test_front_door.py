"""`from benchmark import ...`, and the pages and the notebook that show it."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import ROOT
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

import benchmark
from benchmark import paper
from benchmark.protocol import registry
from benchmark.protocol.spec import UserError
from benchmark.runner.machine import ONE_THREAD
from benchmark.tables.recipes import Recipe


def test_importing_waits_for_no_library():
    code = (
        "import sys, benchmark\n"
        "heavy = [n for n in ('numpy', 'pandas', 'sklearn', 'torch') if n in sys.modules]\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_every_name_of_the_front_door_is_there():
    for name in benchmark._FRONT_DOOR:
        assert callable(getattr(benchmark, name)), name
    assert set(benchmark.__all__) == set(benchmark._FRONT_DOOR) <= set(dir(benchmark))
    # Type checkers and editors see only what is imported for them.
    for_types = re.findall(
        r"    from \S+ import (.*)", (ROOT / "benchmark/__init__.py").read_text()
    )
    assert {name for line in for_types for name in line.split(", ")} == set(benchmark.__all__)
    for method in paper.METHODS:
        assert registry.load_class(registry.models()[method]).__name__ in benchmark.__all__, method
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = benchmark.nothing


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(3)
    y = np.repeat(["a", "b", "c"], 20)
    X = rng.normal(size=(60, 8)) + (y == "b")[:, None]
    pd.DataFrame(X, columns=list("stuvwxyz")).assign(kind=y).to_csv(tmp_path / "t.csv", index=False)
    return benchmark.table(tmp_path / "t.csv", "kind")


def plain(path, make):
    """The protocol in scikit-learn's words alone, for one repeat."""
    frame = pd.read_csv(path)
    y = frame.pop("kind").map({"a": 0, "b": 1, "c": 2}).to_numpy()
    X = frame.to_numpy()
    for fold, (rest, test) in enumerate(
        StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    ):
        train, _ = train_test_split(rest, test_size=0.1, stratify=y[rest], random_state=fold)
        scaler = StandardScaler().fit(X[train])
        A, B = (scaler.transform(X[rows]).astype(np.float32) for rows in (train, test))
        model = make().fit(A, y[train])
        yield (
            balanced_accuracy_score(y[test], model.predict(B)),
            roc_auc_score(y[test], model.predict_proba(B), multi_class="ovr"),
        )


def test_runs_on_an_own_table_equal_a_plain_script(table, tmp_path):
    runs = benchmark.run(
        [GaussianNB, "knn", "ridge"], [table], repeats=1, results=tmp_path / "own", jobs=0
    )
    assert list(runs["status"]) == ["ok"] * 15
    for name, make in (
        ("sklearn.naive_bayes.GaussianNB", GaussianNB),
        ("knn", lambda: KNeighborsClassifier(5)),
        ("ridge", lambda: LogisticRegression(C=1.0, tol=1e-4, max_iter=10_000)),
    ):
        ours = runs[runs["model"] == name].sort_values("fold")
        ours = ours[["test_balanced_accuracy", "test_auroc"]].to_numpy(float)
        assert np.allclose(ours, list(plain(table.path, make)), atol=1e-12), name


def test_rank_takes_classes_and_tables(table, tmp_path):
    found = benchmark.rank(
        [benchmark.KNN, GaussianNB], [table], against="knn", results=tmp_path / "own", jobs=0
    )
    assert {one.method for one in found.standings} == {"knn", "sklearn.naive_bayes.GaussianNB"}
    assert sorted(one.rank for one in found.standings) == [1.0, 2.0]
    assert isinstance(found.table.recipe, Recipe) and len(found.pairs) == 1
    for words in ({"metric": "auc"}, {"against": "rf"}):
        with pytest.raises(UserError, match="auc|none of the ranked"):
            benchmark.rank(["knn", GaussianNB], [table], results=tmp_path / "own", jobs=0, **words)


def test_one_may_stand_without_a_list(table, tmp_path):
    words = {"results": tmp_path / "own", "jobs": 0}
    assert len(benchmark.run("knn", table, repeats=1, **words)) == 5
    assert len(benchmark.rank(["knn", GaussianNB], table, **words).standings) == 2
    one = benchmark.table(tmp_path / "t.csv", "kind", drop="xyz"[0])
    assert "x" not in benchmark.load_dataset(one).features


@pytest.mark.parametrize(
    "given",
    [
        {"path": pd.DataFrame({"kind": [1]})},
        {"test": pd.DataFrame({"kind": [1]})},
        {"target": 6},
        {"drop": ["y", 6]},
        {"groups": 6},
    ],
)
def test_a_table_is_a_file_and_a_column_a_name(table, tmp_path, given):
    said = "got DataFrame 'kind 0 1'" if {"path", "test"} & given.keys() else "got int '6'"
    with pytest.raises(UserError, match=rf"^In table\(\), .* is given by its .*, {said}"):
        benchmark.table(**{"path": tmp_path / "t.csv", "target": "kind"} | given)


@pytest.mark.parametrize(
    ("models", "words", "said"),
    [
        ([GaussianNB()], {}, "Give its class, GaussianNB"),
        (RandomForestClassifier(), {}, "Give its class, RandomForestClassifier"),
        ([], {}, "Name a model"),
        (["knn"], {"datasets": []}, "Name a dataset"),
        (["knn"], {"datasets": Path("t.csv")}, "benchmark.table"),
        (["knn"], {"datasets": pd.DataFrame({"a": [1]})}, "^DataFrame 'a 0 1' stands for no data"),
        (["knn"], {"folds": 1}, "At least 2 folds"),
        (["knn"], {"repeats": 0}, "At least 1 repeat"),
        (["knn"], {"jobs": -1}, "got -1"),
    ],
)
def test_slips_in_python_are_answered_as_on_the_command_line(table, tmp_path, models, words, said):
    with pytest.raises(UserError, match=said):
        benchmark.run(
            models, words.pop("datasets", table), **{"results": tmp_path / "own", "jobs": 0} | words
        )
    assert not (tmp_path / "own").exists()


def test_a_class_that_no_process_can_import_is_refused(table, tmp_path):
    class Local(GaussianNB):
        pass

    with pytest.raises(UserError, match="put the class into a file"):
        benchmark.run([Local], [table], results=tmp_path, jobs=0)


def blocks(page, language):
    return re.findall(
        rf"```{language}\n(.*?)```", (ROOT / "docs" / page).read_text(), flags=re.DOTALL
    )


def surroundings(place):
    return {**os.environ, **ONE_THREAD, "PYTHONPATH": str(place), "BENCHMARK_OFFLINE": "1"}


@pytest.mark.slow
def test_the_page_for_python_runs(tmp_path):
    rows = [f"P{i // 2},{i % 7 if i % 9 else ''},{'ab'[i % 2]},{'ill' if i // 2 % 3 else 'well'}"
            for i in range(120)]  # fmt: skip
    (tmp_path / "patients.csv").write_text("\n".join(["patient,dose,arm,diagnosis", *rows]))
    code = "\n".join(blocks("python.md", "python")) + "\nassert (runs['status'] == 'ok').all()"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=surroundings(ROOT), check=True)


@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    book = nbformat.read(ROOT / "docs/quickstart.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in book.cells), "outputs do not ship"
    nbclient.NotebookClient(
        book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()


@pytest.mark.slow
def test_from_a_csv_to_an_explained_prediction_with_the_wheel_alone(installed, tmp_path):
    """docs/your-own-data.md, word for word, in an empty folder."""
    folder = tmp_path / "empty"
    folder.mkdir()
    [commands] = blocks("your-own-data.md", "")
    lines = commands.strip().splitlines()
    assert len(lines) < 10
    said = ""
    for line in lines:
        words = shlex.split(line)
        done = subprocess.run(
            [sys.executable, *words[1:]], cwd=folder, env=surroundings(installed),
            capture_output=True, text=True, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, line + "\n" + done.stderr
        said += done.stdout
    assert "ranked by balanced accuracy on colon, wine" in said
    for made in ("rank/critical-difference.png", "features/features.csv", "why/explain-W003.svg"):
        assert (folder / made).stat().st_size > 500, made
    assert len(pd.read_parquet(folder / "runs.parquet")) > 10_000
    assert "sample W003: " in said and "proline" in said
