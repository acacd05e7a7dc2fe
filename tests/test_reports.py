"""reports/ is what the committed records give, byte for byte; and how the page's data are made."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from conftest import ROOT, part_of

from benchmark.report import page, steps, write_page, write_reports
from benchmark.report.archive import Index, read
from benchmark.report.tables import Gathered
from benchmark.runner.records import Store, encode
from benchmark.tables.build import build_recipe, build_table
from benchmark.tables.recipes import catalogue

REPORTS = ROOT / "reports"
REBUILD = "reports/ is not what the records give: `make reports`, and remove what it does not write"


def data_of(text):
    """The page's data, read as a browser would."""
    [found] = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL
    )
    return json.loads(found)


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory):
    """Everything but the drawings, which a test of its own draws again."""
    to = tmp_path_factory.mktemp("reports")
    if (REPORTS / "figures").is_dir():
        shutil.copytree(REPORTS / "figures", to / "figures")
    told = []
    write_reports(ROOT / "results", to, told.append, figures=False)
    return to, told


@pytest.fixture(scope="module")
def data(rebuilt):
    return data_of((rebuilt[0] / "index.html").read_text("utf-8"))


def files(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_reports_are_up_to_date(rebuilt):
    ours, committed = files(rebuilt[0]), files(REPORTS)
    assert set(ours) == set(committed), REBUILD
    assert [str(p) for p, content in ours.items() if committed[p] != content] == [], REBUILD


@pytest.mark.slow
def test_figures_are_up_to_date(tmp_path):
    write_reports(ROOT / "results", tmp_path)
    assert files(tmp_path) == files(REPORTS), REBUILD


def test_the_page_is_the_same_when_built_again(rebuilt, tmp_path, monkeypatch):
    # Neither the folder, nor the place of the records, nor the clock are part of it.
    (tmp_path / "elsewhere").symlink_to(ROOT / "results")
    if (rebuilt[0] / "figures").is_dir():
        shutil.copytree(rebuilt[0] / "figures", tmp_path / "to" / "figures")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("platform.node", lambda: "another-machine")
    [path] = write_page(Path("elsewhere"), Path("to"))
    assert path.read_bytes() == (rebuilt[0] / "index.html").read_bytes()


def test_steps_are_counted(rebuilt):
    from benchmark.figures import FIGURES

    assert len(rebuilt[1]) == steps(everything=False)
    assert len(rebuilt[1]) == steps(everything=True) - len(FIGURES)


def test_the_page_needs_no_other_file(rebuilt):
    text = (rebuilt[0] / "index.html").read_text("utf-8")
    outside_data = re.sub(r'(?s)<script type="application/json".*?</script>', "", text)
    for pattern in (
        r"<script[^>]+src",
        r"<link[^>]+href=.(?!data:)",
        r"@import",
        r"url\(",
        "fetch",
    ):
        assert not re.search(pattern, outside_data), pattern
    assert "{{" not in outside_data
    assert str(ROOT) not in text


def test_every_recipe_and_every_printed_cell_is_on_the_page(data):
    assert [table["name"] for table in data["tables"]] == list(catalogue())
    assert len(data["lines"]) == 648
    assert {line["word"] for line in data["lines"]} <= {word["word"] for word in data["words"]}
    assert all(word["symbol"] for word in data["words"])
    assert len({word["symbol"] for word in data["words"]}) == len(data["words"])


def test_numbers_are_those_of_the_table(data):
    built = build_table("table2", ROOT / "results")
    [shown] = [table for table in data["tables"] if table["name"] == "table2"]
    knn = [row["method"] for row in shown["rows"]].index("knn")
    colon = [column["dataset"] for column in shown["columns"]].index("colon")
    [cell] = [
        cell
        for cell in shown["cells"]
        if (cell["row"], cell["column"], cell["edition"]) == (knn, colon, "rule")
    ]
    result = built.results["knn", "colon", "balanced_accuracy", "rule"]
    assert cell["value"] == ["71.65", "12.03"] == shown["rows"][knn]["printed"][colon]["value"]
    assert (cell["n"], cell["planned"], cell["word"]) == (25, 25, "equal")
    assert data["runs"][cell["runs"]] == pytest.approx(list(result.values), rel=1e-4)
    # Student's t with 24 degrees of freedom: 2.0639 (any table of quantiles).
    half = 2.0639 * result.std / 5
    assert [float(x) for x in cell["interval"][:2]] == pytest.approx(
        [result.mean - half, result.mean + half], abs=0.006
    )
    setting = data["settings"][cell["setting"]]
    assert setting["params"] == result.params
    assert setting["key"] == f"knn/colon/{result.setting}"
    assert setting["runs"] == 25 and len(setting["data"]) == 1
    assert all(data["environment"]["commits"][i]["commit"] for i in setting["commits"])


def test_every_command_on_the_page_is_one_that_the_command_line_takes(data):
    from benchmark.cli.main import parser

    commands = {cell["command"] for t in data["tables"] for cell in t["cells"] if "command" in cell}
    assert any(" verify " in command for command in commands)
    for command in commands:
        python, flag, package, *words = shlex.split(command)
        assert (python, flag, package) == ("python", "-m", "benchmark")
        parser().parse_args(words)  # exits on a word that it does not know


def test_a_verified_key_names_the_recorded_runs(data):
    keys = [
        cell["command"].split()[-1]
        for table in data["tables"]
        for cell in table["cells"]
        if " verify " in cell.get("command", "")
    ]
    store = Store(ROOT / "results")
    assert keys and all(len(store.resolve(key)) == 25 for key in keys)


def test_places_point_to_something(data):
    for table in data["tables"]:
        for cell in table["cells"]:
            for name in ("runs", "settings", "choices"):
                place = cell.get(name.removesuffix("s") if name != "runs" else name)
                assert place is None or place < len(data[name])
            if "runs" in cell:
                values = [v for v in data["runs"][cell["runs"]] if v is not None]
                assert len(values) == cell["n"]


def test_a_failed_run_keeps_its_place_among_the_splits(tmp_path):
    source = next((ROOT / "results" / "runs" / "xgboost" / "colon").iterdir())
    folder = tmp_path / "runs" / "xgboost" / "colon" / source.name
    shutil.copytree(source, folder)
    path = folder / "r1f2.json"
    record = json.loads(path.read_text())
    failed = {k: record[k] for k in ("schema", "key", "spec", "meta")}
    path.write_bytes(encode({**failed, "status": "timeout", "error": {"message": "too slow"}}))
    (folder / "r4f4.json").unlink()
    archive = read(Store(tmp_path))
    gathered = Gathered(archive, {})
    table = gathered.table(build_recipe(part_of("table2", ["xgboost"], ["colon"]), tmp_path))
    [cell] = table["cells"]
    runs = gathered.runs.values[cell["runs"]]
    assert [i for i, value in enumerate(runs) if value is None] == [7, 24]
    assert gathered.settings.values[cell["setting"]]["failed"] == {"r1f2": "timeout"}
    assert (cell["n"], cell["word"], cell["failures"]) == (23, "incomplete", {"timeout": 1})
    assert cell["command"].startswith("python -m benchmark reproduce table2 --models xgboost")


def test_files_that_are_no_records_are_named_without_their_folder(tmp_path):
    (tmp_path / "runs" / "knn").mkdir(parents=True)
    (tmp_path / "runs" / "knn" / "notes.txt").write_text("?")
    [problem] = read(Store(tmp_path)).problems
    assert problem == "runs/knn/notes.txt: is not where or what a record is"


def test_an_index_holds_equal_values_once():
    index = Index()
    assert [index.place({"a": 1}), index.place({"b": 2}), index.place({"a": 1})] == [0, 1, 0]
    assert index.values == [{"a": 1}, {"b": 2}]


def test_data_cannot_end_their_script_element():
    nasty = {"x": "</script><script>alert(1)</script><!-- {{style}}"}
    text = page.as_script(nasty)
    assert "</" not in text and "<!--" not in text and "<script" not in text
    assert json.loads(text) == nasty
    assert page.assemble({**nasty}).count("{{style}}") == 1  # the data's own, not filled in


def test_the_verb_says_where_the_page_is(cli, tmp_path):
    source = ROOT / "results" / "runs" / "knn" / "colon"
    shutil.copytree(source, tmp_path / "results" / "runs" / "knn" / "colon")
    done = cli("report", "--results", tmp_path / "results", "--to", tmp_path / "out", check=0)
    assert done.stdout.strip() == str(tmp_path / "out" / "index.html")
    assert (tmp_path / "out" / "index.html").stat().st_size > 100_000
    assert list((tmp_path / "out").iterdir()) == [tmp_path / "out" / "index.html"]
    done = cli("report", "--results", tmp_path / "nothing", check=2)
    assert "There is no results folder" in done.stderr


def test_doubted_cells_carry_their_finding(data):
    [shown] = [table for table in data["tables"] if table["name"] == "table2"]
    protogate = [row["method"] for row in shown["rows"]].index("protogate")
    lung = [column["dataset"] for column in shown["columns"]].index("lung")
    assert shown["rows"][protogate]["printed"][lung]["doubt"] == "protogate-lung-repeated"
