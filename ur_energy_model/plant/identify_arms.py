"""Models of all arms of a fleet in one go, each with what the others show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.identification.assembly import EVIDENCE, OF_TYPE, ArmPrior, Evidence
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.many_bags import BagExecutor, BagResult, in_this_process
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import load_model, save_model
from ur_energy_model.model.robots import load_robot
from ur_energy_model.plant.fleet import Fleet, FleetArm
from ur_energy_model.telemetry.bag.reader import read_info
from ur_energy_model.telemetry.samples import RecordingInfo, arm_name
from ur_energy_model.typing import Array, Progress

FLEET_KEY = "fleet"
"""Key in the provenance of a model: number of the other arms that its prior came from."""


@dataclass(frozen=True)
class IdentifiedArm:
    """The model of one arm, bags it was identified from, those left out, and warnings."""

    name: str
    model: EnergyModel
    bags: tuple[Path, ...]
    failed: tuple[BagResult[Any], ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass
class FleetIdentification:
    """Arms in order of their names, bags without a model, and the fleet with those known before."""

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
    arm's own recordings show never enters its prior. `robot` is the description of all arms, None
    takes the type in each bag; arms known before that have bags here are replaced.
    """
    out = FleetIdentification()
    groups = _bags_of_arms(bags, robot, each, out.failed)

    def run(
        begin: float, priors: Mapping[str, ArmPrior]
    ) -> tuple[dict[str, IdentifiedArm], list[BagResult[Any]]]:
        """Models of the arms with priors, and their bags without any."""
        arms, problems = {}, []
        names = [name for name in groups if name in priors]
        given = [(name, *groups[name], replace(options, prior=priors[name])) for name in names]
        first = [own[0] for _, _, own, _ in given]
        results = each(_identify, first, _share(progress, begin), given)
        for name, result in zip(names, results, strict=True):
            if result.value is None:
                problems += [replace(result, bag=bag) for bag in groups[name][1]]
            else:
                arms[name] = result.value
                problems += result.value.failed
        return arms, problems

    alone, without_model = run(0.0, dict.fromkeys(groups, OF_TYPE))
    others = [arm for arm in known if arm.name not in alone]
    out.failed += without_model
    out.fleet = Fleet([*others, *(fleet_arm(arm.name, arm.model) for arm in alone.values())])
    priors = {name: out.fleet.prior(load_robot(groups[name][0]), name) for name in alone}
    better, _ = run(0.5, {name: prior for name, prior in priors.items() if prior is not None})
    count = len(out.fleet.arms) - 1
    for name, arm in alone.items():
        if name in better:
            arm, model = better[name], better[name].model
            provenance = {**model.provenance, FLEET_KEY: {"arms": count}}
            arm = replace(arm, model=replace(model, provenance=provenance))
        out.arms.append(arm)
    return out


def _bags_of_arms(
    bags: Sequence[Path], robot: str | None, each: BagExecutor, failed: list[BagResult[Any]]
) -> dict[str, tuple[str, tuple[Path, ...]]]:
    """Type and bags of each arm, in order of the arms' names; other bags are added to `failed`."""
    groups: dict[str, tuple[str, tuple[Path, ...]]] = {}
    for result in each(_info, bags):
        info, bag, problem = result.value, result.bag, None
        if info is None:
            failed.append(result)
            continue
        name, type_ = arm_name(info), robot or info.robot
        known, own = groups.get(name, (type_, ()))
        if type_ is None or known is None:
            problem = InputError(bag, "does not name the type of the arm", "give --robot")
        elif known != type_:
            words = f"is of the arm {name}, a {type_}, which is a {known} in bags before"
            problem = InputError(bag, words, "identify one of them on its own")
        else:
            groups[name] = type_, (*own, bag.absolute())
        failed += [] if problem is None else [BagResult(bag, None, str(problem))]
    return dict(sorted(groups.items()))


def _info(bag: Path) -> RecordingInfo:
    return read_info(bag)


def _identify(
    _: Path, arm: tuple[str, str, tuple[Path, ...], IdentificationOptions]
) -> IdentifiedArm:
    """One arm, perhaps in another process."""
    name, robot, bags, options = arm
    found = identify(bags, robot, options, each=in_this_process)
    left_out = {result.bag for result in found.failed}
    used = tuple(bag for bag in bags if bag not in left_out)
    return IdentifiedArm(name, found.model, used, found.failed, found.warnings)


def _share(progress: Progress | None, begin: float) -> Progress | None:
    """The progress of one of the two passes."""
    if progress is None:
        return None
    return lambda fraction, text: progress(begin + 0.5 * fraction, text)


# What the recordings of an identified arm show, read from its model.


def fleet_arm(name: str, model: EnergyModel) -> FleetArm:
    """An identified arm of a fleet.

    Raises:
        InputError: the model does not state what its recordings show.
        RobotFileError: the model's robot file is missing or damaged.
    """
    robot = load_robot(model.robot)
    stated: Any = model.provenance.get(EVIDENCE)
    columns: list[Array]
    try:
        columns = [np.array(stated[each.name], dtype=float) for each in fields(Evidence)]
    except (KeyError, TypeError, ValueError):
        columns = []
    if not columns or any(column.shape != (model.dof,) for column in columns):
        remedy = "identify the arm again with this version"
        raise InputError(f"model of {name}", "does not state what its recordings show", remedy)
    for std in (columns[1], columns[3]):  # NaN stood for None
        std[~(std > 0)] = np.nan
    return FleetArm(name, robot, Evidence(*columns))


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
