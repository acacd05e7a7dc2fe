"""What the commands share: types of arguments, groups of options, and what they stand for."""

from __future__ import annotations

import argparse
import csv
import io
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.files import Unreadable, read_whole
from benchmark.progress import say
from benchmark.protocol import registry
from benchmark.protocol.plan import MOST, Protocol
from benchmark.protocol.spec import FAILURES, FOLDS, KEEP, METRICS, REPEATS, DataRef, UserError
from benchmark.text import counted

if TYPE_CHECKING:
    from benchmark.data.load import How
    from benchmark.protocol.plan import Cell
    from benchmark.runner.campaign import Means
    from benchmark.runner.records import Store


def names(text: str) -> list[str]:
    """Names of models and datasets: a setting's list in brackets has commas of its own."""
    depth, parts = 0, [""]
    for sign in text:
        depth += (sign in "[{") - (sign in "]}")
        if sign == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += sign
    return _once(parts, text)


def columns(text: str) -> list[str]:
    """Names of columns: one that holds a comma stands in double quotes, as in the file."""
    rows = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    return _once([name for row in rows for name in row], text)


def _once(parts: Sequence[str], text: str) -> list[str]:
    """Each of them once, in the order in which they were written."""
    names = dict.fromkeys(name.strip() for name in parts if name.strip())
    if not names:
        raise argparse.ArgumentTypeError(f"names are separated by commas, got {text!r}")
    return list(names)


def positive(text: str) -> int:
    value = not_negative(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def not_negative(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}") from None
    if value < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, got {value}")
    if value > MOST:
        raise argparse.ArgumentTypeError(f"must be at most {MOST}, got {value}")
    return value


def _cores() -> int:
    """The cores that this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def seconds(text: str) -> float:
    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    return _above_zero(number, text, "90, 2m or 3h") * unit


def budget(text: str) -> float | None:
    words = {"all": None, "none": 0.0}
    return words[text] if text in words else seconds(text)


def _megabytes(text: str) -> float:
    """500M or 2G; a plain number is megabytes."""
    units = {"M": 1, "G": 1024}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1)
    return _above_zero(number, text, "800M or 4G") * unit


def _above_zero(number: str, text: str, such: str) -> float:
    try:
        value = float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number such as {such}, got {text!r}") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be positive, got {text}")
    return value


def share(text: str) -> float:
    try:
        return float(text)  # how much is too much, data/load.py says
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a share such as 0.2, got {text!r}") from None


class Adding(argparse._StoreAction):
    """Of a list that is given twice, argparse would silently keep the last."""

    def __call__(
        self, _parser: Any, namespace: Any, values: Any, option_string: str | None = None
    ) -> None:
        given = vars(namespace).setdefault("_given", set())
        again = self.dest in given and option_string is not None
        given.add(self.dest)
        self.take(namespace, values, again)

    def take(self, namespace: Any, values: Any, again: bool) -> None:
        if again and isinstance(values, list):
            values = list(dict.fromkeys([*getattr(namespace, self.dest), *values]))
        setattr(namespace, self.dest, values)


class Once(Adding):
    """Nobody can tell which of two columns was meant."""

    def take(self, namespace: Any, values: Any, again: bool) -> None:
        if again:
            raise argparse.ArgumentError(self, "is given twice; which is meant?")
        setattr(namespace, self.dest, values)


def what(sub: argparse.ArgumentParser, models: str = "all") -> None:
    group = sub.add_argument_group("what to run")
    group.add_argument("--models", type=names, help=f"e.g. knn,svm:kernel=poly (default: {models})")
    group.add_argument(
        "--datasets", type=names, help="e.g. colon,syn1:generator=fixed (default: all)"
    )
    group.add_argument(
        "--data",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="your own table: csv, tsv, parquet, arff, mat, npz; may be repeated",
    )
    own_columns(group)
    group.add_argument(
        "--repeats",
        type=positive,
        default=REPEATS,
        help="how often the cross-validation is repeated (default 5)",
    )
    group.add_argument(
        "--folds", type=positive, default=FOLDS, help="folds of each repeat (default 5)"
    )
    group.add_argument("--format", choices=["md", "csv", "json"], default="md")


def own_columns(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="COLUMN",
        help="the column of FILE that holds the class; one for all files, or one per file",
    )
    group.add_argument(
        "--drop",
        type=columns,
        default=[],
        metavar="COLUMNS",
        help="columns of FILE to leave out, separated by commas; in quotes what holds a comma",
    )
    group.add_argument(
        "--id",
        action=Once,
        metavar="COLUMN",
        help="the column of FILE that names the samples; no feature",
    )
    group.add_argument(
        "--groups",
        action=Once,
        metavar="COLUMN",
        help="rows that share a value, such as a patient's, stay in one part; no feature",
    )
    group.add_argument(
        "--test",
        type=Path,
        action="append",
        default=[],
        metavar="TABLE",
        help="an external test set with the same columns: every run is tested on its rows",
    )
    group.add_argument(
        "--split",
        action=Once,
        metavar="COLUMN",
        help="the same within FILE: a column that says train or test; no feature",
    )
    group.add_argument(
        "--valid-size",
        type=share,
        metavar="SHARE",
        help="share of the rows outside the test part that validate (default 0.1)",
    )
    group.add_argument(
        "--min-class",
        type=positive,
        metavar="N",
        help="leave out classes with fewer than N rows to train on",
    )
    group.add_argument(
        "--transpose",
        action="store_true",
        help="FILE has a row per feature, with its name first, and a column per sample",
    )
    group.add_argument(
        "--impute",
        choices=["median"],
        help="fill missing values with the median of each run's training rows",
    )
    group.add_argument(
        "--encode",
        choices=["onehot"],
        help="one column per category of the training rows, for columns of texts",
    )


def how_of(arguments: argparse.Namespace, i: int = 0) -> How:
    """What was asked for the i-th table."""
    return {
        "id": arguments.id,
        "groups": arguments.groups,
        "split": arguments.split,
        "test": arguments.test[i] if arguments.test else None,
        "valid_size": arguments.valid_size,
        "min_class": arguments.min_class,
        "transpose": arguments.transpose,
        "impute": arguments.impute,
        "encode": arguments.encode,
    }


def metric(sub: argparse.ArgumentParser) -> None:
    first = next(iter(METRICS))
    sub.add_argument(
        "--metric",
        choices=list(METRICS),
        default=first,
        help=f"the score to show, and to rank by (default: {first})",
    )


RESULTS = Path("results")


def results(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        help="folder of the records (default: results)",
    )


def own_results(folder: Path) -> Path:
    """Where one's own records go: not among the project's, unless that folder was named."""
    from benchmark.runner.shipped import OWN, own_folder

    if folder is not RESULTS or own_folder() == RESULTS:
        return folder
    say(f"Your own records go to {OWN}/; --results names another folder.")
    return OWN


def data_dir(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--data-dir", type=Path, help="folder with dataset files (or set BENCHMARK_DATA)"
    )


def workers(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--jobs",
        type=not_negative,
        default=_cores(),
        help="runs done side by side, one thread each (default: all cores); 0 runs inside this "
        "process, for debuggers",
    )
    sub.add_argument("--dask", metavar="ADDRESS", help="a Dask scheduler, e.g. tcp://host:8786")


def quick(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--quick",
        type=positive,
        nargs="?",
        const=5,
        metavar="SPLITS",
        help="a cheaper search: all settings on this many splits (default 5), then the best two on "
        "all 25. Settings that tie go along, up to three; if more tie, they see five more splits first. Tables "
        "say so. Searches that saw less are done again",
    )


def how(sub: argparse.ArgumentParser) -> None:
    results(sub)
    workers(sub)
    sub.add_argument("--timeout", type=seconds, help="stop a run after this long: 90, 15m, 2h")
    sub.add_argument("--memory", type=_megabytes, help="stop a run above this: 800M, 4G")
    sub.add_argument("--force", action="store_true", help="do finished runs again")
    sub.add_argument(
        "--skip-failed", action="store_true", help="do not retry runs that failed before"
    )
    sub.add_argument(
        "--keep",
        type=names,
        default=[],
        metavar="ARRAYS",
        help=f"keep arrays beside the records: {', '.join(KEEP)}",
    )


def cells_of(arguments: argparse.Namespace, protocol: Protocol) -> list[Cell]:
    from benchmark.protocol import plan

    own = own_tables(arguments, protocol)
    named = data_refs(arguments.datasets) if arguments.datasets or not own else []
    return plan.cells(arguments.models or plan.all_models(), [*named, *own])


def own_tables(arguments: argparse.Namespace, protocol: Protocol | None = None) -> list[DataRef]:
    """The user's tables, checked before anything runs, with their treatments stated.

    Without a protocol it is the paper's, and the command has no options to change it.
    """
    fewer, protocol = protocol is not None, protocol or Protocol()
    files, targets = arguments.data, arguments.target
    asked = {"target": targets, "drop": arguments.drop, **how_of(arguments)}
    if not files and (named := [f"--{k.replace('_', '-')}" for k, v in asked.items() if v]):
        raise UserError(
            f"{' and '.join(named)} need{'s' * (len(named) == 1)} --data FILE, a table of your own; the registered datasets are "
            f"taken as they are."
        )
    if len(targets) not in (0, 1, len(files)):
        raise UserError(
            f"--target is given {counted(len(targets), 'time')} and --data {counted(len(files), 'time')}. Give one column "
            f"for all tables, or one per table in the same order."
        )
    if len(arguments.test) not in (0, len(files)):
        raise UserError(
            f"--test is given {counted(len(arguments.test), 'time')} and --data "
            f"{counted(len(files), 'time')}. Give a test set "
            f"for every table, in the same order; or rank tables with one and tables without one apart."
        )
    if not files:
        return []
    from benchmark.data.load import load, own_table

    references = []
    for i, file in enumerate(files):
        target = targets[i % len(targets)] if targets else None
        how = how_of(arguments, i)
        splits = protocol.folds, protocol.repeats, fewer
        reference = own_table(file, target, arguments.drop, *splits, **how)
        table = load(reference)
        for note in table.notes:
            say(f"{file}: {note}.")
        if table.test is not None:
            few = "" if table.groups is None else " (as far as there are groups to choose from)"
            say(
                f"{file}: every run is tested on the same {counted(table.test.sum(), 'row')}. The "
                f"{len(protocol.splits())} runs differ in the validation rows{few} and the seed only, so their spread says nothing of "
                f"other test rows."
            )
        references.append(reference)
    return references


def data_refs(names: list[str] | None) -> list[DataRef]:
    from benchmark.protocol import plan

    return [registry.data_ref(name) for name in names] if names else plan.all_datasets()


def protocol_of(arguments: argparse.Namespace) -> Protocol:
    return Protocol(arguments.repeats, arguments.folds)


def store_of(arguments: argparse.Namespace, cells: Sequence[Cell]) -> Store:
    """Where the records of these cells are; one's own stand beside the shipped ones."""
    from benchmark.runner.shipped import store_at

    if any(cell.own for cell in cells):
        return own_store(arguments)
    return store_at(arguments.results)


def own_store(arguments: argparse.Namespace) -> Store:
    """Records of one's own over the shipped ones."""
    from benchmark.runner.records import Store
    from benchmark.runner.shipped import Shipped

    return Store(own_results(arguments.results), below=Shipped())


def means_of(arguments: argparse.Namespace, store: Store) -> Means:
    from benchmark.runner.campaign import Means
    from benchmark.runner.worker import Limits

    if arguments.jobs == 0 and (arguments.timeout or arguments.memory):
        raise UserError("--jobs 0 runs inside this process, which no limit can stop. Use --jobs 1.")
    check_folder(store.root, "--results")
    for name in arguments.keep:
        registry.check_name("array to keep", name, KEEP)
    return Means(
        store=store,
        jobs=arguments.jobs,
        dask=arguments.dask,
        limits=Limits(arguments.timeout, arguments.memory),
        keep=tuple(arguments.keep),
        force=arguments.force,
        retry=not arguments.skip_failed,
    )


def check_results(folder: Path) -> None:
    """Before anything is made of records: is there anything that could hold some?"""
    if not has_records(folder):
        raise UserError(f"There is no results folder {folder}; --results names another.")


def has_records(folder: Path) -> bool:
    from benchmark.runner.shipped import store_at

    return folder.is_dir() or store_at(folder).below is not None


def check_folder(folder: Path, option: str) -> None:
    """Before anything takes its time: can what comes of it be written there?"""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return
    except OSError as error:
        raise UserError(
            f"Nothing can be written to {folder}: {error.strerror}. Name another folder with {option}."
        ) from error


def refuse_foreign(path: Path, mark: str) -> None:
    """A file of that name is overwritten only if it is of our own making, which holds `mark`."""
    try:
        foreign = path.exists() and mark.encode() not in read_whole(path, 1 << 30)
    except (Unreadable, OSError):
        foreign = True
    if foreign:
        raise UserError(
            f"{path} exists, and this project did not write it. Name another place, or move it away."
        )


def tell_failures(failures: list[dict[str, Any]]) -> None:
    if not failures:
        return
    kinds: dict[str, int] = {}
    for record in failures:
        kinds[record["status"]] = kinds.get(record["status"], 0) + 1
    say(f"{counted(len(failures), 'run')} failed:")
    for kind, count in sorted(kinds.items()):
        first = next(r for r in failures if r["status"] == kind)
        say(
            f"  {count} x {kind} ({FAILURES[kind]}), e.g. {first['key']}: "
            f"{first['error']['message'] or '(no message)'}"
        )
    _tell_what_to_try(failures)


def _tell_what_to_try(failures: list[dict[str, Any]]) -> None:
    """Of own models alone, and of errors: what took too long would do so on other data, too."""
    from benchmark.runner.trial import advice

    for name in sorted({r["spec"]["model"] for r in failures if r["status"] == "error"}):
        entry = registry.find_model(name)
        if entry is not None and entry.own:
            say(advice(entry.called))


def table_form(group: argparse.ArgumentParser) -> None:
    group.add_argument(
        "--format",
        choices=["text", "md", "csv", "tex", "json"],
        default="text",
        help="text (default): our means and verdicts, at most 100 columns; md adds standard deviations "
        "and remarks, csv and json are for computing, tex is for a paper",
    )
    group.add_argument(
        "--paper",
        action="store_true",
        help="in text, the printed numbers beside ours (on a terminal they are always there, in grey)",
    )
