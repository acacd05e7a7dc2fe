"""One file out of a template, a style, scripts and data. Nothing is fetched when it is opened."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

SCRIPTS = (
    "dom", "overview", "ranking", "tables", "cell", "lists", "checks", "surroundings", "main",
)  # fmt: skip
"""In the order in which they are joined; they share one scope."""


@dataclass(frozen=True)
class Frame:
    """What stands around the views. No text of a user's may be in it: it is markup."""

    title: str
    brand: str
    beside: str
    """What lies beside the page for those without JavaScript."""


REPORT = Frame(
    title="ProtoGate, reproduced: every printed number beside ours",
    brand="ProtoGate <span>reproduced</span>",
    beside="table2.md, claims.md, audit.md and so on",
)
RANKING = Frame(title="Ranking", brand="Ranking", beside="rank.md")


def assemble(data: dict[str, Any], frame: Frame = REPORT) -> str:
    """The page as text."""
    script = "\n".join(_part(f"{name}.js") for name in SCRIPTS)
    parts = {
        "style": _part("page.css"),
        "data": as_script(data),
        "script": script,
        **asdict(frame),
    }
    text = _part("page.html")
    before, *rest = text.split("{{")
    pieces = [before]
    for piece in rest:  # one pass: whatever the data hold, it is not taken for a place to fill
        name, _, after = piece.partition("}}")
        pieces += [parts[name], after]
    return "".join(pieces)


def as_script(data: Any) -> str:
    """JSON that may stand inside a script element, where only a few sequences end or open one."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return (
        text.replace("</", "<\\/").replace("<!--", "\\u003c!--").replace("<script", "\\u003cscript")
    )


def _part(name: str) -> str:
    return files("benchmark.report").joinpath(f"page/{name}").read_text("utf-8")
