# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Models of two papers, fitted and measured exactly as these define it: every sample as recorded.

Clochiatti et al., Robotica 2024: the current model of eq. 17-18 and its errors (Tables V
to VII). Heredia, Schlette, Kjaergaard, EcBot: its dynamic model, its power model, and
their errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from ur_energy_model.energy.meter import bridged_steps, trapezoid
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.comparison import (
    RecordedSamples,
    compare_target_torque,
    recorded_motions,
)
from ur_energy_model.identification.dynamics import (
    RecordingDynamics,
    payload_of_row,
    payload_runs,
    stated_for,
)
from ur_energy_model.identification.error_statistics import ErrorStatistics
from ur_energy_model.identification.evaluation import read_for_comparison
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
from ur_energy_model.identification.recording import Recording
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import COUNT, TENSOR
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import Telemetry, slices_between
from ur_energy_model.telemetry.usable_samples import usable_samples
from ur_energy_model.typing import Array

# Clochiatti et al., eq. 17-18: for each joint, w the motor speed, "dir" where power flows
# to the load, I = (tau / N + k_v w + tanh(w_dir / eps) T_dir + tanh(w_rev / eps) T_rev) /
# k_t

SMOOTHING = 1e-3
"""eps of eq. 11, on the motor speed [rad/s]."""
_TARGETS = (
    "target_q", "target_qd", "target_qdd", "target_moment", "robot_mode", "payload", "payload_cog",
)  # fmt: skip


@dataclass(frozen=True)
class PublishedCurrentModel:
    """Table VI: constants of n joints, motor side."""

    coefficients: Array  # of `current_columns` [n, 4]
    torque_constant: Array  # k_t [n], N m/A
    viscous: Array  # k_v [n], N m s/rad
    coulomb_direct: Array  # T_dir [n], N m
    coulomb_reverse: Array  # T_rev [n], N m


@dataclass(frozen=True)
class PublishedSeries:
    """A recording in the model of eq. 17, every sample; arrays [samples, n] of n joints.

    Powers are motor side, electrical by eq. 23: W_elec = (tau_m / k_m)^2 + k_b / k_t w
    tau_m.
    """

    time: Array  # [samples], s
    qd: Array  # joint side, rad/s
    measured: Array  # current, A
    modelled: Array
    own: Array  # current by the friction law of the given model, A
    mechanical: Array  # w tau_m, W
    electrical: Array | None  # None without a catalogue motor

    @property
    def energies(self) -> tuple[Array, Array] | None:
        """Mechanical and electrical energy of each joint [n], J (eq. 25-26)."""
        if self.electrical is None:
            return None
        steps = bridged_steps(self.time)[1:]
        return trapezoid(steps, self.mechanical), trapezoid(steps, self.electrical)


def current_columns(load: Array, qd: Array, gear_ratio: Array) -> Array:
    """Columns of eq. 18 [samples, n, 4].

    `load` is the torque without friction [samples, n], N m, and `qd` the speed [samples,
    n], rad/s, both joint side.
    """
    speed = gear_ratio * qd
    sign = np.tanh(speed / SMOOTHING)
    flow = qd * load
    return np.stack(
        [load / gear_ratio, speed, sign * (flow > 0), sign * (flow < 0)], axis=2
    )


def fit_current_model(
    model: EnergyModel, bag: str | Path, *, reference: bool = True
) -> PublishedCurrentModel:
    """Least squares of eq. 18 over a recording, with the loads of a model.

    `reference`: from the reference accelerations, as in sec. 2.2 of the paper, where they
    were recorded; else from the derivative of the speed.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    recording, setups = read_for_comparison(model, bag)
    gram = np.zeros((model.dof, 5, 5))
    with closing(recording):
        for part, _, load in _loads(model, recording, setups, reference):
            columns = current_columns(load, part.qd, setups.robot.gear_ratio)
            gram += gram_matrices_by_joint(
                np.concatenate([columns, part.current[..., None]], 2)
            )
    solved = [solve_normal_equations(each[:-1, :-1], each[:-1, -1]) for each in gram]
    coefficients = np.array(solved)
    constant = 1.0 / coefficients[:, 0]
    return PublishedCurrentModel(coefficients, constant, *(coefficients.T[1:] * constant))


def published_series(
    model: EnergyModel,
    bag: str | Path,
    currents: PublishedCurrentModel,
    motors: tuple[Array, float] | None = None,
    *,
    reference: bool = True,
) -> PublishedSeries:
    """Currents and powers of a recording by the model of the paper.

    `motors`: motor constants k_m [n], N m/sqrt(W), and k_b / k_t. `reference`: see
    `fit_current_model`.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    recording, setups = read_for_comparison(model, bag)
    ratio = setups.robot.gear_ratio
    rows = []
    with closing(recording):
        for part, link, load in _loads(model, recording, setups, reference):
            columns = current_columns(load, part.qd, ratio)
            predicted = np.einsum("sjc,jc->sj", columns, currents.coefficients)
            torque = currents.torque_constant * predicted
            mechanical = ratio * part.qd * torque
            own = model.from_link_torque(link, part.qd, part.qdd, std=False).current
            rows.append(
                (part.time, part.qd, part.current, predicted, own, mechanical, torque)
            )
    joined = (np.concatenate(each) for each in zip(*rows, strict=True))
    time, qd, measured, modelled, own, mechanical, torque = joined
    electrical = None
    if motors is not None:
        electrical = np.square(torque / motors[0]) + motors[1] * mechanical
    return PublishedSeries(time, qd, measured, modelled, own, mechanical, electrical)


def torque_errors(model: EnergyModel, bag: str | Path) -> ErrorStatistics | None:
    """Errors of the model without friction against target_moment (Table V); None without targets.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    torque = ErrorStatistics(model.dof)
    recording, setups = read_for_comparison(model, bag)
    with closing(recording):
        targets = _targets(recording.path)
        for _, recorded, modelled in compare_target_torque(
            model, recording, setups, targets
        ):
            torque.accumulate(recorded, modelled)
    return torque if torque.count.any() else None


def plain_inertia(model: EnergyModel, bag: str | Path, robot: RobotDescription) -> Array:
    """Motor plus reducer inertia [n], kg m^2, motor side, as printed in eq. 9.

    `robot` has the link tensors to use; mounting and payload are those of the model.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    dynamics = ArmDynamics(robot, model.setup)
    ratio = robot.gear_ratio
    product, square = np.zeros((2, model.dof))
    for batch in _targets(Path(bag)):
        q, qd, qdd, torque = (batch[name] for name in _TARGETS[:4])
        motor = ratio * qdd
        product += (motor * (torque - dynamics.inverse_dynamics(q, qd, qdd)) / ratio).sum(
            axis=0
        )
        square += np.square(motor).sum(axis=0)
    return np.where(square > 0.0, product / np.where(square > 0.0, square, 1.0), np.nan)


def _loads(
    model: EnergyModel, recording: Recording, setups: RecordingDynamics, reference: bool
) -> Iterator[tuple[RecordedSamples, Array, Array]]:
    """Samples with one payload each, torque of the links, and with motors [samples, n], N m."""
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    for motion in recorded_motions(recording.path, recording.cutoff):
        for rows, controller_payload in payload_runs(motion.payload):
            part = motion.cut(rows)
            qdd = (
                part.target_qdd
                if reference and np.isfinite(part.target_qdd).all()
                else part.qdd
            )
            dynamics = ArmDynamics(setups.robot, setups.actual_setup(controller_payload))
            link = dynamics.inverse_dynamics(part.q, part.qd, qdd)
            yield part, link, link + inertia * qdd


def _targets(bag: Path) -> Iterator[Telemetry]:
    """Samples with finite targets."""
    for batch in iterate_bag(bag, _TARGETS):
        if all(name in batch for name in _TARGETS[:4]):
            yield batch.select(usable_samples(batch, *_TARGETS[:4]))


# EcBot's dynamic model: motor currents or joint torques by one regression per joint.
# EcBot, eq. 9-12 and 18-19. Masses and centres of mass of the links are known; their
# inertia tensors, the motor's inertia, viscous and Coulomb friction and the torque
# constant are not: torque = known torque + tensors and motor inertia + k_v qd + k_s
# sign(qd) current = torque / k_m

Measured = Literal["current", "torque"]
"""What an arm measures: motor currents [A], or joint torques [N m]."""
KNOWN = 0
VISCOUS = 1
COULOMB = 2
INERTIA = 3
"""Columns of a joint's regression; those of the link tensors follow."""

_ZERO = 1e-6  # RMS up to which a column counts as zero, in N m, rad/s or rad/s^2
# remainder up to which a column of length one depends on those before it
_DEPENDENT = 3e-5


@dataclass(frozen=True)
class DynamicModel:
    """Constants of n joints, joint side.

    Where gravity and the other links do not load a joint, such as the first one of an
    upright arm, its torque constant and what is multiplied with it are NaN: only friction
    over k_m is known.
    """

    # of the columns of each joint [n, columns]; for currents over k_m
    coefficients: Array
    torque_constant: Array | None  # k_m [n], N m/A; None for an arm with torque sensors
    viscous: Array  # k_v [n], N m s/rad
    coulomb: Array  # k_s [n], N m
    # About each joint's own axis, that no other column explains: of the motor, reducer
    # included, and of the link what cannot be separated from it [n], kg m^2
    inertia: Array


def fit_dynamic_model(gram: Array, samples: int, measured: Measured) -> DynamicModel:
    """Least squares of every joint; columns that depend on those before them get zero.

    `gram` are the Gram matrices of columns and measurement [n, columns + 1, columns + 1].
    Measured torques leave nothing to fit for the known torque.
    """
    coefficients = np.zeros((*gram.shape[:1], gram.shape[-1] - 1))
    first = 0 if measured == "current" else 1
    for joint, own in enumerate(gram):
        right = own[:-1, -1].copy()
        if first:
            coefficients[joint, KNOWN] = 1.0
            right -= own[:-1, KNOWN]
        # Of a matrix with the same products, and so the same dependent columns.
        values, vectors = np.linalg.eigh(own[first:-1, first:-1])
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        root[:, np.linalg.norm(root, axis=0) <= _ZERO * np.sqrt(samples)] = 0.0
        free = first + first_independent_columns(root, _DEPENDENT)
        coefficients[joint, free] = solve_normal_equations(
            own[np.ix_(free, free)], right[free]
        )
    known = coefficients[:, KNOWN]
    constant = np.where(known != 0.0, 1.0 / np.where(known != 0.0, known, 1.0), np.nan)
    torques = (coefficients * constant[:, None]).T[[VISCOUS, COULOMB, INERTIA]]
    return DynamicModel(coefficients, None if first else constant, *torques)


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
    """Columns of EcBot's power model [samples, 4n + 1], of consecutive samples.

    Eq. 16 (currents, A), 17 (torques, N m) and 20-21; the coefficients are P_c, then R,
    k_t, k_MD and L of all joints. `measured` are currents or torques [samples, n].
    """
    n = qd.shape[1]
    none = np.zeros(len(time))
    rows = PowerRows(time, qd, measured, none, none)
    return power_columns(rows, np.ones(n), np.zeros(n))[:, PowerLayout(n).without_delays]


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
    """EcBot's models of an arm, fitted to bags in constant memory.

    `measured` is what the arm measures; None takes torques where the bags have them and
    the robot file has no torque constants, else currents. Of `samples` training samples,
    `dynamics` is the dynamic model and `coefficients` are those of the power model [4n +
    1], see `free_power_columns`.

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
        # links without tensors
        points = replace(robot, inertia=np.zeros_like(robot.inertia))
        self._dynamics = ArmDynamics(points, setup)
        if measured is None:
            sensors = np.isfinite(first.torque).all()
            stated = np.isfinite(robot.torque_constant).all()
            measured = "torque" if sensors and not stated else "current"
        self.measured: Measured = measured
        self.samples = 0
        gram = np.zeros(())
        power = np.zeros(())
        for part, values in self._motions(bags):
            for columns, rows in self._columns(part):
                both = np.concatenate([columns, values[rows, :, None]], axis=2)
                gram = gram + gram_matrices_by_joint(both)
            self.samples += len(part)
            own = free_power_columns(part.time, part.qd, values)
            whole = np.column_stack([own, part.power])[np.isfinite(part.power)]
            power = power + whole.T @ whole
        if not power.any():
            raise IdentificationError(
                f"{bags[0]}: bus power was not recorded; record actual_robot_voltage and "
                "actual_robot_current"
            )
        self.dynamics = fit_dynamic_model(gram, self.samples, measured)
        self.coefficients = solve_normal_equations(power[:-1, :-1], power[:-1, -1])

    def test(self, bags: Sequence[str | Path]) -> EcbotTest:
        """Errors on these bags; the supply takes no power back."""
        model = self.dynamics.coefficients
        curves = np.zeros((0, 3))
        dynamics, power, from_measured = (EcbotErrors(k) for k in (len(model), 1, 1))
        for part, values in self._motions(bags):
            known = np.isfinite(part.power)
            estimate = np.empty_like(values)
            for columns, rows in self._columns(part):
                estimate[rows] = np.einsum("sjc,jc->sj", columns, model)
            dynamics.accumulate(values, estimate)
            motion, direct = (
                np.maximum(
                    free_power_columns(part.time, part.qd, each) @ self.coefficients, 0.0
                )
                for each in (estimate, values)
            )
            for errors, found in ((power, motion), (from_measured, direct)):
                errors.accumulate(part.power[known, None], found[known, None])
            curves = np.concatenate(
                [curves, np.column_stack([part.time, part.power, motion])]
            )
            curves = curves[curves[:, 0] > curves[-1, 0] - _SHOWN]
        time, measured_power, model_power = curves.T
        start = time[:1]
        return EcbotTest(
            dynamics, power, from_measured, time - start, measured_power, model_power
        )

    def _motions(
        self, bags: Sequence[str | Path]
    ) -> Iterator[tuple[RecordedSamples, Array]]:
        """Motions, and the currents or torques measured."""
        for bag in bags:
            for part in recorded_motions(bag, CUTOFF):
                yield part, part.torque if self.measured == "torque" else part.current

    def _columns(self, part: RecordedSamples) -> Iterator[tuple[Array, slice]]:
        """Columns of the regressions [samples, n, 4 + 6 n], and their rows."""
        for rows in slices_between(range(_ROWS, len(part), _ROWS), len(part)):
            q = part.q[rows]
            qd = part.qd[rows]
            qdd = part.qdd[rows]
            samples, n = q.shape
            rigid = self._dynamics.regressor(q, qd, qdd).reshape(samples, n, n, COUNT)
            tensors = rigid[..., TENSOR].reshape(samples, n, -1)
            known = self._dynamics.inverse_dynamics(q, qd, qdd)
            others = np.stack([known, qd, np.sign(qd), qdd], axis=2)
            yield np.concatenate([others, tensors], axis=2), rows
