# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The type of the arm: whether the samples belong to the type that a recording names.

Two kinds of samples depend on the type and on little else. target_moment is the
controller's own inverse dynamics: the rigid bodies of the right arm explain it almost
exactly, in some mounting and with some payload. actual_TCP_pose is the controller's own
kinematics: for the right arm one tool, fixed to the flange, explains every pose. Speeds
beyond the rated speeds exclude an arm. Motor currents are not used: in ordinary motion,
friction and an unknown payload may look like an arm of several times the weight (the
currents of a simulated UR10e at pick and place looked like an arm of a third of its weight).

The stated arm is contradicted only where another arm explains the samples clearly better,
in every respect. Samples that no arm explains (payload changed unnoticed, contact, other
units) contradict nothing, nor do samples that every arm explains (standstill, few poses).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from ur_energy_model.consistency.arm_fits import (
    FILTERED_RATE,
    TorqueFit,
    tool_scatter,
    torque_fit,
)
from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.sample_windows import SampleWindows
from ur_energy_model.model.robots import RobotDescription, available_robots, load_robot
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, equal_runs
from ur_energy_model.typing import Array, Indices

FIELDS: tuple[str, ...] = (
    "target_q", "target_qd", "target_qdd", "target_moment",
    "actual_q", "actual_qd", "actual_TCP_pose",
    "payload", "payload_cog", "robot_mode",
)  # fmt: skip
"""Fields that show the type of an arm; those that a recording lacks show nothing."""

# Torques: thresholds of the misfit, residual over the scale of a joint's torque. The
# right arm has 0.0001 to 0.002 with recorded targets and 0.0005 to 0.015 without, on
# recordings of UR3e, UR5e and UR10e; of another size a joint has 0.1 and more.
_EXPLAINED = 0.03  # largest misfit of an arm that explains the torques of all joints
_UNEXPLAINED = 0.004  # least misfit of an unexplained joint, with recorded targets
_UNEXPLAINED_MEASURED = 0.008  # the same without recorded targets
_FINEST = 0.0005  # misfits below this are equally good
_BETTER = 12.0  # least ratio of the products of all misfits for a clearly better arm
_BETTER_JOINT = 3.0  # and least ratio of the misfits of one joint
_NO_WORSE = 2.0  # factor by which the better arm may be worse at another joint
_NEGLIGIBLE = 0.004  # misfit up to which a joint is explained, whatever the other arm has
_GRAVITY = (8.5, 11.0)  # magnitudes of gravity of an arm that explains torques [m/s^2]
_LEAST_MASS = -1.0  # least payload of an arm that explains torques [kg]

# Tool poses: the right arm has a scatter of 0.2 to 1.8 mm, the nearest relative 8 to 21
# mm.
_SCATTER = 0.004  # largest scatter of an arm that explains the poses [m]
_SCATTERED = 0.005  # least scatter of an arm that does not explain the poses [m]
_FINEST_SCATTER = 0.001  # scatters below this are equally good [m]
_MORE_SCATTER = 4.0  # least ratio of the scatters for a clearly better arm

_LEAST_MEASURED = 8.0  # least time of filtered motion for a comparison of torques [s]
_POSES = 12  # least number of different poses for a comparison of torques
_POSE_GRID = 0.1  # least distance of different poses [rad]
_TOOL_POSES = 5  # least number of different poses for a comparison of tool poses
_TOOL_POSE_GRID = 0.05  # least distance of these poses [rad]
_MOST_TOOL_POSES = 400
"""Number of tool poses that are compared, at most about twice as many."""
FIRST_LOOK = 15.0  # time until a connected arm is first compared with the stated one [s]
_MOST_NAMES = 4  # largest number of arms that a message names
_BEYOND_RATED = 1.3  # factor on the rated speed that no arm of a type exceeds
_LASTING = 10  # number of samples that must exceed it, so that outliers do not count


class ArmTypeCheck:
    """Collects samples that show the type of the arm, from consecutive parts of one recording."""

    def __init__(self) -> None:
        self._windows = SampleWindows(FIELDS)
        self._info = RecordingInfo()
        self._evidence: dict[int, _Evidence] = {}  # fits of the samples, by joints

    def observe(self, part: Telemetry) -> None:
        """Add the next part."""
        if len(part):
            self._info = part.info
            self._windows.add(part)
            self._evidence.clear()

    def _evidence_for(self, dof: int) -> _Evidence:
        """Fits of the samples so far, for arms with so many joints."""
        if dof not in self._evidence:
            self._evidence[dof] = _Evidence(self._windows.windows(), dof)
        return self._evidence[dof]

    @property
    def seconds(self) -> float:
        """Time that was observed so far [s]."""
        return self._windows.seconds

    def contradictions(
        self,
        robot: RobotDescription,
        *,
        stated: str | None = None,
        remedy: str | None = None,
    ) -> tuple[Contradiction, ...]:
        """Evidence that the recording is of another arm than the stated one.

        Args:
            robot: the arm that is stated.
            stated: the statement, such as "imported as ur5e"; by default, the recording's.
            remedy: what to do, with {options} in place of the option that names the right
                arm.

        Returns:
            Nothing, or one contradiction, for which the recording is refused.
        """
        evidence = self._evidence_for(robot.dof)
        return _contradictions(evidence, self._info, robot, stated, remedy)

    def fitting_arms(self) -> tuple[str, ...]:
        """Names of the arms whose constants explain the samples; none where these do not decide.

        UR5e and UR7e, or UR10e and UR12e, have the same constants and are named together.
        """
        return self._evidence_for(6).only_arms()


def _contradictions(
    evidence: _Evidence,
    info: RecordingInfo,
    robot: RobotDescription,
    stated: str | None,
    remedy: str | None,
) -> tuple[Contradiction, ...]:
    """Arguments and result as for `ArmTypeCheck.contradictions`.

    Args:
        evidence: fits of the samples.
        info: metadata of the recording.
        robot: the arm that is stated.
        stated: statement of the arm; None for the statement of the recording.
        remedy: remedy with {options} in place of the option that names the right arm.
    """
    if not evidence.doubts(robot):
        return ()
    names = evidence.arms_better_than(robot)
    if not names:
        return ()
    if stated is None:
        stated = f"is named as a recording of a {robot.name}"
    if remedy is None:
        imported = "imported_from" in info.extra
        verb = "import" if imported else "record"
        remedy = f"{verb} it again with {{options}}"
    options = " or ".join(f"--robot {name}" for name in names)
    return (
        Contradiction(
            subject="robot",
            stated=stated,
            shown=f"its samples are those of a {' or '.join(names)}",
            evidence=evidence.words(robot, load_robot(names[0])),
            remedy=remedy.format(options=options),
            refused=True,
        ),
    )


class ArmTypeMonitor:
    """Compares a connected arm with the one that is stated, as soon as its samples decide.

    The comparison runs in a separate thread, so that it does not delay reading: after
    FIRST_LOOK, and then each time that three times as much was observed.

    Args:
        robot: the arm that is stated.

    Attributes:
        contradiction: contradiction between the stated arm and the samples; None while
            none was found.
    """

    def __init__(self, robot: RobotDescription) -> None:
        self._robot = robot
        self._windows = SampleWindows(FIELDS)
        self._due = FIRST_LOOK
        self._thread: threading.Thread | None = None
        self.contradiction: Contradiction | None = None

    def observe(self, batch: Telemetry) -> None:
        """Add the next samples."""
        if self.contradiction is not None or not len(batch):
            return
        self._windows.add(batch)
        busy = self._thread is not None and self._thread.is_alive()
        if self._windows.seconds < self._due or busy:
            return
        self._due = 3.0 * self._windows.seconds
        work = (self._windows.windows(), batch.info)
        self._thread = threading.Thread(
            target=self._compare, args=work, name="arm type", daemon=True
        )
        self._thread.start()

    def _compare(self, windows: Sequence[Telemetry], info: RecordingInfo) -> None:
        """Compare the stated arm with windows of samples, and keep a contradiction."""
        stated = f"the arm is stated to be a {self._robot.name}"
        evidence = _Evidence(windows, self._robot.dof)
        remedy = "state it with {options}"
        found = _contradictions(evidence, info, self._robot, stated, remedy)
        self.contradiction = found[0] if found else None

    def finish(self) -> Contradiction | None:
        """The contradiction by all samples, at the end of a recording.

        A comparison in progress is completed first.
        """
        if self._thread is not None:
            self._thread.join()
        if self.contradiction is None:
            self._compare(self._windows.windows(), RecordingInfo())
        return self.contradiction


# Evidence for one arm compared with another.


@cache
def _package_arms() -> tuple[RobotDescription, ...]:
    """Descriptions of all arms in the package."""
    return tuple(load_robot(name) for name in available_robots())


_Constants = tuple[bytes, ...]


def _constants(robot: RobotDescription) -> _Constants:
    """The constants that torques and poses depend on, to compare arms for equality."""
    arrays = (
        *(robot.d, robot.a, robot.alpha, robot.theta, robot.origin),
        *(robot.mass, robot.center_of_mass, robot.inertia),
    )
    return tuple(np.round(values, 9).tobytes() for values in arrays)


class _Evidence:
    """Fits of the samples of a recording, each computed once, for arms with one number of joints.

    Args:
        windows: windows of the recording.
        dof: number of joints; windows with another number are left out.
    """

    def __init__(self, windows: Sequence[Telemetry], dof: int) -> None:
        same = [part for part in windows if _joints(part) == dof]
        self._dof = dof
        self._torque_windows = _torque_windows(same)
        self._q, self._position = _tool_poses(same)
        self._speed = _lasting_speed(same, dof)
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
        """Scatter of the tool [m]; None without poses, or where the base frame may be another."""
        if not len(self._q) or robot.generation == "other":
            return None
        key = _constants(robot)
        if key not in self._scatters:
            self._scatters[key] = tool_scatter(robot, self._q, self._position)
        return self._scatters[key]

    def _too_fast(self, robot: RobotDescription) -> bool:
        """Whether a joint exceeded the rated speed clearly."""
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
        if scatter is not None and scatter > _SCATTERED:
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

        None if these arms are too many to help a user.
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
        if scatter is not None and scatter >= _SCATTER:
            return False
        return not self._too_fast(robot)

    def _is_better(self, robot: RobotDescription, other: RobotDescription) -> bool:
        """Whether an arm explains the samples clearly better than another, and no kind worse."""
        poses = _better_poses(self._scatter(robot), self._scatter(other))
        speeds = int(self._too_fast(other)) - int(self._too_fast(robot))
        if min(poses, speeds) < 0:
            return False  # whatever the torques say, whose fit takes most of the time
        torques = _better_torques(self._torque(robot), self._torque(other))
        return torques >= 0 and max(poses, speeds, torques) > 0

    def words(self, robot: RobotDescription, right: RobotDescription) -> str:
        """Figures that show that the samples are of one arm and not of another.

        Args:
            robot: the arm that is stated.
            right: the arm that explains the samples.
        """
        found: list[str] = []
        own = self._torque(right)
        other = self._torque(robot)
        if own is not None and other is not None and _better_torques(own, other) > 0:
            ratio = other.misfit / np.maximum(own.misfit, _FINEST)
            joint = int(np.argmax(ratio))
            name = right.joint_names[joint].removesuffix("_joint")
            found.append(
                f"target_moment of {name} is explained within {_percent(own.misfit[joint])}, as "
                f"{robot.name} within {_percent(other.misfit[joint])}"
            )
            if not _GRAVITY[0] < other.gravity < _GRAVITY[1]:
                found[-1] += f" and in a gravity of {other.gravity:.1f} m/s2"
        scatter = self._scatter(right)
        other_scatter = self._scatter(robot)
        if _better_poses(scatter, other_scatter) > 0:
            assert scatter is not None
            assert other_scatter is not None
            found.append(
                f"one tool explains its poses within {1e3 * scatter:.1f} mm, as {robot.name} "
                f"within {1e3 * other_scatter:.0f} mm"
            )
        if self._too_fast(robot):
            joint = int(np.argmax(self._speed / robot.max_velocity))
            name = robot.joint_names[joint].removesuffix("_joint")
            found.append(
                f"{name} turns at {self._speed[joint]:.2f} rad/s, the rated speed of a "
                f"{robot.name} is {robot.max_velocity[joint]:.2f}"
            )
        return "; ".join(found)


def _percent(share: float) -> str:
    """A share in percent, with two digits."""
    return f"{100.0 * share:.2g} %"


def _better_torques(fit: TorqueFit | None, other: TorqueFit | None) -> int:
    """1 where an arm explains target_moment and another does not, -1 where it explains less."""
    if fit is None or other is None:
        return 0
    worse = fit.misfit > np.maximum(_NO_WORSE * other.misfit, _NEGLIGIBLE)
    if worse.any():
        return -1
    if not _is_unexplained(other) or not _explains_torques(fit):
        return 0
    ratio = np.maximum(other.misfit, _FINEST) / np.maximum(fit.misfit, _FINEST)
    return int(ratio.max() > _BETTER_JOINT and ratio.prod() > _BETTER)


def _explains_torques(fit: TorqueFit) -> bool:
    """Whether an arm explains target_moment, in a setup that an arm can have."""
    plausible = _GRAVITY[0] < fit.gravity < _GRAVITY[1] and fit.mass > _LEAST_MASS
    return plausible and bool((fit.misfit < _EXPLAINED).all())


def _seconds(fit: TorqueFit) -> float:
    """Time of filtered motion that was used [s]."""
    return fit.samples / FILTERED_RATE


def _is_unexplained(fit: TorqueFit) -> bool:
    """Whether an arm leaves more of target_moment unexplained than noise can be."""
    limit = _UNEXPLAINED_MEASURED if fit.measured else _UNEXPLAINED
    return bool(fit.misfit.max() > limit)


def _better_poses(scatter: float | None, other: float | None) -> int:
    """1 where one tool explains the poses of an arm and not of another, -1 the other way round."""
    if scatter is None or other is None:
        return 0
    if scatter > max(_SCATTERED, _NO_WORSE * other):
        return -1
    decisive = other > max(_SCATTERED, _MORE_SCATTER * max(scatter, _FINEST_SCATTER))
    return int(scatter < _SCATTER and decisive)


# The samples that each kind of evidence can use.

_TARGETS = ("target_q", "target_qd", "target_qdd")
_MEASURED = ("actual_q", "actual_qd")


def _joints(part: Telemetry) -> int:
    """Number of joints of a part's samples; 0 without positions."""
    for name in ("actual_q", "target_q"):
        if name in part and part[name].ndim == 2:
            return int(part[name].shape[1])
    return 0


def _torque_windows(windows: Sequence[Telemetry]) -> list[Telemetry]:
    """Windows with target_moment and the motion it belongs to; none if they show too little.

    The motion is the target motion where it was recorded, else the measured one.
    """
    usable = []
    for part in windows:
        if _are_recorded(part, _TARGETS):
            motion = set(FIELDS) - set(_MEASURED)
        else:
            motion = set(FIELDS) - set(_TARGETS)
            if not _are_recorded(part, _MEASURED):
                continue
        if _are_recorded(part, ("target_moment",)):
            names = [name for name in FIELDS if name in motion and name in part]
            usable.append(replace(part, columns={name: part[name] for name in names}))
    usable = _with_one_payload(usable)
    positions = [
        part["target_q"] if "target_q" in part else part["actual_q"] for part in usable
    ]
    if len(_different(positions, _POSE_GRID)) < _POSES:
        return []
    return usable


def _tool_poses(windows: Sequence[Telemetry]) -> tuple[Array, Array]:
    """Different poses of the arm with the positions of the tool; none if they are few.

    Returns:
        Joint positions [poses, n], rad, and tool positions [poses, 3], m.
    """
    needed = ("actual_q", "actual_TCP_pose")
    usable = [part for part in windows if _are_recorded(part, needed)]
    q = [part["actual_q"] for part in usable]
    rows = _different(q, _TOOL_POSE_GRID)
    if len(rows) < _TOOL_POSES:
        return np.zeros((0, 0)), np.zeros((0, 3))
    rows = rows[:: max(1, len(rows) // _MOST_TOOL_POSES)]
    position = np.concatenate([part["actual_TCP_pose"][:, :3] for part in usable])
    return np.concatenate(q)[rows], position[rows]


def _are_recorded(part: Telemetry, names: Sequence[str]) -> bool:
    """Whether each of these columns [samples, n] has a complete row."""
    for name in names:
        if name not in part or not np.isfinite(part[name]).all(axis=1).any():
            return False
    return True


def _with_one_payload(windows: Sequence[Telemetry]) -> list[Telemetry]:
    """Stretches of samples with the most frequent payload that is set in the controller."""
    stretches: list[tuple[tuple[float, ...], Telemetry]] = []
    for part in windows:
        names = [name for name in ("payload", "payload_cog") if name in part]
        if not names:
            stretches.append(((), part))
            continue
        payload = np.round(np.column_stack([part[name] for name in names]), 3)
        for rows in equal_runs(np.nan_to_num(payload)):
            key = tuple(payload[rows.start].tolist())
            stretches.append((key, part.cut(rows)))
    samples: Counter[tuple[float, ...]] = Counter()
    for key, part in stretches:
        samples[key] += len(part)
    if not samples:
        return []
    most_frequent, _ = samples.most_common(1)[0]
    return [part for key, part in stretches if key == most_frequent]


def _different(positions: Sequence[Array], grid: float) -> Indices:
    """The first row in each cell of a grid [rad], of positions [samples, n] joined."""
    if not positions:
        return np.zeros(0, dtype=np.intp)
    q = np.concatenate(positions)
    finite = np.flatnonzero(np.isfinite(q).all(axis=1))
    cells = np.round(np.clip(q[finite], -1e3, 1e3) / grid).astype(np.int64)
    _, first = np.unique(cells, axis=0, return_index=True)
    return finite[np.sort(first)]


def _lasting_speed(windows: Sequence[Telemetry], dof: int) -> Array:
    """Speed of each joint that at least _LASTING samples have or exceed [n], rad/s."""
    speeds = [np.zeros((_LASTING, dof))]  # at least the rows that are needed
    for part in windows:
        name = "target_qd" if "target_qd" in part else "actual_qd"
        if name in part:
            speeds.append(np.abs(part[name]))
    ordered = np.sort(np.nan_to_num(np.concatenate(speeds)), axis=0)
    return np.asarray(ordered[-_LASTING])
