"""One file out of a template, a style, scripts and data. Nothing is fetched when it is opened."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

SCRIPTS = ("dom", "overview", "tables", "cell", "lists", "checks", "surroundings", "main")
"""In the order in which they are joined; they share one scope."""


def assemble(data: dict[str, Any]) -> str:
    """The page as text."""
    script = "\n".join(_part(f"{name}.js") for name in SCRIPTS)
    parts = {
        "style": _part("page.css"),
        "data": as_script(data),
        "script": script,
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
