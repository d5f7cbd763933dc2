"""`ur_energy payload`: the payload that an arm carries, from its motor currents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli import arguments
from ur_energy_model.cli.output import note, print_json, print_table, progress

if TYPE_CHECKING:
    import argparse

    from ur_energy_model.identification.payload import IdentifiedPayload
    from ur_energy_model.model.energy_model import EnergyModel

_EXAMPLES = """\
ur_energy payload model.yaml loaded_motion
ur_energy payload model.yaml loaded_motion --empty empty_motion
ur_energy payload model.yaml loaded_motion --known-payload 2.805 \\
    --empty empty_motion -o calibrated.yaml
"""


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "payload",
        run,
        summary="identify the payload from motor currents",
        description="Identify the mass and the centre of mass (flange frame, m) of the payload in "
        "a bag from the motor currents, independent of the controller's payload setting. With a "
        "known payload, calibrate the drives instead, preferably together with a recording of the "
        "empty arm; the calibrated model then identifies other payloads more accurately.",
        examples=_EXAMPLES,
    )
    arguments.add_model(parser)
    arguments.add_bag(parser, "recording with the payload")
    parser.add_argument(
        "--known-payload",
        type=arguments.number(float, -1000, 1000),
        metavar="KG",
        help="actual mass, to calibrate with",
    )
    parser.add_argument(
        "--empty",
        type=Path,
        metavar="BAG",
        help="recording of the same arm with an empty flange; the payload is the difference",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="MODEL.yaml",
        help="calibrated model to write (needs --known-payload)",
    )
    arguments.add_robot(parser, "the one named in the model")
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Identify the payload and print it."""
    from ur_energy_model.errors import InputError
    from ur_energy_model.identification.payload import identify_payload, with_torque_constants
    from ur_energy_model.model.generic import is_generic
    from ur_energy_model.model.model_file import load_model, save_model
    from ur_energy_model.model.robots import load_robot

    calibrated = options.known_payload is not None
    if options.output is not None and not calibrated:
        raise InputError(
            "-o", "there is no calibration to write", "give the actual mass with --known-payload"
        )
    model = load_model(options.model)
    if is_generic(model):
        raise InputError(
            options.model,
            "is the model of an arm type, which does not know the torque constants of this arm",
            "identify a model of this arm first (ur_energy identify)",
        )
    robot = None if options.robot is None else load_robot(options.robot)
    with progress("identifying the payload") as report:
        found = identify_payload(
            model,
            options.bag,
            robot=robot,
            known_mass=options.known_payload,
            empty=options.empty,
            progress=report,
        )
    for warning in found.warnings:
        note(f"warning: {warning}")
    if options.output is not None:
        save_model(with_torque_constants(model, found.estimate), options.output)
        note(f"calibrated model written to {options.output}")
    constants = _torque_constants(model, found) if calibrated else None
    if options.json:
        print_json(_as_json(found, constants))
    else:
        _print(found, constants)


def _torque_constants(model: EnergyModel, found: IdentifiedPayload) -> list[dict[str, Any]]:
    """The torque constants of a calibration beside the model's [N m/A]."""
    estimate = found.estimate
    return [
        {"name": joint.name, "model": joint.torque_constant, "calibrated": value, "std": std}
        for joint, value, std in zip(
            model.joints, estimate.torque_constants, estimate.torque_constants_std, strict=True
        )
    ]


def _as_json(found: IdentifiedPayload, constants: list[dict[str, Any]] | None) -> dict[str, Any]:
    """JSON of the result; a calibration has no uncertainty of its known mass."""
    estimate = found.estimate
    return {
        "mass": estimate.shown_mass,
        "std": estimate.mass_std if constants is None else None,
        "interval": estimate.interval if constants is None else None,
        "shown_mass": estimate.shown_mass,
        "center_of_mass": estimate.payload.center_of_mass,
        "center_of_mass_std": estimate.center_std,
        "told_mass": found.told_mass,
        "gravity": found.gravity,
        "gravity_source": found.gravity_source,
        "torque_rms": estimate.torque_rms,
        "misfit": estimate.misfit,
        "samples": estimate.samples,
        **({} if constants is None else {"torque_constants": constants}),
    }


def _print(found: IdentifiedPayload, constants: list[dict[str, Any]] | None) -> None:
    import numpy as np

    from ur_energy_model.energy.meter import CONFIDENCE

    estimate = found.estimate
    half = CONFIDENCE * estimate.mass_std if constants is None else None
    rows: list[tuple[str, float, float | None]] = [("mass [kg]", estimate.shown_mass, half)]
    center = zip("xyz", estimate.payload.center_of_mass, estimate.center_std, strict=True)
    rows += [
        (f"centre of mass {axis} [m]", value, CONFIDENCE * std)
        for axis, value, std in center
        if np.isfinite(std)
    ]
    rows.append(("set in the controller [kg]", found.told_mass, None))
    print_table("payload", ("", "value", "± 95 %"), rows)
    if constants is not None:
        print_table(
            "torque constants [N m/A]",
            ("joint", "model", "calibrated", "std"),
            [tuple(entry.values()) for entry in constants],
        )
