# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Torques of a loaded arm as columns of a regression, and its solution for payload and drive gains.

The torque of each drive less friction equals the torque of links, rotors and payload, up to
model errors that have columns of their own. `payload_fit` uses this chapter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ur_energy_model.identification.filtered_motion import (
    MOVING_SPEED,
    FilteredMotion,
    ParallelFilter,
)
from ur_energy_model.identification.least_squares import masked_gram_matrices
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import (
    LINK_PARAMETERS,
    EnergyModel,
    PayloadCalibration,
)
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.model.friction_terms import SMOOTHING
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import COUNT, MASS, TENSOR, Setup, entries_of
from ur_energy_model.typing import Array, Mask

_TYPICAL_SPEED = 0.5
"""Joint speed whose friction is the scale of the error terms of friction [rad/s]."""
_LEAST_FRICTION = 0.1  # smallest scale of the error terms of friction [N m]
_FADES = (0.1, 0.5)  # decay speeds of low-speed friction [rad/s]
_INERTIA_ERROR = 0.2
"""Relative error of the current for the acceleration of the rotor, as friction builds up anew after
each reversal. The currents of a UR3e, two UR5e and a UR10e differ by 0.18 RMS from the inertia in
target_moment. Without this error term, torque constants would follow the difference, and the
payload would compensate the wrong constants."""
_LOAD_ERROR = 0.01  # relative error of friction in proportion to the transmitted torque
_DELAY = 0.002  # delay of currents behind the motion [s]
_COMPLIANCE = (2 * np.pi * 20.0) ** -2
"""Rotor inertia over gear stiffness at a resonance of 20 Hz [s^2]."""
_ASYMMETRY = 0.016
"""Half the relative difference of friction between the directions, RMS over the joints
and speeds of a UR5e's factory calibration."""
_REPEATABILITY = 0.01
"""Relative change of friction between recordings at the same temperature, assumed."""
_TEMPERATURE_SLOPE = 0.035
"""Relative change of friction with temperature [1/K] (Raviola et al. 2021: viscous
friction, by up to 35 % in ten kelvin)."""
_UNKNOWN_TEMPERATURE = 0.2  # relative change of friction if no temperature was recorded
_DRIFT = 0.35  # relative change of friction within a recording: the change in ten kelvin
_FIXED_ERRORS = 9
"""Number of error terms that do not depend on the payload, without the constant."""
_LOADED_ERRORS = 3
"""Number of error terms that depend on the payload."""
_JOINT_SIZE = 0.05  # length of a link beyond its joints [m]
_TENSOR_ERROR = 0.05  # relative error of link tensors from the robot file
_LEAST_MOMENT = 1e-6
"""Smallest principal moment of a tensor that counts as known [kg m^2]."""
_SHORTEST = 3  # number of samples that two derivatives need
_REMEMBERED = 16_000  # number of samples whose rows are kept; a row has about 4 kB


class PayloadColumns:
    """Columns of the joint torques of an arm with n joints, and the spread of their coefficients.

    Each joint has one row per sample, N m joint side: [bodies 10 n, bare arm, error terms
    12, drive, 1]. These are the torques per inertial parameter of each moving body (the
    payload is part of the last body); the torque of the bare links and rotors; the error
    terms of the model; and the torque of the drive less friction, which equals the sum of
    the others. The closing 1 is the constant error term and counts the samples.

    Attributes:
        dof: number of joints n.
        bare: place of the torque of the bare arm; inertial parameters are before it.
        loaded: place of the first column that depends on the payload; those up to
            `drive` do.
        drive: place of the torque of the drive less friction.
        one: place of the closing 1.
        width: number of columns.
        errors: places of the error terms.
        torque_constant: torque constant of the model, motor side [n], N m/A.
        typical_friction: friction at half a radian per second, joint side [n], N m.
        masses: masses of the moving bodies [n], kg.
        tensor_errors: mean of the diagonal of the bodies' tensors beyond the robot file
            [n], kg m^2, and deviation of their entries [n], kg m^2.

    Args:
        model: model with torque constants and friction.
        robot: the arm as its robot file describes it.
        gravity: gravity in the base frame [3], m/s^2.
    """

    def __init__(
        self, model: EnergyModel, robot: RobotDescription, gravity: Array
    ) -> None:
        n = robot.dof
        self.dof = n
        self.bare = COUNT * n
        self.loaded = self.bare + 1 + _FIXED_ERRORS
        self.drive = self.loaded + _LOADED_ERRORS
        self.one = self.drive + 1
        self.width = self.drive + 2
        self.errors = [*range(self.bare + 1, self.drive), self.one]
        self._dynamics = ArmDynamics(robot, Setup(gravity=gravity))
        self._ratio = np.array([joint.gear_ratio for joint in model.joints])
        self.torque_constant = np.array([joint.torque_constant for joint in model.joints])
        self._inertia = np.array([joint.reflected_inertia for joint in model.joints])
        self._friction = FrictionBank(
            [joint.friction for joint in model.joints], self._ratio
        )
        speed = np.full((1, n), _TYPICAL_SPEED)
        friction = self._ratio * self._friction.torque(speed, np.zeros((1, n)))[0]
        self.typical_friction = np.maximum(np.abs(friction), _LEAST_FRICTION)
        # Mean temperature of the model's recordings [n], degC; NaN where not recorded.
        self._usual = np.full(n, np.nan)
        for j, joint in enumerate(model.joints):
            if joint.friction.temperature_range is not None:
                self._usual[j] = np.mean(joint.friction.temperature_range)
        bodies = list(self._dynamics.bare.inertias)[1:]
        self.masses = np.array([body.mass for body in bodies])
        smallest = np.array([np.linalg.eigvalsh(body.inertia)[0] for body in bodies])
        self.tensor_errors = self._tensor_errors(known=smallest > _LEAST_MOMENT)

    def _tensor_errors(self, known: Mask) -> tuple[Array, Array]:
        """Mean of the diagonal and deviation of all entries beyond the robot file's [n], kg m^2.

        Where the robot file has no tensor, a link may be any body between its two joints:
        a diagonal entry is about half the entry of a rod of its mass, with an error of
        the same size.

        Args:
            known: links whose tensors the robot file has [n].
        """
        flange = self._dynamics.flange_pose(np.zeros((1, self.dof)))[:, :3, 3]
        joints = self._dynamics.joint_positions(np.zeros(self.dof))
        between = np.diff(np.concatenate([joints, flange]), axis=0)
        rod = self.masses / 12
        rod *= (np.linalg.norm(between, axis=1) + _JOINT_SIZE) ** 2
        spread = np.where(known, _TENSOR_ERROR, 0.5) * rod
        return np.where(known, 0.0, 0.5 * rod), spread

    def fixed(self, motion: FilteredMotion, start: float) -> tuple[Array, Array]:
        """Columns that do not depend on the payload.

        Args:
            motion: motion without gaps.
            start: time of the recording's first motion [s].

        Returns:
            Columns before `loaded` [samples, n, loaded], and the links' torque [samples,
            n], N m, joint side.
        """
        qd = motion.qd
        size = self.typical_friction
        bodies = self._dynamics.regressor(motion.q, qd, motion.qdd)
        links = bodies @ self._dynamics.parameters()
        rotors = self._inertia * motion.qdd
        speed = np.abs(qd)
        coulomb = size * np.tanh(qd / SMOOTHING)
        viscous = size * qd
        elapsed = (motion.time - start)[:, None]
        columns = (
            links + rotors,
            rotors,
            coulomb,
            viscous,
            coulomb * np.sqrt(speed),
            *(coulomb * np.exp(-speed / fade) for fade in _FADES),
            coulomb * elapsed,
            viscous * elapsed,
            size * speed,
        )
        return np.concatenate([bodies, np.stack(columns, axis=2)], axis=2), links

    def with_load(self, motion: FilteredMotion, transmitted: Array) -> Array:
        """Columns from `loaded` to `one` [samples, n, 4].

        Args:
            motion: motion without gaps.
            transmitted: torque that the gears transmit [samples, n], N m, joint side.
        """
        warmth = motion.known_temperature
        friction = self._ratio * self._friction.torque(motion.qd, transmitted, warmth)
        slope = np.gradient(transmitted, motion.time, axis=0)
        columns = (
            np.tanh(motion.qd / SMOOTHING) * np.abs(transmitted),
            slope,
            np.gradient(slope, motion.time, axis=0),
            self._ratio * self.torque_constant * motion.current - friction,
        )
        return np.stack(columns, axis=2)

    def error_std(self, friction_change: Array, duration: float) -> Array:
        """Standard deviations of the error terms [n, errors], in the order of the columns.

        Args:
            friction_change: relative deviation of friction from the model's [n].
            duration: time of the recording, in which friction drifts [s].
        """
        drift = _DRIFT / max(duration, 1.0)
        each = (
            _INERTIA_ERROR,  # rotors
            friction_change,  # Coulomb friction
            friction_change,  # viscous friction
            friction_change,  # friction with the root of the speed
            friction_change,  # friction that decays at low speed
            friction_change,  # friction that decays at higher speed
            drift,  # Coulomb friction
            drift,  # viscous friction
            _ASYMMETRY,
            _LOAD_ERROR,
            _DELAY,
            _COMPLIANCE,
            _ASYMMETRY * self.typical_friction,  # constant
        )
        return np.column_stack([np.broadcast_to(std, self.dof) for std in each])

    def friction_change(self, temperature: Array) -> Array:
        """Relative deviation of friction from the model's [n], at temperatures [n], degC or NaN."""
        change = np.hypot(
            _REPEATABILITY, _TEMPERATURE_SLOPE * (temperature - self._usual)
        )
        return np.where(np.isnan(change), _UNKNOWN_TEMPERATURE, change)


class LoadedMotion:
    """One motion whose columns that do not depend on the payload are computed only once.

    Args:
        columns: columns of the arm, n joints.
        motion: motion without gaps.
        narrow: filter of the recording.
        start: time of the recording's first motion [s].

    Attributes:
        motion: motion as given.
        start: start as given.
        period: time between the samples of the Gram matrices [s].
    """

    def __init__(
        self,
        columns: PayloadColumns,
        motion: FilteredMotion,
        narrow: ParallelFilter,
        start: float,
    ) -> None:
        self._columns = columns
        self.motion = motion
        self._narrow = narrow
        self.start = start
        self._inside = narrow.inside(motion) if len(motion) >= _SHORTEST else slice(0, 0)
        self.period = 0.0
        if len(motion) > 1:
            self.period = (self._inside.step or 1) * motion.period
        if not len(motion.time[self._inside]):
            return
        fixed, self._links = columns.fixed(motion, start)
        self._flange = fixed[:, :, columns.bare - COUNT : columns.bare].copy()
        self._used = narrow.moving(motion, MOVING_SPEED)[self._inside]
        self._rows = np.ones((len(self._used), columns.dof, columns.width))
        flat = fixed.reshape(len(fixed), -1)
        out = np.zeros((len(self._used), flat.shape[1]))
        used = flat.any(axis=0)  # inner bodies do not load the joints beyond them
        out[:, used] = narrow(motion, flat[:, used])[self._inside]
        self._rows[:, :, : columns.loaded] = out.reshape(len(out), *fixed.shape[1:])

    def gram_matrices(self, payload: Array) -> Iterator[tuple[Array, float]]:
        """Gram matrices [n, width, width] of the moving joints and durations [s], by blocks.

        Args:
            payload: inertial parameters at the flange [10], for load-dependent friction.
        """
        time = self.motion.time[self._inside]
        columns = self._columns
        if len(time):
            loaded = columns.with_load(self.motion, self._links + self._flange @ payload)
            filtered = self._narrow(self.motion, loaded)[self._inside]
            self._rows[:, :, columns.loaded : columns.one] = filtered
            yield from masked_gram_matrices(time, self._rows, self._used)


def loaded_motions(
    columns: PayloadColumns,
    motions: Iterable[FilteredMotion],
    narrow: ParallelFilter,
    kept: list[LoadedMotion],
) -> Iterator[LoadedMotion]:
    """Motions of one recording with their columns, in order.

    Args:
        columns: columns of the arm, n joints.
        motions: motions of the recording.
        narrow: filter of the recording.
        kept: the first motions of the previous iteration, to which further ones are
            appended while there is room.
    """
    start = 0.0
    known = len(kept)
    room = _REMEMBERED - sum(len(each.motion) for each in kept)
    for index, motion in enumerate(motions):
        if index == 0:
            start = float(motion.time[0])
        if index < known:
            yield kept[index]
            continue
        loaded = LoadedMotion(columns, motion, narrow, start)
        room -= len(motion)
        if room >= 0:
            kept.append(loaded)
        yield loaded


# Payload, drive gains and model error from the Gram matrices of payload columns:
#
#     drive = link_gain * (bare + links + payload_gain * payload) + errors @ coefficients,
#
# bilinear in gains and parameters: Gauss-Newton with a normal prior. Its posterior is the prior of
# the next recording of the same arm (recursive least squares; Jazwinski, Stochastic
# Processes and Filtering Theory, 1970, ch. 7). The noise is on the drive side, so the
# gain belongs on the other side: a factor on the drive would be biased low.

_ROUNDS = 8  # rounds of Gauss-Newton
_PAYLOAD_STD = np.repeat([100.0, 3.0, 0.1], [1, 3, 6])
"""Prior of the payload's mass [kg], first moments [kg m] and tensor [kg m^2]."""
_FIXED = 1e-9  # standard deviation of unknowns that are not fitted
_SYSTEMATIC = 2.0  # factor on the noise for model errors that repeat from block to block
_ENTRIES = TENSOR.stop - TENSOR.start  # entries of a tensor


def solve_payload(
    columns: PayloadColumns,
    blocks: Array,
    joints: list[int],
    prior: PayloadCalibration,
    error_std: Array,
    known_mass: float | None = None,
) -> tuple[Array, Array, Array]:
    """Payload of one recording by Gauss-Newton; the noise of each joint is estimated every round.

    Args:
        columns: layout of a row.
        blocks: Gram matrices of the rows, per block of time [blocks, n, width, width].
        joints: joints that moved.
        prior: prior of links and drives.
        error_std: standard deviations of the error terms [n, errors].
        known_mass: mass of the payload [kg], 0 for an empty flange; None where it is not
            known.

    Returns:
        Inertial parameters and calibration [10 + 6 n]; their covariance; residual of each
        joint without the error terms [n], N m, NaN for joints that did not move.
    """
    problem = _PayloadProblem(columns, blocks, prior, error_std, known_mass)
    n = columns.dof
    values = problem.mean.copy()
    noise = np.ones(n)
    information = problem.precision
    for _ in range(_ROUNDS):
        information = problem.precision.copy()
        right = problem.precision @ (problem.mean - values)
        for j in joints:
            slopes, residual = problem.linearised(values, j)
            weighted = slopes @ problem.totals[j] / noise[j] ** 2
            information += weighted @ slopes.T
            right += weighted @ residual
        values = values + np.linalg.solve(information, right)
        noise[joints] = [problem.noise(values, j) for j in joints]
    covariance = np.asarray(np.linalg.inv(information), dtype=float)
    without_errors = values.copy()
    without_errors[problem.errors] = 0.0
    rms = np.full(n, np.nan)
    for j in joints:
        _, residual = problem.linearised(without_errors, j)
        square = max(float(residual @ problem.totals[j] @ residual), 0.0)
        rms[j] = np.sqrt(square / problem.counts[j])
    shown = np.concatenate([problem.payload, problem.calibration])
    return values[shown], covariance[np.ix_(shown, shown)], rms


class _PayloadProblem:
    """The unknowns of a fit of the payload, with their prior, and its residuals.

    Unknowns are the errors of the links' masses and first moments [4 n], gains against
    the links and against the payload [n], [n], the payload [10], deviations of the links'
    tensors [6 n], and coefficients of the error terms [n, errors].

    Args:
        columns: layout of a row.
        blocks: Gram matrices of the rows, per block of time [blocks, n, width, width].
        prior: prior of links and drives.
        error_std: standard deviations of the error terms [n, errors].
        known_mass: mass of the payload [kg]; None where it is not known.

    Attributes:
        payload: indices of the payload among the unknowns [10].
        calibration: indices of links and gains [6 n].
        errors: indices of the error terms [n, errors].
        totals: sums of the Gram matrices over the blocks [n, width, width].
        counts: number of samples of each joint [n].
        mean: mean of the prior [unknowns].
        precision: precision of the prior [unknowns, unknowns].
    """

    def __init__(
        self,
        columns: PayloadColumns,
        blocks: Array,
        prior: PayloadCalibration,
        error_std: Array,
        known_mass: float | None,
    ) -> None:
        n = columns.dof
        bare = columns.bare
        self._columns = columns
        self._blocks = blocks
        self.totals = blocks.sum(axis=0)
        self.counts = self.totals[:, columns.one, columns.one]
        sizes = (LINK_PARAMETERS * n, n, n, COUNT, _ENTRIES * n, error_std.size)
        places = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        self._links, self._link_gain, self._payload_gain = places[:3]
        self.payload, self._tensors, errors = places[3:]
        self.errors = errors.reshape(n, -1)
        self.calibration = np.concatenate(places[:3])
        # Columns of a row by their inertial parameters.
        first = COUNT * np.arange(n)[:, None]
        self._static_columns = (first + np.arange(LINK_PARAMETERS)).ravel()
        self._tensor_columns = (first + np.arange(COUNT)[TENSOR]).ravel()
        self._payload_columns = slice(bare - COUNT, bare)
        # Torque constants were identified with the published links, so a joint's gain
        # includes the part of the links' errors that is proportional to the weight of the
        # bare arm. It does not include what is on the flange.
        weight = np.maximum(self.totals[:, bare, bare], 1e-12)
        self._shares = self.totals[:, bare, self._static_columns] / weight[:, None]
        self._shares[:, -LINK_PARAMETERS:] = 0.0
        self.mean = np.zeros(sum(sizes))
        self.mean[self.calibration] = prior.vector
        std = np.ones(sum(sizes))
        middle, spread = columns.tensor_errors
        # The tensor of the payload is a separate unknown, and it includes the error of the
        # last link's tensor.
        middle = np.append(middle[:-1], 0.0)
        spread = np.append(spread[:-1], _FIXED)
        self.mean[self._tensors] = np.outer(middle, entries_of(np.eye(3))).ravel()
        std[self._tensors] = np.repeat(spread, _ENTRIES)
        std[self.payload] = _PAYLOAD_STD if known_mass != 0.0 else _FIXED
        if known_mass is not None:
            self.mean[self.payload[MASS]] = known_mass
            std[self.payload[MASS]] = _FIXED
        std[self.errors] = error_std
        self.precision = np.diag(np.maximum(std, _FIXED) ** -2.0)
        of_calibration = np.ix_(self.calibration, self.calibration)
        self.precision[of_calibration] = np.linalg.inv(prior.covariance)

    def linearised(self, values: Array, j: int) -> tuple[Array, Array]:
        """Residual of one joint and its change with the unknowns, as combinations of columns.

        Args:
            values: values of the unknowns.
            j: index of the joint, from 0.

        Returns:
            Jacobian [unknowns, width] and residual [width].
        """
        columns = self._columns
        links = self._links
        tensors = self._tensors
        link_gain = self._link_gain[j]
        payload_gain = self._payload_gain[j]
        gain = values[link_gain]
        scale = values[payload_gain]
        share = self._shares[j]
        # Torques are combinations of columns: each is given by its coefficients [width].
        load = np.zeros(columns.width)
        load[self._payload_columns] = values[self.payload]
        arm = np.zeros(columns.width)
        arm[self._static_columns] = values[links]
        arm[self._tensor_columns] = values[tensors]
        arm[columns.bare] = 1.0 - share @ values[links]
        slopes = np.zeros((len(values), columns.width))
        slopes[links, self._static_columns] = gain
        slopes[links, columns.bare] = -gain * share
        slopes[tensors, self._tensor_columns] = gain
        slopes[self.payload, self._payload_columns] = gain * scale * np.eye(COUNT)
        slopes[link_gain] = arm + scale * load
        slopes[payload_gain] = gain * load
        slopes[self.errors[j], columns.errors] = 1.0
        residual = -gain * slopes[link_gain]
        residual[columns.errors] -= values[self.errors[j]]
        residual[columns.drive] += 1.0
        return slopes, residual

    def noise(self, values: Array, j: int) -> float:
        """Standard deviation of white noise with the same information as the residual, N m.

        Residuals are correlated in time; the scatter between blocks of time gives the
        number of samples that count as one.

        Args:
            values: values of the unknowns.
            j: index of the joint, from 0.
        """
        slopes, residual = self.linearised(values, j)
        total = self.totals[j]
        variance = max(float(residual @ total @ residual), 1e-12) / self.counts[j]
        scores = (self._blocks[:, j] @ residual) @ slopes.T
        few = len(scores) / max(len(scores) - 1, 1)
        scatter = few * ((scores - scores.mean(axis=0)) ** 2).sum(axis=0)
        white = (slopes @ total * slopes).sum(axis=1)
        seen = white > 1e-9 * white.max()
        scattered = np.mean(scatter[seen] / white[seen])
        return _SYSTEMATIC * float(np.sqrt(max(variance, scattered)))
