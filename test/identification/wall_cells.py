# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Simulated cells: the bus power of programs, and a wall with a meter that nobody told the fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ur_energy_model.energy.wall import box_terms
from ur_energy_model.identification.wall_fit import WallFit
from ur_energy_model.robot_modes import POWER_OFF
from ur_energy_model.simulation.wall import SimulatedWall
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array

RATE = 50.0
RUNNING = 7
IDLE = 5


@dataclass
class Work:
    """Some time of a program of its own in front of a wall."""

    wall: SimulatedWall
    program: int
    seconds: float
    # share of the time with the arm off, and as much with brakes engaged
    switched_off: float = 0.0

    @cached_property
    def time(self) -> Array:
        return 1000.0 + np.arange(0.0, self.seconds, 1.0 / RATE)

    @cached_property
    def mode(self) -> Array:
        passed = (self.time - self.time[0]) / self.seconds
        mode = np.where(passed < 2.0 * self.switched_off, IDLE, RUNNING)
        return np.where(passed < self.switched_off, POWER_OFF, mode).astype(float)

    @cached_property
    def bus(self) -> Array:
        """Moves of several speeds in a cycle, and standstill every fourth time."""
        random = np.random.default_rng([self.program, 7])
        cycle = random.uniform(4.0, 20.0)
        standby = random.uniform(24.0, 36.0)
        levels = random.uniform(0.0, 1.0, 8) ** 2 * random.uniform(60.0, 300.0)
        knots = np.sort(random.uniform(0.0, cycle, 8))
        phase = self.time % cycle
        moves = levels[np.searchsorted(knots, phase) % 8]
        moves *= np.abs(np.sin(3.0 * np.pi * phase / cycle))
        moving = np.floor(self.time / (5.0 * cycle)) % 4 != 3
        bus = standby + np.where(moving & (self.mode == RUNNING), moves, 0.0)
        return np.where(self.mode == POWER_OFF, 0.0, bus)

    @property
    def columns(self) -> dict[str, Array]:
        power = self.wall.power(self.mode, self.bus)
        return {
            "actual_qd": np.zeros((len(self.time), 6)),
            "robot_mode": self.mode,
            "actual_robot_voltage": np.full(len(self.time), 48.0),
            "actual_robot_current": self.bus / 48.0,
            **self.wall.readings(self.time, power),
        }

    @property
    def truth(self) -> float:
        """Mean power at the wall [W]."""
        return float(self.wall.power(self.mode, self.bus).mean())

    @property
    def terms(self) -> Array:
        """Means of what a model of the wall depends on [5]."""
        states = np.select([self.mode == POWER_OFF, self.mode == IDLE], [0, 1], 2)
        return np.asarray(box_terms(states, self.bus).mean(axis=0))


def fit_of(time: Array, columns: dict[str, Array], batch: int = 997) -> WallFit:
    """The fit's data of one recording, in batches."""
    fit = WallFit()
    for start in range(0, len(time), batch):
        part = slice(start, start + batch)
        values = {name: each[part] for name, each in columns.items()}
        fit.accumulate(Telemetry(time[part], values, RecordingInfo(source="cell"), ()))
    fit.finish()
    return fit


def irregular(
    time: Array, columns: dict[str, Array], most: float, seed: int
) -> dict[str, Array]:
    """A meter's columns with readings that arrive up to `most` later than usual [s]."""
    number = columns["wall_reading"]
    random = np.random.default_rng(seed)
    new = np.flatnonzero(np.diff(number, prepend=number[0] - 1.0) > 0.0)
    late = np.maximum.accumulate(time[new] + random.uniform(0.0, most, len(new)))
    last = np.searchsorted(late, time, "right") - 1
    watts = np.append(columns["wall_power"][new], np.nan)[last]
    return columns | {"wall_power": watts, "wall_reading": np.asarray(last + 1.0)}
