"""The paper against itself: everything it derives or states, recomputed from what it prints.

Who is better than whom is not here: those sentences are claims, which are checked on the printed
cells and on ours by the same machine.
"""

from __future__ import annotations

from functools import cache

from benchmark.judge.audit import bounds, derived, repeats, statements
from benchmark.judge.audit.findings import FAILS, TEXT, Finding, Key, Sheet
from benchmark.judge.audit.findings import sheet as as_printed


def audit(sheet: Sheet | None = None) -> list[Finding]:
    """All findings, table by table, the prose last."""
    return list(_as_printed()) if sheet is None else _audit(sheet)


@cache
def _as_printed() -> tuple[Finding, ...]:
    """What the paper prints never changes, so it is audited once."""
    return tuple(_audit(as_printed()))


def _audit(sheet: Sheet) -> list[Finding]:
    modules = (derived, repeats, bounds, statements)
    found = [finding for module in modules for finding in module.all_findings(sheet)]
    return sorted(found, key=lambda finding: (finding.table == TEXT, finding.table))


def doubtful(findings: list[Finding]) -> dict[Key, Finding]:
    """The printed cells that cannot be right as they stand, with the first finding that says so."""
    cells: dict[Key, Finding] = {}
    for finding in findings:
        if finding.verdict == FAILS:
            for place in finding.cells:
                cells.setdefault(place, finding)
    return cells
