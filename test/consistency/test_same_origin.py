# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Recordings of several arms are refused together; a script is of the recorded program or not."""

from __future__ import annotations

import pytest

from ur_energy_model.consistency.contradiction import ContradictionError
from ur_energy_model.consistency.same_origin import another_program, check_one_arm
from ur_energy_model.telemetry.samples import RecordingInfo


def bags(*serials: str | None) -> list[tuple[str, RecordingInfo]]:
    return [(f"bag_{k}", RecordingInfo(serial=serial)) for k, serial in enumerate(serials)]


@pytest.mark.parametrize("serials", [(), (None,), ("1", "1"), ("1", None, "1"), (None, "1")])
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
