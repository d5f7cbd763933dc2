# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Runs a trajectory on a robot, records and monitors it, and stops it on problems."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from pathlib import Path

import numpy as np

from ur_energy_model.errors import (
    ControllerError,
    MotionRefusedError,
    RecordingError,
)
from ur_energy_model.experiment.limits import (
    PeriodicMotion,
    SafetyLimits,
    TrajectoryVerdict,
    check,
    sample_period,
)
from ur_energy_model.experiment.motion_process import (
    APPROACH_ACCELERATION,
    APPROACH_SPEED,
    FollowTrajectory,
    MotionProcess,
    MotionReport,
    MoveTo,
)
from ur_energy_model.experiment.same_arm import KnownArm, arm_in, check_model, compared
from ur_energy_model.interrupts import raised_once
from ur_energy_model.model.geometry import ArmGeometry, Wall
from ur_energy_model.robot_modes import (
    BRAKES_RELEASED,
    NORMAL_SAFETY,
    PLAYING,
    ROBOT_MODES,
    SAFETY_MODES,
)
from ur_energy_model.telemetry.recording.recorder import Recorder
from ur_energy_model.telemetry.recording.writing_thread import RecorderStatus
from ur_energy_model.telemetry.rtde.dashboard_client import identify_controller
from ur_energy_model.telemetry.rtde.source import RtdeSource
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array, Progress


@dataclass(frozen=True)
class ExecutionPlan:
    """Plan of an execution.

    Attributes:
        trajectory: trajectory, which is checked against `limits` before the robot moves.
        limits: limits of the arm in its workplace.
        warm_up: time to run the trajectory before recording [s].
        speed_fraction: fraction of the designed speed, at most 1.
        arm: arm on which the trajectory was recorded or for which it was planned; None if
            unknown.
        another_arm: whether the trajectory may run on another arm of the same model, too.
    """

    trajectory: PeriodicMotion
    limits: SafetyLimits
    warm_up: float = 0.0
    speed_fraction: float = 1.0
    arm: KnownArm | None = None
    another_arm: bool = False

    @property
    def duration(self) -> float:
        """Duration of the recorded run [s]."""
        return self.trajectory.duration / self.speed_fraction


@dataclass(frozen=True)
class MotionSummary:
    """Planned motion, shown for approval before the robot moves.

    Attributes:
        host: address of the controller.
        robot: type of the arm.
        serial: number of the connected arm; None if unknown.
        here: current joint positions [n], rad.
        start: start of the trajectory [n], rad.
        travel: travel of the joints along the trajectory [n], rad.
        joint_speed: largest speed of each joint [n], rad/s.
        tool_speed: largest speed of flange and elbow [m/s].
        clearance: smallest distance found by the check [m].
        duration: duration of the recorded run [s].
        warm_up: time before the recorded run [s].
        program_running: whether a program runs that will be replaced.
        other_arm: difference of the robot from the expected one; empty without any.
        remarks: remarks on what could not be compared.
    """

    host: str
    robot: str
    serial: str | None
    here: Array
    start: Array
    travel: Array
    joint_speed: Array
    tool_speed: float
    clearance: float
    duration: float
    warm_up: float
    program_running: bool
    other_arm: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExecutionResult:
    """Result of an execution.

    Attributes:
        completed: whether the trajectory ran to its end.
        reason: why it did not run to its end; "" if it did.
        bag: the recording.
        status: status of the recorder at the end.
        following_error: largest following error during the trajectory [rad].
        temperatures: temperatures of the joints before and after [2, n], degC; NaN if
            unknown.
    """

    completed: bool
    reason: str
    bag: Path
    status: RecorderStatus
    following_error: float
    temperatures: Array


FOLLOWING_ERROR = 0.1  # largest difference of measured and commanded joint position [rad]
SILENCE = 1.0  # time without telemetry after which the connection counts as lost [s]
_FIRST_TELEMETRY = 3.0  # longest wait for the first telemetry [s]


class SafetyMonitor:
    """Keeps the latest telemetry of a moving robot and detects problems; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.batch: Telemetry | None = None  # the latest samples; None before the first
        self._received = time.monotonic()
        self.following_error = 0.0  # largest one since `activate` [rad]
        self._problem = ""
        self._active = False

    def __call__(self, batch: Telemetry) -> None:
        """Process a batch; called by the reading thread of the recorder."""
        safety = batch.columns.get("safety_mode")
        error = 0.0
        if "target_q" in batch and "actual_q" in batch:
            error = float(np.nanmax(np.abs(batch["target_q"] - batch["actual_q"])))
        with self._lock:
            self.batch = batch
            self._received = time.monotonic()
            if not self._active:
                return
            self.following_error = max(self.following_error, error)
            if self._problem:
                return
            if error > FOLLOWING_ERROR:
                self._problem = f"following error of {error:.2f} rad"
            if safety is not None:
                bad = [code for code in safety.astype(int) if code not in NORMAL_SAFETY]
                if bad:
                    self._problem = SAFETY_MODES.get(bad[0], f"safety mode {bad[0]}")

    def activate(self) -> None:
        """Start to check following error, safety mode and connection."""
        with self._lock:
            self._active = True
            self.following_error = 0.0
            self._problem = ""

    @property
    def problem(self) -> str:
        """Description of the problem, "" without one."""
        with self._lock:
            if self._problem or not self._active:
                return self._problem
            quiet = time.monotonic() - self._received
        if quiet <= SILENCE:
            return ""
        return f"connection lost, no telemetry for {quiet:.1f} s"

    def latest(self, name: str) -> Array | None:
        """Latest value of a field.

        Args:
            name: name of the RTDE field.

        Returns:
            The value [width]; None if it is not known yet.
        """
        batch = self.batch
        if batch is None or name not in batch:
            return None
        return np.atleast_1d(batch[name][-1])

    def code(self, name: str) -> int | None:
        """Latest value of a field that contains a code; None if it is unknown."""
        value = self.latest(name)
        if value is None or not np.isfinite(value[0]):
            return None
        return int(value[0])


_STEP = 0.02  # largest joint step between checked positions [rad]
_TIGHT = 0.01  # minimum distance on the path, unless the arm starts or ends closer [m]
_CLOSER = 1e-3  # distance that the path may lose where the arm starts or ends closer [m]
_UPRIGHT = {1: -np.pi / 2, 2: 0.0, 3: -np.pi / 2}
"""Shoulder lift, elbow and wrist 1 of a UR arm that points straight up."""


def plan_approach(current: Array, start: Array, limits: SafetyLimits) -> list[Array]:
    """Joint positions to move through in straight lines from the current to the start position.

    The path keeps a distance of `_TIGHT`; where the arm starts or ends closer than that,
    slightly less than the distance at that end. Walls that the arm already intersects
    cannot be real and do not count.

    Args:
        current: joint positions [n], rad.
        start: start of the trajectory [n], rad.
        limits: limits of the arm in its workplace.

    Returns:
        The start, preceded by up to two upright positions, each [n], rad.

    Raises:
        MotionRefusedError: every path comes too close to an obstacle.
    """

    def real(wall: Wall) -> bool:
        """Whether the arm does not intersect a wall at present."""
        alone = ArmGeometry(limits.geometry.robot, (wall,), limits.geometry.tool)
        return bool(alone.wall_distances(current[None]).min() > 0)

    walls = tuple(filter(real, limits.geometry.walls))
    geometry = ArmGeometry(limits.geometry.robot, walls, limits.geometry.tool)
    at_ends = float(geometry.distances(np.stack([current, start])).min())
    required = min(_TIGHT, at_ends - _CLOSER)
    upright_current = current.copy()
    upright_start = start.copy()
    for joint, angle in _UPRIGHT.items():
        upright_current[joint] = angle
        upright_start[joint] = angle
    for path in (
        [start],
        [upright_start, start],
        [upright_current, upright_start, start],
    ):
        if path_distance([current, *path], geometry) > required:
            return path
    raise MotionRefusedError(
        "the path to the start of the trajectory comes too close to the arm itself, the table or a "
        "wall; move the arm by hand to an open position, such as straight up, and try again"
    )


def path_distance(corners: list[Array], geometry: ArmGeometry) -> float:
    """Smallest distance to obstacles on straight joint lines through corners [m].

    Args:
        corners: joint positions, each [n], rad.
        geometry: geometry of the arm and its surroundings.
    """
    parts = []
    for begin, end in pairwise(corners):
        count = max(2, int(np.ceil(np.abs(end - begin).max() / _STEP)) + 1)
        parts.append(np.linspace(begin, end, count))
    return float(geometry.distances(np.concatenate(parts)).min())


MARGIN = 0.5  # recorded rest before and after the trajectory [s]
_POLL = 0.02  # pause between two checks of the telemetry while waiting [s]
_SETTLE = 5.0  # longest wait for an arm to come to rest [s]
_RESTING = 1e-3  # target speed of all joints below which the arm rests [rad/s]
_MEASURED_LATER = 0.1  # time by which measured positions rest later than targets [s]
_ARRIVED = 1e-2
"""Largest joint distance to the start at which a trajectory may begin [rad]."""
_SUMMARY_RATE = 100.0  # samples of the trajectory for the summary, per second [Hz]


def execute(
    plan: ExecutionPlan,
    host: str,
    bag: str | Path,
    *,
    approve: Callable[[MotionSummary], bool],
    progress: Progress | None = None,
) -> ExecutionResult:
    """Move to the start, run the trajectory and record it into a new bag.

    On problems (protective stop, following error, lost connection) and on a request to
    end (Ctrl-C, SIGTERM, SIGHUP) the robot is stopped smoothly, and the recording is
    kept; `ExecutionResult.completed` is then False.

    Args:
        plan: trajectory, limits and arm.
        host: address of the controller.
        bag: path of the new recording.
        approve: called with the summary; the robot moves only if the result is True.
        progress: called with a fraction and a text.

    Raises:
        MotionRefusedError: the trajectory does not pass the checks, the robot is not
            ready or is not the arm of the plan, the motion was not approved, or the start
            cannot be reached safely.
        ControllerError: no connection.
        RecordingError: the bag exists or cannot be written.
        KeyboardInterrupt: a request to end, after the robot has stopped and the bag is
            complete.
    """
    if Path(bag).exists():
        raise RecordingError(bag, "exists already", "name another output")
    verdict = check(plan.trajectory, plan.limits)
    if not verdict.passed:
        raise MotionRefusedError(
            f"the trajectory is not safe: {'; '.join(verdict.problems)}"
        )
    robot = plan.limits.dynamics.robot
    monitor = SafetyMonitor()
    identity = identify_controller(host)
    expected = plan.arm or KnownArm("the trajectory", robot.name)
    check_model(expected, host, identity)
    with (
        RtdeSource(host, robot=robot.name) as source,
        Recorder(source, tap=monitor) as recorder,
    ):
        here = _ready(host, monitor)
        info = source.info
        check_model(expected, info.source, identity, info.controller_version)
        summary = _summary(plan, verdict, info, here, monitor)
        if not approve(summary):
            raise MotionRefusedError("not approved, nothing moved")
        # Only the first request to end interrupts: nothing interrupts the end of the
        # motion.
        with raised_once(inf), MotionProcess(host, robot.rate, plan.trajectory) as mover:
            return _Run(plan, mover, monitor, recorder, Path(bag), progress).run()


@dataclass(frozen=True)
class _Run:
    """The steps of one execution, on a robot whose motion is approved."""

    _plan: ExecutionPlan
    _mover: MotionProcess
    _monitor: SafetyMonitor
    _recorder: Recorder
    _bag: Path
    _progress: Progress | None

    def run(self) -> ExecutionResult:
        """Move to the start, warm up, and record the trajectory with rest before and after."""
        plan = self._plan
        monitor = self._monitor
        monitor.activate()
        self._approach()
        if plan.warm_up > 0:
            periods = max(
                1, round(plan.warm_up * plan.speed_fraction / plan.trajectory.period)
            )
            warm_up = plan.trajectory.repeated(periods)
            self._follow(warm_up, "warming up")
            self._expect_finished()
        before = self._temperatures()
        self._recorder.start(self._bag)
        monitor.activate()
        try:
            time.sleep(MARGIN)
            self._recorder.mark("trajectory begins")
            self._follow(plan.trajectory, "running")
            report = self._mover.report
            if report.state == "finished":
                self._recorder.mark("trajectory ends")
        finally:
            self._mover.stop()
            time.sleep(MARGIN)
            error = monitor.following_error
            status = self._recorder.stop()
        reason = self._reason(report)
        temperatures = np.stack([before, self._temperatures()])
        return ExecutionResult(not reason, reason, self._bag, status, error, temperatures)

    def _approach(self) -> None:
        """Move slowly to the start on a collision-free path.

        Raises:
            MotionRefusedError: there is no such path, or the start was not reached.
        """
        start = self._plan.trajectory.start
        for corner in plan_approach(self._resting(), start, self._plan.limits):
            self._mover.order(MoveTo(corner, APPROACH_SPEED, APPROACH_ACCELERATION))
            self._wait("moving to the start", None)
            self._expect_finished()
        if np.abs(self._resting() - start).max() > _ARRIVED:
            raise MotionRefusedError(
                "the start of the trajectory was not reached; is a speed limit or a safety plane "
                "in the way?"
            )

    def _follow(self, trajectory: PeriodicMotion, text: str) -> None:
        """Follow a trajectory to its end, with its progress under a text."""
        self._mover.order(FollowTrajectory(trajectory, self._plan.speed_fraction))
        self._wait(text, trajectory.duration)

    def _wait(self, text: str, duration: float | None) -> None:
        """Wait until the motion has ended; stop it on a problem."""
        while self._mover.update().state == "moving":
            if self._problem():
                self._mover.stop()
                break
            if self._progress is not None and duration is not None:
                self._progress(self._mover.report.time / duration, text)
            time.sleep(_POLL)

    def _expect_finished(self) -> None:
        """Refuse to continue after a motion that did not reach its end.

        Raises:
            MotionRefusedError: the motion was stopped.
        """
        reason = self._reason(self._mover.report)
        if reason:
            raise MotionRefusedError(f"the motion was stopped: {reason}")

    def _reason(self, report: MotionReport) -> str:
        """Why a motion did not finish; "" for a motion that did."""
        problem = self._problem()
        if problem or report.state == "finished":
            return problem
        return report.reason or f"the motion was {report.state}"

    def _problem(self) -> str:
        """Problem of robot or recording, "" without one."""
        status = self._recorder.status
        if status.state in ("failing", "stopped"):
            return f"recording failed ({status.last_error})"
        return self._monitor.problem

    def _resting(self) -> Array:
        """Measured position [n], rad, once the arm is at rest.

        Raises:
            MotionRefusedError: the arm does not come to rest.
        """
        deadline = time.monotonic() + _SETTLE
        while time.monotonic() < deadline:
            speed = self._monitor.latest("target_qd")
            if speed is not None and np.abs(speed).max() < _RESTING:
                time.sleep(_MEASURED_LATER)
                here = self._monitor.latest("actual_q")
                assert here is not None
                return here
            time.sleep(_POLL)
        raise MotionRefusedError(
            "the arm does not come to rest; stop the program that moves it"
        )

    def _temperatures(self) -> Array:
        """Latest joint temperatures [n], degC; NaN if unknown."""
        value = self._monitor.latest("joint_temperatures")
        if value is None:
            return np.full(len(self._plan.trajectory.start), np.nan)
        return value


def _ready(host: str, monitor: SafetyMonitor) -> Array:
    """Joint positions of a robot that is ready to move [n], rad.

    Raises:
        ControllerError: the controller sends no telemetry.
        MotionRefusedError: the arm is not powered on, or in a safety mode.
    """
    deadline = time.monotonic() + _FIRST_TELEMETRY
    while (here := monitor.latest("actual_q")) is None:
        if time.monotonic() > deadline:
            raise ControllerError(host, "sends no telemetry", "check the connection")
        time.sleep(_POLL)
    mode = monitor.code("robot_mode")
    safety = monitor.code("safety_mode")
    if mode is not None and mode not in BRAKES_RELEASED:
        raise MotionRefusedError(
            f"the robot is in mode '{ROBOT_MODES.get(mode, str(mode))}'; power it on and release "
            "the brakes"
        )
    if safety is not None and safety not in NORMAL_SAFETY:
        raise MotionRefusedError(
            f"the robot is in safety mode '{SAFETY_MODES.get(safety, str(safety))}'; acknowledge "
            "it on the teach pendant"
        )
    return here


def _summary(
    plan: ExecutionPlan,
    verdict: TrajectoryVerdict,
    info: RecordingInfo,
    here: Array,
    monitor: SafetyMonitor,
) -> MotionSummary:
    """The planned motion for approval, after the comparison of the connected arm.

    Raises:
        MotionRefusedError: the connected arm is not the arm of the plan.
    """
    _, q, qd, _ = sample_period(plan.trajectory, _SUMMARY_RATE)
    batch = monitor.batch
    other = ""
    remarks = tuple[str, ...]()
    if plan.arm is not None and batch is not None:
        robot = plan.limits.dynamics.robot
        mounting = plan.arm.gravity
        found = arm_in(
            replace(batch, info=info),
            robot,
            info.source,
            positions=here[None],
            mounting=mounting,
        )
        other, remarks = compared(plan.arm, found, another_arm=plan.another_arm)
    return MotionSummary(
        host=info.source,
        robot=plan.trajectory.robot,
        serial=info.serial,
        here=here,
        start=plan.trajectory.start,
        travel=np.ptp(q, axis=0),
        joint_speed=np.abs(qd).max(axis=0) * plan.speed_fraction,
        tool_speed=verdict.max_tool_speed * plan.speed_fraction,
        clearance=verdict.clearance,
        duration=plan.duration,
        warm_up=plan.warm_up,
        program_running=monitor.code("runtime_state") == PLAYING,
        other_arm=other,
        remarks=remarks,
    )
