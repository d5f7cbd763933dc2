# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""RtdeSource: live telemetry from a controller, reconnected after every loss."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.arm_names import product_of_controller
from ur_energy_model.errors import ControllerError, InputError, WrongRobotError, closest
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS
from ur_energy_model.telemetry.gaps import RESTARTED
from ur_energy_model.telemetry.rtde import dashboard_client
from ur_energy_model.telemetry.rtde.connection import PORT, RtdeConnection
from ur_energy_model.telemetry.rtde.dashboard_client import (
    SIMULATED_SERIAL_PREFIX,
    ControllerIdentity,
    LoadedProgram,
    identify_controller,
)
from ur_energy_model.telemetry.rtde.link_report import LinkReport
from ur_energy_model.telemetry.rtde.packet_order import is_possible
from ur_energy_model.telemetry.rtde.packet_stream import PacketStream
from ur_energy_model.telemetry.rtde.protocol import Recipe, Records, in_type_order
from ur_energy_model.telemetry.samples import (
    ERROR,
    INFORMATION,
    WARNING,
    Event,
    RecordingInfo,
    Telemetry,
)
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.typing import Array, ClosedOnExit, Self

BATCH_SECONDS = 0.05  # time span of the packets of a batch [s]
SILENCE = 4.0  # time without packets after which a connection counts as lost [s]
FIRST_BACKOFF = 0.1
LONGEST_BACKOFF = 5.0
"""Pause before the next attempt to connect: the first one, and the longest one [s]."""
SILENT_PERIODS = 5.0  # the same in sample periods, which counts at low rates
RATE_SAMPLES = 10
RATE_SECONDS = 0.2
"""Most packets, and time of packets, from which the rate is learned when the source is entered."""
RATE_TOLERANCE = 0.2
"""Relative deviation from the negotiated rate from which the timestamps count instead."""
MOVED = 0.1
"""Difference of a joint angle that a restart of the controller does not explain [rad]."""
_LEVELS = {0: ERROR, 1: ERROR, 2: WARNING}
"""Level of an event by the level of the controller's text message; others are information."""


@dataclass(frozen=True)
class LinkOptions:
    """How to reach a controller; the defaults are right for a real controller.

    Attributes:
        port: TCP port of RTDE.
        dashboard_port: TCP port of the dashboard server, which states model and serial
            number.
        silence: time without packets after which a connection counts as lost [s].
    """

    port: int = PORT
    dashboard_port: int = dashboard_client.PORT
    silence: float = SILENCE


class RtdeSource(ClosedOnExit):
    """A controller as a TelemetrySource: every packet, and a gap for every loss.

    After a loss of the connection, the source reconnects, with increasing pauses, and
    requests the same fields at the same rate. A gap at index 0 of the next batch states
    how long samples are missing, and why.

    Args:
        host: address of the controller.
        robot: description name of the expected model; a controller whose dashboard server
            names another model is refused.
        fields: RTDE names to request; fields that the controller lacks are left out
            (`missing_fields`).
        rate: requested rate [Hz]; None for every cycle of the controller.
        batch_seconds: time span of the packets that `read` waits for; 0 returns each
            packet at once.
        patience: time for which entering the source tries to connect [s].
        link: ports and timeouts; None for the values of a real controller.

    Raises:
        InputError: a field that is not in the table, or a rate out of range.
        ControllerError: raised on entering: there is no connection, or the controller
            refuses it.
        WrongRobotError: raised on entering: the controller belongs to another robot
            model.
    """

    def __init__(
        self,
        host: str,
        *,
        robot: str | None = None,
        fields: Sequence[str] = ENERGY_FIELDS,
        rate: float | None = None,
        batch_seconds: float = BATCH_SECONDS,
        patience: float = 0.0,
        link: LinkOptions | None = None,
    ) -> None:
        for name in fields:
            if name not in FIELDS:
                meant = closest(name, FIELDS) or "actual_q"
                remedy = f"check the spelling, such as {meant}"
                raise InputError(host, "is not an RTDE field", remedy, field=name)
        if rate is not None and not 0.0 < rate <= 1000.0:
            raise InputError(
                host, f"cannot send at {rate} Hz", "request 1 to 500", field="rate"
            )
        self._host = host
        self._robot = robot
        self._rate = rate
        self._fields = in_type_order({"timestamp", *fields})
        self._batch_seconds = batch_seconds
        self._patience = patience
        self._link = LinkOptions() if link is None else link
        self._info = RecordingInfo(source=host, robot=robot)
        self._stream = PacketStream(host)
        self._program = LoadedProgram(host, self._link.dashboard_port)
        # Values of the last sample: runtime state, and joint angles [n], rad.
        self._runtime_state: float | None = None
        self._last_q: Array | None = None
        # What the first connection agreed on with the controller, which every later
        # connection must continue; the identity of the controller; and the packets read
        # on entering, with the host time at which they were read [ns].
        self._agreed: RtdeConnection | None = None
        self._controller = ControllerIdentity()
        self._first: tuple[Records, int] | None = None
        self._batches = deque[Telemetry]()  # batches that were read and not yet returned
        # The present connection and when its last packets came; without a connection,
        # when to try again. Times are by the monotonic clock [s].
        self._connection: RtdeConnection | None = None
        self._recipe = Recipe((), ())
        self._last_data = 0.0
        self._next_attempt = 0.0
        self._backoff = FIRST_BACKOFF
        self._closed = threading.Event()
        # Number of packets that could not be read, of all connections and of this one.
        self._unreadable = 0
        self._skipped_by_connection = 0
        self._report = LinkReport()

    @property
    def info(self) -> RecordingInfo:
        """Robot and recording; complete once the source is entered."""
        return self._info

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields that the controller agreed to send."""
        return self._recipe.names

    @property
    def missing_fields(self) -> tuple[str, ...]:
        """Fields asked for that the controller does not have."""
        return () if self._agreed is None else self._agreed.missing

    @property
    def status(self) -> LinkStatus:
        """State of the connection, now."""
        period = 1.0 / (self._info.rate or 1000.0)
        is_away = self._connection is None and not self._closed.is_set()
        return replace(
            self._report.status(period, is_away=is_away),
            connected=self._connection is not None,
            duplicates=self._stream.duplicates,
            skipped=self._unreadable + self._stream.skipped,
        )

    def take_events(self) -> list[Event]:
        """The controller's messages and changes of the connection since the last call."""
        return self._report.take_events()

    def __enter__(self) -> Self:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                self._connect()
                self._read_first_packets()
                return self
            except WrongRobotError:
                self.close()
                raise
            except ControllerError as error:
                self._agreed = None
                self._controller = ControllerIdentity()
                self._report.note_failure(error.problem, ERROR)
                self._disconnect()
                if time.monotonic() + self._backoff > deadline or self._closed.is_set():
                    self.close()
                    raise
            self._closed.wait(self._backoff)
            self._backoff = min(2 * self._backoff, LONGEST_BACKOFF)

    def close(self) -> None:
        """Disconnect; a `read` that waits in another thread ends soon."""
        self._closed.set()
        self._disconnect()

    def read(self, timeout: float) -> Telemetry | None:
        """Next batch; None if none came in time or the connection is lost.

        Reconnecting may take some seconds longer than the timeout.

        Raises:
            EOFError: the source was closed.
        """
        if self._closed.is_set():
            raise EOFError
        if self._batches:
            return self._next_batch()
        if self._first is not None:
            records, arrival = self._first
            self._first = None
            self._take(records, arrival)
            return self._next_batch()
        if self._connection is None:
            self._reconnect(timeout)
        connection = self._connection
        if connection is None:
            return None
        try:
            return self._receive(connection, timeout)
        except (ControllerError, WrongRobotError) as error:
            self._lose(error.problem)
        return None

    def _receive(self, connection: RtdeConnection, timeout: float) -> Telemetry | None:
        """The next batch from a connection, None if none came in time [s].

        Raises:
            ControllerError: the connection is lost, or nothing came for too long.
            WrongRobotError: the packets come from another controller.
        """
        began = time.monotonic()
        received = connection.receive(timeout)
        for message in connection.messages:
            text = message.text
            if message.source:
                text = f"{message.source}: {text}"
            level = _LEVELS.get(message.level, INFORMATION)
            self._report.add_event("message", text, level)
        connection.messages.clear()
        self._note_skipped(connection)
        if received is not None:
            self._last_data = time.monotonic()
            self._take(received, HOST_CLOCK.now())
            if not self._batches:  # the same tick again, or nothing that can be used
                self._report.note_silence(self._last_data)
            return self._next_batch()
        # If the call took longer than the timeout, the process did not run in between.
        self._report.note_silence(min(began + max(timeout, 0.0), time.monotonic()))
        quiet = self._quiet_time()
        if time.monotonic() - self._last_data > quiet:
            problem = f"sent nothing for {quiet:.0f} s"
            raise ControllerError(self._host, problem, "check the network")
        return None

    # Connections: all send the same fields at the same rate, and belong to the same arm.

    def _connect(self) -> None:
        """Connect, check the robot's identity, agree on fields and rate, start the data.

        The first connection decides what every later connection has to continue: fields,
        their types, rate, software and arm.

        Raises:
            ControllerError: no connection, refused, or it no longer sends the same.
            WrongRobotError: the controller belongs to another arm or robot model.
        """
        first = self._agreed
        fields = self._fields if first is None else first.recipe.names
        before = self._controller
        change = None
        connection = RtdeConnection(self._host, self._link.port)
        try:
            identity = identify_controller(self._host, self._link.dashboard_port)
            same_serial = identity.serial is not None and identity.serial == before.serial
            connection.subscribe(fields, self._rate)
            identity.check(self._host, self._robot, before, connection.version[0])
            if first is not None:
                change = self._change_since(first, connection, same_serial=same_serial)
            connection.start(max(1, round(self._batch_seconds * connection.rate)))
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._recipe = connection.recipe
        self._skipped_by_connection = 0
        self._stream.same_serial = same_serial
        self._last_data = time.monotonic()
        self._report.note_connection(identity.text, again=first is not None)
        if change is not None:
            self._report.add_event("connection", change, WARNING)
        if first is None:
            self._agree_on(connection, identity)
        else:
            self._program.poll(changed=True)

    def _change_since(
        self, first: RtdeConnection, connection: RtdeConnection, *, same_serial: bool
    ) -> str | None:
        """Compare a connection with the first one.

        Args:
            first: what the recording began with.
            connection: the new one, subscribed.
            same_serial: whether a serial number shows that the controller is the same.

        Returns:
            A change that is reported, None if there is none.

        Raises:
            ControllerError: the controller no longer sends the same.
            WrongRobotError: the software changed: it may be another controller.
        """
        problem = None
        if connection.missing:
            problem = f"no longer offers {', '.join(connection.missing)}"
        elif connection.rate != first.rate:
            problem = f"now sends at {connection.rate} Hz instead of {first.rate}"
        elif connection.recipe.kinds != first.recipe.kinds:
            problem = "now sends fields of other types"
        if problem is not None:
            raise ControllerError(self._host, problem, "start a new recording")
        if connection.version == first.version:
            return None
        versions = f"from {_version_text(first)} to {_version_text(connection)}"
        change = f"software changed {versions}"
        if not same_serial:
            problem = f"its {change}, and no serial number shows that it is the same"
            raise WrongRobotError(self._host, problem, "start a new recording")
        return change

    def _agree_on(self, connection: RtdeConnection, identity: ControllerIdentity) -> None:
        """Make a connection the first one, which every later one has to continue."""
        self._agreed = connection
        self._controller = identity
        self._program.name = identity.program
        robot = self._robot or None
        if robot is None and identity.model is not None:
            robot = product_of_controller(identity.model, connection.version[0])
        serial = identity.serial
        self._info = RecordingInfo(
            source=self._host,
            robot=robot,
            serial=serial,
            program=identity.program,
            controller_version=_version_text(connection),
            rate=connection.rate,
            simulated=serial is not None and serial.startswith(SIMULATED_SERIAL_PREFIX),
        )

    def _read_first_packets(self) -> None:
        """Read packets for rate and payload; they are the first that `read` returns.

        Controllers under load, and simulated ones, may send at another rate than agreed:
        a regular clock that contradicts it counts.

        Raises:
            ControllerError: no packet comes in time, or none with a possible time.
        """
        records = self._first_records()
        arrival = HOST_CLOCK.now()
        times = records["timestamp"].astype(float)
        possible = is_possible(times)
        if not possible.any():
            problem = "sends packets with impossible times only"
            raise ControllerError(self._host, problem, "restart the controller")
        self._last_data = time.monotonic()
        self._first = records, arrival
        self._learn_rate(times[possible])
        records = records[possible]
        names = records.dtype.names or ()
        if "payload" in names:
            self._info = replace(self._info, payload_mass=float(records["payload"][0]))
        if "payload_cog" in names:
            x, y, z = records["payload_cog"][0].tolist()
            self._info = replace(self._info, payload_center_of_mass=(x, y, z))

    def _first_records(self) -> Records:
        """The first packets [n >= 1], as many as show the rate; fewer if the connection is lost.

        Raises:
            ControllerError: no packet comes in time.
        """
        found: list[Records] = []
        count = 0
        needed = round(RATE_SECONDS * (self._info.rate or 1.0))
        needed = min(max(needed, 2), RATE_SAMPLES)
        deadline = time.monotonic() + self._quiet_time()
        connection = self._connection
        while connection is not None and count < needed and time.monotonic() < deadline:
            try:
                received = connection.receive(0.1)
            except ControllerError as error:
                if not found:
                    raise
                self._lose(error.problem)
                break
            if received is not None:
                found.append(received)
                count += len(received)
            connection = self._connection
        if not found:
            problem = "accepts the recipe but sends no data"
            remedy = "restart the controller's RTDE interface"
            raise ControllerError(self._host, problem, remedy)
        return self._recipe.join(found)

    def _learn_rate(self, times: Array) -> None:
        """Correct the rate where a regular clock of the packets [n], s, contradicts it."""
        rate = self._info.rate or 1.0
        steps = np.diff(times)
        steps = steps[steps > 0]
        if not steps.size:
            return
        step = float(np.median(steps))
        is_other_rate = abs(step * rate - 1.0) > RATE_TOLERANCE
        is_regular = np.ptp(steps) < RATE_TOLERANCE * step
        if is_other_rate and is_regular:
            text = f"sends at {1.0 / step:.1f} Hz instead of {rate}"
            self._report.add_event("connection", text, WARNING)
            self._info = replace(self._info, rate=round(1.0 / step, 3))

    def _reconnect(self, timeout: float) -> None:
        """Try again if the pause is over.

        Args:
            timeout: longest time to wait for the end of the pause [s].
        """
        wait = self._next_attempt - time.monotonic()
        if wait > 0:
            was_closed = self._closed.wait(min(wait, max(timeout, 0.0)))
            if was_closed or wait > timeout:
                return
        try:
            self._connect()
        except (ControllerError, WrongRobotError) as error:
            self._report.note_failure(error.problem, ERROR)
            self._schedule()

    def _lose(self, problem: str) -> None:
        """Record why the connection was lost, and schedule the next attempt."""
        self._stream.note_loss(problem)
        self._report.note_failure(problem, WARNING)
        self._disconnect()
        self._schedule()

    def _schedule(self) -> None:
        """Schedule the next attempt, each after a longer pause until samples come again."""
        self._next_attempt = time.monotonic() + self._backoff
        self._backoff = min(2 * self._backoff, LONGEST_BACKOFF)

    def _disconnect(self) -> None:
        """Close the present connection, if there is one."""
        connection = self._connection
        self._connection = None
        if connection is not None:
            connection.close()

    def _quiet_time(self) -> float:
        """Time without packets after which the connection counts as lost [s]."""
        return max(self._link.silence, SILENT_PERIODS / (self._info.rate or 1.0))

    # Samples and events.

    def _take(self, records: Records, arrival: int) -> None:
        """Keep the batches of records [n >= 1] that were read at a host time [ns]."""
        skipped = self._stream.skipped
        self._batches += self._stream.telemetry(
            self._recipe, records, arrival, self._info
        )
        if self._stream.skipped > skipped:
            self._report.note_skipped("sent packets whose times do not follow its clock")

    def _next_batch(self) -> Telemetry | None:
        """The next batch, if there is one."""
        if not self._batches:
            return None
        batch = self._batches.popleft()
        self._follow_program(batch)
        batch = replace(batch, info=self._info)
        self._backoff = FIRST_BACKOFF
        q = batch.columns.get("actual_q")
        self._report.note_samples(batch.gaps, self._doubt_of_identity(batch, q))
        self._last_q = None if q is None else q[-1]
        return batch

    def _doubt_of_identity(self, batch: Telemetry, q: Array | None) -> str | None:
        """Why samples may come from another arm than the samples before.

        A restarted controller without serial number may belong to another arm.

        Args:
            batch: the samples.
            q: their joint angles [n, joints], rad; None if they are not recorded.

        Returns:
            Doubt in words; None if it is the same arm.
        """
        in_front = [gap for gap in batch.gaps if gap.index == 0]
        is_restarted = any(gap.cause.startswith(RESTARTED) for gap in in_front)
        if not is_restarted or self._stream.same_serial:
            return None
        hint = ""
        before = self._last_q
        if q is not None and before is not None and (abs(q[0] - before) > MOVED).any():
            hint = ", and a joint stands elsewhere than before"
        return f"not known: the controller restarted and has no serial number{hint}"

    def _note_skipped(self, connection: RtdeConnection) -> None:
        """Count the packets that a connection has left out since the last call."""
        new = connection.skipped - self._skipped_by_connection
        if new == 0:
            return
        self._skipped_by_connection = connection.skipped
        self._unreadable += new
        self._stream.unreadable += new
        self._report.note_skipped(connection.skip_reason or "")

    def _follow_program(self, batch: Telemetry) -> None:
        """Keep the name of the program up to date; it can change where the runtime state does."""
        changed = False
        if "runtime_state" in batch:
            states = batch["runtime_state"].tolist()
            before = self._runtime_state
            self._runtime_state = states[-1]
            changed = before is not None and states.count(before) < len(states)
        name = self._program.poll(changed=changed)
        if name != self._info.program:
            self._info = replace(self._info, program=name)
            text = "no program is loaded" if name is None else name
            self._report.add_event("program", text)


def _version_text(connection: RtdeConnection) -> str:
    """Software version of the controller, such as "5.11.1.108318"."""
    return ".".join(str(number) for number in connection.version)
