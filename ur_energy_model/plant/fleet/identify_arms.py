"""Models of all arms of a fleet in one go, each with what the others tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ur_energy_model.errors import InputError
from ur_energy_model.identification.arm_prior import OF_TYPE, ArmPrior
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.many_bags import BagResult, ForEachBag, in_this_process
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.plant.fleet.fleet import Fleet, FleetArm
from ur_energy_model.plant.fleet.model_evidence import evidence_of
from ur_energy_model.telemetry.arm_identity import arm_name
from ur_energy_model.telemetry.bag.reader import read_info
from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.typing import Progress

FLEET_KEY = "fleet"
"""Key in the provenance of a model: number of the other arms that its prior came from."""


@dataclass(frozen=True)
class ArmBags:
    """The recordings of one arm.

    Attributes:
        name: of the arm.
        robot: its robot description, name or path.
        bags: recordings.
        prior: from other arms.
    """

    name: str
    robot: str
    bags: tuple[Path, ...]
    prior: ArmPrior = OF_TYPE


@dataclass(frozen=True)
class IdentifiedArm:
    """The model of one arm.

    Attributes:
        name: of the arm.
        model: identified.
        bags: that it was identified from.
        failed: bags that were left out, with reasons.
        warnings: for the user, one line each.
    """

    name: str
    model: EnergyModel
    bags: tuple[Path, ...]
    failed: tuple[BagResult[Any], ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass
class FleetIdentification:
    """Result of `identify_arms`.

    Attributes:
        arms: in order of their names.
        failed: bags without a model, with reasons.
        fleet: what the arms, those known before included, have in common.
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
    each: ForEachBag = in_this_process,
    progress: Progress | None = None,
) -> FleetIdentification:
    """Identify one model per arm (serial number) from any number of bags.

    Every arm is identified twice: first alone, then with the prior that all others give. What an
    arm's own recordings say never enters its prior.

    Args:
        bags: of any arms, in any order.
        options: of every identification.
        robot: description of all arms; None takes the type in each bag.
        known: arms identified before; those that have bags here are replaced.
        each: works on the arms.
        progress: called with the finished fraction and text.
    """
    out = FleetIdentification()
    groups = _arms(bags, robot, each, out)
    alone = _identified(groups, options, each, _share(progress, 0.0), out)
    names = {arm.name for arm in alone}
    others = [arm for arm in known if arm.name not in names]
    out.fleet = Fleet([*others, *(fleet_arm(arm.name, arm.model) for arm in alone)])
    again = []
    for group in groups:
        prior = out.fleet.prior(load_robot(group.robot), group.name)
        if group.name in names and prior is not None:
            again.append(replace(group, prior=prior))
    failed = FleetIdentification()
    better = {
        arm.name: arm for arm in _identified(again, options, each, _share(progress, 0.5), failed)
    }
    count = len(out.fleet.arms) - 1
    out.arms = [
        _with_provenance(better[arm.name], count) if arm.name in better else arm for arm in alone
    ]
    return out


def fleet_arm(name: str, model: EnergyModel) -> FleetArm:
    """An identified arm of a fleet.

    Raises:
        RobotFileError: the model's robot file is missing or damaged.
    """
    robot = load_robot(model.robot)
    return FleetArm(name, robot, evidence_of(model, robot))


def _arms(
    bags: Sequence[Path], robot: str | None, each: ForEachBag, out: FleetIdentification
) -> list[ArmBags]:
    """Bags by arm, in order of the arms' names."""
    groups: dict[str, tuple[str, list[Path]]] = {}
    for result in each(_info, bags):
        info = result.value
        if info is None:
            out.failed.append(result)
            continue
        type_ = robot or info.robot
        if type_ is None:
            problem = InputError(result.bag, "does not tell the type of the arm", "give --robot")
            out.failed.append(BagResult(result.bag, None, str(problem)))
            continue
        name = arm_name(info)
        known, own = groups.setdefault(name, (type_, []))
        if known != type_:
            problem = InputError(
                result.bag,
                f"is of the arm {name}, a {type_}, which is a {known} in bags before",
                "identify one of them on its own",
            )
            out.failed.append(BagResult(result.bag, None, str(problem)))
            continue
        own.append(result.bag.absolute())
    return [ArmBags(name, type_, tuple(own)) for name, (type_, own) in sorted(groups.items())]


def _identified(
    groups: Sequence[ArmBags],
    options: IdentificationOptions,
    each: ForEachBag,
    progress: Progress | None,
    out: FleetIdentification,
) -> list[IdentifiedArm]:
    arms = []
    first = [group.bags[0] for group in groups]
    work = partial(_identify, options)
    for group, result in zip(groups, each(work, first, progress, groups), strict=True):
        if result.value is None:
            out.failed += [replace(result, bag=bag) for bag in group.bags]
            continue
        out.failed += result.value.failed
        arms.append(result.value)
    return arms


def _info(bag: Path) -> RecordingInfo:
    return read_info(bag)


def _identify(options: IdentificationOptions, _: Path, arm: ArmBags) -> IdentifiedArm:
    """One arm, perhaps in another process."""
    options = replace(options, prior=arm.prior)
    found = identify(arm.bags, arm.robot, options, each=in_this_process)
    left_out = {result.bag for result in found.failed}
    used = tuple(bag for bag in arm.bags if bag not in left_out)
    return IdentifiedArm(arm.name, found.model, used, found.failed, found.warnings)


def _with_provenance(arm: IdentifiedArm, others: int) -> IdentifiedArm:
    provenance = {**arm.model.provenance, FLEET_KEY: {"arms": others}}
    return replace(arm, model=replace(arm.model, provenance=provenance))


def _share(progress: Progress | None, begin: float) -> Progress | None:
    """The progress of one of the two passes."""
    if progress is None:
        return None

    def report(fraction: float, text: str) -> None:
        progress(begin + 0.5 * fraction, text)

    return report
