"""The payload an arm really carries, from its motor currents.

The model turns currents into joint torque: torque constant times current, less friction and motor
inertia, is what links and payload ask for; what the bare links do not explain is the payload.
So a payload that the controller was never told of is weighed (Machines 2024, 12(9), 595, sec. 5,
does it as loaded minus unloaded; here the model stands in for the unloaded run), and a known one
checks the torque constants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import IdentificationError, InputError
from ur_energy_model.identification.grams import BlockedGram
from ur_energy_model.identification.inertia import possible_inertia
from ur_energy_model.identification.joint_grams import joint_grams
from ur_energy_model.identification.signals import Motion, NarrowFilter
from ur_energy_model.identification.torque_columns import payload_parameters
from ur_energy_model.model.dynamics import ArmDynamics, tensor_of
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction_bank import FrictionBank
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup

Array = NDArray[np.float64]

_ROUNDS = 6
_CONVERGED = 1e-4
_FEW_SAMPLES = 50
_FIRST_MOMENT_STD = 3.0
_TENSOR_STD = 0.05
_MASS_STD = 100.0
_GAIN_STD = 0.3
_FIXED = 1e-9
_CONSTANT_STD = 0.005
"""Of a torque constant's relative error, what does not cancel between model and weighing [1]."""
_LINK_MASS_STD = 0.01
"""Torque constants rest on the weight of the links, whose published masses are rounded [1]."""
_FRICTION_MISFIT = 0.01
"""Share of friction that a law of the wrong shape misses in the pattern of the load [1]."""
_COLUMNS = 14


@dataclass(frozen=True)
class PayloadEstimate:
    """What the flange carries.

    Attributes:
        payload: mass, centre of mass (flange frame), inertia (possible, mostly a guess).
        shown_mass: kg, as the currents show it: below zero where they ask for less than the bare
            links do, which `payload` cannot hold.
        mass_std: kg; correlated residuals and the model's torque constants allowed for.
        center_std: [3], m.
        torque_rms: residual per joint [n], N m, joint side; NaN for joints that did not move.
        torque_constants: [n], N m/A, motor side; calibrated where the mass was given.
        torque_constants_std: [n], N m/A.
        samples: torque samples used, joints counted one by one.
    """

    payload: Payload
    shown_mass: float
    mass_std: float
    center_std: Array
    torque_rms: Array
    torque_constants: Array
    torque_constants_std: Array
    samples: int


class PayloadFit:
    """Estimates the payload of one recording with an identified model.

    Args:
        model: of the arm, identified from recordings with known or no payload.
        robot: the arm, n joints.
        gravity: in the base frame [3], m/s^2, of this recording.
        known_mass: payload mass, where it is known [kg]; then the torque constants are calibrated.
        trust_constants: keep the model's torque constants, which is right where only the
            difference of two weighings counts.

    Raises:
        InputError: a known mass that is not positive.
    """

    def __init__(
        self,
        model: EnergyModel,
        robot: RobotDescription,
        gravity: Array,
        *,
        known_mass: float | None = None,
        trust_constants: bool = False,
    ) -> None:
        if known_mass is not None and not 0 < known_mass < 1000:
            raise InputError("--known-payload", f"{known_mass:g} kg", "give a mass above zero")
        self.model, self.robot, self.known_mass = model, robot, known_mass
        self.trust_constants = trust_constants
        self._dynamics = ArmDynamics(robot, Setup(gravity=gravity))
        joints = model.joints
        self._ratio = np.array([joint.gear_ratio for joint in joints])
        self._constant = np.array([joint.torque_constant for joint in joints])
        self._inertia = np.array([joint.reflected_inertia for joint in joints])
        self._friction = FrictionBank([joint.friction for joint in joints], self._ratio)
        self._constant_std = np.array(
            [float(joint.std.get("torque_constant", 0.0)) for joint in joints]
        )

    def estimate(
        self, motions: Iterable[Motion], narrow: NarrowFilter | None = None
    ) -> PayloadEstimate:
        """Payload from filtered motion.

        Friction depends on the load, which depends on the payload: the fit is repeated with the
        payload found until the mass stays.

        Args:
            motions: of one recording; gone through several times.
            narrow: filter for model and measurement alike, the recording's.

        Raises:
            IdentificationError: too little motion.
        """
        stretches = list(motions)
        payload = Payload() if self.known_mass is None else Payload(self.known_mass)
        estimate = self._fit(stretches, payload, narrow)
        for _ in range(_ROUNDS):
            before = estimate.payload
            estimate = self._fit(stretches, before, narrow)
            if abs(estimate.payload.mass - before.mass) < _CONVERGED:
                break
        return estimate

    def _fit(
        self, motions: list[Motion], payload: Payload, narrow: NarrowFilter | None
    ) -> PayloadEstimate:
        grams = BlockedGram()
        for motion in motions:
            rows = self._rows(motion, payload)
            for gram, duration in joint_grams(motion, rows, narrow, moving_only=True):
                grams.add(gram, duration)
        blocks = grams.blocks
        counts = blocks[:, :, -1, -1].sum(axis=0) if len(blocks) else np.zeros(self.robot.dof)
        moving = counts >= _FEW_SAMPLES
        if not moving.any():
            raise IdentificationError(
                "no joint moves enough to weigh the payload; record a motion of all joints "
                "(ur_energy excite)"
            )
        return self._solve(blocks, counts, moving)

    def _rows(self, motion: Motion, payload: Payload) -> Array:
        """[payload columns, drive, rest, friction], [samples, n, 13].

        The drive's torque is torque constant times current less friction: all of it scales with
        the torque constant, because friction was found in amperes. The rest is links and motor
        inertia, which do not.
        """
        q, qd, qdd = motion.q, motion.qd, motion.qdd
        regressor = self._dynamics.payload_regressor(q, qd, qdd)
        bare = self._dynamics.inverse_dynamics(q, qd, qdd) + self._inertia * qdd
        load = bare + regressor @ _parameters(payload)
        friction = self._ratio * self._friction.torque(qd, load, motion.temperature)
        drive = self._ratio * self._constant * motion.current - friction
        return np.concatenate([regressor, np.stack([drive, bare, friction], axis=2)], axis=2)

    def _solve(self, blocks: Array, counts: Array, moving: NDArray[np.bool_]) -> PayloadEstimate:
        """Gauss-Newton for the payload and the drives' gains.

        drive = gain * (rest + payload columns @ payload), gain = model's over true torque
        constant. The noisy side is the drive, so the gain belongs on the other one: a factor on
        the drive would come out too small. Gains have a narrow prior unless the mass is known.
        """
        n = self.robot.dof
        mean, spread = np.zeros(10 + n), np.empty(10 + n)
        mean[10:] = 1.0
        spread[0], spread[1:4], spread[4:10] = _MASS_STD, _FIRST_MOMENT_STD, _TENSOR_STD
        totals, values = blocks.sum(axis=0), mean
        noise, rms = np.ones(n), np.full(n, np.nan)
        spread[10:] = _FIXED if self.trust_constants else self._gain_std(totals)
        if self.known_mass is not None:
            mean[0], spread[0] = self.known_mass, _FIXED
            spread[10:] = _GAIN_STD
        joints = [int(j) for j in np.flatnonzero(moving)]
        for _ in range(_ROUNDS):
            information, right = np.diag(1 / spread**2), (mean - values) / spread**2
            for j in joints:
                slopes, residual = self._linearised(values, j)
                information += slopes @ totals[j] @ slopes.T / noise[j] ** 2
                right += slopes @ totals[j] @ residual / noise[j] ** 2
            values = values + np.linalg.solve(information, right)
            for j in joints:
                slopes, residual = self._linearised(values, j)
                mean_square = max(float(residual @ totals[j] @ residual), 1e-12) / counts[j]
                rms[j] = np.sqrt(mean_square)
                noise[j] = rms[j] * np.sqrt(
                    _samples_per_one(blocks[:, j], slopes, residual, rms[j])
                )
        covariance = self._covariance(blocks, values, noise, joints, spread)
        return self._result(values, covariance, rms, counts[moving])

    def _gain_std(self, totals: Array) -> Array:
        """Relative standard deviation of the model's torque constants [n], for weighing.

        Torque constant and friction were found together, so an error in the shape of the friction
        law leaks into the constant, the more the smaller the joint's load is beside its friction
        (wrists). Errors that the weighed recording shares with those of the model cancel, which
        is why the model's own standard deviation counts in part only.
        """
        load, friction = totals[:, 11, 11], totals[:, 12, 12]
        leak = _FRICTION_MISFIT * np.sqrt(friction / np.maximum(load, 1e-9))
        own = np.minimum(self._constant_std / self._constant, _CONSTANT_STD)
        return np.asarray(np.clip(np.hypot(own, leak), _FIXED, _GAIN_STD))

    def _linearised(self, values: Array, joint: int) -> tuple[Array, Array]:
        """Model slopes [10 + n, 14] and residual [14], as combinations of a Gram's columns."""
        gain = values[10 + joint]
        model = np.zeros(_COLUMNS)
        model[:10], model[11] = values[:10], 1.0
        slopes = np.zeros((len(values), _COLUMNS))
        slopes[:10, :10] = gain * np.eye(10)
        slopes[10 + joint] = model
        residual = -gain * model
        residual[10] += 1.0
        return slopes, residual

    def _covariance(
        self, blocks: Array, values: Array, noise: Array, joints: list[int], spread: Array
    ) -> Array:
        """Sandwich covariance: blocks of time count as independent, samples do not."""
        information = np.diag(1 / spread**2)
        scores = np.zeros((len(blocks), len(values)))
        for j in joints:
            slopes, residual = self._linearised(values, j)
            information += slopes @ blocks[:, j].sum(axis=0) @ slopes.T / noise[j] ** 2
            scores += (blocks[:, j] @ residual) @ slopes.T / noise[j] ** 2
        scores -= scores.mean(axis=0)
        middle = scores.T @ scores * (len(blocks) / max(len(blocks) - 1, 1))
        inverse = np.linalg.inv(information)
        covariance = inverse @ (middle + np.diag(1 / spread**2)) @ inverse
        return np.asarray(covariance)

    def _result(
        self, values: Array, covariance: Array, rms: Array, counts: Array
    ) -> PayloadEstimate:
        mass, std = float(values[0]), np.sqrt(np.diag(covariance))
        center, center_std = np.zeros(3), np.full(3, np.nan)
        inertia = np.zeros((3, 3))
        if mass > max(0.01, std[0]):
            center = values[1:4] / mass
            slopes = np.concatenate([-center[:, None], np.eye(3)], axis=1) / mass
            center_std = np.sqrt(np.diag(slopes @ covariance[:4, :4] @ slopes.T))
            offset = mass * ((center @ center) * np.eye(3) - np.outer(center, center))
            inertia = possible_inertia(tensor_of(values[4:10]) - offset)
        scale = 1 / values[10:]
        return PayloadEstimate(
            payload=Payload(max(mass, 0.0), center, inertia),
            shown_mass=mass,
            mass_std=float(np.hypot(std[0], _LINK_MASS_STD * mass)),
            center_std=center_std,
            torque_rms=rms,
            torque_constants=self._constant * scale,
            torque_constants_std=self._constant * std[10:],
            samples=int(counts.sum()),
        )


def with_torque_constants(model: EnergyModel, estimate: PayloadEstimate) -> EnergyModel:
    """The model with calibrated torque constants; friction, found in amperes, scales along."""
    joints = []
    for joint, value, std in zip(
        model.joints, estimate.torque_constants, estimate.torque_constants_std, strict=True
    ):
        scale = float(value) / joint.torque_constant
        friction = replace(
            joint.friction,
            parameters={name: scale * number for name, number in joint.friction.parameters.items()},
        )
        joints.append(
            replace(
                joint, torque_constant=float(value), friction=friction,
                std={**joint.std, "torque_constant": float(std)},
                source={**joint.source, "torque_constant": "known_payload"},
            )
        )  # fmt: skip
    return replace(model, joints=tuple(joints))


def _samples_per_one(blocks: Array, slopes: Array, residual: Array, rms: float) -> float:
    """How many correlated samples count as one: block scores scatter that much more than white."""
    scores = (blocks @ residual) @ slopes.T
    scatter = ((scores - scores.mean(axis=0)) ** 2).sum(axis=0)
    information = np.einsum("uc,bcd,ud->u", slopes, blocks, slopes)
    seen = information > 1e-9 * information.max()
    return max(1.0, float(np.mean(scatter[seen] / information[seen])) / rms**2)


def _parameters(payload: Payload) -> Array:
    tensor = payload.inertia
    entries = tensor[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    return payload_parameters(payload.mass, payload.center_of_mass, entries)
