# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A stand-in for the simulated arm in tests without physics, and a plain RTDE client."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.simulation.arm_commands import (
    Command,
    PowerCommand,
    ProgramCommand,
    ProgramState,
    RobotMode,
    SafetyCommand,
    SafetyMode,
)
from ur_energy_model.simulation.control_box import ControlBox, SimulatedIdentity
from ur_energy_model.simulation.simulated_controller import (
    CONTROL_PORT,
    SimulatedController,
)
from ur_energy_model.telemetry.fields import FIELDS
from ur_energy_model.telemetry.rtde.connection import PORT as RTDE_PORT
from ur_energy_model.telemetry.rtde.protocol import (
    Frame,
    FrameReader,
    PacketType,
    Recipe,
    encode_output_setup,
    frame,
)
from ur_energy_model.typing import Array

OWN = ("output_", "input_", "tool_")


@dataclass
class StandInArm:
    """An arm whose values are known: field number i holds i + cycle / 1000 everywhere."""

    robot: RobotDescription
    busy: bool = False
    robot_mode: RobotMode = RobotMode.RUNNING
    safety_mode: SafetyMode = SafetyMode.NORMAL
    program_state: ProgramState = ProgramState.STOPPED
    cycle: int = -1
    commands: list[Command] = field(default_factory=list)
    changes: list[tuple[Any, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tick()

    def tick(self) -> None:
        self.cycle += 1
        self._values: dict[str, float | Array] = {}
        for i, (name, known) in enumerate(FIELDS.items()):
            value = i + self.cycle / 1000
            if not name.startswith(OWN):
                self._values[name] = (
                    np.full(known.width, value) if known.width > 1 else value
                )

    @property
    def outputs(self) -> dict[str, float | Array]:
        self._values["timestamp"] = 60.0 + self.cycle / self.robot.rate
        self._values["robot_mode"] = float(self.robot_mode)
        self._values["safety_mode"] = float(self.safety_mode)
        return self._values

    def carry(self, payload: Any) -> None:
        self.changes.append((payload.mass, *payload.center_of_mass))

    def tilt(self, gravity: Array) -> None:
        self.changes.append(tuple(gravity))

    def change_friction(self, joint: int, factor: float) -> None:
        self.changes.append((joint, factor))

    def command(self, command: Command) -> None:
        self.commands.append(command)
        match command:
            case PowerCommand():
                modes = {
                    PowerCommand.ON: RobotMode.IDLE,
                    PowerCommand.OFF: RobotMode.POWER_OFF,
                }
                self.robot_mode = modes.get(command, RobotMode.RUNNING)
            case SafetyCommand():
                stop = command is SafetyCommand.PROTECTIVE_STOP
                self.safety_mode = (
                    SafetyMode.PROTECTIVE_STOP if stop else SafetyMode.NORMAL
                )
            case ProgramCommand.PLAY if self.robot_mode != RobotMode.RUNNING:
                raise MotionRefusedError("the arm is not running")
            case ProgramCommand():
                states = {"PLAY": ProgramState.PLAYING, "PAUSE": ProgramState.PAUSED}
                self.program_state = states.get(command.name, ProgramState.STOPPED)


def make_box(robot: str = "ur5e", version: tuple[int, ...] = (5, 11, 1)) -> ControlBox:
    """Control box of a stand-in with a software version."""
    arm: Any = StandInArm(load_robot(robot))
    return ControlBox(
        arm, SimulatedIdentity.for_robot(arm.robot, version, seed=7, motion="hold")
    )


@pytest.fixture
def box() -> ControlBox:
    return make_box()


@pytest.fixture
def arm(box: ControlBox) -> Any:
    return box.arm


class RtdeClient:
    """A blocking RTDE v2 client that records the order of the packets."""

    def __init__(self, host: str) -> None:
        self.socket = socket.create_connection((host, RTDE_PORT), timeout=240)
        self.reader = FrameReader()
        self.recipe: Recipe | None = None
        self.seen: list[int] = []

    def request(self, kind: int, payload: bytes = b"") -> bytes:
        """Payload of the reply; packets of other types before it are skipped."""
        self.socket.sendall(frame(kind, payload))
        while True:
            packet = self.next_packet()
            if packet.kind == kind:
                return packet.payload

    def next_packet(self) -> Frame:
        while (packet := self.reader.take_frame()) is None:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError("the controller closed the connection")
            self.reader.feed(data)
        self.seen.append(packet.kind)
        return packet

    def start(self, *names: str) -> bool:
        """Negotiate version 2, set up these outputs and start; returns whether it was accepted."""
        assert self.request(PacketType.REQUEST_PROTOCOL_VERSION, b"\x00\x02") == b"\x01"
        self.request(PacketType.GET_CONTROLLER_VERSION)
        self.request(PacketType.SETUP_OUTPUTS, encode_output_setup(names, 500.0))
        self.recipe = Recipe(names, tuple(FIELDS[name].kind for name in names), 1)
        return self.request(PacketType.START) == b"\x01"

    def samples(self, count: int) -> NDArray[np.void]:
        """The next data packages."""
        assert self.recipe is not None
        packages = bytearray()
        while len(packages) < count * self.recipe.frame_size:
            packet = self.next_packet()
            if packet.kind == PacketType.DATA_PACKAGE:
                packages += frame(packet.kind, packet.payload)
        return self.recipe.unpack_many(bytes(packages))


Serve = Callable[..., SimulatedController]
Connect = Callable[[SimulatedController], RtdeClient]


@pytest.fixture(scope="module")
def serve(fresh_host: Callable[[], str]) -> Iterator[Serve]:
    """Start servers around stand-ins, each on its own loopback address, for the module."""
    with ExitStack() as running:

        def start(speed: float = 1.0) -> SimulatedController:
            arm: Any = StandInArm(load_robot("ur5e"))
            identity = SimulatedIdentity.for_robot(
                arm.robot, (5, 11, 1), seed=7, motion="hold"
            )
            controller = SimulatedController(arm, fresh_host(), identity, speed=speed)
            return running.enter_context(controller)

        yield start


@pytest.fixture(scope="module")
def server(serve: Serve) -> SimulatedController:
    """A server for all tests of the module."""
    return serve()


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connect RTDE clients that are closed at the end."""
    with ExitStack() as opened:

        def open_client(server: SimulatedController) -> RtdeClient:
            client = RtdeClient(server.host)
            opened.callback(client.socket.close)
            return client

        yield open_client


def ask(server: SimulatedController, *lines: str) -> list[str]:
    """Answers of the control port to lines."""
    with socket.create_connection((server.host, CONTROL_PORT), timeout=240) as client:
        stream = client.makefile("rw")
        stream.readline()  # the greeting
        stream.write("".join(f"{line}\n" for line in lines))
        stream.flush()
        return [stream.readline().strip() for _ in lines]
