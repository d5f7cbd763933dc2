"""Identification of an arm's base parameters from motion and torque.

torque = W p_B with W the base columns of the regressor (`regrouping`): ordinary least squares,
then least squares weighted by each joint's noise, then the nearest physically consistent full
parameters. Sources: Raviola et al., RAAD 2021, sec. 2; Machines 2024, 12(9), 595, sec. 3 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.linalg import qr, solve_triangular

from ur_energy_model.errors import IdentificationError, RecordingError
from ur_energy_model.identification.filtered_motion import (
    MOVING_SPEED,
    FilteredMotion,
    ParallelFilter,
    resampled_runs,
)
from ur_energy_model.identification.least_squares import (
    BlockedGram,
    joint_gram_matrices,
    pivoted_columns,
    pseudo_inverse,
    solve_normal_equations,
)
from ur_energy_model.identification.physical_consistency import nearest_possible
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import COUNT, FIRST_MOMENT, MASS, TENSOR, Setup
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Indices

# Base parameters: the combinations of inertial and drive parameters that motion can show.
#
# 13 parameters a joint (10 inertial in the order m, mc, I; Coulomb, viscous, motor inertia). Their
# joint torque regressor, stacked at random states, has dependent columns; the rank (SVD) is the
# number of base parameters, and a pivoted QR decomposition picks base columns and shows how the
# other parameters regroup into them (Raviola et al., RAAD 2021, sec. 2; Machines 2024, 12(9), 595,
# sec. 3). Among equivalent columns a preference and then their order decide, never rounding
# (`pivoted_columns`).

INERTIAL = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Inertial parameters of a link, about the origin and in the axes of its DH frame."""
DRIVE = ("fc", "fv", "Ja")  # coulomb and viscous friction and motor inertia, joint side
SMOOTHING = 1e-3
"""Speed that smooths Coulomb friction, tanh(qd / 0.001 rad/s) (Raviola et al. 2021) [rad/s]."""
_STATES = 25
_RANK_TOLERANCE = 1e-9
_NEGLIGIBLE = 1e-7
_PREFERENCE = {"fc": 1.0, "fv": 1.0, "Ja": 0.3, "Izz": 0.3, "Iyy": 0.1, "Ixx": 0.03, "m": 0.001}
_USUAL_PREFERENCE = 0.1


@dataclass(frozen=True)
class FullRegressor:
    """Joint torque regressor of all parameters, in one mounting."""

    robot: RobotDescription  # the arm, n joints
    gravity: Array  # in the base frame [3], m/s^2
    friction: bool = True  # include the friction columns (target_moment holds no friction)
    motor_inertia: bool = True  # include the motor inertias; Machines 2024, 12(9), 595 does not

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
    """Base parameters as combinations of full parameters."""

    names: tuple[str, ...]  # of the full parameters
    base: Indices  # indices of the base columns [rank], in ascending order
    combination: Array  # [rank, parameters] with base values = combination @ full parameters
    singular_values: Array  # of the stacked, column-scaled regressor, descending

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

    `base_names`: the columns that a paper chose as base; None to choose them here.

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
    if base_names is None:
        # Weights select the base column among equivalent ones: drives, then rotary inertias, first
        # moments, and masses last, as the literature groups them.
        kinds = [name.split("_")[0] for name in regressor.names]
        weight = np.array([_PREFERENCE.get(kind, _USUAL_PREFERENCE) for kind in kinds])
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


TorqueSource = Literal["current", "target_moment", "measured_torque"]

_FOLDS = 5
_RCOND = 1e-13


@dataclass(frozen=True)
class Verification:
    """How well base parameters predict a motion (general-trajectory check)."""

    torque_rms: Array  # residual per joint [n], N m
    torque_r2: Array  # the same as coefficient of determination [n]
    # sqrt(e'e) / number of torque samples, N m; filtered, in motion (published: `NormalisedError`)
    normalised_error: float
    samples: int  # torque samples used (joints counted one by one)


@dataclass(frozen=True)
class BaseParameters(Verification):
    """Identified base parameters, and how well they predict the fitted data themselves.

    The normalised error is cross-validated: each block of time predicted from a fit to the others.
    """

    regrouping: Regrouping  # base parameters as combinations of full parameters
    # "current" (measured current times torque constant), "target_moment" or "measured_torque"
    torque_source: TorqueSource
    ordinary: Array  # by ordinary least squares [rank]
    values: Array  # by least squares weighted with each joint's noise [rank]
    std: Array  # standard deviations of `values` [rank], correlated residuals allowed for
    consistent: Array  # physically possible full parameters nearest to them [parameters]
    condition_number: float  # of the stacked base regressor of the data
    consistent_rms: Array  # residual per joint of `consistent` on the fitted data [n], N m


class BaseParameterFit:
    """Accumulates motion for a base parameter fit, in constant memory.

    `gravity` is that in the base frame [3], m/s^2. With "measured_torque" the motions carry the
    torque (joint side, N m) as their current; with "current" it takes torque constants [n], N m/A,
    motor side, by default the robot file's.

    Raises:
        IdentificationError: torque from currents without torque constants.
    """

    def __init__(
        self,
        robot: RobotDescription,
        gravity: Array,
        *,
        torque_source: TorqueSource = "current",
        torque_constant: Array | None = None,
    ) -> None:
        self.robot, self.torque_source = robot, torque_source
        constant = robot.torque_constant if torque_constant is None else torque_constant
        measured = torque_source == "measured_torque"
        self._torque_per_ampere = np.ones(robot.dof) if measured else robot.gear_ratio * constant
        if torque_source == "current" and not np.isfinite(self._torque_per_ampere).all():
            raise IdentificationError(
                f"{robot.name}: the robot file has no torque constants; identify a model first and "
                "give it with --model, or take the torque with --from target_moment or "
                "measured_torque"
            )
        self.regressor = FullRegressor(
            robot, snapped_to_axis(gravity), friction=torque_source != "target_moment"
        )
        self.regrouping = regroup(self.regressor)
        self._grams = BlockedGram()

    def accumulate(self, motion: FilteredMotion, narrow: ParallelFilter | None = None) -> None:
        """Add a motion; one without the torque is ignored.

        `motion`: of the arm in the stated mounting. `narrow`: filter of the recording for regressor
        and torque; None for no filter.
        """
        measured = self.torque_source != "target_moment"
        torque = motion.current * self._torque_per_ampere if measured else motion.moment
        if not np.isfinite(torque).all():
            return
        columns = self.regressor(motion.q, motion.qd, motion.qdd)[:, :, self.regrouping.base]
        rows = np.concatenate([columns, torque[:, :, None]], axis=2)
        for gram, duration in joint_gram_matrices(motion, rows, narrow, moving_only=measured):
            self._grams.accumulate(gram, duration)

    def solve(self) -> BaseParameters:
        """Fit the accumulated motion.

        Raises:
            IdentificationError: too little motion for the number of base parameters.
        """
        rank, n = self.regrouping.rank, self.robot.dof
        blocks = self._grams.blocks if len(self._grams) else np.zeros((0, n, rank + 2, rank + 2))
        counts = blocks[:, :, -1, -1].sum(axis=0)
        if counts.sum() < 2 * rank or (counts < 2).any():
            raise IdentificationError(
                f"{int(counts.sum())} torque samples of moving joints cannot give {rank} base "
                "parameters; record an exciting motion of all joints (ur_energy excite)"
            )
        total = blocks.sum(axis=0)
        ordinary = _solve(total, np.ones(n))
        noise = np.sqrt(_squares(total, ordinary) / counts)
        values = _solve(total, 1 / np.maximum(noise, 1e-9) ** 2)
        squares = _squares(total, values)
        # Correlated residuals inflate the covariance: with independent ones the variance of block
        # scores would equal the information; the mean ratio is the samples that count as one.
        weights = counts / np.maximum(squares, 1e-12)
        scores = np.einsum("j,bjrc,c->br", weights, blocks, np.append(-values, [1.0, 0.0]))[
            :, :rank
        ]
        information = np.einsum("j,jrc->rc", weights, total)[:rank, :rank]
        scatter = ((scores - scores.mean(axis=0)) ** 2).sum(axis=0)
        inflation = max(1.0, float(np.mean(scatter / np.diag(information))))
        covariance = np.asarray(inflation * pseudo_inverse(information, _RCOND))
        # The spread of the full parameters around the robot file: half a link's mass plus 1 kg,
        # first moments and tensors as of that mass at 0.1 m and 0.2 m, drives almost unlimited.
        nominal = self.regressor.nominal()
        mass = 0.5 * nominal.reshape(n, -1)[:, MASS] + 1.0
        spread = np.full((n, len(nominal) // n), 10.0)
        spread[:, MASS] = mass
        spread[:, FIRST_MOMENT] = 0.1 * mass[:, None]
        spread[:, TENSOR] = 0.04 * mass[:, None]
        combination = self.regrouping.combination
        consistent = nearest_possible(
            pseudo_inverse(covariance, _RCOND), combination, values, nominal, spread.ravel(), n
        )
        # Every fold of blocks predicted from the others.
        held_out = 0.0
        for part in np.array_split(np.arange(len(blocks)), min(_FOLDS, len(blocks))):
            fold = blocks[part].sum(axis=0)
            rest = total if len(part) == len(blocks) else total - fold
            held_out += float(_squares(fold, _solve(rest, np.ones(n))).sum())
        found = {**vars(self.verify(values)), "normalised_error": np.sqrt(held_out) / counts.sum()}
        return BaseParameters(
            **found,
            regrouping=self.regrouping,
            torque_source=self.torque_source,
            ordinary=ordinary,
            values=values,
            std=np.sqrt(np.diag(covariance)),
            consistent=consistent,
            condition_number=float(np.sqrt(np.linalg.cond(total[:, :rank, :rank].sum(axis=0)))),
            consistent_rms=np.sqrt(_squares(total, combination @ consistent) / counts),
        )

    def verify(self, values: Array) -> Verification:
        """Prediction of the accumulated motion by base parameters [rank]."""
        rank, total = self.regrouping.rank, self._grams.blocks.sum(axis=0)
        counts, squares = total[:, -1, -1], _squares(total, values)
        variation = total[:, rank, rank] - total[:, rank, -1] ** 2 / np.maximum(counts, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return Verification(
                torque_rms=np.sqrt(squares / counts),
                torque_r2=np.asarray(1 - squares / variation),
                normalised_error=float(np.sqrt(squares.sum()) / counts.sum()),
                samples=int(counts.sum()),
            )

    def torque_error(self, values: Array, q: Array, qd: Array, qdd: Array, current: Array) -> Array:
        """Predicted less measured torque [samples, n], N m, joint side, by base parameters [rank].

        Positions, speeds, accelerations and currents are [samples, n], joint side, SI.
        """
        columns = self.regressor(q, qd, qdd)[:, :, self.regrouping.base]
        return np.asarray(columns @ values - current * self._torque_per_ampere)


def _solve(gram: Array, weights: Array) -> Array:
    """Weighted least squares [rank] from Gram matrices [n, rank + 2, rank + 2]."""
    weighted = np.einsum("j,jrc->rc", weights, gram)
    rank = len(weighted) - 2
    return solve_normal_equations(weighted[:rank, :rank], weighted[:rank, rank], _RCOND)


def _squares(gram: Array, values: Array) -> Array:
    """Sum of squared residuals per joint [n]; rows are [base columns, torque, 1]."""
    full = np.append(-values, [1.0, 0.0])
    return np.asarray(np.maximum(np.einsum("r,jrc,c->j", full, gram, full), 0.0))


def snapped_to_axis(gravity: Array) -> Array:
    """Gravity [3], m/s^2, along a base axis where it is within 0.2 degrees of one.

    An upright arm has fewer base parameters than a tilted one: with a noisy estimate of the
    mounting the fit would include parameters that the motion does not show.
    """
    size = float(np.linalg.norm(gravity))
    axis = int(np.argmax(np.abs(gravity)))
    if abs(gravity[axis]) < size * np.cos(np.radians(0.2)):
        return gravity
    out = np.zeros(3)
    out[axis] = np.copysign(size, gravity[axis])
    return out


# Condition number of an arm's base parameters for a motion.

_RATE = 50.0
_BANDWIDTH = 8.0
_STRIDE = 5


class Conditioning:
    """Condition number of the stacked base regressor of a recording, part by part.

    `gravity`: in the base frame [3], m/s^2; upright by default.
    """

    def __init__(self, robot: RobotDescription, gravity: Array | None = None) -> None:
        down = np.array([0.0, 0.0, -robot.controller_gravity]) if gravity is None else gravity
        self._regressor = FullRegressor(robot, snapped_to_axis(down))
        self._base = regroup(self._regressor).base
        self._gram = np.zeros((len(self._base), len(self._base)))

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
        if joints != self._regressor.robot.dof:
            raise RecordingError(
                part.info.source,
                f"has {joints} joints, a {self._regressor.robot.name} {self._regressor.robot.dof}",
                "import or record it again under the right robot name",
                field=names[0],
            )
        distinct = part.distinct()
        finite = np.isfinite(np.hstack([distinct[name] for name in names]))
        good = np.asarray(finite.all(axis=1))
        for _, q, qd in resampled_runs(distinct, names, good, rate=_RATE, bandwidth=_BANDWIDTH):
            qdd = np.gradient(qd, 1 / _RATE, axis=0)
            thin = slice(None, None, _STRIDE)
            columns = self._regressor(q[thin], qd[thin], qdd[thin])[:, :, self._base]
            rows = columns[np.abs(qd[thin]) > MOVING_SPEED]
            self._gram += rows.T @ rows

    @property
    def number(self) -> float:
        """Condition number; infinite where the motion leaves a base parameter undetermined."""
        values = np.linalg.eigvalsh(self._gram)
        if values[-1] <= 0 or values[0] <= 1e-15 * values[-1]:
            return float("inf")
        return float(np.sqrt(values[-1] / values[0]))
