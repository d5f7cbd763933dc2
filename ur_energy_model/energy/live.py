# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The live estimator, independent of ROS: telemetry in, powers and energy counters out."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from ur_energy_model.consistency.controller_constants import STATED
from ur_energy_model.energy.arm_fingerprint import LiveConstants
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.counters import EnergyCounters
from ur_energy_model.energy.cycle_energies import Cycle, CycleCounter, CycleLog
from ur_energy_model.energy.cycles import CycleDetector, Mark, Marks, Trigger
from ur_energy_model.energy.live_statistics import ControllerCounter, RunningMean
from ur_energy_model.energy.matched_model import model_of_arm
from ur_energy_model.energy.meter import MeterReading, Totals
from ur_energy_model.energy.powers import (
    FIELDS,
    ArmState,
    PowerOptions,
    PowerTable,
)
from ur_energy_model.energy.program import LINE
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.state_file import StateFile
from ur_energy_model.telemetry.samples import (
    RecordingInfo,
    Telemetry,
    changes,
    concatenate,
    host_times,
)
from ur_energy_model.typing import Array

LIVE_FIELDS: tuple[str, ...] = (
    "timestamp",
    *FIELDS,
    *STATED,
    "actual_robot_energy_consumed",
    "actual_robot_braking_energy_dissipated",
    "runtime_state",
    "actual_digital_output_bits",
    "output_int_register_0",
    LINE,
)
"""RTDE fields that the estimator reads, where the controller has them."""


@dataclass(frozen=True)
class LiveOptions:
    """Options of a LiveEstimator.

    Attributes:
        power: how powers are computed.
        drift_alarm: mean unexplained power that raises the alarm [W].
        drift_time: time constant of the mean of the unexplained power [s].
        cycle_trigger: what starts a cycle, see `CycleDetector`.
        cycle_output: number of the digital output that starts a cycle, where the trigger
            is an output.
        state_file: SQLite file that keeps the counters over restarts; None for none.
        cycle_log: CSV file with a row per cycle; None for none.
        same_arm: whether the model is of this very arm, see `model_of_arm`.
        constants: torque constants that the controller of the arm states; None to estimate
            them from the samples (target torques over target currents).
    """

    power: PowerOptions = field(default_factory=PowerOptions)
    drift_alarm: float = 5.0
    drift_time: float = 60.0
    cycle_trigger: Trigger = "auto"
    cycle_output: int = 0
    state_file: Path | None = None
    cycle_log: Path | None = None
    same_arm: bool = False
    constants: ControllerConstants | None = None


def _codes(samples: Telemetry, name: str, rows: Sequence[int]) -> list[int | None]:
    """Values of a field of codes at samples; None where it is missing or not measured."""
    if name not in samples.columns:
        return [None] * len(rows)
    values = samples.columns[name][rows].tolist()
    return [int(value) if math.isfinite(value) else None for value in values]


_STATES = tuple(ArmState)
_RUNNING = int(ArmState.STANDSTILL)
"""First of the states, in their order, in which the brakes are released."""
KEPT_CYCLES = 1000  # number of the newest cycles that an estimator keeps
PROCESS_AFTER = 0.25
"""Samples are collected, and processed when they cover this time [s]. Processing many samples at
once takes much less time than one by one, as where a delayed connection delivers them all at
once. A snapshot is taken only when it is due (`telemetry.source.Decimator`)."""
MOST_PENDING = 200
"""Batches are processed when so many are collected, whatever their times."""


class LiveEstimator:
    """Powers and energies of one arm while it works.

    Not thread-safe: one thread uses it, or its callers share a lock.

    Args:
        model: identified model of the arm.
        robot: description of the arm.
        options: see LiveOptions.
        on_cycle: called with each completed cycle.
        on_powers: called with integrated powers and the marks of cycles in them.

    Attributes:
        calculator: computes the powers with the model in use.
        channels: names and places of the channels.
        cycles: the newest completed cycles, at most KEPT_CYCLES.
        samples: number of samples processed.
        arm_warning: why the intervals are wider because the model is of another arm; None
            if the model is of this arm.

    Raises:
        InputError: the state file is damaged, in use or belongs to another robot.
        WrongRobotError: model and description have different joints.
    """

    def __init__(
        self,
        model: EnergyModel,
        robot: RobotDescription,
        options: LiveOptions | None = None,
        *,
        on_cycle: Callable[[Cycle], None] | None = None,
        on_powers: Callable[[PowerTable, Marks], None] | None = None,
    ) -> None:
        self.options = LiveOptions() if options is None else options
        self._constants = self.options.constants
        matched = model_of_arm(
            model, RecordingInfo(), self._constants, same_arm=self.options.same_arm
        )
        self.calculator = EnergyCalculator(matched.model, robot, self.options.power)
        self.channels = self.calculator.channels
        self.cycles: deque[Cycle] = deque(maxlen=KEPT_CYCLES)
        self.samples = 0
        self.arm_warning = matched.warning
        self._given = model
        self._info = RecordingInfo()
        self._pending: list[Telemetry] = []
        self._on_cycle = on_cycle
        self._on_powers = on_powers
        self._log: CycleLog | None = None
        if self.options.cycle_log is not None:
            self._log = CycleLog(self.options.cycle_log)
        self._counters = EnergyCounters(
            self.channels, self.options.state_file, robot.name
        )
        self._begin_arm(self.options.cycle_trigger)

    def _begin_arm(self, trigger: Trigger) -> None:
        """Begin the state that belongs to one arm; cycles are numbered on from its counters."""
        self._unexplained = RunningMean(self.options.drift_time)
        self._fingerprint = LiveConstants(self.calculator.robot)
        self._stated: ControllerConstants | None = None  # used from the next batch on
        self._detector = CycleDetector(trigger, self.options.cycle_output)
        self._cycle = CycleCounter(self._counters.cycles)
        self._end: int | None = None  # host time of the last sample [ns]
        self._controller_energy = ControllerCounter()
        # At the last snapshot of each viewer: energies [channels], J, and accounted time [s].
        self._shown: dict[str, tuple[Array, float]] = {}
        self._last: PowerTable | None = None

    @property
    def refused(self) -> int:
        """Number of samples left out because of values that are not finite or impossible."""
        return self.calculator.refused

    @property
    def constants(self) -> ControllerConstants:
        """Torque constants that the controller of the arm states, as far as they are in use."""
        if self._constants is None:
            return ControllerConstants.unknown(self.calculator.robot.dof)
        return self._constants

    @property
    def state_file(self) -> StateFile | None:
        """The open state file, which may hold more than the counters; None without one."""
        return self._counters.file

    @property
    def disk_problem(self) -> str | None:
        """Why the last saving of the counters failed; None if it succeeded."""
        return self._counters.problem

    @property
    def log_problem(self) -> str | None:
        """Why the last writing of the cycle log failed; None if it succeeded."""
        return None if self._log is None else self._log.problem

    def update(self, batch: Telemetry) -> None:
        """Accept samples that follow the previous ones.

        Several packets are processed together, at the latest for the next snapshot.

        Raises:
            MissingFieldError: the source lacks a field that the estimator needs.
        """
        self.calculator.currents(batch)  # refuses a source without the required fields
        if self._pending and batch.columns.keys() != self._pending[0].columns.keys():
            self._process()
        serial = batch.info.serial
        if serial is not None and serial != self._info.serial:
            self._match_model(batch.info)
        if self._stated is not None:
            self._constants = self._stated
            self._stated = None
            self._use(self._given, same_session=True)
        if serial is not None and serial != self._counters.stated.serial:
            self._bind_counters(serial)
        self._pending.append(batch)
        collected = float(batch.time[-1]) - float(self._pending[0].time[0])
        if not 0.0 <= collected < PROCESS_AFTER or len(self._pending) >= MOST_PENDING:
            self._process()

    def _match_model(self, info: RecordingInfo) -> None:
        """Match the model to an arm whose serial number differs from the number before."""
        self._process()
        if self._info.serial is not None:  # the known constants belong to the arm before
            self._constants = self.options.constants
            self._fingerprint = LiveConstants(self.calculator.robot)
            self._stated = None
        self._info = info
        self.use_model(self._given)

    def _bind_counters(self, serial: str) -> None:
        """Use the counters of the arm with this serial number; another arm begins anew."""
        self._process()
        if not self._counters.bind(serial):
            return
        refused = self.refused
        calculator = self.calculator
        self.calculator = EnergyCalculator(
            calculator.model, calculator.robot, self.options.power
        )
        self.calculator.refused = refused
        self._begin_arm(self._detector.trigger)

    def snapshot(self, viewer: str = "live") -> Snapshot | None:
        """State after the last sample.

        The counters are journalled first, so that a kill cannot take back published values.

        Args:
            viewer: name of a display; mean powers are since its previous snapshot.

        Returns:
            The state; None before the first sample.
        """
        self._process()
        if self._last is None:
            return None
        rows = [len(self._last.samples) - 1]
        (found,) = self._snapshots(self._last, rows, self._counters.meter.totals, viewer)
        self._counters.journal()
        return found

    def snapshots(self, ends: Sequence[int]) -> list[Snapshot]:
        """States after several samples of the last `update`, for the viewer "live".

        The counters are journalled first, as by `snapshot`.

        Args:
            ends: numbers of samples from the begin of the batch after which a state is
                due, ascending.

        Returns:
            A state for each of these numbers. Where samples of the batch were left out as
            impossible, only the state after the last sample; none before the first sample.
        """
        found = self._process(ends)
        if len(found) == len(ends):
            self._counters.journal()
            return found
        last = self.snapshot()
        return [] if last is None else [last]

    def _snapshots(
        self, last: PowerTable, rows: Sequence[int], totals: Totals, viewer: str
    ) -> list[Snapshot]:
        """States after some samples, for a viewer.

        Args:
            last: powers of the samples.
            rows: numbers of the samples in this table.
            totals: energies up to each of the samples in `rows`.
            viewer: the mean powers begin at its previous snapshot.
        """
        counters = self._counters
        samples = last.samples
        columns = last.samples.columns
        power, seconds = self._mean_powers(last.power[rows], totals, viewer)
        unexplained = self._unexplained
        stated = counters.stated
        standby = self.calculator.standby
        conditions = self.calculator.conditions
        settled = unexplained.elapsed >= unexplained.time_constant
        since_reset = totals.readings(stated.reset)
        snapshot = partial(
            Snapshot,
            channels=self.channels,
            bus_measured=last.bus_measured,
            standby=standby.power,
            standby_std=standby.std,
            standby_measured=standby.measured,
            unexplained_mean=unexplained.mean,
            unexplained_std=unexplained.std,
            drifting=settled and abs(unexplained.mean) > self.options.drift_alarm,
            controller_energy=self._controller_energy.total,
            payload=conditions.setup.payload.mass,
            speed_scaling=conditions.speed_scaling,
            temperature=conditions.temperature,
            samples=self.samples,
            refused=self.refused,
            cycles=counters.cycles,
            controller_restarts=counters.meter.restarts,
            reset_time=stated.reset_time,
            reset_reason=stated.reset_reason,
            serial=stated.serial,
            note=counters.note,
            torque_per_ampere=self.constants.torque_per_ampere,
            arm_warning=self.arm_warning,
        )
        lifetime = totals.readings()
        highest = counters.note_highest(totals.net)
        robot_mode = _codes(samples, "robot_mode", rows)
        safety_mode = _codes(samples, "safety_mode", rows)
        positions = columns.get("actual_q")
        return [
            snapshot(
                time=float(samples.time[row]),
                q=None if positions is None else positions[row],
                qd=columns["actual_qd"][row],
                power=power[k],
                seconds=float(seconds[k]),
                since_reset=since_reset[k],
                lifetime=lifetime[k],
                highest=highest[k],
                state=_STATES[int(last.states[row])],
                robot_mode=robot_mode[k],
                safety_mode=safety_mode[k],
            )
            for k, row in enumerate(rows)
        ]

    def _mean_powers(
        self, power: Array, totals: Totals, viewer: str
    ) -> tuple[Array, Array]:
        """Mean powers between snapshots [snapshots, channels], W, and their times [snapshots], s.

        The first mean begins at the viewer's previous snapshot. Where no time has passed,
        the power of the sample stands for the mean.

        Args:
            power: powers of the samples of the snapshots [snapshots, channels], W.
            totals: energies up to each of these samples.
            viewer: name of a display.
        """
        net = totals.net
        accounted = totals.accounted
        before, since = self._shown.get(viewer, (net[0], float(accounted[0])))
        self._shown[viewer] = net[-1], float(accounted[-1])
        seconds = changes(accounted, since)
        passed = seconds[:, None]
        gained = net - np.concatenate((before[None], net[:-1]))
        mean_power = gained / np.where(passed > 0, passed, 1.0)
        return np.where(passed > 0, mean_power, power), seconds

    def reset(self, reason: str) -> None:
        """Set the counters since reset to zero; the lifetime counters continue.

        Args:
            reason: why, in words; it is stored and shown with the counters.
        """
        self._process()
        self._counters.reset(reason)

    def read_interval(self) -> MeterReading:
        """Read the interval counter, which begins anew with each reading.

        Returns:
            Energies [channels], J, since the last call, also over restarts; at the first
            call, since the state file was created.
        """
        self._process()
        return self._counters.read_interval()

    def start_cycle(self) -> None:
        """Start a new cycle with the next sample."""
        self._process()
        self._detector.request()

    def use_model(self, model: EnergyModel) -> None:
        """Continue with another model of the arm (hot reload); counters are kept.

        Args:
            model: identified or learned model; used from the next sample on.

        Raises:
            WrongRobotError: its joints are not the joints of the arm.
        """
        self._process()
        self._given = model
        self._use(model, same_session=False)

    def _use(self, model: EnergyModel, *, same_session: bool) -> None:
        """Continue with a model, matched to the arm at hand.

        Args:
            model: model as it was read or learned, before it is matched.
            same_session: whether the estimates of the session (standby power, friction)
                are kept; else they begin anew.
        """
        self._process()
        matched = model_of_arm(
            model, self._info, self._constants, same_arm=self.options.same_arm
        )
        self.arm_warning = matched.warning
        model = matched.model
        if model is self.calculator.model:
            return
        calculator = EnergyCalculator(model, self.calculator.robot, self.options.power)
        if same_session:
            calculator.continue_session(self.calculator)
        else:
            calculator.continue_from(self.calculator)
        self.calculator = calculator
        names = self.channels.names
        channels = calculator.channels
        self.channels = channels
        if channels.names != names:
            self._counters.change_channels(channels)
            self._cycle.change_channels(lambda old: channels.convert(old, names))
            self._shown.clear()
            if self._last is not None:
                power = np.zeros((len(self._last.power), len(channels)))
                self._last = replace(self._last, power=power)
        self._unexplained = RunningMean(self.options.drift_time)

    def set_options(self, options: LiveOptions) -> None:
        """Change options while the estimator runs.

        Args:
            options: new options. Only `power` without its method, `drift_alarm` and
                `drift_time` are used; files, method and cycle trigger stay as they are.
        """
        power = replace(options.power, method=self.options.power.method)
        self.options = replace(
            self.options,
            power=power,
            drift_alarm=options.drift_alarm,
            drift_time=options.drift_time,
        )
        self.calculator.set_options(power)
        self._unexplained.time_constant = options.drift_time

    def prepare_save(self) -> Callable[[], None]:
        """Copy the counters for saving.

        Returns:
            A function that writes the copy to the disk. It needs no lock: samples may be
            processed while it waits for the disk.
        """
        self._process()
        if self._log is not None:
            self._log.write()
        return self._counters.prepare_save()

    def save(self) -> None:
        """Write the counters to disk."""
        self.prepare_save()()

    def close(self) -> None:
        """Save, and release the state file."""
        self._process()
        if self._log is not None:
            self._log.write()
        self._counters.close()

    def _process(self, ends: Sequence[int] = ()) -> list[Snapshot]:
        """Process the pending samples.

        Args:
            ends: numbers of samples of the last pending batch, see `snapshots`.

        Returns:
            States after the samples `ends`; none where samples were left out.
        """
        if not self._pending:
            return []
        batch = concatenate(self._pending)
        if self.options.constants is None:
            found_constants = self._fingerprint.update(batch)
            # The constants are used from the next batch on: computed powers are not changed.
            self._stated = found_constants or self._stated
        earlier = len(batch) - len(self._pending[-1])  # samples of the batches before
        self._pending = []
        table = self.calculator(batch)
        if table is None:
            return []
        self._observe_unexplained(table)
        self._controller_energy.update(table.samples)
        self.samples += len(table.samples)
        self._last = table
        stops: list[int] = []
        if len(table.samples) == len(batch):
            stops = [earlier + end for end in ends]
        return self._integrate(table, stops)

    def _integrate(self, table: PowerTable, stops: Sequence[int]) -> list[Snapshot]:
        """Count powers, part by part between the marks of cycles.

        Args:
            table: powers of the samples.
            stops: numbers of samples of the table after which a state is due, ascending.

        Returns:
            States after the samples `stops`.
        """
        total = self.channels.arm["total"]
        time = table.samples.time
        power = table.power
        found: list[Snapshot] = []
        marks = dict(self._detector.find(table.samples))
        host = host_times(table.samples)
        # First, so that the time since the last run belongs to no cycle.
        self._counters.resume(float(time[0]))
        for part in table.parts(marks):
            if (mark := marks.get(part.start)) is not None:
                before = int(host[max(part.start - 1, 0)])
                if part.start == 0 and self._end is not None:
                    before = self._end
                self._mark(before, mark)
                marks[part.start] = mark._replace(number=self._cycle.number)
            due = [stop for stop in stops if part.start < stop <= part.stop]
            steps = table.steps.cut(part)
            within = [stop - part.start for stop in due]
            totals = self._counters.integrate(time[part], steps, power[part], within)
            self._cycle.observe(float(power[part, total].max()))
            if due:
                rows = [stop - 1 for stop in due]
                found += self._snapshots(table, rows, totals.first(len(due)), "live")
        self._end = int(host[-1])
        if self._on_powers is not None:
            self._on_powers(table, marks)
        return found

    def _observe_unexplained(self, table: PowerTable) -> None:
        """Include the unexplained power in its mean, while the arm runs and the bus is measured."""
        arm = self.channels.arm
        measured = table.power[:, arm["measured"]] > 0.0
        counts = (table.states >= _RUNNING) & measured
        seconds = np.where(counts, table.steps.bridged, 0.0)
        passed = float(seconds.sum())
        if passed > 0.0:
            energy = float(seconds @ table.power[:, arm["unexplained"]])
            self._unexplained.update(passed, energy / passed)

    def _mark(self, time: int, mark: Mark) -> None:
        """Report the cycles that are complete with a mark.

        The number of the last cycle is journalled before the cycles are reported, so that
        no other cycle gets the same number after a kill.

        Args:
            time: host time of the last sample before the mark [ns].
            mark: sample at which a cycle may begin.
        """
        done = self._cycle.mark(time, self._counters.meter.reading, mark)
        if done:
            self._counters.cycles = self._cycle.number
            self._counters.journal()
        for cycle in done:
            self.cycles.append(cycle)
            if self._log is not None:
                self._log.append(cycle, self.channels)
            if self._on_cycle is not None:
                self._on_cycle(cycle)
