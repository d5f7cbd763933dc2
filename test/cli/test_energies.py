# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy estimate`, `evaluate`, `predict`, `report`: what they say of recordings."""

from __future__ import annotations

import csv
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.cli.conftest import Capture, answer, refused
from test.identification.exact_arm import ExactArm, write_bag
from ur_energy_model.cli.main import DONE, main
from ur_energy_model.rooms import has_room

PARTLY = 3


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("many")
    return [ExactArm().bag(folder / str(seed), seed=seed, seconds=8) for seed in (41, 42)]


@pytest.fixture(scope="module")
def truncated(bags: list[Path]) -> Path:
    bad = bags[0].parents[1] / "truncated"
    shutil.copytree(bags[0], bad)
    (data,) = bad.glob("*.mcap")
    with data.open("rb+") as file:
        file.truncate(data.stat().st_size // 3)
    return bad


def test_many_bags_are_as_each_alone_and_summed(
    model: Path, bags: list[Path], truncated: Path, capsys: Capture
) -> None:
    content = answer(capsys, "estimate", model, bags[0], truncated, bags[1], code=PARTLY)
    alone = [answer(capsys, "estimate", model, bag) for bag in bags]
    for entry, single, bag in zip(content["results"], alone, bags, strict=True):
        assert entry.pop("bag") == str(bag)
        assert entry == {key: value for key, value in single.items() if key != "model"}
    for name in (
        "mechanical_energy",
        "electrical_energy",
        "supply_energy",
        "standby_energy",
    ):
        expected = sum(entry["total"][name] for entry in alone)
        assert content["total"][name] == pytest.approx(expected, rel=1e-12)
    (failed,) = content["failed"]
    assert failed["bag"] == str(truncated)
    assert "is truncated" in failed["reason"]
    content = answer(
        capsys, "evaluate", model, *bags, truncated, "--workers", 2, code=PARTLY
    )
    assert len(content["results"]) == len(bags)
    last = answer(capsys, "evaluate", model, bags[-1])  # as on a worker
    assert content["results"][-1:] == last["results"]
    assert [entry["bag"] for entry in content["failed"]] == [str(truncated)]


def test_a_total_that_is_measured_for_a_part_of_the_time(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    """JSON and CSV beside volts and amperes; every row adds up, by a program that only sums."""
    made = ExactArm().record(8.0, seed=9)
    since = made.time - made.time[0]
    current = np.where(
        (since > 2.0) & (since < 4.0), np.nan, made["actual_robot_current"]
    )
    made = replace(made, columns={**made.columns, "actual_robot_current": current})
    bag = write_bag(tmp_path / "bag", made)
    file = tmp_path / "power.csv"
    content = answer(capsys, "estimate", model, bag, "--csv", file)
    watts = made["actual_robot_voltage"] * current
    known = np.isfinite(watts)
    table = list(csv.DictReader(file.open()))
    rows = {
        name: np.array([float(row[name] or "nan") for row in table]) for name in table[0]
    }
    assert (np.isfinite(rows["bus_power"]) == known).all()
    total = rows["total_power"]
    modelled = rows["model_power"]
    np.testing.assert_allclose(total[known], watts[known], rtol=1e-8)
    np.testing.assert_allclose(total[~known], modelled[~known], rtol=1e-8)
    parts = sum(
        values for name, values in rows.items() if name.startswith("electrical_power_")
    )
    parts += rows["driver_power"] + rows["standby_power"] + rows["regeneration_power"]
    np.testing.assert_allclose(parts, modelled, atol=1e-6)
    np.testing.assert_allclose(parts + rows["unexplained_power"], total, atol=1e-6)
    whole = content["total"]
    energy = float(np.trapezoid(total, made.time))
    assert whole["supply_energy"] == pytest.approx(energy, rel=1e-7)
    assert whole["model_energy"] == pytest.approx(
        float(np.trapezoid(modelled, made.time)), rel=1e-7
    )
    missing = whole["supply_energy"] - whole["model_energy"]
    assert whole["unexplained_energy"] == pytest.approx(missing, abs=1e-6)
    assert content["total_source"] == "mixed"
    assert content["total_measured_share"] == pytest.approx(known.mean(), abs=1e-3)
    measured = float(np.trapezoid(np.where(known, watts, 0.0), made.time))
    assert content["explained_share"] == pytest.approx(1.0 - missing / measured, rel=1e-6)
    capsys.readouterr()
    assert main(["estimate", str(model), str(bag)]) == DONE
    out = capsys.readouterr().out
    share = f"{100.0 * content['explained_share']:.1f} % of the measured energy"
    assert f"the model explains {share}" in out


def test_the_fitted_motion_is_no_validation(
    model: Path, bag: Path, capsys: Capture
) -> None:
    assert main(["evaluate", str(model), str(bag)]) == DONE
    assert "fitted to this recording" in capsys.readouterr().out


def test_a_model_of_another_serial_number_is_reported_wherever_it_meets_a_recording(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    """One warning with both serial numbers, wider intervals, and no trust, unless overruled."""
    own = tmp_path / "own.yaml"
    page = tmp_path / "report.html"
    own.write_text(re.sub("serial: null", "serial: 'A7'", model.read_text(), count=1))
    made = ExactArm().record(6.0, seed=8)
    bag = write_bag(tmp_path / "bag", replace(made, info=replace(made.info, serial="B8")))
    found = {
        words[0]: answer(capsys, *words)
        for words in (
            ["estimate", own, bag],
            ["evaluate", own, bag],
            ["report", own, bag, "-o", page],
            ["history", "add", tmp_path / "store", bag, "--model", own],
            ["live", "--bag", bag, "--model", own, "--duration", 1],
        )
        if words[0] != "history" or has_room("plant")
    }
    for name, content in found.items():
        (line,) = content["warnings"]
        assert "A7" in line, name
        assert "B8" in line, name
        serials = {"model": "A7", "recording": "B8"}
        assert content.get("serials", serials) == serials
    assert "trusted" not in found["report"]["verdict"]["headline"]
    assert "Serial number B8. Model of A7." in page.read_text(encoding="utf-8")
    same = answer(capsys, "estimate", own, bag, "--same-arm")
    assert same["warnings"] == []
    widths = [each["total"]["model_energy_std"] for each in (found["estimate"], same)]
    assert widths[0] > 1.5 * widths[1]


def test_a_recording_is_not_overwritten_by_its_energies_nor_a_page_by_a_failure(
    model: Path, bag: Path, tmp_path: Path, capsys: Capture
) -> None:
    itself = ["estimate", str(model), str(bag), "--bag", str(bag), "--overwrite"]
    refused(itself, capsys, "is the recording itself")
    page = tmp_path / "report.html"
    page.write_text("old")
    words = ["report", str(model), "missing", "-o", str(page), "--overwrite"]
    refused(words, capsys, "missing")
    assert page.read_text() == "old"
