# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What actual_current_as_torque contains: simulated controllers that report either content."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.identification.exact_arm import ExactArm, write_bag
from test.truth import first_fast
from ur_energy_model.consistency.contradiction import ContradictionError
from ur_energy_model.consistency.torque_field import (
    CURRENT_FIELD,
    TORQUE_FIELD,
    StatedUnit,
    TorqueContent,
    TorqueFieldCheck,
)
from ur_energy_model.energy.powers import PowerOptions
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.errors import MissingFieldError, RecordingError
from ur_energy_model.identification.quality_check import assess
from ur_energy_model.identification.recording import TORQUE, read_recording
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.simulation.arm_options import ArmOptions, TorqueField
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.motions import Hold
from ur_energy_model.trajectory.named_motions import named_motion
from ur_energy_model.typing import Array

ROBOT = load_robot("ur5e")
MODEL = generic_model("ur5e")
UPRIGHT = np.array([0.0, -np.pi / 2, 0.0, -np.pi / 2, 0.0, 0.0])
FIELDS = (
    "actual_q", "actual_qd", CURRENT_FIELD, TORQUE_FIELD, "payload", "payload_cog",
)  # fmt: skip
KINDS = {
    "with_gravity": "torque with gravity",
    "without_gravity": "torque without gravity",
}
SECONDS = 8.0
RESTING = 3.0  # time of arms that stand still [s]


def body(mass: float) -> Payload:
    return Payload(mass, np.array([0.0, 0.0, 0.06]))


@cache
def simulated(
    content: TorqueField, motion: str, declared: float, carried: float, seed: int
) -> Telemetry:
    """Samples at 500 Hz of a simulated UR5e, whose payload may not be the declared one."""
    arm = SimulatedArm(
        ROBOT,
        motion=Hold(UPRIGHT)
        if motion == "upright"
        else named_motion(motion, ROBOT, Setup()),
        seed=seed,
        setup=Setup(payload=body(declared)),
        carried=body(carried),
        options=ArmOptions(controller_version=(5, 23, 0), torque_field=content),
    )
    seconds = RESTING if motion in ("hold", "upright") else SECONDS
    return record_arm(arm, seconds, FIELDS)


@cache
def recorded(
    content: TorqueField,
    motion: str = "exact",
    declared: float = 0.0,
    carried: float = 0.0,
    seed: int = 3,
) -> Telemetry:
    """Samples at 500 Hz, of a simulated arm or of one that obeys the model exactly."""
    if motion != "exact":
        return simulated(content, motion, declared, carried, seed)
    constant = np.array([joint.torque_constant for joint in MODEL.joints])
    arm = ExactArm(torque_constant=constant, setup=Setup(payload=body(carried)))
    made = arm.record(SECONDS, rate=500.0, seed=seed)
    torque = made[CURRENT_FIELD] * arm.torque_constant * ROBOT.gear_ratio
    if content == "without_gravity":
        known = ArmDynamics(ROBOT, Setup(payload=body(declared)))
        torque = torque - known.gravity_torque(made["actual_q"])
    columns = {name: made[name] for name in FIELDS if name in made}
    columns[TORQUE_FIELD] = torque
    columns["payload"] = np.full(len(made), declared)
    columns["payload_cog"] = np.tile(body(declared).center_of_mass, (len(made), 1))
    return replace(made, columns=columns)


def at_rate(made: Telemetry, rate: float) -> Telemetry:
    """Every second, fourth, ... sample, as a slower recorder takes them."""
    step = round(500.0 / rate)
    kept = made.select(np.arange(len(made)) % step == 0)
    return replace(kept, info=replace(kept.info, rate=rate), gaps=())


def without(made: Telemetry, *names: str, **columns: Array) -> Telemetry:
    """Samples without some columns, and with others."""
    kept = {name: made[name] for name in made.columns if name not in names}
    return replace(made, columns={**kept, **columns})


def content_of(made: Telemetry) -> TorqueContent:
    check = TorqueFieldCheck()
    for start in range(0, len(made), 700):
        check.observe(made.cut(slice(start, start + 700)))
    found = check.found(ROBOT)
    assert found is not None
    return found


@pytest.mark.parametrize("rate", [10.0, 125.0, 500.0])
@pytest.mark.parametrize("content", KINDS)
def test_beside_currents_the_content_is_decided(
    content: TorqueField, rate: float
) -> None:
    found = content_of(at_rate(recorded(content), rate))
    assert found.kind == KINDS[content]
    assert found.compared_with == "currents"
    assert found.unit == ("newton_metre" if content == "with_gravity" else content)


@pytest.mark.parametrize("content", KINDS)
@pytest.mark.parametrize(
    ("motion", "declared", "carried"),
    first_fast(
        [
            ("hold", 0.0, 0.0),  # at standstill
            ("exact", 0.0, 2.0),  # a payload that nobody declared
            ("exact", 2.0, 0.0),  # a declared payload that is not there
            ("pick_and_place", 0.0, 2.0),
            ("pick_and_place", 2.0, 0.0),
            ("pick_and_place", 2.0, 2.0),
        ],
        3,
    ),
)
def test_beside_currents_neither_standstill_nor_a_wrong_payload_matters(
    content: TorqueField, motion: str, declared: float, carried: float
) -> None:
    made = recorded(content, motion, declared, carried)
    assert content_of(at_rate(made, 125.0)).kind == KINDS[content]


@pytest.mark.parametrize("content", KINDS)
def test_a_pose_without_gravity_decides_nothing(content: TorqueField) -> None:
    """Upright, no joint is loaded; the two contents are the same there."""
    made = at_rate(recorded(content, "upright"), 125.0)
    for telemetry in (made, without(made, CURRENT_FIELD)):
        found = content_of(telemetry)
        assert found.kind == "undecided"
        assert found.unit is None
        assert "not decided" in found.words()


def test_currents_zeros_and_nonsense_are_no_torques() -> None:
    made = at_rate(recorded("with_gravity"), 125.0)
    current = made[CURRENT_FIELD]
    for torque, kinds in (
        (current, {"currents"}),
        (np.zeros_like(current), {"torque without gravity"}),
        (1000.0 * current, {"none of these"}),
        (np.full_like(current, np.nan), {"undecided"}),
    ):
        found = content_of(without(made, **{TORQUE_FIELD: torque}))
        assert found.kind in kinds
        assert found.unit in (None, "ampere")  # zeros are not used as torques


@pytest.mark.parametrize("missing", ["actual_q", "actual_qd", TORQUE_FIELD])
def test_what_is_missing_decides_nothing(missing: str) -> None:
    check = TorqueFieldCheck()
    check.observe(without(at_rate(recorded("with_gravity"), 125.0), missing))
    assert check.found(ROBOT) is None


def test_other_arms_have_no_content_without_a_model() -> None:
    check = TorqueFieldCheck()
    check.observe(at_rate(recorded("with_gravity"), 125.0))
    assert check.found(replace(ROBOT, source="my_arm")) is None
    assert check.found(replace(ROBOT, source="my_arm"), MODEL) is not None


@pytest.mark.truth
@pytest.mark.parametrize("seed", range(6))
def test_no_content_is_taken_for_another(seed: int) -> None:
    """Of arms with friction, torque constants and payloads of their own, in short windows."""
    motions = ("trajectory_b", "pick_and_place", "hold")
    carried = float(np.random.default_rng(seed).uniform(0.0, 3.0))
    for content, kind in KINDS.items():
        made = recorded(content, motions[seed % 3], 0.0, carried, seed)
        for start in (0.0, 1.0):
            rows = (made.time - made.time[0] >= start) & (
                made.time - made.time[0] < start + 2.0
            )
            window = at_rate(made.select(rows), 125.0)
            assert content_of(window).kind == kind
            assert content_of(without(window, CURRENT_FIELD)).kind in (kind, "undecided")


# Energy of recordings that have the torques alone.


def energy_and_notes(
    folder: Path, made: Telemetry, stated: StatedUnit = "auto", **options: Any
) -> tuple[float, str]:
    """Modelled energy of a recording [J], and its warnings in one text."""
    bag = write_bag(folder / f"bag_{len([*folder.iterdir()])}", made)
    power = PowerOptions(effort_unit=stated, gap_limit=1.0, **options)
    found = estimate_energy(MODEL, bag, options=power)
    return found.supply, "; ".join(found.warnings)


@pytest.mark.parametrize(
    ("content", "motion", "rate", "declared"),
    first_fast(
        [
            ("without_gravity", "exact", 125.0, 2.0),
            ("without_gravity", "exact", 10.0, 0.0),
            ("with_gravity", "exact", 10.0, 0.0),
            ("with_gravity", "pick_and_place", 10.0, 0.0),
            ("with_gravity", "pick_and_place", 125.0, 0.0),
            ("with_gravity", "pick_and_place", 500.0, 2.0),
            ("without_gravity", "pick_and_place", 10.0, 0.0),
            ("without_gravity", "pick_and_place", 125.0, 2.0),
            ("without_gravity", "pick_and_place", 500.0, 0.0),
        ],
        3,
    ),
)
def test_stated_torques_have_the_energy_of_the_currents(
    tmp_path: Path, content: TorqueField, motion: str, rate: float, declared: float
) -> None:
    """Gravity is added with the declared payload, whatever the arm carries."""
    made = at_rate(recorded(content, motion, declared, 2.0), rate)
    truth, notes = energy_and_notes(tmp_path, without(made, TORQUE_FIELD))
    assert TORQUE_FIELD not in notes
    unit: StatedUnit = "newton_metre" if content == "with_gravity" else "without_gravity"
    torques = without(made, CURRENT_FIELD)
    found, notes = energy_and_notes(tmp_path, torques, unit)
    # The torque constants of simulated arms differ from the model's by some percent.
    assert found == pytest.approx(truth, rel=1e-6 if motion == "exact" else 0.01)
    assert "as stated" in notes
    if content == "without_gravity":  # what is at stake
        wrong, _ = energy_and_notes(tmp_path, taken_as_complete(torques))
        assert abs(wrong / truth - 1.0) > 0.03


def taken_as_complete(made: Telemetry) -> Telemetry:
    """Samples with the currents that the torques make if they contain gravity."""
    constant = np.array([joint.torque_constant for joint in MODEL.joints])
    current = made[TORQUE_FIELD] / (constant * ROBOT.gear_ratio)
    return without(made, TORQUE_FIELD, **{CURRENT_FIELD: current})


def test_torques_with_gravity_are_recognised_and_used(tmp_path: Path) -> None:
    made = at_rate(recorded("with_gravity"), 125.0)
    truth, _ = energy_and_notes(tmp_path, without(made, TORQUE_FIELD))
    found, notes = energy_and_notes(tmp_path, without(made, CURRENT_FIELD))
    assert found == pytest.approx(truth, rel=1e-6)
    assert "torque with gravity" in notes
    with pytest.raises(ContradictionError, match="torque with gravity"):
        energy_and_notes(tmp_path, without(made, CURRENT_FIELD), "without_gravity")


def test_torques_of_undecided_content_are_not_used(tmp_path: Path) -> None:
    """Their energy is that of the motion alone, and a line reports it."""
    made = at_rate(recorded("without_gravity", "upright"), 125.0)
    motion, _ = energy_and_notes(tmp_path, without(made, CURRENT_FIELD, TORQUE_FIELD))
    found, notes = energy_and_notes(tmp_path, without(made, CURRENT_FIELD))
    assert found == pytest.approx(motion, rel=1e-9)
    assert "not used" in notes
    assert "--effort-unit" in notes
    with pytest.raises(RecordingError, match="no motor currents"):
        energy_and_notes(tmp_path, without(made, CURRENT_FIELD), method="current")
    no_positions = without(made, CURRENT_FIELD, "actual_q")
    with pytest.raises(MissingFieldError):
        energy_and_notes(tmp_path, no_positions)


def test_recordings_with_currents_do_not_use_the_torques(tmp_path: Path) -> None:
    made = at_rate(recorded("without_gravity"), 125.0)
    truth, _ = energy_and_notes(tmp_path, without(made, TORQUE_FIELD))
    assert energy_and_notes(tmp_path, made)[0] == truth
    assert energy_and_notes(tmp_path, made, "newton_metre")[0] == truth


# What inspection shows, and what identification refuses.


@pytest.mark.parametrize("content", KINDS)
def test_inspection_shows_the_content(content: TorqueField) -> None:
    made = at_rate(recorded(content), 125.0)
    shown = assess(made, robot=ROBOT).as_dict()["torque_field"]
    assert shown["kind"] == KINDS[content]
    assert shown["compared_with"] == "currents"
    assert assess(without(made, TORQUE_FIELD), robot=ROBOT).torque_field is None


def test_measured_torques_without_gravity_identify_nothing(tmp_path: Path) -> None:
    good = write_bag(tmp_path / "good", at_rate(recorded("with_gravity"), 125.0))
    assert read_recording(good, ROBOT, effort=TORQUE).samples == 1000
    bad = write_bag(tmp_path / "bad", at_rate(recorded("without_gravity"), 125.0))
    with pytest.raises(ContradictionError, match="torque without gravity"):
        read_recording(bad, ROBOT, effort=TORQUE)
    assert read_recording(bad, ROBOT).samples == 1000
