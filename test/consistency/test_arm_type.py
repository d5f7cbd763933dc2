# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The type of an arm: recordings of real and made-up arms under every name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from test.truth import first_fast
from ur_energy_model.consistency.arm_type import ArmTypeCheck, ArmTypeMonitor
from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.controller_torque import POSITION_DELAY
from ur_energy_model.consistency.sample_windows import MOST_WINDOWS, WINDOW, SampleWindows
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription, available_robots, load_robot
from ur_energy_model.model.setup import Payload, Setup, gravity_of_mounting
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.gaps import find_gaps
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.trajectory.kinematics import pose_vector
from ur_energy_model.typing import Array

ARMS = tuple(
    name
    for name in available_robots()
    if load_robot(name).generation in ("e-series", "cb3")
)
ALIKE = ({"ur5e", "ur7e"}, {"ur10e", "ur12e"})
"""Arms with the same constants."""
RECORDINGS = {
    "ur3e_moves_payload_1.07kg_25hz_36s": "ur3e",
    "ur5e_other_arm_125hz_11s": "ur5e",
    "ur5e_pick_place_50hz_24s": "ur5e",
    "ur10e_other_days_2019_10_01": "ur10e",
    "ur5e_other_day_10hz_21s": "ur5e",
    "ur5e_streamed_move_500hz_6s": "ur5e",
    "ur10e_excitation_50s": "ur10e",
    "ur10e_excitation_loaded_2.805kg_56s": "ur10e",
    "ur10e_other_days_2020_02_06": "ur10e",
    "ur10e_point_to_point_57s": "ur10e",
}
"""Recordings of real arms, and which arm each is of; the long ones are the last four."""
EVERY_RECORDING = first_fast(RECORDINGS, 2)
NEAREST = {"ur10e": {"ur10"}}
"""Arms that measured motion may not distinguish from the right one."""


def same(robot: str) -> set[str]:
    return next((arms for arms in ALIKE if robot in arms), {robot})


@cache
def read(path: Path) -> Telemetry:
    return read_csv([path], None)


def named(contradiction: Contradiction) -> list[str]:
    """Arms that a contradiction names, the best first."""
    return contradiction.shown.rpartition(" of a ")[2].split(" or ")


def contradictions(
    telemetry: Telemetry, names: tuple[str, ...] = ARMS
) -> Iterator[tuple[str, Contradiction | None]]:
    """Arms, and what contradicts that the recording is of each."""
    check = ArmTypeCheck()
    check.observe(telemetry)
    for name in names:
        found = check.contradictions(load_robot(name))
        yield name, found[0] if found else None


def without(telemetry: Telemetry, *prefixes: str) -> Telemetry:
    columns = {
        name: values
        for name, values in telemetry.columns.items()
        if not name.startswith(prefixes)
    }
    return replace(telemetry, columns=columns)


def decimated(telemetry: Telemetry, rate: float) -> Telemetry:
    keep = np.diff(np.floor(telemetry.time * rate), prepend=-1) != 0
    columns = {name: values[keep] for name, values in telemetry.columns.items()}
    time = telemetry.time[keep]
    return Telemetry(time, columns, replace(telemetry.info, rate=None), find_gaps(time))


VARIANTS: dict[str, Callable[[Telemetry], Telemetry]] = {
    "as recorded": lambda part: part,
    "50 Hz": lambda part: decimated(part, 50.0),
    "10 Hz": lambda part: decimated(part, 10.0),
    "5 Hz": lambda part: decimated(part, 5.0),
    "without poses": lambda part: without(part, "actual_TCP", "target_TCP"),
    "without targets and poses": lambda part: without(part, "target_q", "actual_TCP"),
    "without torques": lambda part: without(part, "target_moment"),
    "currents alone": lambda part: without(part, "target_", "actual_TCP"),
    "two seconds": lambda part: part.select(part.time < part.time[0] + 2.0),
    "standstill": lambda part: part.select(np.abs(part["actual_qd"]).max(axis=1) < 3e-3),
}


@pytest.mark.parametrize("name", EVERY_RECORDING)
def test_a_right_recording_is_never_accused(recordings: Path, name: str) -> None:
    whole = read(recordings / f"{name}.csv.gz")
    arms = tuple(sorted(same(RECORDINGS[name])))
    for variant, made in VARIANTS.items():
        for arm, found in contradictions(made(whole), arms):
            assert found is None, f"{variant}, {arm}: {found.words() if found else ''}"


@pytest.mark.parametrize("name", EVERY_RECORDING)
def test_a_wrong_name_is_contradicted_and_the_right_one_named(
    recordings: Path, name: str
) -> None:
    right = RECORDINGS[name]
    telemetry = read(recordings / f"{name}.csv.gz")
    for arm, found in contradictions(telemetry):
        if arm in same(right) or arm in NEAREST.get(right, ()):
            continue
        assert found is not None, arm
        assert found.refused
        assert found.subject == "robot"
        assert named(found)[0] in same(right)
        assert set(named(found)) <= same(right) | NEAREST.get(right, set())
        assert f"--robot {right}" in found.remedy


@pytest.mark.parametrize(
    "name", ["ur3e_moves_payload_1.07kg_25hz_36s", "ur5e_other_day_10hz_21s"]
)
def test_the_arm_of_a_file_that_names_none(recordings: Path, name: str) -> None:
    check = ArmTypeCheck()
    check.observe(read(recordings / f"{name}.csv.gz"))
    assert set(check.fitting_arms()) == same(RECORDINGS[name])


def test_currents_alone_decide_nothing(recordings: Path) -> None:
    path = recordings / "ur10e_excitation_50s.csv.gz"
    telemetry = VARIANTS["currents alone"](read(path))
    assert all(found is None for _, found in contradictions(telemetry, ("ur5e", "ur20")))


# Made-up arms: the controller's own torque and poses, whose truth is known.


def motion(seed: int, seconds: float, rate: float) -> tuple[Array, Array, Array, Array]:
    """Times, and smooth random positions, speeds and accelerations [samples, 6]."""
    random = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, 1.0 / rate)
    middle = np.array([0.0, -1.4, 1.5, -1.6, -1.5, 0.3]) + random.uniform(-0.3, 0.3, 6)
    amplitude = random.uniform(0.1, 0.25, (4, 6))
    frequency = random.uniform(0.4, 2.0, (4, 6))
    phase = frequency * time[:, None, None] + random.uniform(0, 6, (4, 6))
    q = middle + (amplitude * np.sin(phase)).sum(axis=1)
    qd = (amplitude * frequency * np.cos(phase)).sum(axis=1)
    qdd = -(amplitude * frequency**2 * np.sin(phase)).sum(axis=1)
    return time, q, qd, qdd


def recording(
    robot: RobotDescription,
    seed: int = 0,
    *,
    setup: Setup | None = None,
    seconds: float = 20.0,
    rate: float = 50.0,
    payloads: tuple[float, ...] = (),
) -> Telemetry:
    """Targets, torques and poses as the controller of an arm computes them.

    `payloads`: masses that follow one another, unrecorded, in place of the setup's.
    """
    time, q, qd, qdd = motion(seed, seconds, rate)
    setup = Setup() if setup is None else setup
    inertia = np.nan_to_num(robot.reflected_inertia, nan=1.0)
    earlier = q - POSITION_DELAY * qd + 0.5 * POSITION_DELAY**2 * qdd
    arms = [
        ArmDynamics(
            robot, replace(setup, payload=Payload(mass, np.array([0.0, 0.02, 0.1])))
        )
        for mass in payloads
    ] or [ArmDynamics(robot, setup)]
    number = np.minimum((time / seconds * len(arms)).astype(int), len(arms) - 1)
    torque = inertia * qdd
    for k, arm in enumerate(arms):
        used = number == k
        torque[used] += arm.inverse_dynamics(earlier[used], qd[used], qdd[used])
    tool = np.eye(4)
    tool[:3, 3] = 0.01, -0.03, 0.15
    poses = np.array(
        [pose_vector(pose @ tool) for pose in ArmDynamics(robot).flange_pose(q)]
    )
    columns = {
        "target_q": q, "target_qd": qd, "target_qdd": qdd, "target_moment": torque,
        "actual_q": q, "actual_qd": qd, "actual_TCP_pose": poses,
    }  # fmt: skip
    return Telemetry(time, columns, RecordingInfo(source="made up", rate=rate))


MOUNTINGS = {
    "upright": gravity_of_mounting(0.0, 0.0),
    "wall": gravity_of_mounting(np.pi / 2, 0.7),
    "ceiling": gravity_of_mounting(np.pi, 0.0),
    "tilted": gravity_of_mounting(0.6, -1.0),
}


@pytest.mark.parametrize("arm", first_fast(ARMS))
def test_every_arm_is_recognised_in_any_mounting(arm: str) -> None:
    load = Payload(4.0, np.array([0.02, 0.0, 0.12]), 0.01 * np.eye(3))
    setup = Setup(list(MOUNTINGS.values())[ARMS.index(arm) % len(MOUNTINGS)], load)
    whole = recording(load_robot(arm), seed=len(arm), setup=setup)
    others = tuple(name for name in ("ur3e", "ur5", "ur5e", "ur10e", "ur15", "ur20"))
    for telemetry in (whole, without(whole, "actual_TCP")):
        for name, found in contradictions(telemetry, (arm, *others)):
            if name in same(arm):
                assert found is None, found
            elif found is not None:
                assert named(found)[0] in same(arm)
            # relatives of two generations differ by less than some controllers'
            # arithmetic
            else:
                assert name.removesuffix("e") == arm.removesuffix("e"), name
                assert "actual_TCP_pose" not in telemetry


@pytest.mark.parametrize("seed", first_fast(range(6)))
def test_links_that_differ_by_some_percent_accuse_no_one(seed: int) -> None:
    """An arm whose controller has slightly other links than the package's description."""
    random = np.random.default_rng(seed)
    share = random.uniform(0.0, 0.04)
    described = load_robot(("ur5e", "ur10e", "ur16e", "ur3")[seed % 4])
    own = replace(
        described,
        mass=described.mass * random.uniform(1 - share, 1 + share, 6),
        center_of_mass=described.center_of_mass
        * random.uniform(1 - share, 1 + share, (6, 1)),
    )
    whole = recording(own, seed)
    for telemetry in (whole, without(whole, "actual_TCP"), without(whole, "target_")):
        ((_, found),) = contradictions(telemetry, (described.name,))
        assert found is None, found


@pytest.mark.parametrize("seed", first_fast(range(8)))
def test_a_payload_that_changes_unnoticed_accuses_no_one(seed: int) -> None:
    """No arm explains torques of several payloads as those of one."""
    arm = ("ur5e", "ur10e", "ur3e", "ur20")[seed % 4]
    masses = tuple(np.random.default_rng(seed).uniform(0.0, 5.0, 2 + seed % 3).tolist())
    whole = recording(
        load_robot(arm), seed, payloads=masses, seconds=6.0 + 3.0 * (seed % 3)
    )
    for telemetry in (whole, without(whole, "actual_TCP")):
        ((_, found),) = contradictions(telemetry, (arm,))
        assert found is None, found


def test_a_changed_tool_and_a_recorded_payload() -> None:
    """Another tool after half of the time; the payload as the controller reports it."""
    part = recording(load_robot("ur10e"), payloads=(0.0, 8.0))
    half = np.arange(len(part)) >= len(part) // 2
    poses = part["actual_TCP_pose"].copy()
    poses[half, 2] += 0.1
    payload = np.where(half, 8.0, 0.0)
    changed = replace(
        part, columns={**part.columns, "actual_TCP_pose": poses, "payload": payload}
    )
    found = dict(contradictions(changed, ("ur10e", "ur5e")))
    assert found["ur10e"] is None
    assert found["ur5e"] is not None  # by the torques of one payload


def test_an_arm_of_the_users_file() -> None:
    """A file of a UR5e with a longer base and other frames; poses cannot speak against it."""
    own = replace(load_robot("ur5e"), name="mine", source="mine.yaml", generation="other")
    own.d[0] += 0.4
    telemetry = recording(load_robot("ur5e"))
    check = ArmTypeCheck()
    check.observe(telemetry)
    assert not check.contradictions(own)
    wrong = replace(
        load_robot("ur20"), name="mine", source="mine.yaml", generation="other"
    )
    (found,) = check.contradictions(wrong)
    assert named(found)[0] == "ur5e"


def test_other_numbers_of_joints_and_unusable_columns_show_nothing() -> None:
    part = recording(load_robot("ur5e"), seconds=10.0)
    check = ArmTypeCheck()
    check.observe(part)
    assert not check.contradictions(load_robot("gen3"))
    for broken in (
        {"target_moment": np.full_like(part["target_moment"], np.nan)},
        {"target_moment": np.zeros_like(part["target_moment"])},
        {
            "target_moment": np.random.default_rng(1).normal(
                size=part["target_moment"].shape
            )
        },
        {"target_moment": 1e3 * part["target_moment"]},
        {"target_q": np.full_like(part["target_q"], 1e9)},
    ):
        changed = without(replace(part, columns={**part.columns, **broken}), "actual_TCP")
        for name, found in contradictions(changed, ("ur5e", "ur10e")):
            assert found is None, (name, broken.keys())
    millimetres = replace(
        part, columns={**part.columns, "actual_TCP_pose": 1e3 * part["actual_TCP_pose"]}
    )
    assert dict(contradictions(millimetres, ("ur5e",)))["ur5e"] is None


def test_speeds_that_an_arm_cannot_have() -> None:
    time, q, qd, _ = motion(3, 10.0, 100.0)
    qd = 6.0 * qd / np.abs(qd).max()
    part = Telemetry(time, {"actual_q": q, "actual_qd": qd}, RecordingInfo(rate=100.0))
    found = dict(contradictions(part, ("ur10e", "ur3e")))
    assert found["ur3e"] is None or "ur3e" not in named(found["ur3e"])
    if (np.sort(np.abs(qd[:, 3:]), axis=0)[-20:] > 4.2).any():
        assert found["ur10e"] is not None


def test_windows_are_spread_evenly_in_bounded_memory() -> None:
    windows = SampleWindows(("actual_q",))
    time = np.arange(0.0, 3600.0, 0.1)
    for begin in range(0, len(time), 777):
        times = time[begin : begin + 777]
        columns = {"actual_q": times[:, None], "other": times}
        windows.add(Telemetry(times, columns, RecordingInfo(rate=10.0)))
    kept = windows.windows()
    assert 2 <= len(kept) <= MOST_WINDOWS
    assert windows.seconds == pytest.approx(3600.0, abs=0.2)
    starts = [part.time[0] for part in kept]
    assert np.ptp(np.diff(starts)) < 0.2
    assert starts[-1] > 1800.0
    for part in kept:
        assert list(part.columns) == ["actual_q"]
        assert part.time[-1] - part.time[0] == pytest.approx(WINDOW, abs=0.2)


def test_windows_of_a_clock_that_begins_again() -> None:
    windows = SampleWindows(("x",))
    for start in (100.0, 0.0, 50.0):
        time = start + np.arange(0.0, 5.0, 0.1)
        windows.add(Telemetry(time, {"x": time}, RecordingInfo(rate=10.0)))
    assert windows.seconds < 70.0
    assert sum(map(len, windows.windows())) <= 150


def test_a_connected_arm_is_compared_while_it_is_read() -> None:
    telemetry = recording(load_robot("ur10e"), seconds=40.0)
    monitor = ArmTypeMonitor(load_robot("ur5e"))
    right = ArmTypeMonitor(load_robot("ur10e"))
    for begin in range(0, len(telemetry), 25):
        batch = telemetry.cut(slice(begin, begin + 25))
        monitor.observe(batch)
        right.observe(batch)
    assert right.finish() is None
    found = monitor.finish()
    assert found is not None
    assert named(found)[0] == "ur10e"
