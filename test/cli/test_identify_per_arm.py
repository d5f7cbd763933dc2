"""`ur_energy identify --per-arm` and `--fleet`."""

from __future__ import annotations

import json

import pytest

from test.plant.fleet.recorded_fleet import record
from ur_energy_model.cli.main import main
from ur_energy_model.model.model_file import load_model


@pytest.fixture(scope="module")
def bags(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bags")
    return [record(folder, f"a{k}", 2950, 1 + k, short=True) for k in range(2)]


def test_models_by_serial_number(bags, tmp_path, capsys):
    folder = tmp_path / "arms"
    assert main(["identify", "--per-arm", *map(str, bags), "-o", str(folder), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [entry["arm"] for entry in answer["arms"]] == ["a0", "a1"]
    assert answer["failed"] == []
    assert {entry["what"] for entry in answer["fleet"]} == {"torque_constant", "reflected_inertia"}
    for entry in answer["arms"]:
        model = load_model(entry["model"])
        joint = model.joints[0]
        assert entry["joints"][joint.name]["torque_constant"] == pytest.approx(
            joint.torque_constant, rel=1e-6
        )
    # A later arm starts from those in the folder.
    new = tmp_path / "new.yaml"
    command = ["identify", str(bags[0]), "--robot", "ur5e", "--fleet", str(folder)]
    assert main([*command, "-o", str(new), "--json"]) == 0
    assert load_model(new).dof == 6


def test_a_bag_that_fails_is_named(bags, tmp_path, capsys):
    folder = tmp_path / "arms"
    code = main(["identify", "--per-arm", str(bags[0]), str(tmp_path / "no"), "-o", str(folder)])
    assert code == 3
    assert "1 of 2 bags failed" in capsys.readouterr().err
    assert (folder / "a0.yaml").is_file()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--payload", "1"], "--payload"),
        (["--gravity", "0", "0", "-9.8"], "--gravity"),
        (["--fleet", "/nowhere"], "not a folder with models"),
        (["-o", "arm.yaml"], "name of a model file"),
    ],
)
def test_what_does_not_fit(bags, tmp_path, capsys, more, words):
    assert main(["identify", "--per-arm", str(bags[0]), "-o", str(tmp_path / "x"), *more]) != 0
    assert words in capsys.readouterr().err
