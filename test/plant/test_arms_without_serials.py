# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recorded arms without serial numbers are told apart by what their controllers state."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from test.identification.exact_arm import write_bag
from ur_energy_model.consistency.contradiction import ContradictionError
from ur_energy_model.consistency.controller_constants import recorded_constants
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.many_bags import in_this_process
from ur_energy_model.model.arm_at_hand import with_controller_constants
from ur_energy_model.model.robots import load_robot
from ur_energy_model.plant.fleet_identification import identify_arms
from ur_energy_model.telemetry.csv.reader import read_csv

ARMS = {
    "ur5e_pick_place_50hz_24s": "A",
    "ur5e_other_day_10hz_21s": "A",
    "ur5e_streamed_move_500hz_6s": "B",
    "ur5e_other_arm_125hz_11s": "C",
}
IDENTIFIED = ("ur5e_pick_place_50hz_24s", "ur5e_streamed_move_500hz_6s")


@pytest.fixture
def bags(recordings: Path, tmp_path: Path) -> dict[str, Path]:
    return {
        name: write_bag(
            tmp_path / name, read_csv([recordings / f"{name}.csv.gz"], "ur5e")
        )
        for name in ARMS
    }


def test_recordings_of_several_arms_are_not_fitted_together(
    bags: dict[str, Path],
) -> None:
    for first, second in combinations(ARMS, 2):
        if ARMS[first] != ARMS[second]:
            with pytest.raises(ContradictionError) as caught:
                identify([bags[first], bags[second]], "ur5e")
            assert caught.value.contradiction.subject == "arm"


def test_each_arm_has_its_own_model(bags: dict[str, Path]) -> None:
    given = [bags["ur5e_pick_place_50hz_24s"], bags["ur5e_streamed_move_500hz_6s"]]
    found = identify_arms(given, IdentificationOptions(), each=in_this_process)
    assert [(arm.name, arm.bags) for arm in found.arms] == [
        ("ur5e", (given[0],)),
        ("ur5e_2", (given[1],)),
    ]


@pytest.mark.truth
@pytest.mark.parametrize("name", IDENTIFIED)
def test_a_model_of_another_arm_is_named_and_becomes_that_of_the_arm(
    bags: dict[str, Path], name: str
) -> None:
    constants = recorded_constants(bags[name], load_robot("ur5e"))
    model = with_controller_constants(identify([bags[name]], "ur5e").model, constants)
    for recorded, arm in ARMS.items():
        found = estimate_energy(model, bags[recorded])
        assert found.same_arm is (arm == ARMS[name])
        warned = [text for text in found.warnings if "another arm" in text]
        assert bool(warned) is (arm != ARMS[name])
        assert all("N m/A" in text for text in warned)
        stated = estimate_energy(model, bags[recorded], same_arm=True)
        assert stated.supply_std <= found.supply_std * (1.0 + 1e-9)
