# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Search for mounting and payload in motor currents, where target_moment was not recorded.

The current of a joint is linear in its load (slope 1/k_t), motor inertia and friction.
The search finds the mounting and payload that explain the currents of all joints best.
For a given setup the rest is linear (variable projection, Golub and Pereyra 1973), so
Gram matrices suffice. The stated setup is kept unless the currents clearly contradict it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from operator import attrgetter

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from ur_energy_model.consistency.controller_torque import TorqueColumns
from ur_energy_model.identification.filtered_motion import ParallelFilter
from ur_energy_model.identification.least_squares import joint_gram_matrices
from ur_energy_model.identification.recording import SessionData
from ur_energy_model.identification.reflected_inertia import expected_inertia
from ur_energy_model.identification.target_moment import CENTER, GRAVITY, MASS
from ur_energy_model.identification.torque_constants import ARM_SPREAD
from ur_energy_model.model.friction_terms import SMOOTHING
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup, inertial_parameters
from ur_energy_model.typing import Array

LONGEST = 90.0  # motion used by the search [s]; more adds little
STATED_STD = np.repeat([0.02, 0.05, 0.01], [3, 1, 3])
"""Spread around a stated setup: direction of gravity, mass [kg], centre of mass [m]."""
SEARCHED_STD = np.repeat([2.0, 2.0, 0.15], [3, 1, 3])
"""Spread of the search around a stated setup, of the same quantities."""
EVIDENCE = 30.0
"""Gain in twice the log-likelihood from which currents contradict the stated setup; one
second of motion counts as one observation of each joint."""
LEAST_TILT = np.radians(5.0)
"""Smaller differences from the stated mounting are ignored [rad]."""
_LOAD, _INERTIA, _VISCOUS, _COULOMB = range(4)
"""Coefficients that are fitted for each joint: 1/k_t, inertia error, two frictions."""
_COEFFICIENTS = slice(0, 4)
_CURRENT = 4  # place of the current behind the coefficients
_BESIDE_LOAD = 4  # columns behind the columns of the load: two frictions, current, and 1
_ONE = -1  # the last of these columns, whose products are sums over the samples
_FLOOR = 0.01  # model error of a current, relative
_NO_CURRENT = 1e-6  # further model error of a current [A]
_LENGTH_STD = 0.05  # spread of the length of the direction about 1
_STARTS = 2  # mountings from which the search starts
_GRADIENT = 0.1  # gradient of the cost at which it ends
_ITERATIONS = 40  # most iterations from each start
_STEP = 1e-3  # step of finite differences


@dataclass(frozen=True)
class FoundMounting:
    """Setup after the search.

    Attributes:
        setup: setup as stated, or as found where the currents contradict the stated one.
        contradicted: whether the currents contradict the stated setup.
        tilt: angle between found and stated gravity [rad].
        load_error: relative standard deviation of each joint's load due to the setup [n].
    """

    setup: Setup
    contradicted: bool
    tilt: float
    load_error: Array


def find_mounting(
    robot: RobotDescription, recordings: Sequence[SessionData], stated: Setup
) -> FoundMounting | None:
    """Search the common setup of recordings in their currents.

    Args:
        robot: the arm.
        recordings: recordings of one arm.
        stated: mounting and payload, kept unless the currents clearly contradict them.

    Returns:
        The setup; None where the payload set in the controller differs between
        recordings.
    """
    first = recordings[0].controller_payload
    for recording in recordings[1:]:
        if not np.array_equal(first, recording.controller_payload, equal_nan=True):
            return None
    columns = TorqueColumns(robot)
    seconds = 0.0
    width = columns.width + _BESIDE_LOAD
    grams = np.zeros((robot.dof, width, width))
    for recording in recordings:
        narrow = ParallelFilter(recording.cutoff)
        for motion in recording.motions:
            if seconds > LONGEST:
                break
            load = columns(motion.q, motion.qd, motion.qdd)
            friction = np.stack([motion.qd, np.tanh(motion.qd / SMOOTHING)], axis=2)
            rows = np.concatenate([load, friction, motion.current[..., None]], axis=2)
            for gram, duration in joint_gram_matrices(
                motion, rows, narrow, moving_only=True
            ):
                grams += gram
                seconds += duration
    if not grams[:, _ONE, _ONE].any():
        return FoundMounting(stated, False, 0.0, np.zeros(robot.dof))
    return _Search(columns, grams, seconds, stated).fit()


class _Search:
    """Search of the setup that explains the Gram matrices [n, width + 4, width + 4] best.

    A setup is a vector [7]: direction of gravity, mass [kg] and centre of mass [m] of the
    payload. The width is the number of columns of the load.

    Args:
        columns: columns of the load, of an arm with n joints.
        gram: Gram matrices of load, viscous and Coulomb friction, current, and 1.
        seconds: time of the motion [s].
        stated: the stated setup.
    """

    def __init__(
        self, columns: TorqueColumns, gram: Array, seconds: float, stated: Setup
    ) -> None:
        self._columns = columns
        self._gram = gram
        self._given = stated
        robot = columns.robot
        counts = gram[:, _ONE, _ONE]
        moving = np.flatnonzero(counts > 0)
        self._moving = moving
        self._counts = counts[moving]
        self._ratio = robot.gear_ratio[moving]
        self._constant = robot.torque_constant[moving]
        observations = counts[moving] * seconds / max(counts.max(), 1.0)
        self._independent = np.maximum(observations, 1.0)
        self._inertia = expected_inertia(robot)
        self._length = float(np.linalg.norm(stated.gravity))
        direction = stated.gravity / self._length
        payload = stated.payload
        self._stated = np.array([*direction, payload.mass, *payload.center_of_mass])

    def fit(self) -> FoundMounting:
        """The setup of least cost, started from the best of 27 mountings, if evidence is enough."""
        tries = [self._stated]
        for way in product((-1.0, 0.0, 1.0), repeat=3):
            if any(way):
                mounting = self._stated.copy()
                mounting[GRAVITY] = np.array(way) / np.linalg.norm(way)
                tries.append(mounting)
        tries.sort(key=self._cost)
        ends = [self._descended(start) for start in tries[:_STARTS]]
        found = np.asarray(min(ends, key=attrgetter("fun")).x)
        gain = self._deviance(self._stated) - self._cost(found)
        direction = found[GRAVITY] / np.linalg.norm(found[GRAVITY])
        tilt = float(np.arccos(np.clip(self._stated[GRAVITY] @ direction, -1.0, 1.0)))
        if gain < EVIDENCE or tilt < LEAST_TILT:
            error = self._load_error(self._stated, STATED_STD)
            return FoundMounting(self._given, False, 0.0, error)
        payload = Payload(max(float(found[MASS]), 0.0), found[CENTER].copy())
        error = self._load_error(found, SEARCHED_STD)
        return FoundMounting(Setup(self._length * direction, payload), True, tilt, error)

    def _descended(self, start: Array) -> OptimizeResult:
        """Minimum of the cost from a start [7].

        A logarithm is no square, and least squares on its root converges poorly, hence
        BFGS.
        """
        return minimize(
            self._cost,
            start,
            method="BFGS",
            options={"gtol": _GRADIENT, "maxiter": _ITERATIONS},
        )

    def _cost(self, setup: Array) -> float:
        """Deviance, with the squared deviations from the stated setup and a unit direction."""
        length = (float(np.linalg.norm(setup[GRAVITY])) - 1.0) / _LENGTH_STD
        deviations = (setup - self._stated) / SEARCHED_STD
        penalty = float(np.square(deviations).sum()) + length**2
        return self._deviance(setup) + penalty

    def _load(self, setup: Array) -> Array:
        """Coefficients [width] of the load's columns."""
        payload = inertial_parameters(
            max(float(setup[MASS]), 0.0), setup[CENTER], np.zeros(6)
        )
        gravity = self._length * setup[GRAVITY]
        return self._columns.coefficients(gravity, payload, self._inertia.value)

    def _deviance(self, setup: Array) -> float:
        """Twice the negative log-likelihood of the currents, up to a constant.

        With noise of unknown size that is, for each joint, m log(mean square) of m
        independent residuals: halving the error of a quiet joint counts as much as
        halving the error of a noisy one, so that all joints count. One second of
        motion counts as one observation, as residuals are correlated in time. The mean
        square has a floor of one percent of the current, which the model errs in any
        case; a smaller error is no evidence.

        Torque constant (its inverse), inertia error and two frictions of a joint are
        fitted for this setup. They have their priors: without them, a negative torque
        constant or an absurd inertia would explain the currents in a wrong mounting.
        """
        width = self._columns.width
        joints = self._moving
        ratio = self._ratio
        # Combinations of the columns that belong to the coefficients, and the current.
        basis = np.zeros((len(joints), width + _BESIDE_LOAD, _CURRENT + 1))
        basis[:, :width, _LOAD] = self._load(setup) / ratio[:, None]
        # The last columns of the load are the accelerations of the joints.
        accelerations = width - self._columns.robot.dof + joints
        basis[np.arange(len(joints)), accelerations, _INERTIA] = 1.0 / ratio
        basis[:, width, _VISCOUS] = 1.0
        basis[:, width + 1, _COULOMB] = 1.0
        basis[:, width + 2, _CURRENT] = 1.0
        small = np.swapaxes(basis, 1, 2) @ self._gram[joints] @ basis
        left = small[:, _COEFFICIENTS, _COEFFICIENTS]
        right = small[:, _COEFFICIENTS, _CURRENT]
        total = small[:, _CURRENT, _CURRENT]
        floor = _FLOOR**2 * total + _NO_CURRENT**2 * self._counts
        free = _solved(left, right)
        explained = np.einsum("ji,ji->j", right, free)
        unexplained = np.maximum(total - explained, 0.0) + floor
        noise = (unexplained / self._independent)[:, None]
        known = np.isfinite(self._constant)
        fitted = np.maximum(free[:, _LOAD], 1e-9)
        inverse = np.where(known, 1.0 / self._constant, fitted)
        mean = np.zeros_like(free)
        precision = np.zeros_like(free)
        mean[:, _LOAD] = inverse
        precision[:, _LOAD] = np.where(known, (ARM_SPREAD * inverse) ** -2.0, 0.0)
        precision[:, _INERTIA] = (self._inertia.std[joints] * inverse) ** -2.0
        damped = left + (noise * precision)[:, :, None] * np.eye(_CURRENT)
        held = _solved(damped, right + noise * precision * mean)
        rest = total + np.einsum("ji,jik,jk->j", held, left, held)
        beside = noise * precision * np.square(held - mean) - 2 * right * held
        rest += beside.sum(axis=1)
        rest = (np.maximum(rest, 0.0) + floor) / self._counts
        return float(self._independent @ np.log(rest))

    def _load_error(self, setup: Array, std: Array) -> Array:
        """Relative standard deviation of the loads [n] due to the uncertainty of the setup.

        The curvature of the deviance, by finite differences, narrows the prior.

        Args:
            setup: setup as stated or found [7].
            std: standard deviations of its prior [7].
        """
        size = len(setup)
        steps = _STEP * np.eye(size)
        middle = self._deviance(setup)
        curvature = np.zeros((size, size))
        once = [self._deviance(setup + step) for step in steps]
        for i in range(size):
            for k in range(i + 1):
                both = self._deviance(setup + steps[i] + steps[k])
                second = (both - once[i] - once[k] + middle) / _STEP**2
                curvature[i, k] = second
                curvature[k, i] = second
        values, vectors = np.linalg.eigh(curvature * np.outer(std, std) / 2)
        spread = vectors / np.sqrt(1.0 + np.maximum(values, 0.0)) * std[:, None]
        load = self._load(setup)
        width = self._columns.width
        changes = [self._load(setup + _STEP * change) - load for change in spread.T]
        off = np.array(changes) / _STEP
        gram = self._gram[:, :width, :width]
        error = np.einsum("ci,jik,ck->j", off, gram, off)
        whole = np.einsum("i,jik,k->j", load, gram, load)
        return np.asarray(np.sqrt(np.maximum(error, 0.0) / np.maximum(whole, 1e-12)))


def _solved(left: Array, right: Array) -> Array:
    """Solutions [n, k] of smallest norm of symmetric systems [n, k, k]."""
    inverse = np.linalg.pinv(left, rcond=1e-10, hermitian=True)
    return np.asarray(np.einsum("jik,jk->ji", inverse, right))
