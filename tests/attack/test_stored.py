"""Everything that is read back from a results folder, mutated: it is refused with a reason, or it can
be used by whoever reads it. Never a traceback, never a hang."""

import json
import math
import os
import shutil
import socket
import zipfile
from pathlib import Path

import numpy as np
import pytest
from attack.scale import FULL, attack, attempt
from conftest import add_runs, cell_of, part_of
from hypothesis import strategies as st

from benchmark.experiments import fidelity, timing
from benchmark.protocol import choices, stored
from benchmark.protocol.plan import Protocol
from benchmark.protocol.spec import UserError
from benchmark.runner import arrays
from benchmark.runner.campaign import Means, _Campaign, run_missing
from benchmark.runner.records import Problem, Store, digest, encode
from benchmark.runner.verify import differences
from benchmark.tables import status
from benchmark.tables.build import build_table
from benchmark.tables.measured import measure
from benchmark.tables.needs import needs, specs_by_edition

NESTED = "[" * 3000 + "]" * 3000
WORDS = ["NaN", "Infinity", "-Infinity", "1e999", "9" * 400 + ".0", "9" * 5000, "1e-999", NESTED]
"""Spellings that JSON readers take and that are no results."""

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["", "ok", "..", "../../x", "\x1b[2J", "\ud800"]),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


@st.composite
def mutants(draw):
    """A change of a JSON document: what to do, where (a share of all places), and with what."""
    kind = draw(st.sampled_from(["set", "set", "set", "drop", "rename", "add", "word"]))
    value = draw(st.sampled_from(WORDS)) if kind == "word" else draw(values)
    return kind, draw(st.floats(0, 1, exclude_max=True)), value


@st.composite
def bytes_of_damage(draw):
    return draw(
        st.sampled_from(["cut", "flip", "insert", "zeros", "utf-16", "empty", "append"])
    ), draw(st.floats(0, 1, exclude_max=True))


FILES = ["pipe", "folder", "loop", "endless", "socket", "unreadable", "nowhere", "huge"]
REASONS = {
    "pipe": "is not a regular file",
    "folder": "is not a regular file",
    "endless": "is not a regular file",
    "huge": "has more than 64 MB",
}


def places(value, path=()):
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value[:3]):
            yield from places(inner, (*path, i))


def mutated(document, mutant):
    """The document's text with one change."""
    kind, where, value = mutant
    document = json.loads(json.dumps(document))
    every = list(places(document))[1:]
    *inside, last = every[int(where * len(every))]
    holder = document
    for step in inside:
        holder = holder[step]
    mark = "@@word@@"
    if kind in ("set", "word"):
        holder[last] = mark if kind == "word" else value
    elif kind == "drop":
        del holder[last]
    elif kind == "rename" and isinstance(holder, dict):
        holder[f"{last}x"] = holder.pop(last)
    elif isinstance(holder, dict):
        holder["another"] = value
    text = json.dumps(document)
    return text.replace(json.dumps(mark), str(value)) if kind == "word" else text


def sealed(text):
    """With the right checksum, as whoever edits a record on purpose can give it."""
    document = json.loads(text)
    if not isinstance(document, dict):
        return text
    document.pop("checksum", None)
    try:
        return json.dumps({**document, "checksum": digest(document, 16)})
    except ValueError:
        return text


def damaged(content, damage):
    kind, where = damage
    at = int(where * len(content))
    return {
        "cut": content[:at],
        "flip": content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :],
        "insert": content[:at] + b"\0\xff," + content[at:],
        "zeros": bytes(len(content)),
        "utf-16": content.decode("latin1").encode("utf-16"),
        "empty": b"",
        "append": content + content[:at],
    }[kind]


def put(path, kind):
    """Something else in a file's place."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "nowhere":
        path.symlink_to("/nowhere/at/all")
    elif kind == "socket":
        here = Path.cwd()
        os.chdir(path.parent)  # the names of sockets have to be short
        try:
            with socket.socket(socket.AF_UNIX) as opened:
                opened.bind(path.name)
        finally:
            os.chdir(here)
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(200 << 20)
    else:
        path.write_bytes(b"\xff\xfe{}")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Records of KNN on colon with its choice, times of ProtoGate, a finding: a shipped sample."""
    from conftest import ROOT

    root = tmp_path_factory.mktemp("attack")
    for kind, name in (
        ("choices", "knn/colon.json"),
        ("timings", "protogate/colon.json"),
        ("fidelity", "l2x-xor.json"),
    ):
        (root / kind / name).parent.mkdir(parents=True)
        shutil.copyfile(ROOT / "results" / kind / name, root / kind / name)
    setting = Store(root).setting(cell_of("knn", "colon"), "own")
    folder = cell_of("knn", "colon").specs(setting.params, Protocol())[0].key.rpartition("/")[0]
    shutil.copytree(ROOT / "results" / "runs" / folder, root / "runs" / folder)
    add_runs(root, "ridge", "colon", ["error"], {"C": 1.0})
    return root


def record_paths(results):
    return sorted((results / "runs").rglob("*.json"))


class Restored:
    """Puts a file back, whatever stands in its place afterwards."""

    def __init__(self, root, path):
        self.root, self.path, self.content = root, path, path.read_bytes()

    def __enter__(self):
        return self.content

    def __exit__(self, *_):
        if self.path.is_dir() and not self.path.is_symlink():
            self.path.rmdir()
        else:
            self.path.unlink(missing_ok=True)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(self.content)
        shutil.rmtree(self.root / "set-aside", ignore_errors=True)


def measured(table, results, method):
    """The part of a table that the sample has something for; whole tables would take hours."""
    return measure(part_of(table, [method], ["colon"]), Store(results))


def read_all(results, path, capsys):
    """What every reader of records does; returns the problem that is told of this file, if any."""
    store = Store(results)
    [found] = [
        item
        for item in store.scan()
        if (item.path if isinstance(item, Problem) else store.path(item["key"])) == path
    ]
    key = str(path.relative_to(store.runs)).removesuffix(".json")
    records, problems = store.find([key])
    assert bool(records) != bool(problems)
    assert isinstance(found, Problem) == bool(problems), "two readers disagree"
    assert isinstance(store.read(path), Problem) == bool(problems)
    status.to_text(status.counts(results)[0])
    try:
        table = measured("table2", results, "knn")
        if problems and key.startswith("knn"):
            assert any(str(path) in problem for problem in table.problems)
    except UserError as error:
        # With a right checksum it may say that it saw other data: that is told, not mixed.
        assert not problems and "were made with different" in str(error)
    capsys.readouterr()
    return found if isinstance(found, Problem) else None


def assert_set_aside(results, path, capsys):
    """A campaign moves what is damaged out of the way before it does the run again."""
    key = str(path.relative_to(results / "runs")).removesuffix(".json")
    state = _Campaign([], Means(Store(results)))
    assert key not in state._known({key: None})
    assert not os.path.lexists(path)
    assert os.path.lexists(results / "set-aside" / path.relative_to(results))
    assert "set aside" in capsys.readouterr().err


@attack(
    "mutated records", 400, 12,
    which=st.integers(0, 25), mutant=mutants(), seal=st.booleans(),
)  # fmt: skip
def test_mutated_records(results, capsys, which, mutant, seal):
    path = record_paths(results)[which]
    with Restored(results, path) as content:
        before = json.loads(content)
        text = mutated(before, mutant)
        try:
            text = sealed(text) if seal else text
        except (ValueError, RecursionError):
            pass  # what Python itself cannot read gets no checksum
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        problem = read_all(results, path, capsys)
        if problem is None and not seal:
            assert differences(before, json.loads(text)) == []  # a change of nothing
        if problem is not None:
            assert_set_aside(results, path, capsys)


@attack("damaged bytes of records", 150, 6, which=st.integers(0, 25), damage=bytes_of_damage())
def test_damaged_bytes(results, capsys, which, damage):
    path = record_paths(results)[which]
    with Restored(results, path) as content:
        changed = damaged(content, damage)
        path.write_bytes(changed)
        problem = read_all(results, path, capsys)
        # Without its last line break it is the same record in another layout.
        assert problem is not None or json.loads(changed) == json.loads(content)
        if problem is not None:
            assert_set_aside(results, path, capsys)


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("what", ["runs", "choices", "timings", "fidelity"])
def test_no_regular_file(results, capsys, impatient, what, kind):
    attempt("something else in a file's place")
    path = record_paths(results)[0] if what == "runs" else next((results / what).rglob("*.json"))
    with Restored(results, path):
        put(path, kind)
        if what != "runs":
            beside(results, capsys)
            if not FULL and kind != "pipe":
                return  # whole tables take their time
            status.needed("table2", results)
            status.needed("table12", results)
            build_table("table2", results)
            build_table("table12", results)
        elif kind != "nowhere":
            problem = read_all(results, path, capsys)
            assert REASONS.get(kind, "") in problem.reason
            assert_set_aside(results, path, capsys)


def beside(results, capsys):
    """Every reader of choices, times and findings names what is damaged, and goes on."""
    capsys.readouterr()
    for table, method in (("table2", "knn"), ("table12", "protogate")):
        measured(table, results, method)
        for need in needs(table, [method], ["colon"]):
            specs_by_edition(need, Store(results), Protocol())
    xor = fidelity.experiments()["l2x-xor"]
    knn, protogate = cell_of("knn", "colon"), cell_of("protogate", "colon")
    readers = [
        lambda: choices.read_choice(results, knn),
        lambda: timing.read(results, protogate),
        lambda: fidelity.read(results, xor),
    ]
    refused = 0
    for read in readers:
        try:
            found = read()
            if isinstance(found, timing.Timing):
                assert found.hardware and all(map(math.isfinite, found.train_seconds_per_epoch))
            if isinstance(found, fidelity.Finding):
                assert found.accepted in (True, False, None)
            if isinstance(found, choices.Choice):
                assert found.search_text and found.strength
        except stored.Damaged as damage:
            refused += 1
            assert str(damage.path) in str(damage) and "`python -m benchmark" in str(damage)
            assert stored.or_told(read) is None
            assert stored.or_set_aside(results, read) is None
            assert not os.path.lexists(damage.path) and read() is None
    assert refused <= 1
    return refused


@attack(
    "mutated choices, times and findings", 150, 6,
    kind=st.sampled_from(["choices", "timings", "fidelity"]), mutant=mutants(),
)  # fmt: skip
def test_mutated_files_beside_the_records(results, capsys, kind, mutant):
    path = next((results / kind).rglob("*.json"))
    with Restored(results, path) as content:
        path.write_text(mutated(json.loads(content), mutant), "utf-8", "surrogatepass")
        beside(results, capsys)


def test_a_choice_that_is_damaged_does_not_stop_a_search(results, tmp_path, capsys, impatient):
    from benchmark.runner.tune import tune

    cell = cell_of("knn", "syn1")
    path = choices.choice_path(tmp_path, cell)
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    [choice], _ = tune([cell], Protocol(1, 5), Means(Store(tmp_path), jobs=0))
    assert choice == choices.read_choice(tmp_path, cell)
    assert "set aside" in capsys.readouterr().err


def test_force_keeps_the_good_record_until_the_new_one_is_good(tmp_path, monkeypatch, misbehaving):
    """Class 4: the new run fails, and record and arrays stay as they were."""
    from benchmark.runner.worker import Limits

    specs = cell_of("prior", "syn1").specs({}, Protocol(1, 2))
    means = Means(Store(tmp_path), jobs=0, keep=("proba",))
    run_missing(specs, means)
    before = {p: p.read_bytes() for p in (tmp_path / "runs").rglob("r*")}
    assert len(before) == 4
    forced = Means(Store(tmp_path), jobs=1, force=True, limits=Limits(seconds=1e-4))
    report = run_missing(specs, forced)
    assert [r["status"] for r in report.failures] == ["timeout", "timeout"]
    assert {p: p.read_bytes() for p in (tmp_path / "runs").rglob("r*")} == before


ARRAYS = {
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "flip": lambda path: path.write_bytes(damaged(path.read_bytes(), ("flip", 0.3))),
    "no archive": lambda path: path.write_bytes(b"no archive"),
    "something else": lambda path: _packed(path, "rows.txt", b"text"),
    "a bomb": lambda path: _packed(path, "rows.npy", bytes(3 << 20)),
    "others": lambda path: np.savez(path, rows=np.arange(3), proba=np.ones((2, 9))),
    "beyond": lambda path: np.savez(path, rows=np.array([10**6])),
    "old": lambda path: np.savez(path, rows=np.arange(3), proba=np.ones((3, 2))),
}
"""What may stand beside a record besides what its run left there, or no file at all."""


def _packed(path, name, content):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)


@pytest.mark.parametrize("kind", [*FILES, *ARRAYS])
def test_arrays_that_are_none(tmp_path, capsys, impatient, monkeypatch, kind):
    """Class 13: named by who reads, made again by who was asked to keep them, left alone by others."""
    attempt("arrays beside the records")
    monkeypatch.setattr(arrays, "LARGEST", 2 << 20)
    store, [spec, _] = Store(tmp_path), cell_of("knn", "syn1").specs({}, Protocol(1, 2))
    keeping = Means(store, jobs=0, keep=("proba",))
    run_missing([spec], keeping)
    before, path = store.kept(spec.key), store.arrays_path(spec.key)
    assert {"rows", "proba", "predicted"} == before.keys()
    ARRAYS[kind](path) if kind in ARRAYS else put(path, kind)
    assert run_missing([spec], Means(store, jobs=0)).done == 0
    capsys.readouterr()
    assert store.kept(spec.key) == {}
    assert (f"not used: {path} " in capsys.readouterr().err) == (kind != "nowhere")
    assert run_missing([spec], keeping).done == 1
    assert all((array == before[name]).all() for name, array in store.kept(spec.key).items())
    assert store.kept(spec.key).keys() == before.keys()
    moved = tmp_path / "set-aside" / path.relative_to(tmp_path)
    assert os.path.lexists(moved) == (kind != "nowhere")


def test_a_folder_in_the_place_of_arrays_stops_no_run_that_is_forced(tmp_path):
    specs = cell_of("knn", "syn1").specs({}, Protocol(1, 2))[:1]
    run_missing(specs, Means(Store(tmp_path), jobs=0))
    Store(tmp_path).arrays_path(specs[0].key).mkdir()
    assert run_missing(specs, Means(Store(tmp_path), jobs=0, force=True)).done == 1


def test_names_and_places(tmp_path):
    """Class 14 and 20: no name leads out of the folder, and no unfinished write stays."""
    from benchmark.files import WRITER

    for name in ("knn:metric=../../../x", "knn:metric=/etc/x", "knn:metric=" + "y" * 300):
        cell = cell_of("knn", "colon")
        cell = type(cell)(cell.entry, cell.data, {"metric": name.partition("=")[2]})
        for path in (choices.choice_path(tmp_path, cell), timing.path_of(tmp_path, cell)):
            assert path.resolve().is_relative_to(tmp_path) and len(path.parent.name) <= 100
            assert len(path.relative_to(tmp_path).parts) == 3
    orphan = tmp_path / "choices" / f".x.json.{WRITER.rpartition('.')[0]}.999999999.a.tmp"
    orphan.parent.mkdir()
    orphan.touch()
    Store(tmp_path).tidy()
    assert not orphan.exists()


def test_encode_and_decode_are_inverse_for_the_shipped_sample(results):
    for path in record_paths(results):
        assert encode(Store(results).load(path)) == path.read_bytes()
