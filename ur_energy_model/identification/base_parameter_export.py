# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Base parameters, their regressor and torques as files: numpy, MATLAB, CSV, and a URDF.

The files have the rows of the fit, tau = W p, with names and units of all columns: p_ordinary
is the least-squares solution of W and tau. Base parameters do not determine the standard
parameters of the links. The files and the URDF have the physically consistent ones nearest to
the robot file that predict the identified torques best (physical_consistency.py).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.files import new_file
from ur_energy_model.identification.base_parameter_fit import (
    BagBaseParameters,
    BaseParameters,
)
from ur_energy_model.identification.base_parameters import DRIVE
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.regressor import INERTIAL, MOTOR_INERTIA
from ur_energy_model.model.setup import Setup
from ur_energy_model.model.urdf_export import UrdfBodies, urdf
from ur_energy_model.typing import Array

SUFFIXES = (".npz", ".mat", ".csv")
"""Formats of `write_regression`, by the suffix of the file."""
_EXACT = "%.17g"  # every number is read as it was written

Content = Mapping[str, "Array | tuple[str, ...] | str"]


def regression_files(path: Path) -> tuple[Path, ...]:
    """The files that `write_regression` writes: one, or three for CSV.

    Raises:
        InputError: the suffix is none of `SUFFIXES`.
    """
    if path.suffix not in SUFFIXES:
        problem = f"{path} is neither of numpy nor of MATLAB nor CSV"
        raise InputError("--export", problem, f"end it in {', '.join(SUFFIXES)}")
    if path.suffix != ".csv":
        return (path,)
    names = (f"{path.stem}_parameters.csv", f"{path.stem}_standard_parameters.csv")
    return (path, *map(path.with_name, names))


def regression_content(found: BagBaseParameters) -> Content:
    """What is exported, by name; SI units, torques joint side.

    Args:
        found: base parameters with their rows.

    Returns:
        "W" [rows, p] and "tau" [rows], N m: rows of the fit, with "time" [rows], s,
        controller clock, and "joint" [rows], counted from 1. "p", "p_std", "p_covariance"
        (least squares weighted by the noise of each joint) and "p_ordinary", with
        "columns", "units" and "expressions". "standard", the physically consistent standard
        parameters, with "standard_columns" and "standard_units"; "combination" @ "standard"
        is near p. "robot", "joint_names", "gravity" [3], m/s^2, and "torque_from".
    """
    parameters = found.parameters
    full = parameters.regressor.full
    dof = full.robot.dof
    blocks: list[Array] = []
    torques: list[Array] = []
    times: list[Array] = []
    joints: list[Array] = []
    for rows in found.rows:
        blocks.append(np.asarray(rows.regressor.values[rows.used]))
        torques.append(rows.torque[rows.used])
        times.append(np.repeat(rows.time, dof)[rows.used.ravel()])
        joints.append(np.asarray(1.0 + np.nonzero(rows.used)[1]))
    return {
        "W": np.concatenate(blocks),
        "tau": np.concatenate(torques),
        "time": np.concatenate(times),
        "joint": np.concatenate(joints),
        "p": parameters.values,
        "p_std": parameters.std,
        "p_covariance": parameters.covariance,
        "p_ordinary": parameters.ordinary,
        "columns": parameters.columns,
        "units": parameters.units,
        "expressions": parameters.regrouping.expressions,
        "standard": parameters.consistent,
        "standard_columns": full.names,
        "standard_units": full.units,
        "combination": parameters.regrouping.combination,
        "robot": full.robot.name,
        "joint_names": full.robot.joint_names,
        "gravity": full.gravity,
        "torque_from": parameters.torque_source,
    }


def write_regression(found: BagBaseParameters, path: str | Path) -> tuple[Path, ...]:
    """Write regressor, torques and parameters; existing files are replaced.

    Args:
        found: base parameters with their rows.
        path: file that ends in one of `SUFFIXES`; a CSV file has W and tau, and two further
            files beside it the parameters. Its folder is created if necessary.

    Returns:
        The files.

    Raises:
        InputError: the suffix is none of `SUFFIXES`, or the rows were not kept.
        OSError: a file cannot be written.
    """
    path = Path(path)
    files = regression_files(path)
    if not found.rows:
        remedy = "identify them with keep_rows=True"
        raise InputError(path, "these base parameters have no rows", remedy)
    content = regression_content(found)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".csv":
        rows, base, standard = files
        with new_file(rows) as file:
            _write_rows(file, content)
        with new_file(base) as file:
            of_base = ("columns", "units", "p", "p_std", "p_ordinary")
            _write_table(file, content, of_base, behind=("expressions",))
        with new_file(standard) as file:
            of_links = ("standard_columns", "standard_units", "standard")
            _write_table(file, content, of_links)
        return files
    with new_file(path, "wb") as file:
        if path.suffix == ".npz":
            arrays: dict[str, Any] = {k: np.asarray(v) for k, v in content.items()}
            np.savez(file, **arrays)
        else:
            _write_matlab(file, content)
    return files


def _write_matlab(file: IO[bytes], content: Content) -> None:
    """Names as cell arrays, vectors as columns."""
    from scipy.io import savemat  # slow to import

    cells = {}
    for name, value in content.items():
        is_list = isinstance(value, tuple)
        cells[name] = np.array(value, dtype=object) if is_list else value
    # Its types lack files that are open.
    savemat(file, cells, oned_as="column", do_compression=True)  # type: ignore[arg-type]


def _write_rows(file: IO[str], content: Content) -> None:
    """W and tau with time and joint, one torque a line; units are in the heading."""
    columns = zip(content["columns"], content["units"], strict=True)
    names = [f"{name} [{unit}]" for name, unit in columns]
    heading = ",".join(["time [s]", "joint", "tau [N m]", *names])
    fields = [content[name] for name in ("time", "joint", "tau", "W")]
    formats = [_EXACT, "%d", _EXACT, *[_EXACT] * len(names)]
    np.savetxt(
        file, np.column_stack(fields), formats, delimiter=",", header=heading, comments=""
    )


def _write_table(
    file: IO[str],
    content: Content,
    names: tuple[str, ...],
    behind: tuple[str, ...] = (),
) -> None:
    """A line a parameter, with its name, its unit and its values.

    Args:
        file: file to write.
        content: what is exported.
        names: names of the columns in `content`: parameter, unit, and values.
        behind: further columns of text.
    """
    writer = csv.writer(file, lineterminator="\n")
    name, unit, *values = names
    writer.writerow(["parameter", "unit", *values, *behind])
    of_text = [content[name], content[unit]]
    of_numbers = [
        map(float.__repr__, np.asarray(content[each]).tolist()) for each in values
    ]
    further = [content[each] for each in behind]
    writer.writerows(zip(*of_text, *of_numbers, *further, strict=True))


def consistent_urdf(parameters: BaseParameters, origin: str = "") -> str:
    """URDF of an arm with the physically consistent parameters of a fit.

    The last link includes the payload of the recordings. Friction is in `<dynamics>`, joint
    side; the inertias of motors and reducers, for which URDF has no place, are comments.

    Args:
        parameters: identified base parameters.
        origin: origin of the values, such as names of bags, for a comment.

    Raises:
        InputError: a body is physically impossible.
    """
    full = parameters.regressor.full
    robot = full.robot
    by_kind = parameters.consistent.reshape(robot.dof, -1).T
    kinds = dict(zip((*INERTIAL, *full.drive), by_kind, strict=True))
    inertial = by_kind[: len(INERTIAL)].T
    coulomb, viscous, _ = DRIVE
    dynamics = ArmDynamics(robot, Setup(gravity=full.gravity))
    down = ", ".join(f"{value:.6g}" for value in full.gravity)
    words = f"identified with gravity ({down}) m/s^2 in the axes of the link base"
    bodies = UrdfBodies(
        inertial=dynamics.in_joint_frames(inertial.ravel()),
        viscous=kinds.get(viscous),
        coulomb=kinds.get(coulomb),
        motor_inertia=kinds.get(MOTOR_INERTIA),
        origin=f"{origin}; {words}" if origin else words,
    )
    return urdf(robot, bodies=bodies)
