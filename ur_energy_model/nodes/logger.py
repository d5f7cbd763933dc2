# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""logger_node: records RTDE into bags without loss; publishes joint_states.

The samples go from the connection into the bag in a thread of the recorder, never through
DDS (`recording_session`). The executor's thread answers services and marks, and once a
second writes lines and reports on /diagnostics; `logger_topics` has the topics.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from std_msgs.msg import String

from ur_energy_model import topics_and_services as names
from ur_energy_model.energy.wall import RecordedMeter
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.files import xdg_folder
from ur_energy_model.model.robots import ANY_ROBOT, load_robot
from ur_energy_model.nodes import lines
from ur_energy_model.nodes.lines import ConnectionLines, RecordingLines
from ur_energy_model.nodes.logger_topics import (
    EnergyRecording,
    JointStatesPublisher,
    label_of,
)
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.parameters import LoggerParameters
from ur_energy_model.nodes.process import run_nodes
from ur_energy_model.nodes.recording_session import RecordingSession
from ur_energy_model.nodes.ros import ERROR, OK, SILENT_AFTER, WARN, Part
from ur_energy_model.telemetry.bag.compression import available_packing
from ur_energy_model.telemetry.bag.files import FileSplit
from ur_energy_model.telemetry.bag.retention import Retention
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.meters import Meter, MeteredSource
from ur_energy_model.telemetry.recording.writing_thread import (
    RecorderOptions,
    RecorderStatus,
)
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.telemetry.source import TelemetrySource


class LoggerNode(ManagedNode):
    """Connects in a thread while active: the controller may start after the node.

    Args:
        source: makes the source of samples, for nodes that share one; None to connect by
            the parameters.
        options: further arguments of rclpy's node.
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
        """Make topics and services.

        Raises:
            RobotFileError: there is no robot of this name.
        """
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
        self.add_service(names.START_RECORDING, self._start_recording)
        self.add_service(names.STOP_RECORDING, self._stop_recording)
        self.add_service(names.SPLIT_RECORDING, self._split_recording)
        self.add_service(names.MARK, lambda: self._mark("mark"))
        self.add_subscription(String, names.EVENT_MARKS, self._on_mark, raw=True)
        self._energy = EnergyRecording(self) if given.record_energy else None
        self.add_report(self._report)

    def start(self) -> None:
        """Start connecting, and recording if the parameter `record` is true.

        Raises:
            InputError: the power meter or a field to record cannot be used.
            MissingPackageError: the package for this kind of meter is not installed.
        """
        given = self.parameters
        # Under systemd, the working directory is /.
        folder = xdg_folder("XDG_DATA_HOME", "~/.local/share") / given.bag_directory
        options = self._recorder_options()
        self._meter = Meter(given.meter) if given.meter else None
        self._checked = RecordedMeter(given.meter or None)
        self._session = RecordingSession(
            self._make_source, folder, options, self._tap, record=given.record
        )
        self._samples = 0
        self._since = time.monotonic()
        self._last_arrival = -math.inf
        text = f"not recording; the service start_recording records to {folder}"
        if given.record:
            kept = "all bags are kept"
            if options.retention is not None:
                kept = f"at most {options.retention} are kept"
            text = (
                f"recording to {folder}; {kept} (retention_gb); record:=false switches it "
                "off"
            )
        self.log(lines.INFO, text)
        shortcoming = available_packing().shortcoming
        if shortcoming is not None:
            self.log(lines.INFO, shortcoming)
        self._connection = ConnectionLines(self.lines, given.robot_ip)
        self._recording = RecordingLines(self.lines)
        # Last, when nothing can fail any more: a start that fails must leave no thread.
        if self._meter is not None:
            self._meter.__enter__()
        self._session.start()

    def stop(self) -> None:
        """Finish the bag and disconnect."""
        session = self._session
        session.stop()
        self._connection.end(session.link)
        self._recording.update(session.status, last=True)
        if self._meter is not None:
            self._meter.__exit__()

    def _recorder_options(self) -> RecorderOptions:
        """Names, size of the files and budget of the bags, by the parameters."""
        given = self.parameters
        split = FileSplit(seconds=given.split_duration or None)
        retention = None
        if given.retention_days or given.retention_gb:
            retention = Retention(
                bytes=round(given.retention_gb * 1e9) or None,
                days=given.retention_days or None,
            )
            # The budget deletes whole files, which must be small beside it.
            own = retention.file_split
            split = FileSplit(split.seconds or own.seconds, own.bytes)
        return RecorderOptions(
            namespace=self.get_namespace().rstrip("/"),
            tf_prefix=given.tf_prefix,
            split=split,
            retention=retention,
            messages=tuple if self._energy is None else self._energy.take,
        )

    def _make_source(self) -> TelemetrySource:
        """A source of samples, with the readings of the power meter if there is one."""
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
        if self._meter is None:
            return source
        return MeteredSource(source, self._meter)

    def _tap(self, batch: Telemetry) -> None:
        """Publish joint_states of new samples, and compare a meter with the arm.

        Args:
            batch: samples, with the readings of the power meter; the reading thread
                calls.
        """
        self._samples += len(batch)
        self._last_arrival = time.monotonic()
        if self._joint_states is not None:
            self._joint_states.publish(batch)
        if self._meter is not None:
            self._checked.observe(batch)

    def _start_recording(self) -> str:
        """Service ~/start_recording: begin a bag; the response is its path."""
        bag = self._active_session().start_bag()
        self._write_lines()
        return str(bag)

    def _stop_recording(self) -> str:
        """Service ~/stop_recording: finish the bag; the response has its samples."""
        bag = self._active_session().stop_bag()
        self._write_lines()
        return f"{bag.bag}: {bag.samples} samples, {bag.losses.samples} lost"

    def _split_recording(self) -> str:
        """Service ~/split_recording: continue the bag in a new file."""
        self._active_session().recorder.split()
        self._write_lines()
        return "recording continues in the next file"

    def _mark(self, label: str) -> str:
        """Keep an event with a label in the bag, and the files around it from deletion.

        Raises:
            RecordingError: no bag is recorded.
        """
        self._active_session().recorder.mark(label)
        return label

    def _on_mark(self, message: bytes) -> None:
        """Keep an event whose label comes on the topic; a line where that fails.

        Args:
            message: a serialized String with the label.
        """
        try:
            self._mark(label_of(message))
        except UrEnergyError as error:
            self.lines.event("mark", lines.WARN, self.words(error))

    def _active_session(self) -> RecordingSession:
        """The session, for services.

        Raises:
            UrEnergyError: the node is not active.
        """
        if not self.active:
            raise UrEnergyError("the logger is not active; activate it first")
        return self._session

    def _write_lines(self) -> None:
        """Write lines that are due: clock, connection, recording and recovered bags."""
        session = self._session
        self.lines.clock_steps()
        self._connection.update(session.link, session.info)
        self._recording.update(session.status)
        while session.recovered:
            self.log(*session.recovered.popleft())
        if session.refusal is not None:
            self._recording.refused(session.refusal)

    def _report(self) -> None:
        """Write lines, and publish the statuses of all parts on /diagnostics.

        A session that has failed for good, such as on the wrong robot, ends the process.
        """
        if self._session.failure is not None:
            self.finish(1, self.words(self._session.failure))
            return
        self._write_lines()
        has_bag = self._session.status.state in ("recording", "failing")
        if self._energy is not None and not has_bag:
            self._energy.take()  # else they would wait for a bag, however large they are
        if self._joint_states is not None:
            line = self._joint_states.poll()
            if line is not None:
                self.log(lines.INFO, line)
        parts = {
            "connection": self._connection_part(),
            "recording": self._recording_part(self._session.status),
        }
        if self._energy is not None:
            parts["energy topics"] = self._energy.part()
        if self._meter is not None:
            parts["power meter"] = self._meter_part(self._meter)
        self.publish_parts(parts)

    def _meter_part(self, meter: Meter) -> Part:
        """Status of the power meter, with a line about what is wrong with it."""
        problem = meter.problem
        line = None
        if problem is not None:
            line = f"power meter {meter.url}: {problem}"
        elif self._checked.contradictions:
            problem = self._checked.contradictions[0].words()
            line = problem
        self.lines.problem("meter", line, "the power meter can be used", lines.WARN)
        values = {"url": meter.url}
        if problem is not None:
            return WARN, problem, values
        return OK, "sends readings", values

    def _connection_part(self) -> Part:
        """Status of the connection: rate since the last report, losses, identity."""
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
            level = ERROR
            text = (
                link.problem or link.last_error or "no connection to the controller yet"
            )
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
            values["robot"] = info.robot
            values["serial"] = info.serial
            values["controller_version"] = info.controller_version
        if HOST_CLOCK.steps:
            values["clock"] = HOST_CLOCK.describe_step()
        return level, text, values

    def _recording_part(self, recorder: RecorderStatus) -> Part:
        """Status of the recording: the bag, what is lost, and the size of all bags.

        Args:
            recorder: status of the recorder now.
        """
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
