# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

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
from ur_energy_model.simulation.arm_commands import (
    FARTHEST,
    HEAVIEST,
    Command,
    PowerCommand,
    ProgramState,
    RobotMode,
    SafetyCommand,
    SafetyMode,
    is_possible,
)
from ur_energy_model.simulation.control_box import ControlBox
from ur_energy_model.simulation.faults import FAULTS, Faults
from ur_energy_model.simulation.simulated_arm import SimulatedArm
from ur_energy_model.simulation.tcp_server import ClientSession, LineSession
from ur_energy_model.simulation.ur_rtde_script import UrRtdeScript
from ur_energy_model.simulation.urscript import (
    ScriptReader,
    UrScriptProgram,
    calls_of,
    program_name,
)
from ur_energy_model.trajectory.kinematics import ScriptError

# Encoding of the packets of the primary, secondary and real-time interfaces. All numbers
# are big-endian. Source: Universal Robots' description of the client interfaces, and the
# parsers of public clients.

# Kinds of packets.
ROBOT_STATE = 16
ROBOT_MESSAGE = 20

# Kinds of sub-packets of the state.
MODE_DATA = 0
JOINT_DATA = 1
TOOL_DATA = 2
MASTERBOARD_DATA = 3
CARTESIAN_INFO = 4
KINEMATICS_INFO = 5
CONFIGURATION_DATA = 6

VERSION_MESSAGE = 3  # kind of a message
FROM_CONTROLLER = -2  # source of a message
TOOL_RUNNING = 253  # mode of the tool
CHARACTERISTIC_SIZE = 1.0  # stated size of the tool ("eqRadius") [m]
_DEFAULTS = (1.05, 1.4, 0.25, 1.2, CHARACTERISTIC_SIZE)
"""Default speed and acceleration of joints and of the tool, and the size of the tool, SI."""
_JOINT = struct.Struct(">dddffffB")  # a joint in the sub-packet of the joints
_HEADER = struct.Struct(">iB")  # length and kind of a packet
_CALIBRATED = 1  # status of the kinematic calibration
_MAIN_TEMPERATURE = 30.0  # temperature of the main board [degC]
_TOOL_TEMPERATURE = 25.0  # [degC]


def _framed(kind: int, body: bytes) -> bytes:
    """A packet or sub-packet of a kind, with its header."""
    return _HEADER.pack(_HEADER.size + len(body), kind) + body


def _doubles(*values: Any) -> bytes:
    """Numbers and arrays in double precision, one after the other."""
    return np.concatenate([np.ravel(value) for value in values]).astype(">f8").tobytes()


def version_message(box: ControlBox) -> bytes:
    """First message to a client of the primary or secondary interface.

    Args:
        box: arm, program and values of the controller.
    """
    name = b"URControl"
    date = b"simulated"
    body = struct.pack(">QbB", _microseconds(box), FROM_CONTROLLER, VERSION_MESSAGE)
    body += bytes([len(name)]) + name + struct.pack(">BBii", *box.version) + date
    return _framed(ROBOT_MESSAGE, body)


def state_message(box: ControlBox, *, configuration: bool = False) -> bytes:
    """State of the robot as sent ten times per second on both interfaces.

    Args:
        box: arm, program and values of the controller.
        configuration: whether kinematics and limits are in it, as in the first message to
            a client.
    """
    robot = box.arm.robot
    # Analog ranges and inputs, voltage, output voltage, current, temperature, mode.
    tool = struct.pack(
        ">bbddfBffB", 0, 0, 0.0, 0.0, 0.0, 0, 0.0, _TOOL_TEMPERATURE, TOOL_RUNNING
    )
    parts = {
        MODE_DATA: _mode_data(box),
        JOINT_DATA: _joint_data(box.values),
        CARTESIAN_INFO: _doubles(box.values["actual_TCP_pose"], box.tcp_offset),
        MASTERBOARD_DATA: _masterboard_data(box),
        TOOL_DATA: tool,
    }
    if configuration:
        lowest = robot.middle_position - robot.max_position
        highest = robot.middle_position + robot.max_position
        limits = np.column_stack([lowest, highest])
        motion = np.column_stack([robot.max_velocity, robot.max_acceleration])
        checksums = struct.pack(">6I", *range(6))
        geometry = _doubles(robot.theta, robot.a, robot.d, robot.alpha)
        parts[KINEMATICS_INFO] = checksums + geometry + struct.pack(">I", _CALIBRATED)
        geometry = _doubles(robot.a, robot.d, robot.alpha, robot.theta)
        numbers_of_parts = bytes(
            16
        )  # master board, controller box, robot type and subtype
        parts[CONFIGURATION_DATA] = (
            _doubles(limits, motion, _DEFAULTS) + geometry + numbers_of_parts
        )
    packets = [_framed(kind, body) for kind, body in parts.items()]
    return _framed(ROBOT_STATE, b"".join(packets))


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
    "cb3": {
        (3, 0): 1044,
        (3, 2): 1060,
        (3, 5): 1108,
        (3, 10): 1116,
        (3, 14): 1140,
        (3, 15): 1220,
    },
    "e-series": {(5, 0): 1108, (5, 4): 1116, (5, 9): 1140, (5, 10): 1220},
}
"""Length of the real-time packet by the software version that introduced it [bytes]."""


def realtime_packet(box: ControlBox) -> bytes:
    """Packet of the real-time interface; its length depends on the version.

    Args:
        box: arm, program and values of the controller.
    """
    values = []
    for field in _REALTIME:
        if isinstance(field, int):
            values.append(np.zeros(field))
        else:
            values.append(box.values[field])
    body = _doubles(*values)
    sizes = _REALTIME_SIZES["cb3" if box.version[0] < 5 else "e-series"]
    size = max(size for since, size in sizes.items() if since <= box.version[:2])
    return struct.pack(">i", size) + body[: size - 4]


def _microseconds(box: ControlBox) -> int:
    """Controller time [us], within the range of the packets."""
    time = np.nan_to_num(1e6 * float(box.values["timestamp"]))
    return int(np.clip(time, 0.0, 2.0**63))


def _singles(value: Any) -> list[float]:
    """Values in single precision; values beyond its range, of injected faults, are infinite."""
    with np.errstate(over="ignore"):
        return [float(each) for each in np.atleast_1d(value).astype(np.float32)]


def _mode_data(box: ControlBox) -> bytes:
    """The sub-packet of modes, speed slider and speed scaling, without header."""
    mode = box.arm.robot_mode
    state = box.program_state
    value = box.values
    flags = (
        True,  # a real robot is connected
        True,  # a real robot is enabled
        mode >= RobotMode.POWER_ON,
        False,  # emergency stop
        box.arm.safety_mode == SafetyMode.PROTECTIVE_STOP,
        state == ProgramState.PLAYING,
        state == ProgramState.PAUSED,
    )
    control_mode = 0  # position control
    largest_fraction = 1.0
    body = struct.pack(
        ">Q7?BBddd",
        _microseconds(box),
        *flags,
        max(mode, 0),
        control_mode,
        value["target_speed_fraction"],
        value["speed_scaling"],
        largest_fraction,
    )
    if box.version >= (3, 5):
        body += b"\0"  # reserved
    return body


def _joint_data(values: Mapping[str, Any]) -> bytes:
    """The sub-packet of the joints, without header.

    Args:
        values: values of the current cycle by the names of RTDE fields.
    """
    columns = [
        values["actual_q"],
        values["target_q"],
        values["actual_qd"],
        _singles(values["actual_current"]),
        _singles(values["actual_joint_voltage"]),
        _singles(values["joint_temperatures"]),
        [0.0] * 6,  # temperature of the microcontrollers, obsolete
        np.asarray(values["joint_mode"], dtype=int).tolist(),
    ]
    return b"".join(_JOINT.pack(*joint) for joint in zip(*columns, strict=True))


def _masterboard_data(box: ControlBox) -> bytes:
    """The sub-packet of inputs, outputs and supply, without header."""
    value = box.values
    supply_fields = ("actual_robot_voltage", "actual_robot_current", "io_current")
    body = struct.pack(
        ">iiBBddbbddffff",
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
        _MAIN_TEMPERATURE,
        *_singles([value[name] for name in supply_fields]),
    )
    return body + struct.pack(">BBBIBBB", box.arm.safety_mode, 0, 0, 0, 0, 0, 0)


# Sessions of clients, and the dashboard server of e-Series and CB3 controllers. Source:
# Universal Robots' description of the dashboard server, and the answers that public
# clients expect.


class ScriptSession(ClientSession):
    """A client that may send scripts; the server sends the stream of the port.

    Args:
        box: arm, program and values of the controller.
    """

    def __init__(self, box: ControlBox) -> None:
        self._box = box
        self._reader = ScriptReader()

    def receive(self, data: bytes) -> bytes:
        """Start the completed programs; scripts get no answer.

        Args:
            data: the next bytes of the connection; a program may arrive in pieces.

        Returns:
            No bytes: real controllers do not answer scripts on this port.
        """
        box = self._box
        for text in self._reader.feed(data):
            name = program_name(text)
            try:
                if name == UrRtdeScript.name:
                    box.run(UrRtdeScript(box, text))
                else:
                    box.run(UrScriptProgram(box, name, calls_of(text)))
            except ScriptError as error:
                box.send_message(f"{name} was not run: {error}", level=1)
        return b""


class StateSession(ScriptSession):
    """A client of the primary or secondary interface."""

    def greeting(self) -> bytes:
        """Version, kinematics and limits, sent once."""
        return version_message(self._box) + state_message(self._box, configuration=True)


BUILD_DATE = "simulated controller of ur_energy_model"
USER_ROLES = ("PROGRAMMER", "OPERATOR", "NONE", "LOCKED", "RESTRICTED")


class DashboardSession(LineSession):
    """One client of the dashboard server, with the mode and role that it sets.

    Args:
        box: arm, program and values of the controller.
    """

    def __init__(self, box: ControlBox) -> None:
        self.box = box
        self.operational_mode = "NONE"
        self.user_role = "NONE"

    def greeting(self) -> bytes:
        """First line, as on real controllers."""
        return b"Connected: Universal Robots Dashboard Server\n"

    def answer(self, line: str) -> str:
        """Answer to one command; case is ignored.

        Args:
            line: the command, without its line break.

        Returns:
            The line that a real dashboard server answers.
        """
        for pattern, reply in _COMMANDS:
            match = pattern.fullmatch(line)
            if match is not None:
                argument = (match[1] or "") if match.groups() else ""
                if isinstance(reply, str):
                    return reply.format(argument)
                return reply(self, argument)
        return f'could not understand: "{line}"'

    def load(self, name: str) -> str:
        """Load another program.

        Args:
            name: file name of the program, ending with .urp; any other program is not
                found.

        Returns:
            The line of the answer.
        """
        if not name.endswith(".urp"):
            return f"File not found: {name}"
        self.box.stop()
        self.box.loaded_program = name
        return f"Loading program: {name}"

    def power(self, answer: str, *commands: Command) -> str:
        """Command power and safety of the arm; the program ends where it is switched off.

        Args:
            answer: line that is returned.
            *commands: for the arm, in order.
        """
        for command in commands:
            if command is PowerCommand.OFF:
                self.box.stop()
            self.box.command(command)
        return answer

    def stop(self, answer: str) -> str:
        """Stop the program.

        Args:
            answer: line that is returned.
        """
        self.box.stop()
        return answer

    def set(self, name: str, value: object, answer: str) -> str:
        """Set an attribute of the session.

        Args:
            name: name of the attribute.
            value: value of the attribute from now on.
            answer: line that is returned.
        """
        setattr(self, name, value)
        return answer


_OFF = PowerCommand.OFF
_UNLOCK = SafetyCommand.UNLOCK
_REPLIES: dict[str, Callable[[DashboardSession, str], str] | str] = {
    r"load installation (.+)": "Loading installation: {}",
    r"load (.+)": DashboardSession.load,
    r"play": lambda at, _: (
        "Starting program" if at.box.play() else "Failed to execute: play"
    ),
    r"stop": lambda at, _: at.stop("Stopped"),
    r"pause": lambda at, _: (
        "Pausing program" if at.box.pause() else "Failed to execute: pause"
    ),
    r"running": lambda at, _: (
        f"Program running: {str(at.box.program_state == ProgramState.PLAYING).lower()}"
    ),
    r"programState": lambda at, _: (
        f"{at.box.program_state.name} {PurePosixPath(at.box.loaded_program).name}"
    ),
    r"get loaded program": lambda at, _: (
        f"Loaded program: {at.box.uploaded_program or at.box.loaded_program}"
    ),
    r"isProgramSaved": lambda at, _: f"true {at.box.loaded_program}",
    r"power on": lambda at, _: at.power("Powering on", PowerCommand.ON),
    r"power off": lambda at, _: at.power("Powering off", _OFF),
    r"brake release": lambda at, _: at.power(
        "Brake releasing", PowerCommand.RELEASE_BRAKES
    ),
    r"unlock protective stop": lambda at, _: at.power(
        "Protective stop releasing", _UNLOCK
    ),
    r"restart safety": lambda at, _: at.power("Restarting safety", _UNLOCK, _OFF),
    r"robotmode": lambda at, _: f"Robotmode: {RobotMode(at.box.arm.robot_mode).name}",
    r"safetymode": lambda at, _: f"Safetymode: {SafetyMode(at.box.arm.safety_mode).name}",
    r"safetystatus": lambda at, _: (
        f"Safetystatus: {SafetyMode(at.box.arm.safety_mode).name}"
    ),
    r"PolyscopeVersion": lambda at, _: (
        f"URSoftware {'.'.join(map(str, at.box.version))} ({BUILD_DATE})"
    ),
    r"version": lambda at, _: ".".join(map(str, at.box.version)),
    r"get serial number": lambda at, _: at.box.identity.serial,
    r"get robot model": lambda at, _: at.box.identity.model,
    r"is in remote control": "true",
    r"set operational mode (manual|automatic)": lambda at, mode: at.set(
        "operational_mode", mode.upper(), f"Operational mode {mode.upper()} is set"
    ),
    r"get operational mode": lambda at, _: at.operational_mode,
    r"clear operational mode": lambda at, _: at.set(
        "operational_mode",
        "NONE",
        "No longer controlling the operational mode. Current operational mode: 'NONE'.",
    ),
    r"setUserRole (\w+)": lambda at, role: (
        at.set("user_role", role.upper(), f"Setting user role: {role}")
        if role.upper() in USER_ROLES
        else f"Failed setting user role: {role}"
    ),
    r"getUserRole": lambda at, _: at.user_role,
    r"popup (.*)": "showing popup",
    r"close popup": "closing popup",
    r"close safety popup": "closing safety popup",
    r"addToLog(?: (.*))?": "Added log message",
    r"saveLog": "Log saved to disk",
    r"generate flight report.*": "Flight Report generated with id: 0",
    r"generate support file.*": "Completed successfully: no file, simulated",
    r"quit": lambda at, _: at.set("finished", True, "Disconnected"),
    r"shutdown": lambda at, _: at.power("Shutting down", _OFF),
}
"""Answers, or functions of session and argument that give them, by pattern of the
command, in order of priority; {} stands for the argument."""
_COMMANDS = tuple(
    (re.compile(pattern, re.IGNORECASE), reply) for pattern, reply in _REPLIES.items()
)

# Control port of the simulation: faults and changes of the arm at run time, a line each.

GREETING = (
    "simulated controller: fault NAME[@T[+D]][:ARGUMENT] | clear [NAME] | list | "
    "carry KG[,X,Y,Z] | friction JOINT FACTOR | gravity X,Y,Z | quit\n"
)

_LEAST_FACTOR = 0.1  # least factor on the friction of a joint
_LARGEST_FACTOR = 10.0  # largest factor on the friction of a joint
_LARGEST_GRAVITY = 20.0  # largest gravity of a mounting [m/s^2]


class ControlPortSession(LineSession):
    """Injects faults, and changes the arm without informing the controller.

    Args:
        arm: arm that the requests change.
        faults: faults of the controller, to which requests add.
    """

    def __init__(self, arm: SimulatedArm, faults: Faults) -> None:
        self._arm = arm
        self._faults = faults

    def greeting(self) -> bytes:
        """List of the commands."""
        return GREETING.encode()

    def answer(self, line: str) -> str:
        """Answer to one line.

        Args:
            line: a request: its name and arguments, separated by spaces.

        Returns:
            "ok" and what was done, or "refused:" and why.
        """
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
        """Mount a payload given as KG or KG,X,Y,Z; returns the answer."""
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
        """Change the friction of a joint given as JOINT FACTOR; returns the answer."""
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
        """Change the mounting given by gravity as X,Y,Z; returns the answer."""
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
