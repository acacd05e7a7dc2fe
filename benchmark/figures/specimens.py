"""What the figures of fitted models share."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from benchmark.experiments import specimen
from benchmark.experiments.specimen import Explained, Specimen
from benchmark.protocol import registry
from benchmark.protocol.plan import Cell, keys_of
from benchmark.protocol.spec import UserError
from benchmark.runner.records import Store


def cell_of(model: str, dataset: str) -> Cell:
    return Cell(registry.models()[model], registry.data_ref(dataset))


CLASSES = {"colon": {"-1": "cancer", "1": "normal"}}
"""Alon et al. took 40 tumours and 22 normal tissues, which are the sizes of these classes."""


def classes(shown: Specimen) -> list[str]:
    """The names of a specimen's classes; where the data have bare numbers, that they are classes."""
    known = CLASSES.get(shown.spec.data.name, {})
    return [known.get(name, f"class {name}") for name in shown.classes]


def read(store: Store, model: str, dataset: str, beside: Specimen | None = None) -> Specimen:
    """The stored specimen whose accuracy is nearest to the mean of the model's runs: the first split
    may be a lucky or an unlucky one. Those of settings that are no longer chosen come last, and the
    split of a specimen that it is shown beside comes first. A UserError with the command if there is
    none."""
    cell = cell_of(model, dataset)
    shown, refused = [], None
    for split in specimen.stored(store.root, cell) or [(0, 0)]:
        try:
            shown.append(specimen.read(store.root, cell, *split))
        except UserError as error:
            refused = error
    if not shown:
        assert refused is not None
        raise refused
    mean = typical(store, cell)

    def rank(one: Specimen) -> tuple[bool, bool, float, tuple[int, int]]:
        gap = 0.0 if mean is None else round(abs(one.accuracy - mean), 6)
        other = beside is not None and _split(one) != _split(beside)
        return other, not specimen.up_to_date(store.root, cell, one), gap, _split(one)

    return min(shown, key=rank)


def _split(one: Specimen) -> tuple[int, int]:
    return one.spec.repeat, one.spec.fold


def typical(store: Store, cell: Cell) -> float | None:
    """The mean balanced accuracy of the runs with the settings that would be taken now."""
    setting = store.setting(cell, "own", "default")
    assert setting is not None
    records, _ = store.find(keys_of(cell, setting.params)[1])
    scores = [
        r["scores"]["test"]["balanced_accuracy"] for r in records.values() if r["status"] == "ok"
    ]
    return fmean(scores) if scores else None


def read_explained(store: Store, dataset: str) -> tuple[Specimen, Explained, list[str]]:
    """ProtoGate's, which explains itself, with sentences on the run and on its age."""
    shown = read(store, "protogate", dataset)
    assert shown.explained is not None
    mean = typical(store, cell_of("protogate", dataset))
    return shown, shown.explained, [made(shown, mean), outdated(store, [shown])]


def made(shown: Specimen, mean: float | None) -> str:
    """A sentence on the run that a figure shows, and how typical it is."""
    settings = "tuned settings" if shown.origin == "tuned" else "default settings, not tuned"
    beside = "" if mean is None else f", mean over all runs {100 * mean:.1f} %"
    return (
        f"{registry.label(shown.spec.model)} on {shown.spec.data.label}, repeat {shown.spec.repeat}, "
        f"fold {shown.spec.fold}; {settings}; balanced accuracy on this fold "
        f"{100 * shown.accuracy:.1f} %{beside}."
    )


def outdated(store: Store, shown: Iterable[Specimen]) -> str:
    """A sentence on runs that have other settings than would be taken now; empty if none has."""
    old = []
    for one in shown:
        cell = cell_of(one.spec.model, one.spec.data.label)
        if not specimen.up_to_date(store.root, cell, one):
            old.append(f"`{specimen.command(cell, *_split(one))}`")
    return f"Fitted with settings that are no longer chosen ({', '.join(old)})." if old else ""
