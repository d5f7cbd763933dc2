"""EcBot from bags: its dynamic model, its power model, and their errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.comparison import RecordedMotion, recorded_motions
from ur_energy_model.identification.dynamics import payload_of_row, stated_for
from ur_energy_model.identification.error_statistics import ErrorStatistics
from ur_energy_model.identification.least_squares import (
    gram_matrices_by_joint,
    solve_normal_equations,
)
from ur_energy_model.identification.power_structures import PowerLayout, PowerRows, power_columns
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import COUNT, TENSOR, Setup
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import slices_between
from ur_energy_model.typing import Array, Indices

# EcBot's dynamic model: motor currents or joint torques by one regression per joint.
#
# Heredia, Schlette, Kjaergaard, EcBot, eq. 9-12 and 18-19. Masses and centres of mass of the links
# are known; their inertia tensors, the motor's inertia, viscous and Coulomb friction and the
# torque constant are not:
#
# torque = known torque + tensors and motor inertia + k_v qd + k_s sign(qd) current = torque / k_m

Measured = Literal["current", "torque"]
"""What an arm measures: motor currents [A], or joint torques [N m]."""
KNOWN, VISCOUS, COULOMB, INERTIA = 0, 1, 2, 3
"""Columns of a joint's regression; those of the link tensors follow."""

_ZERO = 1e-6
"""RMS up to which a column counts as zero, in N m, rad/s or rad/s^2."""
_DEPENDENT = 1e-9
"""Squared remainder up to which a column of length one depends on those before it."""


@dataclass(frozen=True)
class DynamicModel:
    """Coefficients of n joints, joint side."""

    measured: Measured  # what the model predicts
    coefficients: Array  # of the columns of each joint [n, columns]; for currents over k_m

    @property
    def torque_constant(self) -> Array | None:
        """k_m, joint torque per current [n], N m/A; None for an arm with torque sensors.

        NaN where gravity and the other links do not load a joint, such as the first one of an
        upright arm: only the friction over k_m is known there.
        """
        if self.measured == "torque":
            return None
        known = self.coefficients[:, KNOWN]
        return np.asarray(np.where(known != 0.0, 1.0 / np.where(known != 0.0, known, 1.0), np.nan))

    @property
    def viscous(self) -> Array:
        """k_v [n], N m s/rad."""
        return self._torques(VISCOUS)

    @property
    def coulomb(self) -> Array:
        """k_s [n], N m."""
        return self._torques(COULOMB)

    @property
    def inertia(self) -> Array:
        """Inertia about each joint's own axis that no other column explains [n], kg m^2.

        The motor's, reducer included, and of the link what cannot be separated from it.
        """
        return self._torques(INERTIA)

    def _torques(self, column: int) -> Array:
        scale = self.torque_constant
        values = self.coefficients[:, column]
        return np.asarray(values if scale is None else values * scale)


class DynamicColumns:
    """Columns of the regressions of an arm in a setup.

    `setup`: mounting and payload, both known.
    """

    def __init__(self, robot: RobotDescription, setup: Setup) -> None:
        points = replace(robot, inertia=np.zeros_like(robot.inertia))
        self._dynamics = ArmDynamics(points, setup)
        self.width = INERTIA + 1 + (TENSOR.stop - TENSOR.start) * robot.dof

    def __call__(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Columns [samples, n, width] of positions, speeds and accelerations [samples, n]."""
        samples, n = q.shape
        rigid = self._dynamics.regressor(q, qd, qdd).reshape(samples, n, n, COUNT)
        tensors = rigid[..., TENSOR].reshape(samples, n, -1)
        known = self._dynamics.inverse_dynamics(q, qd, qdd)
        own = np.stack([known, qd, np.sign(qd), qdd], axis=2)
        return np.concatenate([own, tensors], axis=2)


class DynamicModelFit:
    """Accumulates samples and fits all joints, in constant memory.

    `measured`: what is measured. Torques leave nothing to fit for the known torque.
    """

    def __init__(self, columns: DynamicColumns, measured: Measured) -> None:
        self._columns, self._measured = columns, measured
        self._gram: Array | None = None
        self.samples = 0
        """Number of samples so far."""

    def accumulate(self, columns: Array, measured: Array) -> None:
        """Add samples: their columns [samples, n, width] and measurements [samples, n]."""
        gram = gram_matrices_by_joint(np.concatenate([columns, measured[:, :, None]], axis=2))
        self._gram = gram if self._gram is None else self._gram + gram
        self.samples += len(measured)

    def fit(self) -> DynamicModel:
        """Least squares of every joint; columns that depend on those before them get zero."""
        assert self._gram is not None
        n, width = len(self._gram), self._columns.width
        coefficients = np.zeros((n, width))
        first = 0 if self._measured == "current" else 1
        for joint, gram in enumerate(self._gram):
            right = gram[:-1, -1].copy()
            if first:
                coefficients[joint, KNOWN] = 1.0
                right -= gram[:-1, KNOWN]
            free = first + _independent(gram[first:-1, first:-1], self.samples)
            coefficients[joint, free] = solve_normal_equations(
                gram[np.ix_(free, free)], right[free]
            )
        return DynamicModel(self._measured, coefficients)


def _independent(gram: Array, samples: int) -> Indices:
    """Columns of a Gram matrix [k, k] that are not zero and do not depend on those before them.

    Symmetric elimination, column by column (Cholesky); what is left on the diagonal is the squared
    remainder of a column of length one.
    """
    diagonal = np.diag(gram)
    seen = diagonal > _ZERO**2 * samples
    length = np.sqrt(np.where(seen, diagonal, 1.0))
    rest = np.where(np.outer(seen, seen), gram / np.outer(length, length), 0.0)
    kept = []
    for column in range(len(gram)):
        remainder = float(rest[column, column])
        if remainder > _DEPENDENT:
            kept.append(column)
            rest = rest - np.outer(rest[:, column], rest[column]) / remainder
    return np.array(kept, dtype=np.intp)


# EcBot's errors of the dynamic and of the power model, eq. 22-23 and 25-26.


class EcbotErrors(ErrorStatistics):
    """Errors of k channels, the joints of an arm or its power, over all channels."""

    @property
    def samples(self) -> int:
        """Number of samples."""
        return int(self.count[0])

    @property
    def rmse(self) -> float:
        """Root of the mean over samples and channels of the squared error (eq. 22 and 25)."""
        return float(np.sqrt(np.mean(np.square(self.rms))))

    @property
    def rmse_percent(self) -> float:
        """Mean over the channels of the RMSE over the range of the measurement (eq. 23, 26) [%]."""
        return float(np.mean(self.rms_percent))

    @property
    def mean_r2(self) -> float:
        """Coefficient of determination of a single channel, mean over several."""
        return float(np.mean(self.r2))


# EcBot's power model: 4n + 1 free coefficients of currents or torques.
#
# Heredia, Schlette, Kjaergaard, EcBot, eq. 16 (currents), 17 (torques) and 20-21.


class FreePowerModel:
    """Accumulates samples, fits the coefficients and predicts power."""

    def __init__(self, joints: int) -> None:
        self._layout = PowerLayout(joints)
        width = self._layout.without_delays.stop
        self._gram = np.zeros((width + 1, width + 1))

    def accumulate(self, time: Array, qd: Array, measured: Array, power: Array) -> None:
        """Add consecutive samples; those without power are ignored.

        Args:
            time: [samples], s.
            qd: joint speeds [samples, n], rad/s.
            measured: currents [samples, n], A, or torques, N m.
            power: at the supply [samples], W.
        """
        good = np.isfinite(power)
        rows = np.column_stack([self._columns(time, qd, measured), power])[good]
        self._gram += rows.T @ rows

    def fit(self) -> Array:
        """Coefficients [4n + 1]: P_c, then R, k_t, k_MD and L of all joints."""
        return solve_normal_equations(self._gram[:-1, :-1], self._gram[:-1, -1])

    def predict(self, coefficients: Array, time: Array, qd: Array, measured: Array) -> Array:
        """Power of consecutive samples [samples], W; the supply takes none back."""
        return np.maximum(self._columns(time, qd, measured) @ coefficients, 0.0)

    def _columns(self, time: Array, qd: Array, measured: Array) -> Array:
        """Columns [samples, 4n + 1]."""
        n = self._layout.joints
        rows = PowerRows(time, qd, measured, np.zeros(len(time)), np.zeros(len(time)))
        return power_columns(rows, np.ones(n), np.zeros(n))[:, self._layout.without_delays]


CUTOFF = 5.0
"""A quarter of the bandwidth of the accelerations [Hz]: test motions are sinusoids below 1 Hz."""
_SHOWN = 60.0
"""Time of the curves of a test [s]."""
_ROWS = 2000
"""Samples whose columns are computed at a time."""


@dataclass(frozen=True)
class EcbotTest:
    """Errors on one data set."""

    dynamics: EcbotErrors  # of currents [A] or torques [N m], all joints
    power: EcbotErrors  # predicted from the motion alone [W]
    power_from_measured: EcbotErrors  # predicted from measured currents or torques [W]
    # Last stretch of the data [samples], s and W
    time: Array
    measured_power: Array
    model_power: Array


class Ecbot:
    """Trained models of an arm.

    `measured`: what the arm measures; None takes torques where the bags have them and the robot
    file has no torque constants, else currents.

    Raises:
        UrEnergyError: unusable bags.
        IdentificationError: no samples with both motion and power.
    """

    def __init__(
        self,
        robot: RobotDescription,
        bags: Sequence[str | Path],
        measured: Measured | None = None,
    ) -> None:
        self.robot = robot
        info = next(iterate_bag(bags[0])).info
        first = next(recorded_motions(bags[0], CUTOFF), None)
        if first is None:
            raise IdentificationError(f"{bags[0]}: no motion; record the arm while it moves")
        stated = stated_for(info, payload_of_row(first.payload[0]), robot, None)
        self._columns = DynamicColumns(robot, stated.setup)
        if measured is None:
            sensors = (
                np.isfinite(first.torque).all() and not np.isfinite(robot.torque_constant).all()
            )
            measured = "torque" if sensors else "current"
        self.measured: Measured = measured
        self._power = FreePowerModel(robot.dof)
        fit = DynamicModelFit(self._columns, measured)
        powered = False
        for part in self._motions(bags):
            for rows in _pieces(part):
                columns = self._columns(part.q[rows], part.qd[rows], part.qdd[rows])
                fit.accumulate(columns, self._values(part)[rows])
            self._power.accumulate(part.time, part.qd, self._values(part), part.power)
            powered |= bool(np.isfinite(part.power).any())
        if not powered:
            raise IdentificationError(
                f"{bags[0]}: bus power was not recorded; record actual_robot_voltage and "
                "actual_robot_current"
            )
        self.samples = fit.samples
        """Number of training samples."""
        self.dynamics: DynamicModel = fit.fit()
        self.coefficients = self._power.fit()
        """Of the power model [4n + 1]."""

    def test(self, bags: Sequence[str | Path]) -> EcbotTest:
        """Errors on these bags."""
        dynamics, power, from_measured = (EcbotErrors(k) for k in (self.robot.dof, 1, 1))
        curves = np.zeros((0, 3))
        for part in self._motions(bags):
            values = self._values(part)
            estimate = np.concatenate([self.predict(part, rows) for rows in _pieces(part)])
            dynamics.accumulate(values, estimate)
            known = np.isfinite(part.power)
            motion = self._power.predict(self.coefficients, part.time, part.qd, estimate)
            direct = self._power.predict(self.coefficients, part.time, part.qd, values)
            for errors, found in ((power, motion), (from_measured, direct)):
                errors.accumulate(part.power[known, None], found[known, None])
            shown = np.column_stack([part.time, part.power, motion])
            curves = np.concatenate([curves, shown])
            curves = curves[curves[:, 0] > curves[-1, 0] - _SHOWN]
        time, measured_power, model_power = curves.T
        start = time[:1]
        return EcbotTest(dynamics, power, from_measured, time - start, measured_power, model_power)

    def predict(self, motion: RecordedMotion, rows: slice) -> Array:
        """Currents [samples, n], A, or torques, N m, of some samples from their motion alone."""
        columns = self._columns(motion.q[rows], motion.qd[rows], motion.qdd[rows])
        return np.asarray(np.einsum("sjc,jc->sj", columns, self.dynamics.coefficients))

    def _motions(self, bags: Sequence[str | Path]) -> Iterator[RecordedMotion]:
        for bag in bags:
            yield from recorded_motions(bag, CUTOFF)

    def _values(self, part: RecordedMotion) -> Array:
        return part.torque if self.measured == "torque" else part.current


def _pieces(part: RecordedMotion) -> Iterator[slice]:
    return slices_between(range(_ROWS, len(part), _ROWS), len(part))
