"""What each minute of telemetry shows of an arm's health, from the powers that history computes.

Friction and torque constants are those of the learning's minutes (learning/minute.py), standby
power is the calculator's own. Nothing is read twice, memory is constant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.learning.friction_clock import TYPICAL_SPEED, friction_torque
from ur_energy_model.learning.minute import MINUTE, Minute, MinuteMeter
from ur_energy_model.learning.windows import Windows
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.plant.health.thinned_motion import ACTUALS, TARGETS, thinned_motions
from ur_energy_model.telemetry.runs import slices_between
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

LEAST_STILL = 2.0
"""Standstill in a minute from which its standby power is stated [s]."""
_FIELDS = (*TARGETS, *ACTUALS, "actual_current", "joint_temperatures")


@dataclass(frozen=True)
class HealthRow:
    """Health of an arm with n joints in one minute.

    Attributes:
        minute: host time of its begin, a whole minute [s] since 1970.
        moving: motion of each joint that was used [n], s.
        temperature: of the joints [n], degC; NaN where unknown.
        friction: friction over the model's at that temperature [n]; NaN for joints that moved too
            little.
        friction_std: its standard deviation [n].
        torque_constant: torque per ampere, motor side [n], N m/A; NaN as friction.
        torque_constant_std: its standard deviation [n], N m/A.
        standby: standby power [W]; None without enough standstill.
        standby_std: its standard deviation [W]; None as standby.
    """

    minute: float
    moving: Array
    temperature: Array
    friction: Array
    friction_std: Array
    torque_constant: Array
    torque_constant_std: Array
    standby: float | None = None
    standby_std: float | None = None


class HealthMeter:
    """Turns the powers of consecutive samples into rows of health.

    Args:
        calculator: that computes the powers.

    Attributes:
        reference: friction of the model at TYPICAL_SPEED without load, joint side [n], N m.
    """

    def __init__(self, calculator: EnergyCalculator) -> None:
        self._calculator = calculator
        model = calculator.model
        self.reference: Array = friction_torque(model, np.array([TYPICAL_SPEED]))[0]
        self._constant = np.array([joint.torque_constant for joint in model.joints])
        self._meter = MinuteMeter(model)
        self._windows = Windows()
        self._dynamics: ArmDynamics | None = None
        self._time = -np.inf
        self._shift: float | None = None
        """Added to the controller's time, so that its minutes begin with those of the host [s]."""
        self._begin: dict[float, float] = {}
        """Host time at which each minute in progress began [s]."""
        self._still: dict[float, float] = {}
        """Standstill in each minute in progress [s]."""
        self._standby: dict[float, tuple[float, float]] = {}
        self._minutes: dict[float, Minute] = {}

    def observe(self, table: PowerTable, host: Array) -> list[HealthRow]:
        """Use powers that follow those of the last call; returns the minutes that are complete.

        Args:
            table: from the calculator.
            host: time of its samples by the host's clock [samples], s since 1970.
        """
        out: list[HealthRow] = []
        back = (np.flatnonzero(np.diff(table.samples.time) < 0) + 1).tolist()
        for run in slices_between(back, len(table.samples)):
            first = float(table.samples.time[run.start])
            if self._shift is not None and first + self._shift < self._time:
                out += self.finish()  # the controller's clock starts again
                self._shift = None
            if self._shift is None:
                self._shift = float(host[run.start] - first) % MINUTE
            samples = table.samples.cut(run)
            samples = replace(samples, time=samples.time + self._shift)
            self._time = float(samples.time[-1])
            self._use(table, run, samples.time, host)
            self._move(samples)
            # The window in progress may have begun in the minute before.
            out += self._rows(np.floor(self._time / MINUTE) - 1.0)
        return out

    def finish(self) -> list[HealthRow]:
        """The minutes in progress."""
        for window in self._windows.finish():
            self._learn(window)
        self._keep(self._meter.finish())
        out = self._rows(np.inf)
        self._begin.clear()
        self._still.clear()
        return out

    def _move(self, samples: Telemetry) -> None:
        dynamics, before = self._calculator.dynamics, self._dynamics
        if before is not None and dynamics is not before:  # another payload
            for window in self._windows.finish():
                self._learn(window)
        self._dynamics = dynamics
        columns = {name: samples.columns[name] for name in _FIELDS if name in samples}
        for window in self._windows.add(Telemetry(samples.time, columns, samples.info)):
            self._learn(window)

    def _learn(self, window: Telemetry) -> None:
        if self._dynamics is None:
            return
        for motion in thinned_motions(window):
            self._keep(self._meter.observe(motion, self._dynamics))

    def _keep(self, minutes: list[Minute]) -> None:
        for minute in minutes:
            self._minutes[round(minute.time / MINUTE) - 1.0] = minute

    def _use(self, table: PowerTable, run: slice, time: Array, host: Array) -> None:
        """Begin and standby power of the minutes of ascending samples at shifted times."""
        number = np.floor(time / MINUTE)
        cuts = np.flatnonzero(np.diff(number)) + 1
        standby = table.power[run, self._calculator.channels.arm["standby"]]
        still = np.where(table.states[run] == ArmState.STANDSTILL, table.steps.bridged[run], 0.0)
        for part in slices_between(cuts.tolist(), len(time)):
            own, last = float(number[part.start]), part.stop - 1
            offset = float(host[run][part.start] - time[part.start])
            # The clocks drift apart; whole minutes all the same.
            self._begin.setdefault(own, MINUTE * (round(offset / MINUTE) + own))
            rested = self._still.get(own, 0.0) + float(still[part].sum())
            self._still[own] = rested
            tracker = self._calculator.standby
            if tracker.anchored and rested >= LEAST_STILL:
                self._standby[own] = float(standby[last]), tracker.std

    def _rows(self, until: float) -> list[HealthRow]:
        """Rows of the minutes before a number, which are forgotten."""
        known = sorted(number for number in {*self._minutes, *self._standby} if number < until)
        out = [
            self._row(number, self._minutes.pop(number, None), self._standby.pop(number, None))
            for number in known
            if number in self._begin
        ]
        self._begin = {number: begin for number, begin in self._begin.items() if number >= until}
        self._still = {number: still for number, still in self._still.items() if number >= until}
        return out

    def _row(
        self, number: float, minute: Minute | None, standby: tuple[float, float] | None
    ) -> HealthRow:
        unknown = np.full(len(self._constant), np.nan)
        power, std = (None, None) if standby is None else standby
        if minute is None:
            return HealthRow(
                minute=self._begin[number],
                moving=np.zeros_like(unknown),
                temperature=unknown,
                friction=unknown,
                friction_std=unknown,
                torque_constant=unknown,
                torque_constant_std=unknown,
                standby=power,
                standby_std=std,
            )
        scale = np.exp(minute.level)
        return HealthRow(
            minute=self._begin[number],
            moving=minute.moving_seconds,
            temperature=minute.temperature,
            friction=scale,
            friction_std=scale * np.sqrt(np.diag(minute.covariance)),
            torque_constant=self._constant * minute.torque_constant,
            torque_constant_std=self._constant * minute.torque_constant_std,
            standby=power,
            standby_std=std,
        )
