"""Commands of ur_rtde's control script by number, as actions on the control box.

Source: the script that ur_rtde 1.6.5 sends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ur_energy_model.simulation.arm import commands as cmd
from ur_energy_model.simulation.control.control_box import ControlBox
from ur_energy_model.simulation.control.kinematics import compose
from ur_energy_model.simulation.control.pose_limits import checked_pose
from ur_energy_model.simulation.control.program import ScriptError
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


Command = Callable[[Registers], bool]
"""Executes a command; returns True if it is complete only when the arm is at rest."""


def _joints(registers: Registers) -> Array:
    return registers.doubles(0)


def _pose(registers: Registers, first: int = 0) -> Array:
    return checked_pose(registers.doubles(first))


def _transformed(registers: Registers) -> Array:
    return compose(_pose(registers), _pose(registers, 6))


def _pose_of_joints(registers: Registers) -> Array:
    return registers.box.kinematics.forward(registers.doubles(0), registers.box.tcp_offset)


def _joints_of_pose(registers: Registers) -> Array:
    return registers.box.joint_positions(registers.doubles(0))


def _joints_of_pose_near(registers: Registers) -> Array:
    return registers.box.joint_positions(registers.doubles(0), registers.doubles(6))


def _move(joints: Callable[[Registers], Array]) -> Command:
    def command(registers: Registers) -> bool:
        q = joints(registers)
        registers.box.arm.command(cmd.MoveJ(q, registers.double(6), registers.double(7)))
        return True

    return command


def _move_straight(pose: Callable[[Registers], Array]) -> Command:
    def command(registers: Registers) -> bool:
        registers.box.move_straight(pose(registers), registers.double(6), registers.double(7))
        return True

    return command


def _servo(joints: Callable[[Registers], Array]) -> Command:
    def command(registers: Registers) -> bool:
        time, lookahead, gain = registers.doubles(8, 3)
        registers.box.arm.command(cmd.ServoJ(joints(registers), time, lookahead, gain))
        return False

    return command


def _speed_joints(registers: Registers) -> bool:
    registers.box.arm.command(cmd.SpeedJ(registers.doubles(0), registers.double(6)))
    return False


def _speed_tool(registers: Registers) -> bool:
    """Joint speeds of a tool speed, with the joint acceleration that takes the same time."""
    box, speed = registers.box, registers.doubles(0)
    jacobian = box.kinematics.jacobian(box.target_q, box.tcp_offset)
    qd = np.asarray(np.linalg.lstsq(jacobian, speed, rcond=1e-3)[0], dtype=np.float64)
    size = max(float(np.linalg.norm(speed[:3])), float(np.linalg.norm(speed[3:])))
    ratio = float(np.abs(qd).max()) / size if size > 0.0 else 1.0
    box.arm.command(cmd.SpeedJ(qd, registers.double(6) * ratio))
    return False


def _stop(registers: Registers) -> bool:
    registers.box.arm.command(cmd.StopJ(registers.double(0)))
    return True


def _set_payload(registers: Registers) -> bool:
    registers.box.arm.command(cmd.SetPayload(registers.double(0), _center_of_mass(registers)))
    return False


def _set_target_payload(registers: Registers) -> bool:
    mass, center, inertia = registers.double(0), _center_of_mass(registers), registers.doubles(4)
    registers.box.arm.command(cmd.SetPayload(mass, center, inertia))
    return False


def _center_of_mass(registers: Registers) -> Array:
    """Centre of mass in registers 1 to 3; zeros keep the configured one."""
    center = registers.doubles(1, 3)
    return center if center.any() else np.array(registers.box.values["payload_cog"])


def _set_tool(registers: Registers) -> bool:
    registers.box.set_tool(registers.doubles(0))
    return False


def _protective_stop(registers: Registers) -> bool:
    registers.box.arm.command(cmd.SafetyCommand.PROTECTIVE_STOP)
    return False


def _ignore(registers: Registers) -> bool:
    """For commands without effect on a simulated arm, such as the damping of the force mode."""
    return False


def _answer(values: Callable[[Registers], Iterable[float]]) -> Command:
    def command(registers: Registers) -> bool:
        registers.answer(values(registers))
        return False

    return command


def _answer_whether(condition: Callable[[Registers], bool]) -> Command:
    def command(registers: Registers) -> bool:
        registers.answer_integer(1, int(condition(registers)))
        return False

    return command


def _forward(registers: Registers) -> Array:
    return registers.box.kinematics.forward(registers.doubles(0), _pose(registers, 6))


def _current_tool_pose(registers: Registers) -> Array:
    box = registers.box
    return box.kinematics.forward(box.values["actual_q"], box.tcp_offset)


def _current_flange_pose(registers: Registers) -> Array:
    return registers.box.kinematics.forward(registers.box.values["actual_q"], np.zeros(6))


def _reachable(registers: Registers) -> bool:
    box, pose = registers.box, _pose(registers)
    return box.kinematics.inverse(pose, box.target_q, box.tcp_offset) is not None


def _reachable_near(registers: Registers) -> bool:
    box, pose, near = registers.box, _pose(registers), registers.doubles(6)
    return box.kinematics.inverse(pose, near, box.tcp_offset) is not None


def _within_limits(registers: Registers) -> bool:
    return registers.box.kinematics.within_limits(registers.doubles(0))


def _steady(registers: Registers) -> bool:
    return not registers.box.arm.busy and not np.any(registers.box.values["target_qd"])


COMMANDS: dict[int, Command] = {
    1: _move(_joints),
    2: _move(_joints_of_pose),
    3: _move_straight(_pose),
    4: _move_straight(_pose_of_joints),
    8: _ignore,  # zero the force sensor
    9: _speed_joints,
    10: _speed_tool,
    11: _servo(_joints),
    15: _stop,  # of speedJ and speedL
    16: _stop,  # of servoJ and servoL
    17: _set_payload,
    19: _ignore,  # end of teaching
    20: _ignore,  # damping of the force mode
    21: _ignore,  # gain of the force mode
    24: _servo(_joints_of_pose),
    26: _answer(lambda registers: [1.0 / registers.box.rate]),
    29: _set_tool,
    30: _answer(_joints_of_pose_near),
    31: _protective_stop,
    33: _stop,  # of moveL
    34: _stop,  # of moveJ
    36: _answer_whether(_reachable),
    37: _answer_whether(_within_limits),
    39: _answer(_transformed),
    40: _answer(lambda registers: registers.box.tcp_offset),
    43: _answer(_current_tool_pose),
    44: _answer(_forward),
    46: _answer(_joints_of_pose),
    47: _answer_whether(_steady),
    53: _ignore,  # end of freedrive
    58: _answer(_current_flange_pose),
    60: _answer_whether(_reachable),
    61: _answer_whether(_reachable_near),
    65: _set_target_payload,
}
"""Simulated commands by number."""
