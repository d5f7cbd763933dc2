"""EnergyMessages: what the estimator publishes below energy/, as messages for a bag."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model import topics_and_services as topics
from ur_energy_model.diagnostic_status import Status
from ur_energy_model.energy.live.cycles import Cycle
from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.energy_topics.arm_energies import energy_names, energy_values
from ur_energy_model.energy_topics.numbers import number_topics, other_numbers, total_numbers
from ur_energy_model.energy_topics.statuses import cycle_status, summary_statuses
from ur_energy_model.telemetry.bag.extra_messages import Messages
from ur_energy_model.telemetry.bag.layout import joint_state_template
from ur_energy_model.telemetry.bag.message_types import (
    DIAGNOSTIC_ARRAY,
    FLOAT64,
    JOINT_STATE,
    BagTopic,
    MessageType,
)
from ur_energy_model.telemetry.bag.standard_messages import encode_diagnostics, encode_numbers
from ur_energy_model.typing import Array


def bag_topic(topic: topics.Topic, kind: MessageType, namespace: str = "") -> BagTopic:
    """A topic of the estimator in a bag; the namespace has a leading slash."""
    return BagTopic(namespace + topic.absolute_name, kind, topic.latched)


CYCLE = bag_topic(topics.ENERGY_CYCLE, DIAGNOSTIC_ARRAY)


class EnergyMessages:
    """Collects snapshots, and encodes many of them at once.

    Args:
        joints: joint names, prefix included.
        model: path of the model file, for energy/summary.
        namespace: of the topics, with a leading slash; "" outside of any.
    """

    def __init__(self, joints: Sequence[str], model: str, namespace: str = "") -> None:
        self._joints, self._model = tuple(joints), model
        names = energy_names(joints)
        self._template = joint_state_template(names, (len(names),) * 3)
        self._energy = bag_topic(topics.ENERGY, JOINT_STATE, namespace)
        self._summary = bag_topic(topics.ENERGY_SUMMARY, DIAGNOSTIC_ARRAY, namespace)
        self._cycle = bag_topic(topics.ENERGY_CYCLE, DIAGNOSTIC_ARRAY, namespace)
        self._topics = {
            topic.name: bag_topic(topic, FLOAT64, namespace) for topic in number_topics(joints)
        }
        self._stamps: list[int] = []
        self._energies: list[Array] = []
        self._numbers: dict[str, list[tuple[int, float]]] = {}
        self._diagnostics: list[Messages] = []

    def __len__(self) -> int:
        return len(self._stamps)

    def keep(self, snapshot: Snapshot, stamp: int) -> None:
        """Keep what is published at publish_rate; `stamp` is the time of the sample [ns]."""
        self._stamps.append(stamp)
        self._energies.append(energy_values(snapshot).ravel())
        numbers = total_numbers(snapshot) | other_numbers(snapshot, self._joints)
        for name, value in numbers.items():
            self._numbers.setdefault(name, []).append((stamp, value))

    def keep_summary(self, snapshot: Snapshot, stamp: int) -> None:
        """Keep energy/summary."""
        statuses = summary_statuses(snapshot, self._joints, self._model)
        self._keep_statuses(self._summary, statuses, stamp)

    def keep_cycle(self, cycle: Cycle, snapshot: Snapshot, stamp: int) -> None:
        """Keep energy/cycle of a finished cycle."""
        self._keep_statuses(self._cycle, [cycle_status(cycle, snapshot.channels)], stamp)

    def take(self) -> list[Messages]:
        """Messages since the last call, by topic."""
        taken, self._diagnostics = self._diagnostics, []
        if self._stamps:
            stamp = np.array(self._stamps)
            payload = self._template.encode(stamp, np.stack(self._energies))
            taken.append(Messages(self._energy, stamp, payload))
        for name, rows in self._numbers.items():
            stamps, values = zip(*rows, strict=True)
            taken.append(
                Messages(self._topics[name], np.array(stamps), encode_numbers(np.array(values)))
            )
        self._stamps, self._energies, self._numbers = [], [], {}
        return taken

    def _keep_statuses(self, topic: BagTopic, statuses: Sequence[Status], stamp: int) -> None:
        payload = encode_diagnostics(stamp, statuses)
        self._diagnostics.append(Messages.single(topic, stamp, payload))
