"""What energy counters of an arm can hold: finite, and no more than its time allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.rated_limits import MOST_POWER
from ur_energy_model.typing import Array

LONGEST_TIME = 1.0e10
"""Time that no counter reaches [s]: three centuries."""
ALLOWANCE = 60.0
"""Accounted time that counts in addition, for corrections [s]."""


def check_reading(reading: MeterReading) -> None:
    """Refuse counters that no arm can have.

    Raises:
        ValueError: not finite, negative or endless time, or more energy than MOST_POWER gives.
    """
    energies = np.concatenate([reading.net, reading.consumed])
    times = np.array([reading.accounted, reading.unaccounted])
    if not (np.isfinite(energies).all() and np.isfinite(times).all()):
        raise ValueError("counters that are not finite")
    if not ((times >= 0.0) & (times <= LONGEST_TIME)).all():
        raise ValueError("impossible times")
    largest = float(np.abs(energies).max(initial=0.0))
    if largest > MOST_POWER * (reading.accounted + ALLOWANCE):
        raise ValueError(f"{largest:.3g} J in {reading.accounted:.3g} s, more than any arm takes")


def check_highest(highest: Array, lifetime: MeterReading) -> Array:
    """Highest net energies [channels], J, that are possible beside these counters.

    Raises:
        ValueError: they are not.
    """
    if highest.shape != lifetime.net.shape:
        raise ValueError("wrong number of highest energies")
    check_reading(replace(lifetime, net=highest))
    return highest


def check_time(seconds: float) -> float:
    """A controller time that is possible.

    Raises:
        ValueError: it is not.
    """
    if not abs(seconds) <= LONGEST_TIME:
        raise ValueError(f"time {seconds:.3g} s")
    return seconds
