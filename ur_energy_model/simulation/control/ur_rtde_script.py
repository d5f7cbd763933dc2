"""Native implementation of the control loop that ur_rtde uploads.

ur_rtde controls a robot through its own script, which reads a command number and arguments from
RTDE input registers and answers in output registers. No URScript is interpreted here: the loop is
reimplemented, and each command is an action on the arm. Source: the script that ur_rtde 1.6.5
sends.

Handshake: the client writes a command number into input integer register 0; the loop writes 2
(done) into output integer register 0; the client writes 0; the loop writes 1 (ready). Streaming
commands are executed in every cycle and leave the loop ready.
"""

from __future__ import annotations

import re

from ur_energy_model.simulation.control.control_box import ControlBox
from ur_energy_model.simulation.control.program import ScriptError
from ur_energy_model.simulation.control.ur_rtde_commands import COMMANDS, Registers

READY, DONE = 1, 2
NO_COMMAND, SET_WATCHDOG, STOP_SCRIPT = 0, 35, 255
STREAMING = frozenset({6, 9, 10, 11, 24, 25, 26, 27, 38, 58, 66, 67, 68, 69, 70, 71})
"""Commands that are executed in every cycle while they are in the register."""
ASYNCHRONOUS = frozenset({1, 2, 3, 4, 33, 34})
"""Commands that the client does not wait for if integer register 1 is 1."""

OFFSETS = (0, 24)
"""First registers of the lower and the upper range."""
RUNNING_BIT, WRITES_SHIFT, OPERATION_SHIFT = 1 << 15, 16, 24
COUNTER_LIMIT = 127


class UrRtdeScript:
    """The running control script of ur_rtde; a `Program`.

    Args:
        box: control box that runs it.
        text: the uploaded script.

    Raises:
        ScriptError: it uses registers that do not exist.
    """

    name = "rtde_control"
    needs_arm = True

    def __init__(self, box: ControlBox, text: str) -> None:
        self._box = box
        self._registers = Registers(box, _register_offset(text))
        self._started = False
        self._executing = False
        self._waiting = False
        self._moving_asynchronously = False
        self._writes = 0
        self._operations = 0
        self._watchdog_cycles: float | None = None
        self._last_inputs = (0, 0)
        """Number of input packages, and the cycle in which the last one was noticed."""

    def step(self) -> bool:
        """Run one pass of the loop; returns False after the stop command.

        Raises:
            ScriptError: the command is not simulated, or the client stopped writing inputs.
        """
        registers, arm = self._registers, self._box.arm
        if not self._started:
            self._started = True
            self._report_progress(running=False)
            registers.answer_integer(0, READY)
            return True
        self._check_watchdog()
        if self._moving_asynchronously and not arm.busy:
            self._moving_asynchronously = False
            self._report_progress(running=False)
        if self._waiting:
            self._waiting = arm.busy
            if not self._waiting:
                registers.answer_integer(0, DONE)
            return True
        return self._handle(registers.integer(0))

    def _handle(self, command: int) -> bool:
        """Advance the handshake by one command number; returns False for the stop command."""
        registers = self._registers
        if command == STOP_SCRIPT:
            return False
        if command in STREAMING:
            self._execute(command)
            registers.answer_integer(0, READY)
        elif command == NO_COMMAND:
            self._executing = False
            registers.answer_integer(0, READY)
        elif not self._executing:
            self._executing = True
            self._waiting = self._execute(command)
            if not self._waiting:
                registers.answer_integer(0, DONE)
        return True

    def _execute(self, command: int) -> bool:
        """Execute a command; returns True if the client waits until the arm is at rest."""
        registers = self._registers
        if command == SET_WATCHDOG:
            frequency = registers.double(0)
            self._watchdog_cycles = self._box.rate / frequency if frequency > 0 else None
            return False
        if command not in COMMANDS:
            raise ScriptError(f"ur_rtde's command {command} is not simulated")
        waits = COMMANDS[command](registers)
        if waits and command in ASYNCHRONOUS and registers.integer(1) == 1:
            self._operations = (self._operations + 1) % (COUNTER_LIMIT + 1)
            self._moving_asynchronously = True
            self._report_progress(running=True)
            return False
        return waits

    def _check_watchdog(self) -> None:
        """Raise if the client has not written inputs for longer than its watchdog allows."""
        box, (inputs, cycle) = self._box, self._last_inputs
        if box.inputs_received != inputs:
            self._last_inputs = (box.inputs_received, box.cycle)
        elif self._watchdog_cycles is not None and box.cycle - cycle > self._watchdog_cycles:
            raise ScriptError("the watchdog stopped the program: the client sends no inputs")

    def _report_progress(self, *, running: bool) -> None:
        """Report the asynchronous move to the client, as a bit field in register 2."""
        self._writes = (self._writes + 1) % (COUNTER_LIMIT + 1)
        self._registers.answer_integer(
            2,
            self._writes << WRITES_SHIFT
            | self._operations << OPERATION_SHIFT
            | (RUNNING_BIT if running else 0),
        )


def _register_offset(text: str) -> int:
    """First register of the script's range: 0, or 24 for the upper range.

    Raises:
        ScriptError: there is no such range.
    """
    match = re.search(r"global reg_offset_int\s*=\s*(\d{1,9})", text)
    offset = int(match[1]) if match else 0
    if offset not in OFFSETS:
        raise ScriptError(f"{UrRtdeScript.name}: reg_offset_int is {offset}, not 0 or 24")
    return offset
