# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Native implementation of the control loop that ur_rtde uploads.

ur_rtde controls a robot through its own script, which reads a command number and
arguments from RTDE input registers and answers in output registers. No URScript is
interpreted here: the loop is reimplemented, and each command is an action on the arm.
Source: the script that ur_rtde 1.6.5 sends.

Handshake: the client writes a command number into input integer register 0; the loop
writes 2 (done) into output integer register 0; the client writes 0; the loop writes 1
(ready). Streaming commands are executed in every cycle and leave the loop ready.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable

import numpy as np

from ur_energy_model.simulation import arm_commands as cmd
from ur_energy_model.simulation.control_box import ControlBox
from ur_energy_model.trajectory.kinematics import ScriptError, checked_pose, compose
from ur_energy_model.typing import Array

READY = 1
DONE = 2
NO_COMMAND = 0
SET_WATCHDOG = 35
STOP_SCRIPT = 255
STREAMING = frozenset({6, 9, 10, 11, 24, 25, 26, 27, 38, 58, 66, 67, 68, 69, 70, 71})
"""Commands that are executed in every cycle while they are in the register."""
ASYNCHRONOUS = frozenset({1, 2, 3, 4, 33, 34})
"""Commands that the client does not wait for if integer register 1 is 1."""
OFFSETS = (0, 24)  # first registers of the lower and the upper range
RUNNING_BIT = 1 << 15
WRITES_SHIFT = 16
OPERATION_SHIFT = 24
COUNTER_LIMIT = 127
WAITS = True  # result of a command that is complete only when the arm is at rest


class UrRtdeScript:
    """The running control script of ur_rtde, a `Program`.

    Args:
        box: arm, program and values of the controller.
        text: the uploaded script.

    Raises:
        ScriptError: it uses registers that do not exist.
    """

    name = "rtde_control"
    needs_arm = True

    def __init__(self, box: ControlBox, text: str) -> None:
        match = re.search(r"global reg_offset_int\s*=\s*(\d{1,9})", text)
        self.box = box
        self._offset = int(match[1]) if match else 0
        if self._offset not in OFFSETS:
            raise ScriptError(
                f"{self.name}: reg_offset_int is {self._offset}, not 0 or 24"
            )
        self._started = False
        self._executing = False  # whether the command in the register was executed
        self._waiting = False  # whether it is complete only when the arm is at rest
        self._moving_asynchronously = False
        self._writes = 0
        self._operations = 0
        self._watchdog_cycles: float | None = None
        self._inputs_seen = 0  # number of input packages at the last cycle
        self._inputs_cycle = 0  # cycle in which the last input package was noticed

    def step(self) -> bool:
        """Run one pass of the loop; returns False after the stop command.

        Raises:
            ScriptError: the command is not simulated, or the client stopped writing
                inputs.
        """
        busy = self.box.arm.busy
        if not self._started:
            self._started = True
            self._report_progress(running=False)
            self._answer_integer(0, READY)
            return True
        self._check_watchdog()
        if self._moving_asynchronously and not busy:
            self._moving_asynchronously = False
            self._report_progress(running=False)
        if self._waiting:
            self._waiting = busy
            if not busy:
                self._answer_integer(0, DONE)
            return True
        command = self._integer(0)
        if command == STOP_SCRIPT:
            return False
        if command in STREAMING:
            self._execute(command)
            self._answer_integer(0, READY)
        elif command == NO_COMMAND:
            self._executing = False
            self._answer_integer(0, READY)
        elif not self._executing:
            self._executing = True
            self._waiting = self._execute(command)
            if not self._waiting:
                self._answer_integer(0, DONE)
        return True

    def _execute(self, command: int) -> bool:
        """Execute a command; returns whether the client waits until the arm is at rest."""
        if command == SET_WATCHDOG:
            (frequency,) = self.doubles(0, 1)
            self._watchdog_cycles = self.box.rate / frequency if frequency > 0 else None
            return False
        if command not in COMMANDS:
            raise ScriptError(f"ur_rtde's command {command} is not simulated")
        waits = COMMANDS[command](self) is WAITS
        if waits and command in ASYNCHRONOUS and self._integer(1) == 1:
            self._operations = (self._operations + 1) % (COUNTER_LIMIT + 1)
            self._moving_asynchronously = True
            self._report_progress(running=True)
            return False
        return waits

    def _check_watchdog(self) -> None:
        """End the program of a client that has not written inputs for too long.

        Raises:
            ScriptError: the time of its watchdog is over.
        """
        box = self.box
        if box.inputs_received != self._inputs_seen:
            self._inputs_seen = box.inputs_received
            self._inputs_cycle = box.cycle
            return
        silent_cycles = box.cycle - self._inputs_cycle
        if self._watchdog_cycles is not None and silent_cycles > self._watchdog_cycles:
            raise ScriptError(
                "the watchdog stopped the program: the client sends no inputs"
            )

    def _report_progress(self, *, running: bool) -> None:
        """Report the asynchronous move to the client, as a bit field in register 2."""
        self._writes = (self._writes + 1) % (COUNTER_LIMIT + 1)
        counters = self._writes << WRITES_SHIFT | self._operations << OPERATION_SHIFT
        self._answer_integer(2, counters | (RUNNING_BIT if running else 0))

    # Registers

    def _integer(self, register: int) -> int:
        """Input integer register, by its number in the range of the script."""
        return int(self.box.values[f"input_int_register_{register + self._offset}"])

    def doubles(self, first: int, count: int = 6) -> Array:
        """Input double registers [count].

        Args:
            first: number of the first register.
            count: number of registers.

        Raises:
            ScriptError: one is not finite; URScript has no such numbers.
        """
        registers = range(first + self._offset, first + self._offset + count)
        values = [
            float(self.box.values[f"input_double_register_{each}"]) for each in registers
        ]
        for register, value in zip(registers, values, strict=True):
            if not math.isfinite(value):
                raise ScriptError(f"input double register {register} is not finite")
        return np.array(values)

    def pose(self, first: int = 0) -> Array:
        """A pose [6] in double registers.

        Args:
            first: number of the first register.

        Returns:
            Position [m] and rotation vector [rad].
        """
        return checked_pose(self.doubles(first))

    def joints_of_pose(self) -> Array:
        """Joint positions [6] of the pose in the first double registers."""
        return self.box.joint_positions(self.doubles(0))

    def answer(self, values: Iterable[float]) -> None:
        """Write the output double registers from 0 on."""
        for register, value in enumerate(values, self._offset):
            self.box.values[f"output_double_register_{register}"] = float(value)

    def answer_whether(self, condition: object) -> None:
        """Write 1 or 0 to output integer register 1."""
        self._answer_integer(1, int(bool(condition)))

    def _answer_integer(self, register: int, value: int) -> None:
        self.box.values[f"output_int_register_{register + self._offset}"] = value

    # Motions

    def move(self, q: Array) -> bool:
        """Move to joint positions [6], rad, with speed and acceleration of registers 6 and 7."""
        speed, acceleration = self.doubles(6, 2).tolist()
        self.box.arm.command(cmd.MoveJ(q, speed, acceleration))
        return WAITS

    def move_straight(self, pose: Array) -> bool:
        """Move the tool along a line to a pose [6], likewise."""
        speed, acceleration = self.doubles(6, 2).tolist()
        self.box.move_straight(pose, speed, acceleration)
        return WAITS

    def stop(self) -> bool:
        """Bring the arm to rest with the deceleration of register 0."""
        self.box.arm.command(cmd.StopJ(float(self.doubles(0, 1)[0])))
        return WAITS

    def servo(self, q: Array) -> None:
        """Follow streamed joint positions [6], rad, with the constants of registers 8 to 10."""
        time, lookahead, gain = self.doubles(8, 3).tolist()
        self.box.arm.command(cmd.ServoJ(q, time, lookahead, gain))

    def speed_tool(self) -> None:
        """Follow a tool speed by joint speeds, with the joint acceleration of the same time."""
        box = self.box
        speed = self.doubles(0)
        jacobian = box.kinematics.jacobian(box.target_q, box.tcp_offset)
        qd = np.asarray(np.linalg.lstsq(jacobian, speed, rcond=1e-3)[0], dtype=np.float64)
        size = max(float(np.linalg.norm(speed[:3])), float(np.linalg.norm(speed[3:])))
        ratio = float(np.abs(qd).max()) / size if size > 0.0 else 1.0
        box.arm.command(cmd.SpeedJ(qd, float(self.doubles(6, 1)[0]) * ratio))

    def set_payload(self, *inertia: Array) -> None:
        """Set mass and centre of mass, zeros of which keep the configured one, and inertia."""
        mass, *center = self.doubles(0, 4).tolist()
        cog = np.array(center if any(center) else self.box.values["payload_cog"])
        self.box.arm.command(cmd.SetPayload(mass, cog, *inertia))

    def tool_pose(self, q: Array, tool: Array) -> Array:
        """Pose [6] of the tool centre point `tool` [6] at joint positions."""
        return self.box.kinematics.forward(q, tool)

    def reachable(self, near: Array) -> None:
        """Answer whether the inverse kinematics finds the pose."""
        found = self.box.kinematics.inverse(self.pose(), near, self.box.tcp_offset)
        self.answer_whether(found is not None)


def _without_effect(script: UrRtdeScript) -> None:
    """Do nothing, for functions that a simulated arm does not have, such as the force mode."""


COMMANDS: dict[int, Callable[[UrRtdeScript], object]] = {
    1: lambda s: s.move(s.doubles(0)),
    2: lambda s: s.move(s.joints_of_pose()),
    3: lambda s: s.move_straight(s.pose()),
    4: lambda s: s.move_straight(s.tool_pose(s.doubles(0), s.box.tcp_offset)),
    8: _without_effect,  # zero the force sensor
    9: lambda s: s.box.arm.command(cmd.SpeedJ(s.doubles(0), float(s.doubles(6, 1)[0]))),
    10: UrRtdeScript.speed_tool,
    11: lambda s: s.servo(s.doubles(0)),
    15: UrRtdeScript.stop,  # end of speedJ and speedL
    16: UrRtdeScript.stop,  # end of servoJ and servoL
    17: UrRtdeScript.set_payload,
    19: _without_effect,  # end of teaching
    20: _without_effect,  # damping of the force mode
    21: _without_effect,  # gain of the force mode
    24: lambda s: s.servo(s.joints_of_pose()),
    26: lambda s: s.answer([1.0 / s.box.rate]),
    29: lambda s: s.box.set_tool(s.doubles(0)),
    30: lambda s: s.answer(s.box.joint_positions(s.doubles(0), s.doubles(6))),
    31: lambda s: s.box.arm.command(cmd.SafetyCommand.PROTECTIVE_STOP),
    33: UrRtdeScript.stop,  # end of moveL
    34: UrRtdeScript.stop,  # end of moveJ
    36: lambda s: s.reachable(s.box.target_q),
    37: lambda s: s.answer_whether(s.box.kinematics.within_limits(s.doubles(0))),
    39: lambda s: s.answer(compose(s.pose(), s.pose(6))),
    40: lambda s: s.answer(s.box.tcp_offset),
    43: lambda s: s.answer(s.tool_pose(s.box.values["actual_q"], s.box.tcp_offset)),
    44: lambda s: s.answer(s.tool_pose(s.doubles(0), s.pose(6))),
    46: lambda s: s.answer(s.joints_of_pose()),
    47: lambda s: s.answer_whether(
        not (s.box.arm.busy or np.any(s.box.values["target_qd"]))
    ),
    53: _without_effect,  # end of freedrive
    58: lambda s: s.answer(s.tool_pose(s.box.values["actual_q"], np.zeros(6))),
    60: lambda s: s.reachable(s.box.target_q),
    61: lambda s: s.reachable(s.doubles(6)),
    65: lambda s: s.set_payload(s.doubles(4)),
}
"""Simulated commands by number."""
