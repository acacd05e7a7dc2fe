"""Which synthetic data is Table 22 from? Two methods as fingerprints of many ways to generate them.

Lasso has no randomness but its solver's, and RF little: on the data behind a printed cell they give
its digits. Both are run on every combination of generator, scaling and seed, and held against print.
A mean and a standard deviation of an accuracy that agree in every digit hardly ever do so by chance.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmark import paper
from benchmark.datasets import synthetic
from benchmark.files import write_atomic
from benchmark.paper import Printed
from benchmark.protocol import stored
from benchmark.protocol.plan import Protocol
from benchmark.protocol.registry import load_class, models
from benchmark.protocol.spec import SEED
from benchmark.protocol.splits import make_split, scaled
from benchmark.runner.metrics import balanced_accuracy, selection_f1
from benchmark.text import grid, mean_std

TABLE = 22
GENERATORS = ("released", "fixed", "fixed-150-50")
SCALES = ("none", "standard")
SEEDS = (*range(21), SEED, 123, 1234, 2021, 2022, 2023, 2024)
"""Of the data: what people take."""
FEW = (0, 1, SEED)
"""Where a setting costs ten times as much."""
STRENGTHS = (1.0, 10.0, 100.0, 1000.0)
TREES = (10, 50, 100, 200, 1000)


@dataclass(frozen=True)
class Variant:
    """A method with its setting on one way to generate a dataset."""

    model: str
    params: dict[str, Any]
    dataset: str
    generator: str
    scale: str
    seed: int

    @property
    def name(self) -> str:
        setting = " ".join(f"{name}={value:g}" for name, value in self.params.items())
        return f"{self.model} {setting} {self.generator} {self.scale} {self.seed}"


@dataclass(frozen=True)
class Spread:
    """Over the 25 splits."""

    mean: float
    std: float


@dataclass(frozen=True)
class Print:
    """What a variant gave, as tables show it: percent, and the F1 of each reading of the truth."""

    variant: Variant
    accuracy: Spread
    f1: dict[str, Spread]


@dataclass(frozen=True)
class Prints:
    """The file: everything that was tried."""

    revisions: dict[str, int]
    """Of the models; prints of another revision are not these."""
    prints: list[Print]


def variants() -> list[Variant]:
    """The extent of the search, the cheap first."""
    data = [
        (f"syn{which}", generator, scale)
        for which in (1, 2, 3)
        for generator in GENERATORS
        for scale in SCALES
    ]
    lasso = [
        Variant("lasso", {"C": strength}, *where, seed)
        for strength in STRENGTHS
        for seed in (SEEDS if strength == 1.0 else FEW)
        for where in data
    ]
    forests = [
        Variant("rf", {"n_estimators": trees}, *where, SEED)
        for trees in TREES
        for where in data
        if where[2] == "standard"  # trees do not see the scale
    ]
    return lasso + forests


def measure(variant: Variant) -> Print:
    """The protocol's 25 splits, as a run has them."""
    entry = models()[variant.model]
    which = int(variant.dataset[-1])
    raw = synthetic.read({}, which=which, generator=variant.generator, seed=variant.seed)
    y = np.asarray(raw.y, dtype=np.int64)
    accuracies: list[float] = []
    f1: dict[str, list[float]] = {name: [] for name in raw.relevant}
    for repeat, fold in Protocol().splits():
        split = make_split(y, repeat, fold)
        train, valid, test = scaled(raw.X, y, split, variant.scale)
        params = {**entry.params, **variant.params}
        model = load_class(entry)(**params, random_state=SEED)
        model.fit(train.X, train.y, eval_set=(valid.X, valid.y))
        accuracies.append(100 * balanced_accuracy(test.y, model.predict(test.X)))
        selected = model.select(test.X)
        for name, truth in raw.relevant.items():
            f1[name].append(selection_f1(selected, truth[split.test]))
    return Print(variant, _summary(accuracies), {name: _summary(v) for name, v in f1.items()})


def _summary(values: Sequence[float]) -> Spread:
    return Spread(round(float(np.mean(values)), 6), round(float(np.std(values, ddof=1)), 6))


def run(results: Path, done: Prints, jobs: int) -> Iterator[Print]:
    """Measure what is missing; every print is on disk before it is given."""
    known = {json.dumps(asdict(made.variant), sort_keys=True) for made in done.prints}
    missing = [v for v in variants() if json.dumps(asdict(v), sort_keys=True) not in known]
    # Threads: almost all of the time is spent in solvers that let others go on meanwhile.
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for made in pool.map(measure, missing):
                done.prints.append(made)
                write(results, done)
                yield made
        finally:
            pool.shutdown(cancel_futures=True)


# Files -------------------------------------------------------------------------------------------


def path_of(results: Path) -> Path:
    return results / "fingerprint" / f"table{TABLE}.json"


def write(results: Path, prints: Prints) -> None:
    write_atomic(path_of(results), (json.dumps(asdict(prints)) + "\n").encode())


def read(results: Path) -> Prints:
    """What was measured with these models; nothing if they have changed since."""
    remedy = "`python -m benchmark fingerprint` sets it aside and begins again."
    found = stored.read(Prints, path_of(results), remedy)
    return found if found and found.revisions == nothing().revisions else nothing()


def nothing() -> Prints:
    return Prints({name: models()[name].revision for name in ("lasso", "rf")}, [])


# Held against print ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Match:
    """One way to generate all three sets, beside the printed cells of a method."""

    name: str
    equal: int
    """Accuracies whose mean and standard deviation have every printed digit."""
    equal_f1: int
    """F1 scores that have. Of two digits, so that chance gives some."""
    distance: float
    """Mean over accuracies and F1 scores of |difference| in printed standard deviations."""
    cells: dict[str, Print]


def matches(prints: Prints) -> list[Match]:
    """Every combination that was tried on all three sets, the nearest first."""
    groups: dict[str, dict[str, Print]] = {}
    for made in prints.prints:
        groups.setdefault(made.variant.name, {})[made.variant.dataset] = made
    found = []
    for name, cells in groups.items():
        if len(cells) < 3:
            continue
        accuracies = [
            _beside(made.accuracy, made.variant, "balanced_accuracy") for made in cells.values()
        ]
        scores = [f1 for made in cells.values() if (f1 := _nearest_f1(made))]
        gaps = [gap for gap, _ in accuracies + scores]
        equal, equal_f1 = (sum(same for _, same in pairs) for pairs in (accuracies, scores))
        found.append(Match(name, equal, equal_f1, sum(gaps) / len(gaps), cells))
    return sorted(found, key=lambda match: (-match.equal, match.distance))


def _beside(ours: Spread, variant: Variant, metric: str) -> tuple[float, bool]:
    """The difference in printed standard deviations, and whether every printed digit is there."""
    printed = _printed(variant, metric)
    assert printed.mean is not None and printed.std
    return abs(ours.mean - printed.mean) / printed.std, _as_printed(ours, printed)


def _nearest_f1(made: Print) -> tuple[float, bool] | None:
    """By the reading of the truth that comes nearest: nobody knows which the paper took."""
    return min((_beside(f1, made.variant, "f1_select") for f1 in made.f1.values()), default=None)


def _as_printed(ours: Spread, printed: Printed) -> bool:
    assert printed.mean is not None and printed.std is not None
    pairs = (ours.mean, printed.mean), (ours.std, printed.std)
    return all(paper.equal_as_printed(value, shown, 2) for value, shown in pairs)


def single_matches(prints: Prints) -> list[Print]:
    """Single cells whose accuracy has every printed digit, whatever the other sets say."""
    return [p for p in prints.prints if _beside(p.accuracy, p.variant, "balanced_accuracy")[1]]


def _printed(variant: Variant, metric: str) -> Printed:
    found = paper.cell(TABLE, variant.model, variant.dataset, metric)
    assert found is not None
    return found


def compares(prints: Prints, cell: Printed) -> bool:
    """Whether a printed cell was held against other data."""
    return cell.table == TABLE and any(
        (p.variant.model, p.variant.dataset) == (cell.method, cell.dataset)
        and (cell.metric == "balanced_accuracy" or (cell.metric == "f1_select" and p.f1))
        for p in prints.prints
    )


def sentence(prints: Prints) -> str:
    """What the search came to, with its extent."""
    if not prints.prints:
        return "no fingerprint was taken yet"
    done = " and ".join(_extent(prints, model) for model in ("lasso", "rf"))
    best = matches(prints)
    hits = len(single_matches(prints))
    found = (
        f"{hits} of them equal the printed accuracy in every digit"
        if hits
        else "none equals a printed accuracy in every digit"
    )
    several = [match for match in best if match.equal > 1]
    if several:
        found += f", and {several[0].name} does so on {several[0].equal} datasets"
    return (
        f"of the combinations of generator, scaling, seed and setting, {done} were tried; {found}"
    )


def _extent(prints: Prints, model: str) -> str:
    tried = sum(made.variant.model == model for made in prints.prints)
    planned = sum(variant.model == model for variant in variants())
    which = f"{tried} of {planned}" if tried < planned else f"all {planned}"
    return f"{which} with {models()[model].label}"


def to_markdown(prints: Prints, best: int = 8) -> str:
    parts = ["# Which data is Table 22 from?", _about(), _capital(sentence(prints)) + "."]
    rows = [["combination", "syn1", "syn2", "syn3", "accuracies equal", "F1 equal", "distance"]]
    for model in ("lasso", "rf"):
        rows.append(
            [f"**{models()[model].label}, printed**"]
            + [_shown_printed(model, f"syn{n}") for n in (1, 2, 3)]
            + ["", "", ""]
        )
        mine = [match for match in matches(prints) if match.name.startswith(f"{model} ")]
        rows += [
            [match.name.removeprefix(f"{model} ")]
            + [_shown(match.cells[f"syn{n}"]) for n in (1, 2, 3)]
            + [str(match.equal), str(match.equal_f1), f"{match.distance:.2f}"]
            for match in mine[:best]
        ]
    parts.append(grid(rows))
    parts.append(
        "Accuracy, then the F1 of the selected features by each reading of the truth. Distance: mean of the "
        "six differences, in printed standard deviations; of F1 the nearest reading counts. The nearest of "
        "each method are shown."
    )
    return "\n\n".join(parts)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _shown_printed(model: str, dataset: str) -> str:
    cells = (paper.cell(TABLE, model, dataset, name) for name in ("balanced_accuracy", "f1_select"))
    return "; ".join(mean_std(cell.mean, cell.std) for cell in cells if cell)


def _shown(made: Print) -> str:
    return "; ".join(mean_std(s.mean, s.std) for s in (made.accuracy, *made.f1.values()))


def _about() -> str:
    return (
        f"Lasso with C = 1 on {len(SEEDS)} seeds of the data, with C = "
        f"{', '.join(f'{c:g}' for c in STRENGTHS[1:])} on seeds {', '.join(map(str, FEW))} alone; RF with "
        f"{', '.join(map(str, TREES))} trees on seed {SEED} of the data and of the forest alone; each on the "
        f"generators {', '.join(GENERATORS)}, features as drawn and standardised (RF: once), three datasets, "
        f"25 splits. Not searched: other strengths, other seeds of the data with RF and with the larger C, "
        f"other seeds of the forest, other depths of its trees."
    )


def to_json(prints: Prints) -> str:
    return json.dumps({"sentence": sentence(prints), **asdict(prints)}, indent=1)


FORMATS = {"md": to_markdown, "json": to_json}
