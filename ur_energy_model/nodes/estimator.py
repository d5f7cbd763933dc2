"""estimator_node: live powers and energies of an arm from its identified model."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from ur_energy_model.energy.live.cycles import Cycle
from ur_energy_model.energy.live.estimator import LIVE_FIELDS, LiveEstimator, LiveOptions
from ur_energy_model.energy.live.plan_follower import PlanFollower
from ur_energy_model.energy.live.source_reader import SourceReader
from ur_energy_model.energy.power_options import PowerOptions
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.model.urdf import urdf
from ur_energy_model.nodes import conversions as convert
from ur_energy_model.nodes.energy_publishers import EnergyPublishers
from ur_energy_model.nodes.energy_statuses import interval
from ur_energy_model.nodes.estimator_health import EstimatorHealth
from ur_energy_model.nodes.managed_node import LATCHED, LIVE, ManagedNode
from ur_energy_model.nodes.node_process import run_nodes
from ur_energy_model.nodes.watched_model import WatchedModel
from ur_energy_model.telemetry.bag.source import BagSource
from ur_energy_model.telemetry.decimation import Decimator
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.telemetry.source import TelemetrySource

REPORT_PERIOD = 1.0
"""Of energy/summary, /diagnostics and the state file [s]."""
LONGEST_BATCH = 0.05
"""Time span of packets that are decoded together [s], at low publish rates."""
SWITCH_INTERVAL = 0.0002
"""How long another thread may keep Python from a packet that has arrived [s]."""


class EstimatorNode(ManagedNode):
    """Counts energy and publishes at publish_rate, in the thread that reads the packets.

    Packets are read in batches as long as a publication's period; those that arrive while one is
    published wait in the socket, so that none is lost.

    Args:
        source: makes the source of samples in place of the parameters (nodes that share one).
        options: further arguments of rclpy's node.
    """

    def __init__(self, source: Callable[[], TelemetrySource] | None = None, **options: Any) -> None:
        super().__init__("estimator", **options)
        self._given_source = source
        self._lock = threading.Lock()
        self._reader: SourceReader | None = None

    def open(self) -> None:
        """Load the model, make topics and services."""
        if not self.value("model_file"):
            raise InputError(
                "estimator",
                "is not set",
                "give the path of a model.yaml made by ur_energy identify",
                field="model_file",
            )
        self._model = WatchedModel(
            Path(self.value("model_file")).expanduser(),
            self.value("robot_model"),
            self.value("reload_period"),
        )
        self._robot = self._model.robot
        prefix = self.value("tf_prefix")
        self._joints = tuple(prefix + joint for joint in self._robot.joint_names)
        self._topics = EnergyPublishers(self.publish_on, self._joints, f"{prefix}base")
        self._diagnostics = self.publish_on(DiagnosticArray, "/diagnostics", LIVE)
        self._health = EstimatorHealth(self.get_fully_qualified_name())
        self._description_topic = self._clock_topic = None
        if self.value("publish_robot_description"):
            self._description_topic = self.publish_on(String, "robot_description", LATCHED)
        if self.value("source") == "bag" and self.get_parameter("use_sim_time").value:
            self._clock_topic = self.publish_on(Clock, "/clock", LIVE)
        self._follower = PlanFollower()
        self._stamp: int | None = None
        self.serve(Trigger, "~/reset_energy", self._on_reset)
        self.serve(Trigger, "~/read_interval", self._on_interval)
        self.serve(Trigger, "~/start_cycle", self._on_start_cycle)
        self.listen(JointTrajectory, "energy/planned_trajectory", self._on_plan)
        if self.value("source") == "joint_states":
            self.listen(JointState, "joint_states", self._on_joint_state)
        self.every(REPORT_PERIOD, self._report)
        # Last, for it takes hold of the state file.
        self._estimator = LiveEstimator(
            self._model.first, self._robot, self._options(), on_cycle=self._on_cycle
        )

    def start(self) -> None:
        """Begin to take samples."""
        self._publishing = Decimator(self.value("publish_rate"))
        self._accepting = True
        sys.setswitchinterval(SWITCH_INTERVAL)
        if self._description_topic is not None:
            prefix = self.value("tf_prefix")
            self._description_topic.publish(String(data=urdf(self._robot, prefix=prefix)))
        if self.value("source") != "joint_states":
            self._reader = SourceReader(
                self._source,
                self._consume,
                loop=self.value("source") == "bag" and self.value("loop"),
                on_end=self._show,  # the last samples of a bag may not fill a period
            )
            self._reader.start()

    def stop(self) -> None:
        """Cease to take samples; counters go to disk."""
        self._accepting = False
        if self._reader is not None:
            self._reader.stop()
            self._reader = None
        with self._lock:
            save = self._estimator.saving()
        self._save(save)

    def release(self) -> None:
        """Save the counters and give back the state file."""
        self._estimator.close()

    def changed(self, name: str) -> None:
        """Apply a parameter that may change while the node works."""
        with self._lock:
            self._estimator.retune(self._options())

    def connect(self, robot_ip: str, robot: str, fields: Sequence[str]) -> RtdeSource:
        """The connection that the estimator wants: packets in batches as they are published."""
        return RtdeSource(robot_ip, robot=robot, fields=fields, batch_seconds=self._batch_seconds())

    def _batch_seconds(self) -> float:
        """Time span of the samples that are counted and published together."""
        return min(LONGEST_BATCH, 1.0 / float(self.value("publish_rate")))

    def _source(self) -> TelemetrySource:
        if self._given_source is not None:
            return self._given_source()
        if self.value("source") == "bag":
            return BagSource(self.value("bag"), real_time=True, batch_seconds=self._batch_seconds())
        return self.connect(self.value("robot_ip"), self._robot.name, LIVE_FIELDS)

    def _consume(self, batch: Telemetry) -> None:
        """A batch has arrived (reader thread, or the executor for joint_states)."""
        with self._lock:
            self._estimator.update(batch)
            self._health.received(batch)
            if not self._publishing.due(float(batch.time[-1])):
                return
        self._stamp = None if batch.stamp is None else int(batch.stamp[-1])
        self._show()

    def _show(self) -> None:
        """Publish where things stand."""
        with self._lock:
            snapshot = self._estimator.snapshot()
            calculator = self._estimator.calculator
        if snapshot is None:
            return
        stamp = self._now()
        if self._clock_topic is not None:
            self._clock_topic.publish(Clock(clock=stamp))
        self._topics.total(snapshot)
        if self._stamp is not None and self.value("source") == "rtde":
            self._health.published(self._stamp)
        self._topics.live(snapshot, stamp, calculator.joint_positions)
        with self._lock:
            done = self._follower.follow(snapshot)
        if done is not None:
            plan, measured = done
            self._topics.prediction(plan, stamp, measured, snapshot.channels)

    def _report(self) -> None:
        """Once a second: summary, diagnostics, counters to disk, a changed model file."""
        if self._reader is not None and self._reader.failure is not None:
            self.finish(1, self._reader.problem or "reading failed")
            return
        self._reload()
        with self._lock:
            snapshot = self._estimator.snapshot("summary")
            calculator, log_problem = self._estimator.calculator, self._estimator.log_problem
            save = self._estimator.saving()
        self._save(save)  # a slow disk holds up nobody else
        stamp = self._now()
        if snapshot is not None:
            self._topics.summary(snapshot, stamp, str(self._model.path))
        statuses = self._health.statuses(
            snapshot, self._reader, calculator, self._model, log_problem
        )
        self._diagnostics.publish(convert.diagnostics(stamp, statuses))

    def _save(self, save: Callable[[], None]) -> None:
        """Counters to disk; one that refuses is told of, and the estimator goes on."""
        try:
            save()
        except OSError as error:
            self._health.disk_problem = (
                f"{self.value('state_file')}: cannot be written ({error.strerror})"
            )
        else:
            self._health.disk_problem = None

    def _reload(self) -> None:
        """Take a model file that was replaced; one that cannot be used leaves the old in place."""
        before = self._model.problem
        model = self._model.replaced()
        if model is not None:
            try:
                with self._lock:
                    self._estimator.use_model(model)
                self.get_logger().info(f"loaded the new {self._model.path}")
            except UrEnergyError as error:
                self._model.problem = str(error)
        if self._model.problem not in (None, before):
            self.get_logger().warning(f"keeping the old model: {self._model.problem}")

    def _on_cycle(self, cycle: Cycle) -> None:
        self._topics.cycle(cycle, self._estimator.channels, self._now())

    def _on_joint_state(self, message: JointState) -> None:
        if not self._accepting:
            return
        batch = convert.telemetry_of(message, self._joints, self.value("effort_unit"))
        if batch is None:
            self._health.source_problem = (
                "joint_states lacks joints of the arm, velocities or a time stamp"
            )
            return
        self._health.source_problem = None
        self._consume(batch)

    def _on_reset(self, request: Any, response: Any) -> Any:
        with self._lock:
            self._estimator.reset("service call")
        response.success, response.message = True, "energy counters are zero"
        return response

    def _on_interval(self, request: Any, response: Any) -> Any:
        with self._lock:
            passed = self._estimator.read_interval()
        response.success = True
        response.message = json.dumps(interval(passed, self._estimator.channels, self._joints))
        return response

    def _on_start_cycle(self, request: Any, response: Any) -> Any:
        with self._lock:
            self._estimator.start_cycle()
        response.success, response.message = True, "a cycle starts with the next sample"
        return response

    def _on_plan(self, message: JointTrajectory) -> None:
        with self._lock:
            snapshot = self._estimator.snapshot("plan")
            calculator = self._estimator.calculator
            now, model = calculator.conditions, calculator.in_session()
            dynamics = model.dynamics(robot=self._robot, setup=now.setup)
        try:
            here = None if snapshot is None else snapshot.q
            plan = predict_energy(
                model,
                convert.plan_of(message, self._joints, here),
                dynamics=dynamics,
                temperature=now.temperature,
                speed_scaling=now.speed_scaling,
            )
        except UrEnergyError as error:
            self.get_logger().warning(f"no prediction: {error}")
            return
        with self._lock:
            self._follower.expect(plan)
        self._topics.prediction(plan, self._now(), None, self._estimator.channels)

    def _options(self) -> LiveOptions:
        value = self.value
        return LiveOptions(
            power=PowerOptions(
                method=value("method"),
                track_standby=value("track_standby"),
                standby_limit=value("standby_limit"),
                idle_power=value("idle_power") or None,
                gap_limit=value("gap_limit"),
            ),
            drift_alarm=value("drift_alarm"),
            drift_time=value("drift_time"),
            cycle_trigger=value("cycle_trigger") if value("source") != "joint_states" else "none",
            cycle_output=value("cycle_output"),
            state_file=Path(value("state_file")) if value("state_file") else None,
            cycle_log=Path(value("cycle_log")) if value("cycle_log") else None,
        )

    def _now(self) -> Time:
        """Stamp of the newest sample; the node's clock where samples carry no host time."""
        if self._stamp is None:
            return self.get_clock().now().to_msg()
        return convert.time_message(self._stamp)


def main() -> None:
    """Console script."""
    sys.exit(run_nodes(lambda: [EstimatorNode()]))


if __name__ == "__main__":
    main()
