"""python -m benchmark"""

import contextlib
import os
import signal
import sys

# Until the command line can answer Ctrl-C, it ends the process without a word.
signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    # The installed script looks for a user's own models where `python -m` and the workers do: in the
    # working folder, last, where it shadows nothing.
    with contextlib.suppress(FileNotFoundError):  # the folder is gone
        if (here := os.getcwd()) not in sys.path:  # noqa: PTH109
            sys.path.append(here)
    from benchmark.cli.main import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
