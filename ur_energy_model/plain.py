"""Values for JSON and YAML."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np


def plain(value: Any, *, digits: int | None = None) -> Any:
    """Convert values to those that JSON has.

    Arrays become lists, numbers of numpy those of Python, NaN and infinity None, dates and times
    ISO 8601 text, durations seconds, and bytes hexadecimal text.

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
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal):
        return plain(float(value), digits=digits)
    return value.hex() if isinstance(value, bytes) else value
