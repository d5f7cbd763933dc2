"""Session-to-session (day-to-day) variation of a simulated arm.

Standby power, friction and temperatures vary between sessions; inertia, torque constants, windings
and gears belong to the arm and stay the same. The spreads and their sources are in
config/simulation/arm.yaml.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.simulation.arm.parameters import ArmParameters, constants
from ur_energy_model.typing import Array

_STREAM, _WEAR_STREAM = 20250610, 20250611
_LARGEST = 3.0
"""Draws are limited to this many standard deviations."""


@dataclass(frozen=True)
class SimulatedSession:
    """One session of one arm with n joints; session 0 is the arm as drawn.

    Attributes:
        number: 0 for the arm as drawn, 1, 2, ... for its sessions in order of time.
        standby_offset: standby power minus that of session 0, W.
        friction_scale: friction relative to session 0 at the same speed, load and temperature [n].
        ambient_offset: ambient temperature minus the requested one, K.
        warmth: of the joints at the start: 0 at ambient temperature, 1 as after hours powered at
            rest, above 1 after motion.
    """

    number: int
    standby_offset: float
    friction_scale: Array
    ambient_offset: float
    warmth: float

    def applied_to(self, arm: ArmParameters) -> ArmParameters:
        """Constants of this session from those of session 0."""
        if self.number == 0:
            return arm
        heat = arm.standby_heat / arm.standby_power
        standby = arm.standby_power + self.standby_offset
        return dataclasses.replace(
            arm.with_friction_scaled(self.friction_scale),
            standby_power=standby,
            standby_heat=heat * standby,
        )

    def random(self, seed: int, purpose: int) -> np.random.Generator:
        """Random generator of this session of arm `seed`, independent for each purpose."""
        return np.random.default_rng(
            [seed, purpose] if self.number == 0 else [seed, purpose, self.number]
        )

    def as_dict(self) -> dict[str, Any]:
        """All values by name, as in the truth file."""
        return dataclasses.asdict(self)


def draw_session(seed: int, number: int, joints: int) -> SimulatedSession:
    """Session `number` of arm `seed`; repeated draws are equal.

    Args:
        seed: of the arm.
        number: of the session, from 0.
        joints: n.

    Raises:
        InputError: negative number.
    """
    if number < 0:
        raise InputError("--session", f"is {number}", "use 0 or a positive number")
    if number == 0:
        return SimulatedSession(0, 0.0, np.ones(joints), 0.0, 1.0)
    table = constants()["session"]
    random = np.random.default_rng([seed, _STREAM, number])

    def normal(deviation: float, size: int | None = None) -> Any:
        return deviation * np.clip(random.standard_normal(size), -_LARGEST, _LARGEST)

    standby = float(normal(table["standby"]))
    common = 1.0 + normal(table["friction_common"])
    individual = 1.0 + normal(table["friction_joint"], joints)
    ambient = float(random.uniform(-table["ambient"], table["ambient"]))
    warmth = float(random.uniform(*table["warmth"]))
    scale = common * individual * _running_in(seed, number, joints)
    return SimulatedSession(number, standby, scale, ambient, warmth)


def _running_in(seed: int, number: int, joints: int) -> Array:
    """Factor on the friction of each joint due to running-in [n]; decreases towards a floor."""
    table = constants()["session"]
    least, most = table["running_in"]
    lost = np.random.default_rng([seed, _WEAR_STREAM]).uniform(least, most, joints)
    return np.asarray(1.0 - lost * (1.0 - np.exp(-number / table["running_in_sessions"])))
