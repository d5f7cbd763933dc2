"""Fleet: what identified arms tell about another arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.identification.arm_prior import ArmPrior, Evidence
from ur_energy_model.identification.dynamics.reflected_inertia import (
    InertiaEstimate,
    expected_inertia,
)
from ur_energy_model.identification.friction.torque_constants import (
    ARM_SPREAD,
    FLEET,
    FLEET_POWER,
    LINK_WEIGHT_ERROR,
    TorqueConstantPrior,
)
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.plant.fleet.hierarchy import Prediction, SizeHierarchy
from ur_energy_model.typing import Array

_DIGITS = 9
"""Of nominal constants that are equal for joints of one size."""


@dataclass(frozen=True)
class FleetArm:
    """An identified arm.

    Attributes:
        name: of the arm.
        robot: its description, n joints.
        evidence: what its recordings say alone.
    """

    name: str
    robot: RobotDescription
    evidence: Evidence


@dataclass(frozen=True)
class SharedConstant:
    """What the arms of a fleet have in common in one constant of one joint size.

    Attributes:
        what: "torque_constant" or "reflected_inertia".
        joints: "<robot>: <joint>" of the size.
        value: expected in another arm, of each of these joints, N m/A or kg m^2.
        spread: likeliest relative standard deviation between arms; 0 where they are alike.
        spread_limit: relative, exceeded with a probability of 5 %.
        arms: that it was learnt from.
    """

    what: str
    joints: tuple[str, ...]
    value: tuple[float, ...]
    spread: float
    spread_limit: float
    arms: int


class Fleet:
    """Identified arms, of one type or several.

    Args:
        arms: with names of their own.
    """

    def __init__(self, arms: Sequence[FleetArm]) -> None:
        self.arms = tuple(arms)
        self._known: dict[tuple[str, ...], list[_Size]] = {}
        """By names of the types of robot."""

    def prior(self, robot: RobotDescription, name: str | None = None) -> ArmPrior | None:
        """Prior of an arm from all others; None if these have no joint of its sizes.

        Args:
            robot: description of the arm, n joints.
            name: of the arm, whose own recordings are left out.
        """
        constants = TorqueConstantPrior.of_type(robot)
        mean, covariance = constants.mean.copy(), constants.covariance.copy()
        independent, source = constants.independent.copy(), list(constants.source)
        found = False
        expected = expected_inertia(robot)
        inertia, inertia_std = expected.value.copy(), expected.std.copy()
        for size in self._sizes(robot):
            predicted = size.predict(robot, name)
            if predicted is None:
                continue
            (joints, prediction), found = predicted, True
            if size.what == _CONSTANT:
                mean[joints] = prediction.mean
                covariance[np.ix_(joints, joints)] = prediction.covariance
                independent[joints] = prediction.independent
                for j in joints:
                    source[j] = FLEET if size.from_links else FLEET_POWER
            else:
                inertia[joints] = prediction.mean * expected.value[joints]
                std = np.sqrt(np.diag(prediction.covariance))
                inertia_std[joints] = std * expected.value[joints]
        if not found:
            return None
        return ArmPrior(
            TorqueConstantPrior(mean, covariance, independent, tuple(source)),
            InertiaEstimate(inertia, inertia_std, expected.source),
        )

    def shared(self) -> tuple[SharedConstant, ...]:
        """What the arms have in common, by constant and joint size."""
        return tuple(size.shared() for size in self._sizes() if size.measured)

    def _sizes(self, *others: RobotDescription) -> list[_Size]:
        """Joint sizes of the arms, with the joints of further types of robot."""
        robots = {robot.name: robot for robot in (*others, *(arm.robot for arm in self.arms))}
        known = tuple(sorted(robots))
        if known not in self._known:
            self._known[known] = self._grouped(robots)
        return self._known[known]

    def _grouped(self, robots: Mapping[str, RobotDescription]) -> list[_Size]:
        groups: dict[tuple[str, float, float], list[tuple[str, int]]] = {}
        for robot in robots.values():
            for what, nominal in _nominal(robot).items():
                for j in np.flatnonzero(np.isfinite(nominal)).tolist():
                    key = (what, round(float(nominal[j]), _DIGITS), float(robot.gear_ratio[j]))
                    groups.setdefault(key, []).append((robot.name, j))
        return [_Size(key[0], columns, self.arms, robots) for key, columns in groups.items()]


_CONSTANT, _INERTIA = "torque_constant", "reflected_inertia"


class _Size:
    """Joints of one size in all arms of a fleet."""

    def __init__(
        self,
        what: str,
        columns: list[tuple[str, int]],
        arms: Sequence[FleetArm],
        robots: Mapping[str, RobotDescription],
    ) -> None:
        self.what, self._columns = what, columns
        self._names = [arm.name for arm in arms]
        shape = (len(arms), len(columns))
        value, std = np.full(shape, np.nan), np.full(shape, np.nan)
        self._robots = robots
        links = np.zeros(shape)
        for a, arm in enumerate(arms):
            nominal = _nominal(arm.robot)[what]
            told, deviation = _measured(arm.evidence, what)
            for k, (robot, j) in enumerate(columns):
                if robot == arm.robot.name:
                    value[a, k], std[a, k] = told[j] / nominal[j], deviation[j] / nominal[j]
                    links[a, k] = arm.evidence.from_links[j]
        known = np.isfinite(value) & np.isfinite(std)
        self.measured = bool(known.any())
        powered = known & (links == 0.0)
        self.from_links = not powered.any()
        """Whether the error of the links' weight, the same in all arms, is in the constants."""
        if what == _CONSTANT and not self.from_links:
            std = np.where(links > 0.0, np.hypot(std, LINK_WEIGHT_ERROR), std)
        robot, j = columns[0]
        first = expected_inertia(self._robots[robot])
        wide = ARM_SPREAD if what == _CONSTANT else float(first.std[j] / first.value[j])
        self._hierarchy = SizeHierarchy(value, std, wide)

    def predict(
        self, robot: RobotDescription, name: str | None
    ) -> tuple[list[int], Prediction] | None:
        """The robot's joints of the size, and what the arms with other names tell of them."""
        own = [k for k, (type_, _) in enumerate(self._columns) if type_ == robot.name]
        without = self._names.index(name) if name in self._names else None
        prediction = self._hierarchy.predict(without)
        if not own or not prediction.arms:
            return None
        return [self._columns[k][1] for k in own], prediction.of(own)

    def shared(self) -> SharedConstant:
        """What the arms have in common."""
        found = self._hierarchy.predict()
        labels, values = [], []
        for k, (robot, j) in enumerate(self._columns):
            nominal = _nominal(self._robots[robot])[self.what][j]
            labels.append(f"{robot}: {self._robots[robot].joint_names[j]}")
            values.append(float(found.mean[k] * nominal))
        return SharedConstant(
            self.what,
            tuple(labels),
            tuple(values),
            found.spread,
            found.spread_limit,
            found.arms,
        )


def _nominal(robot: RobotDescription) -> dict[str, Array]:
    """Nominal constants [n] by name; NaN where the robot file has none."""
    return {_CONSTANT: robot.torque_constant, _INERTIA: expected_inertia(robot).value}


def _measured(evidence: Evidence, what: str) -> tuple[Array, Array]:
    if what == _CONSTANT:
        return evidence.torque_constant, evidence.torque_constant_std
    return evidence.inertia, evidence.inertia_std
