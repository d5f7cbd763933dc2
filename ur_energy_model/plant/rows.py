"""Rows of the tables of the history, from parts of a recording."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow
import pyarrow.compute

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.cycles import MOST_MARKS, Cycle, CycleCounter, Mark
from ur_energy_model.energy.meter import MeterReading, interval
from ur_energy_model.energy.powers import ArmState, Channels, PowerTable
from ur_energy_model.identification.filtered_motion import FilteredMotion
from ur_energy_model.learning.changes import TYPICAL_SPEED, friction_torque
from ur_energy_model.learning.minute import MINUTE, Minute, MinuteMeter, Windows
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.plant.energy_parts import SECOND, PartTable, host_times
from ur_energy_model.plant.schema import (
    SourceKeys,
    arrow_schema,
    arrow_table,
    lists,
    same_texts,
    times,
)
from ur_energy_model.telemetry.samples import Telemetry, run_starts, slices_between
from ur_energy_model.typing import Array


def second_rows(parts: PartTable, keys: SourceKeys, channels: Channels) -> pyarrow.Table:
    """One row per second; parts that another source covers, or of no time, are left out.

    Args:
        parts: any number.
        keys: of the source.
        channels: of the parts.
    """
    parts = parts.cut(~parts.covered & (parts.accounted + parts.unaccounted > 0.0))
    if (np.diff(parts.second) < 0).any():  # a host clock was set back
        parts = parts.cut(np.argsort(parts.second, kind="stable"))
    first = run_starts(parts.second)

    def sums(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, first, axis=0) if len(first) else values

    net, arm = sums(parts.net), channels.arm
    joint = {name: net[:, columns] for name, columns in channels.per_joint.items()}
    measured = (
        np.logical_and.reduceat(parts.bus_measured, first) if len(first) else parts.bus_measured
    )
    bus = np.where(measured, net[:, arm["bus"]], np.nan)
    temperature, scaling = sums(parts.temperature), sums(parts.scaling)
    readings = np.maximum(temperature[:, -1:], 1.0)
    states = {}
    for state in ArmState:
        name = state.name.lower()
        states[f"{name}_time"] = net[:, channels.state_time + state]
        states[f"{name}_energy"] = net[:, channels.state_energy + state]
    columns = {
        "second": times(parts.second[first] * SECOND),
        "source": keys.source,
        "robot": keys.robot,
        "model": keys.model,
        "accounted": sums(parts.accounted),
        "unaccounted": sums(parts.unaccounted),
        "samples": sums(parts.samples),
        "total_energy": net[:, arm["total"]],
        "total_std": channels.deviations_of_total(net),
        "bus_energy": bus,
        "standby_energy": net[:, arm["standby"]],
        "driver_energy": net[:, arm["driver"]],
        "residual_energy": net[:, arm["total"]] - bus,
        "peak_power": np.maximum.reduceat(parts.peak, first) if len(first) else parts.peak,
        **states,
        "joints": same_texts(channels.joints, len(first)),
        "joint_energy": lists(joint["electrical_power"]),
        "joint_mechanical_energy": lists(joint["mechanical_power"]),
        "joint_friction_energy": lists(joint["friction_loss"]),
        "joint_copper_energy": lists(joint["copper_loss"]),
        "joint_temperature": lists(temperature[:, :-1] / readings, temperature[:, -1] > 0),
        "speed_scaling": np.where(
            scaling[:, 1] > 0, scaling[:, 0] / np.maximum(scaling[:, 1], 1.0), np.nan
        ),
        "regeneration_energy": net[:, arm["regeneration"]],
    }
    return arrow_table("seconds", columns)


def joint_rows(seconds: pyarrow.Table) -> pyarrow.Table:
    """Rows of joint_seconds, one per row of `seconds` and joint; the column `arm` stays."""
    seconds = seconds.combine_chunks()
    joints = seconds["joints"]
    rows, schema = pyarrow.compute.list_parent_indices(joints), arrow_schema("joint_seconds")
    columns = {"joint": pyarrow.compute.list_flatten(joints)}
    for name in schema.names:
        if name in seconds.schema.names:
            columns[name] = seconds[name].take(rows)
    for name in ("energy", "mechanical_energy", "friction_energy", "copper_energy", "temperature"):
        lists_ = seconds[f"joint_{name}"]
        flat = pyarrow.compute.list_flatten(lists_)
        if lists_.null_count:  # rows without the list have no values
            values = np.full((len(seconds), len(rows) // max(len(seconds), 1)), np.nan)
            values[lists_.is_valid().to_numpy(zero_copy_only=False)] = flat.to_numpy().reshape(
                -1, values.shape[1]
            )
            flat = pyarrow.array(values.ravel(), from_pandas=True)
        columns[name] = flat
    found = pyarrow.table([columns[name] for name in schema.names], schema=schema)
    return found.add_column(0, "arm", seconds["arm"].take(rows))


# CycleRows: rows of the table `cycles` from parts of a recording.


class CycleRows:
    """Completed cycles of one source, part by part.

    A cycle counts where it begins and ends in the source, and no other source covers a part of it:
    left out are its seconds too, and cycles of two sources may begin at different moments.

    Args:
        channels: of the parts.
    """

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._counter = CycleCounter()
        self._reading = MeterReading.zero(len(channels))
        self._covered = self._unmeasured = 0
        """Parts so far that another source covers, and parts without measured bus power."""
        self._counts: deque[tuple[int, int]] = deque(maxlen=MOST_MARKS)
        """These numbers at the marks."""
        self._done: list[tuple[Cycle, bool]] = []

    def update(self, parts: PartTable) -> None:
        """Take parts that follow those of the last call."""
        begins = [k for k, mark in enumerate(parts.marks) if mark is not None]
        for rows in slices_between(begins, len(parts)):
            mark = parts.marks[rows.start]
            if mark is not None:
                self._mark(parts.begin[rows.start] / SECOND, mark)
            self._reading += parts.reading(rows)
            self._counter.observe(float(parts.peak[rows].max()))
            self._covered += int(np.count_nonzero(parts.covered[rows]))
            self._unmeasured += int(np.count_nonzero(~parts.bus_measured[rows]))

    def _mark(self, time: float, mark: Mark) -> None:
        """Take a mark at a host time [s]."""
        self._counts.append((self._covered, self._unmeasured))
        done = self._counter.mark(time, self._reading, mark)
        ends = [*mark.ends, 0][-1 - len(done) :]
        for cycle, (begin, end) in zip(done, pairwise(ends), strict=True):
            before, after = self._counts[-1 - begin], self._counts[-1 - end]
            if after[0] == before[0]:
                self._done.append((cycle, after[1] == before[1]))

    def take(self, keys: SourceKeys) -> pyarrow.Table:
        """Rows of the cycles that ended since the last call."""
        done, self._done = self._done, []
        channels, cycles = self._channels, [cycle for cycle, _ in done]
        net = np.array([cycle.reading.net for cycle in cycles]).reshape(-1, len(channels))
        values = [cycle.summary(channels) for cycle in cycles]
        total, std = net[:, channels.arm["total"]], channels.deviations_of_total(net)
        bus = np.where([measured for _, measured in done], net[:, channels.arm["bus"]], np.nan)
        names = ("duration", "peak_power", "motion_time", "motion_energy", "idle_time")
        ends = interval(total, std)
        columns = {
            "start": times(np.array([round(c.start * SECOND) for c in cycles], dtype=np.int64)),
            "source": keys.source,
            "robot": keys.robot,
            "model": keys.model,
            "number": np.array([cycle.number for cycle in cycles], dtype=np.int64),
            "program": pyarrow.array([cycle.program for cycle in cycles], pyarrow.string()),
            **{
                name: np.array([value[name] for value in values], dtype=float)
                for name in (*names, "idle_energy")
            },
            "total_energy": total,
            "total_std": std,
            "bus_energy": bus,
            "energy_low": ends[:, 0],
            "energy_high": ends[:, 1],
            "joints": same_texts(channels.joints, len(cycles)),
            "joint_energy": lists(net[:, channels.per_joint["electrical_power"]]),
            **{
                f"{name}_energy": net[:, channels.arm[name]]
                for name in ("standby", "driver", "regeneration")
            },
        }
        return arrow_table("cycles", columns)


# Motion thinned to means over short blocks of time, cheap enough for every sample of a year.

BLOCK = 0.04
"""Length of a block [s]: all that minutes of friction use (learning/minute.py)."""
_PERIODS = 2.0
"""Length of a block in sample periods, at least."""
_ROUNDING = 1e-4
"""Share of a block by which a sample may miss its begin: clocks count in binary fractions."""
TARGETS = ("target_q", "target_qd", "target_qdd")
ACTUALS = ("actual_q", "actual_qd")


def thinned_motions(samples: Telemetry) -> Iterator[FilteredMotion]:
    """Stretches of consecutive block means, two blocks or more each.

    Positions, speeds and accelerations are the controller's targets where it reports them, as
    these have no noise; else measured ones, with accelerations from differences of the means.

    Args:
        samples: usable ones, ascending in time, of one setup; without currents and motion there
            are no stretches.
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
        q, qd = motion[0][part], motion[1][part]
        qdd = motion[2][part] if len(motion) > 2 else np.gradient(qd, block, axis=0)
        yield FilteredMotion(
            time=time[part],
            q=q,
            qd=qd,
            qdd=qdd,
            current=current[part],
            moment=unknown[part],
            temperature=warmth[part],
            payload=payload[part],
        )


# What each minute of telemetry shows of an arm's health, from the powers that history computes.
#
# Friction and torque constants are those of the learning's minutes (learning/minute.py), standby
# power is the calculator's own. Nothing is read twice, memory is constant.

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


# HealthRows: the history's table `health`, made from powers.

TABLE = "health"


class HealthRows:
    """Makes the rows of `health` as powers arrive; keeps one small row per minute.

    Args:
        calculator: that computes the powers.
    """

    def __init__(self, calculator: EnergyCalculator) -> None:
        self._joints = calculator.robot.joint_names
        self._meter = HealthMeter(calculator)
        self._rows: list[HealthRow] = []

    def update(self, powers: PowerTable) -> None:
        """Take powers that follow those of the last call."""
        self._rows += self._meter.observe(
            powers, np.asarray(1e-9 * host_times(powers.samples), dtype=float)
        )

    def complete(self, keys: SourceKeys) -> pyarrow.Table:
        """Rows of the minutes that are over; each is returned once."""
        rows, self._rows = self._rows, []
        return self._table(rows, keys)

    def rows(self, keys: SourceKeys) -> pyarrow.Table:
        """Rows that were not returned yet; the minute in progress ends with this call."""
        self._rows += self._meter.finish()
        return self.complete(keys)

    def _table(self, rows: Sequence[HealthRow], keys: SourceKeys) -> pyarrow.Table:
        return health_table(rows, self._meter.reference, self._joints, keys)


def health_table(
    rows: Sequence[HealthRow], reference: Array, joints: Sequence[str], keys: SourceKeys
) -> pyarrow.Table:
    """The table `health` of one source.

    Args:
        rows: any number.
        reference: see `HealthMeter` [n].
        joints: names of the n joints.
        keys: of the source.
    """
    n = len(joints)

    def per_joint(name: str) -> Array:
        return np.array([getattr(row, name) for row in rows], dtype=float).reshape(-1, n)

    def whole_arm(name: str) -> Array:
        return np.array([getattr(row, name) for row in rows], dtype=float)

    return arrow_table(
        TABLE,
        {
            "minute": times(np.array([round(1e9 * row.minute) for row in rows], dtype=np.int64)),
            "source": keys.source,
            "robot": keys.robot,
            "model": keys.model,
            "joints": same_texts(joints, len(rows)),
            "joint_moving": lists(per_joint("moving")),
            "joint_temperature": lists(per_joint("temperature")),
            "joint_friction": lists(per_joint("friction")),
            "joint_friction_std": lists(per_joint("friction_std")),
            "joint_friction_reference": lists(np.tile(reference, (len(rows), 1))),
            "joint_torque_constant": lists(per_joint("torque_constant")),
            "joint_torque_constant_std": lists(per_joint("torque_constant_std")),
            "standby": whole_arm("standby"),
            "standby_std": whole_arm("standby_std"),
        },
    )
