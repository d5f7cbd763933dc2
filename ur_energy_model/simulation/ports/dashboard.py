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
    """One client of the dashboard server."""

    def __init__(self, box: ControlBox) -> None:
        super().__init__()
        self._box = box
        self._operational_mode = "NONE"
        self._user_role = "NONE"

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

    # Programs

    def _load(self, name: str) -> str:
        if not name.endswith(".urp"):
            return f"File not found: {name}"
        self._box.stop()
        self._box.loaded_program = name
        return f"Loading program: {name}"

    def _play(self, _: str) -> str:
        return "Starting program" if self._box.play() else "Failed to execute: play"

    def _stop(self, _: str) -> str:
        self._box.stop()
        return "Stopped"

    def _pause(self, _: str) -> str:
        return "Pausing program" if self._box.pause() else "Failed to execute: pause"

    def _running(self, _: str) -> str:
        running = self._box.program_state == ProgramState.PLAYING
        return f"Program running: {str(running).lower()}"

    def _program_state(self, _: str) -> str:
        return f"{self._box.program_state.name} {PurePosixPath(self._box.loaded_program).name}"

    def _loaded_program(self, _: str) -> str:
        return f"Loaded program: {self._box.loaded_program}"

    def _program_saved(self, _: str) -> str:
        return f"true {self._box.loaded_program}"

    # Power and safety

    def _power_on(self, _: str) -> str:
        self._box.power_on()
        return "Powering on"

    def _power_off(self, _: str) -> str:
        self._box.power_off()
        return "Powering off"

    def _brake_release(self, _: str) -> str:
        self._box.release_brakes()
        return "Brake releasing"

    def _unlock(self, _: str) -> str:
        self._box.unlock()
        return "Protective stop releasing"

    def _restart_safety(self, _: str) -> str:
        self._box.unlock()
        self._box.power_off()
        return "Restarting safety"

    def _robot_mode(self, _: str) -> str:
        return f"Robotmode: {RobotMode(self._box.arm.robot_mode).name}"

    def _safety_mode(self, _: str) -> str:
        return f"Safetymode: {SafetyMode(self._box.arm.safety_mode).name}"

    def _safety_status(self, _: str) -> str:
        return f"Safetystatus: {SafetyMode(self._box.arm.safety_mode).name}"

    # The controller itself

    def _polyscope_version(self, _: str) -> str:
        major, minor, bugfix, build = self._box.version
        return f"URSoftware {major}.{minor}.{bugfix}.{build} ({BUILD_DATE})"

    def _version(self, _: str) -> str:
        return ".".join(map(str, self._box.version))

    def _serial_number(self, _: str) -> str:
        return self._box.identity.serial

    def _robot_model(self, _: str) -> str:
        return self._box.identity.model

    def _remote_control(self, _: str) -> str:
        return "true"

    def _set_operational_mode(self, mode: str) -> str:
        self._operational_mode = mode.upper()
        return f"Operational mode {mode.upper()} is set"

    def _get_operational_mode(self, _: str) -> str:
        return self._operational_mode

    def _clear_operational_mode(self, _: str) -> str:
        self._operational_mode = "NONE"
        return "No longer controlling the operational mode. Current operational mode: 'NONE'."

    def _set_user_role(self, role: str) -> str:
        if role.upper() not in USER_ROLES:
            return "Failed setting user role: " + role
        self._user_role = role.upper()
        return f"Setting user role: {role}"

    def _get_user_role(self, _: str) -> str:
        return self._user_role

    def _quit(self, _: str) -> str:
        self.finished = True
        return "Disconnected"

    def _shutdown(self, _: str) -> str:
        self._box.power_off()
        return "Shutting down"


Reply = Callable[[DashboardSession, str], str]


def _fixed(answer: str) -> Reply:
    return lambda session, argument: answer.format(argument)


def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(words, re.IGNORECASE)


_COMMANDS: tuple[tuple[re.Pattern[str], Reply], ...] = tuple(
    (_pattern(words), reply)
    for words, reply in (
        (r"load installation (.+)", _fixed("Loading installation: {}")),
        (r"load (.+)", DashboardSession._load),
        (r"play", DashboardSession._play),
        (r"stop", DashboardSession._stop),
        (r"pause", DashboardSession._pause),
        (r"running", DashboardSession._running),
        (r"programState", DashboardSession._program_state),
        (r"get loaded program", DashboardSession._loaded_program),
        (r"isProgramSaved", DashboardSession._program_saved),
        (r"power on", DashboardSession._power_on),
        (r"power off", DashboardSession._power_off),
        (r"brake release", DashboardSession._brake_release),
        (r"unlock protective stop", DashboardSession._unlock),
        (r"restart safety", DashboardSession._restart_safety),
        (r"robotmode", DashboardSession._robot_mode),
        (r"safetymode", DashboardSession._safety_mode),
        (r"safetystatus", DashboardSession._safety_status),
        (r"PolyscopeVersion", DashboardSession._polyscope_version),
        (r"version", DashboardSession._version),
        (r"get serial number", DashboardSession._serial_number),
        (r"get robot model", DashboardSession._robot_model),
        (r"is in remote control", DashboardSession._remote_control),
        (r"set operational mode (manual|automatic)", DashboardSession._set_operational_mode),
        (r"get operational mode", DashboardSession._get_operational_mode),
        (r"clear operational mode", DashboardSession._clear_operational_mode),
        (r"setUserRole (\w+)", DashboardSession._set_user_role),
        (r"getUserRole", DashboardSession._get_user_role),
        (r"popup (.*)", _fixed("showing popup")),
        (r"close popup", _fixed("closing popup")),
        (r"close safety popup", _fixed("closing safety popup")),
        (r"addToLog(?: (.*))?", _fixed("Added log message")),
        (r"saveLog", _fixed("Log saved to disk")),
        (r"generate flight report.*", _fixed("Flight Report generated with id: 0")),
        (r"generate support file.*", _fixed("Completed successfully: no file, simulated")),
        (r"quit", DashboardSession._quit),
        (r"shutdown", DashboardSession._shutdown),
    )
)
