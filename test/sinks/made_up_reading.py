"""Readings of an arm with known numbers, for tests of sinks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.energy.cycles import Cycle
from ur_energy_model.energy.live import Snapshot
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.powers import ArmState, Channels
from ur_energy_model.sinks.sink import ArmReading
from ur_energy_model.telemetry.source import LinkStatus

JOINTS = ("shoulder_joint", "elbow_joint")
CHANNELS = Channels(JOINTS, (1, 2))
START = 1_750_000_000_000_000_000
"""Time of the first reading [ns]."""
PERIOD = 100_000_000
"""Between readings [ns]."""
POWER = np.arange(1.0, 1.0 + len(CHANNELS))
"""Each channel has another constant power [W]."""
LOST = LinkStatus(connected=False, problem="no route to host")


def counted(seconds: float) -> MeterReading:
    """What the meter counts of POWER, with a tenth of it regenerated besides [J]."""
    return MeterReading(POWER * seconds, 1.1 * POWER * seconds, seconds, 0.0)


def made_up_reading(
    number: int, *, arm: str = "arm-1", link: LinkStatus | None = None
) -> ArmReading:
    """Reading `number` of an arm that has had POWER since START; a cycle ends with each tenth."""
    seconds = number * PERIOD * 1e-9
    snapshot = Snapshot(
        channels=CHANNELS,
        time=seconds,
        q=np.zeros(2),
        qd=np.zeros(2),
        power=POWER,
        since_reset=counted(seconds),
        lifetime=counted(seconds + 100.0),
        highest=counted(seconds + 100.0).net,
        state=ArmState.MOVING,
        robot_mode=7,
        safety_mode=1,
        bus_measured=True,
        standby=40.0,
        standby_std=1.0,
        standby_measured=None,
        residual_mean=0.0,
        residual_std=1.0,
        drifting=False,
        controller_energy=None,
        payload=0.0,
        speed_scaling=1.0,
        temperature=np.array([30.0, 31.0]),
        samples=number * 50,
        refused=0,
        controller_restarts=0,
        reset_time="2026-01-01T00:00:00.000+00:00",
        reset_reason="first start",
        serial=arm,
    )
    cycles: tuple[Cycle, ...] = ()
    if number and number % 10 == 0:
        cycles = (Cycle(number // 10, seconds - 1.0, counted(1.0), 77.0),)
    status = LinkStatus(lost=3) if link is None else link
    return ArmReading(arm, START + number * PERIOD, JOINTS, snapshot, status, cycles=cycles)


def without_bus(reading: ArmReading) -> ArmReading:
    """The same reading of a source that does not measure the bus."""
    return replace(reading, snapshot=replace(reading.snapshot, bus_measured=False))
