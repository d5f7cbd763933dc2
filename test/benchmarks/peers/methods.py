"""What others do with the same recordings: current from motion, and power from current and speed.

All of them are ordinary least squares and state no intervals. They are given the mounting, the
payload and the filters that our identification worked out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from test.benchmarks.peers.recorded import Part, Recorded
from ur_energy_model.identification.base_parameters import FullRegressor, regroup, snapped_to_axis
from ur_energy_model.identification.power_structures import PowerRows, power_columns
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

SMOOTHING = 1e-3
"""Coulomb friction as tanh(qd / 0.001 rad/s) (Raviola et al. 2021) [rad/s]."""
NEGLIGIBLE = 1e-8
"""Singular values below this share of the largest are rounding."""
SAME_MOUNTING = np.radians(1.0)
"""Angle between gravities up to which base parameters hold."""


def solve(columns: Array, values: Array) -> Array:
    """Least squares [k] of values [samples] over columns [samples, k], of least norm."""
    return np.asarray(np.linalg.lstsq(columns, values, rcond=NEGLIGIBLE)[0])


@dataclass(frozen=True)
class PerJoint:
    """Every joint's current by a regression of its own.

    Attributes:
        name: for the tables.
        columns: of a part [samples, n, k].
    """

    name: str
    columns: Callable[[Part], Array]

    def predict(self, train: Recorded, judged: Sequence[Recorded]) -> list[Array | None]:
        """Currents [samples, n] of other recordings, filtered as the measured ones are."""
        columns = train.filtered(self.columns)
        found = [solve(columns[:, j], train.current[:, j]) for j in range(columns.shape[1])]
        return [
            np.einsum("snk,nk->sn", other.filtered(self.columns), np.array(found))
            for other in judged
        ]


def twenty_lines(part: Part) -> Array:
    """qdd, qd, tanh, torque of the nominal links, 1."""
    motion = part.motion
    return np.stack(
        [
            motion.qdd,
            motion.qd,
            np.tanh(motion.qd / SMOOTHING),
            part.link_torque,
            np.ones_like(motion.qd),
        ],
        axis=2,
    )


def ecbot_currents(part: Part) -> Array:
    """EcBot, eq. 9-12: masses known, tensors of this and the later links unknown, friction."""
    motion = part.motion
    n = motion.q.shape[1]
    regressor = part.bare.regressor(motion.q, motion.qd, motion.qdd).reshape(-1, n, n, 10)
    nominal = part.bare.parameters().reshape(n, 10)
    known = np.einsum("snlk,lk->sn", regressor[..., :4], nominal[:, :4]) + part.payload_torque
    tensors = regressor[..., 4:].reshape(-1, n, 6 * n)
    rest = np.stack([known, motion.qd, np.tanh(motion.qd / SMOOTHING)], axis=2)
    return np.concatenate([rest, tensors], axis=2)


class BaseParameters:
    """Base parameters of the whole arm from torque = N k_t i, k_t as in the robot file.

    Raviola et al. (RAAD 2021, sec. 2) and Machines 2024, 12(9), 595, sec. 3: ordinary least
    squares over all joints. Where the mounting is another one they do not hold.
    """

    name = "base parameters"

    def predict(self, train: Recorded, judged: Sequence[Recorded]) -> list[Array | None]:
        """As `PerJoint.predict`; None where the mounting differs."""
        full = FullRegressor(train.robot, snapped_to_axis(train.gravity))
        base = regroup(full).base
        per_ampere = torque_per_ampere(train.robot)

        def columns(part: Part) -> Array:
            motion = part.motion
            return full(motion.q, motion.qd, motion.qdd)[:, :, base]

        stacked = train.filtered(columns)
        torque = train.current * per_ampere - train.filtered(lambda part: part.payload_torque)
        found = solve(stacked.reshape(-1, stacked.shape[2]), torque.ravel())
        return [
            (other.filtered(columns) @ found + other.filtered(lambda part: part.payload_torque))
            / per_ampere
            if same_mounting(train, other)
            else None
            for other in judged
        ]


def torque_per_ampere(robot: RobotDescription) -> Array:
    """N k_t of the robot file, joint side [n], N m/A."""
    return np.asarray(robot.gear_ratio * robot.torque_constant)


def same_mounting(one: Recorded, other: Recorded) -> bool:
    """Whether two arms stand alike."""
    a, b = (recording.gravity / np.linalg.norm(recording.gravity) for recording in (one, other))
    return bool(np.arccos(np.clip(a @ b, -1.0, 1.0)) < SAME_MOUNTING)


@dataclass(frozen=True)
class PowerRegression:
    """Power at the supply by one regression.

    Attributes:
        name: for the tables.
        columns: of recorded rows of an arm [samples, k].
    """

    name: str
    columns: Callable[[PowerRows, RobotDescription], Array]

    def fit(self, rows: PowerRows, robot: RobotDescription) -> Array:
        """Coefficients [k]."""
        return solve(self.columns(rows, robot), rows.power)

    def power(self, found: Array, rows: PowerRows, robot: RobotDescription) -> Array:
        """Power [samples], W; never negative at the supply."""
        return np.maximum(self.columns(rows, robot) @ found, 0.0)


def three_columns(rows: PowerRows, robot: RobotDescription) -> Array:
    """1, sum R i^2, sum k_t N qd i, R and k_t as in the robot file."""
    copper = rows.current**2 @ robot.winding_resistance
    shaft = (rows.qd * rows.current) @ torque_per_ampere(robot)
    return np.column_stack([np.ones(len(copper)), copper, shaft])


def ecbot_columns(rows: PowerRows, robot: RobotDescription) -> Array:
    """EcBot, eq. 13-21: 1 and, for each joint, i^2, qd i, |i| and i di/dt (4 n + 1)."""
    every = power_columns(rows, robot.gear_ratio, robot.torque_constant)
    return every[:, : 4 * robot.dof + 1]


TWENTY_LINES = PerJoint("least squares", twenty_lines)
ECBOT_CURRENTS = PerJoint("EcBot", ecbot_currents)
THREE = PowerRegression("three coefficients", three_columns)
ECBOT_POWER = PowerRegression("EcBot", ecbot_columns)
