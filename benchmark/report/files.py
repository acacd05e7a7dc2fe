"""What lies in reports/: every table in four forms, the ledger, audit, claims, deviations, figures
and the page.

All of it is made from records alone, and the same records give the same bytes everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path

from benchmark.files import write_atomic
from benchmark.judge.audit import findings as audit_render
from benchmark.judge.cells import render as ledger_render
from benchmark.protocol.spec import UserError
from benchmark.report.archive import read
from benchmark.report.gather import Judged, gather, judge
from benchmark.report.page import assemble
from benchmark.run.records import Store
from benchmark.tables import render
from benchmark.tables.build import build_from
from benchmark.tables.recipes import catalogue
from benchmark.tables.table import Table

Step = Callable[[str], None]
"""Is told what was just finished."""


def steps(everything: bool) -> int:
    """How many steps are told."""
    from benchmark.figures import FIGURES

    # Tables one by one, then judgements, records and the page; and each figure.
    return len(catalogue()) + 3 + (len(FIGURES) if everything else 0)


def write_page(results: Path, to: Path, step: Step = lambda _: None) -> list[Path]:
    """Write index.html, with the figures that lie in `to`; returns its path."""
    store = Store(results, remember=True)
    built = _tables(store, step)
    judged = judge(store, built)
    step("judgements")
    return [_write_page(store, built, judged, to, step)]


def write_table(table: Table, to: Path) -> list[Path]:
    """Write one table in every form; returns the paths."""
    forms = {kind: form(table) for kind, form in render.FORMATS.items()}
    return [_write(to / f"{table.recipe.name}.{kind}", text) for kind, text in forms.items()]


def write_reports(
    results: Path, to: Path, step: Step = lambda _: None, figures: bool = True
) -> list[Path]:
    """Write everything that reports/ holds; without `figures`, those in `to` are taken as they are.

    Returns the paths, the page last.
    """
    store = Store(results, remember=True)
    # Drawing takes longer than everything else, so it goes on beside it.
    with _pool() if figures else nullcontext() as pool:
        drawn = _draw_all(pool, results, to / "figures") if pool else {}
        built = _tables(store, step)
        written = [path for table in built.values() for path in write_table(table, to)]
        judged = judge(store, built)
        step("judgements")
        written += _write_texts(judged, to)
        for name, future in drawn.items():
            written += future.result()
            step(name)
    return [*written, _write_page(store, built, judged, to, step)]


def _tables(store: Store, step: Step) -> dict[str, Table]:
    built = {}
    for name in catalogue():
        built[name] = build_from(store, name)
        step(name)
    return built


def _write_texts(judged: Judged, to: Path) -> list[Path]:
    """Everything that is neither a table nor a drawing."""
    from benchmark.experiments import fidelity
    from benchmark.judge import discrepancies, pairwise
    from benchmark.judge.claims import render as claims_render

    forms = ("md", "csv", "json")
    texts = {
        **{f"ledger.{form}": ledger_render.render(judged.lines, form) for form in forms},
        **{f"audit.{form}": f(judged.findings) for form, f in audit_render.FORMATS.items()},
        **{f"claims.{form}": claims_render.render(judged.claims, form) for form in forms},
        "DEVIATIONS.md": discrepancies.to_markdown(judged.deviations),
        "deviations.json": discrepancies.to_json(judged.deviations),
        "pairwise.md": pairwise.to_markdown(judged.pairs),
        "pairwise.json": pairwise.to_json(judged.pairs),
        "fidelity.md": fidelity.to_markdown(judged.fidelity),
        "fidelity.json": fidelity.to_json(judged.fidelity),
    }
    return [_write(to / name, text) for name, text in texts.items()]


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(min(4, os.cpu_count() or 1), mp_context=get_context("spawn"))


def _draw_all(pool: Executor, results: Path, to: Path) -> dict[str, Future[list[Path]]]:
    from benchmark.figures import FIGURES

    return {name: pool.submit(_draw, name, results, to) for name in FIGURES}


def _draw(name: str, results: Path, to: Path) -> list[Path]:
    """Draw a figure if the records allow it; else a text says why not."""
    from benchmark.figures import write

    try:
        return write(name, results, to)
    except UserError:
        return [to / f"{name}.md"]


def _write_page(
    store: Store, built: dict[str, Table], judged: Judged, to: Path, step: Step
) -> Path:
    archive = read(store)
    step("records")
    data = gather(archive, built, judged, to / "figures")
    path = _write(to / "index.html", assemble(data))
    step("page")
    return path


def _write(path: Path, text: str) -> Path:
    write_atomic(path, (text.rstrip("\n") + "\n").encode())
    return path
