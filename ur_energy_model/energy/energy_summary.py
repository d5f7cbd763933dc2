# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energies of a recording as one record, its JSON form, and sums over several recordings.

Clochiatti et al., Robotica 2024, eq. 24-26 and Table VIII: electrical energy is the
integral of the motors' electrical powers, mechanical energy the integral of motor speed times
motor torque, and the efficiency their ratio.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.codec import plain
from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.meter import CONFIDENCE, EnergyMeter, efficiency, interval
from ur_energy_model.energy.powers import (
    ArmState,
    TotalSource,
    energy_json,
    explained_share,
)
from ur_energy_model.energy.wall import RecordedWall, WallEnergy
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.typing import Array


class SessionStandby(NamedTuple):
    """Standby power of a session.

    Attributes:
        anchored: whether the recording has shown the power; else it is the model's.
        standby: standby power [W].
        standby_std: standard deviation of the standby power [W].
        still_seconds: settled standstill that has shown the power [s].
    """

    anchored: bool
    standby: float
    standby_std: float
    still_seconds: float

    def power_words(self) -> str:
        """The power with its 95 % interval, in words."""
        return f"{self.standby:.1f} ± {CONFIDENCE * self.standby_std:.1f} W"

    def words(self) -> str:
        """Where the power comes from, in words."""
        if not self.anchored:
            return "the model's: the recording does not show it"
        if not self.still_seconds > 0.0:
            return "measured in motion"
        return f"measured, with {self.still_seconds:.1f} s of standstill"


@dataclass(frozen=True)
class EnergySummary:
    """Energies of a recording with n joints: per joint, whole arm, and by state.

    Attributes:
        names: names of the joints, n.
        duration: time integrated over [s].
        unaccounted: time in gaps [s].
        refused: number of samples left out because of values that are not finite or
            impossible.
        repeated: number of samples left out because the recording has them twice.
        mechanical: mechanical energy of each joint [n], J.
        electrical: electrical energy of each joint [n], J.
        electrical_std: standard deviations of `electrical` from the model's parameters
            [n], J.
        electrical_total_std: standard deviation of the sum of `electrical` [J].
        copper: loss in the windings of each motor [n], J.
        friction: friction loss of each joint [n], J.
        regenerated: electrical energy that each joint returned [n], J.
        driver: energy of all motor drivers [J].
        standby: standby energy of the whole arm [J].
        regeneration: what the supply cannot take back, stored or burnt [J].
        supply: total at the supply, measured where bus power is, else modelled [J].
        supply_std: standard deviation of `supply` [J].
        total_source: source of `supply`, measured or modelled.
        model: modelled energy at the supply, the sum of all parts above [J].
        model_std: standard deviation of `model` [J].
        unexplained: `supply` less `model` [J].
        unexplained_std: standard deviation of `unexplained` [J].
        bus: measured energy at the supply [J]; None where bus power is incomplete.
        measured: measured part of `supply`, in the time in which bus power is
            known [J].
        wall: energy at the mains: control box and supply included.
        state_time: time in each state [s].
        state_energy: energy of the whole arm in each state [J].
        session: standby power of the session.
        warnings: warnings for the user, one line each.
        contradictions: statements about the recording that it does not agree with; also
            in `warnings`, in words.
        serials: serial numbers of the arms of model and recording, see
            `matched_model.serials`.
        controller_constants: torque constants that the recording's controller states.
        same_arm: whether these constants are the model's; None where unknown.
    """

    names: tuple[str, ...]
    duration: float
    unaccounted: float
    refused: int
    repeated: int
    mechanical: Array
    electrical: Array
    electrical_std: Array
    electrical_total_std: float
    copper: Array
    friction: Array
    regenerated: Array
    driver: float
    standby: float
    regeneration: float
    supply: float
    supply_std: float
    total_source: TotalSource
    model: float
    model_std: float
    unexplained: float
    unexplained_std: float
    bus: float | None
    measured: float
    wall: WallEnergy
    state_time: dict[ArmState, float]
    state_energy: dict[ArmState, float]
    session: SessionStandby
    warnings: tuple[str, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    serials: Mapping[str, str | None] = field(default_factory=dict)
    controller_constants: ControllerConstants | None = None
    same_arm: bool | None = None

    @property
    def efficiency(self) -> Array:
        """Mechanical over electrical energy [n], NaN where no electrical energy is taken."""
        return efficiency(self.mechanical, self.electrical)

    @property
    def explained_share(self) -> float | None:
        """Modelled over measured energy, of the measured time; None where nothing is measured."""
        return explained_share(self.measured, self.unexplained)

    def as_json(self) -> dict[str, Any]:
        """The content of `ur_energy estimate --json`."""
        joints = {
            "mechanical_energy": self.mechanical,
            "electrical_energy": self.electrical,
            "electrical_energy_std": self.electrical_std,
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
            "model_energy": self.model,
            "model_energy_std": self.model_std,
            "model_energy_interval": interval(self.model, self.model_std),
            "unexplained_energy": self.unexplained,
            "unexplained_energy_std": self.unexplained_std,
        }
        return {
            "duration": self.duration,
            "unaccounted_time": self.unaccounted,
            "refused_samples": self.refused,
            "repeated_samples": self.repeated,
            **energy_json(self.names, joints, total),
            "total_source": self.total_source.name,
            "total_measured_share": self.total_source.share,
            "explained_share": self.explained_share,
            "bus_energy": self.bus,
            **self.wall.as_json(),
            "states": {
                state.name.lower(): {"time": time, "energy": self.state_energy[state]}
                for state, time in self.state_time.items()
            },
            "session": self.session._asdict(),
            "warnings": self.warnings,
            "contradictions": [each.as_json() for each in self.contradictions],
            "serials": dict(self.serials),
            "controller_constants": self.controller_constants,
            "same_arm": self.same_arm,
        }


def summarise(
    calculator: EnergyCalculator,
    meter: EnergyMeter,
    bus_complete: bool,
    wall: RecordedWall | None = None,
) -> EnergySummary:
    """Energies that a meter has counted of a calculator's powers.

    Args:
        calculator: the calculator after the last sample.
        meter: meter of the channels of the calculator.
        bus_complete: whether the bus power was measured throughout.
        wall: readings of a power meter at the mains; None without any.
    """
    wall = wall or RecordedWall(calculator.channels)
    channels = calculator.channels
    reading = meter.reading
    standby = calculator.standby
    net = reading.net
    joint = channels.per_joint
    arm = channels.arm
    return EnergySummary(
        names=channels.joints,
        duration=reading.accounted,
        unaccounted=reading.unaccounted,
        refused=calculator.refused,
        repeated=calculator.repeated,
        mechanical=net[joint["mechanical_power"]],
        electrical=net[joint["electrical_power"]],
        electrical_std=channels.deviations_of_joints(net),
        electrical_total_std=channels.deviation_of_joints(net),
        copper=net[joint["copper_loss"]],
        friction=net[joint["friction_loss"]],
        regenerated=reading.regenerated[joint["electrical_power"]],
        driver=float(net[arm["driver"]]),
        standby=float(net[arm["standby"]]),
        regeneration=float(net[arm["regeneration"]]),
        supply=float(net[arm["total"]]),
        supply_std=float(channels.deviations_of_total(net)),
        total_source=channels.total_source(net, reading.accounted),
        model=float(net[arm["model"]]),
        model_std=float(channels.deviations_of_model(net)),
        unexplained=float(net[arm["unexplained"]]),
        unexplained_std=float(channels.deviations_of_unexplained(net)),
        bus=float(net[arm["bus"]]) if bus_complete else None,
        measured=float(net[arm["bus"]]),
        wall=wall.energy(net),
        contradictions=wall.verdict.contradictions,
        state_time=channels.by_state(net, channels.state_time),
        state_energy=channels.by_state(net, channels.state_energy),
        session=SessionStandby(
            standby.anchored, standby.power, standby.std, standby.still_seconds
        ),
    )


def totals_json(summaries: Sequence[EnergySummary]) -> dict[str, Any]:
    """Sums over recordings of one model, in the form of `EnergySummary.as_json`.

    Standard deviations are summed too: the model's errors are the same in all recordings.
    The measured energy is None where any recording lacks it, and the wall's source is the
    least certain one. There is no entry "session". A serial number that differs between
    the recordings is None.
    """
    contents = []
    warnings: dict[str, None] = {}
    contradictions = []
    for summary in summaries:
        content = plain(summary.as_json())
        contents.append({key: content[key] for key in content if key not in _NOT_SUMMED})
        warnings |= dict.fromkeys(summary.warnings)
        contradictions += [each.as_json() for each in summary.contradictions]
    return {
        **_summed("", contents),
        **WallEnergy.summed([summary.wall for summary in summaries]).as_json(),
        **_source_json(summaries),
        "warnings": tuple(warnings),
        "contradictions": contradictions,
        "serials": common_serials([summary.serials for summary in summaries]),
    }


_NOT_SUMMED = (
    "session", "warnings", "contradictions", "serials", "wall_source", "total_source",
    "total_measured_share", "explained_share",
)  # fmt: skip
"""Entries of JSON output that are no sums over recordings."""


def _summed(name: str, values: Sequence[Any]) -> Any:
    """Sum of entries of this name of several recordings, part by part; None where one lacks it.

    Names come from the first recording; efficiencies are ratios of the sums.
    """
    first = values[0]
    if isinstance(first, dict):
        sums = {key: _summed(key, [value[key] for value in values]) for key in first}
        if "efficiency" in sums:
            mechanical = np.atleast_1d(sums["mechanical_energy"])
            electrical = np.atleast_1d(sums["electrical_energy"])
            sums["efficiency"] = float(efficiency(mechanical, electrical)[0])
        return sums
    if isinstance(first, list):
        return [_summed(name, parts) for parts in zip(*values, strict=True)]
    if name in ("name", "efficiency"):
        return first
    return None if None in values else sum(values)


def _source_json(summaries: Sequence[EnergySummary]) -> dict[str, Any]:
    """Source of the sum of the totals, and the share of the sum that the model explains."""
    seconds = sum(each.duration for each in summaries)
    measured = sum(each.total_source.share * each.duration for each in summaries)
    source = TotalSource.of(measured, seconds)
    explained = explained_share(
        sum(each.measured for each in summaries),
        sum(each.unexplained for each in summaries),
    )
    return {
        "total_source": source.name,
        "total_measured_share": source.share,
        "explained_share": explained,
    }


def common_serials(serials: Sequence[Mapping[str, str | None]]) -> dict[str, str | None]:
    """The serial numbers that several recordings have in common, None where they differ."""
    found: dict[str, str | None] = {}
    for name in ("model", "recording"):
        values = {each.get(name) for each in serials}
        found[name] = values.pop() if len(values) == 1 else None
    return found
