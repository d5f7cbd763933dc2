# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Powers and energies of a recording: passes over its samples, and the powers as CSV.

Energies are trapezoidal integrals of the powers on the controller's clock; gaps are not
bridged. The result of a recording is an `EnergySummary`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO

import numpy as np

from ur_energy_model.consistency.arm_samples import FIELDS as ARM_TYPE_FIELDS
from ur_energy_model.consistency.contradiction import Contradiction, refuse
from ur_energy_model.consistency.meter_readings import READING_FIELDS
from ur_energy_model.consistency.recording_check import RecordingCheck
from ur_energy_model.consistency.torque_field import CURRENT_FIELD, TORQUE_FIELD
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.energy_summary import EnergySummary, summarise
from ur_energy_model.energy.matched_model import (
    MatchedModel,
    check_robot,
    doubt_about_arm,
    model_of_recording,
    serials,
)
from ur_energy_model.energy.meter import CONFIDENCE, EnergyMeter
from ur_energy_model.energy.powers import (
    FIELDS,
    QUANTITIES,
    Channels,
    PowerOptions,
    PowerTable,
)
from ur_energy_model.energy.recorded_torque import has_torques_only, with_known_torques
from ur_energy_model.energy.telemetry_checks import check_width
from ur_energy_model.energy.wall import RecordedWall
from ur_energy_model.errors import InputError, RecordingError
from ur_energy_model.files import new_file
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_info
from ur_energy_model.telemetry.clock import ClockCheck
from ur_energy_model.telemetry.plausibility import REASON, REMEDY, OfflineSimulatorCheck
from ur_energy_model.telemetry.samples import Telemetry, repetition
from ur_energy_model.typing import Array, Progress

# Powers of a recording over time as a CSV file.

ARM_COLUMNS: tuple[str, ...] = (
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
        file: file that is open for writing.
        channels: channels of the powers.
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
        power: powers at the samples [samples], W.
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

    The batches of a short recording are kept in memory; a longer recording is read again in
    each pass.

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

    The standby power of its sessions is followed in a first pass (`follow_session`). Of a
    recording without motor currents, joint torques are used if it is known what they
    contain (`recorded_torque`).

    Args:
        calculator: calculator of the arm; keeps the state of the session.
        bag: recording.
        fields: RTDE fields to read.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    read: Callable[[], Iterator[Telemetry]]
    if calculator.options.method != "motion" and has_torques_only(bag):
        wanted = (*fields, TORQUE_FIELD)
        read = partial(_checked, Path(bag), calculator.robot, wanted, progress)
        read = with_known_torques(bag, read, calculator)
    else:
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
        of_joints += [name for name in (CURRENT_FIELD, TORQUE_FIELD) if name in batch]
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
        calculator: calculator of the arm; keeps the state of the session.
        bag: recording.
        fields: RTDE fields to read beside the fields of the calculator.
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
        model: model of the arm.
        bag: recording.
        options: how powers are computed.
        series: CSV file for the powers over time, or None.
        same_arm: whether the recording is of the arm of the model (see `model_of_arm`);
            only used where `matched` is None.
        matched: the model for the arm of the recording; None to match it here.
        fields: RTDE fields that `observe` uses beside the fields of the calculator.
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
    if calculator.torque_note is not None:
        warnings.append(calculator.torque_note)
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
