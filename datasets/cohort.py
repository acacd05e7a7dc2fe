"""What the METABRIC and TCGA sets share: Hallmark genes, the draw of 200, the prepared table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.model_selection import train_test_split

from benchmark.protocol.spec import UserError

from .raw import Raw


def read_prepared(path: Path) -> Raw:
    """The authors' own layout: row index, genes, label in the last column."""
    table = pd.read_csv(path, index_col=0)
    return Raw(
        table.iloc[:, :-1].to_numpy(np.float64),
        table.iloc[:, -1].to_numpy(),
        [str(name) for name in table.columns[:-1]],
    )


def read_genes(path: Path) -> list[str]:
    """Gene symbols, each once, in the order of the file.

    A .gmt has one gene set per line: name, description, symbols. Any other file is a list with
    the symbol in the first column; a header does no harm, as no gene is called like one.
    """
    genes: list[str] = []
    for line in path.read_text("utf-8").splitlines():
        if path.suffix == ".gmt":
            genes += line.split("\t")[2:]
        else:
            genes.append(line.replace("\t", ",").split(",")[0].strip('"'))
    return list(dict.fromkeys(gene.strip() for gene in genes if gene.strip()))


def common_genes(genes: list[str], measured: pd.Index, path: Path) -> list[str]:
    """The listed genes that were measured, in the order of the list."""
    kept = [gene for gene in genes if gene in measured]
    if not kept:
        raise UserError(
            f"None of the {len(genes)} genes in {path} occurs in the expression table: "
            f"{genes[:3]} against {list(measured[:3])}. Symbols such as TP53 are expected in both."
        )
    return kept


def draw(
    X: pd.DataFrame, y: pd.Series[object], *, n_samples: int, seed: int, notes: list[str]
) -> Raw:
    """A stratified sample without replacement, in the row order of the source.

    NOTE[DIFF] The authors published the rows that they drew for meta-pam, as a prepared table, and
    neither rows nor seed for meta-dr and tcga-2y. Ours is recorded, but it cannot give their rows.
    """
    if len(X) < n_samples:
        raise UserError(f"{len(X)} patients have expression and label, {n_samples} are needed.")
    rows: npt.NDArray[np.int64] = np.arange(len(X))
    if len(X) > n_samples:
        rows, _ = train_test_split(rows, train_size=n_samples, stratify=y, random_state=seed)
    rows = np.sort(rows)
    return Raw(
        X.iloc[rows].to_numpy(np.float64),
        y.iloc[rows].to_numpy(),
        [str(name) for name in X.columns],
        notes=[*notes, f"{n_samples} of {len(X)} patients drawn, stratified, seed {seed}"],
        derived=True,
    )
