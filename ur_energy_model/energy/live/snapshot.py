"""State of the live estimator at one moment."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class Snapshot:
    """State of the estimator at one moment; arrays [channels] in the order of `channels`.

    Attributes:
        channels: layout of the arrays.
        time: controller time of the last sample [s].
        q, qd: last joint positions and velocities [n], rad, rad/s; q is None where unknown.
        power: mean powers since the viewer's previous snapshot [W].
        since_reset, lifetime: energies [J].
        highest: highest lifetime net energies published so far [J]; they never decrease.
        state: of the arm.
        robot_mode, safety_mode: RTDE codes, None where unknown.
        bus_measured: whether the bus power is a measurement.
        standby, standby_std: standby power in use and its standard deviation [W].
        standby_measured: as tracked, without limits [W]; None before enough standstill.
        residual_mean, residual_std: of model minus bus power [W].
        drifting: whether the mean residual raises the alarm.
        controller_energy: of the controller's own counter since the estimator started [J]; None
            without such a counter.
        payload: mass in use [kg].
        speed_scaling: product of slider and limiter.
        temperature: joint temperatures [n], degC, None where unknown.
        samples, refused: number of samples used and left out.
        controller_restarts: number of backward steps of the clock.
        reset_time, reset_reason: of the last reset.
        serial: number of the arm that the counters belong to, None where unknown.
        note: about the counters of another arm, None where there is nothing to tell.
    """

    channels: Channels
    time: float
    q: Array | None
    qd: Array
    power: Array
    since_reset: MeterReading
    lifetime: MeterReading
    highest: Array
    state: ArmState
    robot_mode: int | None
    safety_mode: int | None
    bus_measured: bool
    standby: float
    standby_std: float
    standby_measured: float | None
    residual_mean: float
    residual_std: float
    drifting: bool
    controller_energy: float | None
    payload: float
    speed_scaling: float
    temperature: Array | None
    samples: int
    refused: int
    controller_restarts: int
    reset_time: str
    reset_reason: str
    serial: str | None = None
    note: str | None = None


def code_of(samples: Telemetry, name: str, row: int = -1) -> int | None:
    """A value of a field of codes; None where it is missing or not measured."""
    value = float(samples.columns[name][row]) if name in samples.columns else math.nan
    return int(value) if math.isfinite(value) else None
