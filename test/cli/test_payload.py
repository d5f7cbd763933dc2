"""`ur_energy payload`, as a user calls it, on made-up and on real arms."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.cli.test_inspect import write_bag
from test.identification.conftest import made_up_recording
from test.identification.payload.test_payload_fit import COULOMB, LOAD, UPRIGHT, VISCOUS, true_model
from ur_energy_model.cli.main import main
from ur_energy_model.identification.payload import payload_difference
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Setup


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model, and a bag of an arm that carries 2.5 kg unknown to the controller."""
    folder = tmp_path_factory.mktemp("payload")
    robot = load_robot("ur5e")
    made = made_up_recording(
        robot, carried=Setup(UPRIGHT, LOAD), noise=0.5, coulomb=COULOMB, viscous=VISCOUS
    )
    save_model(true_model(robot), folder / "model.yaml")
    return folder / "model.yaml", write_bag(folder / "bag", made)


def run(capsys, *arguments: object) -> dict:
    assert main(["payload", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_contract(paths, capsys) -> None:
    out = run(capsys, *paths)
    assert out["mass"] == pytest.approx(2.5, rel=0.01)
    assert 0 < out["std"] < 0.12
    assert np.allclose(out["center_of_mass"], LOAD.center_of_mass, atol=3e-3)
    assert out["shown_mass"] == out["mass"]
    assert out["interval"][0] < 2.5 < out["interval"][1]
    assert out["told_mass"] == pytest.approx(0.0, abs=0.01)


def test_reports_that_the_controller_has_another_payload(paths, capsys) -> None:
    assert main(["payload", *map(str, paths)]) == 0
    captured = capsys.readouterr()
    assert "set_payload" in captured.err
    assert "mass [kg]" in captured.out


@pytest.mark.parametrize(
    ("set_mass", "real", "wrist", "advice"),
    [
        (0.0, 0.0, 0.0, None),
        (0.0, 0.0, -0.03, None),  # an empty arm with a lighter wrist: nothing to set
        (0.0, 0.0, 0.03, None),  # less than drives repeat
        (0.0, 0.0, -0.5, "lower than those of the bare arm"),
        (2.5, 2.5, 0.0, None),
        (2.5, 0.0, 0.0, "set_payload"),
        (0.0, 2.5, 0.0, "set_payload"),
    ],
)
def test_another_payload_is_advised_only_where_there_is_one(
    set_mass, real, wrist, advice, tmp_path, capsys
) -> None:
    robot = load_robot("ur5e")
    lighter = replace(robot, mass=robot.mass + np.array([0, 0, 0, 0, wrist, 0]))
    made = made_up_recording(
        lighter,
        setup=Setup(UPRIGHT, replace(LOAD, mass=set_mass)),
        carried=Setup(UPRIGHT, replace(LOAD, mass=real)),
        noise=0.1,
        coulomb=COULOMB,
        viscous=VISCOUS,
        seconds=20,
    )
    save_model(true_model(robot), tmp_path / "model.yaml")
    bag = write_bag(tmp_path / "bag", made)
    assert main(["payload", str(tmp_path / "model.yaml"), str(bag)]) == 0
    warnings = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert len(warnings) == (advice is not None)
    assert advice is None or advice in warnings[0]


def test_known_payload_calibrates_and_writes_a_model(paths, tmp_path, capsys) -> None:
    model, bag = paths
    out = run(capsys, model, bag, "--known-payload", 2.5, "-o", tmp_path / "new.yaml")
    constants = [entry["calibrated"] for entry in out["torque_constants"]]
    assert np.allclose(constants, 0.1, rtol=0.03)
    written = load_model(tmp_path / "new.yaml")
    assert [joint.torque_constant for joint in written.joints] == pytest.approx(constants)


def test_refusals(paths, tmp_path, capsys) -> None:
    model, bag = paths
    for arguments in (
        [model, tmp_path / "none"],
        [tmp_path / "none.yaml", bag],
        [model, bag, "--known-payload", "-3"],
        [model, bag, "-o", tmp_path / "new.yaml"],
    ):
        assert main(["payload", *map(str, arguments)]) == 1
        assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not (tmp_path / "new.yaml").exists()


def test_a_bag_of_another_arm_is_refused_with_a_remedy_that_the_command_has(
    paths, tmp_path, capsys
) -> None:
    robot = load_robot("ur10e")
    bag = write_bag(tmp_path / "other", made_up_recording(robot, seconds=10))
    assert main(["payload", str(paths[0]), str(bag)]) == 1
    line = capsys.readouterr().err
    assert "was recorded on a ur10e, not a ur5e; use a model of a ur10e" in line


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
    for name, bag in (("unloaded", "empty"), ("loaded_2.805kg", "loaded")):
        csv = recordings / f"ur10e_excitation_{name}_56s.csv.gz"
        assert main(["import", str(csv), "--robot", "ur10e", "-o", str(tmp_path / bag)]) == 0
    model = tmp_path / "model.yaml"
    assert main(["identify", str(tmp_path / "empty"), "--robot", "ur10e", "-o", str(model)]) == 0
    capsys.readouterr()
    out = run(capsys, model, tmp_path / "loaded")
    assert out["mass"] == pytest.approx(2.805, rel=0.04)
    assert abs(out["mass"] - 2.805) < 2 * out["std"] < 0.22
    empty = run(capsys, model, tmp_path / "empty")
    assert abs(empty["shown_mass"]) < 0.06
    mass, std = payload_difference(load_model(model), tmp_path / "loaded", tmp_path / "empty")
    assert mass == pytest.approx(2.805, rel=0.03)
    assert abs(mass - 2.805) < 2 * std < 0.22
    calibrated = tmp_path / "calibrated.yaml"
    run(
        capsys,
        model,
        tmp_path / "loaded",
        "--known-payload",
        2.805,
        "--empty",
        tmp_path / "empty",
        "-o",
        calibrated,
    )
    for bag, true in (("loaded", 2.805), ("empty", 0.0)):
        out = run(capsys, calibrated, tmp_path / bag)
        low, high = out["interval"]
        assert low < true < high
        assert out["mass"] == pytest.approx(true, rel=0.015, abs=0.03)
