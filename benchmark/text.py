"""Numbers and tables as text: one spelling of each for the whole project."""

from __future__ import annotations

from collections.abc import Sequence


def grid(lines: Sequence[Sequence[str]]) -> str:
    """Rows of text as an aligned Markdown table; the first row is the head."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    rule = ["-" * width for width in widths]
    rows = [lines[0], rule, *lines[1:]]
    return "\n".join(
        "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    )


def mean_std(
    mean: float | None, std: float | None = None, decimals: int = 2, nothing: str = "-"
) -> str:
    """`71.65 ± 12.03`; the mean alone without a standard deviation, `nothing` without a mean."""
    if mean is None:
        return nothing
    return f"{mean:.{decimals}f}" + ("" if std is None else f" ± {std:.{decimals}f}")
