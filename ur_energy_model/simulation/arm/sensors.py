"""What the arm's sensors make of its state: noise and resolution as recorded on real arms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ur_energy_model.simulation.arm.bus import Bus
from ur_energy_model.simulation.arm.parameters import ArmParameters, constants
from ur_energy_model.simulation.arm.rtde_outputs import RtdeValue
from ur_energy_model.typing import Array

_DRAWS = 256


class Noise(NamedTuple):
    """Standard normal numbers of one cycle.

    Attributes:
        speed, current, voltage, drive: of the joints [n]; `drive` moves the drives themselves.
        box: of bus voltage, bus current, main voltage and execution time [4].
        wrench: of the tool's force and torque [6].
        shake: of the tool's accelerometer [3].
    """

    speed: Array
    current: Array
    voltage: Array
    drive: Array
    box: Array
    wrench: Array
    shake: Array


@dataclass(frozen=True)
class State:
    """What there is to measure.

    Attributes:
        q, qd: of the links [n], rad, rad/s.
        current: of the motors [n], A.
        temperature: of the joints [n], degC.
        bus: voltage and current, energy counters.
        powered: whether the arm has power.
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
        noise: of the present cycle.
    """

    def __init__(self, parameters: ArmParameters, random: np.random.Generator) -> None:
        table = constants()["sensors"]
        self._parameters = parameters
        self._random = random
        self._table = table
        self._count = 2 * np.pi / table["encoder_counts"]
        self._pool = np.empty((0, 0))
        self._used = 0
        self._n = n = len(parameters.gear_ratio)
        bus = constants()["bus"]
        self._cables = float(bus["joint_cable_resistance"]) * (1.0 + np.arange(n)) / n
        self._open = float(bus["open_voltage"])
        self._force = np.array(table["force_noise"])
        self.noise = self.draw()

    def read(self, state: State) -> dict[str, RtdeValue]:
        """Measured RTDE fields of a new cycle, by name."""
        self.noise = noise = self.draw()
        bus, n = state.bus, self._n
        current = self.current(state.current, noise.current)
        if state.powered:
            main = self.main_voltage(bus.voltage, noise.box[2])
            voltage, supply = self.bus(bus.voltage, bus.current, noise.box)
            drives = self.joint_voltage(bus.voltage - self._cables * bus.current, noise.voltage)
        else:
            main = self.main_voltage(self._open, noise.box[2])
            voltage = supply = 0.0
            drives = np.zeros(n)
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
            "actual_execution_time": self.execution_time(noise.box[3]),
        }

    def wrench(self) -> Array:
        """Force and torque at a free tool [6], N, N m."""
        return np.asarray(self._force * self.noise.wrench)

    def accelerometer(self, acceleration: Array) -> Array:
        """Readings of the tool's accelerometer [3], m/s^2."""
        return np.asarray(acceleration + self._table["accelerometer_noise"] * self.noise.shake)

    def draw(self) -> Noise:
        """Standard normal numbers for one cycle."""
        n = self._n
        if self._used >= len(self._pool):
            self._pool = self._random.standard_normal((_DRAWS, 4 * n + 13))
            self._used = 0
        row = self._pool[self._used]
        self._used += 1
        rest = row[4 * n :]
        return Noise(
            row[:n],
            row[n : 2 * n],
            row[2 * n : 3 * n],
            row[3 * n : 4 * n],
            rest[:4],
            rest[4:10],
            rest[10:13],
        )

    def position(self, q: Array) -> Array:
        """Encoder readings [n], rad."""
        return np.asarray(np.rint(q / self._count) * self._count)

    def speed(self, qd: Array, noise: Array) -> Array:
        """Speeds [n], rad/s; exactly zero at rest, as on real arms."""
        resting = np.abs(qd) < 2e-4
        return np.where(resting, 0.0, qd + self._table["speed_noise"] * noise)

    def current(self, current: Array, noise: Array) -> Array:
        """Motor currents [n], A."""
        return np.asarray(current + self._parameters.current_noise_rest * noise)

    def bus(self, voltage: float, current: float, noise: Array) -> tuple[float, float]:
        """Bus voltage [V] and current [A]; the current's noise makes that of the power."""
        table = self._table
        seen = _round(voltage + table["voltage_noise"] * float(noise[0]), table["voltage_step"])
        spread = self._parameters.power_noise / max(voltage, 1.0)
        return seen, _round(current + spread * float(noise[1]), table["current_step"])

    def main_voltage(self, voltage: float, noise: float) -> float:
        """Voltage at the safety control board [V]."""
        table = self._table
        return _round(voltage + table["main_voltage_noise"] * float(noise), table["voltage_step"])

    def joint_voltage(self, voltage: Array, noise: Array) -> Array:
        """Voltages at the drives [n], V."""
        table = self._table
        step = table["joint_voltage_step"]
        return np.asarray(np.rint((voltage + table["joint_voltage_noise"] * noise) / step) * step)

    def temperature(self, temperature: Array) -> Array:
        """Joint temperatures [n], degC."""
        step = self._table["temperature_step"]
        return np.asarray(np.rint(temperature / step) * step)

    def execution_time(self, noise: float) -> float:
        """Execution time of the real-time thread [ms]."""
        mean, deviation = self._table["execution_time"]
        return float(max(0.1, mean + deviation * float(noise)))


def _round(value: float, step: float) -> float:
    return float(round(value / step) * step)
