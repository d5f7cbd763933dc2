"""Live telemetry from a controller, through every loss of the connection."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from ur_energy_model.errors import ControllerError, InputError, WrongRobotError
from ur_energy_model.telemetry.clock import HostClock
from ur_energy_model.telemetry.event import ERROR, INFORMATION, WARNING, Event
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS
from ur_energy_model.telemetry.rtde import connection as client
from ur_energy_model.telemetry.rtde import dashboard_client as dashboard
from ur_energy_model.telemetry.rtde.connection import RtdeConnection, Subscription
from ur_energy_model.telemetry.rtde.dashboard_client import (
    ControllerIdentity,
    identify_controller,
)
from ur_energy_model.telemetry.rtde.packet_stream import PacketStream
from ur_energy_model.telemetry.rtde.protocol import SIMULATED_SERIAL_PREFIX, Recipe
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array

BATCH_SECONDS = 0.05
SILENCE = 4.0
FIRST_BACKOFF = 0.1
LONGEST_BACKOFF = 5.0
MAX_EVENTS = 200
RATE_SAMPLES = 10
RATE_SECONDS = 0.2
_LEVELS = {0: ERROR, 1: ERROR, 2: WARNING}


@dataclass
class LinkStatus:
    """What became of the connection so far.

    Attributes:
        connected: packets are flowing.
        reconnects: connections after the first one.
        duplicates: packets left out because the controller sent the same tick again.
        last_error: why the connection was lost or could not be made, the last time.
    """

    connected: bool = False
    reconnects: int = 0
    duplicates: int = 0
    last_error: str | None = None


class RtdeSource:
    """A controller as a TelemetrySource: lossless while connected, honest about gaps.

    After a loss it reconnects by itself, with back-off, and asks for the same fields at the same
    rate; a gap at index 0 of the next batch says what is missing and why.

    Args:
        host: address of the controller.
        robot: description name the recording is for; a controller whose dashboard names another
            model is refused.
        port, dashboard_port: of the controller's servers.
        fields: names wanted; those the controller lacks are left out (`missing_fields`).
        rate: wanted [Hz]; None for every cycle of the controller.
        batch_seconds: time span of the packets that `read` waits for; 0 returns each at once.
        silence: without a packet for this long [s] the connection counts as lost.
        patience: go on trying for this long [s] when entering.

    Raises:
        InputError: a field that is not in the table, or a rate that is not positive.
        ControllerError: on entering: no connection, or refused.
        WrongRobotError: on entering: the controller belongs to another robot model.
    """

    def __init__(
        self,
        host: str,
        *,
        robot: str | None = None,
        port: int = client.PORT,
        dashboard_port: int = dashboard.PORT,
        fields: Sequence[str] = ENERGY_FIELDS,
        rate: float | None = None,
        batch_seconds: float = BATCH_SECONDS,
        silence: float = SILENCE,
        patience: float = 0.0,
    ) -> None:
        for name in fields:
            if name not in FIELDS:
                raise InputError(host, "is not an RTDE field", "check the spelling", field=name)
        if rate is not None and not 0.0 < rate <= 1000.0:
            raise InputError(host, f"cannot send at {rate} Hz", "ask for 1 to 500", field="rate")
        self.status = LinkStatus()
        self.missing_fields: tuple[str, ...] = ()
        self._host, self._port, self._dashboard_port = host, port, dashboard_port
        self._robot, self._rate = robot, rate
        self._batch_seconds = batch_seconds
        # Equal types side by side are decoded at once.
        self._fields = tuple(sorted({"timestamp", *fields}, key=_by_type))
        self._silence, self._patience = silence, patience
        self._clock, self._stream = HostClock(), PacketStream(host)
        self._connection: RtdeConnection | None = None
        self._subscription: Subscription | None = None
        self._recipe = Recipe((), ())
        self._identity = ControllerIdentity()
        self._info = RecordingInfo(source=host, robot=robot)
        self._events: list[Event] = []
        self._closed = threading.Event()
        self._backoff = FIRST_BACKOFF
        self._next_attempt = 0.0
        self._last_data = 0.0
        self._first: tuple[NDArray[np.void], int] | None = None

    @property
    def info(self) -> RecordingInfo:
        """What is known of the robot."""
        return self._info

    @property
    def fields(self) -> tuple[str, ...]:
        """Names that the controller agreed to send."""
        return self._recipe.names

    @property
    def drift(self) -> float:
        """How much faster the host's clock runs than the controller's, relative."""
        return self._stream.clock.drift

    def __enter__(self) -> Self:
        deadline = time.monotonic() + self._patience
        while not self._try_to_enter(deadline):
            self._closed.wait(self._backoff)
            self._backoff = min(2 * self._backoff, LONGEST_BACKOFF)
        return self

    def _try_to_enter(self, deadline: float) -> bool:
        """Connect; an error only where there is no time for another try."""
        try:
            self._connect()
            self._look_at_first_packets()
        except WrongRobotError:
            self.close()
            raise
        except ControllerError:
            self._disconnect()
            if time.monotonic() + self._backoff > deadline or self._closed.is_set():
                self.close()
                raise
            return False
        return True

    def read(self, timeout: float) -> Telemetry | None:
        """Next batch; None where none came in time or the connection is lost.

        While the connection is being made again, this may take some seconds longer.

        Raises:
            EOFError: the source was closed.
        """
        if self._closed.is_set():
            raise EOFError
        if self._first is not None:
            (records, arrival), self._first = self._first, None
            return self._telemetry(records, arrival)
        if self._connection is None and not self._reconnect(timeout):
            return None
        connection = self._connection
        if connection is None:
            return None
        try:
            records_now = connection.receive(timeout)
            if connection.messages:
                self._keep_messages(connection)
            if records_now is not None:
                self._last_data = time.monotonic()
                return self._telemetry(records_now, self._clock.now())
            if time.monotonic() - self._last_data > self._quiet_time():
                raise ControllerError(
                    self._host, f"sent nothing for {self._quiet_time():.0f} s", "check the network"
                )
        except ControllerError as error:
            self._lose(error.problem)
        return None

    def take_events(self) -> list[Event]:
        """Messages of the controller, and what became of the connection, since the last call."""
        events, self._events = self._events, []
        return events

    def close(self) -> None:
        """Disconnect; a `read` that waits in another thread ends soon."""
        self._closed.set()
        self._disconnect()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _connect(self) -> None:
        """Connect, check who it is, negotiate, start.

        Raises:
            ControllerError: that did not work.
            WrongRobotError: it is another robot.
        """
        connection = RtdeConnection(self._host, self._port)
        try:
            identity = identify_controller(self._host, self._dashboard_port)
            identity.check(self._host, self._robot, self._identity.serial)
            first = self._subscription
            if first is None:
                now = connection.subscribe(self._fields, self._rate)
                self._accept(now, identity)
            else:
                now = connection.subscribe(first.recipe.names, self._rate)
                self._check_same(first, now)
                self._recipe = now.recipe
            batch = max(1, round(self._batch_seconds * now.rate))
            connection.start(batch)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._last_data = time.monotonic()
        self.status.connected = True

    def _accept(self, subscription: Subscription, identity: ControllerIdentity) -> None:
        """Remember what the first connection agreed on."""
        self._subscription, self._identity = subscription, identity
        self._recipe = subscription.recipe
        self.missing_fields = subscription.missing
        serial = identity.serial
        self._info = replace(
            self._info,
            serial=serial,
            controller_version=".".join(map(str, subscription.version)),
            rate=subscription.rate,
            simulated=serial is not None and serial.startswith(SIMULATED_SERIAL_PREFIX),
        )

    def _check_same(self, first: Subscription, now: Subscription) -> None:
        if now.missing:
            raise ControllerError(
                self._host, f"no longer offers {', '.join(now.missing)}", "start a new recording"
            )
        if now.rate != first.rate:
            raise ControllerError(
                self._host,
                f"now sends at {now.rate} Hz instead of {first.rate}",
                "start a new recording",
            )
        if now.version != first.version:
            versions = (".".join(map(str, each.version)) for each in (first, now))
            self._tell("connection", "software changed from {} to {}".format(*versions), WARNING)

    def _look_at_first_packets(self) -> None:
        """Read some packets to know rate and payload; they are the first that `read` returns.

        Raises:
            ControllerError: nothing comes.
        """
        found: list[NDArray[np.void]] = []
        deadline = time.monotonic() + self._quiet_time()
        wanted = min(max(round(RATE_SECONDS * (self._info.rate or 1.0)), 2), RATE_SAMPLES)
        while sum(map(len, found)) < wanted:
            connection, rest = self._connection, deadline - time.monotonic()
            if connection is None or rest <= 0:
                raise ControllerError(
                    self._host,
                    "accepts the recipe but sends no data",
                    "restart the controller's RTDE interface",
                )
            records = connection.receive(min(rest, 0.1))
            if records is not None:
                found.append(records)
        arrival = self._clock.now()
        records = self._recipe.join(found)
        self._stream.check_times(records["timestamp"])
        self._last_data = time.monotonic()
        self._first = records, arrival
        self._adopt_rate(np.diff(records["timestamp"].astype(float)))
        if "payload" in (records.dtype.names or ()):
            self._info = replace(self._info, payload_mass=float(records["payload"][0]))
        if "payload_cog" in (records.dtype.names or ()):
            x, y, z = records["payload_cog"][0].tolist()
            self._info = replace(self._info, payload_center_of_mass=(x, y, z))

    def _adopt_rate(self, steps: Array) -> None:
        """Believe the clock where it is not what was negotiated."""
        rate = self._info.rate
        steps = steps[steps > 0]
        if rate is None or steps.size == 0:
            return
        step = float(np.median(steps))
        if abs(step * rate - 1.0) > 0.2 and np.ptp(steps) < 0.2 * step:
            self._info = replace(self._info, rate=round(1.0 / step, 3))
            self._tell("connection", f"sends at {1.0 / step:.1f} Hz instead of {rate}", WARNING)

    def _reconnect(self, timeout: float) -> bool:
        """Try again when it is time to; waits at most until then."""
        wait = self._next_attempt - time.monotonic()
        if wait > 0 and self._closed.wait(min(wait, max(timeout, 0.0))):
            return False
        if time.monotonic() < self._next_attempt:
            return False
        try:
            self._connect()
        except (ControllerError, WrongRobotError) as error:
            if error.problem != self.status.last_error:
                self._tell("connection", error.problem, ERROR)
            self.status.last_error = error.problem
            self._next_attempt = time.monotonic() + self._backoff
            self._backoff = min(2 * self._backoff, LONGEST_BACKOFF)
            return False
        self.status.reconnects += 1
        self._tell("connection", "connected again")
        return True

    def _lose(self, problem: str) -> None:
        """The connection is gone: remember why, try again soon."""
        self._stream.loss = self.status.last_error = problem
        self._tell("connection", problem, WARNING)
        self._disconnect()
        self._next_attempt = time.monotonic() + self._backoff

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        self.status.connected = False
        if connection is not None:
            connection.close()

    def _quiet_time(self) -> float:
        return max(self._silence, 5.0 / (self._info.rate or 1.0))

    def _telemetry(self, records: NDArray[np.void], arrival: int) -> Telemetry | None:
        batch = self._stream.telemetry(self._recipe, records, arrival, self._info)
        self.status.duplicates = self._stream.duplicates
        if batch is not None:
            self._backoff = FIRST_BACKOFF
            for gap in batch.gaps:
                self._tell("gap", f"{gap.missing} samples missing ({gap.cause})", WARNING)
        return batch

    def _keep_messages(self, connection: RtdeConnection) -> None:
        for message in connection.messages:
            text = f"{message.source}: {message.text}" if message.source else message.text
            self._tell("message", text, _LEVELS.get(message.level, INFORMATION))
        connection.messages.clear()

    def _tell(self, kind: str, text: str, level: int = INFORMATION) -> None:
        """Keep an event; a flood of them must not fill the memory."""
        if len(self._events) < MAX_EVENTS:
            self._events.append(Event(self._clock.now(), kind, text, level))


def _by_type(name: str) -> tuple[bool, str, int]:
    """Sort key that puts fields of one number type side by side, floating point first."""
    kind = FIELDS[name].kind
    whole = not (kind == "DOUBLE" or kind in ("VECTOR3D", "VECTOR6D"))
    return whole, kind.removeprefix("VECTOR6") if whole else "", list(FIELDS).index(name)
