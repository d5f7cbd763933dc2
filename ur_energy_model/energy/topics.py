"""Content of the topics below energy/: numbers, energies of one instant, statuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from ur_energy_model import topics_and_services as topics
from ur_energy_model.energy.cycles import Cycle
from ur_energy_model.energy.live import Snapshot
from ur_energy_model.energy.meter import MeterReading, efficiency
from ur_energy_model.energy.powers import ArmState, Channels
from ur_energy_model.energy.prediction import PlanEnergy
from ur_energy_model.errors import unsigned_zeros
from ur_energy_model.robot_modes import ROBOT_MODES, SAFETY_MODES
from ur_energy_model.telemetry.bag.cdr import ERROR, OK, WARN, Status
from ur_energy_model.typing import Array

PARTS = {"standby": "standby", "drivers": "driver", "regeneration": "regeneration"}
"""Parts of the arm besides its joints, and their channels; together they are the total."""
ARM_NAMES = (*PARTS, "total", "bus", "residual")
"""Names behind those of the joints."""
STAMPED_ARM_NAMES = ("total", "bus", "standby", "residual")
"""Those of energy/stamped, the name and the content of this topic in earlier versions."""


def energy_names(joints: Sequence[str]) -> tuple[str, ...]:
    """All names, in the order of the values."""
    return (*joints, *ARM_NAMES)


def energy_values(snapshot: Snapshot) -> Array:
    """Values of a snapshot [3, names], NaN where unknown.

    Returns:
        Energy since reset (J); mean power since the previous message (W), its derivative; standard
        uncertainty of the energy (J), known for the joints, `standby` and `total`. Joints, standby,
        drivers and regeneration sum to the total. `bus` and `residual` (total minus bus) are NaN if
        the bus power is not measured.
    """
    columns, arm = snapshot.channels, snapshot.channels.arm
    joints = columns.per_joint["electrical_power"]
    parts = (arm[name] for name in PARTS.values())
    order = [*range(joints.start, joints.stop), *parts, arm["total"]]
    net, power = snapshot.since_reset.net, snapshot.power
    joints_std, total_std = columns.deviations(net)
    known = len(order)
    out = np.full((3, known + 2), np.nan)
    out[0, :known], out[1, :known] = net[order], power[order]
    if snapshot.bus_measured:
        for row, values in enumerate((net, power)):
            bus = values[arm["bus"]]
            out[row, known:] = bus, values[arm["total"]] - bus
    out[2, : len(joints_std)] = joints_std
    out[2, len(joints_std)] = columns.deviation_of_standby(net)
    out[2, known - 1] = total_std
    return out


def stamped_order(joints: int) -> list[int]:
    """Places in `energy_names` of the values of energy/stamped, for a number of joints."""
    return [*range(joints), *(joints + ARM_NAMES.index(name) for name in STAMPED_ARM_NAMES)]


# Content of energy/joints: powers and energies by joint and interface name.


def joint_interfaces(snapshot: Snapshot, joints: Sequence[str]) -> dict[str, dict[str, float]]:
    """Values [W, J] by name of a joint, of a part of the arm or "total", and interface name."""
    columns, power = snapshot.channels, snapshot.power
    energy = snapshot.since_reset.net[columns.per_joint["electrical_power"]]
    values = {name: power[part] for name, part in columns.per_joint.items()}
    out = {
        joint: {
            **{name: float(each[i]) for name, each in values.items()},
            "electrical_energy": float(energy[i]),
        }
        for i, joint in enumerate(joints)
    }
    net = snapshot.since_reset.net
    for name, channel in PARTS.items():
        column = columns.arm[channel]
        out[name] = {
            "electrical_power": float(power[column]),
            "electrical_energy": float(net[column]),
        }
    out["total"] = {
        **{name: float(each.sum()) for name, each in values.items()},
        "electrical_power": float(power[columns.arm["total"]]),
        "electrical_energy": float(net[columns.arm["total"]]),
    }
    return out


# Values of the std_msgs/Float64 topics below energy/.

PART_TOPICS: dict[str, tuple[topics.Topic, topics.Topic]] = {
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
        *(topic for both in PART_TOPICS.values() for topic in both),
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
    for channel, (of_power, of_energy) in PART_TOPICS.items():
        column = columns.arm[channel]
        values[of_power.name], values[of_energy.name] = float(power[column]), float(energy[column])
    if snapshot.bus_measured:
        total, bus = columns.arm["total"], columns.arm["bus"]
        values[topics.BUS_POWER.name] = float(power[bus])
        values[topics.BUS_ENERGY.name] = float(energy[bus])
        values[topics.RESIDUAL_POWER.name] = float(power[total] - power[bus])
    return values


# Colour and size that show the power of a joint in 3D, the same in every viewer.

FULL_SCALE = 100.0
"""Power at which a joint is red [W]."""
SMALLEST_DIAMETER, DIAMETER_RANGE = 0.10, 0.08
"""Diameter of a sphere at zero power, and the increase at full scale [m]."""


def level_of(power: float, full_scale: float = FULL_SCALE) -> float:
    """Power relative to full scale, -1 to 1."""
    return min(max(power / full_scale, -1.0), 1.0)


def diameter(level: float) -> float:
    """Diameter of a joint's sphere [m]."""
    return SMALLEST_DIAMETER + DIAMETER_RANGE * abs(level)


def color(level: float) -> tuple[float, float, float, float]:
    """RGBA of a level: -1 (regeneration) blue, 0 green, 0.5 yellow, 1 (full consumption) red."""
    if level < 0:
        return 0.0, 1.0 + level, -level, 0.9
    return min(1.0, 2 * level), min(1.0, 2 - 2 * level), 0.0, 0.9


# Content of the diagnostic topics below energy/ and of the response of ~/read_interval.


def summary_statuses(snapshot: Snapshot, joints: tuple[str, ...], model: str) -> list[Status]:
    """One status per joint, then total, bus, state and counters; `model` is a path."""
    return [
        *_joint_statuses(snapshot, joints),
        _total_status(snapshot),
        _bus_status(snapshot),
        _state_status(snapshot),
        _counter_status(snapshot, model),
    ]


def _joint_statuses(snapshot: Snapshot, joints: tuple[str, ...]) -> list[Status]:
    columns, reset = snapshot.channels, snapshot.since_reset
    parts, electrical = columns.per_joint, columns.per_joint["electrical_power"]
    power = {name: snapshot.power[part] for name, part in parts.items()}
    energy = {name: reset.net[part] for name, part in parts.items()}
    values: dict[str, Array] = {
        "electrical_power_W": power["electrical_power"],
        "electrical_power_std_W": columns.deviations(snapshot.power)[0],
        "mechanical_power_W": power["mechanical_power"],
        "copper_loss_W": power["copper_loss"],
        "friction_loss_W": power["friction_loss"],
        "electrical_energy_J": energy["electrical_power"],
        "electrical_energy_std_J": columns.deviations(reset.net)[0],
        "mechanical_energy_J": energy["mechanical_power"],
        "copper_loss_J": energy["copper_loss"],
        "friction_loss_J": energy["friction_loss"],
        "consumed_J": reset.consumed[electrical],
        "regenerated_J": reset.regenerated[electrical],
        "consumed_ever_J": snapshot.lifetime.consumed[electrical],
        "efficiency": efficiency(energy["mechanical_power"], energy["electrical_power"]),
    }
    if snapshot.temperature is not None:
        values["temperature_degC"] = snapshot.temperature
    out = []
    for i, joint in enumerate(joints):
        own: dict[str, object] = {key: each[i] for key, each in values.items()}
        if np.isnan(values["efficiency"][i]):
            own["efficiency"] = None
        text = unsigned_zeros(f"{power['electrical_power'][i]:.1f} W")
        out.append(Status(f"energy: {joint}", OK, text, own))
    return out


def _total_status(snapshot: Snapshot) -> Status:
    columns, power, energy = snapshot.channels, snapshot.power, snapshot.since_reset.net
    arm, parts = columns.arm, columns.per_joint
    values = {
        "power_W": power[arm["total"]],
        "power_std_W": columns.deviations(power)[1],
        "standby_power_W": power[arm["standby"]],
        "driver_power_W": power[arm["driver"]],
        "regeneration_power_W": power[arm["regeneration"]],
        "energy_J": energy[arm["total"]],
        "energy_std_J": columns.deviations(energy)[1],
        "energy_ever_J": snapshot.lifetime.net[arm["total"]],
        "standby_energy_J": energy[arm["standby"]],
        "driver_energy_J": energy[arm["driver"]],
        "regeneration_energy_J": energy[arm["regeneration"]],
        "motors_energy_J": energy[parts["electrical_power"]].sum(),
        "motors_mechanical_energy_J": energy[parts["mechanical_power"]].sum(),
    }
    return Status("energy: total", OK, unsigned_zeros(f"{power[arm['total']]:.1f} W"), values)


def _counter_status(snapshot: Snapshot, model: str) -> Status:
    reset, ever = snapshot.since_reset, snapshot.lifetime
    values = {
        "reset_time": snapshot.reset_time,
        "reset_reason": snapshot.reset_reason,
        "accounted_s": reset.accounted,
        "unaccounted_s": reset.unaccounted,
        "accounted_ever_s": ever.accounted,
        "unaccounted_ever_s": ever.unaccounted,
        "model": model,
    }
    return Status("energy: counters", OK, f"since {snapshot.reset_time}", values)


def _bus_status(snapshot: Snapshot) -> Status:
    columns = snapshot.channels.arm
    if not snapshot.bus_measured:
        return Status("energy: bus", OK, "not measured by this source", {})
    power, energy = snapshot.power, snapshot.since_reset.net
    measured = energy[columns["bus"]]
    values = {
        "power_W": power[columns["bus"]],
        "energy_J": measured,
        "residual_W": power[columns["total"]] - power[columns["bus"]],
        "residual_mean_W": snapshot.residual_mean,
        "residual_std_W": snapshot.residual_std,
        "residual_energy_J": energy[columns["total"]] - measured,
        "standby_measured_W": snapshot.standby_measured,
        "controller_energy_J": snapshot.controller_energy,
    }
    level = WARN if snapshot.drifting else OK
    text = "the model drifts away from the measured power" if snapshot.drifting else "as modelled"
    return Status("energy: bus", level, text, values)


def _state_status(snapshot: Snapshot) -> Status:
    columns, net = snapshot.channels, snapshot.since_reset.net
    robot, safety = snapshot.robot_mode, snapshot.safety_mode
    values: dict[str, object] = {
        "robot_mode": None if robot is None else ROBOT_MODES.get(robot, robot),
        "safety_mode": None if safety is None else SAFETY_MODES.get(safety, safety),
        "payload_kg": snapshot.payload,
        "speed_scaling": snapshot.speed_scaling,
    }
    for state in ArmState:
        name = state.name.lower()
        values[f"{name}_time_s"] = net[columns.state_time + state]
        values[f"{name}_energy_J"] = net[columns.state_energy + state]
    text = snapshot.state.name.lower().replace("_", " ")
    return Status("energy: state", OK, text, values)


def cycle_status(cycle: Cycle, channels: Channels) -> Status:
    """The status of a finished cycle."""
    values: dict[str, object] = {"cycle": cycle.number, **cycle.summary(channels)}
    if cycle.program is not None:
        values["program"] = cycle.program
    return Status("energy: cycle", OK, f"cycle {cycle.number}", values)


def prediction_statuses(
    stamp: str,
    plan: PlanEnergy,
    joints: tuple[str, ...],
    measured: MeterReading | None = None,
    channels: Channels | None = None,
    optimized: PlanEnergy | None = None,
    reasons: Mapping[str, str] | None = None,
) -> list[Status]:
    """Predicted energy per joint and in total, and the measured energy after the motion.

    Args:
        stamp: of the plan.
        plan: as planned.
        joints: names, prefix included.
        measured: None before the motion, or if there was none.
        channels: of the measurement.
        optimized: the same path and duration for less energy; None if there is no such plan yet.
        reasons: why something is missing, by key.
    """
    out = []
    part = None if channels is None else channels.per_joint["electrical_power"]
    for i, joint in enumerate(joints):
        values: dict[str, object] = {
            "electrical_energy_J": plan.electrical[i],
            "electrical_energy_std_J": plan.electrical_std[i],
            "mechanical_energy_J": plan.mechanical[i],
        }
        if measured is not None and part is not None:
            values["measured_electrical_energy_J"] = measured.net[part][i]
        out.append(Status(f"prediction: {joint}", OK, f"{plan.electrical[i]:.1f} J", values))
    total: dict[str, object] = {
        "plan_stamp": stamp,
        "energy_J": plan.total,
        "energy_std_J": plan.total_std,
        "duration_s": plan.duration,
        "peak_power_W": plan.peak_power,
    }
    text = f"{plan.total:.0f} J in {plan.duration:.1f} s, at most {plan.peak_power:.0f} W"
    if optimized is not None:
        total["optimized_energy_J"] = optimized.total
        total["optimized_energy_std_J"] = optimized.total_std
        total["optimized_peak_power_W"] = optimized.peak_power
        total["optimized_saving_percent"] = 100.0 * (1.0 - optimized.total / plan.total)
        text += f"; optimized {optimized.total:.0f} J, at most {optimized.peak_power:.0f} W"
    if measured is not None and channels is not None:
        total["measured_energy_J"] = measured.net[channels.arm["total"]]
        total["measured_bus_energy_J"] = measured.net[channels.arm["bus"]]
        total["measured_duration_s"] = measured.accounted + measured.unaccounted
        text += f"; measured {measured.net[channels.arm['total']]:.0f} J"
    total |= {key: reason for key, reason in (reasons or {}).items() if reason}
    out.append(Status("prediction: total", OK, text, total))
    return out


def refusal_statuses(stamp: str, reason: str) -> list[Status]:
    """The answer to a plan that cannot be used."""
    values = {"plan_stamp": stamp, "refused": reason}
    return [Status("prediction: total", ERROR, f"refused: {reason}", values)]


def interval_energies(
    passed: MeterReading, columns: Channels, joints: tuple[str, ...]
) -> dict[str, object]:
    """Energies of an interval, as ~/read_interval returns them (JSON)."""
    part = columns.per_joint["electrical_power"]
    return {
        "accounted_s": passed.accounted,
        "unaccounted_s": passed.unaccounted,
        "total_J": float(passed.net[columns.arm["total"]]),
        **{f"{name}_J": float(passed.net[columns.arm[each]]) for name, each in PARTS.items()},
        "bus_J": float(passed.net[columns.arm["bus"]]),
        "joints": {
            joint: {
                "energy_J": float(passed.net[part][i]),
                "consumed_J": float(passed.consumed[part][i]),
                "regenerated_J": float(passed.regenerated[part][i]),
            }
            for i, joint in enumerate(joints)
        },
    }
