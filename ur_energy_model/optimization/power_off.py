"""Switching the arm off in long waits: what it takes on this arm, where a recording shows it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ur_energy_model.energy.meter import integrate
from ur_energy_model.telemetry.modes import BACKDRIVE, BRAKES_RELEASED
from ur_energy_model.telemetry.runs import equal_runs
from ur_energy_model.telemetry.samples import Telemetry


@dataclass(frozen=True)
class Switching:
    """Brakes on or power off, and back.

    Attributes:
        time: that both changes take together [s].
        energy: that they take at the supply [J].
        power: in between [W].
    """

    time: float
    energy: float
    power: float

    def wait_energy(self, duration: float) -> float:
        """Energy of a wait [s] that is spent switched off [J]; infinite where it is too short."""
        if duration <= self.time:
            return float("inf")
        return self.energy + self.power * (duration - self.time)


def recorded_switching(telemetry: Telemetry) -> Switching | None:
    """Mean of the complete switchings in a recording; None without one, or without bus power.

    The state in between is the lowest robot_mode reached; everything else between two stretches
    of running counts as change.
    """
    power, modes = telemetry.bus_power, telemetry.columns.get("robot_mode")
    if power is None or modes is None:
        return None
    off = np.asarray(~np.isin(modes, BRAKES_RELEASED) & (modes < BACKDRIVE))
    found = []
    for run in equal_runs(off):
        if not off[run.start] or run.start == 0 or run.stop == len(off):
            continue
        rows = slice(run.start - 1, run.stop + 1)
        time, there, drawn = telemetry.time[rows], modes[rows], power[rows]
        low = there == there[1:-1].min()
        steps = np.diff(time, append=time[-1])
        low_time = float(steps[low].sum())
        low_power = float(drawn[low].mean())
        whole = float(integrate(time, drawn).net[0])
        found.append((time[-1] - time[0] - low_time, whole - low_power * low_time, low_power))
    if not found:
        return None
    return Switching(*(float(value) for value in np.mean(found, axis=0)))
