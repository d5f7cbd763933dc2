"""`ur_energy identify`: an arm's model from recordings."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from ur_energy_model.cli import arguments
from ur_energy_model.cli.cluster_options import (
    add_cluster,
    failed_json,
    for_each_bag,
    is_distributed,
    report_failed,
)
from ur_energy_model.cli.identify_per_arm import (
    add_fleet_options,
    identify_per_arm,
    prior_from_fleet,
)
from ur_energy_model.cli.model_option import recorded_robot
from ur_energy_model.cli.output import note, print_json, print_table, progress
from ur_energy_model.cli.payload_option import add_payload_option, is_identified, payload_given
from ur_energy_model.errors import InputError
from ur_energy_model.model.friction.law import LAWS

if TYPE_CHECKING:
    from ur_energy_model.identification.pipeline import Identification
    from ur_energy_model.model.robots import RobotDescription
    from ur_energy_model.model.setup import Payload, Setup


def register(subparsers: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = arguments.add_command(
        subparsers,
        "identify",
        run,
        summary="identify an arm's model from bags",
        description="Identify the inertia, torque constants, friction and power of an arm from "
        "bags, and write them to a model file.",
        examples="ur_energy identify excitation --validate task -o model.yaml\n"
        "ur_energy identify --per-arm monday/* -o arms\n"
        "ur_energy identify short --fleet arms -o new_arm.yaml",
        notes=arguments.definition_list(
            "friction laws", {name: law.description for name, law in LAWS.items()}
        ),
    )
    arguments.add_bags(parser, "recordings to fit, all together")
    arguments.add_robot(parser, default="the one that the bags name")
    arguments.add_validate(parser)
    arguments.add_output(
        parser, "MODEL.yaml", "model file to write; with --per-arm, folder of the models"
    )
    add_fleet_options(parser)
    parser.add_argument(
        "--friction",
        default="auto",
        metavar="LAW",
        help="friction law (listed below), or auto to select one per joint by cross-validation "
        "(default: %(default)s)",
    )
    arguments.add_choice(
        parser,
        "--power-model",
        ("physical", "ecbot", "catalogue"),
        "physical structure with priors, the 4n+1 free coefficients of EcBot, or the catalogue "
        "motors that Clochiatti et al. assume for a UR5e",
    )
    arguments.add_choice(
        parser,
        "--link-tensors",
        ("file", "identify"),
        "inertia tensors of the links: from the robot file, or identified from target_moment "
        "where the file has none or wrong ones",
    )
    parser.add_argument(
        "--gravity",
        nargs=3,
        type=arguments.number(float, -100, 100),
        metavar=("X", "Y", "Z"),
        help="gravity in the base frame [m/s^2], if the mounting is known (default: estimated)",
    )
    add_payload_option(parser, "the controller's setting, from target_moment", identifiable=True)
    add_cluster(parser)
    arguments.add_json(parser)


def run(options: argparse.Namespace) -> None:
    """Identify, save and print."""
    from ur_energy_model.cli.evaluate import print_metrics
    from ur_energy_model.files import check_target
    from ur_energy_model.identification.identification_json import identification_json
    from ur_energy_model.identification.payload.payload_check import IDENTIFIED
    from ur_energy_model.identification.pipeline import IdentificationOptions, identify
    from ur_energy_model.model.file.model_file import save_model
    from ur_energy_model.model.robots import load_robot

    if options.per_arm:
        identify_per_arm(options)
        return
    check_target(options.output)
    robot = load_robot(options.robot or recorded_robot(options.bags))
    payload = payload_given(options.payload)
    bags = len(options.bags) + len(options.validate)
    with progress("identifying") as report, ExitStack() as opened:
        each = None
        if is_distributed(options):
            each = opened.enter_context(for_each_bag(options, options.validate))
        wanted = IdentificationOptions(
            friction=options.friction,
            power_model=options.power_model,
            setup=_given_setup(options, robot, payload),
            payload=IDENTIFIED if is_identified(options.payload) else payload,
            identify_tensors=options.link_tensors == "identify",
        )
        work = partial(identify, validate=options.validate, progress=report, each=each)
        result = work(options.bags, robot, wanted)
        if options.fleet is not None:
            prior = prior_from_fleet(options.fleet, options.bags[0], result.model)
            if prior is not None:
                result = work(options.bags, robot, replace(wanted, prior=prior))
    save_model(result.model, options.output)
    for warning in result.warnings:
        note(f"warning: {warning}")
    for line in result.notes:
        note(line)
    if options.json:
        content = dict(identification_json(result))
        if bags > 1:
            content["failed"] = failed_json(result.failed)
        print_json(content)
    else:
        _print(result)
        for entry in (*result.model.fit, *result.model.validation):
            print_metrics(entry, result.model.joints)
        note(f"model written to {options.output}")
    report_failed(result.failed, bags)


def _given_setup(
    options: argparse.Namespace, robot: RobotDescription, payload: Payload | None
) -> Setup | None:
    """Mounting and payload as the user states them; None if neither is stated.

    Raises:
        InputError: a vector that cannot be gravity.
    """
    import numpy as np

    from ur_energy_model.model.setup import Payload, Setup
    from ur_energy_model.reading.ranges import GRAVITY

    if options.gravity is None and payload is None:
        return None
    gravity = options.gravity or [0.0, 0.0, -robot.controller_gravity]
    magnitude = float(np.linalg.norm(gravity))
    if not GRAVITY.low <= magnitude <= GRAVITY.high:
        raise InputError(
            "--gravity",
            f"has the magnitude {magnitude:g}, not that of gravity",
            "give X Y Z in m/s^2",
        )
    return Setup(np.array(gravity), Payload() if payload is None else payload)


def _print(result: Identification) -> None:
    from ur_energy_model.energy.meter import CONFIDENCE
    from ur_energy_model.report.drive_table import drive_table

    model = result.model
    print_table(
        f"{model.robot_name}: identified constants (joint side inertia, motor side the rest)",
        ["joint", "inertia", "k_t", "± 95 %", "friction law", "source of k_t"],
        [
            [
                joint.name,
                joint.reflected_inertia,
                joint.torque_constant,
                CONFIDENCE * joint.std["torque_constant"],
                joint.friction.law.name,
                joint.source["torque_constant"],
            ]
            for joint in model.joints
        ],
    )
    print_table(*drive_table(model))
    for joint in model.joints:
        note(f"{joint.name}: {joint.friction.law.name}: {joint.friction_reason}")
    note(
        f"setup ({model.setup_source}): gravity {model.setup.gravity.round(3).tolist()}, "
        f"payload {model.setup.payload.mass:.3f} kg"
    )
    for entry in model.provenance["bags"]:
        note(
            f"{entry['path']}: {entry['rate']:.0f} Hz, filter cut-off {entry['cutoff']:.1f} Hz, "
            f"actual_q {1e3 * entry['position_delay']:.1f} ms behind target_q"
        )
    note(f"power: standby {model.bus.standby:.2f} W; {model.bus.reason}")
    sessions, spread = model.sessions, model.sessions.friction_of(model.dof)
    known = f"from {sessions.count} sessions" if sessions.count else "typical values"
    note(
        f"spread between sessions ({known}): standby ± {CONFIDENCE * sessions.standby:.1f} W, "
        f"friction ± {100 * CONFIDENCE * spread.min():.0f} to "
        f"{100 * CONFIDENCE * spread.max():.0f} %"
    )
    if "current_delay" in result.power.factors:
        delay, std = (1e3 * figure for figure in result.power.factors["current_delay"])
        note(f"power: currents {delay:.2f} ± {CONFIDENCE * std:.2f} ms behind speeds")
