"""The control loop that ur_rtde uploads, carried out natively.

ur_rtde steers a robot through a script of its own, which reads a command number and arguments from
RTDE input registers and answers in output registers. No URScript runs here: the loop is the same,
and each command is an action on the arm. Source: the script that ur_rtde 1.6.5 sends.

Handshake: the client writes a command number into input integer register 0; the loop writes 2 into
output integer register 0 when it is done; the client writes 0; the loop writes 1, ready.
Streaming commands are carried out in every cycle and leave the loop ready.
"""

from __future__ import annotations

import re
from collections.abc import Callable

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

READY, DONE = 1, 2
NO_COMMAND, STOP_SCRIPT = 0, 255
STREAMING = frozenset({6, 9, 10, 11, 24, 25, 26, 27, 38, 58, 66, 67, 68, 69, 70, 71})
"""Commands that are carried out in every cycle while they are in the register."""

RUNNING_BIT, WRITES_SHIFT, OPERATION_SHIFT = 1 << 15, 16, 24
COUNTER_LIMIT = 127

Array = NDArray[np.float64]


class ControlScript:
    """ur_rtde's control script at work.

    Attributes:
        name: of the program.
    """

    name = "rtde_control"

    def __init__(self, text: str) -> None:
        self._offset = _register_offset(text)
        self._executing = False
        self._waiting = False
        self._moving_asynchronously = False
        self._streaming: int | None = None
        self._watchdog: float | None = None
        self._writes = 0
        self._operations = 0
        self._started = False

    def step(self, box: ControlBox) -> bool:
        """One pass of the loop; False after the command to stop.

        Raises:
            ScriptError: a command that is not simulated.
        """
        if not self._started:
            self._started = True
            self._report_progress(box, running=False)
            self._answer(box, READY)
            return True
        if self._moving_asynchronously and not box.arm.busy:
            self._moving_asynchronously = False
            self._report_progress(box, running=False)
        if self._waiting:
            if box.arm.busy:
                return True
            self._waiting = False
            self._answer(box, DONE)
            return True
        command = self._integer(box, 0)
        if command in STREAMING:
            self._carry_out(box, command)
            self._answer(box, READY)
        elif command == NO_COMMAND:
            self._executing = False
            self._answer(box, READY)
        elif command == STOP_SCRIPT:
            return False
        elif not self._executing:
            self._executing = True
            self._waiting = self._carry_out(box, command)
            if not self._waiting:
                self._answer(box, DONE)
        return True

    def _carry_out(self, box: ControlBox, command: int) -> bool:
        action = _ACTIONS.get(command)
        if action is None:
            raise ScriptError(f"ur_rtde's command {command} is not simulated")
        return action(self, box)

    # Commands

    def _move_joints(self, box: ControlBox) -> bool:
        q, (v, a) = self._doubles(box, 0, 6), self._doubles(box, 6, 2)
        box.arm.command(MoveJ(q, v, a))
        return not self._goes_on_asynchronously(box)

    def _goes_on_asynchronously(self, box: ControlBox) -> bool:
        """Whether the client does not wait for the move that has begun."""
        if self._integer(box, 1) != 1:
            return False
        self._operations = (self._operations + 1) % (COUNTER_LIMIT + 1)
        self._moving_asynchronously = True
        self._report_progress(box, running=True)
        return True

    def _servo_joints(self, box: ControlBox) -> bool:
        q, (time, lookahead, gain) = (
            self._doubles(box, 0, 6),
            self._doubles(box, 8, 3),
        )
        box.arm.command(ServoJ(q, time, lookahead, gain))
        return False

    def _speed_joints(self, box: ControlBox) -> bool:
        (a,) = self._doubles(box, 6, 1)
        box.arm.command(SpeedJ(self._doubles(box, 0, 6), a))
        return False

    def _stop_joints(self, box: ControlBox) -> bool:
        box.arm.command(StopJ(*self._doubles(box, 0, 1)))
        return True

    def _stop_move(self, box: ControlBox) -> bool:
        self._stop_joints(box)
        return not self._goes_on_asynchronously(box)

    def _set_payload(self, box: ControlBox) -> bool:
        mass, cog = self._doubles(box, 0, 1)[0], self._doubles(box, 1, 3)
        if not cog.any():
            cog = np.array(box.values["payload_cog"])
        box.arm.command(SetPayload(mass, cog))
        return False

    def _stop_protectively(self, box: ControlBox) -> bool:
        box.arm.command(ProtectiveStop())
        return False

    def _set_tcp(self, box: ControlBox) -> bool:
        box.tcp_offset = self._doubles(box, 0, 6)
        return False

    def _get_tcp(self, box: ControlBox) -> bool:
        self._return(box, box.tcp_offset)
        return False

    def _get_step_time(self, box: ControlBox) -> bool:
        self._return(box, np.array([1.0 / box.rate]))
        return False

    def _get_steady(self, box: ControlBox) -> bool:
        at_rest = not box.arm.busy and not np.any(box.values["target_qd"])
        self._return_integer(box, int(at_rest))
        return False

    def _nothing(self, box: ControlBox) -> bool:
        return False

    # Registers

    def _integer(self, box: ControlBox, register: int) -> int:
        return int(box.values[f"input_int_register_{register + self._offset}"])

    def _doubles(self, box: ControlBox, first: int, count: int) -> Array:
        start = first + self._offset
        return np.array(
            [box.values[f"input_double_register_{i}"] for i in range(start, start + count)]
        )

    def _answer(self, box: ControlBox, state: int) -> None:
        box.values[f"output_int_register_{self._offset}"] = state

    def _return(self, box: ControlBox, values: Array) -> None:
        for i, value in enumerate(values):
            box.values[f"output_double_register_{i + self._offset}"] = float(value)

    def _return_integer(self, box: ControlBox, value: int) -> None:
        box.values[f"output_int_register_{1 + self._offset}"] = value

    def _report_progress(self, box: ControlBox, *, running: bool) -> None:
        """Tell the client about the asynchronous move, as a bit field in register 2."""
        self._writes = (self._writes + 1) % (COUNTER_LIMIT + 1)
        box.values[f"output_int_register_{2 + self._offset}"] = (
            self._writes << WRITES_SHIFT
            | self._operations << OPERATION_SHIFT
            | (RUNNING_BIT if running else 0)
        )


_ACTIONS: dict[int, Callable[[ControlScript, ControlBox], bool]] = {
    1: ControlScript._move_joints,
    9: ControlScript._speed_joints,
    11: ControlScript._servo_joints,
    15: ControlScript._stop_joints,
    16: ControlScript._stop_joints,
    17: ControlScript._set_payload,
    26: ControlScript._get_step_time,
    29: ControlScript._set_tcp,
    31: ControlScript._stop_protectively,
    33: ControlScript._stop_move,
    34: ControlScript._stop_move,
    40: ControlScript._get_tcp,
    47: ControlScript._get_steady,
}
"""What to do on each command number; True where the loop waits for the arm."""


def _register_offset(text: str) -> int:
    """First register of the range that the script uses: 0, or 24 for the upper range."""
    match = re.search(r"global reg_offset_int\s*=\s*(\d+)", text)
    return int(match[1]) if match else 0
