"""How much of the attack is made, from which seed, and the count at the end.

`make test` makes a small part of it, `make attack` the whole. Both are set by the environment:
ATTACK=full, ATTACK_SEED=number.
"""

import inspect
import os

from hypothesis import HealthCheck, Phase, given, seed, settings

FULL = os.environ.get("ATTACK") == "full"
SEED = int(os.environ.get("ATTACK_SEED", "16"))
attempts, failures = {}, []


def attempt(name):
    """Count one."""
    attempts[name] = attempts.get(name, 0) + 1


def attack(name, full, small, /, **strategies):
    """A test of so many examples; each is an attempt. Hypothesis shrinks the one that succeeds."""

    def decorate(test):
        def counted(*args, **kwargs):
            attempt(name)
            test(*args, **kwargs)

        counted.__name__ = counted.__qualname__ = test.__name__
        counted.__signature__ = inspect.signature(test)
        configured = settings(
            max_examples=full if FULL else small,
            derandomize=False,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        )
        return configured(seed(SEED)(given(**strategies)(counted)))

    return decorate


def rounds(full, small):
    return range(full if FULL else small)
