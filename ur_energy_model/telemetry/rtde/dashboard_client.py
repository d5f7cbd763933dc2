# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Asks a controller's dashboard server for serial number, model and program, with a timeout."""

from __future__ import annotations

import re
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

from ur_energy_model.arm_names import is_reported_model, may_be, product_of_controller
from ur_energy_model.errors import WrongRobotError

PORT = 29999
TIMEOUT = 3.0
"""Longest time for the connection and all answers together [s].

A busy controller takes a second; a firewall that drops packets makes every connection to
the controller wait this long.
"""
LONGEST_LINE = 200  # size of the longest answer [bytes]
PAUSE = 1.0  # shortest time between two questions for the program [s]
LOADED_PROGRAM = "get loaded program"
SIMULATED_SERIAL_PREFIX = "2000000"
"""First digits of the serial numbers of simulated arms; numbers of real arms begin with
their year of manufacture, and none was made in 2000."""
_SERIAL = re.compile(r"[0-9A-Za-z-]{4,40}")
_PROGRAM = re.compile(r"Loaded program: (.{1,150})", re.IGNORECASE)


@dataclass(frozen=True)
class ControllerIdentity:
    """Identity of a controller, as its dashboard server states it.

    Attributes:
        serial: serial number of the arm, None if it is unknown.
        model: the arm as the dashboard server names it, such as "UR5"; None if it is
            unknown.
        program: name of the loaded program, None without one.
    """

    serial: str | None = None
    model: str | None = None
    program: str | None = None

    @property
    def text(self) -> str:
        """Serial number of the controller, or why it is not known, for people."""
        if self.serial is not None:
            return f"serial {self.serial}"
        if self.model is not None:
            arm = f"a {self.model}"
            return f"not known: {arm} whose dashboard server has no serial number"
        return "not known: the dashboard server is silent"

    def check(
        self,
        host: str,
        robot: str | None,
        before: ControllerIdentity,
        software: int | None = None,
    ) -> None:
        """Refuse another robot model, or another arm than before; unknown values pass.

        Args:
            host: address of the controller, for errors.
            robot: description name of the expected model, None for any.
            before: identity of the previous controller.
            software: major version of the controller's software, which distinguishes UR5e
                and UR5; None if it is unknown.

        Raises:
            WrongRobotError: it is another robot.
        """
        remedy = "connect the robot that the recording began with, or start another"
        pairs = (
            ("serial", before.serial, self.serial),
            ("robot model", before.model, self.model),
        )
        for field, expected, found in pairs:
            if None not in (expected, found) and found != expected:
                problem = f"is now robot {found} instead of {expected}"
                raise WrongRobotError(host, problem, remedy, field=field)
        if robot is None or self.model is None or may_be(robot, self.model, software):
            return
        named = self.model
        if software is not None:
            named = product_of_controller(named, software)
        problem = f"is a {named}, not a {robot}"
        remedy = "check robot model and address"
        raise WrongRobotError(host, problem, remedy, field="robot model")


def identify_controller(host: str, port: int = PORT) -> ControllerIdentity:
    """Serial number, model and program by the dashboard server of a controller.

    Args:
        host: address of the controller.
        port: TCP port of the controller's dashboard server.

    Returns:
        Answers of the server within TIMEOUT; what it does not answer is unknown.
    """
    questions = ("get serial number", "get robot model", LOADED_PROGRAM)
    serial, model, program = _answers(host, port, *questions)
    return ControllerIdentity(
        serial if _SERIAL.fullmatch(serial) else None,
        model if is_reported_model(model) else None,
        program_name(program),
    )


def program_name(answer: str) -> str | None:
    """Name of the program in an answer to `get loaded program`, without folder and extension."""
    found = _PROGRAM.fullmatch(answer)
    name = "" if found is None else PurePosixPath(found[1]).name.removesuffix(".urp")
    return "".join(filter(str.isprintable, name)).strip() or None


class LoadedProgram:
    """Name of the loaded program, requested in a thread where it may have changed.

    Args:
        host: address of the controller.
        port: TCP port of the controller's dashboard server.

    Attributes:
        name: program name in the last answer; None while it is unknown.
    """

    def __init__(self, host: str, port: int = PORT) -> None:
        self.name: str | None = None
        self._address = host, port
        self._last = float("-inf")
        self._outdated = False
        self._thread: threading.Thread | None = None

    def poll(self, *, changed: bool) -> str | None:
        """The last known name; never waits.

        Args:
            changed: whether the state of the program changed, so that the name is
                requested again.
        """
        self._outdated |= changed
        asking = self._thread is not None and self._thread.is_alive()
        if self._outdated and not asking and time.monotonic() - self._last >= PAUSE:
            self._outdated = False
            self._last = time.monotonic()
            self._thread = threading.Thread(target=self._ask, name="program", daemon=True)
            self._thread.start()
        return self.name

    def _ask(self) -> None:
        """Request the name; without an answer it stays."""
        answer = _answers(*self._address, LOADED_PROGRAM)[0]
        if answer:
            self.name = program_name(answer)


def _answers(host: str, port: int, *questions: str) -> list[str]:
    """Answers of a dashboard server to questions, "" where it does not answer in time."""
    deadline = time.monotonic() + TIMEOUT
    answers = [""] * len(questions)
    # ValueError: the host is not an address.
    with (
        suppress(OSError, ValueError),
        socket.create_connection((host, port), TIMEOUT) as connection,
    ):
        _line(connection, deadline)  # its greeting
        for number, question in enumerate(questions):
            connection.sendall(f"{question}\n".encode())
            answers[number] = _line(connection, deadline)
    return answers


def _line(connection: socket.socket, deadline: float) -> str:
    """The next line, or the beginning of a long one.

    Raises:
        OSError: it does not come in time, or the connection ends.
    """
    text = b""
    while not text.endswith(b"\n") and len(text) < LONGEST_LINE:
        connection.settimeout(max(deadline - time.monotonic(), 1e-3))
        byte = connection.recv(1)
        if not byte:
            raise ConnectionError
        text += byte
    return text.decode(errors="replace").strip()
