# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Powers and energies of a recording.

Clochiatti et al., Robotica 2024, eq. 24-26 and Table VIII: electrical energy is the
integral of the motors' electrical powers, mechanical energy that of motor speed times
motor torque, and the efficiency their ratio. Integrals are trapezoidal on the
controller's clock; gaps are not bridged.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from ur_energy_model.codec import plain
from ur_energy_model.consistency.arm_type import FIELDS as ARM_TYPE_FIELDS
from ur_energy_model.consistency.contradiction import Contradiction, refuse
from ur_energy_model.consistency.meter_readings import READING_FIELDS
from ur_energy_model.consistency.recording_check import RecordingCheck
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.meter import CONFIDENCE, EnergyMeter, efficiency, interval
from ur_energy_model.energy.powers import (
    FIELDS,
    QUANTITIES,
    ArmState,
    Channels,
    PowerOptions,
    PowerTable,
    TotalSource,
    energy_json,
    explained_share,
)
from ur_energy_model.energy.telemetry_checks import (
    MatchedModel,
    check_robot,
    check_width,
    doubt_about_arm,
    model_of_recording,
    serials,
)
from ur_energy_model.energy.wall import RecordedWall, WallEnergy
from ur_energy_model.errors import InputError, RecordingError
from ur_energy_model.files import new_file
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_info
from ur_energy_model.telemetry.clock import ClockCheck
from ur_energy_model.telemetry.plausibility import REASON, REMEDY, OfflineSimulatorCheck
from ur_energy_model.telemetry.samples import Telemetry, repetition
from ur_energy_model.typing import Array, Progress


class SessionStandby(NamedTuple):
    """Standby power of a session.

    Attributes:
        anchored: whether the recording has shown it; else it is the model's.
        standby: the power [W].
        standby_std: its standard deviation [W].
        still_seconds: settled standstill that has shown it [s].
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
        names: of the joints, n.
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
        driver: of all motor drivers [J].
        standby: of the whole arm [J].
        regeneration: what the supply cannot take back, stored or burnt [J].
        supply: total at the supply, measured where bus power is, else modelled [J].
        supply_std: standard deviation of `supply` [J].
        total_source: where `supply` comes from.
        model: modelled energy at the supply, the sum of all parts above [J].
        model_std: standard deviation of `model` [J].
        unexplained: `supply` less `model` [J].
        unexplained_std: standard deviation of `unexplained` [J].
        bus: measured energy at the supply [J]; None where bus power is incomplete.
        measured: measured part of `supply`, that of the time in which bus power is
            known [J].
        wall: energy at the mains: control box and supply included.
        state_time: time in each state [s].
        state_energy: energy of the whole arm in each state [J].
        session: standby power of the session.
        warnings: for the user, one line each.
        contradictions: statements about the recording that it does not agree with; also
            in `warnings`, in words.
        serials: of the arms of model and recording, see `telemetry_checks.serials`.
        controller_constants: torque constants that the recording's controller states.
        same_arm: whether these are the model's; None where unknown.
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
        calculator: after the last sample.
        meter: of the channels of the calculator.
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

    Names are those of the first recording, and efficiencies the ratio of the sums.
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
    """Where the sum of the totals comes from, and the share of it that the model explains."""
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


# Powers of a recording over time as a CSV file.

ARM_COLUMNS = (
    "driver_power", "standby_power", "regeneration_power", "total_power", "total_power_std",
    "electrical_energy", "bus_power", "model_power", "model_power_std", "unexplained_power",
)  # fmt: skip


@contextmanager
def new_power_csv(path: str | Path, channels: Channels) -> Iterator[PowerCsv]:
    """A CSV file of powers that appears only once it is complete; InputError if it cannot be."""
    try:
        with new_file(path) as file:
            yield PowerCsv(file, channels)
    except OSError as error:
        raise InputError(
            path, f"cannot be written ({error.strerror})", "choose another file for --csv"
        ) from error


class PowerCsv:
    """Writes powers to an open CSV file, a row per sample, in order of time.

    Columns are the time, each quantity of each joint, and ARM_COLUMNS.

    Args:
        file: open for writing.
        channels: of the powers.
    """

    def __init__(self, file: IO[str], channels: Channels) -> None:
        self._writer = csv.writer(file, lineterminator="\n")
        self._channels = channels
        joints: list[str] = []
        for quantity in QUANTITIES:
            joints += [f"{quantity}_{j}" for j in range(len(channels.joints))]
        self._writer.writerow(["timestamp", *joints, *ARM_COLUMNS])

    def append(self, table: PowerTable, meter: EnergyMeter) -> None:
        """Append the powers of a batch, which the meter has integrated last."""
        channels = self._channels
        power = table.power
        arm = channels.arm
        total = power[:, arm["total"]]
        steps = table.steps.bridged
        columns = np.column_stack(
            [
                table.samples.time,
                power[:, : arm["total"]],
                power[:, [arm[name] for name in ("driver", "standby", "regeneration")]],
                total,
                channels.deviations_of_total(power, over=steps),
                energy_at(steps, total, meter.reading.net[arm["total"]]),
                np.where(power[:, arm["measured"]] > 0.0, power[:, arm["bus"]], np.nan),
                power[:, arm["model"]],
                channels.deviations_of_model(power, over=steps),
                power[:, arm["unexplained"]],
            ]
        )
        for row in columns:
            cells = ["" if np.isnan(value) else f"{value:.9g}" for value in row]
            self._writer.writerow(cells)


def energy_at(steps: Array, power: Array, end: float) -> Array:
    """Energy up to every sample [samples], J.

    Args:
        steps: bridged steps to the samples [samples], s.
        power: at the samples [samples], W.
        end: energy up to the last sample [J].
    """
    gains = 0.5 * (power[1:] + power[:-1]) * steps[1:]
    return np.asarray(end - np.append(np.cumsum(gains[::-1])[::-1], 0.0))


_CONTRADICTION = 3.0
"""Standard deviations between measured and modelled energy that indicate another arm."""


MOST_KEPT = 50_000
"""Samples up to which a recording is kept in memory between two passes over it, some 25 MB."""


class Rereading:
    """Batches of a recording for several passes over it.

    Those of a short recording are kept in memory; a longer one is read again in each pass.

    Args:
        read: begins to read the recording from its begin.
    """

    def __init__(self, read: Callable[[], Iterator[Telemetry]]) -> None:
        self._read = read
        self._kept: list[Telemetry] | None = None

    def __iter__(self) -> Iterator[Telemetry]:
        if self._kept is not None:
            yield from self._kept
            return
        samples = 0
        kept = list[Telemetry]()
        for batch in self._read():
            samples += len(batch)
            if samples <= MOST_KEPT:
                kept.append(batch)
            yield batch
        if samples <= MOST_KEPT:
            self._kept = kept


def recording_powers(
    calculator: EnergyCalculator,
    bag: str | Path,
    *,
    fields: tuple[str, ...] = FIELDS,
    progress: Progress | None = None,
) -> Iterator[PowerTable]:
    """Powers of all samples of a recording, batch by batch, in constant memory.

    The standby power of its sessions is followed in a first pass (`follow_session`).

    Args:
        calculator: of the arm; keeps the state of the session.
        bag: recording.
        fields: RTDE fields to read.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    read = partial(_checked, Path(bag), calculator.robot, fields, progress)
    batches = Rereading(read)
    calculator.follow_session(batches)
    for batch in batches:
        table = calculator(batch)
        if table is not None:
            yield table


def _checked(
    bag: Path,
    robot: RobotDescription,
    fields: tuple[str, ...],
    progress: Progress | None,
) -> Iterator[Telemetry]:
    """Batches of a recording with these fields, checked while they are read.

    Raises:
        UrEnergyError: the recording cannot be used; at its end, also where it contradicts
            what it states.
    """
    further = tuple(name for name in ARM_TYPE_FIELDS if name not in fields)
    samples = 0
    clock = ClockCheck(bag)
    check = RecordingCheck()
    for batch in iterate_bag(bag, (*fields, *further)):
        if not len(batch):
            continue
        clock.update(batch.time)
        if samples == 0:
            check_robot(bag, batch.info, robot)
        of_joints = ["actual_qd"]
        if "actual_current" in batch:
            of_joints.append("actual_current")
        check_width(bag, batch, tuple(of_joints), robot.dof)
        samples += len(batch)
        check.observe(batch)
        if progress is not None:
            progress(float("nan"), f"reading {bag.name}: {samples} samples")
        wanted = {name: batch[name] for name in batch.columns if name not in further}
        yield replace(batch, columns=wanted)
    if samples == 0:
        raise RecordingError(bag, "holds no samples", "record again")
    clock.finish()
    refuse(bag, check.contradictions(robot))


def measured_powers(
    calculator: EnergyCalculator,
    bag: str | Path,
    *,
    fields: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> Iterator[PowerTable]:
    """Powers as from `recording_powers`, of a recording whose currents were measured.

    Args:
        calculator: of the arm; keeps the state of the session.
        bag: recording.
        fields: RTDE fields to read beside those of the calculator.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used; at its end, a recording without a usable
            sample, or one of a simulator that computes no currents.
    """
    counted = 0
    check = OfflineSimulatorCheck()
    wanted = tuple(dict.fromkeys((*FIELDS, "target_current", *fields)))
    for table in recording_powers(calculator, bag, fields=wanted, progress=progress):
        check.update(table.samples)
        counted += len(table.samples)
        yield table
    if not counted:
        raise RecordingError(
            bag, "contains no sample whose values are all finite", "record again"
        )
    if check.found:
        raise RecordingError(bag, REASON, REMEDY)


def estimate_energy(
    model: EnergyModel,
    bag: str | Path,
    *,
    options: PowerOptions | None = None,
    series: str | Path | None = None,
    same_arm: bool = False,
    matched: MatchedModel | None = None,
    fields: tuple[str, ...] = (),
    observe: Callable[[Channels, PowerTable], None] | None = None,
    progress: Progress | None = None,
) -> EnergySummary:
    """Energies of a recording, in constant memory.

    Args:
        model: of the arm.
        bag: recording.
        options: how powers are computed.
        series: CSV file for the powers over time, or None.
        same_arm: see `model_of_arm`; only used where `matched` is None.
        matched: the model for the arm of the recording; None to match it here.
        fields: RTDE fields that `observe` uses beside those of the calculator.
        observe: called with the powers of each batch, in order, and their layout.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    info = read_info(bag)
    if matched is None:
        matched = model_of_recording(model, bag, same_arm=same_arm)
    calculator = EnergyCalculator(matched.model, load_robot(model.robot), options)
    meter = EnergyMeter(len(calculator.channels))
    bus_complete = True
    wall = RecordedWall(calculator.channels, calculator.robot)
    with ExitStack() as files:
        rows = None
        if series is not None:
            rows = files.enter_context(new_power_csv(series, calculator.channels))
        wanted = (*READING_FIELDS, *fields)
        for table in measured_powers(calculator, bag, fields=wanted, progress=progress):
            table.integrate(meter)
            wall.add(table)
            if observe is not None:
                observe(calculator.channels, table)
            bus_complete &= table.bus_measured
            if rows is not None:
                rows.append(table, meter)
    found = summarise(calculator, meter, bus_complete, wall)
    contradictions = [*found.contradictions, *matched.contradictions]
    if found.total_source.name == "measured":
        contradictions += _bus_contradictions(
            found.supply, found.model, found.unexplained_std
        )
    warning = matched.warning
    if not matched.decided:
        session = calculator.model_in_session().session
        warning = doubt_about_arm(model, session, _misfits(found))
    warnings = [each.words() for each in contradictions]
    if warning is not None:
        warnings.append(warning)
    warnings += repetition(found.repeated)
    return replace(
        found,
        warnings=tuple(warnings),
        contradictions=tuple(contradictions),
        serials=serials(model, info),
        controller_constants=matched.constants,
        same_arm=matched.same_arm,
    )


def _misfits(found: EnergySummary) -> list[str]:
    """What in the energies of a recording contradicts the model, in words."""
    if abs(found.unexplained) <= _CONTRADICTION * found.unexplained_std:
        return []
    measured = f"{found.supply:.0f} J were measured at the supply"
    half = CONFIDENCE * found.model_std
    return [f"{measured}, {found.model:.0f} ± {half:.0f} J modelled"]


_FACTOR = 1.5
"""Measured over modelled energy, or the inverse, from which a warning is due: generic models of
real arms are within 1.1 with the standby power followed, and within 1.5 without."""
_CERTAIN = 3.0  # standard deviations of the difference beside it


def _bus_contradictions(
    measured: float, modelled: float, std: float
) -> tuple[Contradiction, ...]:
    """The contradiction between measured and modelled energy of the same time, if there is one.

    The measured total does not depend on the model, and no model is good enough to show a
    small error in it. A factor between the two that is larger than the error of any model
    shows a wrong unit, a wrong column, or a model or payload of another arm.

    Args:
        measured: integral of voltage times current of the robot bus [J].
        modelled: sum of the modelled parts over the same time [J].
        std: standard deviation of their difference [J].
    """
    far = measured > _FACTOR * modelled or modelled > _FACTOR * max(measured, 0.0)
    if not far or abs(measured - modelled) <= _CERTAIN * std:
        return ()
    found = Contradiction(
        subject="bus_power",
        stated=f"bus voltage and current make {measured:.0f} J",
        shown=f"the model explains {modelled:.0f} J",
        evidence=f"{abs(measured - modelled) / std:.0f} standard deviations apart",
        remedy="check the units of actual_robot_voltage [V] and actual_robot_current [A], and that "
        "the model is of this arm and payload",
    )
    return (found,)
