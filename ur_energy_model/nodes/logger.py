"""logger_node: records RTDE into bags without loss; publishes joint_states."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from sensor_msgs.msg import JointState
from std_msgs.msg import String

from ur_energy_model import topics_and_services as names
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.files import user_path, xdg_folder
from ur_energy_model.model.robots import ANY_ROBOT, load_robot
from ur_energy_model.nodes.energy_recording import EnergyRecording
from ur_energy_model.nodes.estimator_sources import batch_seconds
from ur_energy_model.nodes.joint_states_publisher import JointStatesPublisher
from ur_energy_model.nodes.logger_health import LoggerHealth
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.node_process import run_nodes
from ur_energy_model.nodes.other_publishers import OtherPublishers
from ur_energy_model.nodes.recording_session import RecordingSession
from ur_energy_model.nodes.terminal.line import Level, Line
from ur_energy_model.nodes.terminal.problem_lines import RepeatedLines
from ur_energy_model.telemetry.bag.file_split import FileSplit
from ur_energy_model.telemetry.bag.retention import Retention
from ur_energy_model.telemetry.fields import ENERGY_FIELDS
from ur_energy_model.telemetry.recording.options_and_status import RecorderOptions
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.telemetry.source import TelemetrySource


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
        self._marks = RepeatedLines(Level.WARN)

    def open(self) -> None:
        """Make topics and services."""
        named = self.value("robot_model")
        self._robot = load_robot(named).name if named else None
        prefix = self.value("tf_prefix")
        joints = load_robot(named or ANY_ROBOT).joint_names
        self._joints = tuple(prefix + joint for joint in joints)
        self._joint_states: JointStatesPublisher | None = None
        if self.value("publish_joint_states"):
            publisher = self.add_publisher(JointState, names.JOINT_STATES)
            self._others = OtherPublishers(self, names.JOINT_STATES, self._joints)
            self._discard.append(self._others.close)
            self._joint_states = JointStatesPublisher(
                publisher,
                self._others,
                self._joints,
                self.value("publish_rate"),
                self.get_clock(),
            )
        self.add_service(names.START_RECORDING, self._start_recording)
        self.add_service(names.STOP_RECORDING, self._stop_recording)
        self.add_service(names.SPLIT_RECORDING, self._split_recording)
        self.add_service(names.MARK, lambda: self._mark("mark"))
        self.add_subscription(String, names.EVENT_MARKS, self._on_mark)
        self._energy = EnergyRecording(self) if self.value("record_energy") else None
        self.add_report(self._report)

    def start(self) -> None:
        """Start connecting."""
        # Under systemd, the working directory is /.
        folder = xdg_folder("XDG_DATA_HOME", "~/.local/share")
        folder /= user_path(self.value("bag_directory"))
        self._session = RecordingSession(
            self._make_source,
            folder,
            RecorderOptions(
                namespace=self.get_namespace().rstrip("/"),
                tf_prefix=self.value("tf_prefix"),
                split=self._file_split(),
                retention=self._retention(),
                resume=True,
                messages=tuple if self._energy is None else self._energy.take,
            ),
            self._tap,
            record=self.value("record"),
        )
        self._health = LoggerHealth(self.full_name, self.value("robot_ip"), self._session)
        record, retention = self.value("record"), self._retention()
        self.say(self._health.begin_lines(folder, record=record, retention=retention))
        self._session.start()

    def stop(self) -> None:
        """Finish the bag and disconnect."""
        self._session.stop()
        self.say(self._health.end_lines())

    def _retention(self) -> Retention | None:
        """Budget of the bags, None if all are kept."""
        days, gigabytes = self.value("retention_days"), self.value("retention_gb")
        if not (days or gigabytes):
            return None
        return Retention(bytes=round(gigabytes * 1e9) or None, days=days or None)

    def _file_split(self) -> FileSplit:
        """When files end: as stated, or often enough for the budget, which deletes whole files."""
        seconds, budget = self.value("split_duration") or None, self._retention()
        if budget is None:
            return FileSplit(seconds=seconds)
        return FileSplit(seconds or budget.file_seconds, budget.file_bytes)

    def _make_source(self) -> TelemetrySource:
        if self._given_source is not None:
            return self._given_source()
        return RtdeSource(
            self.value("robot_ip"),
            robot=self._robot,
            fields=tuple(self.texts("fields")) or ENERGY_FIELDS,
            rate=self.value("rtde_rate") or None,
            patience=math.inf,
            batch_seconds=batch_seconds(self.value),
        )

    def _tap(self, batch: Telemetry) -> None:
        """Publish joint_states of new samples (called in the reading thread)."""
        self._health.record_arrival(len(batch))
        if self._joint_states is not None:
            self._joint_states.publish(batch)

    def _start_recording(self) -> str:
        bag = self._active_session().start_bag()
        self.say(self._health.lines())
        return str(bag)

    def _stop_recording(self) -> str:
        ended = self._active_session().stop_bag()
        self.say(self._health.lines())
        return f"{ended.bag}: {ended.samples} samples, {ended.lost} lost"

    def _split_recording(self) -> str:
        self._active_session().split_bag()
        return "recording continues in the next file"

    def _mark(self, label: str) -> str:
        self._active_session().mark(label)
        return label

    def _active_session(self) -> RecordingSession:
        if not self.active:
            raise UrEnergyError("the logger is not active; activate it first")
        return self._session

    def _on_mark(self, message: String) -> None:
        try:
            self._mark(message.data)
        except UrEnergyError as error:
            self.say(self._marks.happened(self.explain(error)))

    def _report(self) -> None:
        if self._session.failure is not None:
            self.finish(1, self.explain(self._session.failure))
            return
        self.say(self._health.lines())
        if self._joint_states is not None and (line := self._others.look()) is not None:
            self.say([Line(Level.INFO, line)])
        energy = [] if self._energy is None else [self._energy.status()]
        self.publish_diagnostics([*self._health.statuses(), *energy])


def main() -> None:
    """Console script."""
    sys.exit(run_nodes(lambda: [LoggerNode()]))


if __name__ == "__main__":
    main()
