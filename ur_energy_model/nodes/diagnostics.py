"""Diagnostic messages: statuses with key-value pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from std_msgs.msg import Header

from ur_energy_model.diagnostic_status import Status, text_of

SILENT_AFTER = 1.0
"""Time without samples that is reported as an error [s]."""
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


def ros_statuses(statuses: Iterable[Status]) -> list[DiagnosticStatus]:
    """Statuses as ROS messages."""
    return [status(each.name, bytes([each.level]), each.message, each.values) for each in statuses]
