"""Words that all of a table's modules need: names in messages, labels as text, what a gap looks like."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MAX_CLASSES = 100
"""More different labels than this are measurements rather than classes."""

GAPS = frozenset({"", "?", "nan", "NaN", "-nan", "-NaN", "#N/A", "<NA>"})
"""What stands for a missing label in a text file, whatever the other labels are."""

GAPS_OR_CLASSES = frozenset({"None", "NA", "N/A", "n/a", "NULL", "null"})
"""Missing labels among numbers, but classes among names: no treatment, North America."""


def listed(names: Iterable[object], at_most: int = 8) -> str:
    shown = [repr(str(name)) for name in names]
    more = f" and {len(shown) - at_most} more" if len(shown) > at_most else ""
    return ", ".join(shown[:at_most]) + more


def label(name: Any) -> str:
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name).strip()
