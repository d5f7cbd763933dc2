"""Column orders of known recordings without a header line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ur_energy_model.telemetry.fields import FIELDS, column_names


@dataclass(frozen=True)
class Layout:
    """Fields of a file's columns, in order.

    Attributes:
        fields: RTDE field names.
        source: software or data set that writes this layout.
    """

    fields: tuple[str, ...]
    source: str

    @property
    def columns(self) -> str:
        """The layout as the value of `--columns`."""
        return ",".join(self.fields)

    def width(self, joints: int = 6) -> int:
        """Number of columns."""
        return sum(len(column_names(FIELDS[name], joints)) for name in self.fields)


_UR_CLIENT = [
    "timestamp", "target_q", "target_qd", "target_qdd", "target_current", "target_moment",
    "actual_q", "actual_qd", "actual_current", "joint_control_output", "actual_TCP_pose",
    "actual_TCP_speed", "actual_TCP_force", "target_TCP_pose", "target_TCP_speed",
    "actual_digital_input_bits", "joint_temperatures", "actual_execution_time", "robot_mode",
    "joint_mode", "safety_mode", "actual_tool_accelerometer", "speed_scaling",
    "target_speed_fraction", "actual_momentum", "actual_main_voltage", "actual_robot_voltage",
    "actual_robot_current", "actual_joint_voltage", "actual_digital_output_bits", "runtime_state",
]  # fmt: skip
_UR_RTDE = [
    *_UR_CLIENT, "standard_analog_input0", "standard_analog_input1", "standard_analog_output0",
    "standard_analog_output1", "robot_status_bits", "safety_status_bits",
]  # fmt: skip
_REGISTERS = [
    "output_int_register_2",
    *(f"output_int_register_{i}" for i in range(12, 20)),
    *(f"output_double_register_{i}" for i in range(12, 20)),
]
_PAYLOAD = ("payload", "payload_cog")
_RECORDER = "default variables of ur_rtde's recorder (startFileRecording)"

LAYOUTS: Mapping[str, Layout] = {
    "dynamic_calibration": Layout(
        ("timestamp", "actual_q", "actual_qd", "actual_current", "target_current", "target_moment"),
        "UR10e recordings of github.com/shamilmamedov/dynamic_calibration",
    ),
    "dynamic_calibration_short": Layout(
        ("timestamp", "actual_q", "actual_qd", "actual_current"),
        "the oldest recordings of the same repository, without targets",
    ),
    "ur_client": Layout(
        tuple(_UR_CLIENT), "default recipe of record.py in Universal Robots' RTDE Python client"
    ),
    "ur_rtde": Layout(
        (*_UR_RTDE, "ft_raw_wrench", *_PAYLOAD, "payload_inertia", *_REGISTERS),
        f"{_RECORDER}, software 5.11 and later",
    ),
    "ur_rtde_5.9": Layout(
        (*_UR_RTDE, "ft_raw_wrench", *_PAYLOAD, *_REGISTERS), f"{_RECORDER}, 5.9 and 5.10"
    ),
    "ur_rtde_5.5": Layout(
        (*_UR_RTDE, *_PAYLOAD, *_REGISTERS), f"{_RECORDER}, 5.5 to 5.8 and 3.11 to 3.14"
    ),
    "ur_rtde_3.15": Layout(
        (*_UR_RTDE, *_PAYLOAD, "payload_inertia", *_REGISTERS), f"{_RECORDER}, 3.15"
    ),
}
"""Known layouts by name. Those of ur_rtde follow the list of variables in its sources."""
