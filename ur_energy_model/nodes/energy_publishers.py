"""Publishers of the estimator's topics below energy/."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.lifecycle import LifecyclePublisher
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import MarkerArray

from ur_energy_model import topics_and_services as topics
from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.live.cycles import Cycle
from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.energy_topics.arm_energies import energy_names, energy_values, stamped_order
from ur_energy_model.energy_topics.joint_interfaces import joint_interfaces
from ur_energy_model.energy_topics.numbers import number_topics, other_numbers, total_numbers
from ur_energy_model.energy_topics.statuses import (
    cycle_status,
    prediction_statuses,
    refusal_statuses,
    summary_statuses,
)
from ur_energy_model.nodes.conversions import SerializedJointStates, serialized_number
from ur_energy_model.nodes.diagnostics import diagnostic_array, ros_statuses
from ur_energy_model.nodes.dynamic_joint_states import DynamicJointStates
from ur_energy_model.nodes.plan_answer import PlanAnswer
from ur_energy_model.nodes.power_markers import PowerMarkers
from ur_energy_model.nodes.subscribers import has_subscribers
from ur_energy_model.telemetry.decimation import Decimator
from ur_energy_model.typing import Array

MARKER_RATE = 10.0
"""Rate of energy/markers [Hz]."""
ASKED_AGAIN = 0.1
"""Time after which it is asked again which topics have subscribers [s]: asking about all of them
takes longer than publishing one."""

AddPublisher: TypeAlias = Callable[[type, topics.Topic], LifecyclePublisher]


class EnergyPublishers:
    """Publishes the topics below energy/.

    Args:
        add_publisher: makes the publisher of a message type and a topic.
        joints: joint names, prefix included.
        frame: base frame of the arm.
    """

    def __init__(self, add_publisher: AddPublisher, joints: tuple[str, ...], frame: str) -> None:
        self._joints = joints
        self._power_markers = PowerMarkers(frame, len(joints))
        self._numbers = {
            topic.name: add_publisher(Float64, topic) for topic in number_topics(joints)
        }
        names = energy_names(joints)
        earlier = stamped_order(len(joints))
        self._energies = [
            (
                add_publisher(JointState, topic),
                order,
                SerializedJointStates([names[k] for k in order]),
            )
            for topic, order in (
                (topics.ENERGY, list(range(len(names)))),
                (topics.ENERGY_STAMPED, earlier),
            )
        ]
        self._summary = add_publisher(DiagnosticArray, topics.ENERGY_SUMMARY)
        self._cycle = add_publisher(DiagnosticArray, topics.ENERGY_CYCLE)
        self._prediction = add_publisher(DiagnosticArray, topics.ENERGY_PREDICTION)
        self._optimized = add_publisher(JointTrajectory, topics.OPTIMIZED_TRAJECTORY)
        self._markers = add_publisher(MarkerArray, topics.ENERGY_MARKERS)
        self._dynamic = DynamicJointStates()
        self._all_joints: LifecyclePublisher | None = None
        if self._dynamic.message_type is not None:
            self._all_joints = add_publisher(self._dynamic.message_type, topics.ENERGY_JOINTS)
        total = (topics.TOTAL_POWER.name, topics.TOTAL_ENERGY.name)
        self._of_total = {name: self._numbers[name] for name in total}
        self._live = [*self._numbers.values(), *(each[0] for each in self._energies), self._markers]
        if self._all_joints is not None:
            self._live.append(self._all_joints)
        self._heard: set[LifecyclePublisher] = set()
        self._asked = -math.inf
        self._markers_due = Decimator(MARKER_RATE)

    def publish_total(self, snapshot: Snapshot) -> None:
        """Publish power and energy of the whole arm; called first, to keep their latency low."""
        now = time.monotonic()
        if now - self._asked >= ASKED_AGAIN:
            self._asked = now
            self._heard = {each for each in self._live if has_subscribers(each)}
        if not self._heard.isdisjoint(self._of_total.values()):
            self._publish_numbers(total_numbers(snapshot))

    def publish_live(
        self, snapshot: Snapshot, stamp: Time, joint_positions: Callable[[Array], Array]
    ) -> None:
        """Publish the other topics at publish_rate (markers at MARKER_RATE).

        Topics without subscribers are skipped.

        Args:
            snapshot: present state of the estimator.
            stamp: time of its newest sample.
            joint_positions: joint origins [n, 3], m, of joint angles [n], rad.
        """
        heard = [each for each in self._energies if each[0] in self._heard]
        values = energy_values(snapshot) if heard else None
        for publisher, order, serialized in heard:
            assert values is not None
            publisher.publish(serialized(stamp, values[:, order]))
        if self._heard.intersection(self._numbers.values()).difference(self._of_total.values()):
            self._publish_numbers(other_numbers(snapshot, self._joints))
        if self._all_joints is not None and self._all_joints in self._heard:
            interfaces = joint_interfaces(snapshot, self._joints)
            self._all_joints.publish(self._dynamic.message(stamp, interfaces))
        if (
            snapshot.q is not None
            and self._markers in self._heard
            and self._markers_due.due(snapshot.time)
        ):
            columns, power = snapshot.channels, snapshot.power
            markers = self._power_markers.message(
                stamp,
                joint_positions(snapshot.q),
                power[columns.per_joint["electrical_power"]],
                float(power[columns.arm["total"]]),
            )
            self._markers.publish(markers)

    def publish_summary(self, snapshot: Snapshot, stamp: Time, model: str) -> None:
        """Publish energy/summary; `model` is the model in use, in words."""
        statuses = ros_statuses(summary_statuses(snapshot, self._joints, model))
        self._summary.publish(diagnostic_array(stamp, statuses))

    def publish_cycle(self, cycle: Cycle, channels: Channels, stamp: Time) -> None:
        """Publish energy/cycle of a finished cycle."""
        statuses = ros_statuses([cycle_status(cycle, channels)])
        self._cycle.publish(diagnostic_array(stamp, statuses))

    def publish_prediction(self, answer: PlanAnswer, stamp: Time) -> None:
        """Publish energy/prediction: the answer to a plan."""
        if answer.energy is None:
            statuses = refusal_statuses(answer.stamp, answer.refused)
        else:
            statuses = prediction_statuses(
                answer.stamp,
                answer.energy,
                self._joints,
                answer.measured,
                answer.channels,
                answer.optimized_energy,
                {"not_optimized": answer.not_optimized, "not_measured": answer.not_measured},
            )
        self._prediction.publish(diagnostic_array(stamp, ros_statuses(statuses)))

    def publish_optimized(self, trajectory: JointTrajectory) -> None:
        """Publish energy/optimized_trajectory."""
        self._optimized.publish(trajectory)

    def _publish_numbers(self, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            publisher = self._numbers[name]
            if publisher in self._heard:
                publisher.publish(serialized_number(value))
