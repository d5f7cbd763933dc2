"""True constants of a simulated arm: typical values of real arms and their spread.

Values and sources are in config/simulation/arm.yaml. The identification does not see them; it has
to find the constants from telemetry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from ur_energy_model import ranges
from ur_energy_model.errors import InputError
from ur_energy_model.files import config_file
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array, Indices
from ur_energy_model.yaml_reader import (
    Quantity,
    Reader,
    Record,
    YamlTree,
    list_of,
    mapping_of,
    text,
)

# Reader of config/simulation/arm.yaml: its keys and their valid values.

SCHEMA = 1
_SHARE = Quantity("1", 0, 1)
_SPREAD = Quantity("1", 0, 0.9)
_SESSION_SPREAD = Quantity("1", 0, 0.3)
"""Standard deviation of a factor that must stay positive within three standard deviations."""
_FACTOR = Quantity("1", 0, 100, positive=True)
_LOSS = Quantity("1", 0, 10)
_CURRENT = Quantity("A", 0, 1_000, positive=True)
_NOISE = Quantity("1", 0, 100)
"""Standard deviation or step of a sensor, in its own unit."""
_STEP = Quantity("1", 0, 100, positive=True)
_VISCOUS = Quantity("N m s/rad", 0, 1e4)
_STIFFNESS = Quantity("N m/rad", 0, 1e8, positive=True)
_THERMAL = Quantity("1", 0, 1e6, positive=True)
"""Thermal resistance, K/W, or capacity, J/K."""
_RESISTANCE = Quantity("ohm", 0, 1e3, positive=True)
_FREQUENCY = Quantity("Hz", 0, 1e3, positive=True)
_COUNTS = Quantity("1", 1, 1e9)
_TIME_CONSTANT = Quantity("s", 0, 1, positive=True)

_SIZES = list_of(ranges.TORQUE)


def _increasing(reader: Reader[list[float]]) -> Reader[list[float]]:
    """Interpolation points, which must increase."""

    def read(tree: YamlTree) -> list[float]:
        values = reader(tree)
        if len(values) < 2 or any(a >= b for a, b in pairwise(values)):
            raise tree.refuse("must have two or more values that increase")
        return values

    return read


def _interval(quantity: Quantity) -> Reader[list[float]]:
    """Lowest and highest value."""

    def read(tree: YamlTree) -> list[float]:
        low, high = list_of(quantity, 2)(tree)
        if low > high:
            raise tree.refuse("lowest is above highest")
        return [low, high]

    return read


def _temperature_model(tree: YamlTree) -> list[float]:
    values: list[float] = ranges.temperature_model(tree).tolist()
    return values


_SECTIONS: dict[str, Reader[dict[str, Any]]] = {
    "friction_calibration": mapping_of({
        "robot": text,
        "temperature": ranges.TEMPERATURE,
        "speed": _increasing(list_of(ranges.SPEED)),
        "torque_constant": list_of(ranges.TORQUE_CONSTANT),
        "forward": list_of(list_of(_CURRENT)),
        "backward": list_of(list_of(_CURRENT)),
        "max_torque": _SIZES,
        "size_exponent": _FACTOR,
    }),
    "friction": mapping_of({
        "breakaway": Quantity("1", 1, 10),
        "stribeck_speed": ranges.SPEED,
        "load_direct": _SHARE,
        "load_reverse": _SHARE,
        "flex_spline_coulomb": Quantity("N m", 0, 1e4),
        "flex_spline_max_torque": ranges.TORQUE,
        "flex_spline_viscous": _VISCOUS,
        "temperature_model": _temperature_model,
    }),
    "motor": mapping_of({
        "gear_ratio": ranges.GEAR_RATIO,
        "max_torque": _increasing(_SIZES),
        "rotor_inertia": list_of(Quantity("kg m^2", 0, 1, positive=True)),
        "winding_resistance": list_of(_RESISTANCE),
        "torque_constant": list_of(ranges.TORQUE_CONSTANT),
        "assumed_max_torque": ranges.TORQUE,
        "current_time_constant": _TIME_CONSTANT,
    }),
    "spread": mapping_of({
        "torque_constant": _SPREAD,
        "winding_resistance": _SPREAD,
        "friction": _SPREAD,
        "reflected_inertia": _SPREAD,
        "controller_friction": _SPREAD,
        "standby_power": _interval(ranges.POWER),
        "copper_factor": _interval(_FACTOR),
        "driver_loss": _interval(ranges.DRIVER_LOSS),
        "power_noise": _interval(Quantity("W", 0, 100)),
    }),
    "session": mapping_of({
        "standby": Quantity("W", 0, 8),
        "friction_common": _SESSION_SPREAD,
        "friction_joint": _SESSION_SPREAD,
        "running_in": _interval(_SPREAD),
        "running_in_sessions": _FACTOR,
        "ambient": Quantity("K", 0, 30),
        "warmth": _interval(Quantity("1", 0, 5)),
    }),
    "thermal": mapping_of({
        "max_torque": ranges.TORQUE,
        "resistance": _THERMAL,
        "capacity": _THERMAL,
        "standby_share": _SHARE,
    }),
    "bus": mapping_of({
        "open_voltage": ranges.VOLTAGE,
        "source_resistance": _RESISTANCE,
        "capacitance": Quantity("F", 0, 10, positive=True),
        "brake_voltage": ranges.VOLTAGE,
        "brake_resistance": _RESISTANCE,
        "joint_cable_resistance": Quantity("ohm", 0, 10),
        "brake_release_power": Quantity("W", 0, 1e3),
    }),
    "sensors": mapping_of({
        "encoder_counts": _COUNTS,
        "voltage_step": _STEP,
        "current_step": _STEP,
        "joint_voltage_step": _STEP,
        "temperature_step": _STEP,
        "voltage_noise": _NOISE,
        "main_voltage_noise": _NOISE,
        "joint_voltage_noise": _NOISE,
        "current_noise_torque": _increasing(_SIZES),
        "current_noise_rest": list_of(_STEP),
        "current_noise_moving": list_of(_STEP),
        "current_noise_speed": ranges.SPEED,
        "speed_noise": _NOISE,
        "accelerometer_noise": _NOISE,
        "force_noise": list_of(_NOISE, 6),
        "execution_time": list_of(_NOISE, 2),
    }),
    "servo": mapping_of({
        "bandwidth": _FREQUENCY,
        "damping": _FACTOR,
        "pd_bandwidth": _FREQUENCY,
        "pd_phase_margin": Quantity("deg", 10, 90),
        "integral": Quantity("1/s", 0, 1e3),
        "deadband": Quantity("rad", 0, 0.1),
        "following_error": Quantity("rad", 0, 10, positive=True),
    }),
}  # fmt: skip
_GEAR: dict[str, Reader[Any]] = {
    "name": text,
    "max_torque": ranges.TORQUE,
    "K": list_of(_STIFFNESS, 3),
    "T": _increasing(list_of(ranges.TORQUE, 2)),
}
_DRIVE: dict[str, Reader[Any]] = {
    **_GEAR,
    "rotor_inertia": Quantity("kg m^2", 0, 1, positive=True),
    "rotor_viscous": _VISCOUS,
    "rotor_coulomb": list_of(ranges.TORQUE, 2),
    "flex_spline_coulomb": Quantity("N m", 0, 1e4),
    "flex_spline_viscous": _VISCOUS,
}
"""A gear of a drive set."""
_ALIKE = (
    ("friction_calibration", "torque_constant", ("max_torque", "forward", "backward")),
    ("motor", "max_torque", ("rotor_inertia", "winding_resistance", "torque_constant")),
    ("sensors", "current_noise_torque", ("current_noise_rest", "current_noise_moving")),
)
"""Section, list, and further lists that must have the same length."""


def read_constants(path: Path) -> Mapping[str, Any]:
    """Validated content of the file.

    Raises:
        InputError: unreadable file, or invalid key or value; names its line.
    """
    root = YamlTree.read(path, InputError, "correct the line or restore the file")
    with Record(root) as keys:
        keys.schema(SCHEMA)
        keys.expect(_SECTIONS)
        content: dict[str, Any] = {name: reader(keys[name]) for name, reader in _SECTIONS.items()}
        gears = list_of(mapping_of(_GEAR))(keys["harmonic_drive"])
        content |= {"harmonic_drive": gears, "loss_factor": _LOSS(keys["loss_factor"])}
        content["drive_sets"] = mapping_of({"s3": list_of(mapping_of(_DRIVE))})(keys["drive_sets"])
        sizes = [gear["max_torque"] for gear in gears]
        if sizes != sorted(set(sizes)) or len(sizes) < 2:
            raise keys["harmonic_drive"].refuse("must have two or more sizes that increase")
        for section, first, others in _ALIKE:
            node = keys[section].mapping()
            for name in others:
                node[name].items(len(content[section][first]))
        calibration = keys["friction_calibration"].mapping()
        for direction in ("forward", "backward"):
            for row in calibration[direction].items():
                row.items(len(content["friction_calibration"]["speed"]))
    return content


# No-load friction of a simulated joint, fitted to a factory calibration.
#
# Friction grows less than proportionally to speed because grease is shear-thinning. The curve
# follows the calibration; it deliberately has none of the forms that the identification fits.


@dataclass(frozen=True)
class NoLoadFriction:
    """Friction torque of n joints over speed, joint side.

    |torque| = coulomb (1 + (breakaway - 1) exp(-(qd / stribeck_speed)^2))
        + rise (1 - exp(-|qd| / pace)) + viscous |qd|

    Attributes:
        coulomb: forwards and backwards [2, n], N m.
        rise: forwards and backwards [2, n], N m.
        pace: forwards and backwards [2, n], rad/s.
        viscous: forwards and backwards [2, n], N m s/rad.
        breakaway: static over Coulomb friction [n].
        stribeck_speed: [n], rad/s.
    """

    coulomb: Array
    rise: Array
    pace: Array
    viscous: Array
    breakaway: Array
    stribeck_speed: Array

    def without(self, coulomb: Array, viscous: Array) -> NoLoadFriction:
        """The curve minus Coulomb and viscous friction [n] that is modelled elsewhere."""
        remaining = np.maximum(self.coulomb - coulomb, 0.1 * self.coulomb)
        return replace(self, coulomb=remaining, viscous=self.viscous - viscous)

    def scaled(self, scale: Array) -> NoLoadFriction:
        """The curve with the torque of each joint multiplied by a factor [n]."""
        return replace(
            self,
            coulomb=self.coulomb * scale,
            rise=self.rise * scale,
            viscous=self.viscous * scale,
        )

    def torque(self, qd: Array, factor: Array | float = 1.0) -> Array:
        """Friction torque [..., n], N m joint side, with the sign of the speed [..., n].

        Args:
            qd: joint speed, rad/s.
            factor: on the speed-dependent part, from the temperature.
        """
        row = (qd < 0).astype(int)
        joint = np.arange(qd.shape[-1])
        coulomb, rise, pace, viscous = (
            values[row, joint] for values in (self.coulomb, self.rise, self.pace, self.viscous)
        )
        speed = np.abs(qd)
        stribeck = 1.0 + (self.breakaway - 1.0) * np.exp(-((speed / self.stribeck_speed) ** 2))
        moving = rise * (1.0 - np.exp(-speed / pace)) + viscous * speed
        return np.asarray(np.sign(qd) * (coulomb * stribeck + factor * moving))

    def straight_line(self, max_speed: Array, factor: Array | float = 1.0) -> tuple[Array, Array]:
        """Best fitting Coulomb [n] and viscous [n] friction from 5 to 100 % of `max_speed`.

        Args:
            max_speed: [n], rad/s.
            factor: on the speed-dependent part, from the temperature.
        """
        share = np.linspace(0.05, 1.0, 40)
        speed = share[:, None] * max_speed
        torque = 0.5 * (self.torque(speed, factor) - self.torque(-speed, factor))
        columns = np.stack([np.ones_like(share), share], axis=1)
        fit = np.linalg.lstsq(columns, torque, rcond=None)[0]
        return np.asarray(fit[0]), np.asarray(fit[1] / max_speed)


def fit_calibration(speed: Array, torque: Array) -> Array:
    """Coulomb, rise, pace and viscous [n, 4] of n friction curves.

    |torque| = coulomb + rise (1 - exp(-speed / pace)) + viscous speed, all non-negative, with the
    smallest relative error over a grid of paces from 0.05 to 3 rad/s.

    Args:
        speed: of the calibration [m], rad/s.
        torque: measured friction [n, m], N m.
    """
    best = np.empty((len(torque), 4))
    error = np.full(len(torque), np.inf)
    for pace in np.geomspace(0.05, 3.0, 100):
        columns = np.stack([np.ones_like(speed), 1.0 - np.exp(-speed / pace), speed], axis=1)
        for joint, values in enumerate(torque):
            found, residual = nnls(columns / values[:, None], np.ones_like(values))
            if residual < error[joint]:
                error[joint] = residual
                best[joint] = found[0], found[1], pace, found[2]
    return best


@cache
def constants() -> Mapping[str, Any]:
    """Content of config/simulation/arm.yaml."""
    return read_constants(config_file("simulation", "arm.yaml"))


@dataclass(frozen=True)
class ArmParameters:
    """True constants of one simulated arm with n joints, arrays [n].

    Attributes:
        seed: number of the arm among those of its type.
        gear_ratio: motor turns per joint turn.
        torque_constant: motor side, N m/A.
        back_emf_constant: per phase, V s/rad; torque_constant / 1.5 (three-phase convention).
        winding_resistance: ohm.
        effective_resistance: copper loss over squared current, ohm.
        reflected_inertia: nominal rotor and reducer, joint side, kg m^2; used in target_moment.
        rotor_inertia: true rotor and reducer, joint side, kg m^2.
        friction: no-load friction of motor and wave generator at the calibration temperature.
        temperature_model: a, b, c, d of a exp(bT) + c exp(dT), T in degC [n, 4].
        calibration_temperature: degC.
        load_direct, load_reverse: friction over transmitted torque, driving and back-driven.
        flex_spline_coulomb, flex_spline_viscous: joint side, N m and N m s/rad.
        stiffness: K1, K2, K3 of the strain-wave gears [n, 3], N m/rad, joint side.
        knees: T1, T2 [n, 2], N m.
        damping: of the gears, N m s/rad, joint side.
        max_current: A.
        thermal_resistance: K/W; thermal_capacity: J/K; standby_heat: W per joint.
        standby_power: whole arm with brakes released, W.
        driver_loss: W/A.
        power_noise: one standard deviation of the bus power channel, W.
        controller_coulomb, controller_viscous: friction as the controller compensates it, joint
            side, N m and N m s/rad.
        current_noise_rest, current_noise_moving: A.
    """

    seed: int
    gear_ratio: Array
    torque_constant: Array
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
    controller_coulomb: Array
    controller_viscous: Array
    current_noise_rest: Array
    current_noise_moving: Array

    @property
    def current_to_torque(self) -> Array:
        """Joint-side torque of a motor current [n], N m/A."""
        return np.asarray(self.gear_ratio * self.torque_constant)

    def friction_factor(self, temperature: Array) -> Array:
        """Speed-dependent friction at joint temperatures [n], degC, relative to calibration."""
        a, b, c, d = self.temperature_model.T

        def level(t: Array | float) -> Array:
            return np.asarray(a * np.exp(b * t) + c * np.exp(d * t))

        return level(temperature) / level(self.calibration_temperature)

    def without_friction(self) -> ArmParameters:
        """The same arm without friction of motors, gears and flex splines."""
        none = np.zeros_like(self.load_direct)
        return replace(
            self.with_friction_scaled(none), controller_coulomb=none, controller_viscous=none
        )

    def with_friction_scaled(self, scale: Array) -> ArmParameters:
        """The arm with all friction of each joint multiplied by a factor [n]."""
        return replace(
            self,
            friction=self.friction.scaled(scale),
            flex_spline_coulomb=self.flex_spline_coulomb * scale,
            flex_spline_viscous=self.flex_spline_viscous * scale,
            load_direct=self.load_direct * scale,
            load_reverse=self.load_reverse * scale,
        )


def draw_parameters(robot: RobotDescription, seed: int = 0) -> ArmParameters:
    """Constants of arm number `seed` of this type.

    The spread is centred on the known constants of the type; unknown ones are assumed by joint
    size, see config/simulation/arm.yaml.
    """
    table = constants()
    spread, limits = table["spread"], table["thermal"]
    random = np.random.default_rng([seed, 20241021])
    n = robot.dof
    torque = joint_sizes(robot)

    def around(half_width: float) -> Array:
        return np.asarray(1.0 + random.uniform(-half_width, half_width, n))

    motor = motor_constants(robot, torque)
    torque_constant = motor["torque_constant"] * around(spread["torque_constant"])
    resistance = motor["winding_resistance"] * around(spread["winding_resistance"])
    reflected = robot.gear_ratio**2 * motor["rotor_inertia"]
    scale = around(spread["friction"])
    friction = no_load_friction(robot, torque, scale)
    standby = float(random.uniform(*spread["standby_power"]))
    gears = _gears(torque)
    laws = table["friction"]
    exponent = table["friction_calibration"]["size_exponent"]
    flex = laws["flex_spline_coulomb"] * (torque / laws["flex_spline_max_torque"]) ** exponent
    compensated = around(spread["controller_friction"])
    coulomb, viscous = friction.straight_line(robot.max_velocity)
    sensors = table["sensors"]
    noise = [
        _interpolate(torque, sensors["current_noise_torque"], sensors[key])
        for key in ("current_noise_rest", "current_noise_moving")
    ]
    return ArmParameters(
        seed=seed,
        gear_ratio=robot.gear_ratio,
        torque_constant=torque_constant,
        back_emf_constant=torque_constant / 1.5,
        winding_resistance=resistance,
        effective_resistance=resistance * random.uniform(*spread["copper_factor"]),
        reflected_inertia=reflected,
        rotor_inertia=reflected * around(spread["reflected_inertia"]),
        # The calibration includes the flex spline, which is modelled separately.
        friction=friction.without(flex, np.full(n, laws["flex_spline_viscous"])),
        temperature_model=np.where(
            np.isfinite(robot.friction_temperature_model),
            robot.friction_temperature_model,
            laws["temperature_model"],
        ),
        calibration_temperature=table["friction_calibration"]["temperature"],
        load_direct=np.full(n, laws["load_direct"]),
        load_reverse=np.full(n, laws["load_reverse"]),
        flex_spline_coulomb=flex,
        flex_spline_viscous=np.full(n, laws["flex_spline_viscous"]),
        stiffness=gears[:, :3],
        knees=gears[:, 3:],
        damping=table["loss_factor"] * gears[:, 0] / (2 * np.pi * 20.0),
        max_current=1.3 * torque / (robot.gear_ratio * torque_constant),
        thermal_resistance=limits["resistance"] * (torque / limits["max_torque"]) ** -0.5,
        thermal_capacity=limits["capacity"] * (torque / limits["max_torque"]) ** 0.6,
        standby_heat=np.full(n, limits["standby_share"] * standby / n),
        standby_power=standby,
        driver_loss=float(random.uniform(*spread["driver_loss"])),
        power_noise=float(random.uniform(*spread["power_noise"])),
        controller_coulomb=compensated * coulomb,
        controller_viscous=compensated * viscous,
        current_noise_rest=noise[0],
        current_noise_moving=noise[1],
    )


def joint_sizes(robot: RobotDescription) -> Array:
    """Rated torque of each joint [n], N m; assumed where the type's is unknown."""
    assumed = constants()["motor"]["assumed_max_torque"]
    return np.where(np.isfinite(robot.max_torque), robot.max_torque, assumed)


def closest_sizes(torque: Array, sizes: Array) -> Indices:
    """Index of the size [sizes], N m, closest to each torque [n] on a logarithmic scale."""
    return np.asarray(np.argmin(np.abs(np.log(torque[:, None] / sizes)), axis=1))


def motor_constants(robot: RobotDescription, torque: Array) -> dict[str, Array]:
    """Motor constants [n] of the type; missing ones are assumed by joint size."""
    table = constants()["motor"]
    turn = table["gear_ratio"] / robot.gear_ratio
    powers = {"rotor_inertia": 2, "winding_resistance": 0, "torque_constant": 1}
    motor = {}
    for name, power in powers.items():
        # With another ratio: same joint torque, loss and joint-side inertia at the same current.
        assumed = _interpolate(torque, table["max_torque"], table[name]) * turn**power
        known = getattr(robot, name)
        motor[name] = np.where(np.isfinite(known), known, assumed)
    return motor


def no_load_friction(robot: RobotDescription, torque: Array, scale: Array) -> NoLoadFriction:
    """Friction [n] at the calibration temperature, joint side."""
    table = constants()["friction_calibration"]
    laws = constants()["friction"]
    calibrated = np.array(table["max_torque"])
    if robot.dof == len(calibrated):
        like = np.arange(robot.dof)
    else:  # the calibrated joint closest in size
        like = closest_sizes(torque, calibrated)
    size = (torque / calibrated[like]) ** table["size_exponent"]
    to_joint = constants()["motor"]["gear_ratio"] * np.array(table["torque_constant"])[like]
    # Coulomb, rise, pace and viscous of both directions [2, n] each.
    curves = [
        fit_calibration(np.array(table["speed"]), np.array(table[key])[like] * to_joint[:, None])
        for key in ("forward", "backward")
    ]
    coulomb, rise, pace, viscous = np.moveaxis(np.array(curves), 2, 0)
    scale = scale * size
    return NoLoadFriction(
        coulomb=coulomb * scale,
        rise=rise * scale,
        pace=pace.copy(),
        viscous=viscous * scale,
        breakaway=np.full(robot.dof, laws["breakaway"]),
        stribeck_speed=np.full(robot.dof, laws["stribeck_speed"]),
    )


def _gears(torque: Array) -> Array:
    """K1, K2, K3, T1, T2 [n, 5], interpolated from the catalogue."""
    catalogue = constants()["harmonic_drive"]
    sizes = [gear["max_torque"] for gear in catalogue]
    columns = np.array([[*gear["K"], *gear["T"]] for gear in catalogue])
    return np.stack([_interpolate(torque, sizes, column) for column in columns.T], axis=1)


def _interpolate(at: Array, points: ArrayLike, values: ArrayLike) -> Array:
    """Linear interpolation, and extrapolation, on doubly logarithmic scales."""
    x, y = np.log(np.asarray(points, float)), np.log(np.asarray(values, float))
    u = np.log(at)
    piece = np.clip(np.searchsorted(x, u) - 1, 0, len(x) - 2)
    slope = (y[piece + 1] - y[piece]) / (x[piece + 1] - x[piece])
    return np.asarray(np.exp(y[piece] + slope * (u - x[piece])))
