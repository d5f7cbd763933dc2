# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fleets in `ur_energy identify`: one model per arm, and a start from other arms' models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ur_energy_model.cli.arguments import CommandBags, failed_json, report_failed
from ur_energy_model.cli.output import (
    note,
    picked,
    print_json,
    print_table,
    progress,
    warn,
)
from ur_energy_model.cli.tables import IdentifyOptions
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import InputError
from ur_energy_model.files import check_output
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.assembly import ArmPrior
from ur_energy_model.identification.pipeline import Identification
from ur_energy_model.model.drives import JointModel
from ur_energy_model.model.model_file import save_model
from ur_energy_model.plant.fleet import (
    Fleet,
    FleetArm,
    changed_constants,
    fleet_arm,
    make_folder,
    read_fleet,
)
from ur_energy_model.plant.fleet_identification import FleetIdentification, identify_arms
from ur_energy_model.plant.room import FleetOptions
from ur_energy_model.rooms import Given
from ur_energy_model.telemetry.bag.reader import read_info
from ur_energy_model.telemetry.samples import arm_name


class FleetAddition:
    """What the fleet adds to `ur_energy identify`: --per-arm and --fleet."""

    def instead(self, given: Given, options: IdentificationOptions) -> bool:
        """With --per-arm: identify the arms of all bags, save their models and print.

        Args:
            given: options of the command.
            options: options of each identification.

        Returns:
            Whether --per-arm was given; if not, nothing is done.

        Raises:
            InputError: an option that states something of one arm, or a model that
                exists.
            UrEnergyError: bags failed; the models of the others are saved before.
        """
        if not given.of(FleetOptions).per_arm:
            return False
        _identify_per_arm(given, options)
        return True

    def improved(
        self,
        given: Given,
        result: Identification,
        again: Callable[[ArmPrior], Identification],
    ) -> Identification:
        """With --fleet: the identification again, with what the other arms show as a prior.

        A warning is printed where the folder has no model of an arm with such joints.

        Args:
            given: options of the command.
            result: the identification of the arm alone.
            again: identifies the arm with a prior.

        Returns:
            The new identification; the same one without --fleet, or without such a model.
        """
        folder = given.of(FleetOptions).fleet
        if folder is None:
            return result
        bags = given.of(IdentifyOptions).bags
        own = fleet_arm(arm_name(read_info(bags[0])), result.model)
        known = _read(folder)
        warn(changed_constants(known, own))
        others = [arm for arm in known if arm.name != own.name]
        prior = Fleet([*others, own]).prior(own.robot, own.name)
        if prior is None:
            of_size = "no model of another arm with joints of these sizes"
            note(f"warning: {folder} has {of_size}")
            return result
        return again(prior)


FLEET = FleetAddition()


def _identify_per_arm(given: Given, wanted: IdentificationOptions) -> None:
    """Identify the arms of all bags, save their models in a folder, and print.

    Args:
        given: options of the command.
        wanted: options of each identification.

    Raises:
        InputError: an option that states something of one arm, or a model that exists.
        UrEnergyError: bags failed; the models of the others are saved before.
    """
    options = given.of(IdentifyOptions)
    folder = options.output
    _refuse_options_of_one_arm(options)
    make_folder(folder)

    def check(arm: str) -> None:
        """Refuse an arm whose model would be replaced without --overwrite."""
        check_output(folder / f"{arm}.yaml", overwrite=options.overwrite)

    known = _read(given.of(FleetOptions).fleet or folder)
    work_on = CommandBags(given, options.bags, options.workers)
    with progress("identifying") as report, work_on.executor() as each:
        result = identify_arms(
            options.bags,
            wanted,
            robot=options.robot,
            known=known,
            each=each,
            check=check,
            progress=report,
        )
    files = {arm.name: folder / f"{arm.name}.yaml" for arm in result.arms}
    for arm in result.arms:
        save_model(arm.model, files[arm.name])
    warn(f"{arm.name}: {warning}" for arm in result.arms for warning in arm.warnings)
    if options.json:
        print_json(_fleet_json(result, files))
    else:
        if files:
            _print_fleet(result)
        count = len(files)
        note(f"{count} model{'' if count == 1 else 's'} written to {folder}")
    report_failed(result.failed, len(options.bags))


def _refuse_options_of_one_arm(options: IdentifyOptions) -> None:
    """Raise InputError for options that do not go with --per-arm."""
    of_one_arm = {
        "--gravity": options.gravity,
        "--payload": options.payload,
        "--validate": options.validate,
    }
    for flag, value in of_one_arm.items():
        if value:
            remedy = "leave it out with --per-arm"
            raise InputError(flag, "states something of one arm", remedy)
    if options.output.suffix == ".yaml":
        remedy = "name a folder for one model per arm, or leave out --per-arm"
        raise InputError(options.output, "is the name of a model file", remedy)


def _read(folder: Path) -> list[FleetArm]:
    """The arms whose models a folder has.

    A warning is printed for each unreadable model.
    """
    arms, problems = read_fleet(folder)
    warn(problems)
    return arms


def _fleet_json(result: FleetIdentification, files: dict[str, Path]) -> dict[str, Any]:
    """JSON of a fleet: the constants of each arm, and what arms have in common.

    Torque constants are in N m/A (motor side), inertias in kg m^2 (joint side).

    Args:
        result: models of the arms.
        files: paths of the model files, by name of the arm.
    """
    arms = []
    for arm in result.arms:
        entry = {
            "arm": arm.name,
            "model": files[arm.name],
            "robot": arm.model.robot_name,
            **picked(arm, "bags warnings"),
            "joints": {joint.name: _joint_json(joint) for joint in arm.model.joints},
        }
        arms.append(entry)
    return {
        "arms": arms,
        "failed": failed_json(result.failed),
        "fleet": result.fleet.shared(),
    }


def _joint_json(joint: JointModel) -> dict[str, Any]:
    """Torque constant and reflected inertia of a joint with their standard deviations."""
    return {
        "torque_constant": joint.torque_constant,
        "reflected_inertia": joint.reflected_inertia,
        "torque_constant_std": joint.std["torque_constant"],
        "reflected_inertia_std": joint.std["reflected_inertia"],
        "torque_constant_source": joint.source["torque_constant"],
    }


def _print_fleet(result: FleetIdentification) -> None:
    """Print the constants of each arm with 95 % intervals, and what arms have in common."""
    constants = []
    for arm in result.arms:
        for joint in arm.model.joints:
            row = [
                arm.name,
                joint.name,
                joint.torque_constant,
                f"{CONFIDENCE * joint.std['torque_constant']:.2g}",
                joint.reflected_inertia,
                f"{CONFIDENCE * joint.std['reflected_inertia']:.2g}",
                _origin(joint.source["torque_constant"]),
            ]
            constants.append(row)
    print_table(
        "arms: torque constant k_t [N m/A], reflected inertia J [kg m^2]",
        ["arm", "joint", "k_t", "± 95 %", "J", "± 95 %", "k_t from"],
        constants,
    )
    common = []
    for shared in result.fleet.shared():
        row = [
            shared.what.replace("_", " "),
            _joints_by_type(shared.joints),
            f"{100 * shared.spread:.1f}",
            f"{100 * shared.spread_limit:.1f}",
            shared.arms,
        ]
        common.append(row)
    print_table(
        f"what arms of the fleet ({len(result.fleet.arms)}) have in common",
        ["constant", "joints", "spread [%]", "95 % below", "arms"],
        common,
    )


def _origin(source: str) -> str:
    """Where a torque constant comes from, in one or two words.

    Args:
        source: source of the constant, as the model states it.
    """
    if "fleet" in source:
        return "fleet"
    if source.startswith("current"):
        return "itself"
    return "its size" if "size" in source else source


def _joints_by_type(labels: Sequence[str]) -> str:
    """Joints by type of robot: "ur5e: elbow_joint, wrist_1_joint".

    Args:
        labels: "<robot>: <joint>" each.
    """
    types: dict[str, list[str]] = {}
    for label in labels:
        robot, _, joint = label.partition(": ")
        types.setdefault(robot, []).append(joint)
    return "; ".join(f"{robot}: {', '.join(joints)}" for robot, joints in types.items())
