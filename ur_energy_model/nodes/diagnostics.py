"""Diagnostic messages: statuses with key-value pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from std_msgs.msg import Header

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


def status(
    name: str, level: bytes, message: str, values: Mapping[str, object], hardware: str = ""
) -> DiagnosticStatus:
    """One status; values become text by `text_of`."""
    return DiagnosticStatus(
        level=level,
        name=name,
        message=message,
        hardware_id=hardware,
        values=[KeyValue(key=key, value=text_of(value)) for key, value in values.items()],
    )


def diagnostic_array(stamp: Time, statuses: Iterable[DiagnosticStatus]) -> DiagnosticArray:
    """Statuses with a time stamp."""
    return DiagnosticArray(header=Header(stamp=stamp), status=list(statuses))


def text_of(value: object) -> str:
    """Text of a value: numbers to six significant digits, large ones to three decimals."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):  # np.float64 is one too
        # Six digits would hide the changes of a large energy counter.
        return f"{value:.3f}" if abs(value) >= 1000 else f"{value:.6g}"
    return str(value)
