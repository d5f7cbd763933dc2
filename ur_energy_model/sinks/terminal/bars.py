"""Bars and sparklines made of characters."""

from __future__ import annotations

import math
from collections.abc import Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
_STEPS = (1.0, 2.0, 5.0, 10.0)


def bar(share: float, width: int, *, ascii_only: bool = False) -> str:
    """A horizontal bar, padded to its width.

    Args:
        share: of the width that is filled, cut to 0 to 1.
        width: in columns.
        ascii_only: whether the terminal has no block characters.
    """
    share = min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
    if ascii_only:
        return ("#" * round(share * width)).ljust(width)
    whole, eighths = divmod(round(8 * share * width), 8)
    return ("█" * whole + (_EIGHTHS[eighths] if eighths else "")).ljust(width)


def sparkline(values: Sequence[float], width: int, *, ascii_only: bool = False) -> str:
    """The last values as columns between zero and their maximum, padded on the left."""
    last = values[-width:] if width > 0 else ()
    top = max((value for value in last if math.isfinite(value)), default=0.0)
    heights = "_.-=+*%#" if ascii_only else _HEIGHTS

    def column(value: float) -> str:
        if not math.isfinite(value):
            return " "
        share = min(max(value / top, 0.0), 1.0) if top > 0.0 else 0.0
        return heights[round(share * (len(heights) - 1))]

    return "".join(map(column, last)).rjust(width)


def end_of_scale(value: float) -> float:
    """The smallest of 1, 2, 5, 10, 20, ... that is not below a value; 1 at least."""
    decade = 10.0 ** math.floor(math.log10(max(value, 1.0)))
    return next(step * decade for step in _STEPS if step * decade >= value or step == _STEPS[-1])
