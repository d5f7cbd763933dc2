"""What the simulated controller is, without its sockets: arm, program, registers and signals."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.simulation.arm.commands import (
    BrakeRelease,
    Command,
    Follow,
    Pause,
    Play,
    PowerOff,
    PowerOn,
    SpeedSlider,
    Stop,
    StopJ,
    Unlock,
)
from ur_energy_model.simulation.arm.modes import ProgramState, RobotMode, SafetyMode
from ur_energy_model.simulation.control.arm_interface import ArmInterface
from ur_energy_model.simulation.control.kinematics import ArmKinematics
from ur_energy_model.simulation.control.program import Program, ScriptError
from ur_energy_model.simulation.control.rtde_inputs import INPUTS, OWN_FIELDS, InputOwnership
from ur_energy_model.simulation.control.rtde_values import RtdeValues
from ur_energy_model.simulation.control.simulated_identity import SimulatedIdentity, Version
from ur_energy_model.simulation.control.straight_line import LinePlanner
from ur_energy_model.telemetry.fields import FIELDS, WIDTH
from ur_energy_model.telemetry.rtde.protocol import TextMessage
from ur_energy_model.typing import Array

SIGNALS_AT_REST = {"tool_mode": 253, "tool_temperature": 30.0}
"""Signals that stay as they are, other than 0."""
STOP_DECELERATION = 4.0
"""How a program that ends brings the arm to rest [rad/s^2]."""


class ControlBox:
    """Arm, program and signals of a simulated controller; used by one thread.

    Attributes:
        arm: the simulated arm.
        identity: what it says of itself.
        rate: controller cycles per second.
        values: value of every RTDE field by name, inputs included, true for the present cycle.
        ownership: which RTDE client may write which input.
        messages: text messages that clients have not been sent yet.
        loaded_program: file name of the program that `play` starts.
        cycle: number of controller cycles so far.
        inputs_received: number of input packages so far.
    """

    def __init__(self, arm: ArmInterface, identity: SimulatedIdentity) -> None:
        self.arm = arm
        self.identity = identity
        self.rate = arm.robot.rate
        self.ownership = InputOwnership()
        self.messages: deque[TextMessage] = deque(maxlen=100)
        self.loaded_program = f"{identity.motion}.urp"
        self.cycle = 0
        self.inputs_received = 0
        self._program: Program | None = None
        self._program_paused = False
        self._goal: tuple[Array, float, float] | None = None
        self._planner: LinePlanner | None = None
        self._digital_outputs = 0
        self.values = RtdeValues(arm)
        self.values.update((name, 0) for name in FIELDS if name.startswith(OWN_FIELDS))
        self.values.update(
            (name, [0] * WIDTH[kind] if WIDTH[kind] > 1 else 0) for name, kind in INPUTS.items()
        )
        self.values.update(SIGNALS_AT_REST)
        self._falsified: set[str] = set()
        self._refresh()

    @property
    def tcp_offset(self) -> Array:
        """Tool centre point in the flange frame [6] (rotation vector), m and rad."""
        return self.values.tool

    @tcp_offset.setter
    def tcp_offset(self, pose: Array) -> None:
        self.values.tool = pose

    @cached_property
    def kinematics(self) -> ArmKinematics:
        """Nominal kinematics of the arm."""
        return ArmKinematics(self.arm.robot)

    @property
    def version(self) -> Version:
        """Software version and build."""
        return self.identity.version

    def step(self) -> None:
        """One controller cycle: program, arm, values."""
        self.cycle += 1
        if self._program is not None and not self._program_paused:
            try:
                if not self._plan() and not self._program.step(self):
                    self.stop()
            except (ScriptError, MotionRefusedError) as error:
                self.say(str(error), level=0)
                self.stop()
        self.arm.tick()
        self._refresh()

    def move_straight(self, pose: Array, speed: float, acceleration: float) -> None:
        """Move the tool centre point along a line to a pose [6]; the program waits meanwhile.

        Args:
            pose: position and rotation vector, m and rad.
            speed: m/s.
            acceleration: m/s^2.
        """
        if not (speed > 0.0 and acceleration > 0.0 and np.isfinite(pose).all()):
            raise ScriptError("a straight move needs a pose, a speed and an acceleration")
        self._goal, self._planner = (pose, speed, acceleration), None
        self._ask(StopJ(STOP_DECELERATION))

    def _plan(self) -> bool:
        """Work on a straight move that was asked for; whether there is one."""
        if self._goal is None:
            return False
        if self.arm.busy:  # it comes to rest first
            return True
        if self._planner is None:
            pose, speed, acceleration = self._goal
            self._planner = LinePlanner(
                self.kinematics,
                np.asarray(self.values["target_q"]),
                pose,
                self.tcp_offset,
                speed,
                acceleration,
                self.arm.robot.max_velocity,
            )
        try:
            line = self._planner.advance()
        except ValueError as error:
            raise ScriptError(str(error)) from error
        if line is not None:
            self._goal = None
            self.arm.command(Follow(line))
        return True

    def falsify(self, values: Mapping[str, Any]) -> None:
        """Show these values instead of the arm's until the next cycle."""
        self.values.update(values)
        self._falsified.update(values)

    def _refresh(self) -> None:
        for name in self._falsified:
            del self.values[name]
        self._falsified.clear()
        safety, mode = self.arm.safety_mode, self.arm.robot_mode
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

    def say(self, text: str, level: int = 3) -> None:
        """Tell all RTDE clients; level 0 exception, 1 error, 2 warning, 3 information."""
        self.messages.append(TextMessage(text, "simulated controller", level))

    # Programs

    @property
    def program_state(self) -> ProgramState:
        """State of the uploaded program, or else of the built-in motion."""
        if self._program is None:
            return ProgramState(self.arm.program_state)
        return ProgramState.PAUSED if self._program_paused else ProgramState.PLAYING

    @property
    def ready(self) -> bool:
        """Whether the arm is on, its brakes released and nothing stops it."""
        return (
            self.arm.robot_mode == RobotMode.RUNNING and self.arm.safety_mode == SafetyMode.NORMAL
        )

    def run(self, program: Program) -> None:
        """Start an uploaded program in place of whatever runs."""
        self.stop()
        if program.needs_arm and not self.ready:
            self.say(f"{program.name} was not started: the robot is not running", level=1)
            return
        self._program, self._program_paused = program, False

    def stop(self) -> None:
        """Stop the program and bring the arm to rest."""
        self._goal = None
        if self._program is not None:
            self._program = None
            self._ask(StopJ(STOP_DECELERATION))
        elif self.arm.program_state != ProgramState.STOPPED:
            self._ask(Stop())

    def play(self) -> bool:
        """Start or resume the program; whether that was possible."""
        if not self.ready:
            return False
        if self._program is not None:
            self._program_paused = False
        else:
            return self._ask(Play())
        return True

    def pause(self) -> bool:
        """Pause the program; whether there was one to pause."""
        if self.program_state != ProgramState.PLAYING:
            return False
        if self._program is not None:
            self._program_paused = True
            self._ask(StopJ(STOP_DECELERATION))
        else:
            self._ask(Pause())
        return True

    def _ask(self, command: Command) -> bool:
        """Command the arm on behalf of a client; whether it took the command."""
        try:
            self.arm.command(command)
        except MotionRefusedError as error:
            self.say(str(error), level=1)
            return False
        return True

    # Power and safety

    def power_on(self) -> None:
        """Switch the arm on, brakes engaged."""
        if self.arm.robot_mode < RobotMode.IDLE:
            self._ask(PowerOn())

    def power_off(self) -> None:
        """Stop and switch the arm off."""
        self.stop()
        self._ask(PowerOff())

    def release_brakes(self) -> None:
        """Switch on where necessary, and release the brakes."""
        self._ask(BrakeRelease())

    def unlock(self) -> None:
        """Release a protective stop."""
        self._ask(Unlock())

    # Inputs

    def write_inputs(self, inputs: Mapping[str, Any]) -> None:
        """Take the values of one input package."""
        self.inputs_received += 1
        self.values.update(inputs)
        if inputs.get("speed_slider_mask"):
            self._ask(SpeedSlider(float(np.clip(inputs["speed_slider_fraction"], 0, 1))))
        for group, shift in (("standard", 0), ("configurable", 8), ("tool", 16)):
            mask = inputs.get(f"{group}_digital_output_mask")
            if mask:
                bits = inputs.get(f"{group}_digital_output", 0)
                self.set_digital_outputs(mask << shift, bits << shift)
        mask = inputs.get("standard_analog_output_mask", 0)
        for i in (0, 1):
            if mask >> i & 1:
                level = float(np.clip(inputs.get(f"standard_analog_output_{i}", 0.0), 0.0, 1.0))
                voltage = inputs.get("standard_analog_output_type", 0) >> i & 1
                self.values[f"standard_analog_output{i}"] = (
                    10.0 * level if voltage else 0.004 + 0.016 * level
                )

    def set_digital_outputs(self, mask: int, bits: int) -> None:
        """Set those of the 18 digital outputs (8 standard, 8 configurable, 2 tool) in the mask."""
        self._digital_outputs = self._digital_outputs & ~mask | bits & mask
