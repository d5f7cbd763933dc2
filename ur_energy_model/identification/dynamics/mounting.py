"""Mounting and payload as motor currents show them, where no target_moment does.

Every joint's current is a line through its load, with unknown slope (1/k_t), motor inertia and
friction. Which mounting and payload leave the least of the currents unexplained on all joints
together is searched on Gram matrices: for a given setup the rest is linear (variable projection,
Golub and Pereyra 1973). What was stated stands unless the currents contradict it clearly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import minimize

from ur_energy_model.identification.dynamics.inertia import expected_inertia
from ur_energy_model.identification.dynamics.torque_columns import TorqueColumns
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.regression.joint_grams import joint_grams
from ur_energy_model.identification.regression.signals import FilteredMotion, NarrowFilter
from ur_energy_model.model.friction.terms import SMOOTHING
from ur_energy_model.model.inertial_parameters import inertial_parameters
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.typing import Array

LONGEST = 90.0
"""Motion that the search looks at [s]; more adds little."""
STATED_STD = np.array([0.02] * 3 + [0.05] + [0.01] * 3)
"""How far a setup may be off what was stated: direction of gravity, mass [kg], centre [m]."""
SEARCHED_STD = np.array([2.0] * 3 + [2.0] + [0.15] * 3)
"""The same where the setup is searched."""
CONSTANT_SPREAD = 0.12
"""Spread of torque constants between arms of one type (factory calibrations: over 10 %)."""
EVIDENCE = 30.0
"""Gain in twice the log-likelihood from which currents contradict what was stated; a second of
motion counts as one observation of each joint."""
LEAST_TILT = np.radians(5.0)
_FLOOR = 0.01
"""Share of a current that no model explains."""
_NO_CURRENT = 1e-6
_LENGTH_STD = 0.05
_STARTS = 2
_GRADIENT = 0.1
_ITERATIONS = 40
_STEP = 1e-3


@dataclass(frozen=True)
class Mounting:
    """What currents show of the setup.

    Attributes:
        setup: the one stated, or that of the currents where they contradict it.
        contradicted: whether they do.
        tilt: of gravity against the one stated [rad].
        load_error: relative deviation of each joint's load that the setup leaves open [n].
    """

    setup: Setup
    contradicted: bool
    tilt: float
    load_error: Array


class MountingFit:
    """Gathers motions of one stated setup and searches the one that explains the currents.

    Args:
        robot: the arm, n joints.
        stated: mounting and payload as they were stated.
    """

    def __init__(self, robot: RobotDescription, stated: Setup) -> None:
        self.robot, self.stated = robot, stated
        self._columns = TorqueColumns(robot)
        self._believed = expected_inertia(robot)
        width = self._columns.width
        self._gram = np.zeros((robot.dof, width + 4, width + 4))
        self._seconds = 0.0
        down = stated.gravity
        self._length = float(np.linalg.norm(down))
        payload = stated.payload
        self._told = np.array([*(down / self._length), payload.mass, *payload.center_of_mass])

    def add(self, motion: FilteredMotion, narrow: NarrowFilter) -> None:
        """Add a motion; what comes after LONGEST is passed over."""
        if self._seconds > LONGEST:
            return
        columns = self._columns(motion.q, motion.qd, motion.qdd)
        friction = np.stack([motion.qd, np.tanh(motion.qd / SMOOTHING)], axis=2)
        rows = np.concatenate([columns, friction, motion.current[..., None]], axis=2)
        for gram, duration in joint_grams(motion, rows, narrow, moving_only=True):
            self._gram += gram
            self._seconds += duration

    def fit(self) -> Mounting:
        """The setup, and how far it leaves the joints' loads open."""
        if not self._gram[:, -1, -1].any():
            return Mounting(self.stated, False, 0.0, np.zeros(self.robot.dof))
        stated = self._deviance(self._told)
        found = self._search()
        gain = stated - self._deviance(found) - self._penalty(found, SEARCHED_STD)
        cosine = self._told[:3] @ found[:3] / np.linalg.norm(found[:3])
        tilt = float(np.arccos(np.clip(cosine, -1.0, 1.0)))
        if gain < EVIDENCE or tilt < LEAST_TILT:
            return Mounting(self.stated, False, 0.0, self._load_error(self._told, STATED_STD))
        payload = Payload(max(float(found[3]), 0.0), found[4:].copy())
        gravity = self._length * found[:3] / np.linalg.norm(found[:3])
        error = self._load_error(found, SEARCHED_STD)
        return Mounting(Setup(gravity, payload), True, tilt, error)

    def _search(self) -> Array:
        """The setup of least deviance, from the best of 27 mountings to start from."""
        steps = (-1.0, 0.0, 1.0)
        ways = [np.array(way) for way in product(steps, steps, steps) if any(way)]
        tries = [self._told, *(np.append(w / np.linalg.norm(w), self._told[3:]) for w in ways)]

        def cost(setup: Array) -> float:
            return self._deviance(setup) + self._penalty(setup, SEARCHED_STD)

        tries.sort(key=cost)
        ends = [
            minimize(
                cost, start, method="BFGS", options={"gtol": _GRADIENT, "maxiter": _ITERATIONS}
            )
            for start in tries[:_STARTS]
        ]
        return np.asarray(min(ends, key=lambda end: float(end.fun)).x)

    def _penalty(self, setup: Array, std: Array) -> float:
        length = (float(np.linalg.norm(setup[:3])) - 1.0) / _LENGTH_STD
        return float(np.square((setup - self._told) / std).sum()) + length**2

    def _load(self, setup: Array) -> Array:
        """Coefficients [width] of the load's columns."""
        mass = max(float(setup[3]), 0.0)
        payload = inertial_parameters(mass, setup[4:], np.zeros(6))
        return self._columns.coefficients(self._length * setup[:3], payload, self._believed.value)

    def _deviance(self, setup: Array) -> float:
        """Twice the negative log-likelihood of the currents, but for a constant."""
        load = self._load(setup)
        most = max(float(self._gram[:, -1, -1].max()), 1.0)
        return sum(
            self._joint(j, load, self._seconds / most)
            for j in np.flatnonzero(self._gram[:, -1, -1] > 0).tolist()
        )

    def _joint(self, j: int, load: Array, seconds: float) -> float:
        gram, width, ratio = self._gram[j], self._columns.width, self.robot.gear_ratio[j]
        basis = np.zeros((len(gram), 5))
        basis[:width, 0] = load / ratio
        basis[width - self.robot.dof + j, 1] = 1.0 / ratio
        basis[width, 2] = basis[width + 1, 3] = basis[width + 2, 4] = 1.0
        small = basis.T @ gram @ basis
        count, total = gram[-1, -1], small[4, 4]
        floor = _FLOOR**2 * total + _NO_CURRENT**2 * count
        left, right = small[:4, :4], small[:4, 4]
        free = np.linalg.lstsq(left, right, rcond=1e-10)[0]
        independent = max(count * seconds, 1.0)
        noise = (max(total - right @ free, 0.0) + floor) / independent
        mean, precision = self._beliefs(j, float(free[0]))
        held = np.linalg.lstsq(
            left + noise * np.diag(precision), right + noise * precision * mean, rcond=1e-10
        )[0]
        rest = total - 2 * right @ held + held @ left @ held
        rest += noise * precision @ np.square(held - mean)
        return float(independent * np.log((max(rest, 0.0) + floor) / count))

    def _beliefs(self, j: int, slope: float) -> tuple[Array, Array]:
        """Means and inverse variances of 1/k_t, excess of inertia / k_t and friction [4]."""
        constant = self.robot.torque_constant[j]
        known = np.isfinite(constant)
        inverse = 1.0 / constant if known else max(slope, 1e-9)
        spread = self._believed.std[j] * inverse
        precision = np.array([0.0, 1.0 / spread**2, 0.0, 0.0])
        if known:
            precision[0] = 1.0 / (CONSTANT_SPREAD * inverse) ** 2
        return np.array([inverse, 0.0, 0.0, 0.0]), precision

    def _load_error(self, setup: Array, std: Array) -> Array:
        """Relative deviation of the loads [n] under what the setup is uncertain by."""
        size = len(setup)
        steps = np.diag(_STEP * np.ones(size))
        middle = self._deviance(setup)
        curvature = np.zeros((size, size))
        once = [self._deviance(setup + step) for step in steps]
        for i in range(size):
            for k in range(i + 1):
                both = self._deviance(setup + steps[i] + steps[k])
                curvature[i, k] = curvature[k, i] = (both - once[i] - once[k] + middle) / _STEP**2
        values, vectors = np.linalg.eigh(curvature * np.outer(std, std) / 2)
        spread = vectors / np.sqrt(1.0 + np.maximum(values, 0.0)) * std[:, None]
        load, width = self._load(setup), self._columns.width
        gram = self._gram[:, :width, :width]
        error = np.zeros(self.robot.dof)
        for change in (1e-3 * spread).T:
            off = (self._load(setup + change) - load) / 1e-3
            error += np.einsum("i,jik,k->j", off, gram, off)
        whole = np.einsum("i,jik,k->j", load, gram, load)
        return np.asarray(np.sqrt(np.maximum(error, 0.0) / np.maximum(whole, 1e-12)))


def find_mounting(
    robot: RobotDescription, recordings: Sequence[Recording], stated: Setup
) -> Mounting | None:
    """What the currents of recordings show of their common setup.

    None where the payload told to the controller differs between them: then it is as stated.
    """
    told = [recording.told_payload for recording in recordings]
    if any(not np.array_equal(told[0], other, equal_nan=True) for other in told[1:]):
        return None
    fit = MountingFit(robot, stated)
    for recording in recordings:
        narrow = NarrowFilter(recording.cutoff)
        for motion in recording.motions():
            fit.add(motion, narrow)
    return fit.fit()
