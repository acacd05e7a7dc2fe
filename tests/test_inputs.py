"""Figures are drawn again when, and only when, something that they are drawn from has changed."""

import json
import shutil
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from conftest import ROOT, add_runs

from benchmark import figures
from benchmark.figures import inputs, style
from benchmark.report import files as report_files
from benchmark.runner.records import Store


@dataclass(frozen=True)
class Some:
    values: object


def test_different_data_have_different_checksums():
    many = [
        1, 1.0, True, "1", None, float("nan"), -0.0, 0.0, [1], [[1]], {1: 2}, {"1": 2}, {(1, 2): 2},
        {1: 2, 3: 4}, {3: 4, 1: 2}, Some(1), Some((1,)), np.arange(3), np.arange(3.0),
        np.arange(4000), np.where(np.arange(4000) == 2000, 0, np.arange(4000)), 0.1 + 0.2, 0.3,
    ]  # fmt: skip
    sums = [inputs.checksum(one) for one in many]
    assert len(set(sums)) == len(many)
    assert sums == [inputs.checksum(one) for one in many]
    with pytest.raises(TypeError, match="has no checksum"):
        inputs.checksum({1, 2})  # a set has no order that is the same every time


def test_a_checksum_is_the_same_in_every_process(tmp_path):
    import subprocess

    code = (
        "from benchmark.figures import inputs, read\nfrom benchmark.runner.records import Store\n"
        "from pathlib import Path\n"
        f"print(inputs.checksum(read('figure8', Store(Path({str(ROOT / 'results')!r})))))"
    )
    made = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert made == {inputs.checksum(figures.read("figure8", Store(ROOT / "results"))) + "\n"}


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """Draws two figures of a results folder in this process; returns the names that were drawn."""
    monkeypatch.setattr(figures, "FIGURES", {n: figures.FIGURES[n] for n in ("figure8", "curves")})
    monkeypatch.setitem(style.RC, "savefig.dpi", 40)  # drawn many times, looked at by nobody
    results, to = tmp_path / "results", tmp_path / "figures"

    class Here:
        def submit(self, save, name, data, to):
            names.append(name)
            save(name, data, to)

    names = []

    def draw():
        names.clear()
        store = Store(results, remember=True)
        going = report_files._start_drawing(Here(), store, to)
        report_files._finish_drawing(going, store, to, lambda _: None)
        return list(names)

    return draw, results, to


def test_a_figure_is_drawn_when_its_records_its_files_or_its_code_change(drawn, monkeypatch):
    draw, results, to = drawn
    selection = {"mean": 5.0, "std": 0.0, "f1": None, "local_sparsity": 0.0}
    add_runs(results, "catboost", "colon", [0.5] * 25, None, selection=selection, model={})
    assert draw() == ["figure8"]
    assert (to / "curves.md").is_file() and set(json.loads((to / "inputs.json").read_text())) == {
        "figure8"
    }
    before = {path.name: path.read_bytes() for path in to.iterdir()}
    assert draw() == []

    # A fresh clone: other times of files.
    shutil.copytree(results, results.with_name("copy"), copy_function=shutil.copyfile)
    shutil.rmtree(results)
    results.with_name("copy").rename(results)
    assert draw() == []
    assert {path.name: path.read_bytes() for path in to.iterdir()} == before

    # A record that the figure does not show.
    add_runs(results, "knn", "colon", [0.5] * 25, None, selection=None, model={})
    assert draw() == []

    # Damage to a file.
    (to / "figure8.svg").write_bytes(before["figure8.svg"] + b" ")
    assert draw() == ["figure8"]
    (to / "figure8.png").unlink()
    assert draw() == ["figure8"]
    (to / "inputs.json").write_text("{")
    assert draw() == ["figure8"]
    assert {path.name: path.read_bytes() for path in to.iterdir()} == before

    add_runs(
        results,
        "catboost",
        "colon",
        [0.5] * 25,
        None,
        selection={**selection, "mean": 6.0},
        model={},
    )
    assert draw() == ["figure8"]
    assert (to / "figure8.svg").read_bytes() != before["figure8.svg"]
    assert draw() == []

    inputs._tools.cache_clear()
    monkeypatch.setattr(inputs, "version", lambda name: "other")
    assert draw() == ["figure8"]
    inputs._tools.cache_clear()


def test_the_shipped_figures_know_their_inputs():
    known = inputs.read(ROOT / "reports" / "figures")
    drawn = {path.stem for path in (ROOT / "reports" / "figures").glob("*.svg")}
    assert set(known) == drawn
