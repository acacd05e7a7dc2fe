"""Weka's ARFF, dense or sparse, as OpenML serves it, into a pandas table.

SciPy's reader takes neither sparse rows nor text attributes, hence this one. Numeric attributes
become numbers, nominal and text attributes stay text, `?` is a missing value.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?P<name>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S+?)\s*(?P<kind>\{.*|\s\S.*)$""",
    re.IGNORECASE,
)
_VALUE = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,\s][^,]*""")
"""One of the values that an attribute lists, in either kind of quotes or none."""
ENCODING = "utf-8-sig"
"""UTF-8, with the mark at the beginning that some editors write."""
_NUMERIC = ("numeric", "real", "integer")


@dataclass(frozen=True)
class Attribute:
    """One column: numeric, or text with its values if they are listed."""

    name: str
    numeric: bool
    values: tuple[str, ...] = ()


def read(path: Path) -> pd.DataFrame:
    """Read a file into one column per attribute; ValueError if it is not ARFF."""
    attributes, first_row = _read_header(path)
    if _is_sparse(path, first_row):
        return _read_sparse(path, first_row, attributes)
    return _read_dense(path, first_row, attributes)


def _read_header(path: Path) -> tuple[list[Attribute], int]:
    """The attributes, and the number of the line after @data."""
    attributes = []
    with path.open(encoding=ENCODING) as lines:
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if text.lower().startswith("@attribute"):
                attributes.append(_attribute(text, number))
            elif text.lower().startswith("@data"):
                if not attributes:
                    raise ValueError("no @attribute before @data")
                return attributes, number
            elif text and not text.startswith("%") and not text.lower().startswith("@relation"):
                raise ValueError(f"line {number} is no ARFF header: {text[:60]!r}")
    raise ValueError("there is no @data line")


def _attribute(text: str, number: int) -> Attribute:
    match = _ATTRIBUTE.match(text)
    if not match:
        raise ValueError(f"cannot read the attribute in line {number}: {text[:60]!r}")
    name, kind = _unquote(match["name"]), match["kind"].strip()
    if kind.startswith("{"):
        inside = kind.strip("{} \t")
        listed = tuple(_unquote(value) for value in _VALUE.findall(inside) if value)
        return Attribute(name, numeric=False, values=listed)
    return Attribute(name, numeric=kind.split()[0].lower() in _NUMERIC)


def _rows(path: Path, first_row: int) -> Iterator[str]:
    """The lines of the data, without comments and empty ones.

    Only a whole line is a comment: within a value, % is a character like any other.
    """
    with path.open(encoding=ENCODING) as lines:
        for number, line in enumerate(lines):
            text = line.strip()
            if number >= first_row and text and not text.startswith("%"):
                yield text


class _Rows(io.TextIOBase):
    """Rows as a file. Told to skip the header, pandas still looks for quotes in it: a class that is
    one took the first rows away."""

    def __init__(self, rows: Iterator[str]) -> None:
        self._rows = rows

    def read(self, _size: int | None = -1, /) -> str:
        return "".join(f"{row}\n" for row in islice(self._rows, 1000))


def _is_sparse(path: Path, first_row: int) -> bool:
    return next(_rows(path, first_row), "").startswith("{")


def _read_dense(path: Path, first_row: int, attributes: list[Attribute]) -> pd.DataFrame:
    """Leave the many rows to pandas: it is fast, and frugal with large files."""
    quote = '"' if any('"' in row for row in _rows(path, first_row)) else "'"
    frame = pd.read_csv(
        _Rows(_rows(path, first_row)),
        header=None,
        index_col=False,
        quotechar=quote,
        escapechar="\\",
        skipinitialspace=True,
        na_values=["?"],
        keep_default_na=False,
        dtype={i: (np.float64 if a.numeric else str) for i, a in enumerate(attributes)},
    )
    if frame.shape[1] != len(attributes):
        raise ValueError(f"rows have {frame.shape[1]} values for {len(attributes)} attributes")
    frame.columns = pd.Index([attribute.name for attribute in attributes])
    for i, attribute in enumerate(attributes):
        if not attribute.numeric:
            frame.isetitem(i, frame.iloc[:, i].str.strip())
            _check_declared(attribute, frame.iloc[:, i].dropna().unique())
    return frame


def _check_declared(attribute: Attribute, found: Iterable[object]) -> None:
    """A value that the header does not list is a slip, or the row is shifted: never a new class."""
    unknown = [value for value in found if value not in attribute.values]
    if attribute.values and unknown:
        raise ValueError(
            f"{attribute.name!r} has the value {unknown[0]!r}, which its @attribute does not list"
        )


def _read_sparse(path: Path, first_row: int, attributes: list[Attribute]) -> pd.DataFrame:
    """Rows `{index value, ...}`: what is not named is 0, or the first of the listed values."""
    default = [0.0 if a.numeric else (a.values or ("",))[0] for a in attributes]
    rows = []
    for text in _rows(path, first_row):
        row: list[float | str] = list(default)
        for pair in _split(text.strip("{} \t")):
            index, _, value = pair.strip().partition(" ")
            attribute = attributes[int(index)]
            known = float("nan") if value == "?" else value
            row[int(index)] = float(known) if attribute.numeric else _unquote(str(known))
            if not attribute.numeric and value != "?":
                _check_declared(attribute, [row[int(index)]])
        rows.append(row)
    columns = list(zip(*rows, strict=True))
    frame = pd.DataFrame({i: list(column) for i, column in enumerate(columns)})
    frame.columns = pd.Index([attribute.name for attribute in attributes])
    return frame


def _split(text: str) -> list[str]:
    """Values separated by commas; quotes of either kind protect a comma."""
    quote = '"' if '"' in text else "'"
    row = next(csv.reader([text], quotechar=quote, escapechar="\\", skipinitialspace=True), [])
    return [value.strip() for value in row]


def _unquote(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text
