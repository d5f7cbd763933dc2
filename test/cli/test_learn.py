"""`ur_energy learn`: its contract with scripts."""

from __future__ import annotations

from pathlib import Path

import pytest

from test.cli.conftest import Capture, printed, refused
from test.identification.exact_arm import ExactArm
from ur_energy_model.cli.main import DONE, main
from ur_energy_model.model.model_file import load_model


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ExactArm().bag(tmp_path_factory.mktemp("learn"), seed=41, seconds=25)


def test_learn(work: Path, tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "model.yaml"
    assert main(["learn", str(work), "-o", str(output), "--json"]) == DONE
    result = printed(capsys)
    assert set(result) == {"history", "events"}
    history, events = result["history"], result["events"]
    assert isinstance(history, list)
    assert isinstance(events, list)
    assert len(history) >= 2
    for entry in history:
        assert set(entry) >= {
            "time",
            "samples",
            "version",
            "supply_energy_error_percent",
            "joint_energy_interval_percent",
            "accepted",
        }
    assert history[-1]["version"] >= 1
    model = load_model(output)
    assert model.provenance["origin"] == "learned"
    assert output.with_suffix(".png").stat().st_size > 1000


def test_learning_goes_on_from_a_model(
    work: Path, model: Path, tmp_path: Path, capsys: Capture
) -> None:
    output, figure = tmp_path / "model.yaml", tmp_path / "history.svg"
    output.write_bytes(model.read_bytes())
    arguments = ["learn", str(work), "--model", str(output)]
    assert main([*arguments, "-o", str(output), "--figure", str(figure)]) == DONE
    assert "attempts to improve the model" in capsys.readouterr().out
    assert b"<svg" in figure.read_bytes()
    assert (tmp_path / "model.original.yaml").read_bytes() == model.read_bytes()


def test_what_cannot_be_used_is_refused(work: Path, tmp_path: Path, capsys: Capture) -> None:
    output = ["-o", str(tmp_path / "model.yaml")]
    refused(["learn", str(work), "--robot", "ur3e", *output], capsys, "ur5e", "ur3e")
    refused(["learn", str(tmp_path / "none"), "--robot", "ur5e", *output], capsys, "none")
    wrong = ["--figure", str(tmp_path / "picture.txt")]
    refused(["learn", str(work), "--robot", "ur5e", *output, *wrong], capsys, "--figure")
    assert not (tmp_path / "model.yaml").exists()
