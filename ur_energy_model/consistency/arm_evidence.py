# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Evidence for one type of arm compared with another, from the samples of a recording.

Three kinds of evidence count: how well the rigid bodies of an arm explain target_moment,
how well one tool explains the tool poses, and whether joints exceed rated speeds. An arm
is better than another one if it is clearly better in one kind and not worse in any.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeAlias

import numpy as np

from ur_energy_model.consistency.arm_fits import (
    FILTERED_RATE,
    TorqueFit,
    tool_scatter,
    torque_fit,
)
from ur_energy_model.consistency.arm_samples import (
    joints_of,
    lasting_speed,
    tool_poses,
    torque_windows,
)
from ur_energy_model.model.robots import RobotDescription, available_robots, load_robot
from ur_energy_model.telemetry.samples import Telemetry

# Torques: thresholds of the misfit, residual over the scale of a joint's torque. The
# right arm has 0.0001 to 0.002 with recorded targets and 0.0005 to 0.015 without, on
# recordings of UR3e, UR5e and UR10e; of another size a joint has 0.1 and more.
_EXPLAINED_MISFIT = 0.03  # largest misfit of an arm that explains all torques
_UNEXPLAINED_MISFIT = 0.004  # least misfit of an unexplained joint, with recorded targets
_UNEXPLAINED_MEASURED = 0.008  # least misfit of an unexplained joint without them
_FINEST_MISFIT = 0.0005  # misfits below this are equally good
# A clearly better arm has at least these ratios of misfits.
_BETTER = 12.0  # ratio of the products of the misfits of all joints
_BETTER_JOINT = 3.0  # ratio of the misfits of one joint
_NO_WORSE = 2.0  # factor by which the better arm may be worse at another joint
_NEGLIGIBLE = 0.004  # misfit up to which a joint is explained, whatever the other arm has
_LEAST_GRAVITY = 8.5  # least gravity of an arm that explains torques [m/s^2]
_MOST_GRAVITY = 11.0  # largest gravity of an arm that explains torques [m/s^2]
_LEAST_MASS = -1.0
"""Least payload of an arm that explains torques [kg]; the free fit may find less than none."""

# Tool poses: the right arm has a scatter of 0.2 to 1.8 mm, the nearest relative 8 to 21
# mm.
_EXPLAINED_SCATTER = 0.004  # largest scatter of an arm that explains the poses [m]
_UNEXPLAINED_SCATTER = 0.005  # least scatter of an arm that does not [m]
_FINEST_SCATTER = 0.001  # scatters below this are equally good [m]
_MORE_SCATTER = 4.0  # least ratio of the scatters for a clearly better arm

_LEAST_MEASURED = 8.0  # least time of filtered motion for a comparison of torques [s]
_MOST_NAMES = 4  # largest number of arms that a message names
_BEYOND_RATED = 1.3  # factor on the rated speed that no arm of a type exceeds


@cache
def _package_arms() -> tuple[RobotDescription, ...]:
    """Descriptions of all arms in the package."""
    return tuple(load_robot(name) for name in available_robots())


_Constants: TypeAlias = "tuple[bytes, ...]"
"""Constants of an arm, rounded, as a key that compares for equality."""


def _constants(robot: RobotDescription) -> _Constants:
    """The constants on which torques and poses depend: geometry, masses and inertias."""
    geometry = (robot.d, robot.a, robot.alpha, robot.theta, robot.origin)
    links = (robot.mass, robot.center_of_mass, robot.inertia)
    return tuple(np.round(values, 9).tobytes() for values in (*geometry, *links))


class ArmEvidence:
    """What the samples of a recording show of arms with one number of joints.

    Each fit is computed once, when it is first needed: arms are compared in pairs.

    Args:
        windows: windows of the recording.
        dof: number of joints; windows with another number are left out.
    """

    def __init__(self, windows: Sequence[Telemetry], dof: int) -> None:
        same = [part for part in windows if joints_of(part) == dof]
        self._dof = dof
        self._torque_windows = torque_windows(same)
        self._q, self._position = tool_poses(same)
        self._speed = lasting_speed(same, dof)
        self._torque_fits: dict[_Constants, TorqueFit | None] = {}
        self._scatters: dict[_Constants, float] = {}

    # Figures of one arm.

    def _torque(self, robot: RobotDescription) -> TorqueFit | None:
        """Fit of target_moment by the arm; None where samples are too few."""
        key = _constants(robot)
        if key not in self._torque_fits:
            windows = self._torque_windows
            fit = torque_fit(windows, robot) if windows else None
            if fit is not None and fit.measured and _seconds(fit) < _LEAST_MEASURED:
                fit = None
            self._torque_fits[key] = fit
        return self._torque_fits[key]

    def _scatter(self, robot: RobotDescription) -> float | None:
        """Scatter of the tool [m]; None without poses.

        It is None also for arms of other makers, whose base frame may be another one.
        """
        if not len(self._q) or robot.generation == "other":
            return None
        key = _constants(robot)
        if key not in self._scatters:
            self._scatters[key] = tool_scatter(robot, self._q, self._position)
        return self._scatters[key]

    def _too_fast(self, robot: RobotDescription) -> bool:
        """Whether a joint exceeded the rated speed clearly; False for other makers' arms."""
        if robot.generation == "other":
            return False
        return bool((self._speed > _BEYOND_RATED * robot.max_velocity).any())

    # Comparison of arms.

    def doubts(self, robot: RobotDescription) -> bool:
        """Whether the arm leaves any sample unexplained."""
        torque = self._torque(robot)
        if torque is not None and _is_unexplained(torque):
            return True
        scatter = self._scatter(robot)
        if scatter is not None and scatter > _UNEXPLAINED_SCATTER:
            return True
        return self._too_fast(robot)

    def arms_better_than(self, robot: RobotDescription) -> tuple[str, ...]:
        """Names of arms that explain the samples clearly better than this one.

        The best arm is the first, followed by the arms that the samples do not distinguish
        from it.
        """
        same_size = [arm for arm in _package_arms() if arm.dof == self._dof]
        own = _constants(robot)
        others = [arm for arm in same_size if _constants(arm) != own]
        better = [arm for arm in others if self._is_better(arm, robot)]
        if not better:
            return ()
        best = min(better, key=self._misfit)
        alike = []
        for arm in others:
            same = _constants(arm) == _constants(best)
            possible = same or self._explains(arm)
            if arm is not best and possible and not self._is_better(best, arm):
                alike.append(arm)
        alike.sort(key=self._misfit)
        return (best.name, *(arm.name for arm in alike))

    def only_arms(self) -> tuple[str, ...]:
        """Names of arms that explain the samples clearly better than all others.

        Returns:
            The names, the best arm first; empty if no arm explains the samples, or if so
            many arms do that their names do not help a user.
        """
        same_size = [arm for arm in _package_arms() if arm.dof == self._dof]
        arms = [arm for arm in same_size if arm.generation != "other"]
        best = min(arms, key=self._misfit)
        alike = [arm for arm in arms if not self._is_better(best, arm)]
        if len(alike) > _MOST_NAMES or not self._explains(best):
            return ()
        alike.sort(key=self._misfit)
        return tuple(arm.name for arm in alike)

    def _misfit(self, robot: RobotDescription) -> float:
        """Misfit of the torques plus scatter of the tool [m], by which arms are ordered."""
        misfit = self._scatter(robot) or 0.0
        torque = self._torque(robot)
        if torque is not None:
            misfit += float(np.sqrt(np.mean(torque.misfit**2)))
        return misfit

    def _explains(self, robot: RobotDescription) -> bool:
        """Whether the arm explains all samples."""
        torque = self._torque(robot)
        if torque is not None and not _explains_torques(torque):
            return False
        scatter = self._scatter(robot)
        if scatter is not None and scatter >= _EXPLAINED_SCATTER:
            return False
        return not self._too_fast(robot)

    def _is_better(self, robot: RobotDescription, other: RobotDescription) -> bool:
        """Whether an arm is clearly better than another in one kind, and worse in none."""
        poses = _better_poses(self._scatter(robot), self._scatter(other))
        speeds = int(self._too_fast(other)) - int(self._too_fast(robot))
        if min(poses, speeds) < 0:
            return False  # before the fits of the torques, which take most of the time
        torques = _better_torques(self._torque(robot), self._torque(other))
        return torques >= 0 and max(poses, speeds, torques) > 0

    def words(self, stated: RobotDescription, right: RobotDescription) -> str:
        """Figures that show that the samples are of one arm and not of another.

        Args:
            stated: the arm that is stated.
            right: the arm that explains the samples.
        """
        found = [
            self._torque_words(stated, right),
            self._pose_words(stated, right),
            self._speed_words(stated),
        ]
        return "; ".join(text for text in found if text)

    def _torque_words(self, stated: RobotDescription, right: RobotDescription) -> str:
        """Misfits of the joint whose torque decides most; empty where torques do not decide."""
        own = self._torque(right)
        other = self._torque(stated)
        if own is None or other is None or _better_torques(own, other) <= 0:
            return ""
        ratio = other.misfit / np.maximum(own.misfit, _FINEST_MISFIT)
        joint = int(np.argmax(ratio))
        text = (
            f"target_moment of {_short_name(right, joint)} is explained within "
            f"{_percent(own.misfit[joint])}, as {stated.name} within "
            f"{_percent(other.misfit[joint])}"
        )
        if not _is_gravity(other.gravity):
            text += f" and in a gravity of {other.gravity:.1f} m/s2"
        return text

    def _pose_words(self, stated: RobotDescription, right: RobotDescription) -> str:
        """Scatters of the tool; empty where poses do not decide."""
        own = self._scatter(right)
        other = self._scatter(stated)
        if own is None or other is None or _better_poses(own, other) <= 0:
            return ""
        return (
            f"one tool explains its poses within {1e3 * own:.1f} mm, as {stated.name} "
            f"within {1e3 * other:.0f} mm"
        )

    def _speed_words(self, stated: RobotDescription) -> str:
        """The joint that exceeds its rated speed most; empty where none does clearly."""
        if not self._too_fast(stated):
            return ""
        joint = int(np.argmax(self._speed / stated.max_velocity))
        return (
            f"{_short_name(stated, joint)} turns at {self._speed[joint]:.2f} rad/s, the "
            f"rated speed of a {stated.name} is {stated.max_velocity[joint]:.2f}"
        )


def _short_name(robot: RobotDescription, joint: int) -> str:
    """Name of a joint for messages, such as "elbow"."""
    return robot.joint_names[joint].removesuffix("_joint")


def _percent(share: float) -> str:
    """A share in percent, with two digits."""
    return f"{100.0 * share:.2g} %"


def _better_torques(fit: TorqueFit | None, other: TorqueFit | None) -> int:
    """How an arm explains target_moment, compared with another arm.

    Args:
        fit: fit of the arm; None where samples are too few.
        other: fit of the other arm; None where samples are too few.

    Returns:
        1 where the arm explains the torques and the other one does not, -1 where the arm
        is worse at a joint, else 0.
    """
    if fit is None or other is None:
        return 0
    worse = fit.misfit > np.maximum(_NO_WORSE * other.misfit, _NEGLIGIBLE)
    if worse.any():
        return -1
    if not _is_unexplained(other) or not _explains_torques(fit):
        return 0
    ratio = np.maximum(other.misfit, _FINEST_MISFIT)
    ratio = ratio / np.maximum(fit.misfit, _FINEST_MISFIT)
    return int(ratio.max() > _BETTER_JOINT and ratio.prod() > _BETTER)


def _explains_torques(fit: TorqueFit) -> bool:
    """Whether an arm explains target_moment, in a setup that an arm can have."""
    possible = _is_gravity(fit.gravity) and fit.mass > _LEAST_MASS
    return possible and bool((fit.misfit < _EXPLAINED_MISFIT).all())


def _is_gravity(size: float) -> bool:
    """Whether a fitted gravity [m/s^2] can be that of the earth, within the error of a fit."""
    return _LEAST_GRAVITY < size < _MOST_GRAVITY


def _seconds(fit: TorqueFit) -> float:
    """Time of filtered motion that was used [s]."""
    return fit.samples / FILTERED_RATE


def _is_unexplained(fit: TorqueFit) -> bool:
    """Whether an arm leaves more of target_moment unexplained than noise can be."""
    limit = _UNEXPLAINED_MEASURED if fit.measured else _UNEXPLAINED_MISFIT
    return bool(fit.misfit.max() > limit)


def _better_poses(scatter: float | None, other: float | None) -> int:
    """How one tool explains the poses of an arm, compared with another arm.

    Args:
        scatter: scatter of the tool on the arm [m]; None if unknown.
        other: scatter of the tool on the other arm [m]; None if unknown.

    Returns:
        1 where the arm explains the poses and the other one clearly does not, -1 where the
        arm does not explain them and is clearly worse, else 0.
    """
    if scatter is None or other is None:
        return 0
    if scatter > max(_UNEXPLAINED_SCATTER, _NO_WORSE * other):
        return -1
    clearly_more = _MORE_SCATTER * max(scatter, _FINEST_SCATTER)
    decisive = other > max(_UNEXPLAINED_SCATTER, clearly_more)
    return int(scatter < _EXPLAINED_SCATTER and decisive)
