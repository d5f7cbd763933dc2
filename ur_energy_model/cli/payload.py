"""`ur_energy payload`: what the arm really carries, from its motor currents."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ur_energy_model.cli.output import add_json_option, note, print_json, print_table, progress

_EXAMPLE = """examples:
  ur_energy payload model.yaml loaded_motion
  ur_energy payload model.yaml loaded_motion --empty empty_motion
  ur_energy payload model.yaml loaded_motion --known-payload 2.805 --empty empty_motion \\
    -o calibrated.yaml
"""


def register(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "payload",
        help="identify the payload from motor currents",
        description="Estimate mass and centre of mass (flange frame, m) of the payload in a bag "
        "from the motor currents, whatever the controller was told. With a known payload, best "
        "together with a recording of the empty arm, the drives are calibrated instead; the model "
        "written then identifies other payloads more exactly.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path, metavar="MODEL.yaml", help="model of this arm")
    parser.add_argument("bag", type=Path, metavar="BAG", help="recording with the payload")
    parser.add_argument(
        "--known-payload", type=float, metavar="KG", help="true mass, to calibrate with"
    )
    parser.add_argument(
        "--empty",
        type=Path,
        metavar="BAG",
        help="recording of the same arm with an empty flange; the payload is what comes on top",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="MODEL.yaml",
        help="write the calibrated model (needs --known-payload)",
    )
    parser.add_argument(
        "--robot", metavar="NAME", help="name or file of the robot, by default as the model says"
    )
    add_json_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Identify the payload and print it."""
    from ur_energy_model.errors import InputError
    from ur_energy_model.identification.payload.drive_calibration import with_torque_constants
    from ur_energy_model.identification.payload.payload_identification import identify_payload
    from ur_energy_model.model.file.model_file import load_model, save_model
    from ur_energy_model.model.robots import load_robot

    if options.output is not None and options.known_payload is None:
        raise InputError("-o", "nothing was calibrated", "give the true mass with --known-payload")
    model = load_model(options.model)
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
    if options.json:
        print_json(_as_json(model, found, options.known_payload))
    else:
        _print(model, found, options.known_payload)
    return 0


def _as_json(model: Any, found: Any, known: float | None) -> dict[str, Any]:
    estimate = found.estimate
    out: dict[str, Any] = {
        "mass": estimate.shown_mass,
        "std": None if known is not None else estimate.mass_std,
        "interval": None if known is not None else estimate.interval,
        "shown_mass": estimate.shown_mass,
        "center_of_mass": estimate.payload.center_of_mass,
        "center_of_mass_std": estimate.center_std,
        "told_mass": found.told_mass,
        "gravity": found.gravity,
        "gravity_source": found.gravity_source,
        "torque_rms": estimate.torque_rms,
        "misfit": estimate.misfit,
        "samples": estimate.samples,
    }
    if known is not None:
        out["torque_constants"] = [
            {"name": joint.name, "model": joint.torque_constant, "calibrated": value, "std": std}
            for joint, value, std in zip(
                model.joints, estimate.torque_constants, estimate.torque_constants_std, strict=True
            )
        ]
    return out


def _print(model: Any, found: Any, known: float | None) -> None:
    import numpy as np

    from ur_energy_model.energy.meter import CONFIDENCE

    estimate = found.estimate
    payload = estimate.payload
    half = None if known is not None else CONFIDENCE * estimate.mass_std
    rows: list[tuple[Any, ...]] = [("mass [kg]", estimate.shown_mass, half)]
    rows += [
        (
            f"centre of mass {axis} [m]",
            payload.center_of_mass[k],
            CONFIDENCE * estimate.center_std[k],
        )
        for k, axis in enumerate("xyz")
        if np.isfinite(estimate.center_std[k])
    ]
    rows.append(("told to the controller [kg]", found.told_mass, None))
    print_table("payload", ("", "value", "± 95 %"), rows)
    if known is None:
        return
    constants = zip(
        model.joints, estimate.torque_constants, estimate.torque_constants_std, strict=True
    )
    print_table(
        "torque constants [N m/A]",
        ("joint", "model", "calibrated", "std"),
        [(joint.name, joint.torque_constant, value, std) for joint, value, std in constants],
    )
