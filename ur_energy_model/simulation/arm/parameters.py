"""True constants of a simulated arm: typical values of real arms and their spread.

Values and sources are in config/simulation/arm.yaml. The identification does not see them; it has
to find the constants from telemetry.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.resources import config_file
from ur_energy_model.simulation.arm.constants_file import read_constants
from ur_energy_model.simulation.arm.joint_friction import NoLoadFriction, fit_calibration
from ur_energy_model.typing import Array, Indices


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
        return dataclasses.replace(
            self.with_friction_scaled(none), controller_coulomb=none, controller_viscous=none
        )

    def with_friction_scaled(self, scale: Array) -> ArmParameters:
        """The arm with all friction of each joint multiplied by a factor [n]."""
        return dataclasses.replace(
            self,
            friction=self.friction.scaled(scale),
            flex_spline_coulomb=self.flex_spline_coulomb * scale,
            flex_spline_viscous=self.flex_spline_viscous * scale,
            load_direct=self.load_direct * scale,
            load_reverse=self.load_reverse * scale,
        )

    def as_dict(self) -> dict[str, Any]:
        """All constants by name, as in the truth file."""
        return dataclasses.asdict(self)


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
    # With another ratio: same joint torque, loss and joint-side inertia at the same current.
    assumed = {
        name: _interpolate(torque, table["max_torque"], table[name]) * turn**power
        for name, power in powers.items()
    }
    known = {
        "rotor_inertia": robot.rotor_inertia,
        "winding_resistance": robot.winding_resistance,
        "torque_constant": robot.torque_constant,
    }
    return {name: np.where(np.isfinite(known[name]), known[name], assumed[name]) for name in powers}


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
    curves = [
        fit_calibration(np.array(table["speed"]), np.array(table[key])[like] * to_joint[:, None])
        for key in ("forward", "backward")
    ]
    return NoLoadFriction.from_directions(
        *curves,
        scale=scale * size,
        breakaway=laws["breakaway"],
        stribeck_speed=laws["stribeck_speed"],
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
