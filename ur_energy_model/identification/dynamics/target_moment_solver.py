"""Weighted nonlinear least squares for setups and reflected inertias, on Gram matrices.

Unknowns: n reflected inertias (and 6 n deviations of link tensors) common to all recordings, and
per recording gravity, payload and the remaining delay of target_moment. All priors are weak: they
decide only what the motion leaves open. Standard deviations are cluster-robust: blocks of time,
not samples, count as independent, because the residuals are model errors that last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from ur_energy_model.identification.dynamics.physical_consistency import (
    nearest_possible_tensors,
    possible_inertia,
)
from ur_energy_model.identification.dynamics.torque_columns import TorqueColumns
from ur_energy_model.identification.dynamics.torque_information import TorqueInformation
from ur_energy_model.model.inertial_parameters import entries_of, inertial_parameters, tensor_of
from ur_energy_model.model.link_tensors import LinkTensors
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.typing import Array, Mask

GRAVITY_STD = 3.0
"""Prior of each component of gravity [m/s^2]: the mounting may well be forgotten."""
MASS_STD = 2.0
"""Prior of the payload [kg]."""
_MAGNITUDE_STD = 0.02
_CENTER_STD = 0.3
_TENSOR_STD = 1e-3
_DELAY_STD = 0.003
_INERTIA_STD = 0.2
_UNKNOWN_INERTIA_STD = 10.0
_LINK_TENSOR_STD = 0.05
_FIXED_STD = 1e-6
_NOISE_FLOOR = 1e-3
_ROUNDS = 4
_LOCAL = 14
"""Unknowns of one recording: gravity 3, mass, centre 3, payload tensor 6, delay."""


@dataclass(frozen=True)
class SetupSolution:
    """What was found for one recording.

    Attributes:
        setup: mounting and payload.
        gravity_std, mass_std, center_std: standard deviations [3], scalar, [3].
        delay: of target_moment on top of the nominal one [s].
        squares: sum of squared torque residuals per joint [n], (N m)^2.
        spread: sum of squared deviations of the torque from its mean [n], (N m)^2.
    """

    setup: Setup
    gravity_std: Array
    mass_std: float
    center_std: Array
    delay: float
    squares: Array
    spread: Array


@dataclass(frozen=True)
class ArmSolution:
    """What is common to all recordings.

    Attributes:
        reflected_inertia, std: joint side [n], kg m^2.
        std_given_tensors: standard deviation of the inertia beside the link tensors used [n]; the
            first joint's is one with its link's tensor, so that only their sum can be exact.
        link_tensors: of the moving links, where they were asked for.
        moved: joints that moved in some recording [n].
        recordings: one per recording.
    """

    reflected_inertia: Array
    std: Array
    std_given_tensors: Array
    link_tensors: LinkTensors | None
    moved: Mask
    recordings: tuple[SetupSolution, ...]


class TargetMomentSolver:
    """Solves for the setups of recordings of one arm.

    Args:
        columns: of the arm's torque.
        data: one entry per setup, each with samples.
    """

    def __init__(self, columns: TorqueColumns, data: Sequence[TorqueInformation]) -> None:
        self.columns, self.robot, self.data = columns, columns.robot, data
        n = self.robot.dof
        self.common = n + (6 * n if columns.tensors else 0)
        self.moved = np.any([entry.moved for entry in data], axis=0)
        self.roots = [_root(entry.gram) for entry in data]
        self.noise = [np.ones(n) for _ in data]
        self.mean, self.spread = self._priors()

    def solve(self) -> ArmSolution:
        """Iterates least squares and noise levels; borrows the mounting where one cannot tell."""
        unknowns, std = self._fit(self.mean)
        if self._borrow_gravity(unknowns, std):
            unknowns, std = self._fit(unknowns)
        n = self.robot.dof
        tensors, inertia_std = None, std[:n]
        if self.columns.tensors:
            tensors = self._possible_tensors(unknowns, std)
            unknowns, std = self._fit_beside(tensors, unknowns)
        return ArmSolution(
            reflected_inertia=unknowns[:n],
            std=inertia_std,
            std_given_tensors=std[:n],
            link_tensors=tensors,
            moved=self.moved,
            recordings=tuple(self._local_solution(unknowns, std, i) for i in range(len(self.data))),
        )

    def _possible_tensors(self, unknowns: Array, std: Array) -> LinkTensors:
        """Tensors that bodies can have, nearest to the deviations found."""
        where = slice(self.robot.dof, self.common)
        covariance = np.linalg.inv(self._information(unknowns)[0])[where, where]
        values = nearest_possible_tensors(
            np.linalg.inv(covariance), unknowns[where], self.robot, self.spread[where]
        )
        spreads = std[where].reshape(-1, 6)
        return LinkTensors(values, np.array([tensor_of(entries) for entries in spreads]))

    def _fit_beside(self, tensors: LinkTensors, start: Array) -> tuple[Array, Array]:
        """Unknowns and their standard deviations with the link tensors settled."""
        where = slice(self.robot.dof, self.common)
        change = tensors.values - self.robot.inertia[~self.robot.fixed]
        self.mean[where] = np.concatenate([entries_of(tensor) for tensor in change])
        self.spread[where] = _FIXED_STD
        return self._fit(
            np.concatenate([start[: where.start], self.mean[where], start[where.stop :]])
        )

    def _priors(self) -> tuple[Array, Array]:
        nominal = self.robot.reflected_inertia
        known = np.isfinite(nominal)
        inertia = np.where(known, nominal, 0.0)
        deviation = np.where(known, _INERTIA_STD * inertia, _UNKNOWN_INERTIA_STD)
        mean, spread = [inertia], [np.where(self.moved, deviation, _FIXED_STD)]
        if self.columns.tensors:
            mass = self.robot.mass[~self.robot.fixed]
            mean.append(np.zeros(6 * len(mass)))
            spread.append(np.repeat(np.maximum(_LINK_TENSOR_STD * mass, _FIXED_STD), 6))
        for entry in self.data:
            setup = entry.stated.setup
            payload = setup.payload
            mean += [
                setup.gravity,
                np.array([payload.mass]),
                payload.center_of_mass,
                entries_of(payload.inertia),
                np.zeros(1),
            ]
            spread += [
                np.full(3, GRAVITY_STD),
                np.array([MASS_STD]),
                np.full(3, _CENTER_STD),
                np.full(6, _TENSOR_STD),
                np.array([_DELAY_STD]),
            ]
        return np.concatenate(mean), np.concatenate(spread)

    def _at(self, index: int) -> slice:
        """Unknowns of one recording."""
        start = self.common + _LOCAL * index
        return slice(start, start + _LOCAL)

    def _fit(self, start: Array) -> tuple[Array, Array]:
        """Unknowns and their standard deviations."""
        masses = self.common + 3 + _LOCAL * np.arange(len(self.data))
        lower = np.full(len(self.mean), -np.inf)
        lower[masses] = 0.0
        unknowns = start.copy()
        unknowns[masses] = np.maximum(unknowns[masses], 0.5)  # a massless body has no centre
        for _ in range(_ROUNDS):
            unknowns = least_squares(
                self._residual, unknowns, x_scale=self.spread, bounds=(lower, np.inf)
            ).x
            for index, entry in enumerate(self.data):
                rms = np.sqrt(self._squares(unknowns, index) / entry.samples)
                self.noise[index] = np.maximum(rms, _NOISE_FLOOR)
        return unknowns, np.sqrt(np.diag(self._covariance(unknowns)))

    def _borrow_gravity(self, unknowns: Array, std: Array) -> bool:
        """Recordings that cannot tell the mounting take it as prior from the surest one.

        An arm is rarely remounted between recordings of one identification.
        """
        worst = [float(std[self._at(i)][:3].max()) for i in range(len(self.data))]
        best = int(np.argmin(worst))
        unsure = [i for i, value in enumerate(worst) if value > 0.1 * GRAVITY_STD]
        if worst[best] > 0.1 * GRAVITY_STD or not unsure:
            return False
        for i in unsure:
            where = slice(self._at(i).start, self._at(i).start + 3)
            self.mean[where] = unknowns[self._at(best)][:3]
            self.spread[where] = 0.1
        return True

    def _coefficients(self, unknowns: Array, index: int) -> Array:
        """Coefficients of one recording's Gram matrix whose product is the residual."""
        n = self.robot.dof
        local = unknowns[self._at(index)]
        payload = inertial_parameters(local[3], local[4:7], local[7:13])
        tensors = unknowns[n : self.common] if self.columns.tensors else None
        plain = self.columns.coefficients(local[:3], payload, unknowns[:n], tensors)
        delay = local[13]
        torque = -np.array([1.0, delay, 0.5 * delay**2])
        return np.concatenate([plain, delay * plain, torque, [0.0]])

    def _residual(self, unknowns: Array) -> Array:
        parts = []
        for index, (root, noise) in enumerate(zip(self.roots, self.noise, strict=True)):
            parts.append((root @ self._coefficients(unknowns, index) / noise[:, None]).ravel())
            magnitude = np.linalg.norm(unknowns[self._at(index)][:3])
            expected = np.linalg.norm(self.mean[self._at(index)][:3])
            parts.append(np.array([(magnitude - expected) / _MAGNITUDE_STD]))
        parts.append((unknowns - self.mean) / self.spread)
        return np.concatenate(parts)

    def _squares(self, unknowns: Array, index: int) -> Array:
        residual = self.roots[index] @ self._coefficients(unknowns, index)
        return np.asarray((residual**2).sum(axis=1))

    def _covariance(self, unknowns: Array) -> Array:
        """Sandwich covariance with blocks of time as independent units."""
        hessian, middle = self._information(unknowns)
        inverse = np.linalg.inv(hessian)
        return np.asarray(inverse @ middle @ inverse)

    def _information(self, unknowns: Array) -> tuple[Array, Array]:
        """Curvature of the sum of squares, and scatter of its slope over blocks of time."""
        prior = np.diag(1 / self.spread**2)
        for index in range(len(self.data)):
            where = self._at(index)
            direction = np.zeros(len(unknowns))
            gravity = unknowns[where][:3]
            unit = gravity / np.linalg.norm(gravity)
            direction[where.start : where.start + 3] = unit / _MAGNITUDE_STD
            prior += np.outer(direction, direction)
        hessian, middle = prior.copy(), prior.copy()
        for index, entry in enumerate(self.data):
            slopes = self._slopes(unknowns, index)
            weight = 1 / self.noise[index] ** 2
            now = self._coefficients(unknowns, index)
            hessian += slopes.T @ np.einsum("j,jik->ik", weight, entry.gram) @ slopes
            blocks = np.einsum("j,bjik->bik", weight, entry.grams.blocks)
            scores = (blocks @ now) @ slopes
            scores = scores - scores.mean(axis=0)
            middle += scores.T @ scores * (len(scores) / max(1, len(scores) - 1))
        return hessian, middle

    def _slopes(self, unknowns: Array, index: int) -> Array:
        """Change of `_coefficients` with each unknown [coefficients, unknowns]."""
        out = []
        for k, step in enumerate(1e-6 * self.spread):
            above, below = unknowns.copy(), unknowns.copy()
            above[k] += step
            below[k] -= step
            rise = self._coefficients(above, index) - self._coefficients(below, index)
            out.append(rise / (2 * step))
        return np.stack(out, axis=1)

    def _local_solution(self, unknowns: Array, std: Array, index: int) -> SetupSolution:
        local, deviation = unknowns[self._at(index)], std[self._at(index)]
        gram, count = self.data[index].gram, self.data[index].samples
        at = 2 * self.columns.width
        total = gram[:, at, at] - gram[:, at, -1] ** 2 / count
        return SetupSolution(
            setup=Setup(local[:3].copy(), _payload(local, float(deviation[3]))),
            gravity_std=deviation[:3].copy(),
            mass_std=float(deviation[3]),
            center_std=deviation[4:7].copy(),
            delay=float(local[13]),
            squares=self._squares(unknowns, index),
            spread=np.maximum(total, 0.0),
        )


def _payload(local: Array, mass_std: float) -> Payload:
    """Payload that can exist; none where the mass does not differ from zero."""
    mass = float(local[3])
    if mass < max(0.002, 2 * mass_std):
        return Payload()
    return Payload(mass, local[4:7].copy(), possible_inertia(tensor_of(local[7:13])))


def _root(gram: Array) -> Array:
    """R [n, k, k] with R' R = gram, which may be singular."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(np.sqrt(np.clip(values, 0, None))[:, :, None] * np.swapaxes(vectors, 1, 2))
