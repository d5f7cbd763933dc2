# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Identification from less than everything: what is found, what is reported of the rest."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.identification.conftest import made_up_recording
from test.identification.exact_arm import ExactArm, write_bag
from ur_energy_model.errors import IdentificationError, RecordingError
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.pipeline import Identification, identify
from ur_energy_model.identification.quality_check import assess
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import Telemetry

BARE = ("actual_q", "actual_qd", "actual_current")
MADE: dict[str, Any] = {"coulomb": 2.0, "viscous": 1.5, "noise": 0.1, "rate": 50.0}
UR5E = load_robot("ur5e")
EXACT = np.full(6, 0.1)


def with_columns(telemetry: Telemetry, *names: str, **changed: np.ndarray) -> Telemetry:
    """A recording with these columns alone, some of them changed."""
    columns = {**telemetry.columns, **changed}
    return replace(telemetry, columns={n: columns[n] for n in (*BARE, *names, *changed)})


def identified(
    folder: Path, made: Telemetry, robot: RobotDescription | str = "ur5e", **options: Any
) -> Identification:
    """A recording's identification with the simple law."""
    bag = write_bag(folder / f"bag_{len(list(folder.iterdir()))}", made)
    return identify(
        [bag], robot, IdentificationOptions(friction="coulomb_viscous", **options)
    )


def covers(model: EnergyModel, quantity: str, truth: Any) -> bool:
    """Whether all errors are within three standard deviations."""
    value = np.array([getattr(joint, quantity) for joint in model.joints])
    std = np.array([joint.std[quantity] for joint in model.joints])
    return bool((np.abs(value - truth) < 3 * std).all())


def test_motor_inertia_from_currents_where_no_file_has_it(tmp_path: Path) -> None:
    robot = load_robot("ur10")
    inertia = np.array([4.0, 4.5, 2.0, 0.7, 0.5, 0.6])
    made = made_up_recording(robot, reflected_inertia=inertia, **MADE)
    result = identified(tmp_path, with_columns(made), "ur10")
    assert covers(result.model, "torque_constant", EXACT)
    assert covers(result.model, "reflected_inertia", inertia)
    excited = [
        joint.source["reflected_inertia"] == "current" for joint in result.model.joints
    ]
    assert sum(excited) >= 5
    found = np.array([joint.reflected_inertia for joint in result.model.joints])
    np.testing.assert_allclose(found[excited][:5], inertia[excited][:5], rtol=0.1)
    # nothing loads the last joint enough to show its scale
    lines = " ".join(result.warnings)
    for words in (
        "wrist_3_joint: torque constant not",
        "no bus power",
        "winding resistance",
    ):
        assert words in lines


def test_currents_show_a_mounting_that_nobody_stated(tmp_path: Path) -> None:
    gravity = (0.0, 6.94, -6.94)
    hanging = Setup(np.array(gravity), Payload(1.5, np.array([0.0, 0.0, 0.1])))
    result = identified(
        tmp_path, with_columns(made_up_recording(UR5E, setup=hanging, **MADE))
    )
    down = result.model.setup.gravity / 9.82
    assert np.degrees(np.arccos(min(down @ np.array(gravity) / 9.82, 1.0))) < 3.0
    assert result.model.setup_source == "estimated"
    assert any("tilted" in line and "--gravity" in line for line in result.warnings)
    assert covers(result.model, "torque_constant", EXACT)


def test_a_wrong_mounting_that_was_stated_stays_and_is_doubted(tmp_path: Path) -> None:
    """Of a recording at 5 Hz."""
    made = with_columns(made_up_recording(UR5E, **{**MADE, "rate": 5.0}))
    model = identified(tmp_path, made).model
    assert covers(model, "torque_constant", EXACT)
    assert covers(model, "reflected_inertia", UR5E.reflected_inertia)
    tilt = np.radians(20.0)
    stated = Setup(9.82 * np.array([np.sin(tilt), 0.0, -np.cos(tilt)]))
    result = identified(tmp_path, made, setup=stated)
    assert result.model.setup_source == "given"
    np.testing.assert_array_equal(result.model.setup.gravity, stated.gravity)
    assert any("tilted by 20 degrees" in line for line in result.warnings)


ODD = {
    "a dead current": (lambda i: i * (np.arange(6) != 2), "actual_current stays zero"),
    "constant currents": (lambda i: np.ones_like(i), "frozen"),
    "currents of noise": (
        lambda i: np.random.default_rng(0).standard_normal(i.shape),
        "do not show a torque constant",
    ),
    "currents of the wrong sign": (lambda i: -i, "current falls as torque rises"),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_recordings_are_refused_in_one_line(odd: str, tmp_path: Path) -> None:
    made, (spoil, reason) = ExactArm().record(20.0), ODD[odd]
    made = with_columns(made, actual_current=spoil(made["actual_current"]))
    with pytest.raises((IdentificationError, RecordingError), match=reason) as refused:
        identified(tmp_path, made)
    assert "record" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("still", [("actual_q", "actual_qd"), ("target_qdd",)])
def test_inspect_and_identify_say_the_same_of_a_pose_and_of_freedrive(
    still: tuple[str, ...], tmp_path: Path
) -> None:
    made = ExactArm().record(20.0)
    zeros = {name: np.zeros_like(made[name]) for name in still}
    made = with_columns(made, "target_qd", **{"target_qdd": made["target_qdd"], **zeros})
    with pytest.raises(IdentificationError, match=r"no joint moves .* record") as refused:
        identified(tmp_path, made)
    quality = assess(made, robot=UR5E)
    assert str(refused.value) in quality.warnings
    assert {use.grade for use in quality.uses} == {"no"}
