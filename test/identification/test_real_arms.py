# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recordings of real arms: held-out errors, setups, and whether intervals hold on other days."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from test.benchmarks.peers.methods import per_joint, twenty_lines
from test.benchmarks.peers.recordings import Recorded
from test.identification.exact_arm import write_bag
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.identification.payload import identify_payload
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.csv.reader import read_csv

HELD_OUT = "ur10e_point_to_point_57s"
DAYS = (
    "ur10e_excitation_50s",
    "ur10e_other_days_2019_12_23",
    "ur10e_other_days_2020_02_05",
)


PLAIN_R2 = [0.951, 0.993, 0.997, 0.972, 0.931, 0.802]
"""Explained share of the variance of each current by plain least squares."""


def bag_of(recordings: Path, folder: Path, name: str) -> Path:
    """A recording of the UR10e as a bag."""
    telemetry = read_csv([recordings / f"{name}.csv.gz"], "ur10e")
    return write_bag(folder / name, telemetry)


@pytest.mark.truth
def test_ur10e_beats_a_plain_fit_on_another_motion(
    recordings: Path, tmp_path: Path
) -> None:
    fitted, held_out = (
        bag_of(recordings, tmp_path, name) for name in (DAYS[0], HELD_OUT)
    )
    found = identify([fitted], "ur10e", validate=[held_out])
    current = found.validation[0].current
    assert current is not None
    assert all(
        (entry["r2"] or 0.0) > r2 for entry, r2 in zip(current, PLAIN_R2, strict=True)
    )
    inertia = [joint.reflected_inertia for joint in found.model.joints]
    np.testing.assert_allclose(
        inertia, [6.02, 6.02, 1.915, 0.612, 0.612, 0.612], rtol=0.02
    )


@pytest.mark.truth
def test_ur10e_beats_a_plain_fit_on_other_days(recordings: Path, tmp_path: Path) -> None:
    """A third less error of current than plain least squares, and intervals that hold."""
    bags = [bag_of(recordings, tmp_path, name) for name in DAYS]
    plain = per_joint(twenty_lines)
    robot = load_robot("ur10e")
    ratios = []
    within = []
    against_null = list[list[float]]()
    moving = list[list[float]]()
    seen = {bag: Recorded(bag, robot) for bag in bags}
    for fitted in bags:
        model = identify([fitted], "ur10e").model
        others = [bag for bag in bags if bag != fitted]
        predicted = plain(seen[fitted], [seen[bag] for bag in others])
        for bag, found in zip(others, predicted, strict=True):
            assert found is not None
            metrics = evaluate(model, bag).as_json()
            ours = sum(entry["rms"] for entry in metrics["current_all"])
            error = np.square(found - seen[bag].current)
            ratios.append(ours / np.sqrt(error.mean(axis=0)).sum())
            within += [entry["coverage"] for entry in metrics["current_interval_all"]]
            moving.append([entry["coverage"] for entry in metrics["current_interval"]])
            against_null.append(
                [entry["rms"] / entry["null_rms"] for entry in metrics["current"]]
            )
    of_joints = np.exp(np.log(against_null).mean(axis=0))
    assert (of_joints < 1.0).all()
    assert np.exp(np.log(of_joints).mean()) < 0.9
    assert 0.9 <= np.mean(moving) <= 0.995
    assert np.mean(ratios) < 0.7
    assert 0.9 <= np.mean(within) <= 0.99


@pytest.mark.truth
def test_payload_with_models_from_seven_seconds(recordings: Path, tmp_path: Path) -> None:
    """In a few strokes, friction that depends on the load can be part of the links' weight."""

    def cut(name: str, *spans: tuple[float, float]) -> list[Path]:
        whole = read_csv([recordings / f"{name}.csv.gz"], "ur10e")
        bags = list[Path]()
        for span in spans:
            part = whole.cut(slice(*np.searchsorted(whole.time - whole.time[0], span)))
            bags.append(write_bag(tmp_path / f"{name}_{span[0]}", part))
        return bags

    seven = [(start, start + 7.0) for start in (1.0, 13.5, 26.0, 38.5)]
    models = [identify([bag], "ur10e").model for bag in cut(HELD_OUT, *seven)]
    models += [identify([bag], "ur10e").model for bag in cut(DAYS[0], *seven[::2])]
    scores = []
    for name, mass in (("unloaded", 0.0), ("loaded_2.805kg", 2.805)):
        [bag] = cut(f"ur10e_excitation_{name}_56s", (2.0, 17.0))
        found = [identify_payload(model, bag) for model in models]
        scores += [(each.shown_mass - mass) / each.mass_std for each in found]
    assert np.mean(np.abs(scores) < CONFIDENCE) >= 0.88
    # nor are they wide for safety's sake
    assert np.sqrt(np.mean(np.square(scores))) > 0.4


def test_ur5e_power_and_setup(recordings: Path, tmp_path: Path) -> None:
    """Bus power down to its noise; mounting and payload from target_moment."""
    telemetry = read_csv([recordings / "ur5e_pick_place_50hz_24s.csv.gz"], "ur5e")
    result = identify([write_bag(tmp_path / "bag", telemetry)], "ur5e")
    power = result.fit[0].power
    torque = result.fit[0].torque
    assert power is not None
    assert torque is not None
    assert (power["rmse"] or 9.0) < 1.8
    assert result.power.comparison["common"] < 1.8  # held out, block by block
    np.testing.assert_allclose(result.model.setup.gravity, [0, 6.94, -6.94], atol=0.03)
    assert result.model.setup.payload.mass == pytest.approx(1.48, abs=0.02)
    assert all((entry["rms"] or 9.0) < 0.02 for entry in torque)
