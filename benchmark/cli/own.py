"""Commands for one's own work: ranks beside the 17, records as a table, a model to keep and ask."""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.cli.arguments import (
    RESULTS,
    budget,
    check_folder,
    check_results,
    data_refs,
    how_of,
    means_of,
    metric,
    names,
    own_columns,
    own_store,
    own_tables,
    refuse_foreign,
    tell_failures,
)
from benchmark.cli.codes import FAILED, GAPS, OK
from benchmark.progress import say, waiting
from benchmark.protocol.plan import Cell, canonical_model
from benchmark.protocol.spec import UserError
from benchmark.text import counted

if TYPE_CHECKING:
    from benchmark.runner.fitted import Explanation


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
    metric(sub)
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
    own models and tables, and of models that are named, are done first, within the budget. Writes a
    page of its own."""
    from benchmark import paper
    from benchmark.judge import rank as ranking
    from benchmark.report.ranked import write

    own = own_tables(arguments)
    shown = arguments.datasets or ([] if own else list(paper.DATASETS))
    data = [*(data_refs(shown) if shown else []), *own]
    models = [m if m == ranking.PAPER else canonical_model(m) for m in arguments.models]
    against = canonical_model(arguments.against) if arguments.against else None
    named = {*models, *filter(None, [against])}
    wanted = ranking.recipe(models, data, arguments.metric, against)
    check_folder(arguments.to, "--to")
    refuse_foreign(arguments.to / "index.html", "protogate-benchmark")
    store = own_store(arguments)
    means = means_of(arguments, store)
    failures = []
    if arguments.budget != 0:
        if arguments.budget is not None:
            means = replace(means, deadline=time.monotonic() + arguments.budget)
        report = ranking.run_missing(wanted, means, named)
        failures = report.failures
        if report.unfinished:
            say(
                f"The budget is used up with {counted(report.unfinished, 'run')} to do; the same command resumes, "
                f"and --budget all does everything."
            )
    tell_failures(failures)
    found = ranking.build(wanted, store, against)
    written = write(found, store, arguments.to)  # before a reader of our output has seen enough
    print(ranking.FORMATS[arguments.format](found))
    say(f"Written to {arguments.to}: {', '.join(path.name for path in written)}.")
    return FAILED if failures else GAPS if found.missing else OK


def export(arguments: argparse.Namespace) -> int:
    """Write all records as one table, a row per run: settings, scores on all three parts, selected
    features, seconds, checksums. The shipped records are among them, in a wheel too, unless --own."""
    from benchmark.runner.frame import check_ending, write
    from benchmark.runner.load import load_records
    from benchmark.runner.shipped import own_folder

    check_ending(arguments.file)
    refuse_foreign(arguments.file, "split_sha256")
    folder = None if arguments.results is RESULTS else arguments.results
    if folder is not None or arguments.own:
        check_results(folder or own_folder())
    with waiting("reading the records"):
        frame = load_records(folder, shipped=not arguments.own)
        write(frame, arguments.file)
    models = counted(frame["model"].nunique(), "model")
    print(f"{arguments.file}: {counted(len(frame), 'run')} of {models}")
    return OK


# A fitted model, and new samples -----------------------------------------------------------------


def fitting(sub: argparse.ArgumentParser) -> None:
    """The words of `fit`."""
    sub.add_argument(
        "--model",
        default="protogate",
        help="protogate (default), protogate-global or protogate-local, with settings as in "
        "protogate:k=5:lam_local=0.01",
    )
    sub.add_argument("--data", type=Path, required=True, metavar="FILE", help="your own table")
    own_columns(sub)
    sub.add_argument(
        "--to", type=Path, required=True, metavar="FOLDER", help="where the model goes"
    )


def fit(arguments: argparse.Namespace) -> int:
    """Fit one model on a table and keep it in a folder, with scaler, class and feature names. What
    `tune` has chosen for the table is used, with the settings that are named, else the registry's.
    A tenth of the rows, or what --valid-size says, chooses the checkpoint; how well it does on new samples, `run` tells. Rows of
    an external test set are not trained on."""
    from benchmark.data.load import load, own_table
    from benchmark.protocol.registry import model_ref
    from benchmark.runner.fitted import check_kept, fit_cell, save

    if len(arguments.target) > 1 or len(arguments.test) > 1:
        raise UserError("fit takes one table, with one --target and one --test.")
    target = arguments.target[0] if arguments.target else None
    entry, overrides = model_ref(arguments.model)
    check_kept(entry)
    data = own_table(arguments.data, target, arguments.drop, folds=None, **how_of(arguments))
    for note in load(data).notes:
        say(f"{arguments.data}: {note}.")
    cell = Cell(entry, data, overrides)
    setting = own_store(arguments).setting(cell, "own", "base", "default")
    assert setting is not None
    check_folder(arguments.to, "--to")
    refuse_foreign(arguments.to / "model.json", "arrays_sha256")
    say(f"Fitting {cell.model} on {arguments.data}, with {setting.origin} settings.")
    with waiting("fitting"):
        about, arrays = fit_cell(cell, setting.params)
    save(about, arrays, arguments.to)
    print(
        f"{arguments.to}: {cell.model} on {len(about.ids)} samples and {len(about.features)} features "
        f"of {data.label}; classes {', '.join(about.classes)}"
    )
    return OK


def sampling(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("model", type=Path, help="the folder that `fit` made")
    sub.add_argument("table", type=Path, help="new samples, with the columns that it was fitted on")


def predict(arguments: argparse.Namespace) -> int:
    """Predict the classes of new samples with a model that `fit` has kept: a row per sample, with its
    id, the class and the share of the vote that each class has. Columns are found by their names."""
    from benchmark.runner import fitted as keeping

    fitted = keeping.read(arguments.model)
    new = keeping.new_samples(fitted, arguments.table)
    for note in new.notes:
        say(f"{arguments.table}: {note}.")
    found = keeping.predict(fitted, new)
    if arguments.format == "json":
        print(json.dumps([asdict(one) for one in found], indent=1))
        return OK
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["id", "predicted", *(f"p_{name}" for name in fitted.about.classes)])
    for one in found:
        writer.writerow([one.id, one.predicted, *(f"{p:.6g}" for p in one.proba.values())])
    return OK


def explain(arguments: argparse.Namespace) -> int:
    """Say why new samples are predicted as they are: the nearest prototypes, which are training
    samples, with their classes and distances, and the features that the sample's gates let through."""
    from benchmark.runner import fitted as keeping

    fitted = keeping.read(arguments.model)
    if arguments.to:
        check_folder(arguments.to, "--to")
    new = keeping.new_samples(fitted, arguments.table)
    for note in new.notes:
        say(f"{arguments.table}: {note}.")
    found = keeping.explain(fitted, new, arguments.sample)
    if arguments.format == "json":
        print(json.dumps([asdict(one) for one in found], indent=1))
    else:
        print("\n\n".join(map(_explained, found)))
    if arguments.to:
        from benchmark.figures.explanation import write
        from benchmark.protocol.spec import folder_name

        for one in found:
            name = folder_name(f"explain-{one.prediction.id}")
            say(f"drawn: {', '.join(map(str, write(one, name, arguments.to)))}")
    return OK


def _explained(found: Explanation) -> str:
    from benchmark.text import grid, visible

    one = found.prediction
    near = [[visible(p.id), p.label, f"{p.distance:.3f}"] for p in found.prototypes]
    kept = [
        [visible(f.feature), f"{f.gate:.3f}", f"{f.value:+.2f}", "yes" if f.globally else "no"]
        for f in found.features
    ]
    votes = ", ".join(f"{name} {share:.2f}" for name, share in one.proba.items())
    parts = [
        f"sample {visible(one.id)}: {one.predicted}  (shares of the vote: {votes})",
        grid([["nearest prototype", "class", "distance"], *near]),
        f"{len(found.features)} of {found.n_features} features are selected for this sample:",
    ]
    if kept:
        head = ["feature", "gate", "value (sd from the mean)", "selected globally"]
        parts.append(grid([head, *kept]))
    return "\n".join(parts)
