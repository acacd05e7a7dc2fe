"""A set of features as text in a record, eight to a byte."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def packed(mask: NDArray[np.bool_]) -> str:
    import numpy as np  # here, because tables only unpack and are built without it

    return base64.b64encode(np.packbits(mask).tobytes()).decode("ascii")


def unpacked(text: str, n_features: int) -> set[int]:
    data = base64.b64decode(text)
    return {i for i in range(n_features) if data[i // 8] >> (7 - i % 8) & 1}
