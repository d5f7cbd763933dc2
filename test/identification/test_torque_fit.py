# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The fit of torques to any columns, against numpy and against known truth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from test.identification.conftest import filtered_motions, made_up_recording
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.base_parameter_fit import BaseParameterFit
from ur_energy_model.identification.base_parameters import (
    FullRegressor,
    Regrouping,
    regroup,
)
from ur_energy_model.identification.filtered_motion import ParallelFilter
from ur_energy_model.identification.torque_fit import TorqueRows, fit_torque, torque_rows
from ur_energy_model.model.friction import LAWS
from ur_energy_model.model.regressor import friction_regressor, motor_inertia_regressor
from ur_energy_model.model.robots import load_robot

ARM = load_robot("ur5e")
UPRIGHT = np.array([0.0, 0.0, -9.82])
LINKS = FullRegressor(ARM, UPRIGHT, friction=False)
REGROUPING = regroup(LINKS)
PER_AMPERE = 0.1 * ARM.gear_ratio


def rows_of(
    law: str | None, regrouping: Regrouping = REGROUPING, **options: Any
) -> list[TorqueRows]:
    """Rows of a recording with the base columns of links and motors, and of a friction law."""
    made = made_up_recording(ARM, coulomb=4.0, viscous=3.0, **options)
    rows = []
    for motion in filtered_motions([made], ARM.dof, 20.0, 0.01):
        columns = regrouping.of(LINKS(motion.q, motion.qd, motion.qdd))
        if law is not None:
            columns = columns.beside(friction_regressor(LAWS[law], motion.qd))
        torque = motion.current * PER_AMPERE
        rows.append(torque_rows(motion, columns, torque, ParallelFilter(5.0)))
    return rows


def test_values_are_those_of_numpy() -> None:
    rows = rows_of("coulomb_viscous", noise=1.0)
    found = fit_torque(rows)
    stacked = np.concatenate([each.regressor.values[each.used] for each in rows])
    torque = np.concatenate([each.torque[each.used] for each in rows])
    solution, *_ = np.linalg.lstsq(stacked, torque, rcond=None)
    np.testing.assert_allclose(found.ordinary, solution, atol=1e-6)
    assert found.condition_number == pytest.approx(np.linalg.cond(stacked), rel=1e-5)
    assert found.samples == len(torque)
    residual = torque - stacked @ found.values
    joint = np.concatenate([np.nonzero(each.used)[1] for each in rows])
    expected = [np.sqrt(np.mean(residual[joint == j] ** 2)) for j in range(ARM.dof)]
    np.testing.assert_allclose(found.torque_rms, expected, rtol=1e-6)


def test_own_columns_give_the_base_parameters_of_the_command() -> None:
    """The command has one regressor of links, motors and friction, in another order."""
    fit = BaseParameterFit(
        ARM, UPRIGHT, torque_source="current", torque_constant=np.full(ARM.dof, 0.1)
    )
    made = made_up_recording(ARM, coulomb=4.0, viscous=3.0, noise=1.0)
    for motion in filtered_motions([made], ARM.dof, 20.0, 0.01):
        fit.accumulate(motion, ParallelFilter(5.0))
    of_command = fit.solve()
    of_links = [name for name in of_command.columns if not name.startswith("f")]
    regrouping = regroup(LINKS, of_links)
    own = fit_torque(rows_of("coulomb_viscous", regrouping, noise=1.0))
    by_name = dict(zip(own.columns, own.values.tolist(), strict=True))
    for joint in range(1, ARM.dof + 1):
        by_name[f"fc_{joint}"] = by_name[f"coulomb_{joint}"]
        by_name[f"fv_{joint}"] = by_name[f"viscous_{joint}"]
    expected = [by_name[name] for name in of_command.columns]
    np.testing.assert_allclose(of_command.values, expected, atol=1e-6)


def test_covariance_is_that_of_independent_noise() -> None:
    """Motor inertias and friction alone, from noise of 2 N m on every torque."""
    rows = []
    for motion in filtered_motions(
        [made_up_recording(ARM, coulomb=4.0, viscous=3.0)], ARM.dof, 20.0, 0.01
    ):
        columns = friction_regressor(LAWS["coulomb_viscous"], motion.qd)
        columns = columns.beside(motor_inertia_regressor(motion.qdd))
        random = np.random.default_rng(5)
        noise = 2.0 * random.standard_normal(motion.qd.shape)
        truth = columns.values @ np.ones(len(columns.columns)) + noise
        rows.append(torque_rows(motion, columns, truth))
    found = fit_torque(rows)
    stacked = np.concatenate([each.regressor.values[each.used] for each in rows])
    expected = 2.0 * np.sqrt(np.diag(np.linalg.inv(stacked.T @ stacked)))
    np.testing.assert_allclose(found.std, expected, rtol=0.3)
    assert np.mean(np.abs(found.values - 1.0) < 1.96 * found.std) > 0.8


def test_what_motion_does_not_show_has_no_interval() -> None:
    """Columns of all parameters of the arm, and of a temperature that was not recorded."""
    made = made_up_recording(ARM, coulomb=4.0, viscous=3.0, noise=1.0)
    every = []
    for motion in filtered_motions([made], ARM.dof, 20.0, 0.01):
        law = friction_regressor(LAWS["temperature_linear"], motion.qd)
        columns = LINKS(motion.q, motion.qd, motion.qdd).beside(law)
        every.append(torque_rows(motion, columns, motion.current * PER_AMPERE))
    found = fit_torque(every)
    shown = dict(zip(found.columns, found.determined.tolist(), strict=True))
    assert not any(shown[f"viscous_temperature_{j}"] for j in range(1, 7))
    assert all(shown[f"coulomb_{j}"] for j in range(1, 7))
    assert not shown["m_1"]
    assert not shown["Iyy_2"]
    assert shown["my_2"]
    alone = np.count_nonzero(REGROUPING.combination, axis=1) == 1
    expected = {LINKS.names[place] for place in REGROUPING.base[alone]}
    assert {name for name, seen in shown.items() if seen and name in LINKS.names} == (
        expected
    )
    np.testing.assert_array_equal(np.isfinite(found.std), found.determined)
    base = fit_torque(rows_of("coulomb_viscous", noise=1.0))
    assert base.determined.all()


def test_too_little_motion_is_refused() -> None:
    with pytest.raises(IdentificationError, match="no motion"):
        fit_torque([])
    with pytest.raises(IdentificationError, match="cannot give"):
        fit_torque(rows_of("coulomb_viscous", still=(0, 1, 2, 3, 4, 5)))
    with pytest.raises(ValueError, match="same columns"):
        fit_torque([*rows_of(None), *rows_of("coulomb_viscous")])
