"""URScript programs of plain calls: the simulated functions, and the program that runs them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from ur_energy_model.simulation.arm import commands as cmd
from ur_energy_model.simulation.control.control_box import ControlBox
from ur_energy_model.simulation.control.program import ScriptError
from ur_energy_model.simulation.control.urscript_text import Call, Pose
from ur_energy_model.typing import Array

Action = Callable[[ControlBox, Call], float]
"""Executes a call; returns how long the program then waits [s] or UNTIL_REST."""

UNTIL_REST = math.inf


def _movej(box: ControlBox, call: Call) -> float:
    target = call.argument(0, "q")
    q = _six_numbers(target, call)
    if isinstance(target, Pose):
        q = box.joint_positions(q)
    a, v, t = (
        float(call.argument(i, name, default))
        for i, name, default in ((1, "a", 1.4), (2, "v", 1.05), (3, "t", 0.0))
    )
    if t > 0.0:  # the time has priority: half to accelerate, half to decelerate
        distance = float(np.abs(q - box.target_q).max())
        v, a = 2.0 * distance / t, 4.0 * distance / t**2
    if not (v > 0.0 and a > 0.0):  # already at the target
        return 0.0
    box.arm.command(cmd.MoveJ(q, v, a))
    return UNTIL_REST


def _movel(box: ControlBox, call: Call) -> float:
    target = call.argument(0, "pose")
    pose = _six_numbers(target, call)
    if not isinstance(target, Pose):
        pose = box.kinematics.forward(pose, box.tcp_offset)
    a, v = float(call.argument(1, "a", 1.2)), float(call.argument(2, "v", 0.25))
    box.move_straight(pose, v, a)
    return UNTIL_REST


def _servoj(box: ControlBox, call: Call) -> float:
    q = _joints(call.argument(0, "q"), call)
    time = float(call.argument(3, "t", 1.0 / box.rate))
    lookahead = float(call.argument(4, "lookahead_time", 0.1))
    gain = float(call.argument(5, "gain", 300.0))
    box.arm.command(cmd.ServoJ(q, time, lookahead, gain))
    return time


def _speedj(box: ControlBox, call: Call) -> float:
    qd, a = _joints(call.argument(0, "qd"), call), float(call.argument(1, "a", 1.4))
    box.arm.command(cmd.SpeedJ(qd, a))
    return float(call.argument(2, "t", np.abs(qd).max() / a))


def _stopj(box: ControlBox, call: Call) -> float:
    box.arm.command(cmd.StopJ(float(call.argument(0, "a", 2.0))))
    return UNTIL_REST


def _sleep(box: ControlBox, call: Call) -> float:
    return float(call.argument(0, "t", 0.0))


def _set_payload(box: ControlBox, call: Call) -> float:
    cog = np.asarray(call.argument(1, "cog", np.zeros(3)), dtype=float)
    box.arm.command(cmd.SetPayload(float(call.argument(0, "m", 0.0)), cog))
    return 0.0


def _set_tcp(box: ControlBox, call: Call) -> float:
    box.tcp_offset = np.asarray(call.argument(0, "pose"), dtype=float)
    return 0.0


def _set_digital_out(shift: int) -> Action:
    def action(box: ControlBox, call: Call) -> float:
        bit = 1 << int(call.argument(0, "n")) + shift
        box.set_digital_outputs(bit, bit if call.argument(1, "b") else 0)
        return 0.0

    return action


def _write_register(kind: str) -> Action:
    def action(box: ControlBox, call: Call) -> float:
        register = f"output_{kind}_register_{int(call.argument(0, 'address'))}"
        if register not in box.values:
            raise ScriptError(f"{call.name}: there is no register {register}")
        box.values[register] = call.argument(1, "value")
        return 0.0

    return action


def _protective_stop(box: ControlBox, call: Call) -> float:
    box.arm.command(cmd.SafetyCommand.PROTECTIVE_STOP)
    return 0.0


def _textmsg(box: ControlBox, call: Call) -> float:
    box.send_message("".join(str(value) for value in call.positional))
    return 0.0


def _ignore(box: ControlBox, call: Call) -> float:
    return 0.0


ACTIONS: dict[str, Action] = {
    "movej": _movej,
    "movel": _movel,
    "servoj": _servoj,
    "speedj": _speedj,
    "stopj": _stopj,
    "stopl": _stopj,
    "set_payload": _set_payload,
    "set_target_payload": _set_payload,
    "set_tcp": _set_tcp,
    "set_digital_out": _set_digital_out(0),
    "set_standard_digital_out": _set_digital_out(0),
    "set_configurable_digital_out": _set_digital_out(8),
    "set_tool_digital_out": _set_digital_out(16),
    "write_output_integer_register": _write_register("int"),
    "write_output_float_register": _write_register("double"),
    "protective_stop": _protective_stop,
    "textmsg": _textmsg,
    "popup": _textmsg,
    "sleep": _sleep,
    "sync": _ignore,
}
"""Simulated functions by name."""


def _joints(value: Any, call: Call) -> Array:
    if isinstance(value, Pose):
        raise ScriptError(f"{call.name} to a pose is not simulated; send joint positions")
    return _six_numbers(value, call)


def _six_numbers(value: Any, call: Call) -> Array:
    try:
        numbers = [float(number) for number in value]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != 6 or not all(map(math.isfinite, numbers)):
        raise ScriptError(f"{call.name} needs six numbers")
    return np.array(numbers)


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
        while self._calls:
            call = self._calls.popleft()
            if call.name not in ACTIONS:
                raise ScriptError(f"{self.name}: {call.name} is not simulated")
            try:
                wait = ACTIONS[call.name](box, call)
            except (TypeError, ValueError) as error:
                raise ScriptError(f"{call.name}: {error}") from error
            self._until_rest = wait == UNTIL_REST
            self._cycles = 0 if self._until_rest else math.ceil(wait * box.rate)
            if self._until_rest or self._cycles > 0:
                return True
        return False
