# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A simulated UR controller: its options, and the network ports around a simulated arm."""

from __future__ import annotations

import gc
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ur_energy_model.addresses import is_loopback
from ur_energy_model.errors import ControllerError, InputError, UrEnergyError, printable
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.simulation.arm_options import (
    ArmOptions,
    DriveSet,
    TorqueField,
    default_version,
)
from ur_energy_model.simulation.client_interfaces import (
    ControlPortSession,
    DashboardSession,
    ScriptSession,
    StateSession,
    realtime_packet,
    state_message,
)
from ur_energy_model.simulation.control_box import ControlBox, SimulatedIdentity
from ur_energy_model.simulation.faults import Faults
from ur_energy_model.simulation.joint_controller import ControllerKind
from ur_energy_model.simulation.rtde_session import RtdeSession
from ur_energy_model.simulation.simulated_arm import SimulatedArm
from ur_energy_model.simulation.tcp_server import TcpServer
from ur_energy_model.simulation.wall import SimulatedMeter, listening_hosts, serve_meter
from ur_energy_model.telemetry.rtde.connection import PORT as RTDE_PORT
from ur_energy_model.telemetry.rtde.dashboard_client import PORT as DASHBOARD_PORT
from ur_energy_model.trajectory.named_motions import named_motion
from ur_energy_model.typing import Self

_BINS: list[float] = [0.0, *np.geomspace(1e-6, 10.0, 281).tolist()]


class Ticker:
    """Deadlines at start + k * period [s], and how late they were served.

    Later deadlines do not move when a deadline is served late, so no tick is dropped and
    the mean rate is exact.

    Args:
        period: time between deadlines [s].
        clock: returns the time [s].

    Attributes:
        ticks: number of deadlines that were served.
        lateness_max: longest time from a deadline to its service [s].
    """

    def __init__(
        self, period: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.period = period
        self._clock = clock
        self.ticks = 0
        self.lateness_max = 0.0
        self._start = clock()
        self._first = self._start  # time of the first tick [s]
        self._last = self._start  # time of the last tick [s]
        self._histogram = [0] * len(_BINS)

    def remaining(self) -> float:
        """Time to the next deadline [s]; zero or negative if it is due."""
        return self._start + self.ticks * self.period - self._clock()

    def serve(self) -> None:
        """Record that the current deadline is served now."""
        self._last = self._clock()
        if not self.ticks:
            self._first = self._last
        lateness = self._last - (self._start + self.ticks * self.period)
        self.ticks += 1
        self.lateness_max = max(self.lateness_max, lateness)
        self._histogram[max(bisect_left(_BINS, lateness) - 1, 0)] += 1

    @property
    def rate(self) -> float:
        """Ticks per second between the first and the last [Hz]."""
        span = self._last - self._first
        if self.ticks < 2 or span <= 0:
            return 0.0
        return (self.ticks - 1) / span

    def lateness(self, share: float) -> float:
        """Lateness that this share of the ticks does not exceed [s], within 6 %.

        Args:
            share: share of the ticks, 0 to 1.
        """
        counts = np.cumsum(self._histogram)
        upper_end = int(np.searchsorted(counts, share * counts[-1])) + 1
        return _BINS[min(upper_end, len(_BINS) - 1)]

    def __str__(self) -> str:
        median = f"{1e3 * self.lateness(0.5):.2f} ms (median)"
        most = f"{1e3 * self.lateness(0.99):.2f} ms (99 %)"
        worst = f"{1e3 * self.lateness_max:.2f} ms (worst)"
        return (
            f"{self.ticks} ticks at {self.rate:.2f}/s, late by {median}, {most}, {worst}"
        )


PRIMARY_PORT = 30001
SECONDARY_PORT = 30002
REALTIME_PORT = 30003
CONTROL_PORT = 29998
STATE_RATE = 10.0  # rate of the primary and secondary streams [Hz]


class SimulatedController:
    """A UR controller on a network address.

    One thread serves clients until a tick is due, advances the arm by one cycle and sends
    the packages of that cycle. Nothing is shared between threads, and a slow client
    cannot delay a tick.

    Args:
        arm: the simulated arm.
        host: address to listen on.
        identity: identity that the controller reports.
        faults: faults that disturb the controller; None for none.
        speed: factor on real time.
        wall: addresses of a simulated meter at the mains, see `serve_meter`.
        report: called with every message for users.

    Attributes:
        faults: pending and active faults.
        box: the controller without its ports.
        ticker: number of cycles so far, and their lateness.

    Raises:
        ControllerError: a port cannot be opened.
    """

    def __init__(
        self,
        arm: SimulatedArm,
        host: str,
        identity: SimulatedIdentity,
        *,
        faults: Faults | None = None,
        speed: float = 1.0,
        wall: Sequence[str] = (),
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.host = host
        self._report = report
        self.faults = faults or Faults()
        self.box = ControlBox(arm, identity)
        self.ticker = Ticker(1.0 / (self.box.rate * speed))
        self._to_skip = 0
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._meter = SimulatedMeter(arm.wall) if wall else None
        self._closing = ExitStack()
        self._server = TcpServer()
        self._closing.callback(self._server.close)
        sessions = {
            RTDE_PORT: lambda: RtdeSession(self.box, self.faults),
            DASHBOARD_PORT: lambda: DashboardSession(self.box),
            PRIMARY_PORT: lambda: StateSession(self.box),
            SECONDARY_PORT: lambda: StateSession(self.box),
            REALTIME_PORT: lambda: ScriptSession(self.box),
            CONTROL_PORT: lambda: ControlPortSession(self.box.arm, self.faults),
        }
        try:
            for port, make in sessions.items():
                self._server.listen(host, port, make)
            if self._meter is not None:
                for url in serve_meter(self._meter, wall, self._closing):
                    report(f"power meter at the mains: {url}")
        except UrEnergyError:
            self._closing.close()
            raise

    @property
    def connections(self) -> int:
        """Number of connected clients on all ports."""
        return len(self._server.connections)

    def run(
        self, duration: float | None = None, ready: Callable[[], None] | None = None
    ) -> None:
        """Serve until `stop` is called or the duration is over.

        Args:
            duration: controller time to serve [s]; None for no end.
            ready: called when clients can connect.
        """
        gc.collect()
        gc.freeze()  # keeps long-lived objects out of collections during ticks
        if ready is not None:
            ready()
        end = None if duration is None else round(duration * self.box.rate)
        self.ticker = Ticker(self.ticker.period)
        try:
            while not self._stop.is_set() and self.box.cycle != end:
                self._server.serve(max(0.0, self.ticker.remaining()))
                while (remaining := self.ticker.remaining()) > 0.0:
                    self._server.serve(remaining)
                self.ticker.serve()
                self._tick()
        finally:
            self._closing.close()
            gc.unfreeze()

    def stop(self) -> None:
        """Make `run` return; may be called from a signal handler or another thread."""
        self._stop.set()

    def _tick(self) -> None:
        """Run one controller cycle and send its packages."""
        faults = self.faults
        faults.now = self.box.cycle / self.box.rate
        if fault := faults.take_due("late_ticks"):
            time.sleep(fault.number / 1000.0)
        self.box.step()
        if self._meter is not None:
            self._meter.update(self.box.arm.time, self.box.arm.energies().wall)
        if faults.faults:
            self.box.replace_values(faults.replaced_values(self.box.values))
        messages = [*self.box.messages]
        self.box.messages.clear()
        for message in messages:
            self._report(printable(message.text))
        if fault := faults.take_due("skipped_packets"):
            self._to_skip = int(fault.number)
        silent = self._to_skip > 0 or faults.active("stalled_stream") is not None
        self._to_skip = max(0, self._to_skip - 1)
        closed = faults.take_due("closed_socket")
        mute = faults.active("half_open")
        state_due = self.box.cycle % max(1, round(self.box.rate / STATE_RATE)) == 0
        state = packet = b""
        for connection in self._server.connections:
            session = connection.session
            if isinstance(session, RtdeSession):
                if closed:
                    connection.close()
                if not mute:
                    for message in messages:
                        connection.send(session.message(message))
                    package = session.data_package()
                    connection.send(b"" if silent else package)
            # Clients that do not read the state, such as ur_rtde, miss packets.
            elif (
                isinstance(session, StateSession)
                and state_due
                and not connection.congested
            ):
                state = state or state_message(self.box)
                connection.send(state)
            elif type(session) is ScriptSession and not connection.congested:
                packet = packet or realtime_packet(self.box)
                connection.send(packet)
        self._server.sweep()

    def __enter__(self) -> Self:
        """Serve in a background thread until the end of the block, for tests and nodes."""
        started = threading.Event()

        def serve() -> None:
            try:
                self.run(ready=started.set)
            except BaseException as error:
                self._failure = error

        self._thread = threading.Thread(
            target=serve, name="simulated controller", daemon=True
        )
        self._thread.start()
        started.wait()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Stop serving; raises what ended the background thread."""
        self.stop()
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure


@dataclass(frozen=True)
class Simulation:
    """Options of a simulated controller; `ArmOptions` describes the options of the arm.

    Attributes:
        robot: name of a robot model, or a robot YAML file.
        host: address to listen on.
        motion: name of a motion or a trajectory file.
        version: version of the controller software; None for the default.
        seed: selects the individual arm and its noise.
        ambient: see `ArmOptions`.
        controller: see `ArmOptions`.
        session: see `ArmOptions`.
        drive_set: see `ArmOptions`.
        torque_field: see `ArmOptions`.
        speed: factor on real time.
        faults: injected faults, see `parse_fault`.
        truth: file for the true energies.
        setup: mounting and payload as configured.
        carried: payload that is really mounted, None for the configured.
        allow_network: accept addresses that other machines can reach.
        wall: addresses of a meter at the mains.
    """

    robot: str
    host: str = "127.0.0.1"
    motion: str = "trajectory_a"
    version: tuple[int, ...] | None = None
    seed: int = 0
    ambient: float = 25.0
    speed: float = 1.0
    faults: Sequence[str] = ()
    truth: Path | None = None
    setup: Setup | None = None
    carried: Payload | None = None
    controller: ControllerKind = "feedforward"
    allow_network: bool = False
    session: int = 0
    drive_set: DriveSet = "typical"
    torque_field: TorqueField = "with_gravity"
    wall: Sequence[str] = ()

    def build(
        self, report: Callable[[str], None] = lambda text: None
    ) -> tuple[SimulatedArm, SimulatedController]:
        """Build arm and controller; closing the arm at the end writes the true energies.

        Args:
            report: called with lines for the user.

        Raises:
            InputError: an option cannot be simulated.
            ControllerError: the address cannot be used, or other machines can reach it.
        """
        robot = load_robot(self.robot)
        version = self.version or default_version(robot)
        self._check(robot, version)
        faults = Faults.parse(self.faults)
        arm = SimulatedArm(
            robot,
            motion=named_motion(self.motion, robot, self.setup),
            seed=self.seed,
            setup=self.setup,
            carried=self.carried,
            truth=self.truth,
            options=ArmOptions(
                self.session,
                self.ambient,
                self.controller,
                version,
                drive_set=self.drive_set,
                torque_field=self.torque_field,
            ),
        )
        arm.tick()  # compiles and loads what is used first, before the clock starts
        identity = SimulatedIdentity.for_robot(
            robot, version, self.seed, Path(self.motion).stem
        )
        server = SimulatedController(
            arm,
            self.host,
            identity,
            faults=faults,
            speed=self.speed,
            wall=self.wall,
            report=report,
        )
        return arm, server

    def _check(self, robot: RobotDescription, version: tuple[int, ...]) -> None:
        """Refuse options that cannot be simulated, see `build`."""
        for host in (self.host, *listening_hosts(self.wall)):
            if self.allow_network or is_loopback(host):
                continue
            problem = (
                "is not a loopback address: other machines could mistake it for a robot"
            )
            remedy = "use 127.0.0.1, 127.0.0.2, ... or add --allow-network"
            raise ControllerError(host, problem, remedy)
        if robot.dof != 6:
            problem = f"has {robot.dof} joints, but RTDE has six"
            raise InputError(robot.name, problem, "simulate an arm with six joints")
        if (robot.generation == "cb3") != (version[0] < 5):
            problem = f"{'.'.join(map(str, version))} does not run {robot.name}"
            remedy = "CB3 arms have 3.x, e-Series arms 5.x or 10.x"
            raise InputError("--controller-version", problem, remedy)
        if not self.speed >= 1e-3:
            raise InputError(
                "--speed", f"is {self.speed:g}", "give a positive factor of 0.001 or more"
            )
        if self.truth is not None and not self.truth.absolute().parent.is_dir():
            raise InputError(
                self.truth,
                "is in a folder that does not exist",
                "create the folder first",
            )
        if self.truth is not None and (not self.truth.name or self.truth.is_dir()):
            raise InputError(self.truth, "is a folder", "name a .json file")
