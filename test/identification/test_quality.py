"""Verdicts on recordings with known faults."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from test.identification.conftest import made_up_recording
from test.identification.exact_arm import ExactArm
from ur_energy_model.errors import IdentificationError, MissingFieldError
from ur_energy_model.identification.quality import assess, motion_of
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.samples import Telemetry, find_gaps


@pytest.fixture(scope="module")
def good() -> Telemetry:
    """Half a minute in which everything is as it should be."""
    random = np.random.default_rng(0)
    made = made_up_recording(load_robot("ur5e"), seconds=30, noise=0.5, coulomb=4.0, viscous=3.0)
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


def grade(quality, purpose: str) -> str:
    return next(use.grade for use in quality.uses if use.purpose == purpose)


def test_a_good_recording_is_good_for_everything_whole_or_in_parts(good: Telemetry) -> None:
    quality = assess(good, robot=load_robot("ur5e"))
    assert {use.grade for use in quality.uses} == {"good"}
    assert (quality.warnings, quality.refusal, quality.irregular) == ((), None, False)
    quality.require_usable()
    assert quality.rate == pytest.approx(100)
    assert quality.condition_number is not None
    assert quality.condition_number < 1000
    assert quality.verdict.startswith("good for setup and inertia")
    assert all(joint.activity == "enough" for joint in quality.joints)
    parts = assess(good.cut(slice(start, start + 500)) for start in range(0, len(good), 500))
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
    # Neither sign alone is proof: some controllers report whole volts, and at rest currents agree.
    assert not assess(changed(good, actual_robot_voltage=volts)).simulator
    assert not assess(changed(good, actual_current=good["target_current"])).simulator


def test_gaps_are_counted(good: Telemetry) -> None:
    keep = np.ones(len(good), bool)
    keep[500:550] = keep[1500:1510] = False
    time = good.time[keep]
    columns = {name: values[keep] for name, values in good.columns.items()}
    quality = assess(Telemetry(time, columns, good.info, find_gaps(time, 0.01)))
    assert (quality.gaps, quality.lost) == (2, 60)
    assert any("60 samples (2.0 %)" in line for line in quality.warnings)


def test_frozen_currents(good: Telemetry) -> None:
    stuck = good["actual_current"].copy()
    stuck[1000:1100, 2] = stuck[1000, 2]
    quality = assess(changed(good, actual_current=stuck))
    assert (quality.frozen, quality.refusal) == (("actual_current_2",), None)
    stuck[1000:1100] = stuck[1000]
    with pytest.raises(IdentificationError, match="frozen on every joint"):
        assess(changed(good, actual_current=stuck)).require_usable()


def test_states_and_impossible_values_are_measured(good: Telemetry) -> None:
    acceleration, current = good["target_qdd"].copy(), good["actual_current"].copy()
    acceleration[600:900], current[[700, 900], 3] = 0.0, 1e160
    mode, safety = good["robot_mode"].copy(), good["safety_mode"].copy()
    mode[:300], safety[-150:] = 5.0, 3.0
    states = changed(good, target_qdd=acceleration, robot_mode=mode, safety_mode=safety)
    quality = assess(states)
    shares = (quality.freedrive, quality.not_running, quality.stopped, quality.reduced)
    assert shares == pytest.approx((0.1, 0.1, 0.05, 0.0), abs=0.005)
    assert sum(word in " ".join(quality.warnings) for word in ("freedrive", "brakes", "stop")) == 3
    quality = assess(changed(good, actual_current=current), robot=load_robot("ur5e"))
    assert quality.refusal is None
    assert any("actual_current_3 = 1e+160" in line for line in quality.warnings)
    assert quality.joints[3].current < 100


def test_still_and_hardly_moving_joints() -> None:
    robot = load_robot("ur5e")
    quality = assess(made_up_recording(robot, noise=0.5, still=(4,)), robot=robot)
    assert quality.joints[4].activity == "idle"
    assert grade(quality, "friction") == "limited"
    assert "wrist_2_joint does not move" in quality.verdict + str(quality.uses)
    nothing = assess(made_up_recording(robot, noise=0.5, still=tuple(range(6))), robot=robot)
    assert grade(nothing, "friction") == "no"
    assert nothing.condition_number == np.inf


BUS = ("actual_current", "actual_robot_voltage", "actual_robot_current")


def test_missing_fields_rule_out_what_needs_them(good: Telemetry) -> None:
    gone = ("target_moment", "actual_robot_current", "joint_temperatures")
    some = {name: values for name, values in good.columns.items() if name not in gone}
    bus = {name: good[name] for name in BUS}
    no = dict.fromkeys(("setup_and_inertia", "bus_power", "temperature"), "no")
    cases = ((some, {**no, "friction": "good"}), (bus, {"bus_power": "limited", "friction": "no"}))
    for columns, grades in cases:
        quality = assess(replace(good, columns=columns), robot=load_robot("ur5e"))
        assert {purpose: grade(quality, purpose) for purpose in grades} == grades
        assert "target_moment" in quality.missing
        assert quality.duration == pytest.approx(good.duration)
    assert {joint.activity for joint in quality.joints} == {"unknown"}
    assert quality.condition_number is None


def test_empty_and_tiny_recordings(good: Telemetry) -> None:
    assert assess([]).refusal is not None
    with pytest.raises(IdentificationError, match="record at least"):
        assess(good.cut(slice(0, 20))).require_usable()
    with pytest.raises(MissingFieldError):
        assess(replace(good, columns={"joint_temperatures": good["joint_temperatures"]}))


def test_a_repeated_path_is_the_same_motion_again() -> None:
    """On another day a little off, at another rate; part of it; but not with other poses."""
    fitted = ExactArm().record(40.0, rate=50.0, seed=1)
    q, entry = fitted["target_q"], {"sha256": "a", "visited": assess(fitted).visited.as_json()}
    entry, off = json.loads(json.dumps(entry)), np.array([0.01, -0.01, 0.008, 0.0, 0.01, -0.005])
    later = changed(fitted, target_q=q + off, actual_q=q + off)
    for made, motion in (
        (fitted, "same motion again"),
        (later.select(np.arange(len(later)) % 3 == 0), "same motion again"),
        (fitted.cut(slice(500, 1500)), "same motion again"),
        (ExactArm().record(40.0, rate=50.0, seed=2), "held out"),
        (changed(fitted, target_q=q + 0.6), "held out"),
        (changed(fitted, target_q=q[::-1] * 0.4), "held out"),
    ):
        path = assess(made.cut(slice(k, k + 300)) for k in range(0, len(made), 300)).visited
        assert motion_of(path, "b", [entry]) == motion
        assert motion_of(path, "a", [entry]) == "fitted"
    # Models of older versions have no path: hashes decide, or nothing does.
    assert motion_of(path, "b", [{"sha256": "a"}, entry]) == "held out"
    assert motion_of(path, "b", []) == "unknown"


def test_other_motions_in_the_space_of_a_long_one_stay_other_motions() -> None:
    fitted, same, other = (
        assess(ExactArm().record(length, rate=25.0, seed=seed)).visited
        for length, seed in ((300.0, 1), (60.0, 1), (60.0, 2))
    )
    entry = {"sha256": "a", "visited": fitted.as_json()}
    assert len(fitted.poses) <= 200
    assert motion_of(same, "b", [entry]) == "same motion again"
    assert motion_of(other, "b", [entry]) == "held out"
