# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Commands of a simulated arm; motion commands are named as in URScript."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum

import numpy as np

from ur_energy_model.model.setup import Payload
from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class MoveJ:
    """Move to a joint position [6], rad, with a trapezoidal speed profile.

    All joints arrive together.

    Attributes:
        q: joint positions to reach [6], rad.
        v: speed of the leading joint [rad/s].
        a: acceleration of the leading joint [rad/s^2].
    """

    q: Array
    v: float = 1.05
    a: float = 1.4


@dataclass(frozen=True)
class Follow:
    """Run a joint trajectory from rest to rest that starts at the current position."""

    motion: Motion


@dataclass(frozen=True)
class ServoJ:
    """Follow a streamed joint position.

    Attributes:
        q: joint positions [6], rad.
        time: time until the next position is due [s].
        lookahead: time constant of the smoothing [s].
        gain: gain of the position loop; a larger one follows faster.
    """

    q: Array
    time: float = 0.002
    lookahead: float = 0.1
    gain: float = 300.0


@dataclass(frozen=True)
class SpeedJ:
    """Accelerate to joint speeds, and keep them until the next command.

    Attributes:
        qd: joint velocities to reach [6], rad/s.
        a: acceleration of the leading joint [rad/s^2].
    """

    qd: Array
    a: float = 1.4


@dataclass(frozen=True)
class StopJ:
    """Stop all joints with this deceleration of the leading joint [rad/s^2]."""

    a: float = 2.0


@dataclass(frozen=True)
class SetPayload:
    """Configure the payload in the controller.

    Attributes:
        mass: mass of the payload [kg].
        cog: centre of mass in the flange frame [3], m.
        inertia: about the centre of mass (xx, yy, zz, xy, xz, yz) [6], kg m^2.
    """

    mass: float
    cog: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros(6))

    @property
    def payload(self) -> Payload:
        """The payload that is configured."""
        xx, yy, zz, xy, xz, yz = self.inertia
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=float)
        return Payload(float(self.mass), np.array(self.cog, dtype=float), tensor)


@dataclass(frozen=True)
class SpeedSlider:
    """Scale the speed of programs by this fraction, 0 to 1."""

    fraction: float


class PowerCommand(Enum):
    """Commands to the power supply and the brakes."""

    ON = "switch the arm on, brakes closed"
    OFF = "switch the arm off, brakes closed"
    RELEASE_BRAKES = "release the brakes, switching the arm on if necessary"


class ProgramCommand(Enum):
    """Commands to the built-in motion."""

    PLAY = "start or resume"
    PAUSE = "pause"
    STOP = "stop; the next PLAY starts from the beginning"


class SafetyCommand(Enum):
    """Commands to the safety system."""

    PROTECTIVE_STOP = "go to a protective stop"
    UNLOCK = "release a protective stop"


Move = MoveJ | Follow | ServoJ | SpeedJ | StopJ
Command = Move | SetPayload | SpeedSlider | PowerCommand | ProgramCommand | SafetyCommand


class RobotMode(IntEnum):
    """RTDE robot_mode."""

    POWER_OFF = 3
    POWER_ON = 4
    IDLE = 5
    RUNNING = 7


class SafetyMode(IntEnum):
    """RTDE safety_mode."""

    NORMAL = 1
    PROTECTIVE_STOP = 3


class ProgramState(IntEnum):
    """RTDE runtime_state."""

    STOPPED = 1
    PLAYING = 2
    PAUSED = 4


JOINT_MODES = {
    RobotMode.POWER_OFF: 239.0,
    RobotMode.POWER_ON: 255.0,
    RobotMode.IDLE: 255.0,
    RobotMode.RUNNING: 253.0,
}
"""RTDE joint_mode of all joints: off, idle or running."""

# Bounds of the payloads that clients may mount or configure on a simulated arm.

HEAVIEST = 100.0  # largest mass [kg], beyond every arm
FARTHEST = 2.0  # largest coordinate of the centre of mass [m]
MOST_INERTIA = 100.0  # largest entry of the inertia tensor [kg m^2]


def is_possible(payload: Payload) -> bool:
    """Whether the motion of an arm with this payload can be computed."""
    bounded = (
        0.0 <= payload.mass <= HEAVIEST
        and bool((np.abs(payload.center_of_mass) <= FARTHEST).all())
        and bool((np.abs(payload.inertia) <= MOST_INERTIA).all())
    )
    if not bounded or not payload.inertia.any():
        return bounded
    return bool(np.linalg.eigvalsh(payload.inertia).min() >= 0.0)
