"""RtdeSource: live telemetry from a controller, reconnected after every loss."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

import numpy as np

from ur_energy_model.errors import ControllerError, InputError, WrongRobotError
from ur_energy_model.telemetry.clock import HOST_CLOCK, HostClock
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS
from ur_energy_model.telemetry.rtde import dashboard_client
from ur_energy_model.telemetry.rtde.connection import PORT, RtdeConnection
from ur_energy_model.telemetry.rtde.dashboard_client import (
    SIMULATED_SERIAL_PREFIX,
    ControllerIdentity,
    LoadedProgram,
    description_name,
    identify_controller,
)
from ur_energy_model.telemetry.rtde.packet_stream import PacketStream
from ur_energy_model.telemetry.rtde.protocol import Recipe, Records, Subscription, in_type_order
from ur_energy_model.telemetry.samples import (
    ERROR,
    INFORMATION,
    WARNING,
    Event,
    RecordingInfo,
    Telemetry,
)
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.typing import Array, Self

# LinkRecord: what happened to a live source's connection, and what was lost with it.

OUTAGE_SECONDS = 0.5
"""Time without samples from which on an outage is reported [s]."""
OUTAGE_PERIODS = 5.0
"""Least number of sample periods of a reported outage."""
MAX_EVENTS = 200
NOT_CONNECTED = "no connection to the controller yet"
STALLED = "the controller is connected, but sends no new samples"
WAITING = "connected, but sends no samples yet"


class LinkRecord:
    """Events, problems and losses of one source, over all its connections.

    Args:
        clock: of the events.

    Attributes:
        reconnects: connections after the first one.
        last_error: why the connection was last lost or refused.
        identity: what distinguishes the controller from another one.
    """

    def __init__(self, clock: HostClock) -> None:
        self.reconnects = 0
        self.last_error: str | None = None
        self.identity: str | None = None
        self._clock = clock
        self._events: list[Event] = []
        self._problem: str | None = NOT_CONNECTED
        self._reported: set[str] = set()
        self._returning = False
        self._lost, self._lost_seconds = 0, 0.0
        self._last_samples: float | None = None
        self._closed: float | None = None

    def report(self, kind: str, text: str, level: int = INFORMATION) -> None:
        """Keep an event, unless too many are waiting already."""
        if len(self._events) < MAX_EVENTS:
            self._events.append(Event(self._clock.now(), kind, text, level))

    def take_events(self) -> list[Event]:
        """Events since the last call."""
        events, self._events = self._events, []
        return events

    def fail(self, problem: str, level: int) -> None:
        """The connection was lost or refused; each reason is one event until samples arrive."""
        if problem not in self._reported:
            self._reported.add(problem)
            self.report("connection", problem, level)
        self._problem = self.last_error = problem

    def connected(self, *, again: bool) -> None:
        """A connection was made, for the first time or again; no samples have come yet."""
        self.reconnects += again
        self._returning = again
        self._problem = WAITING

    def samples(self, batch: Telemetry) -> None:
        """Samples arrived: the present outage is over, and the gaps tell what it cost."""
        for gap in batch.gaps:
            self._lost += gap.missing
            self._lost_seconds += gap.seconds
            self.report("gap", f"{gap.missing} samples missing ({gap.cause})", WARNING)
        if self._returning:
            self.report("connection", "connected again")
            self._returning = False
        self._last_samples = time.monotonic()
        self._problem = None
        self._reported.clear()

    def unsure(self, *, moved: bool) -> None:
        """The controller restarted, and it is unknown whether it is the same one.

        Args:
            moved: whether a joint stands elsewhere than before.
        """
        hint = ", and a joint stands elsewhere than before" if moved else ""
        self.identity = f"not known: the controller restarted and has no serial number{hint}"
        text = f"whether this is still the same arm is {self.identity}"
        self.report("connection", text, WARNING)

    def close(self) -> None:
        """The source was closed: an outage lasts no longer."""
        if self._closed is None:
            self._closed = time.monotonic()

    def status(self, *, connected: bool, duplicates: int, rate: float | None) -> LinkStatus:
        """State of the connection, now.

        Args:
            connected: as in LinkStatus.
            duplicates: as in LinkStatus.
            rate: of the samples [Hz], to estimate what an outage costs; None if unknown.
        """
        last, problem = self._last_samples, self._problem
        now = time.monotonic() if self._closed is None else self._closed
        outage = 0.0 if last is None else now - last
        if outage < max(OUTAGE_SECONDS, OUTAGE_PERIODS / (rate or 1000.0)):
            outage = 0.0
        elif problem is None:
            problem = STALLED
        return LinkStatus(
            connected=connected,
            reconnects=self.reconnects,
            duplicates=duplicates,
            last_error=self.last_error,
            problem=problem,
            lost=self._lost + round(outage * (rate or 0.0)),
            lost_seconds=self._lost_seconds + outage,
            outage=outage,
            identity=self.identity,
        )


# Negotiation: connects to a controller and agrees on the data; checks what its packets show.

SILENCE = 4.0
RATE_TOLERANCE = 0.2
"""Relative deviation from the negotiated rate from which the timestamps count instead."""


@dataclass(frozen=True)
class LinkOptions:
    """How to reach a controller, and when its connection counts as lost.

    Attributes:
        port: of the RTDE server.
        dashboard_port: of the dashboard server.
        silence: time without a packet after which the connection is lost [s].
    """

    port: int = PORT
    dashboard_port: int = dashboard_client.PORT
    silence: float = SILENCE


class Negotiation:
    """Makes connections to one controller that all send the same fields at the same rate.

    Args:
        host: address of the controller.
        robot: description name of the expected model, None for any.
        fields: RTDE names to ask for.
        rate: to ask for [Hz]; None for every cycle of the controller.
        link: ports of the controller.

    Attributes:
        recipe: of the data packages of the last connection.
        missing_fields: asked for, and not offered by the controller.
        software_change: how the controller's software differs from that on the first connection.
        same_serial: whether the last connection is to the serial number of the first one.
        identity: what distinguishes the controller of the last connection.
    """

    def __init__(
        self,
        host: str,
        robot: str | None,
        fields: Sequence[str],
        rate: float | None,
        link: LinkOptions,
    ) -> None:
        self.recipe = Recipe((), ())
        self.missing_fields: tuple[str, ...] = ()
        self.software_change: str | None = None
        self.same_serial = False
        self.identity = "not known: not connected yet"
        self._host, self._robot, self._rate, self._link = host, robot, rate, link
        self._fields = in_type_order({"timestamp", *fields})
        self._first: Subscription | None = None
        self._identity = ControllerIdentity()

    def connect(self, batch_seconds: float) -> RtdeConnection:
        """Connect, check the robot's identity, agree on fields and rate, start the data.

        Args:
            batch_seconds: time span of the packets that one read waits for.

        Raises:
            ControllerError: one of these failed.
            WrongRobotError: it is another robot than expected, or than on the first connection.
        """
        connection = RtdeConnection(self._host, self._link.port)
        try:
            identity = identify_controller(self._host, self._link.dashboard_port)
            identity.check(self._host, self._robot, self._identity)
            self.identity = identity.text
            self.same_serial = None is not identity.serial == self._identity.serial
            first = self._first
            if first is None:
                subscription = connection.subscribe(self._fields, self._rate)
                self._first, self._identity = subscription, identity
                self.missing_fields = subscription.missing
            else:
                subscription = connection.subscribe(first.recipe.names, self._rate)
                self._check_unchanged(first, subscription)
            self.recipe = subscription.recipe
            connection.start(max(1, round(batch_seconds * subscription.rate)))
        except BaseException:
            connection.close()
            raise
        return connection

    def info(self) -> RecordingInfo:
        """Robot (the one expected, else the controller's own) and rate of the first connection."""
        info = RecordingInfo(source=self._host, robot=self._robot)
        first, serial, model = self._first, self._identity.serial, self._identity.model
        if first is None:
            return info
        named = None if model is None else description_name(model, first.version)
        return RecordingInfo(
            source=self._host,
            robot=self._robot or named,
            serial=serial,
            program=self._identity.program,
            controller_version=first.version_text,
            rate=first.rate,
            simulated=serial is not None and serial.startswith(SIMULATED_SERIAL_PREFIX),
        )

    def _check_unchanged(self, first: Subscription, now: Subscription) -> None:
        """Refuse to continue a recording with other fields, another rate or another controller.

        Raises:
            ControllerError: fields or rate differ.
            WrongRobotError: the software differs, and no serial number shows that the arm does not.
        """
        problem = None
        if now.missing:
            problem = f"no longer offers {', '.join(now.missing)}"
        elif now.rate != first.rate:
            problem = f"now sends at {now.rate} Hz instead of {first.rate}"
        elif now.recipe.kinds != first.recipe.kinds:
            problem = "now sends fields of other types"
        if problem is not None:
            raise ControllerError(self._host, problem, "start a new recording")
        if now.version == first.version:
            return
        change = f"from {first.version_text} to {now.version_text}"
        if not self.same_serial:
            raise WrongRobotError(
                self._host,
                f"its software changed {change}, and no serial number shows that it is the same",
                "start a new recording",
            )
        self.software_change = f"software changed {change}"


def with_payload(info: RecordingInfo, records: Records) -> RecordingInfo:
    """Recording info with the payload that the first of the records [n >= 1] carries."""
    names = records.dtype.names or ()
    if "payload" in names:
        info = replace(info, payload_mass=float(records["payload"][0]))
    if "payload_cog" in names:
        x, y, z = records["payload_cog"][0].tolist()
        info = replace(info, payload_center_of_mass=(x, y, z))
    return info


def observed_rate(times: Array, negotiated: float | None) -> float | None:
    """Rate [Hz] of timestamps [n], s, where it clearly differs from the negotiated one.

    Returns:
        None where they agree, where the steps are irregular, or where either is unknown.
    """
    steps = np.diff(times)
    steps = steps[steps > 0]
    if negotiated is None or steps.size == 0:
        return None
    step = float(np.median(steps))
    agrees = abs(step * negotiated - 1.0) <= RATE_TOLERANCE
    irregular = np.ptp(steps) >= RATE_TOLERANCE * step
    return None if agrees or irregular else 1.0 / step


BATCH_SECONDS = 0.05
FIRST_BACKOFF = 0.1
LONGEST_BACKOFF = 5.0
RATE_SAMPLES = 10
RATE_SECONDS = 0.2
_LEVELS = {0: ERROR, 1: ERROR, 2: WARNING}


class RtdeSource:
    """A controller as a TelemetrySource: every packet while connected, every loss a gap.

    After a loss it reconnects by itself, with increasing pauses, and asks for the same fields at
    the same rate; a gap at index 0 of the next batch has what is missing and why.

    Args:
        host: address of the controller.
        robot: description name of the expected model; a controller whose dashboard server names
            another model is refused.
        fields: RTDE names to ask for; those the controller lacks are left out (`missing_fields`).
        rate: to ask for [Hz]; None for every cycle of the controller.
        batch_seconds: time span of the packets that `read` waits for; 0 returns each at once.
        patience: how long entering keeps trying to connect [s].
        link: ports and timeouts; None for a real controller's.

    Raises:
        InputError: a field that is not in the table, or a rate out of range.
        ControllerError: on entering: no connection, or refused.
        WrongRobotError: on entering: the controller belongs to another robot model.
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
                near = get_close_matches(name.lower(), FIELDS, 1) or ["actual_q"]
                remedy = f"check the spelling, such as {near[0]}"
                raise InputError(host, "is not an RTDE field", remedy, field=name)
        if rate is not None and not 0.0 < rate <= 1000.0:
            raise InputError(host, f"cannot send at {rate} Hz", "ask for 1 to 500", field="rate")
        link = LinkOptions() if link is None else link
        self._host, self._silence = host, link.silence
        self._batch_seconds, self._patience = batch_seconds, patience
        self._negotiation = Negotiation(host, robot, fields, rate, link)
        self._clock, self._stream = HOST_CLOCK, PacketStream(host)
        self._record = LinkRecord(self._clock)
        self._connection: RtdeConnection | None = None
        self._info = self._negotiation.info()
        self._closed = threading.Event()
        self._backoff = FIRST_BACKOFF
        self._next_attempt = 0.0
        self._last_data = 0.0
        self._first: tuple[Records, int] | None = None
        self._program = LoadedProgram(host, link.dashboard_port)
        self._runtime_state: float | None = None

    @property
    def info(self) -> RecordingInfo:
        """Robot and recording; complete once the source is entered."""
        return self._info

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields that the controller agreed to send."""
        return self._negotiation.recipe.names

    @property
    def status(self) -> LinkStatus:
        """State of the connection."""
        return self._record.status(
            connected=self._connection is not None,
            duplicates=self._stream.duplicates,
            rate=self._info.rate,
        )

    @property
    def missing_fields(self) -> tuple[str, ...]:
        """Fields asked for that the controller does not have."""
        return self._negotiation.missing_fields

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

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, timeout: float) -> Telemetry | None:
        """Next batch; None if none came in time or the connection is lost.

        Reconnecting may take some seconds longer than the timeout.

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
            received = connection.receive(timeout)
            if connection.messages:
                self._keep_messages(connection)
            if received is not None:
                self._last_data = time.monotonic()
                return self._telemetry(received, self._clock.now())
            if time.monotonic() - self._last_data > self._quiet_time():
                raise ControllerError(
                    self._host, f"sent nothing for {self._quiet_time():.0f} s", "check the network"
                )
        except (ControllerError, WrongRobotError) as error:
            self._lose(error.problem)
        return None

    def take_events(self) -> list[Event]:
        """The controller's messages and changes of the connection since the last call."""
        return self._record.take_events()

    def close(self) -> None:
        """Disconnect; a `read` that waits in another thread ends soon."""
        self._closed.set()
        self._record.close()
        self._disconnect()

    def _try_to_enter(self, deadline: float) -> bool:
        """Connect; raises only if there is no time for another attempt."""
        try:
            self._connect(again=False)
            self._info = self._negotiation.info()
            self._program.name = self._info.program
            self._read_first_packets()
        except WrongRobotError:
            self.close()
            raise
        except ControllerError as error:
            self._record.fail(error.problem, ERROR)
            self._disconnect()
            if time.monotonic() + self._backoff > deadline or self._closed.is_set():
                self.close()
                raise
            return False
        return True

    def _connect(self, *, again: bool) -> None:
        """Connect and start the data; again means not for the first time.

        Raises:
            ControllerError: that failed.
            WrongRobotError: it is another robot.
        """
        negotiation = self._negotiation
        self._connection = negotiation.connect(self._batch_seconds)
        self._record.connected(again=again)
        if again:
            self._program.poll(changed=True)
        self._record.identity = negotiation.identity
        self._last_data = time.monotonic()
        change, negotiation.software_change = negotiation.software_change, None
        if change is not None:
            self._record.report("connection", change, WARNING)

    def _read_first_packets(self) -> None:
        """Read packets to learn rate and payload; they are the first that `read` returns.

        Raises:
            ControllerError: no packet comes.
        """
        found: list[Records] = []
        deadline = time.monotonic() + self._quiet_time()
        needed = min(max(round(RATE_SECONDS * (self._info.rate or 1.0)), 2), RATE_SAMPLES)
        while sum(map(len, found)) < needed:
            connection, rest = self._connection, deadline - time.monotonic()
            if connection is None or rest <= 0:
                break
            try:
                records = connection.receive(min(rest, 0.1))
            except ControllerError as error:
                if not found:
                    raise
                self._lose(error.problem)
                break
            if records is not None:
                found.append(records)
        if not found:
            raise ControllerError(
                self._host,
                "accepts the recipe but sends no data",
                "restart the controller's RTDE interface",
            )
        arrival = self._clock.now()
        records = self._negotiation.recipe.join(found)
        times = records["timestamp"].astype(float)
        self._stream.check_times(times)
        self._last_data = time.monotonic()
        self._first = records, arrival
        rate = observed_rate(times, self._info.rate)
        if rate is not None:
            text = f"sends at {rate:.1f} Hz instead of {self._info.rate}"
            self._record.report("connection", text, WARNING)
            self._info = replace(self._info, rate=round(rate, 3))
        self._info = with_payload(self._info, records)

    def _reconnect(self, timeout: float) -> bool:
        """Try again if the pause is over; waits for its end, but not longer than the timeout."""
        wait = self._next_attempt - time.monotonic()
        if wait > 0 and self._closed.wait(min(wait, max(timeout, 0.0))):
            return False
        if time.monotonic() < self._next_attempt:
            return False
        try:
            self._connect(again=True)
        except (ControllerError, WrongRobotError) as error:
            self._record.fail(error.problem, ERROR)
            self._wait()
            return False
        return True

    def _lose(self, problem: str) -> None:
        """Record why the connection was lost, and schedule the next attempt."""
        self._stream.loss = problem
        self._record.fail(problem, WARNING)
        self._disconnect()
        self._wait()

    def _wait(self) -> None:
        """Schedule the next attempt; samples make the pause short again."""
        self._next_attempt = time.monotonic() + self._backoff
        self._backoff = min(2 * self._backoff, LONGEST_BACKOFF)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _quiet_time(self) -> float:
        return max(self._silence, 5.0 / (self._info.rate or 1.0))

    def _telemetry(self, records: Records, arrival: int) -> Telemetry | None:
        stream = self._stream
        self._follow_program(records)
        stream.same_serial = self._negotiation.same_serial
        batch = stream.telemetry(self._negotiation.recipe, records, arrival, self._info)
        if batch is not None:
            self._backoff = FIRST_BACKOFF
            self._record.samples(batch)
            if stream.restarted and not self._negotiation.same_serial:
                self._record.unsure(moved=stream.moved)
        if stream.fault is not None:
            self._lose(stream.fault.problem)
        return batch

    def _follow_program(self, records: Records) -> None:
        """Keep the name of the program up to date; it can change where the runtime state does."""
        changed = False
        if "runtime_state" in (records.dtype.names or ()):
            states, before = records["runtime_state"], self._runtime_state
            self._runtime_state = float(states[-1])
            changed = before is not None and bool((states != before).any())
        name = self._program.poll(changed=changed)
        if name != self._info.program:
            self._info = replace(self._info, program=name)
            self._record.report("program", "no program is loaded" if name is None else name)

    def _keep_messages(self, connection: RtdeConnection) -> None:
        for message in connection.messages:
            text = f"{message.source}: {message.text}" if message.source else message.text
            self._record.report("message", text, _LEVELS.get(message.level, INFORMATION))
        connection.messages.clear()
