"""Structures of the power model, linear in their parameters, and what is believed beforehand.

EcBot fits all 4n + 1 coefficients freely, which overfits short recordings. The physical model
keeps the structure that energy conservation and the robot file give, and lets the data move
standby, a copper factor (R = factor * winding resistance), the driver loss, the delays, and the
torque constants as far as the motion left them uncertain: bus power weighs motor speed times
current, whatever the friction is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.identification.power.columns import width
from ur_energy_model.identification.regression.least_squares import Prior
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array, Indices

STANDBY = (30.0, 10.0)
"""Standby power and its spread over arms where the robot file is silent [W]."""
COPPER_FACTOR = (0.8, 0.5)
"""Copper loss over i^2 times the recorded winding resistance: 1.0 to 1.5 by phase convention and
heat, 0.43 by the catalogue motor constant of S0, 0.3 to 0.75 on recordings of three arms."""
SIZE_SPREAD = 0.3
"""Spread of the copper factor between motor sizes, where it is left free."""
RESISTANCE_SPREAD = 0.03
"""Spread of winding resistances of one size: data sheets allow 5 % each way."""
CONVERSION_FACTOR = (1.0, 0.003)
"""Electrical over mechanical power of the motors: energy conservation, and the gain errors of the
current and voltage that the supply reports."""
COMMON_TORQUE_ERROR = 0.01
"""What torque constants of one arm may be wrong by together: nominal masses, and friction that
takes more of the load when the motor drives than when it is driven."""
UNKNOWN_RESISTANCE = (1.0, 1.0)
"""Winding resistance and its spread where not even the torque is rated [ohm]."""
_RATED_TORQUE = (9.0, 28.0, 54.0, 150.0, 330.0)
_RATED_RESISTANCE = (2.394, 1.65, 0.78, 0.3, 0.088)
"""Winding resistances by rated torque, joint side [N m], as the e-Series robot files have them."""
_RATED_SPREAD = 0.5
DRIVER = (0.25, 0.06)
"""Driver loss [W/A]; regressions of recorded power give 0.1 to 0.35, each of them uncertain by
0.15, because i^2 and |i| are much alike."""
DELAY = 2e-3
"""Spread of the delays [s]: a few cycles of drives and sensors."""


@dataclass(frozen=True)
class Structure:
    """A model of the power, linear in its parameters.

    Attributes:
        names: of the p parameters.
        basis: coefficients of the power columns = basis @ parameters [4 n + 3, p].
        prior: of the parameters.
        torque: torque constants = base + torque @ parameters [n, p], N m/A.
        base: [n], N m/A.
    """

    names: tuple[str, ...]
    basis: Array
    prior: Prior
    torque: Array
    base: Array


def expected_resistance(robot: RobotDescription) -> tuple[Array, Array]:
    """Winding resistances before any data, and the deviations of single motors [n], ohm.

    The robot file's; where it has none, what the rated torque suggests (in double logarithmic
    scale), and that is uncertain by half of it or more.
    """
    rated = np.where(np.isfinite(robot.max_torque), robot.max_torque, _RATED_TORQUE[0])
    typical = np.exp(np.interp(np.log(rated), np.log(_RATED_TORQUE), np.log(_RATED_RESISTANCE)))
    sized = np.isfinite(robot.max_torque)
    value = np.where(sized, typical, UNKNOWN_RESISTANCE[0])
    spread = np.where(sized, _RATED_SPREAD * typical, UNKNOWN_RESISTANCE[1])
    known = np.isfinite(robot.winding_resistance)
    nominal = np.nan_to_num(robot.winding_resistance)
    return np.where(known, nominal, value), np.where(known, RESISTANCE_SPREAD * nominal, spread)


def free(n: int) -> Structure:
    """EcBot's model: every coefficient by itself, nothing believed beforehand."""
    size = 4 * n + 1
    names = ("standby", *(f"{kind}_{j}" for kind in ("R", "k", "driver", "L") for j in range(n)))
    return Structure(
        names,
        np.eye(width(n), size),
        Prior(np.zeros(size), np.full(size, np.inf)),
        np.zeros((n, size)),
        np.zeros(n),
    )


def common(robot: RobotDescription, constant: Array, deviation: Array) -> Structure:
    """One copper factor for all joints.

    Args:
        robot: the arm, n joints.
        constant: torque constants as currents tell them [n], N m/A.
        deviation: their standard deviations [n], N m/A.
    """
    return _physical(robot, constant, deviation, [])


def per_size(robot: RobotDescription, constant: Array, deviation: Array) -> Structure:
    """A copper factor for each motor size, that is for each winding resistance; as `common`."""
    resistance, _ = expected_resistance(robot)
    groups = [np.flatnonzero(resistance == value) for value in np.unique(resistance)]
    return _physical(robot, constant, deviation, groups)


PHYSICAL: dict[str, Callable[[RobotDescription, Array, Array], Structure]] = {
    "common": common,
    "per size": per_size,
}
"""Physical structures by name, the plainest first."""


@dataclass(frozen=True)
class _Part:
    """One parameter: what it adds to the power's coefficients and to the torque constants."""

    name: str
    coefficients: Array
    mean: float
    std: float
    torque: Array


def _physical(
    robot: RobotDescription, constant: Array, deviation: Array, groups: Sequence[Indices]
) -> Structure:
    n = robot.dof
    (resistance, spread), constant = expected_resistance(robot), np.nan_to_num(constant)
    nothing = np.zeros(n)
    joints = np.eye(n)
    standby = robot.standby_power if np.isfinite(robot.standby_power) else STANDBY[0]
    parts = [
        _Part("standby", _single(n, 0), standby, STANDBY[1], nothing),
        _Part("copper", _each(n, 0, resistance), *COPPER_FACTOR, nothing),
        _Part("conversion", _each(n, 1, constant), *CONVERSION_FACTOR, nothing),
        _Part("driver", _each(n, 2, np.ones(n)), *DRIVER, nothing),
        _Part("current_delay", _single(n, -2), 0.0, DELAY, nothing),
        _Part("supply_delay", _single(n, -1), 0.0, DELAY, nothing),
    ]
    for i, relative in enumerate((spread / resistance).tolist()):
        column = _each(n, 0, resistance * joints[i])
        parts.append(_Part(f"copper_{i}", column, 0.0, relative, nothing))
    if (deviation > 0).any():
        column = _each(n, 1, constant)
        parts.append(_Part("torque", column, 0.0, COMMON_TORQUE_ERROR, constant))
    for j in np.flatnonzero(deviation > 0):
        own = joints[j]
        parts.append(_Part(f"k_{j}", _each(n, 1, own), 0.0, float(deviation[j]), own))
    for k, group in enumerate(groups):
        column = _each(n, 0, resistance * joints[group].sum(axis=0))
        parts.append(_Part(f"copper_size_{k}", column, 0.0, SIZE_SPREAD, nothing))
    return Structure(
        tuple(part.name for part in parts),
        np.column_stack([part.coefficients for part in parts]),
        Prior(np.array([part.mean for part in parts]), np.array([part.std for part in parts])),
        np.column_stack([part.torque for part in parts]),
        constant,
    )


def _single(n: int, place: int) -> Array:
    """Coefficients [4 n + 3] that are zero but for one."""
    out = np.zeros(width(n))
    out[place] = 1.0
    return out


def _each(n: int, kind: int, values: Array) -> Array:
    """Coefficients [4 n + 3] that are `values` for one kind of column and zero elsewhere."""
    out = np.zeros(width(n))
    out[1 + kind * n : 1 + (kind + 1) * n] = values
    return out
