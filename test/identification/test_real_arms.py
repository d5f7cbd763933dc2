"""Recordings of real arms: held-out errors, setups, and whether intervals hold on other days."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from test.benchmarks.peers.methods import per_joint, twenty_lines
from test.benchmarks.peers.recordings import Recorded
from test.identification.exact_arm import write_bag
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.identification.pipeline import Identification, identify
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.csv.reader import read_csv

HELD_OUT = "ur10e_point_to_point_57s"
DAYS = (
    "ur10e_excitation_50s",
    "ur10e_other_days_2019_12_23",
    "ur10e_other_days_2020_02_05",
    "ur10e_other_days_2020_02_06",
)


Found = dict[str, tuple[Path, Identification]]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Found]:
    """Folder of the bags, and what was identified from them so far."""
    return tmp_path_factory.mktemp("days"), {}


@pytest.fixture
def found(recordings: Path, known: tuple[Path, Found]) -> Found:
    """Bag of each day and what is identified from it; that of the first with a held-out motion."""
    folder, found = known
    if not found:
        bags = [
            write_bag(folder / name, read_csv([recordings / f"{name}.csv.gz"], "ur10e"))
            for name in (*DAYS, HELD_OUT)
        ]
        for name, bag in zip(DAYS, bags, strict=False):
            found[name] = bag, identify([bag], "ur10e", validate=bags[-1:] if not found else ())
    return found


def test_ur10e_beats_a_plain_fit(found: Found) -> None:
    """Held-out R2 on moving samples, above what a plain fit reaches on these recordings."""
    current = found[DAYS[0]][1].validation[0].current
    assert current is not None
    plain = [0.951, 0.993, 0.997, 0.972, 0.931, 0.802]
    assert all((entry["r2"] or 0.0) > bound for entry, bound in zip(current, plain, strict=True))
    inertia = [joint.reflected_inertia for joint in found[DAYS[0]][1].model.joints]
    np.testing.assert_allclose(inertia, [6.02, 6.02, 1.915, 0.612, 0.612, 0.612], rtol=0.02)


def test_currents_of_other_days(found: Found) -> None:
    """A third less error of current than plain least squares, and intervals that hold."""
    plain = per_joint(twenty_lines)
    robot, ratios, within = load_robot("ur10e"), [], []
    seen = {name: Recorded(found[name][0], robot) for name in DAYS[:3]}
    for fitted in seen:
        others = [name for name in seen if name != fitted]
        predicted = plain(seen[fitted], [seen[name] for name in others])
        for name, current in zip(others, predicted, strict=True):
            assert current is not None
            metrics = evaluate(found[fitted][1].model, found[name][0]).as_json()
            ours = sum(entry["rms"] for entry in metrics["current_all"])
            error = np.square(current - seen[name].current)
            ratios.append(ours / np.sqrt(error.mean(axis=0)).sum())
            within += [entry["coverage"] for entry in metrics["current_interval_all"]]
    assert np.mean(ratios) < 0.7
    assert 0.9 <= np.mean(within) <= 0.99


def test_ur5e_power_and_setup(recordings: Path, tmp_path: Path) -> None:
    """Bus power down to its noise; mounting and payload from target_moment."""
    telemetry = read_csv([recordings / "ur5e_pick_place_50hz_24s.csv.gz"], "ur5e")
    result = identify([write_bag(tmp_path / "bag", telemetry)], "ur5e")
    power, torque = result.fit[0].power, result.fit[0].torque
    assert power is not None
    assert torque is not None
    assert (power["rmse"] or 9.0) < 1.8
    assert result.power.comparison["common"] < 1.8  # held out, block by block
    np.testing.assert_allclose(result.model.setup.gravity, [0, 6.94, -6.94], atol=0.03)
    assert result.model.setup.payload.mass == pytest.approx(1.48, abs=0.02)
    assert all((entry["rms"] or 9.0) < 0.02 for entry in torque)
