"""Name of an arm in what outlives a session: history, metrics, model files of a fleet."""

from __future__ import annotations

import re

from ur_energy_model.telemetry.samples import RecordingInfo

UNKNOWN_ARM = "unknown"
"""Where neither the serial number nor the type of the arm is known."""
_FORBIDDEN = re.compile(r"[^A-Za-z0-9._-]+")


def arm_name(info: RecordingInfo) -> str:
    """Serial number of the arm, or else its type; letters, digits and ._- only.

    The name is a part of file names, labels and topics.
    """
    text = info.serial or info.robot or UNKNOWN_ARM
    return _FORBIDDEN.sub("_", text).strip("._") or UNKNOWN_ARM


def same_serial(first: str | None, second: str | None) -> bool | None:
    """Whether two serial numbers are those of one arm; None where either is unknown."""
    return first == second if first and second else None
