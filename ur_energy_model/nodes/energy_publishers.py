# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Publishers of the estimator's topics below energy/.

Topics of publish_rate are serialized here, without messages of rclpy where that is
faster, and published by `send`; what each of them contains is in `energy.topics`.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from builtin_interfaces.msg import Duration, Time
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.lifecycle import LifecyclePublisher
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import ColorRGBA, Float64, Header
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import Marker, MarkerArray

from ur_energy_model import topics_and_services as topics
from ur_energy_model.energy.cycle_energies import Cycle
from ur_energy_model.energy.powers import Channels
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.energy.topics import (
    color,
    cycle_status,
    diameter,
    energy_names,
    energy_values,
    joint_interfaces,
    level_of,
    number_places,
    prediction_statuses,
    refusal_statuses,
    summary_statuses,
)
from ur_energy_model.nodes.plan_predictions import PlanAnswer
from ur_energy_model.nodes.ros import (
    SerializedJointStates,
    diagnostic_array,
    has_subscribers,
    ros_statuses,
    serialized_number,
    time_message,
)
from ur_energy_model.telemetry.source import Decimator
from ur_energy_model.typing import Array

TEXT_HEIGHT = 0.12
"""Size of the text with the total power [m]."""
TEXT_ABOVE = 0.25
"""Height of this text above the highest joint [m]."""


class PowerMarkers:
    """A sphere per joint, coloured by its power, and the total power as text above.

    The message is made once and then updated, because making Marker messages takes most
    of the time of a publication.

    Args:
        frame: name of the frame of the arm's base.
        joints: number of joints.
    """

    def __init__(self, frame: str, joints: int) -> None:
        common: dict[str, Any] = {"action": Marker.ADD, "lifetime": Duration(sec=2)}
        self._spheres = [
            Marker(ns="joint_power", id=i, type=Marker.SPHERE, **common)
            for i in range(joints)
        ]
        white = ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0)
        kind = Marker.TEXT_VIEW_FACING
        self._text = Marker(ns="total_power", type=kind, color=white, **common)
        self._text.scale.z = TEXT_HEIGHT
        self._array = MarkerArray(markers=[*self._spheres, self._text])
        for marker in self._array.markers:
            marker.header.frame_id = frame

    def message(
        self, stamp: Time, positions: Array, power: Array, total: float
    ) -> MarkerArray:
        """The updated message, which the next call updates again.

        Args:
            stamp: host time of the newest sample.
            positions: positions of the joints in the base frame [n, 3], m.
            power: electrical powers of the joints [n], W.
            total: power of the whole arm, W.
        """
        rows = zip(self._spheres, positions.tolist(), power.tolist(), strict=True)
        for sphere, place, watts in rows:
            level = level_of(watts)
            position = sphere.pose.position
            position.x, position.y, position.z = place
            size = diameter(level)
            scale = sphere.scale
            scale.x = size
            scale.y = size
            scale.z = size
            paint = sphere.color
            paint.r, paint.g, paint.b, paint.a = color(level)
        self._text.text = f"{total:.0f} W"
        heights = positions[:, 2]
        self._text.pose.position.z = float(heights.max()) + TEXT_ABOVE
        for marker in self._array.markers:
            marker.header.stamp = stamp
        return self._array


MARKER_RATE = 10.0  # rate of energy/markers [Hz]
CHECK_PERIOD = 0.25
"""Time between two checks which topics have subscribers [s]; a check of all topics takes
longer than one publication."""
ANSWER_REASONS = ("changed", "begins_away", "not_optimized", "not_measured")
"""Attributes of `PlanAnswer` that are published as texts."""
AddPublisher: TypeAlias = Callable[[type, topics.Topic], LifecyclePublisher]
_OF_BUS = {topics.BUS_POWER.name, topics.BUS_ENERGY.name}
"""Topics that are published only where the bus power is measured."""


class EnergyPublishers:
    """Publishes the topics below energy/, each of them only while it is subscribed.

    Args:
        add_publisher: makes a publisher of a message type and topic.
        joints: names of the joints with the prefix [n].
        frame: name of the frame of the arm's base, with the prefix.
    """

    def __init__(
        self, add_publisher: AddPublisher, joints: tuple[str, ...], frame: str
    ) -> None:
        self._joints = joints
        self._power_markers = PowerMarkers(frame, len(joints))
        places = number_places(joints)
        self._places = {topic.name: place for topic, place in places.items()}
        live: dict[topics.Topic, type] = dict.fromkeys(places, Float64)
        self._energies = SerializedJointStates(energy_names(joints))
        live[topics.ENERGY] = JointState
        self._live = {
            topic.name: add_publisher(kind, topic) for topic, kind in live.items()
        }
        self._summary = add_publisher(DiagnosticArray, topics.ENERGY_SUMMARY)
        self._cycle = add_publisher(DiagnosticArray, topics.ENERGY_CYCLE)
        self._prediction = add_publisher(DiagnosticArray, topics.ENERGY_PREDICTION)
        self.publish_optimized = add_publisher(
            JointTrajectory, topics.OPTIMIZED_TRAJECTORY
        ).publish
        self._live[topics.ENERGY_MARKERS.name] = add_publisher(
            MarkerArray, topics.ENERGY_MARKERS
        )
        with suppress(ImportError):
            self._control: Any = importlib.import_module("control_msgs.msg")
            publisher = add_publisher(
                self._control.DynamicJointState, topics.ENERGY_JOINTS
            )
            self._live[topics.ENERGY_JOINTS.name] = publisher
        self._subscribed: set[str] = set()
        self._checked = -math.inf
        self._markers_due = Decimator(MARKER_RATE)

    def messages(
        self,
        snapshots: Sequence[Snapshot],
        stamps: Sequence[int],
        place: Callable[[Array], Array],
    ) -> list[dict[str, bytes]]:
        """Serialized messages of the subscribed topics (markers at MARKER_RATE).

        Args:
            snapshots: powers and energies of each publication.
            stamps: host time of the newest sample of each [ns since the epoch].
            place: returns the joint origins in the base frame [n, 3], m, for joint angles
                [n], rad.

        Returns:
            Messages by topic, for each snapshot.
        """
        now = time.monotonic()
        if now - self._checked >= CHECK_PERIOD:
            self._checked = now
            self._subscribed = {
                name for name, each in self._live.items() if has_subscribers(each)
            }
        if not self._subscribed or not snapshots:
            return [{}] * len(snapshots)
        each = zip(snapshots, stamps, energy_values(snapshots), strict=True)
        return [self._serialized(place, *values) for values in each]

    def _serialized(
        self,
        place: Callable[[Array], Array],
        snapshot: Snapshot,
        nanoseconds: int,
        values: Array,
    ) -> dict[str, bytes]:
        """Messages of one snapshot, by topic.

        Args:
            place: function of the joint origins in the base frame, as for `messages`.
            snapshot: powers and energies.
            nanoseconds: host time of its newest sample, since the epoch.
            values: rows of `energy_values` for this snapshot: energies [J], powers [W]
                and standard uncertainties of the energies [J].
        """
        subscribed = self._subscribed
        found: dict[str, bytes] = {}
        by_row = values.tolist()
        for name in self._places.keys() & subscribed:
            if snapshot.bus_measured or name not in _OF_BUS:
                row, column = self._places[name]
                found[name] = serialized_number(by_row[row][column])
        if topics.ENERGY.name in subscribed:
            found[topics.ENERGY.name] = self._energies(nanoseconds, values)
        if topics.ENERGY_JOINTS.name in subscribed:
            message = self._joints_message(snapshot, nanoseconds)
            found[topics.ENERGY_JOINTS.name] = serialize_message(message)
        shown = topics.ENERGY_MARKERS.name in subscribed
        q = snapshot.q
        if shown and q is not None and self._markers_due.due(snapshot.time):
            joints = snapshot.power[snapshot.channels.per_joint["electrical_power"]]
            total = float(snapshot.power[snapshot.channels.arm["total"]])
            stamp = time_message(nanoseconds)
            markers = self._power_markers.message(stamp, place(q), joints, total)
            found[topics.ENERGY_MARKERS.name] = serialize_message(markers)
        return found

    def _joints_message(self, snapshot: Snapshot, nanoseconds: int) -> Any:
        """The DynamicJointState of a snapshot, where control_msgs is installed.

        Args:
            snapshot: powers and energies.
            nanoseconds: host time of its newest sample, since the epoch.
        """
        interfaces = joint_interfaces(snapshot, self._joints)
        control = self._control
        values: list[Any] = []
        for each in interfaces.values():
            entry = control.InterfaceValue(
                interface_names=list(each), values=list(each.values())
            )
            values.append(entry)
        return control.DynamicJointState(
            header=Header(stamp=time_message(nanoseconds)),
            joint_names=list(interfaces),
            interface_values=values,
        )

    def send(self, messages: Mapping[str, bytes]) -> None:
        """Publish serialized messages by topic; only while the node is active."""
        # Without the wrappers of rclpy, which check whether the node is active and take
        # as long as the publication.
        for name, message in messages.items():
            handle = self._live[name].handle
            with handle:
                handle.publish_raw(message)

    def publish_summary(self, snapshot: Snapshot, stamp: Time, model: str) -> None:
        """Publish energy/summary if it is subscribed.

        Args:
            snapshot: powers and energies now.
            stamp: host time of the newest sample.
            model: the model in use, in words.
        """
        if has_subscribers(self._summary):
            statuses = ros_statuses(summary_statuses(snapshot, self._joints, model))
            self._summary.publish(diagnostic_array(stamp, statuses))

    def publish_cycle(self, cycle: Cycle, channels: Channels) -> None:
        """Publish energy/cycle of a finished cycle, with the time of its end."""
        statuses = ros_statuses([cycle_status(cycle, channels)])
        self._cycle.publish(diagnostic_array(time_message(cycle.end), statuses))

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
                {key: getattr(answer, key) for key in ANSWER_REASONS},
            )
        self._prediction.publish(diagnostic_array(stamp, ros_statuses(statuses)))
