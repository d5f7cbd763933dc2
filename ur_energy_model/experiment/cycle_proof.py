# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A recorded and a new cycle in turns on the arm: motion, saving and peaks from its recording.

The new cycle is the one as typed, or a point of the front of energy against peak power.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ur_energy_model.energy.difference import Difference
from ur_energy_model.energy.measured_energy import MeasuredEnergy
from ur_energy_model.errors import InputError, RecordingError
from ur_energy_model.experiment.limits import (
    CHECK_RATE,
    RepeatedMotion,
    SafetyLimits,
    sample_period,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.optimization.cycle import CLOSED, motion_of, recorded_stretches
from ur_energy_model.optimization.optimized_cycle import MeasuredSaving, OptimizedCycle
from ur_energy_model.optimization.pendant import typed_stretches
from ur_energy_model.optimization.power_front import (
    PEAK_WINDOW,
    FrontPoint,
    MeasuredPeak,
    window_means,
)
from ur_energy_model.telemetry.bag.reader import read_bag
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.motions import Chain
from ur_energy_model.typing import Array, Mask

FIELDS = (
    "target_q",
    "actual_robot_voltage",
    "actual_robot_current",
    "joint_temperatures",
)
"""RTDE fields that the saving is computed from."""
TEMPLATE_STEP = 0.02  # step of the comparison of recorded and planned motion [s]
SHIFTS = np.arange(-0.1, 0.5, 0.01)
"""Tried delays of a cycle beyond the delay of the cycle before [s]."""
FINER = np.arange(-0.01, 0.0101, 1e-3)  # tried delays about the best one of SHIFTS [s]
DEPARTURE = 2e-3  # distance from the start at which the motion counts as begun [rad]
LARGEST_MISFIT = 0.02
"""Root mean square of recorded minus planned positions above which a cycle was not run [rad]."""
FAR = 0.25
"""Relative difference from the prediction beyond which a measured energy is of something else."""
FAR_FROM_RECORDED = 0.15
"""Relative difference from the energy in the recording of the same motion beyond which a measured
energy is of something else."""
GAP = 5.0
"""Factor on the usual step between samples above which samples are missing within a cycle."""
MARGIN = 1.02
"""Factor on the largest values of the recorded cycle, for the interpolation between samples."""


@dataclass(frozen=True)
class Proof:
    """Cycles before and after in turns: A B B A, or A B for an odd number.

    The order A B B A cancels a steady change, such as warming joints.

    Attributes:
        robot: name of the arm.
        before: one cycle as recorded.
        after: one new cycle.
        cycles: number of cycles of each kind.
    """

    robot: str
    before: Chain
    after: Chain
    cycles: int

    @classmethod
    def of(
        cls, optimized: OptimizedCycle, cycles: int, point: FrontPoint | None = None
    ) -> Proof:
        """The proof of the sheet of an optimized cycle, or of a point of its front.

        Args:
            optimized: the cycle.
            cycles: number of cycles of each kind.
            point: point of the front, which is run as set points; None for the sheet.

        Raises:
            InputError: the cycle does not end where it starts, so that it cannot be
                repeated.
        """
        cycle = optimized.cycle
        before = motion_of(cycle.source, recorded_stretches(cycle))
        stretches = typed_stretches(cycle, optimized.sheet)
        if point is not None:
            stretches = [*point.stretches]
        after = motion_of(cycle.source, stretches)
        for motion in (before, after):
            (start, end), _, _ = motion.sample(np.array([0.0, motion.duration]))
            if np.abs(end - start).max() > CLOSED:
                problem = (
                    "the cycle does not end where it starts, so it cannot be repeated"
                )
                remedy = "record a program that returns to its start"
                raise InputError(cycle.source, problem, remedy)
        return cls(cycle.robot, before, after, cycles)

    @property
    def pattern(self) -> tuple[bool, ...]:
        """Whether each cycle of one repetition is the new one."""
        if self.cycles % 2 == 0:
            return (False, True, True, False)
        return (False, True)

    @property
    def positions(self) -> Array:
        """Positions of the recorded cycle [k, n], rad."""
        return self.before.sample(np.arange(0.0, self.before.duration, TEMPLATE_STEP))[0]

    @property
    def order(self) -> tuple[bool, ...]:
        """Whether each cycle of the whole run is the new one [2 cycles]."""
        return self.pattern * (2 * self.cycles // len(self.pattern))

    def motion(self) -> RepeatedMotion:
        """The whole run, which ends exactly where it starts."""
        cycles = [self.after if new else self.before for new in self.pattern]
        repetitions = len(self.order) // len(self.pattern)
        return RepeatedMotion(self.robot, Chain(cycles), repetitions)

    def limits(self, usual: SafetyLimits) -> SafetyLimits:
        """The usual limits, raised to the largest values of the recorded cycle, which was run.

        Joint velocity, acceleration, torque and tool speed are raised; positions and
        clearance are not.

        Args:
            usual: limits of the arm in its workplace.
        """
        _, q, qd, qdd = sample_period(RepeatedMotion(self.robot, self.before), CHECK_RATE)
        robot = usual.dynamics.robot
        velocity = MARGIN * np.abs(qd).max(axis=0)
        acceleration = MARGIN * np.abs(qdd).max(axis=0)
        torque = MARGIN * np.abs(usual.torque(q, qd, qdd)).max(axis=0)
        tool_speed = MARGIN * float(usual.speeds(q, qd).max())
        raised = replace(
            robot,
            max_velocity=np.maximum(robot.max_velocity, velocity),
            max_acceleration=np.maximum(robot.max_acceleration, acceleration),
            max_torque=np.maximum(robot.max_torque, torque),
        )
        return replace(
            usual,
            dynamics=ArmDynamics(raised, usual.dynamics.setup),
            tool_speed=max(usual.tool_speed, tool_speed),
        )


def measured_saving(bag: str | Path, proof: Proof) -> MeasuredSaving:
    """Saving of a recorded run, with its 95 % interval from pairs of consecutive cycles.

    Args:
        bag: recording of the run.
        proof: proof that was run.

    Raises:
        RecordingError: the bag has no voltage or current of the bus, or not the whole
            run.
    """
    energy, temperature = run_energies(read_bag(bag, FIELDS), proof)
    return saving_of(energy, np.array(proof.order), temperature, str(bag))


def measured_peak(bag: str | Path, proof: Proof) -> MeasuredPeak:
    """Energies and window peak powers of a recorded run.

    Args:
        bag: recording of the run.
        proof: proof that was run.

    Raises:
        RecordingError: as for `measured_saving`.
    """
    telemetry = read_bag(bag, FIELDS)
    energy, temperature = run_energies(telemetry, proof)
    new = np.array(proof.order)
    saving = saving_of(energy, new, temperature, str(bag))
    peaks = run_peaks(telemetry, proof)
    return MeasuredPeak(
        energy=saving.energy,
        new_energy=saving.new_energy,
        saving_percent=saving.saving_percent,
        saving_percent_interval=saving.interval,
        window_peak_power=float(np.nanmax(peaks[~new])),
        new_window_peak_power=float(np.nanmax(peaks[new])),
        cycles=saving.cycles,
    )


def saving_of(
    energy: Array, new: Mask, temperature: Array | None, source: str
) -> MeasuredSaving:
    """Mean saving over pairs of a cycle before and one after (Student's t for its interval).

    Args:
        energy: energies of the cycles in turns [2 cycles], J; NaN where samples are
            missing.
        new: whether each of the cycles is the new one [2 cycles].
        temperature: mean temperatures of the joints in each cycle [2 cycles, n], degC; None
            where they were not recorded.
        source: name of the recording, for the error.

    Raises:
        RecordingError: no complete pair.
    """
    # Each pair is one cycle before and one after, in one order or the other.
    before = energy[~new]
    after = energy[new]
    complete = np.isfinite(before) & np.isfinite(after)
    if not complete.any():
        raise RecordingError(source, "has no complete pair of cycles", "run it again")
    before = before[complete]
    after = after[complete]
    mean = float(before.mean())
    difference = Difference.of_pairs(before, after)
    low, high = difference.interval
    if temperature is not None:
        of_before = temperature[~new].mean(axis=0)
        of_after = temperature[new].mean(axis=0)
        temperature = np.stack([of_before, of_after])
    return MeasuredSaving(
        energy=mean,
        new_energy=float(after.mean()),
        saving_percent=100.0 * difference.value / mean,
        interval=(100.0 * low / mean, 100.0 * high / mean),
        cycles=len(before),
        temperature=temperature,
    )


def require_predicted(
    measured: MeasuredSaving | MeasuredPeak,
    optimized: OptimizedCycle,
    bag: str | Path,
    point: FrontPoint | None = None,
) -> None:
    """Refuse a measured saving whose energies are far from the predicted and recorded ones.

    Args:
        measured: saving of the run.
        optimized: the cycle with the predicted energies.
        bag: recording of the run, for the error.
        point: point of the front that was run; None for the sheet.

    Raises:
        RecordingError: an energy is far off: it was another arm, load or state.
    """
    cycle = "the recorded cycle"
    energy = measured.energy
    if optimized.cycle.measured_energy is not None:
        recorded = optimized.cycle.measured_energy
        origin = "measured in the recording"
        _require_near(bag, cycle, energy, recorded, origin, limit=FAR_FROM_RECORDED)
    _require_near(bag, cycle, energy, optimized.energy, "predicted", limit=FAR)
    cycle = "the typed cycle"
    expected = optimized.typed_energy
    if point is not None:
        cycle = "the cycle of the front"
        expected = point.predicted.energy
    energy = measured.new_energy
    _require_near(bag, cycle, energy, expected, "predicted", limit=FAR)


def _require_near(
    bag: str | Path,
    cycle: str,
    energy: float,
    expected: float,
    origin: str,
    *,
    limit: float,
) -> None:
    """Refuse an energy of a cycle that differs from the expected one by more than a share.

    Args:
        bag: recording of the run, for the error.
        cycle: name of the cycle, in words.
        energy: energy that was measured in the run [J].
        expected: energy of the same cycle [J].
        origin: source of the expected energy, in words.
        limit: largest relative difference of both energies.

    Raises:
        RecordingError: the energy is farther off.
    """
    if abs(energy - expected) <= limit * abs(expected):
        return
    raise RecordingError(
        bag,
        f"no saving is proven: {cycle} took {energy:.0f} J where {expected:.0f} J were "
        f"{origin}, {100.0 * (energy / expected - 1.0):+.0f} %",
        "check arm, load and tool, and warm the arm up as it was when recorded (--warm-up)",
    )


def run_energies(telemetry: Telemetry, proof: Proof) -> tuple[Array, Array | None]:
    """Measured energy of every cycle of a run, found by its motion.

    Args:
        telemetry: telemetry of the run, with the `FIELDS`.
        proof: proof that was run.

    Returns:
        Energies [2 cycles], J, NaN where samples or their bus power are missing, and mean
        temperatures of the joints [2 cycles, n], degC, None where they were not recorded.

    Raises:
        RecordingError: no power at the bus, or not the whole run.
    """
    source = telemetry.info.source
    if telemetry.bus_power is None or "target_q" not in telemetry:
        raise RecordingError(
            source,
            "has no voltage and current of the bus",
            "record all fields of the controller",
        )
    time = telemetry.time
    starts, ends = _cycle_times(telemetry, proof)
    measured = MeasuredEnergy.of(telemetry)
    # A cycle begins and ends between two samples.
    firsts = np.maximum(np.searchsorted(time, starts, side="right") - 1, 0)
    lasts = np.minimum(np.searchsorted(time, ends), len(time) - 1)
    whole = measured.unknown[lasts] == measured.unknown[firsts]
    tick = float(np.median(np.diff(time)))
    whole &= (ends <= time[-1] + tick) & (starts >= time[0] - tick)
    until_start = np.interp(starts, time, measured.energy)
    until_end = np.interp(ends, time, measured.energy)
    energies = np.where(whole, until_end - until_start, np.nan)
    temperatures = telemetry.columns.get("joint_temperatures")
    if temperatures is None:
        return energies, None
    means = []
    for first, last in zip(firsts, lasts, strict=True):
        of_cycle = temperatures[first : last + 1]
        means.append(np.nanmean(of_cycle, axis=0))
    return energies, np.array(means)


def run_peaks(telemetry: Telemetry, proof: Proof) -> Array:
    """Largest measured mean power over `PEAK_WINDOW` in every cycle of a run.

    Args:
        telemetry: telemetry of the run, with the `FIELDS` and the power of the bus.
        proof: proof that was run.

    Returns:
        Window peak powers [2 cycles], W; NaN where the power of a sample is missing.
    """
    power = telemetry.bus_power
    assert power is not None, "see run_energies"
    time = telemetry.time
    usual = float(np.median(np.diff(time)))
    peaks = []
    for start, end in zip(*_cycle_times(telemetry, proof), strict=True):
        rows = slice(*np.searchsorted(time, (start, end)).tolist())
        peak = np.nan
        if np.diff(time[rows]).max(initial=0.0) < GAP * usual:
            peak = float(window_means(time[rows], power[rows], PEAK_WINDOW).max())
        peaks.append(peak)
    return np.array(peaks)


def _cycle_times(telemetry: Telemetry, proof: Proof) -> tuple[Array, Array]:
    """Controller times at which the cycles of a run started and ended [2 cycles], s."""
    source = telemetry.info.source
    starts = np.array(_starts(telemetry.time, telemetry["target_q"], proof, source))
    durations = np.where(proof.order, proof.after.duration, proof.before.duration)
    return starts, starts + durations


def _starts(time: Array, q: Array, proof: Proof, source: str) -> list[float]:
    """Controller times at which the cycles of a run started [s].

    Streaming may delay the motion by some ticks of the controller: each cycle is found by
    itself, near the end of the one before it.

    Args:
        time: times of the samples [k], s.
        q: target positions [k, n], rad.
        proof: proof that was run.
        source: name of the recording, for the error.

    Raises:
        RecordingError: a cycle of the run is not in the recording.
    """
    starts: list[float] = []
    grid = np.arange(0.0, proof.before.duration, 1e-3)
    expected = _departure(time, q) - _departure(grid, proof.before.sample(grid)[0])
    for new in proof.order:
        cycle = proof.after if new else proof.before
        grid = np.arange(0.0, cycle.duration, TEMPLATE_STEP)
        planned = cycle.sample(grid)[0]
        shift = 0.0
        misfit = np.inf
        for shifts in (SHIFTS, FINER):
            tried = shift + shifts
            misfits = []
            for delay in tried:
                at = expected + delay + grid
                columns = [np.interp(at, time, column) for column in q.T]
                error = np.column_stack(columns) - planned
                misfits.append(float(np.sqrt(np.mean(error**2))))
            shift = float(tried[np.argmin(misfits)])
            misfit = min(misfits)
        if misfit > LARGEST_MISFIT:
            raise RecordingError(
                source,
                f"does not hold cycle {len(starts) + 1} of the run",
                "run it again",
            )
        starts.append(expected + shift)
        expected = starts[-1] + cycle.duration
    return starts


def _departure(time: Array, q: Array) -> float:
    """Time at which a motion leaves its start [s]."""
    return float(time[np.argmax(np.abs(q - q[0]).max(axis=1) > DEPARTURE)])
