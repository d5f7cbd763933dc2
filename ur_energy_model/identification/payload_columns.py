# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Torques of a loaded arm as columns, and their solution for payload and drive gains."""

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
from ur_energy_model.model.friction import SMOOTHING, FrictionBank
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import COUNT, MASS, TENSOR, Setup, entries_of
from ur_energy_model.typing import Array

# joint speed at which friction gives the scale of its changes [rad/s]
_TYPICAL_SPEED = 0.5
_LEAST_FRICTION = 0.1  # smallest such scale [N m]
_FADES = (0.1, 0.5)  # decay speeds of low-speed friction [rad/s]
_INERTIA_ERROR = 0.2
"""Relative error of the current that acceleration needs: friction that builds up anew
after each reversal reduces it. The currents of a UR3e, two UR5e and a UR10e differ by
0.18 RMS from the inertia in target_moment; free torque constants would follow it, and a
payload make up for that."""
_LOAD_ERROR = 0.01  # relative, of friction by the transmitted torque
_DELAY = 0.002  # of currents behind the motion [s]
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
# relative change of friction where no temperatures were recorded
_UNKNOWN_TEMPERATURE = 0.2
_DRIFT = 0.35  # relative change of friction within a recording: that in ten kelvin
_FIXED_ERRORS = 9
_LOADED_ERRORS = 3
"""Error terms, without the constant: those that do not depend on the payload, and the
others."""
_JOINT_SIZE = 0.05  # length of a link beyond its joints [m]
_TENSOR_ERROR = 0.05  # relative error of link tensors from the robot file
# smallest principal moment of a tensor that counts as known [kg m^2]
_LEAST_MOMENT = 1e-6
_SHORTEST = 3  # samples needed for two derivatives
_REMEMBERED = 16_000  # samples whose rows are kept; a row of all joints has about 4 kB


class PayloadColumns:
    """Columns of the joint torques of an arm with n joints, and the spread of their coefficients.

    A row is [bodies 10 n, bare arm, error terms 12, drive, 1], N m joint side: torques
    per inertial parameter of each moving body (the payload is part of the last one);
    torque of the bare links and rotors; error terms of the model; torque of the drive
    less friction, which the others add up to. The closing 1 is the constant error term
    and counts the samples. Places in a row are `bare`, `loaded`, `drive` and `one`;
    columns from `loaded` to `one` depend on the payload, and `errors` are those of the
    error terms.

    Args:
        model: with torque constants and friction.
        robot: the arm as its robot file describes it.
        gravity: in the base frame [3], m/s^2.
    """

    def __init__(
        self, model: EnergyModel, robot: RobotDescription, gravity: Array
    ) -> None:
        self.dof = n = robot.dof
        self.bare = COUNT * n
        self.loaded = self.bare + 1 + _FIXED_ERRORS
        self.drive = self.loaded + _LOADED_ERRORS
        self.one, self.width = self.drive + 1, self.drive + 2
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
        self.typical_friction = np.maximum(np.abs(friction), _LEAST_FRICTION)  # [n], N m
        ranges = [joint.friction.temperature_range for joint in model.joints]
        self._usual = np.array(
            [np.nan if span is None else np.mean(span) for span in ranges]
        )
        # Where the robot file has no tensor, a link may be any body between its two
        # joints: a diagonal entry is about half that of a rod of its mass, with an error
        # of the same size.
        bodies = list(self._dynamics.bare.inertias)[1:]
        self.masses = np.array([body.mass for body in bodies])  # of moving bodies [n], kg
        flange = self._dynamics.flange_pose(np.zeros((1, n)))[:, :3, 3]
        places = np.concatenate([self._dynamics.joint_positions(np.zeros(n)), flange])
        rod = self.masses / 12
        rod *= (np.linalg.norm(np.diff(places, axis=0), axis=1) + _JOINT_SIZE) ** 2
        known = np.array(
            [np.linalg.eigvalsh(b.inertia)[0] > _LEAST_MOMENT for b in bodies]
        )
        # Mean of the diagonal and deviation of all entries beyond the robot file's [n],
        # kg m^2.
        spread = np.where(known, _TENSOR_ERROR, 0.5) * rod
        self.tensor_errors = np.where(known, 0.0, 0.5 * rod), spread

    def fixed(self, motion: FilteredMotion, start: float) -> tuple[Array, Array]:
        """Columns before `loaded` [samples, n, loaded], and the links' torque [samples, n].

        `start` is the time of the recording's first motion [s].
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
        """Columns from `loaded` to `one` [samples, n, 4] with the gears' torque [samples, n]."""
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
        """Standard deviations of the error terms [n, errors].

        `friction_change` is the relative deviation of friction from the model's [n],
        `duration` that of the recording, in which friction drifts [s].
        """
        asymmetry = _ASYMMETRY * self.typical_friction
        each = (
            *(_INERTIA_ERROR, *[friction_change] * 5, *[_DRIFT / max(duration, 1.0)] * 2),
            *(_ASYMMETRY, _LOAD_ERROR, _DELAY, _COMPLIANCE, asymmetry),
        )
        return np.column_stack([np.broadcast_to(std, self.dof) for std in each])

    def friction_change(self, temperature: Array) -> Array:
        """Relative deviation of friction from the model's [n], at temperatures [n], degC or NaN."""
        change = np.hypot(
            _REPEATABILITY, _TEMPERATURE_SLOPE * (temperature - self._usual)
        )
        return np.where(np.isnan(change), _UNKNOWN_TEMPERATURE, change)


class LoadedMotion:
    """One motion with the columns that do not depend on the payload, computed and filtered once."""

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
        # Between the samples of the Gram matrices [s].
        self.period = (self._inside.step or 1) * motion.period if len(motion) > 1 else 0.0
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

        `payload` has the ten parameters at the flange, for load-dependent friction.
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
    """Motions of one recording, in order; `kept` keeps the first ones for the next iteration."""
    start = 0.0
    known = len(kept)
    room = _REMEMBERED - sum(len(each.motion) for each in kept)
    for index, motion in enumerate(motions):
        start = float(motion.time[0]) if index == 0 else start
        loaded = (
            kept[index] if index < known else LoadedMotion(columns, motion, narrow, start)
        )
        if index >= known:
            room -= len(motion)
            kept += [loaded] if room >= 0 else []
        yield loaded


# Payload, drive gains and model error from the Gram matrices of payload columns. drive =
# link_gain * (bare + links + payload_gain * payload) + errors @ coefficients, bilinear in
# gains and parameters: Gauss-Newton with a normal prior. Its posterior is the prior of
# the next recording of the same arm (recursive least squares; Jazwinski, Stochastic
# Processes and Filtering Theory, 1970, ch. 7). The noise is on the drive side, so the
# gain belongs on the other side: a factor on the drive would be biased low.

_ROUNDS = 8
_PAYLOAD_STD = np.repeat([100.0, 3.0, 0.1], [1, 3, 6])
"""Prior of the payload's mass [kg], first moments [kg m] and tensor [kg m^2]."""
_FIXED = 1e-9
_SYSTEMATIC = 2.0  # factor on the noise for model errors that repeat from block to block


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
        columns: what the entries of a row are.
        blocks: Gram matrices of the rows, per block of time [blocks, n, width, width].
        joints: those that moved.
        prior: of links and drives.
        error_std: standard deviations of the error terms [n, errors].
        known_mass: of the payload [kg], 0 for an empty flange; None where it is not
            known.
    """
    n = columns.dof
    bare = columns.bare
    entries = TENSOR.stop - TENSOR.start
    totals = blocks.sum(axis=0)
    counts = totals[:, columns.one, columns.one]
    sizes = (LINK_PARAMETERS * n, n, n, COUNT, entries * n, error_std.size)
    at = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    links, link_gain, payload_gain, payload, tensors = at[:5]
    errors = at[5].reshape(n, -1)
    calibration = np.concatenate(at[:3])
    body = COUNT * np.arange(n)[:, None]
    static_columns = (body + np.arange(LINK_PARAMETERS)).ravel()
    tensor_columns = (body + np.arange(COUNT)[TENSOR]).ravel()
    payload_columns = slice(bare - COUNT, bare)
    # Torque constants were identified with the published links, so a joint's gain
    # includes the part of the links' errors that is proportional to the weight of the
    # bare arm. It does not include what is on the flange.
    shares = (
        totals[:, bare, static_columns]
        / np.maximum(totals[:, bare, bare], 1e-12)[:, None]
    )
    shares[:, -LINK_PARAMETERS:] = 0.0

    mean = np.zeros(sum(sizes))
    std = np.ones(sum(sizes))
    mean[calibration] = prior.vector
    middle, spread = columns.tensor_errors
    middle = np.append(middle[:-1], 0.0)
    spread = np.append(spread[:-1], _FIXED)
    mean[tensors] = np.outer(middle, entries_of(np.eye(3))).ravel()
    std[tensors] = np.repeat(spread, entries)  # the last link has the payload's tensor
    std[payload] = _PAYLOAD_STD if known_mass != 0.0 else _FIXED
    if known_mass is not None:
        mean[payload[MASS]] = known_mass
        std[payload[MASS]] = _FIXED
    std[errors] = error_std
    precision = np.diag(np.maximum(std, _FIXED) ** -2.0)
    precision[np.ix_(calibration, calibration)] = np.linalg.inv(prior.covariance)

    def linearised(values: Array, j: int) -> tuple[Array, Array]:
        """Jacobian [unknowns, width] and residual [width] as combinations of a row's columns."""
        gain = values[link_gain[j]]
        scale = values[payload_gain[j]]
        share = shares[j]
        load = np.zeros(columns.width)
        arm = np.zeros(columns.width)
        load[payload_columns] = values[payload]
        arm[static_columns] = values[links]
        arm[tensor_columns] = values[tensors]
        arm[bare] = 1.0 - share @ values[links]
        slopes = np.zeros((len(values), columns.width))
        slopes[links, static_columns] = gain
        slopes[links, bare] = -gain * share
        slopes[tensors, tensor_columns] = gain
        slopes[payload, payload_columns] = gain * scale * np.eye(COUNT)
        slopes[link_gain[j]] = arm + scale * load
        slopes[payload_gain[j]] = gain * load
        slopes[errors[j], columns.errors] = 1.0
        residual = -gain * slopes[link_gain[j]]
        residual[columns.errors] -= values[errors[j]]
        residual[columns.drive] += 1.0
        return slopes, residual

    def white_noise(values: Array, j: int) -> float:
        """Standard deviation of white noise with the same information as the residual, N m.

        Residuals are correlated in time; the scatter between blocks of time gives the
        number of samples that count as one.
        """
        slopes, residual = linearised(values, j)
        variance = max(float(residual @ totals[j] @ residual), 1e-12) / counts[j]
        scores = (blocks[:, j] @ residual) @ slopes.T
        few = len(scores) / max(len(scores) - 1, 1)
        scatter = few * ((scores - scores.mean(axis=0)) ** 2).sum(axis=0)
        white = (slopes @ totals[j] * slopes).sum(axis=1)
        seen = white > 1e-9 * white.max()
        return _SYSTEMATIC * float(
            np.sqrt(max(variance, np.mean(scatter[seen] / white[seen])))
        )

    values = mean.copy()
    noise = np.ones(n)
    information = precision
    for _ in range(_ROUNDS):
        information = precision.copy()
        right = precision @ (mean - values)
        for j in joints:
            slopes, residual = linearised(values, j)
            weighted = slopes @ totals[j] / noise[j] ** 2
            information += weighted @ slopes.T
            right += weighted @ residual
        values = values + np.linalg.solve(information, right)
        noise[joints] = [white_noise(values, j) for j in joints]
    covariance = np.asarray(np.linalg.inv(information), dtype=float)
    without = values.copy()
    rms = np.full(n, np.nan)
    without[errors] = 0.0
    for j in joints:
        _, residual = linearised(without, j)
        rms[j] = np.sqrt(max(float(residual @ totals[j] @ residual), 0.0) / counts[j])
    shown = np.concatenate([payload, calibration])
    return values[shown], covariance[np.ix_(shown, shown)], rms
