"""An independent reproduction harness for ProtoGate (ICML 2024)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmark.api import load_dataset, load_records, rank, run, table
    from benchmark.models.catboost_ import CatBoost
    from benchmark.models.invase import INVASE
    from benchmark.models.knn import KNN
    from benchmark.models.l2x import L2X
    from benchmark.models.lasso import Lasso
    from benchmark.models.lightgbm_ import LightGBM
    from benchmark.models.lspin import LSPIN
    from benchmark.models.mlp import MLP
    from benchmark.models.protogate import ProtoGate
    from benchmark.models.realx import REALX
    from benchmark.models.rf import RandomForest
    from benchmark.models.ridge import Ridge
    from benchmark.models.stg import STG
    from benchmark.models.svm import SVM
    from benchmark.models.tabnet import TabNet
    from benchmark.models.xgboost_ import XGBoost

__version__ = "0.1.0"

# models/ and datasets/ sit beside this folder in a checkout and inside it in a wheel. Either way
# they are imported as benchmark.models and benchmark.datasets, so that they never shadow Hugging
# Face's `datasets` or anybody's `models`.
_ROOT = Path(__file__).resolve().parent.parent
if (_ROOT / "pyproject.toml").is_file() and (_ROOT / "models").is_dir():
    __path__.append(str(_ROOT))

# Imported when asked for, so that `import benchmark` and the command line wait for no library.
_FRONT_DOOR = {
    **dict.fromkeys(("run", "load_dataset", "load_records", "rank", "table"), "api"),
    "CatBoost": "models.catboost_",
    "INVASE": "models.invase",
    "KNN": "models.knn",
    "L2X": "models.l2x",
    "Lasso": "models.lasso",
    "LightGBM": "models.lightgbm_",
    "LSPIN": "models.lspin",
    "MLP": "models.mlp",
    "ProtoGate": "models.protogate",
    "RandomForest": "models.rf",
    "REALX": "models.realx",
    "Ridge": "models.ridge",
    "STG": "models.stg",
    "SVM": "models.svm",
    "TabNet": "models.tabnet",
    "XGBoost": "models.xgboost_",
}


def __getattr__(name: str) -> Any:
    if name not in _FRONT_DOOR:
        raise AttributeError(f"module 'benchmark' has no attribute {name!r}")
    return getattr(import_module(f"benchmark.{_FRONT_DOOR[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_FRONT_DOOR]


__all__ = [
    "INVASE",
    "KNN",
    "L2X",
    "LSPIN",
    "MLP",
    "REALX",
    "STG",
    "SVM",
    "CatBoost",
    "Lasso",
    "LightGBM",
    "ProtoGate",
    "RandomForest",
    "Ridge",
    "TabNet",
    "XGBoost",
    "load_dataset",
    "load_records",
    "rank",
    "run",
    "table",
]
