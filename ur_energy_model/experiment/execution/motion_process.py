"""Moves a robot through ur_rtde, in a process of its own.

ur_rtde's constructor can hang while it holds Python's global lock, and a process that dies must
not leave a robot moving: so the process that commands motions does nothing else. It ends the
motion smoothly when told to, when its parent vanishes (the pipe closes), and the controller's
watchdog stops the program where the process itself vanishes.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Literal

from ur_energy_model.errors import ControllerError
from ur_energy_model.experiment.child_process import start_ignoring_interrupts
from ur_energy_model.experiment.export import GAIN, LOOKAHEAD_TIME
from ur_energy_model.experiment.periodic_motion import PeriodicMotion
from ur_energy_model.typing import Array

State = Literal["connecting", "idle", "moving", "finished", "stopped", "failed", "closed"]

STOP_SECONDS = 0.4
"""Time in which a followed trajectory is slowed down to rest, on its own path."""
JOINT_STOP = 1.5
"""Deceleration that ends a joint move [rad/s^2]."""
WATCHDOG = 2.0
"""The controller stops the program when it hears less often than this [Hz]."""
CONNECT_SECONDS = 30.0
_IDLE_SECONDS = 0.05
_REPORT_SECONDS = 0.1
_MOST_CYCLES = 4.0
_SILENCE = 0.1
_NAP = 1e-4
_PRIORITY = 20


@dataclass(frozen=True)
class MoveTo:
    """Joint move: target [n] in rad, speed in rad/s, acceleration in rad/s^2."""

    q: Array
    speed: float
    acceleration: float


@dataclass(frozen=True)
class FollowTrajectory:
    """Follow a trajectory from its start, `pace` times as fast as it was designed."""

    trajectory: PeriodicMotion
    pace: float = 1.0


@dataclass(frozen=True)
class StopMoving:
    """End what moves, smoothly."""


@dataclass(frozen=True)
class MotionReport:
    """What the moving process says: its state, path time [s] and the reason of a failure."""

    state: State
    time: float = 0.0
    reason: str = ""


class MotionProcess:
    """The parent's end: gives orders, knows the state. A context manager that ends the motion.

    Args:
        host: address of the controller.
        rate: of the controller [Hz].
    """

    def __init__(self, host: str, rate: float) -> None:
        context = multiprocessing.get_context("spawn")
        self.host = host
        self.report = MotionReport("connecting")
        self._pipe, theirs = context.Pipe()
        self._process: Any = context.Process(target=_drive, args=(theirs, host, rate), daemon=True)
        start_ignoring_interrupts(self._process)
        theirs.close()

    def __enter__(self) -> MotionProcess:
        """Wait for the connection.

        Raises:
            ControllerError: refused, or no answer in time.
        """
        deadline = time.monotonic() + CONNECT_SECONDS
        while self.update().state == "connecting" and time.monotonic() < deadline:
            time.sleep(0.02)
        if self.report.state != "idle":
            state, reason = self.report.state, self.report.reason
            self._end()
            raise ControllerError(
                self.host,
                "does not let itself be controlled"
                + (f" ({reason})" if reason else "" if state == "failed" else ": no answer"),
                "power it on, release the brakes and switch it to remote control",
            )
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._end()

    def order(self, order: MoveTo | FollowTrajectory) -> None:
        """Begin a motion; the state turns to moving, then finished, stopped or failed."""
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
                    "failed", self.report.time, "the moving process has ended"
                )
        return self.report

    def stop(self, timeout: float = 3.0) -> None:
        """End the motion smoothly and wait until it has ended, at most this long [s]."""
        if self.update().state != "moving":
            return
        self._send(StopMoving())
        deadline = time.monotonic() + timeout
        while self.update().state == "moving" and time.monotonic() < deadline:
            time.sleep(0.01)

    def _send(self, order: MoveTo | FollowTrajectory | StopMoving | None) -> None:
        try:
            self._pipe.send(order)
        except OSError:
            self.update()

    def _end(self) -> None:
        self._send(None)
        self._process.join(timeout=3.0)
        if self._process.is_alive():  # ur_rtde hangs; the watchdog on the controller stops the arm
            self._process.kill()
            self._process.join()
        self._pipe.close()


class _ControllerClock:
    """Time by the controller, cycle by cycle.

    Args:
        receiver: ur_rtde's receive interface.
    """

    def __init__(self, receiver: Any) -> None:
        self._receiver = receiver
        self._last = -1.0

    def next(self) -> float:
        """Wait for the next cycle and return its timestamp [s]; the old one after a silence."""
        deadline = time.monotonic() + _SILENCE
        now: float = self._receiver.getTimestamp()
        while now == self._last and time.monotonic() < deadline:
            time.sleep(_NAP)
            now = self._receiver.getTimestamp()
        self._last = now
        return now


def _drive(pipe: Connection, host: str, rate: float) -> None:
    """Body of the moving process."""
    os.dup2(2, 1)  # ur_rtde prints remarks; stdout is the parent's
    with suppress(AttributeError, OSError):  # real-time priority, where the system grants it
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    try:
        from rtde_control import RTDEControlInterface
        from rtde_receive import RTDEReceiveInterface

        control = RTDEControlInterface(host, rate)
        clock = _ControllerClock(RTDEReceiveInterface(host, rate, ["timestamp"]))
        control.setWatchdog(WATCHDOG)
    except Exception as error:
        pipe.send(
            MotionReport("failed", reason=" ".join(str(error).split()) or type(error).__name__)
        )
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
    except (EOFError, BrokenPipeError):  # the parent has vanished
        pass
    except Exception as error:
        pipe.send(
            MotionReport("failed", reason=" ".join(str(error).split()) or type(error).__name__)
        )
    finally:
        control.stopScript()


def _move(control: Any, pipe: Connection, order: MoveTo) -> MotionReport:
    """A joint move, ended early by any message."""
    if not control.moveJ(order.q.tolist(), order.speed, order.acceleration, True):
        return MotionReport("failed", reason="the controller refused the move")
    began = time.monotonic()
    while control.getAsyncOperationProgress() >= 0 or time.monotonic() - began < 0.2:
        if _stop_wanted(pipe):
            control.stopJ(JOINT_STOP)
            return MotionReport("stopped")
        if not control.isConnected() or not control.isProgramRunning():
            return MotionReport("failed", reason="the controller ended the program")
        time.sleep(_IDLE_SECONDS)
        control.kickWatchdog()
    return MotionReport("finished")


def _follow(
    control: Any, clock: _ControllerClock, pipe: Connection, order: FollowTrajectory, period: float
) -> MotionReport:
    """Stream a trajectory; after a stop it is followed on, slower and slower, to rest.

    Each set point answers a cycle of the controller, so that none goes without and none gets two;
    path time is controller time, but goes on by a few cycles at most, so that a long hiccup of
    this machine delays the motion instead of making it jump.
    """
    trajectory, pace, where = order.trajectory, order.pace, 0.0
    last, reported = clock.next(), time.monotonic()
    stopping = False
    while where < trajectory.duration and pace > 0:
        now = clock.next()
        step = min(max(now - last, 0.0), _MOST_CYCLES * period)
        last = now
        if stopping:
            pace = max(0.0, pace - order.pace * step / STOP_SECONDS)
        where = min(where + pace * step, trajectory.duration)
        q = trajectory.sample(where)[0][0].tolist()
        if not control.servoJ(q, 0.0, 0.0, period, LOOKAHEAD_TIME, GAIN):
            return MotionReport("failed", where, "the controller takes no more set points")
        if not stopping:
            stopping = _stop_wanted(pipe)
        if time.monotonic() - reported > _REPORT_SECONDS:
            reported = time.monotonic()
            if not control.isConnected() or not control.isProgramRunning():
                return MotionReport("failed", where, "the controller ended the program")
            if not stopping:
                pipe.send(MotionReport("moving", where))
    control.servoStop()
    return MotionReport("stopped" if stopping else "finished", where)


def _stop_wanted(pipe: Connection) -> bool:
    """Whether the parent said anything, which while moving means stop, or has vanished."""
    try:
        if not pipe.poll():
            return False
        pipe.recv()
    except (EOFError, OSError):
        pass
    return True
