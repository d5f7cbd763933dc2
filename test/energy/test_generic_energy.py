# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energies of arms not yet identified, with generic models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from test.energy.unseen_arms import REAL, Trial, compared, energies, record, without_bus
from test.identification.exact_arm import write_bag
from test.truth import first_fast
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.powers import PowerOptions
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.model.generic import generic_model, generic_models
from ur_energy_model.telemetry.csv.reader import read_csv

SEED = 611
VARIANTS = ("bus", "no bus", "motion", "stated")
Trials = dict[str, list[Trial]]


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Trials:
    """One arm of every type, with and without bus power, at 10 Hz, and from the motion alone."""
    found: Trials = {variant: [] for variant in VARIANTS}
    for number, name in enumerate(generic_models()):
        telemetry, truth = record(name, SEED + number, 6.0, tmp_path_factory.mktemp(name))
        recordings = {
            "bus": energies(name, telemetry),
            "no bus": energies(name, without_bus(telemetry)),
            "motion": energies(name, telemetry, PowerOptions(method="motion")),
            "stated": energies(name, without_bus(telemetry), stated=True),
        }
        for variant, summary in recordings.items():
            found[variant].append(compared(summary, truth))
    return found


@pytest.mark.truth
@pytest.mark.parametrize("variant", VARIANTS)
def test_intervals_cover_arms_that_the_models_have_not_seen(
    trials: Trials, variant: str
) -> None:
    joints = np.concatenate([trial.joints for trial in trials[variant]])
    supply = np.array([trial.supply for trial in trials[variant]])
    assert len(joints) > 30
    # Of 30 to 50 joints 90 % or more; joints of one arm share some errors.
    assert np.mean(np.abs(joints) < CONFIDENCE) >= 0.88
    assert np.mean(np.abs(supply) < CONFIDENCE) >= 0.88
    assert np.abs(np.append(joints, supply)).max() < 4.0


@pytest.mark.truth
def test_intervals_are_narrow_enough_to_be_of_use(trials: Trials) -> None:
    anchored = [trial.width for trial in trials["bus"] if trial.anchored]
    assert anchored
    assert np.median(anchored) < 15.0
    assert np.median([trial.width for trial in trials["no bus"]]) < 40.0
    # Torque constants that the controller states.
    joints = {
        variant: np.concatenate([trial.joint_width for trial in trials[variant]])
        for variant in ("no bus", "stated")
    }
    assert np.median(joints["stated"]) < 0.8 * np.median(joints["no bus"])
    # Standby power, once measured, is no longer that of any arm.
    pairs = zip(trials["bus"], trials["no bus"], strict=True)
    assert all(bus.width < other.width for bus, other in pairs if bus.anchored)


@pytest.mark.parametrize("name", first_fast(REAL[2:]))
def test_intervals_cover_real_arms(recordings: Path, tmp_path: Path, name: str) -> None:
    robot = name.partition("_")[0]
    telemetry = read_csv([recordings / f"{name}.csv.gz"], robot)
    metrics = evaluate(generic_model(robot), write_bag(tmp_path / "bag", telemetry))
    assert metrics.power is not None
    assert 0.9 < (metrics.power["coverage"] or 0.0) < 0.99
    known = energies(robot, telemetry)
    assert known.session.anchored
    assert known.bus is not None
    assert known.supply == pytest.approx(known.bus, rel=1e-12)
    assert abs(known.unexplained) < CONFIDENCE * known.model_std < 0.15 * known.bus
    unknown = energies(robot, telemetry, PowerOptions(track_standby=False))
    assert abs(unknown.unexplained) < CONFIDENCE * unknown.model_std
    assert unknown.model_std > known.model_std
