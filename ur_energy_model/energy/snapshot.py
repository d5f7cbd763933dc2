# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What the live estimator shows after a sample: powers, counters, state and warnings."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.powers import (
    ArmState,
    Channels,
    TotalSource,
)
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class Snapshot:
    """State of the estimator at one moment; arrays [channels] in the order of `channels`.

    Attributes:
        time: controller time of the last sample [s].
        q: last joint positions [n], rad; None where they are unknown.
        qd: last joint velocities [n], rad/s.
        power: mean powers since the viewer's previous snapshot [channels], W.
        seconds: time over which the powers are averaged [s].
        since_reset: energies since the last reset [channels], J.
        lifetime: energies since the counters were created [channels], J.
        highest: highest lifetime net energies published so far [channels], J; they never
            decrease.
        state: state of the arm, such as in motion or at standstill.
        robot_mode: RTDE code; None where it is unknown.
        safety_mode: RTDE code; None where it is unknown.
        channels: names and places of the channels.
        bus_measured: whether the bus power is a measurement.
        standby: standby power in use [W].
        standby_std: standard deviation of the standby power [W].
        standby_measured: estimate of the standby power without the limit of its deviation
            [W]; None before enough standstill.
        unexplained_mean: mean of measured less modelled power [W].
        unexplained_std: standard deviation of measured less modelled power [W].
        drifting: whether the mean raises the alarm.
        controller_energy: energy that the controller itself counted since the estimator
            started [J]; None without such a counter.
        payload: mass in use [kg].
        speed_scaling: product of speed slider and limiter, 0 to 1.
        temperature: joint temperatures [n], degC; None where they are unknown.
        samples: number of samples used.
        refused: number of samples left out, as impossible or not finite.
        cycles: number of work cycles so far, over restarts.
        controller_restarts: number of backward steps of the controller's clock.
        reset_time: time of the last reset, UTC, ISO 8601.
        reset_reason: reason of the last reset, in words.
        serial: serial number of the arm that the counters belong to; None where it is
            unknown.
        note: about the counters of another arm; None where there is none.
        torque_per_ampere: gear ratio times torque constant of the joints [n], joint side,
            as the controller states them, N m/A; NaN where unknown.
        arm_warning: see `LiveEstimator`.
    """

    time: float
    q: Array | None
    qd: Array
    power: Array
    seconds: float
    since_reset: MeterReading
    lifetime: MeterReading
    highest: Array
    state: ArmState
    robot_mode: int | None
    safety_mode: int | None
    channels: Channels
    bus_measured: bool
    standby: float
    standby_std: float
    standby_measured: float | None
    unexplained_mean: float
    unexplained_std: float
    drifting: bool
    controller_energy: float | None
    payload: float
    speed_scaling: float
    temperature: Array | None
    samples: int
    refused: int
    cycles: int
    controller_restarts: int
    reset_time: str
    reset_reason: str
    serial: str | None = None
    note: str | None = None
    torque_per_ampere: Array | None = None
    arm_warning: str | None = None

    @property
    def total_source(self) -> TotalSource:
        """Where the total since the last reset comes from."""
        reset = self.since_reset
        return self.channels.total_source(reset.net, reset.accounted)

    @property
    def total_source_ever(self) -> TotalSource:
        """Where the total of the lifetime counters comes from."""
        ever = self.lifetime
        return self.channels.total_source(ever.net, ever.accounted)
