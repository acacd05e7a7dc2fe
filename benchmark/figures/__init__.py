"""The paper's figures, drawn from records: trains nothing.

One module per figure of FIGURES. Each has `read(store)`, which takes from the records that exist what is to be
drawn, beside the paper's own numbers where it prints them; where nothing at all can be drawn it
raises a UserError that names the command. And `draw(data)`, which makes a matplotlib figure of that
alone, with a grey note on what is missing: so a figure whose data are the same need not be drawn
again (`inputs`). What all figures share (sizes, colours, the way they are saved) is in `style`, what
several share in `labels`, `numbers`, `selectors` and `specimens`. `features` and `explanation` draw
one's own models.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.files import write_atomic
from benchmark.protocol.registry import check_name
from benchmark.protocol.spec import UserError
from benchmark.runner.records import Store
from benchmark.runner.shipped import store_at

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
    "lead": "ProtoGate's lead over the best other method on each dataset, the paper's and ours",
    "scatter": "all printed cells against ours",
    "curves": "learning curves of the networks",
    "critical-difference": "mean ranks of all methods, and which of them can be told apart",
}
"""Name -> what it shows. The module has the same name, with _ for -."""


def read(name: str, store: Store) -> Any:
    """What the figure called `name` is drawn from; a UserError if the records do not allow it."""
    check_name("figure", name, FIGURES)
    return _module(name).read(store)


def draw(name: str, results: Path) -> Figure:
    """The figure called `name`, from the records below `results`."""
    return drawn(name, read(name, store_at(results, remember=True)))


def drawn(name: str, data: Any) -> Figure:
    """The same from what `read` gave."""
    from benchmark.figures import style

    with style.applied():
        figure: Figure = _module(name).draw(data)
    return figure


def _module(name: str) -> Any:
    return import_module(f"benchmark.figures.{name.replace('-', '_')}")


def save(name: str, data: Any, folder: Path) -> list[Path]:
    """Draw a figure and write it to a folder; returns the files."""
    from benchmark.figures import style

    files = style.save(drawn(name, data), name, folder)
    (folder / f"{name}.md").unlink(missing_ok=True)
    return files


def write(name: str, results: Path, folder: Path) -> list[Path]:
    """The same from the records below `results`, whether or not they have changed.

    Where they do not allow it, NAME.md says why and what to run, and the error goes on.
    """
    try:
        data = read(name, store_at(results, remember=True))
    except UserError as error:
        explain(name, error, results, folder)
        raise
    return save(name, data, folder)


def explain(name: str, error: UserError, results: Path, folder: Path) -> Path:
    """Write NAME.md, which says why a figure cannot be drawn, instead of the figure."""
    for suffix in (".svg", ".png"):  # of records that are gone
        (folder / f"{name}{suffix}").unlink(missing_ok=True)
    # The place of the records on this machine is no part of a report.
    reason = str(error).replace(str(results), "results")
    path = folder / f"{name}.md"
    write_atomic(path, f"Not drawn: {FIGURES[name]}.\n\n{reason}\n".encode())
    return path
