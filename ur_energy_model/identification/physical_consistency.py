# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Nearest physically consistent inertial parameters.

Least squares may give negative masses and impossible tensors. Inertial parameters are
possible where every link's pseudo-inertia matrix [[S, mc], [mc', m]], S = trace(I)/2 1 -
I, is positive semidefinite (Wensing, Kim and Slotine, IEEE RA-L 2018; Traversaro et al.,
IROS 2016), frictions and motor inertias where they are not negative: a convex problem
with linear matrix inequalities, solved by the interior-point solver Clarabel.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ur_energy_model.errors import IdentificationError, optional_import
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import (
    COUNT,
    FIRST_MOMENT,
    MASS,
    TENSOR,
    entries_of,
    inertial_parameters,
    tensor_of,
)
from ur_energy_model.typing import Array

_PSEUDO = 4  # order of the pseudo-inertia matrix
_MOMENTS = slice(0, 3)  # rows of its second moments
_WEIGHT = 3  # row of its first moments and mass
_MARGIN = 1e-6  # smallest eigenvalue required of the scaled pseudo-inertia
_KEPT = 1e-6  # spread of parameters that are kept [kg, kg m]
_PLAUSIBLE = 10.0  # factor on the spread that removes the weight of the second term


def nearest_possible(
    information: Array,
    combination: Array,
    base_values: Array,
    nominal: Array,
    spread: Array,
    links: int,
) -> Array:
    """Physically possible full parameters [parameters] that fit base parameters best.

    Minimises (B p - b)' H (B p - b) + |(p - nominal) / spread|^2 under the constraints of
    this module. The second term determines only what the first term does not. The
    parameters are one equal group for each link, which starts with the ten inertial ones.

    Args:
        information: H, inverse covariance of the base parameters [rank, rank].
        combination: B, base parameters per full parameter [rank, parameters].
        base_values: b, base parameters as measured [rank].
        nominal: full parameters by the robot file [parameters].
        spread: plausible deviations from `nominal`, all positive [parameters].
        links: number of links, which is the number of groups.

    Raises:
        IdentificationError: the solver finds no such parameters.
    """
    with optional_import():
        import clarabel

    size = len(nominal)
    group = len(nominal) // links
    # Unknowns are deviations from nominal in units of spread, so that all are of order
    # one.
    scaled = combination * spread
    quadratic = scaled.T @ information @ scaled + np.eye(size)
    linear = -scaled.T @ information @ (base_values - combination @ nominal)
    # With the unknowns x, offsets - rows x is in the cones: drives not negative, then the
    # pseudo-inertia of every link.
    place = np.arange(size).reshape(links, group)
    drive = place[:, COUNT:].ravel()
    rows = [-np.diag(spread)[drive]]
    offsets = [nominal[drive]]
    floor = _vectorise(_MARGIN * np.eye(_PSEUDO))
    for own in place[:, :COUNT]:
        of_link = np.zeros((len(floor), size))
        of_link[:, own] = -_VECTORISED * spread[own]
        rows.append(of_link)
        offsets.append(_VECTORISED @ nominal[own] - floor)
    cones = [clarabel.NonnegativeConeT(len(drive))] if len(drive) else []
    cones += [clarabel.PSDTriangleConeT(_PSEUDO)] * links
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(quadratic)),
        linear,
        sparse.csc_matrix(np.vstack(rows)),
        np.concatenate(offsets),
        cones,
        settings,
    )
    solution = solver.solve()
    solved = (clarabel.SolverStatus.Solved, clarabel.SolverStatus.AlmostSolved)
    if solution.status not in solved:
        raise IdentificationError(
            f"no physically consistent parameters found (solver: {solution.status}); "
            "check that the recording belongs to this robot"
        )
    return np.asarray(nominal + spread * np.array(solution.x))


def nearest_possible_tensors(
    information: Array, deviations: Array, robot: RobotDescription, spread: Array
) -> Array:
    """Physically possible tensors of the moving links [n, 3, 3], kg m^2, nearest to measured ones.

    The tensors are about the centres of mass; masses and centres are kept.

    Args:
        information: inverse covariance of the deviations [6 n, 6 n].
        deviations: measured minus the robot file's entries (xx, xy, yy, xz, yz, zz) [6
            n], kg m^2.
        robot: the arm as its robot file describes it.
        spread: plausible deviations [6 n], kg m^2, which are in the information already
            and hardly weigh here.
    """
    moving = ~robot.fixed
    tensors = robot.inertia[moving]
    n = len(tensors)
    nominal = np.empty((n, COUNT))
    bodies = zip(robot.mass[moving], robot.center_of_mass[moving], tensors, strict=True)
    for k, (mass, center, tensor) in enumerate(bodies):
        nominal[k] = inertial_parameters(mass, center, entries_of(tensor))
    free = np.full(nominal.shape, _KEPT)
    free[:, TENSOR] = _PLAUSIBLE * spread.reshape(n, 6)
    picks = np.arange(COUNT * n).reshape(n, COUNT)[:, TENSOR].ravel()
    combination = np.eye(COUNT * n)[picks]
    measured = nominal[:, TENSOR].ravel() + deviations
    found = nearest_possible(
        information, combination, measured, nominal.ravel(), free.ravel(), n
    )
    changes = (found - nominal.ravel())[picks].reshape(n, 6)
    possible = np.empty_like(tensors)
    for k, change in enumerate(changes):
        possible[k] = possible_inertia(tensors[k] + tensor_of(change))
    return possible


def _basis() -> Array:
    """Pseudo-inertia of each unit parameter [10, 4, 4]."""
    out = np.zeros((COUNT, _PSEUDO, _PSEUDO))
    out[MASS, _WEIGHT, _WEIGHT] = 1.0
    for axis in range(3):
        parameter = FIRST_MOMENT.start + axis
        out[parameter, axis, _WEIGHT] = 1.0
        out[parameter, _WEIGHT, axis] = 1.0
    for entry, entries in enumerate(np.eye(6)):
        tensor = tensor_of(entries)
        moments = 0.5 * np.trace(tensor) * np.eye(3) - tensor
        out[TENSOR.start + entry, _MOMENTS, _MOMENTS] = moments
    return out


_BASIS = _basis()
_TRIANGLE_ROWS, _TRIANGLE_COLUMNS = np.triu_indices(_PSEUDO)
_ORDER = np.lexsort((_TRIANGLE_ROWS, _TRIANGLE_COLUMNS))
"""Upper triangle column by column, as Clarabel stacks it."""


def _vectorise(matrix: Array) -> Array:
    """Upper triangle, off-diagonal entries times sqrt 2, so that inner products stay the same."""
    rows = _TRIANGLE_ROWS[_ORDER]
    columns = _TRIANGLE_COLUMNS[_ORDER]
    factors = np.where(rows == columns, 1.0, np.sqrt(2.0))
    return np.asarray(matrix[rows, columns] * factors)


_VECTORISED = np.stack([_vectorise(matrix) for matrix in _BASIS], axis=1)
"""[10, 10]: vectorised pseudo-inertia = this @ inertial parameters."""


def possible_inertia(tensor: Array) -> Array:
    """Nearest inertia tensor [3, 3] about a centre of mass that a mass distribution can have.

    A tensor is possible if the second moments of mass, trace/2 - tensor, are not negative
    (the triangle inequality of the principal moments); negative ones are set to zero.
    """
    moments = 0.5 * np.trace(tensor) * np.eye(3) - tensor
    values, vectors = np.linalg.eigh(moments)
    kept = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return np.asarray(np.trace(kept) * np.eye(3) - kept)
