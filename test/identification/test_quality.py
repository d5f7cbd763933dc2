# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Verdicts on recordings with known faults."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from test.identification.conftest import made_up_recording
from test.identification.exact_arm import ExactArm
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.quality_check import assess
from ur_energy_model.identification.visited_path import motion_of
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.gaps import find_gaps
from ur_energy_model.telemetry.samples import Telemetry


@pytest.fixture(scope="module")
def good() -> Telemetry:
    """Half a minute in which everything is as it should be."""
    random = np.random.default_rng(0)
    made = made_up_recording(
        load_robot("ur5e"), seconds=30, noise=0.5, coulomb=4.0, viscous=3.0
    )
    return changed(
        made,
        target_current=made["target_moment"] / 10.0,
        joint_temperatures=np.linspace(25, 33, len(made))[:, None] * np.ones(6),
        actual_robot_voltage=48 + 0.1 * random.standard_normal(len(made)),
        actual_robot_current=1 + 0.1 * random.standard_normal(len(made)),
        robot_mode=np.full(len(made), 7.0),
        safety_mode=np.ones(len(made)),
        payload=np.full(len(made), 0.5),
    )


def changed(made: Telemetry, **columns: np.ndarray) -> Telemetry:
    return replace(made, columns={**made.columns, **columns})


def test_a_good_recording_is_good_for_everything_whole_or_in_parts(
    good: Telemetry,
) -> None:
    quality = assess(good, robot=load_robot("ur5e"))
    assert {use.grade for use in quality.uses} == {"good"}
    assert (quality.warnings, quality.refusal, quality.irregular) == ((), None, False)
    quality.require_usable()
    assert quality.rate == pytest.approx(100)
    assert quality.condition_number is not None
    assert quality.condition_number < 1000
    parts = assess(
        good.cut(slice(start, start + 500)) for start in range(0, len(good), 500)
    )
    assert parts.samples == quality.samples
    for mine, theirs in zip(parts.joints, quality.joints, strict=True):
        assert (mine.reversals, mine.travel) == (theirs.reversals, theirs.travel)
    assert {use.grade for use in parts.uses} == {"good"}


def test_the_makers_simulator_is_refused(good: Telemetry) -> None:
    volts = 48.0 * np.ones(len(good))
    exact = 1.02 * good["target_current"]
    quality = assess(changed(good, actual_current=exact, actual_robot_voltage=volts))
    assert quality.simulator
    with pytest.raises(IdentificationError, match="offline simulator"):
        quality.require_usable()
    # Neither sign alone is proof: some controllers report whole volts, and at rest
    # currents agree.
    assert not assess(changed(good, actual_robot_voltage=volts)).simulator
    assert not assess(changed(good, actual_current=good["target_current"])).simulator


def test_gaps_frozen_currents_and_too_few_samples(good: Telemetry) -> None:
    keep = np.ones(len(good), bool)
    keep[500:550] = keep[1500:1510] = False
    time = good.time[keep]
    columns = {name: values[keep] for name, values in good.columns.items()}
    quality = assess(Telemetry(time, columns, good.info, find_gaps(time, 0.01)))
    assert (quality.gaps, quality.lost) == (2, 60)
    stuck = good["actual_current"].copy()
    stuck[1000:1100, 2] = stuck[1000, 2]
    quality = assess(changed(good, actual_current=stuck))
    assert (quality.frozen, quality.refusal) == (("actual_current_2",), None)
    with pytest.raises(IdentificationError, match="record at least"):
        assess(good.cut(slice(0, 20))).require_usable()


def test_states_and_impossible_values_are_measured(good: Telemetry) -> None:
    acceleration = good["target_qdd"].copy()
    current = good["actual_current"].copy()
    acceleration[600:900] = 0.0
    current[[700, 900], 3] = 1e160
    mode = good["robot_mode"].copy()
    safety = good["safety_mode"].copy()
    mode[:300] = 5.0
    safety[-150:] = 3.0
    states = changed(good, target_qdd=acceleration, robot_mode=mode, safety_mode=safety)
    quality = assess(states)
    shares = (quality.freedrive, quality.not_running, quality.stopped, quality.reduced)
    assert shares == pytest.approx((0.1, 0.1, 0.05, 0.0), abs=0.005)
    assert (
        sum(
            word in " ".join(quality.warnings) for word in ("freedrive", "brakes", "stop")
        )
        == 3
    )
    quality = assess(changed(good, actual_current=current), robot=load_robot("ur5e"))
    assert quality.refusal is None
    assert any("actual_current_3 = 1e+160" in line for line in quality.warnings)
    assert quality.joints[3].current < 100


def test_missing_fields_and_a_still_joint_rule_out_what_needs_them(
    good: Telemetry,
) -> None:
    robot = load_robot("ur5e")
    gone = ("target_moment", "actual_robot_current", "joint_temperatures")
    some = {name: values for name, values in good.columns.items() if name not in gone}
    quality = assess(replace(good, columns=some), robot=robot)
    grades = {use.purpose: use.grade for use in quality.uses}
    assert {
        grades[each] for each in ("setup_and_inertia", "bus_power", "temperature")
    } == {"no"}
    assert grades["friction"] == "good"
    assert "target_moment" in quality.missing
    quality = assess(made_up_recording(robot, noise=0.5, still=(4,)), robot=robot)
    assert quality.joints[4].activity == "idle"
    assert {use.purpose: use.grade for use in quality.uses}["friction"] == "limited"


def test_a_repeated_path_is_the_same_motion_again() -> None:
    """On another day a little off, at another rate; part of it; but not with other poses."""
    fitted = ExactArm().record(40.0, rate=50.0, seed=1)
    q = fitted["target_q"]
    entry = {"sha256": "a", "visited": assess(fitted).visited.as_json()}
    entry = json.loads(json.dumps(entry))
    off = np.array([0.01, -0.01, 0.008, 0.0, 0.01, -0.005])
    later = changed(fitted, target_q=q + off, actual_q=q + off)
    for made, motion in (
        (fitted, "same motion again"),
        (later.select(np.arange(len(later)) % 3 == 0), "same motion again"),
        (ExactArm().record(40.0, rate=50.0, seed=2), "held out"),
        (changed(fitted, target_q=q[::-1] * 0.4), "held out"),
    ):
        path = assess(
            made.cut(slice(k, k + 300)) for k in range(0, len(made), 300)
        ).visited
        assert motion_of(path, "b", [entry]) == motion
        assert motion_of(path, "a", [entry]) == "fitted"
    # Models of older versions have no path: hashes decide, or nothing does.
    assert motion_of(path, "b", [{"sha256": "a"}, entry]) == "held out"
    assert motion_of(path, "b", []) == "unknown"
