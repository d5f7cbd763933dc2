# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Exports of base parameters, loaded by numpy, scipy, csv and pinocchio."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from scipy.io import loadmat

from test.identification.conftest import made_up_recording
from test.identification.exact_arm import write_bag
from ur_energy_model.errors import IdentificationError, InputError
from ur_energy_model.identification import base_parameter_fit
from ur_energy_model.identification.base_parameter_export import (
    consistent_urdf,
    regression_files,
    write_regression,
)
from ur_energy_model.identification.base_parameter_fit import (
    BagBaseParameters,
    BaseParameters,
    identify_base_parameters,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import load_robot
from ur_energy_model.model.setup import Setup

TILTED = np.array([0.0, 6.94, -6.94])


def identified(
    folder: Path, name: str = "ur5e", rate: float = 100.0
) -> BagBaseParameters:
    """Base parameters of a made-up recording of a tilted arm, with its rows."""
    robot = load_robot(name)
    constant = np.full(robot.dof, 0.1)
    made = made_up_recording(
        robot,
        setup=Setup(TILTED),
        reflected_inertia=np.full(robot.dof, 0.3),
        coulomb=4.0,
        viscous=3.0,
        noise=1.0,
        seconds=20.0,
        rate=rate,
    )
    bag = write_bag(folder / "bag", made)
    return identify_base_parameters(
        [bag], robot, torque_constant=constant, keep_rows=True
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> BagBaseParameters:
    return identified(tmp_path_factory.mktemp("export"))


def check_numbers(content: dict[str, np.ndarray], found: BagBaseParameters) -> None:
    """What a reader of numpy or MATLAB finds gives the parameters again."""
    regressor, torque = content["W"], content["tau"].ravel()
    solution, *_ = np.linalg.lstsq(regressor, torque, rcond=None)
    np.testing.assert_allclose(content["p_ordinary"].ravel(), solution, atol=1e-6)
    np.testing.assert_array_equal(content["p"].ravel(), found.parameters.values)
    joint = content["joint"].ravel().astype(int) - 1
    residual = torque - regressor @ content["p"].ravel()
    for j, expected in enumerate(found.parameters.torque_rms):
        assert np.sqrt(np.mean(residual[joint == j] ** 2)) == pytest.approx(expected)
    near = content["combination"] @ content["standard"].ravel()
    change = regressor @ (near - content["p"].ravel())
    for j, expected in enumerate(found.parameters.consistent_difference):
        rms = np.sqrt(np.mean(change[joint == j] ** 2))
        assert rms == pytest.approx(expected, rel=1e-5)
    assert (np.diff(content["time"].ravel()) >= 0).all()
    np.testing.assert_allclose(
        np.sqrt(np.diag(content["p_covariance"])), content["p_std"].ravel()
    )


@pytest.mark.parametrize("rate", [5.0, 500.0])
def test_rows_of_slow_and_fast_recordings(rate: float, tmp_path: Path) -> None:
    (path,) = write_regression(
        identified(tmp_path, rate=rate), tmp_path / "new" / "a.npz"
    )
    with np.load(path) as file:
        solution, *_ = np.linalg.lstsq(file["W"], file["tau"], rcond=None)
        np.testing.assert_allclose(file["p_ordinary"], solution, atol=1e-6)


def test_numpy_reads_the_export(found: BagBaseParameters, tmp_path: Path) -> None:
    (path,) = write_regression(found, tmp_path / "fit.npz")
    with np.load(path, allow_pickle=False) as file:
        content = dict(file)
    check_numbers(content, found)
    assert tuple(content["columns"]) == found.parameters.columns
    assert dict(zip(content["columns"], content["units"], strict=True))["fv_2"] == (
        "N m s/rad"
    )
    assert content["standard_columns"].shape == content["standard"].shape
    assert str(content["robot"]) == "ur5e"


def test_matlab_reads_the_export(found: BagBaseParameters, tmp_path: Path) -> None:
    (path,) = write_regression(found, tmp_path / "fit.mat")
    content = loadmat(path)
    assert content["tau"].shape == (len(content["W"]), 1)
    check_numbers(content, found)
    cells = [str(cell[0]) for cell in content["columns"].ravel()]
    assert tuple(cells) == found.parameters.columns
    assert content["expressions"].shape == content["p"].shape
    assert content["torque_from"].item() == "current"


def test_tables_are_read(found: BagBaseParameters, tmp_path: Path) -> None:
    rows, base, standard = write_regression(found, tmp_path / "fit.csv")
    with rows.open(newline="") as file:
        heading, *lines = csv.reader(file)
    assert heading[:4] == ["time [s]", "joint", "tau [N m]", "mx_1 [kg m]"]
    values = np.array(lines, dtype=float)
    with base.open(newline="") as file:
        parameters = list(csv.DictReader(file))
    assert [f"{row['parameter']} [{row['unit']}]" for row in parameters] == heading[3:]
    ordinary = np.array([float(row["p_ordinary"]) for row in parameters])
    solution, *_ = np.linalg.lstsq(values[:, 3:], values[:, 2], rcond=None)
    np.testing.assert_allclose(ordinary, solution, atol=1e-6)
    weighted = [float(row["p"]) for row in parameters]
    assert weighted == found.parameters.values.tolist()
    with standard.open(newline="") as file:
        full = list(csv.DictReader(file))
    assert len(full) == 78
    assert [
        float(row["standard"]) for row in full
    ] == found.parameters.consistent.tolist()
    assert full[0]["unit"] == "kg"


@pytest.mark.parametrize("name", ["ur5e", "gen3"])
def test_pinocchio_computes_the_torques_of_the_parameters(
    name: str, tmp_path: Path
) -> None:
    """Links, motors and friction, in a tilted mounting; the package's own reader agrees."""
    found = identified(tmp_path, name)
    parameters = found.parameters
    full = parameters.regressor.full
    n = full.robot.dof
    q, qd, qdd = np.random.default_rng(3).uniform(-2, 2, (3, 20, n))
    expected = full(q, qd, qdd).values @ parameters.consistent
    path = tmp_path / "arm.urdf"
    path.write_text(consistent_urdf(parameters, "a -- b\x01"))
    model = pin.buildModelFromUrdf(str(path))
    half_turn = np.diag([-1.0, -1.0, 1.0])
    model.gravity.linear = half_turn @ full.gravity
    by_joint = parameters.consistent.reshape(n, -1)
    model.armature = by_joint[:, 12]
    data = model.createData()
    states = zip(q, qd, qdd, strict=True)
    torque = np.array([pin.rnea(model, data, *state) for state in states])
    friction = (
        model.friction if hasattr(model, "friction") else model.upperDryFrictionLimit
    )
    torque += model.damping * qd + friction * np.tanh(qd / 1e-3)
    np.testing.assert_allclose(torque, expected, atol=1e-9)
    for inertia in list(model.inertias)[1:]:
        assert np.linalg.eigvalsh(inertia.toPseudoInertia().toMatrix())[0] > 0
    own = load_robot(path)
    links = ArmDynamics(own, Setup(half_turn @ full.gravity)).inverse_dynamics(q, qd, qdd)
    drives = expected - (by_joint[:, 10] * np.tanh(qd / 1e-3) + by_joint[:, 11] * qd)
    np.testing.assert_allclose(links + by_joint[:, 12] * qdd, drives, atol=1e-9)


def test_what_cannot_be_exported_is_refused(
    found: BagBaseParameters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"end it in \.npz, \.mat, \.csv"):
        regression_files(tmp_path / "fit.xlsx")
    with pytest.raises(InputError, match="keep_rows"):
        write_regression(replace(found, rows=()), tmp_path / "fit.npz")
    impossible = found.parameters.consistent.copy()
    impossible[0] = -1.0
    parameters: BaseParameters = replace(found.parameters, consistent=impossible)
    with pytest.raises(InputError, match="no body has"):
        consistent_urdf(parameters)
    monkeypatch.setattr(base_parameter_fit, "_MOST_KEPT", 1000)
    with pytest.raises(IdentificationError, match="fewer or shorter bags"):
        identified(tmp_path)
