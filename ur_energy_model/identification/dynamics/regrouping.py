"""Base parameters: the combinations of inertial and drive parameters that motion can show.

13 parameters a joint (10 inertial in the order m, mc, I; Coulomb, viscous, motor inertia). Their
joint torque regressor, stacked at random states, has dependent columns; the rank (SVD) is the
number of base parameters, and a pivoted QR decomposition picks base columns and shows how the
other parameters regroup into them (Raviola et al., RAAD 2021, sec. 2; Machines 2024, 12(9), 595,
sec. 3). Among equivalent columns a preference and then their order decide, never rounding
(`pivoted_columns`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import qr, solve_triangular

from ur_energy_model.identification.regression.pivoted_columns import pivoted_columns
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.inertial_parameters import COUNT
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.typing import Array, Indices

INERTIAL = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Inertial parameters of a link, about the origin and in the axes of its DH frame."""
DRIVE = ("fc", "fv", "Ja")
"""Coulomb and viscous friction and motor inertia, joint side."""
SMOOTHING = 1e-3
"""Speed that smooths Coulomb friction, tanh(qd / 0.001 rad/s) (Raviola et al. 2021) [rad/s]."""
_STATES = 25
_RANK_TOLERANCE = 1e-9
_NEGLIGIBLE = 1e-7
_PREFERENCE = {"fc": 1.0, "fv": 1.0, "Ja": 0.3, "Izz": 0.3, "Iyy": 0.1, "Ixx": 0.03, "m": 0.001}
_USUAL_PREFERENCE = 0.1


@dataclass(frozen=True)
class FullRegressor:
    """Joint torque regressor of all parameters, in one mounting.

    Args:
        robot: the arm, n joints.
        gravity: in the base frame [3], m/s^2.
        friction: include the friction columns (target_moment holds no friction).
        motor_inertia: include the motor inertias; Machines 2024, 12(9), 595 does not.
    """

    robot: RobotDescription
    gravity: Array
    friction: bool = True
    motor_inertia: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Parameter names in column order, such as "mx_2" (joint numbers from 1)."""
        kinds = INERTIAL + self.drive
        return tuple(f"{kind}_{j + 1}" for j in range(self.robot.dof) for kind in kinds)

    @property
    def drive(self) -> tuple[str, ...]:
        """Those of `DRIVE` that have columns."""
        return DRIVE[:2] * self.friction + DRIVE[2:] * self.motor_inertia

    @cached_property
    def _dynamics(self) -> ArmDynamics:
        return ArmDynamics(self.robot, Setup(gravity=self.gravity))

    def __call__(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Regressor [samples, n, parameters] for positions, velocities, accelerations [samples, n].

        Joint-side torque in N m = regressor @ parameters.
        """
        n = self.robot.dof
        inertial = self._dynamics.regressor(q, qd, qdd).reshape(len(q), n, n, COUNT)
        own = np.eye(n)[None, :, :, None]
        values = {"fc": np.tanh(qd / SMOOTHING), "fv": qd, "Ja": qdd}
        drive = [values[kind][:, :, None, None] * own for kind in self.drive]
        return np.concatenate([inertial, *drive], axis=3).reshape(len(q), n, -1)

    def nominal(self) -> Array:
        """Parameters [parameters] of the robot file; frictions and unknown inertias zero."""
        n = self.robot.dof
        inertial = self._dynamics.parameters().reshape(n, COUNT)
        drive = np.zeros((n, len(self.drive)))
        if self.motor_inertia:
            drive[:, -1] = np.nan_to_num(self.robot.reflected_inertia)
        return np.concatenate([inertial, drive], axis=1).ravel()


@dataclass(frozen=True)
class Regrouping:
    """Base parameters as combinations of full parameters.

    Attributes:
        names: of the full parameters.
        base: indices of the base columns [rank], in ascending order.
        combination: [rank, parameters] with base values = combination @ full parameters.
        singular_values: of the stacked, column-scaled regressor, descending.
    """

    names: tuple[str, ...]
    base: Indices
    combination: Array
    singular_values: Array

    @property
    def rank(self) -> int:
        """Number of base parameters."""
        return len(self.base)

    def expression(self, index: int) -> str:
        """A base parameter as text: "Izz_1 + Iyy_2 + 0.3612 m_3"."""
        own = int(self.base[index])
        text = self.names[own]
        row = self.combination[index]
        for other in np.flatnonzero(np.abs(row) > _NEGLIGIBLE):
            if other == own:
                continue
            size = abs(row[other])
            factor = "" if abs(size - 1) < _NEGLIGIBLE else f"{size:.5g} "
            text += f" {'-' if row[other] < 0 else '+'} {factor}{self.names[other]}"
        return text

    @property
    def expressions(self) -> tuple[str, ...]:
        """All base parameters as text."""
        return tuple(self.expression(index) for index in range(self.rank))


def regroup(regressor: FullRegressor, base_names: Sequence[str] | None = None) -> Regrouping:
    """Base parameters of an arm in one mounting, from its regressor at 25 random states.

    More states are drawn where 25 give fewer rows than there are columns.

    Args:
        regressor: of the arm.
        base_names: the columns that a paper chose as base; None to choose them here.

    Raises:
        ValueError: the chosen columns are not a largest independent set.
    """
    robot = regressor.robot
    columns = len(regressor.names)
    count = max(_STATES, 2 * columns // robot.dof)
    random = np.random.default_rng(0)
    shape = (count, robot.dof)
    q = random.uniform(-np.pi, np.pi, shape)
    qd = random.uniform(-1, 1, shape) * robot.max_velocity
    qdd = random.uniform(-1, 1, shape) * robot.max_acceleration
    stacked = regressor(q, qd, qdd).reshape(count * robot.dof, columns)
    norms = np.linalg.norm(stacked, axis=0)
    scale = np.where(norms > _RANK_TOLERANCE * norms.max(), norms, np.inf)
    values = np.linalg.svd(stacked / scale, compute_uv=False)
    rank = int(np.count_nonzero(values > _RANK_TOLERANCE * values[0]))
    # Weights select the base column among equivalent ones: drives, then
    # rotary inertias, first moments, and masses last, as the literature groups them.
    weight = np.array(
        [_PREFERENCE.get(n.split("_")[0], _USUAL_PREFERENCE) for n in regressor.names]
    )
    if base_names is None:
        base = np.sort(pivoted_columns(stacked / scale * weight, rank))
    else:
        base = np.sort([regressor.names.index(name) for name in base_names])
        own = np.linalg.svd((stacked / scale)[:, base], compute_uv=False)
        if len(base) != rank or own[-1] <= _RANK_TOLERANCE * own[0]:
            raise ValueError(f"{len(base)} columns are not a largest independent set of {rank}")
    rest = np.setdiff1d(np.arange(columns), base)
    triangle = qr(stacked[:, np.concatenate([base, rest])], mode="economic")[1]
    relation = solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:])
    combination = np.zeros((rank, columns))
    combination[np.arange(rank), base] = 1.0
    combination[:, rest] = np.where(np.abs(relation) > _NEGLIGIBLE, relation, 0.0)
    return Regrouping(regressor.names, base, combination, np.asarray(values, dtype=float))
