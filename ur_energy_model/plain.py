"""Values as JSON and YAML know them, and text that a terminal can show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def plain(value: Any, *, digits: int | None = None) -> Any:
    """Arrays become lists, numbers of numpy those of Python, NaN and infinity None.

    Args:
        value: mappings and sequences of any depth.
        digits: significant digits to keep of numbers; None for all.
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


def printable(text: str) -> str:
    """Text in which control characters, such as those of terminal escapes, are spelled out.

    Line breaks and tabs stay. Also spelled out are characters that change the direction of text
    and halves of surrogate pairs, which terminals cannot encode.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in "\n\t" else each.encode("unicode_escape").decode()
        for each in text
    )
