"""What really happened in the simulated arm, for comparison with what others make of it.

Energies follow Clochiatti et al. 2024 (eq. 19-26), joint by joint and at the motor:

- mechanical_energy: integral of w tau_m with the motor's torque tau_m = k_t i; friction of the
  joint is driven by it and therefore in it;
- copper_energy: integral of R i^2, R the effective resistance;
- electrical_energy: their sum, at the motor's terminals;
- friction_energy: the part of mechanical_energy that became heat in bearings and gears;
- output_energy: the rest of it, stored in or done by the links.

Losses of the drivers and standby belong to the whole arm: bus_energy = sum of electrical_energy +
driver_energy + standby_energy + braking_energy + what the capacitor holds.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.files import new_file, write_text
from ur_energy_model.plain import plain
from ur_energy_model.simulation.arm.parameters import ArmParameters
from ur_energy_model.typing import Array

ARRAY_RATE = 50.0
"""Rate of the arrays beside the truth file [Hz]."""
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
        """Energies of the joints in the order of JOINT_ENERGIES [5, n], J."""
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
        """Energies of the whole arm in the order of ARM_ENERGIES [4], J."""
        return np.array([self.bus, self.driver, self.standby, self.braking])


class TruthLog:
    """Collects the truth and writes it: a JSON file, and arrays in its sibling .npz.

    The arrays hold `timestamp` [m] (controller clock, s) and the energies since the start, one
    array a name of JOINT_ENERGIES [m, n] and ARM_ENERGIES [m], so that the truth of any window is
    a difference of two rows.

    Args:
        path: of the JSON file.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.suffix == ".npz":
            raise InputError(self.path, "is where the arrays go", "name a .json file")
        self._time: list[float] = []
        self._joints: list[Array] = []
        self._arm: list[Array] = []
        self._temperature: list[Array] = []

    @property
    def array_path(self) -> Path:
        """Where the arrays go."""
        return self.path.with_suffix(".npz")

    def due(self, time: float) -> bool:
        """Whether the arrays want another row at this controller time."""
        return not self._time or time - self._time[-1] > 1.0 / ARRAY_RATE - 1e-6

    def add(self, energies: Energies, temperature: Array) -> None:
        """Take a row, one for each instant; joint temperatures [n] in degC."""
        if self._time and energies.time <= self._time[-1]:
            return
        self._time.append(energies.time)
        self._joints.append(energies.joints())
        self._arm.append(energies.arm())
        self._temperature.append(temperature)

    def write(
        self, joint_names: tuple[str, ...], parameters: ArmParameters, facts: dict[str, Any]
    ) -> None:
        """Write both files, each whole or not at all.

        Args:
            joint_names: n.
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
    """Constants an identification looks for, by its names, arrays [n].

    Friction is the straight line nearest to its curve up to pi rad/s, at joint temperatures [n].
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
