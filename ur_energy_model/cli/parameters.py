# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parameters of an arm besides `identify`: `ur_energy payload` and `base-parameters`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ur_energy_model.cli.arguments import model_needed
from ur_energy_model.cli.commands import BaseParametersOptions, PayloadOptions
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
from ur_energy_model.files import check_output
from ur_energy_model.model.generic import is_generic
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import RobotDescription, check_payload, load_robot
from ur_energy_model.rooms import Given
from ur_energy_model.telemetry.bag.reader import recorded_robot

if TYPE_CHECKING:
    from ur_energy_model.identification.base_parameter_fit import BagBaseParameters

# `ur_energy payload`: the payload that an arm carries, from its motor currents.


def payload(given: Given) -> None:
    """`ur_energy payload`: identify the payload, or calibrate the drives with a known one.

    Raises:
        UrEnergyError: the model, a recording or an option cannot be used.
    """
    from ur_energy_model.identification.payload import (
        identify_payload,
        with_torque_constants,
    )

    options = given.of(PayloadOptions)
    known_mass = options.known_payload
    calibrated = known_mass is not None
    if options.output is not None and not calibrated:
        remedy = "give the actual mass with --known-payload"
        raise InputError("-o", "there is no calibration to write", remedy)
    if options.output is not None:
        check_output(options.output, overwrite=options.overwrite)
    model = model_needed(given, options.model, options.bag)
    if is_generic(model):
        raise InputError(
            str(options.model),
            "is the model of an arm type, which does not have the torque constants of this arm",
            "identify a model of this arm first (ur_energy identify)",
        )
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
    constants = None
    if calibrated:
        values = zip(
            model.joints, found.torque_constants, found.torque_constants_std, strict=True
        )
        constants = [
            {
                "name": joint.name,
                "model": joint.torque_constant,
                "calibrated": value,
                "std": std,
            }
            for joint, value, std in values
        ]
    if not options.json:
        center = zip("xyz", found.payload.center_of_mass, found.center_std, strict=True)
        rows = [
            (
                "mass [kg]",
                found.shown_mass,
                None if calibrated else CONFIDENCE * found.mass_std,
            ),
            *(
                (f"centre of mass {axis} [m]", value, CONFIDENCE * std)
                for axis, value, std in center
                if np.isfinite(std)
            ),
            ("set in the controller [kg]", found.controller_mass, None),
        ]
        print_table("payload", ("", "value", "± 95 %"), rows)
        if constants is not None:
            columns = ("joint", "model", "calibrated", "std")
            print_table(
                "torque constants [N m/A]", columns, [(*c.values(),) for c in constants]
            )
        return
    print_json(
        {
            # a calibration has no uncertainty of its known mass
            "mass": found.shown_mass,
            "std": None if calibrated else found.mass_std,
            "interval": None if calibrated else found.interval,
            **picked(
                found,
                "shown_mass center_of_mass_std=center_std told_mass=controller_mass gravity "
                "gravity_source torque_rms misfit samples",
                center_of_mass=found.payload.center_of_mass,
            ),
            "contradictions": [each.as_json() for each in found.contradictions],
            **({} if constants is None else {"torque_constants": constants}),
        }
    )


# `ur_energy base-parameters`: rank, regrouping and values of an arm's base parameters.


def base_parameters(given: Given) -> None:
    """`ur_energy base-parameters`: identify and print them.

    Raises:
        UrEnergyError: a recording, the model or the robot cannot be used.
    """
    from ur_energy_model.identification.base_parameter_fit import identify_base_parameters

    options = given.of(BaseParametersOptions)
    robot = load_robot(options.robot or recorded_robot(options.bags))
    constants = None
    if options.model is not None:
        model = load_model(options.model)
        if model.robot_name != robot.name:
            problem = f"is a model of a {model.robot_name}"
            raise WrongRobotError(
                options.model, problem, f"use a model of a {robot.name}"
            )
        constants = np.array([joint.torque_constant for joint in model.joints])
    with progress("identifying base parameters") as report:
        result = identify_base_parameters(
            options.bags,
            robot,
            validate=options.validate,
            torque_source=options.torque,
            torque_constant=constants,
            progress=report,
        )
    warn(result.warnings)
    if options.json:
        print_json(_base_parameters_json(result))
    else:
        _print_base_parameters(result, robot)


def _print_base_parameters(result: BagBaseParameters, robot: RobotDescription) -> None:
    found = result.parameters
    verification = result.verification
    print_table(
        f"{found.regrouping.rank} base parameters of {robot.name}, condition number "
        f"{found.condition_number:.0f}",
        ("expression", "value", "std"),
        list(zip(found.regrouping.expressions, found.values, found.std, strict=True)),
    )
    checks = [("fit", found.torque_rms, found.torque_r2)]
    if verification is not None:
        checks.append(("held-out", verification.torque_rms, verification.torque_r2))
    print_table(
        f"torque [N m], normalised error {result.normalised_error:.4g} N m "
        f"({'validation bags' if verification else 'cross-validated'})",
        (
            "joint",
            *(f"{name} {figure}" for name, *_ in checks for figure in ("RMS", "R2")),
        ),
        [
            (name, *(value for _, rms, r2 in checks for value in (rms[j], r2[j])))
            for j, name in enumerate(robot.joint_names)
        ],
    )
    published = result.published_error
    if published is not None:
        print_line(
            f"normalised error as Raviola et al. define it: {published.value:.4g} N m at "
            f"{published.points} points, {published.rate:.0f} Hz, as recorded"
        )


def _base_parameters_json(result: BagBaseParameters) -> dict[str, Any]:
    found = result.parameters
    verification = result.verification
    regrouping = found.regrouping
    columns = (regrouping.expressions, found.values, found.std, found.ordinary)
    return {
        "rank": regrouping.rank,
        "parameters": [
            {"expression": text, "value": value, "std": std, "ordinary": ordinary}
            for text, value, std, ordinary in zip(*columns, strict=True)
        ],
        "normalised_error_on": "cross-validation"
        if verification is None
        else "validation",
        **picked(result, "normalised_error published_error gravity gravity_source"),
        **picked(found, "condition_number torque_from=torque_source samples"),
        "self_verification": picked(found, "rms=torque_rms r2=torque_r2"),
        "general_verification": None
        if verification is None
        else picked(verification, "rms=torque_rms r2=torque_r2"),
        "physically_consistent": {
            "parameters": dict(zip(regrouping.names, found.consistent, strict=True)),
            "rms": found.consistent_rms,
        },
    }
