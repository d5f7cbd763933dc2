"""`ur_energy optimize`: table, files, page, and refusals before any computation."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from test.optimization.hand_made import ROBOT, hand_made_recording
from test.optimization.simulated_cycle import arm_model
from ur_energy_model.cli.main import main
from ur_energy_model.energy.prediction import predict_energy
from ur_energy_model.experiment.cycle_exports import PREDICTION, PROGRAM, SHEET
from ur_energy_model.model.model_file import save_model
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.trajectory.plan import read_plan


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("optimize")
    save_model(arm_model(), folder / "model.yaml")
    telemetry = hand_made_recording(3)
    with BagWriter(folder / "cell", telemetry.info, tuple(telemetry.columns), name="cell") as bag:
        bag.write(telemetry)
    return folder


def test_files_and_page_agree_with_the_json(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, bag = str(folder / "model.yaml"), str(folder / "cell")
    page = folder / "page.html"
    options = ["-o", str(folder / "made"), "--report", str(page), "--tariff", "0.3", "--json"]
    assert main(["optimize", model, bag, *options]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [move["kind"] for move in result["moves"]] == ["moveJ", "moveL", "moveJ"]
    assert result["new_energy"] < result["energy"]
    assert 0.99 * result["new_energy"] < result["typed_energy"] < result["energy"]
    assert result["measured"] is None
    plan = read_plan(folder / "made" / PREDICTION, ROBOT.joint_names)
    predicted = predict_energy(arm_model(), plan).total
    assert predicted == pytest.approx(result["new_energy"], rel=5e-3)
    with (folder / "made" / SHEET).open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(result["sheet"][0])
    for row, step in zip(rows, result["sheet"], strict=True):
        for name in ("new_speed", "new_acceleration", "new_wait"):
            assert row[name] == ("" if step[name] is None else str(step[name]))
    program = (folder / "made" / PROGRAM).read_text()
    waits = [step["new_wait"] for step in result["sheet"] if step["new_wait"]]
    assert [f"sleep({wait:.2f})" in program for wait in waits] == [True] * len(waits)
    assert program.count("movej(") == 3  # the approach, and two moves
    assert program.count("movel(") == 1
    html = page.read_text(encoding="utf-8")
    typed = f"{result['typed_saving_percent']:.1f} %"
    for text in (
        "What to type",
        typed,
        'class="lock" value="1"',
        "one year",
        "cost [EUR]",
        "Energy and cycle time",
    ):
        assert text in html


def test_the_table_is_for_the_pendant(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", str(folder / "model.yaml"), str(folder / "cell")]) == 0
    output = capsys.readouterr().out
    assert max(len(line) for line in output.splitlines()) <= 80
    for text in ("1 moveJ", "3 moveL", "85.9 → ", "°/s²", "250 → ", "mm/s²", "1.50 → ", "Standby"):
        assert text in output


@pytest.mark.parametrize(
    "options",
    [
        ["--execute"],
        ["--execute", "--host", "127.0.15.97"],
        ["--execute", "-o", "folder"],
        ["--host", "127.0.15.97"],
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refusal:
        main(["optimize", "model.yaml", "bag", *options])
    assert refusal.value.code == 2
    assert "--host" in capsys.readouterr().err
