"""Energy of the simulated arm: supply, bus, heat, and the true energies."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.codec import plain
from ur_energy_model.errors import InputError
from ur_energy_model.files import new_file, write_text
from ur_energy_model.simulation.commands import JOINT_MODE_OF, JointMode, PowerCommand, RobotMode
from ur_energy_model.simulation.parameters import ArmParameters, constants
from ur_energy_model.simulation.plant import ABS_CURRENT, COPPER, FRICTION, GEAR, SHAFT
from ur_energy_model.typing import Array

# The 48 V bus: supply with source resistance, capacitance, braking resistor, energy counters.
#
# The supply cannot absorb power. Regenerated power first feeds standby and other joints, then
# charges the bus capacitance; above a threshold the braking resistor dissipates it. Power at the
# supply is therefore never negative (Heredia et al.).

SUBSTEP = 5e-4
"""Longest time step of the bus voltage while the supply is idle [s]."""


class Bus:
    """State of the bus.

    Attributes:
        voltage: V.
        current: from the supply, mean over the last step [A].
        supplied, braked: energy from the supply and into the braking resistor [J].
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
        """Deliver `power` [W] for `dt` s; negative power is regenerated."""
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
        self.surplus = self.voltage = self.current = 0.0

    def _without_supply(self, h: float, power: float) -> float:
        """One step on the capacitance; returns the energy [J] that the supply must add."""
        self.surplus -= h * power
        if self.voltage > self._brake_voltage:
            dissipated = min(h * self.voltage**2 / self._brake_resistance, max(self.surplus, 0.0))
            self.braked += dissipated
            self.surplus -= dissipated
        missing = max(0.0, -self.surplus)
        self.surplus = max(0.0, self.surplus)
        self.voltage = math.sqrt(self._open**2 + 2.0 * self.surplus / self._capacitance)
        return missing

    def _supply_current(self, power: float) -> float:
        """Current [A] at which the supply delivers a power [W] behind its source resistance.

        Beyond the maximum power the voltage would collapse; a real supply limits earlier, so the
        current is limited to that at half voltage.
        """
        root = self._open**2 - 4.0 * self._source * power
        return (self._open - math.sqrt(max(root, 0.0))) / (2.0 * self._source)


# Power modes of the arm and their power at rest.

POWER_ON_TIME = 1.0
"""From power off to idle [s], assumed (real arms take some seconds)."""
BRAKE_TIME = 0.5
"""From idle to running [s], assumed."""


class PowerSupply:
    """Sequence of power modes; the arm starts in running mode.

    Args:
        dt: length of a controller cycle [s].

    Attributes:
        mode: current mode.
    """

    def __init__(self, dt: float) -> None:
        self.mode = RobotMode.RUNNING
        self._brake_power = float(constants()["bus"]["brake_release_power"])
        self._dt = dt
        self._target = RobotMode.RUNNING
        self._remaining = 0.0

    @property
    def joint_mode(self) -> JointMode:
        """Mode of all joints."""
        return JOINT_MODE_OF[self.mode]

    @property
    def powered(self) -> bool:
        """Whether the arm is switched on."""
        return self.mode is not RobotMode.POWER_OFF

    def command(self, command: PowerCommand) -> None:
        """Start a change of mode; power off takes effect immediately."""
        if command is PowerCommand.OFF:
            self.mode = self._target = RobotMode.POWER_OFF
            return
        if command is PowerCommand.RELEASE_BRAKES:
            self._target = RobotMode.RUNNING
        elif self.mode is RobotMode.POWER_OFF:
            self._target = RobotMode.IDLE
        self._start_next()

    def advance(self) -> None:
        """Advance by one controller cycle."""
        if self.mode is self._target:
            return
        self._remaining -= self._dt
        if self._remaining > 0.0:
            return
        self.mode = RobotMode.IDLE if self.mode is RobotMode.POWER_ON else RobotMode.RUNNING
        if self.mode is not self._target:
            self._remaining = BRAKE_TIME

    def standby(self, running: float, joints: int) -> float:
        """Power at rest [W] from that of the running arm; closed brakes need no coil current."""
        if self.mode is RobotMode.POWER_OFF:
            return 0.0
        if self.mode is RobotMode.RUNNING:
            return running
        return max(0.0, running - joints * self._brake_power)

    def _start_next(self) -> None:
        if self.mode is RobotMode.POWER_OFF and self._target is not RobotMode.POWER_OFF:
            self.mode, self._remaining = RobotMode.POWER_ON, POWER_ON_TIME
        elif self.mode is RobotMode.IDLE and self._target is RobotMode.RUNNING:
            self._remaining = BRAKE_TIME


# Joint temperatures: heating by losses, cooling to ambient.


class ThermalState:
    """First-order thermal model with one heat capacity per joint.

    Args:
        parameters: of the arm, n joints.
        ambient: ambient temperature [degC].
        warmth: initial temperature: 0 ambient, 1 settled while powered at rest, linear between
            and beyond.

    Attributes:
        temperature: [n], degC.
    """

    def __init__(self, parameters: ArmParameters, ambient: float, warmth: float = 1.0) -> None:
        self._parameters = parameters
        self.ambient = ambient
        self.temperature = self.resting(warmth)

    def resting(self, warmth: float = 1.0) -> Array:
        """Temperatures [n], degC, at which a powered arm at rest settles.

        Args:
            warmth: factor on the difference to ambient.
        """
        p = self._parameters
        return np.asarray(self.ambient + warmth * p.thermal_resistance * p.standby_heat)

    def advance(self, dt: float, losses: Array, powered: bool) -> None:
        """Heat by losses [n], W, for `dt` s; electronics add heat while powered."""
        p = self._parameters
        heat = losses + p.standby_heat if powered else losses
        cooling = (self.temperature - self.ambient) / p.thermal_resistance
        self.temperature = self.temperature + dt * (heat - cooling) / p.thermal_capacity


# True energies of the simulated arm, the reference for estimates.
#
# Energies follow Clochiatti et al. 2024 (eq. 19-26), per joint and at the motor:
#
# - mechanical_energy: integral of w tau_m with the motor torque tau_m = k_t i, joint friction
# included; - copper_energy: integral of R i^2, R the effective resistance; - electrical_energy:
# their sum, at the motor terminals; - friction_energy: the part of mechanical_energy dissipated in
# bearings and gears; - output_energy: the remaining mechanical_energy, delivered to the links.
#
# Driver losses and standby belong to the whole arm: bus_energy = sum of electrical_energy +
# driver_energy + standby_energy + braking_energy + energy in the bus capacitance.

ARRAY_RATE = 50.0
"""Rate of the arrays in the .npz file [Hz]."""
JOINT_ENERGIES = (
    "mechanical_energy",
    "electrical_energy",
    "copper_energy",
    "friction_energy",
    "output_energy",
)
ARM_ENERGIES = ("bus_energy", "driver_energy", "standby_energy", "braking_energy")


@dataclass(frozen=True)
class Energies:
    """Energies since the start of the simulation.

    Attributes:
        time: controller timestamp [s].
        mechanical, copper, friction: of the joints [n], J.
        bus, driver, standby, braking: of the whole arm, J.
    """

    time: float
    mechanical: Array
    copper: Array
    friction: Array
    bus: float
    driver: float
    standby: float
    braking: float

    def joints(self) -> Array:
        """Joint energies in the order of JOINT_ENERGIES [5, n], J."""
        return np.stack(
            [
                self.mechanical,
                self.mechanical + self.copper,
                self.copper,
                self.friction,
                self.mechanical - self.friction,
            ]
        )

    def arm(self) -> Array:
        """Whole-arm energies in the order of ARM_ENERGIES [4], J."""
        return np.array([self.bus, self.driver, self.standby, self.braking])


class TruthLog:
    """Collects the true energies and writes them: a JSON file, and arrays in an .npz beside it.

    The arrays hold `timestamp` [m] (controller clock, s) and the energies since the start, one
    array per name of JOINT_ENERGIES [m, n] and ARM_ENERGIES [m]. The energy over any interval is
    the difference of two rows.

    Args:
        path: of the JSON file.

    Raises:
        InputError: the path is that of the .npz file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.suffix == ".npz":
            raise InputError(self.path, "is the name of the array file", "name a .json file")
        self._rows: list[tuple[Energies, Array]] = []

    def due(self, time: float) -> bool:
        """Whether another row is due at this controller time [s]."""
        return not self._rows or time - self._rows[-1][0].time > 1.0 / ARRAY_RATE - 1e-6

    def append(self, energies: Energies, temperature: Array) -> None:
        """Append a row, at most one per instant; joint temperatures [n] in degC."""
        if not self._rows or energies.time > self._rows[-1][0].time:
            self._rows.append((energies, temperature))

    def write(
        self, joint_names: tuple[str, ...], parameters: ArmParameters, facts: dict[str, Any]
    ) -> None:
        """Write both files, each completely or not at all.

        Args:
            joint_names: n names.
            parameters: true constants of the arm.
            facts: further entries of the JSON file (robot, motion, temperatures, ...).
        """
        rows, temperatures = zip(*self._rows, strict=True)
        time = np.array([row.time for row in rows])
        joints, arm = np.array([row.joints() for row in rows]), np.array([r.arm() for r in rows])
        energy, whole = joints[-1] - joints[0], arm[-1] - arm[0]
        temperature = np.mean(temperatures, axis=0)
        array_path = self.path.with_suffix(".npz")
        laws = _joint_constants(parameters, temperature)
        entries = [
            {"name": name}
            | {key: float(energy[k, j]) for k, key in enumerate(JOINT_ENERGIES)}
            | {"efficiency": _ratio(energy[0, j], energy[1, j])}
            | {key: float(values[j]) for key, values in laws.items()}
            for j, name in enumerate(joint_names)
        ]
        total: dict[str, Any] = {
            key: float(energy[k].sum()) for k, key in enumerate(JOINT_ENERGIES)
        }
        total["efficiency"] = _ratio(total["mechanical_energy"], total["electrical_energy"])
        total |= {key: float(whole[k]) for k, key in enumerate(ARM_ENERGIES)}
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
        arrays: dict[str, Any] = {key: joints[:, k] for k, key in enumerate(JOINT_ENERGIES)}
        arrays |= {key: arm[:, k] for k, key in enumerate(ARM_ENERGIES)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(array_path, "wb") as file:
            np.savez_compressed(file, timestamp=time, **arrays)
        write_text(self.path, json.dumps(plain(content), indent=1, allow_nan=False) + "\n")


def _joint_constants(p: ArmParameters, temperature: Array) -> dict[str, Array]:
    """True values of the identified constants by name, arrays [n].

    Friction is the straight line that fits its curve best up to pi rad/s, at joint temperatures
    [n], degC.
    """
    coulomb, viscous = p.friction.straight_line(
        np.full(len(p.gear_ratio), np.pi), p.friction_factor(temperature)
    )
    return {
        "reflected_inertia": p.reflected_inertia,
        "torque_constant": p.torque_constant,
        "winding_resistance": p.winding_resistance,
        "effective_resistance": p.effective_resistance,
        "coulomb": (coulomb + p.flex_spline_coulomb) / p.gear_ratio,
        "viscous": (viscous + p.flex_spline_viscous) / p.gear_ratio**2,
    }


def _ratio(part: float, whole: float) -> float | None:
    return float(part / whole) if abs(whole) > 1e-9 else None


THERMAL_STEP = 0.1
"""Time step of the joint temperatures [s]."""


class EnergyBalance:
    """Energies of an arm since its start, integrated cycle by cycle.

    Args:
        parameters: of the arm, n joints.
        dt: length of a controller cycle [s].
        ambient: ambient temperature [degC].
        warmth: initial warmth of the joints, see `ThermalState`.

    Attributes:
        bus: supply, capacitance and braking resistor.
        thermal: temperatures of the joints.
    """

    def __init__(
        self, parameters: ArmParameters, dt: float, ambient: float, warmth: float = 1.0
    ) -> None:
        self.bus = Bus()
        self.thermal = ThermalState(parameters, ambient, warmth)
        self._parameters, self._dt = parameters, dt
        self._thermal_step = max(1, round(THERMAL_STEP / dt)) * dt
        self._passed = 0.0
        self._driver = self._standby = 0.0
        self._drives = np.zeros((5, len(parameters.gear_ratio)))
        self._heated = np.zeros(len(parameters.gear_ratio))

    def integrate(self, drives: Array, supply: PowerSupply) -> bool:
        """Integrate one cycle.

        Args:
            drives: sums of the plant since the start [5, n] (`Plant.energy`).
            supply: power mode of the arm.

        Returns:
            Whether the joint temperatures changed.
        """
        p, dt = self._parameters, self._dt
        spent = drives - self._drives
        self._drives = drives.copy()
        driver = p.driver_loss * float(spent[ABS_CURRENT].sum())
        standby = dt * supply.standby(p.standby_power, len(p.gear_ratio))
        self._driver += driver
        self._standby += standby
        if supply.powered:
            electrical = float((spent[SHAFT] + spent[COPPER]).sum())
            self.bus.advance(dt, (electrical + driver + standby) / dt)
        else:
            self.bus.switch_off()
        self._passed += dt
        if self._passed < self._thermal_step - 0.5 * dt:
            return False
        heat = drives[COPPER] + drives[FRICTION] + drives[GEAR]
        losses = (heat - self._heated) / self._passed
        self.thermal.advance(self._passed, losses, supply.powered)
        self._heated, self._passed = heat, 0.0
        return True

    def energies(self, time: float) -> Energies:
        """All energies since the start, at a controller time [s]."""
        return Energies(
            time=time,
            mechanical=self._drives[SHAFT],
            copper=self._drives[COPPER],
            friction=self._drives[FRICTION] + self._drives[GEAR],
            bus=self.bus.supplied,
            driver=self._driver,
            standby=self._standby,
            braking=self.bus.braked,
        )
