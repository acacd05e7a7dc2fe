"""What docs/security.md promises of the code: no pickle, no eval, no shell, no read without an end."""

import ast
from functools import cache

from conftest import ROOT

FILES = sorted(
    path
    for folder in ("benchmark", "datasets", "models")
    for path in (ROOT / folder).rglob("*.py")
    if "embedded" not in path.parts  # what made the shipped files, and runs for no user
)

UNSAFE = {"eval", "exec", "compile", "__import__"}
PICKLES = {"pickle", "cPickle", "dill", "joblib", "shelve", "marshal", "cloudpickle"}
SHELLS = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}
WHOLE = {"read_text", "read_bytes"}

SHIPPED = ("files(", "joinpath(")
"""Read from the package itself."""
BOUNDED = {
    ("benchmark/data/places.py", "read_text"): "the note of a hash beside a cached file",
    ("benchmark/experiments/stopwatch.py", "read_text"): "/proc",
    ("benchmark/runner/guard.py", "read_text"): "/proc",
    ("benchmark/runner/machine.py", "read_text"): "/proc",
    ("benchmark/runner/machine.py", "read_bytes"): "the installed sources",
    ("benchmark/report/gather.py", "read_text"): "figures that this command has drawn",
    ("benchmark/report/gather.py", "read_bytes"): "figures that this command has drawn",
    ("benchmark/report/files.py", "read_text"): "the README beside the reports",
    ("benchmark/figures/inputs.py", "read_text"): "figures that this command has drawn",
    ("benchmark/figures/inputs.py", "read_bytes"): "our own code",
    ("datasets/cohort.py", "read_text"): "a list of genes whose hash was checked",
    ("datasets/download.py", "read_bytes"): "a download that was bounded on arrival",
}
"""Reads of whole files that need no limit, and why."""


@cache
def nodes():
    """Every import and call, with its place."""
    return [
        (f"{path.relative_to(ROOT)}:{node.lineno}", node)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call | ast.Import | ast.ImportFrom)
    ]


def called():
    return [
        (place, node, ast.unparse(node.func)) for place, node in nodes() if hasattr(node, "func")
    ]


def test_nothing_is_unpickled():
    for place, node in nodes():
        if not isinstance(node, ast.Call):
            names = {alias.name.partition(".")[0] for alias in node.names}
            module = (getattr(node, "module", None) or "").partition(".")[0]
            assert not (names | {module}) & PICKLES, place
    for place, node, name in called():
        keywords = {k.arg: ast.unparse(k.value) for k in node.keywords}
        assert keywords.get("allow_pickle", "False") == "False", place
        if name in ("np.load", "numpy.load"):
            assert keywords.get("allow_pickle") == "False", place
        if name == "torch.load":
            assert keywords.get("weights_only") == "True", place


def test_nothing_runs_what_a_file_says():
    for place, node, name in called():
        assert name not in UNSAFE, place
        assert name not in SHELLS and not name.startswith("os.spawn"), place
        assert all(k.arg != "shell" for k in node.keywords), place


def test_what_is_read_whole_has_an_end():
    found = set()
    for place, node, name in called():
        read = place.partition(":")[0], name.rpartition(".")[2]
        if read[1] in WHOLE and not any(word in ast.unparse(node) for word in SHIPPED):
            assert read in BOUNDED, f"{place}: use benchmark.files.read_whole"
            found.add(read)
    assert BOUNDED.keys() == found, "the list names reads that are gone"
