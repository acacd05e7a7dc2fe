"""Commands that judge the paper: its cells beside ours, its numbers, its sentences."""

from __future__ import annotations

import argparse

from benchmark.cli.arguments import check_results
from benchmark.cli.codes import FAILED, OK
from benchmark.progress import say, waiting


def audit(arguments: argparse.Namespace) -> int:
    """Recompute from the printed cells what the paper derives from them and says about them, and
    list what holds and what does not. The exit code is always 0."""
    from benchmark.judge.audit import audit as check
    from benchmark.judge.audit import findings

    print(findings.FORMATS[arguments.format](check()))
    return OK


def claims(arguments: argparse.Namespace) -> int:
    """Check the paper's sentences, in our words, on its printed cells and on our runs; trains
    nothing. Only cells with all runs count. `holds` and `does not hold`: no missing cell
    can change them, though a fuller search, other seeds or new times can. `holds so far` and `does not hold so far` are about the cells at hand while
    others are missing. `undecided`: between 5 and 95 % of the redraws of our runs bear it out.
    `not enough runs`: nothing can be compared yet. The percentage is the share of 1000 redraws of our
    runs in which the claim holds. A summary stands at the end. The exit code is always 0."""
    from benchmark.judge import answer
    from benchmark.judge.claims import check as sentences
    from benchmark.judge.claims import render as claims_render

    check_results(arguments.results)
    if arguments.only:
        with waiting("checking the claims"):
            some = sentences.build(arguments.results, arguments.only)
        print(claims_render.render(some, arguments.format))
        return OK
    with waiting("checking the claims"):
        found, judged = answer.build(arguments.results)
    print(claims_render.render(judged, arguments.format, found))
    return OK


def compare(arguments: argparse.Namespace) -> int:
    """Put our value beside every printed cell, with a verdict and its reason; trains nothing.
    Exit code 1 if settings known to reproduce a printed cell give another number, else 0. With
    --why, the cells that differ, each with its cause or with all that was tried to find one."""
    check_results(arguments.results)
    if arguments.why:
        from benchmark.judge.causes import find
        from benchmark.judge.causes import render as causes_render

        with waiting("looking for causes"):
            found = find.build(arguments.results, arguments.table)
        print(causes_render.FORMATS[arguments.format](found))
        return OK
    from benchmark.judge.cells import ledger
    from benchmark.judge.cells import render as ledger_render
    from benchmark.runner.shipped import store_at
    from benchmark.tables import pairing
    from benchmark.tables.recipes import read_recipe

    with waiting("comparing with the paper"):
        lines = ledger.build(arguments.results, arguments.table)
        shared = pairing.measured(store_at(arguments.results, remember=True), read_recipe("table2"))
    print(ledger_render.render(lines, arguments.format, arguments.all, shared))
    changed = ledger.regressions(lines)
    for line in changed:
        cell = line.printed
        say(f"not equal: table {cell.table}, {cell.method} {cell.dataset} {cell.metric}")
    return FAILED if changed else OK
