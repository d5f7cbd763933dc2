"""The live estimator: telemetry in, powers and energy counters out. Pure; nodes give it a voice."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.estimation.batches import ControllerCounter, merged, rows_of
from ur_energy_model.estimation.channels import ArmState, Channels, arm_states
from ur_energy_model.estimation.counters import EnergyCounters, utc_now
from ur_energy_model.estimation.cycles import Cycle, CycleCounter, CycleLog, CycleStarts, Trigger
from ur_energy_model.estimation.powers import PowerFlow, PowerOptions
from ur_energy_model.estimation.snapshot import Snapshot
from ur_energy_model.estimation.tracking import ResidualMonitor
from ur_energy_model.model.energy import DEFAULT_GAP_LIMIT, MeterReading
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import Telemetry

Array = NDArray[np.float64]

LIVE_FIELDS: tuple[str, ...] = (
    "timestamp", "actual_q", "actual_qd", "actual_current", "target_q", "target_qd", "target_qdd",
    "joint_temperatures", "actual_robot_voltage", "actual_robot_current",
    "actual_robot_energy_consumed", "actual_robot_braking_energy_dissipated",
    "payload", "payload_cog", "payload_inertia", "speed_scaling", "target_speed_fraction",
    "robot_mode", "safety_mode", "runtime_state", "actual_digital_output_bits",
    "output_int_register_0",
)  # fmt: skip
"""RTDE fields that the estimator reads; what a controller lacks is left out."""

KEPT_CYCLES = 1000
SETTLE_AFTER = 0.1
"""Samples of this length are accounted for even if nobody looks [s]."""


@dataclass(frozen=True)
class LiveOptions:
    """How a LiveEstimator works.

    Attributes:
        power: how powers are found.
        gap_limit: longest gap between samples that is bridged [s].
        drift_alarm: mean residual of model minus bus power that raises the alarm [W].
        drift_time: time constant of that mean [s].
        cycle_trigger, cycle_output: what starts a cycle, see CycleStarts.
        state_file: where counters survive a restart; None keeps none.
        cycle_log: CSV file that collects cycles; None keeps none.
    """

    power: PowerOptions = field(default_factory=PowerOptions)
    gap_limit: float = DEFAULT_GAP_LIMIT
    drift_alarm: float = 5.0
    drift_time: float = 60.0
    cycle_trigger: Trigger = "none"
    cycle_output: int = 0
    state_file: Path | None = None
    cycle_log: Path | None = None


class LiveEstimator:
    """Powers and energies of one arm while it works.

    Not thread-safe: one thread updates it, or its owner holds a lock.

    Args:
        model: identified model of the arm.
        robot: its description.
        options: see LiveOptions.
        on_cycle: called with each completed cycle.

    Raises:
        InputError: the state file is damaged, in use or of another arm.
        WrongRobotError: model and description have different joints.
    """

    def __init__(
        self,
        model: EnergyModel,
        robot: RobotDescription,
        options: LiveOptions | None = None,
        *,
        on_cycle: Callable[[Cycle], None] | None = None,
    ) -> None:
        self.options = LiveOptions() if options is None else options
        self.flow = PowerFlow(model, robot, self.options.power)
        self.channels = self.flow.channels
        self.residual = ResidualMonitor(self.options.drift_alarm, self.options.drift_time)
        self.cycles: deque[Cycle] = deque(maxlen=KEPT_CYCLES)
        self.samples = 0
        """Samples accounted for."""
        self.refused = 0
        """Samples left out because a value was not finite."""
        self.latest_total = 0.0
        """Power of the whole arm at the last sample, brakes released [W]."""
        self.log_problem: str | None = None
        """Why the last cycle is not in the cycle log."""
        self._pending: list[Telemetry] = []
        self._on_cycle = on_cycle
        self._starts = CycleStarts(self.options.cycle_trigger, self.options.cycle_output)
        self._cycle = CycleCounter()
        self._cycle_requested = False
        log = self.options.cycle_log
        self._log = None if log is None else CycleLog(log)
        self._counters = EnergyCounters(
            self.channels, self.options.gap_limit, self.options.state_file
        )
        self._shown: dict[str, MeterReading] = {}
        self._last: Telemetry | None = None
        self._last_power = np.zeros(len(self.channels))
        self._last_state = ArmState.OFF
        self._controller_energy = ControllerCounter()

    def update(self, batch: Telemetry) -> None:
        """Take in samples that follow the previous ones: their power is known on return.

        Energies and all that follows from them are brought up to date for several packets
        together, at the latest when somebody looks.

        Raises:
            MissingFieldError: the source lacks a field that the estimator cannot do without.
        """
        if "actual_qd" not in batch.columns:
            batch.require("actual_qd", purpose="live energy")
        if self._pending and batch.columns.keys() != self._pending[0].columns.keys():
            self._settle()
        self.flow.conditions.follow(batch)
        self.latest_total = self.flow.arrived(batch)
        self._pending.append(batch)
        if batch.time[-1] - self._pending[0].time[0] >= SETTLE_AFTER:
            self._settle()

    def sense(self, qd: Sequence[float], current: Sequence[float]) -> None:
        """Take the newest packet's values: `latest_total` is known on return.

        The packet itself follows in `update`, together with others. This alone may be called
        beside everything else, from another thread.

        Args:
            qd: joint velocities [n], rad/s.
            current: measured motor currents [n], A.
        """
        self.latest_total = self.flow.power_now(qd, current)

    def snapshot(self, viewer: str = "live") -> Snapshot | None:
        """Where things stand; None before the first sample.

        The journal is written first, so that nothing is shown that a kill could take back.

        Args:
            viewer: who looks; mean powers are since the same viewer's last look.
        """
        self._settle()
        last = self._last
        if last is None:
            return None
        self._counters.note()
        reading = self._counters.ever
        passed = reading - self._shown.get(viewer, reading)
        self._shown[viewer] = reading
        power = passed.net / passed.accounted if passed.accounted > 0 else self._last_power
        statistics = self.residual.statistics
        return Snapshot(
            channels=self.channels,
            time=float(last.time[-1]),
            q=last.columns["actual_q"][-1] if "actual_q" in last.columns else None,
            qd=last.columns["actual_qd"][-1],
            power=power,
            since_reset=self._counters.since_reset,
            ever=reading,
            state=self._last_state,
            robot_mode=_code(last, "robot_mode"),
            safety_mode=_code(last, "safety_mode"),
            bus_measured=last.has_bus_power,
            standby=self.flow.standby.power,
            standby_measured=self.flow.standby.measured,
            residual_mean=statistics.mean,
            residual_std=statistics.std,
            drifting=self.residual.drifting,
            controller_energy=self._controller_energy.total,
            payload=self.flow.conditions.setup.payload.mass,
            speed_scaling=self.flow.conditions.speed_scaling,
            temperature=self.flow.conditions.temperature,
            samples=self.samples,
            refused=self.refused,
            controller_restarts=self._counters.clock_restarts,
            reset_time=self._counters.reset_time,
            reset_reason=self._counters.reset_reason,
        )

    def reset(self, reason: str) -> None:
        """Start the counters since reset anew; those since ever go on."""
        self._settle()
        self._counters.reset(reason)

    def read_interval(self) -> MeterReading:
        """Energies since the last call of this (or since ever at the first)."""
        self._settle()
        return self._counters.read_interval()

    def start_cycle(self) -> None:
        """Begin a new cycle with the next sample."""
        self._settle()
        self._cycle_requested = True

    def use_model(self, model: EnergyModel) -> None:
        """Go on with another model of the same arm (hot reload); counters are kept.

        Raises:
            WrongRobotError: it has other joints.
        """
        self._settle()
        flow = PowerFlow(model, self.flow.robot, self.options.power)
        flow.conditions.adopt(self.flow.conditions)
        self.flow = flow
        if flow.channels.names != self.channels.names:
            self._change_channels(flow.channels)
        self.residual = ResidualMonitor(self.options.drift_alarm, self.options.drift_time)

    def retune(self, options: LiveOptions) -> None:
        """Take over the options that may change while the estimator works.

        These are gap_limit, drift_alarm, drift_time, and track_standby, standby_limit and
        idle_power of the powers.
        """
        tuned = replace(
            self.flow.options, track_standby=options.power.track_standby,
            standby_limit=options.power.standby_limit, idle_power=options.power.idle_power,
        )  # fmt: skip
        self.options = replace(
            self.options, power=tuned, gap_limit=options.gap_limit,
            drift_alarm=options.drift_alarm, drift_time=options.drift_time,
        )  # fmt: skip
        self.flow.options = tuned
        self.flow.standby.enabled = tuned.track_standby
        self.flow.standby.limit = tuned.standby_limit
        self._counters.gap_limit = options.gap_limit
        self.residual.alarm = options.drift_alarm
        self.residual.time_constant = self.residual.statistics.time_constant = options.drift_time

    def saving(self) -> Callable[[], None]:
        """What to save now; the answer brings it to disk, and needs no lock of the owner."""
        self._settle()
        return self._counters.saving()

    def save(self) -> None:
        """Bring the counters to disk."""
        self.saving()()

    def close(self) -> None:
        """Save, and release the state file."""
        self._settle()
        self._counters.close()

    def _change_channels(self, channels: Channels) -> None:
        """Carry all counters over to a model with other parameter errors."""
        names = self.channels.names
        self._counters.change_channels(channels)
        self._cycle.carry_over(lambda old: channels.adopt(old, names))
        self._shown.clear()
        self._last_power = np.zeros(len(channels))
        self.channels = channels

    def _settle(self) -> None:
        """Account for the samples whose powers are known."""
        if not self._pending:
            return
        batch = merged(self._pending)
        self._pending = []
        states = arm_states(batch, batch.columns["actual_qd"])
        power = self.flow.matrix(batch, states)
        if not np.isfinite(power.sum()):
            good = np.asarray(np.isfinite(power).all(axis=1))
            self.refused += int((~good).sum())
            if not good.any():
                return
            batch, power, states = rows_of(batch, good), power[good], states[good]
        before = self._counters.ever.accounted
        self._integrate(batch, power)
        if batch.has_bus_power:
            passed = self._counters.ever.accounted - before
            self.flow.track(batch, power, states, passed)
            columns = self.channels.arm
            residual = power[:, columns["total"]] - power[:, columns["bus"]]
            self.residual.update(passed, float(residual.mean()))
        self._controller_energy.update(batch)
        self.samples += len(batch)
        self._last, self._last_power = batch, power[-1]
        self._last_state = ArmState(int(states[-1]))

    def _integrate(self, batch: Telemetry, power: Array) -> None:
        """Count energies, cycle by cycle."""
        starts = set(self._starts.find(batch).tolist())
        if self._cycle_requested:
            self._cycle_requested = False
            starts.add(0)
        total = power[:, self.channels.arm["total"]]
        edges = sorted(starts | {0, len(batch)})
        for start, stop in pairwise(edges):
            if start in starts:
                self._begin_cycle(float(batch.time[start]))
            self._counters.add(batch.time[start:stop], power[start:stop])
            if self._cycle.open:
                self._cycle.observe(float(total[start:stop].max()))

    def _begin_cycle(self, time: float) -> None:
        done = self._cycle.begin(time, self._counters.ever)
        if done is None:
            return
        self.cycles.append(done)
        if self._log is not None:
            try:
                self._log.add(done, self.channels, utc_now())
                self.log_problem = None
            except OSError as error:  # counting goes on without
                self.log_problem = f"{self._log.path}: cannot be written ({error.strerror})"
        if self._on_cycle is not None:
            self._on_cycle(done)


def _code(batch: Telemetry, name: str) -> int | None:
    return int(batch.columns[name][-1]) if name in batch.columns else None
