"""The features that a selector selects most often, per class, beside what chance gives."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.figures import style
from benchmark.judge.genes import Genes

MOST = 20
COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.SKY, style.WINE)


def draw(found: Genes) -> Figure:
    genes = found.genes[:MOST]
    classes = list(genes[0].by_class)
    figure = style.figure(style.TWO_COLUMNS, 1.2 + 0.17 * len(genes))
    axes = figure.subplots()
    axes.set_title(f"{style.label(found.model)} on {found.dataset}", loc="left")
    places = range(len(genes))
    axes.barh(places, [100 * g.share for g in genes], color=style.PALE)
    for c, name in enumerate(classes):
        colour = COLOURS[c % len(COLOURS)]
        axes.plot([100 * g.by_class[name] for g in genes], places, "o", ms=3.5, color=colour)
    axes.axvline(100 * found.chance, color=style.BLACK, linewidth=0.8, linestyle=":")
    axes.set_yticks(places, [g.feature.replace("$", r"\$") for g in genes])
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
        f"The {len(genes)} most frequent of {len(found.genes)} features over {found.runs} runs; "
        f"{found.selected:.1f} per sample, stability {stability}. Bars: all samples; points: classes. "
        f"Dotted: what no feature exceeds by chance (95 %).",
    )
    return figure
