# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fleets: what identified arms show about another arm, and models of all arms in one go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.consistency.controller_constants import recorded_constants
from ur_energy_model.consistency.same_origin import RecordedArm, arms_by_constants
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import InputError
from ur_energy_model.identification.assembly import (
    EVIDENCE,
    OF_TYPE,
    ArmPrior,
    Evidence,
    changes_between,
)
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.identification.torque_constants import (
    ARM_SPREAD,
    FLEET,
    FLEET_POWER,
    LINK_WEIGHT_ERROR,
    InertiaEstimate,
    TorqueConstantPrior,
    expected_inertia,
)
from ur_energy_model.many_bags import BagExecutor, BagResult, in_this_process
from ur_energy_model.model.controller_constants import (
    SAME_ARM_SPREAD,
    ControllerConstants,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import load_model
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.telemetry.bag.reader import read_info
from ur_energy_model.telemetry.samples import arm_name
from ur_energy_model.typing import Array, Mask, Progress

_CONSTANT = "torque_constant"
_INERTIA = "reflected_inertia"
_DIGITS = 9  # of nominal constants that are equal for joints of one size


def _nominal(robot: RobotDescription) -> dict[str, Array]:
    """Nominal constants [n] by name; NaN where the robot file has none."""
    return {_CONSTANT: robot.torque_constant, _INERTIA: expected_inertia(robot).value}


@dataclass(frozen=True)
class FleetArm:
    """An identified arm; evidence is what its recordings show alone."""

    name: str
    robot: RobotDescription
    evidence: Evidence


@dataclass(frozen=True)
class SharedConstant:
    """What the arms of a fleet have in common in one constant of one joint size.

    Attributes:
        what: "torque_constant" or "reflected_inertia".
        joints: "<robot>: <joint>" each.
        value: expected of each in another arm: N m/A, or kg m^2.
        spread: relative, see `Prediction`.
        spread_limit: relative, see `Prediction`.
        arms: number of arms.
    """

    what: str
    joints: tuple[str, ...]
    value: tuple[float, ...]
    spread: float
    spread_limit: float
    arms: int


class _Size(NamedTuple):
    """One constant of the joints of one size (robots and indices [k]) in all arms of a fleet.

    `measured`: whether any arm shows it; `from_links`: whether the error of the links'
    weight, the same in all arms, is in it.
    """

    what: str
    joints: list[tuple[RobotDescription, int]]
    hierarchy: SizeHierarchy
    measured: bool
    from_links: bool


class Fleet:
    """Identified arms with names of their own, of one type or several."""

    def __init__(self, arms: Sequence[FleetArm]) -> None:
        self.arms = tuple(arms)
        # by names of the types of robot
        self._known: dict[tuple[str, ...], list[_Size]] = {}

    def prior(self, robot: RobotDescription, name: str | None = None) -> ArmPrior | None:
        """Prior of an arm, named or new, from all others; None without any joint of its sizes."""
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
            own = [
                k for k, (each, _) in enumerate(size.joints) if each.name == robot.name
            ]
            predicted = size.hierarchy.predict(without)
            if not own or not predicted.arms:
                continue
            found = True
            joints = [size.joints[k][1] for k in own]
            block = predicted.covariance[np.ix_(own, own)]
            if size.what == _CONSTANT:
                mean[joints] = predicted.mean[own]
                covariance[np.ix_(joints, joints)] = block
                independent[joints] = predicted.independent
                for j in joints:
                    source[j] = FLEET if size.from_links else FLEET_POWER
            else:
                inertia[joints] = predicted.mean[own] * expected.value[joints]
                inertia_std[joints] = np.sqrt(np.diag(block)) * expected.value[joints]
        if not found:
            return None
        return ArmPrior(
            TorqueConstantPrior(mean, covariance, independent, tuple(source)),
            InertiaEstimate(inertia, inertia_std, expected.source),
        )

    def shared(self) -> tuple[SharedConstant, ...]:
        """What the arms have in common, by constant and joint size."""
        shared = []
        for what, joints, hierarchy, measured, _ in self._sizes():
            if measured:
                found = hierarchy.predict()
                names = tuple(
                    f"{robot.name}: {robot.joint_names[j]}" for robot, j in joints
                )
                value = found.mean * [_nominal(robot)[what][j] for robot, j in joints]
                spreads = (found.spread, found.spread_limit, found.arms)
                shared.append(
                    SharedConstant(what, names, tuple(value.tolist()), *spreads)
                )
        return tuple(shared)

    def _sizes(self, *others: RobotDescription) -> list[_Size]:
        """Joint sizes of the arms, with the joints of further types of robot."""
        robots = {
            robot.name: robot for robot in (*others, *(arm.robot for arm in self.arms))
        }
        known = tuple(sorted(robots))
        if known not in self._known:
            groups: dict[
                tuple[str, float, float], list[tuple[RobotDescription, int]]
            ] = {}
            for robot in robots.values():
                for what, nominal in _nominal(robot).items():
                    for j in np.flatnonzero(np.isfinite(nominal)).tolist():
                        key = (
                            what,
                            round(float(nominal[j]), _DIGITS),
                            float(robot.gear_ratio[j]),
                        )
                        groups.setdefault(key, []).append((robot, j))
            self._known[known] = [
                self._size(what, of) for (what, *_), of in groups.items()
            ]
        return self._known[known]

    def _size(self, what: str, joints: list[tuple[RobotDescription, int]]) -> _Size:
        shape = (len(self.arms), len(joints))
        value = np.full(shape, np.nan)
        std = np.full(shape, np.nan)
        links = np.zeros(shape)
        for a, arm in enumerate(self.arms):
            own = [
                k for k, (robot, _) in enumerate(joints) if robot.name == arm.robot.name
            ]
            columns = [joints[k][1] for k in own]
            nominal = _nominal(arm.robot)[what]
            evidence = arm.evidence
            shown = evidence.inertia
            deviation = evidence.inertia_std
            if what == _CONSTANT:
                shown = evidence.torque_constant
                deviation = evidence.torque_constant_std
            value[a, own] = (shown / nominal)[columns]
            std[a, own] = (deviation / nominal)[columns]
            links[a, own] = evidence.from_links[columns]
        known = np.isfinite(value) & np.isfinite(std)
        from_links = not (known & (links == 0.0)).any()
        robot, j = joints[0]
        expected = expected_inertia(robot)
        wide = ARM_SPREAD
        if what != _CONSTANT:
            wide = float(expected.std[j] / expected.value[j])
        elif not from_links:
            std = np.where(links > 0.0, np.hypot(std, LINK_WEIGHT_ERROR), std)
        hierarchy = SizeHierarchy(value, std, wide)
        return _Size(what, joints, hierarchy, bool(known.any()), from_links)


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
        raise InputError(
            f"model of {name}", "does not state what its recordings show", remedy
        )
    for std in (columns[1], columns[3], columns[5]):  # NaN stood for None
        std[~(std > 0)] = np.nan
    evidence = Evidence(*columns)
    if model.controller_constants is not None:
        evidence = with_stated(evidence, model.controller_constants, robot)
    return FleetArm(name, robot, evidence)


def with_stated(
    evidence: Evidence, constants: ControllerConstants, robot: RobotDescription
) -> Evidence:
    """Evidence with the torque constants that the controller of the arm states, where it does."""
    known = constants.known
    stated = constants.torque_per_ampere / robot.gear_ratio
    scatter = np.hypot(constants.std / robot.gear_ratio, SAME_ARM_SPREAD * stated)
    return replace(
        evidence,
        torque_constant=np.where(known, stated, evidence.torque_constant),
        torque_constant_std=np.where(
            known, constants.relative_deviation * stated, evidence.torque_constant_std
        ),
        from_links=np.where(known, 0.0, evidence.from_links),
        session_std=np.where(known, scatter, evidence.session_std),
    )


_CHANGED = 4.0
"""Change of a torque constant over its standard deviation from which it is reported: in 2 % of the
pairs of one UR10e's recordings (`changes_between`), where none has changed."""


def changed_constants(known: Sequence[FleetArm], arm: FleetArm) -> tuple[str, ...]:
    """Torque constants of an arm that differ from those it had among the known ones, in words."""
    own = (arm.name, arm.robot.name)
    changes = [
        zip(
            arm.robot.joint_names,
            *changes_between(each.evidence, arm.evidence),
            strict=True,
        )
        for each in known
        if (each.name, each.robot.name) == own
    ]
    return tuple(
        f"{name}: torque constant {100 * by:+.1f} ± {100 * CONFIDENCE * std:.1f} % against the "
        "arm's model before; check payload and mounting in the recordings of both"
        for name, by, std in chain.from_iterable(changes)
        if abs(by) > _CHANGED * std
    )


# A folder with one model file per arm, named <arm>.yaml.


def read_fleet(folder: Path) -> tuple[list[FleetArm], list[str]]:
    """The arms of a folder in order of their names, and what cannot be read, a line each.

    Raises:
        InputError: there is no such folder.
    """
    if not folder.is_dir():
        remedy = "make one with `ur_energy identify --per-arm`"
        raise InputError(folder, "is not a folder with models", remedy)

    def read(path: Path) -> FleetArm:
        return fleet_arm(path.stem, load_model(path))

    results = list(in_this_process(read, sorted(folder.glob("*.yaml"))))
    arms = [result.value for result in results if result.value is not None]
    return arms, [result.reason for result in results if result.reason is not None]


def make_folder(folder: Path) -> None:
    """Make the folder of the models, unless it is there. InputError: that is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"cannot be made ({error.strerror})"
        remedy = "name a folder for the models"
        raise InputError(folder, problem, remedy) from error
