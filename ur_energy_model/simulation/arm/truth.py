"""True energies of the simulated arm, the reference for estimates.

Energies follow Clochiatti et al. 2024 (eq. 19-26), per joint and at the motor:

- mechanical_energy: integral of w tau_m with the motor torque tau_m = k_t i, joint friction
  included;
- copper_energy: integral of R i^2, R the effective resistance;
- electrical_energy: their sum, at the motor terminals;
- friction_energy: the part of mechanical_energy dissipated in bearings and gears;
- output_energy: the remaining mechanical_energy, delivered to the links.

Driver losses and standby belong to the whole arm: bus_energy = sum of electrical_energy +
driver_energy + standby_energy + braking_energy + energy in the bus capacitance.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.files import new_file, write_text
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.plain import plain
from ur_energy_model.simulation.arm.parameters import ArmParameters
from ur_energy_model.typing import Array

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
        self._time: list[float] = []
        self._joints: list[Array] = []
        self._arm: list[Array] = []
        self._temperature: list[Array] = []

    @property
    def array_path(self) -> Path:
        """Path of the array file."""
        return self.path.with_suffix(".npz")

    def due(self, time: float) -> bool:
        """Whether another row is due at this controller time [s]."""
        return not self._time or time - self._time[-1] > 1.0 / ARRAY_RATE - 1e-6

    def append(self, energies: Energies, temperature: Array) -> None:
        """Append a row, at most one per instant; joint temperatures [n] in degC."""
        if self._time and energies.time <= self._time[-1]:
            return
        self._time.append(energies.time)
        self._joints.append(energies.joints())
        self._arm.append(energies.arm())
        self._temperature.append(temperature)

    def write(
        self, joint_names: tuple[str, ...], parameters: ArmParameters, facts: dict[str, Any]
    ) -> None:
        """Write both files, each completely or not at all.

        Args:
            joint_names: n names.
            parameters: true constants of the arm.
            facts: further entries of the JSON file (robot, motion, temperatures, ...).
        """
        if not self._time:
            return
        time, joints, arm = np.array(self._time), np.array(self._joints), np.array(self._arm)
        energy = joints[-1] - joints[0]
        whole = arm[-1] - arm[0]
        duration = float(time[-1] - time[0])
        temperature = np.mean(self._temperature, axis=0)
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
            "duration": duration,
            "controller_time": {"start": float(time[0]), "end": float(time[-1])},
            "joints": entries,
            "total": total,
            "bus_energy": float(whole[0]),
            "arrays": self.array_path.name,
            "seed": parameters.seed,
            "mean_temperature": temperature,
            **facts,
            "parameters": parameters.as_dict(),
        }
        arrays: dict[str, Any] = {key: joints[:, k] for k, key in enumerate(JOINT_ENERGIES)}
        arrays |= {key: arm[:, k] for k, key in enumerate(ARM_ENERGIES)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(self.array_path, "wb") as file:
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


def setup_record(setup: Setup, carried: Payload) -> dict[str, Any]:
    """Mounting, configured payload and the one really carried, as in the truth file."""
    return {
        "gravity": setup.gravity,
        "payload_mass": setup.payload.mass,
        "payload_center_of_mass": setup.payload.center_of_mass,
        "carried_mass": carried.mass,
        "carried_center_of_mass": carried.center_of_mass,
    }
