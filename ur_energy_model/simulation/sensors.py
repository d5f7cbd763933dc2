"""Sensors of the arm: noise and resolution as recorded on real arms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.simulation.parameters import ArmParameters, constants
from ur_energy_model.simulation.supply import Bus
from ur_energy_model.typing import Array

# RTDE fields of the simulated arm, in part computed on demand.

RtdeValue = float | Array


class RtdeOutputs(Mapping[str, RtdeValue]):
    """RTDE field name -> value in the current cycle.

    Expensive values that few clients need are computed on first access in a cycle.
    """

    def __init__(self) -> None:
        self._lazy: dict[str, Callable[[], RtdeValue]] = {}
        self._values: dict[str, RtdeValue] = {}

    def compute_on_demand(self, functions: Mapping[str, Callable[[], RtdeValue]]) -> None:
        """Set the fields that are computed on first access in a cycle, by name."""
        self._lazy = dict(functions)

    def update(self, values: dict[str, RtdeValue]) -> None:
        """Start a new cycle with these values."""
        self._values = values

    def __getitem__(self, name: str) -> RtdeValue:
        try:
            return self._values[name]
        except KeyError:
            value = self._values[name] = self._lazy[name]()
            return value

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self._lazy

    def __iter__(self) -> Iterator[str]:
        return iter({**self._values, **self._lazy})

    def __len__(self) -> int:
        return len({**self._values, **self._lazy})


_DRAWS = 256


class Noise(NamedTuple):
    """Standard normal numbers of one cycle.

    Attributes:
        speed, current, joint_voltage: for the readings of the joints [n].
        drive: for the torque ripple of the drives [n].
        bus_voltage, bus_current, main_voltage, execution_time: for the control box.
        wrench: for force and torque at the tool [6].
        accelerometer: for the accelerometer of the tool [3].
    """

    speed: Array
    current: Array
    joint_voltage: Array
    drive: Array
    bus_voltage: float
    bus_current: float
    main_voltage: float
    execution_time: float
    wrench: Array
    accelerometer: Array


@dataclass(frozen=True)
class SensedState:
    """True values of the measured quantities.

    Attributes:
        q, qd: of the links [n], rad, rad/s.
        current: of the motors [n], A.
        temperature: of the joints [n], degC.
        bus: voltage, current and energy counters.
        powered: whether the arm is switched on.
    """

    q: Array
    qd: Array
    current: Array
    temperature: Array
    bus: Bus
    powered: bool


class Sensors:
    """Noise and quantisation of all measured channels.

    Args:
        parameters: of the arm, n joints.
        random: source of the noise.

    Attributes:
        noise: of the current cycle.
    """

    def __init__(self, parameters: ArmParameters, random: np.random.Generator) -> None:
        table = constants()["sensors"]
        self._parameters = parameters
        self._random = random
        self._table = table
        self._count = 2 * np.pi / table["encoder_counts"]
        self._pool = np.empty((0, 0))
        self._used = 0
        self._joints = n = len(parameters.gear_ratio)
        bus = constants()["bus"]
        self._cables = float(bus["joint_cable_resistance"]) * (1.0 + np.arange(n)) / n
        self._open = float(bus["open_voltage"])
        self._force = np.array(table["force_noise"])
        self.noise = self.draw()

    def read(self, state: SensedState) -> dict[str, RtdeValue]:
        """Draw new noise; returns the measured RTDE fields by name."""
        self.noise = noise = self.draw()
        bus = state.bus
        current = self.current(state.current, noise.current)
        if state.powered:
            main = self.main_voltage(bus.voltage, noise.main_voltage)
            voltage = self.bus_voltage(bus.voltage, noise.bus_voltage)
            supply = self.bus_current(bus.current, bus.voltage, noise.bus_current)
            at_joints = bus.voltage - self._cables * bus.current
            drives = self.joint_voltage(at_joints, noise.joint_voltage)
        else:
            main = self.main_voltage(self._open, noise.main_voltage)
            voltage = supply = 0.0
            drives = np.zeros(self._joints)
        return {
            "actual_q": self.position(state.q),
            "actual_qd": self.speed(state.qd, noise.speed),
            "actual_current": current,
            "actual_current_as_torque": current * self._parameters.current_to_torque,
            "joint_temperatures": self.temperature(state.temperature),
            "actual_joint_voltage": drives,
            "actual_main_voltage": main,
            "actual_robot_voltage": voltage,
            "actual_robot_current": supply,
            "actual_robot_energy_consumed": bus.supplied,
            "actual_robot_braking_energy_dissipated": bus.braked,
            "actual_execution_time": self.execution_time(noise.execution_time),
        }

    def wrench(self) -> Array:
        """Force and torque at a free tool [6], N, N m."""
        return np.asarray(self._force * self.noise.wrench)

    def accelerometer(self, acceleration: Array) -> Array:
        """Readings of the tool's accelerometer [3], m/s^2."""
        return np.asarray(
            acceleration + self._table["accelerometer_noise"] * self.noise.accelerometer
        )

    def draw(self) -> Noise:
        """Standard normal numbers for one cycle."""
        n = self._joints
        if self._used >= len(self._pool):
            self._pool = self._random.standard_normal((_DRAWS, 4 * n + 4 + 6 + 3))
            self._used = 0
        row = self._pool[self._used]
        self._used += 1
        joints, box, tool = row[: 4 * n].reshape(4, n), row[4 * n : -9].tolist(), row[-9:]
        return Noise._make((*joints, *box, tool[:6], tool[6:]))

    def position(self, q: Array) -> Array:
        """Encoder readings [n], rad."""
        return np.asarray(np.rint(q / self._count) * self._count)

    def speed(self, qd: Array, noise: Array) -> Array:
        """Speed readings [n], rad/s; exactly zero at rest, as on real arms."""
        resting = np.abs(qd) < 2e-4
        return np.where(resting, 0.0, qd + self._table["speed_noise"] * noise)

    def current(self, current: Array, noise: Array) -> Array:
        """Motor current readings [n], A."""
        return np.asarray(current + self._parameters.current_noise_rest * noise)

    def bus_voltage(self, voltage: float, noise: float) -> float:
        """Reading of the bus voltage [V]."""
        table = self._table
        return _round(voltage + table["voltage_noise"] * noise, table["voltage_step"])

    def bus_current(self, current: float, voltage: float, noise: float) -> float:
        """Reading of the bus current [A]; its noise gives the specified noise of the power."""
        deviation = self._parameters.power_noise / max(voltage, 1.0)
        return _round(current + deviation * noise, self._table["current_step"])

    def main_voltage(self, voltage: float, noise: float) -> float:
        """Reading of the voltage at the safety control board [V]."""
        table = self._table
        return _round(voltage + table["main_voltage_noise"] * noise, table["voltage_step"])

    def joint_voltage(self, voltage: Array, noise: Array) -> Array:
        """Voltage readings at the drives [n], V."""
        table = self._table
        step = table["joint_voltage_step"]
        return np.asarray(np.rint((voltage + table["joint_voltage_noise"] * noise) / step) * step)

    def temperature(self, temperature: Array) -> Array:
        """Joint temperature readings [n], degC."""
        step = self._table["temperature_step"]
        return np.asarray(np.rint(temperature / step) * step)

    def execution_time(self, noise: float) -> float:
        """Execution time of the real-time thread [ms]."""
        mean, deviation = self._table["execution_time"]
        return float(max(0.1, mean + deviation * noise))


def _round(value: float, step: float) -> float:
    return float(round(value / step) * step)


# Tool quantities of the simulated arm: poses, speeds, forces, momentum.


def pose_vector(pose: Array) -> Array:
    """Position and rotation vector [6], m and rad, of a homogeneous pose [4, 4]."""
    return np.concatenate([pose[:3, 3], pin.log3(pose[:3, :3])])


class Tool:
    """Tool quantities of the current cycle, computed on demand.

    Args:
        dynamics: of the arm with the configured payload; may be replaced.
    """

    def __init__(self, dynamics: ArmDynamics) -> None:
        self.dynamics = dynamics

    def values(self, outputs: RtdeOutputs, sensors: Sensors) -> dict[str, Callable[[], RtdeValue]]:
        """Functions by RTDE name; each computes a field from the joint fields of `outputs`."""

        def joint(name: str) -> Array:
            return np.asarray(outputs[name])

        return {
            "actual_TCP_pose": lambda: self.pose(joint("actual_q")),
            "target_TCP_pose": lambda: self.pose(joint("target_q")),
            "actual_TCP_speed": lambda: self.speed(joint("actual_q"), joint("actual_qd")),
            "target_TCP_speed": lambda: self.speed(joint("target_q"), joint("target_qd")),
            "actual_TCP_force": sensors.wrench,
            "ft_raw_wrench": sensors.wrench,
            "actual_tool_accelerometer": lambda: sensors.accelerometer(
                self.acceleration(joint("actual_q"), joint("actual_qd"), joint("target_qdd"))
            ),
            "actual_momentum": lambda: self.momentum(joint("actual_q"), joint("actual_qd")),
        }

    def pose(self, q: Array) -> Array:
        """Flange pose as in RTDE [6] at joint positions [n]."""
        return pose_vector(self.dynamics.flange_pose(q[None])[0])

    def speed(self, q: Array, qd: Array) -> Array:
        """Linear and angular velocity of the flange in base axes [6], m/s and rad/s."""
        linear = self.dynamics.flange_speed(q[None], qd[None])[0]
        data, last = self.dynamics.data, self.dynamics.dof
        return np.concatenate([linear, data.oMi[last].rotation @ data.v[last].angular])

    def momentum(self, q: Array, qd: Array) -> float:
        """Norm of the linear momentum of links and payload [kg m/s]."""
        total = pin.computeCentroidalMomentum(self.dynamics.model, self.dynamics.data, q, qd)
        return float(np.linalg.norm(total.linear))

    def acceleration(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Proper acceleration of the last joint's origin in its axes [3], m/s^2.

        At rest with the tool down it is about -9.8 on the z axis, as on real arms.
        """
        model, data, last = self.dynamics.model, self.dynamics.data, self.dynamics.dof
        pin.forwardKinematics(model, data, q, qd, qdd)
        moving = pin.getClassicalAcceleration(model, data, last, pin.ReferenceFrame.LOCAL).linear
        gravity = np.asarray(self.dynamics.setup.gravity, float)
        return np.asarray(moving - data.oMi[last].rotation.T @ gravity)
