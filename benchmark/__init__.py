"""An independent reproduction harness for ProtoGate (ICML 2024)."""

from pathlib import Path

__version__ = "0.1.0"

# models/ and datasets/ sit beside this folder in a checkout and inside it in a wheel. Either way
# they are imported as benchmark.models and benchmark.datasets, so that they never shadow Hugging
# Face's `datasets` or anybody's `models`.
_ROOT = Path(__file__).resolve().parent.parent
if (_ROOT / "pyproject.toml").is_file() and (_ROOT / "models").is_dir():
    __path__.append(str(_ROOT))
