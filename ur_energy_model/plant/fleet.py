"""Fleet: what identified arms show about another arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ur_energy_model.identification.assembly import ArmPrior, Evidence
from ur_energy_model.identification.torque_constants import (
    ARM_SPREAD,
    FLEET,
    FLEET_POWER,
    LINK_WEIGHT_ERROR,
    InertiaEstimate,
    TorqueConstantPrior,
    expected_inertia,
)
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array, Mask

# Hierarchical normal model of one constant of one joint size over the arms of a fleet.
#
# The constant of joint j of arm a, relative to the nominal one, is
#
# mean + position_j + arm_a + own_aj
#
# `position` is common to the fleet (errors of the robot file's links, for instance), `arm` to the
# joints of one arm, `own` belongs to one joint. Their standard deviations are unknown: the
# marginal likelihood on a grid gives each combination a weight, and predictions are means over the
# grid (empirical Bayes without the overconfidence of a single estimate; Gelman, Bayesian Data
# Analysis, chapter 5). Zero is on the grid: arms that are alike share one constant; arms that
# differ hardly inform each other.

_ARM = (0.0, 0.005, 0.01, 0.02, 0.03, 0.045, 0.065, 0.09, 0.12, 0.18, 0.24)
_OWN = (0.0, 0.005, 0.01, 0.02, 0.03, 0.045, 0.065, 0.09, 0.12)
_POSITION = (0.0, 0.01, 0.02, 0.04)
"""Relative standard deviations on the grid; factory calibrations of arms differ by over 10 %."""
_GRID = np.array(list(product(_ARM, _OWN, _POSITION)))
_UNKNOWN = 1e3
"""Standard deviation of a constant that was not measured."""
_LEAST = 1e-4
"""Least relative standard deviation of a prediction or a measurement."""


@dataclass(frozen=True)
class Prediction:
    """Constants of the k joints of a size in another arm, relative to the nominal one.

    `mean` is [k], `covariance` [k, k]; `independent` is the part of each joint's variance that no
    other joint shares; `spread` the likeliest standard deviation between arms, of `arm` and `own`
    together, exceeding `spread_limit` with a probability of 5 %; `arms` the number learnt from.
    """

    mean: Array
    covariance: Array
    independent: float
    spread: float
    spread_limit: float
    arms: int


class SizeHierarchy:
    """One constant of the k joints of a size, measured in some arms.

    Args:
        value: relative to the nominal constant [arms, k]; NaN where not measured.
        std: of the measurements [arms, k].
        nominal_std: standard deviation of the fleet's mean around the nominal constant.
    """

    def __init__(self, value: Array, std: Array, nominal_std: float) -> None:
        self._arms, self._joints = value.shape
        known = np.isfinite(value) & np.isfinite(std)
        self._measured: Mask = np.asarray(known.any(axis=1))
        rest = np.where(known, value, 1.0) - 1.0
        noise = np.where(known, np.maximum(std, _LEAST), _UNKNOWN) ** 2
        own = np.eye(self._joints)
        arm, single, position = (column[:, None, None] ** 2 for column in _GRID.T)
        self._between = arm + single * own
        self._prior = nominal_std**2 + position * own + _LEAST**2 * own
        # Information of each arm on the fleet's joints, for every point of the grid.
        covariance = self._between[:, None] + noise[:, :, None] * own
        self._information = np.linalg.inv(covariance)
        self._product = np.einsum("gaij,aj->gai", self._information, rest)
        self._precision = np.where(known, 1.0 / noise, 0.0)
        self._known = known
        self._square = np.einsum("gai,ai->ga", self._product, rest)
        self._logdet = np.linalg.slogdet(covariance)[1]

    def predict(self, without: int | None = None) -> Prediction:
        """Constants of a new arm, or of one of the arms as the others show them.

        How much arms differ is learnt from all of them, the one left out included: an arm that
        differs from arms that are alike must not be taken for one of them.

        Args:
            without: index of the arm that is left out.
        """
        used = self._measured.copy()
        if without is not None:
            used[without] = False
        posterior, mean, _ = self._conditional(used)
        evidence = self._conditional(self._measured)[2]
        weight = np.exp(evidence - evidence.max())
        weight /= weight.sum()
        # Errors of measurements come from the model (friction, gears, masses), the same in all
        # arms: the mean of many arms has at least the uncertainty of a single arm.
        count, precision = self._known[used].sum(axis=0), self._precision[used].sum(axis=0)
        systematic = _LEAST**2 + np.where(count > 0, count / np.where(count > 0, precision, 1), 0)
        covariance = posterior + self._between + np.diag(systematic)
        expected = weight @ mean
        apart = mean - expected
        spread = np.hypot(_GRID[:, 0], _GRID[:, 1])
        # The likeliest spread, whatever the position's, and its 95 % quantile.
        together = weight.reshape(-1, len(_POSITION)).sum(axis=1)
        order = np.argsort(spread)
        limit = np.searchsorted(np.cumsum(weight[order]), 0.95 - 1e-12)
        return Prediction(
            mean=1.0 + expected,
            covariance=np.einsum("g,gij->ij", weight, covariance)
            + np.einsum("g,gi,gj->ij", weight, apart, apart),
            independent=float(weight @ (_GRID[:, 1] ** 2 + _LEAST**2)),
            spread=float(spread[int(np.argmax(together)) * len(_POSITION)]),
            spread_limit=float(spread[order][limit]),
            arms=int(used.sum()),
        )

    def _conditional(self, used: Mask) -> tuple[Array, Array, Array]:
        """The fleet's joints for every point of the grid, from some arms.

        Returns:
            covariance [grid, k, k] and mean [grid, k], less 1; logarithm of the likelihood [grid].
        """
        precision = np.linalg.inv(self._prior) + self._information[:, used].sum(axis=1)
        product = self._product[:, used].sum(axis=1)
        covariance = np.linalg.inv(precision)
        mean = np.einsum("gij,gj->gi", covariance, product)
        evidence = -0.5 * (
            np.linalg.slogdet(self._prior)[1]
            + np.linalg.slogdet(precision)[1]
            + self._logdet[:, used].sum(axis=1)
            + self._square[:, used].sum(axis=1)
            - np.einsum("gi,gi->g", mean, product)
        )
        return covariance, mean, evidence


_DIGITS = 9
"""Of nominal constants that are equal for joints of one size."""


@dataclass(frozen=True)
class FleetArm:
    """An identified arm; evidence is what its recordings show alone."""

    name: str
    robot: RobotDescription
    evidence: Evidence


@dataclass(frozen=True)
class SharedConstant:
    """What the arms of a fleet have in common in one constant of one joint size.

    `what` is "torque_constant" or "reflected_inertia", `joints` are "<robot>: <joint>", `value` is
    expected of each in another arm, N m/A or kg m^2; spreads are relative, see `Prediction`.
    """

    what: str
    joints: tuple[str, ...]
    value: tuple[float, ...]
    spread: float
    spread_limit: float
    arms: int


@dataclass(frozen=True)
class _Size:
    """One constant of the joints of one size (robots and indices [k]) in all arms of a fleet.

    `measured`: whether any arm shows it; `from_links`: whether the error of the links' weight, the
    same in all arms, is in it.
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
        self._known: dict[tuple[str, ...], list[_Size]] = {}
        """By names of the types of robot."""

    def prior(self, robot: RobotDescription, name: str | None = None) -> ArmPrior | None:
        """Prior of an arm, named or new, from all others; None without any joint of its sizes."""
        constants, expected = TorqueConstantPrior.of_type(robot), expected_inertia(robot)
        mean, covariance = constants.mean.copy(), constants.covariance.copy()
        independent, source = constants.independent.copy(), list(constants.source)
        inertia, inertia_std = expected.value.copy(), expected.std.copy()
        names = [arm.name for arm in self.arms]
        without, found = names.index(name) if name in names else None, False
        for size in self._sizes(robot):
            own = [k for k, (each, _) in enumerate(size.joints) if each.name == robot.name]
            predicted = size.hierarchy.predict(without)
            if not own or not predicted.arms:
                continue
            found, joints = True, [size.joints[k][1] for k in own]
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
        for size in self._sizes():
            if size.measured:
                found = size.hierarchy.predict()
                nominal = [_nominal(robot)[size.what][j] for robot, j in size.joints]
                shared.append(
                    SharedConstant(
                        size.what,
                        tuple(f"{robot.name}: {robot.joint_names[j]}" for robot, j in size.joints),
                        tuple((found.mean * nominal).tolist()),
                        found.spread,
                        found.spread_limit,
                        found.arms,
                    )
                )
        return tuple(shared)

    def _sizes(self, *others: RobotDescription) -> list[_Size]:
        """Joint sizes of the arms, with the joints of further types of robot."""
        robots = {robot.name: robot for robot in (*others, *(arm.robot for arm in self.arms))}
        known = tuple(sorted(robots))
        if known not in self._known:
            groups: dict[tuple[str, float, float], list[tuple[RobotDescription, int]]] = {}
            for robot in robots.values():
                for what, nominal in _nominal(robot).items():
                    for j in np.flatnonzero(np.isfinite(nominal)).tolist():
                        key = (what, round(float(nominal[j]), _DIGITS), float(robot.gear_ratio[j]))
                        groups.setdefault(key, []).append((robot, j))
            self._known[known] = [self._size(what, of) for (what, *_), of in groups.items()]
        return self._known[known]

    def _size(self, what: str, joints: list[tuple[RobotDescription, int]]) -> _Size:
        shape = (len(self.arms), len(joints))
        value, std, links = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape)
        for a, arm in enumerate(self.arms):
            own = [k for k, (robot, _) in enumerate(joints) if robot.name == arm.robot.name]
            columns = [joints[k][1] for k in own]
            nominal, evidence = _nominal(arm.robot)[what], arm.evidence
            shown, deviation = evidence.inertia, evidence.inertia_std
            if what == _CONSTANT:
                shown, deviation = evidence.torque_constant, evidence.torque_constant_std
            value[a, own] = (shown / nominal)[columns]
            std[a, own] = (deviation / nominal)[columns]
            links[a, own] = evidence.from_links[columns]
        known = np.isfinite(value) & np.isfinite(std)
        from_links = not (known & (links == 0.0)).any()
        robot, j = joints[0]
        expected, wide = expected_inertia(robot), ARM_SPREAD
        if what != _CONSTANT:
            wide = float(expected.std[j] / expected.value[j])
        elif not from_links:
            std = np.where(links > 0.0, np.hypot(std, LINK_WEIGHT_ERROR), std)
        hierarchy = SizeHierarchy(value, std, wide)
        return _Size(what, joints, hierarchy, bool(known.any()), from_links)


_CONSTANT, _INERTIA = "torque_constant", "reflected_inertia"


def _nominal(robot: RobotDescription) -> dict[str, Array]:
    """Nominal constants [n] by name; NaN where the robot file has none."""
    return {_CONSTANT: robot.torque_constant, _INERTIA: expected_inertia(robot).value}
