# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""target_moment as a product of known columns and few unknowns: its data, and their solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_matrix, csc_matrix, diags
from scipy.sparse.linalg import splu

from ur_energy_model.consistency.controller_torque import (
    BLOCK,
    POSITION_DELAY,
    Columns,
    RowLayout,
    TorqueColumns,
    has_targets,
    torque_rows,
)
from ur_energy_model.identification.least_squares import (
    BlockedGram,
    gram_matrices_by_joint,
    score_scatter,
)
from ur_energy_model.identification.physical_consistency import (
    nearest_possible_tensors,
    possible_inertia,
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
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

# Gram matrices of target_moment, gathered from the stretches that share one setup.


@dataclass(frozen=True)
class SetupPrior:
    """Stated mounting and payload: the prior of the estimate, and the reference for warnings.

    Attributes:
        setup: mounting and payload.
        source: "configured" (by the user), "rtde" (payload fields of the recording),
            "default", or "estimated" from currents.
    """

    setup: Setup
    source: str


_STEADY = 0.01  # travel of a joint below which its inertia is not identified [rad]


@dataclass
class TorqueInformation:
    """Gram matrices of the stretches that share one setup, per block of time.

    Torques and columns are linear in a small remaining delay h [s],

    torque + h torque_slope + h^2/2 torque_curve = (columns + h column_slopes) @
    coefficients,

    and a row is [columns, column slopes, torque, torque slope, torque curve, 1] in N m, N
    m/s and N m/s^2.

    Attributes:
        source: bag or file.
        stated: mounting and payload as stated.
        kind: kind of the reference motion, "target" (recorded targets) or "actual"
            (filtered measurement).
        nominal_delay: nominal delay of target_moment, already compensated [s]; h is the
            remainder.
        samples: number of samples.
        grams: Gram matrices [n, k, k] of the rows, per block of time.
    """

    source: str
    stated: SetupPrior
    kind: str = "target"
    nominal_delay: float = 0.0
    samples: int = 0
    grams: BlockedGram = field(default_factory=BlockedGram)
    _low: Array | float = np.inf  # lowest and highest positions [n], rad
    _high: Array | float = -np.inf

    def accumulate(self, telemetry: Telemetry, columns: Columns) -> None:
        """Add the usable samples of a part in blocks of two seconds.

        Freedrive, stretches with brakes applied and samples that are not finite are left
        out.

        Raises:
            MissingFieldError: target_moment is missing, or every pair of position and
                speed.
        """
        targets = has_targets(telemetry)
        for rows, position in torque_rows(telemetry, columns):
            if not len(rows):
                continue
            self.grams.accumulate(gram_matrices_by_joint(rows), BLOCK)
            self.kind = "target" if targets else "actual"
            self.nominal_delay = POSITION_DELAY if targets else 0.0
            self.samples += len(rows)
            self._low = np.minimum(self._low, position.min(axis=0))
            self._high = np.maximum(self._high, position.max(axis=0))

    @cached_property
    def gram(self) -> Array:
        """Sum over all blocks [n, k, k], once all parts are added."""
        return np.asarray(self.grams.blocks.sum(axis=0))

    @property
    def moved(self) -> Mask:
        """Joints [n] that moved."""
        return np.asarray(self._high - self._low > _STEADY)


# Nonlinear least squares: setups of recordings and reflected inertias of the arm.
# Unknowns: n reflected inertias (and 6 n deviations of link tensors) common to all
# recordings, and per setup gravity, payload and the remaining delay of target_moment. All
# priors are weak: they determine only unknowns that the motion does not show. Standard
# deviations are cluster-robust: blocks of time count as independent and samples do not,
# because residuals are persistent model errors.

# Places of the unknowns of a setup.
GRAVITY = slice(0, 3)  # gravity in the base frame [m/s^2]
MASS = 3  # mass of the payload [kg]
CENTER = slice(4, 7)  # centre of mass of the payload, flange frame [m]
TENSOR = slice(7, 13)  # inertia of the payload about its centre of mass [kg m^2]
DELAY = 13  # delay of target_moment beyond the nominal delay [s]
COUNT = 14  # number of unknowns
# Standard deviations of the priors.
GRAVITY_STD = 3.0
"""Deviation of each component of gravity [m/s^2]: users often forget to state the mounting."""
MASS_STD = 2.0  # deviation of the mass of the payload [kg]
KNOWN_GRAVITY_STD = 0.1 * GRAVITY_STD
"""Deviation of a component of gravity below which the motion shows the mounting [m/s^2]."""
_PRIOR_STD = np.repeat([GRAVITY_STD, MASS_STD, 0.3, 1e-3, 0.003], [3, 1, 3, 6, 1])
_MAGNITUDE_STD = 0.02  # deviation of the magnitude of gravity [m/s^2]
_INERTIA_STD = 0.2  # relative deviation of reflected inertias
_UNKNOWN_INERTIA_STD = 10.0  # deviation of inertias that the robot file lacks [kg m^2]
_LINK_TENSOR_STD = 0.05  # deviation of tensor entries, per mass of the link [m^2]
_FIXED_STD = 1e-6  # deviation of unknowns that are not fitted
_BORROWED_STD = 0.1
"""Deviation of each component of a gravity of another recording [m/s^2]."""
_LEAST_MASS = 0.002  # lighter payloads count as none [kg]
_NOISE_FLOOR = 1e-3  # least noise of a torque [N m]
_ROUNDS = 4  # number of rounds in which noise levels are estimated
_STEPS = 50  # largest number of steps of one descent
_CONVERGED = 1e-10  # relative reduction of the squares at which the descent ends
_NEGLIGIBLE = 1e-12  # expected reduction at which it ends


class TargetMomentSolution(NamedTuple):
    """Unknowns of an arm with n joints as target_moment shows them.

    Attributes:
        unknowns: common unknowns, then COUNT unknowns of each setup [unknowns].
        std: standard deviations of the unknowns, for link tensors held fixed [unknowns].
        inertia_std: standard deviations of the reflected inertias, tensors free [n],
            kg m^2.
        tensors: tensors of the moving links; None unless requested.
    """

    unknowns: Array
    std: Array
    inertia_std: Array
    tensors: LinkTensors | None


class _Linearised(NamedTuple):
    """Residuals of one setup, and their change with the common and its own unknowns.

    Attributes:
        torque: coefficients of the columns of the Gram matrix [k]; the residual of a
            torque is the product of a row with them.
        torque_slopes: change of these coefficients [k, unknowns].
        magnitude: residual of the magnitude of gravity, over its deviation.
        magnitude_slopes: change of this residual [unknowns].
    """

    torque: Array
    torque_slopes: Array
    magnitude: float
    magnitude_slopes: Array


class TargetMomentSolver:
    """Solves for the setups and inertias of one arm.

    The vector of unknowns starts with the common ones; COUNT unknowns of each setup
    follow. Unknowns of different setups never occur in one residual, so the information
    matrix is an arrow: blocks of the setups on the diagonal, bordered by the common
    unknowns. It is assembled from one block per setup (common and own unknowns), and its
    sparse factors fill in along the border alone, so that time grows in proportion to the
    number of setups.

    Args:
        columns: columns of the arm's torques.
        data: data of the setups, one entry each, with samples.

    Attributes:
        columns: columns as given.
        robot: the arm, n joints.
        data: data as given.
        moved: joints that moved in any setup [n].
        mean: mean of the prior [unknowns].
        spread: standard deviations of the prior [unknowns].
    """

    def __init__(self, columns: TorqueColumns, data: Sequence[TorqueInformation]) -> None:
        self.columns = columns
        self.robot = columns.robot
        self.data = data
        n = self.robot.dof
        common = columns.common
        starts = range(common, common + COUNT * len(data), COUNT)
        self._own = [slice(start, start + COUNT) for start in starts]
        self._concerned = np.array([np.r_[0:common, own] for own in self._own])
        self.moved = np.any([entry.moved for entry in data], axis=0)
        self._weights = np.ones((len(data), n))
        inertia = np.nan_to_num(self.robot.reflected_inertia)
        spread = np.where(inertia > 0, _INERTIA_STD * inertia, _UNKNOWN_INERTIA_STD)
        means = [inertia]
        spreads = [np.where(self.moved, spread, _FIXED_STD)]
        if columns.tensors:
            mass = self.robot.mass[~self.robot.fixed]
            means.append(np.zeros(6 * len(mass)))
            spreads.append(np.repeat(np.maximum(_LINK_TENSOR_STD * mass, _FIXED_STD), 6))
        for entry in data:
            stated = entry.stated.setup
            own = np.zeros(COUNT)
            own[GRAVITY] = stated.gravity
            own[MASS] = stated.payload.mass
            own[CENTER] = stated.payload.center_of_mass
            own[TENSOR] = entries_of(stated.payload.inertia)
            means.append(own)
            spreads.append(_PRIOR_STD)
        self.mean = np.concatenate(means)
        self.spread = np.concatenate(spreads)

    def solve(self) -> TargetMomentSolution:
        """Least squares with iterated noise levels.

        Setups that do not determine the mounting borrow it from one that does: an arm is
        rarely remounted between recordings of one identification.
        """
        unknowns, std = self._fit(self.mean)
        worst = np.array([std[own][GRAVITY].max() for own in self._own])
        best = self._own[int(np.argmin(worst))]
        unsure = np.flatnonzero(worst > KNOWN_GRAVITY_STD).tolist()
        if worst.min() <= KNOWN_GRAVITY_STD and unsure:
            for index in unsure:
                gravity = self._own[index].start + np.arange(COUNT)[GRAVITY]
                self.mean[gravity] = unknowns[best][GRAVITY]
                self.spread[gravity] = _BORROWED_STD
            unknowns, std = self._fit(unknowns)
        inertia_std = std[: self.robot.dof]
        if not self.columns.tensors:
            return TargetMomentSolution(unknowns, std, inertia_std, None)
        # The possible tensors nearest to the fitted ones; then the other unknowns.
        where = slice(self.robot.dof, self.columns.common)
        tensors = self._possible_tensors(unknowns, std, where)
        change = tensors.values - self.robot.inertia[~self.robot.fixed]
        self.mean[where] = np.concatenate([entries_of(tensor) for tensor in change])
        self.spread[where] = _FIXED_STD
        start = unknowns.copy()
        start[where] = self.mean[where]
        unknowns, std = self._fit(start)
        return TargetMomentSolution(unknowns, std, inertia_std, tensors)

    def _possible_tensors(self, unknowns: Array, std: Array, where: slice) -> LinkTensors:
        """Physically possible tensors nearest to the fitted ones.

        Args:
            unknowns: unknowns as fitted.
            std: standard deviations of the unknowns.
            where: places of the deviations of the tensors.
        """
        _, _, information = self._normal_equations(unknowns)
        covariance = splu(information).solve(np.eye(len(unknowns))[:, where])[where]
        precision = np.asarray(np.linalg.inv(covariance))
        values = nearest_possible_tensors(
            precision, unknowns[where], self.robot, self.spread[where]
        )
        deviations = std[where].reshape(-1, 6)
        spreads = np.array([tensor_of(entries) for entries in deviations])
        return LinkTensors(values, spreads)

    def squares(self, unknowns: Array) -> Array:
        """Sums of squared torque residuals of the setups per joint [s, n], (N m)^2."""
        out = []
        for index, entry in enumerate(self.data):
            values = self._linearised(unknowns, index).torque
            out.append(np.einsum("i,jik,k->j", values, entry.gram, values))
        return np.asarray(np.maximum(out, 0.0))

    def _fit(self, start: Array) -> tuple[Array, Array]:
        """Unknowns and their standard deviations, from a start."""
        masses = [own.start + MASS for own in self._own]
        lower = np.full(len(self.mean), -np.inf)
        lower[masses] = 0.0
        unknowns = start.copy()
        # A massless body has no centre.
        unknowns[masses] = np.maximum(unknowns[masses], 0.5)
        samples = np.array([[entry.samples] for entry in self.data])
        for _ in range(_ROUNDS):
            unknowns = self._descend(unknowns, lower)
            noise = np.maximum(np.sqrt(self.squares(unknowns) / samples), _NOISE_FLOOR)
            self._weights = noise**-2.0
        # Roots of the diagonal of bread @ scatter @ bread, setup by setup to save memory.
        # Scores of a setup scatter over blocks of time.
        _, _, information = self._normal_equations(unknowns)
        factors = splu(information)
        scatters = []
        for index, entry in enumerate(self.data):
            local = self._linearised(unknowns, index)
            weighted = np.einsum("j,bjik->bik", self._weights[index], entry.grams.blocks)
            scores = weighted @ local.torque @ local.torque_slopes
            of_magnitude = np.outer(local.magnitude_slopes, local.magnitude_slopes)
            scatters.append(score_scatter(scores) + of_magnitude)
        scatter = self._assembled(scatters)
        variance = np.empty(len(unknowns))
        for rows in (slice(0, self.columns.common), *self._own):
            unit = np.zeros((len(unknowns), rows.stop - rows.start))
            unit[rows] = np.eye(rows.stop - rows.start)
            bread = factors.solve(unit)
            variance[rows] = np.einsum("ij,ij->j", bread, scatter @ bread)
        return unknowns, np.asarray(np.sqrt(variance))

    def _descend(self, unknowns: Array, lower: Array) -> Array:
        """Levenberg-Marquardt steps, not below the bounds."""
        cost, gradient, information = self._normal_equations(unknowns)
        damping = 1e-4
        for _ in range(_STEPS):
            held = (unknowns <= lower) & (gradient > 0)
            gain = 0.0
            while gain <= 0.0 and damping < 1e6:
                brake = np.where(held, 1e12, damping) * information.diagonal()
                step = splu((information + diags(brake)).tocsc()).solve(-gradient)
                step[held] = 0.0
                trial = np.maximum(unknowns + step, lower)
                found = self._normal_equations(trial)
                trial_cost, _, _ = found
                gain = cost - trial_cost
                # Nothing can be gained.
                if gain <= 0.0 and -gradient @ step < _NEGLIGIBLE * cost:
                    return unknowns
                damping *= 0.1 if gain > 0.0 else 10.0
            if gain <= 0.0:
                break
            unknowns = trial
            cost, gradient, information = found
            if gain < _CONVERGED * cost:
                break
        return unknowns

    def _linearised(self, unknowns: Array, index: int) -> _Linearised:
        """Residuals of one setup, by its number, and their change with its unknowns."""
        own = unknowns[self._own[index]]
        columns = self.columns
        payload = inertial_parameters(own[MASS], own[CENTER], own[TENSOR])
        row = RowLayout(columns.width)
        delay = own[DELAY]
        at_delay = columns.common + DELAY
        torque = columns.coefficients(own[GRAVITY], payload, unknowns[: columns.common])
        recorded = (-1.0, -delay, -0.5 * delay**2, 0.0)  # torque, slope, curve, 1
        changes = columns.slopes(
            own[GRAVITY], payload, inertial_slopes(own[MASS], own[CENTER])
        )
        slopes = np.zeros((row.size, columns.common + COUNT))
        slopes[row.columns, :at_delay] = changes
        slopes[row.slopes, :at_delay] = delay * changes
        slopes[row.slopes, at_delay] = torque
        slopes[row.torque_slope, at_delay] = -1.0
        slopes[row.torque_curve, at_delay] = -delay
        expected = np.linalg.norm(self.mean[self._own[index]][GRAVITY])
        magnitude = np.linalg.norm(own[GRAVITY])
        excess = float(magnitude - expected) / _MAGNITUDE_STD
        unit = np.zeros(columns.common + COUNT)
        unit[columns.common :][GRAVITY] = own[GRAVITY] / magnitude / _MAGNITUDE_STD
        coefficients = np.concatenate([torque, delay * torque, recorded])
        return _Linearised(coefficients, slopes, excess, unit)

    def _normal_equations(self, unknowns: Array) -> tuple[float, Array, csc_matrix]:
        """Sum of squares, half its gradient [unknowns], and the information; priors included."""
        deviation = (unknowns - self.mean) / self.spread
        cost = float(deviation @ deviation)
        gradient = deviation / self.spread
        blocks = []
        for index, entry in enumerate(self.data):
            # Coefficients are common to the joints, so their weighted Gram matrices add
            # up.
            gram = np.einsum("j,jik->ik", self._weights[index], entry.gram)
            local = self._linearised(unknowns, index)
            slopes = local.torque_slopes
            unit = local.magnitude_slopes
            now = gram @ local.torque
            cost += float(local.torque @ now) + local.magnitude**2
            gradient[self._concerned[index]] += now @ slopes + local.magnitude * unit
            blocks.append(slopes.T @ gram @ slopes + np.outer(unit, unit))
        return cost, gradient, self._assembled(blocks)

    def _assembled(self, blocks: Sequence[Array]) -> csc_matrix:
        """The priors' information plus one block for each setup [unknowns, unknowns]."""
        entries = np.array(blocks)
        size = len(self.mean)
        rows = np.broadcast_to(self._concerned[:, :, None], entries.shape).ravel()
        columns = np.broadcast_to(self._concerned[:, None], entries.shape).ravel()
        whole = coo_matrix((entries.ravel(), (rows, columns)), (size, size))
        return csc_matrix(whole + diags(self.spread**-2.0))


def setup_from(unknowns: Array, mass_std: float) -> Setup:
    """Mounting and physically possible payload; none where the mass does not differ from zero.

    Args:
        unknowns: unknowns of a setup as fitted [14].
        mass_std: standard deviation of the mass [kg].
    """
    mass = float(unknowns[MASS])
    if mass < max(_LEAST_MASS, 2 * mass_std):
        return Setup(unknowns[GRAVITY].copy())
    tensor = possible_inertia(tensor_of(unknowns[TENSOR]))
    return Setup(unknowns[GRAVITY].copy(), Payload(mass, unknowns[CENTER].copy(), tensor))
