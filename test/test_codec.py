# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Dataclasses to JSON and back: what comes out is what went in, and damage is named."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from ur_energy_model.codec import built, plain
from ur_energy_model.typing import Array, Mask


@dataclass(frozen=True)
class Joint:
    ratio: float
    inertia: Array
    moving: Mask
    limits: tuple[float, float] | None = None


@dataclass(frozen=True)
class Arm:
    name: str
    joints: tuple[Joint, ...]
    file: Path = Path("model.yaml")
    notes: dict[str, list[int]] = field(default_factory=dict)


numbers = some.floats(allow_nan=False, allow_infinity=False)


@given(
    some.text(),
    some.lists(some.tuples(numbers, some.lists(numbers, max_size=5)), max_size=3),
    some.booleans(),
)
def test_an_object_comes_back_whole(
    name: str, rows: list[tuple[float, list[float]]], arrays: bool
) -> None:
    joints = tuple(
        Joint(ratio, np.array(values), np.array(values) > 0.0, (ratio, 1.0))
        for ratio, values in rows
    )
    content = plain(Arm(name, joints, notes={"a": [1, 2]}), arrays=arrays)
    arm = built(Arm, content if arrays else json.loads(json.dumps(content)))
    assert (arm.name, arm.notes, arm.file) == (name, {"a": [1, 2]}, Path("model.yaml"))
    for before, after in zip(joints, arm.joints, strict=True):
        assert (after.ratio, after.limits) == (before.ratio, before.limits)
        assert (after.inertia.dtype, after.moving.dtype) == (np.float64, np.bool_)
        np.testing.assert_array_equal(after.inertia, before.inertia)
        np.testing.assert_array_equal(after.moving, before.moving)


def test_numbers_that_json_lacks_are_none_and_nan_again() -> None:
    joint = Joint(1.0, np.array([np.nan, np.inf, 2.0]), np.array([True]))
    content = plain(joint)
    assert content["inertia"] == [None, None, 2.0]
    np.testing.assert_array_equal(built(Joint, content).inertia, [np.nan, np.nan, 2.0])


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"name": 3}, "name"),
        (
            {"joints": [{"ratio": 1.0, "inertia": ["x"], "moving": []}]},
            "joints[0].inertia",
        ),
        ({"joints": [{"ratio": 1.0}]}, "joints[0]"),
        ({"notes": {"a": [1.5]}}, "notes.a[0]"),
    ],
)
def test_damage_is_refused_with_its_place(change: dict[str, object], place: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(place)}: "):
        built(Arm, {"name": "arm", "joints": []} | change)


def test_entries_of_other_versions_are_left() -> None:
    assert built(Arm, {"name": "arm", "joints": [], "newer": 1}) == Arm("arm", ())
