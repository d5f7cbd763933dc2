"""Text and client interfaces of a simulated controller, dashboard and control port."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.model.setup import Payload
from ur_energy_model.simulation.commands import (
    FARTHEST,
    HEAVIEST,
    ProgramState,
    RobotMode,
    SafetyMode,
    is_possible,
)
from ur_energy_model.simulation.control_box import ControlBox
from ur_energy_model.simulation.faults import FAULTS, Faults
from ur_energy_model.simulation.kinematics import ScriptError
from ur_energy_model.simulation.simulated_arm import SimulatedArm
from ur_energy_model.simulation.tcp_server import ClientSession, LineSession
from ur_energy_model.simulation.ur_rtde_script import UrRtdeScript
from ur_energy_model.simulation.urscript import (
    ScriptReader,
    UrScriptProgram,
    calls_of,
    program_name,
)
from ur_energy_model.typing import Array

# Encoding of the packets of the primary, secondary and real-time interfaces.
#
# All numbers are big-endian. Source: Universal Robots' description of the client interfaces, and
# the parsers of public clients.

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


_REALTIME: tuple[str | int, ...] = (
    "timestamp", "target_q", "target_qd", "target_qdd", "target_current", "target_moment",
    "actual_q", "actual_qd", "actual_current", "joint_control_output",
    "actual_TCP_pose", "actual_TCP_speed", "actual_TCP_force", "target_TCP_pose",
    "target_TCP_speed", "actual_digital_input_bits", "joint_temperatures",
    "actual_execution_time", 1, "robot_mode", "joint_mode", "safety_mode", 6,
    "actual_tool_accelerometer", 6, "speed_scaling", "actual_momentum", 2,
    "actual_main_voltage", "actual_robot_voltage", "actual_robot_current",
    "actual_joint_voltage", "actual_digital_output_bits", "runtime_state", 6, "safety_mode", 3,
    "payload", "payload_cog", "payload_inertia",
)  # fmt: skip
"""Fields of the real-time packet in order; numbers stand for as many zeros."""
_REALTIME_SIZES = {
    "cb3": {(3, 0): 1044, (3, 2): 1060, (3, 5): 1108, (3, 10): 1116, (3, 14): 1140, (3, 15): 1220},
    "e-series": {(5, 0): 1108, (5, 4): 1116, (5, 9): 1140, (5, 10): 1220},
}
"""Length of the real-time packet by the software version that introduced it [bytes]."""


def realtime_packet(box: ControlBox) -> bytes:
    """Packet of the real-time interface; its length depends on the version."""
    body = _doubles(
        *(np.zeros(each) if isinstance(each, int) else box.values[each] for each in _REALTIME)
    )
    sizes = _REALTIME_SIZES["cb3" if box.version[0] < 5 else "e-series"]
    size = max(size for since, size in sizes.items() if since <= box.version[:2])
    return struct.pack(">i", size) + body[: size - 4]


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


def _six(*columns: Array) -> bytes:
    """The first six values of each column."""
    return _doubles(*(np.resize(np.asarray(each, dtype=float)[:6], 6) for each in columns))


def _kinematics_info(box: ControlBox) -> bytes:
    robot, checksums = box.arm.robot, struct.pack(">6I", *range(6))
    parameters = _six(robot.theta, robot.a, robot.d, robot.alpha)
    return checksums + parameters + struct.pack(">I", _CALIBRATED)


def _configuration_data(box: ControlBox) -> bytes:
    robot = box.arm.robot
    limits = np.column_stack([-robot.max_position, robot.max_position])
    motion = np.column_stack([robot.max_velocity, robot.max_acceleration])
    defaults = [1.05, 1.4, 0.25, 1.2, TOOL_SPEED_LIMIT]
    return (
        _doubles(limits, motion, defaults)
        + _six(robot.a, robot.d, robot.alpha, robot.theta)
        + struct.pack(">4i", 0, 0, 0, 0)
    )


class ScriptSession(ClientSession):
    """A client that may send scripts; the server sends the stream of the port."""

    def __init__(self, box: ControlBox) -> None:
        self._box = box
        self._reader = ScriptReader()

    def receive(self, data: bytes) -> bytes:
        """Start the completed programs; scripts get no answer."""
        for text in self._reader.feed(data):
            self._start(text)
        return b""

    def _start(self, text: str) -> None:
        name, box = program_name(text), self._box
        try:
            if name == UrRtdeScript.name:
                box.run(UrRtdeScript(box, text))
                return
            calls = calls_of(text)
            if calls is None:
                raise ScriptError(f"{name} needs a URScript interpreter and was not run")
            box.run(UrScriptProgram(box, name, calls))
        except ScriptError as error:
            box.send_message(str(error), level=1)


class StateSession(ScriptSession):
    """A client of the primary or secondary interface."""

    def greeting(self) -> bytes:
        """Version, kinematics and limits, sent once."""
        return version_message(self._box) + state_message(self._box, configuration=True)


# Dashboard server of e-Series and CB3 controllers.
#
# Source: Universal Robots' description of the dashboard server, and the answers that public
# clients expect.

BUILD_DATE = "simulated controller of ur_energy_model"
USER_ROLES = ("PROGRAMMER", "OPERATOR", "NONE", "LOCKED", "RESTRICTED")


class DashboardSession(LineSession):
    """One client of the dashboard server.

    Attributes:
        box: the control box.
        operational_mode, user_role: as set by the client.
    """

    def __init__(self, box: ControlBox) -> None:
        self.box = box
        self.operational_mode = "NONE"
        self.user_role = "NONE"

    def greeting(self) -> bytes:
        """First line, as on real controllers."""
        return b"Connected: Universal Robots Dashboard Server\n"

    def answer(self, line: str) -> str:
        """Answer to one command; case is ignored."""
        for pattern, reply in _COMMANDS:
            match = pattern.fullmatch(line)
            if match is not None:
                return reply(self, match[1] if match.groups() else "")
        return f'could not understand: "{line}"'


Reply = Callable[[DashboardSession, str], str]
"""Executes a command with its argument and returns the answer."""


def _value(value: Callable[[ControlBox], str]) -> Reply:
    """A value of the control box."""
    return lambda session, argument: value(session.box)


def _action(
    action: Callable[[ControlBox], object], answer: str, failure: str | None = None
) -> Reply:
    """An action; its answer, with {} for the argument, or that of one that returned False."""

    def reply(session: DashboardSession, argument: str) -> str:
        done = action(session.box)
        return failure if failure is not None and not done else answer.format(argument)

    return reply


def _constant(answer: str) -> Reply:
    """A constant answer; {} stands for the argument."""
    return lambda session, argument: answer.format(argument)


def _load(session: DashboardSession, name: str) -> str:
    if not name.endswith(".urp"):
        return f"File not found: {name}"
    session.box.stop()
    session.box.loaded_program = name
    return f"Loading program: {name}"


def _restart_safety(box: ControlBox) -> None:
    box.unlock()
    box.power_off()


def _polyscope_version(box: ControlBox) -> str:
    major, minor, bugfix, build = box.version
    return f"URSoftware {major}.{minor}.{bugfix}.{build} ({BUILD_DATE})"


def _set_operational_mode(session: DashboardSession, mode: str) -> str:
    session.operational_mode = mode.upper()
    return f"Operational mode {mode.upper()} is set"


def _clear_operational_mode(session: DashboardSession, argument: str) -> str:
    session.operational_mode = "NONE"
    return "No longer controlling the operational mode. Current operational mode: 'NONE'."


def _set_user_role(session: DashboardSession, role: str) -> str:
    if role.upper() not in USER_ROLES:
        return f"Failed setting user role: {role}"
    session.user_role = role.upper()
    return f"Setting user role: {role}"


def _quit(session: DashboardSession, argument: str) -> str:
    session.finished = True
    return "Disconnected"


def _playing(box: ControlBox) -> str:
    return str(box.program_state == ProgramState.PLAYING).lower()


def _safety(box: ControlBox) -> str:
    return SafetyMode(box.arm.safety_mode).name


_REPLIES: dict[str, Reply] = {
    r"load installation (.+)": _constant("Loading installation: {}"),
    r"load (.+)": _load,
    r"play": _action(ControlBox.play, "Starting program", "Failed to execute: play"),
    r"stop": _action(ControlBox.stop, "Stopped"),
    r"pause": _action(ControlBox.pause, "Pausing program", "Failed to execute: pause"),
    r"running": _value(lambda box: f"Program running: {_playing(box)}"),
    r"programState": _value(
        lambda box: f"{box.program_state.name} {PurePosixPath(box.loaded_program).name}"
    ),
    r"get loaded program": _value(
        lambda box: f"Loaded program: {box.uploaded_program or box.loaded_program}"
    ),
    r"isProgramSaved": _value(lambda box: f"true {box.loaded_program}"),
    r"power on": _action(ControlBox.power_on, "Powering on"),
    r"power off": _action(ControlBox.power_off, "Powering off"),
    r"brake release": _action(ControlBox.release_brakes, "Brake releasing"),
    r"unlock protective stop": _action(ControlBox.unlock, "Protective stop releasing"),
    r"restart safety": _action(_restart_safety, "Restarting safety"),
    r"robotmode": _value(lambda box: f"Robotmode: {RobotMode(box.arm.robot_mode).name}"),
    r"safetymode": _value(lambda box: f"Safetymode: {_safety(box)}"),
    r"safetystatus": _value(lambda box: f"Safetystatus: {_safety(box)}"),
    r"PolyscopeVersion": _value(_polyscope_version),
    r"version": _value(lambda box: ".".join(map(str, box.version))),
    r"get serial number": _value(lambda box: box.identity.serial),
    r"get robot model": _value(lambda box: box.identity.model),
    r"is in remote control": _constant("true"),
    r"set operational mode (manual|automatic)": _set_operational_mode,
    r"get operational mode": lambda session, argument: session.operational_mode,
    r"clear operational mode": _clear_operational_mode,
    r"setUserRole (\w+)": _set_user_role,
    r"getUserRole": lambda session, argument: session.user_role,
    r"popup (.*)": _constant("showing popup"),
    r"close popup": _constant("closing popup"),
    r"close safety popup": _constant("closing safety popup"),
    r"addToLog(?: (.*))?": _constant("Added log message"),
    r"saveLog": _constant("Log saved to disk"),
    r"generate flight report.*": _constant("Flight Report generated with id: 0"),
    r"generate support file.*": _constant("Completed successfully: no file, simulated"),
    r"quit": _quit,
    r"shutdown": _action(ControlBox.power_off, "Shutting down"),
}
"""Replies by pattern of the command, in order of priority."""
_COMMANDS = tuple(
    (re.compile(pattern, re.IGNORECASE), reply) for pattern, reply in _REPLIES.items()
)

# Control port of the simulation: faults and changes of the arm at run time, a line each.

GREETING = (
    "simulated controller: fault NAME[@T[+D]][:ARGUMENT] | clear [NAME] | list | "
    "carry KG[,X,Y,Z] | friction JOINT FACTOR | gravity X,Y,Z | quit\n"
)

_LEAST_FACTOR, _LARGEST_FACTOR = 0.1, 10.0
"""Factors on the friction of a joint."""
_LARGEST_GRAVITY = 20.0
"""Of the mounting [m/s^2]."""


class ControlPortSession(LineSession):
    """Injects faults, and changes the arm without informing the controller."""

    def __init__(self, arm: SimulatedArm, faults: Faults) -> None:
        self._arm, self._faults = arm, faults

    def greeting(self) -> bytes:
        """List of the commands."""
        return GREETING.encode()

    def answer(self, line: str) -> str:
        """Answer to one line."""
        verb, _, rest = line.partition(" ")
        match verb:
            case "fault":
                try:
                    return f"ok {self._faults.inject(rest)}"
                except InputError as error:
                    return f"refused: {error}"
            case "clear":
                return f"ok {self._faults.clear(rest.strip() or None)} cleared"
            case "list":
                return " ".join(["ok", *map(str, self._faults.faults)])
            case "carry":
                return self._carry(rest)
            case "friction":
                return self._change_friction(rest)
            case "gravity":
                return self._tilt(rest)
            case "quit":
                self.finished = True
                return "ok"
        return f"refused: unknown command; known faults: {', '.join(FAULTS)}"

    def _carry(self, text: str) -> str:
        mass, *center = _numbers(text) or [math.nan]
        payload = Payload(mass, np.array(center or (0.0, 0.0, 0.0)))
        if len(center) not in (0, 3) or not is_possible(payload):
            return (
                "refused: write carry KG or carry KG,X,Y,Z "
                f"(up to {HEAVIEST:g} kg, and {FARTHEST:g} m in the flange frame)"
            )
        self._arm.carry(payload)
        return f"ok carrying {mass:g} kg"

    def _change_friction(self, text: str) -> str:
        names = self._arm.robot.joint_names
        joint, _, number = text.strip().rpartition(" ")
        factor, *_ = _numbers(number) or [math.nan]
        if joint not in names or not _LEAST_FACTOR <= factor <= _LARGEST_FACTOR:
            return (
                f"refused: write friction JOINT FACTOR (joints {', '.join(names)}; factor "
                f"{_LEAST_FACTOR:g} to {_LARGEST_FACTOR:g} on the present friction)"
            )
        self._arm.change_friction(names.index(joint), factor)
        return f"ok friction of {joint} times {factor:g}"

    def _tilt(self, text: str) -> str:
        gravity = np.array(_numbers(text))
        if gravity.shape != (3,) or not np.linalg.norm(gravity) <= _LARGEST_GRAVITY:
            return f"refused: write gravity X,Y,Z in m/s^2 (up to {_LARGEST_GRAVITY:g})"
        self._arm.tilt(gravity)
        return f"ok gravity {', '.join(f'{value:g}' for value in gravity)} m/s^2"


def _numbers(text: str) -> list[float]:
    """Numbers between commas; none where one of them is no number."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return []
