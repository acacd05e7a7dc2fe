"""The command line: reads the words, calls one small function per command.

Each command imports what it needs inside its function, so that `--help`, `list` and a typo never
wait for a numerical library. A UserError becomes a message; anything else is a bug and keeps its
traceback.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import os
import re
import sys
import textwrap
from pathlib import Path
from typing import Any, NoReturn

import benchmark
from benchmark.cli import experiments, features, judge, listing, own, run, tables
from benchmark.cli.arguments import (
    Adding,
    budget,
    data_dir,
    how,
    metric,
    names,
    not_negative,
    positive,
    quick,
    results,
    seconds,
    table_form,
    what,
    workers,
)
from benchmark.cli.codes import FAILED, INTERRUPTED, OK, USAGE
from benchmark.cli.terminal import Interrupts, shown
from benchmark.data.places import as_path
from benchmark.progress import say
from benchmark.protocol.spec import FOLDS, UserError
from benchmark.runner.machine import ONE_THREAD

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
  python -m benchmark rank --models paper,sklearn.naive_bayes:GaussianNB --datasets colon
  python -m benchmark table 2                                 beside the paper, from records alone
  python -m benchmark reproduce table2                        run what is missing, then show it

Names take overrides: svm:kernel=rbf, syn1:generator=fixed. Lists are separated by commas.
Interrupt whenever you like: finished runs are kept, and the same command resumes.

exit code
  0 everything asked for exists   1 some runs failed   2 wrong usage   3 there are gaps
  130 interrupted
"""


def main(argv: list[str] | None = None) -> int:
    """Parse, dispatch, and turn what a user can mend into a message."""
    with shown():
        return _main(argv)


def _main(argv: list[str] | None) -> int:
    interrupts, arguments = Interrupts(), None
    try:
        interrupts.raise_the_first()
        arguments, unknown = parser().parse_known_args(argv)
        if unknown:
            arguments.parser.refuse(unknown[0])
        os.environ.update(ONE_THREAD)  # before numpy is imported
        if getattr(arguments, "data_dir", None):
            os.environ["BENCHMARK_DATA"] = str(_data_folder(arguments.data_dir))
        code = int(arguments.command(arguments))
        sys.stdout.flush()
        interrupts.raise_no_more()
        return code
    except UserError as error:
        say(f"error: {error}")
        return USAGE
    except KeyboardInterrupt:
        say(f"\nStopped.{_kept(arguments)}")
        return INTERRUPTED
    except SystemExit:
        interrupts.raise_no_more()
        raise
    except BrokenPipeError:
        # The reader of our output, `head` for example, has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        remedy = REMEDIES.get(error.errno or 0, "")
        say(f"error: {error.strerror or error}{where}.{remedy}{_kept(arguments)}")
        return FAILED


def _data_folder(named: Path) -> Path:
    folder = as_path(named).absolute()
    if not folder.is_dir():  # otherwise each dataset would be left out by itself
        raise UserError(
            f"The data folder {folder} (--data-dir) does not exist. Name one that does."
        )
    return folder


REMEDIES = dict.fromkeys(
    (errno.ENOSPC, errno.EDQUOT), " Make room on that disk, or name a folder on another one."
) | dict.fromkeys(
    (errno.EACCES, errno.EPERM, errno.EROFS), " Name another place, or ask for the right to use it."
)
"""What helps against an error of the operating system."""


def _kept(arguments: argparse.Namespace | None) -> str:
    """What commands that do runs have done already."""
    runs = hasattr(arguments, "skip_failed")
    return " Finished runs are kept; the same command resumes." if runs else ""


class Parser(argparse.ArgumentParser):
    """Answers a wrong word with the nearest right one, and no word at all with what there is."""

    def __init__(self, *words: Any, **named: Any) -> None:
        super().__init__(*words, **named)
        self.register("action", None, Adding)

    def error(self, message: str) -> NoReturn:
        wrong = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if wrong:
            known = re.findall(r"'([^']*)'", wrong[2])
            near = difflib.get_close_matches(wrong[1], known, 1)
            hint = f" Did you mean {near[0]!r}?" if near else f" There are: {', '.join(known)}."
            message = f"there is no {wrong[1]!r} here.{hint}"
        if message.endswith("required: COMMAND"):
            self.print_help(sys.stderr)
            self.exit(USAGE)
        self.exit(USAGE, f"{self.prog}: {message}\n`{self.prog} --help` explains.\n")

    def refuse(self, word: str) -> NoReturn:
        """A word that the command does not take, with the nearest option that it does."""
        near = difflib.get_close_matches(word.partition("=")[0], self._option_string_actions, 1)
        self.error(f"{word!r} has no meaning here.{f' Did you mean {near[0]!r}?' if near else ''}")


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="python -m benchmark",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=benchmark.__version__)
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def command(name: str, function: Any, help: str, *parts: Any) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name,
            help=help,
            description=textwrap.fill(" ".join((function.__doc__ or help).split()), 90),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for part in parts:
            part(sub)
        sub.set_defaults(command=function, parser=sub)
        return sub

    sub = command("list", listing.list_, "models, datasets, tables and figures that exist")
    sub.add_argument("what", nargs="?", choices=listing.KINDS, help="only these")
    sub.add_argument("--format", choices=["text", "json"], default="text")

    sub = command("data", run.data, "where the data are; fetch or import them", data_dir)
    sub.add_argument("action", choices=["status", "get", "import", "check"])
    sub.add_argument("names", nargs="*", metavar="NAME", help="datasets; for import: NAME PATH")

    sub = command(
        "run", run.run, "do the 25 runs of models on datasets", what, metric, how, data_dir
    )
    sub.add_argument(
        "--settings",
        choices=list(run.SETTINGS),
        default="auto",
        help="auto (default): what `tune` has chosen for the model, with the overrides that are "
        "named, else the registry's defaults; tuned: what it has chosen for just these overrides; "
        "recovered: what gives the printed cell, where that is known",
    )

    sub = command(
        "tune", run.tune, "choose settings by validation score", what, metric, how, data_dir
    )
    quick(sub)

    sub = command("rank", own.rank, "your models and tables ranked beside the 17", how, data_dir)
    own.ranked(sub)

    sub = command(
        "features",
        features.features,
        "which features selectors select, by name",
        lambda sub: what(sub, "protogate"),
        how,
        data_dir,
    )
    features.words(sub)

    sub = command("fit", own.fit, "fit ProtoGate on a table and keep it", results)
    own.fitting(sub)

    sub = command("predict", own.predict, "classes of new samples, by a model that was kept")
    own.sampling(sub)
    sub.add_argument("--format", choices=["csv", "json"], default="csv")

    sub = command(
        "explain", own.explain, "explain predictions: nearest prototypes and selected features"
    )
    own.sampling(sub)
    sub.add_argument(
        "--sample", action="append", metavar="ID", help="only this one; may be repeated"
    )
    sub.add_argument("--to", type=Path, metavar="FOLDER", help="also draw each, as PNG and SVG")
    sub.add_argument("--format", choices=["text", "json"], default="text")

    sub = command("export", own.export, "all records as one table, for pandas or R", results)
    sub.add_argument("file", type=Path, help="runs.parquet, runs.csv or runs.json")
    sub.add_argument(
        "--own", action="store_true", help="only the records of --results, not the shipped ones"
    )

    sub = command("check-model", run.check_model, "try your own model on made-up data")
    sub.add_argument(
        "names", nargs="+", metavar="MODEL", help="e.g. sklearn.naive_bayes:GaussianNB"
    )
    sub.add_argument(
        "--timeout",
        type=seconds,
        default=300.0,
        help="for two and for three classes each: 90, 15m, 2h (default 5m)",
    )

    sub = command("status", tables.status, "what has been run, what failed and why", results)
    sub.add_argument("table", nargs="?", help="only what this table needs, e.g. table2")
    sub.add_argument("--format", choices=["text", "json"], default="text")

    sub = command(
        "table", tables.table, "a table of the paper, from the records that exist", results
    )
    sub.add_argument("number", help="2, or the name of a recipe (`list tables`)")
    table_form(sub)

    sub = command(
        "figure", tables.figure, "draw a figure of the paper from the records that exist", results
    )
    sub.epilog = tables.figure_list()
    sub.add_argument("names", nargs="+", metavar="FIGURE", help="3, a name listed below, or all")
    sub.add_argument(
        "--to",
        type=Path,
        default=Path("reports/figures"),
        help="folder for FIGURE.png and FIGURE.svg (default: reports/figures)",
    )

    sub = command("audit", judge.audit, "check the paper's numbers against each other")
    sub.add_argument("--format", choices=["md", "csv", "json"], default="md")

    sub = command(
        "claims", judge.claims, "the paper's sentences as checks, on its cells and ours", results
    )
    sub.add_argument(
        "--only", action="append", metavar="ID", help="only this claim, e.g. top-three (repeatable)"
    )
    sub.add_argument("--format", choices=["text", "md", "csv", "json"], default="text")

    sub = command(
        "compare", judge.compare, "every printed cell beside ours, with a verdict", results
    )
    sub.add_argument(
        "--table", type=positive, action="append", metavar="N", help="only this table (repeatable)"
    )
    sub.add_argument(
        "--format",
        choices=["text", "md", "csv", "json"],
        default="text",
        help="text (default): at most 100 columns; md adds the reasons, csv and json are for computing",
    )
    sub.add_argument("--all", action="store_true", help="also cells with nothing to compare")
    sub.add_argument(
        "--why", action="store_true", help="cells that differ, with the cause or all that was tried"
    )

    sub = command(
        "report", tables.report, "one page that shows everything: reports/index.html", results
    )
    sub.add_argument(
        "--to", type=Path, default=Path("reports"), help="folder to write to (default: reports)"
    )
    sub.add_argument(
        "--all", action="store_true", help="everything that reports/ holds: tables, ledger, figures"
    )

    sub = command(
        "verify", run.verify, "do recorded runs again and compare", results, data_dir, workers
    )
    sub.add_argument(
        "records", nargs="+", metavar="RECORD", help="files, keys or folders of records"
    )

    sub = command(
        "specimen", experiments.specimen, "fit runs again for Figures 6, 7 and 9", results, data_dir
    )
    sub.add_argument(
        "--models", type=names, default=["protogate"], help="selectors (default: protogate)"
    )
    sub.add_argument("--datasets", type=names, default=["colon"], help="default: colon")
    sub.add_argument("--repeat", type=not_negative, default=0, help="of the split (default 0)")
    sub.add_argument("--fold", type=int, choices=range(FOLDS), default=0, help="default: 0")
    sub.add_argument("--force", action="store_true", help="also what is up to date")

    sub = command(
        "speed", experiments.speed, "time training steps beside their matrix products", data_dir
    )
    sub.add_argument(
        "--models", type=names, default=["protogate"], help="networks (default: protogate)"
    )
    sub.add_argument("--datasets", type=names, default=["colon"], help="default: colon")
    sub.add_argument("--format", choices=["text", "json"], default="text")

    sub = command(
        "time", experiments.time_, "take the times of Tables 12, 13, 14 and 20", results, data_dir
    )
    sub.add_argument("--models", type=names, help="networks (default: those of the tables)")
    sub.add_argument("--datasets", type=names, help="default: those of the tables")
    sub.add_argument("--force", action="store_true", help="also what has been timed already")

    sub = command(
        "fidelity",
        experiments.fidelity,
        "L2X, INVASE, REAL-X, TabNet on their own papers' tasks",
        results,
    )
    sub.add_argument("--only", type=names, metavar="NAMES", help="only these experiments")
    sub.add_argument("--force", action="store_true", help="also what has been done already")
    sub.add_argument("--show", action="store_true", help="train nothing, show what is known")
    sub.add_argument("--format", choices=["md", "json"], default="md")

    sub = command(
        "fingerprint",
        experiments.fingerprint,
        "which data is Table 22 from: Lasso and RF on many variants",
        results,
    )
    sub.add_argument("--jobs", type=positive, default=1, help="threads (default 1)")
    sub.add_argument("--show", action="store_true", help="fit nothing, show what is known")
    sub.add_argument("--format", choices=["md", "json"], default="md")

    sub = command(
        "reproduce", tables.reproduce, "run what a table is missing, then show it", how, data_dir
    )
    sub.add_argument("table", help="table2, or another recipe (`list tables`)")
    sub.add_argument(
        "--budget",
        type=budget,
        default="2m",
        help="how long to do missing runs before the table is shown: 2m (default), 3h, all, or none",
    )
    quick(sub)
    sub.add_argument("--models", type=names, help="only these models")
    sub.add_argument("--datasets", type=names, help="only these datasets")
    table_form(sub)
    sub.add_argument(
        "--reports", type=Path, default=Path("reports"), help="where tables are written"
    )
    return top
