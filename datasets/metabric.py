"""METABRIC, for meta-dr and meta-pam: expression joined with a clinical label.

Expression: tab-separated, one row per gene (symbol, Entrez id), one column per patient; both the
study's own file and cBioPortal's have this form. Clinical: tab-separated, one row per patient;
cBioPortal puts lines with # on top.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from benchmark.protocol.spec import UserError

from .cohort import common_genes, draw, read_genes, read_prepared
from .raw import Raw

PATIENT_COLUMNS = ("METABRIC.ID", "METABRIC_ID", "PATIENT_ID")
PAM50 = {"Basal": 1, "LumA": 0, "LumB": 0, "Her2": 0, "Normal": 0}
"""Basal against the rest, because the five subtypes are very unequal."""


def read(paths: Mapping[str, Path], *, label: str, n_samples: int = 200, seed: int = 42) -> Raw:
    """The authors' prepared table, or the same derivation from the raw files."""
    if "table" in paths:
        return read_prepared(paths["table"])
    X = read_expression(paths["expression"], paths["genes"])
    complete = X.dropna()
    y = read_label(paths["clinical"], label)
    patients = complete.index.intersection(y.index, sort=False)
    notes = [f"{len(X) - len(complete)} patients with missing expression left out"]
    return draw(
        complete.loc[patients], y.loc[patients], n_samples=n_samples, seed=seed, notes=notes
    )


def read_expression(path: Path, genes_path: Path) -> pd.DataFrame:
    """Patients by Hallmark genes; the first row counts where a symbol occurs twice."""
    table = pd.read_csv(path, sep="\t", index_col=0, low_memory=False)
    # The second column is an Entrez id, not a patient.
    patients = [name for name in table.columns if not str(name).lower().startswith("entrez")]
    table = table.loc[~table.index.duplicated(keep="first"), patients]
    genes = common_genes(read_genes(genes_path), table.index, genes_path)
    X = table.loc[genes].T.apply(pd.to_numeric, errors="coerce")
    X.index = _patient_ids(X.index)
    return X


def read_label(path: Path, label: str) -> pd.Series[object]:
    """One label per patient; patients without one are left out."""
    with path.open(encoding="utf-8") as lines:
        n_comments = next((i for i, line in enumerate(lines) if not line.startswith("#")), 0)
    table = pd.read_csv(path, sep="\t", skiprows=n_comments, low_memory=False)
    id_column = next((name for name in PATIENT_COLUMNS if name in table.columns), None)
    if id_column is None or label not in table.columns:
        raise UserError(
            f"{path} has no column {label if id_column else ' or '.join(PATIENT_COLUMNS)!r}. "
            f"The label {label!r} is in the clinical supplement of Rueda et al. 2019 "
            f"(TableS6.txt); cBioPortal's own clinical files do not carry it, and its "
            f"CLAUDIN_SUBTYPE is another classification."
        )
    y = table.set_index(_patient_ids(table[id_column]))[label]
    if label == "Pam50Subtype":
        # Six patients are not classified (NC); they map to no label.
        y = y.map(PAM50)
    y = y.dropna()
    if y.index.has_duplicates:
        twice = list(y.index[y.index.duplicated()][:3])
        raise UserError(f"{path} has more than one row for some patients, such as {twice}.")
    return y.astype(int)


def _patient_ids(ids: pd.Index | pd.Series[object]) -> pd.Index:
    """MB-0005 everywhere: tables that went through R have MB.0005."""
    return pd.Index([str(value).strip().replace(".", "-") for value in ids])
