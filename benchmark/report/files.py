"""What lies in reports/: every table as Markdown and CSV, the ledger, audit, claims, discrepancies, figures
and the page.

All of it is made from records alone, and the same records give the same bytes everywhere.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmark.files import write_atomic
from benchmark.judge.answer import in_readme
from benchmark.judge.audit import findings as audit_render
from benchmark.judge.cells import render as ledger_render
from benchmark.protocol.spec import UserError
from benchmark.report.archive import read
from benchmark.report.gather import Judged, gather, judge
from benchmark.report.page import assemble
from benchmark.runner.records import Store
from benchmark.runner.shipped import store_at
from benchmark.tables import descriptive, render
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
    store = store_at(results, remember=True)
    built = _tables(store, step)
    judged = judge(store, built)
    step("judgements")
    return [_write_page(store, built, judged, to, step)]


def write_table(table: Table, to: Path) -> list[Path]:
    """Write one table to read and to compute with; returns the paths. `table --format` has more forms."""
    forms = {kind: render.FILES[kind](table) for kind in ("md", "csv")}
    return [_write(to / f"{table.recipe.name}.{kind}", text) for kind, text in forms.items()]


def write_reports(
    results: Path, to: Path, step: Step = lambda _: None, figures: bool = True
) -> list[Path]:
    """Write everything that reports/ holds; without `figures`, those in `to` are taken as they are.

    Returns the paths, the page last.
    """
    store = store_at(results, remember=True)
    built = _tables(store, step)
    written = [path for table in built.values() for path in write_table(table, to)]
    # Drawing takes longer than everything else, so it goes on beside it.
    with _pool() as pool:
        drawings = _start_drawing(pool, store, to / "figures") if figures else []
        judged = judge(store, built)
        step("judgements")
        written += _write_texts(judged, to)
        _write_readme(judged, to.resolve().parent / "README.md")
        written += _finish_drawing(drawings, store, to / "figures", step) if figures else []
    return [*written, _write_page(store, built, judged, to, step)]


def _tables(store: Store, step: Step) -> dict[str, Table]:
    built = {}
    for name in catalogue():
        built[name] = build_from(store, name)
        step(name)
    return built


def _write_texts(judged: Judged, to: Path) -> list[Path]:
    """Everything that is neither a table nor a drawing."""
    from benchmark.experiments import fidelity, fingerprint
    from benchmark.judge import discrepancies, pairwise, times
    from benchmark.judge.causes import render as causes
    from benchmark.judge.claims import render as claims_render

    forms = ("md", "csv", "json")
    described = {
        f"table{n}.{form}": descriptive.FORMATS[form](n, descriptive.facts(n))
        for n in descriptive.TITLES
        for form in ("md", "csv")
    }
    texts = {
        **described,
        "ledger.csv": ledger_render.render(judged.lines, "csv"),
        "times.md": times.to_markdown(judged.times),
        **{f"audit.{form}": f(judged.findings) for form, f in audit_render.FORMATS.items()},
        **{
            f"claims.{form}": claims_render.render(judged.claims, form, judged.answer)
            for form in forms
        },
        "DISCREPANCIES.md": discrepancies.to_markdown(judged.discrepancies),
        "discrepancies.json": discrepancies.to_json(judged.discrepancies),
        "causes.md": causes.to_markdown(judged.causes),
        "fingerprint.md": fingerprint.to_markdown(judged.prints),
        "pairwise.md": pairwise.to_markdown(judged.pairs),
        "pairwise.json": pairwise.to_json(judged.pairs),
        "fidelity.md": fidelity.to_markdown(judged.fidelity),
        "fidelity.json": fidelity.to_json(judged.fidelity),
    }
    return [_write(to / name, text) for name, text in texts.items()]


def _write_readme(judged: Judged, path: Path) -> None:
    """The answer, in a README beside the reports that has a place for it."""
    text = path.read_text("utf-8") if path.is_file() else ""
    told = in_readme(text, judged.answer)
    if told != text:
        write_atomic(path, told.encode())


def _pool() -> ProcessPoolExecutor:
    """Processes that start with the first figure that they are given."""
    return ProcessPoolExecutor(min(4, os.cpu_count() or 1), mp_context=get_context("spawn"))


@dataclass(frozen=True)
class _Drawing:
    """A figure on its way: with its data, or with the reason why there are none."""

    name: str
    data: Any = None
    error: UserError | None = None
    files: Future[list[Path]] | None = None
    """None if those in the folder are what would be drawn."""


def _start_drawing(pool: Executor, store: Store, to: Path) -> list[_Drawing]:
    """Read what the figures show, and have those drawn whose inputs have changed."""
    from benchmark.figures import FIGURES, inputs, read, save

    known, drawings = inputs.read(to), []
    for name in FIGURES:
        try:
            data = read(name, store)
        except UserError as error:
            drawings.append(_Drawing(name, error=error))
            continue
        changed = inputs.entry(name, data, to) != known.get(name)
        files = pool.submit(save, name, data, to) if changed else None
        drawings.append(_Drawing(name, data, files=files))
    return drawings


def _finish_drawing(drawings: Sequence[_Drawing], store: Store, to: Path, step: Step) -> list[Path]:
    """Wait for the figures; returns all files of their folder."""
    from benchmark.figures import explain, inputs

    written, known = [], {}
    for drawing in drawings:
        name = drawing.name
        if drawing.error:
            written.append(explain(name, drawing.error, store.root, to))
        else:
            if drawing.files:
                drawing.files.result()
            (to / f"{name}.md").unlink(missing_ok=True)  # of the time when it could not be drawn
            written += [to / f"{name}{suffix}" for suffix in inputs.SUFFIXES]
            known[name] = inputs.entry(name, drawing.data, to)
        step(name)
    return [*written, inputs.write(to, known)]


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
