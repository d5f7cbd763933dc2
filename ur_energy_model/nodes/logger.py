"""logger_node: records RTDE into bags without loss; publishes joint_states."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from ur_energy_model.errors import ControllerError, RecordingError, UrEnergyError
from ur_energy_model.model.robots import load_robot
from ur_energy_model.nodes import topics_and_services as names
from ur_energy_model.nodes.conversions import joint_state, time_message
from ur_energy_model.nodes.diagnostics import ERROR, OK, WARN, status
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.node_process import run_nodes
from ur_energy_model.telemetry.bag.writer import FileSplit
from ur_energy_model.telemetry.decimation import Decimator
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.host_clock import HOST_CLOCK
from ur_energy_model.telemetry.recording.options_and_status import RecorderOptions
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.telemetry.source import TelemetrySource

RETRY_PERIOD = 1.0
"""Pause before a failed source is replaced [s]."""
STATE_PERIOD = 0.2
"""Period of checks whether the source has failed [s]."""
LONGEST_BATCH = 0.05
"""Longest time span of packets that are read together [s]."""
SILENT_AFTER = 1.0
"""Time without samples that is reported as an error [s]."""


class LoggerNode(ManagedNode):
    """Connects in a thread while active, so that the controller may start later than the node.

    Args:
        source: makes the source of samples, for nodes that share one; None to connect by the
            parameters.
        options: further arguments of rclpy's node.
    """

    def __init__(
        self,
        source: Callable[[], TelemetrySource] | None = None,
        **options: Any,
    ) -> None:
        super().__init__("logger", **options)
        self._given_source = source
        self._recorder: Recorder | None = None

    def open(self) -> None:
        """Make topics and services."""
        self._robot = load_robot(self.value("robot_model"))
        prefix = self.value("tf_prefix")
        self._joints = tuple(prefix + joint for joint in self._robot.joint_names)
        self._joint_states = None
        if self.value("publish_joint_states"):
            self._joint_states = self.add_publisher(JointState, names.JOINT_STATES)
        self.add_service(names.START_RECORDING, self._start_recording)
        self.add_service(names.STOP_RECORDING, self._stop_recording)
        self.add_service(names.SPLIT_RECORDING, self._split_recording)
        self.add_service(names.MARK, lambda: self._mark("mark"))
        self.add_subscription(String, names.EVENT_MARKS, self._on_mark)
        self.add_report(self._report)

    def start(self) -> None:
        """Start connecting."""
        self._publishing = Decimator(self.value("publish_rate"))
        self._samples, self._counted_since = 0, time.monotonic()
        self._last_arrival = -math.inf
        self._problem: str | None = None
        self._failure: UrEnergyError | None = None
        self._stopping = threading.Event()
        self._source = self._make_source()
        self._session = threading.Thread(target=self._run_session, name="logger session")
        self._session.start()

    def stop(self) -> None:
        """Finish the bag and disconnect."""
        self._stopping.set()
        if self._recorder is None:
            self._source.close()  # it may still be trying to connect
        self._session.join()

    def _make_source(self) -> TelemetrySource:
        if self._given_source is not None:
            return self._given_source()
        return RtdeSource(
            self.value("robot_ip"),
            robot=self._robot.name,
            fields=tuple(self.texts("fields")) or ENERGY_FIELDS,
            rate=self.value("rtde_rate") or None,
            patience=math.inf,
            batch_seconds=min(LONGEST_BATCH, 1.0 / self.value("publish_rate")),
        )

    def _run_session(self) -> None:
        """Record until the node stops; replace the source whenever it fails."""
        record = self.value("record")
        while not self._stopping.is_set():
            try:
                record = self._record(record)
                self._problem = "the data of the controller could not be read; reconnecting"
            except ControllerError as error:
                self._problem = str(error)
            except UrEnergyError as error:
                self._failure = None if self._stopping.is_set() else error
                return
            if not self._stopping.wait(RETRY_PERIOD):
                self._source = self._make_source()

    def _record(self, record: bool) -> bool:
        """Record until the node stops or the source fails; returns whether a bag was open then."""
        folder = Path(self.value("bag_directory")).expanduser()
        split = self.value("split_duration") or None
        try:
            with (
                self._source as source,
                Recorder(
                    source,
                    folder,
                    options=RecorderOptions(split=FileSplit(seconds=split)),
                    tap=self._tap,
                ) as recorder,
            ):
                self._recorder = recorder
                if record:
                    self._start_recording()
                while recorder.reading and not self._stopping.wait(STATE_PERIOD):
                    record = recorder.status.state in ("recording", "failing")
                return record
        finally:
            self._recorder = None

    def _tap(self, batch: Telemetry) -> None:
        """Publish joint_states of new samples (called in the reading thread)."""
        now = time.monotonic()
        self._samples += len(batch)
        self._last_arrival = now
        columns = batch.columns
        if self._joint_states is None or "actual_q" not in columns:
            return
        if not self._publishing.due(float(batch.time[-1])):
            return
        if not self._joint_states.get_subscription_count():
            return
        stamp = (
            self.get_clock().now().to_msg()
            if batch.stamp is None
            else time_message(int(batch.stamp[-1]))
        )
        qd, current = columns.get("actual_qd"), columns.get("actual_current")
        self._joint_states.publish(
            joint_state(
                self._joints,
                stamp,
                columns["actual_q"][-1],
                None if qd is None else qd[-1],
                None if current is None else current[-1],
            )
        )

    def _connected(self) -> Recorder:
        if self._recorder is None:
            raise RecordingError(
                self.value("robot_ip"), "is not connected yet", "try again once it is connected"
            )
        return self._recorder

    def _start_recording(self) -> str:
        bag = self._connected().start()
        self.get_logger().info(f"recording {bag}")
        return str(bag)

    def _stop_recording(self) -> str:
        ended = self._connected().stop()
        text = f"{ended.bag}: {ended.samples} samples, {ended.lost} lost"
        self.get_logger().info(text)
        return text

    def _split_recording(self) -> str:
        self._connected().split()
        return "recording continues in the next file"

    def _mark(self, label: str) -> str:
        self._connected().mark(label)
        return label

    def _on_mark(self, message: String) -> None:
        try:
            self._mark(message.data)
        except UrEnergyError as error:
            self.get_logger().warning(str(error))

    def _report(self) -> None:
        if self._failure is not None:
            self.finish(1, str(self._failure))
            return
        self.publish_diagnostics([self._link_status(), self._recording_status()])

    def _link_status(self) -> DiagnosticStatus:
        """Status of the connection to the controller."""
        now = time.monotonic()
        rate = self._samples / max(now - self._counted_since, 1e-3)
        self._samples, self._counted_since = 0, now
        age = now - self._last_arrival
        link = self._source.status
        info = None if self._recorder is None else self._source.info
        level, text = OK, "samples arrive"
        if age > SILENT_AFTER:
            error = self._problem or link.last_error
            level, text = ERROR, error or "no connection to the controller yet"
        values: dict[str, object] = {
            "robot_ip": self.value("robot_ip"),
            "rate_Hz": rate,
            "age_s": age if math.isfinite(age) else None,
            "reconnects": link.reconnects,
            "duplicates": link.duplicates,
        }
        if info is not None:
            values |= {"serial": info.serial, "controller_version": info.controller_version}
        return status(f"{self.full_name}: connection", level, text, values)

    def _recording_status(self) -> DiagnosticStatus:
        """Status of the bag."""
        name = f"{self.full_name}: recording"
        if self._recorder is None:
            return status(name, OK, "idle", {})
        recorder = self._recorder.status
        level = OK if recorder.state in ("recording", "idle") else ERROR
        if level == OK and recorder.lost:
            level = WARN
        values = {
            "bag": recorder.bag,
            "samples": recorder.samples,
            "lost": recorder.lost,
            "gaps": len(recorder.gaps),
            "bytes": recorder.bytes,
            "seconds": recorder.seconds,
            "waiting": recorder.waiting,
            "last_error": recorder.last_error or "none",
        }
        if HOST_CLOCK.steps:
            values["clock"] = HOST_CLOCK.describe_step()
        return status(name, level, recorder.state, values)


def main() -> None:
    """Console script."""
    sys.exit(run_nodes(lambda: [LoggerNode()]))


if __name__ == "__main__":
    main()
