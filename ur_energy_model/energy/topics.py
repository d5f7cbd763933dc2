# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Content of the topics below energy/: arrays of energies, single numbers, statuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from ur_energy_model import topics_and_services as topics
from ur_energy_model.energy.cycle_energies import (
    MEASURED_SHARE,
    TOTAL_SOURCE,
    Cycle,
    earlier_names,
)
from ur_energy_model.energy.meter import MeterReading, efficiency
from ur_energy_model.energy.powers import ArmState, Channels
from ur_energy_model.energy.prediction import PlanEnergy
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.energy.wall import SOURCES
from ur_energy_model.errors import unsigned_zeros
from ur_energy_model.robot_modes import ROBOT_MODES, SAFETY_MODES
from ur_energy_model.telemetry.bag.messages import ERROR, OK, WARN, Status
from ur_energy_model.typing import Array, Indices

MODEL_PARTS = {"standby": "standby", "drivers": "driver", "regeneration": "regeneration"}
"""Modelled parts of the arm besides its joints, with their channels. Joints and parts sum to the
model."""
PARTS = {**MODEL_PARTS, "unexplained": "unexplained"}
"""Parts that sum to the total together with the joints, with their channels: the modelled parts,
and the part of a measured total that the model does not explain."""
ENERGY_ROW, POWER_ROW, DEVIATION_ROW = range(3)
"""Rows of `energy_values`: energy since the reset, mean power, deviation of the energy."""
ARM_NAMES = (*MODEL_PARTS, "total", "bus", "unexplained", "wall", "model")
"""Names behind the names of the joints. Names of earlier versions keep their places, since plots
of Foxglove refer to places. `unexplained` has the place that `residual` had."""


def energy_names(joints: Sequence[str]) -> tuple[str, ...]:
    """Names of the values of energy: the joints, then ARM_NAMES."""
    return (*joints, *ARM_NAMES)


def energy_values(snapshots: Sequence[Snapshot]) -> Array:
    """Values of energy for snapshots with the same channels.

    Args:
        snapshots: consecutive snapshots, at least one.

    Returns:
        Values [snapshots, 3, names of `energy_names`], NaN where unknown. The three rows
        are the energy since the reset (J), the mean power since the previous message (W),
        and the standard uncertainty of the energy (J), at the places ENERGY_ROW, POWER_ROW
        and DEVIATION_ROW. The uncertainty is known for the joints, `standby`,
        `unexplained`, `total`, `model` and `wall`. Joints, standby, drivers, regeneration
        and unexplained sum to the total, which is measured where the bus power is measured,
        else modelled. `bus` is NaN if the bus power is not measured; `wall` is computed by
        the model of the supply, measured or generic.
    """
    columns = snapshots[0].channels
    joints = len(columns.joints)
    net = np.array([snapshot.since_reset.net for snapshot in snapshots])
    power = np.array([snapshot.power for snapshot in snapshots])
    channels, places = _value_places(columns)
    wall = columns.wall
    terms = columns.wall_terms(net)
    total_std = columns.deviations_of_total(net)
    stds = {
        "standby": columns.deviation_of_standby(net),
        "unexplained": columns.deviations_of_unexplained(net),
        "total": total_std,
        "model": columns.deviations_of_model(net),
        "wall": wall.deviation(terms, total_std),
    }
    column = {name: joints + place for place, name in enumerate(ARM_NAMES)}
    values = np.full((len(snapshots), 3, joints + len(ARM_NAMES)), np.nan)
    values[:, ENERGY_ROW, places] = net[:, channels]
    values[:, ENERGY_ROW, column["wall"]] = wall.value(terms)
    values[:, POWER_ROW, places] = power[:, channels]
    values[:, POWER_ROW, column["wall"]] = columns.value_at_wall(power)
    values[:, DEVIATION_ROW, :joints] = columns.deviations_of_joints(net)
    for name, found in stds.items():
        values[:, DEVIATION_ROW, column[name]] = found
    for place, snapshot in enumerate(snapshots):
        if not snapshot.bus_measured:
            values[place, [ENERGY_ROW, POWER_ROW], column["bus"]] = np.nan
    return values


@lru_cache(maxsize=8)
def _value_places(columns: Channels) -> tuple[Indices, Indices]:
    """Channels of all values but the wall, and the places of these values in `energy_names`.

    The value at the wall is computed from several channels.
    """
    joints = columns.per_joint["electrical_power"]
    channels = list(range(joints.start, joints.stop))
    places = list(range(len(channels)))
    for place, name in enumerate(ARM_NAMES, start=len(channels)):
        if name != "wall":
            channels.append(columns.arm[PARTS.get(name, name)])
            places.append(place)
    return np.array(channels), np.array(places)


def joint_interfaces(
    snapshot: Snapshot, joints: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Content of energy/joints: values by name, and by interface.

    Names are the joints, the parts of the arm, "total" and "model". The total has all
    interfaces of a joint, as sums over the joints but for its electrical power and energy.

    Args:
        snapshot: powers [W] and energies since reset [J].
        joints: names of the joints, prefix included.
    """
    columns = snapshot.channels
    power = snapshot.power
    net = snapshot.since_reset.net
    of_joints = {name: power[part] for name, part in columns.per_joint.items()}
    of_joints["electrical_energy"] = net[columns.per_joint["electrical_power"]]
    content: dict[str, dict[str, float]] = {}
    for i, joint in enumerate(joints):
        content[joint] = {name: float(values[i]) for name, values in of_joints.items()}
    # As in ARM_NAMES, names of earlier versions are at the places that they had.
    for name in (*MODEL_PARTS, "total", "unexplained", "model"):
        column = columns.arm[PARTS.get(name, name)]
        content[name] = {
            "electrical_power": float(power[column]),
            "electrical_energy": float(net[column]),
        }
    sums = {name: float(values.sum()) for name, values in of_joints.items()}
    content["total"] = {**sums, **content["total"]}
    return content


# Values of the std_msgs/Float64 topics below energy/.

_ARM_TOPICS: dict[str, tuple[topics.Topic, topics.Topic]] = {
    "total": (topics.TOTAL_ENERGY, topics.TOTAL_POWER),
    "standby": (topics.STANDBY_ENERGY, topics.STANDBY_POWER),
    "drivers": (topics.DRIVERS_ENERGY, topics.DRIVERS_POWER),
    "regeneration": (topics.REGENERATION_ENERGY, topics.REGENERATION_POWER),
    "unexplained": (topics.UNEXPLAINED_ENERGY, topics.UNEXPLAINED_POWER),
    "model": (topics.MODEL_ENERGY, topics.MODEL_POWER),
    "bus": (topics.BUS_ENERGY, topics.BUS_POWER),
    "wall": (topics.WALL_ENERGY, topics.WALL_POWER),
}
"""Topics of energy and power by name; values of the joints and PARTS sum to the total."""


@lru_cache(maxsize=8)
def number_places(joints: tuple[str, ...]) -> dict[topics.Topic, tuple[int, int]]:
    """Row and column in `energy_values` of the topic of each number.

    Args:
        joints: names of the joints, prefix included.
    """
    of_joints = ((POWER_ROW, topics.JOINT_POWER), (ENERGY_ROW, topics.JOINT_ENERGY))
    places: dict[topics.Topic, tuple[int, int]] = {}
    for row, topic in of_joints:
        for column, joint in enumerate(joints):
            places[topic.for_joint(joint)] = (row, column)
    for name, (energy_topic, power_topic) in _ARM_TOPICS.items():
        column = len(joints) + ARM_NAMES.index(name)
        places[power_topic] = (POWER_ROW, column)
        places[energy_topic] = (ENERGY_ROW, column)
    return places


def number_topics(joints: Sequence[str]) -> tuple[topics.Topic, ...]:
    """Topics of all numbers; `joints` are the joint names of an arm, prefix included."""
    return tuple(number_places(tuple(joints)))


def numbers(
    snapshot: Snapshot, joints: Sequence[str], energies: Array | None = None
) -> dict[str, float]:
    """All values by topic, without the bus where it is not measured.

    Args:
        snapshot: snapshot of the estimator.
        joints: names of the joints, prefix included.
        energies: values of `energy_values` of this snapshot [3, names], if computed before.
    """
    if energies is None:
        energies = energy_values([snapshot])[0]
    values = energies.tolist()
    places = number_places(tuple(joints)).items()
    found = {topic.name: values[row][column] for topic, (row, column) in places}
    if not snapshot.bus_measured:
        for topic in (topics.BUS_POWER, topics.BUS_ENERGY):
            del found[topic.name]
    return found


# Colour and size that show the power of a joint in 3D, the same in every viewer.

FULL_SCALE = 100.0  # power at which a joint is red [W]
SMALLEST_DIAMETER = 0.10  # diameter of a sphere at zero power [m]
DIAMETER_RANGE = 0.08  # increase of the diameter up to full scale [m]
_OPACITY = 0.9  # opacity of a sphere, so that the joint behind it is seen


def level_of(power: float, full_scale: float = FULL_SCALE) -> float:
    """Power [W] relative to full scale [W], limited to -1 to 1."""
    return min(max(power / full_scale, -1.0), 1.0)


def diameter(level: float) -> float:
    """Diameter of a joint's sphere [m] at a level of -1 to 1."""
    return SMALLEST_DIAMETER + DIAMETER_RANGE * abs(level)


def color(level: float) -> tuple[float, float, float, float]:
    """RGBA of a level: -1 (regeneration) blue, 0 green, 0.5 yellow, 1 (full consumption) red."""
    if level < 0:
        return 0.0, 1.0 + level, -level, _OPACITY
    red = min(1.0, 2.0 * level)
    green = min(1.0, 2.0 - 2.0 * level)
    return red, green, 0.0, _OPACITY


# Content of the diagnostic topics below energy/ and of the response of ~/read_interval.


def source_values(reading: MeterReading, columns: Channels) -> dict[str, object]:
    """Source of the total of a reading, and the share of its measured part that the model explains.

    Returns:
        `total_source`: "measured", "modelled" or "mixed"; `total_measured_share`: share of
        the time in which the total is measured; `explained_share`: modelled over measured
        energy in that time, None where nothing is measured.
    """
    source = columns.total_source(reading.net, reading.accounted)
    return {
        TOTAL_SOURCE: source.name,
        MEASURED_SHARE: source.share,
        "explained_share": columns.explained_share(reading.net),
    }


def summary_statuses(
    snapshot: Snapshot, joints: tuple[str, ...], model: str
) -> list[Status]:
    """Content of energy/summary: a status of each joint, then the statuses of the arm.

    The statuses of the arm are total, model, bus, wall, state and counters. In "energy:
    total", motors, standby, driver, regeneration and unexplained sum to the total.

    Args:
        snapshot: snapshot of the estimator.
        joints: names of the joints, prefix included.
        model: path of the model file.
    """
    return [
        *_joint_statuses(snapshot, joints),
        _total_status(snapshot),
        _model_status(snapshot),
        _bus_status(snapshot),
        _wall_status(snapshot),
        _state_status(snapshot),
        _counters_status(snapshot, model),
    ]


def _joint_statuses(snapshot: Snapshot, joints: tuple[str, ...]) -> list[Status]:
    """A status of each joint."""
    columns = snapshot.channels
    power = snapshot.power
    reset = snapshot.since_reset
    net = reset.net
    parts = columns.per_joint
    electrical = parts["electrical_power"]
    # NaN where unknown
    of_joints: dict[str, Array] = {
        "electrical_power_W": power[electrical],
        "electrical_power_std_W": columns.deviations_of_joints(power),
        "mechanical_power_W": power[parts["mechanical_power"]],
        "copper_loss_W": power[parts["copper_loss"]],
        "friction_loss_W": power[parts["friction_loss"]],
        "electrical_energy_J": net[electrical],
        "electrical_energy_std_J": columns.deviations_of_joints(net),
        "mechanical_energy_J": net[parts["mechanical_power"]],
        "copper_loss_J": net[parts["copper_loss"]],
        "friction_loss_J": net[parts["friction_loss"]],
        "consumed_J": reset.consumed[electrical],
        "regenerated_J": reset.regenerated[electrical],
        "consumed_ever_J": snapshot.lifetime.consumed[electrical],
        "efficiency": efficiency(net[parts["mechanical_power"]], net[electrical]),
    }
    if snapshot.temperature is not None:
        of_joints["temperature_degC"] = snapshot.temperature
    if snapshot.torque_per_ampere is not None:
        of_joints["torque_per_ampere_N_m_per_A"] = snapshot.torque_per_ampere
    statuses = []
    for i, joint in enumerate(joints):
        own: dict[str, object] = {key: values[i] for key, values in of_joints.items()}
        for key in ("efficiency", "torque_per_ampere_N_m_per_A"):
            if key in of_joints and not np.isfinite(of_joints[key][i]):
                own[key] = None
        text = f"{power[electrical][i]:.1f} W"
        statuses.append(_status(f"energy: {joint}", text, own))
    return statuses


def _total_status(snapshot: Snapshot) -> Status:
    """The total of the arm, and the parts that sum to it."""
    columns = snapshot.channels
    power = snapshot.power
    net = snapshot.since_reset.net
    arm = columns.arm
    electrical = columns.per_joint["electrical_power"]
    mechanical = columns.per_joint["mechanical_power"]
    values: dict[str, object] = {
        "power_W": power[arm["total"]],
        "power_std_W": float(columns.deviations_of_total(power, snapshot.seconds)),
        **{f"{name}_power_W": power[arm[name]] for name in PARTS.values()},
        "motors_power_W": power[electrical].sum(),
        "energy_J": net[arm["total"]],
        "energy_std_J": float(columns.deviations_of_total(net)),
        "energy_ever_J": snapshot.lifetime.net[arm["total"]],
        **{f"{name}_energy_J": net[arm[name]] for name in PARTS.values()},
        "unexplained_energy_std_J": columns.deviations_of_unexplained(net),
        "motors_energy_J": net[electrical].sum(),
        "motors_mechanical_energy_J": net[mechanical].sum(),
        **source_values(snapshot.since_reset, columns),
        "total_source_ever": snapshot.total_source_ever.name,
        "total_measured_share_ever": snapshot.total_source_ever.share,
    }
    source = snapshot.total_source.words(columns.explained_share(net))
    return _status("energy: total", f"{power[arm['total']]:.1f} W, {source}", values)


def _model_status(snapshot: Snapshot) -> Status:
    """The modelled power; a warning where the model is of another arm."""
    columns = snapshot.channels
    power = snapshot.power
    net = snapshot.since_reset.net
    model = columns.arm["model"]
    values: dict[str, object] = {
        "power_W": power[model],
        "power_std_W": columns.deviations_of_model(power, snapshot.seconds),
        "energy_J": net[model],
        "energy_std_J": columns.deviations_of_model(net),
        "energy_ever_J": snapshot.lifetime.net[model],
    }
    text = f"{power[model]:.1f} W"
    if snapshot.arm_warning is None:
        return _status("energy: model", text, values)
    return _status("energy: model", f"{text}, {snapshot.arm_warning}", values, level=WARN)


def _bus_status(snapshot: Snapshot) -> Status:
    """The measured power; a warning where it drifts away from the model."""
    if not snapshot.bus_measured:
        return _status("energy: bus", "not measured by this source", {})
    bus = snapshot.channels.arm["bus"]
    values: dict[str, object] = {
        "power_W": snapshot.power[bus],
        "energy_J": snapshot.since_reset.net[bus],
        "unexplained_mean_W": snapshot.unexplained_mean,
        "unexplained_std_W": snapshot.unexplained_std,
        "standby_measured_W": snapshot.standby_measured,
        "controller_energy_J": snapshot.controller_energy,
    }
    if snapshot.drifting:
        text = "the measured power drifts away from the model"
        return _status("energy: bus", text, values, level=WARN)
    return _status("energy: bus", "as modelled", values)


def _wall_status(snapshot: Snapshot) -> Status:
    """The power at the wall, by the model of control box and supply."""
    columns = snapshot.channels
    power, power_std = columns.at_wall(snapshot.power, snapshot.seconds)
    energy, energy_std = columns.at_wall(snapshot.since_reset.net)
    values = {
        "power_W": power,
        "power_std_W": power_std,
        "energy_J": energy,
        "energy_std_J": energy_std,
        "energy_ever_J": columns.value_at_wall(snapshot.lifetime.net),
    }
    return _status("energy: wall", SOURCES[columns.wall.energy_source], values)


def _state_status(snapshot: Snapshot) -> Status:
    """State of the arm, and its time and energy in each state."""
    columns = snapshot.channels
    net = snapshot.since_reset.net
    robot = snapshot.robot_mode
    safety = snapshot.safety_mode
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
    return _status("energy: state", snapshot.state.name.lower().replace("_", " "), values)


def _counters_status(snapshot: Snapshot, model: str) -> Status:
    """Begin of the counting, its times, and the model file."""
    reset = snapshot.since_reset
    ever = snapshot.lifetime
    values = {
        "reset_time": snapshot.reset_time,
        "reset_reason": snapshot.reset_reason,
        "accounted_s": reset.accounted,
        "unaccounted_s": reset.unaccounted,
        "accounted_ever_s": ever.accounted,
        "unaccounted_ever_s": ever.unaccounted,
        "model": model,
    }
    return _status("energy: counters", f"since {snapshot.reset_time}", values)


def _status(
    name: str, text: str, values: Mapping[str, object], *, level: int = OK
) -> Status:
    """A status whose text has no zeros with a minus sign."""
    return Status(name, level, unsigned_zeros(text), values)


def cycle_status(cycle: Cycle, channels: Channels) -> Status:
    """The status of a finished cycle; a warning where a part of the cycle was not seen."""
    summary = cycle.summary(channels)
    values: dict[str, object] = {"cycle": cycle.number}
    if cycle.program is not None:
        values["program"] = cycle.program
    values |= summary | {"start": stamp_text(cycle.start)}
    for name, value in earlier_names(summary).items():
        values.setdefault(name, value)
    level = OK if cycle.is_whole else WARN
    return Status("energy: cycle", level, cycle.words(summary["total_energy_J"]), values)


def stamp_text(nanoseconds: int) -> str:
    """A time since 1970 as `seconds.nanoseconds`, as exact as a stamp of ROS."""
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{seconds}.{rest:09d}"


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
        stamp: time stamp of the plan.
        plan: the plan as it was planned.
        joints: names of the joints, prefix included.
        measured: energies of the motion; None before the motion, or without one.
        channels: channels of the measurement; given with it.
        optimized: plan of the same path and duration for less energy; None if there is no such
            plan yet.
        reasons: why something was changed or is missing, by key.
    """
    statuses = []
    for i, joint in enumerate(joints):
        values: dict[str, object] = {
            "electrical_energy_J": plan.electrical[i],
            "electrical_energy_std_J": plan.electrical_std[i],
            "mechanical_energy_J": plan.mechanical[i],
        }
        if measured is not None and channels is not None:
            own = measured.net[channels.per_joint["electrical_power"]]
            values["measured_electrical_energy_J"] = own[i]
        text = f"{plan.electrical[i]:.1f} J"
        statuses.append(Status(f"prediction: {joint}", OK, text, values))
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
        text += (
            f"; optimized {optimized.total:.0f} J, at most {optimized.peak_power:.0f} W"
        )
    if measured is not None and channels is not None:
        net = measured.net
        total["measured_energy_J"] = net[channels.arm["total"]]
        total["measured_energy_std_J"] = channels.deviations_of_total(net)
        total |= source_values(measured, channels)
        total["measured_bus_energy_J"] = net[channels.arm["bus"]]
        total["measured_duration_s"] = measured.accounted + measured.unaccounted
        source = channels.total_source(net, measured.accounted)
        text += f"; took {net[channels.arm['total']]:.0f} J, {source.words()}"
    reasons = reasons or {}
    total |= {key: reason for key, reason in reasons.items() if reason}
    level = OK
    if reasons.get("begins_away"):
        level = WARN
        text = f"{text}; {reasons['begins_away']}"
    return [*statuses, Status("prediction: total", level, text, total)]


def refusal_statuses(stamp: str, reason: str) -> list[Status]:
    """The answer to a plan that cannot be used."""
    values = {"plan_stamp": stamp, "refused": reason}
    return [Status("prediction: total", ERROR, f"refused: {reason}", values)]


def interval_energies(
    passed: MeterReading, columns: Channels, joints: tuple[str, ...]
) -> dict[str, object]:
    """Energies of an interval, as ~/read_interval returns them (JSON).

    Args:
        passed: energies of the interval [channels], J.
        columns: layout of these channels.
        joints: names of the joints, prefix included.
    """
    electrical = columns.per_joint["electrical_power"]
    net = passed.net
    return {
        "accounted_s": passed.accounted,
        "unaccounted_s": passed.unaccounted,
        "total_J": float(net[columns.arm["total"]]),
        "total_std_J": float(columns.deviations_of_total(net)),
        **source_values(passed, columns),
        **{f"{name}_J": float(net[columns.arm[each]]) for name, each in PARTS.items()},
        "model_J": float(net[columns.arm["model"]]),
        "model_std_J": float(columns.deviations_of_model(net)),
        "bus_J": float(net[columns.arm["bus"]]),
        "joints": {
            joint: {
                "energy_J": float(net[electrical][i]),
                "consumed_J": float(passed.consumed[electrical][i]),
                "regenerated_J": float(passed.regenerated[electrical][i]),
            }
            for i, joint in enumerate(joints)
        },
    }
