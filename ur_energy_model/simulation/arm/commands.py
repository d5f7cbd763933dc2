"""What a simulated arm can be told to do; the names follow URScript."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class MoveJ:
    """Move to a joint position on a trapezoidal speed profile, all joints arriving together.

    Attributes:
        q: target [6], rad.
        v: speed of the leading joint [rad/s].
        a: acceleration of the leading joint [rad/s^2].
    """

    q: Array
    v: float = 1.05
    a: float = 1.4


@dataclass(frozen=True)
class Follow:
    """Run a joint trajectory, from rest to rest, that begins where the arm stands."""

    motion: Motion


@dataclass(frozen=True)
class ServoJ:
    """Follow a streamed joint position.

    Attributes:
        q: target [6], rad.
        time: how long the command steers the arm [s].
        lookahead: time constant that smooths the path [s].
        gain: proportional gain towards the target.
    """

    q: Array
    time: float = 0.002
    lookahead: float = 0.1
    gain: float = 300.0


@dataclass(frozen=True)
class SpeedJ:
    """Accelerate to joint speeds and keep them until another command comes.

    Attributes:
        qd: target [6], rad/s.
        a: acceleration of the leading joint [rad/s^2].
    """

    qd: Array
    a: float = 1.4


@dataclass(frozen=True)
class StopJ:
    """Bring all joints to rest with this deceleration [rad/s^2]."""

    a: float = 2.0


@dataclass(frozen=True)
class SetPayload:
    """Tell the controller what the flange carries.

    Attributes:
        mass: kg.
        cog: centre of mass in the flange frame [3], m.
        inertia: about it (xx, yy, zz, xy, xz, yz) [6], kg m^2.
    """

    mass: float
    cog: Array = field(default_factory=lambda: np.zeros(3))
    inertia: Array = field(default_factory=lambda: np.zeros(6))


@dataclass(frozen=True)
class SpeedSlider:
    """Scale the speed of programs to this fraction, 0 to 1."""

    fraction: float


@dataclass(frozen=True)
class PowerOn:
    """Switch the arm on, brakes engaged."""


@dataclass(frozen=True)
class PowerOff:
    """Switch the arm off; the brakes engage."""


@dataclass(frozen=True)
class BrakeRelease:
    """Release the brakes of an arm that is switched on."""


@dataclass(frozen=True)
class Play:
    """Start or resume the built-in motion."""


@dataclass(frozen=True)
class Pause:
    """Pause the built-in motion."""


@dataclass(frozen=True)
class Stop:
    """Stop the built-in motion; the next Play starts it anew."""


@dataclass(frozen=True)
class ProtectiveStop:
    """Go to a protective stop."""


@dataclass(frozen=True)
class Unlock:
    """Release a protective stop."""


Command = (
    MoveJ
    | Follow
    | ServoJ
    | SpeedJ
    | StopJ
    | SetPayload
    | SpeedSlider
    | PowerOn
    | PowerOff
    | BrakeRelease
    | Play
    | Pause
    | Stop
    | ProtectiveStop
    | Unlock
)
