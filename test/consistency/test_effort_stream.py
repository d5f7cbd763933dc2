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
from ur_energy_model.consistency.torque_field import (
    FIELD_OF_UNIT,
    TORQUE_FIELD,
    StatedUnit,
)
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.energy.powers import PowerOptions
from ur_energy_model.errors import MissingFieldError
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.samples import Telemetry

ARM = ExactArm()
ROBOT = load_robot("ur5e")
MODEL = generic_model("ur5e")
RATIO = ARM.torque_constant * ROBOT.gear_ratio
SCALES = {"ampere": np.ones(6), "newton_metre": RATIO, "mock": np.zeros(6)}


def driver(seconds: float, unit: str, *, seed: int = 3, rate: float = 100.0) -> Telemetry:
    """Samples of a moving arm as a driver publishes them: joint states alone."""
    made = ARM.record(seconds, rate=rate, seed=seed)
    if unit in SCALES:
        effort = SCALES[unit] * made["actual_current"]
    else:
        gravity = MODEL.dynamics().gravity_torque(made["actual_q"])
        effort = RATIO * made["actual_current"] - gravity
        if unit == "external":
            effort = 0.5 * np.random.default_rng(seed).standard_normal(effort.shape)
    columns = {"actual_q": made["actual_q"], "actual_qd": made["actual_qd"]}
    return replace(made, columns={**columns, EFFORT: effort})


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


@pytest.mark.parametrize("rate", [10.0, 125.0, 500.0])
def test_gravity_is_added_to_torques_without_it(rate: float) -> None:
    """The energy is that of the same torques with gravity, from the same sample on."""
    parts = {
        unit: passed(EffortStream(MODEL, ROBOT, unit), driver(10.0, unit, rate=rate), 50)
        for unit in ("newton_metre", "without_gravity")
    }
    used = [field_of(part) is not None for part in parts["newton_metre"]]
    assert used == [field_of(part) is not None for part in parts["without_gravity"]]
    assert any(used)
    assert energy(parts["without_gravity"]) == pytest.approx(
        energy(parts["newton_metre"]), rel=1e-6
    )


@pytest.mark.parametrize("unit", ["without_gravity", "external"])
def test_torques_without_gravity_are_never_taken_for_others(unit: str) -> None:
    stream = EffortStream(MODEL, ROBOT, "auto")
    parts = passed(stream, driver(15.0, unit))
    assert {field_of(part) for part in parts} <= {None, FIELD_OF_UNIT["without_gravity"]}
    for stated in ("ampere", "newton_metre"):
        wrong = EffortStream(MODEL, ROBOT, stated)
        counted = passed(wrong, driver(15.0, unit))
        assert wrong.contradiction is not None
        assert field_of(counted[-1]) is None


def test_a_torque_field_of_unknown_content_is_not_used() -> None:
    """Live energy is that of the motion, whatever actual_current_as_torque has."""
    motion = driver(5.0, "mock")
    bare = without_column(motion, EFFORT)
    torque = replace(bare, columns={**bare.columns, TORQUE_FIELD: 100.0 + motion[EFFORT]})
    assert energy([torque]) == energy([bare])
    with pytest.raises(MissingFieldError):
        energy([torque], method="current")


def without_column(telemetry: Telemetry, name: str) -> Telemetry:
    kept = {key: telemetry[key] for key in telemetry.columns if key != name}
    return replace(telemetry, columns=kept)


@pytest.mark.parametrize("stated", ["auto", "ampere", "newton_metre", "without_gravity"])
def test_a_driver_that_publishes_zeros_has_no_efforts(stated: StatedUnit) -> None:
    stream = EffortStream(MODEL, ROBOT, stated)
    assert {field_of(part) for part in passed(stream, driver(5.0, "mock"))} == {None}
    assert stream.unit is None
    assert (stream.problem is not None) == (stated != "auto")


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
