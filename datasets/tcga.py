"""TCGA head and neck cancer, for tcga-2y: RNA-seq with relapse-free survival after two years.

One comma-separated table: sample id first, gene columns named SYMBOL|ENTREZ, clinical columns
beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from benchmark.protocol.spec import UserError

from .cohort import common_genes, draw, read_genes, read_prepared
from .raw import Raw


def read(paths: Mapping[str, Path], *, label: str, n_samples: int = 200, seed: int = 42) -> Raw:
    """The authors' prepared table, or the same derivation from the raw file."""
    if "table" in paths:
        return read_prepared(paths["table"])
    path = paths["expression"]
    table = pd.read_csv(path, index_col=0, low_memory=False)
    if label not in table.columns:
        raise UserError(f"{path} has no label column {label!r}.")
    if table.index.has_duplicates:
        twice = list(table.index[table.index.duplicated()][:3])
        raise UserError(f"{path} has more than one row for some samples, such as {twice}.")
    # As released: a sample with a gap anywhere is left out, also in columns that are not used.
    complete = table.dropna()
    y = complete[label].astype(str).str.strip()
    complete, y = complete[y != "?"], y[y != "?"]
    notes = [f"{len(table) - len(complete)} samples with missing values or label left out"]

    X = complete.drop(columns=label)
    X.columns = pd.Index([str(name).partition("|")[0] for name in X.columns])
    X = X.loc[:, ~X.columns.duplicated(keep="first")]
    genes = sorted(common_genes(read_genes(paths["genes"]), X.columns, paths["genes"]))
    return draw(X[genes], y, n_samples=n_samples, seed=seed, notes=notes)
