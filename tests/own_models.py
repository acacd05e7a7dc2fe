"""Models that misbehave in a known way, registered like a user's own: through BENCHMARK_MODELS."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from threadpoolctl import threadpool_info

from benchmark.protocol.spec import UserError

HOG = "import time; hoard = bytearray(900_000_000); hoard[::4096] = b'x' * len(hoard[::4096]); time.sleep(60)"


def child():
    """What a model's child runs. A test knows its own by their mark: others may run tests as well."""
    return f"import time; time.sleep(600)  # {os.environ['MARK']}"


def nested(depth):
    inner = []
    for _ in range(depth):
        inner = [inner]
    return inner


REPORTS = {
    "digits": {"large": 10**5000},
    "deep": {"nested": nested(5000)},
    "object": {"thing": object()},
    "wrong kind": {"constant_mask": "yes"},
    "huge report": {"text": "x" * 50_000_000},
}
"""What a model says of itself that no record can hold."""


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no message")


class Prior(ClassifierMixin, BaseEstimator):
    """Predicts class frequencies, after doing what `trouble` says."""

    def __init__(self, trouble="none", strength=1.0, random_state=None):
        self.trouble = trouble
        self.strength = strength
        self.random_state = random_state

    def fit(self, X, y, eval_set=None):
        if self.trouble == "sleep":
            time.sleep(600)
        if self.trouble == "hog":
            hoard = []
            for _ in range(1000):
                hoard.append(np.ones(2_000_000))
                time.sleep(0.02)
        if self.trouble == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.trouble == "raise":
            raise RuntimeError("a bug in the model")
        if self.trouble == "refuse":
            raise NotImplementedError("more than two classes")
        if self.trouble == "memory":
            raise MemoryError("no room")
        if self.trouble == "exit":
            raise SystemExit(0)
        if self.trouble == "ask":
            input("a model must not wait for an answer")
        if self.trouble == "unprintable":
            raise Unprintable
        if self.trouble == "child":
            subprocess.run([sys.executable, "-c", HOG], check=True)
        if self.trouble == "flee":
            subprocess.Popen([sys.executable, "-c", child()], start_new_session=True)
            time.sleep(600)
        if self.trouble == "real-time signal":
            os.kill(os.getpid(), signal.SIGRTMIN + 1)
        if self.trouble == "meddle":
            for descriptor in range(3, 64):
                try:
                    os.write(descriptor, b"not a reply\n")
                except OSError:
                    continue
        if self.trouble.startswith("close"):
            os.closerange(3, 64)
        if self.trouble == "close and sleep":
            time.sleep(600)
        if self.trouble == "no message":
            raise UserError("")
        if self.trouble == "control":
            raise RuntimeError("\x1b[2J\x1b]0;title\x07 gone\r and over")
        if self.trouble == "flood":
            for _ in range(200):
                os.write(2, b"x" * 100_000)
        if self.trouble == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if self.trouble == "spin":  # one call that never gives Python's lock back
            sum(range(10**12))
        if self.trouble == "spawn":
            subprocess.Popen([sys.executable, "-c", child()])
            time.sleep(600)
        if self.trouble == "print":
            print("noise on standard output")
        self.classes_, counts = np.unique(y, return_counts=True)
        self.share_ = counts / counts.sum()
        self.random_ = np.random.rand()  # noqa: NPY002 - shows that the global generator is seeded
        self.fit_report_ = {
            "drawn": self.random_,
            "valid": len(eval_set[1]) if eval_set else 0,
            "threads": [pool["num_threads"] for pool in threadpool_info()],
            "environment": os.environ.get("OMP_NUM_THREADS"),
            "curve": np.array([1.5, np.nan]),
            **REPORTS.get(self.trouble, {}),
        }
        return self

    def predict_proba(self, X):
        share = np.full(len(self.classes_), np.nan) if self.trouble == "nan" else self.share_
        # A smooth function of the strength with its best value inside the range.
        tilt = np.where(X[:, 0] > 0, 1.0, -1.0) * np.exp(-((self.strength - 0.3) ** 2))
        proba = np.tile(share, (len(X), 1))
        proba[:, 0] = np.clip(proba[:, 0] + 0.3 * tilt, 0, 1)
        return proba / proba.sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]


REGISTRY = """
[prior]
class = "own_models:Prior"
params = { trouble = "none", strength = 1.0 }
grid = { strength = [0.1, 0.3, 0.5] }

[prior-range]
class = "own_models:Prior"
params = { trouble = "none", strength = 1.0 }
range.strength = { low = 0.0, high = 1.0 }
trials = 6
"""
