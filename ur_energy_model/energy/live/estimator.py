"""The live estimator, independent of ROS: telemetry in, powers and energy counters out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.live.controller_counter import ControllerCounter
from ur_energy_model.energy.live.counters import EnergyCounters, utc_now
from ur_energy_model.energy.live.cycle_log import CycleLog
from ur_energy_model.energy.live.cycles import Cycle, CycleCounter, CycleDetector, Mark, Marks
from ur_energy_model.energy.live.options import LiveOptions
from ur_energy_model.energy.live.residual_monitor import ResidualMonitor
from ur_energy_model.energy.live.snapshot import Snapshot, code_of
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.energy.recording_checks import model_of_arm
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, concatenate

KEPT_CYCLES = 1000
PROCESS_AFTER = 0.1
"""Longest time of samples that wait to be processed [s]."""
MOST_PENDING = 200
"""Largest number of batches that wait, whatever their times."""


class LiveEstimator:
    """Powers and energies of one arm while it works.

    Not thread-safe: one thread updates it, or its owner holds a lock.

    Args:
        model: identified model of the arm.
        robot: its description.
        options: see LiveOptions.
        on_cycle: called with each completed cycle.
        on_powers: called with integrated powers and the marks of cycles in them.

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
        self.calculator = EnergyCalculator(model, robot, self.options.power)
        self.channels = self.calculator.channels
        self.residual = ResidualMonitor(self.options.drift_alarm, self.options.drift_time)
        self.cycles: deque[Cycle] = deque(maxlen=KEPT_CYCLES)
        self.samples = 0
        """Number of samples processed."""
        self.arm_warning: str | None = None
        """Why the intervals of another arm's model are wider; None for the arm's own."""
        self._given, self._info = model, RecordingInfo()
        self._pending: list[Telemetry] = []
        self._on_cycle, self._on_powers = on_cycle, on_powers
        self._detector = CycleDetector(self.options.cycle_trigger, self.options.cycle_output)
        self._cycle = CycleCounter()
        self._log = CycleLog(log) if (log := self.options.cycle_log) is not None else None
        self._counters = EnergyCounters(self.channels, self.options.state_file, robot.name)
        self._shown: dict[str, MeterReading] = {}
        self._last: PowerTable | None = None
        self._controller_energy = ControllerCounter()

    @property
    def refused(self) -> int:
        """Number of samples left out because of values that are not finite or impossible."""
        return self.calculator.refused

    @property
    def disk_problem(self) -> str | None:
        """Why the counters are not on the disk, None if they are; each saving tries again."""
        return self._counters.problem

    @property
    def log_problem(self) -> str | None:
        """Why cycles are not in the cycle log, None if they are; each saving tries again."""
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
            self._info = batch.info
            self.use_model(self._given)
        if serial is not None and serial != self._counters.serial:
            self._process()
            if self._counters.bind(serial):
                self._begin_another_arm()
        self._pending.append(batch)
        waited = float(batch.time[-1]) - float(self._pending[0].time[0])
        if not 0.0 <= waited < PROCESS_AFTER or len(self._pending) >= MOST_PENDING:
            self._process()

    def snapshot(self, viewer: str = "live") -> Snapshot | None:
        """State after the last sample; None before the first.

        The journal is written first, so that a kill cannot take back published values.

        Args:
            viewer: name of the caller; mean powers are since its previous snapshot.
        """
        self._process()
        if self._last is None:
            return None
        self._counters.journal()
        return self._snapshot(self._last, len(self._last.samples) - 1, viewer)

    def snapshots(self, ends: Sequence[int]) -> list[Snapshot]:
        """States after samples of the last `update`, of the viewer "live"; as `snapshot`.

        Args:
            ends: numbers of samples of that batch, ascending; at least one.

        Returns:
            one for each of them; only the last where samples were left out.
        """
        if len(ends) > 1:
            found = self._process(ends)
            if len(found) == len(ends):
                self._counters.journal()
                return found
        last = self.snapshot()
        return [] if last is None else [last]

    def _snapshot(self, last: PowerTable, row: int, viewer: str) -> Snapshot:
        """State after a sample up to which the powers are integrated."""
        integral = self._counters.lifetime_uncorrected
        passed = integral - self._shown.get(viewer, integral)
        self._shown[viewer] = integral
        power = passed.net / passed.accounted if passed.accounted > 0 else last.power[row]
        samples, statistics = last.samples, self.residual.statistics
        standby = self.calculator.standby
        return Snapshot(
            channels=self.channels,
            time=float(samples.time[row]),
            q=samples.columns["actual_q"][row] if "actual_q" in samples.columns else None,
            qd=samples.columns["actual_qd"][row],
            power=power,
            since_reset=self._counters.since_reset,
            lifetime=self._counters.lifetime,
            highest=self._counters.highest,
            state=ArmState(int(last.states[row])),
            robot_mode=code_of(samples, "robot_mode", row),
            safety_mode=code_of(samples, "safety_mode", row),
            bus_measured=last.bus_measured,
            standby=standby.power,
            standby_std=standby.std,
            standby_measured=standby.measured,
            residual_mean=statistics.mean,
            residual_std=statistics.std,
            drifting=self.residual.drifting,
            controller_energy=self._controller_energy.total,
            payload=self.calculator.conditions.setup.payload.mass,
            speed_scaling=self.calculator.conditions.speed_scaling,
            temperature=self.calculator.conditions.temperature,
            samples=self.samples,
            refused=self.refused,
            controller_restarts=self._counters.clock_restarts,
            reset_time=self._counters.reset_time,
            reset_reason=self._counters.reset_reason,
            serial=self._counters.serial,
            note=self._counters.note,
        )

    def reset(self, reason: str) -> None:
        """Set the counters since reset to zero; the lifetime counters continue."""
        self._process()
        self._counters.reset(reason)

    def read_interval(self) -> MeterReading:
        """Energy since the last call; since the state file was created at the first."""
        self._process()
        return self._counters.read_interval()

    def start_cycle(self) -> None:
        """Start a new cycle with the next sample."""
        self._process()
        self._detector.request()

    def use_model(self, model: EnergyModel) -> None:
        """Continue with another model of the arm (hot reload); counters are kept.

        Raises:
            WrongRobotError: it has other joints.
        """
        self._process()
        self._given = model
        model, self.arm_warning = model_of_arm(model, self._info, same_arm=self.options.same_arm)
        if model is self.calculator.model:
            return
        calculator = EnergyCalculator(model, self.calculator.robot, self.options.power)
        calculator.continue_from(self.calculator)
        self.calculator = calculator
        if calculator.channels.names != self.channels.names:
            self._change_channels(calculator.channels)
        self.residual = ResidualMonitor(self.options.drift_alarm, self.options.drift_time)

    def set_options(self, options: LiveOptions) -> None:
        """Change options other than the files, the cycle trigger and the method."""
        power = replace(options.power, method=self.options.power.method)
        self.options = replace(
            self.options,
            power=power,
            drift_alarm=options.drift_alarm,
            drift_time=options.drift_time,
        )
        self.calculator.set_options(power)
        self.residual.alarm = options.drift_alarm
        self.residual.time_constant = self.residual.statistics.time_constant = options.drift_time

    def prepare_save(self) -> Callable[[], None]:
        """Take the counters to save; returns a function that writes them and needs no lock."""
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

    def _begin_another_arm(self) -> None:
        """Forget the session of the arm that was counted before."""
        refused, calculator = self.refused, self.calculator
        self.calculator = EnergyCalculator(calculator.model, calculator.robot, self.options.power)
        self.calculator.refused = refused
        self.residual = ResidualMonitor(self.options.drift_alarm, self.options.drift_time)
        self._detector = CycleDetector(self._detector.trigger, self.options.cycle_output)
        self._cycle = CycleCounter(self._cycle.number)
        self._controller_energy = ControllerCounter()
        self._shown.clear()
        self._last = None

    def _change_channels(self, channels: Channels) -> None:
        """Convert all counters for a model with other parameter errors."""
        names = self.channels.names
        self._counters.change_channels(channels)
        self._cycle.change_channels(lambda old: channels.convert(old, names))
        self._shown.clear()
        self._last = (
            None
            if self._last is None
            else replace(self._last, power=np.zeros((len(self._last.power), len(channels))))
        )
        self.channels = channels

    def _process(self, ends: Sequence[int] = ()) -> list[Snapshot]:
        """Process the pending samples; states after samples of the last batch, see `snapshots`."""
        if not self._pending:
            return []
        batch = concatenate(self._pending)
        before, self._pending = len(batch) - len(self._pending[-1]), []
        table = self.calculator(batch)
        if table is None:
            return []
        self.residual.compare(table, self.channels)
        self._controller_energy.update(table.samples)
        self.samples += len(table.samples)
        self._last = table
        complete = len(table.samples) == len(batch)
        return self._integrate(table, [before + end for end in ends] if complete else [])

    def _integrate(self, table: PowerTable, ends: Sequence[int]) -> list[Snapshot]:
        """Integrate energies, cycle by cycle; states after numbers of samples."""
        time, found = table.samples.time, list[Snapshot]()
        marks = self._detector.find(table.samples)
        total = self.channels.arm["total"]
        for part, correction in table.parts((*marks, *ends)):
            if part.start in marks:
                self._mark(float(time[part.start]), marks[part.start])
            if correction is not None:
                self._counters.correct(correction)
            self._counters.integrate(time[part], table.steps.cut(part), table.power[part])
            self._cycle.observe(float(table.power[part, total].max()))
            if part.stop in ends:
                self._counters.note_highest()
                found.append(self._snapshot(table, part.stop - 1, "live"))
        if self._on_powers is not None:
            self._on_powers(table, marks)
        return found

    def _mark(self, time: float, mark: Mark) -> None:
        for done in self._cycle.mark(time, self._counters.lifetime, mark):
            self.cycles.append(done)
            if self._log is not None:
                self._log.append(done, self.channels, utc_now())
            if self._on_cycle is not None:
                self._on_cycle(done)
