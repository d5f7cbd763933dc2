"""`ur_energy identify --per-arm`: one model per arm, and `--fleet`: what other arms tell."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ur_energy_model.cli.cluster_options import failed_json, for_each_bag, report_failed
from ur_energy_model.cli.output import note, print_json, print_table, progress
from ur_energy_model.errors import InputError

if TYPE_CHECKING:
    from ur_energy_model.identification.arm_prior import ArmPrior
    from ur_energy_model.model.energy_model import EnergyModel
    from ur_energy_model.plant.fleet.fleet import FleetArm
    from ur_energy_model.plant.fleet.identify_arms import FleetIdentification

_SINGLE = ("gravity", "payload", "validate")
"""Options that state something of one arm."""


def add_fleet_options(parser: argparse.ArgumentParser) -> None:
    """`--per-arm` and `--fleet`."""
    parser.add_argument(
        "--per-arm",
        action="store_true",
        help="one model per arm (serial number) into the folder OUTPUT; arms of one joint size "
        "share what the data say that they have in common",
    )
    parser.add_argument(
        "--fleet",
        type=Path,
        metavar="FOLDER",
        help="models of other arms to start from (default with --per-arm: those already in the "
        "folder OUTPUT)",
    )


def prior_from_fleet(folder: Path, bag: Path, model: EnergyModel) -> ArmPrior | None:
    """Prior of an arm from the models of a folder, and its own first one.

    Args:
        folder: of the models.
        bag: recording of the arm.
        model: identified without the others: it shows whether the arm is like them.

    Raises:
        InputError: no such folder.
        UrEnergyError: the bag cannot be read.
    """
    from ur_energy_model.plant.fleet.fleet import Fleet
    from ur_energy_model.plant.fleet.identify_arms import fleet_arm
    from ur_energy_model.telemetry.arm_identity import arm_name
    from ur_energy_model.telemetry.bag.reader import read_info

    own = fleet_arm(arm_name(read_info(bag)), model)
    others = [arm for arm in _read(folder) if arm.name != own.name]
    prior = Fleet([*others, own]).prior(own.robot, own.name)
    if prior is None:
        note(f"warning: {folder} has no model of another arm with joints of these sizes")
    return prior


def identify_per_arm(options: argparse.Namespace) -> None:
    """Identify, save and print."""
    from ur_energy_model.identification.pipeline import IdentificationOptions
    from ur_energy_model.plant.fleet.identify_arms import identify_arms
    from ur_energy_model.plant.fleet.model_folder import make_folder, save_in

    given = [f"--{name}" for name in _SINGLE if getattr(options, name)]
    if given:
        raise InputError(given[0], "states something of one arm", "leave it out with --per-arm")
    if options.output.suffix == ".yaml":
        remedy = "name a folder for one model per arm, or leave out --per-arm"
        raise InputError(options.output, "is the name of a model file", remedy)
    make_folder(options.output)
    known = _read(options.output if options.fleet is None else options.fleet)
    with progress("identifying") as report, for_each_bag(options) as each:
        result = identify_arms(
            options.bags,
            IdentificationOptions(
                friction=options.friction,
                power_model=options.power_model,
                identify_tensors=options.link_tensors == "identify",
            ),
            robot=options.robot,
            known=known,
            each=each,
            progress=report,
        )
    files = {arm.name: save_in(options.output, arm.name, arm.model) for arm in result.arms}
    for arm in result.arms:
        for warning in arm.warnings:
            note(f"warning: {arm.name}: {warning}")
    if options.json:
        print_json(_as_json(result, files))
    else:
        if files:
            _print(result)
        count = len(files)
        note(f"{count} model{'' if count == 1 else 's'} written to {options.output}")
    report_failed(result.failed, len(options.bags))


def _read(folder: Path) -> list[FleetArm]:
    from ur_energy_model.plant.fleet.model_folder import read_fleet

    arms, problems = read_fleet(folder)
    for problem in problems:
        note(f"warning: {problem}")
    return arms


def _as_json(result: FleetIdentification, files: dict[str, Path]) -> dict[str, Any]:
    return {
        "arms": [
            {
                "arm": arm.name,
                "model": str(files[arm.name]),
                "robot": arm.model.robot_name,
                "bags": [str(bag) for bag in arm.bags],
                "warnings": list(arm.warnings),
                "joints": {
                    joint.name: {
                        "torque_constant": joint.torque_constant,
                        "torque_constant_std": joint.std["torque_constant"],
                        "torque_constant_source": joint.source["torque_constant"],
                        "reflected_inertia": joint.reflected_inertia,
                        "reflected_inertia_std": joint.std["reflected_inertia"],
                    }
                    for joint in arm.model.joints
                },
            }
            for arm in result.arms
        ],
        "failed": failed_json(result.failed),
        "fleet": [vars(shared) for shared in result.fleet.shared()],
    }


def _print(result: FleetIdentification) -> None:
    from ur_energy_model.energy.meter import CONFIDENCE

    print_table(
        "arms: torque constant k_t [N m/A], reflected inertia J [kg m^2]",
        ["arm", "joint", "k_t", "± 95 %", "J", "± 95 %", "k_t from"],
        [
            [
                arm.name,
                joint.name,
                joint.torque_constant,
                f"{CONFIDENCE * joint.std['torque_constant']:.2g}",
                joint.reflected_inertia,
                f"{CONFIDENCE * joint.std['reflected_inertia']:.2g}",
                _origin(joint.source["torque_constant"]),
            ]
            for arm in result.arms
            for joint in arm.model.joints
        ],
    )
    print_table(
        f"what arms of the fleet ({len(result.fleet.arms)}) have in common",
        ["constant", "joints", "spread [%]", "95 % below", "arms"],
        [
            [
                shared.what.replace("_", " "),
                _in_words(shared.joints),
                f"{100 * shared.spread:.1f}",
                f"{100 * shared.spread_limit:.1f}",
                shared.arms,
            ]
            for shared in result.fleet.shared()
        ],
    )


def _origin(source: str) -> str:
    """Where a torque constant comes from, in one word."""
    if "fleet" in source:
        return "fleet"
    if source.startswith("current"):
        return "itself"
    return "its size" if "size" in source else source


def _in_words(joints: Sequence[str]) -> str:
    """Joints by type: "ur5e: elbow_joint, wrist_1_joint"."""
    types: dict[str, list[str]] = {}
    for label in joints:
        robot, _, joint = label.partition(": ")
        types.setdefault(robot, []).append(joint)
    return "; ".join(f"{robot}: {', '.join(own)}" for robot, own in types.items())
