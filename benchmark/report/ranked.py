"""A ranking as files: a page, its numbers, and the diagram of critical differences."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmark import paper
from benchmark.files import read_whole, write_atomic
from benchmark.judge.pairwise import pairs
from benchmark.judge.rank import (
    Ranked,
    Standing,
    about,
    reasons,
    to_csv,
    to_json,
    to_text,
    untuned,
)
from benchmark.progress import say
from benchmark.protocol.plan import keys_of
from benchmark.protocol.spec import METRICS
from benchmark.report.archive import Archive, surroundings
from benchmark.report.gather import basics, between
from benchmark.report.page import RANKING, assemble
from benchmark.report.tables import Gathered, editions
from benchmark.runner.records import Store
from benchmark.tables import statistics as stats
from benchmark.tables.table import Table

DIAGRAM = "critical-difference"


def write(ranked: Ranked, store: Store, to: Path) -> list[Path]:
    """Write a ranking to a folder; returns the files, the page first."""
    texts = {"rank.md": to_text(ranked), "rank.csv": to_csv(ranked), "rank.json": to_json(ranked)}
    for name, text in texts.items():
        write_atomic(to / name, (text + "\n").encode())
    diagram = _diagram(ranked, to)
    page = assemble(_page(ranked, store, to), RANKING)
    write_atomic(to / "index.html", page.encode())
    return [to / "index.html", *(to / name for name in texts), *diagram]


def _page(ranked: Ranked, store: Store, to: Path) -> dict[str, Any]:
    """What the page shows: the ranking, and of its cells what the report tells of a cell."""
    places = {one.method: place for place, one in enumerate(ranked.standings)}
    rows = sorted(ranked.table.rows, key=lambda row: places[row.method])
    table = replace(ranked.table, rows=tuple(rows))
    archive = _archive(table, store)
    gathered = Gathered(archive, {})
    shown = gathered.table(table)
    methods, datasets = table.ranked
    word = METRICS[ranked.metric]
    drawn = to / f"{DIAGRAM}.svg"
    return {
        **basics(),
        "editions": {"rule": editions()["rule"]},
        "tables": [shown],
        "pairs": [between(pair) for pair in pairs(table)],
        "rank": {
            "title": table.recipe.title,
            "lead": f"{len(methods)} methods ranked by {word} on {', '.join(datasets)}.",
            "standings": [_standing(one) for one in ranked.standings],
            "about": about(ranked),
            "notes": untuned(table),
            "gaps": reasons(table),
            "pairs": f"Points of {word} over {stats.RUNS} paired runs.",
            "against": _label(ranked),
            "tests": [between(pair) for pair in ranked.pairs] if ranked.against else [],
            "diagram": {
                "title": "Critical differences",
                "svg": read_whole(drawn).decode(),
                "caption": f"Mean ranks by {word}. Methods that a bar joins cannot be told apart.",
            }
            if drawn.is_file()
            else None,
        },
        "environment": surroundings(archive, gathered.provenance),
        "settings": gathered.settings.values,
        "choices": gathered.choices.values,
        "runs": gathered.runs.values,
    }


def _label(ranked: Ranked) -> str | None:
    labels = {one.method: one.label for one in ranked.standings}
    return labels[ranked.against] if ranked.against else None


def _standing(one: Standing) -> dict[str, Any]:
    return {
        "label": one.label,
        "own": one.method not in paper.METHODS,
        "rank": [f"{x:.2f}" for x in (one.rank, one.rank_std) if x is not None],
        "adtm": [] if one.adtm is None else [f"{one.adtm:.1f}"],
        "datasets": one.datasets,
        "wins": one.wins,
        "losses": one.losses,
    }


def _archive(table: Table, store: Store) -> Archive:
    """The records behind the cells, one's own from their folder and the others as they ship."""
    archive, verify = Archive(store), "python -m benchmark verify"
    if store.root != Path("results"):
        verify += f" --results {shlex.quote(str(store.root))}"
    for result in table.shown:
        cell = table.recipe.cell(result.method, result.dataset)
        if cell is None or result.params is None:
            continue
        _, keys = keys_of(cell, result.params)
        for key, record in store.find(list(keys))[0].items():
            if store.path(key).is_file():
                archive.add(record, f"{store.root}/runs", verify)
            else:
                archive.add_shipped(record)
    return archive


def _diagram(ranked: Ranked, to: Path) -> list[Path]:
    for suffix in (".png", ".svg"):  # of an earlier ranking, perhaps of other models
        (to / f"{DIAGRAM}{suffix}").unlink(missing_ok=True)
    if ranked.test is None:
        say("No diagram: critical differences need three methods on two datasets.")
        return []
    from benchmark.figures import style
    from benchmark.figures.critical_difference import draw_ranking

    labels = {one.method: one.label for one in ranked.standings}
    bold = ranked.against or next((m for m in labels if m not in style.LOOKS), "protogate")
    datasets = ", ".join(ranked.table.ranked[1])
    with style.applied():
        note = f"By {METRICS[ranked.metric]} on {datasets}."
        figure = draw_ranking(ranked.test, labels.__getitem__, bold, note)
    return style.save(figure, DIAGRAM, to)
