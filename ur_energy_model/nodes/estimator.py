# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""estimator_node: publishes live power and energy of an arm.

Two threads share the estimator. Its lock is held only while a batch of samples or a
reading is processed:

- The thread that reads (`_consume`) integrates each batch and publishes at publish_rate.
- The executor's thread answers services, and once a second (`_report`) publishes summary
  and diagnostics, saves the counters, and uses changed and learned models.

Plans are predicted in a thread of their own (`plan_predictions`). What rooms do beside
the estimator, such as learning, is in their companions (`estimated_arm`).
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from builtin_interfaces.msg import Time
from rclpy.lifecycle import LifecyclePublisher
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from ur_energy_model import topics_and_services as names
from ur_energy_model.consistency.arm_samples import FIELDS as ARM_TYPE_FIELDS
from ur_energy_model.consistency.effort_stream import EFFORT, EffortStream
from ur_energy_model.energy.cycle_energies import Cycle
from ur_energy_model.energy.live import LIVE_FIELDS, LiveEstimator
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.energy.source_reader import SourceReader
from ur_energy_model.errors import ControllerError, InputError, UrEnergyError
from ur_energy_model.model.robots import ANY_ROBOT, load_robot
from ur_energy_model.model.urdf_export import urdf
from ur_energy_model.nodes.energy_publishers import EnergyPublishers
from ur_energy_model.nodes.estimated_arm import (
    EstimatedArm,
    EstimatorCompanion,
    check_parameters,
    companions,
    live_options,
    names_the_arm,
)
from ur_energy_model.nodes.estimator_health import EstimatorHealth
from ur_energy_model.nodes.lines import WARN
from ur_energy_model.nodes.managed_node import ManagedNode
from ur_energy_model.nodes.model_line import model_line
from ur_energy_model.nodes.parameters import SHORTEST_BATCH, EstimatorParameters
from ur_energy_model.nodes.plan_messages import header_of
from ur_energy_model.nodes.plan_predictions import PlanAnswer, PlanPredictions
from ur_energy_model.nodes.process import run_nodes
from ur_energy_model.nodes.ros import PolledSubscription, time_message
from ur_energy_model.nodes.sources import JointStatesSource
from ur_energy_model.sinks.live_arm import SinkGroup, estimator_actions, estimator_reading
from ur_energy_model.sinks.options import common_options
from ur_energy_model.sinks.sink import ArmReading, open_sinks
from ur_energy_model.telemetry.bag.source import BagSource
from ur_energy_model.telemetry.clock import HOST_CLOCK
from ur_energy_model.telemetry.joint_states import JointStateStream
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, with_host_time
from ur_energy_model.telemetry.source import Decimator, LinkStatus, TelemetrySource

SWITCH_INTERVAL = 0.001
"""Time after which Python interrupts a thread that computes, so that another may run [s].

While a plan is optimized, the reading thread has to regain the interpreter some ten times
for each batch, and must be done before the next batch. With a shorter time, other threads
would interrupt each batch as well, which takes a twelfth of the processor time in
cell_node."""


class EstimatorNode(ManagedNode):
    """Integrates energy and publishes it, in the thread that reads the packets.

    A batch of packets covers several publish periods. Their publications are spread over
    the time until the next batch; publications within SHORTEST_BATCH are sent together,
    because waking up for each publication would take half as much processor time again.
    Packets that arrive meanwhile wait in the socket, so that none is lost.

    Args:
        source: makes the source of samples, for nodes that share one; None to take it
            from the parameters.
        options: further arguments of rclpy's node.
    """

    sole_topic = names.ENERGY

    def __init__(
        self, source: Callable[[], TelemetrySource] | None = None, **options: Any
    ) -> None:
        super().__init__("estimator", **options)
        self._given_source = source
        self._lock = threading.Lock()
        self._reader: SourceReader | None = None
        self._companions: tuple[EstimatorCompanion, ...] = ()
        self._arm: EstimatedArm | None = None  # None before the arm is known
        self._last_batch: Telemetry | None = None  # batch whose samples sinks show
        self._stamp: int | None = None  # stamp of the newest published sample [ns]

    @property
    def robot_name(self) -> str | None:
        """Name of the arm; None before it is known."""
        return None if self._arm is None else self._arm.robot.name

    @property
    def fields(self) -> tuple[str, ...]:
        """RTDE fields that the node requests from a controller, once it is configured."""
        wanted = [*LIVE_FIELDS, *ARM_TYPE_FIELDS]
        for companion in self._companions:
            wanted += companion.fields
        return tuple(dict.fromkeys(wanted))

    @property
    def parameters(self) -> EstimatorParameters:
        """Values of the node's own parameters."""
        return self.given.of(EstimatorParameters)

    def open(self) -> None:
        """Load the model if the arm is known; make topics and services.

        Raises:
            UrEnergyError: the parameters, the model file, the state file or a parameter
                of a room cannot be used.
        """
        given = self.parameters
        check_parameters(given)
        self._companions = companions(self.given, self.lines)
        self.on_discard(self._close_arm)
        arm: EstimatedArm | None = None
        if names_the_arm(given, self._companions):
            arm = self._make_arm(given.robot_model)
        self._arm = arm
        self._stamp = None
        robot = load_robot(ANY_ROBOT) if arm is None else arm.robot
        self._joints = tuple(given.tf_prefix + joint for joint in robot.joint_names)
        self._energy = EnergyPublishers(
            self.add_publisher, self._joints, f"{given.tf_prefix}base"
        )
        self._health = EstimatorHealth(given, self._companions, self.lines)
        self._description_topic: LifecyclePublisher | None = None
        self._clock_topic: LifecyclePublisher | None = None
        self._joint_states: PolledSubscription | None = None
        if given.publish_robot_description:
            self._description_topic = self.add_publisher(String, names.ROBOT_DESCRIPTION)
        if given.source == "bag" and self.get_parameter("use_sim_time").value:
            self._clock_topic = self.add_publisher(Clock, names.CLOCK)
        if given.source == "joint_states":
            topic = names.DRIVER_JOINT_STATES
            self._joint_states = self.add_polled_subscription(JointState, topic)
        self._actions = estimator_actions(self._estimator, self._lock, self._joints)
        self.add_service(names.RESET_ENERGY, self._reset_energy)
        self.add_service(names.READ_INTERVAL, self._read_interval)
        self.add_service(names.START_CYCLE, self._start_cycle)
        self.add_subscription(
            JointTrajectory, names.PLANNED_TRAJECTORY, self._on_plan, raw=True
        )
        self._plans = PlanPredictions(
            self._joints,
            self._lock,
            on_answer=self._on_answer,
            on_trajectory=self._energy.publish_optimized,
        )
        self.on_discard(self._plans.stop)
        self.add_report(self._report)

    def start(self) -> None:
        """Open the sinks and start reading samples.

        Raises:
            InputError: a sink cannot be opened.
            MissingPackageError: the package of a sink is not installed.
        """
        given = self.parameters
        self._publishing = Decimator(given.publish_rate)
        self._health.begin()
        sys.setswitchinterval(SWITCH_INTERVAL)
        opened = open_sinks(self.given, self._actions, given.state_file)
        self._sinks = SinkGroup(opened, common_options(self.given).sink_rate)
        if self._arm is not None:
            self._describe(self._arm)
        self._reader = SourceReader(
            self._source,
            self._consume,
            loop=given.source == "bag" and given.loop,
            clock=HOST_CLOCK if given.source == "rtde" else None,
            on_end=self._finish_bag,
        )
        self._reader.start()

    def stop(self) -> None:
        """Stop reading samples; save the counters and what was learned."""
        reader = self._reader
        self._reader = None
        if reader is not None:
            reader.stop()
            self._sinks.close()
        arm = self._arm
        snapshot = None
        if arm is not None:
            with self._lock:
                save = arm.estimator.prepare_save()
                snapshot = arm.estimator.snapshot("end")
            save()
            for companion in self._companions:
                companion.stop()
        self._health.end(reader, arm, snapshot)

    def on_parameter(self, name: str) -> None:
        """Apply a parameter that may change while the node is configured."""
        if self._arm is not None:
            with self._lock:
                self._arm.estimator.set_options(live_options(self.parameters))

    def _make_arm(self, robot: str) -> EstimatedArm:
        """The arm, with a line about its model.

        Args:
            robot: name or robot file; empty for the robot of the model file.

        Raises:
            UrEnergyError: see `EstimatedArm`.
        """
        arm = EstimatedArm(
            self.parameters,
            robot,
            self._companions,
            self.lines,
            self._lock,
            self._on_cycle,
        )
        self.lines.event("model", *model_line(arm.path, arm.base))
        return arm

    def _identified(self, info: RecordingInfo) -> EstimatedArm:
        """Start estimating once the source names the arm of the samples.

        Args:
            info: provenance of the first samples.

        Raises:
            ControllerError: the controller does not name its arm; it may do so later, so
                that the reader connects again.
            InputError: a bag does not name its arm, or the package has no model of the
                arm.
        """
        remedy = "name the arm in robot_model, such as ur5e"
        if info.robot is None and self.parameters.source == "bag":
            raise InputError(str(self.parameters.bag), "does not name its arm", remedy)
        if info.robot is None:
            problem = "its dashboard server does not name the arm"
            raise ControllerError(self.parameters.robot_ip, problem, remedy)
        if load_robot(info.robot).joint_names != load_robot(ANY_ROBOT).joint_names:
            raise InputError(info.source, f"is a {info.robot} with other joints", remedy)
        arm = self._make_arm(info.robot)
        self._arm = arm
        self._describe(arm)
        return arm

    def _close_arm(self) -> None:
        """Release the state file and end the companions."""
        arm = self._arm
        self._arm = None
        if arm is not None:
            arm.close()

    def _reset_energy(self) -> str:
        """Service ~/reset_energy: begin to count from zero."""
        self._actions.reset("service call")
        problem = self._estimator().disk_problem
        text = "energy counters are zero"
        return text if problem is None else f"{text}, but not saved: {problem}"

    def _read_interval(self) -> str:
        """Service ~/read_interval: energies since the last call, as JSON."""
        return json.dumps(self._actions.read_interval())

    def _start_cycle(self) -> str:
        """Service ~/start_cycle: end the present cycle of work and begin another one."""
        estimator = self._estimator()
        with self._lock:
            estimator.start_cycle()
        return "a cycle starts with the next sample"

    def _describe(self, arm: EstimatedArm) -> None:
        """Publish robot_description, a latched topic, if that is wanted."""
        if self._description_topic is not None:
            prefix = self.parameters.tf_prefix
            self._description_topic.publish(String(data=urdf(arm.robot, prefix=prefix)))

    def _estimator(self) -> LiveEstimator:
        """The live estimator, for services.

        Raises:
            UrEnergyError: the arm is not known yet.
        """
        if self._arm is None:
            raise UrEnergyError("the arm is not known yet: no samples have arrived")
        return self._arm.estimator

    def _source(self) -> TelemetrySource:
        """Make the source of samples: a driver's topic, a bag, or the controller."""
        given = self.parameters
        if self._given_source is not None:
            return self._given_source()
        if self._joint_states is not None:
            return self._joint_states_source(self._joint_states)
        seconds = given.batch_seconds
        if given.bag is not None and given.source == "bag":
            return BagSource(given.bag, real_time=True, batch_seconds=seconds)
        return RtdeSource(
            given.robot_ip,
            robot=self.robot_name,
            fields=self.fields,
            batch_seconds=seconds,
        )

    def _joint_states_source(self, subscription: PolledSubscription) -> JointStatesSource:
        """The source of a driver's joint_states, whose problems the health reports.

        Args:
            subscription: subscription to the topic of the driver.
        """
        given = self.parameters
        assert self._arm is not None, "check_parameters requires the arm for joint_states"
        required = given.method == "current"
        stream = JointStateStream(
            self._joints, EFFORT, require_effort=required, source="joint_states"
        )
        efforts = EffortStream(
            self._arm.base,
            self._arm.robot,
            given.effort_unit,
            required=required,
            source=subscription.topic,
        )
        source = JointStatesSource(
            subscription, stream, efforts, given.batch_seconds, self.lines
        )
        self._health.details = source.details
        self._health.doubt = lambda: source.doubt
        return source

    def _consume(self, batch: Telemetry) -> None:
        """Integrate a batch and publish (called in the reader thread).

        The samples pass these modules on their way to the topic:

        - `energy.live` collects them, with `telemetry.samples`.
        - `energy.calculator` leaves out impossible samples (`telemetry_checks`), finds
          gaps (`meter`) and computes `powers` from the model (`energy_model`, `drives`,
          `friction`) and the standby power of the `session`.
        - `energy.counters` integrate the powers, and `energy.cycles` finds cycles of
          work.
        - `energy.topics` takes the numbers from a snapshot, and `energy_publishers` hands
          them to `ros`, at the times of `telemetry.source.Decimator`.

        Args:
            batch: samples that follow the previous batch.
        """
        arrived = time.monotonic()
        arm = self._arm
        if arm is None:
            arm = self._identified(batch.info)
        if batch.stamp is None:  # of a bag that does not state when it was recorded
            batch = with_host_time(batch, HOST_CLOCK.stamp())
        parts, missed = self._publishing.parts(batch.time)
        ends: list[int] = []  # numbers of the samples up to each publication
        for part in parts:
            newest = float(batch.time[part.stop - 1])
            if self._publishing.due(newest):
                ends.append(part.stop)
        with self._lock:
            arm.estimator.update(batch)
            snapshots = arm.estimator.snapshots(ends) if ends else []
        # The first samples of all may have no snapshot yet.
        without_snapshot = len(ends) - len(snapshots)
        ends = ends[without_snapshot:]
        reader = self._reader
        self._health.record_missed(
            missed + without_snapshot,
            float(batch.time[-1] - batch.time[0]),
            0.0 if reader is None else reader.waited,
        )
        self._health.record_batch(batch)
        arm.take(batch, 1 if reader is None else reader.attempts)
        stamps: list[int | None] = [None] * len(ends)
        if batch.stamp is not None:
            stamps = [int(batch.stamp[end - 1]) for end in ends]
        messages = self._messages(snapshots, stamps)
        if not self._publish_paced(messages, stamps, arrived):
            return
        if snapshots:
            self._plans.follow(snapshots[-1])
        if self._sinks.sinks:
            self._last_batch = batch
            with self._lock:
                self._sinks.offer(float(batch.time[-1]), self._reading)

    def _publish_paced(
        self,
        messages: Sequence[dict[str, bytes]],
        stamps: Sequence[int | None],
        arrived: float,
    ) -> bool:
        """Publish what a batch has, spread over the time until the next batch.

        Args:
            messages: serialized, by topic, for each publication.
            stamps: host time of the newest sample of each publication [ns].
            arrived: when the batch arrived, by the monotonic clock [s].

        Returns:
            Whether all were published; False if the node was stopped meanwhile.
        """
        # After a delay, a batch has more publications than fit into its time at
        # publish_rate: they follow faster, so that the delay does not last.
        share = self.parameters.batch_seconds / max(len(messages), 1)
        period = min(self._publishing.period, share)
        together = max(1, round(SHORTEST_BATCH / period))
        for k, (each, stamp) in enumerate(zip(messages, stamps, strict=True)):
            if k % together == 0:
                if k:
                    time.sleep(max(arrived + k * period - time.monotonic(), 0.0))
                if self._reader is None or not self.context.ok():  # stopped meanwhile
                    return False
            self._publish(each, stamp)
        return True

    def _finish_bag(self) -> None:
        """Publish the counters after the last sample of a bag."""
        arm = self._arm
        snapshot = None
        if arm is not None:
            with self._lock:
                snapshot = arm.estimator.snapshot()
        if snapshot is not None:
            (messages,) = self._messages([snapshot], [self._stamp])
            self._publish(messages, self._stamp)
            self._plans.follow(snapshot)
        if self._last_batch is not None:
            with self._lock:
                self._sinks.offer_at_once(self._reading)

    def _reading(self) -> ArmReading | None:
        """The present reading for the sinks; the estimator's lock is held.

        Returns:
            The reading; None before the arm is known and has sent a batch.
        """
        arm = self._arm
        batch = self._last_batch
        if arm is None or batch is None:
            return None
        link = LinkStatus() if self._reader is None else self._reader.link
        return estimator_reading(
            arm.estimator, "sinks", batch, link, arm.words, self._joints
        )

    def _messages(
        self, snapshots: Sequence[Snapshot], stamps: Sequence[int | None]
    ) -> list[dict[str, bytes]]:
        """The topics of publish_rate, serialized.

        Args:
            snapshots: powers and energies of each publication.
            stamps: host time of its newest sample [ns]; None for the present time.
        """
        positions = self._estimator().calculator.joint_positions
        return self._energy.messages(
            snapshots, list(map(self._nanoseconds, stamps)), positions
        )

    def _publish(self, messages: dict[str, bytes], stamp: int | None) -> None:
        """Send one publication of all topics, and /clock where a bag leads the time.

        Args:
            messages: serialized, by topic.
            stamp: host time of its newest sample [ns]; None for the present time.
        """
        self._stamp = stamp
        if self._clock_topic is not None:
            self._clock_topic.publish(Clock(clock=self._now()))
        self._energy.send(messages)
        self._health.record_publication(stamp)

    def _report(self) -> None:
        """Publish summary and diagnostics, save counters, use changed and learned models."""
        reader = self._reader
        arm = self._arm
        health = self._health
        snapshot = None
        failure = None if reader is None else reader.failure
        if failure is not None:
            if isinstance(failure, UrEnergyError):
                self.finish(1, self.words(failure))
            else:
                self.on_unexpected(failure, "thread 'telemetry reader'")
            return
        if arm is not None:
            if arm.reload():
                self.lines.event("model", *model_line(arm.path, arm.base))
            arm.poll()
            with self._lock:
                snapshot = arm.estimator.snapshot("summary")
                save = arm.estimator.prepare_save()
            save()  # without the lock: a slow disk must not delay the samples
            arm.write_lines(snapshot)
        stamp = self._now()
        if snapshot is not None and arm is not None:
            shown = replace(snapshot, arm_warning=arm.arm_warning)
            self._energy.publish_summary(shown, stamp, arm.words)
        sinks = health.sinks(self._sinks.statuses)
        self.publish_parts(
            health.parts(snapshot, reader, arm) | sinks, health.hardware, stamp
        )
        health.write_lines(reader, self.robot_name)

    def _on_cycle(self, cycle: Cycle) -> None:
        """Publish a complete cycle and hand it to the sinks; the lock is held."""
        self._sinks.note_cycle(cycle)
        self._energy.publish_cycle(cycle, self._estimator().channels)

    def _on_plan(self, message: bytes) -> None:
        """Predict a planned trajectory.

        Args:
            message: serialized JointTrajectory.
        """
        if self._arm is None:
            refused = "the arm is not known yet: no samples have arrived"
            self._on_answer(PlanAnswer(header_of(message), refused=refused))
        else:
            self._plans.submit(message, self._arm.estimator)

    def _on_answer(self, answer: PlanAnswer) -> None:
        """Publish what is known of a plan, with a line where something is wrong with it.

        Args:
            answer: the first one to the plan, or a later one with more.
        """
        self._energy.publish_prediction(answer, self._now())
        if answer.refused:
            self.lines.event("plan", WARN, f"no prediction: {answer.refused}")
            return
        is_first = not (answer.not_optimized or answer.optimized_energy)
        if is_first:
            for text in filter(None, (answer.changed, answer.begins_away)):
                self.lines.event("plan", WARN, text)

    def _now(self) -> Time:
        """Stamp of the newest sample published, or time of the node's clock."""
        return time_message(self._nanoseconds(self._stamp))

    def _nanoseconds(self, stamp: int | None) -> int:
        """A stamp [ns since the epoch], None for the time of the node's clock."""
        return self.get_clock().now().nanoseconds if stamp is None else stamp


def main() -> int:
    """Console script."""
    return run_nodes(lambda: [EstimatorNode()])
