# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A repeated work cycle: moves along recorded paths, the rests between them, and their energy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from ur_energy_model.energy.meter import trapezoid
from ur_energy_model.energy.prediction import PlanPowers
from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.optimization.programmed import ProgrammedMove
from ur_energy_model.trajectory.motions import Chain, Motion, Sampled
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

SAME_WAIT = 0.05
"""Difference of durations up to which waits of one line are the same wait [s]."""
KEEP_DWELL = 0.5  # dwells up to this long must stay [s]: grippers, sensors


@dataclass(frozen=True)
class OptimizationOptions:
    """Options of an optimization: what may change in a cycle.

    Attributes:
        cycle_time: duration of the new cycle [s]; None keeps the recorded duration.
        keep_dwell: dwells up to this long must stay [s].
        jerk: largest jerk of the joints [rad/s^3]; None for no limit.
        tool_speed: largest speed of the flange [m/s]; None for the usual setting.
        recorded_limits: speeds, accelerations and torques only as high as recorded.
        pareto: compute the energy over the cycle time.
        front_points: number of points of the front of energy against peak power; 0 for no
            front.
        power_off_after: length of a wait above which the arm may be switched off in it
            [s]; None for never.
        keep: numbers of steps of the sheet that stay exactly as recorded.
        keep_slow: keep moves that are deliberately slow.
        max_speedup: largest factor on recorded speeds and accelerations; None for no
            limit.
        session: whether standby power and friction are identified from the recording; else
            the values of the model are used.
    """

    cycle_time: float | None = None
    keep_dwell: float = KEEP_DWELL
    jerk: float | None = None
    tool_speed: float | None = None
    recorded_limits: bool = False
    pareto: bool = False
    front_points: int = 0
    power_off_after: float | None = None
    keep: tuple[int, ...] = ()
    keep_slow: bool = True
    max_speedup: float | None = None
    session: bool = True


Reason = Literal[
    "",
    "short wait",
    "slow beside the others",
    "asked with --keep",
    "neither moveJ nor moveL",
    "same line as another kept step",
    "no other values within the limits",
]
"""Why a step stays as recorded; empty where it may change."""


@dataclass(frozen=True)
class Wait:
    """A wait of the program.

    Attributes:
        duration: duration in the program, to 0.01 s [s].
        reason: why the wait must stay (gripper, sensor); slack where empty.
        lines: lines of the program that wait here, ascending; empty if unknown.
    """

    duration: float
    reason: Reason = ""
    lines: tuple[int, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether the wait must stay."""
        return bool(self.reason)


@dataclass(frozen=True)
class Dwell:
    """Standstill after a move.

    Attributes:
        duration: recorded duration [s].
        waits: waits of the program, in order; the controller takes the remaining time.
        payload: payload on the flange; None for the payload of the model.
    """

    duration: float = 0.0
    waits: tuple[Wait, ...] = ()
    payload: Payload | None = None

    @property
    def slack(self) -> float:
        """Time that need not stay [s]."""
        free = sum(wait.duration for wait in self.waits if not wait.kept)
        return min(free, self.duration)

    @property
    def kept(self) -> float:
        """Time that must stay [s]."""
        return self.duration - self.slack

    @property
    def pause(self) -> float:
        """Time beside the waits of the program [s]: the controller plans, the arm settles."""
        return self.duration - sum(wait.duration for wait in self.waits)


@dataclass(frozen=True)
class Move:
    """One move from rest to rest as recorded, and the rest after it; n joints, k samples.

    Attributes:
        start: time since the start of the cycle [s].
        time: time since the start of the move [k], s; the first is 0.
        q: target positions [k, n], rad.
        qd: target velocities [k, n], rad/s.
        qdd: target accelerations [k, n], rad/s^2; None if not recorded.
        programmed: the move as moveJ or moveL; None for other moves, such as blends,
            which can only be streamed as set points.
        energy: energy of the whole arm at the supply, from the model [J].
        peak_power: largest supply power [W].
        payload: payload on the flange, as set in the controller; None for the payload of
            the model.
        lines: lines of the program that run the move, ascending; empty if unknown.
        rest: standstill after the move.
        reason: why the move must stay as recorded; empty where the move may change.
    """

    start: float
    time: Array
    q: Array
    qd: Array
    qdd: Array | None = None
    programmed: ProgrammedMove | None = None
    energy: float = math.nan
    peak_power: float = math.nan
    payload: Payload | None = None
    lines: tuple[int, ...] = ()
    rest: Dwell = Dwell()
    reason: Reason = ""

    @property
    def kept(self) -> bool:
        """Whether the move must stay as recorded."""
        return bool(self.reason)

    @property
    def kind(self) -> Literal["moveJ", "moveL", "other"]:
        """Instruction with which the move can be programmed."""
        return "other" if self.programmed is None else self.programmed.kind

    @property
    def duration(self) -> float:
        """Duration of the move as recorded [s]."""
        return float(self.time[-1])


class Switching(NamedTuple):
    """Time and energy of switching an arm off in a long wait: brakes on or power off, and back.

    Attributes:
        time: time of both changes together [s].
        energy: energy of both changes at the supply [J].
        power: power at the supply between both changes [W].
    """

    time: float
    energy: float
    power: float


@dataclass(frozen=True)
class OtherWork:
    """Work that a recording contains between its cycles, such as a branch of the program.

    Attributes:
        times: how often it interrupted the cycles.
        lines: number of moves that each line of the program runs in it, by the line.
    """

    times: int = 0
    lines: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class WorkCycle:
    """The repeated cycle of a recording: its typical instance, and the scatter over all.

    Attributes:
        source: recording.
        robot: name of the arm.
        found_by: "program", "digital_output", "int_register", "repetition", or "whole".
        duration: duration of the typical instance [s].
        moves: moves in order of time; with their rests they cover the duration.
        count: complete cycles in the recording.
        measured_energy: mean measured energy of a cycle at the bus [J]; None if not
            recorded.
        measured_energy_std: scatter of the measured energy between cycles [J].
        temperature: mean temperatures of the joints [n], degC; None if not recorded.
        notes: what the recording does not show, one sentence each.
        switching: what switching the arm off takes; None where the recording does not
            show it.
        leading: number of waits at the end of the last rest that the program has before
            its first move.
        scaling: speed slider times limiter during the recording.
        others: other work that the recording contains between its cycles.
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
    leading: int = 0
    scaling: float = 1.0
    others: OtherWork = OtherWork()

    def with_payload(self, payload: Payload) -> WorkCycle:
        """The same cycle of an arm that carries this payload in all moves and rests."""
        moves = tuple(
            replace(move, payload=payload, rest=replace(move.rest, payload=payload))
            for move in self.moves
        )
        return replace(self, moves=moves)

    @property
    def rests(self) -> tuple[Dwell, ...]:
        """The standstill after each move, also where it has no length."""
        return tuple(move.rest for move in self.moves)

    @property
    def slack(self) -> float:
        """Standstill that need not be kept [s]."""
        return sum(rest.slack for rest in self.rests)

    @property
    def shared_moves(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the moves that the same line of the program runs, in order; each move once."""
        return _sharing({k: move.lines for k, move in enumerate(self.moves)})

    @property
    def shared_waits(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Waits of the same line, each by the number of its move and its own; each wait once.

        Waits of one line that last differently are for a signal: each is its own.
        """
        waits: dict[tuple[int, int], Wait] = {}
        for move, rest in enumerate(self.rests):
            for number, wait in enumerate(rest.waits):
                waits[move, number] = wait
        found: list[tuple[tuple[int, int], ...]] = []
        for places in _sharing({place: wait.lines for place, wait in waits.items()}):
            durations = [waits[place].duration for place in places]
            if max(durations) - min(durations) <= SAME_WAIT:
                found.append(places)
            else:
                found += [(place,) for place in places]
        return tuple(found)

    @property
    def program(self) -> tuple[tuple[int, int | None], ...]:
        """Steps of the program in order: number of a move, and of a wait after it or None."""
        steps: list[tuple[int, int | None]] = []
        for move, rest in enumerate(self.rests):
            steps.append((move, None))
            steps += [(move, number) for number in range(len(rest.waits))]
        # Waits of the last rest with which the program begins, moved to its begin.
        cut = len(steps) - self.leading
        return (*steps[cut:], *steps[:cut])


Place = TypeVar("Place")


def _sharing(lines: Mapping[Place, Sequence[int]]) -> tuple[tuple[Place, ...], ...]:
    """Places of a program (moves or waits), grouped by the lines that run them.

    Two places are in one group if they have a line in common, or if a chain of others
    connects them.

    Args:
        lines: lines of the program that run each place, in the order of the places; a
            place whose lines are unknown (empty) is a group of its own.

    Returns:
        Groups in the order of their first places.
    """
    groups: list[tuple[list[Place], set[int]]] = []
    for place, own in lines.items():
        joined = [place]
        all_lines = set(own)
        others = []
        for group, known in groups:
            if known & all_lines:
                joined = group + joined
                all_lines = known | all_lines
            else:
                others.append((group, known))
        groups = [*others, (joined, all_lines)]
    of_first = {group[0]: tuple(group) for group, _ in groups}
    return tuple(of_first[place] for place in lines if place in of_first)


# A cycle as it is run: its stretches, and their motion.

SHORTEST_REST = 1e-6  # rest that is a stretch of its own [s]
PERIOD = 0.004  # sample period of a typed move [s]
CLOSED = 2e-3
"""Largest joint distance between the end of a move and the start of the next one [rad]."""


class Stretch(NamedTuple):
    """A move or a standstill as it is run.

    Attributes:
        plan: motion of the stretch.
        payload: payload on the flange; None for the payload of the model.
        moving: whether the stretch is a move.
    """

    plan: Plan
    payload: Payload | None
    moving: bool = True


def recorded_stretches(cycle: WorkCycle, *, stretch: float = 1.0) -> list[Stretch]:
    """A cycle as recorded: each move, and the rest after it where there is one.

    Args:
        cycle: the cycle.
        stretch: factor on the durations of the moves; slack is left out where it is not 1.
    """
    out = []
    for move in cycle.moves:
        qdd = None if move.qdd is None else move.qdd / stretch**2
        plan = Plan(move.time * stretch, move.q, move.qd / stretch, qdd, cycle.source)
        rest = move.rest.duration if stretch == 1.0 else move.rest.kept
        out += with_rest(Stretch(plan, move.payload), rest, move.rest.payload)
    return out


def sampled_stretch(motion: Motion, payload: Payload | None) -> Stretch:
    """A move from rest to rest, sampled every `PERIOD`."""
    samples = max(2, round(motion.duration / PERIOD) + 1)
    time = np.linspace(0.0, motion.duration, samples)
    return Stretch(Plan(time, *motion.sample(time)), payload)


def with_rest(
    stretch: Stretch, duration: float, payload: Payload | None
) -> list[Stretch]:
    """A move, and a standstill at its end unless its duration [s] is zero.

    Args:
        stretch: the move.
        duration: duration of the standstill [s].
        payload: payload in the standstill; None for the payload of the model.
    """
    if duration <= SHORTEST_REST:
        return [stretch]
    points = np.repeat(stretch.plan.q[-1:], 2, axis=0)
    zero = np.zeros_like(points)
    plan = Plan(np.array([0.0, duration]), points, zero, zero)
    return [stretch, Stretch(plan, payload, moving=False)]


def motion_of(source: str, stretches: Sequence[Stretch]) -> Chain:
    """The motion of a cycle, whose moves follow each other without jumps.

    A small distance between the end of a move and the start of the next move is spread
    over the next move.

    Args:
        source: name of the recording or plan, for the error.
        stretches: stretches of the cycle, in order.

    Raises:
        InputError: a move does not start where the one before it ended.
    """
    moves: list[Motion] = []
    starts = []
    now = 0.0
    here = stretches[0].plan.q[0]
    for stretch in stretches:
        plan = stretch.plan
        if stretch.moving:
            gap = here - plan.q[0]
            if np.abs(gap).max() > CLOSED:
                number = len(moves) + 1
                problem = f"move {number} does not start where the one before it ended"
                raise InputError(source, problem, "record cycles whose moves end at rest")
            moves.append(_without_gap(plan, gap))
            starts.append(now)
            here = plan.q[-1]
        now += plan.duration
    return Chain(moves, starts, now)


def _without_gap(plan: Plan, gap: Array) -> Sampled:
    """A move from rest to rest that begins elsewhere, by a gap [n], rad, spread over its time."""
    assert plan.qd is not None
    qdd = plan.qdd
    if qdd is None:
        qdd = np.gradient(plan.qd, plan.time, axis=0)
    left = 1.0 - plan.time[:, None] / plan.time[-1]
    qd = plan.qd.copy()
    qd[[0, -1]] = 0.0
    return Sampled(plan.time, plan.q + left * gap, qd, qdd)


class StretchEnergy(NamedTuple):
    """Energy of a stretch of k samples and n joints, whole arm at the supply.

    Attributes:
        stretch: stretch that was run.
        energy: energy [J].
        motion: energy without the energy of the standby power [J].
        sensitivity: change of the energy per standard deviation of each independent error
            of the parameters [errors], J.
        peak_power: largest power [W].
        time: time since the start of the cycle [k], s.
        torque: torques of the joints, friction included, joint side [k, n], N m.
        power: power at the supply [k], W.
    """

    stretch: Stretch
    energy: float
    motion: float
    sensitivity: Array
    peak_power: float
    time: Array
    torque: Array
    power: Array


def total_energy(parts: Sequence[StretchEnergy]) -> float:
    """Energy of a cycle from its stretches [J]."""
    return sum(part.energy for part in parts)


class CycleEnergies:
    """Computes the energies of cycles of one arm, by the same calculation as `predict`.

    Args:
        model: model of the arm, best in the session of the recording.
        temperature: temperatures of the joints [n], degC; None if unknown.
    """

    def __init__(self, model: EnergyModel, temperature: Array | None = None) -> None:
        self.model = model
        self.temperature = temperature
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

    def of(
        self, stretches: Sequence[Stretch], *, std: bool = True
    ) -> list[StretchEnergy]:
        """Energies of the stretches of a cycle that repeats.

        Args:
            stretches: stretches of the cycle in order; the last one leads into the first.
            std: whether sensitivities to the errors of the model's parameters are computed.
        """
        powers = PlanPowers(self.model, self.temperature, std=False)
        self._in_turn(powers, stretches[-2:])  # as the cycle before left it
        return self._in_turn(powers.restarted(std=std), stretches)

    def total(self, stretches: Sequence[Stretch]) -> float:
        """Energy of a cycle that repeats, from its stretches in order [J]."""
        return total_energy(self.of(stretches, std=False))

    def _in_turn(
        self, powers: PlanPowers, stretches: Sequence[Stretch]
    ) -> list[StretchEnergy]:
        """Energies of stretches in order, by powers that continue from one to the next."""
        ratio = np.array([joint.gear_ratio for joint in self.model.joints])
        out = []
        start = 0.0
        for stretch in stretches:
            dynamics = self.dynamics(stretch.payload)
            parts = []
            for each in stretch.plan.motion():
                motion = replace(each, time=each.time + start)
                split, power = powers(motion, dynamics)
                torque = split.motor_torque * ratio
                parts.append((motion.time, power, torque, split.total_sensitivity))
            time, power, torque, sensitivity = (
                np.concatenate(column) for column in zip(*parts, strict=True)
            )
            steps = np.diff(time)
            duration = stretch.plan.duration
            energy = float(trapezoid(steps, power))
            motion_energy = energy - self.model.bus.standby * duration
            by_errors = trapezoid(steps, sensitivity)
            peak = float(power.max())
            out.append(
                StretchEnergy(
                    stretch, energy, motion_energy, by_errors, peak, time, torque, power
                )
            )
            start += duration
        return out
