"""URScript programs of plain calls: the simulated functions, and the program that runs them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ur_energy_model.simulation.arm import commands as cmd
from ur_energy_model.simulation.control.control_box import ControlBox
from ur_energy_model.simulation.control.program import ScriptError
from ur_energy_model.simulation.control.urscript_arguments import LARGEST, Arguments
from ur_energy_model.simulation.control.urscript_calls import Call
from ur_energy_model.typing import Array

Action = Callable[[ControlBox, Arguments], float]
"""Executes a call; returns how long the program then waits [s] or UNTIL_REST."""

UNTIL_REST = math.inf
CALLS_PER_CYCLE = 20
"""Calls that one controller cycle executes at most; the others follow in the next cycles."""
INT32 = (-(1 << 31), (1 << 31) - 1)


def _movej(box: ControlBox, given: Arguments) -> float:
    q = given.vector("q", 6)
    if given.is_pose("q"):
        q = box.joint_positions(q)
    a, v, t = given.number("a", 1.4), given.number("v", 1.05), given.number("t", 0.0)
    if t > 0.0:  # the time has priority: half to accelerate, half to decelerate
        t = max(t, 1.0 / box.rate)
        distance = float(np.abs(q - box.target_q).max())
        v, a = 2.0 * distance / t, 4.0 * distance / t**2
    if not (v > 0.0 and a > 0.0):  # already at the target
        return 0.0
    box.arm.command(cmd.MoveJ(q, v, a))
    return UNTIL_REST


def _movel(box: ControlBox, given: Arguments) -> float:
    pose = given.vector("pose", 6)
    if not given.is_pose("pose"):
        pose = box.kinematics.forward(pose, box.tcp_offset)
    box.move_straight(pose, given.number("v", 0.25), given.number("a", 1.2))
    return UNTIL_REST


def _servoj(box: ControlBox, given: Arguments) -> float:
    q, time = _joints(given, "q"), given.number("t", 1.0 / box.rate)
    lookahead, gain = given.number("lookahead_time", 0.1), given.number("gain", 300.0)
    box.arm.command(cmd.ServoJ(q, time, lookahead, gain))
    return time


def _speedj(box: ControlBox, given: Arguments) -> float:
    qd, a = _joints(given, "qd"), given.number("a", 1.4, low=1e-3)
    box.arm.command(cmd.SpeedJ(qd, a))
    return given.number("t", min(float(np.abs(qd).max()) / a, LARGEST))


def _stopj(box: ControlBox, given: Arguments) -> float:
    box.arm.command(cmd.StopJ(given.number("a", 2.0)))
    return UNTIL_REST


def _sleep(box: ControlBox, given: Arguments) -> float:
    return given.number("t", 0.0)


def _set_payload(box: ControlBox, given: Arguments) -> float:
    mass, cog = given.number("m", 0.0), given.vector("cog", 3, (0.0, 0.0, 0.0))
    box.arm.command(cmd.SetPayload(mass, cog, given.vector("inertia", 6, (0.0,) * 6)))
    return 0.0


def _set_tcp(box: ControlBox, given: Arguments) -> float:
    box.set_tool(given.vector("pose", 6))
    return 0.0


def _set_digital_out(shift: int, count: int) -> Action:
    def action(box: ControlBox, given: Arguments) -> float:
        bit = 1 << given.whole("n", 0, count - 1) + shift
        box.set_digital_outputs(bit, bit if given.truth("b") else 0)
        return 0.0

    return action


def _write_register(kind: str) -> Action:
    def action(box: ControlBox, given: Arguments) -> float:
        register = f"output_{kind}_register_{given.whole('address', 0, 99)}"
        if register not in box.values:
            raise ScriptError(f"{given.function}: there is no register {register}")
        if kind == "int":
            box.values[register] = given.whole("value", *INT32)
        else:
            box.values[register] = given.number("value", low=-1e300, high=1e300)
        return 0.0

    return action


def _protective_stop(box: ControlBox, given: Arguments) -> float:
    box.arm.command(cmd.SafetyCommand.PROTECTIVE_STOP)
    return 0.0


def _textmsg(box: ControlBox, given: Arguments) -> float:
    box.send_message("".join(str(value) for value in given.given.values()))
    return 0.0


def _popup(box: ControlBox, given: Arguments) -> float:
    box.send_message(str(given.given.get("s", "")))
    return 0.0


def _ignore(box: ControlBox, given: Arguments) -> float:
    return 0.0


@dataclass(frozen=True)
class Function:
    """A simulated function: what it does, and its parameters in order."""

    action: Action
    parameters: tuple[str, ...]


_MOVE = ("a", "v", "t", "r")
_PAYLOAD = ("m", "cog", "inertia", "transition_time")
_OUTPUT, _REGISTER = ("n", "b"), ("address", "value")

FUNCTIONS: dict[str, Function] = {
    "movej": Function(_movej, ("q", *_MOVE)),
    "movel": Function(_movel, ("pose", *_MOVE)),
    "servoj": Function(_servoj, ("q", "a", "v", "t", "lookahead_time", "gain")),
    "speedj": Function(_speedj, ("qd", "a", "t")),
    "stopj": Function(_stopj, ("a",)),
    "stopl": Function(_stopj, ("a", "aRot")),
    "set_payload": Function(_set_payload, _PAYLOAD),
    "set_target_payload": Function(_set_payload, _PAYLOAD),
    "set_tcp": Function(_set_tcp, ("pose",)),
    "set_digital_out": Function(_set_digital_out(0, 18), _OUTPUT),
    "set_standard_digital_out": Function(_set_digital_out(0, 8), _OUTPUT),
    "set_configurable_digital_out": Function(_set_digital_out(8, 8), _OUTPUT),
    "set_tool_digital_out": Function(_set_digital_out(16, 2), _OUTPUT),
    "write_output_integer_register": Function(_write_register("int"), _REGISTER),
    "write_output_float_register": Function(_write_register("double"), _REGISTER),
    "protective_stop": Function(_protective_stop, ()),
    "textmsg": Function(_textmsg, ("s1", "s2")),
    "popup": Function(_popup, ("s", "title", "warning", "error", "blocking")),
    "sleep": Function(_sleep, ("t",)),
    "sync": Function(_ignore, ()),
}
"""Simulated functions by name."""


def _joints(given: Arguments, name: str) -> Array:
    if given.is_pose(name):
        raise ScriptError(f"{given.function} to a pose is not simulated; send joint positions")
    return given.vector(name, 6)


class UrScriptProgram:
    """A program of plain calls, executed in sequence; a `Program`.

    It also starts while the arm is off; a refused move ends it.

    Args:
        box: control box that runs it.
        name: name of the program.
        calls: calls in order.
    """

    needs_arm = False

    def __init__(self, box: ControlBox, name: str, calls: list[Call]) -> None:
        self._box = box
        self.name = name
        self._calls = deque(calls)
        self._until_rest = False
        self._cycles = 0

    def step(self) -> bool:
        """Execute calls until one takes time; returns False after the last one.

        Raises:
            ScriptError: a function is not simulated, or does not accept the arguments.
        """
        box = self._box
        if self._until_rest and box.arm.busy:
            return True
        self._until_rest = False
        if self._cycles > 0:
            self._cycles -= 1
            return True
        for _ in range(min(CALLS_PER_CYCLE, len(self._calls))):
            wait = self._execute(self._calls.popleft())
            self._until_rest = wait == UNTIL_REST
            self._cycles = 0 if self._until_rest else math.ceil(wait * box.rate)
            if self._until_rest or self._cycles > 0:
                return True
        return bool(self._calls)

    def _execute(self, call: Call) -> float:
        """Execute a call; returns how long the program then waits [s] or UNTIL_REST."""
        self._box.values["script_control_line"] = call.line
        function = FUNCTIONS.get(call.name)
        if function is None:
            raise ScriptError(f"{self.name}: {call.name[:64]} is not simulated")
        return function.action(self._box, Arguments.of_call(call, function.parameters))
