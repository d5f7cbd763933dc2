"""Torques of a loaded arm as columns, and their solution for payload and drive gains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from ur_energy_model.identification.filtered_motion import (
    MOVING_SPEED,
    FilteredMotion,
    ParallelFilter,
)
from ur_energy_model.identification.least_squares import masked_gram_matrices
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import LINK_PARAMETERS, EnergyModel, PayloadCalibration
from ur_energy_model.model.friction import SMOOTHING, FrictionBank
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import COUNT, MASS, TENSOR, Setup, entries_of
from ur_energy_model.typing import Array, Indices

_TYPICAL_SPEED = 0.5
"""Joint speed at which friction gives the scale of its changes [rad/s]."""
_LEAST_FRICTION = 0.1
"""Smallest such scale [N m]."""
_FADES = (0.1, 0.5)
"""Decay speeds of low-speed friction [rad/s]."""
_COMPLIANCE = (2 * np.pi * 20.0) ** -2
"""Rotor inertia over gear stiffness at a resonance of 20 Hz [s^2]."""
_ASYMMETRY = 0.016
"""Half the relative difference of friction between the directions, RMS over the joints and speeds
of a UR5e's factory calibration."""
_REPEATABILITY = 0.01
"""Relative change of friction between recordings at the same temperature, assumed."""
_TEMPERATURE_SLOPE = 0.035
"""Relative change of friction with temperature [1/K] (Raviola et al. 2021: viscous friction, by up
to 35 % in ten kelvin)."""
_UNKNOWN_TEMPERATURE = 0.2
"""Relative change of friction where no temperatures were recorded."""
DRIFT = 0.2
"""Relative change of friction within a recording, assumed: half of that in ten kelvin."""
_ERROR_STD: dict[str, float] = {
    "inertia": 0.03,  # of the reflected inertia
    "load": 0.01,  # of the transmitted torque
    "coulomb": 1.0,  # of the change of friction, like the next four
    "viscous": 1.0,
    "root": 1.0,
    "fast_fade": 1.0,
    "slow_fade": 1.0,
    "coulomb_drift": DRIFT,  # of friction over the recording, like the next one
    "viscous_drift": DRIFT,
    "asymmetric_viscous": _ASYMMETRY,
    "delay": 0.002,  # s
    "compliance": _COMPLIANCE,  # s^2
    "asymmetric_coulomb": _ASYMMETRY,
}
"""Standard deviations of the error terms of each joint; the last term is a constant."""
_LOADED = ("load", "delay", "compliance")
"""Error terms that depend on the payload."""
_FRICTION_CHANGES = ("coulomb", "viscous", "root", "fast_fade", "slow_fade")
_DRIFTS = ("coulomb_drift", "viscous_drift")
_JOINT_SIZE = 0.05
"""Length of a link beyond its joints [m]."""
_TENSOR_ERROR = 0.05
"""Relative error of link tensors from the robot file."""
_LEAST_MOMENT = 1e-6
"""Smallest principal moment of a tensor that counts as known [kg m^2]."""


class PayloadColumns:
    """Columns of the joint torques of one arm, and the prior of their coefficients.

    A row is [bodies 10 n, bare arm, error terms 12, drive, 1]: torques per unit inertial parameter
    of each moving body (the payload is part of the last one); torque of the bare links and rotors;
    error terms of the model; torque of the drive less friction, which the others add up to.

    Args:
        model: of the arm, n joints.
        robot: its description.
        gravity: in the base frame [3], m/s^2.
    """

    def __init__(self, model: EnergyModel, robot: RobotDescription, gravity: Array) -> None:
        self.dof = n = robot.dof
        self._dynamics = ArmDynamics(robot, Setup(gravity=gravity))
        self._joints = joints = model.joints
        self._ratio = np.array([joint.gear_ratio for joint in joints])
        self.torque_constant = np.array([joint.torque_constant for joint in joints])
        self._inertia = np.array([joint.reflected_inertia for joint in joints])
        self._friction = FrictionBank([joint.friction for joint in joints], self._ratio)
        typical = np.full((1, n), _TYPICAL_SPEED)
        friction = self._ratio * self._friction.torque(typical, np.zeros((1, n)))[0]
        self.typical_friction = np.maximum(np.abs(friction), _LEAST_FRICTION)
        """Friction at a typical speed [n], N m, joint side."""

    @property
    def bare(self) -> int:
        """Position of the bare arm's torque in a row."""
        return COUNT * self.dof

    @property
    def drive(self) -> int:
        """Position of the drive's torque."""
        return self.bare + len(_ERROR_STD)

    @property
    def one(self) -> int:
        """Position of the closing 1, whose square sum counts the samples."""
        return self.drive + 1

    @property
    def errors(self) -> list[int]:
        """Positions of the error terms; the constant one is the closing 1."""
        return [*range(self.bare + 1, self.drive), self.one]

    @property
    def width(self) -> int:
        """Length of a row, with the closing 1."""
        return self.one + 1

    @property
    def flange(self) -> slice:
        """Columns of the last body, which the payload is part of."""
        return slice(self.bare - COUNT, self.bare)

    @property
    def loaded(self) -> list[int]:
        """Positions of the columns that depend on the payload: those of _LOADED and the drive."""
        return [*(self.bare + list(_ERROR_STD).index(name) + 1 for name in _LOADED), self.drive]

    def fixed_rows(self, motion: FilteredMotion, start: float) -> tuple[Array, Array]:
        """Columns of a motion without those that depend on the payload, and its links' torque.

        Args:
            motion: of the arm.
            start: time of the recording's first motion [s].

        Returns:
            [samples, n, width - 1], N m, zero in the columns `loaded`; and [samples, n], N m.
        """
        q, qd, qdd = motion.q, motion.qd, motion.qdd
        out = np.zeros((*q.shape, self.one))
        out[:, :, : self.bare] = self._dynamics.regressor(q, qd, qdd)
        links = out[:, :, : self.bare] @ self._dynamics.parameters()
        out[:, :, self.bare] = links + self._inertia * qdd
        scale, direction, speed = self.typical_friction, np.tanh(qd / SMOOTHING), np.abs(qd)
        elapsed = (motion.time - start)[:, None]
        columns = {
            "inertia": self._inertia * qdd,
            "coulomb": scale * direction,
            "viscous": scale * qd,
            "root": scale * direction * np.sqrt(speed),
            "fast_fade": scale * direction * np.exp(-speed / _FADES[0]),
            "slow_fade": scale * direction * np.exp(-speed / _FADES[1]),
            "coulomb_drift": scale * direction * elapsed,
            "viscous_drift": scale * qd * elapsed,
            "asymmetric_viscous": scale * speed,
        }
        for position, name in enumerate(_ERROR_STD, start=self.bare + 1):
            if name in columns:
                out[:, :, position] = columns[name]
        return out, links

    def loaded_columns(self, motion: FilteredMotion, transmitted: Array) -> Array:
        """The columns `loaded` of a motion [samples, n, 4], N m.

        Args:
            motion: of the arm.
            transmitted: torque of links and payload [samples, n], N m, joint side.
        """
        qd, time = motion.qd, motion.time
        friction = self._ratio * self._friction.torque(qd, transmitted, motion.temperature)
        slope = np.gradient(transmitted, time, axis=0)
        columns = {
            "load": np.tanh(qd / SMOOTHING) * np.abs(transmitted),
            "delay": slope,
            "compliance": np.gradient(slope, time, axis=0),
        }
        drive = self._ratio * self.torque_constant * motion.current - friction
        return np.stack([*(columns[name] for name in _LOADED), drive], axis=2)

    def error_std(self, joint: int, friction_change: float, duration: float) -> Array:
        """Standard deviations of the error terms of a joint, in the order of `errors`.

        Args:
            joint: its index.
            friction_change: of that joint, from `friction_change`.
            duration: of the recording [s].
        """
        factors = dict.fromkeys(_FRICTION_CHANGES, friction_change)
        factors |= dict.fromkeys(_DRIFTS, 1.0 / max(duration, 1.0))
        std = np.array([value * factors.get(name, 1.0) for name, value in _ERROR_STD.items()])
        std[-1] *= self.typical_friction[joint]
        return std

    def friction_change(self, temperature: Array) -> Array:
        """Relative deviation of friction from the model's [n].

        Args:
            temperature: mean joint temperatures of the recording [n], degC; NaN if unknown.
        """
        ranges = [joint.friction.temperature_range for joint in self._joints]
        middle = np.array([np.nan if span is None else np.mean(span) for span in ranges])
        change = np.hypot(_REPEATABILITY, _TEMPERATURE_SLOPE * (temperature - middle))
        return np.where(np.isnan(change), _UNKNOWN_TEMPERATURE, change)

    @property
    def masses(self) -> Array:
        """Masses of the moving bodies [n], kg."""
        return np.array([body.mass for body in self._bodies])

    @property
    def tensor_errors(self) -> tuple[Array, Array]:
        """Prior of the links' tensors beyond those of the robot file [n], kg m^2.

        Where the robot file has none, a link may be any body between its two joints: a diagonal
        entry is about half that of a rod of its mass, with an uncertainty of the same size.

        Returns:
            mean of the diagonal entries, standard deviation of all entries.
        """
        q = np.zeros(self.dof)
        flange = self._dynamics.flange_pose(q[None])[:, :3, 3]
        places = np.concatenate([self._dynamics.joint_positions(q), flange])
        length = np.linalg.norm(np.diff(places, axis=0), axis=1) + _JOINT_SIZE
        rod = self.masses * length**2 / 12
        known = np.array([np.linalg.eigvalsh(b.inertia)[0] > _LEAST_MOMENT for b in self._bodies])
        return np.where(known, 0.0, 0.5 * rod), np.where(known, _TENSOR_ERROR, 0.5) * rod

    @property
    def _bodies(self) -> list[pin.Inertia]:
        return list(self._dynamics.bare.inertias)[1:]


# Motions of an arm whose rows are needed with several payloads.
#
# Most columns of a row do not depend on the payload. They are computed and filtered once.

_SHORTEST = 3
"""Samples needed for two derivatives."""
_REMEMBERED = 16_000
"""Samples whose rows are kept; a row of all joints has about 4 kB."""


class LoadedMotion:
    """One motion, with the columns that do not depend on the payload.

    Args:
        columns: of the arm, n joints.
        motion: of the arm.
        narrow: filter for all columns alike; None leaves them unfiltered.
        start: time of the recording's first motion [s].

    Attributes:
        temperature: sum over the samples [n], degC.
        samples: number of samples.
        elapsed: time from the recording's first motion to the end of this one [s].
        period: between the samples of the Gram matrices [s].
    """

    def __init__(
        self,
        columns: PayloadColumns,
        motion: FilteredMotion,
        narrow: ParallelFilter | None,
        start: float,
    ) -> None:
        self._columns, self._motion, self._narrow = columns, motion, narrow
        self.samples, self.temperature = len(motion), motion.temperature.sum(axis=0)
        self._inside = slice(0, 0)
        self.period = 0.0
        self.elapsed = float(motion.time[-1]) - start if self.samples else 0.0
        if self.samples < _SHORTEST:
            return
        self._inside = slice(0, self.samples) if narrow is None else narrow.inside(motion)
        self.period = (self._inside.step or 1) * motion.period
        rows, self._links = columns.fixed_rows(motion, start)
        self._flange = rows[:, :, columns.flange].copy()
        if narrow is None:
            self._used = np.abs(motion.qd) > MOVING_SPEED
        else:
            self._used = narrow.moving(motion, MOVING_SPEED)[self._inside]
        self._rows = np.ones((len(self._used), columns.dof, columns.width))
        self._rows[:, :, : columns.one] = self._filtered(rows)

    def gram_matrices(self, payload: Array) -> Iterator[tuple[Array, float]]:
        """Gram matrices [n, width, width] of the moving joints and durations [s], by blocks.

        Args:
            payload: inertial parameters at the flange [10], for load-dependent friction.
        """
        time = self._motion.time[self._inside]
        if not len(time):
            return
        transmitted = self._links + self._flange @ payload
        loaded = self._columns.loaded_columns(self._motion, transmitted)
        self._rows[:, :, self._columns.loaded] = self._filtered(loaded)
        yield from masked_gram_matrices(time, self._rows, self._used)

    def _filtered(self, values: Array) -> Array:
        """Filtered values [samples of the rows, ...] of the motion's samples."""
        if self._narrow is None:
            return np.asarray(values[self._inside])
        flat = values.reshape(len(values), -1)
        out = np.zeros((len(self._used), flat.shape[1]))
        used = flat.any(axis=0)  # inner bodies do not load the joints beyond them
        out[:, used] = self._narrow(self._motion, flat[:, used])[self._inside]
        return out.reshape(len(out), *values.shape[1:])


class LoadedMotions:
    """The motions of one recording, in order, iterated several times.

    Args:
        columns: of the arm.
        motions: of one recording.
        narrow: its filter; None leaves columns unfiltered.
    """

    def __init__(
        self,
        columns: PayloadColumns,
        motions: Iterable[FilteredMotion],
        narrow: ParallelFilter | None,
    ) -> None:
        self._columns, self._motions, self._narrow = columns, motions, narrow
        self._remembered: list[LoadedMotion] = []

    def __iter__(self) -> Iterator[LoadedMotion]:
        known, start = len(self._remembered), 0.0
        for index, motion in enumerate(self._motions):
            if index == 0:
                start = float(motion.time[0])
            if index < known:
                yield self._remembered[index]
                continue
            loaded = LoadedMotion(self._columns, motion, self._narrow, start)
            remembered = sum(each.samples for each in self._remembered)
            if index == len(self._remembered) and remembered + loaded.samples <= _REMEMBERED:
                self._remembered.append(loaded)
            yield loaded


# Payload, drive gains and model error from the Gram matrices of payload columns.
#
# drive = link_gain * (bare + links + payload_gain * payload) + errors @ coefficients,
#
# bilinear in gains and parameters: Gauss-Newton with a normal prior. Its posterior is the prior of
# the next recording of the same arm (recursive least squares; Jazwinski, Stochastic Processes and
# Filtering Theory, 1970, ch. 7). The noise is on the drive side, so the gain belongs on the other
# side: a factor on the drive would be biased low.

_ROUNDS = 8
_MASS_STD = 100.0
_FIRST_MOMENT_STD = 3.0
_PAYLOAD_TENSOR_STD = 0.1
_FIXED = 1e-9
_SYSTEMATIC = 2.0
"""Factor on the noise for model errors that repeat from block to block."""
_TENSOR_COUNT = TENSOR.stop - TENSOR.start


@dataclass(frozen=True)
class PayloadSolution:
    """Result of a payload identification as inertial parameters.

    Attributes:
        payload: inertial parameters at the flange [10].
        payload_covariance: [10, 10].
        calibration: posterior of links and drives.
        rms: residual of the model with payload and gains, without error terms [n], N m; NaN for
            joints that stood still.
    """

    payload: Array
    payload_covariance: Array
    calibration: PayloadCalibration
    rms: Array


class _Unknowns:
    """Positions of the unknowns in one vector, for n joints.

    Args:
        n: joints.
        errors: error terms of a joint.

    Attributes:
        links: static parameters of the links [4 n].
        link_gain, payload_gain: [n].
        calibration: all of these, in the order of `PayloadCalibration.vector` [6 n].
        payload: inertial parameters of the payload [10].
        tensors: tensor entries of the links [6 n].
        errors: coefficients of the error terms [n, errors].
        size: number of unknowns.
    """

    def __init__(self, n: int, errors: int) -> None:
        sizes = (LINK_PARAMETERS * n, n, n, COUNT, _TENSOR_COUNT * n, errors * n)
        self.size = sum(sizes)
        (
            self.links,
            self.link_gain,
            self.payload_gain,
            self.payload,
            self.tensors,
            coefficients,
        ) = np.split(np.arange(self.size), np.cumsum(sizes)[:-1])
        self.errors = coefficients.reshape(n, errors)
        self.calibration: Indices = np.concatenate([self.links, self.link_gain, self.payload_gain])


class PayloadSolver:
    """Solves for the payload of one recording.

    Args:
        columns: of the arm, n joints.
        blocks: Gram matrices of their rows, per block of time [blocks, n, width, width].
        joints: those that moved.
        prior: of links and drives.
        friction_change: relative deviation of friction from the model's [n].
        duration: of the recording [s].
        known_mass: payload mass, where it is known [kg]; 0 for an empty flange.
    """

    def __init__(
        self,
        columns: PayloadColumns,
        blocks: Array,
        joints: list[int],
        prior: PayloadCalibration,
        friction_change: Array,
        duration: float,
        known_mass: float | None = None,
    ) -> None:
        self._columns, self._blocks, self._joints = columns, blocks, joints
        self._totals = blocks.sum(axis=0)
        self._counts = self._totals[:, columns.one, columns.one]
        n = columns.dof
        self._unknowns = _Unknowns(n, len(columns.errors))
        body = COUNT * np.arange(n)[:, None]
        self._static_columns = (body + np.arange(LINK_PARAMETERS)).ravel()
        self._tensor_columns = (body + np.arange(COUNT)[TENSOR]).ravel()
        self._payload_columns = np.arange(COUNT * (n - 1), COUNT * n)
        self._shares = [self._share(j) for j in range(n)]
        self._mean, self._precision = self._prior(prior, friction_change, duration, known_mass)

    def solve(self) -> PayloadSolution:
        """Gauss-Newton; the noise of each joint is estimated in every iteration."""
        values, noise = self._mean.copy(), np.ones(self._columns.dof)
        information = self._precision
        for _ in range(_ROUNDS):
            information = self._precision.copy()
            right = self._precision @ (self._mean - values)
            for j in self._joints:
                slopes, residual = self._linearised(values, j)
                weighted = slopes @ self._totals[j] / noise[j] ** 2
                information += weighted @ slopes.T
                right += weighted @ residual
            values = values + np.linalg.solve(information, right)
            for j in self._joints:
                noise[j] = self._noise(values, j)
        covariance: Array = np.asarray(np.linalg.inv(information), dtype=float)
        calibration, payload = self._unknowns.calibration, self._unknowns.payload
        return PayloadSolution(
            payload=values[payload],
            payload_covariance=covariance[np.ix_(payload, payload)],
            calibration=PayloadCalibration.from_vector(
                values[calibration], covariance[np.ix_(calibration, calibration)]
            ),
            rms=np.array([self._rms(values, j) for j in range(self._columns.dof)]),
        )

    def _share(self, joint: int) -> Array:
        """Part of the links' static parameters that the gain of a joint includes [4 n].

        Torque constants were identified with the published links, so they include the part of a
        link's error that is proportional to the weight of the bare arm. They do not include what
        is on the flange.
        """
        total, bare = self._totals[joint], self._columns.bare
        share = total[bare, self._static_columns] / max(total[bare, bare], 1e-12)
        share[-LINK_PARAMETERS:] = 0.0
        return np.asarray(share)

    def _prior(
        self,
        calibration: PayloadCalibration,
        friction_change: Array,
        duration: float,
        known_mass: float | None,
    ) -> tuple[Array, Array]:
        """Mean and precision of all unknowns."""
        columns, unknowns, n = self._columns, self._unknowns, self._columns.dof
        mean, std = np.zeros(unknowns.size), np.ones(unknowns.size)
        mean[unknowns.calibration] = calibration.vector
        middle, spread = columns.tensor_errors
        tensors = middle[:, None] * entries_of(np.eye(3))
        errors = np.repeat(spread[:, None], _TENSOR_COUNT, axis=1)
        tensors[-1], errors[-1] = 0.0, _FIXED  # the last link has the payload's tensor
        mean[unknowns.tensors], std[unknowns.tensors] = tensors.ravel(), errors.ravel()
        std[unknowns.payload] = [
            _MASS_STD,
            *[_FIRST_MOMENT_STD] * 3,
            *[_PAYLOAD_TENSOR_STD] * _TENSOR_COUNT,
        ]
        if known_mass is not None:
            mean[unknowns.payload[MASS]], std[unknowns.payload[MASS]] = known_mass, _FIXED
        if known_mass == 0.0:
            std[unknowns.payload] = _FIXED
        for j in range(n):
            std[unknowns.errors[j]] = columns.error_std(j, friction_change[j], duration)
        precision = np.diag(np.maximum(std, _FIXED) ** -2.0)
        precision[np.ix_(unknowns.calibration, unknowns.calibration)] = np.linalg.inv(
            calibration.covariance
        )
        return mean, precision

    def _linearised(self, values: Array, joint: int) -> tuple[Array, Array]:
        """Jacobian [unknowns, width] and residual [width] as combinations of a row's columns."""
        columns, unknowns, share = self._columns, self._unknowns, self._shares[joint]
        errors = unknowns.errors[joint]
        gain, scale = values[unknowns.link_gain[joint]], values[unknowns.payload_gain[joint]]
        links, payload = np.zeros(columns.width), np.zeros(columns.width)
        links[self._static_columns] = values[unknowns.links]
        links[self._tensor_columns] = values[unknowns.tensors]
        links[columns.bare] = 1.0 - share @ values[unknowns.links]
        payload[self._payload_columns] = values[unknowns.payload]
        slopes = np.zeros((len(values), columns.width))
        slopes[unknowns.links, self._static_columns] = gain
        slopes[unknowns.links, columns.bare] = -gain * share
        slopes[unknowns.tensors, self._tensor_columns] = gain
        slopes[unknowns.payload, self._payload_columns] = gain * scale
        slopes[unknowns.link_gain[joint]] = links + scale * payload
        slopes[unknowns.payload_gain[joint]] = gain * payload
        slopes[errors, columns.errors] = 1.0
        residual = -gain * (links + scale * payload)
        residual[columns.errors] -= values[errors]
        residual[columns.drive] += 1.0
        return slopes, residual

    def _noise(self, values: Array, joint: int) -> float:
        """Standard deviation of white noise with the same information as the residual, N m.

        Residuals are correlated in time; the scatter between blocks of time gives the number of
        samples that count as one.
        """
        slopes, residual = self._linearised(values, joint)
        total = self._totals[joint]
        variance = max(float(residual @ total @ residual), 1e-12) / self._counts[joint]
        scores = (self._blocks[:, joint] @ residual) @ slopes.T
        few = len(scores) / max(len(scores) - 1, 1)
        scatter = few * ((scores - scores.mean(axis=0)) ** 2).sum(axis=0)
        white = (slopes @ total * slopes).sum(axis=1)
        seen = white > 1e-9 * white.max()
        return _SYSTEMATIC * float(np.sqrt(max(variance, np.mean(scatter[seen] / white[seen]))))

    def _rms(self, values: Array, joint: int) -> float:
        if joint not in self._joints:
            return float("nan")
        bare = values.copy()
        bare[self._unknowns.errors[joint]] = 0.0
        _, residual = self._linearised(bare, joint)
        square = max(float(residual @ self._totals[joint] @ residual), 0.0)
        return float(np.sqrt(square / self._counts[joint]))
