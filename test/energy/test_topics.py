# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The topic energy against energies known in closed form, and beside the other topics."""

from __future__ import annotations

import numpy as np
import pytest

from test.energy.known_arm import ROBOT, known_model, motion
from ur_energy_model.energy.live import LiveEstimator
from ur_energy_model.energy.topics import (
    ARM_NAMES,
    energy_names,
    energy_values,
    number_topics,
    numbers,
    summary_statuses,
)

JOINTS = tuple(f"left_{joint}" for joint in ROBOT.joint_names)


def test_values_are_those_of_the_number_topics_and_efforts_the_uncertainties() -> None:
    estimator = LiveEstimator(known_model(), ROBOT)
    estimator.update(motion(2.0))
    snapshot = estimator.snapshot()
    assert snapshot is not None
    values = dict(zip(energy_names(JOINTS), energy_values([snapshot])[0].T, strict=True))
    found = numbers(snapshot, JOINTS)
    assert set(found) == {topic.name for topic in number_topics(JOINTS)}
    for part in (*JOINTS, *ARM_NAMES):
        assert values[part][0] == found[f"energy/{part}/energy"]
        assert values[part][1] == found[f"energy/{part}/power"]
    parts = (*JOINTS, "standby", "drivers", "regeneration", "unexplained")
    for row in (0, 1):
        whole = sum(values[part][row] for part in parts)
        assert whole == pytest.approx(values["total"][row], rel=1e-12)
        assert values["total"][row] == values["bus"][row]
    joints, total = snapshot.channels.deviations(snapshot.since_reset.net)
    assert [values[joint][2] for joint in JOINTS] == joints.tolist()
    assert values["total"][2] == total
    assert np.isnan(values["bus"][2])
    assert (snapshot.total_source.name, snapshot.total_source.share) == ("measured", 1.0)
    energy, std = snapshot.channels.at_wall(snapshot.since_reset.net)
    np.testing.assert_allclose(values["wall"][[0, 2]], [energy, std])
    (wall,) = (
        each for each in summary_statuses(snapshot, JOINTS, "m") if "wall" in each.name
    )
    assert wall.message.startswith("not measured")
