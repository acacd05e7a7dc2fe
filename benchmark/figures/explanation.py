"""One prediction explained: its nearest prototypes, and the features that its gates let through."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from benchmark.figures import style
from benchmark.runner.fitted import Explanation

MOST = 20
"""Features that are drawn; the text has all of them."""


def draw(found: Explanation) -> Figure:
    features = found.features[:MOST]
    rows = max(len(features), len(found.prototypes), 1)
    figure = style.figure(style.TWO_COLUMNS, 1.0 + 0.16 * rows)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.6])
    style.panel(left, "a", "nearest prototypes")
    names = [f"{p.id} ({p.label})" for p in found.prototypes]
    agree = [p.label == found.prediction.predicted for p in found.prototypes]
    left.barh(
        range(len(names)),
        [p.distance for p in found.prototypes],
        color=[style.BLUE if same else style.ORANGE for same in agree],
    )
    left.set_yticks(range(len(names)), [name.replace("$", r"\$") for name in names])
    left.set_xlabel("distance after masking")
    style.panel(right, "b", f"selected features: {len(found.features)} of {found.n_features}")
    right.barh(
        range(len(features)),
        [f.gate for f in features],
        color=[style.GREEN if f.globally else style.SKY for f in features],
    )
    right.set_yticks(range(len(features)), [f.feature.replace("$", r"\$") for f in features])
    right.set_xlim(0, 1)
    right.set_xlabel("gate")
    for axes in (left, right):
        axes.invert_yaxis()
        axes.grid(axis="y", visible=False)
    one = found.prediction
    style.note(
        figure,
        f"Sample {one.id} is predicted {one.predicted} by its nearest prototypes. Blue bars on the left "
        f"vote for it, orange ones do not. On the right, green features are selected globally too.",
        f"The {MOST} widest gates of {len(found.features)}." * (len(found.features) > MOST),
    )
    return figure


def write(found: Explanation, name: str, folder: Path) -> list[Path]:
    with style.applied():
        return style.save(draw(found), name, folder)
