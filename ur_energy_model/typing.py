"""Types that many modules share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
"""Numbers; the docstring of what takes or returns one gives shape and unit."""

Mask: TypeAlias = NDArray[np.bool_]
"""Which elements of another array are meant."""

Indices: TypeAlias = NDArray[np.intp]
"""Positions in another array."""

Bytes: TypeAlias = NDArray[np.uint8]
"""Raw memory, such as serialised messages."""

Progress: TypeAlias = Callable[[float, str], None]
"""Told the share of the work that is done (0 to 1) and what is being done."""
