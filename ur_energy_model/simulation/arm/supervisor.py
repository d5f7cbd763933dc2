"""What moves the arm now: its own motion or a client's commands, within the safety limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.simulation.arm import commands as cmd
from ur_energy_model.simulation.arm.modes import ProgramState, SafetyMode
from ur_energy_model.simulation.arm.parameters import constants
from ur_energy_model.simulation.arm.references import (
    MotionReference,
    Reference,
    Rest,
    ServoReference,
    SpeedReference,
    State,
)
from ur_energy_model.trajectory.motions import Hold, Motion
from ur_energy_model.trajectory.planner import Planner
from ur_energy_model.typing import Array, Mask

Move = cmd.Play | cmd.MoveJ | cmd.Follow | cmd.ServoJ | cmd.SpeedJ | cmd.StopJ
Control = cmd.SpeedSlider | cmd.ProtectiveStop | cmd.Unlock | cmd.Pause | cmd.Stop

SCALING_RATE = 3.0
"""How fast the speed scaling follows slider and pause [1/s]."""
STOP_ACCELERATION = 10.0
"""Of a protective stop, and before a move from a moving arm, rad/s^2."""
SLOWEST = 1e-3
"""Least speed and acceleration that a command may ask for, rad/s and rad/s^2."""
APPROACH = {"v": 0.9, "a": 1.8}
"""Of the way from where the arm stands to where its own motion begins, rad/s and rad/s^2."""
OVERLOAD_SECONDS = 0.02
"""How long a torque beyond the limits is borne [s]."""
MARGIN = 1.02
"""Limits may be exceeded by this factor before the arm stops itself."""


class Supervisor:
    """Chooses the reference of every cycle and stops the arm where limits are broken.

    Args:
        planner: of the moves, for n joints.
        motion: the arm's own.
        q: where it stands [n], rad.

    Attributes:
        fraction: speed slider, 0 to 1.
        scale: speed scaling in effect, 0 to 1.
        safety_mode: normal or protective stop.
        stop_reason: why it stopped itself, None where it did not.
        program_state: of the arm's own motion.
    """

    def __init__(self, planner: Planner, motion: Motion, q: Array) -> None:
        self._planner, self._robot, self._motion = planner, planner.robot, motion
        self._state: State = (q, np.zeros_like(q), np.zeros_like(q))
        self._own: MotionReference | None = None
        self._reference: Reference = Rest(q)
        self._after: list[Reference | cmd.MoveJ] = []
        self.fraction = self.scale = 1.0
        self.safety_mode = SafetyMode.NORMAL
        self.stop_reason: str | None = None
        self._overloaded = np.zeros(len(q), dtype=np.intp)
        self.program_state = ProgramState.STOPPED
        if not isinstance(motion, Hold):
            self._play()

    @property
    def busy(self) -> bool:
        """Whether a commanded move or stop has not come to its end."""
        own = self._own is not None and self._reference is self._own
        return not own and (bool(self._after) or not self._reference.done)

    @property
    def limited(self) -> float:
        """What the trajectory limiter makes of the slider's speed: `scale` over `fraction`."""
        return self.scale / self.fraction if self.fraction > 0.0 else 1.0

    def command(self, command: Move | Control) -> None:
        """Take a motion command.

        Raises:
            MotionRefusedError: during a protective stop, before Unlock.
        """
        if isinstance(command, cmd.SpeedSlider):
            self.fraction = float(np.clip(command.fraction, 0.0, 1.0))
            return
        if isinstance(command, cmd.Unlock):
            self.safety_mode, self.stop_reason = SafetyMode.NORMAL, None
            return
        if isinstance(command, cmd.ProtectiveStop):
            self._stop("asked for from outside")
            return
        if isinstance(command, cmd.Pause | cmd.Stop):
            self._end_program(paused=isinstance(command, cmd.Pause))
            return
        if self.safety_mode is not SafetyMode.NORMAL:
            if isinstance(command, cmd.StopJ):
                return
            raise MotionRefusedError(
                f"the arm is in a protective stop ({self.stop_reason}); unlock it first"
            )
        self._start(command)

    def _start(self, command: Move) -> None:
        if isinstance(command, cmd.Play):
            self._play()
            return
        self._leave_program()
        q, qd, _ = self._state
        if isinstance(command, cmd.StopJ):
            self._brake(_positive(command.a))
            return
        if isinstance(command, cmd.SpeedJ):
            goal = np.asarray(command.qd, dtype=float)
            if not np.isfinite(goal).all():
                self._stop("a speed that is not a number")
                return
            self._reference = SpeedReference(q, qd, goal, _positive(command.a))
            self._after = []
            return
        if isinstance(command, cmd.Follow):
            self._brake(then=[MotionReference(command.motion, loop=False)])
            return
        goal = np.asarray(command.q, dtype=float)
        if self._outside(goal):
            self._stop("a commanded position out of range")
        elif isinstance(command, cmd.MoveJ):
            self._brake(then=[command])
        else:
            if not isinstance(self._reference, ServoReference):
                self._reference, self._after = ServoReference(q, qd), []
            self._reference.update(goal, command.lookahead, command.gain)

    def step(self, dt: float) -> State:
        """Commanded state of the next cycle."""
        if self.program_state is ProgramState.PAUSED and self._own is not None:
            goal = 0.0
        else:
            goal = self.fraction
        step = float(np.clip(goal - self.scale, -SCALING_RATE * dt, SCALING_RATE * dt))
        self.scale += step
        while self._reference.done and not isinstance(self._reference, Rest):
            self._go_on()
        self._state = self._reference.step(dt, self.scale, step / dt)
        self._check_state()
        return self._state

    def rest_at(self, q: Array) -> None:
        """Command the arm to stay at [n], rad."""
        self._state = (q, np.zeros_like(q), np.zeros_like(q))
        self._reference, self._after, self._own = Rest(q), [], None

    def set_planner(self, planner: Planner) -> None:
        """Plan further moves for another payload."""
        self._planner = planner

    def halt(self) -> None:
        """End all motion at once, as when the brakes fall in."""
        self.rest_at(self._state[0])
        self.program_state = ProgramState.STOPPED

    def check_torque(self, moment: Array) -> None:
        """Stop where a target moment [n], N m, stays beyond the joints' limits.

        The jerk of a stream that skipped a few cycles is over before a drive is overloaded.
        """
        over = np.abs(moment) > MARGIN * self._robot.max_torque
        self._overloaded = np.where(over, self._overloaded + 1, 0)
        lasting = self._overloaded > OVERLOAD_SECONDS * self._robot.rate
        if lasting.any():
            self._stop(f"torque limit of {self._name(lasting)}")

    def check_following(self, error: Array) -> None:
        """Stop where a joint does not follow: position error [n], rad."""
        over = np.abs(error) > constants()["servo"]["following_error"]
        if over.any():
            self._stop(f"{self._name(over)} does not follow its target")

    def _check_state(self) -> None:
        q, qd, _ = self._state
        fast = np.abs(qd) > MARGIN * self._robot.max_velocity
        if fast.any():
            self._stop(f"speed limit of {self._name(fast)}")
        elif self._outside(q):
            outside = np.abs(q) > self._robot.max_position
            self._stop(f"position limit of {self._name(outside)}")

    def _outside(self, q: Array) -> bool:
        return bool((np.abs(q) > self._robot.max_position).any() or not np.isfinite(q).all())

    def _name(self, joints: Mask) -> str:
        return self._robot.joint_names[int(np.argmax(joints))]

    def _stop(self, reason: str) -> None:
        """Protective stop: brake as fast as the drives can, keep power."""
        if self.safety_mode is SafetyMode.PROTECTIVE_STOP:
            return
        self.safety_mode, self.stop_reason = SafetyMode.PROTECTIVE_STOP, reason
        if self.program_state is ProgramState.PLAYING:
            self.program_state = ProgramState.PAUSED
        self._own = None
        self._brake()

    def _brake(
        self,
        acceleration: float = STOP_ACCELERATION,
        then: list[Reference | cmd.MoveJ] | None = None,
    ) -> None:
        q, qd, _ = self._state
        self._reference = SpeedReference(q, qd, np.zeros_like(qd), acceleration)
        self._after = then or []

    def _go_on(self) -> None:
        """What comes after a reference that is at its end, at rest."""
        q = self._state[0]
        if not self._after:
            if self._reference is self._own:
                self.program_state = ProgramState.STOPPED
                self._own = None
            self._reference = Rest(q)
            return
        following = self._after.pop(0)
        if isinstance(following, cmd.MoveJ):
            goal = np.asarray(following.q, dtype=float)
            limits = replace(
                self._planner.limits,
                speed=np.minimum(_positive(following.v), self._robot.max_velocity),
                acceleration=np.full(len(q), _positive(following.a)),
            )
            path = self._planner.move(q, goal, limits=limits)
            following = MotionReference(path, loop=False)
        self._reference = following

    def _play(self) -> None:
        """Begin the arm's own motion, or go on with it."""
        self.program_state = ProgramState.PLAYING
        if self._own is not None:
            return
        self._own = MotionReference(self._motion, loop=True)
        start = self._motion.sample(np.zeros(1))[0][0]
        self._brake(then=[cmd.MoveJ(start, **APPROACH), self._own])

    def _end_program(self, *, paused: bool) -> None:
        if self.program_state is ProgramState.STOPPED:
            return
        if paused:
            self.program_state = ProgramState.PAUSED
            return
        self.program_state = ProgramState.STOPPED
        if self._own is not None:
            self._own = None
            self._brake()

    def _leave_program(self) -> None:
        """A client takes over from the arm's own motion."""
        self._own = None
        self.program_state = ProgramState.STOPPED


def _positive(value: float) -> float:
    """A speed or acceleration that gets somewhere, whatever a client sent."""
    return max(float(value), SLOWEST) if np.isfinite(value) else SLOWEST
