"""Dashboard server of e-Series and CB3 controllers.

Source: Universal Robots' description of the dashboard server, and the answers that public clients
expect.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from ur_energy_model.simulation.arm.modes import ProgramState, RobotMode, SafetyMode
from ur_energy_model.simulation.control.control_box import ControlBox
from ur_energy_model.simulation.ports.line_session import LineSession

BUILD_DATE = "simulated controller of ur_energy_model"
USER_ROLES = ("PROGRAMMER", "OPERATOR", "NONE", "LOCKED", "RESTRICTED")


class DashboardSession(LineSession):
    """One client of the dashboard server.

    Attributes:
        box: the control box.
        operational_mode, user_role: as set by the client.
    """

    def __init__(self, box: ControlBox) -> None:
        super().__init__()
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


def _fixed(answer: str) -> Reply:
    """A constant answer; {} stands for the argument."""
    return lambda session, argument: answer.format(argument)


def _query(value: Callable[[ControlBox], str]) -> Reply:
    """A value of the control box."""
    return lambda session, argument: value(session.box)


def _action(action: Callable[[ControlBox], None], answer: str) -> Reply:
    """An action that always succeeds."""

    def reply(session: DashboardSession, argument: str) -> str:
        action(session.box)
        return answer

    return reply


def _attempt(action: Callable[[ControlBox], bool], answer: str, failure: str) -> Reply:
    """An action that may fail."""
    return lambda session, argument: answer if action(session.box) else failure


def _load(session: DashboardSession, name: str) -> str:
    if not name.endswith(".urp"):
        return f"File not found: {name}"
    session.box.stop()
    session.box.loaded_program = name
    return f"Loading program: {name}"


def _restart_safety(box: ControlBox) -> None:
    box.unlock()
    box.power_off()


def _running(box: ControlBox) -> str:
    return f"Program running: {str(box.program_state == ProgramState.PLAYING).lower()}"


def _program_state(box: ControlBox) -> str:
    return f"{box.program_state.name} {PurePosixPath(box.loaded_program).name}"


def _loaded_program(box: ControlBox) -> str:
    uploaded = box.uploaded_program
    return f"Loaded program: {box.loaded_program if uploaded is None else uploaded}"


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


_REPLIES: dict[str, Reply] = {
    r"load installation (.+)": _fixed("Loading installation: {}"),
    r"load (.+)": _load,
    r"play": _attempt(ControlBox.play, "Starting program", "Failed to execute: play"),
    r"stop": _action(ControlBox.stop, "Stopped"),
    r"pause": _attempt(ControlBox.pause, "Pausing program", "Failed to execute: pause"),
    r"running": _query(_running),
    r"programState": _query(_program_state),
    r"get loaded program": _query(_loaded_program),
    r"isProgramSaved": _query(lambda box: f"true {box.loaded_program}"),
    r"power on": _action(ControlBox.power_on, "Powering on"),
    r"power off": _action(ControlBox.power_off, "Powering off"),
    r"brake release": _action(ControlBox.release_brakes, "Brake releasing"),
    r"unlock protective stop": _action(ControlBox.unlock, "Protective stop releasing"),
    r"restart safety": _action(_restart_safety, "Restarting safety"),
    r"robotmode": _query(lambda box: f"Robotmode: {RobotMode(box.arm.robot_mode).name}"),
    r"safetymode": _query(lambda box: f"Safetymode: {SafetyMode(box.arm.safety_mode).name}"),
    r"safetystatus": _query(lambda box: f"Safetystatus: {SafetyMode(box.arm.safety_mode).name}"),
    r"PolyscopeVersion": _query(_polyscope_version),
    r"version": _query(lambda box: ".".join(map(str, box.version))),
    r"get serial number": _query(lambda box: box.identity.serial),
    r"get robot model": _query(lambda box: box.identity.model),
    r"is in remote control": _fixed("true"),
    r"set operational mode (manual|automatic)": _set_operational_mode,
    r"get operational mode": lambda session, argument: session.operational_mode,
    r"clear operational mode": _clear_operational_mode,
    r"setUserRole (\w+)": _set_user_role,
    r"getUserRole": lambda session, argument: session.user_role,
    r"popup (.*)": _fixed("showing popup"),
    r"close popup": _fixed("closing popup"),
    r"close safety popup": _fixed("closing safety popup"),
    r"addToLog(?: (.*))?": _fixed("Added log message"),
    r"saveLog": _fixed("Log saved to disk"),
    r"generate flight report.*": _fixed("Flight Report generated with id: 0"),
    r"generate support file.*": _fixed("Completed successfully: no file, simulated"),
    r"quit": _quit,
    r"shutdown": _action(ControlBox.power_off, "Shutting down"),
}
"""Replies by pattern of the command, in order of priority."""
_COMMANDS = tuple(
    (re.compile(pattern, re.IGNORECASE), reply) for pattern, reply in _REPLIES.items()
)
