"""Exit codes, as `--help` explains them."""

OK, FAILED, USAGE, GAPS, INTERRUPTED = 0, 1, 2, 3, 130
