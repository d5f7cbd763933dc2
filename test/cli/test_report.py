"""`ur_energy report` from a model file and bags to a page, and its refusals."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from test.energy.known_arm import known_model
from test.report.conftest import explained_recording
from ur_energy_model.cli.main import main
from ur_energy_model.files import config_file
from ur_energy_model.model.model_file import save_model
from ur_energy_model.telemetry.bag.writer import BagWriter


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model with the user's own robot file, and a bag that the model explains."""
    folder = tmp_path_factory.mktemp("report")
    shutil.copy(config_file("robots", "ur5e.yaml"), folder / "mine.yaml")
    model = known_model()
    save_model(replace(model, robot=str(folder / "mine.yaml")), folder / "model.yaml")
    telemetry = explained_recording(model, seconds=14.0)
    with BagWriter(folder / "bag", telemetry.info, tuple(telemetry.columns), name="bag") as bag:
        bag.write(telemetry)
    return folder / "model.yaml", folder / "bag"


def test_only_json_is_printed_on_stdout(
    inputs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, bag = inputs
    output = tmp_path / "new" / "report.html"
    arguments = [
        "--tariff",
        "0.3",
        "--co2",
        "0.4",
        "--figures",
        str(tmp_path / "figures"),
        "--json",
    ]
    assert main(["report", str(model), str(bag), "-o", str(output), *arguments]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["bytes"] == output.stat().st_size < 5_000_000
    assert result["cost"] == pytest.approx(0.3 * result["energy"] / 3.6e6)
    assert result["co2"] == pytest.approx(0.4 * result["energy"] / 3.6e6)
    assert all(Path(path).is_file() for path in result["figures"])
    text = output.read_text(encoding="utf-8")
    assert "<h1>Energy of a UR5e</h1>" in text
    for title in ("Table IV", "Table V)", "Table VI)", "Table VII)", "Table VIII", "Provenance"):
        assert title in text


@pytest.mark.parametrize("broken", ["model", "bag"])
def test_refusal_is_one_line_and_leaves_the_old_report(
    broken: str, inputs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, bag = inputs
    output = tmp_path / "report.html"
    output.write_text("old")
    missing = tmp_path / "missing"
    paths = (missing, bag) if broken == "model" else (model, missing)
    assert main(["report", *map(str, paths), "-o", str(output)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "missing" in captured.err.splitlines()[-1]
    assert output.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
