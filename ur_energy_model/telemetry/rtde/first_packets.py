"""What the first packets of a controller tell about it: its true rate and its payload."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.telemetry.rtde.recipe import Records
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.typing import Array

RATE_TOLERANCE = 0.2
"""Relative deviation from the negotiated rate from which the timestamps count instead."""


def with_payload(info: RecordingInfo, records: Records) -> RecordingInfo:
    """Recording info with the payload that the first of the records [n >= 1] carries."""
    names = records.dtype.names or ()
    if "payload" in names:
        info = replace(info, payload_mass=float(records["payload"][0]))
    if "payload_cog" in names:
        x, y, z = records["payload_cog"][0].tolist()
        info = replace(info, payload_center_of_mass=(x, y, z))
    return info


def observed_rate(times: Array, negotiated: float | None) -> float | None:
    """Rate [Hz] of timestamps [n], s, where it clearly differs from the negotiated one.

    Returns:
        None where they agree, where the steps are irregular, or where either is unknown.
    """
    steps = np.diff(times)
    steps = steps[steps > 0]
    if negotiated is None or steps.size == 0:
        return None
    step = float(np.median(steps))
    agrees = abs(step * negotiated - 1.0) <= RATE_TOLERANCE
    irregular = np.ptp(steps) >= RATE_TOLERANCE * step
    return None if agrees or irregular else 1.0 / step
