"""Powers and energies of a recording at its samples, for the figures of a report.

Equations: Clochiatti et al., Robotica 2024 (power and energy, eq. 19-26) and Heredia et al., EcBot
(power of the whole arm, eq. 13-21).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.gaps import bridged_steps
from ur_energy_model.energy.meter import CONFIDENCE, EnergyMeter
from ur_energy_model.energy.power_csv import energy_at
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.errors import RecordingError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

Breaks = NDArray[np.int_]
CHUNK = 20_000
"""Samples processed at a time, which bounds the memory of the sensitivities."""


@dataclass(frozen=True)
class Powers:
    """Powers [W] and energies [J] of one recording.

    Attributes:
        time: since the first sample [n], s.
        breaks: indices of samples after a gap.
        electrical, mechanical, copper, friction: of the motors [n, joints].
        electrical_half_width: of the 95 % interval [n, joints].
        driver, standby, total: whole arm [n].
        total_half_width: of the 95 % interval [n].
        bus: measured voltage times current [n]; None if not recorded.
        energy: integral of each joint's electrical power since the start [n, joints].
        total_energy, bus_energy: the same for the arm [n].
        electrical_energy, mechanical_energy, friction_energy, copper_energy: [joints].
        driver_energy, standby_energy, regeneration_energy: whole arm.
        energy_half_width: of the electrical energies' 95 % intervals [joints].
        total_energy_half_width: of the total energy's.
        duration: time that energy was integrated over, without gaps [s].
    """

    time: Array
    breaks: Breaks
    electrical: Array
    mechanical: Array
    copper: Array
    friction: Array
    electrical_half_width: Array
    driver: Array
    standby: Array
    total: Array
    total_half_width: Array
    bus: Array | None
    energy: Array
    total_energy: Array
    bus_energy: Array | None
    electrical_energy: Array
    mechanical_energy: Array
    friction_energy: Array
    copper_energy: Array
    driver_energy: float
    standby_energy: float
    regeneration_energy: float
    energy_half_width: Array
    total_energy_half_width: float
    duration: float


def recording_powers(model: EnergyModel, telemetry: Telemetry) -> Powers:
    """Powers and energies of a recording, computed like those of the live estimator.

    Args:
        model: of the arm.
        telemetry: the recording, with those of the calculator's fields that it has.

    Raises:
        RecordingError: no sample can be used.
    """
    calculator = EnergyCalculator(model, load_robot(model.robot))
    meter = EnergyMeter(len(calculator.channels))
    pieces = []
    for start in range(0, len(telemetry), CHUNK):
        table = calculator(telemetry.cut(slice(start, start + CHUNK)))
        if table is not None:
            meter.integrate_table(table)
            pieces.append(_piece(table, calculator.channels, meter.reading.net))
    if not pieces:
        raise RecordingError(
            telemetry.info.source, "contains no sample with finite values", "record again"
        )
    time, steps, columns, spread, energy = (
        np.concatenate(parts) for parts in zip(*pieces, strict=True)
    )
    channels, net = calculator.channels, meter.reading.net
    joint, arm = channels.per_joint, channels.arm
    joint_std, total_std = channels.deviations(net)
    bus = telemetry.bus_power
    measured = bus is not None and bool(np.isfinite(bus).all())
    return Powers(
        time=time - time[0],
        breaks=np.flatnonzero(steps[1:] == 0.0) + 1,
        electrical=columns[:, joint["electrical_power"]],
        mechanical=columns[:, joint["mechanical_power"]],
        copper=columns[:, joint["copper_loss"]],
        friction=columns[:, joint["friction_loss"]],
        electrical_half_width=CONFIDENCE * spread[:, :-1],
        driver=columns[:, arm["driver"]],
        standby=columns[:, arm["standby"]],
        total=columns[:, arm["total"]],
        total_half_width=CONFIDENCE * spread[:, -1],
        bus=columns[:, arm["bus"]] if measured else None,
        energy=energy[:, :-2],
        total_energy=energy[:, -2],
        bus_energy=energy[:, -1] if measured else None,
        electrical_energy=net[joint["electrical_power"]],
        mechanical_energy=net[joint["mechanical_power"]],
        friction_energy=net[joint["friction_loss"]],
        copper_energy=net[joint["copper_loss"]],
        driver_energy=float(net[arm["driver"]]),
        standby_energy=float(net[arm["standby"]]),
        regeneration_energy=float(net[arm["regeneration"]]),
        energy_half_width=CONFIDENCE * joint_std,
        total_energy_half_width=CONFIDENCE * total_std,
        duration=meter.reading.accounted,
    )


def _piece(table: PowerTable, channels: Channels, end: Array) -> tuple[Array, ...]:
    """Time, steps, powers, standard deviations and energies of a table.

    Args:
        table: of consecutive samples.
        channels: its layout.
        end: energies up to its last sample [channels], J.

    Returns:
        time [n] and steps [n], s; powers [n, channels without states and errors], W; standard
        deviations of the joints' electrical powers and the total's [n, joints + 1], W; energies of
        the joints, the total and the bus [n, joints + 2], J.
    """
    n, (each, _) = len(channels.joints), channels.errors
    first, power, steps = channels.sensitivity, table.power, table.steps.bridged
    joints = power[:, first : first + n * each].reshape(-1, n, each)
    spread = np.column_stack([np.linalg.norm(joints, axis=2), channels.deviations_of_total(power)])
    electrical, arm = channels.per_joint["electrical_power"], channels.arm
    shown = [*range(electrical.start, electrical.stop), arm["total"], arm["bus"]]
    energy = np.column_stack([energy_at(steps, power[:, k], end[k]) for k in shown])
    return table.samples.time, steps, power[:, : channels.state_energy].copy(), spread, energy


def gap_indices(time: Array) -> Breaks:
    """Indices of samples after a gap [gaps], for times of samples [samples], s."""
    return np.flatnonzero(bridged_steps(time)[1:] == 0.0) + 1
