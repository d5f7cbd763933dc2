"""Readings that the live estimator makes of a known motion, for tests of sinks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from test.energy.known_arm import ROBOT, known_model, motion
from ur_energy_model.energy.cycles import Cycle
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.sinks.sink import ArmReading
from ur_energy_model.telemetry.samples import time_blocks
from ur_energy_model.telemetry.source import LinkStatus

START = 1_750_000_000_000_000_000
"""Time of the first sample [ns]."""
RESET = "2025-06-15T15:06:40.000+00:00"
"""When the counters were set to zero."""
PERIOD = 0.1
"""Between readings [s]."""


def live_readings(seconds: float, *, prefix: str = "") -> Iterator[ArmReading]:
    """Readings of a UR5e named arm-1 in sinusoidal motion; a cycle ends with each second."""
    telemetry = motion(seconds)
    estimator = LiveEstimator(known_model(), ROBOT, LiveOptions())
    joints = tuple(prefix + joint for joint in ROBOT.joint_names)
    for number, rows in enumerate(time_blocks(telemetry.time, PERIOD)):
        estimator.update(telemetry.cut(rows))
        snapshot = estimator.snapshot()
        if snapshot is None:
            continue
        snapshot = replace(snapshot, reset_time=RESET)
        cycles: tuple[Cycle, ...] = ()
        if number and number % 10 == 0:
            cycles = (Cycle(number // 10, snapshot.time - 1.0, snapshot.since_reset, 200.0),)
        elapsed = float(telemetry.time[rows.stop - 1] - telemetry.time[0])
        yield ArmReading(
            arm="arm-1",
            stamp=START + round(elapsed * 1e9),
            joints=joints,
            snapshot=snapshot,
            link=LinkStatus(lost=3, reconnects=1),
            cycles=cycles,
            model="model.yaml",
            robot=ROBOT,
        )
