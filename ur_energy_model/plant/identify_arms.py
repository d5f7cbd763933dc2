"""Models of all arms of a fleet in one go, each with what the others tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.identification.assembly import EVIDENCE, OF_TYPE, ArmPrior, Evidence
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.identification.reflected_inertia import expected_inertia
from ur_energy_model.identification.torque_constants import (
    TorqueConstantPrior,
    is_from_links,
    own_part,
)
from ur_energy_model.many_bags import BagExecutor, BagResult, in_this_process
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.plant.fleet import Fleet, FleetArm
from ur_energy_model.telemetry.bag.reader import read_info
from ur_energy_model.telemetry.samples import RecordingInfo, arm_name
from ur_energy_model.typing import Array, Mask, Progress

# What the recordings of an identified arm say, read from its model.

_PRIOR = "prior"


def evidence_of(model: EnergyModel, robot: RobotDescription) -> Evidence:
    """What the recordings of a model say without any prior.

    Models of versions that did not state it are taken as they are, less the prior of their type.

    Args:
        model: of an arm with n joints.
        robot: its description.
    """
    stated = model.provenance.get(EVIDENCE)
    if isinstance(stated, Mapping) and (read := _read(stated, model.dof)) is not None:
        return read
    prior = TorqueConstantPrior.of_type(robot)
    nominal = robot.torque_constant
    constant = np.array([joint.torque_constant for joint in model.joints])
    std = np.array([own_part(joint) for joint in model.joints])
    expected = expected_inertia(robot)
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    inertia_std = np.array([joint.std.get("reflected_inertia", np.nan) for joint in model.joints])
    spread = np.sqrt(np.diag(prior.covariance)) * nominal
    return Evidence(
        *_without(constant, std, nominal, spread, _told(model, "torque_constant")),
        *_without(
            inertia, inertia_std, expected.value, expected.std, _told(model, "reflected_inertia")
        ),
        np.array(
            [float(is_from_links(each.source.get("torque_constant", ""))) for each in model.joints]
        ),
    )


def _read(stated: Mapping[str, Any], n: int) -> Evidence | None:
    """Evidence from the provenance; None if it is of another form."""
    try:
        names = [field.name for field in fields(Evidence)]
        columns = [np.array(stated[name], dtype=float) for name in names]  # None becomes NaN
    except (KeyError, TypeError, ValueError):
        return None
    if any(column.shape != (n,) for column in columns):
        return None
    for std in (columns[1], columns[3]):
        std[~(std > 0)] = np.nan
    return Evidence(*columns)


def _told(model: EnergyModel, name: str) -> Mask:
    """Whether the arm's own recordings tell a constant [n]."""
    return np.array([joint.source.get(name, _PRIOR) != _PRIOR for joint in model.joints])


def _without(
    value: Array, std: Array, prior: Array, prior_std: Array, told: Mask
) -> tuple[Array, Array]:
    """A normal estimate less its normal prior, and its deviation [n] each; NaN without data."""
    with np.errstate(invalid="ignore", divide="ignore"):
        left = std**-2.0 - np.where(np.isfinite(prior_std), prior_std**-2.0, 0.0)
        known = told & (left > 0.0)
        pull = np.where(np.isfinite(prior_std), prior * prior_std**-2.0, 0.0)
        own = (value * std**-2.0 - pull) / np.where(known, left, 1.0)
        return np.where(known, own, np.nan), np.where(known, left, np.nan) ** -0.5


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
    each: BagExecutor = in_this_process,
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
    bags: Sequence[Path], robot: str | None, each: BagExecutor, out: FleetIdentification
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
    each: BagExecutor,
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


# A folder with one model file per arm, named <arm>.yaml.

_SUFFIX = ".yaml"


def read_fleet(folder: Path) -> tuple[list[FleetArm], list[str]]:
    """The arms of a folder in order of their names, and what cannot be read, a line each.

    Raises:
        InputError: there is no such folder.
    """
    if not folder.is_dir():
        raise InputError(
            folder, "is not a folder with models", "make one with `ur_energy identify --per-arm`"
        )
    results = list(in_this_process(_read_model, sorted(folder.glob(f"*{_SUFFIX}"))))
    arms = [result.value for result in results if result.value is not None]
    return arms, [result.reason for result in results if result.reason is not None]


def _read_model(path: Path) -> FleetArm:
    return fleet_arm(path.stem, load_model(path))


def save_in(folder: Path, name: str, model: EnergyModel) -> Path:
    """Write the model of an arm; returns the path.

    Raises:
        InputError: it cannot be written.
    """
    path = folder / f"{name}{_SUFFIX}"
    save_model(model, path)
    return path


def make_folder(folder: Path) -> None:
    """Make the folder of the models, unless it is there.

    Raises:
        InputError: that is not possible.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            folder, f"cannot be made ({error.strerror})", "name a folder for the models"
        ) from error
