# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Minutes of work without physics: months in seconds, with the spreads of the simulated arm.

Friction scales, running-in and ambient temperature of each session are the simulated
arm's own (`draw_session`); joints warm up as its thermal model does; what remains (errors
that depend on the program, noise) has the spreads that minutes of the simulated arm show
(see bench_learning).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ur_energy_model.identification.minute import MINUTE, Minute
from ur_energy_model.model.robots import load_robot
from ur_energy_model.simulation.arm_options import SimulatedSession, draw_session
from ur_energy_model.simulation.parameters import draw_parameters
from ur_energy_model.typing import Array

DAY = 86400.0
SPEED_SHARE = 0.5
"""Share of friction that depends on temperature, at usual speeds."""


PROGRAM = 0.012
WANDER = 0.004
WHITE = 0.002
SETUP_PROGRAM = np.array([0.04, 0.002, 0.002])
SETUP_WHITE = np.array([0.005, 0.0005, 0.0005])
STANDBY = 0.3
"""Spreads of a minute's statistics."""
PROGRAM_MINUTES = 2000.0


@dataclass(frozen=True)
class WorkMinute:
    """A minute of work, and its standby power [W] relative to session 0."""

    minute: Minute
    standby: float


class SurrogateWork:
    """Sessions of an arm's work, minute by minute."""

    def __init__(self, seed: int) -> None:
        self.arm = draw_parameters(load_robot("ur5e"), seed)
        self.n = len(self.arm.gear_ratio)
        self._seed = seed
        self._random = np.random.default_rng([seed, 77])
        self._new_program()
        self._correlation = np.exp(-1.0 / 10.0)
        self.friction = np.zeros(self.n)
        """Logarithm of injected factors on friction [n]."""
        self.setup = np.zeros(3)
        """Injected deviation from the stated setup."""

    def session(self, number: int, start: float, minutes: int) -> Iterator[WorkMinute]:
        """Minutes of a session that begins at this controller time [s]."""
        drawn = draw_session(self._seed, number, self.n)
        random = self._random
        ambient = 25.0 + drawn.ambient_offset
        resting = self.arm.thermal_resistance * self.arm.standby_heat
        temperature = ambient + drawn.warmth * resting
        wander = WANDER * random.standard_normal(self.n)
        constant = self.arm.thermal_resistance * self.arm.thermal_capacity
        for k in range(minutes):
            if random.random() < 1.0 / PROGRAM_MINUTES:
                self._new_program()
            goal = ambient + resting + self.arm.thermal_resistance * self._heat
            temperature = temperature + (goal - temperature) * -np.expm1(
                -MINUTE / constant
            )
            fresh = np.sqrt(1.0 - self._correlation**2) * WANDER
            wander = self._correlation * wander + fresh * random.standard_normal(self.n)
            level = self._level(drawn, temperature) + wander
            yield WorkMinute(
                self._minute(start + MINUTE * (k + 1), level, temperature),
                drawn.standby_offset + STANDBY * random.standard_normal(),
            )

    def _level(self, drawn: SimulatedSession, temperature: Array) -> Array:
        factor = self.arm.friction_factor(temperature) / self.arm.friction_factor(
            np.full(self.n, 35.0)
        )
        warm = np.log(1.0 + SPEED_SHARE * (factor - 1.0))
        return np.log(drawn.friction_scale) + warm + self._offset + self.friction

    def _minute(self, time: float, level: Array, temperature: Array) -> Minute:
        random = self._random
        setup = self.setup + self._setup_offset + SETUP_WHITE * random.standard_normal(3)
        return Minute(
            time=time,
            moving_seconds=np.full(self.n, 40.0),
            temperature=temperature,
            level=level + WHITE * random.standard_normal(self.n),
            covariance=np.diag(np.full(self.n, 0.003**2)),
            setup=setup,
            setup_covariance=np.diag(np.square([0.02, 0.0015, 0.0015])),
        )

    def _new_program(self) -> None:
        random = self._random
        self._offset = PROGRAM * random.standard_normal(self.n)
        self._setup_offset = SETUP_PROGRAM * random.standard_normal(3)
        self._heat = random.uniform(0.5, 6.0, self.n)
