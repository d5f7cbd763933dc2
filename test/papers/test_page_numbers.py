# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The page of the papers is that of the code: its numbers are made anew and compared."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from test.papers.ready_stage import ReadyStage
from tools import papers as tool
from ur_energy_model.model.robots import load_robot
from ur_energy_model.papers.page import markdown, side_by_side
from ur_energy_model.papers.published import papers
from ur_energy_model.papers.stage_runs import StageResult
from ur_energy_model.papers.stages import STAGES
from ur_energy_model.simulation.parameters import draw_parameters

PAGE = tool.DOCS / "papers.md"
NUMBERS = tool.DOCS / "papers.json"

ALIKE = 1e-4
"""Largest relative difference of two numbers: the page shows four digits. The kernels of another
processor, from 2008, change the rows of the stages below by 6e-7 of the largest number of the row;
a page that was older than its code had a torque constant 4e-3 away."""
OF_LARGEST = 1e-5
"""The same relative to the largest number of the row, for numbers near zero."""
ROUNDING = {"gravity": 1e-6, "coefficient_0": 1.0}
"""Rows that are zero but for rounding, and the size of what is rounded, in the unit of the row."""


def kept() -> dict[str, Any]:
    """The numbers of the page."""
    content: dict[str, Any] = json.loads(NUMBERS.read_text(encoding="utf-8"))
    return content


def rows_of(paper: str, robot: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Rows of the page for a stage, by key and figure."""
    found = {}
    for entry in kept()["entries"]:
        row = entry.get("row")
        if row is not None and (entry["paper"], row["robot"]) == (paper, robot):
            found[row["key"], row["figure"]] = row
    return found


def differences(page: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Differences of a row of the page and of now, as words."""
    name = f"{now['key']} {now['figure']}"
    words = [page["verdict"].split(":")[0], now["verdict"].split(":")[0]]
    found = []
    if words[0] != words[1]:
        found.append(f"{name}: verdict {words[0]} on the page, {words[1]} now")
    ours = now["here"]
    theirs = page["here"]
    if ours is None or isinstance(ours, str):
        return found if ours == theirs else [*found, f"{name}: {theirs}, {ours}"]
    new = np.asarray(ours, dtype=float)
    old = np.asarray(theirs, dtype=float)
    if new.shape != old.shape:
        return [*found, f"{name}: {old.shape} numbers on the page, {new.shape} now"]
    least = OF_LARGEST * np.nanmax(np.abs(new), initial=0.0)
    least = max(least, ROUNDING.get(now["key"], 0.0))
    if not np.allclose(old, new, rtol=ALIKE, atol=least, equal_nan=True):
        found.append(f"{name}: {theirs} on the page, {ours} now")
    return found


made = pytest.mark.skipif(not NUMBERS.is_file(), reason="made by make papers")


@made
@pytest.mark.truth
@pytest.mark.parametrize("name", ["s0", "s2_ur3e", "s2_gen3", "s3"])
def test_the_page_has_the_numbers_of_the_code(name: str, tmp_path: Path) -> None:
    """Stages of less than a minute with the seed and the settings of the page, all rows."""
    (stage,) = (each for each in STAGES if each.name == name)
    stage.run(tmp_path, seed=0, quick=False, progress=lambda *_: None, draw=False)
    verdict = json.loads((tmp_path / "verdict.json").read_text())
    page = rows_of(stage.protocol, stage.robot)
    now = {(row["key"], row["figure"]): row for row in verdict["figures"]}
    assert page.keys() == now.keys()
    found = [text for key, row in now.items() for text in differences(page[key], row)]
    assert not found, "make papers"


def test_a_change_of_a_digit_is_a_difference() -> None:
    constants = [0.09477, 0.08985, 0.09855, 0.07896, 0.08775, 0.08154]
    row = {
        "key": "friction",
        "figure": "k_t by joint [N m/A]",
        "verdict": "agrees",
        "here": constants,
    }
    assert differences(row, row | {"here": [x * (1 + 3e-6) for x in constants]}) == []
    older = row | {"here": [*constants[:5], 0.08189]}
    assert len(differences(older, row)) == 1
    assert len(differences(row | {"verdict": "differs: 2 times"}, row)) == 1
    assert len(differences(row | {"here": constants[:5]}, row)) == 1
    assert len(differences(row | {"here": None}, row | {"here": "not used"})) == 1
    zero = {**row, "key": "gravity", "here": 0.0}
    assert differences(zero, zero | {"here": 1e-7}) == []
    assert len(differences(zero, zero | {"here": 1e-3})) == 1


@made
def test_the_page_is_made_of_its_numbers() -> None:
    """With the texts of config/papers.yaml; `python -m tools.papers --page` makes it anew."""
    assert PAGE.read_text(encoding="utf-8") == tool.rendered(NUMBERS)
    images = {each["picture"]["file"] for each in kept()["entries"] if "picture" in each}
    assert all((tool.DOCS / file).is_file() for file in images)
    assert len(list((tool.DOCS / "images").iterdir())) == len(images)


@made
def test_pictures_of_models_on_the_page_fit() -> None:
    """R2 of every figure that shows measured beside modelled values."""
    places = {}
    for entry in kept()["entries"]:
        picture = entry.get("picture")
        if picture is not None and picture["r2"]:
            worst = min(min(each.values()) for each in picture["r2"].values())
            key = entry["paper"], entry["place"]
            places[key] = min(worst, places.get(key, 1.0))
    assert set(places) == {
        *(("s0", f"Fig. {number}") for number in (8, 9, 11, 12)),
        ("s1", "Fig. 3"),
        ("s2", "Fig. 4"),
        *(("s4", f"Fig. {number}") for number in (15, 17)),
    }
    assert min(places.values()) > 0.8


@made
def test_words_of_the_summaries_have_the_numbers_of_the_page() -> None:
    change = rows_of("s1", "ur5")[
        "viscous_change", "change of viscous friction by joint, warm over cold [%]"
    ]["here"]
    (summary,) = (each.paper.summary for each in tool.kept_results(kept())
                  if each.paper.key == "s1")  # fmt: skip
    lowest = -round(max(change))
    highest = -round(min(change))
    assert f"by {lowest} to {highest} % here" in " ".join(summary)


@made
def test_errors_are_in_part_the_noise_that_was_drawn() -> None:
    """The share of the drawn noise in the squares of the errors of s1 and s2, as given there."""
    shares = {}
    for robot in ("ur3e", "ur10e", "gen3", "fr3"):
        noise = draw_parameters(load_robot(robot), seed=0).power_noise
        rows = rows_of("s2", robot)
        for part in ("training", "testing"):
            error = rows["rmse", f"RMSE of power [W], {part}"]["here"]
            shares[robot, part] = (noise / error) ** 2
    assert all(0.3 < share < 1.0 for share in shares.values())
    arm = draw_parameters(load_robot("ur5"), seed=0)
    per_ampere = arm.gear_ratio * arm.torque_constant
    variance = np.sum((arm.current_noise_moving * per_ampere) ** 2)
    row = rows_of("s1", "ur5")[
        "normalised_error", "normalised error e_N on the validation motion [N m]"
    ]
    (points,) = re.findall(r"N = (\d+)", row["definition"])
    share = variance / (row["here"] ** 2 * int(points))
    assert share == pytest.approx(0.5, abs=0.2)


def test_numbers_and_page_of_a_run(tmp_path: Path) -> None:
    """What is kept makes the same page as the run, but for the files of the pictures."""
    stage = ReadyStage("ready", "s1", "ur5")
    stage.run(tmp_path / "ready", seed=0, quick=True, progress=lambda *_: None)
    verdict = json.loads((tmp_path / "ready" / "verdict.json").read_text())
    found = [StageResult("ready", "s1", verdict, "")]
    results = [side_by_side(each, found) for each in papers()]
    text = tool.as_text(results, "commit 1a2b3c of 2026-11-30", 3)
    again = markdown(tool.kept_results(json.loads(text)))
    assert "elsewhere" not in again  # found here only
    assert "images/ready_a.png" in again
    assert again.replace("images/ready_", "ready/pictures/") == markdown(results)


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def test_the_page_says_of_which_commit_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page itself may be changed; nothing else."""
    docs = tmp_path / "docs" / "papers"
    docs.mkdir(parents=True)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(tool, "DOCS", docs)
    monkeypatch.setattr(tool, "RECORDED", tmp_path / "recorded.json")
    assert tool.state_of_code().startswith("version ")
    (tmp_path / "code.py").write_text("a = 1")
    (docs / "papers.md").write_text("# page")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first", "--date=2026-11-30T10:00:00")
    clean = tool.state_of_code()
    assert clean.startswith("commit ")
    (docs / "papers.md").write_text("# new page")
    (docs / "papers.json").write_text("{}")
    (tmp_path / "recorded.json").write_text("{}")
    assert tool.state_of_code() == clean
    (tmp_path / "code.py").write_text("a = 2")
    assert tool.state_of_code() == f"{clean} and changes not committed"
