"""`ur_energy payload`, `base-parameters`, `learn`, as a user calls them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.cli.conftest import Capture, answer, refused
from test.identification.conftest import made_up_recording
from test.identification.exact_arm import ExactArm, write_bag
from test.identification.test_payload import COULOMB, LOAD, UPRIGHT, VISCOUS, true_model
from ur_energy_model.cli.main import main
from ur_energy_model.identification.payload import payload_difference
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
    assert out["mass"] == pytest.approx(2.5, rel=0.01)
    assert np.allclose(out["center_of_mass"], LOAD.center_of_mass, atol=3e-3)
    assert out["interval"][0] < 2.5 < out["interval"][1]
    assert out["told_mass"] == pytest.approx(0.0, abs=0.01)
    assert main(["payload", *map(str, paths)]) == 0
    captured = capsys.readouterr()
    assert "set_payload" in captured.err
    assert "mass [kg]" in captured.out
    words = [*map(str, paths), "-o", str(tmp_path / "new.yaml")]
    refused(["payload", *words, "--known-payload", "-3"], capsys)
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
        (0.0, 0.0, 0.03, None),  # less than drives repeat
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
    warnings = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(warnings) == (advice is not None)
    assert advice is None or advice in warnings[0]


def test_reports_that_the_model_is_of_another_arm(paths, tmp_path, capsys) -> None:
    model = load_model(paths[0])
    own = tuple(replace(joint, current_residual=0.02) for joint in model.joints)
    other = tuple(
        replace(joint, torque_constant=factor * joint.torque_constant)
        for joint, factor in zip(own, (1.2, 0.8, 1.2, 0.8, 1.2, 0.8), strict=True)
    )
    warned = []
    for name, joints in (("own", own), ("other", other)):
        path = tmp_path / f"{name}.yaml"
        save_model(replace(model, joints=joints), path)
        assert main(["payload", str(path), str(paths[1])]) == 0
        warned.append("use a model of this very arm" in capsys.readouterr().err)
    assert warned == [False, True]


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
    mass, std = payload_difference(load_model(model), loaded, empty)
    assert mass == pytest.approx(2.805, rel=0.03)
    assert abs(mass - 2.805) < 2 * std < 0.22
    calibrated = tmp_path / "calibrated.yaml"
    known = ["--known-payload", 2.805, "--empty", empty, "-o", calibrated]
    answer(capsys, "payload", model, loaded, *known)
    for bag, true in ((loaded, 2.805), (empty, 0.0)):
        out = answer(capsys, "payload", calibrated, bag)
        low, high = out["interval"]
        assert low < true < high
        assert out["mass"] == pytest.approx(true, rel=0.015, abs=0.03)


def test_base_parameters_and_their_verification(tmp_path, capsys) -> None:
    robot = load_robot("ur5e")
    one, two = (
        write_bag(tmp_path / str(seed), made_up_recording(robot, seed=seed, **FRICTION))
        for seed in (1, 2)
    )
    out = answer(capsys, "base-parameters", one, "--validate", two)
    assert out["normalised_error_on"] == "validation"
    assert min(out["general_verification"]["r2"]) > 0.9
    out = answer(capsys, "base-parameters", one, "--from", "target_moment")
    assert out["rank"] == 40  # without friction
    by_text = {entry["expression"]: entry["value"] for entry in out["parameters"]}
    assert by_text["Ja_4"] == pytest.approx(0.2118, rel=0.02)
    assert main(["base-parameters", str(one)]) == 0
    assert "52 base parameters" in capsys.readouterr().out


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
    poor = made_up_recording(robot, seconds=10, still=(0, 1, 2, 3, 4, 5), noise=0.1)
    bag = str(write_bag(tmp_path / "poor", poor))
    refused(["base-parameters", bag], capsys, "ur_energy excite")


def test_learn(tmp_path: Path, capsys: Capture) -> None:
    work = ExactArm().bag(tmp_path, seed=41, seconds=25)
    output, figure = tmp_path / "model.yaml", tmp_path / "history.svg"
    history = answer(capsys, "learn", work, "-o", output)["history"]
    assert len(history) >= 2
    assert history[-1]["version"] >= 1
    assert load_model(output).provenance["origin"] == "learned"
    assert output.with_suffix(".png").stat().st_size > 1000
    output.rename(tmp_path / "first.yaml")
    words = ["learn", str(work), "--model", str(tmp_path / "first.yaml")]
    assert main([*words, "-o", str(output), "--figure", str(figure)]) == 0
    assert "attempts to improve the model" in capsys.readouterr().out
    assert b"<svg" in figure.read_bytes()
    more = ["-o", str(tmp_path / "new.yaml")]
    refused(["learn", str(work), "--robot", "ur3e", *more], capsys, "ur5e", "ur3e")
    refused([*words, *more, "--figure", str(tmp_path / "picture.txt")], capsys, "--figure")
    assert not (tmp_path / "new.yaml").exists()
