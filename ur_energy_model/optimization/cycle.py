"""A repeated work cycle: moves along recorded paths, the rests between them, and their energy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ur_energy_model.energy.meter import integrate, trapezoid
from ur_energy_model.energy.prediction import PlanPowers
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.robot_modes import BACKDRIVE, BRAKES_RELEASED
from ur_energy_model.telemetry.samples import Telemetry, equal_runs
from ur_energy_model.trajectory.motions import Motion
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class Switching:
    """What switching an arm off in a long wait takes: brakes on or power off, and back.

    Attributes:
        time: that both changes take together [s].
        energy: that they take at the supply [J].
        power: in between [W].
    """

    time: float
    energy: float
    power: float


def recorded_switching(telemetry: Telemetry) -> Switching | None:
    """Mean of the complete switchings in a recording; None without one, or without bus power.

    The state in between is the lowest robot_mode reached; everything else between two stretches
    of running counts as change.
    """
    power, modes = telemetry.bus_power, telemetry.columns.get("robot_mode")
    if power is None or modes is None:
        return None
    off = np.asarray(~np.isin(modes, BRAKES_RELEASED) & (modes < BACKDRIVE))
    found = []
    for run in equal_runs(off):
        if not off[run.start] or run.start == 0 or run.stop == len(off):
            continue
        rows = slice(run.start - 1, run.stop + 1)
        time, there, drawn = telemetry.time[rows], modes[rows], power[rows]
        low = there == there[1:-1].min()
        steps = np.diff(time, append=time[-1])
        low_time = float(steps[low].sum())
        low_power = float(drawn[low].mean())
        whole = float(integrate(time, drawn).net[0])
        found.append((time[-1] - time[0] - low_time, whole - low_power * low_time, low_power))
    if not found:
        return None
    return Switching(*(float(value) for value in np.mean(found, axis=0)))


Kind = Literal["moveJ", "moveL", "other"]
"""How the path of a move can be programmed: straight in joint space, straight at the tool, or
neither (a blend, a spline: only its time law can be exported)."""


@dataclass(frozen=True)
class Wait:
    """A wait of the program.

    Attributes:
        duration: as the program has it, to 0.01 s [s].
        kept: whether it must stay (gripper, sensor); else it is slack.
        line: of the program, where `script_control_line` was recorded.
    """

    duration: float
    kept: bool
    line: int | None = None


@dataclass(frozen=True)
class Rest:
    """Standstill after a move.

    Attributes:
        duration: as recorded [s].
        waits: of the program, in order; the rest of the duration is the controller's own, as for
            planning a line.
        payload: as in `Move`.
    """

    duration: float = 0.0
    waits: tuple[Wait, ...] = ()
    payload: Payload | None = None

    @property
    def slack(self) -> float:
        """Time that need not stay [s]."""
        return min(sum(wait.duration for wait in self.waits if not wait.kept), self.duration)

    @property
    def kept(self) -> float:
        """Time that must stay [s]."""
        return self.duration - self.slack

    @property
    def pause(self) -> float:
        """What the controller takes beside the waits of the program [s]."""
        return self.duration - sum(wait.duration for wait in self.waits)


@dataclass(frozen=True)
class Move:
    """One move from rest to rest as recorded, and the rest after it; n joints, k samples.

    Attributes:
        start: time since the start of the cycle [s].
        time: of the samples since the start of the move [k], s; the first is 0.
        q, qd: target positions and velocities [k, n], rad, rad/s.
        qdd: target accelerations [k, n], rad/s^2; None where they were not recorded.
        kind: how its path can be programmed.
        speed, acceleration: of the fitted trapezoid; rad/s and rad/s^2 of the leading joint for
            moveJ, m/s and m/s^2 of the tool for moveL; NaN for "other".
        energy: whole arm at the supply during the move as recorded, from the model [J].
        peak_power: largest supply power during the move [W].
        payload: on the flange, as set in the controller; None stands for the model's.
        line: of the program, where `script_control_line` was recorded.
        rest: after it.
    """

    start: float
    time: Array
    q: Array
    qd: Array
    qdd: Array | None = None
    kind: Kind = "other"
    speed: float = math.nan
    acceleration: float = math.nan
    energy: float = math.nan
    peak_power: float = math.nan
    payload: Payload | None = None
    line: int | None = None
    rest: Rest = Rest()

    @property
    def duration(self) -> float:
        """Of the move as recorded [s]."""
        return float(self.time[-1])


@dataclass(frozen=True)
class WorkCycle:
    """The repeated cycle of a recording: its typical instance, and the scatter over all.

    Attributes:
        source: recording.
        robot: name of the arm.
        found_by: "program", "digital_output", "int_register", "repetition", or "whole" if the
            recording holds one cycle only.
        duration: of the typical instance [s].
        moves: in order of time; with their rests they cover the duration.
        count: complete cycles in the recording.
        measured_energy: mean over the cycles of the measured bus energy [J], None if not recorded.
        measured_energy_std: its scatter between cycles [J].
        temperature: mean joint temperatures [n], degC; None if not recorded.
        notes: what the recording does not show, one sentence each.
        tool: tool centre point in the flange frame [6], m and rad; None if not recorded.
        switching: what switching the arm off and on takes; None where the recording lacks it.
        leading: how many waits of the last rest the program has before its first move.
        scaling: speed slider times limiter while it was recorded.
    """

    source: str
    robot: str
    found_by: str
    duration: float
    moves: tuple[Move, ...]
    count: int
    measured_energy: float | None
    measured_energy_std: float
    temperature: Array | None
    notes: tuple[str, ...] = ()
    switching: Switching | None = None
    tool: Array | None = None
    leading: int = 0
    scaling: float = 1.0

    @property
    def rests(self) -> tuple[Rest, ...]:
        """The standstill after each move, also where it has no length."""
        return tuple(move.rest for move in self.moves)

    @property
    def slack(self) -> float:
        """Standstill that need not be kept [s]."""
        return sum(rest.slack for rest in self.rests)

    @property
    def program(self) -> tuple[tuple[int, int | None], ...]:
        """Steps of the program in order: number of a move, and of a wait after it or None."""
        waits = [[(k, j) for j in range(len(rest.waits))] for k, rest in enumerate(self.rests)]
        cut = len(waits[-1]) - self.leading
        first, waits[-1] = waits[-1][cut:], waits[-1][:cut]
        steps: list[tuple[int, int | None]] = list(first)
        for k, after in enumerate(waits):
            steps += [(k, None), *after]
        return tuple(steps)


SHORTEST_REST = 1e-6
"""Rest that is a stretch of its own [s]."""
PERIOD = 0.004
"""Sample period of a typed move [s]."""


@dataclass(frozen=True)
class Stretch:
    """A move or a dwell as it is run.

    Attributes:
        plan: its motion.
        payload: on the flange; None stands for the model's.
        moving: whether it is a move.
    """

    plan: Plan
    payload: Payload | None
    moving: bool = True


@dataclass(frozen=True)
class StretchEnergy:
    """Energy of a stretch of k samples.

    Attributes:
        energy: whole arm at the supply [J].
        motion: energy without the standby power [J].
        sensitivity: change of the energy per standard deviation of each independent parameter
            error [errors], J; empty if not requested.
        peak_power: largest supply power [W].
        time: since the start of the cycle [k], s.
        torque: of the joints, friction included, joint side [k, n], N m.
        moving: whether it is a move.
    """

    energy: float
    motion: float
    sensitivity: Array
    peak_power: float
    time: Array
    torque: Array
    moving: bool = True


class CycleEnergies:
    """Computes the energies of cycles of one arm, by the same calculation as `predict`.

    Args:
        model: of the arm, in the session of the recording where it is known.
        temperature: of the joints [n], degC; None if unknown.
    """

    def __init__(self, model: EnergyModel, temperature: Array | None = None) -> None:
        self.model, self.temperature = model, temperature
        self._known: dict[int, tuple[Payload, ArmDynamics]] = {}
        self._own = model.dynamics()

    def dynamics(self, payload: Payload | None) -> ArmDynamics:
        """The arm with a payload."""
        if payload is None:
            return self._own
        if id(payload) not in self._known:
            setup = Setup(self.model.setup.gravity, payload)
            self._known[id(payload)] = (payload, self.model.dynamics(setup=setup))
        return self._known[id(payload)][1]

    def of(self, stretches: Sequence[Stretch], *, std: bool = True) -> list[StretchEnergy]:
        """Energies of the stretches of a cycle that repeats, in order; `std` with sensitivities."""
        powers = PlanPowers(self.model, self.temperature, std=False)
        self._in_turn(powers, stretches[-2:])  # as the cycle before left it
        return self._in_turn(powers.restarted(std=std), stretches)

    def total(self, stretches: Sequence[Stretch]) -> float:
        """Energy of a cycle that repeats, from its stretches in order [J]."""
        return sum(part.energy for part in self.of(stretches, std=False))

    def _in_turn(self, powers: PlanPowers, stretches: Sequence[Stretch]) -> list[StretchEnergy]:
        starts = np.cumsum([0.0, *(stretch.plan.duration for stretch in stretches)])
        return [self._stretch(powers, *each) for each in zip(stretches, starts, strict=False)]

    def _stretch(self, powers: PlanPowers, stretch: Stretch, start: float) -> StretchEnergy:
        ratio = np.array([joint.gear_ratio for joint in self.model.joints])
        dynamics, parts = self.dynamics(stretch.payload), []
        for each in stretch.plan.motion():
            motion = replace(each, time=each.time + start)
            split, total = powers(motion, dynamics)
            parts.append((motion.time, total, split.motor_torque * ratio, split.total_sensitivity))
        time, power, torque, sensitivity = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        steps = np.diff(time)
        energy = float(trapezoid(steps, power))
        return StretchEnergy(
            energy,
            energy - self.model.bus.standby * stretch.plan.duration,
            trapezoid(steps, sensitivity),
            float(power.max()),
            time,
            torque,
            stretch.moving,
        )


def recorded_stretches(cycle: WorkCycle, *, stretch: float = 1.0) -> list[Stretch]:
    """A cycle as it was recorded: each move, and the rest after it where there is one.

    Args:
        cycle: recorded.
        stretch: factor on the durations of the moves; slack is left out where it is not 1.
    """
    out = []
    for move in cycle.moves:
        qdd = None if move.qdd is None else move.qdd / stretch**2
        plan = Plan(move.time * stretch, move.q, move.qd / stretch, qdd, cycle.source)
        out += with_rest(
            Stretch(plan, move.payload),
            move.rest.duration if stretch == 1.0 else move.rest.kept,
            move.rest.payload,
        )
    return out


def sampled_stretch(motion: Motion, payload: Payload | None) -> Stretch:
    """A move from rest to rest as it is run."""
    samples = max(2, round(motion.duration / PERIOD) + 1)
    time = np.linspace(0.0, motion.duration, samples)
    return Stretch(Plan(time, *motion.sample(time)), payload)


def with_rest(stretch: Stretch, duration: float, payload: Payload | None) -> list[Stretch]:
    """A move, and standstill at its end for a duration [s] if that is any."""
    if duration <= SHORTEST_REST:
        return [stretch]
    points = np.repeat(stretch.plan.q[-1:], 2, axis=0)
    zero = np.zeros_like(points)
    plan = Plan(np.array([0.0, duration]), points, zero, zero)
    return [stretch, Stretch(plan, payload, moving=False)]


KEEP_DWELL = 0.5
"""Dwells up to this long must stay [s]: grippers, sensors."""


@dataclass(frozen=True)
class OptimizationOptions:
    """What a cycle may become.

    Attributes:
        cycle_time: of the new cycle [s]; None keeps that of the recording.
        keep_dwell: dwells up to this long must stay [s].
        jerk: largest jerk of the joints [rad/s^3]; None for no limit.
        tool_speed: largest speed of the flange [m/s]; None for the controller's usual setting.
        recorded_limits: take the largest speeds, accelerations and torques of the recording as
            limits, instead of those of the robot file.
        pareto: compute the energy over the cycle time.
        power_off_after: waits longer than this may switch the arm off [s]; None for never.
        keep: numbers of steps of the sheet that stay exactly as recorded.
        keep_slow: keep moves that are deliberately slow.
        max_speedup: largest factor on recorded speeds and accelerations; None for no limit.
        session: take standby power and friction of the session from the recording itself.
    """

    cycle_time: float | None = None
    keep_dwell: float = KEEP_DWELL
    jerk: float | None = None
    tool_speed: float | None = None
    recorded_limits: bool = False
    pareto: bool = False
    power_off_after: float | None = None
    keep: tuple[int, ...] = ()
    keep_slow: bool = True
    max_speedup: float | None = None
    session: bool = True
