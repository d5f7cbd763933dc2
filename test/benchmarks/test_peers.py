# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The benchmark's own arithmetic, on recordings and figures whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from test.benchmarks.peers.figures import Coverage, EnergyError
from test.benchmarks.peers.methods import (
    POWERS,
    ridge,
    solve,
)
from test.identification.exact_arm import ExactArm
from ur_energy_model.identification.power_structures import PowerRows

ARM = ExactArm(
    torque_constant=ExactArm().robot.torque_constant.copy(),
    resistance_factor=1.3,
    power_noise=0.0,
)
"""With the robot file's torque constants, which base parameters take for true."""


def test_the_three_coefficients_of_power_are_recovered():
    arm = ExactArm(
        driver=0.0,
        standby=100.0,
        resistance_factor=1.3,
        torque_constant=ARM.torque_constant,
    )
    random = np.random.default_rng(1)
    time = np.arange(2000) / 100
    angle = 2 * np.pi * random.uniform(0.2, 1.0, 6) * time[:, None]
    qd = 0.3 * np.sin(angle)
    current = np.cos(1.7 * angle + random.uniform(0, 6, 6))
    rows = PowerRows(time, qd, current, arm.power(qd, current), np.full(2000, 7.0))
    columns = POWERS["three coefficients"](rows, ARM.robot)
    found = solve(columns, rows.power)
    assert found == pytest.approx([100.0, 1.3, 1.0])
    assert columns @ found == pytest.approx(rows.power)


def test_ridge_finds_coefficients_that_the_data_show_and_leaves_out_others() -> None:
    random = np.random.default_rng(3)
    columns = np.column_stack([np.ones(3000), random.standard_normal((3000, 2))])
    columns = np.column_stack(
        [columns, columns[:, 2] + 1e-6 * random.standard_normal(3000)]
    )
    values = columns @ np.array([30.0, 2.0, 1.0, 0.0]) + 0.1 * random.standard_normal(
        3000
    )
    found = ridge(columns, values)
    assert found[:2] == pytest.approx([30.0, 2.0], rel=0.01)
    assert found[2] + found[3] == pytest.approx(1.0, rel=0.01)
    assert abs(found[2] - found[3]) < 0.1


def test_motion_energy_does_not_count_an_error_of_standby():
    time = np.arange(0.0, 20.0, 0.01)
    still = time < 5.0
    measured = np.where(still, 30.0, 80.0)
    error = EnergyError.of(time, measured + 10.0, measured, still)
    assert error.motion == pytest.approx(0.0, abs=1e-9)
    assert error.supply == pytest.approx(100 * 10.0 / measured.mean(), rel=1e-2)
    assert EnergyError.of(time, np.where(still, 30.0, 85.0), measured, still).motion == (
        pytest.approx(10.0)
    )


NORMAL = np.random.default_rng(0).standard_normal(20_000)


@pytest.mark.parametrize(
    ("counted", "count", "share", "rms"),
    [
        ([(NORMAL, 1.0, False)], 20_000, pytest.approx(0.95, abs=0.01), pytest.approx(1, 0.02)),
        # Samples of one signal count as one interval.
        ([([0.0, 3.0], 1.0, True), (0.0, 1.0, False)], 2, 0.75, pytest.approx(np.sqrt(2.25))),
        # What was not stated does not count, and a deviation of zero claims to be exact.
        ([([1.0, np.nan], [np.nan, 1.0], False)], 0, pytest.approx(np.nan, nan_ok=True), None),
        ([([0.0, 0.1], [0.0, 0.0], False)], 2, 0.5, np.inf),
    ],
)  # fmt: skip
def test_intervals_are_counted(counted, count, share, rms):
    coverage = Coverage()
    for error, std, as_one in counted:
        coverage.add(error, std, as_one=as_one)
    assert coverage.count == pytest.approx(count)
    assert coverage.share == share
    assert np.isnan(coverage.rms) if rms is None else coverage.rms == rms
