"""What the figures on transferability share: names, looks, and what is missing."""

from __future__ import annotations

from collections import defaultdict

from benchmark import paper
from benchmark.figures import style
from benchmark.protocol.spec import UserError
from benchmark.runner.records import Store
from benchmark.tables import transferability
from benchmark.tables.table import Gap
from benchmark.tables.transferability import NONE, Transferability, Transferred

TITLES = {
    "knn": "KNN",
    "svm": "SVM, polynomial kernel",
    "svm:kernel=rbf": "SVM, RBF kernel",
}
"""The printed SVM is the polynomial one; the paper's text says RBF."""


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
            f"`python -m benchmark reproduce table23` does those that are missing; it can be "
            f"interrupted and goes on from there."
        )
    return found


def label(selector: str) -> str:
    return "no selector" if selector == NONE else style.label(selector)


def look(selector: str) -> style.Look:
    return style.Look(style.GREY, "s") if selector == NONE else style.look(selector)


def missing(found: Transferability) -> list[str]:
    """Sentences on what is missing, one per command that helps."""
    by_model: dict[tuple[str, str], list[tuple[Transferred, Gap]]] = defaultdict(list)
    for cell in found.gaps:
        if cell.gap:
            # Without data it does not matter for which model.
            model = "" if cell.gap.command == "data status" else cell.model
            by_model[cell.gap.command, model].append((cell, cell.gap))
    # Models without the same datasets share a command, which then asks for nothing else.
    together: dict[tuple[str, ...], list[tuple[Transferred, Gap]]] = defaultdict(list)
    for (command, _), cells in by_model.items():
        together[command, *dict.fromkeys(cell.dataset for cell, _ in cells)] += cells
    sentences = []
    for (_, *datasets), cells in together.items():
        models = list(dict.fromkeys(cell.model for cell, _ in cells))
        gap = cells[0][1]
        away = gap.word == "data unavailable"
        who = "No data" if away else f"Incomplete, {', '.join(models)}"
        sentences.append(f"{who}: {', '.join(datasets)} (`{gap.remedy(models, datasets)}`).")
    return sentences
