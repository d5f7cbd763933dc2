# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Simulated controller without its sockets: arm, program, registers and RTDE values."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.simulation import arm_commands as cmd
from ur_energy_model.simulation.arm_commands import ProgramState, RobotMode, SafetyMode
from ur_energy_model.simulation.arm_constants import constants
from ur_energy_model.simulation.faults import BOX_FIELDS
from ur_energy_model.simulation.simulated_arm import SimulatedArm
from ur_energy_model.telemetry.fields import FIELDS, INPUTS, WIDTH
from ur_energy_model.telemetry.rtde.dashboard_client import SIMULATED_SERIAL_PREFIX
from ur_energy_model.telemetry.rtde.protocol import Recipe, TextMessage
from ur_energy_model.trajectory.kinematics import (
    ArmKinematics,
    LinePlanner,
    Program,
    ScriptError,
    checked_pose,
    compose,
)
from ur_energy_model.typing import Array


class RtdeValues(dict[str, Any]):
    """Values of RTDE fields by name: the dictionary holds the values of the control box.

    Fields of the arm, and fields derived from them, are looked up on access because some
    are expensive to compute.

    Args:
        arm: the arm whose outputs are looked up.

    Attributes:
        tcp_offset: tool centre point in the flange frame [6], m and rad.
    """

    def __init__(self, arm: SimulatedArm) -> None:
        super().__init__()
        self._arm = arm
        self.tcp_offset = np.zeros(6)

    def __missing__(self, name: str) -> Any:
        """The value of a field of the arm, or of a field derived from others.

        Raises:
            KeyError: there is no such field.
        """
        derive = _DERIVED.get(name)
        if derive is not None:
            return derive(self._arm.outputs)
        value = self._arm.outputs[name]
        if name in _POSES and self.tcp_offset.any():
            return compose(np.asarray(value), self.tcp_offset)
        return value

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in _DERIVED or name in self._arm.outputs


def _deviation_ratio(outputs: Mapping[str, Any]) -> float:
    """Largest difference of target and actual joint positions over the limit of the servo."""
    error = np.abs(np.subtract(outputs["target_q"], outputs["actual_q"])).max()
    return float(error / constants()["servo"]["following_error"])


_POSES = ("actual_TCP_pose", "target_TCP_pose")
"""Poses that the simulated arm has for the flange, and the controller reports for the
tool centre point."""
_DERIVED: dict[str, Callable[[Mapping[str, Any]], float]] = {
    "safety_status": lambda outputs: float(outputs["safety_mode"]),
    "tcp_force_scalar": lambda outputs: float(
        np.linalg.norm(outputs["actual_TCP_force"][:3])
    ),
    "joint_position_deviation_ratio": _deviation_ratio,
}

Version = tuple[int, int, int, int]  # software version: major, minor, bugfix, build


class SimulatedIdentity(NamedTuple):
    """Identity that a simulated controller reports.

    Attributes:
        version: version of the controller software, build included.
        serial: serial number, which begins with SIMULATED_SERIAL_PREFIX.
        model: model name as in the answers of the dashboard server, such as "UR5".
        motion: name of the built-in motion that is the initially loaded program.
    """

    version: Version
    serial: str
    model: str
    motion: str

    @classmethod
    def for_robot(
        cls, robot: RobotDescription, version: tuple[int, ...], seed: int, motion: str
    ) -> SimulatedIdentity:
        """Identity of the simulated arm with this version and seed.

        Args:
            robot: the arm's type.
            version: version of the controller software.
            seed: number of the arm among the arms of its type; the serial number shows
                it.
            motion: name of the motion, as the loaded program.
        """
        major, minor, bugfix, build = (*version, 0, 0, 0)[:4]
        return cls(
            version=(major, minor, bugfix, build),
            serial=f"{SIMULATED_SERIAL_PREFIX}{seed % 10000:04d}",
            model=robot.name.upper().removesuffix("E"),
            motion=motion,
        )


CONSTANT_VALUES = {"tool_mode": 253, "tool_temperature": 30.0, "script_control_line": 0}
"""Initial values of fields that neither the arm nor the control box computes."""
STOP_DECELERATION = 4.0  # deceleration of the arm when a program ends or pauses [rad/s^2]
REPLACEMENT = 0.1
"""Time for which the state is stopped between a program and the program that replaces it
[s]."""
TOOL_SPEEDS = (1e-3, 100.0)
"""Range to which speed and acceleration of straight moves are clipped, m/s and m/s^2."""
MESSAGE_LENGTH = 1000  # longest text message [characters]; the rest is cut


class ControlBox:
    """Arm, program and RTDE values of a simulated controller; used by one thread.

    Args:
        arm: the simulated arm.
        identity: identity that the controller reports.

    Attributes:
        arm: the simulated arm.
        identity: reported identity; `version` is the version of the software.
        rate: controller cycles per second.
        values: value of every RTDE field by name in the current cycle, inputs included.
        input_owners: client that has set up each RTDE input in use.
        messages: text messages not yet sent to the clients.
        packages: RTDE data packages of this cycle.
        loaded_program: file name of the program that `play` starts.
        cycle: controller cycles since the start.
        inputs_received: input packages since the start.
    """

    def __init__(self, arm: SimulatedArm, identity: SimulatedIdentity) -> None:
        self.arm = arm
        self.identity = identity
        self.version = identity.version
        self.rate = arm.robot.rate
        self.input_owners: dict[str, Hashable] = {}
        self.messages: deque[TextMessage] = deque(maxlen=100)
        self.packages: dict[Recipe, bytes] = {}
        self.loaded_program = f"{identity.motion}.urp"
        self.cycle = 0
        self.inputs_received = 0
        self._digital_outputs = 0
        self._program: Program | None = None
        self._program_paused = False
        self._program_begin = 0  # cycle in which the program begins
        self._line: Iterator[None] | None = None  # a requested straight move
        self.values = RtdeValues(arm)
        self.values.update((name, 0) for name in FIELDS if name.startswith(BOX_FIELDS))
        for name, kind in INPUTS.items():
            self.values[name] = [0] * WIDTH[kind] if WIDTH[kind] > 1 else 0
        self.values.update(CONSTANT_VALUES)
        self._replaced: set[str] = set()
        self._refresh()

    @property
    def tcp_offset(self) -> Array:
        """Tool centre point in the flange frame [6] (rotation vector), m and rad."""
        return self.values.tcp_offset

    def set_tool(self, pose: Array) -> None:
        """Set the tool centre point.

        Args:
            pose: position [m] and rotation vector [rad] in the flange frame [6].

        Raises:
            ScriptError: the pose is not finite, or far beyond every arm.
        """
        self.values.tcp_offset = checked_pose(pose, "the tool centre point")

    @cached_property
    def kinematics(self) -> ArmKinematics:
        """Nominal kinematics of the arm."""
        return ArmKinematics(self.arm.robot)

    @property
    def target_q(self) -> Array:
        """Commanded joint positions [n], rad."""
        return np.asarray(self.values["target_q"])

    def joint_positions(self, pose: Array, near: Array | None = None) -> Array:
        """Joint positions [n], rad, of a pose of the tool centre point.

        Args:
            pose: position [m] and rotation vector [rad] of the tool centre point in the
                base frame [6].
            near: joint positions from which the search starts [n], rad; None for the
                present positions.

        Raises:
            ScriptError: the arm cannot reach the pose.
        """
        pose = checked_pose(pose)
        near = self.target_q if near is None else near
        q = self.kinematics.inverse(pose, near, self.tcp_offset)
        if q is None:
            raise ScriptError(
                "the arm cannot reach the pose: inverse kinematics has no solution"
            )
        return q

    def step(self) -> None:
        """One controller cycle: program, arm, values."""
        self.cycle += 1
        self.packages.clear()
        if self.program_state is ProgramState.PLAYING and self._program is not None:
            try:
                if self._line is not None:
                    for _ in self._line:
                        break
                    else:
                        self._line = None
                elif not self._program.step():
                    self.stop()
            except (ScriptError, MotionRefusedError) as error:
                line = int(self.values["script_control_line"])
                place = f"{self._program.name}, line {line}: " if line else ""
                self.send_message(f"{place}{error}", level=0)
                self.stop()
        self.arm.tick()
        self._refresh()

    def move_straight(self, pose: Array, speed: float, acceleration: float) -> None:
        """Move the tool centre point along a line; the program waits for its end.

        Args:
            pose: end of the line: position [m] and rotation vector [rad] in the base
                frame [6].
            speed: speed of the tool centre point [m/s].
            acceleration: acceleration of the tool centre point [m/s^2].

        Raises:
            ScriptError: the pose is not finite or far beyond every arm, or a value is not
                positive.
        """
        pose = checked_pose(pose)
        if not (speed > 0.0 and acceleration > 0.0):
            raise ScriptError("a straight move needs positive speed and acceleration")
        lowest, highest = TOOL_SPEEDS
        self._line = self._follow_line(
            pose,
            speed=min(max(speed, lowest), highest),
            acceleration=min(max(acceleration, lowest), highest),
        )
        self.command(cmd.StopJ(STOP_DECELERATION))

    def _follow_line(
        self, pose: Array, speed: float, acceleration: float
    ) -> Iterator[None]:
        """Plan a straight move in the cycles after the arm has come to rest, and start it."""
        while self.arm.busy:
            yield
        start = self.target_q
        tool = self.tcp_offset
        fastest = self.arm.robot.max_velocity
        planner = LinePlanner(
            self.kinematics, start, pose, tool, speed, acceleration, fastest
        )
        while (line := planner.advance()) is None:
            yield
        self.arm.command(cmd.Follow(line))

    def replace_values(self, values: Mapping[str, Any]) -> None:
        """Report these values instead of the arm's until the next cycle.

        Args:
            values: values of the cycle by the names of RTDE fields.
        """
        self.values.update(values)
        self._replaced.update(values)

    def _refresh(self) -> None:
        """Update the values of the box after a cycle, and end replaced ones."""
        for name in self._replaced:
            del self.values[name]
        self._replaced.clear()
        safety = self.arm.safety_mode
        mode = self.arm.robot_mode
        if self._program is not None and safety == SafetyMode.PROTECTIVE_STOP:
            self._program_paused = True
        state = self.program_state
        values = self.values
        values["tcp_offset"] = self.tcp_offset
        values["runtime_state"] = int(state)
        values["robot_status_bits"] = (mode >= RobotMode.POWER_ON) | (
            (state != ProgramState.STOPPED) << 1
        )
        values["safety_status_bits"] = (
            (safety == SafetyMode.NORMAL)
            | (safety == SafetyMode.PROTECTIVE_STOP) << 2
            | (safety != SafetyMode.NORMAL) << 10
        )
        values["actual_digital_output_bits"] = self._digital_outputs

    def send_message(self, text: str, level: int = 3) -> None:
        """Send a text to all RTDE clients.

        Args:
            text: what clients show.
            level: 0 exception, 1 error, 2 warning, 3 info.
        """
        self.messages.append(
            TextMessage(text[:MESSAGE_LENGTH], "simulated controller", level)
        )

    # Programs

    @property
    def uploaded_program(self) -> str | None:
        """Name of the uploaded program; None without one."""
        return None if self._program is None else self._program.name

    @property
    def program_state(self) -> ProgramState:
        """State of the uploaded program; before and without one, of the built-in motion."""
        if self._program is None or self.cycle < self._program_begin:
            return ProgramState(self.arm.program_state)
        return ProgramState.PAUSED if self._program_paused else ProgramState.PLAYING

    @property
    def ready(self) -> bool:
        """Whether the arm is powered, its brakes released and no protective stop active."""
        return (
            self.arm.robot_mode == RobotMode.RUNNING
            and self.arm.safety_mode == SafetyMode.NORMAL
        )

    def run(self, program: Program) -> None:
        """Start an uploaded program; it replaces the running one, which is stopped first.

        Args:
            program: uploaded program; one of its steps is run in every cycle.
        """
        if self.program_state is not ProgramState.STOPPED:
            self._program_begin = self.cycle + round(REPLACEMENT * self.rate)
        self.stop()
        if program.needs_arm and not self.ready:
            self.send_message(
                f"{program.name} was not started: the robot is not running", level=1
            )
            return
        self._program = program
        self._program_paused = False

    def stop(self) -> None:
        """Stop the program and bring the arm to rest."""
        self._line = None
        if self._program is not None:
            self._program = None
            self.values["script_control_line"] = 0
            self.command(cmd.StopJ(STOP_DECELERATION))
        elif self.arm.program_state != ProgramState.STOPPED:
            self.command(cmd.ProgramCommand.STOP)

    def play(self) -> bool:
        """Start or resume the program; returns whether that was possible."""
        if not self.ready:
            return False
        if self._program is None:
            return self.command(cmd.ProgramCommand.PLAY)
        self._program_paused = False
        return True

    def pause(self) -> bool:
        """Pause the program; returns whether one was playing."""
        if self.program_state != ProgramState.PLAYING:
            return False
        if self._program is None:
            return self.command(cmd.ProgramCommand.PAUSE)
        self._program_paused = True
        return self.command(cmd.StopJ(STOP_DECELERATION))

    def command(self, command: cmd.Command) -> bool:
        """Command the arm for a client.

        Args:
            command: a motion, a stop or a change of the payload.

        Returns:
            Whether the arm accepted the command; the clients get a message about a
            refused command.
        """
        try:
            self.arm.command(command)
        except MotionRefusedError as error:
            self.send_message(str(error), level=1)
            return False
        return True

    def write_inputs(self, inputs: Mapping[str, Any]) -> None:
        """Apply the values of one input package.

        Args:
            inputs: values by the names of RTDE input fields.
        """
        self.inputs_received += 1
        self.values.update(inputs)
        # A mask without its field has no effect, nor has a value that is not finite.
        fraction = inputs.get("speed_slider_fraction", math.nan)
        if inputs.get("speed_slider_mask") and math.isfinite(fraction):
            self.command(cmd.SpeedSlider(float(np.clip(fraction, 0.0, 1.0))))
        for group, shift in (("standard", 0), ("configurable", 8), ("tool", 16)):
            mask = inputs.get(f"{group}_digital_output_mask")
            if mask:
                bits = inputs.get(f"{group}_digital_output", 0)
                self.set_digital_outputs(mask << shift, bits << shift)
        mask = inputs.get("standard_analog_output_mask", 0)
        for i in (0, 1):
            level = inputs.get(f"standard_analog_output_{i}", 0.0)
            if mask >> i & 1 and math.isfinite(level):
                level = float(np.clip(level, 0.0, 1.0))
                volts = inputs.get("standard_analog_output_type", 0) >> i & 1
                # 0 to 10 V, or 4 to 20 mA.
                value = 10.0 * level if volts else 0.004 + 0.016 * level
                self.values[f"standard_analog_output{i}"] = value

    def set_digital_outputs(self, mask: int, bits: int) -> None:
        """Set digital outputs.

        Args:
            mask: outputs that change: 8 standard, 8 configurable, 2 of the tool.
            bits: levels of the outputs.
        """
        self._digital_outputs = (self._digital_outputs & ~mask) | (bits & mask)
