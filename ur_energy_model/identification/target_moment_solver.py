"""Nonlinear least squares on target_moment: setups of recordings and reflected inertias of the arm.

Unknowns: n reflected inertias (and 6 n deviations of link tensors) common to all recordings, and
per setup gravity, payload and the remaining delay of target_moment. All priors are weak: they
determine only what the motion does not show. Standard deviations are cluster-robust: blocks of
time count as independent, not samples, because the residuals are persistent model errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares
from scipy.sparse import coo_matrix, csc_matrix, diags
from scipy.sparse.linalg import splu

from ur_energy_model.identification.least_squares import score_scatter
from ur_energy_model.identification.physical_consistency import (
    nearest_possible_tensors,
    possible_inertia,
)
from ur_energy_model.identification.target_moment_data import (
    TorqueColumns,
    TorqueInformation,
    residual_coefficients,
)
from ur_energy_model.model.energy_model import LinkTensors
from ur_energy_model.model.setup import (
    Payload,
    Setup,
    entries_of,
    inertial_parameters,
    inertial_slopes,
    tensor_of,
)
from ur_energy_model.typing import Array, Indices, Mask

# Unknowns of one setup, and their priors.

GRAVITY, MASS, CENTER, TENSOR, DELAY = slice(0, 3), 3, slice(4, 7), slice(7, 13), 13
"""Gravity in the base frame [m/s^2]; mass [kg], centre [m] and tensor about it [kg m^2] of the
payload in the flange frame; delay of target_moment beyond the nominal one [s]."""
COUNT = 14
"""Unknowns of a setup."""
GRAVITY_STD = 3.0
"""Prior of each component of gravity [m/s^2]: users often forget to state the mounting."""
MASS_STD = 2.0
"""Prior of the payload [kg]."""
_PRIOR_STD = np.repeat([GRAVITY_STD, MASS_STD, 0.3, 1e-3, 0.003], [3, 1, 3, 6, 1])
_LEAST_MASS = 0.002
"""Lighter payloads count as none [kg]."""
_MAGNITUDE_STD = 0.02
"""Prior of the magnitude of gravity [m/s^2]."""
_INERTIA_STD, _UNKNOWN_INERTIA_STD = 0.2, 10.0
"""Of reflected inertias, relative; and where the robot file has none [kg m^2]."""
_LINK_TENSOR_STD = 0.05
"""Of tensor entries, per mass of the link [m^2]."""
_FIXED_STD = 1e-6
_BORROWED_STD = 0.1
"""Prior of each component of a borrowed gravity [m/s^2]."""
_NOISE_FLOOR = 1e-3
_ROUNDS = 4
_FEW = 8
"""Setups up to which scipy's dense least squares is used: its time grows with their third power
(100 setups: minutes), that of sparse normal equations in proportion (a few seconds)."""
_STEPS, _CONVERGED = 50, 1e-8
"""Most steps of the latter, and the relative reduction of the squares at which they end."""


@dataclass(frozen=True)
class ArmSolution:
    """Solution for an arm with n joints and its s setups.

    Attributes:
        reflected_inertia, std: joint side [n], kg m^2.
        std_given_tensors: standard deviation of the inertia for given link tensors [n]. Only the
            sum of the first joint's inertia and its link's tensor shows in the motion.
        link_tensors: of the moving links, None unless requested.
        moved: joints that moved in some recording [n].
        setups, setups_std: unknowns of the setups and their standard deviations [s, COUNT].
        squares: sums of squared torque residuals [s, n], (N m)^2.
    """

    reflected_inertia: Array
    std: Array
    std_given_tensors: Array
    link_tensors: LinkTensors | None
    moved: Mask
    setups: Array
    setups_std: Array
    squares: Array


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
        self.noise = np.ones((len(data), n))
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
            setups=unknowns[self._tensors.stop :].reshape(-1, COUNT),
            setups_std=std[self._tensors.stop :].reshape(-1, COUNT),
            squares=np.array([self._squares(unknowns, i) for i in range(len(self.data))]),
        )

    def _possible_tensors(self, unknowns: Array, std: Array) -> LinkTensors:
        """Physically possible tensors nearest to the deviations found."""
        where = self._tensors
        size = len(unknowns)
        covariance = splu(self._information(unknowns)).solve(np.eye(size)[:, where])[where]
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
        """Means and standard deviations of all unknowns: arm, then setup by setup."""
        inertia = np.nan_to_num(self.robot.reflected_inertia)
        spread = np.where(inertia > 0, _INERTIA_STD * inertia, _UNKNOWN_INERTIA_STD)
        means, spreads = [inertia], [np.where(self.moved, spread, _FIXED_STD)]
        if self.columns.tensors:
            mass = self.robot.mass[~self.robot.fixed]
            means.append(np.zeros(6 * len(mass)))
            spreads.append(np.repeat(np.maximum(_LINK_TENSOR_STD * mass, _FIXED_STD), 6))
        for entry in self.data:
            setup, payload = entry.stated.setup, entry.stated.setup.payload
            body = (payload.mass, *payload.center_of_mass, *entries_of(payload.inertia))
            means.append(np.array([*setup.gravity, *body, 0.0]))
            spreads.append(_PRIOR_STD)
        return np.concatenate(means), np.concatenate(spreads)

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
            roots = [_root(self._weighted(index)) for index in range(len(self.data))]
            if len(roots) > _FEW:
                unknowns = self._descend(unknowns, lower, roots)
            else:
                unknowns = least_squares(
                    self._residual,
                    unknowns,
                    self._jacobian,
                    x_scale=self.spread,
                    bounds=(lower, np.inf),
                    args=(roots,),
                ).x
            for index, entry in enumerate(self.data):
                rms = np.sqrt(self._squares(unknowns, index) / entry.samples)
                self.noise[index] = np.maximum(rms, _NOISE_FLOOR)
        return unknowns, self._deviations(unknowns)

    def _deviations(self, unknowns: Array) -> Array:
        """Roots of the diagonal of bread @ scatter @ bread, setup by setup to save memory."""
        factors, scatter = splu(self._information(unknowns)), self._scatter(unknowns)
        variance = np.empty(len(unknowns))
        edges = range(self._tensors.stop, len(unknowns) + 1, COUNT)
        for rows in (slice(0, edges[0]), *(slice(at, at + COUNT) for at in edges[:-1])):
            unit = np.zeros((len(unknowns), rows.stop - rows.start))
            unit[rows] = np.eye(rows.stop - rows.start)
            bread = factors.solve(unit)
            variance[rows] = np.einsum("ij,ij->j", bread, scatter @ bread)
        return np.asarray(np.sqrt(variance))

    def _descend(self, unknowns: Array, lower: Array, roots: Sequence[Array]) -> Array:
        """Levenberg-Marquardt steps, each in time proportional to the number of setups.

        Unknowns of different setups never occur in one residual, so the information matrix is an
        arrow: blocks of the setups on the diagonal, bordered by the common unknowns. Its sparse
        factors fill in along the border alone.
        """
        cost, damping = float(np.square(self._residual(unknowns, roots)).sum()), 1e-4
        for _ in range(_STEPS):
            information, gradient = self._information(unknowns), self._gradient(unknowns)
            held = (unknowns <= lower) & (gradient > 0)
            gain = 0.0
            while gain <= 0.0 and damping < 1e6:
                brake = np.where(held, 1e12, damping) * information.diagonal()
                step = splu((information + diags(brake)).tocsc()).solve(-gradient)
                trial = np.maximum(unknowns + np.where(held, 0.0, step), lower)
                gain = cost - float(np.square(self._residual(trial, roots)).sum())
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

    def _weighted(self, index: int) -> Array:
        """Gram matrix of one setup over all joints, each weighted with its noise [k, k].

        The coefficients of the columns are common to the joints, so their matrices add up.
        """
        weights = self.noise[index] ** -2.0
        return np.asarray(np.einsum("j,jik->ik", weights, self.data[index].gram))

    def _coefficients(self, unknowns: Array, index: int) -> Array:
        """Coefficients of one setup's Gram matrix whose product is the residual."""
        own = unknowns[self._own(index)]
        payload = inertial_parameters(own[MASS], own[CENTER], own[TENSOR])
        tensors = unknowns[self._tensors] if self.columns.tensors else None
        coefficients = self.columns.coefficients(
            own[GRAVITY], payload, unknowns[self._inertias], tensors
        )
        return residual_coefficients(coefficients, own[DELAY])

    def _residual(self, unknowns: Array, roots: Sequence[Array]) -> Array:
        parts = []
        for index, root in enumerate(roots):
            parts.append(root @ self._coefficients(unknowns, index))
            magnitude = np.linalg.norm(unknowns[self._own(index)][GRAVITY])
            expected = np.linalg.norm(self.mean[self._own(index)][GRAVITY])
            parts.append(np.array([(magnitude - expected) / _MAGNITUDE_STD]))
        return np.concatenate([*parts, (unknowns - self.mean) / self.spread])

    def _jacobian(self, unknowns: Array, roots: Sequence[Array]) -> Array:
        """Change of `_residual` with each unknown [residuals, unknowns]."""
        parts = []
        for index, root in enumerate(roots):
            part = np.zeros((len(root) + 1, len(unknowns)))
            part[:-1, self._concerned(index)] = root @ self._slopes(unknowns, index)
            gravity = unknowns[self._own(index)][GRAVITY]
            part[-1, self._own(index)][GRAVITY] = gravity / np.linalg.norm(gravity) / _MAGNITUDE_STD
            parts.append(part)
        return np.concatenate([*parts, np.diag(1.0 / self.spread)])

    def _gradient(self, unknowns: Array) -> Array:
        """Gradient of half the sum of squares, prior included [unknowns]."""
        out = (unknowns - self.mean) / self.spread**2
        for index in range(len(self.data)):
            now = self._weighted(index) @ self._coefficients(unknowns, index)
            out[self._concerned(index)] += now @ self._slopes(unknowns, index)
            gravity, own = unknowns[self._own(index)][GRAVITY], self._own(index)
            magnitude = np.linalg.norm(gravity)
            excess = magnitude - np.linalg.norm(self.mean[own][GRAVITY])
            out[own][GRAVITY] += gravity / magnitude * excess / _MAGNITUDE_STD**2
        return out

    def _squares(self, unknowns: Array, index: int) -> Array:
        """Sum of squared torque residuals of one setup per joint [n], (N m)^2."""
        values = self._coefficients(unknowns, index)
        squares = np.einsum("i,jik,k->j", values, self.data[index].gram, values)
        return np.asarray(np.maximum(squares, 0.0))

    def _information(self, unknowns: Array) -> csc_matrix:
        """Information matrix [unknowns, unknowns], prior included."""
        blocks = []
        for index in range(len(self.data)):
            slopes = self._slopes(unknowns, index)
            blocks.append(slopes.T @ self._weighted(index) @ slopes)
        return self._assembled(unknowns, blocks)

    def _scatter(self, unknowns: Array) -> csc_matrix:
        """Scatter of the scores over blocks of time, with the prior [unknowns, unknowns]."""
        out = []
        for index, entry in enumerate(self.data):
            blocks = np.einsum("j,bjik->bik", self.noise[index] ** -2.0, entry.grams.blocks)
            scores = blocks @ self._coefficients(unknowns, index) @ self._slopes(unknowns, index)
            out.append(score_scatter(scores))
        return self._assembled(unknowns, out)

    def _assembled(self, unknowns: Array, blocks: Sequence[Array]) -> csc_matrix:
        """Sum of the priors' information and of one block for each setup."""
        places = np.array([self._concerned(index) for index in range(len(blocks))])
        for index, block in enumerate(blocks):
            gravity = unknowns[self._own(index)][GRAVITY]
            unit = gravity / np.linalg.norm(gravity) / _MAGNITUDE_STD
            at = slice(self._tensors.stop, self._tensors.stop + 3)
            block[at, at] += np.outer(unit, unit)
        shape = (*places.shape, places.shape[1])
        rows, columns = np.broadcast_to(places[:, :, None], shape), places[:, None]
        entries = np.array(blocks).ravel(), (rows.ravel(), np.broadcast_to(columns, shape).ravel())
        size = len(unknowns)
        return csc_matrix(coo_matrix(entries, (size, size)) + diags(self.spread**-2.0))

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


def setup_from(unknowns: Array, mass_std: float) -> Setup:
    """Mounting and physically possible payload; none where the mass does not differ from zero."""
    mass = float(unknowns[MASS])
    if mass < max(_LEAST_MASS, 2 * mass_std):
        return Setup(unknowns[GRAVITY].copy())
    tensor = possible_inertia(tensor_of(unknowns[TENSOR]))
    return Setup(unknowns[GRAVITY].copy(), Payload(mass, unknowns[CENTER].copy(), tensor))


def _root(gram: Array) -> Array:
    """R [rank, k] with R' R = gram [k, k], which may be singular."""
    values, vectors = np.linalg.eigh(gram)
    seen = values > 1e-16 * values[-1]
    return np.asarray(np.sqrt(values[seen])[:, None] * vectors[:, seen].T)
