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

from ur_energy_model.simulation.control.control_box import ControlBox
from ur_energy_model.simulation.control.program import ScriptError
from ur_energy_model.simulation.control.ur_rtde_commands import COMMANDS, Registers

READY, DONE = 1, 2
NO_COMMAND, SET_WATCHDOG, STOP_SCRIPT = 0, 35, 255
STREAMING = frozenset({6, 9, 10, 11, 24, 25, 26, 27, 38, 58, 66, 67, 68, 69, 70, 71})
"""Commands that are carried out in every cycle while they are in the register."""
ASYNCHRONOUS = frozenset({1, 2, 3, 4, 33, 34})
"""Commands that the client does not wait for where integer register 1 is 1."""

RUNNING_BIT, WRITES_SHIFT, OPERATION_SHIFT = 1 << 15, 16, 24
COUNTER_LIMIT = 127


class UrRtdeScript:
    """ur_rtde's control script at work.

    Attributes:
        name: of the program.
        needs_arm: it is not started while the arm is off.
    """

    name = "rtde_control"
    needs_arm = True

    def __init__(self, text: str) -> None:
        self._offset = _register_offset(text)
        self._started = False
        self._executing = False
        self._waiting = False
        self._moving_asynchronously = False
        self._writes = 0
        self._operations = 0
        self._patience: float | None = None
        self._heard = (0, 0)

    def step(self, box: ControlBox) -> bool:
        """One pass of the loop; False after the command to stop.

        Raises:
            ScriptError: a command that is not simulated, or a client that is not heard of.
        """
        registers = Registers(box, self._offset)
        if not self._started:
            self._started = True
            self._report_progress(registers, running=False)
            registers.give_integer(0, READY)
            return True
        self._watch(box)
        if self._moving_asynchronously and not box.arm.busy:
            self._moving_asynchronously = False
            self._report_progress(registers, running=False)
        if self._waiting:
            self._waiting = box.arm.busy
            if not self._waiting:
                registers.give_integer(0, DONE)
            return True
        return self._obey(registers.integer(0), registers)

    def _obey(self, command: int, registers: Registers) -> bool:
        if command == STOP_SCRIPT:
            return False
        if command in STREAMING:
            self._carry_out(command, registers)
            registers.give_integer(0, READY)
        elif command == NO_COMMAND:
            self._executing = False
            registers.give_integer(0, READY)
        elif not self._executing:
            self._executing = True
            self._waiting = self._carry_out(command, registers)
            if not self._waiting:
                registers.give_integer(0, DONE)
        return True

    def _carry_out(self, command: int, registers: Registers) -> bool:
        """Carry out a command; True where the client waits until the arm rests."""
        if command == SET_WATCHDOG:
            frequency = float(registers.doubles(0, 1)[0])
            self._patience = registers.box.rate / frequency if frequency > 0 else None
            return False
        if command not in COMMANDS:
            raise ScriptError(f"ur_rtde's command {command} is not simulated")
        waits = COMMANDS[command](registers.box, registers)
        if waits and command in ASYNCHRONOUS and registers.integer(1) == 1:
            self._operations = (self._operations + 1) % (COUNTER_LIMIT + 1)
            self._moving_asynchronously = True
            self._report_progress(registers, running=True)
            return False
        return waits

    def _watch(self, box: ControlBox) -> None:
        """Stop where the client has not written for longer than its watchdog allows."""
        if box.inputs_received != self._heard[0]:
            self._heard = (box.inputs_received, box.cycle)
        elif self._patience is not None and box.cycle - self._heard[1] > self._patience:
            raise ScriptError("the watchdog stopped the program: its client fell silent")

    def _report_progress(self, registers: Registers, *, running: bool) -> None:
        """Tell the client about the asynchronous move, as a bit field in register 2."""
        self._writes = (self._writes + 1) % (COUNTER_LIMIT + 1)
        registers.give_integer(
            2,
            self._writes << WRITES_SHIFT
            | self._operations << OPERATION_SHIFT
            | (RUNNING_BIT if running else 0),
        )


def _register_offset(text: str) -> int:
    """First register of the range that the script uses: 0, or 24 for the upper range."""
    match = re.search(r"global reg_offset_int\s*=\s*(\d+)", text)
    return int(match[1]) if match else 0
