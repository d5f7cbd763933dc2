"""Powers and energies of a recording.

Clochiatti et al., Robotica 2024, eq. 24-26 and Table VIII: electrical energy is the integral of
the motors' electrical powers, mechanical energy that of motor speed times motor torque, and the
efficiency their ratio. Integrals are trapezoidal on the controller's clock; gaps are not bridged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.energy_summary import EnergySummary, summarise
from ur_energy_model.energy.meter import CONFIDENCE, EnergyMeter
from ur_energy_model.energy.power_csv import new_power_csv
from ur_energy_model.energy.power_options import FIELDS, PowerOptions
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.energy.recording_checks import (
    check_robot,
    check_width,
    doubt_about_arm,
    model_of_arm,
    serials,
)
from ur_energy_model.errors import RecordingError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.reader import iterate_bag, read_info
from ur_energy_model.telemetry.clock_check import ClockCheck
from ur_energy_model.telemetry.offline_simulator import REASON, REMEDY, OfflineSimulatorCheck
from ur_energy_model.telemetry.samples import repetition
from ur_energy_model.typing import Progress

_CONTRADICTION = 3.0
"""Standard deviations between measured and modelled energy that indicate another arm."""


def recording_powers(
    calculator: EnergyCalculator,
    bag: str | Path,
    *,
    fields: tuple[str, ...] = FIELDS,
    progress: Progress | None = None,
) -> Iterator[PowerTable]:
    """Powers of all samples of a recording, batch by batch, in constant memory.

    Args:
        calculator: of the arm; keeps the state of the session.
        bag: recording.
        fields: RTDE fields to read.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    bag, robot, samples = Path(bag), calculator.robot, 0
    clock = ClockCheck(bag)
    for batch in iterate_bag(bag, fields):
        if not len(batch):
            continue
        clock.update(batch.time)
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
    clock.finish()


def measured_powers(
    calculator: EnergyCalculator,
    bag: str | Path,
    *,
    fields: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> Iterator[PowerTable]:
    """Powers of a recording whose currents were measured, as `recording_powers` returns them.

    Args:
        calculator: of the arm.
        bag: recording.
        fields: RTDE fields to read besides those of the calculator.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used; at its end, a recording without a usable sample,
            or one of a simulator that computes no currents.
    """
    counted, check = 0, OfflineSimulatorCheck()
    wanted = tuple(dict.fromkeys((*FIELDS, "target_current", *fields)))
    for table in recording_powers(calculator, bag, fields=wanted, progress=progress):
        check.update(table.samples)
        counted += len(table.samples)
        yield table
    if not counted:
        raise RecordingError(bag, "contains no sample whose values are all finite", "record again")
    if check.found:
        raise RecordingError(bag, REASON, REMEDY)


def estimate_energy(
    model: EnergyModel,
    bag: str | Path,
    *,
    options: PowerOptions | None = None,
    series: str | Path | None = None,
    same_arm: bool = False,
    progress: Progress | None = None,
) -> EnergySummary:
    """Energies of a recording, equal to the live estimator's, in constant memory.

    Args:
        model: of the arm.
        bag: recording.
        options: how powers are computed.
        series: CSV file for the powers over time, or None.
        same_arm: see `model_of_arm`.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    info = read_info(bag)
    matched, warning = model_of_arm(model, info, same_arm=same_arm)
    calculator = EnergyCalculator(matched, load_robot(model.robot), options)
    meter = EnergyMeter(len(calculator.channels))
    bus_complete = True
    with ExitStack() as files:
        rows = None
        if series is not None:
            rows = files.enter_context(new_power_csv(series, calculator.channels))
        for table in measured_powers(calculator, bag, progress=progress):
            meter.integrate_table(table)
            bus_complete &= table.bus_measured
            if rows is not None:
                rows.append(table, meter)
    found = summarise(calculator, meter, bus_complete)
    if warning is None and not same_arm:
        session = calculator.model_in_session().session
        warning = doubt_about_arm(model, info, session, _misfits(found))
    warnings = () if warning is None else (warning,)
    return replace(
        found, warnings=(*warnings, *repetition(found.repeated)), serials=serials(model, info)
    )


def _misfits(found: EnergySummary) -> list[str]:
    """In words, where the measured energy at the supply contradicts the modelled one."""
    if found.bus is None or abs(found.supply - found.bus) <= _CONTRADICTION * found.supply_std:
        return []
    half = CONFIDENCE * found.supply_std
    return [
        f"{found.bus:.0f} J were measured at the supply, {found.supply:.0f} ± {half:.0f} J modelled"
    ]
