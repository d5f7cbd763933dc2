# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Readings of arms with known numbers, and states of a live view, for tests of sinks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from test.energy.known_arm import ROBOT, known_model, motion
from ur_energy_model.energy.cycle_energies import Cycle
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.powers import ArmState, Channels
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.sinks.live_arm import LiveState
from ur_energy_model.sinks.sink import ArmReading, SinkStatus
from ur_energy_model.telemetry.gaps import Losses
from ur_energy_model.telemetry.samples import time_blocks
from ur_energy_model.telemetry.source import LinkStatus

JOINTS = ("shoulder_joint", "elbow_joint")
CHANNELS = Channels(JOINTS, (1, 2))
START = 1_750_000_000_000_000_000  # time of the first reading [ns]
PERIOD = 100_000_000  # between readings [ns]
POWER = np.arange(1.0, 1.0 + len(CHANNELS))  # each channel has another constant power [W]
LOST = LinkStatus(connected=False, problem="no route to host")


def counted(seconds: float) -> MeterReading:
    """What the meter counts of POWER, with a tenth of it regenerated besides [J]."""
    return MeterReading(POWER * seconds, 1.1 * POWER * seconds, seconds, 0.0)


@cache
def moving_arm() -> Snapshot:
    return next(live_readings(0.1)).snapshot


def made_up_reading(
    number: int, *, arm: str = "arm-1", link: LinkStatus | None = None
) -> ArmReading:
    """Reading `number` of an arm that has had POWER since START; a cycle ends with each tenth."""
    seconds = number * PERIOD * 1e-9
    snapshot = replace(
        moving_arm(),
        channels=CHANNELS,
        time=seconds,
        q=np.zeros(2),
        power=POWER,
        since_reset=counted(seconds),
        lifetime=counted(seconds + 100.0),
        highest=counted(seconds + 100.0).net,
        temperature=np.array([30.0, 31.0]),
        state=ArmState.MOVING,
        samples=number * 50,
        serial=arm,
        cycles=number // 10,
    )
    cycles: tuple[Cycle, ...] = ()
    if number and number % 10 == 0:
        end = START + number * PERIOD
        cycles = (Cycle(number // 10, end - 10**9, end, counted(1.0), 77.0),)
    status = LinkStatus(losses=Losses(3)) if link is None else link
    return ArmReading(
        arm, START + number * PERIOD, JOINTS, snapshot, status, cycles=cycles
    )


def without_bus(reading: ArmReading) -> ArmReading:
    """The same reading of a source that does not measure the bus."""
    return replace(reading, snapshot=replace(reading.snapshot, bus_measured=False))


RESET = "2025-06-15T15:06:40.000+00:00"  # when the counters were set to zero


def live_readings(seconds: float, *, prefix: str = "") -> Iterator[ArmReading]:
    """Readings of a UR5e named arm-1 in sinusoidal motion; a cycle ends with each second."""
    telemetry = motion(seconds)
    estimator = LiveEstimator(known_model(), ROBOT, LiveOptions())
    joints = tuple(prefix + joint for joint in ROBOT.joint_names)
    for number, rows in enumerate(time_blocks(telemetry.time, 1e-9 * PERIOD)):
        estimator.update(telemetry.cut(rows))
        snapshot = estimator.snapshot()
        if snapshot is None:
            continue
        snapshot = replace(snapshot, reset_time=RESET)
        cycles: tuple[Cycle, ...] = ()
        if number and number % 10 == 0:
            end = START + round(
                1e9 * float(telemetry.time[rows.stop - 1] - telemetry.time[0])
            )
            cycles = (Cycle(number // 10, end - 10**9, end, snapshot.since_reset, 200.0),)
        elapsed = float(telemetry.time[rows.stop - 1] - telemetry.time[0])
        yield ArmReading(
            arm="arm-1",
            stamp=START + round(elapsed * 1e9),
            joints=joints,
            snapshot=snapshot,
            link=LinkStatus(losses=Losses(3), reconnects=1),
            cycles=cycles,
            model="model.yaml",
            robot=ROBOT,
        )


SINKS = (
    SinkStatus("foxglove 127.0.0.1:8765", None, 12, 0, 0, 2),
    SinkStatus("prometheus 127.0.0.1:9464", None, 12),
    SinkStatus("mqtt 127.0.0.1:1883", "nobody listens", 0, 40, 50),
    SinkStatus("opcua 127.0.0.1:4840", None, 12, 3),
)


AWAY = LinkStatus(
    connected=False, problem="192.168.0.9: sent nothing for 3 s; check the network"
)


@cache
def state() -> LiveState:
    """After two seconds of motion and a cycle, without sinks."""
    *_, reading = live_readings(2.0)
    (cycle,) = next(each.cycles for each in live_readings(2.0) if each.cycles)
    return LiveState(
        "192.168.0.9", reading, LinkStatus(losses=Losses(3), reconnects=1), (), cycle
    )


def waiting() -> LiveState:
    """Before the first sample."""
    return LiveState("192.168.0.9", None, AWAY)


def away() -> LiveState:
    """After the controller went away."""
    return replace(state(), link=AWAY)


def full() -> LiveState:
    """With all sinks, and a full disk."""
    return replace(
        state(), sinks=SINKS, disk_problem="energy.json: cannot be written (full)"
    )
