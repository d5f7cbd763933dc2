# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The cable that supplies the joints: resistances of its segments, from the base to the flange.

The joints of an arm hang in a chain on one cable. Segment k carries the supply currents
of joint k and of all joints behind it, so that the voltage at joint j is

    V_j = V_bus - offset_j - sum_{k <= j} R_k sum_{i >= k} I_i,    I_i = P_i / V_i,

P_i the power that joint i takes. The offset is the gain error of the joint's voltage
sensor and the drop that its electronics at rest cause, which no recording separates.
`identification.joint_meter` fits a cable to recorded joint voltages.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.typing import Array

_TYPICAL = np.array([0.12, 0.02, 0.03, 0.15, 0.10, 0.20])
_SPREAD = np.array([0.05, 0.03, 0.04, 0.15, 0.10, 0.10])
"""Resistances of the segments of six joints, and their spread between arms [ohm]. Recordings of
three UR5e and a UR3e show 0.09 to 0.15, 0.00 to 0.03, 0.01 to 0.07, 0.05 to 0.49, 0.01 to 0.19,
and 0.15 to 0.23."""
_OTHER_GENERATION = 2.0
"""Factor on the spread where no arm of the generation was measured."""
_ANOTHER_DAY = 0.2
"""Relative change of a resistance between sessions: contacts, warm cables."""
_ANOTHER_DAY_BASE = 0.03
"""Further change of the first segment between sessions [ohm]: it also contains errors of the bus
voltage."""
_BASE = 0  # segment that ends at the first joint


@dataclass(frozen=True)
class Cable:
    """Resistances of the segments that end at n joints, with standard deviations.

    Attributes:
        resistance: resistance of the segment that ends at each joint [n], ohm.
        std: standard deviation of `resistance` [n], ohm.
    """

    resistance: Array
    std: Array

    def of_another_session(self) -> Cable:
        """The cable of the same arm at another time, with larger standard deviations."""
        change = _ANOTHER_DAY * np.abs(self.resistance)
        change[_BASE] = np.hypot(change[_BASE], _ANOTHER_DAY_BASE)
        return Cable(self.resistance, np.hypot(self.std, change))


def typical_cable(joints: int, generation: str) -> Cable:
    """The cable of an arm whose joint voltages were not recorded.

    Args:
        joints: number of joints.
        generation: generation of the controller, see `RobotDescription`.
    """
    segments = np.minimum(np.arange(joints), len(_TYPICAL) - 1)
    was_measured = generation == "e-series" and joints == len(_TYPICAL)
    factor = 1.0 if was_measured else _OTHER_GENERATION
    return Cable(_TYPICAL[segments], factor * _SPREAD[segments])
