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

# Hierarchical normal model of one constant of one joint size over the arms of a fleet.
# The constant of joint j of arm a, relative to the nominal one, is mean + position_j +
# arm_a + own_aj `position` is common to the fleet (errors of the robot file's links, for
# instance), `arm` to the joints of one arm, `own` belongs to one joint. Their standard
# deviations are unknown: the marginal likelihood on a grid gives each combination a
# weight, and predictions are means over the grid (empirical Bayes without the
# overconfidence of a single estimate; Gelman, Bayesian Data Analysis, chapter 5). Zero is
# on the grid: arms that are alike share one constant; arms that differ hardly inform each
# other.

_ARM = (0.0, 0.005, 0.01, 0.02, 0.03, 0.045, 0.065, 0.09, 0.12, 0.18, 0.24)
_OWN = (0.0, 0.005, 0.01, 0.02, 0.03, 0.045, 0.065, 0.09, 0.12)
_POSITION = (0.0, 0.01, 0.02, 0.04)
"""Relative standard deviations on the grid; factory calibrations of arms differ by over 10 %."""
_GRID = np.array(list(product(_ARM, _OWN, _POSITION)))
_UNKNOWN = 1e3  # standard deviation of a constant that was not measured
_LEAST = 1e-4  # least relative standard deviation of a prediction or a measurement


@dataclass(frozen=True)
class Prediction:
    """Constants of the k joints of a size in another arm, relative to the nominal one.

    Attributes:
        mean: expected constants [k].
        covariance: of the constants [k, k].
        independent: part of each joint's variance that no other joint shares.
        spread: likeliest standard deviation between arms.
        spread_limit: value that the spread exceeds with a probability of 5 %.
        arms: number of arms that this was learnt from.
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
        """Constants of a new arm, or of the arm `without` as the others show them.

        How much arms differ is learnt from all of them, the one left out included: an arm
        that differs from arms that are alike must not be taken for one of them.
        """
        used = self._measured.copy()
        if without is not None:
            used[without] = False
        posterior, mean, _ = self._conditional(used)
        evidence = self._conditional(self._measured)[2]
        weight = np.exp(evidence - evidence.max())
        weight /= weight.sum()
        # Errors of measurements come from the model (friction, gears, masses), the same
        # in all arms: the mean of many arms has at least the uncertainty of a single arm.
        # They enter as far as the prediction follows the measurements.
        count = self._known[used].sum(axis=0)
        precision = self._precision[used].sum(axis=0)
        systematic = np.where(count > 0, count / np.where(count > 0, precision, 1), 0)
        gain = posterior @ self._information[:, used].sum(axis=1)
        covariance = posterior + self._between + _LEAST**2 * np.eye(self._joints)
        covariance += gain * systematic @ gain.swapaxes(1, 2)
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
        """Covariance [grid, k, k], mean less 1 [grid, k], log likelihood [grid], from some arms."""
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


# Identification of all arms of many bags, each with what the others show.

FLEET_KEY = "fleet"
"""Key in the provenance of a model: number of the other arms that its prior came from."""


@dataclass(frozen=True)
class IdentifiedArm:
    """The model of one arm.

    Attributes:
        name: of the arm.
        model: that was identified.
        bags: from which.
        failed: bags that were left out, with the reason.
        warnings: of the identification, one line each.
    """

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
    check: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> FleetIdentification:
    """Identify one model per arm (serial number) from any number of bags.

    Bags of one type without serial numbers are of one arm, unless the torque constants
    that their controllers state differ: then of ur5e, ur5e_2, and so on. `check` is
    called with the name of each arm before any is identified, and may refuse it.

    Every arm is identified twice: first alone, then with the prior that all others give.
    What an arm's own recordings show never enters its prior. `robot` is the description
    of all arms, None takes the type in each bag; arms known before that have bags here
    are replaced.
    """
    out = FleetIdentification()
    groups = _bags_of_arms(bags, robot, each, out.failed)
    if check is not None:
        for name in groups:
            check(name)

    def run(
        begin: float, priors: Mapping[str, ArmPrior | None]
    ) -> dict[str, BagResult[IdentifiedArm]]:
        """Results of the arms that have a prior; each run is half of the work."""

        def report(fraction: float, text: str) -> None:
            if progress is not None:
                progress(begin + 0.5 * fraction, text)

        given = [
            (name, *groups[name], replace(options, prior=prior))
            for name, prior in priors.items()
            if prior is not None
        ]
        results = each(_identify, [own[0] for _, _, own, _ in given], report, given)
        return {name: result for (name, *_), result in zip(given, results, strict=True)}

    alone = {}
    for name, result in run(0.0, dict.fromkeys(groups, OF_TYPE)).items():
        if result.value is None:
            out.failed += [replace(result, bag=bag) for bag in groups[name][1]]
        else:
            alone[name] = result.value
            out.failed += result.value.failed
    now = {name: fleet_arm(name, arm.model) for name, arm in alone.items()}
    out.fleet = Fleet([*(arm for arm in known if arm.name not in alone), *now.values()])
    count = len(out.fleet.arms) - 1
    priors = {name: out.fleet.prior(load_robot(groups[name][0]), name) for name in alone}
    better = run(0.5, priors)
    for name, arm in alone.items():
        if name in better and (found := better[name].value) is not None:
            provenance = {**found.model.provenance, FLEET_KEY: {"arms": count}}
            arm = replace(found, model=replace(found.model, provenance=provenance))
        changed = changed_constants(known, now[name])
        out.arms.append(replace(arm, warnings=(*arm.warnings, *changed)))
    return out


def _bags_of_arms(
    bags: Sequence[Path],
    robot: str | None,
    each: BagExecutor,
    failed: list[BagResult[Any]],
) -> dict[str, tuple[str, tuple[Path, ...]]]:
    """Type and bags of each arm, in order of the arms' names; other bags are added to `failed`."""
    groups: dict[str, tuple[str, tuple[Path, ...]]] = {}
    found: list[tuple[Path, RecordedArm]] = []
    for result in each(_read_origin, bags, None, [robot] * len(bags)):
        if result.value is None:
            failed.append(result)
        else:
            found.append((result.bag, result.value))
    names = _arm_names([origin for _, origin in found])
    for name, (bag, (_, info, _)) in zip(names, found, strict=True):
        problem = None
        type_ = robot or info.robot
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


def _read_origin(bag: Path, robot: str | None) -> RecordedArm:
    """What shows which arm a bag is of."""
    info = read_info(bag)
    type_ = robot or info.robot
    constants = None
    if type_ is not None and not info.serial:
        constants = recorded_constants(bag, load_robot(type_))
    return RecordedArm(bag, info, constants)


def _arm_names(origins: Sequence[RecordedArm]) -> list[str]:
    """Name of the arm of each recording: by serial number, else by type and stated constants."""
    names = [arm_name(origin.info) for origin in origins]
    for name in set(names):
        rows = [
            k
            for k, each in enumerate(names)
            if each == name and not origins[k].info.serial
        ]
        numbers = arms_by_constants([origins[k] for k in rows])
        for k, number in zip(rows, numbers, strict=True):
            if number:
                names[k] = f"{name}_{number + 1}"
    return names


def _identify(
    _: Path, arm: tuple[str, str, tuple[Path, ...], IdentificationOptions]
) -> IdentifiedArm:
    """One arm, perhaps in another process."""
    name, robot, bags, options = arm
    found = identify(bags, robot, options, each=in_this_process)
    left_out = {result.bag for result in found.failed}
    used = tuple(bag for bag in bags if bag not in left_out)
    return IdentifiedArm(name, found.model, used, found.failed, found.warnings)


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
