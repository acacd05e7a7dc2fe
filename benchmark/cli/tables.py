"""Commands that show what the records say: status, tables, figures, the page."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Any

from benchmark.cli.arguments import (
    check_folder,
    check_results,
    has_records,
    means_of,
    tell_failures,
)
from benchmark.cli.codes import FAILED, GAPS, OK
from benchmark.cli.listing import table_list
from benchmark.progress import say
from benchmark.protocol import registry
from benchmark.protocol.spec import UserError
from benchmark.tables.recipes import catalogue

if TYPE_CHECKING:
    from benchmark.tables.table import Table


def status(arguments: argparse.Namespace) -> int:
    """Count the records per model and dataset, list failures with their reason, and name every
    file that is not a record. With a table: what it needs and what is missing."""
    from benchmark.tables.status import counts, needed, to_text

    check_results(arguments.results)
    if arguments.table:
        rows, complete = needed(table_name(arguments.table), arguments.results)
    else:
        rows, complete = counts(arguments.results)
    print(json.dumps(rows, indent=1) if arguments.format == "json" else to_text(rows))
    return OK if complete else GAPS


def table(arguments: argparse.Namespace) -> int:
    """Build a table from the records that exist; trains nothing. Gaps are shown with a reason."""
    from benchmark.tables import descriptive
    from benchmark.tables.build import build_table

    number = int(text) if (text := arguments.number.removeprefix("table")).isdigit() else 0
    if number in (*descriptive.TITLES, *descriptive.WITHOUT_NUMBERS):
        form = descriptive.FORMATS.get(arguments.format)
        if form is None:
            raise UserError(f"Table {number} describes; it is there as text, md, csv and json.")
        print(form(number, descriptive.facts(number)))
        return OK
    if not has_records(arguments.results):
        say(
            f"There is no results folder {arguments.results}, so nothing stands beside the paper; "
            f"--results names another."
        )
    built = build_table(table_name(arguments.number), arguments.results)
    print(_as_asked(built, arguments))
    return OK if built.complete else GAPS


def _as_asked(built: Table, arguments: argparse.Namespace) -> str:
    from benchmark.tables import render

    if arguments.format != "text":
        return render.FILES[arguments.format](built)
    terminal = sys.stdout.isatty()
    return render.to_terminal(built, paper=arguments.paper or terminal, grey=terminal)


def figure(arguments: argparse.Namespace) -> int:
    """Draw figures of the paper, and some that it does not have, from the records that exist; trains
    nothing. The paper's own numbers stand beside ours, and a grey note names what is missing. Exit
    code 3 if the records are not enough to draw one, or if there are none."""
    from benchmark import figures
    from benchmark.progress import Progress
    from benchmark.runner.shipped import store_at

    every = arguments.names == ["all"]
    names = list(figures.FIGURES) if every else [figure_name(text) for text in arguments.names]
    check_results(arguments.results)
    check_folder(arguments.to, "--to")
    drawn, missing = [], []
    with Progress(len(names), "figures") as progress:
        for name in names:
            try:
                files = figures.write(name, arguments.results, arguments.to)
            except UserError as error:
                missing.append(f"{name}: {error}")
            else:
                drawn.append(f"{name}: {', '.join(map(str, files))}")
            progress.step(name)
    for line in drawn:  # a bar would take them to stderr
        print(line)
    for message in missing:
        say(message)
    empty = store_at(arguments.results).empty
    if drawn and empty:
        say(f"There are no runs in {arguments.results}: what was drawn shows the paper alone.")
    return GAPS if missing or empty else OK


def report(arguments: argparse.Namespace) -> int:
    """Write one page, index.html, that shows every table with the paper's values beside ours, the
    runs behind each cell, figures, claims, audit and environment. It needs no network and no other
    file. Made from records alone; trains nothing."""
    from benchmark import report as reports
    from benchmark.progress import Progress

    check_results(arguments.results)
    check_folder(arguments.to, "--to")
    with Progress(reports.steps(arguments.all), "report") as progress:
        write = reports.write_reports if arguments.all else reports.write_page
        *_, page = write(arguments.results, arguments.to, progress.step)
    print(page)
    return OK


def reproduce(arguments: argparse.Namespace) -> int:
    """Do the runs that a table is missing, then show it and write it to reports/. Datasets that
    are not at hand and cannot be downloaded leave gaps; everything else goes on."""
    from dataclasses import replace

    from benchmark.judge import answer
    from benchmark.report import write_table
    from benchmark.runner.shipped import store_at
    from benchmark.tables.build import build_table
    from benchmark.tables.needs import named
    from benchmark.tables.reproduce import fill

    name = table_name(arguments.table)
    models, datasets = named(name, arguments.models, arguments.datasets)
    check_folder(arguments.reports, "--reports")
    means = means_of(arguments, store_at(arguments.results))
    if arguments.budget is not None:
        means = replace(means, deadline=time.monotonic() + arguments.budget)
        say(f"At most {arguments.budget:g} s of runs, then the table; --budget changes it.")
    failures: list[dict[str, Any]] = []
    try:
        failures = fill(name, means, models, datasets, arguments.quick)
    except KeyboardInterrupt:
        say("\nStopped; finished runs are kept. The table as it is now:")
    built = build_table(name, arguments.results)
    write_table(built, arguments.reports)
    if name == answer.TABLE and arguments.format == "text":
        found, _ = answer.build(arguments.results)
        print(*(textwrap.fill(text, 100) for text in found.sentences), sep="\n\n", end="\n\n")
    print(_as_asked(built, arguments))
    say(f"Written to {arguments.reports}/{name}.md and .csv.")
    tell_failures(failures)
    complete = built.has(models, datasets)
    return FAILED if failures else OK if complete else GAPS


def table_name(text: str) -> str:
    name = f"table{text}" if text.isdigit() else text
    if name.startswith("figure"):
        raise UserError(f"{name} is no table; `python -m benchmark figure {name}` draws figures.")
    if name not in catalogue():
        registry.check_name("table", name, [table["name"] for table in table_list()])
        raise UserError(f"{name} describes; there are no runs behind it. `table` shows it.")
    return name


def figure_name(text: str) -> str:
    from benchmark.figures import FIGURES

    name = f"figure{text}" if text.isdigit() else text
    registry.check_name("figure", name, FIGURES)
    return name


def figure_list() -> str:
    from benchmark.figures import FIGURES

    width = max(map(len, FIGURES)) + 2
    return "figures\n" + "\n".join(f"  {n:<{width}}{t}" for n, t in FIGURES.items())
