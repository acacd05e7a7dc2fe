"""Commands that do runs, and those that ask what there is to run."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.cli.arguments import (
    cells_of,
    means_of,
    protocol_of,
    store_of,
    tell_failures,
)
from benchmark.cli.codes import FAILED, GAPS, OK
from benchmark.progress import say
from benchmark.protocol import registry
from benchmark.protocol.plan import Cell
from benchmark.protocol.spec import NO_AUROC, RunSpec, UserError

if TYPE_CHECKING:
    from benchmark.protocol.choices import Setting
    from benchmark.runner.summary import Row

SETTINGS = {
    "auto": ("own", "base", "default"),
    "default": ("default",),
    "tuned": ("own",),
    "recovered": ("recovered",),
}
"""What `run --settings` takes -> where the settings come from, in this order."""


def data(arguments: argparse.Namespace) -> int:
    """Show which datasets are at hand and where they come from; get some of them by download;
    import a file that you have (checked against the registry, then copied into the cache); or check
    whether they are the paper's: KNN has no randomness, so on the paper's data it gives every printed digit."""
    from benchmark.data import getting
    from benchmark.text import first_line, grid

    if arguments.action in ("status", "get"):
        names = arguments.names or list(registry.datasets())
        rows = getting.status(names) if arguments.action == "status" else getting.get(names)
        # A failure explains itself in several lines, which do not fit into a table.
        short = [[r.name, r.state, first_line(r.detail)] for r in rows]
        print(grid([["dataset", "state", "where"], *short]))
        for row in rows:
            if row.state == "failed":
                say(f"\n{row.detail}")
        return OK if all(row.state == "ready" for row in rows) else GAPS
    if arguments.action == "check":
        return _check_data(arguments.names)
    if len(arguments.names) != 2:
        raise UserError(
            "import takes a dataset and a file: python -m benchmark data import lung lung.mat"
        )
    name, path = arguments.names
    registry.check_name("dataset", name, registry.datasets())
    imported = getting.import_(name, Path(path))
    print(f"{name}: imported, {imported.X.shape[0]} x {imported.X.shape[1]}.")
    return OK


def _check_data(names: list[str]) -> int:
    from benchmark.experiments.datacheck import check

    if not names:
        raise UserError("Name what to check: python -m benchmark data check meta-pam")
    different = 0
    for name in names:
        registry.check_name("dataset", name, registry.datasets())
        found = check(name, jobs=0)
        sizes = " / ".join(map(str, found.classes.values()))
        print(f"{name}: {found.shape[0]} x {found.shape[1]}, classes of {sizes}, {found.source}")
        for note in found.notes:
            print(f"  {note}")
        word = "equal to" if found.same else "NOT equal to"
        print(f"  KNN by the paper's rule: {found.ours}, {word} the printed {found.printed}")
        different += not found.same
    return FAILED if different else OK


def run(arguments: argparse.Namespace) -> int:
    """Run models on datasets, 25 runs with one setting each, and print mean and standard deviation of the
    test score. Runs that are finished already are not repeated."""
    from benchmark.runner.campaign import run_missing
    from benchmark.runner.summary import FORMATS, summarise

    protocol = protocol_of(arguments)
    cells = cells_of(arguments, protocol)
    means = means_of(arguments, store_of(arguments, cells))
    sources = SETTINGS[arguments.settings]
    chosen = [(cell, means.store.setting(cell, *sources)) for cell in cells]
    _tell_untuned(chosen, arguments.settings)
    plan = [
        (cell, setting.params, cell.specs(setting.params, protocol))
        for cell, setting in chosen
        if setting is not None
    ]
    report = run_missing([spec for _, _, specs in plan for spec in specs], means)
    rows = [
        summarise(cell.model, cell.data.label, params, specs, report.records, arguments.metric)
        for cell, params, specs in plan
    ]
    if rows:
        print(FORMATS[arguments.format](rows))
    _tell_unselective(zip(rows, [specs[0] for _, _, specs in plan], strict=True))
    for row in rows:
        if arguments.metric == "auroc" and row["runs"] and row["auroc"] is None:
            say(f"{row['model']} on {row['dataset']} has no AUROC: {NO_AUROC}.")
    if "proba" in arguments.keep:
        from benchmark.runner.predictions import write

        for path in write([specs for _, _, specs in plan], means.store):
            say(f"predictions per sample: {path}")
    tell_failures(report.failures)
    unknown = [f"{cell.model} on {cell.data.label}" for cell, setting in chosen if setting is None]
    if unknown and arguments.settings == "recovered":
        say(f"No settings are known to reproduce the printed cell: {', '.join(unknown)}.")
    if report.failures:
        return FAILED
    return GAPS if report.absent or len(plan) < len(chosen) else OK


def _tell_unselective(rows: Iterable[tuple[Row, RunSpec]]) -> None:
    from benchmark.runner.summary import unselective

    for row, spec in rows:
        if sentence := unselective(row["selected_features"], row["features"], spec):
            say(sentence)


def _tell_untuned(chosen: Sequence[tuple[Cell, Setting | None]], settings: str) -> None:
    """Say which settings are not the paper's rule's choice, and how to make them so."""
    names = [
        f"{cell.model} on {cell.data.label}"
        for cell, setting in chosen
        if setting is None or setting.origin == "default"
    ]
    if names and settings in ("auto", "tuned"):
        then = "default settings are used" if settings == "auto" else "they are left out"
        say(
            f"Not tuned, so {then}: {', '.join(names)}.\n"
            f"`python -m benchmark tune --models ...` with the same options of the data chooses settings by "
            f"validation score."
        )


def tune(arguments: argparse.Namespace) -> int:
    """Choose one setting per model and dataset: the best mean validation balanced accuracy over
    the 25 splits; ties go to the first in grid order. A setting that cannot win any more is dropped
    before it has seen all splits, which never changes the choice. Prints the test score of what was
    chosen."""
    from benchmark.runner.summary import FORMATS, summarise
    from benchmark.runner.tune import require_search
    from benchmark.runner.tune import tune as choose

    protocol = protocol_of(arguments)
    cells = cells_of(arguments, protocol)
    means = means_of(arguments, store_of(arguments, cells))
    require_search(cells)
    searched = [cell for cell in cells if cell.search]
    if rest := dict.fromkeys(cell.entry.called for cell in cells if not cell.search):
        say(f"Nothing to choose for {', '.join(rest)}: `run` does the runs.")
    choices, report = choose(searched, protocol, means, arguments.quick)
    rows, first = [], []
    for cell, choice in zip(searched, choices, strict=True):
        if choice is not None:
            specs = cell.specs(choice.params, protocol)
            records, _ = means.store.find([spec.key for spec in specs])
            row = cell.model, cell.data.label, choice.params, specs, records
            rows.append(summarise(*row, arguments.metric))
            first.append(specs[0])
    if rows:
        print(FORMATS[arguments.format](rows))
    _tell_unselective(zip(rows, first, strict=True))
    tell_failures(report.failures)
    return FAILED if report.failures else GAPS if len(rows) < len(searched) else OK


def check_model(arguments: argparse.Namespace) -> int:
    """Try a model on small made-up data: whether it fits and predicts, what it gives, whether the
    same seed gives the same. A registered name, or the place of any class with scikit-learn's `fit`
    and `predict`, as in sklearn.naive_bayes:GaussianNB."""
    from benchmark.runner.trial import check

    failed = 0
    for name, findings in check(arguments.names, arguments.timeout):
        failing = sum(finding.word == "fails" for finding in findings)
        print(f"{name}: {_verdict(failing)}")
        for finding in findings:
            print(
                f"  {finding.word:5}  {finding.what}{': ' * bool(finding.detail)}{finding.detail}"
            )
        failed += failing
    return FAILED if failed else OK


def _verdict(failing: int) -> str:
    if not failing:
        return "fits the contract"
    return f"{failing} points fail" if failing > 1 else "1 point fails"


def verify(arguments: argparse.Namespace) -> int:
    """Do recorded runs again and compare everything outside `meta`: scores, selection, hashes.
    Runs take the kernels that the records name, where this processor can, and then give the same
    bits; other differences between the machines are printed. With --jobs 0 the kernels are this
    process's own."""
    from benchmark.runner.records import Problem, Store
    from benchmark.runner.verify import verify as compare

    store = Store(arguments.results)
    read = [store.read(path) for text in arguments.records for path in store.resolve(text)]
    records = [record for record in read if not isinstance(record, Problem)]
    damaged = [problem for problem in read if isinstance(problem, Problem)]
    for problem in damaged:
        say(f"not a record: {problem}")
    if not records:
        raise UserError("There is no record that could be done again.")
    different = 0
    surroundings: set[str] = set()
    for comparison in compare(records, arguments.jobs, arguments.dask):
        word = "same" if comparison.same else "FAILED" if comparison.failed else "DIFFERENT"
        print(f"{word:9}  {comparison.key}")
        for line in comparison.differences:
            print(f"           {line}")
        different += not comparison.same
        if not (comparison.same or comparison.failed):
            surroundings.update(comparison.surroundings)
    if surroundings:
        print("\nThe records that differ were made with something else; equal bits are promised")
        print("with the same kernels and libraries:")
        for line in sorted(surroundings):
            print(f"           {line}")
    return FAILED if different or damaged else OK
