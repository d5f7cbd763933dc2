"""URScript functions that the simulated controller knows, as actions on the box."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from ur_energy_model.simulation.arm.commands import (
    MoveJ,
    ProtectiveStop,
    ServoJ,
    SetPayload,
    SpeedJ,
    StopJ,
)
from ur_energy_model.simulation.control.control_box import ControlBox
from ur_energy_model.simulation.control.program import ScriptError
from ur_energy_model.simulation.control.urscript_text import Call, Pose
from ur_energy_model.typing import Array

Action = Callable[[ControlBox, Call], float]
"""Carries out a call; how long the program then waits [s], ARM for until the arm rests."""

ARM = math.inf


def _movej(box: ControlBox, call: Call) -> float:
    target = call.argument(0, "q")
    if isinstance(target, Pose):
        found = box.kinematics.inverse(
            _six(target, call), np.asarray(box.values["target_q"]), box.tcp_offset
        )
        if found is None:
            raise ScriptError(f"{call.name} leads to where the arm cannot reach")
        q = found
    else:
        q = _six(target, call)
    a, v, t = (
        float(call.argument(i, name, default))
        for i, name, default in ((1, "a", 1.4), (2, "v", 1.05), (3, "t", 0.0))
    )
    if t > 0.0:  # the time given decides: half of it to speed up, half to slow down
        distance = float(np.abs(q - np.asarray(box.values["target_q"])).max())
        v, a = 2.0 * distance / t, 4.0 * distance / t**2
    if not (v > 0.0 and a > 0.0):  # it is there already
        return 0.0
    box.arm.command(MoveJ(q, v, a))
    return ARM


def _movel(box: ControlBox, call: Call) -> float:
    target = call.argument(0, "pose")
    pose = _six(target, call)
    if not isinstance(target, Pose):
        pose = box.kinematics.forward(pose, box.tcp_offset)
    a, v = float(call.argument(1, "a", 1.2)), float(call.argument(2, "v", 0.25))
    box.move_straight(pose, v, a)
    return ARM


def _servoj(box: ControlBox, call: Call) -> float:
    q = _joints(call.argument(0, "q"), call)
    time = float(call.argument(3, "t", 1.0 / box.rate))
    lookahead = float(call.argument(4, "lookahead_time", 0.1))
    gain = float(call.argument(5, "gain", 300.0))
    box.arm.command(ServoJ(q, time, lookahead, gain))
    return time


def _speedj(box: ControlBox, call: Call) -> float:
    qd, a = _joints(call.argument(0, "qd"), call), float(call.argument(1, "a", 1.4))
    box.arm.command(SpeedJ(qd, a))
    return float(call.argument(2, "t", np.abs(qd).max() / a))


def _stopj(box: ControlBox, call: Call) -> float:
    box.arm.command(StopJ(float(call.argument(0, "a", 2.0))))
    return ARM


def _sleep(box: ControlBox, call: Call) -> float:
    return float(call.argument(0, "t", 0.0))


def _set_payload(box: ControlBox, call: Call) -> float:
    cog = np.asarray(call.argument(1, "cog", np.zeros(3)), dtype=float)
    box.arm.command(SetPayload(float(call.argument(0, "m", 0.0)), cog))
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
    box.arm.command(ProtectiveStop())
    return 0.0


def _say(box: ControlBox, call: Call) -> float:
    box.say("".join(str(value) for value in call.positional))
    return 0.0


def _nothing(box: ControlBox, call: Call) -> float:
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
    "textmsg": _say,
    "popup": _say,
    "sleep": _sleep,
    "sync": _nothing,
}
"""Known functions by name."""


def _joints(value: Any, call: Call) -> Array:
    if isinstance(value, Pose):
        raise ScriptError(f"{call.name} to a pose is not simulated; send joint values")
    return _six(value, call)


def _six(value: Any, call: Call) -> Array:
    try:
        numbers = [float(number) for number in value]
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != 6 or not all(map(math.isfinite, numbers)):
        raise ScriptError(f"{call.name} needs six numbers")
    return np.array(numbers)


class UrScriptProgram:
    """A program of plain calls, carried out one after the other.

    Attributes:
        name: of the program.
        needs_arm: False, for it may do without; a move that is refused ends it.
    """

    needs_arm = False

    def __init__(self, name: str, calls: list[Call]) -> None:
        self.name = name
        self._calls = deque(calls)
        self._until_rest = False
        self._cycles = 0

    def step(self, box: ControlBox) -> bool:
        """Carry out calls until one takes time; False after the last one.

        Raises:
            ScriptError: a function that is not simulated, or arguments it cannot take.
        """
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
            self._until_rest = wait == ARM
            self._cycles = 0 if self._until_rest else math.ceil(wait * box.rate)
            if self._until_rest or self._cycles > 0:
                return True
        return False
