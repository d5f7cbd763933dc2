# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The one table of fields: RTDE name, type, unit, availability; and readings of a power meter.

Source: the RTDE guide and the sources of public RTDE clients. `since` is the first
e-Series software version (PolyScope X counts as newer than all of them), `since_cb3` the
first CB3 version; None means that the controller family never has it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Version = tuple[int, ...]
ValueKind = Literal[
    "BOOL", "UINT8", "UINT32", "UINT64", "INT32", "DOUBLE",
    "VECTOR3D", "VECTOR6D", "VECTOR6INT32", "VECTOR6UINT32",
]  # fmt: skip

WIDTH: dict[ValueKind, int] = {
    "BOOL": 1, "UINT8": 1, "UINT32": 1, "UINT64": 1, "INT32": 1, "DOUBLE": 1,
    "VECTOR3D": 3, "VECTOR6D": 6, "VECTOR6INT32": 6, "VECTOR6UINT32": 6,
}  # fmt: skip
"""Number of values per sample of each RTDE type."""


@dataclass(frozen=True)
class Field:
    """One RTDE output field.

    Attributes:
        name: RTDE name.
        kind: RTDE data type.
        unit: SI unit of the value ("" for numbers and codes).
        description: short text.
        per_joint: whether the six values belong to the six joints.
        since: first e-Series version, None if never.
        since_cb3: first CB3 version, None if never.
    """

    name: str
    kind: ValueKind
    unit: str
    description: str
    per_joint: bool = False
    since: Version | None = (5, 0, 0)
    since_cb3: Version | None = (3, 0, 0)

    @property
    def width(self) -> int:
        """Number of values per sample."""
        return WIDTH[self.kind]

    def available(self, version: Version) -> bool:
        """Whether a controller of this software version has the field."""
        since = self.since_cb3 if version[0] < 5 else self.since
        return since is not None and tuple(version) >= since


def _joint(name: str, unit: str, description: str, kind: ValueKind = "VECTOR6D") -> Field:
    """A field whose six values belong to the six joints, of all software versions."""
    return Field(name, kind, unit, description, per_joint=True)


def _meter(name: str, unit: str, description: str) -> Field:
    """A reading of a power meter, which no controller sends."""
    return Field(name, "DOUBLE", unit, description, since=None, since_cb3=None)


def _since_5_23(field: Field) -> Field:
    """The field as one that e-Series controllers have from software 5.23 on."""
    return replace(field, since=(5, 23, 0), since_cb3=None)


def _registers(way: str) -> tuple[Field, ...]:
    """General-purpose registers, "output" (written by the robot's program) or "input"."""
    first: Version = (5, 0, 0)
    first_cb3: Version = (3, 0, 0) if way == "output" else (3, 4, 0)
    later: Version = (5, 3, 0)
    later_cb3: Version = (3, 9, 0)
    found: list[Field] = []

    def add(name: str, kind: ValueKind, text: str, *, is_late: bool) -> None:
        """Add a register.

        Args:
            name: name of the register behind "output_" or "input_".
            kind: RTDE data type.
            text: content of the register, in words.
            is_late: whether it came with a later version of the software.
        """
        found.append(
            Field(
                name=f"{way}_{name}",
                kind=kind,
                unit="",
                description=f"{way} {text}",
                since=later if is_late else first,
                since_cb3=later_cb3 if is_late else first_cb3,
            )
        )

    add("bit_registers0_to_31", "UINT32", "bit registers 0 to 31", is_late=False)
    add("bit_registers32_to_63", "UINT32", "bit registers 32 to 63", is_late=False)
    for i in range(64, 128):
        add(f"bit_register_{i}", "BOOL", f"bit register {i}", is_late=True)
    for i in range(48):
        add(f"int_register_{i}", "INT32", f"int register {i}", is_late=i >= 24)
    for i in range(48):
        add(f"double_register_{i}", "DOUBLE", f"double register {i}", is_late=i >= 24)
    return tuple(found)


_TABLE: tuple[Field, ...] = (
    Field("timestamp", "DOUBLE", "s", "time since the controller started"),
    _joint("target_q", "rad", "commanded joint position"),
    _joint("target_qd", "rad/s", "commanded joint velocity"),
    _joint("target_qdd", "rad/s^2", "commanded joint acceleration"),
    _joint("target_current", "A", "commanded motor current"),
    _joint("target_moment", "N m", "controller's frictionless inverse dynamics, joint side"),
    _joint("actual_q", "rad", "measured joint position"),
    _joint("actual_qd", "rad/s", "measured joint velocity"),
    _joint("actual_current", "A", "measured motor current"),
    _joint("actual_current_window", "A", "permitted deviation of the motor current"),
    _since_5_23(_joint("actual_current_as_torque", "N m", "measured current as joint torque")),
    _joint("joint_control_output", "A", "joint controller output current"),
    _joint("joint_temperatures", "degC", "motor temperature"),
    _joint("actual_joint_voltage", "V", "voltage at the joint's drive"),
    _joint("joint_mode", "", "joint mode, 253 is running", "VECTOR6INT32"),
    Field("actual_main_voltage", "DOUBLE", "V", "safety control board main voltage"),
    Field("actual_robot_voltage", "DOUBLE", "V", "robot bus voltage (48 V nominal)"),
    Field("actual_robot_current", "DOUBLE", "A", "robot bus current"),
    _since_5_23(Field("actual_robot_energy_consumed", "DOUBLE", "J",
                      "controller's counter of consumed energy; undocumented unit, J assumed")),
    _since_5_23(Field("actual_robot_braking_energy_dissipated", "DOUBLE", "J",
                      "controller's counter of braking energy; undocumented unit, J assumed")),
    Field("actual_tool_accelerometer", "VECTOR3D", "m/s^2", "tool accelerometer"),
    Field("actual_TCP_pose", "VECTOR6D", "m, rad", "measured tool pose (rotation vector)"),
    Field("actual_TCP_speed", "VECTOR6D", "m/s, rad/s", "measured tool speed"),
    Field("actual_TCP_force", "VECTOR6D", "N, N m", "estimated tool wrench"),
    Field("target_TCP_pose", "VECTOR6D", "m, rad", "commanded tool pose (rotation vector)"),
    Field("target_TCP_speed", "VECTOR6D", "m/s, rad/s", "commanded tool speed"),
    Field("ft_raw_wrench", "VECTOR6D", "N, N m", "raw force-torque sensor",
          since=(5, 9, 0), since_cb3=None),
    Field("tcp_force_scalar", "DOUBLE", "N", "magnitude of the estimated tool force"),
    Field("payload", "DOUBLE", "kg", "configured payload mass",
          since=(5, 5, 1), since_cb3=(3, 11, 0)),
    Field("payload_cog", "VECTOR3D", "m", "payload centre of mass in the flange frame",
          since=(5, 5, 1), since_cb3=(3, 11, 0)),
    Field("payload_inertia", "VECTOR6D", "kg m^2",
          "payload inertia (xx, yy, zz, xy, xz, yz)",
          since=(5, 11, 0), since_cb3=(3, 15, 0)),
    Field("speed_scaling", "DOUBLE", "", "speed scaling of the trajectory limiter"),
    Field("target_speed_fraction", "DOUBLE", "", "speed slider"),
    Field("robot_mode", "INT32", "", "robot mode: 7 running, 5 idle, 3 power off"),
    Field("safety_mode", "INT32", "", "safety mode: 1 normal, 3 protective stop"),
    Field("safety_status", "INT32", "", "safety status, coded as safety_mode",
          since=(5, 4, 0), since_cb3=(3, 10, 0)),
    Field("runtime_state", "UINT32", "", "program state: 1 stopped, 2 playing, 4 paused"),
    Field("robot_status_bits", "UINT32", "", "bit 0 power on, bit 1 program running"),
    Field("safety_status_bits", "UINT32", "", "bit 0 normal, bit 2 protective stopped"),
    Field("joint_position_deviation_ratio", "DOUBLE", "",
          "largest joint position error as a share of the one that stops the arm"),
    Field("actual_momentum", "DOUBLE", "kg m/s", "norm of Cartesian linear momentum"),
    Field("actual_execution_time", "DOUBLE", "ms", "controller real-time thread execution time"),
    Field("script_control_line", "UINT32", "", "script line number in execution",
          since=(5, 9, 0), since_cb3=(3, 14, 0)),
    Field("tcp_offset", "VECTOR6D", "m, rad", "tool centre point in the flange frame"),
    Field("actual_digital_input_bits", "UINT64", "", "digital inputs"),
    Field("actual_digital_output_bits", "UINT64", "", "digital outputs"),
    Field("analog_io_types", "UINT32", "", "bits 0-3: inputs 0, 1, outputs 0, 1; 0 A, 1 V"),
    Field("standard_analog_input0", "DOUBLE", "A, V", "standard analogue input 0"),
    Field("standard_analog_input1", "DOUBLE", "A, V", "standard analogue input 1"),
    Field("standard_analog_output0", "DOUBLE", "A, V", "standard analogue output 0"),
    Field("standard_analog_output1", "DOUBLE", "A, V", "standard analogue output 1"),
    Field("io_current", "DOUBLE", "A", "current of the digital outputs"),
    Field("tool_mode", "UINT32", "", "tool mode, 253 is running"),
    Field("tool_analog_input_types", "UINT32", "", "bits 0-1: tool inputs 0, 1; 0 A, 1 V"),
    Field("tool_analog_input0", "DOUBLE", "A, V", "tool analogue input 0"),
    Field("tool_analog_input1", "DOUBLE", "A, V", "tool analogue input 1"),
    Field("tool_output_voltage", "INT32", "V", "tool output voltage"),
    Field("tool_output_current", "DOUBLE", "A", "tool current"),
    Field("tool_temperature", "DOUBLE", "degC", "tool temperature"),
    Field("tool_output_mode", "UINT8", "", "tool output mode", since_cb3=None),
    Field("tool_digital_output0_mode", "UINT8", "", "tool output 0 mode", since_cb3=None),
    Field("tool_digital_output1_mode", "UINT8", "", "tool output 1 mode", since_cb3=None),
    *_registers("output"),
    *_registers("input"),
    _meter("wall_power", "W", "last reading of the power meter at the mains, NaN without one"),
    _meter("wall_energy", "J", "the meter's own counter, NaN without one"),
    _meter("wall_reading", "", "number of the meter's readings so far"),
)  # fmt: skip

FIELDS: dict[str, Field] = {field.name: field for field in _TABLE}
"""All known output fields by RTDE name, in a fixed order."""

METER_FIELDS: tuple[str, ...] = ("wall_power", "wall_energy", "wall_reading")
"""Fields that no controller sends; `telemetry.meters` adds them. NaN where the meter is silent."""

INPUTS: dict[str, ValueKind] = {
    "speed_slider_mask": "UINT32", "speed_slider_fraction": "DOUBLE",
    "standard_digital_output_mask": "UINT8", "standard_digital_output": "UINT8",
    "configurable_digital_output_mask": "UINT8", "configurable_digital_output": "UINT8",
    "tool_digital_output_mask": "UINT8", "tool_digital_output": "UINT8",
    "standard_analog_output_mask": "UINT8", "standard_analog_output_type": "UINT8",
    "standard_analog_output_0": "DOUBLE", "standard_analog_output_1": "DOUBLE",
    "external_force_torque": "VECTOR6D",
    **{name: field.kind for name, field in FIELDS.items() if name.startswith("input_")},
}  # fmt: skip
"""RTDE type of each input field by name."""

ENERGY_FIELDS: tuple[str, ...] = (
    "timestamp",
    "target_q", "target_qd", "target_qdd", "target_current", "target_moment",
    "actual_q", "actual_qd", "actual_current", "actual_current_as_torque",
    "joint_control_output", "joint_temperatures", "actual_joint_voltage", "joint_mode",
    "actual_main_voltage", "actual_robot_voltage", "actual_robot_current",
    "actual_robot_energy_consumed", "actual_robot_braking_energy_dissipated",
    "actual_TCP_pose", "actual_TCP_speed",
    "payload", "payload_cog", "payload_inertia",
    "speed_scaling", "target_speed_fraction",
    "robot_mode", "safety_mode", "runtime_state", "robot_status_bits", "safety_status_bits",
    "actual_execution_time", "actual_digital_output_bits", "output_int_register_0",
    "script_control_line",
)  # fmt: skip
"""Default fields of the logger; those that a controller lacks are left out."""


def column_names(field: Field, joints: int = 6) -> tuple[str, ...]:
    """Scalar column names of a field, as CSV recordings spell them: `name_0` ... `name_5`.

    Args:
        field: field of the table.
        joints: number of joints of the arm; fields per joint have as many values.
    """
    if field.width == 1:
        return (field.name,)
    width = joints if field.per_joint else field.width
    return tuple(f"{field.name}_{i}" for i in range(width))
