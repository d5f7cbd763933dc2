# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A UR5e that obeys the model exactly, so that identification has a truth to be held against."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.signal import lfilter

from test.identification.conftest import smooth_motion
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.friction import LAWS, FrictionLaw
from ur_energy_model.model.friction_terms import OperatingPoint
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Setup
from ur_energy_model.telemetry.bag.writer import BagWriter
from ur_energy_model.telemetry.gaps import find_gaps
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

TORQUE_CONSTANT = np.array([0.105, 0.103, 0.107, 0.080, 0.078, 0.081])


@dataclass(frozen=True)
class ExactArm:
    """Torque constants, friction and bus of the made-up arm."""

    robot: RobotDescription = field(default_factory=lambda: load_robot("ur5e"))
    law: FrictionLaw = LAWS["power_flow"]
    # By name, motor side, scaled by joint size
    parameters: dict[str, float] = field(
        default_factory=lambda: {
            "viscous": 4e-4,
            "coulomb_direct": 0.06,
            "coulomb_reverse": 0.045,
        }
    )
    torque_constant: np.ndarray = field(default_factory=lambda: TORQUE_CONSTANT.copy())
    resistance_factor: float = 0.9
    driver: float = 0.25
    drag: float = 0.0  # N m
    standby: float = 26.0
    current_noise: float = 0.02  # one standard deviation [A]
    correlation: float = 0.0  # of the noise of one sample with the next
    power_noise: float = 1.5  # one standard deviation [W]
    current_delay: float = 0.0  # of the currents recorded behind motion and power [s]
    setup: Setup = field(default_factory=Setup)
    # torque constants of the controller over the true ones
    calibration: np.ndarray | float = 1.0

    @property
    def size(self) -> np.ndarray:
        """Friction of each joint as a share of the large joints'."""
        return self.robot.max_torque / 150.0

    def friction(
        self, qd: np.ndarray, load: np.ndarray, temperature: float = 30.0
    ) -> np.ndarray:
        """Motor-side friction [samples, n], N m."""
        point = OperatingPoint(
            qd, load, self.robot.gear_ratio, np.full_like(qd, temperature)
        )
        terms = self.law.regressor(point, self.law.default_shape)
        values = np.array(
            [self.parameters.get(name, 0.0) for name in self.law.parameters]
        )
        return terms @ values * self.size

    def record(
        self,
        seconds: float = 40.0,
        *,
        rate: float = 100.0,
        seed: int = 0,
        still: tuple[int, ...] = (),
        temperature: float = 30.0,
        source: str = "exact",
    ) -> Telemetry:
        """A recording with every column the pipeline can use."""
        robot = self.robot
        random = np.random.default_rng(seed)
        time = 60.0 + np.arange(round(seconds * rate)) / rate
        q, qd, qdd = smooth_motion(robot, time, seed, still)
        dynamics = ArmDynamics(robot, self.setup)
        load = dynamics.inverse_dynamics(q, qd, qdd) + robot.reflected_inertia * qdd
        earlier = smooth_motion(robot, time - self.current_delay, seed, still)
        working = (
            dynamics.inverse_dynamics(*earlier) + robot.reflected_inertia * earlier[2]
        )
        torque = working / robot.gear_ratio + self.friction(
            earlier[1], working, temperature
        )
        true_current = torque / self.torque_constant
        white = random.standard_normal(q.shape)
        share = np.sqrt(1 - self.correlation**2)
        noise = (
            lfilter([share], [1, -self.correlation], white, axis=0) * self.current_noise
        )
        power = self.power(earlier[1], true_current)
        power += self.power_noise * random.standard_normal(len(time))
        # The controller compensates friction as a straight line of the speed.
        compensated = self.size * (0.05 * np.sign(qd) + 4e-4 * robot.gear_ratio * qd)
        stated = self.torque_constant * self.calibration
        columns = {
            "target_q": q,
            "target_qd": qd,
            "target_qdd": qdd,
            "target_moment": load,
            "target_current": (load / robot.gear_ratio + compensated) / stated,
            "actual_q": q,
            "actual_qd": qd,
            "actual_current": true_current + noise * self.size[None] ** 0.7,
            "joint_temperatures": np.full(q.shape, temperature),
            "actual_robot_voltage": 47.8 + 0.01 * random.standard_normal(len(time)),
        }
        columns["actual_robot_current"] = power / columns["actual_robot_voltage"]
        info = RecordingInfo(source=source, robot=robot.name, rate=rate, simulated=True)
        return Telemetry(time, columns, info, find_gaps(time, 1 / rate))

    def power(self, qd: np.ndarray, current: np.ndarray) -> np.ndarray:
        """Power at the supply, which takes nothing back [samples], W."""
        return np.maximum(self.demand(qd, current), 0.0)

    def demand(self, qd: np.ndarray, current: np.ndarray) -> np.ndarray:
        """Power that the whole arm demands, negative where it gives back [samples], W."""
        robot = self.robot
        copper = self.resistance_factor * robot.winding_resistance * current**2
        shaft = self.torque_constant * robot.gear_ratio * qd * current
        driver = self.driver * np.abs(current)
        drag = self.drag * np.abs(self.robot.gear_ratio * qd)
        return self.standby + (copper + shaft + driver + drag).sum(axis=1)

    def bag(self, folder: Path, name: str = "bag", **options: object) -> Path:
        """A recording written to a bag."""
        return write_bag(folder / name, self.record(**options))  # type: ignore[arg-type]


def write_bag(path: Path, telemetry: Telemetry) -> Path:
    """Telemetry as a bag."""
    info = telemetry.info
    names = load_robot(info.robot or "ur5e").joint_names
    with BagWriter(path, info, tuple(telemetry.columns), joint_names=names) as writer:
        writer.write(telemetry)
    return path
