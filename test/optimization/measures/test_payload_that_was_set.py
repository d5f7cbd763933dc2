# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A payload that was set wrongly is stated first by every command, and a right one by none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.cli.conftest import Capture, answer, end_of
from test.identification.exact_arm import write_bag
from test.simulation.simulated_cell import SimulatedCell, movej, program
from test.truth import first_fast
from ur_energy_model.cli.main import main
from ur_energy_model.identification.payload_check import payload_contradictions
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.generic import generic_model
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Payload
from ur_energy_model.telemetry.csv.reader import read_csv

COMMANDS = {
    "inspect": "inspect {bag}",
    "estimate": "estimate {model} {bag}",
    "estimate, generic": "estimate {bag}",
    "evaluate": "evaluate {model} {bag}",
    "optimize": "optimize {model} {bag}",
    "profile": "profile {bag} --model {model}",
    "payload": "payload {model} {bag}",
    "identify": "identify {bag} -o {new}/model.yaml",
    "report": "report {model} {bag} -o {new}/report.html",
    "predict": "predict {model} {plan} --session {bag}",
}


def words_of(command: str, tmp_path: Path, bag: Path, model: Path) -> list[str]:
    plan = tmp_path / "plan.csv"
    plan.write_text(
        "time,q_0,q_1,q_2,q_3,q_4,q_5\n0,0,-1.5,1.5,-1.5,-1.5,0\n2,1,-1,1,-1,-1,0\n"
    )
    return COMMANDS[command].format(bag=bag, model=model, new=tmp_path, plan=plan).split()


@pytest.mark.truth
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_states_it_first(
    command: str,
    as_set: Path,
    wrongly_set: Path,
    model_file: Path,
    tmp_path: Path,
    capsys: Capture,
) -> None:
    def contradictions(bag: Path) -> list[Any]:
        words = [*words_of(command, tmp_path, bag, model_file), "--json"]
        found: dict[str, Any] = answer(capsys, *words[:-1])
        (entry,) = found.get("results", [found])[:1]
        return list(entry["contradictions"])

    (found,) = contradictions(wrongly_set)
    assert found["subject"] == "payload"
    assert not found["refused"]
    for text, name in (("1.00 kg", "stated"), ("0.00 kg", "shown")):
        assert text in found[name]
    assert found["words"].count("kg") >= 3
    for file in tmp_path.iterdir():
        file.unlink()
    assert contradictions(as_set) == []
    for file in tmp_path.iterdir():
        file.unlink()
    _, out, err = end_of(words_of(command, tmp_path, wrongly_set, model_file), capsys)
    said = (out if command in ("inspect", "report") else err).splitlines()
    (first,) = (number for number, line in enumerate(said) if "motor currents show 0.00 kg" in line
                and "contradicts" not in line)  # fmt: skip
    others = [
        number
        for number, line in enumerate(said)
        if "warning: " in line or "- " in line[:2]
    ]
    assert first == min(others), "before any other warning or statement"


@pytest.mark.truth
def test_a_report_leads_with_it_and_advises_nothing_else(
    wrongly_set: Path, model_file: Path, tmp_path: Path, capsys: Capture
) -> None:
    page = tmp_path / "report.html"
    content = answer(capsys, "report", model_file, wrongly_set, "-o", page)
    verdict = content["verdict"]
    assert "motor currents show 0.00 kg" in verdict["headline"]
    assert "set_payload" in verdict["statements"][0]["text"]
    texts = " ".join(each["text"] for each in verdict["statements"])
    assert "excite" not in texts
    assert "warmed up" not in texts
    assert "motor currents show 0.00 kg" in page.read_text(encoding="utf-8")


@pytest.mark.truth
def test_optimize_predicts_for_the_payload_that_is_carried(
    wrongly_set: Path, as_set: Path, model_file: Path, capsys: Capture
) -> None:
    """Both recordings are of one arm without a payload; in one of them 1 kg was set."""
    wrong = answer(capsys, "optimize", model_file, wrongly_set)
    right = answer(capsys, "optimize", model_file, as_set)
    assert wrong["energy"] == pytest.approx(right["energy"], rel=0.005)
    saved = [each["energy"] - each["typed_energy"] for each in (wrong, right)]
    assert saved[0] == pytest.approx(saved[1], rel=0.1)


@pytest.mark.truth
def test_what_the_user_states_counts_instead(
    wrongly_set: Path, as_set: Path, model_file: Path, capsys: Capture
) -> None:
    right = answer(capsys, "estimate", model_file, wrongly_set, "--payload", 0)
    assert right["contradictions"] == []
    (found,) = answer(capsys, "estimate", model_file, as_set, "--payload", 2)[
        "contradictions"
    ]
    assert found["stated"].startswith("--payload states")


MOVES = (
    (0.5, -1.3, 1.4, -1.6, -1.4, 0.4),
    (-0.6, -0.9, 1.0, -1.1, -1.7, -0.5),
    (0.2, -1.7, 1.9, -1.8, -1.2, 0.6),
)


@pytest.mark.parametrize("seed", first_fast([11, 12, 13]))
@pytest.mark.parametrize(
    ("set_there", "carried"),
    first_fast([(2.5, 0.5), (2.0, 2.0), (0.0, 0.0), (0.0, 1.5)]),
)
def test_arms_of_their_type_are_judged_by_the_type(
    seed: int, set_there: float, carried: float, tmp_path: Path
) -> None:
    """No model of the arm: torque constants within 12 %, friction within 15 % of the usual."""
    center = np.array([0.02, 0.0, 0.06])
    cell = SimulatedCell(
        seed=seed,
        session=2,
        payload=Payload(set_there, center),
        carried=Payload(carried, center),
        rate=125.0,
    )
    cell.run(program(*(movej(q, 1.5, 3.0) for q in MOVES)))
    recorded = cell.record(tmp_path / "bag", 25.0)
    found = payload_contradictions(generic_model("ur5e"), recorded.bag)
    assert len(found) == (set_there != carried)
    for each in found:
        shown = float(each.shown.split()[-2])
        assert shown == pytest.approx(carried, abs=0.4)


@pytest.mark.truth
@pytest.mark.parametrize(
    "others",
    [
        ["ur5e_pick_place_50hz_24s"],
        [
            "ur10e_point_to_point_57s",
            "ur10e_other_days_2020_02_05",
            "ur3e_moves_payload_1.07kg_25hz_36s",
        ],
    ],
)
def test_real_arms_contradict_what_was_not_set_and_nothing_else(
    others: list[str], recordings: Path, tmp_path: Path
) -> None:
    """A UR10e with 2.805 kg of undeclared payload, empty, and on other days; other arms."""
    names = (
        "ur10e_excitation_unloaded_56s",
        "ur10e_excitation_loaded_2.805kg_56s",
        *others,
    )
    bags = {
        name: write_bag(
            tmp_path / name, read_csv([recordings / f"{name}.csv.gz"], name.split("_")[0])
        )
        for name in names
    }
    own = identify([bags[names[0]]], "ur10e").model
    for name, bag in bags.items():
        robot = load_robot(name.split("_")[0])
        models = [generic_model(robot), *([own] if robot.name == own.robot_name else [])]
        for model in models:
            found = payload_contradictions(model, bag)
            assert len(found) == ("loaded_2.805" in name), (
                name,
                model.provenance.get("origin"),
            )
            for each in found:
                assert float(each.shown.split()[-2]) == pytest.approx(2.805, abs=0.3)


@pytest.mark.truth
def test_recordings_that_do_not_show_it_are_passed_over(
    as_set: Path, model_file: Path, tmp_path: Path
) -> None:
    cell = SimulatedCell(payload=Payload(3.0), carried=Payload())
    still = cell.record(tmp_path / "still", 5.0)
    model = load_model(model_file)
    assert payload_contradictions(model, still.bag) == ()
    assert payload_contradictions(model, tmp_path / "absent") == ()
    assert payload_contradictions(generic_model("ur10e"), as_set) == ()


@pytest.mark.truth
def test_json_of_many_bags(
    as_set: Path, wrongly_set: Path, model_file: Path, capsys: Capture
) -> None:
    words = [
        "estimate",
        str(model_file),
        str(as_set),
        str(wrongly_set),
        "--workers",
        "1",
        "--json",
    ]
    assert main(words) == 0
    content = json.loads(capsys.readouterr().out)
    assert len(content["contradictions"]) == 1
    assert [len(entry["contradictions"]) for entry in content["results"]] == [0, 1]
