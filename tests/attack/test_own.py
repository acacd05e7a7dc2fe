"""What a user brings: tables, registries, names. Taken as it is meant, or refused with a reason."""

import gzip
import string

import numpy as np
import pandas as pd
import pytest
import scipy.io
from attack.scale import attack, attempt
from conftest import cell_of
from hypothesis import assume
from hypothesis import strategies as st

from benchmark.cli import main as command_line
from benchmark.data import load as loading
from benchmark.protocol import choices, plan, registry
from benchmark.protocol.spec import UserError

# Tables ------------------------------------------------------------------------------------------

words = st.one_of(
    st.text(string.ascii_letters + "%'\"\\,;{}\t @?#=+-.äß", min_size=1, max_size=6),
    st.sampled_from(
        ["01", "1", "1.0", "1e2", "100", "+1", "-0", "0", "None", "NA", "nan", "?", "", " a", "a",
         "lo%1", "lo%2", "true", "True", "1_000", "0x10", "inf", "١", "é", "e\u0301"]
    ),
)  # fmt: skip

FORMS = ["csv", "csv.gz", "tsv", "semicolon.csv", "parquet", "index.parquet", "arff", "npz", "mat"]


def quoted(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def write(folder, form, labels):
    """A table of two numbers and these labels; returns its path and the target's name."""
    rows = len(labels)
    frame = pd.DataFrame({"a": np.arange(rows) * 0.7 % 3, "b": np.arange(rows) ** 2 % 7 + 0.5})
    path = folder / f"mine.{form}"
    if form in ("csv", "csv.gz", "tsv", "semicolon.csv"):
        separator = {"tsv": "\t", "semicolon.csv": ";"}.get(form, ",")
        frame.assign(group=labels).to_csv(path, index=False, sep=separator)
    elif form == "parquet":
        frame.assign(group=labels).to_parquet(path)
    elif form == "index.parquet":
        frame.set_index(pd.Index(labels, name="group")).to_parquet(path)
    elif form == "arff":
        listed = ",".join(quoted(label) for label in dict.fromkeys(labels))
        lines = ["@relation r", "@attribute a real", "@attribute b real"]
        lines += [f"@attribute group {{{listed}}}", "@data"]
        lines += [f"{a},{b},{quoted(t)}" for (a, b), t in zip(frame.values, labels, strict=True)]
        path.write_text("\n".join(lines) + "\n", "utf-8")
    elif form == "npz":
        np.savez(path, X=frame.to_numpy(), group=np.array(labels))
    else:
        cell = np.array(labels, dtype=object)[:, None]
        scipy.io.savemat(path, {"X": frame.to_numpy(), "group": cell})
    return path


def loaded(path):
    loading._load.cache_clear()
    return loading.load(loading.own_table(path, "group"))


@attack(
    "own tables with hostile labels", 350, 20,
    form=st.sampled_from(FORMS), some=st.lists(words, min_size=2, max_size=4, unique=True),
)  # fmt: skip
def test_labels_are_never_merged(tmp_path_factory, form, some):
    labels = [label for label in some for _ in range(20)]
    path = write(tmp_path_factory.mktemp("t"), form, labels)
    try:
        data = loaded(path)
    except UserError as error:
        assert str(error).strip()
        return
    written = dict.fromkeys(
        (label.strip(), code) for label, code in zip(labels, data.y.tolist(), strict=True)
    )
    spelled = {}
    for label, code in written:
        spelled.setdefault(code, set()).add(label)
    for together in spelled.values():
        # One number in a spreadsheet's two spellings is one class; anything else is two.
        assert len({label.removesuffix(".0") for label in together}) == 1, together
    assert len({label for label, _ in written}) == len(written), "one label has two codes"


@attack(
    "own tables with damaged bytes", 150, 10,
    form=st.sampled_from(FORMS), where=st.floats(0, 1, exclude_max=True),
    kind=st.sampled_from(["cut", "flip", "insert", "utf-16", "zeros", "gzip", "random"]),
    junk=st.binary(min_size=1, max_size=40),
)  # fmt: skip
def test_damaged_tables(tmp_path_factory, form, where, kind, junk):
    path = write(tmp_path_factory.mktemp("t"), form, ["x", "y", "z"] * 15)
    content = path.read_bytes()
    at = int(where * len(content))
    changed = {
        "cut": content[:at],
        "flip": content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :],
        "insert": content[:at] + junk + content[at:],
        "utf-16": content.decode("latin1").encode("utf-16"),
        "zeros": content[:at] + bytes(50) + content[at + 50 :],
        "gzip": gzip.compress(content),
        "random": junk,
    }[kind]
    path.write_bytes(changed)
    try:
        data = loaded(path)
        assert np.isfinite(data.X).all() and len(data.classes) >= 2
    except UserError as error:
        assert str(path) in str(error) or str(error).strip()


def odd_targets():
    lists = pd.DataFrame({"a": np.arange(30.0), "group": [[1], [2], [3]] * 10})
    dicts = pd.DataFrame({"a": np.arange(30.0), "group": [{"k": 1}, {"k": 2}] * 15})
    void = np.zeros(30, dtype=[("p", "i4"), ("q", "f8")])
    cells = np.empty((30, 1), dtype=object)
    for i in range(30):
        cells[i, 0] = np.arange(2) + i % 2
    X = np.arange(60.0).reshape(30, 2)
    return {
        "lists.parquet": lambda path: lists.to_parquet(path),
        "dicts.parquet": lambda path: dicts.to_parquet(path),
        "void.npz": lambda path: np.savez(path, X=X, group=void),
        "complex.npz": lambda path: np.savez(path, X=X, group=np.array([1j, 2j] * 15)),
        "bytes.npz": lambda path: np.savez(path, X=X, group=np.array([b"a", b"b"] * 15)),
        "cells.mat": lambda path: scipy.io.savemat(path, {"X": X, "group": cells}),
        "mixed.mat": lambda path: scipy.io.savemat(
            path, {"X": X, "group": np.array(["1", 1.0] * 15, dtype=object)[:, None]}
        ),
    }


@pytest.mark.parametrize("name", odd_targets())
def test_targets_that_are_no_labels(tmp_path, name):
    attempt("targets that are no labels")
    odd_targets()[name](tmp_path / name)
    with pytest.raises(UserError, match="a class is a text or a number|would become one class"):
        loaded(tmp_path / name)


def test_an_undeclared_class_is_refused(tmp_path):
    rows = "\n".join(f"{i},{'xyw'[i % 3]}" for i in range(30))
    path = tmp_path / "mine.arff"
    path.write_text(f"@relation r\n@attribute a real\n@attribute group {{x,y}}\n@data\n{rows}\n")
    with pytest.raises(UserError, match="'w', which its @attribute does not list"):
        loaded(path)


# Registries --------------------------------------------------------------------------------------

DEEP = "[" * 400 + "]" * 400
toml_values = st.sampled_from(
    ["0", "-1", "1", "2.5", "1e400", "nan", "inf", '""', '"x"', "true", "[]", "[1]", "{}", "{ x = 1 }",
     "[[]]", '["a", 1]', "1979-05-27", "{ low = 1, high = 0 }", "{ low = 0, high = 1, log = true }",
     '{ low = "a", high = 1 }', "{ low = 1 }", "{ low = 0, high = 1, more = 2 }", "{ C = [] }",
     "{ C = { low = 0, high = 1, log = true } }", "{ C = { low = 2, high = 1 } }", '{ C = "x" }',
     "{ C = [1, 2] }", "{ hdlss = [1] }", "{ colon = 3 }", "{ hdlss = { grid = { C = [] } } }",
     '{ hdlss = { params = "x" } }', "9" * 5000, DEEP, '"\\u001b[2J"']
)  # fmt: skip
fields = st.sampled_from(
    ["class", "label", "family", "selects", "revision", "reference", "params", "grid", "range",
     "trials", "recovered", "group", "dataset", "unknown"]
)  # fmt: skip
names = st.sampled_from(
    ["mine", "knn", "protogate", '".."', '"."', '"../x"', '"a/b"', '"a:b"', '""', '"-x"', "x" * 200,
     '"é"', '"..x"', '"a..b"', '".hidden"', '"my-model.2"']
)  # fmt: skip


@attack(
    "own registries", 150, 12,
    name=names, changes=st.dictionaries(fields, toml_values, max_size=2),
)  # fmt: skip
def test_registries(own_registry, name, changes):
    entry = {"class": '"own_models:Prior"', **changes}
    own_registry(f"[{name}]\n" + "\n".join(f"{key} = {value}" for key, value in entry.items()))
    shipped = name in ("knn", "protogate")
    try:
        models = registry.models()
    except UserError as error:
        message = str(error)
        assert "models.toml" in message
        bare = name.strip('"')
        assert bare[:50] in message or "TOML" in message or "nested" in message
        return
    assert not shipped, "an own model took a shipped name"
    [mine] = [m for m in models.values() if m.own]
    assert mine.name not in (".", "..") and "/" not in mine.name
    cell = plan.Cell(mine, registry.data_ref("colon"))
    assert cell.candidates() and cell.specs({}, plan.Protocol(1, 2))[0].key.count("/") == 3
    choices.search_digest(cell)


@attack(
    "names on the command line", 150, 10,
    model=st.sampled_from(["knn", "ridge", "svm", "nothing", "..", "", "knn:", "knn:x", "knn:=1"]),
    key=st.sampled_from(["n_neighbors", "hidden", "C", "kernel", "random_state", "../x"]),
    value=st.one_of(
        st.text(string.printable, min_size=1, max_size=10),
        st.sampled_from(["../../../x", "NaN", "9" * 5000, DEEP, "\x1b[2J", "a" * 500, "1e999"]),
    ),
)  # fmt: skip
def test_names(tmp_path_factory, model, key, value):
    root = tmp_path_factory.mktemp("n")
    try:
        cell = cell_of(f"{model}:{key}={value}", "colon")
        path = choices.choice_path(root, cell)
        specs = cell.specs({}, plan.Protocol(1, 2))
    except UserError as error:
        assert str(error).strip()
        return
    assert path.resolve().is_relative_to(root) and len(path.relative_to(root).parts) == 3
    assert ".." not in specs[0].key.split("/")
    assert choices.read_choice(root, cell) is None


@attack(
    "numbers on the command line", 60, 6,
    option=st.sampled_from(["--repeats", "--folds", "--jobs", "--timeout", "--memory"]),
    value=st.sampled_from(["100000000", "-1", "0", "x", "1e9", "9" * 5000, "nan", "inf", "", "1h1"]),
)  # fmt: skip
def test_numbers(capsys, tmp_path_factory, option, value):
    assume((option, value) not in [("--jobs", "0"), ("--timeout", "1e9"), ("--memory", "1e9"),
                                   ("--timeout", "100000000"), ("--memory", "100000000")])  # fmt: skip
    words = ["run", "--models", "knn", "--datasets", "syn1", "--results"]
    with pytest.raises(SystemExit) as end:
        raise SystemExit(
            command_line.main([*words, str(tmp_path_factory.mktemp("r")), option, value])
        )
    assert end.value.code == 2 and "Traceback" not in capsys.readouterr().err
