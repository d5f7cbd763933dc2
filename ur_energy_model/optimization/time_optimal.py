"""The fastest time law of a path, by toppra: what is feasible at all, and how fast.

Pham and Pham, A New Approach to Time-Optimal Path Parameterization Based on Reachability Analysis,
IEEE T-RO 2018. It gets the same path, intervals and limits as the search for the least energy.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.missing_packages import needed_here
from ur_energy_model.optimization.least_energy import EnergyLaws
from ur_energy_model.optimization.motion_limits import PathLimits
from ur_energy_model.optimization.path_dynamics import LimitRows, PathDynamics
from ur_energy_model.optimization.time_law import TimeLaw
from ur_energy_model.typing import Array

_SPEED_SHARES = (1.0, 0.998, 0.99)
HIGH_PRICE = 1e6
"""Marginal energy of time at which laws are as fast as the limits allow [W]."""


def fastest_law(arm: PathDynamics, limits: PathLimits, source: str = "path") -> TimeLaw:
    """The law that takes a path in the least time.

    Where toppra's linear programs fail numerically (their tolerances are absolute), with speeds
    lowered by up to 1 %, and at last by the search for the least energy at a very high price of
    time, which comes within some tenths of a percent.

    Raises:
        InputError: no law keeps the limits on this path.
        MissingPackageError: toppra is not installed.
    """
    rows = arm.limit_rows(limits)
    for share in _SPEED_SHARES:
        b = _by_toppra(arm, replace(rows, fastest=rows.fastest * share**2))
        if b is not None:
            return TimeLaw(arm, b)
    laws = EnergyLaws(arm, limits)
    if not laws.possible:
        raise InputError(
            source,
            "no time law keeps the limits of torque and acceleration on its path",
            "check payload and mounting, or raise the limits",
        )
    return laws.cheapest(-HIGH_PRICE)


def _by_toppra(arm: PathDynamics, rows: LimitRows) -> Array | None:
    """Squared speeds at the ends of the intervals [N + 1]; None where it finds none."""
    with needed_here():
        import toppra
        from toppra.algorithm import TOPPRA
        from toppra.constraint import DiscretizationType
    logging.getLogger("toppra").setLevel(logging.CRITICAL)
    constraint: Any = _constraint(rows, arm.slope.shape[1])
    constraint.set_discretization_type(DiscretizationType.Collocation)
    path = toppra.SplineInterpolator(arm.s, arm.path.position(arm.s))
    solver = TOPPRA([constraint], path, gridpoints=arm.s, solver_wrapper="seidel")
    _, speeds, _ = solver.compute_parameterization(0.0, 0.0)
    if speeds is None or not np.isfinite(speeds).all():
        return None
    b = np.maximum(np.asarray(speeds, dtype=float), 0.0) ** 2
    b[0] = b[-1] = 0.0
    b[1:-1] = np.maximum(b[1:-1], 1e-12)
    return np.asarray(b)


def _constraint(rows: LimitRows, dof: int) -> object:
    """The limits as toppra takes them: a u + b x + c in {w: F w <= g}, x within bounds."""
    from toppra.constraint.linear_constraint import LinearConstraint

    class Limits(LinearConstraint):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.dof = dof
            self.identical = True

        def compute_constraint_params(self, path: object, gridpoints: Array) -> tuple[object, ...]:
            def at_nodes(values: Array) -> Array:
                """Rows of the intervals at their starts; the last interval's also at its end."""
                return np.asarray(np.concatenate([values, values[:, -1:]], axis=1).T)

            along, across, bound = (at_nodes(x) for x in (rows.along, rows.across, rows.bound))
            count = along.shape[1]
            limits = np.stack([np.zeros_like(rows.fastest), rows.fastest], axis=1)
            zero = np.zeros_like(along)
            return along, across, zero, np.eye(count), bound[0], None, limits

    return Limits()
