"""A ranking as files: its numbers, and the diagram of critical differences."""

from __future__ import annotations

from pathlib import Path

from benchmark.files import write_atomic
from benchmark.judge.rank import METRICS, Ranked, to_csv, to_json, to_text
from benchmark.progress import say

DIAGRAM = "critical-difference"


def write(ranked: Ranked, to: Path) -> list[Path]:
    """Write a ranking to a folder; returns the files."""
    texts = {"rank.md": to_text(ranked), "rank.csv": to_csv(ranked), "rank.json": to_json(ranked)}
    for name, text in texts.items():
        write_atomic(to / name, (text + "\n").encode())
    return [*(to / name for name in texts), *_diagram(ranked, to)]


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
