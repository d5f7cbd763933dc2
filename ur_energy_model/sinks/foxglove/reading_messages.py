"""ReadingMessages: what Foxglove gets of each reading, by WebSocket and in files alike.

Topics have the names, types and encodings that the estimator node and its bags have, so that the
same layouts fit. Two are Foxglove's own types: energy/markers (SceneUpdate instead of a
MarkerArray) and /tf (FrameTransforms).
"""

from __future__ import annotations

import numpy as np
from foxglove import messages as fox

from ur_energy_model import topics_and_services as topics
from ur_energy_model.diagnostic_status import ERROR, OK, WARN, Status
from ur_energy_model.energy_topics.bag_messages import EnergyMessages, bag_topic
from ur_energy_model.energy_topics.energy_bag import SUMMARY_RATE
from ur_energy_model.energy_topics.joint_interfaces import joint_interfaces
from ur_energy_model.sinks.arm_reading import ArmReading
from ur_energy_model.sinks.foxglove.arm_scene import ArmScene, foxglove_type
from ur_energy_model.telemetry.bag.extra_messages import Messages
from ur_energy_model.telemetry.bag.layout import dynamic_joint_state_template
from ur_energy_model.telemetry.bag.message_types import (
    DIAGNOSTIC_ARRAY,
    DYNAMIC_JOINT_STATE,
    STRING,
    BagTopic,
)
from ur_energy_model.telemetry.bag.standard_messages import encode_diagnostics, encode_text
from ur_energy_model.telemetry.decimation import Decimator
from ur_energy_model.telemetry.source import LinkStatus

JOINTS = bag_topic(topics.ENERGY_JOINTS, DYNAMIC_JOINT_STATE)
DIAGNOSTICS = bag_topic(topics.DIAGNOSTICS, DIAGNOSTIC_ARRAY)
ROBOT_DESCRIPTION = bag_topic(topics.ROBOT_DESCRIPTION, STRING)
SCENE = bag_topic(topics.ENERGY_MARKERS, foxglove_type(fox.SceneUpdate))
FRAMES = BagTopic("/tf", foxglove_type(fox.FrameTransforms))


class ReadingMessages:
    """Encodes the readings of one estimator, whose arm may change."""

    def __init__(self) -> None:
        self._arm: _Arm | None = None
        self._summarising = Decimator(SUMMARY_RATE)

    def of_reading(self, reading: ArmReading) -> list[Messages]:
        """All messages of a reading; the URDF only where the arm is new."""
        messages = []
        if self._arm is None or not self._arm.fits(reading):
            known = None if self._arm is None else self._arm.robot
            self._arm = _Arm(reading)
            if self._arm.scene is not None and self._arm.robot is not known:
                text = encode_text(self._arm.scene.urdf)
                messages.append(Messages.single(ROBOT_DESCRIPTION, reading.stamp, text))
        messages += self._arm.messages(reading, summary=self._summarising.due(reading.stamp * 1e-9))
        return messages


class _Arm:
    """Encodes the readings of one arm with one model."""

    def __init__(self, reading: ArmReading) -> None:
        self.robot, self._joints, self._model = reading.robot, reading.joints, reading.model
        self._energy = EnergyMessages(reading.joints, reading.model)
        groups = joint_interfaces(reading.snapshot, reading.joints)
        self._interfaces = dynamic_joint_state_template(
            {joint: tuple(values) for joint, values in groups.items()}
        )
        self.scene: ArmScene | None = None
        if self.robot is not None:
            self.scene = ArmScene(self.robot, reading.joints)

    def fits(self, reading: ArmReading) -> bool:
        """Whether a reading is of this arm and this model."""
        known = (self._joints, self._model)
        return self.robot is reading.robot and known == (reading.joints, reading.model)

    def messages(self, reading: ArmReading, *, summary: bool) -> list[Messages]:
        """All messages of a reading but the URDF."""
        stamp, snapshot = reading.stamp, reading.snapshot
        self._energy.keep(snapshot, stamp)
        if summary:
            self._energy.keep_summary(snapshot, stamp)
        for cycle in reading.cycles:
            self._energy.keep_cycle(cycle, snapshot, stamp)
        messages = self._energy.take()
        groups = joint_interfaces(snapshot, self._joints)
        values = np.array([[value for each in groups.values() for value in each.values()]])
        stamps = np.array([stamp])
        messages.append(Messages(JOINTS, stamps, self._interfaces.encode(stamps, values)))
        if summary:
            health = encode_diagnostics(stamp, [source_status(reading.arm, reading.link)])
            messages.append(Messages.single(DIAGNOSTICS, stamp, health))
        if self.scene is not None and snapshot.q is not None:
            columns, power = snapshot.channels, snapshot.power
            joints = power[columns.per_joint["electrical_power"]]
            total = float(power[columns.arm["total"]])
            frames, scene = self.scene.messages(stamp, snapshot.q, joints, total)
            messages.append(Messages.single(FRAMES, stamp, frames))
            messages.append(Messages.single(SCENE, stamp, scene))
        return messages


def source_status(arm: str, link: LinkStatus) -> Status:
    """State of the connection to an arm, for diagnostics."""
    values = {
        "reconnects": link.reconnects,
        "samples_lost": link.lost,
        "lost_s": link.lost_seconds,
        "duplicates": link.duplicates,
        "last_error": link.last_error or "none",
    }
    level = ERROR if link.problem else WARN if link.lost else OK
    text = link.problem or ("samples were lost" if link.lost else "samples arrive")
    return Status(f"{arm}: source", level, text, values)
