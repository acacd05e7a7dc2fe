"""python -m benchmark"""

import signal
import sys

# Until the command line can answer Ctrl-C, it ends the process without a word.
signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    from benchmark.cli.main import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
