"""What the figures of fitted models share."""

from __future__ import annotations

from collections.abc import Iterable

from benchmark.experiments import specimen
from benchmark.experiments.specimen import Explained, Specimen
from benchmark.figures import style
from benchmark.protocol import registry
from benchmark.protocol.plan import Cell
from benchmark.run.records import Store


def cell_of(model: str, dataset: str) -> Cell:
    return Cell(registry.models()[model], registry.data_ref(dataset))


def read(store: Store, model: str, dataset: str) -> Specimen:
    """The first split's specimen; a UserError with the command if there is none."""
    return specimen.read(store.root, cell_of(model, dataset))


def read_explained(store: Store, dataset: str) -> tuple[Specimen, Explained, list[str]]:
    """ProtoGate's, which explains itself, with sentences on the run and on its age."""
    shown = read(store, "protogate", dataset)
    assert shown.explained is not None
    return shown, shown.explained, [made(shown), outdated(store, [shown])]


def made(shown: Specimen) -> str:
    """A sentence on the run that a figure shows."""
    settings = "tuned settings" if shown.origin == "tuned" else "default settings, not tuned"
    return (
        f"{style.label(shown.spec.model)} on {shown.spec.data.label}, repeat {shown.spec.repeat}, "
        f"fold {shown.spec.fold}; {settings}; balanced accuracy on this fold "
        f"{100 * shown.accuracy:.1f} %."
    )


def outdated(store: Store, shown: Iterable[Specimen]) -> str:
    """A sentence on runs that have other settings than would be taken now; empty if none has."""
    old = []
    for one in shown:
        cell, split = cell_of(one.spec.model, one.spec.data.label), (one.spec.repeat, one.spec.fold)
        if not specimen.up_to_date(store.root, cell, *split):
            old.append(cell)
    if not old:
        return ""
    models = ",".join(dict.fromkeys(cell.model for cell in old))
    datasets = ",".join(dict.fromkeys(cell.data.label for cell in old))
    command = f"python -m benchmark specimen --models {models} --datasets {datasets}"
    return f"Fitted with settings that are no longer chosen (`{command}`)."
