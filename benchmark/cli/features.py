"""The command that names the features which selectors select."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from benchmark.cli.arguments import (
    cells_of,
    check_folder,
    means_of,
    own_store,
    positive,
    protocol_of,
    refuse_foreign,
    tell_failures,
)
from benchmark.cli.codes import FAILED, GAPS, OK
from benchmark.files import write_atomic
from benchmark.progress import say
from benchmark.protocol.spec import UserError, folder_name
from benchmark.text import csv_text, grid, visible

if TYPE_CHECKING:
    from benchmark.judge.features import Selection


def words(sub: argparse.ArgumentParser) -> None:
    """Beside those that say what to run."""
    sub.add_argument(
        "--to",
        type=Path,
        default=Path("features"),
        help="folder for features.csv and a figure per model (default: features)",
    )
    sub.add_argument("--top", type=positive, default=15, help="features to print (default 15)")


def features(arguments: argparse.Namespace) -> int:
    """Name the features that selectors select: for which share of the test samples of all runs, per
    class, in how many runs, how stable the choice is, and what chance would give. Does the runs that
    are missing, and writes features.csv with all features and a figure per model and dataset."""
    from benchmark.figures import features as drawing
    from benchmark.figures import style
    from benchmark.judge import features as judging
    from benchmark.runner.campaign import run_missing
    from benchmark.runner.summary import unselective

    arguments.models = arguments.models or ["protogate"]
    arguments.keep = ["selected"]
    protocol = protocol_of(arguments)
    cells = cells_of(arguments, protocol)
    selecting = [cell for cell in cells if cell.entry.selects != "none" or cell.entry.own]
    if not selecting:
        raise UserError("None of these models selects features; protogate, lspin and lasso do.")
    if others := sorted({cell.model for cell in cells if cell not in selecting}):
        say(f"Left out, because they select no features: {', '.join(others)}.")
    check_folder(arguments.to, "--to")
    refuse_foreign(arguments.to / "features.csv", "feature,class,share")
    store = own_store(arguments)
    means = means_of(arguments, store)
    chosen = [(cell, store.setting(cell, "own", "base", "default")) for cell in selecting]
    planned = [(cell, cell.specs(s.params, protocol)) for cell, s in chosen if s is not None]
    report = run_missing([spec for _, specs in planned for spec in specs], means)
    tell_failures(report.failures)
    found, told, silent = [], [], []
    for cell, specs in planned:
        try:
            found.append(judging.measure(cell, specs, store))
            told.append(specs[0])
        except UserError as error:
            silent.append(str(error))
    for message in silent:
        say(message)
    failed = bool(report.failures)
    if not found:
        if failed:
            say("No run of a model that selects features succeeded, so there is nothing to show.")
        return FAILED if failed else GAPS
    write_atomic(arguments.to / "features.csv", to_csv(found).encode())
    for one, spec in zip(found, told, strict=True):
        if arguments.format == "md":
            print(to_text(one, arguments.top), end="\n\n")
        if sentence := unselective(one.selected, len(one.features), spec):
            say(textwrap.fill(sentence, 100))
        name = folder_name(f"features-{one.model}-{one.dataset}")
        with style.applied():
            style.save(drawing.draw(one), name, arguments.to)
    if arguments.format == "csv":
        print(to_csv(found), end="")
    if arguments.format == "json":
        print(json.dumps([asdict(one) for one in found], indent=1, allow_nan=False))
    say(f"Written to {arguments.to}: features.csv, and a figure per model and dataset.")
    return FAILED if failed else GAPS if silent or others else OK


def to_text(found: Selection, top: int) -> str:
    stability = "undefined" if found.stability is None else f"{found.stability:.2f}"
    classes = list(found.features[0].by_class)
    head = ["feature", "selected %", *classes, "runs", "above chance"]
    lines = [
        [
            visible(one.feature),
            f"{100 * one.share:.1f}",
            *(f"{100 * one.by_class[name]:.1f}" for name in classes),
            f"{one.runs} of {found.runs}",
            "yes" if one.above_chance else "no",
        ]
        for one in found.features[:top]
    ]
    return (
        f"{found.model} on {found.dataset}: {found.selected:.1f} of {len(found.features)} features per "
        f"sample, stability {stability} over {found.runs} runs, by chance none above "
        f"{100 * found.chance:.1f} %\n" + grid([head, *lines])
    )


def to_csv(found: Sequence[Selection]) -> str:
    """A row per model, feature and class, and one for all classes, whose name is empty."""
    rows = [
        [one.model, one.dataset, feature.feature, name, f"{share:.6g}", feature.runs, one.runs]
        + [f"{one.chance:.6g}", one.stability]
        for one in found
        for feature in one.features
        for name, share in {"": feature.share, **feature.by_class}.items()
    ]
    head = [
        "model",
        "dataset",
        "feature",
        "class",
        "share",
        "runs",
        "of_runs",
        "chance",
        "stability",
    ]
    return csv_text(head, rows) + "\n"
