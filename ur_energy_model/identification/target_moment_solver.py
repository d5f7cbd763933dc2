"""Nonlinear least squares on target_moment: setups of recordings and reflected inertias of the arm.

Unknowns: n reflected inertias (and 6 n deviations of link tensors) common to all recordings, and
per recording gravity, payload and the remaining delay of target_moment. All priors are weak: they
determine only what the motion does not show. Standard deviations are cluster-robust: blocks of
time count as independent, not samples, because the residuals are persistent model errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares

from ur_energy_model.identification.least_squares import score_scatter
from ur_energy_model.identification.physical_consistency import nearest_possible_tensors
from ur_energy_model.identification.setup_prior import (
    CENTER,
    COUNT,
    DELAY,
    GRAVITY,
    GRAVITY_STD,
    MASS,
    PRIOR_STD,
    TENSOR,
    ArmSolution,
    SetupSolution,
    payload_from,
    stated_unknowns,
)
from ur_energy_model.identification.target_moment_data import (
    TorqueColumns,
    TorqueInformation,
    residual_coefficients,
)
from ur_energy_model.model.energy_model import LinkTensors
from ur_energy_model.model.setup import (
    Setup,
    entries_of,
    inertial_parameters,
    inertial_slopes,
    tensor_of,
)
from ur_energy_model.typing import Array, Indices

# Symmetric matrices of unknowns common to all setups and of unknowns of one setup each.
#
# Unknowns of different setups never occur in one residual, so that information matrix and scatter
# of scores have the form of an arrow: time and memory grow in proportion to the number of setups.


@dataclass(frozen=True)
class ArrowMatrix:
    """A symmetric matrix of m common unknowns, followed by c unknowns of each of s setups.

    Attributes:
        common: [m, m].
        border: common with own unknowns [s, m, c].
        own: of each setup [s, c, c].
    """

    common: Array
    border: Array
    own: Array

    @classmethod
    def zeros(cls, common: int, setups: int, own: int) -> ArrowMatrix:
        """Matrix of zeros."""
        return cls(
            np.zeros((common, common)),
            np.zeros((setups, common, own)),
            np.zeros((setups, own, own)),
        )

    def add(self, index: int, matrix: Array) -> None:
        """Add a matrix [m + c, m + c] of the common unknowns and those of one setup."""
        m = len(self.common)
        self.common[...] += matrix[:m, :m]
        self.border[index] += matrix[:m, m:]
        self.own[index] += matrix[m:, m:]

    def add_diagonal(self, values: Array) -> None:
        """Add to the diagonal [m + s c]."""
        common, own = self._split(values)
        self.common[np.diag_indices_from(self.common)] += common
        places = np.arange(own.shape[1])
        self.own[:, places, places] += own

    @property
    def diagonal(self) -> Array:
        """[m + s c]."""
        own = np.diagonal(self.own, axis1=1, axis2=2)
        return np.concatenate([np.diag(self.common), own.ravel()])

    def copy(self) -> ArrowMatrix:
        """Independent matrix with the same values."""
        return ArrowMatrix(self.common.copy(), self.border.copy(), self.own.copy())

    @property
    def common_inverse(self) -> Array:
        """Common part [m, m] of the inverse."""
        return np.asarray(np.linalg.inv(self._complement(self._coupling())))

    def solve(self, right: Array) -> Array:
        """X [m + s c] with matrix @ x = right."""
        common, own = self._split(right)
        coupling = self._coupling()
        rest = common - np.einsum("smc,sc->m", np.swapaxes(coupling, 1, 2), own)
        first = np.linalg.solve(self._complement(coupling), rest)
        second = np.linalg.solve(self.own, own[:, :, None])[:, :, 0] - coupling @ first
        return np.concatenate([first, second.ravel()])

    def sandwich(self, middle: ArrowMatrix) -> Array:
        """Diagonal [m + s c] of inverse @ middle @ inverse."""
        coupling = self._coupling()
        inverse = np.linalg.inv(self._complement(coupling))
        mixed = middle.border - np.swapaxes(coupling, 1, 2) @ middle.own
        # scatter of the common scores once the setups' own unknowns are eliminated
        reduced = middle.common - (
            middle.border @ coupling + np.swapaxes(mixed @ coupling, 1, 2)
        ).sum(axis=0)
        outer = inverse @ reduced @ inverse
        own = np.linalg.inv(self.own)
        seen = -coupling @ inverse
        cross = seen @ mixed @ own
        variance = coupling @ outer @ np.swapaxes(coupling, 1, 2)
        variance = variance + cross + np.swapaxes(cross, 1, 2) + own @ middle.own @ own
        return np.concatenate([np.diag(outer), np.diagonal(variance, axis1=1, axis2=2).ravel()])

    def _coupling(self) -> Array:
        """Own unknowns that each common one brings with it, own^-1 border' [s, c, m]."""
        return np.asarray(np.linalg.solve(self.own, np.swapaxes(self.border, 1, 2)))

    def _complement(self, coupling: Array) -> Array:
        """Schur complement of the own parts [m, m]."""
        return np.asarray(self.common - (self.border @ coupling).sum(axis=0))

    def _split(self, values: Array) -> tuple[Array, Array]:
        m = len(self.common)
        return values[:m], values[m:].reshape(len(self.own), -1)


_MAGNITUDE_STD = 0.02
"""Prior of the magnitude of gravity [m/s^2]."""
_INERTIA_STD = 0.2
_UNKNOWN_INERTIA_STD = 10.0
_LINK_TENSOR_STD = 0.05
_FIXED_STD = 1e-6
_BORROWED_STD = 0.1
"""Prior of each component of a borrowed gravity [m/s^2]."""
_NOISE_FLOOR = 1e-3
_ROUNDS = 4
_FEW = 8
"""Setups up to which all unknowns are solved for as one dense problem."""
_STEPS = 50
_CONVERGED = 1e-8
"""Relative reduction of the squares below which the iteration ends."""


class TargetMomentSolver:
    """Solves for the setups and inertias of one arm.

    Args:
        columns: of the arm's torque.
        data: one entry per setup, each with samples.
    """

    def __init__(self, columns: TorqueColumns, data: Sequence[TorqueInformation]) -> None:
        self.columns, self.robot, self.data = columns, columns.robot, data
        n = self.robot.dof
        self._inertias = slice(0, n)
        self._tensors = slice(n, 7 * n if columns.tensors else n)
        self.moved = np.any([entry.moved for entry in data], axis=0)
        self.roots = [_root(entry.gram) for entry in data]
        self.noise = [np.ones(n) for _ in data]
        self.mean, self.spread = self._priors()

    def solve(self) -> ArmSolution:
        """Least squares with iterated noise levels.

        Setups that do not determine the mounting borrow it from one that does.
        """
        unknowns, std = self._fit(self.mean)
        if self._borrow_gravity(unknowns, std):
            unknowns, std = self._fit(unknowns)
        tensors, inertia_std = None, std[self._inertias]
        if self.columns.tensors:
            tensors = self._possible_tensors(unknowns, std)
            unknowns, std = self._fit_beside(tensors, unknowns)
        return ArmSolution(
            reflected_inertia=unknowns[self._inertias],
            std=inertia_std,
            std_given_tensors=std[self._inertias],
            link_tensors=tensors,
            moved=self.moved,
            setups=tuple(self._setup_solution(unknowns, std, i) for i in range(len(self.data))),
        )

    def _possible_tensors(self, unknowns: Array, std: Array) -> LinkTensors:
        """Physically possible tensors nearest to the deviations found."""
        where = self._tensors
        covariance = self._normal_equations(unknowns)[0].common_inverse[where, where]
        values = nearest_possible_tensors(
            np.asarray(np.linalg.inv(covariance)), unknowns[where], self.robot, self.spread[where]
        )
        spreads = std[where].reshape(-1, 6)
        return LinkTensors(values, np.array([tensor_of(entries) for entries in spreads]))

    def _fit_beside(self, tensors: LinkTensors, start: Array) -> tuple[Array, Array]:
        """Unknowns and their standard deviations for given link tensors."""
        where = self._tensors
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
            mean.append(stated_unknowns(entry.stated.setup))
            spread.append(PRIOR_STD)
        return np.concatenate(mean), np.concatenate(spread)

    def _own(self, index: int) -> slice:
        """Unknowns of one setup."""
        start = self._tensors.stop + COUNT * index
        return slice(start, start + COUNT)

    def _fit(self, start: Array) -> tuple[Array, Array]:
        """Unknowns and their standard deviations."""
        masses = [self._own(index).start + MASS for index in range(len(self.data))]
        lower = np.full(len(self.mean), -np.inf)
        lower[masses] = 0.0
        unknowns = start.copy()
        unknowns[masses] = np.maximum(unknowns[masses], 0.5)  # a massless body has no centre
        for _ in range(_ROUNDS):
            if len(self.data) > _FEW:
                unknowns = self._descend(unknowns, lower)
            else:
                unknowns = least_squares(
                    self._residual,
                    unknowns,
                    self._jacobian,
                    x_scale=self.spread,
                    bounds=(lower, np.inf),
                ).x
            for index, entry in enumerate(self.data):
                rms = np.sqrt(self._squares(unknowns, index) / entry.samples)
                self.noise[index] = np.maximum(rms, _NOISE_FLOOR)
        information, _ = self._normal_equations(unknowns)
        scatter = self._scatter(unknowns)  # blocks of time independent
        return unknowns, np.sqrt(information.sandwich(scatter))

    def _descend(self, unknowns: Array, lower: Array) -> Array:
        """Levenberg-Marquardt steps, each in time proportional to the number of setups."""
        cost, damping = float(np.square(self._residual(unknowns)).sum()), 1e-4
        for _ in range(_STEPS):
            information, gradient = self._normal_equations(unknowns)
            held = (unknowns <= lower) & (gradient > 0)
            gain = 0.0
            while gain <= 0.0 and damping < 1e6:
                damped = information.copy()
                damped.add_diagonal(np.where(held, 1e12, damping) * information.diagonal)
                step = np.where(held, 0.0, damped.solve(-gradient))
                trial = np.maximum(unknowns + step, lower)
                gain = cost - float(np.square(self._residual(trial)).sum())
                damping *= 0.1 if gain > 0.0 else 10.0
            if gain <= 0.0:
                break
            unknowns, cost = trial, cost - gain
            if gain < _CONVERGED * cost:
                break
        return unknowns

    def _borrow_gravity(self, unknowns: Array, std: Array) -> bool:
        """Take the best-determined mounting as prior for setups that do not determine theirs.

        An arm is rarely remounted between recordings of one identification. Returns whether any
        prior changed.
        """
        worst = [float(std[self._own(i)][GRAVITY].max()) for i in range(len(self.data))]
        best = int(np.argmin(worst))
        unsure = [i for i, value in enumerate(worst) if value > 0.1 * GRAVITY_STD]
        if worst[best] > 0.1 * GRAVITY_STD or not unsure:
            return False
        for i in unsure:
            self.mean[self._own(i)][GRAVITY] = unknowns[self._own(best)][GRAVITY]
            self.spread[self._own(i)][GRAVITY] = _BORROWED_STD
        return True

    def _coefficients(self, unknowns: Array, index: int) -> Array:
        """Coefficients of one setup's Gram matrix whose product is the residual."""
        own = unknowns[self._own(index)]
        payload = inertial_parameters(own[MASS], own[CENTER], own[TENSOR])
        tensors = unknowns[self._tensors] if self.columns.tensors else None
        coefficients = self.columns.coefficients(
            own[GRAVITY], payload, unknowns[self._inertias], tensors
        )
        return residual_coefficients(coefficients, own[DELAY])

    def _residual(self, unknowns: Array) -> Array:
        parts = []
        for index, (root, noise) in enumerate(zip(self.roots, self.noise, strict=True)):
            parts.append((root @ self._coefficients(unknowns, index) / noise[:, None]).ravel())
            magnitude = np.linalg.norm(unknowns[self._own(index)][GRAVITY])
            expected = np.linalg.norm(self.mean[self._own(index)][GRAVITY])
            parts.append(np.array([(magnitude - expected) / _MAGNITUDE_STD]))
        parts.append((unknowns - self.mean) / self.spread)
        return np.concatenate(parts)

    def _jacobian(self, unknowns: Array) -> Array:
        """Change of `_residual` with each unknown [residuals, unknowns]."""
        count, parts = len(unknowns), []
        for index, (root, noise) in enumerate(zip(self.roots, self.noise, strict=True)):
            n, k, _ = root.shape
            part = np.zeros((n * k + 1, count))
            slopes = root @ self._slopes(unknowns, index) / noise[:, None, None]
            part[:-1, self._concerned(index)] = slopes.reshape(n * k, -1)
            gravity = unknowns[self._own(index)][GRAVITY]
            part[-1, self._own(index)][GRAVITY] = gravity / np.linalg.norm(gravity) / _MAGNITUDE_STD
            parts.append(part)
        return np.concatenate([*parts, np.diag(1.0 / self.spread)])

    def _squares(self, unknowns: Array, index: int) -> Array:
        residual = self.roots[index] @ self._coefficients(unknowns, index)
        return np.asarray((residual**2).sum(axis=1))

    def _normal_equations(self, unknowns: Array) -> tuple[ArrowMatrix, Array]:
        """Information matrix, and gradient of half the sum of squares, prior included."""
        information = self._prior_information(unknowns)
        gradient = (unknowns - self.mean) / self.spread**2
        for index, entry in enumerate(self.data):
            slopes = self._slopes(unknowns, index)
            gram = np.einsum("j,jik->ik", 1 / self.noise[index] ** 2, entry.gram)
            information.add(index, slopes.T @ gram @ slopes)
            now = gram @ self._coefficients(unknowns, index)
            gradient[self._concerned(index)] += now @ slopes
            own = self._own(index)
            magnitude = np.linalg.norm(unknowns[own][GRAVITY])
            excess = magnitude - np.linalg.norm(self.mean[own][GRAVITY])
            unit = unknowns[own][GRAVITY] / magnitude
            gradient[own][GRAVITY] += unit * excess / _MAGNITUDE_STD**2
        return information, gradient

    def _scatter(self, unknowns: Array) -> ArrowMatrix:
        """Scatter of the scores over blocks of time, with the prior."""
        out = self._prior_information(unknowns)
        for index, entry in enumerate(self.data):
            weight = 1 / self.noise[index] ** 2
            blocks = np.einsum("j,bjik->bik", weight, entry.grams.blocks)
            scores = blocks @ self._coefficients(unknowns, index) @ self._slopes(unknowns, index)
            out.add(index, score_scatter(scores))
        return out

    def _prior_information(self, unknowns: Array) -> ArrowMatrix:
        out = ArrowMatrix.zeros(self._tensors.stop, len(self.data), COUNT)
        out.add_diagonal(1 / self.spread**2)
        for index in range(len(self.data)):
            gravity = unknowns[self._own(index)][GRAVITY]
            unit = gravity / np.linalg.norm(gravity) / _MAGNITUDE_STD
            out.own[index, GRAVITY, GRAVITY] += np.outer(unit, unit)
        return out

    def _concerned(self, index: int) -> Indices:
        """Places of the unknowns on which one setup depends: the common ones and its own."""
        own = self._own(index)
        return np.concatenate([np.arange(self._tensors.stop), np.arange(own.start, own.stop)])

    def _slopes(self, unknowns: Array, index: int) -> Array:
        """Change of `_coefficients` with each unknown concerned [coefficients, unknowns]."""
        common, own = self._tensors.stop, unknowns[self._own(index)]
        payload = inertial_parameters(own[MASS], own[CENTER], own[TENSOR])
        changes = inertial_slopes(own[MASS], own[CENTER])
        slopes, width = self.columns.slopes(own[GRAVITY], payload, changes), self.columns.width
        coefficients = self._coefficients(unknowns, index)[:width]
        delay, at_delay = own[DELAY], common + DELAY
        out = np.zeros((2 * width + 4, common + COUNT))
        out[:width, :at_delay] = slopes
        out[width : 2 * width, :at_delay] = delay * slopes
        out[width : 2 * width, at_delay] = coefficients
        out[2 * width + 1 : 2 * width + 3, at_delay] = -1.0, -delay
        return out

    def _setup_solution(self, unknowns: Array, std: Array, index: int) -> SetupSolution:
        own, deviation = unknowns[self._own(index)], std[self._own(index)]
        return SetupSolution(
            setup=Setup(own[GRAVITY].copy(), payload_from(own, float(deviation[MASS]))),
            gravity_std=deviation[GRAVITY].copy(),
            mass_std=float(deviation[MASS]),
            center_std=deviation[CENTER].copy(),
            delay=float(own[DELAY]),
            squares=self._squares(unknowns, index),
            spread=self.data[index].torque_spread,
        )


def _root(gram: Array) -> Array:
    """R [n, k, k] with R' R = gram, which may be singular."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(np.sqrt(np.clip(values, 0, None))[:, :, None] * np.swapaxes(vectors, 1, 2))
