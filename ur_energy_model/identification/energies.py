"""Energy of a recording under a model: per joint, whole arm, beside the measured bus energy.

Clochiatti et al., Robotica 2024, eq. 24-26 and Table VIII: electrical energy is the integral of
the motors' electrical powers, mechanical energy that of motor speed times motor torque, and the
efficiency their ratio. Integrals are trapezoidal on the controller's clock; gaps are not bridged.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import RecordingError
from ur_energy_model.identification.evaluation import check_model
from ur_energy_model.identification.power_series import power_series
from ur_energy_model.identification.recording import Progress, check_batch, check_robot
from ur_energy_model.model.energy import EnergyMeter, efficiency
from ur_energy_model.model.energy_model import EnergyModel, Prediction
from ur_energy_model.model.measured_powers import MeasuredPowers
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bags import iterate_bag
from ur_energy_model.telemetry.samples import Telemetry

Array = NDArray[np.float64]

FIELDS = (
    "actual_qd", "actual_current", "joint_temperatures", "actual_robot_voltage",
    "actual_robot_current", "robot_mode",
)  # fmt: skip
REQUIRED = ("actual_qd", "actual_current")


@dataclass(frozen=True)
class EnergySummary:
    """Energies of a recording.

    Attributes:
        duration: time integrated over, gaps left out [s].
        unaccounted: time in gaps [s].
        names: joint names, n.
        mechanical, electrical, electrical_std: per joint [n], J.
        electrical_total_std: of all joints' electrical energy, whose errors go together [J].
        copper, friction: losses per joint [n], J.
        efficiency: mechanical over electrical [n], NaN where no electrical energy was taken.
        regenerated: electrical energy that flowed back, per joint [n], J.
        driver, standby: of the whole arm [J].
        supply, supply_std: modelled energy at the supply: joints, drivers and standby [J].
        bus: measured energy at the supply [J], None without bus power.
    """

    duration: float
    unaccounted: float
    names: tuple[str, ...]
    mechanical: Array
    electrical: Array
    electrical_std: Array
    electrical_total_std: float
    copper: Array
    friction: Array
    efficiency: Array
    regenerated: Array
    driver: float
    standby: float
    supply: float
    supply_std: float
    bus: float | None

    def as_json(self) -> dict[str, Any]:
        """`ur_energy estimate --json`."""
        total, spent = self.mechanical.sum(), self.electrical.sum()
        return {
            "duration": self.duration,
            "unaccounted_time": self.unaccounted,
            "joints": [
                {
                    "name": name,
                    "mechanical_energy": self.mechanical[j],
                    "electrical_energy": self.electrical[j],
                    "electrical_energy_std": self.electrical_std[j],
                    "efficiency": self.efficiency[j],
                    "copper_energy": self.copper[j],
                    "friction_energy": self.friction[j],
                    "regenerated_energy": self.regenerated[j],
                }
                for j, name in enumerate(self.names)
            ],
            "total": {
                "mechanical_energy": total,
                "electrical_energy": spent,
                "electrical_energy_std": self.electrical_total_std,
                "efficiency": float(efficiency(np.array([total]), np.array([spent]))[0]),
                "driver_energy": self.driver,
                "standby_energy": self.standby,
                "supply_energy": self.supply,
                "supply_energy_std": self.supply_std,
            },
            "bus_energy": self.bus,
        }


def estimate(
    model: EnergyModel,
    bag: str | Path,
    *,
    series: str | Path | None = None,
    progress: Progress | None = None,
) -> EnergySummary:
    """Energies of a recording from its measured speeds and currents, in constant memory.

    Args:
        model: of the arm.
        bag: recording.
        series: CSV file for the powers over time, or None.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    bag = Path(bag)
    robot = load_robot(model.robot)
    check_model(model, robot, bag)
    total = _Totals(model)
    with ExitStack() as files:
        rows = None if series is None else files.enter_context(power_series(series, model))
        for batch in iterate_bag(bag, FIELDS):
            if not len(batch):
                continue
            if total.samples == 0:
                check_robot(bag, batch.info, robot)
            check_batch(bag, batch, REQUIRED, robot.dof)
            batch = batch.distinct()
            prediction, bus = total.add(batch)
            if rows is not None:
                rows.add(batch.time, prediction, bus)
            if progress is not None:
                progress(float("nan"), f"reading {bag.name}: {total.samples} samples")
        if total.samples == 0:
            raise RecordingError(bag, "holds no samples", "record again")
    return total.summary()


class _Totals:
    """Meters of all powers and of their sensitivities."""

    def __init__(self, model: EnergyModel) -> None:
        self.model = model
        n = model.dof
        self.samples = 0
        self._measured = MeasuredPowers(model)
        self._powers = EnergyMeter(4 * n + 3)
        self._bus = EnergyMeter(1)
        self._bus_complete = True
        self._sensitivity: EnergyMeter | None = None
        self._shape = (0, 0)

    def add(self, batch: Telemetry) -> tuple[Prediction, Array | None]:
        temperature = batch.columns.get("joint_temperatures")
        powers = self._measured(
            batch.time, batch["actual_qd"], batch["actual_current"], temperature=temperature
        )
        self.samples += len(batch)
        time = batch.time
        self._powers.update(
            time,
            np.column_stack([
                powers.electrical_power, powers.mechanical_power, powers.copper_loss,
                powers.friction_loss, powers.driver_power, powers.standby_power,
                powers.total_power,
            ]),
        )  # fmt: skip
        n, errors = powers.sensitivity.shape[1:]
        if self._sensitivity is None:
            self._shape = (n, errors)
            self._sensitivity = EnergyMeter(n * errors + powers.total_sensitivity.shape[1])
        self._sensitivity.update(
            time,
            np.column_stack([powers.sensitivity.reshape(len(time), -1), powers.total_sensitivity]),
        )
        bus = batch.bus_power
        if bus is None or not np.isfinite(bus).all():
            self._bus_complete = False
        else:
            self._bus.update(time, bus[:, None])
        return powers, bus

    def summary(self) -> EnergySummary:
        n = self.model.dof
        net, reading = self._powers.net, self._powers.reading
        electrical, mechanical, copper, friction = net[: 4 * n].reshape(4, n)
        assert self._sensitivity is not None
        errors = self._sensitivity.net
        split = self._shape[0] * self._shape[1]
        each = errors[:split].reshape(self._shape)
        return EnergySummary(
            duration=reading.accounted,
            unaccounted=reading.unaccounted,
            names=tuple(joint.name for joint in self.model.joints),
            mechanical=mechanical,
            electrical=electrical,
            electrical_std=np.asarray(np.linalg.norm(each, axis=1)),
            electrical_total_std=float(np.linalg.norm(each.sum(axis=0))),
            copper=copper,
            friction=friction,
            efficiency=efficiency(mechanical, electrical),
            regenerated=reading.regenerated[:n],
            driver=float(net[4 * n]),
            standby=float(net[4 * n + 1]),
            supply=float(net[4 * n + 2]),
            supply_std=float(np.linalg.norm(errors[split:])),
            bus=float(self._bus.net[0]) if self._bus_complete else None,
        )
