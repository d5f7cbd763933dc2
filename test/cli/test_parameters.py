# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy payload`, `base-parameters`, `learn`, as a user calls them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.cli.conftest import answer, refused
from test.identification.conftest import made_up_recording
from test.identification.exact_arm import write_bag
from test.identification.test_payload import COULOMB, LOAD, UPRIGHT, VISCOUS, true_model
from ur_energy_model.cli.main import main
from ur_energy_model.identification.payload_fit import LINK_EXCESS
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Setup

FRICTION: dict[str, Any] = {"noise": 0.5, "coulomb": 4.0, "viscous": 3.0}


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model, and a bag of an arm that carries 2.5 kg unknown to the controller."""
    folder = tmp_path_factory.mktemp("payload")
    robot = load_robot("ur5e")
    made = made_up_recording(
        robot, carried=Setup(UPRIGHT, LOAD), noise=0.5, coulomb=COULOMB, viscous=VISCOUS
    )
    save_model(true_model(), folder / "model.yaml")
    return folder / "model.yaml", write_bag(folder / "bag", made)


def test_payload_that_the_controller_does_not_have(paths, tmp_path, capsys) -> None:
    """Found without knowledge, and with its mass known for a calibration."""
    out = answer(capsys, "payload", *paths)
    assert out["mass"] == pytest.approx(2.5 * (1 + LINK_EXCESS), rel=0.01)
    assert np.allclose(out["center_of_mass"], LOAD.center_of_mass, atol=3e-3)
    assert out["interval"][0] < 2.5 < out["interval"][1]
    assert main(["payload", *map(str, paths)]) == 0
    captured = capsys.readouterr()
    assert "set_payload" in captured.err
    assert "mass [kg]" in captured.out
    words = [*map(str, paths), "-o", str(tmp_path / "new.yaml")]
    refused(["payload", *words], capsys, "--known-payload")
    assert not (tmp_path / "new.yaml").exists()
    out = answer(capsys, "payload", *words, "--known-payload", 2.5)
    constants = [entry["calibrated"] for entry in out["torque_constants"]]
    assert np.allclose(constants, 0.1, rtol=0.03)
    written = load_model(tmp_path / "new.yaml")
    assert [joint.torque_constant for joint in written.joints] == pytest.approx(constants)


@pytest.mark.parametrize(
    ("set_mass", "real", "wrist", "advice"),
    [
        (0.0, 0.0, -0.5, "lower than those of the bare arm"),
        (2.5, 2.5, 0.0, None),
        (2.5, 0.0, 0.0, "set_payload"),
    ],
)
def test_another_payload_is_advised_only_where_there_is_one(
    set_mass, real, wrist, advice, tmp_path, capsys
) -> None:
    robot = load_robot("ur5e")
    made = made_up_recording(
        replace(robot, mass=robot.mass + np.array([0, 0, 0, 0, wrist, 0])),
        setup=Setup(UPRIGHT, replace(LOAD, mass=set_mass)),
        carried=Setup(UPRIGHT, replace(LOAD, mass=real)),
        noise=0.1,
        coulomb=COULOMB,
        viscous=VISCOUS,
        seconds=20,
    )
    save_model(true_model(), tmp_path / "model.yaml")
    bag = write_bag(tmp_path / "bag", made)
    assert main(["payload", str(tmp_path / "model.yaml"), str(bag)]) == 0
    warnings = [
        line for line in capsys.readouterr().err.splitlines() if "warning" in line
    ]
    assert len(warnings) == (advice is not None)
    assert advice is None or advice in warnings[0]


def test_reports_that_the_model_is_of_another_arm(paths, tmp_path, capsys) -> None:
    model = load_model(paths[0])
    other = tuple(
        replace(
            joint, torque_constant=factor * joint.torque_constant, current_residual=0.02
        )
        for joint, factor in zip(model.joints, 3 * (1.2, 0.8), strict=True)
    )
    save_model(replace(model, joints=other), tmp_path / "other.yaml")
    assert main(["payload", str(tmp_path / "other.yaml"), str(paths[1])]) == 0
    assert "use a model of this very arm" in capsys.readouterr().err


@pytest.mark.truth
def test_a_real_arm_with_2805_grams(recordings: Path, tmp_path, capsys) -> None:
    """Model from the unloaded run of the same UR10e; the controller has no payload set."""
    empty, loaded, model = (tmp_path / name for name in ("empty", "loaded", "model.yaml"))
    for name, bag in (("unloaded", empty), ("loaded_2.805kg", loaded)):
        csv = recordings / f"ur10e_excitation_{name}_56s.csv.gz"
        answer(capsys, "import", csv, "--robot", "ur10e", "-o", bag)
    answer(capsys, "identify", empty, "--robot", "ur10e", "-o", model)
    out = answer(capsys, "payload", model, loaded)
    assert out["mass"] == pytest.approx(2.805, rel=0.04)
    assert abs(out["mass"] - 2.805) < 2 * out["std"] < 0.22
    assert abs(answer(capsys, "payload", model, empty)["shown_mass"]) < 0.06
    calibrated = tmp_path / "calibrated.yaml"
    known = ["--known-payload", 2.805, "--empty", empty, "-o", calibrated]
    answer(capsys, "payload", model, loaded, *known)
    for bag, true in ((loaded, 2.805), (empty, 0.0)):
        out = answer(capsys, "payload", calibrated, bag)
        low, high = out["interval"]
        assert low < true < high
        assert out["mass"] == pytest.approx(true, rel=0.015, abs=0.03)


def test_measured_torque_needs_neither_currents_nor_constants(tmp_path, capsys) -> None:
    robot = load_robot("ur5e")
    made = made_up_recording(robot, seed=1, **FRICTION)
    torque = made["actual_current"] * robot.gear_ratio * robot.torque_constant
    columns = {name: made[name] for name in ("actual_q", "actual_qd")}
    columns["actual_current_as_torque"] = torque
    bag = str(write_bag(tmp_path / "torque", replace(made, columns=columns)))
    out = answer(capsys, "base-parameters", bag, "--from", "measured_torque")
    assert (out["rank"], out["torque_from"]) == (52, "measured_torque")
    assert min(out["self_verification"]["r2"]) > 0.9
    refused(["base-parameters", bag], capsys, "actual_current")


def test_base_parameters_are_exported(tmp_path, capsys) -> None:
    """Refused before the work where a file exists or has another format."""
    bag = str(write_bag(tmp_path / "bag", made_up_recording(load_robot("ur5e"), seed=1)))
    table, arm = tmp_path / "fit.csv", tmp_path / "arm.urdf"
    words = ["base-parameters", bag, "--export", str(table), "--urdf", str(arm)]
    out = answer(capsys, *words)
    assert len(table.read_text().splitlines()) == 1 + out["samples"]
    names = {path.name for path in tmp_path.glob("fit*")}
    assert names == {"fit.csv", "fit_parameters.csv", "fit_standard_parameters.csv"}
    loaded = load_robot(arm)
    standard = out["physically_consistent"]["parameters"]
    assert loaded.mass.sum() == pytest.approx(
        sum(standard[f"m_{joint}"] for joint in range(1, 7))
    )
    refused(words, capsys, "exists already")
    table.unlink()
    refused(words, capsys, "fit_parameters.csv: exists already")
    answer(capsys, *words, "--overwrite")
    refused(["base-parameters", bag, "--export", "fit.xls"], capsys, ".npz, .mat, .csv")
    refused(["base-parameters", bag, "--urdf", "arm.xml"], capsys, "end it in .urdf")
