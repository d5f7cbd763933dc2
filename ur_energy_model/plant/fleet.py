# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fleets: what identified arms show about another arm.

Joints of one size have the same nominal constant and gear ratio, also in arms of several
types. From the constants of identified arms, `SizeHierarchy` computes the distribution of
torque constants and reflected inertias of a size, which is the prior of another arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import InputError
from ur_energy_model.identification.assembly import (
    EVIDENCE,
    ArmPrior,
    Evidence,
    changes_between,
)
from ur_energy_model.identification.reflected_inertia import (
    InertiaEstimate,
    expected_inertia,
)
from ur_energy_model.identification.torque_constants import (
    ARM_SPREAD,
    FLEET,
    FLEET_POWER,
    LINK_WEIGHT_ERROR,
    TorqueConstantPrior,
)
from ur_energy_model.many_bags import in_this_process
from ur_energy_model.model.controller_constants import (
    SAME_ARM_SPREAD,
    ControllerConstants,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.plant.size_hierarchy import SizeHierarchy
from ur_energy_model.typing import Array

_CONSTANT = "torque_constant"
_INERTIA = "reflected_inertia"
_DIGITS = 9  # digits to which nominal constants of joints of one size are equal
_SizeJoints = list[tuple[RobotDescription, int]]
"""The joints of a size: type of robot and index of the joint."""


def _nominal(robot: RobotDescription) -> dict[str, Array]:
    """Nominal constants [n] by name, N m/A (motor side) and kg m^2 (joint side).

    Constants that the robot file does not have are NaN.
    """
    return {_CONSTANT: robot.torque_constant, _INERTIA: expected_inertia(robot).value}


@dataclass(frozen=True)
class FleetArm:
    """An identified arm.

    Attributes:
        name: name of the arm.
        robot: description of the type of the arm.
        evidence: what recordings of the arm itself show, without any prior.
    """

    name: str
    robot: RobotDescription
    evidence: Evidence


@dataclass(frozen=True)
class SharedConstant:
    """Distribution of one constant of one joint size over the arms of a fleet.

    Attributes:
        what: "torque_constant" or "reflected_inertia".
        joints: joints of the size, "<robot>: <joint>" each.
        value: expected constant of each joint in another arm: N m/A (motor side), or kg
            m^2 (joint side).
        spread: likeliest standard deviation between arms, relative.
        spread_limit: value that the spread exceeds with a probability of 5 %.
        arms: number of arms that show the constant.
    """

    what: str
    joints: tuple[str, ...]
    value: tuple[float, ...]
    spread: float
    spread_limit: float
    arms: int


class _Size(NamedTuple):
    """One constant of the k joints of one size in all arms of a fleet.

    Attributes:
        what: "torque_constant" or "reflected_inertia".
        joints: type of robot and index of each joint.
        hierarchy: what the arms show of the constant.
        measured: whether any arm shows it.
        from_links: whether the error of the links' weight, the same in all arms, is in
            it.
    """

    what: str
    joints: list[tuple[RobotDescription, int]]
    hierarchy: SizeHierarchy
    measured: bool
    from_links: bool


class Fleet:
    """Identified arms of one type or several.

    Args:
        arms: arms with different names.

    Attributes:
        arms: arms of the fleet, as given.
    """

    def __init__(self, arms: Sequence[FleetArm]) -> None:
        self.arms = tuple(arms)
        self._sizes_of_types: dict[tuple[str, ...], list[_Size]] = {}
        """Sizes that were computed before, by names of the types of robot."""

    def prior(self, robot: RobotDescription, name: str | None = None) -> ArmPrior | None:
        """Prior of the constants of an arm, from all other arms.

        Args:
            robot: description of the arm's type.
            name: name of the arm, whose own recordings do not enter its prior; None for a
                new arm.

        Returns:
            The prior, where joints without evidence have the prior of their type; None if
            no arm shows a joint of its sizes.
        """
        constants = TorqueConstantPrior.of_type(robot)
        expected = expected_inertia(robot)
        mean = constants.mean.copy()
        covariance = constants.covariance.copy()
        independent = constants.independent.copy()
        source = list(constants.source)
        inertia = expected.value.copy()
        inertia_std = expected.std.copy()
        names = [arm.name for arm in self.arms]
        without = names.index(name) if name in names else None
        found = False
        for size in self._sizes(robot):
            of_size, joints = _joints_of_type(size.joints, robot)
            predicted = size.hierarchy.predict(without)
            if not joints or not predicted.arms:
                continue
            found = True
            relative = predicted.mean[of_size]
            block = predicted.covariance[np.ix_(of_size, of_size)]
            if size.what == _CONSTANT:
                mean[joints] = relative
                covariance[np.ix_(joints, joints)] = block
                independent[joints] = predicted.independent
                for j in joints:
                    source[j] = FLEET if size.from_links else FLEET_POWER
            else:
                nominal = expected.value[joints]
                inertia[joints] = relative * nominal
                inertia_std[joints] = np.sqrt(np.diag(block)) * nominal
        if not found:
            return None
        return ArmPrior(
            TorqueConstantPrior(mean, covariance, independent, tuple(source)),
            InertiaEstimate(inertia, inertia_std, expected.source),
        )

    def shared(self) -> tuple[SharedConstant, ...]:
        """What the arms have in common, for each constant and joint size that any arm shows."""
        shared = []
        for size in self._sizes():
            if not size.measured:
                continue
            found = size.hierarchy.predict()
            names = []
            nominal = []
            for robot, joint in size.joints:
                names.append(f"{robot.name}: {robot.joint_names[joint]}")
                nominal.append(_nominal(robot)[size.what][joint])
            constant = SharedConstant(
                what=size.what,
                joints=tuple(names),
                value=tuple((found.mean * nominal).tolist()),
                spread=found.spread,
                spread_limit=found.spread_limit,
                arms=found.arms,
            )
            shared.append(constant)
        return tuple(shared)

    def _sizes(self, *others: RobotDescription) -> list[_Size]:
        """Joint sizes of the arms, with the joints of further types of robot."""
        robots = {robot.name: robot for robot in others}
        robots |= {arm.robot.name: arm.robot for arm in self.arms}
        types = tuple(sorted(robots))
        if types not in self._sizes_of_types:
            groups: dict[tuple[str, float, float], _SizeJoints] = {}
            for robot in robots.values():
                for what, nominal in _nominal(robot).items():
                    for joint in np.flatnonzero(np.isfinite(nominal)).tolist():
                        constant = round(float(nominal[joint]), _DIGITS)
                        key = (what, constant, float(robot.gear_ratio[joint]))
                        groups.setdefault(key, []).append((robot, joint))
            sizes = [self._size(what, joints) for (what, _, _), joints in groups.items()]
            self._sizes_of_types[types] = sizes
        return self._sizes_of_types[types]

    def _size(self, what: str, joints: _SizeJoints) -> _Size:
        """One constant of the joints of a size, as all arms show it.

        The error of the links' weight is the same in all arms. It is added to the
        deviations of torque constants that have it where other constants do not: these
        decide.

        Args:
            what: "torque_constant" or "reflected_inertia".
            joints: joints of one size.
        """
        shape = (len(self.arms), len(joints))
        value = np.full(shape, np.nan)
        std = np.full(shape, np.nan)
        links = np.zeros(shape)
        for row, arm in enumerate(self.arms):
            of_size, of_arm = _joints_of_type(joints, arm.robot)
            nominal = _nominal(arm.robot)[what]
            evidence = arm.evidence
            shown = evidence.inertia
            deviation = evidence.inertia_std
            if what == _CONSTANT:
                shown = evidence.torque_constant
                deviation = evidence.torque_constant_std
            value[row, of_size] = (shown / nominal)[of_arm]
            std[row, of_size] = (deviation / nominal)[of_arm]
            links[row, of_size] = evidence.from_links[of_arm]
        known = np.isfinite(value) & np.isfinite(std)
        from_links = not (known & (links == 0.0)).any()
        nominal_std = ARM_SPREAD
        if what != _CONSTANT:
            robot, joint = joints[0]
            expected = expected_inertia(robot)
            nominal_std = float(expected.std[joint] / expected.value[joint])
        elif not from_links:
            std = np.where(links > 0.0, np.hypot(std, LINK_WEIGHT_ERROR), std)
        hierarchy = SizeHierarchy(value, std, nominal_std)
        return _Size(what, joints, hierarchy, bool(known.any()), from_links)


def _joints_of_type(
    joints: _SizeJoints, robot: RobotDescription
) -> tuple[list[int], list[int]]:
    """The joints of a size that a type of robot has: places in the size, and joint indices."""
    places = []
    indices = []
    for place, (other, joint) in enumerate(joints):
        if other.name == robot.name:
            places.append(place)
            indices.append(joint)
    return places, indices


# What the recordings of an identified arm show, read from its model.


def fleet_arm(name: str, model: EnergyModel) -> FleetArm:
    """An identified arm, with what its recordings show from the provenance of its model.

    Torque constants that its controller states count as shown.

    Args:
        name: name of the arm.
        model: model of the arm.

    Raises:
        InputError: the model does not state what its recordings show.
        RobotFileError: the model's robot file is missing or damaged.
    """
    robot = load_robot(model.robot)
    stated: Any = model.provenance.get(EVIDENCE)
    values: dict[str, Array] = {}
    try:
        for each in fields(Evidence):
            values[each.name] = np.array(stated[each.name], dtype=float)
    except (KeyError, TypeError, ValueError):
        values = {}
    if not values or any(column.shape != (model.dof,) for column in values.values()):
        remedy = "identify the arm again with this version"
        raise InputError(
            f"model of {name}", "does not state what its recordings show", remedy
        )
    for name_of_std in ("torque_constant_std", "inertia_std", "session_std"):
        std = values[name_of_std]
        values[name_of_std] = np.where(std > 0, std, np.nan)  # 0: nothing is shown
    evidence = Evidence(**values)
    if model.controller_constants is not None:
        evidence = with_stated(evidence, model.controller_constants, robot)
    return FleetArm(name, robot, evidence)


def with_stated(
    evidence: Evidence, constants: ControllerConstants, robot: RobotDescription
) -> Evidence:
    """Evidence with the torque constants that the controller of the arm states, where it does.

    Args:
        evidence: what the recordings of the arm show.
        constants: torque constants that the controller of the arm states, joint side.
        robot: description of its type, with the gear ratios.
    """
    known = constants.known
    stated = constants.torque_per_ampere / robot.gear_ratio
    deviation = constants.relative_deviation * stated
    scatter = np.hypot(constants.std / robot.gear_ratio, SAME_ARM_SPREAD * stated)
    return replace(
        evidence,
        torque_constant=np.where(known, stated, evidence.torque_constant),
        torque_constant_std=np.where(known, deviation, evidence.torque_constant_std),
        from_links=np.where(known, 0.0, evidence.from_links),
        session_std=np.where(known, scatter, evidence.session_std),
    )


_CHANGED = 4.0
"""Change of a torque constant over its standard deviation from which it is reported: in 2 % of the
pairs of one UR10e's recordings (`changes_between`), where none has changed."""


def changed_constants(known: Sequence[FleetArm], arm: FleetArm) -> tuple[str, ...]:
    """Torque constants of an arm that differ from the constants of its earlier model.

    Args:
        known: arms known before, with or without this one.
        arm: the arm as it was identified now.

    Returns:
        A line for each joint with a change of more than _CHANGED standard deviations.
    """
    lines = []
    for earlier in known:
        if earlier.name != arm.name or earlier.robot.name != arm.robot.name:
            continue
        changes, deviations = changes_between(earlier.evidence, arm.evidence)
        for joint, change, std in zip(
            arm.robot.joint_names, changes, deviations, strict=True
        ):
            if abs(change) > _CHANGED * std:
                percent = f"{100 * change:+.1f} ± {100 * CONFIDENCE * std:.1f} %"
                lines.append(
                    f"{joint}: torque constant {percent} against the arm's model before; "
                    "check payload and mounting in the recordings of both"
                )
    return tuple(lines)


# A folder with one model file per arm, named <arm>.yaml.


def read_fleet(folder: Path) -> tuple[list[FleetArm], list[str]]:
    """The arms whose models are in a folder.

    Args:
        folder: folder with one model file per arm, named <arm>.yaml.

    Returns:
        The arms in order of their names, and a line about each model that cannot be read.

    Raises:
        InputError: there is no such folder.
    """
    if not folder.is_dir():
        remedy = "make one with `ur_energy identify --per-arm`"
        raise InputError(folder, "is not a folder with models", remedy)

    def read(path: Path) -> FleetArm:
        """The arm of a model file."""
        return fleet_arm(path.stem, load_model(path))

    results = list(in_this_process(read, sorted(folder.glob("*.yaml"))))
    arms = [result.value for result in results if result.value is not None]
    return arms, [result.reason for result in results if result.reason is not None]


def make_folder(folder: Path) -> None:
    """Make the folder of the models, unless it is there.

    Raises:
        InputError: the folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"cannot be made ({error.strerror})"
        remedy = "name a folder for the models"
        raise InputError(folder, problem, remedy) from error
