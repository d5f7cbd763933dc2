# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Efforts of a driver's stream: used once their unit is decided, in that unit alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from test.energy.known_arm import packets
from test.identification.exact_arm import ExactArm
from ur_energy_model.consistency.effort_stream import (
    EFFORT,
    MOST_HELD,
    RESTART_GAP,
    EffortStream,
)
from ur_energy_model.consistency.torque_field import FIELD_OF_UNIT, StatedUnit
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.energy.powers import PowerOptions
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.samples import Telemetry

ARM = ExactArm()
ROBOT = load_robot("ur5e")
MODEL = generic_model("ur5e")
RATIO = ARM.torque_constant * ROBOT.gear_ratio
SCALES = {"ampere": np.ones(6), "newton_metre": RATIO, "mock": np.zeros(6)}


def driver(seconds: float, unit: str, *, seed: int = 3) -> Telemetry:
    """Samples of a moving arm as a driver publishes them: joint states alone."""
    made = ARM.record(seconds, seed=seed)
    columns = {
        "actual_q": made["actual_q"],
        "actual_qd": made["actual_qd"],
        EFFORT: SCALES[unit] * made["actual_current"],
    }
    return replace(made, columns=columns)


def passed(stream: EffortStream, telemetry: Telemetry, size: int = 4) -> list[Telemetry]:
    return [part for batch in packets(telemetry, size) for part in stream(batch)]


def field_of(batch: Telemetry) -> str | None:
    """Field under which a batch has its efforts; None without them."""
    assert EFFORT not in batch
    return next((name for name in FIELD_OF_UNIT.values() if name in batch), None)


def energy(parts: list[Telemetry], method: str = "auto") -> float:
    """Energy of the whole arm that the live estimator counts [J]."""
    options = LiveOptions(power=PowerOptions(method=method))  # type: ignore[arg-type]
    estimator = LiveEstimator(MODEL, ROBOT, options)
    for part in parts:
        estimator.update(part)
    snapshot = estimator.snapshot()
    assert snapshot is not None
    return float(snapshot.lifetime.net[snapshot.channels.arm["total"]])


@pytest.mark.parametrize("stated", ["auto", "right"])
@pytest.mark.parametrize("unit", ["ampere", "newton_metre"])
def test_efforts_are_used_in_their_unit(unit: str, stated: str) -> None:
    given: StatedUnit = "auto" if stated == "auto" else unit  # type: ignore[assignment]
    stream = EffortStream(MODEL, ROBOT, given)
    telemetry = driver(10.0, unit)
    parts = passed(stream, telemetry)
    assert sum(map(len, parts)) == len(telemetry)
    fields = [field_of(part) for part in parts]
    used = fields.index(FIELD_OF_UNIT[unit])  # type: ignore[index]
    assert set(fields[:used]) == {None}
    assert set(fields[used:]) == {FIELD_OF_UNIT[unit]}  # type: ignore[index]
    assert parts[used].time[0] - telemetry.time[0] < 4.0
    assert stream.problem is None
    assert "used as" in stream.words


def test_the_same_motion_has_the_same_energy_in_either_unit() -> None:
    truth = energy([ARM.record(10.0, seed=3)])
    found = {
        unit: energy(passed(EffortStream(MODEL, ROBOT, "auto"), driver(10.0, unit)))
        for unit in ("ampere", "newton_metre")
    }
    assert found["ampere"] == pytest.approx(truth, rel=0.05)
    assert found["newton_metre"] == pytest.approx(found["ampere"], rel=0.05)
    wrong = [
        replace(part, columns={**part.columns, "actual_current": part[EFFORT]})
        for part in packets(driver(10.0, "newton_metre"), 100)
    ]
    assert energy(wrong) > 2.0 * truth  # what is at stake


@pytest.mark.parametrize(
    ("unit", "stated"), [("newton_metre", "ampere"), ("ampere", "newton_metre")]
)
def test_a_wrong_parameter_is_a_contradiction_and_its_efforts_are_not_used(
    unit: str, stated: StatedUnit
) -> None:
    stream = EffortStream(MODEL, ROBOT, stated, source="/joint_states")
    parts = passed(stream, driver(10.0, unit))
    assert {field_of(part) for part in parts} == {None}  # not even in the first seconds
    found = stream.contradiction
    assert found is not None
    assert found.refused
    assert found.subject == "effort_unit"
    assert stated in found.stated
    assert unit in found.remedy
    assert "A or" in found.evidence
    assert stream.problem == found.words()


def test_a_driver_that_publishes_zeros_has_no_efforts() -> None:
    stream = EffortStream(MODEL, ROBOT, "auto")
    assert {field_of(part) for part in passed(stream, driver(5.0, "mock"))} == {None}
    assert "not used yet" in stream.words


def test_where_efforts_are_required_samples_wait_for_the_decision() -> None:
    stream = EffortStream(MODEL, ROBOT, "auto", required=True)
    telemetry = driver(10.0, "ampere")
    parts = passed(stream, telemetry)
    assert {field_of(part) for part in parts} == {"actual_current"}
    np.testing.assert_array_equal(
        np.concatenate([part.time for part in parts]), telemetry.time
    )
    silent = EffortStream(MODEL, ROBOT, "auto", required=True)
    zeros = driver(3.0 * MOST_HELD, "mock")
    assert passed(silent, zeros) == []
    after = driver(10.0, "ampere")
    later = zeros.time[-1] + 0.01 - after.time[0]
    parts = passed(silent, replace(after, time=after.time + later))
    assert {field_of(part) for part in parts} == {"actual_current"}
    assert parts[0].time[0] >= zeros.time[-1] - MOST_HELD  # the oldest were given up


def test_a_driver_that_was_started_again_is_decided_anew() -> None:
    stream = EffortStream(MODEL, ROBOT, "auto")
    first = driver(8.0, "ampere")
    assert field_of(passed(stream, first)[-1]) == "actual_current"
    second = driver(8.0, "newton_metre", seed=4)
    shift = first.time[-1] + 2.0 * RESTART_GAP - second.time[0]
    parts = passed(stream, replace(second, time=second.time + shift))
    assert field_of(parts[0]) is None
    assert field_of(parts[-1]) == FIELD_OF_UNIT["newton_metre"]
    assert "actual_current" not in {field_of(part) for part in parts}


def test_samples_without_efforts_pass() -> None:
    stream = EffortStream(MODEL, ROBOT, "ampere")
    telemetry = driver(0.1, "ampere")
    columns = {name: telemetry[name] for name in ("actual_q", "actual_qd")}
    (part,) = stream(replace(telemetry, columns=columns))
    assert part.columns.keys() == columns.keys()
