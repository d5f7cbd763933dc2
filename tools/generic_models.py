# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Generates config/models/<arm>.yaml: the model of every UR arm type before it is measured.

    python -m tools.generic_models

The figures are those of config/robots and config/simulation/arm.yaml; where an arm's
robot file has none, they follow from the rated torque. docs/generic_models.md explains
values and spreads. A test checks that the files in the checkout are up to date.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tools.typical_friction import typical_friction
from ur_energy_model.files import config_file
from ur_energy_model.identification.friction_data import LOAD_ASYMMETRY_SPREAD
from ur_energy_model.identification.power_stage import TYPICAL
from ur_energy_model.identification.power_structures import (
    COPPER_FACTOR,
    DRIVER,
    RESISTANCE_SPREAD,
)
from ur_energy_model.model.drives import BusModel, JointModel
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import Friction
from ur_energy_model.model.friction_terms import (
    LOAD,
    LOAD_ASYMMETRY,
    REFERENCE_TEMPERATURE,
)
from ur_energy_model.model.generic import GENERIC
from ur_energy_model.model.model_file import save_model
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.sessions import SessionSpread, scaled_parameters
from ur_energy_model.model.setup import Setup
from ur_energy_model.simulation.arm_constants import constants
from ur_energy_model.simulation.parameters import motor_constants

if TYPE_CHECKING:
    from ur_energy_model.typing import Array

ARMS = (
    "ur3", "ur5", "ur10", "ur3e", "ur5e", "ur7e", "ur10e", "ur12e", "ur16e",
    "ur8long", "ur15", "ur18", "ur20", "ur30",
)  # fmt: skip
PUBLISHED = "robot file"
ASSUMED = "rated torque"
"""Where a constant comes from: the robot file, or other sizes, interpolated over rated torque."""

STANDBY = 30.0  # standby power [W]: 24.2, 29.3, 36.0 (UR5e) and 35.9 (UR3e)
STANDBY_SPREAD = {"ur3e": 4.5, "ur5e": 4.5, "ur7e": 4.5}
UNKNOWN_STANDBY_SPREAD = 6.0
"""Its spread between arms of these types, and of types of which no arm was recorded [W]."""
SIZE_CONSTANT = 0.07
"""Relative spread of torque constants between arms, common to the motors of one size in an arm."""
MOTOR_CONSTANT = 0.045  # the same of single motors of one size in one arm
ASSUMED_CONSTANT = 0.2
"""Relative error of a torque constant that follows from the rated torque: the published ones of
five sizes scatter by this much around their trend."""
CONVERSION = 0.028
"""Relative spread of converted power over speed, current and torque constant between arms, and of
their mean: that of three arms with stated constants is 0.035."""
LAST_WRIST = (1.1, 0.15)
"""Converted power of the last wrist over that by its current, speed and torque constant, and its
spread: with the voltage at the joints as a meter 1.08 (uncertain by 0.05), 1.0 (0.2) and
1.6 (0.4) on three UR5e and 2.4 (1.2) on a UR3e. Other joints do not differ by more than
their errors."""
SIZE_COPPER = 0.15  # spread of this factor between the motor sizes of one arm
ASSUMED_RESISTANCE = 0.4
"""Relative error of a winding resistance that follows from the rated torque."""
# relative error of a reflected inertia
INERTIA = 0.01
ASSUMED_INERTIA = 0.3
FRICTION = 0.4
ASSUMED_FRICTION = 0.5
"""Relative spread of a joint's friction between arms; at sizes that were not calibrated, more. With
stated torque constants joints of three UR5e and a UR3e lie 0.36 to 0.46 rms from the
typical one, each arm by itself."""
FRICTION_FORM = 0.08
"""Relative error of Coulomb friction, and of that which grows with speed, each by itself."""
LOAD_ERROR = 0.02  # error of the gears' friction per unit of load
WARMTH_ERROR = 8.0
"""Unknown part of a joint's temperature [K]: where it is measured is not where the grease is."""
HEADER = """\
# Model of an arm type that no recording was used for, made by python -m tools.generic_models.
# Standard deviations are those between arms of the type; docs/generic_models.md explains them.
# Inertia is joint side; torque constant, friction and motor constants are motor side.
"""


@dataclass(frozen=True)
class Motors:
    """Motor constants of an arm type with n joints.

    Attributes:
        torque_constant, winding_resistance, reflected_inertia: [n], N m/A, ohm, kg m^2
            (joint side).
        sizes: motors of one size in the arm, a mask of the joints each [sizes, n].
        source: PUBLISHED or ASSUMED, by constant and joint.
    """

    torque_constant: Array
    winding_resistance: Array
    reflected_inertia: Array
    sizes: Array
    source: dict[str, list[str]]

    def spread(self, name: str, published: float, assumed: float) -> Array:
        """Standard deviation of a constant by its source [n]."""
        return np.where(np.array(self.source[name]) == PUBLISHED, published, assumed)


def motors(robot: RobotDescription) -> Motors:
    """Motor constants of an arm type."""
    values = motor_constants(robot, robot.max_torque)
    known = {
        "torque_constant": robot.torque_constant,
        "winding_resistance": robot.winding_resistance,
        "rotor_inertia": robot.rotor_inertia,
    }
    rated = np.unique(robot.max_torque)
    return Motors(
        values["torque_constant"],
        values["winding_resistance"],
        robot.gear_ratio**2 * values["rotor_inertia"],
        robot.max_torque == rated[:, None],
        {
            name: [PUBLISHED if found else ASSUMED for found in np.isfinite(nominal)]
            for name, nominal in known.items()
        },
    )


def joint_model(
    robot: RobotDescription, j: int, motor: Motors, friction: Friction
) -> JointModel:
    """One joint of a generic model.

    current_covariance has the spread of torque constants and the form of the friction
    law; the level of friction is the sessions'.
    """
    constant = float(motor.torque_constant[j])
    share = float(torque_constant_spread(motor)[j])
    conversion = float(conversions(motor)[j])
    conversion_std = float(np.linalg.norm(conversion_errors(motor)[:, j]))
    values = friction.parameters
    level = friction_spread(motor)[j]
    warmth = values["power_temperature"]
    own = {
        "coulomb": FRICTION_FORM * values["coulomb"],
        "power": float(np.hypot(FRICTION_FORM * values["power"], WARMTH_ERROR * warmth)),
        "power_temperature": 0.5 * abs(warmth),
        LOAD: LOAD_ERROR,
        LOAD_ASYMMETRY: LOAD_ASYMMETRY_SPREAD,
    }
    coefficients = np.append(1.0, friction.values) / constant
    form = np.append(0.0, [own[name] for name in friction.law.parameters]) / constant
    scaled = scaled_parameters(friction.law)
    source = {name: text[j] for name, text in motor.source.items()}
    resistance = float(motor.winding_resistance[j])
    return JointModel(
        name=robot.joint_names[j],
        gear_ratio=float(robot.gear_ratio[j]),
        reflected_inertia=float(motor.reflected_inertia[j]),
        torque_constant=constant,
        winding_resistance=COPPER_FACTOR[0] * resistance,
        back_emf_constant=conversion * constant,
        friction=friction,
        std={
            "reflected_inertia": float(
                motor.spread("rotor_inertia", INERTIA, ASSUMED_INERTIA)[j]
                * motor.reflected_inertia[j]
            ),
            "torque_constant": share * constant,
            "winding_resistance": float(resistance_spread(motor)[j]) * resistance,
            "back_emf_constant": float(np.hypot(share * conversion, conversion_std))
            * constant,
            **{
                name: float(np.hypot(own[name], level * values[name] * varies))
                for name, varies in zip(
                    friction.law.parameters, scaled.tolist(), strict=True
                )
            },
        },
        source={
            "gear_ratio": PUBLISHED,
            "reflected_inertia": source["rotor_inertia"],
            "torque_constant": source["torque_constant"],
            "winding_resistance": source["winding_resistance"],
            "back_emf_constant": source["torque_constant"],
            **dict.fromkeys(friction.law.parameters, "friction calibration"),
        },
        current_covariance=share**2 * np.outer(coefficients, coefficients)
        + np.diag(form**2),
        current_residual=float(np.interp(robot.max_torque[j], *current_noise())),
        friction_reason=f"typical of UR arms: calibrations, scaled by rated torque, near "
        f"{REFERENCE_TEMPERATURE:g} degC",
    )


def current_noise() -> tuple[Array, Array]:
    """Rated torques [N m] and the noise of motor currents in motion [A], as recorded."""
    table = constants()["sensors"]
    return np.array(table["current_noise_torque"]), np.array(
        table["current_noise_moving"]
    )


def torque_constant_spread(motor: Motors) -> Array:
    """Relative standard deviation of torque constants between arms [n]."""
    own = np.hypot(SIZE_CONSTANT, MOTOR_CONSTANT)
    return np.hypot(own, motor.spread("torque_constant", 0.0, ASSUMED_CONSTANT))


def resistance_spread(motor: Motors) -> Array:
    """Standard deviation of the copper factor of single joints between arms [n]."""
    whole = np.linalg.norm([COPPER_FACTOR[1], SIZE_COPPER, RESISTANCE_SPREAD])
    return np.hypot(whole, motor.spread("winding_resistance", 0.0, ASSUMED_RESISTANCE))


def friction_spread(motor: Motors) -> Array:
    """Relative standard deviation of friction between arms [n]."""
    return motor.spread("winding_resistance", FRICTION, ASSUMED_FRICTION)


def conversions(motor: Motors) -> Array:
    """Back-EMF constants over torque constants [n]."""
    factors = np.ones(len(motor.torque_constant))
    factors[-1] = LAST_WRIST[0]
    return factors


def conversion_errors(motor: Motors) -> Array:
    """Independent errors of these, of all joints together and of the last wrist [2, n]."""
    factors = conversions(motor)
    errors = np.stack([CONVERSION * factors, np.zeros_like(factors)])
    errors[1, -1] = LAST_WRIST[1]
    return errors


def bus_errors(motor: Motors) -> tuple[Array, Array]:
    """Independent errors of the bus model [k, 3 n + 2], standby left to the sessions.

    What motors have in common is one error: the copper factor of the arm, the torque
    constant of motors of one size, the conversion, the driver loss. The second array is
    that of the torque constants by the same errors, relative [k, n].
    """
    n = len(motor.torque_constant)
    every = np.ones((1, n))
    each = np.eye(n)
    assumed = motor.spread("winding_resistance", 0.0, ASSUMED_RESISTANCE)
    guessed = motor.spread("torque_constant", 0.0, ASSUMED_CONSTANT)
    copper = motor.winding_resistance * np.concatenate(
        [
            COPPER_FACTOR[1] * every,
            np.hypot(SIZE_COPPER, assumed) * motor.sizes,
            RESISTANCE_SPREAD * each,
        ]
    )
    constant = motor.torque_constant * np.concatenate(
        [
            np.hypot(SIZE_CONSTANT, guessed) * motor.sizes,
            MOTOR_CONSTANT * each,
        ]
    )
    conversion = motor.torque_constant * conversion_errors(motor)
    driver = DRIVER[1] * every
    rows = len(copper) + len(constant) + len(conversion) + len(driver)
    errors = np.zeros((rows, 2 + 3 * n))
    torque_errors = np.zeros((rows, n))
    first = len(copper)
    second = first + len(constant)
    third = second + len(conversion)
    errors[:first, 1 : 1 + n] = copper
    errors[first:second, 1 + n : 1 + 2 * n] = conversions(motor) * constant
    torque_errors[first:second] = constant / motor.torque_constant
    errors[second:third, 1 + n : 1 + 2 * n] = conversion
    errors[third:, 1 + 2 * n : -1] = driver
    return errors, torque_errors


def make(name: str) -> EnergyModel:
    """The generic model of an arm type."""
    robot = load_robot(name)
    motor = motors(robot)
    friction = typical_friction(robot)
    n = robot.dof
    spread = STANDBY_SPREAD.get(name, UNKNOWN_STANDBY_SPREAD)
    errors, torque_errors = bus_errors(motor)
    return EnergyModel(
        robot=name,
        setup=Setup(np.array([0.0, 0.0, -robot.controller_gravity])),
        setup_source="assumed",
        joints=tuple(joint_model(robot, j, motor, friction[j]) for j in range(n)),
        bus=BusModel(
            kind="physical",
            standby=STANDBY,
            driver=np.full(n, DRIVER[0]),
            inductance=np.zeros(n),
            capacitor_energy=TYPICAL,
            std={"standby": spread, "driver": DRIVER[1]},
            errors=errors,
            torque_errors=torque_errors,
            source="prior",
            reason="no recording: robot file and typical values",
        ),
        provenance={"origin": GENERIC, "made_by": "python -m tools.generic_models"},
        sessions=SessionSpread(spread, friction_spread(motor)),
    )


def main() -> None:
    """Write the files into the checkout."""
    for name in ARMS:
        path = config_file("models", f"{name}.yaml")
        path.parent.mkdir(exist_ok=True)
        save_model(make(name), path, header=HEADER)
        print(path)


if __name__ == "__main__":
    main()
