# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Writes the energy topics of a recording as a bag: `ur_energy estimate --bag`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ur_energy_model import topics_and_services as topics
from ur_energy_model.consistency.controller_constants import recorded_constants
from ur_energy_model.consistency.torque_field import TORQUE_FIELD, StatedUnit
from ur_energy_model.energy.cycle_energies import Cycle
from ur_energy_model.energy.live import LIVE_FIELDS, LiveEstimator, LiveOptions
from ur_energy_model.energy.powers import PowerOptions
from ur_energy_model.energy.recorded_torque import has_torques_only, with_known_torques
from ur_energy_model.energy.recording_energy import Rereading
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.energy.topics import (
    cycle_status,
    energy_names,
    energy_values,
    number_topics,
    numbers,
    summary_statuses,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.message_bag import MessageBag
from ur_energy_model.telemetry.bag.messages import (
    DIAGNOSTIC_ARRAY,
    FLOAT64,
    JOINT_STATE,
    BagTopic,
    Messages,
    MessageType,
    encode_diagnostics,
    encode_numbers,
    joint_state_template,
)
from ur_energy_model.telemetry.bag.metadata import custom_of_info
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.bag.writer import StampRule
from ur_energy_model.telemetry.samples import time_blocks
from ur_energy_model.telemetry.source import Decimator
from ur_energy_model.typing import Array, Progress

# EnergyMessages: what the estimator publishes below energy/, as messages for a bag.


def bag_topic(topic: topics.Topic, kind: MessageType, namespace: str = "") -> BagTopic:
    """A topic of the estimator in a bag; the namespace has a leading slash."""
    return BagTopic(namespace + topic.absolute_name, kind, topic.latched)


CYCLE = bag_topic(topics.ENERGY_CYCLE, DIAGNOSTIC_ARRAY)


class EnergyMessages:
    """Collects snapshots, and encodes many of them at once.

    Args:
        joints: joint names, prefix included.
        model: path of the model file, for energy/summary.
        namespace: namespace of the topics, with a leading slash; "" outside of any.
    """

    def __init__(self, joints: Sequence[str], model: str, namespace: str = "") -> None:
        self._joints = tuple(joints)
        self._model = model
        names = energy_names(joints)
        self._template = joint_state_template(names, (len(names),) * 3)
        self._energy = bag_topic(topics.ENERGY, JOINT_STATE, namespace)
        self._summary = bag_topic(topics.ENERGY_SUMMARY, DIAGNOSTIC_ARRAY, namespace)
        self._cycle = bag_topic(topics.ENERGY_CYCLE, DIAGNOSTIC_ARRAY, namespace)
        self._topics = {
            topic.name: bag_topic(topic, FLOAT64, namespace)
            for topic in number_topics(joints)
        }
        self._stamps: list[int] = []
        self._energies: list[Array] = []
        self._numbers: dict[str, list[tuple[int, float]]] = {}
        self._diagnostics: list[Messages] = []

    def __len__(self) -> int:
        return len(self._stamps)

    def keep(self, snapshot: Snapshot, stamp: int) -> None:
        """Keep the topics that are published at publish_rate, at the time of the sample [ns]."""
        self._stamps.append(stamp)
        values = energy_values([snapshot])[0]
        self._energies.append(values.ravel())
        for name, value in numbers(snapshot, self._joints, values).items():
            self._numbers.setdefault(name, []).append((stamp, value))

    def keep_summary(self, snapshot: Snapshot, stamp: int) -> None:
        """Keep energy/summary, at the time of the sample [ns]."""
        statuses = summary_statuses(snapshot, self._joints, self._model)
        payload = encode_diagnostics(stamp, statuses)
        self._diagnostics.append(Messages.single(self._summary, stamp, payload))

    def keep_cycle(self, cycle: Cycle, snapshot: Snapshot, stamp: int) -> None:
        """Keep energy/cycle of a finished cycle, whose header has the time of its end."""
        payload = encode_diagnostics(cycle.end, [cycle_status(cycle, snapshot.channels)])
        self._diagnostics.append(Messages.single(self._cycle, stamp, payload))

    def take(self) -> list[Messages]:
        """Messages since the last call, by topic."""
        taken = self._diagnostics
        self._diagnostics = []
        if self._stamps:
            stamp = np.array(self._stamps)
            payload = self._template.encode(stamp, np.stack(self._energies))
            taken.append(Messages(self._energy, stamp, payload))
        for name, rows in self._numbers.items():
            stamps, values = zip(*rows, strict=True)
            payload = encode_numbers(np.array(values))
            taken.append(Messages(self._topics[name], np.array(stamps), payload))
        self._stamps = []
        self._energies = []
        self._numbers = {}
        return taken


SUMMARY_RATE = 1.0  # rate of energy/summary [Hz], as the estimator publishes it
CHUNK_MESSAGES = 50  # messages of a topic that are encoded together


def write_energy_bag(
    model: EnergyModel,
    recording: Path,
    bag: Path,
    *,
    name: str | None = None,
    model_path: str = "",
    rate: float = 50.0,
    same_arm: bool = False,
    effort_unit: StatedUnit = "auto",
    progress: Progress | None = None,
) -> None:
    """Write the topics that the estimator publishes, for a recording, at the times of its samples.

    The standby power is the estimate from the whole recording, as in `estimate_energy`.
    Topics are in the namespace of the recording, and joint names have its prefix. Cycles
    are those that `CycleDetector` finds by itself.

    Args:
        model: model of the arm.
        recording: bag of telemetry.
        bag: directory to make; it must not exist.
        name: name of the storage file; None for the name of the directory.
        model_path: path of the model file, for energy/summary.
        rate: rate of the live topics [Hz].
        same_arm: whether the recording is of the arm of the model, whatever serial
            numbers and constants are (see `model_of_arm`).
        effort_unit: content of actual_current_as_torque, see `PowerOptions`.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: the recording or the model cannot be used.
        OSError: the disk fails.
    """
    cycles: list[Cycle] = []
    robot = load_robot(model.robot)
    constants = recorded_constants(recording, robot)
    power = PowerOptions(effort_unit=effort_unit)
    options = LiveOptions(power=power, same_arm=same_arm, constants=constants)
    batches = Rereading(lambda: iterate_bag(recording, LIVE_FIELDS))
    first = next(iter(batches))
    info = first.info
    stamps = StampRule()
    joints = [info.tf_prefix + joint for joint in robot.joint_names]
    messages = EnergyMessages(joints, model_path, info.namespace)
    estimator = LiveEstimator(model, robot, options, on_cycle=cycles.append)
    if has_torques_only(recording):
        wanted = (*LIVE_FIELDS, TORQUE_FIELD)
        read = with_known_torques(
            recording, lambda: iterate_bag(recording, wanted), estimator.calculator
        )
        batches = Rereading(read)
    estimator.calculator.follow_session(batches)
    publishing = Decimator(rate)
    summarising = Decimator(SUMMARY_RATE)
    custom = custom_of_info(info, (), host_clock=first.stamp is not None)
    stamp = 0  # host time of the last sample [ns]
    due = True  # whether the last samples are in a published message

    def publish() -> None:
        """Keep the messages that the live estimator would publish now."""
        snapshot = estimator.snapshot()
        if snapshot is None:
            return
        messages.keep(snapshot, stamp)
        if summarising.due(snapshot.time) and (summary := estimator.snapshot("summary")):
            messages.keep_summary(summary, stamp)
        for cycle in cycles:
            messages.keep_cycle(cycle, snapshot, stamp)
        cycles.clear()

    with MessageBag(bag, bag.name if name is None else name, custom) as out:
        for batch in batches:
            host = stamps.stamps(batch)
            for rows in time_blocks(batch.time, 1.0 / rate):
                estimator.update(batch.cut(rows))
                stamp = int(host[rows.stop - 1])
                if due := publishing.due(float(batch.time[rows.stop - 1])):
                    publish()
                if len(messages) >= CHUNK_MESSAGES:
                    out.write(messages.take())
            if progress is not None:
                progress(float("nan"), f"writing energies: {estimator.samples} samples")
        if not due:  # the last samples may not fill a period
            publish()
        out.write(messages.take())
