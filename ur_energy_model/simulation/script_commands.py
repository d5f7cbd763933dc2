"""URScript functions that the simulated controller knows, as actions on the box."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.simulation.commands import (
    MoveJ,
    ProtectiveStop,
    ServoJ,
    SetPayload,
    SpeedJ,
    StopJ,
)
from ur_energy_model.simulation.control_box import ControlBox, ScriptError
from ur_energy_model.simulation.script_text import Call, Pose

Array = NDArray[np.float64]
Action = Callable[[ControlBox, Call], bool]
"""Carries out a call; True where the program waits until the arm is no longer busy."""


def _movej(box: ControlBox, call: Call) -> bool:
    q = _joints(call.argument(0, "q"), call)
    box.arm.command(MoveJ(q, float(call.argument(2, "v", 1.05)), float(call.argument(1, "a", 1.4))))
    return True


def _servoj(box: ControlBox, call: Call) -> bool:
    q = _joints(call.argument(0, "q"), call)
    box.arm.command(
        ServoJ(
            q,
            time=float(call.argument(3, "t", 1.0 / box.rate)),
            lookahead=float(call.argument(4, "lookahead_time", 0.1)),
            gain=float(call.argument(5, "gain", 300.0)),
        )
    )
    return False


def _speedj(box: ControlBox, call: Call) -> bool:
    qd = _joints(call.argument(0, "qd"), call)
    box.arm.command(SpeedJ(qd, float(call.argument(1, "a", 1.4))))
    return False


def _stopj(box: ControlBox, call: Call) -> bool:
    box.arm.command(StopJ(float(call.argument(0, "a", 2.0))))
    return True


def _set_payload(box: ControlBox, call: Call) -> bool:
    cog = np.asarray(call.argument(1, "cog", np.zeros(3)), dtype=float)
    box.arm.command(SetPayload(float(call.argument(0, "m", 0.0)), cog))
    return False


def _set_tcp(box: ControlBox, call: Call) -> bool:
    box.tcp_offset = np.asarray(call.argument(0, "pose"), dtype=float)
    return False


def _set_digital_out(shift: int) -> Action:
    def action(box: ControlBox, call: Call) -> bool:
        bit = 1 << int(call.argument(0, "n")) + shift
        box.set_digital_outputs(bit, bit if call.argument(1, "b") else 0)
        return False

    return action


def _write_register(kind: str) -> Action:
    def action(box: ControlBox, call: Call) -> bool:
        register = f"output_{kind}_register_{int(call.argument(0, 'address'))}"
        if register not in box.values:
            raise ScriptError(f"{call.name}: there is no register {register}")
        box.values[register] = call.argument(1, "value")
        return False

    return action


def _protective_stop(box: ControlBox, call: Call) -> bool:
    box.arm.command(ProtectiveStop())
    return False


def _say(box: ControlBox, call: Call) -> bool:
    box.say("".join(str(value) for value in call.positional))
    return False


def _nothing(box: ControlBox, call: Call) -> bool:
    return False


ACTIONS: dict[str, Action] = {
    "movej": _movej,
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
    "sync": _nothing,
}
"""Known functions by name."""


def _joints(value: Any, call: Call) -> Array:
    if isinstance(value, Pose):
        raise ScriptError(f"{call.name} to a pose is not simulated; send joint positions")
    try:
        joints = [float(joint) for joint in value]
    except (TypeError, ValueError):
        joints = []
    if len(joints) != 6 or not all(map(math.isfinite, joints)):
        raise ScriptError(f"{call.name} needs six joint values")
    return np.array(joints)


class CallProgram:
    """A program of plain calls, carried out one after the other.

    Attributes:
        name: of the program.
    """

    def __init__(self, name: str, calls: list[Call]) -> None:
        self.name = name
        self._calls = list(calls)
        self._waiting = False
        self._sleep = 0

    def step(self, box: ControlBox) -> bool:
        """Carry out calls until one takes time; False after the last one.

        Raises:
            ScriptError: a function that is not simulated, or arguments it cannot take.
        """
        if self._waiting and box.arm.busy:
            return True
        self._waiting = False
        if self._sleep > 0:
            self._sleep -= 1
            return True
        while self._calls:
            call = self._calls.pop(0)
            if call.name == "sleep":
                self._sleep = round(float(call.argument(0, "t", 0.0)) * box.rate)
                return True
            if call.name not in ACTIONS:
                raise ScriptError(f"{self.name}: {call.name} is not simulated")
            if ACTIONS[call.name](box, call):
                self._waiting = True
                return True
        return False
