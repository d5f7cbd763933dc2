"""Energy of a recording under a model: per joint, whole arm, beside the measured bus energy.

Clochiatti et al., Robotica 2024, eq. 24-26 and Table VIII: electrical energy is the integral of
the motors' electrical powers, mechanical energy that of motor speed times motor torque, and the
efficiency their ratio. Integrals are trapezoidal on the controller's clock; gaps are not bridged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.channels import ArmState
from ur_energy_model.energy.checks import check_robot, check_width
from ur_energy_model.energy.joint_energies import JointEnergies
from ur_energy_model.energy.meter import EnergyMeter
from ur_energy_model.energy.power_options import FIELDS, PowerOptions
from ur_energy_model.energy.power_series import power_series
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.errors import RecordingError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.source import iterate_bag
from ur_energy_model.telemetry.offline_simulator import REASON, REMEDY, OfflineSimulatorCheck
from ur_energy_model.typing import Array, Progress


@dataclass(frozen=True)
class SessionStandby:
    """Standby power of a session.

    Attributes:
        anchored: whether standstill has shown it; else it is the model's.
        power, std: W.
        still_seconds: settled standstill that it was averaged over [s].
    """

    anchored: bool
    power: float
    std: float
    still_seconds: float


@dataclass(frozen=True)
class EnergySummary(JointEnergies):
    """Energies of a recording.

    Attributes:
        duration: time integrated over, gaps left out [s].
        unaccounted: time in gaps [s].
        refused: number of samples left out for values that are not finite or impossible.
        electrical_total_std: of all joints' electrical energy, whose errors go together [J].
        copper, friction: losses per joint [n], J.
        regenerated: electrical energy that flowed back, per joint [n], J.
        driver, standby: of the whole arm [J].
        supply, supply_std: modelled energy at the supply: joints, drivers and standby [J].
        bus: measured energy at the supply [J], None without bus power.
        state_time, state_energy: of the whole arm by state [s], [J].
        session: what is known of the session's standby power.
    """

    duration: float
    unaccounted: float
    refused: int
    electrical_total_std: float
    copper: Array
    friction: Array
    regenerated: Array
    driver: float
    standby: float
    supply: float
    supply_std: float
    bus: float | None
    state_time: dict[ArmState, float]
    state_energy: dict[ArmState, float]
    session: SessionStandby

    def as_json(self) -> dict[str, Any]:
        """`ur_energy estimate --json`."""
        joints = {
            "copper_energy": self.copper,
            "friction_energy": self.friction,
            "regenerated_energy": self.regenerated,
        }
        total = {
            "electrical_energy_std": self.electrical_total_std,
            "driver_energy": self.driver,
            "standby_energy": self.standby,
            "supply_energy": self.supply,
            "supply_energy_std": self.supply_std,
        }
        return {
            "duration": self.duration,
            "unaccounted_time": self.unaccounted,
            "refused_samples": self.refused,
            **self.energy_json(joints, total),
            "bus_energy": self.bus,
            "states": {
                state.name.lower(): {
                    "time": self.state_time[state],
                    "energy": self.state_energy[state],
                }
                for state in ArmState
            },
            "session": {
                "anchored": self.session.anchored,
                "standby": self.session.power,
                "standby_std": self.session.std,
                "still_seconds": self.session.still_seconds,
            },
        }


def calculated(
    calculator: EnergyCalculator,
    bag: str | Path,
    *,
    fields: tuple[str, ...] = FIELDS,
    progress: Progress | None = None,
) -> Iterator[PowerTable]:
    """Powers of all samples of a recording, batch by batch, in constant memory.

    Args:
        calculator: of the arm; keeps what it learns of the session.
        bag: recording.
        fields: RTDE fields to read.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    bag, robot, samples = Path(bag), calculator.robot, 0
    for batch in iterate_bag(bag, fields):
        if not len(batch):
            continue
        if samples == 0:
            check_robot(bag, batch.info, robot)
        names = tuple(name for name in ("actual_qd", "actual_current") if name in batch)
        check_width(bag, batch, ("actual_qd", *names), robot.dof)
        table = calculator(batch)
        samples += len(batch)
        if progress is not None:
            progress(float("nan"), f"reading {bag.name}: {samples} samples")
        if table is not None:
            yield table
    if samples == 0:
        raise RecordingError(bag, "holds no samples", "record again")


def estimate(
    model: EnergyModel,
    bag: str | Path,
    *,
    options: PowerOptions | None = None,
    series: str | Path | None = None,
    progress: Progress | None = None,
) -> EnergySummary:
    """Energies of a recording, as the live estimator counts them, in constant memory.

    Args:
        model: of the arm.
        bag: recording.
        options: how powers are found.
        series: CSV file for the powers over time, or None.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    calculator = EnergyCalculator(model, load_robot(model.robot), options)
    meter = EnergyMeter(len(calculator.channels))
    bus_complete, counted = True, 0
    with ExitStack() as files:
        rows = None
        if series is not None:
            rows = files.enter_context(power_series(series, calculator.channels))
        fields = (*FIELDS, "target_current")
        check = OfflineSimulatorCheck()
        for table in calculated(calculator, bag, fields=fields, progress=progress):
            check.add(table.samples)
            meter.add_table(table)
            counted += len(table.samples)
            bus_complete &= table.bus_measured
            if rows is not None:
                rows.add(table, meter)
        if not counted:
            raise RecordingError(
                bag, "holds no sample whose values are all finite numbers", "record again"
            )
        if check.found:
            raise RecordingError(bag, REASON, REMEDY)
    return _summary(calculator, meter, bus_complete)


def _summary(calculator: EnergyCalculator, meter: EnergyMeter, bus_complete: bool) -> EnergySummary:
    channels, reading = calculator.channels, meter.reading
    net, joint, arm = reading.net, channels.per_joint, channels.arm
    joint_std, supply_std = channels.deviations(net)
    standby = calculator.standby
    return EnergySummary(
        duration=reading.accounted,
        unaccounted=reading.unaccounted,
        refused=calculator.refused,
        names=channels.joints,
        mechanical=net[joint["mechanical_power"]],
        electrical=net[joint["electrical_power"]],
        electrical_std=joint_std,
        electrical_total_std=channels.deviation_of_joints(net),
        copper=net[joint["copper_loss"]],
        friction=net[joint["friction_loss"]],
        regenerated=reading.regenerated[joint["electrical_power"]],
        driver=float(net[arm["driver"]]),
        standby=float(net[arm["standby"]]),
        supply=float(net[arm["total"]]),
        supply_std=supply_std,
        bus=float(net[arm["bus"]]) if bus_complete else None,
        state_time=channels.by_state(net, channels.state_time),
        state_energy=channels.by_state(net, channels.state_energy),
        session=SessionStandby(standby.anchored, standby.power, standby.std, standby.still_seconds),
    )
