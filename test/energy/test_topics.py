"""The topic energy against energies known in closed form, and beside the other topics."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from test.energy.known_arm import ROBOT, known_model, motion, packets
from ur_energy_model import topics_and_services as topics
from ur_energy_model.energy.live import LiveEstimator, Snapshot
from ur_energy_model.energy.topics import (
    energy_names,
    energy_values,
    number_topics,
    numbers,
    stamped_order,
    total_numbers,
)
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

JOINTS = tuple(f"left_{joint}" for joint in ROBOT.joint_names)


@cache
def moved() -> list[Snapshot]:
    """Snapshots of two seconds of motion."""
    return snapshots(motion(2.0))


def snapshots(telemetry: Telemetry) -> list[Snapshot]:
    estimator, seen = LiveEstimator(known_model(), ROBOT), []
    for batch in packets(telemetry, 10):
        estimator.update(batch)
        snapshot = estimator.snapshot()
        assert snapshot is not None
        seen.append(snapshot)
    return seen


def rows(snapshot: Snapshot) -> dict[str, Array]:
    return dict(zip(energy_names(JOINTS), energy_values(snapshot).T, strict=True))


def test_names_are_the_prefixed_joints_and_the_arm() -> None:
    names = energy_names(JOINTS)
    assert names == (
        *JOINTS, "standby", "drivers", "regeneration", "total", "bus", "residual"
    )  # fmt: skip
    earlier = [names[k] for k in stamped_order(len(JOINTS))]
    assert earlier == [*JOINTS, "total", "bus", "standby", "residual"]


def test_values_are_those_of_the_number_topics() -> None:
    snapshot = moved()[-1]
    values = rows(snapshot)
    found = numbers(snapshot, JOINTS)
    assert set(found) == {topic.name for topic in number_topics(JOINTS)}
    assert total_numbers(snapshot).items() <= found.items()
    for part in (*JOINTS, "standby", "drivers", "regeneration", "total", "bus"):
        assert values[part][0] == found[f"energy/{part}/energy"]
        assert values[part][1] == found[f"energy/{part}/power"]
    assert values["residual"][1] == found[topics.RESIDUAL_POWER.name]


def test_power_is_the_slope_of_the_energy() -> None:
    seen = moved()
    time = np.array([snapshot.time for snapshot in seen])
    energy, power, _ = np.stack([energy_values(snapshot) for snapshot in seen], axis=1)
    slope = np.diff(energy, axis=0) / np.diff(time)[:, None]
    assert slope == pytest.approx(power[1:], abs=1e-6)


def test_effort_is_the_standard_uncertainty_of_the_energy() -> None:
    """The error of the standby power is 0.5 W beside that of the model's standby."""
    snapshot = moved()[-1]
    values = rows(snapshot)
    joints, total = snapshot.channels.deviations(snapshot.since_reset.net)
    assert [values[joint][2] for joint in JOINTS] == joints.tolist()
    assert values["total"][2] == total
    assert 0 < values["standby"][2] <= total
    assert np.isnan([values["bus"][2], values["residual"][2]]).all()


def test_a_bus_that_is_not_measured_is_unknown() -> None:
    columns = dict(motion(0.2).columns)
    del columns["actual_robot_voltage"]
    bare = Telemetry(columns["timestamp"], columns)
    last = snapshots(bare)[-1]
    values = rows(last)
    assert np.isnan(values["bus"][:2]).all()
    assert np.isnan(values["residual"][:2]).all()
    assert np.isfinite(values["total"]).all()
    assert topics.BUS_POWER.name not in numbers(last, JOINTS)
