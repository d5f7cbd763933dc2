# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A model that meets another arm: noticed, and intervals that contain the spread between arms."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from test.energy.known_arm import known_model
from test.energy.unseen_arms import Trial, compared, record, without_bus
from test.identification.exact_arm import ExactArm, write_bag
from test.truth import first_fast
from ur_energy_model.energy.matched_model import doubt_about_arm, model_of_arm
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.powers import PowerOptions
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.sessions import Session
from ur_energy_model.telemetry.csv.reader import read_csv
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

VARIANTS = {
    "currents": PowerOptions(),
    "currents, standby of the model": PowerOptions(track_standby=False),
    "motion": PowerOptions(method="motion"),
}
ARMS = {
    "ur5e_pick_place_50hz_24s": "A",
    "ur5e_other_day_10hz_21s": "A",
    "ur5e_streamed_move_500hz_6s": "B",
    "ur5e_other_arm_125hz_11s": "C",
}
"""Recordings of three real UR5e."""


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Trial]]:
    """What the model of each simulated arm makes of the recording of each other one."""
    arms = {}
    folder = tmp_path_factory.mktemp("pairs")
    for seed in range(840, 843):
        telemetry, truth = record("ur5e", seed, 8.0, folder)
        telemetry = replace(telemetry, info=replace(telemetry.info, serial=str(seed)))
        bag = write_bag(folder / str(seed), telemetry)
        arms[seed] = bag, truth, identify([bag], "ur5e").model
    found: dict[str, list[Trial]] = {variant: [] for variant in VARIANTS}
    for own, other in permutations(arms, 2):
        bag, truth, _ = arms[other]
        for variant, options in VARIANTS.items():
            summary = estimate_energy(arms[own][2], bag, options=options)
            assert summary.warnings
            assert summary.serials == {"model": str(own), "recording": str(other)}
            found[variant].append(compared(summary, truth))
    return found


@pytest.mark.truth
@pytest.mark.parametrize("variant", VARIANTS)
def test_intervals_cover_pairs_of_arms(
    pairs: dict[str, list[Trial]], variant: str
) -> None:
    supply = np.array([trial.supply for trial in pairs[variant]])
    joints = np.concatenate([trial.joints for trial in pairs[variant]])
    # With a coverage of 90 % fewer than 4 of 6 have a probability of 2 %, fewer than 80 %
    # of the joints of 6 pairs, 24 or more, of 3 % if independent.
    assert len(supply) == 6
    assert np.sum(np.abs(supply) < CONFIDENCE) >= 4
    assert np.mean(np.abs(joints) < CONFIDENCE) >= 0.8
    widths = [trial.width for trial in pairs[variant] if trial.anchored]
    assert not widths or np.median(widths) < 60.0  # of use all the same


@pytest.mark.truth
@pytest.mark.parametrize(
    "source", ["ur5e_pick_place_50hz_24s", "ur5e_streamed_move_500hz_6s"]
)
def test_intervals_cover_other_real_arms(
    recordings: Path, tmp_path: Path, source: str
) -> None:
    def bag(name: str) -> Path:
        telemetry = read_csv([recordings / f"{name}.csv.gz"], "ur5e")
        info = replace(telemetry.info, serial=ARMS[name])
        return write_bag(tmp_path / name, replace(telemetry, info=info))

    model = identify([bag(source)], "ur5e").model
    errors = list[float]()
    for other in (name for name, arm in ARMS.items() if arm != ARMS[source]):
        path = bag(other)
        for variant in ("currents", "currents, standby of the model"):
            found = estimate_energy(model, path, options=VARIANTS[variant])
            assert found.bus is not None
            errors.append((found.supply - found.bus) / found.supply_std)
            (warning,) = (each for each in found.warnings if f"arm {ARMS[other]}" in each)
            assert f"arm {ARMS[source]}" in warning
            assert f"arm {ARMS[other]}" in warning
    assert np.abs(errors).max() < 2.5  # in standard deviations: one of 8 lies at 2.0
    assert np.sqrt(np.mean(np.square(errors))) < 1.3


def _model(serial: str | None) -> EnergyModel:
    return replace(known_model(), provenance={"serial": serial})


@pytest.mark.parametrize(
    ("own", "recorded", "same_arm", "wider"),
    [
        ("1", "2", False, True),
        ("1", "2", True, False),
        ("1", None, False, False),
        (None, "2", False, False),
    ],
)
def test_only_another_serial_number_widens(
    own: str | None, recorded: str | None, same_arm: bool, wider: bool
) -> None:
    model = _model(own)
    found = model_of_arm(model, RecordingInfo(serial=recorded), same_arm=same_arm)
    assert (found.warning is not None) == wider
    assert (found.model is not model) == wider


def test_friction_far_from_the_models_indicates_another_arm() -> None:
    scales = np.array([0.83, 0.64, 1.58, 1.06, 1.21, 1.13])
    far = Session(30.0, 0.3, scales, np.full(6, 0.03), 5.0, 3.0)
    later = replace(far, friction_scale=np.array([1.19, 1.11, 1.02, 0.97, 0.98, 1.0]))
    assert doubt_about_arm(_model("1"), far) is not None
    assert doubt_about_arm(_model("1"), later) is None  # a UR10e three months later


def _at(telemetry: Telemetry, start: float, host: float | None) -> Telemetry:
    """The recording at another time of the controller's clock [s], and of day [s] where known."""
    passed = telemetry.time - telemetry.time[0]
    stamp = None if host is None else ((1.7e9 + host + passed) * 1e9).astype(np.int64)
    return replace(telemetry, time=start + passed, stamp=stamp)


@pytest.fixture(scope="module")
def made(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Telemetry, dict[bool, EnergyModel]]:
    """A recording, and models from it with and without host stamps, from 5000 s of the clock on."""
    telemetry = ExactArm().record(20.0, rate=125.0, seed=1)
    folder = tmp_path_factory.mktemp("fit")
    models = {}
    for stamped in (True, False):
        whole = _at(telemetry, 5000.0, 0.0 if stamped else None)
        save_model(
            identify([write_bag(folder / str(stamped), whole)], "ur5e").model,
            folder / "m",
        )
        models[stamped] = load_model(folder / "m")
    return telemetry, models


@pytest.mark.parametrize(
    ("start", "host", "same"),
    first_fast(
        [
            (9000.0, 4000.0, True),  # an hour later
            (100.0, 4000.0, False),  # the controller was started again
            (5025.0, None, True),  # it goes on
            (5000.0, None, False),  # clocks that all begin alike
            (4000.0, -1000.0, True),  # before it
            (5100.0, 3 * 86400.0, False),  # another day, its clock at a similar time
            (5010.0 + 2 * 86400.0, 2 * 86400.0, False),  # days later without a restart
            (5600.0, None, False),
        ],
        2,
    ),
)
def test_without_bus_power_standby_is_that_of_the_same_session_only(
    made: tuple[Telemetry, dict[bool, EnergyModel]],
    tmp_path: Path,
    start: float,
    host: float | None,
    same: bool,
) -> None:
    telemetry, models = made
    bag = write_bag(tmp_path / "bag", _at(without_bus(telemetry), start, host))
    model = models[host is not None]
    truth = np.trapezoid(np.asarray(telemetry.bus_power), telemetry.time)
    found = estimate_energy(model, bag)
    width = CONFIDENCE * found.supply_std / found.duration
    assert abs(found.supply - truth) < CONFIDENCE * found.supply_std
    assert width < 2.0 if same else width > 4.5  # W: a session's standby varies by 2.5 W
    other = replace(model, provenance={**model.provenance, "serial": "1"})
    info = replace(telemetry.info, serial="2")
    bag = write_bag(
        tmp_path / "other", replace(_at(without_bus(telemetry), start, host), info=info)
    )
    assert CONFIDENCE * estimate_energy(other, bag).supply_std / found.duration > 4.5
