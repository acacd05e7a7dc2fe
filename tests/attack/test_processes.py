"""Models that misbehave, servers that do, and odd surroundings."""

import contextlib
import gzip
import http.server
import io
import os
import random
import signal
import subprocess
import sys
import threading
import time
import zipfile
from functools import cache

import own_models
import psutil
import pytest
from attack.scale import FULL, SEED, attempt
from benchmark.datasets import download
from conftest import ROOT, run_all

from benchmark.protocol.registry import data_ref, make_spec, models
from benchmark.runner.worker import Limits

# Models ------------------------------------------------------------------------------------------

MODES = {
    "meddle": "killed",
    "close": "killed",
    "real-time signal": "killed",
    "die": "killed",
    "stop": "timeout",
    "spin": "timeout",
    "flee": "timeout",
    "spawn": "timeout",
    "no message": "error",
    "control": "error",
    "digits": "error",
    "deep": "error",
    "object": "error",
    "wrong kind": "error",
    "huge report": "error",
    "unprintable": "error",
    "exit": "error",
    "nan": "diverged",
    "flood": "ok",
    "print": "ok",
}
"""What a model does -> what its run becomes."""


def specs(trouble, n=1):
    entry = models()["prior"]
    return [make_spec(entry, data_ref("syn1"), {"trouble": trouble}, r, 0) for r in range(n)]


def survivors():
    return [
        p
        for p in psutil.process_iter(["cmdline"])
        if own_models.child() in (p.info["cmdline"] or [])
    ]


def test_models_that_misbehave(misbehaving, capsys):
    """Each in its turn on one worker, with a good run after it that must not notice."""
    modes = MODES if FULL else ("meddle", "no message", "digits", "control", "wrong kind")
    good = specs("none", len(modes))
    wanted = [spec for i, mode in enumerate(modes) for spec in (*specs(mode), good[i])]
    # Long enough for a good run on a busy machine: what does not end by itself is stopped by it.
    outcomes = run_all(wanted, jobs=1, limits=Limits(seconds=30))
    done = {outcome.record["key"]: outcome.record for outcome in outcomes}
    for mode, after in zip(modes, good, strict=True):
        attempt("models that misbehave")
        [bad] = specs(mode)
        assert done[bad.key]["status"] == MODES[mode], (mode, done[bad.key])
        assert done[after.key]["status"] == "ok", (mode, done[after.key])
        if mode == "meddle":
            assert "not that of this run" in done[bad.key]["error"]["message"]
    assert survivors() == []


def test_what_a_failure_says_can_be_shown(misbehaving, tmp_path, capsys, inside):
    """Classes 18 and 26: no message, or one that moves the cursor."""
    for mode in ("no message", "control"):
        attempt("messages of failures")
        words = ["--models", f"prior:trouble={mode}", "--datasets", "syn1", "--repeats", "1",
                 "--folds", "2"]  # fmt: skip
        results = ["--results", tmp_path / mode]
        done = inside("run", *words, "--jobs", "0", *results, check=1)
        shown = inside("status", *results, check=3)
        for text in (done.stderr, shown.stdout):
            assert "\x1b" not in text and "\x07" not in text and "\r" not in text
            assert ("(no message)" in text) == (mode == "no message")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a grandchild may survive")
@pytest.mark.parametrize("mode", ["spin", "spawn", "flee"] if FULL else ["spawn"])
def test_nobody_survives_the_parent(misbehaving, mode):
    """Class 6: the parent is killed while the model holds Python's lock or has children."""
    attempt("parents killed")
    code = (
        "from benchmark.protocol.registry import data_ref, make_spec, models\n"
        "from benchmark.runner.worker import Worker\n"
        f"params = {{'trouble': {mode!r}}}\n"
        "Worker().run(make_spec(models()['prior'], data_ref('syn1'), params, 0, 0))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        family = psutil.Process(parent.pid).children(recursive=True)
        busy = [p for p in family if p.cpu_times().user > 4] if mode == "spin" else survivors()
        if busy:
            break
        time.sleep(0.1)
    assert busy, "the model did not get as far"
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    _, alive = psutil.wait_procs(family, timeout=20)
    assert alive == [] and survivors() == []


# Servers -----------------------------------------------------------------------------------------


ZEROS = bytes(20_000_000)


@cache
def archive():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("data.csv", ZEROS)
    return packed.getvalue()


@cache
def bomb():
    return gzip.compress(ZEROS)


class Server(http.server.BaseHTTPRequestHandler):
    """Answers as its path says."""

    def do_GET(self):
        with contextlib.suppress(OSError):
            getattr(self, self.path.strip("/").replace("-", "_"))()

    def log_message(self, *_):
        pass

    def head(self, code=200, **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def trickle_of_headers(self):
        for byte in b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10_000:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(0.05)

    def trickle(self):
        self.head()
        for _ in range(10_000):
            self.wfile.write(b"x")
            self.wfile.flush()
            time.sleep(0.05)

    def endless(self):
        self.head()
        while True:
            self.wfile.write(b"x" * 65536)

    def silence(self):
        time.sleep(20)

    def cut(self):
        self.head(Content_Length=1000)
        self.wfile.write(b"x" * 10)

    def bomb(self):
        content = bomb()
        self.head(Content_Encoding="gzip", Content_Length=len(content))
        self.wfile.write(content)

    def archive(self):
        content = archive()
        self.head(Content_Length=len(content))
        self.wfile.write(content)

    def circle(self):
        self.head(302, Location=self.path)

    def page(self):
        self.head()
        self.wfile.write(b"<html>log in first</html>")

    def missing(self):
        self.head(404)

    def lies(self):
        self.head(Content_Length="-5")
        self.wfile.write(b"x" * 100)

    def chunks(self):
        self.head(Transfer_Encoding="chunked")
        self.wfile.write(b"zz\r\nnot a chunk\r\n")


MISDEEDS = [name for name in vars(Server) if name not in ("do_GET", "log_message", "head")]
MISDEEDS = [name for name in MISDEEDS if not name.startswith("_")]


TOO_SLOW, TOO_LARGE = "not finished after", "more than 1 MB"
REASONS = {
    "trickle": TOO_SLOW,
    "trickle_of_headers": TOO_SLOW,
    "silence": TOO_SLOW,
    "endless": TOO_LARGE,
    "bomb": TOO_LARGE,
    "archive": TOO_LARGE,
    "page": "SHA-256",
    "missing": "404",
}


@pytest.fixture(scope="module")
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_download_servers(tmp_path, address, misdeed):
    """Class 17: whatever a server does, the download ends in time and nothing is left behind."""
    moments = random.Random(f"{SEED}/{misdeed}")
    for _ in range(3 if FULL else 1):
        attempt("download servers")
        longest = 30.0 if REASONS.get(misdeed) == TOO_LARGE else 1.0 + moments.random()
        file = {
            "name": "data.csv", "urls": [f"{address}/{misdeed.replace('_', '-')}"],
            "sha256": "0" * 64, "max_mb": 1.0, "max_seconds": longest,
            **({"member": "data.csv"} if misdeed == "archive" else {}),
        }  # fmt: skip
        begun = time.monotonic()
        with pytest.raises(download.DownloadError, match=REASONS.get(misdeed)):
            download.fetch(file, tmp_path, progress=False)
        assert time.monotonic() - begun < longest + 15
        assert not list(tmp_path.glob("data.csv"))
        if not FULL:
            return


# Surroundings ------------------------------------------------------------------------------------

ODD = {
    "ascii": ({"PYTHONIOENCODING": "ascii"}, ["table", "3"], (0, 3)),
    "ascii, a large table": ({"PYTHONIOENCODING": "ascii"}, ["table", "2"], (0, 3)),
    "latin1": ({"PYTHONIOENCODING": "latin-1"}, ["claims"], (0,)),
    "C locale": ({"LC_ALL": "C", "PYTHONUTF8": "0"}, ["list"], (0,)),
    "cp437": ({"PYTHONIOENCODING": "cp437"}, ["audit"], (0,)),
    "no such user": ({"BENCHMARK_CACHE": "~nosuchuser"}, ["data", "status"], (2,)),
    "no such user's data": ({"BENCHMARK_DATA": "~nosuchuser/x"}, ["data", "status"], (2,)),
    "data in a circle": ({}, ["data", "status", "--data-dir", "{loop}"], (2,)),
    "no folder": ({}, ["data", "status", "--data-dir", "/nowhere"], (2,)),
    "results in a circle": ({}, ["status", "--results", "{loop}"], (1, 2)),
    "a pipe for models": ({"BENCHMARK_MODELS": "{pipe}"}, ["list"], (2,)),
    "a folder for models": ({"BENCHMARK_MODELS": "/"}, ["list"], (2,)),
    "endless models": ({"BENCHMARK_MODELS": "/dev/zero"}, ["list"], (2,)),
    "a pipe for a table": ({}, ["run", "--data", "{pipe}", "--target", "y"], (2,)),
    "a folder for a table": ({}, ["run", "--data", "{folder}", "--target", "y"], (2,)),
    "many repeats": ({}, ["run", "--repeats", "100000000"], (2,)),
    "no home": ({"HOME": "/nowhere"}, ["list"], (0,)),
    "damaged records": ({}, ["verify", "--results", "{damaged}", "knn"], (2,)),
    "a folder that leads out": ({}, ["verify", "../../etc"], (2,)),
}


@pytest.mark.parametrize("name", ODD if FULL else ["ascii", "data in a circle", "damaged records"])
def test_surroundings(cli, tmp_path, name):
    attempt("surroundings")
    environment, words, codes = ODD[name]
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    damaged = tmp_path / "results" / "runs" / "knn" / "colon" / "03903229"
    damaged.mkdir(parents=True)
    (damaged / "r0f0.json").write_text('{"schema": NaN}')
    (damaged / "r0f1.json").symlink_to("/dev/zero")
    stand = {
        "loop": tmp_path / "loop", "pipe": tmp_path / "pipe", "folder": tmp_path,
        "damaged": tmp_path / "results",
    }  # fmt: skip
    environment = {key: value.format(**stand) for key, value in environment.items()}
    done = cli(*(word.format(**stand) for word in words), timeout=120, cwd=ROOT, **environment)
    assert done.returncode in codes, done.stdout[-500:] + done.stderr
    if done.returncode == 2:
        assert done.stderr.strip()
    if name == "damaged records":
        assert done.stderr.count("not a record: ") == 2
