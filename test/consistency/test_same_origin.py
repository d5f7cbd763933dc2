# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recordings of several arms are refused together; a script is of the recorded program or not."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.consistency.contradiction import ContradictionError
from ur_energy_model.consistency.same_origin import (
    RecordedArm,
    another_program,
    arms_by_constants,
    check_one_arm,
)
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.telemetry.samples import RecordingInfo

OWN = ControllerConstants(
    np.array([11.5, 10.6, 11.4, 7.3, np.nan, np.nan]), np.full(6, 0.03)
)
OTHER = ControllerConstants(
    np.array([11.5, 10.0, 10.0, 8.0, np.nan, np.nan]), np.full(6, 0.03)
)
UNKNOWN = ControllerConstants.unknown(6)


def bags(*serials: str | None) -> list[RecordedArm]:
    return [
        RecordedArm(f"bag_{k}", RecordingInfo(serial=serial))
        for k, serial in enumerate(serials)
    ]


def stated(*each: tuple[str | None, ControllerConstants | None]) -> list[RecordedArm]:
    return [
        RecordedArm(f"bag_{k}", RecordingInfo(serial=serial), constants)
        for k, (serial, constants) in enumerate(each)
    ]


@pytest.mark.parametrize(
    "serials", [(), (None,), ("1", "1"), ("1", None, "1"), (None, "1")]
)
def test_recordings_that_may_be_of_one_arm(serials: tuple[str | None, ...]) -> None:
    check_one_arm(bags(*serials))


def test_recordings_of_two_arms_are_refused_with_both_names() -> None:
    with pytest.raises(ContradictionError) as caught:
        check_one_arm(bags(None, "20195500001", "20195500001", "20195500002"))
    text = str(caught.value)
    assert text.startswith("bag_3")
    assert "bag_1" in text
    assert "20195500001" in text
    assert "20195500002" in text
    assert caught.value.contradiction.subject == "arm"


def test_stated_constants_tell_arms_apart_without_serial_numbers() -> None:
    check_one_arm(stated((None, OWN), ("1", OWN), (None, UNKNOWN), (None, None)))
    with pytest.raises(ContradictionError) as caught:
        check_one_arm(stated((None, UNKNOWN), (None, OWN), (None, OTHER)))
    text = str(caught.value)
    assert text.startswith("bag_2")
    assert "bag_1" in text
    # The clearest difference is that of the elbow.
    assert "11.4 N m/A" in text
    assert "10 N m/A" in text
    assert "--per-arm" in text


def test_an_exchanged_joint_separates_recordings_of_one_serial_number() -> None:
    with pytest.raises(ContradictionError, match="exchanged"):
        check_one_arm(stated(("1", OWN), ("1", OTHER)))


def test_recordings_are_grouped_by_stated_constants() -> None:
    constants = [OTHER, OWN, UNKNOWN, OTHER, OWN, None]
    found = arms_by_constants(stated(*((None, each) for each in constants)))
    assert found == [0, 1, 0, 0, 1, 0]
    assert arms_by_constants([]) == []


@pytest.mark.parametrize(
    ("script", "recorded", "other"),
    [
        ("palletize", "palletize", False),
        ("pick_and_place", "Pick and place", False),
        ("palletize", None, False),
        ("palletize", "polish", True),
        ("palletize_2", "palletize", True),
    ],
)
def test_the_program_of_a_script(script: str, recorded: str | None, other: bool) -> None:
    found = another_program(script, recorded)
    assert bool(found) is other
    for each in found:
        assert not each.refused
        assert script in each.words()
        assert str(recorded) in each.words()
