"""The dashboard server: answers that public clients expect, and effects of the commands."""

from __future__ import annotations

import re

import pytest

from ur_energy_model.simulation.client_interfaces import DashboardSession
from ur_energy_model.simulation.commands import SafetyCommand
from ur_energy_model.simulation.control_box import ControlBox
from ur_energy_model.telemetry.rtde.dashboard_client import SIMULATED_SERIAL_PREFIX


@pytest.fixture
def dashboard(box: ControlBox) -> DashboardSession:
    return DashboardSession(box)


def ask(dashboard: DashboardSession, *lines: str) -> list[str]:
    answers = dashboard.receive("".join(f"{line}\n" for line in lines).encode())
    return answers.decode().splitlines()


# Answers as ur_rtde 1.6.5 and UR's C++ client library match them.
MATCHED = {
    "PolyscopeVersion": r"URSoftware 5\.11\.1\.\d+ \(.*\)",
    "version": r"5\.11\.1\.0",
    "get serial number": r"20\d+",
    "get robot model": r"UR5",
    "is in remote control": r"true",
    "robotmode": r"Robotmode: RUNNING",
    "safetymode": r"Safetymode: NORMAL",
    "safetystatus": r"Safetystatus: NORMAL",
    "programState": r"STOPPED hold\.urp",
    "running": r"Program running: false",
    "get loaded program": r"Loaded program: hold\.urp",
    "isProgramSaved": r"true hold\.urp",
    "load other.urp": r"Loading program: other\.urp",
    "load installation default.installation": r"Loading installation: default\.installation",
    "play": r"Starting program",
    "stop": r"Stopped",
    "power on": r"Powering on",
    "power off": r"Powering off",
    "brake release": r"Brake releasing",
    "unlock protective stop": r"Protective stop releasing",
    "restart safety": r"Restarting safety",
    "popup Some text": r"showing popup",
    "close popup": r"closing popup",
    "close safety popup": r"closing safety popup",
    "addToLog Some text": r"Added log message",
    "saveLog": r"Log saved to disk",
    "set operational mode manual": r"Operational mode MANUAL is set",
    "get operational mode": r"NONE",
    "clear operational mode": r"No longer controlling the operational mode.*",
    "setUserRole PROGRAMMER": r"Setting user role: PROGRAMMER",
    "getUserRole": r"NONE",
    "generate flight report controller": r"Flight Report generated with id:.*",
    "generate support file .": r"Completed successfully:.*",
    "shutdown": r"Shutting down",
    "quit": r"Disconnected",
}


@pytest.mark.parametrize(("command", "pattern"), MATCHED.items())
def test_answers_match_what_clients_expect(
    dashboard: DashboardSession, command: str, pattern: str
) -> None:
    (answer,) = ask(dashboard, command)
    assert re.fullmatch(pattern, answer)


def test_greets_first(dashboard: DashboardSession) -> None:
    assert dashboard.greeting() == b"Connected: Universal Robots Dashboard Server\n"


def test_serial_number_shows_that_the_arm_is_simulated(dashboard: DashboardSession) -> None:
    (serial,) = ask(dashboard, "get serial number")
    assert serial == f"{SIMULATED_SERIAL_PREFIX}0007"
    assert serial.isdigit(), "clients refuse anything but digits"


def test_power_cycle(dashboard: DashboardSession) -> None:
    assert ask(dashboard, "power off", "robotmode")[1] == "Robotmode: POWER_OFF"
    assert ask(dashboard, "play") == ["Failed to execute: play"]
    assert ask(dashboard, "power on", "robotmode")[1] == "Robotmode: IDLE"
    assert ask(dashboard, "power on", "brake release", "robotmode")[2] == "Robotmode: RUNNING"
    assert ask(dashboard, "power on", "robotmode")[1] == "Robotmode: RUNNING", "it stays on"


def test_program_states(dashboard: DashboardSession) -> None:
    assert ask(dashboard, "pause") == ["Failed to execute: pause"]
    assert ask(dashboard, "play", "running", "programState") == [
        "Starting program",
        "Program running: true",
        "PLAYING hold.urp",
    ]
    assert ask(dashboard, "pause", "programState", "running") == [
        "Pausing program",
        "PAUSED hold.urp",
        "Program running: false",
    ]
    assert ask(dashboard, "play", "programState")[1] == "PLAYING hold.urp"
    assert ask(dashboard, "stop", "programState")[1] == "STOPPED hold.urp"


def test_loading_stops_the_program(dashboard: DashboardSession) -> None:
    ask(dashboard, "play", "load next.urp")
    assert ask(dashboard, "programState") == ["STOPPED next.urp"]
    ask(dashboard, "load /programs/cell/next.urp")
    assert ask(dashboard, "programState", "get loaded program") == [
        "STOPPED next.urp",
        "Loaded program: /programs/cell/next.urp",
    ]
    assert ask(dashboard, "load picture.png") == ["File not found: picture.png"]


def test_protective_stop_and_unlock(dashboard: DashboardSession, box: ControlBox) -> None:
    box.arm.command(SafetyCommand.PROTECTIVE_STOP)
    assert ask(dashboard, "safetymode", "play") == [
        "Safetymode: PROTECTIVE_STOP",
        "Failed to execute: play",
    ]
    assert ask(dashboard, "unlock protective stop", "safetymode")[1] == "Safetymode: NORMAL"


def test_case_does_not_matter_and_nonsense_is_named(dashboard: DashboardSession) -> None:
    assert ask(dashboard, "ROBOTMODE") == ["Robotmode: RUNNING"]
    assert ask(dashboard, "make coffee") == ['could not understand: "make coffee"']


def test_quit_closes(dashboard: DashboardSession) -> None:
    assert not dashboard.finished
    ask(dashboard, "quit")
    assert dashboard.finished


def test_lines_may_arrive_in_pieces_and_are_bounded(dashboard: DashboardSession) -> None:
    assert dashboard.receive(b"robot") == b""
    assert dashboard.receive(b"mode\r\n") == b"Robotmode: RUNNING\n"
    assert dashboard.receive(b"x" * 100_000) == b""
    assert dashboard.receive(b"robotmode\n") == b"Robotmode: RUNNING\n"
