"""A payload told wrongly, found and used while an arm is identified."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from test.identification.conftest import made_up_recording
from test.identification.exact_arm import write_bag
from test.identification.payload.test_payload_fit import COULOMB, LOAD, UPRIGHT, VISCOUS
from ur_energy_model.cli.main import main
from ur_energy_model.identification.payload_check import IDENTIFIED
from ur_energy_model.identification.pipeline import Identification, IdentificationOptions, identify
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload, Setup

NOTHING = Payload()


def recorded(folder: Path, told: Payload, carried: Payload) -> Path:
    """A UR5e whose actual payload differs from the one set in the controller."""
    made = made_up_recording(
        load_robot("ur5e"),
        setup=Setup(UPRIGHT, told),
        carried=Setup(UPRIGHT, carried),
        noise=0.5,
        coulomb=COULOMB,
        viscous=VISCOUS,
        seconds=30.0,
    )
    return write_bag(folder / "bag", made)


def constants(found: Identification) -> np.ndarray:
    return np.array([joint.torque_constant for joint in found.model.joints])


@pytest.fixture(scope="module")
def undeclared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("undeclared"), NOTHING, LOAD)


def test_an_unset_payload_is_found(undeclared: Path) -> None:
    found = identify([undeclared], "ur5e")
    (check,) = found.payload_checks
    assert check.told_mass == pytest.approx(0.0, abs=0.01)
    assert check.mass == pytest.approx(LOAD.mass, rel=0.15)
    assert abs(check.mass - LOAD.mass) < 3 * check.std
    assert check.contradicts
    assert any("the currents show a payload of" in line for line in found.warnings)
    assert np.abs(constants(found) / 0.1 - 1).max() > 0.1  # what the warning is about


@pytest.mark.parametrize("load", [NOTHING, LOAD], ids=["empty", "2.5 kg"])
def test_a_correctly_set_payload_is_confirmed(load: Payload, tmp_path: Path) -> None:
    found = identify(
        [recorded(tmp_path, load, load)], "ur5e", IdentificationOptions(payload=IDENTIFIED)
    )
    assert not any(check.contradicts for check in found.payload_checks)
    assert not any("currents" in line for line in found.warnings)
    assert found.model.setup_source == "estimated"


@pytest.mark.parametrize(("payload", "close"), [(LOAD, 0.02), (IDENTIFIED, 0.06)])
def test_torque_constants_come_out_right_with_the_true_payload(
    undeclared: Path, payload: Payload | str, close: float
) -> None:
    found = identify([undeclared], "ur5e", IdentificationOptions(payload=payload))
    assert np.allclose(constants(found)[1:4], 0.1, rtol=close)
    assert found.model.setup.payload.mass == pytest.approx(LOAD.mass, rel=0.1)
    assert not any(check.contradicts for check in found.payload_checks)
    assert min(row["r2"] for row in found.model.fit[0]["torque"]) > 0.999


def test_the_commands_take_a_payload(undeclared: Path, tmp_path: Path, capsys) -> None:
    model = tmp_path / "model.yaml"
    stated = "2.5,0.03,0.1,0.05"
    arguments = ["identify", str(undeclared), "--robot", "ur5e", "-o", str(model), "--json"]
    assert main([*arguments, "--payload", stated]) == 0
    (check,) = json.loads(capsys.readouterr().out)["payload_checks"]
    assert check["model_mass"] == 2.5
    assert not check["contradicts"]
    assert load_model(model).setup.payload.mass == 2.5
    rms = []
    for words in ([], ["--payload", "2.5", "0.03", "0.1", "0.05"]):
        assert main(["evaluate", str(model), str(undeclared), "--json", *words]) == 0
        (result,) = json.loads(capsys.readouterr().out)["results"]
        rms.append(result["current"][1]["rms"])
        assert result["torque"][1]["r2"] > 0.999
    assert rms[1] < 0.3 * rms[0]


def test_predict_takes_a_payload(undeclared: Path, tmp_path: Path, capsys) -> None:
    model, plan = tmp_path / "model.yaml", tmp_path / "plan.csv"
    assert main(["identify", str(undeclared), "--robot", "ur5e", "-o", str(model)]) == 0
    time = np.linspace(0.0, 4.0, 200)
    q = np.zeros((200, 6))
    q[:, 1] = -0.5 * (1 - np.cos(np.pi * time / 4))
    header = ",".join(["time", *(f"q_{j}" for j in range(6))])
    np.savetxt(plan, np.column_stack([time, q]), delimiter=",", header=header, comments="")
    capsys.readouterr()
    energy = []
    for mass in ("0", "5"):
        assert main(["predict", str(model), str(plan), "--json", "--payload", mass]) == 0
        energy.append(json.loads(capsys.readouterr().out)["total"]["mechanical_energy"])
    assert energy[0] != pytest.approx(energy[1], rel=0.05)


@pytest.mark.parametrize("words", [["heavy"], ["-1"], ["1", "2"], ["nan"], ["1,2,3"]])
def test_refuses_an_invalid_payload(undeclared: Path, tmp_path: Path, capsys, words) -> None:
    arguments = ["identify", str(undeclared), "--robot", "ur5e", "-o", str(tmp_path / "m.yaml")]
    with pytest.raises(SystemExit, match="2"):
        main([*arguments, "--payload", *words])
    line = capsys.readouterr().err.strip()
    assert "--payload" in line
    assert len(line.splitlines()) == 1
