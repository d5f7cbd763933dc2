# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sensors of the arm: RTDE values with the noise and resolution of recorded arms."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.simulation.arm_constants import constants
from ur_energy_model.simulation.parameters import ArmParameters
from ur_energy_model.simulation.supply import Bus
from ur_energy_model.trajectory.kinematics import pose_vector
from ur_energy_model.typing import Array

RtdeValue = float | Array
Lazy = dict[str, Callable[[], RtdeValue]]


class RtdeOutputs(dict[str, RtdeValue]):
    """Values of RTDE fields in the current cycle, by name.

    Attributes:
        lazy: functions of values that few clients need, by name; each is called on the
            first access in a cycle.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lazy: Lazy = {}

    def __missing__(self, name: str) -> RtdeValue:
        value = self.lazy[name]()
        self[name] = value
        return value

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.lazy


_DRAWS = 256  # cycles whose noise is drawn at once
# Random numbers of a cycle, in this order.
_OF_JOINT = 4  # for each joint: speed, current, voltage, torque ripple
_OF_BOX = 4  # bus voltage, bus current, main voltage, execution time
_OF_FORCE = 6  # force and torque at the tool
_OF_ACCELEROMETER = 3
_RESTING = 2e-4  # speed below which arms report exactly zero [rad/s]


class SimulatedCable(NamedTuple):
    """The cable that supplies n joints in a chain, and the offsets of their voltage sensors.

    Attributes:
        resistance: resistance of the cable segment that ends at each joint [n], ohm.
        offset: offset of the voltage sensor of each joint [n], V.
    """

    resistance: Array
    offset: Array

    def voltages(self, bus: float, power: Array) -> Array:
        """Voltages that the joints report [n], V.

        Args:
            bus: voltage of the bus [V].
            power: power of each joint [n], W.
        """
        voltages: Array | float = bus
        # A segment carries the currents of its joint and of all joints behind it. Voltages
        # and so currents change by about one percent only: two rounds suffice.
        for _ in range(2):
            currents = power / voltages
            carried = currents[::-1].cumsum()[::-1]
            voltages = bus - (self.resistance * carried).cumsum()
        return np.asarray(voltages - self.offset)


def draw_cable(seed: int, joints: int) -> SimulatedCable:
    """Cable and voltage sensors of an arm, from a random stream of their own.

    Args:
        seed: number of the arm among the arms of its type.
        joints: number of joints n.
    """
    table = constants()["cable"]
    # The second number makes this stream another one than other streams of the arm.
    random = np.random.default_rng([seed, 20261130])
    resistances = np.array(table["resistance"])
    # Joints beyond the table have the last resistance.
    typical = resistances[np.minimum(np.arange(joints), len(resistances) - 1)]
    factors = np.exp(table["spread"] * random.standard_normal(joints))
    offsets = table["voltage_offset"] * random.standard_normal(joints)
    return SimulatedCable(typical * factors, offsets)


class Sensors:
    """Noise and quantisation of all measured channels.

    Args:
        parameters: true constants of the arm.
        random: random generator of the noise.

    Attributes:
        ripple: standard normal numbers of the cycle for the torque ripple of the drives
            [n].
    """

    def __init__(self, parameters: ArmParameters, random: np.random.Generator) -> None:
        self._parameters = parameters
        self._random = random
        self._table = constants()["sensors"]
        bus = constants()["bus"]
        self._joints = len(parameters.gear_ratio)
        self._encoder_step = 2 * np.pi / self._table["encoder_counts"]
        self._cable = draw_cable(parameters.seed, self._joints)
        self._open_voltage = float(bus["open_voltage"])
        self._force_noise = np.array(self._table["force_noise"])
        self._pool = np.empty((0, 0))  # random numbers of some cycles, a row each
        self._used = 0  # rows of the pool that were used
        self._draw()  # the ripple of the first cycle, before the first reading

    def _draw(self) -> tuple[Array, list[float]]:
        """Draw the standard normal numbers of one cycle.

        The numbers of the tool and the torque ripple are kept in attributes.

        Returns:
            The numbers of the joints [_OF_JOINT, n], and of the control box.
        """
        box = _OF_JOINT * self._joints  # first column of the numbers of the box
        force = box + _OF_BOX
        accelerometer = force + _OF_FORCE
        width = accelerometer + _OF_ACCELEROMETER
        if self._used >= len(self._pool):
            self._pool = self._random.standard_normal((_DRAWS, width))
            self._used = 0
        row = self._pool[self._used]
        self._used += 1
        joints = row[:box].reshape(_OF_JOINT, self._joints)
        self._of_force = row[force:accelerometer]
        self._of_accelerometer = row[accelerometer:]
        self.ripple = joints[-1]
        return joints, row[box:force].tolist()

    def read(
        self,
        q: Array,
        qd: Array,
        current: Array,
        temperature: Array,
        bus: Bus,
        joint_power: Array,
        *,
        powered: bool,
    ) -> dict[str, RtdeValue]:
        """The measured RTDE fields by name, with new noise.

        Args:
            q: positions of the links [n], rad.
            qd: speeds of the links [n], rad/s.
            current: currents of the motors [n], A.
            temperature: temperatures of the joints [n], degC.
            bus: state of the bus.
            joint_power: power of each joint with its drive [n], W.
            powered: whether the arm is switched on.
        """
        table = self._table
        of_joints, of_box = self._draw()
        of_speed, of_current, of_drives, _ = of_joints
        of_voltage, of_supply, of_main, of_time = of_box
        measured = current + self._parameters.current_noise_rest * of_current
        # Voltages of the mains supply, bus and joints [V], and current of the bus [A].
        if powered:
            main = bus.voltage
            noisy = bus.voltage + table["voltage_noise"] * of_voltage
            voltage = _round(noisy, table["voltage_step"])
            # The noise of the current gives the specified noise of the power.
            deviation = self._parameters.power_noise / max(bus.voltage, 1.0)
            supply = _round(bus.current + deviation * of_supply, table["current_step"])
            at_joints = self._cable.voltages(bus.voltage, joint_power)
            at_joints = at_joints + table["joint_voltage_noise"] * of_drives
            drives = _rounded(at_joints, table["joint_voltage_step"])
        else:
            main = self._open_voltage
            voltage = 0.0
            supply = 0.0
            drives = np.zeros(self._joints)
        main += table["main_voltage_noise"] * of_main
        speed = qd + table["speed_noise"] * of_speed
        mean, spread = table["execution_time"]
        return {
            "actual_q": _rounded(q, self._encoder_step),
            "actual_qd": np.where(np.abs(qd) < _RESTING, 0.0, speed),
            "actual_current": measured,
            "joint_temperatures": _rounded(temperature, table["temperature_step"]),
            "actual_joint_voltage": drives,
            "actual_main_voltage": _round(main, table["voltage_step"]),
            "actual_robot_voltage": voltage,
            "actual_robot_current": supply,
            "actual_robot_energy_consumed": bus.supplied,
            "actual_robot_braking_energy_dissipated": bus.braked,
            "actual_execution_time": float(max(0.1, mean + spread * of_time)),
        }

    def torque_field(
        self, outputs: RtdeOutputs, dynamics: ArmDynamics, *, gravity: bool
    ) -> Lazy:
        """Function of actual_current_as_torque, computed from the joint fields of `outputs`.

        Args:
            outputs: RTDE outputs of the arm in the present cycle.
            dynamics: dynamics of the arm with the configured payload.
            gravity: whether the torques contain gravity.
        """

        def torque() -> Array:
            """Measured currents as torques of the joints [n], N m."""
            current = np.asarray(outputs["actual_current"])
            found = current * self._parameters.stated_current_to_torque
            if not gravity:
                q = np.asarray(outputs["actual_q"])
                found = found - dynamics.gravity_torque(q[None])[0]
            return np.asarray(found)

        return {"actual_current_as_torque": torque}

    def tool_fields(self, outputs: RtdeOutputs, dynamics: ArmDynamics) -> Lazy:
        """Functions of tool fields by RTDE name, computed from the joint fields of `outputs`.

        Args:
            outputs: RTDE outputs of the arm in the present cycle.
            dynamics: dynamics of the arm with the configured payload.
        """
        model = dynamics.model
        data = dynamics.data
        last = dynamics.dof

        def joint(*names: str) -> list[Array]:
            """Values of joint fields in the present cycle, each [n]."""
            return [np.asarray(outputs[name]) for name in names]

        def pose(q: Array) -> Array:
            """Position and rotation vector of the flange in the base frame [6], m and rad."""
            return pose_vector(dynamics.flange_pose(q[None])[0])

        def speed(q: Array, qd: Array) -> Array:
            """Linear and angular velocity of the flange in base axes [6], m/s and rad/s."""
            linear = dynamics.flange_speed(q[None], qd[None])[0]
            return np.concatenate(
                [linear, data.oMi[last].rotation @ data.v[last].angular]
            )

        def wrench() -> Array:
            """Force and torque at a free tool [6], N, N m."""
            return np.asarray(self._force_noise * self._of_force)

        def accelerometer(q: Array, qd: Array, qdd: Array) -> Array:
            """Proper acceleration of the last joint's origin in its axes [3], m/s^2.

            At rest with the tool down it is about -9.8 on the z axis, as on real arms.
            """
            pin.forwardKinematics(model, data, q, qd, qdd)
            axes = pin.ReferenceFrame.LOCAL
            moving = pin.getClassicalAcceleration(model, data, last, axes).linear
            gravity = np.asarray(dynamics.setup.gravity, float)
            true = moving - data.oMi[last].rotation.T @ gravity
            noise = self._table["accelerometer_noise"] * self._of_accelerometer
            return np.asarray(true + noise)

        def momentum(q: Array, qd: Array) -> float:
            """Norm of the linear momentum of links and payload [kg m/s]."""
            total = pin.computeCentroidalMomentum(model, data, q, qd)
            return float(np.linalg.norm(total.linear))

        return {
            "actual_TCP_pose": lambda: pose(*joint("actual_q")),
            "target_TCP_pose": lambda: pose(*joint("target_q")),
            "actual_TCP_speed": lambda: speed(*joint("actual_q", "actual_qd")),
            "target_TCP_speed": lambda: speed(*joint("target_q", "target_qd")),
            "actual_TCP_force": wrench,
            "ft_raw_wrench": wrench,
            "actual_tool_accelerometer": lambda: accelerometer(
                *joint("actual_q", "actual_qd", "target_qdd")
            ),
            "actual_momentum": lambda: momentum(*joint("actual_q", "actual_qd")),
        }


def _rounded(values: Array, step: float) -> Array:
    """Values rounded to a multiple of a step."""
    return np.asarray(np.rint(values / step) * step)


def _round(value: float, step: float) -> float:
    """A value rounded to a multiple of a step."""
    return float(round(value / step) * step)
