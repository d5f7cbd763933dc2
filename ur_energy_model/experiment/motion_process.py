# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Moves a robot through ur_rtde in a separate process.

The constructor of ur_rtde can block while it holds Python's global interpreter lock, and
a process that dies must not leave a robot moving. The process that commands motions
therefore does nothing else. It ends the motion smoothly on request and when its parent
ends (the pipe closes); if the process itself ends, the watchdog of the controller stops
the program. Signals are for its parent, which ends the motion.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ur_energy_model import interrupts
from ur_energy_model.errors import ControllerError, InputError, optional_import
from ur_energy_model.experiment.limits import PeriodicMotion
from ur_energy_model.files import write_text
from ur_energy_model.processes import ChildProcess, end_with_parent
from ur_energy_model.trajectory.fourier import FourierTrajectory
from ur_energy_model.trajectory.plan_file import csv_text
from ur_energy_model.typing import Array

LOOKAHEAD_TIME = 0.03  # look-ahead of servoj [s] (Raviola et al. 2021)
GAIN = 500  # gain of servoj (Raviola et al. 2021)
APPROACH_SPEED = 0.4  # joint speed of the move to the start [rad/s]
APPROACH_ACCELERATION = 0.5  # joint acceleration of the move to the start [rad/s^2]


def export_trajectory(
    path: str | Path, trajectory: FourierTrajectory, rate: float
) -> None:
    """Write a trajectory for other tools in the format given by the suffix.

    Args:
        path: a .csv is a table for `ur_energy predict`, a .script or .urscript a program.
        trajectory: trajectory to write.
        rate: rows of a table per second [Hz].

    Raises:
        InputError: unknown suffix, or the file cannot be written.
    """
    target = Path(path)
    match target.suffix.lower():
        case ".csv":
            time = np.linspace(
                0.0, trajectory.duration, round(trajectory.duration * rate) + 1
            )
            text = csv_text(time, *trajectory.sample(time))
        case ".script" | ".urscript":
            text = urscript(trajectory)
        case suffix:
            raise InputError(
                target,
                f"has no export format for '{suffix}'",
                "name it .csv, .script or .urscript",
            )
    write_text(target, text)


def urscript(trajectory: FourierTrajectory) -> str:
    """URScript program: slow move to the start, then the Fourier series by servoj.

    The program evaluates the series itself, so it needs no network while it runs. It
    computes one sine and one cosine per step; sines and cosines of higher harmonics follow
    from the addition theorem.
    """
    orders = range(1, trajectory.harmonics + 1)
    start = ", ".join(f"{value:.9f}" for value in trajectory.start)
    joints = []
    for q0, a, b in zip(trajectory.q0, trajectory.a, trajectory.b, strict=True):
        terms = [f"{q0:.9f}"]
        terms += [f"({a[k - 1]:.9f}) * s{k} - ({b[k - 1]:.9f}) * c{k}" for k in orders]
        joints.append(" + ".join(terms))
    recurrence = [
        f"""\
    local s{k} = s{k - 1} * c1 + c{k - 1} * s1
    local c{k} = c{k - 1} * c1 - s{k - 1} * s1
"""
        for k in orders[1:]
    ]
    series = [f"    local q{joint} = {text}\n" for joint, text in enumerate(joints)]
    names = ", ".join(f"q{joint}" for joint in range(trajectory.dof))
    return f"""\
def exciting_trajectory():
  # {trajectory.robot}: {trajectory.duration:g} s, \
{trajectory.repetitions} periods of {trajectory.period:g} s
  movej([{start}], a={APPROACH_ACCELERATION}, v={APPROACH_SPEED})
  local dt = get_steptime()
  local w = {2 * np.pi / trajectory.period:.12f}
  local t = 0.0
  while t < {trajectory.duration:.9f}:
    local s1 = sin(w * t)
    local c1 = cos(w * t)
{"".join(recurrence)}{"".join(series)}\
    servoj([{names}], 0, 0, dt, {LOOKAHEAD_TIME}, {GAIN})
    t = t + dt
  end
  stopj(2.0)
end
"""


State = Literal["connecting", "idle", "moving", "finished", "stopped", "failed", "closed"]

STOP_SECONDS = 0.4  # time to slow a followed trajectory down to rest on its path [s]
JOINT_STOP = 1.5  # deceleration that stops a joint move [rad/s^2]
WATCHDOG = 2.0
"""The controller stops the program if it receives inputs less often than this [Hz]."""
CONNECT_SECONDS = 60.0  # a busy machine needs 30 s to import what the process needs [s]
_IDLE_SECONDS = 0.05  # time between inputs for the watchdog while nothing is streamed [s]
_REPORT_SECONDS = 0.1  # time between two reports of a followed trajectory [s]
_MOST_CYCLES = 4.0
"""Largest advance along a trajectory in one step, in cycles of the controller."""
_MOVE_BEGINS = 0.2  # time after which a joint move without progress has ended [s]
_END_SECONDS = 5.0
"""Time for the smooth end of a motion after the end of the parent, before the process is killed."""
_SILENCE = 0.1  # longest wait for a new timestamp [s]
_NAP = 1e-4  # pause between looks at the timestamp [s]
_PRIORITY = 20  # real-time priority of the process


class MoveTo(NamedTuple):
    """Joint move to a position.

    Attributes:
        q: target [n], rad.
        speed: speed of the leading joint [rad/s].
        acceleration: acceleration of the leading joint [rad/s^2].
    """

    q: Array
    speed: float
    acceleration: float


class FollowTrajectory(NamedTuple):
    """Follow a trajectory from its start.

    Attributes:
        trajectory: trajectory whose start the arm is at.
        speed_fraction: fraction of its speed, at most 1.
    """

    trajectory: PeriodicMotion
    speed_fraction: float = 1.0


class MotionReport(NamedTuple):
    """Report of the motion process.

    Attributes:
        state: state of the motion.
        time: time along the path [s].
        reason: reason of a failure; empty without one.
    """

    state: State
    time: float = 0.0
    reason: str = ""


class MotionProcess:
    """The motion process seen from its parent; a context manager that stops the motion.

    The process receives the motion that will be followed at its start: the imports that
    the motion needs are then done before the watchdog of the controller is set, which a
    slow import would trip.

    Args:
        host: address of the controller.
        rate: rate of the controller [Hz].
        motion: motion that will be followed; None if there is none.

    Attributes:
        host: address of the controller.
        report: latest report of the process.
    """

    def __init__(
        self, host: str, rate: float, motion: PeriodicMotion | None = None
    ) -> None:
        self.host = host
        self.report = MotionReport("connecting")
        self._pipe, theirs = Pipe()
        arguments = (theirs, host, rate, motion)
        self._process = ChildProcess(target=_drive, args=arguments, daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> MotionProcess:
        """Wait for the connection.

        Raises:
            ControllerError: the controller refuses, or does not answer in time.
        """
        deadline = time.monotonic() + CONNECT_SECONDS
        while self.update().state == "connecting" and time.monotonic() < deadline:
            time.sleep(0.02)
        if self.report.state != "idle":
            problem = "does not accept remote control"
            if self.report.reason:
                problem += f" ({self.report.reason})"
            elif self.report.state != "failed":
                problem += ": no answer"
            self._end()
            remedy = "power it on, release the brakes and switch it to remote control"
            raise ControllerError(self.host, problem, remedy)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._end()

    def order(self, order: MoveTo | FollowTrajectory) -> None:
        """Start a motion; the state changes to moving, then finished, stopped or failed."""
        self.report = MotionReport("moving")
        self._send(order)

    def update(self) -> MotionReport:
        """The latest report."""
        try:
            while self._pipe.poll():
                self.report = self._pipe.recv()
        except (EOFError, OSError):
            if self.report.state not in ("failed", "closed"):
                self.report = MotionReport(
                    "failed", self.report.time, "the motion process has ended"
                )
        return self.report

    def stop(self, timeout: float = 3.0) -> None:
        """Stop the motion smoothly.

        Args:
            timeout: longest time to wait until the motion has stopped [s].
        """
        if self.update().state != "moving":
            return
        self._send("stop")
        deadline = time.monotonic() + timeout
        while self.update().state == "moving" and time.monotonic() < deadline:
            time.sleep(0.01)

    def _send(self, order: MoveTo | FollowTrajectory | Literal["stop"] | None) -> None:
        try:
            self._pipe.send(order)
        except OSError:
            self.update()

    def _end(self) -> None:
        """End the process."""
        self._send(None)
        self._process.join(timeout=3.0)
        # Where ur_rtde blocks, the watchdog of the controller stops the arm.
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._pipe.close()


def _cycles(receiver: Any) -> Iterator[float]:
    """Timestamps of the controller [s] from the receive interface of ur_rtde, cycle by cycle.

    After `_SILENCE` s without data the last timestamp is repeated.
    """
    last = -1.0
    while True:
        deadline = time.monotonic() + _SILENCE
        now: float = receiver.getTimestamp()
        while now == last and time.monotonic() < deadline:
            time.sleep(_NAP)
            now = receiver.getTimestamp()
        last = now
        yield now


def _drive(
    pipe: Connection, host: str, rate: float, _motion: PeriodicMotion | None
) -> None:
    """Main function of the motion process.

    Args:
        pipe: receives orders, sends reports.
        host: address of the controller.
        rate: rate of the controller [Hz].
        _motion: not used; receiving it imports the modules of its parts before the
            watchdog is set.
    """
    parent = os.getppid()
    interrupts.ignore()
    os.dup2(2, 1)  # ur_rtde prints to stdout, which belongs to the parent
    with suppress(AttributeError, OSError):  # real-time priority if permitted
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    try:
        with optional_import():
            from rtde_control import RTDEControlInterface
            from rtde_receive import RTDEReceiveInterface

        control = RTDEControlInterface(host, rate)
        clock = _cycles(RTDEReceiveInterface(host, rate, ["timestamp"]))
        control.setWatchdog(WATCHDOG)
        # Until here the end of the parent kills the process, even in a constructor that
        # blocks.
        end_with_parent(parent, _END_SECONDS)
    except Exception as error:
        pipe.send(_failure(error))
        return
    try:
        pipe.send(MotionReport("idle"))
        while True:
            while not pipe.poll(_IDLE_SECONDS):
                control.kickWatchdog()
            order = pipe.recv()
            if order is None:
                break
            if isinstance(order, MoveTo):
                pipe.send(_move(control, pipe, order))
            elif isinstance(order, FollowTrajectory):
                pipe.send(_follow(control, clock, pipe, order, 1.0 / rate))
    except (EOFError, BrokenPipeError):  # the parent has ended
        pass
    except Exception as error:
        pipe.send(_failure(error))
    finally:
        # Without a connection the call would wait; the watchdog has ended the program.
        if control.isConnected():
            control.stopScript()


def _failure(error: Exception) -> MotionReport:
    """The report of an error, in one line."""
    reason = " ".join(str(error).split())
    return MotionReport("failed", reason=reason or type(error).__name__)


def _move(control: Any, pipe: Connection, order: MoveTo) -> MotionReport:
    """Run a joint move; any message stops the move.

    Args:
        control: control interface of ur_rtde.
        pipe: connection on which messages arrive.
        order: the move.
    """
    if not control.moveJ(order.q.tolist(), order.speed, order.acceleration, True):
        return MotionReport("failed", reason="the controller refused the move")
    began = time.monotonic()
    while (
        control.getAsyncOperationProgress() >= 0
        or time.monotonic() - began < _MOVE_BEGINS
    ):
        if _stop_requested(pipe):
            control.stopJ(JOINT_STOP)
            return MotionReport("stopped")
        if not control.isConnected() or not control.isProgramRunning():
            return MotionReport("failed", reason="the controller ended the program")
        time.sleep(_IDLE_SECONDS)
        control.kickWatchdog()
    return MotionReport("finished")


def _follow(
    control: Any,
    clock: Iterator[float],
    pipe: Connection,
    order: FollowTrajectory,
    period: float,
) -> MotionReport:
    """Stream a trajectory, a set point per cycle; a stop slows it down to rest on its path.

    Path time follows controller time but advances by a few cycles at most, so that an
    interruption of this process delays the motion instead of making it jump.

    Args:
        control: control interface of ur_rtde.
        clock: timestamps of the controller [s], cycle by cycle.
        pipe: connection for messages and reports.
        order: the trajectory.
        period: cycle of the controller [s].
    """
    trajectory = order.trajectory
    speed = order.speed_fraction
    path_time = 0.0
    last = next(clock)
    reported = time.monotonic()
    stopping = False
    while path_time < trajectory.duration and speed > 0:
        now = next(clock)
        step = min(max(now - last, 0.0), _MOST_CYCLES * period)
        last = now
        if stopping:
            speed = max(0.0, speed - order.speed_fraction * step / STOP_SECONDS)
        path_time = min(path_time + speed * step, trajectory.duration)
        q = trajectory.sample(path_time)[0][0].tolist()
        if not control.servoJ(q, 0.0, 0.0, period, LOOKAHEAD_TIME, GAIN):
            return MotionReport(
                "failed", path_time, "the controller does not accept set points"
            )
        if not stopping:
            stopping = _stop_requested(pipe)
        if time.monotonic() - reported > _REPORT_SECONDS:
            reported = time.monotonic()
            if not control.isConnected() or not control.isProgramRunning():
                return MotionReport(
                    "failed", path_time, "the controller ended the program"
                )
            if not stopping:
                pipe.send(MotionReport("moving", path_time))
    control.servoStop()
    return MotionReport("stopped" if stopping else "finished", path_time)


def _stop_requested(pipe: Connection) -> bool:
    """Whether the parent sent a message, which means stop while moving, or has ended."""
    try:
        if not pipe.poll():
            return False
        pipe.recv()
    except (EOFError, OSError):
        pass
    return True
