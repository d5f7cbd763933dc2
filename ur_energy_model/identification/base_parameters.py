# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Base parameters: the combinations of inertial and drive parameters that motion can show.

13 parameters a joint (10 inertial in the order m, mc, I; Coulomb, viscous, motor
inertia). Their joint torque regressor, stacked at random states, has dependent columns;
the rank (SVD) is the number of base parameters, and a pivoted QR decomposition picks base
columns and shows how the other parameters regroup into them (Raviola et al., RAAD 2021,
sec. 2; Machines 2024, 12(9), 595, sec. 3). Among equivalent columns a preference and then
their order decide, never rounding (`pivoted_columns`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import qr, solve_triangular

from ur_energy_model.errors import RecordingError
from ur_energy_model.identification.filtered_motion import MOVING_SPEED
from ur_energy_model.identification.least_squares import (
    first_independent_columns,
    pivoted_columns,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.friction import LAWS
from ur_energy_model.model.regressor import (
    INERTIAL,
    Regressor,
    by_joint,
    friction_regressor,
    link_regressor,
    motor_inertia_regressor,
)
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import COUNT, Setup
from ur_energy_model.telemetry.samples import Telemetry, slices_between
from ur_energy_model.telemetry.usable_samples import resampled_runs
from ur_energy_model.typing import Array, Indices

DRIVE = {"fc": "N m", "fv": "N m s/rad", "Ja": "kg m^2"}
"""Coulomb and viscous friction and motor inertia, joint side, and their units."""
_FRICTION = {"fc": "coulomb", "fv": "viscous"}
"""Parameters of the friction law of these names. The law smooths Coulomb friction, tanh(qd /
0.001 rad/s) (Raviola et al. 2021)."""
_RAVIOLA = ("m", "mx", "my", "mz", "Ixx", "Iyy", "Izz", "Iyz", "Ixz", "Ixy")
_STATES = 25  # random states that the regressor is stacked at
_RANK_TOLERANCE = 1e-9  # singular values below this share of the largest count as zero
_NEGLIGIBLE = 1e-7  # coefficients of a combination that count as zero
_PREFERENCE = {
    "fc": 1.0,
    "fv": 1.0,
    "Ja": 0.3,
    "Izz": 0.3,
    "Iyy": 0.1,
    "Ixx": 0.03,
    "m": 0.001,
}
"""Weights of the columns among which a base column is chosen, by kind of parameter."""
_USUAL_PREFERENCE = 0.1
_AT_ONCE = 1000  # samples whose regressor is in memory at a time


@dataclass(frozen=True)
class FullRegressor:
    """Joint torque regressor of all parameters, in one mounting.

    Attributes:
        robot: the arm, n joints.
        gravity: gravity in the base frame [3], m/s^2.
        friction: whether there are friction columns (target_moment contains no friction).
        motor_inertia: whether there are columns of motor inertias; Machines 2024, 12(9),
            595 has none.
    """

    robot: RobotDescription
    gravity: Array
    friction: bool = True
    motor_inertia: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Parameter names in column order, such as "mx_2" (joint numbers from 1)."""
        kinds = (*INERTIAL, *self.drive)
        names = []
        for joint in range(1, self.robot.dof + 1):
            names += [f"{kind}_{joint}" for kind in kinds]
        return tuple(names)

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the parameters, in column order."""
        of_drive = [DRIVE[kind] for kind in self.drive]
        return (*INERTIAL.values(), *of_drive) * self.robot.dof

    @property
    def drive(self) -> tuple[str, ...]:
        """Kinds of drive parameters, out of `DRIVE`, that have columns."""
        coulomb, viscous, inertia = DRIVE
        kinds = [coulomb, viscous] if self.friction else []
        if self.motor_inertia:
            kinds.append(inertia)
        return tuple(kinds)

    @cached_property
    def _dynamics(self) -> ArmDynamics:
        return ArmDynamics(self.robot, Setup(gravity=self.gravity))

    def __call__(self, q: Array, qd: Array, qdd: Array) -> Regressor:
        """Regressor of a motion: joint-side torque in N m = its values @ parameters.

        Args:
            q: positions [samples, n], rad.
            qd: velocities [samples, n], rad/s.
            qdd: accelerations [samples, n], rad/s^2.
        """
        kinds = [link_regressor(self._dynamics, q, qd, qdd)]
        if self.friction:
            law = friction_regressor(LAWS["coulomb_viscous"], qd)
            for parameter in _FRICTION.values():
                joints = range(1, self.robot.dof + 1)
                kinds.append(law.select(f"{parameter}_{joint}" for joint in joints))
        if self.motor_inertia:
            kinds.append(motor_inertia_regressor(qdd))
        every = by_joint(kinds, self.robot.dof)
        return Regressor(every.values, self.names, self.units)

    def nominal(self) -> Array:
        """Parameters [parameters] of the robot file; frictions and unknown inertias zero."""
        n = self.robot.dof
        inertial = self._dynamics.parameters().reshape(n, COUNT)
        drive = np.zeros((n, len(self.drive)))
        if self.motor_inertia:
            motor_inertia = -1  # the last kind of `drive`
            drive[:, motor_inertia] = np.nan_to_num(self.robot.reflected_inertia)
        return np.concatenate([inertial, drive], axis=1).ravel()


@dataclass(frozen=True)
class Regrouping:
    """Base parameters as combinations of full parameters.

    Attributes:
        names: names of the full parameters.
        base: indices of the base columns [rank], in ascending order.
        combination: matrix [rank, parameters]; base values = combination @ full parameters.
        singular_values: singular values of the stacked, column-scaled regressor,
            descending.
    """

    names: tuple[str, ...]
    base: Indices
    combination: Array
    singular_values: Array

    @property
    def rank(self) -> int:
        """Number of base parameters."""
        return len(self.base)

    def of(self, full: Regressor) -> Regressor:
        """The base columns of a regressor of all parameters: torque = values @ base values."""
        return full.at(self.base)

    @property
    def expressions(self) -> tuple[str, ...]:
        """Base parameters as text, such as "Izz_1 + Iyy_2 + 0.3612 m_3"."""
        texts = []
        for own, row in zip(self.base.tolist(), self.combination, strict=True):
            text = self.names[own]
            for other in np.flatnonzero(np.abs(row) > _NEGLIGIBLE).tolist():
                if other != own:
                    text += self._term(other, float(row[other]))
            texts.append(text)
        return tuple(texts)

    def _term(self, parameter: int, coefficient: float) -> str:
        """A term of a sum as text, such as " + 0.3612 m_3"."""
        sign = "-" if coefficient < 0 else "+"
        size = abs(coefficient)
        if abs(size - 1) < _NEGLIGIBLE:
            return f" {sign} {self.names[parameter]}"
        return f" {sign} {size:.5g} {self.names[parameter]}"


def raviola_base(regressor: FullRegressor) -> tuple[str, ...]:
    """Base columns in the order of Raviola et al. 2021, sec. 2: independent of those before them.

    All links first, from the base on, each with m, mx, my, mz, Jxx, Jyy, Jzz, Jyz, Jxz,
    Jxy; then Coulomb and viscous friction, and motor inertias last: p_B(1) to p_B(36),
    (37) to (48), (49) to (52) of a UR5.
    """
    joints = range(1, regressor.robot.dof + 1)
    order = []
    for j in joints:
        order += [f"{kind}_{j}" for kind in _RAVIOLA]
    for kind in regressor.drive:
        order += [f"{kind}_{j}" for j in joints]
    places = [regressor.names.index(name) for name in order]
    independent = first_independent_columns(_stacked(regressor)[:, places])
    return tuple(order[k] for k in independent)


def _stacked(regressor: FullRegressor) -> Array:
    """Regressor at random states within the limits, at least 25 [rows, parameters]."""
    robot = regressor.robot
    columns = len(regressor.names)
    count = max(_STATES, 2 * columns // robot.dof)
    random = np.random.default_rng(0)
    shape = (count, robot.dof)
    q = random.uniform(-np.pi, np.pi, shape)
    qd = random.uniform(-1, 1, shape) * robot.max_velocity
    qdd = random.uniform(-1, 1, shape) * robot.max_acceleration
    return regressor(q, qd, qdd).stacked


def regroup(
    regressor: FullRegressor, base_names: Sequence[str] | None = None
) -> Regrouping:
    """Base parameters of an arm in one mounting, from its regressor at 25 random states.

    More states are drawn where 25 give fewer rows than there are columns.

    Args:
        regressor: full regressor of the arm.
        base_names: the columns that a paper chose as base; None to choose them here.

    Raises:
        ValueError: the chosen columns are not a largest independent set.
    """
    columns = len(regressor.names)
    stacked = _stacked(regressor)
    norms = np.linalg.norm(stacked, axis=0)
    scale = np.where(norms > _RANK_TOLERANCE * norms.max(), norms, np.inf)
    values = np.linalg.svd(stacked / scale, compute_uv=False)
    rank = int(np.count_nonzero(values > _RANK_TOLERANCE * values[0]))
    if base_names is None:
        # Weights select the base column among equivalent ones: drives, then rotary
        # inertias, first moments, and masses last, as the literature groups them.
        kinds = [name.split("_")[0] for name in regressor.names]
        weight = np.array([_PREFERENCE.get(kind, _USUAL_PREFERENCE) for kind in kinds])
        base = np.sort(pivoted_columns(stacked / scale * weight, rank))
    else:
        base = np.sort([regressor.names.index(name) for name in base_names])
        own = np.linalg.svd((stacked / scale)[:, base], compute_uv=False)
        if len(base) != rank or own[-1] <= _RANK_TOLERANCE * own[0]:
            raise ValueError(
                f"{len(base)} columns are not a largest independent set of {rank}"
            )
    rest = np.setdiff1d(np.arange(columns), base)
    triangle = qr(stacked[:, np.concatenate([base, rest])], mode="economic")[1]
    relation = solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:])
    combination = np.zeros((rank, columns))
    combination[np.arange(rank), base] = 1.0
    combination[:, rest] = np.where(np.abs(relation) > _NEGLIGIBLE, relation, 0.0)
    return Regrouping(regressor.names, base, combination, np.asarray(values, dtype=float))


@dataclass(frozen=True)
class BaseRegressor:
    """Joint torque regressor of base parameters, with the meaning of its columns.

    Values of base parameters are valid for the base columns that they were fitted to, and
    an arm has many choices of base columns. What multiplies columns and values therefore
    uses one object of this class.

    Attributes:
        full: regressor of all parameters.
        regrouping: the base columns of `full`, and the parameters that each one combines.
    """

    full: FullRegressor
    regrouping: Regrouping

    @classmethod
    def of(
        cls, full: FullRegressor, base_names: Sequence[str] | None = None
    ) -> BaseRegressor:
        """The base columns of a regressor, see `regroup`.

        Args:
            full: regressor of all parameters.
            base_names: the columns that a paper chose as base; None to choose them here.

        Raises:
            ValueError: the chosen columns are not a largest independent set.
        """
        return cls(full, regroup(full, base_names))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base columns [rank], such as "mx_2" (joint numbers from 1)."""
        names = self.regrouping.names
        return tuple(names[column] for column in self.regrouping.base)

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the base parameters [rank], such as "kg m"."""
        units = self.full.units
        return tuple(units[column] for column in self.regrouping.base)

    def __call__(self, q: Array, qd: Array, qdd: Array) -> Regressor:
        """Base columns of a motion: joint-side torque in N m = its values @ base values.

        Args:
            q: positions [samples, n], rad.
            qd: velocities [samples, n], rad/s.
            qdd: accelerations [samples, n], rad/s^2.
        """
        return self.regrouping.of(self.full(q, qd, qdd))

    def torque(self, values: Array, q: Array, qd: Array, qdd: Array) -> Array:
        """Torque by base parameters [samples, n], joint side, N m, in constant memory.

        Args:
            values: values of the base parameters [rank].
            q: positions [samples, n], rad.
            qd: velocities [samples, n], rad/s.
            qdd: accelerations [samples, n], rad/s^2.
        """
        torque = np.empty(q.shape)
        cuts = range(_AT_ONCE, len(q), _AT_ONCE)
        for rows in slices_between(cuts, len(q)):
            torque[rows] = self(q[rows], qd[rows], qdd[rows]).values @ values
        return torque


def snapped_to_axis(gravity: Array) -> Array:
    """Gravity [3], m/s^2, along a base axis where it is within 0.2 degrees of one.

    An upright arm has fewer base parameters than a tilted one: with a noisy estimate of
    the mounting the fit would include parameters that the motion does not show.

    Args:
        gravity: gravity as measured [3], m/s^2.
    """
    size = float(np.linalg.norm(gravity))
    axis = int(np.argmax(np.abs(gravity)))
    if abs(gravity[axis]) < size * np.cos(np.radians(0.2)):
        return gravity
    out = np.zeros(3)
    out[axis] = np.copysign(size, gravity[axis])
    return out


# Condition number of an arm's base parameters for a motion.

_RATE = 50.0  # rate at which the motion is resampled [Hz]
_BANDWIDTH = 8.0  # bandwidth of the resampled motion [Hz]
_STRIDE = 5  # samples of the resampled motion from one row of the regressor to the next


class Conditioning:
    """Condition number of the stacked base regressor of a recording, part by part.

    Args:
        robot: the arm, n joints.
        gravity: gravity in the base frame [3], m/s^2; None for an upright arm.
    """

    def __init__(self, robot: RobotDescription, gravity: Array | None = None) -> None:
        if gravity is None:
            gravity = np.array([0.0, 0.0, -robot.controller_gravity])
        full = FullRegressor(robot, snapped_to_axis(gravity))
        self._columns = BaseRegressor.of(full)
        rank = self._columns.regrouping.rank
        self._gram = np.zeros((rank, rank))

    def accumulate(self, part: Telemetry) -> None:
        """Add the motion of a part: measured where recorded, else the targets.

        Raises:
            RecordingError: the part has another number of joints.
        """
        kind = "actual" if "actual_q" in part and "actual_qd" in part else "target"
        names = (f"{kind}_q", f"{kind}_qd")
        if any(name not in part for name in names):
            return
        joints = part[names[0]].shape[1]
        robot = self._columns.full.robot
        if joints != robot.dof:
            raise RecordingError(
                part.info.source,
                f"has {joints} joints, a {robot.name} {robot.dof}",
                "import or record it again under the right robot name",
                field=names[0],
            )
        distinct = part.distinct()
        finite = np.isfinite(np.hstack([distinct[name] for name in names]))
        good = np.asarray(finite.all(axis=1))
        for _, q, qd in resampled_runs(
            distinct, names, good, rate=_RATE, bandwidth=_BANDWIDTH
        ):
            qdd = np.gradient(qd, 1 / _RATE, axis=0)
            thin = slice(None, None, _STRIDE)
            columns = self._columns(q[thin], qd[thin], qdd[thin])
            rows = columns.values[np.abs(qd[thin]) > MOVING_SPEED]
            self._gram += rows.T @ rows

    @property
    def number(self) -> float:
        """Condition number; infinite where the motion leaves a base parameter undetermined."""
        values = np.linalg.eigvalsh(self._gram)
        if values[-1] <= 0 or values[0] <= 1e-15 * values[-1]:
            return float("inf")
        return float(np.sqrt(values[-1] / values[0]))
