"""Reader of config/simulation/arm.yaml: its keys and their valid values."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from ur_energy_model.errors import InputError
from ur_energy_model.reading import ranges
from ur_energy_model.reading.readers import Quantity, list_of, mapping_of, text
from ur_energy_model.reading.record import Reader, Record
from ur_energy_model.reading.yaml_tree import YamlTree

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
_GEAR = mapping_of(
    {
        "name": text,
        "max_torque": ranges.TORQUE,
        "K": list_of(_STIFFNESS, 3),
        "T": _increasing(list_of(ranges.TORQUE, 2)),
    }
)
_DRIVE = mapping_of(
    {
        "name": text,
        "max_torque": ranges.TORQUE,
        "K": list_of(_STIFFNESS, 3),
        "T": _increasing(list_of(ranges.TORQUE, 2)),
        "rotor_inertia": Quantity("kg m^2", 0, 1, positive=True),
        "rotor_viscous": _VISCOUS,
        "rotor_coulomb": list_of(ranges.TORQUE, 2),
        "flex_spline_coulomb": Quantity("N m", 0, 1e4),
        "flex_spline_viscous": _VISCOUS,
    }
)
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
        gears = list_of(_GEAR)(keys["harmonic_drive"])
        content |= {"harmonic_drive": gears, "loss_factor": _LOSS(keys["loss_factor"])}
        content["drive_sets"] = mapping_of({"s3": list_of(_DRIVE)})(keys["drive_sets"])
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
