# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Messages for Foxglove: the readings of an arm, encoded as the topics that a node publishes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from foxglove import messages as fox

from ur_energy_model import topics_and_services as topics
from ur_energy_model.energy.energy_bag import (
    SUMMARY_RATE,
    EnergyMessages,
    bag_topic,
)
from ur_energy_model.energy.topics import joint_interfaces
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.sinks.foxglove.scene import ArmScene
from ur_energy_model.sinks.sink import ArmReading
from ur_energy_model.telemetry.bag.messages import (
    DIAGNOSTIC_ARRAY,
    DYNAMIC_JOINT_STATE,
    ERROR,
    OK,
    STRING,
    WARN,
    BagTopic,
    Messages,
    MessageType,
    Status,
    dynamic_joint_state_template,
    encode_diagnostics,
    encode_text,
)
from ur_energy_model.telemetry.source import Decimator, LinkStatus


def foxglove_type(
    message: type[fox.SceneUpdate] | type[fox.FrameTransforms],
) -> MessageType:
    """Type of the messages of a class of Foxglove's SDK, with its protobuf schema.

    Args:
        message: the class.
    """
    schema = message.get_schema()
    return MessageType(schema.name, schema.data, "", schema.encoding, "protobuf")


JOINTS = bag_topic(topics.ENERGY_JOINTS, DYNAMIC_JOINT_STATE)
DIAGNOSTICS = bag_topic(topics.DIAGNOSTICS, DIAGNOSTIC_ARRAY)
ROBOT_DESCRIPTION = bag_topic(topics.ROBOT_DESCRIPTION, STRING)
SCENE = bag_topic(topics.ENERGY_MARKERS, foxglove_type(fox.SceneUpdate))
FRAMES = BagTopic("/tf", foxglove_type(fox.FrameTransforms))


class ReadingMessages:
    """Encodes the readings of one estimator, whose arm and model may change.

    The encoders belong to one arm with one model; the first reading of another arm or
    model replaces them.
    """

    def __init__(self) -> None:
        self._robot: RobotDescription | None = None
        self._labels: tuple[tuple[str, ...], str] | None = None  # joints and model
        self._scene: ArmScene | None = None
        self._summarising = Decimator(SUMMARY_RATE)

    def of_reading(self, reading: ArmReading) -> list[Messages]:
        """All messages of a reading.

        The URDF of the arm is among the messages only where the arm is new, and summary
        and diagnostics once a second.

        Args:
            reading: reading of the arm.
        """
        stamp = reading.stamp
        snapshot = reading.snapshot
        interfaces = joint_interfaces(snapshot, reading.joints)
        messages = self._prepare_for(reading, interfaces)
        self._energy.keep(snapshot, stamp)
        summary = self._summarising.due(stamp * 1e-9)
        if summary:
            self._energy.keep_summary(snapshot, stamp)
        for cycle in reading.cycles:
            self._energy.keep_cycle(cycle, snapshot, stamp)
        messages += self._energy.take()
        values: list[float] = []
        for of_joint in interfaces.values():
            values += of_joint.values()
        stamps = np.array([stamp])
        encoded_joints = self._template.encode(stamps, np.array([values]))
        messages.append(Messages(JOINTS, stamps, encoded_joints))
        if summary:
            health = encode_diagnostics(stamp, [source_status(reading.arm, reading.link)])
            messages.append(Messages.single(DIAGNOSTICS, stamp, health))
        return messages + self._of_scene(reading)

    def _of_scene(self, reading: ArmReading) -> list[Messages]:
        """The moving arm; nothing where its geometry or its positions are unknown."""
        snapshot = reading.snapshot
        if self._scene is None or snapshot.q is None:
            return []
        columns = snapshot.channels
        joints = snapshot.power[columns.per_joint["electrical_power"]]
        total = float(snapshot.power[columns.arm["total"]])
        frames, scene = self._scene.messages(reading.stamp, snapshot.q, joints, total)
        return [
            Messages.single(FRAMES, reading.stamp, frames),
            Messages.single(SCENE, reading.stamp, scene),
        ]

    def _prepare_for(
        self, reading: ArmReading, interfaces: Mapping[str, Mapping[str, float]]
    ) -> list[Messages]:
        """Make the encoders for an arm or a model that is new.

        Args:
            reading: reading of the arm.
            interfaces: values of the joints, whose names are in the messages.

        Returns:
            The URDF of a new arm; nothing for a known one.
        """
        robot = reading.robot
        labels = (reading.joints, reading.model)
        if self._labels == labels and self._robot is robot:
            return []
        self._labels = labels
        self._energy = EnergyMessages(*labels)
        groups = {joint: tuple(values) for joint, values in interfaces.items()}
        self._template = dynamic_joint_state_template(groups)
        self._scene = None if robot is None else ArmScene(robot, reading.joints)
        is_new = self._robot is not robot
        self._robot = robot
        if self._scene is None or not is_new:
            return []
        text = encode_text(self._scene.urdf)
        return [Messages.single(ROBOT_DESCRIPTION, reading.stamp, text)]


def source_status(arm: str, link: LinkStatus) -> Status:
    """State of the connection to an arm, for diagnostics."""
    values = {
        "reconnects": link.reconnects,
        "samples_lost": link.losses.samples,
        "lost_s": link.losses.seconds,
        "duplicates": link.duplicates,
        "skipped": link.skipped,
        "last_error": link.last_error or "none",
    }
    level = OK
    text = "samples arrive"
    if link.problem is not None:
        level = ERROR
        text = link.problem
    elif link.losses.samples:
        level = WARN
        text = "samples were lost"
    return Status(f"{arm}: source", level, text, values)
