"""Status: one entry of a diagnostic message, with its values as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

OK, WARN, ERROR = 0, 1, 2


@dataclass(frozen=True)
class Status:
    """One diagnostic_msgs/DiagnosticStatus.

    Attributes:
        name: of what it describes.
        level: OK, WARN or ERROR.
        message: one line.
        values: by key; `text_of` makes them text.
    """

    name: str
    level: int
    message: str
    values: Mapping[str, object]


def text_of(value: object) -> str:
    """Text of a value: numbers to six significant digits, large ones to three decimals."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):  # np.float64 is one too
        # Six digits would hide the changes of a large energy counter.
        return f"{value:.3f}" if abs(value) >= 1000 else f"{value + 0.0:.6g}"
    return str(value)
