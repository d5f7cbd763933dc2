# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Unit of efforts: simulated and recorded arms whose efforts are currents, torques or others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from test.truth import first_fast
from ur_energy_model.consistency.effort_unit import (
    CurrentCheck,
    EffortEvidence,
    EffortMeaning,
    EffortVerdict,
)
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, Setup, gravity_of_mounting
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.csv.reader import CsvReader
from ur_energy_model.telemetry.csv.table import CsvOptions
from ur_energy_model.telemetry.samples import Telemetry, concatenate
from ur_energy_model.trajectory.named_motions import named_motion
from ur_energy_model.typing import Array

FIELDS = ("actual_q", "actual_qd", "actual_current")
SECONDS = 8.0
STEP = 0.5  # time of samples after which the evidence is looked at [s]

RECORDED = {
    "ur10e_other_days_2019_10_01": "ur10e",
    "ur3e_moves_payload_1.07kg_25hz_36s": "ur3e",
    "ur5e_other_day_10hz_21s": "ur5e",
    "ur5e_other_arm_125hz_11s": "ur5e",
    "ur10e_point_to_point_57s": "ur10e",
    "ur5e_pick_place_50hz_24s": "ur5e",
    "ur5e_streamed_move_500hz_6s": "ur5e",
    "ur10e_excitation_50s": "ur10e",
    "ur10e_excitation_loaded_2.805kg_56s": "ur10e",
    "ur10e_other_days_2019_12_23": "ur10e",
    "ur10e_other_days_2020_02_05": "ur10e",
    "ur10e_other_days_2020_02_06": "ur10e",
}
"""Recordings of real arms, and their types; two UR5e recordings are of an arm mounted at 45 degrees
with 1.5 kg, which the generic model is not."""


class Moved(NamedTuple):
    """Some seconds of an arm, and the torque of gravity in its real setup."""

    arm: str
    time: Array
    q: Array
    qd: Array
    current: Array
    torque_per_ampere: Array
    gravity: Array

    def efforts(self, meaning: EffortMeaning) -> Array:
        """What a driver publishes that means this by efforts [samples, n]."""
        torque = self.current * self.torque_per_ampere
        return {
            "ampere": self.current,
            "newton_metre": torque,
            "without_gravity": torque - self.gravity,
            "none": 1000.0 * self.current,
        }[meaning]


def verdicts(moved: Moved, meaning: EffortMeaning) -> Iterator[EffortVerdict]:
    """After each STEP of a driver's samples."""
    evidence = EffortEvidence(generic_model(moved.arm))
    ends = np.searchsorted(
        moved.time, np.arange(moved.time[0] + STEP, moved.time[-1], STEP)
    )
    efforts = moved.efforts(meaning)
    for first, last in zip(np.append(0, ends[:-1]), ends, strict=True):
        part = slice(int(first), int(last))
        evidence.observe(moved.time[part], moved.q[part], moved.qd[part], efforts[part])
        yield evidence.verdict()


def first_decision(moved: Moved, meaning: EffortMeaning) -> EffortVerdict | None:
    """What is decided first, as a driver's stream uses it."""
    return next(
        (each for each in verdicts(moved, meaning) if each.meaning is not None), None
    )


def simulated(arm: str, seed: int, motion: str) -> Moved:
    """An arm of its own, with a payload, and sometimes a mounting, that the model does not have."""
    robot = load_robot(arm)
    random = np.random.default_rng([seed, len(arm)])
    mass = (
        float(random.choice([0.0, 0.0, 0.1, 0.25]))
        * robot.mass.sum()
        * random.uniform(0.5, 1.0)
    )
    payload = Payload(mass, np.array([*random.uniform(-0.1, 0.1, 2), 0.08]))
    upright = random.random() > 0.1
    tilt, turn = (0.0, 0.0) if upright else random.uniform(0.5, 3.1, 2)
    setup = Setup(gravity_of_mounting(tilt, turn), payload)
    session = ArmOptions(
        session=int(random.integers(9)), ambient=float(random.uniform(8.0, 32.0))
    )
    made = SimulatedArm(
        robot,
        motion=named_motion(motion, robot, Setup()),
        seed=seed,
        setup=setup,
        options=session,
    )
    found = record_arm(made, SECONDS, FIELDS)
    gravity = generic_model(arm).dynamics(setup=setup).gravity_torque(found["actual_q"])
    q, qd, current = (found[name] for name in FIELDS)
    return Moved(
        arm, found.time, q, qd, current, made.parameters.current_to_torque, gravity
    )


@pytest.fixture(scope="module")
def arms() -> list[Moved]:
    """Arms of several types and days, in the motions that a driver's first seconds show."""
    kinds = ("ur3e", "ur5e", "ur10e", "ur20", "ur5", "ur10")
    motions = ("trajectory_b", "pick_and_place", "hold")
    return [
        simulated(arm, 10 * k + turn, motion)
        for k, arm in enumerate(kinds)
        for turn, motion in enumerate(motions)
    ]


@pytest.mark.truth
def test_decisions_on_simulated_arms_are_right(arms: list[Moved]) -> None:
    """Not one of the decisions is wrong, of which one in a thousand may be."""
    for meaning, least in (("ampere", 10), ("newton_metre", 10), ("without_gravity", 2)):
        found = Counter[object]()
        for moved in arms:
            decided = first_decision(moved, meaning)  # type: ignore[arg-type]
            found["undecided" if decided is None else decided.meaning] += 1
        wrong = {"ampere", "newton_metre"} & set(found) - {meaning}
        assert not wrong, (meaning, found)
        assert found[meaning] >= least, (meaning, found)  # of 18, of which 6 stand still


@pytest.mark.truth
def test_the_wrong_unit_is_excluded_in_a_few_seconds(arms: list[Moved]) -> None:
    """In motion and, for most arms, at standstill in gravity."""
    for truth, stated, least in (
        ("newton_metre", "ampere", 17),
        ("ampere", "newton_metre", 14),
    ):
        excluded = 0
        for moved in arms:
            last = [*verdicts(moved, truth)][-1]  # type: ignore[arg-type]
            excluded += last.excludes(stated)  # type: ignore[arg-type]
            assert not last.excludes(truth), moved.arm  # type: ignore[arg-type]
        assert excluded >= least, (truth, excluded, len(arms))


@pytest.fixture
def recorded(recordings: Path) -> Callable[[str], list[Moved]]:
    """Windows of a recording, each beginning where another driver might."""

    def windows(name: str) -> list[Moved]:
        arm = RECORDED[name]
        robot = load_robot(arm)
        model = generic_model(arm)
        reader = CsvReader(
            [recordings / f"{name}.csv.gz"], arm, CsvOptions(robot.dof), print
        )
        whole: Telemetry = concatenate([*reader])
        ratio = np.array(
            [joint.gear_ratio * joint.torque_constant for joint in model.joints]
        )
        gravity = model.dynamics().gravity_torque(whole["actual_q"])
        starts = np.linspace(whole.time[0], whole.time[-1] - 4.0, 6)
        found = []
        for start in starts:
            rows = (whole.time >= start) & (whole.time < start + 2.0 * SECONDS)
            q, qd, current = (whole[field][rows] for field in FIELDS)
            found.append(
                Moved(arm, whole.time[rows], q, qd, current, ratio, gravity[rows])
            )
        return found

    return windows


@pytest.mark.parametrize("name", first_fast(RECORDED, 5))
def test_decisions_on_real_arms_are_right(
    name: str, recorded: Callable[[str], list[Moved]]
) -> None:
    """Currents, and the same times gear ratio and torque constant, of recordings of real arms."""
    tilted = name in ("ur5e_pick_place_50hz_24s", "ur5e_other_day_10hz_21s")
    windows = recorded(name)
    for meaning in ("ampere", "newton_metre", "none"):
        found = Counter[object]()
        for moved in windows:
            decided = first_decision(moved, meaning)
            found["undecided" if decided is None else decided.meaning] += 1
        assert set(found) <= {meaning, "undecided"}, (meaning, found)
        if not tilted:
            assert found[meaning] >= 4, (meaning, found)


@pytest.mark.parametrize("name", first_fast(RECORDED, 5))
def test_torques_under_the_name_of_currents_contradict(
    name: str, recordings: Path, recorded: Callable[[str], list[Moved]]
) -> None:
    """Of a whole recording, whatever its length; currents never do."""
    tilted = name in ("ur5e_pick_place_50hz_24s", "ur5e_other_day_10hz_21s")
    robot = load_robot(RECORDED[name])
    found = []
    for scale in (np.ones(6), recorded(name)[0].torque_per_ampere):
        check = CurrentCheck()
        for part in CsvReader(
            [recordings / f"{name}.csv.gz"], robot.name, CsvOptions(), print
        ):
            columns = {field: part[field] for field in FIELDS}
            columns["actual_current"] = columns["actual_current"] * scale
            check.observe(replace(part, columns=columns))
        found.append(check.contradictions(robot))
    assert not found[0]
    refused = [each.refused for each in found[1]]
    assert refused == [True] or (tilted and not refused)


def test_brakes_and_freedrive_show_no_unit() -> None:
    """An arm without currents in gravity is braked, off or pushed; its efforts have any unit."""
    evidence = EffortEvidence(generic_model("ur5e"))
    random = np.random.default_rng(1)
    time = np.arange(3000) / 500.0
    q = np.tile([0.0, -0.3, 0.2, 0.0, 0.0, 0.0], (3000, 1))
    noise = 0.01 * random.normal(size=(3000, 6))
    for start in range(0, 3000, 250):
        part = slice(start, start + 250)
        evidence.observe(time[part], q[part], np.zeros((250, 6)), noise[part])
    assert evidence.seconds == 0.0
    assert not evidence.verdict().excludes("ampere")


def test_an_arm_that_shows_nothing_decides_nothing() -> None:
    """Without torque on any joint, without time, and where gear ratio times constant is about 1."""
    model = generic_model("ur5e")
    upright = np.tile([0.0, -np.pi / 2, 0.0, -np.pi / 2, 0.0, 0.0], (500, 1))
    time = np.arange(500) / 100.0
    still = np.zeros((500, 6))
    noise = 0.2 * np.random.default_rng(1).normal(size=(500, 6))
    evidence = EffortEvidence(model)
    assert evidence.verdict().meaning is None
    evidence.observe(time[:1], upright[:1], still[:1], noise[:1])
    assert evidence.verdict().meaning is None
    evidence.observe(time, upright, still, noise)
    verdict = evidence.verdict()
    assert verdict.seconds > 4.0
    assert not verdict.excludes("ampere")
    assert sum(verdict.probability.values()) == pytest.approx(1.0)
