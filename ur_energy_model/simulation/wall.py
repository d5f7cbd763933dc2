"""The mains side of a simulated robot: control box, 48 V supply, and a power meter in front."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ur_energy_model.simulation.commands import RobotMode
from ur_energy_model.simulation.parameters import constants
from ur_energy_model.typing import Array

_STREAM = 20261128
COUNTER_STEP = 3.6  # resolution of the meter's counter [J]: 1 mWh
SILENT_PERIODS, SILENT_SECONDS = 5.0, 10.0
"""A reading is held for so many update periods, and so many seconds at least."""


@dataclass(frozen=True)
class SimulatedWall:
    """True power at the mains, and the meter that measures it.

    wall = box(mode) + proportional p + quadratic p^2, with p the power at the 48 V supply. The part
    of the supply's losses that does not depend on p belongs to the box.
    """

    box: tuple[float, float, float]  # arm off, on with brakes closed, brakes released [W]
    proportional: float = 1.1
    quadratic: float = 1.5e-4  # 1/W
    period: float = 1.0  # between updates of the meter [s]
    averaging: float = 1.0  # time over which a reading is averaged [s]
    delay: float = 1.0  # from the end of this time to the reading [s]
    resolution: float = 1.0  # of a reading [W]
    noise: float = 0.0  # one standard deviation of a reading [W]
    missed: float = 0.0  # share of the readings that never arrive
    silences_per_hour: float = 0.0  # times without any reading
    silence_seconds: tuple[float, float] = (20.0, 60.0)  # shortest and longest of them
    seed: int = 0  # of noise and dropouts

    def power(self, robot_mode: ArrayLike, bus_power: ArrayLike) -> Array:
        """Power at the mains [n], W, from RTDE robot modes [n] and the bus power [n], W."""
        on = np.searchsorted([RobotMode.POWER_ON, RobotMode.RUNNING], robot_mode, "right")
        bus = np.asarray(bus_power, dtype=float)
        return np.asarray(self.box)[on] + (self.proportional + self.quadratic * bus) * bus

    def readings(self, time: Array, power: Array) -> dict[str, Array]:
        """The meter's columns beside samples of the true power.

        Args:
            time: ascending [n], s; the power before the first sample is that of the first one.
            power: at the mains [n], W.

        Returns:
            wall_power, wall_energy and wall_reading [n], as `MeteredSource` adds them.
        """
        steps = 0.5 * np.diff(time) * (power[1:] + power[:-1])
        begin = time[0] - self.averaging - self.delay - self.period
        known = np.append(begin, time)
        energy = np.append((begin - time[0]) * power[0], np.append(0.0, np.cumsum(steps)))
        random = np.random.default_rng([self.seed, _STREAM])
        ends = np.arange(
            time[0] - self.delay - self.period * random.random(), time[-1], self.period
        )
        ends = ends[self._arrive(ends, random)]
        watts, joules = self.measured(ends, known, energy, random)
        arrival = ends + self.delay
        last = np.searchsorted(arrival, time, "right") - 1
        held = max(SILENT_PERIODS * self.period, SILENT_SECONDS)
        if not len(ends):
            last, arrival, watts, joules = np.full(len(time), -1), *np.full((3, 1), np.nan)
        silent = ~((last >= 0) & (time - arrival[last] <= held))
        return {
            "wall_power": np.where(silent, np.nan, watts[last]),
            "wall_energy": np.where(silent, np.nan, joules[last]),
            "wall_reading": last + 1.0,
        }

    def measured(
        self, ends: Array, time: Array, energy: Array, random: np.random.Generator
    ) -> tuple[Array, Array]:
        """Readings [m], W, and counter [m], J, of the averaging times that end at `ends` [m], s.

        `energy` is the energy at the mains since the start [n], J, at `time` [n], s.
        """
        joules, before = (np.interp(at, time, energy) for at in (ends, ends - self.averaging))
        watts = (joules - before) / self.averaging + self.noise * random.standard_normal(len(ends))
        if self.resolution:
            watts = self.resolution * np.round(watts / self.resolution)
        return watts, COUNTER_STEP * np.floor(joules / COUNTER_STEP)

    def _arrive(self, ends: Array, random: np.random.Generator) -> Array:
        """Which readings arrive [m]."""
        arrive = random.random(len(ends)) >= self.missed
        hours = (ends[-1] - ends[0]) / 3600.0 if len(ends) else 0.0
        count = random.poisson(self.silences_per_hour * hours)
        for start, seconds in zip(
            random.uniform(ends[0], ends[-1], count) if count else (),
            random.uniform(*self.silence_seconds, count),
            strict=True,
        ):
            arrive &= (ends < start) | (ends > start + seconds)
        return arrive


def draw_wall(seed: int) -> SimulatedWall:
    """The wall of arm number `seed`, with a meter of 1 W and 1 s that now and then drops out."""
    table, random = constants()["wall"], np.random.default_rng([seed, _STREAM, 1])
    off, supply, safety, proportional, quadratic, delay = (
        float(random.uniform(*table[name]))
        for name in ("off", "supply", "safety", "proportional", "quadratic", "delay")
    )
    return SimulatedWall(
        (off, off + supply, off + supply + safety),
        proportional,
        quadratic,
        delay=delay,
        noise=table["noise"],
        missed=table["missed"],
        silences_per_hour=table["silence"]["per_hour"],
        silence_seconds=tuple(table["silence"]["seconds"]),
        seed=seed,
    )
