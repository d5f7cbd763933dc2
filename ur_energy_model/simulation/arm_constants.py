# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Constants of simulated arms: the format of config/simulation/arm.yaml, and its content.

The file itself says where its figures come from. Figures of a spread are half widths of
uniform distributions, or two ends, unless another meaning is stated.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from ur_energy_model.errors import InputError
from ur_energy_model.files import config_file
from ur_energy_model.formats import Key, Section
from ur_energy_model.forms import TEXT, Form, ListOf, Number, Numbers, Schema, Scope
from ur_energy_model.yaml_reader import Quantity, YamlTree


def _number(name: str, unit: str, high: float, meaning: str) -> Key:
    """A number from 0 to `high`."""
    return Key(name, Number(Quantity(unit, 0, high)), meaning)


def _numbers(name: str, size: int | str, unit: str, high: float, meaning: str) -> Key:
    """A list of numbers from 0 to `high`."""
    return Key(name, Numbers(Quantity(unit, 0, high), (size,)), meaning)


def _ends(name: str, unit: str, high: float, meaning: str) -> Key:
    """Lowest and highest value of a uniform distribution."""
    return _numbers(name, 2, unit, high, f"{meaning}: lowest and highest")


def _section(name: str, meaning: str, *keys: Key) -> Key:
    return Key(name, Section(dict, keys), meaning)


_CURVES = Numbers(Quantity("A", 0, 100), ("joints", "speeds"))
_CALIBRATION = _section(
    "friction_calibration",
    "factory calibration of the friction without load",
    Key("robot", TEXT, "type of the calibrated arm"),
    _number("temperature", "degC", 100, "of its joints"),
    _numbers("speed", "speeds", "rad/s", 10, "joint speeds"),
    _numbers("torque_constant", "joints", "N m/A", 10, "of the calibrated joints"),
    Key("forward", _CURVES, "motor current of each joint at each speed"),
    Key("backward", _CURVES, "the same in the other direction"),
    _numbers("max_torque", "joints", "N m", 1e4, "rated torque of these joints"),
    _number("size_exponent", "1", 2, "of the rated torque, for joints of another size"),
)
_FRICTION = _section(
    "friction",
    "what the calibration does not include",
    _number("breakaway", "1", 3, "static over Coulomb friction"),
    _number("stribeck_speed", "rad/s", 1, "over which it vanishes, joint side"),
    _number("load_direct", "1", 1, "friction over torque while the motor drives"),
    _number("load_reverse", "1", 1, "the same while the load drives"),
    _number("flex_spline_coulomb", "N m", 100, "joint side, of a joint of this torque:"),
    _number("flex_spline_max_torque", "N m", 1e4, "rated torque"),
    _number("flex_spline_viscous", "N m s/rad", 1, "joint side"),
    Key(
        "temperature_model",
        Numbers(Quantity("1", -100, 100), (4,)),
        "a, b, c, d of a exp(b T) + c exp(d T) of arms whose file has none",
    ),
)
_GEAR = (
    Key("name", TEXT, "of the size"),
    _number("max_torque", "N m", 1e4, "rated torque of the joints that have it"),
    _numbers("K", 3, "N m/rad", 1e7, "stiffness below, between and above the knees"),
    _numbers("T", 2, "N m", 1e4, "torques of the knees"),
)
_GEARS = ListOf(Section(dict, _GEAR))
_DRIVES = ListOf(
    Section(
        dict,
        (
            *_GEAR,
            _number("rotor_inertia", "kg m^2", 1, "of the wave generator, motor side"),
            _number("rotor_viscous", "N m s/rad", 1, "motor side"),
            _numbers("rotor_coulomb", 2, "N m", 10, "forwards and backwards, motor side"),
            _number("flex_spline_coulomb", "N m", 100, "joint side"),
            _number("flex_spline_viscous", "N m s/rad", 1, "joint side"),
        ),
    )
)
_MOTOR = _section(
    "motor",
    "constants of the motors by size",
    _number("gear_ratio", "1", 1e3, "motor turns per joint turn of these joints"),
    _numbers("max_torque", "sizes", "N m", 1e4, "rated torque, joint side"),
    _numbers("rotor_inertia", "sizes", "kg m^2", 1, "motor side"),
    _numbers("winding_resistance", "sizes", "ohm", 100, "of the motors"),
    _numbers("torque_constant", "sizes", "N m/A", 10, "motor side"),
    _number("assumed_max_torque", "N m", 1e4, "of arms whose file has no limits"),
    _number("current_time_constant", "s", 1, "of the closed current loop"),
)
_SPREAD = _section(
    "spread",
    "between arms of one type, relative unless a unit is stated",
    _number("torque_constant", "1", 1, "of the motors"),
    _number("torque_calibration", "1", 1, "standard deviation of the controller's own"),
    _number("current_offset", "1", 1, "standard deviation over the rated current"),
    _number("arms_with_current_offset", "1", 1, "share of such arms"),
    _number("controller_load_friction", "1", 1, "largest compensation by load"),
    _number("winding_resistance", "1", 1, "of the motors"),
    _number("friction", "1", 1, "of the joints"),
    _number("reflected_inertia", "1", 1, "of the drives"),
    _number("controller_friction", "1", 1, "error of the controller's friction model"),
    _ends("standby_power", "W", 1e3, "of the arm"),
    _ends("copper_factor", "1", 10, "power over R i^2"),
    _ends("driver_loss", "W/A", 10, "of the drives"),
    _ends("power_noise", "W", 100, "standard deviation of the bus power"),
)
_SESSION = _section(
    "session",
    "changes between sessions of one arm",
    _number("standby", "W", 100, "standard deviation of the standby power"),
    _number("friction_common", "1", 1, "standard deviation, common to all joints"),
    _number("friction_joint", "1", 1, "standard deviation of one joint"),
    _ends("running_in", "1", 1, "share of its friction that a joint loses"),
    _number("running_in_sessions", "1", 1e3, "after which 63 % of it is lost"),
    _number("ambient", "K", 50, "of the temperature"),
    _ends("warmth", "1", 10, "of the joints at the start: 0 is ambient"),
)
_THERMAL = _section(
    "thermal",
    "temperatures of the joints",
    _number("max_torque", "N m", 1e4, "rated torque of the joint of these figures"),
    _number("resistance", "K/W", 100, "to ambient"),
    _number("capacity", "J/K", 1e6, "of a joint"),
    _number("standby_share", "1", 1, "share of the standby power that heats joints"),
)
_BUS = _section(
    "bus",
    "supply of the arm",
    _number("open_voltage", "V", 100, "without current"),
    _number("source_resistance", "ohm", 10, "of the supply"),
    _number("capacitance", "F", 10, "of the bus"),
    _number("brake_voltage", "V", 100, "at which the braking resistor switches on"),
    _number("brake_resistance", "ohm", 1e3, "of that resistor"),
    _number("brake_release_power", "W", 100, "that holds the brake of a joint open"),
)
_CABLE = _section(
    "cable",
    "that supplies the joints, from the base on",
    _numbers("resistance", "segments", "ohm", 10, "typical, the last for further joints"),
    _number("spread", "1", 3, "standard deviation of the logarithm"),
    _number("voltage_offset", "V", 10, "standard deviation of a joint's sensor"),
)
_SENSORS = _section(
    "sensors",
    "steps of the measured values, and standard deviations of their noise",
    _number("encoder_counts", "1", 1e9, "per joint turn"),
    _number("voltage_step", "V", 1, "of the bus and the mains voltage"),
    _number("current_step", "A", 1, "of the bus current"),
    _number("joint_voltage_step", "V", 1, "of the joints' voltages"),
    _number("temperature_step", "K", 1, "of the joints' temperatures"),
    _number("voltage_noise", "V", 1, "of the bus voltage"),
    _number("main_voltage_noise", "V", 1, "of the mains voltage"),
    _number("joint_voltage_noise", "V", 1, "of the joints' voltages"),
    _numbers("current_noise_torque", "noises", "N m", 1e4, "rated torque of the joints"),
    _numbers("current_noise_rest", "noises", "A", 1, "of motor currents at rest"),
    _numbers("current_noise_moving", "noises", "A", 1, "of motor currents in motion"),
    _number("current_noise_speed", "rad/s", 1, "from which the latter applies fully"),
    _number("speed_noise", "rad/s", 1, "in motion"),
    _number("accelerometer_noise", "m/s^2", 10, "of each axis"),
    _numbers("force_noise", 6, "N, N m", 10, "of force and torque"),
    _numbers("execution_time", 2, "ms", 100, "mean and standard deviation"),
)
_SERVO = _section(
    "servo",
    "position loop of the joints",
    _number("bandwidth", "Hz", 1e3, "natural frequency of the feed-forward controller"),
    _number("damping", "1", 10, "of that loop"),
    _number("pd_bandwidth", "Hz", 1e3, "crossover frequency of the PD controller"),
    _number("pd_phase_margin", "deg", 180, "at that frequency"),
    _number("integral", "1/s", 100, "slow correction of the joint-side position"),
    _number("deadband", "rad", 1, "of that correction"),
    _number("following_error", "rad", 10, "beyond which the arm stops"),
)
_WALL = _section(
    "wall",
    "power at the mains, and its meter",
    _section(
        "drawn",
        "from the seed of the arm",
        _ends("off", "W", 1e3, "box while the arm is off"),
        _ends("supply", "W", 1e3, "more while it is on"),
        _ends("safety", "W", 1e3, "more with the brakes released"),
        _ends("proportional", "1", 3, "of the bus power"),
        _ends("quadratic", "1/W", 0.01, "of its square"),
        _ends("delay", "s", 60, "of the meter"),
    ),
    _section(
        "meter",
        "what is wrong with its readings",
        _number("noise", "W", 100, "standard deviation"),
        _number("missed", "1", 1, "share of those that never arrive"),
        _number("silences_per_hour", "1", 1e3, "times without any"),
        _ends("silence_seconds", "s", 1e4, "length of such a time"),
    ),
)

ARM: Form[dict[str, Any]] = Section(
    dict,
    (
        Key("schema", Schema(1), "version of the format"),
        _CALIBRATION,
        _FRICTION,
        Key("harmonic_drive", _GEARS, "strain-wave gears by size, joint side"),
        _section("drive_sets", "of papers", Key("s3", _DRIVES, "Battistini et al.")),
        _number("loss_factor", "1", 1, "damping times angular frequency over K1"),
        _MOTOR,
        _SPREAD,
        _SESSION,
        _THERMAL,
        _BUS,
        _CABLE,
        _SENSORS,
        _SERVO,
        _WALL,
    ),
)
"""The format of config/simulation/arm.yaml."""


@cache
def constants() -> Mapping[str, Any]:
    """Content of config/simulation/arm.yaml: sections, numbers and arrays by key.

    Raises:
        InputError: the file is damaged; names line and key.
    """
    path = config_file("simulation", "arm.yaml")
    return ARM.read(YamlTree.read(path, InputError, "restore the file"), Scope())
