"""What a figure was drawn from, so that it is drawn again only when that has changed.

`inputs.json` beside the figures holds a checksum of each one's inputs (what it read, the code that
draws, the libraries' versions) and of its files. Times of files and the machine have no part in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.files import write_atomic
from benchmark.protocol.registry import models
from benchmark.protocol.spec import canonical, digest

NAME = "inputs.json"
SUFFIXES = (".png", ".svg")
LENGTH = 16
CODE = (
    "figures/*.py",
    "paper/__init__.py",
    "paper/reference.csv",
    "protocol/registry.py",
    "judge/ranks.py",
    "tables/statistics.py",
)
"""What runs or is read while a figure is drawn. What runs before shows in what the figure reads."""
LIBRARIES = ("matplotlib", "numpy", "pillow", "kiwisolver", "scipy")
"""Drawing, arithmetic, pixels, arrangement, and the tests in a figure."""


def checksum(data: Any) -> str:
    """Of what a figure is drawn from."""
    return digest([_tools(), _plain(data)], LENGTH)


@cache
def _tools() -> list[str]:
    package = Path(str(files("benchmark")))
    sources = [path for pattern in CODE for path in sorted(package.glob(pattern))]
    return [
        *(f"{name} {version(name)}" for name in LIBRARIES),
        *(f"{name} is called {entry.label}" for name, entry in models().items()),
        *(digest([path.name, path.read_text("utf-8")], LENGTH) for path in sources),
    ]


def _plain(value: Any) -> Any:
    """The same as JSON, in which different values are different texts."""
    if isinstance(value, float):
        return [repr(value)]  # JSON has no nan
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):  # the order may be one in which things are drawn
        return [[_plain(key), _plain(item)] for key, item in value.items()]
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).hexdigest()]
    if is_dataclass(value):
        return [type(value).__name__, *(_plain(getattr(value, f.name)) for f in fields(value))]
    raise TypeError(f"a figure reads {type(value).__name__}, which has no checksum: {value!r}")


def read(folder: Path) -> dict[str, dict[str, str]]:
    """By figure: the checksums of its inputs and files. Without a readable file, nothing is known."""
    try:
        known = json.loads((folder / NAME).read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def entry(name: str, data: Any, folder: Path) -> dict[str, str]:
    """What `read` tells of a figure that was drawn from `data` and whose files are in `folder`."""
    paths = [folder / f"{name}{suffix}" for suffix in SUFFIXES]
    contents = {path.suffix[1:]: path.read_bytes() for path in paths if path.is_file()}
    return {
        "inputs": checksum(data),
        **{kind: hashlib.sha256(c).hexdigest()[:LENGTH] for kind, c in contents.items()},
    }


def write(folder: Path, known: Mapping[str, dict[str, str]]) -> Path:
    """Keep what is known of the figures in a folder."""
    lines = [f"{json.dumps(name)}: {canonical(known[name])}" for name in sorted(known)]
    write_atomic(folder / NAME, ("{\n" + ",\n".join(lines) + "\n}\n").encode())
    return folder / NAME
