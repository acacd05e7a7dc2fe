"""The command line: one small function per verb.

Each verb imports what it needs inside its function, so that `--help`, `list` and a typo never wait
for a numerical library. A UserError becomes a message; anything else is a bug and keeps its
traceback.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import benchmark
from benchmark import registry
from benchmark.progress import say
from benchmark.runtime import ONE_THREAD
from benchmark.spec import FAILURES, FOLDS, REPEATS, DataRef, UserError

if TYPE_CHECKING:
    from benchmark.campaign import Means
    from benchmark.plan import Cell, Protocol

OK, FAILED, USAGE, GAPS, INTERRUPTED = 0, 1, 2, 3, 130

DESCRIPTION = """\
Reproduce the tables of ProtoGate (ICML 2024), and put your own method or your own table of
patients under the same protocol: five times a stratified five-fold split, 10 % validation.
"""

EPILOG = """\
examples
  python -m benchmark list                                    what there is
  python -m benchmark data status                             which datasets are at hand
  python -m benchmark run --models knn,svm:kernel=poly --datasets colon
  python -m benchmark tune --models ridge --datasets colon    choose C as the paper does
  python -m benchmark run --data patients.csv --target diagnosis --models knn,rf
  python -m benchmark table 2                                 beside the paper, from records alone
  python -m benchmark reproduce table2                        run what is missing, then show it

Names take switches: svm:kernel=rbf, syn1:generator=fixed. Lists are separated by commas.
Interrupt whenever you like: finished runs are kept and the same command goes on from there.

exit code
  0 everything asked for exists   1 some runs failed   2 wrong usage   3 there are gaps
"""


def main(argv: list[str] | None = None) -> int:
    """Parse, dispatch, and turn what a user can mend into a message."""
    arguments = parser().parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGINT):  # a background job inherits SIGINT as ignored
        signal.signal(number, _interrupt)
    os.environ.update(ONE_THREAD)  # before numpy is imported
    try:
        if getattr(arguments, "data_dir", None):
            os.environ["BENCHMARK_DATA"] = str(Path(arguments.data_dir).resolve())
        return int(arguments.verb(arguments))
    except UserError as error:
        say(f"error: {error}")
        return USAGE
    except KeyboardInterrupt:
        say("\nStopped. Finished runs are kept; the same command goes on from there.")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output, `head` for example, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as error:
        say(
            f"error: {error.strerror or error}: {error.filename or 'a file'}. Finished runs are kept."
        )
        return FAILED


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


# ---------------------------------------------------------------------------- the words


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m benchmark",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=benchmark.__version__)
    verbs = top.add_subparsers(title="verbs", required=True, metavar="VERB")

    def verb(name: str, function: Any, help: str, *parts: Any) -> argparse.ArgumentParser:
        sub = verbs.add_parser(
            name,
            help=help,
            description=textwrap.fill(" ".join((function.__doc__ or help).split()), 90),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for part in parts:
            part(sub)
        sub.set_defaults(verb=function)
        return sub

    sub = verb("list", list_, "models, datasets and tables that exist")
    sub.add_argument("what", nargs="?", choices=["models", "datasets", "tables"], help="only these")
    sub.add_argument("--format", choices=["text", "json"], default="text")

    sub = verb("data", data, "where the data are; fetch or import them", _data_dir)
    sub.add_argument("action", choices=["status", "get", "import"])
    sub.add_argument("names", nargs="*", metavar="NAME", help="datasets; for import: NAME PATH")

    sub = verb("run", run, "do the 25 runs of models on datasets", _what, _how, _data_dir)
    sub.add_argument(
        "--settings",
        choices=["auto", "default", "tuned", "published"],
        default="auto",
        help="auto (default): what `tune` has chosen for the model, with the switches that are "
        "named, else the registry's defaults; tuned: what it has chosen for just these switches; "
        "published: what reproduces the printed cell, where that is known",
    )

    sub = verb("tune", tune, "choose settings by validation score", _what, _how, _data_dir)
    _quick(sub)

    sub = verb("status", status, "what has been run, what failed and why", _results)
    sub.add_argument("table", nargs="?", help="only what this table needs, e.g. table2")
    sub.add_argument("--format", choices=["text", "json"], default="text")

    sub = verb("table", table, "a table of the paper, from the records that exist", _results)
    sub.add_argument("number", help="2, or the name of a recipe (`list tables`)")
    sub.add_argument("--format", choices=["md", "csv", "tex", "json"], default="md")

    sub = verb("figure", figure, "draw a figure of the paper from the records that exist", _results)
    sub.epilog = _figures()
    sub.add_argument("names", nargs="+", metavar="FIGURE", help="3, a name listed below, or all")
    sub.add_argument(
        "--to",
        type=Path,
        default=Path("reports/figures"),
        help="folder for FIGURE.png and FIGURE.svg (default: reports/figures)",
    )

    sub = verb("audit", audit, "check the paper's numbers against each other")
    sub.add_argument("--format", choices=["md", "csv", "json"], default="md")

    sub = verb("claims", claims, "the paper's sentences as checks, on its cells and ours", _results)
    sub.add_argument(
        "--only", action="append", metavar="ID", help="only this claim, e.g. top-three (repeatable)"
    )
    sub.add_argument("--format", choices=["text", "md", "csv", "json"], default="text")

    sub = verb("compare", compare, "every published cell beside ours, with a verdict", _results)
    sub.add_argument(
        "--table", type=_positive, action="append", metavar="N", help="only this table (repeatable)"
    )
    sub.add_argument("--format", choices=["md", "csv", "json", "html"], default="md")
    sub.add_argument(
        "--all", action="store_true", help="in Markdown, also cells with nothing to compare"
    )

    sub = verb("report", report, "one page that shows everything: reports/index.html", _results)
    sub.add_argument(
        "--to", type=Path, default=Path("reports"), help="folder to write to (default: reports)"
    )
    sub.add_argument(
        "--all", action="store_true", help="everything that reports/ holds: tables, ledger, figures"
    )

    sub = verb(
        "verify", verify, "do recorded runs again and compare", _results, _data_dir, _workers
    )
    sub.add_argument(
        "records", nargs="+", metavar="RECORD", help="files, keys or folders of records"
    )

    sub = verb("specimen", specimen, "fit runs again for Figures 6, 7 and 9", _results, _data_dir)
    sub.add_argument(
        "--models", type=_names, default=["protogate"], help="selectors (default: protogate)"
    )
    sub.add_argument("--datasets", type=_names, default=["colon"], help="default: colon")
    sub.add_argument("--repeat", type=_jobs, default=0, help="of the split (default 0)")
    sub.add_argument("--fold", type=int, choices=range(FOLDS), default=0, help="default: 0")
    sub.add_argument("--force", action="store_true", help="also what is up to date")

    sub = verb("speed", speed, "time training steps beside their matrix products", _data_dir)
    sub.add_argument(
        "--models", type=_names, default=["protogate"], help="networks (default: protogate)"
    )
    sub.add_argument("--datasets", type=_names, default=["colon"], help="default: colon")
    sub.add_argument("--format", choices=["text", "json"], default="text")

    sub = verb("time", time_, "take the times of Tables 12, 13, 14 and 20", _results, _data_dir)
    sub.add_argument("--models", type=_names, help="networks (default: those of the tables)")
    sub.add_argument("--datasets", type=_names, help="default: those of the tables")
    sub.add_argument("--force", action="store_true", help="also what has been timed already")

    sub = verb(
        "fidelity", fidelity, "L2X, INVASE, REAL-X, TabNet on their own papers' tasks", _results
    )
    sub.add_argument("--only", type=_names, metavar="NAMES", help="only these experiments")
    sub.add_argument("--force", action="store_true", help="also what has been done already")
    sub.add_argument("--show", action="store_true", help="train nothing, show what is known")
    sub.add_argument("--format", choices=["md", "json"], default="md")

    sub = verb("reproduce", reproduce, "run what a table is missing, then show it", _how, _data_dir)
    sub.add_argument("table", help="table2, or another recipe (`list tables`), or figure3")
    sub.add_argument(
        "--budget",
        type=_budget,
        default="2m",
        help="how long to do missing runs before the table is shown: 2m (default), 3h, or all",
    )
    _quick(sub)
    sub.add_argument("--models", type=_names, help="only these models")
    sub.add_argument("--datasets", type=_names, help="only these datasets")
    sub.add_argument("--format", choices=["md", "csv", "tex", "json"], default="md")
    sub.add_argument(
        "--reports", type=Path, default=Path("reports"), help="where tables are written"
    )
    return top


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError(f"names are separated by commas, however: {text!r}")
    return names


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, however: {value}")
    return value


def _jobs(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, however: {value}")
    return value


def _cores() -> int:
    """The cores that this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _seconds(text: str) -> float:
    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    return _above_zero(number) * unit


def _budget(text: str) -> float | None:
    return None if text == "all" else _seconds(text)


def _megabytes(text: str) -> float:
    units = {"M": 1, "G": 1024}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    return _above_zero(number) * unit


def _above_zero(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be above zero, however: {text}")
    return value


def _what(sub: argparse.ArgumentParser) -> None:
    group = sub.add_argument_group("what to run")
    group.add_argument("--models", type=_names, help="e.g. knn,svm:kernel=poly (default: all)")
    group.add_argument(
        "--datasets", type=_names, help="e.g. colon,syn1:generator=fixed (default: all)"
    )
    group.add_argument(
        "--data",
        type=Path,
        metavar="FILE",
        help="your own table: csv, tsv, parquet, arff, mat, npz",
    )
    group.add_argument("--target", metavar="COLUMN", help="the column of FILE that holds the class")
    group.add_argument(
        "--drop", type=_names, default=[], metavar="COLUMNS", help="columns of FILE to leave out"
    )
    group.add_argument(
        "--repeats", type=_positive, default=REPEATS, help="of the cross-validation (default 5)"
    )
    group.add_argument("--folds", type=_positive, default=FOLDS, help="of each repeat (default 5)")
    group.add_argument("--format", choices=["md", "csv", "json"], default="md")


def _results(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--results",
        type=Path,
        default=Path("results"),
        help="folder of the records (default: results)",
    )


def _data_dir(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--data-dir", type=Path, help="folder with dataset files (or set BENCHMARK_DATA)"
    )


def _workers(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--jobs",
        type=_jobs,
        default=_cores(),
        help="runs done side by side, one thread each (default: all cores); 0 runs inside this "
        "process, for debuggers",
    )
    sub.add_argument("--dask", metavar="ADDRESS", help="a Dask scheduler, e.g. tcp://host:8786")


def _quick(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--quick",
        type=_positive,
        nargs="?",
        const=5,
        metavar="SPLITS",
        help="a cheaper search: all settings on so many splits (default 5), then the best two on "
        "all 25; tables say so. Searches that saw less are done again",
    )


def _how(sub: argparse.ArgumentParser) -> None:
    _results(sub)
    _workers(sub)
    sub.add_argument("--timeout", type=_seconds, help="stop a run after this long: 90, 15m, 2h")
    sub.add_argument("--memory", type=_megabytes, help="stop a run above this: 800M, 4G")
    sub.add_argument("--force", action="store_true", help="do finished runs again")
    sub.add_argument(
        "--skip-failed", action="store_true", help="do not retry runs that failed before"
    )
    sub.add_argument(
        "--keep",
        type=_names,
        default=[],
        metavar="ARRAYS",
        help="keep arrays beside the records: proba, selected",
    )


# ---------------------------------------------------------------------------- the verbs


def list_(arguments: argparse.Namespace) -> int:
    """List the models, datasets and tables that exist, with their settings."""
    listing: dict[str, list[dict[str, Any]]] = {
        "models": [
            {
                "name": m.name,
                "label": m.label,
                "family": m.family,
                "selects": m.selects,
                "params": m.params,
                "grid": m.search.grid,
                "reference": m.reference,
            }
            for m in registry.models().values()
        ],
        "datasets": [
            {
                "name": d.name,
                "group": d.group,
                "samples": d.shape[0],
                "features": d.shape[1],
                "classes": len(d.classes),
                "switches": d.switches,
                "citation": d.citation,
            }
            for d in registry.datasets().values()
        ],
        "tables": [{"name": n, "title": t["title"]} for n, t in registry.tables().items()],
    }
    wanted = [arguments.what] if arguments.what else list(listing)
    if arguments.format == "json":
        shown: Any = listing[arguments.what] if arguments.what else listing
        print(json.dumps(shown, indent=1))
        return OK
    for kind in wanted:
        print(f"{kind}")
        for item in listing[kind]:
            print("  " + _line(kind, item))
        print()
    return OK


def _line(kind: str, item: dict[str, Any]) -> str:
    if kind == "models":
        grid = (
            " ".join(f"{k}={v}" for k, v in item["grid"].items()).replace(" ", "")
            or "fixed settings"
        )
        return f"{item['name']:<12}{item['label']:<12}selects: {item['selects']:<8}{grid}"
    if kind == "datasets":
        switches = "  ".join(f"{k}={'|'.join(map(str, v))}" for k, v in item["switches"].items())
        size = f"{item['samples']} x {item['features']}"
        return f"{item['name']:<20}{size:<13}{item['classes']:>3} classes  {item['group']:<10}{switches}"
    return f"{item['name']:<12}{item['title']}"


def data(arguments: argparse.Namespace) -> int:
    """Show which datasets are at hand and where they come from; get some of them by download; or
    import a file that you have (checked against the registry, then copied into the cache)."""
    from benchmark import data as source
    from benchmark.summary import grid

    if arguments.action in ("status", "get"):
        names = arguments.names or list(registry.datasets())
        rows = source.status(names) if arguments.action == "status" else source.get(names)
        # A failure explains itself in several lines, which do not fit into a table.
        short = [[r.name, r.state, r.detail.splitlines()[0]] for r in rows]
        print(grid([["dataset", "state", "where"], *short]))
        for row in rows:
            if row.state == "failed":
                say(f"\n{row.detail}")
        return OK if all(row.state == "ready" for row in rows) else GAPS
    if len(arguments.names) != 2:
        raise UserError(
            "import takes a dataset and a file: python -m benchmark data import lung lung.mat"
        )
    name, path = arguments.names
    registry.check_name("dataset", name, registry.datasets())
    imported = source.import_(name, Path(path))
    print(f"{name}: imported, {imported.X.shape[0]} x {imported.X.shape[1]}.")
    return OK


def run(arguments: argparse.Namespace) -> int:
    """Do the 25 runs of models on datasets, each with one setting, and print mean and deviation of
    the test score. Runs that are finished already are not repeated."""
    from benchmark.campaign import run_missing
    from benchmark.summary import FORMATS, summarise

    cells, protocol, means = _cells(arguments), _protocol(arguments), _means(arguments)
    chosen = [(cell, _setting(cell, arguments)) for cell in cells]
    _tell_untuned(cells, arguments)
    plan = [
        (cell, params, cell.specs(params, protocol))
        for cell, params in chosen
        if params is not None
    ]
    report = run_missing([spec for _, _, specs in plan for spec in specs], means)
    rows = [
        summarise(cell.model, cell.data.label, params, specs, report.records)
        for cell, params, specs in plan
    ]
    if rows:
        print(FORMATS[arguments.format](rows))
    _tell_failures(report.failures)
    unknown = [f"{cell.model} on {cell.data.label}" for cell, params in chosen if params is None]
    if unknown and arguments.settings == "published":
        say(f"No settings are known to reproduce the printed cell: {', '.join(unknown)}.")
    if report.failures:
        return FAILED
    return GAPS if report.absent or len(plan) < len(chosen) else OK


def tune(arguments: argparse.Namespace) -> int:
    """Choose one setting per model and dataset: the best mean validation balanced accuracy over
    the 25 splits; ties go to the first in grid order. A setting that cannot win any more is dropped
    before it has seen all splits, which never changes the choice. Prints the test score of what was
    chosen."""
    from benchmark.summary import FORMATS, summarise
    from benchmark.tune import require_search
    from benchmark.tune import tune as choose

    cells, protocol, means = _cells(arguments), _protocol(arguments), _means(arguments)
    require_search(cells)
    searched = [cell for cell in cells if cell.search.grid or cell.search.ranges]
    choices, report = choose(searched, protocol, means, arguments.quick)
    rows = []
    for cell, choice in zip(searched, choices, strict=True):
        if choice is not None:
            specs = cell.specs(choice.params, protocol)
            records, _ = means.store.find([spec.key for spec in specs])
            rows.append(summarise(cell.model, cell.data.label, choice.params, specs, records))
    if rows:
        print(FORMATS[arguments.format](rows))
    _tell_failures(report.failures)
    return FAILED if report.failures else GAPS if len(rows) < len(searched) else OK


def status(arguments: argparse.Namespace) -> int:
    """Count the records per model and dataset, list failures with their reason, and name every
    file that is not a record. With a table: what it needs and what it lacks."""
    from benchmark import inventory

    if not arguments.results.is_dir():
        raise UserError(f"There is no results folder {arguments.results}; --results names another.")
    if arguments.table:
        rows, complete = inventory.needed(_table_name(arguments.table), arguments.results)
    else:
        rows, complete = inventory.counts(arguments.results)
    print(json.dumps(rows, indent=1) if arguments.format == "json" else inventory.to_text(rows))
    return OK if complete else GAPS


def table(arguments: argparse.Namespace) -> int:
    """Build a table from the records that exist; trains nothing. Gaps are shown with a reason."""
    from benchmark import render, tables

    built = tables.build(_table_name(arguments.number), arguments.results)
    print(render.FORMATS[arguments.format](built))
    return OK if built.complete else GAPS


def figure(arguments: argparse.Namespace) -> int:
    """Draw figures of the paper, and some that it lacks, from the records that exist; trains
    nothing. The paper's own numbers stand beside ours, and a grey note names what is missing. Exit
    code 3 if a figure cannot be drawn at all for want of records."""
    from benchmark import figures
    from benchmark.progress import Progress

    every = arguments.names == ["all"]
    names = list(figures.FIGURES) if every else [_figure_name(text) for text in arguments.names]
    lacking = []
    with Progress(len(names) if len(names) > 1 else 0, "figures") as progress:
        for name in names:
            try:
                files = figures.write(name, arguments.results, arguments.to)
            except UserError as error:
                lacking.append(f"{name}: {error}")
            else:
                print(f"{name}: {', '.join(map(str, files))}")
            progress.step(name)
    for message in lacking:
        say(message)
    return GAPS if lacking else OK


def audit(arguments: argparse.Namespace) -> int:
    """Recompute from the printed cells what the paper derives from them and says about them, and
    list what holds and what does not. The findings are the output: the exit code is 0."""
    from benchmark.audit import audit as check
    from benchmark.audit import findings

    print(findings.FORMATS[arguments.format](check()))
    return OK


def claims(arguments: argparse.Namespace) -> int:
    """Check the paper's sentences, in our words, on its printed cells and on our runs; trains
    nothing. Only cells with all runs count. `holds` and `does not hold` are final: no missing run
    can change them. `holds so far` and `does not hold so far` are about the cells at hand while
    others are missing. `not enough runs`: nothing can be compared yet. The percentage is the share
    of 1000 redraws of our runs in which the claim holds. The claims are the output: the exit code
    is 0."""
    from benchmark import claims as sentences
    from benchmark import claims_render

    judged = sentences.build(arguments.results, arguments.only)
    print(claims_render.render(judged, arguments.format))
    return OK


def compare(arguments: argparse.Namespace) -> int:
    """Put our value beside every published cell, with a verdict and its reason; trains nothing.
    Exit code 1 if settings known to reproduce a printed cell give another number, else 0."""
    from benchmark import ledger, ledger_render

    lines = ledger.build(arguments.results, arguments.table)
    print(ledger_render.render(lines, arguments.format, arguments.all))
    changed = ledger.regressions(lines)
    for line in changed:
        cell = line.printed
        say(f"differs: table {cell.table}, {cell.method} {cell.dataset} {cell.metric}")
    return FAILED if changed else OK


def report(arguments: argparse.Namespace) -> int:
    """Write one page, index.html, that shows every table with the paper's values beside ours, the
    runs behind each cell, figures, claims, audit and environment. It needs no network and no other
    file. Made from records alone; trains nothing."""
    from benchmark import report as reports
    from benchmark.progress import Progress

    if not arguments.results.is_dir():
        raise UserError(f"There is no results folder {arguments.results}; --results names another.")
    with Progress(reports.steps(arguments.all), "report", after=2.0) as progress:
        write = reports.write_reports if arguments.all else reports.write_page
        *_, page = write(arguments.results, arguments.to, progress.step)
    print(page)
    return OK


def verify(arguments: argparse.Namespace) -> int:
    """Do recorded runs again and compare everything outside `meta`: scores, selection, hashes.
    Equal bits are promised on the same type of machine; in what this one differs from those of the
    records is printed, too. Training a network amplifies the last digit."""
    from benchmark.store import NotARecord, Store
    from benchmark.verify import verify as compare

    store = Store(arguments.results)
    records = []
    for path in [path for text in arguments.records for path in store.resolve(text)]:
        try:
            records.append(store.load(path))
        except NotARecord as error:
            raise UserError(f"{path} {error}.") from error
    different = 0
    surroundings: set[str] = set()
    for comparison in compare(records, arguments.jobs, arguments.dask):
        print(f"{'same     ' if comparison.same else 'DIFFERENT'}  {comparison.key}")
        for line in comparison.differences:
            print(f"           {line}")
        if not comparison.same:
            different += 1
            surroundings.update(comparison.surroundings)
    if surroundings:
        print("\nThe records that differ were made with something else; equal bits are promised on")
        print("the same type of machine, with the same libraries:")
        for line in sorted(surroundings):
            print(f"           {line}")
    return FAILED if different else OK


def reproduce(arguments: argparse.Namespace) -> int:
    """Do the runs that a table is missing, then show it and write it to reports/. Datasets that
    are not at hand and cannot be downloaded leave gaps; everything else goes on."""
    from dataclasses import replace

    from benchmark import render, tables
    from benchmark.figures import FIGURES
    from benchmark.report import write_table
    from benchmark.reproduce import fill

    if arguments.table in FIGURES or arguments.table.startswith("figure"):
        arguments.names, arguments.to = [arguments.table], arguments.reports / "figures"
        return figure(arguments)
    name = _table_name(arguments.table)
    means = _means(arguments)
    if arguments.budget is not None:
        means = replace(means, deadline=time.monotonic() + arguments.budget)
        say(f"At most {arguments.budget:g} seconds of runs, then the table; --budget changes it.")
    failures: list[dict[str, Any]] = []
    try:
        failures = fill([name], means, arguments.models, arguments.datasets, arguments.quick)
    except KeyboardInterrupt:
        say("\nStopped; finished runs are kept. The table as it is now:")
    built = tables.build(name, arguments.results)
    write_table(built, arguments.reports)
    print(render.FORMATS[arguments.format](built))
    say(f"Written to {arguments.reports}/{name}.md, .csv, .tex and .json.")
    _tell_failures(failures)
    asked = tables.build(
        name, arguments.results, methods=arguments.models, datasets=arguments.datasets
    )
    return FAILED if failures else OK if asked.complete else GAPS


def specimen(arguments: argparse.Namespace) -> int:
    """Fit single runs again and keep what figures show of the models: masks, prototypes, a map.
    They have the tuned settings, or the registry's where nothing was tuned. A minute or two each."""
    from benchmark import plan
    from benchmark import specimen as bench
    from benchmark.spec import MissingData

    _check_folder(arguments.results)
    absent = False
    for cell in plan.cells(arguments.models, _data_refs(arguments.datasets)):
        split = arguments.repeat, arguments.fold
        path = bench.path_of(arguments.results, cell, *split)
        if not arguments.force and bench.up_to_date(arguments.results, cell, *split):
            print(f"{path}: up to date")
            continue
        say(f"fitting {cell.model} on {cell.data.label}")
        try:
            made = bench.make(*bench.spec_of(arguments.results, cell, *split))
        except MissingData as error:
            say(f"left out: {error}")
            absent = True
            continue
        bench.write(path, made)
        print(f"{path}: {bench.beside_record(arguments.results, made)}")
    return GAPS if absent else OK


def speed(arguments: argparse.Namespace) -> int:
    """Time the training steps of networks with one thread, and the bare matrix products of the
    same shapes in the same process: their ratio tells how much is spent on anything else."""
    from benchmark import speed as stopwatch
    from benchmark.progress import Progress

    pairs = [(model, dataset) for dataset in arguments.datasets for model in arguments.models]
    rows = []
    with Progress(len(pairs), "timing") as progress:
        for model, dataset in pairs:
            rows.append(stopwatch.measure(model, dataset))
            progress.step(f"{model} on {dataset}")
    print(stopwatch.FORMATS[arguments.format](rows))
    return OK


def fidelity(arguments: argparse.Namespace) -> int:
    """Train each selecting network on the tasks that it was introduced with, where the relevant
    features are known, and print what it finds beside the range that its paper reports. Finished
    experiments are kept in results/fidelity. Exit code 1 if one is outside its range."""
    from benchmark import fidelity as experiment
    from benchmark.progress import Progress

    wanted = experiment.chosen(arguments.only)
    found = {
        e.name: None if arguments.force else experiment.read(arguments.results, e) for e in wanted
    }
    lacking = [] if arguments.show else [e for e in wanted if found[e.name] is None]
    with Progress(len(lacking), "fidelity") as progress:
        for made in map(experiment.run, lacking):
            found[made.name] = made
            experiment.write(arguments.results, made)
            progress.step(made.name)
    print(experiment.FORMATS[arguments.format](found))
    done = [finding for finding in found.values() if finding]
    if any(finding.accepted is False for finding in done):
        return FAILED
    return OK if len(done) == len(found) else GAPS


def time_(arguments: argparse.Namespace) -> int:
    """Train networks for some epochs and predict, one after the other on one thread, and keep the
    times in results/timings. Stop everything else on the machine first: each file says how busy it
    was."""
    from benchmark.needs import timed_everywhere
    from benchmark.plan import cells
    from benchmark.reproduce import take_times

    if arguments.models:
        wanted = cells(arguments.models, _data_refs(arguments.datasets))
    else:
        names = [data.name for data in _data_refs(arguments.datasets)]
        wanted = [cell for cell in timed_everywhere() if cell.data.name in names]
    absent = take_times(wanted, arguments.results, None, arguments.force)
    return GAPS if absent else OK


# ---------------------------------------------------------------------------- shared by verbs


def _cells(arguments: argparse.Namespace) -> list[Cell]:
    from benchmark import plan

    if arguments.data:
        if arguments.datasets:
            raise UserError("Give either --datasets or --data with --target, not both.")
        references = [_own_table(arguments)]
    elif arguments.target or arguments.drop:
        raise UserError("--target and --drop need --data FILE, the table that has these columns.")
    else:
        references = _data_refs(arguments.datasets)
    return plan.cells(arguments.models or plan.all_models(), references)


def _own_table(arguments: argparse.Namespace) -> DataRef:
    """The user's table, checked before anything runs, with its treatments stated."""
    from benchmark.data import load, own_table
    from benchmark.splits import make_split

    reference = own_table(arguments.data, arguments.target, arguments.drop, folds=arguments.folds)
    table = load(reference)
    make_split(table.y, 0, 0, arguments.folds)  # --folds may ask for more than the classes have
    for note in table.notes:
        say(f"{arguments.data}: {note}.")
    return reference


def _data_refs(names: list[str] | None) -> list[DataRef]:
    from benchmark import plan

    return [registry.data_ref(name) for name in names] if names else plan.all_datasets()


def _protocol(arguments: argparse.Namespace) -> Protocol:
    from benchmark.plan import Protocol

    if arguments.folds < 2:
        raise UserError(f"--folds must be at least 2, however: {arguments.folds}.")
    return Protocol(arguments.repeats, arguments.folds)


def _means(arguments: argparse.Namespace) -> Means:
    from benchmark.campaign import Means
    from benchmark.store import Store
    from benchmark.worker import Limits

    if arguments.jobs == 0 and (arguments.timeout or arguments.memory):
        raise UserError("--jobs 0 runs inside this process, which no limit can stop. Use --jobs 1.")
    _check_folder(arguments.results)
    for name in arguments.keep:
        registry.check_name("array to keep", name, ["proba", "selected"])
    return Means(
        store=Store(arguments.results),
        jobs=arguments.jobs,
        dask=arguments.dask,
        limits=Limits(arguments.timeout, arguments.memory),
        keep=tuple(arguments.keep),
        force=arguments.force,
        retry=not arguments.skip_failed,
    )


def _check_folder(folder: Path) -> None:
    """Before anything is trained: can results be kept there?"""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise UserError(
            f"Results cannot be written to {folder}: {error.strerror}. Name another folder with "
            f"--results."
        ) from error


def _setting(cell: Cell, arguments: argparse.Namespace) -> dict[str, Any] | None:
    """The settings that `run` uses for a cell; None if they are not known."""
    from benchmark.settings import prescribed, published

    if arguments.settings == "published":
        return published(cell)
    if arguments.settings == "default":
        return dict(cell.overrides)
    params = prescribed(arguments.results, cell)
    if params is None and arguments.settings == "auto" and cell.overrides:
        params = prescribed(arguments.results, cell, "base")
    return dict(cell.overrides) if params is None and arguments.settings == "auto" else params


def _tell_untuned(cells: list[Cell], arguments: argparse.Namespace) -> None:
    """Say which settings are not the paper's rule's choice, and how to make them so."""
    from benchmark.settings import prescribed

    sources = ("own",) if arguments.settings == "tuned" else ("own", "base")
    names = [
        f"{cell.model} on {cell.data.label}"
        for cell in cells
        if all(prescribed(arguments.results, cell, source) is None for source in sources)
    ]
    if names and arguments.settings in ("auto", "tuned"):
        then = "default settings are used" if arguments.settings == "auto" else "they are left out"
        say(
            f"Not tuned, so {then}: {', '.join(names)}.\n"
            f"`python -m benchmark tune` with the same words chooses settings by validation score."
        )


def _table_name(text: str) -> str:
    name = f"table{text}" if text.isdigit() else text
    registry.check_name("table", name, registry.tables())
    return name


def _figure_name(text: str) -> str:
    from benchmark.figures import FIGURES

    name = f"figure{text}" if text.isdigit() else text
    registry.check_name("figure", name, FIGURES)
    return name


def _figures() -> str:
    from benchmark.figures import FIGURES

    width = max(map(len, FIGURES)) + 2
    return "figures\n" + "\n".join(f"  {n:<{width}}{t}" for n, t in FIGURES.items())


def _tell_failures(failures: list[dict[str, Any]]) -> None:
    if not failures:
        return
    kinds: dict[str, int] = {}
    for record in failures:
        kinds[record["status"]] = kinds.get(record["status"], 0) + 1
    say(f"{len(failures)} runs failed:")
    for kind, count in sorted(kinds.items()):
        first = next(r for r in failures if r["status"] == kind)
        say(
            f"  {count} x {kind} ({FAILURES[kind]}), e.g. {first['key']}: {first['error']['message']}"
        )
