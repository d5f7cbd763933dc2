"""Encoding of the packets of the primary, secondary and real-time interfaces.

All numbers are big-endian. Source: Universal Robots' description of the client interfaces, and the
parsers of public clients.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ur_energy_model.simulation.arm.modes import ProgramState, RobotMode, SafetyMode
from ur_energy_model.simulation.control.control_box import ControlBox
from ur_energy_model.typing import Array

ROBOT_STATE, ROBOT_MESSAGE = 16, 20
MODE_DATA, JOINT_DATA, TOOL_DATA, MASTERBOARD_DATA = 0, 1, 2, 3
CARTESIAN_INFO, KINEMATICS_INFO, CONFIGURATION_DATA = 4, 5, 6
VERSION_MESSAGE = 3
FROM_CONTROLLER = -2
TOOL_RUNNING = 253
TOOL_SPEED_LIMIT = 1.0
_JOINT = struct.Struct(">dddffffB")
_HEADER = struct.Struct(">iB")
_CALIBRATED = 1


def _framed(kind: int, body: bytes) -> bytes:
    return _HEADER.pack(_HEADER.size + len(body), kind) + body


def _doubles(*values: Any) -> bytes:
    return np.concatenate([np.ravel(value) for value in values]).astype(">f8").tobytes()


def version_message(box: ControlBox) -> bytes:
    """First message to a client of the primary or secondary interface."""
    major, minor, bugfix, build = box.version
    name, date = b"URControl", b"simulated"
    body = struct.pack(">QbB", _microseconds(box.values), FROM_CONTROLLER, VERSION_MESSAGE)
    body += bytes([len(name)]) + name + struct.pack(">BBii", major, minor, bugfix, build) + date
    return _framed(ROBOT_MESSAGE, body)


def state_message(box: ControlBox, *, configuration: bool = False) -> bytes:
    """State of the robot as sent ten times per second on both interfaces.

    Args:
        box: control box.
        configuration: include kinematics and limits, as in the first message to a client.
    """
    parts = [
        _framed(MODE_DATA, _mode_data(box)),
        _framed(JOINT_DATA, _joint_data(box.values)),
        _framed(CARTESIAN_INFO, _doubles(box.values["actual_TCP_pose"], box.tcp_offset)),
        _framed(MASTERBOARD_DATA, _masterboard_data(box)),
        _framed(
            TOOL_DATA, struct.pack(">bbddfBffB", 0, 0, 0.0, 0.0, 0.0, 0, 0.0, 25.0, TOOL_RUNNING)
        ),
    ]
    if configuration:
        parts.append(_framed(KINEMATICS_INFO, _kinematics_info(box)))
        parts.append(_framed(CONFIGURATION_DATA, _configuration_data(box)))
    return _framed(ROBOT_STATE, b"".join(parts))


def realtime_packet(box: ControlBox) -> bytes:
    """Packet of the real-time interface; its length depends on the version."""
    value = box.values
    zero = np.zeros(6)
    body = _doubles(
        value["timestamp"],
        value["target_q"],
        value["target_qd"],
        value["target_qdd"],
        value["target_current"],
        value["target_moment"],
        value["actual_q"],
        value["actual_qd"],
        value["actual_current"],
        value["joint_control_output"],
        value["actual_TCP_pose"],
        value["actual_TCP_speed"],
        value["actual_TCP_force"],
        value["target_TCP_pose"],
        value["target_TCP_speed"],
        value["actual_digital_input_bits"],
        value["joint_temperatures"],
        value["actual_execution_time"],
        0.0,
        value["robot_mode"],
        value["joint_mode"],
        value["safety_mode"],
        zero,
        value["actual_tool_accelerometer"],
        zero,
        value["speed_scaling"],
        value["actual_momentum"],
        zero[:2],
        value["actual_main_voltage"],
        value["actual_robot_voltage"],
        value["actual_robot_current"],
        value["actual_joint_voltage"],
        value["actual_digital_output_bits"],
        value["runtime_state"],
        zero,  # elbow position and velocity
        value["safety_mode"],
        zero[:3],
        value["payload"],
        value["payload_cog"],
        value["payload_inertia"],
    )
    size = _realtime_size(box.version)
    return struct.pack(">i", size) + body[: size - 4]


_REALTIME_SIZES = {
    "cb3": {(3, 0): 1044, (3, 2): 1060, (3, 5): 1108, (3, 10): 1116, (3, 14): 1140, (3, 15): 1220},
    "e-series": {(5, 0): 1108, (5, 4): 1116, (5, 9): 1140, (5, 10): 1220},
}
"""Length of the real-time packet by the software version that introduced it [bytes]."""


def _realtime_size(version: tuple[int, ...]) -> int:
    sizes = _REALTIME_SIZES["cb3" if version[0] < 5 else "e-series"]
    return max(size for since, size in sizes.items() if since <= version[:2])


def _microseconds(values: Mapping[str, Any]) -> int:
    return int(np.clip(np.nan_to_num(1e6 * float(values["timestamp"])), 0.0, 2.0**63))


def _single(value: float) -> float:
    """A value as single precision can hold it; larger ones, of injected faults, are infinite."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _mode_data(box: ControlBox) -> bytes:
    mode, safety = box.arm.robot_mode, box.arm.safety_mode
    state = box.program_state
    body = struct.pack(
        ">Q7?BBddd",
        _microseconds(box.values),
        True,
        True,
        mode >= RobotMode.POWER_ON,
        False,
        safety == SafetyMode.PROTECTIVE_STOP,
        state == ProgramState.PLAYING,
        state == ProgramState.PAUSED,
        max(mode, 0),
        0,
        box.values["target_speed_fraction"],
        box.values["speed_scaling"],
        1.0,
    )
    return body + b"\0" if box.version >= (3, 5) else body


def _joint_data(values: Mapping[str, Any]) -> bytes:
    columns = zip(
        values["actual_q"],
        values["target_q"],
        values["actual_qd"],
        map(_single, values["actual_current"]),
        map(_single, values["actual_joint_voltage"]),
        map(_single, values["joint_temperatures"]),
        np.zeros(6),
        np.asarray(values["joint_mode"], dtype=int).tolist(),
        strict=True,
    )
    return b"".join(_JOINT.pack(*joint) for joint in columns)


def _masterboard_data(box: ControlBox) -> bytes:
    value = box.values
    return struct.pack(
        ">iiBBddbbddffffBBBIBBB",
        int(value["actual_digital_input_bits"]),
        int(value["actual_digital_output_bits"]),
        0,
        0,
        value["standard_analog_input0"],
        value["standard_analog_input1"],
        0,
        0,
        value["standard_analog_output0"],
        value["standard_analog_output1"],
        30.0,
        _single(value["actual_robot_voltage"]),
        _single(value["actual_robot_current"]),
        _single(value["io_current"]),
        box.arm.safety_mode,
        0,
        0,
        0,
        0,
        0,
        0,
    )


def _six(values: Array) -> Array:
    """The first six values."""
    return np.resize(np.asarray(values, dtype=float)[:6], 6)


def _kinematics_info(box: ControlBox) -> bytes:
    robot = box.arm.robot
    checksums = struct.pack(">6I", *range(6))
    return (
        checksums
        + _doubles(_six(robot.theta), _six(robot.a), _six(robot.d), _six(robot.alpha))
        + struct.pack(">I", _CALIBRATED)
    )


def _configuration_data(box: ControlBox) -> bytes:
    robot = box.arm.robot
    limits = np.column_stack([-robot.max_position, robot.max_position])
    motion = np.column_stack([robot.max_velocity, robot.max_acceleration])
    defaults = [1.05, 1.4, 0.25, 1.2, TOOL_SPEED_LIMIT]
    return (
        _doubles(limits, motion, defaults)
        + _doubles(_six(robot.a), _six(robot.d), _six(robot.alpha), _six(robot.theta))
        + struct.pack(">4i", 0, 0, 0, 0)
    )
