"""Identification stages that fit motor currents: torque constants, friction, presliding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ur_energy_model.identification.dynamics import RecordingDynamics, inertia_with_currents
from ur_energy_model.identification.filtered_motion import FilteredMotion, ParallelFilter
from ur_energy_model.identification.friction_data import WARMTH
from ur_energy_model.identification.friction_fit import CurrentRegression
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.reflected_inertia import InertiaEstimate
from ur_energy_model.identification.torque_constants import JointEstimate
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import SMOOTHING, STILL_SPEED, presliding
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

# Fit of the presliding travel: how far a joint moves before its friction reverses.
#
# At rest, friction takes any value up to its limit, depending on the previous motion (Dahl's
# presliding). A grid of travels is searched for the least current error at standstill; torque
# constant and friction stay as fitted in motion.

TRAVELS = (0.0, 2e-4, 4e-4, 7e-4, 1.2e-3, 2e-3, 3.5e-3, 6e-3)
"""Travels tried, joint side [rad]; the first one, 0, means friction without memory."""
TYPICAL_TRAVEL = 2e-3  # typical travel in recordings of three e-Series arms [rad]
_TRAVEL_SPREAD = 0.7
_NO_MEMORY = 8.0  # prior cost of friction without memory, in squared standard deviations
_SHORTEST = 1.0


class DirectionMemory:
    """Direction of Coulomb friction with presliding over consecutive motions of one recording.

    `travel`: [..., n], rad.
    """

    def __init__(self, travel: Array) -> None:
        self.travel = travel
        self._state: Array | None = None
        self._time = -np.inf

    def __call__(self, motion: FilteredMotion) -> Array:
        """Direction [samples, ..., n]; NaN where the travel is zero."""
        width = motion.q.shape[1]
        period = motion.period if len(motion) > 1 else 0.0
        if self._state is None or motion.time[0] - self._time > 1.5 * period:
            self._state = np.broadcast_to(np.tanh(motion.qd[0] / SMOOTHING), self.travel.shape)
        shape = (len(motion), *(1,) * (self.travel.ndim - 1), width)
        out, self._state = presliding(
            motion.q.reshape(shape), motion.qd.reshape(shape), self.travel, self._state
        )
        self._time = float(motion.time[-1])
        return out


class PreslidingFit:
    """Accumulates current errors for every travel, and chooses per joint.

    `model`: with torque constants and friction as fitted in motion.
    """

    def __init__(self, model: EnergyModel) -> None:
        self.model = model
        n = model.dof
        self._travel = np.repeat(np.array(TRAVELS)[:, None], n, axis=1)
        self._squares = np.zeros((len(TRAVELS), n))
        self._still = np.zeros(n)
        self._episodes = np.zeros(n)
        self._memory = DirectionMemory(self._travel)

    def start_recording(self) -> None:
        """Start another recording: discard the previous motion."""
        self._memory = DirectionMemory(self._travel)

    def accumulate(
        self, motion: FilteredMotion, link_torque: Array, narrow: ParallelFilter
    ) -> None:
        """Add a motion [samples, n] with its links' torque [samples, n], joint side, N m."""
        directions = self._memory(motion)
        inside = narrow.inside(motion)
        if len(motion.time[inside]) < 2:
            return
        still = narrow(motion, (np.abs(motion.qd) < STILL_SPEED).astype(float))[inside] > 0.9
        if still.any():
            speed = motion.qd
            without, base, one = (
                self.model.from_link_torque(
                    link_torque,
                    speed,
                    motion.qdd,
                    temperature=motion.known_temperature,
                    direction=direction,
                    std=False,
                ).current
                for direction in (None, np.zeros_like(speed), np.ones_like(speed))
            )
            # Modelled currents [samples, travels, n] are linear in the direction of friction.
            currents = base[:, None] + (one - base)[:, None] * directions
            currents[:, 0] = without
            error = narrow(motion, currents - motion.current[:, None])[inside]
            self._squares += (np.square(error) * still[:, None]).sum(axis=0)
        self._episodes += (np.diff(still.astype(int), axis=0, prepend=0) > 0).sum(axis=0)
        time = motion.time[inside]
        self._still += still.sum(axis=0) * float(time[1] - time[0])

    def saved(self) -> dict[str, Array]:
        """The errors accumulated so far, see `restore`."""
        return {"squares": self._squares, "still": self._still, "episodes": self._episodes}

    def restore(self, saved: Mapping[str, Array]) -> None:
        """Continue with saved errors of the same model."""
        self._squares, self._still, self._episodes = (
            np.array(saved[name], dtype=float) for name in ("squares", "still", "episodes")
        )

    def travels(self) -> Array:
        """The chosen travels [n], rad; the typical one where a joint hardly stood still.

        One standstill counts as one observation, so a few of them weigh little against the prior
        around the typical travel.
        """
        tried = np.array(TRAVELS[1:])
        unlikely = np.square(np.log(tried / TYPICAL_TRAVEL) / _TRAVEL_SPREAD)
        travels = np.full(len(self._still), TYPICAL_TRAVEL)
        for j in range(len(travels)):
            without = self._squares[0, j]
            if self._still[j] >= _SHORTEST and without > 0:
                cost = self._episodes[j] * self._squares[1:, j] / without + unlikely
                best = int(np.argmin(cost))
                remembers = cost[best] < self._episodes[j] + _NO_MEMORY
                travels[j] = tried[best] if remembers else 0.0
        return travels


def with_travels(model: EnergyModel, travels: Array) -> EnergyModel:
    """A model with these presliding travels [n], rad."""
    joints = tuple(
        replace(joint, friction=replace(joint.friction, presliding=travel))
        for joint, travel in zip(model.joints, travels.tolist(), strict=True)
    )
    return replace(model, joints=joints)


def fit_currents(
    recordings: Sequence[Recording],
    dynamics: Sequence[RecordingDynamics],
    robot: RobotDescription,
    inertia: InertiaEstimate,
    friction: str,
) -> tuple[JointEstimate, ...]:
    """Torque constants and friction of all joints, and the inertias that are still unknown.

    Each recording is a session with its own friction level. Where inertias are unknown, the
    currents are fitted twice: the second time with loads computed from those that the first fit
    found.
    """
    low = np.fmin.reduce([recording.warmth[:, 0] for recording in recordings])
    high = np.fmax.reduce([recording.warmth[:, 1] for recording in recordings])
    warm = bool((high - low > WARMTH).any())
    nominal = inertia.value
    joints: tuple[JointEstimate, ...] = ()
    for _ in range(1 + bool(inertia.unknown.any())):
        fit = CurrentRegression(robot, friction, warm=warm, inertia=inertia, nominal=nominal)
        for recording, own in zip(recordings, dynamics, strict=True):
            fit.start_session()
            narrow = ParallelFilter(recording.cutoff)
            for motion, link_torque in own.link_torques(recording):
                fit.accumulate(motion, link_torque + nominal * motion.qdd, narrow)
        joints = fit.fit()
        nominal = inertia_with_currents(inertia, joints).value
    return joints


def with_presliding(
    model: EnergyModel, recordings: Sequence[Recording], dynamics: Sequence[RecordingDynamics]
) -> EnergyModel:
    """The model with presliding travels that fit the currents at standstill."""
    fit = PreslidingFit(model)
    for recording, own in zip(recordings, dynamics, strict=True):
        fit.start_recording()
        narrow = ParallelFilter(recording.cutoff)
        for motion, link_torque in own.link_torques(recording):
            fit.accumulate(motion, link_torque, narrow)
    return with_travels(model, fit.travels())
