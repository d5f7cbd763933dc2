# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""One simulated arm with its controller, advanced cycle by cycle."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from ur_energy_model.errors import MotionRefusedError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.simulation import arm_commands as cmd
from ur_energy_model.simulation.arm_commands import (
    JOINT_MODES,
    ProgramState,
    RobotMode,
    SafetyMode,
    is_possible,
)
from ur_energy_model.simulation.arm_options import (
    ArmOptions,
    actual_parameters,
    draw_session,
)
from ur_energy_model.simulation.joint_controller import JointController
from ur_energy_model.simulation.plant import CURRENT, QD, Plant, Q, gear_twist
from ur_energy_model.simulation.sensors import RtdeOutputs, RtdeValue, Sensors
from ur_energy_model.simulation.supervisor import Supervisor
from ur_energy_model.simulation.supply import (
    Energies,
    EnergyBalance,
    PowerSupply,
    TruthLog,
)
from ur_energy_model.simulation.wall import SimulatedWall
from ur_energy_model.telemetry.fields import ENERGY_FIELDS, FIELDS
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.trajectory.named_motions import Planner
from ur_energy_model.typing import Array

START_TIME = 60.0
"""Controller timestamp at the start [s]; clients read less than 40 s as a fresh boot."""


class SimulatedArm:
    """An arm with drives and controller; the same arguments and commands give the same values.

    Args:
        robot: the arm.
        motion: built-in motion; starts at once and repeats if it ends where it begins.
        seed: selects the individual arm and its noise.
        setup: mounting and payload as configured.
        carried: payload that is really mounted; None for the configured one.
        truth: path of the true energies, written by `close`; None for no file.
        options: session, ambient temperature and controller.

    Attributes:
        session: what differs in this session.
        parameters: true constants in this session.
        outputs: RTDE field name -> value in the current cycle.
    """

    def __init__(
        self,
        robot: RobotDescription,
        *,
        motion: Motion,
        seed: int = 0,
        setup: Setup | None = None,
        carried: Payload | None = None,
        truth: str | Path | None = None,
        options: ArmOptions | None = None,
    ) -> None:
        options = options or ArmOptions()
        setup = setup or Setup()
        self.robot = robot
        self.motion = motion
        self.setup = setup
        self.rate = robot.rate
        self.controller_version = options.controller_version
        session = draw_session(seed, options.session, robot.dof)
        p = actual_parameters(robot, seed, session, options)
        self.session = session
        self.parameters = p
        self._cycle = 0
        self._dt = 1.0 / self.rate
        if carried is None:
            carried = setup.payload
        self._true_setup = Setup(setup.gravity, carried)
        self._payload_fields = payload_fields(setup.payload)
        self._joint_modes = {
            mode: np.full(robot.dof, number) for mode, number in JOINT_MODES.items()
        }
        q = motion.sample(np.zeros(1))[0][0].copy()
        self._plant = Plant(robot, p, self._true_setup, q)
        self._controller = JointController(robot, p, setup, options.controller)
        self._supervisor = Supervisor(self._planner(), motion, q)
        self._supply = PowerSupply(self._dt)
        ambient = options.ambient + session.ambient_offset
        warmth = session.warmth if options.warmth is None else options.warmth
        self._balance = EnergyBalance(p, self._dt, ambient, warmth)
        stream = [seed, 7, session.number] if session.number else [seed, 7]
        self._sensors = Sensors(p, np.random.default_rng(stream))
        self._plant.set_temperature(self._balance.temperature)
        load = self._plant.dynamics.gravity_torque(q[None])[0]
        if not self._controller.gains.of_link:
            # Rotors are ahead of the joints by the twist of the gears.
            self._controller.trim = gear_twist(load, p.stiffness, p.knees)
        self._set_targets(q, np.zeros(robot.dof), np.zeros(robot.dof))
        self.outputs = RtdeOutputs()
        self._torque_with_gravity = options.torque_field == "with_gravity"
        self._set_computed_fields()
        self._truth = None if truth is None else TruthLog(truth)
        self._measure()
        self._log_truth()

    @property
    def time(self) -> float:
        """Controller timestamp [s]."""
        return START_TIME + self._cycle * self._dt

    @property
    def busy(self) -> bool:
        """Whether a commanded move or stop is still running."""
        return self._supervisor.busy

    @property
    def robot_mode(self) -> RobotMode:
        """Power mode."""
        return self._supply.mode

    @property
    def safety_mode(self) -> SafetyMode:
        """Safety mode."""
        return self._supervisor.safety_mode

    @property
    def stop_reason(self) -> str | None:
        """Reason of the protective stop; None without one."""
        return self._supervisor.stop_reason

    @property
    def program_state(self) -> ProgramState:
        """State of the built-in motion."""
        return self._supervisor.program_state

    def command(self, command: cmd.Command) -> None:
        """Accept a command; it takes effect in the next cycle.

        Args:
            command: command that changes power, safety, payload or motion.

        Raises:
            MotionRefusedError: the arm cannot move, or a payload is impossible.
        """
        if isinstance(command, cmd.PowerCommand):
            self._supply.command(command)
            if command is cmd.PowerCommand.OFF:
                self._supervisor.halt()
        elif isinstance(command, cmd.SetPayload):
            payload = command.payload
            if not is_possible(payload):
                raise MotionRefusedError(
                    "mass, centre of mass or inertia of the payload is impossible"
                )
            self.setup = Setup(self.setup.gravity, payload)
            self._payload_fields = payload_fields(payload)
            self._controller.set_setup(self.setup)
            self._set_computed_fields()
            self._supervisor.planner = self._planner()
        else:
            moves = command is cmd.ProgramCommand.PLAY or isinstance(
                command, cmd.MoveJ | cmd.Follow | cmd.ServoJ | cmd.SpeedJ
            )
            if moves and self.robot_mode is not RobotMode.RUNNING:
                raise MotionRefusedError(
                    f"the arm is in mode {self.robot_mode.name}; power it on and release its brakes"
                )
            self._supervisor.command(command)

    def _set_computed_fields(self) -> None:
        """Set the fields that are computed with the configured payload when they are read."""
        outputs = self.outputs
        dynamics = ArmDynamics(self.robot, self.setup)
        tool = self._sensors.tool_fields(outputs, dynamics)
        gravity = self._torque_with_gravity
        outputs.lazy = tool | self._sensors.torque_field(
            outputs, dynamics, gravity=gravity
        )

    def carry(self, payload: Payload) -> None:
        """Mount another payload unknown to the controller.

        Args:
            payload: payload that the arm really has on its flange.
        """
        self._true_setup = Setup(self._true_setup.gravity, payload)
        self._plant.set_setup(self.robot, self._true_setup)

    def tilt(self, gravity: Array) -> None:
        """Mount the arm another way, unannounced.

        Args:
            gravity: gravity in the base frame [3], m/s^2.
        """
        known = np.asarray(gravity, dtype=float)
        self._true_setup = Setup(known, self._true_setup.payload)
        self._plant.set_setup(self.robot, self._true_setup)

    def change_friction(self, joint: int, factor: float) -> None:
        """Multiply the friction of a joint.

        Args:
            joint: index of the joint, from 0.
            factor: factor on the whole friction of the joint.
        """
        scale = np.ones(self.robot.dof)
        scale[joint] = factor
        self.parameters = self.parameters.with_friction_scaled(scale)
        self._plant.parameters = self.parameters
        self._plant.set_temperature(self._balance.temperature)

    def tick(self) -> None:
        """Advance by one controller cycle and update `outputs`."""
        self._cycle += 1
        self._supply.advance()
        running = self.robot_mode is RobotMode.RUNNING
        if running is self._plant.stopped:
            self._plant.stopped = not running
            self._hold_position()
        start = self._reference
        if running:
            q, qd, qdd = self._supervisor.step(self._dt)
            self._set_targets(q, qd, qdd)
            self._supervisor.check_torque(self._targets.moment)
        else:  # the trim may have changed
            self._set_reference()
        self._plant.advance(
            self._dt,
            start,
            self._reference,
            self._targets.current * self.parameters.current_to_torque,
            self._controller.gains,
            self._sensors.ripple,
        )
        if self._balance.integrate(self._plant.energy, self._supply):
            self._plant.set_temperature(self._balance.temperature)
        self._measure()
        if running:
            error = self._targets.q - np.asarray(self.outputs["actual_q"])
            self._controller.correct(self._dt, error)
            self._supervisor.check_following(error)
        if self._truth is not None and self._truth.due(self.time):
            self._log_truth()

    @property
    def wall(self) -> SimulatedWall:
        """The control box at the mains."""
        return self._balance.wall

    def energies(self) -> Energies:
        """True energies since the start."""
        return self._balance.energies(self.time)

    def stored_energy(self) -> float:
        """Kinetic, potential and elastic energy, and energy of the bus capacitance [J]."""
        return self._plant.stored_energy() + self._balance.bus.surplus

    def close(self) -> None:
        """Write the true energies if a log was requested."""
        self._log_truth()
        if self._truth is None:
            return
        configured = self.setup.payload
        carried = self._true_setup.payload
        self._truth.write(
            self.robot.joint_names,
            self.parameters,
            {
                "robot": self.robot.name,
                "simulated": True,
                "controller": self._controller.kind,
                "gravity": self.setup.gravity,
                "payload_mass": configured.mass,
                "payload_center_of_mass": configured.center_of_mass,
                "carried_mass": carried.mass,
                "carried_center_of_mass": carried.center_of_mass,
                "ambient": self._balance.ambient,
                "temperature": self._balance.temperature,
                "standby_power": self.parameters.standby_power,
                "driver_loss": self.parameters.driver_loss,
                "session": self.session,
                "wall": self.wall,
            },
        )

    def _planner(self) -> Planner:
        """A planner for the configured payload and the nominal inertias of the motors."""
        return Planner(
            self.robot, self.setup, reflected_inertia=self.parameters.reflected_inertia
        )

    def _set_targets(self, q: Array, qd: Array, qdd: Array) -> None:
        """Set the targets of the controller, and the reference of the servo.

        Args:
            q: positions [n], rad.
            qd: velocities [n], rad/s.
            qdd: accelerations [n], rad/s^2.
        """
        self._targets = self._controller.targets(q, qd, qdd)
        self._set_reference()

    def _set_reference(self) -> None:
        """Reference of the servo [2, n]: rotor position and speed."""
        rotor = self._targets.q + self._controller.trim
        self._reference = np.array([rotor, self._targets.qd])

    def _hold_position(self) -> None:
        """Command the measured position as brakes open or close; closed brakes need no current."""
        q = np.asarray(self.outputs["actual_q"])
        self._supervisor.rest_at(q)
        self._set_targets(q, np.zeros_like(q), np.zeros_like(q))
        if self.robot_mode is not RobotMode.RUNNING:
            self._targets = self._targets._replace(current=np.zeros_like(q))

    def _measure(self) -> None:
        """Update the outputs: sensors, and what the controller reports about itself."""
        state = self._plant.state
        targets = self._targets
        supply = self._supply
        supervisor = self._supervisor
        playing = self.program_state is ProgramState.PLAYING
        self.outputs.clear()
        self.outputs |= self._sensors.read(
            state[Q],
            state[QD],
            state[CURRENT],
            self._balance.temperature,
            self._balance.bus,
            self._balance.joint_power,
            powered=supply.powered,
        )
        self.outputs |= self._payload_fields
        self.outputs |= {
            "timestamp": self.time,
            "target_q": targets.q,
            "target_qd": targets.qd,
            "target_qdd": targets.qdd,
            "target_current": targets.current,
            "target_moment": targets.moment,
            "joint_control_output": targets.current,
            "actual_current_window": self.parameters.max_current,
            "joint_mode": self._joint_modes[supply.mode],
            "speed_scaling": supervisor.speed_scaling,
            "target_speed_fraction": supervisor.fraction,
            "robot_mode": float(supply.mode),
            "safety_mode": float(self.safety_mode),
            "runtime_state": float(self.program_state),
            "robot_status_bits": float(supply.powered | playing << 1),
            "safety_status_bits": 1.0 if self.safety_mode is SafetyMode.NORMAL else 4.0,
        }

    def _log_truth(self) -> None:
        """Append the true energies of this cycle to the log, if there is one."""
        if self._truth is not None:
            self._truth.append(self.energies(), self._balance.temperature)


def payload_fields(payload: Payload) -> dict[str, RtdeValue]:
    """RTDE fields of the payload that the controller assumes.

    Args:
        payload: payload that is configured in the controller.
    """
    tensor = payload.inertia
    of_axes = [tensor.diagonal(), tensor[0, 1:], tensor[1, 2:]]
    return {
        "payload": payload.mass,
        "payload_cog": payload.center_of_mass,
        "payload_inertia": np.concatenate(of_axes),
    }


def record_arm(
    arm: SimulatedArm, duration: float, fields: Iterable[str] = ENERGY_FIELDS
) -> Telemetry:
    """Advance an arm and record every cycle, as fast as it can be computed.

    Args:
        arm: arm that is advanced.
        duration: controller time to record [s].
        fields: names of RTDE fields; those that the arm or its version does not have are
            omitted.
    """
    version = arm.controller_version
    names = []
    for name in fields:
        known = name != "timestamp" and name in arm.outputs
        if known and FIELDS[name].available(version):
            names.append(name)
    samples = round(duration * arm.rate)
    time = np.empty(samples)
    columns = {name: np.empty((samples, *np.shape(arm.outputs[name]))) for name in names}
    for k in range(samples):
        arm.tick()
        time[k] = arm.time
        for name in names:
            columns[name][k] = arm.outputs[name]
    payload = arm.setup.payload
    session = arm.session.number
    gravity = arm.setup.gravity.tolist()
    center = payload.center_of_mass.tolist()
    source = f"simulated {arm.robot.name}, seed {arm.parameters.seed}"
    if session:
        source += f", session {session}"
    info = RecordingInfo(
        source=source,
        robot=arm.robot.name,
        controller_version=".".join(str(part) for part in version),
        rate=arm.rate,
        gravity=(gravity[0], gravity[1], gravity[2]),
        payload_mass=payload.mass,
        payload_center_of_mass=(center[0], center[1], center[2]),
        simulated=True,
    )
    return Telemetry(time, columns, info)
