# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rows of `health`: friction, torque constants and standby power of an arm, minute by minute.

Friction and torque constants are those that `identification.minute` estimates from motion
that is thinned to means over short blocks of time, cheap enough for every sample of a
year. The standby power is the tracked one. No sample is read twice, and memory is
constant. Columns have units and meanings in `schema`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.powers import ArmState, PowerTable
from ur_energy_model.energy.standby import POSE_STD
from ur_energy_model.identification.filtered_motion import FilteredMotion
from ur_energy_model.identification.minute import (
    MINUTE,
    TYPICAL_SPEED,
    Minute,
    MinuteMeter,
    WindowCollector,
    friction_torque,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.plant.schema import SourceKeys, arrow_table
from ur_energy_model.telemetry.samples import (
    Telemetry,
    equal_runs,
    host_times,
    run_starts,
    slices_between,
)
from ur_energy_model.typing import Array

BLOCK = 0.04
"""Length of a block [s]: it is 1 / _RATE of `identification.minute`, which uses no
shorter steps."""
_FEWEST_PERIODS = 2.0  # sample periods that a block contains at least
_ROUNDING = 1e-4
"""Share of a block by which a sample may miss its begin: clocks count in binary
fractions."""
_TARGETS = ("target_q", "target_qd", "target_qdd")
_ACTUALS = ("actual_q", "actual_qd")
_PAYLOAD_NUMBERS = 4  # mass and three coordinates of the centre of gravity


def thinned_motions(samples: Telemetry) -> Iterator[FilteredMotion]:
    """Stretches of consecutive block means, two blocks or more each.

    Positions, speeds and accelerations are the controller's targets where it reports
    them, as these have no noise; else measured ones, with accelerations from differences
    of the means.

    Args:
        samples: usable samples, ascending in time and of one setup. Without motor
            currents, or positions and speeds, there is no stretch.

    Yields:
        Means of the blocks, with the temperatures at their begins; torques of the target
        and payload are NaN. The first and the last block are left out where they are cut
        off.
    """
    has_targets = all(name in samples for name in _TARGETS)
    names = _TARGETS if has_targets else _ACTUALS
    if any(name not in samples for name in ("actual_current", *names)):
        return
    if len(samples) < 2:
        return
    period = float(np.median(np.diff(samples.time)))
    block = max(BLOCK, _FEWEST_PERIODS * period)
    number = np.floor(samples.time / block + _ROUNDING)
    starts = run_starts(number)
    counts = np.diff(starts, append=len(samples))

    def means(name: str) -> Array:
        """Means of a column over the blocks [blocks, n]."""
        sums = np.add.reduceat(samples.columns[name], starts, axis=0)
        return np.asarray(sums / counts[:, None])

    position = means(names[0])
    speed = means(names[1])
    acceleration = means("target_qdd") if has_targets else None
    current = means("actual_current")
    blocks = number[starts]
    time = (blocks + 0.5) * block
    unknown = np.full_like(current, np.nan)
    temperature = samples.columns.get("joint_temperatures")
    warmth = unknown if temperature is None else temperature[starts]
    payload = np.full((len(blocks), _PAYLOAD_NUMBERS), np.nan)
    # The first and the last block may be cut off.
    whole = counts >= 0.5 * np.median(counts)
    pauses = np.diff(blocks) != 1.0
    cuts = np.flatnonzero(pauses | ~whole[1:] | ~whole[:-1]) + 1
    for part in slices_between(cuts.tolist(), len(blocks)):
        if part.stop - part.start < 2:
            continue
        qd = speed[part]
        qdd = (
            np.gradient(qd, block, axis=0) if acceleration is None else acceleration[part]
        )
        yield FilteredMotion(
            time[part],
            position[part],
            qd,
            qdd,
            current[part],
            unknown[part],
            warmth[part],
            payload[part],
        )


LEAST_STILL = 2.0  # standstill in a minute from which its standby power is stated [s]
_FIELDS = (*_TARGETS, *_ACTUALS, "actual_current", "joint_temperatures")
_OF_JOINTS = (
    "joint_moving", "joint_temperature", "joint_friction", "joint_friction_std",
    "joint_torque_constant", "joint_torque_constant_std",
)  # fmt: skip
"""Columns of `health` that have a value per joint, besides the reference of friction."""


@dataclass
class _HealthMinute:
    """A minute for which a row of `health` is being made.

    Attributes:
        begin: host time of its begin [s since 1970 UTC]; None before its first sample.
        still: standstill so far [s].
        columns: values of the columns of `health` that are known so far, by name.
    """

    begin: float | None = None
    still: float = 0.0
    columns: dict[str, Any] = field(default_factory=dict)


class HealthRows:
    """Rows of `health` from the powers of consecutive samples; keeps one small row per minute.

    Minutes begin by the host's clock; gaps and pauses do not matter. A restart of the
    controller's clock and a new payload end the window of motion in progress.

    Args:
        calculator: calculator that computes the powers, with the model that friction is
            compared with.
    """

    def __init__(self, calculator: EnergyCalculator) -> None:
        self._calculator = calculator
        model = calculator.model
        self._reference = friction_torque(model, np.array([TYPICAL_SPEED]))[0]
        """Friction of the model at TYPICAL_SPEED without load, joint side [n], N m."""
        self._constant = np.array([joint.torque_constant for joint in model.joints])
        """Torque constants of the model, motor side [n], N m/A."""
        self._meter = MinuteMeter(model)
        self._windows = WindowCollector()
        self._dynamics: ArmDynamics | None = None
        """Dynamics with the payload of the last samples; None before the first samples."""
        self._time = -np.inf  # shifted time of the last sample [s]
        self._shift: float | None = None
        """Added to the controller's time, so that its minutes begin when the host's do
        [s]."""
        self._minutes: dict[float, _HealthMinute] = {}
        """Minutes in progress by number, counted by the shifted time."""
        self._rows: list[dict[str, Any]] = []
        """Minutes that are over: values by name of the column; `minute` in ns since 1970."""

    def update(self, table: PowerTable) -> None:
        """Take powers that follow the powers of the last call."""
        host: Array = 1e-9 * host_times(table.samples).astype(float)  # s since 1970
        back = (np.flatnonzero(np.diff(table.samples.time) < 0) + 1).tolist()
        for run in slices_between(back, len(table.samples)):
            first = float(table.samples.time[run.start])
            if self._shift is not None and first + self._shift < self._time:
                self._finish()  # the controller's clock starts again
                self._shift = None
            if self._shift is None:
                self._shift = float(host[run.start] - first) % MINUTE
            samples = table.samples.cut(run)
            samples = replace(samples, time=samples.time + self._shift)
            self._time = float(samples.time[-1])
            self._add_standby(table, run, samples.time, host[run])
            dynamics = self._calculator.dynamics
            if self._dynamics is not None and dynamics is not self._dynamics:
                self._add_motion(self._windows.finish())  # another payload
            self._dynamics = dynamics
            columns = {name: samples.columns[name] for name in _FIELDS if name in samples}
            motion = Telemetry(samples.time, columns, samples.info)
            self._add_motion(self._windows.add(motion))
            # The window in progress may have begun in the minute before.
            self._close(np.floor(self._time / MINUTE) - 1.0)

    def rows(self, keys: SourceKeys, *, last: bool) -> pa.Table:
        """Rows of the minutes that are over, each of them once.

        Args:
            keys: columns that all rows have in common.
            last: whether no powers follow, so that the minute in progress ends.
        """
        if last:
            self._finish()
        rows = self._rows
        self._rows = []
        n = len(self._constant)
        missing: dict[str, Any] = dict.fromkeys(_OF_JOINTS, np.full(n, np.nan))
        missing |= {"joint_moving": np.zeros(n), "standby": np.nan, "standby_std": np.nan}
        begins = np.array([row["minute"] for row in rows], dtype=np.int64)
        columns: dict[str, Any] = {"minute": begins}
        for name, value in missing.items():
            values = np.array([row.get(name, value) for row in rows], dtype=float)
            columns[name] = values.reshape(len(rows), *np.shape(value))
        columns["joint_friction_reference"] = np.tile(self._reference, (len(rows), 1))
        columns |= vars(keys) | {"joints": self._calculator.robot.joint_names}
        return arrow_table("health", columns)

    def _finish(self) -> None:
        """End the window of motion and the minutes in progress."""
        self._add_motion(self._windows.finish())
        self._add_minutes(self._meter.finish())
        self._close(np.inf)

    def _add_motion(self, windows: list[Telemetry]) -> None:
        """Add windows of motion to the meter of friction and torque constants."""
        for window in windows:
            for motion in thinned_motions(window):
                assert self._dynamics is not None
                self._add_minutes(self._meter.observe(motion, self._dynamics))

    def _add_minutes(self, minutes: list[Minute]) -> None:
        """Add friction and torque constants of complete minutes to their rows."""
        for minute in minutes:
            scale = np.exp(minute.level)
            number = round(minute.time / MINUTE) - 1.0  # its time is its end
            self._minute(number).columns |= {
                "joint_moving": minute.moving_seconds,
                "joint_temperature": minute.temperature,
                "joint_friction": scale,
                "joint_friction_std": scale * np.sqrt(np.diag(minute.covariance)),
                "joint_torque_constant": self._constant * minute.torque_constant,
                "joint_torque_constant_std": self._constant * minute.torque_constant_std,
            }

    def _add_standby(
        self, table: PowerTable, run: slice, time: Array, host: Array
    ) -> None:
        """Add begin and standby power to the minutes of ascending samples.

        Args:
            table: powers.
            run: the samples.
            time: shifted times of the samples [samples], s.
            host: host times of the samples [samples], s since 1970.
        """
        number = np.floor(time / MINUTE)
        channels = self._calculator.channels
        standby = table.power[run, channels.arm["standby"]]
        # Days are compared, on which the arm may rest in other poses.
        standby_std = np.hypot(channels.deviation_of_standby(table.power[run]), POSE_STD)
        anchored = self._calculator.standby.anchored
        held = table.states[run] == ArmState.STANDSTILL
        still = np.where(held, table.steps.bridged[run], 0.0)
        for part in equal_runs(number):
            minute = self._minute(float(number[part.start]))
            if minute.begin is None:
                # The two clocks drift apart: the offset between them is rounded to whole
                # minutes.
                offset = round(float(host[part.start] - time[part.start]) / MINUTE)
                minute.begin = MINUTE * (offset + float(number[part.start]))
            minute.still += float(still[part].sum())
            if anchored and minute.still >= LEAST_STILL and held[part].any():
                last = int(np.flatnonzero(held[part])[-1])
                minute.columns["standby"] = float(standby[part][last])
                minute.columns["standby_std"] = float(standby_std[part][last])

    def _minute(self, number: float) -> _HealthMinute:
        """A minute in progress by its number; it begins without standstill."""
        return self._minutes.setdefault(number, _HealthMinute())

    def _close(self, until: float) -> None:
        """End the minutes before a number.

        Minutes of which motion or standby power is known become rows.
        """
        for number in sorted(each for each in self._minutes if each < until):
            minute = self._minutes.pop(number)
            if minute.begin is not None and minute.columns:
                begin = round(1e9 * minute.begin)
                self._rows.append({"minute": begin, **minute.columns})
