"""Powers and energies of a recording, at the samples as recorded.

Equations: Clochiatti et al., Robotica 2024 (power and energy, eq. 19-26) and Heredia et al., EcBot
(power of the whole arm, eq. 13-21).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.identification.signals import sample_period
from ur_energy_model.model.energy import CONFIDENCE, DEFAULT_GAP_LIMIT, trapezoid
from ur_energy_model.model.energy_model import EnergyModel, Prediction
from ur_energy_model.model.measured_powers import MeasuredPowers
from ur_energy_model.telemetry.samples import Telemetry

Array = NDArray[np.float64]
Breaks = NDArray[np.int_]

FIELDS: tuple[str, ...] = (
    "actual_qd", "actual_current", "joint_temperatures", "actual_robot_voltage",
    "actual_robot_current", "robot_mode",
)  # fmt: skip
"""Fields that powers follow from."""
CHUNK = 20_000
"""Samples worked on at a time; bounds the memory of the sensitivities."""


@dataclass(frozen=True)
class Powers:
    """Powers and their energies over one recording; W and J.

    Attributes:
        time: since the first sample [n], s.
        breaks: indices of samples that follow a gap.
        electrical, mechanical, copper, friction: of the motors [n, joints].
        electrical_half_width: of the 95 % interval [n, joints].
        driver, standby, total: whole arm [n].
        total_half_width: of the 95 % interval [n].
        bus: measured voltage times current [n], None where it was not recorded.
        energy: integral of each joint's electrical power since the start [n, joints].
        total_energy, bus_energy: the same for the arm [n].
        electrical_energy, mechanical_energy, friction_energy, copper_energy: [joints].
        driver_energy, standby_energy: whole arm.
        energy_half_width: of the electrical energies' 95 % intervals [joints].
        total_energy_half_width: of the total energy's.
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
    energy_half_width: Array
    total_energy_half_width: float

    @property
    def duration(self) -> float:
        """Time that energy was integrated over, gaps left out [s]."""
        return float(_bridged_steps(self.time).sum())


def powers_of(model: EnergyModel, telemetry: Telemetry) -> Powers:
    """Powers from measured currents, chunk by chunk."""
    time = telemetry.time - telemetry.time[0]
    speed, measured = telemetry["actual_qd"], telemetry["actual_current"]
    temperature = telemetry.columns.get("joint_temperatures")
    n, d = speed.shape
    steps = _bridged_steps(time)
    electrical, mechanical, copper, friction, spread = (np.empty((n, d)) for _ in range(5))
    driver, standby, total, total_spread = (np.empty(n) for _ in range(4))
    integrals: list[Array] = []
    powers = MeasuredPowers(model)
    for part in chunks(n):
        shown = powers(
            time[part], speed[part], measured[part],
            temperature=None if temperature is None else temperature[part],
        )  # fmt: skip
        electrical[part], mechanical[part] = shown.electrical_power, shown.mechanical_power
        copper[part], friction[part] = shown.copper_loss, shown.friction_loss
        driver[part], standby[part] = shown.driver_power, shown.standby_power
        total[part] = shown.total_power
        spread[part], total_spread[part] = shown.electrical_power_std, shown.total_power_std
        integrals.append(_integrals(shown, steps, part))
    bus = telemetry.bus_power
    errors = np.sum(integrals, axis=0)
    return Powers(
        time=time,
        breaks=breaks_of(time),
        electrical=electrical,
        mechanical=mechanical,
        copper=copper,
        friction=friction,
        electrical_half_width=CONFIDENCE * spread,
        driver=driver,
        standby=standby,
        total=total,
        total_half_width=CONFIDENCE * total_spread,
        bus=bus,
        energy=cumulative(steps, electrical),
        total_energy=cumulative(steps, total),
        bus_energy=None if bus is None else cumulative(steps, bus),
        electrical_energy=trapezoid(steps, electrical),
        mechanical_energy=trapezoid(steps, mechanical),
        friction_energy=trapezoid(steps, friction),
        copper_energy=trapezoid(steps, copper),
        driver_energy=float(trapezoid(steps, driver)),
        standby_energy=float(trapezoid(steps, standby)),
        energy_half_width=CONFIDENCE * np.linalg.norm(errors[:d], axis=1),
        total_energy_half_width=float(CONFIDENCE * np.linalg.norm(errors[d:])),
    )


def _integrals(shown: Prediction, steps: Array, part: slice) -> Array:
    """Time integrals of the sensitivities of one chunk, joints first, then the whole arm.

    Rectangles with the mean of the neighbouring steps: the trapezoid, split by sample.
    """
    weight = 0.5 * (np.append(steps, 0.0) + np.insert(steps, 0, 0.0))[part]
    joints = np.tensordot(weight, shown.sensitivity, axes=1)
    whole = weight @ shown.total_sensitivity
    out = np.zeros((len(joints) + 1, max(joints.shape[1], len(whole))))
    out[:-1, : joints.shape[1]] = joints
    out[-1, : len(whole)] = whole
    return out


def cumulative(steps: Array, power: Array) -> Array:
    """Energy since the start: trapezoid of power [n] or [n, k] over steps [n - 1]."""
    out = np.zeros_like(power)
    mean = 0.5 * (power[1:] + power[:-1])
    out[1:] = np.cumsum(mean * (steps if power.ndim == 1 else steps[:, None]), axis=0)
    return out


def _bridged_steps(time: Array) -> Array:
    """Steps between samples, zero where they are no steps to integrate over [n - 1]."""
    steps = np.diff(time)
    return np.where((steps > 0) & (steps <= DEFAULT_GAP_LIMIT), steps, 0.0)


def breaks_of(time: Array) -> Breaks:
    """Samples before which a curve over time [samples] is broken: indices [gaps]."""
    steps = np.diff(time)
    limit = max(DEFAULT_GAP_LIMIT, 3 * sample_period(time))
    return np.flatnonzero((steps <= 0) | (steps > limit)) + 1


def chunks(n: int) -> list[slice]:
    """Slices of n samples, CHUNK at most each."""
    return [slice(start, min(start + CHUNK, n)) for start in range(0, n, CHUNK)]
