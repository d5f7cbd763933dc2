# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Identification of all arms of many bags: one model per arm, each with what the others show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ur_energy_model.consistency.controller_constants import recorded_constants
from ur_energy_model.consistency.same_origin import RecordedArm, arms_by_constants
from ur_energy_model.errors import InputError
from ur_energy_model.identification.arm_fit import IdentificationOptions
from ur_energy_model.identification.assembly import OF_TYPE, ArmPrior
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.many_bags import BagExecutor, BagResult, in_this_process
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.plant.fleet import Fleet, FleetArm, changed_constants, fleet_arm
from ur_energy_model.telemetry.bag.reader import read_info
from ur_energy_model.telemetry.samples import arm_name
from ur_energy_model.typing import Progress

FLEET_KEY = "fleet"
"""Key in the provenance of a model: number of the other arms that its prior came from."""


@dataclass(frozen=True)
class IdentifiedArm:
    """The model of one arm.

    Attributes:
        name: name of the arm.
        model: model that was identified.
        bags: bags that the model was identified from.
        failed: bags that were left out, with the reason.
        warnings: warnings of the identification, one line each.
    """

    name: str
    model: EnergyModel
    bags: tuple[Path, ...]
    failed: tuple[BagResult[Any], ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass
class FleetIdentification:
    """The result of `identify_arms`.

    Attributes:
        arms: arms in order of their names.
        failed: bags that no model was identified from, with the reason.
        fleet: the identified arms, and the arms known before that have no bags here.
    """

    arms: list[IdentifiedArm] = field(default_factory=list)
    failed: list[BagResult[Any]] = field(default_factory=list)
    fleet: Fleet = field(default_factory=lambda: Fleet(()))


def identify_arms(
    bags: Sequence[Path],
    options: IdentificationOptions,
    *,
    robot: str | None = None,
    known: Sequence[FleetArm] = (),
    each: BagExecutor = in_this_process,
    check: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> FleetIdentification:
    """Identify one model per arm (serial number) from any number of bags.

    Bags of one type without serial numbers are of one arm, unless the torque constants
    that their controllers state differ: then the arms are ur5e, ur5e_2, and so on.

    Every arm is identified twice: first alone, then with the prior that all other arms
    give. What the recordings of an arm itself show never enters the prior of the arm.

    Args:
        bags: bags of any arms, in any order.
        options: options of each identification; its prior is replaced.
        robot: type of all arms; None for the type that each bag names.
        known: arms known before; an arm that has bags here is replaced.
        each: runs the work on each bag and on each arm.
        check: called with the name of each arm before any is identified; it may refuse
            the arm by an error.
        progress: called with the share that is done, and a text.
    """
    out = FleetIdentification()
    groups = _bags_of_arms(bags, robot, each, out.failed)
    if check is not None:
        for name in groups:
            check(name)

    def run(
        begin: float, priors: Mapping[str, ArmPrior]
    ) -> dict[str, BagResult[IdentifiedArm]]:
        """Results of arms by name, from their priors; each run is half of the work."""

        def report(fraction: float, text: str) -> None:
            """The progress of a run as a part of the whole work."""
            if progress is not None:
                progress(begin + 0.5 * fraction, text)

        tasks = []
        for name, prior in priors.items():
            tasks.append((name, groups[name], replace(options, prior=prior)))
        first_bags = [group.bags[0] for _, group, _ in tasks]
        results = each(_identify, first_bags, report, tasks)
        return dict(zip(priors, results, strict=True))

    alone = {}
    for name, result in run(0.0, dict.fromkeys(groups, OF_TYPE)).items():
        if result.value is None:
            out.failed += [replace(result, bag=bag) for bag in groups[name].bags]
        else:
            alone[name] = result.value
            out.failed += result.value.failed
    now = {name: fleet_arm(name, arm.model) for name, arm in alone.items()}
    others = [arm for arm in known if arm.name not in alone]
    out.fleet = Fleet([*others, *now.values()])
    priors = {}
    for name in alone:
        prior = out.fleet.prior(load_robot(groups[name].robot), name)
        if prior is not None:
            priors[name] = prior
    better = run(0.5, priors)
    for name, arm in alone.items():
        identified = better[name].value if name in better else None
        if identified is not None:
            arm = _with_provenance(identified, others=len(out.fleet.arms) - 1)
        changed = changed_constants(known, now[name])
        out.arms.append(replace(arm, warnings=(*arm.warnings, *changed)))
    return out


def _with_provenance(arm: IdentifiedArm, others: int) -> IdentifiedArm:
    """An arm whose model states the number of other arms that its prior came from."""
    provenance = {**arm.model.provenance, FLEET_KEY: {"arms": others}}
    return replace(arm, model=replace(arm.model, provenance=provenance))


class _ArmBags(NamedTuple):
    """The bags of one arm.

    Attributes:
        robot: type of the arm.
        bags: absolute paths, at least one.
    """

    robot: str
    bags: tuple[Path, ...]


def _bags_of_arms(
    bags: Sequence[Path],
    robot: str | None,
    each: BagExecutor,
    failed: list[BagResult[Any]],
) -> dict[str, _ArmBags]:
    """Sort bags by arm.

    Args:
        bags: bags of any arms.
        robot: type of all arms; None for the type that each bag names.
        each: runs the work on each bag.
        failed: bags that cannot be used are added to it, with the reason.

    Returns:
        The bags of each arm by its name, in order of the names.
    """
    groups: dict[str, _ArmBags] = {}
    found: list[tuple[Path, RecordedArm]] = []
    for result in each(_read_origin, bags, None, [robot] * len(bags)):
        if result.value is None:
            failed.append(result)
        else:
            found.append((result.bag, result.value))
    names = _arm_names([origin for _, origin in found])
    for name, (bag, origin) in zip(names, found, strict=True):
        type_ = robot or origin.info.robot
        if type_ is None:
            problem = InputError(bag, "does not name the type of the arm", "give --robot")
            failed.append(BagResult(bag, None, str(problem)))
            continue
        group = groups.get(name, _ArmBags(type_, ()))
        if group.robot != type_:
            words = f"is of the arm {name}, a {type_}, which is a {group.robot} in bags before"
            problem = InputError(bag, words, "identify one of them on its own")
            failed.append(BagResult(bag, None, str(problem)))
            continue
        groups[name] = _ArmBags(type_, (*group.bags, bag.absolute()))
    return dict(sorted(groups.items()))


def _read_origin(bag: Path, robot: str | None) -> RecordedArm:
    """Serial number or torque constants in a bag, which show the arm that it was recorded on.

    Args:
        bag: path of the bag.
        robot: type of the arm; None for the type that the bag names.
    """
    info = read_info(bag)
    type_ = robot or info.robot
    constants = None
    if type_ is not None and not info.serial:
        constants = recorded_constants(bag, load_robot(type_))
    return RecordedArm(bag, info, constants)


def _arm_names(origins: Sequence[RecordedArm]) -> list[str]:
    """Name of the arm of each recording: by serial number, else by type and stated constants."""
    names = [arm_name(origin.info) for origin in origins]
    without_serial = defaultdict[str, list[int]](list)  # numbers of recordings, by name
    for number, origin in enumerate(origins):
        if not origin.info.serial:
            without_serial[names[number]].append(number)
    for name, numbers in without_serial.items():
        arms = arms_by_constants([origins[number] for number in numbers])
        for number, arm in zip(numbers, arms, strict=True):
            if arm > 0:
                names[number] = f"{name}_{arm + 1}"
    return names


def _identify(_: Path, arm: tuple[str, _ArmBags, IdentificationOptions]) -> IdentifiedArm:
    """Identify one arm, perhaps in another process.

    Args:
        arm: name, bags, and options with its prior.
    """
    name, group, options = arm
    found = identify(group.bags, group.robot, options, each=in_this_process)
    left_out = {result.bag for result in found.failed}
    used = tuple(bag for bag in group.bags if bag not in left_out)
    return IdentifiedArm(name, found.model, used, found.failed, found.warnings)
