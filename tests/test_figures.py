"""Figures: right points at the right places, legible, and the same bytes every time."""

import itertools
import struct
import sys
from collections import Counter
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, add_runs, cell_of
from matplotlib.colors import to_rgb
from matplotlib.text import Text

import benchmark
from benchmark import figures, paper
from benchmark.experiments.timing import Timing
from benchmark.experiments.timing import write as write_timing
from benchmark.figures import (
    critical_difference,
    curves,
    figure3,
    figure4,
    figure10,
    inputs,
    labels,
    scatter,
    style,
)
from benchmark.judge.cells import counts, ledger
from benchmark.protocol.spec import UserError
from benchmark.runner.records import Store
from benchmark.tables.statistics import RUNS

approx = pytest.approx
SELECTS = {"baseline": "none", "global": "global", "local": "local"}
# The paper's methods with settings that never change and that nothing is searched for.
MODELS = "\n".join(
    f'[{m}]\nclass = "knn:KNN"\nlabel = "{label}"\nfamily = "{family}"\n'
    f'selects = "{SELECTS[family]}"\nparams = {{ lam_global = 0.0, lam_local = 1e-3 }}\n'
    for family, block in paper.FAMILIES.items()
    for m, label in block.items()
    if m not in ("knn", "svm")  # transferability needs their real grids
)
FROM_RECORDS_ALONE = {"lead", "figure11", "figure6", "figure7", "figure9", "figure10", "curves"}
"""Without records of ours these have nothing to show, and say so."""


@pytest.fixture(autouse=True)
def records_are_read_once(monkeypatch):
    """Every figure reads them; a test need not wait for that each time."""
    monkeypatch.setattr(Store, "load", lambda self, path: load(path, path.stat().st_mtime_ns))


original = Store.load


@cache
def load(path, _changed):
    return original(Store(path.parents[3]), path)


@pytest.fixture
def results(tmp_path, register):
    """An empty folder of records, and models of the paper's names without a search."""
    register(MODELS)
    return tmp_path / "results"


def add(results, method, dataset, accuracy, params=None, runs=RUNS, selection=None, model=None):
    """Write runs that all have this accuracy."""
    fields = {"selection": selection, "model": model or {}}
    add_runs(results, method, dataset, [accuracy] * runs, params, **fields)


def selected(features, spread=0.0, **more):
    return {"mean": features, "std": spread, "f1": None, "local_sparsity": 0.0, **more}


def add_time(results, method, dataset, ms, parameters):
    cell = cell_of(method, dataset)
    revision = cell.entry.revision
    taken = Timing(method, dataset, {}, revision, [1.0] * 5, [ms] * 5, parameters, 0.0, {}, {})
    write_timing(results, cell, taken)


def points(axes, filled):
    """Where single markers are, of the paper (hollow) or ours (filled)."""
    found = []
    for line in axes.lines:
        arrow = line.get_markersize() < 3
        if line.get_marker() not in ("None", None, "") and len(line.get_xdata()) == 1 and not arrow:
            hollow = line.get_markerfacecolor() in ("white", "none")
            if hollow != filled:
                found.append((float(line.get_xdata()[0]), float(line.get_ydata()[0])))
    return found


def texts(artist):
    return [text.get_text() for text in artist.findobj(Text) if text.get_text()]


def scattered(axes):
    """All points of a panel, from left to right."""
    drawn = [line for line in axes.lines if line.get_marker() in "oXD"]
    return sorted((x, y) for line in drawn for x, y in zip(*line.get_data(), strict=True))


def note(figure):
    return figure._supxlabel.get_text().replace("\n", " ") if figure._supxlabel else ""


# All of them -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shipped():
    return Store(ROOT / "results", remember=True)


@contextmanager
def watched():
    """The files of the project whose code runs meanwhile."""
    package, seen, ours = Path(benchmark.__file__).parent, set(), set()

    def see(frame, event, _):
        if event == "call":
            seen.add(frame.f_code.co_filename)

    sys.setprofile(see)
    try:
        yield ours
    finally:
        sys.setprofile(None)
        ours |= {Path(f).relative_to(package) for f in seen if Path(f).is_relative_to(package)}


@pytest.mark.parametrize("name", figures.FIGURES)
def test_shipped_records_give_the_same_bytes_twice(name, shipped, tmp_path):
    try:
        data = figures.read(name, shipped)
    except UserError as error:
        assert name in FROM_RECORDS_ALONE
        assert "python -m benchmark" in str(error)
        return
    figure = figures.drawn(name, data)
    sizes = [t.get_fontsize() for t in figure.findobj(Text) if t.get_text() and t.get_visible()]
    assert min(sizes) >= style.SMALL
    files = style.save(figure, name, tmp_path / "once")
    with watched() as ours:
        figure = figures.drawn(name, data)
    # What is drawn again when code changes knows all of the code.
    package = Path(benchmark.__file__).parent
    assert ours <= {path.relative_to(package) for one in inputs.CODE for path in package.glob(one)}
    again = style.save(figure, name, tmp_path / "twice")
    assert [path.name for path in files] == [f"{name}.png", f"{name}.svg"]
    for one, other in zip(files, again, strict=True):
        assert one.read_bytes() == other.read_bytes()
    width, height = struct.unpack(">II", files[0].read_bytes()[16:24])
    inches = figure.get_size_inches()
    assert (width, height) == pytest.approx(inches * style.DPI, abs=1)
    assert inches[0] in (style.ONE_COLUMN, style.TWO_COLUMNS)
    assert b"<text" not in files[1].read_bytes()  # letters are paths


@pytest.mark.parametrize("name", figures.FIGURES)
def test_without_records_a_figure_is_the_papers_or_says_what_to_run(name, results):
    if name in FROM_RECORDS_ALONE:
        with pytest.raises(UserError, match="python -m benchmark"):
            figures.draw(name, results)
    else:
        assert "python -m benchmark" in note(figures.draw(name, results))


def test_every_figure_has_a_module_with_a_name_of_its_own():
    folder = ROOT / "benchmark" / "figures"
    for name in figures.FIGURES:
        assert (folder / f"{name.replace('-', '_')}.py").is_file()
    with pytest.raises(UserError, match="Did you mean 'figure3'"):
        figures.draw("figur3", ROOT / "results")


def test_what_a_user_has_set_for_matplotlib_has_no_say(results):
    import matplotlib

    plain = figures.draw("critical-difference", results)
    with matplotlib.rc_context({"font.size": 30, "axes.grid": False}):
        other = figures.draw("critical-difference", results)
        assert matplotlib.rcParams["font.size"] == 30
    for text, same in zip(plain.findobj(Text), other.findobj(Text), strict=True):
        assert text.get_fontsize() == same.get_fontsize()


def test_no_two_methods_look_alike():
    looks = [(look.colour, look.marker) for look in style.LOOKS.values()]
    assert len(set(looks)) == len(looks)
    assert set(paper.METHODS) <= style.LOOKS.keys()
    assert set(paper.DATASETS) == style.DATASETS.keys()
    assert len({look.marker for look in style.DATASETS.values()}) == len(paper.DATASETS)
    assert {m for m, look in style.LOOKS.items() if look.colour == style.VERMILION} == {"protogate"}
    # Lines have no markers: the networks differ in colour, whatever their dashes.
    assert len({style.LOOKS[m].colour for m in curves.NETWORKS}) == len(curves.NETWORKS)


def test_vermilion_is_protogates_alone():
    """In every figure: a reader who has learned one meaning of a colour keeps it."""
    users = [
        p.name for p in Path(figures.__file__).parent.glob("*.py") if "VERMILION" in p.read_text()
    ]
    assert users == ["style.py"]
    assert style.VERMILION not in {look.colour for look in style.DATASETS.values()}


def test_notes_keep_commands_whole_and_leave_no_word_alone():
    command = "`python -m benchmark reproduce table2`"
    sentence = f"Some words that nearly fill the first line, and then the remedy ({command})."
    assert any(command in line for line in style.wrapped(sentence, 80))
    assert style.wrapped("four words are here", 17) == ["four words", "are here"]
    assert style.wrapped("", 80) == []


def test_names_cover_neither_points_nor_one_another():
    with style.applied():
        figure = style.figure(style.ONE_COLUMN, 2.5)
        axes = figure.subplots()
        places = [(0.5 + 0.05 * (i % 3), 0.5 + 0.05 * (i // 3)) for i in range(9)]
        axes.plot(*zip(*places, strict=True), "o")
        axes.set(xlim=(0, 1), ylim=(0, 1))
        style.settle(figure)
        made = labels.place(axes, [labels.Name(x, y, "a name") for x, y in places])
        boxes = [text.get_window_extent() for text in made]
        for one, other in itertools.combinations(boxes, 2):
            assert not one.overlaps(other)
        for box, place in itertools.product(boxes, places):
            assert not box.contains(*axes.transData.transform(place))
        assert all(axes.bbox.contains(*corner) for box in boxes for corner in box.corners())


# Figure 3 ----------------------------------------------------------------------------------------


def test_normalised_accuracies_are_those_of_the_printed_table():
    """Worked out by hand from Table 2 (17 methods, 7 datasets)."""
    value = figure3._printed().accuracy
    known = {"protogate": 0.977, "realx": 0.879, "lightgbm": 0.818, "l2x": 0.039}
    for method, expected in known.items():
        assert figure3.normalised(value, method, paper.DATASETS) == pytest.approx(
            expected, abs=5e-4
        )
    # The paper has no number for three datasets, and a mean over the others is no neighbour.
    assert figure3.normalised(value, "invase", paper.DATASETS) is None
    assert figure3.normalised(value, "invase", ["lung", "toxicity"]) is not None


def printed(method, dataset):
    return paper.cell(2, method, dataset, "balanced_accuracy").mean


def test_figure3_puts_ours_beside_the_paper_on_the_same_datasets(results):
    for dataset, features in (("colon", 200), ("lung", 331.2)):  # a tenth of all
        add(results, "rf", dataset, printed("rf", dataset), selection=selected(features))
        add(results, "mlp", dataset, 50.0)
        best = max(printed(m, dataset) or 0 for m in paper.METHODS)
        add(results, "protogate", dataset, best, selection=selected(features / 10))
        add_time(results, "protogate", dataset, 0.02, None)
    add_time(results, "protogate", "prostate", 0.5, 2_400_000)
    add(results, "lasso", "colon", 90.0, selection=selected(36))  # not on both datasets
    figure = figures.draw("figure3", results)
    paper_row, ours = figure.axes[:3], figure.axes[3:]
    assert [len(points(axes, filled=False)) for axes in paper_row] == [8, 6, 6]
    assert [points(axes, filled=True) for axes in paper_row] == [[], [], []]
    sparsity = dict(points(ours[0], filled=True))
    assert sparsity == pytest.approx(
        {10.0: figure3.normalised(printed, "rf", ["colon", "lung"]), 1.0: 1.0}
    )
    assert points(ours[1], filled=True) == [(0.02, pytest.approx(1.0))]
    assert points(ours[2], filled=True) == [(2.4, pytest.approx(1.0))]
    assert [len(points(axes, filled=False)) for axes in ours] == [8, 6, 6]
    assert "INVASE" in note(figure)  # has no number on colon
    assert "Ours: colon, lung." in note(figure)
    assert "Lasso" in note(figure)
    assert "ProtoGate" not in note(figure)


def test_figure3_needs_all_runs_of_a_cell(results):
    for dataset in ("colon", "lung"):
        add(results, "rf", dataset, 80.0, selection=selected(100))
        add(results, "xgboost", dataset, 80.0, selection=selected(10))
        add(results, "lightgbm", dataset, 80.0, selection=selected(10), runs=24)
    figure = figures.draw("figure3", results)
    assert len(points(figure.axes[3], filled=True)) == 2
    assert "LightGBM" in note(figure)


# Figure 4 ----------------------------------------------------------------------------------------


def bars(axes):
    """Signed heights, from left to right."""
    patches = sorted(axes.patches, key=lambda patch: patch.get_x())
    return [patch.get_height() for patch in patches]


def add_synthetic(results, method, f1, accuracy):
    for dataset, f, a in zip(figure4.DATASETS, f1, accuracy, strict=True):
        add(results, method, dataset, a, selection=selected(5, f1={"rows": f, "branch": 0.0}))


def test_figure4_shows_the_printed_rank_differences(results):
    figure = figures.draw("figure4", results)
    scatter_, differences = figure.axes
    assert len(points(scatter_, filled=False)) == 10
    expected = [
        paper.cell(22, method, dataset, "rank_difference").mean
        for method in dict.fromkeys(c.method for c in paper.cells(22))
        for dataset in figure4.DATASETS
    ]
    assert bars(differences) == expected
    assert sum(
        line.get_linewidth() == figure4.FLAT for line in differences.lines
    ) == expected.count(0)
    for i, patch in enumerate(sorted(differences.patches, key=lambda patch: patch.get_x())):
        colour = figure4.SHADES[i % len(figure4.SHADES)]  # as in the legend
        assert patch.get_facecolor()[:3] == pytest.approx(to_rgb(colour))


def test_figure4_ranks_ours_among_the_methods_that_we_have(results):
    add_synthetic(results, "lasso", [0.1, 0.2, 0.3], [60, 60, 60])
    add_synthetic(results, "rf", [0.2, 0.3, 0.2], [55, 55, 55])
    add_synthetic(results, "stg", [0.3, 0.1, 0.1], [50, 50, 50])
    figure = figures.draw("figure4", results)
    ours = figure.axes[3]
    # By accuracy: lasso 1, rf 2, stg 3. By F1: lasso 3, 2, 1; rf 2, 1, 2; stg 1, 3, 3.
    assert bars(ours) == [2, 1, 0, 0, -1, 0, -2, 0, 0]
    assert len(points(ours, filled=False)) == 9  # the paper's for the same methods
    assert len(points(figure.axes[2], filled=True)) == 3
    assert "among the 3 methods" in note(figure)
    places = [*points(figure.axes[2], filled=True), *points(figure.axes[2], filled=False)]
    assert all(0 <= value <= 1 for place in places for value in place)  # one ruler for both sides
    assert texts(ours).count("not run") == 7


# Figure 8 ----------------------------------------------------------------------------------------


def test_figure8_shows_shares_and_deviations_between_samples(results):
    add(results, "protogate", "colon", 80.0, selection=selected(200, 300.0))
    add(results, "realx", "colon", 80.0, selection=selected(20))
    add(results, "rf", "colon", 80.0, selection=selected(20), runs=2)
    figure = figures.draw("figure8", results)
    colon, lung, *_ = figure.axes
    assert [x for x, _ in points(colon, filled=True)] == [1.0, 10.0]
    assert len(points(colon, filled=False)) == 8  # REAL-X is not in the paper's table
    # From the mean up, however wide: ± 300 would reach zero, which the axis has not.
    assert len([line for line in colon.lines if tuple(line.get_xdata()) == (10.0, 25.0)]) == 1
    assert points(lung, filled=True) == []
    theirs = paper.cell(10, "protogate", "colon", "selected_features")
    assert points(colon, filled=False)[-1][0] == pytest.approx(100 * theirs.mean / 2000)
    assert {"REAL-X", "ProtoGate"} <= set(texts(colon))
    assert "Not run: lung, meta-pam, prostate, toxicity (`python -m benchmark reproduce" in note(
        figure
    )
    assert "No data: meta-dr, tcga-2y (`python -m benchmark data get meta-dr tcga-2y`)" in note(
        figure
    )
    assert "lung, 3,312 features\nours: not run" in texts(lung)
    assert texts(colon).count("not run") == 6  # of the eight printed
    assert texts(colon).count("2 of 25 runs") == 1
    assert texts(colon).count("not printed") == 1
    assert "not run" not in texts(lung)  # the title says it once


# Figures 5 and 11 --------------------------------------------------------------------------------


def test_figure5_without_runs_has_the_papers_points_and_says_so(results):
    figure = figures.draw("figure5", results)
    assert [len(points(axes, filled=False)) for axes in figure.axes] == [4, 4]
    assert not points(figure.axes[0], filled=True)
    assert texts(figure.axes[0]).count("not run") == 4
    assert "Ours: not compared yet" in note(figure)
    assert "not printed and ours is not compared: RBF SVM" in note(
        figure
    )  # instead of a blank panel
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["paper", "± standard deviation over datasets"]


# Figure 10 ---------------------------------------------------------------------------------------


def test_figure10_draws_the_strengths_that_were_run(results):
    for strength, q, runs in ((0.0, 0.2, RUNS), (3e-4, 0.1, 24), (5e-4, 0.3, 4)):
        selection = selected(5, local_sparsity=q)
        params = {"lam_global": strength, "lam_local": 1e-3}
        add(results, "protogate", "colon", 80 + q, params, runs, {**selection, "local_sparsity": q})
    other = {"lam_global": 0.0, "lam_local": 2e-3}
    add(results, "protogate", "lung", 90.0, other, selection=selected(5))
    figure = figures.draw("figure10", results)
    left, right = figure.axes
    # Colon lies left of its strengths, lung right, and four runs are too few for a point.
    aside = figure10.STEP / 2
    assert points(left, filled=True) == [(-aside, approx(20)), (approx(3 - aside), approx(10))]
    assert points(right, filled=True)[0] == (-aside, approx(80.2))
    assert [line.get_alpha() for line in left.lines] == [1, figure10.FADED]
    assert "Left out: 1 point of fewer than 5 runs." in note(figure)
    (legend,) = figure.legends
    assert legend.get_lines()[0].get_linewidth() == 0  # nothing is joined
    # Means over other splits are not joined, and strengths without data have no tick.
    assert not [line for line in left.lines if len(line.get_xdata()) > 1]
    assert [text.get_text() for text in left.get_xticklabels()] == ["0", "3"]
    thin = [line for line in right.lines if line.get_linewidth() < 0.6]
    assert [list(line.get_ydata()) for line in thin] == [[90.0]]
    assert not [line for line in left.lines if line.get_linewidth() < 0.6]
    assert "Faded" in note(figure)
    assert figure10.COMMAND in note(figure)


# Scatter -----------------------------------------------------------------------------------------


def test_scatter_has_a_point_for_every_cell_that_both_sides_have(results):
    for method, dataset in (("ridge", "colon"), ("rf", "lung")):
        add(results, method, dataset, printed(method, dataset))
    add(results, "stg", "colon", 99.0)
    add(results, "rf", "colon", 70.0, selection=selected(100), runs=24)
    add_time(results, "protogate", "prostate", 0.08, 1_199_266)
    figure = figures.draw("scatter", results)
    axes = dict(zip([panel.title([]) for panel in scatter.PANELS], figure.axes, strict=True))
    drawn = scattered(axes["balanced accuracy (%)"])
    mine = [printed("ridge", "colon"), printed("rf", "lung")]
    assert drawn == sorted(
        [(printed("stg", "colon"), 99.0), *((x, pytest.approx(x)) for x in mine)]
    )
    assert "STG, colon" in texts(axes["balanced accuracy (%)"])
    assert "3 of 289 cells" in texts(axes["balanced accuracy (%)"])
    assert "1 of 7 cells" in texts(axes["million parameters"])
    assert "0 of 77 cells" in texts(axes["selected features"])
    assert "of 648 printed cells" in note(figure)
    (legend,) = figure.legends
    rest = scatter.read(Store(results)).elsewhere
    counted = Counter(line.verdict.word for line in ledger.lines(Store(results)))
    for text in legend.get_texts():
        word, number = text.get_text()[:-1].split(" (")
        assert int(number) > 0
        assert int(number) + rest.get(word, 0) == counted[word]


def test_scatter_draws_once_what_the_paper_prints_in_several_tables(results):
    add(results, "protogate", "colon", 70.0)
    axes = figures.draw("scatter", results).axes[scatter.ACCURACIES]
    assert scattered(axes) == [(printed("protogate", "colon"), pytest.approx(70.0))]
    cells = [c for t in paper.tables() for c in paper.cells(t) if c.metric == "balanced_accuracy"]
    assert any(
        text.startswith("1 for ") and f"of {len(cells)} cells" in text for text in texts(axes)
    )


def test_scatter_compares_ranks_over_the_same_cells(results):
    for dataset in ("colon", "lung"):
        for method, accuracy in (("ridge", 60.0), ("rf", 80.0), ("mlp", 70.0)):
            add(results, method, dataset, accuracy)
    number = next(i for i, panel in enumerate(scatter.PANELS) if "mean_rank" in panel.metrics)
    figure = figures.draw("scatter", results)
    theirs = [
        sum(printed(other, d) >= printed(method, d) for other in ("ridge", "rf", "mlp"))
        for method in ("ridge", "rf", "mlp")
        for d in ("colon", "lung")
    ]
    ranks = [(a + b) / 2 for a, b in zip(theirs[::2], theirs[1::2], strict=True)]
    assert scattered(figure.axes[number]) == sorted(zip(ranks, (3.0, 1.0, 2.0), strict=True))
    assert figure.axes[number].get_title("left") == "mean rank"  # no difference is drawn


def test_scatter_counts_the_accuracies_that_the_answer_counts(shipped):
    lines = ledger.lines(shipped)
    words = Counter(point.word for point in scatter.read(shipped).panels[scatter.ACCURACIES])
    del words[ledger.INCONSISTENT]
    assert words == counts.by_kind(lines)[counts.ACCURACIES].words


def test_scatter_has_a_place_for_every_number_that_a_run_can_have():
    shown = {metric for panel in scatter.PANELS for metric in panel.metrics}
    everything = {c.metric for table in paper.tables() for c in paper.cells(table)}
    # A p-value is no measurement of its own, and the number of settings nothing to run.
    assert everything - shown == {"hyperparameters", "corrected_t_test_p", "wilcoxon_p"}


# Curves ------------------------------------------------------------------------------------------


def training(last, *, name="valid_balanced_accuracy", value=0.8, best=50):
    steps = list(range(0, last + 1, 50))
    return {"best_step": best, "curves": {"step": steps, name: [value] * len(steps)}}


def test_curves_are_means_over_the_runs(results):
    add(results, "mlp", "colon", 80.0, model=lambda i: training(100, value=i / RUNS))
    add(
        results,
        "protogate",
        "colon",
        80.0,
        model=lambda i: training(200, name="selected", value=40),
    )
    add(results, "rf", "colon", 80.0)
    figure = figures.draw("curves", results)
    _, accuracy, features = figure.axes
    (line,) = [line for line in accuracy.lines if len(line.get_xdata()) == curves.GRID]
    assert line.get_ydata() == pytest.approx(np.full(curves.GRID, 48.0))  # of 0, 4, ..., 96 %
    assert line.get_xdata()[-1] == 100  # every network's line is as long
    assert points(accuracy, filled=True) == [(50, pytest.approx(48.0))]  # step 50 of 100
    assert points(features, filled=True) == [(25, pytest.approx(2.0))]  # of 200; 40 of 2,000
    assert "Steps of training: MLP 100, ProtoGate 200." in note(figure)
    assert "In b not recorded: ProtoGate on colon." in note(figure)
    assert "In c" not in note(figure), "an MLP selects nothing"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["MLP", "ProtoGate"]


def test_of_several_networks_the_one_that_selects_is_shown(results):
    """REAL-X trains three, and records its selected features as a share of all."""
    parts = {
        "selector": training(200, name="selected_fraction", value=0.4),
        "predictor": training(100),
    }
    add(results, "realx", "colon", 80.0, model=parts)
    (panel,) = [
        axes
        for axes in figures.draw("curves", results).axes
        if "selected" in axes.get_title("left")
    ]
    (line,) = [x for x in panel.lines if len(x.get_xdata()) > 1]
    assert line.get_ydata() == pytest.approx(np.full(len(line.get_ydata()), 40.0))
    assert line.get_xdata()[-1] == 100


def test_curves_say_where_runs_recorded_nothing(results):
    runs = {True: training(100), False: training(100, name="selected", value=40)}
    add(results, "lspin", "colon", 80.0, model=lambda i: runs[i < 4])
    text = note(figures.draw("curves", results))
    assert "In b not recorded: LSPIN on colon (4 of 25 runs)." in text
    assert "In c not recorded: LSPIN on colon (21 of 25 runs)." in text


def test_curves_say_which_networks_and_datasets_they_lack(results):
    add(results, "mlp", "colon", 80.0, model=training(100))
    text = note(figures.draw("curves", results))
    assert "MLP on lung, meta-dr" in text and "REAL-X" in text
    assert "RF" not in text, "it has no steps to draw"


def test_a_curve_ends_where_more_than_half_of_the_runs_had_stopped():
    runs = [training(last) for last in (100, 200, 300, 400, 500)]
    steps, band = curves.summary(runs, ["valid_balanced_accuracy"])
    assert steps[-1] == 300
    assert np.isfinite(band).all()
    assert curves.summary(runs, ["selected"]) is None


def test_numbers_that_were_not_finite_leave_no_gap():
    run = {"best_step": 0, "curves": {"step": [0, 50, 100], "total": [1.0, None, 3.0]}}
    steps, band = curves.summary([run], ["valid_loss", "total"])
    assert np.interp(50, steps, band[1]) == pytest.approx(2.0)


def test_the_band_is_the_standard_error():
    runs = [training(100, value=value) for value in (0.4, 0.6, 0.8, 0.8)]
    _, (low, mean, high) = curves.summary(runs, ["valid_balanced_accuracy"])
    error = np.std([0.4, 0.6, 0.8, 0.8], ddof=1) / 2
    assert mean == pytest.approx(np.full(curves.GRID, 0.65))
    assert high - mean == pytest.approx(np.full(curves.GRID, error))
    assert mean - low == pytest.approx(np.full(curves.GRID, error))


# Critical difference -----------------------------------------------------------------------------


def test_critical_difference_of_demsars_example():
    """Four classifiers on fourteen datasets: q = 2.569, and the difference is 1.25."""
    rng = np.random.default_rng(0)
    ranking = critical_difference.rank(rng.random((4, 14)).tolist(), ["a", "b", "c", "d"])
    assert ranking.difference == pytest.approx(1.25, abs=0.005)


def test_groups_are_the_largest_that_cannot_be_told_apart():
    made = critical_difference.Ranking({"a": 1.0, "b": 2.0, "c": 3.5, "d": 5.0}, 9, 0.01, 1.6)
    assert made.groups == [(1.0, 2.0), (2.0, 3.5), (3.5, 5.0)]
    apart = critical_difference.Ranking({"a": 1.0, "b": 4.0}, 9, 0.01, 1.6)
    assert apart.groups == []
    together = critical_difference.Ranking({"a": 1.0, "b": 1.5, "c": 2.0}, 9, 0.5, 1.6)
    assert together.groups == [(1.0, 2.0)]


def test_identical_orders_are_significant_and_mixed_ones_are_not():
    same = critical_difference.rank([[3.0] * 8, [2.0] * 8, [1.0] * 8], ["a", "b", "c"])
    assert list(same.ranks.items()) == [("a", 1.0), ("b", 2.0), ("c", 3.0)]
    assert same.p == pytest.approx(np.exp(-8))  # chi-squared of 16 with two degrees of freedom
    turning = [[1.0, 2.0, 3.0], [2.0, 3.0, 1.0], [3.0, 1.0, 2.0]]
    assert critical_difference.rank(turning, ["a", "b", "c"]).p == pytest.approx(1.0)


def test_the_diagram_has_the_printed_ranks(results):
    figure = figures.draw("critical-difference", results)
    (axes,) = figure.axes
    words = texts(axes)
    assert "ProtoGate  2.00" in words
    assert "16.29  L2X" in words  # the paper misprints it as 14.29
    assert sum("  " in word and word[-1].isalnum() for word in words) >= 17


def test_ours_are_ranked_below_the_papers(results):
    for dataset in ("colon", "lung"):
        for method, accuracy in (("ridge", 60.0), ("rf", 80.0), ("mlp", 70.0)):
            add(results, method, dataset, accuracy)
    figure = figures.draw("critical-difference", results)
    everything, same, ours = figure.axes
    assert {"RF  1.00", "MLP  2.00", "3.00  Ridge"} <= set(texts(ours))
    for axes in (same, ours):  # the paper's numbers in the same contest
        assert any("3 methods on 2 datasets" in word for word in texts(axes))
    assert any("17 methods on 7 datasets" in word for word in texts(everything))
    assert "no score of INVASE" in note(figure)
    ranks = {m: sum(printed(m, d) <= printed(o, d) for o in ("ridge", "rf", "mlp") for d in ("colon", "lung")) / 2
             for m in ("ridge", "rf", "mlp")}  # fmt: skip
    shown = " ".join(texts(same))
    assert all(f"{rank:.2f}" in shown for rank in ranks.values())


# Command line ------------------------------------------------------------------------------------


def test_the_verb_draws_what_it_can_and_says_what_is_missing(cli, tmp_path):
    empty, to = tmp_path / "results", tmp_path / "drawn"
    empty.mkdir()
    # Another seed for the order of sets, which must not show.
    words = ("--results", empty, "--to", to)
    done = cli("figure", "8", "10", *words, check=3, PYTHONHASHSEED="7")
    names = sorted(path.name for path in to.iterdir())
    assert names == ["figure10.md", "figure8.png", "figure8.svg"]
    for path in figures.write("figure8", empty, tmp_path / "here"):
        assert path.read_bytes() == (to / path.name).read_bytes()
    assert str(to / "figure8.png") in done.stdout
    assert "figure10: There are no runs" in done.stderr
    assert "reproduce table17" in done.stderr


def test_a_figure_that_cannot_be_drawn_leaves_its_reason_until_it_can(results, tmp_path):
    to = tmp_path / "figures"
    to.mkdir()
    (to / "figure10.png").write_bytes(b"of records that are gone")
    with pytest.raises(UserError):
        figures.write("figure10", results, to)
    [gap] = to.iterdir()
    text = gap.read_text()
    assert text.startswith(f"Not drawn: {figures.FIGURES['figure10']}.\n\n")
    assert "`python -m benchmark reproduce table17`" in text
    assert str(tmp_path) not in text, "a report does not depend on where it is built"
    params = {"lam_global": 3e-4, "lam_local": 1e-3}
    add(results, "protogate", "colon", 80.0, params, selection=selected(5, local_sparsity=0.1))
    figures.write("figure10", results, to)
    assert sorted(path.name for path in to.iterdir()) == ["figure10.png", "figure10.svg"]


def test_the_verb_writes_a_figure_and_names_the_nearest_to_a_wrong_one(cli, tmp_path):
    (tmp_path / "results").mkdir()
    words = ("--results", tmp_path / "results", "--to", tmp_path / "figures")
    done = cli("figure", "8", *words, check=3)
    assert "figures/figure8.svg" in done.stdout
    assert f"no runs in {tmp_path / 'results'}: what was drawn shows the paper alone" in done.stderr
    add_runs(tmp_path / "results", "knn", "colon", [70.0] * RUNS)
    assert "the paper alone" not in cli("figure", "8", *words, check=0).stderr
    assert (tmp_path / "figures" / "figure8.png").is_file()
    unknown = cli("figure", "figur3", *words, check=2)
    assert "Did you mean 'figure3'" in unknown.stderr


def test_make_draws_figures_by_the_same_words_as_tables():
    rules = (ROOT / "Makefile").read_text().split("reproduce-figure%:")[1]
    assert "-m benchmark figure $*" in rules.split("reproduce-%:")[0]


def test_help_lists_every_figure(cli):
    done = cli("figure", "--help", check=0)
    assert all(name in done.stdout for name in figures.FIGURES)
