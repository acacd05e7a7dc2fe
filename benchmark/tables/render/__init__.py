"""A built table as text: for a terminal, Markdown to read, CSV to compute with, LaTeX, JSON.

Functions return text without a final line break; whoever prints or writes it adds one.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmark.tables.render.latex import to_latex
from benchmark.tables.render.markdown import to_markdown
from benchmark.tables.render.terminal import to_terminal
from benchmark.tables.render.values import to_csv, to_json
from benchmark.tables.table import Table

FILES: dict[str, Callable[[Table], str]] = {
    "md": to_markdown,
    "csv": to_csv,
    "tex": to_latex,
    "json": to_json,
}
"""What a report writes, by the ending of the file."""

__all__ = ["FILES", "to_csv", "to_json", "to_latex", "to_markdown", "to_terminal"]
