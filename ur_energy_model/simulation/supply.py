# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energy of the simulated arm: supply, bus, heat, and the true energies."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.codec import plain
from ur_energy_model.errors import InputError
from ur_energy_model.files import new_file, write_text
from ur_energy_model.simulation.arm_commands import PowerCommand, RobotMode
from ur_energy_model.simulation.arm_constants import constants
from ur_energy_model.simulation.parameters import ArmParameters
from ur_energy_model.simulation.plant import ABS_CURRENT, COPPER, FRICTION, GEAR, SHAFT
from ur_energy_model.simulation.wall import draw_wall
from ur_energy_model.typing import Array

# The 48 V bus: supply with source resistance, capacitance, braking resistor, energy
# counters. The supply cannot absorb power. Regenerated power first feeds standby and
# other joints, then charges the bus capacitance; above a threshold the braking resistor
# dissipates it. Power at the supply is therefore never negative (Heredia et al.).

SUBSTEP = 5e-4  # longest time step of the bus voltage while the supply is idle [s]


class Bus:
    """State of the bus.

    Attributes:
        voltage: voltage of the bus [V].
        current: current from the supply, mean over the last step [A].
        supplied: energy from the supply [J].
        braked: energy into the braking resistor [J].
        surplus: energy in the bus capacitance above that at open-circuit voltage [J].
    """

    def __init__(self) -> None:
        table = constants()["bus"]
        self._open = float(table["open_voltage"])
        self._source = float(table["source_resistance"])
        self._capacitance = float(table["capacitance"])
        self._brake_voltage = float(table["brake_voltage"])
        self._brake_resistance = float(table["brake_resistance"])
        self.voltage = self._open
        self.current = 0.0
        self.supplied = 0.0
        self.braked = 0.0
        self.surplus = 0.0

    def advance(self, dt: float, power: float) -> None:
        """Deliver the power of the arm for a step.

        Args:
            dt: time of the step [s].
            power: power of the arm [W]; negative power is regenerated.
        """
        missing = 0.0
        if power >= 0.0 and self.surplus == 0.0:
            missing = dt * power
        else:
            steps = max(1, math.ceil(dt / SUBSTEP))
            for _ in range(steps):
                missing += self._without_supply(dt / steps, power)
        self.supplied += missing
        self.current = self._supply_current(missing / dt)
        if self.surplus == 0.0:
            self.voltage = self._open - self._source * self.current

    def switch_off(self) -> None:
        """Disconnect the supply: the braking resistor dissipates the surplus."""
        self.braked += self.surplus
        self.surplus = 0.0
        self.voltage = 0.0
        self.current = 0.0

    def _without_supply(self, h: float, power: float) -> float:
        """One step on the capacitance; returns the energy [J] that the supply must add."""
        self.surplus -= h * power
        if self.voltage > self._brake_voltage:
            of_resistor = h * self.voltage**2 / self._brake_resistance
            dissipated = min(of_resistor, max(self.surplus, 0.0))
            self.braked += dissipated
            self.surplus -= dissipated
        missing = max(0.0, -self.surplus)
        self.surplus = max(0.0, self.surplus)
        self.voltage = math.sqrt(self._open**2 + 2.0 * self.surplus / self._capacitance)
        return missing

    def _supply_current(self, power: float) -> float:
        """Current [A] at which the supply delivers a power [W]; at most that at half voltage."""
        root = self._open**2 - 4.0 * self._source * power
        return (self._open - math.sqrt(max(root, 0.0))) / (2.0 * self._source)


POWER_ON_TIME = 1.0
"""Time from power off to idle [s]; assumed, real arms take some seconds."""
BRAKE_TIME = 0.5  # time from idle to running [s]; likewise assumed


class PowerSupply:
    """Sequence of power modes, advanced cycle by cycle; the arm starts in running mode.

    Args:
        dt: length of a cycle [s].

    Attributes:
        mode: current mode.
    """

    def __init__(self, dt: float) -> None:
        self.mode = RobotMode.RUNNING
        self._target = RobotMode.RUNNING
        self._brake_power = float(constants()["bus"]["brake_release_power"])
        self._dt = dt
        self._remaining = 0.0

    @property
    def powered(self) -> bool:
        """Whether the arm is switched on."""
        return self.mode is not RobotMode.POWER_OFF

    def command(self, command: PowerCommand) -> None:
        """Start a change of mode; power off takes effect immediately.

        Args:
            command: the change.
        """
        if command is PowerCommand.OFF:
            self.mode = self._target = RobotMode.POWER_OFF
            return
        if command is PowerCommand.RELEASE_BRAKES:
            self._target = RobotMode.RUNNING
        elif self.mode is RobotMode.POWER_OFF:
            self._target = RobotMode.IDLE
        if self.mode is RobotMode.POWER_OFF:
            self.mode = RobotMode.POWER_ON
            self._remaining = POWER_ON_TIME
        elif self.mode is RobotMode.IDLE and self._target is RobotMode.RUNNING:
            self._remaining = BRAKE_TIME

    def advance(self) -> None:
        """Advance by one controller cycle."""
        if self.mode is self._target:
            return
        self._remaining -= self._dt
        if self._remaining > 0.0:
            return
        was_off = self.mode is RobotMode.POWER_ON
        self.mode = RobotMode.IDLE if was_off else RobotMode.RUNNING
        if self.mode is not self._target:
            self._remaining = BRAKE_TIME

    def standby(self, running: float, joints: int) -> float:
        """Power at rest [W]; closed brakes need no coil current.

        Args:
            running: power at rest of the running arm [W].
            joints: number of joints n, whose brakes need coil current to stay open.
        """
        if self.mode is RobotMode.POWER_OFF:
            return 0.0
        if self.mode is RobotMode.RUNNING:
            return running
        return max(0.0, running - joints * self._brake_power)


# True energies of the simulated arm, the reference for estimates. Energies follow
# Clochiatti et al. 2024 (eq. 19-26), per joint and at the motor; friction_energy is the
# part of mechanical_energy dissipated in bearings and gears, output_energy the rest.
# Driver losses and standby belong to the whole arm: bus_energy = sum of electrical_energy
# + driver_energy + standby_energy + braking_energy + energy in the bus capacitance.

ARRAY_RATE = 50.0  # rate of the arrays in the .npz file [Hz]
JOINT_ENERGIES = (
    "mechanical_energy",
    "electrical_energy",
    "copper_energy",
    "friction_energy",
    "output_energy",
)
ARM_ENERGIES = (
    "bus_energy",
    "driver_energy",
    "standby_energy",
    "braking_energy",
    "wall_energy",
)


class Energies(NamedTuple):
    """Energies since the start of the simulation, J; of the joints [n], and of the whole arm.

    Attributes:
        time: controller timestamp [s].
        mechanical: energy that the motors converted to mechanical energy [n].
        copper: energy that was lost in the windings [n].
        friction: energy that was lost in bearings and gears [n].
        bus: energy at the supply of the arm.
        driver: losses of the drives.
        standby: energy of electronics and brakes.
        braking: energy that was dissipated in the braking resistor.
        wall: energy at the mains.
    """

    time: float
    mechanical: Array
    copper: Array
    friction: Array
    bus: float
    driver: float
    standby: float
    braking: float
    wall: float

    def joints(self) -> Array:
        """Joint energies in the order of JOINT_ENERGIES [5, n], J."""
        work = self.mechanical
        copper = self.copper
        friction = self.friction
        return np.stack([work, work + copper, copper, friction, work - friction])

    def arm(self) -> Array:
        """Whole-arm energies in the order of ARM_ENERGIES [5], J."""
        return np.array([self.bus, self.driver, self.standby, self.braking, self.wall])


def truth_files(path: str | Path) -> tuple[Path, Path]:
    """The files that a TruthLog writes: JSON, and arrays.

    Args:
        path: path of the JSON file.
    """
    return Path(path), Path(path).with_suffix(".npz")


class TruthLog:
    """Collects the true energies and writes them: a JSON file, and arrays in an .npz beside it.

    The arrays are `timestamp` [m] (controller clock, s) and the energies since the start
    by the names of JOINT_ENERGIES [m, n] and ARM_ENERGIES [m].

    Args:
        path: path of the JSON file.

    Raises:
        InputError: the path of the JSON file is also the path of the .npz file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.suffix == ".npz":
            raise InputError(
                self.path, "is the name of the array file", "name a .json file"
            )
        self._rows: list[tuple[Energies, Array]] = []

    def due(self, time: float) -> bool:
        """Whether another row is due.

        Args:
            time: controller time [s].
        """
        return not self._rows or time - self._rows[-1][0].time > 1.0 / ARRAY_RATE - 1e-6

    def append(self, energies: Energies, temperature: Array) -> None:
        """Append a row, at most one per instant.

        Args:
            energies: energies since the start of the simulation.
            temperature: temperatures of the joints [n], degC.
        """
        if not self._rows or energies.time > self._rows[-1][0].time:
            self._rows.append((energies, temperature))

    def write(
        self,
        joint_names: tuple[str, ...],
        parameters: ArmParameters,
        facts: dict[str, Any],
    ) -> None:
        """Write both files, each completely or not at all.

        Args:
            joint_names: n names.
            parameters: true constants of the arm.
            facts: further entries of the JSON file.
        """
        time = np.array([row.time for row, _ in self._rows])
        joints = np.array([row.joints() for row, _ in self._rows])
        arm = np.array([row.arm() for row, _ in self._rows])
        temperature = np.mean([of_joints for _, of_joints in self._rows], axis=0)
        energy = joints[-1] - joints[0]
        whole = arm[-1] - arm[0]
        true_constants = _true_constants(parameters, temperature)
        entries: list[dict[str, Any]] = []
        for j, name in enumerate(joint_names):
            of_joint = {key: float(values[j]) for key, values in true_constants.items()}
            entries.append({"name": name, **_with_efficiency(energy[:, j]), **of_joint})
        total = _with_efficiency(energy.sum(axis=1))
        total |= {key: float(whole[k]) for k, key in enumerate(ARM_ENERGIES)}
        _, array_path = truth_files(self.path)
        content = {
            "schema": 1,
            "duration": float(time[-1] - time[0]),
            "controller_time": {"start": float(time[0]), "end": float(time[-1])},
            "joints": entries,
            "total": total,
            "bus_energy": float(whole[0]),
            "arrays": array_path.name,
            "seed": parameters.seed,
            "mean_temperature": temperature,
            **facts,
            "parameters": parameters,
        }
        arrays: dict[str, Any] = {
            key: joints[:, k] for k, key in enumerate(JOINT_ENERGIES)
        }
        arrays |= {key: arm[:, k] for k, key in enumerate(ARM_ENERGIES)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(array_path, "wb") as file:
            np.savez_compressed(file, timestamp=time, **arrays)
        write_text(
            self.path, json.dumps(plain(content), indent=1, allow_nan=False) + "\n"
        )


def _true_constants(p: ArmParameters, temperature: Array) -> dict[str, Array]:
    """Constants of the joints by name [n], as an identification may find them, motor side.

    Friction is the straight line that fits its curve at these joint temperatures [n],
    degC, best up to pi rad/s.
    """
    factor = p.friction_factor(temperature)
    fastest = np.full(len(temperature), np.pi)
    coulomb, viscous = p.friction.straight_line(fastest, factor)
    return {
        "reflected_inertia": p.reflected_inertia,
        "torque_constant": p.torque_constant,
        "winding_resistance": p.winding_resistance,
        "effective_resistance": p.effective_resistance,
        "coulomb": (coulomb + p.flex_spline_coulomb) / p.gear_ratio,
        "viscous": (viscous + p.flex_spline_viscous) / p.gear_ratio**2,
    }


def _with_efficiency(energy: Array) -> dict[str, Any]:
    """Energies [5], J, by their names in JOINT_ENERGIES, and the efficiency."""
    content: dict[str, Any] = dict(zip(JOINT_ENERGIES, energy.tolist(), strict=True))
    electrical = content["electrical_energy"]
    content["efficiency"] = None
    if abs(electrical) > 1e-9:
        content["efficiency"] = content["mechanical_energy"] / electrical
    return content


THERMAL_STEP = 0.1  # time step of the joint temperatures [s]


class EnergyBalance:
    """Energies and temperatures of an arm with n joints since its start, cycle by cycle.

    Args:
        parameters: true constants of the arm.
        dt: length of a cycle [s].
        ambient: temperature of the air [degC].
        warmth: temperature state of the joints at the start: 0 ambient, 1 settled while
            powered at rest, linear between and beyond.

    Attributes:
        bus: supply, capacitance and braking resistor.
        wall: the control box between mains and bus, drawn from the number of the arm.
        ambient: temperature of the air [degC].
        temperature: temperatures of the joints [n], degC.
        joint_power: power of each joint with its drive, mean over the last cycle [n], W.
    """

    def __init__(
        self, parameters: ArmParameters, dt: float, ambient: float, warmth: float = 1.0
    ) -> None:
        p = parameters
        n = len(parameters.gear_ratio)
        self.bus = Bus()
        self.ambient = ambient
        self.wall = draw_wall(p.seed)
        self.temperature = np.asarray(
            ambient + warmth * p.thermal_resistance * p.standby_heat
        )
        self._parameters = p
        self._dt = dt
        self._thermal_step = max(1, round(THERMAL_STEP / dt)) * dt
        self._passed = 0.0  # since the last step of the temperatures [s]
        self._driver = 0.0
        self._standby = 0.0
        self._wall = 0.0
        self._drives = np.zeros((5, n))
        self._heated = np.zeros(n)
        self.joint_power = p.standby_heat.copy()

    def integrate(self, drives: Array, supply: PowerSupply) -> bool:
        """Integrate one cycle.

        Args:
            drives: sums of the plant since the start [5, n] (`Plant.energy`).
            supply: power supply in its present mode.

        Returns:
            Whether the joint temperatures changed.
        """
        p = self._parameters
        dt = self._dt
        supplied = self.bus.supplied
        spent = drives - self._drives
        self._drives = drives.copy()
        driver = p.driver_loss * float(spent[ABS_CURRENT].sum())
        electrical = spent[SHAFT] + spent[COPPER]
        taken = electrical + p.driver_loss * spent[ABS_CURRENT]
        self.joint_power = p.standby_heat + taken / dt
        standby = dt * supply.standby(p.standby_power, len(p.gear_ratio))
        self._driver += driver
        self._standby += standby
        if supply.powered:
            self.bus.advance(dt, (float(electrical.sum()) + driver + standby) / dt)
        else:
            self.bus.switch_off()
        power = self.wall.power_now(supply.mode, (self.bus.supplied - supplied) / dt)
        self._wall += dt * power
        self._passed += dt
        if self._passed < self._thermal_step - 0.5 * dt:
            return False
        # One heat capacity per joint: losses and powered electronics heat it, the air
        # cools it.
        generated = drives[COPPER] + drives[FRICTION] + drives[GEAR]
        losses = (generated - self._heated) / self._passed
        heat = losses + p.standby_heat if supply.powered else losses
        cooling = (self.temperature - self.ambient) / p.thermal_resistance
        rise = self._passed * (heat - cooling) / p.thermal_capacity
        self.temperature = self.temperature + rise
        self._heated = generated
        self._passed = 0.0
        return True

    def energies(self, time: float) -> Energies:
        """All energies since the start.

        Args:
            time: controller time [s].
        """
        sums = self._drives
        bus = self.bus
        friction = sums[FRICTION] + sums[GEAR]
        return Energies(
            time=time,
            mechanical=sums[SHAFT],
            copper=sums[COPPER],
            friction=friction,
            bus=bus.supplied,
            driver=self._driver,
            standby=self._standby,
            braking=bus.braked,
            wall=self._wall,
        )
