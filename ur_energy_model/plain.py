"""Values for JSON and YAML."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any, *, digits: int | None = None) -> Any:
    """Convert arrays to lists, numbers of numpy to those of Python, NaN and infinity to None.

    Args:
        value: mappings and sequences of any depth.
        digits: significant digits of numbers to keep; None for all.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item, digits=digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, digits=digits) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist(), digits=digits)
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return value if digits is None else float(f"{value:.{digits}g}")
    return value
