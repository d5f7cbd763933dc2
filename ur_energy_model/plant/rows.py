# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rows of the tables of the history, from parts of a recording and from its powers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.cycle_energies import UNACCOUNTED, Cycle
from ur_energy_model.energy.meter import interval
from ur_energy_model.energy.powers import ArmState, Channels, PowerTable, TotalSource
from ur_energy_model.energy.profile import Part, ProgramEnergy, Spent
from ur_energy_model.energy.program import LINE, Script
from ur_energy_model.energy.session import POSE_STD
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
from ur_energy_model.plant.energy_parts import (
    NOTHING,
    SECOND,
    PartTable,
    TimeRanges,
)
from ur_energy_model.plant.schema import SourceKeys, arrow_schema, arrow_table
from ur_energy_model.telemetry.samples import (
    Telemetry,
    equal_runs,
    host_times,
    run_starts,
    slices_between,
)
from ur_energy_model.typing import Array


def second_rows(parts: PartTable, keys: SourceKeys, channels: Channels) -> pa.Table:
    """One row per second; parts that another source covers, or of no time, are left out."""
    parts = parts.cut(~parts.covered & (parts.accounted + parts.unaccounted > 0.0))
    if (np.diff(parts.second) < 0).any():  # a host clock was set back
        parts = parts.cut(np.argsort(parts.second, kind="stable"))
    first = run_starts(parts.second)

    def sums(values: np.ndarray, over: np.ufunc = np.add) -> np.ndarray:
        return over.reduceat(values, first, axis=0) if len(first) else values

    net = sums(parts.net)
    arm = channels.arm
    bus = np.where(sums(parts.bus_measured, np.logical_and), net[:, arm["bus"]], np.nan)
    temperature = sums(parts.temperature)
    scaling = sums(parts.scaling)
    states = {}
    for state in ArmState:
        name = state.name.lower()
        states[f"{name}_time"] = net[:, channels.state_time + state]
        states[f"{name}_energy"] = net[:, channels.state_energy + state]
    joint = {
        "joint_energy": "electrical_power",
        "joint_mechanical_energy": "mechanical_power",
        "joint_friction_energy": "friction_loss",
        "joint_copper_energy": "copper_loss",
    }
    # of no sample with temperatures, or with a scaling
    with np.errstate(invalid="ignore"):
        temperature = temperature[:, :-1] / temperature[:, -1:]
        scaling = scaling[:, 0] / scaling[:, 1]
    columns = {
        "second": parts.second[first] * SECOND,
        **vars(keys),
        "accounted": sums(parts.accounted),
        "unaccounted": sums(parts.unaccounted),
        "samples": sums(parts.samples),
        **_whole_arm(channels, net, sums(parts.accounted)),
        "bus_energy": bus,
        "residual_energy": net[:, arm["model"]] - bus,
        "peak_power": sums(parts.peak, np.maximum),
        **states,
        "joints": channels.joints,
        **{name: net[:, channels.per_joint[power]] for name, power in joint.items()},
        "joint_temperature": temperature,
        "speed_scaling": scaling,
    }
    return arrow_table("seconds", columns)


_ENERGIES = ("total", "model", "standby", "driver", "regeneration", "unexplained")
"""Of the whole arm; the last four and those of the joints sum to the first."""


def _whole_arm(channels: Channels, net: Array, seconds: Array) -> dict[str, Any]:
    """Columns that seconds and cycles have in common.

    They are made from integrals [rows, channels], J, over so much time [rows], s.
    """
    wall_energy, wall_std = channels.at_wall(net)
    measured = net[:, channels.arm["measured"]]
    return {
        **{f"{name}_energy": net[:, channels.arm[name]] for name in _ENERGIES},
        "total_std": channels.deviations_of_total(net),
        "model_std": channels.deviations_of_model(net),
        "wall_energy": wall_energy,
        "wall_std": wall_std,
        "measured": measured,
        "total_source": _sources(measured, seconds),
    }


def _sources(measured: Array, seconds: Array) -> list[str]:
    """Where the totals of rows come from, from the measured time and all of it [rows], s."""
    pairs = zip(measured.tolist(), seconds.tolist(), strict=True)
    return [TotalSource.of(each, of).name for each, of in pairs]


def joint_rows(seconds: pa.Table) -> pa.Table:
    """Rows of joint_seconds, one per row of `seconds` and joint; the column `arm` stays."""
    seconds = seconds.combine_chunks()
    rows = pc.list_parent_indices(seconds["joints"])
    schema = arrow_schema("joint_seconds")
    columns = {"joint": pc.list_flatten(seconds["joints"])}
    for name in schema.names:
        if name in seconds.schema.names:
            columns[name] = seconds[name].take(rows)
        elif name != "joint":
            lists = seconds[f"joint_{name}"]
            columns[name] = pc.list_flatten(lists)
            if lists.null_count:  # rows without the list have no values
                values = np.full((len(seconds), len(rows) // len(seconds)), np.nan)
                known = lists.is_valid().to_numpy(zero_copy_only=False)
                values[known] = columns[name].to_numpy().reshape(-1, values.shape[1])
                columns[name] = pa.array(values.ravel(), from_pandas=True)
    found = pa.table([columns[name] for name in schema.names], schema=schema)
    return found.add_column(0, "arm", seconds["arm"].take(rows))


def cycle_rows(cycles: Sequence[Cycle], keys: SourceKeys, channels: Channels) -> pa.Table:
    """One row per complete cycle."""
    net = np.array([cycle.reading.net for cycle in cycles]).reshape(-1, len(channels))
    seconds = np.array([cycle.reading.accounted for cycle in cycles])
    arm = channels.arm
    whole = _whole_arm(channels, net, seconds)
    low, high = interval(whole["total_energy"], whole["total_std"]).T
    motion_time = net[:, channels.state_time + ArmState.MOVING]
    motion_energy = net[:, channels.state_energy + ArmState.MOVING]
    is_measured = np.array(whole["total_source"], dtype=str) == "measured"
    columns = {
        "start": np.array([cycle.start for cycle in cycles], dtype=np.int64),
        **vars(keys),
        "number": np.array([cycle.number for cycle in cycles], dtype=np.int64),
        "program": [cycle.program for cycle in cycles],
        "duration": np.array([cycle.duration for cycle in cycles], dtype=float),
        **whole,
        "bus_energy": np.where(is_measured, net[:, arm["bus"]], np.nan),
        "energy_low": low,
        "energy_high": high,
        "peak_power": np.array([cycle.peak_power for cycle in cycles], dtype=float),
        "motion_time": motion_time,
        "motion_energy": motion_energy,
        "idle_time": net[:, channels.state_time :][:, : len(ArmState)].sum(axis=1)
        - motion_time,
        "idle_energy": whole["total_energy"] - motion_energy,
        UNACCOUNTED: np.array([cycle.unaccounted for cycle in cycles], dtype=float),
        "joints": channels.joints,
        "joint_energy": net[:, channels.per_joint["electrical_power"]],
    }
    return arrow_table("cycles", columns)


class ProgramRows:
    """Rows of `program_nodes` from the powers of consecutive samples.

    Time that other sources cover is left out. A single script is that of all programs
    (names of programs come late, or not at all), of several each is of the program of its
    name.
    """

    def __init__(
        self,
        channels: Channels,
        scripts: Sequence[Script] = (),
        covered: TimeRanges = NOTHING,
    ) -> None:
        self._channels = channels
        self._scripts = scripts
        self._covered = covered
        self._counted = ProgramEnergy(channels)
        self._before: dict[Part, Spent] = {}
        self._program: str | None = None
        # minute, and whether another source covers it
        self._of: tuple[int, bool] | None = None
        self._rows: list[tuple[int, str | None, str, Spent]] = []

    def update(self, table: PowerTable) -> None:
        """Take powers that follow those of the last call."""
        if LINE not in table.samples:
            return
        if self._of is None or table.samples.info.program != self._program:
            self._close()
            self._program = table.samples.info.program
            self._counted = ProgramEnergy(self._channels, self._script(), self._counted)
            self._before = {}
        times = host_times(table.samples)
        parts = np.column_stack([times // PROGRAM_STEP, self._covered.holds(times)])
        for row in self._counted.added(table, run_starts(parts)[1:].tolist()):
            self._close()
            self._of = int(parts[row, 0]), bool(parts[row, 1])

    def rows(self, keys: SourceKeys) -> pa.Table:
        """Rows of the minutes so far, each part of them once."""
        self._close()
        rows = self._rows
        self._rows = []
        seconds = np.array([row[3].seconds for row in rows], dtype=float)
        measured = np.array([row[3].measured for row in rows], dtype=float)
        columns = {
            "minute": np.array([row[0] for row in rows], dtype=np.int64) * PROGRAM_STEP,
            **vars(keys),
            "program": [row[1] for row in rows],
            "node": [row[2] for row in rows],
            "count": np.array([row[3].executions for row in rows], dtype=np.int64),
            "seconds": seconds,
            "joules": np.array([row[3].energy for row in rows], dtype=float),
            "model_joules": np.array([row[3].model for row in rows], dtype=float),
            "measured": measured,
            "total_source": _sources(measured, seconds),
        }
        return arrow_table("program_nodes", columns)

    def _script(self) -> Script | None:
        """That of the program."""
        if len(self._scripts) == 1:
            return self._scripts[0]
        name = PurePosixPath(self._program or "").stem
        return next((script for script in self._scripts if script.name == name), None)

    def _close(self) -> None:
        """Take what was added since the last call."""
        if self._of is None:
            return
        minute, covered = self._of
        spent = self._counted.spent()
        script = self._counted.tracker.script
        for part, now in spent.items():
            passed = now.since(self._before.get(part))
            if passed.seconds > 0.0 and not covered:
                self._rows.append((minute, self._program, part.name(script), passed))
        self._before = spent


PROGRAM_STEP = 60 * SECOND  # ns

# Motion thinned to means over short blocks of time, cheap enough for every sample of a
# year.

# length of a block [s]: all that minutes of friction use (identification/minute.py)
BLOCK = 0.04
_PERIODS = 2.0  # length of a block in sample periods, at least
_ROUNDING = 1e-4
"""Share of a block by which a sample may miss its begin: clocks count in binary fractions."""
TARGETS = ("target_q", "target_qd", "target_qdd")
ACTUALS = ("actual_q", "actual_qd")


def thinned_motions(samples: Telemetry) -> Iterator[FilteredMotion]:
    """Stretches of consecutive block means, two blocks or more each.

    Positions, speeds and accelerations are the controller's targets where it reports
    them, as these have no noise; else measured ones, with accelerations from differences
    of the means. The samples are usable, ascending in time and of one setup.
    """
    names = TARGETS if all(name in samples for name in TARGETS) else ACTUALS
    if "actual_current" not in samples or any(name not in samples for name in names):
        return
    if len(samples) < 2:
        return
    block = max(BLOCK, _PERIODS * float(np.median(np.diff(samples.time))))
    number = np.floor(samples.time / block + _ROUNDING)
    starts = run_starts(number)
    counts = np.diff(starts, append=len(samples))

    def means(values: Array) -> Array:
        return np.asarray(np.add.reduceat(values, starts, axis=0) / counts[:, None])

    motion = [means(samples.columns[name]) for name in names]
    current = means(samples.columns["actual_current"])
    kept = number[starts]
    time = (kept + 0.5) * block
    unknown = np.full_like(current, np.nan)
    temperature = samples.columns.get("joint_temperatures")
    warmth = unknown if temperature is None else temperature[starts]
    payload = np.full((len(kept), 4), np.nan)
    # The first and the last block may be cut off.
    whole = counts >= 0.5 * np.median(counts)
    cuts = np.flatnonzero((np.diff(kept) != 1.0) | ~whole[1:] | ~whole[:-1]) + 1
    for part in slices_between(cuts.tolist(), len(kept)):
        if part.stop - part.start < 2:
            continue
        q = motion[0][part]
        qd = motion[1][part]
        qdd = motion[2][part] if len(motion) > 2 else np.gradient(qd, block, axis=0)
        rest = (each[part] for each in (current, unknown, warmth, payload))
        yield FilteredMotion(time[part], q, qd, qdd, *rest)


# Health: friction and torque constants of the learning's minutes (identification/minute.py),
# and the standby power as tracked so far. Nothing is read twice, memory is constant.

LEAST_STILL = 2.0  # standstill in a minute from which its standby power is stated [s]
_FIELDS = (*TARGETS, *ACTUALS, "actual_current", "joint_temperatures")


class HealthRows:
    """Rows of `health` from the powers of consecutive samples; keeps one small row per minute."""

    def __init__(self, calculator: EnergyCalculator) -> None:
        self._calculator = calculator
        model = calculator.model
        self._reference = friction_torque(model, np.array([TYPICAL_SPEED]))[0]
        """Friction of the model at TYPICAL_SPEED without load, joint side [n], N m."""
        self._constant = np.array([joint.torque_constant for joint in model.joints])
        self._meter = MinuteMeter(model)
        self._windows = WindowCollector()
        self._dynamics: ArmDynamics | None = None
        self._time = -np.inf
        self._shift: float | None = None
        """Added to the controller's time, so that its minutes begin with those of the host [s]."""
        self._minutes: dict[float, dict[str, Any]] = {}
        """Minutes in progress by number: standstill [s], begin by the host [s], columns so far."""
        self._rows: list[dict[str, Any]] = []  # minutes that are over

    def update(self, table: PowerTable) -> None:
        """Take powers that follow those of the last call."""
        host: Array = 1e-9 * host_times(table.samples).astype(float)
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
            self._rest(table, run, samples.time, host[run])
            if (
                self._dynamics is not None
                and self._calculator.dynamics is not self._dynamics
            ):
                self._learn(self._windows.finish())  # another payload
            self._dynamics = self._calculator.dynamics
            columns = {name: samples.columns[name] for name in _FIELDS if name in samples}
            self._learn(self._windows.add(Telemetry(samples.time, columns, samples.info)))
            # The window in progress may have begun in the minute before.
            self._close(np.floor(self._time / MINUTE) - 1.0)

    def rows(self, keys: SourceKeys, *, last: bool) -> pa.Table:
        """Rows of the minutes that are over, each once; `last` ends the minute in progress."""
        if last:
            self._finish()
        rows = self._rows
        self._rows = []
        n = len(self._constant)
        unknown: dict[str, Any] = dict.fromkeys(_OF_JOINTS, np.full(n, np.nan))
        unknown |= {"joint_moving": np.zeros(n), "standby": np.nan, "standby_std": np.nan}
        begins = [round(1e9 * row["begin"]) for row in rows]
        columns: dict[str, Any] = {"minute": np.array(begins, dtype=np.int64)}
        for name, missing in unknown.items():
            values = np.array([row.get(name, missing) for row in rows], dtype=float)
            columns[name] = values.reshape(len(rows), *np.shape(missing))
        columns["joint_friction_reference"] = np.tile(self._reference, (len(rows), 1))
        columns |= vars(keys) | {"joints": self._calculator.robot.joint_names}
        return arrow_table("health", columns)

    def _finish(self) -> None:
        self._learn(self._windows.finish())
        self._keep(self._meter.finish())
        self._close(np.inf)

    def _learn(self, windows: list[Telemetry]) -> None:
        for window in windows:
            for motion in thinned_motions(window):
                assert self._dynamics is not None
                self._keep(self._meter.observe(motion, self._dynamics))

    def _keep(self, minutes: list[Minute]) -> None:
        for minute in minutes:
            scale = np.exp(minute.level)
            self._minute(round(minute.time / MINUTE) - 1.0).update(
                joint_moving=minute.moving_seconds,
                joint_temperature=minute.temperature,
                joint_friction=scale,
                joint_friction_std=scale * np.sqrt(np.diag(minute.covariance)),
                joint_torque_constant=self._constant * minute.torque_constant,
                joint_torque_constant_std=self._constant * minute.torque_constant_std,
            )

    def _rest(self, table: PowerTable, run: slice, time: Array, host: Array) -> None:
        """Begin and standby power of the minutes of ascending samples at shifted times."""
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
            # The clocks drift apart; whole minutes all the same.
            offset = round(float(host[part.start] - time[part.start]) / MINUTE)
            minute.setdefault("begin", MINUTE * (offset + float(number[part.start])))
            minute["still"] += float(still[part].sum())
            if anchored and minute["still"] >= LEAST_STILL and held[part].any():
                last = int(np.flatnonzero(held[part])[-1])
                minute["standby"] = float(standby[part][last])
                minute["standby_std"] = float(standby_std[part][last])

    def _minute(self, number: float) -> dict[str, Any]:
        return self._minutes.setdefault(number, {"still": 0.0})

    def _close(self, until: float) -> None:
        """Take the rows of the minutes before a number that have shown anything."""
        for number in sorted(each for each in self._minutes if each < until):
            minute = self._minutes.pop(number)
            if "begin" in minute and len(minute) > 2:
                self._rows.append(minute)


_OF_JOINTS = (
    "joint_moving", "joint_temperature", "joint_friction", "joint_friction_std",
    "joint_torque_constant", "joint_torque_constant_std",
)  # fmt: skip
