# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Null models: they find the constants of an arm that obeys them; METRICS state their errors."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from test.identification.conftest import made_up_recording
from test.identification.exact_arm import write_bag
from test.truth import first_fast
from ur_energy_model.identification.evaluation import evaluate
from ur_energy_model.identification.null_models import (
    KEY,
    CurrentNull,
    fit_power_null,
    supply_columns,
)
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.identification.recording import read_recording
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import load_robot

# joint side, N m and N m s/rad
COULOMB = 2.0
VISCOUS = 3.0


def bag(folder: Path, name: str, seed: int, friction: float) -> Path:
    recorded = made_up_recording(
        load_robot("ur5e"),
        coulomb=friction * COULOMB,
        viscous=friction * VISCOUS,
        noise=0.3,
        seed=seed,
        targets=False,
    )
    return write_bag(folder / name, recorded)


def test_the_null_model_of_currents_is_fitted_kept_and_anchored(tmp_path: Path) -> None:
    model = identify([bag(tmp_path, "fit", 3, 1.0)], "ur5e").model
    null = CurrentNull.of_model(model)
    per_ampere = 0.1 * load_robot("ur5e").gear_ratio
    assert null is not None
    coefficients = null.coefficients * per_ampere[:, None]
    np.testing.assert_allclose(coefficients[:, 0], 1.0, atol=0.05)
    at_half = coefficients[:, 2:5] @ np.array([0.5, 1.0, np.sqrt(0.5)])
    np.testing.assert_allclose(at_half, COULOMB + 0.5 * VISCOUS, rtol=0.15)
    save_model(model, tmp_path / "model.yaml")
    model = load_model(tmp_path / "model.yaml")
    other = bag(tmp_path, "other", 4, 1.2)
    found = [evaluate(model, other, anchor=anchor).current for anchor in (False, True)]
    unanchored, anchored = (
        np.array([row["null_rms"] for row in rows or ()]) for rows in found
    )
    noise = 0.3 / per_ampere
    # most of the noise is above the filter's cut-off
    assert (anchored < 0.6 * noise).all()
    assert (unanchored > 1.5 * anchored).all()
    without = replace(
        model, provenance={**model.provenance, KEY: {"current": [[1.0], "x"]}}
    )
    rows = evaluate(without, other).current
    assert rows is not None
    assert "null_rms" not in rows[0]


@pytest.mark.parametrize("targets", first_fast([False, True]))
def test_without_target_moment_there_is_no_null_model(
    tmp_path: Path, targets: bool
) -> None:
    recorded = made_up_recording(
        load_robot("ur5e"), targets=targets, coulomb=2.0, noise=0.3, seconds=15.0
    )
    columns = {name: v for name, v in recorded.columns.items() if name != "target_moment"}
    path = write_bag(tmp_path / "without", replace(recorded, columns=columns))
    assert CurrentNull.of_model(identify([path], "ur5e").model) is None


@pytest.mark.truth
def test_three_coefficients_of_power_are_found_and_anchored(tmp_path: Path) -> None:
    """Bus power of known coefficients; another session has another constant."""
    robot = load_robot("ur5e")
    made = made_up_recording(robot, seed=3)
    columns = supply_columns(robot, made["actual_qd"], made["actual_current"])
    volts = np.full(len(made), 48.0)

    def powered(name: str, constant: float) -> Path:
        watts = columns @ [constant, 1.3, 0.9]
        both = {"actual_robot_voltage": volts, "actual_robot_current": watts / volts}
        return write_bag(tmp_path / name, replace(made, columns={**made.columns, **both}))

    first = powered("first", 200.0)
    other = powered("other", 195.0)
    with closing(read_recording(first, robot)) as recording:
        found = fit_power_null([recording], robot)
    assert found is not None
    np.testing.assert_allclose(found, [200.0, 1.3, 0.9], rtol=1e-6)
    model = identify([first], robot).model
    power = evaluate(model, other, anchor=False).power
    assert power is not None
    assert power["null_rmse"] == pytest.approx(5.0)
