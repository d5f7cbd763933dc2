"""What ur_rtde's control script does on each command number, as actions on the control box.

Source: the script that ur_rtde 1.6.5 sends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

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
from ur_energy_model.simulation.control.kinematics import compose
from ur_energy_model.simulation.control.program import ScriptError
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class Registers:
    """The registers through which client and script talk.

    Attributes:
        box: whose registers.
        offset: first register of the range in use: 0, or 24.
    """

    box: ControlBox
    offset: int

    def integer(self, register: int) -> int:
        """Input integer register."""
        return int(self.box.values[f"input_int_register_{register + self.offset}"])

    def doubles(self, first: int, count: int = 6) -> Array:
        """Input double registers [count]."""
        start = first + self.offset
        return np.array(
            [self.box.values[f"input_double_register_{i}"] for i in range(start, start + count)]
        )

    def give(self, values: Iterable[float]) -> None:
        """Answer with numbers, in output double registers 0 and following."""
        for i, value in enumerate(values, self.offset):
            self.box.values[f"output_double_register_{i}"] = float(value)

    def give_integer(self, register: int, value: int) -> None:
        """Answer with a number in an output integer register."""
        self.box.values[f"output_int_register_{register + self.offset}"] = value


Command = Callable[[ControlBox, Registers], bool]
"""Carries out a command; True where it is done when the arm rests."""


def _near(box: ControlBox) -> Array:
    return np.asarray(box.values["target_q"])


def _solve(box: ControlBox, pose: Array, near: Array | None = None) -> Array:
    """Joint positions for a tool pose."""
    q = box.kinematics.inverse(pose, _near(box) if near is None else near, box.tcp_offset)
    if q is None:
        raise ScriptError("the inverse kinematics found no joint positions for the pose")
    return q


def _move(joints: Callable[[ControlBox, Registers], Array]) -> Command:
    def command(box: ControlBox, registers: Registers) -> bool:
        v, a = registers.doubles(6, 2)
        box.arm.command(MoveJ(joints(box, registers), v, a))
        return True

    return command


def _move_straight(pose: Callable[[ControlBox, Registers], Array]) -> Command:
    def command(box: ControlBox, registers: Registers) -> bool:
        v, a = registers.doubles(6, 2)
        box.move_straight(pose(box, registers), v, a)
        return True

    return command


def _servo(joints: Callable[[ControlBox, Registers], Array]) -> Command:
    def command(box: ControlBox, registers: Registers) -> bool:
        time, lookahead, gain = registers.doubles(8, 3)
        box.arm.command(ServoJ(joints(box, registers), time, lookahead, gain))
        return False

    return command


def _joints(box: ControlBox, registers: Registers) -> Array:
    return registers.doubles(0)


def _pose(box: ControlBox, registers: Registers) -> Array:
    return registers.doubles(0)


def _pose_of_joints(box: ControlBox, registers: Registers) -> Array:
    return box.kinematics.forward(registers.doubles(0), box.tcp_offset)


def _joints_of_pose(box: ControlBox, registers: Registers) -> Array:
    return _solve(box, registers.doubles(0))


def _speed_joints(box: ControlBox, registers: Registers) -> bool:
    box.arm.command(SpeedJ(registers.doubles(0), registers.doubles(6, 1)[0]))
    return False


def _speed_tool(box: ControlBox, registers: Registers) -> bool:
    """Joint speeds of a tool speed, and the joint acceleration that reaches them as soon."""
    speed, acceleration = registers.doubles(0), registers.doubles(6, 1)[0]
    jacobian = box.kinematics.jacobian(_near(box), box.tcp_offset)
    qd = np.asarray(np.linalg.lstsq(jacobian, speed, rcond=1e-3)[0], dtype=np.float64)
    size = max(float(np.linalg.norm(speed[:3])), float(np.linalg.norm(speed[3:])))
    ratio = float(np.abs(qd).max()) / size if size > 0.0 else 1.0
    box.arm.command(SpeedJ(qd, acceleration * ratio))
    return False


def _stop(box: ControlBox, registers: Registers) -> bool:
    box.arm.command(StopJ(registers.doubles(0, 1)[0]))
    return True


def _set_payload(box: ControlBox, registers: Registers) -> bool:
    box.arm.command(SetPayload(registers.doubles(0, 1)[0], _center(box, registers)))
    return False


def _set_target_payload(box: ControlBox, registers: Registers) -> bool:
    box.arm.command(
        SetPayload(registers.doubles(0, 1)[0], _center(box, registers), registers.doubles(4))
    )
    return False


def _center(box: ControlBox, registers: Registers) -> Array:
    """Centre of mass in registers 1 to 3; zeros leave it as it is."""
    center = registers.doubles(1, 3)
    return center if center.any() else np.array(box.values["payload_cog"])


def _set_tool(box: ControlBox, registers: Registers) -> bool:
    box.tcp_offset = registers.doubles(0)
    return False


def _stop_protectively(box: ControlBox, registers: Registers) -> bool:
    box.arm.command(ProtectiveStop())
    return False


def _nothing(box: ControlBox, registers: Registers) -> bool:
    """For what has no effect on a simulated arm, such as the damping of a mode that is off."""
    return False


def _give(answer: Callable[[ControlBox, Registers], Iterable[float]]) -> Command:
    def command(box: ControlBox, registers: Registers) -> bool:
        registers.give(answer(box, registers))
        return False

    return command


def _tell(answer: Callable[[ControlBox, Registers], bool]) -> Command:
    def command(box: ControlBox, registers: Registers) -> bool:
        registers.give_integer(1, int(answer(box, registers)))
        return False

    return command


def _forward(box: ControlBox, registers: Registers) -> Array:
    return box.kinematics.forward(registers.doubles(0), registers.doubles(6))


def _forward_now(box: ControlBox, registers: Registers) -> Array:
    return box.kinematics.forward(box.values["actual_q"], box.tcp_offset)


def _flange(box: ControlBox, registers: Registers) -> Array:
    return box.kinematics.forward(box.values["actual_q"], np.zeros(6))


def _inverse_near(box: ControlBox, registers: Registers) -> Array:
    return _solve(box, registers.doubles(0), registers.doubles(6))


def _solvable(box: ControlBox, registers: Registers) -> bool:
    pose = registers.doubles(0)
    return box.kinematics.inverse(pose, _near(box), box.tcp_offset) is not None


def _solvable_near(box: ControlBox, registers: Registers) -> bool:
    pose, near = registers.doubles(0), registers.doubles(6)
    return box.kinematics.inverse(pose, near, box.tcp_offset) is not None


def _steady(box: ControlBox, registers: Registers) -> bool:
    return not box.arm.busy and not np.any(box.values["target_qd"])


COMMANDS: dict[int, Command] = {
    1: _move(_joints),
    2: _move(_joints_of_pose),
    3: _move_straight(_pose),
    4: _move_straight(_pose_of_joints),
    8: _nothing,  # zero the force sensor
    9: _speed_joints,
    10: _speed_tool,
    11: _servo(_joints),
    15: _stop,  # of speedJ and speedL
    16: _stop,  # of servoJ and servoL
    17: _set_payload,
    19: _nothing,  # end of teaching
    20: _nothing,  # damping of the force mode
    21: _nothing,  # gain of the force mode
    24: _servo(_joints_of_pose),
    26: _give(lambda box, registers: [1.0 / box.rate]),
    29: _set_tool,
    30: _give(_inverse_near),
    31: _stop_protectively,
    33: _stop,  # of moveL
    34: _stop,  # of moveJ
    36: _tell(_solvable),
    37: _tell(lambda box, registers: box.kinematics.within_limits(registers.doubles(0))),
    39: _give(lambda box, registers: compose(registers.doubles(0), registers.doubles(6))),
    40: _give(lambda box, registers: box.tcp_offset),
    43: _give(_forward_now),
    44: _give(_forward),
    46: _give(_joints_of_pose),
    47: _tell(_steady),
    53: _nothing,  # end of freedrive
    58: _give(_flange),
    60: _tell(_solvable),
    61: _tell(_solvable_near),
    65: _set_target_payload,
}
"""By number; commands that are missing are not simulated."""
