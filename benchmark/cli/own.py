"""Commands for one's own work: ranks beside the 17, records as a table."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

from benchmark.cli.arguments import (
    budget,
    check_folder,
    data_refs,
    means_of,
    names,
    own_columns,
    own_results,
    own_store,
    own_tables,
    tell_failures,
)
from benchmark.cli.codes import FAILED, GAPS, OK
from benchmark.progress import say
from benchmark.protocol.spec import DataRef

METRICS = ("balanced_accuracy", "accuracy", "auroc", "weighted_f1")


def ranked(sub: argparse.ArgumentParser) -> None:
    """The words of `rank`."""
    sub.add_argument(
        "--models",
        type=names,
        default=["paper"],
        help="e.g. paper,mymodule:MyModel; `paper` stands for its 17 methods (default: paper)",
    )
    sub.add_argument(
        "--datasets", type=names, help="e.g. colon,vehicle (default: the paper's seven)"
    )
    sub.add_argument(
        "--data",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="your own table, beside --datasets or instead of them; may be repeated",
    )
    own_columns(sub)
    sub.add_argument(
        "--against", metavar="MODEL", help="test this model against each of the others"
    )
    sub.add_argument(
        "--metric", choices=METRICS, default=METRICS[0], help="default: balanced_accuracy"
    )
    sub.add_argument(
        "--budget",
        type=budget,
        default="2m",
        help="how long to do missing runs before ranking: 2m (default), 3h, all, or none",
    )
    sub.add_argument(
        "--to",
        type=Path,
        default=Path("rank"),
        help="folder for index.html, rank.json and the diagram (default: rank)",
    )
    sub.add_argument("--format", choices=["text", "json", "csv"], default="text")


def rank(arguments: argparse.Namespace) -> int:
    """Rank models over datasets: mean ranks, Friedman's test, corrected pairwise tests, ADTM, and a
    diagram of critical differences. The paper's methods come from the shipped records; runs of your
    own models and tables are done first, within the budget. Writes a page of its own."""
    from benchmark import paper
    from benchmark.judge import rank as ranking
    from benchmark.report.ranked import write

    own = own_tables(arguments)
    shown = arguments.datasets or ([] if own else list(paper.DATASETS))
    data = [*(data_refs(shown) if shown else []), *own]
    canonical = {
        name: name if name == ranking.PAPER else _spelled(name, data[0])
        for name in [*arguments.models, *([arguments.against] if arguments.against else [])]
    }
    wanted = ranking.recipe([canonical[name] for name in arguments.models], data, arguments.metric)
    check_folder(arguments.to)
    arguments.results = own_results(arguments.results)
    means = replace(means_of(arguments), store=own_store(arguments.results))
    failures, hopeless = [], 0
    if arguments.budget != 0:
        if arguments.budget is not None:
            means = replace(means, deadline=time.monotonic() + arguments.budget)
        report, hopeless = ranking.run_missing(wanted, means)
        failures = report.failures
        if report.unfinished:
            say(
                f"The budget is used up with {report.unfinished} runs to do; the same command resumes, "
                f"and --budget all does everything."
            )
    against = canonical[arguments.against] if arguments.against else None
    tell_failures(failures)
    found = ranking.build(wanted, own_store(arguments.results), against)
    print(ranking.FORMATS[arguments.format](found))
    say(f"Written to {arguments.to}: {', '.join(p.name for p in write(found, arguments.to))}.")
    return FAILED if failures or hopeless else GAPS if found.missing else OK


def _spelled(name: str, data: DataRef) -> str:
    """A model's one name: settings in their order, a class by its place."""
    from benchmark.protocol.plan import Cell
    from benchmark.protocol.registry import model_ref

    entry, overrides = model_ref(name)
    return Cell(entry, data, overrides).model


def export(arguments: argparse.Namespace) -> int:
    """Write all records as one table, a row per run: settings, scores on all three parts, selected
    features, seconds, checksums. The shipped records are among them, in a wheel too, unless --own."""
    from benchmark.run.frame import check_ending, write
    from benchmark.run.load import load_records

    check_ending(arguments.file)
    frame = load_records(arguments.results, shipped=not arguments.own)
    write(frame, arguments.file)
    print(f"{arguments.file}: {len(frame)} runs of {frame['model'].nunique()} models")
    return OK
