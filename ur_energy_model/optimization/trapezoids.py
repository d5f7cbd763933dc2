# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energies of a move with any speed and acceleration: trapezoids on its path, many at once.

Speed and acceleration of a moveJ or moveL give the speed at each place of its path, so that torques
and powers of many pairs of values are one calculation on the intervals of the path. It is what the
choice of values is made with; energies that are printed are those of the sampled motion.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import PchipInterpolator

from ur_energy_model.optimization.path import PathDynamics, PathLimits
from ur_energy_model.optimization.programmed import ProgrammedMove
from ur_energy_model.trajectory.motions import Trapezoid
from ur_energy_model.typing import Array, Mask

TOLERANCE = 1.001
"""Factor by which typed values may exceed a limit: the recording's own are among the limits."""
PROGRESS_SAMPLES = 400  # of a moveL, from which the progress of its tool is found
ROWS = 4000  # intervals that are calculated together: more do not fit into the processor's cache


def durations(distance: float, speed: Array, acceleration: Array) -> Array:
    """Of trapezoids [k], s, from rest to rest, with speeds and accelerations [k]."""
    peak = np.minimum(speed, np.sqrt(distance * acceleration))
    return np.asarray(distance / peak + peak / acceleration)


class TrapezoidEnergies:
    """Duration and energy of a programmed move for speeds and accelerations, within limits.

    The move is run by an arm on the path of the recorded move. Speeds are those of the leading
    joint or of the tool, as in `ProgrammedMove`.
    """

    def __init__(self, move: ProgrammedMove, arm: PathDynamics, limits: PathLimits) -> None:
        self.distance = move.distance
        self._arm, self._limits = arm, limits
        self._progress, self._slope = _progress(move, arm)
        self._fastest = arm.fastest(limits)

    @property
    def slowest(self) -> float:
        """Least mean speed at which the leading joint is not slower than steady friction."""
        return self._arm.slowest * self.distance

    @property
    def fastest(self) -> float:
        """Speed above which no place of the path keeps the limits of speed."""
        return float((self._fastest * self._slope)[1:-1].max())

    def __call__(self, speed: Array, acceleration: Array) -> tuple[Array, Array]:
        """Durations [k], s, and energies at the supply [k], J, of pairs of values [k].

        The energy is infinite where a limit is exceeded.
        """
        taken = durations(self.distance, speed, acceleration)
        together = max(1, ROWS // len(self._arm.steps))
        parts = [
            self._energy(speed[k : k + together], acceleration[k : k + together])
            for k in range(0, len(speed), together)
        ]
        power = np.concatenate([energy / time for energy, time in parts])
        return taken, power * taken

    def _energy(self, speed: Array, acceleration: Array) -> tuple[Array, Array]:
        """Energies [k], J, and durations [k], s, as the intervals of the path give them."""
        arm, limits = self._arm, self._limits
        v, a = speed[:, None], acceleration[:, None]
        ramps = 2.0 * a * np.minimum(self._progress, self.distance - self._progress)
        squared = np.minimum(np.maximum(ramps, 0.0), v**2)
        path_speed = np.sqrt(squared) / self._slope
        mean = 0.5 * (path_speed[:, 1:] + path_speed[:, :-1])
        rate = np.diff(path_speed**2, axis=1) / (2.0 * arm.steps)
        demand, torque, joint_acceleration = arm.powers(mean, rate)
        floor = arm.model.bus.floor
        energy = (np.maximum(demand, floor) * arm.steps / mean).sum(axis=1)
        kept = (
            (path_speed <= TOLERANCE * self._fastest).all(axis=1)
            & _within(torque, limits.torque)
            & _within(joint_acceleration, limits.acceleration)
        )
        return np.where(kept, energy, np.inf), (arm.steps / mean).sum(axis=1)


def _within(values: Array, limit: Array) -> Mask:
    """Whether values [k, N, n] keep limits [n], for each k."""
    return np.asarray((np.abs(values).max(axis=1) <= TOLERANCE * limit).all(axis=1))


def _progress(move: ProgrammedMove, arm: PathDynamics) -> tuple[Array, Array]:
    """Travel [N + 1] at the ends of the intervals of a path, and its derivative by the path."""
    if move.line is None:  # straight in joint space: travel is proportional to the path
        return move.distance * arm.s, np.full(len(arm.s), move.distance)
    motion = move.motion(move.speed, move.acceleration)
    time = np.linspace(0.0, motion.duration, PROGRESS_SAMPLES)
    q, _, _ = motion.sample(time)
    travel, _, _ = Trapezoid(move.distance, move.speed, move.acceleration).sample(time)
    way = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(q, axis=0), axis=1))])
    further = np.concatenate([[True], np.diff(way) > 0.0])
    along = PchipInterpolator(way[further] / way[-1], travel[further])
    return np.clip(along(arm.s), 0.0, move.distance), np.asarray(along(arm.s, 1))
