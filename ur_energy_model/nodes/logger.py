"""logger_node: records RTDE into bags without loss; publishes joint_states."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from std_msgs.msg import String

from ur_energy_model import topics_and_services as names
from ur_energy_model.errors import ControllerError, RecordingError, UrEnergyError
from ur_energy_model.files import xdg_folder
from ur_energy_model.model.robots import ANY_ROBOT, load_robot
from ur_energy_model.nodes import lines
from ur_energy_model.nodes.lines import ConnectionLines, Level, RecordingLines
from ur_energy_model.nodes.logger_topics import EnergyRecording, JointStatesPublisher
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.node_process import run_nodes
from ur_energy_model.nodes.parameters import LoggerParameters
from ur_energy_model.nodes.ros import ERROR, OK, SILENT_AFTER, WARN, Part
from ur_energy_model.telemetry.bag.files import FileSplit, Retention
from ur_energy_model.telemetry.bag.recovery import recover_killed
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.recording.writing_thread import RecorderOptions, RecorderStatus
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import LinkStatus, TelemetrySource

# RecordingSession: reads a source in a thread, and records bags while they are wanted.

RECONNECT_PERIOD = 1.0
"""Pause before a failed source is replaced [s]."""
RESUME_PERIOD = 5.0
"""Pause before a bag is tried again that could not be begun, or that ended by itself [s]."""
RECOVERY_TIMEOUT = 5.0
"""Longest time that the end waits for a bag to be recovered [s]; the next start does it again."""
STATE_PERIOD = 0.2
"""Period of checks whether the source or the bag has ended [s]."""


class RecordingSession:
    """Connects in a thread, so that the controller may start later than the program.

    A source that ends or fails is replaced. While a recording is wanted (`record`, or after
    `start_bag` until `stop_bag`), a bag that ended by itself is followed by a new one, as soon as
    that is possible.

    Args:
        make_source: makes the source, called again for each replacement.
        folder: where bags go.
        options: of the recorder.
        tap: called with every batch in the reading thread; it must be quick.
        record: whether a recording is wanted from the start.
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
        self._make_source, self._folder, self._options = make_source, folder, options
        self._tap, self._wanted = tap, record
        self.failure: UrEnergyError | None = None  # that ended the session for good
        self.refusal: str | None = None  # why no bag can be recorded although one is wanted
        self.recovered: deque[tuple[Level, str]] = deque()  # lines about recovered bags
        self._problem: str | None = None
        self._recorder: Recorder | None = None
        self._last = RecorderStatus()
        self._final: LinkStatus | None = None
        self._next_bag = -float("inf")
        self._commands = threading.Lock()
        self._stopping = threading.Event()
        self._source = make_source()
        self._thread = threading.Thread(target=self._run, name="logger session")
        self._recovery = threading.Thread(target=self._recover, name="bag recovery", daemon=True)

    def start(self) -> None:
        """Start connecting, and recover bags whose recorder was killed."""
        self._thread.start()
        self._recovery.start()

    def stop(self) -> None:
        """Finish the bag and disconnect."""
        self._stopping.set()
        if self._recorder is None:
            self._source.close()  # it may still be trying to connect
        self._thread.join()
        self._recovery.join(RECOVERY_TIMEOUT)

    @property
    def link(self) -> LinkStatus:
        """State of the connection, with the reason where there is none; once stopped, the last."""
        if self._final is not None:
            return self._final
        if self._problem is None or self._recorder is not None:
            return self._source.status
        return LinkStatus(connected=False, problem=self._problem, last_error=self._problem)

    @property
    def info(self) -> RecordingInfo | None:
        """Robot and recording, None before the controller was connected."""
        return None if self._recorder is None else self._source.info

    @property
    def status(self) -> RecorderStatus:
        """State of the bag that is recorded, or of the last one."""
        recorder = self._recorder
        return self._last if recorder is None else recorder.status

    @property
    def recorder(self) -> Recorder:
        """For commands that need a bag.

        Raises:
            RecordingError: not connected.
        """
        if self._recorder is None:
            problem, remedy = "is not connected to the controller yet", "try again once it is"
            raise RecordingError("logger", problem, remedy)
        return self._recorder

    def start_bag(self) -> Path:
        """Begin a bag; returns its path.

        Raises:
            RecordingError: not connected, a bag is being recorded, or the disk fails.
        """
        with self._commands:
            bag = self.recorder.start()
            self._wanted, self.refusal = True, None
        return bag

    def stop_bag(self) -> RecorderStatus:
        """Finish the bag; does nothing if there is none. Raises as `start_bag`."""
        with self._commands:
            self._wanted, self.refusal = False, None
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
                    self._problem = "the data of the controller could not be read; connecting again"
            except ControllerError as error:
                self._problem = str(error)
            except UrEnergyError as error:
                self.failure = None if self._stopping.is_set() else error
                return
            if not self._stopping.wait(RECONNECT_PERIOD):
                self._source = self._make_source()

    def _read_source(self) -> None:
        """Read and record until the session is stopped or the source ends."""
        with self._source as source:

            def enter(*, record: bool) -> Recorder:
                options, tap = self._options, self._tap
                made = Recorder(source, self._folder, options=options, tap=tap, record=record)
                return made.__enter__()

            recorder: Recorder | None = None
            if self._wanted:  # from the first sample
                with self._beginning():
                    recorder = enter(record=True)
            if recorder is None:
                recorder = enter(record=False)
            try:
                self._recorder, self._problem = recorder, None
                while recorder.reading and not self._stopping.wait(STATE_PERIOD):
                    self._begin_wanted_bag(recorder)
            finally:
                if self._stopping.is_set():
                    self._final = source.status  # the time that the end takes is no loss
                recorder.close()
                self._last, self._recorder = recorder.status, None
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
                with self._beginning():
                    recorder.start()

    @contextmanager
    def _beginning(self) -> Iterator[None]:
        """A context that begins a bag; keeps why that is refused."""
        self._next_bag = time.monotonic() + RESUME_PERIOD
        try:
            yield
            self.refusal = None
        except RecordingError as error:
            self.refusal = str(error)


class LoggerNode(ManagedNode):
    """Connects in a thread while active, so that the controller may start later than the node.

    Args:
        source: makes the source of samples, for nodes that share one; None to connect by the
            parameters.
        options: further arguments of rclpy's node.
    """

    parameters: LoggerParameters

    def __init__(self, source: Callable[[], TelemetrySource] | None = None, **options: Any) -> None:
        super().__init__("logger", **options)
        self._given_source = source

    def open(self) -> None:
        """Make topics and services."""
        given = self.parameters
        named = given.robot_model
        self._robot = load_robot(named).name if named else None
        joints = [given.tf_prefix + joint for joint in load_robot(named or ANY_ROBOT).joint_names]
        self._joint_states: JointStatesPublisher | None = None
        if given.publish_joint_states:
            self._joint_states = JointStatesPublisher(self, joints, given.publish_rate)
        self.add_service(names.START_RECORDING, self._start_recording)
        self.add_service(names.STOP_RECORDING, self._stop_recording)
        self.add_service(names.SPLIT_RECORDING, self._split_recording)
        self.add_service(names.MARK, lambda: self._mark("mark"))
        self.add_subscription(String, names.EVENT_MARKS, self._on_mark)
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
                bytes=round(given.retention_gb * 1e9) or None, days=given.retention_days or None
            )
            own = retention.file_split  # often enough for the budget, which deletes whole files
            split = FileSplit(split.seconds or own.seconds, own.bytes)
        options = RecorderOptions(
            namespace=self.get_namespace().rstrip("/"),
            tf_prefix=given.tf_prefix,
            split=split,
            retention=retention,
            resume=True,
            messages=tuple if self._energy is None else self._energy.take,
        )
        self._session = RecordingSession(
            self._make_source, folder, options, self._tap, record=given.record
        )
        self._samples, self._since, self._last_arrival = 0, time.monotonic(), -math.inf
        kept = "all bags are kept" if retention is None else f"at most {retention} are kept"
        text = f"recording to {folder}; {kept} (retention_gb); record:=false switches it off"
        if not given.record:
            text = f"not recording; the service start_recording records to {folder}"
        self.log(lines.INFO, text)
        self._connection = ConnectionLines(self.lines, given.robot_ip)
        self._recording = RecordingLines(self.lines)
        self._session.start()

    def stop(self) -> None:
        """Finish the bag and disconnect."""
        session = self._session
        session.stop()
        self._connection.end(session.link)
        self._recording.end(session.status)

    def _make_source(self) -> TelemetrySource:
        if self._given_source is not None:
            return self._given_source()
        return RtdeSource(
            self.parameters.robot_ip,
            robot=self._robot,
            fields=self.parameters.fields or ENERGY_FIELDS,
            rate=self.parameters.rtde_rate or None,
            patience=math.inf,
            batch_seconds=self.parameters.batch_seconds,
        )

    def _tap(self, batch: Telemetry) -> None:
        """Publish joint_states of new samples (called in the reading thread)."""
        self._samples += len(batch)
        self._last_arrival = time.monotonic()
        if self._joint_states is not None:
            self._joint_states.publish(batch)

    def _start_recording(self) -> str:
        bag = self._active_session().start_bag()
        self._write_lines()
        return str(bag)

    def _stop_recording(self) -> str:
        ended = self._active_session().stop_bag()
        self._write_lines()
        return f"{ended.bag}: {ended.samples} samples, {ended.lost} lost"

    def _split_recording(self) -> str:
        self._active_session().recorder.split()
        return "recording continues in the next file"

    def _mark(self, label: str) -> str:
        self._active_session().recorder.mark(label)
        return label

    def _on_mark(self, message: String) -> None:
        try:
            self._mark(message.data)
        except UrEnergyError as error:
            self.lines.event("mark", lines.WARN, self.explain(error))

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
            self.finish(1, self.explain(self._session.failure))
            return
        self._write_lines()
        if self._joint_states is not None and (line := self._joint_states.poll()) is not None:
            self.log(lines.INFO, line)
        parts = {
            "connection": self._connection_part(),
            "recording": self._recording_part(self._session.status),
        }
        if self._energy is not None:
            parts["energy topics"] = self._energy.part()
        self.publish_parts(parts)

    def _connection_part(self) -> Part:
        """Connection since the last report."""
        now, link, info = time.monotonic(), self._session.link, self._session.info
        rate, age = self._samples / max(now - self._since, 1e-3), now - self._last_arrival
        self._samples, self._since = 0, now
        level, text = OK, "samples arrive"
        if link.problem is not None or age > SILENT_AFTER:
            reason = link.problem or link.last_error
            level, text = ERROR, reason or "no connection to the controller yet"
        values: dict[str, object] = {
            "robot_ip": self.parameters.robot_ip,
            "rate_Hz": rate,
            "age_s": age if math.isfinite(age) else None,
            "reconnects": link.reconnects,
            "duplicates": link.duplicates,
            "lost": link.lost,
            "lost_s": link.lost_seconds,
            "identity": link.identity,
        }
        if info is not None:
            values |= {key: getattr(info, key) for key in ("robot", "serial", "controller_version")}
        if HOST_CLOCK.steps:
            values["clock"] = HOST_CLOCK.describe_step()
        return level, text, values

    def _recording_part(self, recorder: RecorderStatus) -> Part:
        refusal, storage = self._session.refusal, recorder.storage
        level, text = OK if recorder.state in ("recording", "idle") else ERROR, recorder.state
        if refusal is not None:
            level, text = ERROR, f"not recording: {refusal}"
        elif level == OK and recorder.lost:
            level = WARN
        if level == OK and storage is not None and storage.problem is not None:
            level, text = WARN, f"bags exceed their budget: {storage.problem}"
        values: dict[str, object] = {
            "bag": recorder.bag,
            "samples": recorder.samples,
            "lost": recorder.lost,
            "lost_s": recorder.lost_seconds,
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


def main() -> None:
    """Console script."""
    sys.exit(run_nodes(lambda: [LoggerNode()]))


if __name__ == "__main__":
    main()
