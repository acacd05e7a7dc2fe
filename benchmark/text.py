"""Numbers and tables as text: one spelling of each for the whole project."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

DIM, PLAIN = "\ue000", "\ue001"
"""Stand for the terminal's codes for grey text and its end, which only cli/terminal.py may write."""


def visible(text: str) -> str:
    """The text with its control characters spelled out: what a model or a table says must not move
    the cursor, colour the terminal or hide what was printed before."""
    return (
        text
        if text.isprintable()
        else _UNSEEN.sub(lambda m: m[0].encode("unicode-escape").decode(), text)
    )


_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def first_line(text: str) -> str:
    """The first line that says something."""
    return next((visible(line) for line in text.splitlines() if line.strip()), "(no message)")


def counted(number: int, noun: str) -> str:
    """`1 column`, `2 columns`, `3 classes`."""
    ending = "" if number == 1 else "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{ending}"


def csv_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as CSV, without the last end of line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue().removesuffix("\n")


def grid(lines: Sequence[Sequence[str]]) -> str:
    """Rows of text as an aligned Markdown table; the first row is the head."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    rule = ["-" * width for width in widths]
    rows = [lines[0], rule, *lines[1:]]
    return "\n".join(
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    )


def columns(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Rows of text for a terminal, in columns as wide as they need; numbers go to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = (
        "  ".join(
            text.rjust(width) if i in right else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(f"  {line}".rstrip() for line in lines)


def mean_std(
    mean: float | None, std: float | None = None, decimals: int = 2, nothing: str = "-"
) -> str:
    """`71.65 ± 12.03`; the mean alone without a standard deviation, `nothing` without a mean."""
    if mean is None:
        return nothing
    return f"{mean:.{decimals}f}" + ("" if std is None else f" ± {std:.{decimals}f}")
