# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Windows of samples, and what a minute of work shows of friction, payload, tilt and standby."""

from __future__ import annotations

import math

import numpy as np

from test.identification.made_up_motion import generic, motion, resting
from ur_energy_model.identification.minute import Minute, MinuteMeter, StandbyMinutes
from ur_energy_model.model.setup import Payload

FRICTION = np.array([1.0, 1.15, 0.9, 1.3, 1.0, 0.8])


def minutes(*parts, temperature: float = 35.0) -> list[Minute]:
    meter = MinuteMeter(generic())
    dynamics = generic().dynamics()
    found = [minute for part in parts for minute in meter.observe(part, dynamics)]
    return found + meter.finish()


def test_friction_of_each_joint_with_an_honest_interval():
    found = minutes(motion(friction=FRICTION))
    assert [minute.time for minute in found] == [120.0, 180.0]
    for minute in found:
        error = minute.level - np.log(FRICTION)
        std = np.sqrt(np.diag(minute.covariance))
        assert np.all(np.abs(error) < 4.0 * std + 0.01)
        assert np.all(std < 0.05)
        np.testing.assert_allclose(minute.temperature, 35.0)


def test_a_payload_is_not_taken_for_friction():
    carried = Payload(1.0, np.array([0.0, 0.0, 0.08]))
    (empty, *_), (loaded, *_) = minutes(motion()), minutes(motion(payload=carried))
    assert abs(loaded.setup[0] - empty.setup[0] - 1.0) < 0.1
    assert np.abs(loaded.level - empty.level).max() < 0.05
    assert np.abs(loaded.setup[1:] - empty.setup[1:]).max() < math.radians(0.5)


def test_standby_minutes():
    found = StandbyMinutes(generic()).observe(resting(31.0))
    assert [time for time, _, _ in found] == [120.0, 180.0]
    for _, power, std in found:
        assert abs(power - 31.0) < 0.1
        assert 0.1 < std < 1.0
