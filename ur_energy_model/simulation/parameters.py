# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""True constants of a simulated arm: typical values of real arms and their spread.

Values and sources are in config/simulation/arm.yaml. The identification does not see
them; it has to find the constants from telemetry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import ArrayLike

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.simulation.arm_constants import constants
from ur_energy_model.typing import Array, Indices


@dataclass(frozen=True)
class NoLoadFriction:
    """Friction torque of n joints over speed, joint side; forwards and backwards are [2, n].

    |torque| = coulomb (1 + (breakaway - 1) exp(-(qd / stribeck_speed)^2))
        + rise (1 - exp(-|qd| / pace)) + viscous |qd|

    in N m, rad/s and N m s/rad. Friction grows less than proportionally to speed because
    grease is shear-thinning. The curve follows a factory calibration. Of the laws that the
    identification fits, only the shear-thinning law has the form of this curve, but
    without breakaway and with one pace for both directions.

    Attributes:
        coulomb: friction at a slow speed [2, n], N m.
        rise: friction that shear-thinning grease adds at high speeds [2, n], N m.
        pace: speed over which this friction rises to 63 % [2, n], rad/s.
        viscous: friction per speed [2, n], N m s/rad.
        breakaway: static over Coulomb friction [n].
        stribeck_speed: speed over which breakaway vanishes [n], rad/s.
    """

    coulomb: Array
    rise: Array
    pace: Array
    viscous: Array
    breakaway: Array
    stribeck_speed: Array

    def torque(self, qd: Array, factor: Array | float = 1.0) -> Array:
        """Friction torque [..., n], N m, with the sign of the speed.

        Args:
            qd: joint speeds [..., n], rad/s.
            factor: temperature factor on the part of the friction that depends on the
                speed.
        """
        direction = (qd < 0).astype(int)
        joint = np.arange(qd.shape[-1])
        speed = np.abs(qd)
        slow = np.exp(-((speed / self.stribeck_speed) ** 2))
        stribeck = 1.0 + (self.breakaway - 1.0) * slow
        thinning = 1.0 - np.exp(-speed / self.pace[direction, joint])
        viscous = self.viscous[direction, joint] * speed
        moving = self.rise[direction, joint] * thinning + viscous
        coulomb = self.coulomb[direction, joint] * stribeck
        return np.asarray(np.sign(qd) * (coulomb + factor * moving))

    def straight_line(
        self, max_speed: Array, factor: Array | float = 1.0
    ) -> tuple[Array, Array]:
        """Best fitting Coulomb [n] and viscous [n] friction from 5 to 100 % of `max_speed`.

        Args:
            max_speed: fastest speed of each joint [n], rad/s.
            factor: temperature factor on the part of the friction that depends on the
                speed.

        Returns:
            Coulomb friction [n], N m, and viscous friction [n], N m s/rad.
        """
        share = np.linspace(0.05, 1.0, 40)
        speed = share[:, None] * max_speed
        torque = 0.5 * (self.torque(speed, factor) - self.torque(-speed, factor))
        columns = np.stack([np.ones_like(share), share], axis=1)
        fit = np.linalg.lstsq(columns, torque, rcond=None)[0]
        return np.asarray(fit[0]), np.asarray(fit[1] / max_speed)


LOADED_JOINT = 1
"""Joint at which recorded controllers compensate friction by load as well: the shoulder
lift."""
FULL_COMPENSATION = 0.01
"""Speed from which the controller compensates friction fully [rad/s]; below it the
compensation grows with the speed, as on recorded UR5e arms at 500 Hz."""


@dataclass(frozen=True)
class FrictionCompensation:
    """Friction of n joints as the controller compensates it, joint side; arrays [n].

    The curve over speed is the curve of `NoLoadFriction`, alike in both directions and
    without breakaway. Recorded controllers have such curves, and on the shoulder lift a
    share of the load.

    Attributes:
        coulomb: Coulomb friction as in `NoLoadFriction`, N m.
        rise: rise of the friction with speed as in `NoLoadFriction`, N m.
        pace: speed scale of the rise as in `NoLoadFriction`, rad/s.
        viscous: viscous friction as in `NoLoadFriction`, N m s/rad.
        of_load: compensating torque over target_moment.
    """

    coulomb: Array
    rise: Array
    pace: Array
    viscous: Array
    of_load: Array

    @classmethod
    def of_curve(
        cls, true: NoLoadFriction, scale: Array, of_load: Array
    ) -> FrictionCompensation:
        """A share of the true friction, mean of both directions.

        Args:
            true: friction of the arm.
            scale: share that the controller compensates [n].
            of_load: compensation over target_moment [n].
        """
        return cls(
            coulomb=scale * true.coulomb.mean(axis=0),
            rise=scale * true.rise.mean(axis=0),
            pace=true.pace.mean(axis=0),
            viscous=scale * true.viscous.mean(axis=0),
            of_load=of_load,
        )

    def torque(self, qd: Array, moment: Array) -> Array:
        """Compensating torque [n], N m.

        Args:
            qd: joint speeds [n], rad/s.
            moment: target_moment [n], N m.
        """
        speed = np.abs(qd)
        curve = (
            self.coulomb
            + self.rise * (1.0 - np.exp(-speed / self.pace))
            + self.viscous * speed
        )
        started = np.minimum(speed / FULL_COMPENSATION, 1.0)
        return np.asarray(np.sign(qd) * (started * curve + self.of_load * np.abs(moment)))


def fit_calibration(speed: Array, torque: Array) -> Array:
    """Constants of n friction curves, see `NoLoadFriction`.

    |torque| = coulomb + rise (1 - exp(-speed / pace)) + viscous speed, all non-negative, with the
    smallest relative error over a grid of paces from 0.05 to 3 rad/s.

    Args:
        speed: joint speeds of the calibration [m], rad/s.
        torque: friction at these speeds [n, m], N m.

    Returns:
        Coulomb, rise, pace and viscous of each curve, one row a joint [n, 4], N m, N m,
        rad/s and N m s/rad.
    """
    paces = np.geomspace(0.05, 3.0, 100)
    terms = np.broadcast_arrays(1.0, 1.0 - np.exp(-speed / paces[:, None]), speed)
    columns = np.stack(terms, axis=-1)[:, None] / torque[:, :, None]
    best = np.empty((len(torque), 4))
    error = np.full(len(torque), np.inf)
    # The non-negative solution of least error is the solution with some of the columns,
    # without the others; with three columns, all choices are tried.
    for used in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
        q, r = np.linalg.qr(columns[..., used])
        found = np.linalg.solve(r, q.sum(axis=-2)[..., None])
        fitted = (columns[..., used] @ found)[..., 0]
        residual = np.linalg.norm(fitted - 1.0, axis=-1)
        residual[(found < 0.0).any(axis=(-2, -1))] = np.inf
        for joint, place in enumerate(residual.argmin(axis=0)):
            if residual[place, joint] < error[joint]:
                error[joint] = residual[place, joint]
                values = np.zeros(3)
                values[used] = found[place, joint, :, 0]
                best[joint] = np.insert(values, 2, paces[place])
    return best


@dataclass(frozen=True)
class ArmParameters:
    """True constants of one simulated arm with n joints; arrays [n], joint side unless noted.

    Attributes:
        seed: number of the arm among the arms of its type.
        gear_ratio: motor turns per joint turn.
        torque_constant: torque constant, motor side, N m/A.
        stated_torque_constant: torque constant in the controller's calibration, motor
            side, N m/A.
        back_emf_constant: constant per phase, V s/rad: torque_constant / 1.5 (three-phase
            convention).
        winding_resistance: electrical resistance of the windings, ohm.
        effective_resistance: copper loss over squared current, ohm.
        reflected_inertia: nominal rotor and reducer, as in target_moment, kg m^2.
        rotor_inertia: true rotor and reducer, kg m^2.
        friction: friction of motor and wave generator at the calibration temperature.
        temperature_model: a, b, c, d of a exp(bT) + c exp(dT), T in degC [n, 4].
        calibration_temperature: temperature of the joints in the factory calibration,
            degC.
        load_direct: friction over transmitted torque while driving.
        load_reverse: friction over transmitted torque while driven by the load.
        flex_spline_coulomb: friction of the flex spline, N m.
        flex_spline_viscous: viscous friction of the flex spline, N m s/rad.
        stiffness: K1, K2, K3 of the strain-wave gears [n, 3], N m/rad.
        knees: T1, T2 of the strain-wave gears [n, 2], N m.
        damping: viscous damping of the gears, N m s/rad.
        max_current: largest current of the motors, A.
        thermal_resistance: thermal resistance from the joints to the air, K/W.
        thermal_capacity: heat capacity of the joints, J/K.
        standby_heat: power that heats each joint at rest, W.
        standby_power: whole arm with brakes released, W.
        driver_loss: loss of the drives per motor current, W/A.
        power_noise: one standard deviation of the bus power, W.
        compensation: friction compensation of the controller, friction of the flex spline
            included.
        controller_current_offset: difference of the target current from the current by
            the controller's constants, A.
        current_noise_rest: one standard deviation of the measured current at rest, A.
        current_noise_moving: one standard deviation of the measured current in motion, A.
    """

    seed: int
    gear_ratio: Array
    torque_constant: Array
    stated_torque_constant: Array
    back_emf_constant: Array
    winding_resistance: Array
    effective_resistance: Array
    reflected_inertia: Array
    rotor_inertia: Array
    friction: NoLoadFriction
    temperature_model: Array
    calibration_temperature: float
    load_direct: Array
    load_reverse: Array
    flex_spline_coulomb: Array
    flex_spline_viscous: Array
    stiffness: Array
    knees: Array
    damping: Array
    max_current: Array
    thermal_resistance: Array
    thermal_capacity: Array
    standby_heat: Array
    standby_power: float
    driver_loss: float
    power_noise: float
    compensation: FrictionCompensation
    controller_current_offset: Array
    current_noise_rest: Array
    current_noise_moving: Array

    @cached_property
    def current_to_torque(self) -> Array:
        """Joint-side torque of a motor current [n], N m/A."""
        return np.asarray(self.gear_ratio * self.torque_constant)

    @cached_property
    def stated_current_to_torque(self) -> Array:
        """Joint-side torque of a motor current as the controller computes it [n], N m/A."""
        return np.asarray(self.gear_ratio * self.stated_torque_constant)

    def friction_factor(self, temperature: Array) -> Array:
        """Speed-dependent friction at joint temperatures [n], degC, relative to calibration.

        Args:
            temperature: temperatures of the joints [n], degC.
        """
        a, b, c, d = self.temperature_model.T

        def level(at: Array | float) -> Array:
            return np.asarray(a * np.exp(b * at) + c * np.exp(d * at))

        return np.asarray(level(temperature) / level(self.calibration_temperature))

    def with_viscous_friction_only(self) -> ArmParameters:
        """The same arm without friction that does not grow in proportion to the speed."""
        none = np.zeros_like(self.load_direct)
        curve = self.friction
        return replace(
            self,
            friction=replace(curve, coulomb=0.0 * curve.coulomb, rise=0.0 * curve.rise),
            flex_spline_coulomb=none,
            load_direct=none,
            load_reverse=none,
            compensation=replace(
                self.compensation, coulomb=none, rise=none, of_load=none
            ),
        )

    def with_friction_scaled(self, scale: Array) -> ArmParameters:
        """The arm with all friction of each joint multiplied by a factor [n].

        Args:
            scale: factor of each joint [n].
        """
        curve = self.friction
        return replace(
            self,
            friction=replace(
                curve,
                coulomb=curve.coulomb * scale,
                rise=curve.rise * scale,
                viscous=curve.viscous * scale,
            ),
            flex_spline_coulomb=self.flex_spline_coulomb * scale,
            flex_spline_viscous=self.flex_spline_viscous * scale,
            load_direct=self.load_direct * scale,
            load_reverse=self.load_reverse * scale,
        )


_ARM_STREAM = (
    20241021  # keeps the constants of arms apart from other draws with their seeds
)
_CALIBRATION_STREAM = 20261129  # keeps the errors of the controller's calibration apart
_PHASES = 1.5  # torque constant over back-EMF constant of a phase, three phases
_LEAST_COULOMB = 0.1  # least share of the calibrated friction that is left to the rotor
_LOSS_FREQUENCY = 20.0  # frequency at which gears have their loss factor [Hz]
_OVERCURRENT = 1.3  # largest current of a motor over the current at rated torque
_RESISTANCE_EXPONENT = -0.5  # exponent of the rated torque in thermal resistances
_CAPACITY_EXPONENT = 0.6  # exponent of the rated torque in thermal capacities


def draw_parameters(robot: RobotDescription, seed: int = 0) -> ArmParameters:
    """Constants of arm number `seed` of this type.

    The spread is centred on the known constants of the type; unknown ones are assumed by
    joint size, see config/simulation/arm.yaml.

    Args:
        robot: the arm's type.
        seed: number of the arm; the same number is the same arm.
    """
    table = constants()
    spread = table["spread"]
    limits = table["thermal"]
    sensors = table["sensors"]
    laws = table["friction"]
    measured = table["friction_calibration"]
    catalogue = table["harmonic_drive"]
    random = np.random.default_rng([seed, _ARM_STREAM])
    n = robot.dof
    torque = joint_sizes(robot)

    def around(half_width: float) -> Array:
        """Factors about 1 [n], drawn with this half width."""
        return np.asarray(1.0 + random.uniform(-half_width, half_width, n))

    motor = motor_constants(robot, torque)
    torque_constant = motor["torque_constant"] * around(spread["torque_constant"])
    # A stream of its own: the other constants of an arm do not depend on its calibration.
    calibration = np.random.default_rng([seed, _CALIBRATION_STREAM])
    calibration_errors = spread["torque_calibration"] * calibration.standard_normal(n)
    stated_constant = torque_constant * (1.0 + calibration_errors)
    share_of_load = calibration.uniform(0.0, spread["controller_load_friction"])
    load_friction = np.where(np.arange(n) == LOADED_JOINT, share_of_load, 0.0)
    offset_share = spread["current_offset"] * calibration.standard_normal(n)
    if calibration.random() >= spread["arms_with_current_offset"]:
        offset_share = np.zeros(n)
    resistance = motor["winding_resistance"] * around(spread["winding_resistance"])
    reflected = robot.gear_ratio**2 * motor["rotor_inertia"]
    friction = no_load_friction(robot, torque, around(spread["friction"]))
    standby = float(random.uniform(*spread["standby_power"]))
    compensated = around(spread["controller_friction"])
    ratio = torque / laws["flex_spline_max_torque"]
    flex = laws["flex_spline_coulomb"] * ratio ** measured["size_exponent"]
    sizes = [gear["max_torque"] for gear in catalogue]
    columns = np.array([[*gear["K"], *gear["T"]] for gear in catalogue])
    gears = np.stack(
        [_interpolate(torque, sizes, column) for column in columns.T], axis=1
    )
    noise_sizes = sensors["current_noise_torque"]
    size = torque / limits["max_torque"]
    torque_per_ampere = robot.gear_ratio * torque_constant  # joint side [n]
    return ArmParameters(
        seed=seed,
        gear_ratio=robot.gear_ratio,
        torque_constant=torque_constant,
        stated_torque_constant=stated_constant,
        back_emf_constant=torque_constant / _PHASES,
        winding_resistance=resistance,
        effective_resistance=resistance * random.uniform(*spread["copper_factor"]),
        reflected_inertia=reflected,
        rotor_inertia=reflected * around(spread["reflected_inertia"]),
        # the calibration includes the flex spline, which is modelled separately
        friction=replace(
            friction,
            coulomb=np.maximum(
                friction.coulomb - flex, _LEAST_COULOMB * friction.coulomb
            ),
            viscous=friction.viscous - laws["flex_spline_viscous"],
        ),
        temperature_model=np.where(
            np.isfinite(robot.friction_temperature_model),
            robot.friction_temperature_model,
            laws["temperature_model"],
        ),
        calibration_temperature=measured["temperature"],
        load_direct=np.full(n, laws["load_direct"]),
        load_reverse=np.full(n, laws["load_reverse"]),
        flex_spline_coulomb=flex,
        flex_spline_viscous=np.full(n, laws["flex_spline_viscous"]),
        stiffness=gears[:, :3],
        knees=gears[:, 3:],
        damping=table["loss_factor"] * gears[:, 0] / (2 * np.pi * _LOSS_FREQUENCY),
        max_current=_OVERCURRENT * torque / torque_per_ampere,
        thermal_resistance=limits["resistance"] * size**_RESISTANCE_EXPONENT,
        thermal_capacity=limits["capacity"] * size**_CAPACITY_EXPONENT,
        standby_heat=np.full(n, limits["standby_share"] * standby / n),
        standby_power=standby,
        driver_loss=float(random.uniform(*spread["driver_loss"])),
        power_noise=float(random.uniform(*spread["power_noise"])),
        compensation=FrictionCompensation.of_curve(friction, compensated, load_friction),
        controller_current_offset=offset_share * torque / torque_per_ampere,
        current_noise_rest=_interpolate(
            torque, noise_sizes, sensors["current_noise_rest"]
        ),
        current_noise_moving=_interpolate(
            torque, noise_sizes, sensors["current_noise_moving"]
        ),
    )


def joint_sizes(robot: RobotDescription) -> Array:
    """Rated torque of each joint [n], N m; assumed where the type's is unknown.

    A joint that could not hold its links with the assumed torque has more of it.

    Args:
        robot: the arm's type.
    """
    is_known = np.isfinite(robot.max_torque)
    if is_known.all():
        return robot.max_torque
    assumed = constants()["motor"]["assumed_max_torque"]
    random = np.random.default_rng(0)
    q = random.uniform(-np.pi, np.pi, (_HELD_POSITIONS, robot.dof))
    held = np.abs(ArmDynamics(robot).gravity_torque(q)).max(axis=0)
    enough = np.where(held < assumed, assumed, _HOLDING * held)
    return np.where(is_known, robot.max_torque, enough)


_HELD_POSITIONS = 500  # positions at which links are held for the assumed torque
_HOLDING = 2.0  # rated torque of a joint over the torque that holds its links


def closest_sizes(torque: Array, sizes: ArrayLike) -> Indices:
    """Index of the size that is closest to each torque [n], on a logarithmic scale.

    Args:
        torque: rated torque of each joint [n], N m.
        sizes: rated torques of the sizes [sizes], N m.
    """
    distance = np.log(torque[:, None] / np.asarray(sizes, dtype=float))
    return np.asarray(np.argmin(np.abs(distance), axis=1))


def motor_constants(robot: RobotDescription, torque: Array) -> dict[str, Array]:
    """Motor constants [n] of the type; missing ones are assumed by joint size.

    Args:
        robot: the arm's type.
        torque: rated torque of each joint [n], N m.

    Returns:
        rotor_inertia, kg m^2, winding_resistance, ohm, and torque_constant, N m/A, motor
        side [n] each.
    """
    table = constants()["motor"]
    turn = table["gear_ratio"] / robot.gear_ratio
    powers = {"rotor_inertia": 2, "winding_resistance": 0, "torque_constant": 1}
    motor = {}
    for name, power in powers.items():
        # With another ratio: same joint torque, loss and joint-side inertia at the same
        # current.
        assumed = _interpolate(torque, table["max_torque"], table[name]) * turn**power
        known = getattr(robot, name)
        motor[name] = np.where(np.isfinite(known), known, assumed)
    return motor


def no_load_friction(
    robot: RobotDescription, torque: Array, scale: Array
) -> NoLoadFriction:
    """Friction of an arm at the calibration temperature, joint side.

    Args:
        robot: the arm's type.
        torque: rated torque of each joint [n], N m.
        scale: factor of each joint's friction [n].
    """
    table = constants()["friction_calibration"]
    laws = constants()["friction"]
    calibrated = np.array(table["max_torque"])
    n = robot.dof
    same = n == len(calibrated)
    like = np.arange(n) if same else closest_sizes(torque, calibrated)
    scale = scale * (torque / calibrated[like]) ** table["size_exponent"]
    coulomb, rise, pace, viscous = _calibration_curves(*like.tolist())
    return NoLoadFriction(
        coulomb=coulomb * scale,
        rise=rise * scale,
        pace=pace.copy(),
        viscous=viscous * scale,
        breakaway=np.full(n, laws["breakaway"]),
        stribeck_speed=np.full(n, laws["stribeck_speed"]),
    )


@cache  # the fit takes longer than the rest of an arm
def _calibration_curves(*like: int) -> Array:
    """Constants [4, 2, n] of the curves of joints that are like these of the calibrated arm."""
    table = constants()["friction_calibration"]
    joints = list(like)
    constant = np.array(table["torque_constant"])[joints]
    torque_per_ampere = constants()["motor"]["gear_ratio"] * constant[:, None]
    speed = np.array(table["speed"])
    forward = np.array(table["forward"])[joints] * torque_per_ampere
    backward = np.array(table["backward"])[joints] * torque_per_ampere
    curves = [fit_calibration(speed, forward), fit_calibration(speed, backward)]
    return np.moveaxis(np.array(curves), 2, 0)


def _interpolate(at: Array, points: ArrayLike, values: ArrayLike) -> Array:
    """Linear interpolation, and extrapolation, on doubly logarithmic scales [n].

    Args:
        at: places [n].
        points: places of the values, ascending [k].
        values: values at these places [k].
    """
    x = np.log(np.asarray(points, float))
    y = np.log(np.asarray(values, float))
    u = np.log(at)
    piece = np.clip(np.searchsorted(x, u) - 1, 0, len(x) - 2)
    slope = (y[piece + 1] - y[piece]) / (x[piece + 1] - x[piece])
    return np.asarray(np.exp(y[piece] + slope * (u - x[piece])))
