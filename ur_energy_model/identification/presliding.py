# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fit of the presliding travel: how far a joint moves before its friction reverses.

At rest, friction takes any value up to its limit, depending on the previous motion (Dahl,
Solid friction damping of mechanical vibrations, AIAA Journal 14, 1976). A grid of travels
is searched for the least error of the currents at standstill; torque constant and
friction stay as they were fitted in motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ur_energy_model.identification.dynamics import RecordingDynamics
from ur_energy_model.identification.filtered_motion import FilteredMotion, ParallelFilter
from ur_energy_model.identification.recording import SessionData
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.presliding import STILL_SPEED, FrictionDirection
from ur_energy_model.typing import Array

TRAVELS = (0.0, 2e-4, 4e-4, 7e-4, 1.2e-3, 2e-3, 3.5e-3, 6e-3)
"""Travels tried, joint side [rad]; the first one, 0, means friction without memory."""
TYPICAL_TRAVEL = 2e-3  # typical travel in recordings of three e-Series arms [rad]
_TRAVEL_SPREAD = 0.7  # spread of the travels about the typical one, natural logarithm
_NO_MEMORY = 8.0  # prior cost of friction without memory, in squared standard deviations
_SHORTEST = 1.0  # standstill from which the travel of a joint is chosen [s]
_AT_REST = 0.9
"""Share of standstill within the reach of the filter from which a sample is at rest."""
_NONE = 0  # place of the travel 0 among TRAVELS


class PreslidingFit:
    """Accumulates current errors for every travel, and chooses one for each of n joints.

    Args:
        model: model with torque constants and friction as fitted in motion.
    """

    def __init__(self, model: EnergyModel) -> None:
        self.model = model
        n = model.dof
        # Squared errors of the currents at standstill, for each travel [travels, n], A^2.
        self._squares = np.zeros((len(TRAVELS), n))
        self._still = np.zeros(n)  # time at standstill [s]
        self._episodes = np.zeros(n)  # number of standstills
        self.start_recording()

    def start_recording(self) -> None:
        """Start another recording: discard the previous motion."""
        travels = np.repeat(np.array(TRAVELS)[:, None], self.model.dof, axis=1)
        self._direction = FrictionDirection(travels)

    def accumulate(
        self, motion: FilteredMotion, link_torque: Array, narrow: ParallelFilter
    ) -> None:
        """Add a motion that follows the previous one of the recording.

        Args:
            motion: a stretch without gaps.
            link_torque: torque of its links, joint side [samples, n], N m.
            narrow: filter of the recording for model and measurement.
        """
        directions = self._direction(motion.q, motion.qd, motion.time)
        inside = narrow.inside(motion)
        time = motion.time[inside]
        if len(time) < 2 or directions is None:  # some travel is tried
            return
        is_slow = (np.abs(motion.qd) < STILL_SPEED).astype(float)
        still = narrow(motion, is_slow)[inside] > _AT_REST
        if still.any():
            currents = self._currents(motion, link_torque, directions)
            error = narrow(motion, currents - motion.current[:, None])[inside]
            self._squares += (np.square(error) * still[:, None]).sum(axis=0)
        starts = np.diff(still.astype(int), axis=0, prepend=0) > 0
        self._episodes += starts.sum(axis=0)
        self._still += still.sum(axis=0) * float(time[1] - time[0])

    def _currents(
        self, motion: FilteredMotion, link_torque: Array, directions: Array
    ) -> Array:
        """Modelled currents for every travel [samples, travels, n], A.

        Currents are linear in the direction of friction, so that the currents for two
        directions give all others.

        Args:
            motion: a stretch without gaps.
            link_torque: torque of its links, joint side [samples, n], N m.
            directions: directions of friction for every travel [samples, travels, n], -1
                to 1.
        """

        def with_direction(direction: Array | None) -> Array:
            """Currents with this direction of friction; None derives it from the speed."""
            powers = self.model.from_link_torque(
                link_torque,
                motion.qd,
                motion.qdd,
                temperature=motion.known_temperature,
                direction=direction,
                std=False,
            )
            return powers.current

        middle = with_direction(np.zeros_like(motion.qd))
        forwards = with_direction(np.ones_like(motion.qd))
        currents = middle[:, None] + (forwards - middle)[:, None] * directions
        currents[:, _NONE] = with_direction(None)
        return currents

    def travels(self) -> Array:
        """The chosen travels [n], rad; the typical one where a joint hardly stood still.

        One standstill counts as one observation, so a few of them weigh little against
        the prior around the typical travel.
        """
        tried = np.array(TRAVELS[_NONE + 1 :])
        unlikely = np.square(np.log(tried / TYPICAL_TRAVEL) / _TRAVEL_SPREAD)
        without = self._squares[_NONE]
        seen = (self._still >= _SHORTEST) & (without > 0)
        share = self._squares[_NONE + 1 :] / np.where(seen, without, 1.0)
        cost = self._episodes * share + unlikely[:, None]
        remembers = cost.min(axis=0) < self._episodes + _NO_MEMORY
        best = np.where(remembers, tried[cost.argmin(axis=0)], 0.0)
        return np.where(seen, best, TYPICAL_TRAVEL)


def with_travels(model: EnergyModel, travels: Array) -> EnergyModel:
    """A model with other presliding travels.

    Args:
        model: model of an arm with n joints.
        travels: presliding travels, joint side [n], rad.
    """
    joints = []
    for joint, travel in zip(model.joints, travels.tolist(), strict=True):
        friction = replace(joint.friction, presliding=travel)
        joints.append(replace(joint, friction=friction))
    return replace(model, joints=tuple(joints))


def with_presliding(
    model: EnergyModel,
    recordings: Sequence[SessionData],
    dynamics: Sequence[RecordingDynamics],
) -> EnergyModel:
    """The model with presliding travels that fit the currents at standstill.

    Args:
        model: model with torque constants and friction as fitted in motion.
        recordings: recordings of the arm.
        dynamics: setups of the recordings, in the same order.
    """
    fit = PreslidingFit(model)
    for recording, own in zip(recordings, dynamics, strict=True):
        fit.start_recording()
        narrow = ParallelFilter(recording.cutoff)
        for motion, link_torque in own.link_torques(recording):
            fit.accumulate(motion, link_torque, narrow)
    return with_travels(model, fit.travels())
