# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Structures of the power model, linear in their parameters, with the priors of the parameters.

The physical structure keeps the relations that energy conservation and the robot file
give. Its parameters are the standby power, a copper factor (R = factor * winding
resistance), a conversion factor of all joints, the driver loss, and the delays. The ratios
between the conversions of the joints have two possible sources, the torque constants of the
robot file (as in the null model) and the constants identified from currents; the fit of the
bus power chooses a mean of both. Torque constants that the controller states replace both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.motor_powers import backward_difference
from ur_energy_model.errors import InputError
from ur_energy_model.identification.least_squares import Prior, pseudo_inverse
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.robot_modes import RUNNING
from ur_energy_model.rooms import choices_of, chosen
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

# The power at the supply is linear in the following columns. Heredia et al. (EcBot, eq.
# 13-21): P = P_c + sum(R i^2 + k_b w i + driver |i| + L i di/dt). This package adds
# sum(drag |w|), since motors in motion take more than their currents show (see DRAG), and
# two delays. Current and speed of one packet belong to different instants: a drive holds
# its current over a controller cycle, and the packet reports the speed at the end of the
# cycle. One millisecond between them changes the mechanical energy of a joint with high
# acceleration by half a percent, because current and acceleration are correlated. To first
# order in the delays, k_b w i becomes
#     k_b (w - current_delay dw/dt) i - supply_delay k_b d(w i)/dt.

STANDSTILL_SPEED = 0.003  # joint speed below which a joint stands still [rad/s]
WIND_UP_TIME = 0.03
"""Time in which a gear winds up: a period of its resonance at 30 Hz [s]."""


class PowerLayout:
    """Positions of the 4 n + 4 power columns and their coefficients, for an arm with n joints.

    The attributes are positions. Behind each one are the quantity of its column and the
    unit of its coefficient; i is the current [A] and w the speed [rad/s] of a motor.

    Args:
        joints: number of joints n.

    Attributes:
        standby: constant [W].
        copper: i^2 of each joint [ohm].
        conversion: w i of each joint [V s/rad].
        driver: |i| of each joint [W/A].
        inductance: i di/dt of each joint [H].
        drag: sum of |w| [N m].
        current_delay: delay of the currents behind the speeds [s].
        supply_delay: delay of the power behind the speeds [s].
        width: number of columns.
        bus_errors: positions of the columns of `BusModel.errors`.
        without_delays: positions of the 4 n + 1 columns of EcBot.
    """

    standby = 0
    current_delay = -2
    supply_delay = -1

    def __init__(self, joints: int) -> None:
        self.joints = joints
        self.width = 4 * joints + 4
        self.drag = 4 * joints + 1
        self.copper = slice(1, 1 + joints)
        self.conversion = slice(1 + joints, 1 + 2 * joints)
        self.driver = slice(1 + 2 * joints, 1 + 3 * joints)
        self.inductance = slice(1 + 3 * joints, 1 + 4 * joints)
        self.bus_errors = [*range(self.driver.stop), self.drag]
        self.without_delays = slice(0, self.inductance.stop)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the coefficients [width], such as "R_2" (joint numbers from 1)."""
        names = ["standby"]
        for kind in ("R", "k", "driver", "L"):
            names += [f"{kind}_{joint}" for joint in range(1, self.joints + 1)]
        return (*names, "drag", "current_delay", "supply_delay")

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the coefficients [width]."""
        units = ["W"]
        for unit in ("ohm", "V s/rad", "W/A", "H"):
            units += [unit] * self.joints
        return (*units, "N m", "s", "s")

    def coefficients(self, position: int | slice, values: Array | float) -> Array:
        """Coefficients [width] that have `values` at a position and are zero elsewhere."""
        out = np.zeros(self.width)
        out[position] = values
        return out


class PowerRows(NamedTuple):
    """Samples of a batch with finite values.

    Attributes:
        time: controller timestamps [samples], s.
        qd: joint speeds [samples, n], rad/s.
        current: motor currents [samples, n], A.
        power: measured power at the supply [samples], W.
        mode: robot mode, an RTDE code [samples].
    """

    time: Array
    qd: Array
    current: Array
    power: Array
    mode: Array


def power_rows(telemetry: Telemetry) -> PowerRows | None:
    """Samples of a batch with finite values; None where a column is missing.

    Without robot_mode the robot counts as running.
    """
    names = (
        "actual_qd",
        "actual_current",
        "actual_robot_voltage",
        "actual_robot_current",
    )
    if any(name not in telemetry for name in names):
        return None
    telemetry = telemetry.distinct()
    speed = telemetry["actual_qd"]
    current = telemetry["actual_current"]
    power = telemetry["actual_robot_voltage"] * telemetry["actual_robot_current"]
    mode = np.full(len(power), float(RUNNING))
    if "robot_mode" in telemetry:
        mode = telemetry["robot_mode"]
    good = np.isfinite(power)
    good &= np.isfinite(speed).all(axis=1)
    good &= np.isfinite(current).all(axis=1)
    return PowerRows(
        telemetry.time[good], speed[good], current[good], power[good], mode[good]
    )


def breaking_away(rows: PowerRows) -> Mask:
    """Samples within WIND_UP_TIME after a joint's breakaway [samples].

    The motor winds up the gear before the link moves, so that the recorded speed of the
    link does not show the power of the motor.
    """
    moving = np.abs(rows.qd) > STANDSTILL_SPEED
    began = np.zeros(len(rows.time), dtype=bool)
    began[1:] = (moving[1:] & ~moving[:-1]).any(axis=1)
    last = np.maximum.accumulate(np.where(began, rows.time, -np.inf))
    return np.asarray(rows.time - last <= WIND_UP_TIME)


def power_columns(rows: PowerRows, gear_ratio: Array, constant: Array) -> Array:
    """Columns (1, i^2, w i, |i|, i di/dt, sum |w|, two delays) [samples, 4 n + 4].

    Args:
        rows: rows of a batch of telemetry.
        gear_ratio: motor turns per joint turn [n].
        constant: torque constants that weight the columns of the delays [n], N m/A.
    """
    time = rows.time
    current = rows.current
    speed = gear_ratio * rows.qd
    product = speed * current
    return np.column_stack(
        [
            np.ones(len(time)),
            current**2,
            product,
            np.abs(current),
            current * backward_difference(time, current),
            np.abs(speed).sum(axis=1),
            -(backward_difference(time, speed) * current) @ constant,
            -backward_difference(time, product) @ constant,
        ]
    )


STANDBY = (30.0, 10.0)
"""Standby power where the robot file has none, and its spread between arms [W]."""
COPPER_FACTOR = (0.5, 0.45)
"""Mean and spread of the copper loss over i^2 times the winding resistance of the robot file: 0.43
by the catalogue motor constant of Clochiatti et al., 0.75 to 1.5 by phase convention and
temperature. Recordings of four arms show 0.25 to 0.45 beside DRIVER, each uncertain by 0.1."""
RESISTANCE_SPREAD = 0.03
"""Spread of winding resistances of one size: data sheets allow 5 % either way."""
CONVERSION_FACTOR = (1.0, 0.07)
"""Mean and spread of the converted power over speed times current times torque constant: 0.91 to
1.10, RMS deviation 0.07 from 1, in recordings of four arms, uncertain by 0.02 to 0.08 each. The
factor includes errors of nominal masses, friction in proportion to the load, and losses of the
drives."""
OWN_CONSTANTS = (0.5, 0.5)
"""Mean and spread of the weight of torque constants from currents (1) against the constants of the
robot file (0) in the conversion. Errors of held-out recordings of four arms with weight 1 and 0:
0.7 and 1.1 % between days of one arm, 1.4 and 1.0 % between arms; with 0.5: 0.8 and 1.2 %."""
CONVERSION_OF_JOINT = 0.05
"""Relative deviation of a joint's conversion from the conversion of all joints, beyond the
deviation of its torque constant, for joints with a meter: measured over modelled power of shoulder
lifts and elbows of three arms is 0.86 to 1.04."""
UNKNOWN_RESISTANCE = (1.0, 1.0)
"""Winding resistance and its spread where the rated torque is also unknown [ohm]."""
_RATED_TORQUE = (9.0, 28.0, 54.0, 150.0, 330.0)
_RATED_RESISTANCE = (2.394, 1.65, 0.78, 0.3, 0.088)
"""Winding resistances by rated torque, joint side [N m], from the e-Series robot
files."""
_RATED_CONSTANT = (3.60, 7.77, 10.86, 9.93, 12.09)
"""Torque constants times gear ratio by rated torque, joint side [N m/A], from the same
files."""
_UNRATED_CONSTANT = 10.0  # torque constant without a rated torque, joint side [N m/A]
_RATED_SPREAD = 0.5  # relative spread of a resistance from the rated torque
EXACT = 1e-9  # standard deviation of parameters that are assumed and not fitted
DRIVER = (0.25, 0.06)
"""Mean and spread of the driver loss [W/A]; regressions of recorded power give 0.1 to 0.35, each
uncertain by 0.15, because i^2 and |i| are strongly correlated."""
DRAG = 0.02
"""Spread of a loss in proportion to the motor speed, over the torque constant [A]. Switching adds
ripple to currents and flux; its loss grows with the voltage, and mean currents do not show it.
Recordings of four arms have 4 to 6 mN m, uncertain by 1 to 6 (a tenth of the no-load friction; one
recording at 10 Hz has 18). The value was chosen by RMS errors of held-out recordings. With spreads
of 0, 0.01, 0.02, 0.03, 0.05 and 0.1 they are: within a day (5 pairs) 0.66, 0.59, 0.50, 0.45, 0.39,
0.32 %, null model 0.58; on other days (2) 1.07, 1.07, 1.07, 1.08, 1.10, 1.14 %, null model 1.08; on
other arms (7) 1.01, 1.02, 1.04, 1.10, 1.33, 1.78 %, null model 1.34. If each of the arms in turn is
left out, the best spreads are 0.02, 0.02, 0, and 0.1, the last one with 3 pairs left."""
_LEAST_COPPER = 0.02
"""Least deviation of a copper factor known before, relative: windings warm up."""
_LEAST_DRIVER = 0.01  # least deviation of a driver loss known before [W/A]
DELAY = 2e-3  # spread of the delays [s]: a few cycles of drives and sensors


class Structure(NamedTuple):
    """A model of the power, linear in its parameters.

    Attributes:
        names: names of the p parameters.
        basis: matrix [4 n + 4, p]; coefficients of the power columns = basis @ parameters.
        prior: prior of the parameters.
        torque: matrix [n, p], N m/A; torque constants = base + torque @ parameters.
        base: torque constants at parameters of zero [n], N m/A.
        own: joints whose conversion has a separate coefficient [n].
        single: conversions of single joints among the parameters [p].
    """

    names: tuple[str, ...]
    basis: Array
    prior: Prior
    torque: Array
    base: Array
    own: Mask
    single: Mask


def expected_resistance(robot: RobotDescription) -> tuple[Array, Array]:
    """Prior winding resistances and the standard deviations of single motors [n], ohm.

    From the robot file; where it has none, typical for the rated torque, with a relative
    uncertainty of a half or more.
    """
    sized, typical = _typical(robot, _RATED_RESISTANCE)
    value = np.where(sized, typical, UNKNOWN_RESISTANCE[0])
    spread = np.where(sized, _RATED_SPREAD * typical, UNKNOWN_RESISTANCE[1])
    known = np.isfinite(robot.winding_resistance)
    nominal = np.nan_to_num(robot.winding_resistance)
    value = np.where(known, nominal, value)
    return value, np.where(known, RESISTANCE_SPREAD * nominal, spread)


def expected_constant(robot: RobotDescription) -> Array:
    """Torque constants before any data [n], N m/A, motor side: the robot file's, else typical."""
    sized, typical = _typical(robot, _RATED_CONSTANT)
    joint_side = np.where(sized, typical, _UNRATED_CONSTANT)
    known = np.isfinite(robot.torque_constant)
    return np.where(
        known, np.nan_to_num(robot.torque_constant), joint_side / robot.gear_ratio
    )


def _typical(robot: RobotDescription, table: tuple[float, ...]) -> tuple[Mask, Array]:
    """Joints with a rated torque, and values interpolated over it [n], both logarithmic."""
    sized = np.isfinite(robot.max_torque)
    rated = np.log(np.where(sized, robot.max_torque, _RATED_TORQUE[0]))
    return sized, np.exp(np.interp(rated, np.log(_RATED_TORQUE), np.log(table)))


# Models of bus power that rooms add.

PHYSICAL = "physical"
"""Name of this package's own structure, see `physical`."""
POWER_MODELS = "power models"
"""Subject of the rooms' extensions that provide a `PowerModel`."""


@dataclass(frozen=True)
class PowerModel:
    """A structure of bus power beside the physical one, such as the structure of a paper.

    Rooms add them with an `Extension` of the subject POWER_MODELS and the same name.

    Attributes:
        name: name as in `--power-model`, and as `BusModel.kind` of the models that have
            it.
        reason: description of the model, one line for the model file.
        structure: function that makes the structure, from the robot and the torque
            constants, motor side [n], N m/A.
        fits_motors: whether bus power determines the motors' constants. Then the physical
            structure is used where no bus power was recorded. Otherwise the constants of
            the motors are assumed, and their source is the model's name.
    """

    name: str
    reason: str
    structure: Callable[[RobotDescription, Array], Structure]
    fits_motors: bool


def power_model_names() -> tuple[str, ...]:
    """Names of all power models: "physical", and those that rooms add."""
    return choices_of(PHYSICAL, POWER_MODELS)


def added_power_model(name: str) -> PowerModel | None:
    """The power model of a room by its name; None for the physical one.

    Args:
        name: name as in `--power-model`.

    Raises:
        InputError: no room provides it.
    """
    if name == PHYSICAL:
        return None
    extension = chosen(name, POWER_MODELS)
    if extension is None:
        raise InputError(
            f"power model {name}",
            "is not in this installation",
            f"use {' or '.join(power_model_names())}",
        )
    model: PowerModel = extension.load()
    return model


class PowerPrior(NamedTuple):
    """Prior of the power of an arm with n joints: means and standard deviations.

    Attributes:
        standby: standby power [W].
        copper: factor of the winding resistances, common to the joints.
        own_copper: factor of each joint less the common factor, means only [n].
        driver: loss of the drivers over the size of the current [W/A].
        drag: loss of a moving motor over its speed [N m].
    """

    standby: tuple[float, float]
    copper: tuple[float, float]
    own_copper: Array
    driver: tuple[float, float]
    drag: tuple[float, float]


def power_prior(robot: RobotDescription, model: EnergyModel | None = None) -> PowerPrior:
    """Prior of an arm not yet identified, or of one with a model, in any session.

    Args:
        robot: the arm.
        model: known before; None for an arm that was not identified.
    """
    standby = robot.standby_power if np.isfinite(robot.standby_power) else STANDBY[0]
    drag = DRAG * float(expected_constant(robot).mean())
    if model is None or model.bus.kind != PHYSICAL:
        own = np.zeros(robot.dof)
        return PowerPrior((standby, STANDBY[1]), COPPER_FACTOR, own, DRIVER, (0.0, drag))
    bus = model.bus
    expected, _ = expected_resistance(robot)
    resistance = np.array([joint.winding_resistance for joint in model.joints])
    factors = resistance / expected
    std = [joint.std.get("winding_resistance", np.inf) for joint in model.joints]
    copper = float((np.array(std) / expected).max())
    mean = float(factors.mean())
    still = float(np.hypot(bus.std.get("standby", STANDBY[1]), model.sessions.standby))
    driver = max(min(bus.std.get("driver", DRIVER[1]), DRIVER[1]), _LEAST_DRIVER)
    return PowerPrior(
        standby=(bus.standby, min(still, STANDBY[1])),
        copper=(mean, max(min(copper, COPPER_FACTOR[1]), _LEAST_COPPER * mean)),
        own_copper=factors - mean,
        driver=(float(bus.driver.mean()), driver),
        drag=(bus.drag, drag),
    )


class JointPowerEvidence(NamedTuple):
    """Converted power of each of n joints by a meter at the joint, independent of the bus.

    Attributes:
        conversion: converted power over current and motor speed [n], V s/rad.
        precision: inverse covariance of the conversions [n, n]; zero for joints without a
            meter.
    """

    conversion: Array
    precision: Array


class _Parameter(NamedTuple):
    """A parameter of the physical structure of an arm with n joints.

    Attributes:
        name: name of the parameter.
        place: positions of the power columns whose coefficients depend on the parameter.
        values: changes of these coefficients per unit of the parameter.
        prior: mean and standard deviation of the parameter.
        torque: torque constants per unit of the parameter [n]; None for none.
    """

    name: str
    place: int | slice
    values: Array | float
    prior: tuple[float, float]
    torque: Array | None = None


def physical(
    robot: RobotDescription,
    constant: Array,
    deviation: Array,
    known: PowerPrior | None = None,
    *,
    stated: Mask | None = None,
    meter: JointPowerEvidence | None = None,
) -> Structure:
    """The physical structure of the power of an arm with n joints.

    Its parameters are standby power, common factors of copper loss and conversion, driver
    loss, drag, two delays, copper factors of single joints, and torque constants.

    A torque constant that neither robot file nor controller state is a parameter itself,
    so that bus power corrects it. The conversion of a joint is a separate parameter where
    the controller states its torque constant or a meter is at the joint; it deviates from
    the common conversion within the deviation of the torque constant.

    Args:
        robot: the arm.
        constant: torque constants identified from currents, or stated [n], N m/A.
        deviation: standard deviations of the torque constants [n], N m/A.
        known: prior of the other parameters; None for the robot file's.
        stated: joints [n] whose constants the controller states; None for none.
        meter: converted powers by meters at the joints; None without meters.
    """
    n = robot.dof
    known = known or power_prior(robot)
    resistance, spread = expected_resistance(robot)
    constant = np.nan_to_num(constant)
    layout = PowerLayout(n)
    conversion = layout.conversion
    joints = np.eye(n)
    stated = np.zeros(n, dtype=bool) if stated is None else stated
    of_file = np.isfinite(robot.torque_constant) & ~stated
    typical = np.where(of_file, robot.torque_constant, constant)
    # Only constants that no robot file has: the differences between constants of currents
    # and of the robot file are larger than the accuracy of single joints by bus power.
    free_constants = ~of_file & ~stated & (deviation > 0)
    metered = np.zeros(n, dtype=bool) if meter is None else np.diag(meter.precision) > 0
    own_conversion = (stated & (deviation > 0)) | (metered & ~free_constants)
    relative = deviation / np.where(typical > 0, typical, 1.0)
    relative = np.where(metered, np.hypot(relative, CONVERSION_OF_JOINT), relative)
    parameters = [
        _Parameter("standby", layout.standby, 1.0, known.standby),
        _Parameter("copper", layout.copper, resistance, known.copper),
        _Parameter("conversion", conversion, typical, CONVERSION_FACTOR),
    ]
    if of_file.any():
        difference = constant - typical
        parameters.append(
            _Parameter("own_constants", conversion, difference, OWN_CONSTANTS)
        )
    parameters += [
        _Parameter("driver", layout.driver, 1.0, known.driver),
        _Parameter("drag", layout.drag, 1.0, known.drag),
        _Parameter("current_delay", layout.current_delay, 1.0, (0.0, DELAY)),
        _Parameter("supply_delay", layout.supply_delay, 1.0, (0.0, DELAY)),
    ]
    for j in range(n):
        own = (float(known.own_copper[j]), float(spread[j] / resistance[j]))
        values = resistance * joints[j]
        parameters.append(_Parameter(f"copper_{j}", layout.copper, values, own))
    for j in np.flatnonzero(free_constants).tolist():
        prior = (0.0, float(deviation[j]))
        parameters.append(
            _Parameter(f"k_{j}", conversion, joints[j], prior, torque=joints[j])
        )
    single = np.zeros(len(parameters), dtype=bool)
    for j in np.flatnonzero(own_conversion).tolist():
        prior = (0.0, float(relative[j]))
        values = typical * joints[j]
        parameters.append(_Parameter(f"conversion_{j}", conversion, values, prior))
        single = np.append(single, True)
    return Structure(
        names=tuple(parameter.name for parameter in parameters),
        basis=np.column_stack(
            [layout.coefficients(one.place, one.values) for one in parameters]
        ),
        prior=Prior(
            np.array([parameter.prior[0] for parameter in parameters]),
            np.array([parameter.prior[1] for parameter in parameters]),
        ),
        torque=np.column_stack(
            [np.zeros(n) if one.torque is None else one.torque for one in parameters]
        ),
        base=constant,
        own=free_constants | own_conversion,
        single=single,
    )


def with_meter(structure: Structure, meter: JointPowerEvidence) -> Structure:
    """A physical structure whose prior includes what a meter at the joints shows.

    Args:
        structure: structure of n joints.
        meter: what the voltages at the joints show.
    """
    prior = structure.prior
    shown = structure.basis[PowerLayout(len(structure.base)).conversion]
    precision = prior.precision + shown.T @ meter.precision @ shown
    measured = shown.T @ meter.precision @ np.nan_to_num(meter.conversion)
    covariance = pseudo_inverse(precision)
    mean = covariance @ (prior.precision @ prior.mean + measured)
    return structure._replace(prior=Prior(mean, np.sqrt(np.diag(covariance)), covariance))


def three_coefficients(whole: Structure) -> Structure:
    """The null model's terms of a physical structure: standby, copper and conversion factors."""
    kept = [whole.names.index(name) for name in ("standby", "copper", "conversion")]
    prior = Prior(whole.prior.mean[kept], whole.prior.std[kept])
    names = tuple(whole.names[k] for k in kept)
    return Structure(
        names,
        whole.basis[:, kept],
        prior,
        whole.torque[:, kept],
        whole.base,
        np.zeros(len(whole.base), dtype=bool),
        whole.single[kept],
    )
