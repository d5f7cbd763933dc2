"""Minutes of an arm from the rows of the store."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from test.plant.surrogate_health import CONSTANT, REFERENCE, health_table, minutes_of
from ur_energy_model.plant.plant_health import COLUMNS, arm_minutes


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return health_table(7400, 10).select(list(COLUMNS))


def test_levels_are_those_of_the_rows(table):
    found = minutes_of(table)
    first = table.slice(0, 1).to_pylist()[0]
    np.testing.assert_allclose(
        np.exp(found.friction.value[0]), np.array(first["joint_friction"]) * REFERENCE
    )
    np.testing.assert_allclose(
        np.exp(found.torque_constant.value[0]), first["joint_torque_constant"]
    )
    np.testing.assert_allclose(
        found.torque_constant.std[0], 0.02 * CONSTANT / np.exp(found.torque_constant.value[0])
    )
    assert found.standby.value.shape == (table.num_rows, 1)
    assert found.robot == "ur5e"


def test_order_and_repeated_minutes_do_not_matter(table):
    mixed = pa.concat_tables([table.slice(40), table.slice(0, 60)])
    first, second = minutes_of(table), minutes_of(mixed)
    np.testing.assert_array_equal(first.friction.time, second.friction.time)
    np.testing.assert_array_equal(first.friction.value, second.friction.value)


def test_values_that_no_arm_has_are_missing(table):
    rows = table.to_pylist()
    rows[3]["joint_friction"][2] = -1.0
    rows[4]["joint_temperature"] = [float("nan")] * 6
    rows[5]["standby"] = None
    found = minutes_of(pa.Table.from_pylist(rows, schema=table.schema))
    assert np.isnan(found.friction.value[3]).tolist() == [False, False, True, False, False, False]
    assert np.isnan(found.standby.temperature[4, 0])
    assert np.isnan(found.standby.value[5, 0])


def test_no_rows(table):
    assert arm_minutes(table.slice(0, 0)) is None
