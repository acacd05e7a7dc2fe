"""Specimens: a fitted run as a small file, and the figures that are drawn from it."""

from dataclasses import replace

import numpy as np
import pytest

from benchmark import figures
from benchmark.experiments import specimen
from benchmark.figures import figure7, figure9, specimens
from benchmark.protocol import choices, registry
from benchmark.protocol.plan import Cell
from benchmark.protocol.spec import UserError
from benchmark.runner.execute import execute
from benchmark.runner.records import Store

QUICK = {"steps": 150, "hidden": 20}
LIMIT = 150_000


def cell_of(model, dataset="syn1"):
    return Cell(registry.models()[model], registry.data_ref(dataset))


def first_two(X, seed):
    """A map that costs nothing: UMAP takes half a minute to start."""
    return X[:, :2] + seed


def fit(model, dataset, folder, **params):
    spec, origin = specimen.spec_of(folder, cell_of(model, dataset), 0, 0)
    return specimen.make(replace(spec, params={**spec.params, **params}), origin, first_two)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return fit("protogate", "syn1", tmp_path_factory.mktemp("empty"), **QUICK)


@pytest.fixture(scope="module")
def colon(tmp_path_factory):
    """Results with a quick ProtoGate and a quick LSPIN on colon, and no LLSPIN."""
    results = tmp_path_factory.mktemp("results")
    for model, params in (("protogate", QUICK), ("lspin", {"steps": 3, "gate_hidden": 5})):
        path = specimen.path_of(results, cell_of(model, "colon"), 0, 0)
        specimen.write(path, fit(model, "colon", results, **params))
    return results


def choose(results, cell, params):
    choice = choices.Choice(
        cell.model, cell.data.label, "full", 5, 5, 25, cell.entry.revision,
        choices.search_digest(cell), params, 0.8, [], [], "",
    )  # fmt: skip
    choices.write_choice(results, cell, choice)


# Fitting -----------------------------------------------------------------------------------------


def test_it_is_the_run_of_the_record(made):
    record = execute(made.spec).record
    assert made.accuracy == record["scores"]["test"]["balanced_accuracy"]
    assert made.data_sha256 == record["data"]["sha256"]
    open_ = (made.masks["test"] > 0).sum(axis=1)
    assert open_.mean() == pytest.approx(record["selection"]["mean"])
    assert 0 < open_.mean() < 100  # else nothing was compared
    assert [len(made.rows[part]) for part in ("train", "test")] == [144, 40]
    assert not set(made.rows["train"]) & set(made.rows["test"])


def test_the_nearest_prototypes_explain_the_prediction(made):
    seen = made.explained
    k = made.spec.params["k"]
    for predicted, nearest, distances in zip(
        seen.predictions, seen.nearest, seen.distances, strict=True
    ):
        votes = np.bincount([made.labels["train"][i] for i in nearest], minlength=2)
        assert (len(nearest), predicted) == (k, votes.argmax())
        assert distances == sorted(distances)
    right = np.mean([p == y for p, y in zip(seen.predictions, made.labels["test"], strict=True)])
    assert abs(right - made.accuracy) < 0.1  # the classes are of nearly equal size
    # The map is of the masked samples, in the order of the parts.
    assert {part: places.shape for part, places in seen.map.items()} == {
        "train": (144, 2),
        "test": (40, 2),
    }
    shut = made.masks["test"][:, :2] == 0
    np.testing.assert_array_equal(seen.map["test"][shut], made.spec.seed)
    assert seen.globally.shape == (100,) and seen.globally.any()


def test_an_open_gate_stays_open():
    masks = np.array([[0.0, 1e-4, 0.29, 0.291, 1.0]])
    np.testing.assert_allclose(specimen._coarse(masks), [[0.0, 0.01, 0.29, 0.3, 1.0]])


def test_settings_are_the_chosen_ones_where_there_is_a_choice(tmp_path):
    cell = cell_of("protogate", "colon")
    spec, origin = specimen.spec_of(tmp_path, cell, 2, 3)
    assert (origin, spec.params["lr"], spec.repeat, spec.fold) == ("default", 0.1, 2, 3)
    choose(tmp_path, cell, {"lam_global": 4e-4, "lr": 0.05})
    spec, origin = specimen.spec_of(tmp_path, cell, 2, 3)
    assert (origin, spec.params["lr"], spec.params["lam_global"]) == ("tuned", 0.05, 4e-4)


def test_a_model_that_selects_nothing_has_no_specimen(tmp_path):
    with pytest.raises(UserError, match="knn selects no features"):
        fit("knn", "syn1", tmp_path)


@pytest.mark.slow
def test_umap_is_the_same_every_time_and_keeps_groups_apart():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 30)).astype(np.float32)
    X[20:, :5] += 12
    first, again = specimen.umap(X, 42), specimen.umap(X, 42)
    np.testing.assert_array_equal(first, again)
    centres = first[:20].mean(axis=0), first[20:].mean(axis=0)
    near = [np.linalg.norm(first - centre, axis=1) for centre in centres]
    assert (near[0] < near[1]).tolist() == [True] * 20 + [False] * 20


# Files -------------------------------------------------------------------------------------------


def test_it_comes_back_from_its_file(made, tmp_path):
    cell = cell_of("protogate")
    path = specimen.path_of(tmp_path, cell, 0, 0)
    assert path == tmp_path / "specimens" / "protogate" / "syn1" / "r0f0.json"
    specimen.write(path, made)
    assert path.stat().st_size < LIMIT
    back = specimen.read(tmp_path, cell)
    for name in ("spec", "origin", "accuracy", "classes", "rows", "labels", "data_sha256", "code"):
        assert getattr(back, name) == getattr(made, name), name
    for part, masks in made.masks.items():
        np.testing.assert_allclose(back.masks[part], masks, atol=1e-12)
    np.testing.assert_array_equal(back.explained.globally, made.explained.globally)
    assert back.explained.nearest == made.explained.nearest
    for part, places in made.explained.map.items():
        np.testing.assert_array_equal(back.explained.map[part], places)


def test_dense_masks_survive_packing():
    values = np.random.default_rng(1).integers(0, 101, size=(7, 90))
    np.testing.assert_array_equal(specimen._unpacked(specimen._packed(values)), values)


def test_what_cannot_be_used_names_the_command(made, tmp_path, monkeypatch):
    cell = cell_of("protogate")
    command = "python -m benchmark specimen --models protogate --datasets syn1"
    with pytest.raises(UserError, match=f"no specimen of protogate on syn1; `{command}` makes"):
        specimen.read(tmp_path, cell)
    with pytest.raises(UserError, match="--repeat 1 --fold 4`"):
        specimen.read(tmp_path, cell, 1, 4)
    path = specimen.path_of(tmp_path, cell, 0, 0)
    specimen.write(path, made)
    newer = replace(cell, entry=replace(cell.entry, revision=cell.entry.revision + 1))
    with pytest.raises(UserError, match=f"revision 1 of protogate, the code has 2; `{command}`"):
        specimen.read(tmp_path, newer)
    path.write_text(path.read_text().replace('"accuracy": 0.', '"accuracy": 1.'))
    with pytest.raises(UserError, match=f"checksum.*`{command}` sets it aside"):
        specimen.read(tmp_path, cell)
    assert not specimen.is_made(tmp_path, cell, 0, 0)


def test_another_choice_outdates_it(made, tmp_path):
    cell = cell_of("protogate")
    path = specimen.path_of(tmp_path, cell, 0, 0)
    spec, origin = specimen.spec_of(tmp_path, cell, 0, 0)
    specimen.write(path, replace(made, spec=spec, origin=origin))
    assert specimen.is_made(tmp_path, cell, 0, 0)
    choose(tmp_path, cell, {"lam_global": 0.0, "lam_local": 2e-2})
    assert not specimen.is_made(tmp_path, cell, 0, 0)


def test_one_that_cannot_be_read_does_not_hide_the_others(made, tmp_path):
    cell = cell_of("protogate")
    damaged = specimen.path_of(tmp_path, cell, 0, 0)
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{}")
    with pytest.raises(UserError, match="sets it aside"):
        specimens.read(Store(tmp_path), "protogate", "syn1")
    specimen.write(
        specimen.path_of(tmp_path, cell, 0, 1), replace(made, spec=replace(made.spec, fold=1))
    )
    assert specimens.read(Store(tmp_path), "protogate", "syn1").spec.fold == 1
    assert damaged.is_file(), "drawing moves nothing"


def test_every_outdated_one_is_named(made, tmp_path):
    shown = [replace(made, spec=replace(made.spec, fold=fold)) for fold in (0, 2)]
    said = specimens.outdated(Store(tmp_path), shown)
    assert "--datasets syn1`" in said and "--datasets syn1 --repeat 0 --fold 2`" in said


def test_it_is_compared_with_its_record(made, tmp_path):
    said = specimen.beside_record(tmp_path, made)
    assert "no record" in said
    Store(tmp_path).write(execute(made.spec))
    assert "as in the run's record" in specimen.beside_record(tmp_path, made)
    other = replace(made, accuracy=made.accuracy / 2)
    assert "while the run's record has" in specimen.beside_record(tmp_path, other)


def test_the_verb_fits_once(cli, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(
        '[quick]\nclass = "benchmark.models.rf:RandomForest"\nselects = "global"\n'
        "params = { n_estimators = 5 }\n"
    )
    words = ("specimen", "--models", "quick", "--datasets", "syn1", "--fold", "2")
    words = (*words, "--results", tmp_path / "results")
    done = cli(*words, check=0, BENCHMARK_MODELS=str(own))
    path = tmp_path / "results" / "specimens" / "quick" / "syn1" / "r0f2.json"
    assert path.is_file() and str(path) in done.stdout
    before = path.stat().st_mtime_ns
    assert "up to date" in cli(*words, check=0, BENCHMARK_MODELS=str(own)).stdout
    assert path.stat().st_mtime_ns == before


# Figures -----------------------------------------------------------------------------------------


def words_of(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def note_of(figure):
    return figure._supxlabel.get_text()


def test_figure_6_rings_the_nearest_prototypes_of_the_star(colon):
    shown = specimen.read(colon, cell_of("protogate", "colon"))
    seen, names = shown.explained, specimens.classes(shown)
    figure = figures.draw("figure6", colon)
    whole, axes = figure.axes
    assert len([line for line in whole.lines if line.get_marker() == "*"]) == 1
    stars = [line for line in axes.lines if line.get_marker() == "*"]
    rings = [line for line in axes.lines if line.get_marker() == "o" and line.get_mfc() == "none"]
    assert len(stars) == 1
    np.testing.assert_allclose(stars[0].get_xydata()[0], seen.map["test"][0])
    places = [line.get_xydata()[0] for line in rings]
    np.testing.assert_allclose(places, seen.map["train"][seen.nearest[0]])
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    assert all(x0 < x < x1 and y0 < y < y1 for x, y in places)  # the second map has them all
    text = note_of(figure).replace("\n", " ")
    for number, prototype in enumerate(seen.nearest[0]):
        name = names[shown.labels["train"][prototype]]
        assert f"{number + 1} {name} ({seen.distances[0][number]:.2f})" in text
    assert f"predicted {names[seen.predictions[0]]}" in text
    assert "default settings, not tuned" in note_of(figure).replace("\n", " ")
    assert "no longer chosen" in note_of(figure).replace("\n", " ")  # not the registry's steps


def test_figure_6_counts_tumours_as_the_larger_class():
    classes = registry.datasets()["colon"].classes
    names = specimens.CLASSES["colon"]
    assert {names[name]: n for name, n in classes.items()} == {"cancer": 40, "normal": 22}


def test_figure_7_has_the_models_own_four_behaviours(colon):
    from models.protogate import BEHAVIOURS

    assert [b.name for b in figure7.BEHAVIOURS] == list(BEHAVIOURS)
    both = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert figure7.behaviours(*both).tolist() == [0, 1, 2, 3]
    shown = specimen.read(colon, cell_of("protogate", "colon"))
    codes = figure7.behaviours(shown.explained.globally, shown.masks["train"][0] > 0)
    figure = figures.draw("figure7", colon)
    counts = [text for text in words_of(figure) if "feature" in text]
    expected = [f"{n:,} feature" for n in np.bincount(codes, minlength=4)]
    assert all(text.startswith(start) for text, start in zip(counts, expected, strict=True))
    squares = [patch for patch in figure.axes[0].patches if len(patch.get_path().vertices)]
    assert sum(len(patch.get_path().vertices) // 5 for patch in squares) == 2000


def test_figure_9_has_a_logarithmic_axis_of_features():
    masks = np.array([[1.0, 0.5, 0.1], [0.0, 1.0, 0.0]])
    # Edges 0, 1, 3: the first feature, then the mean of the other two.
    np.testing.assert_allclose(figure9.condensed(masks, 2), [[1.0, 0.3], [0.0, 0.5]])
    wide = figure9.condensed(masks, 400)
    assert wide.shape == (2, 400)
    np.testing.assert_allclose(wide[:, [0, -1]], masks[:, [0, 2]])


def test_figure_9_separates_classes_and_says_what_is_missing(colon):
    figure = figures.draw("figure9", colon)
    lspin, llspin, protogate, _ = figure.axes
    shown = specimen.read(colon, cell_of("protogate", "colon"))
    labels = np.array(shown.labels["test"])
    (line,) = [line for line in protogate.lines if line.get_linestyle() == "--"]
    assert line.get_ydata()[0] == (labels == 0).sum()
    picture = protogate.images[0].get_array()
    order = np.argsort(labels, kind="stable")
    opened = (shown.masks["test"] > 0).any(axis=1)[order]
    assert ((picture > 0).any(axis=1) == opened).all()
    # Features fall from left to right, so the first column has the largest mean.
    assert picture[:, 0].mean() == pytest.approx(shown.masks["test"].mean(axis=0).max())
    assert "not fitted yet" in [text.get_text() for text in llspin.texts]
    assert lspin.images and not llspin.images
    note = note_of(figure).replace("\n", " ")
    assert "specimen --models llspin --datasets colon" in note
    assert "Only colon: nothing fitted on lung" in note


@pytest.mark.parametrize("name", ["figure6", "figure7", "figure9"])
def test_without_specimens_the_command_is_named(name, tmp_path):
    with pytest.raises(UserError, match="specimen --models protogate --datasets colon"):
        figures.draw(name, tmp_path)
