# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""logger_node: records RTDE into bags without loss; publishes joint_states."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from ur_energy_model import topics_and_services as names
from ur_energy_model.energy.wall import RecordedMeter
from ur_energy_model.errors import (
    ControllerError,
    InputError,
    RecordingError,
    UrEnergyError,
)
from ur_energy_model.files import xdg_folder
from ur_energy_model.model.robots import ANY_ROBOT, load_robot
from ur_energy_model.nodes import lines
from ur_energy_model.nodes.lines import ConnectionLines, Level, RecordingLines
from ur_energy_model.nodes.managed_node import ManagedNode, run_nodes
from ur_energy_model.nodes.parameters import LoggerParameters
from ur_energy_model.nodes.ros import (
    ERROR,
    OK,
    SILENT_AFTER,
    WARN,
    Part,
    PolledSubscription,
    has_subscribers,
    joint_state,
    publishing_nodes,
    time_message,
)
from ur_energy_model.telemetry.bag.cdr import STAMP, STAMP_OFFSET, CdrError, CdrParser
from ur_energy_model.telemetry.bag.compression import available_packing
from ur_energy_model.telemetry.bag.files import FileSplit, Retention
from ur_energy_model.telemetry.bag.messages import (
    DIAGNOSTIC_ARRAY,
    JOINT_STATE,
    BagTopic,
    Messages,
)
from ur_energy_model.telemetry.bag.recovery import recover_killed
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.gaps import NO_LOSSES, Losses
from ur_energy_model.telemetry.joint_states import JointStateFormats, as_array
from ur_energy_model.telemetry.meters import Meter, MeteredSource
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.recording.writing_thread import (
    RecorderOptions,
    RecorderStatus,
)
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, equal_runs
from ur_energy_model.telemetry.source import Decimator, LinkStatus, TelemetrySource

T = TypeVar("T")

# RecordingSession: reads a source in a thread, and records bags while they are wanted.

RECONNECT_PERIOD = 1.0  # pause before a failed source is replaced [s]
RESUME_PERIOD = 5.0
"""Pause before a bag is tried again that could not be begun, or that ended by itself [s]."""
RECOVERY_TIMEOUT = 5.0
"""Longest time that the end waits for a bag to be recovered [s]; the next start does it again."""
STATE_PERIOD = 0.2  # period of checks whether the source or the bag has ended [s]


@dataclass(frozen=True)
class _PresentSource:
    """The source that a session reads, and the losses of those that it read before."""

    source: TelemetrySource
    lost_before: Losses


class RecordingSession:
    """Connects in a thread, so that the controller may start later than the program.

    A source that ends or fails is replaced. While a recording is wanted (`record`, or
    after `start_bag` until `stop_bag`), a bag that ended by itself is followed by a new
    one, as soon as that is possible.

    `make_source` is called again for each replacement; `tap` is called with every batch
    in the reading thread, and must be quick.
    """

    def __init__(
        self,
        make_source: Callable[[], TelemetrySource],
        folder: Path,
        options: RecorderOptions,
        tap: Callable[[Telemetry], None],
        *,
        record: bool = False,
    ) -> None:
        self._make_source = make_source
        self._folder = folder
        self._options = options
        self._tap = tap
        self._wanted = record
        self.failure: UrEnergyError | None = None  # that ended the session for good
        # why no bag can be recorded although one is wanted
        self.refusal: str | None = None
        self.recovered: deque[tuple[Level, str]] = deque()  # lines about recovered bags
        self._problem: str | None = None
        self._recorder: Recorder | None = None
        self._last = RecorderStatus()
        self._final: LinkStatus | None = None
        self._next_bag = -float("inf")
        self._commands = threading.Lock()
        self._stopping = threading.Event()
        self._present = _PresentSource(make_source(), NO_LOSSES)
        self._thread = threading.Thread(target=self._run, name="logger session")
        self._recovery = threading.Thread(
            target=self._recover, name="bag recovery", daemon=True
        )

    def start(self) -> None:
        """Start connecting, and recover bags whose recorder was killed."""
        self._thread.start()
        self._recovery.start()

    def stop(self) -> None:
        """Finish the bag and disconnect."""
        self._stopping.set()
        if self._recorder is None:
            self._present.source.close()  # it may still be trying to connect
        self._thread.join()
        self._recovery.join(RECOVERY_TIMEOUT)

    @property
    def link(self) -> LinkStatus:
        """State of the connection, with the reason where there is none; once stopped, the last.

        The losses are those of all sources that followed one another.
        """
        if self._final is not None:
            return self._final
        if self._problem is None or self._recorder is not None:
            return self._status()
        problem = self._problem
        losses = self._status().losses
        return LinkStatus(
            connected=False, problem=problem, last_error=problem, losses=losses
        )

    def _status(self) -> LinkStatus:
        """State of the connection of the present source, with the losses of all so far."""
        present = self._present  # read once: the session's thread replaces it
        status = present.source.status
        return replace(status, losses=present.lost_before + status.losses)

    @property
    def info(self) -> RecordingInfo | None:
        """Robot and recording, None before the controller was connected."""
        return None if self._recorder is None else self._present.source.info

    @property
    def status(self) -> RecorderStatus:
        """State of the bag that is recorded, or of the last one."""
        recorder = self._recorder
        return self._last if recorder is None else recorder.status

    @property
    def recorder(self) -> Recorder:
        """For commands that need a bag; RecordingError while not connected."""
        if self._recorder is None:
            problem = "is not connected to the controller yet"
            remedy = "try again once it is"
            raise RecordingError("logger", problem, remedy)
        return self._recorder

    def start_bag(self) -> Path:
        """Begin a bag; a RecordingError if one is being recorded, or the disk fails."""
        with self._commands:
            bag = self.recorder.start()
            self._wanted = True
            self.refusal = None
        return bag

    def stop_bag(self) -> RecorderStatus:
        """Finish the bag; does nothing if there is none."""
        with self._commands:
            self._wanted = False
            self.refusal = None
            return self.recorder.stop()

    def _recover(self) -> None:
        def report(line: str, attention: bool) -> None:
            self.recovered.append((lines.WARN if attention else lines.INFO, line))

        recover_killed(self._folder, report, self._stopping.is_set)

    def _run(self) -> None:
        """Record until the session is stopped; replace the source whenever it fails."""
        while not self._stopping.is_set():
            try:
                self._read_source()
                if not self._stopping.is_set():
                    self._problem = (
                        "the data of the controller could not be read; connecting again"
                    )
            except ControllerError as error:
                self._problem = str(error)
            except UrEnergyError as error:
                self.failure = None if self._stopping.is_set() else error
                return
            if not self._stopping.wait(RECONNECT_PERIOD):
                losses = self._status().losses
                self._present = _PresentSource(self._make_source(), losses)

    def _read_source(self) -> None:
        """Read and record until the session is stopped or the source ends."""
        with self._present.source as source:
            if self._stopping.is_set():  # while it connected: a bag would have no sample
                return
            make = partial(
                Recorder, source, self._folder, options=self._options, tap=self._tap
            )
            recorder: Recorder | None = None
            if self._wanted:  # from the first sample
                recorder = self._begun(lambda: make(record=True).__enter__())
            if recorder is None:
                recorder = make(record=False).__enter__()
            try:
                self._recorder = recorder
                self._problem = None
                while recorder.reading and not self._stopping.wait(STATE_PERIOD):
                    self._begin_wanted_bag(recorder)
            finally:
                recorder.close()
                if self._stopping.is_set():
                    self._final = self.link
                self._last = recorder.status
                self._recorder = None
        if recorder.fault is not None:
            raise recorder.fault

    def _begin_wanted_bag(self, recorder: Recorder) -> None:
        """Begin a bag if one is wanted and none is recorded."""
        with self._commands:
            status = recorder.status
            if not self._wanted or status.state in ("recording", "failing"):
                return
            if status.stopped_because is not None:
                self.refusal = self.refusal or status.stopped_because
            if time.monotonic() >= self._next_bag:
                self._begun(recorder.start)

    def _begun(self, action: Callable[[], T]) -> T | None:
        """What an action that begins a bag returns; None if it is refused, with `refusal`."""
        self._next_bag = time.monotonic() + RESUME_PERIOD
        try:
            begun = action()
        except RecordingError as error:
            self.refusal = str(error)
            return None
        self.refusal = None
        return begun


# Topics: joint_states, unless a driver publishes them, and energy for the bags.

DEPTH = 50  # messages that are not examined yet; a driver repeats itself
STAMPS_KEPT = 1000  # own messages, which their stamps distinguish from those of others
JUDGED_AFTER = 2.0
"""Time for which the messages of another publisher are awaited at the start [s]."""
GONE_AFTER = 10.0  # silence after which another publisher no longer counts [s]


class JointStatesPublisher:
    """Publishes joint_states at a rate [Hz], in any thread, unless another node does.

    Only messages with joints of this arm count: a gripper's driver may use the same
    topic. The topic is subscribed to only while another node publishes it.
    """

    def __init__(self, node: ManagedNode, joints: Sequence[str], rate: float) -> None:
        self._node = node
        self._joints = tuple(joints)
        self._due = Decimator(rate)
        self._publisher = node.add_publisher(JointState, names.JOINT_STATES)
        self._topic = node.resolve_topic_name(names.JOINT_STATES.name)
        self._other = replace(  # all publishers, whatever their quality of service
            names.JOINT_STATES,
            subscribed=True,
            depth=DEPTH,
            reliable=False,
            adjustable=(),
        )
        self._subscription: PolledSubscription | None = None
        self._formats = JointStateFormats()
        self._own: deque[int] = deque(maxlen=STAMPS_KEPT)
        self._began: float | None = None
        self._other_seen: float | None = None
        # whether this node should publish; False until the first check
        self._alone = False
        node.on_discard(self._unsubscribe)

    def publish(self, batch: Telemetry) -> None:
        """Publish the samples that are due, if they are subscribed and no other node does."""
        columns = batch.columns
        if "actual_q" not in columns:
            return
        for row in (part.stop - 1 for part in self._due.parts(batch.time)[0]):
            due = self._due.due(float(batch.time[row]))
            if not (due and self._alone and has_subscribers(self._publisher)):
                continue
            now = self._node.get_clock().now
            stamp = now().nanoseconds if batch.stamp is None else int(batch.stamp[row])
            self._own.append(stamp)
            names = ("actual_qd", "actual_current")
            q = columns["actual_q"][row]
            qd, current = (
                columns[name][row] if name in columns else None for name in names
            )
            self._publisher.publish(
                joint_state(self._joints, time_message(stamp), q, qd, current)
            )

    def poll(self) -> str | None:
        """Find out who publishes the topic; called about once a second, in the executor's thread.

        Returns a line when another node begins to publish the joints, or has ended.
        """
        now = time.monotonic()
        topic = self._topic
        self._began = now if self._began is None else self._began
        own = self._node.get_fully_qualified_name()
        others = sorted(set(publishing_nodes(self._node, topic)) - {own})
        if not others:
            self._unsubscribe()
        elif self._hears_joints():
            already = self._other_seen is not None
            self._alone = False
            self._other_seen = now
            if not already:
                names = ", ".join(others)
                return (
                    f"{topic} is left to {names}, which publishes the joints of this arm"
                )
        if self._other_seen is not None:
            if now - self._other_seen < GONE_AFTER:
                return None
            self._alone = True
            self._other_seen = None
            return f"{topic} is published by this node again, since no other node does"
        if not others or now - self._began > JUDGED_AFTER:
            self._alone = True
        return None

    def _unsubscribe(self) -> None:
        if self._subscription is not None:
            self._subscription.destroy()
            self._subscription = None

    def _hears_joints(self) -> bool:
        """Whether messages of another node name joints of this arm."""
        if self._subscription is None:
            self._subscription = PolledSubscription(self._node, JointState, self._other)
        for message in self._subscription.take(DEPTH)[0]:
            with suppress(CdrError):
                found, _ = self._formats.run([message], 0)
                stamp, _ = found.template.decode(as_array([message]))
                named = not set(self._joints).isdisjoint(found.names)
                if named and int(stamp[0]) not in self._own:
                    return True
        return False


RECORDED = {
    "sensor_msgs/JointState": (JointState, JOINT_STATE),
    "diagnostic_msgs/DiagnosticArray": (DiagnosticArray, DIAGNOSTIC_ARRAY),
}
"""Types of the topics in bags by name: that of ROS, and that in bags."""
MOST_TAKEN = 1000  # messages of a topic that are taken at once
LARGEST_RECORDED = 1_000_000
"""Largest message for the bags [bytes]; those of an estimator are below 20,000."""
MOST_AWAY_NS = 10_000_000_000
"""Stamps further from the present are not of this arm's samples; the present counts instead."""


class EnergyRecording:
    """Messages of the estimator in the namespace of a node, for the bags.

    The writing thread of the recorder takes them twice a second from where the middleware
    keeps them: the thread that reads the samples never waits for them. `lost` counts
    where the middleware numbers the messages. `refused` are those that no estimator
    publishes: without a header, or larger than LARGEST_RECORDED.
    """

    def __init__(self, node: ManagedNode) -> None:
        self.recorded = self.lost = self.refused = 0
        self._taking = threading.Lock()
        self._topics: dict[BagTopic, PolledSubscription] = {}
        self._newest: dict[BagTopic, int] = {}  # number of the newest message
        # whether it had one publisher at the last look
        self._alone: dict[BagTopic, bool] = {}
        for published, recorded in zip(
            names.PUBLISHED_ENERGY, names.RECORDED_ENERGY, strict=True
        ):
            message_type, kind = RECORDED[recorded.type]
            subscription = node.add_polled_subscription(message_type, recorded)
            self._topics[BagTopic(subscription.topic, kind, published.latched)] = (
                subscription
            )

    def take(self) -> list[Messages]:
        """Messages since the last call; for the writing thread of a recorder."""
        with self._taking:
            return self._take()

    def _take(self) -> list[Messages]:
        now = HOST_CLOCK.stamp()
        taken: list[Messages] = []
        for topic, subscription in self._topics.items():
            messages, numbers = subscription.take(MOST_TAKEN)
            self._count_lost(topic, numbers, len(subscription.publishers()))
            taken_here = len(messages)
            least = STAMP_OFFSET + STAMP.size
            messages = [
                each for each in messages if least <= len(each) <= LARGEST_RECORDED
            ]
            self.recorded += len(messages)
            self.refused += taken_here - len(messages)
            for part in equal_runs([len(each) for each in messages]):
                pairs = (STAMP.unpack_from(each, STAMP_OFFSET) for each in messages[part])
                times = np.array([int(s) * 10**9 + int(ns) for s, ns in pairs])
                stamps = np.where(np.abs(times - now) < MOST_AWAY_NS, times, now)
                payload = np.frombuffer(b"".join(messages[part]), np.uint8)
                taken.append(Messages(topic, stamps, payload.reshape(len(stamps), -1)))
        return taken

    def _count_lost(
        self, topic: BagTopic, numbers: list[int] | None, publishers: int
    ) -> None:
        """Count the messages that are missing between these and the ones before.

        Each publisher has numbers of its own, and a new one starts at one: only those of
        the same single publisher are compared.
        """
        was_alone = self._alone.get(topic, False)
        self._alone[topic] = publishers == 1
        if not numbers:
            return
        before = self._newest.get(topic)
        self._newest[topic] = numbers[-1]
        if before is None or not (was_alone and self._alone[topic]):
            return
        if numbers[0] > before and numbers == sorted(numbers):
            self.lost += numbers[-1] - before - len(numbers)

    def part(self) -> Part:
        """Status of the energy topics in bags."""
        problems: list[str] = []
        if self.lost:
            problems.append(f"{self.lost} messages are lost")
        if self.refused:
            problems.append(
                f"{self.refused} messages are not an estimator's and not recorded"
            )
        values = {"messages": self.recorded, "lost": self.lost, "refused": self.refused}
        if problems:
            return WARN, "; ".join(problems), values
        return OK, "recorded with the samples, if an estimator publishes", values


LONGEST_LABEL = 1000  # of an event [bytes]
STRING_OVERHEAD = 9
"""Bytes of a serialized String besides its text: encapsulation, length and a zero."""


def label_of(message: bytes) -> str:
    """Label of an event from a serialized String.

    Raises:
        InputError: it is too long, or no text.
    """
    remedy = f"use up to {LONGEST_LABEL} bytes of UTF-8"
    if len(message) > LONGEST_LABEL + STRING_OVERHEAD:
        raise InputError("mark", f"the label has {len(message)} bytes", remedy)
    try:
        (label,) = CdrParser(message).take("s")
    except CdrError as error:
        raise InputError("mark", f"the label cannot be read: {error}", remedy) from error
    return str(label)


class LoggerNode(ManagedNode):
    """Connects in a thread while active, so that the controller may start later than the node.

    `source` makes the source of samples, for nodes that share one; None to connect by the
    parameters.
    """

    def __init__(
        self, source: Callable[[], TelemetrySource] | None = None, **options: Any
    ) -> None:
        super().__init__("logger", **options)
        self._given_source = source

    @property
    def parameters(self) -> LoggerParameters:
        """Values of the node's own parameters."""
        return self.given.of(LoggerParameters)

    def open(self) -> None:
        """Make topics and services."""
        given = self.parameters
        named = given.robot_model
        self._robot = load_robot(named).name if named else None
        joints = [
            given.tf_prefix + joint
            for joint in load_robot(named or ANY_ROBOT).joint_names
        ]
        self._joint_states: JointStatesPublisher | None = None
        if given.publish_joint_states:
            self._joint_states = JointStatesPublisher(self, joints, given.publish_rate)
        self._add_command(names.START_RECORDING, lambda session: session.start_bag())
        self._add_command(
            names.STOP_RECORDING,
            lambda session: session.stop_bag(),
            "{0.bag}: {0.samples} samples, {0.losses.samples} lost",
        )
        text = "recording continues in the next file"
        self._add_command(
            names.SPLIT_RECORDING, lambda session: session.recorder.split(), text
        )
        self.add_service(names.MARK, lambda: self._mark("mark"))
        self.add_subscription(String, names.EVENT_MARKS, self._on_mark, raw=True)
        self._energy = EnergyRecording(self) if given.record_energy else None
        self.add_report(self._report)

    def start(self) -> None:
        """Start connecting."""
        given = self.parameters
        # Under systemd, the working directory is /.
        folder = xdg_folder("XDG_DATA_HOME", "~/.local/share") / given.bag_directory
        retention = None
        split = FileSplit(seconds=given.split_duration or None)
        if given.retention_days or given.retention_gb:
            retention = Retention(
                bytes=round(given.retention_gb * 1e9) or None,
                days=given.retention_days or None,
            )
            # often enough for the budget, which deletes whole files
            own = retention.file_split
            split = FileSplit(split.seconds or own.seconds, own.bytes)
        options = RecorderOptions(
            namespace=self.get_namespace().rstrip("/"),
            tf_prefix=given.tf_prefix,
            split=split,
            retention=retention,
            messages=tuple if self._energy is None else self._energy.take,
        )
        self._meter = Meter(given.meter).__enter__() if given.meter else None
        self._checked = RecordedMeter(given.meter or None)
        self._session = RecordingSession(
            self._make_source, folder, options, self._tap, record=given.record
        )
        self._samples = 0
        self._since = time.monotonic()
        self._last_arrival = -math.inf
        kept = (
            "all bags are kept" if retention is None else f"at most {retention} are kept"
        )
        text = (
            f"recording to {folder}; {kept} (retention_gb); record:=false switches it off"
        )
        if not given.record:
            text = f"not recording; the service start_recording records to {folder}"
        self.log(lines.INFO, text)
        shortcoming = available_packing().shortcoming
        if shortcoming is not None:
            self.log(lines.INFO, shortcoming)
        self._connection = ConnectionLines(self.lines, given.robot_ip)
        self._recording = RecordingLines(self.lines)
        self._session.start()

    def stop(self) -> None:
        """Finish the bag and disconnect."""
        session = self._session
        session.stop()
        self._connection.end(session.link)
        self._recording.update(session.status, last=True)
        if self._meter is not None:
            self._meter.__exit__()

    def _make_source(self) -> TelemetrySource:
        if self._given_source is not None:
            source = self._given_source()
        else:
            source = RtdeSource(
                self.parameters.robot_ip,
                robot=self._robot,
                fields=self.parameters.fields or ENERGY_FIELDS,
                rate=self.parameters.rtde_rate or None,
                patience=math.inf,
                batch_seconds=self.parameters.batch_seconds,
            )
        return source if self._meter is None else MeteredSource(source, self._meter)

    def _tap(self, batch: Telemetry) -> None:
        """Publish joint_states of new samples (called in the reading thread)."""
        self._samples += len(batch)
        self._last_arrival = time.monotonic()
        if self._joint_states is not None:
            self._joint_states.publish(batch)
        if self._meter is not None:
            self._checked.observe(batch)

    def _add_command(
        self,
        service: names.Service,
        action: Callable[[RecordingSession], object],
        text: str = "{}",
    ) -> None:
        """A service that responds with the text of what an action returns."""

        def command() -> str:
            found = action(self._active_session())
            self._write_lines()
            return text.format(found)

        self.add_service(service, command)

    def _mark(self, label: str) -> str:
        self._active_session().recorder.mark(label)
        return label

    def _on_mark(self, message: bytes) -> None:
        try:
            self._mark(label_of(message))
        except UrEnergyError as error:
            self.lines.event("mark", lines.WARN, self.words(error))

    def _active_session(self) -> RecordingSession:
        if not self.active:
            raise UrEnergyError("the logger is not active; activate it first")
        return self._session

    def _write_lines(self) -> None:
        session = self._session
        self.lines.clock_steps()
        self._connection.update(session.link, session.info)
        self._recording.update(session.status)
        while session.recovered:
            self.log(*session.recovered.popleft())
        if session.refusal is not None:
            self._recording.refused(session.refusal)

    def _report(self) -> None:
        """Lines, and connection, recording and energy topics on /diagnostics."""
        if self._session.failure is not None:
            self.finish(1, self.words(self._session.failure))
            return
        self._write_lines()
        if self._energy is not None and self._session.status.state not in (
            "recording",
            "failing",
        ):
            self._energy.take()  # else they would wait for a bag, however large they are
        if (
            self._joint_states is not None
            and (line := self._joint_states.poll()) is not None
        ):
            self.log(lines.INFO, line)
        parts = {
            "connection": self._connection_part(),
            "recording": self._recording_part(self._session.status),
        }
        if self._energy is not None:
            parts["energy topics"] = self._energy.part()
        if self._meter is not None:
            problem = self._meter.problem
            url = self._meter.url
            line = None if problem is None else f"power meter {url}: {problem}"
            if problem is None and self._checked.contradictions:
                problem = line = self._checked.contradictions[0].words()
            level, text = (OK, "sends readings") if problem is None else (WARN, problem)
            parts["power meter"] = level, text, {"url": url}
            self.lines.problem("meter", line, "the power meter can be used", lines.WARN)
        self.publish_parts(parts)

    def _connection_part(self) -> Part:
        """Connection since the last report."""
        now = time.monotonic()
        link = self._session.link
        info = self._session.info
        rate = self._samples / max(now - self._since, 1e-3)
        age = now - self._last_arrival
        self._samples = 0
        self._since = now
        level = OK
        text = "samples arrive"
        if link.problem is not None or age > SILENT_AFTER:
            reason = link.problem or link.last_error
            level = ERROR
            text = reason or "no connection to the controller yet"
        values: dict[str, object] = {
            "robot_ip": self.parameters.robot_ip,
            "rate_Hz": rate,
            "age_s": age if math.isfinite(age) else None,
            "reconnects": link.reconnects,
            "duplicates": link.duplicates,
            "skipped": link.skipped,
            "lost": link.losses.samples,
            "lost_s": link.losses.seconds,
            "outage_s": link.outage,
            "identity": link.identity,
        }
        if info is not None:
            values |= {
                key: getattr(info, key)
                for key in ("robot", "serial", "controller_version")
            }
        if HOST_CLOCK.steps:
            values["clock"] = HOST_CLOCK.describe_step()
        return level, text, values

    def _recording_part(self, recorder: RecorderStatus) -> Part:
        refusal = self._session.refusal
        storage = recorder.storage
        level = OK if recorder.state in ("recording", "idle") else ERROR
        text = recorder.state
        if refusal is not None:
            level = ERROR
            text = f"not recording: {refusal}"
        elif level == OK and recorder.losses.samples:
            level = WARN
            text = f"{recorder.state}; {recorder.losses.samples:,} samples are lost"
        if level == OK and storage is not None and storage.problem is not None:
            level = WARN
            text = f"bags exceed their budget: {storage.problem}"
        values: dict[str, object] = {
            "bag": recorder.bag,
            "samples": recorder.samples,
            "lost": recorder.losses.samples,
            "lost_s": recorder.losses.seconds,
            "outage_s": recorder.outage,
            "unreadable": recorder.unreadable,
            "gaps": len(recorder.gaps),
            "bytes": recorder.bytes,
            "seconds": recorder.seconds,
            "waiting": recorder.waiting,
            "last_error": recorder.last_error or "none",
        }
        if storage is not None:
            values |= {
                "stored_GB": storage.bytes / 1e9,
                "stored_files": storage.files,
                "stored_days": storage.oldest_days,
                "marked_files": storage.marked,
                "removed_files": storage.removed_files,
                "removed_GB": storage.removed_bytes / 1e9,
            }
        return level, text, values


def main() -> int:
    """Console script."""
    return run_nodes(lambda: [LoggerNode()])
