# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of an arm besides `identify`: `ur_energy payload` and `base-parameters`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.cli.arguments import model_needed
from ur_energy_model.cli.command_options import BaseParametersOptions, PayloadOptions
from ur_energy_model.cli.output import (
    note,
    picked,
    print_json,
    print_line,
    print_table,
    progress,
    warn,
)
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import InputError, WrongRobotError
from ur_energy_model.files import check_output, write_text
from ur_energy_model.identification.base_parameter_export import (
    consistent_urdf,
    regression_files,
    write_regression,
)
from ur_energy_model.identification.base_parameter_fit import (
    BagBaseParameters,
    identify_base_parameters,
)
from ur_energy_model.identification.payload import identify_payload, with_torque_constants
from ur_energy_model.identification.payload_fit import PayloadEstimate
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import is_generic
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import RobotDescription, check_payload, load_robot
from ur_energy_model.rooms import Given
from ur_energy_model.telemetry.bag.reader import recorded_robot
from ur_energy_model.typing import Array

# `ur_energy payload`: the payload that an arm carries, from its motor currents.


def payload(given: Given) -> None:
    """`ur_energy payload`: identify the payload, or calibrate with a known payload.

    Raises:
        UrEnergyError: the model, a recording or an option cannot be used.
    """
    options = given.of(PayloadOptions)
    known_mass = options.known_payload
    if options.output is not None:
        if known_mass is None:
            remedy = "give the actual mass with --known-payload"
            raise InputError("-o", "there is no calibration to write", remedy)
        check_output(options.output, overwrite=options.overwrite)
    model = model_needed(given, options.model, options.bag)
    _refuse_generic(model, options)
    robot = None if options.robot is None else load_robot(options.robot)
    if known_mass is not None:
        arm = robot or model.description()
        warn(check_payload(arm, known_mass, "--known-payload"))
    with progress("identifying the payload") as report:
        found = identify_payload(
            model,
            options.bag,
            robot=robot,
            known_mass=known_mass,
            empty=options.empty,
            progress=report,
        )
    warn(found.warnings)
    if options.output is not None:
        save_model(with_torque_constants(model, found), options.output)
        note(f"calibrated model written to {options.output}")
    constants: list[dict[str, Any]] = []
    if known_mass is not None:
        constants = _calibrated_constants(model, found)
    if options.json:
        print_json(_payload_json(found, constants))
    else:
        _print_payload(found, constants)


def _refuse_generic(model: EnergyModel, options: PayloadOptions) -> None:
    """Refuse a generic model, which does not have the torque constants of this arm.

    Raises:
        InputError: the model is generic.
    """
    if is_generic(model):
        problem = (
            "is the model of an arm type, which does not have the torque constants of "
            "this arm"
        )
        remedy = "identify a model of this arm first (ur_energy identify)"
        raise InputError(str(options.model), problem, remedy)


def _calibrated_constants(
    model: EnergyModel, found: PayloadEstimate
) -> list[dict[str, Any]]:
    """Torque constants of the joints before and after calibration with a known payload.

    Args:
        model: model before the calibration.
        found: payload with the constants that the known mass shows.

    Returns:
        Entries "name", "model", "calibrated" and "std" (standard deviation) of each
        joint; constants are on the motor side [N m/A].
    """
    entries: list[dict[str, Any]] = []
    for j, joint in enumerate(model.joints):
        entry = {
            "name": joint.name,
            "model": joint.torque_constant,
            "calibrated": found.torque_constants[j],
            "std": found.torque_constants_std[j],
        }
        entries.append(entry)
    return entries


def _payload_json(
    found: PayloadEstimate, constants: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """JSON of a payload; a calibration has no uncertainty of its known mass.

    Args:
        found: the payload; masses are in kg, centres of mass in m, in the flange frame.
        constants: constants that were calibrated, none where the payload was not known.
    """
    content = {
        "mass": found.shown_mass,
        "std": None if constants else found.mass_std,
        "interval": None if constants else found.interval,
        **picked(
            found,
            "shown_mass center_of_mass_std=center_std told_mass=controller_mass gravity "
            "gravity_source torque_rms misfit samples",
            center_of_mass=found.payload.center_of_mass,
        ),
        "contradictions": [each.as_json() for each in found.contradictions],
    }
    if constants:
        content["torque_constants"] = constants
    return content


def _print_payload(found: PayloadEstimate, constants: Sequence[dict[str, Any]]) -> None:
    """Print mass and centre of mass with 95 % intervals, and the calibrated constants.

    Args:
        found: the payload.
        constants: constants that were calibrated, none where the payload was not known.
    """
    half_width = None if constants else CONFIDENCE * found.mass_std
    rows: list[tuple[str, float | None, float | None]] = [
        ("mass [kg]", found.shown_mass, half_width)
    ]
    center = zip("xyz", found.payload.center_of_mass, found.center_std, strict=True)
    for axis, value, std in center:
        if np.isfinite(std):  # gravity does not show the other coordinates
            rows.append((f"centre of mass {axis} [m]", value, CONFIDENCE * std))
    rows.append(("set in the controller [kg]", found.controller_mass, None))
    print_table("payload", ("", "value", "± 95 %"), rows)
    if constants:
        columns = ("joint", "model", "calibrated", "std")
        cells = [tuple(entry.values()) for entry in constants]
        print_table("torque constants [N m/A]", columns, cells)


# `ur_energy base-parameters`: rank, regrouping and values of an arm's base parameters.


def base_parameters(given: Given) -> None:
    """`ur_energy base-parameters`: identify and print base parameters.

    Raises:
        UrEnergyError: a recording, the model or the robot cannot be used.
    """
    options = given.of(BaseParametersOptions)
    _check_exports(options)
    robot = load_robot(options.robot or recorded_robot(options.bags))
    constants = _torque_constants(options, robot)
    with progress("identifying base parameters") as report:
        result = identify_base_parameters(
            options.bags,
            robot,
            validate=options.validate,
            torque_source=options.torque,
            torque_constant=constants,
            keep_rows=options.export is not None,
            progress=report,
        )
    warn(result.warnings)
    if options.export is not None:
        files = write_regression(result, options.export)
        note(f"regressor, torques and parameters written to {', '.join(map(str, files))}")
    if options.urdf is not None:
        bags = ", ".join(bag.name for bag in options.bags)
        origin = f"base parameters of {bags}, made by ur_energy base-parameters"
        write_text(options.urdf, consistent_urdf(result.parameters, origin))
        note(f"arm written to {options.urdf}; its motor inertias are comments only")
    if options.json:
        print_json(_base_parameters_json(result))
    else:
        _print_base_parameters(result, robot)


def _check_exports(options: BaseParametersOptions) -> None:
    """Refuse files that cannot be written, before the work begins.

    Raises:
        InputError: a file exists, or its format is none that is written.
    """
    files: list[Path] = []
    if options.export is not None:
        files += regression_files(options.export)
    if options.urdf is not None:
        if options.urdf.suffix != ".urdf":
            raise InputError("--urdf", f"{options.urdf} is no URDF", "end it in .urdf")
        files.append(options.urdf)
    for file in files:
        check_output(file, overwrite=options.overwrite)


def _torque_constants(
    options: BaseParametersOptions, robot: RobotDescription
) -> Array | None:
    """Torque constants of --model.

    Args:
        options: options of the command.
        robot: description of the arm.

    Returns:
        Torque constants, motor side [n], N m/A; None for the constants of the robot file.

    Raises:
        WrongRobotError: the model is of another type of arm.
    """
    if options.model is None:
        return None
    model = load_model(options.model)
    if model.robot_name != robot.name:
        problem = f"is a model of a {model.robot_name}"
        raise WrongRobotError(options.model, problem, f"use a model of a {robot.name}")
    return np.array([joint.torque_constant for joint in model.joints])


def _print_base_parameters(result: BagBaseParameters, robot: RobotDescription) -> None:
    """Print the parameters with standard deviations, and the errors of the torque.

    Args:
        result: base parameters in kg, m and combinations of them, and their errors.
        robot: description of the arm.
    """
    found = result.parameters
    regrouping = found.regrouping
    print_table(
        f"{regrouping.rank} base parameters of {robot.name}, condition number "
        f"{found.condition_number:.0f}",
        ("expression", "value", "std"),
        list(zip(regrouping.expressions, found.values, found.std, strict=True)),
    )
    columns = ["joint", "fit RMS", "fit R2"]
    figures = [found.torque_rms, found.torque_r2]
    checked = "cross-validated"
    verification = result.verification
    if verification is not None:
        columns += ["held-out RMS", "held-out R2"]
        figures += [verification.torque_rms, verification.torque_r2]
        checked = "validation bags"
    print_table(
        f"torque [N m], normalised error {result.normalised_error:.4g} N m ({checked})",
        columns,
        list(zip(robot.joint_names, *figures, strict=True)),
    )
    print_table(
        "change of this torque [N m, RMS] by the physically consistent parameters",
        ("joint", "all of them", "without motor inertias, as in a URDF"),
        list(
            zip(
                robot.joint_names,
                found.consistent_difference,
                found.rigid_difference,
                strict=True,
            )
        ),
    )
    published = result.published_error
    if published is not None:
        print_line(
            f"normalised error as Raviola et al. define it: {published.value:.4g} N m at "
            f"{published.points} points, {published.rate:.0f} Hz, as recorded"
        )


def _base_parameters_json(result: BagBaseParameters) -> dict[str, Any]:
    """JSON of base parameters.

    Args:
        result: base parameters in kg, m and combinations of them; torques are in N m, on
            the joint side.
    """
    found = result.parameters
    regrouping = found.regrouping
    verification = result.verification
    general: Mapping[str, Any] | None = None
    checked = "cross-validation"
    if verification is not None:
        general = picked(verification, "rms=torque_rms r2=torque_r2")
        checked = "validation"
    columns = (regrouping.expressions, found.values, found.std, found.ordinary)
    keys = ("expression", "value", "std", "ordinary")
    rows = zip(*columns, strict=True)
    parameters = [dict(zip(keys, row, strict=True)) for row in rows]
    return {
        "rank": regrouping.rank,
        "parameters": parameters,
        "normalised_error_on": checked,
        **picked(result, "normalised_error published_error gravity gravity_source"),
        **picked(found, "condition_number torque_from=torque_source samples"),
        "self_verification": picked(found, "rms=torque_rms r2=torque_r2"),
        "general_verification": general,
        "physically_consistent": {
            "parameters": found.standard,
            "rms": found.consistent_rms,
            "difference": found.consistent_difference,
            "difference_without_motor_inertias": found.rigid_difference,
        },
    }
