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
from ur_energy_model.model.setup import Payload
from ur_energy_model.simulation.commands import (
    Command,
    PowerCommand,
    ProgramCommand,
    ProgramState,
    RobotMode,
    SafetyCommand,
    SafetyMode,
)
from ur_energy_model.simulation.control_box import ControlBox, SimulatedIdentity
from ur_energy_model.simulation.faults import Faults
from ur_energy_model.simulation.simulated_controller import SimulatedController
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


@dataclass
class StandInArm:
    """An arm whose values are known: field number i holds i + cycle / 1000 everywhere."""

    robot: RobotDescription
    busy: bool = False
    robot_mode: RobotMode = RobotMode.RUNNING
    safety_mode: SafetyMode = SafetyMode.NORMAL
    program_state: ProgramState = ProgramState.STOPPED
    cycle: int = 0
    commands: list[Command] = field(default_factory=list)
    carried: list[Payload] = field(default_factory=list)
    friction: list[tuple[int, float]] = field(default_factory=list)
    gravity: Array | None = None

    def __post_init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        values: dict[str, Any] = {
            name: np.full(known.width, i + self.cycle / 1000)
            for i, (name, known) in enumerate(FIELDS.items())
            if not name.startswith(("output_", "input_", "tool_"))
        }
        self._values = {
            name: value if len(value) > 1 else float(value[0]) for name, value in values.items()
        }

    @property
    def outputs(self) -> dict[str, float | Array]:
        self._values["timestamp"] = 60.0 + self.cycle / self.robot.rate
        self._values["robot_mode"] = float(self.robot_mode)
        self._values["safety_mode"] = float(self.safety_mode)
        return self._values

    def tick(self) -> None:
        self.cycle += 1
        self._renew()

    def carry(self, payload: Payload) -> None:
        self.carried.append(payload)

    def tilt(self, gravity: Array) -> None:
        self.gravity = gravity

    def change_friction(self, joint: int, factor: float) -> None:
        self.friction.append((joint, factor))

    def command(self, command: Command) -> None:
        self.commands.append(command)
        match command:
            case PowerCommand.ON:
                self.robot_mode = RobotMode.IDLE
            case PowerCommand.OFF:
                self.robot_mode = RobotMode.POWER_OFF
            case PowerCommand.RELEASE_BRAKES:
                self.robot_mode = RobotMode.RUNNING
            case SafetyCommand.PROTECTIVE_STOP:
                self.safety_mode = SafetyMode.PROTECTIVE_STOP
            case SafetyCommand.UNLOCK:
                self.safety_mode = SafetyMode.NORMAL
            case ProgramCommand.PLAY if self.robot_mode != RobotMode.RUNNING:
                raise MotionRefusedError("the arm is not running")
            case ProgramCommand.PLAY:
                self.program_state = ProgramState.PLAYING
            case ProgramCommand.PAUSE:
                self.program_state = ProgramState.PAUSED
            case ProgramCommand.STOP:
                self.program_state = ProgramState.STOPPED


@pytest.fixture
def arm() -> Any:
    return StandInArm(load_robot("ur5e"))


@pytest.fixture
def box(arm: Any) -> ControlBox:
    """Control box of an e-Series arm with software 5.11.1."""
    return ControlBox(
        arm, SimulatedIdentity.for_robot(arm.robot, (5, 11, 1), seed=7, motion="hold")
    )


@pytest.fixture
def cb3_box() -> ControlBox:
    """Control box of a CB3 arm with software 3.15.8."""
    robot = load_robot("ur5")
    arm: Any = StandInArm(robot)
    return ControlBox(arm, SimulatedIdentity.for_robot(robot, (3, 15, 8), seed=0, motion="hold"))


class RtdeClient:
    """A blocking RTDE v2 client that records the order of the packets."""

    def __init__(self, host: str) -> None:
        self.socket = socket.create_connection((host, RTDE_PORT), timeout=3.0)
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
        version = self.request(PacketType.REQUEST_PROTOCOL_VERSION, b"\x00\x02")
        assert version == b"\x01"
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

    def close(self) -> None:
        self.socket.close()


Serve = Callable[..., SimulatedController]
Connect = Callable[[SimulatedController], RtdeClient]


@pytest.fixture
def serve(arm: Any, fresh_host: Callable[[], str]) -> Iterator[Serve]:
    """Start servers around the stand-in, each on its own loopback address."""
    with ExitStack() as running:

        def start(*faults: str, speed: float = 1.0) -> SimulatedController:
            return running.enter_context(
                SimulatedController(
                    arm,
                    fresh_host(),
                    SimulatedIdentity.for_robot(arm.robot, (5, 11, 1), seed=7, motion="hold"),
                    faults=Faults.parse(faults),
                    speed=speed,
                )
            )

        yield start


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connect RTDE clients that are closed at the end."""
    with ExitStack() as opened:

        def open_client(server: SimulatedController) -> RtdeClient:
            client = RtdeClient(server.host)
            opened.callback(client.close)
            return client

        yield open_client
