# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Quality of a recording: what it is good for, what is wrong with it, and its motion."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.recording_check import RecordingCheck
from ur_energy_model.energy.telemetry_checks import rated_limits
from ur_energy_model.energy.wall import RecordedMeter
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.base_parameters import Conditioning
from ur_energy_model.identification.filtered_motion import NO_MOTION, SHORTEST_MOTION
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.robot_modes import REDUCED, RUNNING, SAFETY_STOPS
from ur_energy_model.telemetry.bag.messages import JOINT_NAMES
from ur_energy_model.telemetry.gaps import typical_step
from ur_energy_model.telemetry.plausibility import (
    ANY_ARM,
    IMPOSSIBLE_SHARE,
    REASON,
    REMEDY,
    Extremes,
    JointActivity,
    OfflineSimulatorCheck,
    Repeats,
    possible,
)
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, repetition
from ur_energy_model.telemetry.usable_samples import freedrive_samples, usable_samples
from ur_energy_model.typing import Array, Mask

Grade = Literal["good", "limited", "no"]
Activity = Literal["idle", "little", "enough", "unknown"]

_IDLE_TRAVEL = 0.01
_ENOUGH_SPEED = 0.3
_ENOUGH_TRAVEL = 0.2
ENOUGH_SECONDS = 5.0  # recordings shorter than this get a warning [s]
ILL_CONDITIONED = 3000.0
"""Condition number from which base parameters are not determined (good motions reach
150)."""

Motion = Literal["fitted", "same motion again", "held out", "unknown"]
"""Relation of a recording's motion to those that a model was fitted to."""
MOTION_WORDS: dict[Motion, str] = {
    "fitted": "the model was fitted to this recording: its errors in other motions may be larger",
    "same motion again": "the same motion again that the model was fitted to: its errors in other "
    "motions may be larger",
    "held out": "another motion than the model was fitted to",
    "unknown": "the model does not name the motions it was fitted to",
}
_FINEST = 0.1
_COARSEST = 0.2
_MOST_POSES = 200
_PATH_PERIOD = 0.05
_TOLERANCE = 0.02  # distance of a repeated path to the fitted one [rad]
_REPEATED_SHARE = 0.9
"""Share of a recording's poses on a fitted path that makes it the same motion. Recordings
of a UR10e that repeat one another have 1.0, others 0.3 at most."""


@dataclass
class VisitedPath:
    """Joint angles that an arm passed through, coarsely, until a minute or so of ever new ones.

    What follows is left out: with fewer or coarser poses, other motions in the same space
    would pass for this one.

    Attributes:
        within: largest angle of any joint from a pose of the path to the nearest of
            `poses` [rad].
        poses: [poses, n], rad; at most 200.
    """

    within: float = _FINEST
    poses: Array = field(default_factory=lambda: np.zeros((0, 0)))
    _last: float = -1.0

    def observe(self, part: Telemetry) -> None:
        """Add consecutive samples; those without positions are left out."""
        q = part.columns.get("target_q", part.columns.get("actual_q"))
        if q is None:
            return
        period = np.floor(part.time / _PATH_PERIOD)
        used = np.diff(period, prepend=self._last) != 0
        self._last = float(period[-1])
        used &= np.isfinite(q).all(axis=1)
        if len(self.poses) < _MOST_POSES or self.within < _COARSEST:
            self._add(q[used])
        while len(self.poses) > _MOST_POSES and self.within < _COARSEST:
            poses = self.poses
            self.within = 2.0 * self.within
            self.poses = poses[:0]
            self._add(poses)
        self.poses = self.poses[:_MOST_POSES]

    def _add(self, q: Array) -> None:
        """Keep poses [samples, n] farther than `within` from those that are kept."""
        new = list(self.poses)
        away = self.distance(q)
        while len(far := np.flatnonzero(away > self.within)):
            q = q[far[0] :]
            away = away[far[0] :]
            new.append(q[0].round(2))
            away = np.minimum(away, np.abs(q - q[0]).max(axis=1))
        self.poses = np.array(new).reshape(-1, q.shape[1])

    def distance(self, q: Array) -> Array:
        """Largest angle of any joint to the nearest of `poses` [samples], rad.

        Args:
            q: joint angles [samples, n], rad.
        """
        if not len(self.poses) or q.shape[1] != self.poses.shape[1]:
            return np.full(len(q), np.inf)
        return np.asarray(np.abs(q[:, None] - self.poses).max(axis=2).min(axis=1))

    def as_json(self) -> dict[str, Any]:
        """For the provenance of a model; `from_json` reads it."""
        return {"within": self.within, "joint_angles": self.poses.tolist()}

    @classmethod
    def from_json(cls, content: Any) -> VisitedPath | None:
        """From a model file; None where that has none."""
        try:
            poses = np.array(content["joint_angles"], dtype=np.float64)
            return cls(float(content["within"]), poses) if poses.ndim == 2 else None
        except (KeyError, TypeError, ValueError):
            return None


def motion_of(
    path: VisitedPath, sha256: str, fitted: Iterable[Mapping[str, Any]]
) -> Motion:
    """Relation of a recording to those that a model was fitted to.

    Args:
        path: that the recording visits.
        sha256: hash of the recording.
        fitted: entries "bags" of the model's provenance; those of older models have no
            path, and only their hash counts.
    """
    entries = [entry for entry in fitted if isinstance(entry, Mapping)]
    if not entries:
        return "unknown"
    if sha256 in (entry.get("sha256") for entry in entries):
        return "fitted"
    known = [VisitedPath.from_json(entry.get("visited")) for entry in entries]
    if None in known or not len(path.poses):
        return "held out"
    on_any = np.zeros(len(path.poses), dtype=bool)
    for other in filter(None, known):
        on_any |= other.distance(path.poses) <= other.within + _TOLERANCE
    return "same motion again" if on_any.mean() >= _REPEATED_SHARE else "held out"


@dataclass(frozen=True)
class Use:
    """Suitability of a recording for one purpose.

    Attributes:
        purpose: a key of _NEEDS.
        grade: how well it suits.
        reason: why, in plain words.
    """

    purpose: str
    grade: Grade
    reason: str


@dataclass(frozen=True)
class JointQuality:
    """Excitation of one joint.

    Attributes:
        name: of the joint.
        travel: range of positions [rad], NaN without.
        speed: largest speed [rad/s], NaN without.
        torque: range of target_moment [N m], NaN without.
        current: largest current [A], NaN without.
        moving: time above 0.01 rad/s, brakes released and no freedrive [s].
        reversals: changes of direction.
        temperature: lowest and highest temperature [degC], NaN without.
    """

    name: str
    travel: float
    speed: float
    torque: float
    current: float
    moving: float
    reversals: int
    temperature: tuple[float, float]

    @property
    def activity(self) -> Activity:
        """Idle (it hardly moved), little motion, or enough to identify friction.

        Unknown without positions.
        """
        if math.isnan(self.travel):
            return "unknown"
        if self.travel < _IDLE_TRAVEL or self.moving < SHORTEST_MOTION:
            return "idle"
        enough = (
            self.travel > _ENOUGH_TRAVEL
            and self.speed > _ENOUGH_SPEED
            and self.moving > ENOUGH_SECONDS / 2
            and self.reversals >= 1
        )
        return "enough" if enough else "little"


@dataclass(frozen=True)
class Quality:
    """Verdict on one recording.

    Attributes:
        source: bag or file.
        simulated: made by this package's simulated controller.
        simulator: recorded from the manufacturer's offline simulator, without real
            currents.
        samples: number.
        duration: time covered without gaps [s].
        rate: samples per second found [Hz].
        irregular: the time step varies by more than 2 % of its median (due to the
            recorder).
        gaps: number.
        lost: number of missing samples.
        repeated: number of samples left out because the recording has them twice.
        joints: excitation per joint.
        frozen: channels (with joint index) that do not change.
        clipped: and those that stay at a limit.
        not_finite: number of values that are not finite, by field.
        freedrive: share of samples in freedrive.
        not_running: share of samples with the brakes on or the arm off.
        stopped: share of samples in a safety stop.
        reduced: share of samples in safety mode reduced (the arm works with lower
            limits).
        payloads: distinct payload masses set in the controller [kg].
        missing: fields that some stage needs but were not recorded.
        uses: what it is good for.
        condition_number: of the base regressor; None if the robot is unknown.
        refusal: why identification refuses it, or None.
        warnings: for the user, one line each.
        contradictions: statements that the samples do not agree with.
        visited: joint angles that it passes through.
    """

    source: str
    simulated: bool
    simulator: bool
    samples: int
    duration: float
    rate: float
    irregular: bool
    gaps: int
    lost: int
    repeated: int
    joints: tuple[JointQuality, ...]
    frozen: tuple[str, ...]
    clipped: tuple[str, ...]
    not_finite: dict[str, int]
    freedrive: float
    not_running: float
    stopped: float
    reduced: float
    payloads: tuple[float, ...]
    missing: tuple[str, ...]
    uses: tuple[Use, ...]
    condition_number: float | None
    refusal: str | None
    warnings: tuple[str, ...]
    contradictions: tuple[Contradiction, ...] = ()
    visited: VisitedPath = field(default_factory=VisitedPath)

    @property
    def verdict(self) -> str:
        """The verdict in one sentence."""
        if self.refusal is not None:
            return f"not usable: {self.refusal}"
        made = "simulated; " if self.simulated else ""
        parts = [
            f"{words} {', '.join(purposes)}"
            for grade, words in (("good", "good for"), ("limited", "of limited use for"))
            if (
                purposes := [
                    u.purpose.replace("_", " ") for u in self.uses if u.grade == grade
                ]
            )
        ]
        return made + ("; ".join(parts) or "good for nothing here")

    def as_dict(self) -> dict[str, Any]:
        """All attributes but `visited`, ready for JSON."""
        out = dataclasses.asdict(self)
        del out["visited"]
        out["contradictions"] = [each.as_json() for each in self.contradictions]
        for entry, joint in zip(out["joints"], self.joints, strict=True):
            entry["activity"] = joint.activity
        return {**out, "verdict": self.verdict}

    def require_usable(self) -> None:
        """Refuse a recording that would give a wrong model.

        Raises:
            IdentificationError: with reason and remedy.
        """
        if self.refusal is not None:
            raise IdentificationError(f"{self.source}: {self.refusal}")


_ENOUGH_STEPS = 100_000
_ENOUGH_PAYLOADS = 100
_LEAST_SECONDS = 0.5
_NOISY = ("actual_current", "actual_robot_current")
"""Channels whose noise never repeats a value for long on real hardware."""
_STATES: dict[str, tuple[tuple[str, ...], Callable[[Telemetry], Mask], str]] = {
    "freedrive": (
        ("target_qd", "target_qdd"), freedrive_samples, "freedrive, which identifies no inertia",
    ),
    "not_running": (
        ("robot_mode",), lambda part: part["robot_mode"] != RUNNING, "with brakes on or power off",
    ),
    "stopped": (
        ("safety_mode",),
        lambda part: np.isin(part["safety_mode"], SAFETY_STOPS),
        "in a safety stop",
    ),
    "reduced": (
        ("safety_mode",),
        lambda part: part["safety_mode"] == REDUCED,
        "with reduced safety limits (no stop)",
    ),
}  # fmt: skip
"""States whose share of the samples is reported: fields needed, samples in it, and words
for it."""
_MISSED = (
    "target_q", "target_qd", "target_qdd", "target_moment", "actual_q", "actual_qd",
    "actual_current", "joint_temperatures", "actual_robot_voltage", "actual_robot_current",
)  # fmt: skip
"""Fields that some stage needs."""
_CURRENTS = ("actual_q", "actual_qd", "actual_current")
_NEEDS: dict[str, tuple[str, ...]] = {
    "setup_and_inertia": ("target_moment",),
    "friction": _CURRENTS,
    "bus_power": ("actual_current", "actual_robot_voltage", "actual_robot_current"),
    "temperature": ("actual_current", "joint_temperatures"),
    "payload": _CURRENTS,
    "base_parameters": _CURRENTS,
}
"""Fields that each purpose needs."""


def assess(
    telemetry: Telemetry | Iterable[Telemetry], *, robot: RobotDescription | None = None
) -> Quality:
    """Quality of a recording, whole or in consecutive parts.

    Args:
        telemetry: parts of the recording, in order.
        robot: its arm as stated, which the samples may contradict, and for the condition
            number; None for neither.

    Raises:
        MissingFieldError: neither positions nor currents were recorded.
    """
    check = RecordingQualityCheck(robot=robot)
    for part in [telemetry] if isinstance(telemetry, Telemetry) else telemetry:
        check.observe(part)
    return check.quality()


class RecordingQualityCheck:
    """Gathers figures from consecutive parts of one recording, and judges them.

    Args:
        robot: its arm as stated, which the samples may contradict, and for the condition
            number; None for neither.
    """

    def __init__(self, robot: RobotDescription | None = None) -> None:
        self.robot = robot
        self._info = RecordingInfo()
        # Samples, gaps, samples lost and repeated, impossible ones, and those in _STATES.
        self._count: Counter[str] = Counter()
        self._not_finite: Counter[str] = Counter()
        self._steps: list[Array] = []
        # by field; all recorded fields are in it
        self._extremes: dict[str, Extremes] = {}
        self._repeats: dict[str, Repeats] = {}
        self._simulator = OfflineSimulatorCheck()
        self._activity: JointActivity | None = None
        self._first_impossible: str | None = None
        self._payloads: set[float] = set()
        self._conditioning: Conditioning | None = None
        self._visited = VisitedPath()
        self._statements = RecordingCheck()
        self._meter = RecordedMeter()

    def observe(self, part: Telemetry) -> None:
        """Add the next part.

        Raises:
            MissingFieldError: neither positions nor currents were recorded.
        """
        if not len(part):
            return
        if not {"actual_q", "target_q", "actual_current"} & set(part.columns):
            part.require("actual_q", purpose="judging a recording without currents")
        self._info = part.info
        for name in part.columns:
            self._extremes.setdefault(name, Extremes())
        self._count += Counter(samples=len(part), repeated=part.repeated)
        limits = ANY_ARM if self.robot is None else rated_limits(self.robot)
        part, impossible, first = possible(part, limits)
        if self._first_impossible is None and first is not None:
            self._first_impossible = f"{first.field}_{first.index} = {first.value:.4g}"
        self._count["impossible"] += int(np.count_nonzero(impossible))
        if not len(part):
            return
        self._count += Counter(gaps=len(part.gaps), lost=part.lost)
        if len(part) > 1 and sum(map(len, self._steps)) < _ENOUGH_STEPS:
            self._steps.append(np.diff(part.time))
        self._visited.observe(part)
        if self.robot is not None:
            self._statements.observe(part)
        self._meter.observe(part)
        if self.robot is not None and {"actual_q", "target_q"} & set(part.columns):
            if self._conditioning is None:
                down = self._info.gravity
                gravity = None if down is None else np.array(down)
                self._conditioning = Conditioning(self.robot, gravity)
            self._conditioning.accumulate(part)
        for name, values in part.columns.items():
            wide = values.reshape(len(part), -1)
            self._extremes[name].update(wide)
            if bad := int(np.count_nonzero(~np.isfinite(wide))):
                self._not_finite[name] += bad
            for k, channel in enumerate(wide.T if name in _NOISY else ()):
                label = name if values.ndim == 1 else f"{name}_{k}"
                self._repeats.setdefault(label, Repeats()).update(channel)
        self._simulator.update(part)
        speed = part.columns.get("actual_qd", part.columns.get("target_qd"))
        if speed is None and "actual_current" in part:
            speed = np.full_like(part["actual_current"], np.nan)
        if speed is not None:
            self._activity = self._activity or JointActivity(speed.shape[1])
            self._activity.update(
                part, np.nan_to_num(speed) * usable_samples(part)[:, None]
            )
        for name, (needed, inside, _) in _STATES.items():
            if all(each in part for each in needed):
                self._count[name] += int(np.count_nonzero(inside(part)))
        if "payload" in part and len(self._payloads) < _ENOUGH_PAYLOADS:
            self._payloads |= {round(float(v), 3) for v in np.unique(part["payload"])}

    def quality(self) -> Quality:
        """The verdict on what was observed."""
        count = self._count
        samples = self._count["samples"]
        steps = np.concatenate([np.zeros(0), *self._steps])
        forward = steps[steps > 0]
        step = float(np.median(forward)) if len(forward) else float("nan")
        close = forward[forward < 1.5 * step]
        irregular = bool(len(close)) and bool(np.std(close) > 0.02 * step)
        spacing = typical_step(steps) if irregular else step
        still = max(20.0, 0.2 / step if np.isfinite(step) else 20.0)
        stuck = max(6.0, 0.002 * samples)
        channels = self._repeats.items()
        frozen = tuple(label for label, each in channels if each.frozen(still))
        clipped = tuple(label for label, each in channels if each.clipped(stuck))
        seconds = 0.0 if self._activity is None else self._activity.seconds
        joints = self._joints()
        contradictions = self._contradictions()
        refusal = self._refusal(seconds, joints, frozen, contradictions)
        condition = None if self._conditioning is None else self._conditioning.number
        shares = {name: count[name] / max(1, samples) for name in _STATES}
        return Quality(
            source=self._info.source,
            simulated=self._info.simulated,
            simulator=self._simulator.found,
            samples=samples,
            duration=seconds,
            rate=1 / spacing if spacing else float("nan"),
            irregular=irregular,
            gaps=count["gaps"],
            lost=count["lost"],
            repeated=count["repeated"],
            joints=joints,
            frozen=frozen,
            clipped=clipped,
            not_finite=dict(self._not_finite),
            **shares,
            payloads=tuple(sorted(self._payloads)),
            missing=tuple(name for name in _MISSED if name not in self._extremes),
            uses=tuple(
                Use(each, *self._use(each, joints, refusal, condition)) for each in _NEEDS
            ),
            condition_number=condition,
            refusal=refusal,
            contradictions=contradictions,
            warnings=(
                *(each.words() for each in contradictions if not each.refused),
                *self._warnings(seconds, joints, shares, frozen, clipped),
            ),
            visited=self._visited,
        )

    def _joints(self) -> tuple[JointQuality, ...]:
        def extremes(name: str) -> Extremes:
            return self._extremes.get(name, Extremes())

        kind = "actual" if "actual_q" in self._extremes else "target"
        seen = (extremes(name).low for name in (f"{kind}_q", "actual_current"))
        low = next((each for each in seen if each is not None), None)
        if low is None:
            return ()
        n = len(low)
        heat = extremes("joint_temperatures")
        activity = self._activity or JointActivity(n)
        nothing = np.full(n, np.nan)
        names: tuple[str, ...] = JOINT_NAMES
        if self.robot is not None:
            names = self.robot.joint_names
        elif n != len(names):
            names = tuple(f"joint_{j + 1}" for j in range(n))
        travel = extremes(f"{kind}_q").span(n)
        torque = extremes("target_moment").span(n)
        speed, current = (
            extremes(each).largest(n) for each in (f"{kind}_qd", "actual_current")
        )
        cold, warm = (nothing if each is None else each for each in (heat.low, heat.high))
        return tuple(
            JointQuality(
                name=names[j],
                travel=float(travel[j]),
                speed=float(speed[j]),
                torque=float(torque[j]),
                current=float(current[j]),
                moving=float(activity.moving[j]),
                reversals=int(activity.reversals[j]),
                temperature=(float(cold[j]), float(warm[j])),
            )
            for j in range(n)
        )

    def _contradictions(self) -> tuple[Contradiction, ...]:
        """What the samples show of statements about the recording."""
        self._meter.finish()
        return (*self._statements.contradictions(self.robot), *self._meter.contradictions)

    def _refusal(
        self,
        seconds: float,
        joints: tuple[JointQuality, ...],
        frozen: tuple[str, ...],
        contradictions: tuple[Contradiction, ...],
    ) -> str | None:
        total = self._count["samples"]
        impossible = self._count["impossible"]
        if not total:
            return "holds no sample; record again"
        if impossible > IMPOSSIBLE_SHARE * total:
            return (
                f"{impossible} of {total} samples hold values that no such arm can have "
                f"({self._first_impossible}); record or import again"
            )
        if self._simulator.found:
            return f"{REASON}; {REMEDY}"
        if seconds < _LEAST_SECONDS:
            return f"covers {seconds:.2f} s without gaps; record at least {ENOUGH_SECONDS:.0f} s"
        if {f"actual_current_{j}" for j in range(len(joints))} <= set(frozen):
            return "actual_current is frozen on every joint (a lost connection?); record again"
        return next((each.words() for each in contradictions if each.refused), None)

    def _use(
        self,
        purpose: str,
        joints: tuple[JointQuality, ...],
        refusal: str | None,
        condition: float | None,
    ) -> tuple[Grade, str]:
        """How suitable the recording is for a purpose, and why."""
        lacking = [name for name in _NEEDS[purpose] if name not in self._extremes]
        if refusal is not None or lacking:
            return "no", refusal or f"{', '.join(lacking)} not recorded"
        activities = {joint.activity for joint in joints}
        if purpose == "temperature":
            spans = [joint.temperature[1] - joint.temperature[0] for joint in joints]
            widest = max((span for span in spans if np.isfinite(span)), default=0.0)
            if widest >= 5:
                return "good", f"joints warm by up to {widest:.1f} degC"
            text = f"joints warm by {widest:.1f} degC only; combine a cold and a warm recording"
            return "no", text
        if purpose == "bus_power" and activities <= {"unknown"}:
            return (
                "limited",
                "positions and speeds not recorded: energy of the whole arm only",
            )
        if purpose == "bus_power" and activities <= {"idle"}:
            return "limited", "standstill: standby power only"
        if activities == {"idle"}:
            return "no", NO_MOTION
        if purpose == "base_parameters" and (condition or 1.0) > ILL_CONDITIONED:
            text = "the motion does not determine all combinations; record one made by ur_energy"
            return "limited", f"{text} excite"
        # The controller's own torque and targets are exact, so any motion suffices.
        exact = {"target_q", "target_qd", "target_qdd"} <= set(self._extremes)
        little_suffices = purpose == "setup_and_inertia" and exact
        idle = [joint.name for joint in joints if joint.activity == "idle"]
        enough = {"enough", "little"} if little_suffices else {"enough"}
        poor = [joint.name for joint in joints if joint.activity not in {*enough, "idle"}]
        parts = [f"{', '.join(idle)} hardly moved"] if idle else []
        parts += [f"little motion of {', '.join(poor)}"] if poor else []
        return (
            ("limited", "; ".join(parts))
            if parts
            else ("good", "every joint moves enough")
        )

    def _warnings(
        self,
        seconds: float,
        joints: tuple[JointQuality, ...],
        shares: dict[str, float],
        frozen: tuple[str, ...],
        clipped: tuple[str, ...],
    ) -> Iterator[str]:
        count = self._count
        removed = self._info.removed
        share = count["lost"] / max(1, count["samples"] + count["lost"])
        masses = ", ".join(f"{mass:g}" for mass in sorted(self._payloads))
        first = self._first_impossible
        table: tuple[tuple[object, str], ...] = (
            (
                share > 0.001,
                f"{count['lost']} samples ({100 * share:.1f} %) are missing in {count['gaps']} "
                "gaps",
            ),
            (
                removed,
                f"{removed} more samples were deleted for the budget of the folder",
            ),
            *((line, line) for line in repetition(count["repeated"])),
            (
                count["impossible"],
                f"{count['impossible']} samples with impossible values ({first}) are not used",
            ),
            (
                self._not_finite,
                f"{', '.join(self._not_finite)} hold values that are not finite; those samples "
                "are not used",
            ),
            (
                frozen,
                f"{', '.join(frozen)} do not change for 0.2 s or more; check the recorder",
            ),
            (
                clipped,
                f"{', '.join(clipped)} stay at their limit; slower motions avoid that",
            ),
            *(
                (shares[name], f"{100 * shares[name]:.1f} % {_STATES[name][2]}")
                for name in _STATES
            ),
            ({joint.activity for joint in joints} == {"idle"}, NO_MOTION),
            (
                len(self._payloads) > 1,
                f"the payload changes within the recording ({masses} kg)",
            ),
            (
                _LEAST_SECONDS <= seconds < ENOUGH_SECONDS,
                f"only {seconds:.1f} s; more motion makes the model more exact",
            ),
        )
        return (line for applies, line in table if applies)
