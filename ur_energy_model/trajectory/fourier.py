# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Finite Fourier series as joint trajectories, and their YAML file.

Raviola et al., RAAD 2021, sec. 2.2: with the base frequency w = 2 pi / period, joint by
joint,

    q(t) = q0 + sum over l = 1..L of a_l sin(w l t) - b_l cos(w l t).

The series is periodic, so velocity and acceleration are zero at both ends if they are at
t = 0: sum l a_l = 0 and sum l^2 b_l = 0. `rest_basis` spans the coefficients that satisfy
both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from ur_energy_model.codec import plain
from ur_energy_model.errors import TrajectoryFileError
from ur_energy_model.files import write_text
from ur_energy_model.formats import Found, Key, Section
from ur_energy_model.forms import (
    NOTES,
    TEXT,
    Constant,
    Number,
    Numbers,
    Schema,
    Scope,
    whole_number,
)
from ur_energy_model.typing import Array
from ur_energy_model.yaml_reader import Quantity, YamlTree

SCHEMA = 1
TYPE = "fourier_trajectory"
MAX_HARMONICS = 1000
_COEFFICIENT = Quantity("rad", -100, 100)
_PERIOD = Quantity("s", 1e-3, 86_400, positive=True)
_LONGEST = 86_400.0  # longest duration of all repetitions [s]
_REST_TOLERANCE = 1e-6  # largest sum of l a_l and of l^2 b_l that counts as rest [rad]
_HEADER = """\
# Joint trajectory as a finite Fourier series (Raviola et al., RAAD 2021, sec. 2.2):
#   q(t) = q0 + sum over l = 1..L of a[l] sin(2 pi l t / period) - b[l] cos(2 pi l t / period)
# t from 0 to period * repetitions; one row of a and b per joint, one column per harmonic.
# period s, q0, a, b rad; velocity and acceleration are zero at both ends.
"""


def series(time: Array, harmonics: int, period: float) -> tuple[Array, Array, Array]:
    """Values of the basis functions of one joint, and their first two time derivatives.

    Args:
        time: times [samples], s.
        harmonics: number of harmonics L.
        period: period of the first harmonic [s].

    Returns:
        Three arrays [samples, 1 + 2 L]. Their products with (q0, a_1..a_L, b_1..b_L) are
        position, velocity and acceleration.
    """
    frequency = 2 * np.pi / period * np.arange(1, harmonics + 1)
    angle = np.outer(time, frequency)
    sin = np.sin(angle)
    cos = np.cos(angle)
    one = np.ones((len(angle), 1))
    return (
        np.hstack([one, sin, -cos]),
        np.hstack([0 * one, frequency * cos, frequency * sin]),
        np.hstack([0 * one, -(frequency**2) * sin, frequency**2 * cos]),
    )


def rest_basis(harmonics: int) -> Array:
    """Basis of the coefficients (q0, a_1..a_L, b_1..b_L) that start and end at rest, L > 1.

    Its columns [1 + 2 L, 2 L - 1] are orthonormal: q0 is free, a in the null space of
    (1..L), b in the null space of (1..L^2).
    """
    from scipy.linalg import block_diag, null_space  # slow to import

    order = np.arange(1, harmonics + 1, dtype=float)
    of_a = null_space(order[None, :])
    of_b = null_space(order[None, :] ** 2)
    return np.asarray(block_diag(np.ones((1, 1)), of_a, of_b))


@dataclass(frozen=True)
class FourierTrajectory:
    """A periodic joint trajectory that starts and ends at rest.

    Attributes:
        robot: name of the arm that the trajectory was designed for.
        period: period of the first harmonic [s].
        repetitions: number of periods.
        q0: constant part [n], rad.
        a: sine coefficients [n, harmonics], rad.
        b: coefficients of minus cosine [n, harmonics], rad.
        design: parameters and checks of the design, as in the file.
        robot_file: path of the robot file of an arm that the package does not have; "" for
            an arm of the package.
    """

    robot: str
    period: float
    repetitions: int
    q0: Array
    a: Array
    b: Array
    design: Mapping[str, Any] = field(default_factory=dict)
    robot_file: str = ""

    starts_smoothly = True  # the acceleration is zero at both ends

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return len(self.q0)

    @property
    def harmonics(self) -> int:
        """Number of harmonics L."""
        return int(self.a.shape[1])

    @property
    def duration(self) -> float:
        """Time of all repetitions [s]."""
        return self.period * self.repetitions

    @property
    def coefficients(self) -> Array:
        """Coefficients (q0, a, b) as `series` takes them [1 + 2 L, n]."""
        return np.vstack([self.q0, self.a.T, self.b.T])

    @property
    def start(self) -> Array:
        """Position at both ends [n], rad."""
        return np.asarray(self.q0 - self.b.sum(axis=1))

    def sample(self, time: Array | float) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration [samples, n], rad, rad/s, rad/s^2.

        The arm rests at `start` before the time 0 and after `duration`.

        Args:
            time: times [samples], or one, s.
        """
        instants = np.atleast_1d(np.asarray(time, dtype=float))
        inside = np.clip(instants, 0.0, self.duration)
        basis = series(inside, self.harmonics, self.period)
        moving = (inside == instants)[:, None]
        q, qd, qdd = (values @ self.coefficients for values in basis)
        return q, moving * qd, moving * qdd

    def repeated(self, repetitions: int) -> FourierTrajectory:
        """The same trajectory with another number of repetitions."""
        return replace(self, repetitions=repetitions)


# The file.


def _trajectory(found: Found) -> FourierTrajectory:
    """The trajectory of a file, which must start and end at rest."""
    harmonics = found["a"].shape[1]
    if not 2 <= harmonics <= MAX_HARMONICS:
        problem = f"must have rows of 2 to {MAX_HARMONICS} numbers, one per joint"
        raise found.refuse("a", problem)
    order = np.arange(1, harmonics + 1)
    velocity = found["a"] @ order
    acceleration = found["b"] @ order**2
    for name, at_start in (("a", velocity), ("b", acceleration)):
        if np.abs(at_start).max() > _REST_TOLERANCE:
            raise found.refuse(name, "does not start and end at rest")
    duration = found["period"] * found["repetitions"]
    if duration > _LONGEST:
        raise found.refuse("repetitions", f"{duration:g} s is longer than a day")
    return FourierTrajectory(**found)


TRAJECTORY = Section(
    _trajectory,
    (
        Key("schema", Schema(SCHEMA), "version of the format"),
        Key("type", Constant(TYPE), "what the file is"),
        Key("robot", TEXT, "name of the arm that it was designed for"),
        Key(
            "robot_file",
            TEXT,
            "path of its robot file, if the package has no such arm",
            default="",
        ),
        Key("period", Number(_PERIOD), "of the first harmonic"),
        Key("repetitions", whole_number(1, 100_000), "number of periods"),
        Key("q0", Numbers(_COEFFICIENT, ("n",)), "constant part of the positions"),
        Key("a", Numbers(_COEFFICIENT, ("n", "l")), "coefficients of the l sines"),
        Key("b", Numbers(_COEFFICIENT, ("n", "l")), "coefficients of minus the cosines"),
        Key(
            "design",
            NOTES,
            "parameters and checks of the design; null for no limit",
            default={},
        ),
    ),
)
"""The format of trajectory files; velocity and acceleration are zero at both ends."""


def save_trajectory(path: str | Path, trajectory: FourierTrajectory) -> None:
    """Write a trajectory as YAML with all digits of the coefficients.

    Raises:
        TrajectoryFileError: the file cannot be written.
    """
    content = plain(TRAJECTORY.write(trajectory, Scope()))
    body = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=1000)
    write_text(path, _HEADER + body, TrajectoryFileError)


def load_trajectory(path: str | Path) -> FourierTrajectory:
    """Read a trajectory file.

    Raises:
        TrajectoryFileError: unreadable file, unknown or missing keys, wrong shapes,
            impossible values, or ends that are not at rest; names line and key.
    """
    root = YamlTree.read(
        path, TrajectoryFileError, "design it again with 'ur_energy excite'"
    )
    kind = root.mapping().get("type")
    if kind is None or kind.plain() != TYPE:
        raise root.refuse(f"is not of type {TYPE}")
    return TRAJECTORY.read(root, Scope())
