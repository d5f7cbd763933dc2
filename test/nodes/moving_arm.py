# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The known arm as a live source: it moves for ever, and a test changes what it says."""

from __future__ import annotations

import time

import numpy as np

from test.energy.known_arm import motion
from ur_energy_model.telemetry.samples import Event, RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.typing import Self

ORDER = "output_int_register_0"  # column with what a test says
SAMPLES = 10
PERIOD = 0.02  # length of a batch [s]


class MovingArm:
    """A TelemetrySource; the object stays the same over all openings."""

    def __init__(self, robot: str | None = "ur5e", serial: str | None = "A1") -> None:
        self.robot = robot
        self.serial = serial
        self.clock = 1000.0  # controller time of the next sample [s]
        self.status = LinkStatus()
        self.fields: tuple[str, ...] = ()
        self._whole = motion(2.0)  # its period
        self._place = 0
        self._order = 0.0

    @property
    def info(self) -> RecordingInfo:
        return RecordingInfo(
            source="arm", robot=self.robot, serial=self.serial, rate=500.0
        )

    def say(self, order: float) -> None:
        """Say something with the next batch, in the column ORDER."""
        self._order = order

    def read(self, timeout: float) -> Telemetry | None:
        time.sleep(PERIOD)
        part = slice(self._place, self._place + SAMPLES)
        self._place = (self._place + SAMPLES) % (len(self._whole) - SAMPLES)
        columns = {name: values[part] for name, values in self._whole.columns.items()}
        columns[ORDER] = np.full(SAMPLES, self._order)
        self._order = 0.0
        times = self.clock + 0.002 * np.arange(SAMPLES, dtype=float)
        self.clock += PERIOD
        return Telemetry(times, columns, self.info)

    def take_events(self) -> list[Event]:
        return []

    def close(self) -> None:
        """Nothing to release."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
