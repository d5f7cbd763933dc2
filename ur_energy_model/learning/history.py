# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What learning did and noticed: attempts to improve the model, and changes of the arm.

Their fields are the keys of `ur_energy learn --json` and of a learned model's provenance.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attempt:
    """One refit, and whether its model was taken over.

    Attributes:
        time: controller time at the end of the data that the refit used [s].
        samples: learned from so far.
        version: number of the model in use after the attempt; 0 is the first model.
        supply_energy_error_percent: error of the model in use over the held-out time,
            whole arm at the supply; None without measured bus power, or without motion.
        joint_energy_interval_percent: half width of the 95 % interval of each joint's
            electrical energy over the motion of the held-out time, percent of that
            energy; NaN without any.
        accepted: whether the refitted model replaced the one before.
        reason: reason of the decision, in words.
    """

    time: float
    samples: int
    version: int
    supply_energy_error_percent: float | None
    joint_energy_interval_percent: tuple[float, ...]
    accepted: bool
    reason: str


@dataclass(frozen=True)
class Change:
    """A change of the arm that is larger than its uncertainty; each is reported once.

    Attributes:
        time: controller time since when the change is observed [s].
        joint: name of the joint; None for a change of the whole arm (standby, payload,
            mounting).
        what: "friction", "torque_constant", "standby", "payload" or "mounting".
        size: relative change (friction and torque constant, 0.22 for 22 % above the
            usual), else in W, kg or rad.
        interval: 95 % interval (low, high) in the same unit.
        words: the sentence for people, with the value, the usual one and the temperature.
    """

    time: float
    joint: str | None
    what: str
    size: float
    interval: tuple[float, float]
    words: str
