"""Commands of the separate experiments: specimens, speed, fidelity, fingerprints, times."""

from __future__ import annotations

import argparse
from functools import partial

from benchmark.cli.arguments import check_folder, data_refs
from benchmark.cli.codes import FAILED, GAPS, OK
from benchmark.progress import say
from benchmark.protocol.stored import or_set_aside, or_told


def specimen(arguments: argparse.Namespace) -> int:
    """Fit single runs again and keep what figures show of the models: masks, prototypes, a map.
    They have the tuned settings, or the registry's where nothing was tuned. A minute or two each."""
    from benchmark.experiments import specimen as bench
    from benchmark.protocol import plan
    from benchmark.protocol.spec import MissingData

    check_folder(arguments.results, "--results")
    absent = False
    for cell in plan.cells(arguments.models, data_refs(arguments.datasets)):
        split = arguments.repeat, arguments.fold
        path = bench.path_of(arguments.results, cell, *split)
        if not arguments.force and bench.is_made(arguments.results, cell, *split):
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
    from benchmark.experiments import speed as stopwatch
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
    features are known, and print what it finds beside the accepted range and where that is from. Finished
    experiments are kept in results/fidelity. Exit code 1 if one is outside its range."""
    from benchmark.experiments import fidelity as experiment
    from benchmark.progress import Progress

    wanted = experiment.chosen(arguments.only)
    results = arguments.results
    keep = or_told if arguments.show else partial(or_set_aside, results)
    found = {
        e.name: None if arguments.force else keep(partial(experiment.read, results, e))
        for e in wanted
    }
    missing = [] if arguments.show else [e for e in wanted if found[e.name] is None]
    with Progress(len(missing), "fidelity") as progress:
        for made in map(experiment.run, missing):
            found[made.name] = made
            experiment.write(arguments.results, made)
            progress.step(made.name)
    print(experiment.FORMATS[arguments.format](found))
    done = [finding for finding in found.values() if finding]
    if any(finding.accepted is False for finding in done):
        return FAILED
    return OK if len(done) == len(found) else GAPS


def fingerprint(arguments: argparse.Namespace) -> int:
    """Run Lasso and RF on many ways to generate the synthetic data, and compare the results with
    Table 22: on the data behind a printed cell it would be equal in every digit. What was measured is
    kept in results/fingerprint, and the same command resumes. An hour or two on one core."""
    from benchmark.experiments import fingerprint as experiment
    from benchmark.progress import Progress

    results = arguments.results
    keep = or_told if arguments.show else partial(or_set_aside, results)
    prints = keep(partial(experiment.read, results)) or experiment.nothing()
    missing = len(experiment.variants()) - len(prints.prints)
    if not arguments.show:
        with Progress(missing, "fingerprint") as progress:
            for made in experiment.run(results, prints, arguments.jobs):
                progress.step(made.variant.name)
    print(experiment.FORMATS[arguments.format](prints))
    return GAPS if arguments.show and missing else OK


def time_(arguments: argparse.Namespace) -> int:
    """Train networks for some epochs and predict, one after the other on one thread, and keep the
    times in results/timings. Stop everything else on the machine first: each file says how busy it
    was."""
    from benchmark.protocol.plan import cells
    from benchmark.tables.needs import timed_everywhere
    from benchmark.tables.reproduce import take_times

    if arguments.models:
        wanted = cells(arguments.models, data_refs(arguments.datasets))
    else:
        names = [data.name for data in data_refs(arguments.datasets)]
        wanted = [cell for cell in timed_everywhere() if cell.data.name in names]
    absent = take_times(wanted, arguments.results, None, arguments.force)
    return GAPS if absent else OK
