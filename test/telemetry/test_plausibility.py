# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Values that no arm can have, and recordings that measured nothing."""

import numpy as np
import pytest

from ur_energy_model.telemetry.plausibility import (
    OfflineSimulatorCheck,
    impossible_rows,
)
from ur_energy_model.telemetry.samples import Telemetry


def test_rows_and_the_first_value_are_named():
    columns = {"actual_q": np.zeros((10, 6)), "actual_robot_voltage": np.full(10, 48.0)}
    columns["actual_q"][7, 2] = 1e160
    columns["actual_robot_voltage"][4] = 900.0
    bad, first = impossible_rows(columns)
    assert np.flatnonzero(bad).tolist() == [4, 7]
    assert first is not None
    assert (first.row, first.field, first.index, first.value) == (
        4,
        "actual_robot_voltage",
        0,
        900,
    )


# The fingerprint of the manufacturer's offline simulator.


def found(parts=1, *, voltage=48.0, noise=0.0, voltage_noise=0.0):
    random = np.random.default_rng(1)
    target = random.normal(size=(400, 6))
    columns = {
        "target_current": target,
        "actual_current": 1.02 * target + noise * random.normal(size=(400, 6)),
    }
    if voltage is not None:
        columns["actual_robot_voltage"] = voltage + voltage_noise * random.normal(
            size=400
        )
    check = OfflineSimulatorCheck()
    for rows in np.array_split(np.arange(400), parts):
        each = {name: values[rows] for name, values in columns.items()}
        check.update(Telemetry(rows.astype(np.float64), each))
    return check.found


def test_proportional_currents_at_exactly_48_volts_are_found():
    assert found()
    assert found(7)
    assert found(voltage=None)  # without it, currents alone decide


@pytest.mark.parametrize(
    "real", [{"noise": 0.05}, {"voltage_noise": 0.05}, {"voltage": 47.0}]
)
def test_one_sign_alone_is_no_proof(real):
    assert not found(**real)
    assert not OfflineSimulatorCheck().found
