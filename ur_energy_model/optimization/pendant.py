"""The pendant sheet: what to type for every move and wait of a program, and what that takes.

All figures "as typed" (energy, duration, files, pages) come from `typed_stretches` of the sheet:
its digits, the controller's trapezoids, its waits, and nothing else.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pinocchio as pin
from scipy.optimize import least_squares, minimize_scalar

from ur_energy_model.errors import InputError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.optimization.cycle import (
    Kind,
    Move,
    OptimizationOptions,
    Stretch,
    WorkCycle,
    recorded_stretches,
    sampled_stretch,
    with_rest,
)
from ur_energy_model.simulation.kinematics import (
    ArmKinematics,
    LinePlanner,
    ScriptError,
    StraightLine,
    matrix_of,
    pose_vector,
)
from ur_energy_model.trajectory import motions
from ur_energy_model.trajectory.motions import Motion, Trapezoid
from ur_energy_model.typing import Array

JOINT_TOLERANCE = 1e-3
"""Largest distance of a joint from the straight line of a moveJ [rad]."""
TOOL_TOLERANCE, TURN_TOLERANCE = 5e-4, 2e-3
"""Largest distance and angle of the tool from the straight line of a moveL [m, rad]."""
SHORTEST = 1e-6
"""Travel below which nothing moves [rad], or only the orientation of the tool [m]."""
_CHECKED = 300
"""Points of a path that are compared with a straight line."""


@dataclass(frozen=True)
class ProgrammedPath:
    """The path of a moveJ or moveL, which is run with a trapezoidal speed.

    Attributes:
        kind: "moveJ" or "moveL".
        distance: travel of the leading joint [rad]; of the tool for moveL [m], or its angle [rad]
            if it only turns.
        progress: travelled distance at the recorded samples [k], the unit of `distance`.
        start, end: joint positions [n], rad.
        line: the path of a moveL in joint space; None for moveJ.
    """

    kind: Kind
    distance: float
    progress: Array
    start: Array
    end: Array
    line: StraightLine | None = None

    def motion(self, speed: float, acceleration: float) -> Motion:
        """The move with a speed of the leading joint [rad/s] or the tool [m/s], and per s."""
        if self.line is None:
            return motions.move(self.start, self.end, speed, acceleration)
        return self.line.with_profile(speed, acceleration)


def programmed_path(
    q: Array, robot: RobotDescription, tool: Array | None = None
) -> ProgrammedPath | None:
    """The moveJ or moveL that has a recorded path; None if it is neither.

    A line that is straight in joint space counts as moveJ, even if the tool moves straight too.

    Args:
        q: target positions of the move [k, n], rad.
        robot: the arm; its nominal kinematics are used.
        tool: tool centre point in the flange frame [6]; the flange where None. It matters only
            where the tool turns on its way.
    """
    step = q[-1] - q[0]
    leading = int(np.abs(step).argmax())
    distance = float(abs(step[leading]))
    if distance >= SHORTEST:
        share = (q[:, leading] - q[0, leading]) / step[leading]
        if np.abs(q - q[0] - share[:, None] * step).max() <= JOINT_TOLERANCE:
            joints = _monotone(share) * distance
            return ProgrammedPath("moveJ", float(joints[-1]), joints, q[0], q[-1])
    kinematics = ArmKinematics(robot)
    tool = np.zeros(6) if tool is None else tool
    progress = _along_tool(q, kinematics, tool)
    if progress is None:
        return None
    goal = pose_vector(matrix_of(kinematics.forward(q[-1], tool)))
    planner = LinePlanner(kinematics, q[0], goal, tool, 1.0, 1.0, robot.max_velocity)
    try:
        while (line := planner.advance()) is None:
            pass
    except ScriptError:  # the line leaves the arm's reach
        return None
    return ProgrammedPath("moveL", float(progress[-1]), progress, q[0], q[-1], line)


def _along_tool(q: Array, kinematics: ArmKinematics, tool: Array) -> Array | None:
    """Travel of the tool [k], m (rad if it only turns); None if it does not move straight."""
    some = np.round(np.linspace(0, len(q) - 1, min(len(q), _CHECKED))).astype(int)
    poses = np.array([matrix_of(kinematics.forward(each, tool)) for each in q[some]])
    first, last = poses[0], poses[-1]
    shift = last[:3, 3] - first[:3, 3]
    turn = pin.log3(first[:3, :3].T @ last[:3, :3])
    length, angle = float(np.linalg.norm(shift)), float(np.linalg.norm(turn))
    turned = np.array([pin.log3(first[:3, :3].T @ pose[:3, :3]) for pose in poses])
    moved = poses[:, :3, 3] - first[:3, 3]
    if length > SHORTEST:
        share = moved @ shift / length**2
    elif angle > SHORTEST:
        share = turned @ turn / angle**2
    else:
        return None
    if np.linalg.norm(moved - share[:, None] * shift, axis=1).max() > TOOL_TOLERANCE:
        return None
    if np.linalg.norm(turned - share[:, None] * turn, axis=1).max() > TURN_TOLERANCE:
        return None
    distance = length if length > SHORTEST else angle
    places = np.linspace(0, len(q) - 1, len(share))
    return np.interp(np.arange(len(q)), places, _monotone(share)) * distance


def _monotone(share: Array) -> Array:
    """Progress from 0 to 1 that never decreases."""
    return np.asarray(np.maximum.accumulate(np.clip(share, 0.0, 1.0)))


SPEEDS = 10
"""Speeds that are tried before the search between the best one's neighbours."""
TYPED_DIGITS = 3
"""Significant digits of a typed speed or acceleration, in the units of the pendant."""

GENTLENESS = 0.05
"""Share of a move's energy that an acceleration of twice the usual one must save: it is felt by
tool and part."""

Cost = Callable[[Motion], float]
"""Energy of a motion [J]; infinite if it exceeds a limit."""


@dataclass(frozen=True)
class TypedMove:
    """Speed and acceleration of a move, as typed on the pendant.

    Attributes:
        speed: of the leading joint [rad/s], or of the tool [m/s]; a round number on the pendant.
        acceleration: the same, per s.
        duration: of the move with them [s].
        energy: of the move with them and the rest until the end of its slot, with the price of an
            unusual acceleration [J].
    """

    speed: float
    acceleration: float
    duration: float
    energy: float


def fit_trapezoid(time: Array, progress: Array) -> Trapezoid:
    """The trapezoid nearest to a recorded move, in the mean square of the travelled distance.

    Args:
        time: of the samples since the start of the move [k], s; increasing.
        progress: travelled distance, from 0 to the whole one [k].
    """
    distance, duration = float(progress[-1]), float(time[-1])
    slowest = distance / duration

    def profile(parameters: Array) -> tuple[Trapezoid, float]:
        speed, share, shift = parameters
        ramp = share * distance / speed  # the ramp's longest, in a triangle, is distance / speed
        return Trapezoid(distance, speed, speed / ramp), shift

    def errors(parameters: Array) -> Array:
        trapezoid, shift = profile(parameters)
        return np.asarray(trapezoid.sample(time - shift)[0] - progress)

    fastest = float(np.gradient(progress, time).max())
    first = np.clip(fastest, 1.001 * slowest, 2.0 * slowest)
    ramp = duration - distance / first
    guess = [first, np.clip(ramp * first / distance, 0.02, 0.99), 0.0]
    tick = duration / (len(time) - 1)
    found = least_squares(
        errors,
        guess,
        bounds=(
            [0.5 * slowest, 0.01, -2.0 * tick],
            [4.0 * slowest, 1.0, 0.1 * duration + 2.0 * tick],
        ),
        x_scale=[slowest, 1.0, tick],
    )
    return profile(found.x)[0]


def best_trapezoid(
    path: ProgrammedPath,
    slot: float,
    cost: Cost,
    units: tuple[float, float] | None = None,
    most: tuple[float, float] = (math.inf, math.inf),
    usual: float = math.inf,
) -> TypedMove | None:
    """The speed and acceleration to type that fill a slot with the least energy.

    Both are rounded up to numbers that a person types, so that the move is never longer than its
    slot [s]. None if no trapezoid in this slot keeps the limits.

    Args:
        path: of the move.
        slot: time for the move [s].
        cost: energy of a motion that lasts the slot at most, with the rest after it [J].
        units: of typed speeds and accelerations in SI; those of the pendant where None.
        most: largest speed and acceleration.
        usual: acceleration beyond which a profile must save `GENTLENESS` to be chosen.
    """
    slowest = path.distance / slot
    units = units or (pendant_unit(path.kind),) * 2
    tried: list[TypedMove] = []

    def energy(ratio: float) -> float:
        speed = ratio * slowest
        ramp = slot - path.distance / speed
        values = rounded_up(speed, units[0]), rounded_up(speed / ramp, units[1])
        found = TypedMove(*values, slot, math.inf)
        if values[0] <= (1.0 + 1e-9) * most[0] and values[1] <= (1.0 + 1e-9) * most[1]:
            motion = path.motion(*values)
            if motion.duration <= slot * (1.0 + 1e-9):
                price = 1.0 + GENTLENESS * max(values[1] / usual - 1.0, 0.0)
                found = TypedMove(*values, motion.duration, price * cost(motion))
        tried.append(found)
        return found.energy if math.isfinite(found.energy) else 1e12

    ratios = np.linspace(1.05, 2.0, SPEEDS)
    best = int(np.argmin([energy(ratio) for ratio in ratios.tolist()]))
    if not math.isfinite(tried[best].energy):
        return None
    around = ratios[max(best - 1, 0)], ratios[min(best + 1, SPEEDS - 1)]
    minimize_scalar(energy, bounds=around, method="bounded", options={"maxiter": 8})
    return min(tried, key=lambda move: move.energy)


def pendant_unit(kind: str) -> float:
    """The pendant's unit of speed in SI: degrees for moveJ, mm for moveL."""
    return math.pi / 180.0 if kind == "moveJ" else 1e-3


def rounded_up(value: float, unit: float) -> float:
    """The next larger number of `TYPED_DIGITS` significant digits in a unit."""
    there = value / unit
    step = 10.0 ** (math.floor(math.log10(there)) + 1 - TYPED_DIGITS)
    return math.ceil(there / step - 1e-6) * step * unit


SLOW, SLOW_TOOL = 0.6, 0.25
"""Share of the typical speed of its kind, and of the typical speed of the tool, below which a move
counts as deliberately slow."""
TRIANGLE = 0.95
"""Share of the distance that a triangular profile needs at least for its ramps."""
LATE = 0.01
"""Share of the cycle time that typed moves may be shorter in all before a wait is added."""
FASTER = 1.05
"""Factor on speed or acceleration from which a move is called faster than recorded."""


SlotCost = Callable[[int, float, Motion], float]
"""Energy [J] of a motion in the move of this number and its slot [s], rest included; infinite if
the motion exceeds a limit."""


@dataclass(frozen=True)
class Step:
    """A move or wait of the program: as recorded, and what to type.

    Attributes:
        do: what the node of the program is; "move" for a path that is neither moveJ nor moveL.
        move: number of the move, or of the move before the wait, from 0.
        waypoint: where the move ends [n], degrees as the pendant shows them; None for a wait.
        line: of the program, where it was recorded.
        speed, new_speed: deg/s of the leading joint, mm/s of the tool; None for a wait and "move".
        acceleration, new_acceleration: the same, per s.
        wait, new_wait: s; None for a move.
        kept: whether it stays as recorded.
    """

    do: Literal["moveJ", "moveL", "move", "wait"]
    move: int
    waypoint: tuple[float, ...] | None = None
    line: int | None = None
    speed: float | None = None
    new_speed: float | None = None
    acceleration: float | None = None
    new_acceleration: float | None = None
    wait: float | None = None
    new_wait: float | None = None
    kept: bool = False

    def as_json(self, number: int) -> dict[str, Any]:
        """Contract of `ur_energy optimize --json`; the columns of pendant.csv too."""
        names = (
            "do", "waypoint", "line", "speed", "new_speed", "acceleration", "new_acceleration",
            "wait", "new_wait", "kept",
        )  # fmt: skip
        return {"step": number, **{name: getattr(self, name) for name in names}}

    def text(self, what: Literal["speed", "acceleration", "wait"]) -> str:
        """Old and new value with unit, such as "60 → 31.5 °/s"; one value where it stays."""
        old, new = getattr(self, what), getattr(self, f"new_{what}")
        if old is None or new is None:
            return "–"
        per = {"speed": "/s", "acceleration": "/s²", "wait": "s"}[what]
        unit = per if what == "wait" else ("°" if self.do == "moveJ" else "mm") + per
        first, last = (f"{x:.2f}" if what == "wait" else _digits(x) for x in (old, new))
        return f"{last} {unit}" if old == new else f"{first} → {last} {unit}"

    @property
    def faster(self) -> float:
        """Largest factor on speed or acceleration; 1 for a wait."""
        pairs = ((self.speed, self.new_speed), (self.acceleration, self.new_acceleration))
        return max((new / old for old, new in pairs if old and new), default=1.0)


def with_recorded_values(move: Move, robot: RobotDescription, tool: Array | None = None) -> Move:
    """A recorded move with its kind, and the speed and acceleration that it was run with."""
    path = programmed_path(move.q, robot, tool)
    if path is None:
        return replace(move, kind="other", speed=math.nan, acceleration=math.nan)
    trapezoid = fit_trapezoid(move.time, path.progress)
    return replace(
        move,
        kind=path.kind,
        speed=float(trapezoid.peak),
        acceleration=float(trapezoid.acceleration),
    )


def with_locks(
    cycle: WorkCycle, options: OptimizationOptions, dynamics: ArmDynamics
) -> tuple[WorkCycle, tuple[bool, ...], set[int]]:
    """Locks of a cycle: waits that stay, which moves stay as recorded, and which as they are slow.

    Args:
        cycle: as recorded.
        options: which steps to keep.
        dynamics: for the speed of the flange.

    Raises:
        InputError: the sheet has no such step.
    """
    program = cycle.program
    wrong = [str(number) for number in options.keep if not 1 <= number <= len(program)]
    if wrong:
        raise InputError(
            "--keep",
            f"there is no step {', '.join(wrong)} in the sheet",
            f"give numbers from 1 to {len(program)}",
        )
    locked = {move for move, wait in (program[n - 1] for n in options.keep) if wait is None}
    waits = {program[n - 1] for n in options.keep} - {(move, None) for move in locked}
    moves = []
    for k, move in enumerate(cycle.moves):
        kept = (
            replace(wait, kept=wait.kept or (k, j) in waits)
            for j, wait in enumerate(move.rest.waits)
        )
        moves.append(replace(move, rest=replace(move.rest, waits=tuple(kept))))
    cycle = replace(cycle, moves=tuple(moves))
    slow = _slow_moves(cycle, dynamics) if options.keep_slow else set()
    every = range(len(cycle.moves))
    return cycle, tuple(k in locked or k in slow for k in every), slow - locked


def sheet_of(
    cycle: WorkCycle,
    slots: Sequence[float],
    duration: float,
    robot: RobotDescription,
    cost: SlotCost,
    *,
    waiting_after: int,
    locked: Sequence[bool] = (),
    max_speedup: float = math.inf,
) -> tuple[Step, ...]:
    """What to type so that each move takes its slot at most with the least energy.

    A move that can only be streamed, and one for which no trapezoid fits, stay as recorded. Time
    that is left is waited.

    Args:
        cycle: as recorded.
        slots: time for each move [moves], s.
        duration: of the new cycle [s].
        robot: the arm; its nominal kinematics distinguish moveL from other paths.
        cost: of a motion in a slot.
        waiting_after: number of the move after which time is waited that is left.
        locked: which moves stay as recorded; () for none.
        max_speedup: largest factor on speeds and accelerations.
    """
    scale = cycle.scaling
    locked = locked or (False,) * len(cycle.moves)
    moves, left = [], duration - sum(rest.kept for rest in cycle.rests)
    for k, (move, slot) in enumerate(zip(cycle.moves, slots, strict=True)):
        waypoint = tuple(round(math.degrees(q), 2) + 0.0 for q in move.q[-1])
        step, taken = Step("move", k, waypoint, move.line, kept=locked[k]), move.duration
        path = programmed_path(move.q, robot, cycle.tool)
        if path is not None:
            units = pendant_unit(move.kind) * scale, pendant_unit(move.kind) * scale**2
            old = (_rounded(move.speed / units[0]), _rounded(move.acceleration / units[1]))
            most = (max_speedup * old[0] * units[0], max_speedup * old[1] * units[1])
            priced, usual = partial(cost, k, slot), move.acceleration
            best = None if locked[k] else best_trapezoid(path, slot, priced, units, most, usual)
            new = old
            if best is not None:
                new = (_rounded(best.speed / units[0]), _rounded(best.acceleration / units[1]))
            values = (old[0], new[0], old[1], new[1])
            do: Literal["moveJ", "moveL"] = "moveJ" if path.kind == "moveJ" else "moveL"
            step = Step(do, k, waypoint, move.line, *values, kept=locked[k])
            taken = path.motion(new[0] * units[0], new[1] * units[1]).duration
        left -= taken
        moves.append(step)
    slack = [(k, j) for k, j in cycle.program if j is not None and not cycle.rests[k].waits[j].kept]
    here = [(k, j) for k, j in slack if k == waiting_after]
    chosen = max(here, key=lambda at: cycle.rests[at[0]].waits[at[1]].duration, default=None)
    steps = []
    for k, j in cycle.program:
        if j is None:
            steps.append(moves[k])
            continue
        wait = cycle.rests[k].waits[j]
        new_wait = wait.duration if wait.kept else 0.0
        if (k, j) == chosen:
            new_wait = max(round(left, 2), 0.0)
        steps.append(
            Step("wait", k, line=wait.line, wait=wait.duration, new_wait=new_wait, kept=wait.kept)
        )
    if chosen is None and left > LATE * duration:
        steps.append(Step("wait", len(moves) - 1, wait=0.0, new_wait=round(left, 2)))
    return tuple(steps)


def as_recorded(sheet: Sequence[Step]) -> tuple[Step, ...]:
    """The sheet that changes nothing."""
    return tuple(
        replace(step, new_speed=step.speed, new_acceleration=step.acceleration, new_wait=step.wait)
        for step in sheet
    )


def typed_stretches(
    cycle: WorkCycle, sheet: Sequence[Step], robot: RobotDescription
) -> list[Stretch]:
    """A recorded cycle as the controller runs it when exactly the sheet is typed.

    The controller's own pauses stay.
    """
    waited = [rest.pause for rest in cycle.rests]
    for step in sheet:
        waited[step.move] += step.new_wait or 0.0
    recorded = [stretch for stretch in recorded_stretches(cycle) if stretch.moving]
    out = []
    for step in sheet:
        if step.do == "wait":
            continue
        move, motion = cycle.moves[step.move], typed_motion(cycle, step, robot)
        stretch = recorded[step.move] if motion is None else sampled_stretch(motion, move.payload)
        out += with_rest(stretch, waited[step.move], move.rest.payload)
    return out


def typed_motion(cycle: WorkCycle, step: Step, robot: RobotDescription) -> Motion | None:
    """A move as the controller runs it with what is typed; None where nothing can be typed."""
    path = programmed_path(cycle.moves[step.move].q, robot, cycle.tool)
    if path is None or step.new_speed is None or step.new_acceleration is None:
        return None
    unit = pendant_unit(step.do)
    return path.motion(
        step.new_speed * unit * cycle.scaling, step.new_acceleration * unit * cycle.scaling**2
    )


def sheet_notes(sheet: Sequence[Step], slow: Collection[int]) -> list[str]:
    """Sentences on moves that stay because they are slow, and on moves that become faster."""
    kept, faster = [], []
    for number, step in enumerate(sheet, 1):
        if step.do != "wait" and step.move in slow:
            kept.append(str(number) if step.speed is None else f"{number} ({step.text('speed')})")
        if step.faster > FASTER:
            faster.append(f"{number} ({step.text('speed')}, {step.text('acceleration')})")
    notes = []
    if kept:
        notes.append(
            f"Kept because they are slow beside the others, as near a part: step {', '.join(kept)}."
            " --no-keep-slow lets them change too."
        )
    if faster:
        notes.append(
            f"Faster than recorded: step {', '.join(faster)}. Check tool, part and surroundings; "
            "--max-speedup limits it, --keep keeps a step as it is."
        )
    return notes


def sheet_csv(sheet: Sequence[Step]) -> str:
    """The sheet as CSV: the columns of the JSON, empty where it has null."""
    rows = [step.as_json(number) for number, step in enumerate(sheet, 1)]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        waypoint = row["waypoint"]
        angles = None if waypoint is None else ", ".join(f"{q:.2f}" for q in waypoint)
        row["waypoint"] = None if angles is None else f"[{angles}]"  # a minus begins a formula
        row["kept"] = str(row["kept"]).lower()
        writer.writerow(row)
    return text.getvalue()


def _slow_moves(cycle: WorkCycle, dynamics: ArmDynamics) -> set[int]:
    """Moves that are deliberately slow.

    Their speed is below a share of the speed at which half of the travel of their kind runs or, but
    for moveJ, below a share of that of the tool. Moves that are too short to reach their speed are
    slow only if their acceleration is as low as that.
    """
    flange = [np.linalg.norm(dynamics.flange_speed(m.q, m.qd), axis=1) for m in cycle.moves]
    tool = np.array([speed.max() for speed in flange])
    way = [np.trapezoid(speed, m.time) for speed, m in zip(flange, cycle.moves, strict=True)]
    out, typical_tool = set(), _typical(tool, np.array(way))
    for kind in ("moveJ", "moveL"):
        same = [k for k, move in enumerate(cycle.moves) if move.kind == kind]
        if not same:
            continue
        moves = [cycle.moves[k] for k in same]
        travel = np.array([_travel(move) for move in moves])
        typical = _typical(np.array([move.speed for move in moves]), travel)
        gentle = _typical(np.array([move.acceleration for move in moves]), travel)
        for k, move, distance in zip(same, moves, travel, strict=True):
            short = move.speed**2 / move.acceleration > TRIANGLE * distance
            slow = move.speed < SLOW * typical or (
                kind == "moveL" and tool[k] < SLOW_TOOL * typical_tool
            )
            if slow and (not short or move.acceleration < SLOW * gentle):
                out.add(k)
    others = (k for k, move in enumerate(cycle.moves) if move.kind == "other")
    return out | {k for k in others if tool[k] < SLOW_TOOL * typical_tool}


def _travel(move: Move) -> float:
    """Distance of a trapezoid [rad or m], from its speed, acceleration and duration."""
    ramp = move.speed / move.acceleration
    return move.speed * max(move.duration - ramp, ramp)


def _typical(values: Array, weights: Array) -> float:
    """The highest value that half of the weight reaches."""
    order = np.argsort(-values)
    reached = np.cumsum(weights[order]) >= 0.5 * weights.sum() - 1e-9
    return float(values[order][int(np.argmax(reached))])


def _rounded(value: float) -> float:
    """A number with the digits that a person types."""
    return float(f"{value:.{TYPED_DIGITS}g}")


def _digits(value: float) -> str:
    """A typed number, with all its digits."""
    decimals = max(0, TYPED_DIGITS - 1 - math.floor(math.log10(value)))
    return f"{value:.{decimals}f}"
