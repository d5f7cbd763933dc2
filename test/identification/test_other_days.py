"""Recordings of one real arm on different days: currents, friction and their intervals."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from test.benchmarks.peers.methods import PerJoint, twenty_lines
from test.benchmarks.peers.recorded import Recorded
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.sessions import FrictionCurve, friction_curve
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.csv.reader import read_csv

DAYS = (
    "ur10e_excitation_50s",
    "ur10e_other_days_2019_12_23",
    "ur10e_other_days_2020_02_05",
    "ur10e_other_days_2020_02_06",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("days")


@pytest.fixture
def bags(recordings: Path, folder: Path) -> dict[str, Path]:
    for name in DAYS:
        if not (folder / name).exists():
            telemetry = read_csv([recordings / f"{name}.csv.gz"], "ur10e")
            columns = tuple(telemetry.columns)
            with BagWriter(folder / name, telemetry.info, columns, name=name) as bag:
                bag.write(telemetry)
    return {name: folder / name for name in DAYS}


def curves(model: EnergyModel) -> list[FrictionCurve]:
    spread, speed = model.sessions.friction_of(model.dof), np.array([0.1, 0.5, 1.0])
    return [friction_curve(j, float(s), speed) for j, s in zip(model.joints, spread, strict=True)]


def test_currents_of_other_days(bags: dict[str, Path]) -> None:
    """A third less error of current than plain least squares, and intervals that hold."""
    plain = PerJoint("least squares", twenty_lines)
    robot, ratios, within = load_robot("ur10e"), [], []
    seen = {name: Recorded(bags[name], robot) for name in DAYS[:3]}
    for fitted in seen:
        model = identify([bags[fitted]], "ur10e").model
        others = [name for name in seen if name != fitted]
        predicted = plain.predict(seen[fitted], [seen[name] for name in others])
        for name, current in zip(others, predicted, strict=True):
            assert current is not None
            metrics = evaluate(model, bags[name]).as_json()
            ours = sum(entry["rms"] for entry in metrics["current_all"])
            error = np.square(current - seen[name].current)
            ratios.append(ours / np.sqrt(error.mean(axis=0)).sum())
            within += [entry["coverage"] for entry in metrics["current_interval_all"]]
    assert np.mean(ratios) < 0.7
    assert 0.9 <= np.mean(within) <= 0.99


def test_friction_intervals_hold_the_curves_of_other_days(bags: dict[str, Path]) -> None:
    """Friction of one day lies within the intervals that another states for any day."""
    models = {name: identify([bag], "ur10e").model for name, bag in bags.items()}
    hits = []
    for a, b in permutations(DAYS, 2):
        for one, other in zip(curves(models[a]), curves(models[b]), strict=True):
            width = 1.96 * np.hypot(one.std, other.std_this_session)
            hits.append(np.abs(one.torque - other.torque) < width)
    assert np.mean(hits) >= 0.9


def test_several_days_hold_one_left_out(bags: dict[str, Path]) -> None:
    """Spread and mean of three days against the fourth."""
    *days, last = DAYS
    model = identify([bags[name] for name in days], "ur10e").model
    other = identify([bags[last]], "ur10e").model
    assert model.sessions.count == 3
    hits = [
        np.abs(one.torque - another.torque) < 1.96 * np.hypot(one.std, another.std_this_session)
        for one, another in zip(curves(model), curves(other), strict=True)
    ]
    assert np.mean(hits) >= 0.9
