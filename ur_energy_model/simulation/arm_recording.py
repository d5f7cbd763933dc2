"""Telemetry of a simulated arm without network and clock, as fast as it can be computed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ur_energy_model.simulation.arm.simulated_arm import SimulatedArm
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry


def record_arm(
    arm: SimulatedArm, duration: float, fields: Iterable[str] = ENERGY_FIELDS
) -> Telemetry:
    """Advance an arm and record every cycle.

    Args:
        arm: advanced by `duration`.
        duration: s, rounded to whole cycles.
        fields: RTDE names; fields that the arm or its version does not have are omitted.

    Returns:
        One sample per cycle, marked as simulated.
    """
    version = arm.controller_version
    names = [
        name
        for name in fields
        if name in arm.outputs and name != "timestamp" and FIELDS[name].available(version)
    ]
    samples = round(duration * arm.rate)
    time = np.empty(samples)
    columns = {name: np.empty((samples, *np.shape(arm.outputs[name]))) for name in names}
    for k in range(samples):
        arm.tick()
        time[k] = arm.time
        for name in names:
            columns[name][k] = arm.outputs[name]
    payload = arm.setup.payload
    x, y, z = (float(value) for value in payload.center_of_mass)
    gravity = tuple(float(value) for value in arm.setup.gravity)
    info = RecordingInfo(
        source=f"simulated {arm.robot.name}, seed {arm.parameters.seed}{_session(arm)}",
        robot=arm.robot.name,
        controller_version=".".join(str(part) for part in version),
        rate=arm.rate,
        gravity=(gravity[0], gravity[1], gravity[2]),
        payload_mass=payload.mass,
        payload_center_of_mass=(x, y, z),
        simulated=True,
    )
    return Telemetry(time, columns, info)


def _session(arm: SimulatedArm) -> str:
    return f", session {arm.session.number}" if arm.session.number else ""
