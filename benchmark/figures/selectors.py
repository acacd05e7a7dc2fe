"""What the figures on transferability share: names, looks, and what is missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from benchmark import paper
from benchmark.figures import style
from benchmark.protocol import registry
from benchmark.protocol.spec import UserError
from benchmark.runner.records import Store
from benchmark.tables import transferability
from benchmark.tables.table import Gap
from benchmark.tables.transferability import NONE, Transferability, Transferred

TITLES = {
    "knn": "KNN",
    "svm": "polynomial SVM",
    "svm:kernel=rbf": "RBF SVM",
}
"""The printed SVM is the polynomial one; the paper's text says RBF."""
COMMAND, DATA = "python -m benchmark reproduce table23", "data get"


def find(store: Store) -> Transferability:
    """What the records tell."""
    return store.once(
        ("transferability", paper.DATASETS), lambda: transferability.build(store, paper.DATASETS)
    )


def read(store: Store) -> Transferability:
    """The same; a UserError if they tell nothing of any selector."""
    found = find(store)
    if not any(cell.complete and cell.selector != NONE for cell in found.cells.values()):
        raise UserError(
            f"There are no complete runs of ProtoGate or its two halves in {store.root}.\n"
            f"`{COMMAND}` does those that are missing; it can be interrupted and goes on from there."
        )
    return found


def label(selector: str) -> str:
    return "no selector" if selector == NONE else registry.label(selector)


def look(selector: str) -> style.Look:
    return style.Look(style.GREY, "s") if selector == NONE else style.look(selector)


def missing(found: Transferability) -> list[str]:
    """Sentences on what is missing, one per command that helps."""
    by_command: dict[str, list[Transferred]] = defaultdict(list)
    for cell in found.gaps:
        if cell.gap:
            by_command[_command(cell.gap)].append(cell)
    return [_sentence(command, cells) for command, cells in by_command.items()]


def _command(gap: Gap) -> str:
    """A short command, as a note has to have."""
    return COMMAND if gap.command.startswith("reproduce") else gap.command


def _sentence(command: str, cells: Sequence[Transferred]) -> str:
    lacks: dict[str, dict[str, None]] = defaultdict(dict)
    for cell in cells:
        name = TITLES[cell.simple] if cell.selector == NONE else label(cell.selector)
        # Without data it does not matter for which model.
        lacks["" if command == DATA else name][cell.dataset] = None
    alike: dict[str, list[str]] = defaultdict(list)
    for name, datasets in lacks.items():
        alike[", ".join(datasets)].append(name)
    if command == DATA:
        what = f"No data: {', '.join(alike)}"
    else:
        parts = (f"{', '.join(names)} on {datasets}" for datasets, names in alike.items())
        what = f"Incomplete: {'; '.join(parts)}"
    gap = cells[0].gap
    if command != COMMAND and gap:
        commands = [f"`{c}`" for c in gap.remedy((cell.model, cell.dataset) for cell in cells)]
    else:
        commands = [f"`{command}`"]
    return f"{what} ({', '.join(commands)})." if commands else f"{what}."
