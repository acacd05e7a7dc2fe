"""What the figures of fitted models share."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import fmean

from benchmark.experiments import specimen
from benchmark.experiments.specimen import Explained, Specimen
from benchmark.figures import style
from benchmark.protocol import registry
from benchmark.protocol.plan import Cell, keys_of
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
    splits = specimen.stored(store.root, cell) or [(0, 0)]
    mean = typical(store, cell)

    def rank(split: tuple[int, int]) -> tuple[bool, bool, float, tuple[int, int]]:
        shown = specimen.read(store.root, cell, *split)
        gap = 0.0 if mean is None else round(abs(shown.accuracy - mean), 6)
        other = beside is not None and split != (beside.spec.repeat, beside.spec.fold)
        return other, not specimen.up_to_date(store.root, cell, *split), gap, split

    best = splits[0] if len(splits) == 1 else min(splits, key=rank)
    return specimen.read(store.root, cell, *best)


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
        f"{style.label(shown.spec.model)} on {shown.spec.data.label}, repeat {shown.spec.repeat}, "
        f"fold {shown.spec.fold}; {settings}; balanced accuracy on this fold "
        f"{100 * shown.accuracy:.1f} %{beside}."
    )


def outdated(store: Store, shown: Iterable[Specimen]) -> str:
    """A sentence on runs that have other settings than would be taken now; empty if none has."""
    old = []
    for one in shown:
        cell, split = cell_of(one.spec.model, one.spec.data.label), (one.spec.repeat, one.spec.fold)
        if not specimen.up_to_date(store.root, cell, *split):
            old.append((cell, split))
    if not old:
        return ""
    models = ",".join(dict.fromkeys(cell.model for cell, _ in old))
    datasets = ",".join(dict.fromkeys(cell.data.label for cell, _ in old))
    repeat, fold = old[0][1]
    which = f" --repeat {repeat} --fold {fold}" if (repeat, fold) != (0, 0) else ""
    command = f"python -m benchmark specimen --models {models} --datasets {datasets}{which}"
    return f"Fitted with settings that are no longer chosen (`{command}`)."
