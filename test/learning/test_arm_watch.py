"""Needs follow the model in use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from test.learning.made_up_motion import N, generic
from ur_energy_model.learning.changes import ChangeDetector
from ur_energy_model.learning.history import NEEDS
from ur_energy_model.learning.needs import Coverage, needs
from ur_energy_model.model.robots import load_robot


def test_the_needs_are_those_of_the_model_in_use() -> None:
    first = generic()
    joints = tuple(
        replace(joint, current_covariance=4.0 * joint.current_covariance) for joint in first.joints
    )
    second = replace(
        first, joints=joints, setup=replace(first.setup, gravity=np.array([0.0, -9.82, 0.0]))
    )
    watch = ChangeDetector(load_robot(first.robot), first)
    assert watch.needs() == needs(first, Coverage(N))
    model = watch.use_model(second)
    assert watch.needs() == needs(second, Coverage(N)) != needs(first, Coverage(N))
    assert model.provenance[NEEDS] == [need.as_json() for need in watch.needs()]
