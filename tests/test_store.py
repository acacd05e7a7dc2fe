"""Records on disk: whole or absent, and never silently wrong."""

import hashlib
import json
import types
from pathlib import Path

import pytest
from conftest import made_up

from benchmark.protocol.registry import data_ref, make_spec, models
from benchmark.protocol.spec import Outcome, RunSpec, UserError, failed
from benchmark.runner.records import (
    NotARecord,
    Problem,
    Store,
    decode,
    encode,
    write_atomic,
)


def spec(fold=0, **params):
    return make_spec(models()["knn"], data_ref("colon"), params, 0, fold)


def outcome(fold=0, **params):
    return Outcome(made_up(spec(fold, **params), 50.0))


def test_a_record_comes_back_as_it_was(tmp_path):
    store = Store(tmp_path)
    path = store.write(outcome())
    assert path == tmp_path / "runs" / f"{spec().key}.json"
    assert store.load(path) == outcome().record
    found, problems = store.find([spec(0).key, spec(1).key])
    assert list(found) == [spec(0).key] and problems == []


def test_the_key_names_the_setting_but_not_the_place_of_a_users_table():
    assert spec(n_neighbors=1).key != spec(n_neighbors=3).key
    assert spec(0).setting == spec(1).setting
    here, there = (
        RunSpec.from_dict(
            {**spec().to_dict(), "data": {"name": "p", "options": {"sha256": "a"}, "path": p}}
        )
        for p in ("/home/a/p.csv", "/home/b/p.csv")
    )
    assert here.key == there.key


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text[: len(text) // 2], "not JSON"),
        (lambda text: b"", "not JSON"),
        (lambda text: b"\x00\xff" * 20, "not JSON"),
        (lambda text: b"[1, 2]", "not a record"),
        (lambda text: text.replace(b'"schema": 1', b'"schema": 99'), "update this project"),
        (lambda text: text.replace(b'"ok"', b'"error"'), "checksum"),
        (lambda text: text.replace(b"colon", b"lungs"), "checksum"),
    ],
)
def test_damage_is_named(damage, reason):
    text = encode(outcome().record)
    assert damage(text) != text
    with pytest.raises(NotARecord, match=reason):
        decode(damage(text))


def test_a_line_that_is_no_field_is_damage_in_whatever_way_it_is_read():
    """A checksum that fits protects from accidents, not from a crafted file."""
    lines = encode(outcome().record)[2:-3].split(b",\n")[:-1]
    lines.insert(1, b"17")
    parts = sorted(line.replace(b": ", b":", 1) for line in lines)
    seal = hashlib.sha256(b"{" + b",".join(parts) + b"}").hexdigest()[:16]
    crafted = b"{\n" + b",\n".join([*lines, f'"checksum": "{seal}"'.encode()]) + b"\n}\n"
    with pytest.raises(NotARecord):
        decode(crafted)
    assert "17" not in decode(crafted, only=["scores"])


def test_records_come_in_the_order_of_their_keys(tmp_path):
    """Whoever pairs the runs of two settings, of which some are one's own and others ship, counts on it."""
    beneath, store = Store(tmp_path / "ships"), Store(tmp_path / "own")
    for fold in (0, 1, 3):
        beneath.write(outcome(fold))
    store.write(outcome(2))
    store.below = types.SimpleNamespace(record=lambda key: beneath.find([key])[0].get(key))
    keys = [spec(fold).key for fold in (3, 2, 1, 0)]
    assert list(store.find(keys)[0]) == keys


def test_a_record_is_read_from_inside_its_own_folder(tmp_path, monkeypatch):
    store = Store(tmp_path)
    path = store.write(outcome())
    monkeypatch.chdir(path.parent)
    assert store.load(Path(path.name)) == outcome().record


def test_a_record_in_another_layout_is_the_same_record():
    text = encode(outcome().record)
    lines = text.decode().splitlines()
    pretty = json.dumps(json.loads(text), indent=2, sort_keys=True).encode()
    windows = "\r\n".join(lines).encode()
    for other in (pretty, windows):
        assert decode(other) == outcome().record
    with pytest.raises(NotARecord, match="checksum"):
        decode(pretty.replace(b'"ok"', b'"error"'))


def test_some_fields_are_read_without_the_others_and_damage_is_seen_anywhere():
    whole = {**outcome().record, "scores": {"test": 0.5}, "data": {"classes": 2}}
    text = encode(whole)
    some = decode(text, only=["scores", "nothing"])
    assert some == {k: whole[k] for k in ("schema", "key", "spec", "status", "scores")}
    # A text in another layout is read as a whole.
    assert decode(json.dumps(json.loads(text)).encode(), only=["scores"]) == whole
    for line in text.splitlines()[1:-1]:
        damaged = text.replace(line, line[:-3] + bytes([line[-3] ^ 1]) + line[-2:])
        with pytest.raises(NotARecord):
            decode(damaged, only=["scores"])
    for cut in (2, 3, len(text) // 2):
        with pytest.raises(NotARecord):
            decode(text[:-cut], only=["scores"])


def test_a_store_that_remembers_makes_a_thing_once(tmp_path):
    made = []
    for store, times in ((Store(tmp_path), 2), (Store(tmp_path, remember=True), 1)):
        for _ in range(2):
            assert store.once("thing", lambda: made.append(1)) is None
        assert len(made) == times
        made.clear()


def test_a_scan_is_in_the_order_of_names(tmp_path):
    for name in ("b/y.txt", "a.txt", "a/z.txt", "c", "B/x.txt"):
        (tmp_path / "runs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "runs" / name).touch()
    found = [item.path for item in Store(tmp_path).scan()]
    assert found == sorted(found) and len(found) == 5


def test_records_are_remembered_only_where_asked_for(tmp_path):
    store, memory = Store(tmp_path), Store(tmp_path, remember=True)
    path, key = store.write(outcome()), spec().key
    assert memory.find([key])[0] == store.find([key])[0]
    path.unlink()
    assert list(memory.find([key])[0]) == [key]
    assert store.find([key]) == ({}, [])


def test_a_record_in_the_wrong_place_is_named(tmp_path):
    store = Store(tmp_path)
    path = store.write(outcome(0))
    other = store.path(spec(1).key)
    other.write_bytes(path.read_bytes())
    _, problems = store.find([spec(1).key])
    assert "belongs at" in problems[0].reason


def test_scan_names_foreign_files_and_set_aside_keeps_them(tmp_path):
    store = Store(tmp_path)
    store.write(outcome())
    foreign = tmp_path / "runs" / "knn" / "notes.txt"
    foreign.write_text("mine")
    problems = [item for item in store.scan() if isinstance(item, Problem)]
    assert [p.path for p in problems] == [foreign]
    moved = store.set_aside(problems[0])
    assert moved.read_text() == "mine" and not foreign.exists()
    foreign.write_text("mine again")
    again = store.set_aside(Problem(foreign, ""))
    assert again != moved and moved.read_text() == "mine"


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "record.json"
    write_atomic(path, b"old")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_failures_have_a_known_kind():
    record = failed(spec(), "timeout", "too slow").record
    assert record["status"] == "timeout" and json.dumps(record)
    with pytest.raises(ValueError, match="kind of failure"):
        failed(spec(), "tired", "")


def test_an_unknown_record_is_explained(tmp_path):
    with pytest.raises(UserError, match="Keys look like"):
        Store(tmp_path).resolve("nothing")
