"""Base columns that a paper chose, and regressors without friction or motor inertia."""

from __future__ import annotations

import numpy as np
import pytest

from ur_energy_model.identification.base_parameters import FullRegressor, regroup
from ur_energy_model.model.robots import load_robot
from ur_energy_model.papers.protocol import paper

ROBOT = load_robot("qin2024")
PUBLISHED = paper("s4")
REGRESSOR = FullRegressor(ROBOT, np.array([0.0, 0.0, -9.8]), friction=False, motor_inertia=False)


def test_the_base_parameters_of_the_paper_have_its_theoretical_values() -> None:
    grouping = regroup(REGRESSOR, PUBLISHED["base_names"])
    assert grouping.rank == 36
    values = grouping.combination @ REGRESSOR.nominal()
    names = [grouping.names[column] for column in grouping.base]
    theirs = dict(zip(PUBLISHED["base_names"], PUBLISHED["theoretical"], strict=True))
    assert values == pytest.approx([theirs[name] for name in names], abs=0.01)


def test_chosen_and_own_base_columns_give_the_same_torque() -> None:
    random = np.random.default_rng(1)
    q, qd, qdd = random.uniform(-1, 1, (3, 20, ROBOT.dof))
    full = REGRESSOR(q, qd, qdd)
    for names in (None, PUBLISHED["base_names"]):
        grouping = regroup(REGRESSOR, names)
        torque = full[:, :, grouping.base] @ (grouping.combination @ REGRESSOR.nominal())
        np.testing.assert_allclose(torque, full @ REGRESSOR.nominal(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("change", ["one less", "a dependent one"])
def test_columns_that_are_no_basis_are_refused(change: str) -> None:
    names = list(PUBLISHED["base_names"])
    names[-1:] = [] if change == "one less" else ["mz_6"]
    with pytest.raises(ValueError, match="independent"):
        regroup(REGRESSOR, names)
