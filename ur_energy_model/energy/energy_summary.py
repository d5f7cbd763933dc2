"""Energies of a recording: per joint, whole arm, by state, beside the measured bus energy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.joint_energies import JointEnergies
from ur_energy_model.energy.meter import EnergyMeter, interval
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class SessionStandby:
    """Standby power of a session.

    Attributes:
        anchored: whether it was measured at standstill; else it is the model's.
        power, std: W.
        still_seconds: settled standstill in the average [s].
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
        refused: number of samples left out because of values that are not finite or impossible.
        repeated: number of samples left out because the recording has them twice.
        electrical_total_std: of the sum of the joints' electrical energies [J].
        copper, friction: losses per joint [n], J.
        regenerated: electrical energy returned by each joint [n], J.
        driver, standby: of the whole arm [J].
        regeneration: what the supply cannot take back, stored or burnt [J].
        supply, supply_std: modelled energy at the supply, the sum of all these parts [J].
        bus: measured energy at the supply [J], None without bus power.
        state_time, state_energy: of the whole arm by state [s], [J].
        session: the session's standby power.
        warnings: for the user, one line each.
        serials: of the arms of model and recording, see `recording_checks.serials`.
    """

    duration: float
    unaccounted: float
    refused: int
    repeated: int
    electrical_total_std: float
    copper: Array
    friction: Array
    regenerated: Array
    driver: float
    standby: float
    regeneration: float
    supply: float
    supply_std: float
    bus: float | None
    state_time: dict[ArmState, float]
    state_energy: dict[ArmState, float]
    session: SessionStandby
    warnings: tuple[str, ...] = ()
    serials: Mapping[str, str | None] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The content of `ur_energy estimate --json`."""
        joints = {
            "electrical_energy_interval": interval(self.electrical, self.electrical_std),
            "copper_energy": self.copper,
            "friction_energy": self.friction,
            "regenerated_energy": self.regenerated,
        }
        total: dict[str, float | Array] = {
            "electrical_energy_std": self.electrical_total_std,
            "driver_energy": self.driver,
            "standby_energy": self.standby,
            "regeneration_energy": self.regeneration,
            "supply_energy": self.supply,
            "supply_energy_std": self.supply_std,
            "supply_energy_interval": interval(self.supply, self.supply_std),
        }
        return {
            "duration": self.duration,
            "unaccounted_time": self.unaccounted,
            "refused_samples": self.refused,
            "repeated_samples": self.repeated,
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
            "warnings": self.warnings,
            "serials": dict(self.serials),
        }


def summarise(
    calculator: EnergyCalculator, meter: EnergyMeter, bus_complete: bool
) -> EnergySummary:
    """Energies that a meter has counted.

    Args:
        calculator: whose powers were integrated.
        meter: with all of them.
        bus_complete: whether the bus power was measured throughout.
    """
    channels, reading = calculator.channels, meter.reading
    net, joint, arm = reading.net, channels.per_joint, channels.arm
    joint_std, supply_std = channels.deviations(net)
    standby = calculator.standby
    return EnergySummary(
        duration=reading.accounted,
        unaccounted=reading.unaccounted,
        refused=calculator.refused,
        repeated=calculator.repeated,
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
        regeneration=float(net[arm["regeneration"]]),
        supply=float(net[arm["total"]]),
        supply_std=supply_std,
        bus=float(net[arm["bus"]]) if bus_complete else None,
        state_time=channels.by_state(net, channels.state_time),
        state_energy=channels.by_state(net, channels.state_energy),
        session=SessionStandby(standby.anchored, standby.power, standby.std, standby.still_seconds),
    )
