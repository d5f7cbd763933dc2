"""Priors of a joint's torque constant and friction."""

from __future__ import annotations

import numpy as np

from ur_energy_model.identification.regression.least_squares import Prior
from ur_energy_model.model.friction.law import FrictionLaw
from ur_energy_model.model.friction.terms import LOAD, LOAD_ASYMMETRY
from ur_energy_model.model.robots import RobotDescription

TORQUE_CONSTANT_SPREAD = 0.5
"""Weak prior that keeps the regression finite; torque_constants.py applies the real one."""
LOAD_ASYMMETRY_SPREAD = 0.01
"""Half the difference of load friction between both directions of power flow; gear catalogues state
a few percent less efficiency for strain-wave gears driven by the load."""
_LOAD_SPREAD = 0.2
_NEGLIGIBLE = 1e-6
_COULOMB_SHARE = 0.04
_VISCOUS_SHARE = 0.028


def current_prior(robot: RobotDescription, law: FrictionLaw, j: int) -> Prior:
    """Prior of (1/k_t, friction parameters / k_t) of one joint.

    Torque constant from the robot file; friction from the factory no-load calibration of
    UR5e joints, scaled with the rated torque, and wide.
    """
    constant = robot.torque_constant[j]
    if not np.isfinite(constant):
        names = ("torque_constant", *law.parameters)
        # No prior, except for what the currents cannot separate from the torque constant.
        spread = [_NEGLIGIBLE if name == LOAD_ASYMMETRY else np.inf for name in names]
        return Prior(np.zeros(len(names)), np.array(spread))
    mean, std = nominal_friction(robot, j)
    known = [(mean.get(name, 0.0), std[name]) for name in law.parameters]
    return Prior(
        np.array([1.0, *(value for value, _ in known)]) / constant,
        np.array([TORQUE_CONSTANT_SPREAD, *(spread for _, spread in known)]) / constant,
    )


def nominal_friction(robot: RobotDescription, j: int) -> tuple[dict[str, float], dict[str, float]]:
    """Typical friction of a joint and its spread between arms, motor side.

    Factory no-load calibrations of UR5e joints: joint-side Coulomb friction near 4 % of the rated
    torque and viscous friction near 2.8 % per rad/s, on the large and the small size alike.

    Returns:
        Means and standard deviations by parameter name; infinite without a rated torque.
    """
    ratio = robot.gear_ratio[j]
    rated = robot.max_torque[j]
    coulomb = _COULOMB_SHARE * rated / ratio
    viscous = _VISCOUS_SHARE * rated / ratio**2
    fastest = ratio * robot.max_velocity[j]
    mean = {
        "viscous": viscous,
        "coulomb": coulomb,
        "coulomb_direct": coulomb,
        "coulomb_reverse": coulomb,
        "power": viscous * ratio,
    }
    std = {
        "viscous": viscous,
        "coulomb": coulomb,
        "coulomb_direct": coulomb,
        "coulomb_reverse": coulomb,
        "stribeck": coulomb,
        "power": viscous * ratio,
        LOAD: _LOAD_SPREAD,
        LOAD_ASYMMETRY: LOAD_ASYMMETRY_SPREAD,
        "square": viscous / fastest,
        "cubic": viscous / fastest**2,
        "viscous_temperature": 0.05 * viscous,
        "power_temperature": 0.05 * viscous * ratio,
    }
    if not np.isfinite(rated):
        unknown = dict.fromkeys(std, np.inf)
        return dict.fromkeys(mean, 0.0), {**unknown, LOAD_ASYMMETRY: LOAD_ASYMMETRY_SPREAD}
    return mean, std
