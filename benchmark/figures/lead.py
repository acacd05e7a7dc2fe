"""ProtoGate's lead over the best other method on each dataset, the paper's and ours with its interval.

The paper's main claim in one picture: right of the line ProtoGate is ahead.
"""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmark.figures import style
from benchmark.judge.answer import TABLE, Lead, leads
from benchmark.protocol.spec import UserError
from benchmark.runner.records import Store
from benchmark.tables.build import build_from


@dataclass(frozen=True)
class Shown:
    leads: list[Lead]
    others: tuple[str, ...]
    """Datasets without a lead."""


def read(store: Store) -> Shown:
    table = build_from(store, TABLE)
    found = leads(table)
    if not found:
        raise UserError(
            "No dataset has ProtoGate and another method complete: "
            "`python -m benchmark reproduce table2` does what is missing."
        )
    known = {lead.dataset for lead in found}
    return Shown(found, tuple(d for d in table.recipe.datasets if d not in known))


def draw(shown: Shown) -> Figure:
    figure = style.figure(style.TWO_COLUMNS, 1.15 + 0.4 * len(shown.leads))
    axes = figure.subplots()
    own = style.look("protogate")
    axes.axvline(0, color=style.GREY, linewidth=0.8, zorder=1)
    for place, lead in enumerate(shown.leads):
        axes.plot([lead.low, lead.high], [place + 0.14] * 2, color=own.colour, linewidth=1.6)
        axes.plot(lead.ours, place + 0.14, own.marker, ms=own.size, **style.face(own, False))
        told = f"ours {_signed(lead.ours)} against {lead.other}"
        if lead.paper is not None:
            axes.plot(lead.paper, place - 0.18, own.marker, ms=own.size, **style.face(own, True))
            told = f"paper {_signed(lead.paper)} against {lead.paper_other}\n{told}"
        axes.annotate(
            told,
            (1.01, place),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=style.SMALL,
        )
    axes.set_yticks(range(len(shown.leads)), [lead.dataset for lead in shown.leads])
    axes.set_ylim(len(shown.leads) - 0.45, -0.55)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("ProtoGate minus the best other method (points of balanced accuracy)")
    _directions(axes)
    handles = [
        Line2D([], [], ls="", marker=own.marker, ms=own.size, **style.face(own, True)),
        Line2D([], [], lw=1.6, marker=own.marker, ms=own.size, **style.face(own, False)),
    ]
    words = ["paper", "ours, 95 % interval"]
    figure.legend(handles, words, loc="outside upper left", ncols=2, handlelength=2.6)
    style.note(
        figure,
        "Intervals of the paired runs, corrected for the rows that they share, not for the choice of the "
        "best other method after seeing the runs. Only methods complete on a dataset count.",
        f"ProtoGate or all others incomplete: {', '.join(shown.others)}." * bool(shown.others),
    )
    return figure


def _directions(axes: Axes) -> None:
    """Which side of zero is which."""
    for word, shift, align in (
        ("\N{LEFTWARDS ARROW} behind", -4, "right"),
        ("ahead \N{RIGHTWARDS ARROW}", 4, "left"),
    ):
        axes.annotate(
            word, (0, 1), (shift, 2), ("data", "axes fraction"), "offset points",
            ha=align, va="bottom", fontsize=style.SMALL, color=style.GREY,
        )  # fmt: skip


def _signed(points: float) -> str:
    return f"{points:+.1f}".replace("-", "\N{MINUS SIGN}")
