"""python -m benchmark"""

import sys

from benchmark.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
