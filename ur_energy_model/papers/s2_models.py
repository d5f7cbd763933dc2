# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Models of EcBot (Heredia, Schlette, Kjaergaard), fitted and measured as EcBot defines them.

The dynamic model predicts motor currents or joint torques from the motion, by one
regression per joint (eq. 9-12, 18 and 19). The power model (eq. 13-17, 20 and 21) has
4n + 1 free coefficients. Errors are defined by eq. 22, 23, 25 and 26, over every sample as
recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.comparison import RecordedSamples, recorded_motions
from ur_energy_model.identification.dynamics import payload_of_row, stated_for
from ur_energy_model.identification.error_statistics import ErrorStatistics
from ur_energy_model.identification.least_squares import (
    first_independent_columns,
    gram_matrices_by_joint,
    solve_normal_equations,
)
from ur_energy_model.identification.power_structures import (
    PowerLayout,
    PowerRows,
    power_columns,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import COUNT, TENSOR
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import slices_between
from ur_energy_model.typing import Array

# Dynamic model, for each joint: torque = known torque + link tensors and motor inertia +
# k_v qd + k_s sign(qd), and current = torque / k_m. Masses and centres of mass of the
# links are known; inertia tensors, motor inertia, friction and k_m are identified.

Measured = Literal["current", "torque"]
"""Quantity that an arm measures: motor currents [A], or joint torques [N m]."""
KNOWN = 0
VISCOUS = 1
COULOMB = 2
INERTIA = 3
"""Columns of the regression of a joint; the columns of the link tensors follow."""

_ZERO = 1e-6  # RMS up to which a column counts as zero, in N m, rad/s or rad/s^2
_DEPENDENT = 3e-5
"""Remainder up to which a column of length one depends on the columns before it."""


@dataclass(frozen=True)
class DynamicModel:
    """Constants of n joints, joint side.

    Where gravity and the other links do not load a joint, such as the first one of an
    upright arm, its torque constant and the products with the torque constant are NaN:
    only friction over k_m is known.

    Attributes:
        coefficients: coefficients of the columns of each joint [n, columns]; over k_m for
            currents.
        torque_constant: k_m [n], N m/A; None for an arm with torque sensors.
        viscous: k_v [n], N m s/rad.
        coulomb: k_s [n], N m.
        inertia: about the own axis of each joint, as far as no other column explains it
            [n], kg m^2: motor with reducer, and the part of the link that cannot be
            separated from the motor.
    """

    coefficients: Array
    torque_constant: Array | None
    viscous: Array
    coulomb: Array
    inertia: Array


def fit_dynamic_model(gram: Array, samples: int, measured: Measured) -> DynamicModel:
    """Least squares of every joint (eq. 18 and 19).

    Columns that depend on columns before them get the coefficient zero. For measured
    torques the coefficient of the known torque is one.

    Args:
        gram: Gram matrices of columns and measurement [n, columns + 1, columns + 1].
        samples: number of samples in the matrices.
        measured: the quantity in the last column.
    """
    joints = gram.shape[0]
    columns = gram.shape[-1] - 1
    coefficients = np.zeros((joints, columns))
    first_free = KNOWN if measured == "current" else KNOWN + 1
    for joint, own in enumerate(gram):
        right = own[:-1, -1].copy()
        if measured == "torque":
            coefficients[joint, KNOWN] = 1.0
            right -= own[:-1, KNOWN]
        # A matrix with the same products has the same dependent columns.
        values, vectors = np.linalg.eigh(own[first_free:-1, first_free:-1])
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        root[:, np.linalg.norm(root, axis=0) <= _ZERO * np.sqrt(samples)] = 0.0
        free = first_free + first_independent_columns(root, _DEPENDENT)
        coefficients[joint, free] = solve_normal_equations(
            own[np.ix_(free, free)], right[free]
        )
    known = coefficients[:, KNOWN]
    constant = np.full(joints, np.nan)
    np.divide(1.0, known, out=constant, where=known != 0.0)
    torques = coefficients * constant[:, None]
    return DynamicModel(
        coefficients=coefficients,
        torque_constant=constant if measured == "current" else None,
        viscous=torques[:, VISCOUS],
        coulomb=torques[:, COULOMB],
        inertia=torques[:, INERTIA],
    )


class EcbotErrors(ErrorStatistics):
    """EcBot's errors of k channels, the joints of an arm or its power, eq. 22-23 and 25-26."""

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


CUTOFF = 5.0
"""A quarter of the bandwidth of the accelerations [Hz]: test motions are sinusoids below 1 Hz."""
_SHOWN = 60.0  # time of the curves of a test [s]
_ROWS = 2000  # samples whose columns are computed at a time


def free_power_columns(time: Array, qd: Array, measured: Array) -> Array:
    """Columns of EcBot's power model [samples, 4n + 1] (eq. 16, 17, 20 and 21).

    The coefficients are P_c, then R, k_t, k_MD and L of all joints.

    Args:
        time: times of consecutive samples [samples], s.
        qd: joint speeds [samples, n], rad/s.
        measured: currents (eq. 16) [samples, n], A, or torques (eq. 17) [samples, n], N m.
    """
    joints = qd.shape[1]
    not_used = np.zeros(len(time))
    rows = PowerRows(time, qd, measured, power=not_used, mode=not_used)
    columns = power_columns(rows, gear_ratio=np.ones(joints), constant=np.zeros(joints))
    return columns[:, PowerLayout(joints).without_delays]


@dataclass(frozen=True)
class EcbotTest:
    """Errors on one data set, and curves of its last minute.

    Attributes:
        dynamics: errors of currents [A] or torques [N m], all joints.
        power: errors of the power that is predicted from the motion alone [W].
        power_from_measured: errors of the power that is predicted from measured currents
            or torques [W].
        time: time since the start of the curves [samples], s.
        measured_power: measured power [samples], W.
        model_power: power that is predicted from the motion alone [samples], W.
    """

    dynamics: EcbotErrors
    power: EcbotErrors
    power_from_measured: EcbotErrors
    time: Array
    measured_power: Array
    model_power: Array


class Ecbot:
    """EcBot's models of an arm with n joints, fitted to bags in constant memory.

    Args:
        robot: type of the arm.
        bags: training recordings: folders of bags, or .mcap files.
        measured: quantity that the arm measures; None takes torques where the bags have
            them and the robot file has no torque constants, else currents.

    Attributes:
        measured: quantity that the dynamic model predicts.
        samples: number of training samples.
        dynamics: the dynamic model.
        coefficients: coefficients of the power model [4n + 1], see `free_power_columns`.

    Raises:
        UrEnergyError: unusable bags, or no samples with both motion and power.
    """

    def __init__(
        self,
        robot: RobotDescription,
        bags: Sequence[str | Path],
        measured: Measured | None = None,
    ) -> None:
        info = next(iterate_bag(bags[0])).info
        first = next(recorded_motions(bags[0], CUTOFF), None)
        if first is None:
            raise IdentificationError(
                f"{bags[0]}: no motion; record the arm while it moves"
            )
        setup = stated_for(info, payload_of_row(first.payload[0]), robot, None).setup
        point_masses = replace(robot, inertia=np.zeros_like(robot.inertia))
        self._dynamics = ArmDynamics(point_masses, setup)
        self.measured: Measured = measured or _measured_by(robot, first)
        self.samples = 0
        gram = np.zeros(())  # Gram matrix of the dynamic model, all joints
        power = np.zeros(())  # Gram matrix of the power model and the measured power
        for part, values in self._motions(bags):
            for rows in _blocks(part):
                columns = self._columns(part.cut(rows))
                with_measurement = np.concatenate(
                    [columns, values[rows, :, None]], axis=2
                )
                gram = gram + gram_matrices_by_joint(with_measurement)
            self.samples += len(part)
            own = free_power_columns(part.time, part.qd, values)
            with_power = np.column_stack([own, part.power])[np.isfinite(part.power)]
            power = power + with_power.T @ with_power
        if not power.any():
            raise IdentificationError(
                f"{bags[0]}: bus power was not recorded; record actual_robot_voltage and "
                "actual_robot_current"
            )
        self.dynamics = fit_dynamic_model(gram, self.samples, self.measured)
        self.coefficients = solve_normal_equations(power[:-1, :-1], power[:-1, -1])

    def test(self, bags: Sequence[str | Path]) -> EcbotTest:
        """Errors on recordings; negative power counts as zero, since the supply takes none back.

        Args:
            bags: folders of bags, or .mcap files.

        Raises:
            UrEnergyError: unusable bags.
        """
        model = self.dynamics.coefficients
        dynamics = EcbotErrors(len(model))
        power = EcbotErrors(1)
        from_measured = EcbotErrors(1)
        curves = np.zeros((0, 3))  # time, measured power, predicted power
        for part, values in self._motions(bags):
            estimate = np.empty_like(values)
            for rows in _blocks(part):
                columns = self._columns(part.cut(rows))
                estimate[rows] = np.einsum("sjc,jc->sj", columns, model)
            dynamics.accumulate(values, estimate)
            predicted = self._power(part, estimate)
            direct = self._power(part, values)
            known = np.isfinite(part.power)
            measured_power = part.power[known, None]
            power.accumulate(measured_power, predicted[known, None])
            from_measured.accumulate(measured_power, direct[known, None])
            own_curves = np.column_stack([part.time, part.power, predicted])
            curves = np.concatenate([curves, own_curves])
            curves = curves[curves[:, 0] > curves[-1, 0] - _SHOWN]
        time, measured_curve, model_curve = curves.T
        return EcbotTest(
            dynamics=dynamics,
            power=power,
            power_from_measured=from_measured,
            time=time - time[:1],
            measured_power=measured_curve,
            model_power=model_curve,
        )

    def _power(self, part: RecordedSamples, values: Array) -> Array:
        """Power at the supply [samples], W, by currents [A] or torques [N m] [samples, n]."""
        columns = free_power_columns(part.time, part.qd, values)
        return np.maximum(columns @ self.coefficients, 0.0)

    def _motions(
        self, bags: Sequence[str | Path]
    ) -> Iterator[tuple[RecordedSamples, Array]]:
        """Motions of recordings, with the measured currents or torques [samples, n]."""
        for bag in bags:
            for part in recorded_motions(bag, CUTOFF):
                yield part, part.torque if self.measured == "torque" else part.current

    def _columns(self, part: RecordedSamples) -> Array:
        """Columns of the regressions of all joints [samples, n, 4 + 6 n]."""
        samples, joints = part.q.shape
        regressor = self._dynamics.regressor(part.q, part.qd, part.qdd)
        by_link = regressor.reshape(samples, joints, joints, COUNT)
        tensors = by_link[..., TENSOR].reshape(samples, joints, -1)
        known = self._dynamics.inverse_dynamics(part.q, part.qd, part.qdd)
        others = np.stack([known, part.qd, np.sign(part.qd), part.qdd], axis=2)
        return np.concatenate([others, tensors], axis=2)


def _measured_by(robot: RobotDescription, motion: RecordedSamples) -> Measured:
    """The quantity that an arm measures.

    Args:
        robot: type of the arm.
        motion: samples of the arm.
    """
    has_sensors = np.isfinite(motion.torque).all()
    has_constants = np.isfinite(robot.torque_constant).all()
    return "torque" if has_sensors and not has_constants else "current"


def _blocks(part: RecordedSamples) -> Iterator[slice]:
    """Slices of the samples whose columns are computed at a time."""
    return slices_between(range(_ROWS, len(part), _ROWS), len(part))
