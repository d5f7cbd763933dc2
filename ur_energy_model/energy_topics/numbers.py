"""Values of the std_msgs/Float64 topics below energy/."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ur_energy_model import topics_and_services as topics
from ur_energy_model.energy.live.snapshot import Snapshot

PARTS: dict[str, tuple[topics.Topic, topics.Topic]] = {
    "standby": (topics.STANDBY_POWER, topics.STANDBY_ENERGY),
    "driver": (topics.DRIVERS_POWER, topics.DRIVERS_ENERGY),
    "regeneration": (topics.REGENERATION_POWER, topics.REGENERATION_ENERGY),
}
"""Topics of power and energy by channel; with those of the joints they sum to the total's."""


def number_topics(joints: Sequence[str]) -> tuple[topics.Topic, ...]:
    """All of these topics, for the joint names of an arm, prefix included."""
    return (
        topics.TOTAL_POWER,
        topics.TOTAL_ENERGY,
        *_joint_topics(tuple(joints)).values(),
        topics.BUS_POWER,
        topics.BUS_ENERGY,
        *(topic for both in PARTS.values() for topic in both),
        topics.RESIDUAL_POWER,
    )


@lru_cache(maxsize=8)
def _joint_topics(joints: tuple[str, ...]) -> dict[str, topics.Topic]:
    """Topics of the powers of all joints, then those of their energies, by name."""
    of_joints = (
        topic.for_joint(joint)
        for topic in (topics.JOINT_POWER, topics.JOINT_ENERGY)
        for joint in joints
    )
    return {topic.name: topic for topic in of_joints}


def total_numbers(snapshot: Snapshot) -> dict[str, float]:
    """Power and energy of the whole arm, by name of the topic."""
    total = snapshot.channels.arm["total"]
    return {
        topics.TOTAL_POWER.name: float(snapshot.power[total]),
        topics.TOTAL_ENERGY.name: float(snapshot.since_reset.net[total]),
    }


def other_numbers(snapshot: Snapshot, joints: Sequence[str]) -> dict[str, float]:
    """The other values by name of the topic; those of the bus only if it is measured."""
    columns, power, energy = snapshot.channels, snapshot.power, snapshot.since_reset.net
    electrical = columns.per_joint["electrical_power"]
    of_joints = [*power[electrical].tolist(), *energy[electrical].tolist()]
    values = dict(zip(_joint_topics(tuple(joints)), of_joints, strict=True))
    for channel, (of_power, of_energy) in PARTS.items():
        column = columns.arm[channel]
        values[of_power.name], values[of_energy.name] = float(power[column]), float(energy[column])
    if snapshot.bus_measured:
        total, bus = columns.arm["total"], columns.arm["bus"]
        values[topics.BUS_POWER.name] = float(power[bus])
        values[topics.BUS_ENERGY.name] = float(energy[bus])
        values[topics.RESIDUAL_POWER.name] = float(power[total] - power[bus])
    return values
