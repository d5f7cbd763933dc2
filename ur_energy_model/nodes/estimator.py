"""estimator_node: publishes live power and energy of an arm from its identified model."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from builtin_interfaces.msg import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from ur_energy_model.energy.live.cycles import Cycle
from ur_energy_model.energy.live.estimator import LiveEstimator
from ur_energy_model.energy.live.source_reader import SourceReader
from ur_energy_model.energy_topics.statuses import interval_energies
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.model.urdf_export import urdf
from ur_energy_model.nodes import topics_and_services as names
from ur_energy_model.nodes.conversions import time_message
from ur_energy_model.nodes.energy_publishers import EnergyPublishers
from ur_energy_model.nodes.estimator_health import EstimatorHealth
from ur_energy_model.nodes.estimator_options import check_parameters, live_options
from ur_energy_model.nodes.estimator_sources import joint_states_source, source_of
from ur_energy_model.nodes.joint_states_source import DEPTH
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.node_process import run_nodes
from ur_energy_model.nodes.plan_answer import PlanAnswer
from ur_energy_model.nodes.plan_predictions import PlanPredictions
from ur_energy_model.nodes.terminal.estimator_lines import EstimatorLines
from ur_energy_model.nodes.terminal.line import Level, Line
from ur_energy_model.nodes.watched_model import WatchedModel
from ur_energy_model.telemetry.decimation import Decimator
from ur_energy_model.telemetry.host_clock import HOST_CLOCK
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.telemetry.source import TelemetrySource

SWITCH_INTERVAL = 0.0002
"""Longest time for which another thread may delay the reading of a packet [s]."""


class EstimatorNode(ManagedNode):
    """Integrates energy and publishes at publish_rate, in the thread that reads the packets.

    A batch of packets covers one publish period. Packets that arrive during a publication wait
    in the socket, so that none is lost.

    Args:
        source: makes the source of samples, for nodes that share one; None to take it from the
            parameters.
        options: further arguments of rclpy's node.

    Attributes:
        robot_name: of the arm of the model, None before the node is configured.
    """

    def __init__(self, source: Callable[[], TelemetrySource] | None = None, **options: Any) -> None:
        super().__init__("estimator", **options)
        self._given_source = source
        self._lock = threading.Lock()
        self._reader: SourceReader | None = None
        self.robot_name: str | None = None

    def open(self) -> None:
        """Load the model; make topics and services."""
        check_parameters(self.value)
        self._model = WatchedModel(
            Path(self.value("model_file")).expanduser(),
            self.value("robot_model"),
            self.value("reload_period"),
        )
        self._robot = self._model.robot
        self.robot_name = self._robot.name
        prefix = self.value("tf_prefix")
        self._joints = tuple(prefix + joint for joint in self._robot.joint_names)
        self._energy = EnergyPublishers(self.add_publisher, self._joints, f"{prefix}base")
        self._health = EstimatorHealth(self.full_name)
        self._lines = EstimatorLines(self.value, self.robot_name)
        self._description_topic = self._clock_topic = None
        if self.value("publish_robot_description"):
            self._description_topic = self.add_publisher(String, names.ROBOT_DESCRIPTION)
        if self.value("source") == "bag" and self.get_parameter("use_sim_time").value:
            self._clock_topic = self.add_publisher(Clock, names.CLOCK)
        self._plans = PlanPredictions(
            self._robot,
            self._joints,
            self._lock,
            on_plan=self._on_prediction,
            on_problem=self._on_useless_plan,
        )
        self._stamp: int | None = None
        self.add_service(names.RESET_ENERGY, self._reset_energy)
        self.add_service(names.READ_INTERVAL, self._read_interval)
        self.add_service(names.START_CYCLE, self._start_cycle)
        self.add_subscription(JointTrajectory, names.PLANNED_TRAJECTORY, self._on_plan, raw=True)
        self._joint_states = None
        if self.value("source") == "joint_states":
            self._joint_states = self.add_polled_subscription(
                JointState, names.DRIVER_JOINT_STATES, DEPTH
            )
        self.add_report(self._report)
        # Last, since it locks the state file.
        self._estimator = LiveEstimator(
            self._model.first, self._robot, live_options(self.value), on_cycle=self._on_cycle
        )
        self.say(self._lines.model(self._model.path, self._model.first))

    def start(self) -> None:
        """Start reading samples."""
        self._publishing = Decimator(self.value("publish_rate"))
        self.say(self._lines.begin())
        sys.setswitchinterval(SWITCH_INTERVAL)
        if self._description_topic is not None:
            prefix = self.value("tf_prefix")
            self._description_topic.publish(String(data=urdf(self._robot, prefix=prefix)))
        self._reader = SourceReader(
            self._source,
            self._consume,
            loop=self.value("source") == "bag" and self.value("loop"),
            clock=HOST_CLOCK if self.value("source") == "rtde" else None,
            on_end=self._publish,  # the last samples of a bag may not fill a period
        )
        self._reader.start()

    def stop(self) -> None:
        """Stop reading samples; save the counters."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.stop()
        with self._lock:
            save = self._estimator.prepare_save()
            snapshot = self._estimator.snapshot("end")
        self._save(save)
        self.say(self._lines.end(reader, snapshot, self._health.disk_problem))

    def release(self) -> None:
        """Save the counters and release the state file."""
        self._plans.stop()
        self._estimator.close()

    def on_parameter(self, name: str) -> None:
        """Apply a parameter that may change while the node is configured."""
        with self._lock:
            self._estimator.set_options(live_options(self.value))

    def _source(self) -> TelemetrySource:
        if self._given_source is not None:
            return self._given_source()
        if self._joint_states is not None:
            source = joint_states_source(self.value, self._joint_states, self._joints, self._warn)
            self._health.details = source.details
            return source
        return source_of(self.value, self._robot.name)

    def _consume(self, batch: Telemetry) -> None:
        """Integrate a batch (called in the reader thread)."""
        with self._lock:
            self._estimator.update(batch)
            self._health.record_batch(batch)
            if not self._publishing.due(float(batch.time[-1])):
                return
        self._stamp = None if batch.stamp is None else int(batch.stamp[-1])
        self._publish()

    def _publish(self) -> None:
        """Publish the topics of publish_rate."""
        with self._lock:
            snapshot = self._estimator.snapshot()
            calculator = self._estimator.calculator
        if snapshot is None:
            return
        stamp = self._now()
        if self._clock_topic is not None:
            self._clock_topic.publish(Clock(clock=stamp))
        self._energy.publish_total(snapshot)
        if self._stamp is not None and self.value("source") == "rtde":
            self._health.record_publication(self._stamp)
        self._energy.publish_live(snapshot, stamp, calculator.joint_positions)
        done = self._plans.finished(snapshot)
        if done is not None:
            plan, measured = done
            self._energy.publish_prediction(plan, stamp, measured, snapshot.channels)

    def _report(self) -> None:
        """Publish summary and diagnostics, save the counters, load a changed model file."""
        if self._reader is not None and self._reader.failure is not None:
            self._fail(self._reader.failure)
            return
        self._reload()
        with self._lock:
            snapshot = self._estimator.snapshot("summary")
            calculator, log_problem = self._estimator.calculator, self._estimator.log_problem
            save = self._estimator.prepare_save()
        self._save(save)  # without the lock: a slow disk must not delay the samples
        stamp = self._now()
        if snapshot is not None:
            self.say(self._lines.arm(snapshot.note))
            self._energy.publish_summary(snapshot, stamp, str(self._model.path))
        statuses = self._health.statuses(
            snapshot, self._reader, calculator, self._model, log_problem
        )
        self.publish_diagnostics(statuses, stamp)
        self.say(self._lines.source(self._reader))
        self.say(self._lines.problems(self._model.problem, self._health.disk_problem, log_problem))

    def _fail(self, failure: BaseException) -> None:
        """End the process because the source can no longer be read."""
        if isinstance(failure, UrEnergyError):
            self.finish(1, self.explain(failure))
        else:
            self.on_unexpected(failure, "thread 'telemetry reader'")

    def _save(self, save: Callable[[], None]) -> None:
        """Save the counters; a disk error is reported, and the estimator continues."""
        save()
        self._health.disk_problem = self._estimator.disk_problem

    def _reload(self) -> None:
        """Use a changed model file; keep the old model if the new one cannot be used."""
        model = self._model.load_if_changed()
        if model is not None:
            try:
                with self._lock:
                    self._estimator.use_model(model)
                self.say(self._lines.model(self._model.path, model))
            except UrEnergyError as error:
                self._model.problem = str(error)

    def _on_cycle(self, cycle: Cycle) -> None:
        self._energy.publish_cycle(cycle, self._estimator.channels, self._now())

    def _warn(self, text: str) -> None:
        self.say([Line(Level.WARN, text)])

    def _reset_energy(self) -> str:
        with self._lock:
            self._estimator.reset("service call")
            problem = self._estimator.disk_problem
        text = "energy counters are zero"
        return text if problem is None else f"{text}, but not saved: {problem}"

    def _read_interval(self) -> str:
        with self._lock:
            passed = self._estimator.read_interval()
        return json.dumps(interval_energies(passed, self._estimator.channels, self._joints))

    def _start_cycle(self) -> str:
        with self._lock:
            self._estimator.start_cycle()
        return "a cycle starts with the next sample"

    def _on_plan(self, message: bytes) -> None:
        self._plans.submit(message, self._estimator)

    def _on_useless_plan(self, error: UrEnergyError) -> None:
        self.say(self._lines.useless_plan(self.explain(error)))

    def _on_prediction(self, answer: PlanAnswer) -> None:
        self._energy.publish_prediction(answer, self._now(), None, self._estimator.channels)
        if answer.optimized is not None:
            self._energy.publish_optimized(answer.optimized)

    def _now(self) -> Time:
        """Stamp of the newest sample, or time of the node's clock if samples have no stamp."""
        if self._stamp is None:
            return self.get_clock().now().to_msg()
        return time_message(self._stamp)


def main() -> None:
    """Console script."""
    sys.exit(run_nodes(lambda: [EstimatorNode()]))


if __name__ == "__main__":
    main()
