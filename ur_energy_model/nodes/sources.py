# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The joint_states topic of a driver as a source of samples.

The source takes messages from the middleware in batches, decodes them
(`telemetry.joint_states`), finds out whether their efforts are currents or torques
(`consistency.effort_stream`), and states why nothing arrives where nothing does.
"""

from __future__ import annotations

import threading
import time
from collections import deque

from ur_energy_model.consistency.effort_stream import EffortStream
from ur_energy_model.consistency.time_unit import TimeCheck
from ur_energy_model.nodes.lines import INFO, PERIOD, WARN, OperatorLines
from ur_energy_model.nodes.ros import SILENT_AFTER, PolledSubscription
from ur_energy_model.telemetry.joint_states import JointStateStream
from ur_energy_model.telemetry.samples import Event, RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.topics_and_services import DRIVER_JOINT_STATES
from ur_energy_model.typing import ClosedOnExit, Self

DEPTH = DRIVER_JOINT_STATES.depth  # messages that are taken at once


class JointStatesSource(ClosedOnExit):
    """Samples from JointState messages, taken from the middleware every `batch_seconds`.

    Args:
        subscription: subscription to the topic of the driver.
        stream: decodes the messages, and counts what is lost or refused.
        efforts: decides what their efforts are.
        batch_seconds: time span of the samples that are decoded together [s].
        lines: writer of lines about the unit of the efforts, and about messages that were
            refused while others are used.

    Attributes:
        info: robot and source of the samples.
        fields: columns of the samples.
    """

    def __init__(
        self,
        subscription: PolledSubscription,
        stream: JointStateStream,
        efforts: EffortStream,
        batch_seconds: float,
        lines: OperatorLines,
    ) -> None:
        self.info: RecordingInfo = stream.info
        self.fields: tuple[str, ...] = stream.fields
        self._subscription = subscription
        self._stream = stream
        self._efforts = efforts
        self._times = TimeCheck(
            "the stamps and velocities of the driver are in s and rad/s"
        )
        self._efforts_reported: str | None = None
        self._batch_seconds = batch_seconds
        self._lines = lines
        self._closed = threading.Event()
        self._ready: deque[Telemetry] = deque()
        self._publishers: tuple[str, ...] = ()
        self._connected: int | None = None
        # When a publisher was last connected, or none was known: discovery and connection
        # take a while, so only a publisher that stays unconnected has an unsuitable
        # quality of service.
        self._connected_at = float("inf")
        self._messages = 0
        self._reconnects = 0
        # Times are by the monotonic clock [s].
        never = -float("inf")
        self._entered = never
        self._taken = never
        self._last_message = never
        self._last_sample = never
        # The last time that the middleware had no usable message, and the last time but
        # one, until which there was certainly none: where this process did not run for a
        # while, messages may have come that the last look was too early for.
        self._found_nothing = never
        self._silent_until = never
        self._unusable: str | None = None  # why the last messages were refused
        self._reported_at = never
        self._reported = 0  # refused messages that a line has reported

    def __enter__(self) -> Self:
        """Discard the messages from before, and begin."""
        messages, _ = self._subscription.take(DEPTH)
        while messages:
            messages, _ = self._subscription.take(DEPTH)
        self._entered = time.monotonic()
        return self

    def close(self) -> None:
        """End `read`; the subscription remains."""
        self._closed.set()

    def take_events(self) -> list[Event]:
        """No events."""
        return []

    @property
    def problem(self) -> str | None:
        """Why no samples arrive now, None while they do."""
        now = time.monotonic()
        topic = self._subscription.topic
        sampled = self._last_sample > -float("inf")
        if sampled and self._silent_until - self._last_sample < SILENT_AFTER:
            return None
        if now - self._last_message < SILENT_AFTER and self._unusable is not None:
            return f"messages on {topic} {self._unusable}"
        if not self._publishers:
            return f"no node publishes {topic}; is the driver running, in this namespace?"
        names = ", ".join(sorted(set(self._publishers)))
        if now - self._connected_at > SILENT_AFTER:
            return (
                f"no message on {topic}: the quality of service of {names} does not suit the "
                f"subscription; set qos_overrides.{topic}.subscription.reliability to best_effort"
            )
        return f"no message on {topic}, which {names} should publish; is its controller active?"

    @property
    def status(self) -> LinkStatus:
        """State of the topic; silence counts as a lost connection."""
        problem = self.problem  # first: silence that is over has its losses in the stream
        outage = 0.0
        if problem is not None and self._last_sample > self._entered:
            outage = self._silent_until - self._last_sample
        return LinkStatus(
            connected=problem is None,
            reconnects=self._reconnects,
            duplicates=self._stream.duplicates,
            last_error=problem,
            problem=problem,
            losses=self._stream.losses,
            outage=outage,
        )

    @property
    def doubt(self) -> str | None:
        """Problem of the messages, although they are used; None without one.

        Either efforts that are there are not used, or the motion contradicts the stamps.
        """
        problem = self._efforts.problem
        if problem is not None:
            return f"efforts are not used: {problem}"
        for contradiction in self._times.contradictions():
            return contradiction.words()
        return None

    def details(self) -> dict[str, object]:
        """Figures for diagnostics."""
        stream = self._stream
        connected: object = self._connected
        if connected is None:
            connected = "unknown"
        values: dict[str, object] = {
            "topic": self._subscription.topic,
            "publishers": ", ".join(self._publishers) or "none",
            "connected_publishers": connected,
            "messages": self._messages,
            "messages_of_other_joints": stream.foreign,
            "refused_messages": stream.refused.total(),
            "clock_steps_of_stamps": stream.clock_steps,
            "efforts": "missing" if stream.effort_missing else self._efforts.words,
        }
        if stream.refused:
            reasons = [f"{count} {why}" for why, count in stream.refused.most_common()]
            values["refused_because"] = "; ".join(reasons)
        return values

    def read(self, timeout: float) -> Telemetry | None:
        """Next batch, None if no usable message came in time.

        Args:
            timeout: longest time to wait [s].

        Raises:
            EOFError: the source is closed.
        """
        end = time.monotonic() + timeout
        while not self._ready:
            due = self._taken + self._batch_seconds
            wake = min(due, end)
            if self._closed.wait(max(wake - time.monotonic(), 0.0)):
                raise EOFError
            if time.monotonic() < due:
                return None
            self._take()
            if not self._ready and time.monotonic() >= end:
                return None
        return self._ready.popleft()

    def _note_nothing(self, now: float) -> None:
        """Remember that the middleware had no usable message at this time [s]."""
        self._silent_until = self._found_nothing
        self._found_nothing = now

    def _take(self) -> None:
        """Take the messages that wait, and decode them into batches for `read`."""
        messages, numbers = self._subscription.take(DEPTH)
        now = time.monotonic()
        self._taken = now
        self._publishers = tuple(self._subscription.publishers())  # takes 20 us
        self._connected = self._subscription.connected_publishers()
        if self._connected != 0 or not self._publishers:
            self._connected_at = now
        if not messages:
            self._note_nothing(now)
            return
        self._messages += len(messages)
        self._last_message = now
        known = numbers if len(self._publishers) == 1 else None
        read = self._stream.read(messages, known, now, len(self._publishers))
        self._unusable = self._stream.problem
        for batch in read:
            self._times.observe(batch)
        batches: list[Telemetry] = []
        for batch in read:
            batches += self._efforts(batch)
        if read and not batches:
            self._unusable = f"have efforts that are {self._efforts.words}"
        self._report_efforts()
        if not batches:
            self._note_nothing(now)
            return
        silence = now - self._last_sample
        if self._last_sample > self._entered and silence > SILENT_AFTER:
            self._reconnects += 1
        self._last_sample = now
        self._found_nothing = now
        self._ready.extend(batches)
        self._report_refused(now)

    def _report_refused(self, now: float) -> None:
        """Write a line at most every PERIOD about messages that were refused."""
        refused = self._stream.refused
        count = refused.total() - self._reported
        if not count or now - self._reported_at < PERIOD:
            return
        self._reported_at = now
        self._reported = refused.total()
        ((reason, _),) = refused.most_common(1)
        names = ", ".join(sorted(set(self._subscription.publishers())))
        self._lines.log(
            WARN,
            f"{count} messages on {self._subscription.topic} (from {names}) were refused: "
            f"most of those refused so far {reason}",
        )

    def _report_efforts(self) -> None:
        """Write a line where it changes what is done with the efforts."""
        doubt = self.doubt
        efforts = self._efforts
        text = doubt
        if doubt is None and efforts.unit is not None:
            text = f"efforts of {self._subscription.topic} are {efforts.words}"
        if text is not None and text != self._efforts_reported:
            self._lines.log(INFO if doubt is None else WARN, text)
            self._efforts_reported = text
