# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rows of the tables of the history, from parts of a recording and from its powers.

`seconds`, `joint_seconds` and `cycles` come from the integrals of the energy meter,
`program_nodes` from the energy by program node, and `health` from the minutes that
learning uses. Columns have units and meanings in `schema`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.cycle_energies import UNACCOUNTED, Cycle
from ur_energy_model.energy.meter import interval
from ur_energy_model.energy.powers import ArmState, Channels, PowerTable, TotalSource
from ur_energy_model.energy.profile import ProgramEnergy, ProgramPart, Spent
from ur_energy_model.energy.program import LINE, Script
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
    """Rows of `seconds`, one per second.

    Parts that another source covers, and parts of no time, are left out.

    Args:
        parts: of a recording; there may be none.
        keys: columns that all rows have in common.
        channels: layout of the integrals of the parts.
    """
    parts = parts.cut(~parts.covered & (parts.accounted + parts.unaccounted > 0.0))
    if (np.diff(parts.second) < 0).any():  # a host clock was set back
        parts = parts.cut(np.argsort(parts.second, kind="stable"))
    first = run_starts(parts.second)

    def sums(values: np.ndarray, over: np.ufunc = np.add) -> np.ndarray:
        """Values of parts [parts, ...] summed up by second [seconds, ...]."""
        return over.reduceat(values, first, axis=0) if len(first) else values

    net = sums(parts.net)
    accounted = sums(parts.accounted)
    arm = channels.arm
    bus = np.where(sums(parts.bus_measured, np.logical_and), net[:, arm["bus"]], np.nan)
    temperature_sums = sums(parts.temperature)
    scaling_sums = sums(parts.scaling)
    # The last column is the number of samples, 0 where none has the value.
    with np.errstate(invalid="ignore"):
        temperature = temperature_sums[:, :-1] / temperature_sums[:, -1:]
        scaling = scaling_sums[:, 0] / scaling_sums[:, -1]
    states = {}
    for state in ArmState:
        name = state.name.lower()
        states[f"{name}_time"] = net[:, channels.state_time + state]
        states[f"{name}_energy"] = net[:, channels.state_energy + state]
    columns = {
        "second": parts.second[first] * SECOND,
        **vars(keys),
        "accounted": accounted,
        "unaccounted": sums(parts.unaccounted),
        "samples": sums(parts.samples),
        **_whole_arm(channels, net, accounted),
        "bus_energy": bus,
        "residual_energy": net[:, arm["model"]] - bus,
        "peak_power": sums(parts.peak, np.maximum),
        **states,
        "joints": channels.joints,
        "joint_energy": net[:, channels.per_joint["electrical_power"]],
        "joint_mechanical_energy": net[:, channels.per_joint["mechanical_power"]],
        "joint_friction_energy": net[:, channels.per_joint["friction_loss"]],
        "joint_copper_energy": net[:, channels.per_joint["copper_loss"]],
        "joint_temperature": temperature,
        "speed_scaling": scaling,
    }
    return arrow_table("seconds", columns)


_ENERGIES = ("total", "model", "standby", "driver", "regeneration", "unexplained")
"""Energies of the whole arm. The total is the sum of the last four energies and of the joints."""


def _whole_arm(channels: Channels, net: Array, seconds: Array) -> dict[str, Any]:
    """Columns that seconds and cycles have in common.

    Args:
        channels: layout of the integrals.
        net: integrals of the powers [rows, channels], J.
        seconds: time integrated over [rows], s.

    Returns:
        Values [rows] by name of the column: energies in J, time in s.
    """
    wall_energy, wall_std = channels.at_wall(net)
    measured = net[:, channels.arm["measured"]]
    energies = {f"{name}_energy": net[:, channels.arm[name]] for name in _ENERGIES}
    return {
        **energies,
        "total_std": channels.deviations_of_total(net),
        "model_std": channels.deviations_of_model(net),
        "wall_energy": wall_energy,
        "wall_std": wall_std,
        "measured": measured,
        "total_source": _sources(measured, seconds),
    }


def _sources(measured: Array, seconds: Array) -> list[str]:
    """Names of the sources of totals, see `TotalSource`.

    Args:
        measured: time in which bus power was measured [rows], s.
        seconds: all time that is integrated over [rows], s.
    """
    pairs = zip(measured.tolist(), seconds.tolist(), strict=True)
    return [TotalSource.of(part, whole).name for part, whole in pairs]


def joint_rows(seconds: pa.Table) -> pa.Table:
    """Rows of `joint_seconds`: the lists of `seconds`, one row per second and joint.

    Args:
        seconds: rows of `seconds` with the column `arm`, all with the same number of
            joints.

    Returns:
        Rows of `joint_seconds`, with the column `arm`.
    """
    seconds = seconds.combine_chunks()
    rows = pc.list_parent_indices(seconds["joints"])
    schema = arrow_schema("joint_seconds")
    columns = []
    for name in schema.names:
        if name in seconds.schema.names:
            column = seconds[name].take(rows)
        elif name == "joint":
            column = pc.list_flatten(seconds["joints"])
        else:
            column = _flattened(seconds[f"joint_{name}"], len(rows))
        columns.append(column)
    found = pa.table(columns, schema=schema)
    return found.add_column(0, "arm", seconds["arm"].take(rows))


def _flattened(lists: pa.ChunkedArray, values: int) -> pa.Array:
    """Lists of equal length one after the other; null for each value of a list that is missing.

    Args:
        lists: one list per row.
        values: number of values of all rows, missing values included.
    """
    flat = pc.list_flatten(lists)
    if not lists.null_count:
        return flat
    filled = np.full((len(lists), values // len(lists)), np.nan)
    known = lists.is_valid().to_numpy(zero_copy_only=False)
    filled[known] = flat.to_numpy().reshape(-1, filled.shape[1])
    return pa.array(filled.ravel(), from_pandas=True)


def cycle_rows(cycles: Sequence[Cycle], keys: SourceKeys, channels: Channels) -> pa.Table:
    """Rows of `cycles`, one per complete cycle.

    Args:
        cycles: complete cycles; there may be none.
        keys: columns that all rows have in common.
        channels: layout of the integrals of the cycles.
    """
    net = np.array([cycle.reading.net for cycle in cycles]).reshape(-1, len(channels))
    seconds = np.array([cycle.reading.accounted for cycle in cycles])
    arm = channels.arm
    whole = _whole_arm(channels, net, seconds)
    low, high = interval(whole["total_energy"], whole["total_std"]).T
    motion_time = net[:, channels.state_time + ArmState.MOVING]
    motion_energy = net[:, channels.state_energy + ArmState.MOVING]
    states_end = channels.state_time + len(ArmState)
    time_in_states = net[:, channels.state_time : states_end].sum(axis=1)
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
        "idle_time": time_in_states - motion_time,
        "idle_energy": whole["total_energy"] - motion_energy,
        UNACCOUNTED: np.array([cycle.unaccounted for cycle in cycles], dtype=float),
        "joints": channels.joints,
        "joint_energy": net[:, channels.per_joint["electrical_power"]],
    }
    return arrow_table("cycles", columns)


class _NodeMinute(NamedTuple):
    """Time and energy of a program node in a minute.

    Attributes:
        minute: number of the minute since 1970 UTC.
        program: name of the program; None where it is not known.
        node: label of the node, or line and its number.
        spent: time and energy in the node.
    """

    minute: int
    program: str | None
    node: str
    spent: Spent


class ProgramRows:
    """Rows of `program_nodes` from the powers of consecutive samples.

    A single script is taken for the script of all programs, as names of programs come
    late, or not at all. Each of several scripts belongs to the program of the same name.

    Args:
        channels: of the powers.
        scripts: that name the nodes of programs.
        covered: time that other sources cover, which is left out.
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
        self._before: dict[ProgramPart, Spent] = {}
        """Time and energy of each node at the begin of the stretch in progress."""
        self._program: str | None = None
        self._minute: int | None = None
        """Minute of the stretch in progress; None before the first powers."""
        self._is_covered = False
        """Whether another source covers the stretch in progress."""
        self._rows: list[_NodeMinute] = []

    def update(self, table: PowerTable) -> None:
        """Take powers that follow the powers of the last call.

        Powers without program lines are ignored.
        """
        if LINE not in table.samples:
            return
        if self._minute is None or table.samples.info.program != self._program:
            self._close()
            self._program = table.samples.info.program
            self._counted = ProgramEnergy(self._channels, self._script(), self._counted)
            self._before = {}
        times = host_times(table.samples)
        minutes = times // PROGRAM_STEP
        covered = self._covered.holds(times)
        edges = run_starts(np.column_stack([minutes, covered]))[1:]
        for row in self._counted.added(table, edges.tolist()):
            self._close()
            self._minute = int(minutes[row])
            self._is_covered = bool(covered[row])

    def rows(self, keys: SourceKeys) -> pa.Table:
        """Rows of `program_nodes` since the last call; each time is in one row.

        Args:
            keys: columns that all rows have in common.
        """
        self._close()
        rows = self._rows
        self._rows = []
        minutes = np.array([row.minute for row in rows], dtype=np.int64)
        seconds = np.array([row.spent.seconds for row in rows], dtype=float)
        measured = np.array([row.spent.measured for row in rows], dtype=float)
        columns = {
            "minute": minutes * PROGRAM_STEP,
            **vars(keys),
            "program": [row.program for row in rows],
            "node": [row.node for row in rows],
            "count": np.array([row.spent.executions for row in rows], dtype=np.int64),
            "seconds": seconds,
            "joules": np.array([row.spent.energy for row in rows], dtype=float),
            "model_joules": np.array([row.spent.model for row in rows], dtype=float),
            "measured": measured,
            "total_source": _sources(measured, seconds),
        }
        return arrow_table("program_nodes", columns)

    def _script(self) -> Script | None:
        """The script of the program in progress; None if it is not among the scripts."""
        if len(self._scripts) == 1:
            return self._scripts[0]
        name = PurePosixPath(self._program or "").stem
        return next((script for script in self._scripts if script.name == name), None)

    def _close(self) -> None:
        """End the stretch in progress: make rows of what was counted since its begin."""
        if self._minute is None:
            return
        spent = self._counted.spent()
        script = self._counted.tracker.script
        for part, now in spent.items():
            passed = now.since(self._before.get(part))
            if passed.seconds > 0.0 and not self._is_covered:
                name = part.name(script)
                self._rows.append(_NodeMinute(self._minute, self._program, name, passed))
        self._before = spent


PROGRAM_STEP = 60 * SECOND
"""Time that a row of `program_nodes` is of [ns]."""

# Motion thinned to means over short blocks of time, cheap enough for every sample of a
# year.

BLOCK = 0.04
"""Length of a block [s]; minutes of friction need no shorter ones
(identification/minute.py)."""
_PERIODS = 2.0  # length of a block in sample periods, at least
_ROUNDING = 1e-4
"""Share of a block by which a sample may miss its begin: clocks count in binary
fractions."""
TARGETS = ("target_q", "target_qd", "target_qdd")
ACTUALS = ("actual_q", "actual_qd")


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
    names = TARGETS if all(name in samples for name in TARGETS) else ACTUALS
    if any(name not in samples for name in ("actual_current", *names)):
        return
    if len(samples) < 2:
        return
    block = max(BLOCK, _PERIODS * float(np.median(np.diff(samples.time))))
    number = np.floor(samples.time / block + _ROUNDING)
    starts = run_starts(number)
    counts = np.diff(starts, append=len(samples))

    def means(name: str) -> Array:
        """Means of a column over the blocks [blocks, n]."""
        sums = np.add.reduceat(samples.columns[name], starts, axis=0)
        return np.asarray(sums / counts[:, None])

    position = means(names[0])
    speed = means(names[1])
    acceleration = means(names[2]) if len(names) > 2 else None
    current = means("actual_current")
    blocks = number[starts]
    time = (blocks + 0.5) * block
    unknown = np.full_like(current, np.nan)
    temperature = samples.columns.get("joint_temperatures")
    warmth = unknown if temperature is None else temperature[starts]
    payload = np.full((len(blocks), 4), np.nan)
    # The first and the last block may be cut off.
    whole = counts >= 0.5 * np.median(counts)
    cuts = np.flatnonzero((np.diff(blocks) != 1.0) | ~whole[1:] | ~whole[:-1]) + 1
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


# Health: friction and torque constants of the learning's minutes
# (identification/minute.py), and the standby power as tracked so far. Nothing is read
# twice, memory is constant.

LEAST_STILL = 2.0  # standstill in a minute from which its standby power is stated [s]
_FIELDS = (*TARGETS, *ACTUALS, "actual_current", "joint_temperatures")


class HealthRows:
    """Rows of `health` from the powers of consecutive samples; keeps one small row per minute.

    Minutes begin by the host's clock; gaps and pauses do not matter. A restart of the
    controller's clock and a new payload end the window of motion in progress.

    Args:
        calculator: that computes the powers, with the model that friction is compared
            with.
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
        self._dynamics: ArmDynamics | None = None  # with the payload of the last samples
        self._time = -np.inf  # shifted time of the last sample [s]
        self._shift: float | None = None
        """Added to the controller's time, so that its minutes begin when the host's do
        [s]."""
        self._minutes: dict[float, dict[str, Any]] = {}
        """Minutes in progress by number: standstill [s], begin by the host [s], columns
        so far."""
        self._rows: list[dict[str, Any]] = []  # minutes that are over

    def update(self, table: PowerTable) -> None:
        """Take powers that follow the powers of the last call."""
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
        begins = [round(1e9 * row["begin"]) for row in rows]
        columns: dict[str, Any] = {"minute": np.array(begins, dtype=np.int64)}
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
            self._minute(number).update(
                joint_moving=minute.moving_seconds,
                joint_temperature=minute.temperature,
                joint_friction=scale,
                joint_friction_std=scale * np.sqrt(np.diag(minute.covariance)),
                joint_torque_constant=self._constant * minute.torque_constant,
                joint_torque_constant_std=self._constant * minute.torque_constant_std,
            )

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
            # The clocks drift apart; whole minutes all the same.
            offset = round(float(host[part.start] - time[part.start]) / MINUTE)
            minute.setdefault("begin", MINUTE * (offset + float(number[part.start])))
            minute["still"] += float(still[part].sum())
            if anchored and minute["still"] >= LEAST_STILL and held[part].any():
                last = int(np.flatnonzero(held[part])[-1])
                minute["standby"] = float(standby[part][last])
                minute["standby_std"] = float(standby_std[part][last])

    def _minute(self, number: float) -> dict[str, Any]:
        """A minute in progress by its number; it begins without standstill."""
        return self._minutes.setdefault(number, {"still": 0.0})

    def _close(self, until: float) -> None:
        """End the minutes before a number.

        Minutes with motion or standstill become rows.
        """
        for number in sorted(each for each in self._minutes if each < until):
            minute = self._minutes.pop(number)
            if "begin" in minute and len(minute) > 2:
                self._rows.append(minute)


_OF_JOINTS = (
    "joint_moving", "joint_temperature", "joint_friction", "joint_friction_std",
    "joint_torque_constant", "joint_torque_constant_std",
)  # fmt: skip
"""Columns of `health` that have a value per joint, besides the reference of friction."""
