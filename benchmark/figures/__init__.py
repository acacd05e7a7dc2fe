"""The paper's figures, drawn from records: trains nothing.

One module per figure. Each has `draw(results)`, which returns a matplotlib figure: from the records
that exist below `results`, beside the paper's own numbers where it prints them, with a grey note on
what is missing. Where nothing at all can be drawn it raises a UserError that names the command.
What all figures share (sizes, colours, the way they are saved) is in `style`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.files import write_atomic
from benchmark.protocol.registry import check_name
from benchmark.protocol.spec import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES = {
    "figure3": "accuracy against sparsity, inference time and size of the model",
    "figure4": "synthetic data: right features against right predictions, and rank differences",
    "figure5": "accuracy of KNN and SVM on features selected by ProtoGate and its two halves",
    "figure6": "the prototypes of a ProtoGate on colon and a new patient among them",
    "figure7": "one sample's features: kept or dropped, globally and locally",
    "figure8": "share of the features that each method selects, per dataset",
    "figure9": "masks of LSPIN, LLSPIN and ProtoGate on test samples",
    "figure10": "degree of local sparsity and accuracy against the global strength",
    "figure11": "what a feature selector adds to KNN and SVM, per dataset",
    "scatter": "all printed cells against ours",
    "curves": "learning curves of the networks",
    "critical-difference": "mean ranks of all methods, and which of them can be told apart",
}
"""Name -> what it shows. The module has the same name, with _ for -."""


def draw(name: str, results: Path) -> Figure:
    """The figure called `name`, from the records below `results`."""
    check_name("figure", name, FIGURES)
    from benchmark.figures import style

    with style.applied():
        figure: Figure = import_module(f"benchmark.figures.{name.replace('-', '_')}").draw(results)
    return figure


def write(name: str, results: Path, folder: Path) -> list[Path]:
    """Draw a figure and write it to a folder; returns the files.

    Where the records do not allow it, NAME.md says why and what to run, and the error goes on.
    """
    from benchmark.figures import style

    gap = folder / f"{name}.md"
    try:
        files = style.save(draw(name, results), name, folder)
    except UserError as error:
        for suffix in (".svg", ".png"):  # of records that are gone
            (folder / f"{name}{suffix}").unlink(missing_ok=True)
        # The place of the records on this machine is no part of a report.
        reason = str(error).replace(str(results), "results")
        write_atomic(gap, f"Not drawn: {FIGURES[name]}.\n\n{reason}\n".encode())
        raise
    gap.unlink(missing_ok=True)
    return files
