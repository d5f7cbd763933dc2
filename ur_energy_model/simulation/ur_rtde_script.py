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

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ur_energy_model.simulation import commands as cmd
from ur_energy_model.simulation.control_box import ControlBox
from ur_energy_model.simulation.kinematics import ScriptError, checked_pose, compose
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class Registers:
    """Registers through which client and script communicate.

    Attributes:
        box: control box that holds the registers.
        offset: first register of the range in use: 0 or 24.
    """

    box: ControlBox
    offset: int

    def integer(self, register: int) -> int:
        """Input integer register."""
        return int(self.box.values[f"input_int_register_{register + self.offset}"])

    def double(self, register: int) -> float:
        """Input double register.

        Raises:
            ScriptError: it is not finite; URScript has no such numbers.
        """
        value = float(self.box.values[f"input_double_register_{register + self.offset}"])
        if not math.isfinite(value):
            raise ScriptError(f"input double register {register + self.offset} is not finite")
        return value

    def doubles(self, first: int, count: int = 6) -> Array:
        """Input double registers [count]."""
        return np.array([self.double(register) for register in range(first, first + count)])

    def answer(self, values: Iterable[float]) -> None:
        """Write the output double registers from 0 on."""
        for i, value in enumerate(values, self.offset):
            self.box.values[f"output_double_register_{i}"] = float(value)

    def answer_integer(self, register: int, value: int) -> None:
        """Write an output integer register."""
        self.box.values[f"output_int_register_{register + self.offset}"] = value


Values = Callable[[Registers], Array]
Command = Callable[[Registers], object]
"""Executes a command; returns WAITS if it is complete only when the arm is at rest."""
WAITS = True


def _joints(registers: Registers) -> Array:
    return registers.doubles(0)


def _pose(registers: Registers, first: int = 0) -> Array:
    return checked_pose(registers.doubles(first))


def _pose_of_joints(registers: Registers) -> Array:
    return registers.box.kinematics.forward(registers.doubles(0), registers.box.tcp_offset)


def _joints_of_pose(registers: Registers) -> Array:
    return registers.box.joint_positions(registers.doubles(0))


def _move(joints: Values) -> Command:
    def command(registers: Registers) -> bool:
        q = joints(registers)
        registers.box.arm.command(cmd.MoveJ(q, registers.double(6), registers.double(7)))
        return WAITS

    return command


def _move_straight(pose: Values) -> Command:
    def command(registers: Registers) -> bool:
        registers.box.move_straight(pose(registers), registers.double(6), registers.double(7))
        return WAITS

    return command


def _servo(joints: Values) -> Command:
    def command(registers: Registers) -> None:
        time, lookahead, gain = registers.doubles(8, 3)
        registers.box.arm.command(cmd.ServoJ(joints(registers), time, lookahead, gain))

    return command


def _speed_joints(registers: Registers) -> None:
    registers.box.arm.command(cmd.SpeedJ(registers.doubles(0), registers.double(6)))


def _speed_tool(registers: Registers) -> None:
    """Joint speeds of a tool speed, with the joint acceleration that takes the same time."""
    box, speed = registers.box, registers.doubles(0)
    jacobian = box.kinematics.jacobian(box.target_q, box.tcp_offset)
    qd = np.asarray(np.linalg.lstsq(jacobian, speed, rcond=1e-3)[0], dtype=np.float64)
    size = max(float(np.linalg.norm(speed[:3])), float(np.linalg.norm(speed[3:])))
    ratio = float(np.abs(qd).max()) / size if size > 0.0 else 1.0
    box.arm.command(cmd.SpeedJ(qd, registers.double(6) * ratio))


def _stop(registers: Registers) -> bool:
    registers.box.arm.command(cmd.StopJ(registers.double(0)))
    return WAITS


def _set_payload(registers: Registers) -> None:
    registers.box.arm.command(cmd.SetPayload(registers.double(0), _center_of_mass(registers)))


def _set_target_payload(registers: Registers) -> None:
    mass, center, inertia = registers.double(0), _center_of_mass(registers), registers.doubles(4)
    registers.box.arm.command(cmd.SetPayload(mass, center, inertia))


def _center_of_mass(registers: Registers) -> Array:
    """Centre of mass in registers 1 to 3; zeros keep the configured one."""
    center = registers.doubles(1, 3)
    return center if center.any() else np.array(registers.box.values["payload_cog"])


def _answer(values: Callable[[Registers], Iterable[float]]) -> Command:
    return lambda registers: registers.answer(values(registers))


def _answer_whether(condition: Callable[[Registers], object]) -> Command:
    return lambda registers: registers.answer_integer(1, int(bool(condition(registers))))


def _pose_now(registers: Registers, tool: Array) -> Array:
    return registers.box.kinematics.forward(registers.box.values["actual_q"], tool)


def _reachable(near: Values) -> Command:
    def reachable(registers: Registers) -> bool:
        box, pose = registers.box, _pose(registers)
        return box.kinematics.inverse(pose, near(registers), box.tcp_offset) is not None

    return _answer_whether(reachable)


def _steady(registers: Registers) -> bool:
    return not registers.box.arm.busy and not np.any(registers.box.values["target_qd"])


def _without_effect(registers: Registers) -> None:
    """For what a simulated arm does not have, such as the damping of the force mode."""


COMMANDS: dict[int, Command] = {
    1: _move(_joints),
    2: _move(_joints_of_pose),
    3: _move_straight(_pose),
    4: _move_straight(_pose_of_joints),
    8: _without_effect,  # zero the force sensor
    9: _speed_joints,
    10: _speed_tool,
    11: _servo(_joints),
    15: _stop,  # of speedJ and speedL
    16: _stop,  # of servoJ and servoL
    17: _set_payload,
    19: _without_effect,  # end of teaching
    20: _without_effect,  # damping of the force mode
    21: _without_effect,  # gain of the force mode
    24: _servo(_joints_of_pose),
    26: _answer(lambda registers: [1.0 / registers.box.rate]),
    29: lambda registers: registers.box.set_tool(registers.doubles(0)),
    30: _answer(lambda at: at.box.joint_positions(at.doubles(0), at.doubles(6))),
    31: lambda registers: registers.box.arm.command(cmd.SafetyCommand.PROTECTIVE_STOP),
    33: _stop,  # of moveL
    34: _stop,  # of moveJ
    36: _reachable(lambda registers: registers.box.target_q),
    37: _answer_whether(lambda at: at.box.kinematics.within_limits(at.doubles(0))),
    39: _answer(lambda registers: compose(_pose(registers), _pose(registers, 6))),
    40: _answer(lambda registers: registers.box.tcp_offset),
    43: _answer(lambda registers: _pose_now(registers, registers.box.tcp_offset)),
    44: _answer(lambda at: at.box.kinematics.forward(at.doubles(0), _pose(at, 6))),
    46: _answer(_joints_of_pose),
    47: _answer_whether(_steady),
    53: _without_effect,  # end of freedrive
    58: _answer(lambda registers: _pose_now(registers, np.zeros(6))),
    60: _reachable(lambda registers: registers.box.target_q),
    61: _reachable(lambda registers: registers.doubles(6)),
    65: _set_target_payload,
}
"""Simulated commands by number."""

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
        waits = COMMANDS[command](registers) is WAITS
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
