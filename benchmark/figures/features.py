"""The features that a selector selects most often, per class, beside what chance gives."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.figures import style
from benchmark.judge.features import Selection
from benchmark.protocol import registry

MOST = 20
COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.SKY, style.WINE)


def draw(found: Selection) -> Figure:
    features = found.features[:MOST]
    classes = list(features[0].by_class)
    figure = style.figure(style.TWO_COLUMNS, 1.2 + 0.17 * len(features))
    axes = figure.subplots()
    axes.set_title(f"{registry.label(found.model)} on {found.dataset}", loc="left")
    places = range(len(features))
    axes.barh(places, [100 * f.share for f in features], color=style.PALE)
    for c, name in enumerate(classes):
        colour = COLOURS[c % len(COLOURS)]
        axes.plot([100 * f.by_class[name] for f in features], places, "o", ms=3.5, color=colour)
    axes.axvline(100 * found.chance, color=style.BLACK, linewidth=0.8, linestyle=":")
    axes.set_yticks(places, [f.feature.replace("$", r"\$") for f in features])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("selected for % of the test samples")
    handles = [
        Line2D([], [], marker="o", ls="", ms=3.5, color=COLOURS[c % len(COLOURS)])
        for c in range(len(classes))
    ]
    axes.legend(handles, [name.replace("$", r"\$") for name in classes], loc="lower right")
    stability = "undefined" if found.stability is None else f"{found.stability:.2f}"
    style.note(
        figure,
        f"The {len(features)} most frequent of {len(found.features)} features over {found.runs} runs; "
        f"{found.selected:.1f} per sample, stability {stability}. Bars: all samples; points: classes. "
        f"Dotted: what no feature exceeds by chance (95 %).",
    )
    return figure
