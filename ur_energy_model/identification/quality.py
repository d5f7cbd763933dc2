# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Quality of a recording: what it is good for, what is wrong with it, and its motion."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.recording_check import RecordingCheck
from ur_energy_model.energy.telemetry_checks import rated_limits
from ur_energy_model.energy.wall import RecordedMeter
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.base_parameters import Conditioning
from ur_energy_model.identification.filtered_motion import NO_MOTION, SHORTEST_MOTION
from ur_energy_model.identification.visited_path import VisitedPath
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

_IDLE_TRAVEL = 0.01  # range of positions of a joint that hardly moves [rad]
_ENOUGH_SPEED = 0.3  # largest speed from which a joint shows its friction [rad/s]
_ENOUGH_TRAVEL = 0.2  # range of positions from which it does [rad]
ENOUGH_SECONDS = 5.0  # recordings shorter than this get a warning [s]
ILL_CONDITIONED = 3000.0
"""Condition number from which base parameters are not determined (good motions reach
150)."""


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
        parts = ["simulated"] if self.simulated else []
        good = self._purposes("good")
        limited = self._purposes("limited")
        if good:
            parts.append(f"good for {good}")
        if limited:
            parts.append(f"of limited use for {limited}")
        if not good and not limited:
            parts.append("good for nothing here")
        return "; ".join(parts)

    def _purposes(self, grade: Grade) -> str:
        """Purposes that the recording suits in this way, separated by commas."""
        purposes = [use.purpose for use in self.uses if use.grade == grade]
        return ", ".join(purposes).replace("_", " ")

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


_ENOUGH_STEPS = 100_000  # time steps that the rate is found from
_ENOUGH_PAYLOADS = 100  # distinct payloads that are kept
_LEAST_SECONDS = 0.5  # recordings that cover less are refused [s]
_FROZEN_TIME = 0.2  # a noisy channel that stays as it is for longer is frozen [s]
_NOISY = ("actual_current", "actual_robot_current")
"""Channels whose noise never repeats a value for long on real hardware."""


def _not_running(part: Telemetry) -> Mask:
    """Samples [samples] with brakes on or power off."""
    return np.asarray(part["robot_mode"] != RUNNING)


def _stopped(part: Telemetry) -> Mask:
    """Samples [samples] in a safety stop."""
    return np.isin(part["safety_mode"], SAFETY_STOPS)


def _reduced(part: Telemetry) -> Mask:
    """Samples [samples] with reduced safety limits."""
    return np.asarray(part["safety_mode"] == REDUCED)


class _State(NamedTuple):
    """A state of the arm whose share of the samples is reported.

    Attributes:
        needed: fields that show it.
        samples: finds the samples of a part that are in it [samples].
        words: for it.
    """

    needed: tuple[str, ...]
    samples: Callable[[Telemetry], Mask]
    words: str


_STATES: dict[str, _State] = {
    "freedrive": _State(
        ("target_qd", "target_qdd"),
        freedrive_samples,
        "freedrive, which identifies no inertia",
    ),
    "not_running": _State(("robot_mode",), _not_running, "with brakes on or power off"),
    "stopped": _State(("safety_mode",), _stopped, "in a safety stop"),
    "reduced": _State(("safety_mode",), _reduced, "with reduced safety limits (no stop)"),
}
"""The states by the name of their share in `Quality`."""
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
        self._meter.observe(part)
        if self.robot is not None:
            self._statements.observe(part)
            self._add_to_conditioning(part, self.robot)
        self._add_to_channels(part)
        self._simulator.update(part)
        self._add_to_activity(part)
        for name, state in _STATES.items():
            if set(state.needed) <= set(part.columns):
                self._count[name] += int(np.count_nonzero(state.samples(part)))
        if "payload" in part and len(self._payloads) < _ENOUGH_PAYLOADS:
            masses = np.unique(part["payload"]).tolist()
            self._payloads |= {round(mass, 3) for mass in masses}

    def _add_to_conditioning(self, part: Telemetry, robot: RobotDescription) -> None:
        """Add a part to the condition number, in the mounting that the recording states."""
        if not {"actual_q", "target_q"} & set(part.columns):
            return
        if self._conditioning is None:
            gravity = None
            if self._info.gravity is not None:
                gravity = np.array(self._info.gravity)
            self._conditioning = Conditioning(robot, gravity)
        self._conditioning.accumulate(part)

    def _add_to_channels(self, part: Telemetry) -> None:
        """Add a part to the extremes and repeated values of its channels."""
        for name, values in part.columns.items():
            channels = values.reshape(len(part), -1)
            self._extremes[name].update(channels)
            bad = int(np.count_nonzero(~np.isfinite(channels)))
            if bad:
                self._not_finite[name] += bad
            if name in _NOISY:
                for k, channel in enumerate(channels.T):
                    label = name if values.ndim == 1 else f"{name}_{k}"
                    self._repeats.setdefault(label, Repeats()).update(channel)

    def _add_to_activity(self, part: Telemetry) -> None:
        """Add a part to the times in motion; without speeds no joint moves in it."""
        speed = part.columns.get("actual_qd", part.columns.get("target_qd"))
        if speed is None and "actual_current" in part:
            speed = np.full_like(part["actual_current"], np.nan)
        if speed is None:
            return
        if self._activity is None:
            self._activity = JointActivity(speed.shape[1])
        usable = usable_samples(part)[:, None]
        self._activity.update(part, np.nan_to_num(speed) * usable)

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
        # numbers of equal values in a row, of a frozen and of a clipped channel
        still = 20.0
        if np.isfinite(step):
            still = max(still, _FROZEN_TIME / step)
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
        uses = [
            Use(purpose, *self._use(purpose, joints, refusal, condition))
            for purpose in _NEEDS
        ]
        warnings = [each.words() for each in contradictions if not each.refused]
        warnings += self._warnings(seconds, joints, shares, frozen, clipped)
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
            uses=tuple(uses),
            condition_number=condition,
            refusal=refusal,
            contradictions=contradictions,
            warnings=tuple(warnings),
            visited=self._visited,
        )

    def _joints(self) -> tuple[JointQuality, ...]:
        """Excitation of the joints; none where neither positions nor currents were recorded."""
        kind = "actual" if "actual_q" in self._extremes else "target"
        low = self._extremes_of(f"{kind}_q").low
        if low is None:
            low = self._extremes_of("actual_current").low
        if low is None:
            return ()
        n = len(low)
        travel = self._extremes_of(f"{kind}_q").span(n)
        speed = self._extremes_of(f"{kind}_qd").largest(n)
        torque = self._extremes_of("target_moment").span(n)
        current = self._extremes_of("actual_current").largest(n)
        temperature = self._extremes_of("joint_temperatures")
        nothing = np.full(n, np.nan)
        coldest = nothing if temperature.low is None else temperature.low
        warmest = nothing if temperature.high is None else temperature.high
        activity = self._activity or JointActivity(n)
        joints = [
            JointQuality(
                name=name,
                travel=float(travel[j]),
                speed=float(speed[j]),
                torque=float(torque[j]),
                current=float(current[j]),
                moving=float(activity.moving[j]),
                reversals=int(activity.reversals[j]),
                temperature=(float(coldest[j]), float(warmest[j])),
            )
            for j, name in enumerate(self._joint_names(n))
        ]
        return tuple(joints)

    def _extremes_of(self, name: str) -> Extremes:
        """Extremes of a field; of none where it was not recorded."""
        return self._extremes.get(name, Extremes())

    def _joint_names(self, n: int) -> tuple[str, ...]:
        """Names of the n joints: of the arm, else as in messages, else numbers from 1."""
        if self.robot is not None:
            return self.robot.joint_names[:n]
        if n == len(JOINT_NAMES):
            return tuple(JOINT_NAMES)
        return tuple(f"joint_{j + 1}" for j in range(n))

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
        """Why identification refuses the recording, with a remedy; None where it does not."""
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
        for contradiction in contradictions:
            if contradiction.refused:
                return contradiction.words()
        return None

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
        parts = []
        if idle:
            parts.append(f"{', '.join(idle)} hardly moved")
        if poor:
            parts.append(f"little motion of {', '.join(poor)}")
        if parts:
            return "limited", "; ".join(parts)
        return "good", "every joint moves enough"

    def _warnings(
        self,
        seconds: float,
        joints: tuple[JointQuality, ...],
        shares: dict[str, float],
        frozen: tuple[str, ...],
        clipped: tuple[str, ...],
    ) -> list[str]:
        """Warnings for the user, one line each; contradictions are not among them.

        Args:
            seconds: time covered without gaps [s].
            joints: excitation of the joints.
            shares: of the samples in each of _STATES.
            frozen: channels that do not change.
            clipped: channels that stay at a limit.
        """
        count = self._count
        warnings = []
        share = count["lost"] / max(1, count["samples"] + count["lost"])
        if share > 0.001:
            warnings.append(
                f"{count['lost']} samples ({100 * share:.1f} %) are missing in "
                f"{count['gaps']} gaps"
            )
        removed = self._info.removed
        if removed:
            warnings.append(
                f"{removed} more samples were deleted for the budget of the folder"
            )
        warnings += repetition(count["repeated"])
        if count["impossible"]:
            warnings.append(
                f"{count['impossible']} samples with impossible values "
                f"({self._first_impossible}) are not used"
            )
        if self._not_finite:
            warnings.append(
                f"{', '.join(self._not_finite)} hold values that are not finite; those samples "
                "are not used"
            )
        if frozen:
            warnings.append(
                f"{', '.join(frozen)} do not change for {_FROZEN_TIME:g} s or more; check the "
                "recorder"
            )
        if clipped:
            warnings.append(
                f"{', '.join(clipped)} stay at their limit; slower motions avoid that"
            )
        for name, state in _STATES.items():
            if shares[name]:
                warnings.append(f"{100 * shares[name]:.1f} % {state.words}")
        if {joint.activity for joint in joints} == {"idle"}:
            warnings.append(NO_MOTION)
        if len(self._payloads) > 1:
            masses = ", ".join(f"{mass:g}" for mass in sorted(self._payloads))
            warnings.append(f"the payload changes within the recording ({masses} kg)")
        if _LEAST_SECONDS <= seconds < ENOUGH_SECONDS:
            warnings.append(
                f"only {seconds:.1f} s; more motion makes the model more exact"
            )
        return warnings
