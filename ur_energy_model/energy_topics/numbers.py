"""Values of the std_msgs/Float64 topics below energy/."""

from __future__ import annotations

from collections.abc import Sequence

from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.nodes import topics_and_services as topics


def number_topics(joints: Sequence[str]) -> tuple[topics.Topic, ...]:
    """All of these topics, for the joint names of an arm, prefix included."""
    of_joints = (
        topic.for_joint(joint)
        for topic in (topics.JOINT_POWER, topics.JOINT_ENERGY)
        for joint in joints
    )
    return (
        topics.TOTAL_POWER,
        topics.TOTAL_ENERGY,
        *of_joints,
        topics.BUS_POWER,
        topics.BUS_ENERGY,
        topics.STANDBY_POWER,
        topics.RESIDUAL_POWER,
    )


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
    values = {
        topic.for_joint(joint).name: value
        for topic, of_joints in (
            (topics.JOINT_POWER, power[electrical]),
            (topics.JOINT_ENERGY, energy[electrical]),
        )
        for joint, value in zip(joints, of_joints.tolist(), strict=True)
    }
    values[topics.STANDBY_POWER.name] = snapshot.standby
    if snapshot.bus_measured:
        total, bus = columns.arm["total"], columns.arm["bus"]
        values[topics.BUS_POWER.name] = float(power[bus])
        values[topics.BUS_ENERGY.name] = float(energy[bus])
        values[topics.RESIDUAL_POWER.name] = float(power[total] - power[bus])
    return values
